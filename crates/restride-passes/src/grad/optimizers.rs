//! PyTorch's optimizers, in the formulas of their single-tensor forms.

use super::training_step::{Parameter, UpdateStep};
use restride_ir::{Arg, DType, Expr, GradEmit, OpError, TensorType, Val};

type Result<T> = std::result::Result<T, OpError>;

/// An optimizer of PyTorch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Optimizer {
    /// `torch.optim.SGD`.
    Sgd(Sgd),
    /// `torch.optim.Adam`.
    Adam(Adam),
}

impl Optimizer {
    /// The new content of a parameter: an [`super::Update`].
    ///
    /// # Errors
    /// The optimizer does not support the parameter.
    pub fn update(&self, step: &mut UpdateStep<'_>, parameter: &Parameter) -> Result<Val> {
        match self {
            Optimizer::Sgd(o) => o.update(step, parameter),
            Optimizer::Adam(o) => o.update(step, parameter),
        }
    }
}

/// `torch.optim.SGD`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Momentum factor.
    pub momentum: f64,
    /// How much of the gradient momentum is dampened by, after the first step.
    pub dampening: f64,
    /// L2 penalty.
    pub weight_decay: f64,
    /// Nesterov's momentum.
    pub nesterov: bool,
    /// Up the gradient instead of down.
    pub maximize: bool,
}

impl Default for Sgd {
    fn default() -> Self {
        Sgd { lr: 1e-3, momentum: 0.0, dampening: 0.0, weight_decay: 0.0, nesterov: false, maximize: false }
    }
}

/// `torch.optim.Adam`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// The fractions of the averages of gradients and of their squares that stay in a step.
    pub betas: (f64, f64),
    /// Added to the denominator.
    pub eps: f64,
    /// L2 penalty.
    pub weight_decay: f64,
    /// The largest average of squares so far counts, not the one now.
    pub amsgrad: bool,
    /// Up the gradient instead of down.
    pub maximize: bool,
    /// The weights decay by themselves, and not through the gradient: AdamW.
    pub decoupled_weight_decay: bool,
}

impl Default for Adam {
    fn default() -> Self {
        Adam {
            lr: 1e-3,
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay: 0.0,
            amsgrad: false,
            maximize: false,
            decoupled_weight_decay: false,
        }
    }
}

fn number(x: f64) -> Arg<Val, Expr> {
    Arg::Scalar(Expr::float(x))
}

fn tensor(v: Val) -> Arg<Val, Expr> {
    Arg::Value(v)
}

/// The gradient that counts: up or down, with the L2 penalty.
fn direction(step: &mut UpdateStep<'_>, p: &Parameter, maximize: bool, decay: f64) -> Result<Val> {
    let g = if maximize { step.op("aten.neg.default", &[tensor(p.grad)])? } else { p.grad };
    if decay == 0.0 {
        return Ok(g);
    }
    step.op("aten.add.Tensor", &[tensor(g), tensor(p.value), number(decay)])
}

/// The number of steps, including this one.
fn steps(step: &mut UpdateStep<'_>) -> Result<Val> {
    step.once("step", |step| {
        let before = step.state("step", DType::F32, &[])?;
        let now = step.op("aten.add.Tensor", &[tensor(before), Arg::Scalar(Expr::Int(1))])?;
        step.set_state("step", now)?;
        Ok(now)
    })
}

/// The state of a parameter: its name below the kind's.
fn state(step: &mut UpdateStep<'_>, kind: &str, p: &Parameter, ty: &TensorType) -> Result<(String, Val)> {
    let name = format!("{kind}.{}", p.name);
    let now = step.state(&name, ty.dtype, &ty.layout.sizes)?;
    Ok((name, now))
}

/// The error for an optimizer's option out of range, in PyTorch's words.
fn refuse(wrong: bool, what: &str, value: impl std::fmt::Display) -> Result<()> {
    if wrong { Err(OpError::new(format!("Invalid {what}: {value}"))) } else { Ok(()) }
}

impl Sgd {
    /// The new content of a parameter: an [`super::Update`].
    ///
    /// # Errors
    /// Options out of range.
    pub fn update(&self, step: &mut UpdateStep<'_>, p: &Parameter) -> Result<Val> {
        refuse(self.lr.is_nan() || self.lr < 0.0, "learning rate", self.lr)?;
        refuse(self.momentum.is_nan() || self.momentum < 0.0, "momentum value", self.momentum)?;
        refuse(self.weight_decay.is_nan() || self.weight_decay < 0.0, "weight_decay value", self.weight_decay)?;
        if self.nesterov && (self.momentum <= 0.0 || self.dampening != 0.0) {
            return Err(OpError::new("Nesterov momentum requires a momentum and zero dampening"));
        }
        let mut g = direction(step, p, self.maximize, self.weight_decay)?;
        if self.momentum != 0.0 {
            let ty = step.ty(p.value);
            let (name, before) = state(step, "momentum_buffer", p, &ty)?;
            let kept = step.op("aten.mul.Tensor", &[tensor(before), number(self.momentum)])?;
            let now = if self.dampening == 0.0 {
                step.op("aten.add.Tensor", &[tensor(kept), tensor(g)])?
            } else {
                // The first step takes the gradient as it is.
                let part = step.once("part", |step| {
                    let n = steps(step)?;
                    let first = step.op("aten.eq.Scalar", &[tensor(n), Arg::Scalar(Expr::Int(1))])?;
                    let later = 1.0 - self.dampening;
                    step.op("aten.where.Scalar", &[tensor(first), number(1.0), number(later)])
                })?;
                let more = step.op("aten.mul.Tensor", &[tensor(g), tensor(part)])?;
                step.op("aten.add.Tensor", &[tensor(kept), tensor(more)])?
            };
            step.set_state(&name, now)?;
            g = if self.nesterov {
                step.op("aten.add.Tensor", &[tensor(g), tensor(now), number(self.momentum)])?
            } else {
                now
            };
        }
        step.op("aten.add.Tensor", &[tensor(p.value), tensor(g), number(-self.lr)])
    }
}

