//! The eager tape: tensors that remember how they were computed, with in-place operators on views.
//!
//! Histories belong to *bases*, tensors on memory of their own. A view is a region of its base; it points to the base, never to
//! another view. A write through a view makes a new version of the base in which only the region's cells differ: the base's
//! history becomes a `node::NodeKind::Scatter` of its former history and that of the written value. An older view gets a new
//! history when it is next asked for: a `node::NodeKind::Restride` of the base. Rules are the operators' own; a backward pass
//! emits their calls through [`restride_ir::GradEmit`] as calls of this tape, so that gradients have gradients.
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

pub use call::{EagerValue, call_op};
pub use engine::{GradOptions, backward, grad};
pub use function::{Function, Saving, apply};
pub use mode::{
    GradModeGuard, Saved, enable_grad, is_grad_enabled, manual_seed, no_grad, saved_tensors, set_grad_enabled,
    set_threads,
};
pub use node::HookHandle;
pub use program::run_program;
pub use tensor::Tensor;
