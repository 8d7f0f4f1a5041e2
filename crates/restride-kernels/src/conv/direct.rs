//! Convolutions of `f32`: tiles of result channels by neighbouring windows, over a [`Frame`] of all input channels.
//!
//! The sums are those of the products in `implicit.rs`, term by term: blocks of [`DEPTH`] terms, each from zero and then added to the
//! bias. The frame makes each element of the input once, not once for each tap.

use crate::conv::Shape;
use crate::conv::frame::{Frame, Planes, TAPS, spread};
use crate::conv::implicit::{Order, terms_step};
use crate::conv::lanes::{Lanes, Task, clear};
use crate::conv::window::Window;
use crate::matmul::blocked::DEPTH;
use crate::support::epilogue::Epilogue;
use crate::support::isa::{Isa, isa};
use crate::support::par;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements of a frame, on the stack.
const FRAME: usize = 1 << 15;
/// Most terms of a sum.
const TERMS: usize = 2304;
/// Fewest windows of a box, but for smaller planes.
const FEW: usize = 56;
/// Elements of a tile: rows by the widest vectors.
const TILE: usize = ROWS * WIDE;
const ROWS: usize = 6;
const WIDE: usize = 64;
/// Fewest input channels for which a product may be faster.
const FEW_CHANNELS: usize = 16;
/// Elements of a part that an epilogue works on: lines of one box alone are short runs.
const READY: usize = 1 << 16;
/// Most runs of a tile's windows.
const RUNS: usize = WIDE;

/// A convolution of `f32` in strides.
pub(crate) struct Direct<'a> {
    pub s: &'a Shape,
    pub x: Planes<*const f32>,
    pub x_sample: isize,
    pub weight: Planes<*const f32>,
    /// Distance of result channels.
    pub weight_out: isize,
    /// A number for each result channel.
    pub bias: Option<&'a [f32]>,
    pub y: Planes<*mut f32>,
    pub y_sample: isize,
    /// Called for finished parts.
    pub done: Option<Epilogue<'a>>,
}
// SAFETY: threads read the operands and write each their own elements of the result.
unsafe impl Sync for Direct<'_> {}

/// Boxes of a convolution's windows: their frame, the windows as the frame sees them, strides of the input and of the result for
/// these.
pub(crate) struct Boxes {
    frame: Frame,
    w: Window,
    strides: [isize; 3],
    out: [isize; 3],
    down: usize,
    across: usize,
}

impl Boxes {
    /// Boxes whose frames of all channels fit, for at most this number of threads; `None` where a product is faster.
    pub(crate) fn of(
        s: &Shape,
        x: &Planes<*const f32>,
        weight: &Planes<*const f32>,
        y: &Planes<*mut f32>,
        threads: usize,
    ) -> Option<Boxes> {
        let (mut w, mut strides, mut out) = (s.w, x.strides, y.strides);
        let terms = s.cin * w.taps();
        if terms > TERMS || w.taps() > TAPS || w.windows() < WIDE {
            return None;
        }
        // Short vectors have more instructions for the same sums: a product's panels cost less beside them. Tiles are faster where
        // few channels make frames small, or where windows overlap and filters are read in order.
        if isa() != Isa::Avx512 && s.cin >= FEW_CHANNELS {
            let last = x.channel == 1 && y.channel == 1;
            let overlap = w.taps() > 1 && w.stride == [1; 3];
            let in_order = terms_step(weight, &w, s.cin, Order::of(s)).is_some();
            let long = if in_order { terms >= 1024 && s.cout >= 64 } else { terms >= 512 };
            if last || !overlap || long {
                return None;
            }
        }
        if (0..3).any(|d| w.pad[d] > FRAME || w.dilation[d] * w.kernel[d] > FRAME) {
            return None;
        }
        // Windows of one element are one line.
        if w.is_identity()
            && let Some((step, out_step)) = x.line(w.input).zip(y.line(w.output))
        {
            let line = [1, 1, w.windows()];
            (w.input, w.output, strides, out) = (line, line, [0, 0, step], [0, 0, out_step]);
        }
        let fits = |rows: usize, columns: usize| {
            let frame = Frame::new(&w, rows, columns);
            let all = frame.channel.checked_mul(s.cin).and_then(|n| n.checked_add(frame.slack(WIDE)));
            all.is_some_and(|n| n <= FRAME).then_some(frame)
        };
        let [_, oh, ow] = w.output;
        let few = FEW.min(oh * ow);
        let parts = |n: usize, most: usize| n.div_ceil(n.div_ceil(most.max(1)));
        // As many rows as fit and give all threads work, else parts of a row.
        let images = s.batch * s.groups * w.output[0];
        let most = oh.div_ceil(threads.div_ceil(images));
        let rows = (1..=most).rev().find_map(|rows| fits(rows, ow));
        let frame = match rows {
            Some(frame) => fits(parts(oh, frame.rows), ow),
            None => {
                let mut columns = ow;
                while columns > WIDE && fits(1, columns).is_none() {
                    columns = columns.div_ceil(2).next_multiple_of(16);
                }
                fits(1, parts(ow, columns).next_multiple_of(16).min(ow))
            }
        }?;
        (frame.flat(frame.rows) >= few.min(oh.min(most) * ow)).then(|| Boxes {
            down: oh.div_ceil(frame.rows),
            across: ow.div_ceil(frame.columns),
            frame,
            w,
            strides,
            out,
        })
    }
}

