//! Logarithms of sums of exponentials of rows.

use super::{BLOCK, Tree, lanes};
use crate::support::isa;
use crate::support::number::Real;
use crate::support::stack::Stack;

/// Most rows that go through each step together: vectors are full, however short a row is.
const ROWS: usize = 64;

/// Writes the result of each row of `len` elements.
pub(super) fn rows<T: Real>(rows: &[T], len: usize, to: &mut [T]) {
    if len == 0 {
        return to.fill(T::neg_infinity());
    }
    let mut buffer = Stack::<T, BLOCK>::new();
    let buffer = buffer.filled(rows.len().min(BLOCK), T::zero());
    isa::run(LogSumExp { rows, len, to, buffer });
}

struct LogSumExp<'a, T> {
    rows: &'a [T],
    len: usize,
    to: &'a mut [T],
    /// Exponentials of some rows, or of a part of one.
    buffer: &'a mut [T],
}

impl<T: Real> isa::Work for LogSumExp<'_, T> {
    type Out = ();
    // The logarithm of doubles is the library's.
    const VECTORS: bool = size_of::<T>() == 4;
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let LogSumExp { rows, len, to, buffer } = self;
        let some = (BLOCK / len).clamp(1, ROWS);
        let mut kept = [T::zero(); ROWS];
        for (rows, to) in rows.chunks(some * len).zip(to.chunks_mut(some)) {
            for (row, max) in rows.chunks_exact(len).zip(&mut kept) {
                // NaN is left out here, and makes the sum NaN.
                *max = lanes(row, T::neg_infinity(), |x| x, |a, b| if b > a { b } else { a });
            }
            // The difference of infinities would be no number. Exponentials are not above 1: an infinity counts when it is added.
            let shift = |max: T| if max.is_infinite() { T::zero() } else { max };
            if len > BLOCK {
                let (mut tree, shift) = (Tree::new(), shift(kept[0]));
                for part in rows.chunks(BLOCK) {
                    let terms = &mut buffer[..part.len()];
                    terms.iter_mut().zip(part).for_each(|(y, &x)| *y = (x - shift).exp_down());
                    tree.push(lanes(terms, T::zero(), |x| x, |a, b| a + b), |a, b| a + b);
                }
                to[0] = tree.root(|a, b| a + b);
            } else {
                let terms = &mut buffer[..rows.len()];
                for ((row, terms), &max) in rows.chunks_exact(len).zip(terms.chunks_exact_mut(len)).zip(&kept) {
                    let shift = shift(max);
                    terms.iter_mut().zip(row).for_each(|(y, &x)| *y = x - shift);
                }
                terms.iter_mut().for_each(|y| *y = y.exp_down());
                for (terms, to) in terms.chunks_exact(len).zip(&mut *to) {
                    *to = lanes(terms, T::zero(), |x| x, |a, b| a + b);
                }
            }
            for (to, &max) in to.iter_mut().zip(&kept) {
                let max = if max == T::neg_infinity() { T::zero() } else { max };
                *to = to.ln_fast() + max;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Reduction, reduce};
    use crate::support::isa::tests::on_each;
    use restride_tensor::{DType, Layout, RawTensor};

    fn of(x: &RawTensor, dim: usize) -> Vec<f32> {
        let sizes = [x.layout().sizes[1 - dim]];
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&sizes));
        let marks = [dim == 0, dim == 1];
        reduce(&x.read().view(), &marks, Reduction::LogSumExp, DType::F32, &out.write().view_mut(), 2).unwrap();
        out.to_elements::<f32>()
    }

    #[test]
    fn rows_of_any_length_agree_with_the_definition_in_any_strides() {
        let lens: &[i64] = if cfg!(miri) { &[1, 7, 70] } else { &[1, 2, 7, 21, 64, 197, 1000, 2048, 2049, 5000] };
        for &len in lens {
            let rows = 70i64;
            let data: Vec<f32> = (0..rows * len).map(|i| ((i * 7919) % 1013) as f32 * 0.02 - 9.0).collect();
            let x = RawTensor::from_slice(&data, &[rows, len]);
            let turned = RawTensor::zeros(DType::F32, Layout::permuted(&[rows, len], &[1, 0]));
            crate::support::pack::unpack(&data, &turned.write().view_mut());
            let want = of(&x, 1);
            for (row, &got) in data.chunks(len as usize).zip(&want) {
                let exact = row.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
                assert!((f64::from(got) - exact).abs() < 2e-6 * exact.abs().max(1.0), "{len}: {got} {exact}");
            }
            on_each(|isa| {
                assert_eq!(of(&x, 1), want, "{len} {isa:?}");
                assert_eq!(of(&turned, 1), want, "{len} {isa:?}");
            });
        }
    }

    #[test]
    fn infinities_and_numbers_that_are_none() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let rows = [
            [1.0, -inf, 1.0, -inf],
            [-inf; 4],
            [inf, 1.0, f32::MAX, -inf],
            [inf; 4],
            [nan, inf, 0.0, 1.0],
            [-inf, nan, -inf, -inf],
            [f32::MAX, f32::MAX, 0.0, 0.0],
            [-1e30, -1e30, -1e30, -inf],
        ];
        let got = of(&RawTensor::from_slice(rows.as_flattened(), &[8, 4]), 1);
        assert!((got[0] - (1.0 + 2f32.ln())).abs() < 1e-6);
        assert_eq!(got[1..4], [-inf, inf, inf]);
        assert!(got[4].is_nan() && got[5].is_nan());
        assert_eq!(got[6..], [f32::MAX, -1e30]);
        let nothing = RawTensor::zeros(DType::F32, Layout::contiguous(&[3, 0]));
        assert_eq!(of(&nothing, 1), [-inf; 3]);
    }
}
