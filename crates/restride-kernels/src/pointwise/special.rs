//! Special functions: those of the cephes library by `spec_math`, orthogonal polynomials by their recurrences.
//!
//! All are computed in `f64` and rounded once. PyTorch computes `f32` in `f32` and keeps some tables in single precision, so its
//! Bessel functions of the first and second kind are wrong by up to 2e-7 near their zeros, and `igamma` of neighbouring
//! arguments by 2e-9; the values here are right to a few units in the last place.

use crate::support::convert::Compute;
use crate::support::number::Real;
use spec_math::cephes64 as cephes;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// A function of `f64`, rounded to the type of its operand.
fn one<T: Real>(f: fn(f64) -> f64, x: T) -> T {
    T::of(f(Compute::to_f64(x)))
}

fn two<T: Real>(f: fn(f64, f64) -> f64, x: T, y: T) -> T {
    T::of(f(Compute::to_f64(x), Compute::to_f64(y)))
}

/// Modified Bessel function of the first kind, of order 0.
pub fn bessel_i0(x: f64) -> f64 {
    cephes::i0(x)
}

fn airy_ai(x: f64) -> f64 {
    cephes::airy(x).0
}

/// `exp(x^2) * erfc(x)`.
fn erfcx(x: f64) -> f64 {
    if x >= 25.0 {
        let y = 1.0 / (x * x);
        let series = 1.0 - 0.5 * y * (1.0 - 1.5 * y * (1.0 - 2.5 * y * (1.0 - 3.5 * y * (1.0 - 4.5 * y))));
        return series / (x * PI.sqrt());
    }
    // The square in two parts: its rounding would be multiplied by the exponential's slope.
    let square = x * x;
    let rest = x.mul_add(x, -square);
    let e = square.exp();
    if e.is_infinite() { e } else { e * libm::erfc(x) * (1.0 + rest) }
}

/// Logarithm of the normal distribution's distribution function.
fn log_ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    if x < -1.0 { (erfcx(-t) / 2.0).ln() - t * t } else { (-libm::erfc(t) / 2.0).ln_1p() }
}

fn spherical_bessel_j0(x: f64) -> f64 {
    if x.is_infinite() {
        0.0
    } else if x.abs() < 0.5 {
        let s = x * x;
        (1..7).rev().fold(1.0, |sum, k| 1.0 - sum * s / f64::from(2 * k * (2 * k + 1)))
    } else {
        x.sin() / x
    }
}

/// The degree of a polynomial: cut towards zero; none is below 0.
fn degree(n: f64) -> Option<i64> {
    let n = Compute::to_i64(n);
    (n >= 0).then_some(n)
}

/// `p(k + 1) = step(k) of p(k) and p(k - 1)`, from `p(0) = 1` and `p(1) = first` up to `n`. NaN stays NaN.
fn recur(n: i64, first: f64, step: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let (mut p, mut q) = (1.0, first);
    if n == 0 {
        return p;
    }
    for k in 1..n {
        if q.is_nan() {
            break;
        }
        (p, q) = (q, step(k as f64, q, p));
    }
    q
}

/// The four kinds of Chebyshev polynomials differ in their values at 1 and -1, in the one of degree 1, and in the formula for
/// high degrees within -1..1.
#[derive(Clone, Copy)]
enum Chebyshev {
    T,
    U,
    V,
    W,
}

impl Chebyshev {
    fn of(self, x: f64, n: f64, formula_from: i64) -> f64 {
        let Some(n) = degree(n) else { return 0.0 };
        let (d, sign) = (n as f64, if n % 2 == 0 { 1.0 } else { -1.0 });
        let (at_one, at_minus_one) = match self {
            Chebyshev::T => (1.0, sign),
            Chebyshev::U => (d + 1.0, sign * (d + 1.0)),
            Chebyshev::V => (1.0, sign * (2.0 * d + 1.0)),
            Chebyshev::W => (2.0 * d + 1.0, sign),
        };
        if x == 1.0 {
            return at_one;
        } else if x == -1.0 {
            return at_minus_one;
        } else if n > formula_from && x.abs() < 1.0 {
            let a = x.acos();
            return match self {
                Chebyshev::T => (d * a).cos(),
                Chebyshev::U => ((d + 1.0) * a).sin() / a.sin(),
                Chebyshev::V => ((d + 0.5) * a).cos() / (a / 2.0).cos(),
                Chebyshev::W => ((d + 0.5) * a).sin() / (a / 2.0).sin(),
            };
        }
        let first = match self {
            Chebyshev::T => x,
            Chebyshev::U => x + x,
            Chebyshev::V => x + x - 1.0,
            Chebyshev::W => x + x + 1.0,
        };
        recur(n, first, |_, q, p| (x + x) * q - p)
    }
}

