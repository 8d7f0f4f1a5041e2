//! Walks over several layouts of equal sizes at once, a row at a time.

use crate::support::scratch::Temp;
use restride_tensor::{Dims, Layout, PerDim, View, ViewMut, by_stride};
use smallvec::SmallVec;

/// One for each layout.
type Steps = SmallVec<[isize; 4]>;

/// The rows of a box of indices: the fastest dimension is a row, the others are walked over. Dimensions that are
/// one run in every layout are merged, so fully contiguous layouts are a single row.
///
/// Made for every call of a kernel, however few its elements: so all is in flat lists, which need no memory of their own where
/// up to four layouts have up to six dimensions.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Elements in a row, and from one to the next in each layout.
    len: usize,
    strides: Steps,
    /// Sizes of the dimensions that are walked over, slowest first.
    outer: PerDim<usize>,
    /// Steps along these: each dimension's in each layout, dimension by dimension.
    steps: SmallVec<[isize; 20]>,
    start: Steps,
    empty: bool,
}

impl Rows {
    /// Rows in logical (row-major) order of the indices. The layouts broadcast to the first one's sizes.
    ///
    /// # Panics
    /// If a layout does not broadcast, or without layouts.
    pub fn logical(layouts: &[&Layout]) -> Rows {
        let rank = layouts[0].rank();
        Rows::ordered(layouts, &(0..rank).collect::<PerDim<usize>>())
    }

    /// Rows in whichever order suits the first layout, which is the one that is written. Logical order where it
    /// could matter, because several indices share a cell of it.
    ///
    /// # Panics
    /// As [`Rows::logical`].
    pub fn any_order(layouts: &[&Layout]) -> Rows {
        let written = layouts[0];
        let order = slowest_first(written);
        if !apart(written, &order) {
            return Rows::logical(layouts);
        }
        Rows::ordered(layouts, &order)
    }

    /// Whether no two indices of a layout share a cell, as far as its strides tell at a glance.
    pub(crate) fn apart(layout: &Layout) -> bool {
        Rows::apart_by_stride(layout).is_some()
    }

    /// The dimensions, the one with the largest stride first. `None` where [`Rows::apart`] is false.
    pub(crate) fn apart_by_stride(layout: &Layout) -> Option<PerDim<usize>> {
        let order = slowest_first(layout);
        apart(layout, &order).then_some(order)
    }

    fn ordered(layouts: &[&Layout], order: &[usize]) -> Rows {
        let sizes = &layouts[0].sizes[..];
        for l in &layouts[1..] {
            assert!(
                broadcasts(l, sizes),
                "{l} is walked together with sizes {sizes:?}, to which it does not broadcast"
            );
        }
        let mut rows = Rows {
            len: 1,
            strides: SmallVec::new(),
            outer: PerDim::new(),
            steps: SmallVec::new(),
            start: SmallVec::new(),
            empty: sizes.contains(&0),
        };
        for l in layouts {
            rows.strides.push(1);
            rows.start.push(l.offset as isize);
        }
        let mut first = true;
        for &d in order.iter().filter(|&&d| sizes[d] != 1) {
            let size = sizes[d] as usize;
            let step = |l: &Layout| step(l, sizes, d);
            // The run so far goes on in this dimension where each of its steps is over all of it.
            let goes_on =
                |(&have, l): (&isize, &&Layout)| step(l).checked_mul(size as isize).is_some_and(|all| all == have);
            if !first && rows.strides.iter().zip(layouts).all(goes_on) {
                rows.len *= size;
            } else {
                if !first {
                    rows.outer.push(rows.len);
                    rows.steps.extend_from_slice(&rows.strides);
                }
                rows.len = size;
            }
            first = false;
            rows.strides.iter_mut().zip(layouts).for_each(|(s, l)| *s = step(l));
        }
        rows
    }

    /// Elements in a row.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Cell of the first element in the first layout.
    pub fn first(&self) -> isize {
        self.start[0]
    }

    /// Whether the box has no elements.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// Cells from an element of a row to the next, in one of the layouts.
    pub fn stride(&self, layout: usize) -> isize {
        self.strides[layout]
    }

