//! Functions of one number.

use super::RowFn;
use super::complex_math::{self as m, ComplexMath};
use super::real::{erfinv, polygamma};
use crate::support::convert::Compute;
use crate::support::math;
use crate::support::number::Real;
use num_traits::FloatConst;
use restride_tensor::{C32, C64};
use spec_math::cephes64::psi;

fn sinc<T: Real + FloatConst>(x: T) -> T {
    let y = T::PI() * x;
    if y == T::zero() { T::one() } else { y.sin() / y }
}

/// Rounds after a shift of the decimal point.
fn round_decimals<T: Real>(x: T, decimals: T) -> T {
    let scale = T::of(10f64.powi(Compute::to_f64(decimals.abs()) as i32));
    if decimals < T::zero() { (x / scale).rint() * scale } else { (x * scale).rint() / scale }
}

/// A row of sines or cosines. Angles that the vector code does not take, beyond `largest`, are the library's.
#[inline(always)]
fn turned<T: Real>(xs: &[&[T]], out: &mut [T], largest: T, quick: impl Fn(T) -> T, exact: impl Fn(T) -> T) {
    let is_large = |x: T| x.is_nan() || x.abs() > largest;
    let mut large = false;
    for (&x, o) in xs[0][..out.len()].iter().zip(&mut *out) {
        *o = quick(x);
        large |= is_large(x);
    }
    if large {
        for (&x, o) in xs[0].iter().zip(out) {
            if is_large(x) {
                *o = exact(x);
            }
        }
    }
}

/// Sines or cosines, by the library's function of doubles beyond the angles of the vector code.
macro_rules! turns {
    ($t:ty, $largest:ident, $quick:ident, $exact:path) => {
        row_function!(run, true, $t, $t, |xs, out| {
            turned(xs, out, math::$largest, math::$quick, |x| $exact(f64::from(x)) as $t)
        })
    };
}

/// A row of logarithms. A part whose numbers are all positive, normal and finite needs no cases.
#[inline(always)]
fn logarithms(xs: &[&[f32]], out: &mut [f32], usual: impl Fn(f32) -> f32, any: impl Fn(f32) -> f32) {
    const SOME: usize = 1024;
    for (xs, out) in xs[0].chunks(SOME).zip(out.chunks_mut(SOME)) {
        let mut most = 0;
        for (&x, o) in xs.iter().zip(&mut *out) {
            *o = usual(x);
            most = most.max(math::unusual(x));
        }
        if most >= math::UNUSUAL {
            for (&x, o) in xs.iter().zip(out) {
                *o = any(x);
            }
        }
    }
}

const LOGS: RowFn<f32> = row_function!(run, true, f32, f32, |xs, out| logarithms(xs, out, math::ln_usual, math::ln));
const LOG2S: RowFn<f32> =
    row_function!(run, true, f32, f32, |xs, out| logarithms(xs, out, math::log2_usual, math::log2));
const LOG10S: RowFn<f32> =
    row_function!(run, true, f32, f32, |xs, out| logarithms(xs, out, math::log10_usual, math::log10));
const SINES: RowFn<f32> = turns!(f32, LARGEST_ANGLE, sin, f64::sin);
const COSINES: RowFn<f32> = turns!(f32, LARGEST_ANGLE, cos, f64::cos);
const TANGENTS: RowFn<f32> = turns!(f32, LARGEST_ANGLE, tan, f64::tan);
const WIDE_SINES: RowFn<f64> = turns!(f64, LARGEST_DOUBLE_ANGLE, sin_double, f64::sin);
const WIDE_COSINES: RowFn<f64> = turns!(f64, LARGEST_DOUBLE_ANGLE, cos_double, f64::cos);

