//! Linear, cubic and antialiased scaling: every element of the result is a weighted sum of a few of the operand's
//! along each of the last dimensions.

use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Stored, Target, compute_room, pack, packed_room, with_compute};
use crate::support::par;
use crate::support::rows::{channels_last, channels_last_dims};
use crate::support::scratch::{Temp, room};
use restride_tensor::{DType, Layout, View, ViewMut};
use smallvec::SmallVec;

/// Indices and weights that each index of the result reads in one dimension.
#[derive(Debug, PartialEq)]
pub struct Taps<T: Copy> {
    /// First tap of each index of the result, and the number of all of them.
    start: Temp<usize>,
    /// Index of the operand and weight.
    taps: Temp<(usize, T)>,
}

impl Scaling {
    /// Elements of the operand from one of the result to the next.
    fn ratio<T: Real>(&self) -> T {
        let size = |n: usize| T::of(n as f64);
        if self.align_corners {
            return if self.output > 1 {
                size(self.input.saturating_sub(1)) / size(self.output - 1)
            } else {
                T::zero()
            };
        }
        match self.scale {
            Some(f) if f > 0.0 => T::of(1.0 / f),
            _ => size(self.input) / size(self.output),
        }
    }

    /// No more taps than this for an element of the result.
    pub(super) fn most<T: Real>(&self) -> usize {
        match self.filter {
            _ if self.input == self.output && self.filter != Filter::Cubic => 1,
            Filter::Linear => 2,
            Filter::Cubic => 4,
            Filter::LinearAntialias | Filter::CubicAntialias | Filter::LanczosAntialias => {
                let reach = support(self.filter, self.ratio::<T>());
                ((2.0 * reach.wide()).ceil() as usize).saturating_add(2).min(self.input)
            }
        }
    }
}

/// How far an antialiasing filter reaches.
fn support<T: Real>(filter: Filter, ratio: T) -> T {
    let reach = match filter {
        Filter::LanczosAntialias => 3.0,
        Filter::CubicAntialias | Filter::Cubic => 2.0,
        Filter::LinearAntialias | Filter::Linear => 1.0,
    };
    T::of(reach) * ratio.max(T::one())
}

/// How a dimension is scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Which weights.
    pub filter: Filter,
    /// Size of the operand.
    pub input: usize,
    /// Size of the result.
    pub output: usize,
    /// Centres of the corner elements coincide (otherwise their outer edges).
    pub align_corners: bool,
    /// The factor that the caller gave; from the sizes if none.
    pub scale: Option<f64>,
}

/// Weights of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Two neighbours.
    Linear,
    /// Four neighbours, the cubic of -0.75.
    Cubic,
    /// A triangle as wide as an element of the result.
    LinearAntialias,
    /// The cubic of -0.5, as wide as an element of the result.
    CubicAntialias,
    /// The windowed sine of Lanczos with three lobes, as wide as an element of the result.
    LanczosAntialias,
}

