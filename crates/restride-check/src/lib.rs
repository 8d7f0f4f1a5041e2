//! Independent checkers of the passes' decisions. Checkers share declarations with the passes (schemas, view rules, element
//! maps, reuse licences, the frame of a higher-order call), never reasoning: no checker knows how a placement was found.
//!
//! # What is proved
//! [`placement`]: in the order of the steps, every operand of every kernel and every source of a move is stored, complete
//! and not overwritten, where the step reads it. At the end, so is every output in the caller's memory, and every new
//! content in the memory of its input. A kernel writes cells that it reads only as its operator declares
//! ([`ReuseKind`](restride_ir::ReuseKind)). No place leaves its buffer. Only inputs that the program mutates are written,
//! and only in their own cells. The same holds for bodies of higher-order nodes.
//!
//! [`plan`]: no step reads bytes of a buffer that another buffer has overwritten in the arena, or overwrites them while it
//! reads. No buffer leaves the arena, all are aligned, and the lower bound is at most the bytes needed at one step, counted
//! in blocks and each place from its first cell to its last.
//!
//! [`functional`]: no operator writes, the signature fits the graph, and values are defined before their uses.
//!
//! [`fusion()`]: a program with fused nodes makes the same calls as the one before, in bodies. [`placement`] opens those bodies: a result
//! may have cells of an operand only where no tile reads them after it wrote them.
//!
//! [`equivalence()`]: the functional program means the same as the imported one. Every output and every byte of an input's
//! storage is computed by the same calls of the same elements, for all inputs of some sizes. Its module says what it trusts
//! and does not cover.
//!
//! # What is trusted
//! Declarations: kernels compute what they should and write all of their results; view rules, element maps, licences and
//! types are right. `restride_tensor::overlap_bytes`, whose `Unknown` counts as an overlap. A plan's claim that a search
//! has tried all smaller plans. A run that binds memory as the buffers say, with written inputs apart from each other.
//!
//! # What is not covered
//! User outputs that are views of other memory, for which a run computes nothing. The order of effects other than memory.
//! Values of unknown sizes: they are faults.
//!
//! # How
//! The placement checker keeps facts, "the cells of this layout hold that value", with holes. A write adds a hole to every
//! fact whose cells it may touch; a read needs a fact without holes. Views, scatters and the like derive new facts from old
//! ones, with the holes that concern them. The last use of a value removes its facts. A fault names the step, the value and
//! the first element that is not known to be in its place.
#![forbid(unsafe_code)]

mod equivalence;
mod facts;
mod fault;
mod first_element;
mod functional;
mod fused;
mod fusion;
mod in_flight;
mod interval_map;
mod kernel_steps;
mod movement;
mod placement;
mod plan;
mod well_formed;

pub use equivalence::{Equivalence, InputPlace, MemoryOps, equivalence};
pub use fault::{Fault, FaultKind, error};
pub use functional::functional;
pub use fusion::fusion;
pub use placement::placement;
pub use plan::plan;

/// Random numbers below the argument, the same for the same seed.
#[cfg(test)]
fn draws(seed: u64) -> impl FnMut(i64) -> i64 {
    let mut state = seed;
    move |n| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % n as u64) as i64
    }
}
