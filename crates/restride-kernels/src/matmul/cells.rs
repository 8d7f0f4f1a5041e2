//! Operands of products that are not plain matrices of the compute type: of another element type, or with rows over several dimensions.

use super::Gemm;
use super::blocked::DEPTH;
use super::panels::{Panels, Rows};
use crate::support::convert::{Compute, load_row};
use restride_tensor::{DType, Layout, PerDim, View};
use std::ops::Range;

/// A matrix whose rows are the indices of all dimensions of a view but the last, converted as it is read.
pub struct Cells {
    dtype: DType,
    base: *const u8,
    start: isize,
    /// Sizes and strides of the rows' dimensions.
    rows: PerDim<(usize, isize)>,
    column: isize,
}
// SAFETY: elements are read only, and whoever makes it promises that they are readable meanwhile.
unsafe impl Sync for Cells {}

impl Cells {
    /// The last dimension as columns, all others as rows.
    ///
    /// # Safety
    /// The view's elements are readable while this value is in use.
    pub unsafe fn new(view: &View<'_>) -> Self {
        let layout = view.layout();
        let last = layout.rank() - 1;
        let mut rows: PerDim<(usize, isize)> = PerDim::new();
        for (&n, &s) in layout.sizes[..last].iter().zip(&layout.strides).filter(|(n, _)| **n != 1) {
            match rows.last_mut() {
                Some((m, step)) if *step == n as isize * s as isize => (*m, *step) = (*m * n as usize, s as isize),
                _ => rows.push((n as usize, s as isize)),
            }
        }
        let (dtype, base, start) = (view.dtype(), view.base(), layout.offset as isize);
        Cells { dtype, base, start, rows, column: layout.strides[last] as isize }
    }
    /// A matrix of a view's elements: its first cell, the distances of rows and of columns.
    ///
    /// # Safety
    /// As [`Cells::new`].
    pub unsafe fn matrix(view: &View<'_>, start: isize, (row, column): (isize, isize)) -> Self {
        let rows = PerDim::from_elem((usize::MAX, row), 1);
        Cells { dtype: view.dtype(), base: view.base(), start, rows, column }
    }
    /// The cell where a row begins.
    fn row(&self, mut i: usize) -> isize {
        let mut cell = self.start;
        for &(n, s) in self.rows.iter().rev() {
            cell += (i % n) as isize * s;
            i /= n;
        }
        cell
    }
    /// As [`Panels::brain_row`].
    fn brain(&self, row: usize) -> Option<(*const u16, isize)> {
        (self.dtype == DType::BF16).then(|| (self.base.cast::<u16>().wrapping_offset(self.row(row)), self.column))
    }
}

impl<T: Compute> Rows<T> for Cells {
    fn brain_row(&self, row: usize) -> Option<(*const u16, isize)> {
        self.brain(row)
    }
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        for (at, i) in rows.enumerate() {
            let cell = self.row(i) + depth.start as isize * self.column;
            // SAFETY: the caller's promise.
            unsafe {
                let to = std::slice::from_raw_parts_mut(to.add(at * step), depth.len());
                load_row(self.dtype, self.base, cell, self.column, to);
            }
        }
    }
}

/// Columns that are converted before they become rows.
const ASIDE: usize = 8;

