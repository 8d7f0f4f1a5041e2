//! Sorting along a dimension: whole lanes, their first elements, or one of them.
//!
//! Sorts are stable and no-numbers count as the largest, as in PyTorch. Ties have the lower index first, but for the
//! first elements of a lane, whose ties are as `top` leaves them.

pub mod search;
mod top;
pub mod unique;

use crate::support::convert::{load_row, store_row};
use crate::support::number::Ordered;
use crate::support::pack::Stored;
use crate::support::pack::with_compute;
use crate::support::rows::cells;
use crate::support::scratch::{Temp, room};
use restride_tensor::{DType, Layout, View, ViewMut};
use std::cmp::Ordering;

/// Sorts numbers, NaN last, -0 before 0.
// One copy for each type.
#[inline(never)]
pub(crate) fn sort_numbers<T: Ordered>(numbers: &mut [T]) {
    numbers.sort_unstable_by_key(|x| x.total_key());
}

/// Sorts pairs of a number's [key](Ordered::key) and its position.
// One copy for all users.
#[inline(never)]
pub(crate) fn sort_keys(keys: &mut [(i64, i64)]) {
    keys.sort_unstable();
}

/// Sorts positions by a comparison that leaves none equal; one copy for all comparisons.
pub(crate) fn sort_positions(order: &mut [usize], compare: &dyn Fn(&usize, &usize) -> Ordering) {
    order.sort_unstable_by(compare);
}

/// Which elements of each sorted lane are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SortPick {
    /// All.
    All {
        /// The largest first.
        descending: bool,
    },
    /// The first `k`.
    Top {
        /// How many.
        k: usize,
        /// The largest, the largest first.
        largest: bool,
        /// In order; otherwise as selection leaves them.
        sorted: bool,
    },
    /// The one that has `k` before it when sorted.
    Kth(usize),
}

impl SortPick {
    /// How many elements of a lane of `n` are wanted.
    fn wanted(self, n: usize) -> usize {
        match self {
            SortPick::All { .. } => n,
            SortPick::Top { k, .. } => k,
            SortPick::Kth(_) => 1,
        }
    }
}

/// First cells of the lanes along a dimension, and cells from one element of a lane to the next. A 0-d tensor is one
/// lane, and so is each element of a tensor that lacks the dimension.
fn lanes(l: &Layout, dim: usize, rank: usize) -> (Layout, isize) {
    let mut outer = l.clone();
    if l.rank() < rank || rank == 0 {
        return (outer, 1);
    }
    let stride = outer.strides.remove(dim) as isize;
    outer.sizes.remove(dim);
    (outer, stride)
}

/// Scratch bytes of [`sort`].
pub fn sort_room((dtype, l): Stored<'_>, dim: usize, pick: SortPick, values: bool, indices: bool) -> usize {
    fn of<C: Ordered>(n: usize, wanted: usize, values: bool, indices: bool) -> usize {
        let results = room::<C>(wanted) * values as usize + room::<i64>(wanted) * indices as usize;
        room::<C>(n) + room::<(i64, i64)>(n) + results
    }
    let (n, lanes) = (length(l, dim), lanes(l, dim, l.rank()).0.numel() as usize);
    let wanted = pick.wanted(n);
    let own = match dtype {
        DType::F64 => of::<f64>(n, wanted, values, indices),
        d if d.is_float() => of::<f32>(n, wanted, values, indices),
        _ => of::<i64>(n, wanted, values, indices),
    };
    own + room::<isize>(lanes) * (1 + values as usize + indices as usize)
}

/// Elements of a lane.
fn length(l: &Layout, dim: usize) -> usize {
    if l.rank() == 0 { 1 } else { l.sizes[dim] as usize }
}

/// Sorts each lane along a dimension and writes the wanted elements and their positions. Results have the wanted number
/// of elements along it (for [`SortPick::Kth`] they may lack the dimension).
pub fn sort(
    src: &View<'_>,
    dim: usize,
    pick: SortPick,
    values: Option<&ViewMut<'_>>,
    indices: Option<&ViewMut<'_>>,
) -> Result<(), String> {
    let rank = src.sizes().len();
    let n = length(src.layout(), dim);
    let wanted = pick.wanted(n);
    let outs = [values, indices];
    for out in outs.iter().flatten() {
        let l = out.layout();
        let length = if l.rank() < rank || rank == 0 { 1 } else { l.sizes[dim] as usize };
        if l.rank() > rank || l.rank() + 1 < rank {
            return Err(format!("results of sizes {:?} do not fit a sort of {:?}", out.sizes(), src.sizes()));
        }
        let (all, own) = (lanes(src.layout(), dim, rank).0.numel(), lanes(l, dim, rank).0.numel());

        if length != wanted || (all != own && wanted > 0) || (wanted > n && all > 0) {
            return Err(format!("results of sizes {:?} do not fit a sort of {:?}", out.sizes(), src.sizes()));
        }
    }
    if wanted == 0 || values.is_some_and(|v| v.dtype() != src.dtype()) {
        return if wanted == 0 { Ok(()) } else { Err("a sort does not convert".into()) };
    }
    with_compute!(real src.dtype(), C => sort_lanes::<C>(src, dim, pick, n, values, indices));
    Ok(())
}

