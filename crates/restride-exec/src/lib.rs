//! Running programs: the interpreter with true aliasing, and the planned run in one arena.

mod addresses;
pub mod collective;
pub mod constants;
mod control_flow;
pub mod copy;
pub mod eager;
pub mod inputs;
pub mod interp;
mod machine_code;
pub mod outputs;
mod random_inputs;
pub mod run;
pub mod symbols;

pub use addresses::Addresses;
pub use inputs::{Inputs, RunValue, State};
pub use random_inputs::{declared_inputs, random_inputs, random_inputs_of};
