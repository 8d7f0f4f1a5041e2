//! Moments of channels that lie side by side in memory (channels-last): to the bit those of the same elements in rows.

use super::channels::SHARED;
use super::moments::{Distances, Moments, NARROW, PARTS};
use crate::reduce::joined::side;
use crate::support::array;
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Stored, packed_room};
use crate::support::par;
use crate::support::rows::channels_last_dims;
use crate::support::scratch::{Temp, room};
use restride_tensor::{DType, Layout};

/// Channels whose sums are computed at once.
const BESIDE: usize = 32;
/// The parts of the widest sums.
const SIDES: usize = 64;

/// Samples of positions of channels. A run is a channel of a sample, and runs are numbered in this order.
pub(super) struct ChannelsBeside<'a, T> {
    /// The channels of each position, position by position.
    pub(super) data: &'a [T],
    pub(super) positions: usize,
    pub(super) channels: usize,
}

/// Runs that are normalised together.
#[derive(Clone, Copy)]
pub(super) enum TogetherRuns {
    /// Those of a channel in all samples.
    Channel,
    /// A number of neighbouring channels of one sample.
    Group(usize),
}

/// Bytes of scratch of [`ChannelsBeside::moments`].
fn beside_room<T>(samples: usize, positions: usize, channels: usize) -> usize {
    room::<[f64; 2]>(samples * channels) + room::<T>(samples * channels) + room::<T>(positions)
}

/// The layout with channels last, where those of a position are side by side, and more than one has more than one position.
pub(super) fn channels_beside(l: &Layout) -> Option<Layout> {
    let several = l.numel() > 0 && l.sizes[1] > 1 && l.strides[1] == 1 && l.sizes[2..].iter().product::<i64>() > 1;
    several.then(|| l.permute(&channels_last_dims(l)).ok()).flatten()
}

/// Bytes of scratch of the moments of channels, in whichever memory order.
pub(super) fn moments_room(x: Stored<'_>) -> usize {
    let Some(l) = channels_beside(x.1) else { return packed_room(x) };
    let (channels, positions) = (x.1.sizes[1] as usize, x.1.sizes[2..].iter().product::<i64>() as usize);
    let sums = match x.0 {
        DType::F64 => beside_room::<f64>(x.1.sizes[0] as usize, positions, channels),
        _ => beside_room::<f32>(x.1.sizes[0] as usize, positions, channels),
    };
    sums + packed_room((x.0, &l))
}

impl<T: Real> ChannelsBeside<'_, T> {
    /// The moments of each part, as [`moments`](super::moments::moments) has them of its runs.
    pub(super) fn moments(&self, together: TogetherRuns, found: &mut [Moments], threads: usize) {
        let runs = self.data.len() / self.positions;
        let of_part = |part: usize| match together {
            TogetherRuns::Channel => (part..runs).step_by(self.channels),
            TogetherRuns::Group(n) => (part * n..(part + 1) * n).step_by(1),
        };
        let count = runs / found.len() * self.positions;
        let mut sums = Temp::filled(runs, [0.0; 2]);
        self.sums(None, &mut sums, threads);
        let mut near = Temp::filled(runs, T::zero());
        for part in 0..found.len() {
            let total = of_part(part).fold(0.0, |t, run| t + sums[run][0]);
            of_part(part).for_each(|run| near[run] = T::of(total / count as f64));
        }
        self.sums(Some(&near), &mut sums, threads);
        for (part, m) in found.iter_mut().enumerate() {
            let add = |[apart, squares]: [f64; 2], run: usize| [apart + sums[run][0], squares + sums[run][1]];
            let first = of_part(part).next().unwrap_or(0);
            *m = Moments::about(near[first].wide(), of_part(part).fold([0.0; 2], add), count)
                .unwrap_or_else(|| self.wide_moments(of_part(part), count));
        }
    }

    /// The sums of each run, or of its distances from a number and of their squares.
    fn sums(&self, near: Option<&[T]>, sums: &mut [[f64; 2]], threads: usize) {
        let blocks = self.channels.div_ceil(BESIDE);
        let threads = if self.data.len() < SHARED { 1 } else { threads };
        let all = par::Shared::new(sums);
        par::each(threads, sums.len() / self.channels * blocks, &|i| {
            let (sample, c) = (i / blocks, i % blocks * BESIDE);
            let (first, n) = (sample * self.channels + c, BESIDE.min(self.channels - c));
            // SAFETY: the runs of this block, which are one thread's; the slice outlives the threads.
            let totals = unsafe { std::slice::from_raw_parts_mut(all.at(first), n) };
            totals.fill([0.0; 2]);
            isa::run(SumsBeside {
                from: &self.data[sample * self.channels * self.positions + c..],
                step: self.channels,
                positions: self.positions,
                near: near.map(|near| &near[first..first + n]),
                totals,
            });
        });
    }

    /// As [`wide_moments`](super::moments::wide_moments).
    #[cold]
    #[inline(never)]
    fn wide_moments(&self, runs: impl Iterator<Item = usize> + Clone, count: usize) -> Moments {
        let mut elements = Temp::filled(self.positions, T::zero());
        let mut run = |run: usize, mean: Option<f64>| {
            let first = run / self.channels * self.channels * self.positions + run % self.channels;
            elements.iter_mut().zip(self.data[first..].iter().step_by(self.channels)).for_each(|(to, &x)| *to = x);
            isa::run(Distances(&elements, mean))
        };
        let mean = runs.clone().fold(0.0, |t, r| t + run(r, None)) / count as f64;
        Moments { mean, squares: runs.fold(0.0, |t, r| t + run(r, Some(mean))) }
    }
}

