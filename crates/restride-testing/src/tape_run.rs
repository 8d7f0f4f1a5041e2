//! Gradients of programs on the eager tape, to compare with the graph's.

use crate::finite_differences::GradientCase;
use restride::{Inputs, RunOptions, RunValue, State, user_inputs};
use restride_exec::eager::{self, EagerValue, GradOptions, run_program};
use restride_ir::{Arg, InputKind, Program};
use restride_tensor::{Layout, RawTensor, Storage};

type Result<T> = std::result::Result<T, String>;

/// A run of a program on the tape.
pub struct TapeRun {
    /// One leaf for each floating user input, with its position among the inputs.
    pub leaves: Vec<(usize, eager::Tensor)>,
    /// The user outputs.
    pub outputs: Vec<EagerValue>,
}

fn say(e: restride::Error) -> String {
    e.to_string()
}

fn differentiable(t: &RawTensor) -> bool {
    t.dtype().is_float() || t.dtype().is_complex()
}

/// The same memory as a 1-d tensor.
fn row(t: &RawTensor) -> Result<RawTensor> {
    let storage = Storage::zeroed(t.storage().len());
    storage.write(&t.storage().to_vec());
    let cells = t.storage().len() / t.dtype().size();
    RawTensor::new(storage, t.dtype(), Layout::contiguous(&[cells as i64])).ok_or_else(|| "no row".to_string())
}

/// Runs a program whose inputs share no memory on copies of its inputs, in the same layouts, as it may write them; with
/// `direct`, on the leaves themselves.
pub fn taped(program: &Program, inputs: &Inputs, direct: bool) -> Result<TapeRun> {
    let mut leaves = Vec::new();
    let mut given = Vec::new();
    let users: Vec<usize> = user_inputs(program).map(|(i, _)| i).collect();
    let state = State::new(program).map_err(say)?;
    let bound = restride_exec::inputs::bind(program, inputs, &state, restride_exec::inputs::Strides::Any);
    let bound = bound.map_err(say)?.values;
    let storages: Vec<usize> = bound.iter().filter_map(RunValue::tensor).map(|t| t.storage().id()).collect();
    if (1..storages.len()).any(|i| storages[..i].contains(&storages[i])) {
        return Err("its inputs share memory".into());
    }
    for (i, v) in bound.iter().enumerate() {
        given.push(match v {
            RunValue::Tensor(t) if users.contains(&i) && differentiable(t) => {
                let leaf = eager::Tensor::copy_of(t).and_then(eager::Tensor::requiring_grad).map_err(say)?;
                let value = if direct {
                    leaf.clone()
                } else {
                    // Cells between its elements are constants.
                    let base = eager::Tensor::copy_of(&row(t)?).map_err(say)?;
                    let l = t.layout();
                    let view = base.restride(&l.sizes, &l.strides, l.offset).map_err(say)?;
                    view.copy_(&leaf).map_err(say)?
                };
                leaves.push((users.iter().position(|u| *u == i).ok_or("no user input")?, leaf));
                EagerValue::Tensor(value)
            }
            RunValue::Tensor(t) => EagerValue::Tensor(eager::Tensor::copy_of(t).map_err(say)?),
            RunValue::Scalar(s) => EagerValue::Scalar(*s),
            RunValue::Str(s) => EagerValue::Str(s.clone()),
            RunValue::None => EagerValue::None,
        });
    }
    let made = run_program(program, &given).map_err(say)?;
    let outputs = program.signature.outputs.iter().zip(made).filter(|(o, _)| o.kind == restride_ir::OutputKind::User);
    Ok(TapeRun { leaves, outputs: outputs.map(|(_, v)| v).collect() })
}

impl TapeRun {
    /// Gradients of a weighted sum of outputs at these positions, one for each leaf; `None` becomes zeros. The pass visits every
    /// recorded call, as PyTorch's `backward` does, also those that lead to no leaf.
    pub fn gradients(&self, seeds: &[(usize, RawTensor)]) -> Result<Vec<(usize, RawTensor)>> {
        let mut outputs = Vec::new();
        let mut given = Vec::new();
        for (at, seed) in seeds {
            let t = self.outputs.get(*at).and_then(EagerValue::tensor).ok_or("an output that is no tensor")?;
            if t.requires_grad() {
                outputs.push(t.clone());
                given.push(Some(eager::Tensor::copy_of(seed).map_err(say)?));
            }
        }
        self.leaves.iter().for_each(|(_, leaf)| leaf.set_grad(None));
        eager::backward(&outputs, &given, &GradOptions::default()).map_err(say)?;
        self.leaves.iter().map(|(at, leaf)| Ok((*at, raw(leaf.grad().as_ref(), leaf)?))).collect()
    }
}

/// Elements of a gradient; `None` becomes zeros.
fn raw(g: Option<&eager::Tensor>, leaf: &eager::Tensor) -> Result<RawTensor> {
    match g {
        Some(g) => g.to_raw().map_err(say),
        None => Ok(RawTensor::zeros(leaf.dtype(), Layout::contiguous(&leaf.sizes()))),
    }
}

