//! Convolutions as products whose operands are made piece by piece: windows of an image, and weights, in their own strides.
//!
//! Of each group, `result[cout × windows] = weight[cout × k] · columns[k × windows]`, or its transpose where the result is
//! channels-last. The order of `k` depends on sizes alone ([`Order::of`]), so both have the same bits. The result starts with the bias.

use crate::conv::columns::{Part, Windows, gather};
use crate::conv::frame::Planes;
use crate::conv::packed::group_len;
use crate::conv::window::Window;
use crate::conv::{Number, SHARED, Shape};
use crate::matmul::packed::InPlace;
use crate::matmul::panels::{Panels, Rows, Strided, pack, widen};
use crate::support::epilogue::Epilogue;
use crate::support::par;
use crate::support::stack::Stack;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements of the result that are started with the bias and then computed: few enough for a cache.
const STRIP: usize = 1 << 16;
/// Fewest windows of a strip, and most of several samples that are computed together.
const WINDOWS: usize = 512;
/// Samples of fewer windows are computed together.
const FEW: usize = 128;
/// Bytes of results of several samples that are computed before they are put in their places.
const ASIDE: usize = 1 << 18;

/// The order of the terms of a sum.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Order {
    /// Channel by channel of each tap: runs of a channels-last input.
    Taps,
    /// Tap by tap of each channel: runs of a row-major weight.
    Channels,
}

impl Order {
    /// Few windows read many weights, which are then read where they are.
    pub(crate) fn of(s: &Shape) -> Order {
        if s.w.windows() <= s.cout { Order::Channels } else { Order::Taps }
    }

    /// Taps that have terms in `depth`.
    pub(super) fn taps(self, depth: &Range<usize>, cin: usize, taps: usize) -> Range<usize> {
        match self {
            Order::Taps => depth.start / cin..depth.end.div_ceil(cin),
            Order::Channels => 0..taps,
        }
    }

    /// The channels of tap `t` whose terms are in `depth`.
    pub(super) fn channels(self, depth: &Range<usize>, t: usize, cin: usize, taps: usize) -> Range<usize> {
        match self {
            Order::Taps => {
                let at = |k: usize| k.saturating_sub(t * cin).min(cin);
                at(depth.start)..at(depth.end)
            }
            Order::Channels => {
                let at = |k: usize| k.saturating_sub(t).div_ceil(taps);
                at(depth.start)..at(depth.end)
            }
        }
    }

    /// The term of a channel and a tap, and the distance to the next channel's.
    pub(crate) fn term(self, c: usize, t: usize, cin: usize, taps: usize) -> (usize, usize) {
        match self {
            Order::Taps => (t * cin + c, 1),
            Order::Channels => (c * taps + t, taps),
        }
    }
}

/// Weights of a group: cout × `k` as [`Rows`], `k` × cout as [`Panels`].
pub(super) struct Weights<'a, T> {
    pub at: Planes<*const T>,
    /// Distance of result channels.
    pub out: isize,
    pub w: &'a Window,
    pub cin: usize,
    pub order: Order,
}
// SAFETY: elements are read only, and whoever makes it promises that they are readable meanwhile.
unsafe impl<T: Sync> Sync for Weights<'_, T> {}

impl<T: Number> Weights<'_, T> {
    /// The distance of terms, where it is one for all of them.
    pub(super) fn step(&self) -> Option<isize> {
        let [kd, kh, kw] = self.w.kernel;
        let [z, y, x] = self.at.strides;
        let mut sizes = [(kd, z), (kh, y), (kw, x), (self.cin, self.at.channel)];
        if self.order == Order::Channels {
            sizes.rotate_right(1);
        }
        uniform(&sizes)
    }

    /// Calls `f` for each tap that has terms in `depth`, with four numbers: how many of its channels have one there; the place of the first
    /// channel's term, from the start of `depth`; the distance to the next channel's term; the distance of the first channel's weight
    /// from a result channel's first weight.
    fn each_tap(&self, depth: &Range<usize>, mut f: impl FnMut(usize, usize, usize, isize)) {
        let (cin, all) = (self.cin, self.w.taps());
        for t in self.order.taps(depth, cin, all) {
            let channels = self.order.channels(depth, t, cin, all);
            if channels.is_empty() {
                continue;
            }
            let (k, next) = self.order.term(channels.start, t, cin, all);
            let tap = self.w.tap(t);
            let cell: isize = (0..3).map(|d| tap[d] as isize * self.at.strides[d]).sum();
            f(channels.len(), k - depth.start, next, cell + channels.start as isize * self.at.channel);
        }
    }
}

