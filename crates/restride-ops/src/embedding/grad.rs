//! Gradients of embeddings.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, op, rule};
use restride_ir::{DType, Dim, Expr};

fn embedding<'c>(c: &'c Cx<'c>) {
    let rows = c.arg(0).size(0);
    c.set(0, op!(c, "aten.embedding_dense_backward.default", c.grad(), c.arg(1), rows, c.raw(2), c.raw(3)));
}

/// Number of occurrences of each index into a table of `rows` rows.
fn frequency<'c>(at: T<'c>, rows: Expr, dtype: DType) -> T<'c> {
    let c = at.cx();
    let filled = |n: Expr, with: i64| op!(c, "aten.full.default", vec![n], with, dtype);
    let counts = op!(c, "aten.index_add.default", filled(rows, 0), 0, at, filled(at.numel(), 1));
    op!(c, "aten.index_select.default", counts, 0, at)
}

/// `embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)`
fn embedding_again<'c>(c: &'c Cx<'c>) {
    let (padding, at) = (c.int(3), c.arg(1));
    c.give(0, || {
        let mut rows = op!(c, "aten.embedding.default", c.grad(), at);
        if c.flag(4) {
            let flat = at.reshape(vec![at.numel()]).to(DType::I64);
            rows = rows / frequency(flat, c.num(2), rows.dtype()).reshape(at.sizes()).unsqueeze(-1);
        }
        if padding < 0 { rows } else { rows.except(at.is("eq", padding).unsqueeze(-1)) }
    });
}

/// `embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
/// padding_idx)`; a negative padding index counts from the end if `wraps`, otherwise it means none.
fn embedding_bag<'c>(c: &'c Cx<'c>, wraps: bool) {
    let (table, at, g) = (c.arg(0), c.arg(1).to(DType::I64), c.grad());
    if at.rank() != 1 {
        return c.fail("the gradient of bags that are given as rows");
    }
    let mode = c.int(4);
    if mode == 2 {
        // Source rows of the maxima; an empty bag has none.
        let empty = c.result_at(2).is("eq", 0).unsqueeze(1);
        return c.give(0, || {
            op!(c, "aten.scatter_add.default", table.zeros_like(), 0, c.result_at(3).to(DType::I64), g.except(empty))
        });
    }
    let mut offsets = c.arg(2).to(DType::I64);
    if c.flag(7) {
        offsets = offsets.slice(0, Expr::Int(0), offsets.size(0).minus(&Expr::Int(1)));
    }
    let place = op!(c, "aten.arange.default", &at.size(0));
    let bag = op!(c, "aten.searchsorted.Tensor", offsets, place, false, true) - 1.0;
    let bag = bag.to(DType::I64);
    let padding = match c.int_or(8, -1) {
        n if n < 0 && wraps && !c.is_none(8) => Some(table.size(0).plus(&Expr::Int(n))),
        n if n < 0 => None,
        n => Some(Expr::Int(n)),
    };
    let skipped = padding.map(|p| at.is("eq", p));
    let kept = |t: T<'c>, mask: Option<T<'c>>| mask.map_or(t, |m| t.except(m));
    let mut rows = op!(c, "aten.index_select.default", g, 0, bag);
    if mode == 1 {
        let ones = op!(c, "aten.full.default", vec![at.size(0)], 1, g.dtype());
        let none = op!(c, "aten.full.default", vec![g.size(0)], 0, g.dtype());
        let n = op!(c, "aten.index_add.default", none, 0, bag, kept(ones, skipped));
        let n = op!(c, "aten.clamp_min.default", n, 1);
        rows = rows / op!(c, "aten.index_select.default", n, 0, bag).unsqueeze(1);
    }
    let weights = c.opt(6);
    c.give(0, || {
        let mut rows = weights.map_or(rows, |w| rows * w.unsqueeze(1));
        if c.flag(3) {
            rows = rows / frequency(at, table.size(0), rows.dtype()).unsqueeze(1);
        }
        let rows = kept(rows, skipped.map(|m| m.unsqueeze(1)));
        op!(c, "aten.index_add.default", table.zeros_like(), 0, at, rows)
    });
    if weights.is_some() {
        c.give(6, || {
            let own = op!(c, "aten.index_select.default", table, 0, at);
            kept((rows * own).sum(vec![1], false), skipped)
        });
    }
}

pub(crate) static GRADS: Rules = &[
    (&["_embedding_bag", "_embedding_bag_forward_only"], rule!(|c| embedding_bag(c, false))),
    (&["embedding_bag.padding_idx", "embedding_bag"], rule!(|c| embedding_bag(c, true))),
    (&["embedding"], rule!(embedding)),
    (&["embedding_dense_backward"], rule!(embedding_again)),
];
