//! Rules, forms and compositions as calls of the tape.

use super::call::{EagerArgs, EagerValue, run};
use super::memory::SavedValue;
use super::node::{Edge, NodeKind, TapeNode};
use super::probe::lifted;
use super::tensor::{Tensor, words};
use crate::interp::numbers;
use restride_ir::{
    Arg, Emit, Error, Expr, Grad, GradCall, GradEmit, Meta, Op, OpError, Result, Scalar, TensorType, Val,
};
use restride_ops::{
    gradient::{fit, gradients},
    lookup,
};
use restride_tensor::{DType, Layout};
use smallvec::SmallVec;
use std::rc::Rc;

type OpResult<T> = std::result::Result<T, OpError>;

/// A value that a rule or composition handles.
enum RuleValue {
    Tensor(Tensor),
    /// A type without elements.
    Type(TensorType),
    /// Operand or result of a recorded call, brought back when it is read.
    Saved {
        ty: TensorType,
        slot: usize,
        result: bool,
    },
    Other(EagerValue),
}

/// The values of a rule, a form or a composition, and the calls that it makes.
#[derive(Default)]
pub(super) struct RuleFrame<'n> {
    entries: Vec<RuleValue>,
    /// The node whose saved values are read.
    node: Option<&'n Rc<TapeNode>>,
    /// The whole error of a call; rules pass on only its text.
    error: Option<Error>,
}

impl RuleFrame<'_> {
    fn add(&mut self, e: RuleValue) -> Val {
        self.entries.push(e);
        Val(self.entries.len() as u32 - 1)
    }

    fn tensor(&mut self, v: Val) -> Result<Tensor> {
        let (slot, result) = match self.entries.get(v.0 as usize) {
            Some(RuleValue::Tensor(t)) => return Ok(t.clone()),
            Some(RuleValue::Saved { slot, result, .. }) => (*slot, *result),
            // Rules that are run on types read zeros of them.
            Some(RuleValue::Type(ty)) => return zeros(ty),
            Some(RuleValue::Other(_)) => return Err(Error::invalid("a rule reads a number as a tensor")),
            None => return Err(Error::invalid("a rule uses a value that it did not make")),
        };
        let node = self.node.ok_or_else(|| Error::invalid("a saved value of no node"))?;
        let t = saved(node, slot, result)?;
        self.entries[v.0 as usize] = RuleValue::Tensor(t.clone());
        Ok(t)
    }

    /// Arguments as rules see them.
    pub fn enter(&mut self, args: &EagerArgs) -> Vec<Arg<Val, Expr>> {
        self.enter_numbers(args).iter().map(numbers).collect()
    }

    /// Arguments as compositions see them.
    pub fn enter_numbers(&mut self, args: &EagerArgs) -> Vec<Arg<Val, Scalar>> {
        args.iter().map(|a| a.map_values(|t| self.add(RuleValue::Tensor(t.clone())))).collect()
    }

    /// Results as values, or the error of a call.
    pub fn leave(mut self, made: OpResult<Vec<Val>>) -> Result<Vec<EagerValue>> {
        match made {
            Ok(vals) => vals
                .into_iter()
                .map(|v| match self.entries.get(v.0 as usize) {
                    Some(RuleValue::Other(value)) => Ok(value.clone()),
                    _ => self.tensor(v).map(EagerValue::Tensor),
                })
                .collect(),
            Err(e) => Err(self.error.take().unwrap_or_else(|| e.into())),
        }
    }

    fn call_real(&mut self, name: &str, args: Vec<Arg<Tensor, Scalar>>) -> OpResult<SmallVec<[Val; 1]>> {
        let op = lookup(name).ok_or_else(|| OpError::new(format!("unknown operator {name}")))?;
        let mut args = args;
        op.fill_defaults(&mut args)?;
        match run(op, &args) {
            Ok(made) => Ok(made
                .into_iter()
                .map(|v| match v {
                    EagerValue::Tensor(t) => self.add(RuleValue::Tensor(t)),
                    other => self.add(RuleValue::Other(other)),
                })
                .collect()),
            Err(e) => Err(self.fail(e)),
        }
    }

    fn fail(&mut self, e: Error) -> OpError {
        let said = words(&e);
        self.error.get_or_insert(e);
        said
    }

    fn type_of(&self, v: Val) -> TensorType {
        match self.entries.get(v.0 as usize) {
            Some(RuleValue::Tensor(t)) => lifted(&t.meta()),
            Some(RuleValue::Type(ty) | RuleValue::Saved { ty, .. }) => ty.clone(),
            Some(RuleValue::Other(EagerValue::Scalar(s))) => TensorType::contiguous(s.dtype(), &[]),
            _ => TensorType::contiguous(DType::Bool, &[]),
        }
    }
}

