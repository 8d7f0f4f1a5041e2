//! Rows in groups, each group multiplied by a matrix of its own (mixtures of experts).

use crate::matmul::{Added, product};
use restride_tensor::{Layout, LayoutError, View, ViewMut};

/// `out[start..end] = a[start..end] @ weights[i]`, where the `i`-th of `ends` is the end of group `i`, which starts where
/// the one before it ends. Rows after the last end are zero.
///
/// # Errors
/// Ends that do not ascend or are beyond the rows.
pub fn grouped(
    a: &View<'_>,
    weights: &View<'_>,
    ends: &View<'_>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let rows = a.sizes()[0];
    let mut start = 0;
    for i in 0..ends.sizes()[0] {
        let end = ends.get(&[i]).as_i64();
        if end < start || end > rows {
            return Err(format!("the end {end} of group {i} does not lie between {start} and {rows}"));
        }
        let part = |l: &Layout| narrow(l, start, end).map_err(|e| e.0);
        let (la, lo) = (part(a.layout())?, part(out.layout())?);
        let lw = weights.layout().select(0, &i).map_err(|e| e.0)?;
        // SAFETY: parts of the views' own layouts.
        let (pa, pw, po) = unsafe {
            (
                View::from_raw(a.base(), a.dtype(), &la),
                View::from_raw(weights.base(), weights.dtype(), &lw),
                ViewMut::from_raw(out.base(), out.dtype(), &lo),
            )
        };
        product(&pa, &pw, false, &Added::NONE, &po, threads)?;
        start = end;
    }
    let rest = narrow(out.layout(), start, rows).map_err(|e| e.0)?;
    // SAFETY: as above.
    let rest = unsafe { ViewMut::from_raw(out.base(), out.dtype(), &rest) };
    crate::movement::copy::zero(&rest);
    Ok(())
}

fn narrow(l: &Layout, start: i64, end: i64) -> Result<Layout, LayoutError> {
    l.slice(0, Some(&start), Some(&end), &1)
}
