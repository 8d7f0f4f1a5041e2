//! Convolutions of `f32` without a matrix of windows: tiles of neighbouring windows by result channels, which read the padded input
//! under a box of windows. It is copied once for all taps ([`Frame`](crate::conv::frame::Frame), [`WindowBoxes`]).
//!
//! The sums are those of `implicit.rs`, term by term: blocks of [`DEPTH`] terms, each from zero and then added to the bias. Filters are in
//! panels: packed once, or put there for each box.

use crate::conv::boxes::{COLUMNS, WindowBoxes};
use crate::conv::frame::Planes;
use crate::conv::implicit::{Order, Weights};
use crate::conv::lanes::{Lanes, Task};
use crate::conv::packed::group_len;
use crate::conv::{SHARED, Shape};
use crate::matmul::Gemm;
use crate::matmul::blocked::DEPTH;
use crate::matmul::packed::place;
use crate::matmul::panels::{Panels, Strided, pack};
use crate::support::array;
use crate::support::cache::{CacheLevel, prefetch};
use crate::support::epilogue::Epilogue;
use crate::support::isa::{Isa, isa};
use crate::support::par::EvenParts;
use crate::support::stack::Stack;
use std::ops::Range;

/// Elements of the input under a box, on the stack.
pub(super) const FRAME: usize = 1 << 15;
/// Those under a box of a large filter in strides: it is put into panels for each box, so that few large ones take less time.
const LARGE_FRAME: usize = 5 << 14;
/// Elements of a filter from which on it is a large one.
const LARGE_FILTER: usize = 1 << 15;
/// Those of a packed one: the second cache does not keep it from one box to the next.
const PACKED_FILTER: usize = 1 << 18;
/// Most terms of a sum.
const TERMS: usize = 1 << 13;
/// Elements of results that are computed before they are put into planes.
const SIDE: usize = COLUMNS * WIDE;
/// Those of a filter of several blocks that is in strides: for each of them all blocks are put into panels.
const LARGE_SIDE: usize = 5 * SIDE;
/// Windows of a tile.
const WINDOWS: usize = 6;
/// Channels of the widest tile.
const WIDE: usize = 32;
/// Fewest result channels of a group: tiles would have more room than channels.
pub(super) const FEWEST: usize = 8;
/// Fewest windows of a box for which a filter in strides is put into panels.
const MANY: usize = 128;

/// A filter: in panels, or the first weight and the distances of a weight's neighbours and of result channels.
#[derive(Clone, Copy)]
pub(super) enum ConvFilter {
    Packed(*const f32),
    InStrides(Planes<*const f32>, isize),
}

/// A convolution of `f32`.
pub(super) struct TiledConv<'a> {
    pub s: &'a Shape,
    pub x: Planes<*const f32>,
    pub x_sample: isize,
    pub filter: ConvFilter,
    /// A number for each result channel.
    pub bias: Option<&'a [f32]>,
    pub y: Planes<*mut f32>,
    pub y_sample: isize,
    /// Called for finished parts.
    pub done: Option<Epilogue<'a>>,
}
// SAFETY: threads read the operands and write each their own elements of the result.
unsafe impl Sync for TiledConv<'_> {}

impl TiledConv<'_> {
    /// The boxes; `None` where they do not fit, or where a product is faster.
    pub(super) fn boxes(&self, threads: usize) -> Option<WindowBoxes> {
        let s = self.s;
        let terms = s.cin * s.w.taps();
        // Few windows read many weights: threads have channels of their own, if each has a panel.
        let weights = s.cout * terms > s.cin * s.w.volume() || s.w.windows() <= WINDOWS * threads;
        let channels = if weights && s.cout.div_ceil(f32::width()) >= threads { threads } else { 1 };
        let rows = if channels > 1 { 1 } else { threads };
        let fits = terms <= TERMS && s.cout >= FEWEST;
        let packed = matches!(self.filter, ConvFilter::Packed(_));
        let large = s.cout * terms >= if packed { PACKED_FILTER } else { LARGE_FILTER };
        let room = if large { LARGE_FRAME } else { FRAME };
        let boxes = fits.then(|| WindowBoxes::of(s, &self.x, channels, rows, room)).flatten()?;
        // A filter in strides is put into panels for each box.
        let few = !packed && boxes.rows * boxes.columns < MANY;
        (!few).then_some(boxes)
    }

    /// Runs it.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of the result writable, different cells that no other thread uses
    /// and that are none of an operand.
    pub(super) unsafe fn run(&self, boxes: &WindowBoxes, threads: usize) {
        let s = self.s;
        let width = f32::width();
        let part = s.cout.div_ceil(width).div_ceil(boxes.parts) * width;
        let parts = s.cout.div_ceil(part);
        let count = s.batch * s.groups * s.w.output[0] * boxes.down * boxes.across;
        let items = count * parts;
        let macs = s.batch * s.groups * s.cout * s.w.windows() * s.cin * s.w.taps();
        let threads = if macs < SHARED { 1 } else { threads };
        let set = isa();
        EvenParts::new(items, threads).each(&|items| {
            with_frame(boxes.elements, &mut |buffer| {
                let part = Part { of: self, boxes, items: items.clone(), part, count, set, buffer };
                // SAFETY: the caller's promise; items share no elements of the result.
                unsafe { set.run(&part) }
            });
        });
    }
}

