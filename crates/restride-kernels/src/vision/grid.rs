//! Sampling of images at given positions, and the positions that an affine map gives.

use crate::support::array;
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Compute, Target, pack, with_compute};
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
    with_compute!(float out.dtype(), T => sample::<T>(x, grid, how, out, threads))
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
    /// Indices of one of `dims` dimensions brought inside where the padding says so.
    #[inline(always)]
    fn bring<T: Real>(self, at: &mut [T], n: usize, dims: usize) {
        let last = T::of(n as f64 - 1.0);
        // PyTorch's clips make NaN the first index of an image and the last one of a volume.
        let none = if dims > 2 { last } else { T::zero() };
        let clip = |x: T| {
            let low = if x.is_nan() { none } else { T::zero() };
            if x > T::zero() { x.min(last) } else { low }
        };
        match self.padding {
            Padding::Zeros => {}
            Padding::Border => at.iter_mut().for_each(|x| *x = clip(*x)),
            Padding::Reflection => {
                let (low, high) = if self.align_corners {
                    (T::zero(), T::of(2.0 * (n as f64 - 1.0)))
                } else {
                    (T::of(-1.0), T::of(2.0 * n as f64 - 1.0))
                };
                at.iter_mut().for_each(|x| *x = clip(reflect(*x, low, high)));
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
const OUT: u32 = u32::MAX;

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

/// A whole number as an index of a dimension of size `n`, or [`OUT`].
#[inline(always)]
fn inside<T: Real>(x: T, n: usize) -> u32 {
    let within = (x >= T::zero()) & (x < T::of(n as f64));
    let i = Compute::to_i32(if within { x } else { T::zero() }) as u32;
    if within { i } else { OUT }
}

/// The elements around coordinates in a dimension of size `n`, one of `dims`: their indices, or [`OUT`], and their weights, those of
/// the first element of all coordinates first.
#[inline(always)]
fn taps<T: Real>(how: Sampling, at: &mut [T], (n, dims): (usize, usize), (indices, weights): (&mut [u32], &mut [T])) {
    let points = at.len();
    if how.interpolation != Interpolation::Cubic {
        how.bring(at, n, dims);
    }
    match how.interpolation {
        Interpolation::Nearest => {
            indices.iter_mut().zip(&*at).for_each(|(i, x)| *i = inside(x.rint(), n));
            weights.fill(T::one());
        }
        Interpolation::Linear => {
            let (first, second) = indices.split_at_mut(points);
            for ((i, j), x) in first.iter_mut().zip(second).zip(&*at) {
                let low = x.floor();
                (*i, *j) = (inside(low, n), inside(low + T::one(), n));
            }
            let (first, second) = weights.split_at_mut(points);
            for ((v, w), &x) in first.iter_mut().zip(second).zip(&*at) {
                let low = x.floor();
                (*v, *w) = (low + T::one() - x, x - low);
            }
        }
        Interpolation::Cubic => {
            let a = T::of(-0.75);
            let near = |x: T| ((a + T::of(2.0)) * x - (a + T::of(3.0))) * x * x + T::one();
            let far = |x: T| ((a * x - T::of(5.0) * a) * x + T::of(8.0) * a) * x - T::of(4.0) * a;
            // The indices stand where the last weights go, which are computed at the end.
            let (most, last) = weights.split_at_mut(3 * points);
            for (k, indices) in indices.chunks_exact_mut(points).enumerate() {
                last.iter_mut().zip(&*at).for_each(|(i, x)| *i = x.floor() + T::of(k as f64 - 1.0));
                how.bring(last, n, dims);
                indices.iter_mut().zip(&*last).for_each(|(i, &x)| *i = inside(x, n));
            }
            at.iter_mut().for_each(|x| *x -= x.floor());
            let (first, most) = most.split_at_mut(points);
            let (second, third) = most.split_at_mut(points);
            first.iter_mut().zip(&*at).for_each(|(w, &t)| *w = far(t + T::one()));
            second.iter_mut().zip(&*at).for_each(|(w, &t)| *w = near(t));
            third.iter_mut().zip(&*at).for_each(|(w, &t)| *w = near(T::one() - t));
            last.iter_mut().zip(&*at).for_each(|(w, &t)| *w = far(T::of(2.0) - t));
        }
    }
}

/// Places of the elements around several points, and their weights: those of the first element of all points come first.
struct FindTaps<'a, T> {
    how: Sampling,
    grid: &'a [T],
    sizes: &'a [usize],
    places: &'a mut [u32],
    weights: &'a mut [T],
    /// Of single dimensions.
    along: (&'a mut [u32], &'a mut [T]),
}

impl<T: Real> isa::Work for FindTaps<'_, T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let FindTaps { how, grid, sizes, places, weights, along: (indices, shares) } = self;
        let (dims, each) = (sizes.len(), how.interpolation.count());
        let (points, bits) = (grid.len() / dims, each.trailing_zeros() as usize);
        let size = each * points;
        // Slowest dimension first; positions come fastest first.
        for (d, &n) in sizes.iter().enumerate() {
            let at = &mut weights[..points];
            for (x, point) in at.iter_mut().zip(grid.chunks_exact(dims)) {
                *x = how.index(point[dims - 1 - d], n);
            }
            let own = d * size..(d + 1) * size;
            taps(how, at, (n, dims), (&mut indices[own.clone()], &mut shares[own]));
        }
        let elements = places.chunks_exact_mut(points).zip(weights.chunks_exact_mut(points));
        for (k, (places, weights)) in elements.enumerate() {
            for (d, &n) in sizes.iter().enumerate() {
                let own = d * size + (k >> (bits * (dims - 1 - d)) & (each - 1)) * points;
                let (indices, shares) = (&indices[own..][..points], &shares[own..][..points]);
                if d == 0 {
                    places.copy_from_slice(indices);
                    weights.copy_from_slice(shares);
                    continue;
                }
                for (place, &i) in places.iter_mut().zip(indices) {
                    let next = place.wrapping_mul(n as u32).wrapping_add(i);
                    *place = if (*place == OUT) | (i == OUT) { OUT } else { next };
                }
                weights.iter_mut().zip(shares).for_each(|(w, &x)| *w *= x);
            }
        }
    }
}

