//! Test support: comparison of runs, random programs, damage to their placements, and the corpus of aliasing cases.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod damage;
pub mod dump;
pub mod filetest;
pub mod finite_differences;
pub mod fuzz;
pub mod generate;
mod magnitude;
pub mod outcome;
pub mod reduce;
pub mod rng;
pub mod scenarios;
pub mod segment_run;
pub mod tape_run;
pub mod tracer;

pub use generate::{RandomProgram, generate, generate_checked, generate_floating};
pub use outcome::{Leftovers, WaysVerdict, by_chance, difference, differential, metamorphic};
pub use reduce::reduce;
