//! Triangles of matrices.

use crate::support::convert::{element, with_word};
use crate::support::rows::Rows;
use crate::support::runs;
use restride_tensor::{Layout, Scalar, View, ViewMut};
use std::ops::Range;

/// Copies from each row of the matrices in the last two dimensions the columns that `kept` gives for its index, and writes zeros
/// elsewhere. `out` may share the memory of `x` index by index.
///
/// # Errors
/// Operands of other types or sizes, or of fewer than two dimensions.
///
/// # Panics
/// If `kept` gives columns that a row does not have.
pub fn triangle(x: &View<'_>, kept: &dyn Fn(usize) -> Range<usize>, out: &ViewMut<'_>) -> Result<(), String> {
    let &[.., height, width] = x.sizes() else { return Err("a triangle is a part of a matrix".into()) };
    if x.dtype() != out.dtype() || x.sizes() != out.sizes() {
        return Err("a triangle has its matrix's type and sizes".into());
    }
    let (height, width, last) = (height as usize, width as usize, x.sizes().len() - 1);
    let row = |l: &Layout| Layout::strided(&l.sizes[..last], &l.strides[..last], l.offset);
    let rows = Rows::logical(&[&row(out.layout()), &row(x.layout())]);
    let (t, s) = (out.strides()[last] as isize, x.strides()[last] as isize);
    let zero = element(out.dtype(), Scalar::Int(0));
    let mut number = 0;
    with_word!(out.dtype(), W => rows.for_each(|at| {
        for i in 0..rows.len() as isize {
            let to = (out.base() as *mut W).wrapping_offset(at[0] + i * rows.stride(0));
            let from = (x.base() as *const W).wrapping_offset(at[1] + i * rows.stride(1));
            let kept = kept(number % height);
            assert!(kept.start <= kept.end && kept.end <= width, "a row has the columns that are kept");
            number += 1;
            let cell = |j: usize| to.wrapping_offset(j as isize * t);
            let zero = zero.as_ptr().cast::<W>();
            // SAFETY: cells of a row of both views, which share memory at most index by index.
            unsafe {
                runs::copy_row(zero, 0, to, t, kept.start);
                runs::copy_row(from.wrapping_offset(kept.start as isize * s), s, cell(kept.start), t, kept.len());
                runs::copy_row(zero, 0, cell(kept.end), t, width - kept.end);
            }
        }
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, RawTensor};

    #[test]
    fn rows_keep_their_columns_in_any_strides() {
        for dtype in DType::ALL {
            let data: Vec<i64> = (0..2 * 3 * 4).map(|i| i64::from(i % 5 != 0)).collect();
            for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
                let x = RawTensor::zeros(dtype, Layout::permuted(&[2, 3, 4], &order));
                crate::support::pack::unpack(&data, &x.write().view_mut());
                let out = RawTensor::zeros(dtype, Layout::permuted(&[2, 3, 4], &[1, 0, 2]));
                crate::support::pack::unpack(&[1i64; 24], &out.write().view_mut());
                triangle(&x.read().view(), &|i| i..4.min(i + 2), &out.write().view_mut()).unwrap();
                let kept = |k: usize| (k / 4 % 3..k / 4 % 3 + 2).contains(&(k % 4));
                let want: Vec<i64> = (0..24).map(|k| if kept(k) { data[k] } else { 0 }).collect();
                assert_eq!(crate::support::convert::gather::<i64>(out.read().view())[..], want, "{dtype} {order:?}");
            }
        }
    }
}
