//! Tangent, inverses of the functions of angles, and hyperbolic functions.

use super::{exp, exp_half, exp_m1, ln_1p, within, without_quarter_turns};
use std::f32::consts::LN_2;

/// pi/2 in two parts.
const QUARTER: f32 = 1.570_796_37;
const QUARTER_LOW: f32 = -4.371_138_83e-8;

/// Tangent of an angle up to [`LARGEST_ANGLE`](super::LARGEST_ANGLE). Error below 4.5 ulp.
#[inline(always)]
pub(crate) fn tan(x: f32) -> f32 {
    let (r, n) = without_quarter_turns(x);
    let z = r * r;
    let p = z.mul_add(9.385_401_855_43e-3, 3.119_922_326_97e-3);
    let p = p.mul_add(z, 2.443_013_545_25e-2).mul_add(z, 5.341_128_070_05e-2);
    let p = p.mul_add(z, 1.333_879_940_85e-1).mul_add(z, 3.333_315_685_48e-1);
    let y = (p * z).mul_add(r, r);
    let y = if n & 1 == 0 { y } else { -1.0 / y };
    // For -0.
    if x == 0.0 { x } else { y }
}

/// Arc tangent in 0..=1.
#[inline(always)]
fn atan_near(r: f32) -> f32 {
    let z = r * r;
    let p = z.mul_add(-1.827_184_692_956_492_1e-3, 1.106_431_521_475_315_1e-2);
    let p = p.mul_add(z, -3.145_546_838_641_166_7e-2).mul_add(z, 5.823_431_909_084_32e-2);
    let p = p.mul_add(z, -8.419_445_902_109_146e-2).mul_add(z, 1.095_757_186_412_811_3e-1);
    let p = p.mul_add(z, -1.426_524_519_920_349e-1).mul_add(z, 1.999_863_833_189_01e-1);
    let p = p.mul_add(z, -3.333_330_154_418_945e-1);
    (p * z).mul_add(r, r)
}

/// Arc tangent. Error below 1.5 ulp.
#[inline(always)]
pub(crate) fn atan(x: f32) -> f32 {
    let a = x.abs();
    let y = atan_near(if a > 1.0 { 1.0 / a } else { a });
    let y = if a > 1.0 { QUARTER - (y - QUARTER_LOW) } else { y };
    y.copysign(x)
}

/// Angle of the point (x, y), with C's special cases. Error below 2 ulp.
#[inline(always)]
pub(crate) fn atan2(y: f32, x: f32) -> f32 {
    let (a, b) = (x.abs(), y.abs());
    let steep = b > a;
    let (small, large) = if steep { (a, b) } else { (b, a) };
    let r = small / large;
    // Zero by zero, and infinity by infinity.
    let r = if small == large { if small == 0.0 { 0.0 } else { 1.0 } } else { r };
    let t = atan_near(r);
    let t = if steep { QUARTER - (t - QUARTER_LOW) } else { t };
    let t = if x.is_sign_negative() { 2.0 * QUARTER - (t - 2.0 * QUARTER_LOW) } else { t };
    let t = t.copysign(y);
    if x.is_nan() | y.is_nan() { f32::NAN } else { t }
}

/// Arc sine of `x` up to 1/2, or half the arc cosine of `1 - 2 z` with `x` the root of `z`.
#[inline(always)]
fn asin_near(x: f32, z: f32) -> f32 {
    let p = z.mul_add(4.216_319_904_8e-2, 2.418_131_104_9e-2);
    let p = p.mul_add(z, 4.547_002_599_8e-2).mul_add(z, 7.495_300_268_6e-2).mul_add(z, 1.666_675_242_2e-1);
    (p * z).mul_add(x, x)
}

/// Whether a number is above 1/2 in absolute value, and [`asin_near`] of it or of half its distance from 1.
#[inline(always)]
fn asin_parts(x: f32) -> (bool, f32) {
    let a = x.abs();
    let far = a > 0.5;
    let z = if far { 0.5 * (1.0 - a) } else { a * a };
    (far, asin_near(if far { z.sqrt() } else { a }, z))
}

/// Arc sine. Error below 2.5 ulp.
#[inline(always)]
pub(crate) fn asin(x: f32) -> f32 {
    let (far, y) = asin_parts(x);
    let y = if far { QUARTER - ((y + y) - QUARTER_LOW) } else { y };
    y.copysign(x)
}

/// Arc cosine. Error below 1.5 ulp.
#[inline(always)]
pub(crate) fn acos(x: f32) -> f32 {
    let (far, y) = asin_parts(x);
    let twice = y + y;
    let beyond = if x < 0.0 { 2.0 * QUARTER - (twice - 2.0 * QUARTER_LOW) } else { twice };
    let near = QUARTER - (y.copysign(x) - QUARTER_LOW);
    if far { beyond } else { near }
}

/// `e^a / 2` for `a` from 0 on.
#[inline(always)]
fn half_of_exp(a: f32) -> f32 {
    // From 88 on the power itself would be infinite.
    let root = exp(0.5 * within(a, 80.0, 180.0));
    let far = (0.5 * root) * root;
    if a > 88.0 { far } else { exp_half(within(a, 0.0, 88.0)) }
}

/// Hyperbolic sine. Error below 2.5 ulp.
#[inline(always)]
pub(crate) fn sinh(x: f32) -> f32 {
    let a = x.abs();
    let e = exp_m1(within(a, 0.0, 80.0));
    let near = 0.5 * (e + e / (e + 1.0));
    let y = if a > 20.0 { half_of_exp(a) } else { near };
    // Where half of it could be subnormal.
    let y = if a < 1e-5 { a } else { y };
    y.copysign(x)
}

/// Hyperbolic cosine. Error below 2.5 ulp.
#[inline(always)]
pub(crate) fn cosh(x: f32) -> f32 {
    let half = half_of_exp(x.abs());
    half + 0.25 / half
}

/// Numbers whose square is not added to: `ln(2 x)` is their inverse hyperbolic sine and cosine.
const LARGE: f32 = 1e9;

/// Inverse of the hyperbolic sine. Error below 2.5 ulp.
#[inline(always)]
pub(crate) fn asinh(x: f32) -> f32 {
    let a = x.abs();
    let s = a * a;
    let near = a + s / (1.0 + (s + 1.0).sqrt());
    let y = ln_1p(if a > LARGE { a } else { near });
    let y = if a > LARGE { y + LN_2 } else { y };
    y.copysign(x)
}

/// Inverse of the hyperbolic cosine. Error below 2.5 ulp.
#[inline(always)]
pub(crate) fn acosh(x: f32) -> f32 {
    let t = x - 1.0;
    let near = t + (t * (t + 2.0)).sqrt();
    let y = ln_1p(if x > LARGE { x } else { near });
    let y = if x > LARGE { y + LN_2 } else { y };
    if x < 1.0 { f32::NAN } else { y }
}

/// Inverse of the hyperbolic tangent. Error below 2.5 ulp.
#[inline(always)]
pub(crate) fn atanh(x: f32) -> f32 {
    let a = x.abs();
    let y = 0.5 * ln_1p((a + a) / (1.0 - a));
    // Where half of it could be subnormal.
    let y = if a < 1e-4 { a + a * (a * a) * 0.333_333_34 } else { y };
    y.copysign(x)
}