fn hermite_h(x: f64, n: f64) -> f64 {
    // Infinite degrees count as negative.
    let Some(n) = degree(n) else { return 0.0 };
    recur(n, x + x, |k, q, p| (x + x) * q - 2.0 * k * p)
}

fn hermite_he(x: f64, n: f64) -> f64 {
    let Some(n) = degree(n) else { return 0.0 };
    recur(n, x, |k, q, p| x * q - k * p)
}

/// Degrees beyond which PyTorch's Hermite polynomials are not numbers.
fn hermite<T: Real>(f: fn(f64, f64) -> f64, x: T, n: T) -> T {
    let most = if size_of::<T>() == 4 { 128.0 } else { 512.0 };
    if n.trunc() > T::of(most) { if n.is_infinite() { T::zero() } else { T::nan() } } else { two(f, x, n) }
}

fn laguerre(x: f64, n: f64) -> f64 {
    let Some(n) = degree(n) else { return 0.0 };
    if x == 0.0 {
        return 1.0;
    }
    recur(n, 1.0 - x, |k, q, p| ((k + k + (1.0 - x)) * q - k * p) / (k + 1.0))
}

fn legendre(x: f64, n: f64) -> f64 {
    let Some(n) = degree(n) else { return 0.0 };
    if x == 1.0 {
        return 1.0;
    } else if x == -1.0 {
        return if n % 2 == 0 { 1.0 } else { -1.0 };
    }
    recur(n, x, |k, q, p| ((k + k + 1.0) * x * q - k * p) / (k + 1.0))
}

