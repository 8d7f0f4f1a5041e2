//! All tests of the public API, in one binary.

mod constants;
mod examples;
mod fusion;
mod memory;
mod parts;
mod ranks;
mod torchscript;
