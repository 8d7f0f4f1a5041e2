//! Licences of a node's results to take over the memory of its operands.

use crate::{Arg, Graph, GraphId, IdArena, Node, ReuseKind, Tiling, ValueId, fused_body, fused_head, operands_of};
use smallvec::SmallVec;

/// A licence of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Licence {
    /// Position among [`Node::operands`].
    pub operand: usize,
    /// Position of the result.
    pub result: usize,
    /// Condition.
    pub kind: ReuseKind,
}

/// The licences of a node: those that its operator declares for arguments that are single tensors, those of a fused node by its
/// body.
pub fn licences(graphs: &IdArena<GraphId, Graph>, node: &Node) -> SmallVec<[Licence; 4]> {
    if let Some(body) = fused_body(node).and_then(|b| graphs.get(b)) {
        return of_body(body);
    }
    declared(node).collect()
}

/// The licences that a node's operator declares.
fn declared(node: &Node) -> impl Iterator<Item = Licence> {
    let single = |arg: u8| matches!(node.args.get(usize::from(arg)), Some(Arg::Value(_)));
    node.op.def().reuse.iter().filter(move |l| single(l.arg)).map(|l| Licence {
        operand: operands_of(&node.args, usize::from(l.arg)).start,
        result: usize::from(l.result),
        kind: l.kind,
    })
}

/// Whether a licence of this kind goes index by index, or row by row.
fn by_index(kind: ReuseKind) -> bool {
    matches!(kind, ReuseKind::SameIndex | ReuseKind::RowWise { .. })
}

/// Licences of a body. A tile writes an output when all calls before it have read; no later call may read the operand, and other
/// tiles may not read its cells.
fn of_body(body: &Graph) -> SmallVec<[Licence; 4]> {
    let mut out = SmallVec::new();
    let Ok(tiling) = Tiling::of(body) else { return out };
    // A head writes the last output first, and reads its operands while other outputs are written.
    let head = fused_head(body, &tiling).ok().flatten().and(body.order.first()).map(|id| &body.nodes[*id]);
    let ends = body.outputs.len() - 1;
    for (result, v) in body.output_values().enumerate() {
        let Some(at) = body.order.iter().position(|id| body.nodes[*id].results.contains(&v)) else { continue };
        let (maker, written) = (&body.nodes[body.order[at]], tiling.cut_of(v));
        for (operand, x) in body.inputs.iter().enumerate() {
            let later = body.order[at + 1..].iter().any(|id| body.nodes[*id].operands().any(|o| o == *x));
            let headed = head.is_some_and(|h| result == ends || h.operands().any(|o| o == *x));
            if later || headed || !one_tile(&tiling.cut_of(*x), &written) {
                continue;
            }
            if let Some(kind) = of_call(maker, v, *x) {
                out.push(Licence { operand, result, kind });
            }
        }
    }
    out
}

/// Whether a tile of an operand has the indices of the tile of a result, aligned at the last dimension.
fn one_tile(operand: &[Option<usize>], result: &[Option<usize>]) -> bool {
    let Some(before) = result.len().checked_sub(operand.len()) else { return false };
    result[..before].iter().all(Option::is_none) && operand == &result[before..]
}

/// The licence of a call for its result `v` over `x`: that of its operator, or of any kind if it does not read `x`.
fn of_call(node: &Node, v: ValueId, x: ValueId) -> Option<ReuseKind> {
    let result = node.results.iter().position(|r| *r == v)?;
    let mut found = Some(ReuseKind::SameIndex);
    for (k, arg) in node.args.iter().enumerate().filter(|(_, a)| a.values().any(|o| *o == x)) {
        let fits = |l: &&crate::Reuse| usize::from(l.arg) == k && usize::from(l.result) == result && by_index(l.kind);
        let declared = node.op.def().reuse.iter().find(fits).filter(|_| matches!(arg, Arg::Value(_)));
        match declared.map(|l| l.kind) {
            None => return None,
            Some(ReuseKind::SameIndex) => {}
            Some(kind) => found = Some(kind),
        }
    }
    found
}
