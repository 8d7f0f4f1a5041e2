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

/// What an input of the graph is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputSpec {
    /// Passed by the caller.
    UserInput {
        /// the placeholder
        arg: Argument,
    },
    /// A parameter.
    Parameter {
        /// the placeholder
        arg: TensorArgument,
        /// its name in the state dict
        parameter_name: String,
    },
    /// A buffer.
    Buffer {
        /// the placeholder
        arg: TensorArgument,
        /// its name in the state dict
        buffer_name: String,
        /// whether it is kept with the weights, not with the constants
        persistent: bool,
    },
    /// A tensor that is part of the code.
    TensorConstant {
        /// the placeholder
        arg: TensorArgument,
        /// its name among the constants
        tensor_constant_name: String,
    },
    /// A custom object.
    CustomObj {
        /// the placeholder
        arg: CustomObjArgument,
        /// its name among the constants
        custom_obj_name: String,
    },
    /// An effect token.
    Token {
        /// the placeholder
        arg: TokenArgument,
    },
    /// A value that is no tensor, passed by the caller and fixed at export.
    ConstantInput {
        /// the placeholder
        name: String,
        /// what it must be
        value: ConstantValue,
    },
}

/// What an output of the graph is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputSpec {
    /// Given to the caller.
    UserOutput {
        /// the value
        arg: Argument,
    },
    /// The loss of a joint program.
    LossOutput {
        /// the value
        arg: TensorArgument,
    },
    /// A buffer's new value.
    BufferMutation {
        /// the value
        arg: TensorArgument,
        /// whose
        buffer_name: String,
    },
    /// A parameter's gradient.
    GradientToParameter {
        /// the value
        arg: TensorArgument,
        /// whose
        parameter_name: String,
    },
    /// An input's gradient.
    GradientToUserInput {
        /// the value
        arg: TensorArgument,
        /// whose
        user_input_name: String,
    },
    /// An input's new value.
    UserInputMutation {
        /// the value
        arg: TensorArgument,
        /// whose
        user_input_name: String,
    },
    /// An effect token.
    Token {
        /// the value
        arg: TokenArgument,
    },
    /// A parameter's new value.
    ParameterMutation {
        /// the value
        arg: TensorArgument,
        /// whose
        parameter_name: String,
    },
}

/// What the inputs and outputs of a graph are, position by position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphSignature {
    /// One for each input.
    pub input_specs: Vec<InputSpec>,
    /// One for each output.
    pub output_specs: Vec<OutputSpec>,
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
