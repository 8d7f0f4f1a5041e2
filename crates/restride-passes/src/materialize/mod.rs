//! From a functional program back to one with in-place operators and views, as PyTorch has them.
//!
//! The memory of the result is PyTorch's: every operator's result is a tensor of its own, views share storage. The kinds of
//! sharing are those of placement, in PyTorch's operators. A result takes over the memory of an operand, by the in-place
//! form of its operator or by an out= form (`inplace.rs`). The new content of an input, the source of a scatter and a part
//! of a `cat` are computed in place (`destinations.rs`, `assemble.rs`). Copies that change nothing are left out
//! (`copies.rs`). `copy_` moves the rest.
//!
//! [`place`](crate::place()) decides the same questions, and the two share declarations: [`Movement`](restride_ir::Movement), view
//! rules, and the values that inputs become. The answers are separate, because a placement holds for one binding of the
//! symbols and a file for all of them, and because kernels differ: PyTorch's give their own strides and write by forms,
//! ours write any placed layout by `Reuse` licences. So this pass decides overlap by storages and placement by cells: memory is
//! overwritten if no value that may share its storage is used later and the program may write it. At the end mutated inputs
//! get their new contents by `copy_`, unless these were computed in the inputs' memory, and outputs become the views that they are in eager
//! PyTorch.
//!
//! Operators that read strides must see the declared ones; if PyTorch's kernels may give others, a copy with the declared
//! strides is put before them.
//!
//! The result is for inference: where PyTorch records gradients, it refuses out= forms and may refuse to differentiate
//! through values that are written in place.
//!
//! A view, or a part of a whole, may give later results other strides than declared. Where these are visible, in an output
//! or to an operator that reads strides, the copy that this needs is weighed against the copy that was left out
//! (`visible_strides.rs`).
//!
//! [`views`] makes the view form: nothing that has contents is overwritten, and inputs' new contents stay declared outputs.

mod assemble;
mod bodies;
mod copies;
mod custom_ops;
mod destinations;
mod foreach;
mod inplace;
mod outputs;
mod strides;
mod views;
mod visible_strides;

pub use views::{ViewOptions, views};

use crate::build::Builder;
use assemble::WholeParts;
use destinations::Destination;
use restride_ir::{
    Arg, Binding, Dim, Effects, Error, Expr, Graph, GraphId, InputKind, InputSpec, Names, Node, Op, Origin, Program,
    Result, Signature, Stage, Table, TensorType, Type, ValueId, callees_first,
};
use restride_ops::lookup;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Numbers of writes of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteCounts {
    /// Results that took over an operand's memory.
    pub in_place: usize,
    /// Scatters that became writes into a view.
    pub scatters: usize,
    /// Results that were computed straight where they were wanted.
    pub straight: usize,
    /// Wholes that were put together in place.
    pub assembled: usize,
    /// Copies that were left out.
    pub copies: usize,
    /// Inputs whose new content was computed in place.
    pub written_back: usize,
    /// Inputs whose new content is copied at the end.
    pub copied_back: usize,
}

/// The program with in-place operators and views.
///
/// # Errors
/// A program that is not functional; memory that PyTorch's operators cannot express.
pub fn materialize(program: &Program) -> Result<(Program, WriteCounts)> {
    if program.stage != Stage::Functional {
        return Err(Error::invalid("only a functional program can be made to write in place"));
    }
    // An in-place program is not differentiated: a history would be a copy.
    let plain = crate::grad::without_histories(program);
    let program = plain.as_ref().unwrap_or(program);
    let apart = foreach::apart(program)?;
    let merged = crate::scatters::merge(apart.as_ref().unwrap_or(program))?;
    let needed;
    let (mut ctx, mut made) = in_place(&merged, BTreeSet::new())?;
    if !made.regions.is_empty() {
        // Nodes that only compute outputs which become regions of inputs' memory are dropped.
        needed = outputs::taken_from_inputs(&merged, &made.regions);
        (ctx, made) = in_place(&needed, made.regions)?;
    }
    let counts = made.counts;
    Ok((ctx.with(made, ExportForm::InPlace), counts))
}