/// Adds the sums of [`BESIDE`] runs or fewer, each as [`run_sum`](super::moments::run_sum) or
/// [`distance_sums`](super::moments::distance_sums) has them.
struct SumsBeside<'a, T> {
    /// The first position's channels and all that follow.
    from: &'a [T],
    /// From a position to the next.
    step: usize,
    positions: usize,
    near: Option<&'a [T]>,
    totals: &'a mut [[f64; 2]],
}

impl<T: Real> SumsBeside<'_, T> {
    /// The channels of a position; 0 where there are fewer.
    #[inline(always)]
    fn row(&self, position: usize) -> [T; BESIDE] {
        let row = &self.from[position * self.step..];
        match row.first_chunk::<BESIDE>() {
            Some(row) if self.totals.len() == BESIDE => *row,
            _ => array::from_fn(|i| if i < self.totals.len() { row[i] } else { T::zero() }),
        }
    }
}

impl<T: Real> isa::Work for SumsBeside<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        let mut first = 0;
        while first < self.positions {
            let last = self.positions.min(first + NARROW);
            match self.near {
                None => {
                    let mut sums = [[T::zero(); BESIDE]; SIDES];
                    for p in first..last {
                        let (x, to) = (self.row(p), &mut sums[(p - first) % const { side::<T>() }]);
                        for i in 0..BESIDE {
                            to[i] += x[i];
                        }
                    }
                    join(&mut sums, const { side::<T>() });
                    self.totals.iter_mut().zip(&sums[0]).for_each(|(t, x)| t[0] += x.wide());
                }
                Some(of) => {
                    let near: [T; BESIDE] = array::from_fn(|i| *of.get(i).unwrap_or(&T::zero()));
                    let (mut apart, mut squares) = ([[T::zero(); BESIDE]; PARTS], [[T::zero(); BESIDE]; PARTS]);
                    for p in first..last {
                        let (x, lane) = (self.row(p), (p - first) % PARTS);
                        for i in 0..BESIDE {
                            let d = x[i] - near[i];
                            apart[lane][i] += d;
                            squares[lane][i] += d * d;
                        }
                    }
                    join(&mut apart, PARTS);
                    join(&mut squares, PARTS);
                    for (t, (a, s)) in self.totals.iter_mut().zip(apart[0].iter().zip(&squares[0])) {
                        t[0] += a.wide();
                        t[1] += s.wide();
                    }
                }
            }
            first = last;
        }
    }
}

/// Adds the second half of the parts to the first until one is left.
#[inline(always)]
fn join<T: Real>(parts: &mut [[T; BESIDE]], count: usize) {
    let mut n = count / 2;
    while n > 0 {
        let (to, from) = parts.split_at_mut(n);
        for (to, from) in to.iter_mut().zip(from) {
            for i in 0..BESIDE {
                to[i] += from[i];
            }
        }
        n /= 2;
    }
}
