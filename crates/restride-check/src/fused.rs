//! Fused nodes in a placement: a result in cells that the body reads.
//!
//! Every tile runs the body's calls in order. A call reads its operands before or while it writes its results, index by index or row
//! by row as its operator declares. So cells of an operand may hold a result if no call behind the one that makes it reads them,
//! if that call copes, and if all tiles that read such a cell are the one that writes it.

use restride_ir::{Arg, Graph, ReuseKind, Tiling, ValueId};

/// Whether a result of a body may be written to cells of operands: `met` has those that share cells with it, and whether each index
/// has the same cell in both. The error is an operand that is read too late.
pub(crate) fn overlaps(body: &Graph, tiling: &Tiling, result: usize, met: &[(usize, bool)]) -> Result<(), usize> {
    for &(operand, same_cell) in met {
        if !same_cell || !allowed(body, tiling, result, operand).unwrap_or(false) {
            return Err(operand);
        }
    }
    Ok(())
}

fn allowed(body: &Graph, tiling: &Tiling, result: usize, operand: usize) -> Option<bool> {
    let Some(Arg::Value(written)) = body.outputs.get(result) else { return None };
    let read = *body.inputs.get(operand)?;
    // A head fills the place of the last output before other calls read, and reads its own operands while they write.
    let first = body.order.first().map(|id| &body.nodes[*id]).filter(|n| n.op.def().epilogue.is_some());
    if first.is_some_and(|head| result + 1 == body.outputs.len() || head.operands().any(|v| v == read)) {
        return Some(false);
    }
    let mut made = false;
    for (_, node) in body.ordered() {
        let reads = node.operands().any(|v| v == read);
        if made && reads {
            return Some(false);
        }
        if let Some(k) = node.results.iter().position(|r| r == written) {
            made = true;
            let copes = |(arg, a): (usize, &Arg)| {
                let here = a.values().any(|v| *v == read);
                let declared = node.op.def().reuse.iter().any(|l| {
                    let kind = matches!(l.kind, ReuseKind::SameIndex | ReuseKind::RowWise { .. });
                    kind && usize::from(l.arg) == arg && usize::from(l.result) == k
                });
                !here || declared && matches!(a, Arg::Value(_))
            };
            if !node.args.iter().enumerate().all(copes) {
                return Some(false);
            }
        }
    }
    Some(made && one_tile(tiling, *written, read))
}

/// Whether the tile that writes an index of a result is the only one that reads the same index of an operand.
fn one_tile(tiling: &Tiling, written: ValueId, read: ValueId) -> bool {
    let (w, r) = (tiling.cut_of(written), tiling.cut_of(read));
    // Indices are aligned at the last dimension; a dimension that only one of them has is of size 1, or they share no cells.
    let (w, r): (Vec<_>, Vec<_>) = (w.iter().rev().collect(), r.iter().rev().collect());
    (0..w.len().max(r.len())).all(|d| match (w.get(d), r.get(d)) {
        (Some(w), Some(r)) => w == r,
        (Some(only), None) | (None, Some(only)) => only.is_none(),
        (None, None) => true,
    })
}
