//! Walks over several layouts of equal sizes at once, a row at a time.

use crate::scratch::Temp;
use restride_tensor::{Layout, PerDim};
use smallvec::SmallVec;

type Steps = SmallVec<[isize; 4]>;

#[derive(Clone, Debug)]
struct Dimension {
    size: usize,
    steps: Steps,
}

/// The rows of a box of indices: the fastest dimension is a row, the others are walked over. Dimensions that lie
/// as one run in every layout are merged, so fully contiguous layouts are a single row.
#[derive(Clone, Debug)]
pub struct Rows {
    row: Dimension,
    outer: PerDim<Dimension>,
    start: Steps,
    empty: bool,
}

impl Rows {
    /// Rows in logical (row-major) order of the indices.
    ///
    /// # Panics
    /// If the layouts' sizes differ, or there are none.
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
        let mut order: PerDim<usize> = (0..written.rank()).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(written.strides[d].unsigned_abs()));
        // Each stride steps over all that the faster dimensions reach: no cell is written twice.
        let mut reach = 0u64;
        for &d in order.iter().rev().filter(|&&d| written.sizes[d] != 1) {
            let stride = written.strides[d].unsigned_abs();
            if stride <= reach {
                return Rows::logical(layouts);
            }
            reach = reach.saturating_add(stride.saturating_mul(written.sizes[d].max(1) as u64 - 1));
        }
        Rows::ordered(layouts, &order)
    }

    fn ordered(layouts: &[&Layout], order: &[usize]) -> Rows {
        let sizes = &layouts[0].sizes;
        for l in layouts {
            assert_eq!(l.sizes, *sizes, "layouts that are walked together have equal sizes");
        }
        let mut dims: PerDim<Dimension> = PerDim::new();
        for &d in order.iter().filter(|&&d| sizes[d] != 1) {
            let size = sizes[d] as usize;
            let steps: Steps = layouts.iter().map(|l| l.strides[d] as isize).collect();
            match dims.last_mut() {
                Some(last) if last.steps.iter().zip(&steps).all(|(&a, &b)| b.checked_mul(size as isize) == Some(a)) => {
                    *last = Dimension { size: last.size * size, steps };
                }
                _ => dims.push(Dimension { size, steps }),
            }
        }
        let row = dims.pop().unwrap_or_else(|| Dimension { size: 1, steps: layouts.iter().map(|_| 1).collect() });
        let start = layouts.iter().map(|l| l.offset as isize).collect();
        Rows { row, outer: dims, start, empty: sizes.contains(&0) }
    }

    /// Elements in a row.
    pub fn len(&self) -> usize {
        self.row.size
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// Cells from an element of a row to the next, in one of the layouts.
    pub fn stride(&self, layout: usize) -> isize {
        self.row.steps[layout]
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
        let mut at = self.start.clone();
        let mut index: PerDim<usize> = PerDim::from_elem(0, self.outer.len());
        loop {
            f(&at)?;
            let mut d = self.outer.len();
            loop {
                if d == 0 {
                    return Ok(());
                }
                d -= 1;
                let dim = &self.outer[d];
                index[d] += 1;
                if index[d] < dim.size {
                    at.iter_mut().zip(&dim.steps).for_each(|(a, s)| *a += s);
                    break;
                }
                at.iter_mut().zip(&dim.steps).for_each(|(a, s)| *a -= s * (dim.size as isize - 1));
                index[d] = 0;
            }
        }
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
