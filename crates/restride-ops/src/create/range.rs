//! Tensors computed from indices: ranges, identity matrices, triangle indices.

use crate::create::{put, row_major};
use crate::pointwise::{Metas, Result, not_for};
use crate::support::{close, ensure, fail};
use restride_ir::{Args, Call, Meta, OpDef, SampleFn, Scalar};
use restride_kernels::pointwise::complex_math;
use restride_kernels::range::{self, Precision};
use restride_kernels::support::convert::{round_scalar, scatter};
use restride_kernels::support::scratch::{Temp, room};
use restride_tensor::{C64 as Complex, DType, DType::*, View};

/// Rounds a number to an element type.
fn round(dtype: DType, x: f64) -> f64 {
    if dtype.is_float() { round_scalar(dtype, Scalar::Float(x)) } else { x }
}

/// Bounds, step and element type of `arange` and `range`.
#[derive(Clone, Copy)]
struct RangeArgs {
    start: Scalar,
    end: Scalar,
    step: Scalar,
    dtype: DType,
}

/// Reads `end`, `start, end` or `start, end, step`, and the element type after them.
fn steps<V>(a: &Args<'_, V>, count: usize, default: Option<DType>) -> Result<RangeArgs> {
    let start = if count > 1 { a.scalar(0)? } else { Scalar::Int(0) };
    let end = a.scalar(if count > 1 { 1 } else { 0 })?;
    let step = if count > 2 { a.scalar(2)? } else { Scalar::Int(1) };
    let given = [start, end, step];
    let whole = given.iter().all(|s| matches!(s, Scalar::Int(_) | Scalar::Bool(_)));
    let inferred = if whole { I64 } else { F32 };
    let dtype = a.opt_dtype(count)?.or(default).unwrap_or(inferred);
    if dtype == Bool || dtype.is_complex() {
        return not_for(dtype);
    }
    for x in given {
        crate::support::promote::check_holds(if dtype.is_float() { F64 } else { I64 }, x)?;
    }
    let (from, to, by) = (start.as_f64(), end.as_f64(), step.as_f64());
    ensure!(by != 0.0 && !by.is_nan(), "step must be nonzero");
    ensure!(from.is_finite() && to.is_finite(), "unsupported range: {from} -> {to}");
    ensure!(
        (by <= 0.0 || to >= from) && (by >= 0.0 || to <= from),
        "upper bound and lower bound inconsistent with step sign"
    );
    Ok(RangeArgs { start, end, step, dtype })
}

impl RangeArgs {
    /// Number of elements of `arange`, which excludes its end.
    fn count(&self) -> Result<i64> {
        if let (Scalar::Int(from), Scalar::Int(to), Scalar::Int(by)) = (self.start, self.end, self.step) {
            let n = (to as i128 - from as i128 + by as i128 - by.signum() as i128) / by as i128;
            return i64::try_from(n).or_else(|_| fail("invalid size, possible overflow"));
        }
        let n = ((self.end.as_f64() - self.start.as_f64()) / self.step.as_f64()).ceil();
        if (0.0..9e18).contains(&n) { Ok(n as i64) } else { fail("invalid size, possible overflow") }
    }

    /// Number of elements of `range`, which includes its end.
    fn count_with_end(&self) -> Result<i64> {
        let n = ((self.end.as_f64() - self.start.as_f64()) / self.step.as_f64()).floor() + 1.0;
        if (0.0..9e18).contains(&n) { Ok(n as i64) } else { fail("invalid size, possible overflow") }
    }

    /// Writes `start + i * step`, computed in integers, in `f32` for half types, else in `f64`.
    fn write(&self, c: &Call<'_>) -> Result<()> {
        if !self.dtype.is_float() {
            range::integers(self.start.as_i64(), self.step.as_i64(), &c.outs[0]);
            return Ok(());
        }
        let (within, precision) =
            if matches!(self.dtype, F16 | BF16) { (F32, Precision::Single) } else { (F64, Precision::Double) };
        let (start, step) = (round(within, self.start.as_f64()), round(within, self.step.as_f64()));
        let mut data = Temp::filled(c.outs[0].numel(), 0.0);
        range::steps(precision, start, step, &mut data);
        scatter(&data, &c.outs[0]);
        Ok(())
    }
}

