//! Sampling of images at given positions, and the positions that an affine map gives.

use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Target, pack, with_compute};
use crate::support::par;
use crate::support::stack::Stack;
use restride_tensor::{View, ViewMut};
use smallvec::SmallVec;

/// Which elements around a position count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interpolation {
    /// The nearest two in each dimension.
    Linear,
    /// The nearest.
    Nearest,
    /// The nearest four in each dimension.
    Cubic,
}

/// Values outside of the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Padding {
    /// Zeros.
    Zeros,
    /// The edge.
    Border,
    /// The image mirrored.
    Reflection,
}

/// How positions are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// Which elements count.
    pub interpolation: Interpolation,
    /// Values outside of the image.
    pub padding: Padding,
    /// Whether -1 and 1 are the centres of the first and the last element, not their outer edges.
    pub align_corners: bool,
}

/// `x` is N × C × (D ×) H × W, `grid` N × … × (2 or 3) with the fastest dimension's position first.
pub fn grid_sample(
    x: &View<'_>,
    grid: &View<'_>,
    how: Sampling,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    if out.numel() == 0 {
        return Ok(());
    }
    with_compute!(float out.dtype(), T => sample::<T>(x, grid, how, out, threads));
    Ok(())
}

impl Sampling {
    /// A coordinate of -1 to 1 as an index.
    #[inline(always)]
    fn index<T: Real>(self, x: T, n: usize) -> T {
        let n = T::of(n as f64);
        if self.align_corners {
            (x + T::one()) / T::of(2.0) * (n - T::one())
        } else {
            ((x + T::one()) * n - T::one()) / T::of(2.0)
        }
    }
    /// An index of one of `dims` dimensions brought inside where the padding says so.
    #[inline(always)]
    fn bring<T: Real>(self, x: T, n: usize, dims: usize) -> T {
        let last = T::of(n as f64 - 1.0);
        // PyTorch's clips make NaN the first index of an image and the last one of a volume.
        let clip = |x: T| match x > T::zero() {
            true => x.min(last),
            false if x.is_nan() && dims > 2 => last,
            false => T::zero(),
        };
        match self.padding {
            Padding::Zeros => x,
            Padding::Border => clip(x),
            Padding::Reflection => {
                let (low, high) = if self.align_corners {
                    (T::zero(), T::of(2.0 * (n as f64 - 1.0)))
                } else {
                    (T::of(-1.0), T::of(2.0 * n as f64 - 1.0))
                };
                clip(reflect(x, low, high))
            }
        }
    }
}

/// Mirrors a position at both ends, given as twice themselves.
#[inline(always)]
fn reflect<T: Real>(x: T, twice_low: T, twice_high: T) -> T {
    if twice_low == twice_high {
        return T::zero();
    }
    let low = twice_low / T::of(2.0);
    let span = (twice_high - twice_low) / T::of(2.0);
    let x = (x - low).abs();
    let extra = x % span;
    let flips = (x / span).floor();
    if flips % T::of(2.0) == T::zero() { extra + low } else { span - extra + low }
}

/// The place of an element outside of an image.
const OUT: usize = usize::MAX;

/// Weighted elements of one dimension: index, or [`OUT`], and weight.
type GridTaps<T> = [(usize, T); 4];

impl Interpolation {
    /// Elements in each dimension.
    fn count(self) -> usize {
        match self {
            Interpolation::Nearest => 1,
            Interpolation::Linear => 2,
            Interpolation::Cubic => 4,
        }
    }
}

/// The elements around a coordinate in a dimension of size `n`, one of `dims`.
#[inline(always)]
fn taps<T: Real>(how: Sampling, at: T, n: usize, dims: usize) -> GridTaps<T> {
    let raw = how.index(at, n);
    let inside = |i: f64| if i >= 0.0 && i < n as f64 { i as usize } else { OUT };
    let mut of = [(OUT, T::zero()); 4];
    match how.interpolation {
        Interpolation::Nearest => of[0] = (inside(round_even(how.bring(raw, n, dims).wide())), T::one()),
        Interpolation::Linear => {
            let x = how.bring(raw, n, dims);
            let low = x.floor();
            of[0] = (inside(low.wide()), low + T::one() - x);
            of[1] = (inside(low.wide() + 1.0), x - low);
        }
        Interpolation::Cubic => {
            let low = raw.floor();
            let (t, a) = (raw - low, T::of(-0.75));
            let near = |x: T| ((a + T::of(2.0)) * x - (a + T::of(3.0))) * x * x + T::one();
            let far = |x: T| ((a * x - T::of(5.0) * a) * x + T::of(8.0) * a) * x - T::of(4.0) * a;
            let weights = [far(t + T::one()), near(t), near(T::one() - t), far(T::of(2.0) - t)];
            for (k, w) in weights.into_iter().enumerate() {
                let at = how.bring(low + T::of(k as f64 - 1.0), n, dims);
                of[k] = (inside(at.wide()), w);
            }
        }
    }
    of
}

#[inline(always)]
fn round_even(x: f64) -> f64 {
    x.round_ties_even()
}

/// Places of the elements around several points, and their weights: those of the first element of all points come first.
struct FindTaps<'a, T> {
    how: Sampling,
    grid: &'a [T],
    sizes: &'a [usize],
    places: &'a mut [usize],
    weights: &'a mut [T],
}

