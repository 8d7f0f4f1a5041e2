//! Copies that change nothing, and the copying forms of views.

use super::Materializer;
use restride_ir::{Arg, Movement, Node, Op, Result};
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
            Some(Movement::View(_)) if self.as_views => {
                let Some(view) = view_of_copy(op) else { return Ok(false) };
                let args = self.mapped(node)?;
                // Strides do not express every view, and a type that is not known cannot be changed.
                let metas = self.metas(&args).filter(|_| self.facts[target].sure);
                let known = self.old.tensor(*result).known().is_some();
                let rule = view.def().view.zip(metas).filter(|_| known && !view.def().strided);
                if !rule.is_some_and(|(r, m)| matches!(r.of(&m), Ok(restride_ir::ViewOutcome::Views(_)))) {
                    return Ok(false);
                }
                let node = Node { op: view, ..node.clone() };
                self.call(&node, view, args)?;
                self.counts.copies += 1;
                Ok(true)
            }
            _ => Ok(false),
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