/// Calls `f` with memory on the stack for the input under a box, whose pages are touched at every call: no more of it than needed.
fn with_frame(elements: usize, f: &mut dyn FnMut(*mut f32)) {
    #[inline(never)]
    fn of<const N: usize>(f: &mut dyn FnMut(*mut f32)) {
        let mut memory = Stack::<f32, N>::new();
        f(memory.start())
    }
    assert!(elements <= LARGE_FRAME, "the input under a box fits");
    if elements <= FRAME { of::<FRAME>(f) } else { of::<LARGE_FRAME>(f) }
}

/// A task's range of items: boxes, each of them of a part of the channels. The input under a box goes to `buffer`.
struct Part<'a> {
    of: &'a TiledConv<'a>,
    boxes: &'a WindowBoxes,
    items: Range<usize>,
    /// Channels of a part; boxes of all images.
    part: usize,
    count: usize,
    set: Isa,
    buffer: *mut f32,
}

impl Task for Part<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<T = f32>>(&self) {
        let Part { of, boxes, items, part, count, set, buffer } = self;
        let s = of.s;
        let (cin, all) = (s.cin, s.cin * s.w.taps());
        let buffer = *buffer;
        let mut positions = Stack::<u32, TERMS>::new();
        let positions = positions.start();
        let (order, step) = (Order::of(s), boxes.input.channel());
        boxes.input.taps(|t, at| {
            for c in 0..cin {
                // SAFETY: all terms, each once, and no more than there is room for.
                unsafe { positions.add(order.term(c, t, cin, s.w.taps()).0).write((at + c * step) as u32) }
            }
        });
        // SAFETY: they were written.
        let terms = unsafe { std::slice::from_raw_parts(positions, all) };
        let [od, oh, ow] = s.w.output;
        let (last, len) = (of.y.channel == 1, group_len::<f32>(s));
        let mut here = None;
        let mut item = items.start;
        // SAFETY: the caller's promise; the input under a box fits the buffer, with what is read beyond it.
        unsafe {
            while item < items.end {
                // Threads have channels of their own where there are parts of them.
                let (at, first) = (item % count, item / count * part);
                let (image, cell) = (at / (od * boxes.down * boxes.across), at % (od * boxes.down * boxes.across));
                let (z, x) = (cell / (boxes.down * boxes.across), cell % boxes.across * boxes.columns);
                let Range { start: y, end } = boxes.rows_of(oh, cell / boxes.across % boxes.down);
                let (n, group) = (image / s.groups, image % s.groups);
                if here.replace(at) != Some(at) {
                    let from = of.x.base.offset(n as isize * of.x_sample + (group * cin) as isize * of.x.channel);
                    boxes.fill::<V>(&of.x, from, cin, [z, y, x], buffer);
                }
                let (rows, columns) = (end - y, boxes.columns.min(ow - x));
                let [by_z, by_y, by_x] = of.y.strides;
                let cells = z as isize * by_z + y as isize * by_y + x as isize * by_x;
                let out = of.y.base.offset(n as isize * of.y_sample + cells);
                let (matrix, weights);
                let filter = match of.filter {
                    ConvFilter::Packed(at) => Panel::Packed(at.add(group * len)),
                    ConvFilter::InStrides(at, out) => {
                        let base = at.base.offset((group * s.cout) as isize * out);
                        weights = Weights { at: Planes { base, ..at }, out, w: &s.w, cin, order };
                        match weights.step() {
                            Some(step) => {
                                matrix = Strided::new((base, step, out));
                                Panel::InStrides(&matrix)
                            }
                            None => Panel::InStrides(&weights),
                        }
                    }
                };
                let sweep = BoxSums {
                    terms,
                    filter: &filter,
                    channels: s.cout,
                    from: buffer,
                    row: boxes.input.row(),
                    near: boxes.input.near(),
                    size: (rows, columns),
                    bias: of.bias.map(|b| b[group * s.cout..].as_ptr()),
                    to: out.offset((group * s.cout) as isize * of.y.channel),
                    strides: (of.y.channel, by_y, by_x),
                    set: *set,
                };
                let end = s.cout.min(first + part);
                if last {
                    sweep.in_rows::<V>(first..end)
                } else {
                    sweep.aside::<V>(first..end)
                }
                if let Some(done) = of.done {
                    let channels = image * s.cout + first..image * s.cout + end;
                    let line = z * oh + y;
                    if columns == ow {
                        done(channels, line * ow..(line + rows) * ow);
                    } else {
                        for row in line..line + rows {
                            done(channels.clone(), row * ow + x..row * ow + x + columns);
                        }
                    }
                }
                item += 1;
            }
        }
    }
}

