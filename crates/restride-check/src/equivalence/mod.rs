//! Equivalence of a functional program and the imported one.
//!
//! # What is proved
//! Both programs run on names instead of numbers (`replay`): the imported one with true storages, aliases and writes as in
//! eager PyTorch, the functional one value by value. The name of a byte is the call that computes it with the names of all
//! arguments, hash-consed (`names`); moved elements keep their names (`cells`). [`equivalence`] compares the names of every
//! user output and of every byte of every input's storage afterwards, and the cells of outputs that are declared views of
//! an input or of each other. Equal names are equal values for all inputs.
//!
//! # What is trusted
//! Declarations: schemas, view rules, element maps, functional twins, shape functions, pointwise and random operators.
//! Equal names give equal results: kernels do not look at memory.
//!
//! # What is not covered
//! Unknown sizes, unless bound before. Writes through bodies of `while_loop`, `scan` and `map`, and unrolled loops with
//! other results. Writes to tensors with several elements in one cell, if they have more than 256 elements or the operator
//! is not pointwise. Writes to a branch's result, if only one branch returns an operand's memory, and sharing between such
//! outputs. These give [`Equivalence::Undecided`] with the reason: neither accepted nor accused. Different calls that
//! compute the same value have different names, so the checker may accuse a right program if a pass did more than move,
//! split and rename.

mod bodies;
mod cells;
mod names;
mod replay;
mod terms;
mod writes;

use crate::{Fault, FaultKind};
use names::{TermKey, TermTable};
use replay::{Replay, ReplayTensor, ReplayValue, whole};
use restride_ir::{
    AliasRoot, Arg, Expr, GraphId, Hop, InputKind, Layout, LazyBits, Meta, NodeId, Op, OutputKind, Program, Type,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Operators that reads and writes of memory apply.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOps {
    /// Converts argument 0 to the element type of argument 1, as a write to another type does (`_to_copy`).
    pub cast: Op,
    /// Copies argument 1 in argument 0's sizes and type (`copy`).
    pub copy: Op,
    /// Applies the lazy conjugate bit (`conj_physical`).
    pub conj: Op,
    /// Applies the lazy negative bit (`neg`).
    pub neg: Op,
    /// Makes memory larger (`constant_pad_nd`).
    pub pad: Op,
}

/// Place of an input.
#[derive(Clone, PartialEq, Debug)]
pub struct InputPlace {
    /// Storage; equal for inputs that share one.
    pub storage: usize,
    /// Bytes of the storage.
    pub bytes: i64,
    /// Layout on it, in elements of the input's type.
    pub layout: Layout,
}

/// Answer of the checker for programs that it does not accuse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Equivalence {
    /// Equivalent.
    Same,
    /// Undecided, with the reason.
    Undecided(String),
}

/// End of a replay.
#[derive(Clone, Debug)]
pub(crate) enum ReplayStop {
    /// A program beyond the checker.
    Undecided(String),
    /// A wrong program.
    Fault(String),
    /// One of these at a node.
    At(Box<ReplayStop>, GraphId, NodeId),
}

impl ReplayStop {
    fn at(self, graph: GraphId, node: NodeId) -> ReplayStop {
        match self {
            at @ ReplayStop::At(..) => at,
            other => ReplayStop::At(Box::new(other), graph, node),
        }
    }
}

/// Budget of elements and runs; a program beyond it is undecided.
const BUDGET: u64 = 200_000_000;

