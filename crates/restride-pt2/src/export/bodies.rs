//! Writes higher-order calls and their bodies. A body that needs a number of the graph outside, which none of its own tensors has
//! as a size, gets it as one more operand: an integer as it is, a float in a tensor, since PyTorch gives bodies no floats.

use super::graph::{ExportContext, GraphWriter, as_tensor};
use crate::model::{self, Argument, GraphArgument, NamedArgument, TensorArgument};
use restride_ir::{Arg, DType, Error, Expr, Graph, GraphId, Hop, Id, Node, Result, Symbol, TensorType};
use std::sync::Arc;

/// A number that a body needs of the graph outside.
pub(super) struct AskedNumber {
    symbol: Symbol,
    /// The body's input.
    input: Arc<str>,
}

/// The tensor in which a body gets a float.
fn float_tensor() -> TensorType {
    TensorType::contiguous(DType::F64, &[])
}

impl<'a> GraphWriter<'a> {
    /// The arguments of a higher-order call, with its bodies.
    pub(super) fn hop_inputs(&mut self, node: &Node) -> Result<Vec<NamedArgument>> {
        let mut bodies = Vec::new();
        for graph in node.bodies() {
            let mut body = self.body(graph)?;
            // The condition of a loop returns a bare tensor, not a tuple.
            body.out.is_single_tensor_return = node.op.def().hop == Some(Hop::WhileLoop) && bodies.is_empty();
            bodies.push(body);
        }
        let asked = given_to_all(&mut bodies)?;
        let mut bodies = bodies.into_iter();
        let mut out = Vec::new();
        for arg in &node.args {
            let written = match arg {
                Arg::Graph(g) => as_graph(&self.ctx.program.graphs[*g], *g, bodies.next().expect("one a graph").out),
                other => self.argument(other, None)?,
            };
            out.push(NamedArgument::positional("", written));
        }
        if !asked.is_empty() {
            let mut more = Vec::with_capacity(asked.len());
            for s in asked {
                more.push(TensorArgument { name: self.given(s)?.to_string() });
            }
            match out.last_mut().map(|a| &mut a.arg) {
                Some(Argument::AsTensors(operands)) => operands.append(&mut more),
                Some(none @ Argument::AsInts(_)) => *none = Argument::AsTensors(more),
                _ => return Err(Error::unsupported(format!("a body of {} that reads a number from outside", node.op))),
            }
        }
        if matches!(node.op.def().hop, Some(Hop::WhileLoop | Hop::Scan)) {
            let written: Vec<String> = node
                .bodies()
                .next_back()
                .map(|b| self.ctx.effects.graph(b).writes.iter().map(|i| i.to_string()).collect())
                .unwrap_or_default();
            if !written.is_empty() {
                out.push(NamedArgument::keyword("mutated_arg_indices", Argument::AsString(written.join(","))));
            }
        }
        Ok(out)
    }

    /// Writes a body.
    fn body(&self, id: GraphId) -> Result<GraphWriter<'a>> {
        let ctx: &'a ExportContext<'a> = self.ctx;
        let source = &ctx.program.graphs[id];
        let mut inner = GraphWriter::new(ctx, source);
        inner.asked = Some(Vec::new());
        inner.learnt.extend(self.learnt.iter().cloned());
        for &v in &source.inputs {
            let arg = inner.declare(v, false)?;
            inner.out.inputs.push(arg);
        }
        for (node, n) in source.ordered() {
            inner.node(n).map_err(|e| e.at(source, node))?;
        }
        inner.origin = Arc::default();
        for arg in &source.outputs {
            let arg = inner.argument(arg, None)?;
            inner.out.outputs.push(arg);
        }
        Ok(inner)
    }

    /// The name in a body of a number that the graph outside has.
    pub(super) fn ask(&mut self, s: &Symbol) -> Result<Option<Arc<str>>> {
        if self.asked.is_none() {
            return Ok(None);
        }
        let number = Expr::Sym(s.clone());
        let input = self.asked_input(s)?;
        if !s.is_float() {
            return Ok(Some(input));
        }
        let name = self.fresh(s.name());
        let output = self.declare_number(&name, &number)?;
        let inputs = vec![NamedArgument::positional("self", as_tensor(&input))];
        self.push("torch.ops.aten.item.default".into(), inputs, vec![output], false);
        Ok(Some(name))
    }

    /// Declares the input in which a body gets a number of the graph outside.
    fn asked_input(&mut self, s: &Symbol) -> Result<Arc<str>> {
        let input = self.fresh(s.name());
        if s.is_float() {
            self.declare_tensor(&input, &float_tensor(), false)?;
        } else {
            self.declare_number(&input, &Expr::Sym(s.clone()))?;
        }
        let asked = self.asked.as_mut().ok_or_else(|| Error::invalid("a graph that is no body takes no numbers"))?;
        asked.push(AskedNumber { symbol: s.clone(), input: input.clone() });
        Ok(input)
    }

    /// The operand that gives a number to bodies.
    fn given(&mut self, s: Symbol) -> Result<Arc<str>> {
        if !s.is_float() {
            return self.number(&Expr::Sym(s));
        }
        let hint = format!("{}_tensor", s.name());
        let args = [Arg::Scalar(Expr::Sym(s)), Arg::DType(DType::F64)];
        self.call("aten.scalar_tensor.default", &args, &hint, &float_tensor())
    }
}

/// Gives each body, after its own inputs, the numbers that any of them needs of the graph outside, as PyTorch's exporter does;
/// returns them in order.
fn given_to_all(bodies: &mut [GraphWriter<'_>]) -> Result<Vec<Symbol>> {
    let mut all: Vec<Symbol> = Vec::new();
    for asked in bodies.iter().flat_map(|b| b.asked.iter().flatten()) {
        if !all.contains(&asked.symbol) {
            all.push(asked.symbol.clone());
        }
    }
    for body in bodies {
        for s in &all {
            let has = body.asked.iter().flatten().find(|asked| asked.symbol == *s).map(|asked| asked.input.clone());
            let name = match has {
                Some(name) => name,
                None => body.asked_input(s)?,
            };
            body.out.inputs.push(match s.is_float() {
                true => as_tensor(&name),
                false => Argument::number(&*name, &Expr::Sym(s.clone())),
            });
        }
    }
    Ok(all)
}

/// A written body as an argument.
fn as_graph(source: &Graph, id: GraphId, graph: model::FileGraph) -> Argument {
    let name = match source.name.is_empty() {
        true => format!("graph_{}", id.index()),
        false => source.name.to_string(),
    };
    Argument::AsGraph(GraphArgument { name, graph: Box::new(graph) })
}
