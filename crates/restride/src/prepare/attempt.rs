//! Placing and planning a program with known sizes.

use crate::compile::{CompileOptions, Times};
use crate::progress::Doing;
use restride_ir::{Binding, Plan, Program, Result, relay_units};
use restride_passes::constants::{Constants, constants};
use restride_passes::place::{PlaceOptions, Placed, cost};
use restride_passes::plan::{PlanOptions, SearchOptions, plan_memories};
use restride_passes::waits::started;
use restride_passes::{lower, place, plan::plan, simplify, specialize};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A program for certain sizes, all operators with kernels.
pub(crate) struct Lowered {
    /// Takes the values of `constants` after its own inputs.
    pub program: Program,
    pub constants: Option<Constants>,
}

/// Lowers a program for certain sizes. `constant` says which of its inputs no run changes, `ahead` is [`CompileOptions::ahead`].
pub(crate) fn lowered(program: &Program, symbols: &Binding, constant: &[bool], ahead: bool) -> Result<Lowered> {
    let mut known = Cow::Borrowed(program);
    if !symbols.is_empty() {
        known = Cow::Owned(specialize(program, symbols));
        relay_units(known.to_mut().graph_mut());
    }
    let program = simplify(&lower(&known)?)?;
    let (program, constants) = match constants(&program, constant, ahead)? {
        Some((program, constants)) => (program, Some(constants)),
        None => (program, None),
    };
    Ok(Lowered { program: started(program), constants })
}

/// A program, placed and planned.
#[derive(Clone)]
pub struct Attempt {
    /// With its nodes in the order in which they were placed.
    pub program: Program,
    pub placed: Placed,
    pub plan: Plan,
}

/// Places and plans a program as it is: with the layouts in which kernels are fastest, if the arena is no larger than with those in
/// which they need the least scratch, and no more bytes are moved.
pub fn attempt(program: Program, options: &CompileOptions, times: &mut Times) -> Result<Attempt> {
    let fast = attempt_in(program, &options.place, options, times)?;
    if !fast.placed.by_time {
        return Ok(fast);
    }
    let without = PlaceOptions { by_time: false, ..options.place };
    let small = attempt_in(fast.program.clone(), &without, options, times)?;
    Ok(if needs(&fast) <= needs(&small) && moved(&fast) <= moved(&small) { fast } else { small })
}

/// Bytes that do not fit the fastest memories, and of the arena.
pub fn needs(a: &Attempt) -> (i64, i64) {
    (a.plan.spilled(), a.plan.arena_bytes)
}

/// Bytes of copies.
pub fn moved(a: &Attempt) -> i64 {
    cost(&a.program, &a.placed.placement).0
}

/// Places and plans a program by these options of placement.
pub fn attempt_in(
    program: Program,
    layouts: &PlaceOptions,
    options: &CompileOptions,
    times: &mut Times,
) -> Result<Attempt> {
    options.progress.tell(Doing::Placing);
    let placed = timed(&mut times.place, || place(&program, layouts))?;
    options.progress.tell(Doing::Planning);
    let plan = planned(&program, &placed, options, times)?;
    Ok(Attempt { program, placed, plan })
}

fn planned(program: &Program, placed: &Placed, options: &CompileOptions, times: &mut Times) -> Result<Plan> {
    let (graph, placement) = (program.graph(), &placed.placement);
    timed(&mut times.plan, || match &options.memories[..] {
        [] => Ok(plan(graph, placement, &options.plan)),
        memories => plan_memories(graph, placement, &options.plan, memories),
    })
}

/// Places a program, and plans it without a search, if there is one memory.
pub fn unsearched(
    program: Program,
    layouts: &PlaceOptions,
    options: &CompileOptions,
    times: &mut Times,
) -> Result<Attempt> {
    if !options.memories.is_empty() {
        return attempt_in(program, layouts, options, times);
    }
    let search = SearchOptions { budget: 0, ..options.plan.search.clone() };
    let quick = CompileOptions { plan: PlanOptions { search, ..options.plan.clone() }, ..options.clone() };
    attempt_in(program, layouts, &quick, times)
}

impl Attempt {
    /// With a plan that was searched for, if there may be a smaller one.
    pub fn searched(self, options: &CompileOptions, times: &mut Times) -> Result<Attempt> {
        if self.plan.optimal || !options.memories.is_empty() {
            return Ok(self);
        }
        let plan = planned(&self.program, &self.placed, options, times)?;
        Ok(Attempt { plan, ..self })
    }
}

/// Places and plans a program as it is, and in another order of nodes, which is taken if the arena is smaller in it and no more
/// bytes are moved. The order is that of the steps.
pub fn smallest(
    program: &Program,
    other: Option<Program>,
    options: &CompileOptions,
    times: &mut Times,
) -> Result<Attempt> {
    let first = attempt(program.clone(), options, times)?;
    let Some(other) = other.filter(|_| first.plan.arena_bytes > 0) else { return Ok(first) };
    let second = attempt(other, options, times)?;
    let better = needs(&second) < needs(&first) && moved(&second) <= moved(&first);
    Ok(if better { second } else { first })
}

pub fn timed<T>(into: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let out = work();
    *into += start.elapsed();
    out
}
