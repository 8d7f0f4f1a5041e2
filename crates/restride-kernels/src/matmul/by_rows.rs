//! Products of all rows of an operand, of any number of dimensions, with one matrix.

use super::blocked::Matrix;
use super::panels::{Panels, Strided};
use super::{Added, Gemm, blend, cells, is_vector, packed};
use crate::support::pack::Target;
use crate::support::par;
use restride_tensor::{Layout, View, ViewMut};

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
    });
    // SAFETY: the result or the target's elements, not used otherwise during the call.
    blend::<T>(&unsafe { ViewMut::from_raw(base as *mut u8, T::DTYPE, layout) }, added)?;
    if let Some(target) = target {
        target.finish();
    }
    Ok(())
}
