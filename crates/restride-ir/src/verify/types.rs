//! Types of results by the operators' own rules.

use crate::{
    Arg, Args, Binding, CollectTree, Conditions, Error, ErrorKind, Graph, Id, IdArena, LazyBits, Meta, Movement, Node,
    OpDef, Program, Result, Stage, Symbol, TensorType, TwinReturn, Type, ValueId, ViewOutcome, dense_like, size_apart,
};
use restride_tensor::{Layout, Scalar};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Checks every node whose operands have known types.
pub(super) fn check(program: &Program, graph: &Graph) -> Result<()> {
    let mut objects = Objects::new(&graph.values);
    for (id, node) in graph.ordered() {
        let current = node.operands().all(|v| !objects.changed(v));
        if current {
            node_types(program, graph, node, &objects).map_err(|e| e.at(graph, id))?;
        }
        objects.follow(graph, node);
    }
    Ok(())
}

/// Lazy bits of values, tensor objects that several values name, and objects whose sizes or strides changed in place. A
/// value's type is its object's at creation.
struct Objects {
    object: Vec<ValueId>,
    changed: Vec<bool>,
    bits: Vec<LazyBits>,
}

impl Objects {
    fn new<T>(values: &IdArena<ValueId, T>) -> Self {
        Objects {
            object: values.ids().collect(),
            changed: vec![false; values.len()],
            bits: vec![LazyBits::default(); values.len()],
        }
    }

    fn changed(&self, v: ValueId) -> bool {
        self.changed[self.object[v.index()].index()]
    }

    fn bits(&self, v: ValueId) -> LazyBits {
        self.bits[self.object[v.index()].index()]
    }

    /// Lazy bits of a view's result; `None` for a copy, or an operator that is no view.
    fn bits_of(&self, graph: &Graph, node: &Node, result: ValueId) -> Option<LazyBits> {
        let def = node.op.def();
        let (Some(Arg::Value(base)), true) = (node.args.first(), def.view.is_some() && !def.metadata) else {
            return None;
        };
        let bits = self.bits(*base);
        if def.resolves && !bits.is_clear() {
            return None;
        }
        let ty = |v: ValueId| graph.values[v].ty.tensor();
        bits.of_view(node.op, ty(*base)?, ty(result)?).ok().flatten()
    }

    fn follow(&mut self, graph: &Graph, node: &Node) {
        let arg = |i: usize| match node.args.get(i) {
            Some(Arg::Value(v)) => Some(*v),
            _ => None,
        };
        let twin = node.op.twin();
        for (r, &result) in node.results.iter().enumerate() {
            let same = match twin.and_then(|t| t.returns.get(r)) {
                Some(TwinReturn::Arg(i)) => arg(*i as usize),
                _ if node.op.def().metadata => arg(0),
                // A rule that changes nothing returns the operand.
                _ if node.op.def().itself => arg(0).filter(|v| {
                    graph.values[*v].ty == graph.values[result].ty
                        && self.bits_of(graph, node, result) == Some(self.bits(*v))
                }),
                _ => None,
            };
            match same {
                Some(v) => self.object[result.index()] = self.object[v.index()],
                None => self.bits[result.index()] = self.bits_of(graph, node, result).unwrap_or_default(),
            }
        }
        let resized = twin.filter(|t| t.resizes).into_iter().flat_map(|t| t.writes.iter().map(|w| w.0 as usize));
        // `detach_` changes neither, nor does `squeeze_` without a dimension of size 1.
        let other = |v: ValueId| node.results.first().is_none_or(|r| graph.values[v].ty != graph.values[*r].ty);
        let metadata = (node.op.def().metadata && arg(0).is_none_or(other)).then_some(0);
        for v in resized.chain(metadata).filter_map(arg) {
            self.changed[self.object[v.index()].index()] = true;
        }
    }
}

/// Types of a call's results by its rule, if the operands' types are known.
fn rule(graph: &Graph, node: &Node, objects: &Objects) -> Result<Option<SmallVec<[Meta; 1]>>> {
    let def = node.op.def();
    if def.metadata || (def.infer.is_none() && def.view.is_none()) {
        return Ok(None);
    }
    let Some(args) = known_args(graph, node, objects) else { return Ok(None) };
    // The rule does not know the sizes of a composed call (an index with a mask).
    if def.composed.is_some_and(|which| which(&Args(&args))) {
        return Ok(None);
    }
    if let Some(rule) = &def.view {
        match rule.of(&args)? {
            ViewOutcome::Views(views) => {
                // Resolving a lazy bit copies.
                let copies =
                    def.math.is_some() && node.results.iter().any(|r| objects.bits_of(graph, node, *r).is_none());
                let laid = |v: Meta| if copies { Meta::new(v.dtype, dense_like(&v.layout)) } else { v };
                return Ok(Some(views.into_iter().map(laid).collect()));
            }
            ViewOutcome::Copy => {}
            ViewOutcome::Unknown => return Ok(None),
        }
    }
    Ok(def.infer.map(|infer| infer(&Args(&args))).transpose()?)
}

