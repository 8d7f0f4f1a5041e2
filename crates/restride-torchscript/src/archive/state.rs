//! Attributes that a call changes.
//!
//! A tensor that takes another one's place, of the same type, is a write to a buffer. Where a call leaves other Python values behind,
//! or tensors of other types, the next call runs other code: the program then has a body for the first call and one for all
//! later ones, and a buffer that tells which runs.

use super::{Evaluation, RecordOptions, SavedModule};
use crate::eval::Definition;
use crate::inputs::{Bound, output_arg, outputs};
use crate::record::{RecordedBody, TensorRef};
use crate::value::{PyObject, PyValue};
use restride_ir::{Arg, DType, Error, Expr, InputKind, Program, Result, TensorType, Weight};
use restride_pt2::pytree::TreeSpec;
use restride_tensor::{Bytes, Layout};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// An attribute of an object.
#[derive(Clone)]
struct AttributeSlot {
    object: Rc<PyObject>,
    name: Arc<str>,
    path: Arc<str>,
}

impl AttributeSlot {
    fn get(&self) -> PyValue {
        self.object.attributes.borrow().get(&self.name).cloned().unwrap_or(PyValue::None)
    }

    fn set(&self, value: PyValue) {
        self.object.attributes.borrow_mut().insert(self.name.clone(), value);
    }
}

/// All attributes of the module tree, with their values; lists are copied.
fn snapshot(root: &Rc<PyObject>) -> Vec<(AttributeSlot, PyValue)> {
    let mut seen: HashSet<usize> = HashSet::new();
    let mut out = Vec::new();
    let mut open = vec![(root.clone(), String::new())];
    while let Some((object, path)) = open.pop() {
        if !seen.insert(Rc::as_ptr(&object) as usize) {
            continue;
        }
        for (name, value) in object.attributes.borrow().iter() {
            let full = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
            if let PyValue::Object(inner) = value {
                open.push((inner.clone(), full));
                continue;
            }
            let slot = AttributeSlot { object: object.clone(), name: name.clone(), path: full.into() };
            out.push((slot, copy(value)));
        }
    }
    out
}

/// Whether a value is an object of the code, no module, that holds no tensors: its attributes are numbers, strings and their like.
fn is_record(value: &PyValue, depth: u32) -> bool {
    match value {
        PyValue::Object(o) => {
            depth < 8 && o.path.borrow().is_none() && o.attributes.borrow().values().all(|v| is_record(v, depth + 1))
        }
        PyValue::Poison(_) => false,
        other => !other.has_tensor() && parts(other).iter().all(|p| is_record(p, depth + 1)),
    }
}

/// A copy of containers and records, with the same leaves.
fn copy(value: &PyValue) -> PyValue {
    match value {
        PyValue::Object(o) if is_record(value, 0) => {
            let attributes = o.attributes.borrow().iter().map(|(n, v)| (n.clone(), copy(v))).collect();
            PyValue::Object(Rc::new(PyObject {
                class: o.class.clone(),
                path: Default::default(),
                attributes: crate::value::Shared::new(attributes),
            }))
        }
        PyValue::List(l) => PyValue::list(l.borrow().iter().map(copy).collect()),
        PyValue::Dict(d) => {
            let d = d.borrow().iter().map(|(k, v)| (k.clone(), copy(v))).collect();
            PyValue::Dict(Rc::new(crate::value::Shared::new(d)))
        }
        other => other.clone(),
    }
}

