//! Runs of one program in three ways on copies of the same inputs, and their comparison.

use crate::rng::Rng;
use restride::files::element_bytes;
use restride::{CompileOptions, Compiled, FuseOptions, PlaceOptions, ViewOptions};
use restride_exec::interp::{Outputs, RunOptions, interpret};
use restride_exec::symbols::same_number;
use restride_exec::{Inputs, RunValue, State};
use restride_ir::{ErrorKind, OutputKind, Program, Result};
use restride_tensor::RawTensor;
use std::collections::BTreeMap;

/// Inputs, state and outputs after a run.
#[derive(Clone, Debug)]
pub struct Leftovers {
    /// User inputs after the run, in order.
    pub inputs: Vec<RunValue>,
    /// User outputs, in order.
    pub values: Vec<RunValue>,
    /// Parameters and buffers after the run.
    pub state: State,
    /// The user's tensors, which keep their storages alive.
    given: Inputs,
}

impl Leftovers {
    pub(crate) fn new(outputs: Outputs, state: State, given: Inputs) -> Leftovers {
        Leftovers { inputs: outputs.inputs, values: outputs.values, state, given }
    }

    /// Values before a run, by name: user inputs in order, then parameters, buffers and constants.
    pub fn initial(program: &Program, inputs: &Inputs) -> Result<Vec<(String, RunValue)>> {
        let none = Leftovers::new(Outputs::default(), State::new(program)?, inputs.clone());
        let given = inputs.values.iter().enumerate().map(|(i, v)| (format!("input {i}"), v.clone()));
        Ok(given.chain(none.named()).collect())
    }

    /// Runs a program by the interpreter, on copies of the inputs.
    pub fn interp(program: &Program, inputs: &Inputs, options: &RunOptions) -> Result<Leftovers> {
        let given = inputs.deep_clone();
        let mut state = State::new(program)?;
        let outputs = interpret(program, &given, &mut state, options)?;
        Ok(Leftovers::new(outputs, state, given))
    }

    /// Runs a compiled program in its arena, on copies of the inputs.
    pub fn planned(compiled: &Compiled, inputs: &Inputs, options: &RunOptions) -> Result<Leftovers> {
        let given = inputs.deep_clone();
        let mut instance = compiled.instance()?;
        let outputs = instance.run(&given, options)?;
        Ok(Leftovers::new(outputs, instance.into_state(), given))
    }

    /// As `planned`, by a session that runs `runs` times on the same memory.
    pub fn bound(compiled: &Compiled, inputs: &Inputs, options: &RunOptions, runs: usize) -> Result<Leftovers> {
        let given = inputs.deep_clone();
        let mut session = compiled.instance()?.session(&given, &[], options)?;
        for _ in 0..runs {
            session.run()?;
        }
        let outputs = session.outputs().clone();
        Ok(Leftovers::new(outputs, session.into_instance().into_state(), given))
    }

    /// All values that the caller sees, by name.
    pub fn named(&self) -> Vec<(String, RunValue)> {
        let inputs = self.inputs.iter().enumerate().map(|(i, v)| (format!("input {i}"), v.clone()));
        let values = self.values.iter().enumerate().map(|(i, v)| (format!("output {i}"), v.clone()));
        let state = self.state.iter().map(|(n, t)| (n.to_string(), RunValue::Tensor(t.clone())));
        inputs.chain(state).chain(values).collect()
    }
}