impl<T: Real> Taps<T> {
    /// The taps of a dimension, computed in `T` as PyTorch does.
    pub fn new(s: &Scaling) -> Taps<T> {
        let half = T::of(0.5);
        let size = |n: usize| T::of(n as f64);
        let aligned = s.align_corners;
        let ratio = s.ratio::<T>();
        let most = s.most::<T>();
        let mut out = Taps {
            start: Temp::filled(s.output + 1, 0),
            taps: Temp::filled(s.output.saturating_mul(most), (0, T::zero())),
        };
        let mut end = 0;
        for i in 0..s.output {
            out.start[i] = end;
            let own = &mut out.taps[end..];
            let mut put = |taps: &mut dyn Iterator<Item = (usize, T)>| {
                own.iter_mut().zip(taps).map(|(to, tap)| *to = tap).count()
            };
            end += match s.filter {
                Filter::Linear if s.input == s.output => put(&mut std::iter::once((i, T::one()))),
                Filter::Linear => {
                    let at = if aligned { ratio * size(i) } else { (ratio * (size(i) + half) - half).max(T::zero()) };
                    let (low, rest) = split(at, s.input);
                    let high = (low + 1).min(s.input as isize - 1);
                    put(&mut [(low as usize, T::one() - rest), (high as usize, rest)].into_iter())
                }
                Filter::Cubic => {
                    let at = if aligned { ratio * size(i) } else { ratio * (size(i) + half) - half };
                    let (low, rest) = split(at, s.input);
                    let a = T::of(-0.75);
                    let weights =
                        [far(rest + T::one(), a), near(rest, a), near(T::one() - rest, a), far(T::of(2.0) - rest, a)];
                    let taps = weights.into_iter().zip(low - 1..);
                    put(&mut taps.map(|(w, j)| (j.clamp(0, s.input as isize - 1) as usize, w)))
                }
                // Whatever the factor that was given: PyTorch leaves such a dimension alone.
                _ if s.input == s.output => put(&mut std::iter::once((i, T::one()))),
                Filter::LinearAntialias | Filter::CubicAntialias | Filter::LanczosAntialias => {
                    antialias(s, ratio, i, own)
                }
            };
        }
        out.start[s.output] = end;
        out
    }

    /// Operand indices and weights for result index `i`.
    pub(super) fn of(&self, i: usize) -> &[(usize, T)] {
        &self.taps[self.start[i]..self.start[i + 1]]
    }
    fn len(&self) -> usize {
        self.start.len() - 1
    }
    /// The number of taps of all result indices.
    pub(super) fn total(&self) -> usize {
        self.start[self.len()]
    }
}

/// The index below a position, and how far the position is above it.
fn split<T: Real>(at: T, n: usize) -> (isize, T) {
    let low = at.floor().min(T::of(n as f64 - 1.0));
    let rest = (at - low).max(T::zero()).min(T::one());
    (low.wide() as isize, rest)
}

/// The cubic between -1 and 1.
fn near<T: Real>(x: T, a: T) -> T {
    ((a + T::of(2.0)) * x - (a + T::of(3.0))) * x * x + T::one()
}
/// The cubic from 1 to 2.
fn far<T: Real>(x: T, a: T) -> T {
    ((a * x - T::of(5.0) * a) * x + T::of(8.0) * a) * x - T::of(4.0) * a
}

/// The windowed sine between -3 and 3.
fn lanczos<T: Real>(x: T) -> T {
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x) };
    T::of(sinc(x.wide()) * sinc(x.wide() / 3.0))
}

/// Leaves the taps of an element of the result in front; gives how many.
fn antialias<T: Real>(s: &Scaling, ratio: T, i: usize, taps: &mut [(usize, T)]) -> usize {
    let half = T::of(0.5);
    let support = support(s.filter, ratio);
    let center = ratio * (T::of(i as f64) + half);
    let first = ((center - support + half).wide() as i64).max(0);
    let end = ((center + support + half).wide() as i64).min(s.input as i64);
    let shrink = if ratio >= T::one() { T::one() / ratio } else { T::one() };
    let weight = |x: T| {
        let (x, a) = (x.abs(), T::of(-0.5));
        match s.filter {
            Filter::LanczosAntialias if x < T::of(3.0) => lanczos(x),
            Filter::CubicAntialias if x < T::one() => near(x, a),
            Filter::CubicAntialias if x < T::of(2.0) => far(x, a),
            Filter::LinearAntialias if x < T::one() => T::one() - x,
            _ => T::zero(),
        }
    };
    let taps = &mut taps[..(end - first).max(0) as usize];
    for (to, j) in taps.iter_mut().zip(first..end) {
        *to = (j as usize, weight((T::of(j as f64) - center + half) * shrink));
    }
    let total = taps.iter().fold(T::zero(), |t, w| t + w.1);
    if total != T::zero() {
        taps.iter_mut().for_each(|w| w.1 /= total);
    }
    taps.len()
}

