//! PyTorch's type promotion: operands with dimensions take precedence over 0-d tensors, and these over plain numbers.

use restride_ir::{Args, Layout, Meta, OpError, Scalar};
use restride_tensor::{DType, View};

/// A tensor's element type and layout: of a type in shape rules, of a view in kernels.
pub(crate) trait AsTensor {
    /// Element type.
    fn dtype(&self) -> DType;
    /// Sizes, strides and offset.
    fn layout(&self) -> &Layout;
}
impl AsTensor for Meta {
    fn dtype(&self) -> DType {
        self.dtype
    }
    fn layout(&self) -> &Layout {
        &self.layout
    }
}
impl AsTensor for View<'_> {
    fn dtype(&self) -> DType {
        View::dtype(self)
    }
    fn layout(&self) -> &Layout {
        View::layout(self)
    }
}

/// A tensor or a number; exported programs also pass plain numbers where the schema says `Tensor`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand<'a> {
    /// A tensor.
    Tensor(DType, &'a Layout),
    /// A plain number (PyTorch's "wrapped number").
    Number(Scalar),
}

impl<'a> Operand<'a> {
    /// A tensor.
    pub(crate) fn of<T: AsTensor>(t: &'a T) -> Self {
        Operand::Tensor(t.dtype(), t.layout())
    }
    /// Reads the argument at a position.
    #[inline]
    pub(crate) fn read<T: AsTensor>(args: &Args<'a, T>, i: usize) -> Result<Self, OpError> {
        match args.as_tensor(i) {
            Some(t) => Ok(Operand::of(t)),
            None => args.scalar(i).map(Operand::Number).or_else(|_| args.tensor(i).map(Operand::of)),
        }
    }
    /// Element type; for a number, that of a 0-d tensor made of it.
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Operand::Tensor(d, _) => *d,
            Operand::Number(s) => s.dtype(),
        }
    }
}

/// `torch.result_type` of any number of operands.
///
/// # Errors
/// A half type meets a complex number of lower category: PyTorch then promotes to complex halves.
pub(crate) fn result_type(operands: &[Operand<'_>]) -> Result<DType, OpError> {
    let (mut dims, mut zero, mut number) = (None, None, None);
    for op in operands {
        let place = match op {
            Operand::Tensor(_, l) if l.rank() > 0 => &mut dims,
            Operand::Tensor(..) => &mut zero,
            Operand::Number(_) => &mut number,
        };
        *place = promote(*place, Some(op.dtype()));
    }
    let lower = combine(zero, number);
    // Operands that decide the width of a complex number's parts.
    let (wide, complex) = match dims {
        Some(d) if d.is_float() => (dims, lower),
        Some(d) if d.is_complex() => (None, None),
        _ => (zero, number),
    };
    if let (Some(h @ (DType::F16 | DType::BF16)), Some(z)) = (wide, complex)
        && z.is_complex()
    {
        let what = format!("{} with a complex number, which gives complex numbers of halves in PyTorch", name(h));
        return Err(OpError::unsupported(what));
    }
    Ok(combine(dims, lower).unwrap_or(DType::F32))
}

fn promote(a: Option<DType>, b: Option<DType>) -> Option<DType> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.promote(b)),
        (a, b) => a.or(b),
    }
}

/// Combines the types of two categories: the lower one decides only if it has a higher kind of number.
fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    match (higher, lower) {
        (Some(h), _) if h.is_complex() => Some(h),
        (Some(h), Some(l)) if h.is_float() => Some(if l.is_complex() { h.complex() } else { h }),
        (Some(h), Some(l)) if h == DType::Bool || l.is_float() || l.is_complex() => Some(h.promote(l)),
        (h, l) => h.or(l),
    }
}

/// The compute type of real functions (`sin`, `div`): integers become the default float type.
pub(crate) fn to_float(dtype: DType) -> DType {
    if dtype.is_float() || dtype.is_complex() { dtype } else { DType::F32 }
}

/// Refuses a number that an element type cannot hold, as PyTorch does when it converts a plain number (`fill`, bounds,
/// thresholds). Fractions truncate, and negative numbers wrap in unsigned types.
pub(crate) fn check_holds(dtype: DType, s: Scalar) -> Result<(), OpError> {
    let x = s.as_f64();
    let fits = match dtype {
        _ if matches!(s, Scalar::Bool(_)) => true,
        DType::Bool | DType::C128 => true,
        DType::U8 => (-255.0..=255.0).contains(&x),
        DType::I8 => (-128.0..=127.0).contains(&x),
        DType::I16 => (-32768.0..=32767.0).contains(&x),
        DType::I32 => (-2147483648.0..=2147483647.0).contains(&x),
        DType::I64 => matches!(s, Scalar::Int(_)) || (-9.3e18..9.223372036854775e18).contains(&x),
        DType::F64 => true,
        _ if !x.is_finite() => true,
        DType::F16 => x.abs() <= 65504.0,
        DType::BF16 => x.abs() <= 3.3895313892515355e38,
        DType::F32 | DType::C64 => x.abs() <= f32::MAX as f64,
    };
    let real = dtype.is_complex() || !matches!(s, Scalar::Complex(z) if z.im != 0.0);
    if fits && real {
        return Ok(());
    }
    let c = match dtype {
        DType::Bool => "bool",
        DType::U8 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int",
        DType::I64 => "int64_t",
        DType::F16 => "at::Half",
        DType::BF16 => "at::BFloat16",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C64 => "c10::complex<float>",
        DType::C128 => "c10::complex<double>",
    };
    Err(OpError::new(format!("value cannot be converted to type {c} without overflow")))
}

/// PyTorch's name for an element type in messages.
pub(crate) fn name(d: DType) -> &'static str {
    d.scalar_type()
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
        let t = Operand::of::<Meta>;
        assert_eq!(result_type(&[t(&i2), t(&f0)]).unwrap(), DType::F16);
        assert_eq!(result_type(&[t(&h1), t(&d0)]).unwrap(), DType::F16);
        assert_eq!(result_type(&[t(&u1), Operand::Number(Scalar::Int(300))]).unwrap(), DType::U8);
        assert_eq!(result_type(&[t(&u1), Operand::Number(Scalar::Float(0.5))]).unwrap(), DType::F32);
        assert_eq!(result_type(&[t(&b1), Operand::Number(Scalar::Int(1))]).unwrap(), DType::I64);
        assert_eq!(result_type(&[t(&d0), Operand::Number(Scalar::Float(0.5))]).unwrap(), DType::F64);
        let z = Scalar::Complex(restride_tensor::C64::new(0.0, 1.0));
        assert_eq!(result_type(&[t(&d0), Operand::Number(z)]).unwrap(), DType::C128);
        assert!(result_type(&[t(&h1), Operand::Number(z)]).is_err());
    }
}
