//! A constant right operand, packed once: its panels in the order in which products read them.

use super::blocked::DEPTH;
use super::panels::Panels;
use super::{Added, Gemm, Right, by_rows};
use crate::support::pack::with_compute;
use restride_tensor::{DType, View, ViewMut};
use std::ops::Range;

/// One line of a cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// The right operand of products, `k` × `n`, packed for the processor that runs.
///
/// It has elements of the compute type (`f32` for half types). Blocks of `DEPTH` rows follow each other, and in each block panels of
/// columns, row by row. Columns are filled up with zeros to a multiple of 64 bytes, but a single column is not. It is no format for
/// files: the width of panels is the processor's.
pub struct PackedMatrix {
    dtype: DType,
    k: usize,
    n: usize,
    lines: Vec<Line>,
}

impl PackedMatrix {
    /// Bytes that an operand of these sizes takes, whatever the processor. `None` for types whose products do not read panels, which
    /// are those that are not real floats.
    pub fn bytes(dtype: DType, k: usize, n: usize) -> Option<usize> {
        let size = compute(dtype)?.size();
        k.checked_mul(columns(n, size))?.checked_mul(size)?.checked_next_multiple_of(64)
    }
    /// Packs a matrix, `k` × `n`, or `n` × `k` where `transposed`.
    ///
    /// # Errors
    /// A view that is no matrix, or of a type that is not packed.
    pub fn new(b: &View<'_>, transposed: bool) -> Result<PackedMatrix, String> {
        let &[rows, cols] = b.sizes() else {
            return Err(format!("an operand of sizes {:?} is no matrix to pack", b.sizes()));
        };
        let (k, n) = if transposed { (cols as usize, rows as usize) } else { (rows as usize, cols as usize) };
        let (Some(dtype), Some(bytes)) = (compute(b.dtype()), PackedMatrix::bytes(b.dtype(), k, n)) else {
            return Err(format!("matrices of {} are not packed", b.dtype().torch_name()));
        };
        let mut packed = PackedMatrix { dtype, k, n, lines: vec![Line([0; 64]); bytes / 64] };
        with_compute!(float dtype, T => {
            let right = Right::<T>::of(b, transposed);
            let (at, width) = (packed.lines.as_mut_ptr().cast::<T>(), T::width());
            for start in (0..k).step_by(DEPTH) {
                let depth = start..k.min(start + DEPTH);
                for first in (0..n).step_by(width) {
                    let (offset, wide) = place::<T>(k, n, start, first, width);
                    // SAFETY: the panel is inside the memory, which has all elements of all panels.
                    unsafe { right.panels().fill(depth.clone(), first..n.min(first + wide), wide, at.add(offset)) }
                }
            }
        });
        Ok(packed)
    }
    /// Rows and columns of the operand.
    pub fn size(&self) -> (usize, usize) {
        (self.k, self.n)
    }
    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}

/// The type in which products with panels are computed.
fn compute(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Some(DType::F32),
        DType::F64 => Some(DType::F64),
        _ => None,
    }
}

/// Columns with zeros after them.
fn columns(n: usize, size: usize) -> usize {
    if n == 1 { 1 } else { n.next_multiple_of(64 / size) }
}

/// Where the panel of a block that has row `depth` and column `column` begins, and its width.
fn place<T>(k: usize, n: usize, depth: usize, column: usize, width: usize) -> (usize, usize) {
    let all = columns(n, size_of::<T>());
    let start = depth / DEPTH * DEPTH;
    let len = DEPTH.min(k - start);
    let wide = width.min(all - column);
    (start * all + column * len + (depth - start) * wide, wide)
}

/// The panels of a packed operand, where they are.
pub(super) struct InPlace<'a, T> {
    of: &'a PackedMatrix,
    at: *const T,
    width: usize,
}
// SAFETY: elements are read only.
unsafe impl<T: Sync> Sync for InPlace<'_, T> {}

impl<'a, T: Gemm> InPlace<'a, T> {
    /// # Panics
    /// If its elements have another type.
    pub(super) fn new(of: &'a PackedMatrix) -> Self {
        assert_eq!(of.dtype, T::DTYPE, "a packed operand of another type");
        InPlace { of, at: of.lines.as_ptr().cast(), width: T::width() }
    }
}

impl<T: Copy + Send + Sync + num_traits::Zero> Panels<T> for InPlace<'_, T> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        for (at, p) in depth.enumerate() {
            for j in 0..width {
                let x = match columns.start + j {
                    column if column < columns.end => {
                        let first = column / self.width * self.width;
                        let (offset, _) = place::<T>(self.of.k, self.of.n, p, first, self.width);
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
        let (offset, wide) = place::<T>(self.of.k, self.of.n, depth, column, self.width);
        Some((self.at.wrapping_add(offset), wide as isize))
    }
    fn padded(&self) -> bool {
        true
    }
}

/// As [`product`](super::product) with the matrix that was packed: the same bits.
///
/// # Errors
/// Sizes or types that are not those of a product.
pub fn product_packed(
    a: &View<'_>,
    b: &PackedMatrix,
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
    let fits = la.rank() == lo.rank()
        && matches!((la.sizes.split_last(), lo.sizes.split_last()),
            (Some((k, rows)), Some((n, out))) if rows == out && (*k, *n) == (b.k as i64, b.n as i64));
    if !fits || compute(out.dtype()) != Some(b.dtype) {
        return Err(format!(
            "{} of sizes {:?} has no product of sizes {:?} with a packed {} × {} matrix of {}",
            a.dtype().torch_name(),
            a.sizes(),
            out.sizes(),
            b.k,
            b.n,
            b.dtype.torch_name()
        ));
    }
    // SAFETY: new dimensions of size 1 and broadcasting reach no other cells.
    let (a, out) = unsafe { (a.with_layout(&la), out.with_layout(&lo)) };
    // SAFETY: as above.
    let c = added.c.zip(lc.as_ref()).map(|(c, l)| unsafe { c.with_layout(l) });
    let added = Added { c, ..*added };
    with_compute!(float b.dtype, T => by_rows::<T>(&a, &Right::Packed(InPlace::new(b)), b.n, &added, &out, threads))
}
