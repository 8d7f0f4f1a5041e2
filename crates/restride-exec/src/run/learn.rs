//! Nodes between two segments of a program, whose results tell sizes and numbers.

use super::RunCtx;
use crate::copy::copy_as;
use crate::inputs::{Inputs, RunValue, State, evaluate, same_strides};
use crate::interp::{RunOptions, call_once, interpret};
use crate::symbols::{Unified, unify};
use restride_ir::{
    Arg, Binding, Error, ErrorKind, Expr, Graph, InputKind, InputSpec, Node, OutputKind, OutputSpec, Program, Result,
    RngKey, Scalar, Signature, Stage, TensorType, Type,
};
use restride_tensor::{Layout, RawTensor, self_overlaps};
use std::convert::Infallible;

/// Runs one node of a functional program on values; operands are in the order of [`Node::operands`]. Results are on memory
/// of their own.
///
/// # Errors
/// The operator's own error, too few operands, an unknown number.
pub fn run_learn(node: &Node, operands: &[RunValue], symbols: &Binding, ctx: RunCtx) -> Result<Vec<RunValue>> {
    if node.op.def().hop.is_some() {
        return Err(Error::invalid(format!("{} without its bodies", node.op)));
    }
    let mut rest = operands.iter();
    let mut args: Vec<Arg<RunValue, Scalar>> = Vec::with_capacity(node.args.len());
    for arg in &node.args {
        args.push(arg.try_map(
            |_| rest.next().cloned().ok_or_else(|| Error::invalid(format!("{} is given too few operands", node.op))),
            |e| e.eval(symbols).map_err(|why| Error::invalid(format!("{e}: {why}"))),
        )?);
    }
    let key = RngKey { seed: ctx.seed, call: ctx.call, node: node.origin.key, iteration: ctx.iteration };
    let results = call_once(node.op, &args, key, &RunOptions::of(ctx))?;
    let own = |value: RunValue| match value {
        RunValue::Tensor(t)
            if t.conj
                || t.neg
                || operands.iter().filter_map(RunValue::tensor).any(|o| o.storage().same(t.storage())) =>
        {
            copy_of(&t).map(RunValue::Tensor)
        }
        other => Ok(other),
    };
    results.into_iter().map(own).collect()
}

/// Runs a higher-order node of a functional program on values, by the interpreter: sizes that its bodies learn are known to no plan.
/// `types` are those of the results.
///
/// # Errors
/// As [`run_learn`].
pub fn run_bodies(
    program: &Program,
    node: &Node,
    types: &[Type],
    operands: &[RunValue],
    symbols: &Binding,
    ctx: RunCtx,
) -> Result<Vec<RunValue>> {
    let known = |ty: &Type| match ty {
        Type::Tensor(t) => Type::Tensor(TensorType::new(t.dtype, t.layout.map(|e| e.substitute(symbols)))),
        Type::Scalar(e) => Type::Scalar(e.substitute(symbols)),
        other => other.clone(),
    };
    let mut alone =
        Program { graphs: program.graphs.clone(), main: program.main, ..Program::new("branch", Stage::Functional) };
    (alone.symbols, alone.limits) = (program.symbols.clone(), program.limits);
    for id in alone.graphs.ids().collect::<Vec<_>>() {
        let graph = &mut alone.graphs[id];
        for v in graph.values.ids().collect::<Vec<_>>() {
            graph.values[v].ty = known(&graph.values[v].ty);
        }
        let numbers = |a: &Arg| -> Arg {
            let mapped: std::result::Result<_, Infallible> = a.try_map(|v| Ok(*v), |e| Ok(e.substitute(symbols)));
            match mapped {
                Ok(arg) => arg,
            }
        };
        for n in graph.nodes.ids().collect::<Vec<_>>() {
            graph.nodes[n].args = graph.nodes[n].args.iter().map(numbers).collect();
        }
        graph.outputs = graph.outputs.iter().map(numbers).collect();
    }
    let mut main = Graph::new();
    let mut given = operands.iter().enumerate();
    let mut specs = Vec::new();
    let mut args = Vec::with_capacity(node.args.len());
    for arg in &node.args {
        args.push(arg.try_map(
            |_| {
                let (i, value) = given.next().ok_or_else(|| Error::invalid("a branch is given too few operands"))?;
                let ty = match value {
                    RunValue::Tensor(t) => Type::Tensor(TensorType::new(t.dtype(), t.layout().map(|n| Expr::Int(*n)))),
                    RunValue::Scalar(s) => Type::Scalar(Expr::from(*s)),
                    RunValue::Str(_) => Type::Str,
                    RunValue::None => Type::None,
                };
                let v = main.add_input(format!("operand_{i}"), ty);
                specs.push(InputSpec { value: v, kind: InputKind::User(format!("operand_{i}").into()) });
                Ok::<_, Error>(v)
            },
            |e| Ok(e.substitute(symbols)),
        )?);
    }
    let results = types.iter().enumerate().map(|(i, ty)| (format!("result_{i}").into(), known(ty)));
    let id = main.add_node(node.op, args, results, node.origin.clone());
    main.outputs = main.nodes[id].results.iter().map(|r| Arg::Value(*r)).collect();
    let user = OutputSpec { kind: OutputKind::User, alias: None };
    alone.signature = Signature { inputs: specs, outputs: vec![user; main.outputs.len()] };
    alone.graphs[program.main] = main;
    let inputs = Inputs { values: operands.to_vec() };
    Ok(interpret(&alone, &inputs, &mut State::default(), &RunOptions::of(ctx))?.values)
}

