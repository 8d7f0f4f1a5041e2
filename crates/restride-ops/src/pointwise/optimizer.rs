//! Steps of PyTorch's fused optimizers (`torch.optim.Adam(…, fused=True)`), composed.
//!
//! A step of one parameter is an operator of restride's own, which the operators that write lists apply to each parameter.
//! The functional forms return lists, so they are compositions of the same steps.

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Arg, Args, DType, DecomposeFn, Emit, OpDef, Scalar, Val};
use smallvec::SmallVec;

/// The learning rate: a number, or a double of no dimensions.
type Rate = Arg<Val, Scalar>;

/// The only element of a tensor, in an element type.
pub(super) fn item(e: &mut dyn Emit, v: Val, dtype: DType) -> Result<Val> {
    let count = e.meta(v).layout.numel();
    ensure!(count == 1, "a Tensor with {count} elements cannot be converted to Scalar");
    only(e, v, dtype)
}

fn rate(e: &mut dyn Emit, a: &ValArgs<'_>, i: usize) -> Result<Rate> {
    Ok(match pass(a, i) {
        Arg::Value(v) => Arg::Value(item(e, v, DType::F64)?),
        number => number,
    })
}

fn times(e: &mut dyn Emit, x: Val, rate: &Rate) -> Result<Val> {
    let op = if let Arg::Value(_) = rate { "aten.mul.Tensor" } else { "aten.mul.Scalar" };
    emit!(e, op, x, rate.clone())
}

/// What every step begins with.
struct Begun {
    /// The element type of the parameter, and the one that it is computed in.
    own: DType,
    wide: DType,
    param: Val,
    /// The gradient of the step: unscaled, negated to maximize, with the decayed weights.
    grad: Val,
    /// The new contents of the gradient: unscaled.
    unscaled: Val,
}

/// Begins a step. The first `tensors` arguments have elements of one type; `scale` is the position of `grad_scale`.
fn begin(e: &mut dyn Emit, a: &ValArgs<'_>, tensors: usize, decay: f64, maximize: bool, scale: usize) -> Result<Begun> {
    let (param, grad) = (*a.tensor(0)?, *a.tensor(1)?);
    let (own, shape) = (e.meta(param).dtype, sizes(e, param));
    ensure!(own.is_float(), "\"fused_optimizer\" not implemented for '{}'", name(own));
    for i in 1..tensors {
        let Some(&other) = a.opt_tensor(i)? else { continue };
        let dtype = e.meta(other).dtype;
        ensure!(dtype == own, "expected scalar type {} but found {}", name(own), name(dtype));
        ensure!(sizes(e, other) == shape, "the tensors of a fused optimizer's step differ in their sizes");
    }
    let wide = if is_16_bit(own) { DType::F32 } else { own };
    let (param, mut grad, mut unscaled) = (to(e, param, wide)?, to(e, grad, wide)?, grad);
    if let Some(&scale) = a.opt_tensor(scale)? {
        let scale = item(e, scale, wide)?;
        grad = emit!(e, "aten.div.Tensor", grad, scale)?;
        unscaled = to(e, grad, own)?;
    }
    if maximize {
        grad = emit!(e, "aten.neg.default", grad)?;
    }
    if decay != 0.0 {
        grad = emit!(e, "aten.add.Tensor", grad, param, decay)?;
    }
    Ok(Begun { own, wide, param, grad, unscaled })
}

/// Results in the parameter's element type; where `found_inf` (argument `found`) is 1, the old contents of the arguments.
fn end(e: &mut dyn Emit, a: &ValArgs<'_>, own: DType, found: usize, new: &[Val]) -> Vals {
    let skips = match a.opt_tensor(found)? {
        Some(&v) => {
            let v = item(e, v, DType::F32)?;
            Some(emit!(e, "aten.eq.Scalar", v, 1.0)?)
        }
        None => None,
    };
    let mut out = SmallVec::new();
    for (i, &v) in new.iter().enumerate() {
        let v = to(e, v, own)?;
        out.push(match (skips, a.opt_tensor(i)?) {
            (Some(skips), Some(&old)) => emit!(e, "aten.where.self", skips, old, v)?,
            _ => v,
        });
    }
    Ok(out)
}