/// Sets the strides of values to those of the operators' rules, which are eager PyTorch's; an exporter computes types
/// without memory and sometimes differs. Other element types and sizes stay for the verifier to refuse, except in unread
/// results, which get the rule's whole type, or none where that has symbolic sizes.
pub fn relay(program: &mut Program) {
    let strides = |_: &Node, have: &Meta, want: &Meta| have.layout.strides != want.layout.strides;
    let ids: Vec<_> = program.graphs.ids().collect();
    for id in &ids {
        relay_graph(&mut program.graphs[*id], strides);
    }
    if program.symbols.is_empty() {
        return;
    }
    // Of symbolic sizes, the strides that the rules give at a witness, for all sizes.
    let value = |(i, s): (usize, &Symbol)| (s.clone(), Scalar::Int(size_apart(i)));
    let wanted = program.symbols.values().filter(|s| !s.is_float()).enumerate().map(value).collect_map();
    let witness = Conditions::of(program).witness(wanted, &[]);
    for id in ids {
        let graph = &program.graphs[id];
        let mut at = graph.clone();
        at.substitute(&witness);
        let changed = relay_graph(&mut at, strides);
        let sized = |v: &ValueId| {
            let (declared, made) = (graph.values[*v].ty.tensor()?, at.values[*v].ty.tensor()?);
            let sizes = declared.layout.sizes.iter().map(|n| n.substitute(&witness));
            Some(declared.dtype == made.dtype && sizes.eq(made.layout.sizes.iter().cloned()))
        };
        let (changed, others): (BTreeSet<_>, BTreeSet<_>) = changed.into_iter().partition(|v| sized(v) == Some(true));
        let laid = relaid(graph, &at, &changed, &witness).unwrap_or_default();
        let values = &mut program.graphs[id].values;
        laid.into_iter().for_each(|(v, ty)| values[v].ty = Type::Tensor(ty));
        // Sizes at other bindings are not known from those at the witness.
        others.into_iter().for_each(|v| values[v].ty = Type::None);
    }
}

/// Symbolic types of the values whose strides were `changed` in the graph `at` a witness. A view gets the type of its rule; another
/// result is dense, in the same order of dimensions. `None` where one of them has no such type; then nothing changes.
fn relaid(
    graph: &Graph,
    at: &Graph,
    changed: &BTreeSet<ValueId>,
    witness: &Binding,
) -> Option<BTreeMap<ValueId, TensorType>> {
    let mut laid: BTreeMap<ValueId, TensorType> = BTreeMap::new();
    for (_, node) in graph.ordered() {
        for (i, &v) in node.results.iter().enumerate() {
            if !changed.contains(&v) {
                continue;
            }
            let (ty, want) = (graph.values[v].ty.tensor()?, at.values[v].ty.tensor()?.known()?);
            let made = match &node.op.def().view {
                Some(rule) => {
                    let of = |v: &ValueId| laid.get(v).or_else(|| graph.values[*v].ty.tensor()).cloned().ok_or(());
                    let args = Arg::try_map_all(&node.args, of, |e| Ok(e.clone())).ok()?;
                    match (rule.symbolic)(&Args(&args)) {
                        Ok(ViewOutcome::Views(views)) => views.get(i)?.clone(),
                        _ => dense_in_order(ty, &want),
                    }
                }
                None => dense_in_order(ty, &want),
            };
            let here = Meta::new(made.dtype, made.layout.map(|e| e.substitute(witness)).known()?);
            if here.dtype != want.dtype || here.layout.offset != want.layout.offset || !here.same_strides(&want) {
                return None;
            }
            laid.insert(v, made);
        }
    }
    Some(laid)
}

/// The declared sizes, dense in the order of dimensions that a type has.
fn dense_in_order(declared: &TensorType, like: &Meta) -> TensorType {
    let mut order: Vec<usize> = (0..like.rank()).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(like.layout.strides[d]));
    TensorType::new(like.dtype, Layout::permuted(&declared.layout.sizes, &order))
}

/// The same for a graph of a functional program whose sizes became known, in dimensions of size 1 only: other strides may have
/// readers among the regions of their base. Elements stay in their cells. Views and their copies keep theirs, which are the user's.
pub fn relay_units(graph: &mut Graph) {
    relay_graph(graph, |node, have, want| {
        let moves = node.op.def().view.is_some() || matches!(node.op.def().movement, Some(Movement::View(_)));
        !moves && have.layout.strides != want.layout.strides && from_cell_0(have).same_cells(&from_cell_0(want))
    });
}