/// The difference of two runs, if any: bits, sizes, strides, offsets, shared storages, and cells of inputs' and weights'
/// storages outside of any tensor.
pub fn difference(a: &Leftovers, b: &Leftovers) -> Option<String> {
    let (left, right) = (a.named(), b.named());
    if left.len() != right.len() {
        return Some(format!("{} values for {}", right.len(), left.len()));
    }
    let mut storages = StoragePairs::default();
    for ((name, x), (_, y)) in left.iter().zip(&right) {
        let found = match (x, y) {
            // A lazily mapped output is returned resolved, on its own storage.
            (RunValue::Tensor(x), RunValue::Tensor(y)) if x.conj || x.neg => elements(x, y),
            (RunValue::Tensor(x), RunValue::Tensor(y)) => {
                let caller_s = !name.starts_with("output");
                storages.sharing(name, x, y, caller_s).or_else(|| tensors(x, y))
            }
            (RunValue::Scalar(x), RunValue::Scalar(y)) => (!same_number(*x, *y)).then(|| format!("is {y} for {x}")),
            (RunValue::None, RunValue::None) => None,
            (RunValue::Str(x), RunValue::Str(y)) if x == y => None,
            _ => Some(format!("is {y:?} for {x:?}")),
        };
        if let Some(found) = found {
            return Some(format!("{name} {found}"));
        }
    }
    let given = |of: &Leftovers| -> Vec<RunValue> {
        let state = of.state.iter().map(|(_, t)| RunValue::Tensor(t.clone()));
        of.given.values.iter().cloned().chain(state).collect()
    };
    for (i, (x, y)) in given(a).iter().zip(&given(b)).enumerate() {
        if let (Some(x), Some(y)) = (x.tensor(), y.tensor()) {
            let whole = |t: &RawTensor| {
                let n = (t.storage().len() / t.dtype().size()) as i64;
                let cells = restride_tensor::Layout::contiguous(&[n]);
                element_bytes(&t.alias(t.dtype(), cells).expect("whole cells of the storage"))
            };
            if whole(x) != whole(y) {
                return Some(match i.checked_sub(a.given.values.len()) {
                    None => format!("the storage of input {i} holds other elements"),
                    Some(k) => format!("the storage of parameter or buffer {k} holds other elements"),
                });
            }
        }
    }
    None
}

fn tensors(x: &RawTensor, y: &RawTensor) -> Option<String> {
    let (lx, ly) = (x.layout(), y.layout());
    if x.dtype() != y.dtype() || lx.sizes != ly.sizes {
        return Some(format!("is {}{ly} for {}{lx}", y.dtype(), x.dtype()));
    }
    if !restride_exec::inputs::same_strides(lx, ly) {
        return Some(format!("lies at {ly} for {lx}"));
    }
    elements(x, y)
}

fn elements(x: &RawTensor, y: &RawTensor) -> Option<String> {
    let (bx, by) = (element_bytes(x), element_bytes(y));
    if bx != by {
        let size = x.dtype().size();
        let first = bx.chunks(size).zip(by.chunks(size)).position(|(p, q)| p != q).unwrap_or(0);
        return Some(format!("differs at element {first} of {}: {} for {}", x.numel(), show(y), show(x)));
    }
    None
}

fn show(t: &RawTensor) -> String {
    let mut index = vec![0; t.layout().rank()];
    let mut out = Vec::new();
    for _ in 0..t.numel().min(24) {
        out.push(t.get(&index).to_string());
        for d in (0..index.len()).rev() {
            index[d] += 1;
            if index[d] < t.layout().sizes[d] {
                break;
            }
            index[d] = 0;
        }
    }
    format!("[{}]", out.join(", "))
}

/// Pairs of storages of two runs.
#[derive(Default)]
struct StoragePairs {
    to: BTreeMap<usize, (usize, String)>,
    back: BTreeMap<usize, (usize, String)>,
    /// Byte distance of the second run's cells from the first's, by the first's storage.
    shift: BTreeMap<usize, i64>,
}

impl StoragePairs {
    fn sharing(&mut self, name: &str, x: &RawTensor, y: &RawTensor, caller_s: bool) -> Option<String> {
        let (i, j) = (x.storage().id(), y.storage().id());
        let (to, first) = self.to.entry(i).or_insert_with(|| (j, name.to_string()));
        if *to != j {
            return Some(format!("does not share storage with {first}"));
        }
        let (back, first) = self.back.entry(j).or_insert_with(|| (i, name.to_string()));
        if *back != i {
            return Some(format!("shares storage with {first}"));
        }
        // Where no elements begin follows from strides that no two elements tell.
        if x.numel() == 0 {
            return None;
        }
        let bytes = |t: &RawTensor| t.layout().offset * t.dtype().size() as i64;
        let shift = bytes(y) - bytes(x);
        let expected = *self.shift.entry(i).or_insert(if caller_s { 0 } else { shift });
        (shift != expected).then(|| format!("has offset {} for {}", y.layout().offset, x.layout().offset))
    }
}

