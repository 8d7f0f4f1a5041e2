//! PyTorch's type promotion: operands with dimensions decide before 0-d tensors, these before plain numbers.

use restride_ir::{Args, Meta, OpError, Scalar};
use restride_tensor::DType;

/// An operand that PyTorch's schemas call a tensor or a number: exported programs also put plain numbers where the
/// schema says `Tensor`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Meta),
    /// A plain number (PyTorch's "wrapped number").
    Number(Scalar),
}

impl<'a> Operand<'a> {
    /// The argument at a position.
    pub(crate) fn read(args: &Args<'a, Meta>, i: usize) -> Result<Self, OpError> {
        match args.tensor(i) {
            Ok(t) => Ok(Operand::Tensor(t)),
            Err(e) => args.scalar(i).map(Operand::Number).map_err(|_| e),
        }
    }
    /// Its own element type (that of a 0-d tensor made of it, for a number).
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Operand::Tensor(t) => t.dtype,
            Operand::Number(s) => s.dtype(),
        }
    }
    /// The tensor, if it is one.
    pub(crate) fn tensor(&self) -> Option<&'a Meta> {
        match self {
            Operand::Tensor(t) => Some(t),
            Operand::Number(_) => None,
        }
    }
}

/// `torch.result_type` of any number of operands.
pub(crate) fn result_type(operands: &[Operand<'_>]) -> DType {
    let (mut dims, mut zero, mut number) = (None, None, None);
    for op in operands {
        let place = match op {
            Operand::Tensor(t) if t.rank() > 0 => &mut dims,
            Operand::Tensor(_) => &mut zero,
            Operand::Number(_) => &mut number,
        };
        *place = promote(*place, Some(op.dtype()));
    }
    combine(dims, combine(zero, number)).unwrap_or(DType::F32)
}

fn promote(a: Option<DType>, b: Option<DType>) -> Option<DType> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.promote(b)),
        (a, b) => a.or(b),
    }
}

/// The type of a higher category with that of a lower one: the lower decides only on a higher kind of number.
fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    match (higher, lower) {
        (Some(h), _) if h.is_complex() => Some(h),
        (Some(h), Some(l)) if h.is_float() => Some(if l.is_complex() { h.complex() } else { h }),
        (Some(h), Some(l)) if h == DType::Bool || l.is_float() || l.is_complex() => Some(h.promote(l)),
        (h, l) => h.or(l),
    }
}

/// The type in which functions of real numbers (`sin`, `div`) compute: integers become the default float type.
pub(crate) fn to_float(dtype: DType) -> DType {
    if dtype.is_float() || dtype.is_complex() { dtype } else { DType::F32 }
}

/// What PyTorch says where an in-place or `out=` result cannot be stored.
pub(crate) fn check_cast(from: DType, to: DType) -> Result<(), OpError> {
    if from.can_cast(to) {
        return Ok(());
    }
    Err(OpError::new(format!("result type {} can't be cast to the desired output type {}", name(from), name(to))))
}

/// PyTorch's name of an element type in its messages.
pub(crate) fn name(d: DType) -> &'static str {
    match d {
        DType::Bool => "Bool",
        DType::U8 => "Byte",
        DType::I8 => "Char",
        DType::I16 => "Short",
        DType::I32 => "Int",
        DType::I64 => "Long",
        DType::F16 => "Half",
        DType::BF16 => "BFloat16",
        DType::F32 => "Float",
        DType::F64 => "Double",
        DType::C64 => "ComplexFloat",
        DType::C128 => "ComplexDouble",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dtype: DType, rank: usize) -> Meta {
        Meta::contiguous(dtype, &[2i64, 2, 2][..rank])
    }

    #[test]
    fn categories_decide() {
        let (i2, f0, d0) = (of(DType::I64, 2), of(DType::F16, 0), of(DType::F64, 0));
        let (h1, u1, b1) = (of(DType::F16, 1), of(DType::U8, 1), of(DType::Bool, 1));
        let t = Operand::Tensor;
        assert_eq!(result_type(&[t(&i2), t(&f0)]), DType::F16);
        assert_eq!(result_type(&[t(&h1), t(&d0)]), DType::F16);
        assert_eq!(result_type(&[t(&u1), Operand::Number(Scalar::Int(300))]), DType::U8);
        assert_eq!(result_type(&[t(&u1), Operand::Number(Scalar::Float(0.5))]), DType::F32);
        assert_eq!(result_type(&[t(&b1), Operand::Number(Scalar::Int(1))]), DType::I64);
        assert_eq!(result_type(&[t(&d0), Operand::Number(Scalar::Float(0.5))]), DType::F64);
        let z = Scalar::Complex(restride_tensor::C64::new(0.0, 1.0));
        assert_eq!(result_type(&[t(&d0), Operand::Number(z)]), DType::C128);
        assert_eq!(result_type(&[t(&h1), Operand::Number(z)]), DType::C64);
    }
}
