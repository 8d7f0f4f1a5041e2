//! What constant inputs alone decide is computed once: values of weights, and weights in the form in which products read them.
//!
//! [`constants`] takes nodes out of a lowered program whose operands are constant, and has calls read packed operands where that
//! pays ([`Prepacked`]). What is left takes the values as further inputs, after its own. Every value keeps its bits.
//!
//! A value stays in the program where memory for good would be a loss: one that is more than twice as large as what it is made of,
//! one whose reader works on in its memory (`index_put` into a made base), and copies, which placement makes views of. All values
//! together take at most twice the bytes of the constant inputs.
//!
//! Small values that no input decides, such as masks made of `aten.arange`, are computed once as well where that is asked for.

use crate::build::rebuild;
use crate::dce;
use restride_ir::{
    Arg, Args, Expr, Graph, InputKind, InputSpec, Kernel, Meta, Movement, Names, Node, NodeId, Op, Prepacked, Program,
    Result, Scalar, Table, TensorType, Type, ValueId, known_meta, layout_bytes,
};
use restride_ops::lookup;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// How many times the bytes of the largest constant input that it depends on a value may have, and all values the bytes of all.
const GROWTH: i64 = 2;
/// Most bytes of a value that no input decides, with all that it is made of, and of all such values together.
const SMALL: i64 = 1 << 16;
const ALL_SMALL: i64 = 1 << 20;
/// Most constant inputs that a value depends on, and most operators that its key names.
const SOURCES: usize = 16;
const LONG: usize = 256;

/// The values that a program takes after its own inputs.
#[derive(Clone, Debug)]
pub struct Constants {
    /// Computes the values, which are its outputs, from constant inputs.
    pub graph: Graph,
    /// The inputs of `graph`: positions among the program's inputs.
    pub inputs: Vec<usize>,
    /// One per value.
    pub values: Vec<FoldedValue>,
}

/// A value that is computed once.
#[derive(Clone, Debug)]
pub struct FoldedValue {
    /// In `graph`.
    pub value: ValueId,
    /// The constant inputs that it depends on: positions among the program's inputs.
    pub sources: Vec<usize>,
    /// The operand of calls in another form, not a value of the program.
    pub packed: bool,
    /// Its bytes.
    pub bytes: i64,
    /// What it is, by names of inputs and operators: equal for equal values of programs with the same inputs.
    pub key: String,
}

/// Takes out of a lowered program what depends on the inputs for which `constant` is true: the rest of the program, which takes
/// the values as inputs after its own. `None` if that is nothing. With `ahead`, what depends on no input is taken out as well.
///
/// # Errors
/// A valid lowered program gives none.
pub fn constants(program: &Program, constant: &[bool], ahead: bool) -> Result<Option<(Program, Constants)>> {
    if !constant.contains(&true) && !ahead {
        return Ok(None);
    }
    let graph = program.graph();
    let mut found = Finder::new(graph, constant, ahead);
    found.decide();
    if found.folded.is_empty() && found.packed.is_empty() {
        return Ok(None);
    }
    TakenOut::new(program, found).finish().map(Some)
}

/// Where a constant comes from.
#[derive(Clone, Debug)]
struct Sources {
    /// Sorted; none for what no input decides.
    inputs: SmallVec<[usize; 4]>,
    /// Of the largest input; half of [`SMALL`] without inputs. A value has at most [`GROWTH`] times as many.
    bytes: i64,
    /// Operators and inputs in its key.
    names: usize,
}

/// A packed operand: the value, the operator that packs it, and its further numbers.
type Form = (ValueId, &'static str, Vec<i64>);

/// A call's form with a packed operand.
struct Packing {
    of: &'static Prepacked,
    form: Form,
    ty: TensorType,
    /// Further numbers of the call.
    numbers: Vec<i64>,
}

struct Finder<'a> {
    graph: &'a Graph,
    /// Of values that constant inputs alone decide.
    sources: Table<ValueId, Option<Sources>>,
    /// Nodes that are computed once.
    taken: Table<NodeId, bool>,
    /// Values that the program reads, in reverse order.
    folded: Vec<ValueId>,
    /// Calls that read a packed operand.
    packed: Vec<(NodeId, Packing)>,
    /// Operands that will be packed.
    forms: BTreeSet<Form>,
    /// Bytes that further values may take.
    left: i64,
    /// Bytes that further values which no input decides may take.
    left_ahead: i64,
}

