//! Activation functions of neural networks.

use super::complex_math::{self as m, ComplexMath};
use crate::support::number::{Number, Real};
use restride_tensor::{C32, C64, FormulaTerm};

/// `sqrt(2 / pi)`.
const GELU_BETA: f64 = std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI * 0.5;
const GELU_KAPPA: f64 = 0.044715;

#[inline(always)]
pub(super) fn gelu_tanh_inner<T: Real>(x: T) -> T {
    (T::of(GELU_BETA) * (x + T::of(GELU_KAPPA) * x * x * x)).tanh_fast()
}

/// Derivative of [`gelu_tanh_inner`]'s argument.
#[inline(always)]
pub(super) fn gelu_tanh_slope<T: Real>(x: T) -> T {
    T::of(GELU_BETA) * (T::one() + T::of(3.0 * GELU_KAPPA) * x * x)
}

#[inline(always)]
fn clamp<T: Real>(x: T, lo: T, hi: T) -> T {
    // NaN stays: it is neither below nor above.
    let y = if x < lo { lo } else { x };
    let y = if y > hi { hi } else { y };
    let either = if lo.is_nan() { lo } else { hi };
    if lo.is_nan() | hi.is_nan() { either } else { y }
}

/// [`clamp`] as a formula.
fn clamped<'a>(x: FormulaTerm<'a>, lo: FormulaTerm<'a>, hi: FormulaTerm<'a>) -> FormulaTerm<'a> {
    let y = x.below(lo).choose(lo, x);
    let y = hi.below(y).choose(hi, y);
    let either = lo.is_nan().choose(lo, hi);
    lo.is_nan().or(hi.is_nan()).choose(either, y)
}

#[inline(always)]
fn softplus<T: Real>(x: T, beta: T, threshold: T) -> T {
    if x * beta > threshold { x } else { (x * beta).exp_fast().ln_1p_fast() / beta }
}

#[inline(always)]
fn elu<T: Real>(x: T, alpha: T, scale: T, input_scale: T) -> T {
    if x <= T::zero() { (x * input_scale).exp_m1_fast() * (alpha * scale) } else { x * scale }
}

pointwise! {
    RELU(x) "`max(x, 0)`; NaN and -0 stay" {
        int: x.max(0),
        real: if x < 0.0 { 0.0 } else { x },
        formula: x.below(x.number(0.0)).choose(x.number(0.0), x),
    }
    CLAMP(x, lo, hi) "`x` brought into `lo..hi`; NaN if any is" {
        integer: x.max(lo).min(hi),
        elementary: clamp(x, lo, hi),
        formula: clamped(x, lo, hi),
    }
    LEAKY_RELU(x, slope) "`x`, times `slope` below 0" {
        real: if x > 0.0 { x } else { x * slope },
        formula: x.number(0.0).below(x).choose(x, x * slope),
    }
    ELU(x, alpha, scale, input_scale) "`x`, an exponential below 0" { elementary: elu(x, alpha, scale, input_scale) }
    GELU(x) "`x` times the normal distribution function" { exponential: x * x.gelu_factor() }
    GELU_TANH(x) "`gelu` by the hyperbolic tangent" { exponential: 0.5 * x * (1.0 + gelu_tanh_inner(x)) }
    SILU(x) "`x * sigmoid(x)`" { exponential: x.silu(), complex: x * x.by(m::sigmoid) }
    MISH(x) "`x * tanh(softplus(x))`" { elementary: x * x.tanh_softplus() }
    SOFTPLUS(x, beta, threshold) "`log(1 + exp(beta * x)) / beta`" { elementary: softplus(x, beta, threshold) }
    HARDSIGMOID(x) "`relu6(x + 3) / 6`" {
        real: clamp(x + 3.0, 0.0, 6.0) / 6.0,
        formula: clamped(x + 3.0, x.number(0.0), x.number(6.0)) / 6.0,
    }
    HARDSWISH(x) "`x * relu6(x + 3) / 6`" {
        real: x * clamp(x + 3.0, 0.0, 6.0) / 6.0,
        formula: x * clamped(x + 3.0, x.number(0.0), x.number(6.0)) / 6.0,
    }
    HARDSHRINK(x, lambda) "0 within `-lambda..lambda`" { real: if x >= -lambda && x <= lambda { 0.0 } else { x } }
    SOFTSHRINK(x, lambda) "towards 0 by `lambda`" {
        real: if x > lambda { x - lambda } else if x < -lambda { x + lambda } else if x.is_nan() { x } else { 0.0 },
    }
    SOFTSIGN(x) "`x / (1 + |x|)`" { basic: x / (1.0 + x.abs()) }
    LOG_SIGMOID(x) "`log(sigmoid(x))`" { elementary: x.smaller(0.0) - (-x.abs()).exp_fast().ln_1p_fast() }
    LOG_SIGMOID_BUFFER(x) "`exp(-|x|)`" { elementary: (-x.abs()).exp_fast() }
    FAKE_QUANTIZE(x, scale, zero, lo, hi) "to the nearest of the numbers `(i - zero) * scale` with `i` in `lo..=hi`" {
        real: (clamp(Real::rint(x * (1.0 / scale)) + zero, lo, hi) - zero) * scale,
    }
    THRESHOLD(x, threshold, value) "`value` up to `threshold`" {
        int: if x <= threshold { value } else { x }, real: if x <= threshold { value } else { x },
        formula: x.at_most(threshold).choose(value, x),
    }
    PRELU(x, weight) "`x`, times `weight` below 0" {
        real: if x > 0.0 { x } else { x * weight },
        formula: x.number(0.0).below(x).choose(x, x * weight),
    }
}
