//! Comparisons and other questions.

use restride_tensor::{C32, C64};

predicates! {
    EQ(a, b) "`a == b`" { wrapping: a == b, real: a == b, formula: a.equals(b), complex: a == b }
    NE(a, b) "`a != b`" { wrapping: a != b, real: a != b, formula: a.differs(b), complex: a != b }
    LT(a, b) "`a < b`" { whole: a < b, real: a < b, formula: a.below(b) }
    LE(a, b) "`a <= b`" { whole: a <= b, real: a <= b, formula: a.at_most(b) }
    GT(a, b) "`a > b`" { whole: a > b, real: a > b, formula: b.below(a) }
    GE(a, b) "`a >= b`" { whole: a >= b, real: a >= b, formula: b.at_most(a) }
    LOGICAL_AND(a, b) "both are not zero" {
        // Both are asked: a branch on the first would be guessed wrong half of the time.
        wrapping: (a != 0) & (b != 0), integer: (a != 0) & (b != 0), real: (a != 0.0) & (b != 0.0),
        formula: a.holds().and(b.holds()), complex: truth(a) && truth(b),
    }
    LOGICAL_OR(a, b) "one is not zero" {
        wrapping: (a != 0) | (b != 0), integer: (a != 0) | (b != 0), real: (a != 0.0) | (b != 0.0),
        formula: a.holds().or(b.holds()), complex: truth(a) || truth(b),
    }
    LOGICAL_XOR(a, b) "exactly one is not zero" {
        wrapping: (a != 0) != (b != 0), real: (a != 0.0) != (b != 0.0), complex: truth(a) != truth(b),
    }
    LOGICAL_NOT(a) "it is zero" { wrapping: a == 0, real: a == 0.0, formula: !a.holds(), complex: !truth(a) }
    IS_NAN(a) "it is not a number" { int: { let _ = a; false }, real: a.is_nan(), formula: a.is_nan(), complex: a.re.is_nan() || a.im.is_nan() }
    IS_INF(a) "it is infinite" {
        int: { let _ = a; false }, real: a.is_infinite(), complex: a.re.is_infinite() || a.im.is_infinite(),
    }
    IS_FINITE(a) "it is finite" {
        int: { let _ = a; true }, real: a.is_finite(), complex: a.re.is_finite() && a.im.is_finite(),
    }
    IS_POSINF(a) "it is plus infinity" { int: { let _ = a; false }, real: a == T::INFINITY }
    IS_NEGINF(a) "it is minus infinity" { int: { let _ = a; false }, real: a == T::NEG_INFINITY }
    SIGN_BIT(a) "its sign bit is set" { int: a < 0, real: a.is_sign_negative() }
    FAKE_QUANTIZE_MASK(a, scale, zero, lo, hi) "`FAKE_QUANTIZE` does not move it to an end of its range" {
        real: { let q = (a * (1.0 / scale)).round_ties_even() + zero; lo <= q && q <= hi },
    }
    IS_CLOSE(a, b, rtol, atol, equal_nan) "`|a - b| <= atol + rtol * |b|`" {
        int: { let _ = (rtol, atol, equal_nan); a == b },
        real: a == b || (equal_nan != 0.0 && a.is_nan() && b.is_nan())
            || (a.is_finite() && b.is_finite() && (a - b).abs() <= atol + (rtol * b).abs()),
        complex: a == b
            || (equal_nan.re != 0.0 && (a.re.is_nan() || a.im.is_nan()) && (b.re.is_nan() || b.im.is_nan()))
            || { let apart = (a - b).norm(); apart.is_finite() && apart <= atol.re + (b * rtol.re).norm() },
    }
}

#[inline(always)]
fn truth<F: num_traits::Zero>(z: num_complex::Complex<F>) -> bool
where
    num_complex::Complex<F>: num_traits::Zero,
{
    !num_traits::Zero::is_zero(&z)
}
