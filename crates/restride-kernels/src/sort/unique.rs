//! Equal elements found: of all, or of neighbours; single elements, or slices along a dimension.

use crate::sort::{sort_keys, sort_positions};
use crate::support::convert::{Kind, gather};
use crate::support::number::Ordered;
use crate::support::pack::with_compute;
use restride_tensor::View;
use std::cmp::Ordering;

/// Groups of equal rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Groups {
    /// A row of each group.
    pub first: Vec<i64>,
    /// The group of each row.
    pub inverse: Vec<i64>,
    /// Rows in each group.
    pub counts: Vec<i64>,
}

/// Groups rows of `length` elements of a tensor in row-major order: equal ones in sorted order, or runs of equal
/// neighbours. No-numbers equal nothing, and are sorted last.
pub fn groups(t: &View<'_>, length: usize, neighbours: bool) -> Result<Groups, String> {
    if length == 0 || !t.numel().is_multiple_of(length) {
        return Err(format!("{} elements are no rows of {length}", t.numel()));
    }
    with_compute!(real t.dtype(), C => {
        let all = gather::<C>(*t);
        Ok(grouped(&all, length, neighbours))
    })
}

fn grouped<C: Ordered>(all: &[C], length: usize, neighbours: bool) -> Groups {
    let rows: Vec<&[C]> = all.chunks_exact(length).collect();
    let mut order: Vec<usize> = Vec::new();
    if length == 1 && !neighbours {
        order = element_order(all);
    } else {
        order.extend(0..rows.len());
    }
    if length > 1 && !neighbours {
        let compare = |a: &usize, b: &usize| {
            let pairs = rows[*a].iter().zip(rows[*b]);
            pairs.map(|(x, y)| x.order(*y)).find(|o| *o != Ordering::Equal).unwrap_or(a.cmp(b))
        };
        sort_positions(&mut order, &compare);
    }
    let mut out = Groups { first: Vec::new(), inverse: vec![0; rows.len()], counts: Vec::new() };
    let mut last: Option<usize> = None;
    for row in order {
        match (last, out.counts.last_mut()) {
            (Some(before), Some(count)) if rows[before] == rows[row] => *count += 1,
            _ => {
                out.first.push(row as i64);
                out.counts.push(1);
                last = Some(row);
            }
        }
        out.inverse[row] = out.first.len() as i64 - 1;
    }
    out
}

/// The order of elements, equal ones as they come.
fn element_order<C: Ordered>(all: &[C]) -> Vec<usize> {
    if C::KIND == Kind::Int
        && let Some(order) = counted_order(all)
    {
        return order;
    }
    let mut keys: Vec<(i64, i64)> = all.iter().map(|x| x.key()).zip(0..).collect();
    sort_keys(&mut keys);
    keys.into_iter().map(|(_, i)| i as usize).collect()
}

/// [`element_order`] of integers that are close together, by counting them.
fn counted_order<C: Ordered>(all: &[C]) -> Option<Vec<usize>> {
    let least = all.iter().map(|x| x.to_i64()).min()?;
    let most = all.iter().map(|x| x.to_i64()).max()?;
    let span = usize::try_from(most.checked_sub(least)?).ok().filter(|&span| span / 2 <= all.len())?;
    // Where the elements of each value begin.
    let mut places = vec![0; span + 2];
    for x in all {
        places[(x.to_i64() - least) as usize + 1] += 1;
    }
    for i in 1..places.len() {
        places[i] += places[i - 1];
    }
    let mut order = vec![0; all.len()];
    for (i, x) in all.iter().enumerate() {
        let place = &mut places[(x.to_i64() - least) as usize];
        order[*place] = i;
        *place += 1;
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    #[test]
    fn equal_elements_share_a_group() {
        let x = RawTensor::from_slice(&[3i32, 1, 1, 3], &[4]);
        let g = groups(&x.read().view(), 1, false).unwrap();
        assert_eq!((g.first, g.inverse, g.counts), (vec![1, 0], vec![1, 0, 0, 1], vec![2, 2]));
        let g = groups(&x.read().view(), 1, true).unwrap();
        assert_eq!((g.first, g.inverse, g.counts), (vec![0, 1, 3], vec![0, 1, 1, 2], vec![1, 2, 1]));
        let g = groups(&x.read().view(), 2, false).unwrap();
        assert_eq!(g.inverse, [1, 0]);
        let nan = RawTensor::from_slice(&[f32::NAN, 0.0, f32::NAN, -0.0], &[4]);
        let g = groups(&nan.read().view(), 1, false).unwrap();
        assert_eq!((g.first, g.counts), (vec![1, 0, 2], vec![2, 1, 1]));
        assert!(groups(&x.read().view(), 3, false).is_err());
    }

    #[test]
    fn counted_integers_have_the_order_of_sorted_ones() {
        let numbers: Vec<i64> = (0..1000).map(|i| i * 7919 % 613 - 300).collect();
        let mut want: Vec<usize> = (0..numbers.len()).collect();
        want.sort_by_key(|&i| numbers[i]);
        assert_eq!(counted_order(&numbers).as_ref(), Some(&want));
        let spread: Vec<i64> = numbers.iter().map(|x| x << 40).collect();
        assert_eq!(counted_order(&spread), None);
        assert_eq!(element_order(&spread), want);
        assert_eq!(counted_order(&[i64::MIN, i64::MAX]), None);
        assert_eq!(element_order::<i64>(&[]), [0usize; 0]);
    }
}
