//! Copies: whole operands in logical order, and parts of an operand or of a result.

use crate::support::convert::{copy_convert, gather, scatter};
use crate::support::pack::{Stored, compute_room, with_compute};
use crate::support::rows::cells;
use crate::support::scratch::room;
use restride_tensor::{DType, Dims, Element, Layout, Overlap, Scalar, View, ViewMut, overlap};

/// Copies all elements in row-major order of the indices, converting where the element types differ. The sizes may
/// differ, the number of elements not.
pub fn same_order(src: &View<'_>, dst: &ViewMut<'_>) -> Result<(), String> {
    if src.sizes() == dst.sizes() {
        copy_convert(*src, dst);
        return Ok(());
    }
    if src.numel() != dst.numel() {
        return Err(format!("{} elements do not fill sizes {:?}", src.numel(), dst.sizes()));
    }
    match Regroup::of(src.layout(), dst.layout()) {
        // SAFETY: `Layout::view` gives the same cells under other sizes.
        Regroup::Target(layout) => copy_convert(*src, &unsafe { dst.with_layout(&layout) }),
        // SAFETY: as above.
        Regroup::Source(layout) => copy_convert(unsafe { src.with_layout(&layout) }, dst),
        Regroup::Neither => with_compute!(any src.dtype(), T => scatter(&gather::<T>(*src), dst)),
    }
    Ok(())
}

/// Which of two layouts of as many elements is a view of the other one's sizes.
enum Regroup {
    Target(Layout),
    Source(Layout),
    Neither,
}

impl Regroup {
    fn of(src: &Layout, dst: &Layout) -> Regroup {
        match dst.view(&src.sizes) {
            Some(layout) => Regroup::Target(layout),
            None => src.view(&dst.sizes).map_or(Regroup::Neither, Regroup::Source),
        }
    }
}

/// Bytes of scratch of [`same_order`], and of [`from_region`] of the layout.
pub fn same_order_room((dtype, src): Stored<'_>, dst: &Layout) -> usize {
    match Regroup::of(src, dst) {
        Regroup::Neither if src.sizes != dst.sizes => compute_room(dtype, src.numel()),
        _ => 0,
    }
}

/// Bytes that a layout's cells span, counted from cell 0.
fn bytes(layout: &Layout, dtype: DType) -> std::ops::Range<i128> {
    let (range, size) = (layout.cell_range(), dtype.size() as i128);
    range.start as i128 * size..range.end as i128 * size
}

/// An error unless a layout's cells are between the first and the last cell of another one on the same memory, and are
/// aligned.
fn check(inner: &Layout, inner_dtype: DType, outer: &Layout, outer_dtype: DType, base: usize) -> Result<(), String> {
    let (i, o) = (bytes(inner, inner_dtype), bytes(outer, outer_dtype));
    if inner.byte_range(inner_dtype.size()).is_none() {
        return Err(format!("{inner} is no layout of memory"));
    }
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

/// Copies the cells of a layout on an operand's memory, as elements of `dtype`, to a result of the layout's sizes.
/// Strides may be negative. Cells before the operand's first or after its last one are refused.
pub fn from_region(src: &View<'_>, dtype: DType, layout: &Layout, dst: &ViewMut<'_>) -> Result<(), String> {
    check(layout, dtype, src.layout(), src.dtype(), src.base() as usize)?;
    // SAFETY: the cells are between the operand's first and last one, in memory of one storage that its owner keeps while
    // the view lives, and they are aligned.
    let view = unsafe { View::from_raw(src.base(), dtype, layout) };
    same_order(&view, dst)
}

/// Copies an operand into the cells that a layout reaches in a result's memory, of the operand's sizes.
pub fn into_region(src: &View<'_>, dst: &ViewMut<'_>, layout: &Layout) -> Result<(), String> {
    check(layout, dst.dtype(), dst.layout(), dst.dtype(), dst.base() as usize)?;
    if src.sizes() != &layout.sizes[..] {
        return Err(format!("sizes {:?} do not fill {:?}", src.sizes(), &layout.sizes[..]));
    }
    // SAFETY: the cells are between the result's first and last one, and are aligned.
    copy_convert(*src, &unsafe { dst.with_layout(layout) });
    Ok(())
}

/// Copies the cells of one layout on an operand's memory to the cells of another one, of equal sizes, on a result's.
pub fn between(src: &View<'_>, from: &Layout, dst: &ViewMut<'_>, to: &Layout) -> Result<(), String> {
    check(from, src.dtype(), src.layout(), src.dtype(), src.base() as usize)?;
    // SAFETY: the cells are between the operand's first and last one, and are aligned.
    into_region(&unsafe { src.with_layout(from) }, dst, to)
}

/// As [`into_region`], but writes only the layout's cells that hold elements of the result, not those between them.
pub fn into_elements(src: &View<'_>, dst: &ViewMut<'_>, layout: &Layout) -> Result<(), String> {
    if matches!(overlap(layout, dst.layout()), Overlap::Same | Overlap::Inside) {
        return into_region(src, dst, layout);
    }
    check(layout, dst.dtype(), dst.layout(), dst.dtype(), dst.base() as usize)?;
    if src.sizes() != &layout.sizes[..] {
        return Err(format!("sizes {:?} do not fill {:?}", src.sizes(), &layout.sizes[..]));
    }
    let mut own = cells(dst.layout());
    own.sort_unstable();
    let none: &[i64] = &[];
    for (&from, &to) in cells(src.layout()).iter().zip(&cells(layout)) {
        if own.binary_search(&to).is_ok() {
            let (from, to) = (Layout::strided(none, none, from as i64), Layout::strided(none, none, to as i64));
            // SAFETY: each is one cell: of the operand, and of the result.
            unsafe { copy_convert(src.with_layout(&from), &dst.with_layout(&to)) };
        }
    }
    Ok(())
}

/// Bytes of scratch of [`into_elements`].
pub fn into_elements_room(dst: &Layout, layout: &Layout) -> usize {
    match overlap(layout, dst) {
        Overlap::Same | Overlap::Inside => 0,
        _ => room::<isize>(dst.numel() as usize) + 2 * room::<isize>(layout.numel() as usize),
    }
}

/// Copies an operand to a result that its sizes broadcast to.
pub fn stretched(src: &View<'_>, dst: &ViewMut<'_>) -> Result<(), String> {
    expanded(src, dst.sizes(), |src| {
        copy_convert(*src, dst);
        Ok(())
    })
}

/// Whether an operand and a result are the same elements of memory: the operand was carried over.
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
        copy_convert(*src, dst);
    }
}

