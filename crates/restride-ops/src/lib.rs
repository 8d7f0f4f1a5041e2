//! The operator table: every operator declared once, as data, in one folder per family.
//!
//! The folder of a family holds declarations, gradients and sample calls; its `mod.rs` exports them as one `Family` for
//! `FAMILIES`. [`lookup`] finds an operator by its full name: declared, derived from PyTorch's schemas (in-place, `out=` and
//! `_foreach_*` forms), or known by its schema alone.
#![forbid(unsafe_code)]

#[macro_use]
mod declare;

mod attention;
mod collective;
mod control_flow;
mod conv;
mod core_forms;
mod create;
mod embedding;
mod fft;
pub mod gradient;
mod index;
mod linalg;
mod loss;
mod matmul;
mod movement;
mod norm;
mod pointwise;
mod pool;
mod prims;
mod quantized;
mod random;
mod reduce;
mod registry;
mod rnn;
mod sort;
mod support;
mod views;
mod vision;

use restride_ir::OpDef;

pub use core_forms::{core_form, is_core};
pub use registry::custom::{CustomArg, CustomView, custom_form, custom_form_of, decode_views, encode_views};
pub use registry::forms::{WritingForm, in_place_form, out_form, view_form};
pub use registry::{lookup, ops, overloads, register_custom, sample_count, torch_names};
pub use support::composite::types;

/// The declarations, gradients and aliases that a family exports.
pub(crate) struct Family {
    /// Declarations, one slice per file.
    ops: &'static [&'static [OpDef]],
    /// Gradient rules by operator name, one slice per file.
    gradients: &'static [gradient::Rules],
    /// Alias and declared name. A pair of names without overloads covers every overload that both have; a name beside one
    /// with an overload is the default overload.
    aliases: &'static [(&'static str, &'static str)],
}

/// Every family, in the order of printed coverage.
static FAMILIES: &[&Family] = &[
    &pointwise::FAMILY,
    &create::FAMILY,
    &views::FAMILY,
    &movement::FAMILY,
    &reduce::FAMILY,
    &sort::FAMILY,
    &pool::FAMILY,
    &loss::FAMILY,
    &index::FAMILY,
    &control_flow::FAMILY,
    &matmul::FAMILY,
    &conv::FAMILY,
    &norm::FAMILY,
    &attention::FAMILY,
    &embedding::FAMILY,
    &random::FAMILY,
    &vision::FAMILY,
    &rnn::FAMILY,
    &fft::FAMILY,
    &linalg::FAMILY,
    &collective::FAMILY,
    &prims::FAMILY,
    &quantized::FAMILY,
    &gradient::FAMILY,
];
