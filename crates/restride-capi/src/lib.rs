//! The C API of restride: the functions behind `include/restride.h`, which cbindgen writes from this crate.
//!
//! Everything here is a thin layer on the crate `restride`: it checks what C passes, turns panics into errors, and keeps values
//! behind handles. Rust programs use `restride` itself.
//!
//! - `handle`: opaque pointers with a magic word and a count of users.
//! - `status`: errors, and `call`, the body of every function.
//! - `arguments`: pointers, lengths, texts, options and flags of the caller.
//! - `dlpack`, `tensors`: tensors in the caller's memory, and tensors given to the caller.
//! - `engine`: exchanges between ranks by functions of the caller.
//! - `program`, `compiled`, `instance`, `session`, `methods`: the functions, by handle.
//!
//! # Safety
//!
//! All functions are `unsafe`: a pointer must be what its type and the function's text say, for as long as they say. What can be
//! checked is checked.
#![allow(non_camel_case_types)]
// The head of this file is the section for all of them.
#![allow(clippy::missing_safety_doc)]

mod arguments;
mod compiled;
pub mod dlpack;
mod engine;
mod handle;
mod instance;
mod json;
mod methods;
mod outputs;
mod program;
mod session;
mod status;
mod tensors;
#[cfg(all(feature = "symbol-versions", target_os = "linux"))]
mod versions;

pub use compiled::*;
pub use engine::*;
pub use instance::*;
pub use methods::*;
pub use outputs::*;
pub use program::*;
pub use session::*;
pub use status::*;
pub use tensors::{RESTRIDE_TENSOR_READ_ONLY, restride_tensor};
