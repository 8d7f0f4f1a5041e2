//! Arguments and results by schema.

use super::{declared, invalid};
use crate::{Arg, ArgType, Expr, Graph, Node, Program, Result, SchemaArg, Type};

pub(super) fn check(program: &Program, graph: &Graph, node: &Node) -> Result<()> {
    let schema = node.op.schema();
    if node.args.len() != schema.args.len() {
        return invalid(format!("expected {} arguments, got {}", schema.args.len(), node.args.len()));
    }
    let hop = node.op.def().hop.is_some();
    for (slot, arg) in schema.args.iter().zip(&node.args) {
        arg.scalars().iter().try_for_each(|e| declared(program, e))?;
        if let Some(v) = arg.values().find(|v| graph.values.get(**v).is_none()) {
            return invalid(format!("argument `{}`: undefined value {v}", slot.name));
        }
        if !hop && let Err(want) = fits(graph, slot, arg) {
            return invalid(format!("argument `{}` is not {want}", slot.name));
        }
    }
    results(node)
}

/// Checks an argument; the error is the expected type.
fn fits(graph: &Graph, slot: &SchemaArg, arg: &Arg) -> std::result::Result<(), &'static str> {
    let tensor = |v: &crate::ValueId| graph.values[*v].ty.tensor().is_some();
    let nothing = |v: &crate::ValueId| graph.values[*v].ty == Type::None;
    let empty = matches!(arg, Arg::Scalars(s) if s.is_empty());
    let ok = |fits: bool, want: &'static str| if fits { Ok(()) } else { Err(want) };
    let optional = slot.optional || slot.ty == ArgType::Other;
    match arg {
        Arg::None => return ok(optional, "given"),
        Arg::Value(v) if optional && nothing(v) => return Ok(()),
        _ => {}
    }
    match slot.ty {
        // Python numbers stand for 0-d tensors.
        ArgType::Tensor => match arg {
            Arg::Value(v) => ok(tensor(v), "a tensor"),
            _ => ok(matches!(arg, Arg::Scalar(_) | Arg::Complex(..)), "a tensor"),
        },
        ArgType::Tensors => match arg {
            Arg::Values(vs) => ok(vs.iter().all(|v| v.as_ref().is_some_and(tensor)), "a list of tensors"),
            _ => ok(empty, "a list of tensors"),
        },
        ArgType::OptTensors => match arg {
            Arg::Values(vs) => {
                let each = vs.iter().flatten().all(|v| tensor(v) || nothing(v));
                ok(each, "a list of tensors and `None`s")
            }
            _ => ok(empty, "a list of tensors and `None`s"),
        },
        ArgType::Scalar => ok(matches!(arg, Arg::Scalar(_) | Arg::Complex(..)), "a number"),
        ArgType::Scalars | ArgType::Floats => numbers(arg, |_| true, "a list of numbers"),
        ArgType::Int => number(arg, |e| !e.is_float(), "an integer"),
        ArgType::Ints(_) => numbers(arg, |e| !e.is_float(), "a list of integers"),
        ArgType::Float => number(arg, |_| true, "a float"),
        // Integers pass for bools, as in Python.
        ArgType::Bool => number(arg, |e| !e.is_float(), "a bool"),
        ArgType::Bools(_) => numbers(arg, |e| !e.is_float(), "a list of bools"),
        ArgType::Str => ok(matches!(arg, Arg::Str(_)), "a string"),
        ArgType::Strs => ok(empty || matches!(arg, Arg::Strs(_)), "a list of strings"),
        ArgType::DType => ok(matches!(arg, Arg::DType(_)), "an element type"),
        ArgType::Device => ok(matches!(arg, Arg::Device(_)), "a device"),
        ArgType::Layout => ok(matches!(arg, Arg::Strided), "`strided`"),
        ArgType::MemoryFormat => ok(matches!(arg, Arg::MemoryFormat(_)), "a memory format"),
        ArgType::Other => Ok(()),
    }
}

fn number(arg: &Arg, fits: impl Fn(&Expr) -> bool, want: &'static str) -> std::result::Result<(), &'static str> {
    match arg {
        Arg::Scalar(e) if fits(e) => Ok(()),
        _ => Err(want),
    }
}

fn numbers(arg: &Arg, fits: impl Fn(&Expr) -> bool, want: &'static str) -> std::result::Result<(), &'static str> {
    match arg {
        Arg::Scalar(_) | Arg::Scalars(_) if arg.scalars().iter().all(&fits) => Ok(()),
        _ => Err(want),
    }
}

/// The number of results fits the schema; a list is any number of results.
fn results(node: &Node) -> Result<()> {
    let returns = &node.op.schema().returns;
    let (have, want) = (node.results.len(), returns.len());
    let lists = returns.iter().filter(|r| matches!(r.ty, ArgType::Tensors | ArgType::OptTensors)).count();
    if lists > 0 {
        if have + lists < want {
            return invalid(format!("expected at least {} results, got {have}", want - lists));
        }
    } else if have != want {
        return invalid(format!("expected {want} results, got {have}"));
    }
    Ok(())
}