impl Direct<'_> {
    /// Runs it.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of the result writable, different cells that no other thread uses
    /// and that are none of an operand.
    pub(crate) unsafe fn run(&self, boxes: &Boxes, threads: usize) {
        let items = self.s.batch * self.s.groups * boxes.w.output[0] * boxes.down * boxes.across;
        let threads = if items * boxes.frame.columns * self.s.cout * self.s.cin < 1 << 12 { 1 } else { threads };
        let part = par::part(items, threads);
        let set = isa();
        par::each(threads, items.div_ceil(part), &|i| {
            // SAFETY: the caller's promise; boxes share no elements of the result.
            unsafe { set.run(&Part(self, boxes, i * part..items.min((i + 1) * part), set)) }
        });
    }
}

/// A task's range of boxes.
struct Part<'a>(&'a Direct<'a>, &'a Boxes, Range<usize>, Isa);

impl Task for Part<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<T = f32>>(&self) {
        let Part(of, boxes, items, set) = self;
        let (s, frame) = (of.s, &boxes.frame);
        let (cin, taps) = (s.cin, s.w.taps());
        let mut memory = MaybeUninit::<[f32; FRAME]>::uninit();
        let buffer = memory.as_mut_ptr().cast::<f32>();
        // Where each term is, in the frame and in the weights of a result channel.
        let (mut right, mut left) = ([0usize; TERMS], [0isize; TERMS]);
        let order = Order::of(s);
        let term = |c: usize, t: usize| order.term(c, t, cin, taps).0;
        frame.taps(|t, at| (0..cin).for_each(|c| right[term(c, t)] = c * frame.channel + at));
        s.w.each_tap(|t, tap| {
            let at: isize = (0..3).map(|d| tap[d] as isize * of.weight.strides[d]).sum();
            (0..cin).for_each(|c| left[term(c, t)] = at + c as isize * of.weight.channel);
        });
        let terms = TermCells { right: &right[..cin * taps], left: &left[..cin * taps], step: of.weight_out };
        let [od, oh, ow] = boxes.w.output;
        let mut item = items.start;
        // Lines that are computed and not yet given to the epilogue: of an image, from one on.
        let mut ready: Option<(usize, usize)> = None;
        // SAFETY: the caller's promise; the frame of all channels fits its buffer, with what is read beyond it.
        unsafe {
            clear::<V>(buffer.add(cin * frame.channel), frame.slack(WIDE));
            while item < items.end {
                let (image, at) = (item / (od * boxes.down * boxes.across), item % (od * boxes.down * boxes.across));
                let (z, y, x) = (
                    at / (boxes.down * boxes.across),
                    at / boxes.across % boxes.down * frame.rows,
                    at % boxes.across * frame.columns,
                );
                let (n, group) = (image / s.groups, image % s.groups);
                let from = of.x.base.offset(n as isize * of.x_sample + (group * cin) as isize * of.x.channel);
                let mut c = 0;
                while c < cin {
                    let from = from.offset(c as isize * of.x.channel);
                    frame.fill::<V>(from, boxes.strides, [z, y, x], buffer.add(c * frame.channel), true);
                    c += 1;
                }
                let (rows, columns) = (frame.rows.min(oh - y), frame.columns.min(ow - x));
                let end = (rows - 1) * frame.pitch + columns;
                let [by_z, by_y, by_x] = boxes.out;
                let first = z as isize * by_z + y as isize * by_y + x as isize * by_x;
                let out = of.y.base.offset(n as isize * of.y_sample + (group * s.cout) as isize * of.y.channel + first);
                let weight = of.weight.base.offset((group * s.cout) as isize * of.weight_out);
                let bias = of.bias.map(|b| &b[group * s.cout..]);
                let mut f = 0;
                while f < end {
                    let wide = end - f;
                    let vectors = wide.div_ceil(V::LANES);
                    // The windows of these vectors: position in the vectors, cell in the result, length.
                    let most = if V::LANES == 16 { 4 } else { 2 };
                    let step = if vectors >= most {
                        most
                    } else if vectors >= 2 {
                        2
                    } else {
                        1
                    };
                    let mut runs = [(0usize, 0isize, 0usize); RUNS];
                    let mut count = 0;
                    let stop = end.min(f + step * V::LANES);
                    let mut at = f;
                    while at < stop {
                        let (row, column) = (at / frame.pitch, at % frame.pitch);
                        let line = (stop - at).min(frame.pitch - column);
                        if column < columns {
                            let cell = row as isize * by_y + column as isize * by_x;
                            runs[count] = (at - f, cell, line.min(columns - column));
                            count += 1;
                        }
                        at += line;
                    }
                    let runs = &runs[..count];
                    let from = buffer.add(f);
                    let mut o = 0;
                    while o < s.cout {
                        let a = weight.offset(o as isize * of.weight_out);
                        let to = (out.offset(o as isize * of.y.channel), of.y.channel, by_x);
                        let bias = bias.map(|b| b.as_ptr().add(o));
                        let left = s.cout - o;
                        macro_rules! tile {
                            ($rows:literal) => {{
                                o += $rows;
                                let of = DirectTile { terms: &terms, weight: a, from, bias, runs, to };
                                match step {
                                    4 => set.run(&OfSize::<$rows, 4>(of)),
                                    3 => set.run(&OfSize::<$rows, 3>(of)),
                                    2 => set.run(&OfSize::<$rows, 2>(of)),
                                    _ => set.run(&OfSize::<$rows, 1>(of)),
                                }
                            }};
                        }
                        match left {
                            6.. => tile!(6),
                            4.. => tile!(4),
                            2.. => tile!(2),
                            _ => tile!(1),
                        }
                    }
                    f += step * V::LANES;
                }
                if let Some(done) = of.done {
                    let channels = image * s.cout..(image + 1) * s.cout;
                    let line = z * oh + y;
                    // Whole lines of windows are one range, together with those before.
                    if columns == ow {
                        let first = ready.take().filter(|(i, _)| *i == image).map_or(line, |(_, first)| first);
                        let goes_on = item + 1 < items.end && line + rows < od * oh;
                        if goes_on && (line + rows - first) * ow * s.cout < READY {
                            ready = Some((image, first));
                        } else {
                            done(channels, first * ow..(line + rows) * ow);
                        }
                    } else {
                        for row in 0..rows {
                            let first = (line + row) * ow + x;
                            done(channels.clone(), first..first + columns);
                        }
                    }
                }
                item += 1;
            }
        }
    }
}

