//! Operands as contiguous slices of a compute type, and results back: a kernel's order of summation then depends on
//! logical indices alone.

pub use crate::support::convert::Compute;
use crate::support::convert::{load_row, store_row};
use crate::support::scratch::{self, Temp};
use restride_tensor::{DType, Layout, PerDim, View, ViewMut};
use std::ops::Deref;

/// Runs the body with `$t` bound to the compute type of a dtype, which is `float`, `real` (an integer or float), `inexact` (a
/// float or complex) or `any`. Returns an error for other dtypes.
macro_rules! with_compute {
    (float $dtype:expr, $t:ident => $body:expr) => {
        $crate::support::pack::with_compute!(some $dtype, $t => $body, F32 f32, F64 f64)
    };
    (real $dtype:expr, $t:ident => $body:expr) => {
        $crate::support::pack::with_compute!(some $dtype, $t => $body, Int i64, F32 f32, F64 f64)
    };
    (inexact $dtype:expr, $t:ident => $body:expr) => {
        $crate::support::pack::with_compute!(some $dtype, $t => $body, F32 f32, F64 f64, C32 restride_tensor::C32, C64 restride_tensor::C64)
    };
    (any $dtype:expr, $t:ident => $body:expr) => {
        $crate::support::pack::with_compute!(match $dtype, $t => $body,
            (Int i64, F32 f32, F64 f64, C32 restride_tensor::C32, C64 restride_tensor::C64),)
    };
    (some $dtype:expr, $t:ident => $body:expr, $($kind:ident $own:ty),*) => {{
        let dtype = $dtype;
        $crate::support::pack::with_compute!(match dtype, $t => $body, ($($kind $own),*),
            _ => return Err(format!("not implemented for {}", dtype.torch_name())))
    }};
    (match $dtype:expr, $t:ident => $body:expr, ($($kind:ident $own:ty),*), $($else:tt)*) => {
        match $crate::support::convert::Kind::of($dtype) {
            $($crate::support::convert::Kind::$kind => {
                type $t = $own;
                $body
            })*
            $($else)*
        }
    };
}
pub(crate) use with_compute;

/// Dimensions of a layout without those of size 1, neighbours that are one run merged: (size, stride, row-major
/// stride), slowest first.
pub(crate) fn merged(layout: &Layout) -> PerDim<(usize, isize, usize)> {
    let mut dims: PerDim<(usize, isize, usize)> = PerDim::new();
    let mut dense = 1usize;
    for (&n, &s) in layout.sizes.iter().zip(&layout.strides).rev() {
        let (n, s) = (n as usize, s as isize);
        if n == 1 {
            continue;
        }
        match dims.last_mut() {
            Some((m, inner, _)) if s == *inner * *m as isize => *m *= n,
            _ => dims.push((n, s, dense)),
        }
        dense *= n;
    }
    dims.reverse();
    dims
}

/// Visits the rows of a layout in tiles that are kind to the cache: `row(first cell, stride, first position in
/// row-major order, step in row-major order, length)`.
///
/// Rows run along the last dimension, or if another dimension's cells are closer together, along that one in
/// short runs.
fn rows(layout: &Layout, mut row: impl FnMut(isize, isize, usize, usize, usize)) {
    if layout.sizes.contains(&0) {
        return;
    }
    let mut dims = merged(layout);
    let base = layout.offset as isize;
    let Some(&(n, s, _)) = dims.last() else {
        return row(base, 1, 0, 1, 1);
    };
    let nearest = (0..dims.len()).min_by_key(|&d| dims[d].1.unsigned_abs().max(1)).unwrap_or(0);
    if nearest == dims.len() - 1 || n < 4 && s.unsigned_abs() < 64 {
        dims.pop();
        return outer(&dims, base, 0, &mut |cell, at| row(cell, s, at, 1, n));
    }
    // A transposed pair of dimensions: tiles of 32 by 32, so that lines of both sides stay in the cache.
    let (m, t, step) = dims.remove(nearest);
    dims.pop();
    outer(&dims, base, 0, &mut |cell, at| {
        for j in (0..m).step_by(32) {
            for i in (0..n).step_by(32) {
                for jj in j..(j + 32).min(m) {
                    let (cell, at) = (cell + jj as isize * t + i as isize * s, at + jj * step + i);
                    row(cell, s, at, 1, 32.min(n - i));
                }
            }
        }
    });
}

