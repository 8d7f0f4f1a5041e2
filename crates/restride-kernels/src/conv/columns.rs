//! Windows of images as operands of products, made piece by piece.

use crate::conv::Number;
use crate::conv::frame::{Planes, evens};
use crate::conv::implicit::Order;
use crate::conv::window::Window;
use crate::matmul::blocked::DEPTH;
use crate::matmul::panels::{Panels, Rows, pack, widen};
use crate::support::runs;
use crate::support::stack::Stack;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The columns of images' windows, or their transpose: `k` × windows as [`Panels`], windows × `k` as [`Rows`]. Windows are counted over
/// the samples.
pub(super) struct Windows<'a, T> {
    pub x: Planes<*const T>,
    /// Distance of samples.
    pub sample: isize,
    pub w: &'a Window,
    pub cin: usize,
    pub order: Order,
}
// SAFETY: elements are read only, and whoever makes it promises that they are readable meanwhile.
unsafe impl<T: Sync> Sync for Windows<'_, T> {}

impl<T: Number> Windows<'_, T> {
    /// The first element of a window's sample, and its place in the result.
    fn window(&self, i: usize) -> (*const T, [usize; 3]) {
        let [od, oh, ow] = self.w.output;
        let plane = i / (oh * ow);
        let base = self.x.base.wrapping_offset((plane / od) as isize * self.sample);
        (base, [plane % od, i / ow % oh, i % ow])
    }

    /// The terms `depth` of a window, where those of a line of taps are a run.
    ///
    /// # Safety
    /// As [`Rows::fill`], for one row.
    unsafe fn lines(&self, (base, at): (*const T, [usize; 3]), depth: &Range<usize>, to: *mut T) {
        let w = self.w;
        let [_, kh, kw] = w.kernel;
        let run = kw * self.cin;
        let first = (at[2] * w.stride[2]) as isize - w.pad[2] as isize;
        // Taps of a line that are inside of the input.
        let lo = (-first).clamp(0, kw as isize) as usize;
        let hi = (w.input[2] as isize - first).clamp(lo as isize, kw as isize) as usize;
        let fill = |from: usize, end: usize| {
            // SAFETY: terms of the row.
            (from..end.max(from)).for_each(|k| unsafe { to.add(k - depth.start).write(T::default()) });
        };
        for line in depth.start / run..depth.end.div_ceil(run) {
            let (start, end) = ((line * run).max(depth.start), ((line + 1) * run).min(depth.end));
            match w.at(0, at[0], line / kh).zip(w.at(1, at[1], line % kh)) {
                None => fill(start, end),
                Some((z, y)) => {
                    let a = (line * run + lo * self.cin).clamp(start, end);
                    let b = (line * run + hi * self.cin).clamp(a, end);
                    fill(start, a);
                    if a < b {
                        let s = &self.x.strides;
                        let x = first * s[2] + (a - line * run) as isize;
                        // SAFETY: terms of the row; elements of the input.
                        unsafe {
                            let from = base.offset(z as isize * s[0] + y as isize * s[1] + x);
                            gather(from, 1, to.add(a - depth.start), 1, b - a);
                        }
                    }
                    fill(b, end);
                }
            }
        }
    }

    /// Calls `f` for each run of windows of a row that have an element at a tap: first window, length, the distance of its element from
    /// the first sample's plane. Whether all windows are in runs.
    fn runs(&self, columns: &Range<usize>, t: usize, mut f: impl FnMut(usize, usize, isize)) -> bool {
        let w = self.w;
        let [od, oh, ow] = w.output;
        let [kz, ky, kx] = w.tap(t);
        let (lo, hi) = w.inside(2, kx);
        let (mut i, mut found) = (columns.start, 0);
        let (mut line, mut x0) = (i / ow, i % ow);
        while i < columns.end {
            let len = (ow - x0).min(columns.end - i);
            let (a, b) = (lo.clamp(x0, x0 + len), hi.clamp(x0, x0 + len));
            if a < b
                && let Some((z, y)) = w.at(0, line / oh % od, kz).zip(w.at(1, line % oh, ky))
            {
                let sample = (line / (oh * od)) as isize * self.sample;
                let x = (a * w.stride[2] + kx * w.dilation[2] - w.pad[2]) as isize;
                let s = &self.x.strides;
                f(i + a - x0, b - a, sample + z as isize * s[0] + y as isize * s[1] + x * s[2]);
                found += b - a;
            }
            i += len;
            (line, x0) = (line + 1, 0);
        }
        found == columns.len()
    }
}