fn sort_lanes<C: Ordered>(
    src: &View<'_>,
    dim: usize,
    pick: SortPick,
    n: usize,
    values: Option<&ViewMut<'_>>,
    indices: Option<&ViewMut<'_>>,
) {
    let rank = src.sizes().len();
    let firsts = |l: &Layout| {
        let (outer, step) = lanes(l, dim, rank);
        (cells(&outer), step)
    };
    let (from, step) = firsts(src.layout());
    let to = |out: Option<&ViewMut<'_>>| out.map(|o| firsts(o.layout()));
    let (value_lanes, index_lanes) = (to(values), to(indices));
    let wanted = pick.wanted(n);
    let mut row = Temp::filled(n, C::default());
    let mut order = Temp::filled(n, (0i64, 0i64));
    // Complements of keys have the largest number first. They are made without a branch: signs are hard to foresee.
    let falling = matches!(pick, SortPick::All { descending: true } | SortPick::Top { largest: true, .. });
    let flip = -(falling as i64);
    let mut sorted = values.map(|_| Temp::filled(wanted, C::default()));
    let mut positions = indices.map(|_| Temp::filled(wanted, 0i64));
    for (lane, &cell) in from.iter().enumerate() {
        // SAFETY: a lane of the operand.
        unsafe { load_row(src.dtype(), src.base(), cell, step, &mut row) };
        for (place, (x, at)) in order.iter_mut().zip(row.iter().zip(0..)) {
            *place = (x.key() ^ flip, at);
        }
        let chosen = match pick {
            SortPick::All { .. } => {
                sort_keys(&mut order);
                &order[..]
            }
            SortPick::Top { k, sorted, .. } => {
                top::first(&mut order, k, sorted);
                &order[..k]
            }
            SortPick::Kth(k) => {
                order.select_nth_unstable(k);
                &order[k..=k]
            }
        };
        if let (Some(out), Some((cells, step)), Some(sorted)) = (values, &value_lanes, &mut sorted) {
            sorted.iter_mut().zip(chosen).for_each(|(to, x)| *to = row[x.1 as usize]);
            // SAFETY: a lane of the result, of as many elements.
            unsafe { store_row(out.dtype(), out.base(), cells[lane], *step, sorted) };
        }
        if let (Some(out), Some((cells, step)), Some(positions)) = (indices, &index_lanes, &mut positions) {
            positions.iter_mut().zip(chosen).for_each(|(to, x)| *to = x.1);
            // SAFETY: as above.
            unsafe { store_row(out.dtype(), out.base(), cells[lane], *step, positions) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, RawTensor};

    #[test]
    fn lanes_are_sorted_with_no_numbers_last_and_ties_in_order() {
        let x = RawTensor::from_slice(&[2.0f32, f32::NAN, 1.0, 2.0, -0.0, 0.0], &[6]);
        let (v, i) =
            (RawTensor::zeros(DType::F32, x.layout().clone()), RawTensor::zeros(DType::I64, x.layout().clone()));
        let run =
            |pick| sort(&x.read().view(), 0, pick, Some(&v.write().view_mut()), Some(&i.write().view_mut())).unwrap();
        run(SortPick::All { descending: false });
        assert_eq!(i.to_elements::<i64>(), [4, 5, 2, 0, 3, 1]);
        run(SortPick::All { descending: true });
        assert_eq!(i.to_elements::<i64>(), [1, 0, 3, 2, 4, 5]);
        let (v, i) = (
            RawTensor::zeros(DType::F32, Layout::contiguous(&[2])),
            RawTensor::zeros(DType::I64, Layout::contiguous(&[2])),
        );
        sort(
            &x.read().view(),
            0,
            SortPick::Top { k: 2, largest: false, sorted: true },
            Some(&v.write().view_mut()),
            Some(&i.write().view_mut()),
        )
        .unwrap();
        // As PyTorch: the zeros are equal, and selection leaves the second in front.
        assert_eq!(i.to_elements::<i64>(), [5, 4]);
        let one = RawTensor::zeros(DType::I64, Layout::contiguous(&[] as &[i64]));
        sort(&x.read().view(), 0, SortPick::Kth(3), None, Some(&one.write().view_mut())).unwrap();
        assert_eq!(one.to_elements::<i64>(), [0]);
        assert!(
            sort(
                &x.read().view(),
                0,
                SortPick::Top { k: 3, largest: true, sorted: true },
                Some(&v.write().view_mut()),
                None
            )
            .is_err()
        );
    }

    #[test]
    fn any_dimension_of_any_layout() {
        let x = RawTensor::from_slice(&[3i32, 1, 2, 0, 5, 4], &[3, 2]);
        let t = x.alias(DType::I32, x.layout().transpose(0, 1).unwrap()).unwrap();
        let v = RawTensor::zeros(DType::I32, Layout::contiguous(&[2, 3]));
        sort(&t.read().view(), 1, SortPick::All { descending: false }, Some(&v.write().view_mut()), None).unwrap();
        assert_eq!(v.to_elements::<i32>(), [2, 3, 5, 0, 1, 4]);
    }
}
