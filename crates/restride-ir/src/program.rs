//! Programs: graphs with a signature and weights.

use crate::{Arg, Expr, Graph, GraphId, IdArena, Limits, Symbol, ValueId};
use restride_tensor::{Bytes, DType, Layout, Scalar};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Stage of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// As exported: writes and aliases.
    Imported,
    /// Functional: no operator writes, and no two values alias.
    Functional,
}

/// Kind of a graph input.
#[derive(Clone, PartialEq, Debug)]
pub enum InputKind {
    /// A parameter, by its name in the state dict.
    Parameter(Arc<str>),
    /// A buffer, by its name.
    Buffer {
        /// Name.
        name: Arc<str>,
        /// Kept in the state dict.
        persistent: bool,
    },
    /// A tensor constant, by its name.
    Constant(Arc<str>),
    /// A user input, by its name: a tensor or a symbolic number.
    User(Arc<str>),
    /// A user input that export fixed; the graph does not read it.
    Fixed {
        /// Name.
        name: Arc<str>,
        /// The only accepted value.
        value: Arg<ValueId, Expr>,
    },
    /// The whole flat storage under inputs that share it, or that reach beyond their own elements. `members` are positions
    /// among the inputs, whose values the graph reads from this one.
    Storage(Vec<usize>),
    /// A custom object or token, which restride only passes on.
    Opaque(Arc<str>),
}

/// A graph input of the main graph.
#[derive(Clone, PartialEq, Debug)]
pub struct InputSpec {
    /// The value.
    pub value: ValueId,
    /// Kind.
    pub kind: InputKind,
}

/// Kind of a graph output.
#[derive(Clone, PartialEq, Debug)]
pub enum OutputKind {
    /// A user output.
    User,
    /// The loss of a joint program: also a user output.
    Loss,
    /// The new content of the input at this position (a parameter, buffer, user input or storage).
    Mutation(usize),
    /// The gradient of the input at this position.
    Gradient(usize),
    /// A token.
    Token,
    /// Storage of user outputs (see [`OutputAlias`]); not returned by itself.
    Base,
    /// The input at this position becomes the view that `OutputSpec::alias` declares (`t_` on an input). The graph output
    /// is `None`.
    Metadata(usize),
}

/// Storage of a user output that is a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliasRoot {
    /// An input's storage, by its position among the inputs.
    Input(usize),
    /// A fresh storage whose content is the output at this position, of kind `Base`.
    Base(usize),
}

/// Aliasing of a user output of a functional program, as in eager PyTorch.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputAlias {
    /// Storage.
    pub root: AliasRoot,
    /// Layout on that storage, in elements of the output's type.
    pub layout: Layout<Expr>,
    /// Element type of the output.
    pub dtype: DType,
}

/// A graph output of the main graph, beside `Graph::outputs` at the same position.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputSpec {
    /// Kind.
    pub kind: OutputKind,
    /// Aliasing, in a functional program. The graph computes the same elements beside it.
    pub alias: Option<OutputAlias>,
}

/// Inputs and outputs of the main graph, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Signature {
    /// One per graph input.
    pub inputs: Vec<InputSpec>,
    /// One per graph output.
    pub outputs: Vec<OutputSpec>,
}

/// A weight: a layout on one of the stored storages.
#[derive(Clone, PartialEq, Debug)]
pub struct Weight {
    /// Position among the storages; equal for weights that share memory.
    pub storage: usize,
    /// Element type.
    pub dtype: DType,
    /// Sizes, strides, offset.
    pub layout: Layout,
    /// Whether it is an `nn.Parameter`.
    pub is_param: bool,
    /// `requires_grad`.
    pub requires_grad: bool,
}

/// Parameters, buffers and constants with their memory.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    /// Storages.
    pub storages: Vec<Bytes>,
    /// Weights by name. Names are unique over parameters, buffers and constants.
    pub tensors: BTreeMap<Arc<str>, Weight>,
}

impl Weights {
    /// Bytes of each storage with weights. Weights of a text have no memory; then the bytes that their layouts reach.
    pub fn storage_bytes(&self) -> BTreeMap<usize, i64> {
        let mut bytes: BTreeMap<usize, i64> = BTreeMap::new();
        for w in self.tensors.values() {
            let reached = || w.layout.cell_range().end.saturating_mul(w.dtype.size() as i64);
            let own = self.storages.get(w.storage).map_or_else(reached, |memory| memory.len() as i64);
            let most = bytes.entry(w.storage).or_default();
            *most = own.max(*most);
        }
        bytes
    }
}

impl PartialEq for Weights {
    fn eq(&self, other: &Self) -> bool {
        self.tensors == other.tensors
            && self.storages.len() == other.storages.len()
            && self.storages.iter().zip(&other.storages).all(|(a, b)| a[..] == b[..])
    }
}

