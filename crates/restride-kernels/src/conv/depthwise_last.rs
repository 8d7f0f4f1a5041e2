//! Depthwise convolutions of channels-last planes: lanes are channels.
//!
//! Where most windows of a row have all of their taps, planes are read as they are, and taps in the padding are skipped. In small planes
//! they have not: the padded plane of a vector of channels is copied into a frame, which holds zeros for the padding, and all windows
//! are computed alike. The copy is small beside the sums, and its vectors are a run.

use crate::conv::depthwise::{Depthwise, FRAME, is_run};
use crate::conv::frame::EachTap;
use crate::conv::lanes::{Lanes, Task};
use crate::conv::window::Window;
use crate::matmul::Gemm;
use crate::matmul::panels::pack;
use crate::support::array;
use crate::support::stack::Stack;
use std::ops::Range;

/// Elements of the vectors of any tile.
pub(super) const MOST: usize = 64;
/// Windows of a row that are computed together where planes are read as they are.
const SIDE: usize = 4;
/// Most windows of a row that are computed together in a frame.
const ROW: usize = 8;

/// Lines of the result, channels-last, and channels: the task's ranges of them.
pub(super) struct Last<'a>(pub &'a Depthwise<'a>, pub Range<usize>, pub Range<usize>);

impl Task for Last<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<T = f32>>(&self) {
        let Last(of, _, channels) = self;
        if let Some(rows) = framed(of.w, V::LANES) {
            // SAFETY: the caller's promise.
            return unsafe { self.frames::<V>(rows) };
        }
        let mut c = channels.start;
        // SAFETY: the caller's promise.
        unsafe {
            while c < channels.end {
                let left = channels.end - c;
                c += if left >= 4 * V::LANES {
                    self.channels::<V, 4, false>(c, V::LANES)
                } else if left >= 2 * V::LANES {
                    self.channels::<V, 2, false>(c, V::LANES)
                } else if left >= V::LANES {
                    self.channels::<V, 1, false>(c, V::LANES)
                } else if channels.len() >= V::LANES {
                    // Some channels twice: whole vectors are faster than parts of one.
                    self.channels::<V, 1, false>(channels.end - V::LANES, V::LANES)
                } else {
                    self.channels::<V, 1, true>(c, left)
                };
            }
        }
    }
}

/// How many rows of windows share one copy of their padded input, which is of vectors with `lanes` lanes. `None` if planes are not copied.
fn framed(w: &Window, lanes: usize) -> Option<usize> {
    let [_, oh, ow] = w.output;
    let (lo, hi) = (w.inside(2, 0).0, w.inside(2, w.kernel[2] - 1).1);
    let whole = hi.saturating_sub(lo) / SIDE * SIDE;
    if w.output[0] > 1 || w.kernel[0] > 1 || w.input[0] > 1 || w.pad[0] > 0 || 4 * whole >= 3 * ow {
        return None;
    }
    let room = FRAME / lanes / Bounds::new(w, 1).pitch;
    let span = (w.kernel[1] - 1) * w.dilation[1] + 1;
    (room >= span).then(|| oh.min((room - span) / w.stride[1] + 1))
}

/// Whether planes are copied.
pub(super) fn is_framed(w: &Window) -> bool {
    framed(w, 1).is_some()
}

/// Geometry of the padded input under some rows of windows, in vectors.
struct Bounds {
    /// Rows, and vectors from one to the next.
    high: usize,
    pitch: usize,
    /// Columns are dealt out by their remainder to the stride: vectors of each.
    phase: usize,
    /// Columns, and those that are not padding.
    wide: usize,
    inside: Range<usize>,
}

impl Bounds {
    fn new(w: &Window, rows: usize) -> Bounds {
        let span = |d: usize, n: usize| (n - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
        let wide = span(2, w.output[2]);
        let phase = wide.div_ceil(w.stride[2]);
        let inside = w.pad[2].min(wide)..(w.pad[2] + w.input[2]).min(wide);
        Bounds { high: span(1, rows), pitch: phase * w.stride[2], phase, wide, inside }
    }
    /// Where a column is in its row.
    #[inline(always)]
    fn column(&self, w: &Window, x: usize) -> usize {
        x % w.stride[2] * self.phase + x / w.stride[2]
    }
}

impl Last<'_> {
    /// Puts the weights of `wide` channels from `c` on tap by tap, `all` to a tap: zeros for the other ones.
    #[inline(always)]
    unsafe fn order(&self, c: usize, wide: usize, all: usize, taps: &[isize], to: *mut f32) {
        let Last(of, _, _) = self;
        // SAFETY: the caller's promise.
        unsafe {
            let from = of.weight.base.offset(c as isize * of.weight.channel);
            if wide == all && is_run(taps) {
                return pack(f32::turn(), to, all, (from, 1, of.weight.channel), taps.len(), wide);
            }
            for (t, &at) in taps.iter().enumerate() {
                for i in 0..all {
                    let x = if i < wide { from.offset(at + i as isize * of.weight.channel).read() } else { 0.0 };
                    to.add(t * all + i).write(x);
                }
            }
        }
    }

