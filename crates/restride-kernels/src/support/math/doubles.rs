//! Functions of doubles without branches, calls or tables, but for `mul_add` as in `math.rs`.

/// Added and taken away, it rounds a number below 2^51 to the nearest integer, which stays in the low bits of the sum.
pub(super) const MAGIC: f64 = 6_755_399_441_055_744.0;

/// `e^x` of a double, subnormal results included. Error below 1 ulp.
#[inline(always)]
pub(crate) fn exp_double(x: f64) -> f64 {
    // Below, the result rounds to 0; above, to infinity.
    let x = if x < -746.0 { -746.0 } else { x };
    let x = if x > 710.0 { 710.0 } else { x };
    // With twice the bias of the exponent.
    let magic = MAGIC + 2046.0;
    let sum = x.mul_add(std::f64::consts::LOG2_E, magic);
    let n = sum - magic;
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

/// `ln(1 + x)` of a double. Error below 2 ulp.
#[inline(always)]
pub(crate) fn ln_1p_double(x: f64) -> f64 {
    let u = 1.0 + x;
    // What the sum lost, exactly.
    let lost = if x < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    let more = if u > 0.0 && u < f64::INFINITY { lost / u } else { 0.0 };
    let y = ln_double(u) + more;
    // For -0, and where the sum lost all.
    if x.abs() < 1e-16 { x } else { y }
}

/// Error function of a double. Error below 2 ulp.
#[inline(always)]
pub(crate) fn erf_double(x: f64) -> f64 {
    let (a, z) = (x.abs(), x * x);
    // `erf(x) / x` up to 1, interpolated as the polynomial of `exp_double` is.
    let p = z.mul_add(-7.795_898_827_002_142_5e-10, 1.372_006_454_677_768_6e-8);
    let p = p.mul_add(z, -1.620_848_380_187_170_5e-7).mul_add(z, 1.644_742_470_331_736_2e-6);
    let p = p.mul_add(z, -1.492_473_690_741_966_1e-5).mul_add(z, 1.205_529_490_483_970_7e-4);
    let p = p.mul_add(z, -8.548_325_975_389_691_8e-4).mul_add(z, 5.223_977_607_116_422_5e-3);
    let p = p.mul_add(z, -2.686_617_064_323_777e-2).mul_add(z, 1.128_379_167_094_500_6e-1);
    let p = p.mul_add(z, -3.761_263_890_318_354_3e-1).mul_add(z, std::f64::consts::FRAC_2_SQRT_PI);
    // `e^(t²) erfc(t)` from 1 on; from 6 on the result rounds to 1.
    let t = if a > 6.0 { 6.0 } else { a };
    let s = (t - 3.0) / (t + 3.0);
    let q = s.mul_add(1.280_190_086_296_266_2e-6, 2.023_603_179_641_756_8e-6);
    let q = q.mul_add(s, -8.008_021_319_412_684_8e-6).mul_add(s, -1.284_889_451_252_352_9e-5);
    let q = q.mul_add(s, 6.406_182_073_530_546_5e-5).mul_add(s, 4.525_472_635_483_354_3e-5);
    let q = q.mul_add(s, -5.970_623_517_093_284_2e-4).mul_add(s, 7.077_464_443_901_537_8e-4);
    let q = q.mul_add(s, 4.269_136_347_508_256_3e-3).mul_add(s, -2.439_249_931_827_319_4e-2);
    let q = q.mul_add(s, 7.166_583_719_774_874_4e-2).mul_add(s, -1.501_159_365_007_874_4e-1);
    let q = q.mul_add(s, 2.456_038_017_123_319_5e-1).mul_add(s, -3.262_335_600_430_371_6e-1);
    let q = q.mul_add(s, 1.790_011_511_813_899_6e-1);
    let far = (-exp_double(-t * t)).mul_add(q, 1.0);
    if a < 1.0 { x * p } else { far.copysign(x) }
}

/// Up to here (and -here) [`sin_double`] and [`cos_double`] are right; beyond, ask the library.
pub(crate) const LARGEST_DOUBLE_ANGLE: f64 = 1_048_576.0;

/// Sine, or a quarter turn on the cosine, of an angle up to [`LARGEST_DOUBLE_ANGLE`]: the coefficients of FreeBSD's `sin` and `cos`.
#[inline(always)]
fn sin_turned(x: f64, quarters: u64) -> f64 {
    let sum = x.mul_add(std::f64::consts::FRAC_2_PI, MAGIC);
    let n = sum - MAGIC;
    // pi/2 in three parts. The first difference is exact.
    let r = n.mul_add(-std::f64::consts::FRAC_PI_2, x);
    let r = n.mul_add(-6.123_233_995_736_766e-17, r);
    let r = n.mul_add(1.497_384_904_859_183_3e-33, r);
    let z = r * r;
    let p = z.mul_add(1.589_690_995_211_550_102_21e-10, -2.505_076_025_340_686_341_95e-8);
    let p = p.mul_add(z, 2.755_731_370_707_006_767_89e-6).mul_add(z, -1.984_126_982_985_794_931_34e-4);
    let p = p.mul_add(z, 8.333_333_333_322_489_461_24e-3).mul_add(z, -1.666_666_666_666_663_243_48e-1);
    let sine = p.mul_add(z * r, r);
    let q = z.mul_add(-1.135_964_755_778_819_482_65e-11, 2.087_572_321_298_174_827_9e-9);
    let q = q.mul_add(z, -2.755_731_435_139_066_330_35e-7).mul_add(z, 2.480_158_728_947_672_941_78e-5);
    let q = q.mul_add(z, -1.388_888_888_887_410_957_49e-3).mul_add(z, 4.166_666_666_666_660_190_37e-2);
    // `1 - z/2`, and what that lost.
    let (half, w) = (0.5 * z, 1.0 - 0.5 * z);
    let cosine = w + (z * z).mul_add(q, (1.0 - w) - half);
    let n = sum.to_bits().wrapping_add(quarters);
    let y = if n & 1 == 0 { sine } else { cosine };
    f64::from_bits(y.to_bits() ^ ((n & 2) << 62))
}

/// Sine of an angle up to [`LARGEST_DOUBLE_ANGLE`]. Error below 1.5 ulp.
#[inline(always)]
pub(crate) fn sin_double(x: f64) -> f64 {
    // For -0.
    if x == 0.0 { x } else { sin_turned(x, 0) }
}

/// Cosine of an angle up to [`LARGEST_DOUBLE_ANGLE`]. Error below 1.5 ulp.
#[inline(always)]
pub(crate) fn cos_double(x: f64) -> f64 {
    sin_turned(x, 1)
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

    /// Whether all are within some ulps of what the library says.
    fn hold(name: &str, ulps: u64, f: fn(f64) -> f64, want: fn(f64) -> f64, xs: impl Iterator<Item = f64>) {
        for x in xs {
            let (got, want) = (f(x), want(x));
            let apart = (got.to_bits() as i64).abs_diff(want.to_bits() as i64);
            assert!(apart <= ulps || got.is_nan() && want.is_nan(), "{name}({x:e}) = {got:e}, not {want:e}");
        }
    }

    #[test]
    fn other_functions_of_doubles_are_within_three_ulps_of_the_library() {
        let n = if cfg!(miri) { 100 } else { 400_000 };
        let around = |by: f64| (0..=n).map(move |i| (i as f64 / n as f64 - 0.5) * by);
        let tiny = (1..n).map(|i| f64::from_bits((0x3ff0 << 48) / n as u64 * i as u64)).flat_map(|x| [x, -x]);
        let ends = [0.0, -0.0, 5e-324, 1e-16, -1e-16, 2e-16, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300];
        hold("erf", 3, erf_double, libm::erf, around(14.0).chain(tiny.clone()).chain(ends));
        let above = around(1.9).chain((0..n).map(|i| 1e-3 * i as f64)).chain([-1.0, -1.5, 1e308]);
        hold("ln_1p", 3, ln_1p_double, libm::log1p, above.chain(tiny.clone()).chain(ends));
        let quarters = (0..n).map(|i| f64::from(i) * std::f64::consts::FRAC_PI_2);
        let angles = around(20.0).chain(around(2e6)).chain(quarters).chain(tiny).chain([0.0, -0.0, 5e-324]);
        let angles = angles.filter(|x| x.abs() <= LARGEST_DOUBLE_ANGLE);
        hold("sin", 2, sin_double, libm::sin, angles.clone());
        hold("cos", 2, cos_double, libm::cos, angles);
    }
}
