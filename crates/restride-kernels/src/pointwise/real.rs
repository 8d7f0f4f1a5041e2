//! Real numbers as row functions see them, and the special functions that no library here has.

use crate::convert::Compute;
use num_traits::Float;

/// `f32` and `f64`.
pub trait Real: Float + Compute {
    /// A constant.
    fn c(x: f64) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// Complementary error function.
    fn erfc(self) -> Self;
    /// Logarithm of the absolute value of the gamma function.
    fn lgamma(self) -> Self;
    /// To the nearest integer, halves to even.
    fn rint(self) -> Self;
    /// Remainder of a division cut towards zero.
    fn fmod(self, y: Self) -> Self;
    /// The next number from this towards another.
    fn next_after(self, to: Self) -> Self;
    /// Inverse of [`Real::erf`].
    fn erfinv(self) -> Self {
        Self::c(erfinv(self.to_f64()))
    }
    /// Logarithmic derivative of the gamma function.
    fn digamma(self) -> Self {
        Self::c(digamma(self.to_f64()))
    }
    /// The `n`th derivative of [`Real::digamma`].
    fn polygamma(self, n: Self) -> Self {
        Self::c(polygamma(Compute::to_f64(n), self.to_f64()))
    }
    /// Modified Bessel function of the first kind, of order 0 or 1, times `exp(-|x|)` if `scaled`.
    fn bessel_i(self, order: u8, scaled: bool) -> Self {
        Self::c(bessel_i(self.to_f64(), order, scaled))
    }
    /// The larger; NaN if either is.
    #[inline(always)]
    fn max_nan(self, y: Self) -> Self {
        if self.is_nan() || self > y { self } else { y }
    }
    /// The smaller; NaN if either is.
    #[inline(always)]
    fn min_nan(self, y: Self) -> Self {
        if self.is_nan() || self < y { self } else { y }
    }
    /// `1 / (1 + exp(-x))`.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::one() / (Self::one() + (-self).exp())
    }
    /// Distribution function of the normal distribution.
    #[inline(always)]
    fn normal_cdf(self) -> Self {
        Self::c(0.5) * (Self::one() + (self * Self::c(std::f64::consts::FRAC_1_SQRT_2)).erf())
    }
}

macro_rules! real {
    ($t:ty, $erf:path, $erfc:path, $lgamma:path, $next:path) => {
        impl Real for $t {
            #[inline(always)]
            fn c(x: f64) -> Self {
                x as $t
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
            #[inline(always)]
            fn fmod(self, y: Self) -> Self {
                self % y
            }
            fn next_after(self, to: Self) -> Self {
                $next(self, to)
            }
        }
    };
}
real!(f32, libm::erff, libm::erfcf, libm::lgammaf, libm::nextafterf);
real!(f64, libm::erf, libm::erfc, libm::lgamma, libm::nextafter);

/// Inverse error function: a rational start (as PyTorch's) and two steps of Newton's method.
fn erfinv(y: f64) -> f64 {
    if y.abs() > 1.0 {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    let mut x = if y.abs() <= 0.7 {
        let z = y * y;
        let num = ((-0.140543331 * z + 0.914624893) * z - 1.645349621) * z + 0.886226899;
        let den = (((0.012229801 * z - 0.329097515) * z + 1.442710462) * z - 2.118377725) * z + 1.0;
        y * num / den
    } else {
        let z = (-((1.0 - y.abs()) / 2.0).ln()).sqrt();
        let num = ((1.641345311 * z + 3.429567803) * z - 1.624906493) * z - 1.970840454;
        let den = (1.637067800 * z + 3.543889200) * z + 1.0;
        (num / den).copysign(y)
    };
    for _ in 0..2 {
        x -= (libm::erf(x) - y) / (std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp());
    }
    x
}

/// Digamma function: reflection below 0, recurrence up to 10, then the asymptotic series.
fn digamma(mut x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    let mut result = 0.0;
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        let r = x - x.floor();
        result -= std::f64::consts::PI / (std::f64::consts::PI * r).tan();
        x = 1.0 - x;
    }
    while x < 10.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z / 12.0))))));
    result + x.ln() - 0.5 / x - series
}

/// Derivatives of the digamma function. The first by reflection, recurrence and the asymptotic series, further ones by the
/// Hurwitz zeta function.
fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        digamma(x)
    } else if n == 1.0 {
        trigamma(x)
    } else {
        let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
        sign * libm::lgamma(n + 1.0).exp() * zeta(n + 1.0, x)
    }
}

fn trigamma(mut x: f64) -> f64 {
    let (mut sign, mut result) = (1.0, 0.0);
    if x < 0.5 {
        let sine = (std::f64::consts::PI * x).sin();
        (sign, result) = (-1.0, -(std::f64::consts::PI / sine).powi(2));
        x = 1.0 - x;
    }
    while x < 10.0 {
        result += 1.0 / (x * x);
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series =
        1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0 - z * 691.0 / 2730.0))));
    sign * (result + (1.0 + 0.5 / x + z * series) / x)
}

