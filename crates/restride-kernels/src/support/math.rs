//! Elementary functions of singles without branches, calls or tables: loops over them become vector code of any width.
//!
//! Multiplications and additions are fused only where `mul_add` says so, and every comparison is a select, so an element has the same
//! bits alone, in a row and in every instruction set. Loops over functions with `mul_add` run by `isa::run`: the baseline of x86-64 has
//! no instruction for it and calls the C library, right but slow. Errors are in units in the last place (ulp) of the correctly rounded
//! result, found by visiting all singles (`cargo test --release -p restride-kernels every_single -- --ignored`). NaN gives NaN; zeros
//! keep their signs where the function is odd.
// Coefficients are written as their sources print them.
#![allow(clippy::excessive_precision)]

mod angles;
mod doubles;
mod errors;
mod logarithms;

pub(crate) use angles::{acos, acosh, asin, asinh, atan, atan2, atanh, cosh, sinh, tan};
pub(crate) use doubles::{
    LARGEST_DOUBLE_ANGLE, cos_double, erf_double, exp_double, ln_1p_double, ln_double, sigmoid_double, sin_double,
    tanh_double,
};
pub(crate) use errors::{erfc, erfinv};
pub(crate) use logarithms::{UNUSUAL, ln, ln_1p, ln_usual, log2, log2_usual, log10, log10_usual, unusual};

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_PI, LN_2, LOG2_E};

/// Added and taken away, it rounds a number below 2^21 to the nearest integer, which stays in the low bits of the sum.
const MAGIC: f32 = 12_582_912.0;
/// ln 2 in two parts.
const LN_2_HIGH: f32 = 0.693_359_375;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// The nearest integer to a number below 2^21, as a float, and that plus `bias` in the low 22 bits.
#[inline(always)]
fn nearest(x: f32, bias: u16) -> (f32, u32) {
    let magic = MAGIC + bias as f32;
    let sum = x + magic;
    (sum - magic, sum.to_bits())
}

/// As [`nearest`] of `x / ln 2`.
#[inline(always)]
fn nearest_power_of_e(x: f32, bias: u16) -> (f32, u32) {
    let magic = MAGIC + bias as f32;
    let sum = x.mul_add(LOG2_E, magic);
    (sum - magic, sum.to_bits())
}

/// Bias of the exponent of a single: `n + BIAS` in the low bits becomes 2^n.
const BIAS: u16 = 127;

/// 2^n for `n` in -127 (which gives 0) to 128 (which gives infinity), from `n` with the [`BIAS`]; higher bits are ignored.
#[inline(always)]
fn power_of_2(biased: u32) -> f32 {
    f32::from_bits(biased << 23)
}

/// `y * 2^n` for `n` in -252..=254, rounded once. `y` is not below 1/2; `n` is in the low 22 bits, with twice the [`BIAS`].
#[inline(always)]
fn scaled(y: f32, biased: u32) -> f32 {
    let half = biased >> 1;
    y * power_of_2(half) * power_of_2(biased.wrapping_sub(half))
}

/// `x - n ln 2`, and `n` with a bias, for `x` in -105..=90.
#[inline(always)]
fn without_powers_of_e(x: f32, bias: u16) -> (f32, u32) {
    let (n, bits) = nearest_power_of_e(x, bias);
    (n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x)), bits)
}

/// As [`without_powers_of_e`], with ln 2 in one part, for callers to whose results the error of that hardly counts.
#[inline(always)]
fn without_powers_of_e_roughly(x: f32, bias: u16) -> (f32, u32) {
    let (n, bits) = nearest_power_of_e(x, bias);
    (n.mul_add(-LN_2, x), bits)
}

/// `(exp(r) - 1 - r) / r²` for `r` in ±0.35. The error matters to `exp(r) - 1` as 2^-26.
#[inline(always)]
fn exp_tail(r: f32) -> f32 {
    let high = (r * r).mul_add(1.394_031_919e-3, r.mul_add(8.366_572_671e-3, 4.166_640_714e-2));
    high.mul_add(r * r, r.mul_add(1.666_654_348e-1, 5e-1))
}

/// `exp(r)` for `r` in ±0.35.
#[inline(always)]
fn exp_near(r: f32) -> f32 {
    exp_tail(r).mul_add(r * r, r) + 1.0
}