impl<'a> Finder<'a> {
    fn new(graph: &'a Graph, constant: &[bool], ahead: bool) -> Self {
        let mut sources: Table<ValueId, Option<Sources>> = Table::new();
        let mut all = 0i64;
        for (i, &v) in graph.inputs.iter().enumerate() {
            if constant.get(i) == Some(&true)
                && let Ok(meta) = known_meta(graph, v)
            {
                all = all.saturating_add(bytes(&meta));
                sources.set(v, Some(Sources { inputs: SmallVec::from_slice(&[i]), bytes: bytes(&meta), names: 1 }));
            }
        }
        let left = all.saturating_mul(GROWTH);
        let (taken, folded, packed, forms) = (Table::new(), Vec::new(), Vec::new(), BTreeSet::new());
        let left_ahead = if ahead { ALL_SMALL } else { 0 };
        Finder { graph, sources, taken, folded, packed, forms, left, left_ahead }
    }

    fn decide(&mut self) {
        let graph = self.graph;
        for (id, node) in graph.ordered() {
            let Some(sources) = self.of(node) else { continue };
            if !moves_only(node) {
                self.taken.set(id, true);
            }
            for r in &node.results {
                self.sources.set(*r, Some(sources.clone()));
            }
        }
        // From the end, so that all readers of a value are known when it is its turn.
        let (mut read, mut stays): (Table<ValueId, bool>, Table<ValueId, bool>) = (Table::new(), Table::new());
        graph.output_values().for_each(|v| read.set(v, true));
        for (id, node) in graph.order.iter().rev().map(|id| (*id, &graph.nodes[*id])) {
            let constant = node.results.iter().all(|r| self.sources[*r].is_some()) && !node.results.is_empty();
            if constant && !node.results.iter().any(|r| read[*r]) {
                continue;
            }
            if self.taken[id] {
                let kept: Vec<ValueId> = node.results.iter().copied().filter(|r| read[*r]).collect();
                let own = kept.iter().filter_map(|v| known_meta(graph, *v).ok()).map(|m| bytes(&m)).sum::<i64>();
                let ahead = self.sources[node.results[0]].as_ref().is_some_and(|s| s.inputs.is_empty());
                let left = if ahead { &mut self.left_ahead } else { &mut self.left };
                if own <= *left && kept.iter().all(|v| !stays[*v]) {
                    *left -= own;
                    self.folded.extend(kept);
                    continue;
                }
                self.taken.set(id, false);
            }
            let packed = self.packable(node);
            let def = node.op.def();
            let own = packed.as_ref().map(|p| p.of.operand as usize);
            for (_, arg) in node.args.iter().enumerate().filter(|(k, _)| own != Some(*k)) {
                arg.values().for_each(|v| read.set(*v, true));
            }
            if !def.pointwise {
                for reuse in def.reuse {
                    node.args
                        .get(reuse.arg as usize)
                        .into_iter()
                        .flat_map(|a| a.values())
                        .for_each(|v| stays.set(*v, true));
                }
            }
            if let Some(Movement::Scatter { base, .. }) = def.movement {
                node.args[base as usize].values().for_each(|v| stays.set(*v, true));
            }
            self.packed.extend(packed.map(|p| (id, p)));
        }
        self.folded.reverse();
        self.packed.reverse();
    }

    /// The sources of a node's results, if constants decide them.
    fn of(&self, node: &Node) -> Option<Sources> {
        let def = node.op.def();
        let computes = matches!(def.kernel, Kernel::Fixed(_)) || node.op.is_view() || def.movement.is_some();
        let same_always = !def.random && !def.effectful && def.hop.is_none() && def.asserts.is_none();
        let numbers = node.args.iter().flat_map(Arg::scalars).all(|e| e.constant().is_some());
        let known = || node.results.iter().all(|r| known_meta(self.graph, *r).is_ok());
        if !computes || !same_always || !numbers || node.results.is_empty() || !known() {
            return None;
        }
        // Nothing where it is not asked for.
        let made = || Sources { inputs: SmallVec::new(), bytes: SMALL / GROWTH, names: 0 };
        let mut all = (self.left_ahead > 0 && node.operands().next().is_none()).then(made);
        for v in node.operands() {
            let own = self.sources[v].as_ref()?;
            match &mut all {
                None => all = Some(own.clone()),
                Some(all) => {
                    all.bytes = all.bytes.max(own.bytes);
                    all.names += own.names;
                    all.inputs.extend(own.inputs.iter().copied());
                    all.inputs.sort_unstable();
                    all.inputs.dedup();
                }
            }
        }
        let mut all = all?;
        all.names += 1;
        let most = all.bytes.saturating_mul(GROWTH);
        let small = |r: &ValueId| moves_only(node) || known_meta(self.graph, *r).is_ok_and(|m| bytes(&m) <= most);
        let fits = all.inputs.len() <= SOURCES && all.names <= LONG && node.results.iter().all(small);
        fits.then_some(all)
    }

