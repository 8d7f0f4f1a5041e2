//! Arithmetic of the compute types.

use crate::support::convert::Compute;
use num_traits::{Float, NumAssign};
use restride_tensor::{C32, C64};
use std::cmp::Ordering;

/// A compute type with arithmetic. Integers wrap.
pub trait Number: Compute {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Type of running sums: double precision for floats.
    type Wide: Number;
    /// Sum.
    fn plus(self, other: Self) -> Self;
    /// Product.
    fn times(self, other: Self) -> Self;
    /// Quotient by a count. Integers round down.
    fn part(self, n: i64) -> Self;
    /// Whether a part of it is NaN.
    fn has_nan(self) -> bool;
    /// As a running sum.
    fn widen(self) -> Self::Wide;
    /// From a running sum.
    fn narrow(x: Self::Wide) -> Self;
    /// The larger, NaN if `self` is; complex numbers have no order and give `self`.
    fn larger(self, other: Self) -> Self;
    /// The smaller, NaN if `self` is; complex numbers have no order and give `self`.
    fn smaller(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($t:ty, $wide:ty, $zero:expr, $one:expr, |$x:ident, $y:ident| $plus:expr, $times:expr, |$n:ident| $part:expr, $nan:expr,
       $widen:expr, |$w:ident| $narrow:expr, $larger:expr, $smaller:expr;)*) => {$(
        impl Number for $t {
            const ZERO: $t = $zero;
            const ONE: $t = $one;
            type Wide = $wide;
            #[inline(always)]
            fn plus(self, $y: $t) -> $t { let $x = self; $plus }
            #[inline(always)]
            fn times(self, $y: $t) -> $t { let $x = self; $times }
            #[inline(always)]
            fn part(self, $n: i64) -> $t { let $x = self; $part }
            #[inline(always)]
            fn has_nan(self) -> bool { let $x = self; let _ = $x; $nan }
            #[inline(always)]
            fn widen(self) -> $wide { let $x = self; $widen }
            #[inline(always)]
            fn narrow($w: $wide) -> $t { $narrow }
            #[inline(always)]
            fn larger(self, $y: $t) -> $t { let $x = self; let _ = $y; $larger }
            #[inline(always)]
            fn smaller(self, $y: $t) -> $t { let $x = self; let _ = $y; $smaller }
        }
    )*};
}
numbers! {
    i64, i64, 0, 1, |x, y| x.wrapping_add(y), x.wrapping_mul(y), |n| x.div_euclid(n), false,
        x, |w| w, x.max(y), x.min(y);
    f32, f64, 0.0, 1.0, |x, y| x + y, x * y, |n| x / n as f32, x.is_nan(), x as f64, |w| w as f32,
        if x.is_nan() || x > y { x } else { y }, if x.is_nan() || x < y { x } else { y };
    f64, f64, 0.0, 1.0, |x, y| x + y, x * y, |n| x / n as f64, x.is_nan(), x, |w| w,
        if x.is_nan() || x > y { x } else { y }, if x.is_nan() || x < y { x } else { y };
    C32, C64, C32::new(0.0, 0.0), C32::new(1.0, 0.0), |x, y| x + y, x * y, |n| x / C32::from_i64(n),
        x.re.is_nan() || x.im.is_nan(), x.to_c64(), |w| w.to_c32(), x, x;
    C64, C64, C64::new(0.0, 0.0), C64::new(1.0, 0.0), |x, y| x + y, x * y, |n| x / C64::from_i64(n),
        x.re.is_nan() || x.im.is_nan(), x, |w| w, x, x;
}

/// A number with an order.
pub trait Ordered: Number + PartialOrd {
    /// The least: minus infinity for floats.
    const LEAST: Self;

    /// Total order with NaN last; zeros are equal.
    fn order(self, other: Self) -> Ordering {
        self.partial_cmp(&other).unwrap_or_else(|| self.has_nan().cmp(&other.has_nan()))
    }

    /// Whether `self` replaces the maximum so far. NaN does, and only NaN replaces NaN.
    #[inline(always)]
    fn beats(self, best: Self) -> bool {
        self > best || self.has_nan()
    }
}
impl Ordered for i64 {
    const LEAST: i64 = i64::MIN;
}
impl Ordered for f32 {
    const LEAST: f32 = f32::NEG_INFINITY;
}
impl Ordered for f64 {
    const LEAST: f64 = f64::NEG_INFINITY;
}

/// A float or complex number.
pub trait Inexact: Number {
    /// Type of the absolute value.
    type Abs: Real;
    /// Quotient by a count, part by part.
    fn over(self, n: usize) -> Self;
    /// Absolute value.
    fn magnitude(self) -> Self::Abs;
    /// Real and imaginary part.
    fn parts(self) -> (f64, f64);
}

