//! Calls of operators that write nothing: run by the interpreter, and recorded where something is differentiated.

use super::emit::RuleFrame;
use super::guards;
use super::memory::SavedValue;
use super::mode::{self, Saved, is_grad_enabled};
use super::node::{Edge, Held, NodeKind, Recorded, TapeNode};
use super::probe::{self, lifted};
use super::tensor::{Tensor, ViewOrigin, at, differentiable, refuse_written_base};
use super::{object, write};
use crate::interp::{Slot, call_slots, numbers, plain, run_members};
use restride_ir::{
    Arg, Args, DecomposeFn, Error, Expr, Grad, GradCall, InPlaceCalls, Movement, Op, Result, Scalar, Val,
};
use restride_ops::{gradient::kept, view_form};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Arguments of a call.
pub(super) type EagerArgs = [Arg<Tensor, Scalar>];

/// A result of a call.
#[derive(Clone, Debug)]
pub enum EagerValue {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Scalar(Scalar),
    /// A string.
    Str(Arc<str>),
    /// Nothing.
    None,
}

impl EagerValue {
    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            EagerValue::Tensor(t) => Some(t),
            _ => None,
        }
    }
}

/// Calls an operator by name; trailing arguments left out take their defaults. Lists of results are spread.
///
/// # Errors
/// An unknown operator, PyTorch's refusals, an operator without a kernel.
pub fn call_op(name: &str, args: &[Arg<Tensor, Scalar>]) -> Result<Vec<EagerValue>> {
    let op = restride_ops::lookup(name)
        .ok_or_else(|| Error::invalid(format!("unknown operator {name}")).help("name it as aten.add.Tensor"))?;
    let mut args = args.to_vec();
    op.fill_defaults(&mut args).map_err(|e| at(op, e))?;
    run(op, &args).map_err(|e| at(op, e))
}

/// A call with all its arguments.
pub(super) fn run(op: Op, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let def = op.def();
    if def.hop.is_some() {
        return Err(Error::unsupported(format!("{op} takes graphs, and eager calls have none"))
            .help("branch and loop in the calling program"));
    }
    if op.member().is_some() {
        return members(op, args);
    }
    if def.metadata {
        return object::change(op, args);
    }
    if let Some(InPlaceCalls { calls, .. }) = def.in_place_calls {
        return composed_calls(*calls, args);
    }
    if let Some(twin) = op.twin()
        && op.mutates(&plain(args))
    {
        return write::mutate(op, twin, args);
    }
    refuse_views_behind(op, args)?;
    if !is_grad_enabled() || !operands(args).any(asks) {
        return native(op, args);
    }
    match def.grad {
        // PyTorch records step functions with zero gradients.
        Some(Grad::Zero) if mode::strict() && kept(op).is_some() => recorded(op, args),
        Some(Grad::Zero) => constants(native(op, args)?, args),
        Some(Grad::Form(form)) => {
            let composed = guards::composed(op, args);
            let mut frame = RuleFrame::default();
            let given: Vec<Arg<Val, Expr>> = frame.enter(args);
            let needs = vec![true; operands(args).count()];
            let call = GradCall { op, args: &given, results: &[], grads: &[], needs: &needs };
            let made = form(&mut frame, &call);
            composed_of(frame.leave(made)?, composed)
        }
        Some(Grad::Composed) => {
            let decompose = def.decompose.ok_or_else(|| Error::invalid(format!("{op} is composed of nothing")))?;
            let composed = guards::composed(op, args);
            composed_of(composed_calls(decompose, args)?, composed)
        }
        _ if def.strided && def.view.is_none() => strided_copy(op, args),
        _ => recorded(op, args),
    }
}

/// The calls of a composition.
fn composed_calls(decompose: DecomposeFn, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let mut frame = RuleFrame::default();
    let given: Vec<Arg<Val, Scalar>> = frame.enter_numbers(args);
    let made = decompose(&mut frame, &Args(&given)).map(|made| made.into_vec());
    frame.leave(made)
}

/// Results of a call that was run as several.
fn composed_of(made: Vec<EagerValue>, composed: Option<guards::Composed>) -> Result<Vec<EagerValue>> {
    if let Some(composed) = composed {
        composed.results(&made.iter().filter_map(EagerValue::tensor).collect::<Vec<_>>());
    }
    Ok(made)
}

/// Whether PyTorch records a call with this operand: so it does with views made under `no_grad` of a differentiated base, though
/// no gradient passes them.
pub(super) fn asks(t: &Tensor) -> bool {
    t.requires_grad() || mode::strict() && t.view().is_some_and(|v| v.base.requires_grad())
}

