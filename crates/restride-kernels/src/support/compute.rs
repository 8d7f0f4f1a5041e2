//! The types that kernels compute in, and PyTorch's conversions between them on the CPU.

use restride_tensor::{C32, C64, DType, Element, Scalar};

/// The type in which elements of a [`DType`] are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `i64`, for `bool` and the integers.
    Int,
    /// `f32`, for `f16`, `bf16` and `f32`.
    F32,
    /// `f64`.
    F64,
    /// Complex of `f32`.
    C32,
    /// Complex of `f64`.
    C64,
}

impl Kind {
    /// The compute type of an element type. Every value of the element type is one of the compute type.
    pub const fn of(dtype: DType) -> Kind {
        match dtype {
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => Kind::Int,
            DType::F16 | DType::BF16 | DType::F32 => Kind::F32,
            DType::F64 => Kind::F64,
            DType::C64 => Kind::C32,
            DType::C128 => Kind::C64,
        }
    }
}

/// A type that kernels compute in.
pub trait Compute: Element + Default + PartialEq + std::fmt::Debug {
    /// Which one.
    const KIND: Kind;
    /// From an integer.
    fn from_i64(x: i64) -> Self;
    /// From an integer of 32 bits.
    fn from_i32(x: i32) -> Self {
        Self::from_i64(x as i64)
    }
    /// From a single.
    fn from_f32(x: f32) -> Self;
    /// From a double.
    fn from_f64(x: f64) -> Self;
    /// From a complex number of singles.
    fn from_c32(x: C32) -> Self;
    /// From a complex number of doubles.
    fn from_c64(x: C64) -> Self;
    /// As an integer, cut towards zero.
    fn to_i64(self) -> i64;
    /// As a 32-bit integer: what a C cast gives on x86, also out of range.
    fn to_i32(self) -> i32 {
        self.to_i64() as i32
    }
    /// The lowest byte of its integer.
    fn to_byte(self) -> u8 {
        self.to_i64() as u8
    }
    /// As a single.
    fn to_f32(self) -> f32;
    /// As a double.
    fn to_f64(self) -> f64;
    /// As a complex number of singles.
    fn to_c32(self) -> C32 {
        C32::new(self.to_f32(), 0.0)
    }
    /// As a complex number of doubles.
    fn to_c64(self) -> C64 {
        C64::new(self.to_f64(), 0.0)
    }
    /// Whether it is not zero.
    fn truth(self) -> bool;
    /// From a number.
    fn from_scalar(s: Scalar) -> Self {
        match s {
            Scalar::Bool(b) => Self::from_i64(b as i64),
            Scalar::Int(i) => Self::from_i64(i),
            Scalar::Float(x) => Self::from_f64(x),
            Scalar::Complex(z) => Self::from_c64(z),
        }
    }
}

/// A float as `i64`, as x86 converts it: out of range gives the least integer.
#[inline(always)]
fn cut_i64(x: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    if (-END..END).contains(&x) { x as i64 } else { i64::MIN }
}

/// As [`cut_i64`] to 32 bits.
#[inline(always)]
fn cut_i32(x: f64) -> i32 {
    let held = x > -2147483649.0 && x < 2147483648.0;
    let within = if held { x } else { 0.0 };
    // SAFETY: the number is within the integers' range, so a plain instruction converts it, several at a time.
    let cut = unsafe { within.to_int_unchecked::<i32>() };
    if held { cut } else { i32::MIN }
}

/// As [`cut_i32`], of a single.
#[inline(always)]
fn cut_single(x: f32) -> i32 {
    let held = (-2147483648.0..2147483648.0).contains(&x);
    let within = if held { x } else { 0.0 };
    // SAFETY: as in `cut_i32`.
    let cut = unsafe { within.to_int_unchecked::<i32>() };
    if held { cut } else { i32::MIN }
}

macro_rules! compute {
    ($t:ty, $kind:ident, $( $name:ident($x:ident : $xt:ty) => $e:expr ),* ; $( $to:ident($s:ident) -> $rt:ty => $te:expr ),*) => {
        impl Compute for $t {
            const KIND: Kind = Kind::$kind;
            $( #[inline(always)] fn $name($x: $xt) -> Self { $e } )*
            $( #[inline(always)] fn $to(self) -> $rt { let $s = self; $te } )*
        }
    };
}

compute!(i64, Int,
    from_i64(x: i64) => x, from_f32(x: f32) => cut_i64(x as f64), from_f64(x: f64) => cut_i64(x),
    from_c32(x: C32) => cut_i64(x.re as f64), from_c64(x: C64) => cut_i64(x.re);
    to_i64(s) -> i64 => s, to_f32(s) -> f32 => s as f32, to_f64(s) -> f64 => s as f64, truth(s) -> bool => s != 0);
compute!(f32, F32,
    from_i64(x: i64) => x as f32, from_i32(x: i32) => x as f32, from_f32(x: f32) => x,
    from_f64(x: f64) => x as f32,
    from_c32(x: C32) => x.re, from_c64(x: C64) => x.re as f32;
    to_i64(s) -> i64 => cut_i64(s as f64), to_i32(s) -> i32 => cut_single(s), to_f32(s) -> f32 => s,
    // From 2^31 on the lowest byte is 0.
    to_byte(s) -> u8 => cut_single(s) as u8, to_f64(s) -> f64 => s as f64, truth(s) -> bool => s != 0.0);
compute!(f64, F64,
    from_i64(x: i64) => x as f64, from_i32(x: i32) => x as f64, from_f32(x: f32) => x as f64,
    from_f64(x: f64) => x,
    from_c32(x: C32) => x.re as f64, from_c64(x: C64) => x.re;
    to_i64(s) -> i64 => cut_i64(s), to_i32(s) -> i32 => cut_i32(s), to_f32(s) -> f32 => s as f32,
    to_f64(s) -> f64 => s, truth(s) -> bool => s != 0.0);
compute!(C32, C32,
    from_i64(x: i64) => C32::new(x as f32, 0.0), from_f32(x: f32) => C32::new(x, 0.0),
    from_f64(x: f64) => C32::new(x as f32, 0.0), from_c32(x: C32) => x,
    from_c64(x: C64) => C32::new(x.re as f32, x.im as f32);
    to_i64(s) -> i64 => cut_i64(s.re as f64), to_i32(s) -> i32 => cut_i32(s.re as f64), to_f32(s) -> f32 => s.re,
    to_f64(s) -> f64 => s.re as f64, to_c32(s) -> C32 => s, to_c64(s) -> C64 => C64::new(s.re as f64, s.im as f64),
    truth(s) -> bool => s.re != 0.0 || s.im != 0.0);
compute!(C64, C64,
    from_i64(x: i64) => C64::new(x as f64, 0.0), from_f32(x: f32) => C64::new(x as f64, 0.0),
    from_f64(x: f64) => C64::new(x, 0.0), from_c32(x: C32) => C64::new(x.re as f64, x.im as f64), from_c64(x: C64) => x;
    to_i64(s) -> i64 => cut_i64(s.re), to_i32(s) -> i32 => cut_i32(s.re), to_f32(s) -> f32 => s.re as f32,
    to_f64(s) -> f64 => s.re, to_c32(s) -> C32 => C32::new(s.re as f32, s.im as f32), to_c64(s) -> C64 => s,
    truth(s) -> bool => s.re != 0.0 || s.im != 0.0);