/// Most runs of a panel's columns.
const RUNS: usize = 64;

impl<T: Number> Panels<T> for Windows<'_, T> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        let (cin, all) = (self.cin, self.w.taps());
        let step = self.x.strides[2] * self.w.stride[2] as isize;
        assert!(columns.len() <= RUNS && columns.len() <= width, "a panel is too wide");
        for t in self.order.taps(&depth, cin, all) {
            let mut runs = [(0, 0, 0); RUNS];
            let mut count = 0;
            let full = self.runs(&columns, t, |at, len, from| {
                runs[count] = (at - columns.start, len, from);
                count += 1;
            });
            let full = full && columns.len() == width;
            for c in self.order.channels(&depth, t, cin, all) {
                let k = self.order.term(c, t, cin, all).0 - depth.start;
                // SAFETY: the row is one of the panel's; runs are elements of the channel's plane.
                unsafe {
                    let row = panel.add(k * width);
                    if !full {
                        std::slice::from_raw_parts_mut(row.cast::<MaybeUninit<T>>(), width)
                            .fill(MaybeUninit::new(T::default()));
                    }
                    let plane = self.x.base.offset(c as isize * self.x.channel);
                    for &(at, len, from) in &runs[..count] {
                        gather(plane.offset(from), step, row.add(at), 1, len);
                    }
                }
            }
        }
    }
}

impl<T: Number> Rows<T> for Windows<'_, T> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        let (cin, all, w) = (self.cin, self.w.taps(), self.w);
        let lines = self.order == Order::Taps
            && self.x.channel == 1
            && (w.kernel[2] == 1 || w.dilation[2] == 1 && self.x.strides[2] == cin as isize);
        for (i, window) in rows.enumerate() {
            let (base, at) = self.window(window);
            if lines {
                // SAFETY: the caller's promise.
                unsafe { self.lines((base, at), &depth, to.add(i * step)) }
                continue;
            }
            for t in self.order.taps(&depth, cin, all) {
                let channels = self.order.channels(&depth, t, cin, all);
                if channels.is_empty() {
                    continue;
                }
                let (k, apart) = self.order.term(channels.start, t, cin, all);
                let tap = w.tap(t);
                let cell = |d: usize| w.at(d, at[d], tap[d]).map(|i| i as isize * self.x.strides[d]);
                // SAFETY: the terms are those of the row; the cell is one of each channel's plane.
                unsafe {
                    let to = to.add(i * step + k - depth.start);
                    match cell(0).zip(cell(1)).zip(cell(2)) {
                        None => (0..channels.len()).for_each(|i| to.add(i * apart).write(T::default())),
                        Some(((z, y), x)) => {
                            let from = base.offset(channels.start as isize * self.x.channel + z + y + x);
                            gather(from, self.x.channel, to, apart, channels.len());
                        }
                    }
                }
            }
        }
    }
}

/// Columns of a panel that are made as runs and then turned; elements from one to the next.
const SOME: usize = 8;
const STEP: usize = DEPTH + 16;

/// The windows of images as rows, windows × terms, as [`Panels`]: terms are tap by tap of each channel.
pub(crate) struct WindowTerms<'a, T>(Windows<'a, T>);

impl<'a, T: Number> WindowTerms<'a, T> {
    /// Of images that are `sample` apart.
    ///
    /// # Safety
    /// Elements of the images that windows have are readable while this value is in use.
    pub(crate) unsafe fn new(x: Planes<*const T>, sample: isize, w: &'a Window, cin: usize) -> Self {
        WindowTerms(Windows { x, sample, w, cin, order: Order::Channels })
    }
}

/// Planes of several samples, channels × windows, as [`Rows`].
pub(crate) struct SampleRows<T> {
    base: *const T,
    channel: isize,
    /// Distance of windows, and their number.
    windows: (isize, usize),
    sample: isize,
}
// SAFETY: elements are read only, and whoever makes it promises that they are readable meanwhile.
unsafe impl<T: Sync> Sync for SampleRows<T> {}

