//! The tensor object: its elements, the base that it is a view of, and its history.

use super::memory::{Region, TapeStorage};
use super::node::{Edge, HookHandle, NodeKind, SharedHooks, TapeNode, add_hook};
use super::{memory, mode};
use crate::copy::resolve;
use crate::interp::Object;
use restride_ir::{Error, ErrorKind, Meta, OpError, Result, Scalar, TensorType};
use restride_tensor::{DType, Element, Layout, RawTensor, Storage};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

/// A tensor that remembers how it was computed. Clones are the same object, as Python's variables are.
#[derive(Clone)]
pub struct Tensor(Rc<Inner>);

/// A tensor that may be gone.
#[derive(Clone)]
pub(super) struct WeakTensor(Weak<Inner>);

impl WeakTensor {
    pub fn get(&self) -> Option<Tensor> {
        self.0.upgrade().map(Tensor)
    }
}

pub(super) struct Inner {
    object: Object,
    memory: RefCell<Rc<TapeStorage>>,
    state: RefCell<TensorState>,
    /// How often the history changed that views are made from.
    history: Cell<u64>,
}

#[derive(Default)]
struct TensorState {
    /// Whether a tensor without a history asks for its gradient.
    requires_grad: bool,
    edge: Option<Edge>,
    leaf: Weak<TapeNode>,
    hooks: SharedHooks,
    retains: bool,
    grad: Option<Tensor>,
    view: Option<ViewOf>,
    /// Set by `detach_`.
    cut: Option<Rc<Cell<bool>>>,
}

#[derive(Clone)]
pub(super) struct ViewOf {
    pub base: Tensor,
    /// The base's history that the view's is made from.
    pub made: u64,
    /// The memory's version when the view was made.
    pub version: u64,
    pub origin: ViewOrigin,
}

/// How a view came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ViewOrigin {
    /// By a call with one result.
    Call,
    /// By a call with several (`split`), or of such a one: PyTorch does not let it be written.
    Many,
    /// Under `no_grad`: calls on it are not differentiated; writes through it change the base.
    NoGrad,
}

/// PyTorch's complaint, or ours in its place.
pub(super) fn refuse<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Program, what))
}

impl Tensor {
    fn of(object: Object, memory: Rc<TapeStorage>, state: TensorState) -> Tensor {
        let (memory, state) = (RefCell::new(memory), RefCell::new(state));
        Tensor(Rc::new(Inner { object, memory, state, history: Cell::new(0) }))
    }

    /// A tensor on memory of its own.
    pub(super) fn fresh(object: Object) -> Tensor {
        Tensor::of(object, Rc::default(), TensorState::default())
    }

    /// A second object on a tensor's memory, with a history of its own.
    pub(super) fn standing(raw: RawTensor, memory: Rc<TapeStorage>, edge: Option<Edge>) -> Tensor {
        Tensor::of(Rc::new(RefCell::new(raw)), memory, TensorState { edge, ..TensorState::default() })
    }

    /// The same object with the history of its region, whatever it was made under.
    pub(super) fn tracked(&self) -> Tensor {
        let edge = match self.view() {
            Some(v) if v.origin == ViewOrigin::NoGrad => self.region_edge(&v.base),
            _ => self.edge(),
        };
        Tensor::of(self.0.object.clone(), self.memory(), TensorState { edge, ..TensorState::default() })
    }

    /// A view of a base, whose history is made when it is asked for.
    pub(super) fn region_of(base: &Tensor, object: Object, origin: ViewOrigin) -> Tensor {
        // Never the number of a history: it has not been made.
        let view = Some(ViewOf { base: base.clone(), made: u64::MAX, version: base.version(), origin });
        Tensor::of(object, base.memory(), TensorState { view, ..TensorState::default() })
    }

    /// A tensor on another one's memory with a history of its own: so far a constant.
    pub(super) fn constant_of(other: &Tensor, object: Object) -> Tensor {
        Tensor::of(object, other.memory(), TensorState::default())
    }

