//! Element by element: rows of the operands are gathered into the compute type, one slice function is applied, and
//! the row is written in the result's element type.

#[macro_use]
mod macros;

mod activation;
mod arith;
mod backward;
mod compare;
mod complex;
pub mod complex_math;
mod drive;
mod narrow;
mod real;
mod select;
mod special;
mod unary;

pub use activation::*;
pub use arith::*;
pub use backward::*;
pub use compare::*;
pub use complex::*;
pub use drive::{Answer, RowType, drive};
pub use narrow::{NarrowAnswers, NarrowRows, TruthByte};
pub use select::*;
pub use special::*;
pub use unary::*;

use crate::support::convert::Kind;
use restride_tensor::{C32, C64, DType, FormulaFn, Scalar, View, ViewMut};

/// Computes a row: the operands' rows, which are as long as the result's, and the result's.
pub type RowFn<T, R = T> = fn(&[&[T]], &mut [R]);

/// An operator on numbers, with one row function for each compute type that it is defined for.
#[derive(Clone, Copy)]
pub struct Pointwise {
    /// For `bool` and the integers, wrapping.
    pub int: Option<RowFn<i64>>,
    /// For `f16`, `bf16` and `f32`.
    pub f32: Option<RowFn<f32>>,
    /// For `f64`.
    pub f64: Option<RowFn<f64>>,
    /// For complex of `f32`.
    pub c32: Option<RowFn<C32>>,
    /// For complex of `f64`.
    pub c64: Option<RowFn<C64>>,
    /// For `bool` and integers of less than 64 bits in their own type, where that gives what `int` gives.
    pub narrow: Option<NarrowRows>,
    /// What `f32` computes, as data, if that is basic arithmetic.
    pub formula: Option<FormulaFn>,
    /// Refuses values of integer operands (a divisor of zero).
    pub check: Option<fn(&[&[i64]]) -> Result<(), &'static str>>,
}

/// A question about numbers.
#[derive(Clone, Copy)]
pub struct Predicate {
    /// For `bool` and the integers.
    pub int: Option<RowFn<i64, bool>>,
    /// For `f16`, `bf16` and `f32`.
    pub f32: Option<RowFn<f32, bool>>,
    /// For `f64`.
    pub f64: Option<RowFn<f64, bool>>,
    /// For complex of `f32`.
    pub c32: Option<RowFn<C32, bool>>,
    /// For complex of `f64`.
    pub c64: Option<RowFn<C64, bool>>,
    /// For `bool` and integers of less than 64 bits in their own type.
    pub narrow: Option<NarrowAnswers>,
    /// What `f32` asks, as data; a truth value.
    pub formula: Option<FormulaFn>,
}

impl Pointwise {
    /// Defined for nothing yet.
    pub const NONE: Pointwise =
        Pointwise { int: None, f32: None, f64: None, c32: None, c64: None, narrow: None, formula: None, check: None };
    /// Whether it is defined for a compute type.
    pub fn takes(&self, kind: Kind) -> bool {
        match kind {
            Kind::Int => self.int.is_some(),
            Kind::F32 => self.f32.is_some(),
            Kind::F64 => self.f64.is_some(),
            Kind::C32 => self.c32.is_some(),
            Kind::C64 => self.c64.is_some(),
        }
    }
}

impl Predicate {
    /// Defined for nothing yet.
    pub const NONE: Predicate =
        Predicate { int: None, f32: None, f64: None, c32: None, c64: None, narrow: None, formula: None };
    /// Whether it is defined for a compute type.
    pub fn takes(&self, kind: Kind) -> bool {
        match kind {
            Kind::Int => self.int.is_some(),
            Kind::F32 => self.f32.is_some(),
            Kind::F64 => self.f64.is_some(),
            Kind::C32 => self.c32.is_some(),
            Kind::C64 => self.c64.is_some(),
        }
    }
}

