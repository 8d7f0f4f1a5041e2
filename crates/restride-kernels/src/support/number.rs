//! Arithmetic of the compute types.

use crate::support::convert::Compute;
use crate::support::math;
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
    /// The most: infinity for floats.
    const MOST: Self;

    /// Total order with NaN last; zeros are equal.
    fn order(self, other: Self) -> Ordering {
        self.partial_cmp(&other).unwrap_or_else(|| self.has_nan().cmp(&other.has_nan()))
    }

    /// An integer in the order of the numbers, -0 before 0 and NaN last.
    fn total_key(self) -> i64;

    /// An integer in the [`order`](Ordered::order) of the numbers: one sort of keys does for all types.
    #[inline(always)]
    fn key(self) -> i64 {
        // The sum makes a zero of -0.
        self.plus(Self::ZERO).total_key()
    }

    /// Whether `self` replaces the maximum so far. NaN does, and only NaN replaces NaN.
    #[inline(always)]
    fn beats(self, best: Self) -> bool {
        (self > best) | self.has_nan()
    }
}
impl Ordered for i64 {
    const LEAST: i64 = i64::MIN;
    const MOST: i64 = i64::MAX;
    #[inline(always)]
    fn total_key(self) -> i64 {
        self
    }
}
impl Ordered for f32 {
    const LEAST: f32 = f32::NEG_INFINITY;
    const MOST: f32 = f32::INFINITY;
    #[inline(always)]
    fn total_key(self) -> i64 {
        // Bits of negative numbers fall as the numbers rise.
        let bits = self.to_bits() as i32;
        (if self.is_nan() { i32::MAX } else { bits ^ (bits >> 31 & i32::MAX) }) as i64
    }
}
impl Ordered for f64 {
    const LEAST: f64 = f64::NEG_INFINITY;
    const MOST: f64 = f64::INFINITY;
    #[inline(always)]
    fn total_key(self) -> i64 {
        let bits = self.to_bits() as i64;
        if self.is_nan() { i64::MAX } else { bits ^ (bits >> 63 & i64::MAX) }
    }
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

/// `f32` and `f64`. Functions of `f32` whose names end in `fast` have no branches or calls (`math.rs`); those of `f64` are the
/// library's but for the exponential function, the logarithm, the sigmoid and the hyperbolic tangent.
pub trait Real: Float + NumAssign + Ordered + Inexact<Abs = Self> {
    /// Rounded from `f64`.
    fn of(x: f64) -> Self;
    /// As `f64`.
    fn wide(self) -> f64 {
        Compute::to_f64(self)
    }
    /// `e` to this power.
    fn exp_fast(self) -> Self;
    /// `e` to this power, which is not above 0; singles below 2^-126 are 0.
    fn exp_down(self) -> Self;
    /// 2 to this power.
    fn exp2_fast(self) -> Self;
    /// `e` to this power, less 1.
    fn exp_m1_fast(self) -> Self;
    /// Natural logarithm.
    fn ln_fast(self) -> Self;
    /// Natural logarithm of 1 more.
    fn ln_1p_fast(self) -> Self;
    /// Logarithm of base 2.
    fn log2_fast(self) -> Self;
    /// Logarithm of base 10.
    fn log10_fast(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh_fast(self) -> Self;
    /// To a power.
    fn pow_fast(self, power: Self) -> Self;
    /// Angle of the point (`x`, `self`).
    fn atan2_fast(self, x: Self) -> Self;
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
    fn sigmoid(self) -> Self;
    /// `x / (1 + exp(-x))`.
    fn silu(self) -> Self;
    /// Distribution function of the normal distribution.
    fn normal_cdf(self) -> Self;
    /// The same, as `gelu` needs it: singles below -5.5 give 0.
    fn gelu_factor(self) -> Self;
    /// `tanh(ln(1 + exp(x)))`.
    fn tanh_softplus(self) -> Self;
}

macro_rules! real {
    ($t:ty, $lgamma:path, $next:path; $($name:ident($x:ident $(, $y:ident)?) $e:expr;)*) => {
        impl Real for $t {
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $t
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
            $(
                #[inline(always)]
                fn $name(self $(, $y: Self)?) -> Self {
                    let $x = self;
                    $e
                }
            )*
        }
    };
}
real! { f32, libm::lgammaf, libm::nextafterf;
    exp_fast(x) math::exp(x);
    exp_down(x) math::exp_down(x);
    exp2_fast(x) math::exp2(x);
    exp_m1_fast(x) math::exp_m1(x);
    ln_fast(x) math::ln(x);
    ln_1p_fast(x) math::ln_1p(x);
    log2_fast(x) math::log2(x);
    log10_fast(x) math::log10(x);
    tanh_fast(x) math::tanh(x);
    pow_fast(x, y) math::pow(x, y);
    atan2_fast(y, x) math::atan2(y, x);
    erf(x) math::erf(x);
    erfc(x) math::erfc(x);
    sigmoid(x) math::sigmoid(x);
    silu(x) math::silu(x);
    normal_cdf(x) math::normal_cdf(x);
    gelu_factor(x) math::gelu_factor(x);
    tanh_softplus(x) math::tanh_softplus(x);
}
real! { f64, libm::lgamma, libm::nextafter;
    exp_fast(x) math::exp_double(x);
    exp_down(x) math::exp_double(x);
    exp2_fast(x) x.exp2();
    exp_m1_fast(x) x.exp_m1();
    ln_fast(x) math::ln_double(x);
    ln_1p_fast(x) math::ln_1p_double(x);
    log2_fast(x) x.log2();
    log10_fast(x) x.log10();
    tanh_fast(x) math::tanh_double(x);
    pow_fast(x, y) x.powf(y);
    atan2_fast(y, x) y.atan2(x);
    erf(x) math::erf_double(x);
    erfc(x) libm::erfc(x);
    sigmoid(x) math::sigmoid_double(x);
    silu(x) x / (1.0 + (-x).exp_fast());
    gelu_factor(x) x.normal_cdf();
    normal_cdf(x) 0.5 * (1.0 + math::erf_double(x * std::f64::consts::FRAC_1_SQRT_2));
    tanh_softplus(x) x.exp().ln_1p().tanh();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold<T: Ordered>(numbers: &[T]) {
        for (i, &a) in numbers.iter().enumerate() {
            for (j, &b) in numbers.iter().enumerate() {
                assert_eq!(a.key().cmp(&b.key()), a.order(b), "{a:?} and {b:?}");
                assert_eq!(a.total_key().cmp(&b.total_key()), i.cmp(&j), "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn keys_have_the_order_of_numbers() {
        let some = [0.0, f32::from_bits(1), f32::MIN_POSITIVE, 1.5, f32::MAX, f32::INFINITY];
        hold(&some.iter().rev().map(|x| -x).chain(some).chain([f32::NAN]).collect::<Vec<f32>>());
        let some = [0.0, f64::from_bits(1), f64::MIN_POSITIVE, 1.5, f64::MAX, f64::INFINITY];
        hold(&some.iter().rev().map(|x| -x).chain(some).chain([f64::NAN]).collect::<Vec<f64>>());
        hold(&[i64::MIN, -1, 0, 1, i64::MAX]);
        assert_eq!((-f32::NAN).key(), f32::NAN.key());
    }
}