/// The main graph in place, with these outputs taken as regions of inputs' memory.
fn in_place(program: &Program, regions: BTreeSet<usize>) -> Result<(MaterializeContext<'_>, MadeGraph)> {
    let ctx = MaterializeContext { regions, ..MaterializeContext::new(program, ExportForm::InPlace)? };
    let made = visible_strides::with_fewest_copies(&ctx, program.main, ExportForm::InPlace)?;
    Ok((ctx, made))
}

/// The kind of program that is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ExportForm {
    /// Results in any memory that is free.
    InPlace,
    /// Views, and wholes put together in new memory; inputs' new contents are declared outputs.
    Slices,
    /// Views alone: a functional program.
    Views,
}

/// A graph in an export form.
struct MadeGraph {
    graph: Graph,
    /// Of the main graph.
    signature: Signature,
    /// The outputs of a body.
    results: Vec<bodies::BodyResult>,
    /// Bodies that it lets write their operands.
    writing: BTreeMap<GraphId, MadeGraph>,
    counts: WriteCounts,
    /// Where strides showed that are not the declared ones.
    shown: visible_strides::VisibleStrides,
    /// The outputs that are taken as regions of inputs' memory.
    regions: BTreeSet<usize>,
    /// Bytes that parts of wholes do not copy, less bytes copied for other values because of them.
    saved: i64,
}

/// A functional program, and the forms of its graphs made so far.
struct MaterializeContext<'a> {
    program: &'a Program,
    effects: Effects,
    /// Values of symbols at which layouts are compared.
    witness: Binding,
    /// The bodies of higher-order calls that are made already.
    bodies: BTreeMap<GraphId, MadeGraph>,
    /// Graphs by how often they are called.
    calls: BTreeMap<GraphId, usize>,
    /// Outputs that are taken as regions of inputs' memory, whatever value they are said to be.
    regions: BTreeSet<usize>,
}

impl<'a> MaterializeContext<'a> {
    /// Makes the bodies, those that are called first. In a program that stays functional they stay as they are.
    fn new(program: &'a Program, form: ExportForm) -> Result<Self> {
        let (effects, witness) = (Effects::new(program)?, crate::symbols::witness(program));
        let calls = program.call_counts();
        let (bodies, regions) = (BTreeMap::new(), BTreeSet::new());
        let mut ctx = MaterializeContext { program, effects, witness, bodies, calls, regions };
        if form == ExportForm::Views {
            return Ok(ctx);
        }
        for id in callees_first(program)? {
            if id != program.main {
                let made = visible_strides::with_fewest_copies(&ctx, id, form)?;
                ctx.bodies.insert(id, made);
            }
        }
        Ok(ctx)
    }

    /// The program with the main graph that was made, and the bodies.
    fn with(self, main: MadeGraph, form: ExportForm) -> Program {
        let mut out = self.program.clone();
        if form != ExportForm::Views {
            out.stage = Stage::Imported;
        }
        // From the callers on: a caller may have let a body write.
        let (mut bodies, mut todo) = (self.bodies, vec![(out.main, main)]);
        while let Some((id, mut made)) = todo.pop() {
            let called: Vec<GraphId> = made.graph.ordered().flat_map(|(_, n)| n.bodies()).collect();
            for body in called {
                let own = made.writing.remove(&body).or_else(|| bodies.remove(&body));
                todo.extend(own.map(|own| (body, own)));
            }
            if id == out.main {
                out.signature = made.signature;
            }
            out.graphs[id] = made.graph;
        }
        out
    }
}

/// A graph in a form, with the copies in `kept` as they are, and no part of a whole among them.
fn made(ctx: &MaterializeContext<'_>, id: GraphId, form: ExportForm, kept: &BTreeSet<ValueId>) -> Result<MadeGraph> {
    Materializer::new(ctx, id, form, kept).made()
}

