//! Logarithms of sums of exponentials of rows.

use super::joined::JoinedRows;
use super::{BLOCK, Tree, lanes, largest, summed};
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Stored, compute_room};
use crate::support::par;
use crate::support::scratch::Temp;
use crate::support::stack::Stack;
use restride_tensor::{DType, Layout, View, ViewMut};

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
            if len > BLOCK {
                let (mut tree, shift) = (Tree::new(), shift_of(kept[0]));
                for part in rows.chunks(BLOCK) {
                    let terms = &mut buffer[..part.len()];
                    terms.iter_mut().zip(part).for_each(|(y, &x)| *y = (x - shift).exp_down());
                    tree.push(lanes(terms, T::zero(), |x| x, |a, b| a + b), |a, b| a + b);
                }
                to[0] = tree.root(|a, b| a + b);
            } else {
                let terms = &mut buffer[..rows.len()];
                for ((row, terms), &max) in rows.chunks_exact(len).zip(terms.chunks_exact_mut(len)).zip(&kept) {
                    let shift = shift_of(max);
                    terms.iter_mut().zip(row).for_each(|(y, &x)| *y = x - shift);
                }
                terms.iter_mut().for_each(|y| *y = y.exp_down());
                for (terms, to) in terms.chunks_exact(len).zip(&mut *to) {
                    *to = lanes(terms, T::zero(), |x| x, |a, b| a + b);
                }
            }
            to_logarithms(to, &kept);
        }
    }
}

/// What is taken from the terms of a sum before their exponentials, by their maximum. The difference of infinities would be no number;
/// exponentials are not above 1, so an infinity counts when it is added.
#[inline(always)]
fn shift_of<T: Real>(max: T) -> T {
    if max.is_infinite() { T::zero() } else { max }
}

/// Replaces sums by their logarithms plus the maxima of their terms.
#[inline(always)]
fn to_logarithms<T: Real>(sums: &mut [T], max: &[T]) {
    for (sum, &max) in sums.iter_mut().zip(max) {
        let max = if max == T::neg_infinity() { T::zero() } else { max };
        *sum = sum.ln_fast() + max;
    }
}

/// Fewest columns that are computed side by side.
const FEW: usize = 8;

/// The columns of a tensor that are reduced: its memory is blocks of rows, and a column of a block gives one result.
#[derive(Clone, Copy)]
pub(super) struct ReducedColumns {
    blocks: usize,
    len: usize,
    /// Columns of a block, side by side.
    inner: usize,
}

impl ReducedColumns {
    /// The columns of a contiguous tensor of a compute type, where the reduced dimensions are neighbours before the last one.
    pub(super) fn of((dtype, layout): Stored<'_>, reduced: &[bool], read: DType) -> Option<ReducedColumns> {
        let first = reduced.iter().position(|&r| r)?;
        let end = reduced.iter().rposition(|&r| r)? + 1;
        let count = |sizes: &[i64]| sizes.iter().map(|&n| n as usize).product();
        let (before, rest) = layout.sizes.split_at(first);
        let (own, behind) = rest.split_at(end - first);
        let columns = ReducedColumns { blocks: count(before), len: count(own), inner: count(behind) };
        let held = reduced[first..end].iter().all(|&r| r) && layout.is_contiguous();
        let held = held && dtype == read && matches!(read, DType::F32 | DType::F64);
        (held && columns.inner >= FEW && columns.len > 0).then_some(columns)
    }
    /// Columns that are computed at a time: their exponentials stay in a cache.
    fn wide(&self) -> usize {
        ((1 << 15) / self.len).clamp(64, 1024).min(self.inner)
    }
    /// Scratch bytes of [`columns`].
    pub(super) fn room(&self, dtype: DType) -> usize {
        compute_room(dtype, self.wide() as i64) + compute_room(dtype, (self.len * self.wide()) as i64)
    }
}

