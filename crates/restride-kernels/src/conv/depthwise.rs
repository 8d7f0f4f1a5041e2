//! One input channel per group, in `f32`: each result is a sum over the taps of its window, from the bias on, in the order of the taps.
//!
//! Channels-first planes are framed ([`Frame`]): lanes are neighbouring windows, and padding is read as zeros. Of channels-last planes
//! lanes are channels (`depthwise_last.rs`); taps in the padding are skipped or read as zeros. A term of zero changes a sum of finite terms at most in
//! the sign of a zero, and all sums end with `+ 0`, so their bits are the same. Infinite weights and NaNs take [`skip_padding`] in
//! every layout: like PyTorch's, these results have no terms of padding.
//!
//! [`skip_padding`]: Depthwise::skip_padding

use crate::conv::SHARED;
use crate::conv::depthwise_last::{Last, MOST, is_framed};
use crate::conv::frame::{EachTap, Frame, Planes, TAPS, spread};
use crate::conv::lanes::{Lanes, Task};
use crate::conv::window::Window;
use crate::support::epilogue::Epilogue;
use crate::support::isa::isa;
use crate::support::par::{self, EvenParts};
use crate::support::stack::Stack;
use smallvec::SmallVec;
use std::ops::Range;

/// Elements of a frame and of its results, on the stack.
pub(super) const FRAME: usize = 8192;
/// Most vectors of results at a time, channels-first.
const VECTORS: usize = 8;
/// Channels of a vector, at most.
const SOME: usize = 16;
/// Bytes of a part of the result that an epilogue works on.
const PART: usize = 1 << 17;

/// A depthwise convolution; `each` result channels have the same input channel.
#[derive(Clone, Copy)]
pub(crate) struct Depthwise<'a> {
    pub w: &'a Window,
    pub batch: usize,
    /// Input channels.
    pub channels: usize,
    pub each: usize,
    pub x: Planes<*const f32>,
    /// Distance of samples.
    pub x_sample: isize,
    /// Distances of channels and of taps in three dimensions.
    pub weight: Planes<*const f32>,
    /// A number for each result channel.
    pub bias: Option<*const f32>,
    pub y: Planes<*mut f32>,
    pub y_sample: isize,
}

// SAFETY: threads read the operands and write each their own elements of the result.
unsafe impl Sync for Depthwise<'_> {}

