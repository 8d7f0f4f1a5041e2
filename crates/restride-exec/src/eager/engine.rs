//! Backward passes.

use super::call::call_op;
use super::emit::{backward_of, fitted};
use super::mode::{self, set_grad_enabled};
use super::node::{Edge, NodeKind, TapeNode, run_hooks};
use super::tensor::{Tensor, refuse};
use crate::copy::copy_as;
use restride_ir::{Arg, CollectTree, Error, Result, Scalar, dense_like};
use restride_tensor::Layout;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// How gradients are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GradOptions {
    /// Record the pass itself, so that gradients have gradients.
    pub create_graph: bool,
    /// Keep saved values for another pass; as `create_graph` by default.
    pub retain_graph: Option<bool>,
    /// An input that the outputs do not depend on has no gradient; by default it is an error.
    pub allow_unused: bool,
}

/// Adds the gradients of outputs to those of all leaves that they depend on. An output without a gradient given has one
/// element, with gradient 1.
///
/// # Errors
/// PyTorch's errors, a rule's refusal, saved values that were overwritten.
pub fn backward(outputs: &[Tensor], gradients: &[Option<Tensor>], options: &GradOptions) -> Result<()> {
    pass(outputs, gradients, None, options).map(|_| ())
}

/// The gradients of inputs; nothing is added up in leaves.
///
/// # Errors
/// As [`backward`]; an input that the outputs do not depend on, unless that is allowed.
pub fn grad(
    outputs: &[Tensor],
    inputs: &[Tensor],
    gradients: &[Option<Tensor>],
    options: &GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    let mut wanted = Vec::with_capacity(inputs.len());
    for i in inputs {
        match i.edge() {
            Some(e) => wanted.push(e),
            None => return refuse("One of the differentiated Tensors does not require grad"),
        }
    }
    let found = pass(outputs, gradients, Some(&wanted), options)?;
    if !options.allow_unused && found.contains_none() {
        return refuse(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is \
             the desired behavior.",
        );
    }
    Ok(found.0)
}

struct FoundGradients(Vec<Option<Tensor>>);

impl FoundGradients {
    fn contains_none(&self) -> bool {
        self.0.iter().any(Option::is_none)
    }
}

/// Gradients of a node's results that have arrived.
type Arrived = BTreeMap<u64, (Rc<TapeNode>, Vec<Option<Tensor>>)>;

fn pass(
    outputs: &[Tensor],
    gradients: &[Option<Tensor>],
    wanted: Option<&[Edge]>,
    options: &GradOptions,
) -> Result<FoundGradients> {
    if !gradients.is_empty() && gradients.len() != outputs.len() {
        let (want, have) = (outputs.len(), gradients.len());
        return refuse(format!("got {want} tensors and {have} gradients"));
    }
    let _mode = set_grad_enabled(options.create_graph);
    let mut arrived = Arrived::new();
    for (k, t) in outputs.iter().enumerate() {
        let Some(edge) = t.edge() else {
            return refuse(format!("element {k} of tensors does not require grad and does not have a grad_fn"));
        };
        let g = match gradients.get(k).cloned().flatten() {
            Some(g) => checked(g, t, k)?,
            None => ones(t)?,
        };
        arrive(&mut arrived, &edge, Some(g))?;
    }
    let needed = wanted.map(|w| leading_to(arrived.values().map(|(n, _)| n.clone()).collect(), w));
    let needs = |n: &Rc<TapeNode>| needed.as_ref().is_none_or(|all| all.contains(&n.id));
    let mut found = FoundGradients(vec![None; wanted.map_or(0, <[Edge]>::len)]);
    while let Some((_, (node, mut grads))) = arrived.pop_last() {
        if !needs(&node) {
            continue;
        }
        hooked(&node, &mut grads)?;
        for (k, w) in wanted.unwrap_or_default().iter().enumerate() {
            if Rc::ptr_eq(&w.node, &node) {
                found.0[k] = grads.get(w.slot).cloned().flatten();
            }
        }
        if let NodeKind::Leaf(t) = &node.kind {
            if wanted.is_none()
                && let Some(g) = grads.into_iter().next().flatten()
            {
                accumulate(t, g, options.create_graph)?;
            }
            continue;
        }
        node.check()?;
        let wants: Vec<bool> = node.edges.iter().map(|e| e.as_ref().is_some_and(|e| needs(&e.node))).collect();
        if wants.contains(&true) {
            let given = match grads.iter().all(Option::is_none) {
                true => vec![None; wants.len()],
                false => backward_of(&node, &grads, &wants)?,
            };
            for ((edge, wanted), g) in node.edges.iter().zip(&wants).zip(given) {
                // PyTorch goes on with zeros, and checks the values that the node saved.
                if let (Some(edge), true) = (edge, wanted)
                    && (g.is_some() || mode::strict())
                {
                    arrive(&mut arrived, edge, g)?;
                }
            }
        }
        if !options.retain_graph.unwrap_or(options.create_graph) {
            node.release();
        }
    }
    Ok(found)
}

