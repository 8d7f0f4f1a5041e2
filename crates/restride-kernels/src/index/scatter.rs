//! Gathering and scattering along a dimension, with and without reductions.

use crate::index::first_outside;
use crate::movement::copy::lifted;
use crate::support::convert::{Kind, element, load_row, round_through, store_row, with_word};
use crate::support::isa;
use crate::support::number::Number;
use crate::support::pack::{Packed, Stored, compute_room, pack, packed_room, with_compute};
use crate::support::rows::Rows;
use crate::support::runs;
use crate::support::scratch::{Temp, room};
use crate::support::stack::Stack;
use restride_tensor::{DType, Dims, Layout, Scalar, View, ViewMut};

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
    match first_outside(at, 0..size) {
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

/// A layout with the dimensions along which all indices share their cells cut to one index.
fn distinct(l: &Layout) -> Layout {
    let mut out = l.clone();
    out.sizes.iter_mut().zip(&l.strides).filter(|(n, s)| **n > 1 && **s == 0).for_each(|(n, _)| *n = 1);
    out
}

/// For each element of an index of these sizes, its place among the distinct ones in row-major order.
fn places(distinct: &Layout, sizes: &[i64]) -> Result<Layout, String> {
    Layout::contiguous(&distinct.sizes).expand(sizes).map_err(|e| e.0)
}

/// `out[i][j] = src[index[i][j]][j]` for dimension 0, and so on. A 0-d operand counts as one of a single element.
pub fn gather(src: &View<'_>, dim: usize, index: &View<'_>, outside: Outside, out: &ViewMut<'_>) -> Result<(), String> {
    let (s, i, o) = (lifted(src.layout()), lifted(index.layout()), lifted(out.layout()));
    let own = distinct(&i);
    // SAFETY: the same cells in one more dimension, or the same layout; of the index each cell once.
    let (src, index, out) = unsafe { (&src.with_layout(&s), &index.with_layout(&own), &out.with_layout(&o)) };
    let mut at = pack::<i64>(index);
    if let (Outside::Wrapped, Some(&n @ 1..)) = (outside, src.sizes().get(dim)) {
        let mut wrapped = at.into_owned();
        wrapped.iter_mut().for_each(|i| *i = i.rem_euclid(n));
        at = Packed::Owned(wrapped);
    }
    check(src.layout(), dim, &i, &at)?;
    if src.dtype() != out.dtype() || out.sizes() != &i.sizes[..] {
        return Err("a gather gives elements of its source in the index's sizes".into());
    }
    if out.numel() == 0 {
        return Ok(());
    }
    let from = along(src.layout(), dim, &i.sizes);
    let rows = Rows::logical(&[out.layout(), &from, &places(&own, &i.sizes)?]);
    let (n, [t, s, next]) = (rows.len() as isize, [0, 1, 2].map(|l| rows.stride(l)));
    let step = src.strides()[dim] as isize;
    with_word!(src.dtype(), W => rows.for_each(|cells| {
        let to = (out.base() as *mut W).wrapping_offset(cells[0]);
        let from = (src.base() as *const W).wrapping_offset(cells[1]);
        let at = &at[cells[2] as usize..];
        if next == 0 {
            // SAFETY: both are cells of their views: the index was checked against the sizes.
            unsafe { runs::copy_row(from.wrapping_offset(at[0] as isize * step), s, to, t, n as usize) };
        } else if next == 1 && t == 1 && s == 0 && step == 1 {
            for (i, &k) in at[..n as usize].iter().enumerate() {
                // SAFETY: as above.
                unsafe { to.add(i).write(from.wrapping_offset(k as isize).read()) };
            }
        } else {
            for i in 0..n {
                let k = at[(i * next) as usize] as isize;
                // SAFETY: as above.
                unsafe { to.wrapping_offset(i * t).write(from.wrapping_offset(i * s + k * step).read()) };
            }
        }
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
    let own = distinct(&i);
    // SAFETY: the same cells in one more dimension, or the same layout; of the index each cell once.
    let (out, index) = unsafe { (&out.with_layout(&o), &index.with_layout(&own)) };
    let at = pack::<i64>(index);
    check(out.layout(), dim, &i, &at)?;
    let number;
    let (base, from) = match src {
        Source::Tensor(t) => {
            let l = lifted(t.layout());
            let small = l.rank() != i.rank() || l.sizes.iter().zip(&i.sizes).any(|(a, b)| a < b);
            if t.dtype() != out.dtype() || (small && !at.is_empty()) {
                return Err("what is scattered is of the result's type and not smaller than the index".into());
            }
            (t.base(), l)
        }
        Source::Number(x) => {
            let none: Dims<i64> = Dims::<i64>::from_elem(0, i.rank());
            number = element(out.dtype(), x);
            (number.as_ptr().cast::<u8>(), Layout::strided(&i.sizes, &none, 0))
        }
    };
    if at.is_empty() {
        return Ok(());
    }
    if out.dtype().is_complex() && matches!(how, Reduce::Max | Reduce::Min) {
        return Err(format!("amax and amin are not implemented for {}", out.dtype().torch_name()));
    }
    let (to, from) = (along(out.layout(), dim, &i.sizes), Layout::strided(&i.sizes, &from.strides, from.offset));
    let rows = Rows::logical(&[&to, &from, &places(&own, &i.sizes)?]);
    let writes = Writes { out, step: out.strides()[dim] as isize, at: &at, from: base, rows: &rows };
    match how {
        Reduce::Set => with_word!(out.dtype(), W => writes.set::<W>()),
        _ => with_compute!(any out.dtype(), C => writes.reduce::<C>(how, keep)),
    }
    Ok(())
}

/// The writes of a scatter, in logical order of the index.
struct Writes<'a> {
    out: &'a ViewMut<'a>,
    /// Cells from one index to the next along the dimension.
    step: isize,
    at: &'a [i64],
    from: *const u8,
    /// Of the result at index 0, of the source, and of the places in `at`.
    rows: &'a Rows,
}

/// Elements of a row that are reduced at a time.
const LONG: usize = 256;

/// Writes to a cell are counted up to this number, which with one more still is an `i32`.
const MOST: u32 = i32::MAX as u32 - 1;

impl Writes<'_> {
    fn set<W: Copy>(&self) {
        let (n, [t, s, next]) = (self.rows.len() as isize, [0, 1, 2].map(|l| self.rows.stride(l)));
        self.rows.for_each(|row| {
            let to = (self.out.base() as *mut W).wrapping_offset(row[0]);
            let from = (self.from as *const W).wrapping_offset(row[1]);
            let at = &self.at[row[2] as usize..];
            if next == 0 {
                // SAFETY: cells of the source, which is not smaller than the index, and of the result: the index was checked.
                return unsafe {
                    runs::copy_row(from, s, to.wrapping_offset(at[0] as isize * self.step), t, n as usize)
                };
            }
            for i in 0..n {
                let k = at[(i * next) as usize] as isize;
                // SAFETY: as above.
                unsafe { to.wrapping_offset(i * t + k * self.step).write(from.wrapping_offset(i * s).read()) };
            }
        });
    }

    /// Adds elements of the compute type, each to the cell that its own index names.
    fn add_each<C: Number>(&self) {
        let (n, [t, s, next]) = (self.rows.len() as isize, [0, 1, 2].map(|l| self.rows.stride(l)));
        self.rows.for_each(|row| {
            let to = (self.out.base() as *mut C).wrapping_offset(row[0]);
            let from = (self.from as *const C).wrapping_offset(row[1]);
            let at = &self.at[row[2] as usize..];
            for i in 0..n {
                let to = to.wrapping_offset(i * t + at[(i * next) as usize] as isize * self.step);
                // SAFETY: cells of the source, which is not smaller than the index, and of the result: the index was checked.
                unsafe { to.write(to.read().plus(from.wrapping_offset(i * s).read())) };
            }
        });
    }

    fn reduce<C: Number>(&self, how: Reduce, keep: bool) {
        let (n, [t, s, next]) = (self.rows.len(), [0, 1, 2].map(|l| self.rows.stride(l)));
        let mut cells = ScatterCells::<C>::new(self.out, how, keep);
        if how == Reduce::Sum && cells.direct && cells.counts.is_empty() && next != 0 {
            return self.add_each::<C>();
        }
        let mut values = Stack::<C, LONG>::new();
        let values = values.filled(n.min(LONG), C::default());
        self.rows.for_each(|row| {
            for start in (0..n).step_by(LONG) {
                let values = &mut values[..LONG.min(n - start)];
                let start = start as isize;
                // SAFETY: cells of the source, which is not smaller than the index.
                unsafe { load_row(self.out.dtype(), self.from, row[1] + start * s, s, values) };
                if next == 0 && t == 1 {
                    cells.add_run(row[0] + start + self.at[row[2] as usize] as isize * self.step, values);
                    continue;
                }
                for (i, &value) in (start..).zip(values.iter()) {
                    let k = self.at[(row[2] + i * next) as usize] as isize;
                    cells.add(row[0] + i * t + k * self.step, value);
                }
            }
        });
        cells.finish();
    }
}

/// Scratch bytes of indices that are read once each.
pub fn gather_room(count: i64) -> usize {
    room::<i64>(count as usize)
}

/// Scratch bytes of [`gather`] that refuses indices.
pub fn index_room((dtype, layout): Stored<'_>) -> usize {
    packed_room((dtype, &distinct(&lifted(layout))))
}

/// Scratch bytes of [`scatter`].
pub fn scatter_room(index: Stored<'_>, (dtype, layout): Stored<'_>, how: Reduce, keep: bool) -> usize {
    let (counted, half) = tables(dtype, layout, how, keep);
    index_room(index) + room::<u32>(counted) + compute_room(dtype, half as i64)
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
    /// The elements are of the compute type.
    direct: bool,
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
            direct: out.dtype() == C::DTYPE,
            how,
            keep,
            start: out.layout().cell_range().start as isize,
            counts: Temp::filled(counted, 0),
            wide: Temp::filled(half, C::default()),
        }
    }

    fn cell(&self, cell: isize) -> *mut C {
        (self.out.base() as *mut C).wrapping_offset(cell)
    }

    #[inline(always)]
    fn load(&self, cell: isize) -> C {
        if self.direct {
            // SAFETY: a cell of the result, of the compute type.
            return unsafe { self.cell(cell).read() };
        }
        let mut x = [C::default()];
        // SAFETY: a cell of the result.
        unsafe { load_row(self.out.dtype(), self.out.base(), cell, 1, &mut x) };
        x[0]
    }

    #[inline(always)]
    fn store(&self, cell: isize, x: C) {
        if self.direct {
            // SAFETY: a cell of the result, of the compute type.
            return unsafe { self.cell(cell).write(x) };
        }
        // SAFETY: a cell of the result.
        unsafe { store_row(self.out.dtype(), self.out.base(), cell, 1, &[x]) }
    }

    #[inline(always)]
    fn add(&mut self, cell: isize, value: C) {
        let slot = (cell - self.start) as usize;
        let first = match self.counts.get_mut(slot) {
            Some(n) => {
                let first = *n == 0;
                *n += u32::from(*n < MOST);
                first
            }
            None => false,
        };
        let have = if first || self.wide.is_empty() { self.load(cell) } else { self.wide[slot] };
        let new = if first && !self.keep { value } else { joined(self.how, have, value) };
        match self.wide.get_mut(slot) {
            Some(wide) => *wide = new,
            None => self.store(cell, new),
        }
    }

    /// As [`add`](ScatterCells::add), of up to [`LONG`] values and neighbouring cells.
    fn add_run(&mut self, cell: isize, values: &[C]) {
        let (slot, n) = ((cell - self.start) as usize, values.len());
        let counts = if self.counts.is_empty() { 0..0 } else { slot..slot + n };
        let (how, keep) = (self.how, self.keep);
        if self.direct {
            // SAFETY: `n` cells of the result, of the compute type; the values are in memory of their own.
            let have = unsafe { std::slice::from_raw_parts_mut(self.cell(cell), n) };
            return isa::run(JoinRun { have, values, counts: &mut self.counts[counts], how, keep });
        }
        let mut have = Stack::<C, LONG>::new();
        let have = have.filled(n, C::default());
        // SAFETY: cells of the result.
        unsafe { load_row(self.out.dtype(), self.out.base(), cell, 1, have) };
        if !self.wide.is_empty() {
            let before = self.wide[slot..].iter().zip(&self.counts[counts.clone()]);
            have.iter_mut().zip(before).filter(|(_, (_, n))| **n > 0).for_each(|(x, (wide, _))| *x = *wide);
        }
        isa::run(JoinRun { have, values, counts: &mut self.counts[counts], how, keep });
        match self.wide.is_empty() {
            // SAFETY: as above.
            true => unsafe { store_row(self.out.dtype(), self.out.base(), cell, 1, have) },
            false => self.wide[slot..slot + n].copy_from_slice(have),
        }
    }

    fn finish(self) {
        if self.wide.is_empty() && self.how != Reduce::Mean {
            return;
        }
        let own = i32::from(self.keep);
        // Between the cells of a layout with gaps are cells of other tensors.
        let dense = self.direct && self.out.numel() == self.counts.len();
        for (start, counts) in (0..).step_by(LONG).zip(self.counts.chunks(LONG)) {
            if dense && counts.iter().all(|n| *n > 0) {
                // SAFETY: cells of the result, of the compute type: all from the first to the last are.
                let row =
                    unsafe { std::slice::from_raw_parts_mut(self.cell(self.start + start as isize), counts.len()) };
                isa::run(MeanRun(row, counts, own));
                continue;
            }
            for (slot, &n) in (start..).zip(counts).filter(|(_, n)| **n > 0) {
                let cell = self.start + slot as isize;
                let mut x = [self.wide.get(slot).copied().unwrap_or_else(|| self.load(cell))];
                if self.how == Reduce::Mean {
                    round_through(self.out.dtype(), &mut x);
                    x[0] = x[0].part(i64::from(n as i32 + own));
                }
                self.store(cell, x[0]);
            }
        }
    }
}