/// Calls `f` with a number as a 0-d tensor of the widest type of its kind.
pub fn number<R>(s: Scalar, f: impl FnOnce(&View<'_>) -> R) -> R {
    fn on<T: Element, R>(x: T, f: impl FnOnce(&View<'_>) -> R) -> R {
        let none: &[i64] = &[];
        let layout = Layout::contiguous(none);
        // SAFETY: the layout has one cell, which is `x`.
        f(&unsafe { View::from_raw(std::ptr::from_ref(&x).cast(), T::DTYPE, &layout) })
    }
    match s {
        Scalar::Bool(b) => on(b as i64, f),
        Scalar::Int(i) => on(i, f),
        Scalar::Float(x) => on(x, f),
        Scalar::Complex(z) => on(z, f),
    }
}

/// A number as an element type holds it.
pub fn held(dtype: DType, s: Scalar) -> Scalar {
    let mut cell = Chunk16([0; 16]);
    let none: &[i64] = &[];
    let layout = Layout::contiguous(none);
    // SAFETY: the layout has one cell, and 16 aligned zero bytes hold an element of every type.
    let mut own = unsafe { ViewMut::from_raw(cell.0.as_mut_ptr(), dtype, &layout) };
    number(s, |from| copy_convert(*from, &own));
    own.as_view().get(&[])
}

/// The layout of a 0-d tensor as one of a dimension of size 1; others as they are.
pub(crate) fn lifted(l: &Layout) -> Layout {
    if l.rank() == 0 { Layout::strided(&[1], &[1], l.offset) } else { l.clone() }
}

/// Calls `f` with a tensor that has a dimension: a 0-d one counts as one of a single element.
pub fn with_dimension<R>(t: &View<'_>, f: impl FnOnce(&View<'_>) -> R) -> R {
    let layout = lifted(t.layout());
    // SAFETY: the same cells in one more dimension, or the same layout.
    f(&unsafe { t.with_layout(&layout) })
}

/// As [`with_dimension`], of a result.
pub fn with_dimension_mut<R>(t: &ViewMut<'_>, f: impl FnOnce(&ViewMut<'_>) -> R) -> R {
    let layout = lifted(t.layout());
    // SAFETY: as above.
    f(&unsafe { t.with_layout(&layout) })
}

/// Calls `f` with a tensor stretched to sizes that it broadcasts to.
pub fn expanded<R>(t: &View<'_>, sizes: &[i64], f: impl FnOnce(&View<'_>) -> Result<R, String>) -> Result<R, String> {
    let layout = t.layout().expand(sizes).map_err(|e| e.0)?;
    // SAFETY: `Layout::expand` reaches no cell that the operand does not.
    f(&unsafe { t.with_layout(&layout) })
}

/// Overwrites a result with zeros.
pub fn zero(dst: &ViewMut<'_>) {
    let zeros = Chunk16([0; 16]);
    let strides: Dims<i64> = Dims::<i64>::from_elem(0, dst.sizes().len());
    let layout = Layout::strided(dst.sizes(), &strides, 0);
    // SAFETY: the layout has one cell, and 16 aligned zero bytes are a zero of every element type.
    let view = unsafe { View::from_raw(zeros.0.as_ptr(), dst.dtype(), &layout) };
    copy_convert(view, dst);
}

#[repr(align(16))]
struct Chunk16([u8; 16]);

