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

pub use error::{At, ErrorKind, Pt2Error, Result};
