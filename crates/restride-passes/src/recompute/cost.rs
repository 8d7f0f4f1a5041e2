//! The cost of running a node again: an estimate that only ranks candidates.

use crate::memory_model::MemoryModel;
use restride_ir::{Graph, Node, Type, ValueId};

/// Multiplications of a matrix product, with operands in the caches, in the time of going through one byte of memory (one
/// core with AVX-512: 15 to 20 GB/s, 50 billion multiplications).
const BYTE: i64 = 3;

/// For each node in order: the bytes that it reads and writes, and its multiplications if it sums products. A view costs
/// nothing.
pub(super) fn costs(graph: &Graph, model: &MemoryModel) -> Vec<i64> {
    model.nodes.iter().map(|n| cost(graph, &graph.nodes[n.id])).collect()
}

fn cost(graph: &Graph, node: &Node) -> i64 {
    if node.op.is_view() {
        return 0;
    }
    let moved = node.operands().chain(node.results.iter().copied()).fold(0i64, |sum, v| {
        let t = tensor(graph, v);
        sum.saturating_add(t.elements.saturating_mul(t.size))
    });
    moved.saturating_mul(BYTE).saturating_add(products(graph, node)).saturating_add(1)
}

/// How many products are summed: a matrix product of `[m, k]` and `[k, n]` has `m * k * n` of them, which is the root of the
/// product of the three sizes. A convolution has somewhat more than that.
fn products(graph: &Graph, node: &Node) -> i64 {
    let Some((a, b)) = factors(graph, node) else { return 0 };
    let result = node.results.iter().map(|r| tensor(graph, *r).elements).max().unwrap_or(0);
    (a as f64 * b as f64 * result as f64).sqrt().min(1e15) as i64
}

/// The elements of the two largest operands of a node that sums products: they may be the factors of a matrix product.
fn factors(graph: &Graph, node: &Node) -> Option<(i64, i64)> {
    let def = node.op.def();
    if def.pointwise || def.movement.is_some() || node.op.is_view() {
        return None;
    }
    let mut sizes: Vec<i64> =
        node.operands().map(|v| tensor(graph, v)).filter(|t| t.matrix).map(|t| t.elements).collect();
    sizes.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
    match sizes[..] {
        [a, b, ..] => Some((a, b)),
        _ => None,
    }
}

/// The elements of a tensor; 0 if a size is a symbol.
#[derive(Default)]
struct Counted {
    elements: i64,
    /// Bytes of an element.
    size: i64,
    /// Whether it may be a factor of a product of matrices.
    matrix: bool,
}

fn tensor(graph: &Graph, v: ValueId) -> Counted {
    let Type::Tensor(t) = &graph.values[v].ty else { return Counted::default() };
    let floating = |d: restride_tensor::DType| d.is_float() || d.is_complex();
    let Some(meta) = t.known() else {
        return Counted { matrix: floating(t.dtype) && t.layout.sizes.len() >= 2, ..Counted::default() };
    };
    let elements = meta.layout.sizes.iter().fold(1i64, |n, &s| n.saturating_mul(s.max(0)));
    let matrix = floating(meta.dtype) && meta.layout.sizes.len() >= 2;
    Counted { elements, size: meta.dtype.size() as i64, matrix }
}