impl<T: Gemm> Panels<T> for Cells {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        let wide = columns.len();
        // SAFETY: the caller's promise.
        unsafe {
            if wide < width {
                for p in 0..depth.len() {
                    (wide..width).for_each(|j| panel.add(p * width + j).write(T::default()));
                }
            }
            let step = self.rows.first().map_or(0, |r| r.1);
            if width == 1 && self.rows.len() <= 1 {
                let cell = self.row(depth.start) + columns.start as isize * self.column;
                return load_row(self.dtype, self.base, cell, step, std::slice::from_raw_parts_mut(panel, depth.len()));
            }
            if self.column == 1 || wide == 1 {
                for (at, p) in depth.enumerate() {
                    let row = std::slice::from_raw_parts_mut(panel.add(at * width), wide);
                    load_row(
                        self.dtype,
                        self.base,
                        self.row(p) + columns.start as isize * self.column,
                        self.column,
                        row,
                    );
                }
                return;
            }
            // RowRuns along the columns, a few columns at a time.
            let step = self.rows.first().map_or(0, |r| r.1);
            let mut aside = [[T::default(); DEPTH]; ASIDE];
            for first in (0..wide).step_by(ASIDE) {
                let few = ASIDE.min(wide - first);
                for (j, run) in aside.iter_mut().enumerate().take(few) {
                    let column = (columns.start + first + j) as isize * self.column;
                    if self.rows.len() <= 1 {
                        load_row(self.dtype, self.base, self.row(depth.start) + column, step, &mut run[..depth.len()]);
                    } else {
                        for (x, p) in run.iter_mut().zip(depth.clone()) {
                            load_row(self.dtype, self.base, self.row(p) + column, 1, std::slice::from_mut(x));
                        }
                    }
                }
                let whole = if few == ASIDE { depth.len() / 8 * 8 } else { 0 };
                T::turn()(panel.add(first), width, (aside.as_ptr().cast(), DEPTH as isize), (whole, ASIDE));
                for (j, run) in aside.iter().enumerate().take(few) {
                    (whole..depth.len()).for_each(|p| panel.add(p * width + first + j).write(run[p]));
                }
            }
        }
    }
    fn runs(&self) -> bool {
        self.column != 1
    }
    fn brain_row(&self, row: usize) -> Option<(*const u16, isize)> {
        self.brain(row)
    }
    fn brain_runs(&self) -> Option<(*const u16, isize)> {
        let runs = self.dtype == DType::BF16 && self.rows.len() == 1 && self.rows[0].1 == 1 && self.column != 1;
        runs.then(|| (self.base.cast::<u16>().wrapping_offset(self.start), self.column))
    }
}

/// The rows of a result that are one run of equal steps: the last dimensions but the columns' that merge, as their number, and the
/// cells where such runs begin, by number.
pub struct RowRuns {
    /// Rows of a run, and from one to the next.
    pub len: usize,
    pub step: isize,
    outer: PerDim<(usize, isize)>,
}

impl RowRuns {
    /// All dimensions but the last are rows.
    pub fn new(layout: &Layout) -> Self {
        let last = layout.rank() - 1;
        let mut runs = RowRuns { len: 1, step: 0, outer: PerDim::new() };
        for (&n, &s) in layout.sizes[..last].iter().zip(&layout.strides).rev().filter(|(n, _)| **n != 1) {
            let (n, s) = (n as usize, s as isize);
            if runs.outer.is_empty() && (runs.len == 1 || s == runs.step * runs.len as isize) {
                runs.step = if runs.len == 1 { s } else { runs.step };
                runs.len *= n;
            } else {
                runs.outer.push((n, s));
            }
        }
        runs
    }
    /// Number of runs.
    pub fn count(&self) -> usize {
        self.outer.iter().map(|d| d.0).product()
    }
    /// The cell where a run begins, from the first.
    pub fn start(&self, mut i: usize) -> isize {
        let mut cell = 0;
        for &(n, s) in &self.outer {
            cell += (i % n) as isize * s;
            i /= n;
        }
        cell
    }
}

/// Rows of another operand from one on.
pub struct From<'a, T>(pub &'a dyn Rows<T>, pub usize);

impl<T> Rows<T> for From<'_, T> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.0.fill(rows.start + self.1..rows.end + self.1, depth, step, to) }
    }
    fn in_place(&self, columns: usize) -> Option<(*const T, isize)> {
        self.0.in_place(columns).map(|(at, step)| (at.wrapping_offset(self.1 as isize * step), step))
    }
    fn brain_row(&self, row: usize) -> Option<(*const u16, isize)> {
        self.0.brain_row(self.1 + row)
    }
}
