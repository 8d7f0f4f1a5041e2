//! Functions of doubles without branches, calls or tables, but for `mul_add` as in `math.rs`.

/// `e^x` of a double, subnormal results included. Error below 1 ulp.
#[inline(always)]
pub(crate) fn exp_double(x: f64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0 + 2046.0;
    // Below, the result rounds to 0; above, to infinity.
    let x = if x < -746.0 { -746.0 } else { x };
    let x = if x > 710.0 { 710.0 } else { x };
    let sum = x.mul_add(std::f64::consts::LOG2_E, MAGIC);
    let n = sum - MAGIC;
    // ln 2 in two parts.
    let r = n.mul_add(-6.931_471_803_691_238_164_90e-1, x);
    let r = n.mul_add(-1.908_214_929_270_587_700_02e-10, r);
    let z = r * r;
    // `(exp(r) - 1 - r) / r²`, interpolated between the zeros of a Chebyshev polynomial.
    let p = r.mul_add(2.510_041_108_201_49e-8, 2.762_012_171_738_193_4e-7);
    let p = p.mul_add(z, r.mul_add(2.755_726_840_619_079_5e-6, 2.480_152_122_598_643_2e-5));
    let p = p.mul_add(z, r.mul_add(1.984_126_986_308_825_5e-4, 1.388_888_891_725_875_9e-3));
    let p = p.mul_add(z, r.mul_add(8.333_333_333_330_055e-3, 4.166_666_666_662_404e-2));
    let p = p.mul_add(z, r.mul_add(1.666_666_666_666_666_9e-1, 0.5));
    // 2^n in two factors: the low bits of the sum are `n` and twice the bias of the exponent.
    let n = sum.to_bits();
    let half = n >> 1;
    let power = |n: u64| f64::from_bits(n << 52);
    (p.mul_add(z, r) + 1.0) * power(half) * power(n.wrapping_sub(half))
}

/// Natural logarithm of a double: the method and the coefficients of FreeBSD's `log`. Error below 1 ulp.
#[inline(always)]
pub(crate) fn ln_double(x: f64) -> f64 {
    let small = x < f64::MIN_POSITIVE;
    let bits = (if small { x * 18_014_398_509_481_984.0 } else { x }).to_bits();
    // The exponent of x / sqrt(1/2) as 12 bits of two's complement, and with 2^52 as a number, as in `log2_wide`.
    let e = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd) >> 52;
    let f = f64::from_bits(bits.wrapping_sub(e << 52)) - 1.0;
    let e = f64::from_bits(0x4330_0000_0000_0000 | ((e ^ 0x800) & 0xfff)) - (4_503_599_627_370_496.0 + 2048.0);
    let e = if small { e - 54.0 } else { e };
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let odd = w.mul_add(1.479_819_860_511_658_591e-1, 1.818_357_216_161_805_012e-1);
    let odd = odd.mul_add(w, 2.857_142_874_366_239_149e-1).mul_add(w, 6.666_666_666_666_735_130e-1);
    let even = w.mul_add(1.531_383_769_920_937_332e-1, 2.222_219_843_214_978_396e-1);
    let even = even.mul_add(w, 3.999_999_999_940_941_908e-1);
    let half = 0.5 * f * f;
    let low = s.mul_add(odd.mul_add(z, even.mul_add(w, half)), e * 1.908_214_929_270_587_700_02e-10);
    let y = e.mul_add(6.931_471_803_691_238_164_90e-1, f - (half - low));
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x >= 0.0 { y } else { f64::NAN };
    if x == 0.0 { f64::NEG_INFINITY } else { y }
}

/// `1 / (1 + e^-x)` of a double.
#[inline(always)]
pub(crate) fn sigmoid_double(x: f64) -> f64 {
    1.0 / (1.0 + exp_double(-x))
}

/// Hyperbolic tangent of a double: the method and the coefficients of Cephes. Error below 2 ulp.
#[inline(always)]
pub(crate) fn tanh_double(x: f64) -> f64 {
    let (a, z) = (x.abs(), x * x);
    let p = z.mul_add(-9.643_991_794_250_522_386_28e-1, -9.928_772_310_019_185_865_64e1);
    let p = p.mul_add(z, -1.614_687_684_417_084_479_52e3);
    let q = (z + 1.128_116_784_916_329_314_02e2).mul_add(z, 2.235_488_390_601_004_485_83e3);
    let q = q.mul_add(z, 4.844_063_053_251_254_860_48e3);
    let near = (a * z).mul_add(p / q, a);
    let far = 1.0 - 2.0 / (exp_double(a + a) + 1.0);
    (if a < 0.625 { near } else { far }).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

    #[test]
    fn logarithms_of_doubles_are_within_two_ulps_of_the_library() {
        let n = if cfg!(miri) { 100 } else { 400_000 };
        let ends = [1.0, FRAC_1_SQRT_2, SQRT_2, 5e-324, 1e-310, f64::MIN_POSITIVE, f64::MAX];
        let near = (0..n).map(|i| 0.5 + i as f64 / n as f64);
        let far = (1..n).map(|i| f64::from_bits((0x7ff0 << 48) / n as u64 * i as u64));
        for x in near.chain(far).chain(ends) {
            let (got, want) = (ln_double(x), libm::log(x));
            assert!(got.to_bits().abs_diff(want.to_bits()) <= 2, "ln({x:e}) = {got:e}, not {want:e}");
        }
        let inf = f64::INFINITY;
        assert_eq!([ln_double(0.0), ln_double(-0.0), ln_double(inf)], [-inf, -inf, inf]);
        assert!([-1.0, -5e-324, -inf, f64::NAN].iter().all(|&x| ln_double(x).is_nan()));
    }

    #[test]
    fn exponentials_of_doubles_are_within_two_ulps_of_the_library() {
        let n = if cfg!(miri) { 100 } else { 400_000 };
        let ends = [0.0, -0.0, 709.782_712_893_384, 709.782_712_893_385, -745.133_219_101_941, -746.0, -708.4, 1e-300];
        for x in (0..n).map(|i| (i as f64 / n as f64 - 0.512) * 1460.0).chain(ends) {
            let (got, want) = (exp_double(x), libm::exp(x));
            let apart = (got.to_bits() as i64).abs_diff(want.to_bits() as i64);
            assert!(apart <= 2, "exp({x:e}) = {got:e}, not {want:e}");
        }
        assert_eq!(
            [exp_double(f64::INFINITY), exp_double(f64::NEG_INFINITY), exp_double(0.0)],
            [f64::INFINITY, 0.0, 1.0]
        );
        assert!(exp_double(f64::NAN).is_nan());
    }

    #[test]
    fn hyperbolic_tangents_of_doubles_are_within_two_ulps_of_the_library() {
        let n = if cfg!(miri) { 100 } else { 400_000 };
        let ends = [0.0, -0.0, 0.625, 1e-310, 1e300, f64::INFINITY, f64::NEG_INFINITY];
        for x in (0..n).map(|i| (i as f64 / n as f64 - 0.5) * 50.0).chain(ends) {
            let (got, want) = (tanh_double(x), libm::tanh(x));
            let apart = (got.to_bits() as i64).abs_diff(want.to_bits() as i64);
            assert!(apart <= 3, "tanh({x:e}) = {got:e}, not {want:e}");
            let (got, want) = (sigmoid_double(x), 1.0 / (1.0 + libm::exp(-x)));
            assert!((got - want).abs() <= 4e-16 * want, "sigmoid({x:e}) = {got:e}, not {want:e}");
        }
        assert!(tanh_double(f64::NAN).is_nan() && sigmoid_double(f64::NAN).is_nan());
    }
}
