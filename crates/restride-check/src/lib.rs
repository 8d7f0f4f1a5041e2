//! Independent judges of what the passes decide. They share declarations with the passes (schemas, view rules, element
//! maps, reuse licences, the frame of a higher-order call), never reasoning: nothing here knows how a placement was found.
//!
//! # What is proved
//! [`placement`]: in the order of the steps, every operand of every kernel and every source of a move lies, whole and
//! not overwritten since, where the step reads it; so does, at the end, every output in the caller's memory and every new
//! content in the memory of the input that it belongs to. No kernel writes a cell that it still reads but as its operator
//! declares to cope with ([`ReuseKind`](restride_ir::ReuseKind)); no place leaves its buffer; no input is written but those
//! that the program mutates, and of these no cell that is not the input's own. Bodies of higher-order nodes likewise.
//!
//! [`plan`]: no step reads of a buffer what another one has overwritten in the arena, or overwrites while it reads; none
//! leaves the arena, all are aligned, and the lower bound is no more than what is needed at one step, counted in blocks and each place
//! from its first cell to its last.
//!
//! [`functional`]: no operator writes, the signature fits the graph, and values are defined before they are used. That the
//! program means what the imported one means is judged by [`equivalence()`]: every output and every byte of an input's
//! storage is computed by the same calls of the same elements, for all inputs of some sizes. Its module says what it trusts
//! and what it does not cover.
//!
//! # What is trusted
//! Declarations: that kernels compute what they should and write all of their results, that view rules and element maps are
//! right, that licences are true, that types are. `restride_tensor::overlap_bytes`, whose answer `Unknown` counts as
//! touching. That a search which says so has been through all plans that are smaller. That a run binds memory as buffers say, inputs that are written apart from each other.
//!
//! # What is not covered
//! User outputs that are views of other memory (the run computes nothing for them). Whether an operator's effects other than
//! memory happen in the program's order. Values whose sizes are not known: they are faults.
//!
//! # How
//! The placement judge keeps facts, "the cells of this layout hold that value", with holes: a write makes a hole in every
//! fact whose cells it may touch. A read needs a fact without holes. Views, scatters and the like make new facts of old
//! ones and take along only the holes that concern them. Facts go when their value is used no more. A fault names the step, the
//! value and the first of its elements that is not known to be where it is read.
#![forbid(unsafe_code)]

mod equivalence;
mod facts;
mod fault;
mod first_element;
mod functional;
mod interval_map;
mod kernel_steps;
mod movement;
mod placement;
mod plan;
mod well_formed;

pub use equivalence::{Equivalence, InputPlace, MemoryOps, equivalence};
pub use fault::{Fault, FaultKind, error};
pub use functional::functional;
pub use placement::placement;
pub use plan::plan;

/// Numbers below what is asked for, the same for every seed.
#[cfg(test)]
fn draws(seed: u64) -> impl FnMut(i64) -> i64 {
    let mut state = seed;
    move |n| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % n as u64) as i64
    }
}