/// Compares a functional program with the imported one. Sizes are known in both; `inputs` has the place of each tensor
/// input of the imported program.
///
/// # Errors
/// The outputs and inputs that differ, each with its first differing element and the names in both programs.
pub fn equivalence(
    imported: &Program,
    functional: &Program,
    inputs: &[Option<InputPlace>],
    known: &MemoryOps,
) -> Result<Equivalence, Vec<Fault>> {
    let fault = |program: &Program, stop: ReplayStop| match stop {
        ReplayStop::Undecided(why) => Ok(Equivalence::Undecided(why)),
        ReplayStop::Fault(what) => Err(vec![plain(what)]),
        ReplayStop::At(inner, graph, node) => match *inner {
            ReplayStop::Undecided(why) => {
                let g = &program.graphs[graph];
                let name = g.nodes[node].results.first().map_or_else(|| "?".into(), |r| g.values[*r].name.to_string());
                Ok(Equivalence::Undecided(format!("{why} (at %{name})")))
            }
            other => Err(vec![Fault { graph: Some(graph), node: Some(node), ..plain(format!("{other:?}")) }]),
        },
    };
    let mut names = TermTable::default();
    let (before, after) = match (
        Side::run(imported, inputs, known, &mut names),
        // Places of the imported program's inputs hold for the functional one's.
        Side::run(functional, &functional_inputs(functional, inputs), known, &mut names),
    ) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(stop), _) => return fault(imported, stop),
        (_, Err(stop)) => return fault(functional, stop),
    };
    match compare(imported, functional, inputs, &before, &after, known, &mut names) {
        Ok(faults) if faults.is_empty() => Ok(Equivalence::Same),
        // The imported loop writes in its body: it is named as a function, which the unrolled program does not have.
        Ok(_) if loops(imported) > loops(functional) => Ok(Equivalence::Undecided("a loop was unrolled".into())),
        Ok(faults) => Err(faults.into_iter().map(plain).collect()),
        Err(stop) => fault(functional, stop),
    }
}

/// Number of loops in the graphs reachable from the main one.
fn loops(program: &Program) -> usize {
    let is_loop = |n: &restride_ir::Node| matches!(n.op.def().hop, Some(Hop::WhileLoop | Hop::Scan | Hop::Map));
    let graphs = restride_ir::callees_first(program).unwrap_or_default();
    graphs.into_iter().flat_map(|g| program.graphs[g].ordered()).filter(|(_, n)| is_loop(n)).count()
}

fn plain(what: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Meaning, None, what)
}

/// Places of the functional program's inputs: the imported program's, and flat storages.
fn functional_inputs(functional: &Program, inputs: &[Option<InputPlace>]) -> Vec<Option<InputPlace>> {
    let all = functional.signature.inputs.iter().enumerate();
    all.map(|(i, spec)| match &spec.kind {
        InputKind::Storage(members) => {
            let of = members.first().and_then(|m| inputs.get(*m)).cloned().flatten()?;
            let ty = functional.graph().values[spec.value].ty.tensor()?.known()?;
            Some(InputPlace { layout: ty.layout, ..of })
        }
        _ => inputs.get(i).cloned().flatten(),
    })
    .collect()
}

/// A program after its replay.
struct Side {
    /// Storages of the inputs, after the replay.
    storages: BTreeMap<usize, Rc<RefCell<cells::StorageCells>>>,
    outputs: Vec<Arg<ReplayValue, Expr>>,
    learned: BTreeMap<String, names::Byte>,
    /// Storages that may or may not be one.
    uncertain: Vec<Rc<RefCell<cells::StorageCells>>>,
}

impl Side {
    fn run(
        program: &Program,
        places: &[Option<InputPlace>],
        known: &MemoryOps,
        names: &mut TermTable,
    ) -> Result<Side, ReplayStop> {
        let mut storages: BTreeMap<usize, Rc<RefCell<cells::StorageCells>>> = BTreeMap::new();
        let mut inputs = Vec::new();
        for (i, spec) in program.signature.inputs.iter().enumerate() {
            inputs.push(match (&program.graph().values[spec.value].ty, places.get(i)) {
                (Type::Tensor(ty), Some(Some(at))) => {
                    let shared = storages
                        .entry(at.storage)
                        .or_insert_with(|| whole(names, TermKey::Input(at.storage), at.bytes))
                        .clone();
                    // Values of a functional program do not share memory.
                    let cells = match program.stage {
                        restride_ir::Stage::Imported => shared,
                        restride_ir::Stage::Functional => whole(names, TermKey::Input(at.storage), at.bytes),
                    };
                    ReplayValue::new(ReplayTensor {
                        cells,
                        dtype: ty.dtype,
                        layout: at.layout.clone(),
                        bits: LazyBits::default(),
                    })
                }
                (Type::Tensor(_), _) => {
                    return Err(ReplayStop::Undecided(format!("the place of input {i} is unknown")));
                }
                (Type::Scalar(e), _) => ReplayValue::Number(e.clone()),
                (Type::None, _) => ReplayValue::Other("None".into()),
                (other, _) => ReplayValue::Other(format!("{other:?}")),
            });
        }
        let mut replay =
            Replay { program, names, known, learned: BTreeMap::new(), depth: 0, uncertain: Vec::new(), budget: BUDGET };
        let outputs = replay.graph(program.main, &inputs)?;
        // A program may declare new contents of its inputs instead of writing them.
        for (spec, out) in program.signature.outputs.iter().zip(&outputs) {
            let (OutputKind::Mutation(i), Arg::Value(ReplayValue::Tensor(value))) = (&spec.kind, out) else { continue };
            let Some(Some(at)) = places.get(*i) else { continue };
            let value = value.borrow().clone();
            let runs = replay.read(&value)?;
            if let Some(cells) = storages.get(&at.storage) {
                cells.borrow_mut().write(&at.layout, value.dtype.size(), &runs);
            }
        }
        Ok(Side { outputs, learned: replay.learned, uncertain: replay.uncertain, storages })
    }
}

