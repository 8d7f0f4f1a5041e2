//! A constant right operand, packed once: its panels in the order in which products read them.

use super::blocked::DEPTH;
use super::panels::Panels;
use super::{Added, Gemm, Right, by_rows};
use crate::support::pack::with_compute;
use restride_tensor::{DType, View, ViewMut};
use std::marker::PhantomData;
use std::ops::Range;

/// Elements that a packed matrix takes, `k` × `n`, whatever the processor; they are of the compute type (`f32` for half types).
/// `None` for types whose products do not read panels, which are those that are not real floats.
pub fn packed_len(dtype: DType, k: usize, n: usize) -> Option<usize> {
    k.checked_mul(columns(n, compute(dtype)?.size()))
}

/// Packs a matrix, `k` × `n`, or `n` × `k` where `transposed`, into a dense row of [`packed_len`] elements.
///
/// Blocks of `DEPTH` rows follow each other, and in each block panels of columns, row by row. Columns are filled up with zeros to a
/// multiple of 64 bytes, but a single column is not. It is no format for files: the width of panels is the processor's.
///
/// # Errors
/// An operand that is no matrix, or of a type that is not packed; a result of another length or type.
pub fn pack(b: &View<'_>, transposed: bool, out: &ViewMut<'_>) -> Result<(), String> {
    let &[rows, cols] = b.sizes() else {
        return Err(format!("an operand of sizes {:?} is no matrix to pack", b.sizes()));
    };
    let (k, n) = if transposed { (cols as usize, rows as usize) } else { (rows as usize, cols as usize) };
    let (Some(dtype), Some(len)) = (compute(b.dtype()), packed_len(b.dtype(), k, n)) else {
        return Err(format!("matrices of {} are not packed", b.dtype().torch_name()));
    };
    if out.dtype() != dtype || !out.layout().is_contiguous() || out.numel() != len {
        return Err(format!("a {k} × {n} matrix is packed into {len} elements of {}", dtype.torch_name()));
    }
    with_compute!(float dtype, T => {
        let right = Right::<T>::of(b, transposed);
        // SAFETY: the result has all elements of all panels.
        unsafe { write::<T>(right.panels(), (k, n), out.ptr::<T>()) }
    });
    Ok(())
}

/// Writes all panels of a `k` × `n` operand.
///
/// # Safety
/// `to` has [`packed_len`] elements to write; else as [`Panels::fill`].
pub(crate) unsafe fn write<T: Gemm>(from: &dyn Panels<T>, (k, n): (usize, usize), to: *mut T) {
    let width = T::width();
    for start in (0..k).step_by(DEPTH) {
        let depth = start..k.min(start + DEPTH);
        for first in (0..n).step_by(width) {
            let (offset, wide) = place::<T>(k, n, start, first, width);
            // SAFETY: the panel is one of the operand's.
            unsafe { from.fill(depth.clone(), first..n.min(first + wide), wide, to.add(offset)) }
        }
    }
}

/// The type in which products with panels are computed.
pub fn compute(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Some(DType::F32),
        DType::F64 => Some(DType::F64),
        _ => None,
    }
}

/// Columns with zeros after them.
pub(crate) fn columns(n: usize, size: usize) -> usize {
    if n == 1 { 1 } else { n.next_multiple_of(64 / size) }
}

/// Where the panel of a block that has row `depth` and column `column` begins, and its width; panels have `width` columns at most.
pub(crate) fn place<T>(k: usize, n: usize, depth: usize, column: usize, width: usize) -> (usize, usize) {
    let all = columns(n, size_of::<T>());
    let start = depth / DEPTH * DEPTH;
    let len = DEPTH.min(k - start);
    let wide = width.min(all - column);
    (start * all + column * len + (depth - start) * wide, wide)
}

/// The panels of a packed operand, where they are.
pub(crate) struct InPlace<'a, T> {
    k: usize,
    n: usize,
    at: *const T,
    width: usize,
    memory: PhantomData<&'a T>,
}
// SAFETY: elements are read only.
unsafe impl<T: Sync> Sync for InPlace<'_, T> {}

impl<T: Gemm> InPlace<'_, T> {
    /// A packed `k` × `n` operand.
    ///
    /// # Safety
    /// Its elements are readable while this value is in use.
    pub(crate) unsafe fn new((k, n): (usize, usize), at: *const T) -> Self {
        InPlace { k, n, at, width: T::width(), memory: PhantomData }
    }
}

impl<T: Copy + Send + Sync + num_traits::Zero> Panels<T> for InPlace<'_, T> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        for (at, p) in depth.enumerate() {
            for j in 0..width {
                let x = match columns.start + j {
                    column if column < columns.end => {
                        let first = column / self.width * self.width;
                        let (offset, _) = place::<T>(self.k, self.n, p, first, self.width);
                        // SAFETY: the element is inside of the memory.
                        unsafe { self.at.add(offset + column - first).read() }
                    }
                    _ => T::zero(),
                };
                // SAFETY: the caller's promise.
                unsafe { panel.add(at * width + j).write(x) }
            }
        }
    }
    fn in_place(&self, depth: usize, column: usize, _: usize, _: usize) -> Option<(*const T, isize)> {
        debug_assert_eq!(column % self.width, 0);
        let (offset, wide) = place::<T>(self.k, self.n, depth, column, self.width);
        Some((self.at.wrapping_add(offset), wide as isize))
    }
    fn padded(&self) -> bool {
        true
    }
}

/// As [`product`](super::product) with a `k` × `n` matrix that [`pack`] packed: the same bits.
///
/// # Errors
/// Sizes or types that are not those of a product.
pub fn product_packed(
    a: &View<'_>,
    b: &View<'_>,
    n: usize,
    added: &Added<'_>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let (mut la, mut lo) = (a.layout().clone(), out.layout().clone());
    let mut lc = added.c.map(|c| c.layout().expand(out.sizes())).transpose().map_err(|e| e.0)?;
    if la.rank() == 1 {
        la = la.unsqueeze(0).map_err(|e| e.0)?;
        lo = lo.unsqueeze(-2).map_err(|e| e.0)?;
        lc = lc.map(|l| l.unsqueeze(-2)).transpose().map_err(|e| e.0)?;
    }
    let k = la.sizes.last().map_or(0, |k| *k as usize);
    let fits = la.rank() == lo.rank()
        && matches!((la.sizes.split_last(), lo.sizes.split_last()),
            (Some((_, rows)), Some((columns, out))) if rows == out && *columns == n as i64)
        && packed_len(b.dtype(), k, n) == Some(b.numel())
        && b.layout().is_contiguous();
    if !fits || compute(out.dtype()) != Some(b.dtype()) {
        return Err(format!(
            "{} of sizes {:?} has no product of sizes {:?} with a packed matrix of {n} columns in {} elements of {}",
            a.dtype().torch_name(),
            a.sizes(),
            out.sizes(),
            b.numel(),
            b.dtype().torch_name()
        ));
    }
    // SAFETY: new dimensions of size 1 and broadcasting reach no other cells.
    let (a, out) = unsafe { (a.with_layout(&la), out.with_layout(&lo)) };
    // SAFETY: as above.
    let c = added.c.zip(lc.as_ref()).map(|(c, l)| unsafe { c.with_layout(l) });
    let added = Added { c, ..*added };
    with_compute!(float b.dtype(), T => {
        let at = (b.base() as *const T).wrapping_offset(b.layout().offset as isize);
        // SAFETY: the operand's elements, which its view keeps.
        let right = Right::Packed(unsafe { InPlace::new((k, n), at) });
        by_rows::<T>(&a, &right, n, &added, &out, threads)
    })
}