    /// A row-major tensor of the given elements.
    ///
    /// # Errors
    /// Elements that do not fill the sizes.
    pub fn from_slice<T: Element>(data: &[T], sizes: &[i64]) -> Result<Tensor> {
        if sizes.iter().try_fold(1i64, |n, s| n.checked_mul(*s).filter(|_| *s >= 0)) != Some(data.len() as i64) {
            return refuse(format!("{} elements do not fill sizes {sizes:?}", data.len()));
        }
        Ok(Tensor::fresh(Rc::new(RefCell::new(RawTensor::from_slice(data, sizes)))))
    }

    /// A tensor without dimensions.
    pub fn scalar<T: Element>(x: T) -> Tensor {
        Tensor::fresh(Rc::new(RefCell::new(RawTensor::from_slice(&[x], &[]))))
    }

    /// A copy of a tensor without a history, strides and all the memory under it included.
    pub fn copy_of(raw: &RawTensor) -> Result<Tensor> {
        let storage = Storage::zeroed(raw.storage().len());
        storage.write(&raw.storage().to_vec());
        let own = RawTensor::new(storage, raw.dtype(), raw.layout().clone());
        let mut own = own.ok_or_else(|| Error::invalid("a tensor outside of its memory"))?;
        (own.conj, own.neg) = (raw.conj, raw.neg);
        Ok(Tensor::fresh(Rc::new(RefCell::new(own))))
    }

