//! Open, functionalize, place, check and run PyTorch programs.
#![forbid(unsafe_code)]

pub mod files;
mod open;

pub use open::{OpenOptions, open};
pub use restride_exec::interp::{Options as RunOptions, Outputs, interpret};
pub use restride_exec::{Inputs, RunValue, State};
pub use restride_ir::{Error, ErrorKind, Program, Result, Stage};
pub use restride_passes::functionalize::{Options as FunctionalizeOptions, Share, functionalize};