pointwise! {
    NEG(a) "`-a`" { int: a.wrapping_neg(), basic: -a, complex: -a }
    ABS(a) "absolute value" { int: a.wrapping_abs(), basic: a.abs() }
    SIGN(a) "-1, 0 or 1; 0 for NaN" {
        int: a.signum(), real: ((a > 0.0) as i8 - (a < 0.0) as i8) as T,
        formula: a.number(0.0).below(a).as_number() - a.below(a.number(0.0)).as_number(),
    }
    SGN(a) "direction of a complex number" {
        int: a.signum(), real: ((a > 0.0) as i8 - (a < 0.0) as i8) as T,
        complex: { let n = a.norm(); if n == 0.0 { a } else { a / n } },
    }
    NOT(a) "bitwise not" { wrapping: !a }
    NOT_BOOL(a) "not" { whole: T::from(a == 0) }
    IDENTITY(a) "the number itself" { int: a, basic: a, complex: a }
    EXP(a) "exponential function" { exponential: a.exp_fast(), complex: a.by(m::exp) }
    EXP2(a) "`2^a`" { elementary: a.exp2_fast(), complex: (a * std::f64::consts::LN_2 as F).by(m::exp) }
    EXPM1(a) "`exp(a) - 1`" { elementary: a.exp_m1_fast(), complex: a.by(m::exp_m1) }
    LOG(a) "natural logarithm" { exponential: a.ln_fast(), single_rows: LOGS, complex: a.by(m::ln) }
    LOG2(a) "logarithm of base 2" {
        elementary: a.log2_fast(), single_rows: LOG2S, complex: a.by(m::ln) / (std::f64::consts::LN_2 as F),
    }
    LOG10(a) "logarithm of base 10" {
        elementary: a.log10_fast(), single_rows: LOG10S, complex: a.by(m::ln) / (std::f64::consts::LN_10 as F),
    }
    LOG1P(a) "`log(1 + a)`" { exponential: a.ln_1p_fast(), complex: a.by(m::ln_1p) }
    SQRT(a) "square root" { basic: a.sqrt(), complex: a.by(m::sqrt) }
    RSQRT(a) "`1 / sqrt(a)`" { basic: 1.0 / a.sqrt(), complex: a.by(m::rsqrt) }
    RECIPROCAL(a) "`1 / a`" { basic: 1.0 / a, complex: a.by(m::recip) }
    SIN(a) "sine" { single_rows: SINES, double_rows: WIDE_SINES, complex: a.by(m::sin) }
    COS(a) "cosine" { single_rows: COSINES, double_rows: WIDE_COSINES, complex: a.by(m::cos) }
    TAN(a) "tangent" { single_rows: TANGENTS, double: a.tan(), complex: a.by(m::tan) }
    ASIN(a) "inverse of the sine" { single: math::asin(a), double: a.asin(), complex: a.by(m::asin) }
    ACOS(a) "inverse of the cosine" { single: math::acos(a), double: a.acos(), complex: a.by(m::acos) }
    ATAN(a) "inverse of the tangent" { single: math::atan(a), double: a.atan(), complex: a.by(m::atan) }
    SINH(a) "hyperbolic sine" { single: math::sinh(a), double: a.sinh(), complex: a.by(m::sinh) }
    COSH(a) "hyperbolic cosine" { single: math::cosh(a), double: a.cosh(), complex: a.by(m::cosh) }
    TANH(a) "hyperbolic tangent" { exponential: a.tanh_fast(), complex: a.by(m::tanh) }
    ASINH(a) "inverse of the hyperbolic sine" { single: math::asinh(a), double: a.asinh(), complex: a.by(m::asinh) }
    ACOSH(a) "inverse of the hyperbolic cosine" { single: math::acosh(a), double: a.acosh(), complex: a.by(m::acosh) }
    ATANH(a) "inverse of the hyperbolic tangent" { single: math::atanh(a), double: a.atanh(), complex: a.by(m::atanh) }
    ERF(a) "error function" { exponential: Real::erf(a) }
    ERFC(a) "complementary error function" { elementary: Real::erfc(a) }
    ERFINV(a) "inverse of the error function" { long_single: math::erfinv(a), double: erfinv(a) }
    LGAMMA(a) "logarithm of the gamma function's absolute value" { library: a.lgamma() }
    DIGAMMA(a) "logarithmic derivative of the gamma function" { library: T::of(psi(a as f64)) }
    POLYGAMMA(a, n) "derivative of `DIGAMMA`" { library: polygamma(n as f64, a) }
    NORMAL_CDF(a) "distribution function of the normal distribution" { exponential: a.normal_cdf() }
    ENTROPY(a) "`-a * log(a)`, 0 at 0, minus infinity below" {
        elementary: if a.is_nan() { a } else if a > 0.0 { -a * a.ln_fast() } else if a == 0.0 { 0.0 } else { T::NEG_INFINITY },
    }
    SIGMOID(a) "`1 / (1 + exp(-a))`" { exponential: a.sigmoid(), complex: a.by(m::sigmoid) }
    CEIL(a) "rounded up" { int: a, basic: a.ceil() }
    FLOOR(a) "rounded down" { int: a, basic: a.floor() }
    ROUND(a) "rounded to nearest, halves to even" { int: a, basic: a.rint() }
    ROUND_DECIMALS(a, decimals) "rounded to a number of decimals" { library: round_decimals(a, decimals) }
    TRUNC(a) "cut towards zero" { int: a, basic: a.trunc() }
    FRAC(a) "what cutting towards zero leaves" { basic: a - a.trunc() }
    MANTISSA(a) "the number brought into 0.5..1 by a power of 2, with its sign" {
        library: if a.is_finite() { T::of(libm::frexp(Compute::to_f64(a)).0) } else { a },
    }
    EXPONENT(a) "the power of 2 that `MANTISSA` takes off" {
        library: if a.is_finite() { T::of(libm::frexp(Compute::to_f64(a)).1 as f64) } else { 0.0 },
    }
    SINC(a) "`sin(pi a) / (pi a)`" { library: sinc(a), complex: (a * (std::f64::consts::PI as F)).by(m::sin_over) }
    DEG2RAD(a) "degrees to radians" { real: a * T::of(std::f64::consts::PI / 180.0) }
    RAD2DEG(a) "radians to degrees" { real: a * T::of(180.0 / std::f64::consts::PI) }
    SQUARE(a) "`a * a`" { int: a.wrapping_mul(a), basic: a * a, complex: a * a }
    CUBE(a) "`a * a * a`" { int: a.wrapping_mul(a).wrapping_mul(a), basic: a * a * a, complex: a * a * a }
    CONJ(a) "complex conjugate" { int: a, real: a, complex: a.conj() }
    NAN_TO_NUM(a, nan, posinf, neginf) "NaN and infinities replaced" {
        int: { let _ = (nan, posinf, neginf); a },
        real: if a.is_nan() { nan } else if a == T::INFINITY { posinf } else if a == T::NEG_INFINITY { neginf } else { a },
        // Bounds are real numbers, for both parts.
        complex: {
            let part = |x: F| {
                if x.is_nan() { nan.re } else if x == F::INFINITY { posinf.re } else if x == F::NEG_INFINITY { neginf.re } else { x }
            };
            T::new(part(a.re), part(a.im))
        },
    }
    ANGLE(a) "0, or pi for negative numbers" {
        real: if a.is_nan() { a } else if a < 0.0 { T::of(std::f64::consts::PI) } else { 0.0 },
    }
    LOGIT(a) "`log(a / (1 - a))`" { elementary: (a / (1.0 - a)).ln_fast() }
    LOGIT_EPS(a, eps) "`logit` of a number brought into `eps..1-eps`" {
        elementary: { let x = if a < eps { eps } else if a > 1.0 - eps { 1.0 - eps } else { a }; (x / (1.0 - x)).ln_fast() },
    }
}