/// Where the terms of a sum are.
struct TermCells<'a> {
    right: &'a [usize],
    left: &'a [isize],
    /// Distance of result channels' weights.
    step: isize,
}

/// Some result channels of some vectors of windows.
struct DirectTile<'a> {
    terms: &'a TermCells<'a>,
    /// The first channel's weights; the first window in the frame.
    weight: *const f32,
    from: *const f32,
    bias: Option<*const f32>,
    /// Windows: position in the vectors, cell from the first one's, number.
    runs: &'a [(usize, isize, usize)],
    /// The result and the distances of its channels and windows.
    to: (*mut f32, isize, isize),
}

/// A tile of `R` result channels and `M` vectors: a function of its own for each instruction set, small enough to be optimised.
struct OfSize<'a, const R: usize, const M: usize>(DirectTile<'a>);

impl<const R: usize, const M: usize> Task for OfSize<'_, R, M> {
    #[inline(always)]
    unsafe fn run<V: Lanes<T = f32>>(&self) {
        // SAFETY: the caller's promise.
        unsafe { tile::<V, R, M>(&self.0) }
    }
}

/// Computes a tile.
///
/// # Safety
/// All that it names is readable, the result writable, as [`Direct::run`] says.
#[allow(clippy::needless_range_loop)] // rows by vectors
#[inline(always)]
unsafe fn tile<V: Lanes<T = f32>, const R: usize, const M: usize>(of: &DirectTile<'_>) {
    let &DirectTile { terms, weight, from, bias, runs, to } = of;
    let mut memory = MaybeUninit::<[f32; TILE]>::uninit();
    let own = memory.as_mut_ptr().cast::<f32>();
    let rows: [*const f32; R] = std::array::from_fn(|i| weight.wrapping_offset(i as isize * terms.step));
    let all = terms.right.len();
    let mut start = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while start < all {
            let end = all.min(start + DEPTH);
            let mut sums = [[V::splat(0.0); M]; R];
            let (mut a, mut b) = (terms.left.as_ptr().add(start), terms.right.as_ptr().add(start));
            let stop = terms.right.as_ptr().add(end);
            while b < stop {
                let (at, from) = (a.read(), from.add(b.read()));
                let right: [V; M] = std::array::from_fn(|j| V::load(from.add(j * V::LANES)));
                for i in 0..R {
                    let left = V::splat(rows[i].offset(at).read());
                    for j in 0..M {
                        sums[i][j] = sums[i][j].plus_product(left, right[j]);
                    }
                }
                (a, b) = (a.add(1), b.add(1));
            }
            for i in 0..R {
                for j in 0..M {
                    let (to, sum) = (own.add((i * M + j) * V::LANES), sums[i][j]);
                    let sum = match bias {
                        _ if start > 0 => V::load(to).plus(sum),
                        Some(bias) => V::splat(bias.add(i).read()).plus(sum),
                        None => sum,
                    };
                    sum.store(to);
                }
            }
            start = end;
        }
        for i in 0..R {
            let row = to.0.offset(i as isize * to.1);
            for &(at, cell, len) in runs {
                spread::<V>(own.add(i * M * V::LANES + at), row.offset(cell), to.2, len);
            }
        }
    }
}
