//! Batch and instance normalisation in their forms. Results are channels-last if the operand's strides suggest it.
//!
//! PyTorch's schemas of `batch_norm`, `native_batch_norm` and `instance_norm` omit the mutation of running statistics. This
//! file declares their functional forms.

use crate::norm::{IN_PLACE, stats_type};
use crate::support::composite::{composed, composite};
use crate::support::scratch::stored;
use crate::support::tiles::{all, by_rows, whole};
use crate::support::*;
use restride_ir::{
    Arg, Args, Call, DType, Emit, Expr, Meta, OpDef, OverlapCheck, Reuse, ReuseKind, RowForm, TileRule, TwinDecl,
    TwinReturn, Val,
};
use restride_kernels::norm::{self, Affine, BatchStats, Running};
use restride_tensor::View;
use smallvec::smallvec;

/// Argument positions of one form; input, weight and bias are the first three.
#[derive(Clone, Copy)]
struct BatchNormForm {
    /// Position of the running mean; the variance follows.
    running: Option<usize>,
    training: Training,
    momentum: usize,
    eps: usize,
}

#[derive(Clone, Copy)]
enum Training {
    Always,
    Never,
    Arg(usize),
}

const GENERAL: BatchNormForm = BatchNormForm { running: Some(3), training: Training::Arg(5), momentum: 6, eps: 7 };
const NO_STATS: BatchNormForm = BatchNormForm { running: None, training: Training::Arg(3), momentum: 4, eps: 5 };
const NO_TRAINING: BatchNormForm = BatchNormForm { running: Some(3), training: Training::Never, momentum: 5, eps: 6 };
const WITH_UPDATE: BatchNormForm = BatchNormForm { running: Some(3), training: Training::Always, momentum: 5, eps: 6 };

impl BatchNormForm {
    fn trains<V>(&self, a: &Args<'_, V>) -> Result<bool> {
        match self.training {
            Training::Always => Ok(true),
            Training::Never => Ok(false),
            Training::Arg(i) => a.bool(i),
        }
    }
    fn running<'a, V>(&self, a: &Args<'a, V>) -> Result<(Option<&'a V>, Option<&'a V>)> {
        match self.running {
            Some(i) => Ok((a.opt_tensor(i)?, a.opt_tensor(i + 1)?)),
            None => Ok((None, None)),
        }
    }
}

/// Types of the result, of the batch statistics (empty outside training) and of the running statistics.
fn checked(a: &Args<'_, Meta>, f: &BatchNormForm) -> Result<(Meta, Meta, Meta)> {
    let (x, w, b) = (a.tensor(0)?, a.opt_tensor(1)?, a.opt_tensor(2)?);
    let (mean, var) = f.running(a)?;
    let nothing = x.layout.numel() == 0;
    ensure!(x.rank() >= 2 || nothing, "batch_norm: expected at least 2 dimensions, got input of shape {:?}", x.sizes());
    if nothing && x.rank() < 2 {
        // An empty input returns unchanged, whatever the parameters.
        let stats = mean.map_or_else(|| fresh(x.dtype, &[0]), |m| fresh(m.dtype, m.sizes()));
        return Ok((fresh(x.dtype, x.sizes()), fresh(x.dtype, &[0]), stats));
    }
    let channels = x.sizes()[1];
    for (name, p) in [("running_mean", mean), ("running_var", var), ("weight", w), ("bias", b)] {
        ensure!(
            p.is_none_or(|p| p.sizes() == [channels]),
            "{name} should contain {channels} elements not {}",
            p.map_or(0, |p| p.sizes().iter().product::<i64>())
        );
    }
    let train = f.trains(a)?;
    ensure!(train || mean.is_some(), "running_mean must be defined in evaluation mode");
    ensure!(train || var.is_some(), "running_var must be defined in evaluation mode");
    ensure!(mean.is_some() == var.is_some(), "running_mean and running_var must be given together");
    let stats = stats_type(x.dtype, &[w, b, mean, var])?;
    let saved = fresh(stats, &[if train { channels } else { 0 }]);
    Ok((suggested(&x.layout, x.dtype, x.sizes()), saved, fresh(stats, &[channels])))
}

fn infer_one(a: &Args<'_, Meta>) -> Metas {
    one(checked(a, &GENERAL)?.0)
}

