//! Products of all rows of an operand, of any number of dimensions, with one matrix.

use super::blocked::{self, Matrix};
use super::panels::{Panels, Strided};
use super::{Added, Gemm, blend, cells, is_vector, packed};
use crate::support::epilogue::{self, Epilogue};
use crate::support::pack::Target;
use crate::support::par;
use restride_tensor::{Layout, View, ViewMut};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A matrix on the right, in any form.
pub(super) enum Right<'a, T> {
    /// In memory, of the compute type.
    Matrix(Matrix<T>, Strided<T>),
    /// In memory, of another type.
    Cells(cells::Cells),
    /// Packed.
    Packed(packed::InPlace<'a, T>),
}

// SAFETY: elements are read only, and readable while the product is computed.
unsafe impl<T: Sync> Sync for Right<'_, T> {}

impl<T: Gemm> Right<'_, T> {
    /// A matrix `k` × `n`, or its transpose.
    pub(super) fn of(b: &View<'_>, transposed: bool) -> Self {
        let l = b.layout();
        let (row, column) = (l.strides[0] as isize, l.strides[1] as isize);
        let (row, column) = if transposed { (column, row) } else { (row, column) };
        // SAFETY: the view lives while its product is computed.
        unsafe {
            if b.dtype() == T::DTYPE {
                let at = ((b.base() as *const T).wrapping_offset(l.offset as isize), row, column);
                return Right::Matrix(at, Strided::new(at));
            }
            Right::Cells(cells::Cells::matrix(b, l.offset as isize, (row, column)))
        }
    }
    pub(super) fn panels(&self) -> &dyn Panels<T> {
        match self {
            Right::Matrix(_, panels) => panels,
            Right::Cells(cells) => cells,
            Right::Packed(packed) => packed,
        }
    }
}

/// One matrix on the right for all of `a`'s: a single product of more rows, with the addend, for any type of the result.
pub(super) fn by_rows<T: Gemm>(
    a: &View<'_>,
    b: &Right<'_, T>,
    n: usize,
    added: &Added<'_>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    if out.numel() == 0 {
        return Ok(());
    }
    let k = a.sizes()[a.layout().rank() - 1] as usize;
    let m = out.numel() / n;
    let flat = (a.dtype() == T::DTYPE).then(|| a.layout().view(&[m as i64, k as i64])).flatten();
    let matrix = flat.map(|l| -> Matrix<T> {
        let at = (a.base() as *const T).wrapping_offset(l.offset as isize);
        (at, l.strides[0] as isize, l.strides[1] as isize)
    });
    // SAFETY: the view lives while the product is computed.
    let spread = unsafe { cells::Cells::new(a) };
    let mut target = (out.dtype() != T::DTYPE).then(|| Target::<T>::new(out));
    let dense = Layout::contiguous(out.sizes());
    let (base, layout) = match &mut target {
        Some(target) => (target.slice().as_mut_ptr(), &dense),
        None => (out.base() as *mut T, out.layout()),
    };
    // SAFETY: operands are read only.
    let matrix = unsafe { par::Across::new(matrix) };
    let runs = cells::RowRuns::new(layout);
    let column = layout.strides[layout.rank() - 1] as isize;
    // SAFETY: runs do not share elements of the result.
    let to = unsafe { par::Across::new(base.wrapping_offset(layout.offset as isize)) };
    let (over, inner) = if runs.count() >= threads { (threads, 1) } else { (1, threads) };
    // What is added is added to each part as it is finished, before the call's epilogue.
    let parts = match &target {
        None if runs.count() == 1 => {
            FinishedParts::of(out, (base, layout.offset as isize, runs.step, column), (m, n), added)
        }
        _ => None,
    };
    let product = || {
        par::each(if m * n * k < 1 << 16 { 1 } else { over }, runs.count(), &|i| {
            let first = i * runs.len;
            let c = (to.get().wrapping_offset(runs.start(i)), runs.step, column);
            // SAFETY: operands' cells are readable, results' are writable and different, each run is one thread's.
            unsafe {
                match (*matrix.get(), b) {
                    (Some(a), Right::Matrix(b, _)) => {
                        let a = (a.0.wrapping_offset(first as isize * a.1), a.1, a.2);
                        T::product((runs.len, n, k), is_vector(m, n), a, *b, c, false, inner)
                    }
                    (Some(a), _) => {
                        let rows = Strided::new((a.0.wrapping_offset(first as isize * a.1), a.1, a.2));
                        T::product_by((runs.len, n, k), is_vector(m, n), &rows, b.panels(), c, false, inner)
                    }
                    (None, _) => {
                        let rows = cells::From(&spread, first);
                        T::product_by((runs.len, n, k), is_vector(m, n), &rows, b.panels(), c, false, inner)
                    }
                }
            }
        })
    };
    let large = added.c.is_some() && m * n * size_of::<T>() > blocked::PART;
    let left = epilogue::take(|done| match (&parts, done) {
        (Some(parts), Some(done)) => parts.run(done, product).map(|whole| !whole),
        (Some(parts), None) if large => parts.run(&|_, _| {}, product).map(|whole| !whole),
        _ => {
            product();
            Ok(true)
        }
    })?;
    if !left {
        return Ok(());
    }
    // SAFETY: the result or the target's elements, not used otherwise during the call.
    blend::<T>(&unsafe { ViewMut::from_raw(base as *mut u8, T::DTYPE, layout) }, added)?;
    if let Some(target) = target {
        target.finish();
    }
    Ok(())
}

