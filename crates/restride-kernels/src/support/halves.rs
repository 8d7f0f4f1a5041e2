//! The 16-bit floats to and from singles, by the processor's instructions where it has them.

use crate::support::isa;
use half::slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _};
use restride_tensor::{bf16, f16};

/// `bf16` to `f32`.
///
/// # Panics
/// If the rows have different lengths, as all functions here.
pub(super) fn from_brain(row: &[bf16], to: &mut [f32]) {
    assert_eq!(row.len(), to.len(), "rows are of one length");
    isa::run(FromBrain(row, to));
}

struct FromBrain<'a>(&'a [bf16], &'a mut [f32]);
impl isa::Work for FromBrain<'_> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        self.1.iter_mut().zip(self.0).for_each(|(o, x)| *o = f32::from_bits((x.to_bits() as u32) << 16));
    }
}

/// `f32` to the bits of `bf16`, to nearest even.
pub(super) fn to_brain(row: &[f32], to: &mut [u16]) {
    assert_eq!(row.len(), to.len(), "rows are of one length");
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if isa::isa() == isa::Isa::Avx512 && is_x86_feature_detected!("avx512bf16") {
        // SAFETY: the processor has the instructions.
        if unsafe { converted_to_brain(row, to) } {
            return;
        }
    }
    isa::run(ToBrain(row, to));
}

/// As [`to_brain`], by the instruction for it. False if a number is subnormal: the instruction takes it for 0.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
fn converted_to_brain(row: &[f32], to: &mut [u16]) -> bool {
    use std::arch::x86_64::*;
    /// Subnormal numbers, in the instruction's table of classes.
    const SUBNORMAL: i32 = 0x20;
    let (vectors, rest) = row.as_chunks::<16>();
    let (halves, rest_of_halves) = to.as_chunks_mut::<16>();
    let mut subnormal = 0;
    for (x, half) in vectors.iter().zip(halves) {
        // SAFETY: sixteen numbers of each.
        unsafe {
            let x = _mm512_loadu_ps(x.as_ptr());
            subnormal |= _mm512_fpclass_ps_mask::<SUBNORMAL>(x);
            let near = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x));
            _mm256_storeu_si256(half.as_mut_ptr().cast(), near);
        }
    }
    isa::Work::run(ToBrain(rest, rest_of_halves));
    subnormal == 0
}

/// As [`to_brain`], in plain arithmetic.
struct ToBrain<'a>(&'a [f32], &'a mut [u16]);
impl isa::Work for ToBrain<'_> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        for (o, x) in self.1.iter_mut().zip(self.0) {
            let bits = x.to_bits();
            let round = (bits >> 16 & 1).wrapping_add(0x7fff);
            let near = bits.wrapping_add(round) >> 16;
            *o = if x.is_nan() { bits >> 16 | 0x40 } else { near } as u16;
        }
    }
}

/// `f16` to `f32`.
pub(super) fn from_half(row: &[f16], to: &mut [f32]) {
    assert_eq!(row.len(), to.len(), "rows are of one length");
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if isa::isa() != isa::Isa::Baseline {
        // SAFETY: the processor has the instructions.
        return unsafe { converted_from_half(row, to) };
    }
    row.convert_to_f32_slice(to);
}

/// `f32` to the bits of `f16`, to nearest even.
pub(super) fn to_half(row: &[f32], to: &mut [u16]) {
    assert_eq!(row.len(), to.len(), "rows are of one length");
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if isa::isa() != isa::Isa::Baseline {
        // SAFETY: the processor has the instructions.
        return unsafe { converted_to_half(row, to) };
    }
    to.reinterpret_cast_mut::<f16>().convert_from_f32_slice(row);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,f16c")]
fn converted_from_half(row: &[f16], to: &mut [f32]) {
    use std::arch::x86_64::*;
    let (halves, rest) = row.as_chunks::<8>();
    let (vectors, rest_of_singles) = to.as_chunks_mut::<8>();
    for (half, single) in halves.iter().zip(vectors) {
        // SAFETY: eight numbers of each.
        unsafe { _mm256_storeu_ps(single.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(half.as_ptr().cast()))) };
    }
    rest.convert_to_f32_slice(rest_of_singles);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2,f16c")]
fn converted_to_half(row: &[f32], to: &mut [u16]) {
    use std::arch::x86_64::*;
    let (vectors, rest) = row.as_chunks::<8>();
    let (halves, rest_of_halves) = to.as_chunks_mut::<8>();
    for (single, half) in vectors.iter().zip(halves) {
        // SAFETY: eight numbers of each.
        unsafe {
            let near = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(single.as_ptr()));
            _mm_storeu_si128(half.as_mut_ptr().cast(), near);
        }
    }
    rest_of_halves.reinterpret_cast_mut::<f16>().convert_from_f32_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::isa::tests::on_each;

    #[test]
    fn numbers_become_halves_alike_on_every_instruction_set() {
        let step = if cfg!(miri) { 0x0123_4567 } else { 0x1357 };
        let all: Vec<f32> = (0..=u32::MAX).step_by(step).map(f32::from_bits).collect();
        let normal: Vec<f32> = all.iter().copied().filter(|x| !x.is_subnormal()).collect();
        for row in all.chunks(1000).chain(normal.chunks(1000)) {
            on_each(|isa| {
                let mut bits = vec![0u16; row.len()];
                to_brain(row, &mut bits);
                row.iter().zip(&bits).for_each(|(x, y)| assert_eq!(*y, bf16::from_f32(*x).to_bits(), "{x:e} {isa:?}"));
                to_half(row, &mut bits);
                row.iter().zip(&bits).for_each(|(x, y)| assert_eq!(*y, f16::from_f32(*x).to_bits(), "{x:e} {isa:?}"));
            });
        }
    }

    #[test]
    fn halves_become_numbers_alike_on_every_instruction_set() {
        let step = if cfg!(miri) { 97 } else { 1 };
        let all: Vec<u16> = (0..=u16::MAX).step_by(step).collect();
        let mut row = vec![0f32; all.len()];
        on_each(|isa| {
            from_half(all.reinterpret_cast(), &mut row);
            let same = |(x, y): (&u16, &f32)| y.to_bits() == f16::from_bits(*x).to_f32().to_bits();
            assert!(all.iter().zip(&row).all(same), "{isa:?}");
        });
    }
}