fn infer(a: &Args<'_, Meta>, f: &BatchNormForm) -> Metas {
    let (y, saved, _) = checked(a, f)?;
    ensure!(y.layout.numel() > 0, "input tensor must have at least one element, but got input_sizes = {:?}", y.sizes());
    Ok(smallvec![y, saved.clone(), saved])
}

/// Adds a reserve, which is empty on the CPU.
fn infer_reserve(a: &Args<'_, Meta>, f: &BatchNormForm) -> Metas {
    let mut out = infer(a, f)?;
    out.push(fresh(DType::U8, &[0]));
    Ok(out)
}

/// Adds the new running statistics.
fn infer_functional(a: &Args<'_, Meta>) -> Metas {
    let (y, saved, stats) = checked(a, &GENERAL)?;
    Ok(smallvec![y, saved.clone(), saved, stats.clone(), stats])
}

fn infer_update(a: &Args<'_, Meta>) -> Metas {
    let (y, saved, stats) = checked(a, &WITH_UPDATE)?;
    Ok(smallvec![y, saved.clone(), saved, fresh(DType::U8, &[0]), stats.clone(), stats])
}

/// Writes the results; `new` is the position of the new running mean, if the call has one.
fn run(c: &Call<'_>, f: &BatchNormForm, new: Option<usize>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let affine = Affine { weight: c.args.opt_tensor(1)?.copied(), bias: c.args.opt_tensor(2)?.copied() };
    let (eps, out, threads) = (c.args.float(f.eps)?, &c.outs[0], c.ctx.threads);
    let (mean, var) = f.running(&c.args)?;
    let old = mean.copied().zip(var.copied());
    let new = new.map(|i| (&c.outs[i], &c.outs[i + 1]));
    if x.numel() == 0 && x.sizes().len() < 2 {
        if let (Some((mean, var)), Some(new)) = (old, new) {
            norm::copy(&mean, new.0);
            norm::copy(&var, new.1);
        }
        return Ok(());
    }
    if f.trains(&c.args)? {
        let momentum = c.args.float(f.momentum)?;
        let running = old.zip(new).map(|(old, new)| Running { old, new, momentum });
        let stats = BatchStats { mean: c.outs.get(1), invstd: c.outs.get(2), running };
        return ran(norm::batch_norm_train(x, affine, eps, out, &stats, threads));
    }
    let Some((mean, var)) = old else { return fail("running_mean must be defined in evaluation mode") };
    ran(norm::batch_norm_with(x, &mean, &var, affine, eps, out, threads))?;
    if let Some(new) = new {
        norm::copy(&mean, new.0);
        norm::copy(&var, new.1);
    }
    Ok(())
}

fn scratch(a: &Args<'_, Meta>, outs: &[Meta], f: &BatchNormForm) -> Result<usize> {
    let (x, out) = (stored(a.tensor(0)?), stored(&outs[0]));
    if x.1.rank() < 2 {
        return Ok(0);
    }
    Ok(if f.trains(a)? { norm::batch_norm_train_room(x, out) } else { norm::batch_norm_room(x, out) })
}

/// Whether a call updates running statistics; `training` is an argument position.
fn updates(a: &Args<'_, (), Expr>, training: usize) -> bool {
    let trains = a.number(training).is_ok_and(|t| t.constant().is_none_or(|t| t.as_bool()));
    trains && !a.is_none(3) && !a.is_none(4)
}

const fn legit(returns: &'static [TwinReturn]) -> Option<TwinDecl> {
    Some(TwinDecl {
        op: "aten._native_batch_norm_legit_functional.default",
        args: &[0, 1, 2, 3, 4, 5, 6, 7],
        writes: &[(3, 3), (4, 4)],
        returns,
        when: Some(|a| updates(a, 5)),
    })
}

