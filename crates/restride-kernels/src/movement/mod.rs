//! Copies, whole or in part, and elements looked up dimension by dimension.

pub mod copy;
pub mod remap;
pub mod triangle;
