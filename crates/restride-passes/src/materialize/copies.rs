//! Copies that change nothing, and the copying forms of views.

use super::Materializer;
use restride_ir::{Arg, Args, Expr, Movement, Node, Op, Result, TensorType, ViewOutcome};
use restride_ops::lookup;

impl Materializer<'_> {
    /// A copy whose memory the caller does not see: the operand itself, or a view of it.
    pub(super) fn pass_through(&mut self, node: &Node) -> Result<bool> {
        let op = node.op;
        let ([result], Some(Arg::Value(operand)), false) = (&node.results[..], node.args.first(), op.is_view()) else {
            return Ok(false);
        };
        if self.visible.contains(result) || self.old.values[*operand].ty.tensor().is_none() {
            return Ok(false);
        }
        let target = self.value(*operand)?;
        match op.def().movement {
            Some(Movement::Same) => {
                let want = self.old.tensor(*result).clone();
                if self.new.tensor(target).dtype != want.dtype || !self.lies_as(target, &want) {
                    return Ok(false);
                }
                self.bind(*result, target);
                self.counts.copies += 1;
                Ok(true)
            }
            Some(Movement::View(_)) if !self.kept.contains(result) && self.facts[target].sure => {
                let Some(view) = view_of_copy(op) else { return Ok(false) };
                let args = self.mapped(node)?;
                let Some(ty) = self.view_type(view, &args) else { return Ok(false) };
                let hint = self.old.values[*result].name.clone();
                let v = self.view(view.name(), args, ty, &hint, target, node)?;
                self.viewed.insert(*result);
                self.bind(*result, v);
                self.counts.copies += 1;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// What the view of these arguments is, if strides express it; `None` where that is not known for all sizes.
    fn view_type(&self, view: Op, args: &[Arg]) -> Option<TensorType> {
        let rule = view.def().view.filter(|_| !view.def().strided)?;
        let typed = |a: &Arg| a.try_map(|v| self.new.values[*v].ty.tensor().cloned().ok_or(()), |e| Ok(e.clone())).ok();
        let typed: Vec<Arg<TensorType, Expr>> = args.iter().map(typed).collect::<Option<_>>()?;
        match (rule.symbolic)(&Args(&typed)) {
            Ok(ViewOutcome::Views(mut views)) if views.len() == 1 => views.pop(),
            _ => None,
        }
    }
}

/// `permute` for `permute_copy`.
fn view_of_copy(copy: Op) -> Option<Op> {
    let schema = copy.schema();
    let name = schema.name.strip_suffix("_copy")?;
    let overload = copy.name().rsplit_once('.').map_or("default", |(_, o)| o);
    let view = lookup(&format!("{}.{name}.{overload}", schema.namespace))?;
    let names = |op: Op| op.schema().args.iter().map(|a| a.name.clone()).collect::<Vec<_>>();
    (view.is_view() && names(view) == names(copy)).then_some(view)
}
