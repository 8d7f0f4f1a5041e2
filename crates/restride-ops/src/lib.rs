//! The operator table: every operator declared once, as data, in one file per family.
//!
//! A family file holds `pub(crate) static OPS: &[OpDef]` and stands in [`FAMILIES`]. [`lookup`] finds an operator by
//! its full name: declared, derived from PyTorch's schemas (in-place, `out=` and `_foreach_*` forms), or known by its
//! schema alone.
#![forbid(unsafe_code)]

mod asserts;
mod derive;
mod foreach;
mod hops;
mod iter;
mod promote;
mod composite;
mod nn;
mod matmul;
mod registry;
mod sample;
mod scalars;

use restride_ir::OpDef;

pub use registry::{lookup, ops, register_custom, torch_names};

/// Every family's declarations, in the order in which coverage is printed.
static FAMILIES: &[&[OpDef]] = &[
    scalars::OPS,
    hops::OPS,
    asserts::OPS,
    foreach::OPS,
    matmul::OPS,
];
