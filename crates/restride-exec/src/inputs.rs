//! Inputs of a run: the user's, the state of an instance, and their check against a program.

use crate::symbols::{Unified, range_text, same_number, unify};
use restride_ir::{
    AliasRoot, Arg, Binding, CollectTree, Error, ErrorKind, InputKind, OutputKind, OutputSpec, Program, Result,
    SampleInput, TensorType, Type, ValueId,
};
use restride_tensor::{Bytes, Layout, Overlap, RawTensor, Scalar, Storage, overlap_bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// A value that a run takes or gives.
#[derive(Clone, Debug)]
pub enum RunValue {
    /// A tensor, possibly sharing its storage with others.
    Tensor(RawTensor),
    /// A number.
    Scalar(Scalar),
    /// A string.
    Str(Arc<str>),
    /// `None`.
    None,
}

impl RunValue {
    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&RawTensor> {
        match self {
            RunValue::Tensor(t) => Some(t),
            _ => None,
        }
    }
    fn kind(&self) -> String {
        match self {
            RunValue::Tensor(t) => format!("a tensor of {}", t.dtype()),
            RunValue::Scalar(s) => format!("the number {s}"),
            RunValue::Str(s) => format!("the string {s:?}"),
            RunValue::None => "None".to_string(),
        }
    }
}

impl From<RawTensor> for RunValue {
    fn from(t: RawTensor) -> Self {
        RunValue::Tensor(t)
    }
}

/// The user's inputs in order, those that were fixed at export included.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// One per user input.
    pub values: Vec<RunValue>,
}

impl Inputs {
    /// The given values, in order.
    pub fn new(values: impl IntoIterator<Item = RunValue>) -> Inputs {
        Inputs { values: values.into_iter().collect() }
    }

    /// The sample inputs stored with a program, on memory of their own; `None` if there are none.
    pub fn from_samples(program: &Program) -> Option<Result<Inputs>> {
        let samples = program.sample_inputs.as_ref()?;
        let storages: Vec<Storage> = samples.storages.iter().map(|b| Storage::from_bytes(Bytes::copy_of(b))).collect();
        let value = |s: &SampleInput| match s {
            SampleInput::Tensor { storage, dtype, layout } => {
                let storage = storages.get(*storage).ok_or_else(|| Error::invalid("a sample input has no storage"))?;
                RawTensor::new(storage.clone(), *dtype, layout.clone())
                    .map(RunValue::Tensor)
                    .ok_or_else(|| Error::invalid(format!("a sample input of layout {layout} leaves its storage")))
            }
            SampleInput::Scalar(s) => Ok(RunValue::Scalar(*s)),
            SampleInput::Str(s) => Ok(RunValue::Str(s.clone())),
            SampleInput::None => Ok(RunValue::None),
        };
        Some(samples.inputs.iter().map(value).collect::<Result<_>>().map(|values| Inputs { values }))
    }

    /// The same inputs on memory of their own, shared among them as it is here.
    pub fn deep_clone(&self) -> Inputs {
        let mut copies: BTreeMap<usize, Storage> = BTreeMap::new();
        let copy = |v: &RunValue| match v {
            RunValue::Tensor(t) => RunValue::Tensor(on_copy(t, &mut copies)),
            other => other.clone(),
        };
        Inputs { values: self.values.iter().map(copy).collect() }
    }
}

/// The tensor on a copy of its storage, one copy for each storage.
fn on_copy(t: &RawTensor, copies: &mut BTreeMap<usize, Storage>) -> RawTensor {
    let storage = copies
        .entry(t.storage().id())
        .or_insert_with(|| Storage::from_bytes(Bytes::copy_of(&t.storage().to_vec())))
        .clone();
    let mut own = RawTensor::new(storage, t.dtype(), t.layout().clone()).expect("a copy is as long as what it copies");
    (own.conj, own.neg) = (t.conj, t.neg);
    own
}

/// The state that an instance keeps between runs: parameters, buffers and constants, over storages that read as
/// the program's weights until they are written.
#[derive(Clone, Debug, Default)]
pub struct State {
    tensors: BTreeMap<Arc<str>, RawTensor>,
}

