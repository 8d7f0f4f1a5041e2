//! Inputs drawn from a seed, or zeros of the declared types.

use crate::copy::{allocate, copy_into};
use crate::inputs::{Inputs, RunValue, State, Strides, bind, evaluate, input_name, user_inputs};
use restride_ir::{Arg, Binding, Conditions, DType, Error, ErrorKind, InputKind, Program, Result, Type};
use restride_tensor::{Layout, RawTensor, Scalar};

/// Inputs drawn from a seed: like the sample inputs where there are any (sizes, strides, sharing and the range of
/// their integers), by the types otherwise.
pub fn random_inputs(program: &Program, seed: u64) -> Result<Inputs> {
    let mut rng = SplitMix(seed);
    if let Some(samples) = Inputs::from_samples(program) {
        let inputs = samples?;
        for t in inputs.values.iter().filter_map(RunValue::tensor) {
            randomise(t, true, &mut rng)?;
        }
        return Ok(inputs);
    }
    let state = State::new(program)?;
    let conditions = Conditions::of(program);
    let mut last = None;
    for attempt in 0..64 {
        let inputs = draw(program, &conditions, attempt, &mut rng)?;
        match bind(program, &inputs, &state, Strides::Any) {
            Ok(_) => return Ok(inputs),
            Err(e) => last = Some(e),
        }
    }
    let help = "give inputs in a file";
    Err(last.unwrap_or_else(|| Error::new(ErrorKind::Inputs, "no inputs could be drawn")).help(help))
}

/// Inputs of the declared types, with sizes that differ between attempts and meet the program's recorded checks.
fn draw(program: &Program, conditions: &Conditions, attempt: i64, rng: &mut SplitMix) -> Result<Inputs> {
    let mut symbols = Binding::new();
    for (k, symbol) in program.symbols.values().enumerate() {
        let lo = symbol.min().unwrap_or(2).max(2);
        let hi = symbol.max().unwrap_or(i64::MAX);
        let n = (lo + (attempt + k as i64) % 8).min(hi);
        symbols.insert(symbol.clone(), if symbol.is_float() { Scalar::Float(n as f64) } else { Scalar::Int(n) });
    }
    by_types(program, &conditions.witness(symbols, &[]), &mut |t| randomise(t, false, rng))
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

/// Overwrites the elements: floats around 0; integers within the range of the old ones, or 0 and 1.
fn randomise(t: &RawTensor, like_before: bool, rng: &mut SplitMix) -> Result<()> {
    let sizes = &t.layout().sizes;
    let drawn = if t.dtype().is_float() {
        RawTensor::from_slice(&(0..t.numel()).map(|_| rng.bell()).collect::<Vec<f64>>(), sizes)
    } else if t.dtype().is_complex() {
        let z = (0..t.numel()).map(|_| restride_tensor::C64::new(rng.bell(), rng.bell()));
        RawTensor::from_slice(&z.collect::<Vec<_>>(), sizes)
    } else {
        let wide = RawTensor::zeros(DType::I64, Layout::contiguous(sizes));
        copy_into(&wide, t)?;
        let old = wide.to_elements::<i64>();
        let (lo, hi) = match (old.iter().min(), old.iter().max()) {
            (Some(&lo), Some(&hi)) if like_before && t.dtype() != DType::Bool => (lo, hi),
            _ => (0, 1),
        };
        RawTensor::from_slice(&old.iter().map(|_| rng.between(lo, hi)).collect::<Vec<i64>>(), sizes)
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