macro_rules! inexact {
    ($($t:ty, $abs:ty, |$x:ident, $n:ident| $over:expr, $magnitude:expr, $parts:expr;)*) => {$(
        impl Inexact for $t {
            type Abs = $abs;
            #[inline(always)]
            fn over(self, n: usize) -> $t { let ($x, $n) = (self, n as $abs); $over }
            #[inline(always)]
            fn magnitude(self) -> $abs { let $x = self; $magnitude }
            #[inline(always)]
            fn parts(self) -> (f64, f64) { let $x = self; $parts }
        }
    )*};
}
inexact! {
    f32, f32, |x, n| x / n, x.abs(), (x as f64, 0.0);
    f64, f64, |x, n| x / n, x.abs(), (x, 0.0);
    C32, f32, |x, n| C32::new(x.re / n, x.im / n), x.re.hypot(x.im), (x.re as f64, x.im as f64);
    C64, f64, |x, n| C64::new(x.re / n, x.im / n), x.re.hypot(x.im), (x.re, x.im);
}

/// `f32` and `f64`.
pub trait Real: Float + NumAssign + Ordered + Inexact<Abs = Self> {
    /// Rounded from `f64`.
    fn of(x: f64) -> Self;
    /// As `f64`.
    fn wide(self) -> f64 {
        Compute::to_f64(self)
    }
    /// `e` to this power, to the last bit or two.
    fn exp_fast(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// Complementary error function.
    fn erfc(self) -> Self;
    /// Logarithm of the absolute value of the gamma function.
    fn lgamma(self) -> Self;
    /// Nearest integer, halves to even.
    fn rint(self) -> Self;
    /// The next number from this towards another.
    fn next_after(self, to: Self) -> Self;
    /// `1 / (1 + exp(-x))`.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::one() / (Self::one() + (-self).exp())
    }
    /// Distribution function of the normal distribution.
    #[inline(always)]
    fn normal_cdf(self) -> Self {
        Self::of(0.5) * (Self::one() + (self * Self::of(std::f64::consts::FRAC_1_SQRT_2)).erf())
    }
}

macro_rules! real {
    ($t:ty, $exp:path, $erf:path, $erfc:path, $lgamma:path, $next:path) => {
        impl Real for $t {
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn exp_fast(self) -> Self {
                $exp(self)
            }
            fn erf(self) -> Self {
                $erf(self)
            }
            fn erfc(self) -> Self {
                $erfc(self)
            }
            fn lgamma(self) -> Self {
                $lgamma(self)
            }
            #[inline(always)]
            fn rint(self) -> Self {
                self.round_ties_even()
            }
            fn next_after(self, to: Self) -> Self {
                $next(self, to)
            }
        }
    };
}
real!(f32, exp_single, libm::erff, libm::erfcf, libm::lgammaf, libm::nextafterf);
real!(f64, f64::exp, libm::erf, libm::erfc, libm::lgamma, libm::nextafter);

/// Without branches or calls: loops over it become vector code, and every machine gives the same bits.
#[inline(always)]
fn exp_single(x: f32) -> f32 {
    // Below, the result rounds to 0; above, to infinity. NaN stays.
    let x = x.clamp(-105.0, 89.0);
    const MAGIC: f32 = 12_582_912.0;
    let n = (x * std::f32::consts::LOG2_E + MAGIC) - MAGIC;
    // ln 2 in two parts: n times the first is exact.
    let r = (x - n * 0.693_359_4) - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 5e-1;
    let y = p * r * r + r + 1.0;
    // 2^n in two factors, for the smallest and the largest results.
    let n = n as i32;
    let half = n >> 1;
    let pow2 = |e: i32| f32::from_bits(((e + 127) << 23) as u32);
    y * pow2(half) * pow2(n - half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_close_to_the_last_bit() {
        let mut x = -103.9f32;
        while x < 88.7 {
            let (got, want) = (x.exp_fast() as f64, (x as f64).exp());
            assert!((got - want).abs() <= want * 2.0 * f32::EPSILON as f64 + 1.5e-45, "exp({x}) = {got} for {want}");
            x += 0.0137;
        }
        assert_eq!(f32::NEG_INFINITY.exp_fast(), 0.0);
        assert_eq!(0f32.exp_fast(), 1.0);
        assert_eq!(f32::INFINITY.exp_fast(), f32::INFINITY);
        assert!(f32::NAN.exp_fast().is_nan());
    }
}
