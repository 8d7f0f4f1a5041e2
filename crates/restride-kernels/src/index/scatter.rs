//! Gathering and scattering along a dimension, with and without reductions.

use crate::movement::copy::lifted;
use crate::support::convert::{gather as values_of, load_row, round_through, store_row, with_word};
use crate::support::number::Number;
use crate::support::pack::{Stored, compute_room, with_compute};
use crate::support::rows::Rows;
use crate::support::scratch::{Temp, room};
use restride_tensor::{DType, Layout, Scalar, View, ViewMut};

/// How a new value joins the old element of its cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
    /// The new value stays.
    Set,
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Mean.
    Mean,
    /// Maximum.
    Max,
    /// Minimum.
    Min,
}

/// The scattered values.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Elements of a tensor, at least as large as the index.
    Tensor(View<'a>),
    /// One number.
    Number(Scalar),
}

/// A layout cut to the index's sizes, standing still along a dimension.
fn along(l: &Layout, dim: usize, sizes: &[i64]) -> Layout {
    let mut out = Layout::strided(sizes, &l.strides, l.offset);
    out.strides[dim] = 0;
    out
}

fn check(l: &Layout, dim: usize, index: &Layout, at: &[i64]) -> Result<(), String> {
    if l.rank() != index.rank() || dim >= l.rank() {
        return Err("Index tensor must have the same number of dimensions as self tensor".into());
    }
    let fits = |d: usize| d == dim || index.sizes[d] <= l.sizes[d];
    if !at.is_empty() && !(0..l.rank()).all(fits) {
        return Err(format!("an index of sizes {:?} does not fit {:?}", &index.sizes[..], &l.sizes[..]));
    }
    let size = l.sizes[dim];
    match at.iter().find(|i| !(0..size).contains(*i)) {
        Some(i) => Err(format!("index {i} is out of bounds for dimension {dim} with size {size}")),
        None => Ok(()),
    }
}

/// Indices that a dimension does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// Are refused.
    Refused,
    /// Are taken modulo its size.
    Wrapped,
}

/// `out[i][j] = src[index[i][j]][j]` for dimension 0, and so on. A 0-d operand counts as one of a single element.
pub fn gather(src: &View<'_>, dim: usize, index: &View<'_>, outside: Outside, out: &ViewMut<'_>) -> Result<(), String> {
    let (s, i, o) = (lifted(src.layout()), lifted(index.layout()), lifted(out.layout()));
    // SAFETY: the same cells in one more dimension, or the same layout.
    let (src, index, out) = unsafe { (&src.with_layout(&s), &index.with_layout(&i), &out.with_layout(&o)) };
    let mut at = values_of::<i64>(*index);
    if let (Outside::Wrapped, Some(&n @ 1..)) = (outside, src.sizes().get(dim)) {
        at.iter_mut().for_each(|i| *i = i.rem_euclid(n));
    }
    check(src.layout(), dim, index.layout(), &at)?;
    if src.dtype() != out.dtype() || out.sizes() != index.sizes() {
        return Err("a gather gives elements of its source in the index's sizes".into());
    }
    let from = along(src.layout(), dim, index.sizes());
    let rows = Rows::logical(&[out.layout(), &from]);
    let step = src.strides()[dim] as isize;
    let (t, s, mut next) = (rows.stride(0), rows.stride(1), 0usize);
    with_word!(src.dtype(), W => rows.for_each(|cells| {
        for (i, &k) in at[next..next + rows.len()].iter().enumerate() {
            let to = (out.base() as *mut W).wrapping_offset(cells[0] + i as isize * t);
            let from = (src.base() as *const W).wrapping_offset(cells[1] + i as isize * s + k as isize * step);
            // SAFETY: both are cells of their views: the index was checked against the sizes.
            unsafe { to.write(from.read()) };
        }
        next += rows.len();
    }));
    Ok(())
}

