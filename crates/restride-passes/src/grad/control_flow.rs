//! Gradients of higher-order calls.
//!
//! A body's gradient is a body that recomputes values from the body's inputs and then goes backwards. The gradient of
//! `cond` is a `cond` of these. The gradient of `map` and `scan` is a `scan`, over a `scan`'s iterations in reverse, that
//! carries the gradients of carried values and of operands that every iteration gets. The values that a `scan` carries into
//! each iteration are kept as one more stacked result.

use super::emit::{GraphEmit, val, value};
use super::{Found, Loss, Options, add_to, full, grad, one, taken};
use restride_ir::{
    Arg, CollectTree, DType, Dim, Error, Expr, Graph, GraphId, Hop, HopCall, HopItem, IdArena, InputKind, InputSpec,
    Node, NodeId, OutputKind, OutputSpec, Program, Result, Stage, TensorType, Type, ValueId,
};
use restride_ops::lookup;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Adds the backward part of a higher-order call. `wanted` says which operands have a gradient.
pub(super) fn through(
    emit: &mut GraphEmit<'_>,
    graphs: &mut IdArena<GraphId, Graph>,
    (id, wanted): (NodeId, &[bool]),
    grads: &mut Found,
    max_trips: Option<u64>,
) -> Result<()> {
    let node = &emit.graph.nodes[id];
    let Some(call) = HopCall::of(emit.graph, node)? else { return Err(Error::invalid("not a higher-order operator")) };
    let cx = GradContext { call: &call, wanted, max_trips };
    match call.hop {
        Hop::Cond => cx.cond(emit, graphs, id, grads),
        Hop::Scan | Hop::Map => cx.looped(emit, graphs, id, grads),
        Hop::WhileLoop => Err(Error::invalid("a loop that was not bounded")),
    }
}

/// A higher-order call that is differentiated.
struct GradContext<'a> {
    call: &'a HopCall,
    wanted: &'a [bool],
    max_trips: Option<u64>,
}