impl Adam {
    /// The new content of a parameter: an [`super::Update`].
    ///
    /// # Errors
    /// Options out of range.
    pub fn update(&self, step: &mut UpdateStep<'_>, p: &Parameter) -> Result<Val> {
        let (beta1, beta2) = self.betas;
        refuse(self.lr.is_nan() || self.lr < 0.0, "learning rate", self.lr)?;
        refuse(self.eps.is_nan() || self.eps < 0.0, "epsilon value", self.eps)?;
        refuse(!(0.0..1.0).contains(&beta1), "beta parameter at index 0", beta1)?;
        refuse(!(0.0..1.0).contains(&beta2), "beta parameter at index 1", beta2)?;
        refuse(self.weight_decay.is_nan() || self.weight_decay < 0.0, "weight_decay value", self.weight_decay)?;
        let ty = step.ty(p.value);
        let penalty = if self.decoupled_weight_decay { 0.0 } else { self.weight_decay };
        let g = direction(step, p, self.maximize, penalty)?;
        // A complex parameter is two real ones, in complex buffers.
        let complex = ty.dtype.is_complex();
        let seen =
            |step: &mut UpdateStep<'_>, v: Val, op: &str| if complex { step.op(op, &[tensor(v)]) } else { Ok(v) };
        let parts = |step: &mut UpdateStep<'_>, v: Val| seen(step, v, "aten.view_as_real.default");
        let whole = |step: &mut UpdateStep<'_>, v: Val| seen(step, v, "aten.view_as_complex.default");
        let mut value = p.value;
        if self.decoupled_weight_decay && self.weight_decay != 0.0 {
            value = step.op("aten.mul.Tensor", &[tensor(value), number(1.0 - self.lr * self.weight_decay)])?;
        }
        let (g, value) = (parts(step, g)?, parts(step, value)?);
        let buffer = |step: &mut UpdateStep<'_>, kind: &str| -> Result<(String, Val)> {
            let (name, before) = state(step, kind, p, &ty)?;
            Ok((name, parts(step, before)?))
        };
        let keep = |step: &mut UpdateStep<'_>, name: &str, now: Val| {
            let now = whole(step, now)?;
            step.set_state(name, now)
        };
        let (name, before) = buffer(step, "exp_avg")?;
        let average = step.op("aten.lerp.Scalar", &[tensor(before), tensor(g), number(1.0 - beta1)])?;
        keep(step, &name, average)?;
        let (name, before) = buffer(step, "exp_avg_sq")?;
        let kept = step.op("aten.mul.Tensor", &[tensor(before), number(beta2)])?;
        let mut squares =
            step.op("aten.addcmul.default", &[tensor(kept), tensor(g), tensor(g), number(1.0 - beta2)])?;
        keep(step, &name, squares)?;
        if self.amsgrad {
            let (name, before) = buffer(step, "max_exp_avg_sq")?;
            squares = step.op("aten.maximum.default", &[tensor(before), tensor(squares)])?;
            keep(step, &name, squares)?;
        }
        // PyTorch computes these numbers in double precision, on the host.
        let size = step.once("step_size", |step| {
            let part = correction(step, beta1)?;
            let inverse = step.op("aten.reciprocal.default", &[tensor(part)])?;
            step.op("aten.mul.Tensor", &[tensor(inverse), number(-self.lr)])
        })?;
        let root = step.once("bias_correction2_sqrt", |step| {
            let part = correction(step, beta2)?;
            step.op("aten.sqrt.default", &[tensor(part)])
        })?;
        // Beside a parameter without dimensions, these `f64` numbers would decide the type of the result.
        let scalar = ty.rank() == 0 && !complex;
        let lifted = |step: &mut UpdateStep<'_>, v: Val, op: &str| match scalar {
            true => step.op(op, &[tensor(v), Arg::Scalar(Expr::Int(0))]),
            false => Ok(v),
        };
        let (squares, average) =
            (lifted(step, squares, "aten.unsqueeze.default")?, lifted(step, average, "aten.unsqueeze.default")?);
        let scale = step.op("aten.sqrt.default", &[tensor(squares)])?;
        let scale = step.op("aten.div.Tensor", &[tensor(scale), tensor(root)])?;
        let scale = step.op("aten.add.Tensor", &[tensor(scale), number(self.eps)])?;
        let way = step.op("aten.mul.Tensor", &[tensor(average), tensor(size)])?;
        let way = step.op("aten.div.Tensor", &[tensor(way), tensor(scale)])?;
        let way = lifted(step, way, "aten.squeeze.dim")?;
        let new = step.op("aten.add.Tensor", &[tensor(value), tensor(way)])?;
        whole(step, new)
    }
}

/// `1 - beta ** step`.
fn correction(step: &mut UpdateStep<'_>, beta: f64) -> Result<Val> {
    let n = steps(step)?;
    let n = step.op("aten._to_copy.default", &[tensor(n), Arg::DType(DType::F64)])?;
    let power = step.op("aten.pow.Scalar", &[number(beta), tensor(n)])?;
    step.op("aten.rsub.Scalar", &[tensor(power), Arg::Scalar(Expr::Int(1))])
}