/// Result, new running mean and variance. Each pair of sample and channel is normalised as a channel.
fn instance_parts(e: &mut dyn Emit, a: &ValArgs<'_>) -> Result<(Val, Option<(Val, Val)>)> {
    let x = *a.tensor(0)?;
    let s = sizes(e, x);
    ensure!(s.len() >= 2, "instance_norm: expected at least 2 dimensions, got input of shape {s:?}");
    let use_input = a.bool(5)?;
    let (mean, var) = (a.opt_tensor(3)?, a.opt_tensor(4)?);
    ensure!(
        use_input || (mean.is_some() && var.is_some()),
        "Expected running_mean and running_var to be defined when use_input_stats is false"
    );
    let (n, channels) = (s[0], s[1]);
    let each = |e: &mut dyn Emit, v: Option<&Val>| -> Result<Option<Val>> {
        v.map(|&v| emit!(e, "aten.repeat.default", v, [n])).transpose()
    };
    let (w, b) = (each(e, a.opt_tensor(1)?)?, each(e, a.opt_tensor(2)?)?);
    let (mean, var) = (each(e, mean)?, each(e, var)?);
    let flat: Vec<i64> = [1, n * channels].into_iter().chain(s[2..].iter().copied()).collect();
    let x = emit!(e, "aten.contiguous.default", x)?;
    let x = emit!(e, "aten.view.default", x, flat)?;
    let stats = mean.zip(var).filter(|_| use_input);
    let Some((m, v)) = stats else {
        let y = emit!(e, "aten.batch_norm.default", x, w, b, mean, var, use_input, pass(a, 6), pass(a, 7), false)?;
        return Ok((emit!(e, "aten.view.default", y, s)?, None));
    };
    let all =
        emit_all!(e, "aten._native_batch_norm_legit_functional.default", x, w, b, m, v, true, pass(a, 6), pass(a, 7))?;
    let mean_of = |e: &mut dyn Emit, v: Val| -> Result<Val> {
        let v = emit!(e, "aten.view.default", v, [n, channels])?;
        emit!(e, "aten.mean.dim", v, [0], false)
    };
    let new = (mean_of(e, all[3])?, mean_of(e, all[4])?);
    Ok((emit!(e, "aten.view.default", all[0], s)?, Some(new)))
}

fn instance(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![instance_parts(e, a)?.0])
}

fn instance_functional(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (y, new) = instance_parts(e, a)?;
    let (mean, var) = new.map_or_else(|| Ok::<_, restride_ir::OpError>((*a.tensor(3)?, *a.tensor(4)?)), Ok)?;
    Ok(smallvec![y, mean, var])
}

/// The result may take over the operand, new running statistics the old ones.
static WITH_RUNNING: &[Reuse] = &[
    Reuse { arg: 0, result: 0, kind: ReuseKind::SameIndex },
    Reuse { arg: 3, result: 3, kind: ReuseKind::SameIndex },
    Reuse { arg: 4, result: 4, kind: ReuseKind::SameIndex },
];

/// Declares a batch normalisation: schema, shape rule, form, position of returned running statistics, sample calls.
macro_rules! batch {
    ($schema:literal, $infer:expr, $form:expr, $running:expr, $samples:expr) => {
        close($schema, $infer, |c| run(c, &$form, $running), |a, outs| scratch(a, outs, &$form), samples!($samples))
            .reusing(IN_PLACE)
            .timed(|a, outs| time(a, outs, &$form))
    };
}

/// Picoseconds by the layouts of operand and result: nothing where they are alike, unless statistics are taken.
fn time(a: &Args<'_, Meta>, outs: &[Meta], f: &BatchNormForm) -> Result<i64> {
    let x = a.tensor(0)?;
    let last = [x, &outs[0]].map(|m| is_channels_last(m, m.rank().saturating_sub(2)));
    let ordered = last[0] && f.trains(a)?;
    Ok(x.layout.numel().saturating_mul(MIXED * ((last[0] != last[1]) as i64 + ordered as i64)))
}

/// Without the batch's own statistics, every element is computed from itself and the numbers of its channel. `f` trains or not.
fn by_channel(a: &Args<'_, Meta>, results: &[Meta], f: &BatchNormForm) -> Option<TileRule> {
    let rank = results[0].rank();
    if f.trains(a).ok()? || rank < 2 {
        return None;
    }
    let given = a.0.iter().skip(1).flat_map(Arg::values).map(|_| smallvec![Some(1)]);
    let others = results[1..].iter().map(|r| whole(r.rank()));
    let (results, operands) = (std::iter::once(all(rank)).chain(others), std::iter::once(all(rank)).chain(given));
    by_rows(rank, |_| false, results.collect(), operands.collect())
}

/// As [`by_channel`], for singles.
fn channel_rows(a: &Args<'_, Meta>) -> Option<RowForm> {
    let x = a.tensor(0).ok()?;
    if GENERAL.trains(a).ok()? || x.rank() < 2 || x.dtype != DType::F32 {
        return None;
    }
    let numbers: fn(&Args<'_, View<'_>>, &mut [f32], &mut [f32]) -> Result<()> = |a, scale, shift| {
        let affine = Affine { weight: a.opt_tensor(1)?.copied(), bias: a.opt_tensor(2)?.copied() };
        ran(norm::row_factors(a.tensor(3)?, a.tensor(4)?, affine, a.float(GENERAL.eps)?, scale, shift))
    };
    Some(RowForm::Scale { dim: 1, count: usize::try_from(x.sizes()[1]).ok()?, numbers, row: norm::scale_row })
}

