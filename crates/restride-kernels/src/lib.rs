//! Loops over strided views: what operators compute.
//!
//! A kernel's result depends on logical values, sizes and element types only, never on strides or threads.

pub mod attention;
mod blocked;
pub mod conv;
pub mod conv_over;
pub mod convert;
pub mod copy;
pub mod ctc;
pub mod cumulative;
pub mod deform;
pub mod embedding;
pub mod gemm;
pub mod grid;
pub mod grouped;
pub mod im2col;
pub mod index;
pub mod linalg;
pub mod loss;
pub mod norm;
pub mod norm_backward;
pub mod pack;
mod par;
pub mod pointwise;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod reduce_dist;
pub mod reduce_pick;
pub mod reduce_search;
pub mod remap;
pub mod resample;
pub mod rnn;
pub mod rows;
pub mod scatter;
pub mod scratch;
mod select;
pub mod softmax;
pub mod sort;
pub mod spectral;
pub mod stack;
pub mod threads;
pub mod unique;
pub mod vision;