/// A clamp that keeps NaN.
#[inline(always)]
fn within(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `e^x`, subnormal results included. Error below 1.1 ulp.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Below, the result rounds to 0; above, to infinity.
    let (r, n) = without_powers_of_e(within(x, -105.0, 89.5), 2 * BIAS);
    scaled(exp_near(r), n)
}

/// `e^x` for `x` up to 0, with 0 for results below 2^-126. Error below 1.1 ulp.
#[inline(always)]
pub(crate) fn exp_down(x: f32) -> f32 {
    let (r, n) = without_powers_of_e(within(x, -88.0, 0.0), BIAS);
    exp_near(r) * power_of_2(n)
}

/// `e^x / 2` for `x` in -87.6..=89, with 0 for results below 2^-126.
#[inline(always)]
fn exp_half(x: f32) -> f32 {
    let (r, n) = without_powers_of_e(x, BIAS - 1);
    exp_near(r) * power_of_2(n)
}

/// `2^x`. Error below 1.1 ulp.
#[inline(always)]
pub(crate) fn exp2(x: f32) -> f32 {
    let x = within(x, -152.0, 129.0);
    let (n, bits) = nearest(x, 2 * BIAS);
    let r = (x - n) * LN_2;
    scaled(exp_near(r), bits)
}

/// `e^x - 1`. Error below 1.7 ulp.
#[inline(always)]
pub(crate) fn exp_m1(x: f32) -> f32 {
    // With x = n ln 2 + r it is twice 2^(n - 1) (e^r - 1) + (2^(n - 1) - 1/2).
    let (r, n) = without_powers_of_e(within(x, -18.0, 89.0), BIAS - 1);
    let scale = power_of_2(n);
    // As `exp_tail`, one degree higher.
    let z = r * r;
    let tail = r.mul_add(1.987_569_1e-4, 1.398_199_9e-3).mul_add(z, r.mul_add(8.333_452e-3, 4.166_579_6e-2));
    let p = tail.mul_add(z, r.mul_add(1.666_666_5e-1, 5e-1)).mul_add(z, r);
    let y = scale.mul_add(p, scale - 0.5);
    // Where half of the result could be subnormal, and for -0.
    if x.abs() < 1e-6 { x * (1.0 + 0.5 * x) } else { y + y }
}

/// Hyperbolic tangent. Error below 2.6 ulp.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 9.5 { 9.5 } else { a };
    // e^2a - 1 as in `exp_m1`: an error of e^2a is small beside its distance from 1.
    let (r, bits) = without_powers_of_e_roughly(a + a, BIAS - 1);
    let (scale, p) = (power_of_2(bits), exp_tail(r).mul_add(r * r, r));
    // Half of e^2a - 1.
    let y = scale.mul_add(p, scale - 0.5);
    (y / (y + 1.0)).copysign(x)
}

/// Error function. Error below 1.8 ulp.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    // The two polynomials are N. Juffa's.
    let (t, s) = (x.abs(), x * x);
    let t = if t > 4.0 { 4.0 } else { t };
    let z = t * t;
    let far = z.mul_add(-1.728_534_70e-5, t.mul_add(3.831_979_26e-4, -3.883_964_38e-3));
    let far = far.mul_add(z, t.mul_add(2.425_462_19e-2, -1.067_778_77e-1));
    let far = far.mul_add(z, t.mul_add(-6.348_464_87e-1, -1.287_175_12e-1));
    // `e` to this power is small beside the result.
    let (r, bits) = without_powers_of_e_roughly(far.mul_add(t, -t), BIAS);
    let far = 1.0 - exp_near(r) * power_of_2(bits);
    let near = s.mul_add(-5.967_617_03e-4, 4.991_194_23e-3);
    let near = near.mul_add(s, -2.676_813_49e-2).mul_add(s, 1.128_199_25e-1);
    let near = near.mul_add(s, -3.761_253_36e-1).mul_add(s, 1.283_791_66e-1);
    let near = near.mul_add(x, x);
    if t > 0.927_734_375 { far.copysign(x) } else { near }
}

