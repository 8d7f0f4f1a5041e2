//! Gradients of functional programs: one functional program of forward and backward.
//!
//! Nothing is overwritten in a functional program, so every value that a rule needs is there. Composed operators without a
//! rule of their own are taken apart first; then nodes are visited backwards, and each rule adds its calls at the end.

mod emit;
mod prepare;
mod shapes;

use crate::build::Names;
use crate::dce::dce;
use emit::{GraphEmit, val, value};
use prepare::prepare;
use restride_ir::{
    Arg, Error, Expr, Grad, GradCall, GradEmit, Graph, InputKind, Node, NodeId, OpError, Origin, OutputKind,
    OutputSpec, Program, Result, Stage, Table, Type, Val, ValueId,
};
use restride_ops::gradient::gradients;
use std::sync::Arc;

/// What is differentiated with respect to what.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Position of the loss among the user outputs; the first by default.
    pub loss: Option<usize>,
    /// Parameters and user inputs by name; by default every parameter that asks for gradients and every floating user
    /// input.
    pub wrt: Option<Vec<String>>,
}

/// The joint program: the functional program with the loss declared, and a gradient output for each input that is asked
/// for. An input that the loss does not depend on has a gradient of zeros.
///
/// # Errors
/// A loss that is not one floating number, an input that has no gradient, an operator without a gradient rule, with the
/// node.
pub fn grad(program: &Program, options: &Options) -> Result<Program> {
    if program.stage != Stage::Functional {
        return Err(Error::invalid("only functional programs are differentiated"));
    }
    let loss = loss(program, options)?;
    let targets = targets(program, options)?;
    let mut out = prepare(program, loss, &targets)?;
    let graph = &mut out.graphs[out.main];
    let needs = needs(graph, targets.iter().map(|i| out.signature.inputs[*i].value));
    let start = match &graph.outputs[loss] {
        Arg::Value(v) => *v,
        _ => return Err(Error::invalid("the loss is a constant")),
    };
    let found = backward(graph, start, &needs)?;
    for (at, grad) in targets.iter().zip(finish(graph, &out.signature, &targets, found)?) {
        graph.outputs.push(Arg::Value(grad));
        out.signature.outputs.push(OutputSpec { kind: OutputKind::Gradient(*at), alias: None });
    }
    out.signature.outputs[loss].kind = OutputKind::Loss;
    dce(&mut out);
    Ok(out)
}

/// Position of the loss among the graph's outputs.
fn loss(program: &Program, options: &Options) -> Result<usize> {
    let outputs = &program.signature.outputs;
    if outputs.iter().any(|o| matches!(o.kind, OutputKind::Loss | OutputKind::Gradient(_))) {
        return Err(Error::unsupported("the program has a loss and gradients already")
            .help("differentiate the program that it was made of"));
    }
    let users: Vec<usize> = (0..outputs.len()).filter(|i| outputs[*i].kind == OutputKind::User).collect();
    let which = options.loss.unwrap_or(0);
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
    if !ty.dtype.is_float() || ty.layout.sizes.iter().any(|s| s.constant().map(|n| n.as_i64()) != Some(1)) {
        let what = format!("output.{which} is {ty}; a loss is one floating number");
        return Err(Error::invalid(what).help(advice));
    }
    Ok(at)
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

/// Whether a gradient goes through a call at all.
fn passes(node: &Node) -> bool {
    !node.origin.no_grad && !matches!(node.op.def().grad, Some(Grad::Zero))
}

/// Which values depend on the given inputs differentiably.
fn needs(graph: &Graph, from: impl Iterator<Item = ValueId>) -> Table<ValueId, bool> {
    let mut out: Table<ValueId, bool> = Table::new();
    from.for_each(|v| out.set(v, true));
    for (_, node) in graph.ordered() {
        if !passes(node) || !node.operands().any(|v| out[v]) {
            continue;
        }
        for r in &node.results {
            let ty = graph.values[*r].ty.tensor();
            if ty.is_some_and(|t| t.dtype.is_float() || t.dtype.is_complex()) {
                out.set(*r, true);
            }
        }
    }
    out
}

/// Adds the backward part; the gradient of each value.
fn backward(graph: &mut Graph, loss: ValueId, needs: &Table<ValueId, bool>) -> Result<Table<ValueId, Option<ValueId>>> {
    let mut names = Names::default();
    graph.values.iter().for_each(|(_, v)| {
        names.fresh(&v.name);
    });
    let mut grads: Table<ValueId, Option<ValueId>> = Table::new();
    if !needs[loss] {
        return Ok(grads);
    }
    let order: Vec<NodeId> = graph.order.clone();
    let mut emit = GraphEmit { graph, names: &mut names, origin: Arc::default(), hint: "grad".into() };
    let ty = emit.ty(val(loss));
    let seed = full(&mut emit, &ty, 1)?;
    grads.set(loss, Some(value(seed)));
    for id in order.into_iter().rev() {
        let node = &emit.graph.nodes[id];
        if !node.results.iter().any(|r| grads[*r].is_some()) || !passes(node) {
            continue;
        }
        let operands: Vec<ValueId> = node.operands().collect();
        let wanted: Vec<bool> = operands.iter().map(|v| needs[*v]).collect();
        if !wanted.contains(&true) {
            continue;
        }
        let args: Vec<Arg<Val, Expr>> = node.args.iter().map(|a| a.map_values(|v| val(*v))).collect();
        let results: Vec<Val> = node.results.iter().map(|r| val(*r)).collect();
        let given: Vec<Option<Val>> = node.results.iter().map(|r| grads[*r].map(val)).collect();
        let op = node.op;
        emit.origin = node.origin.clone();
        let call = GradCall { op, args: &args, results: &results, grads: &given, needs: &wanted };
        let found = gradients(&mut emit, &call).map_err(|e| refused(e).at(emit.graph, id))?;
        for (v, g) in operands.into_iter().zip(found) {
            let Some(g) = g else { continue };
            let sum = match grads[v] {
                None => g,
                Some(old) => one(&mut emit, "aten.add.Tensor", &[Arg::Value(val(old)), Arg::Value(g)])?,
            };
            grads.set(v, Some(value(sum)));
        }
    }
    Ok(grads)
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

/// The gradient of each target: zeros where there is none.
fn finish(
    graph: &mut Graph,
    signature: &restride_ir::Signature,
    targets: &[usize],
    found: Table<ValueId, Option<ValueId>>,
) -> Result<Vec<ValueId>> {
    let mut names = Names::default();
    graph.values.iter().for_each(|(_, v)| {
        names.fresh(&v.name);
    });
    let mut emit = GraphEmit { graph, names: &mut names, origin: Arc::new(Origin::default()), hint: "grad".into() };
    let mut out = Vec::new();
    for i in targets {
        let input = signature.inputs[*i].value;
        out.push(match found[input] {
            Some(g) => g,
            None => match &emit.graph.values[input].ty {
                Type::Tensor(ty) => {
                    let ty = ty.clone();
                    value(full(&mut emit, &ty, 0)?)
                }
                _ => return Err(Error::invalid("a gradient of what is no tensor")),
            },
        });
    }
    Ok(out)
}
