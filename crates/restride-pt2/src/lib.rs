//! Reading and writing what `torch.export.save` writes, and tensor files, without libtorch.
//!
//! The layers, from the outside in: [`zip`] finds entries in bytes, [`archive`] knows which entries a `.pt2` has,
//! [`model`] is the program's JSON as plain data, [`expressions`] the symbolic numbers and conditions in its
//! strings, [`pytree`] the nesting of inputs and outputs, [`pickle`] what `torch.save` wrote, and [`tensors`]
//! files of named tensors. Files are untrusted: every size, offset, count and depth is checked before memory is
//! taken, and nothing in a file is executed.
#![forbid(unsafe_code)]

pub mod archive;
pub mod dtype;
pub mod error;
pub mod export;
pub mod expressions;
pub mod import;
pub mod model;
pub mod pickle;
pub mod placed;
pub mod pytree;
pub mod tensors;
pub mod zip;

pub use error::{At, FileErrorKind, Pt2Error, Result};

use restride_ir::{Arg, Expr, InputKind, InputSpec, Layout, OutputKind, OutputSpec, Program, SchemaArg};

/// The inputs that a caller passes.
fn user_inputs(program: &Program) -> impl Iterator<Item = &InputSpec> {
    program.signature.inputs.iter().filter(|i| matches!(i.kind, InputKind::User(_) | InputKind::Fixed { .. }))
}

/// Whether a caller gets the output.
fn is_result(spec: &OutputSpec) -> bool {
    matches!(spec.kind, OutputKind::User | OutputKind::Loss)
}

/// Whether an operator writes the argument.
fn mutates(arg: &SchemaArg) -> bool {
    arg.alias.as_ref().is_some_and(|a| a.write)
}

/// The arguments of `as_strided` behind its tensor.
fn as_strided_args(layout: &Layout<Expr>) -> Vec<Arg> {
    vec![Arg::Scalars(layout.sizes.to_vec()), Arg::Scalars(layout.strides.to_vec()), Arg::Scalar(layout.offset.clone())]
}
