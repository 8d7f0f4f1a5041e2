//! The values that a rule reads, found by running it on types alone; only those are saved.

use super::node::Held;
use restride_ir::{Arg, Expr, GradCall, GradEmit, Meta, Op, OpError, Scalar, TensorType, Val};
use restride_ops::{gradient::gradients, lookup, types};
use smallvec::SmallVec;

type Result<T> = std::result::Result<T, OpError>;

/// Calls with more results than this are asked once only, and then all their results are saved.
const MOST_RESULTS: usize = 8;

struct Probe {
    types: Vec<TensorType>,
    /// For each operand, then each result: whether a call took it.
    read: Vec<bool>,
    /// Whether the types of a call's results are unknown.
    blind: bool,
}

impl GradEmit for Probe {
    fn call(&mut self, name: &str, args: &[Arg<Val, Expr>]) -> Result<SmallVec<[Val; 1]>> {
        let op = lookup(name).ok_or_else(|| OpError::new(format!("unknown operator {name}")))?;
        for v in args.iter().flat_map(Arg::values) {
            if let Some(read) = self.read.get_mut(v.0 as usize) {
                *read = true;
            }
        }
        let mut metas: Vec<Arg<Meta, Scalar>> = args
            .iter()
            .map(|a| {
                let unknown = || OpError::new("an unknown size");
                a.try_map(|v| self.ty(*v).known().ok_or_else(unknown), |e| e.constant().ok_or_else(unknown))
            })
            .collect::<Result<_>>()?;
        op.fill_defaults_or_none(&mut metas);
        let made = types(op, &metas).inspect_err(|_| self.blind = true)?;
        Ok(made.into_iter().map(|m| self.add(lifted(&m))).collect())
    }

    fn ty(&self, v: Val) -> TensorType {
        self.types
            .get(v.0 as usize)
            .cloned()
            .unwrap_or_else(|| TensorType::contiguous(restride_tensor::DType::F32, &[]))
    }
}

impl Probe {
    fn add(&mut self, ty: TensorType) -> Val {
        self.types.push(ty);
        Val(self.types.len() as u32 - 1)
    }
}

/// A known type as rules see it.
pub(super) fn lifted(m: &Meta) -> TensorType {
    TensorType::new(m.dtype, m.layout.map(|d| Expr::Int(*d)))
}

/// Whether the rule of a call reads each operand, then each result; all count as read where only a run can tell.
pub(super) fn reads(op: Op, args: &[Arg<Val, Expr>], operands: &[Held], results: &[Held], needs: &[bool]) -> Vec<bool> {
    let count = operands.len() + results.len();
    let floating = |k: usize| results[k].ty.dtype.is_float() || results[k].ty.dtype.is_complex();
    let mut read = vec![false; count];
    let mut ran = false;
    // A rule may read more where some gradients are missing.
    let one = results.len() > 1 && results.len() <= MOST_RESULTS;
    for only in std::iter::once(None).chain((0..results.len()).filter(|k| one && floating(*k)).map(Some)) {
        let types = operands.iter().chain(results).map(|h| h.ty.clone()).collect();
        let mut probe = Probe { types, read: vec![false; count], blind: false };
        let made: Vec<Val> = (0..results.len()).map(|k| Val((operands.len() + k) as u32)).collect();
        let mut seed = |r: &Held| probe.add(TensorType::contiguous(r.ty.dtype, &r.ty.layout.sizes));
        let given = |k: usize| floating(k) && only.is_none_or(|o| o == k);
        let grads: Vec<Option<Val>> = results.iter().enumerate().map(|(k, r)| given(k).then(|| seed(r))).collect();
        ran |= gradients(&mut probe, &GradCall { op, args, results: &made, grads: &grads, needs }).is_ok();
        if probe.blind {
            return vec![true; count];
        }
        read.iter_mut().zip(probe.read).for_each(|(r, m)| *r |= m);
    }
    // A rule that refuses all gradients may give some.
    if !ran && op.def().grad.is_some() {
        read.fill(true);
    }
    if results.len() > MOST_RESULTS {
        read[operands.len()..].fill(true);
    }
    read
}
