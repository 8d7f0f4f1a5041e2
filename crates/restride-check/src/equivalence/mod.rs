//! Whether a functional program means what the imported one means.
//!
//! # What is proved
//! Both programs are run on names instead of numbers (`replay`): the imported one with true storages, aliases and writes as
//! eager PyTorch has them, the functional one value by value. Every byte is named by the call that computes it and the names
//! of all that the call is given, hash-consed (`names`); moved elements keep their names (`cells`). [`equivalence`] holds that
//! every user output, and every byte of every input's storage afterwards, has the same name in both, and that outputs which
//! are said to be views of an input, or of each other, lie in exactly the cells that eager's lie in. Equal names
//! are equal values for all inputs.
//!
//! # What is trusted
//! Declarations: schemas, view rules, element maps, functional twins, shape rules, which operators work element by element
//! and which draw random numbers. That a call gives the same for the same names (kernels do not look at memory).
//!
//! # What is not covered
//! Programs with sizes that are not known, unless bound before; writes through bodies of `while_loop`, `scan` and
//! `map`, and other loops that a pass has unrolled where what they give differs; writes into tensors with several
//! elements in one cell of more than 256 elements or by operators that are not element by element; writes into what a branch returned, where only one branch returns an operand's memory, and whether
//! outputs share that memory. Such programs are [`Equivalence::Undecided`], with the reason: not
//! accepted, not accused. Different calls that compute the same are different names: the judge may accuse a program that is
//! right, if a pass did more than move, split and rename.

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

/// Operators that memory itself applies.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOps {
    /// Converts argument 0 to the element type of argument 1: what a write into another type does (`_to_copy`).
    pub cast: Op,
    /// Argument 1 in argument 0's sizes and type (`copy`).
    pub copy: Op,
    /// What reads and writes through the lazy conjugate bit (`conj_physical`).
    pub conj: Op,
    /// And through the negative bit (`neg`).
    pub neg: Op,
}

/// Where an input lies.
#[derive(Clone, PartialEq, Debug)]
pub struct InputPlace {
    /// Which storage; equal for inputs that share one.
    pub storage: usize,
    /// Bytes of the storage.
    pub bytes: i64,
    /// Layout on it, in elements of the input's type.
    pub layout: Layout,
}

/// What the judge says of programs that do not differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Equivalence {
    /// They mean the same.
    Same,
    /// It cannot tell, for this reason.
    Undecided(String),
}

/// Why a replay ends.
#[derive(Clone, Debug)]
pub(crate) enum ReplayStop {
    /// Not a program that can be judged.
    Undecided(String),
    /// Something is wrong with the program.
    Fault(String),
    /// The same, at a node.
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

/// Work after which a program is too large: elements and stretches of elements looked at.
const BUDGET: u64 = 200_000_000;

/// Judges a functional program by the imported one. Sizes are known in both; `inputs` says of each input of the imported
/// program that is a tensor where it lies.
///
/// # Errors
/// Which output or input differs, in which element, and what it is in each.
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
        // What the imported program says of an input holds for the functional one's.
        Side::run(functional, &functional_inputs(functional, inputs), known, &mut names),
    ) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(stop), _) => return fault(imported, stop),
        (_, Err(stop)) => return fault(functional, stop),
    };
    match compare(imported, functional, inputs, &before, &after, known, &mut names) {
        Ok(faults) if faults.is_empty() => Ok(Equivalence::Same),
        // Whose body writes: the imported program's is named as a function, and no such name is left.
        Ok(_) if loops(imported) > loops(functional) => Ok(Equivalence::Undecided("a loop was unrolled".into())),
        Ok(faults) => Err(faults.into_iter().map(plain).collect()),
        Err(stop) => fault(functional, stop),
    }
}

/// Calls of loops in the graphs that the main one reaches.
fn loops(program: &Program) -> usize {
    let is_loop = |n: &restride_ir::Node| matches!(n.op.def().hop, Some(Hop::WhileLoop | Hop::Scan | Hop::Map));
    let graphs = restride_ir::callees_first(program).unwrap_or_default();
    graphs.into_iter().flat_map(|g| program.graphs[g].ordered()).filter(|(_, n)| is_loop(n)).count()
}

fn plain(what: impl Into<String>) -> Fault {
    Fault {
        kind: FaultKind::Meaning,
        graph: None,
        step: None,
        node: None,
        value: None,
        place: None,
        element: None,
        what: what.into(),
    }
}

/// Where the functional program's inputs lie: the imported one's, and flat storages.
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

/// A program after its run.
struct Side {
    /// The storages that it was given, as it left them.
    storages: BTreeMap<usize, Rc<RefCell<cells::StorageCells>>>,
    outputs: Vec<Arg<ReplayValue, Expr>>,
    learned: BTreeMap<String, names::Byte>,
    /// Storages of which it is not known whether they are one.
    uncertain: Vec<Rc<RefCell<cells::StorageCells>>>,
}

