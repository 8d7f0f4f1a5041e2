//! Elements picked by indices, and put back at them.

pub mod scatter;

use crate::support::convert::{CHUNK, Compute, Kind, load_row, store_row, with_word};
use crate::support::isa;
use crate::support::number::Number;
use crate::support::pack::with_compute;
use crate::support::rows::{Rows, cells, may_share};
use crate::support::runs;
use crate::support::scratch::{Temp, room};
use restride_tensor::{Dims, Layout, PerDim, View, ViewMut};
use smallvec::SmallVec;
use std::ops::Range;

/// Dimensions.
pub type SomeDims = PerDim<usize>;

/// Indexed dimensions of a tensor, and the others: in a selection, those of `before` come first, then those of
/// the indices' shape, then those of `after`.
#[derive(Debug)]
pub struct Axes {
    /// Dimensions that are indexed, in the order of `at`.
    pub indexed: SomeDims,
    /// Other dimensions, before those of the indices in a selection.
    pub before: SomeDims,
    /// Other dimensions, after them.
    pub after: SomeDims,
    /// Sizes of the indices.
    pub shape: Dims<i64>,
    /// For each indexed dimension, indices in row-major order, not negative.
    pub at: SmallVec<[Temp<i64>; 4]>,
}

impl Axes {
    /// One dimension indexed by a vector.
    pub fn one(rank: usize, dim: usize, at: Temp<i64>) -> Axes {
        let shape = Dims::<i64>::from_slice(&[at.len() as i64]);
        let mut all = SmallVec::new();
        all.push(at);
        let indexed = SomeDims::from_slice(&[dim]);
        Axes { indexed, before: (0..dim).collect(), after: (dim + 1..rank).collect(), shape, at: all }
    }

    /// Sizes of the selection of a tensor.
    pub fn sizes(&self, of: &[i64]) -> Dims<i64> {
        let rest = |dims: &[usize]| dims.iter().map(|&d| of[d]).collect::<Dims<i64>>();
        rest(&self.before).into_iter().chain(self.shape.iter().copied()).chain(rest(&self.after)).collect()
    }

    /// For each index, how far from the first cell of the indexed tensor it leads; the rest of its dimensions.
    fn points(&self, l: &Layout) -> Result<(Temp<isize>, Layout), String> {
        let all = || self.indexed.iter().chain(&self.before).chain(&self.after);
        let once = all().count() == l.rank() && (0..l.rank()).all(|d| all().any(|&x| x == d));
        if !once || self.at.len() != self.indexed.len() {
            return Err(format!("the dimensions of {l} are each indexed or not"));
        }
        let count = self.shape.iter().product::<i64>() as usize;
        let mut points = Temp::filled(count, 0isize);
        for (&d, at) in self.indexed.iter().zip(&self.at) {
            let (size, stride) = (l.sizes[d], l.strides[d] as isize);
            if at.len() != count {
                return Err("indices of different sizes".into());
            }
            if let Some(i) = first_outside(at, 0..size) {
                return Err(format!("index {i} is out of bounds for dimension {d} with size {size}"));
            }
            points.iter_mut().zip(at).for_each(|(point, &i)| *point += i as isize * stride);
        }
        let dims = || self.before.iter().chain(&self.after);
        let pick = |of: &Dims<i64>| dims().map(|&d| of[d]).collect::<Dims<i64>>();
        Ok((points, Layout { sizes: pick(&l.sizes), strides: pick(&l.strides), offset: l.offset }))
    }

    /// As [`Axes::points`], of the selection.
    fn picked(&self, l: &Layout) -> Result<(Temp<isize>, Layout), String> {
        let (b, s) = (self.before.len(), self.shape.len());
        if l.rank() != b + s + self.after.len() || l.sizes[b..b + s] != self.shape[..] {
            return Err(format!("{l} is not what is picked by indices of sizes {:?}", &self.shape[..]));
        }
        let own = Layout::strided(&l.sizes[b..b + s], &l.strides[b..b + s], 0);
        let rest = |of: &Dims<i64>| of[..b].iter().chain(&of[b + s..]).copied().collect::<Dims<i64>>();
        let points = cells(&own);
        Ok((points, Layout { sizes: rest(&l.sizes), strides: rest(&l.strides), offset: l.offset }))
    }
}

/// The first index that is not in the range.
pub fn first_outside(at: &[i64], range: Range<i64>) -> Option<i64> {
    let outside = isa::run(Outsiders { at, range: range.clone() });
    outside.then(|| at.iter().copied().find(|i| !range.contains(i))).flatten()
}

