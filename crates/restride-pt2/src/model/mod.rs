//! A program's JSON (`models/model.json`, and the configs of its weights) as plain data, field by field as
//! PyTorch's schema 8 has them.
//!
//! The types are those of the schema, with its names. Fields that the schema lets a writer omit are defaulted,
//! unknown fields are ignored, an unknown tag of a union is an error. What is read can be written again, in a
//! form that PyTorch loads.

mod json;
mod program;
mod scalar;
mod signature;

pub use json::{parse, print};
pub use program::*;
pub use scalar::*;
pub use signature::*;

/// A JSON object whose order is kept: it is the order of PyTorch's dictionaries.
pub type Map<V> = indexmap::IndexMap<String, V>;

#[cfg(test)]
mod tests;