/// An operand of a pointwise operator.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    /// A tensor, of sizes that broadcast to the result's; converted to the common element type first.
    View(View<'a>),
    /// A tensor of truth values, of sizes that broadcast to the result's; not converted to the common element type.
    Mask(View<'a>),
    /// A number that takes part as a tensor would: rounded to the common element type first.
    Number(Scalar),
    /// A parameter, in the full precision of the compute type.
    Parameter(Scalar),
}

impl<'a> Input<'a> {
    /// The tensor, if it is one.
    fn view(&self) -> Option<&View<'a>> {
        match self {
            Input::View(v) | Input::Mask(v) => Some(v),
            Input::Number(_) | Input::Parameter(_) => None,
        }
    }
    /// The same operand where it only matters whether it is zero: it is not converted to the common element type.
    pub fn as_mask(self) -> Input<'a> {
        match self {
            Input::View(v) | Input::Mask(v) => Input::Mask(v),
            Input::Number(s) | Input::Parameter(s) => Input::Parameter(s),
        }
    }
}

/// Why a pointwise operator cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PointwiseError {
    /// It is not defined for numbers of this kind.
    Undefined(DType),
    /// The operands' values are refused.
    Value(&'static str),
}

impl std::fmt::Display for PointwiseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PointwiseError::Undefined(d) => write!(f, "not implemented for {}", d.torch_name()),
            PointwiseError::Value(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for PointwiseError {}

/// Computes `op` on operands of element type `common`, on up to `threads` threads.
///
/// # Panics
/// If an operand does not broadcast to the sizes of `out`.
pub fn compute(
    op: &Pointwise,
    common: DType,
    inputs: &[Input<'_>],
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), PointwiseError> {
    let undefined = PointwiseError::Undefined(common);
    macro_rules! go {
        ($field:ident, $t:ty) => {{
            let f = op.$field.ok_or(undefined)?;
            drive::<$t, $t>(common, inputs, out, threads, &|xs, o| {
                f(xs, o);
                Ok(())
            })
        }};
    }
    match Kind::of(common) {
        Kind::Int => {
            let f = op.int.ok_or(undefined)?;
            if let Some(done) = narrow::compute(op, common, inputs, out, threads) {
                return done;
            }
            drive::<i64, i64>(common, inputs, out, threads, &|xs, o| {
                if let Some(check) = op.check {
                    check(xs).map_err(PointwiseError::Value)?;
                }
                f(xs, o);
                Ok(())
            })
        }
        Kind::F32 => go!(f32, f32),
        Kind::F64 => go!(f64, f64),
        Kind::C32 => go!(c32, C32),
        Kind::C64 => go!(c64, C64),
    }
}

/// Answers `op` for operands of element type `common`.
///
/// # Panics
/// As [`compute`].
pub fn decide(
    op: &Predicate,
    common: DType,
    inputs: &[Input<'_>],
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), PointwiseError> {
    macro_rules! go {
        ($field:ident, $t:ty) => {{
            let f = op.$field.ok_or(PointwiseError::Undefined(common))?;
            drive::<$t, bool>(common, inputs, out, threads, &|xs, o| {
                f(xs, o);
                Ok(())
            })
        }};
    }
    match Kind::of(common) {
        Kind::Int => match narrow::decide(op, common, inputs, out, threads) {
            Some(done) => done,
            None => go!(int, i64),
        },
        Kind::F32 => go!(f32, f32),
        Kind::F64 => go!(f64, f64),
        Kind::C32 => go!(c32, C32),
        Kind::C64 => go!(c64, C64),
    }
}

/// Names the type of a number's parts.
pub trait Parts {
    /// The number's own type, or that of a complex number's parts.
    type Real;
}
macro_rules! parts_of_integers {
    ($($t:ty),*) => {$(
        impl Parts for $t {
            type Real = $t;
        }
    )*};
}
parts_of_integers!(u8, i8, i16, i32, i64);
impl<F> Parts for num_complex::Complex<F> {
    type Real = F;
}
impl Parts for f32 {
    type Real = f32;
}
impl Parts for f64 {
    type Real = f64;
}

#[cfg(test)]
mod tests;