impl<T: Real> isa::Work for FindTaps<'_, T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let (dims, each) = (self.sizes.len(), self.how.interpolation.count());
        let (points, bits) = (self.grid.len() / dims, each.trailing_zeros() as usize);
        for (p, at) in self.grid.chunks_exact(dims).enumerate() {
            let mut of = [[(OUT, T::zero()); 4]; 3];
            // Slowest dimension first; positions come fastest first.
            for (d, (of, &n)) in of.iter_mut().zip(self.sizes).enumerate() {
                *of = taps(self.how, at[dims - 1 - d], n, dims);
            }
            for k in 0..each.pow(dims as u32) {
                let (mut place, mut weight) = (0, T::one());
                for (d, (of, &n)) in of.iter().zip(self.sizes).enumerate() {
                    let (i, w) = of[k >> (bits * (dims - 1 - d)) & (each - 1)];
                    place = if place == OUT || i == OUT { OUT } else { place * n + i };
                    weight *= w;
                }
                self.places[k * points + p] = place;
                self.weights[k * points + p] = weight;
            }
        }
    }
}

/// Sums of the weighted elements of a plane.
struct SumTaps<'a, T> {
    plane: &'a [T],
    places: &'a [usize],
    weights: &'a [T],
    /// Elements outside are zeros that are multiplied by their weights.
    zeros: bool,
    out: &'a mut [T],
}

impl<T: Real> SumTaps<'_, T> {
    #[inline(always)]
    fn add(&self, sum: T, at: usize) -> T {
        let (place, weight) = (self.places[at], self.weights[at]);
        match self.plane.get(place) {
            Some(&x) => sum + x * weight,
            None if self.zeros => sum + T::zero() * weight,
            None => sum,
        }
    }
}

impl<T: Real> SumTaps<'_, T> {
    /// Sums of four elements each. Most points have all of theirs inside: one question for the four.
    #[inline(always)]
    fn sum_fours(self, points: usize) {
        let (places, weights) = (&self.places[..4 * points], &self.weights[..4 * points]);
        for p in 0..points {
            let at = [places[p], places[points + p], places[2 * points + p], places[3 * points + p]];
            let most = at[0].max(at[1]).max(at[2].max(at[3]));
            let mut sum = T::zero();
            for k in 0..4 {
                sum = if most < self.plane.len() {
                    // SAFETY: none of the places is behind `most`.
                    sum + unsafe { *self.plane.get_unchecked(at[k]) } * weights[k * points + p]
                } else {
                    self.add(sum, k * points + p)
                };
            }
            self.out[p] = sum;
        }
    }
}

impl<T: Real> isa::Work for SumTaps<'_, T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let points = self.out.len();
        let count = self.places.len() / points;
        if count == 4 {
            return self.sum_fours(points);
        }
        for p in 0..points {
            let mut sum = T::zero();
            for k in 0..count {
                sum = self.add(sum, k * points + p);
            }
            self.out[p] = sum;
        }
    }
}

/// Elements around the points that are sampled at a time.
const BLOCK: usize = 512;

fn sample<T: Real>(x: &View<'_>, grid: &View<'_>, how: Sampling, out: &ViewMut<'_>, threads: usize) {
    let (data, grid_data) = (pack::<T>(x), pack::<T>(grid));
    let sizes: SmallVec<[usize; 3]> = x.sizes()[2..].iter().map(|&n| n as usize).collect();
    let (channels, dims) = (x.sizes()[1] as usize, sizes.len());
    let plane: usize = sizes.iter().product();
    let points: usize = out.sizes()[2..].iter().map(|&n| n as usize).product();
    let count = how.interpolation.count().pow(dims as u32);
    let mut target = Target::<T>::new(out);
    par::pieces(threads, target.slice(), channels * points, &|b, dst| {
        let src = &data[b * channels * plane..][..channels * plane];
        let grid = &grid_data[b * points * dims..][..points * dims];
        let (mut places, mut weights) = (Stack::<usize, BLOCK>::new(), Stack::<T, BLOCK>::new());
        let (places, weights) = (places.filled(BLOCK, OUT), weights.filled(BLOCK, T::zero()));
        let most = BLOCK / count;
        for (block, grid) in grid.chunks(most * dims).enumerate() {
            let n = grid.len() / dims;
            let (places, weights) = (&mut places[..n * count], &mut weights[..n * count]);
            isa::run(FindTaps { how, grid, sizes: &sizes, places: &mut *places, weights: &mut *weights });
            for c in 0..channels {
                let out = &mut dst[c * points + block * most..][..n];
                // PyTorch multiplies the zeros outside of an image by their weights, which may be NaN, and skips those of a volume.
                isa::run(SumTaps { plane: &src[c * plane..][..plane], places, weights, zeros: dims == 2, out });
            }
        }
    });
    target.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_mirrored() {
        let how = Sampling { interpolation: Interpolation::Linear, padding: Padding::Reflection, align_corners: true };
        let at: Vec<f64> = [-1.0, 0.0, 2.5, 3.0, 4.0, 6.5].iter().map(|&x: &f64| how.bring(x, 4, 2)).collect();
        assert_eq!(at, [1.0, 0.0, 2.5, 3.0, 2.0, 0.5]);
        let how = Sampling { align_corners: false, ..how };
        let at: Vec<f64> = [-1.0, -0.5, 3.5, 4.0].iter().map(|&x: &f64| how.bring(x, 4, 2)).collect();
        assert_eq!(at, [0.0, 0.0, 3.0, 3.0]);
    }

    #[test]
    fn weights_of_a_position_sum_to_one() {
        for interpolation in [Interpolation::Linear, Interpolation::Nearest, Interpolation::Cubic] {
            let how = Sampling { interpolation, padding: Padding::Border, align_corners: false };
            for x in [-0.9, -0.2, 0.3, 0.77] {
                let of = &taps::<f64>(how, x, 5, 2)[..interpolation.count()];
                let total: f64 = of.iter().map(|t| t.1).sum();
                assert!((total - 1.0).abs() < 1e-12 && of.iter().all(|t| t.0 < 5));
            }
        }
    }
}
