//! Passes over programs: functionalize, simplify, and the decisions of placement and plan.
#![forbid(unsafe_code)]

pub mod aliases;
mod arena_floor;
mod args;
mod build;
mod cat_parts;
mod chains;
pub mod constants;
mod dce;
mod declared_strides;
pub mod functionalize;
pub mod fuse;
pub mod grad;
mod input_effects;
pub mod lower;
pub mod materialize;
mod memory_model;
mod order;
mod outer_numbers;
mod parts;
mod peephole;
pub mod place;
pub mod plan;
mod portable;
pub mod recompute;
mod scatters;
pub mod segment;
mod simplify;
mod symbolic_fit;
mod symbolic_shapes;
mod symbols;
pub mod waits;

pub use arena_floor::arena_floor;
pub use chains::nested;
pub use dce::dce;
pub use functionalize::functionalize;
pub use grad::grad;
pub use lower::{expand_own, lower};
pub use materialize::{ViewOptions, materialize, views};
pub use order::order;
pub use place::place;
pub use portable::portable;
pub use simplify::simplify;
pub use symbolic_shapes::result_types;
pub use symbols::{specialize, witness};
