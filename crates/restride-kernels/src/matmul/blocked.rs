//! Matrix products in blocks.
//!
//! Every element of the result is a sum over `k` from first to last in blocks of [`DEPTH`], each block from zero and then added to
//! the result. Strides, threads, tiles and where operands come from do not change it: the bits depend on `k` alone. Products with a
//! vector have an order of their own (`vector.rs`), which `k` alone decides too.

use super::panels::{Panels, Rows, pack};
use super::tile::{Kernels, NextPanel, Tile, Turn};
use crate::support::epilogue::{self, Epilogue};
use crate::support::par;
use crate::support::stack::Stack;
use num_traits::Zero;
use std::ops::{Add, Range};

/// Terms that are summed before they are added to the result.
pub const DEPTH: usize = 256;
/// Rows of the left operand that are used while a panel is in the first cache, so that they stay in the second.
const ROWS: usize = 384;
/// Products of fewer multiplications are not worth sharing.
pub(super) const SHARED: usize = 1 << 17;

/// The operands of a product: address, distance of rows, distance of columns.
pub type Matrix<T> = (*const T, isize, isize);
/// The result's.
pub type MatrixMut<T> = (*mut T, isize, isize);

/// Bytes of a panel of the widest kernels.
const PANEL: usize = DEPTH * 128;
/// Fewest rows of a panel that tiles copy while they use the panel before it.
const FLAT: usize = 128;
/// Most rows of the left operand that count as few: they read a panel in place as fast as it comes, so none is fetched early, and they
/// read runs of columns to their ends.
const FEW_ROWS: usize = 24;
/// Bytes of copied rows of the left operand.
const BLOCK: usize = 1 << 18;
/// Bytes of the sums of a few rows.
const SUMS: usize = 1 << 14;
/// Bytes of the largest tile.
const TILE: usize = 24 * 128;

/// `c = a b`, or `c += a b` where `add`, of sizes m × n × k.
///
/// # Safety
/// Both operands have these sizes, and their promises hold. All elements of `c` are readable and writable, different cells that no
/// other thread uses and that no operand is made of.
pub unsafe fn product<T: Copy + Zero + Send + Sync, A: Rows<T> + ?Sized, B: Panels<T> + ?Sized>(
    kernels: &Kernels<T>,
    (m, n, k): (usize, usize, usize),
    a: &A,
    b: &B,
    c: MatrixMut<T>,
    add: bool,
    threads: usize,
) {
    if m == 0 || n == 0 {
        return;
    }
    if k == 0 {
        if !add {
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                // SAFETY: the caller's promise.
                unsafe { c.0.offset(i as isize * c.1 + j as isize * c.2).write(T::zero()) };
            }
        }
        return;
    }
    let threads = if m * n * k < SHARED { 1 } else { threads };
    epilogue::take_of_product(|done| {
        if threads <= 1 {
            // SAFETY: the caller's promise.
            return unsafe { serial(kernels, (0..m, 0..n, k), a, b, c, add, done) };
        }
        // Tiles of a few rows less take no longer. Packed panels begin at multiples of their width.
        let step = (kernels.tiles[1].len().div_ceil(3), if b.padded() { kernels.width() } else { kernels.lanes });
        let (down, across) = grid((m, n), step, kernels.lanes, threads);
        let c = Shared(c);
        par::each(threads, down.count * across.count, &|i| {
            let (rows, columns) = (down.part(i % down.count), across.part(i / down.count));
            // SAFETY: the caller's promise; parts do not share elements of `c`.
            unsafe { serial(kernels, (rows, columns, k), a, b, c.get(), add, done) }
        });
    });
}

/// A range in parts of one size, but for the last.
struct Parts {
    len: usize,
    part: usize,
    count: usize,
}

impl Parts {
    fn new(len: usize, step: usize, count: usize) -> Parts {
        let part = len.div_ceil(step).div_ceil(count) * step;
        Parts { len, part, count: len.div_ceil(part) }
    }
    fn part(&self, i: usize) -> Range<usize> {
        i * self.part..self.len.min((i + 1) * self.part)
    }
}