impl State {
    /// The state that the program was exported with.
    pub fn new(program: &Program) -> Result<State> {
        let weights = &program.weights;
        let storages: Vec<Storage> = weights.storages.iter().map(|b| Storage::from_bytes(b.clone())).collect();
        let mut tensors = BTreeMap::new();
        for (name, w) in &weights.tensors {
            if storages.is_empty() {
                return Err(Error::new(ErrorKind::Inputs, format!("weight {name} has no data"))
                    .help("give the weights of a .fx with --weights FILE.pt2"));
            }
            let tensor = storages
                .get(w.storage)
                .and_then(|s| RawTensor::new(s.clone(), w.dtype, w.layout.clone()))
                .ok_or_else(|| Error::invalid(format!("weight {name} of layout {} leaves its storage", w.layout)))?;
            tensors.insert(name.clone(), tensor);
        }
        Ok(State { tensors })
    }
    /// A tensor by its name in the state dict.
    pub fn get(&self, name: &str) -> Option<&RawTensor> {
        self.tensors.get(name)
    }
    /// Replaces a tensor; its storage keeps its contents.
    pub fn set(&mut self, name: Arc<str>, tensor: RawTensor) {
        self.tensors.insert(name, tensor);
    }
    /// Moves a tensor, and all that share its storage, to other memory, with their contents. Runs write them in that memory.
    ///
    /// # Errors
    /// No tensor of the name, memory that is too short, not aligned for the elements, read-only or in use.
    pub fn move_to(&mut self, name: &str, memory: Storage) -> Result<()> {
        let bytes = self.named(name)?.storage().to_vec();
        let moved = self.on(name, &memory, bytes.len())?;
        memory
            .try_write(&bytes)
            .map_err(|e| Error::new(ErrorKind::Inputs, format!("the memory for {name} cannot be written: {e}")))?;
        self.tensors.extend(moved);
        Ok(())
    }
    /// As [`State::move_to`], with the contents of that memory: goes on from the state that another run left, maybe in another
    /// process.
    ///
    /// # Errors
    /// Those of [`State::move_to`].
    pub fn resume(&mut self, name: &str, memory: Storage) -> Result<()> {
        let moved = self.on(name, &memory, self.named(name)?.storage().len())?;
        self.tensors.extend(moved);
        Ok(())
    }
    fn named(&self, name: &str) -> Result<&RawTensor> {
        let unknown = || Error::new(ErrorKind::Inputs, format!("the state has no tensor {name}"));
        self.tensors.get(name).ok_or_else(unknown)
    }
    /// The tensors that share a tensor's storage, on other memory of at least `bytes`.
    fn on(&self, name: &str, memory: &Storage, bytes: usize) -> Result<Vec<(Arc<str>, RawTensor)>> {
        let from = self.named(name)?.storage();
        if memory.len() < bytes {
            let what = format!("the memory for {name} has {} bytes, and it needs {bytes}", memory.len());
            return Err(Error::new(ErrorKind::Inputs, what));
        }
        let shared = self.tensors.iter().filter(|(_, t)| t.storage().same(from));
        let moved = shared.map(|(n, t)| {
            let mut own = RawTensor::new(memory.clone(), t.dtype(), t.layout().clone())
                .ok_or_else(|| Error::new(ErrorKind::Inputs, format!("the memory for {n} is not aligned for it")))?;
            (own.conj, own.neg) = (t.conj, t.neg);
            Ok((n.clone(), own))
        });
        moved.collect()
    }
    /// All tensors, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &RawTensor)> {
        self.tensors.iter()
    }
    /// The same state on memory of its own, shared among the tensors as it is here.
    pub fn deep_clone(&self) -> State {
        let mut copies = BTreeMap::new();
        State { tensors: self.tensors.iter().map(|(n, t)| (n.clone(), on_copy(t, &mut copies))).collect() }
    }
}

/// Strides that a user's tensors may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strides {
    /// Any: the real ones are used, as eager PyTorch does.
    Any,
    /// Those that the program was exported for, which decided its views.
    AsDeclared,
}

/// A program's inputs as a run finds them.
#[derive(Clone, Debug)]
pub struct BoundInputs {
    /// One per input of the main graph; tokens and custom objects are `None`.
    pub values: Vec<RunValue>,
    /// The values of symbols that the inputs tell.
    pub symbols: Binding,
}

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Inputs, what))
}