impl Materializer<'_> {
    fn made(self) -> Result<MadeGraph> {
        let mut m = self;
        let form = m.form;
        match form {
            _ if !m.main => m.parameters(),
            ExportForm::Views => m.inputs_as_they_are(),
            _ => m.inputs()?,
        }
        m.look_ahead()?;
        for (at, &id) in m.old.order.iter().enumerate() {
            let node = &m.old.nodes[id];
            m.node(at, node).map_err(|e| e.at(m.old, id))?;
        }
        let (mut outputs, mut results) = (Vec::new(), Vec::new());
        match form {
            _ if !m.main => results = m.results()?,
            ExportForm::Views => outputs = m.outputs_as_they_are()?,
            _ => outputs = m.finish()?,
        }
        let shown = m.shown();
        let saved = m.parts.saved() - m.copied;
        let signature = Signature { inputs: m.specs, outputs };
        Ok(MadeGraph {
            graph: m.new,
            signature,
            results,
            writing: m.writing,
            counts: m.counts,
            shown,
            regions: m.regions,
            saved,
        })
    }
}

/// Facts about a new value.
#[derive(Clone, Default)]
struct ValueFact {
    /// Storages that the value may be on.
    roots: BTreeSet<usize>,
    /// The tensor that it is, where two values are one.
    identity: Option<usize>,
    /// The type is sure to be that of PyTorch's tensor.
    sure: bool,
}

/// The last uses of the values in a storage: the latest, whose it is, and the latest of the others.
#[derive(Clone, Copy)]
struct Busy {
    value: ValueId,
    last: usize,
    others: Option<usize>,
}

struct Materializer<'a> {
    ctx: &'a MaterializeContext<'a>,
    program: &'a Program,
    /// Whether it is the main graph; the bodies of higher-order calls have no signature.
    main: bool,
    form: ExportForm,
    old: &'a Graph,
    new: Graph,
    names: Names,
    map: Table<ValueId, Option<ValueId>>,
    facts: Table<ValueId, ValueFact>,
    /// The last uses of the values that may be on each storage.
    busy: BTreeMap<usize, Busy>,
    /// Storages that may be written.
    writable: BTreeSet<usize>,
    /// Storages of inputs.
    input_roots: BTreeSet<usize>,
    /// Position of the last use of each old value; `usize::MAX` for returned values.
    last_use: Table<ValueId, Option<usize>>,
    /// Position of the use before the last.
    use_before: Table<ValueId, Option<usize>>,
    /// Old values whose memory the caller may see.
    visible: BTreeSet<ValueId>,
    /// Where old values are wanted.
    wants: BTreeMap<ValueId, Destination>,
    /// Sources that were computed straight in the region of the scatter at this position.
    in_region: BTreeMap<usize, ValueId>,
    /// Wholes that are assembled in place.
    parts: WholeParts,
    /// Copies that stay, and values that are no part of a whole.
    kept: &'a BTreeSet<ValueId>,
    /// Old values that are views for copies.
    viewed: BTreeSet<ValueId>,
    /// Old values whose strides show, and are not the declared ones.
    showing: Vec<ValueId>,
    /// The outputs that were taken as regions of inputs' memory.
    regions: BTreeSet<usize>,
    /// Bytes of copies that the functional program does not make.
    copied: i64,
    specs: Vec<InputSpec>,
    next: usize,
    counts: WriteCounts,
    /// Of a body: inputs that it may write, by the outputs that are their new contents.
    written: BTreeMap<usize, usize>,
    /// Bodies that may write operands of their calls.
    writing: BTreeMap<GraphId, MadeGraph>,
}

