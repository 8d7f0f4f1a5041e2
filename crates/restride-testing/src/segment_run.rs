//! A random program of one segment, to run with any placement.

use crate::{Leftovers, RandomProgram};
use restride::{CompileOptions, Compiled, PlaceOptions};
use restride_check::Fault;
use restride_exec::inputs::{Strides, bind, check_sharing};
use restride_exec::interp::written_inputs;
use restride_exec::outputs::outputs;
use restride_exec::run::{ByteArena, RunCtx, Runnable};
use restride_exec::{Inputs, RunValue, State};
use restride_ir::{DType, Placement, Plan, Program, Result};
use restride_passes::fuse::{FuseOptions, fuse};
use restride_passes::plan::{PlanOptions, SearchOptions, plan};
use restride_passes::segment::segments;
use restride_passes::waits::started;
use restride_passes::{lower, place, simplify, specialize};

/// Plans that need not be the smallest ones: a test makes thousands of them, and the search for the last byte would take most of
/// its time.
pub fn quick_plan() -> PlanOptions {
    PlanOptions { search: SearchOptions { budget: 20_000, ..SearchOptions::default() }, ..PlanOptions::default() }
}

/// A functional program of one segment, and its inputs.
pub struct SegmentRun {
    functional: Program,
    /// The same with known sizes, lowered: the program that is placed.
    pub program: Program,
    inputs: Inputs,
}

impl SegmentRun {
    /// The functional form of a sample; `None` if there is none, or if a run learns sizes.
    pub fn of(sample: &RandomProgram) -> Option<SegmentRun> {
        let compiled = Compiled::new(sample.program.clone(), Some(&sample.inputs), &CompileOptions::default()).ok()?;
        let functional = compiled.functional().clone();
        let state = State::new(&functional).ok()?;
        let symbols = bind(&functional, &sample.inputs, &state, Strides::AsDeclared).ok()?.symbols;
        let (functional, all) = segments(functional).ok()?;
        let [segment] = &all[..] else { return None };
        let program = started(simplify(&lower(&specialize(&segment.program, &symbols)).ok()?).ok()?);
        Some(SegmentRun { functional, program, inputs: sample.inputs.clone() })
    }

    /// With fused nodes, by these options.
    ///
    /// # Errors
    /// As `fuse`.
    pub fn fused(mut self, options: &FuseOptions) -> Result<SegmentRun> {
        if let Some(fused) = fuse(&self.program, options)? {
            self.program = fused.program;
        }
        Ok(self)
    }

    /// Places it.
    ///
    /// # Errors
    /// As `place`.
    pub fn place(&self, options: &PlaceOptions) -> Result<Placement> {
        Ok(place(&self.program, options)?.placement)
    }

    /// Checks a placement and a plan made for it.
    ///
    /// # Errors
    /// The faults.
    pub fn check(&self, placement: &Placement) -> std::result::Result<Plan, Vec<Fault>> {
        restride_check::placement(&self.program, placement)?;
        let offsets = plan(self.program.graph(), placement, &quick_plan());
        restride_check::plan(&self.program, placement, &offsets)?;
        Ok(offsets)
    }

    /// Runs it on copies of the sample's inputs.
    ///
    /// # Errors
    /// As `Runnable::run`.
    pub fn run(&self, runnable: &Runnable) -> Result<Leftovers> {
        self.run_on(runnable, &self.inputs)
    }

    /// Runs it on copies of these inputs, which share memory as the sample's inputs do.
    ///
    /// # Errors
    /// As `Runnable::run`.
    pub fn run_on(&self, runnable: &Runnable, inputs: &Inputs) -> Result<Leftovers> {
        let given = inputs.deep_clone();
        let mut state = State::new(&self.functional)?;
        let bound = bind(&self.functional, &given, &state, Strides::AsDeclared)?;
        check_sharing(&self.functional, &bound, &written_inputs(&self.functional))?;
        let results = runnable.run(&mut ByteArena::default(), &bound.values, RunCtx::default())?;
        let outputs = outputs(&self.functional, &bound.values, &results, &bound.symbols, &mut state)?;
        Ok(Leftovers::new(outputs, state, given))
    }
}

/// The same inputs with other contents: the elements of each storage rotated by `by`, booleans negated.
pub fn turned(inputs: &Inputs, by: usize) -> Inputs {
    let out = inputs.deep_clone();
    let mut done = Vec::new();
    for t in out.values.iter().filter_map(RunValue::tensor) {
        if done.contains(&t.storage().id()) {
            continue;
        }
        done.push(t.storage().id());
        let mut bytes = t.storage().to_vec();
        let sharing = out.values.iter().filter_map(RunValue::tensor).filter(|o| o.storage().same(t.storage()));
        let unit = if sharing.clone().all(|o| o.dtype().size() == t.dtype().size()) { t.dtype().size() } else { 16 };
        let whole = bytes.len() / unit * unit;
        if whole > 0 {
            bytes[..whole].rotate_left(by * unit % whole);
        }
        if sharing.clone().all(|o| o.dtype() == DType::Bool) {
            bytes.iter_mut().for_each(|b| *b ^= 1);
        }
        t.storage().write(&bytes);
    }
    out
}
