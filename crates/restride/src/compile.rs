//! Compiling: from an imported program to one that is placed, planned and checked for the sizes that it meets.

use crate::bound::Bound;
use crate::budget::within;
use crate::given::laid_as_given;
use crate::instance::Instance;
use crate::progress::{Doing, Progress};
use crate::report::Counts;
use restride_exec::inputs::{Strides, bind};
use restride_exec::run::Runnable;
use restride_exec::{Inputs, State};
use restride_ir::{Binding, Error, ErrorKind, NodeId, Placement, Plan, Program, Remark, Result, Scalar, Stage, Table};
use restride_passes::functionalize::{Options as FunctionalizeOptions, Share};
use restride_passes::place::{PlaceOptions, Placed, cost};
use restride_passes::plan::{MemorySpec, PlanOptions, plan_memories};
use restride_passes::recompute::{Again, again};
use restride_passes::segment::{Segment, segments};
use restride_passes::{functionalize, lower, order, place, plan::plan, simplify, specialize};
use restride_pt2::placed::SavedPlan;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Placements kept for sizes met before; the oldest goes first.
const KEPT: usize = 64;

/// What compiling may do.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// Run the checkers on what this process decides (on by default). What comes from a file (a functional program, a saved
    /// plan) is checked whatever this says.
    pub check: bool,
    /// Change the order of nodes where that makes the arena smaller (on by default).
    pub order: bool,
    /// The arena may have at most so many bytes: what is cheap is computed again instead of kept where it would have more. What
    /// cannot be met is an error that says why.
    pub budget: Option<i64>,
    /// What placement may do.
    pub place: PlaceOptions,
    /// What the memory plan may do.
    pub plan: PlanOptions,
    /// The memories that the arena consists of, fastest first; none for a single one. What they have no room for is an error.
    pub memories: Vec<MemorySpec>,
    /// Fill memory with NaN bytes where nothing may be read, at every run: for tests.
    pub poison: bool,
    /// Who is told what is going on.
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
pub struct Compiled(Arc<Shared>);

struct Shared {
    imported: Counts,
    program: Program,
    segments: Vec<Segment>,
    options: CompileOptions,
    functionalize: Duration,
    cache: Mutex<VecDeque<(Key, Arc<Piece>)>>,
    bound: OnceLock<Bound>,
}

/// A segment and the values of its symbols.
type Key = (usize, Vec<(String, [u64; 2])>);

/// A segment, made for certain sizes.
pub(crate) struct Piece {
    /// Functional, with known sizes, all operators with kernels; some nodes several times where memory is short.
    pub program: Program,
    /// Where some nodes run again: the nodes that run, by their positions before.
    pub sequence: Option<Vec<usize>>,
    /// Where values live.
    pub placement: Placement,
    /// Offsets in the arena.
    pub plan: Plan,
    /// Decisions of the placement.
    pub remarks: Vec<Remark>,
    /// What runs it.
    pub runnable: Arc<Runnable>,
    /// What making it took.
    pub times: Times,
}

impl Compiled {
    /// Makes a program functional. Where inputs are given, those among them that share storage are provided for; the
    /// result is specialised for their sharing. A program that is functional already is taken as it is.
    ///
    /// # Errors
    /// What eager PyTorch refuses, what has no functional form, an operator that is not known: with the node.
    pub fn new(program: Program, inputs: Option<&Inputs>, options: &CompileOptions) -> Result<Compiled> {
        options.progress.tell(Doing::Functionalizing);
        let imported = Counts::of(&program);
        let given_functional = program.stage == Stage::Functional;
        let start = Instant::now();
        let sizes = inputs.map_or_else(|| Ok(Binding::new()), |i| sizes(&program, i))?;
        let program = match inputs.map(|i| laid_as_given(&program, i, &sizes)).transpose()? {
            Some(Cow::Owned(relaid)) => relaid,
            _ => program,
        };
        let shares = inputs.map_or_else(Vec::new, |i| shares(&program, i));
        let functional = functionalize(&program, &FunctionalizeOptions { shares, sizes })?;
        let time = start.elapsed();
        if options.check || given_functional {
            options.progress.tell(Doing::Checking);
            restride_check::functional(&functional).map_err(|f| restride_check::error(&functional, &f))?;
        }
        let segments = segments(&functional);
        Ok(Compiled(Arc::new(Shared {
            imported,
            program: functional,
            segments,
            options: options.clone(),
            functionalize: time,
            cache: Mutex::new(VecDeque::new()),
            bound: OnceLock::new(),
        })))
    }

