//! Tensors whose sizes data decides, where PyTorch asks for equal sizes: a run checks that they are equal.

use super::call::CallArg;
use super::{Recorder, TensorRef};
use restride_ir::{Arg, Dim, Expr, ExprFn, Op, Result};
use std::sync::Arc;

impl Recorder<'_> {
    /// The arguments of `cat` and `copy_` with operands of the sizes that PyTorch asks for; other arguments as they are.
    pub(super) fn fitted_args(&mut self, op: Op, mut args: Vec<CallArg>) -> Result<Vec<CallArg>> {
        match (op.name(), &mut args[..]) {
            ("aten.copy_.default", [Arg::Value(to), Arg::Value(from), ..]) => {
                let wanted = to.ty().layout.sizes.to_vec();
                if let Some(lead) = wanted.len().checked_sub(from.rank()) {
                    // A size of 1 is broadcast.
                    let sizes = from.ty().layout.sizes.to_vec();
                    let wanted: Vec<Option<Expr>> =
                        sizes.iter().zip(&wanted[lead..]).map(|(n, w)| (!n.is(1)).then(|| w.clone())).collect();
                    *from = self.fitted(from, &wanted)?;
                }
            }
            ("aten.cat.default", [Arg::Values(parts), Arg::Scalar(Expr::Int(dim)), ..]) => {
                let Some(Some(first)) = parts.first().cloned() else { return Ok(args) };
                let Ok(dim) = first.ty().layout.dim(*dim) else { return Ok(args) };
                let mut wanted: Vec<Option<Expr>> = first.ty().layout.sizes.iter().cloned().map(Some).collect();
                wanted[dim] = None;
                for part in parts.iter_mut().skip(1).flatten().filter(|p| p.rank() == wanted.len()) {
                    *part = self.fitted(part, &wanted)?;
                }
            }
            _ => {}
        }
        Ok(args)
    }

    /// The tensor with these sizes, where data decides whether it has them: a run checks it.
    pub fn fitted(&mut self, t: &TensorRef, wanted: &[Option<Expr>]) -> Result<TensorRef> {
        let have = t.ty().layout.sizes.to_vec();
        let mut pads: Vec<Expr> = Vec::new();
        for (d, (have, wanted)) in have.iter().zip(wanted).enumerate().rev() {
            let missing = match wanted {
                Some(w) if (w.is_learnt() || have.is_learnt()) && w.equals(have) != Some(true) => {
                    let equal = Expr::call(ExprFn::Eq, vec![have.clone(), w.clone()]);
                    let text: Arc<str> = format!("the sizes {have} and {w} of dimension {d} must be equal").into();
                    self.call_named("aten._assert_scalar.default", vec![Arg::Scalar(equal), Arg::Str(text)])?;
                    w.minus(have)
                }
                _ => Expr::Int(0),
            };
            pads.extend([Expr::Int(0), missing]);
        }
        if pads.iter().all(|p| p.is(0)) {
            return Ok(t.clone());
        }
        // Nothing is added, but the result has the wanted sizes as its type.
        let zero = Arg::Scalar(Expr::Int(0));
        self.tensor("aten.constant_pad_nd.default", vec![Arg::Value(t.clone()), Arg::Scalars(pads), zero])
    }

    /// The part that `whole = torch.cat([start, part])` adds to a tensor, in the body under construction.
    pub fn appended(&mut self, whole: &TensorRef, start: &TensorRef) -> Option<TensorRef> {
        let frame = self.frames.last()?;
        let (value, serial) = (whole.value.get(), frame.serial);
        if whole.frame.get() != serial || start.frame.get() != serial {
            return None;
        }
        let (_, node) = frame.graph.ordered().find(|(_, n)| n.results.contains(&value))?;
        let [Arg::Values(parts), Arg::Scalar(dim), ..] = &node.args[..] else { return None };
        let [Some(first), Some(part)] = parts[..] else { return None };
        if node.op.name() != "aten.cat.default" || !dim.is(0) || first != start.value.get() {
            return None;
        }
        let ty = frame.graph.tensor(part).clone();
        let group = self.group();
        Some(self.object(part, serial, ty, group))
    }
}
