//! Fused programs: the same calls of the same values as before, in bodies.
//!
//! Both programs are walked value by value. A value's name is the call that makes it, with the names of its operands, its numbers and
//! its type; a fused node is the calls of its body. Programs mean the same if their outputs and effects have the same names.

use crate::{Fault, FaultKind};
use foldhash::fast::FixedState;
use restride_ir::{Arg, Expr, Graph, GraphId, Node, Op, Program, Table, Type, ValueId, fused_body};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Checks a program with fused nodes against the one that it was made from.
///
/// # Errors
/// The outputs and effects that differ.
pub fn fusion(before: &Program, after: &Program) -> Result<(), Vec<Fault>> {
    let mut names = CallNames::default();
    names.terms.reserve(before.graphs.get(before.main).map_or(0, |g| g.order.len()));
    let was = names.graph(before, before.main);
    let is = names.graph(after, after.main);
    let fault = |what: String| Fault::new(FaultKind::Meaning, Some(after.main), what);
    let (was, is) = match (was, is) {
        (Ok(was), Ok(is)) => (was, is),
        (Err(what), _) | (_, Err(what)) => return Err(vec![fault(what)]),
    };
    let mut faults = Vec::new();
    if was.outputs.len() != is.outputs.len() || was.inputs != is.inputs {
        faults.push(fault("the fused program has other inputs or outputs".into()));
    }
    for (k, (a, b)) in was.outputs.iter().zip(&is.outputs).enumerate() {
        if a != b {
            faults.push(fault(format!("output {k} of the fused program is computed by other calls")));
        }
    }
    if was.effects != is.effects {
        faults.push(fault("the fused program has other effects".into()));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// Number of a name.
type CallName = u32;

/// The names of a graph's values so far.
type KnownNames = Table<ValueId, Option<CallName>>;

#[derive(PartialEq, Eq, Hash)]
enum CallTerm {
    Input(usize, String),
    /// Operator, arguments, key of random draws or effects, types of the results.
    Call(usize, Vec<ArgWord>, Option<u32>, SmallVec<[ShownType; 1]>),
    Body(Vec<ArgWord>, Vec<CallName>),
}

/// A part of an argument or an output.
#[derive(Clone, PartialEq, Eq, Hash)]
enum ArgWord {
    Value(CallName),
    Int(i64),
    /// What is no tensor and no integer.
    Text(String),
    None,
    /// Around the members of a list.
    Open,
    Close,
}

/// The type of a result.
#[derive(PartialEq, Eq, Hash)]
enum ShownType {
    Known(restride_ir::DType, Vec<i64>),
    Text(String),
}

impl ShownType {
    fn of(ty: &Type) -> ShownType {
        match ty {
            Type::Tensor(t) => match t.known() {
                Some(m) => ShownType::Known(m.dtype, m.layout.sizes.iter().chain(&m.layout.strides).copied().collect()),
                None => ShownType::Text(t.to_string()),
            },
            other => ShownType::Text(other.to_string()),
        }
    }
}

/// A graph by the names of what it returns.
struct NamedGraph {
    inputs: Vec<CallName>,
    outputs: Vec<ArgWord>,
    effects: Vec<CallName>,
}

#[derive(Default)]
struct CallNames {
    terms: HashMap<CallTerm, CallName, FixedState>,
    /// The next name: a call takes as many as it has results, and one at least.
    next: CallName,
}

impl CallNames {
    /// The first name of a term that has this many.
    fn name(&mut self, term: CallTerm, count: usize) -> CallName {
        match self.terms.entry(term) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                let first = *free.insert(self.next);
                self.next += count as CallName;
                first
            }
        }
    }

    fn graph(&mut self, program: &Program, id: GraphId) -> Result<NamedGraph, String> {
        let graph = program.graphs.get(id).ok_or("a body that is not there")?;
        let given = graph.inputs.iter().enumerate();
        let inputs: Vec<CallName> =
            given.map(|(i, v)| self.name(CallTerm::Input(i, graph.values[*v].ty.to_string()), 1)).collect();
        let mut effects = Vec::new();
        let outputs = self.run(program, graph, &inputs, &mut effects)?;
        Ok(NamedGraph { inputs, outputs, effects })
    }

    /// CallNames of what a graph returns for inputs of these names.
    fn run(
        &mut self,
        program: &Program,
        graph: &Graph,
        inputs: &[CallName],
        effects: &mut Vec<CallName>,
    ) -> Result<Vec<ArgWord>, String> {
        if graph.inputs.len() != inputs.len() {
            return Err(format!("a body of {} inputs is given {}", graph.inputs.len(), inputs.len()));
        }
        let mut known = KnownNames::with_capacity(graph.values.len());
        graph.inputs.iter().zip(inputs).for_each(|(v, name)| known.set(*v, Some(*name)));
        for (_, node) in graph.ordered() {
            if let Some(body) = fused_body(node) {
                let body = program.graphs.get(body).ok_or("a body that is not there")?;
                let operand = |v| known[v].ok_or_else(|| undefined(graph, v));
                let operands = node.operands().map(operand).collect::<Result<Vec<CallName>, String>>()?;
                let made = self.run(program, body, &operands, effects)?;
                if made.len() != node.results.len() {
                    return Err("a fused body returns another number of values".into());
                }
                for (r, made) in node.results.iter().zip(&made) {
                    let ArgWord::Value(name) = made else { return Err("a fused body returns a number".into()) };
                    known.set(*r, Some(*name));
                }
                continue;
            }
            let mut args = Vec::with_capacity(node.args.len());
            node.args.iter().try_for_each(|a| self.words(program, &known, graph, a, &mut args))?;
            self.call(graph, node, args, &mut known, effects);
        }
        let mut outputs = Vec::new();
        graph.outputs.iter().try_for_each(|a| self.words(program, &known, graph, a, &mut outputs))?;
        Ok(outputs)
    }

    fn call(
        &mut self,
        graph: &Graph,
        node: &Node,
        args: Vec<ArgWord>,
        known: &mut KnownNames,
        effects: &mut Vec<CallName>,
    ) {
        let def = node.op.def();
        let keyed = def.random || def.hop.is_some();
        let types = node.results.iter().map(|r| ShownType::of(&graph.values[*r].ty)).collect();
        let term = CallTerm::Call(address(node.op), args, keyed.then_some(node.origin.key), types);
        let first = self.name(term, node.results.len().max(1));
        if def.effectful {
            effects.push(first);
        }
        for (name, r) in (first..).zip(&node.results) {
            known.set(*r, Some(name));
        }
    }

    /// Appends an argument.
    fn words(
        &mut self,
        program: &Program,
        known: &KnownNames,
        graph: &Graph,
        arg: &Arg,
        out: &mut Vec<ArgWord>,
    ) -> Result<(), String> {
        let value = |v: &ValueId| known[*v].map(ArgWord::Value).ok_or_else(|| undefined(graph, *v));
        let number = |e: &Expr| match e {
            Expr::Int(i) => ArgWord::Int(*i),
            other => ArgWord::Text(other.to_string()),
        };
        match arg {
            Arg::None => out.push(ArgWord::None),
            Arg::Value(v) => out.push(value(v)?),
            Arg::Scalar(e) => out.push(number(e)),
            Arg::Values(vs) => {
                out.push(ArgWord::Open);
                for v in vs {
                    out.push(v.as_ref().map_or(Ok(ArgWord::None), value)?);
                }
                out.push(ArgWord::Close);
            }
            Arg::Scalars(es) => {
                out.push(ArgWord::Open);
                out.extend(es.iter().map(number));
                out.push(ArgWord::Close);
            }
            Arg::Graph(body) => {
                // The call tells what the body's inputs are.
                let named = self.graph(program, *body)?;
                out.push(ArgWord::Value(self.name(CallTerm::Body(named.outputs, named.effects), 1)));
            }
            other => out.push(ArgWord::Text(format!("{other:?}"))),
        }
        Ok(())
    }
}

fn undefined(graph: &Graph, v: ValueId) -> String {
    format!("%{} is used before it is made", graph.values[v].name)
}

/// Equal for equal operators.
fn address(op: Op) -> usize {
    std::ptr::from_ref(op.def()).addr()
}
