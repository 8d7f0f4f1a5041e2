//! Copies that change nothing, and the copying forms of views.

use super::Materializer;
use crate::args::symbolic_views;
use restride_ir::{Arg, Movement, Node, Op, Result, TensorType, Type};
use restride_ops::view_form;

impl Materializer<'_> {
    /// Replaces a copy whose memory the caller does not see by the operand itself, or by a view of it.
    pub(super) fn pass_through(&mut self, node: &Node) -> Result<bool> {
        let op = node.op;
        let (Some(Arg::Value(operand)), false) = (node.args.first(), op.is_view() || node.results.is_empty()) else {
            return Ok(false);
        };
        let seen = node.results.iter().any(|r| self.visible.contains(r));
        if seen || self.old.values[*operand].ty.tensor().is_none() {
            return Ok(false);
        }
        let target = self.value(*operand)?;
        match (op.def().movement, &node.results[..]) {
            (Some(Movement::Same), [result]) => {
                let want = self.old.tensor(*result).clone();
                if self.new.tensor(target).dtype != want.dtype || !self.has_strides_of(target, &want) {
                    return Ok(false);
                }
                self.bind(*result, target);
                self.counts.copies += 1;
                Ok(true)
            }
            (Some(Movement::View(_)), results) if self.facts[target].sure => {
                if results.iter().any(|r| self.kept.contains(r)) {
                    return Ok(false);
                }
                let Some(view) = view_form(op) else { return Ok(false) };
                let args = self.mapped(node)?;
                let types = self.view_types(view, &args).filter(|types| types.len() == results.len());
                let Some(types) = types else { return Ok(false) };
                let names: Vec<_> = results.iter().map(|r| self.names.fresh(&self.old.values[*r].name)).collect();
                let types = names.into_iter().zip(types.into_iter().map(Type::Tensor));
                let id = self.new.add_node(view, args, types, node.origin.clone());
                for (&result, v) in results.iter().zip(self.new.nodes[id].results.clone()) {
                    self.set_fact(v, self.facts[target].roots.clone(), true);
                    self.viewed.insert(result);
                    self.bind(result, v);
                    self.counts.copies += 1;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The types of views with these arguments, if strides express them; `None` where that is not known for all sizes.
    fn view_types(&self, view: Op, args: &[Arg]) -> Option<Vec<TensorType>> {
        let rule = view.def().view.filter(|_| !view.def().strided)?;
        symbolic_views(rule, args, |v| self.new.values[v].ty.tensor().cloned())
    }
}