impl<T: Number> Rows<T> for Weights<'_, T> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        for (i, o) in rows.enumerate() {
            self.each_tap(&depth, |channels, k, next, cell| {
                // SAFETY: the caller's promise; the terms are the tap's.
                unsafe {
                    let from = self.at.base.offset(o as isize * self.out + cell);
                    gather(from, self.at.channel, to.add(i * step + k), next, channels);
                }
            });
        }
    }
}

impl<T: Number> Panels<T> for Weights<'_, T> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        self.each_tap(&depth, |channels, k, next, cell| {
            // SAFETY: the caller's promise; rows of the panel are the tap's terms.
            unsafe {
                let from = self.at.base.offset(columns.start as isize * self.out + cell);
                let matrix = (from, self.at.channel, self.out);
                pack(T::turn(), panel.add(k * width), next * width, matrix, channels, columns.len());
            }
        });
        // SAFETY: the caller's promise.
        unsafe { widen(panel, width, depth.len(), columns.len()) };
    }
}

/// The distance of neighbours in row-major order of (size, distance), where it is one for all.
pub(crate) fn uniform(sizes: &[(usize, isize)]) -> Option<isize> {
    let mut run: Option<(isize, isize)> = None;
    for &(n, s) in sizes.iter().rev().filter(|(n, _)| *n != 1) {
        run = match run {
            None => Some((s, s * n as isize)),
            Some((step, all)) if s == all => Some((step, all * n as isize)),
            Some(_) => return None,
        };
    }
    Some(run.map_or(1, |(step, _)| step))
}

/// A convolution in strides.
pub(crate) struct Implicit<'a, T> {
    pub s: &'a Shape,
    pub x: Planes<*const T>,
    /// Distance of samples.
    pub x_sample: isize,
    pub weight: Planes<*const T>,
    /// Distance of result channels.
    pub weight_out: isize,
    /// The filter in panels, read instead of `weight`.
    pub packed: Option<*const T>,
    /// A number for each result channel.
    pub bias: Option<&'a [T]>,
    /// The result: its first element, the distances of samples, of channels and of windows.
    pub y: (*mut T, isize, isize, isize),
}
// SAFETY: threads read the operands and write each their own elements of the result.
unsafe impl<T: Sync> Sync for Implicit<'_, T> {}

