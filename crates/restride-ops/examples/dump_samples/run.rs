//! The least that runs one call: no program, no in-place forms.

use restride_ir::{
    Arg, Args, Call, Ctx, Emit, Expr, Kernel, Layout, MathView, Meta, Op, OpError, SampleArg, Scalar, TensorType,
    TwinReturn, Val, ViewOutcome,
};
use restride_kernels::pointwise;
use restride_kernels::support::convert::copy_convert;
use restride_tensor::{Access, Fitted, RawTensor, View, ViewMut};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// What a call gives.
pub enum Outcome {
    /// Tensors, a list result spread.
    Tensors(Vec<RawTensor>),
    /// A number.
    Number(Scalar),
}

/// Arguments with the schema's defaults for those left out.
pub fn filled(op: Op, args: &[SampleArg]) -> Result<Vec<SampleArg>> {
    let mut out = args.to_vec();
    op.fill_defaults(&mut out)?;
    Ok(out)
}

/// The type of a sample's tensor.
pub fn meta(t: &RawTensor) -> Meta {
    TensorType::new(t.dtype(), t.layout().clone())
}

/// Calls an operator.
pub fn call(op: Op, args: &[SampleArg]) -> Result<Outcome> {
    let args = filled(op, args)?;
    let metas: Vec<Arg<Meta, Scalar>> = args.iter().map(|a| a.map_values(meta)).collect();
    let def = op.def();
    if let Some(rule) = def.view
        && let ViewOutcome::Views(views) = rule.of(&metas)?
    {
        let base = Args::<RawTensor, Scalar>(&args);
        let base = base.tensor(def.base as usize)?;
        let alias = |t: &TensorType<i64>| {
            let outside = || OpError::new("a view reaches outside its storage");
            let mut view = base.alias(t.dtype, t.layout.clone()).ok_or_else(outside)?;
            match def.math {
                Some(MathView::Conj) => view.conj ^= t.dtype.is_complex(),
                Some(MathView::Neg) => view.neg ^= true,
                Some(MathView::ResolveConj | MathView::ResolveNeg) | None => {}
            }
            Ok(view)
        };
        let views = views.iter().map(alias).collect::<Result<Vec<_>>>()?;
        return Ok(Outcome::Tensors(views));
    }
    // Kernels see no lazy bits.
    let own: Vec<SampleArg> = args.iter().map(|a| a.map_values(resolved)).collect();
    let ctx = Ctx { threads: 1, ..Ctx::default() };
    let kernel = if def.composed.is_some_and(|f| f(&Args(&metas))) { Kernel::None } else { def.kernel };
    match kernel {
        Kernel::Fixed(kernel) => {
            let infer = def.infer.ok_or_else(|| OpError::new(format!("{op} has a kernel but no shape rule")))?;
            let outs: Vec<RawTensor> =
                infer(&Args(&metas))?.into_iter().map(|m| RawTensor::zeros(m.dtype, m.layout)).collect();
            on_views(&own, &outs, |args, outs| kernel(&fitted(args, outs, &ctx)))?;
            Ok(Outcome::Tensors(outs))
        }
        Kernel::Dynamic(kernel) => {
            on_views(&own, &[], |args, outs| kernel(&fitted(args, outs, &ctx))).map(Outcome::Tensors)
        }
        Kernel::Scalar(kernel) => {
            on_views(&own, &[], |args, outs| kernel(&fitted(args, outs, &ctx))).map(Outcome::Number)
        }
        Kernel::Collective(_) => Err(OpError::new(format!("{op} needs the ranks of a run"))),
        Kernel::None if mutates(op, &args) => twin(op, &args).map(Outcome::Tensors),
        Kernel::None => {
            let compose = def.decompose.ok_or_else(|| OpError::new(format!("{op} cannot be run")))?;
            let mut eager = Eager { values: Vec::new() };
            let vals: Vec<Arg<Val, Scalar>> = args.iter().map(|a| a.map_values(|t| eager.push(t.clone()))).collect();
            let results = compose(&mut eager, &Args(&vals))?;
            Ok(Outcome::Tensors(results.iter().map(|v| eager.values[v.0 as usize].clone()).collect()))
        }
    }
}

/// Whether a call writes arguments and is not an `out=` form.
fn mutates(op: Op, args: &[SampleArg]) -> bool {
    let plain: Result<Vec<Arg<(), Expr>>> =
        args.iter().map(|a| a.try_map(|_| Ok(()), |s| Ok::<_, OpError>(Expr::from(*s)))).collect();
    op.twin().is_some_and(|t| !t.resizes) && plain.is_ok_and(|args| op.mutates(&args))
}