/// A group's filter, terms × result channels.
enum Panel<'a> {
    Packed(*const f32),
    InStrides(&'a dyn Panels<f32>),
}

/// The windows of a box, and a group's filter.
struct BoxSums<'a> {
    /// Position of each term for the first window, from `from` on.
    terms: &'a [u32],
    filter: &'a Panel<'a>,
    channels: usize,
    from: *const f32,
    /// Distances of rows and of windows there.
    row: usize,
    near: usize,
    size: (usize, usize),
    bias: Option<*const f32>,
    /// The first window's result of channel 0; distances of channels, of rows and of windows.
    to: *mut f32,
    strides: (isize, isize, isize),
    set: Isa,
}

impl BoxSums<'_> {
    /// The sums of the channels from `first` on of one panel, of some rows, where channels are side by side.
    ///
    /// # Safety
    /// As [`TiledConv::run`]; `to` has the panel's channels of these windows, `step` and `apart` their distances; `own` has room for a
    /// block of a panel, and keeps it from one call to the next with further rows.
    #[inline(always)]
    unsafe fn panel<V: Lanes<T = f32>>(
        &self,
        first: usize,
        rows: Range<usize>,
        (to, step, apart): (*mut f32, isize, isize),
        own: *mut f32,
    ) {
        let all = self.terms.len();
        let wide = (2 * V::LANES).min(self.channels - first);
        let mut start = 0;
        while start < all {
            let end = all.min(start + DEPTH);
            // SAFETY: the caller's promise; the memory has a block of all channels of a panel.
            unsafe {
                let (panel, pitch, next) = match self.filter {
                    Panel::Packed(filter) => {
                        let block = |start: usize, first: usize| {
                            let (at, pitch) = place::<f32>(all, self.channels, start, first, 2 * V::LANES);
                            let len = DEPTH.min(all - start) * pitch;
                            (filter.add(at)..filter.add(at + len), pitch)
                        };
                        let (here, pitch) = block(start, first);
                        // Behind the last block of a panel, the next panel's first one; behind the last panel, the first again.
                        let (after, column) =
                            if end < all { (end, first) } else { (0, (first + wide) % self.channels) };
                        let (next, _) = block(after, column);
                        (here.start, pitch, next)
                    }
                    Panel::InStrides(weights) => {
                        // A single block is still there for further rows.
                        if rows.start == 0 || all > DEPTH {
                            weights.fill(start..end, first..first + wide, 2 * V::LANES, own);
                        }
                        // Nothing is left to fetch.
                        (own.cast_const(), 2 * V::LANES, own.cast_const()..own.cast_const())
                    }
                };
                self.set.run(&Sweep {
                    terms: &self.terms[start..end],
                    panel,
                    pitch,
                    next,
                    from: self.from.add(rows.start * self.row),
                    row: self.row,
                    near: self.near,
                    size: (rows.len(), self.size.1),
                    to,
                    step,
                    apart,
                    wide,
                    before: match self.bias {
                        _ if start > 0 => Before::Sums,
                        Some(bias) => Before::Bias(bias.add(first)),
                        None => Before::Nothing,
                    },
                });
            }
            start = end;
        }
    }

    /// Channels that are side by side in the result.
    ///
    /// # Safety
    /// As [`TiledConv::run`].
    #[inline(always)]
    unsafe fn in_rows<V: Lanes<T = f32>>(&self, channels: Range<usize>) {
        let (_, by_y, by_x) = self.strides;
        let mut block = Stack::<f32, { DEPTH * WIDE }>::new();
        let block = block.start();
        let mut first = channels.start;
        while first < channels.end {
            // SAFETY: the caller's promise.
            unsafe { self.panel::<V>(first, 0..self.size.0, (self.to.add(first), by_y, by_x), block) }
            first += 2 * V::LANES;
        }
    }

    /// Channels that are not: computed side by side in memory of their own, then turned.
    ///
    /// # Safety
    /// As [`TiledConv::run`].
    #[inline(always)]
    unsafe fn aside<V: Lanes<T = f32>>(&self, channels: Range<usize>) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.filter {
                Panel::InStrides(_) if self.terms.len() > DEPTH => self.aside_of::<V, LARGE_SIDE>(channels),
                _ => self.aside_of::<V, SIDE>(channels),
            }
        }
    }

    /// As [`aside`](BoxSums::aside), `N` elements at a time. By itself: its frame is many pages.
    ///
    /// # Safety
    /// As [`TiledConv::run`].
    #[inline(never)]
    unsafe fn aside_of<V: Lanes<T = f32>, const N: usize>(&self, channels: Range<usize>) {
        let mut memory = Stack::<f32, N>::new();
        // SAFETY: the caller's promise; the memory has `N` elements.
        unsafe { self.aside_in::<V>(channels, memory.start(), N) }
    }

    /// As [`aside`](BoxSums::aside), in memory of `room` elements: one function for both sizes.
    ///
    /// # Safety
    /// As [`TiledConv::run`]; `own` has `room` elements.
    #[inline(never)]
    unsafe fn aside_in<V: Lanes<T = f32>>(&self, channels: Range<usize>, own: *mut f32, room: usize) {
        let mut block = Stack::<f32, { DEPTH * WIDE }>::new();
        let block = block.start();
        let (by_channel, by_y, by_x) = self.strides;
        let (rows, columns) = self.size;
        let pitch = 2 * V::LANES;
        let some = room / pitch / columns;
        let dense = by_x == 1 && by_y == columns as isize;
        let mut first = channels.start;
        while first < channels.end {
            let wide = pitch.min(channels.end - first);
            let mut row = 0;
            while row < rows {
                let high = some.min(rows - row);
                // SAFETY: the caller's promise; the memory has all channels of the rows.
                unsafe {
                    self.panel::<V>(first, row..row + high, (own, (columns * pitch) as isize, pitch as isize), block);
                    let to = self.to.offset(first as isize * by_channel + row as isize * by_y);
                    let (lines, len) = if dense { (1, high * columns) } else { (high, columns) };
                    let mut line = 0;
                    while line < lines {
                        let from = own.add(line * columns * pitch);
                        let to = to.offset(line as isize * by_y);
                        if by_x == 1 && by_channel > 0 {
                            let from = (from.cast_const(), 1, pitch as isize);
                            pack(f32::turn(), to, by_channel as usize, from, wide, len);
                        } else {
                            let mut o = 0;
                            while o < wide {
                                let mut i = 0;
                                while i < len {
                                    let cell = to.offset(o as isize * by_channel + i as isize * by_x);
                                    cell.write(from.add(i * pitch + o).read());
                                    i += 1;
                                }
                                o += 1;
                            }
                        }
                        line += 1;
                    }
                }
                row += high;
            }
            first += pitch;
        }
    }
}