    /// All lines and channels, `rows` lines at a time, whose input is copied.
    #[inline(always)]
    unsafe fn frames<V: Lanes<T = f32>>(&self, rows: usize) {
        let Last(of, lines, channels) = self;
        let w = of.w;
        let [_, oh, ow] = w.output;
        let mut frame = Stack::<f32, FRAME>::new();
        let mut weights = Stack::<f32, FRAME>::new();
        let (frame, weights) = (frame.start(), weights.start());
        let offsets = of.offsets();
        let bounds = Bounds::new(w, rows);
        let mut taps = EachTap::new();
        w.each_tap(|_, [_, y, x]| {
            taps.push((y * w.dilation[1] * bounds.pitch + bounds.column(w, x * w.dilation[2])) * V::LANES);
        });
        // Tiles of a row, as even as possible: some windows twice.
        let tile = ow.div_ceil(ow.div_ceil(ROW));
        // Rows of padding are the same for all channels where the frame holds a whole plane.
        let whole = rows == oh && lines.start % oh == 0 && lines.end % oh == 0;
        let mut c = channels.start;
        // SAFETY: the caller's promise; the frame holds the rows, and the weights those of a vector of channels.
        unsafe {
            // So are the columns of padding.
            let zero = V::splat(0.0);
            for j in (0..bounds.inside.start).chain(bounds.inside.end..bounds.wide) {
                let at = bounds.column(w, j);
                for i in 0..bounds.high {
                    zero.store(frame.add((i * bounds.pitch + at) * V::LANES));
                }
            }
            while c < channels.end {
                // Some channels twice: whole vectors are faster than parts of one.
                let part = V::LANES.min(channels.len());
                c = c.min(channels.end - part);
                self.order(c, part, V::LANES, &offsets, weights);
                let mut bias = [0f32; MOST];
                for (i, b) in bias[..part].iter_mut().enumerate() {
                    *b = of.bias(c + i);
                }
                let bias = V::load(bias.as_ptr());
                let mut line = lines.start;
                while line < lines.end {
                    let (n, y) = ((line / oh) as isize, line % oh);
                    let some = rows.min(oh - y).min(lines.end - line);
                    let x = of.x.base.offset(n * of.x_sample + c as isize);
                    let high = (some - 1) * w.stride[1] + bounds.high - (rows - 1) * w.stride[1];
                    let padding = !whole || c == channels.start && line == lines.start;
                    self.fill::<V>(&bounds, x, y, high, part, frame, padding);
                    let to = of.y.base.offset(n * of.y_sample + c as isize);
                    let mut j = 0;
                    while j < some {
                        // Two rows at a time where all of their sums fit the registers.
                        let two = tile < ROW && j + 1 < some;
                        let mut o = 0;
                        while o < ow {
                            o = o.min(ow - tile);
                            let from = frame.add((j * w.stride[1] * bounds.pitch + o) * V::LANES);
                            let cell = (y + j) as isize * of.y.strides[1] + o as isize * of.y.strides[2];
                            let of = FrameWindows {
                                taps: &taps,
                                weights,
                                bias,
                                from: [from, from.add(w.stride[1] * bounds.pitch * V::LANES * usize::from(two))],
                                to: [to.offset(cell), to.offset(cell + of.y.strides[1] * isize::from(two))],
                                step: of.y.strides[2],
                                part,
                            };
                            match (tile, two) {
                                (1, false) => of.sums::<1, 1>(),
                                (1, true) => of.sums::<2, 1>(),
                                (2, false) => of.sums::<1, 2>(),
                                (2, true) => of.sums::<2, 2>(),
                                (3, false) => of.sums::<1, 3>(),
                                (3, true) => of.sums::<2, 3>(),
                                (4, false) => of.sums::<1, 4>(),
                                (4, true) => of.sums::<2, 4>(),
                                (5, false) => of.sums::<1, 5>(),
                                (5, true) => of.sums::<2, 5>(),
                                (6, false) => of.sums::<1, 6>(),
                                (6, true) => of.sums::<2, 6>(),
                                (7, false) => of.sums::<1, 7>(),
                                (7, true) => of.sums::<2, 7>(),
                                _ => of.sums::<1, ROW>(),
                            }
                            o += tile;
                        }
                        j += 1 + usize::from(two);
                    }
                    line += some;
                }
                c += part;
            }
        }
    }