impl GradEmit for RuleFrame<'_> {
    fn call(&mut self, name: &str, args: &[Arg<Val, Expr>]) -> OpResult<SmallVec<[Val; 1]>> {
        let number = |e: &Expr| e.constant().ok_or_else(|| OpError::new(format!("{e} is no number")));
        let mut real = Vec::with_capacity(args.len());
        for a in args {
            let tensor = |v: &Val| {
                let t = self.tensor(*v);
                t.map_err(|e| self.fail(e))
            };
            real.push(a.try_map(tensor, number)?);
        }
        self.call_real(name, real)
    }

    fn ty(&self, v: Val) -> TensorType {
        self.type_of(v)
    }
}

impl Emit for RuleFrame<'_> {
    fn call(&mut self, name: &str, args: &[Arg<Val, Scalar>]) -> OpResult<SmallVec<[Val; 1]>> {
        let mut real = Vec::with_capacity(args.len());
        for a in args {
            // A number that a call gave is given on as what it is.
            let other = match a {
                Arg::Value(v) => match self.entries.get(v.0 as usize) {
                    Some(RuleValue::Other(EagerValue::Scalar(s))) => Some(Arg::Scalar(*s)),
                    Some(RuleValue::Other(EagerValue::Str(s))) => Some(Arg::Str(s.clone())),
                    Some(RuleValue::Other(_)) => Some(Arg::None),
                    _ => None,
                },
                _ => None,
            };
            if let Some(other) = other {
                real.push(other);
                continue;
            }
            let tensor = |v: &Val| {
                let t = self.tensor(*v);
                t.map_err(|e| self.fail(e))
            };
            real.push(a.try_map(tensor, |s| Ok(*s))?);
        }
        self.call_real(name, real)
    }

    fn meta(&self, v: Val) -> Meta {
        self.type_of(v).known().unwrap_or_else(|| TensorType::contiguous(DType::Bool, &[]))
    }
}

fn zeros(ty: &TensorType) -> Result<Tensor> {
    let ty = ty.known().ok_or_else(|| Error::invalid("a type of unknown sizes"))?;
    let zeros = crate::copy::allocate(ty.dtype, Layout::contiguous(&ty.layout.sizes))?;
    Ok(Tensor::fresh(Rc::new(std::cell::RefCell::new(zeros))))
}

/// Operand or result of a recorded call, with its history.
fn saved(node: &Rc<TapeNode>, slot: usize, result: bool) -> Result<Tensor> {
    let NodeKind::Call(call, op) = &node.kind else { return Err(Error::invalid("a saved value of no call")) };
    let call = call.borrow();
    let call = call.as_ref().ok_or_else(freed)?;
    let held = if result { call.results.get(slot) } else { call.operands.get(slot) };
    let edge = match result {
        true => Some(Edge { node: node.clone(), slot }),
        false => node.edges.get(slot).cloned().flatten(),
    };
    let value: &SavedValue = held
        .and_then(|h| h.value.as_ref())
        .ok_or_else(|| Error::invalid(format!("the gradient of {op} reads a value that was not saved")))?;
    let whose = || match &edge {
        Some(e) if !matches!(e.node.kind, NodeKind::Leaf(_)) => {
            format!(", which is output {} of {}", e.slot, e.node.name())
        }
        _ => String::new(),
    };
    let (raw, memory) = value.get(whose).map_err(|e| super::tensor::at(*op, e))?;
    let edge = edge.filter(|_| super::tensor::differentiable(raw.dtype()));
    Ok(Tensor::standing(raw, memory, edge))
}

/// PyTorch's complaint about a second pass.
pub(super) fn freed() -> Error {
    Error::new(
        restride_ir::ErrorKind::Program,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already \
         been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). \
         Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved \
         tensors after calling backward.",
    )
}

/// The gradients of a node's operands, from those of its results.
pub(super) fn backward_of(
    node: &Rc<TapeNode>,
    grads: &[Option<Tensor>],
    needs: &[bool],
) -> Result<Vec<Option<Tensor>>> {
    match &node.kind {
        NodeKind::Leaf(_) => Ok(Vec::new()),
        NodeKind::Call(..) => of_call(node, grads, needs),
        NodeKind::Function(f) => f.backward(node, grads, needs),
        NodeKind::Restride { base, region } => {
            let g = given(grads)?;
            super::write::restride_adjoint(&g, base, region).map(|g| vec![Some(g)])
        }
        NodeKind::Scatter { base, region, value } => {
            let g = given(grads)?;
            super::write::scatter_adjoint(&g, base, region, value.as_ref(), needs)
        }
    }
}