    /// The program without mutation.
    pub fn functional(&self) -> &Program {
        &self.0.program
    }

    /// A fresh arena and the state that the program was exported with.
    ///
    /// # Errors
    /// A weight that does not fit its storage.
    pub fn instance(&self) -> Result<Instance> {
        Ok(Instance::new(self.clone(), State::new(&self.0.program)?))
    }

    pub(crate) fn imported(&self) -> Counts {
        self.0.imported
    }

    pub(crate) fn options(&self) -> &CompileOptions {
        &self.0.options
    }

    pub(crate) fn checks(&self) -> bool {
        self.0.options.check
    }

    pub(crate) fn progress(&self) -> &Progress {
        &self.0.options.progress
    }

    pub(crate) fn functionalize_time(&self) -> Duration {
        self.0.functionalize
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0.segments
    }

    pub(crate) fn bound(&self, find: impl FnOnce() -> Bound) -> &Bound {
        self.0.bound.get_or_init(find)
    }

    /// A segment made for the sizes of a binding: remembered, or made now.
    pub(crate) fn piece(&self, at: usize, symbols: &Binding) -> Result<Arc<Piece>> {
        let key: Key = (at, symbols.iter().map(|(s, v)| (s.name().to_string(), bits(*v))).collect());
        let remembered =
            |cache: &VecDeque<(Key, Arc<Piece>)>| cache.iter().find(|(k, _)| *k == key).map(|p| p.1.clone());
        let lock = || self.0.cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(piece) = remembered(&lock()) {
            return Ok(piece);
        }
        let program = &self.0.segments[at].program;
        let mut piece = make(at, program, symbols, &self.0.options)?;
        // What was said to be enough is enough.
        if let Some(bound) = self.0.bound.get()
            && let Some(most) = bound.most.bytes()
            && piece.plan.arena_bytes > most
        {
            // As at the largest sizes, or computing some values again. Else a run says that it needs more.
            let options = CompileOptions { budget: Some(most), saved: None, ..self.0.options.clone() };
            piece = match laid_as_largest(bound, at, program, symbols, &self.0.options) {
                Some(smaller) => smaller,
                None => make(at, program, symbols, &options).unwrap_or(piece),
            };
        }
        let piece = Arc::new(piece);
        let mut cache = lock();
        if cache.len() >= KEPT {
            cache.pop_front();
        }
        cache.push_back((key, piece.clone()));
        Ok(piece)
    }
}

/// A segment made for a binding with its buffers where they are at the largest sizes, if that is within the bound.
fn laid_as_largest(
    bound: &Bound,
    at: usize,
    program: &Program,
    symbols: &Binding,
    options: &CompileOptions,
) -> Option<Piece> {
    let mut times = Times::default();
    let options = &CompileOptions { saved: None, ..options.clone() };
    let Attempt { program, placed, plan } = attempt(lowered(program, symbols).ok()?, options, &mut times).ok()?;
    let plan = bound.at_largest.get(at)?.fitted(&program, &placed.placement, plan)?;
    let made = Made { program, sequence: None, placement: placed.placement, plan, remarks: placed.remarks };
    finish(made, options, times, |error| error).ok().filter(|piece| bound.most.bytes() >= Some(piece.plan.arena_bytes))
}

