//! What the tests stand on: runs held against each other, random programs, damage to their placements, the corpus of
//! aliasing cases.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod differences;
pub mod dump;
mod exact;
pub mod filetest;
pub mod fuzz;
pub mod generate;
pub mod outcome;
pub mod placed;
pub mod reduce;
pub mod rng;
pub mod scenarios;
pub mod spoil;
pub mod taped;
pub mod tracer;

pub use generate::{Sample, generate, generate_checked, generate_floating};
pub use outcome::{Left, Verdict, by_chance, difference, differential, metamorphic};
pub use reduce::reduce;