/// Sums of the weighted elements of a plane.
struct SumTaps<'a, T> {
    plane: &'a [T],
    places: &'a [u32],
    weights: &'a [T],
    /// Elements outside are zeros that are multiplied by their weights.
    zeros: bool,
    out: &'a mut [T],
}

impl<T: Real> SumTaps<'_, T> {
    /// Adds the elements that `R` parts of places and weights name, without a branch on what is outside.
    #[inline(always)]
    fn add<const R: usize>(&mut self, k: usize, zeros: bool) {
        let (points, len) = (self.out.len(), self.plane.len());
        let places: [&[u32]; R] = array::from_fn(|r| &self.places[(k + r) * points..][..points]);
        let weights: [&[T]; R] = array::from_fn(|r| &self.weights[(k + r) * points..][..points]);
        for (p, out) in self.out.iter_mut().enumerate() {
            let mut sum = *out;
            for r in 0..R {
                let place = places[r][p] as usize;
                let held = place < len;
                // SAFETY: the plane is not empty, so it has a first element.
                let x = unsafe { *self.plane.get_unchecked(if held { place } else { 0 }) };
                let more = sum + if held { x } else { T::zero() } * weights[r][p];
                sum = if held | zeros { more } else { sum };
            }
            *out = sum;
        }
    }
}

impl<T: Real> isa::Work for SumTaps<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(mut self) {
        self.out.fill(T::zero());
        let count = self.places.len() / self.out.len();
        match (count, self.zeros) {
            (1, _) => self.add::<1>(0, self.zeros),
            (2, _) => self.add::<2>(0, self.zeros),
            // Loops: closures of iterators would be compiled for the baseline.
            (_, true) => {
                for k in (0..count).step_by(4) {
                    self.add::<4>(k, true);
                }
            }
            (_, false) => {
                for k in (0..count).step_by(4) {
                    self.add::<4>(k, false);
                }
            }
        }
    }
}

