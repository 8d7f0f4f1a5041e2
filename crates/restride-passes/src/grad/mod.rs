//! Gradients of functional programs: one functional program of forward and backward.
//!
//! A functional program overwrites nothing, so a gradient rule finds every value that it needs. Composed operators without
//! a rule of their own are decomposed first; then nodes are visited backwards, and each rule adds its calls at the end.

mod control_flow;
mod data_parallel;
mod emit;
mod optimizers;
mod overwritten_saves;
mod prepare;
mod tied_weights;
mod training_step;

pub use data_parallel::{DataParallel, Shard};
pub use optimizers::{Adam, Optimizer, Sgd};
pub use training_step::{Parameter, Update, UpdateStep, train, train_parallel};

use crate::dce::dce;
use emit::{GraphEmit, types_of_node, val, value};
use prepare::prepare;
use restride_ir::{
    Arg, Conditions, Error, Expr, Grad, GradCall, GradEmit, Graph, GraphId, IdArena, InputKind, InputSpec, Names, Node,
    NodeId, OpError, Origin, OutputKind, OutputSpec, Program, Result, Stage, Table, Type, Val, ValueId,
};
use restride_ops::gradient::gradients;
use std::sync::Arc;
use tied_weights::{Tied, tie};

/// The outputs to differentiate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The user output at this position: one floating number.
    Output(usize),
    /// The user outputs at these positions, each with its gradient given: by user inputs that are added at the end, named
    /// `grad_output_I` and of the outputs' types.
    Seeds(Vec<usize>),
}

/// The losses, the targets, and limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// The loss; the first user output by default.
    pub loss: Loss,
    /// Parameters and user inputs by name; by default every parameter that asks for gradients and every floating user
    /// input.
    pub wrt: Option<Vec<String>>,
    /// The largest number of iterations of a loop: `while_loop` is differentiated as a `scan` of that many. A run that
    /// needs more is an error.
    pub max_trips: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options { loss: Loss::Output(0), wrt: None, max_trips: None }
    }
}

/// The joint program: the functional program with the loss declared, and a gradient output for each input that is asked
/// for. An input that the loss does not depend on has a gradient of zeros. A weight under several names has one gradient.
///
/// # Errors
/// A loss that is not one floating number, an input that has no gradient, an operator without a gradient rule, with the
/// node.
pub fn grad(program: &Program, options: &Options) -> Result<Program> {
    let mut joint = Joint::new(program, options)?;
    let out = &mut joint.program;
    let graph = &mut out.graphs[out.main];
    let seeds: Option<Vec<ValueId>> = matches!(options.loss, Loss::Seeds(_)).then(|| {
        let mut names = taken(graph);
        let mut add = |v: &ValueId, at: &usize| {
            let ty = graph.values[*v].ty.clone();
            let name = names.fresh(&format!("grad_output_{at}"));
            let value = graph.add_input(name.clone(), ty);
            out.signature.inputs.push(InputSpec { value, kind: InputKind::User(name) });
            value
        };
        joint.starts.iter().zip(user_positions(options)).map(|(v, at)| add(v, &at)).collect()
    });
    let found = joint.backward(seeds.as_deref(), &mut |_, _, _, _| Ok(()))?;
    let given = finish(&mut joint, found)?;
    let out = &mut joint.program;
    for (at, grad) in joint.targets.iter().zip(given) {
        out.graphs[out.main].outputs.push(Arg::Value(grad));
        out.signature.outputs.push(OutputSpec { kind: OutputKind::Gradient(*at), alias: None });
    }
    if seeds.is_some() {
        // They were of other inputs.
        out.sample_inputs = None;
    } else {
        out.signature.outputs[joint.losses[0]].kind = OutputKind::Loss;
    }
    drop_histories(out);
    dce(out);
    Ok(joint.program)
}

/// The program without histories, if it has any.
pub(crate) fn without_histories(program: &Program) -> Option<Program> {
    let has = |graph: &Graph| graph.ordered().any(|(_, n)| n.op.def().history);
    program.graphs.iter().any(|(_, g)| has(g)).then(|| {
        let mut out = program.clone();
        drop_histories(&mut out);
        out
    })
}