/// The elements on memory of their own.
fn copy_of(t: &RawTensor) -> Result<RawTensor> {
    let layout = match self_overlaps(t.layout()) {
        Some(false) => Layout { offset: 0, ..t.layout().clone() },
        _ => Layout::contiguous(&t.layout().sizes),
    };
    Ok(copy_as(t, layout)?)
}

/// Checks the results of a node against their declared types, learns symbols, and lays tensors out as declared. `read` says
/// which results a later node reads.
///
/// # Errors
/// A result of another type, a size or number that the declaration does not allow.
pub fn fit_learnt(
    node: &Node,
    types: &[Type],
    read: &[bool],
    results: Vec<RunValue>,
    symbols: &mut Binding,
) -> Result<Vec<RunValue>> {
    if results.len() != types.len() {
        return Err(Error::invalid(format!("{} gives {} results", node.op, results.len())));
    }
    // A result that is not asked for has no elements, whatever sizes the exporter wrote: counts of `unique_consecutive`.
    let nothing = |at: usize, value: &RunValue| {
        let empty = matches!(value, RunValue::Tensor(t) if t.numel() == 0);
        // Bodies give all that they return.
        node.op.def().hop.is_none() && at > 0 && empty && !read.get(at).copied().unwrap_or_default()
    };
    for (at, (ty, value)) in types.iter().zip(&results).enumerate() {
        match (ty, value) {
            (_, value) if nothing(at, value) => {}
            (Type::Tensor(ty), RunValue::Tensor(t)) => {
                let sizes = &t.layout().sizes;
                if t.dtype() != ty.dtype || sizes.len() != ty.rank() {
                    return Err(Error::invalid(format!("it gives {}{sizes:?} and is declared as {ty}", t.dtype())));
                }
                for (expr, &n) in ty.sizes().iter().zip(sizes) {
                    accept(expr, Scalar::Int(n), "a size of ", symbols)?;
                }
            }
            (Type::Scalar(expr), RunValue::Scalar(s)) => accept(expr, *s, "", symbols)?,
            _ => {}
        }
    }
    let lay = |(at, (ty, value)): (usize, (&Type, RunValue))| match (ty, value) {
        (_, value) if nothing(at, &value) => Ok(value),
        (Type::Tensor(ty), RunValue::Tensor(t)) => match evaluate(&ty.layout, symbols) {
            Some(declared) if !same_strides(&declared, t.layout()) || t.layout().offset != declared.offset => {
                Ok(RunValue::Tensor(copy_as(&t, declared)?))
            }
            _ => Ok(RunValue::Tensor(t)),
        },
        (_, value) => Ok(value),
    };
    types.iter().zip(results).enumerate().map(lay).collect()
}

fn accept(expr: &Expr, found: Scalar, what: &str, symbols: &mut Binding) -> Result<()> {
    let wrong = |why: String| Err(Error::new(ErrorKind::Program, format!("it gives {what}{found}{why}")));
    match unify(expr, found, symbols) {
        Unified::Agree | Unified::Open => Ok(()),
        Unified::Differs(want) => wrong(format!(" where {want} is declared")),
        Unified::OutOfRange(why) => wrong(format!(": {why}")),
    }
}
