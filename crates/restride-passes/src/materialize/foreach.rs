//! `_foreach_*` operators taken apart, so that each member may be computed where it is wanted.

use crate::build::rebuild;
use restride_ir::{Arg, Error, Expr, Layout, OpError, Program, Result, TensorType};

/// The program with a call for each member of functional `_foreach_*` operators; `None` if it has none.
pub(super) fn apart(program: &Program) -> Result<Option<Program>> {
    let lists = |node: &restride_ir::Node| node.op.member().is_some() && !node.op.mutates(&node.args);
    if !program.graphs.iter().any(|(_, g)| g.ordered().any(|(_, n)| lists(n))) {
        return Ok(None);
    }
    let out = rebuild(program, |new, node| {
        let args = new.args(node);
        let member = node.op.member().filter(|_| lists(node));
        let Some(member) = member else {
            new.keep(node, args);
            return Ok(());
        };
        for (i, &r) in node.results.iter().enumerate() {
            let mut b = new.builder(node, r);
            // A 1-d tensor has a number for each member.
            let item = |v: &restride_ir::ValueId, i: usize| {
                let whole = b.graph.values[*v].ty.tensor().ok_or_else(|| OpError::new("a list of numbers"))?.clone();
                let layout = whole.layout.select(0, &Expr::Int(i as i64))?;
                let at = [0, i as i64].map(|n| Arg::Scalar(Expr::Int(n)));
                let args = std::iter::once(Arg::Value(*v)).chain(at).collect();
                Ok(b.call("aten.select.int", args, TensorType::new(whole.dtype, Layout::clone(&layout))))
            };
            let mut one = node.op.member_args(&args, i, item).map_err(Error::from)?;
            member.fill_defaults_or_none(&mut one);
            let ty = new.old.tensor(r).clone();
            let mut b = new.builder(node, r);
            let hint = b.hint.clone();
            let made = b.node(member, one, [(hint, ty)], &node.origin)[0];
            new.map.set(r, Some(made));
        }
        Ok(())
    })?;
    Ok(Some(out))
}
