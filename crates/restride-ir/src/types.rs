//! Types of values.

use crate::Expr;
use restride_tensor::{DType, Dim, Layout};
use std::fmt;

/// Element type and eager layout of a tensor; `D` is `i64` where sizes are known.
///
/// In an imported program the layout is the place of the elements. In a functional program it is eager PyTorch's, visible
/// at outputs and to operators that ask for strides; a placement has the place of the elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType<D: Dim = Expr> {
    /// Element type.
    pub dtype: DType,
    /// Sizes, strides, offset, in elements.
    pub layout: Layout<D>,
}

/// A tensor type with known sizes, as shape functions take it.
pub type Meta = TensorType<i64>;

impl<D: Dim> TensorType<D> {
    /// A row-major tensor from cell 0.
    pub fn contiguous(dtype: DType, sizes: &[D]) -> Self {
        TensorType { dtype, layout: Layout::contiguous(sizes) }
    }
    /// A tensor of the given layout.
    pub fn new(dtype: DType, layout: Layout<D>) -> Self {
        TensorType { dtype, layout }
    }
    /// Sizes.
    pub fn sizes(&self) -> &[D] {
        &self.layout.sizes
    }
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.layout.rank()
    }
    /// The type with known sizes, if all sizes are known.
    pub fn known(&self) -> Option<Meta> {
        Some(TensorType { dtype: self.dtype, layout: self.layout.known()? })
    }
}

/// Known sizes as expressions.
impl From<Meta> for TensorType {
    fn from(m: Meta) -> TensorType {
        TensorType { dtype: m.dtype, layout: m.layout.map(|n| Expr::Int(*n)) }
    }
}

impl<D: Dim> fmt::Display for TensorType<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |dims: &[D]| dims.iter().map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
        write!(f, "{}[{}]", self.dtype, list(&self.layout.sizes))?;
        // Strides are printed unless they equal the row-major ones, so the text is complete.
        if self.layout.strides != Layout::contiguous(&self.layout.sizes).strides {
            write!(f, "[{}]", list(&self.layout.strides))?;
        }
        if !self.layout.offset.is(0) {
            write!(f, "+{}", self.layout.offset)?;
        }
        Ok(())
    }
}

/// The type of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Type {
    /// A tensor.
    Tensor(TensorType),
    /// A number (`SymInt`, `SymFloat`, `SymBool`): a fresh symbol if a run learns it, else an expression over known
    /// symbols.
    Scalar(Expr),
    /// A `None` result or input.
    None,
    /// A string input.
    Str,
    /// A token or custom object, which restride only passes on.
    Opaque,
}

impl Type {
    /// The tensor type, if it is one.
    pub fn tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(t) => Some(t),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tensor(t) => t.fmt(f),
            Type::Scalar(e) => write!(f, "Sym({e})"),
            Type::None => f.write_str("None"),
            Type::Str => f.write_str("str"),
            Type::Opaque => f.write_str("opaque"),
        }
    }
}