/// `(self, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, state_step, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
/// grad_scale, found_inf)`; `decoupled` decays the weights apart from the gradient.
fn adam_step(e: &mut dyn Emit, a: &ValArgs<'_>, decoupled: bool) -> Vals {
    let (beta1, beta2, decay, eps) = (a.float(7)?, a.float(8)?, a.float(9)?, a.float(10)?);
    let Begun { own, wide, mut param, grad, unscaled } =
        begin(e, a, 5, if decoupled { 0.0 } else { decay }, a.bool(12)?, 13)?;
    let lr = rate(e, a, 6)?;
    let step = item(e, *a.tensor(5)?, DType::F64)?;
    // `1 - beta ** step`, in doubles.
    let correction = |e: &mut dyn Emit, beta: f64| -> Result<Val> {
        let power = emit!(e, "aten.pow.Scalar", beta, step)?;
        emit!(e, "aten.rsub.Scalar", power, 1.0)
    };
    let first = correction(e, beta1)?;
    let size = emit!(e, "aten.reciprocal.default", first)?;
    let size = times(e, size, &lr)?;
    let size = emit!(e, "aten.neg.default", size)?;
    let size = to(e, size, wide)?;
    let second = correction(e, beta2)?;
    let second = emit!(e, "aten.sqrt.default", second)?;
    let second = to(e, second, wide)?;
    if decoupled && decay != 0.0 {
        param = match lr {
            Arg::Value(lr) => {
                let kept = emit!(e, "aten.mul.Scalar", lr, decay)?;
                let kept = emit!(e, "aten.rsub.Scalar", kept, 1.0)?;
                let kept = to(e, kept, wide)?;
                emit!(e, "aten.mul.Tensor", param, kept)?
            }
            _ => emit!(e, "aten.mul.Scalar", param, 1.0 - a.float(6)? * decay)?,
        };
    }
    let mean = to(e, *a.tensor(2)?, wide)?;
    let mean = emit!(e, "aten.lerp.Scalar", mean, grad, 1.0 - beta1)?;
    let square = to(e, *a.tensor(3)?, wide)?;
    let square = emit!(e, "aten.mul.Scalar", square, beta2)?;
    let square = emit!(e, "aten.addcmul.default", square, grad, grad, 1.0 - beta2)?;
    let (mut most, mut kept) = (square, a.opt_tensor(4)?.copied().unwrap_or(square));
    if a.bool(11)? {
        let old = to(e, *a.tensor(4)?, wide)?;
        most = emit!(e, "aten.maximum.default", old, square)?;
        kept = most;
    }
    let root = emit!(e, "aten.sqrt.default", most)?;
    let root = emit!(e, "aten.div.Tensor", root, second)?;
    let root = emit!(e, "aten.add.Scalar", root, eps)?;
    let moved = emit!(e, "aten.mul.Tensor", mean, size)?;
    let moved = emit!(e, "aten.div.Tensor", moved, root)?;
    let param = emit!(e, "aten.add.Tensor", param, moved)?;
    end(e, a, own, 14, &[param, unscaled, mean, square, kept])
}

fn adam(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    adam_step(e, a, false)
}

fn adamw(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    adam_step(e, a, true)
}

/// `(self, grad, momentum_buffer, weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale,
/// found_inf)`
fn sgd(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let momentum = a.float(4)?;
    let Begun { own, wide, param, mut grad, unscaled } = begin(e, a, 3, a.float(3)?, a.bool(8)?, 10)?;
    let mut buffer = a.opt_tensor(2)?.copied().unwrap_or(unscaled);
    if momentum != 0.0 {
        buffer = if a.bool(9)? {
            a.tensor(2)?;
            grad
        } else {
            let old = to(e, *a.tensor(2)?, wide)?;
            let old = emit!(e, "aten.mul.Scalar", old, momentum)?;
            emit!(e, "aten.add.Tensor", old, grad, 1.0 - a.float(6)?)?
        };
        grad = if a.bool(7)? { emit!(e, "aten.add.Tensor", grad, buffer, momentum)? } else { buffer };
    }
    let param = match rate(e, a, 5)? {
        Arg::Value(lr) => {
            let lr = to(e, lr, wide)?;
            let moved = emit!(e, "aten.mul.Tensor", grad, lr)?;
            emit!(e, "aten.sub.Tensor", param, moved)?
        }
        _ => emit!(e, "aten.sub.Tensor", param, grad, a.float(5)?)?,
    };
    end(e, a, own, 11, &[param, unscaled, buffer])
}