impl<'a> Materializer<'a> {
    fn new(ctx: &'a MaterializeContext<'a>, id: GraphId, form: ExportForm, kept: &'a BTreeSet<ValueId>) -> Self {
        let program = ctx.program;
        let old = &program.graphs[id];
        let mut last_use: Table<ValueId, Option<usize>> = Table::new();
        let mut use_before: Table<ValueId, Option<usize>> = Table::new();
        let mut used = |v: ValueId, at: usize| {
            if last_use[v] != Some(at) {
                use_before.set(v, last_use[v]);
                last_use.set(v, Some(at));
            }
        };
        for (at, (_, node)) in old.ordered().enumerate() {
            node.operands().for_each(|v| used(v, at));
        }
        old.output_values().for_each(|v| used(v, usize::MAX));
        Materializer {
            ctx,
            program,
            main: id == program.main,
            form,
            old,
            new: Graph { name: old.name.clone(), ..Graph::new() },
            names: Names::default(),
            map: Table::new(),
            facts: Table::new(),
            busy: BTreeMap::new(),
            writable: BTreeSet::new(),
            input_roots: BTreeSet::new(),
            last_use,
            use_before,
            visible: BTreeSet::new(),
            wants: BTreeMap::new(),
            in_region: BTreeMap::new(),
            parts: WholeParts::default(),
            kept,
            viewed: BTreeSet::new(),
            showing: Vec::new(),
            regions: BTreeSet::new(),
            copied: 0,
            specs: Vec::new(),
            next: 0,
            counts: WriteCounts::default(),
            written: BTreeMap::new(),
            writing: BTreeMap::new(),
        }
    }

