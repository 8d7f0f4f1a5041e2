//! Running one graph: arguments are read, results are checked against their declared types, symbols are learnt, and
//! values are dropped after their last use.

use super::control_flow::BodyCalls;
use super::{Interp, Slot};
use crate::control_flow::run_call;
use crate::copy::{allocate, copy_into};
use crate::inputs::{evaluate, same_strides};
use crate::symbols::{Unified, learn_number, unify};
use restride_ir::{
    Arg, Binding, CollectTree, Error, ErrorKind, Expr, Graph, GraphId, Kernel, Node, NodeId, Result, RngKey, Scalar,
    Stage, TensorType, Type, ValueId, beyond, fused_body, squeezed_help,
};
use restride_tensor::{Layout, RawTensor, self_overlaps};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The values of one graph while it runs.
pub(super) struct GraphFrame<'a, 's> {
    pub graph: &'a Graph,
    pub env: Vec<Option<Slot>>,
    pub symbols: &'s mut Binding,
    /// Number of the iteration of the loops around it.
    pub iteration: u64,
}

impl GraphFrame<'_, '_> {
    pub fn get(&self, v: ValueId) -> Result<Slot> {
        use restride_ir::Id;
        self.env.get(v.index()).cloned().flatten().ok_or_else(|| {
            let name = self.graph.values.get(v).map_or("?", |v| &*v.name);
            Error::invalid(format!("%{name} is used before it has a value"))
        })
    }
    fn set(&mut self, v: ValueId, slot: Option<Slot>) {
        use restride_ir::Id;
        if let Some(place) = self.env.get_mut(v.index()) {
            *place = slot;
        }
    }
    pub fn number(&self, e: &Expr) -> Result<Scalar> {
        e.eval(self.symbols).map_err(|why| Error::invalid(format!("{e}: {why}")))
    }
    /// An argument with values for names.
    fn arg(&self, arg: &Arg) -> Result<Arg<Slot, Scalar>> {
        let arg = arg.try_map(|v| self.get(*v), |e| self.number(e))?;
        // Numbers, strings and `None` are passed on by value.
        Ok(match arg {
            Arg::Value(Slot::Scalar(s)) => Arg::Scalar(s),
            Arg::Value(Slot::Str(s)) => Arg::Str(s),
            Arg::Value(Slot::None) => Arg::None,
            other => other,
        })
    }
}