/// `(self, grad, state_sum, state_step, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf)`. The step stays.
fn adagrad(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let Begun { own, wide, param, grad, unscaled } = begin(e, a, 3, a.float(6)?, a.bool(8)?, 9)?;
    let step = *a.tensor(3)?;
    let lr = rate(e, a, 4)?;
    let decayed = item(e, step, DType::F64)?;
    let decayed = emit!(e, "aten.sub.Scalar", decayed, 1.0)?;
    let decayed = emit!(e, "aten.mul.Scalar", decayed, a.float(5)?)?;
    let decayed = emit!(e, "aten.add.Scalar", decayed, 1.0)?;
    let decayed = emit!(e, "aten.reciprocal.default", decayed)?;
    let decayed = times(e, decayed, &lr)?;
    let decayed = to(e, decayed, wide)?;
    let sum = to(e, *a.tensor(2)?, wide)?;
    let sum = emit!(e, "aten.addcmul.default", sum, grad, grad, 1.0)?;
    let root = emit!(e, "aten.sqrt.default", sum)?;
    let root = emit!(e, "aten.add.Scalar", root, a.float(7)?)?;
    let moved = emit!(e, "aten.mul.Tensor", grad, decayed)?;
    let moved = emit!(e, "aten.div.Tensor", moved, root)?;
    let param = emit!(e, "aten.sub.Tensor", param, moved)?;
    let mut out = end(e, a, own, 10, &[param, unscaled, sum])?;
    out.push(step);
    Ok(out)
}

/// With a tensor for the learning rate, PyTorch declares no write of the step.
fn adagrad_by_tensor(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let mut out = adagrad(e, a)?;
    out.truncate(3);
    Ok(out)
}

/// The functional form on lists: a step for each parameter. The first `lists` arguments are lists, the first `written` of
/// which the results are the new contents of, in memory of their own.
fn each(e: &mut dyn Emit, a: &ValArgs<'_>, step: DecomposeFn, lists: usize, written: usize) -> Vals {
    let own = (0..lists).map(|i| a.tensors(i)).collect::<std::result::Result<Vec<_>, _>>()?;
    let count = own[0].len();
    ensure!(own.iter().all(|l| l.is_empty() || l.len() == count), "the lists of an optimizer's step differ in length");
    let mut columns = vec![SmallVec::<[Val; 4]>::new(); written];
    for k in 0..count {
        let mut args: Vec<Arg<Val, Scalar>> =
            own.iter().map(|l| l.get(k).map_or(Arg::None, |v| Arg::Value(**v))).collect();
        args.extend_from_slice(&a.0[lists..]);
        let made = step(e, &Args(&args))?;
        for (i, column) in columns.iter_mut().enumerate() {
            if own[i].is_empty() {
                continue;
            }
            let shared = args.iter().flat_map(Arg::values).chain(&made[..i]).any(|v| *v == made[i]);
            column.push(if shared { emit!(e, "aten.clone.default", made[i])? } else { made[i] });
        }
    }
    Ok(columns.into_iter().flatten().collect())
}

fn adams(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    each(e, a, adam, 6, 5)
}

fn adamws(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    each(e, a, adamw, 6, 5)
}

fn sgds(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    each(e, a, sgd, 3, 3)
}

fn adagrads(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    each(e, a, adagrad, 4, 4)
}

fn adagrads_by_tensor(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    each(e, a, adagrad_by_tensor, 4, 3)
}

macro_rules! adam_rest {
    ($lr:literal) => {
        concat!(
            ", Tensor state_step, ",
            $lr,
            " lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, \
             Tensor? grad_scale, Tensor? found_inf)"
        )
    };
}