/// The name of a main graph's input in messages.
pub fn input_name(program: &Program, input: usize) -> String {
    match &program.signature.inputs[input].kind {
        InputKind::Parameter(n) => format!("parameter {n}"),
        InputKind::Buffer { name, .. } => format!("buffer {name}"),
        InputKind::Constant(n) => format!("constant {n}"),
        InputKind::User(n) | InputKind::Fixed { name: n, .. } => format!("input {n}"),
        InputKind::Storage(of) => {
            let names: Vec<String> = of.iter().map(|&i| input_name(program, i)).collect();
            format!("the storage of {}", names.join(" and "))
        }
        InputKind::Opaque(n) => format!("object {n}"),
    }
}

/// Names of the user inputs, in order, those that were fixed at export included.
pub fn user_inputs(program: &Program) -> impl Iterator<Item = (usize, &Arc<str>)> {
    program.signature.inputs.iter().enumerate().filter_map(|(i, spec)| match &spec.kind {
        InputKind::User(n) | InputKind::Fixed { name: n, .. } => Some((i, n)),
        _ => None,
    })
}

/// Fits inputs and state to a program: element types, sizes, numbers, ranges and guards are checked and symbols learnt.
pub fn bind(program: &Program, inputs: &Inputs, state: &State, strides: Strides) -> Result<BoundInputs> {
    let names: Vec<(usize, &Arc<str>)> = user_inputs(program).collect();
    if names.len() != inputs.values.len() {
        let list: Vec<&str> = names.iter().map(|(_, n)| n.as_ref()).collect();
        let given = inputs.values.len();
        return wrong(format!("{given} inputs are given, the program takes {}: {}", names.len(), list.join(", ")));
    }
    let mut user = inputs.values.iter();
    let mut values = Vec::with_capacity(program.signature.inputs.len());
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        values.push(match &spec.kind {
            InputKind::User(_) | InputKind::Fixed { .. } => user.next().expect("counted above").clone(),
            InputKind::Parameter(n) | InputKind::Constant(n) | InputKind::Buffer { name: n, .. } => {
                match state.get(n) {
                    Some(t) => RunValue::Tensor(t.clone()),
                    None => return Err(Error::invalid(format!("{} has no value", input_name(program, i)))),
                }
            }
            InputKind::Storage(_) | InputKind::Opaque(_) => RunValue::None,
        });
    }
    let mut bound = BoundInputs { values, symbols: Binding::new() };
    for i in 0..bound.values.len() {
        if let InputKind::Storage(of) = &program.signature.inputs[i].kind {
            bound.values[i] = RunValue::Tensor(flat(program, i, of, &bound.values)?);
        }
    }
    // A size that needs another input's symbol waits for it.
    let mut open: Vec<usize> = (0..bound.values.len()).collect();
    loop {
        let before = open.len();
        let mut left = Vec::new();
        for i in open {
            if !fit(program, i, &bound.values[i], &mut bound.symbols)? {
                left.push(i);
            }
        }
        if left.is_empty() {
            break;
        }
        if left.len() == before {
            let name = input_name(program, left[0]);
            let ty = &program.graph().values[program.signature.inputs[left[0]].value].ty;
            return wrong(format!("the sizes of {name} do not tell the symbols of {ty}"));
        }
        open = left;
    }
    learn_strides(program, &mut bound);
    check_conditions(program, &bound.symbols)?;
    if strides == Strides::AsDeclared {
        check_strides(program, &bound)?;
    }
    Ok(bound)
}

/// Learns the symbols that only strides and offsets have: those of a slice of every other row, or from any row on. Strides of a
/// dimension that steps nowhere come last, as eager PyTorch lets them be anything.
fn learn_strides(program: &Program, bound: &mut BoundInputs) {
    for steps in [true, false] {
        for (spec, value) in program.signature.inputs.iter().zip(&bound.values) {
            let ty = program.graph().values[spec.value].ty.tensor();
            let (Some(t), Some(ty)) = (value.tensor(), ty) else { continue };
            let layout = t.layout();
            for (d, &step) in layout.strides.iter().enumerate().filter(|&(d, _)| (layout.sizes[d] > 1) == steps) {
                // What does not fit is refused where strides are checked.
                unify(&ty.layout.strides[d], Scalar::Int(step), &mut bound.symbols);
            }
            if !steps {
                unify(&ty.layout.offset, Scalar::Int(layout.offset), &mut bound.symbols);
            }
        }
    }
}