/// Parts of the rows and of the columns, as many as threads or fewer, whose largest costs least: the tile's sums, and the copies of
/// both operands.
fn grid((m, n): (usize, usize), (rows, columns): (usize, usize), lanes: usize, threads: usize) -> (Parts, Parts) {
    let cost = |down: &Parts, across: &Parts| {
        let (m, n) = (down.part.min(m), across.part.min(n).next_multiple_of(lanes));
        m * n + 16 * (m + n)
    };
    let mut best = (Parts::new(m, rows, 1), Parts::new(n, columns, 1));
    for down in (1..=threads).filter(|d| threads.is_multiple_of(*d)) {
        let tried = (Parts::new(m, rows, down), Parts::new(n, columns, threads / down));
        if cost(&tried.0, &tried.1) < cost(&best.0, &best.1) {
            best = tried;
        }
    }
    best
}

/// An address that threads write to.
pub(super) struct Shared<T>(pub T);
// SAFETY: whoever reads or writes through it says why it may.
unsafe impl<T> Sync for Shared<T> {}
impl<T: Copy> Shared<T> {
    pub(super) fn get(&self) -> T {
        self.0
    }
}

/// The product of some rows and columns, by one thread.
///
/// # Safety
/// As [`product`].
unsafe fn serial<T: Copy + Zero, A: Rows<T> + ?Sized, B: Panels<T> + ?Sized>(
    kernels: &Kernels<T>,
    (rows, columns, k): (Range<usize>, Range<usize>, usize),
    a: &A,
    b: &B,
    c: MatrixMut<T>,
    add: bool,
    done: Option<Epilogue<'_>>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let in_place = a.in_place(columns.len());
        if let (Some(left), Some(right)) = (in_place, b.large((k, columns.len())))
            && rows.len() <= kernels.few.len()
            && columns.len() >= kernels.lanes
        {
            return few(kernels, (rows, columns, k), left, right, c, add, done);
        }
        // A few rows read runs of columns to their ends before the next columns: in order, and each page once. So few do not compete
        // for places in the cache.
        let to_ends = rows.len() <= FEW_ROWS && b.runs() && !b.padded();
        let (in_place, some) =
            if to_ends { (a.in_place(1), kernels.width()) } else { (in_place, columns.len().max(1)) };
        if let Some((left, step)) = in_place {
            for first in columns.clone().step_by(some) {
                let columns = first..columns.end.min(first + some);
                for rows in even(rows.clone(), ROWS) {
                    for depth in depths(k, kernels.depth) {
                        let left = (left.offset(rows.start as isize * step + depth.start as isize), step);
                        let done = done.filter(|_| depth.end == k);
                        band(kernels, (rows.clone(), columns.clone(), depth), left, b, c, add, done);
                    }
                }
            }
        } else {
            copied(kernels, (rows, columns, k), a, b, c, add, done);
        }
    }
}

/// Bytes of a part of the result that an epilogue works on.
pub(super) const PART: usize = 1 << 18;

/// As [`serial`], of a few rows with many rows in memory, which are read in long runs.
///
/// # Safety
/// As [`product`].
#[inline(never)]
unsafe fn few<T: Copy + Zero>(
    kernels: &Kernels<T>,
    (rows, columns, k): (Range<usize>, Range<usize>, usize),
    a: (*const T, isize),
    b: (*const T, isize),
    c: MatrixMut<T>,
    add: bool,
    done: Option<Epilogue<'_>>,
) {
    let mut sums = Stack::<u8, SUMS>::new();
    let sums: *mut T = sums.start().cast();
    let step = SUMS / size_of::<T>() / rows.len() / kernels.lanes * kernels.lanes;
    for columns in even(columns, step) {
        for depth in depths(k, kernels.depth) {
            let right = b.0.wrapping_offset(depth.start as isize * b.1 + columns.start as isize);
            let left = a.0.wrapping_offset(rows.start as isize * a.1 + depth.start as isize);
            // SAFETY: the sums fit; else the caller's promise.
            unsafe {
                sums.write_bytes(0, rows.len() * step);
                kernels.few[rows.len() - 1](
                    depth.len(),
                    (left, a.1),
                    (right, b.1),
                    (sums, step as isize),
                    columns.len(),
                );
                for (i, j) in (0..rows.len()).flat_map(|i| (0..columns.len()).map(move |j| (i, j))) {
                    let cell = c.0.offset((rows.start + i) as isize * c.1 + (columns.start + j) as isize * c.2);
                    put(cell, sums.add(i * step + j).read(), add || depth.start > 0);
                }
            }
        }
        done.into_iter().for_each(|done| done(rows.clone(), columns.clone()));
    }
}