    /// Of two layouts: turns the walk so that a dimension in which the second one's elements are neighbours follows the rows, and
    /// takes it out of the walk. Its size and the steps along it in both layouts, if there is one.
    pub(crate) fn take_neighbours(&mut self) -> Option<(usize, [isize; 2])> {
        let d = (0..self.outer.len()).find(|d| self.steps[2 * d + 1] == 1)?;
        let size = self.outer.remove(d);
        let to = self.steps.remove(2 * d);
        let from = self.steps.remove(2 * d);
        Some((size, [to, from]))
    }

    /// Takes the dimension whose indices follow the rows most closely out of the walk: its size and the steps along it in each
    /// layout, if there is one.
    pub(crate) fn take_nearest(&mut self) -> Option<(usize, SmallVec<[isize; 4]>)> {
        let size = self.outer.pop()?;
        let first = self.steps.len() - self.start.len();
        Some((size, self.steps.drain(first..).collect()))
    }

    /// Calls `f` for each row with the cell of its first element in each layout.
    pub fn for_each(&self, mut f: impl FnMut(&[isize])) {
        let done: Result<(), std::convert::Infallible> = self.try_for_each(|at| {
            f(at);
            Ok(())
        });
        match done {
            Ok(()) => {}
        }
    }

    /// As [`Rows::for_each`], until an error.
    pub fn try_for_each<E>(&self, mut f: impl FnMut(&[isize]) -> Result<(), E>) -> Result<(), E> {
        if self.empty {
            return Ok(());
        }
        let (mut at, mut index) = self.begin();
        // `f` is called in one place, so that it becomes part of the loop.
        loop {
            f(&at)?;
            if !self.advance(&mut at, &mut index) {
                return Ok(());
            }
        }
    }

    /// The first row's cells and index. Like [`Rows::advance`] compiled once, not with each of hundreds of loops.
    #[inline(never)]
    fn begin(&self) -> (Steps, PerDim<usize>) {
        (Steps::from_slice(&self.start), PerDim::from_elem(0, self.outer.len()))
    }

    /// Goes on to the next row, if there is one.
    #[inline(never)]
    fn advance(&self, at: &mut [isize], index: &mut [usize]) -> bool {
        let mut d = index.len();
        while d > 0 {
            d -= 1;
            let steps = &self.steps[d * at.len()..][..at.len()];
            index[d] += 1;
            if index[d] < self.outer[d] {
                at.iter_mut().zip(steps).for_each(|(a, s)| *a += s);
                return true;
            }
            at.iter_mut().zip(steps).for_each(|(a, s)| *a -= s * (self.outer[d] as isize - 1));
            index[d] = 0;
        }
        false
    }
}

/// Dimensions, the one of the largest strides first.
pub(crate) fn slowest_first(layout: &Layout) -> PerDim<usize> {
    let mut order: PerDim<usize> = (0..layout.rank()).collect();
    by_stride(&mut order, |d| layout.strides[d]);
    order
}

/// The layout with channels last, if memory is in that order.
pub(crate) fn channels_last(l: &Layout) -> Option<Layout> {
    l.permute(&channels_last_dims(l)).ok().filter(Layout::is_contiguous)
}

/// The dimensions with channels last.
pub(crate) fn channels_last_dims(l: &Layout) -> Dims<i64> {
    std::iter::once(0).chain(2..l.rank() as i64).chain([1]).collect()
}

/// Whether each stride steps over all that the faster dimensions reach: no cell is written twice.
fn apart(layout: &Layout, order: &[usize]) -> bool {
    let mut reach = 0u64;
    for &d in order.iter().rev().filter(|&&d| layout.sizes[d] != 1) {
        let stride = layout.strides[d].unsigned_abs();
        if stride <= reach {
            return false;
        }
        reach = reach.saturating_add(stride.saturating_mul(layout.sizes[d].max(1) as u64 - 1));
    }
    true
}

/// Whether an operand may share cells with a result: told by the addresses between the first and the last of each.
pub(crate) fn may_share(x: &View<'_>, out: &ViewMut<'_>) -> bool {
    let span = |base: *const u8, layout: &Layout, size: usize| {
        let range = layout.cell_range();
        let at = |cell: i64| (base as i64).wrapping_add(cell.wrapping_mul(size as i64));
        (at(range.start), at(range.end))
    };
    let (a, b) = (span(x.base(), x.layout(), x.dtype().size()), span(out.base(), out.layout(), out.dtype().size()));
    a.0 < b.1 && b.0 < a.1
}

