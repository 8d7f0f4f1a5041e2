//! Special functions that no library here has.

use crate::support::number::Real;
use num_traits::FloatConst;
use spec_math::cephes64::{self, psi};

/// Inverse error function: a rational start (as PyTorch's) and two steps of Newton's method.
pub(super) fn erfinv(y: f64) -> f64 {
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

/// Hurwitz zeta function; NaN at an infinite `q`, as PyTorch's series gives.
pub(super) fn zeta(x: f64, q: f64) -> f64 {
    if q == f64::INFINITY && x > 1.0 { f64::NAN } else { cephes64::zeta(x, q) }
}

/// Derivatives of the digamma function. The first by reflection, recurrence and the asymptotic series, further ones by the
/// Hurwitz zeta function.
pub(super) fn polygamma<T: Real + FloatConst>(n: f64, x: T) -> T {
    let wide = x.to_f64();
    if n == 0.0 {
        T::of(psi(wide))
    } else if n == 1.0 {
        trigamma(x)
    } else {
        let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
        T::of(sign * libm::lgamma(n + 1.0).exp() * zeta(n + 1.0, wide))
    }
}

/// The reflection multiplies, and takes the sine, in the number's own precision: at a pole its rounding decides the value.
fn trigamma<T: Real + FloatConst>(x: T) -> T {
    let wide = x.to_f64();
    if wide < 0.5 {
        let sine = (T::PI() * x).sin();
        return T::PI() * T::PI() / (sine * sine) - T::of(trigamma_above(1.0 - wide));
    }
    T::of(trigamma_above(wide))
}

/// `trigamma` of 0.5 and above.
fn trigamma_above(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 10.0 {
        result += 1.0 / (x * x);
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series =
        1.0 / 6.0 - z * (1.0 / 30.0 - z * (1.0 / 42.0 - z * (1.0 / 30.0 - z * (5.0 / 66.0 - z * 691.0 / 2730.0))));
    result + (1.0 + 0.5 / x + z * series) / x
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// PyTorch 2.15's results.
    #[test]
    fn poles_of_polygamma_are_those_of_pytorch() {
        for (x, want) in
            [(-1.0f32, 1.291_369_7e15f32), (-2.0, 3.228_424_2e14), (-3.0, 1.735_128_8e16), (-1e8, 10.326_009)]
        {
            let own = polygamma(1.0, x);
            assert!((own - want).abs() <= 1e-6 * want, "{x}: {own}");
        }
        for (x, want) in [(-1.0f64, 6.580_790_147_320_947e32), (-100.0, 2.557_677_392_834_685e30)] {
            let own = polygamma(1.0, x);
            assert!((own - want).abs() <= 1e-12 * want, "{x}: {own}");
        }
        assert_eq!((polygamma(1.0, 0f32), polygamma(1.0, -0f64)), (f32::INFINITY, f64::INFINITY));
        assert_eq!((polygamma(2.0, -3f32), polygamma(3.0, -3f32)), (f32::NEG_INFINITY, f32::INFINITY));
        assert!(polygamma(0.0, -1f32).is_nan() && polygamma(2.0, f32::INFINITY).is_nan());
        assert_eq!(polygamma(1.0, f32::INFINITY), 0.0);
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
        assert!((psi(1.0) + 0.577_215_664_901_532_9).abs() < 1e-14);
        for x in [-2.5, -0.3, 0.2, 3.7, 25.0] {
            assert!((psi(x + 1.0) - psi(x) - 1.0 / x).abs() < 1e-11, "{x}");
        }
    }
}
