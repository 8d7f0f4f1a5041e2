use super::Map;
use super::scalar::{ArgumentKind, Float, Layout, MemoryFormat, ScalarType, bound};
use super::signature::{GraphSignature, ModuleCallEntry};
use serde::{Deserialize, Serialize};

/// A device; restride maps all of them to the CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// `cpu`, `cuda`, …
    pub r#type: String,
    /// Which of them.
    #[serde(default)]
    pub index: Option<i64>,
}

/// The value that a symbolic expression had when the program was exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the schema's names say it
pub enum SymExprHint {
    AsInt(i64),
    AsBool(bool),
    AsFloat(Float),
}

/// A symbolic expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SymExpr {
    /// Its `srepr`; see [`crate::expressions`].
    pub expr_str: String,
    /// Its value at export, if it had one.
    #[serde(default)]
    pub hint: Option<SymExprHint>,
}

/// A number of a type: known, or an expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the schema's names say it
pub enum SymNumber {
    AsExpr(SymExpr),
    AsInt(i64),
    AsFloat(Float),
    AsBool(bool),
}

/// A tensor's type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TensorMeta {
    /// Element type.
    pub dtype: ScalarType,
    /// Sizes.
    pub sizes: Vec<SymNumber>,
    /// Whether autograd follows it.
    pub requires_grad: bool,
    /// Its device.
    pub device: Device,
    /// Strides, in elements.
    pub strides: Vec<SymNumber>,
    /// Offset into the storage, in elements.
    pub storage_offset: SymNumber,
    /// Strided, or one of the sparse ones.
    pub layout: Layout,
}

/// A number as an argument: a value of the graph, or known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the schema's names say it
pub enum NumberArgument {
    AsName(String),
    AsInt(i64),
    AsFloat(Float),
    AsBool(bool),
}

/// A tensor of the graph, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the schema's names say it
pub struct TensorArgument {
    pub name: String,
}

/// An effect token of the graph, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // the schema's names say it
pub struct TokenArgument {
    pub name: String,
}

/// A tensor or none, in a list of such.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the schema's names say it
pub enum OptionalTensorArgument {
    AsTensor(TensorArgument),
    /// none; the flag carries nothing
    AsNone(bool),
}

/// A subgraph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphArgument {
    /// The attribute that held it.
    pub name: String,
    /// The graph.
    pub graph: Box<FileGraph>,
}

/// A custom object of the graph, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the schema's names say it
pub struct CustomObjArgument {
    pub name: String,
    /// Its class.
    pub class_fqn: String,
}

/// A complex number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // the schema's names say it
pub struct ComplexValue {
    pub real: Float,
    pub imag: Float,
}

/// An operand or result of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the schema's names say it
pub enum Argument {
    AsNone(bool),
    AsTensor(TensorArgument),
    AsTensors(Vec<TensorArgument>),
    AsInt(i64),
    AsInts(Vec<i64>),
    AsFloat(Float),
    AsFloats(Vec<Float>),
    AsString(String),
    AsStrings(Vec<String>),
    AsSymInt(NumberArgument),
    AsSymInts(Vec<NumberArgument>),
    AsScalarType(ScalarType),
    AsMemoryFormat(MemoryFormat),
    AsLayout(Layout),
    AsDevice(Device),
    AsBool(bool),
    AsBools(Vec<bool>),
    AsSymBool(NumberArgument),
    AsSymBools(Vec<NumberArgument>),
    AsGraph(GraphArgument),
    AsOptionalTensors(Vec<OptionalTensorArgument>),
    AsCustomObj(CustomObjArgument),
    AsOperator(String),
    AsSymFloat(NumberArgument),
    AsSymFloats(Vec<NumberArgument>),
    AsOptionalTensor(OptionalTensorArgument),
    AsComplex(ComplexValue),
    AsNestedTensors(Vec<Vec<TensorArgument>>),
    AsIntLists(Vec<Vec<i64>>),
    AsStringToArgument(Map<Argument>),
    AsFloatLists(Vec<Vec<Float>>),
}

impl Argument {
    /// A number of the graph, by name; `e` decides its kind.
    pub fn number(name: impl Into<String>, e: &restride_ir::Expr) -> Self {
        let name = NumberArgument::AsName(name.into());
        match (e.is_bool(), e.is_float()) {
            (true, _) => Self::AsSymBool(name),
            (_, true) => Self::AsSymFloat(name),
            _ => Self::AsSymInt(name),
        }
    }

    /// The name, if this is a named number.
    pub fn number_name(&self) -> Option<&str> {
        match self {
            Self::AsSymInt(NumberArgument::AsName(n))
            | Self::AsSymFloat(NumberArgument::AsName(n))
            | Self::AsSymBool(NumberArgument::AsName(n)) => Some(n),
            _ => None,
        }
    }

    /// The name, if this is a tensor or a named number.
    pub fn value_name(&self) -> Option<&str> {
        if let Self::AsTensor(t) = self { Some(&t.name) } else { self.number_name() }
    }
}

