//! Fits a program's arena into a budget: rematerialises values instead of keeping them.

use super::Made;
use super::attempt::attempt;
use crate::compile::{CompileOptions, Times};
use restride_ir::{BufferId, Error, Graph, Id, Node, NodeId, Placement, Program, Remark, Result, Step, lives};
use restride_passes::recompute::{Again, Recomputed, again, modelled, recompute, refusal};

/// Most attempts to reach a budget, and to rematerialise less within it.
const ATTEMPTS: usize = 5;
const RELAXED: usize = 2;

/// Budgets of the model that are tried next, in 16ths of the program's peak.
const SHARES: [i64; 9] = [15, 14, 12, 10, 8, 6, 4, 2, 0];

/// A program placed within a budget.
pub(crate) struct Within {
    pub made: Made,
    /// Its nodes, as those of the program before.
    pub sequence: Vec<NodeId>,
    /// The rematerialised values.
    pub remarks: Vec<Remark>,
}

/// Gets the arena of a program down to `most` bytes; `first` is the program without rematerialised values.
///
/// The model of memory that chooses the values differs from the plan in the end, so its target is changed until the arena fits:
/// first in proportion, then by the excess. Where that fails, the targets of [`SHARES`] are tried, so that the error names a budget
/// that can be met.
///
/// # Errors
/// An unmet budget: the smallest arena found, and the values that take its memory.
pub(crate) fn within(
    program: &Program,
    first: Made,
    most: i64,
    options: &CompileOptions,
    times: &mut Times,
) -> Result<Within> {
    let peak = modelled(program);
    let arena = first.plan.arena_bytes;
    let mut search = BudgetSearch { program, arena, seen: Vec::new(), options, times };
    if let Some(found) = search.near(peak, most)? {
        return Ok(found);
    }
    let mut smallest: Option<Within> = None;
    search.seen.clear();
    for share in SHARES {
        let aim = peak / 16 * share;
        let found = recompute(program, aim);
        // Nothing less can be reached after that.
        let least = found.peak > aim;
        if let Some(made) = search.make(&found)? {
            if made.arena() <= most {
                return Ok(made);
            }
            if smallest.as_ref().is_none_or(|s| made.arena() < s.arena()) {
                smallest = Some(made);
            }
        }
        if least {
            break;
        }
    }
    match smallest {
        Some(s) if s.arena() < arena => Err(unmet(&s.made, most)),
        _ => Err(unmet(&first, most)),
    }
}

impl Within {
    fn arena(&self) -> i64 {
        self.made.plan.arena_bytes
    }
}

struct BudgetSearch<'a> {
    program: &'a Program,
    /// Bytes of the arena without rematerialised values.
    arena: i64,
    /// Sequences that were placed and planned.
    seen: Vec<Vec<NodeId>>,
    options: &'a CompileOptions,
    times: &'a mut Times,
}

impl BudgetSearch<'_> {
    /// Places and plans a sequence, if it is a new one.
    fn make(&mut self, found: &Recomputed) -> Result<Option<Within>> {
        if self.seen.contains(&found.sequence) {
            return Ok(None);
        }
        self.seen.push(found.sequence.clone());
        let Again { program, remarks } = again(self.program, &found.sequence)?;
        let made = Made::fused(attempt(program, self.options, self.times)?, self.options, self.times)?;
        Ok(Some(Within { made, sequence: found.sequence.clone(), remarks }))
    }

    /// An arena within the budget that rematerialises little, if one is found.
    fn near(&mut self, peak: i64, most: i64) -> Result<Option<Within>> {
        let arena = self.arena.max(1);
        let mut aim = (most.max(0) as f64 / arena as f64 * peak as f64) as i64;
        let (mut best, mut relaxed): (Option<Within>, usize) = (None, 0);
        for _ in 0..ATTEMPTS + RELAXED {
            let found = recompute(self.program, aim);
            let made = self.make(&found)?;
            let Some(made) = made else { break };
            let over = made.arena() - most;
            if over > 0 {
                // It is the least that the model can do, or there was something that fits before.
                if found.peak > aim || best.is_some() {
                    break;
                }
                aim = aim.min(found.peak).saturating_sub(over.max(aim / 64));
                continue;
            }
            if best.as_ref().is_none_or(|b| made.sequence.len() < b.sequence.len()) {
                best = Some(made);
            }
            // Bytes that are left may keep more values.
            if relaxed == RELAXED || -over < most / 32 {
                break;
            }
            relaxed += 1;
            aim = found.peak.saturating_sub(over);
        }
        Ok(best)
    }
}