/// As [`serial`], for a left operand that cannot be read where it is.
///
/// # Safety
/// As [`product`].
#[inline(never)]
unsafe fn copied<T: Copy + Zero, A: Rows<T> + ?Sized, B: Panels<T> + ?Sized>(
    kernels: &Kernels<T>,
    (rows, columns, k): (Range<usize>, Range<usize>, usize),
    a: &A,
    b: &B,
    c: MatrixMut<T>,
    add: bool,
    done: Option<Epilogue<'_>>,
) {
    let mut block = Stack::<u8, BLOCK>::new();
    let block: *mut T = block.start().cast();
    // Rows start in different sets of the first cache.
    let step = k.min(kernels.depth).next_multiple_of(16) + 16;
    let most = BLOCK / (step * size_of::<T>());
    for rows in even(rows, most.min(ROWS)) {
        for depth in depths(k, kernels.depth) {
            // SAFETY: the block holds the rows; else the caller's promise.
            unsafe { a.fill(rows.clone(), depth.clone(), step, block) };
            let done = done.filter(|_| depth.end == k);
            // SAFETY: as above.
            unsafe { band(kernels, (rows.clone(), columns.clone(), depth), (block, step as isize), b, c, add, done) };
        }
    }
}

/// Consecutive ranges of at most `most`, as even as possible.
fn even(range: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = range.len().div_ceil(most.max(1)).max(1);
    let (len, rest) = (range.len() / parts, range.len() % parts);
    let start = move |i: usize| range.start + i * len + i.min(rest);
    (0..parts).map(move |i| start(i)..start(i + 1))
}

/// The blocks of the sums.
fn depths(k: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    (0..k).step_by(each).map(move |first| first..k.min(first + each))
}

