//! Nested graphs: bodies of higher-order operators, and regions under another autograd or autocast mode.

use super::damaged;
use super::nodes::{FileWide, GraphImporter};
use super::origins::short_target;
use crate::model::{self, Argument};
use restride_ir::{Arg, Expr, Graph, GraphId, Origin, Result, TensorType, Type, beyond};
use std::collections::BTreeMap;
use std::sync::Arc;

impl GraphImporter<'_> {
    /// Reads a subgraph of a higher-order operator.
    pub fn subgraph(&mut self, name: &str, source: &model::FileGraph) -> Result<GraphId> {
        let mut graph = Graph { name: self.file.graph_name(name), ..Graph::new() };
        let mut inner = self.within(&mut graph)?;
        inner.read(source)?;
        let outputs = inner.outputs(&source.outputs)?;
        let left = inner.leave();
        graph.outputs = outputs;
        self.come_back(left);
        Ok(self.push_graph(graph))
    }

    /// Bounds the recursion, which follows the nesting of graphs.
    fn check_depth(&self) -> Result<()> {
        let most = self.program.limits.depth;
        if self.depth as u64 >= most {
            return Err(beyond(format!("graphs nested {} deep", self.depth + 1), "depth", most));
        }
        Ok(())
    }

    /// An importer into a nested graph. It holds the shared state until it [leaves](Self::leave).
    pub(super) fn within<'b>(&'b mut self, graph: &'b mut Graph) -> Result<GraphImporter<'b>> {
        self.check_depth()?;
        let mut inner = GraphImporter::new(self.program, graph, self.lookup);
        inner.depth = self.depth + 1;
        inner.no_grad = self.no_grad;
        inner.autocast = self.autocast;
        inner.keys = self.keys;
        inner.file = std::mem::take(&mut self.file);
        Ok(inner)
    }

    /// The shared state of a nested importer, for [`Self::come_back`].
    pub(super) fn leave(self) -> (u32, FileWide) {
        (self.keys, self.file)
    }

    pub(super) fn come_back(&mut self, (keys, file): (u32, FileWide)) {
        (self.keys, self.file) = (keys, file);
    }

    /// Adds a finished subgraph.
    pub(super) fn push_graph(&mut self, graph: Graph) -> GraphId {
        self.program.graphs.push(graph)
    }

    /// Makes a graph return each result twice, as separate tensors: `(a, b)` becomes `(a, b, copies of a and b)`.
    pub(super) fn give_twice(&mut self, id: GraphId, at: &Arc<Origin>) -> Result<()> {
        let clone = self.operator("aten.clone.default")?;
        let graph = &mut self.program.graphs[id];
        let results = graph.outputs.clone();
        for k in 0..2 * results.len() {
            let Arg::Value(v) = results[k % results.len()] else {
                return Err(damaged("a combine function returns something other than tensors"));
            };
            let Some(ty) = graph.values[v].ty.tensor().cloned() else {
                return Err(damaged("a combine function returns something other than tensors"));
            };
            let mut args = vec![Arg::Value(v), Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous)];
            clone.fill_defaults_or_none(&mut args);
            let own = TensorType::contiguous(ty.dtype, &ty.layout.sizes);
            let id = graph.add_node(clone, args, [(format!("given_{k}").into(), Type::Tensor(own))], at.clone());
            let made = Arg::Value(graph.nodes[id].results[0]);
            if k < results.len() { graph.outputs[k] = made } else { graph.outputs.push(made) }
        }
        Ok(())
    }

    /// Inlines a region under another mode. `at` is the position of its graph among the arguments.
    pub(super) fn inline(&mut self, source: &model::FileGraph, node: &model::FileNode, at: usize) -> Result<()> {
        let bad = |why: &str| damaged(format!("{}: {why}", short_target(&node.target)));
        let Some(Argument::AsGraph(body)) = node.inputs.get(at).map(|i| &i.arg) else { return Err(bad("no graph")) };
        self.check_depth()?;
        let flag = |i: usize| matches!(node.inputs.get(i).map(|i| &i.arg), Some(Argument::AsBool(true)));
        let (old_grad, old_cast) = (self.no_grad, self.autocast);
        if at == 1 {
            self.no_grad = !flag(0);
        } else {
            self.autocast = match node.inputs.get(1).map(|i| &i.arg) {
                _ if !flag(2) => None,
                Some(Argument::AsScalarType(s)) => Some(crate::dtype::computed(s.dtype()?)?),
                _ => Some(restride_ir::DType::BF16),
            };
        }
        let operands = &node.inputs[at + 1..];
        if operands.len() != body.graph.inputs.len() {
            return Err(bad("the numbers of its operands and of its graph's inputs differ"));
        }
        let mut inner = BTreeMap::new();
        for (operand, input) in operands.iter().zip(&body.graph.inputs) {
            if let (Some(outer), Some(inside)) = (operand.arg.value_name(), input.value_name()) {
                inner.insert(inside.to_string(), self.value(outer)?);
            }
        }
        let outer = std::mem::replace(&mut self.names, inner);
        self.depth += 1;
        let done = self.nodes(&body.graph, &body.graph.nodes).and_then(|()| self.outputs(&body.graph.outputs));
        self.depth -= 1;
        let inner = std::mem::replace(&mut self.names, outer);
        (self.no_grad, self.autocast) = (old_grad, old_cast);
        let results = done?;
        let mut names = Vec::new();
        for out in &node.outputs {
            match out {
                Argument::AsTensors(list) => names.extend(list.iter().map(|t| Some(t.name.clone()))),
                other => names.push(self.named_type(source, other)?.map(|n| n.0)),
            }
        }
        if names.len() != results.len() {
            return Err(bad("the numbers of its results and of its graph's outputs differ"));
        }
        for (name, result) in names.into_iter().zip(results) {
            let number = |e: &Expr| inner.values().find(|v| self.graph.values[**v].ty == Type::Scalar(e.clone()));
            let made = match &result {
                Arg::Value(v) => Some(*v),
                Arg::Scalar(e) => number(e).copied(),
                _ => None,
            };
            if let (Some(name), Some(v)) = (name, made) {
                self.names.insert(name, v);
            }
        }
        Ok(())
    }
}
