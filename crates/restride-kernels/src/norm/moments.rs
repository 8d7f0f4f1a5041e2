//! Means and sums of squared distances of parts of a tensor, and the parts normalised while they are in a cache.

use super::{Factor, Scaled};
use crate::norm::softmax::{dense, sum};
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::Compute;
use crate::support::par;
use restride_tensor::{View, ViewMut};

/// Mean and sum of squared deviations.
#[derive(Clone, Copy, Default)]
pub(super) struct Moments {
    pub(super) mean: f64,
    pub(super) squares: f64,
}

impl Moments {
    /// Inverse standard deviation of `count` elements.
    pub(super) fn rstd(self, count: usize, eps: f64) -> f64 {
        1.0 / (self.squares / count as f64 + eps).sqrt()
    }

    /// Scale and shift of a channel that normalise `count` elements and apply its weight and bias.
    pub(super) fn factors(
        self,
        (count, eps): (usize, f64),
        (weight, bias): (Option<&[f64]>, Option<&[f64]>),
        channel: usize,
    ) -> (f64, f64) {
        let scale = self.rstd(count, eps) * weight.map_or(1.0, |w| w[channel]);
        (scale, bias.map_or(0.0, |b| b[channel]) - self.mean * scale)
    }
}

/// Of runs of elements taken together.
pub(super) fn moments<'a, T: Real>(runs: impl Iterator<Item = &'a [T]> + Clone, count: usize) -> Moments {
    let total = runs.clone().fold(0.0, |t, run| t + isa::run(Distances(run, None)));
    let mean = total / count as f64;
    let squares = runs.fold(0.0, |t, run| t + isa::run(Distances(run, Some(mean))));
    Moments { mean, squares }
}

/// Channels whose moments are computed side by side.
pub(super) const COLUMNS: usize = 64;

/// Moments of channels of one element a sample, as [`moments`] has them, some channels at a time.
pub(super) struct ColumnMoments<'a, T> {
    pub(super) data: &'a [T],
    pub(super) channels: usize,
    /// The first channel of `to`, which has [`COLUMNS`] at most.
    pub(super) first: usize,
    pub(super) to: &'a mut [Moments],
}
impl<T: Real> isa::Work for ColumnMoments<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        let ColumnMoments { data, channels, first, to } = self;
        let n = to.len();
        let rows = || data.chunks_exact(channels).map(|row| &row[first..first + n]);
        let count = rows().len() as f64;
        let mut means = [0.0; COLUMNS];
        rows().for_each(|row| means.iter_mut().zip(row).for_each(|(t, x)| *t += x.wide()));
        means.iter_mut().for_each(|t| *t /= count);
        let mut squares = [0.0; COLUMNS];
        rows().for_each(|row| {
            squares.iter_mut().zip(&means).zip(row).for_each(|((t, mean), x)| {
                let d = x.wide() - mean;
                *t += d * d;
            });
        });
        to.iter_mut().zip(means).zip(squares).for_each(|((m, mean), squares)| *m = Moments { mean, squares });
    }
}

/// The sum of a run, or of its squared distances from a mean.
struct Distances<'a, T>(&'a [T], Option<f64>);
impl<T: Real> isa::Work for Distances<'_, T> {
    type Out = f64;
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) -> f64 {
        match self.1 {
            None => sum(self.0, |x| x.wide()),
            Some(mean) => distances(self.0, mean),
        }
    }
}

#[inline(always)]
pub(super) fn distances<T: Real>(run: &[T], mean: f64) -> f64 {
    sum(run, |x| {
        let d = x.wide() - mean;
        d * d
    })
}

/// The parts of a contiguous tensor that are normalised together: each has runs of elements, at a distance, and all elements of a row
/// are of one channel.
pub(super) struct NormParts {
    /// Elements of a run; the first one of a part is behind that of the part before.
    pub(super) run: usize,
    /// From a run of a part to its next one.
    pub(super) step: usize,
    /// Runs of a part.
    pub(super) runs: usize,
    /// Elements of a row.
    pub(super) row: usize,
    /// Channels, which rows go through in turn.
    pub(super) channels: usize,
}

impl NormParts {
    /// Finds the moments of each part, and writes the part while it is in a cache: `x * scale + shift`, with the `factors` of the
    /// moments and a channel. Nothing is done, which the result says, if memory is in another order or has fewer parts than threads.
    /// The result may share the memory of `x` index by index.
    pub(super) fn normalise<T: Real + Compute, N: Factor<T>>(
        &self,
        x: &View<'_>,
        out: &ViewMut<'_>,
        found: &mut [Moments],
        factors: &(dyn Fn(&Moments, usize) -> (N, N) + Sync),
        threads: usize,
    ) -> bool {
        let as_is =
            dense::<T>(x.dtype(), x.layout()) && dense::<T>(out.dtype(), out.layout()) && x.sizes() == out.sizes();
        if !as_is || out.numel() == 0 || found.len() < threads {
            return false;
        }
        assert_eq!(found.len() * self.run * self.runs, out.numel(), "the parts are all of the tensor");
        let (src, dst) = (x.ptr::<T>(), out.ptr::<T>());
        let same = std::ptr::eq(src, dst);
        // SAFETY: each part is one thread's, and the operand shares memory with the result index by index at most.
        let shared = unsafe { par::Across::new((src, dst)) };
        let threads = if out.numel() < 1 << 14 { 1 } else { threads };
        par::pieces(threads, found, 1, &|part, m| {
            let (src, dst) = shared.get();
            let start = |k: usize| part * self.run + k * self.step;
            // SAFETY: runs of this part, which nothing writes meanwhile.
            let run = |k: usize| unsafe { std::slice::from_raw_parts(src.add(start(k)), self.run) };
            m[0] = moments((0..self.runs).map(run), self.run * self.runs);
            for at in (0..self.runs).flat_map(|k| (start(k)..start(k) + self.run).step_by(self.row)) {
                let (scale, shift) = factors(&m[0], at / self.row % self.channels);
                // SAFETY: a row of this part; the operand's is another memory, or is not looked at.
                let to = unsafe { std::slice::from_raw_parts_mut(dst.add(at), self.row) };
                match same {
                    true => isa::run(Scaled::One(to, scale, shift)),
                    // SAFETY: as above.
                    false => isa::run(Scaled::To(
                        unsafe { std::slice::from_raw_parts(src.add(at), self.row) },
                        to,
                        scale,
                        shift,
                    )),
                }
            }
        });
        true
    }
}
