//! As strict as PyTorch: the values that it keeps of a call, whether the rule here reads them or not, with the version
//! of their memory. The version has to be the same when the gradient goes through the call.

use super::call::EagerArgs;
use super::memory::{TapeStorage, about_to_be_written, overwritten};
use super::mode;
use super::node::{Edge, NodeKind};
use super::tensor::{Tensor, refuse};
use restride_ir::{Arg, Op, Result};
use restride_ops::gradient::{SavedByPyTorch, kept};
use restride_tensor::DType;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Values that PyTorch keeps of a call. Nodes of a call that is composed here, but not in PyTorch, share them.
#[derive(Default)]
pub(super) struct Guards {
    all: RefCell<Vec<GuardedValue>>,
    /// Whether PyTorch keeps anything, copies included.
    keeps: bool,
    /// An operator that PyTorch has no gradient of.
    without: Option<Op>,
}

struct GuardedValue {
    memory: Rc<TapeStorage>,
    version: u64,
    dtype: DType,
    sizes: Vec<i64>,
    source: ResultSource,
    /// Whether the tensor, which had a history, was detached in place.
    detached: Option<Rc<Cell<bool>>>,
}

/// Whose result a value is.
enum ResultSource {
    Leaf,
    Edge(Edge),
    Result(Op, usize),
}

thread_local! {
    /// Those of the call that is being taken apart.
    static COMPOSED: RefCell<Option<Rc<Guards>>> = const { RefCell::new(None) };
}

/// A call that is run as several, as long as it lives.
pub(super) struct Composed {
    op: Op,
    kept: &'static SavedByPyTorch,
    guards: Rc<Guards>,
}

impl Drop for Composed {
    fn drop(&mut self) {
        COMPOSED.set(None);
    }
}

impl Composed {
    /// The results of the call are known.
    pub fn results(&self, results: &[&Tensor]) {
        self.guards.add_results(self.op, self.kept, results);
    }
}

/// Begins a call that is run as several, if PyTorch keeps values of it as of one.
pub(super) fn composed(op: Op, args: &EagerArgs) -> Option<Composed> {
    if !mode::strict() || COMPOSED.with_borrow(Option::is_some) {
        return None;
    }
    let kept = kept(op)?;
    let guards = Rc::new(Guards::of_args(op, kept, args));
    COMPOSED.set(Some(guards.clone()));
    Some(Composed { op, kept, guards })
}

/// Values that PyTorch keeps of a call that is one node; `None` where they are unknown, or outside of strict mode.
pub(super) fn of_call(op: Op, args: &EagerArgs, results: &[&Tensor]) -> Option<Rc<Guards>> {
    if !mode::strict() {
        return None;
    }
    if let Some(shared) = COMPOSED.with_borrow(Clone::clone) {
        return Some(shared);
    }
    let kept = kept(op)?;
    let guards = Guards::of_args(op, kept, args);
    guards.add_results(op, kept, results);
    Some(Rc::new(guards))
}

impl Guards {
    fn of_args(op: Op, kept: &SavedByPyTorch, args: &EagerArgs) -> Guards {
        let tensors = |i: usize| args.get(i).into_iter().flat_map(Arg::values);
        let asked = |i: &usize| tensors(*i).any(|t| t.edge().is_some());
        let here = kept.args.iter().filter(|k| k.asked.is_empty() || k.asked.iter().any(asked));
        let all: Vec<&Tensor> = here.flat_map(|k| tensors(k.arg)).collect();
        let keeps = !all.is_empty() || !kept.results.is_empty();
        // PyTorch keeps a copy of a tensor that the call itself is about to write.
        let all = all.into_iter().filter(|t| !about_to_be_written(t)).map(|t| {
            let source = match t.edge() {
                Some(e) if !matches!(e.node.kind, NodeKind::Leaf(_)) => ResultSource::Edge(e),
                _ => ResultSource::Leaf,
            };
            GuardedValue::new(t, source)
        });
        Guards { all: RefCell::new(all.collect()), keeps, without: kept.without.then_some(op) }
    }

    fn add_results(&self, op: Op, kept: &SavedByPyTorch, results: &[&Tensor]) {
        let found = kept.results.iter().filter_map(|k| Some((*k, *results.get(*k)?)));
        self.all.borrow_mut().extend(found.map(|(k, t)| GuardedValue::new(t, ResultSource::Result(op, k))));
    }

    /// A result was written into a target, which keeps it.
    pub fn moved(&self, result: &Tensor, target: &Tensor) {
        let from = result.memory();
        for g in self.all.borrow_mut().iter_mut().filter(|g| Rc::ptr_eq(&g.memory, &from)) {
            (g.memory, g.version) = (target.memory(), target.version());
        }
    }

    /// Whether PyTorch keeps anything that it lets go of after a backward pass.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// PyTorch's refusal where one of the values may have been written over, or where it has no gradient.
    pub fn check(&self) -> Result<()> {
        if let Some(op) = self.without {
            let schema = op.schema();
            return refuse(format!("derivative for {}::{} is not implemented", schema.namespace, schema.name));
        }
        if self.all.borrow().iter().any(|g| g.detached.as_ref().is_some_and(|d| d.get())) {
            return refuse(
                "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please \
                 use out-of-place `.detach()` instead",
            );
        }
        match self.all.borrow().iter().find(|g| g.memory.version() != g.version) {
            Some(g) => Err(overwritten(g.dtype, &g.sizes, &g.source.words(), g.memory.version(), g.version)),
            None => Ok(()),
        }
    }
}

impl GuardedValue {
    fn new(t: &Tensor, source: ResultSource) -> GuardedValue {
        let detached = matches!(source, ResultSource::Edge(_)).then(|| t.cut_off());
        GuardedValue { memory: t.memory(), version: t.version(), dtype: t.dtype(), sizes: t.sizes(), source, detached }
    }
}

impl ResultSource {
    fn words(&self) -> String {
        match self {
            ResultSource::Leaf => String::new(),
            ResultSource::Edge(e) => format!(", which is output {} of {}", e.slot, e.node.name()),
            ResultSource::Result(op, k) => format!(", which is output {k} of {op}"),
        }
    }
}
