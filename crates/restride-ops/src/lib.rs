//! The operator table: every operator declared once, as data, in one file per family.
//!
//! A family file holds `pub(crate) static OPS: &[OpDef]` and stands in [`FAMILIES`]. [`lookup`] finds an operator by
//! its full name: declared, derived from PyTorch's schemas (in-place, `out=` and `_foreach_*` forms), or known by its
//! schema alone.
#![forbid(unsafe_code)]

mod arrange;
mod assemble;
mod asserts;
mod attention;
mod attention_grad;
mod casts;
mod composite;
mod conv;
mod conv_backward;
mod core_forms;
mod create;
mod create_range;
mod create_tri;
mod create_window;
mod cumulative;
mod custom;
mod derive;
mod diagonal;
mod einsum;
mod embedding;
mod fft;
mod fold;
mod foreach;
mod gather;
pub mod gradient;
mod grid;
mod grid_grad;
mod grouped;
mod histogram;
mod hops;
mod index;
mod index_find;
mod index_grad;
mod index_masked;
mod index_reduce;
mod index_select;
mod iter;
mod linalg;
mod linalg_check;
mod linalg_decompose;
mod linalg_function;
mod linalg_grad;
mod linalg_ldl;
mod linalg_lu;
mod linalg_samples;
mod linalg_solve;
mod linalg_spectral;
mod linalg_spectral_grad;
mod loss;
mod loss_backward;
mod loss_ctc;
mod loss_linear;
mod loss_margin;
mod loss_nll;
mod matmul;
mod matmul_chain;
mod matmul_composed;
mod matmul_grad;
mod moves;
mod moves_grad;
mod nn;
mod nn_grad;
mod norm;
mod norm_backward;
mod norm_backward_grad;
mod norm_batch;
mod pad;
mod pointwise;
mod pointwise_activation;
mod pointwise_activation_grad;
mod pointwise_arith;
mod pointwise_bits;
mod pointwise_compare;
mod pointwise_grad;
mod pointwise_more;
mod pointwise_power;
mod pointwise_samples;
mod pointwise_unary;
mod pool;
mod pool_samples;
mod promote;
mod quantize;
mod random;
mod random_dropout;
mod random_int;
mod reduce;
mod reduce_dist;
mod reduce_grad;
mod reduce_pick;
mod reduce_samples;
mod reduce_search;
mod registry;
mod rnn;
mod rnn_packed;
mod rnn_packed_grad;
mod room;
mod sample;
mod scalars;
mod scatter;
mod shuffle;
mod slopes;
mod softmax;
mod sort;
mod special;
mod spectral;
mod turn;
mod unique;
mod unpool;
mod upsample;
mod views;
mod views_shape;
mod views_split;
mod vision;
mod vision_grad;

use restride_ir::OpDef;

pub use composite::types;
pub use core_forms::{core_form, is_core};
pub use custom::{CustomArg, CustomView, custom_form, custom_form_of, decode_views, encode_views};
pub use registry::{lookup, ops, register_custom, torch_names};

/// Every family's declarations, in the order in which coverage is printed.
static FAMILIES: &[&[OpDef]] = &[
    pointwise_arith::OPS,
    pointwise_power::OPS,
    pointwise_bits::OPS,
    pointwise_unary::OPS,
    pointwise_compare::OPS,
    pointwise_activation::OPS,
    pointwise_more::OPS,
    special::OPS,
    create::OPS,
    create_range::OPS,
    create_window::OPS,
    create_tri::OPS,
    views_shape::OPS,
    views_split::OPS,
    casts::OPS,
    moves::OPS,
    assemble::OPS,
    arrange::OPS,
    slopes::OPS,
    histogram::OPS,
    unpool::OPS,
    quantize::OPS,
    loss_margin::OPS,
    turn::OPS,
    index::OPS,
    index_find::OPS,
    index_masked::OPS,
    index_select::OPS,
    index_reduce::OPS,
    gather::OPS,
    scatter::OPS,
    sort::OPS,
    unique::OPS,
    scalars::OPS,
    hops::OPS,
    asserts::OPS,
    foreach::OPS,
    matmul::OPS,
    matmul_composed::OPS,
    matmul_chain::OPS,
    einsum::OPS,
    grouped::OPS,
    diagonal::OPS,
    conv::OPS,
    conv_backward::OPS,
    softmax::OPS,
    norm::OPS,
    norm_batch::OPS,
    norm_backward::OPS,
    pool::OPS,
    attention::OPS,
    embedding::OPS,
    reduce::OPS,
    reduce_pick::OPS,
    reduce_dist::OPS,
    reduce_search::OPS,
    random::OPS,
    random_int::OPS,
    random_dropout::OPS,
    cumulative::OPS,
    pad::OPS,
    upsample::OPS,
    shuffle::OPS,
    fold::OPS,
    rnn::OPS,
    loss::OPS,
    loss_nll::OPS,
    loss_ctc::OPS,
    loss_linear::OPS,
    loss_backward::OPS,
    grid::OPS,
    vision::OPS,
    fft::OPS,
    spectral::OPS,
    linalg::OPS,
    linalg_check::OPS,
    linalg_decompose::OPS,
    linalg_solve::OPS,
    linalg_lu::OPS,
    linalg_ldl::OPS,
    linalg_spectral::OPS,
    linalg_function::OPS,
    rnn_packed::OPS,
];

/// Every family's gradients.
static GRADIENTS: &[gradient::Rules] = &[
    pointwise_grad::GRADS,
    pointwise_activation_grad::GRADS,
    special::GRADS,
    moves_grad::GRADS,
    index_grad::GRADS,
    reduce_grad::GRADS,
    matmul_grad::GRADS,
    attention_grad::GRADS,
    grid_grad::GRADS,
    norm_backward_grad::GRADS,
    nn_grad::GRADS,
    nn_grad::UPSAMPLES,
    linalg_grad::GRADS,
    linalg_spectral_grad::GRADS,
    loss_ctc::GRADS,
    vision_grad::GRADS,
    rnn_packed_grad::GRADS,
];
