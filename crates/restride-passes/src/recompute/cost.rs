//! What it costs to run a node again: an estimate, which only decides what goes first.

use crate::memory::Model;
use restride_ir::{Graph, Node, Type, ValueId};

/// For each node in order: the bytes that it reads and writes, and the multiplications of what sums products. A view costs
/// nothing.
pub(super) fn costs(graph: &Graph, model: &Model) -> Vec<i64> {
    model.nodes.iter().map(|n| cost(graph, &graph.nodes[n.id])).collect()
}

fn cost(graph: &Graph, node: &Node) -> i64 {
    if node.op.is_view() {
        return 0;
    }
    let moved = node.operands().chain(node.results.iter().copied()).fold(0i64, |sum, v| {
        let (elements, size, _) = tensor(graph, v);
        sum.saturating_add(elements.saturating_mul(size))
    });
    moved.saturating_add(products(graph, node)).saturating_add(1)
}

/// How many products are summed: a matrix product of `[m, k]` and `[k, n]` has `m * k * n` of them, which is the root of the
/// product of the three sizes. A convolution has somewhat more than that.
fn products(graph: &Graph, node: &Node) -> i64 {
    let def = node.op.def();
    if def.pointwise || def.by_row || def.movement.is_some() {
        return 0;
    }
    let mut sizes: Vec<i64> =
        node.operands().map(|v| tensor(graph, v)).filter(|(_, _, matrix)| *matrix).map(|(n, _, _)| n).collect();
    sizes.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
    let [a, b, ..] = sizes[..] else { return 0 };
    let result = node.results.iter().map(|r| tensor(graph, *r).0).max().unwrap_or(0);
    (a as f64 * b as f64 * result as f64).sqrt().min(1e15) as i64
}

/// Elements of a tensor, the size of one, and whether it may be a factor of a product of matrices.
fn tensor(graph: &Graph, v: ValueId) -> (i64, i64, bool) {
    let Type::Tensor(t) = &graph.values[v].ty else { return (0, 0, false) };
    let Some(meta) = t.known() else { return (0, 0, false) };
    let elements = meta.layout.sizes.iter().fold(1i64, |n, &s| n.saturating_mul(s.max(0)));
    let floating = meta.dtype.is_float() || meta.dtype.is_complex();
    (elements, meta.dtype.size() as i64, floating && meta.layout.sizes.len() >= 2)
}