/// PyTorch's refusals of views that it cannot make the history of anew when their base was written.
pub(super) fn refuse_views_behind(op: Op, args: &EagerArgs) -> Result<()> {
    let constant = matches!(op.def().grad, Some(Grad::Zero)) && kept(op).is_none();
    if !mode::strict() || !is_grad_enabled() || constant || !operands(args).any(asks) {
        return Ok(());
    }
    match operands(args).find_map(Tensor::behind) {
        Some(origin) => refuse_written_base(origin),
        None => Ok(()),
    }
}

/// The tensors among arguments, repeats included.
pub(super) fn operands(args: &EagerArgs) -> impl Iterator<Item = &Tensor> {
    args.iter().flat_map(Arg::values)
}

/// The arguments as the interpreter takes them.
pub(super) fn slots(args: &EagerArgs) -> Vec<Arg<Slot, Scalar>> {
    args.iter().map(|a| a.map_values(|t| Slot::Tensor(t.object().clone()))).collect()
}

/// A `_foreach_*` call.
fn members(op: Op, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let item = |t: &Tensor, i: usize| {
        let at = Arg::Scalar(Scalar::Int(i as i64));
        let made = Tensor::call_one("aten.select.int", &[Arg::Value(t.clone()), Arg::Scalar(Scalar::Int(0)), at]);
        made.map_err(|e| super::tensor::words(&e))
    };
    run_members(op, args, resolved, item, run)
}

/// A tensor with its lazy bits applied.
fn resolved(t: &Tensor) -> Result<Tensor> {
    let mut t = t.clone();
    for (set, name) in [(t.raw().conj, "aten.resolve_conj.default"), (t.raw().neg, "aten.resolve_neg.default")] {
        if set {
            t = Tensor::call_one(name, &[Arg::Value(t)])?;
        }
    }
    Ok(t)
}

/// A call by the interpreter that is not recorded. Results that share memory with an operand are views.
pub(super) fn native(op: Op, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let made = call_slots(op, &slots(args), mode::next_key(), &mode::options())?;
    // PyTorch does not know that some are views, and makes others one by one.
    let listed = op.schema().returned_lists() > 0;
    let many = (made.len() > 1 || listed) && !op.def().resolves && !op.def().one_by_one;
    wrap(made, args, many, op.def().detaches)
}

/// Results of the interpreter as tensors: an operand itself, a view of one, or fresh.
fn wrap(made: Vec<Slot>, args: &EagerArgs, many: bool, detaches: bool) -> Result<Vec<EagerValue>> {
    let mut out: Vec<EagerValue> = Vec::with_capacity(made.len());
    for slot in made {
        let object = match slot {
            Slot::Tensor(o) => o,
            Slot::Scalar(s) => {
                out.push(EagerValue::Scalar(s));
                continue;
            }
            Slot::Str(s) => {
                out.push(EagerValue::Str(s));
                continue;
            }
            Slot::None => {
                out.push(EagerValue::None);
                continue;
            }
        };
        if let Some(same) = operands(args).find(|t| Rc::ptr_eq(t.object(), &object)) {
            out.push(EagerValue::Tensor(same.clone()));
            continue;
        }
        let shares = |t: &&Tensor| t.object().borrow().storage().same(object.borrow().storage());
        let t = match operands(args).find(shares) {
            // PyTorch differentiates nothing through it.
            Some(operand) if detaches => Tensor::constant_of(operand, object),
            Some(operand) => view_of(operand, object, many),
            None if out.iter().filter_map(EagerValue::tensor).any(|t| shares(&t)) => {
                // Results share memory with each other alone: each is given its own.
                let own = super::memory::copied(&object.borrow())?;
                Tensor::fresh(Rc::new(RefCell::new(own)))
            }
            None => Tensor::fresh(object),
        };
        out.push(EagerValue::Tensor(t));
    }
    Ok(out)
}

