//! Reductions: sums, means, extremes, `any` and `all`, variances, norms, quantiles, distances and cumulative operators.

mod cumulative;
mod differences;
mod distance;
mod grad;
mod pick;
#[cfg(feature = "samples")]
mod samples;

use crate::support::composite::composite;
use crate::support::promote::{AsTensor, name, to_float};
use crate::support::scratch::stored;
use crate::support::tiles::{all, by_rows};
use crate::support::{Metas, Result, ValArgs, Vals, close, emit, ensure, fail, fresh, pass, sizes};
use restride_ir::{Args, Call, Emit, Follows, Meta, OpDef, OpError, RowForm, RowJoin, RowMap, Scalar, TileRule, Val};
use restride_kernels::pointwise as k;
use restride_kernels::reduce::{Reduction, reduce, reduce_room};
use restride_tensor::DType;
use smallvec::{SmallVec, smallvec};

/// For each dimension, whether it is reduced.
pub(crate) type Marks = SmallVec<[bool; 8]>;

/// A reduction with its checked options.
pub(crate) struct Spec {
    /// Which dimensions are reduced.
    pub marks: Marks,
    /// Whether reduced dimensions stay, with size 1.
    pub keep: bool,
    /// The function that reduces a row.
    pub what: Reduction,
    /// The element type of reads.
    pub read: DType,
    /// The result's element type.
    pub out: DType,
}

/// Marks dimensions, negative ones counted from the end; no list or an empty one marks all.
pub(crate) fn marked(dims: Option<&[i64]>, rank: usize) -> Result<Marks> {
    match dims {
        None | Some([]) => Ok(smallvec![true; rank]),
        Some(dims) => marked_exactly(dims, rank),
    }
}

/// Marks the given dimensions only.
pub(crate) fn marked_exactly(dims: &[i64], rank: usize) -> Result<Marks> {
    let mut marks: Marks = smallvec![false; rank.max(1)];
    for &d in dims {
        let d = wrapped(d, rank)?;
        ensure!(!std::mem::replace(&mut marks[d], true), "dim {d} appears multiple times in the list of dims");
    }
    marks.truncate(rank);
    Ok(marks)
}

/// A dimension counted from the front; a 0-d tensor has one dimension.
pub(crate) fn wrapped(dim: i64, rank: usize) -> Result<usize> {
    let n = rank.max(1) as i64;
    ensure!(
        (-n..n).contains(&dim),
        "Dimension out of range (expected to be in range of [{}, {}], but got {dim})",
        -n,
        n - 1
    );
    Ok(dim.rem_euclid(n) as usize)
}

/// Sizes of the result.
pub(crate) fn kept(sizes: &[i64], marks: &[bool], keep: bool) -> Vec<i64> {
    sizes
        .iter()
        .zip(marks)
        .filter_map(|(&n, &reduced)| match (reduced, keep) {
            (false, _) => Some(n),
            (true, true) => Some(1),
            (true, false) => None,
        })
        .collect()
}

fn flag<V>(a: &Args<'_, V>, i: usize) -> Result<bool> {
    Ok(a.opt_bool(i)?.unwrap_or(false))
}

/// Argument positions of the dimensions and of `keepdim`.
enum DimArgs {
    All,
    /// A list of dimensions or a number, then `keepdim`.
    Dims(usize, usize),
}

fn spec<V: AsTensor>(a: &Args<'_, V>, over: DimArgs, what: Reduction, read: DType, out: DType) -> Result<Spec> {
    let rank = a.tensor(0)?.layout().rank();
    let (marks, keep) = match over {
        DimArgs::All => (smallvec![true; rank], false),
        DimArgs::Dims(i, keep) => (marked(a.opt_ints(i)?.as_deref(), rank)?, flag(a, keep)?),
    };
    Ok(Spec { marks, keep, what, read, out })
}

fn infer(s: &Spec, x: &Meta) -> Metas {
    Ok(smallvec![fresh(s.out, &kept(x.sizes(), &s.marks, s.keep))])
}

fn run(c: &Call<'_>, s: &Spec) -> Result<()> {
    reduce(c.args.tensor(0)?, &s.marks, s.what, s.read, &c.outs[0], c.ctx.threads).map_err(OpError::new)
}

/// Scratch bytes; the results of one call are computed one after the other.
fn scratch(a: &Args<'_, Meta>, s: &Spec, outs: &[Meta]) -> Result<usize> {
    let x = stored(a.tensor(0)?);
    Ok(outs.iter().map(|out| reduce_room(x, &s.marks, s.what, s.read, stored(out))).max().unwrap_or(0))
}

