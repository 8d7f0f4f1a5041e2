//! The largest arena of a program over all sizes that it takes.

use super::Made;
use super::attempt::{attempt, lowered};
use crate::compile::CompileOptions;
use crate::progress::Progress;
use restride_ir::{Binding, Buffer, BufferId, Graph, Placement, Plan, Program, Result, Scalar, Symbol, Type, aligned};
use restride_passes::segment::Segment;
use restride_passes::witness;
use std::collections::BTreeSet;

/// More bytes than this are no useful bound.
const MOST: i64 = 1 << 48;

/// The largest arena of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UpperBound {
    /// In bytes.
    Bytes(i64),
    /// There is none, for this reason.
    Unknown(String),
}

impl UpperBound {
    /// The bytes, if the arena is bounded.
    pub fn bytes(&self) -> Option<i64> {
        match self {
            UpperBound::Bytes(n) => Some(*n),
            UpperBound::Unknown(_) => None,
        }
    }
}

/// The bound, and the plans that it was found by.
pub(crate) struct ArenaBound {
    pub most: UpperBound,
    /// Per segment, its placement and plan.
    pub(super) at_largest: Vec<AtLargest>,
}

/// A segment at the largest sizes.
pub(super) struct AtLargest {
    placement: Placement,
    plan: Plan,
}

impl AtLargest {
    /// The plan of smaller sizes with the offsets of the largest ones, whose arena is no larger. `None` where buffers differ or
    /// grow, or where the plan checker finds that parts which share bytes at the largest sizes would be in use at once.
    pub fn fitted(&self, program: &Program, placement: &Placement, own: Plan) -> Option<Plan> {
        let pairs = || placement.buffers.iter().zip(self.placement.buffers.iter());
        let same = placement.buffers.len() == self.placement.buffers.len()
            && pairs().all(|((_, a), (_, b))| a.kind == b.kind && a.bytes <= b.bytes);
        if !same || !own.memories.is_empty() {
            return None;
        }
        let end = |(id, b): (BufferId, &Buffer)| self.plan.offsets[id].map_or(0, |at| at + aligned(b.bytes));
        let arena_bytes = placement.buffers.iter().map(end).max().unwrap_or(0);
        let optimal = arena_bytes == own.at_least_bytes;
        let plan = Plan { offsets: self.plan.offsets.clone(), arena_bytes, optimal, ..own };
        restride_check::plan(program, placement, &plan).is_ok().then_some(plan)
    }
}

impl ArenaBound {
    /// The bound of a program with one segment and static sizes.
    pub fn of_one(bytes: i64) -> ArenaBound {
        ArenaBound { most: UpperBound::Bytes(bytes), at_largest: Vec::new() }
    }

    pub fn unknown(why: String) -> ArenaBound {
        ArenaBound { most: UpperBound::Unknown(why), at_largest: Vec::new() }
    }

    /// Plans each segment for the largest sizes.
    pub fn find(
        functional: &Program,
        segments: &[Segment],
        constant: &[Vec<bool>],
        options: &CompileOptions,
    ) -> Result<ArenaBound> {
        let (mut most, mut at_largest) = (0, Vec::new());
        // Progress tells of runs only.
        let options = &CompileOptions { progress: Progress::default(), ..options.clone() };
        // Groups do not join rows of smaller sizes, and write what they would not at the largest ones.
        let mut apart = options.clone();
        apart.fuse.row = i64::MAX;
        for (segment, constant) in segments.iter().zip(constant) {
            let program = &segment.program;
            let found = largest(program, functional)
                .and_then(|binding| above(program.graph(), &binding).map(|more| (binding, more)));
            let (binding, more) = match found {
                Ok(found) => found,
                Err(why) => return Ok(ArenaBound::unknown(why)),
            };
            let times = &mut Default::default();
            let placed = lowered(program, &binding, constant, options.ahead)
                .and_then(|l| attempt(l.program, options, times))
                .and_then(|plain| {
                    let apart = Made::fused(plain.clone(), &apart, times)?.plan.arena_bytes;
                    Ok((Made::fused(plain, options, times)?, apart))
                });
            match placed {
                Ok((made, apart)) => {
                    most = most.max(made.plan.arena_bytes.max(apart).saturating_add(more));
                    at_largest.push(AtLargest { placement: made.placement, plan: made.plan });
                }
                Err(e) => return Ok(ArenaBound::unknown(format!("the largest sizes do not go together: {e}"))),
            }
        }
        if most > MOST {
            return Ok(ArenaBound::unknown(format!("it is {most} bytes")));
        }
        Ok(ArenaBound { most: UpperBound::Bytes(most), at_largest })
    }
}

/// The largest value of every symbol that sizes depend on; any of the others.
fn largest(program: &Program, whole: &Program) -> std::result::Result<Binding, String> {
    let mut sizes = BTreeSet::new();
    let graph = program.graph();
    let values = graph.inputs.iter().chain(graph.ordered().flat_map(|(_, n)| n.results.iter()));
    values.for_each(|v| symbols(&graph.values[*v].ty, &mut sizes));
    let mut binding = witness(program);
    for s in sizes.into_iter().filter(|s| !s.is_float()) {
        match Symbol::max(&s).filter(|m| *m < MOST) {
            Some(most) => drop(binding.insert(s, Scalar::Int(most))),
            None => return Err(format!("{} has no largest value{}", s.name(), told(&s, whole))),
        }
    }
    Ok(binding)
}

fn symbols(ty: &Type, out: &mut BTreeSet<Symbol>) {
    if let Type::Tensor(t) = ty {
        t.layout.sizes.iter().for_each(|e| e.symbols(out));
    }
}

/// The input or node that tells a symbol.
fn told(s: &Symbol, program: &Program) -> String {
    let graph = program.graph();
    let has = |v: &restride_ir::ValueId| {
        let mut own = BTreeSet::new();
        match &graph.values[*v].ty {
            Type::Scalar(e) => e.symbols(&mut own),
            ty => symbols(ty, &mut own),
        }
        own.contains(s)
    };
    if let Some(v) = graph.inputs.iter().find(|v| has(v)) {
        return format!(": a size of %{}", graph.values[*v].name);
    }
    match graph.ordered().find(|(_, n)| n.results.iter().any(has)) {
        Some((_, node)) => {
            let line = node.origin.source_line().map_or_else(String::new, |l| format!(" at {l}"));
            format!(": {}{line} learns it from data", node.op)
        }
        None => String::new(),
    }
}

/// Bytes by which values may be larger than at the largest value of every symbol.
fn above(graph: &Graph, largest: &Binding) -> std::result::Result<i64, String> {
    let mut more = 0i64;
    for (_, node) in graph.ordered().filter(|(_, n)| !n.op.is_view()) {
        for v in &node.results {
            let Type::Tensor(t) = &graph.values[*v].ty else { continue };
            let (mut bound, mut there) = (1i64, 1i64);
            for size in &t.layout.sizes {
                let at = size.eval(largest).ok().and_then(|s| if let Scalar::Int(n) = s { Some(n) } else { None });
                let (Some(most), Some(at)) = (size.bounds().1, at) else {
                    return Err(format!("{size}, a size of %{}, has no bound", graph.values[*v].name));
                };
                bound = bound.saturating_mul(most.max(0));
                there = there.saturating_mul(at.max(0));
            }
            let bytes = |n: i64| aligned(n.saturating_mul(t.dtype.size() as i64).min(MOST));
            more = more.saturating_add((bytes(bound) - bytes(there)).max(0));
        }
    }
    Ok(more)
}
