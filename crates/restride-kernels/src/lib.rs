//! Loops over strided views: what operators compute.

pub mod convert;
pub mod rows;