/// Bytes that a storage grows to when the program resizes its input (`resize_`).
fn grown(program: &Program, storage: usize) -> usize {
    let bytes = program.signature.outputs.iter().filter(|o| o.kind == OutputKind::Metadata(storage)).map(|o| {
        let alias = o.alias.as_ref().filter(|a| a.root == AliasRoot::Input(storage));
        let known = alias.and_then(|a| Some(a.layout.known()?.cell_range().end.max(0) as usize * a.dtype.size()));
        known.unwrap_or(0)
    });
    bytes.max().unwrap_or(0)
}

/// The flat tensor over the storage that the given inputs share.
fn flat(program: &Program, input: usize, of: &[usize], values: &[RunValue]) -> Result<RawTensor> {
    let name = || input_name(program, input);
    let mut storage: Option<&Storage> = None;
    for &i in of {
        let Some(t) = values.get(i).and_then(RunValue::tensor) else {
            return wrong(format!("{} needs a tensor for each of them", name()));
        };
        if storage.is_some_and(|s| !s.same(t.storage())) {
            return wrong(format!("{} must be one: the program was specialised for inputs that share it", name()));
        }
        storage = Some(t.storage());
    }
    let storage = storage.ok_or_else(|| Error::invalid(format!("{} is of no inputs", name())))?;
    let ty = program.graph().values[program.signature.inputs[input].value].ty.tensor();
    let ty = ty.ok_or_else(|| Error::invalid(format!("{} is no tensor", name())))?;
    let [size] = ty.sizes() else { return Err(Error::invalid(format!("{} is not flat", name()))) };
    let declared = restride_ir::Dim::known(size).unwrap_or(0) as usize * ty.dtype.size();
    if storage.len() < declared && declared <= grown(program, input) {
        storage.grow(declared).map_err(|e| Error::new(ErrorKind::Inputs, format!("{}: {e}", name())))?;
    }
    let there = (storage.len() / ty.dtype.size()) as i64;
    // A program with known sizes may reach less far than the memory does.
    let numel = restride_ir::Dim::known(size).filter(|&n| n <= there).unwrap_or(there);
    let flat = RawTensor::new(storage.clone(), ty.dtype, Layout::contiguous(&[numel]));
    Ok(flat.expect("the storage holds that many elements"))
}

/// Checks one input against its type and learns symbols; `false` if a size could not be decided yet.
fn fit(program: &Program, input: usize, value: &RunValue, symbols: &mut Binding) -> Result<bool> {
    let spec = &program.signature.inputs[input];
    let name = || input_name(program, input);
    match &spec.kind {
        InputKind::Opaque(_) => return Ok(true),
        InputKind::Fixed { value: fixed, .. } => {
            return if is_fixed(fixed, value) {
                Ok(true)
            } else {
                wrong(format!("{} was fixed at export to {}, and {} is given", name(), show(fixed), value.kind()))
            };
        }
        _ => {}
    }
    match (&program.graph().values[spec.value].ty, value) {
        (Type::Tensor(ty), RunValue::Tensor(t)) => fit_tensor(&name(), ty, t, symbols),
        (Type::Scalar(expr), RunValue::Scalar(s)) => {
            let kinds = match s {
                Scalar::Bool(_) | Scalar::Int(_) => !expr.is_float(),
                Scalar::Float(_) => !expr.is_bool(),
                Scalar::Complex(_) => false,
            };
            if !kinds {
                return wrong(format!("{} cannot be {s}", name()));
            }
            match unify(expr, *s, symbols) {
                Unified::Agree => Ok(true),
                Unified::Open => Ok(false),
                Unified::Differs(want) => wrong(format!("{} must be {want}, not {s}", name())),
                Unified::OutOfRange(why) => wrong(format!("{} is {s}: {why}", name())),
            }
        }
        (Type::Str, RunValue::Str(_)) | (Type::None, RunValue::None) | (Type::Opaque, _) => Ok(true),
        (ty, value) => wrong(format!("{} must be {ty}, and {} is given", name(), value.kind())),
    }
}

