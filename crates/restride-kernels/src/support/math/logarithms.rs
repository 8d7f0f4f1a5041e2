//! Logarithms.

use super::{BIAS, LN_2_HIGH, LN_2_LOW, power_of_2};

/// Mantissa less 1, in `sqrt(1/2) - 1 ..= sqrt(2) - 1`, and exponent of a positive normal number.
#[inline(always)]
fn split(x: f32) -> (f32, i32) {
    let bits = x.to_bits();
    let e = (bits.wrapping_sub(0x3f35_04f3) as i32) >> 23;
    (f32::from_bits(bits.wrapping_sub((e as u32) << 23)) - 1.0, e)
}

/// As [`split`], also of subnormal numbers.
#[inline(always)]
fn split_any(x: f32) -> (f32, f32) {
    let small = x < f32::MIN_POSITIVE;
    let (f, e) = split(if small { x * 8_388_608.0 } else { x });
    (f, if small { e - 23 } else { e } as f32)
}

/// `ln(1 + f) - f + f²/2` for a mantissa less 1.
#[inline(always)]
fn ln_tail(f: f32, z: f32) -> f32 {
    let p = f.mul_add(-7.861_664_146e-2, 1.288_298_666e-1);
    let p = p.mul_add(z, f.mul_add(-1.312_852_353e-1, 1.418_094_486e-1));
    let p = p.mul_add(z, f.mul_add(-1.662_455_648e-1, 2.000_230_104e-1));
    p.mul_add(z, f.mul_add(-2.500_081_062e-1, 3.333_331_645e-1)) * (f * z)
}

/// `ln(1 + f) + e ln 2`.
#[inline(always)]
fn ln_of(f: f32, e: f32) -> f32 {
    let z = f * f;
    let y = e.mul_add(LN_2_LOW, ln_tail(f, z));
    e.mul_add(LN_2_HIGH, f + z.mul_add(-0.5, y))
}

/// The logarithm `y` of `x`, put right where `x` is not positive and finite.
#[inline(always)]
fn ln_defined(x: f32, y: f32) -> f32 {
    let y = if x < f32::INFINITY { y } else { x };
    let y = if x >= 0.0 { y } else { f32::NAN };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// `log2(1 + f) + e`.
#[inline(always)]
fn log2_of(f: f32, e: f32) -> f32 {
    const MORE: f32 = 0.442_695_04;
    let z = f * f;
    let y = z.mul_add(-0.5, ln_tail(f, z));
    ((y.mul_add(MORE, f * MORE) + y) + f) + e
}

/// `log10(1 + f) + e log10(2)`.
#[inline(always)]
fn log10_of(f: f32, e: f32) -> f32 {
    let z = f * f;
    let y = z.mul_add(-0.5, ln_tail(f, z));
    // log10(e) and log10(2), each in two parts.
    let low = (f + y).mul_add(7.007_319_03e-4, e * 2.487_456_64e-4);
    e.mul_add(3.007_812_5e-1, f.mul_add(4.335_937_5e-1, y.mul_add(4.335_937_5e-1, low)))
}

/// Declares logarithms of all numbers, and of those that are positive and normal: the same bits with fewer cases.
macro_rules! logarithms {
    ($($name:ident, $usual:ident, $of:ident, $doc:literal;)*) => {$(
        #[doc = $doc]
        #[inline(always)]
        pub(crate) fn $name(x: f32) -> f32 {
            let (f, e) = split_any(x);
            ln_defined(x, $of(f, e))
        }

        #[doc = concat!("As [`", stringify!($name), "`], of a positive normal number.")]
        #[inline(always)]
        pub(crate) fn $usual(x: f32) -> f32 {
            let (f, e) = split(x);
            $of(f, e as f32)
        }
    )*};
}
logarithms! {
    ln, ln_usual, ln_of, "Natural logarithm. Error below 1 ulp.";
    log2, log2_usual, log2_of, "Logarithm of base 2. Error below 1.6 ulp.";
    log10, log10_usual, log10_of, "Logarithm of base 10. Error below 2 ulp.";
}

/// Below [`UNUSUAL`] for positive normal numbers.
#[inline(always)]
pub(crate) fn unusual(x: f32) -> u32 {
    x.to_bits().wrapping_sub(f32::MIN_POSITIVE.to_bits())
}

/// The least [`unusual`] of a number that is not positive, normal and finite.
pub(crate) const UNUSUAL: u32 = f32::INFINITY.to_bits() - f32::MIN_POSITIVE.to_bits();

/// `ln(1 + x)`. Error below 1.5 ulp.
#[inline(always)]
pub(crate) fn ln_1p(x: f32) -> f32 {
    let u = 1.0 + x;
    let (f, e) = split(u);
    // What rounding took from 1 + x, at the mantissa's scale.
    let lost = if x < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    let f = if e == 0 {
        x
    } else {
        lost.mul_add(power_of_2((BIAS as i32).wrapping_sub(if e < 100 { e } else { 100 }) as u32), f)
    };
    let y = ln_defined(u, ln_of(f, e as f32));
    // For -0.
    if x.abs() < 1e-8 { x } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_logarithms_have_the_bits_of_all() {
        for bits in (0..=u32::MAX).step_by(if cfg!(miri) { 10_000_019 } else { 65_519 }) {
            let x = f32::from_bits(bits);
            assert_eq!(unusual(x) < UNUSUAL, x.is_normal() && x > 0.0, "{x:e}");
            if unusual(x) < UNUSUAL {
                for (usual, any) in [(ln_usual(x), ln(x)), (log2_usual(x), log2(x)), (log10_usual(x), log10(x))] {
                    assert_eq!(usual.to_bits(), any.to_bits(), "{x:e}");
                }
            }
        }
    }
}
