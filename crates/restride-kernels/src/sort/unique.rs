//! Equal elements found: of all, or of neighbours; single elements, or slices along a dimension.

use crate::support::convert::gather;
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

/// One copy for all element types.
fn sort_rows(order: &mut [usize], compare: &dyn Fn(&usize, &usize) -> Ordering) {
    order.sort_by(compare);
}

fn grouped<C: Ordered>(all: &[C], length: usize, neighbours: bool) -> Groups {
    let rows: Vec<&[C]> = all.chunks_exact(length).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    if !neighbours {
        let compare = |a: &usize, b: &usize| {
            let pairs = rows[*a].iter().zip(rows[*b]);
            pairs.map(|(x, y)| x.order(*y)).find(|o| *o != Ordering::Equal).unwrap_or(Ordering::Equal)
        };
        sort_rows(&mut order, &compare);
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
}