impl Interp<'_> {
    /// Runs a graph on the given inputs; symbols that it learns are added.
    pub(super) fn run_graph(
        &mut self,
        id: GraphId,
        inputs: &[Slot],
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<Vec<Slot>> {
        let graph =
            self.program.graphs.get(id).ok_or_else(|| Error::invalid("a body that the program does not have"))?;
        let most = self.program.limits.depth;
        if self.depth as u64 > most {
            return Err(beyond(format!("higher-order operators nested {} deep", self.depth), "depth", most));
        }
        if graph.inputs.len() != inputs.len() {
            let (want, have) = (graph.inputs.len(), inputs.len());
            return Err(Error::invalid(format!("a graph of {want} inputs is given {have}")));
        }
        let last_uses = self.last_uses.entry(id).or_insert_with(|| Rc::new(last_uses(graph))).clone();
        let mut frame = GraphFrame { graph, env: vec![None; graph.values.len()], symbols, iteration };
        for (&v, slot) in graph.inputs.iter().zip(inputs) {
            // The main graph's inputs were fitted when they were bound.
            if id != self.program.main {
                self.check(&graph.values[v].ty, slot, frame.symbols)
                    .map_err(|why| Error::invalid(format!("input %{} of a body {why}", graph.values[v].name)))?;
            }
            frame.set(v, Some(slot.clone()));
        }
        self.depth += 1;
        let result = self.run_nodes(&mut frame, &last_uses);
        self.depth -= 1;
        result?;
        graph
            .outputs
            .iter()
            .map(|arg| {
                Ok(match frame.arg(arg)? {
                    Arg::Value(slot) => slot,
                    Arg::Scalar(s) => Slot::Scalar(s),
                    Arg::Complex(re, im) => Slot::Scalar(Scalar::Complex(restride_tensor::C64::new(re, im))),
                    Arg::Str(s) => Slot::Str(s),
                    Arg::None => Slot::None,
                    _ => return Err(Error::invalid("a graph output that is no value and no constant")),
                })
            })
            .collect()
    }

    fn run_nodes(&mut self, frame: &mut GraphFrame<'_, '_>, last_uses: &[Vec<ValueId>]) -> Result<()> {
        let graph = frame.graph;
        for (&id, dead) in graph.order.iter().zip(last_uses) {
            self.run_node(frame, id).map_err(|e| e.at(graph, id))?;
            for &v in dead {
                frame.set(v, None);
            }
        }
        Ok(())
    }

    fn run_node(&mut self, frame: &mut GraphFrame<'_, '_>, id: NodeId) -> Result<()> {
        let node = &frame.graph.nodes[id];
        let key = RngKey {
            seed: self.options.seed,
            call: self.options.call,
            node: node.origin.key,
            iteration: frame.iteration,
        };
        let results = match node.op.def().hop {
            Some(hop) => run_call(&mut BodyCalls { interp: self, frame, key }, node, hop)?,
            None if node.op.def().fused => {
                let body = fused_body(node).ok_or_else(|| Error::invalid("a fused node has no body"))?;
                let operands = node.operands().map(|v| frame.get(v)).collect::<Result<Vec<_>>>()?;
                let iteration = frame.iteration;
                self.run_graph(body, &operands, frame.symbols, iteration)?
            }
            None => match symbolic(frame, node) {
                Some(values) => values,
                None => {
                    let def = node.op.def();
                    if self.program.stage == Stage::Functional && (def.strided || def.view.is_some()) {
                        for v in node.operands() {
                            conform(frame, v, def.strided, def.detaches)?;
                        }
                    }
                    let args = node.args.iter().map(|a| frame.arg(a)).collect::<Result<Vec<_>>>()?;
                    self.call(node.op, &args, key)?
                }
            },
        };
        if results.len() != node.results.len() {
            let (have, want) = (results.len(), node.results.len());
            return Err(Error::invalid(format!("{} gives {have} results, the program has {want} for it", node.op)));
        }
        for (at, (&v, slot)) in node.results.iter().zip(results).enumerate() {
            let ty = &frame.graph.values[v].ty;
            // A result that is not asked for has no elements, whatever sizes the exporter wrote: counts of `unique_consecutive`.
            let unread = || {
                at > 0
                    && matches!(node.op.def().kernel, Kernel::Dynamic(_))
                    && matches!(&slot, Slot::Tensor(t) if t.borrow().numel() == 0)
                    && !frame.graph.output_values().any(|o| o == v)
                    && !frame.graph.ordered().any(|(_, n)| n.operands().any(|o| o == v))
            };
            match self.check(ty, &slot, frame.symbols) {
                Err(why) if !unread() => {
                    let what = format!("%{} {why}", frame.graph.values[v].name);
                    // Data decides on numbers and on sizes of such operators: these are other data than the program takes.
                    let def = node.op.def();
                    if matches!(def.kernel, Kernel::Scalar(_) | Kernel::Dynamic(_)) || def.composed.is_some() {
                        return Err(refused(what));
                    }
                    let squeezed = match (ty, &slot) {
                        (Type::Tensor(ty), Slot::Tensor(t)) => {
                            squeezed_help(def, ty.rank(), t.borrow().layout().rank())
                        }
                        _ => None,
                    };
                    let other = "the file's types do not belong to its operators: export the program anew";
                    return Err(Error::invalid(what).help(squeezed.unwrap_or(other)));
                }
                _ => {}
            }
            frame.set(v, Some(if *ty == Type::None { Slot::None } else { slot }));
        }
        Ok(())
    }

    /// Holds a value against its declared type and learns symbols; the complaint continues "%name …".
    fn check(&self, ty: &Type, slot: &Slot, symbols: &mut Binding) -> Result<(), String> {
        match (ty, slot) {
            (Type::Tensor(ty), Slot::Tensor(t)) => self.check_tensor(ty, &t.borrow(), symbols),
            (Type::Scalar(expr), Slot::Scalar(s)) => learn_number(expr, *s, symbols),
            (Type::None | Type::Opaque, _) | (Type::Str, Slot::Str(_)) => Ok(()),
            // An optional tensor that this call does not give.
            (Type::Tensor(_), Slot::None) => Ok(()),
            (ty, slot) => Err(format!("is {slot:?} and is declared as {ty}")),
        }
    }

    fn check_tensor(&self, ty: &TensorType, t: &RawTensor, symbols: &mut Binding) -> Result<(), String> {
        let sizes = &t.layout().sizes;
        let lies = || format!("is {}{sizes:?} and is declared as {ty}", t.dtype());
        if t.dtype() != ty.dtype || sizes.len() != ty.rank() {
            return Err(lies());
        }
        for (expr, &n) in ty.sizes().iter().zip(sizes) {
            match unify(expr, Scalar::Int(n), symbols) {
                Unified::Agree | Unified::Open => {}
                Unified::Differs(_) => return Err(lies()),
                Unified::OutOfRange(why) => return Err(format!("has a size of {n}: {why}")),
            }
        }
        if self.options.strict
            && self.program.stage == Stage::Imported
            && let Some(declared) = evaluate(&ty.layout, symbols)
            && !same_strides(&declared, t.layout())
        {
            return Err(format!("has strides {:?} and is declared with {:?}", t.layout().strides, declared.strides));
        }
        Ok(())
    }
}