/// The accumulation type of sums: integers accumulate in 64 bits.
fn summed(dtype: DType) -> DType {
    if dtype.is_int() || dtype == DType::Bool { DType::I64 } else { dtype }
}

fn sum<V: AsTensor>(a: &Args<'_, V>, over: DimArgs, dtype: usize, what: Reduction) -> Result<Spec> {
    let own = a.tensor(0)?.dtype();
    ensure!(what != Reduction::NanSum || !own.is_complex(), "nansum does not support complex inputs");
    let out = a.opt_dtype(dtype)?.unwrap_or(summed(own));
    spec(a, over, what, out, out)
}

fn mean<V: AsTensor>(a: &Args<'_, V>, over: DimArgs, dtype: usize) -> Result<Spec> {
    let own = a.tensor(0)?.dtype();
    let asked = a.opt_dtype(dtype)?;
    let out = asked.unwrap_or(own);
    let whose = if asked.is_some() { "Optional" } else { "Input" };
    ensure!(
        out.is_float() || out.is_complex(),
        "mean(): could not infer output dtype. {whose} dtype must be either a floating point or complex dtype. Got: {}",
        name(out)
    );
    // Halves are the sum's last step alone: other numbers are not rounded to them first.
    let read = if matches!(out, DType::F16 | DType::BF16) && out != own { DType::F32 } else { out };
    spec(a, over, Reduction::Mean, read, out)
}

/// Maxima and minima, which have no value for an empty row.
fn extreme<V: AsTensor>(a: &Args<'_, V>, over: DimArgs, what: Reduction) -> Result<Spec> {
    let x = a.tensor(0)?;
    let given = matches!(over, DimArgs::Dims(i, _) if !a.opt_ints(i)?.unwrap_or_default().is_empty());
    let dtype = x.dtype();
    ensure!(!dtype.is_complex(), "not implemented for '{}'", name(dtype));
    let s = spec(a, over, what, dtype, dtype)?;
    nonempty(x, &s.marks, given)?;
    Ok(s)
}

/// Refuses to select an element of an empty row.
pub(crate) fn nonempty<V: AsTensor>(x: &V, marks: &[bool], given: bool) -> Result<()> {
    let sizes = &x.layout().sizes;
    ensure!(
        given || !sizes.contains(&0),
        "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
    );
    for (d, (&n, &m)) in sizes.iter().zip(marks).enumerate() {
        ensure!(!m || n != 0, "Expected reduction dim {d} to have non-zero size.");
    }
    Ok(())
}

fn truth<V: AsTensor>(a: &Args<'_, V>, over: DimArgs, what: Reduction) -> Result<Spec> {
    let x = a.tensor(0)?;
    let out = if x.dtype() == DType::U8 { DType::U8 } else { DType::Bool };
    let none = matches!(over, DimArgs::Dims(i, _) if a.opt_ints(i)?.is_some_and(|d| d.is_empty()));
    let mut s = spec(a, over, what, x.dtype(), out)?;
    if none {
        // In these operators an empty list reduces no dimension.
        s.marks.fill(false);
    }
    Ok(s)
}

fn count<V: AsTensor>(a: &Args<'_, V>) -> Result<Spec> {
    spec(a, DimArgs::Dims(1, usize::MAX), Reduction::Count, a.tensor(0)?.dtype(), DType::I64)
}

fn log_sum_exp<V: AsTensor>(a: &Args<'_, V>) -> Result<Spec> {
    let dtype = to_float(a.tensor(0)?.dtype());
    let l = a.tensor(0)?.layout();
    ensure!(
        l.rank() == 0 || l.sizes.contains(&0) || !a.ints(1)?.is_empty(),
        "logsumexp over an empty list of dimensions is refused"
    );
    spec(a, DimArgs::Dims(1, 2), Reduction::LogSumExp, dtype, dtype)
}

fn infer_log_sum_exp(a: &Args<'_, Meta>) -> Metas {
    if a.tensor(0)?.dtype.is_complex() {
        return crate::support::composite::infer(complex_log_sum_exp, a);
    }
    infer(&log_sum_exp(a)?, a.tensor(0)?)
}

