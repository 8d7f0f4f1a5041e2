//! Compiling: an imported program becomes functional, and is cut into segments that are prepared for the sizes they meet.
//!
//! Calls go one way: `compile` → `prepare` → the passes and checkers. `instance` and `session` run what `compile` prepared, and
//! `inspect` shows it.

use crate::binding::{shares, sizes, with_strides_of};
use crate::constants::{ConstantCache, unchanged_inputs};
use crate::counts::Counts;
use crate::prepare::{ArenaBound, PreparedSegment, Unprepared, UpperBound, prepare};
use crate::progress::{Doing, Progress};
use crate::units::SymbolicImport;
use restride_exec::inputs::{BoundInputs, Strides, bind};
use restride_exec::{Inputs, State};
use restride_ir::{Binding, NodeId, Program, Result, Scalar, Stage};
use restride_passes::functionalize;
use restride_passes::functionalize::{FunctionalizeOptions, Share};
use restride_passes::fuse::FuseOptions;
use restride_passes::place::PlaceOptions;
use restride_passes::plan::{MemorySpec, PlanOptions};
use restride_passes::segment::{Segment, segments};
use restride_pt2::placed::SavedPlan;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Placements kept for sizes met before; the oldest goes first.
const KEPT: usize = 64;

/// Options of compiling.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// Check decisions of this process (on by default). A functional program or a plan from a file is always checked.
    pub check: bool,
    /// Change the order of nodes where that makes the arena smaller (on by default).
    pub order: bool,
    /// Compute once what weights alone decide, and pack the weights that products read (on by default): a run that finds a weight
    /// changed computes it again.
    pub fold: bool,
    /// Compute once, and keep in memory beside the arena, small values that no input decides, such as masks made of `aten.arange`
    /// (off by default). A saved plan is of a program that computes them in each run.
    pub ahead: bool,
    /// What is fused: chains of pointwise operators are computed row by row (on by default), so that values that they only hand on
    /// are not written. A fused program has no larger arena and no more copies than the program without.
    pub fuse: FuseOptions,
    /// The most bytes of the arena: where it would need more, cheap values are rematerialised instead of kept. A budget that cannot be
    /// met is an error that says why.
    pub budget: Option<i64>,
    /// Options of placement.
    pub place: PlaceOptions,
    /// Options of the memory plan.
    pub plan: PlanOptions,
    /// The memories that the arena consists of, fastest first; none for a single one. Buffers that fit in none are an error.
    pub memories: Vec<MemorySpec>,
    /// Fill memory with NaN bytes where nothing may be read, at every run: for tests.
    pub poison: bool,
    /// Receives the parts of the work as they begin.
    pub progress: Progress,
    /// Placement and plan from the program's own file ([`crate::saved_plan`]). They are checked, and used for the sizes that
    /// they were made for, instead of placing and planning.
    pub saved: Option<Arc<SavedPlan>>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            check: true,
            order: true,
            fold: true,
            ahead: false,
            fuse: FuseOptions::default(),
            budget: None,
            place: PlaceOptions::default(),
            plan: PlanOptions::default(),
            memories: Vec::new(),
            poison: false,
            progress: Progress::default(),
            saved: None,
        }
    }
}

/// Time that each part of compiling took.
#[derive(Clone, Copy, Default, Debug)]
pub struct Times {
    /// Reading the file; not known to [`Compiled`], which gets a program.
    pub import: Duration,
    /// Mutation out of the program.
    pub functionalize: Duration,
    /// Sizes put in, compositions taken apart.
    pub simplify: Duration,
    /// Operators that become one.
    pub fuse: Duration,
    /// Where every value lives.
    pub place: Duration,
    /// The checkers.
    pub check: Duration,
    /// Offsets in the arena.
    pub plan: Duration,
}

/// A functional program that runs in one arena. Immutable and shared between threads; clones are the same program.
///
/// Sizes that are symbols are placed, planned and checked when a run first meets them.
///
/// ```
/// use restride::{CompileOptions, Compiled, Inputs, OpenOptions, RunOptions};
/// # fn main() -> restride::Result<()> {
/// # let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples/batchnorm_train.pt2");
/// let program = restride::open(&path, &OpenOptions::default())?;
/// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
/// let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
///
/// // The arena and the state (buffers, mutated parameters) belong to an instance.
/// let mut instance = compiled.instance()?;
/// let outputs = instance.run(&inputs, &RunOptions::default())?;
/// let logits = outputs.values[0].tensor().expect("a tensor");
/// println!("{:?} {}", logits.layout().sizes, logits.get(&[0, 0]));
///
/// let saved = instance.state().deep_clone();
/// instance.run(&inputs, &RunOptions::default())?;
/// instance.set_state(saved);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Compiled(Arc<CompiledShared>);