const WRITES: &str = "Training writes the running statistics, which PyTorch's schema does not say";

pub(crate) static OPS: &[OpDef] = table![
    OpDef {
        twin: legit(&[TwinReturn::Result(0)]),
        tiles: Some(|a, results| by_channel(a, results, &GENERAL)),
        rows: Some(|a, _| channel_rows(a)),
        ..batch!("batch_norm", infer_one, GENERAL, None, || general_samples(true)).noted(WRITES)
    },
    OpDef {
        twin: legit(&[TwinReturn::Result(0), TwinReturn::Result(1), TwinReturn::Result(2)]),
        ..batch!("native_batch_norm", |a| infer(a, &GENERAL), GENERAL, None, || general_samples(false)).noted(WRITES)
    },
    OpDef {
        overlap: OverlapCheck::Unseen,
        reuse: WITH_RUNNING,
        unrecorded: Some(3),
        ..batch!("_native_batch_norm_legit_functional", infer_functional, GENERAL, Some(3), functional_samples)
    },
    batch!("_native_batch_norm_legit.no_stats", |a| infer(a, &NO_STATS), NO_STATS, None, no_stats_samples),
    batch!("_native_batch_norm_legit_no_training", |a| infer(a, &NO_TRAINING), NO_TRAINING, None, given_samples)
        .tiled(|a, results| by_channel(a, results, &NO_TRAINING)),
    batch!("_batch_norm_no_update", |a| infer_reserve(a, &NO_TRAINING), NO_TRAINING, None, given_samples),
    OpDef {
        overlap: OverlapCheck::Unseen,
        unrecorded: Some(4),
        ..batch!("_batch_norm_with_update_functional", infer_update, WITH_UPDATE, Some(4), given_samples)
    },
    OpDef {
        twin: Some(TwinDecl {
            op: "restride.instance_norm.default",
            args: &[0, 1, 2, 3, 4, 5, 6, 7, 8],
            writes: &[(3, 1), (4, 2)],
            returns: &[TwinReturn::Result(0)],
            when: Some(|a| updates(a, 5)),
        }),
        ..composite!(instance, instance_samples(), "instance_norm")
            .noted("With the input's statistics it writes the running ones, which PyTorch's schema does not say")
    },
    OpDef {
        infer: composed!(instance_functional),
        overlap: OverlapCheck::Unseen,
        unrecorded: Some(1),
        decompose: Some(instance_functional),
        doc: "instance_norm with the new running statistics as results",
        ..OpDef::new(
            "restride::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor)",
        )
    },
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use crate::norm::samples::FLOATS;
    pub(super) use crate::support::samples::*;

    /// A sample variance of `channels` elements.
    pub(crate) fn variance(d: DType, channels: i64) -> RawTensor {
        in_range(d, Layout::contiguous(&[channels]), 9, 0.5, 2.0)
    }

    /// Sample operands of several layouts, with the type of their parameters.
    pub(crate) fn operands() -> Vec<(RawTensor, DType)> {
        let mut out = Vec::new();
        for d in FLOATS {
            out.extend(forms(d, &[3, 4, 5], 1).map(|x| (x, d)));
            out.push((nhwc(d, &[2, 4, 3, 5], 2), d));
        }
        let d = DType::F32;
        for x in [
            tensor(d, &[5, 4], 1),
            nhwc(d, &[2, 4, 2, 3, 2], 1),
            expanded(d, &[2, 4, 3], 1),
            tensor(d, &[2, 4, 3, 5], 1),
            transposed(d, &[2, 4, 3, 5], 1),
            tensor(DType::BF16, &[2, 4, 3], 1),
            tensor(DType::F16, &[2, 4, 3], 1),
        ] {
            out.push((x, d));
        }
        out
    }

    /// Samples of the forms that may train; the tests compare results, not mutated arguments.
    pub(crate) fn general_samples(last: bool) -> Samples {
        let mut out = Vec::new();
        for (x, d) in operands() {
            let (w, b, m, v) = (tensor(d, &[4], 7), strided(d, &[4], 8), tensor(d, &[4], 3), variance(d, 4));
            out.push(sample![&x, &w, &b, &m, &v, false, 0.1, 1e-5]);
            out.push(sample![&x, (), (), &m, &v, false, 0.1, 1e-3]);
            out.push(sample![&x, &w, &b, (), (), true, 0.1, 1e-5]);
            out.push(sample![&x, (), &b, &m, &v, true, 0.1, 1e-5]);
        }
        let (x, m) = (tensor(DType::F32, &[2, 4, 3], 1), tensor(DType::F32, &[4], 3));
        out.push(sample![&x, &m, &m, (), (), false, 0.1, 1e-5]);
        out.push(sample![&x, tensor(DType::F64, &[4], 3), &m, &m, &m, false, 0.1, 1e-5]);
        if last {
            out.push(sample![&x, tensor(DType::F32, &[3], 3), &m, &m, &m, false, 0.1, 1e-5]);
            out.push(sample![tensor(DType::F32, &[0, 4, 3], 1), &m, &m, &m, &m, false, 0.1, 1e-5]);
            out.push(sample![tensor(DType::F32, &[2, 4, 0], 1), &m, &m, &m, &m, false, 0.1, 1e-5]);
            out.iter_mut().for_each(|s| s.args.push(crate::support::samples::IntoArg::arg(true)));
        }
        out
    }

    pub(crate) fn functional_samples() -> Samples {
        let mut out = Vec::new();
        for (x, d) in operands() {
            let (w, b, m, v) = (tensor(d, &[4], 7), tensor(d, &[4], 8), strided(d, &[4], 3), variance(d, 4));
            for train in [true, false] {
                out.push(sample![&x, &w, &b, &m, &v, train, 0.25, 1e-5]);
            }
            out.push(sample![&x, (), (), &m, &v, true, 0.1, 1e-3]);
        }
        out
    }

    pub(crate) fn no_stats_samples() -> Samples {
        operands()
            .into_iter()
            .map(|(x, d)| sample![x, tensor(d, &[4], 7), tensor(d, &[4], 8), true, 0.1, 1e-5])
            .collect()
    }

    pub(crate) fn given_samples() -> Samples {
        operands()
            .into_iter()
            .map(|(x, d)| {
                sample![x, tensor(d, &[4], 7), tensor(d, &[4], 8), tensor(d, &[4], 3), variance(d, 4), 0.1, 1e-5]
            })
            .collect()
    }

    pub(crate) fn instance_samples() -> Samples {
        let mut out = Vec::new();
        for (x, d) in operands().into_iter().filter(|(x, d)| x.dtype() == *d) {
            let (w, b, m, v) = (tensor(d, &[4], 7), tensor(d, &[4], 8), tensor(d, &[4], 3), variance(d, 4));
            out.push(sample![&x, &w, &b, (), (), true, 0.1, 1e-5, true]);
            out.push(sample![&x, &w, &b, &m, &v, true, 0.1, 1e-5, true]);
            out.push(sample![&x, (), (), &m, &v, false, 0.1, 1e-5, true]);
        }
        out.push(sample![tensor(DType::F32, &[2, 4, 3], 1), (), (), (), (), false, 0.1, 1e-5, true]);
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::lookup;
    use restride_ir::{Arg, Expr, Scalar};

    #[test]
    fn only_training_with_running_statistics_writes() {
        let args = |running: bool, trains: Option<bool>| -> Vec<Arg<(), Expr>> {
            let stat = || if running { Arg::Value(()) } else { Arg::None };
            let number = |s: Scalar| Arg::Scalar(Expr::from(s));
            let trains = match trains {
                Some(b) => number(Scalar::Bool(b)),
                None => Arg::Scalar(Expr::from(restride_ir::Symbol::new("s0", None, None))),
            };
            let (momentum, eps) = (number(Scalar::Float(0.1)), number(Scalar::Float(1e-5)));
            vec![Arg::Value(()), Arg::None, Arg::None, stat(), stat(), trains, momentum, eps]
        };
        for name in ["aten.batch_norm.default", "aten.native_batch_norm.default", "aten.instance_norm.default"] {
            let op = lookup(name).unwrap();
            assert!(op.mutates(&args(true, Some(true))), "{name}");
            // A flag unknown at compile time may be true.
            assert!(op.mutates(&args(true, None)), "{name}");
            assert!(!op.mutates(&args(true, Some(false))), "{name}");
            assert!(!op.mutates(&args(false, Some(true))), "{name}");
        }
    }
}