/// Log-sum-exp of complex numbers: subtracts the largest real part first.
fn complex_log_sum_exp(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    ensure!(sizes(e, x).is_empty() || !a.ints(1)?.is_empty(), "logsumexp over an empty list of dimensions is refused");
    let keep = a.opt_bool(2)?.unwrap_or(false);
    let real = emit!(e, "aten.real.default", x)?;
    let most = emit!(e, "aten.amax.default", real, pass(a, 1), true)?;
    let endless = emit!(e, "aten.isinf.default", most)?;
    let most = emit!(e, "aten.masked_fill.Scalar", most, endless, 0)?;
    let apart = emit!(e, "aten.sub.Tensor", x, most)?;
    let powers = emit!(e, "aten.exp.default", apart)?;
    let sum = emit!(e, "aten.sum.dim_IntList", powers, pass(a, 1), keep)?;
    let log = emit!(e, "aten.log.default", sum)?;
    let most = if keep { most } else { emit!(e, "aten.squeeze.dims", most, pass(a, 1))? };
    Ok(smallvec![emit!(e, "aten.add.Tensor", log, most)?])
}

/// The order of a norm.
fn order(s: Option<Scalar>) -> Result<f64> {
    match s {
        None => Ok(2.0),
        Some(Scalar::Complex(_)) => fail("the order of a norm is a real number"),
        Some(s) => Ok(s.as_f64()),
    }
}

fn norm<V: AsTensor>(a: &Args<'_, V>, over: DimArgs, dtype: Option<DType>) -> Result<Spec> {
    let x = a.tensor(0)?;
    let own = x.dtype();
    ensure!(
        own.is_float() || own.is_complex(),
        "Expected a floating point or complex tensor as input. Got {}",
        name(own)
    );
    let read = dtype.unwrap_or(own);
    ensure!(read.is_float() || read.is_complex(), "dtype should be floating point or complex, but got {}", name(read));
    ensure!(
        own.is_complex() == read.is_complex(),
        "dtype should be {} for {} inputs, but got {}",
        if own.is_complex() { "complex" } else { "real" },
        if own.is_complex() { "complex" } else { "real" },
        name(read)
    );
    ensure!(
        own.promote(read) == read,
        "the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({})",
        name(own),
        name(read)
    );
    let p = order(a.opt_scalar(1)?)?;
    let s = spec(a, over, Reduction::Norm(p), read, read.real())?;
    // These orders have no value for an empty row.
    if p < 0.0 || p == f64::INFINITY {
        let empty = x.layout().sizes.iter().zip(&s.marks).any(|(&n, &m)| m && n == 0);
        ensure!(
            !empty,
            "linalg.vector_norm cannot compute the {p} norm on an empty tensor because the operation does not have an identity"
        );
    }
    Ok(s)
}

fn vector_norm<V: AsTensor>(a: &Args<'_, V>) -> Result<Spec> {
    norm(a, DimArgs::Dims(2, 3), a.opt_dtype(4)?)
}
fn norm_all<V: AsTensor>(a: &Args<'_, V>) -> Result<Spec> {
    norm(a, DimArgs::All, a.opt_dtype(2)?)
}
fn norm_dims<V: AsTensor>(a: &Args<'_, V>) -> Result<Spec> {
    norm(a, DimArgs::Dims(2, 3), a.opt_dtype(4)?)
}

/// Variances: dimensions, correction, and position of `keepdim`.
fn variance<V: AsTensor>(a: &Args<'_, V>, form: VarianceForm, root: bool) -> Result<Spec> {
    let dtype = a.tensor(0)?.dtype();
    ensure!(dtype.is_float() || dtype.is_complex(), "std and var only support floating point and complex dtypes");
    let unbiased = |i: usize| Ok::<_, OpError>(a.opt_bool(i)?.unwrap_or(true) as i64 as f64);
    let (over, correction) = match form {
        VarianceForm::All => (DimArgs::All, unbiased(1)?),
        VarianceForm::Dims => (DimArgs::Dims(1, 3), unbiased(2)?),
        VarianceForm::Correction => (DimArgs::Dims(1, 3), a.opt_float(2)?.unwrap_or(1.0)),
    };
    spec(a, over, Reduction::Var { correction, root }, dtype, dtype.real())
}

/// The overloads of variances.
#[derive(Clone, Copy)]
enum VarianceForm {
    All,
    Dims,
    Correction,
}

/// Adds the type of the mean.
fn infer_with_mean(s: &Spec, x: &Meta) -> Metas {
    let sizes = kept(x.sizes(), &s.marks, s.keep);
    Ok(smallvec![fresh(s.out, &sizes), fresh(x.dtype, &sizes)])
}
fn run_with_mean(c: &Call<'_>, s: &Spec) -> Result<()> {
    run(c, s)?;
    reduce(c.args.tensor(0)?, &s.marks, Reduction::Mean, s.read, &c.outs[1], c.ctx.threads).map_err(OpError::new)
}