/// Whether indices are outside of a range.
struct Outsiders<'a> {
    at: &'a [i64],
    range: Range<i64>,
}
impl isa::Work for Outsiders<'_> {
    type Out = bool;
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) -> bool {
        let (from, to) = (self.range.start, self.range.end);
        // Without an exit, which would keep the loop from vectors.
        let mut any = false;
        for &i in self.at {
            any |= (i < from) | (i >= to);
        }
        any
    }
}

/// Rows of two boxes at each of several points: `f(cell of the first, cell of the second)`.
fn at_points(rows: &Rows, first: &[isize], second: &[isize], whole: bool, mut f: impl FnMut(isize, isize)) {
    if rows.is_empty() || first.is_empty() {
        return;
    }
    if whole {
        let mut start = (0, 0);
        rows.for_each(|at| start = (at[0], at[1]));
        first.iter().zip(second).for_each(|(a, b)| f(start.0 + a, start.1 + b));
        return;
    }
    for (a, b) in first.iter().zip(second) {
        rows.for_each(|at| f(at[0] + a, at[1] + b));
    }
}

/// Where the elements of the picked tensor `small` are in the indexed one `big`.
struct Walk {
    rows: Rows,
    big: Temp<isize>,
    small: Temp<isize>,
    /// The rest of the dimensions is one row.
    whole: bool,
}

fn walk(axes: &Axes, big: &Layout, small: &Layout) -> Result<Walk, String> {
    let (big, rest) = axes.points(big)?;
    let (small, own) = axes.picked(small)?;
    if rest.sizes != own.sizes {
        return Err(format!("sizes {:?} are not {:?}", &own.sizes[..], &rest.sizes[..]));
    }
    let rows = Rows::logical(&[&rest, &own]);
    let whole = !rows.is_empty() && rest.numel() as usize == rows.len();
    Ok(Walk { rows, big, small, whole })
}

impl Walk {
    /// The first cell of the picked tensor, if its cells at all points are neighbours and those of a row are not: then all points of one
    /// row's element are better taken together than the row of one point.
    fn across(&self) -> Option<isize> {
        let first = *self.small.first()?;
        let neighbours = self.rows.stride(1) != 1 || self.rows.len() == 1;
        let run = || self.small.iter().zip(first..).all(|(&cell, at)| cell == at);
        (neighbours && self.small.len() > 1 && run()).then_some(first)
    }

    /// Calls `f` for the cells of each row's element at the first index of all, in both tensors.
    fn for_each_element(&self, mut f: impl FnMut(isize, isize)) {
        let (s, t, n) = (self.rows.stride(0), self.rows.stride(1), self.rows.len() as isize);
        self.rows.for_each(|at| (0..n).for_each(|i| f(at[0] + i * s, at[1] + i * t)));
    }
}

/// Copies the elements at indices of a tensor.
pub fn take_at(src: &View<'_>, axes: &Axes, out: &ViewMut<'_>) -> Result<(), String> {
    if src.dtype() != out.dtype() {
        return Err("an index does not convert".into());
    }
    let w = walk(axes, src.layout(), out.layout())?;
    with_word!(src.dtype(), W => {
        let (from, to) = (src.base() as *const W, out.base() as *mut W);
        let (s, t, n) = (w.rows.stride(0), w.rows.stride(1), w.rows.len());
        if let Some(first) = w.across() {
            w.for_each_element(|a, b| {
                let (from, to) = (from.wrapping_offset(a), to.wrapping_offset(b + first));
                for (i, &point) in w.big.iter().enumerate() {
                    // SAFETY: cells of their views: indices were checked against the sizes. The result is memory of its own.
                    unsafe { to.add(i).write(from.wrapping_offset(point).read()) };
                }
            });
            return Ok(());
        }
        at_points(&w.rows, &w.big, &w.small, w.whole, |a, b| {
            // SAFETY: both rows are cells of their views: indices were checked against the sizes. The result is memory of its own.
            unsafe { runs::copy_row(from.wrapping_offset(a), s, to.wrapping_offset(b), t, n) };
        });
    });
    Ok(())
}