/// Distribution function of the normal distribution. Error below 2e-7, and below 6 ulp from -1 on.
#[inline(always)]
pub(crate) fn normal_cdf(x: f32) -> f32 {
    // The logarithm of erfc is smooth: one polynomial of its argument.
    let t = x.abs() * FRAC_1_SQRT_2;
    let t = if t > 10.0 { 10.0 } else { t };
    let z = t * t;
    let p = t.mul_add(-1.044_641_5e-5, 1.291_060_6e-4).mul_add(z, t.mul_add(-4.363_954e-4, -1.514_155_7e-3));
    let p = p.mul_add(z, t.mul_add(2.042_192_6e-2, -1.032_845e-1)).mul_add(z, t.mul_add(-6.365_264e-1, -1.128_384_7));
    let half = exp_half(within(p * t, -87.6, 0.0));
    if x < 0.0 { half } else { 1.0 - half }
}

/// As [`normal_cdf`], 0 up to -5.5 and 1 from 5.5 on: what `gelu` multiplies by. Error below 2e-7, and below 6 ulp from -1 on.
#[inline(always)]
pub(crate) fn gelu_factor(x: f32) -> f32 {
    // The distance from 1/2 over x is even: polynomials of x² of one degree, side by side.
    let t = within(x, -5.5, 5.5);
    let s = t * t;
    let z = s * s;
    let p = s.mul_add(2.449_367_46e-8, 6.759_540_16e-6).mul_add(z, s.mul_add(1.773_676_49e-4, 4.986_457_99e-3));
    let p = p.mul_add(z, s.mul_add(3.592_750_06e-2, 4.270_482_36e-1));
    let q = s.mul_add(1.283_000_87e-6, 7.766_750_79e-5).mul_add(z, s.mul_add(1.998_447_58e-3, 3.048_302_23e-2));
    let q = q.mul_add(z, s.mul_add(2.684_650_12e-1, 1.070_451_26));
    0.5 + within(t * p / q, -0.5, 0.5)
}

/// `(1 + e^-x) / 2`: half of the power has one factor. Infinite below about -89.07.
#[inline(always)]
fn half_denominator(x: f32) -> f32 {
    0.5 + exp_half(within(-x, -87.6, 89.5))
}

/// `1 / (1 + e^-x)`. Error below 2.5 ulp; 0 below about -89.07.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    0.5 / half_denominator(x)
}

/// `x / (1 + e^-x)`. Error below 2.5 ulp from -88 on; -0 below about -89.07.
#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    (0.5 * x) / half_denominator(x)
}

/// `tanh(ln(1 + e^x))`. Error below 4 ulp.
#[inline(always)]
pub(crate) fn tanh_softplus(x: f32) -> f32 {
    // (1 + e)² - 1 over (1 + e)² + 1, with e = e^x; 1 from 12 on.
    let e = exp(within(x, -105.0, 12.0));
    let n = e * (e + 2.0);
    n / (n + 2.0)
}

/// Up to here (and -here) [`sin`] and [`cos`] of singles are right; beyond, ask the library.
pub(crate) const LARGEST_ANGLE: f32 = 65_536.0;

/// `x - n pi/2` in about ±pi/4, and `n`'s low bits, for angles up to [`LARGEST_ANGLE`].
#[inline(always)]
fn without_quarter_turns(x: f32) -> (f32, i32) {
    let (n, bits) = nearest(x * FRAC_2_PI, 0);
    // pi/2 in three parts.
    let r = n.mul_add(-1.570_796_37, x);
    let r = n.mul_add(4.371_138_83e-8, r);
    (n.mul_add(1.715_124_5e-15, r), bits as i32)
}

/// Sine in ±pi/4.
#[inline(always)]
pub(crate) fn sin_near(r: f32) -> f32 {
    let z = r * r;
    let p = z.mul_add(-1.951_529_59e-4, 8.332_160_87e-3).mul_add(z, -1.666_665_46e-1);
    p.mul_add(z * r, r)
}

/// Cosine in ±pi/4.
#[inline(always)]
pub(crate) fn cos_near(r: f32) -> f32 {
    let z = r * r;
    let p = z.mul_add(2.443_315_71e-5, -1.388_731_63e-3).mul_add(z, 4.166_664_57e-2);
    p.mul_add(z * z, z.mul_add(-0.5, 1.0))
}

