//! Gradients of losses.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, TermOperand, op, rule};

/// `nll_loss_forward(self, target, weight, reduction, ignore_index)`
fn nll_loss<'c>(c: &'c Cx<'c>, backward: &str) {
    // The total weight depends on the class weights alone, which have no gradient.
    if !c.has_grad(0) {
        return c.zero(0);
    }
    let args = [
        c.grad().operand(),
        c.arg(0).operand(),
        c.arg(1).operand(),
        c.raw(2),
        c.raw(3),
        c.raw(4),
        c.result_at(1).operand(),
    ];
    c.give(0, || c.call(backward, &args));
}

/// `binary_cross_entropy(self, target, weight, reduction)`
fn bce<'c>(c: &'c Cx<'c>) {
    c.give(0, || {
        op!(c, "aten.binary_cross_entropy_backward.default", c.grad(), c.arg(0), c.arg(1), c.raw(2), c.raw(3))
    });
    c.give(1, || {
        let x = c.arg(0);
        let mut g = ((-x).unary("aten.log1p.default") - x.log()) * c.grad();
        if let Some(w) = c.opt(2) {
            g = g * w;
        }
        if c.int_or(3, 1) == 1 { g.over(&x.numel()) } else { g }
    });
    if c.opt(2).is_some() && c.needs(2) {
        c.fail("the gradient of the weight of binary_cross_entropy");
    }
}

pub(crate) static GRADS: Rules = &[
    (&["nll_loss_forward"], rule!(|c| nll_loss(c, "aten.nll_loss_backward.default"))),
    (&["nll_loss2d_forward"], rule!(|c| nll_loss(c, "aten.nll_loss2d_backward.default"))),
    (&["binary_cross_entropy"], rule!(bce)),
];