/// Scatters along a dimension into a result that holds the old elements. Without `keep`, an old element takes no part in
/// the reduction of its cell. Half types are reduced in `f32` and rounded once.
pub fn scatter(
    out: &ViewMut<'_>,
    dim: usize,
    index: &View<'_>,
    src: Source<'_>,
    how: Reduce,
    keep: bool,
) -> Result<(), String> {
    let (o, i) = (lifted(out.layout()), lifted(index.layout()));
    // SAFETY: the same cells in one more dimension, or the same layout.
    let (out, index) = unsafe { (&out.with_layout(&o), &index.with_layout(&i)) };
    let own;
    let src = match src {
        Source::Tensor(t) => {
            own = lifted(t.layout());
            // SAFETY: as above.
            Source::Tensor(unsafe { t.with_layout(&own) })
        }
        number => number,
    };
    let at = values_of::<i64>(*index);
    check(out.layout(), dim, index.layout(), &at)?;
    if let Source::Tensor(t) = src {
        let small = t.sizes().len() != index.sizes().len() || t.sizes().iter().zip(index.sizes()).any(|(a, b)| a < b);
        if t.dtype() != out.dtype() || (small && !at.is_empty()) {
            return Err("what is scattered is of the result's type and not smaller than the index".into());
        }
    }
    if at.is_empty() {
        return Ok(());
    }
    if out.dtype().is_complex() && matches!(how, Reduce::Max | Reduce::Min) {
        return Err(format!("amax and amin are not implemented for {}", out.dtype().torch_name()));
    }
    with_compute!(any out.dtype(), C => scatter_as::<C>(out, dim, index, &at, src, how, keep));
    Ok(())
}

fn scatter_as<C: Number>(
    out: &ViewMut<'_>,
    dim: usize,
    index: &View<'_>,
    at: &[i64],
    src: Source<'_>,
    how: Reduce,
    keep: bool,
) {
    let to = along(out.layout(), dim, index.sizes());
    let number = match src {
        Source::Number(s) => Some(C::from_scalar(s)),
        Source::Tensor(_) => None,
    };
    let from = match src {
        Source::Tensor(t) => Layout::strided(index.sizes(), t.strides(), t.layout().offset),
        Source::Number(_) => to.clone(),
    };
    let rows = Rows::logical(&[&to, &from]);
    let (t, s, step) = (rows.stride(0), rows.stride(1), out.strides()[dim] as isize);
    let mut cells = ScatterCells::<C>::new(out, how, keep);
    let mut next = 0;
    rows.for_each(|row| {
        for (i, &k) in at[next..next + rows.len()].iter().enumerate() {
            let i = i as isize;
            let value = match (number, src) {
                (None, Source::Tensor(view)) => {
                    let mut x = [C::default()];
                    // SAFETY: a cell of the source, which is not smaller than the index.
                    unsafe { load_row(view.dtype(), view.base(), row[1] + i * s, 1, &mut x) };
                    x[0]
                }
                (number, _) => number.unwrap_or_default(),
            };
            cells.add(row[0] + i * t + k as isize * step, value);
        }
        next += rows.len();
    });
    cells.finish();
}

/// Scratch bytes of [`gather`].
pub fn gather_room(count: i64) -> usize {
    room::<i64>(count as usize)
}

/// Scratch bytes of [`scatter`].
pub fn scatter_room(count: i64, (dtype, layout): Stored<'_>, how: Reduce, keep: bool) -> usize {
    let (counted, half) = tables(dtype, layout, how, keep);
    gather_room(count) + room::<u32>(counted) + compute_room(dtype, half as i64)
}

/// Lengths of the two tables: counts of writes to each cell, and unrounded reductions.
fn tables(dtype: DType, layout: &Layout, how: Reduce, keep: bool) -> (usize, usize) {
    let range = layout.cell_range();
    let span = (range.end - range.start) as usize;
    let half = matches!(dtype, DType::F16 | DType::BF16) && how != Reduce::Set;
    let counted = half || how == Reduce::Mean || (!keep && how != Reduce::Set);
    (if counted { span } else { 0 }, if half { span } else { 0 })
}

/// The cells of a result while they are reduced.
struct ScatterCells<'a, C: Copy> {
    out: &'a ViewMut<'a>,
    how: Reduce,
    /// Old elements take part.
    keep: bool,
    /// First cell of the tables.
    start: isize,
    /// How often each cell was scattered to, where that matters.
    counts: Temp<u32>,
    /// Reductions that are not rounded yet.
    wide: Temp<C>,
}

