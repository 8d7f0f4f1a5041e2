//! Preparing a segment for the values of its symbols: specialised, lowered, placed, planned and checked, it runs.
//!
//! [`attempt`] places and plans a program as it is; [`fused`] does with fused nodes; [`budget`] rematerialises values until the arena fits; [`upper_bound`] plans
//! for the largest sizes.

mod attempt;
mod budget;
mod fused;
mod upper_bound;

pub(crate) use upper_bound::ArenaBound;
pub use upper_bound::UpperBound;

use crate::compile::{CompileOptions, Times};
use crate::progress::Doing;
use attempt::{Attempt, Lowered, attempt, lowered, smallest, timed};
use fused::{EarlyFused, FusedAttempt, early_fused, fused};
use restride_exec::run::Runnable;
use restride_ir::{Binding, Error, ErrorKind, NodeId, Placement, Plan, Program, Remark, Result, Table};
use restride_passes::constants::Constants;
use restride_passes::fuse::{FuseOptions, FusedGroups, apply};
use restride_passes::order;
use restride_passes::place::Placed;
use restride_passes::recompute::{Again, again};
use restride_pt2::placed::SavedPlan;
use std::sync::Arc;

/// A segment of a program, ready to run for certain sizes.
pub(crate) struct PreparedSegment {
    /// Functional, with known sizes, all operators with kernels; some nodes several times where memory is short.
    pub program: Program,
    /// What it takes after its own inputs.
    pub constants: Option<Constants>,
    /// Where nodes run in another order, or again: the nodes that run, by their positions before.
    pub sequence: Option<Vec<usize>>,
    /// The nodes that were fused then.
    pub groups: FusedGroups,
    /// Where values live.
    pub placement: Placement,
    /// Offsets in the arena.
    pub plan: Plan,
    /// Decisions of the placement.
    pub remarks: Vec<Remark>,
    /// The steps that run.
    pub runnable: Arc<Runnable>,
    /// Time that preparing took.
    pub times: Times,
}

/// A segment to prepare.
pub(crate) struct Unprepared<'a> {
    /// Its number.
    pub number: usize,
    pub program: &'a Program,
    /// The inputs that no run changes.
    pub constant: &'a [bool],
}

/// Prepares a segment for a binding. Within `bound`, if one was found before: where the plan is larger, with buffers as at the
/// largest sizes, or by rematerialising values; where neither fits, a run says that it needs more.
pub(crate) fn prepare(
    segment: &Unprepared<'_>,
    symbols: &Binding,
    options: &CompileOptions,
    bound: Option<&ArenaBound>,
) -> Result<PreparedSegment> {
    let made = make(segment, symbols, options)?;
    let Some(bound) = bound else { return Ok(made) };
    let Some(most) = bound.most.bytes().filter(|most| made.plan.arena_bytes > *most) else { return Ok(made) };
    if let Some(smaller) = as_at_largest(bound, segment, symbols, options) {
        return Ok(smaller);
    }
    let options = CompileOptions { budget: Some(most), saved: None, ..options.clone() };
    Ok(make(segment, symbols, &options).unwrap_or(made))
}

/// Prepares a segment with its buffers at the offsets of the largest sizes, if that is within the bound.
fn as_at_largest(
    bound: &ArenaBound,
    segment: &Unprepared<'_>,
    symbols: &Binding,
    options: &CompileOptions,
) -> Option<PreparedSegment> {
    let mut times = Times::default();
    let options = &CompileOptions { saved: None, ..options.clone() };
    let Lowered { program, constants } = lowered(segment.program, symbols, segment.constant, options.ahead).ok()?;
    let made = Made::fused(attempt(program, options, &mut times).ok()?, options, &mut times).ok()?;
    let plan = bound.at_largest.get(segment.number)?.fitted(&made.program, &made.placement, made.plan)?;
    let made = Made { plan, ..made };
    finish(made, constants, options, times, |error| error)
        .ok()
        .filter(|made| bound.most.bytes() >= Some(made.plan.arena_bytes))
}

fn make(segment: &Unprepared<'_>, symbols: &Binding, options: &CompileOptions) -> Result<PreparedSegment> {
    let mut times = Times::default();
    options.progress.tell(Doing::Simplifying);
    if !symbols.is_empty() {
        // Simplifying may drop a call that eager PyTorch refuses for these sizes.
        restride_ir::verify_types(&restride_passes::specialize(segment.program, symbols))?;
    }
    let Lowered { program, constants } =
        timed(&mut times.simplify, || lowered(segment.program, symbols, segment.constant, options.ahead))?;
    let fits = |s: &&Arc<SavedPlan>| options.budget.is_none_or(|most| s.arena_bytes() <= most);
    let own_memories =
        options.memories.is_empty() && options.fold && !options.ahead && options.fuse == FuseOptions::default();
    let saved = options.saved.as_ref().filter(|s| own_memories && s.is_for(symbols)).filter(fits);
    let made = match saved {
        Some(saved) => taken_over(saved, segment.number, program)?,
        None => made(program, options, &mut times)?,
    };
    let blame = |error: Error| match saved {
        Some(_) => Error { kind: ErrorKind::File, ..error }
            .help("the plan beside the program is not a plan for it: compile the program again"),
        None => error,
    };
    // A plan from a file is never trusted.
    let options = &CompileOptions { check: options.check || saved.is_some(), ..options.clone() };
    finish(made, constants, options, times, blame)
}