/// Replaces values joined with a history by the values alone: a joint program is not differentiated again.
fn drop_histories(program: &mut Program) {
    let graphs: Vec<GraphId> = program.graphs.iter().map(|(id, _)| id).collect();
    for id in graphs {
        let graph = &mut program.graphs[id];
        let mut instead: Table<ValueId, Option<ValueId>> = Table::new();
        let mut any = false;
        for id in graph.order.clone() {
            let node = &mut graph.nodes[id];
            if any {
                node.args.iter_mut().for_each(|a| *a = a.map_values(|v| instead[*v].unwrap_or(*v)));
            }
            if let (true, Some(Arg::Value(value))) = (node.op.def().history, node.args.first()) {
                instead.set(node.results[0], Some(*value));
                any = true;
            }
        }
        if any {
            graph.outputs.iter_mut().for_each(|a| *a = a.map_values(|v| instead[*v].unwrap_or(*v)));
            let nodes = &graph.nodes;
            graph.order.retain(|id| !nodes[*id].op.def().history);
        }
    }
}

/// The number of leading nodes of a joint program, made of this one with these options, that are its forward part. Nodes
/// for backward and for updates follow them and have larger numbers.
///
/// # Errors
/// Those of [`grad`].
pub fn forward_nodes(program: &Program, joint: &Program, options: &Options) -> Result<usize> {
    let forward = Joint::new(program, options)?.program.graph().nodes.len();
    Ok(joint.graph().order.partition_point(|id| restride_ir::Id::index(*id) < forward))
}

/// A program whose forward part is ready to be differentiated.
struct Joint {
    program: Program,
    /// The losses, by position among the graph's outputs and by value.
    losses: Vec<usize>,
    starts: Vec<ValueId>,
    /// Positions of the inputs that are differentiated.
    targets: Vec<usize>,
    tied: Tied,
    flow: Flow,
    max_trips: Option<u64>,
    conditions: Conditions,
}

impl Joint {
    fn new(program: &Program, options: &Options) -> Result<Joint> {
        if program.stage != Stage::Functional {
            return Err(Error::invalid("only functional programs are differentiated"));
        }
        let losses = losses(program, options)?;
        let targets = targets(program, options)?;
        // Gradients of bodies read the numbers of the graph outside as symbols.
        let bodies = program.graphs.len() > 1;
        let symbols = bodies.then(|| crate::outer_numbers::as_symbols(program.clone()).ok()).flatten();
        let mut program = symbols.unwrap_or_else(|| program.clone());
        let tied = tie(&mut program);
        let mut read: Vec<usize> = targets.iter().map(|i| tied[*i]).collect();
        read.sort_unstable();
        read.dedup();
        overwritten_saves::refuse(&program, &prepare::between(&program, &losses, &read))?;
        let program = prepare(program, &losses, &read, options.max_trips)?;
        overwritten_saves::refuse(&program, &prepare::between(&program, &losses, &read))?;
        let graph = program.graph();
        let flow = Flow::new(graph, read.iter().map(|i| program.signature.inputs[*i].value));
        let start = |at: &usize| match &graph.outputs[*at] {
            Arg::Value(v) => Ok(*v),
            _ => Err(Error::invalid("an output that is a constant")),
        };
        let starts = losses.iter().map(start).collect::<Result<Vec<_>>>()?;
        refuse_whole_storages(&program, &read, &starts)?;
        let conditions = Conditions::of(&program);
        Ok(Joint { program, losses, starts, targets, tied, flow, max_trips: options.max_trips, conditions })
    }

    /// Adds the backward part; see [`backward`].
    fn backward(&mut self, seeds: Option<&[ValueId]>, after: &mut After<'_>) -> Result<Found> {
        let (main, graphs) = (self.program.main, &mut self.program.graphs);
        // Bodies are added to the program.
        let mut graph = std::mem::take(&mut graphs[main]);
        let conditions = Some(&self.conditions);
        let way = GradWay { starts: &self.starts, seeds, flow: &self.flow, max_trips: self.max_trips, conditions };
        let found = backward(&mut graph, graphs, &way, after)?;
        graphs[main] = graph;
        Ok(found)
    }
}