impl Depthwise<'_> {
    /// Runs it.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of `y` writable, different cells that no other thread uses and that
    /// are none of an operand.
    pub(crate) unsafe fn run(&self, threads: usize, done: Option<Epilogue<'_>>) {
        let w = self.w;
        let work = self.batch * self.channels * self.each * w.windows() * w.taps();
        let threads = if work < SHARED { 1 } else { threads };
        let set = isa();
        let frame = boxes(w);
        // SAFETY: the caller's promise; items share no elements of the result.
        unsafe {
            let finite = frame.is_some() && self.is_finite();
            match frame.filter(|_| finite) {
                None => par::each(threads, self.batch * self.channels * self.each, &|i| {
                    self.skip_padding(i);
                    done.into_iter().for_each(|done| done(i..i + 1, 0..w.windows()));
                }),
                Some(_) if self.is_last() => {
                    let lines = self.batch * w.output[0] * w.output[1];
                    let parts = EvenParts::new(lines, threads);
                    if let Some(done) = done {
                        // A part is of one sample, and stays in the cache.
                        let (each, wide) = (w.output[0] * w.output[1], w.output[2] * self.channels * size_of::<f32>());
                        parts.at_most(if self.batch == 1 { PART / wide } else { 1 }).each(&|lines| {
                            set.run(&Last(self, lines.clone(), 0..self.channels));
                            let ow = w.output[2];
                            let (n, from) = (lines.start / each, lines.start % each);
                            let rows = n * self.channels..(n + 1) * self.channels;
                            done(rows, from * ow..(from + lines.len()) * ow);
                        });
                        return;
                    }
                    // Weights are put in order for each part: it has many lines of some channels rather than few lines of all. The
                    // last channels are never fewer than a vector.
                    // Copied lines are shared by lines that follow: blocks are then of fewer channels.
                    let wide = if is_framed(w) { SOME } else { MOST };
                    let blocks = EvenParts::new((self.channels / wide).max(1), threads);
                    let parts = parts.at_least(lines.min(lines.div_ceil(parts.count()) * blocks.count()));
                    par::each(threads, blocks.count() * parts.count(), &|i| {
                        let block = i % blocks.count();
                        let Range { start, end } = blocks.part(block);
                        let end = if block + 1 == blocks.count() { self.channels } else { end * wide };
                        set.run(&Last(self, parts.part(i / blocks.count()), start * wide..end));
                    });
                }
                Some(frame) => {
                    let planes = self.batch * self.channels;
                    let mut parts = EvenParts::new(planes, threads);
                    if done.is_some() {
                        parts = parts.at_most(PART / 2 / (w.windows() * self.each * size_of::<f32>()));
                    }
                    parts.each(&|planes| {
                        let Range { start, end } = planes;
                        set.run(&First(self, frame, start, end));
                        if let Some(done) = done {
                            done(start * self.each..end * self.each, 0..w.windows());
                        }
                    });
                }
            }
        }
    }

    /// Whether both input and result are channels-last, a channel of one for each of the other.
    fn is_last(&self) -> bool {
        let taps = self.w.taps();
        self.each == 1 && self.x.channel == 1 && self.y.channel == 1 && self.channels > 1 && taps * MOST <= FRAME
    }

    /// Where the taps of a weight are, from its first element on.
    #[inline(always)]
    pub(super) fn offsets(&self) -> EachTap<isize> {
        let mut all = EachTap::new();
        self.w.each_tap(|_, tap| all.push((0..3).map(|d| tap[d] as isize * self.weight.strides[d]).sum()));
        all
    }

    /// Element of the weight for a result channel and a tap.
    #[inline(always)]
    unsafe fn weight(&self, o: usize, [z, y, x]: [usize; 3]) -> f32 {
        let s = &self.weight;
        let at =
            o as isize * s.channel + z as isize * s.strides[0] + y as isize * s.strides[1] + x as isize * s.strides[2];
        // SAFETY: the caller's promise.
        unsafe { s.base.offset(at).read() }
    }

    /// Whether all weights are finite.
    unsafe fn is_finite(&self) -> bool {
        let taps = self.offsets();
        if self.is_dense(&taps) {
            let mut finite = false;
            // SAFETY: the caller's promise: these are all weights.
            unsafe { isa().run(&Finite(self.weight.base, self.channels * self.each * taps.len(), &raw mut finite)) };
            return finite;
        }
        (0..self.channels * self.each).all(|o| {
            let at = self.weight.base.wrapping_offset(o as isize * self.weight.channel);
            // SAFETY: the caller's promise.
            taps.iter().all(|&t| unsafe { at.offset(t).read() }.is_finite())
        })
    }

    /// Whether the weights are a run, channel by channel, with these offsets of taps.
    fn is_dense(&self, taps: &[isize]) -> bool {
        self.weight.channel == taps.len() as isize && is_run(taps)
    }

    #[inline(always)]
    pub(super) unsafe fn bias(&self, o: usize) -> f32 {
        // SAFETY: the caller's promise.
        self.bias.map_or(0.0, |b| unsafe { b.add(o).read() })
    }

    /// One plane of the result, without terms of padding.
    unsafe fn skip_padding(&self, plane: usize) {
        let (w, out) = (self.w, self.channels * self.each);
        let (n, o) = ((plane / out) as isize, plane % out);
        let [_, oh, ow] = w.output;
        // SAFETY: the caller's promise.
        unsafe {
            let x = self.x.base.offset(n * self.x_sample + (o / self.each) as isize * self.x.channel);
            let y = self.y.base.offset(n * self.y_sample + o as isize * self.y.channel);
            for i in 0..w.windows() {
                let at = [i / (oh * ow), i / ow % oh, i % ow];
                let mut sum = self.bias(o);
                w.each_tap(|_, k| {
                    let cell = |d: usize| w.at(d, at[d], k[d]).map(|i| i as isize * self.x.strides[d]);
                    if let Some(((z, y), x0)) = cell(0).zip(cell(1)).zip(cell(2)) {
                        sum += x.offset(z + y + x0).read() * self.weight(o, k);
                    }
                });
                let cell: isize = (0..3).map(|d| at[d] as isize * self.y.strides[d]).sum();
                y.offset(cell).write(sum + 0.0);
            }
        }
    }
}

/// Whether taps are neighbours in memory, the first one at 0.
#[inline(always)]
pub(super) fn is_run(taps: &[isize]) -> bool {
    taps.iter().enumerate().all(|(i, &t)| t == i as isize)
}

/// Whether all of a run of numbers are finite: where the answer goes.
struct Finite(*const f32, usize, *mut bool);

impl Task for Finite {
    #[inline(always)]
    unsafe fn run<V: Lanes<T = f32>>(&self) {
        let Finite(from, n, to) = *self;
        let mut nothing = [0f32; MOST];
        // SAFETY: the caller's promise.
        unsafe {
            let zero = V::splat(0.0);
            // Zero times an infinity or a NaN is a NaN, which stays one.
            let mut sums = [zero; 4];
            let mut i = 0;
            while i + 4 * V::LANES <= n {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.plus_product(V::load(from.add(i + j * V::LANES)), zero);
                }
                i += 4 * V::LANES;
            }
            while i < n {
                sums[0] = sums[0].plus_product(V::load_first(from.add(i), V::LANES.min(n - i)), zero);
                i += V::LANES;
            }
            let sum = sums[0].plus(sums[1]).plus(sums[2].plus(sums[3]));
            sum.store(nothing.as_mut_ptr());
            to.write(nothing[..V::LANES].iter().all(|x| !x.is_nan()));
        }
    }
}