/// Checks placement and plan, and makes the steps that run.
fn finish(
    made: Made,
    constants: Option<Constants>,
    options: &CompileOptions,
    mut times: Times,
    blame: impl Fn(Error) -> Error,
) -> Result<PreparedSegment> {
    let Made { program, unfused, sequence, groups, placement, plan, remarks } = made;
    if options.check {
        options.progress.tell(Doing::Checking);
        timed(&mut times.check, || {
            if let Some(unfused) = &unfused {
                restride_check::fusion(unfused, &program)?;
            }
            restride_check::placement(&program, &placement)?;
            restride_check::plan(&program, &placement, &plan)
        })
        .map_err(|faults| blame(restride_check::error(&program, &faults)))?;
    }
    options.progress.tell(Doing::Preparing);
    let mut runnable = runnable(&program, &placement, &plan).map_err(&blame)?;
    if options.poison {
        runnable = runnable.poisoned();
    }
    let runnable = Arc::new(runnable);
    Ok(PreparedSegment { program, constants, sequence, groups, placement, plan, remarks, runnable, times })
}

/// The steps of a program as it was placed and planned.
#[allow(unsafe_code)]
fn runnable(program: &Program, placement: &Placement, plan: &Plan) -> Result<Runnable> {
    // SAFETY: `finish` had both checked, or they were made in this process and its user asked for no check.
    unsafe { Runnable::new(program, placement.clone(), plan.clone()) }
}

/// A program with the decisions about its memory.
struct Made {
    program: Program,
    /// The program before fusion.
    unfused: Option<Program>,
    sequence: Option<Vec<usize>>,
    groups: FusedGroups,
    placement: Placement,
    plan: Plan,
    remarks: Vec<Remark>,
}

impl Made {
    /// An attempt in which each node runs once, in the program's order, unfused.
    fn plain(attempt: Attempt) -> Made {
        let Attempt { program, placed: Placed { placement, remarks, .. }, plan } = attempt;
        Made { program, unfused: None, sequence: None, groups: FusedGroups::new(), placement, plan, remarks }
    }

    /// With the fused form of an attempt, if that is no larger.
    fn fused(attempt: Attempt, options: &CompileOptions, times: &mut Times) -> Result<Made> {
        Made::fused_or(attempt, None, options, times)
    }

    /// As [`Made::fused`], with the first fused form, if it was placed before.
    fn fused_or(
        attempt: Attempt,
        early: Option<FusedAttempt>,
        options: &CompileOptions,
        times: &mut Times,
    ) -> Result<Made> {
        Ok(match fused(&attempt, early, options, times)? {
            None => Made::plain(attempt),
            Some(fused) => Made::of_fused(fused, attempt.program),
        })
    }

    fn of_fused(fused: FusedAttempt, unfused: Program) -> Made {
        let made = Made::plain(fused.attempt);
        let remarks = made.remarks.into_iter().chain(fused.remarks).collect();
        Made { unfused: Some(unfused), groups: fused.groups, remarks, ..made }
    }
}

fn taken_over(saved: &SavedPlan, segment: usize, program: Program) -> Result<Made> {
    let (mut program, mut remarks, mut sequence) = (program, Vec::new(), None);
    let damaged = |e| Error { kind: ErrorKind::File, ..e };
    if let Some(nodes) = saved.sequence(segment, &program)? {
        sequence = Some(positions(&program, &nodes));
        Again { program, remarks } = again(&program, &nodes).map_err(damaged)?;
    }
    let (groups, mut unfused) = (saved.groups(segment, &program)?, None);
    if !groups.is_empty() {
        let with = apply(&program, &groups).map_err(damaged)?;
        unfused = Some(std::mem::replace(&mut program, with));
    }
    let (placement, plan) = saved.segment(segment, &program)?;
    Ok(Made { program, unfused, sequence, groups, placement, plan, remarks })
}

fn made(program: Program, options: &CompileOptions, times: &mut Times) -> Result<Made> {
    let within = |f: &FusedAttempt| options.budget.is_none_or(|most| f.attempt.plan.arena_bytes <= most);
    // Another order of nodes may need less than any placement in this one.
    let other = options.order.then(|| order(&program)).flatten();
    let early = if other.is_none() { early_fused(&program, options, times)? } else { EarlyFused::None };
    let early = match early {
        EarlyFused::AtFloor(fused) if within(&fused) => return Ok(Made::of_fused(fused, program)),
        EarlyFused::AtFloor(fused) | EarlyFused::Open(fused) => Some(fused),
        EarlyFused::None => None,
    };
    let best = smallest(&program, other, options, times)?;
    let sequence = another_order(&program, &best.program);
    let early = early.filter(|_| sequence.is_none());
    // Values are rematerialised in the program before fusion.
    let unfused = options.budget.map(|most| (most, best.program.clone()));
    let first = Made { sequence, ..Made::fused_or(best, early, options, times)? };
    match unfused {
        Some((most, unfused)) if first.plan.arena_bytes > most => {
            let within = budget::within(&unfused, first, most, options, times)?;
            let remarks = within.made.remarks.into_iter().chain(within.remarks).collect();
            Ok(Made { sequence: Some(positions(&program, &within.sequence)), remarks, ..within.made })
        }
        _ => Ok(first),
    }
}

/// The nodes of a program as positions in another one's order, if the orders differ.
fn another_order(program: &Program, placed: &Program) -> Option<Vec<usize>> {
    let order = &placed.graph().order;
    (*order != program.graph().order).then(|| positions(program, order))
}

/// Where nodes are in a program's order.
fn positions(program: &Program, nodes: &[NodeId]) -> Vec<usize> {
    let mut at: Table<NodeId, usize> = Table::new();
    program.graph().order.iter().enumerate().for_each(|(k, id)| at.set(*id, k));
    nodes.iter().map(|id| at[*id]).collect()
}
