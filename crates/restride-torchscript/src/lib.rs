//! TorchScript archives and pasted graph texts as programs, without libtorch.
//!
//! [`archive`] reads what `torch.jit.save` writes: code, module tree, constants. [`mod@syntax`] parses the code, [`eval`] runs it on known
//! numbers and recorded tensors, [`record`] puts the calls of operators into a program. Files are untrusted: nothing in them is
//! executed but by this evaluator, which bounds steps, nesting and calls.
#![forbid(unsafe_code)]

pub mod archive;
pub mod eval;
pub mod given;
mod inputs;
mod library;
pub mod record;
mod source;
pub mod syntax;
pub mod text;
pub mod value;

pub use archive::{RecordOptions, import, is_archive, weights};
pub use given::{Dynamic, DynamicRange, GivenInputs, GivenValue};
pub use source::SourceText;