/// Hurwitz zeta function, by the formula of Euler and Maclaurin.
fn zeta(x: f64, q: f64) -> f64 {
    /// `(2k)! / B2k`
    const A: [f64; 12] = [
        12.0,
        -720.0,
        30_240.0,
        -1_209_600.0,
        47_900_160.0,
        -1_892_437_580.318_379_2,
        74_724_249_600.0,
        -2_950_130_727_918.164,
        116_467_828_143_500.67,
        -4_597_978_722_407_472.6,
        181_521_054_019_435_470.0,
        -7_166_165_256_175_667_000.0,
    ];
    const LEAST: f64 = f64::EPSILON / 2.0;
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    let (mut sum, mut at, mut term) = (q.powf(-x), q, 0.0f64);
    let mut i = 0;
    while i < 9 || at <= 9.0 {
        i += 1;
        at += 1.0;
        term = at.powf(-x);
        sum += term;
        if term.abs() < LEAST * sum.abs() {
            return sum;
        }
    }
    let w = at;
    sum += term * w / (x - 1.0) - 0.5 * term;
    let (mut factor, mut k) = (1.0, 0.0);
    for a in A {
        factor *= x + k;
        term /= w;
        let t = factor * term / a;
        sum += t;
        if (t / sum).abs() < LEAST {
            return sum;
        }
        factor *= x + k + 1.0;
        term /= w;
        k += 2.0;
    }
    sum
}

/// Modified Bessel function of the first kind: the power series, whose terms are all positive, then the asymptotic one.
fn bessel_i(x: f64, order: u8, scaled: bool) -> f64 {
    let (a, n) = (x.abs(), order as f64);
    let sign = if order == 1 && x < 0.0 { -1.0 } else { 1.0 };
    if a <= 30.0 {
        let q = a * a / 4.0;
        let mut term = if order == 1 { a / 2.0 } else { 1.0 };
        let (mut sum, mut k) = (term, 1.0);
        while term > sum * 1e-17 {
            term *= q / (k * (k + n));
            sum += term;
            k += 1.0;
        }
        return sign * sum * if scaled { (-a).exp() } else { 1.0 };
    }
    let mu = 4.0 * n * n;
    let (mut term, mut sum) = (1.0f64, 1.0);
    for k in 1..40 {
        let odd = (2 * k - 1) as f64;
        term *= (odd * odd - mu) / (k as f64 * 8.0 * a);
        sum += term;
        if term.abs() < 1e-17 {
            break;
        }
    }
    let root = sum / (2.0 * std::f64::consts::PI * a).sqrt();
    // In two steps, so that the exponential does not overflow where the product would not.
    sign * if scaled { root } else { root * (a / 2.0).exp() * (a / 2.0).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bessel_functions_meet_where_the_series_change() {
        // From tables.
        assert!((bessel_i(1.0, 0, false) - 1.266_065_877_752_008_4).abs() < 1e-14);
        assert!((bessel_i(-1.0, 1, false) + 0.565_159_103_992_485).abs() < 1e-14);
        for order in [0, 1] {
            let (a, b) = (bessel_i(30.0, order, true), bessel_i(30.000_000_001, order, true));
            assert!((a / b - 1.0).abs() < 1e-10, "{a} {b}");
        }
        assert!(bessel_i(f64::NAN, 0, false).is_nan());
    }

    #[test]
    fn polygamma_is_what_is_known_of_it() {
        let pi = std::f64::consts::PI;
        // zeta(2), 3 zeta(2), -2 zeta(3) and 6 zeta(4).
        for (n, x, want) in [
            (1.0, 1.0, pi * pi / 6.0),
            (1.0, 0.5, pi * pi / 2.0),
            (2.0, 1.0, -2.0 * 1.202_056_903_159_594_3),
            (3.0, 1.0, pi.powi(4) / 15.0),
        ] {
            assert!((polygamma(n, x) - want).abs() < 1e-13 * want.abs(), "{n} {x}: {}", polygamma(n, x));
        }
        for n in [0.0, 1.0, 2.0, 3.0, 4.0] {
            for x in [-1.3f64, 0.2, 0.9, 3.7, 12.5] {
                // Each is the derivative of the one before.
                let slope = (polygamma(n, x + 1e-5) - polygamma(n, x - 1e-5)) / 2e-5;
                let own = polygamma(n + 1.0, x);
                assert!((slope - own).abs() < 1e-5 * own.abs(), "{n} {x}: {own}, {slope}");
            }
        }
    }

    #[test]
    fn special_functions_invert_and_recur() {
        for i in -19..20 {
            let y = i as f64 / 20.0;
            assert!((libm::erf(erfinv(y)) - y).abs() < 1e-14, "{y}");
        }
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert!(erfinv(1.5).is_nan());
        // digamma(1) is minus Euler's constant, and digamma(x + 1) = digamma(x) + 1 / x.
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-14);
        for x in [-2.5, -0.3, 0.2, 3.7, 25.0] {
            assert!((digamma(x + 1.0) - digamma(x) - 1.0 / x).abs() < 1e-11, "{x}");
        }
    }
}
