//! Sample calls for reductions.

use super::VarianceForm;
pub(crate) use crate::pointwise::samples::*;

/// No dimension given.
pub(crate) const NONE: SampleArg = Arg::None;

/// Calls with one tensor.
pub(crate) fn over_all(types: Types) -> Vec<Sample> {
    unary(types, -2.0, 2.0)
}

/// Adds an argument to a sample call.
pub(crate) fn with_last(mut s: Sample, arg: impl IntoArg) -> Sample {
    s.args.push(arg.arg());
    s
}

fn rank(s: &Sample) -> usize {
    match &s.args[0] {
        Arg::Value(t) => t.layout().rank(),
        _ => 0,
    }
}

/// Calls with a tensor, a list of dimensions, arguments between, and `keepdim`.
pub(crate) fn over_dims(types: Types, between: &[bool]) -> Vec<Sample> {
    let mut out = Vec::new();
    for s in over_all(types) {
        let mut lists: Vec<Vec<i64>> = vec![vec![0], vec![-1], vec![]];
        if rank(&s) > 2 {
            lists.extend([vec![1], vec![0, 2], vec![-1, 0], vec![0, 1, 2]]);
        }
        for (i, dims) in lists.into_iter().enumerate() {
            let mut s = with_last(s.clone(), &dims[..]);
            if let Some(&b) = between.get(i % between.len().max(1)) {
                s = with_last(s, b);
            }
            out.push(with_last(s, i % 2 == 1));
        }
    }
    out.push(sample![tensor(DType::F32, &[2, 3], 1), [0, -2]]);
    out.push(sample![tensor(DType::F32, &[2, 3], 1), [2]]);
    out
}

/// Calls with a tensor, one dimension and `keepdim`.
pub(crate) fn over_dim(types: Types) -> Vec<Sample> {
    let mut out = Vec::new();
    for s in over_all(types) {
        for d in (0..rank(&s) as i64).chain([-1]) {
            out.push(with_last(with_last(s.clone(), d), d % 2 != 0));
        }
    }
    out.push(sample![tensor(DType::F32, &[2, 3], 1), 2]);
    out
}

/// Means, one of numbers that the type asked for does not hold.
pub(crate) fn means() -> Vec<Sample> {
    let mut out = with_dtype(over_all(NUMBERS), &[]);
    out.push(sample![RawTensor::from_slice(&[70000.0f32, -70000.0, 3.0], &[3]), DType::F16]);
    out
}

/// Adds sample calls with other result types: without dimensions, or with the given arguments between.
pub(crate) fn with_dtype(mut samples: Vec<Sample>, between: &[SampleArg]) -> Vec<Sample> {
    let types = [
        (DType::F32, DType::F64),
        (DType::F32, DType::F16),
        (DType::F64, DType::F32),
        (DType::F32, DType::I32),
        (DType::I64, DType::F32),
        (DType::I32, DType::I32),
        (DType::I64, DType::U8),
        (DType::F32, DType::Bool),
        (DType::C64, DType::F32),
        (DType::F32, DType::C64),
    ];
    let long = samples.iter().any(|s| s.args.len() > 1);
    for (from, to) in types {
        let mut args: Vec<SampleArg> = vec![tensor(from, &[3, 4], 1).arg()];
        if long {
            args.extend(between.first().cloned().or(Some(0.arg())));
            args.push(true.arg());
        }
        args.push(to.arg());
        samples.push(call(args));
    }
    samples
}

/// Calls with NaN and infinities, over the last dimension.
pub(crate) fn extra() -> Vec<Sample> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let rows =
        [[1.0, nan, 2.0], [inf, 0.0, 1.0], [-inf, -inf, -inf], [inf, -inf, nan], [-inf, 3.0, 3.0], [inf, inf, 2.0]];
    let t = RawTensor::from_slice(&rows.concat(), &[6, 3]);
    vec![sample![&t, [1]], sample![&t, [0], true], sample![t, [0, 1]]]
}

/// Sample calls of norms of every order.
pub(crate) fn norms(rest: &'static [i64]) -> Samples {
    let mut out = Vec::new();
    for p in [2.0, 1.0, 0.0, 3.0, 0.5, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
        let all: Vec<_> = over_all(FLOATS).into_iter().map(|s| with_last(s, p)).collect();
        let take = if p == 2.0 { all.len() } else { 6 };
        out.extend(all.into_iter().take(take).flat_map(|s| {
            let mut all = vec![s.clone()];
            for &d in rest {
                all.push(with_last(with_last(s.clone(), [d]), d == -1));
            }
            all
        }));
    }
    out
}

pub(crate) fn variances(form: VarianceForm) -> Samples {
    let types: Types = FLOATS;
    match form {
        VarianceForm::All => {
            let mut out = over_all(types);
            out.extend(over_all(REAL).into_iter().take(4).map(|s| with_last(s, false)));
            out
        }
        VarianceForm::Dims => over_dims(types, &[true, false])
            .into_iter()
            .chain(over_all(types).into_iter().map(|s| with_last(s, ())))
            .collect(),
        VarianceForm::Correction => {
            let mut out = over_all(types);
            for correction in [0, 1, 2] {
                out.extend(over_dims(types, &[]).into_iter().map(|mut s| {
                    s.args.truncate(2);
                    with_last(with_last(s, correction), correction == 0)
                }));
            }
            out
        }
    }
}

pub(crate) fn norms_typed() -> Vec<Sample> {
    over_all(REAL).into_iter().map(|s| with_last(with_last(s, ()), DType::F64)).collect()
}

pub(crate) fn norms_over() -> Vec<Sample> {
    norms(&[0, -1]).into_iter().filter(|s| s.args.len() > 2).collect()
}

pub(crate) fn norms_over_typed() -> Vec<Sample> {
    over_all(REAL)
        .into_iter()
        .map(|s| with_last(with_last(with_last(with_last(s, 2), [-1]), true), DType::F64))
        .collect()
}

pub(crate) fn counted() -> Vec<Sample> {
    let mut out = over_all(ALL);
    out.extend(out.clone().into_iter().map(|s| with_last(s, -1)));
    out
}

pub(crate) fn counted_over() -> Vec<Sample> {
    over_all(ALL).into_iter().map(|s| with_last(s, [0])).collect()
}

pub(crate) fn bools() -> Vec<Sample> {
    vec![sample![tensor(DType::Bool, &[3], 1)]]
}

pub(crate) fn with_extra() -> Vec<Sample> {
    over_dims(ALL_REAL, &[]).into_iter().chain(extra()).collect()
}
