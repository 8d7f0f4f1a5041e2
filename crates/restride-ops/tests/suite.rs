//! All tests of the operator table that need no process of their own, in one binary.

mod numbers;
#[path = "../examples/dump_samples/run.rs"]
mod run;
mod samples;
mod scalars;
