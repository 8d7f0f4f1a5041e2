//! Writes the sample calls of every operator, with what they give here, as JSON lines: `scripts/check/ops_check.py` replays
//! them in PyTorch. Arguments name operators or their beginnings (`aten.add aten.mul.Tensor`); none means all.

mod json;
mod run;

use json::{argument, number, string, tensor};
use restride_ir::{Arg, Exactness, Grad, Op, SampleArg};
use restride_tensor::RawTensor;
use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for &op in restride_ops::ops() {
        let name = op.name();
        let named = |w: &String| name == w || name.strip_prefix(w.as_str()).is_some_and(|rest| rest.starts_with('.'));
        if !(wanted.is_empty() || wanted.iter().any(named)) {
            continue;
        }
        let Some(samples) = op.def().samples else { continue };
        for (i, sample) in samples().iter().enumerate() {
            writeln!(out, "{}", line(op, i, &sample.args))?;
        }
    }
    Ok(())
}

/// One call as JSON.
fn line(op: Op, index: usize, args: &[SampleArg]) -> String {
    // Written before the call, which gets tensors of its own: a kernel that changed its operands would be seen.
    let shown: Vec<String> = args.iter().map(argument).collect();
    let outcome = match run::filled(op, args).and_then(|args| run::call(op, &args)) {
        Ok(run::Outcome::Tensors(ts)) => {
            let shown: Vec<String> = ts.iter().map(|t| result(t, args)).collect();
            format!("\"results\": [{}]", shown.join(", "))
        }
        Ok(run::Outcome::Number(s)) => format!("\"results\": [{}]", number(s)),
        Err(e) => format!("\"error\": {}", string(&e.0)),
    };
    let after: Vec<String> = args.iter().map(argument).collect();
    assert_eq!(shown, after, "{op} changed its operands");
    let tolerance = match op.def().exactness {
        Exactness::Exact => "\"exact\"".to_string(),
        Exactness::Random => "\"random\"".to_string(),
        Exactness::Within { rtol, atol } => format!("[{rtol:?}, {atol:?}]"),
    };
    let gradient = match op.def().grad {
        None => "null",
        Some(Grad::Zero) => "\"zero\"",
        Some(Grad::View) => "\"view\"",
        Some(Grad::Rule(_)) => "\"rule\"",
        Some(Grad::Form(_)) => "\"form\"",
        Some(Grad::Composed) => "\"composed\"",
    };
    format!(
        "{{\"op\": {}, \"index\": {index}, \"gradient\": {gradient}, \"tolerance\": {tolerance}, \"args\": [{}], {outcome}}}",
        string(op.name()),
        shown.join(", ")
    )
}

fn result(t: &RawTensor, args: &[SampleArg]) -> String {
    let base = args.iter().flat_map(Arg::values).position(|a| a.storage().same(t.storage()));
    let base = base.map_or("null".to_string(), |i| i.to_string());
    format!("{{\"tensor\": {}, \"alias\": {base}}}", tensor(t))
}