/// Comparison of all ways of running a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WaysVerdict {
    /// All ways agree.
    Agree,
    /// Eager PyTorch and every way refuse the program.
    Rejected(String),
    /// A way does not support the program: the way and its message.
    Refused(&'static str, String),
    /// A way is wrong, or accepts a program that eager refuses: the way and the difference.
    Wrong(&'static str, String),
}

/// Runs a program in all ways on the same inputs, with checkers.
pub fn differential(program: &Program, inputs: &Inputs, compile: &CompileOptions) -> WaysVerdict {
    let options = RunOptions { strict: true, ..RunOptions::default() };
    let eager = Leftovers::interp(program, inputs, &options);
    let refused = match &eager {
        Ok(_) => None,
        Err(e) if matches!(e.kind, ErrorKind::Program) => Some(e.to_string()),
        Err(e) if e.kind == ErrorKind::Unsupported => return WaysVerdict::Refused("interp", e.to_string()),
        Err(e) => return WaysVerdict::Wrong("interp", e.to_string()),
    };
    let held = |way: &'static str, run: Result<Leftovers>| -> Option<WaysVerdict> {
        match (&eager, run) {
            (Ok(a), Ok(b)) => difference(a, &b).map(|what| WaysVerdict::Wrong(way, what)),
            (Err(_), Err(e)) if e.kind == ErrorKind::Program => None,
            (Err(e), Ok(_)) => Some(WaysVerdict::Wrong(way, format!("accepts what eager refuses: {e}"))),
            // A run refuses inputs that the program was not compiled for.
            (_, Err(e)) if matches!(e.kind, ErrorKind::Unsupported | ErrorKind::Inputs) => {
                Some(WaysVerdict::Refused(way, e.to_string()))
            }
            (_, Err(e)) => Some(WaysVerdict::Wrong(way, e.to_string())),
        }
    };
    let compiled = match Compiled::new(program.clone(), Some(inputs), compile) {
        Ok(c) => c,
        // A branch that eager does not take is refused nevertheless.
        Err(e) if eager.is_ok() && e.kind == ErrorKind::Program && program.graphs.len() > 1 => {
            return WaysVerdict::Refused("functionalize", e.to_string());
        }
        Err(e) => {
            let verdict = held("functionalize", Err(e));
            return verdict.unwrap_or(WaysVerdict::Rejected(refused.unwrap_or_default()));
        }
    };
    if let Err(e) = sound(compiled.functional()) {
        return WaysVerdict::Wrong("functionalize", e);
    }
    let functional = compiled.at(inputs).and_then(|c| Leftovers::interp(c.functional(), inputs, &options));
    if let Some(verdict) = held("functional", functional) {
        return verdict;
    }
    if eager.is_ok()
        && let Err(e) = restride::meaning(program, compiled.functional(), inputs)
    {
        return WaysVerdict::Wrong("meaning", e.to_string());
    }
    if let Some(verdict) = held("plan", Leftovers::planned(&compiled, inputs, &options)) {
        return verdict;
    }
    let bound = Leftovers::bound(&compiled, inputs, &options, 1);
    // Some programs cannot be bound to memory, and are refused.
    if !matches!(&bound, Err(e) if e.kind == ErrorKind::Unsupported)
        && let Some(verdict) = held("session", bound)
    {
        return verdict;
    }
    refused.map_or(WaysVerdict::Agree, WaysVerdict::Rejected)
}

/// Options with random choices of the placement: switches off, candidates declined, choices kept. Every run fills undefined
/// memory with garbage.
pub fn by_chance(seed: u64) -> CompileOptions {
    let mut rng = Rng::new(seed);
    let mut mostly = || rng.below(6) > 0;
    let place = PlaceOptions {
        views: mostly(),
        reuse: mostly(),
        scatter: mostly(),
        straight: mostly(),
        boundary: mostly(),
        layouts: mostly(),
        by_time: mostly(),
        revise: mostly(),
        inputs_in_arena: !mostly(),
        outputs_in_arena: !mostly(),
        vary: Some(seed),
    };
    let fuse = FuseOptions {
        most: if mostly() { 2 + rng.below(12) } else { 0 },
        heads: rng.below(4) > 0,
        siblings: rng.below(6) > 0,
        tiles: rng.below(2) > 0,
        row: if rng.below(6) > 0 { 2 } else { FuseOptions::default().row },
        vary: (rng.below(4) > 0).then_some(seed),
    };
    CompileOptions { place, fuse, poison: true, ..CompileOptions::default() }
}