/// Sets the strides of results where `differs` from what is declared to the rule's, and unread results of other sizes to the rule's
/// type. Returns the values whose type is another one now.
fn relay_graph(graph: &mut Graph, differs: impl Fn(&Node, &Meta, &Meta) -> bool) -> BTreeSet<ValueId> {
    let mut changed = BTreeSet::new();
    let mut read = vec![false; graph.values.len()];
    for v in
        graph.ordered().flat_map(|(_, n)| n.operands()).chain(graph.outputs.iter().flat_map(|a| a.values().copied()))
    {
        read[v.index()] = true;
    }
    let mut objects = Objects::new(&graph.values);
    for at in graph.order.clone() {
        let node = &graph.nodes[at];
        let mut laid: Vec<(ValueId, TensorType)> = Vec::new();
        for (r, &result) in node.results.iter().enumerate() {
            let returned = node.op.twin().and_then(|t| t.returns.get(r));
            if let (Some(TwinReturn::Arg(i)), Some(old)) = (returned, graph.values[result].ty.tensor())
                && let Some(Arg::Value(v)) = node.args.get(*i as usize)
                && let Some(ty) = graph.values[*v].ty.tensor()
                && ty.layout.sizes == old.layout.sizes
            {
                laid.push((result, ty.clone()));
            }
        }
        if node.operands().all(|v| !objects.changed(v))
            && let Ok(Some(wanted)) = rule(graph, node, &objects)
        {
            for (&result, want) in node.results.iter().zip(wanted) {
                let have = graph.values[result].ty.tensor().and_then(TensorType::known);
                if have.is_some_and(|h| match same(&h, &want, Stage::Functional) {
                    true => differs(node, &h, &want),
                    false => !read[result.index()],
                }) {
                    laid.push((result, want.into()));
                }
            }
        }
        objects.follow(graph, node);
        for (v, ty) in laid {
            let have = std::mem::replace(&mut graph.values[v].ty, Type::Tensor(ty));
            if have != graph.values[v].ty {
                changed.insert(v);
            }
        }
    }
    changed
}

fn node_types(program: &Program, graph: &Graph, node: &Node, objects: &Objects) -> Result<()> {
    let Some(wanted) = rule(graph, node, objects)? else { return Ok(()) };
    if wanted.len() != node.results.len() {
        return differs(format!("it has {} results, its rule gives {}", node.results.len(), wanted.len()));
    }
    for (&r, want) in node.results.iter().zip(&wanted) {
        let value = &graph.values[r];
        let Type::Tensor(ty) = &value.ty else {
            // An unused result may be marked as `None`.
            if value.ty == Type::None {
                continue;
            }
            return differs(format!("%{} is {}, its rule gives {want}", value.name, value.ty));
        };
        let Some(have) = ty.known() else { continue };
        if !same(&have, want, program.stage) {
            let why = Error::invalid(format!("%{} is {have}, its rule gives {want}", value.name));
            let help = squeezed_help(node.op.def(), have.rank(), want.rank());
            return Err(Error { help: help.map(Into::into), ..why });
        }
    }
    Ok(())
}

/// What to do about a result of a view that has other dimensions than are declared; `None` for other results.
pub fn squeezed_help(def: &OpDef, declared: usize, real: usize) -> Option<&'static str> {
    let help =
        "a size is 1 that was not at export: squeeze dimensions by number, `x.squeeze(1)`, and export the program anew";
    (def.view.is_some() && declared != real).then_some(help)
}

fn differs<T>(what: String) -> Result<T> {
    Err(Error::new(ErrorKind::Invalid, what))
}

fn same(have: &Meta, want: &Meta, stage: Stage) -> bool {
    let same = have.dtype == want.dtype && have.layout.sizes == want.layout.sizes;
    same && (stage == Stage::Functional || from_cell_0(have).same_cells(&from_cell_0(want)))
}

fn from_cell_0(t: &Meta) -> Layout {
    Layout { offset: 0, ..t.layout.clone() }
}

/// Arguments with known types and numbers, if all are known. Operators other than views get resolved copies of lazily
/// mapped operands.
fn known_args(graph: &Graph, node: &Node, objects: &Objects) -> Option<Vec<Arg<Meta, Scalar>>> {
    let def = node.op.def();
    let settles = def.view.is_none() || def.resolves;
    let value = |v: &ValueId| {
        let meta = graph.values[*v].ty.tensor().and_then(TensorType::known).ok_or(())?;
        Ok(match settles && !objects.bits(*v).is_clear() {
            true => Meta::new(meta.dtype, dense_like(&meta.layout)),
            false => meta,
        })
    };
    node.args.iter().map(|arg| arg.try_map(value, |e| e.constant().ok_or(())).ok()).collect()
}
