//! Sampling of images at given positions, and the positions that an affine map gives.

use crate::support::number::Real;
use crate::support::pack::{Target, pack, with_compute};
use crate::support::par;
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
    fn index<T: Real>(self, x: T, n: usize) -> T {
        let n = T::of(n as f64);
        if self.align_corners {
            (x + T::one()) / T::of(2.0) * (n - T::one())
        } else {
            ((x + T::one()) * n - T::one()) / T::of(2.0)
        }
    }
    /// An index of one of `dims` dimensions brought inside where the padding says so.
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

/// A weighted element: its offset in a plane, or nothing where it is outside.
type Tap<T> = (Option<usize>, T);

/// The elements around a position: up to four in each dimension.
type GridTaps<T> = SmallVec<[Tap<T>; 64]>;

fn taps<T: Real>(how: Sampling, at: &[T], sizes: &[usize]) -> GridTaps<T> {
    let mut out = GridTaps::new();
    out.push((Some(0), T::one()));
    // Slowest dimension first; positions come fastest first.
    for (d, &n) in sizes.iter().enumerate() {
        let raw = how.index(at[sizes.len() - 1 - d], n);
        let inside = |i: f64| (i >= 0.0 && i < n as f64).then_some(i as usize);
        let mut of: [Tap<T>; 4] = [(None, T::zero()); 4];
        let count = match how.interpolation {
            Interpolation::Nearest => {
                of[0] = (inside(round_even(how.bring(raw, n, sizes.len()).wide())), T::one());
                1
            }
            Interpolation::Linear => {
                let x = how.bring(raw, n, sizes.len());
                let low = x.floor();
                of[0] = (inside(low.wide()), low + T::one() - x);
                of[1] = (inside(low.wide() + 1.0), x - low);
                2
            }
            Interpolation::Cubic => {
                let low = raw.floor();
                let (t, a) = (raw - low, T::of(-0.75));
                let near = |x: T| ((a + T::of(2.0)) * x - (a + T::of(3.0))) * x * x + T::one();
                let far = |x: T| ((a * x - T::of(5.0) * a) * x + T::of(8.0) * a) * x - T::of(4.0) * a;
                let weights = [far(t + T::one()), near(t), near(T::one() - t), far(T::of(2.0) - t)];
                for (k, w) in weights.into_iter().enumerate() {
                    let at = how.bring(low + T::of(k as f64 - 1.0), n, sizes.len());
                    of[k] = (inside(at.wide()), w);
                }
                4
            }
        };
        let before = std::mem::take(&mut out);
        for (at, w) in before {
            for &(i, v) in &of[..count] {
                out.push((at.zip(i).map(|(at, i)| at * n + i), w * v));
            }
        }
    }
    out
}

fn round_even(x: f64) -> f64 {
    x.round_ties_even()
}

fn sample<T: Real>(x: &View<'_>, grid: &View<'_>, how: Sampling, out: &ViewMut<'_>, threads: usize) {
    let (data, grid_data) = (pack::<T>(x), pack::<T>(grid));
    let sizes: SmallVec<[usize; 3]> = x.sizes()[2..].iter().map(|&n| n as usize).collect();
    let (channels, dims) = (x.sizes()[1] as usize, sizes.len());
    let plane: usize = sizes.iter().product();
    let points: usize = out.sizes()[2..].iter().map(|&n| n as usize).product();
    let mut target = Target::<T>::new(out);
    par::pieces(threads, target.slice(), channels * points, &|b, dst| {
        let src = &data[b * channels * plane..][..channels * plane];
        let grid = &grid_data[b * points * dims..][..points * dims];
        for (p, at) in grid.chunks(dims).enumerate() {
            let of = taps(how, at, &sizes);
            for c in 0..channels {
                let src = &src[c * plane..][..plane];
                let value = |i: Option<usize>| i.map_or(T::zero(), |i| src[i]);
                let mut sum = T::zero();
                // PyTorch multiplies the zeros outside of an image by their weights, which may be NaN, and skips those of a volume.
                for &(i, w) in of.iter().filter(|t| dims == 2 || t.0.is_some()) {
                    sum += value(i) * w;
                }
                dst[c * points + p] = sum;
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
                let of = taps::<f64>(how, &[x, 0.1], &[5, 7]);
                let total: f64 = of.iter().map(|t| t.1).sum();
                assert!((total - 1.0).abs() < 1e-12 && of.iter().all(|t| t.0.is_some()));
            }
        }
    }
}
