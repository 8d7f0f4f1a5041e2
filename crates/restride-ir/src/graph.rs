//! Graphs of operator calls in SSA form.

use crate::arena::id_type;
use crate::{Arg, ArgsValues, IdArena, Op, TensorType, Type};
use smallvec::SmallVec;
use std::sync::Arc;

id_type!(
    /// An SSA value: a node's result or a graph input.
    ValueId,
    "%"
);
id_type!(
    /// An operator call.
    NodeId,
    "node"
);
id_type!(
    /// A graph of a program: the main one, or the body of a higher-order operator.
    GraphId,
    "graph"
);

/// An SSA value.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Name in files and text, unique in its graph.
    pub name: Arc<str>,
    /// Type.
    pub ty: Type,
}

/// Source of a node. All nodes that replace one node of the user's program share it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Origin {
    /// Number of the original node in its program: the key of its random draws.
    pub key: u32,
    /// `stack_trace` of the file: Python traceback text.
    pub stack_trace: Option<Arc<str>>,
    /// Module path, as `layers.0.attn`.
    pub module: Option<Arc<str>>,
    /// Inside a `no_grad` region.
    pub no_grad: bool,
    /// Operands and results (in order, repeats included) that a later write without gradient changes. PyTorch has no
    /// gradient if it saved one of them.
    pub overwritten: Option<Arc<[u32]>>,
    /// No node of the user's program reads a result, and the call may fail: it stays for its error.
    pub unread: bool,
}

impl Origin {
    /// The innermost source line, as `file.py:12`.
    pub fn source_line(&self) -> Option<String> {
        let (frame, _) = self.innermost_frame()?;
        let (file, rest) = frame.strip_prefix("File \"")?.split_once('"')?;
        let number: String =
            rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
        let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
        Some(format!("{file}:{number}"))
    }

    /// The text of the innermost source line, as `x = x.relu_()`.
    pub fn source_text(&self) -> Option<&str> {
        self.innermost_frame()?.1
    }

    /// Traceback lines read `  File "PATH", line N, in NAME`, each with the source text on the next line. The last frame is the
    /// innermost one.
    fn innermost_frame(&self) -> Option<(&str, Option<&str>)> {
        let mut text = None;
        for line in self.stack_trace.as_ref()?.lines().rev().map(str::trim) {
            if line.starts_with("File \"") {
                return Some((line, text));
            }
            // Python 3.11 underlines the part that raised.
            if line.chars().any(|c| !matches!(c, '^' | '~' | ' ')) {
                text = Some(line);
            }
        }
        None
    }
}

/// One operator call: arguments in schema order with defaults filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Operator.
    pub op: Op,
    /// Arguments in schema order.
    pub args: Vec<Arg>,
    /// Results; a list result is spread over them.
    pub results: SmallVec<[ValueId; 1]>,
    /// Source.
    pub origin: Arc<Origin>,
}

impl Node {
    /// Operands in order, repeats included.
    pub fn operands(&self) -> ArgsValues<'_> {
        ArgsValues::of(&self.args)
    }
    /// Subgraphs among the arguments, in order.
    pub fn bodies(&self) -> impl DoubleEndedIterator<Item = GraphId> + '_ {
        self.args.iter().filter_map(Arg::graph)
    }
}

/// Nodes and values in append-only arenas; `order` is the execution order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    /// Name of a subgraph in files and text, unique in its program; empty for the main graph and for nameless subgraphs.
    pub name: Arc<str>,
    /// All nodes, those removed from `order` included.
    pub nodes: IdArena<NodeId, Node>,
    /// All values.
    pub values: IdArena<ValueId, Value>,
    /// The nodes that run, in order.
    pub order: Vec<NodeId>,
    /// Inputs.
    pub inputs: Vec<ValueId>,
    /// Outputs: values or constants.
    pub outputs: Vec<Arg>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }
    /// Reserves capacity for more nodes and values.
    pub fn reserve(&mut self, nodes: usize, values: usize) {
        self.nodes.reserve(nodes);
        self.order.reserve(nodes);
        self.values.reserve(values);
    }
    /// Adds a value; the caller keeps names unique.
    pub fn add_value(&mut self, name: impl Into<Arc<str>>, ty: Type) -> ValueId {
        self.values.push(Value { name: name.into(), ty })
    }
    /// Adds a graph input.
    pub fn add_input(&mut self, name: impl Into<Arc<str>>, ty: Type) -> ValueId {
        let v = self.add_value(name, ty);
        self.inputs.push(v);
        v
    }
    /// Adds a node at the end, with new results of the given names and types.
    pub fn add_node(
        &mut self,
        op: Op,
        args: Vec<Arg>,
        results: impl IntoIterator<Item = (Arc<str>, Type)>,
        origin: Arc<Origin>,
    ) -> NodeId {
        let results = results.into_iter().map(|(name, ty)| self.add_value(name, ty)).collect();
        let id = self.nodes.push(Node { op, args, results, origin });
        self.order.push(id);
        id
    }
    /// The nodes that run, in order.
    pub fn ordered(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.order.iter().map(|&id| (id, &self.nodes[id]))
    }
    /// The tensor type of a value.
    ///
    /// # Panics
    /// If the value is not a tensor. The verifier checks operands against schemas.
    pub fn tensor(&self, v: ValueId) -> &TensorType {
        self.values[v].ty.tensor().expect("the value is a tensor")
    }
    /// Returned values in order, repeats included.
    pub fn output_values(&self) -> ArgsValues<'_> {
        ArgsValues::of(&self.outputs)
    }
}