/// A guard: a condition on the inputs that the exporter relied on, checked before a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Guard {
    /// A bool expression over symbols.
    pub condition: Expr,
    /// Text of the file.
    pub text: Arc<str>,
}

/// A program: the main graph, the bodies of its higher-order operators, signature, symbols and weights.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// Name, for messages and reports.
    pub name: Arc<str>,
    /// Stage.
    pub stage: Stage,
    /// All graphs.
    pub graphs: IdArena<GraphId, Graph>,
    /// The main graph.
    pub main: GraphId,
    /// The main graph's inputs and outputs.
    pub signature: Signature,
    /// Symbols with their ranges, by name.
    pub symbols: BTreeMap<Arc<str>, Symbol>,
    /// Conditions on the inputs.
    pub guards: Vec<Guard>,
    /// Ranges of expressions over the symbols, as (expression, min, max).
    pub ranges: Vec<(Expr, Option<i64>, Option<i64>)>,
    /// Weights, shared between the stages of a program.
    pub weights: Arc<Weights>,
    /// `(in_spec, out_spec)`: pytree JSON of the user's arguments and results.
    pub pytree: Option<(Arc<str>, Arc<str>)>,
    /// Names of the user's positional arguments, if the file has them.
    pub forward_args: Vec<Arc<str>>,
    /// Warnings: of the import (a device mapped to the CPU, a guard that was not understood), and why sizes were fixed.
    pub notes: Vec<String>,
    /// Sample inputs stored with the program, one per user input in order (fixed ones included).
    pub sample_inputs: Option<Arc<SampleInputs>>,
    /// Limits of the program, set by who opens it; no file stores them.
    pub limits: Limits,
    /// Whether the program is for inference alone: PyTorch need not find the gradients in a file of it.
    pub inference: bool,
}

/// Inputs stored with a program: tensors over shared storages.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SampleInputs {
    /// Storages.
    pub storages: Vec<Vec<u8>>,
    /// One per user input.
    pub inputs: Vec<SampleInput>,
}

/// One stored input.
#[derive(Clone, PartialEq, Debug)]
pub enum SampleInput {
    /// A tensor: storage, element type, layout.
    Tensor {
        /// Position among the storages.
        storage: usize,
        /// Element type.
        dtype: DType,
        /// Layout on it.
        layout: Layout,
    },
    /// A number.
    Scalar(Scalar),
    /// A string.
    Str(Arc<str>),
    /// `None`, or a value that is neither tensor nor number.
    None,
}

impl Program {
    /// An empty program with an empty main graph.
    pub fn new(name: impl Into<Arc<str>>, stage: Stage) -> Program {
        let mut graphs = IdArena::new();
        let main = graphs.push(Graph::new());
        Program {
            name: name.into(),
            stage,
            graphs,
            main,
            signature: Signature::default(),
            symbols: BTreeMap::new(),
            guards: Vec::new(),
            ranges: Vec::new(),
            weights: Arc::default(),
            pytree: None,
            forward_args: Vec::new(),
            notes: Vec::new(),
            sample_inputs: None,
            limits: Limits::default(),
            inference: false,
        }
    }
    /// A copy in which some graphs are empty: others will be put in their place.
    pub fn copy_without(&self, emptied: impl Fn(GraphId) -> bool) -> Program {
        let mut graphs = IdArena::new();
        for (id, graph) in self.graphs.iter() {
            graphs.push(if emptied(id) { Graph::new() } else { graph.clone() });
        }
        Program {
            name: self.name.clone(),
            stage: self.stage,
            graphs,
            main: self.main,
            signature: self.signature.clone(),
            symbols: self.symbols.clone(),
            guards: self.guards.clone(),
            ranges: self.ranges.clone(),
            weights: self.weights.clone(),
            pytree: self.pytree.clone(),
            forward_args: self.forward_args.clone(),
            notes: self.notes.clone(),
            sample_inputs: self.sample_inputs.clone(),
            limits: self.limits,
            inference: self.inference,
        }
    }
    /// The main graph.
    pub fn graph(&self) -> &Graph {
        &self.graphs[self.main]
    }
    /// The main graph, for building.
    pub fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graphs[self.main]
    }
    /// How many arguments of calls each subgraph is.
    pub fn call_counts(&self) -> BTreeMap<GraphId, usize> {
        let mut calls = BTreeMap::new();
        for body in self.graphs.iter().flat_map(|(_, g)| g.ordered()).flat_map(|(_, n)| n.bodies()) {
            *calls.entry(body).or_default() += 1;
        }
        calls
    }
    /// Name of a weight input, if it is one.
    pub fn weight_name(&self, input: usize) -> Option<&Arc<str>> {
        match &self.signature.inputs[input].kind {
            InputKind::Parameter(n) | InputKind::Constant(n) | InputKind::Buffer { name: n, .. } => Some(n),
            _ => None,
        }
    }
}