/// Copies `repeats[d]` times along each dimension of the result, which may have more dimensions than the operand.
///
/// # Panics
/// If the result does not have the sizes of that.
pub fn repeat(src: &View<'_>, repeats: &[i64], dst: &ViewMut<'_>) {
    let fits = repeats.len().checked_sub(src.sizes().len()).is_some_and(|lead| {
        let own = std::iter::repeat_n(&1, lead).chain(src.sizes());
        let sizes = own.zip(repeats).map(|(&n, &r)| n.checked_mul(r));
        repeats.iter().all(|r| *r >= 0) && sizes.eq(dst.sizes().iter().map(|&n| Some(n)))
    });
    assert!(fits, "sizes {:?} repeated {repeats:?} times are not {:?}", src.sizes(), dst.sizes());
    let lead = repeats.len() - src.sizes().len();
    let (mut from, mut to) = (Layout::contiguous(&[] as &[i64]), Layout::contiguous(&[] as &[i64]));
    (from.offset, to.offset) = (src.layout().offset, dst.layout().offset);
    for (d, &r) in repeats.iter().enumerate() {
        let (n, s) = if d < lead { (1, 0) } else { (src.sizes()[d - lead], src.strides()[d - lead]) };
        let t = dst.strides()[d];
        // One dimension counts the copies, one the elements of a copy; those of size 1 are left out.
        for (size, source, target) in [(r, 0, n * t), (n, s, t)].into_iter().filter(|dim| dim.0 != 1) {
            from.sizes.push(size);
            from.strides.push(source);
            to.sizes.push(size);
            to.strides.push(target);
        }
    }
    // SAFETY: the cells of both layouts are those of the views: each dimension of the result is split in two.
    unsafe { copy_convert(src.with_layout(&from), &dst.with_layout(&to)) };
}

/// Repeats each element `n` times along a dimension.
///
/// # Panics
/// If the result does not have the sizes of that.
pub fn repeat_each(src: &View<'_>, dim: usize, n: i64, dst: &ViewMut<'_>) {
    let mut sizes = Dims::<i64>::from_slice(src.sizes());
    sizes[dim] = if n < 0 { -1 } else { sizes[dim].saturating_mul(n) };
    assert_eq!(dst.sizes(), &sizes[..], "each element is repeated {n} times along dimension {dim}");
    let (mut from, mut to) = (src.layout().clone(), dst.layout().clone());
    if n == 1 {
        return copy_convert(*src, dst);
    }
    from.sizes.insert(dim + 1, n);
    from.strides.insert(dim + 1, 0);
    let t = to.strides[dim];
    to.sizes[dim] = src.sizes()[dim];
    to.strides[dim] = n * t;
    to.sizes.insert(dim + 1, n);
    to.strides.insert(dim + 1, t);
    // SAFETY: as in `repeat`.
    unsafe { copy_convert(src.with_layout(&from), &dst.with_layout(&to)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    #[test]
    fn logical_order_is_kept_whatever_the_layouts() {
        let base = RawTensor::from_slice(&(0..12i32).collect::<Vec<_>>(), &[3, 4]);
        let t = base.alias(DType::I32, base.layout().transpose(0, 1).unwrap()).unwrap();
        let out = RawTensor::zeros(DType::I32, Layout::permuted(&[2, 6], &[1, 0]));
        same_order(&t.read().view(), &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<i32>(), t.to_elements::<i32>());
        let wrong = RawTensor::zeros(DType::I32, Layout::contiguous(&[5]));
        assert!(same_order(&t.read().view(), &wrong.write().view_mut()).is_err());
    }

    #[test]
    fn regions_outside_are_refused() {
        let base = RawTensor::from_slice(&(0..12i32).collect::<Vec<_>>(), &[3, 4]);
        let out = RawTensor::zeros(DType::I32, Layout::contiguous(&[4]));
        let back = Layout::strided(&[4i64], &[-1], 11);
        from_region(&base.read().view(), DType::I32, &back, &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<i32>(), [11, 10, 9, 8]);
        let beyond = Layout::strided(&[4i64], &[1], 9);
        assert!(from_region(&base.read().view(), DType::I32, &beyond, &out.write().view_mut()).is_err());
        assert!(into_region(&out.read().view(), &base.write().view_mut(), &beyond).is_err());
    }

    #[test]
    fn repeats_tile_or_stretch() {
        let row = RawTensor::from_slice(&[1i32, 2], &[2]);
        let out = RawTensor::zeros(DType::I32, Layout::contiguous(&[2, 4]));
        repeat(&row.read().view(), &[2, 2], &out.write().view_mut());
        assert_eq!(out.to_elements::<i32>(), [1, 2, 1, 2, 1, 2, 1, 2]);
        let out = RawTensor::zeros(DType::I32, Layout::contiguous(&[6]));
        repeat_each(&row.read().view(), 0, 3, &out.write().view_mut());
        assert_eq!(out.to_elements::<i32>(), [1, 1, 1, 2, 2, 2]);
        zero(&out.write().view_mut());
        assert_eq!(out.to_elements::<i32>(), [0; 6]);
    }
}