struct CompiledShared {
    imported: Counts,
    program: Program,
    segments: Vec<Segment>,
    /// Per segment, the inputs that no run changes.
    unchanged: Vec<Vec<bool>>,
    constants: Arc<ConstantCache>,
    options: CompileOptions,
    functionalize: Duration,
    prepared: Mutex<VecDeque<(Key, Arc<PreparedSegment>)>>,
    bound: OnceLock<ArenaBound>,
    /// Where sizes may be 0 or 1; and what runs for sizes met before.
    symbolic: Option<SymbolicImport>,
    for_sizes: Mutex<VecDeque<ForSizes>>,
}

/// The values of symbols.
type SymbolValues = Vec<(String, [u64; 2])>;
/// A segment and the values of its symbols.
type Key = (usize, SymbolValues);

/// The values of all symbols; the values of those that are numbers in the program that runs for them, and the program; `None` for the
/// general one.
type ForSizes = (SymbolValues, Option<(SymbolValues, Compiled)>);

fn values_of(symbols: &Binding) -> SymbolValues {
    symbols.iter().map(|(s, v)| (s.name().to_string(), bits(*v))).collect()
}

impl Compiled {
    /// Makes a program functional. Where inputs are given, those among them that share storage are provided for; the
    /// result is specialised for their sharing. A program that is functional already is taken as it is.
    ///
    /// # Errors
    /// A call that eager PyTorch refuses, a mutation without a functional form, an unknown operator: with the node.
    pub fn new(program: Program, inputs: Option<&Inputs>, options: &CompileOptions) -> Result<Compiled> {
        Compiled::made(program, inputs, options, true)
    }

    /// As [`Compiled::new`], with one program for all sizes, for which plans are saved.
    pub(crate) fn of_all_sizes(program: Program, inputs: &Inputs, options: &CompileOptions) -> Result<Compiled> {
        Compiled::made(program, Some(inputs), options, false)
    }

    fn made(program: Program, inputs: Option<&Inputs>, options: &CompileOptions, units: bool) -> Result<Compiled> {
        options.progress.tell(Doing::Functionalizing);
        let sizes = inputs.map_or_else(|| Ok(Binding::new()), |i| sizes(&program, i))?;
        let imported = Counts::of(&program);
        let program = match inputs.map(|i| with_strides_of(&program, i, &sizes)).transpose()? {
            Some(Cow::Owned(relaid)) => relaid,
            _ => program,
        };
        let shares = inputs.map_or_else(Vec::new, |i| shares(&program, i));
        let shared = CompiledShared::of(&program, imported, shares.clone(), sizes, options)?;
        let symbolic = if units { SymbolicImport::of(program, shares) } else { None };
        Ok(Compiled(Arc::new(CompiledShared { symbolic, ..shared })))
    }

    /// The program for the sizes of a run's inputs: this one, or where dimensions have 0 or 1 elements for them, the program that
    /// takes these sizes as numbers. It has the strides and views that eager PyTorch gives such sizes. Runs choose it themselves.
    ///
    /// # Errors
    /// Inputs that do not fit.
    pub fn at(&self, inputs: &Inputs) -> Result<Compiled> {
        match &self.0.symbolic {
            None => Ok(self.clone()),
            Some(_) => Ok(self.bound(inputs, &State::new(self.functional())?)?.0),
        }
    }

    /// As [`Compiled::at`], with the inputs and the state bound to that program.
    pub(crate) fn bound(&self, inputs: &Inputs, state: &State) -> Result<(Compiled, BoundInputs)> {
        let bound = bind(self.functional(), inputs, state, Strides::AsDeclared)?;
        let found = self.at_sizes(&bound.symbols);
        if found.is(self) {
            return Ok((found, bound));
        }
        let bound = bind(found.functional(), inputs, state, Strides::AsDeclared)?;
        Ok((found, bound))
    }

    /// Whether both are the same program.
    pub(crate) fn is(&self, other: &Compiled) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// As [`Compiled::at`], by the values of the symbols.
    fn at_sizes(&self, symbols: &Binding) -> Compiled {
        let Some(symbolic) = &self.0.symbolic else { return self.clone() };
        // A plan from a file is of the general program.
        if self.0.options.saved.as_ref().is_some_and(|s| s.is_for(symbols)) {
            return self.clone();
        }
        let key = values_of(symbols);
        let lock = || self.0.for_sizes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let itself = |found: Option<Compiled>| found.unwrap_or_else(|| self.clone());
        if let Some((_, known)) = lock().iter().find(|known| known.0 == key) {
            return itself(known.as_ref().map(|k| k.1.clone()));
        }
        let units = symbolic.units(symbols);
        let of_units = values_of(&units);
        let known = lock().iter().filter_map(|k| k.1.clone()).find(|known| known.0 == of_units);
        let made = || {
            let (program, options) = (symbolic.with(&units), CompileOptions { saved: None, ..self.0.options.clone() });
            let (imported, shares) = (self.0.imported, symbolic.shares.clone());
            // What has no form of its own for these sizes runs as for larger ones.
            let shared = CompiledShared::of(&program, imported, shares, symbols.clone(), &options).ok()?;
            let shared = CompiledShared { constants: self.0.constants.clone(), ..shared };
            Some((of_units.clone(), Compiled(Arc::new(shared))))
        };
        let found = known.or_else(|| if units.is_empty() { None } else { made() });
        let mut all = lock();
        if all.len() >= KEPT {
            all.pop_front();
        }
        all.push_back((key, found.clone()));
        itself(found.map(|f| f.1))
    }