/// Operand and result with channels last, and how many there are, where the result's memory is in that order and the operand's
/// channels are side by side.
fn beside(x: &Layout, scalings: &[Scaling], out: &Layout) -> Option<(Layout, Layout, usize)> {
    let several = x.rank() == scalings.len() + 2 && x.sizes[1] > 1 && x.strides[1] == 1;
    let to = several.then(|| channels_last(out)).flatten()?;
    Some((x.permute(&channels_last_dims(x)).ok()?, to, x.sizes[1] as usize))
}

/// Scratch bytes of [`resample`].
pub fn resample_room(x: Stored<'_>, scalings: &[Scaling], out: Stored<'_>) -> usize {
    fn of<T: Real>(s: &Scaling) -> usize {
        room::<usize>(s.output + 1) + room::<(usize, T)>(s.output.saturating_mul(s.most::<T>()))
    }
    let each = |s: &Scaling| if out.0 == DType::F64 { of::<f64>(s) } else { of::<f32>(s) };
    let taps: usize = scalings.iter().map(each).sum();
    let line = |wide: usize| scalings.last().map_or(0, |s| compute_room(out.0, (s.input * wide) as i64));
    taps + match beside(x.1, scalings, out.1) {
        Some((from, to, wide)) => packed_room((x.0, &from)) + packed_room((out.0, &to)) + line(wide),
        None => packed_room(x) + packed_room(out) + line(1),
    }
}

/// Scales the last `scalings.len()` dimensions (at most three). Their sizes in operand and result are those of the
/// scalings; the leading sizes are equal.
pub fn resample(x: &View<'_>, scalings: &[Scaling], out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    if out.numel() == 0 {
        return Ok(());
    }
    with_compute!(float out.dtype(), T => match beside(x.layout(), scalings, out.layout()) {
        Some((from, to, wide)) => {
            // SAFETY: the same cells in another order.
            let (x, out) = unsafe { (x.with_layout(&from), out.with_layout(&to)) };
            run::<T>(&x, scalings, wide, &out, threads);
        }
        None => run::<T>(x, scalings, 1, out, threads),
    });
    Ok(())
}

/// `wide` numbers at each position.
fn run<T: Real>(x: &View<'_>, scalings: &[Scaling], wide: usize, out: &ViewMut<'_>, threads: usize) {
    let Some((last, outer)) = scalings.split_last() else { return };
    let row = Taps::<T>::new(last);
    let outer: SmallVec<[(usize, Taps<T>); 2]> = outer.iter().map(|s| (s.input, Taps::new(s))).collect();
    let pairs = last.most::<T>() == 2 && row.total() == 2 * row.len();
    let data = pack::<T>(x);
    let plane: usize = scalings.iter().map(|s| s.input).product();
    let lines: usize = outer.iter().map(|(_, t)| t.len()).product();
    let mut target = Target::<T>::new(out);
    par::pieces(threads, target.slice(), row.len() * wide, &|r, dst| {
        let src = &data[r / lines * plane * wide..][..plane * wide];
        // The lines of the operand that this line of the result mixes, the last of the outer dimensions fastest.
        let mut rest = lines;
        let here: SmallVec<[(usize, &[(usize, T)]); 2]> = outer
            .iter()
            .map(|(n, taps)| {
                rest /= taps.len();
                (*n, taps.of(r / rest % taps.len()))
            })
            .collect();
        let count: usize = here.iter().map(|(_, of)| of.len()).product();
        let mix = |k: usize| {
            let mut below = count;
            here.iter().fold((0, T::one()), |(at, w), (n, of)| {
                below /= of.len();
                let (i, v) = of[k / below % of.len()];
                (at * n + i, w * v)
            })
        };
        let mut mixed = Temp::filled(last.input * wide, T::zero());
        for k in 0..count {
            let (at, by) = mix(k);
            let line = &src[at * last.input * wide..][..last.input * wide];
            isa::run(MixLine { to: &mut mixed, line, by, first: k == 0 });
        }
        if wide > 1 {
            for (i, to) in dst.chunks_exact_mut(wide).enumerate() {
                let of = row.of(i);
                if of.is_empty() {
                    to.fill(T::zero());
                }
                for (k, &(j, by)) in of.iter().enumerate() {
                    isa::run(MixLine { to, line: &mixed[j * wide..][..wide], by, first: k == 0 });
                }
            }
            return;
        }
        if pairs {
            for (d, of) in dst.iter_mut().zip(row.taps.chunks_exact(2)) {
                *d = of[0].1 * mixed[of[0].0] + of[1].1 * mixed[of[1].0];
            }
            return;
        }
        for (i, d) in dst.iter_mut().enumerate() {
            let of = row.of(i);
            let first = of.first().map_or(T::zero(), |&(j, w)| w * mixed[j]);
            *d = of.iter().skip(1).fold(first, |t, &(j, w)| t + w * mixed[j]);
        }
    });
    target.finish();
}

