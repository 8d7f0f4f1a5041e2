//! PyTorch's modules that call one operator, as data: the operator, and where each argument comes from.

use crate::value::PyValue;

/// A class of modules. `Pool` stands for `Pool1d`, `Pool2d` and `Pool3d`; `#` in the operator's name for their rank.
pub(super) struct ModuleCall {
    pub class: &'static str,
    pub op: &'static str,
    pub slots: &'static [ModuleArg],
    /// The module does something else in training.
    pub evaluates: bool,
}

/// An argument of the operator.
pub(super) enum ModuleArg {
    /// An argument of the call.
    Input(usize),
    /// A tensor of the module; `None` unless all flags are set (with their defaults).
    Weight(&'static str, &'static [(&'static str, bool)]),
    /// The opposite of a flag.
    Not(&'static str, bool),
    /// No argument: the option `inplace` chooses the in-place form.
    InPlace,
    /// A constant.
    Given(Otherwise),
    /// A printed option, by name or position.
    Option(&'static str, Option<usize>, Otherwise),
    /// A printed option that the operator takes by name.
    Keyword(&'static str, Otherwise),
    /// Sizes of the result.
    Sizes(&'static str),
}

/// The value of an option that is not printed.
#[derive(Debug)]
pub(super) enum Otherwise {
    None,
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(&'static str),
}

impl Otherwise {
    pub(super) fn value(&self) -> PyValue {
        match self {
            Otherwise::None => PyValue::None,
            Otherwise::Int(i) => PyValue::int(*i),
            Otherwise::Float(x) => PyValue::float(*x),
            Otherwise::Bool(b) => PyValue::bool(*b),
            Otherwise::Str(s) => PyValue::str(s),
        }
    }
}

const fn row(class: &'static str, op: &'static str, slots: &'static [ModuleArg]) -> ModuleCall {
    ModuleCall { class, op, slots, evaluates: false }
}

const fn option(name: &'static str, at: usize, otherwise: Otherwise) -> ModuleArg {
    ModuleArg::Option(name, Some(at), otherwise)
}

const fn named(name: &'static str, otherwise: Otherwise) -> ModuleArg {
    ModuleArg::Option(name, None, otherwise)
}

use ModuleArg::{InPlace, Input, Not, Sizes, Weight};
use Otherwise::{Bool, Float, Int, Str};

const X: ModuleArg = Input(0);
const AFFINE: &[(&str, bool)] = &[("affine", true)];
const AFFINE_BIAS: &[(&str, bool)] = &[("affine", true), ("bias", true)];
const PER_ELEMENT: &[(&str, bool)] = &[("elementwise_affine", true)];

pub(super) const ROWS: &[ModuleCall] = &[
    row("Linear", "linear", &[X, Weight("weight", &[]), Weight("bias", &[("bias", true)])]),
    row("Bilinear", "bilinear", &[X, Input(1), Weight("weight", &[]), Weight("bias", &[("bias", true)])]),
    row("Embedding", "embedding", &[Weight("weight", &[]), X, named("padding_idx", Int(-1))]),
    ModuleCall {
        evaluates: true,
        ..row(
            "BatchNorm",
            "batch_norm",
            &[
                X,
                Weight("weight", AFFINE),
                Weight("bias", AFFINE_BIAS),
                Weight("running_mean", &[("track_running_stats", true)]),
                Weight("running_var", &[("track_running_stats", true)]),
                Not("track_running_stats", true),
                named("momentum", Float(0.1)),
                named("eps", Float(1e-5)),
                ModuleArg::Given(Bool(true)),
            ],
        )
    },
    row(
        "LayerNorm",
        "layer_norm",
        &[
            X,
            option("normalized_shape", 0, Otherwise::None),
            Weight("weight", PER_ELEMENT),
            Weight("bias", &[("elementwise_affine", true), ("bias", true)]),
            named("eps", Float(1e-5)),
        ],
    ),
    row(
        "RMSNorm",
        "rms_norm",
        &[
            X,
            option("normalized_shape", 0, Otherwise::None),
            Weight("weight", PER_ELEMENT),
            named("eps", Otherwise::None),
        ],
    ),
    row(
        "GroupNorm",
        "group_norm",
        &[
            X,
            option("num_groups", 0, Otherwise::None),
            Weight("weight", AFFINE),
            Weight("bias", AFFINE_BIAS),
            named("eps", Float(1e-5)),
        ],
    ),
    row("Flatten", "flatten", &[X, option("start_dim", 0, Int(1)), option("end_dim", 1, Int(-1))]),
    row(
        "Unflatten",
        "unflatten",
        &[X, option("dim", 0, Otherwise::None), option("unflattened_size", 1, Otherwise::None)],
    ),
    row("AdaptiveAvgPool", "adaptive_avg_pool#d", &[X, Sizes("output_size")]),
    row("Softmax", "softmax", &[X, option("dim", 0, Int(-1))]),
    row("LogSoftmax", "log_softmax", &[X, option("dim", 0, Int(-1))]),
    row("PixelShuffle", "pixel_shuffle", &[X, option("upscale_factor", 0, Otherwise::None)]),
    row("PixelUnshuffle", "pixel_unshuffle", &[X, option("downscale_factor", 0, Otherwise::None)]),
    row("ChannelShuffle", "channel_shuffle", &[X, option("groups", 0, Otherwise::None)]),
    row("PReLU", "prelu", &[X, Weight("weight", &[])]),
    row("GLU", "glu", &[X, option("dim", 0, Int(-1))]),
    row("LeakyReLU", "leaky_relu", &[X, option("negative_slope", 0, Float(0.01)), InPlace]),
    row("ELU", "elu", &[X, option("alpha", 0, Float(1.0)), InPlace]),
    row("CELU", "celu", &[X, option("alpha", 0, Float(1.0)), InPlace]),
    row("Hardtanh", "hardtanh", &[X, option("min_val", 0, Float(-1.0)), option("max_val", 1, Float(1.0)), InPlace]),
    row(
        "Threshold",
        "threshold",
        &[X, option("threshold", 0, Otherwise::None), option("value", 1, Otherwise::None), InPlace],
    ),
    row("Softplus", "softplus", &[X, option("beta", 0, Float(1.0)), option("threshold", 1, Float(20.0))]),
    row("Softshrink", "softshrink", &[X, option("lambd", 0, Float(0.5))]),
    row("Hardshrink", "hardshrink", &[X, option("lambd", 0, Float(0.5))]),
    row("LogSigmoid", "log_sigmoid", &[X]),
    row("Sigmoid", "sigmoid", &[X]),
    row("Tanh", "tanh", &[X]),
    row("ReLU", "relu", &[X, InPlace]),
    row("ReLU6", "relu6", &[X, InPlace]),
    row("SiLU", "silu", &[X, InPlace]),
    row("Mish", "mish", &[X, InPlace]),
    row("SELU", "selu", &[X, InPlace]),
    row("Hardswish", "hardswish", &[X, InPlace]),
    row("Hardsigmoid", "hardsigmoid", &[X, InPlace]),
    row("GELU", "gelu", &[X, ModuleArg::Keyword("approximate", Str("none"))]),
];
