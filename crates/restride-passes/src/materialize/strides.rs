//! Layouts of new values: types at known sizes, and copies where the declared strides are needed.

use super::Materializer;
use crate::args::{at_witness, type_at, typed};
use restride_ir::{
    Arg, Args, Dim, Error, Expr, Meta, Node, NodeId, Op, Origin, Result, Scalar, TensorType, ValueId, ViewOutcome,
};
use restride_tensor::self_overlaps;
use std::sync::Arc;

impl Materializer<'_> {
    /// Gives an operator that asks for strides operands that have them.
    pub(super) fn settle(&mut self, node: &Node, args: &mut [Arg]) -> Result<()> {
        let op = node.op;
        let (Some(Arg::Value(old)), Some(Arg::Value(new))) = (node.args.first(), args.first()) else { return Ok(()) };
        let Some(want) = self.old.values[*old].ty.tensor().cloned() else { return Ok(()) };
        let strides = self.has_strides_of(*new, &want);
        let start = strides && self.new.tensor(*new).layout.offset.equals(&want.layout.offset) == Some(true);
        if op.def().strided && !start || op.def().asks_for_strides && !strides {
            self.showing.push(*old);
        }
        if op.def().strided && !start {
            let copy = self.copy_of(*new, &want, &node.origin)?.ok_or_else(|| refuse(op))?;
            args[0] = Arg::Value(copy);
            // The copy starts at cell 0 of a storage of its own.
            if let Some(i) = op.schema().arg("storage_offset") {
                let shifted = match &args[i] {
                    Arg::Scalar(e) => e.minus(&want.layout.offset),
                    _ => Expr::Int(0),
                };
                args[i] = Arg::Scalar(shifted);
            }
        } else if op.def().asks_for_strides && !strides {
            let copy = self.copy_of(*new, &want, &node.origin)?.ok_or_else(|| refuse(op))?;
            args[0] = Arg::Value(copy);
        }
        Ok(())
    }

    /// Whether a new call of a view operator makes views: `reshape` that strides cannot express does not, nor does
    /// `conj_physical` of complex elements. `None` if that is not known, or for another operator.
    pub(super) fn viewed(&self, id: NodeId) -> Option<bool> {
        let node = &self.new.nodes[id];
        let rule = node.op.def().view?;
        let sure = |v: ValueId| self.new.values[v].ty.tensor().filter(|_| self.facts[v].sure).cloned();
        match (rule.symbolic)(&Args(&typed(&node.args, sure)?)).ok()? {
            ViewOutcome::Views(_) => Some(true),
            ViewOutcome::Copy => Some(false),
            ViewOutcome::Unknown => None,
        }
    }

    /// Whether PyTorch's tensor has these sizes and strides.
    pub(super) fn has_strides_of(&self, v: ValueId, want: &TensorType) -> bool {
        let have = self.new.tensor(v);
        self.facts[v].sure
            && match (self.known(have), self.known(want)) {
                (Some(a), Some(b)) => a.same_strides(&b),
                _ => have.layout == want.layout,
            }
    }

    /// A fresh tensor with the value's elements and exactly these strides; `None` where no tensor of its own has them.
    pub(super) fn copy_of(&mut self, v: ValueId, want: &TensorType, origin: &Arc<Origin>) -> Result<Option<ValueId>> {
        let mut ty = want.clone();
        ty.layout.offset = Expr::Int(0);
        let hint = format!("{}_laid_out", self.new.values[v].name);
        let made = if ty.layout.is_contiguous() {
            let format = Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous);
            self.build(origin, &hint, |b| b.call("aten.clone.default", vec![Arg::Value(v), format], ty))
        } else {
            if self.known(&ty).is_none_or(|k| self_overlaps(&k.layout) != Some(false)) {
                return Ok(None);
            }
            self.build(origin, &hint, |b| {
                let args = vec![
                    Arg::Scalars(ty.layout.sizes.to_vec()),
                    Arg::Scalars(ty.layout.strides.to_vec()),
                    Arg::DType(ty.dtype),
                ];
                let empty = b.call("aten.empty_strided.default", args, ty.clone());
                b.call("aten.copy_.default", vec![Arg::Value(empty), Arg::Value(v)], ty)
            })
        };
        self.own(made, true);
        self.copied += self.bytes(made);
        Ok(Some(made))
    }

    /// Bytes of a new value, at the witness.
    pub(super) fn bytes(&self, v: ValueId) -> i64 {
        let known = self.new.values[v].ty.tensor().and_then(|t| self.known(t));
        known.map_or(0, |m| m.layout.numel().saturating_mul(m.dtype.size() as i64))
    }

    pub(super) fn known(&self, ty: &TensorType) -> Option<Meta> {
        type_at(ty, &self.ctx.witness)
    }

    pub(super) fn metas(&self, args: &[Arg]) -> Option<Vec<Arg<Meta, Scalar>>> {
        at_witness(&self.new, &self.ctx.witness, args)
    }
}

pub(super) fn refuse(op: Op) -> Error {
    Error::unsupported(format!("{op} of a value whose memory PyTorch may lay out otherwise"))
}