/// What a mutating call returns, by its functional form; the arguments stay as they are.
fn twin(op: Op, args: &[SampleArg]) -> Result<Vec<RawTensor>> {
    let twin = op.twin().ok_or_else(|| OpError::new(format!("{op} has no functional form")))?;
    let passed: Vec<SampleArg> = twin.args.iter().map(|&i| args[i as usize].clone()).collect();
    let results = match call(twin.op, &passed)? {
        Outcome::Tensors(ts) => ts,
        Outcome::Number(s) => return Err(OpError::new(format!("{} gives the number {s}", twin.op))),
    };
    let returned = |r: &TwinReturn| match *r {
        TwinReturn::Result(k) => Ok(results[k as usize].clone()),
        TwinReturn::Arg(i) => {
            let target = Args::<RawTensor, Scalar>(args).tensor(i as usize)?;
            let after = twin.writes.iter().find(|w| w.0 == i).map_or(target, |w| &results[w.1 as usize]);
            if after.layout().sizes != target.layout().sizes {
                return Err(OpError::new(format!("{op}: the result does not have its target's sizes")));
            }
            let out = RawTensor::zeros(target.dtype(), target.layout().clone());
            copy_convert(after.read().view(), &out.write().view_mut());
            Ok(out)
        }
    };
    twin.returns.iter().map(returned).collect()
}

/// The tensor with its lazy bits applied, in memory of its own if there are any.
pub fn resolved(t: &RawTensor) -> RawTensor {
    let mut out = t.clone();
    for (bit, op) in [(t.conj, &pointwise::CONJ), (t.neg, &pointwise::NEG)] {
        if bit {
            let to = RawTensor::zeros(t.dtype(), Layout::contiguous(&t.layout().sizes));
            let from = out.read();
            pointwise::compute(op, t.dtype(), &[pointwise::Input::View(from.view())], &to.write().view_mut(), 1)
                .expect("these are defined for complex numbers");
            drop(from);
            out = to;
        }
    }
    (out.conj, out.neg) = (false, false);
    out
}

/// Calls `f` with tensors as kernels read and write them.
pub fn on_views<R>(
    args: &[SampleArg],
    outs: &[RawTensor],
    f: impl FnOnce(&[Arg<View<'_>, Scalar>], &[ViewMut<'_>]) -> R,
) -> R {
    let access = Access::of(args.iter().flat_map(Arg::values), outs).expect("samples are shared with no other thread");
    // SAFETY: results overlap operands where a test means it, as the operator's licences say.
    let view = |t| unsafe { access.view(t) };
    let mut views = Vec::with_capacity(args.len());
    for arg in args {
        views.push(match arg {
            Arg::Value(t) => Arg::Value(view(t)),
            Arg::Values(ts) => Arg::Values(ts.iter().map(|t| t.as_ref().map(view)).collect()),
            other => other.map_values(|_| unreachable!("lists and values are handled above")),
        });
    }
    // SAFETY: as above.
    let targets: Vec<_> = outs.iter().map(|t| unsafe { access.view_mut(t) }).collect();
    f(&views, &targets)
}

/// A call of a kernel for results of the sizes that the shape rule gives.
pub fn fitted<'a>(args: &'a [Arg<View<'a>, Scalar>], outs: &'a [ViewMut<'a>], ctx: &'a Ctx) -> Call<'a> {
    // SAFETY: the samples' results were made so.
    Call { args: Args(args), outs, ctx, fitted: unsafe { Fitted::promise() } }
}

/// Runs the calls of a composition as they come.
struct Eager {
    values: Vec<RawTensor>,
}

impl Eager {
    fn push(&mut self, t: RawTensor) -> Val {
        self.values.push(t);
        Val(self.values.len() as u32 - 1)
    }
}

impl Emit for Eager {
    fn call(&mut self, op: &str, args: &[Arg<Val, Scalar>]) -> Result<SmallVec<[Val; 1]>> {
        let op = restride_ops::lookup(op).ok_or_else(|| OpError::new(format!("no operator {op}")))?;
        let args: Vec<SampleArg> = args.iter().map(|a| a.map_values(|v| self.values[v.0 as usize].clone())).collect();
        match call(op, &args)? {
            Outcome::Tensors(ts) => Ok(ts.into_iter().map(|t| self.push(t)).collect()),
            Outcome::Number(s) => Err(OpError::new(format!("{op} gives the number {s} within a composition"))),
        }
    }
    fn meta(&self, v: Val) -> Meta {
        meta(&self.values[v.0 as usize])
    }
}
