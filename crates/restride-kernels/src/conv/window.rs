//! Sliding windows: the input elements of each window, and windows as columns of a matrix.

use crate::support::pack::{Compute, Target, pack, with_compute};
use restride_tensor::{View, ViewMut};
use std::ops::AddAssign;

/// Sizes of a sliding window over up to three dimensions (fewer have leading ones of size 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Sizes of the input.
    pub input: [usize; 3],
    /// Sizes of the window.
    pub kernel: [usize; 3],
    /// Number of windows in each dimension.
    pub output: [usize; 3],
    /// Steps between windows.
    pub stride: [usize; 3],
    /// Padding: elements of the first window before the input.
    pub pad: [usize; 3],
    /// Steps between a window's elements.
    pub dilation: [usize; 3],
}

impl Window {
    /// From one number a dimension (at most 3).
    pub fn new(input: &[i64], kernel: &[i64], output: &[i64], stride: &[i64], pad: &[i64], dilation: &[i64]) -> Self {
        let three = |v: &[i64], fill: usize| {
            let mut out = [fill; 3];
            for (o, &x) in out[3 - v.len()..].iter_mut().zip(v) {
                *o = x as usize;
            }
            out
        };
        Window {
            input: three(input, 1),
            kernel: three(kernel, 1),
            output: three(output, 1),
            stride: three(stride, 1),
            pad: three(pad, 0),
            dilation: three(dilation, 1),
        }
    }
    /// Elements of the input.
    pub fn volume(&self) -> usize {
        self.input.iter().product()
    }
    /// Elements of a window.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }
    /// Number of windows.
    pub fn windows(&self) -> usize {
        self.output.iter().product()
    }
    /// Whether every window is one element, and all are visited in order.
    pub fn is_identity(&self) -> bool {
        self.kernel == [1; 3] && self.stride == [1; 3] && self.pad == [0; 3] && self.input == self.output
    }
    /// The input index in dimension `d` of tap `k` of window `o`, or `None` in the padding.
    pub fn at(&self, d: usize, o: usize, k: usize) -> Option<usize> {
        (o * self.stride[d] + k * self.dilation[d]).checked_sub(self.pad[d]).filter(|&i| i < self.input[d])
    }
    /// The windows of dimension `d` whose tap `k` is inside the input, as a half-open range.
    pub fn inside(&self, d: usize, k: usize) -> (usize, usize) {
        let shift = k * self.dilation[d];
        let (pad, stride, n) = (self.pad[d], self.stride[d], self.input[d]);
        let lo = pad.saturating_sub(shift).div_ceil(stride);
        // o * stride + shift - pad < n
        let hi = (n + pad).saturating_sub(shift).div_ceil(stride);
        let hi = hi.min(self.output[d]);
        (lo.min(hi), hi)
    }
    /// The tap `(z, y, x)` of a number.
    pub fn tap(&self, t: usize) -> [usize; 3] {
        let [_, kh, kw] = self.kernel;
        [t / (kh * kw), t / kw % kh, t % kw]
    }
    /// The taps `(z, y, x)` in order.
    pub fn each_tap(&self, mut f: impl FnMut(usize, [usize; 3])) {
        let mut t = 0;
        for z in 0..self.kernel[0] {
            for y in 0..self.kernel[1] {
                for x in 0..self.kernel[2] {
                    f(t, [z, y, x]);
                    t += 1;
                }
            }
        }
    }
}

/// Given rows (`channel * taps + tap`) of the columns of windows `first .. first + n`; rows are `step` elements apart.
pub fn columns<T: Copy + Default>(
    x: &[T],
    rows: std::ops::Range<usize>,
    w: &Window,
    first: usize,
    n: usize,
    step: usize,
    cols: &mut [T],
) {
    let (volume, taps) = (w.volume(), w.taps());
    let [_, oh, ow] = w.output;
    let [_, ih, iw] = w.input;
    for (at, row) in rows.enumerate() {
        let (c, t) = (row / taps, row % taps);
        let [kz, ky, kx] = w.tap(t);
        let plane = &x[c * volume..][..volume];
        let row = &mut cols[at * step..][..n];
        let (lo, hi) = w.inside(2, kx);
        let mut done = 0;
        let (mut line, mut x0) = (first / ow, first % ow);
        while done < n {
            let len = (ow - x0).min(n - done);
            let out = &mut row[done..done + len];
            done += len;
            let from = w.at(0, line / oh, kz).zip(w.at(1, line % oh, ky));
            let (a, b) = (lo.clamp(x0, x0 + len), hi.clamp(x0, x0 + len));
            match from.filter(|_| a < b) {
                None => out.fill(T::default()),
                Some((z, y)) => {
                    let src = &plane[(z * ih + y) * iw..][..iw];
                    let start = a * w.stride[2] + kx * w.dilation[2] - w.pad[2];
                    out[..a - x0].fill(T::default());
                    out[b - x0..].fill(T::default());
                    let mid = &mut out[a - x0..b - x0];
                    if w.stride[2] == 1 {
                        mid.copy_from_slice(&src[start..start + mid.len()]);
                    } else {
                        for (o, s) in mid.iter_mut().zip(src[start..].iter().step_by(w.stride[2])) {
                            *o = *s;
                        }
                    }
                }
            }
            (line, x0) = (line + 1, 0);
        }
    }
}