/// Kept dimensions may be cut.
fn tiles(s: &Spec, results: &[Meta]) -> Option<TileRule> {
    let rank = s.marks.len();
    let loops = all(rank).into_iter().zip(&s.marks);
    let kept: Follows = loops.filter(|(_, m)| s.keep || !**m).map(|(l, m)| l.filter(|_| !m)).collect();
    by_rows(rank, |d| s.marks[d], results.iter().map(|_| kept.clone()).collect(), smallvec![all(rank)])
}

/// The row form of a reduction of singles, or of what is read as singles.
fn folded(s: &Spec, x: &Meta) -> Option<RowForm> {
    let singles = s.read == DType::F32 && s.out == DType::F32 && !x.dtype.is_complex();
    let elements = s.marks.iter().zip(x.sizes()).filter(|(reduced, _)| **reduced).map(|(_, n)| *n).product::<i64>();
    if !singles || elements <= 1 {
        return None;
    }
    let terms = |op: &k::Pointwise| Some(RowMap { row: op.f32?, formula: op.formula });
    let plain = |join| Some(RowForm::Fold { terms: None, join, finish: |x, _| x });
    match s.what {
        Reduction::Sum => plain(RowJoin::Sum),
        Reduction::Max => plain(RowJoin::Largest),
        Reduction::Min => plain(RowJoin::Smallest),
        Reduction::Mean => Some(RowForm::Fold { terms: None, join: RowJoin::Sum, finish: |sum, n| sum / n as f32 }),
        Reduction::Norm(1.0) => Some(RowForm::Fold { terms: terms(&k::ABS), join: RowJoin::Sum, finish: |sum, _| sum }),
        Reduction::Norm(2.0) => {
            Some(RowForm::Fold { terms: terms(&k::SQUARE), join: RowJoin::Sum, finish: |sum, _| sum.sqrt() })
        }
        _ => None,
    }
}

/// Declares a reduction by the function that reads its call.
macro_rules! reduction {
    ($schema:literal, |$a:ident| $spec:expr, $samples:expr) => {
        reduction!($schema, infer, run, |$a| $spec, $samples)
    };
    ($schema:literal, $infer:ident, $run:ident, |$a:ident| $spec:expr, $samples:expr) => {
        close(
            $schema,
            |$a| $infer(&$spec?, $a.tensor(0)?),
            |c| {
                let $a = &c.args;
                $run(c, &$spec?)
            },
            |$a, outs| scratch($a, &$spec?, outs),
            samples!($samples),
        )
        .tiled(|$a, results| tiles(&$spec.ok()?, results))
        .in_rows(|$a, results| folded(&$spec.ok()?, $a.tensor(0).ok()?).filter(|_| results.len() == 1))
    };
}
macro_rules! with_mean {
    ($schema:literal, |$a:ident| $spec:expr, $samples:expr) => {
        reduction!($schema, infer_with_mean, run_with_mean, |$a| $spec, $samples)
    };
}

fn is_all_true(e: &mut dyn Emit, a: &Args<'_, Val>) -> Result<SmallVec<[Val; 1]>> {
    booleans(e, a, "_is_all_true")?;
    e.call("aten.all.default", a.0)
}

fn is_any_true(e: &mut dyn Emit, a: &Args<'_, Val>) -> Result<SmallVec<[Val; 1]>> {
    booleans(e, a, "_is_any_true")?;
    e.call("aten.any.default", a.0)
}

fn booleans(e: &mut dyn Emit, a: &Args<'_, Val>, name: &str) -> Result<()> {
    match e.meta(*a.tensor(0)?).dtype {
        DType::Bool => Ok(()),
        other => Err(OpError::new(format!("{name} takes a tensor of bool, not of {other}"))),
    }
}