/// Writes the results of columns of `x`, which is contiguous and of the type `T`, with the bits of [`rows`].
pub(super) fn columns<T: Real>(x: &View<'_>, of: ReducedColumns, to: &mut [T], threads: usize) {
    let ReducedColumns { blocks, len, inner } = of;
    let (most, to) = (of.wide(), par::Shared::new(to));
    let threads = if x.numel() < 1 << 15 { 1 } else { threads };
    let tiles = inner.div_ceil(most);
    // SAFETY: threads read the operand only.
    let x = unsafe { par::Across::new(*x) };
    let cells = |sizes: [usize; 2], apart: usize, offset: i64| {
        Layout::strided(&sizes.map(|n| n as i64), &[apart as i64, 1], offset)
    };
    par::each(threads, blocks * tiles, &|i| {
        let (block, first) = (i / tiles, i % tiles * most);
        let wide = most.min(inner - first);
        let start = block * len * inner + first;
        let source = cells([len, wide], inner, x.get().layout().offset + start as i64);
        // SAFETY: some of the operand's cells.
        let source = unsafe { x.get().with_layout(&source) };
        let (here, line) = (cells([len, wide], wide, 0), cells([1, wide], wide, 0));
        let (mut max, mut terms) = (Temp::filled(wide, T::zero()), Temp::filled(len * wide, T::zero()));
        // SAFETY: the results of these columns, which are this item's alone.
        let to = unsafe { std::slice::from_raw_parts_mut(to.at(block * inner + first), wide) };
        let marks = [true, false];
        let row = |of: &mut [T]| of.as_mut_ptr().cast();
        // SAFETY: memory of this item, in these layouts.
        let results = unsafe { ViewMut::from_raw(row(&mut max), T::DTYPE, &line) };
        let largest = JoinedRows { unit: T::LEAST, join: largest::<T> };
        largest.run(&source, &marks, T::DTYPE, &results, 1, &|_| {});
        isa::run(ColumnExponentials { from: source.ptr::<T>(), apart: inner, max: &max, to: &mut terms });
        // SAFETY: as above.
        let (terms, results) = unsafe {
            let terms = View::from_raw(terms.as_ptr().cast(), T::DTYPE, &here);
            (terms, ViewMut::from_raw(row(to), T::DTYPE, &line))
        };
        summed::<T>(&terms, &marks, T::DTYPE, &results, 1, &|_| {});
        isa::run(ColumnLogarithms { to, max: &max });
    });
}

/// Exponentials of rows beside each other, which are `apart`, less the maximum of each column; NaN in a column whose maximum it is.
struct ColumnExponentials<'a, T> {
    from: *const T,
    apart: usize,
    max: &'a [T],
    to: &'a mut [T],
}

impl<T: Real> isa::Work for ColumnExponentials<'_, T> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let ColumnExponentials { from, apart, max, to } = self;
        for (i, to) in to.chunks_exact_mut(max.len()).enumerate() {
            // SAFETY: a row of the operand.
            let row = unsafe { std::slice::from_raw_parts(from.add(i * apart), max.len()) };
            for ((y, &x), &max) in to.iter_mut().zip(row).zip(max) {
                *y = (x - shift_of(max)).exp_down();
            }
        }
    }
}

/// Logarithms of sums, and the maxima of the columns.
struct ColumnLogarithms<'a, T> {
    to: &'a mut [T],
    max: &'a [T],
}

impl<T: Real> isa::Work for ColumnLogarithms<'_, T> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        to_logarithms(self.to, self.max);
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
            let columns = RawTensor::from_slice(
                &turned.alias(DType::F32, turned.layout().transpose(0, 1).unwrap()).unwrap().to_elements::<f32>(),
                &[len, rows],
            );
            let want = of(&x, 1);
            for (row, &got) in data.chunks(len as usize).zip(&want) {
                let exact = row.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
                assert!((f64::from(got) - exact).abs() < 2e-6 * exact.abs().max(1.0), "{len}: {got} {exact}");
            }
            on_each(|isa| {
                assert_eq!(of(&x, 1), want, "{len} {isa:?}");
                assert_eq!(of(&turned, 1), want, "{len} {isa:?}");
                assert_eq!(of(&columns, 0), want, "{len} {isa:?}");
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
        let x = RawTensor::from_slice(rows.as_flattened(), &[8, 4]);
        let got = of(&x, 1);
        let turned = x.alias(DType::F32, x.layout().transpose(0, 1).unwrap()).unwrap();
        let columns = of(&RawTensor::from_slice(&turned.to_elements::<f32>(), &[4, 8]), 0);
        let bits = |x: f32| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() };
        assert!(columns.iter().zip(&got).all(|(&a, &b)| bits(a) == bits(b)), "{columns:?} {got:?}");
        assert!((got[0] - (1.0 + 2f32.ln())).abs() < 1e-6);
        assert_eq!(got[1..4], [-inf, inf, inf]);
        assert!(got[4].is_nan() && got[5].is_nan());
        assert_eq!(got[6..], [f32::MAX, -1e30]);
        let nothing = RawTensor::zeros(DType::F32, Layout::contiguous(&[3, 0]));
        assert_eq!(of(&nothing, 1), [-inf; 3]);
    }
}
