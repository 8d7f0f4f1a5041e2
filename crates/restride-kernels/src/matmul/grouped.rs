//! Products in groups, each with a matrix of its own (mixtures of experts).

use crate::matmul::{Added, product};
use restride_tensor::{Layout, LayoutError, View, ViewMut};

/// Products of `a` and `b`, one for each of the groups that `ends` gives: the `i`-th of them is the end of group `i`, which starts where
/// the one before it ends.
///
/// | `a` | `b` | groups are | product `i` |
/// |---|---|---|---|
/// | 2-d | 3-d | rows of `a` and of the result | its rows by `b[i]` |
/// | 3-d | 2-d | columns of `b` and of the result | `a[i]` by its columns |
/// | 2-d | 2-d | columns of `a`, rows of `b` | `out[i]` |
/// | 3-d | 3-d | none, without `ends` | `a[i]` by `b[i]` |
///
/// Elements of the result behind the last end are zero. Source: `_grouped_mm` of PyTorch (`native/GroupedMMUtils.h`).
///
/// # Errors
/// Ends that do not ascend or are beyond what they divide.
pub fn grouped(
    a: &View<'_>,
    b: &View<'_>,
    ends: Option<&View<'_>>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let (batch_a, batch_b) = (a.sizes().len() == 3, b.sizes().len() == 3);
    let one = |i: i64, from: i64, to: i64| -> Result<(), String> {
        let layouts = || -> Result<(Layout, Layout, Layout), LayoutError> {
            let (a, b, out) = (a.layout(), b.layout(), out.layout());
            Ok(match (batch_a, batch_b) {
                (false, true) => (part(a, 0, from, to)?, b.select(0, &i)?, part(out, 0, from, to)?),
                (true, false) => (a.select(0, &i)?, part(b, 1, from, to)?, part(out, 1, from, to)?),
                (false, false) => (part(a, 1, from, to)?, part(b, 0, from, to)?, out.select(0, &i)?),
                (true, true) => (a.select(0, &i)?, b.select(0, &i)?, out.select(0, &i)?),
            })
        };
        let (la, lb, lo) = layouts().map_err(|e| e.0)?;
        // SAFETY: parts of the views' own layouts.
        let (a, b, out) = unsafe {
            (
                View::from_raw(a.base(), a.dtype(), &la),
                View::from_raw(b.base(), b.dtype(), &lb),
                ViewMut::from_raw(out.base(), out.dtype(), &lo),
            )
        };
        product(&a, &b, false, &Added::NONE, &out, threads)
    };
    let Some(ends) = ends else { return (0..a.sizes()[0]).try_for_each(|i| one(i, 0, 0)) };
    let (divided, most) = match (batch_a, batch_b) {
        (false, true) => (Some(0), a.sizes()[0]),
        (true, false) => (Some(1), b.sizes()[1]),
        _ => (None, b.sizes()[0]),
    };
    let mut start = 0;
    for i in 0..ends.sizes()[0] {
        let end = ends.get(&[i]).as_i64();
        if end < start || end > most {
            return Err(format!("the end {end} of group {i} does not lie between {start} and {most}"));
        }
        one(i, start, end)?;
        start = end;
    }
    let Some(dim) = divided else { return Ok(()) };
    let rest = part(out.layout(), dim, start, most).map_err(|e| e.0)?;
    // SAFETY: as above.
    let rest = unsafe { ViewMut::from_raw(out.base(), out.dtype(), &rest) };
    crate::movement::copy::zero(&rest);
    Ok(())
}

fn part(l: &Layout, dim: i64, start: i64, end: i64) -> Result<Layout, LayoutError> {
    l.slice(dim, Some(&start), Some(&end), &1)
}