impl Side {
    fn run(
        program: &Program,
        lies: &[Option<InputPlace>],
        known: &MemoryOps,
        names: &mut TermTable,
    ) -> Result<Side, ReplayStop> {
        let mut storages: BTreeMap<usize, Rc<RefCell<cells::StorageCells>>> = BTreeMap::new();
        let mut inputs = Vec::new();
        for (i, spec) in program.signature.inputs.iter().enumerate() {
            inputs.push(match (&program.graph().values[spec.value].ty, lies.get(i)) {
                (Type::Tensor(ty), Some(Some(at))) => {
                    let shared = storages
                        .entry(at.storage)
                        .or_insert_with(|| whole(names, TermKey::Input(at.storage), at.bytes))
                        .clone();
                    // A functional program's values do not share.
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
                    return Err(ReplayStop::Undecided(format!("where input {i} lies is not known")));
                }
                (Type::Scalar(e), _) => ReplayValue::Number(e.clone()),
                (Type::None, _) => ReplayValue::Other("None".into()),
                (other, _) => ReplayValue::Other(format!("{other:?}")),
            });
        }
        let mut replay =
            Replay { program, names, known, learned: BTreeMap::new(), depth: 0, uncertain: Vec::new(), budget: BUDGET };
        let outputs = replay.graph(program.main, &inputs)?;
        // A program can declare new contents of its inputs instead of writing them.
        for (spec, out) in program.signature.outputs.iter().zip(&outputs) {
            let (OutputKind::Mutation(i), Arg::Value(ReplayValue::Tensor(value))) = (&spec.kind, out) else { continue };
            let Some(Some(at)) = lies.get(*i) else { continue };
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
    lies: &[Option<InputPlace>],
    before: &Side,
    after: &Side,
    known: &MemoryOps,
    names: &mut TermTable,
) -> Result<Vec<String>, ReplayStop> {
    let mut judge = Replay {
        program: functional,
        names,
        known,
        learned: after.learned.clone(),
        depth: 0,
        uncertain: Vec::new(),
        budget: BUDGET,
    };
    let mut faults = Vec::new();
    // What the functional program says that the storages hold afterwards.
    let mut storages: BTreeMap<usize, cells::StorageCells> = BTreeMap::new();
    let at = functional_inputs(functional, lies);
    for l in at.iter().flatten() {
        storages
            .entry(l.storage)
            .or_insert_with(|| whole(judge.names, TermKey::Input(l.storage), l.bytes).borrow().clone());
    }
    for (spec, out) in functional.signature.outputs.iter().zip(&after.outputs) {
        let (OutputKind::Mutation(i), Arg::Value(ReplayValue::Tensor(value))) = (&spec.kind, out) else { continue };
        let Some(Some(l)) = at.get(*i) else { continue };
        let value = value.borrow().clone();
        let runs = judge.read(&value)?;
        if let Some(cells) = storages.get_mut(&l.storage) {
            cells.write(&l.layout, value.dtype.size(), &runs);
        }
    }
    for (storage, truth) in &before.storages {
        let Some(claimed) = storages.get_mut(storage) else { continue };
        let Some(i) = lies.iter().position(|l| l.as_ref().is_some_and(|l| l.storage == *storage)) else { continue };
        let flat = Layout::contiguous(&[lies[i].as_ref().map_or(0, |l| l.bytes)]);
        let (want, got) = (truth.borrow_mut().read(judge.names, &flat, 1), claimed.read(judge.names, &flat, 1));
        if let (Some(want), Some(got)) = (want, got)
            && let Some(k) = first_difference(&want, &got)
        {
            let name = &imported.graph().values[imported.signature.inputs[i].value].name;
            faults.push(format!("byte {k} of the storage of input %{name} is {}", words(judge.names, &want, &got, k)));
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
                let (a, b) = (judge.read(&w)?, judge.read(&g)?);
                if let Some(i) = first_difference(&a, &b) {
                    faults.push(format!("element {i} of output {k} is {}", words(judge.names, &a, &b, i)));
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
                // What is lazily mapped is given as the elements that it shows. A functional program says itself what shares.
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
                    // What a run shows there is what it puts into that memory, not what the graph computes beside it.
                    let mut root = match (on, alias.root) {
                        (Some(s), _) => storages.get(&s).cloned(),
                        (None, AliasRoot::Base(b)) => match after.outputs.get(b) {
                            Some(Arg::Value(ReplayValue::Tensor(base))) => {
                                let base = base.borrow().clone();
                                let runs = judge.read(&base)?;
                                Some(judge.fresh(&meta(&base), &runs).cells.borrow().clone())
                            }
                            _ => None,
                        },
                        _ => None,
                    };
                    let shown = root.as_mut().and_then(|r| r.read(judge.names, &layout, w.dtype.size()));
                    match shown.map(|r| (first_difference(&a, &r), r)) {
                        Some((None, _)) => {}
                        Some((Some(i), r)) => {
                            let what = words(judge.names, &a, &r, i);
                            faults.push(format!("element {i} of output {k}, as a view, is {what}"));
                        }
                        None => faults.push(format!("output {k} is a view of memory that nothing was put in")),
                    }
                }
            }
            (a, b) => {
                judge.learned.clone_from(&before.learned);
                let x = judge.given(a, false)?;
                judge.learned.clone_from(&after.learned);
                if x != judge.given(b, false)? {
                    faults.push(format!("output {k} is another number"));
                }
            }
        }
    }
    Ok(faults)
}

/// Whose memory an output is said to be in.
#[derive(Clone, Copy, PartialEq, Debug)]
enum OutputRoot {
    Given(usize),
    Of(AliasRoot),
    Own(usize),
}

/// Eager's storages of outputs beside what is said of them: one to one.
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