pointwise! {
    AIRY_AI(a) "Airy function" { library: one(airy_ai, a) }
    BESSEL_J0(a) "Bessel function of the first kind, of order 0" { library: one(cephes::j0, a) }
    BESSEL_J1(a) "Bessel function of the first kind, of order 1" { library: one(cephes::j1, a) }
    BESSEL_Y0(a) "Bessel function of the second kind, of order 0" { library: one(cephes::y0, a) }
    BESSEL_Y1(a) "Bessel function of the second kind, of order 1" { library: one(cephes::y1, a) }
    BESSEL_I0(a) "modified Bessel function of order 0" { library: one(cephes::i0, a) }
    BESSEL_I0E(a) "`BESSEL_I0` times `exp(-|a|)`" { library: one(cephes::i0e, a) }
    BESSEL_I1(a) "modified Bessel function of order 1" { library: one(cephes::i1, a) }
    BESSEL_I1E(a) "`BESSEL_I1` times `exp(-|a|)`" { library: one(cephes::i1e, a) }
    BESSEL_K0(a) "modified Bessel function of the second kind, of order 0" { library: one(cephes::k0, a) }
    BESSEL_K0E(a) "`BESSEL_K0` times `exp(a)`" { library: one(cephes::k0e, a) }
    BESSEL_K1(a) "modified Bessel function of the second kind, of order 1" { library: one(cephes::k1, a) }
    BESSEL_K1E(a) "`BESSEL_K1` times `exp(a)`" { library: one(cephes::k1e, a) }
    SPHERICAL_BESSEL_J0(a) "`sin(a) / a`" { library: one(spherical_bessel_j0, a) }
    ERFCX(a) "`exp(a^2) * erfc(a)`" { library: one(erfcx, a) }
    LOG_NORMAL_CDF(a) "logarithm of `NORMAL_CDF`" { library: one(log_ndtr, a) }
    NORMAL_QUANTILE(a) "inverse of `NORMAL_CDF`" { library: one(cephes::ndtri, a) }
    IGAMMA(a, x) "regularised lower incomplete gamma function" { library: two(cephes::igam, a, x) }
    IGAMMAC(a, x) "regularised upper incomplete gamma function" { library: two(cephes::igamc, a, x) }
    ZETA(a, q) "Hurwitz zeta function" { library: two(super::real::zeta, a, q) }
    CHEBYSHEV_T(x, n) "Chebyshev polynomial of the first kind" { library: two(|x, n| Chebyshev::T.of(x, n, 6), x, n) }
    CHEBYSHEV_U(x, n) "Chebyshev polynomial of the second kind" { library: two(|x, n| Chebyshev::U.of(x, n, 8), x, n) }
    CHEBYSHEV_V(x, n) "Chebyshev polynomial of the third kind" { library: two(|x, n| Chebyshev::V.of(x, n, 8), x, n) }
    CHEBYSHEV_W(x, n) "Chebyshev polynomial of the fourth kind" { library: two(|x, n| Chebyshev::W.of(x, n, 8), x, n) }
    SHIFTED_CHEBYSHEV_T(x, n) "`CHEBYSHEV_T` of `2 x - 1`" {
        library: two(|x, n| Chebyshev::T.of(x + x - 1.0, n, 6), x, n),
    }
    SHIFTED_CHEBYSHEV_U(x, n) "`CHEBYSHEV_U` of `2 x - 1`" {
        library: two(|x, n| Chebyshev::U.of(x + x - 1.0, n, 6), x, n),
    }
    SHIFTED_CHEBYSHEV_V(x, n) "`CHEBYSHEV_V` of `2 x - 1`" {
        library: two(|x, n| Chebyshev::V.of(x + x - 1.0, n, 6), x, n),
    }
    SHIFTED_CHEBYSHEV_W(x, n) "`CHEBYSHEV_W` of `2 x - 1`" {
        library: two(|x, n| Chebyshev::W.of(x + x - 1.0, n, 4), x, n),
    }
    HERMITE_H(x, n) "physicists' Hermite polynomial" { library: hermite(hermite_h, x, n) }
    HERMITE_HE(x, n) "probabilists' Hermite polynomial" { library: hermite(hermite_he, x, n) }
    LAGUERRE(x, n) "Laguerre polynomial" { library: two(laguerre, x, n) }
    LEGENDRE(x, n) "Legendre polynomial" { library: two(legendre, x, n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_values_of_tables() {
        // Abramowitz and Stegun, tables 7, 9, 10, 22, 23 and 26.
        for (own, known) in [
            (erfcx(1.0), 0.427_583_576_155_807),
            (erfcx(30.0), 0.018_795_888_861_416_75),
            (erfcx(-1.0), 5.008_980_080_762_283),
            (log_ndtr(-40.0), -804.608_442_013_754_1),
            (log_ndtr(1.0), -0.172_753_779_023_449_9),
            (airy_ai(0.0), 0.355_028_053_887_817_2),
            (cephes::j0(1.0), 0.765_197_686_557_966_6),
            (cephes::y1(2.0), -0.107_032_431_540_937_55),
            (cephes::i0(1.0), 1.266_065_877_752_008_4),
            (cephes::i1(-1.0), -0.565_159_103_992_485),
            (cephes::k1e(1.0), 1.636_153_486_263_258_2),
            (cephes::igam(2.0, 1.0), 0.264_241_117_657_115_4),
            (cephes::zeta(3.0, 1.0), 1.202_056_903_159_594_3),
            (spherical_bessel_j0(0.25), 0.25f64.sin() / 0.25),
            (legendre(0.5, 4.0), -0.289_062_5),
            (laguerre(0.5, 3.0), -0.145_833_333_333_333_34),
            (hermite_h(0.5, 5.0), 41.0),
            (hermite_he(2.0, 3.0), 2.0),
            (Chebyshev::T.of(0.4, 5.0, 6), (5.0 * 0.4f64.acos()).cos()),
            (Chebyshev::W.of(0.4, 5.0, 8), Chebyshev::W.of(0.4, 5.0, 0)),
            (Chebyshev::V.of(-0.4, 6.0, 8), Chebyshev::V.of(-0.4, 6.0, 0)),
            (Chebyshev::U.of(0.7, 6.0, 8), Chebyshev::U.of(0.7, 6.0, 0)),
        ] {
            assert!((own - known).abs() <= 1e-14 * known.abs(), "{own} {known}");
        }
        assert_eq!((erfcx(-30.0), erfcx(f64::INFINITY)), (f64::INFINITY, 0.0));
        assert_eq!(Chebyshev::T.of(0.4, -1.0, 6), 0.0);
        assert!(hermite(hermite_h, 1.0f32, 129.0).is_nan() && hermite(hermite_h, 0.1f64, 129.0).is_finite());
    }
}
