//! Writes gradients of every operator's sample calls, in double precision, as JSON lines: `scripts/check/grad_check.py` holds
//! them against PyTorch's. Arguments name operators; none means all.

#[path = "../../restride-ops/examples/dump_samples/json.rs"]
mod json;

use json::{argument, string, tensor};
use restride_ir::{Arg, Exactness, Op, SampleArg};
use restride_testing::finite_differences::GradientCase;
use restride_testing::rng::Rng;
use std::io::Write as _;

/// Samples of each operator that are written, and how many of them with second gradients too. The first sample with a complex
/// tensor and the first with a complex number are written in any case.
const TRIED: usize = 6;
const TWICE: usize = 2;

fn main() -> std::io::Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for &op in restride_ops::ops() {
        let Some(samples) = op.def().samples else { continue };
        let known = op.def().grad.is_some() && op.def().exactness != Exactness::Random && !op.is_mutable();
        if !known || !(wanted.is_empty() || wanted.iter().any(|w| w == op.name())) {
            continue;
        }
        let (mut count, mut seen) = (0, [false; 2]);
        for (i, sample) in samples().into_iter().enumerate() {
            let fresh = complex(&sample.args).iter().zip(seen).any(|(is, was)| *is && !was);
            if count >= TRIED && !fresh {
                continue;
            }
            if let Some(line) = line(op, i, &sample.args, count < TWICE || fresh) {
                writeln!(out, "{line}")?;
                count += 1;
                complex(&sample.args).iter().zip(&mut seen).for_each(|(is, was)| *was |= is);
            }
        }
    }
    Ok(())
}

/// Whether there are complex tensors among the arguments, and complex numbers.
fn complex(args: &[SampleArg]) -> [bool; 2] {
    let tensors = args.iter().flat_map(|a| a.values()).any(|t| t.dtype().is_complex());
    [tensors, args.iter().any(|a| matches!(a, Arg::Complex(..)))]
}

fn list(items: Vec<String>) -> String {
    format!("[{}]", items.join(", "))
}

/// Gradients, each with the position of its operand, and the weights of what they are the gradients of, which come behind
/// `before` other inputs.
fn gradients(case: &GradientCase, before: usize) -> Option<String> {
    let gradients = case.gradients().ok()?;
    let weights = case.inputs[before..].iter().map(tensor).collect();
    let grads = gradients.iter().map(|(i, g)| format!("[{i}, {}]", tensor(g))).collect();
    Some(format!("\"weights\": {}, \"gradients\": {}", list(weights), list(grads)))
}

/// One call; nothing where it has no gradient to compare.
fn line(op: Op, index: usize, args: &[SampleArg], twice: bool) -> Option<String> {
    let mut rng = Rng::new(index as u64);
    let case = GradientCase::new(op, args, &mut rng).ok()??;
    let operands = case.args.iter().flat_map(|a| a.values()).count();
    let first = gradients(&case, operands)?;
    let second = if twice { case.second(&mut rng).ok().flatten() } else { None };
    let second = second.and_then(|s| gradients(&s, case.inputs.len()));
    Some(format!(
        "{{\"op\": {}, \"index\": {index}, \"args\": {}, {first}{}}}",
        string(op.name()),
        list(case.args.iter().map(argument).collect()),
        second.map_or(String::new(), |s| format!(", \"second\": {{{s}}}"))
    ))
}
