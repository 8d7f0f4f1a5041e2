//! Node by node: views become aliases, writes become versions, and every other operator is called on the values it reads.

use super::histories::{SavedOperand, saves, saves_argument, saves_result};
use super::shared_region::SharedRegion;
use super::storages::{AliasId, AliasView, StorageId, VersionedStorages, ViewCall};
use crate::args::view_number;
use crate::build::Builder;
use crate::peephole;
use restride_ir::{
    Arg, Args, Binding, Error, Expr, Graph, Id, LazyBits, Names, Node, NodeId, Op, Origin, Program, Table, TensorType,
    Type, ValueId, ViewOutcome, dense_like,
};
use restride_ops::lookup;
use smallvec::{SmallVec, smallvec};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why a rewrite does not go on.
pub enum Halt {
    /// The input at this position is needed with its whole storage.
    NeedsStorage(usize),
    /// The storage of the input at this position has to be this large, in bytes: the program makes it grow.
    NeedsRoom(usize, i64),
    /// Whether memory is shared depends on sizes that are symbols, and it matters: the error where they stay symbols.
    NeedsSizes(Box<Error>),
    /// The program cannot be functionalized.
    Error(Error),
}
impl From<Error> for Halt {
    fn from(e: Error) -> Self {
        Halt::Error(e)
    }
}
impl From<restride_ir::OpError> for Halt {
    fn from(e: restride_ir::OpError) -> Self {
        Halt::Error(e.into())
    }
}

/// Result of a rewrite step.
pub type Rewrite<T> = std::result::Result<T, Halt>;

/// The counterpart of an old value in the new graph.
#[derive(Clone, Copy, Debug)]
pub enum NewValue {
    /// A tensor object: its alias may be exchanged by a metadata mutation.
    Object(usize),
    /// A number, string or token.
    Plain(ValueId),
}

/// One graph being rewritten.
pub struct Rewriter<'a> {
    /// The whole old program.
    pub program: &'a Program,
    /// The old graph.
    pub old: &'a Graph,
    /// The new graph.
    pub new: Graph,
    /// Names of the new graph.
    pub names: Names,
    /// Storages and aliases.
    pub storages: VersionedStorages,
    /// The counterpart of each old value.
    pub map: Table<ValueId, Option<NewValue>>,
    /// The alias of each tensor object.
    pub objects: Vec<AliasId>,
    /// Pairs of tensor objects that are one if a call takes one of its branches, and the call's operator.
    pub(super) open_objects: Vec<(usize, usize, Op)>,
    /// Storages whose lazy bits depend on how a call runs, and the call's operator.
    pub(super) open_bits: BTreeMap<StorageId, Op>,
    /// New graphs for subgraphs, of the whole program.
    pub graphs: Vec<Graph>,
    /// Values of the program's symbols, once asked for.
    witness: OnceCell<Binding>,
    /// Values bound to ids that the old graph does not have.
    items: usize,
}

impl<'a> Rewriter<'a> {
    /// An empty scope for a graph.
    pub fn new(program: &'a Program, old: &'a Graph) -> Self {
        Rewriter {
            program,
            old,
            new: Graph::new(),
            names: Names::default(),
            storages: VersionedStorages::default(),
            map: Table::new(),
            objects: Vec::new(),
            open_objects: Vec::new(),
            open_bits: BTreeMap::new(),
            graphs: Vec::new(),
            witness: OnceCell::new(),
            items: 0,
        }
    }

    /// Values of the program's symbols that pass the program's checks.
    pub fn witness(&self) -> &Binding {
        self.witness.get_or_init(|| crate::symbols::witness(self.program))
    }

    /// A new tensor object.
    pub fn object(&mut self, alias: AliasId) -> NewValue {
        self.objects.push(alias);
        NewValue::Object(self.objects.len() - 1)
    }

    /// A new tensor object that is one of `others` if a call takes one of its branches.
    pub(super) fn object_of_branches(&mut self, alias: AliasId, others: &[usize], call: Op) -> NewValue {
        let new = self.objects.len();
        self.open_objects.extend(others.iter().map(|o| (new, *o, call)));
        self.object(alias)
    }