/// The boxes in which planes are computed; `None` if a window is too large.
pub(super) fn boxes(w: &Window) -> Option<Frame> {
    let fits = |f: &Frame| {
        let most = f.flat(f.rows).max(f.channel).checked_add(f.slack(VECTORS * MOST));
        most.is_some_and(|n| n <= FRAME)
    };
    if w.taps() > TAPS || (0..3).any(|d| w.pad[d] > FRAME || w.dilation[d] * w.kernel[d] > FRAME) {
        return None;
    }
    let mut columns = w.output[2];
    loop {
        let mut rows = w.output[1].min(FRAME);
        while rows > 1 && !fits(&Frame::new(w, rows, columns)) {
            rows = rows.div_ceil(2);
        }
        let frame = Frame::new(w, rows, columns);
        if fits(&frame) {
            return Some(frame);
        }
        if columns == 1 {
            return None;
        }
        columns = columns.div_ceil(2);
    }
}

/// Planes of the input, channels-first: the task's range of them.
struct First<'a>(&'a Depthwise<'a>, Frame, usize, usize);

impl Task for First<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<T = f32>>(&self) {
        let First(of, frame, first, last) = self;
        let w = of.w;
        let mut memory = Stack::<f32, FRAME>::new();
        let mut sums = Stack::<f32, FRAME>::new();
        let (buffer, sums) = (memory.start(), sums.start());
        let mut taps = EachTap::new();
        frame.taps(|_, at| taps.push(at));
        let offsets = of.offsets();
        let mut weights: EachTap<f32> = SmallVec::from_elem(0.0, w.taps());
        let [od, oh, ow] = w.output;
        // SAFETY: the caller's promise; the frame fits its buffer, with what is read beyond it.
        unsafe {
            crate::conv::lanes::clear::<V>(buffer.add(frame.channel), frame.slack(VECTORS * MOST));
            // The padding of a frame that holds a whole plane is the same for all planes.
            let whole = od == 1 && frame.rows >= oh && frame.columns >= ow;
            for plane in *first..*last {
                let (n, c) = ((plane / of.channels) as isize, plane % of.channels);
                let x = of.x.base.offset(n * of.x_sample + c as isize * of.x.channel);
                let mut z = 0;
                while z < od {
                    let mut y = 0;
                    while y < oh {
                        let mut x0 = 0;
                        while x0 < ow {
                            frame.fill::<V>(x, of.x.strides, [z, y, x0], buffer, !whole || plane == *first);
                            let (rows, columns) = (frame.rows.min(oh - y), frame.columns.min(ow - x0));
                            let mut o = c * of.each;
                            while o < (c + 1) * of.each {
                                let end = (rows - 1) * frame.pitch + columns;
                                let at = of.weight.base.offset(o as isize * of.weight.channel);
                                for (to, &t) in weights.iter_mut().zip(&offsets) {
                                    *to = at.offset(t).read();
                                }
                                sweep::<V>(&taps, &weights, of.bias(o), buffer, sums, end);
                                let at = n * of.y_sample
                                    + o as isize * of.y.channel
                                    + z as isize * of.y.strides[0]
                                    + y as isize * of.y.strides[1]
                                    + x0 as isize * of.y.strides[2];
                                for j in 0..rows {
                                    let to = of.y.base.offset(at + j as isize * of.y.strides[1]);
                                    spread::<V>(sums.add(j * frame.pitch), to, of.y.strides[2], columns);
                                }
                                o += 1;
                            }
                            x0 += frame.columns;
                        }
                        y += frame.rows;
                    }
                    z += 1;
                }
            }
        }
    }
}

/// Sums of the windows with flat numbers below `end`, for one result channel.
#[inline(always)]
unsafe fn sweep<V: Lanes<T = f32>>(
    taps: &[usize],
    weights: &[f32],
    bias: f32,
    buffer: *const f32,
    sums: *mut f32,
    end: usize,
) {
    let mut f = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while f < end {
            let left = (end - f).div_ceil(V::LANES);
            let (from, to) = (buffer.add(f), sums.add(f));
            f += V::LANES
                * if left >= 8 {
                    run::<V, 8>(taps, weights, bias, from, to)
                } else if left >= 4 {
                    run::<V, 4>(taps, weights, bias, from, to)
                } else if left >= 2 {
                    run::<V, 2>(taps, weights, bias, from, to)
                } else {
                    run::<V, 1>(taps, weights, bias, from, to)
                };
        }
    }
}

/// `M` vectors of sums.
#[inline(always)]
unsafe fn run<V: Lanes<T = f32>, const M: usize>(
    taps: &[usize],
    weights: &[f32],
    bias: f32,
    from: *const f32,
    to: *mut f32,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [V::splat(bias); M];
        for (&at, &w) in taps.iter().zip(weights) {
            let (w, from) = (V::splat(w), from.add(at));
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = sum.plus_product(V::load(from.add(i * V::LANES)), w);
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            sum.plus(V::splat(0.0)).store(to.add(i * V::LANES));
        }
    }
    M
}
