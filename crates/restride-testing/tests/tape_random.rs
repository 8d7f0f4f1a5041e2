//! Random programs with in-place operators and views: the eager tape's gradients equal the graph's. `SEEDS=FROM..TO`
//! selects programs.

use restride::{FunctionalizeOptions, GradOptions, Inputs, Loss, RunOptions, RunValue, State, user_inputs};
use restride_exec::eager::{EagerValue, Saved, saved_tensors};
use restride_ir::{DType, Program, text};
use restride_tensor::{C64, Layout, RawTensor};
use restride_testing::rng::Rng;
use restride_testing::tape_run::{same, taped};
use restride_testing::{RandomProgram, generate, generate_floating};
use std::collections::BTreeMap;

enum Outcome {
    Agree,
    /// Nothing floating goes in or comes out.
    Nothing,
    /// One of the ways does not take the program.
    Refused(String),
    Wrong(String),
}

fn differentiable(t: &RawTensor) -> bool {
    t.dtype().is_float() || t.dtype().is_complex()
}

/// Small numbers that lie as an output does.
fn seed(like: &RawTensor, rng: &mut Rng) -> RawTensor {
    let sizes = &like.layout().sizes;
    let n = like.numel();
    let data: Vec<C64> = (0..n).map(|_| C64::new(rng.between(-2, 2) as f64, rng.between(-2, 2) as f64)).collect();
    let wide = RawTensor::from_slice(&data, sizes);
    let real: Vec<f64> = data.iter().map(|z| z.re).collect();
    let wide = if like.dtype().is_complex() { wide } else { RawTensor::from_slice(&real, sizes) };
    let l = like.layout();
    let own = RawTensor::zeros(like.dtype(), Layout::strided(sizes, &l.strides, 0));
    restride_exec::copy::copy_into(&own, &wide).expect("numbers convert");
    own
}

/// Gradients in the graph.
fn in_graph(
    program: &Program,
    inputs: &Inputs,
    seeds: &[(usize, RawTensor)],
) -> Result<Vec<(usize, RawTensor)>, String> {
    let say = |e: restride::Error| e.to_string();
    let functional = restride::functionalize(program, &FunctionalizeOptions::default()).map_err(say)?;
    let users: Vec<(usize, String)> = user_inputs(&functional).map(|(i, n)| (i, n.to_string())).collect();
    let floating = |k: usize| inputs.values.get(k).and_then(RunValue::tensor).is_some_and(differentiable);
    let wrt = users.iter().enumerate().filter(|(k, _)| floating(*k)).map(|(_, (_, n))| n.clone()).collect();
    let loss = Loss::Seeds(seeds.iter().map(|s| s.0).collect());
    let options = GradOptions { loss, wrt: Some(wrt), ..GradOptions::default() };
    let joint = restride::grad(&functional, &options).map_err(say)?;
    let mut given = inputs.deep_clone();
    given.values.extend(seeds.iter().map(|(_, t)| RunValue::Tensor(t.clone())));
    let mut state = State::new(&joint).map_err(say)?;
    let out = restride::interpret(&joint, &given, &mut state, &RunOptions::default()).map_err(say)?;
    let place = |i: usize| users.iter().position(|u| u.0 == i).ok_or("a gradient of no user input");
    out.gradients.into_iter().map(|(i, g)| Ok((place(i)?, g))).collect()
}

/// Holds what the tape computes against the interpreter.
fn same_values(sample: &RandomProgram, ours: &[EagerValue]) -> Result<(), String> {
    let mut state = State::new(&sample.program).map_err(|e| e.to_string())?;
    let out = restride::interpret(&sample.program, &sample.inputs.deep_clone(), &mut state, &RunOptions::default());
    let theirs: Vec<(usize, RawTensor)> = out
        .map_err(|e| e.to_string())?
        .values
        .iter()
        .map(RunValue::tensor)
        .enumerate()
        .filter_map(|(k, t)| Some((k, t?.clone())))
        .collect();
    let ours: Vec<(usize, RawTensor)> =
        ours.iter().map(EagerValue::tensor).enumerate().filter_map(|(k, t)| Some((k, t?.raw()))).collect();
    same(&ours, &theirs, |_| 0.0).map_err(|e| format!("values: {e}"))
}

/// Sums in other orders differ by this much of the largest number.
fn tolerance(t: &RawTensor) -> f64 {
    match t.dtype() {
        DType::F16 | DType::BF16 => 5e-2,
        DType::F32 | DType::C64 => 1e-4,
        _ => 1e-9,
    }
}

fn outcome(sample: &RandomProgram, number: u64) -> Outcome {
    let _cloning = saved_tensors(Saved::CloneOnWrite);
    if !sample.inputs.values.iter().filter_map(RunValue::tensor).any(differentiable) {
        return Outcome::Nothing;
    }
    let run = match taped(&sample.program, &sample.inputs.deep_clone(), false) {
        Ok(run) => run,
        Err(why) => return Outcome::Refused(format!("tape: {why}")),
    };
    let mut rng = Rng::new(number);
    let outputs = run.outputs.iter().enumerate().filter_map(|(k, v)| Some((k, v.tensor()?)));
    let seeds: Vec<(usize, RawTensor)> =
        outputs.filter(|(_, t)| differentiable(&t.raw())).map(|(k, t)| (k, seed(&t.raw(), &mut rng))).collect();
    if seeds.is_empty() || !run.outputs.iter().filter_map(EagerValue::tensor).any(|t| t.requires_grad()) {
        return Outcome::Nothing;
    }
    if let Err(why) = same_values(sample, &run.outputs) {
        return Outcome::Wrong(why);
    }
    let theirs = match in_graph(&sample.program, &sample.inputs, &seeds) {
        Ok(g) => g,
        Err(why) => return Outcome::Refused(format!("graph: {why}")),
    };
    match run.gradients(&seeds).and_then(|ours| same(&ours, &theirs, tolerance)) {
        Ok(()) => Outcome::Agree,
        // Refusals of a rule, where the graph does not come by.
        Err(why) if why.starts_with("its gradient: ") => Outcome::Refused(format!("tape: {why}")),
        Err(why) => Outcome::Wrong(why),
    }
}

/// Compares the programs of these seeds: how many were compared.
fn compare(made: fn(u64) -> RandomProgram, seeds: std::ops::Range<u64>) -> usize {
    let (mut agree, mut nothing) = (0, 0);
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for number in seeds {
        let sample = made(number);
        match outcome(&sample, number) {
            Outcome::Agree => agree += 1,
            Outcome::Nothing => nothing += 1,
            Outcome::Refused(why) => {
                *refusals.entry(why.split(" (at").next().unwrap_or("").to_string()).or_default() += 1;
            }
            Outcome::Wrong(why) => wrong.push(format!("seed {number}: {why}\n{}", text::print(&sample.program))),
        }
        if wrong.len() >= 5 {
            break;
        }
    }
    println!("{agree} agree, nothing to differentiate in {nothing}");
    refusals.iter().for_each(|(why, n)| println!("{n} {why}"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    agree
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("SEEDS").ok();
    let range = seeds.as_deref().and_then(|s| s.split_once(".."));
    range.and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?)).unwrap_or(0..usual)
}

#[test]
fn gradients_of_floating_programs_agree() {
    let range = seeds(200);
    let count = range.end - range.start;
    let agree = compare(generate_floating, range);
    assert!(agree as u64 * 4 > count, "{agree} of {count} programs were compared");
}

#[test]
fn gradients_of_random_programs_agree() {
    let range = seeds(200);
    let agree = compare(generate, range);
    assert!(agree > 0, "no program was compared");
}