    /// The other objects that may be the same as this one, with the call that leaves it open.
    pub(super) fn maybe_objects(&self, object: usize) -> Vec<(usize, Op)> {
        let mut found: Vec<(usize, Op)> = Vec::new();
        if self.open_objects.is_empty() {
            return found;
        }
        let mut todo = vec![object];
        while let Some(o) = todo.pop() {
            for &(a, b, call) in &self.open_objects {
                let other = if a == o { b } else { a };
                if (a == o || b == o) && other != object && found.iter().all(|f| f.0 != other) {
                    found.push((other, call));
                    todo.push(other);
                }
            }
        }
        found
    }

    /// Binds an old value.
    pub fn bind(&mut self, old: ValueId, bound: NewValue) {
        self.map.set(old, Some(bound));
    }

    /// The alias of an old tensor value.
    pub fn alias(&self, old: ValueId) -> Rewrite<AliasId> {
        match self.map[old] {
            Some(NewValue::Object(o)) => Ok(self.objects[o]),
            _ => Err(Error::invalid(format!("%{} is not a tensor", self.old.values[old].name)).into()),
        }
    }

    /// The tensor object that an old value is.
    pub(super) fn object_of(&self, old: ValueId) -> Option<usize> {
        match self.map[old] {
            Some(NewValue::Object(o)) => Some(o),
            _ => None,
        }
    }