impl GradContext<'_> {
    /// Positions among these items whose operands have a gradient.
    fn wanted_of(&self, items: &[HopItem]) -> Vec<usize> {
        let is = |item: &HopItem| matches!(item, HopItem::Tensor { operand, .. } if self.wanted[*operand]);
        (0..items.len()).filter(|i| is(&items[*i])).collect()
    }

    fn cond(
        &self,
        emit: &mut GraphEmit<'_>,
        graphs: &mut IdArena<GraphId, Graph>,
        id: NodeId,
        grads: &mut Found,
    ) -> Result<()> {
        let node = emit.graph.nodes[id].clone();
        let given: Vec<usize> = (0..node.results.len()).filter(|k| grads[node.results[*k]].is_some()).collect();
        let wanted = self.wanted_of(&self.call.rest);
        if wanted.is_empty() {
            return Ok(());
        }
        let operands = tensors(&self.call.rest)?;
        let mut args = vec![node.args[0].clone()];
        for &body in &self.call.bodies {
            let mut made = body_gradient(graphs, body, (&given, &wanted), self.max_trips)?;
            own_outputs(&mut made)?;
            args.push(Arg::Graph(graphs.push(made)));
        }
        let seeds = given.iter().map(|k| grads[node.results[*k]]);
        args.push(Arg::Values(operands.iter().map(|v| Some(*v)).chain(seeds).collect()));
        let types = wanted.iter().map(|i| fresh(emit.graph.tensor(operands[*i]))).collect();
        let made = add(emit, "higher_order.cond", args, types)?;
        for (i, g) in wanted.into_iter().zip(made) {
            add_to(emit, grads, operands[i], g)?;
        }
        Ok(())
    }

    /// `scan` and `map`.
    fn looped(
        &self,
        emit: &mut GraphEmit<'_>,
        graphs: &mut IdArena<GraphId, Graph>,
        id: NodeId,
        grads: &mut Found,
    ) -> Result<()> {
        let results = emit.graph.nodes[id].results.to_vec();
        let (carried, xs, rest) = (tensors(&self.call.carried)?, tensors(&self.call.xs)?, tensors(&self.call.rest)?);
        let (n_carried, n_xs) = (carried.len(), xs.len());
        let body = self.call.bodies[0];
        // The gradient of a carried value may come from the iterations alone.
        let through: Vec<usize> = (0..n_carried).filter(|i| floating(&emit.graph.values[results[*i]].ty)).collect();
        let stacked: Vec<usize> = (n_carried..results.len()).filter(|k| grads[results[*k]].is_some()).collect();
        let given: Vec<usize> = through.iter().chain(&stacked).copied().collect();
        let wanted_xs = self.wanted_of(&self.call.xs);
        let wanted_rest = self.wanted_of(&self.call.rest);
        let wanted: Vec<usize> = (through.iter().copied())
            .chain(wanted_xs.iter().map(|i| n_carried + i))
            .chain(wanted_rest.iter().map(|i| n_carried + n_xs + i))
            .collect();
        let mut made = body_gradient(graphs, body, (&given, &wanted), self.max_trips)?;
        let used = used(&made);
        let inputs = std::mem::take(&mut made.inputs);
        let (own, seeds) = inputs.split_at(n_carried + n_xs + rest.len());
        let used_xs: Vec<usize> = (0..n_xs).filter(|i| used.contains(&own[n_carried + i])).collect();
        let kept: Vec<usize> = (0..n_carried).filter(|i| used.contains(&own[*i])).collect();
        // The body carries the gradients of carried values, and sums of the gradients of operands that every iteration
        // gets.
        let sums: Vec<ValueId> = {
            let types: Vec<TensorType> = wanted_rest.iter().map(|i| fresh(emit.graph.tensor(rest[*i]))).collect();
            let mut names = taken(&made);
            types.into_iter().map(|ty| made.add_value(names.fresh("sum"), Type::Tensor(ty))).collect()
        };
        made.inputs = (seeds[..through.len()].iter().copied())
            .chain(sums.iter().copied())
            .chain(used_xs.iter().map(|i| own[n_carried + i]))
            .chain(kept.iter().map(|i| own[*i]))
            .chain(seeds[through.len()..].iter().copied())
            .chain(own[n_carried + n_xs..].iter().copied())
            .collect();
        let outputs = std::mem::take(&mut made.outputs);
        let (of_carried, others) = outputs.split_at(through.len());
        let (of_xs, of_rest) = others.split_at(wanted_xs.len());
        let summed = added(&mut made, &sums, of_rest)?;
        made.outputs = of_carried.iter().cloned().chain(summed).chain(of_xs.iter().cloned()).collect();
        own_outputs(&mut made)?;
        let backward = graphs.push(made);
        let states = self.keep(emit, graphs, id, &kept)?;
        // A scan's iterations are taken in reverse.
        let reverse = self.call.hop == Hop::Scan;
        let flipped = |emit: &mut GraphEmit<'_>, v: ValueId| -> Result<ValueId> {
            if !reverse {
                return Ok(v);
            }
            Ok(value(one(emit, "aten.flip.default", &[Arg::Value(val(v)), Arg::Scalars(vec![Expr::Int(0)])])?))
        };
        let mut first = Vec::new();
        for &i in &through {
            let ty = fresh(emit.graph.tensor(results[i]));
            first.push(match grads[results[i]] {
                Some(g) => g,
                None => value(full(emit, &ty, 0)?),
            });
        }
        for &i in &wanted_rest {
            let ty = fresh(emit.graph.tensor(rest[i]));
            first.push(value(full(emit, &ty, 0)?));
        }
        let mut sliced = Vec::new();
        for v in (used_xs.iter().map(|i| xs[*i])).chain(states).chain(stacked.iter().filter_map(|k| grads[results[*k]]))
        {
            sliced.push(flipped(emit, v)?);
        }
        let length = emit.graph.tensor(xs[0]).layout.sizes[0].clone();
        let mut types: Vec<TensorType> = first.iter().map(|v| fresh(emit.graph.tensor(*v))).collect();
        types.extend(wanted_xs.iter().map(|i| stack(&length, &slice(emit.graph.tensor(xs[*i])))));
        if sliced.is_empty() {
            // Only how often counts.
            sliced.push(xs[0]);
            let graph = &mut graphs[backward];
            let at = first.len();
            let ty = slice(emit.graph.tensor(xs[0]));
            let name = taken(graph).fresh("x");
            let input = graph.add_value(name, Type::Tensor(ty));
            graph.inputs.insert(at, input);
        }
        let list = |all: &[ValueId]| Arg::Values(all.iter().map(|v| Some(*v)).collect());
        let made = if first.is_empty() {
            let args = vec![Arg::Graph(backward), list(&sliced), list(&rest)];
            add(emit, "higher_order.map_impl", args, types)?
        } else {
            let args = vec![Arg::Graph(backward), list(&first), list(&sliced), list(&rest)];
            add(emit, "higher_order.scan", args, types)?
        };
        let own: BTreeSet<usize> = self.wanted_of(&self.call.carried).into_iter().collect_set();
        for (i, g) in through.iter().zip(&made).filter(|(i, _)| own.contains(i)) {
            add_to(emit, grads, carried[*i], *g)?;
        }
        let (_, made) = made.split_at(through.len());
        let (sums, slices) = made.split_at(wanted_rest.len());
        for (i, g) in wanted_rest.into_iter().zip(sums) {
            add_to(emit, grads, rest[i], *g)?;
        }
        for (i, g) in wanted_xs.into_iter().zip(slices) {
            let g = flipped(emit, *g)?;
            add_to(emit, grads, xs[i], g)?;
        }
        Ok(())
    }

    /// Lets a scan return the values carried into each iteration, stacked.
    fn keep(
        &self,
        emit: &mut GraphEmit<'_>,
        graphs: &mut IdArena<GraphId, Graph>,
        id: NodeId,
        kept: &[usize],
    ) -> Result<Vec<ValueId>> {
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        let xs = tensors(&self.call.xs)?;
        let length = emit.graph.tensor(xs[0]).layout.sizes[0].clone();
        let mut forward = graphs[self.call.bodies[0]].clone();
        forward.name = "".into();
        let mut out = Vec::new();
        for &i in kept {
            let input = forward.inputs[i];
            let Some(ty) = forward.values[input].ty.tensor().cloned() else { continue };
            forward.outputs.push(Arg::Value(input));
            let name = emit.names.fresh(&format!("{}_before", forward.values[input].name));
            let made = emit.graph.add_value(name, Type::Tensor(stack(&length, &ty)));
            emit.graph.nodes[id].results.push(made);
            out.push(made);
        }
        own_outputs(&mut forward)?;
        emit.graph.nodes[id].args[0] = Arg::Graph(graphs.push(forward));
        Ok(out)
    }
}