    /// A call's form with a packed operand, if that operand is constant, the call gains by it and there are bytes for it.
    fn packable(&mut self, node: &Node) -> Option<Packing> {
        let of = node.op.def().prepacked?;
        let &Arg::Value(operand) = node.args.get(of.operand as usize)? else { return None };
        self.sources[operand].as_ref()?;
        let meta = |v: &ValueId| known_meta(self.graph, *v);
        let args: Vec<Arg<Meta, Scalar>> = node
            .args
            .iter()
            .map(|a| a.try_map(meta, |e| e.constant().ok_or_else(|| restride_ir::OpError::new("a symbol"))))
            .collect::<std::result::Result<_, _>>()
            .ok()?;
        let (pack, numbers) = (of.numbers)(&Args(&args))?;
        let ty = packed_meta(of.pack, known_meta(self.graph, operand).ok()?, &pack).ok()?;
        let form = (operand, of.pack, pack);
        if !self.forms.contains(&form) {
            if bytes(&ty) > self.left {
                return None;
            }
            self.left -= bytes(&ty);
            self.forms.insert(form.clone());
        }
        Some(Packing { of, form, ty: ty.into(), numbers })
    }
}

/// The type of a packed operand.
fn packed_meta(with: &str, operand: Meta, numbers: &[i64]) -> Result<Meta> {
    let infer = operator(with).def().infer.expect("packing has a shape rule");
    let numbers = numbers.iter().map(|n| Arg::Scalar(Scalar::Int(*n)));
    let args: Vec<Arg<Meta, Scalar>> = std::iter::once(Arg::Value(operand)).chain(numbers).collect();
    Ok(infer(&Args(&args))?.swap_remove(0))
}

/// Whether placement can do without memory for a node's results.
fn moves_only(node: &Node) -> bool {
    node.op.is_view() || matches!(node.op.def().movement, Some(Movement::Same | Movement::View(_)))
}

fn bytes(meta: &Meta) -> i64 {
    layout_bytes(&meta.layout, meta.dtype.size())
}

/// The two programs under construction.
struct TakenOut<'a> {
    old: &'a Program,
    found: Finder<'a>,
    makers: Table<ValueId, Option<NodeId>>,
    positions: Table<ValueId, usize>,
    graph: Graph,
    inputs: Vec<usize>,
    /// The value in `graph` of a value of the program.
    map: Table<ValueId, Option<ValueId>>,
    /// Numbers of keys: values are named by their operators and the numbers of their operands.
    keys: Table<ValueId, Option<String>>,
    values: Vec<FoldedValue>,
}

impl<'a> TakenOut<'a> {
    fn new(old: &'a Program, found: Finder<'a>) -> Self {
        let mut makers: Table<ValueId, Option<NodeId>> = Table::new();
        for (id, node) in old.graph().ordered() {
            node.results.iter().for_each(|r| makers.set(*r, Some(id)));
        }
        let mut positions = Table::new();
        old.graph().inputs.iter().enumerate().for_each(|(i, v)| positions.set(*v, i));
        TakenOut {
            old,
            found,
            makers,
            positions,
            graph: Graph::new(),
            inputs: Vec::new(),
            map: Table::new(),
            keys: Table::new(),
            values: Vec::new(),
        }
    }

    fn finish(mut self) -> Result<(Program, Constants)> {
        let old = self.old;
        let main = old.main;
        let mut program = old.clone();
        let mut names = Names::default();
        program.graphs[main].values.iter().for_each(|(_, v)| drop(names.fresh(&v.name)));
        let taken = std::mem::take(&mut self.found.taken);
        program.graphs[main].order.retain(|id| !taken[*id]);
        for v in std::mem::take(&mut self.found.folded) {
            let value = self.compute(v);
            self.keep(v, value, false);
            program.graphs[main].inputs.push(v);
            program.signature.inputs.push(input(v, &old.graph().values[v].name));
        }
        let mut packed: BTreeMap<Form, ValueId> = BTreeMap::new();
        for (id, Packing { of, form, ty, numbers }) in std::mem::take(&mut self.found.packed) {
            let operand = form.0;
            let given = match packed.get(&form) {
                Some(given) => *given,
                None => {
                    let value = self.pack(&form, &ty, &old.graph().nodes[id]);
                    self.keep(operand, value, true);
                    let name = names.fresh(&format!("{}_packed", old.graph().values[operand].name));
                    let given = program.graphs[main].add_input(name.clone(), Type::Tensor(ty));
                    program.signature.inputs.push(input(given, &name));
                    packed.insert(form, given);
                    given
                }
            };
            let changed = &mut program.graphs[main].nodes[id];
            changed.op = operator(of.call);
            changed.args[of.operand as usize] = Arg::Value(given);
            changed.args.extend(numbers.into_iter().map(|n| Arg::Scalar(Expr::Int(n))));
        }
        dce(&mut program);
        // Once more, so that no value has both a node and an input.
        let program = rebuild(&program, |new, node| {
            let args = new.args(node);
            new.keep(node, args);
            Ok(())
        })?;
        Ok((program, Constants { graph: self.graph, inputs: self.inputs, values: self.values }))
    }