    /// Runs `f` with a builder for the new graph.
    pub fn build<T>(&mut self, node: &Node, f: impl FnOnce(&mut Builder<'_>, &mut VersionedStorages) -> T) -> T {
        let hint = node.results.first().map(|r| self.old.values[*r].name.clone()).unwrap_or_else(|| "v".into());
        let mut b = Builder::new(&mut self.new, &mut self.names, node.origin.clone(), hint);
        f(&mut b, &mut self.storages)
    }

    /// The current elements of an old value.
    pub fn read(&mut self, node: &Node, old: ValueId) -> Rewrite<ValueId> {
        match self.map[old] {
            Some(NewValue::Plain(v)) => Ok(v),
            Some(NewValue::Object(o)) => self.read_object(node, o),
            None => Err(Error::invalid(format!("%{} is used before it is made", self.old.values[old].name)).into()),
        }
    }

    /// The current elements of a tensor object.
    pub fn read_object(&mut self, node: &Node, object: usize) -> Rewrite<ValueId> {
        let alias = self.objects[object];
        self.certain(alias)?;
        Ok(self.build(node, |b, s| s.read(b, alias))?)
    }

    /// An argument over current values.
    pub(super) fn read_arg(&mut self, node: &Node, arg: &Arg) -> Rewrite<Arg> {
        arg.try_map(|v| self.read(node, *v), |e| Ok(e.clone()))
    }

    /// Rewrites every node.
    pub fn nodes(&mut self) -> Rewrite<()> {
        let old = self.old;
        for (id, node) in old.ordered() {
            self.node(node).map_err(|stop| locate(stop, old, id))?;
        }
        Ok(())
    }

    pub(super) fn node(&mut self, node: &Node) -> Rewrite<()> {
        let op = node.op;
        if op.def().hop.is_some() {
            return self.control(node);
        }
        if let (Some(member), true) = (op.member(), op.is_each_member(op.mutates(&node.args))) {
            return self.foreach(node, member);
        }
        if op.def().metadata {
            return self.metadata(node);
        }
        if let Some(form) = restride_ops::custom_form(op) {
            return self.custom(node, form);
        }
        if let Some(composed) = op.def().in_place_calls
            && !self.as_twin(node, composed)?
        {
            return self.in_place_calls(node, composed);
        }
        if op.mutates(&node.args) {
            let Some(twin) = op.twin() else {
                return Err(Error::unsupported(format!("{op} writes an argument and has no functional form"))
                    .help("register the operator with a functional form")
                    .into());
            };
            return self.mutate(node, twin);
        }
        if op.is_view() && !op.def().history && self.view(node)? {
            return Ok(());
        }
        self.pure(node)
    }

    /// A call that only reads.
    fn pure(&mut self, node: &Node) -> Rewrite<()> {
        let shares = |r: &restride_ir::SchemaReturn| r.alias.is_some();
        if !node.op.is_view() && !node.op.can_run() && node.op.schema().returns.iter().any(shares) {
            let what = format!("{} returns a view, but does not declare which part of its argument it shows", node.op);
            return Err(Error::unsupported(what).into());
        }
        let mut args = Vec::with_capacity(node.args.len());
        for a in &node.args {
            args.push(if node.op.def().strided { self.declared_arg(node, a)? } else { self.read_arg(node, a)? });
        }
        // A copy under `no_grad` is a constant, which the value that it copies may not be.
        let replaced = if node.origin.no_grad { None } else { peephole::replace(node.op, &args, &self.new) };
        if let ([r], Some(value)) = (&node.results[..], replaced) {
            let ty = self.old.tensor(*r).clone();
            let value = self.build(node, |b, _| b.declare(value, &ty));
            self.bind_fresh(*r, value);
            return Ok(());
        }
        self.add_pure(node, node.op, args)?;
        let results: SmallVec<[_; 1]> = node.results.iter().map(|r| self.alias(*r).ok()).collect();
        self.note_saved(node, &node.args, &results);
        Ok(())
    }

    /// Notes the values that PyTorch saves of the call just added for `node`, whose operands are those of `args` and whose
    /// results are `results`. PyTorch copies values that the call itself writes first.
    pub(super) fn note_saved(&mut self, node: &Node, args: &[Arg], results: &[Option<AliasId>]) {
        let Some(&id) = self.new.order.last() else { return };
        let added = &self.new.nodes[id];
        let floating =
            |r: &ValueId| self.new.values[*r].ty.tensor().is_some_and(|t| t.dtype.is_float() || t.dtype.is_complex());
        if node.origin.no_grad || !saves(added.op) || !added.results.iter().any(floating) {
            return;
        }
        let writes = added.op != node.op;
        let targets: SmallVec<[StorageId; 1]> =
            results.iter().flatten().filter(|_| writes).map(|a| self.storages[*a].storage).collect();
        let mut saved: SmallVec<[(usize, AliasId); 4]> = SmallVec::new();
        let mut position = 0;
        for (i, v) in args.iter().enumerate().flat_map(|(i, a)| a.values().map(move |v| (i, v))) {
            let alias = self.alias(*v).ok().filter(|a| !targets.contains(&self.storages[*a].storage));
            saved.extend(alias.filter(|_| saves_argument(added.op, i)).map(|a| (position, a)));
            position += 1;
        }
        let kept = results.iter().enumerate().filter(|(i, _)| saves_result(added.op, *i));
        saved.extend(kept.filter_map(|(i, a)| Some((position + i, (*a)?))));
        for (position, alias) in saved {
            self.storages.saved(alias, SavedOperand { node: id, position: position as u32 });
        }
    }

    /// Marks calls whose saved values were changed by a write that PyTorch does not record.
    pub(super) fn mark_overwritten(&mut self) {
        let mut found: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        for SavedOperand { node, position } in self.storages.overwritten() {
            found.entry(node).or_default().push(position);
        }
        for (id, mut positions) in found {
            let node = &mut self.new.nodes[id];
            positions.extend(node.origin.overwritten.iter().flat_map(|o| o.iter().copied()));
            positions.sort_unstable();
            positions.dedup();
            node.origin = Arc::new(Origin { overwritten: Some(positions.into()), ..(*node.origin).clone() });
        }
    }

    /// An argument over current values with the declared strides of eager PyTorch, for operators that read strides.
    pub(super) fn declared_arg(&mut self, node: &Node, arg: &Arg) -> Rewrite<Arg> {
        let declared = |scope: &mut Self, v: &ValueId| {
            let value = scope.read(node, *v)?;
            let Some(NewValue::Object(o)) = scope.map[*v] else { return Ok(value) };
            let ty = scope.storages[scope.objects[o]].ty.clone();
            Ok::<_, Halt>(scope.build(node, |b, _| b.declare(value, &ty)))
        };
        arg.try_map(|v| declared(self, v), |e| Ok(e.clone()))
    }

    fn add_pure(&mut self, node: &Node, op: Op, args: Vec<Arg>) -> Rewrite<()> {
        let result = |&r: &ValueId| (self.names.fresh_shared(&self.old.values[r].name), self.old.values[r].ty.clone());
        let id = self.new.add_node(op, args, node.results.iter().map(result), node.origin.clone());
        let made = self.new.nodes[id].results.clone();
        for (&old, &new) in node.results.iter().zip(&made) {
            self.bind_fresh(old, new);
        }
        Ok(())
    }

    /// Binds an old value to a new one with a storage of its own.
    pub fn bind_fresh(&mut self, old: ValueId, new: ValueId) {
        self.bind_storage(old, new, None);
    }

    /// Binds an old value to an input, which may be on a larger storage.
    pub fn bind_given(&mut self, old: ValueId, new: ValueId, input: usize) {
        self.bind_storage(old, new, Some(input));
    }

    fn bind_storage(&mut self, old: ValueId, new: ValueId, input: Option<usize>) {
        let bound = match &self.new.values[new].ty {
            Type::Tensor(ty) => {
                let ty = ty.clone();
                let alias = self.storages.add(new, ty, input);
                self.object(alias)
            }
            _ => NewValue::Plain(new),
        };
        self.bind(old, bound);
    }

    /// Types and numbers of a call's arguments as a view rule reads them, with aliases' regions for tensors.
    pub(super) fn view_args(&self, node: &Node) -> Rewrite<Vec<Arg<TensorType, Expr>>> {
        let ty = |v: &ValueId| Ok::<_, Halt>(TensorType::clone(&self.storages[self.alias(*v)?].ty));
        Arg::try_map_all(&node.args, ty, |e| Ok(view_number(e)))
    }

    pub(super) fn outcome(&self, node: &Node) -> Rewrite<ViewOutcome<Expr>> {
        let rule = node.op.def().view.expect("a view operator has a rule");
        let args = self.view_args(node)?;
        Ok((rule.symbolic)(&Args(&args))?)
    }

    /// Binds the results of a view call to aliases; false if the call copies.
    fn view(&mut self, node: &Node) -> Rewrite<bool> {
        if let Some(Arg::Value(base)) = node.args.first() {
            self.refuse_open_view(node, *base)?;
        }
        if let (true, Some(Arg::Value(base))) = (node.op.def().resolves, node.args.first())
            && !self.bits(*base)?.is_clear()
        {
            let mut of_copy = node.clone();
            of_copy.args[0] = Arg::Value(self.settled(node, *base)?);
            return self.view(&of_copy);
        }
        let types: SmallVec<[SharedRegion; 1]> = match self.outcome(node)? {
            ViewOutcome::Copy => return Ok(false),
            ViewOutcome::Unknown => {
                self.pure(node)?;
                self.link(node)?;
                return Ok(true);
            }
            ViewOutcome::Views(types) => self.spelled(node, types)?.into_iter().map(SharedRegion::from).collect(),
        };
        let Some(Arg::Value(base)) = node.args.first() else {
            return Err(Error::invalid("a view of something that is no tensor").into());
        };
        let parent = self.alias(*base)?;
        let own = &self.storages[parent];
        let bits = own.eager_bits();
        if let ([one], [result], true) = (&types[..], &node.results[..], node.op.def().itself)
            && *one == own.ty
            && bits.of_view(node.op, &own.ty, one)? == Some(bits)
        {
            // Nothing changes: it is the tensor itself.
            let object = self.map[*base];
            self.map.set(*result, object);
            return Ok(true);
        }
        self.check_reach(node.op, parent, &types)?;
        let Some(made) = self.views(node, parent, &types)? else {
            // A lazy bit is applied: a copy of the tensor's elements.
            let value = self.read_copy(node, *base)?;
            node.results.iter().for_each(|&r| self.bind_fresh(r, value));
            return Ok(true);
        };
        for (&old, alias) in node.results.iter().zip(made) {
            let bound = self.object(alias);
            self.bind(old, bound);
        }
        Ok(true)
    }

    /// Symbolic types of views in the program's own expressions, which its guards make simpler: `s - 1` for `s - Max(0,
    /// Min(s, 1))`. These hold for tensors with the declared layout.
    fn spelled(&self, node: &Node, types: SmallVec<[TensorType; 1]>) -> Rewrite<SmallVec<[TensorType; 1]>> {
        let Some(Arg::Value(base)) = node.args.first() else { return Ok(types) };
        let said_of = &self.storages[self.alias(*base)?].ty;
        let known = types.iter().all(|ty| ty.known().is_some());
        if known || self.old.values.get(*base).and_then(|v| v.ty.tensor()) != Some(said_of) {
            return Ok(types);
        }
        let witness = self.witness();
        let at = |ty: &TensorType| ty.layout.map(|e| e.substitute(witness)).known();
        let mut out = types;
        for (found, r) in out.iter_mut().zip(&node.results) {
            let Some(said) = self.old.values[*r].ty.tensor() else { continue };
            let (Some(there), Some(here)) = (at(said), at(found)) else { continue };
            if there == here && said.dtype == found.dtype {
                *found = said.clone();
            } else if there.sizes != here.sizes {
                // The exporter took the sign of a number to be another.
                let what = format!("%{} is {said}, its rule gives {found}", self.old.values[*r].name);
                return Err(Error::invalid(what).into());
            }
        }
        Ok(out)
    }

    /// The lazy bits of eager PyTorch's tensor.
    pub(super) fn bits(&self, v: ValueId) -> Rewrite<LazyBits> {
        Ok(self.storages[self.alias(v)?].eager_bits())
    }

    /// The current elements of a tensor as `clone` lays them.
    fn read_copy(&mut self, node: &Node, v: ValueId) -> Rewrite<ValueId> {
        let value = self.read(node, v)?;
        let ty = self.storages[self.alias(v)?].ty.clone();
        let Some(layout) = ty.layout.known() else { return Ok(value) };
        let dense = TensorType::new(ty.dtype, dense_like(&layout).map(|n| Expr::Int(*n)));
        Ok(self.build(node, |b, _| b.declare(value, &dense)))
    }

    /// A copy of a lazily mapped tensor with its bits applied, under an id of its own.
    pub(super) fn settled(&mut self, node: &Node, v: ValueId) -> Rewrite<ValueId> {
        let value = self.read_copy(node, v)?;
        Ok(self.bind_new(value))
    }

    /// Binds a new value to an id that no old value has.
    pub(super) fn bind_new(&mut self, value: ValueId) -> ValueId {
        let id = self.unnamed();
        self.bind_fresh(id, value);
        id
    }

    /// Binds a tensor object to an id that no old value has.
    pub(super) fn bind_unnamed(&mut self, object: NewValue) -> ValueId {
        let id = self.unnamed();
        self.bind(id, object);
        id
    }

    fn unnamed(&mut self) -> ValueId {
        self.items += 1;
        ValueId::new(self.old.values.len() + self.items - 1)
    }

    /// Refuses an alias whose content depends on whether an earlier call copied.
    pub(super) fn certain(&self, alias: AliasId) -> Rewrite<()> {
        match self.storages.uncertain(self.storages[alias].storage) {
            Some(call) => Err(open_sharing(call)),
            None => Ok(()),
        }
    }

    /// The results of a call that may be views of its first argument, or copies of it.
    fn link(&mut self, node: &Node) -> Rewrite<()> {
        let Some(Arg::Value(base)) = node.args.first() else { return Ok(()) };
        let parent = self.alias(*base)?;
        let parent = self.storages[parent].storage;
        for &r in &node.results {
            let made = self.alias(r)?;
            let made = self.storages[made].storage;
            self.storages.may_share(parent, made, node.op);
        }
        Ok(())
    }

    /// The aliases that a view call makes; `None` if it is a copy after all.
    fn views(
        &mut self,
        node: &Node,
        parent: AliasId,
        types: &[SharedRegion],
    ) -> Rewrite<Option<SmallVec<[AliasId; 1]>>> {
        if types.len() != node.results.len() {
            return Err(Error::invalid(format!(
                "{} gives {} results, not {}",
                node.op,
                types.len(),
                node.results.len()
            ))
            .into());
        }
        let mut bits: SmallVec<[(LazyBits, LazyBits); 1]> = SmallVec::with_capacity(types.len());
        for ty in types {
            let from = &self.storages[parent];
            let Some(eager) = from.eager_bits().of_view(node.op, &from.ty, ty)? else { return Ok(None) };
            // Bits that eager's tensor does not have are those of a second map of an operand of a body: no view resolves them.
            let own = from.bits().of_view(node.op, &from.ty, ty).map_err(|e| Error::unsupported(e.what))?;
            bits.push((own.unwrap_or(from.bits()), eager));
        }
        let mut args = Vec::with_capacity(node.args.len());
        for (i, a) in node.args.iter().enumerate() {
            args.push(if i == 0 { a.clone() } else { self.read_arg(node, a)? });
        }
        // A view in terms of the storage means nothing on a value that holds only its own cells, and a lazy bit is set by
        // nothing in a functional program.
        let def = node.op.def();
        let replay = !def.strided && def.math.is_none();
        let slices = if types.len() > 1 && !has_copy_form(node.op) { self.slices(parent, types) } else { None };
        let calls: SmallVec<[(Op, Vec<Arg>); 1]> = match slices {
            Some(slices) => {
                let of = |extent: [Arg; 4]| args[..1].iter().cloned().chain(extent).collect();
                slices.into_iter().map(|s| (op("aten.slice.Tensor"), of(s))).collect()
            }
            None => smallvec![(node.op, args)],
        };
        let each = types.len() / calls.len();
        let mut made: SmallVec<[AliasId; 1]> = SmallVec::with_capacity(types.len());
        for (op, args) in calls {
            let results = made.len()..made.len() + each;
            let call = Arc::new(ViewCall {
                op,
                args,
                results: std::sync::OnceLock::new(),
                names: node.results[results.clone()].iter().map(|r| self.old.values[*r].name.clone()).collect(),
                origin: node.origin.clone(),
            });
            let from = || AliasView { parent, call: call.clone(), replay };
            made.extend(results.map(|i| self.storages.view(from(), types[i].clone(), bits[i].0, bits[i].1)));
            call.results.set(made[made.len() - each..].into()).expect("a new call has no results yet");
        }
        Ok(Some(made))
    }

    /// The views of one call as slices in one dimension: dimension, start, end and step of each; `None` if they are not
    /// slices.
    fn slices(&self, parent: AliasId, types: &[SharedRegion]) -> Option<Vec<[Arg; 4]>> {
        let whole = &self.storages[parent].ty.known()?.layout;
        let slice = |ty: &SharedRegion| {
            let part = &ty.known()?.layout;
            let dim = (0..whole.rank()).find(|d| part.sizes.get(*d) != Some(&whole.sizes[*d])).unwrap_or(0);
            let start = (part.offset - whole.offset).checked_div(*whole.strides.get(dim)?)?;
            let end = start + part.sizes.get(dim)?;
            let same = whole.slice(dim as i64, Some(&start), Some(&end), &1).is_ok_and(|l| l == *part);
            same.then(|| [dim as i64, start, end, 1].map(|n| Arg::Scalar(Expr::Int(n))))
        };
        types.iter().map(slice).collect()
    }
}

/// Whether PyTorch has the view operator as an operator without aliasing (`split_copy`). It composes the others
/// (`tensor_split`) of slices, and compilers do not know them.
fn has_copy_form(op: Op) -> bool {
    let schema = op.schema();
    lookup(&format!("{}.{}_copy.{}", schema.namespace, schema.name, schema.overload)).is_some()
}

/// The refusal where it matters whether a call copies or aliases.
pub fn open_sharing(call: Op) -> Halt {
    if call.def().hop.is_some() {
        let what = format!("the memory of the results of {call} depends on data, and is written or returned");
        return Error::unsupported(what).help("clone the results of the call, or those of its graphs").into();
    }
    let what =
        format!("whether {call} copies or aliases depends on unknown sizes, and its result is written or returned");
    with_sizes(what, ", or call .clone() or .view() in the model")
}

/// The refusal where the answer depends on sizes that are symbols.
pub(super) fn needs_sizes(what: &str) -> Halt {
    with_sizes(format!("{what} depends on sizes that are not known"), "")
}

/// A refusal that known sizes would lift, with another way out in `or`.
pub(super) fn with_sizes(what: String, or: &str) -> Halt {
    let help = format!("give inputs with --inputs so that sizes are known{or}");
    Halt::NeedsSizes(Box::new(Error::unsupported(what).help(help)))
}

fn locate(stop: Halt, graph: &Graph, node: NodeId) -> Halt {
    match stop {
        Halt::Error(e) => Halt::Error(e.at(graph, node)),
        Halt::NeedsSizes(e) => Halt::NeedsSizes(Box::new(e.at(graph, node))),
        other => other,
    }
}

/// Used by control flow: an operator that the table must have.
pub fn op(name: &str) -> Op {
    lookup(name).unwrap_or_else(|| panic!("the operator table has {name}"))
}
