//! Gradients of pooling.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op, product, rule};
use restride_ir::{Arg, Expr};

fn max_pool<'c>(c: &'c Cx<'c>, name: &str) -> Vec<T<'c>> {
    let args: Vec<_> = (0..6).map(|i| c.raw(i)).collect();
    vec![c.call(name, &args)]
}

fn max_pool2d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    max_pool(c, "aten.max_pool2d_with_indices.default")
}

fn max_pool3d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    max_pool(c, "aten.max_pool3d_with_indices.default")
}

/// The numbers at argument `i` with `first` in front; an empty list stays empty.
fn before(c: &Cx<'_>, i: usize, first: i64) -> Arg<restride_ir::Val, Expr> {
    let mut given = c.nums(i);
    if !given.is_empty() {
        given.insert(0, Expr::Int(first));
    }
    Arg::Scalars(given)
}

/// Pools rows as images of height one.
fn max_pool1d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0).unsqueeze(-2);
    let (k, s, p, d) = (before(c, 1, 1), before(c, 2, 1), before(c, 3, 0), before(c, 4, 1));
    let args = [x.operand(), k, s, p, d, c.raw(5)];
    c.calls("aten.max_pool2d_with_indices.default", &args).into_iter().map(|t| t.squeeze(-2)).collect()
}

fn avg_pool1d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0).unsqueeze(-2);
    let args = [x.operand(), before(c, 1, 1), before(c, 2, 1), before(c, 3, 0), c.raw(4), c.raw(5)];
    vec![c.call("aten.avg_pool2d.default", &args).squeeze(-2)]
}

fn adaptive_avg_pool1d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0).unsqueeze(-2);
    vec![op!(c, "aten._adaptive_avg_pool2d.default", x, before(c, 1, 1)).squeeze(-2)]
}

fn adaptive_avg_pool2d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    vec![op!(c, "aten._adaptive_avg_pool2d.default", c.arg(0), c.raw(1))]
}

fn adaptive_avg_pool3d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    vec![op!(c, "aten._adaptive_avg_pool3d.default", c.arg(0), c.raw(1))]
}

fn adaptive_max_pool1d<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0).unsqueeze(-2);
    let args = [x.operand(), before(c, 1, 1)];
    c.calls("aten.adaptive_max_pool2d.default", &args).into_iter().map(|t| t.squeeze(-2)).collect()
}

/// Gradient of a pooling: its backward operator takes the gradient, the operand, and the numbers from argument 1 on.
fn pool_backward<'c>(c: &'c Cx<'c>, name: &str, numbers: usize, indices: bool) {
    let mut args = vec![c.grad().operand(), c.arg(0).operand()];
    args.extend((1..=numbers).map(|i| c.raw(i)));
    if indices {
        args.push(c.result_at(1).operand());
    }
    c.set(0, c.call(name, &args));
}

/// The backward of a linear pooling has the pooling as its gradient.
fn pool_again<'c>(c: &'c Cx<'c>, name: &str, numbers: usize) {
    c.zero(1);
    c.give(0, || {
        let mut args = vec![c.grad().operand()];
        args.extend((2..2 + numbers).map(|i| c.raw(i)));
        c.call(name, &args)
    });
}

/// Gradient of an indexed pooling's backward: gathers the elements at the indices.
fn indexed_again<'c>(c: &'c Cx<'c>, indices: usize, dims: usize) {
    c.zero(1);
    c.give(0, || {
        let (g, at) = (c.grad(), c.arg(indices));
        let flat = |t: T<'c>| {
            let mut sizes = t.sizes();
            let inner = sizes.split_off(sizes.len() - dims);
            sizes.push(product(&inner));
            t.reshape(sizes)
        };
        op!(c, "aten.gather.default", flat(g), -1, flat(at)).reshape(at.sizes())
    });
}

fn max_pool1d_value<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    max_pool1d(c).into_iter().take(1).collect()
}

/// The last `n` sizes.
fn tail(t: T<'_>, n: usize) -> Vec<Expr> {
    let sizes = t.sizes();
    sizes[sizes.len().saturating_sub(n)..].to_vec()
}

pub(crate) static GRADS: Rules = &[
    (&["max_pool1d"], form!(max_pool1d_value)),
    (&["max_pool1d_with_indices"], form!(max_pool1d)),
    (&["max_pool2d"], form!(max_pool2d)),
    (&["max_pool3d"], form!(max_pool3d)),
    (
        &["max_pool2d_with_indices"],
        rule!(|c| pool_backward(c, "aten.max_pool2d_with_indices_backward.default", 5, true)),
    ),
    (
        &["max_pool3d_with_indices"],
        rule!(|c| pool_backward(c, "aten.max_pool3d_with_indices_backward.default", 5, true)),
    ),
    (&["adaptive_max_pool2d"], rule!(|c| pool_backward(c, "aten.adaptive_max_pool2d_backward.default", 0, true))),
    (&["adaptive_max_pool3d"], rule!(|c| pool_backward(c, "aten.adaptive_max_pool3d_backward.default", 0, true))),
    (&["adaptive_max_pool1d"], form!(adaptive_max_pool1d)),
    (&["avg_pool1d"], form!(avg_pool1d)),
    (&["avg_pool2d"], rule!(|c| pool_backward(c, "aten.avg_pool2d_backward.default", 6, false))),
    (&["avg_pool3d"], rule!(|c| pool_backward(c, "aten.avg_pool3d_backward.default", 6, false))),
    (&["adaptive_avg_pool1d"], form!(adaptive_avg_pool1d)),
    (&["adaptive_avg_pool2d"], form!(adaptive_avg_pool2d)),
    (&["adaptive_avg_pool3d"], form!(adaptive_avg_pool3d)),
    (&["_adaptive_avg_pool2d"], rule!(|c| pool_backward(c, "aten._adaptive_avg_pool2d_backward.default", 0, false))),
    (&["_adaptive_avg_pool3d"], rule!(|c| pool_backward(c, "aten._adaptive_avg_pool3d_backward.default", 0, false))),
    (&["avg_pool2d_backward"], rule!(|c| pool_again(c, "aten.avg_pool2d.default", 6))),
    (&["avg_pool3d_backward"], rule!(|c| pool_again(c, "aten.avg_pool3d.default", 6))),
    (
        &["_adaptive_avg_pool2d_backward"],
        rule!(|c| {
            c.zero(1);
            c.give(0, || op!(c, "aten._adaptive_avg_pool2d.default", c.grad(), tail(c.arg(0), 2)));
        }),
    ),
    (
        &["_adaptive_avg_pool3d_backward"],
        rule!(|c| {
            c.zero(1);
            c.give(0, || op!(c, "aten._adaptive_avg_pool3d.default", c.grad(), tail(c.arg(0), 3)));
        }),
    ),
    (&["max_pool2d_with_indices_backward"], rule!(|c| indexed_again(c, 7, 2))),
    (&["max_pool3d_with_indices_backward"], rule!(|c| indexed_again(c, 7, 3))),
    (&["adaptive_max_pool2d_backward"], rule!(|c| indexed_again(c, 2, 2))),
    (&["adaptive_max_pool3d_backward"], rule!(|c| indexed_again(c, 2, 3))),
];
