//! Inputs drawn from a seed, or zeros of the declared types.

use crate::copy::{allocate, copy_into};
use crate::inputs::{Inputs, RunValue, State, Strides, bind, evaluate, input_name, user_inputs};
use crate::symbols::{Unified, unify};
use restride_ir::{Arg, Binding, Conditions, DType, Error, ErrorKind, Expr, InputKind, Program, Result, Type};
use restride_tensor::{Layout, RawTensor, Scalar};
use std::sync::Arc;

/// Inputs drawn from a seed: like the sample inputs where there are any (sizes, strides, sharing and the range of
/// their integers), by the types otherwise.
pub fn random_inputs(program: &Program, seed: u64) -> Result<Inputs> {
    let mut rng = SplitMix(seed);
    if let Some(samples) = Inputs::from_samples(program) {
        let inputs = samples?;
        for t in inputs.values.iter().filter_map(RunValue::tensor) {
            randomise(t, Some(t), &mut rng)?;
        }
        return Ok(inputs);
    }
    drawn(program, &Binding::new(), &mut rng)
}

/// As [`random_inputs`], of these sizes: types by input name, or in order. Symbols that they do not tell have the values of the sample
/// inputs, if there are any. Strides are the declared ones, unless a type's are its own.
///
/// # Errors
/// An input that the program does not have, another element type, sizes that do not fit the declared ones.
pub fn random_inputs_of(program: &Program, seed: u64, types: &[(Option<Arc<str>>, Type)]) -> Result<Inputs> {
    let wrong = |what: String| Error::new(ErrorKind::Inputs, what);
    let users: Vec<(usize, &Arc<str>)> = user_inputs(program).collect();
    let (mut symbols, mut own) = (Binding::new(), Vec::new());
    for (k, (name, given)) in types.iter().enumerate() {
        let found = match name {
            Some(name) => users.iter().position(|u| u.1 == name),
            None => (k < users.len()).then_some(k),
        };
        let Some(at) = found else {
            let names: Vec<&str> = users.iter().map(|u| &**u.1).collect();
            let which = name.as_ref().map_or_else(|| format!("number {k}"), |n| n.to_string());
            return Err(wrong(format!("the program has no input {which}")).help(format!("it has {}", names.join(", "))));
        };
        let declared = &program.graph().values[program.signature.inputs[users[at].0].value].ty;
        let other = || wrong(format!("input {} is given as {given}, and the program takes {declared}", users[at].1));
        let pairs: Vec<(&Expr, &Expr)> = match (declared, given) {
            (Type::Tensor(d), Type::Tensor(g)) if d.dtype == g.dtype && d.rank() == g.rank() => {
                if !g.layout.is_contiguous() {
                    own.push((at, g.known().ok_or_else(other)?.layout));
                }
                d.sizes().iter().zip(g.sizes()).collect()
            }
            (Type::Scalar(d), Type::Scalar(g)) => vec![(d, g)],
            _ => return Err(other()),
        };
        for (d, g) in pairs {
            let number = g.constant().ok_or_else(other)?;
            if matches!(unify(d, number, &mut symbols), Unified::Differs(_) | Unified::OutOfRange(_)) {
                return Err(other());
            }
        }
    }
    let mut rng = SplitMix(seed);
    let samples = Inputs::from_samples(program).transpose()?;
    let mut inputs = match &samples {
        Some(samples) => {
            let state = State::new(program)?;
            for (symbol, value) in bind(program, samples, &state, Strides::Any)?.symbols {
                symbols.entry(symbol).or_insert(value);
            }
            by_types(program, &symbols, &mut |_| Ok(()))?
        }
        None => drawn(program, &symbols, &mut rng)?,
    };
    for (at, layout) in own {
        if let RunValue::Tensor(t) = &inputs.values[at] {
            let laid = allocate(t.dtype(), layout).map_err(|e| wrong(format!("input {}: {}", users[at].1, e.0)))?;
            copy_into(&laid, t)?;
            inputs.values[at] = RunValue::Tensor(laid);
        }
    }
    // Integers are indices as often as not: of the range that the samples have.
    for (value, sample) in inputs.values.iter().zip(samples.iter().flat_map(|s| &s.values)) {
        if let (Some(t), Some(sample)) = (value.tensor(), sample.tensor()) {
            randomise(t, Some(sample), &mut rng)?;
        }
    }
    bind(program, &inputs, &State::new(program)?, Strides::Any)?;
    Ok(inputs)
}

/// Inputs of the declared types that pass the program's checks, with these symbols.
fn drawn(program: &Program, fixed: &Binding, rng: &mut SplitMix) -> Result<Inputs> {
    let state = State::new(program)?;
    let conditions = Conditions::of(program);
    let mut last = None;
    for attempt in 0..64 {
        let inputs = draw(program, &conditions, attempt, fixed, rng)?;
        match bind(program, &inputs, &state, Strides::Any) {
            Ok(_) => return Ok(inputs),
            Err(e) => last = Some(e),
        }
    }
    let help = "give inputs in a file";
    Err(last.unwrap_or_else(|| Error::new(ErrorKind::Inputs, "no inputs could be drawn")).help(help))
}