/// The text of an Adam step's schema, by name and type of the learning rate; `writes` for the one that writes.
macro_rules! adam_schema {
    ($name:literal, $lr:literal) => {
        concat!(
            "restride::",
            $name,
            "(Tensor self, Tensor grad, Tensor exp_avg, Tensor exp_avg_sq, Tensor? max_exp_avg_sq",
            adam_rest!($lr),
            " -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
        )
    };
    ($name:literal, $lr:literal, writes) => {
        concat!(
            "restride::",
            $name,
            "(Tensor(a!) self, Tensor(b!) grad, Tensor(c!) exp_avg, Tensor(d!) exp_avg_sq, Tensor(e!)? max_exp_avg_sq",
            adam_rest!($lr),
            " -> ()"
        )
    };
}

macro_rules! sgd_rest {
    ($lr:literal) => {
        concat!(
            ", float weight_decay, float momentum, ",
            $lr,
            " lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale, Tensor? found_inf)"
        )
    };
}

macro_rules! sgd_schema {
    ($name:literal, $lr:literal) => {
        concat!(
            "restride::",
            $name,
            "(Tensor self, Tensor grad, Tensor? momentum_buffer",
            sgd_rest!($lr),
            " -> (Tensor, Tensor, Tensor)"
        )
    };
    ($name:literal, $lr:literal, writes) => {
        concat!(
            "restride::",
            $name,
            "(Tensor(a!) self, Tensor(b!) grad, Tensor(c!)? momentum_buffer",
            sgd_rest!($lr),
            " -> ()"
        )
    };
}

/// As PyTorch, the one that writes with a tensor for the learning rate declares no write of the step.
macro_rules! adagrad_schema {
    ($name:literal, $lr:literal, $returns:literal) => {
        adagrad_schema!($name, $lr, "(Tensor self, Tensor grad, Tensor state_sum, Tensor state_step, ", $returns)
    };
    ($name:literal, $lr:literal, $tensors:literal, $returns:literal) => {
        concat!(
            "restride::",
            $name,
            $tensors,
            $lr,
            " lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale, Tensor? found_inf) -> ",
            $returns
        )
    };
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(adams, samples::adam(false), "_fused_adam"),
    composite!(adams, samples::adam(true), "_fused_adam.tensor_lr"),
    composite!(adamws, samples::adam(false), "_fused_adamw"),
    composite!(adamws, samples::adam(true), "_fused_adamw.tensor_lr"),
    composite!(sgds, samples::sgd(false), "_fused_sgd"),
    composite!(sgds, samples::sgd(true), "_fused_sgd.tensor_lr"),
    composite!(adagrads, samples::adagrad(false), "_fused_adagrad"),
    composite!(adagrads_by_tensor, samples::adagrad(true), "_fused_adagrad.tensor_lr"),
    composite!(adam, adam_schema!("fused_adam", "float")),
    composite!(adam, adam_schema!("fused_adam.tensor_lr", "Tensor")),
    composite!(adamw, adam_schema!("fused_adamw", "float")),
    composite!(adamw, adam_schema!("fused_adamw.tensor_lr", "Tensor")),
    composite!(sgd, sgd_schema!("fused_sgd", "float")),
    composite!(sgd, sgd_schema!("fused_sgd.tensor_lr", "Tensor")),
    composite!(adagrad, adagrad_schema!("fused_adagrad", "float", "(Tensor, Tensor, Tensor, Tensor)")),
    composite!(adagrad_by_tensor, adagrad_schema!("fused_adagrad.tensor_lr", "Tensor", "(Tensor, Tensor, Tensor)")),
    OpDef::new(adam_schema!("fused_adam_", "float", writes)),
    OpDef::new(adam_schema!("fused_adam_.tensor_lr", "Tensor", writes)),
    OpDef::new(adam_schema!("fused_adamw_", "float", writes)),
    OpDef::new(adam_schema!("fused_adamw_.tensor_lr", "Tensor", writes)),
    OpDef::new(sgd_schema!("fused_sgd_", "float", writes)),
    OpDef::new(sgd_schema!("fused_sgd_.tensor_lr", "Tensor", writes)),
    OpDef::new(adagrad_schema!(
        "fused_adagrad_",
        "float",
        "(Tensor(a!) self, Tensor(b!) grad, Tensor(c!) state_sum, Tensor(d!) state_step, ",
        "()"
    )),
    OpDef::new(adagrad_schema!(
        "fused_adagrad_.tensor_lr",
        "Tensor",
        "(Tensor(a!) self, Tensor(b!) grad, Tensor(c!) state_sum, Tensor state_step, ",
        "()"
    )),
];