fn fit_tensor(name: &str, ty: &TensorType, t: &RawTensor, symbols: &mut Binding) -> Result<bool> {
    if t.dtype() != ty.dtype {
        return wrong(format!("{name} must be of {}, and is of {}", ty.dtype, t.dtype()));
    }
    let sizes = &t.layout().sizes;
    if sizes.len() != ty.rank() {
        return wrong(format!("{name} must be {ty}: {} dimensions, and has {}", ty.rank(), sizes.len()));
    }
    let mut decided = true;
    for (d, (expr, &n)) in ty.sizes().iter().zip(sizes).enumerate() {
        match unify(expr, Scalar::Int(n), symbols) {
            Unified::Agree => {}
            Unified::Open => decided = false,
            Unified::Differs(want) => {
                return wrong(format!("{name} must have size {want} in dimension {d} ({expr}), and has {n}"));
            }
            Unified::OutOfRange(why) => return wrong(format!("{name} has size {n} in dimension {d}: {why}")),
        }
    }
    Ok(decided)
}

/// PyTorch takes only the same value of the same kind.
fn is_fixed<V>(fixed: &Arg<V>, value: &RunValue) -> bool {
    match (fixed, value) {
        (Arg::None, RunValue::None) => true,
        (Arg::Str(a), RunValue::Str(b)) => a == b,
        (Arg::Scalar(a), RunValue::Scalar(b)) => {
            a.constant().is_some_and(|a| std::mem::discriminant(&a) == std::mem::discriminant(b) && same_number(a, *b))
        }
        (Arg::Complex(re, im), RunValue::Scalar(Scalar::Complex(z))) => (*re, *im) == (z.re, z.im),
        _ => false,
    }
}

fn show<V>(arg: &Arg<V>) -> String {
    match arg {
        Arg::None => "None".to_string(),
        Arg::Str(s) => format!("{s:?}"),
        Arg::Scalar(s) => s.to_string(),
        Arg::Complex(re, im) => format!("({re:?}{im:+?}j)"),
        _ => "a value of another kind".to_string(),
    }
}

/// Ranges of expressions and guards, as far as the inputs decide them: data-dependent symbols are checked where
/// they are learnt.
fn check_conditions(program: &Program, symbols: &Binding) -> Result<()> {
    for (expr, min, max) in &program.ranges {
        if let Ok(value) = expr.eval(symbols)
            && let Some(bound) = range_text(value.as_i64(), *min, *max)
        {
            return wrong(format!("{expr} is {value} for these inputs and must be {bound}"));
        }
    }
    for guard in &program.guards {
        let mut used = Default::default();
        guard.condition.symbols(&mut used);
        match guard.condition.eval(symbols) {
            Ok(value) if value.as_bool() => {}
            Ok(_) => return wrong(format!("the inputs break a condition of the program: {}", guard.text)),
            Err(_) if used.iter().any(restride_ir::Symbol::is_unbacked) => {}
            Err(why) => return wrong(format!("the condition {} cannot be checked: {why}", guard.text)),
        }
    }
    Ok(())
}

/// A declared layout with numbers for symbols, if all are known.
pub fn evaluate(layout: &Layout<restride_ir::Expr>, symbols: &Binding) -> Option<Layout> {
    let mut known = true;
    let out = layout.map(|e| match e.eval(symbols) {
        Ok(s) => s.as_i64(),
        Err(_) => {
            known = false;
            0
        }
    });
    known.then_some(out)
}

/// Whether two layouts of equal sizes step alike; strides that step nowhere do not count.
pub fn same_strides(a: &Layout, b: &Layout) -> bool {
    a.sizes == b.sizes
        && (a.sizes.contains(&0) || (0..a.rank()).all(|d| a.sizes[d] == 1 || a.strides[d] == b.strides[d]))
}

/// Refuses strides, and offsets on a declared storage, that the program was not made for.
fn check_strides(program: &Program, bound: &BoundInputs) -> Result<()> {
    let on_storage = |i: usize| {
        let mut specs = program.signature.inputs.iter();
        specs.any(|s| matches!(&s.kind, InputKind::Storage(of) if of.contains(&i)))
    };
    for (i, value) in bound.values.iter().enumerate() {
        let ty = &program.graph().values[program.signature.inputs[i].value].ty;
        let (Some(t), Some(ty)) = (value.tensor(), ty.tensor()) else { continue };
        if matches!(program.signature.inputs[i].kind, InputKind::Fixed { .. }) {
            continue;
        }
        let Some(declared) = evaluate(&ty.layout, &bound.symbols) else {
            return wrong(format!("the strides of {} are not told by its sizes", input_name(program, i)));
        };
        if !same_strides(&declared, t.layout()) || t.conj || t.neg {
            let name = input_name(program, i);
            let (want, have) = (&declared.strides, &t.layout().strides);
            return Err(Error::new(
                ErrorKind::Inputs,
                format!("{name} has strides {have:?}, and the program was made functional for {want:?}"),
            )
            .help("pass a copy with these strides, or export the program for inputs like yours"));
        }
        if on_storage(i) && t.layout().offset != declared.offset && !declared.sizes.contains(&0) {
            let name = input_name(program, i);
            let (want, have) = (declared.offset, t.layout().offset);
            return wrong(format!(
                "{name} starts at element {have} of its storage, and the program was made for {want}"
            ));
        }
    }
    Ok(())
}