/// Sine, or a quarter turn on the cosine, of an angle up to [`LARGEST_ANGLE`].
#[inline(always)]
fn sin_turned(x: f32, quarters: i32) -> f32 {
    let (r, n) = without_quarter_turns(x);
    let n = n.wrapping_add(quarters);
    let y = if n & 1 == 0 { sin_near(r) } else { cos_near(r) };
    f32::from_bits(y.to_bits() ^ ((n as u32 & 2) << 30))
}

/// Sine of an angle up to [`LARGEST_ANGLE`]. Error below 3.5 ulp.
#[inline(always)]
pub(crate) fn sin(x: f32) -> f32 {
    // For -0.
    if x == 0.0 { x } else { sin_turned(x, 0) }
}

/// Cosine of an angle up to [`LARGEST_ANGLE`]. Error below 3.5 ulp.
#[inline(always)]
pub(crate) fn cos(x: f32) -> f32 {
    sin_turned(x, 1)
}

/// log2 of a positive finite double that is a single, to 2^-33.
#[inline(always)]
fn log2_wide(x: f64) -> f64 {
    let bits = x.to_bits();
    // Exponent of x / sqrt(1/2), from the low bits of a number near 2^52.
    let e = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(e << 52));
    // The logical shift left a 12-bit two's complement exponent: flip its sign bit, and take 2048 off below.
    let e = (e ^ 0x800) & 0xfff;
    let e = f64::from_bits(0x4330_0000_0000_0000 | e) - (4_503_599_627_370_496.0 + 2048.0);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    // 2 / ((2 i + 1) ln 2)
    const C: f64 = 2.0 * std::f64::consts::LOG2_E;
    let w = z * z;
    let p = w.mul_add(C / 13.0, z.mul_add(C / 11.0, C / 9.0));
    let p = p.mul_add(w, z.mul_add(C / 7.0, C / 5.0)).mul_add(w, z.mul_add(C / 3.0, C));
    p.mul_add(s, e)
}

/// 2^t for `t` in ±1000, to 2^-30.
#[inline(always)]
fn exp2_wide(t: f64) -> f64 {
    let sum = t + doubles::MAGIC;
    let r = (t - (sum - doubles::MAGIC)) * std::f64::consts::LN_2;
    let z = r * r;
    let p = z.mul_add(1.0 / 40320.0, r.mul_add(1.0 / 5040.0, 1.0 / 720.0));
    let p = p.mul_add(z, r.mul_add(1.0 / 120.0, 1.0 / 24.0));
    let p = p.mul_add(z, r.mul_add(1.0 / 6.0, 0.5)).mul_add(z, r + 1.0);
    p * f64::from_bits(sum.to_bits().wrapping_add(1023) << 52)
}