    /// The elements in logical order.
    ///
    /// # Errors
    /// Another element type than the tensor's.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        let raw = resolve(&self.raw())?;
        if raw.dtype() != T::DTYPE {
            return refuse(format!("elements of {} asked for as {}", raw.dtype(), T::DTYPE));
        }
        Ok(raw.to_elements())
    }

    /// The one element of a tensor that has one.
    ///
    /// # Errors
    /// A tensor of another number of elements.
    pub fn item(&self) -> Result<Scalar> {
        let raw = resolve(&self.raw())?;
        if raw.numel() != 1 {
            let n = raw.numel();
            return refuse(format!("a Tensor with {n} elements cannot be converted to Scalar"));
        }
        Ok(raw.get(&vec![0; raw.layout().rank()]))
    }

    /// The tensor without a history, in the same memory: writes that the tape does not see make gradients wrong.
    pub fn raw(&self) -> RawTensor {
        self.0.object.borrow().clone()
    }

    /// A copy of the elements, without a history.
    pub fn to_raw(&self) -> Result<RawTensor> {
        memory::copied(&resolve(&self.raw())?)
    }

    /// Sizes.
    pub fn sizes(&self) -> Vec<i64> {
        self.0.object.borrow().layout().sizes.to_vec()
    }

    /// Sizes, strides and offset, in elements.
    pub fn layout(&self) -> Layout {
        self.0.object.borrow().layout().clone()
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.0.object.borrow().dtype()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.0.object.borrow().numel()
    }

    /// How often its memory was written: one counter for all that share it.
    pub fn version(&self) -> u64 {
        self.memory().version()
    }

    /// The base that this is a view of.
    pub fn base(&self) -> Option<Tensor> {
        self.view().map(|v| v.base)
    }

    /// Whether two are the same object.
    pub fn is(&self, other: &Tensor) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Whether it has no history: it was not computed from tensors that require gradients.
    pub fn is_leaf(&self) -> bool {
        self.grad_node().is_none()
    }

    /// The name of the call that computed it.
    pub fn grad_fn(&self) -> Option<String> {
        self.grad_node().map(|e| e.node.name())
    }

    fn grad_node(&self) -> Option<Edge> {
        self.edge().filter(|e| !matches!(e.node.kind, NodeKind::Leaf(_)))
    }

    /// Whether calls on it are differentiated. As strict as PyTorch, a view that was made under `no_grad` requires gradients where its
    /// base does, though no gradient passes it.
    pub fn requires_grad(&self) -> bool {
        let unseen = |v: &ViewOf| v.origin == ViewOrigin::NoGrad && v.base.requires_grad();
        self.edge().is_some()
            || mode::strict() && differentiable(self.dtype()) && self.view().as_ref().is_some_and(unseen)
    }

    /// Asks for the gradient of a tensor without a history, or no longer.
    ///
    /// # Errors
    /// PyTorch's: numbers that are not floating, a tensor that has a history.
    pub fn set_requires_grad(&self, on: bool) -> Result<()> {
        if !self.is_leaf() {
            if on {
                return Ok(());
            }
            return refuse(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a \
                 subgraph that doesn't require differentiation use var_no_grad = var.detach().",
            );
        }
        if on && !differentiable(self.dtype()) {
            return refuse("only Tensors of floating point and complex dtype can require gradients");
        }
        let mut state = self.0.state.borrow_mut();
        state.requires_grad = on;
        if on {
            // From now on it stands for itself.
            state.view = None;
        }
        Ok(())
    }

    /// The same tensor, asking for its gradient.
    ///
    /// # Errors
    /// As [`Tensor::set_requires_grad`].
    pub fn requiring_grad(self) -> Result<Tensor> {
        self.set_requires_grad(true)?;
        Ok(self)
    }

    /// The gradient that backward passes have added up.
    pub fn grad(&self) -> Option<Tensor> {
        self.0.state.borrow().grad.clone()
    }

    /// Puts another gradient in place, or none.
    pub fn set_grad(&self, grad: Option<Tensor>) {
        self.0.state.borrow_mut().grad = grad;
    }

    /// A constant on the same memory. Writes through it change the elements of this tensor, and not its gradient.
    pub fn detach(&self) -> Tensor {
        Tensor::constant_of(&self.root(), Rc::new(RefCell::new(self.raw())))
    }

    /// Keeps the gradient of a tensor that has a history. A view whose history is replaced, because its base was written, keeps no
    /// gradient of the new one.
    ///
    /// # Errors
    /// A tensor that is not differentiated.
    pub fn retain_grad(&self) -> Result<()> {
        let Some(edge) = self.edge() else {
            return refuse("can't retain_grad on Tensor that has requires_grad=False");
        };
        if !matches!(edge.node.kind, NodeKind::Leaf(_)) {
            self.0.state.borrow_mut().retains = true;
            self.retain_on(&edge);
        }
        Ok(())
    }

    fn retain_on(&self, edge: &Edge) {
        edge.node.retained.borrow_mut().push((edge.slot, WeakTensor(Rc::downgrade(&self.0))));
    }

    /// Calls a function with the tensor's gradient whenever it is computed; its result replaces the gradient.
    ///
    /// # Errors
    /// A tensor that is not differentiated.
    pub fn register_hook(&self, f: impl Fn(&Tensor) -> Option<Tensor> + 'static) -> Result<HookHandle> {
        let Some(edge) = self.edge() else {
            return refuse("cannot register a hook on a tensor that doesn't require gradient");
        };
        let hooks = match &edge.node.kind {
            NodeKind::Leaf(_) => self.hooks(),
            _ => edge.node.hooks_at(edge.slot),
        };
        Ok(add_hook(&hooks, Rc::new(f)))
    }

    pub(super) fn hooks(&self) -> SharedHooks {
        self.0.state.borrow().hooks.clone()
    }

    pub(super) fn object(&self) -> &Object {
        &self.0.object
    }

    pub(super) fn object_id(&self) -> usize {
        Rc::as_ptr(&self.0.object) as usize
    }

    pub(super) fn memory(&self) -> Rc<TapeStorage> {
        self.0.memory.borrow().clone()
    }

    pub(super) fn region(&self) -> Region {
        Region::of(&self.0.object.borrow())
    }

    pub(super) fn meta(&self) -> Meta {
        TensorType::new(self.dtype(), self.layout())
    }

    /// The base of a view, and how the view was made. A base that became a view, by a change of its sizes, stands for its own base.
    pub(super) fn view(&self) -> Option<ViewOf> {
        let mut view = self.0.state.borrow().view.clone()?;
        loop {
            let next = view.base.0.state.borrow().view.as_ref().map(|v| v.base.clone());
            match next {
                Some(base) => view.base = base,
                None => return Some(view),
            }
        }
    }

    /// The tensor whose history covers its memory: its base, or itself.
    pub(super) fn root(&self) -> Tensor {
        self.view().map_or_else(|| self.clone(), |v| v.base)
    }

    /// The origin of a view whose memory was written since, if PyTorch cannot remake its history.
    pub(super) fn behind(&self) -> Option<ViewOrigin> {
        let view = self.view().filter(|v| v.origin != ViewOrigin::Call && v.version != self.version())?;
        (self.0.state.borrow().edge.is_some() || view.base.requires_grad()).then_some(view.origin)
    }

    /// Makes its history now, as PyTorch does.
    pub(super) fn looked_at(&self) {
        if mode::strict() {
            self.edge();
        }
    }

    /// Whether it is a view without a history of a base that has one by now: PyTorch takes it for a leaf until its history is
    /// read.
    pub(super) fn is_unseen_view(&self) -> bool {
        let Some(view) = self.view().filter(|v| v.made != u64::MAX) else { return false };
        self.0.state.borrow().edge.is_none() && differentiable(self.dtype()) && view.base.requires_grad()
    }

    /// Has a view make its history from its base when it is asked for it.
    pub(super) fn renew(&self) {
        if let Some(v) = &mut self.0.state.borrow_mut().view {
            v.made = u64::MAX;
        }
    }

    /// Makes a base a view of a copy of itself, so that its sizes may change.
    pub(super) fn become_view(&self) {
        let now = Rc::new(RefCell::new(self.raw()));
        let mut state = self.0.state.borrow_mut();
        let old = TensorState { edge: state.edge.take(), ..TensorState::default() };
        let base = Tensor::of(now, self.memory(), old);
        base.0.history.set(self.0.history.get() + 1);
        let version = base.version();
        state.view = Some(ViewOf { base, made: u64::MAX, version, origin: ViewOrigin::Call });
    }

    /// Drops its history (`detach_`). Views keep histories that they have.
    pub(super) fn cut(&self) {
        let mut state = self.0.state.borrow_mut();
        (state.edge, state.requires_grad) = (None, false);
        if let Some(cut) = state.cut.take() {
            cut.set(true);
        }
    }

    /// Becomes true when `detach_` drops its history.
    pub(super) fn cut_off(&self) -> Rc<Cell<bool>> {
        self.0.state.borrow_mut().cut.get_or_insert_default().clone()
    }

    /// Forgets the node of a leaf whose sizes changed.
    pub(super) fn forget_leaf(&self) {
        self.0.state.borrow_mut().leaf = Weak::new();
    }

    pub(super) fn set_view(&self, view: Option<ViewOf>) {
        self.0.state.borrow_mut().view = view;
    }

    /// Takes over the memory of another tensor (`set_`), as a view of its base, or memory of its own.
    pub(super) fn moved_onto(&self, memory: Rc<TapeStorage>, base: Option<Tensor>) {
        *self.0.memory.borrow_mut() = memory;
        let mut state = self.0.state.borrow_mut();
        let view = |base: Tensor| {
            let version = base.version();
            ViewOf { base, made: u64::MAX, version, origin: ViewOrigin::Call }
        };
        state.view = base.map(view);
    }

    /// Whether it is a leaf that asks for its gradient.
    pub(super) fn is_asking_leaf(&self) -> bool {
        self.0.state.borrow().requires_grad && self.is_leaf()
    }

    pub(super) fn history(&self) -> u64 {
        self.0.history.get()
    }

    /// Another history for a base, or a view's own: its views make theirs anew when they are asked.
    pub(super) fn set_edge(&self, edge: Option<Edge>) {
        self.0.history.set(self.0.history.get() + 1);
        let before = std::mem::replace(&mut self.0.state.borrow_mut().edge, edge.clone());
        // The gradient that is kept is that of the new value.
        if self.0.state.borrow().retains {
            if let Some(before) = before {
                before.node.retained.borrow_mut().retain(|(_, t)| !t.0.ptr_eq(&Rc::downgrade(&self.0)));
            }
            if let Some(edge) = &edge {
                self.retain_on(edge);
            }
        }
    }

    /// The history of a new view.
    pub(super) fn set_view_edge(&self, edge: Option<Edge>, made: u64, origin: ViewOrigin) {
        let mut state = self.0.state.borrow_mut();
        state.edge = edge;
        if let Some(v) = &mut state.view {
            (v.made, v.origin) = (made, origin);
        }
    }

    /// The node and result that it comes from, if it is differentiated.
    pub(super) fn edge(&self) -> Option<Edge> {
        if let Some(v) = self.view() {
            if v.origin == ViewOrigin::NoGrad {
                return None;
            }
            let now = v.base.history();
            if v.made != now {
                let edge = self.region_edge(&v.base);
                self.set_view_edge(edge, now, v.origin);
            }
            return self.0.state.borrow().edge.clone();
        }
        let state = self.0.state.borrow();
        if state.edge.is_some() || !state.requires_grad {
            return state.edge.clone();
        }
        if let Some(node) = state.leaf.upgrade() {
            return Some(Edge { node, slot: 0 });
        }
        drop(state);
        let node = TapeNode::new(NodeKind::Leaf(self.clone()), Vec::new(), vec![self.meta()]);
        self.0.state.borrow_mut().leaf = Rc::downgrade(&node);
        Some(Edge { node, slot: 0 })
    }

    /// The history as a region of a base.
    fn region_edge(&self, base: &Tensor) -> Option<Edge> {
        if !differentiable(self.dtype()) {
            return None;
        }
        let from = base.edge()?;
        let (base, region) = (base.region(), self.region());
        if base == region {
            return Some(from);
        }
        Some(Edge {
            node: TapeNode::new(NodeKind::Restride { base, region }, vec![Some(from)], vec![self.meta()]),
            slot: 0,
        })
    }
}