impl<T: Number> Implicit<'_, T> {
    /// Runs it.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of the result writable, different cells that no other thread uses
    /// and that are none of an operand.
    pub(crate) unsafe fn run(&self, threads: usize, done: Option<Epilogue<'_>>) {
        let s = self.s;
        let (n, k) = (s.w.windows(), s.cin * s.w.taps());
        let images = s.batch * s.groups;
        let threads = if images * s.cout * n * k < SHARED { 1 } else { threads };
        if let Some(each) = self.together() {
            // SAFETY: the caller's promise.
            return unsafe { self.samples(each, threads, done) };
        }
        // Every thread has strips, if there are enough windows.
        let strips = if n < 2 * WINDOWS { 1 } else { (s.cout * n).div_ceil(STRIP).min(n / WINDOWS).max(1) };
        let strips = if images == 1 && strips > 1 { strips.next_multiple_of(threads) } else { strips };
        let mut wide = n.div_ceil(strips);
        if done.is_some() {
            // Whole lines are a box of the result.
            wide = wide.next_multiple_of(s.w.output[2]).min(n);
        }
        let strips = n.div_ceil(wide);
        let (over, inner) = if images * strips >= threads { (threads, 1) } else { (1, threads) };
        par::each(over, images * strips, &|i| {
            let (image, first) = (i / strips, i % strips * wide);
            let (sample, group) = (image / s.groups, image % s.groups);
            let windows = first..n.min(first + wide);
            let y = self.result(sample, group).wrapping_offset(first as isize * self.y.3);
            let of = sample * n + windows.start..sample * n + windows.end;
            // SAFETY: the caller's promise; items share no elements of the result.
            unsafe { self.strip(group, of, (y, self.y.2, self.y.3), inner) }
            if let Some(done) = done {
                done(image * s.cout..(image + 1) * s.cout, windows);
            }
        });
    }

    /// The first result of a sample and group.
    fn result(&self, sample: usize, group: usize) -> *mut T {
        let channels = (group * self.s.cout) as isize * self.y.2;
        self.y.0.wrapping_offset(sample as isize * self.y.1 + channels)
    }

    /// Samples that are computed together: few windows of each read many weights.
    fn together(&self) -> Option<usize> {
        let (s, n) = (self.s, self.s.w.windows());
        // A window of one element is a product with a vector.
        if s.batch == 1 || n >= FEW || n == 1 && s.w.is_identity() {
            return None;
        }
        let most = if self.side_by_side() { WINDOWS } else { (ASIDE / size_of::<T>() - 1) / s.cout };
        Some(most / n).filter(|each| *each > 1)
    }

    /// Whether windows of neighbouring samples have the distance of windows.
    fn side_by_side(&self) -> bool {
        self.y.1 == self.s.w.windows() as isize * self.y.3
    }

    /// Computes all windows of `most` samples at a time.
    ///
    /// # Safety
    /// As [`run`](Implicit::run).
    unsafe fn samples(&self, most: usize, threads: usize, done: Option<Epilogue<'_>>) {
        let (s, n) = (self.s, self.s.w.windows());
        let parts = s.batch.div_ceil(most);
        // As many for each thread.
        let parts = if parts > 1 { parts.next_multiple_of(threads).min(s.batch) } else { 1 };
        let each = s.batch.div_ceil(parts);
        let items = s.batch.div_ceil(each) * s.groups;
        let (over, inner) = if items >= threads { (threads, 1) } else { (1, threads) };
        par::each(over, items, &|i| {
            let (first, group) = (i / s.groups * each, i % s.groups);
            let samples = first..s.batch.min(first + each);
            let windows = samples.start * n..samples.end * n;
            // SAFETY: the caller's promise; items share no elements of the result.
            unsafe {
                if self.side_by_side() {
                    let y = self.result(first, group);
                    self.strip(group, windows, (y, self.y.2, self.y.3), inner);
                } else {
                    self.aside(group, windows, inner);
                }
            }
            if let Some(done) = done {
                for image in samples.map(|sample| sample * s.groups + group) {
                    done(image * s.cout..(image + 1) * s.cout, 0..n);
                }
            }
        });
    }

    /// As [`strip`](Implicit::strip), where windows of neighbouring samples are not as far apart as those of one.
    ///
    /// # Safety
    /// As [`run`](Implicit::run), of these windows' results.
    #[inline(never)] // its memory on the stack is touched at every call
    unsafe fn aside(&self, group: usize, windows: Range<usize>, threads: usize) {
        let (s, n) = (self.s, windows.len());
        let mut own = Stack::<u8, ASIDE>::new();
        let own = own.start();
        let (channel, window) = if self.turned(n) { (1, s.cout as isize) } else { (n as isize, 1) };
        let y = Planes { base: self.result(0, group), channel: self.y.2, strides: [0, 0, self.y.3] };
        // SAFETY: `together` lets the results fit, with room to align them; the caller's promise.
        unsafe {
            let own: *mut T = own.add(own.align_offset(align_of::<T>())).cast();
            self.strip(group, windows.clone(), (own, channel, window), threads);
            put((own, channel, window), s.cout, windows, (&y, self.y.1, [1, 1, s.w.windows()]));
        }
    }

    /// Whether a few windows read many weights: the result's transpose is computed.
    fn turned(&self, windows: usize) -> bool {
        let s = self.s;
        windows <= 64 && s.cin * s.w.taps() >= 256 && s.cout > 1
    }

    /// Some windows of one group, counted over the samples. `c` has the first one's result and the distances of channels and windows.
    ///
    /// # Safety
    /// As [`run`](Implicit::run), of these windows' results.
    pub(crate) unsafe fn strip(&self, group: usize, windows: Range<usize>, c: (*mut T, isize, isize), threads: usize) {
        let (s, w) = (self.s, &self.s.w);
        let (cin, order) = (s.cin, Order::of(s));
        let (m, n, k) = (s.cout, windows.len(), s.cin * w.taps());
        let (y, channel, window) = c;
        // The transpose where channels are side by side, too.
        let last = T::SYMMETRIC && (channel == 1 && (m > 1 || window != 1) || self.turned(n));
        // SAFETY: the caller's promise.
        unsafe {
            let base = self.x.base.offset((group * cin) as isize * self.x.channel);
            let weight = self.weight.base.offset((group * m) as isize * self.weight_out);
            let image = Windows { x: Planes { base, ..self.x }, sample: self.x_sample, w, cin, order };
            let image = Part { of: image, first: windows.start };
            if let Some(bias) = self.bias {
                start(&bias[group * m..][..m], y, (channel, window), n);
            }
            let add = self.bias.is_some();
            if let Some(at) = self.packed {
                let panels = InPlace::new((k, m), at.add(group * group_len::<T>(s)));
                return T::product_of((n, m, k), &image, &panels, (y, window, channel), add, threads);
            }
            let c = if last { (y, window, channel) } else { (y, channel, window) };
            let weights = Weights { at: Planes { base: weight, ..self.weight }, out: self.weight_out, w, cin, order };
            let flat = weights.step();
            // Windows of one element are read as a matrix, if those of all samples have one distance.
            let (first, size) = (windows.start / w.windows(), w.windows());
            let line = if w.is_identity() { self.x.line(w.output) } else { None };
            let single = size == 1 || windows.end <= (first + 1) * size;
            if let Some((x, flat)) = line.filter(|x| single || self.x_sample == size as isize * x).zip(flat) {
                let start = first as isize * self.x_sample + (windows.start % size) as isize * x;
                let columns = (base.offset(start), self.x.channel, x);
                let weights = (weight, self.weight_out, flat);
                if size == 1 {
                    for i in 0..n as isize {
                        let (x, y) = (columns.0.offset(i * self.x_sample), y.offset(i * window));
                        T::product(
                            (m, 1, k),
                            true,
                            weights,
                            (x, columns.1, columns.2),
                            (y, channel, window),
                            add,
                            threads,
                        );
                    }
                    return;
                }
                let (a, b) = (Strided::new(weights), Strided::new(columns));
                return if last {
                    T::product_of((n, m, k), &b.transposed(), &a.transposed(), c, add, threads)
                } else {
                    T::product_of((m, n, k), &a, &b, c, add, threads)
                };
            }
            match (last, flat) {
                (true, None) => T::product_of((n, m, k), &image, &weights, c, add, threads),
                (true, Some(flat)) => {
                    let b = Strided::new((weight, self.weight_out, flat)).transposed();
                    T::product_of((n, m, k), &image, &b, c, add, threads)
                }
                (false, None) => T::product_of((m, n, k), &weights, &image, c, add, threads),
                (false, Some(flat)) => {
                    let a = Strided::new((weight, self.weight_out, flat));
                    T::product_of((m, n, k), &a, &image, c, add, threads)
                }
            }
        }
    }
}