    /// Copies the input under the rows of windows from `y` on, `high` rows of it, of `part` channels, with rows of `padding` or without.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    unsafe fn fill<V: Lanes<T = f32>>(
        &self,
        bounds: &Bounds,
        x: *const f32,
        y: usize,
        high: usize,
        part: usize,
        frame: *mut f32,
        padding: bool,
    ) {
        let Last(of, _, _) = self;
        let w = of.w;
        let left = bounds.inside.start;
        let start = (left % w.stride[2], left / w.stride[2]);
        // SAFETY: the caller's promise.
        unsafe {
            let zero = V::splat(0.0);
            for i in 0..high {
                let row = frame.add(i * bounds.pitch * V::LANES);
                let at = (y * w.stride[1] + i).wrapping_sub(w.pad[1]);
                if at >= w.input[1] {
                    if padding {
                        for j in 0..bounds.pitch {
                            zero.store(row.add(j * V::LANES));
                        }
                    }
                    continue;
                }
                let mut from = x.offset(at as isize * of.x.strides[1]);
                let (mut phase, mut at) = start;
                for _ in bounds.inside.clone() {
                    let v = if part < V::LANES { V::load_first(from, part) } else { V::load(from) };
                    v.store(row.add((phase * bounds.phase + at) * V::LANES));
                    from = from.wrapping_offset(of.x.strides[2]);
                    phase += 1;
                    if phase == w.stride[2] {
                        (phase, at) = (0, at + 1);
                    }
                }
            }
        }
    }

    /// `M` vectors of channels from `c` on; of the last one, `part` lanes where `PART`.
    #[inline(always)]
    unsafe fn channels<V: Lanes<T = f32>, const M: usize, const PART: bool>(&self, c: usize, part: usize) -> usize {
        let Last(of, lines, _) = self;
        let w = of.w;
        let wide = if PART { part } else { M * V::LANES };
        let mut memory = Stack::<f32, FRAME>::new();
        let weights = memory.start();
        let mut bias = [0f32; MOST];
        // SAFETY: the caller's promise; taps × vectors fit the memory.
        unsafe {
            self.order(c, wide, M * V::LANES, &of.offsets(), weights);
            for (i, b) in bias[..wide].iter_mut().enumerate() {
                *b = of.bias(c + i);
            }
            let [od, oh, ow] = w.output;
            // Windows of a row that have no padding.
            let (lo, hi) = (w.inside(2, 0).0, w.inside(2, w.kernel[2] - 1).1);
            let mut line = lines.start;
            while line < lines.end {
                let (n, z, y) = ((line / (od * oh)) as isize, line / oh % od, line % oh);
                let x = of.x.base.offset(n * of.x_sample + c as isize);
                let to = of
                    .y
                    .base
                    .offset(n * of.y_sample + z as isize * of.y.strides[0] + y as isize * of.y.strides[1] + c as isize);
                let taps = [inside(w, 0, z), inside(w, 1, y)];
                let mut o = 0;
                while o < ow {
                    let (at, to) = ([z, y, o], to.offset(o as isize * of.y.strides[2]));
                    o += if M == 1 && o >= lo && o + 2 * SIDE <= hi {
                        windows::<V, M, { 2 * SIDE }, PART>(of, at, &taps, 0..w.kernel[2], x, weights, &bias, to, part)
                    } else if o >= lo && o + SIDE <= hi {
                        windows::<V, M, SIDE, PART>(of, at, &taps, 0..w.kernel[2], x, weights, &bias, to, part)
                    } else if o >= lo && o < hi {
                        windows::<V, M, 1, PART>(of, at, &taps, 0..w.kernel[2], x, weights, &bias, to, part)
                    } else {
                        windows::<V, M, 1, PART>(of, at, &taps, inside(w, 2, o), x, weights, &bias, to, part)
                    };
                }
                line += 1;
            }
        }
        wide
    }
}