/// The tensors of a list of operands.
fn tensors(items: &[HopItem]) -> Result<Vec<ValueId>> {
    let of = |item: &HopItem| match item {
        HopItem::Tensor { value, .. } => Ok(*value),
        _ => Err(Error::unsupported("the gradient of a higher-order call with numbers among its operands")),
    };
    items.iter().map(of).collect()
}

fn floating(ty: &Type) -> bool {
    ty.tensor().is_some_and(|t| t.dtype.is_float() || t.dtype.is_complex())
}

/// The type of a new tensor of these sizes.
fn fresh(ty: &TensorType) -> TensorType {
    TensorType::contiguous(ty.dtype, &ty.layout.sizes)
}

fn slice(ty: &TensorType) -> TensorType {
    TensorType::contiguous(ty.dtype, &ty.layout.sizes[1..])
}

fn stack(length: &Expr, ty: &TensorType) -> TensorType {
    let sizes: Vec<Expr> = std::iter::once(length.clone()).chain(ty.layout.sizes.iter().cloned()).collect();
    TensorType::contiguous(ty.dtype, &sizes)
}

/// Adds a call with these results.
fn add(emit: &mut GraphEmit<'_>, op: &str, args: Vec<Arg>, types: Vec<TensorType>) -> Result<Vec<ValueId>> {
    let op = lookup(op).ok_or_else(|| Error::invalid(format!("there is no operator {op}")))?;
    let results: Vec<(Arc<str>, Type)> =
        types.into_iter().map(|ty| (emit.names.fresh(&emit.hint), Type::Tensor(ty))).collect();
    let id = emit.graph.add_node(op, args, results, emit.origin.clone());
    Ok(emit.graph.nodes[id].results.to_vec())
}