pub(crate) static OPS: &[OpDef] = table![
    reduction!("sum", |a| sum(a, DimArgs::All, 1, Reduction::Sum), || with_dtype(over_all(ALL), &[])),
    reduction!("sum.dim_IntList", |a| sum(a, DimArgs::Dims(1, 2), 3, Reduction::Sum), || with_dtype(
        over_dims(ALL, &[]),
        &[NONE]
    )),
    reduction!("nansum", |a| sum(a, DimArgs::Dims(1, 2), 3, Reduction::NanSum), with_extra),
    reduction!("mean", |a| mean(a, DimArgs::All, 1), means),
    reduction!("mean.dim", |a| mean(a, DimArgs::Dims(1, 2), 3), || with_dtype(over_dims(NUMBERS, &[]), &[NONE])),
    reduction!("prod", |a| sum(a, DimArgs::All, 1, Reduction::Prod), || with_dtype(over_all(ALL), &[])),
    reduction!("prod.dim_int", |a| sum(a, DimArgs::Dims(1, 2), 3, Reduction::Prod), || with_dtype(over_dim(ALL), &[])),
    reduction!("amax", |a| extreme(a, DimArgs::Dims(1, 2), Reduction::Max), with_extra).exactly(),
    reduction!("amin", |a| extreme(a, DimArgs::Dims(1, 2), Reduction::Min), with_extra).exactly(),
    reduction!("max", |a| extreme(a, DimArgs::All, Reduction::Max), || over_all(ALL_REAL)).exactly(),
    reduction!("min", |a| extreme(a, DimArgs::All, Reduction::Min), || over_all(ALL_REAL)).exactly(),
    reduction!("any", |a| truth(a, DimArgs::All, Reduction::Any), || over_all(ALL)).exactly(),
    reduction!("any.dim", |a| truth(a, DimArgs::Dims(1, 2), Reduction::Any), || over_dim(ALL)).exactly(),
    reduction!("any.dims", |a| truth(a, DimArgs::Dims(1, 2), Reduction::Any), || over_dims(ALL, &[])).exactly(),
    composite!(is_all_true, bools(), "_is_all_true"),
    composite!(is_any_true, bools(), "_is_any_true"),
    reduction!("all", |a| truth(a, DimArgs::All, Reduction::All), || over_all(ALL)).exactly(),
    reduction!("all.dim", |a| truth(a, DimArgs::Dims(1, 2), Reduction::All), || over_dim(ALL)).exactly(),
    reduction!("all.dims", |a| truth(a, DimArgs::Dims(1, 2), Reduction::All), || over_dims(ALL, &[])).exactly(),
    reduction!("count_nonzero", |a| count(a), counted).exactly(),
    reduction!("count_nonzero.dim_IntList", |a| count(a), counted_over).exactly(),
    OpDef {
        infer: Some(infer_log_sum_exp),
        decompose: Some(complex_log_sum_exp),
        composed: Some(|a| a.tensor(0).is_ok_and(|t| t.dtype.is_complex())),
        ..reduction!("logsumexp", |a| log_sum_exp(a), with_extra)
    },
    reduction!("linalg_vector_norm", |a| vector_norm(a), || norms(&[0, -1])),
    reduction!("norm.Scalar", |a| norm_all(a), || norms(&[])),
    reduction!("norm.ScalarOpt_dtype", |a| norm_all(a), norms_typed),
    reduction!("norm.ScalarOpt_dim", |a| norm_dims(a), norms_over),
    reduction!("norm.ScalarOpt_dim_dtype", |a| norm_dims(a), norms_over_typed),
    reduction!("var", |a| variance(a, VarianceForm::All, false), || variances(VarianceForm::All)),
    reduction!("var.dim", |a| variance(a, VarianceForm::Dims, false), || variances(VarianceForm::Dims)),
    reduction!("var.correction", |a| variance(a, VarianceForm::Correction, false), || variances(
        VarianceForm::Correction
    )),
    reduction!("std", |a| variance(a, VarianceForm::All, true), || variances(VarianceForm::All)),
    reduction!("std.dim", |a| variance(a, VarianceForm::Dims, true), || variances(VarianceForm::Dims)),
    reduction!("std.correction", |a| variance(a, VarianceForm::Correction, true), || variances(
        VarianceForm::Correction
    )),
    with_mean!("var_mean", |a| variance(a, VarianceForm::All, false), || variances(VarianceForm::All)),
    with_mean!("var_mean.dim", |a| variance(a, VarianceForm::Dims, false), || variances(VarianceForm::Dims)),
    with_mean!("var_mean.correction", |a| variance(a, VarianceForm::Correction, false), || variances(
        VarianceForm::Correction
    )),
    with_mean!("std_mean", |a| variance(a, VarianceForm::All, true), || variances(VarianceForm::All)),
    with_mean!("std_mean.dim", |a| variance(a, VarianceForm::Dims, true), || variances(VarianceForm::Dims)),
    with_mean!("std_mean.correction", |a| variance(a, VarianceForm::Correction, true), || variances(
        VarianceForm::Correction
    )),
];

/// Other names of PyTorch for operators of this family.
static ALIASES: &[(&str, &str)] = &[("special_logsumexp", "logsumexp"), ("trapz", "trapezoid")];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[differences::OPS, OPS, pick::OPS, distance::OPS, cumulative::OPS],
    gradients: &[grad::GRADS],
    aliases: ALIASES,
};