/// Whether gradients go through elements of a type.
pub(super) fn differentiable(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}", self.meta())?;
        if let Some(name) = self.grad_fn() {
            write!(f, ", {name}")?;
        } else if self.requires_grad() {
            f.write_str(", requires_grad")?;
        }
        f.write_str(")")
    }
}

/// An error of a call, with the operator.
pub(super) fn at(op: restride_ir::Op, e: impl Into<Error>) -> Error {
    let mut e: Error = e.into();
    if e.node.is_none() {
        e.node = Some(op.name().into());
    }
    e
}

/// Words of an error for those who only pass on words.
pub(super) fn words(e: &Error) -> OpError {
    match e.kind {
        ErrorKind::Unsupported => OpError::unsupported(e.to_string()),
        _ => OpError::new(e.to_string()),
    }
}

/// PyTorch's refusal of views that must not be written where something is differentiated.
pub(super) fn refuse_in_place_view(t: &Tensor) -> Result<()> {
    match t.view().filter(|_| mode::strict()) {
        Some(v) => refuse_origin(v.origin, "is being modified inplace"),
        None => Ok(()),
    }
}

/// PyTorch's refusal of a view whose base was written.
pub(super) fn refuse_written_base(origin: ViewOrigin) -> Result<()> {
    refuse_origin(origin, "its base or another view of its base has been modified inplace")
}

fn refuse_origin(origin: ViewOrigin, what: &str) -> Result<()> {
    match origin {
        ViewOrigin::Call => Ok(()),
        ViewOrigin::Many => refuse(format!(
            "a tensor is a view and {what}. This view is the output of a function that returns multiple views. Such functions \
             do not allow the output views to be modified inplace. You should replace the inplace operation by an out-of-place \
             one.",
        )),
        ViewOrigin::NoGrad => refuse(format!(
            "A view was created in no_grad mode and {what} with grad mode enabled. Given that this use case is ambiguous and \
             error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both \
             inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the inplace \
             to be tracked).",
        )),
    }
}