/// The values that a graph reads.
fn used(graph: &Graph) -> BTreeSet<ValueId> {
    graph.ordered().flat_map(|(_, n)| n.operands().collect::<Vec<_>>()).chain(graph.output_values()).collect()
}

/// Sums of values and a graph's outputs, as its new outputs.
fn added(graph: &mut Graph, sums: &[ValueId], outputs: &[Arg]) -> Result<Vec<Arg>> {
    let mut names = taken(graph);
    let mut emit = GraphEmit::plain(graph, &mut names, Arc::default(), "sum");
    let mut out = Vec::new();
    for (sum, more) in sums.iter().zip(outputs) {
        let more = more.map_values(|v| val(*v));
        out.push(Arg::Value(value(one(&mut emit, "aten.add.Tensor", &[Arg::Value(val(*sum)), more])?)));
    }
    Ok(out)
}

/// Makes every output memory of its own, in a new tensor's layout: neither an input nor another output.
fn own_outputs(graph: &mut Graph) -> Result<()> {
    let mut given: BTreeSet<ValueId> = graph.inputs.iter().copied().collect_set();
    let views: BTreeSet<ValueId> =
        graph.ordered().filter(|(_, n)| n.op.is_view()).flat_map(|(_, n)| n.results.to_vec()).collect_set();
    let mut names = taken(graph);
    let outputs = std::mem::take(&mut graph.outputs);
    let mut emit = GraphEmit::plain(graph, &mut names, Arc::default(), "out");
    let mut out = Vec::new();
    for arg in outputs {
        let Arg::Value(v) = arg else {
            out.push(arg);
            continue;
        };
        let Some(ty) = emit.graph.values[v].ty.tensor().cloned() else {
            out.push(arg);
            continue;
        };
        let plain = ty.layout.strides == fresh(&ty).layout.strides && ty.layout.offset.is(0);
        let again = !given.insert(v);
        out.push(if plain && !again && !views.contains(&v) {
            Arg::Value(v)
        } else {
            let format = Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous);
            let made = add(&mut emit, "aten.clone.default", vec![Arg::Value(v), format], vec![fresh(&ty)])?;
            Arg::Value(made[0])
        });
    }
    graph.outputs = out;
    Ok(())
}

/// A body backwards: of its inputs and the gradients of the outputs at `given`, the gradients of the inputs at `wanted`.
fn body_gradient(
    graphs: &mut IdArena<GraphId, Graph>,
    body: GraphId,
    (given, wanted): (&[usize], &[usize]),
    max_trips: Option<u64>,
) -> Result<Graph> {
    let mut program = Program::new("body", Stage::Functional);
    let copied = CopiedBody::default().graph(graphs, &mut program.graphs, body);
    let names: Vec<Arc<str>> = copied.inputs.iter().map(|v| copied.values[*v].name.clone()).collect();
    let input = |(v, name): (&ValueId, &Arc<str>)| InputSpec { value: *v, kind: InputKind::User(name.clone()) };
    program.signature.inputs = copied.inputs.iter().zip(&names).map(input).collect();
    let output = |_: &Arg| OutputSpec { kind: OutputKind::User, alias: None };
    program.signature.outputs = copied.outputs.iter().map(output).collect();
    let outputs = copied.outputs.len();
    let main = program.main;
    program.graphs[main] = copied;
    let wrt = wanted.iter().map(|i| names[*i].to_string()).collect();
    let options = Options { loss: Loss::Seeds(given.to_vec()), wrt: Some(wrt), max_trips };
    let made = grad(&program, &options)?;
    let mut out = CopiedBody::default().graph(&made.graphs, graphs, made.main);
    out.outputs.drain(..outputs);
    Ok(out)
}