/// Whether two values are the same, down to the tensors in them.
fn unchanged(a: &PyValue, b: &PyValue) -> bool {
    match (a, b) {
        (PyValue::Tensor(x), PyValue::Tensor(y)) => Rc::ptr_eq(x, y),
        (PyValue::List(x), PyValue::List(y)) => {
            let (x, y) = (x.borrow(), y.borrow());
            x.len() == y.len() && x.iter().zip(y.iter()).all(|(a, b)| unchanged(a, b))
        }
        (PyValue::Tuple(x, _), PyValue::Tuple(y, _)) => {
            x.len() == y.len() && x.iter().zip(y.iter()).all(|(a, b)| unchanged(a, b))
        }
        (PyValue::Dict(x), PyValue::Dict(y)) => {
            let (x, y) = (x.borrow(), y.borrow());
            x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| unchanged(v, w)))
        }
        (PyValue::Num(x), PyValue::Num(y)) => x == y,
        (PyValue::Str(x), PyValue::Str(y)) | (PyValue::Device(x), PyValue::Device(y)) => x == y,
        (PyValue::Complex(a, b), PyValue::Complex(c, d)) => (a, b) == (c, d),
        (PyValue::None, PyValue::None) | (PyValue::Poison(_), PyValue::Poison(_)) => true,
        (PyValue::Object(x), PyValue::Object(y)) => {
            Rc::ptr_eq(x, y)
                || x.class == y.class
                    && is_record(a, 0)
                    && is_record(b, 0)
                    && x.attributes.borrow().len() == y.attributes.borrow().len()
                    && x.attributes
                        .borrow()
                        .iter()
                        .all(|(n, v)| y.attributes.borrow().get(n).is_some_and(|w| unchanged(v, w)))
        }
        _ => false,
    }
}

/// What an attribute holds after a call, as the next call finds it.
#[derive(Clone)]
enum StateAfter {
    /// A tensor of this type.
    Tensor(TensorType<i64>),
    /// A value that is no tensor.
    Plain(PyValue),
    /// A list, a tuple or a dictionary with tensors: its parts.
    Parts(PyValue, Vec<StateAfter>),
}

impl StateAfter {
    fn same(&self, other: &StateAfter) -> bool {
        match (self, other) {
            (StateAfter::Tensor(a), StateAfter::Tensor(b)) => a.dtype == b.dtype && a.layout.sizes == b.layout.sizes,
            (StateAfter::Plain(a), StateAfter::Plain(b)) => unchanged(a, b),
            (StateAfter::Parts(a, x), StateAfter::Parts(b, y)) => {
                std::mem::discriminant(a) == std::mem::discriminant(b)
                    && keys(a) == keys(b)
                    && x.len() == y.len()
                    && x.iter().zip(y).all(|(a, b)| a.same(b))
            }
            _ => false,
        }
    }

    /// What a value is for the next call.
    fn of(path: &str, value: &PyValue) -> Result<StateAfter> {
        Ok(match value {
            PyValue::Tensor(t) => match t.ty().known() {
                Some(ty) => StateAfter::Tensor(TensorType::contiguous(ty.dtype, &ty.layout.sizes)),
                None => {
                    return Err(Error::unsupported(format!(
                        "the attribute {path} gets a tensor whose sizes are symbolic or depend on data"
                    )));
                }
            },
            PyValue::Object(_) if is_record(value, 0) => StateAfter::Plain(copy(value)),
            PyValue::Object(_) => {
                return Err(Error::unsupported(format!(
                    "the attribute {path} gets another object, which holds tensors"
                )));
            }
            PyValue::Num(e) if e.constant().is_none() => {
                return Err(Error::unsupported(format!("the attribute {path} gets a number that only a run knows")));
            }
            other if other.has_tensor() => StateAfter::Parts(
                copy(other),
                parts(other).iter().map(|p| StateAfter::of(path, p)).collect::<Result<_>>()?,
            ),
            other => StateAfter::Plain(copy(other)),
        })
    }
}

/// The parts of a container.
fn parts(value: &PyValue) -> Vec<PyValue> {
    match value {
        PyValue::Dict(d) => d.borrow().values().cloned().collect(),
        other => other.items().unwrap_or_default(),
    }
}

