//! Programs: graphs with a signature and weights.

use crate::{Arg, Expr, Graph, GraphId, IdArena, Limits, Symbol, ValueId};
use restride_tensor::{Bytes, DType, Layout, Scalar};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How far a program has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stage {
    /// As exported: writes and aliases.
    Imported,
    /// Pure: no operator writes, no value's memory is another's.
    Functional,
}

/// What a graph input is.
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
    /// What the user gives, by the name of its value. Tensors and symbolic numbers.
    User(Arc<str>),
    /// What the user gives and was fixed at export: a value of this has no use in the graph.
    Fixed {
        /// Name.
        name: Arc<str>,
        /// The only accepted value.
        value: Arg<ValueId, Expr>,
    },
    /// The whole storage, flat, under other inputs that share it (or reach beyond their own elements): positions
    /// among the inputs. Their values in the graph are read from this one; a run binds it to that memory.
    Storage(Vec<usize>),
    /// Custom objects and tokens: carried only.
    Opaque(Arc<str>),
}

/// A graph input of the main graph.
#[derive(Clone, PartialEq, Debug)]
pub struct InputSpec {
    /// The value.
    pub value: ValueId,
    /// What it is.
    pub kind: InputKind,
}

/// What a graph output is.
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
    /// Memory that user outputs are views of (see [`OutputAlias`]); not returned by itself.
    Base,
    /// The tensor object of the input at this position becomes what `OutputSpec::alias` says (`t_` on an input). The
    /// graph output is `None`.
    Metadata(usize),
}

/// Whose memory a user output is a view of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliasRoot {
    /// An input's storage, by its position among the inputs.
    Input(usize),
    /// A fresh storage whose content is the output at this position, of kind `Base`.
    Base(usize),
}

/// How a user output of a functional program lies in memory that the caller sees: eager's aliasing.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputAlias {
    /// Whose memory.
    pub root: AliasRoot,
    /// Layout on that storage, in elements of the output's type.
    pub layout: Layout<Expr>,
    /// Element type of the output.
    pub dtype: DType,
}

/// A graph output of the main graph, beside `Graph::outputs` at the same position.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputSpec {
    /// What it is.
    pub kind: OutputKind,
    /// Where it lies, in a functional program; what the graph computes for it is the same elements.
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
    /// Whether it asks for gradients.
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
    /// Bytes of each storage that has weights. The weights of a text have no memory yet: then the bytes that they reach.
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

/// A condition on the inputs that the exporter relied on, checked before a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Guard {
    /// A bool expression over symbols.
    pub condition: Expr,
    /// As the file says it.
    pub text: Arc<str>,
}

/// A program: the main graph and the bodies of its higher-order operators, with what they stand on.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// Name, for messages and reports.
    pub name: Arc<str>,
    /// How far it has come.
    pub stage: Stage,
    /// All graphs.
    pub graphs: IdArena<GraphId, Graph>,
    /// The graph that a run starts.
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
    /// Names of the user's positional arguments, where the file says them.
    pub forward_args: Vec<Arc<str>>,
    /// What was noticed at import (a device mapped to the CPU, a guard not understood).
    pub notes: Vec<String>,
    /// Sample inputs stored with the program, one per user input in order (fixed ones included).
    pub sample_inputs: Option<Arc<SampleInputs>>,
    /// What it may ask for. Not in files: who opens a program says so.
    pub limits: Limits,
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
    /// `None` or something that is no tensor and no number.
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
    /// Name of a weight input, if it is one.
    pub fn weight_name(&self, input: usize) -> Option<&Arc<str>> {
        match &self.signature.inputs[input].kind {
            InputKind::Parameter(n) | InputKind::Constant(n) | InputKind::Buffer { name: n, .. } => Some(n),
            _ => None,
        }
    }
}