/// Laws of a program that all ways agree on: functionalizing its functional form changes nothing, and its reinplaced form
/// gives the same results.
pub fn metamorphic(program: &Program, inputs: &Inputs, compile: &CompileOptions) -> Result<(), String> {
    let words = |e: restride_ir::Error| e.to_string();
    let options = RunOptions::default();
    let compiled = Compiled::new(program.clone(), Some(inputs), compile).map_err(words)?;
    let text = restride_ir::text::print(compiled.functional());
    let again = Compiled::new(compiled.functional().clone(), Some(inputs), compile).map_err(words)?;
    if restride_ir::text::print(again.functional()) != text {
        return Err(format!("functionalized again, it is\n{}", restride_ir::text::print(again.functional())));
    }
    // `reinplace` does not write back changes of an input's strides.
    let kinds = compiled.functional().signature.outputs.iter().map(|o| &o.kind);
    if kinds.into_iter().any(|k| matches!(k, OutputKind::Metadata(_))) {
        return Ok(());
    }
    let in_place = match compiled.reinplaced() {
        Ok(p) => p,
        Err(e) if e.kind == ErrorKind::Unsupported => return Ok(()),
        Err(e) => return Err(format!("written back in place: {e}")),
    };
    let interpreted = |p: &Program| Leftovers::interp(p, inputs, &options);
    let original = interpreted(program).map_err(words)?;
    let with_views =
        |slices| compiled.with_views(ViewOptions { slices }).map_err(|e| format!("with views (slices: {slices}): {e}"));
    let (sliced, viewed) = (with_views(true)?, with_views(false)?);
    for (what, written) in [("in place", &in_place), ("in slices", &sliced), ("with views", &viewed)] {
        let left = match interpreted(written) {
            Ok(left) => left,
            // A file cannot store memory that the program grows.
            Err(e) if matches!(e.kind, ErrorKind::Unsupported | ErrorKind::Inputs) => continue,
            Err(e) => return Err(format!("{what}: {e}\n{}", restride_ir::text::print(written))),
        };
        if let Some(found) = difference(&original, &left) {
            return Err(format!("{what}: {found}\n{}", restride_ir::text::print(written)));
        }
    }
    let back = match Compiled::new(in_place.clone(), Some(inputs), compile) {
        Ok(c) => c,
        Err(e) if e.kind == ErrorKind::Unsupported => return Ok(()),
        Err(e) => return Err(format!("functionalized from what is in place: {e}")),
    };
    let run = |p: &Program| Leftovers::interp(p, inputs, &options);
    let first = run(compiled.functional()).map_err(words)?;
    match run(back.functional()) {
        Ok(second) => match difference(&first, &second) {
            None => Ok(()),
            Some(what) => {
                let text = restride_ir::text::print(&in_place);
                Err(format!("functionalized from what is in place, {what}\n{text}"))
            }
        },
        Err(e) if matches!(e.kind, ErrorKind::Unsupported | ErrorKind::Inputs) => Ok(()),
        Err(e) => Err(format!("functionalized from what is in place: {e}")),
    }
}

/// Laws of functional programs: well-formed, without writes, and unchanged by printing and parsing.
fn sound(functional: &Program) -> Result<(), String> {
    restride_ir::verify(functional).map_err(|e| e.to_string())?;
    if let Some((_, n)) = functional.graphs.iter().flat_map(|(_, g)| g.ordered()).find(|(_, n)| n.op.mutates(&n.args)) {
        return Err(format!("{} is left", n.op));
    }
    let text = restride_ir::text::print(functional);
    let mut again = restride_ir::text::parse(&text, &restride_ops::lookup).map_err(|e| format!("{e}\n{text}"))?;
    restride_ir::text::attach_weights(&mut again, functional.weights.clone()).map_err(|e| e.to_string())?;
    let back = restride_ir::text::print(&again);
    if back == text { Ok(()) } else { Err(format!("read back, it is\n{back}")) }
}