/// Graphs that were copied from one program to another.
#[derive(Default)]
struct CopiedBody(BTreeMap<GraphId, GraphId>);

impl CopiedBody {
    /// A copy of a graph, and of the graphs that it calls in the other program.
    fn graph(&mut self, from: &IdArena<GraphId, Graph>, to: &mut IdArena<GraphId, Graph>, id: GraphId) -> Graph {
        let mut out = from[id].clone();
        // The name is the original's.
        out.name = "".into();
        for n in out.order.clone() {
            for arg in &mut out.nodes[n].args {
                if let Arg::Graph(g) = arg {
                    *g = match self.0.get(g) {
                        Some(made) => *made,
                        None => {
                            let copy = self.graph(from, to, *g);
                            let made = to.push(copy);
                            self.0.insert(*g, made);
                            made
                        }
                    };
                }
            }
        }
        out
    }
}

/// The program with loops on the way to the losses as scans of at most `max_trips` iterations, in which a condition says
/// whether the loop still goes on. A run in which it goes on after them is an error.
pub(super) fn bound_loops(program: &mut Program, on_way: impl Fn(&Node) -> bool, max_trips: Option<u64>) -> Result<()> {
    let is_loop = |n: &Node| n.op.def().hop == Some(Hop::WhileLoop) && on_way(n);
    if !program.graph().ordered().any(|(_, n)| is_loop(n)) {
        return Ok(());
    }
    let main = program.main;
    let mut graph = std::mem::take(&mut program.graphs[main]);
    let mut names = taken(&graph);
    let mut order = Vec::new();
    for id in std::mem::take(&mut graph.order) {
        if !is_loop(&graph.nodes[id]) {
            order.push(id);
            continue;
        }
        let Some(trips) = max_trips.and_then(|n| i64::try_from(n).ok()) else {
            let e = Error::unsupported("the gradient of a while_loop without a limit on its iterations");
            return Err(e.help("set one with --max-trips N").at(&graph, id));
        };
        bound_loop(&mut graph, &mut names, &mut program.graphs, (id, trips)).map_err(|e| e.at(&graph, id))?;
        order.append(&mut graph.order);
    }
    graph.order = order;
    program.graphs[main] = graph;
    Ok(())
}