/// Inputs of the declared types, with sizes that differ between attempts and meet the program's recorded checks.
fn draw(
    program: &Program,
    conditions: &Conditions,
    attempt: i64,
    fixed: &Binding,
    rng: &mut SplitMix,
) -> Result<Inputs> {
    let mut symbols = Binding::new();
    for (k, symbol) in program.symbols.values().enumerate() {
        let lo = symbol.min().unwrap_or(2).max(2);
        let hi = symbol.max().unwrap_or(i64::MAX);
        let n = (lo + (attempt + k as i64) % 8).min(hi);
        symbols.insert(symbol.clone(), if symbol.is_float() { Scalar::Float(n as f64) } else { Scalar::Int(n) });
    }
    symbols.extend(fixed.clone());
    let mut symbols = conditions.witness(symbols, &[]);
    symbols.extend(fixed.clone());
    by_types(program, &symbols, &mut |t| randomise(t, None, rng))
}

/// Inputs of the declared types, all zeros: for compiling, which reads sizes and strides alone.
///
/// # Errors
/// A declared size that depends on a symbol, or a string input: both need inputs.
pub fn declared_inputs(program: &Program) -> Result<Inputs> {
    by_types(program, &Binding::new(), &mut |_| Ok(()))
}

/// An input of each declared type, with contents by `fill`, which gets zeros.
fn by_types(program: &Program, symbols: &Binding, fill: &mut dyn FnMut(&RawTensor) -> Result<()>) -> Result<Inputs> {
    let mut values = Vec::new();
    for (i, _) in user_inputs(program) {
        let spec = &program.signature.inputs[i];
        if let InputKind::Fixed { value, .. } = &spec.kind {
            values.push(fixed_value(value));
            continue;
        }
        let unknown = |why: String| Error::new(ErrorKind::Inputs, format!("{}: {why}", input_name(program, i)));
        values.push(match &program.graph().values[spec.value].ty {
            Type::Tensor(ty) => {
                let layout = evaluate(&ty.layout, symbols);
                let layout =
                    layout.ok_or_else(|| unknown(format!("{} has no known sizes", Type::Tensor(ty.clone()))))?;
                let t = allocate(ty.dtype, layout).map_err(|e| unknown(e.0))?;
                fill(&t)?;
                RunValue::Tensor(t)
            }
            Type::Scalar(e) => RunValue::Scalar(e.eval(symbols).map_err(unknown)?),
            Type::Str => return Err(unknown("a string has no declared value".into())),
            Type::None | Type::Opaque => RunValue::None,
        });
    }
    Ok(Inputs { values })
}

/// The only value that a fixed input takes.
fn fixed_value<V>(fixed: &Arg<V>) -> RunValue {
    match fixed {
        Arg::Str(s) => RunValue::Str(s.clone()),
        Arg::Scalar(s) => s.constant().map_or(RunValue::None, RunValue::Scalar),
        Arg::Complex(re, im) => RunValue::Scalar(Scalar::Complex(restride_tensor::C64::new(*re, *im))),
        _ => RunValue::None,
    }
}

/// Overwrites the elements: floats around 0; integers within the range of a sample's, or 0 and 1.
fn randomise(t: &RawTensor, sample: Option<&RawTensor>, rng: &mut SplitMix) -> Result<()> {
    let sizes = &t.layout().sizes;
    let drawn = if t.dtype().is_float() {
        RawTensor::from_slice(&(0..t.numel()).map(|_| rng.bell()).collect::<Vec<f64>>(), sizes)
    } else if t.dtype().is_complex() {
        let z = (0..t.numel()).map(|_| restride_tensor::C64::new(rng.bell(), rng.bell()));
        RawTensor::from_slice(&z.collect::<Vec<_>>(), sizes)
    } else {
        let (lo, hi) = match sample.filter(|_| t.dtype() != DType::Bool) {
            Some(sample) => {
                let wide = RawTensor::zeros(DType::I64, Layout::contiguous(&sample.layout().sizes));
                copy_into(&wide, sample)?;
                let old = wide.to_elements::<i64>();
                old.iter().min().copied().zip(old.iter().max().copied()).unwrap_or((0, 1))
            }
            None => (0, 1),
        };
        RawTensor::from_slice(&(0..t.numel()).map(|_| rng.between(lo, hi)).collect::<Vec<i64>>(), sizes)
    };
    copy_into(t, &drawn)?;
    Ok(())
}

/// A small deterministic generator; draws of a program's own random operators do not come from it.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Near a normal distribution.
    fn bell(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
    fn between(&mut self, lo: i64, hi: i64) -> i64 {
        let span = (hi as i128 - lo as i128 + 1) as u128;
        (lo as i128 + (self.next() as u128 % span) as i128) as i64
    }
}
