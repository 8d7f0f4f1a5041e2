//! Where in the arena each buffer lies: offsets from lifetimes.
//!
//! First a lower bound: the largest sum of bytes that are needed at one step. Then best fit under several orders, of which
//! the smallest arena is taken (`fit.rs`). Where that is larger than the bound, an exact search within a budget
//! (`search.rs`). [`solve`] does all of it on plain numbers, [`plan`] for a placement.

mod fit;
mod problem;
mod search;
mod sections;
mod solve;
#[cfg(test)]
mod tests;

pub use fit::PlanOrder;
pub use problem::{Item, Part, Problem, Proof, Solution};
pub use search::{Rank, SearchOptions};
pub use solve::solve;

use restride_ir::{Buffer, BufferKind, Id, Placement, Plan, aligned};

/// What `plan` may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanOptions {
    /// Whether buffers that do not live at the same time may share bytes.
    pub reuse: bool,
    /// Orders to try; none of them means one after another.
    pub orders: Vec<PlanOrder>,
    /// Budget of the orders other than `Time` for looking at pairs of buffers alive at the same time; an order for which
    /// it does not suffice stacks buffers without looking for holes.
    pub pairs: u64,
    /// The exact search.
    pub search: SearchOptions,
}

impl Default for PlanOptions {
    fn default() -> Self {
        let orders = vec![PlanOrder::Time, PlanOrder::Size, PlanOrder::Area, PlanOrder::Lifetime];
        PlanOptions { reuse: true, orders, pairs: 8_000_000, search: SearchOptions::default() }
    }
}

/// Gives every arena buffer an offset.
pub fn plan(placement: &Placement, options: &PlanOptions) -> Plan {
    let lives = lifetimes(placement);
    let mut ids = Vec::new();
    let mut problem = Problem::default();
    let mut plan = Plan::default();
    for (id, buffer) in placement.buffers.iter() {
        let Buffer { kind: BufferKind::Arena, bytes } = buffer else { continue };
        match lives[id.index()] {
            // Never used, or nothing to hold: any offset will do.
            None => plan.offsets.set(id, Some(0)),
            _ if *bytes <= 0 => plan.offsets.set(id, Some(0)),
            Some((start, end)) => {
                ids.push(id);
                problem.items.push(Item::whole(start, end + 1, aligned(*bytes)));
            }
        }
    }
    let solution = if options.reuse { solve(&problem, options) } else { solve::apart(&problem) };
    for (id, offset) in ids.into_iter().zip(&solution.offsets) {
        plan.offsets.set(id, Some(*offset));
    }
    plan.arena_bytes = solution.height;
    plan.lower_bound_bytes = solution.lower_bound;
    plan.at_least_bytes = solution.at_least();
    plan.optimal = plan.arena_bytes == plan.at_least_bytes;
    plan
}

/// First and last step that touches each buffer.
fn lifetimes(placement: &Placement) -> Vec<Option<(usize, usize)>> {
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; placement.buffers.len()];
    for (step, s) in placement.steps.iter().enumerate() {
        for buffer in placement.touched(s) {
            let life = &mut lives[buffer.index()];
            *life = Some((life.map_or(step, |l| l.0), step));
        }
    }
    lives
}