#[inline(always)]
fn joined<C: Number>(how: Reduce, have: C, value: C) -> C {
    match how {
        Reduce::Set => value,
        Reduce::Sum | Reduce::Mean => have.plus(value),
        Reduce::Prod => have.times(value),
        Reduce::Max => have.larger(value),
        Reduce::Min => have.smaller(value),
    }
}

/// Values joined with the cells of a run, which are counted where there are counts.
struct JoinRun<'a, C> {
    have: &'a mut [C],
    values: &'a [C],
    counts: &'a mut [u32],
    how: Reduce,
    keep: bool,
}

impl<C: Number> JoinRun<'_, C> {
    #[inline(always)]
    fn each(self, f: impl Fn(C, C) -> C) {
        let cells = self.have.iter_mut().zip(self.values);
        if self.counts.is_empty() {
            return cells.for_each(|(x, &value)| *x = f(*x, value));
        }
        let own = u32::from(self.keep);
        for ((x, &value), n) in cells.zip(self.counts) {
            let joined = f(*x, value);
            *x = if *n + own == 0 { value } else { joined };
            *n += u32::from(*n < MOST);
        }
    }
}

impl<C: Number> isa::Work for JoinRun<'_, C> {
    type Out = ();
    const VECTORS: bool = matches!(C::KIND, Kind::F32 | Kind::F64);
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        match self.how {
            Reduce::Set => self.each(|x, y| joined(Reduce::Set, x, y)),
            Reduce::Sum | Reduce::Mean => self.each(|x, y| joined(Reduce::Sum, x, y)),
            Reduce::Prod => self.each(|x, y| joined(Reduce::Prod, x, y)),
            Reduce::Max => self.each(|x, y| joined(Reduce::Max, x, y)),
            Reduce::Min => self.each(|x, y| joined(Reduce::Min, x, y)),
        }
    }
}

