//! Pooling: maxima and means over windows of one to three dimensions, in the strides of operand and result.

mod lanes;
mod places;

use crate::conv::planes;
use crate::pool::lanes::{Fold, Pooling};
use crate::pool::places::with_indices;
use crate::support::number::{Number, Ordered};
use crate::support::pack::{Compute, Stored, Target, is_compute, pack, packed_room, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::{DType, Layout, View, ViewMut};
use std::ops::{AddAssign, Div};

/// A window's elements in one dimension: `start`, `start + step`, … below `end`, all of them inside the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// First element.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Distance of neighbours.
    pub step: usize,
    /// Divisor of a mean.
    pub size: usize,
}

/// Windows of up to three dimensions (fewer have leading ones with a single window of a single element).
#[derive(PartialEq, Debug)]
pub struct Spans {
    /// Number of dimensions of the operand's planes.
    pub spatial: usize,
    /// Sizes of the input.
    pub input: [usize; 3],
    /// The windows of each dimension.
    pub windows: [Temp<Span>; 3],
}

impl Spans {
    /// Elements of a plane of the input.
    fn volume(&self) -> usize {
        self.input.iter().product()
    }
    /// Elements of a plane of the result.
    fn count(&self) -> usize {
        self.windows.iter().map(|w| w.len()).product()
    }
    /// Calls `f` with the position of each window and its spans, in order.
    fn each(&self, mut f: impl FnMut(usize, [Span; 3])) {
        let mut at = 0;
        for &z in &self.windows[0] {
            for &y in &self.windows[1] {
                for &x in &self.windows[2] {
                    f(at, [z, y, x]);
                    at += 1;
                }
            }
        }
    }
    /// Calls `f` with the position in a plane where each line of a window starts.
    fn lines(&self, [z, y, _]: [Span; 3], mut f: impl FnMut(usize)) {
        for i in (z.start..z.end).step_by(z.step) {
            for j in (y.start..y.end).step_by(y.step) {
                f((i * self.input[1] + j) * self.input[2]);
            }
        }
    }
}

/// As [`Spans`], borrowed.
#[derive(Clone, Copy)]
struct PoolWindows<'a> {
    spatial: usize,
    input: [usize; 3],
    windows: [&'a [Span]; 3],
}

impl PoolWindows<'_> {
    /// Elements of a plane of the input.
    fn volume(&self) -> usize {
        self.input.iter().product()
    }

    /// The window of a plane that is one line of all its elements, if its only window has them all.
    fn line(&self) -> Option<Span> {
        let all = |(w, n): (&&[Span], usize)| matches!(w, [w] if w.start == 0 && w.end == n && (w.step == 1 || n == 1));
        let size = self.windows.iter().flat_map(|w| w.first()).map(|w| w.size).product();
        let whole = self.windows.iter().zip(self.input).all(all);
        whole.then(|| Span { start: 0, end: self.volume(), step: 1, size })
    }
}

/// The maximum of each window and, where asked for, its index in the plane: the first of equal ones, the last NaN.
pub fn max(
    x: &View<'_>,
    s: &Spans,
    out: &ViewMut<'_>,
    indices: Option<&ViewMut<'_>>,
    threads: usize,
) -> Result<(), String> {
    fn run<T: Ordered>(
        x: &View<'_>,
        s: &Spans,
        out: &ViewMut<'_>,
        indices: Option<&ViewMut<'_>>,
        threads: usize,
    ) -> Result<(), String> {
        strided(x, s, Greatest, out, |of: &Pooling<'_, T, Greatest>| match indices {
            // SAFETY: the sizes are those of a pooling, and the result meets no operand.
            None => unsafe { of.run(threads) },
            Some(indices) => with_indices(of, indices, threads),
        })
    }
    if out.numel() > 0 {
        if indices.is_some_and(|i| i.sizes() != out.sizes() || i.dtype() != DType::I64) {
            return Err("indices of maxima are of type i64 and have the sizes of the maxima".into());
        }
        with_compute!(real out.dtype(), T => run::<T>(x, s, out, indices, threads)?);
    }
    Ok(())
}

/// The maximum of a window.
#[derive(Clone, Copy)]
struct Greatest;
impl<T: Ordered> Fold<T> for Greatest {
    const PARTS: usize = 1;
    const START: T = T::LEAST;
    #[inline(always)]
    fn step(part: T, x: T) -> T {
        if x.beats(part) { x } else { part }
    }
    #[inline(always)]
    fn divisor(&self, _: &[Span; 3]) -> T {
        T::default()
    }
    #[inline(always)]
    fn finish(&self, parts: [T; 8], _: T) -> T {
        parts[0]
    }
}

