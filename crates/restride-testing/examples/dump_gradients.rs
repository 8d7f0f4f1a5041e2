//! Writes gradients of every operator's sample calls, in double precision, as JSON lines: `scripts/grad_check.py` holds
//! them against PyTorch's. Arguments name operators; none means all.

#[path = "../../restride-ops/examples/dump_samples/json.rs"]
mod json;

use json::{argument, string, tensor};
use restride_ir::{Exactness, Op, SampleArg};
use restride_testing::differences::Case;
use restride_testing::rng::Rng;
use std::io::Write as _;

/// Samples of each operator.
const TRIED: usize = 6;

fn main() -> std::io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for &op in restride_ops::ops() {
        let Some(samples) = op.def().samples else { continue };
        let known = op.def().grad.is_some() && op.def().exactness != Exactness::Random && !op.is_mutable();
        if !known || !(wanted.is_empty() || wanted.iter().any(|w| w == op.name())) {
            continue;
        }
        let lines = samples().into_iter().enumerate().filter_map(|(i, s)| line(op, i, &s.args)).take(TRIED);
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// One call; nothing where it has no gradient to compare.
fn line(op: Op, index: usize, args: &[SampleArg]) -> Option<String> {
    let case = Case::new(op, args, &mut Rng::new(index as u64)).ok()??;
    let gradients = case.gradients().ok()?;
    let list = |items: Vec<String>| format!("[{}]", items.join(", "));
    let operands = case.args.iter().flat_map(|a| a.values()).count();
    let weights = case.inputs[operands..].iter().map(tensor).collect();
    let grads = gradients.iter().map(|(i, g)| format!("[{i}, {}]", tensor(g))).collect();
    Some(format!(
        "{{\"op\": {}, \"index\": {index}, \"args\": {}, \"weights\": {}, \"gradients\": {}}}",
        string(op.name()),
        list(case.args.iter().map(argument).collect()),
        list(weights),
        list(grads)
    ))
}