/// Elements around the points that are sampled at a time.
const BLOCK: usize = 2048;
/// Those in all dimensions one by one, of the most points: half of the others where two elements count.
const ALONG: usize = 3 * BLOCK / 2;

fn sample<T: Real>(
    x: &View<'_>,
    grid: &View<'_>,
    how: Sampling,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let sizes: SmallVec<[usize; 3]> = x.sizes()[2..].iter().map(|&n| n as usize).collect();
    let (channels, dims) = (x.sizes()[1] as usize, sizes.len());
    let plane: usize = sizes.iter().product();
    if !(1..=i32::MAX as usize).contains(&plane) {
        return Err(format!("an image of {plane} elements cannot be sampled: it has none, or more than 2^31"));
    }
    let (data, grid_data) = (pack::<T>(x), pack::<T>(grid));
    let points: usize = out.sizes()[2..].iter().map(|&n| n as usize).product();
    let (each, count) = (how.interpolation.count(), how.interpolation.count().pow(dims as u32));
    let mut target = Target::<T>::new(out);
    par::pieces(threads, target.slice(), channels * points, &|b, dst| {
        let src = &data[b * channels * plane..][..channels * plane];
        let grid = &grid_data[b * points * dims..][..points * dims];
        let (mut places, mut weights) = (Stack::<u32, BLOCK>::new(), Stack::<T, BLOCK>::new());
        let (mut indices, mut shares) = (Stack::<u32, ALONG>::new(), Stack::<T, ALONG>::new());
        let most = (BLOCK / count).min(ALONG / (each * dims)).min(points);
        let (places, weights) = (places.filled(most * count, OUT), weights.filled(most * count, T::zero()));
        let all = most * each * dims;
        let (indices, shares) = (indices.filled(all, OUT), shares.filled(all, T::zero()));
        for (block, grid) in grid.chunks(most * dims).enumerate() {
            let n = grid.len() / dims;
            let (places, weights) = (&mut places[..n * count], &mut weights[..n * count]);
            let along = (&mut *indices, &mut *shares);
            isa::run(FindTaps { how, grid, sizes: &sizes, places: &mut *places, weights: &mut *weights, along });
            for c in 0..channels {
                let out = &mut dst[c * points + block * most..][..n];
                // PyTorch multiplies the zeros outside of an image by their weights, which may be NaN, and skips those of a volume.
                isa::run(SumTaps { plane: &src[c * plane..][..plane], places, weights, zeros: dims == 2, out });
            }
        }
    });
    target.finish();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_mirrored() {
        let how = Sampling { interpolation: Interpolation::Linear, padding: Padding::Reflection, align_corners: true };
        let mut at = [-1.0, 0.0, 2.5, 3.0, 4.0, 6.5];
        how.bring(&mut at, 4, 2);
        assert_eq!(at, [1.0, 0.0, 2.5, 3.0, 2.0, 0.5]);
        let how = Sampling { align_corners: false, ..how };
        let mut at = [-1.0, -0.5, 3.5, 4.0];
        how.bring(&mut at, 4, 2);
        assert_eq!(at, [0.0, 0.0, 3.0, 3.0]);
    }

    #[test]
    fn weights_of_a_position_sum_to_one() {
        for interpolation in [Interpolation::Linear, Interpolation::Nearest, Interpolation::Cubic] {
            let how = Sampling { interpolation, padding: Padding::Border, align_corners: false };
            let mut at = [-0.9f64, -0.2, 0.3, 0.77].map(|x| how.index(x, 5));
            let (mut indices, mut weights) = ([OUT; 16], [0.0; 16]);
            let n = 4 * interpolation.count();
            taps(how, &mut at, (5, 2), (&mut indices[..n], &mut weights[..n]));
            for p in 0..4 {
                let total: f64 = weights[p..n].iter().step_by(4).sum();
                assert!((total - 1.0).abs() < 1e-12 && indices[p..n].iter().step_by(4).all(|&i| i < 5));
            }
        }
    }
}