    /// The input at a position of the signature, or of a body.
    fn input(&self, i: usize) -> ValueId {
        if self.main { self.program.signature.inputs[i].value } else { self.old.inputs[i] }
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// The new value of an old one.
    fn value(&self, old: ValueId) -> Result<ValueId> {
        self.map[old].ok_or_else(|| Error::invalid(format!("%{} is used before it is made", self.old.values[old].name)))
    }

    fn bind(&mut self, old: ValueId, new: ValueId) {
        self.map.set(old, Some(new));
        let Some(last) = self.last_use[old] else { return };
        for root in self.facts[new].roots.iter() {
            let busy = self.busy.entry(*root).or_insert(Busy { value: old, last, others: None });
            if busy.value == old {
                continue;
            }
            if last > busy.last {
                *busy = Busy { value: old, last, others: Some(busy.last) };
            } else {
                busy.others = busy.others.max(Some(last));
            }
        }
    }

    /// Notes that a new value is a fresh tensor.
    fn own(&mut self, v: ValueId, sure: bool) {
        let root = self.fresh();
        self.writable.insert(root);
        self.facts.set(v, ValueFact { roots: [root].into(), identity: Some(root), sure });
    }

    /// Notes that a new value is a tensor object on these storages.
    fn set_fact(&mut self, v: ValueId, roots: BTreeSet<usize>, sure: bool) {
        let identity = Some(self.fresh());
        self.facts.set(v, ValueFact { roots, identity, sure });
    }

    fn build<T>(&mut self, origin: &Arc<Origin>, hint: &str, f: impl FnOnce(&mut Builder<'_>) -> T) -> T {
        f(&mut Builder::new(&mut self.new, &mut self.names, origin.clone(), hint.into()))
    }

    /// Inputs, and the flat storages that are made of them.
    fn inputs(&mut self) -> Result<()> {
        let signature = &self.program.signature;
        let mut mutated = BTreeSet::new();
        for spec in &signature.outputs {
            if let restride_ir::OutputKind::Mutation(i) = spec.kind {
                mutated.insert(i);
            }
        }
        // One storage for inputs that are known to share: weights, and inputs on a flat storage.
        let mut storage: Vec<Option<usize>> = vec![None; signature.inputs.len()];
        let mut of_weight: BTreeMap<usize, usize> = BTreeMap::new();
        for (i, spec) in signature.inputs.iter().enumerate() {
            if let InputKind::Storage(members) = &spec.kind {
                let root = members.iter().find_map(|m| storage[*m]).unwrap_or_else(|| self.fresh());
                storage[i] = Some(root);
                members.iter().for_each(|m| storage[*m] = Some(root));
            } else if let Some(w) = self.program.weight_name(i).and_then(|n| self.program.weights.tensors.get(n)) {
                let root = match of_weight.get(&w.storage) {
                    Some(r) => *r,
                    None => self.fresh(),
                };
                of_weight.insert(w.storage, root);
                storage[i] = Some(root);
            }
        }
        // A storage input may have joined members that a weight's storage had joined to others.
        for (i, spec) in signature.inputs.iter().enumerate() {
            if let InputKind::Storage(members) = &spec.kind {
                let all: Vec<usize> = members.iter().chain([&i]).filter_map(|m| storage[*m]).collect();
                let to = all[0];
                storage.iter_mut().flatten().filter(|r| all.contains(r)).for_each(|r| *r = to);
            }
        }
        for (i, spec) in signature.inputs.iter().enumerate() {
            let old = &self.old.values[spec.value];
            if matches!(spec.kind, InputKind::Storage(_)) {
                continue;
            }
            let name = self.names.fresh(&old.name);
            let v = self.new.add_input(name, old.ty.clone());
            if let Type::Tensor(_) = &old.ty {
                let root = storage[i].unwrap_or_else(|| self.fresh());
                self.set_fact(v, [root].into(), true);
                self.input_roots.insert(root);
                if mutated.contains(&i) {
                    self.writable.insert(root);
                }
            }
            self.bind(spec.value, v);
            self.specs.push(InputSpec { value: v, kind: spec.kind.clone() });
        }
        if signature
            .inputs
            .iter()
            .skip_while(|s| !matches!(s.kind, InputKind::Storage(_)))
            .any(|s| !matches!(s.kind, InputKind::Storage(_)))
        {
            return Err(Error::invalid("a flat storage stands before other inputs"));
        }
        for (i, spec) in signature.inputs.iter().enumerate() {
            if let InputKind::Storage(members) = &spec.kind {
                let root = storage[i].expect("every flat storage has one");
                if mutated.contains(&i) {
                    self.writable.insert(root);
                }
                self.flat_storage(spec.value, members, root)?;
            }
        }
        Ok(())
    }

    /// The flat storage under inputs, as a view of one of them.
    fn flat_storage(&mut self, value: ValueId, members: &[usize], root: usize) -> Result<()> {
        let flat = self.old.tensor(value).clone();
        let first = members
            .iter()
            .map(|m| self.program.signature.inputs[*m].value)
            .find(|v| self.old.values[*v].ty.tensor().is_some())
            .ok_or_else(|| Error::invalid("a storage under inputs that are no tensors"))?;
        let own = self.old.tensor(first).dtype;
        let first = self.value(first)?;
        let bytes = flat.layout.numel().times(&Expr::Int(flat.dtype.size() as i64));
        let cells = bytes.floor_div(&Expr::Int(own.size() as i64));
        let hint = self.old.values[value].name.clone();
        let v = self.build(&Arc::default(), &hint, |b| {
            let typed = b.as_strided(first, TensorType::contiguous(own, &[cells]));
            if own == flat.dtype {
                return typed;
            }
            b.call("aten.view.dtype", vec![Arg::Value(typed), Arg::DType(flat.dtype)], flat.clone())
        });
        self.set_fact(v, [root].into(), true);
        self.bind(value, v);
        Ok(())
    }

    fn node(&mut self, at: usize, node: &Node) -> Result<()> {
        let done = self.pass_through(node)?
            || self.assemble(at, node)?
            || self.straight(at, node)?
            || self.form == ExportForm::InPlace
                && (self.in_place(at, node)?
                    || self.scatter(at, node)?
                    || self.custom(at, node)?
                    || self.branches(at, node)?);
        if done {
            return Ok(());
        }
        let mut args = self.mapped(node)?;
        if self.form == ExportForm::Views {
            return self.as_it_is(node, args);
        }
        self.settle(node, &mut args)?;
        self.settle_parameters(node, &mut args)?;
        self.call(node, node.op, args)
    }

    /// A node's arguments over new values.
    fn mapped(&self, node: &Node) -> Result<Vec<Arg>> {
        node.args.iter().map(|a| a.try_map(|v| self.value(*v), |e| Ok::<_, Error>(e.clone()))).collect()
    }

    /// A call as it is, its results with the types that PyTorch's kernel gives.
    fn call(&mut self, node: &Node, op: Op, args: Vec<Arg>) -> Result<()> {
        self.call_typed(node, op, args, false)
    }

    /// A call as it is; its results keep their `declared` types, or have those that PyTorch's kernel gives.
    fn call_typed(&mut self, node: &Node, op: Op, args: Vec<Arg>, declared: bool) -> Result<()> {
        let operands: Vec<ValueId> = args.iter().flat_map(|a| a.values().copied()).collect();
        let sure = op.def().hop.is_none()
            && operands.iter().all(|v| self.new.values[*v].ty.tensor().is_none() || self.facts[*v].sure);
        // Of operands that may have other strides, the rule still gives the type that agrees with their declared ones.
        let known = if op.def().hop.is_none() { self.metas(&args) } else { None };
        let metas = known.and_then(|m| op.eager_metas(&m));
        let mut results = Vec::with_capacity(node.results.len());
        let mut sures = Vec::with_capacity(node.results.len());
        let given = self.given(node, op)?;
        for (i, &r) in node.results.iter().enumerate() {
            let value = &self.old.values[r];
            let meta = metas.as_ref().filter(|m| m.len() == node.results.len()).map(|m| &m[i]);
            let (ty, sure) = match (&value.ty, meta) {
                (Type::Tensor(t), Some(meta)) => {
                    let known = self.known(t);
                    if known.as_ref().is_some_and(|d| d.same_strides(meta) && d.layout.offset == meta.layout.offset) {
                        (value.ty.clone(), sure)
                    } else if t.known().is_some() && !declared {
                        (Type::Tensor(meta.clone().into()), sure)
                    } else {
                        (value.ty.clone(), false)
                    }
                }
                (ty, _) => (ty.clone(), given.get(i) == Some(&true)),
            };
            results.push((self.names.fresh(&value.name), ty));
            sures.push(sure);
        }
        let id = self.new.add_node(op, args, results, node.origin.clone());
        let made = self.new.nodes[id].results.clone();
        let viewed = self.viewed(id);
        let aliases = if viewed == Some(false) { Vec::new() } else { self.aliases(node)? };
        let together = self.together(node)?;
        for (i, (&old, &new)) in node.results.iter().zip(&made).enumerate() {
            if self.new.values[new].ty.tensor().is_some() {
                let mut roots = BTreeSet::new();
                for (_, o) in aliases.iter().filter(|a| a.0 == i) {
                    roots.extend(self.facts[operands[*o]].roots.iter().copied());
                }
                if op.is_view() && viewed.is_none() {
                    // In an operand's memory, or in memory of its own.
                    let own = self.fresh();
                    self.writable.insert(own);
                    roots.insert(own);
                }
                if roots.is_empty() && viewed.is_none() && op.may_pass_through() {
                    roots.extend(operands.iter().flat_map(|o| self.facts[*o].roots.iter()).copied());
                    // Or in memory of its own, which is not known to be free.
                    roots.insert(self.fresh());
                }
                if let Some(root) = together.get(i) {
                    // In memory of its own, or in an operand's.
                    self.writable.insert(*root);
                    roots.insert(*root);
                }
                if roots.is_empty() {
                    self.own(new, sures[i]);
                } else {
                    self.set_fact(new, roots, sures[i]);
                }
            }
            self.bind(old, new);
        }
        Ok(())
    }
}

/// An operator with its arguments filled up.
fn filled(name: &str, mut args: Vec<Arg>) -> Result<(Op, Vec<Arg>)> {
    let op = lookup(name).ok_or_else(|| Error::unsupported(format!("operator {name} is not known")))?;
    op.fill_defaults_or_none(&mut args);
    Ok((op, args))
}
