//! Loops over strided views: what operators compute.