/// What a block of terms is added to.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    /// Numbers of the channels.
    Bias(*const f32),
    /// The sums so far.
    Sums,
}

/// A block of terms of the channels of one panel, for the windows of a box: a function of its own for each instruction set.
struct Sweep<'a> {
    terms: &'a [u32],
    panel: *const f32,
    pitch: usize,
    /// The packed block that is read after this one; else an empty range that has an address: one without a page takes time.
    next: Range<*const f32>,
    from: *const f32,
    row: usize,
    near: usize,
    size: (usize, usize),
    to: *mut f32,
    step: isize,
    apart: isize,
    wide: usize,
    before: Before,
}

impl Task for Sweep<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes<T = f32>>(&self) {
        let (rows, columns) = self.size;
        let all = rows * columns;
        // Tiles of one size, or one window less.
        let tiles = all.div_ceil(WINDOWS);
        let (size, more) = (all / tiles, all % tiles);
        let two = self.wide > V::LANES;
        // Each term of each tile fetches as much of the next block.
        let bytes = self.next.end.addr() - self.next.start.addr();
        let pace = bytes.div_ceil(tiles * self.terms.len());
        let (mut row, mut column) = (0, 0);
        let mut tile = 0;
        while tile < tiles {
            let n = size + usize::from(tile < more);
            let mut of = WindowTile {
                from: [self.from; WINDOWS],
                to: [self.to; WINDOWS],
                next: self.next.start.wrapping_byte_add(tile * self.terms.len() * pace),
                pace,
            };
            let mut i = 0;
            while i < n {
                of.from[i] = self.from.wrapping_add(row * self.row + column * self.near);
                of.to[i] = self.to.wrapping_offset(row as isize * self.step + column as isize * self.apart);
                column += 1;
                if column == columns {
                    (row, column) = (row + 1, 0);
                }
                i += 1;
            }
            // SAFETY: the caller's promise.
            unsafe {
                let mut at = 0;
                while at < n {
                    at += match (n - at, two) {
                        (6.., true) => self.tile::<V, 6, 2>(&of, at),
                        (5, true) => self.tile::<V, 5, 2>(&of, at),
                        (2.., true) => self.tile::<V, 2, 2>(&of, at),
                        (_, true) => self.tile::<V, 1, 2>(&of, at),
                        (6.., false) => self.tile::<V, 6, 1>(&of, at),
                        (5, false) => self.tile::<V, 5, 1>(&of, at),
                        (2.., false) => self.tile::<V, 2, 1>(&of, at),
                        (_, false) => self.tile::<V, 1, 1>(&of, at),
                    };
                }
            }
            tile += 1;
        }
    }
}