/// The error of an unmet budget: the values at the peak of the smallest arena that was found.
fn unmet(best: &Made, most: i64) -> Error {
    let (graph, placement, plan) = (best.program.graph(), &best.placement, &best.plan);
    let reached = plan.arena_bytes;
    let mut what = format!("the arena cannot be brought to {most} bytes: the smallest that was found has {reached}");
    let (at, crowd) = crowd(graph, placement);
    let Some(step) = placement.steps.get(at) else {
        return Error::unsupported(what);
    };
    let touched: Vec<BufferId> = placement.touched(step).collect();
    let here = match step {
        Step::Run { node, .. } | Step::Free { node } => Some(*node),
        Step::Move { .. } => None,
    };
    let scratch = here.and_then(|n| placement.scratch.get(&n));
    let names = names(graph, placement);
    let line = |(buffer, bytes): &(BufferId, i64)| {
        let name = &names[buffer.index()];
        let why = if scratch == Some(buffer) {
            "scratch of its kernel"
        } else if touched.contains(buffer) {
            "which it works on"
        } else {
            name.1
                .and_then(|maker| refusal(graph, maker))
                .unwrap_or("which is needed later, and which recomputing does not make smaller")
        };
        match scratch == Some(buffer) {
            true => format!("{bytes} bytes of {why}"),
            false => format!("{bytes} bytes of {}, {why}", name.0),
        }
    };
    let total: i64 = crowd.iter().map(|c| c.1).sum();
    let all: Vec<String> = crowd.iter().take(6).map(line).collect();
    let more = if crowd.len() > 6 { format!("; and {} more", crowd.len() - 6) } else { String::new() };
    what = format!("{what}. Step {at} needs {total} at once: {}{more}", all.join("; "));
    let error = Error::unsupported(what).help(format!("--budget {reached} can be met"));
    match here {
        Some(node) => error.at(graph, node),
        None => error,
    }
}

/// The step at which most is needed, and the buffers that are, the largest first.
fn crowd(graph: &Graph, placement: &Placement) -> (usize, Vec<(BufferId, i64)>) {
    let lives = lives(graph, placement);
    let mut change = vec![0i64; placement.steps.len() + 1];
    let arena = |id: BufferId| placement.buffers[id].kind == restride_ir::BufferKind::Arena;
    for id in placement.buffers.ids().filter(|id| arena(*id)) {
        for l in &lives[id] {
            change[*l.steps.start()] += l.bytes.end - l.bytes.start;
            change[l.steps.end() + 1] -= l.bytes.end - l.bytes.start;
        }
    }
    let (mut now, mut most, mut at) = (0i64, 0i64, 0);
    for (step, by) in change.iter().enumerate() {
        now += by;
        if now > most {
            (most, at) = (now, step);
        }
    }
    let there = |id: BufferId| -> i64 {
        lives[id].iter().filter(|l| l.steps.contains(&at)).map(|l| l.bytes.end - l.bytes.start).sum()
    };
    let mut all: Vec<(BufferId, i64)> =
        placement.buffers.ids().filter(|id| arena(*id)).map(|id| (id, there(id))).filter(|b| b.1 > 0).collect();
    all.sort_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
    (at, all)
}

/// The first value in each buffer, and the node that makes it.
fn names(graph: &Graph, placement: &Placement) -> Vec<(String, Option<NodeId>)> {
    let mut out: Vec<(String, Option<NodeId>)> = vec![("memory".into(), None); placement.buffers.len()];
    let mut name = |node: &Node, id: NodeId| {
        for r in &node.results {
            if let Some(place) = &placement.places[*r]
                && out[place.buffer.index()].1.is_none()
            {
                out[place.buffer.index()] = (format!("%{}", graph.values[*r].name), Some(id));
            }
        }
    };
    graph.ordered().for_each(|(id, node)| name(node, id));
    out
}