/// Whether a layout's sizes broadcast to these.
fn broadcasts(l: &Layout, sizes: &[i64]) -> bool {
    let own = &l.sizes[..];
    own.len() <= sizes.len() && own.iter().zip(&sizes[sizes.len() - own.len()..]).all(|(&n, &m)| n == m || n == 1)
}

/// Cells from an index of a dimension of the sizes, which is not of size 1, to the next in a layout that broadcasts to them.
fn step(l: &Layout, sizes: &[i64], d: usize) -> isize {
    match (d + l.rank()).checked_sub(sizes.len()) {
        Some(own) if l.sizes[own] != 1 => l.strides[own] as isize,
        _ => 0,
    }
}

/// All cells of a layout in logical order of the indices.
pub fn cells(layout: &Layout) -> Temp<isize> {
    let mut out = Temp::filled(layout.numel() as usize, 0isize);
    let rows = Rows::logical(&[layout]);
    let (n, step) = (rows.len(), rows.stride(0));
    let mut done = 0;
    rows.for_each(|at| {
        for (i, cell) in out[done..done + n].iter_mut().enumerate() {
            *cell = at[0] + i as isize * step;
        }
        done += n;
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(rows: &Rows) -> Vec<isize> {
        let mut out = Vec::new();
        rows.for_each(|at| out.extend((0..rows.len() as isize).map(|i| at[0] + i * rows.stride(0))));
        out
    }

    #[test]
    fn logical_rows_are_the_layouts_cells() {
        let base = Layout::contiguous(&[2i64, 3, 4]);
        let cut = base.slice(1, Some(&1), None, &1).unwrap();
        for l in [base.clone(), base.transpose(0, 2).unwrap(), cut, base.select(2, &1).unwrap()] {
            let want: Vec<isize> = l.cells().into_iter().map(|c| c as isize).collect();
            assert_eq!(cells(&Rows::logical(&[&l])), want, "{l}");
            let mut sorted = cells(&Rows::any_order(&[&l]));
            let mut all = want;
            sorted.sort_unstable();
            all.sort_unstable();
            assert_eq!(sorted, all, "{l}");
        }
    }

    #[test]
    fn runs_merge_only_where_all_layouts_are_one() {
        let a = Layout::contiguous(&[4i64, 5]);
        assert_eq!(Rows::logical(&[&a, &a]).len(), 20);
        let b = Layout::contiguous(&[5i64]).expand(&[4, 5]).unwrap();
        assert_eq!(Rows::logical(&[&a, &b]).len(), 5);
        let t = Layout::contiguous(&[5i64, 4]).transpose(0, 1).unwrap();
        assert_eq!(Rows::any_order(&[&t, &t]).len(), 20);
    }

    #[test]
    fn layouts_broadcast_to_the_first() {
        let out = Layout::contiguous(&[2i64, 3, 4]);
        for own in [&[4i64][..], &[], &[1], &[3, 1], &[2, 1, 4], &[1, 3, 4], &[2, 3, 4]] {
            let own = Layout { offset: 5, ..Layout::contiguous(own) };
            let mut got = Vec::new();
            let rows = Rows::logical(&[&out, &own]);
            rows.for_each(|at| got.extend((0..rows.len() as isize).map(|i| (at[1] + i * rows.stride(1)) as i64)));
            assert_eq!(got, own.expand(&out.sizes).unwrap().cells(), "{own}");
        }
    }

    #[test]
    #[should_panic(expected = "does not broadcast")]
    fn other_sizes_are_refused() {
        Rows::logical(&[&Layout::contiguous(&[2i64, 3]), &Layout::contiguous(&[2i64])]);
    }

    #[test]
    fn a_target_that_meets_itself_keeps_logical_order() {
        let windows = Layout::contiguous(&[5i64]).unfold(0, &3, &1).unwrap().transpose(0, 1).unwrap();
        let want: Vec<isize> = windows.cells().into_iter().map(|c| c as isize).collect();
        assert_eq!(cells(&Rows::any_order(&[&windows])), want);
    }

    #[test]
    fn nothing_and_one() {
        let none = Layout::contiguous(&[3i64, 0]);
        assert!(cells(&Rows::logical(&[&none])).is_empty() && Rows::logical(&[&none]).is_empty());
        assert_eq!(cells(&Rows::logical(&[&Layout::contiguous(&[] as &[i64])])), [0]);
        assert_eq!(cells(&Rows::logical(&[&Layout::strided(&[1i64, 1], &[7, 9], 3)])), [3]);
    }
}
