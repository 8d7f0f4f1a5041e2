//! The memory plan: the arena offset of each buffer, from lifetimes.
//!
//! A buffer counts with the bytes that a later step reads ([`restride_ir::lives`]), so other buffers may use its bytes
//! before and after. First comes a lower bound: the largest sum of bytes needed at one step. Then best fit runs under
//! several orders, and the smallest arena counts (`best_fit.rs`). If that is larger than the bound, an exact search follows
//! within a budget (`search.rs`). [`solve`] does this on plain numbers, [`plan`] for a placement.

mod best_fit;
mod bytes_per_step;
mod memories;
mod problem;
mod search;
mod sections;
mod solve;
#[cfg(test)]
mod tests;

pub use best_fit::PlanOrder;
pub use memories::{MemorySpec, plan_memories};
pub use problem::{ItemPart, PlanItem, Problem, Proof, Solution};
pub use search::{Rank, SearchOptions};
pub use solve::solve;

use problem::most;
use restride_ir::{ARENA_ALIGN, BufferId, BufferKind, Graph, Live, Placement, Plan, aligned, lives};

/// Options of `plan`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanOptions {
    /// Whether buffers that do not live at the same time may share bytes.
    pub reuse: bool,
    /// Alignment of offsets in bytes: a power of two. Less than [`ARENA_ALIGN`], which kernels expect, means that.
    pub align: i64,
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
        PlanOptions { reuse: true, align: ARENA_ALIGN, orders, pairs: 8_000_000, search: SearchOptions::default() }
    }
}

/// An item with more parts than this is given fewer, larger ones.
const PARTS: usize = 128;

/// The items of a placement that need memory.
struct Needs {
    /// The buffers, in the order of the items.
    ids: Vec<BufferId>,
    items: Vec<PlanItem>,
    /// Arena buffers that no step uses, or of no bytes.
    idle: Vec<BufferId>,
    /// Largest sum of bytes that are needed at one step.
    lower_bound: i64,
    /// Some items need less than they are planned for.
    simplified: bool,
}

fn needs(graph: &Graph, placement: &Placement, options: &PlanOptions) -> Needs {
    let lives = lives(graph, placement);
    let align = options.align.max(ARENA_ALIGN);
    let up = |n: i64| n.checked_add(align - 1).map_or(i64::MAX - (align - 1), |n| n - n % align);
    let mut out = Needs { ids: Vec::new(), items: Vec::new(), idle: Vec::new(), lower_bound: 0, simplified: false };
    let mut needed = Vec::new();
    for (id, buffer) in placement.buffers.iter() {
        if buffer.kind != BufferKind::Arena {
            continue;
        }
        let wide = |l: &Live| Live {
            steps: l.steps.clone(),
            bytes: l.bytes.start - l.bytes.start % align..up(l.bytes.end).min(up(aligned(buffer.bytes))),
        };
        let own: Vec<Live> = if align > ARENA_ALIGN { lives[id].iter().map(wide).collect() } else { lives[id].clone() };
        // Widened parts that meet need no more than their union.
        let meet = align > ARENA_ALIGN && own.len() > 1;
        match item(up(aligned(buffer.bytes)), &own, meet) {
            None => out.idle.push(id),
            Some(item) => {
                out.ids.push(id);
                out.items.push(item);
            }
        }
        out.simplified |= lives[id].len() > PARTS || meet;
        for l in &lives[id] {
            let size = l.bytes.end - l.bytes.start;
            needed.extend([(*l.steps.start(), size), (l.steps.end() + 1, -size)]);
        }
    }
    // Of all parts, also of those that are planned as larger ones.
    out.lower_bound = most(needed);
    out
}

/// Gives every arena buffer of a graph's placement an offset.
pub fn plan(graph: &Graph, placement: &Placement, options: &PlanOptions) -> Plan {
    let Needs { ids, items, idle, lower_bound, simplified } = needs(graph, placement, options);
    let mut plan = Plan { align: options.align, lower_bound_bytes: lower_bound, ..Plan::default() };
    idle.into_iter().for_each(|id| plan.offsets.set(id, Some(0)));
    let problem = Problem { items, capacity: Some(lower_bound) };
    let solution = if options.reuse { solve(&problem, options) } else { solve::apart(&problem) };
    for (id, offset) in ids.into_iter().zip(&solution.offsets) {
        plan.offsets.set(id, Some(*offset));
    }
    plan.arena_bytes = solution.height;
    // An item that was planned with more bytes than it needs may need fewer.
    let coarse = simplified || options.align > ARENA_ALIGN;
    let largest = problem.items.iter().map(|i| i.size).max().unwrap_or(0);
    plan.at_least_bytes = if coarse { lower_bound.max(largest) } else { solution.at_least() };
    plan.optimal = plan.arena_bytes == plan.at_least_bytes;
    plan
}

/// A buffer to be planned, if it needs memory at all.
fn item(size: i64, lives: &[Live], meet: bool) -> Option<PlanItem> {
    let start = lives.iter().map(|l| *l.steps.start()).min()?;
    let end = lives.iter().map(|l| l.steps.end() + 1).max()?;
    let part =
        |l: &Live| ItemPart { start: *l.steps.start(), end: l.steps.end() + 1, from: l.bytes.start, to: l.bytes.end };
    let mut parts: Vec<ItemPart> = lives.iter().map(part).collect();
    if parts.len() > PARTS || meet {
        parts = spans(parts);
    }
    let whole = |p: &ItemPart| (p.start, p.end, p.from, p.to) == (start, end, 0, size);
    if parts.len() > PARTS || parts.iter().any(whole) {
        parts.clear();
    }
    (size > 0).then_some(PlanItem { start, end, size, parts })
}

/// Each byte from when it is first needed until it is last.
fn spans(mut parts: Vec<ItemPart>) -> Vec<ItemPart> {
    let mut edges: Vec<i64> = parts.iter().flat_map(|p| [p.from, p.to]).collect();
    edges.sort_unstable();
    edges.dedup();
    parts.sort_unstable_by_key(|p| p.from);
    let mut out: Vec<ItemPart> = Vec::new();
    let (mut there, mut next): (Vec<ItemPart>, usize) = (Vec::new(), 0);
    for pair in edges.windows(2) {
        while parts.get(next).is_some_and(|p| p.from <= pair[0]) {
            there.push(parts[next]);
            next += 1;
        }
        there.retain(|p| p.to > pair[0]);
        let (Some(start), Some(end)) = (there.iter().map(|p| p.start).min(), there.iter().map(|p| p.end).max()) else {
            continue;
        };
        match out.last_mut() {
            Some(last) if (last.start, last.end, last.to) == (start, end, pair[0]) => last.to = pair[1],
            _ => out.push(ItemPart { start, end, from: pair[0], to: pair[1] }),
        }
    }
    out
}