/// Copies results to `y`. `from` comes with the distances of channels and of windows. Windows are counted over the samples of `y`, which
/// comes with the distance of samples and the size of one.
///
/// # Safety
/// The results are readable, and their places in `y` writable.
pub(super) unsafe fn put<T: Copy>(
    (from, channel, window): (*const T, isize, isize),
    channels: usize,
    windows: Range<usize>,
    (y, sample, [od, oh, ow]): (&Planes<*mut T>, isize, [usize; 3]),
) {
    let mut at = windows.start;
    while at < windows.end {
        let (plane, row, column) = (at / (oh * ow), at / ow % oh, at % ow);
        let len = (ow - column).min(windows.end - at);
        let place = [plane % od, row, column];
        let cell: isize = (0..3).map(|d| place[d] as isize * y.strides[d]).sum();
        let cell = cell + (plane / od) as isize * sample;
        for c in 0..channels as isize {
            // SAFETY: the caller's promise.
            unsafe {
                let from = from.offset(c * channel + (at - windows.start) as isize * window);
                let to = y.base.offset(cell + c * y.channel);
                (0..len as isize).for_each(|i| to.offset(i * y.strides[2]).write(from.offset(i * window).read()));
            }
        }
        at += len;
    }
}

/// Writes a number per channel to `n` windows.
///
/// # Safety
/// All elements are writable.
pub(crate) unsafe fn start<T: Copy>(bias: &[T], y: *mut T, (channel, window): (isize, isize), n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if channel == 1 {
            for i in 0..n {
                std::ptr::copy_nonoverlapping(bias.as_ptr(), y.offset(i as isize * window), bias.len());
            }
        } else {
            for (o, &b) in bias.iter().enumerate() {
                let row = y.offset(o as isize * channel);
                if window == 1 {
                    std::slice::from_raw_parts_mut(row.cast::<MaybeUninit<T>>(), n).fill(MaybeUninit::new(b));
                } else {
                    (0..n).for_each(|i| row.offset(i as isize * window).write(b));
                }
            }
        }
    }
}
