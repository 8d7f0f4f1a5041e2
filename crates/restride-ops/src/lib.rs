//! The operator table: every operator declared once, as data, in one file per family.
//!
//! A family file holds `pub(crate) static OPS: &[OpDef]`. [`lookup`] finds an operator by its full name.
#![forbid(unsafe_code)]

mod registry;

pub use registry::{lookup, ops};
