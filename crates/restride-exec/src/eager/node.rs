//! The graph of recorded calls, and of moves of elements between a base and its regions.

use super::emit::freed;
use super::function::Applied;
use super::guards::Guards;
use super::memory::{Region, SavedValue};
use super::tensor::{Tensor, WeakTensor};
use restride_ir::{Arg, Expr, Meta, Op, Result, TensorType, Val};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A result of a node.
#[derive(Clone)]
pub(super) struct Edge {
    pub node: Rc<TapeNode>,
    pub slot: usize,
}

/// An operand or result of a recorded call, as the rule sees it.
pub(super) struct Held {
    pub ty: TensorType,
    /// The value, where the rule reads it.
    pub value: Option<SavedValue>,
}

/// A recorded call.
pub(super) struct Recorded {
    /// Its arguments; values are numbers of operands.
    pub args: Vec<Arg<Val, Expr>>,
    /// Its operands, repeats included.
    pub operands: Vec<Held>,
    /// Its results.
    pub results: Vec<Held>,
}

/// The operation of a node.
pub(super) enum NodeKind {
    /// A tensor that asks for its gradient.
    Leaf(Tensor),
    /// A call, by its operator's rule. `None` once the values that it saved are gone.
    Call(RefCell<Option<Recorded>>, Op),
    /// A function with a backward pass of its own.
    Function(Applied),
    /// The elements of a region of a base, from the base's.
    Restride { base: Region, region: Region },
    /// A base after a write to a region: from the base before and the written value.
    Scatter { base: Region, region: Region, value: Option<Meta> },
}

/// A function of a gradient.
type HookFn = Rc<dyn Fn(&Tensor) -> Option<Tensor>>;

#[derive(Default)]
pub(super) struct Hooks {
    next: usize,
    all: Vec<(usize, HookFn)>,
}

pub(super) type SharedHooks = Rc<RefCell<Hooks>>;

/// A hook that was added to a tensor.
pub struct HookHandle {
    hooks: SharedHooks,
    id: usize,
}

impl HookHandle {
    /// Takes the hook away again.
    pub fn remove(self) {
        self.hooks.borrow_mut().all.retain(|(id, _)| *id != self.id);
    }
}

pub(super) fn add_hook(hooks: &SharedHooks, f: HookFn) -> HookHandle {
    let mut inner = hooks.borrow_mut();
    let id = inner.next;
    inner.next += 1;
    inner.all.push((id, f));
    HookHandle { hooks: hooks.clone(), id }
}

/// A gradient as hooks leave it.
pub(super) fn run_hooks(hooks: &SharedHooks, mut g: Tensor) -> Tensor {
    let all: Vec<HookFn> = hooks.borrow().all.iter().map(|(_, f)| f.clone()).collect();
    for f in all {
        g = f(&g).unwrap_or(g);
    }
    g
}

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// One step of the graph.
pub(super) struct TapeNode {
    /// Operands have smaller numbers.
    pub id: u64,
    pub kind: NodeKind,
    /// Where each operand comes from, if it is differentiated.
    pub edges: Vec<Option<Edge>>,
    /// Types of the results.
    pub types: Vec<Meta>,
    /// Hooks on results.
    pub hooks: RefCell<Vec<(usize, SharedHooks)>>,
    /// Tensors that keep the gradients of results.
    pub retained: RefCell<Vec<(usize, WeakTensor)>>,
    /// Values that PyTorch keeps of the call, in strict mode.
    pub guards: Option<Rc<Guards>>,
}

impl TapeNode {
    pub fn new(kind: NodeKind, edges: Vec<Option<Edge>>, types: Vec<Meta>) -> Rc<TapeNode> {
        TapeNode::guarded(kind, edges, types, None)
    }

    pub fn guarded(
        kind: NodeKind,
        edges: Vec<Option<Edge>>,
        types: Vec<Meta>,
        guards: Option<Rc<Guards>>,
    ) -> Rc<TapeNode> {
        let id = NEXT.get();
        NEXT.set(id + 1);
        Rc::new(TapeNode { id, kind, edges, types, hooks: RefCell::default(), retained: RefCell::default(), guards })
    }

    /// PyTorch's name of it.
    pub fn name(&self) -> String {
        match &self.kind {
            NodeKind::Leaf(_) => "AccumulateGrad".into(),
            NodeKind::Call(_, op) => op.name().into(),
            NodeKind::Function(f) => f.name(),
            NodeKind::Restride { .. } => "restride".into(),
            NodeKind::Scatter { .. } => "copy_slices".into(),
        }
    }

    /// Hooks on a result, made if there are none.
    pub fn hooks_at(&self, slot: usize) -> SharedHooks {
        let mut hooks = self.hooks.borrow_mut();
        if let Some((_, h)) = hooks.iter().find(|(s, _)| *s == slot) {
            return h.clone();
        }
        let made = SharedHooks::default();
        hooks.push((slot, made.clone()));
        made
    }
}

impl Drop for TapeNode {
    /// A long history is taken apart step by step: recursion would use up the stack.
    fn drop(&mut self) {
        let mut left: Vec<Rc<TapeNode>> = self.edges.drain(..).flatten().map(|e| e.node).collect();
        while let Some(node) = left.pop() {
            if let Ok(mut node) = Rc::try_unwrap(node) {
                left.extend(node.edges.drain(..).flatten().map(|e| e.node));
            }
        }
    }
}

impl TapeNode {
    /// Refuses saved values that were freed and, in strict mode, overwritten values that PyTorch keeps.
    pub fn check(&self) -> Result<()> {
        match (&self.kind, &self.guards) {
            (NodeKind::Call(call, _), Some(_)) if call.borrow().is_none() => Err(freed()),
            (_, Some(guards)) => guards.check(),
            (_, None) => Ok(()),
        }
    }

    /// Frees saved values. A node without any can be passed again.
    pub fn release(&self) {
        if let NodeKind::Function(f) = &self.kind {
            f.release();
        }
        if let NodeKind::Call(cell, _) = &self.kind {
            let reads = |c: &Recorded| c.operands.iter().chain(&c.results).any(|h| h.value.is_some());
            let saves = |c: &Recorded| self.guards.as_ref().map_or_else(|| reads(c), |g| g.keeps());
            let mut call = cell.borrow_mut();
            if call.as_ref().is_some_and(saves) {
                *call = None;
            }
        }
    }

    /// A result was written into a target: what is saved of it is the target's cells, as in PyTorch, where they show the result
    /// as it is.
    pub fn repoint(&self, slot: usize, new: &Tensor, target: &Tensor, same: bool) -> Result<()> {
        if let Some(guards) = &self.guards {
            guards.moved(new, target);
        }
        let NodeKind::Call(cell, _) = &self.kind else { return Ok(()) };
        if !same {
            return Ok(());
        }
        let mut call = cell.borrow_mut();
        let held = call.as_mut().and_then(|c| c.results.get_mut(slot));
        if let Some(value) = held.and_then(|h| h.value.as_mut())
            && value.is_of(new)
        {
            *value = SavedValue::guarded(target, value.how().unwrap_or_default())?;
        }
        Ok(())
    }
}
