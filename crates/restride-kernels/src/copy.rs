//! Copies: whole operands in logical order, and parts of an operand or of a result.

use crate::convert::{copy_convert, gather, scatter};
use crate::pack::with_compute;
use restride_tensor::{DType, Dims, Layout, Overlap, View, ViewMut, overlap};
use std::collections::HashSet;

/// Copies all elements in row-major order of the indices, converting where the element types differ. The sizes may
/// differ, the number of elements not.
pub fn same_order(src: &View<'_>, dst: &ViewMut<'_>) -> Result<(), String> {
    if src.sizes() == dst.sizes() {
        copy_convert(*src, *dst);
        return Ok(());
    }
    if src.numel() != dst.numel() {
        return Err(format!("{} elements do not fill sizes {:?}", src.numel(), dst.sizes()));
    }
    if let Some(layout) = dst.layout().view(src.sizes()) {
        // SAFETY: `Layout::view` gives the same cells under other sizes.
        copy_convert(*src, unsafe { dst.with_layout(&layout) });
    } else if let Some(layout) = src.layout().view(dst.sizes()) {
        // SAFETY: as above.
        copy_convert(unsafe { src.with_layout(&layout) }, *dst);
    } else {
        with_compute!(any src.dtype(), T => scatter(&gather::<T>(*src), *dst));
    }
    Ok(())
}

/// Bytes that a layout's cells span, counted from cell 0.
fn bytes(layout: &Layout, dtype: DType) -> std::ops::Range<i128> {
    let (range, size) = (layout.cell_range(), dtype.size() as i128);
    range.start as i128 * size..range.end as i128 * size
}

/// Whether a layout's cells lie between the first and the last cell of another one on the same memory, and are
/// aligned.
fn check(inner: &Layout, inner_dtype: DType, outer: &Layout, outer_dtype: DType, base: usize) -> Result<(), String> {
    let (i, o) = (bytes(inner, inner_dtype), bytes(outer, outer_dtype));
    if inner.sizes.contains(&0) {
        return Ok(());
    }
    if outer.sizes.contains(&0) || i.start < o.start || i.end > o.end {
        return Err(format!("the cells {inner} do not all lie in those of the operand, {outer}"));
    }
    let align = inner_dtype.real().size();
    if !base.is_multiple_of(align) {
        return Err(format!("memory that is not aligned for {} elements", inner_dtype.name()));
    }
    Ok(())
}

/// Copies what a layout reads in an operand's memory, as elements of `dtype`, to a result of the layout's sizes.
/// Strides may be negative. Cells before the operand's first or after its last one are refused.
pub fn from_region(src: &View<'_>, dtype: DType, layout: &Layout, dst: &ViewMut<'_>) -> Result<(), String> {
    check(layout, dtype, src.layout(), src.dtype(), src.base() as usize)?;
    // SAFETY: the cells lie between the operand's first and last one, all of which is memory of one storage that
    // its owner keeps while the view lives, and they are aligned.
    let view = unsafe { View::from_raw(src.base(), dtype, layout) };
    same_order(&view, dst)
}

/// Copies an operand into the cells that a layout reaches in a result's memory, of the operand's sizes.
pub fn into_region(src: &View<'_>, dst: &ViewMut<'_>, layout: &Layout) -> Result<(), String> {
    check(layout, dst.dtype(), dst.layout(), dst.dtype(), dst.base() as usize)?;
    if src.sizes() != &layout.sizes[..] {
        return Err(format!("sizes {:?} do not fill {:?}", src.sizes(), &layout.sizes[..]));
    }
    // SAFETY: the cells lie between the result's first and last one, and are aligned.
    copy_convert(*src, unsafe { dst.with_layout(layout) });
    Ok(())
}

/// Copies what one layout reads in an operand's memory into the cells that another one, of equal sizes, reaches in a
/// result's.
pub fn between(src: &View<'_>, from: &Layout, dst: &ViewMut<'_>, to: &Layout) -> Result<(), String> {
    check(from, src.dtype(), src.layout(), src.dtype(), src.base() as usize)?;
    // SAFETY: the cells lie between the operand's first and last one, and are aligned.
    into_region(&unsafe { src.with_layout(from) }, dst, to)
}

/// As [`into_region`], but writes only those of the layout's cells that hold elements of the result: what the layout
/// reaches between them is not the result's.
pub fn into_elements(src: &View<'_>, dst: &ViewMut<'_>, layout: &Layout) -> Result<(), String> {
    if matches!(overlap(layout, dst.layout()), Overlap::Same | Overlap::Inside) {
        return into_region(src, dst, layout);
    }
    check(layout, dst.dtype(), dst.layout(), dst.dtype(), dst.base() as usize)?;
    if src.sizes() != &layout.sizes[..] {
        return Err(format!("sizes {:?} do not fill {:?}", src.sizes(), &layout.sizes[..]));
    }
    let own: HashSet<i64> = dst.layout().cells().into_iter().collect();
    let none: &[i64] = &[];
    for (from, to) in src.layout().cells().into_iter().zip(layout.cells()) {
        if own.contains(&to) {
            let (from, to) = (Layout::strided(none, none, from), Layout::strided(none, none, to));
            // SAFETY: each is one cell: of the operand, and of the result.
            unsafe { copy_convert(src.with_layout(&from), dst.with_layout(&to)) };
        }
    }
    Ok(())
}

/// Copies an operand to a result that its sizes broadcast to.
pub fn stretched(src: &View<'_>, dst: &ViewMut<'_>) -> Result<(), String> {
    let layout = src.layout().expand(dst.sizes()).map_err(|e| e.0)?;
    // SAFETY: `Layout::expand` reaches no cell that the operand does not.
    copy_convert(unsafe { src.with_layout(&layout) }, *dst);
    Ok(())
}

