//! Loops over strided views: what operators compute, in the rooms that `restride-ops` has.
//!
//! A kernel's result depends on logical values, sizes and element types only, never on strides or threads.

pub mod attention;
pub mod conv;
pub mod embedding;
pub mod fft;
pub mod index;
pub mod linalg;
pub mod loss;
pub mod matmul;
pub mod movement;
pub mod norm;
pub mod pointwise;
pub mod pool;
pub mod random;
pub mod range;
pub mod reduce;
pub mod rnn;
pub mod sort;
pub mod support;
pub mod vision;