/// Leaves and loss of a case.
fn loss_of(case: &GradientCase) -> Result<(Vec<(usize, eager::Tensor)>, eager::Tensor)> {
    let inputs = Inputs::new(case.inputs.iter().map(|t| RunValue::Tensor(t.clone())));
    let run = taped(&case.program, &inputs.deep_clone(), true)?;
    let loss = run.outputs.first().and_then(EagerValue::tensor).ok_or("no loss")?.clone();
    let name = |at: &usize| match &case.program.signature.inputs[*at].kind {
        InputKind::User(n) => n.to_string(),
        _ => String::new(),
    };
    Ok((run.leaves.into_iter().filter(|(at, _)| case.wrt.contains(&name(at))).collect(), loss))
}

/// Gradients of a case on the tape, with the positions of their inputs.
///
/// # Errors
/// An error of the tape.
pub fn first_order(case: &GradientCase) -> Result<Vec<(usize, RawTensor)>> {
    let (leaves, loss) = loss_of(case)?;
    found(&leaves, &loss, false)?.iter().zip(&leaves).map(|(g, (at, t))| Ok((*at, raw(g.as_ref(), t)?))).collect()
}

fn found(
    leaves: &[(usize, eager::Tensor)],
    loss: &eager::Tensor,
    create_graph: bool,
) -> Result<Vec<Option<eager::Tensor>>> {
    if !loss.requires_grad() {
        return Ok(vec![None; leaves.len()]);
    }
    let inputs: Vec<eager::Tensor> = leaves.iter().map(|(_, t)| t.clone()).collect();
    let options = GradOptions { create_graph, allow_unused: true, ..GradOptions::default() };
    eager::grad(std::slice::from_ref(loss), &inputs, &[], &options).map_err(say)
}

/// Gradients of a weighted sum of a case's gradients; `second` is the case of these.
///
/// # Errors
/// An error of the tape.
pub fn second_order(case: &GradientCase, second: &GradientCase) -> Result<Vec<(usize, RawTensor)>> {
    let (leaves, loss) = loss_of(case)?;
    let mut weights = second.inputs[case.inputs.len()..].iter();
    let mut total: Option<eager::Tensor> = None;
    for g in found(&leaves, &loss, true)? {
        let weight = weights.next().ok_or("a gradient without a weight")?;
        let Some(g) = g else { continue };
        let part = || -> std::result::Result<eager::Tensor, restride::Error> {
            let g = match g.dtype().is_complex() {
                true => eager::Tensor::call_one("aten.view_as_real.default", &[Arg::Value(g.clone())])?,
                false => g.clone(),
            };
            let part = g.mul(&eager::Tensor::copy_of(weight)?)?.sum()?;
            match &total {
                Some(t) => t.add(&part),
                None => Ok(part),
            }
        };
        total = Some(part().map_err(say)?);
    }
    let found = match total {
        Some(t) => found(&leaves, &t, false)?,
        None => vec![None; leaves.len()],
    };
    found.iter().zip(&leaves).map(|(g, (at, t))| Ok((*at, raw(g.as_ref(), t)?))).collect()
}

/// Whether a case draws random numbers, which differ between tape and graph.
pub fn draws(case: &GradientCase) -> bool {
    let loss = |seed: u64| {
        let inputs = Inputs::new(case.inputs.iter().map(|t| RunValue::Tensor(t.clone())));
        let mut state = State::new(&case.program).ok()?;
        let options = RunOptions { seed, ..RunOptions::default() };
        let out = restride::interpret(&case.program, &inputs, &mut state, &options).ok()?;
        Some(out.values[0].tensor()?.get(&[]).as_f64().to_bits())
    };
    loss(1) != loss(2)
}

/// Compares gradients, each with the position of its input.
///
/// # Errors
/// The difference.
pub fn same(
    ours: &[(usize, RawTensor)],
    theirs: &[(usize, RawTensor)],
    tolerance: impl Fn(&RawTensor) -> f64,
) -> Result<()> {
    if ours.len() != theirs.len() {
        return Err(format!("{} gradients, not {}", ours.len(), theirs.len()));
    }
    for (at, a) in ours {
        let Some((_, b)) = theirs.iter().find(|(i, _)| i == at) else {
            return Err(format!("no gradient of input {at}"));
        };
        if a.layout().sizes != b.layout().sizes || a.dtype() != b.dtype() {
            return Err(format!(
                "input {at}: {}{:?}, not {}{:?}",
                a.dtype(),
                a.layout().sizes,
                b.dtype(),
                b.layout().sizes
            ));
        }
        let (x, y) = (numbers(a), numbers(b));
        let scale = y.iter().copied().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
        let near = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= tolerance(b) * scale;
        if let Some(k) = (0..x.len()).find(|&k| !near(x[k], y[k])) {
            return Err(format!("input {at}, number {k}: {} on the tape, {} in the graph", x[k], y[k]));
        }
    }
    Ok(())
}

/// Numbers of a tensor; complex numbers count as two.
pub fn numbers(t: &RawTensor) -> Vec<f64> {
    let own = restride_exec::copy::resolve(t).unwrap_or_else(|_| t.clone());
    let mut out = Vec::new();
    for n in 0..own.numel() {
        let mut left = n as i64;
        let mut index = vec![0; own.layout().rank()];
        for d in (0..index.len()).rev() {
            index[d] = left % own.layout().sizes[d];
            left /= own.layout().sizes[d];
        }
        match own.get(&index) {
            restride::Scalar::Complex(z) => out.extend([z.re, z.im]),
            s => out.push(s.as_f64()),
        }
    }
    out
}
