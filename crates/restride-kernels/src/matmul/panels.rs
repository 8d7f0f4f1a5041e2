//! Operands of products as their loops read them: runs of rows on the left, panels of columns on the right.
//!
//! An operand is made piece by piece, so it need not exist as a whole: a matrix in strides, one in another element type, windows
//! of an image ([`Rows`], [`Panels`]).

use super::Gemm;
use super::blocked::Matrix;
use super::tile::Turn;
use crate::support::cache::{CacheLevel, LINE, prefetch};
use num_traits::Zero;
use std::ops::Range;

/// The right operand of a product, `k` × `n`, in panels.
pub trait Panels<T>: Sync {
    /// Writes rows `depth` of columns `columns`: element (`depth.start + p`, `columns.start + j`) to `panel + p * width + j`, and
    /// zeros to columns from `columns.len()` up to `width`. At most [`DEPTH`](super::blocked::DEPTH) rows, none of them across a
    /// multiple of it.
    ///
    /// # Safety
    /// `panel` has `depth.len() * width` elements to write, `columns` at most `width`; both ranges are inside the operand, and its
    /// elements are readable.
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T);
    /// The address of an element and the distance of rows, where `width` columns from there on, in all rows, are side by side in
    /// memory and may be read there instead. `rows` is the number of rows of the result that read this panel.
    fn in_place(&self, depth: usize, column: usize, width: usize, rows: usize) -> Option<(*const T, isize)> {
        let _ = (depth, column, width, rows);
        None
    }
    /// The address of an element and the distance of rows, where the columns from there on are side by side in memory in all rows and
    /// are copied as they are.
    fn rows_at(&self, depth: usize, column: usize) -> Option<(*const T, isize)> {
        let _ = (depth, column);
        None
    }
    /// Whether panels in place, which begin at multiples of a panel's width, have zeros up to a whole vector.
    fn padded(&self) -> bool {
        false
    }
    /// Whether elements of a column are closer together than those of a row.
    fn runs(&self) -> bool {
        false
    }
    /// The address of the first element and the distance of rows, of a matrix of rows in memory that is too large for a cache.
    fn large(&self, size: (usize, usize)) -> Option<(*const T, isize)> {
        let _ = size;
        None
    }
    /// The address of the first element and the distance of columns, of a matrix whose columns are runs of `bf16`, given by their bits.
    fn brain_runs(&self) -> Option<(*const u16, isize)> {
        None
    }
    /// The address of the first element of a row and the distance of columns, of a matrix of `bf16`, given by their bits.
    fn brain_row(&self, row: usize) -> Option<(*const u16, isize)> {
        let _ = row;
        None
    }
    /// Fetches rows `depth` of columns `columns` towards the processor: they are read soon.
    fn prefetch(&self, depth: Range<usize>, columns: Range<usize>) {
        let _ = (depth, columns);
    }
}

/// The left operand of a product, `m` × `k`, in rows.
pub trait Rows<T>: Sync {
    /// Writes elements `depth` of rows `rows`: element (`rows.start + i`, `depth.start + p`) to `to + i * step + p`.
    ///
    /// # Safety
    /// `to` has `rows.len()` rows of `depth.len()` elements to write, `step` apart; both ranges are inside the operand, and its
    /// elements are readable.
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T);
    /// The address of the first element and the distance of rows, where elements of a row are side by side in memory and may be read
    /// there instead. `columns` is the number of columns of the result that read them.
    fn in_place(&self, columns: usize) -> Option<(*const T, isize)> {
        let _ = columns;
        None
    }
    /// As [`Panels::brain_row`].
    fn brain_row(&self, row: usize) -> Option<(*const u16, isize)> {
        let _ = row;
        None
    }
}

/// A matrix in memory, in any strides.
pub struct Strided<T> {
    at: Matrix<T>,
    turn: Turn<T>,
}
// SAFETY: elements are read only, and whoever makes it promises that they are readable meanwhile.
unsafe impl<T: Sync> Sync for Strided<T> {}

impl<T> Strided<T> {
    /// The matrix: address, distance of rows, distance of columns.
    ///
    /// # Safety
    /// Elements that a product reads are readable while this value is in use.
    pub unsafe fn new(at: Matrix<T>) -> Self
    where
        T: Gemm,
    {
        Strided { at, turn: T::turn() }
    }
    /// Rows as columns.
    pub fn transposed(self) -> Self {
        Strided { at: (self.at.0, self.at.2, self.at.1), turn: self.turn }
    }
    fn cell(&self, row: usize, column: usize) -> *const T {
        self.at.0.wrapping_offset(row as isize * self.at.1 + column as isize * self.at.2)
    }
}