/// The taps of window `o` that are inside of the input in a dimension.
#[inline(always)]
fn inside(w: &Window, d: usize, o: usize) -> Range<usize> {
    let at = o * w.stride[d];
    let lo = w.pad[d].saturating_sub(at).div_ceil(w.dilation[d]).min(w.kernel[d]);
    let hi = (w.input[d] + w.pad[d]).saturating_sub(at).div_ceil(w.dilation[d]).min(w.kernel[d]);
    lo..hi.max(lo)
}

/// Computes `S` neighbouring windows of a row, the first at `at`. Their taps `depth`, `rows` and `columns` are inside of the input;
/// the others read padding and are left out.
#[allow(clippy::needless_range_loop)] // windows by vectors
#[inline(always)]
unsafe fn windows<V: Lanes<T = f32>, const M: usize, const S: usize, const PART: bool>(
    of: &Depthwise<'_>,
    at: [usize; 3],
    [depth, rows]: &[Range<usize>; 2],
    columns: Range<usize>,
    x: *const f32,
    weights: *const f32,
    bias: &[f32; MOST],
    to: *mut f32,
    part: usize,
) -> usize {
    let w = of.w;
    let [_, kh, kw] = w.kernel;
    let tap = w.dilation[2] as isize * of.x.strides[2];
    let apart: [isize; S] = array::from_fn(|j| (j * w.stride[2]) as isize * of.x.strides[2]);
    let cell = |d: usize, k: usize| (at[d] * w.stride[d] + k * w.dilation[d] - w.pad[d]) as isize * of.x.strides[d];
    // SAFETY: the caller's promise; the taps are inside of the input.
    unsafe {
        let mut sums = [[V::splat(0.0); M]; S];
        for sum in &mut sums {
            for (i, s) in sum.iter_mut().enumerate() {
                *s = V::load(bias.as_ptr().add(i * V::LANES));
            }
        }
        let mut kz = depth.start;
        while kz < depth.end && columns.start < columns.end {
            let mut ky = rows.start;
            while ky < rows.end {
                let mut weight = weights.add(((kz * kh + ky) * kw + columns.start) * M * V::LANES);
                let mut from = x.offset(cell(0, kz) + cell(1, ky) + cell(2, columns.start));
                let mut left = columns.end - columns.start;
                while left > 0 {
                    for i in 0..M {
                        let weight = V::load(weight.add(i * V::LANES));
                        for j in 0..S {
                            let from = from.offset(apart[j]).add(i * V::LANES);
                            let v = if PART { V::load_first(from, part) } else { V::load(from) };
                            sums[j][i] = sums[j][i].plus_product(v, weight);
                        }
                    }
                    weight = weight.add(M * V::LANES);
                    from = from.wrapping_offset(tap);
                    left -= 1;
                }
                ky += 1;
            }
            kz += 1;
        }
        for (j, sum) in sums.into_iter().enumerate() {
            let to = to.offset(j as isize * of.y.strides[2]);
            for (i, s) in sum.into_iter().enumerate() {
                let s = s.plus(V::splat(0.0));
                if PART { s.store_first(to.add(i * V::LANES), part) } else { s.store(to.add(i * V::LANES)) }
            }
        }
    }
    S
}

/// Neighbouring windows of one or two rows of a frame, of `part` channels.
struct FrameWindows<'a, V> {
    taps: &'a [usize],
    weights: *const f32,
    bias: V,
    /// The first window of each row, and its result.
    from: [*const f32; 2],
    to: [*mut f32; 2],
    /// Distance of results.
    step: isize,
    part: usize,
}

impl<V: Lanes<T = f32>> FrameWindows<'_, V> {
    /// Computes `S` windows of `R` rows.
    #[allow(clippy::needless_range_loop)] // rows by windows
    #[inline(always)]
    unsafe fn sums<const R: usize, const S: usize>(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[self.bias; S]; R];
            for (t, &at) in self.taps.iter().enumerate() {
                let weight = V::load(self.weights.add(t * V::LANES));
                for i in 0..R {
                    let from = self.from[i].add(at);
                    for j in 0..S {
                        sums[i][j] = sums[i][j].plus_product(V::load(from.add(j * V::LANES)), weight);
                    }
                }
            }
            for i in 0..R {
                for j in 0..S {
                    let (to, sum) = (self.to[i].offset(j as isize * self.step), sums[i][j].plus(V::splat(0.0)));
                    if self.part < V::LANES { sum.store_first(to, self.part) } else { sum.store(to) }
                }
            }
        }
    }
}