/// Writes values, of the sizes that the indices pick, at indices of a tensor, or adds them to the old elements. Where an
/// element is indexed several times the last value stays, or all are added one after the other.
pub fn put_at(values: &View<'_>, axes: &Axes, out: &ViewMut<'_>, add: bool) -> Result<(), String> {
    if values.dtype() != out.dtype() {
        return Err("an indexed write does not convert".into());
    }
    let w = walk(axes, out.layout(), values.layout())?;
    let (t, s, n) = (w.rows.stride(0), w.rows.stride(1), w.rows.len());
    if add {
        with_compute!(any out.dtype(), C => add_rows::<C>(values, out, &w, None));
        return Ok(());
    }
    with_word!(out.dtype(), W => {
        let (from, to) = (values.base() as *const W, out.base() as *mut W);
        at_points(&w.rows, &w.big, &w.small, w.whole, |a, b| {
            // SAFETY: both rows are cells of their views: indices were checked against the sizes. The values are not the result's.
            unsafe { runs::copy_row(from.wrapping_offset(b), s, to.wrapping_offset(a), t, n) };
        });
    });
    Ok(())
}

/// Adds rows, times a number, in the compute type: each sum is rounded to the element type.
fn add_rows<C: Number>(values: &View<'_>, out: &ViewMut<'_>, w: &Walk, alpha: Option<C>) {
    const LONG: usize = 256;
    let (t, s, n) = (w.rows.stride(0), w.rows.stride(1), w.rows.len());
    if out.dtype() == C::DTYPE && t == 1 && s == 1 && !may_share(values, out) {
        return at_points(&w.rows, &w.big, &w.small, w.whole, |a, b| {
            // SAFETY: both rows are neighbouring cells of their views, of the compute type: indices were checked against the
            // sizes. The values are not in the result's memory.
            let (have, more) = unsafe {
                (
                    std::slice::from_raw_parts_mut((out.base() as *mut C).wrapping_offset(a), n),
                    std::slice::from_raw_parts((values.base() as *const C).wrapping_offset(b), n),
                )
            };
            add_row(have, more, alpha);
        });
    }
    if out.dtype() == C::DTYPE
        && Rows::apart(out.layout())
        && !may_share(values, out)
        && let Some(first) = w.across()
    {
        // No other element of a row has its cells: each cell gets its terms in the order of the points all the same.
        return w.for_each_element(|a, b| {
            let (to, from) =
                ((out.base() as *mut C).wrapping_offset(a), (values.base() as *const C).wrapping_offset(b + first));
            for (i, &point) in w.big.iter().enumerate() {
                let to = to.wrapping_offset(point);
                // SAFETY: cells of their views, of the compute type: indices were checked against the sizes.
                unsafe {
                    let more = from.add(i).read();
                    to.write(to.read().plus(alpha.map_or(more, |alpha| alpha.times(more))));
                }
            }
        });
    }
    // A row whose elements share a cell is added one by one.
    let chunk = if t == 0 { 1 } else { LONG.min(n) };
    let (mut have, mut more) = ([C::default(); LONG], [C::default(); LONG]);
    at_points(&w.rows, &w.big, &w.small, w.whole, |a, b| {
        for start in (0..n).step_by(chunk) {
            let len = chunk.min(n - start);
            let (have, more) = (&mut have[..len], &mut more[..len]);
            let (to, from) = (a + start as isize * t, b + start as isize * s);
            // SAFETY: both rows are cells of their views: indices were checked against the sizes.
            unsafe {
                load_row(out.dtype(), out.base(), to, t, have);
                load_row(values.dtype(), values.base(), from, s, more);
                add_row(have, more, alpha);
                store_row(out.dtype(), out.base(), to, t, have);
            }
        }
    });
}

/// As [`AddRow`], by one copy of its code.
#[inline(never)]
fn add_row<C: Number>(have: &mut [C], more: &[C], alpha: Option<C>) {
    isa::run(AddRow { have, more, alpha });
}

/// A row added to another, times a number.
pub(crate) struct AddRow<'a, C> {
    /// The sum.
    pub have: &'a mut [C],
    /// What is added.
    pub more: &'a [C],
    /// The number; 1 without it.
    pub alpha: Option<C>,
}
impl<C: Number> isa::Work for AddRow<'_, C> {
    type Out = ();
    const VECTORS: bool = matches!(C::KIND, Kind::F32 | Kind::F64);
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let both = self.have.iter_mut().zip(self.more);
        match self.alpha {
            None => both.for_each(|(x, y)| *x = x.plus(*y)),
            Some(alpha) => both.for_each(|(x, y)| *x = x.plus(alpha.times(*y))),
        }
    }
}