/// Puts a scan in the place of a loop; `graph.order` becomes the nodes of the replacement.
fn bound_loop(
    graph: &mut Graph,
    names: &mut restride_ir::Names,
    graphs: &mut IdArena<GraphId, Graph>,
    (id, trips): (NodeId, i64),
) -> Result<()> {
    let node = graph.nodes[id].clone();
    let Some(call) = HopCall::of(graph, &node)? else { return Err(Error::invalid("not a higher-order operator")) };
    let (carried, rest) = (tensors(&call.carried)?, tensors(&call.rest)?);
    let (test, body) = (call.bodies[0], call.bodies[1]);
    let op = |name: &str| lookup(name).ok_or_else(|| Error::invalid(format!("there is no operator {name}")));
    // One iteration: the body where the loop goes on, all as it is otherwise.
    let given = graphs[body].clone();
    let types = |values: &[ValueId]| -> Vec<(Arc<str>, Type)> {
        values.iter().map(|v| (given.values[*v].name.clone(), given.values[*v].ty.clone())).collect()
    };
    let mut same = Graph::new();
    for (name, ty) in types(&given.inputs) {
        same.add_input(name, ty);
    }
    same.outputs = same.inputs[..carried.len()].iter().map(|v| Arg::Value(*v)).collect();
    own_outputs(&mut same)?;
    let mut step = Graph::new();
    let mut own = restride_ir::Names::default();
    for (name, ty) in types(&given.inputs[..carried.len()]) {
        step.add_input(own.fresh(&name), ty);
    }
    let dummy = TensorType::contiguous(DType::I64, &[]);
    step.add_input(own.fresh("trip"), Type::Tensor(dummy));
    for (name, ty) in types(&given.inputs[carried.len()..]) {
        step.add_input(own.fresh(&name), ty);
    }
    let mut operands = step.inputs.clone();
    operands.remove(carried.len());
    let goes_on = inline(&mut step, &mut own, &graphs[test], &operands)?;
    let list = |all: &[ValueId]| Arg::Values(all.iter().map(|v| Some(*v)).collect());
    let args = vec![goes_on, Arg::Graph(body), Arg::Graph(graphs.push(same)), list(&operands)];
    let results: Vec<(Arc<str>, Type)> =
        node.results.iter().map(|r| (own.fresh(&graph.values[*r].name), graph.values[*r].ty.clone())).collect();
    let made = step.add_node(op("higher_order.cond")?, args, results, node.origin.clone());
    step.outputs = step.nodes[made].results.iter().map(|v| Arg::Value(*v)).collect();
    let step = graphs.push(step);
    // The largest number of iterations.
    let mut emit = GraphEmit::plain(graph, names, node.origin.clone(), "trips");
    let count = value(full(&mut emit, &TensorType::contiguous(DType::I64, &[Expr::Int(trips)]), 0)?);
    graph.nodes[id].op = op("higher_order.scan")?;
    graph.nodes[id].args = vec![Arg::Graph(step), list(&carried), list(&[count]), list(&rest)];
    graph.order.push(id);
    let last: Vec<ValueId> = node.results.iter().chain(&rest).copied().collect();
    let Arg::Value(goes_on) = inline(graph, names, &graphs[test], &last)? else {
        return Err(Error::unsupported("the gradient of a loop whose condition is a number"));
    };
    if graph.values[goes_on].ty.tensor().is_none() {
        return Err(Error::unsupported("the gradient of a loop whose condition is a number"));
    }
    let mut emit = GraphEmit::plain(graph, names, node.origin.clone(), "ended");
    let ended = one(&mut emit, "aten.logical_not.default", &[Arg::Value(val(goes_on))])?;
    let what = format!("the loop runs more than {trips} iterations, the limit set by --max-trips");
    let args = vec![Arg::Value(value(ended)), Arg::Str(what.into())];
    graph.add_node(op("aten._assert_async.msg")?, args, [], node.origin.clone());
    Ok(())
}

/// Puts a graph's nodes into another one; gives its only output.
fn inline(into: &mut Graph, names: &mut restride_ir::Names, from: &Graph, inputs: &[ValueId]) -> Result<Arg> {
    let mut map: BTreeMap<ValueId, ValueId> = from.inputs.iter().copied().zip(inputs.iter().copied()).collect_map();
    for (_, node) in from.ordered() {
        let args: Vec<Arg> = node.args.iter().map(|a| a.map_values(|v| map[v])).collect();
        let results: Vec<(Arc<str>, Type)> =
            node.results.iter().map(|r| (names.fresh(&from.values[*r].name), from.values[*r].ty.clone())).collect();
        let made = into.add_node(node.op, args, results, node.origin.clone());
        map.extend(node.results.iter().copied().zip(into.nodes[made].results.iter().copied()));
    }
    match &from.outputs[..] {
        [one] => Ok(one.map_values(|v| map[v])),
        _ => Err(Error::invalid("a condition gives one value")),
    }
}
