//! Choosing between operands.

use num_complex::Complex;
use restride_tensor::{C32, C64};

/// A choice by bits. Of `if`, compilers make a choice between two addresses, and read one number at a time.
trait Choose {
    /// `a` where `c` holds, else `b`.
    fn choose(c: bool, a: Self, b: Self) -> Self;
}

impl Choose for i64 {
    #[inline(always)]
    fn choose(c: bool, a: i64, b: i64) -> i64 {
        let mask = -i64::from(c);
        a & mask | b & !mask
    }
}
impl Choose for f32 {
    #[inline(always)]
    fn choose(c: bool, a: f32, b: f32) -> f32 {
        let mask = u32::from(c).wrapping_neg();
        f32::from_bits(a.to_bits() & mask | b.to_bits() & !mask)
    }
}
impl Choose for f64 {
    #[inline(always)]
    fn choose(c: bool, a: f64, b: f64) -> f64 {
        let mask = u64::from(c).wrapping_neg();
        f64::from_bits(a.to_bits() & mask | b.to_bits() & !mask)
    }
}
impl<F: Choose> Choose for Complex<F> {
    #[inline(always)]
    fn choose(c: bool, a: Self, b: Self) -> Self {
        Complex::new(F::choose(c, a.re, b.re), F::choose(c, a.im, b.im))
    }
}

pointwise! {
    WHERE(c, a, b) "`a` where `c` is not zero, else `b`" {
        integer: T::choose(c != 0, a, b), elementary: T::choose(c != 0.0, a, b),
        formula: c.holds().choose(a, b), complex: T::choose(c.re != 0.0, a, b),
    }
    MASKED_FILL(a, c, b) "`b` where `c` is not zero, else `a`" {
        integer: T::choose(c != 0, b, a), elementary: T::choose(c != 0.0, b, a),
        formula: c.holds().choose(b, a), complex: T::choose(c.re != 0.0, b, a),
    }
}