/// Results of a node on numbers that has no kernel: the values of their types' expressions.
fn symbolic(frame: &GraphFrame<'_, '_>, node: &Node) -> Option<Vec<Slot>> {
    Some(numbers_of(frame.graph, frame.symbols, node)?.into_iter().map(Slot::Scalar).collect())
}

/// As [`symbolic`], for any graph and binding.
pub(crate) fn numbers_of(graph: &Graph, symbols: &Binding, node: &Node) -> Option<Vec<Scalar>> {
    let def = node.op.def();
    if node.results.is_empty() || !matches!(def.kernel, Kernel::None) || def.decompose.is_some() {
        return None;
    }
    let number = |v: &ValueId| match &graph.values[*v].ty {
        Type::Scalar(e) => e.eval(symbols).ok(),
        _ => None,
    };
    node.results.iter().map(number).collect()
}

/// In a functional program a value's strides are what eager PyTorch's would be, and its elements may lie anywhere.
/// Operators that ask for strides (`strided`) find them as they are declared; so do other views, as whether `view` can
/// be one was decided for the declared strides.
fn conform(frame: &mut GraphFrame<'_, '_>, v: ValueId, strided: bool, typed: bool) -> Result<()> {
    let Slot::Tensor(t) = frame.get(v)? else { return Ok(()) };
    let value = &frame.graph.values[v];
    let Type::Tensor(ty) = &value.ty else { return Ok(()) };
    let t = t.borrow().clone();
    let Some(declared) = evaluate(&ty.layout, frame.symbols) else {
        let name = &value.name;
        return Err(Error::invalid(format!("the strides of %{name} are asked for and are not known: {}", ty.layout)));
    };
    let there = same_strides(&declared, t.layout()) && (!(strided || typed) || declared.offset == t.layout().offset);
    if there && declared.strides != t.layout().strides {
        // Strides along which no two elements follow each other decide whether PyTorch views as another type.
        let layout = Layout { offset: t.layout().offset, ..declared };
        if let Some(mut same) = t.alias(t.dtype(), layout) {
            (same.conj, same.neg) = (t.conj, t.neg);
            frame.set(v, Some(Slot::new(same)));
        }
        return Ok(());
    }
    if there || declared.sizes != t.layout().sizes {
        return Ok(());
    }
    let layout = match self_overlaps(&declared) {
        Some(false) => declared,
        // Several elements in one cell: views only ask which sizes the strides let merge, and row-major ones let all.
        _ if !strided => Layout::contiguous(&declared.sizes),
        _ => {
            let name = &value.name;
            let what = format!("%{name} is asked for its strides {declared}, which put several elements in one cell");
            return Err(Error::unsupported(what));
        }
    };
    let mut own = allocate(t.dtype(), layout)?;
    (own.conj, own.neg) = (t.conj, t.neg);
    copy_into(&own, &t)?;
    frame.set(v, Some(Slot::new(own)));
    Ok(())
}

/// Per position in the order: values that no later node and no output uses.
fn last_uses(graph: &Graph) -> Vec<Vec<ValueId>> {
    let mut kept: BTreeSet<ValueId> = graph.output_values().collect_set();
    let mut dead = vec![Vec::new(); graph.order.len()];
    for (at, (_, node)) in graph.ordered().enumerate().collect::<Vec<_>>().into_iter().rev() {
        for v in node.operands().chain(node.results.iter().copied()) {
            if kept.insert(v) {
                dead[at].push(v);
            }
        }
    }
    dead
}

/// The error of a program that cannot go on as eager PyTorch would not.
pub(super) fn refused(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Program, what)
}
