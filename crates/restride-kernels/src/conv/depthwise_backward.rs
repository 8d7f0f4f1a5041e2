//! The weight's gradient with one input channel per group, in `f32`: each element is a sum over windows and samples.
//!
//! Both planes are copied to frames ([`Frame`]) in which a tap's elements are as far apart as their windows, so that a tap is a product of
//! two runs; between the rows of the gradient are zeros. A sum has 16 parts in each instruction set: an element's place in the frame,
//! which depends on sizes alone, says which part it is added to. A sum that comes out as NaN may have met an infinity in one of the
//! gaps: it is computed again window by window. Padding is multiplied, as zeros.

use crate::conv::SHARED;
use crate::conv::depthwise::boxes;
use crate::conv::frame::{EachTap, Frame, Planes, TAPS, gather};
use crate::conv::lanes::{Lanes, Task, clear};
use crate::conv::window::Window;
use crate::support::isa::isa;
use crate::support::par::EvenParts;
use crate::support::stack::Stack;

/// Elements of a frame of the gradient, with the last chunk.
const GRADIENT: usize = super::depthwise::FRAME + PARTS;
/// Parts of a sum.
const PARTS: usize = 16;
/// Taps that are summed at a time.
const MOST: usize = 5;

/// Operands and result.
pub(super) struct DepthwiseGradient<'a> {
    pub w: &'a Window,
    pub batch: usize,
    /// Channels of the wide side.
    pub channels: usize,
    /// Channels of the narrow side for each of the wide one.
    pub each: usize,
    /// The wide side: planes of the window's input sizes, and the distance of samples.
    pub wide: (Planes<*const f32>, isize),
    /// The narrow side: planes of the window's output sizes.
    pub narrow: (Planes<*const f32>, isize),
    /// The result, in order: a number for each narrow channel and tap.
    pub y: *mut f32,
}
// SAFETY: threads read the operands and write each their own elements of the result.
unsafe impl Sync for DepthwiseGradient<'_> {}

impl DepthwiseGradient<'_> {
    /// Runs it. `false`, with nothing done, where a window is too large for a frame.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of `y` writable, and none of them is an operand's.
    pub(super) unsafe fn run(&self, threads: usize) -> bool {
        let w = self.w;
        let Some(frame) = boxes(w) else { return false };
        let work = self.batch * self.channels * self.each * w.windows() * w.taps();
        let threads = if work < SHARED { 1 } else { threads };
        let set = isa();
        EvenParts::new(self.channels, threads).each(&|channels| {
            // SAFETY: the caller's promise; items share no elements of the result.
            unsafe { set.run(&Channels(self, frame, channels.start, channels.end)) }
        });
        true
    }

    /// Whether all elements of the wide side's channel are finite.
    unsafe fn is_finite(&self, channel: usize) -> bool {
        let [d, h, w] = self.w.input;
        let s = self.wide.0.strides;
        (0..self.batch as isize).all(|n| {
            let from = channel as isize * self.wide.0.channel + n * self.wide.1;
            (0..d * h).all(|line| {
                let row = from + (line / h) as isize * s[0] + (line % h) as isize * s[1];
                // SAFETY: the caller's promise.
                (0..w as isize).all(|x| unsafe { self.wide.0.base.offset(row + x * s[2]).read() }.is_finite())
            })
        })
    }

    /// One element of the result, without gaps.
    unsafe fn by_windows(&self, o: usize, tap: [usize; 3]) -> f32 {
        let w = self.w;
        let [_, oh, ow] = w.output;
        let mut sum = 0.0;
        for n in 0..self.batch as isize {
            let from = (o / self.each) as isize * self.wide.0.channel + n * self.wide.1;
            let at = o as isize * self.narrow.0.channel + n * self.narrow.1;
            for i in 0..w.windows() {
                let window = [i / (oh * ow), i / ow % oh, i % ow];
                let of = |d: usize| w.at(d, window[d], tap[d]).map(|i| i as isize * self.wide.0.strides[d]);
                let cell: isize = (0..3).map(|d| window[d] as isize * self.narrow.0.strides[d]).sum();
                // SAFETY: the caller's promise.
                sum += unsafe {
                    let x = of(0).zip(of(1)).zip(of(2));
                    let x = x.map_or(0.0, |((z, y), x)| self.wide.0.base.offset(from + z + y + x).read());
                    x * self.narrow.0.base.offset(at + cell).read()
                };
            }
        }
        sum
    }
}

/// The task's range of channels of the wide side.
struct Channels<'a>(&'a DepthwiseGradient<'a>, Frame, usize, usize);

