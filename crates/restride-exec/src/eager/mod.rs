//! The eager tape: tensors that remember how they were computed, with in-place operators on views.
//!
//! A *base*, a tensor on memory of its own, is differentiated; views are regions of it: a view points to
//! its base, never to another view. A write through a view is a new version of the base, of which exactly the region's
//! cells are another value: the base's history becomes a `node::Kind::Scatter` of its history before and of what was
//! written. A view whose base has another history than when the view was made gets a new one when it is asked for: a
//! `node::Kind::Restride` of the base. Rules are the operators' own; a backward pass emits their calls through
//! [`restride_ir::GradEmit`] as calls of this tape, so that gradients have gradients.
//!
//! - `tensor` is the tensor object; `methods` its convenient methods.
//! - `call` runs operators; `write` those that write; `object` those that change the tensor object.
//! - `memory` keeps versions and saved values; `probe` finds the values that a rule reads, `guards` those that PyTorch keeps.
//! - `node` is the graph, `emit` runs rules on it, `engine` goes backwards through it.
//! - `program` runs whole programs, `control_flow` their control flow.
//! - `function` is for functions whose gradient is written down.
//! - `mode` says whether calls are recorded and how saved values are guarded.

mod call;
mod control_flow;
mod emit;
mod engine;
mod function;
mod guards;
mod memory;
mod methods;
mod mode;
mod node;
mod object;
mod probe;
mod program;
mod tensor;
mod write;

pub use call::{Value, call_op};
pub use engine::{GradOptions, backward, grad};
pub use function::{Function, Saving, apply};
pub use mode::{
    Guard, Saved, enable_grad, is_grad_enabled, manual_seed, no_grad, saved_tensors, set_grad_enabled, set_threads,
};
pub use node::HookHandle;
pub use program::run_program;
pub use tensor::Tensor;
