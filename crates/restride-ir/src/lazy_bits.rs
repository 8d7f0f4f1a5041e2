//! PyTorch's lazy conjugate and negative bits, and how views pass them on.

use crate::{Error, ErrorKind, MathView, Op, Result, TensorType};
use restride_tensor::Dim;

/// Maps that reads and writes apply to a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LazyBits {
    /// Complex conjugation.
    pub conj: bool,
    /// Negation.
    pub neg: bool,
}

impl LazyBits {
    /// Whether stored and logical elements are the same.
    pub fn is_clear(self) -> bool {
        self == LazyBits::default()
    }

    /// The maps of both, one after the other.
    pub fn then(self, other: LazyBits) -> LazyBits {
        LazyBits { conj: self.conj != other.conj, neg: self.neg != other.neg }
    }

    /// Lazy bits of a view of a tensor with these bits; `None` if the result is a resolved copy (`resolve_conj`).
    ///
    /// # Errors
    /// In PyTorch's words, for views that PyTorch refuses on a lazily mapped tensor.
    pub fn of_view<D: Dim>(self, op: Op, from: &TensorType<D>, to: &TensorType<D>) -> Result<Option<LazyBits>> {
        // A `view.dtype`, be it to the same type; `view_as_real` changes complex numbers to their parts.
        let typed = op.schema().name == "view" && op.schema().overload == "dtype";
        let part = !typed && from.dtype.is_complex() && to.dtype == from.dtype.real();
        match op.def().math {
            Some(MathView::Conj) => return Ok(Some(LazyBits { conj: self.conj != to.dtype.is_complex(), ..self })),
            Some(MathView::Neg) => return Ok(Some(LazyBits { neg: !self.neg, ..self })),
            Some(MathView::ResolveConj) if self.conj => return Ok(None),
            Some(MathView::ResolveNeg) if self.neg => return Ok(None),
            Some(MathView::ResolveConj | MathView::ResolveNeg) => return Ok(Some(self)),
            None => {}
        }
        if part && from.layout.sizes == to.layout.sizes {
            // `real` and `imag`: the imaginary part of a conjugate is negated.
            let imaginary = to.layout.offset.minus(&from.layout.offset.times(&D::from(2))).is(1);
            return Ok(Some(LazyBits { conj: false, neg: self.neg != (self.conj && imaginary) }));
        }
        if part && self.conj {
            return Err(Error::new(
                ErrorKind::Program,
                "view_as_real doesn't work on unresolved conjugated tensors. To resolve the conjugate tensor so you can \
                 view it as real, use self.resolve_conj()",
            ));
        }
        let other = typed || from.dtype != to.dtype && !part && (!to.dtype.is_complex() || from.dtype.is_complex());
        if other && !self.is_clear() {
            return Err(Error::new(
                ErrorKind::Program,
                "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype. \
                 Please resolve the tensor first",
            ));
        }
        Ok(Some(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Meta, OpDef, RegisteredOp};
    use restride_tensor::DType;

    #[test]
    fn no_view_as_a_type_of_what_is_negated() {
        let schema = "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)";
        let op = Op::register(RegisteredOp::new(OpDef::new(schema), None, None).unwrap());
        let (negated, plain) = (LazyBits { conj: false, neg: true }, LazyBits::default());
        for sizes in [&[0i64][..], &[2]] {
            let (from, to) = (Meta::contiguous(DType::C64, sizes), Meta::contiguous(DType::F32, &[2 * sizes[0]]));
            assert!(negated.of_view(op, &from, &to).is_err());
            assert_eq!(plain.of_view(op, &from, &to).unwrap(), Some(plain));
        }
    }
}
