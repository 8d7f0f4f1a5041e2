//! The complementary error function and the inverse of the error function.

use super::{exp2_wide, ln};

/// Complementary error function. Error below 0.7 ulp.
#[inline(always)]
pub(crate) fn erfc(x: f32) -> f32 {
    let x = x as f64;
    let t = x.abs();
    // From here on the result rounds to 0.
    let t = if t > 10.2 { 10.2 } else { t };
    // `e^(t²) (1 + t) erfc(t)` is smooth in `(t - 2) / (t + 2)`. One division serves both denominators.
    let (near, far) = (t + 1.0, t + 2.0);
    let below = near * far;
    // A single's quotient, and a step of Newton's method.
    let both = f64::from(1.0 / below as f32);
    let both = (-below).mul_add(both, 1.0).mul_add(both, both);
    let s = (t - 2.0) * near * both;
    let p = s.mul_add(3.084_890_492_208_747e-5, -1.077_155_151_877_340_3e-4);
    let p = p.mul_add(s, -6.145_076_669_510_319e-4).mul_add(s, 1.492_803_162_181_981_9e-4);
    let p = p.mul_add(s, 3.900_360_538_816_247e-3).mul_add(s, -5.237_836_866_290_452e-4);
    let p = p.mul_add(s, -2.523_704_172_994_080_4e-2).mul_add(s, 4.253_725_920_603_217e-2);
    let p = p.mul_add(s, 3.781_348_172_362_467e-2).mul_add(s, -2.599_748_702_284_130_4e-1);
    let p = p.mul_add(s, 7.661_870_333_933_135e-1);
    let y = p * (far * both) * exp2_wide(-(t * t) * std::f64::consts::LOG2_E);
    (if x < 0.0 { 2.0 - y } else { y }) as f32
}

/// Inverse of the error function. Error below 3.5 ulp.
#[inline(always)]
pub(crate) fn erfinv(x: f32) -> f32 {
    let w = -ln((1.0 - x) * (1.0 + x));
    // Over `x` it is smooth in `w`, and in its root further out.
    let t = w - 2.5;
    let p = t.mul_add(-8.590_431_477_273_341e-9, 2.318_436_465_031_936_7e-8);
    let p = p.mul_add(t, 4.633_813_261_989_417e-7).mul_add(t, -3.462_115_955_699_118_8e-6);
    let p = p.mul_add(t, -4.950_466_063_746_717e-6).mul_add(t, 2.183_422_184_314_441_4e-4);
    let p = p.mul_add(t, -1.252_763_788_215_816e-3).mul_add(t, -4.177_384_078_502_655e-3);
    let near = p.mul_add(t, 2.466_402_947_902_679_4e-1).mul_add(t, 1.501_409_411_430_358_9);
    let t = w.sqrt() - 3.0;
    let p = t.mul_add(1.091_937_738_237_902_5e-4, -3.010_510_408_785_194e-4);
    let p = p.mul_add(t, -4.961_312_515_661_120_4e-5).mul_add(t, 1.474_504_475_481_808_2e-3);
    let p = p.mul_add(t, -3.599_938_238_039_612_8e-3).mul_add(t, 5.691_121_798_008_68e-3);
    let p = p.mul_add(t, -7.636_949_885_636_568e-3).mul_add(t, 9.444_764_815_270_9e-3);
    let far = p.mul_add(t, 1.001_675_009_727_478).mul_add(t, 2.832_976_818_084_717);
    let y = x * if w < 5.0 { near } else { far };
    if x.abs() == 1.0 { x * f32::INFINITY } else { y }
}
