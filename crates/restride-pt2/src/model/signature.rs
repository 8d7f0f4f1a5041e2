use super::program::{Argument, CustomObjArgument, TensorArgument, TokenArgument};
use super::scalar::Float;
use serde::{Deserialize, Serialize};

/// A constant that a caller passes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstantValue {
    /// `None`; the flag carries nothing
    AsNone(bool),
    /// an integer
    AsInt(i64),
    /// a float
    AsFloat(Float),
    /// a string
    AsString(String),
    /// a boolean
    AsBool(bool),
}

/// The kind of an input of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the schema's names say it: `arg` is the placeholder
pub enum FileInput {
    /// Passed by the caller.
    UserInput { arg: Argument },
    /// A parameter.
    Parameter { arg: TensorArgument, parameter_name: String },
    /// A buffer.
    Buffer {
        arg: TensorArgument,
        buffer_name: String,
        /// whether it is kept with the weights, not with the constants
        persistent: bool,
    },
    /// A tensor that is part of the code.
    TensorConstant { arg: TensorArgument, tensor_constant_name: String },
    /// A custom object.
    CustomObj { arg: CustomObjArgument, custom_obj_name: String },
    /// An effect token.
    Token { arg: TokenArgument },
    /// A value other than a tensor, passed by the caller and fixed at export.
    ConstantInput { name: String, value: ConstantValue },
}

/// The kind of an output of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the schema's names say it: `arg` is the value
pub enum FileOutput {
    /// Given to the caller.
    UserOutput { arg: Argument },
    /// The loss of a joint program.
    LossOutput { arg: TensorArgument },
    /// A buffer's new value.
    BufferMutation { arg: TensorArgument, buffer_name: String },
    /// A parameter's gradient.
    GradientToParameter { arg: TensorArgument, parameter_name: String },
    /// An input's gradient.
    GradientToUserInput { arg: TensorArgument, user_input_name: String },
    /// An input's new value.
    UserInputMutation { arg: TensorArgument, user_input_name: String },
    /// An effect token.
    Token { arg: TokenArgument },
    /// A parameter's new value.
    ParameterMutation { arg: TensorArgument, parameter_name: String },
}

/// Kinds of a graph's inputs and outputs, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphSignature {
    /// One for each input.
    pub input_specs: Vec<FileInput>,
    /// One for each output.
    pub output_specs: Vec<FileOutput>,
}

/// How a module is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModuleCallSignature {
    /// Values that go in.
    pub inputs: Vec<Argument>,
    /// Values that come out.
    pub outputs: Vec<Argument>,
    /// Nesting of the inputs; see [`crate::pytree`].
    pub in_spec: String,
    /// Nesting of the outputs.
    pub out_spec: String,
    /// Parameter names of `forward`.
    #[serde(default)]
    pub forward_arg_names: Option<Vec<String>>,
}

/// One module that was called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModuleCallEntry {
    /// Its name; empty for the whole.
    pub fqn: String,
    /// How it is called, if known.
    #[serde(default)]
    pub signature: Option<ModuleCallSignature>,
}