/// Adds a line times a factor, or begins with it.
struct MixLine<'a, T> {
    to: &'a mut [T],
    line: &'a [T],
    by: T,
    first: bool,
}
impl<T: Real> isa::Work for MixLine<'_, T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let (pairs, by) = (self.to.iter_mut().zip(self.line), self.by);
        match self.first {
            true => pairs.for_each(|(to, &x)| *to = by * x),
            false => pairs.for_each(|(to, &x)| *to += by * x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    fn scaling(filter: Filter, input: usize, output: usize, align_corners: bool) -> Scaling {
        Scaling { filter, input, output, align_corners, scale: None }
    }

    #[test]
    fn weights_sum_to_one_and_stay_inside() {
        let antialiased = [Filter::LinearAntialias, Filter::CubicAntialias, Filter::LanczosAntialias];
        for filter in [Filter::Linear, Filter::Cubic].into_iter().chain(antialiased) {
            for (n, m) in [(1, 1), (1, 5), (5, 1), (4, 9), (9, 4), (7, 7)] {
                for aligned in [false, true] {
                    let taps = Taps::<f64>::new(&scaling(filter, n, m, aligned));
                    assert_eq!(taps.len(), m);
                    for i in 0..m {
                        let total: f64 = taps.of(i).iter().map(|t| t.1).sum();
                        assert!((total - 1.0).abs() < 1e-12, "{filter:?} {n} {m} {i}: {total}");
                        assert!(taps.of(i).iter().all(|t| t.0 < n));
                    }
                }
            }
        }
    }

    #[test]
    fn aligned_corners_keep_the_ends() {
        let taps = Taps::<f64>::new(&scaling(Filter::Linear, 3, 5, true));
        let at: Vec<f64> = (0..5).map(|i| taps.of(i).iter().map(|&(j, w)| j as f64 * w).sum()).collect();
        assert_eq!(at, [0.0, 0.5, 1.0, 1.5, 2.0]);
    }

    #[test]
    fn channels_last_has_the_bits_of_channels_first() {
        let data: Vec<f32> = (0..2 * 5 * 4 * 6).map(|i| ((i * 7919) % 101) as f32 * 0.13 - 4.0).collect();
        for filter in [Filter::Linear, Filter::Cubic, Filter::LinearAntialias] {
            let scalings = [scaling(filter, 4, 7, false), scaling(filter, 6, 3, false)];
            let run = |perm: [usize; 4]| {
                let x = RawTensor::zeros(DType::F32, Layout::permuted(&[2, 5, 4, 6], &perm));
                crate::support::pack::unpack(&data, &x.write().view_mut());
                let out = RawTensor::zeros(DType::F32, Layout::permuted(&[2, 5, 7, 3], &perm));
                resample(&x.read().view(), &scalings, &out.write().view_mut(), 2).unwrap();
                out.to_elements::<f32>()
            };
            let first = run([0, 1, 2, 3]);
            assert_eq!(run([0, 2, 3, 1]), first, "{filter:?}");
            assert!(first.iter().any(|&x| x != 0.0));
        }
    }
}