/// Refuses targets on a storage that the program reads as a whole on its way to a loss: their gradient would be zero.
fn refuse_whole_storages(program: &Program, targets: &[usize], losses: &[ValueId]) -> Result<()> {
    for spec in &program.signature.inputs {
        let InputKind::Storage(members) = &spec.kind else { continue };
        let Some(target) = targets.iter().find(|i| members.contains(i)) else { continue };
        let flow = Flow::new(program.graph(), std::iter::once(spec.value));
        if losses.iter().any(|v| flow.needs[*v]) {
            let name = &program.graph().values[program.signature.inputs[*target].value].name;
            let what = format!("the gradient of %{name}, whose whole storage the program reads");
            return Err(Error::unsupported(what).help("differentiate with respect to a clone of it"));
        }
    }
    Ok(())
}

/// The names of a graph's values.
fn taken(graph: &Graph) -> Names {
    let mut names = Names::default();
    graph.values.iter().for_each(|(_, v)| {
        names.fresh(&v.name);
    });
    names
}

/// The outputs that are differentiated, as positions among the user outputs.
fn user_positions(options: &Options) -> Vec<usize> {
    match &options.loss {
        Loss::Output(i) => vec![*i],
        Loss::Seeds(all) => all.clone(),
    }
}

/// Positions of the losses among the graph's outputs.
fn losses(program: &Program, options: &Options) -> Result<Vec<usize>> {
    let outputs = &program.signature.outputs;
    if outputs.iter().any(|o| matches!(o.kind, OutputKind::Loss | OutputKind::Gradient(_))) {
        return Err(Error::unsupported("the program has a loss and gradients already")
            .help("differentiate the program that it was made of"));
    }
    let users: Vec<usize> = (0..outputs.len()).filter(|i| outputs[*i].kind == OutputKind::User).collect();
    let mut out = Vec::new();
    for which in user_positions(options) {
        let Some(&at) = users.get(which) else {
            return Err(Error::invalid(format!("there is no output.{which}: the program has {} outputs", users.len())));
        };
        let ty = match &program.graph().outputs[at] {
            Arg::Value(v) => program.graph().values[*v].ty.tensor(),
            _ => None,
        };
        let advice = "name an output that is one floating number with --loss output.I";
        let Some(ty) = ty else {
            return Err(Error::invalid(format!("output.{which} is no tensor, so it cannot be the loss")).help(advice));
        };
        let single = ty.layout.sizes.iter().all(|s| s.constant().map(|n| n.as_i64()) == Some(1));
        let fits = match options.loss {
            Loss::Output(_) => ty.dtype.is_float() && single,
            Loss::Seeds(_) => ty.dtype.is_float() || ty.dtype.is_complex(),
        };
        if !fits {
            let what = format!("output.{which} is {ty}; a loss is one floating number");
            return Err(Error::invalid(what).help(advice));
        }
        out.push(at);
    }
    Ok(out)
}