fn outer(dims: &[(usize, isize, usize)], cell: isize, at: usize, f: &mut impl FnMut(isize, usize)) {
    match dims.split_first() {
        None => f(cell, at),
        Some((&(n, s, step), rest)) => {
            for i in 0..n {
                outer(rest, cell + i as isize * s, at + i * step, f);
            }
        }
    }
}

/// The elements in row-major order, converted to the compute type; borrowed if they already are.
///
/// The borrow must not outlive a write to the same memory: kernels pack operands before they write results, and
/// results overlap operands only where an operator's `reuse` says that it copes.
pub fn pack<'a, T: Compute>(view: &View<'a>) -> Packed<'a, T> {
    match borrowed(view) {
        Some(slice) => Packed::Borrowed(slice),
        None => Packed::Owned(pack_owned(view)),
    }
}

/// Elements in row-major order.
pub enum Packed<'a, T: Copy> {
    /// Where they are.
    Borrowed(&'a [T]),
    /// Copied.
    Owned(Temp<T>),
}

impl<T: Copy> Deref for Packed<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Packed::Borrowed(slice) => slice,
            Packed::Owned(own) => own,
        }
    }
}

impl<T: Copy> Packed<'_, T> {
    /// To change them, which no one else sees.
    pub fn into_owned(self) -> Temp<T> {
        match self {
            Packed::Borrowed(slice) => Temp::copied(slice),
            Packed::Owned(own) => own,
        }
    }
}

/// Type and layout of an operand or a result.
pub type Stored<'a> = (DType, &'a Layout);

/// Bytes that `n` elements take in the compute type of a dtype.
pub fn compute_room(dtype: DType, n: i64) -> usize {
    fn room(dtype: DType, n: usize) -> Result<usize, String> {
        Ok(with_compute!(any dtype, T => scratch::room::<T>(n)))
    }
    room(dtype, n as usize).unwrap_or(0)
}

/// Whether kernels compute in this type.
pub fn is_compute(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::I64 | DType::C64 | DType::C128)
}

/// Bytes that [`pack`] takes for elements of this type and layout, or `Target` for a result of it.
pub fn packed_room((dtype, layout): Stored<'_>) -> usize {
    if is_compute(dtype) && layout.is_contiguous() { 0 } else { compute_room(dtype, layout.numel()) }
}

/// The same of several at once.
pub fn packed_rooms<'a>(each: impl IntoIterator<Item = Stored<'a>>) -> usize {
    each.into_iter().map(packed_room).sum()
}

/// The elements as a slice, if they are row-major and of the compute type.
fn borrowed<'a, T: Compute>(view: &View<'a>) -> Option<&'a [T]> {
    if view.dtype() != T::DTYPE || !view.layout().is_contiguous() {
        return None;
    }
    let n = view.numel();
    if n == 0 {
        return Some(&[]);
    }
    // SAFETY: the cells are the `n` ones from the first, readable for the life of the view.
    Some(unsafe { std::slice::from_raw_parts(view.ptr::<T>(), n) })
}

/// As [`pack`], always copied.
pub fn pack_owned<T: Compute>(view: &View<'_>) -> Temp<T> {
    let mut out = Temp::filled(view.numel(), T::default());
    pack_to(view, &mut out);
    out
}

/// As [`pack`], into given memory.
///
/// # Panics
/// If the memory has another number of elements.
pub fn pack_to<T: Compute>(view: &View<'_>, out: &mut [T]) {
    assert_eq!(out.len(), view.numel(), "elements do not fill the memory");
    let (base, dtype) = (view.base(), view.dtype());
    rows(view.layout(), |cell, stride, at, _, n| {
        // SAFETY: the cells are of the view, readable by construction.
        unsafe { load_row(dtype, base, cell, stride, &mut out[at..at + n]) }
    });
}