/// A view of an operand: of its base.
fn view_of(operand: &Tensor, object: crate::interp::Object, many: bool) -> Tensor {
    let own = match (is_grad_enabled(), many) {
        (false, _) => ViewOrigin::NoGrad,
        (true, true) => ViewOrigin::Many,
        (true, false) => ViewOrigin::Call,
    };
    if write::unit(operand.root().dtype(), object.borrow().dtype()).is_none() {
        // Bits that are read as another type are constants.
        return Tensor::constant_of(operand, object);
    }
    let (base, origin) = match operand.view() {
        Some(v) if own == ViewOrigin::Call => (v.base, v.origin),
        // Nothing goes through it, though PyTorch remembers how it was made last.
        Some(v) if v.origin == ViewOrigin::NoGrad && !mode::strict() => (v.base, v.origin),
        Some(v) => (v.base, own),
        None => (operand.clone(), own),
    };
    let t = Tensor::region_of(&base, object, origin);
    // Its history is that of the call, if it is recorded.
    t.set_view_edge(None, base.history(), origin);
    t
}

/// Results that share memory with operands and do not pass gradients on: constants, in the operands' memory.
fn constants(made: Vec<EagerValue>, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let one = |v: EagerValue| match v {
        EagerValue::Tensor(t) if !operands(args).any(|o| o.is(&t)) => match t.base() {
            Some(base) => EagerValue::Tensor(Tensor::constant_of(&base, t.object().clone())),
            None => EagerValue::Tensor(t),
        },
        other => other,
    };
    Ok(made.into_iter().map(one).collect())
}

/// The copy form of a view that sees strides reads cells that are no elements of its operand: it is a view and a copy.
fn strided_copy(op: Op, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let copies = matches!(op.def().movement, Some(Movement::View(_)));
    let of_view = operands(args).next().is_some_and(|t| t.view().is_some());
    let Some(view) = view_form(op).filter(|_| copies && of_view) else { return recorded(op, args) };
    let shown = Tensor::call_one(view.name(), args)?;
    call_op("aten.clone.default", &[Arg::Value(shown)])
}

/// A call that is run and recorded.
fn recorded(op: Op, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let made = native(op, args)?;
    let sources: Vec<Tensor> = operands(args).cloned().collect();
    let results: Vec<&Tensor> = made.iter().filter_map(EagerValue::tensor).collect();
    if results.len() != made.len() || results.iter().any(|r| sources.iter().any(|s| s.is(r))) {
        // Numbers, and operands given back.
        return Ok(made);
    }
    // Bits that are read as another type.
    let shares = |r: &Tensor| sources.iter().any(|s| Rc::ptr_eq(&s.memory(), &r.memory()));
    if results.iter().any(|r| r.view().is_none() && shares(r)) {
        return Ok(made);
    }
    // A view that sees strides reads its base; so does one whose elements are of another type.
    let of_base = |r: &&Tensor| {
        let source = sources.first().map(Tensor::dtype);
        let bits = matches!(op.def().grad, Some(Grad::View)) && source != Some(r.dtype());
        r.view().is_some() && (op.def().strided || bits)
    };
    if results.iter().any(of_base) {
        results.iter().for_each(|t| t.renew());
        return Ok(made);
    }
    let edges: Vec<Option<Edge>> = sources.iter().map(Tensor::edge).collect();
    let needs: Vec<bool> = edges.iter().map(Option::is_some).collect();
    let mut next = 0;
    let numbered: Vec<Arg<Val, Expr>> = args
        .iter()
        .map(|a| {
            numbers(&a.map_values(|_| {
                next += 1;
                Val(next - 1)
            }))
        })
        .collect();
    let held = |t: &Tensor| Held { ty: lifted(&t.meta()), value: None };
    let mut call = Recorded {
        args: numbered,
        operands: sources.iter().map(held).collect(),
        results: results.iter().map(|t| held(t)).collect(),
    };
    let guards = guards::of_call(op, args, &results);
    // Values that PyTorch does not keep may be overwritten.
    let how = if guards.is_some() { Saved::CloneOnWrite } else { mode::saved() };
    let read = probe::reads(op, &call.args, &call.operands, &call.results, &needs);
    let all = call.operands.iter_mut().chain(&mut call.results).zip(sources.iter().chain(results.iter().copied()));
    for ((held, t), read) in all.zip(read) {
        if read {
            held.value = Some(SavedValue::guarded(t, how)?);
        }
    }
    let types = results.iter().map(|t| t.meta()).collect();
    let node = TapeNode::guarded(NodeKind::Call(RefCell::new(Some(call)), op), edges, types, guards);
    for (slot, t) in results.iter().enumerate().filter(|(_, t)| differentiable(t.dtype())) {
        let edge = Some(Edge { node: node.clone(), slot });
        match t.view() {
            Some(v) => t.set_view_edge(edge, v.base.history(), v.origin),
            None => t.set_edge(edge),
        }
    }
    Ok(made)
}