impl<T: Number> SampleRows<T> {
    /// # Safety
    /// Elements of the planes are readable while this value is in use.
    pub(crate) unsafe fn new(base: *const T, channel: isize, windows: (isize, usize), sample: isize) -> Self {
        SampleRows { base, channel, windows, sample }
    }
}

impl<T: Number> Rows<T> for SampleRows<T> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        let (apart, n) = self.windows;
        for (i, row) in rows.enumerate() {
            let mut p = depth.start;
            while p < depth.end {
                let len = (n - p % n).min(depth.end - p);
                let cell = row as isize * self.channel + (p / n) as isize * self.sample + (p % n) as isize * apart;
                // SAFETY: terms of the row; elements of a plane.
                unsafe { gather(self.base.offset(cell), apart, to.add(i * step + p - depth.start), 1, len) };
                p += len;
            }
        }
    }
}

impl<T: Number> Panels<T> for WindowTerms<'_, T> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        let (of, len, wide) = (&self.0, depth.len(), columns.len());
        let (x, w, taps) = (&of.x, of.w, of.w.taps());
        let step = x.strides[2] * w.stride[2] as isize;
        let mut memory = Stack::<T, { SOME * STEP }>::new();
        let runs: *mut T = memory.start();
        // Whether every window has all of its taps.
        let whole = (0..3).all(|d| {
            let reach = (w.output[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d];
            w.pad[d] == 0 && reach < w.input[d]
        });
        let mut first = 0;
        while first < wide {
            let some = SOME.min(wide - first);
            for j in 0..some {
                let column = columns.start + first + j;
                // SAFETY: a column of windows; runs are elements of the channel's plane.
                unsafe {
                    let to = runs.add(j * STEP);
                    if !whole {
                        std::slice::from_raw_parts_mut(to.cast::<MaybeUninit<T>>(), len)
                            .fill(MaybeUninit::new(T::default()));
                    }
                    let plane = x.base.offset((column / taps) as isize * x.channel);
                    of.runs(&depth, column % taps, |at, n, from| {
                        gather(plane.offset(from), step, to.add(at - depth.start), 1, n)
                    });
                }
            }
            // SAFETY: the columns just made, and the panel's.
            unsafe { pack(T::turn(), panel.add(first), width, (runs, 1, STEP as isize), len, some) };
            first += some;
        }
        // SAFETY: the caller's promise.
        unsafe { widen(panel, width, len, wide) };
    }
}

/// The windows from one on.
pub(super) struct Part<'a, T> {
    pub of: Windows<'a, T>,
    pub first: usize,
}

impl<T: Number> Panels<T> for Part<'_, T> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        let columns = columns.start + self.first..columns.end + self.first;
        // SAFETY: the caller's promise.
        unsafe { Panels::fill(&self.of, depth, columns, width, panel) }
    }
}

impl<T: Number> Rows<T> for Part<'_, T> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        let rows = rows.start + self.first..rows.end + self.first;
        // SAFETY: the caller's promise.
        unsafe { Rows::fill(&self.of, rows, depth, step, to) }
    }
}

/// Copies `n` elements, `step` apart, to elements that are `apart`.
///
/// # Safety
/// They are readable and writable, apart from each other.
#[inline]
pub(super) unsafe fn gather<T: Copy>(from: *const T, step: isize, to: *mut T, apart: usize, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if step == 1 && apart == 1 {
            if n >= 64 {
                return runs::copy(from, to, n);
            }
            // In eights, without a call; the last ones twice.
            let eight =
                |i: usize| to.add(i).cast::<[T; 8]>().write_unaligned(from.add(i).cast::<[T; 8]>().read_unaligned());
            let two =
                |i: usize| to.add(i).cast::<[T; 2]>().write_unaligned(from.add(i).cast::<[T; 2]>().read_unaligned());
            match n {
                8.. => {
                    (0..n / 8).for_each(|i| eight(8 * i));
                    eight(n - 8);
                }
                2.. => {
                    (0..n / 2).for_each(|i| two(2 * i));
                    two(n - 2);
                }
                1 => to.write(from.read()),
                0 => {}
            }
        } else if step == 2 && apart == 1 {
            evens(from, to, n);
        } else {
            (0..n).for_each(|i| to.add(i * apart).write(from.offset(i as isize * step).read()));
        }
    }
}