fn given(grads: &[Option<Tensor>]) -> Result<Tensor> {
    grads.first().cloned().flatten().ok_or_else(|| Error::invalid("a node without a gradient"))
}

fn of_call(node: &Rc<TapeNode>, grads: &[Option<Tensor>], needs: &[bool]) -> Result<Vec<Option<Tensor>>> {
    let NodeKind::Call(cell, op) = &node.kind else { return Err(Error::invalid("no call")) };
    if matches!(op.def().grad, Some(Grad::Zero)) {
        let call = cell.borrow();
        let operands = call.as_ref().ok_or_else(freed)?.operands.iter().zip(needs);
        return operands.map(|(h, needs)| needs.then(|| zeros(&h.ty)).transpose()).collect();
    }
    let mut frame = RuleFrame { node: Some(node), ..RuleFrame::default() };
    let (args, results) = {
        let call = cell.borrow();
        let call = call.as_ref().ok_or_else(freed)?;
        for (slot, h) in call.operands.iter().enumerate() {
            frame.add(RuleValue::Saved { ty: h.ty.clone(), slot, result: false });
        }
        let mut results = Vec::with_capacity(call.results.len());
        for (slot, h) in call.results.iter().enumerate() {
            results.push(frame.add(RuleValue::Saved { ty: h.ty.clone(), slot, result: true }));
        }
        (call.args.clone(), results)
    };
    let given: Vec<Option<Val>> =
        grads.iter().map(|g| g.as_ref().map(|g| frame.add(RuleValue::Tensor(g.clone())))).collect();
    let call = GradCall { op: *op, args: &args, results: &results, grads: &given, needs };
    finish(frame, *op, |f| gradients(f, &call))
}

/// The gradients of a call's operands where only its operands' types matter to the rule.
pub(super) fn rule_on_types(
    name: &str,
    types: &[TensorType],
    rest: &[Arg<Val, Expr>],
    g: &Tensor,
    needs: &[bool],
) -> Result<Vec<Option<Tensor>>> {
    let op = lookup(name).ok_or_else(|| Error::invalid(format!("unknown operator {name}")))?;
    let mut frame = RuleFrame::default();
    let mut args: Vec<Arg<Val, Expr>> =
        types.iter().map(|t| Arg::Value(frame.add(RuleValue::Type(t.clone())))).collect();
    args.extend_from_slice(rest);
    let result = frame.add(RuleValue::Type(lifted(&g.meta())));
    let given = frame.add(RuleValue::Tensor(g.clone()));
    let call = GradCall { op, args: &args, results: &[result], grads: &[Some(given)], needs };
    finish(frame, op, |f| gradients(f, &call))
}

fn finish(
    mut frame: RuleFrame<'_>,
    op: Op,
    rule: impl FnOnce(&mut RuleFrame<'_>) -> OpResult<Vec<Option<Val>>>,
) -> Result<Vec<Option<Tensor>>> {
    match rule(&mut frame) {
        Ok(found) => found.into_iter().map(|v| v.map(|v| frame.tensor(v)).transpose()).collect(),
        Err(e) => Err(match frame.error.take() {
            Some(real) => real,
            None => Error { what: format!("its gradient: {}", e.0), ..super::tensor::at(op, e) },
        }),
    }
}

/// A gradient as one of a value of this type.
pub(super) fn fitted(g: &Tensor, to: &Meta) -> Result<Tensor> {
    if g.dtype() == to.dtype && g.sizes()[..] == to.layout.sizes[..] {
        return Ok(g.clone());
    }
    let mut frame = RuleFrame::default();
    let v = frame.add(RuleValue::Tensor(g.clone()));
    match fit(&mut frame, v, &lifted(to)) {
        Ok(v) => frame.tensor(v),
        Err(e) => Err(frame.error.take().unwrap_or_else(|| e.into())),
    }
}

/// Numbers as arguments.
pub(super) fn dims(all: &[i64]) -> Arg<Val, Expr> {
    Arg::Scalars(all.iter().map(|n| Expr::Int(*n)).collect())
}

/// Sizes, strides and offset as `as_strided` takes them.
pub(super) fn place(l: &Layout) -> [Arg<Val, Expr>; 3] {
    [dims(&l.sizes), dims(&l.strides), Arg::Scalar(Expr::Int(l.offset))]
}