    /// Has a value of the program computed, with all that it depends on.
    fn compute(&mut self, v: ValueId) -> ValueId {
        let mut open = vec![v];
        while let Some(&v) = open.last() {
            if self.map[v].is_some() {
                open.pop();
                continue;
            }
            let graph = self.old.graph();
            let Some(maker) = self.makers[v] else {
                let at = self.positions[v];
                let given = self.graph.add_input(graph.values[v].name.clone(), graph.values[v].ty.clone());
                self.inputs.push(at);
                self.map.set(v, Some(given));
                self.keys.set(v, Some(name(&self.old.signature.inputs[at].kind, at)));
                continue;
            };
            let node = &graph.nodes[maker];
            let missing: Vec<ValueId> = node.operands().filter(|o| self.map[*o].is_none()).collect();
            if !missing.is_empty() {
                open.extend(missing);
                continue;
            }
            let args: Vec<Arg> =
                node.args.iter().map(|a| a.map_values(|o| self.map[*o].expect("made before"))).collect();
            let results = node.results.iter().map(|r| (graph.values[*r].name.clone(), graph.values[*r].ty.clone()));
            let made = self.graph.add_node(node.op, args, results, node.origin.clone());
            let made = self.graph.nodes[made].results.clone();
            let key = self.key(node.op, &node.args);
            for (at, (r, made)) in node.results.iter().zip(made).enumerate() {
                self.map.set(*r, Some(made));
                self.keys.set(*r, Some(if at == 0 { key.clone() } else { format!("{key}[{at}]") }));
            }
        }
        self.map[v].expect("it was computed")
    }

    /// A call by the keys of its operands.
    fn key(&self, op: Op, args: &[Arg]) -> String {
        let args: Vec<String> = args
            .iter()
            .map(|a| format!("{:?}", a.map_values(|v| NestedKey(self.keys[*v].as_deref().unwrap_or_default()))))
            .collect();
        format!("{op}({})", args.join(","))
    }

    /// A value of the program, packed.
    fn pack(&mut self, (v, with, numbers): &Form, ty: &TensorType, of: &Node) -> ValueId {
        let (from, op) = (self.compute(*v), operator(with));
        let numbers = numbers.iter().map(|n| Arg::Scalar(Expr::Int(*n)));
        let named: Vec<Arg> = std::iter::once(Arg::Value(*v)).chain(numbers.clone()).collect();
        let key = self.key(op, &named);
        let args = std::iter::once(Arg::Value(from)).chain(numbers).collect();
        let name = format!("{}_packed", self.graph.values[from].name);
        let made = self.graph.add_node(op, args, [(name.into(), Type::Tensor(ty.clone()))], of.origin.clone());
        let made = self.graph.nodes[made].results[0];
        self.values.push(FoldedValue { value: made, sources: Vec::new(), packed: true, bytes: 0, key });
        made
    }

    /// Makes a value of `graph` one that the program is given; `v` is what it depends on.
    fn keep(&mut self, v: ValueId, value: ValueId, packed: bool) {
        self.graph.outputs.push(Arg::Value(value));
        if !packed {
            let key = self.keys[v].clone().unwrap_or_default();
            self.values.push(FoldedValue { value, sources: Vec::new(), packed, bytes: 0, key });
        }
        let kept = self.values.last_mut().expect("just pushed");
        kept.sources = self.found.sources[v].as_ref().map_or_else(Vec::new, |s| s.inputs.to_vec());
        kept.bytes = known_meta(&self.graph, value).map_or(0, |m| bytes(&m));
    }
}

/// A key in another one, as it is.
struct NestedKey<'a>(&'a str);

impl std::fmt::Debug for NestedKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

fn operator(name: &str) -> Op {
    lookup(name).unwrap_or_else(|| panic!("the operator table has {name}"))
}

fn input(value: ValueId, name: &str) -> InputSpec {
    InputSpec { value, kind: InputKind::Constant(name.into()) }
}

/// An input by its name; one of a later segment by its position too.
fn name(kind: &InputKind, at: usize) -> String {
    match kind {
        InputKind::Parameter(n) | InputKind::Constant(n) | InputKind::Buffer { name: n, .. } => format!("%{n}"),
        _ => format!("%{at}"),
    }
}
