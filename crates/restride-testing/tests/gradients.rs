//! Every operator's gradient rule against finite differences on its own samples, in double precision: first order and
//! second.

use restride_ir::{Arg, Op, SampleArg};
use restride_testing::differences::Case;
use restride_testing::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Samples that are tried for each operator.
const TRIED: usize = 8;

fn shown(args: &[SampleArg]) -> String {
    let one = |t: &restride::Tensor| format!("{}{:?}", t.dtype(), t.layout().sizes);
    let all: Vec<String> = args
        .iter()
        .map(|a| match a {
            Arg::Value(t) => one(t),
            Arg::Values(ts) => format!("{:?}", ts.iter().flatten().map(one).collect::<Vec<_>>()),
            Arg::Scalar(s) => s.to_string(),
            other => format!("{other:?}"),
        })
        .collect();
    all.join(", ")
}

/// What distinguishes a sample from others once it is in double precision.
fn key(args: &[SampleArg]) -> String {
    let one = |t: &restride::Tensor| {
        let d = t.dtype();
        let kind = if d.is_complex() { "c" } else if d.is_float() { "f" } else { "i" };
        format!("{kind}{:?}", t.layout().sizes)
    };
    args.iter()
        .map(|a| match a {
            Arg::Value(t) => one(t),
            Arg::Values(ts) => format!("{:?}", ts.iter().flatten().map(one).collect::<Vec<_>>()),
            Arg::DType(_) => "dtype".to_string(),
            other => format!("{:?}", other.map_values(|_| ())),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// A check of one case: whether it says anything.
type Check = fn(&Case, &mut Rng) -> Result<bool, String>;

fn every_operator(check: Check) -> (Vec<String>, BTreeMap<&'static str, usize>) {
    let only = std::env::var("RESTRIDE_OP").ok();
    let mut found = Vec::new();
    let mut checked: BTreeMap<&'static str, usize> = BTreeMap::new();
    for &op in restride_ops::ops() {
        if only.as_ref().is_some_and(|o| !op.name().contains(o.as_str())) {
            continue;
        }
        let Some(samples) = op.def().samples else { continue };
        if op.is_mutable() || op.def().grad.is_none() || op.def().hop.is_some() {
            continue;
        }
        let mut seen = BTreeSet::new();
        for (i, sample) in samples().iter().enumerate() {
            if seen.len() >= TRIED || !seen.insert(key(&sample.args)) {
                continue;
            }
            let mut rng = Rng::new(i as u64);
            let outcome = catch_unwind(AssertUnwindSafe(|| match Case::new(op, &sample.args, &mut rng)? {
                Some(case) => check(&case, &mut rng),
                None => Ok(false),
            }));
            let why = match outcome {
                Ok(Ok(true)) => {
                    *checked.entry(op.name()).or_default() += 1;
                    continue;
                }
                Ok(Ok(false)) => continue,
                Ok(Err(why)) => why,
                Err(_) => "panics".to_string(),
            };
            found.push(format!("{op} #{i}({}): {why}", shown(&sample.args)));
        }
    }
    (found, checked)
}

fn has_rule(op: Op) -> bool {
    op.def().grad.is_some()
}

#[test]
fn every_rule_is_the_derivative() {
    let (found, checked) = every_operator(|case, rng| case.check(1e-5, rng));
    println!("{} operators, {} calls", checked.len(), checked.values().sum::<usize>());
    assert!(found.is_empty(), "{} calls:\n{}", found.len(), found.join("\n"));
    assert!(restride_ops::ops().iter().filter(|o| has_rule(**o)).count() > 500);
}