/// Calls `f` with operand and result in their own strides; those that are not of the compute type are converted.
fn strided<T: Compute, F: Fold<T>>(
    x: &View<'_>,
    s: &Spans,
    fold: F,
    out: &ViewMut<'_>,
    f: impl FnOnce(&Pooling<'_, T, F>),
) -> Result<(), String> {
    let rank = s.spatial + 2 - (x.sizes().len() == s.spatial + 1) as usize;
    let lead = rank - s.spatial;
    let tail = |sizes: &[i64], all: [usize; 3]| {
        sizes.len() == rank
            && sizes[lead..].iter().zip(&all[3 - s.spatial..]).all(|(&n, &m)| n == m as i64)
            && all[..3 - s.spatial].iter().all(|&n| n == 1)
    };
    let counts = s.windows.each_ref().map(|w| w.len());
    let inside = s.windows.iter().zip(s.input).all(|(w, n)| w.iter().all(|w| w.start >= w.end || w.end <= n));
    if !tail(x.sizes(), s.input) || !tail(out.sizes(), counts) || !inside || x.sizes()[..lead] != out.sizes()[..lead] {
        return Err("operand, windows and result do not have the sizes of one pooling".into());
    }
    let packed = (x.dtype() != T::DTYPE).then(|| pack::<T>(x));
    let mut target = (out.dtype() != T::DTYPE).then(|| Target::<T>::new(out));
    let (from, from_layout) = match &packed {
        None => (x.ptr::<T>(), x.layout().clone()),
        Some(p) => (p.as_ptr(), Layout::contiguous(x.sizes())),
    };
    let (to, to_layout) = match &mut target {
        None => (out.ptr::<T>(), out.layout().clone()),
        Some(t) => (t.slice().as_mut_ptr(), Layout::contiguous(out.sizes())),
    };
    let (x_planes, x_sample) = planes(from, &from_layout, lead == 2);
    let (y, y_sample) = planes(to, &to_layout, lead == 2);
    let size = [if lead == 2 { x.sizes()[0] as usize } else { 1 }, x.sizes()[lead - 1] as usize];
    let s = PoolWindows { spatial: s.spatial, input: s.input, windows: s.windows.each_ref().map(|w| &w[..]) };
    f(&Pooling { s, fold, size, x: x_planes, x_sample, y, y_sample });
    if let Some(t) = target {
        t.finish();
    }
    Ok(())
}

/// Scratch bytes of [`max`] and [`mean`].
pub fn room(x: Stored<'_>, out: Stored<'_>) -> usize {
    [x, out].into_iter().filter(|s| !is_compute(s.0)).map(packed_room).sum()
}

/// A type with sums and quotients.
trait Mean: Number + Div<Output = Self> + AddAssign {}
impl<T: Number + Div<Output = T> + AddAssign> Mean for T {}

/// Divisor of the sum of a window.
fn divisor<T: Compute>(w: &[Span; 3], given: Option<i64>) -> T {
    T::from_i64(given.unwrap_or_else(|| w.iter().map(|w| w.size as i64).product()))
}

fn is_empty(w: &[Span; 3]) -> bool {
    w.iter().any(|w| w.start >= w.end)
}

/// The mean of each window: its sum over the size of its spans, or over `by`.
pub fn mean(x: &View<'_>, s: &Spans, by: Option<i64>, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    fn run<T: Mean>(x: &View<'_>, s: &Spans, by: Option<i64>, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
        // SAFETY: the sizes are those of a pooling, and the result meets no operand.
        strided(x, s, Average { by }, out, |of: &Pooling<'_, T, Average>| unsafe {
            match of.s.line() {
                Some(line) => of.run_line(line, threads),
                None => of.run(threads),
            }
        })
    }
    if by == Some(0) {
        return Err("divisor must be not zero".into());
    }
    if out.numel() > 0 {
        with_compute!(real out.dtype(), T => run::<T>(x, s, by, out, threads)?);
    }
    Ok(())
}

/// The mean of a window: sums of every eighth element of its lines, added up. A window that is the whole plane is one line.
#[derive(Clone, Copy)]
struct Average {
    by: Option<i64>,
}
impl<T: Mean> Fold<T> for Average {
    const PARTS: usize = 8;
    const START: T = T::ZERO;
    #[inline(always)]
    fn step(part: T, x: T) -> T {
        part.plus(x)
    }
    #[inline(always)]
    fn divisor(&self, w: &[Span; 3]) -> T {
        if is_empty(w) { T::ONE } else { divisor(w, self.by) }
    }
    #[inline(always)]
    fn finish(&self, p: [T; 8], divisor: T) -> T {
        let four = |i: usize| p[i].plus(p[i + 4]).plus(p[i + 2].plus(p[i + 6]));
        four(0).plus(four(1)) / divisor
    }
}

