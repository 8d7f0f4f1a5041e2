//! Means and sums of squared distances of parts of a tensor, and the parts normalised while they are in a cache.

use super::channels::SHARED;
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

    /// From sums of the distances of `count` elements from a number near their mean, and of the squares of these. None where the
    /// squares of singles overflow or lose digits, or the number is not near.
    #[inline(always)]
    pub(super) fn about(near: f64, [apart, squares]: [f64; 2], count: usize) -> Option<Moments> {
        let shift = apart / count as f64;
        let held = (1e-30..1e36).contains(&squares) && shift * apart <= 0.5 * squares;
        held.then_some(Moments { mean: near + shift, squares: squares - shift * apart })
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
    let total = runs.clone().fold(0.0, |t, run| t + isa::run(RunSums(run, None))[0]);
    let near = T::of(total / count as f64);
    let sums = runs.clone().fold([0.0; 2], |[apart, squares], run| {
        let of_run = isa::run(RunSums(run, Some(near)));
        [apart + of_run[0], squares + of_run[1]]
    });
    Moments::about(near.wide(), sums, count).unwrap_or_else(|| wide_moments(runs, count))
}

/// As [`moments`], in double precision throughout.
#[cold]
#[inline(never)]
pub(super) fn wide_moments<'a, T: Real>(runs: impl Iterator<Item = &'a [T]> + Clone, count: usize) -> Moments {
    let total = runs.clone().fold(0.0, |t, run| t + isa::run(Distances(run, None)));
    let mean = total / count as f64;
    let squares = runs.fold(0.0, |t, run| t + isa::run(Distances(run, Some(mean))));
    Moments { mean, squares }
}

/// Elements whose sums are of their own type; sums of more are doubles.
pub(super) const NARROW: usize = 2048;

/// The sum of a run; or the sums of its distances from a number, and of their squares.
struct RunSums<'a, T>(&'a [T], Option<T>);
impl<T: Real> isa::Work for RunSums<'_, T> {
    type Out = [f64; 2];
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) -> [f64; 2] {
        match self.1 {
            None => [run_sum(self.0), 0.0],
            Some(near) => distance_sums(self.0, near),
        }
    }
}

#[inline(always)]
pub(super) fn run_sum<T: Real>(run: &[T]) -> f64 {
    let mut total = 0.0;
    for part in run.chunks(NARROW) {
        total += sum(part, |x| x).wide();
    }
    total
}

/// The parts of [`distance_sums`].
pub(super) const PARTS: usize = 32;

/// Sums of the distances from a number, and of their squares, in interleaved parts.
#[inline(always)]
pub(super) fn distance_sums<T: Real>(run: &[T], near: T) -> [f64; 2] {
    let mut totals = [0.0; 2];
    for part in run.chunks(NARROW) {
        let (mut apart, mut squares) = ([T::zero(); PARTS], [T::zero(); PARTS]);
        let (rows, rest) = part.as_chunks::<PARTS>();
        for row in rows {
            for i in 0..PARTS {
                let d = row[i] - near;
                apart[i] += d;
                squares[i] += d * d;
            }
        }
        // As in `lanes`.
        let mut all = [apart, squares];
        std::hint::black_box(&mut all);
        let [mut apart, mut squares] = all;
        for (i, &x) in rest.iter().enumerate() {
            let d = x - near;
            apart[i] += d;
            squares[i] += d * d;
        }
        let mut n = PARTS / 2;
        while n > 0 {
            for i in 0..n {
                apart[i] += apart[i + n];
                squares[i] += squares[i + n];
            }
            n /= 2;
        }
        totals[0] += apart[0].wide();
        totals[1] += squares[0].wide();
    }
    totals
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
pub(super) struct Distances<'a, T>(pub(super) &'a [T], pub(super) Option<f64>);
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
    /// Elements of a run.
    pub(super) run: usize,
    /// From the first run of a part to that of the next one.
    pub(super) part: usize,
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
        let threads = if out.numel() < SHARED { 1 } else { threads };
        par::pieces(threads, found, 1, &|part, m| {
            let (src, dst) = shared.get();
            let start = |k: usize| part * self.part + k * self.step;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_singles_are_those_of_doubles() {
        let wave = |n: usize, scale: f32, mean: f32| -> Vec<f32> {
            (0..n).map(|i| mean + scale * (((i * 7919) % 101) as f32 * 0.02 - 1.0)).collect()
        };
        // Far from zero, squares that overflow or vanish, all equal, more elements than one sum takes.
        for row in [
            wave(768, 1.0, 0.0),
            wave(300, 0.5, 1e4),
            wave(70, 1e25, 0.0),
            wave(70, 1e-25, 0.0),
            wave(33, 0.0, 0.1),
            wave(1, 1.0, 3.0),
            wave(5000, 2.0, -1.0),
            wave(40, 3e38, 0.0),
        ] {
            let n = row.len() as f64;
            let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
            let squares: f64 = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum();
            isa::tests::on_each(|isa| {
                let got = moments(row.chunks(3000), row.len());
                let near = |a: f64, b: f64, unit: f64| (a - b).abs() <= 1e-6 * unit;
                let spread = (squares / n).sqrt();
                assert!(near(got.mean, mean, mean.abs().max(spread)), "{isa:?} {} {mean}", got.mean);
                assert!(
                    near(got.squares, squares, squares + 1e-12 * n * mean * mean),
                    "{isa:?} {} {squares}",
                    got.squares
                );
            });
        }
        for x in [f32::NAN, f32::INFINITY] {
            let row = [1.0, x, 2.0];
            assert!(moments(std::iter::once(&row[..]), 3).squares.is_nan(), "{x}");
        }
    }
}