/// Sums divided by their counts, each one larger by a number.
struct MeanRun<'a, C>(&'a mut [C], &'a [u32], i32);
impl<C: Number> isa::Work for MeanRun<'_, C> {
    type Out = ();
    const VECTORS: bool = matches!(C::KIND, Kind::F32 | Kind::F64);
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        // Counts are `i32`, which vectors of all processors convert.
        self.0.iter_mut().zip(self.1).for_each(|(x, &n)| *x = x.part(i64::from(n as i32 + self.2)));
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

    #[test]
    fn an_index_for_whole_rows_gives_what_one_for_each_element_gives() {
        let (rows, width) = (40i64, 300i64);
        let numbers = |n: i64| (0..n).map(|i| f64::from((i * 7919 % 13) as i32) - 6.0).collect::<Vec<_>>();
        let of_rows: Vec<i64> = (0..rows).map(|i| i * i % 7).collect();
        let each: Vec<i64> = of_rows.iter().flat_map(|i| std::iter::repeat_n(*i, width as usize)).collect();
        let each = RawTensor::from_slice(&each, &[rows, width]);
        let of_rows = RawTensor::from_slice(&of_rows, &[rows, 1]);
        let of_rows = of_rows.alias(DType::I64, of_rows.layout().expand(&[rows, width]).unwrap()).unwrap();
        let converted = |data: &[f64], dtype: DType, layout: Layout| {
            let (from, to) = (RawTensor::from_slice(data, &layout.sizes), RawTensor::zeros(dtype, layout));
            crate::support::convert::copy_convert(from.read().view(), &to.write().view_mut());
            to
        };
        // Whole, with gaps between rows, and with rows that are no runs.
        let wide = Layout::strided(&[8, width], &[width + 3, 1], 0);
        let layouts = [Layout::contiguous(&[8, width]), wide, Layout::permuted(&[8, width], &[1, 0])];
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::I32, DType::I64] {
            let src = converted(&numbers(rows * width), dtype, Layout::contiguous(&[rows, width]));
            for how in [Reduce::Set, Reduce::Sum, Reduce::Prod, Reduce::Mean, Reduce::Max, Reduce::Min] {
                for (layout, keep) in layouts.iter().flat_map(|l| [(l, true), (l, false)]) {
                    let made = [&each, &of_rows].map(|index| {
                        let out = converted(&numbers(8 * width), dtype, layout.clone());
                        let src = src.read();
                        let from = Source::Tensor(src.view());
                        scatter(&out.write().view_mut(), 0, &index.read().view(), from, how, keep).unwrap();
                        let got = crate::support::convert::gather::<f64>(out.read().view());
                        got.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
                    });
                    assert_eq!(made[0], made[1], "{dtype} {how:?} {layout} {keep}");
                }
            }
            let made = [&each, &of_rows].map(|index| {
                let out = RawTensor::zeros(dtype, Layout::contiguous(&[rows, width]));
                gather(&src.read().view(), 0, &index.read().view(), Outside::Refused, &out.write().view_mut()).unwrap();
                crate::support::convert::gather::<f64>(out.read().view()).to_vec()
            });
            assert_eq!(made[0], made[1], "{dtype}");
        }
    }
}