/// Adds `alpha` times a tensor at indices along one dimension: products and sums in the compute type, each sum rounded
/// to the element type.
pub fn add_scaled(
    values: &View<'_>,
    axes: &Axes,
    alpha: restride_tensor::Scalar,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    if values.dtype() != out.dtype() {
        return Err("an indexed sum does not convert".into());
    }
    let w = walk(axes, out.layout(), values.layout())?;
    with_compute!(any out.dtype(), C => add_rows::<C>(values, out, &w, Some(C::from_scalar(alpha))));
    Ok(())
}

/// Cells of the elements at flat (row-major) indices.
fn flat_cells(l: &Layout, at: &[i64]) -> Result<Temp<isize>, String> {
    let numel = l.numel();
    if let Some(i) = first_outside(at, 0..numel) {
        return Err(format!("out of range: tried to access index {i} on a tensor of {numel} elements."));
    }
    // Most are, and a division an element is as much as all else.
    if l.is_contiguous() {
        return Ok(at.iter().map(|i| (l.offset + i) as isize).collect());
    }
    let cell = |&i: &i64| {
        let (mut rest, mut cell) = (i, l.offset);
        for (n, s) in l.sizes.iter().zip(&l.strides).rev() {
            cell += rest % n * s;
            rest /= n;
        }
        cell as isize
    };
    Ok(at.iter().map(cell).collect())
}

/// Copies elements at flat indices, in order, into a result's elements in row-major order.
pub fn take_flat(src: &View<'_>, at: &[i64], out: &ViewMut<'_>) -> Result<(), String> {
    let from = flat_cells(src.layout(), at)?;
    let to = cells(out.layout());
    if src.dtype() != out.dtype() || from.len() != to.len() {
        return Err("an index does not convert, nor change the number of elements".into());
    }
    with_word!(src.dtype(), W => for (&a, &b) in from.iter().zip(&to) {
        // SAFETY: both are cells of their views: indices were checked against the number of elements.
        unsafe { (out.base() as *mut W).offset(b).write((src.base() as *const W).offset(a).read()) }
    });
    Ok(())
}

/// Writes values in row-major order, the first ones of more, to elements at flat indices, or adds them; as
/// [`put_at`] where indices repeat.
pub fn put_flat(values: &View<'_>, at: &[i64], out: &ViewMut<'_>, add: bool) -> Result<(), String> {
    let to = flat_cells(out.layout(), at)?;
    let from = cells(values.layout());
    if values.dtype() != out.dtype() || from.len() < to.len() {
        return Err("an indexed write does not convert, nor repeat elements".into());
    }
    if !add {
        with_word!(out.dtype(), W => for (&a, &b) in from.iter().zip(&to) {
            // SAFETY: both are cells of their views: indices were checked against the number of elements.
            unsafe { (out.base() as *mut W).offset(b).write((values.base() as *const W).offset(a).read()) }
        });
        return Ok(());
    }
    with_compute!(any out.dtype(), C => for (&a, &b) in from.iter().zip(&to) {
        let (mut x, mut y) = ([C::default()], [C::default()]);
        // SAFETY: as above.
        unsafe {
            load_row(out.dtype(), out.base(), b, 1, &mut x);
            load_row(values.dtype(), values.base(), a, 1, &mut y);
            store_row(out.dtype(), out.base(), b, 1, &[x[0].plus(y[0])]);
        }
    });
    Ok(())
}

/// Flat (row-major) indices of the elements that are not zero.
pub fn nonzero(t: &View<'_>) -> Temp<i64> {
    fn of<C: Compute>(t: &View<'_>, out: &mut [i64]) -> usize {
        let rows = Rows::logical(&[t.layout()]);
        let (n, stride) = (rows.len(), rows.stride(0));
        let (mut room, mut i, mut found) = ([C::default(); CHUNK], 0, 0);
        rows.for_each(|at| {
            for start in (0..n).step_by(CHUNK) {
                let chunk = &mut room[..CHUNK.min(n - start)];
                // SAFETY: the offsets are of elements of the view, which is readable.
                unsafe { load_row(t.dtype(), t.base(), at[0] + start as isize * stride, stride, chunk) };
                // Every index is written, and the next one over it if its element is zero: no branch on what cannot be guessed.
                for x in chunk.iter() {
                    out[found] = i;
                    found += usize::from(x.truth());
                    i += 1;
                }
            }
        });
        found
    }
    let mut out = Temp::filled(t.numel(), 0i64);
    let found = with_compute!(any t.dtype(), C => of::<C>(t, &mut out));
    out.truncate(found);
    out
}