    /// The program without mutation.
    pub fn functional(&self) -> &Program {
        &self.0.program
    }

    /// The largest arena of any sizes within the ranges of their symbols: planned for the largest of each, plus the bytes by which
    /// interval arithmetic says that a size may exceed those. A plan made afterwards that would be larger is made again within
    /// the bound; a run of an instance that reserved the bound is refused where that fails.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, OpenOptions, UpperBound};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/dynamic_batch.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let compiled = Compiled::new(program, None, &CompileOptions::default())?;
    /// match compiled.upper_bound() {
    ///     UpperBound::Bytes(n) => println!("at most {n} bytes"),
    ///     UpperBound::Unknown(why) => println!("no bound: {why}"),
    /// }
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn upper_bound(&self) -> &UpperBound {
        let find = || {
            let static_sizes = self.functional().symbols.is_empty() && self.segments().len() == 1;
            let found = match static_sizes {
                true => self.segment(0, &Binding::new()).map(|s| ArenaBound::of_one(s.plan.arena_bytes)),
                false => ArenaBound::find(self.functional(), self.segments(), &self.0.unchanged, self.options()),
            };
            found.unwrap_or_else(|e| ArenaBound::unknown(e.to_string()))
        };
        &self.0.bound.get_or_init(find).most
    }

    /// The nodes whose results tell sizes, with their lines: values after one get their memory when it has run.
    pub fn learns(&self) -> Vec<String> {
        let graph = self.functional().graph();
        let one = |position: NodeId| {
            let node = &graph.nodes[position];
            let name = node.results.first().map_or_else(String::new, |r| format!("%{} = ", graph.values[*r].name));
            let line = node.origin.source_line().map_or_else(String::new, |l| format!(" ({l})"));
            format!("{name}{}{line}", node.op)
        };
        self.segments().iter().filter_map(|s| s.learn.as_ref()).map(|l| one(l.position)).collect()
    }

    pub(crate) fn imported(&self) -> Counts {
        self.0.imported
    }

    pub(crate) fn options(&self) -> &CompileOptions {
        &self.0.options
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.0.options.progress
    }

    pub(crate) fn functionalize_time(&self) -> Duration {
        self.0.functionalize
    }

    pub(crate) fn constants(&self) -> &ConstantCache {
        &self.0.constants
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0.segments
    }

    /// A segment prepared for a binding: remembered, or prepared now.
    pub(crate) fn segment(&self, at: usize, symbols: &Binding) -> Result<Arc<PreparedSegment>> {
        let key: Key = (at, values_of(symbols));
        let lock = || self.0.prepared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let remembered = lock().iter().find(|(k, _)| *k == key).map(|p| p.1.clone());
        if let Some(prepared) = remembered {
            return Ok(prepared);
        }
        let (program, constant) = (&self.0.segments[at].program, &self.0.unchanged[at][..]);
        let segment = Unprepared { number: at, program, constant };
        let prepared = Arc::new(prepare(&segment, symbols, &self.0.options, self.0.bound.get())?);
        let mut all = lock();
        if all.len() >= KEPT {
            all.pop_front();
        }
        all.push_back((key, prepared.clone()));
        Ok(prepared)
    }
}

impl CompiledShared {
    /// Makes a program functional, with the strides of its inputs and those that share storage.
    fn of(
        program: &Program,
        imported: Counts,
        shares: Vec<Share>,
        sizes: Binding,
        options: &CompileOptions,
    ) -> Result<CompiledShared> {
        let start = Instant::now();
        let given_functional = program.stage == Stage::Functional;
        let functional = functionalize(program, &FunctionalizeOptions { shares, sizes })?;
        let time = start.elapsed();
        if options.check || given_functional {
            options.progress.tell(Doing::Checking);
            restride_check::functional(&functional).map_err(|f| restride_check::error(&functional, &f))?;
        }
        let (functional, segments) = segments(functional)?;
        let unchanged = segments.iter().map(|s| unchanged_inputs(&functional, s, options.fold)).collect();
        Ok(CompiledShared {
            imported,
            program: functional,
            segments,
            unchanged,
            constants: Arc::default(),
            options: options.clone(),
            functionalize: time,
            prepared: Mutex::new(VecDeque::new()),
            bound: OnceLock::new(),
            symbolic: None,
            for_sizes: Mutex::new(VecDeque::new()),
        })
    }
}

fn bits(s: Scalar) -> [u64; 2] {
    match s {
        Scalar::Bool(b) => [0, u64::from(b)],
        Scalar::Int(i) => [1, i as u64],
        Scalar::Float(x) => [2, x.to_bits()],
        Scalar::Complex(z) => [z.re.to_bits(), z.im.to_bits()],
    }
}
