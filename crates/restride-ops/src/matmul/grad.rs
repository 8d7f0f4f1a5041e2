//! Gradients of matrix products.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, op, product, rule};
use restride_ir::Expr;

/// A product of matrices, scaled by the number at argument `scale`.
fn mm<'c>(c: &'c Cx<'c>, a: usize, b: usize, product: &str, scale: Option<usize>) {
    let scaled = |t: T<'c>| scale.map_or(t, |s| t.times(c.conj_num(s)));
    c.give(a, || scaled(op!(c, product, c.grad(), c.arg(b).mh())));
    c.give(b, || scaled(op!(c, product, c.arg(a).mh(), c.grad())));
}

/// `beta * self + alpha * (a @ b)`
fn add_product<'c>(c: &'c Cx<'c>, product: &str) {
    c.give(0, || c.grad().times(c.conj_num(3)));
    mm(c, 1, 2, product, Some(4));
}

/// `addmv(self, mat, vec, beta, alpha)`
fn addmv<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad().times(c.conj_num(3)));
    mv(c, 1, 2, Some(4));
}

fn mv<'c>(c: &'c Cx<'c>, m: usize, v: usize, scale: Option<usize>) {
    let scaled = |t: T<'c>| scale.map_or(t, |s| t.times(c.conj_num(s)));
    c.give(m, || scaled(c.grad().unsqueeze(1) * c.arg(v).conj().unsqueeze(0)));
    c.give(v, || scaled(op!(c, "aten.mv.default", c.arg(m).mh(), c.grad())));
}

/// Flattens all dimensions but the last.
fn rows(t: T<'_>) -> T<'_> {
    let sizes = t.sizes();
    match sizes.split_last() {
        Some((last, lead)) if lead.len() != 1 => t.reshape(vec![product(lead), last.clone()]),
        _ => t,
    }
}

fn matmul<'c>(c: &'c Cx<'c>) {
    let (a, b, g) = (c.arg(0), c.arg(1), c.grad());
    match (a.rank(), b.rank()) {
        (1, 1) => {
            c.give(0, || g * b.conj());
            c.give(1, || g * a.conj());
        }
        (2, 2) => mm(c, 0, 1, "aten.mm.default", None),
        (ra, 2) if ra > 2 => {
            c.give(0, || g.matmul(b.mh()));
            c.give(1, || op!(c, "aten.mm.default", rows(a).mh(), rows(g)));
        }
        (1, _) => {
            let g = g.unsqueeze(-2);
            c.give(0, || g.matmul(b.mh()).squeeze(-2));
            c.give(1, || a.unsqueeze(-1).conj().matmul(g));
        }
        (_, 1) => {
            let g = g.unsqueeze(-1);
            c.give(0, || g.matmul(b.unsqueeze(0).conj()));
            c.give(1, || a.mh().matmul(g).squeeze(-1));
        }
        _ => {
            c.give(0, || g.matmul(b.mh()));
            c.give(1, || a.mh().matmul(g));
        }
    }
}

fn linear<'c>(c: &'c Cx<'c>) {
    let (x, w, g) = (c.arg(0), c.arg(1), c.grad());
    if w.rank() == 1 {
        c.give(0, || g.unsqueeze(-1) * w.conj());
        c.give(1, || g.unsqueeze(-1) * x.conj());
    } else {
        c.give(0, || g.matmul(w.conj()));
        c.give(1, || op!(c, "aten.mm.default", rows(g).mt(), rows(x).conj()));
    }
    if c.opt(2).is_some() {
        c.give(2, || g);
    }
}

/// `grouped_mm_fallback(input, weight, offs)`: multiplies the rows up to each offset by that group's matrix.
fn grouped<'c>(c: &'c Cx<'c>) {
    let (x, w, ends, g) = (c.arg(0), c.arg(1), c.arg(2), c.grad());
    c.give(0, || op!(c, "transformers.grouped_mm_fallback.default", g, w.mt(), ends));
    c.give(1, || {
        let row = op!(c, "aten.arange.default", &x.size(0)).unsqueeze(0);
        let zero = op!(c, "aten.full.default", [1], 0, ends.dtype());
        let groups = w.size(0);
        let starts = c.cat(&[zero, ends], 0).slice(0, Expr::Int(0), groups);
        let (after, before) = (row.than("ge", starts.unsqueeze(1)), row.than("lt", ends.unsqueeze(1)));
        let own = op!(c, "aten.logical_and.default", after, before);
        // The rows of each group; zeros elsewhere.
        x.unsqueeze(0).only(own.unsqueeze(-1)).mt().matmul(g)
    });
}

/// `_grouped_mm(self, mat2, offs)`: each gradient is a product in groups of the other kind.
fn grouped_any<'c>(c: &'c Cx<'c>) {
    let (x, w, g) = (c.arg(0), c.arg(1), c.grad());
    match c.opt(2) {
        Some(ends) => {
            c.give(0, || op!(c, "aten._grouped_mm.default", g, w.mt(), ends));
            c.give(1, || op!(c, "aten._grouped_mm.default", x.mt(), g, ends));
        }
        None => {
            c.give(0, || op!(c, "aten._grouped_mm.default", g, w.mt()));
            c.give(1, || op!(c, "aten._grouped_mm.default", x.mt(), g));
        }
    }
}

pub(crate) static GRADS: Rules = &[
    (&["_grouped_mm"], rule!(grouped_any)),
    (&["transformers::grouped_mm_fallback"], rule!(grouped)),
    (&["mm"], rule!(|c| mm(c, 0, 1, "aten.mm.default", None))),
    (&["bmm"], rule!(|c| mm(c, 0, 1, "aten.bmm.default", None))),
    (&["addmm"], rule!(|c| add_product(c, "aten.mm.default"))),
    (&["baddbmm"], rule!(|c| add_product(c, "aten.bmm.default"))),
    (&["matmul"], rule!(matmul)),
    (&["linear"], rule!(linear)),
    (&["mv"], rule!(|c| mv(c, 0, 1, None))),
    (&["addmv"], rule!(addmv)),
    (
        &["dot"],
        rule!(|c| {
            c.give(0, || c.grad() * c.arg(1).conj());
            c.give(1, || c.grad() * c.arg(0).conj());
        }),
    ),
    (
        &["vdot"],
        rule!(|c| {
            c.give(0, || c.grad().conj() * c.arg(1));
            c.give(1, || c.grad() * c.arg(0));
        }),
    ),
];