/// Scratch bytes of [`nonzero`] for `n` elements.
pub fn nonzero_room(n: i64) -> usize {
    room::<i64>(n as usize)
}

/// Splits ascending flat (row-major) indices: calls `last(i, index)` with the index of each in the last dimension, which has
/// this size, and leaves the flat indices in the other dimensions.
pub fn split_last(flat: &mut [i64], size: i64, mut last: impl FnMut(usize, i64)) {
    // The quotient of most is that of the one before.
    let (mut quotient, mut first) = (0, 0);
    for (i, at) in flat.iter_mut().enumerate() {
        if *at - first >= size {
            quotient = *at / size;
            first = quotient * size;
        }
        last(i, *at - first);
        *at = quotient;
    }
}

/// Scratch bytes of [`take_flat`].
pub fn take_flat_room(n: i64) -> usize {
    2 * room::<isize>(n as usize)
}

/// Scratch bytes of [`put_flat`].
pub fn put_flat_room(n: i64, values: i64) -> usize {
    room::<isize>(n as usize) + room::<isize>(values as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, RawTensor};

    #[test]
    fn what_is_put_is_taken_again_and_the_last_stays() {
        let base = RawTensor::from_slice(&(0..12i32).collect::<Vec<_>>(), &[3, 4]);
        let turned = base.alias(DType::I32, base.layout().transpose(0, 1).unwrap()).unwrap();
        let axes = Axes::one(2, 0, Temp::copied(&[3, 1]));
        let out = RawTensor::zeros(DType::I32, Layout::permuted(&[2, 3], &[1, 0]));
        take_at(&turned.read().view(), &axes, &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<i32>(), [3, 7, 11, 1, 5, 9]);
        let twice = Axes::one(2, 0, Temp::copied(&[2, 2]));
        put_at(&out.read().view(), &twice, &turned.write().view_mut(), false).unwrap();
        assert_eq!(base.to_elements::<i32>(), [0, 1, 1, 3, 4, 5, 5, 7, 8, 9, 9, 11]);
        put_at(&out.read().view(), &twice, &turned.write().view_mut(), true).unwrap();
        assert_eq!(base.to_elements::<i32>(), [0, 1, 5, 3, 4, 5, 17, 7, 8, 9, 29, 11]);
        assert!(
            take_at(&turned.read().view(), &Axes::one(2, 0, Temp::copied(&[4, 0])), &out.write().view_mut()).is_err()
        );
    }

    #[test]
    fn flat_indices_are_logical() {
        let base = RawTensor::from_slice(&(0..6u8).collect::<Vec<_>>(), &[2, 3]);
        let turned = base.alias(DType::U8, base.layout().transpose(0, 1).unwrap()).unwrap();
        let out = RawTensor::zeros(DType::U8, Layout::contiguous(&[3]));
        take_flat(&turned.read().view(), &[1, 5, 2], &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<u8>(), [3, 5, 1]);
        put_flat(&out.read().view(), &[0, 0, 0], &turned.write().view_mut(), true).unwrap();
        assert_eq!(base.to_elements::<u8>(), [9, 1, 2, 3, 4, 5]);
        assert_eq!(nonzero(&turned.read().view())[..], [0, 1, 2, 3, 4, 5]);
        assert!(take_flat(&turned.read().view(), &[6, 0, 0], &out.write().view_mut()).is_err());
    }

    #[test]
    fn flat_indices_have_one_in_each_dimension() {
        let flat = [0, 4, 5, 11, 12, 23];
        let want = [[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 2, 3], [1, 0, 0], [1, 2, 3]];
        let (mut rest, mut rows) = (flat, [[7; 3]; 6]);
        for (d, n) in [2, 3, 4].into_iter().enumerate().rev() {
            split_last(&mut rest, n, |i, at| rows[i][d] = at);
        }
        assert_eq!((rows, rest), (want, [0; 6]));
        // More elements than are looked at together, in rows of a part.
        let base = RawTensor::from_slice(&vec![1u8; 3000], &[2, 1500]);
        let part = base.alias(DType::U8, base.layout().slice(1, Some(&0), Some(&1400), &1).unwrap()).unwrap();
        assert_eq!(nonzero(&part.read().view())[..], (0..2800).collect::<Vec<i64>>());
    }
}
