//! Pooling: maxima and means over windows of one to three dimensions, plane by plane.

use crate::support::number::Ordered;
use crate::support::pack::{Compute, Target, pack, unpack, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::{View, ViewMut};
use std::ops::{Add, AddAssign, Div};

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

/// The maximum of each window and, where asked for, its index in the plane: the first of equal ones, the last NaN.
pub fn max(
    x: &View<'_>,
    s: &Spans,
    out: &ViewMut<'_>,
    indices: Option<&ViewMut<'_>>,
    threads: usize,
) -> Result<(), String> {
    fn run<T: Ordered>(x: &View<'_>, s: &Spans, out: &ViewMut<'_>, indices: Option<&ViewMut<'_>>, threads: usize) {
        let data = pack::<T>(x);
        let (volume, count) = (s.volume(), s.count());
        let mut target = Target::<T>::new(out);
        let values = target.slice();
        let Some(indices) = indices else {
            par::pieces(threads, values, count, &|p, values| {
                let plane = &data[p * volume..][..volume];
                s.each(|at, w| {
                    let mut best = T::LEAST;
                    s.lines(w, |line| {
                        for i in (w[2].start..w[2].end).step_by(w[2].step) {
                            let v = plane[line + i];
                            best = if v.beats(best) { v } else { best };
                        }
                    });
                    values[at] = best;
                });
            });
            return target.finish();
        };
        let mut found = Temp::filled(values.len(), 0i64);
        par::pieces(threads, &mut found, count, &|p, found| {
            let plane = &data[p * volume..][..volume];
            s.each(|at, w| {
                let first = (w[0].start * s.input[1] + w[1].start) * s.input[2] + w[2].start;
                let (mut best, mut place) = (T::LEAST, first);
                s.lines(w, |line| {
                    for i in (w[2].start..w[2].end).step_by(w[2].step) {
                        let v = plane[line + i];
                        if v.beats(best) {
                            (best, place) = (v, line + i);
                        }
                    }
                });
                found[at] = place as i64;
            });
        });
        for (p, (values, found)) in values.chunks_mut(count.max(1)).zip(found.chunks(count.max(1))).enumerate() {
            let plane = &data[p * volume..][..volume];
            for (v, &i) in values.iter_mut().zip(found) {
                // A window without elements has no maximum.
                *v = plane.get(i as usize).copied().unwrap_or(T::LEAST);
            }
        }
        target.finish();
        unpack(&found, indices);
    }
    if out.numel() > 0 {
        with_compute!(real out.dtype(), T => run::<T>(x, s, out, indices, threads));
    }
    Ok(())
}

/// A type with sums and quotients.
trait Mean: Compute + Add<Output = Self> + Div<Output = Self> + AddAssign {}
impl<T: Compute + Add<Output = T> + Div<Output = T> + AddAssign> Mean for T {}

/// Divisor of the sum of a window.
fn divisor<T: Compute>(w: &[Span; 3], given: Option<i64>) -> T {
    T::from_i64(given.unwrap_or_else(|| w.iter().map(|w| w.size as i64).product()))
}

fn is_empty(w: &[Span; 3]) -> bool {
    w.iter().any(|w| w.start >= w.end)
}

/// The mean of each window: its sum over the size of its spans, or over `by`.
pub fn mean(x: &View<'_>, s: &Spans, by: Option<i64>, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    fn run<T: Mean>(x: &View<'_>, s: &Spans, by: Option<i64>, out: &ViewMut<'_>, threads: usize) {
        let data = pack::<T>(x);
        let (volume, count) = (s.volume(), s.count());
        let mut target = Target::<T>::new(out);
        par::pieces(threads, target.slice(), count, &|p, values| {
            let plane = &data[p * volume..][..volume];
            s.each(|at, w| {
                let mut total = T::default();
                s.lines(w, |line| {
                    let run = &plane[line + w[2].start..line + w[2].end];
                    total += if run.len() >= 16 {
                        crate::norm::softmax::sum(run, |x| x)
                    } else {
                        run.iter().fold(T::default(), |t, &x| t + x)
                    };
                });
                values[at] = if is_empty(&w) { T::default() } else { total / divisor(&w, by) };
            });
        });
        target.finish();
    }
    if by == Some(0) {
        return Err("divisor must be not zero".into());
    }
    if out.numel() > 0 {
        with_compute!(real out.dtype(), T => run::<T>(x, s, by, out, threads));
    }
    Ok(())
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
    use restride_tensor::{DType, Layout, RawTensor};

    fn one() -> Temp<Span> {
        Temp::filled(1, Span { start: 0, end: 1, step: 1, size: 1 })
    }

    #[test]
    fn maxima_and_means_of_a_line() {
        let span = |start, end| Span { start, end, step: 1, size: 2 };
        let s =
            Spans { input: [1, 1, 4], windows: [one(), one(), Temp::copied(&[span(0, 2), span(1, 3), span(3, 4)])] };
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
}