impl<'a, C: Number> ScatterCells<'a, C> {
    fn new(out: &'a ViewMut<'a>, how: Reduce, keep: bool) -> Self {
        let (counted, half) = tables(out.dtype(), out.layout(), how, keep);
        ScatterCells {
            out,
            how,
            keep,
            start: out.layout().cell_range().start as isize,
            counts: Temp::filled(counted, 0),
            wide: Temp::filled(half, C::default()),
        }
    }

    fn load(&self, cell: isize) -> C {
        let mut x = [C::default()];
        // SAFETY: a cell of the result.
        unsafe { load_row(self.out.dtype(), self.out.base(), cell, 1, &mut x) };
        x[0]
    }

    fn store(&self, cell: isize, x: C) {
        // SAFETY: a cell of the result.
        unsafe { store_row(self.out.dtype(), self.out.base(), cell, 1, &[x]) }
    }

    fn add(&mut self, cell: isize, value: C) {
        let slot = (cell - self.start) as usize;
        let first = match self.counts.get_mut(slot) {
            Some(n) => {
                *n = n.saturating_add(1);
                *n == 1
            }
            None => false,
        };
        let have = if first || self.wide.is_empty() { self.load(cell) } else { self.wide[slot] };
        let new = match self.how {
            _ if first && !self.keep => value,
            Reduce::Set => value,
            Reduce::Sum | Reduce::Mean => have.plus(value),
            Reduce::Prod => have.times(value),
            Reduce::Max => have.larger(value),
            Reduce::Min => have.smaller(value),
        };
        match self.wide.get_mut(slot) {
            Some(wide) => *wide = new,
            None => self.store(cell, new),
        }
    }

    fn finish(self) {
        for (slot, &n) in self.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let cell = self.start + slot as isize;
            let mut x = [self.wide.get(slot).copied().unwrap_or_else(|| self.load(cell))];
            if self.how == Reduce::Mean {
                round_through(self.out.dtype(), &mut x);
                x[0] = x[0].part(n as i64 + self.keep as i64);
            }
            self.store(cell, x[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{RawTensor, bf16};

    #[test]
    fn gathers_and_scatters_along_a_dimension() {
        let base = RawTensor::from_slice(&[1i32, 2, 3, 4, 5, 6], &[2, 3]);
        let index = RawTensor::from_slice(&[2i64, 0, 1, 1], &[2, 2]);
        let out = RawTensor::zeros(DType::I32, Layout::contiguous(&[2, 2]));
        gather(&base.read().view(), 1, &index.read().view(), Outside::Refused, &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<i32>(), [3, 1, 5, 5]);
        let values = out.read();
        let from = Source::Tensor(values.view());
        scatter(&base.write().view_mut(), 1, &index.read().view(), from, Reduce::Set, true).unwrap();
        assert_eq!(base.to_elements::<i32>(), [1, 2, 3, 4, 5, 6]);
        scatter(&base.write().view_mut(), 1, &index.read().view(), from, Reduce::Mean, false).unwrap();
        assert_eq!(base.to_elements::<i32>(), [1, 2, 3, 4, 5, 6]);
        scatter(&base.write().view_mut(), 1, &index.read().view(), Source::Number(Scalar::Int(3)), Reduce::Sum, true)
            .unwrap();
        assert_eq!(base.to_elements::<i32>(), [4, 2, 6, 4, 11, 6]);
        drop(values);
        let wrong = RawTensor::from_slice(&[3i64, 0, 0, 0], &[2, 2]);
        assert!(
            gather(&base.read().view(), 1, &wrong.read().view(), Outside::Refused, &out.write().view_mut()).is_err()
        );
        gather(
            &out.read().view(),
            1,
            &wrong.read().view(),
            Outside::Wrapped,
            &RawTensor::zeros(DType::I32, out.layout().clone()).write().view_mut(),
        )
        .unwrap();
    }

    #[test]
    fn half_types_are_rounded_once() {
        let sum = RawTensor::zeros(DType::BF16, Layout::contiguous(&[1]));
        let ones = RawTensor::from_slice(&vec![bf16::ONE; 1000], &[1000]);
        let index = RawTensor::zeros(DType::I64, Layout::contiguous(&[1000]));
        let ones = ones.read();
        let from = Source::Tensor(ones.view());
        scatter(&sum.write().view_mut(), 0, &index.read().view(), from, Reduce::Sum, true).unwrap();
        assert_eq!(sum.get(&[0]), Scalar::Float(1000.0));
    }
}