/// One block of the sums of all columns: the left operand's rows are an address and a distance. `done` is told of parts of the columns,
/// in the last block.
///
/// # Safety
/// As [`product`].
unsafe fn band<T: Copy + Zero, B: Panels<T> + ?Sized>(
    kernels: &Kernels<T>,
    (rows, columns, depth): (Range<usize>, Range<usize>, Range<usize>),
    a: (*const T, isize),
    b: &B,
    c: MatrixMut<T>,
    add: bool,
    done: Option<Epilogue<'_>>,
) {
    let (mut one, mut other) = (Stack::<u8, PANEL>::new(), Stack::<u8, PANEL>::new());
    let (mut panel, mut next_panel): (*mut T, *mut T) = (one.start().cast(), other.start().cast());
    let (lanes, width) = (kernels.lanes, kernels.width());
    assert!(kernels.depth * width * size_of::<T>() <= PANEL, "a panel is too wide");
    let add = add || depth.start > 0;
    let mut made = false;
    let (mut finished, part) = (columns.start, PART / size_of::<T>() / rows.len().max(1));
    for first in columns.clone().step_by(width) {
        let wide = width.min(columns.end - first);
        let vectors = wide.div_ceil(lanes);
        let here =
            if wide == vectors * lanes || b.padded() { b.in_place(depth.start, first, wide, rows.len()) } else { None };
        let tiles = kernels.tiles[vectors - 1];
        let next = first + width..columns.end.min(first + 2 * width);
        let calls = rows.len().div_ceil(tiles.len());
        let share = depth.len().div_ceil(calls);
        // While tiles use this panel, they fetch the next one where it is read in place, and copy it where its rows are in memory. A
        // panel of few rows is filled later: `prefetch` brings it sooner.
        let mut coming = NextPanel::none();
        if here.is_some() && b.padded() && !next.is_empty() && rows.len() > FEW_ROWS {
            if let Some(from) = b.in_place(depth.start, next.start, next.len(), rows.len()) {
                coming = NextPanel::in_place(from, depth.len(), calls);
            }
        } else if here.is_none()
            && next.len() == width
            && depth.len() >= FLAT
            && let Some(from) = b.rows_at(depth.start, next.start)
        {
            coming = NextPanel::new(from, depth.len(), width, next_panel, calls);
        }
        // SAFETY: the panel holds these columns; else the caller's promise.
        let right = here.unwrap_or_else(|| unsafe {
            if !made {
                b.fill(depth.clone(), first..first + wide, vectors * lanes, panel);
            }
            (panel as *const T, (vectors * lanes) as isize)
        });
        made = here.is_none() && coming.rows > 0;
        for (i, part) in even(rows.clone(), tiles.len()).enumerate() {
            if !next.is_empty() && !made {
                let at = depth.end.min(depth.start + i * share);
                b.prefetch(at..depth.end.min(at + share), next.clone());
            }
            let tile = tiles[part.len() - 1];
            // SAFETY: rows and columns are those of the operands and of the result.
            unsafe {
                let left = (a.0.offset((part.start - rows.start) as isize * a.1), a.1);
                let to = c.0.offset(part.start as isize * c.1 + first as isize * c.2);
                if c.2 == 1 {
                    tile(depth.len(), left, right, (to, c.1), wide, add, &mut coming);
                } else {
                    let turn = kernels.turn;
                    let size = (part.len(), wide, depth.len());
                    scattered(tile, turn, size, left, right, (to, c.1, c.2), add, &mut coming);
                }
            }
        }
        if made {
            (panel, next_panel) = (next_panel, panel);
        }
        let end = first + wide;
        if let Some(done) = done.filter(|_| end == columns.end || end + width - finished > part) {
            done(rows.clone(), finished..end);
            finished = end;
        }
    }
}

/// Writes a sum to a cell of the result, or adds it there.
///
/// # Safety
/// The cell is readable and writable.
#[inline(always)]
pub(super) unsafe fn put<T: Copy + Add<Output = T>>(cell: *mut T, sum: T, add: bool) {
    // SAFETY: the caller's promise.
    unsafe { cell.write(if add { cell.read() + sum } else { sum }) }
}

/// A tile whose columns are apart in the result.
///
/// # Safety
/// As [`product`].
#[inline(never)]
#[allow(clippy::too_many_arguments)]
unsafe fn scattered<T: Copy + Zero>(
    tile: Tile<T>,
    turn: Turn<T>,
    (m, n, k): (usize, usize, usize),
    a: (*const T, isize),
    b: (*const T, isize),
    c: MatrixMut<T>,
    add: bool,
    next: &mut NextPanel<T>,
) {
    let (mut own, mut turned) = (Stack::<u8, TILE>::new(), Stack::<u8, TILE>::new());
    let (own, turned): (*mut T, *mut T) = (own.start().cast(), turned.start().cast());
    // SAFETY: the caller's promise; the tile is within the largest.
    unsafe {
        tile(k, a, b, (own, n as isize), n, false, next);
        if c.1 == 1 {
            // Rows are neighbours in the result.
            pack(turn, turned, m, (own, 1, n as isize), n, m);
            for j in 0..n {
                let (to, from) = (c.0.offset(j as isize * c.2), turned.add(j * m));
                (0..m).for_each(|i| put(to.add(i), from.add(i).read(), add));
            }
            return;
        }
        for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
            put(c.0.offset(i as isize * c.1 + j as isize * c.2), own.add(i * n + j).read(), add);
        }
    }
}
