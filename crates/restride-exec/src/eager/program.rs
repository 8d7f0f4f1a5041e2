//! Programs run call by call on the tape, as eager PyTorch runs the Python that they were exported from.

use super::call::{EagerValue, run};
use super::control_flow::TapeBodies;
use super::mode::set_grad_enabled;
use super::tensor::{Tensor, at};
use crate::control_flow::run_call;
use crate::interp::numbers_of;
use crate::symbols::learn_number;
use restride_ir::{
    Arg, Binding, Error, Expr, Graph, GraphId, Id, Limits, Node, Program, Result, Scalar, Type, ValueId,
};

/// Runs the main graph of a program on one value per input of the graph, which it may write. Gives its outputs, those that
/// are not the user's included. Control flow runs the bodies that are taken.
///
/// # Errors
/// Inputs that do not fit the program, and whatever its calls say.
pub fn run_program(program: &Program, inputs: &[EagerValue]) -> Result<Vec<EagerValue>> {
    run_graph(program, program.main, inputs, Binding::new(), true)
}

/// Runs a graph. `grad` says whether calls are recorded that are not under `no_grad` themselves.
fn run_graph(
    program: &Program,
    id: GraphId,
    inputs: &[EagerValue],
    symbols: Binding,
    grad: bool,
) -> Result<Vec<EagerValue>> {
    let graph = &program.graphs[id];
    if graph.inputs.len() != inputs.len() {
        let (want, have) = (graph.inputs.len(), inputs.len());
        return Err(Error::invalid(format!("a graph of {want} inputs is given {have}")));
    }
    let mut frame = ProgramFrame { program, graph, values: vec![None; graph.values.len()], symbols, grad };
    for (v, given) in graph.inputs.iter().zip(inputs) {
        frame.set(*v, given.clone())?;
    }
    for &id in &graph.order {
        let node = &graph.nodes[id];
        frame.node(node).map_err(|e| Error { node: None, ..e }.at(graph, id))?;
    }
    graph
        .outputs
        .iter()
        .map(|a| {
            Ok(match frame.arg(a)? {
                Arg::Value(Some(t)) => EagerValue::Tensor(t),
                Arg::Scalar(s) => EagerValue::Scalar(s),
                Arg::Str(s) => EagerValue::Str(s),
                Arg::None | Arg::Value(None) => EagerValue::None,
                _ => return Err(Error::invalid("a graph output that is no value and no constant")),
            })
        })
        .collect()
}

/// A run of a graph.
pub(super) struct ProgramFrame<'g> {
    program: &'g Program,
    graph: &'g Graph,
    values: Vec<Option<EagerValue>>,
    symbols: Binding,
    grad: bool,
}

impl ProgramFrame<'_> {
    /// Runs a body of a higher-order call. Its symbols end with it.
    pub fn body(&self, node: &Node, graph: GraphId, inputs: &[EagerValue]) -> Result<Vec<EagerValue>> {
        run_graph(self.program, graph, inputs, self.symbols.clone(), self.grad && !node.origin.no_grad)
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        let grad = self.grad && !node.origin.no_grad;
        let made = match (numbers_of(self.graph, &self.symbols, node), node.op.def().hop) {
            (Some(numbers), _) => numbers.into_iter().map(EagerValue::Scalar).collect(),
            (None, Some(hop)) => {
                let _mode = set_grad_enabled(grad);
                run_call(&mut TapeBodies { frame: self, node }, node, hop).map_err(|e| at(node.op, e))?
            }
            (None, None) => {
                let mut args = Vec::with_capacity(node.args.len());
                for a in &node.args {
                    args.push(match self.arg(a)? {
                        Arg::Value(None) => Arg::None,
                        other => other.try_map(
                            |t| t.clone().ok_or_else(|| Error::invalid("nothing in a list of tensors")),
                            |s| Ok::<_, Error>(*s),
                        )?,
                    });
                }
                let _mode = set_grad_enabled(grad);
                run(node.op, &args).map_err(|e| at(node.op, e))?
            }
        };
        if made.len() != node.results.len() {
            let (have, want) = (made.len(), node.results.len());
            return Err(Error::invalid(format!("{} gives {have} results, the program has {want} for it", node.op)));
        }
        node.results.iter().zip(made).try_for_each(|(v, value)| self.set(*v, value))
    }

    /// An argument with values for names: nothing is a value too.
    fn arg(&self, a: &Arg) -> Result<Arg<Option<Tensor>, Scalar>> {
        if let Arg::Value(v) = a {
            return Ok(match self.value(*v)? {
                EagerValue::Tensor(t) => Arg::Value(Some(t)),
                EagerValue::Scalar(s) => Arg::Scalar(s),
                EagerValue::Str(s) => Arg::Str(s),
                EagerValue::None => Arg::None,
            });
        }
        a.try_map(|v| Ok(self.value(*v)?.tensor().cloned()), |e| self.number(e))
    }

    pub fn limits(&self) -> Limits {
        self.program.limits
    }

    pub fn number(&self, e: &Expr) -> Result<Scalar> {
        e.eval(&self.symbols).map_err(|why| Error::invalid(format!("{e}: {why}")))
    }

    pub fn value(&self, v: ValueId) -> Result<EagerValue> {
        let found = self.values.get(v.index()).cloned().flatten();
        found.ok_or_else(|| Error::invalid(format!("%{} is used before it has a value", self.graph.values[v].name)))
    }

    fn set(&mut self, v: ValueId, value: EagerValue) -> Result<()> {
        let pairs: Vec<(&Expr, Scalar)> = match (&self.graph.values[v].ty, &value) {
            (Type::Tensor(ty), EagerValue::Tensor(t)) => {
                ty.sizes().iter().zip(t.sizes().into_iter().map(Scalar::Int)).collect()
            }
            (Type::Scalar(e), EagerValue::Scalar(s)) => vec![(e, *s)],
            _ => Vec::new(),
        };
        for (expr, n) in pairs {
            learn_number(expr, n, &mut self.symbols)
                .map_err(|wrong| Error::invalid(format!("%{} {wrong}", self.graph.values[v].name)))?;
        }
        if let Some(place) = self.values.get_mut(v.index()) {
            *place = Some(value);
        }
        Ok(())
    }
}
