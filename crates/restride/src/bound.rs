//! How large the arena of a program can get, over all sizes that it takes.

use crate::compile::{CompileOptions, Compiled, attempt, lowered};
use crate::instance::Instance;
use crate::progress::Progress;
use restride_exec::inputs::{Strides, bind};
use restride_exec::{Inputs, State};
use restride_ir::{
    Binding, Buffer, BufferId, Error, Graph, Placement, Plan, Program, Result, Scalar, Symbol, Type, aligned,
};
use restride_passes::witness;
use std::collections::BTreeSet;

/// More bytes than this are no bound that anybody could take.
const MOST: i64 = 1 << 48;

/// What no arena of a program is larger than.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UpperBound {
    /// So many bytes.
    Bytes(i64),
    /// There is no such number, and why.
    Unknown(String),
}

impl UpperBound {
    /// The bytes, where there are any.
    pub fn bytes(&self) -> Option<i64> {
        match self {
            UpperBound::Bytes(n) => Some(*n),
            UpperBound::Unknown(_) => None,
        }
    }
}

/// The bound, and how it was found.
pub(crate) struct Bound {
    pub most: UpperBound,
    /// Per segment, how it was placed and planned.
    pub at_largest: Vec<AtLargest>,
}

/// A segment at the largest sizes.
pub(crate) struct AtLargest {
    placement: Placement,
    plan: Plan,
}

impl AtLargest {
    /// The plan of smaller sizes with each buffer where it is at the largest ones: where the same buffers are needed and none
    /// is larger, nothing lies higher than it does there. `None` where they are not, or where parts of buffers that share
    /// bytes there would meet here.
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

impl Compiled {
    /// What the arena needs at most, whatever sizes inputs have within the ranges of their symbols: it is planned for the
    /// largest of each, and what a size may be above that by interval arithmetic is added. A plan that is made afterwards for
    /// certain sizes, and would be larger, is made anew within it: with its buffers where they are at the largest sizes, or by
    /// computing values again. Where neither can be, a run of an instance that reserved the bound is refused.
    pub fn upper_bound(&self) -> &UpperBound {
        let unknown = |why| Bound { most: UpperBound::Unknown(why), at_largest: Vec::new() };
        &self.bound(|| self.bounded().unwrap_or_else(|e| unknown(e.to_string()))).most
    }

    fn bounded(&self) -> Result<Bound> {
        if self.functional().symbols.is_empty() && self.segments().len() == 1 {
            let most = UpperBound::Bytes(self.piece(0, &Binding::new())?.plan.arena_bytes);
            return Ok(Bound { most, at_largest: Vec::new() });
        }
        let unknown = |why| Ok(Bound { most: UpperBound::Unknown(why), at_largest: Vec::new() });
        let (mut most, mut at_largest) = (0, Vec::new());
        // Nobody waits for what is not run.
        let options = &CompileOptions { progress: Progress::default(), ..self.options().clone() };
        for segment in self.segments() {
            let program = &segment.program;
            let binding = match largest(program, self.functional()) {
                Ok(binding) => binding,
                Err(why) => return unknown(why),
            };
            let more = match above(program.graph(), &binding) {
                Ok(more) => more,
                Err(why) => return unknown(why),
            };
            let made = lowered(program, &binding).and_then(|p| attempt(p, options, &mut Default::default()));
            match made {
                Ok(made) => {
                    most = most.max(made.plan.arena_bytes.saturating_add(more));
                    at_largest.push(AtLargest { placement: made.placed.placement, plan: made.plan });
                }
                Err(e) => return unknown(format!("the largest sizes do not go together: {e}")),
            }
        }
        if most > MOST {
            return unknown(format!("it is {most} bytes"));
        }
        Ok(Bound { most: UpperBound::Bytes(most), at_largest })
    }

    /// The nodes from whose results sizes are learnt, with their lines: what comes after one is placed and planned, and gets
    /// its memory, when it has run.
    pub fn learns(&self) -> Vec<String> {
        let graph = self.functional().graph();
        let one = |position: restride_ir::NodeId| {
            let node = &graph.nodes[position];
            let name = node.results.first().map_or_else(String::new, |r| format!("%{} = ", graph.values[*r].name));
            let line = node.origin.source_line().map_or_else(String::new, |l| format!(" ({l})"));
            format!("{name}{}{line}", node.op)
        };
        self.segments().iter().filter_map(|s| s.learn.as_ref()).map(|l| one(l.position)).collect()
    }
}

impl Instance {
    /// Takes the memory that no sizes need more than ([`Compiled::upper_bound`]), at once: runs take none then, whatever their
    /// sizes, and one that would need more after all is refused. The bytes that it has now.
    ///
    /// # Errors
    /// A program whose arena has no such bound, with the reason; more memory than there is.
    pub fn reserve(&mut self) -> Result<i64> {
        match self.compiled().upper_bound().clone() {
            UpperBound::Bytes(bytes) => self.take(bytes).inspect(|_| self.fix()),
            UpperBound::Unknown(why) => {
                Err(Error::unsupported(format!("the memory that the program needs has no bound: {why}"))
                    .help("reserve_for takes what certain inputs need"))
            }
        }
    }

    /// Takes the memory that these inputs need, without running: of a program whose sizes data decides on, what comes before
    /// the first of them is known.
    ///
    /// # Errors
    /// Inputs that do not fit.
    pub fn reserve_for(&mut self, inputs: &Inputs) -> Result<i64> {
        let program = self.compiled().functional();
        let symbols = bind(program, inputs, &State::new(program)?, Strides::AsDeclared)?.symbols;
        let bytes = self.compiled().piece(0, &symbols)?.plan.arena_bytes;
        self.take(bytes)
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

/// What tells a symbol.
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

/// Bytes by which values may be larger than they are where every symbol has its largest value.
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
