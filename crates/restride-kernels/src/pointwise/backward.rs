//! Derivatives of pointwise functions, as PyTorch names them: the gradient comes first.

use super::activation::{gelu_tanh_inner, gelu_tanh_slope};
use crate::support::number::Real;
use restride_tensor::{C32, C64};

/// `1 / sqrt(2 pi)`.
const NORMAL_DENSITY: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2 * 0.5;

#[inline(always)]
fn gelu<T: Real>(x: T) -> T {
    x.gelu_factor() + x * T::of(NORMAL_DENSITY) * (T::of(-0.5) * x * x).exp_fast()
}

#[inline(always)]
fn gelu_tanh<T: Real>(x: T) -> T {
    let t = gelu_tanh_inner(x);
    T::of(0.5) * (T::one() + t) + T::of(0.5) * x * (T::one() - t * t) * gelu_tanh_slope(x)
}

#[inline(always)]
fn mish<T: Real>(x: T) -> T {
    let t = x.tanh_softplus();
    t + x * x.sigmoid() * (T::one() - t * t)
}

pointwise! {
    SIGMOID_BACKWARD(g, y) "of `sigmoid`, from its result" {
        basic: g * (1.0 - y) * y,
        complex: g * ((1.0 - y) * y).conj(),
    }
    TANH_BACKWARD(g, y) "of `tanh`, from its result" { basic: g * (1.0 - y * y), complex: g * (1.0 - y * y).conj() }
    THRESHOLD_BACKWARD(g, x, threshold) "of `threshold` and `relu`" {
        int: if x <= threshold { 0 } else { g }, real: if x <= threshold { 0.0 } else { g },
        formula: x.at_most(threshold).choose(x.number(0.0), g),
    }
    LEAKY_RELU_BACKWARD(g, x, slope) "of `leaky_relu`" {
        real: if x > 0.0 { g } else { g * slope },
        formula: x.number(0.0).below(x).choose(g, g * slope),
    }
    ELU_BACKWARD(g, x, alpha, scale, input_scale) "of `elu`, from its operand" {
        elementary: if x <= 0.0 { g * (alpha * scale) * input_scale * (x * input_scale).exp_fast() } else { g * scale },
    }
    ELU_BACKWARD_RESULT(g, y, alpha, scale, input_scale) "of `elu`, from its result" {
        real: if y <= 0.0 { g * input_scale * (y + alpha * scale) } else { g * scale },
    }
    GELU_BACKWARD(g, x) "of `gelu`" { elementary: g * gelu(x) }
    GELU_TANH_BACKWARD(g, x) "of `gelu` by the hyperbolic tangent" { elementary: g * gelu_tanh(x) }
    SILU_BACKWARD(g, x) "of `silu`" { elementary: { let s = x.sigmoid(); g * s * (1.0 + x * (1.0 - s)) } }
    MISH_BACKWARD(g, x) "of `mish`" { elementary: g * mish(x) }
    SOFTPLUS_BACKWARD(g, x, beta, threshold) "of `softplus`" {
        elementary: if x * beta > threshold { g } else { let z = (x * beta).exp_fast(); g * z / (z + 1.0) },
    }
    HARDSIGMOID_BACKWARD(g, x) "of `hardsigmoid`" { real: if x > -3.0 && x < 3.0 { g / 6.0 } else { 0.0 } }
    HARDSWISH_BACKWARD(g, x) "of `hardswish`" {
        real: if x <= -3.0 { 0.0 } else if x < 3.0 { g * (x / 3.0 + 0.5) } else { g },
        formula: x.at_most(x.number(-3.0)).choose(x.number(0.0), x.below(x.number(3.0)).choose(g * (x / 3.0 + 0.5), g)),
    }
    HARDTANH_BACKWARD(g, x, lo, hi) "of `hardtanh`" {
        real: if x <= lo || x >= hi { 0.0 } else { g },
        formula: x.at_most(lo).or(hi.at_most(x)).choose(x.number(0.0), g),
    }
    HARDSHRINK_BACKWARD(g, x, lambda) "of `hardshrink` and `softshrink`" {
        real: if x >= -lambda && x <= lambda { 0.0 } else { g },
    }
    LOG_SIGMOID_BACKWARD(g, x) "of `log_sigmoid`" {
        elementary: { let z = (-x.abs()).exp_fast(); g * (if x < 0.0 { 1.0 - z / (1.0 + z) } else { z / (1.0 + z) }) },
    }
    PRELU_BACKWARD(g, x, weight) "of `prelu`, for its operand" {
        real: if x > 0.0 { g } else { g * weight },
        formula: x.number(0.0).below(x).choose(g, g * weight),
    }
    PRELU_WEIGHT_BACKWARD(g, x) "of `prelu`, for its weight" { real: if x > 0.0 { 0.0 } else { g * x } }
    MASKED_SCALED(g, mask, scale) "`g * scale` where the mask is not zero, else 0" {
        real: g * (if mask != 0.0 { 1.0 } else { 0.0 } * scale),
        formula: g * (mask.holds().as_number() * scale),
    }
    LOGIT_BACKWARD(g, x) "of `logit`" {
        real: if (0.0..=1.0).contains(&x) { g / (x * (1.0 - x)) } else { T::NAN },
    }
    LOGIT_EPS_BACKWARD(g, x, eps) "of `logit` with bounds" {
        real: if x < eps || x > 1.0 - eps { 0.0 } else { g / (x * (1.0 - x)) },
    }
}