fn infer_arange(a: &Args<'_, Meta>, count: usize) -> Metas {
    let s = steps(a, count, None)?;
    row_major(s.dtype, &[s.count()?])
}
fn run_arange(c: &Call<'_>, count: usize) -> Result<()> {
    steps(&c.args, count, None)?.write(c)
}
fn infer_range(a: &Args<'_, Meta>, count: usize) -> Metas {
    let s = steps(a, count, Some(F32))?;
    row_major(s.dtype, &[s.count_with_end()?])
}
fn run_range(c: &Call<'_>, count: usize) -> Result<()> {
    steps(&c.args, count, Some(F32))?.write(c)
}

/// Element type of a bound of `linspace`, a number or a 0-d tensor.
fn bound_type(a: &Args<'_, Meta>, i: usize) -> Result<DType> {
    match a.tensor(i) {
        Ok(t) if t.rank() > 0 => fail(format!(
            "linspace only supports 0-dimensional start and end tensors, but got {} tensor with {} dimension(s).",
            if i == 0 { "start" } else { "end" },
            t.rank()
        )),
        Ok(t) => Ok(t.dtype),
        Err(_) => Ok(a.scalar(i)?.dtype()),
    }
}
/// Shape rule of `linspace` (options at 3) and `logspace` (at 4).
fn infer_spaced(a: &Args<'_, Meta>, options: usize) -> Metas {
    let steps = a.int(2)?;
    ensure!(steps >= 0, "number of steps must be non-negative");
    let complex = bound_type(a, 0)?.is_complex() || bound_type(a, 1)?.is_complex();
    let default = if complex { C64 } else { F32 };
    let dtype = a.opt_dtype(options)?.unwrap_or(default);
    ensure!(
        !complex || dtype.is_complex(),
        "inferred dtype c10::complex<float> can't be safely cast to passed dtype {}",
        crate::support::promote::name(dtype)
    );
    if dtype == Bool {
        return not_for(dtype);
    }
    row_major(dtype, &[steps])
}
fn bound(c: &Call<'_>, i: usize) -> Result<Scalar> {
    match c.args.as_tensor(i) {
        Some(v) => Ok(View::get(v, &[])),
        None => c.args.scalar(i),
    }
}
/// Computes from both ends to the middle, as PyTorch does, and rounds each step to the element type.
fn spaced(dtype: DType, start: f64, end: f64, steps: usize, last: impl Fn(f64) -> f64) -> Temp<f64> {
    let r = |x| round(dtype, x);
    let cut = |x: f64| if dtype.is_int() { x.trunc() } else { r(x) };
    let (start, end) = (cut(start), cut(end));
    let step = r(r(end - start) / (steps as f64 - 1.0));
    let precision = match dtype {
        F16 | BF16 => None,
        F32 => Some(Precision::Single),
        _ => Some(Precision::Double),
    };
    if let Some(precision) = precision {
        let mut data = Temp::filled(steps, 0.0);
        let (low, high) = data.split_at_mut(steps / 2);
        range::steps(precision, start, step, low);
        range::steps_back(precision, end, step, high);
        for x in &mut data {
            *x = last(*x);
        }
        return data;
    }
    let one = |i: usize| match i < steps / 2 {
        true => r(start + r(step * i as f64)),
        false => r(end - r(step * (steps - i - 1) as f64)),
    };
    (0..steps).map(|i| last(one(i))).collect()
}
fn run_linspace(c: &Call<'_>) -> Result<()> {
    let (start, end, out) = (bound(c, 0)?, bound(c, 1)?, &c.outs[0]);
    let (dtype, n) = (out.dtype(), out.numel());
    if n == 1 {
        return put(start, out);
    }
    if !dtype.is_complex() {
        scatter(&spaced(dtype, start.as_f64(), end.as_f64(), n, |x| x), out);
        return Ok(());
    }
    let (a, b) = (start.as_c64(), end.as_c64());
    let re = spaced(dtype.real(), a.re, b.re, n, |x| x);
    let im = spaced(dtype.real(), a.im, b.im, n, |x| x);
    let both: Temp<Complex> = re.iter().zip(&im).map(|(&re, &im)| Complex::new(re, im)).collect();
    scatter(&both, out);
    Ok(())
}
fn run_complex_logspace(c: &Call<'_>) -> Result<()> {
    let (a, b, out) = (bound(c, 0)?.as_c64(), bound(c, 1)?.as_c64(), &c.outs[0]);
    let (part, n, base) = (out.dtype().real(), out.numel(), Complex::new(c.args.float(3)?, 0.0));
    // With a single step, the result is the start.
    let steps = n.max(2);
    let (re, im) = (spaced(part, a.re, b.re, steps, |x| x), spaced(part, a.im, b.im, steps, |x| x));
    let powers = re.iter().zip(&im).map(|(&re, &im)| complex_math::pow(base, Complex::new(re, im)));
    let all: Temp<Complex> = powers.collect();
    scatter(&all[..n], out);
    Ok(())
}
fn run_logspace(c: &Call<'_>) -> Result<()> {
    let out = &c.outs[0];
    if out.dtype().is_complex() {
        return run_complex_logspace(c);
    }
    let (start, end, base) = (bound(c, 0)?.as_f64(), bound(c, 1)?.as_f64(), c.args.float(3)?);
    let (dtype, n) = (out.dtype(), out.numel());
    let power = |x: f64| base.powf(x);
    if n == 1 {
        return put(Scalar::Float(power(start)), out);
    }
    scatter(&spaced(dtype, start, end, n, power), out);
    Ok(())
}

