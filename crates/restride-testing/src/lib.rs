//! What the tests stand on: runs held against each other, random programs, the corpus of aliasing cases.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod filetest;
pub mod generate;
pub mod outcome;
pub mod reduce;
pub mod rng;
pub mod tracer;

pub use generate::{Sample, generate};
pub use outcome::{Left, Verdict, difference, differential};
pub use reduce::reduce;