impl<T: Copy + Zero + Send + Sync> Panels<T> for Strided<T> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        let from = (self.cell(depth.start, columns.start), self.at.1, self.at.2);
        // SAFETY: the caller's promise.
        unsafe {
            pack(self.turn, panel, width, from, depth.len(), columns.len());
            widen(panel, width, depth.len(), columns.len());
        }
    }
    fn in_place(&self, depth: usize, column: usize, width: usize, rows: usize) -> Option<(*const T, isize)> {
        let _ = width;
        // Panels that are read by a few rows only, or whose rows are close together.
        let near = self.at.1.unsigned_abs() * size_of::<T>() <= 1 << 10;
        (self.at.2 == 1 && (near || rows <= 24)).then(|| (self.cell(depth, column), self.at.1))
    }
    fn prefetch(&self, depth: Range<usize>, columns: Range<usize>) {
        let run = |first: *const T, last: *const T| {
            for line in (first as usize / LINE * LINE..last as usize).step_by(LINE) {
                prefetch(line as *const T, CacheLevel::Second);
            }
        };
        if self.at.2 == 1 {
            depth.for_each(|p| run(self.cell(p, columns.start), self.cell(p, columns.end)));
        } else if self.at.1 == 1 {
            columns.for_each(|j| run(self.cell(depth.start, j), self.cell(depth.end, j)));
        }
    }
    fn rows_at(&self, depth: usize, column: usize) -> Option<(*const T, isize)> {
        (self.at.2 == 1).then(|| (self.cell(depth, column), self.at.1))
    }
    fn runs(&self) -> bool {
        self.at.2 != 1
    }
    fn large(&self, (k, n): (usize, usize)) -> Option<(*const T, isize)> {
        (self.at.2 == 1 && k * n * size_of::<T>() >= 1 << 20).then_some((self.at.0, self.at.1))
    }
}

impl<T: Copy + Zero + Send + Sync> Rows<T> for Strided<T> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        let (high, len) = (rows.len(), depth.len());
        let from = self.cell(rows.start, depth.start);
        // SAFETY: the caller's promise.
        unsafe {
            if self.at.2 == 1 {
                for i in 0..high {
                    std::ptr::copy_nonoverlapping(from.offset(i as isize * self.at.1), to.add(i * step), len);
                }
            } else {
                // The transpose of a panel.
                pack(self.turn, to, step, (from, self.at.1, self.at.2), high, len);
            }
        }
    }
    fn in_place(&self, columns: usize) -> Option<(*const T, isize)> {
        // Rows whose lines compete for the same sets of the first cache are copied where many columns read them.
        let bytes = self.at.1.unsigned_abs() * size_of::<T>();
        let apart = (bytes + 256) % 4096 >= 512 || bytes < 512;
        (self.at.2 == 1 && (apart || columns <= 64)).then_some((self.at.0, self.at.1))
    }
}

/// Puts `wide` columns of `len` elements side by side in rows, `width` apart.
///
/// # Safety
/// The elements are readable, `panel` holds `len` rows of `width`, and the processor has what `turn` needs.
pub(crate) unsafe fn pack<T: Copy + Zero>(
    turn: Turn<T>,
    panel: *mut T,
    width: usize,
    b: Matrix<T>,
    len: usize,
    wide: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if b.2 == 1 {
            for p in 0..len {
                std::ptr::copy_nonoverlapping(b.0.offset(p as isize * b.1), panel.add(p * width), wide);
            }
        } else if b.1 == 1 {
            // Columns are runs: blocks of eight by eight, so that each cache line is used once. The last blocks go over elements of
            // those before where less than eight are left.
            let starts = |n: usize| {
                let rest = if n > 8 && !n.is_multiple_of(8) { 8 } else { 0 };
                [(0, n / 8 * 8), (n.saturating_sub(8), rest)]
            };
            for (p, rows) in starts(len) {
                for (j, columns) in starts(wide) {
                    let from = b.0.offset(p as isize + j as isize * b.2);
                    turn(panel.add(p * width + j), width, (from, b.2), (rows, columns));
                }
            }
            let done = |n: usize| if n < 8 { 0 } else { n };
            let rest = |p: usize, j: usize| {
                panel.add(p * width + j).write(b.0.offset(p as isize + j as isize * b.2).read());
            };
            (0..done(len)).for_each(|p| (done(wide)..wide).for_each(|j| rest(p, j)));
            (done(len)..len).for_each(|p| (0..wide).for_each(|j| rest(p, j)));
        } else {
            // A few columns at a time: what they read stays in the first cache.
            for first in (0..wide).step_by(8) {
                for p in 0..len {
                    let (to, from) = (panel.add(p * width), b.0.offset(p as isize * b.1));
                    (first..wide.min(first + 8)).for_each(|j| to.add(j).write(from.offset(j as isize * b.2).read()));
                }
            }
        }
    }
}

/// Writes zeros to the columns of a panel from `wide` on.
///
/// # Safety
/// `panel` holds `len` rows of `width`.
pub(crate) unsafe fn widen<T: Copy + Zero>(panel: *mut T, width: usize, len: usize, wide: usize) {
    for (p, j) in (0..len).flat_map(|p| (wide..width).map(move |j| (p, j))) {
        // SAFETY: the caller's promise.
        unsafe { panel.add(p * width + j).write(T::zero()) }
    }
}