/// `eye`: sizes, followed by the element type.
fn infer_eye(a: &Args<'_, Meta>, count: usize) -> Metas {
    let (n, m) = (a.int(0)?, a.int(count - 1)?);
    if n < 0 || m < 0 {
        let (name, x) = if n < 0 { ("n", n) } else { ("m", m) };
        return fail(format!("{name} must be greater or equal to 0, got {x}"));
    }
    row_major(a.opt_dtype(count)?.unwrap_or(F32), &[n, m])
}
fn run_eye(c: &Call<'_>) -> Result<()> {
    let out = &c.outs[0];
    range::identity(out);
    Ok(())
}

/// The columns of one row in the lower or the upper triangle.
pub(super) fn columns(lower: bool, row: i64, cols: i64, offset: i64) -> std::ops::Range<i64> {
    let cut = row.saturating_add(offset);
    if lower { 0..cut.saturating_add(1).clamp(0, cols) } else { cut.clamp(0, cols)..cols }
}
fn infer_indices(a: &Args<'_, Meta>, lower: bool) -> Metas {
    let (rows, cols, offset) = (a.int(0)?, a.int(1)?, a.int(2)?);
    for (name, n) in [("row", rows), ("col", cols)] {
        ensure!(n >= 0, "{name} must be non-negative, got {n}");
    }
    let dtype = a.opt_dtype(3)?.unwrap_or(I64);
    if !matches!(dtype, I32 | I64) {
        return not_for(dtype);
    }
    crate::create::check_sizes(dtype, &[rows, cols])?;
    let count = (0..rows).map(|i| columns(lower, i, cols, offset)).map(|r| r.end - r.start).sum();
    row_major(dtype, &[2, count])
}
fn run_indices(c: &Call<'_>, lower: bool) -> Result<()> {
    let (rows, cols, offset) = (c.args.int(0)?, c.args.int(1)?, c.args.int(2)?);
    let all = || (0..rows).flat_map(|i| columns(lower, i, cols, offset).map(move |j| (i, j)));
    let data = Temp::gather(c.outs[0].numel(), all().map(|(i, _)| i).chain(all().map(|(_, j)| j)));
    scatter(&data, &c.outs[0]);
    Ok(())
}