/// The keys of a dictionary.
fn keys(value: &PyValue) -> Vec<crate::value::PyKey> {
    match value {
        PyValue::Dict(d) => d.borrow().keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// A container like another one with other parts.
fn rebuilt(like: &PyValue, parts: Vec<PyValue>) -> PyValue {
    match like {
        PyValue::Dict(d) => {
            let items = d.borrow().keys().cloned().zip(parts).collect();
            PyValue::Dict(Rc::new(crate::value::Shared::new(items)))
        }
        PyValue::Tuple(_, fields) => PyValue::Tuple(parts.into(), fields.clone()),
        _ => PyValue::list(parts),
    }
}

/// The tensors in a value, in order.
fn tensors(value: &PyValue) -> Vec<TensorRef> {
    match value {
        PyValue::Tensor(t) => vec![t.clone()],
        other => parts(other).iter().flat_map(tensors).collect(),
    }
}

/// What attributes hold that a call changed, by their paths.
type StateChanges = Vec<(AttributeSlot, PyValue, StateAfter)>;

/// The attributes that a call changed, with their new values. An attribute that calls write before they read it is kept only if
/// it is a tensor of one type.
fn changes(eval: &mut crate::eval::Evaluator<'_, '_>, before: &[(AttributeSlot, PyValue)]) -> Result<StateChanges> {
    let changed: Vec<&(AttributeSlot, PyValue)> =
        before.iter().filter(|(slot, old)| !unchanged(old, &slot.get())).collect();
    let simple = |slot: &AttributeSlot, old: &PyValue| match (old, &slot.get()) {
        (PyValue::Tensor(a), PyValue::Tensor(b)) => {
            a.dtype() == b.dtype() && a.ty().layout.sizes == b.ty().layout.sizes
        }
        _ => false,
    };
    let unread = |slot: &AttributeSlot| {
        let key = (Rc::as_ptr(&slot.object) as usize, slot.name.clone());
        !eval.read.contains(&key) && eval.written.contains(&key)
    };
    // What one call reads of another decides what later calls read.
    let idle = changed.iter().all(|(slot, old)| simple(slot, old) || unread(slot));
    let mut notes = Vec::new();
    let mut out = Vec::new();
    for (slot, old) in changed {
        let new = slot.get();
        if idle && !simple(slot, old) {
            notes.push(format!("the attribute {} is written and never read: its value is not kept", slot.path));
            continue;
        }
        let after = StateAfter::of(&slot.path, &new)?;
        out.push((slot.clone(), new, after));
    }
    eval.rec.program.notes.extend(notes);
    Ok(out)
}

/// Records the program of a method.
pub(super) fn record(contents: &SavedModule<'_>, name: &str, options: &RecordOptions<'_>) -> Result<Program> {
    let mut session = contents.session(name, options)?;
    let bound = session.bind(contents, options)?;
    let before = snapshot(&session.root);
    let method = options.method.unwrap_or("forward");
    let result = call(&mut session, method, &bound)?;
    let changed = changes(&mut session.eval, &before)?;
    let simple = |(slot, _, after): &(AttributeSlot, PyValue, StateAfter)| {
        let old = before.iter().find(|(s, _)| s.path == slot.path).map(|(_, v)| v);
        match (old, after) {
            (Some(PyValue::Tensor(t)), StateAfter::Tensor(ty)) => {
                t.ty().known().is_some_and(|old| old.dtype == ty.dtype && old.layout.sizes == ty.layout.sizes)
            }
            _ => false,
        }
    };
    if changed.iter().all(simple) {
        return finish(session, &bound, &before, &changed, result);
    }
    if changed.iter().all(|c| simple(c) || matches!(c.2, StateAfter::Plain(_)))
        && let Some(program) = same_again(contents, name, options, (session, &bound, &before, &changed, result))?
    {
        return Ok(program);
    }
    let evolving: Vec<(Arc<str>, StateAfter)> =
        changed.iter().filter(|c| !simple(c)).map(|(slot, _, after)| (slot.path.clone(), after.clone())).collect();
    two_calls(contents, name, options, &evolving)
}

/// The program of a first call, if later calls record the same one although they find other Python values: a flag that something
/// was warned of.
fn same_again(
    contents: &SavedModule<'_>,
    name: &str,
    options: &RecordOptions<'_>,
    first: (Evaluation<'_, '_>, &Bound, &[(AttributeSlot, PyValue)], &StateChanges, PyValue),
) -> Result<Option<Program>> {
    let (session, bound, before, changed, result) = first;
    let mut again = contents.session(name, options)?;
    let again_bound = again.bind(contents, options)?;
    for (slot, _) in snapshot(&again.root) {
        if let Some((_, _, StateAfter::Plain(value))) = changed.iter().find(|c| c.0.path == slot.path) {
            slot.set(copy(value));
        }
    }
    let again_before = snapshot(&again.root);
    let method = options.method.unwrap_or("forward");
    // What later calls cannot do, the two bodies' program tells.
    let Ok(again_result) = call(&mut again, method, &again_bound) else { return Ok(None) };
    let Ok(again_changed) = changes(&mut again.eval, &again_before) else { return Ok(None) };
    if again_changed.iter().any(|c| matches!(c.2, StateAfter::Plain(_))) {
        return Ok(None);
    }
    let once = finish(session, bound, before, changed, result)?;
    let later = finish(again, &again_bound, &again_before, &again_changed, again_result)?;
    let same = restride_ir::text::print(&once) == restride_ir::text::print(&later);
    Ok(same.then_some(once))
}

fn call(session: &mut Evaluation<'_, '_>, method: &str, bound: &Bound) -> Result<PyValue> {
    let root = session.root.clone();
    let result = session.eval.call_method(&root, method, bound.args.clone(), Vec::new())?;
    let Some(Definition::Class(class)) = session.eval.library.find(&root.class)? else { return Ok(result) };
    match class.methods.get(method).and_then(|m| m.def.returns.as_ref()) {
        Some(ty) => session.eval.annotated(ty, result),
        None => Ok(result),
    }
}

/// Writes changed tensors to their buffers, and ends the program.
fn finish(
    mut session: Evaluation<'_, '_>,
    bound: &Bound,
    before: &[(AttributeSlot, PyValue)],
    changed: &StateChanges,
    result: PyValue,
) -> Result<Program> {
    let (mut leaves, spec) = outputs(&mut session.eval, &result)?;
    let mut writes: Vec<(TensorRef, TensorRef)> = Vec::new();
    for (slot, new, _) in changed {
        let old = before.iter().find(|(s, _)| s.path == slot.path).map(|(_, v)| v);
        if let (Some(PyValue::Tensor(old)), PyValue::Tensor(new)) = (old, new) {
            writes.push((old.clone(), new.clone()));
        }
    }
    write_state(&mut session, &writes, &mut leaves)?;
    end(session, bound, leaves, &spec)
}

/// Writes new contents to buffers. Results and other new contents that share memory with one of them are copied first.
fn write_state(
    session: &mut Evaluation<'_, '_>,
    writes: &[(TensorRef, TensorRef)],
    leaves: &mut [PyValue],
) -> Result<()> {
    let rec = &mut session.eval.rec;
    let mut sources = Vec::new();
    for (_, new) in writes {
        let shares = writes.iter().any(|(target, _)| rec.may_alias(target, new));
        sources.push(if shares { rec.clone_of(new)? } else { new.clone() });
    }
    for leaf in leaves.iter_mut() {
        if let PyValue::Tensor(t) = leaf
            && writes.iter().any(|(target, _)| rec.may_alias(target, t))
        {
            *leaf = PyValue::Tensor(rec.clone_of(&t.clone())?);
        }
    }
    for ((target, _), source) in writes.iter().zip(sources) {
        rec.call_named("aten.copy_.default", vec![Arg::Value(target.clone()), Arg::Value(source)])?;
    }
    Ok(())
}

fn end(mut session: Evaluation<'_, '_>, bound: &Bound, leaves: Vec<PyValue>, spec: &TreeSpec) -> Result<Program> {
    let args = leaves.iter().map(|l| output_arg(&mut session.eval, l)).collect::<Result<Vec<_>>>()?;
    let mut program = session.eval.rec.finish(args);
    program.pytree = Some((bound.spec.as_str().into(), spec.print().into()));
    program.forward_args = bound.names.clone();
    program.notes.sort();
    program.notes.dedup();
    Ok(program)
}

/// The name of the buffer that tells the first call from later ones.
const CALLED: &str = "restride_called";

/// A body for the first call and one for all later ones.
fn two_calls(
    contents: &SavedModule<'_>,
    name: &str,
    options: &RecordOptions<'_>,
    evolving: &[(Arc<str>, StateAfter)],
) -> Result<Program> {
    let method = options.method.unwrap_or("forward");
    let mut session = contents.session(name, options)?;
    let bound = session.bind(contents, options)?;
    let initial = snapshot(&session.root);
    let slot_of = |path: &str| {
        let found = initial.iter().find(|(s, _)| *s.path == *path);
        found.cloned().ok_or_else(|| Error::invalid(format!("no attribute {path}")))
    };
    // Buffers for the tensors that later calls find.
    let mut later: Vec<(AttributeSlot, PyValue)> = Vec::new();
    for (path, after) in evolving {
        let (slot, old) = slot_of(path)?;
        // The first call finds other contents, which are constants.
        for t in tensors(&old) {
            session.eval.rec.as_constant(&t)?;
        }
        let value = found_later(&mut session, path, after)?;
        later.push((slot, value));
    }
    let flag_type = TensorType::contiguous(DType::Bool, &[]);
    let called = zero_buffer(&mut session, CALLED, &flag_type)?;
    let first_state = snapshot(&session.root);
    let first = one_call(&mut session, method, &bound, "first_call", &first_state)?;
    restore(&first_state);
    for (slot, value) in &later {
        slot.set(value.clone());
    }
    let second_state = snapshot(&session.root);
    let second = one_call(&mut session, method, &bound, "later_call", &second_state)?;
    restore(&second_state);
    // StateAfter a later call, attributes must be what a later call finds.
    for (slot, _, after) in &second.changed {
        let settled = match evolving.iter().find(|(p, _)| *p == slot.path) {
            Some((_, found)) => found.same(after),
            None => matches!((after, slot.get()), (StateAfter::Tensor(ty), PyValue::Tensor(t))
                if t.ty().known().is_some_and(|k| k.dtype == ty.dtype && k.layout.sizes == ty.layout.sizes)),
        };
        if !settled {
            return Err(Error::unsupported(format!(
                "the attribute {} changes its value or its sizes from call to call",
                slot.path
            ))
            .help("make it a tensor of one type that is written in place"));
        }
    }
    if second.spec != first.spec {
        return Err(Error::unsupported("later calls return other results than the first"));
    }
    // Pairs of results of the two bodies: the results, then the contents of buffers.
    let mut bodies = [first.body, second.body];
    let mut pairs: Vec<[TensorRef; 2]> = Vec::new();
    let mut leaves: Vec<Result<PyValue, usize>> = Vec::new();
    for (a, b) in first.leaves.iter().zip(&second.leaves) {
        match (a, b) {
            (PyValue::Tensor(x), PyValue::Tensor(y)) => {
                pairs.push([x.clone(), y.clone()]);
                leaves.push(Err(pairs.len() - 1));
            }
            (a, b) if unchanged(a, b) => leaves.push(Ok(a.clone())),
            _ => return Err(Error::unsupported("later calls return another number than the first")),
        }
    }
    let mut targets: Vec<TensorRef> = Vec::new();
    let mut slots: Vec<AttributeSlot> = Vec::new();
    for (slot, ..) in first.changed.iter().chain(&second.changed) {
        if slots.iter().all(|s| s.path != slot.path) {
            slots.push(slot.clone());
        }
    }
    for slot in slots {
        let found = match later.iter().find(|(s, _)| s.path == slot.path) {
            Some((_, value)) => value.clone(),
            None => slot.get(),
        };
        let found = tensors(&found);
        if found.is_empty() {
            continue;
        }
        let left = |changed: &StateChanges, unchanged: &[(AttributeSlot, PyValue)]| {
            let new = changed.iter().find(|c| c.0.path == slot.path).map(|c| c.1.clone());
            new.or_else(|| unchanged.iter().find(|(s, _)| s.path == slot.path).map(|(_, v)| v.clone()))
        };
        let after = |v: Option<PyValue>| v.map(|v| tensors(&v)).unwrap_or_default();
        let a = after(left(&first.changed, &first_state));
        let b = after(left(&second.changed, &second_state));
        if a.len() != found.len() || b.len() != found.len() {
            let what = format!("the attribute {} holds tensors after some calls alone", slot.path);
            return Err(Error::unsupported(what));
        }
        for ((x, y), target) in a.into_iter().zip(b).zip(found) {
            pairs.push([x, y]);
            targets.push(target);
        }
    }
    bodies.reverse();
    pairs.iter_mut().for_each(|p| p.reverse());
    let made = session.eval.rec.cond(&called, bodies, &pairs)?;
    session.eval.rec.settle_branches();
    let (results, state) = made.split_at(made.len() - targets.len());
    let leaves: Vec<PyValue> = leaves
        .into_iter()
        .map(|l| match l {
            Ok(v) => v,
            Err(i) => PyValue::Tensor(results[i].clone()),
        })
        .collect();
    for (target, new) in targets.iter().zip(state) {
        let args = vec![Arg::Value(target.clone()), Arg::Value(new.clone())];
        session.eval.rec.call_named("aten.copy_.default", args)?;
    }
    let args = vec![Arg::Value(called), Arg::Scalar(Expr::Bool(true))];
    session.eval.rec.call_named("aten.fill_.Scalar", args)?;
    end(session, &bound, leaves, &first.spec)
}

/// A call recorded as a body.
struct Called {
    body: RecordedBody,
    leaves: Vec<PyValue>,
    spec: TreeSpec,
    changed: StateChanges,
}

fn one_call(
    session: &mut Evaluation<'_, '_>,
    method: &str,
    bound: &Bound,
    name: &str,
    before: &[(AttributeSlot, PyValue)],
) -> Result<Called> {
    session.eval.rec.enter(name)?;
    let result = call(session, method, bound);
    let done = result.and_then(|r| outputs(&mut session.eval, &r));
    let body = session.eval.rec.leave();
    let (leaves, spec) = done?;
    let changed = changes(&mut session.eval, before)?;
    Ok(Called { body, leaves, spec, changed })
}

fn restore(state: &[(AttributeSlot, PyValue)]) {
    for (slot, value) in state {
        slot.set(copy(value));
    }
}

/// What a later call finds in an attribute: buffers for its tensors.
fn found_later(session: &mut Evaluation<'_, '_>, path: &str, after: &StateAfter) -> Result<PyValue> {
    Ok(match after {
        StateAfter::Plain(v) => copy(v),
        StateAfter::Tensor(ty) => PyValue::Tensor(zero_buffer(session, path, ty)?),
        StateAfter::Parts(like, each) => {
            let parts = each.iter().enumerate().map(|(i, a)| found_later(session, &format!("{path}.{i}"), a));
            let parts = parts.collect::<Result<Vec<_>>>()?;
            rebuilt(like, parts)
        }
    })
}

/// A buffer that is all zeros.
fn zero_buffer(session: &mut Evaluation<'_, '_>, name: &str, ty: &TensorType<i64>) -> Result<TensorRef> {
    let n = ty.layout.numel().max(0) as usize * ty.dtype.size();
    let rec = &mut session.eval.rec;
    let storage = rec.add_storage(format!("zeros {name}"), Bytes::copy_of(&vec![0; n]));
    let layout = Layout::contiguous(&ty.layout.sizes);
    let weight = Weight { storage, dtype: ty.dtype, layout, is_param: false, requires_grad: false };
    rec.weight(name, InputKind::Buffer { name: name.into(), persistent: true }, weight)
}