/// An argument and the schema's name for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedArgument {
    /// The schema's name; empty for arguments of higher-order operators.
    pub name: String,
    /// The value.
    pub arg: Argument,
    /// By position or by keyword; absent in older files.
    #[serde(default)]
    pub kind: Option<ArgumentKind>,
}

impl Argument {
    /// Names of the tensors, if this is a tensor or a list of them.
    pub fn tensor_names(&self) -> Vec<&str> {
        match self {
            Self::AsTensor(t) => vec![&t.name],
            Self::AsTensors(list) => list.iter().map(|t| t.name.as_str()).collect(),
            _ => Vec::new(),
        }
    }
}

impl NamedArgument {
    /// An argument passed by position.
    pub fn positional(name: impl Into<String>, arg: Argument) -> Self {
        Self { name: name.into(), arg, kind: Some(ArgumentKind::Positional) }
    }

    /// An argument passed by keyword.
    pub fn keyword(name: impl Into<String>, arg: Argument) -> Self {
        Self { name: name.into(), arg, kind: Some(ArgumentKind::Keyword) }
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileNode {
    /// The operator, such as `torch.ops.aten.add.Tensor`.
    pub target: String,
    /// Its arguments, without those that have their defaults.
    pub inputs: Vec<NamedArgument>,
    /// Its results.
    pub outputs: Vec<Argument>,
    /// Source lines, modules and the like.
    pub metadata: Map<String>,
    /// Whether a higher-order operator returns a bare tensor; absent before PyTorch 2.8.
    #[serde(default)]
    pub is_hop_single_tensor_return: Option<bool>,
    /// The node's own name, from 2.15 on.
    #[serde(default)]
    pub name: Option<String>,
}

/// A graph or subgraph: calls in the order in which they run, and the types of all names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FileGraph {
    /// Placeholders.
    pub inputs: Vec<Argument>,
    /// Results.
    pub outputs: Vec<Argument>,
    /// Calls, in order.
    pub nodes: Vec<FileNode>,
    /// The tensors' types.
    pub tensor_values: Map<TensorMeta>,
    /// The symbolic integers.
    pub sym_int_values: Map<SymNumber>,
    /// The symbolic booleans.
    pub sym_bool_values: Map<SymNumber>,
    /// Whether the result is one bare tensor, not a tuple.
    #[serde(default)]
    pub is_single_tensor_return: bool,
    /// The custom objects.
    #[serde(default)]
    pub custom_obj_values: Map<CustomObjArgument>,
    /// The symbolic floats.
    #[serde(default)]
    pub sym_float_values: Map<SymNumber>,
}

/// The range of a symbol or expression; a missing end is unbounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RangeConstraint {
    /// Smallest.
    #[serde(deserialize_with = "bound::min")]
    pub min_val: Option<i64>,
    /// Largest.
    #[serde(deserialize_with = "bound::max")]
    pub max_val: Option<i64>,
}

/// The fields of a named tuple.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedTupleDef {
    /// In order.
    pub field_names: Vec<String>,
}

/// A graph with the meaning of its inputs and outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphModule {
    /// The graph.
    pub graph: FileGraph,
    /// Kinds of its inputs and outputs.
    pub signature: GraphSignature,
    /// The modules that were called; the first is the whole.
    pub module_call_graph: Vec<ModuleCallEntry>,
    /// Free.
    #[serde(default)]
    pub metadata: Map<String>,
    /// The named tuples that occur in the specs.
    #[serde(default)]
    pub treespec_namedtuple_fields: Map<NamedTupleDef>,
}

/// The schema that a program was written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaVersion {
    /// Readers require 8.
    pub major: i64,
    /// Not looked at.
    pub minor: i64,
}

/// A whole exported program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedProgram {
    /// The graph and its signature.
    pub graph_module: GraphModule,
    /// Versions of operator sets; PyTorch does not look at them.
    pub opset_version: Map<i64>,
    /// Ranges of symbols and expressions.
    pub range_constraints: Map<RangeConstraint>,
    /// The schema.
    pub schema_version: SchemaVersion,
    /// `TRAINING` if operators may mutate, else `ATEN`.
    #[serde(default)]
    pub verifiers: Vec<String>,
    /// Who wrote it.
    #[serde(default = "old_torch")]
    pub torch_version: String,
    /// Conditions on the inputs, in Python; see [`crate::expressions`].
    #[serde(default)]
    pub guards_code: Vec<String>,
}

fn old_torch() -> String {
    "<=2.4".to_string()
}

/// One weight or constant: which file holds its storage, and its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PayloadMeta {
    /// The file, beside the config; those with the same file share storage.
    pub path_name: String,
    /// Whether it is an `nn.Parameter`.
    pub is_param: bool,
    /// Whether the file is one of `torch.save`, not raw bytes.
    pub use_pickle: bool,
    /// Its type; none for custom objects.
    pub tensor_meta: Option<TensorMeta>,
}

/// The weights or the constants of a model, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PayloadConfig {
    /// By fully qualified name.
    pub config: Map<PayloadMeta>,
}
