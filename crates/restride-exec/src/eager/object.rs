//! Operators that change a tensor object itself: `t_`, `unsqueeze_`, `as_strided_`, `resize_`, `set_`.

use super::call::{EagerArgs, EagerValue, asks, native, operands, refuse_views_behind};
use super::memory::TapeStorage;
use super::mode::is_grad_enabled;
use super::node::{Edge, NodeKind, TapeNode};
use super::tensor::{Tensor, refuse, refuse_in_place_view};
use super::write::refuse_leaf;
use restride_ir::{Arg, Error, Grad, Op, Result};
use std::rc::Rc;

/// Runs such a call.
pub(super) fn change(op: Op, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let Some(Arg::Value(t)) = args.first() else {
        return Err(Error::invalid(format!("argument 0 of {op} is not a tensor")));
    };
    let def = op.def();
    if matches!(def.grad, Some(Grad::Zero)) {
        if t.view().is_some() {
            return refuse("Can't detach views in-place. Use detach() instead.");
        }
        t.cut();
        return native(op, args);
    }
    if is_grad_enabled() {
        if operands(args).any(asks) {
            refuse_in_place_view(t)?;
        }
        refuse_leaf(t)?;
        refuse_views_behind(op, args)?;
    }
    if def.grows && (t.requires_grad() || t.root().requires_grad()) {
        return refuse("cannot resize variables that require grad");
    }
    if def.base != 0 {
        if t.requires_grad() {
            return Err(Error::unsupported(format!("{op} on a tensor that is differentiated")).help("detach it first"));
        }
        // A tensor may be set to a view of itself.
        if operands(args).any(|o| !o.is(t) && o.root().is(t)) {
            t.become_view();
        }
        let made = native(op, args)?;
        let shares = |o: &&Tensor| !o.is(t) && o.object().borrow().storage().same(t.object().borrow().storage());
        match operands(args).find(shares) {
            Some(source) => t.moved_onto(source.memory(), Some(source.root())),
            None => t.moved_onto(Rc::<TapeStorage>::default(), None),
        }
        return Ok(made);
    }
    let (before, old) = (t.region(), t.edge());
    // PyTorch counts it as a write.
    t.memory().touch();
    if t.view().is_some() {
        let made = native(op, args)?;
        t.renew();
        return Ok(made);
    }
    if t.is_asking_leaf() {
        let made = native(op, args)?;
        t.forget_leaf();
        return Ok(made);
    }
    // All cells of a base stay in sight where it is only turned; otherwise it is a view from now on.
    let metas: Vec<_> = args.iter().map(|a| a.map_values(Tensor::meta)).collect();
    let after = restride_ops::types(op, &metas)?.into_iter().next().map(|m| m.layout);
    let all = |l: &restride_tensor::Layout| l.is_dense().then(|| l.cell_range());
    let turned = after.as_ref().is_some_and(|l| all(l).is_some() && all(l) == all(&before.layout));
    if !turned {
        t.become_view();
        return native(op, args);
    }
    let made = native(op, args)?;
    if let Some(old) = old {
        let kind = NodeKind::Restride { base: before, region: t.region() };
        let node = TapeNode::new(kind, vec![Some(old)], vec![t.meta()]);
        t.set_edge(Some(Edge { node, slot: 0 }));
    }
    Ok(made)
}