/// Writes elements given in row-major order, rounding or wrapping to the type of `out`.
pub fn unpack<T: Compute>(src: &[T], out: &ViewMut<'_>) {
    assert_eq!(src.len(), out.numel(), "elements do not fill the result");
    let (base, dtype) = (out.base(), out.dtype());
    rows(out.layout(), |cell, stride, at, _, n| {
        // SAFETY: the cells are of the view, writable by construction.
        unsafe { store_row(dtype, base, cell, stride, &src[at..at + n]) }
    });
}

/// Where a kernel puts its result in row-major order: the memory of the result itself where that is so laid out,
/// scratch otherwise.
pub(crate) struct Target<'a, T: Compute> {
    out: &'a ViewMut<'a>,
    scratch: Option<Temp<T>>,
}

impl<'a, T: Compute> Target<'a, T> {
    /// For a result.
    pub fn new(out: &'a ViewMut<'_>) -> Self {
        let direct = out.dtype() == T::DTYPE && out.layout().is_contiguous();
        Target { out, scratch: (!direct).then(|| Temp::filled(out.numel(), T::default())) }
    }
    /// The elements, to be overwritten; their old values are undefined.
    pub fn slice(&mut self) -> &mut [T] {
        match &mut self.scratch {
            Some(s) => s,
            None if self.out.numel() == 0 => &mut [],
            // SAFETY: the cells are the `numel` ones from the first, writable, and used by this kernel
            // alone: results overlap no operand of the kernels that use this.
            None => unsafe { std::slice::from_raw_parts_mut(self.out.ptr::<T>(), self.out.numel()) },
        }
    }
    /// Puts the elements where the result has them.
    pub fn finish(self) {
        if let Some(s) = &self.scratch {
            unpack(s, self.out);
        }
    }
}

/// Overwrites a result with one value.
pub fn fill<T: Compute>(out: &ViewMut<'_>, value: T) {
    let mut t = Target::new(out);
    t.slice().fill(value);
    t.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{RawTensor, bf16};

    #[test]
    fn packs_every_stride_in_logical_order() {
        let data: Vec<f32> = (0..6 * 70 * 40).map(|x| x as f32).collect();
        let base = RawTensor::from_slice(&data, &[6, 70, 40]);
        let l = base.layout();
        let layouts = [
            l.clone(),
            l.permute(&[2, 0, 1]).unwrap(),
            l.permute(&[0, 2, 1]).unwrap(),
            l.permute(&[2, 1, 0]).unwrap(),
            l.slice(1, Some(&3), Some(&60), &7).unwrap(),
            l.select(2, &5).unwrap(),
            l.select(0, &1).unwrap().expand(&[3, 70, 40]).unwrap(),
            l.slice(0, Some(&2), Some(&2), &1).unwrap(),
        ];
        for layout in layouts {
            let t = base.alias(DType::F32, layout.clone()).unwrap();
            assert_eq!(pack::<f32>(&t.read().view())[..], t.to_elements::<f32>()[..], "{layout}");
            // And back into memory of the same shape in another order.
            let perm: Vec<usize> = (0..layout.rank()).rev().collect();
            let out = RawTensor::zeros(DType::F32, Layout::permuted(&layout.sizes, &perm));
            unpack(&pack::<f32>(&t.read().view()), &out.write().view_mut());
            assert_eq!(out.to_elements::<f32>(), t.to_elements::<f32>(), "{layout}");
        }
    }

    #[test]
    fn converts_on_the_way() {
        let t = RawTensor::from_slice(&[-1i8, 5], &[2]);
        assert_eq!(pack::<i64>(&t.read().view())[..], [-1, 5]);
        let out = RawTensor::zeros(DType::BF16, Layout::contiguous(&[2]));
        unpack(&[1.0f32, 1.0 + 1.0 / 256.0], &out.write().view_mut());
        assert_eq!(out.to_elements::<bf16>(), [bf16::from_f32(1.0), bf16::from_f32(1.0)]);
    }
}
