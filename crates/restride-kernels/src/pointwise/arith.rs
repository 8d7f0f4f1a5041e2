//! Arithmetic of two and more operands.

use super::RowFn;
use super::complex_math::{self as m, ComplexMath};
use crate::support::math;
use crate::support::number::{Number, Real};
use num_traits::Float;
use restride_tensor::{C32, C64};

/// Integer quotient rounded towards minus infinity; the divisor is not zero.
#[inline(always)]
fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

/// Remainder with the sign of the divisor; the divisor is not zero.
#[inline(always)]
fn modulo(a: i64, b: i64) -> i64 {
    let r = a.wrapping_rem(b);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

/// `a // b` as Python rounds it, with `m` the remainder that has the sign of `a`.
#[inline(always)]
fn floor_div_real<T: Real>(a: T, b: T, m: T) -> T {
    let d = (a - m) / b;
    let d = if (m != T::zero()) & ((b < T::zero()) != (m < T::zero())) { d - T::one() } else { d };
    let f = d.floor();
    let f = if d - f > T::of(0.5) { f + T::one() } else { f };
    let ratio = a / b;
    let f = if d != T::zero() { f } else { T::zero().copysign(ratio) };
    if b == T::zero() { ratio } else { f }
}

/// Remainder with the sign of `b`, of `m`, which has the sign of the dividend.
#[inline(always)]
fn modulo_real<T: Real>(b: T, m: T) -> T {
    if (m != T::zero()) & ((b < T::zero()) != (m < T::zero())) { m + b } else { m }
}

/// Whether the remainder of two singles with this quotient is exact in `f64`: the quotient is cut to the right integer, from which
/// it is apart by 2^-24 of the divisor at least, and products have 52 bits at most.
#[inline(always)]
fn exact(quotient: f64) -> bool {
    const END: f64 = (1u32 << 28) as f64;
    quotient.abs() < END
}

/// A row of `finish(a, b, m)` with `m` the remainder that has the sign of `a`. Quotients that the vector code does not take are the
/// library's.
#[inline(always)]
fn remainders(xs: &[&[f32]], out: &mut [f32], finish: impl Fn(f32, f32, f32) -> f32) {
    let n = out.len();
    let (xs, ys) = (&xs[0][..n], &xs[1][..n]);
    let mut large = false;
    for i in 0..n {
        let (a, b) = (xs[i], ys[i]);
        let quotient = f64::from(a) / f64::from(b);
        let m = (f64::from(a) - quotient.trunc() * f64::from(b)) as f32;
        // For an infinite divisor.
        let m = if quotient.abs() < 1.0 { a } else { m };
        out[i] = finish(a, b, m.copysign(a));
        large |= !exact(quotient);
    }
    if large {
        for i in 0..n {
            let (a, b) = (xs[i], ys[i]);
            let quotient = f64::from(a) / f64::from(b);
            if !exact(quotient) {
                out[i] = finish(a, b, a % b);
            }
        }
    }
}

const FLOORED_QUOTIENTS: RowFn<f32> = row_function!(run, true, f32, f32, |xs, out| remainders(xs, out, floor_div_real));
const FLOORED_REMAINDERS: RowFn<f32> =
    row_function!(run, true, f32, f32, |xs, out| remainders(xs, out, |_, b, m| modulo_real(b, m)));
const CUT_REMAINDERS: RowFn<f32> = row_function!(run, true, f32, f32, |xs, out| remainders(xs, out, |_, _, m| m));

/// Integer power, wrapping; with a negative exponent 0 unless the base is 1 or -1.
fn pow_int(a: i64, b: i64) -> i64 {
    if b < 0 {
        return match a {
            1 => 1,
            -1 if b % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut base, mut e, mut out) = (a, b as u64, 1i64);
    while e > 0 {
        if e & 1 == 1 {
            out = out.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        e >>= 1;
    }
    out
}

/// Quotient by scaling with the larger part of the divisor, so that nothing overflows on the way.
#[inline(always)]
pub(super) fn div_complex<F: Float>(a: num_complex::Complex<F>, b: num_complex::Complex<F>) -> num_complex::Complex<F> {
    let (c, d) = (b.re, b.im);
    if c.abs() >= d.abs() {
        if c == F::zero() && d == F::zero() {
            return num_complex::Complex::new(a.re / c.abs(), a.im / d.abs());
        }
        let r = d / c;
        let s = F::one() / (c + d * r);
        num_complex::Complex::new((a.re + a.im * r) * s, (a.im - a.re * r) * s)
    } else {
        let r = c / d;
        let s = F::one() / (d + c * r);
        num_complex::Complex::new((a.re * r + a.im) * s, (a.im * r - a.re) * s)
    }
}

/// The next half-precision number from one towards another.
fn next_half(a: f32, b: f32) -> f32 {
    /// The least number that is not subnormal, and the distance of those that are.
    const NORMAL: f32 = 6.103_515_6e-5;
    const STEP: f32 = 5.960_464_5e-8;
    moved(a, b, || {
        if a.is_infinite() {
            return 65504f32.copysign(a);
        }
        if a.abs() > NORMAL {
            return next_of_bits(a, b, 1 << 13);
        }
        let next = if b > a { a + STEP } else { a - STEP };
        if next == 0.0 { next.copysign(a) } else { next }
    })
}

/// The next brain float from one towards another.
fn next_brain(a: f32, b: f32) -> f32 {
    moved(a, b, || if a == 0.0 { f32::from_bits(1 << 16).copysign(b) } else { next_of_bits(a, b, 1 << 16) })
}

/// `b` where the numbers are equal, NaN where one is, and else the number that `next` gives.
#[inline(always)]
fn moved(a: f32, b: f32, next: impl Fn() -> f32) -> f32 {
    match a == b {
        true => b,
        false if a.is_nan() || b.is_nan() => f32::NAN,
        false => next(),
    }
}

/// The next number where the bits of neighbours are this far apart; `a` is not zero.
fn next_of_bits(a: f32, b: f32, apart: u32) -> f32 {
    let bits = a.to_bits();
    f32::from_bits(if (b > a) == (a > 0.0) { bits + apart } else { bits - apart })
}

#[inline(always)]
fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while a != 0 {
        (a, b) = (b.wrapping_rem(a), a);
    }
    b.wrapping_abs()
}

fn no_zero_divisor(xs: &[&[i64]]) -> Result<(), &'static str> {
    if xs[1].contains(&0) { Err("ZeroDivisionError") } else { Ok(()) }
}

pointwise! {
    ADD(a, b) "`a + b`" { wrapping: a.wrapping_add(b), basic: a + b, complex: a + b }
    ADD_SCALED(a, b, alpha) "`a + alpha * b`" {
        int: a.wrapping_add(alpha.wrapping_mul(b)), basic: a + alpha * b, complex: a + alpha * b,
    }
    SUB(a, b) "`a - b`" { wrapping: a.wrapping_sub(b), basic: a - b, complex: a - b }
    SUB_SCALED(a, b, alpha) "`a - alpha * b`" {
        int: a.wrapping_sub(alpha.wrapping_mul(b)), basic: a - alpha * b, complex: a - alpha * b,
    }
    RSUB(a, b, alpha) "`b - alpha * a`" {
        int: b.wrapping_sub(alpha.wrapping_mul(a)), basic: b - alpha * a, complex: b - alpha * a,
    }
    MUL(a, b) "`a * b`" { wrapping: a.wrapping_mul(b), basic: a * b, complex: a * b }
    DIV(a, b) "`a / b`" { basic: a / b, complex: div_complex(a, b) }
    DIV_TRUNC(a, b) "`a / b`, cut towards zero" {
        int: a.wrapping_div(b), basic: (a / b).trunc(), check: no_zero_divisor,
    }
    DIV_TRUNC_F16(a, b) "`a / b` of 16-bit floats, rounded before it is cut" {
        single: half::f16::from_f32(a / b).to_f32().trunc(),
    }
    DIV_TRUNC_BF16(a, b) "`a / b` of brain floats, rounded before it is cut" {
        single: half::bf16::from_f32(a / b).to_f32().trunc(),
    }
    DIV_FLOOR(a, b) "`a // b`" {
        int: floor_div(a, b), single_rows: FLOORED_QUOTIENTS, double: floor_div_real(a, b, a % b), check: no_zero_divisor,
    }
    REMAINDER(a, b) "remainder with the sign of `b`" {
        int: modulo(a, b), single_rows: FLOORED_REMAINDERS, double: modulo_real(b, a % b), check: no_zero_divisor,
    }
    FMOD(a, b) "remainder with the sign of `a`" {
        int: a.wrapping_rem(b), single_rows: CUT_REMAINDERS, double: a % b, check: no_zero_divisor,
    }
    POW(a, b) "`a` to the power of `b`" {
        int: pow_int(a, b), elementary: a.pow_fast(b), complex: a.by_two(b, m::pow),
    }
    ATAN2(a, b) "angle of the point (b, a)" { single: math::atan2(a, b), double: a.atan2(b) }
    HYPOT(a, b) "`sqrt(a² + b²)`" { library: a.hypot(b) }
    COPYSIGN(a, b) "`a` with the sign of `b`" { real: a.copysign(b) }
    NEXTAFTER(a, b) "the next number from `a` towards `b`" { library: a.next_after(b) }
    NEXTAFTER_F16(a, b) "the next number of 16-bit floats" { single: next_half(a, b) }
    NEXTAFTER_BF16(a, b) "the next number of brain floats" { single: next_brain(a, b) }
    LOGADDEXP(a, b) "`log(exp(a) + exp(b))`" {
        elementary: if a.is_infinite() && a == b { a } else { a.larger(b) + (-(a - b).abs()).exp_fast().ln_1p_fast() },
        complex: a.by_two(b, m::log_add_exp),
    }
    LOGADDEXP2(a, b) "`log2(2^a + 2^b)`" {
        elementary: if a.is_infinite() && a == b { a } else {
            a.larger(b) + (-(a - b).abs()).exp2_fast().ln_1p_fast() * T::of(std::f64::consts::LOG2_E)
        },
    }
    XLOGY(a, b) "`a * log(b)`, 0 where `a` is 0" {
        elementary: if b.is_nan() { b } else if a == 0.0 { 0.0 } else { a * b.ln_fast() },
    }
    XLOG1PY(a, b) "`a * log1p(b)`, 0 where `a` is 0" {
        elementary: if b.is_nan() { b } else if a == 0.0 { 0.0 } else { a * b.ln_1p_fast() },
    }
    HEAVISIDE(a, b) "0 below 0, 1 above, `b` at 0" {
        int: if a == 0 { b } else { (a > 0) as i64 },
        real: if a == 0.0 { b } else { (a > 0.0) as u8 as T },
    }
    MAXIMUM(a, b) "the larger; NaN if either is" { whole: a.max(b), integer: a.max(b), basic: a.larger(b) }
    MINIMUM(a, b) "the smaller; NaN if either is" { whole: a.min(b), integer: a.min(b), basic: a.smaller(b) }
    FMAX(a, b) "the larger, NaN only if both are" { int: a.max(b), real: a.max(b) }
    FMIN(a, b) "the smaller, NaN only if both are" { int: a.min(b), real: a.min(b) }
    GCD(a, b) "greatest common divisor" { int: gcd(a, b) }
    LCM(a, b) "least common multiple" {
        int: { let g = gcd(a, b); if g == 0 { 0 } else { (a / g).wrapping_mul(b).wrapping_abs() } },
    }
    AND(a, b) "bitwise and" { wrapping: a & b }
    OR(a, b) "bitwise or" { wrapping: a | b }
    XOR(a, b) "bitwise exclusive or" { wrapping: a ^ b }
    SHIFT_LEFT(a, b) "`a << b`, 0 where that shifts everything out" {
        integer: if (0..64).contains(&b) { a << b } else { 0 },
    }
    SHIFT_RIGHT(a, b) "`a >> b`, the sign where that shifts everything out" {
        integer: a >> if (0..64).contains(&b) { b } else { 63 },
    }
    ADDCMUL(a, b, c, value) "`a + value * b * c`" {
        int: a.wrapping_add(value.wrapping_mul(b).wrapping_mul(c)), basic: a + value * b * c, complex: a + value * b * c,
    }
    ADDCDIV(a, b, c, value) "`a + value * b / c`" {
        basic: a + value * b / c, complex: a + div_complex(value * b, c),
    }
    LERP(a, b, w) "from `a` (`w` = 0) to `b` (`w` = 1)" {
        real: if w.abs() < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) },
        formula: w.abs().below(w.number(0.5)).choose(a + w * (b - a), b - (b - a) * (1.0 - w)),
        complex: if w.norm() < 0.5 { a + w * (b - a) } else { b - (b - a) * (1.0 - w) },
    }
}
