//! Nodes between two pieces of a program: what they give has sizes, or is a number, that nobody knew before.

use super::RunCtx;
use crate::copy::{allocate, copy_into};
use crate::inputs::RunValue;
use crate::interp::{Options, call_once};
use restride_ir::{Arg, Binding, Error, Node, Result, RngKey, Scalar};
use restride_tensor::{Layout, RawTensor, self_overlaps};

/// Runs one node of a functional program on values; operands are in the order of [`Node::operands`]. Results are on memory
/// of their own.
///
/// # Errors
/// What the operator complains of, too few operands, a number that is not known.
pub fn run_learn(node: &Node, operands: &[RunValue], symbols: &Binding, ctx: RunCtx) -> Result<Vec<RunValue>> {
    if node.op.def().hop.is_some() {
        return Err(Error::unsupported(format!("{} with results whose sizes or numbers depend on data", node.op)));
    }
    let mut rest = operands.iter();
    let mut args: Vec<Arg<RunValue, Scalar>> = Vec::with_capacity(node.args.len());
    for arg in &node.args {
        args.push(arg.try_map(
            |_| rest.next().cloned().ok_or_else(|| Error::invalid(format!("{} is given too few operands", node.op))),
            |e| e.eval(symbols).map_err(|why| Error::invalid(format!("{e}: {why}"))),
        )?);
    }
    let key = RngKey { seed: ctx.seed, call: ctx.call, node: node.origin.key, iteration: ctx.iteration };
    let options = Options { seed: ctx.seed, call: ctx.call, threads: ctx.threads, strict: false };
    let results = call_once(node.op, &args, key, &options)?;
    let own = |value: RunValue| match value {
        RunValue::Tensor(t)
            if t.conj
                || t.neg
                || operands.iter().filter_map(RunValue::tensor).any(|o| o.storage().same(t.storage())) =>
        {
            copy_of(&t).map(RunValue::Tensor)
        }
        other => Ok(other),
    };
    results.into_iter().map(own).collect()
}

/// The elements on memory of their own.
fn copy_of(t: &RawTensor) -> Result<RawTensor> {
    let layout = match self_overlaps(t.layout()) {
        Some(false) => Layout { offset: 0, ..t.layout().clone() },
        _ => Layout::contiguous(&t.layout().sizes),
    };
    let own = allocate(t.dtype(), layout)?;
    copy_into(&own, t)?;
    Ok(own)
}