/// Whether an operand lies exactly where a result will: it was carried over.
pub fn same_memory(src: &View<'_>, dst: &ViewMut<'_>) -> bool {
    let size = src.dtype().size() as isize;
    let first = |base: *const u8, l: &Layout| base.wrapping_offset(l.offset as isize * size);
    src.dtype() == dst.dtype()
        && first(src.base(), src.layout()) == first(dst.base(), dst.layout())
        && Layout { offset: 0, ..src.layout().clone() }.same_cells(&Layout { offset: 0, ..dst.layout().clone() })
}

/// The operand's elements in a result that will change some of them: nothing to do where it was carried over.
pub fn carry(src: &View<'_>, dst: &ViewMut<'_>) {
    if !same_memory(src, dst) {
        copy_convert(*src, *dst);
    }
}

/// Overwrites a result with zeros.
pub fn zero(dst: &ViewMut<'_>) {
    let zeros = Aligned([0; 16]);
    let strides: Dims<i64> = Dims::from_elem(0, dst.sizes().len());
    let layout = Layout::strided(dst.sizes(), &strides, 0);
    // SAFETY: the layout has one cell, and 16 aligned zero bytes are a zero of every element type.
    let view = unsafe { View::from_raw(zeros.0.as_ptr(), dst.dtype(), &layout) };
    copy_convert(view, *dst);
}

#[repr(align(16))]
struct Aligned([u8; 16]);

/// Copies `repeats[d]` times along each dimension of the result, which may have more dimensions than the operand.
pub fn repeat(src: &View<'_>, repeats: &[i64], dst: &ViewMut<'_>) {
    let lead = repeats.len() - src.sizes().len();
    let (mut from, mut to) = (Layout::contiguous(&[] as &[i64]), Layout::contiguous(&[] as &[i64]));
    (from.offset, to.offset) = (src.layout().offset, dst.layout().offset);
    for (d, &r) in repeats.iter().enumerate() {
        let (n, s) = if d < lead { (1, 0) } else { (src.sizes()[d - lead], src.strides()[d - lead]) };
        from.sizes.extend([r, n]);
        from.strides.extend([0, s]);
        let t = dst.strides()[d];
        to.sizes.extend([r, n]);
        to.strides.extend([n * t, t]);
    }
    // SAFETY: the cells of both layouts are those of the views: each dimension of the result is split in two.
    unsafe { copy_convert(src.with_layout(&from), dst.with_layout(&to)) };
}

/// Repeats each element `n` times along a dimension.
pub fn repeat_each(src: &View<'_>, dim: usize, n: i64, dst: &ViewMut<'_>) {
    let (mut from, mut to) = (src.layout().clone(), dst.layout().clone());
    from.sizes.insert(dim + 1, n);
    from.strides.insert(dim + 1, 0);
    let t = to.strides[dim];
    to.sizes[dim] = src.sizes()[dim];
    to.strides[dim] = n * t;
    to.sizes.insert(dim + 1, n);
    to.strides.insert(dim + 1, t);
    // SAFETY: as in `repeat`.
    unsafe { copy_convert(src.with_layout(&from), dst.with_layout(&to)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::Tensor;

    #[test]
    fn logical_order_is_kept_whatever_the_layouts() {
        let base = Tensor::from_slice(&(0..12i32).collect::<Vec<_>>(), &[3, 4]);
        let t = base.alias(DType::I32, base.layout().transpose(0, 1).unwrap()).unwrap();
        let out = Tensor::zeros(DType::I32, Layout::permuted(&[2, 6], &[1, 0]));
        same_order(&t.view(), &out.view_mut()).unwrap();
        assert_eq!(out.to_elements::<i32>(), t.to_elements::<i32>());
        let wrong = Tensor::zeros(DType::I32, Layout::contiguous(&[5]));
        assert!(same_order(&t.view(), &wrong.view_mut()).is_err());
    }

    #[test]
    fn regions_outside_are_refused() {
        let base = Tensor::from_slice(&(0..12i32).collect::<Vec<_>>(), &[3, 4]);
        let out = Tensor::zeros(DType::I32, Layout::contiguous(&[4]));
        let back = Layout::strided(&[4i64], &[-1], 11);
        from_region(&base.view(), DType::I32, &back, &out.view_mut()).unwrap();
        assert_eq!(out.to_elements::<i32>(), [11, 10, 9, 8]);
        let beyond = Layout::strided(&[4i64], &[1], 9);
        assert!(from_region(&base.view(), DType::I32, &beyond, &out.view_mut()).is_err());
        assert!(into_region(&out.view(), &base.view_mut(), &beyond).is_err());
    }

    #[test]
    fn repeats_tile_or_stretch() {
        let row = Tensor::from_slice(&[1i32, 2], &[2]);
        let out = Tensor::zeros(DType::I32, Layout::contiguous(&[2, 4]));
        repeat(&row.view(), &[2, 2], &out.view_mut());
        assert_eq!(out.to_elements::<i32>(), [1, 2, 1, 2, 1, 2, 1, 2]);
        let out = Tensor::zeros(DType::I32, Layout::contiguous(&[6]));
        repeat_each(&row.view(), 0, 3, &out.view_mut());
        assert_eq!(out.to_elements::<i32>(), [1, 1, 1, 2, 2, 2]);
        zero(&out.view_mut());
        assert_eq!(out.to_elements::<i32>(), [0; 6]);
    }
}
