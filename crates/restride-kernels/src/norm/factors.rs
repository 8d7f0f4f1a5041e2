//! The numbers of each channel that batch normalisation with given statistics multiplies by and adds.

use super::Affine;
use crate::support::convert::{load_row, singles_mut};
use crate::support::isa;
use crate::support::number::Real;
use restride_tensor::{DType, View};

/// What batch normalisation with given statistics multiplies by and adds, for each channel: those of [`scale_row`](super::scale_row).
// No type is left open: other crates would compile the loop, and without vectors.
pub fn row_factors(
    mean: &View<'_>,
    var: &View<'_>,
    affine: Affine<'_>,
    eps: f64,
    scale: &mut [f32],
    shift: &mut [f32],
) -> Result<(), String> {
    batch_factors(mean, var, affine, eps, scale, shift)
}

/// As [`row_factors`], of any type.
pub(super) fn batch_factors<N: Real>(
    mean: &View<'_>,
    var: &View<'_>,
    affine_: Affine<'_>,
    eps: f64,
    scale: &mut [N],
    shift: &mut [N],
) -> Result<(), String> {
    let channels = mean.numel();
    let vectors = [Some(mean), Some(var), affine_.weight.as_ref(), affine_.bias.as_ref()];
    let fit = |v: &View<'_>| v.sizes().len() <= 1 && v.numel() == channels;
    if !vectors.into_iter().flatten().all(fit) || scale.len() != channels || shift.len() != channels {
        return Err(format!("statistics and parameters are vectors of {channels} channels"));
    }
    if let [Some(m), Some(v), Some(w), Some(b)] = vectors.map(|v| v.and_then(single_run))
        && let (Some(scale), Some(shift)) = (singles_mut(scale), singles_mut(shift))
    {
        isa::run(SingleNumbers { of: [m, v, w, b], eps, scale, shift });
        return Ok(());
    }
    // Some channels at a time, so that no operand has to be put in order as a whole.
    const SOME: usize = 64;
    let read = |v: &View<'_>, first: usize, to: &mut [f64]| {
        let step = v.strides().first().map_or(1, |&s| s as isize);
        let cell = v.layout().offset as isize + first as isize * step;
        // SAFETY: elements of a vector of `channels`.
        unsafe { load_row(v.dtype(), v.base(), cell, step, to) }
    };
    for first in (0..channels).step_by(SOME) {
        let n = SOME.min(channels - first);
        let [mut m, mut v, mut w, mut b] = [[0.0; SOME], [0.0; SOME], [1.0; SOME], [0.0; SOME]];
        read(mean, first, &mut m[..n]);
        read(var, first, &mut v[..n]);
        if let Some(weight) = &affine_.weight {
            read(weight, first, &mut w[..n]);
        }
        if let Some(bias) = &affine_.bias {
            read(bias, first, &mut b[..n]);
        }
        isa::run(ChannelNumbers([&mut m[..n], &mut v[..n], &mut w[..n], &mut b[..n]], eps));
        for i in 0..n {
            scale[first + i] = N::of(w[i]);
            shift[first + i] = N::of(b[i]);
        }
    }
    Ok(())
}

/// What a channel is multiplied by, and what is added to it, from its mean, variance, weight and bias.
#[inline(always)]
fn channel_factors([mean, var, weight, bias]: [f64; 4], eps: f64) -> (f64, f64) {
    let scale = weight * (1.0 / (var + eps).sqrt());
    (scale, bias - mean * scale)
}

/// Mean, variance, weight and bias of some channels, which become what these are multiplied by, and what is added: the last two.
/// Roots and quotients take longer than all else, unless they are those of vectors.
struct ChannelNumbers<'a>([&'a mut [f64]; 4], f64);
impl isa::Work for ChannelNumbers<'_> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let ChannelNumbers([mean, var, weight, bias], eps) = self;
        for (((m, v), w), b) in mean.iter().zip(var.iter()).zip(weight).zip(bias) {
            (*w, *b) = channel_factors([*m, *v, *w, *b], eps);
        }
    }
}

/// The elements of a vector of `f32`, where they are neighbours in memory.
fn single_run<'a>(v: &'a View<'_>) -> Option<&'a [f32]> {
    let dense = v.dtype() == DType::F32 && v.layout().is_contiguous();
    // SAFETY: all elements of the view, which are not written while it is in use.
    dense.then(|| unsafe { std::slice::from_raw_parts(v.ptr::<f32>(), v.numel()) })
}

/// As [`ChannelNumbers`], of runs of `f32`: mean, variance, weight and bias.
struct SingleNumbers<'a> {
    of: [&'a [f32]; 4],
    eps: f64,
    scale: &'a mut [f32],
    shift: &'a mut [f32],
}
impl isa::Work for SingleNumbers<'_> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let SingleNumbers { of: [mean, var, weight, bias], eps, scale, shift } = self;
        let numbers = mean.iter().zip(var).zip(weight).zip(bias);
        for ((scale, shift), (((&m, &v), &w), &b)) in scale.iter_mut().zip(shift).zip(numbers) {
            let (by, add) = channel_factors([m, v, w, b].map(f64::from), eps);
            (*scale, *shift) = (by as f32, add as f32);
        }
    }
}