/// `x` to the power of `y`, with C's special cases. Error below 0.51 ulp.
#[inline(always)]
pub(crate) fn pow(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let l = log2_wide(a as f64);
    let l = if a == 0.0 { f64::NEG_INFINITY } else { l };
    let l = if a == f32::INFINITY { f64::INFINITY } else { l };
    let t = y as f64 * l;
    // 1 to an infinite power is 1.
    let t = if a == 1.0 { 0.0 } else { t };
    let t = if t < -1000.0 { -1000.0 } else { t };
    let t = if t > 1000.0 { 1000.0 } else { t };
    let p = exp2_wide(t) as f32;
    // Whether y is an integer, and an odd one: from 2^24 on all are even. Above 2^23 there are no fractions.
    let b = y.abs();
    let (whole, low) = {
        let small = if b < 8_388_608.0 { b } else { 0.0 };
        let sum = small + 8_388_608.0;
        (sum - 8_388_608.0 == small, sum.to_bits())
    };
    let low = if b < 8_388_608.0 { low } else { b.to_bits() };
    let odd = whole && b < 16_777_216.0 && low & 1 == 1;
    let negative = x.is_sign_negative();
    let p = if negative && odd { -p } else { p };
    let p = if negative && !whole && a > 0.0 && a < f32::INFINITY { f32::NAN } else { p };
    let p = if x.is_nan() || y.is_nan() { f32::NAN } else { p };
    if x == 1.0 || y == 0.0 { 1.0 } else { p }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function, its reference in double precision, the largest error in ulp, and the arguments it is for.
    type Case = (&'static str, fn(f32) -> f32, fn(f64) -> f64, f64, std::ops::RangeInclusive<f32>);

    const ALL: std::ops::RangeInclusive<f32> = f32::NEG_INFINITY..=f32::INFINITY;
    const ANGLES: std::ops::RangeInclusive<f32> = -LARGEST_ANGLE..=LARGEST_ANGLE;

    fn cdf(x: f64) -> f64 {
        0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
    }

    fn inverse_of_erf(y: f64) -> f64 {
        let mut x = erfinv(y as f32) as f64;
        if x == 0.0 || !x.is_finite() {
            return x;
        }
        for _ in 0..3 {
            // Near the ends the complement has the digits.
            let apart = libm::erfc(x.abs()) - (1.0 - y.abs());
            let apart = if x.abs() < 0.5 { y.abs() - libm::erf(x.abs()) } else { apart };
            x += (apart / (std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp())).copysign(x * apart);
        }
        x
    }

    const CASES: &[Case] = &[
        ("exp", exp, libm::exp, 1.1, ALL),
        ("exp_down", exp_down, libm::exp, 1.1, -87.3..=0.0),
        ("exp2", exp2, libm::exp2, 1.1, ALL),
        ("exp_m1", exp_m1, libm::expm1, 1.7, ALL),
        ("ln", ln, libm::log, 1.0, ALL),
        ("log2", log2, libm::log2, 1.6, ALL),
        ("log10", log10, libm::log10, 2.0, ALL),
        ("ln_1p", ln_1p, libm::log1p, 1.5, ALL),
        ("tanh", tanh, libm::tanh, 2.6, ALL),
        ("erf", erf, libm::erf, 1.8, ALL),
        ("normal_cdf", normal_cdf, cdf, 6.0, -1.0..=f32::INFINITY),
        ("gelu_factor", gelu_factor, cdf, 6.0, -1.0..=f32::INFINITY),
        ("sigmoid", sigmoid, |x| 1.0 / (1.0 + libm::exp(-x)), 2.5, -88.0..=f32::INFINITY),
        ("silu", silu, |x| x / (1.0 + libm::exp(-x)), 2.5, -88.0..=f32::INFINITY),
        ("tanh_softplus", tanh_softplus, |x| libm::tanh(libm::log1p(libm::exp(x))), 4.0, ALL),
        ("sin", sin, libm::sin, 3.5, ANGLES),
        ("cos", cos, libm::cos, 3.5, ANGLES),
        ("tan", tan, libm::tan, 4.5, ANGLES),
        ("atan", atan, libm::atan, 1.5, ALL),
        ("asin", asin, libm::asin, 2.5, ALL),
        ("acos", acos, libm::acos, 1.5, ALL),
        ("sinh", sinh, libm::sinh, 2.5, ALL),
        ("cosh", cosh, libm::cosh, 2.5, ALL),
        ("asinh", asinh, libm::asinh, 2.5, ALL),
        ("acosh", acosh, libm::acosh, 2.5, 1.0..=f32::INFINITY),
        ("atanh", atanh, libm::atanh, 2.5, ALL),
        ("atan2(x, 0.3)", |x| atan2(x, 0.3), |x| libm::atan2(x, 0.3f32 as f64), 2.0, ALL),
        ("atan2(-2, x)", |x| atan2(-2.0, x), |x| libm::atan2(-2.0, x), 2.0, ALL),
        ("erfc", erfc, libm::erfc, 0.7, ALL),
        ("erfinv", erfinv, inverse_of_erf, 3.5, ALL),
        ("pow(x, 2.5)", |x| pow(x, 2.5), |x| libm::pow(x, 2.5), 0.51, ALL),
        ("pow(x, -3)", |x| pow(x, -3.0), |x| libm::pow(x, -3.0), 0.51, ALL),
        ("pow(0.3, x)", |x| pow(0.3, x), |x| libm::pow(0.3f32 as f64, x), 0.51, ALL),
    ];

    /// The distance from the reference, in units in the last place of a single near it; of infinities from the largest single.
    fn error(got: f32, want: f64) -> f64 {
        let near = (want.abs() as f32).min(f32::MAX);
        let exponent = ((near.to_bits() >> 23) as i32).max(1) - 150;
        let ends = |x: f64| x.clamp(-2f64.powi(128), 2f64.powi(128));
        (ends(got as f64) - ends(want)).abs() / 2f64.powi(exponent)
    }

    fn check(&(name, f, reference, bound, ref range): &Case, x: f32) {
        if !range.contains(&x) && !x.is_nan() {
            return;
        }
        let (got, want) = (f(x), reference(x as f64));
        let right = if want.is_nan() {
            got.is_nan()
        } else {
            error(got, want) < bound
                && (got != 0.0 || want as f32 != 0.0 || got.is_sign_negative() == want.is_sign_negative())
        };
        assert!(right, "{name}({x:e}) = {got:e}, not {want:e}: {} ulp", error(got, want));
    }

    fn visit(step: usize) {
        for case in CASES {
            for bits in (0..=u32::MAX).step_by(step) {
                check(case, f32::from_bits(bits));
            }
        }
    }

    #[test]
    fn every_so_many_singles_are_within_the_declared_error() {
        visit(if cfg!(miri) { 100_000_007 } else { 65_521 });
        for case in CASES {
            for x in [0.0, 1.0, 0.5, 88.7, 104.0, 1e-45, 1e-38, 3e38, f32::MAX, f32::INFINITY, f32::NAN] {
                check(case, x);
                check(case, -x);
            }
        }
    }

    #[test]
    #[ignore = "takes an hour of a processor"]
    fn every_single_is_within_the_declared_error() {
        visit(1);
    }

    #[test]
    fn angles_of_points_have_the_special_cases_of_c() {
        let numbers = [0.0, 1.0, 2.5, 1e-45, 1e-38, f32::MAX, f32::INFINITY, f32::NAN];
        let signed = || numbers.iter().flat_map(|&x| [x, -x]);
        for y in signed() {
            for x in signed() {
                let (got, want) = (atan2(y, x), libm::atan2(y as f64, x as f64));
                let same_sign = got.is_sign_negative() == want.is_sign_negative();
                let right = if want.is_nan() { got.is_nan() } else { error(got, want) < 2.0 && same_sign };
                assert!(right, "atan2({y:e}, {x:e}) = {got:e}, not {want:e}");
            }
        }
    }

    #[test]
    fn what_is_too_small_for_a_weight_is_zero() {
        for x in [-88.0, -1e3, f32::MIN, f32::NEG_INFINITY] {
            assert_eq!(exp_down(x), 0.0, "{x}");
        }
        assert!(exp_down(f32::NAN).is_nan());
    }

    #[test]
    fn tails_of_the_normal_distribution_are_close() {
        for i in 0..4000 {
            let x = -0.005 * i as f32;
            assert!((normal_cdf(x) as f64 - cdf(x as f64)).abs() < 2e-7, "{x}");
            assert!((gelu_factor(x) as f64 - cdf(x as f64)).abs() < 2e-7, "{x}");
        }
        for x in [5.5, 6.0, f32::MAX, f32::INFINITY] {
            assert_eq!([gelu_factor(-x), gelu_factor(x)], [0.0, 1.0], "{x}");
        }
    }

    #[test]
    fn powers_have_the_special_cases_of_c() {
        let odd = 16_777_215.0;
        let numbers = [
            0.0,
            1.0,
            2.0,
            0.5,
            3.0,
            2.5,
            f32::INFINITY,
            f32::NAN,
            1e-45,
            f32::MAX,
            odd,
            odd + 1.0,
            8_388_607.5,
            4_194_303.5,
        ];
        let signed = || numbers.iter().flat_map(|&x| [x, -x]);
        for x in signed() {
            for y in signed() {
                let (got, want) = (pow(x, y), libm::pow(x as f64, y as f64));
                let same_sign = got.is_sign_negative() == want.is_sign_negative();
                let right = if want.is_nan() { got.is_nan() } else { error(got, want) < 0.51 && same_sign };
                assert!(right, "pow({x:e}, {y:e}) = {got:e}, not {want:e}");
            }
        }
    }
}