/// A result whose parts are finished one by one.
struct FinishedParts<'a, T> {
    /// First element, distances of rows and of columns.
    to: (par::Across<*mut T>, isize, isize),
    sizes: (usize, usize),
    added: par::Across<Added<'a>>,
    /// The addend as a matrix.
    c: Option<Layout>,
}

impl<T: Gemm> FinishedParts<'_, T> {
    /// `None` if the addend is no matrix of the result's rows and columns.
    fn of<'b>(
        out: &ViewMut<'_>,
        (base, offset, row, column): (*mut T, isize, isize, isize),
        (m, n): (usize, usize),
        added: &Added<'b>,
    ) -> Option<FinishedParts<'b, T>> {
        let matrix = |c: &View<'_>| c.layout().expand(out.sizes()).ok()?.view(&[m as i64, n as i64]);
        let c = match &added.c {
            Some(c) => Some(matrix(c)?),
            None => None,
        };
        // SAFETY: parts of the result are one thread's, and the addend is read only.
        let (to, added) = unsafe { (par::Across::new(base.wrapping_offset(offset)), par::Across::new(*added)) };
        Some(FinishedParts { to: (to, row, column), sizes: (m, n), added, c })
    }

    /// Computes the product; adds to each part and calls `done` for it. Whether that was done for all parts; else it was for none.
    fn run(&self, done: Epilogue<'_>, product: impl FnOnce()) -> Result<bool, String> {
        let (finished, refused) = (AtomicUsize::new(0), Mutex::new(None));
        let part = |rows: Range<usize>, columns: Range<usize>| {
            if let Err(e) = self.add(&rows, &columns) {
                refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            }
            done(rows.clone(), columns.clone());
            finished.fetch_add(rows.len() * columns.len(), Ordering::Relaxed);
        };
        epilogue::with_product(&part, product);
        if let Some(e) = refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(e);
        }
        match finished.into_inner() {
            0 => {
                // The kernel finished all at once.
                self.add(&(0..self.sizes.0), &(0..self.sizes.1))?;
                done(0..self.sizes.0, 0..self.sizes.1);
                Ok(true)
            }
            n => {
                assert_eq!(n, self.sizes.0 * self.sizes.1, "a product finishes all parts or none");
                Ok(true)
            }
        }
    }

    fn add(&self, rows: &Range<usize>, columns: &Range<usize>) -> Result<(), String> {
        let (to, row, column) = (self.to.0.get(), self.to.1, self.to.2);
        let sizes = [rows.len() as i64, columns.len() as i64];
        let own = Layout::strided(&sizes, &[row as i64, column as i64], 0);
        let first = to.wrapping_offset(rows.start as isize * row + columns.start as isize * column);
        let added = self.added.get();
        let c_layout = self.c.as_ref().map(|l| {
            let offset = l.offset + rows.start as i64 * l.strides[0] + columns.start as i64 * l.strides[1];
            Layout::strided(&sizes, &l.strides, offset)
        });
        // SAFETY: some of the addend's cells.
        let c = added.c.as_ref().zip(c_layout.as_ref()).map(|(c, l)| unsafe { c.with_layout(l) });
        // SAFETY: some of the result's elements, which are this thread's.
        let out = unsafe { ViewMut::from_raw(first.cast(), T::DTYPE, &own) };
        blend::<T>(&out, &Added { c, ..*added })
    }
}