fn bits(s: Scalar) -> [u64; 2] {
    match s {
        Scalar::Bool(b) => [0, u64::from(b)],
        Scalar::Int(i) => [1, i as u64],
        Scalar::Float(x) => [2, x.to_bits()],
        Scalar::Complex(z) => [z.re.to_bits(), z.im.to_bits()],
    }
}

fn make(segment: usize, program: &Program, symbols: &Binding, options: &CompileOptions) -> Result<Piece> {
    let mut times = Times::default();
    options.progress.tell(Doing::Simplifying);
    let program = timed(&mut times.simplify, || lowered(program, symbols))?;
    let fits = |s: &&Arc<SavedPlan>| options.budget.is_none_or(|most| s.arena_bytes() <= most);
    let own_memories = options.memories.is_empty();
    let saved = options.saved.as_ref().filter(|s| own_memories && s.is_for(symbols)).filter(fits);
    let made = match saved {
        Some(saved) => taken_over(saved, segment, program)?,
        None => made(program, options, &mut times)?,
    };
    let blame = |error: Error| match saved {
        Some(_) => Error { kind: ErrorKind::File, ..error }
            .help("the plan beside the program is not a plan for it: compile the program again"),
        None => error,
    };
    // What another process wrote is never trusted.
    let options = &CompileOptions { check: options.check || saved.is_some(), ..options.clone() };
    finish(made, options, times, blame)
}

/// Checks what was made, and makes the steps that run.
fn finish(made: Made, options: &CompileOptions, mut times: Times, blame: impl Fn(Error) -> Error) -> Result<Piece> {
    let Made { program, sequence, placement, plan, remarks } = made;
    if options.check {
        options.progress.tell(Doing::Checking);
        timed(&mut times.check, || {
            restride_check::placement(&program, &placement)?;
            restride_check::plan(&program, &placement, &plan)
        })
        .map_err(|faults| blame(restride_check::error(&program, &faults)))?;
    }
    options.progress.tell(Doing::Preparing);
    let mut runnable = prepared(&program, &placement, &plan).map_err(&blame)?;
    if options.poison {
        runnable = runnable.poisoned();
    }
    Ok(Piece { program, sequence, placement, plan, remarks, runnable: Arc::new(runnable), times })
}

/// What runs a program as it was placed and planned.
#[allow(unsafe_code)]
fn prepared(program: &Program, placement: &Placement, plan: &Plan) -> Result<Runnable> {
    // SAFETY: the one caller had both checked, or made them itself and was told not to check its own work.
    unsafe { Runnable::new(program, placement.clone(), plan.clone()) }
}

/// A program for certain sizes, all operators with kernels.
pub(crate) fn lowered(program: &Program, symbols: &Binding) -> Result<Program> {
    simplify(&lower(&specialize(program, symbols))?)
}

/// A program with the decisions about its memory.
struct Made {
    program: Program,
    sequence: Option<Vec<usize>>,
    placement: Placement,
    plan: Plan,
    remarks: Vec<Remark>,
}

fn taken_over(saved: &SavedPlan, segment: usize, program: Program) -> Result<Made> {
    let (mut program, mut remarks, mut sequence) = (program, Vec::new(), None);
    if let Some(nodes) = saved.sequence(segment, &program)? {
        sequence = Some(positions(&program, &nodes));
        Again { program, remarks } = again(&program, &nodes).map_err(|e| Error { kind: ErrorKind::File, ..e })?;
    }
    let (placement, plan) = saved.segment(segment, &program)?;
    Ok(Made { program, sequence, placement, plan, remarks })
}