/// Adds columns back to where they came from: the transpose of [`columns`] for all windows.
pub fn add_columns<T: Copy + AddAssign>(cols: &[T], channels: usize, w: &Window, x: &mut [T]) {
    let (volume, taps, n) = (w.volume(), w.taps(), w.windows());
    let [od, oh, ow] = w.output;
    let [_, ih, iw] = w.input;
    for c in 0..channels {
        let plane = &mut x[c * volume..][..volume];
        w.each_tap(|t, [kz, ky, kx]| {
            let row = &cols[(c * taps + t) * n..][..n];
            let (lo, hi) = w.inside(2, kx);
            if lo >= hi {
                return;
            }
            for oz in 0..od {
                for oy in 0..oh {
                    let Some((z, y)) = w.at(0, oz, kz).zip(w.at(1, oy, ky)) else { continue };
                    let dst = &mut plane[(z * ih + y) * iw..][..iw];
                    let src = &row[(oz * oh + oy) * ow..][lo..hi];
                    let start = lo * w.stride[2] + kx * w.dilation[2] - w.pad[2];
                    for (d, s) in dst[start..].iter_mut().step_by(w.stride[2]).zip(src) {
                        *d += *s;
                    }
                }
            }
        });
    }
}

/// `im2col`: windows of each sample as columns; `x` is (N ×) C × H × W, `out` is (N ×) (C · taps) × windows.
pub fn im2col(x: &View<'_>, w: &Window, out: &ViewMut<'_>) -> Result<(), String> {
    fn run<T: Compute>(x: &View<'_>, w: &Window, out: &ViewMut<'_>) {
        let channels = x.sizes()[x.sizes().len() - 3] as usize;
        let data = pack::<T>(x);
        let mut target = Target::<T>::new(out);
        let (per_in, per_out) = (channels * w.volume(), channels * w.taps() * w.windows());
        for (x, y) in data.chunks(per_in.max(1)).zip(target.slice().chunks_mut(per_out.max(1))) {
            columns(x, 0..channels * w.taps(), w, 0, w.windows(), w.windows(), y);
        }
        target.finish();
    }
    if out.numel() > 0 {
        with_compute!(any out.dtype(), T => run::<T>(x, w, out));
    }
    Ok(())
}

/// `col2im`: columns added up where they overlap; `out` is (N ×) C × H × W.
pub fn col2im(x: &View<'_>, w: &Window, out: &ViewMut<'_>) -> Result<(), String> {
    fn run<T: Compute + AddAssign>(x: &View<'_>, w: &Window, out: &ViewMut<'_>) {
        let channels = out.sizes()[out.sizes().len() - 3] as usize;
        let data = pack::<T>(x);
        let mut target = Target::<T>::new(out);
        let sums = target.slice();
        sums.fill(T::default());
        let (per_in, per_out) = (channels * w.taps() * w.windows(), channels * w.volume());
        for (x, y) in data.chunks(per_in.max(1)).zip(sums.chunks_mut(per_out.max(1))) {
            add_columns(x, channels, w, y);
        }
        target.finish();
    }
    if out.numel() > 0 {
        with_compute!(any out.dtype(), T => run::<T>(x, w, out));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window::new(&[5, 7], &[3, 2], &[3, 4], &[2, 2], &[1, 1], &[1, 2])
    }

    #[test]
    fn columns_are_the_windows() {
        let w = window();
        let x: Vec<i64> = (1..=70).collect();
        let n = w.windows();
        let mut cols = vec![-1; 2 * w.taps() * n];
        columns(&x, 0..2 * w.taps(), &w, 0, n, n, &mut cols);
        for c in 0..2 {
            w.each_tap(|t, k| {
                for (o, col) in cols[(c * w.taps() + t) * n..][..n].iter().enumerate() {
                    let (oy, ox) = (o / 4, o % 4);
                    let want = match (w.at(1, oy, k[1]), w.at(2, ox, k[2])) {
                        (Some(y), Some(x)) => (c * 35 + y * 7 + x + 1) as i64,
                        _ => 0,
                    };
                    assert_eq!(*col, want);
                }
            });
        }
        // A part of them is the same columns.
        let mut part = vec![-1; 7 * 6];
        columns(&x, 4..11, &w, 3, 5, 6, &mut part);
        for r in 4..11 {
            assert_eq!(part[(r - 4) * 6..][..5], cols[r * n + 3..][..5]);
        }
    }

    #[test]
    fn adding_columns_is_the_transpose() {
        let w = window();
        let (n, taps) = (w.windows(), w.taps());
        let x: Vec<i64> = (0..35).map(|i| (i * 7919) % 23 - 11).collect();
        let y: Vec<i64> = (0..(taps * n) as i64).map(|i| (i * 104729) % 19 - 9).collect();
        let mut cols = vec![0; taps * n];
        columns(&x, 0..taps, &w, 0, n, n, &mut cols);
        let mut back = vec![0; 35];
        add_columns(&y, 1, &w, &mut back);
        let dot = |a: &[i64], b: &[i64]| -> i64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        assert_eq!(dot(&cols, &y), dot(&x, &back));
    }
}