pub(crate) const fn made(
    schema: &'static str,
    infer: restride_ir::InferFn,
    kernel: fn(&Call<'_>) -> Result<()>,
    samples: Option<SampleFn>,
) -> OpDef {
    // Complex numbers need two lists, one per part.
    let scratch: restride_ir::ScratchFn = |_, outs| {
        let n = outs[0].layout.numel() as usize;
        let parts = if outs[0].dtype.is_complex() { room::<f64>(n) + room::<Complex>(n) } else { 0 };
        Ok(room::<f64>(n) + parts)
    };
    close(schema, infer, kernel, scratch, samples)
}

/// Declares numbers at equal distances, or powers with such exponents: schema, position of the element type, kernel, samples.
macro_rules! spaced {
    ($schema:literal, $dtype:literal, $run:ident, $samples:expr) => {
        made($schema, |a| infer_spaced(a, $dtype), $run, samples!($samples))
    };
}

pub(crate) static OPS: &[OpDef] = table![
    made("arange", |a| infer_arange(a, 1), |c| run_arange(c, 1), samples!(s_arange_end)),
    made("arange.start", |a| infer_arange(a, 2), |c| run_arange(c, 2), samples!(s_arange_start)),
    made("arange.start_step", |a| infer_arange(a, 3), |c| run_arange(c, 3), samples!(s_arange_step)),
    made("range", |a| infer_range(a, 2), |c| run_range(c, 2), samples!(s_range)),
    made("range.step", |a| infer_range(a, 3), |c| run_range(c, 3), samples!(s_range_step)),
    spaced!("linspace", 3, run_linspace, s_linspace),
    spaced!("logspace", 4, run_logspace, s_logspace),
    spaced!("linspace.Tensor_Tensor", 3, run_linspace, || with_tensors(s_linspace(), true, true)),
    spaced!("logspace.Tensor_Tensor", 4, run_logspace, || with_tensors(s_logspace(), true, true)),
    spaced!("linspace.Tensor_Scalar", 3, run_linspace, || with_tensors(s_linspace(), true, false)),
    spaced!("logspace.Tensor_Scalar", 4, run_logspace, || with_tensors(s_logspace(), true, false)),
    spaced!("linspace.Scalar_Tensor", 3, run_linspace, || with_tensors(s_linspace(), false, true)),
    spaced!("logspace.Scalar_Tensor", 4, run_logspace, || with_tensors(s_logspace(), false, true)),
    made("eye", |a| infer_eye(a, 1), run_eye, samples!(|| s_eye(false))).exactly(),
    made("eye.m", |a| infer_eye(a, 2), run_eye, samples!(|| s_eye(true))).exactly(),
    made("tril_indices", |a| infer_indices(a, true), |c| run_indices(c, true), samples!(s_indices)).exactly(),
    made("triu_indices", |a| infer_indices(a, false), |c| run_indices(c, false), samples!(s_indices)).exactly(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    pub(crate) fn typed(mut s: Sample, dtype: DType) -> Sample {
        s.args.push(Arg::DType(dtype));
        s
    }

    pub(crate) const NUMBERS: [DType; 9] = [U8, I8, I16, I32, I64, F16, BF16, F32, F64];

    pub(crate) fn s_arange_end() -> Vec<Sample> {
        let mut out = vec![sample![5], sample![2.5], sample![0], sample![true], sample![1500], sample![-1]];
        out.extend(DType::ALL.map(|d| typed(sample![5], d)));
        out.push(sample![f64::INFINITY]);
        out
    }

    pub(crate) fn s_arange_start() -> Vec<Sample> {
        let mut out = vec![sample![2, 7], sample![-1.5, 3], sample![3, 3], sample![3, 1]];
        out.extend(NUMBERS.map(|d| typed(sample![1, 5], d)));
        out
    }

    pub(crate) fn s_arange_step() -> Vec<Sample> {
        let mut out = vec![
            sample![0, 10, 3],
            sample![10, 0, -3],
            sample![0.0, 1.0, 0.1],
            sample![0, 1, 0.3],
            sample![5, 0, 1],
            sample![0, 5, 0],
            typed(sample![0, 7.9, 2], I64),
            typed(sample![0.5, 7, 2], I32),
            typed(sample![0, 2.5, 0.5], I64),
            sample![0.0, 700.0, 0.37],
            sample![i64::MAX - 3, i64::MAX, 2],
        ];
        out.extend(NUMBERS.map(|d| typed(sample![1, 9, 2], d)));
        out.extend([F16, BF16, F64].map(|d| typed(sample![0.0, 2.0, 0.125], d)));
        out
    }

    pub(crate) fn s_range() -> Samples {
        s_range_end(vec![sample![0, 3], sample![0.5, 4], sample![3, 0]])
    }
    pub(crate) fn s_range_step() -> Samples {
        s_range_end(vec![sample![0, 7, 2], sample![1.0, 0.0, -0.25]])
    }

    pub(crate) fn s_range_end(mut out: Vec<Sample>) -> Vec<Sample> {
        out.extend([F64, I64].map(|d| {
            let mut s = out[0].clone();
            s.args.push(Arg::DType(d));
            s
        }));
        out
    }

    pub(crate) fn s_spaced() -> Vec<Sample> {
        let mut out = vec![
            sample![0, 10, 5],
            sample![0.0, 1.0, 7],
            sample![-3.5, 2.25, 100],
            sample![1, 2, 1],
            sample![1, 2, 0],
            sample![1, 2, -1],
            sample![3.0, -3.0, 4],
        ];
        out.extend(NUMBERS.map(|d| typed(sample![0, 3, 4], d)));
        out.extend(NUMBERS.map(|d| typed(sample![0.0, 2.5, 6], d)));
        out
    }

    pub(crate) fn s_linspace() -> Vec<Sample> {
        let mut out = s_spaced();
        let i = Scalar::Complex(Complex::new(1.0, 2.0));
        out.push(sample![0, i, 3]);
        out.push(typed(sample![0, i, 3], C128));
        out.push(typed(sample![0, i, 3], F32));
        out.push(typed(sample![0, 1, 3], C64));
        out.push(typed(sample![0, 1, 3], Bool));
        out
    }

    pub(crate) fn s_logspace() -> Vec<Sample> {
        let mut out = s_spaced();
        for s in &mut out {
            let dtype = s.args.split_off(3);
            s.args.push(Arg::Scalar(Scalar::Float(2.0)));
            s.args.extend(dtype);
        }
        out.push(sample![0, 3, 4]);
        let z = |re, im| Scalar::Complex(Complex::new(re, im));
        out.push(sample![z(1.0, 1.0), 2, 4, 2.0]);
        out.push(sample![0, z(0.5, -1.0), 1, 3.0]);
        out
    }

    pub(crate) fn with_tensors(mut out: Vec<Sample>, start: bool, end: bool) -> Vec<Sample> {
        // A tensor bound takes part in type promotion, so only floats keep their type.
        for s in &mut out {
            for (i, there) in [start, end].into_iter().enumerate() {
                let one = match (there, &s.args[i]) {
                    (true, Arg::Scalar(Scalar::Float(x))) => restride_tensor::RawTensor::from_slice(&[*x], &[]),
                    (true, Arg::Scalar(x)) => ints(&[x.as_i64()], &[]),
                    (true, Arg::Complex(re, im)) => {
                        restride_tensor::RawTensor::from_slice(&[Complex::new(*re, *im)], &[])
                    }
                    _ => continue,
                };
                s.args[i] = Arg::Value(one);
            }
        }
        out.push({
            let number =
                |there: bool| if there { Arg::Value(tensor(F32, &[1], 1)) } else { Arg::Scalar(Scalar::Int(1)) };
            Sample { args: vec![number(start), number(end), Arg::Scalar(Scalar::Int(3))] }
        });
        out
    }

    pub(crate) fn s_eye(two: bool) -> Vec<Sample> {
        let mut out = Vec::new();
        for (n, m) in [(3, 3), (2, 4), (4, 2), (0, 3), (2, 0), (-1, 2)] {
            let s = if two { sample![n, m] } else { sample![n] };
            out.push(s.clone());
            out.extend([Bool, I64, F16, C64].map(|d| typed(s.clone(), d)));
        }
        out
    }

    pub(crate) fn s_indices() -> Vec<Sample> {
        let mut out = Vec::new();
        for (n, m) in [(3, 3), (2, 5), (5, 2), (0, 3), (3, 0), (-1, 2)] {
            for offset in [-6, -1, 0, 1, 6] {
                out.push(sample![n, m, offset]);
            }
        }
        out.extend([I32, I64, F32, I16].map(|d| typed(sample![3, 3, 0], d)));
        out
    }
}
