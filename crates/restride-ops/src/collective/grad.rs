//! Gradients of collectives. The loss is the sum of all ranks' losses, as PyTorch's autograd forms have it.

use crate::gradient::terms::{Cx, T, TermOperand, rule};
use restride_ir::{Arg, Expr, Grad, Val};

pub(super) static ALL_REDUCE: Grad = rule!(all_reduce);
pub(super) static ALL_GATHER: Grad = rule!(all_gather);
pub(super) static REDUCE_SCATTER: Grad = rule!(reduce_scatter);
pub(super) static ALL_TO_ALL: Grad = rule!(all_to_all);

const ALL_REDUCE_OP: &str = "_c10d_functional.all_reduce.default";
const ALL_GATHER_OP: &str = "_c10d_functional.all_gather_into_tensor.default";
const REDUCE_SCATTER_OP: &str = "_c10d_functional.reduce_scatter_tensor.default";
const ALL_TO_ALL_OP: &str = "_c10d_functional.all_to_all_single.default";

/// The reduction at argument 1, if its gradient is linear in the gradients of all ranks.
fn linear<'c>(c: &'c Cx<'c>) -> Option<&'c str> {
    let op = c.str(1).unwrap_or("");
    if ["sum", "avg"].iter().any(|linear| op.eq_ignore_ascii_case(linear)) {
        return Some(op);
    }
    c.fail(format!("a collective that reduces by `{op}` has no gradient; `sum` and `avg` have one"));
    None
}

fn all_reduce<'c>(c: &'c Cx<'c>) {
    if linear(c).is_some() {
        c.set(0, op(c, ALL_REDUCE_OP, &[c.raw(1), c.raw(2)]));
    }
}

fn all_gather<'c>(c: &'c Cx<'c>) {
    let sum = Arg::Str("sum".into());
    c.set(0, op(c, REDUCE_SCATTER_OP, &[sum, c.raw(1), c.raw(2)]));
}

fn reduce_scatter<'c>(c: &'c Cx<'c>) {
    let Some(by) = linear(c) else { return };
    let gathered = op(c, ALL_GATHER_OP, &[c.raw(2), c.raw(3)]);
    let mean = by.eq_ignore_ascii_case("avg");
    c.set(0, if mean { gathered.over(&Expr::from(c.int(2))) } else { gathered });
}

fn all_to_all<'c>(c: &'c Cx<'c>) {
    c.set(0, op(c, ALL_TO_ALL_OP, &[c.raw(2), c.raw(1), c.raw(3)]));
}

/// A collective of the result's gradient.
fn op<'c>(c: &'c Cx<'c>, name: &str, numbers: &[Arg<Val, Expr>]) -> T<'c> {
    let mut args = vec![c.grad().operand()];
    args.extend_from_slice(numbers);
    c.call(name, &args)
}