/// Refuses inputs that share memory where the program writes it and does not declare it: a functional program
/// that was made for inputs apart would be silently wrong. `written` are positions among the inputs.
pub fn check_sharing(program: &Program, bound: &BoundInputs, written: &[usize]) -> Result<()> {
    let specs = &program.signature.inputs;
    let covers = |s: usize, i: usize| matches!(&specs[s].kind, InputKind::Storage(of) if of.contains(&i));
    let together =
        |a: usize, b: usize| covers(a, b) || covers(b, a) || (0..specs.len()).any(|s| covers(s, a) && covers(s, b));
    if written.is_empty() {
        return Ok(());
    }
    let range = |(i, value): (usize, &RunValue)| Some((value.tensor()?.addresses(), i));
    let pairs = meeting(bound.values.iter().enumerate().filter_map(range).collect(), written);
    if pairs.is_empty() {
        return Ok(());
    }
    // An input that the graph does not read stands for another one on the same cells, or for nothing.
    let used = used_inputs(program);
    for (w, i) in pairs {
        let (Some(a), Some(b)) = (bound.values[w].tensor(), bound.values[i].tensor()) else { continue };
        let idle = !used[i] && !written.contains(&i);
        if idle || together(w, i) {
            continue;
        }
        // Foreign memory may be given twice, as storages of their own.
        let apart = match a.storage().same(b.storage()) {
            true => overlap_bytes(a.layout(), a.dtype().size(), b.layout(), b.dtype().size()) == Overlap::Disjoint,
            false => !a.may_meet(b),
        };
        if !apart {
            let (a, b) = (input_name(program, w), input_name(program, i));
            return Err(Error::new(
                ErrorKind::Inputs,
                format!("{a} is written and shares memory with {b}, which the program does not provide for"),
            )
            .help("pass copies, or make the program functional for inputs that share memory like these"));
        }
    }
    Ok(())
}

/// The pairs of a written input and another one whose ranges of addresses meet, in order. The cost is that of sorting, and of the ranges
/// that meet.
pub(crate) fn meeting(mut ranges: Vec<(Range<usize>, usize)>, written: &[usize]) -> Vec<(usize, usize)> {
    let writes: BTreeSet<usize> = written.iter().copied().collect_set();
    ranges.retain(|(range, _)| !range.is_empty());
    ranges.sort_unstable_by_key(|(range, i)| (range.start, *i));
    let (mut pairs, mut open) = (Vec::new(), Vec::<(usize, usize)>::new());
    for (range, i) in ranges {
        open.retain(|&(end, _)| end > range.start);
        for &(_, other) in &open {
            pairs.extend([(i, other), (other, i)].into_iter().filter(|(w, _)| writes.contains(w)));
        }
        open.push((range.end, i));
    }
    pairs.sort_unstable();
    pairs
}

/// For each input of the main graph, whether a node reads it, or its content is returned elsewhere than in its own memory.
fn used_inputs(program: &Program) -> Vec<bool> {
    let (graph, signature) = (program.graph(), &program.signature);
    let itself = |o: &OutputSpec, v: ValueId| match o.alias.as_ref().map(|a| &a.root) {
        Some(AliasRoot::Input(i)) => signature.inputs[*i].value == v,
        _ => false,
    };
    let outputs = graph.outputs.iter().zip(&signature.outputs);
    let returned = outputs.flat_map(|(a, o)| a.values().copied().filter(move |v| !itself(o, *v)));
    let read: BTreeSet<_> =
        graph.ordered().flat_map(|(_, n)| n.operands().collect::<Vec<_>>()).chain(returned).collect_set();
    signature.inputs.iter().map(|i| read.contains(&i.value)).collect()
}