/// The gradient of [`mean`].
pub fn mean_backward(
    g: &View<'_>,
    s: &Spans,
    by: Option<i64>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    fn run<T: Mean>(g: &View<'_>, s: &Spans, by: Option<i64>, out: &ViewMut<'_>, threads: usize) {
        let data = pack::<T>(g);
        let (volume, count) = (s.volume(), s.count());
        let mut target = Target::<T>::new(out);
        par::pieces(threads, target.slice(), volume, &|p, plane| {
            let g = &data[p * count..][..count];
            plane.fill(T::default());
            s.each(|at, w| {
                if !is_empty(&w) {
                    let share = g[at] / divisor(&w, by);
                    s.lines(w, |line| plane[line + w[2].start..line + w[2].end].iter_mut().for_each(|x| *x += share));
                }
            });
        });
        target.finish();
    }
    if by == Some(0) {
        return Err("divisor must be not zero".into());
    }
    if out.numel() > 0 {
        with_compute!(real out.dtype(), T => run::<T>(g, s, by, out, threads));
    }
    Ok(())
}

/// The gradient of [`max`]: each element of `g` goes to where the maximum was. `spatial` is the number of dimensions of a
/// plane.
pub fn max_backward(
    g: &View<'_>,
    indices: &View<'_>,
    spatial: usize,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    fn run<T: Compute + AddAssign>(
        g: &View<'_>,
        indices: &View<'_>,
        (volume, count): (usize, usize),
        out: &ViewMut<'_>,
        threads: usize,
    ) -> Result<(), String> {
        let (data, places) = (pack::<T>(g), pack::<i64>(indices));
        if let Some(bad) = places.iter().find(|&&i| i < 0 || i as usize >= volume) {
            return Err(format!("index {bad} is out of range for a plane of {volume} elements"));
        }
        let mut target = Target::<T>::new(out);
        par::pieces(threads, target.slice(), volume, &|p, plane| {
            plane.fill(T::default());
            for (&g, &i) in data[p * count..][..count].iter().zip(&places[p * count..][..count]) {
                plane[i as usize] += g;
            }
        });
        target.finish();
        Ok(())
    }
    let plane = |sizes: &[i64]| sizes[sizes.len() - spatial..].iter().product::<i64>() as usize;
    let sizes = (plane(out.sizes()), plane(g.sizes()));
    if out.numel() > 0 {
        with_compute!(real out.dtype(), T => run::<T>(g, indices, sizes, out, threads)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    fn one() -> Temp<Span> {
        Temp::filled(1, Span { start: 0, end: 1, step: 1, size: 1 })
    }

    #[test]
    fn maxima_and_means_of_a_line() {
        let span = |start, end| Span { start, end, step: 1, size: 2 };
        let s = Spans {
            spatial: 1,
            input: [1, 1, 4],
            windows: [one(), one(), Temp::copied(&[span(0, 2), span(1, 3), span(3, 4)])],
        };
        let x = RawTensor::from_slice(&[3f32, f32::NAN, 5.0, 4.0, 1.0, 1.0, 0.0, -2.0], &[2, 4]);
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 3]));
        let at = RawTensor::zeros(DType::I64, Layout::contiguous(&[2, 3]));
        max(&x.read().view(), &s, &out.write().view_mut(), Some(&at.write().view_mut()), 2).unwrap();
        assert_eq!(at.to_elements::<i64>(), [1, 1, 3, 0, 1, 3]);
        assert_eq!(out.to_elements::<f32>()[2..], [4.0, 1.0, 1.0, -2.0]);
        let alone = RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 3]));
        max(&x.read().view(), &s, &alone.write().view_mut(), None, 1).unwrap();
        assert_eq!(format!("{:?}", alone.to_elements::<f32>()), format!("{:?}", out.to_elements::<f32>()));
        mean(&x.read().view(), &s, None, &out.write().view_mut(), 1).unwrap();
        assert_eq!(out.to_elements::<f32>()[2..], [2.0, 1.0, 0.5, -1.0]);
        mean(&x.read().view(), &s, Some(1), &out.write().view_mut(), 1).unwrap();
        assert_eq!(out.to_elements::<f32>()[2..], [4.0, 2.0, 1.0, -2.0]);
        let g = RawTensor::from_slice(&[1f32, 2.0, 4.0, 1.0, 1.0, 1.0], &[2, 3]);
        let back = RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 4]));
        mean_backward(&g.read().view(), &s, None, &back.write().view_mut(), 1).unwrap();
        assert_eq!(back.to_elements::<f32>(), [0.5, 1.5, 1.0, 2.0, 0.5, 1.0, 0.5, 0.5]);
        max_backward(&g.read().view(), &at.read().view(), 1, &back.write().view_mut(), 1).unwrap();
        assert_eq!(back.to_elements::<f32>(), [0.0, 3.0, 0.0, 4.0, 1.0, 1.0, 0.0, 1.0]);
        let wild = RawTensor::from_slice(&[9i64; 6], &[2, 3]);
        assert!(max_backward(&g.read().view(), &wild.read().view(), 1, &back.write().view_mut(), 1).is_err());
    }

    /// Windows of `kernel` elements, `dilation` apart, every `stride`.
    fn sliding(n: usize, kernel: usize, stride: usize, pad: usize, dilation: usize) -> Temp<Span> {
        let count = (n + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
        let span = |o: usize| {
            let first = (o * stride) as i64 - pad as i64;
            let inside = |j: &usize| (0..n as i64).contains(&(first + (j * dilation) as i64));
            let taps: Vec<usize> = (0..kernel).filter(inside).collect();
            let at = |j: usize| (first + (j * dilation) as i64) as usize;
            Span { start: at(taps[0]), end: at(taps[taps.len() - 1]) + 1, step: dilation, size: taps.len() }
        };
        Temp::gather(count, (0..count).map(span))
    }

    /// The first of equal elements and the last NaN, in planes (several windows at a time) and with channels last (one by one).
    #[test]
    fn places_do_not_depend_on_the_layout() {
        // Lines of more than sixteen windows, of nine to fifteen, and of eight beside one at the edge.
        [45, 17, 12].into_iter().for_each(places_of);
    }

    fn places_of(width: usize) {
        let x: Vec<f32> = (0..2 * 7 * width as u32)
            .map(|i| match i.wrapping_mul(2654435761) >> 24 {
                0..8 => f32::NAN,
                8..160 => f32::NEG_INFINITY,
                v => (v % 3) as f32,
            })
            .collect();
        for (stride, pad) in [(1, 0), (2, 1)] {
            let windows = [one(), sliding(7, 3, stride, pad, 1), sliding(width, 3, stride, pad, 1)];
            let s = Spans { spatial: 2, input: [1, 7, width], windows };
            let mut want = Vec::new();
            for plane in x.chunks(s.volume()) {
                s.each(|_, w| {
                    let mut best: Option<usize> = None;
                    s.lines(w, |line| {
                        for i in (w[2].start..w[2].end).map(|k| line + k) {
                            if best.is_none_or(|b| plane[i].is_nan() || plane[i] > plane[b]) {
                                best = Some(i);
                            }
                        }
                    });
                    want.push(best.expect("windows have elements") as i64);
                });
            }
            let sizes = [1, 2, s.windows[1].len() as i64, s.windows[2].len() as i64];
            for order in [[0, 1, 2, 3], [0, 2, 3, 1]] {
                let t = RawTensor::zeros(DType::F32, Layout::permuted(&[1, 2, 7, width as i64], &order));
                crate::support::pack::unpack(&x, &t.write().view_mut());
                let out = RawTensor::zeros(DType::F32, Layout::permuted(&sizes, &order));
                let at = RawTensor::zeros(DType::I64, Layout::permuted(&sizes, &order));
                max(&t.read().view(), &s, &out.write().view_mut(), Some(&at.write().view_mut()), 2).unwrap();
                assert_eq!(at.to_elements::<i64>(), want, "{order:?}, every {stride}");
                let plane = |i: usize| i / (want.len() / 2) * s.volume();
                for (i, (y, &place)) in out.to_elements::<f32>().into_iter().zip(&want).enumerate() {
                    assert_eq!(y.to_bits(), x[plane(i) + place as usize].to_bits());
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "many elements")]
    fn bits_do_not_depend_on_layout_or_threads() {
        let uneven = Temp::gather(
            5,
            (0..5usize).map(|o| (o * 21 / 5, ((o + 1) * 21).div_ceil(5))).map(|(start, end)| Span {
                start,
                end,
                step: 1,
                size: end - start,
            }),
        );
        let all = [
            Spans {
                spatial: 2,
                input: [1, 11, 40],
                windows: [one(), sliding(11, 3, 2, 1, 1), sliding(40, 3, 2, 1, 1)],
            },
            Spans { spatial: 2, input: [1, 9, 37], windows: [one(), sliding(9, 2, 1, 0, 2), sliding(37, 5, 1, 2, 2)] },
            Spans { spatial: 2, input: [1, 6, 21], windows: [one(), sliding(6, 6, 1, 0, 1), uneven] },
            Spans {
                spatial: 3,
                input: [4, 5, 20],
                windows: [sliding(4, 2, 2, 0, 1), sliding(5, 3, 1, 1, 1), sliding(20, 20, 1, 0, 1)],
            },
            // Planes with one window.
            Spans {
                spatial: 2,
                input: [1, 14, 13],
                windows: [one(), sliding(14, 14, 1, 0, 1), sliding(13, 13, 1, 0, 1)],
            },
            Spans {
                spatial: 3,
                input: [3, 5, 7],
                windows: [sliding(3, 3, 1, 0, 1), sliding(5, 5, 1, 0, 1), sliding(7, 7, 1, 0, 1)],
            },
        ];
        for s in &all {
            let (n, c) = (2, 35);
            let lead = 5 - s.spatial;
            let sizes = |plane: [usize; 3]| -> Vec<i64> {
                [n, c].into_iter().chain(plane[3 - s.spatial..].iter().copied()).map(|v| v as i64).collect()
            };
            let counts = s.windows.each_ref().map(|w| w.len());
            let (sx, sy) = (sizes(s.input), sizes(counts));
            let x: Vec<f32> = (0..sx.iter().product::<i64>() as u64)
                .map(|i| (i.wrapping_mul(2654435761) % 1999) as f32 / 1000.0 - 1.0)
                .collect();
            let mut mean_of = Vec::new();
            let mut max_of = Vec::new();
            for plane in x.chunks(s.volume()) {
                s.each(|_, w| {
                    let mut found = Vec::new();
                    s.lines(w, |line| {
                        found.extend((w[2].start..w[2].end).step_by(w[2].step).map(|i| plane[line + i] as f64))
                    });
                    mean_of.push(found.iter().sum::<f64>() / found.len() as f64);
                    max_of.push(found.into_iter().fold(f64::MIN, f64::max));
                });
            }
            let first: Vec<usize> = (0..7 - lead).collect();
            let last: Vec<usize> = [0].into_iter().chain(2..7 - lead).chain([1]).collect();
            let mut turned = first.clone();
            turned.swap(5 - lead, 6 - lead);
            let mut bits: Option<[Vec<u32>; 2]> = None;
            for (ox, oy) in [(&first, &first), (&last, &last), (&first, &last), (&last, &first), (&turned, &first)] {
                let tx = RawTensor::zeros(DType::F32, Layout::permuted(&sx, ox));
                crate::support::pack::unpack(&x, &tx.write().view_mut());
                for threads in [1, 3] {
                    let made = || RawTensor::zeros(DType::F32, Layout::permuted(&sy, oy));
                    let (means, maxima, again) = (made(), made(), made());
                    mean(&tx.read().view(), s, None, &means.write().view_mut(), threads).unwrap();
                    max(&tx.read().view(), s, &maxima.write().view_mut(), None, threads).unwrap();
                    let at = RawTensor::zeros(DType::I64, Layout::permuted(&sy, oy));
                    max(&tx.read().view(), s, &again.write().view_mut(), Some(&at.write().view_mut()), threads)
                        .unwrap();
                    let got = means.to_elements::<f32>();
                    assert!(got.iter().zip(&mean_of).all(|(a, b)| (*a as f64 - b).abs() < 1e-5), "{s:?}");
                    let got = maxima.to_elements::<f32>();
                    assert!(got.iter().zip(&max_of).all(|(a, b)| *a as f64 == *b), "{s:?}");
                    assert_eq!(got, again.to_elements::<f32>());
                    for (i, place) in at.to_elements::<i64>().into_iter().enumerate() {
                        let plane = i / counts.iter().product::<usize>();
                        assert_eq!(x[plane * s.volume() + place as usize], got[i]);
                    }
                    let now = [&means, &maxima].map(|t| t.to_elements::<f32>().into_iter().map(f32::to_bits).collect());
                    assert!(bits.get_or_insert(now.clone()) == &now, "{s:?} {ox:?} {oy:?} {threads}");
                }
            }
        }
        // Windows beyond the input, and other sizes, are refused.
        let s = &all[0];
        let x = RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 3, 11, 39]));
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 3, 6, 20]));
        assert!(mean(&x.read().view(), s, None, &out.write().view_mut(), 1).is_err());
        assert!(max(&x.read().view(), s, &out.write().view_mut(), None, 1).is_err());
    }
}