/// A gradient that is given for an output.
fn checked(g: Tensor, t: &Tensor, k: usize) -> Result<Tensor> {
    if g.sizes() != t.sizes() {
        return refuse(format!(
            "Mismatch in shape: grad_output[{k}] has a shape of {:?} and output[{k}] has a shape of {:?}.",
            g.sizes(),
            t.sizes()
        ));
    }
    Ok(g)
}

fn ones(t: &Tensor) -> Result<Tensor> {
    if t.numel() != 1 {
        return refuse("grad can be implicitly created only for scalar outputs");
    }
    let args = [
        Arg::Scalars(t.sizes().into_iter().map(Scalar::Int).collect()),
        Arg::Scalar(Scalar::Int(1)),
        Arg::DType(t.dtype()),
    ];
    Tensor::call_one("aten.full.default", &args)
}

/// Adds a gradient to those that have arrived at a result; `None` is zero.
fn arrive(arrived: &mut Arrived, edge: &Edge, g: Option<Tensor>) -> Result<()> {
    let count = edge.node.types.len();
    let (_, grads) = arrived.entry(edge.node.id).or_insert_with(|| (edge.node.clone(), vec![None; count]));
    let Some(g) = g else { return Ok(()) };
    let (Some(place), Some(ty)) = (grads.get_mut(edge.slot), edge.node.types.get(edge.slot)) else {
        return Err(Error::invalid("a gradient of no result"));
    };
    let g = fitted(&g, ty)?;
    *place = Some(match place.take() {
        Some(old) => Tensor::call_one("aten.add.Tensor", &[Arg::Value(old), Arg::Value(g)])?,
        None => g,
    });
    Ok(())
}

/// The gradients after the hooks; those that are kept are put away.
fn hooked(node: &Rc<TapeNode>, grads: &mut [Option<Tensor>]) -> Result<()> {
    let hooks = match &node.kind {
        NodeKind::Leaf(t) => vec![(0, t.hooks())],
        _ => node.hooks.borrow().clone(),
    };
    for (slot, hooks) in hooks {
        if let Some(place) = grads.get_mut(slot) {
            *place = place.take().map(|g| run_hooks(&hooks, g));
        }
    }
    let retained = node.retained.borrow().clone();
    for (slot, t) in retained {
        if let (Some(t), Some(Some(g))) = (t.get(), grads.get(slot)) {
            let sum = match t.grad() {
                Some(old) => Tensor::call_one("aten.add.Tensor", &[Arg::Value(old), Arg::Value(g.clone())])?,
                None => g.clone(),
            };
            t.set_grad(Some(sum));
        }
    }
    Ok(())
}

/// Adds to a leaf's gradient. The first one gets the leaf's layout, if that is dense.
fn accumulate(t: &Tensor, g: Tensor, create_graph: bool) -> Result<()> {
    if g.sizes() != t.sizes() {
        let (g, t) = (g.sizes(), t.sizes());
        return refuse(format!("a gradient of sizes {g:?} of a leaf whose sizes are {t:?} now"));
    }
    let sum = match t.grad() {
        Some(old) if create_graph => Tensor::call_one("aten.add.Tensor", &[Arg::Value(old), Arg::Value(g)])?,
        Some(old) if !old.requires_grad() => {
            call_op("aten.add_.Tensor", &[Arg::Value(old.clone()), Arg::Value(g)])?;
            old
        }
        Some(old) => Tensor::call_one("aten.add.Tensor", &[Arg::Value(old), Arg::Value(g)])?,
        None if create_graph => Tensor::call_one("aten.clone.default", &[Arg::Value(g)])?,
        None => {
            let layout = t.layout();
            let layout = if layout.is_dense() { dense_like(&layout) } else { Layout::contiguous(&layout.sizes) };
            Tensor::fresh(Rc::new(RefCell::new(copy_as(&g.raw(), layout)?)))
        }
    };
    t.set_grad(Some(sum));
    Ok(())
}

/// Which nodes lead to one of the wanted results.
fn leading_to(starts: Vec<Rc<TapeNode>>, wanted: &[Edge]) -> BTreeSet<u64> {
    let mut seen: BTreeMap<u64, Rc<TapeNode>> = BTreeMap::new();
    let mut left = starts;
    while let Some(n) = left.pop() {
        if seen.contains_key(&n.id) {
            continue;
        }
        left.extend(n.edges.iter().flatten().map(|e| e.node.clone()));
        seen.insert(n.id, n);
    }
    let mut out: BTreeSet<u64> = wanted.iter().map(|e| e.node.id).collect_set();
    // Operands have smaller numbers.
    for (id, n) in &seen {
        if n.edges.iter().flatten().any(|e| out.contains(&e.node.id)) {
            out.insert(*id);
        }
    }
    out
}