/// Windows of a tile: where they begin in the input, their results, and the part of the next block that is fetched with them.
struct WindowTile {
    from: [*const f32; WINDOWS],
    to: [*mut f32; WINDOWS],
    /// What is fetched meanwhile, and bytes of it for each term.
    next: *const f32,
    pace: usize,
}

impl Sweep<'_> {
    /// `W` windows from one on, `M` vectors of channels.
    ///
    /// # Safety
    /// The terms of the windows are readable, their results writable.
    #[allow(clippy::needless_range_loop)] // windows by vectors
    #[inline(always)]
    unsafe fn tile<V: Lanes<T = f32>, const W: usize, const M: usize>(&self, of: &WindowTile, first: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[V::splat(0.0); M]; W];
            let windows: [*const f32; W] = array::from_fn(|i| of.from[first + i]);
            let mut panel = self.panel;
            let mut next = of.next;
            let mut term = self.terms.as_ptr();
            let stop = term.add(self.terms.len());
            while term < stop {
                let at = term.read() as usize;
                let weights: [V; M] = array::from_fn(|j| V::load(panel.add(j * V::LANES)));
                for i in 0..W {
                    let x = V::splat(windows[i].add(at).read());
                    for j in 0..M {
                        sums[i][j] = sums[i][j].plus_product(weights[j], x);
                    }
                }
                prefetch(next, CacheLevel::Second);
                next = next.wrapping_byte_add(of.pace);
                panel = panel.add(self.pitch);
                term = term.add(1);
            }
            let rest = self.wide - (M - 1) * V::LANES;
            for i in 0..W {
                for j in 0..M {
                    let (to, sum) = (of.to[first + i].add(j * V::LANES), sums[i][j]);
                    let before = match self.before {
                        Before::Nothing => std::ptr::null(),
                        Before::Bias(bias) => bias.add(j * V::LANES),
                        Before::Sums => to.cast_const(),
                    };
                    let full = j + 1 < M || rest == V::LANES;
                    match (before.is_null(), full) {
                        (true, true) => sum.store(to),
                        (true, false) => sum.store_first(to, rest),
                        (false, true) => V::load(before).plus(sum).store(to),
                        (false, false) => V::load_first(before, rest).plus(sum).store_first(to, rest),
                    }
                }
            }
        }
        W
    }
}