impl Task for Channels<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<T = f32>>(&self) {
        let Channels(of, frame, first, last) = self;
        let w = of.w;
        let mut memory = Stack::<f32, { super::depthwise::FRAME }>::new();
        let mut memory_g = Stack::<f32, GRADIENT>::new();
        let mut sums = Stack::<f32, { PARTS * TAPS }>::new();
        let (x, g) = (memory.start(), memory_g.start());
        let sums = sums.start();
        let mut taps = EachTap::new();
        frame.taps(|_, at| taps.push(at));
        let [od, oh, ow] = w.output;
        // SAFETY: the caller's promise; frames fit their buffers, with what is read beyond them.
        unsafe {
            clear::<V>(x.add(frame.channel), frame.slack(PARTS));
            for o in first * of.each..last * of.each {
                clear::<V>(sums, PARTS * taps.len());
                for n in 0..of.batch as isize {
                    let wide = of.wide.0.base.offset(n * of.wide.1 + (o / of.each) as isize * of.wide.0.channel);
                    let narrow = of.narrow.0.base.offset(n * of.narrow.1 + o as isize * of.narrow.0.channel);
                    let across = ow.div_ceil(frame.columns);
                    for z in 0..od {
                        for part in 0..oh.div_ceil(frame.rows) * across {
                            let (y, x0) = (part / across * frame.rows, part % across * frame.columns);
                            let (rows, columns) = (frame.rows.min(oh - y), frame.columns.min(ow - x0));
                            frame.fill::<V>(wide, of.wide.0.strides, [z, y, x0], x, true);
                            let s = of.narrow.0.strides;
                            let from = narrow.offset(z as isize * s[0] + y as isize * s[1] + x0 as isize * s[2]);
                            let mut row = g;
                            for j in 0..rows {
                                gather::<V>(from.offset(j as isize * s[1]), s[2], row, columns);
                                if j + 1 < rows {
                                    clear::<V>(row.add(columns), frame.pitch - columns);
                                    row = row.add(frame.pitch);
                                }
                            }
                            let flat = (rows - 1) * frame.pitch + columns;
                            let chunks = flat.div_ceil(PARTS);
                            clear::<V>(g.add(flat), chunks * PARTS - flat);
                            add_taps::<V>(&taps, x, g, chunks, sums);
                        }
                    }
                }
                let to = of.y.add(o * taps.len());
                let mut finite = None;
                w.each_tap(|t, tap| {
                    let sum = joined(sums.add(t * PARTS));
                    let met = sum.is_nan() && !*finite.get_or_insert_with(|| of.is_finite(o / of.each));
                    to.add(t).write(if met { of.by_windows(o, tap) } else { sum });
                });
            }
        }
    }
}

/// Adds the products of all taps to the parts of their sums.
#[inline(always)]
unsafe fn add_taps<V: Lanes<T = f32>>(taps: &[usize], x: *const f32, g: *const f32, chunks: usize, sums: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
        match PARTS / V::LANES {
            1 => add_blocks::<V, 1>(taps, x, g, chunks, sums),
            2 => add_blocks::<V, 2>(taps, x, g, chunks, sums),
            _ => add_blocks::<V, 4>(taps, x, g, chunks, sums),
        }
    }
}

/// As [`add_taps`], where a sum's parts are `M` vectors.
#[inline(always)]
unsafe fn add_blocks<V: Lanes<T = f32>, const M: usize>(
    taps: &[usize],
    x: *const f32,
    g: *const f32,
    chunks: usize,
    sums: *mut f32,
) {
    let blocks = taps.len().div_ceil(MOST);
    for i in 0..blocks {
        let (start, end) = (i * taps.len() / blocks, (i + 1) * taps.len() / blocks);
        // SAFETY: the caller's promise.
        unsafe {
            let (block, sums) = (&taps[start..end], sums.add(start * PARTS));
            match block.len() {
                5 => add_block::<V, M, 5>(block, x, g, chunks, sums),
                4 => add_block::<V, M, 4>(block, x, g, chunks, sums),
                3 => add_block::<V, M, 3>(block, x, g, chunks, sums),
                2 => add_block::<V, M, 2>(block, x, g, chunks, sums),
                _ => add_block::<V, M, 1>(block, x, g, chunks, sums),
            }
        }
    }
}

/// As [`add_blocks`], for `N` taps.
#[inline(always)]
unsafe fn add_block<V: Lanes<T = f32>, const M: usize, const N: usize>(
    taps: &[usize],
    x: *const f32,
    g: *const f32,
    chunks: usize,
    sums: *mut f32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut from = [x; N];
        let mut parts = [[V::splat(0.0); M]; N];
        for (from, &tap) in from.iter_mut().zip(taps) {
            *from = x.add(tap);
        }
        for (t, part) in parts.iter_mut().enumerate() {
            for (v, part) in part.iter_mut().enumerate() {
                *part = V::load(sums.add(t * PARTS + v * V::LANES));
            }
        }
        for i in 0..chunks {
            for v in 0..M {
                let at = i * PARTS + v * V::LANES;
                let g = V::load(g.add(at));
                for (part, from) in parts.iter_mut().zip(&from) {
                    part[v] = part[v].plus_product(V::load(from.add(at)), g);
                }
            }
        }
        for (t, part) in parts.iter().enumerate() {
            for (v, part) in part.iter().enumerate() {
                part.store(sums.add(t * PARTS + v * V::LANES));
            }
        }
    }
}

/// The sum of the parts, by halves.
#[inline(always)]
unsafe fn joined(parts: *const f32) -> f32 {
    // SAFETY: the caller's promise.
    let mut parts = unsafe { parts.cast::<[f32; PARTS]>().read() };
    let mut half = PARTS / 2;
    while half > 0 {
        for j in 0..half {
            parts[j] += parts[j + half];
        }
        half /= 2;
    }
    parts[0]
}