fn made(program: Program, options: &CompileOptions, times: &mut Times) -> Result<Made> {
    let best = smallest(&program, options, times)?;
    match options.budget {
        Some(most) if best.plan.arena_bytes > most => {
            let within = within(best, most, options, times)?;
            let sequence = positions(&program, &within.sequence);
            let Attempt { program, placed, plan } = within.attempt;
            let remarks = placed.remarks.into_iter().chain(within.remarks).collect();
            Ok(Made { program, sequence: Some(sequence), placement: placed.placement, plan, remarks })
        }
        _ => {
            let (placement, remarks) = (best.placed.placement, best.placed.remarks);
            Ok(Made { program, sequence: None, placement, plan: best.plan, remarks })
        }
    }
}

/// Where nodes are in a program's order.
fn positions(program: &Program, nodes: &[NodeId]) -> Vec<usize> {
    let mut at: Table<NodeId, usize> = Table::new();
    program.graph().order.iter().enumerate().for_each(|(k, id)| at.set(*id, k));
    nodes.iter().map(|id| at[*id]).collect()
}

/// A program, placed and planned.
pub(crate) struct Attempt {
    /// With its nodes in the order in which they were placed.
    pub program: Program,
    pub placed: Placed,
    pub plan: Plan,
}

/// Places and plans a program as it is.
pub(crate) fn attempt(program: Program, options: &CompileOptions, times: &mut Times) -> Result<Attempt> {
    options.progress.tell(Doing::Placing);
    let placed = timed(&mut times.place, || place(&program, &options.place))?;
    options.progress.tell(Doing::Planning);
    let (graph, placement) = (program.graph(), &placed.placement);
    let plan = timed(&mut times.plan, || match &options.memories[..] {
        [] => Ok(plan(graph, placement, &options.plan)),
        memories => plan_memories(graph, placement, &options.plan, memories),
    })?;
    Ok(Attempt { program, placed, plan })
}

/// Places and plans a program as it is, and in another order of nodes, which is taken if the arena is smaller in it and no more
/// bytes are moved. The order is that of the steps.
fn smallest(program: &Program, options: &CompileOptions, times: &mut Times) -> Result<Attempt> {
    let first = attempt(program.clone(), options, times)?;
    if !options.order || first.plan.arena_bytes == 0 {
        return Ok(first);
    }
    let Some(other) = order(program) else { return Ok(first) };
    let second = attempt(other, options, times)?;
    let moved = |a: &Attempt| cost(program, &a.placed.placement).0;
    let needs = |a: &Attempt| (a.plan.spilled(), a.plan.arena_bytes);
    let better = needs(&second) < needs(&first) && moved(&second) <= moved(&first);
    Ok(if better { second } else { first })
}

fn timed<T>(into: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let out = work();
    *into += start.elapsed();
    out
}

/// What the inputs say of the program's symbols.
pub(crate) fn sizes(program: &Program, inputs: &Inputs) -> Result<Binding> {
    if program.symbols.is_empty() {
        return Ok(Binding::new());
    }
    Ok(bind(program, inputs, &State::new(program)?, Strides::Any)?.symbols)
}

/// User inputs by storage, with how they lie on it. Inputs that share it without touching the same cells are
/// shares, too: the program may reach further than an input shows.
pub(crate) fn shares(program: &Program, inputs: &Inputs) -> Vec<Share> {
    let positions: Vec<usize> = restride_exec::inputs::user_inputs(program).map(|(i, _)| i).collect();
    let mut by_storage: Vec<(usize, Share)> = Vec::new();
    for (&position, value) in positions.iter().zip(&inputs.values) {
        let Some(t) = value.tensor() else { continue };
        let layout = (t.layout().strides.clone(), t.layout().offset);
        match by_storage.iter_mut().find(|(id, _)| *id == t.storage().id()) {
            Some((_, share)) => {
                share.inputs.push(position);
                share.layouts.push(layout);
            }
            None => {
                let share = Share { inputs: vec![position], bytes: t.storage().len() as i64, layouts: vec![layout] };
                by_storage.push((t.storage().id(), share));
            }
        }
    }
    by_storage.into_iter().map(|(_, s)| s).collect()
}