fn compare(
    imported: &Program,
    functional: &Program,
    places: &[Option<InputPlace>],
    before: &Side,
    after: &Side,
    known: &MemoryOps,
    names: &mut TermTable,
) -> Result<Vec<String>, ReplayStop> {
    let mut checker = Replay {
        program: functional,
        names,
        known,
        learned: after.learned.clone(),
        depth: 0,
        uncertain: Vec::new(),
        budget: BUDGET,
    };
    let mut faults = Vec::new();
    // Storages after the functional program, by its declared contents.
    let mut storages: BTreeMap<usize, cells::StorageCells> = BTreeMap::new();
    let at = functional_inputs(functional, places);
    for l in at.iter().flatten() {
        storages
            .entry(l.storage)
            .or_insert_with(|| whole(checker.names, TermKey::Input(l.storage), l.bytes).borrow().clone());
    }
    for (spec, out) in functional.signature.outputs.iter().zip(&after.outputs) {
        let (OutputKind::Mutation(i), Arg::Value(ReplayValue::Tensor(value))) = (&spec.kind, out) else { continue };
        let Some(Some(l)) = at.get(*i) else { continue };
        let value = value.borrow().clone();
        let runs = checker.read(&value)?;
        if let Some(cells) = storages.get_mut(&l.storage) {
            cells.write(&l.layout, value.dtype.size(), &runs);
        }
    }
    for (storage, truth) in &before.storages {
        let Some(claimed) = storages.get_mut(storage) else { continue };
        let Some(i) = places.iter().position(|l| l.as_ref().is_some_and(|l| l.storage == *storage)) else { continue };
        let flat = Layout::contiguous(&[places[i].as_ref().map_or(0, |l| l.bytes)]);
        let (want, got) = (truth.borrow_mut().read(checker.names, &flat, 1), claimed.read(checker.names, &flat, 1));
        if let (Some(want), Some(got)) = (want, got)
            && let Some(k) = first_difference(&want, &got)
        {
            let name = &imported.graph().values[imported.signature.inputs[i].value].name;
            faults
                .push(format!("byte {k} of the storage of input %{name} is {}", words(checker.names, &want, &got, k)));
        }
    }
    let users = |p: &Program, side: &Side| -> Vec<(usize, Arg<ReplayValue, Expr>)> {
        let kinds = p.signature.outputs.iter().zip(&side.outputs).enumerate();
        kinds
            .filter(|(_, (s, _))| matches!(s.kind, OutputKind::User | OutputKind::Loss))
            .map(|(k, (_, o))| (k, o.clone()))
            .collect()
    };
    let (want, got) = (users(imported, before), users(functional, after));
    let mut memory = Sharing::default();
    if want.len() != got.len() {
        faults.push(format!("{} user outputs instead of {}", got.len(), want.len()));
    }
    for (k, ((_, want), (position, got))) in want.iter().zip(&got).enumerate() {
        match (want, got) {
            (Arg::Value(ReplayValue::Tensor(w)), Arg::Value(ReplayValue::Tensor(g))) => {
                let (w, g) = (w.borrow().clone(), g.borrow().clone());
                if w.dtype != g.dtype || w.layout.sizes != g.layout.sizes {
                    faults.push(format!("output {k} is {}, not {}", meta(&g), meta(&w)));
                    continue;
                }
                let (a, b) = (checker.read(&w)?, checker.read(&g)?);
                if let Some(i) = first_difference(&a, &b) {
                    faults.push(format!("element {i} of output {k} is {}", words(checker.names, &a, &b, i)));
                }
                if before.uncertain.iter().any(|c| Rc::ptr_eq(c, &w.cells)) {
                    continue;
                }
                let alias = functional.signature.outputs[*position].alias.as_ref();
                // Inputs on one storage are one root, merged or not.
                let storage = |i: usize| at.get(i).and_then(Option::as_ref).map(|l| l.storage);
                let own = alias.map_or(OutputRoot::Own(k), |a| match a.root {
                    AliasRoot::Input(i) => storage(i).map_or(OutputRoot::Of(a.root), OutputRoot::Given),
                    AliasRoot::Base(_) => OutputRoot::Of(a.root),
                });
                // A lazily mapped output is returned resolved. A functional program declares its own sharing.
                let said = imported.stage == restride_ir::Stage::Functional;
                if !said && w.bits.is_clear() && !memory.fits(Rc::as_ptr(&w.cells) as usize, own) {
                    faults.push(format!(
                        "output {k} shares memory with another output where eager's does not, or does not"
                    ));
                }
                if let Some(alias) = alias {
                    let on = match alias.root {
                        AliasRoot::Input(i) => at.get(i).and_then(Option::as_ref).map(|l| l.storage),
                        AliasRoot::Base(_) => None,
                    };
                    let truth = on.and_then(|s| before.storages.get(&s));
                    let layout = alias.layout.known().filter(|l| l.same_cells(&w.layout) && alias.dtype == w.dtype);
                    let (Some(layout), false) = (layout, truth.is_some_and(|t| !Rc::ptr_eq(t, &w.cells))) else {
                        faults.push(format!("output {k} is said to be a view that eager's is not"));
                        continue;
                    };
                    // A run returns the memory that it wrote, not the value that the graph computes beside it.
                    let mut root = match (on, alias.root) {
                        (Some(s), _) => storages.get(&s).cloned(),
                        (None, AliasRoot::Base(b)) => match after.outputs.get(b) {
                            Some(Arg::Value(ReplayValue::Tensor(base))) => {
                                let base = base.borrow().clone();
                                let runs = checker.read(&base)?;
                                Some(checker.fresh(&meta(&base), &runs).cells.borrow().clone())
                            }
                            _ => None,
                        },
                        _ => None,
                    };
                    let shown = root.as_mut().and_then(|r| r.read(checker.names, &layout, w.dtype.size()));
                    match shown.map(|r| (first_difference(&a, &r), r)) {
                        Some((None, _)) => {}
                        Some((Some(i), r)) => {
                            let what = words(checker.names, &a, &r, i);
                            faults.push(format!("element {i} of output {k}, as a view, is {what}"));
                        }
                        None => faults.push(format!("output {k} is a view of memory that nothing was put in")),
                    }
                }
            }
            (a, b) => {
                checker.learned.clone_from(&before.learned);
                let x = checker.given(a, false)?;
                checker.learned.clone_from(&after.learned);
                if x != checker.given(b, false)? {
                    faults.push(format!("output {k} is another number"));
                }
            }
        }
    }
    Ok(faults)
}

/// Declared storage of an output.
#[derive(Clone, Copy, PartialEq, Debug)]
enum OutputRoot {
    Given(usize),
    Of(AliasRoot),
    Own(usize),
}

/// Pairs of eager's storage and declared storage of outputs, one to one.
#[derive(Default)]
struct Sharing(Vec<(usize, OutputRoot)>);

impl Sharing {
    fn fits(&mut self, storage: usize, root: OutputRoot) -> bool {
        match self.0.iter().find(|(s, r)| *s == storage || *r == root) {
            Some(found) => *found == (storage, root),
            None => {
                self.0.push((storage, root));
                true
            }
        }
    }
}

fn meta(t: &ReplayTensor) -> Meta {
    Meta::new(t.dtype, t.layout.clone())
}

fn first_difference(a: &cells::Runs, b: &cells::Runs) -> Option<i64> {
    if a == b {
        return None;
    }
    (0..a.len().max(b.len())).find(|&i| a.at(i) != b.at(i))
}

fn words(names: &TermTable, want: &cells::Runs, got: &cells::Runs, i: i64) -> String {
    let show = |r: &cells::Runs| r.at(i).map_or_else(|| "nothing".to_string(), |b| names.show(b));
    format!("{}, not {}", show(got), show(want))
}
