//! The command `restride`.
#![forbid(unsafe_code)]

fn main() {}
