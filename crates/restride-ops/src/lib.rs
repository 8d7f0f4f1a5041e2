//! The operator table: every operator declared once, as data, in one file per family.
//!
//! A family file holds `pub(crate) static OPS: &[OpDef]`. [`lookup`] finds an operator by its full name.
#![forbid(unsafe_code)]

mod iter;
mod promote;
mod registry;
mod sample;

pub use registry::{lookup, ops};