/// Positions of the inputs that are differentiated, in order.
fn targets(program: &Program, options: &Options) -> Result<Vec<usize>> {
    let floating = |i: usize| {
        let ty = program.graph().values[program.signature.inputs[i].value].ty.tensor();
        ty.is_some_and(|t| t.dtype.is_float() || t.dtype.is_complex())
    };
    let inputs = &program.signature.inputs;
    let Some(names) = &options.wrt else {
        let asks = |i: &usize| match &inputs[*i].kind {
            InputKind::Parameter(n) => program.weights.tensors.get(n).is_none_or(|w| w.requires_grad) && floating(*i),
            InputKind::User(_) => floating(*i),
            _ => false,
        };
        return Ok((0..inputs.len()).filter(asks).collect());
    };
    let mut out = Vec::new();
    for name in names {
        let is_it = |i: &usize| match &inputs[*i].kind {
            InputKind::Parameter(n) | InputKind::User(n) => **n == **name,
            _ => false,
        };
        let Some(i) = (0..inputs.len()).find(is_it) else {
            return Err(Error::invalid(format!("there is no parameter or user input {name}")));
        };
        if !floating(i) {
            return Err(Error::invalid(format!("{name} is not a floating tensor, so it has no gradient")));
        }
        out.push(i);
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// Whether a gradient goes through a call: from its results to the operands that `needs` says are differentiated.
pub(crate) fn passes(node: &Node, needs: impl Fn(ValueId) -> bool) -> bool {
    let def = node.op.def();
    let constant = def.detaches || matches!(def.grad, Some(Grad::Zero));
    if node.origin.no_grad || constant {
        return false;
    }
    match def.history {
        true => node.operands().nth(1).is_some_and(needs),
        false => node.operands().any(needs),
    }
}

/// The results of a call that autograd records the call for.
pub(crate) fn recorded(node: &Node) -> &[ValueId] {
    let count = node.op.def().unrecorded.unwrap_or(u8::MAX);
    &node.results[..node.results.len().min(count.into())]
}

/// Which values gradients go to.
struct Flow {
    /// Values that depend on the targets differentiably.
    needs: Table<ValueId, bool>,
}

impl Flow {
    fn new(graph: &Graph, from: impl Iterator<Item = ValueId>) -> Flow {
        let mut out = Flow { needs: Table::new() };
        from.for_each(|v| out.needs.set(v, true));
        for (_, node) in graph.ordered() {
            if !out.passes(node) {
                continue;
            }
            for r in recorded(node) {
                let ty = graph.values[*r].ty.tensor();
                out.needs.set(*r, ty.is_some_and(|t| t.dtype.is_float() || t.dtype.is_complex()));
            }
        }
        out
    }

    /// Whether a gradient goes through a call.
    fn passes(&self, node: &Node) -> bool {
        passes(node, |v| self.needs[v])
    }
}

/// From where to where, and how.
#[derive(Clone, Copy)]
struct GradWay<'a> {
    starts: &'a [ValueId],
    seeds: Option<&'a [ValueId]>,
    flow: &'a Flow,
    max_trips: Option<u64>,
    /// The program's checks of its numbers.
    conditions: Option<&'a Conditions>,
}

/// The gradient of each value.
type Found = Table<ValueId, Option<ValueId>>;

/// Called after the backward part of each node with the gradients so far: the gradients of values that the node is the
/// first to read are complete.
type After<'a> = dyn FnMut(&mut Graph, &mut Names, NodeId, &Found) -> Result<()> + 'a;

/// Adds the backward part, from values with the gradients given or 1; the gradient of each value.
fn backward(
    graph: &mut Graph,
    graphs: &mut IdArena<GraphId, Graph>,
    way: &GradWay<'_>,
    after: &mut After<'_>,
) -> Result<Found> {
    let GradWay { starts, seeds, flow, conditions, .. } = *way;
    let mut names = taken(graph);
    let mut grads: Table<ValueId, Option<ValueId>> = Table::new();
    let order: Vec<NodeId> = graph.order.clone();
    let origin = Arc::default();
    let mut emit = GraphEmit { graph, names: &mut names, origin, hint: "grad".into(), conditions, near: Vec::new() };
    for (k, &start) in starts.iter().enumerate().filter(|(_, v)| flow.needs[**v]) {
        let seed = match seeds {
            Some(seeds) => seeds[k],
            None => {
                let ty = emit.ty(val(start));
                value(full(&mut emit, &ty, 1)?)
            }
        };
        add_to(&mut emit, &mut grads, start, seed)?;
    }
    for id in order.into_iter().rev() {
        through(&mut emit, graphs, id, way, &mut grads)?;
        after(emit.graph, emit.names, id, &grads)?;
    }
    Ok(grads)
}

/// Adds the backward part of a node.
fn through(
    emit: &mut GraphEmit<'_>,
    graphs: &mut IdArena<GraphId, Graph>,
    id: NodeId,
    way: &GradWay<'_>,
    grads: &mut Found,
) -> Result<()> {
    let flow = way.flow;
    let node = &emit.graph.nodes[id];
    if !node.results.iter().any(|r| grads[*r].is_some()) || !flow.passes(node) {
        return Ok(());
    }
    let operands: Vec<ValueId> = node.operands().collect();
    // The elements that are joined with a history have none of their own.
    let skipped = usize::from(node.op.def().history);
    let wanted: Vec<bool> = operands.iter().enumerate().map(|(i, v)| i >= skipped && flow.needs[*v]).collect();
    if !wanted.contains(&true) {
        return Ok(());
    }
    let args: Vec<Arg<Val, Expr>> = node.args.iter().map(|a| a.map_values(|v| val(*v))).collect();
    let results: Vec<Val> = node.results.iter().map(|r| val(*r)).collect();
    let given: Vec<Option<Val>> = node.results.iter().map(|r| grads[*r].map(val)).collect();
    let op = node.op;
    let near = types_of_node(emit.graph, node);
    emit.origin = differentiable(&node.origin);
    if op.def().hop.is_some() {
        return control_flow::through(emit, graphs, (id, &wanted), grads, way.max_trips)
            .map_err(|e| e.at(emit.graph, id));
    }
    emit.near = near;
    let call = GradCall { op, args: &args, results: &results, grads: &given, needs: &wanted };
    let found = gradients(emit, &call).map_err(|e| refused(e).at(emit.graph, id))?;
    for (v, g) in operands.into_iter().zip(found) {
        if let Some(g) = g {
            add_to(emit, grads, v, value(g))?;
        }
    }
    Ok(())
}

/// Adds to a value's gradient.
fn add_to(emit: &mut GraphEmit<'_>, grads: &mut Found, v: ValueId, more: ValueId) -> Result<()> {
    let sum = match grads[v] {
        None => more,
        Some(old) => value(one(emit, "aten.add.Tensor", &[Arg::Value(val(old)), Arg::Value(val(more))])?),
    };
    grads.set(v, Some(sum));
    Ok(())
}

/// The origin of nodes added for a node: differentiable, in any `no_grad` region.
fn differentiable(origin: &Arc<Origin>) -> Arc<Origin> {
    if origin.no_grad || origin.overwritten.is_some() {
        Arc::new(Origin { no_grad: false, overwritten: None, ..(**origin).clone() })
    } else {
        origin.clone()
    }
}

fn refused(e: OpError) -> Error {
    Error::unsupported(format!("its gradient: {e}"))
}

fn one(emit: &mut GraphEmit<'_>, op: &str, args: &[Arg<Val, Expr>]) -> Result<Val> {
    let made = emit.call(op, args)?;
    made.first().copied().ok_or_else(|| Error::invalid(format!("{op} has no result")))
}

fn full(emit: &mut GraphEmit<'_>, ty: &restride_ir::TensorType, n: i64) -> Result<Val> {
    let args = [Arg::Scalars(ty.layout.sizes.to_vec()), Arg::Scalar(Expr::Int(n)), Arg::DType(ty.dtype)];
    one(emit, "aten.full.default", &args)
}

/// The gradient of each target: zeros if the loss does not depend on it. A target under two names gets a clone, as outputs
/// are told apart by value.
fn finish(joint: &mut Joint, found: Found) -> Result<Vec<ValueId>> {
    let graph = &mut joint.program.graphs[joint.program.main];
    let mut names = taken(graph);
    let mut emit = GraphEmit::plain(graph, &mut names, Arc::default(), "grad");
    let mut out = Vec::new();
    let mut given = vec![false; joint.tied.len()];
    for i in &joint.targets {
        let to = joint.tied[*i];
        let input = joint.program.signature.inputs[to].value;
        out.push(match found[input] {
            Some(g) if std::mem::replace(&mut given[to], true) => {
                value(one(&mut emit, "aten.clone.default", &[Arg::Value(val(g))])?)
            }
            Some(g) => g,
            None => match &emit.graph.values[input].ty {
                Type::Tensor(ty) => {
                    let ty = ty.clone();
                    value(full(&mut emit, &ty, 0)?)
                }
                _ => return Err(Error::invalid("a gradient of a value that is no tensor")),
            },
        });
    }
    Ok(out)
}