#[cfg(feature = "samples")]
mod samples {
    use crate::support::samples::*;

    /// A list of two parameters' tensors with numbers in `lo..hi`.
    fn list(dtype: DType, seed: u64, (lo, hi): (f64, f64)) -> Vec<RawTensor> {
        let of = |sizes: &[i64], seed| in_range(dtype, Layout::contiguous(sizes), seed, lo, hi);
        vec![of(&[3, 5], seed), of(&[4], seed + 50)]
    }

    fn number(x: f64) -> RawTensor {
        RawTensor::from_slice(&[x as f32], &[])
    }

    fn steps() -> Vec<RawTensor> {
        vec![number(3.0), number(1.0)]
    }

    fn rate(tensor: bool) -> SampleArg {
        if tensor { number(0.05).arg() } else { 0.05.arg() }
    }

    /// `grad_scale` and `found_inf`, in turn.
    fn scales() -> [(SampleArg, SampleArg); 3] {
        [(Arg::None, Arg::None), (number(4.0).arg(), number(0.0).arg()), (Arg::None, number(1.0).arg())]
    }

    pub(crate) fn adam(tensor: bool) -> Samples {
        let mut out = Samples::new();
        for (i, dtype) in [DType::F32, DType::F64, DType::F32, DType::BF16].into_iter().enumerate() {
            for (amsgrad, maximize, decay) in [(false, false, 0.0), (true, false, 0.1), (false, true, 0.1)] {
                let (scale, found) = scales()[i % 3].clone();
                let [params, grads, means] = [1, 2, 3].map(|seed| list(dtype, seed, (-2.0, 2.0)));
                let most = if amsgrad { list(dtype, 5, (0.1, 2.0)) } else { vec![] };
                let squares = list(dtype, 4, (0.1, 2.0));
                out.push(sample![
                    params,
                    grads,
                    means,
                    squares,
                    most,
                    steps(),
                    rate(tensor),
                    0.9,
                    0.98,
                    decay,
                    1e-6,
                    amsgrad,
                    maximize,
                    scale,
                    found
                ]);
            }
        }
        out
    }

    pub(crate) fn sgd(tensor: bool) -> Samples {
        let mut out = Samples::new();
        for (i, dtype) in [DType::F32, DType::F64, DType::F32, DType::F32].into_iter().enumerate() {
            for (momentum, nesterov, maximize, first) in [
                (0.0, false, false, false),
                (0.9, false, true, false),
                (0.9, true, false, false),
                (0.9, true, false, true),
            ] {
                let (scale, found) = scales()[i % 3].clone();
                let [params, grads] = [1, 2].map(|seed| list(dtype, seed, (-2.0, 2.0)));
                let buffers = if momentum == 0.0 { vec![] } else { list(dtype, 3, (-2.0, 2.0)) };
                let decay = if i == 3 { 0.0 } else { 0.1 };
                out.push(sample![
                    params,
                    grads,
                    buffers,
                    decay,
                    momentum,
                    rate(tensor),
                    0.25,
                    nesterov,
                    maximize,
                    first,
                    scale,
                    found
                ]);
            }
        }
        out
    }

    pub(crate) fn adagrad(tensor: bool) -> Samples {
        let mut out = Samples::new();
        for (i, dtype) in [DType::F32, DType::F64, DType::F32, DType::BF16].into_iter().enumerate() {
            for (decay, maximize) in [(0.0, false), (0.1, true)] {
                let (scale, found) = scales()[i % 3].clone();
                let [params, grads] = [1, 2].map(|seed| list(dtype, seed, (-2.0, 2.0)));
                let sums = list(dtype, 3, (0.1, 2.0));
                out.push(sample![params, grads, sums, steps(), rate(tensor), 0.2, decay, 1e-6, maximize, scale, found]);
            }
        }
        out
    }
}
