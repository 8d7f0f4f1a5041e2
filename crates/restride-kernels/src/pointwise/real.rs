//! Special functions that no library here has.

use spec_math::cephes64::{psi, zeta};

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

/// Derivatives of the digamma function. The first by reflection, recurrence and the asymptotic series, further ones by the
/// Hurwitz zeta function.
pub(super) fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        psi(x)
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
