//! Storages with versions, and the aliases that read and write them.
//!
//! A storage's content is one value of the new graph at a time: its *base*. An alias is a region of a storage. A write
//! through an alias makes a new base in which exactly the region's cells changed. Other aliases are read again only if a
//! node asks for them and a write since may have touched their cells.
//!
//! The gradient of the content is kept apart (`histories.rs`): a detached tensor shares the elements, not the history.

use super::histories::{Flows, Histories, Readings, Root, SavedOperand};
use super::region::{Relation, relate};
use super::region_ops::{as_cells, math, read, read_steps, retype, untype, write};
use super::shared_region::SharedRegion;
use crate::build::Builder;
use restride_ir::{Arg, DType, Dim, Error, Expr, LazyBits, MemoryFormat, Op, Origin, Result, TensorType, ValueId};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Position of a storage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StorageId(pub usize);
/// Position of an alias.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AliasId(pub usize);

/// Past this many writes an alias is taken to be touched without looking at each.
const LOOK_BACK: usize = 64;

/// One storage.
#[derive(Debug)]
pub struct StorageState {
    /// The value that holds the current content.
    pub base: ValueId,
    /// Element type and layout in the storage.
    pub ty: SharedRegion,
    /// Number of writes so far.
    pub version: usize,
    /// Regions written, the write that made version `k` at `k - 1`.
    writes: Vec<SharedRegion>,
    /// The graph input whose storage it is.
    pub input: Option<usize>,
    /// Why its content is not known any more.
    pub lost: Option<String>,
    /// Its autograd histories.
    histories: Histories,
    /// Calls that read the alias and whose operands PyTorch may save.
    readings: Readings,
}

/// How an alias was made: by a view node of the old graph.
#[derive(Clone, Debug)]
pub struct AliasView {
    /// Alias of argument 0.
    pub parent: AliasId,
    /// The call, over values of the new graph but for argument 0.
    pub call: Arc<ViewCall>,
    /// Whether the call may be made on a value with the parent's elements.
    pub replay: bool,
}

/// A view call that can be made when it is needed.
#[derive(Debug)]
pub struct ViewCall {
    /// Operator.
    pub op: restride_ir::Op,
    /// Arguments; argument 0 is replaced.
    pub args: Vec<Arg>,
    /// All of its results.
    pub results: std::sync::OnceLock<SmallVec<[AliasId; 1]>>,
    /// Names of the results.
    pub names: SmallVec<[Arc<str>; 1]>,
    /// Where it comes from.
    pub origin: Arc<Origin>,
}

impl ViewCall {
    /// Adds nodes that stand for this call's result under the name that it had.
    fn named<T>(&self, b: &mut Builder<'_>, alias: AliasId, f: impl FnOnce(&mut Builder<'_>) -> T) -> T {
        let at = self.results.get().and_then(|r| r.iter().position(|x| *x == alias));
        let name = at.and_then(|i| self.names.get(i)).unwrap_or(&b.hint).clone();
        let (hint, origin) = (std::mem::replace(&mut b.hint, name), b.origin.clone());
        b.origin = self.origin.clone();
        let made = f(b);
        (b.hint, b.origin) = (hint, origin);
        made
    }
}

/// One alias: a region of a storage.
#[derive(Clone, Debug)]
pub struct Alias {
    /// Whose.
    pub storage: StorageId,
    /// Element type and cells, in the storage's cells.
    pub ty: SharedRegion,
    /// Elements are read and written through complex conjugation.
    pub conj: bool,
    /// Elements are read and written negated.
    pub neg: bool,
    /// Lazy bits of eager PyTorch's tensor that the storage's content has applied: an operand enters a body as its elements.
    pub applied: LazyBits,
    /// The autograd history that reads and writes go through: one of its storage's.
    pub root: Root,
    /// A view made under `no_grad`: values read through it are constants, whatever their history.
    pub constant: bool,
    /// The view call that made the alias.
    pub from: Option<AliasView>,
    /// Version of the storage when it was made.
    born: usize,
    /// A value that holds its elements, and up to which version.
    current: Option<(ValueId, usize)>,
}

impl Alias {
    /// Whether a call of the operator takes a copy of the alias, with its lazy bits applied.
    pub fn is_copied_for(&self, op: Op) -> bool {
        !op.def().maps_bits && !self.eager_bits().is_clear()
    }

    /// The maps that reads and writes apply to the storage's content.
    pub fn bits(&self) -> LazyBits {
        LazyBits { conj: self.conj, neg: self.neg }
    }

    /// The lazy bits of eager PyTorch's tensor.
    pub fn eager_bits(&self) -> LazyBits {
        self.bits().then(self.applied)
    }
}

/// All storages and aliases of one graph.
#[derive(Debug, Default)]
pub struct VersionedStorages {
    storages: Vec<StorageState>,
    aliases: Vec<Alias>,
    /// For each storage, the others that may be the same, and the operator whose call leaves it open.
    maybe: BTreeMap<StorageId, Vec<(StorageId, Op)>>,
    /// Storages that a write to another one may have changed.
    uncertain: BTreeMap<StorageId, Op>,
    /// The values that may depend on differentiable ones.
    pub flows: Flows,
}

impl std::ops::Index<StorageId> for VersionedStorages {
    type Output = StorageState;
    fn index(&self, id: StorageId) -> &StorageState {
        &self.storages[id.0]
    }
}
impl std::ops::Index<AliasId> for VersionedStorages {
    type Output = Alias;
    fn index(&self, id: AliasId) -> &Alias {
        &self.aliases[id.0]
    }
}

impl VersionedStorages {
    /// Reserves memory for the aliases of `more` values, and for storages of their own.
    pub fn reserve(&mut self, more: usize) {
        self.storages.reserve(more);
        self.aliases.reserve(more);
    }

    /// A storage with its content, and the alias of the whole storage.
    pub fn add(&mut self, base: ValueId, ty: impl Into<SharedRegion>, input: Option<usize>) -> AliasId {
        let ty = ty.into();
        let storage = StorageId(self.storages.len());
        self.storages.push(StorageState {
            base,
            ty: ty.clone(),
            version: 0,
            writes: Vec::new(),
            input,
            lost: None,
            histories: Histories::new(base),
            readings: Readings::default(),
        });
        let id = self.region(storage, ty);
        self.aliases[id.0].current = Some((base, 0));
        id
    }

    /// An alias of a region.
    pub fn region(&mut self, storage: StorageId, ty: impl Into<SharedRegion>) -> AliasId {
        let ty = ty.into();
        let born = self[storage].version;
        self.aliases.push(Alias {
            storage,
            ty,
            conj: false,
            neg: false,
            applied: LazyBits::default(),
            root: Root::OWN,
            constant: false,
            from: None,
            born,
            current: None,
        });
        AliasId(self.aliases.len() - 1)
    }

    /// An alias of a region whose elements are read and written through conjugation or negation.
    pub fn region_as(&mut self, storage: StorageId, ty: impl Into<SharedRegion>, conj: bool, neg: bool) -> AliasId {
        let id = self.region(storage, ty);
        (self.aliases[id.0].conj, self.aliases[id.0].neg) = (conj, neg);
        id
    }

    /// An alias of a region that is read and written as another alias is; of the same storage, with its history.
    pub fn region_like(&mut self, of: AliasId, storage: StorageId, ty: impl Into<SharedRegion>) -> AliasId {
        let Alias { conj, neg, applied, .. } = self[of];
        let id = self.region_as(storage, ty, conj, neg);
        self.aliases[id.0].applied = applied;
        if self[of].storage == storage {
            self.set_history(id, self[of].root, self[of].constant);
        }
        id
    }

    /// Notes that the content shows the elements of a tensor with these lazy bits.
    pub fn set_applied(&mut self, alias: AliasId, bits: LazyBits) {
        self.aliases[alias.0].applied = bits;
    }

    /// Gives an alias one of its storage's histories; `constant` for a view made under `no_grad`.
    pub fn set_history(&mut self, alias: AliasId, root: Root, constant: bool) {
        let a = &mut self.aliases[alias.0];
        (a.root, a.constant) = (root, constant);
    }

    /// Makes a view that was made under `no_grad` one of its base's history.
    pub fn record(&mut self, alias: AliasId) {
        let a = &mut self.aliases[alias.0];
        (a.constant, a.from, a.current) = (false, None, None);
    }

    /// Gives an alias a history of its own, in which it is a constant.
    pub fn detach(&mut self, alias: AliasId) {
        let storage = self[alias].storage;
        let root = self.storages[storage.0].histories.add();
        self.set_history(alias, root, false);
    }

    /// The value of an alias, if it was read since the last write to it.
    pub fn shown(&self, alias: AliasId) -> Option<ValueId> {
        let a = &self[alias];
        a.current.filter(|c| c.1 == self[a.storage].version).map(|c| c.0)
    }

    /// Notes that a call saves the value of an alias.
    pub fn saved(&mut self, alias: AliasId, reading: SavedOperand) {
        let Alias { storage, ty, root, .. } = &self.aliases[alias.0];
        self.storages[storage.0].readings.add(ty, *root, reading);
    }

    /// The saved values that writes changed which PyTorch does not record.
    pub fn overwritten(&self) -> impl Iterator<Item = SavedOperand> + '_ {
        self.storages.iter().flat_map(|s| s.readings.overwritten().iter().copied())
    }

    /// An alias made by a view call, with its own lazy bits and those of eager PyTorch's tensor.
    pub fn view(&mut self, from: AliasView, ty: impl Into<SharedRegion>, bits: LazyBits, eager: LazyBits) -> AliasId {
        let ty = ty.into();
        let storage = self[from.parent].storage;
        let LazyBits { conj, neg } = bits;
        let detaches = from.call.op.def().detaches;
        let parent = &self[from.parent];
        let (root, constant) = (parent.root, parent.constant || from.call.origin.no_grad);
        let born = self[storage].version;
        let applied = bits.then(eager);
        let view = Alias { storage, ty, conj, neg, applied, root, constant, from: Some(from), born, current: None };
        self.aliases.push(view);
        let id = AliasId(self.aliases.len() - 1);
        if detaches {
            self.detach(id);
        }
        id
    }

    /// Number of storages so far: those with a higher id are newer.
    pub fn len(&self) -> usize {
        self.storages.len()
    }

    /// Notes that two storages may be one, as unknown sizes decide whether a call copies or aliases. This matters only once
    /// one of them is written or shown to the caller.
    pub fn may_share(&mut self, a: StorageId, b: StorageId, call: Op) {
        self.maybe.entry(a).or_default().push((b, call));
        self.maybe.entry(b).or_default().push((a, call));
    }

    /// Every storage that may be the same as this one, with the call that leaves it open.
    pub fn maybe_same(&self, storage: StorageId) -> Vec<(StorageId, Op)> {
        let mut found: Vec<(StorageId, Op)> = Vec::new();
        if self.maybe.is_empty() {
            return found;
        }
        let mut todo = vec![storage];
        while let Some(s) = todo.pop() {
            for (other, call) in self.maybe.get(&s).map_or(&[] as &[_], Vec::as_slice) {
                if *other != storage && found.iter().all(|f| f.0 != *other) {
                    found.push((*other, *call));
                    todo.push(*other);
                }
            }
        }
        found
    }

    /// The call that leaves open whether a write elsewhere changed this storage.
    pub fn uncertain(&self, storage: StorageId) -> Option<Op> {
        self.uncertain.get(&storage).copied()
    }

    /// Storages that may be the one just written become uncertain.
    fn lose_maybes(&mut self, written: StorageId) {
        for (other, call) in self.maybe_same(written) {
            self.uncertain.insert(other, call);
        }
    }

    /// Whether two aliases are known to have no cell in common.
    pub fn disjoint(&self, a: AliasId, b: AliasId) -> bool {
        let (a, b) = (&self[a], &self[b]);
        let maybe = || self.maybe_same(a.storage).iter().any(|m| m.0 == b.storage);
        if a.storage != b.storage { !maybe() } else { a.ty.disjoint(&b.ty) }
    }

    /// Whether two aliases show the same cells in the same way, with one history.
    pub fn equal(&self, a: AliasId, b: AliasId) -> bool {
        let shows = |a: &Alias| (a.storage, a.conj, a.neg, a.applied, a.root, a.constant);
        let (a, b) = (&self[a], &self[b]);
        shows(a) == shows(b) && a.ty == b.ty
    }

    /// Marks a storage's content as not known.
    pub fn lose(&mut self, storage: StorageId, why: String) {
        self.storages[storage.0].lost = Some(why);
        self.lose_maybes(storage);
    }

    /// Whether a write since `version` may have touched the alias.
    fn touched(&self, alias: AliasId, version: usize) -> bool {
        let a = &self[alias];
        let s = &self[a.storage];
        let since = &s.writes[version..];
        since.len() > LOOK_BACK || since.iter().any(|w| !a.ty.disjoint(w))
    }

    /// A value that holds the alias's elements now.
    pub fn read(&mut self, b: &mut Builder<'_>, alias: AliasId) -> Result<ValueId> {
        // Who reads it next may do so where gradients are on: a region belongs to the alias, not to its first reader.
        recording(b, |b| self.read_chain(b, alias))
    }

    fn read_chain(&mut self, b: &mut Builder<'_>, alias: AliasId) -> Result<ValueId> {
        // Views of views that were not read yet are made from the outermost in; the chain may be long.
        let mut chain: SmallVec<[AliasId; 4]> = smallvec![alias];
        while let Some(&top) = chain.last() {
            let a = &self[top];
            let version = self[a.storage].version;
            if let Some(why) = &self[a.storage].lost {
                return Err(Error::unsupported(why.clone()));
            }
            if let Some((value, upto)) = a.current
                && (upto == version || !self.touched(top, upto))
            {
                self.aliases[top.0].current = Some((value, version));
                chain.pop();
                continue;
            }
            let fresh = |f: &AliasView| f.replay && (a.born == version || !self.touched(top, a.born));
            match a.from.clone().filter(fresh) {
                // Nothing happened to it since its view call: make that call.
                Some(from) => match self[from.parent].current {
                    Some((value, upto)) if upto == version => {
                        if self.same_tensor(top, from.parent) {
                            self.aliases[top.0].current = Some((value, version));
                        } else {
                            self.call_view(b, &from.call, value);
                        }
                        chain.pop();
                    }
                    // No node reads the view's own base: the alias may be one operator away from the storage's base.
                    _ if self.is_near(top, from.parent) => {
                        let value = from.call.named(b, top, |b| self.read_region(b, top))?;
                        self.aliases[top.0].current = Some((value, version));
                        chain.pop();
                    }
                    _ => chain.push(from.parent),
                },
                None => {
                    let value = self.read_region(b, top)?;
                    self.aliases[top.0].current = Some((value, version));
                    chain.pop();
                }
            }
        }
        Ok(self[alias].current.expect("the alias was just read").0)
    }

    /// Whether an alias shows the same elements in the same layout as another one (`contiguous` of a contiguous tensor,
    /// `dropout` in evaluation).
    fn same_tensor(&self, a: AliasId, b: AliasId) -> bool {
        let (a, b) = (&self[a], &self[b]);
        a.ty == b.ty && (a.conj, a.neg, a.root, a.constant) == (b.conj, b.neg, b.root, b.constant)
    }

    /// Whether a view of a view takes one operator to read out of the base.
    fn is_near(&self, alias: AliasId, parent: AliasId) -> bool {
        let (a, parent) = (&self[alias], &self[parent]);
        let base = &self[a.storage].ty;
        let plain = a.ty.dtype == base.dtype && !a.conj && !a.neg && !a.ty.is_empty();
        let one_step = |r: Relation<Expr>| read_steps(&r) == 1 && r.source.iter().all(Option::is_some);
        plain && parent.ty.layout != base.layout && relate(&base.layout, &a.ty.layout).is_some_and(one_step)
    }

    fn call_view(&mut self, b: &mut Builder<'_>, call: &ViewCall, parent: ValueId) {
        let ids = call.results.get().expect("a view call knows its results");
        let types = ids.iter().map(|i| TensorType::clone(&self[*i].ty));
        let mut args = call.args.clone();
        args[0] = Arg::Value(self.in_rows(b, call, parent));
        let values = b.node(call.op, args, call.names.iter().cloned().zip(types), &call.origin);
        for (id, value) in ids.iter().zip(values) {
            let version = self[self[*id].storage].version;
            // A sibling that a write has touched since stays as it is.
            if self[*id].born == version || !self.touched(*id, self[*id].born) {
                self.aliases[id.0].current = Some((value, version));
            }
        }
    }

    /// The operand of a view call. PyTorch asks for the stride of a last dimension with one index where elements of another size
    /// are viewed, and the value may have another one than the alias.
    fn in_rows(&self, b: &mut Builder<'_>, call: &ViewCall, parent: ValueId) -> ValueId {
        let ids = call.results.get().expect("a view call knows its results");
        let own = b.graph.tensor(parent);
        let typed = call.op.def().detaches && ids.iter().any(|i| self[*i].ty.dtype.size() != own.dtype.size());
        let one =
            own.layout.sizes.last().is_some_and(|n| n.is(1)) && !own.layout.strides.last().is_some_and(|s| s.is(1));
        if !typed || !one {
            return parent;
        }
        let dense = TensorType::contiguous(own.dtype, &own.layout.sizes);
        let format = Arg::MemoryFormat(MemoryFormat::Contiguous);
        b.call("aten.clone.default", vec![Arg::Value(parent), format], dense)
    }

    /// The alias's elements out of the base.
    fn read_region(&mut self, b: &mut Builder<'_>, alias: AliasId) -> Result<ValueId> {
        let a = self[alias].clone();
        if a.ty.is_empty() {
            // An alias without elements reads nothing of the base.
            let sizes = Arg::Scalars(a.ty.layout.sizes.to_vec());
            let args = vec![sizes, Arg::Scalar(Expr::Int(0)), Arg::DType(a.ty.dtype)];
            return Ok(b.call("aten.full.default", args, TensorType::clone(&a.ty)));
        }
        let (base, constant) = self.content_of(b, a.storage, a.root);
        let (base, base_ty) = retype(b, base, &self[a.storage].ty.clone(), a.ty.dtype)?;
        let value = read(b, base, &base_ty, &a.ty.layout)?;
        let value = math(b, value, &a);
        if constant || a.constant { Ok(self.as_constant(b, value)) } else { Ok(value) }
    }

    /// The value, detached if it may be differentiated.
    fn as_constant(&mut self, b: &mut Builder<'_>, value: ValueId) -> ValueId {
        if !self.flows.differentiable(b.graph, value) {
            return value;
        }
        let ty = b.graph.tensor(value).clone();
        b.call("aten.detach.default", vec![Arg::Value(value)], ty)
    }

    /// The content of a storage with one of its histories; true where that is the history of a constant and the value's is not.
    fn content_of(&mut self, b: &mut Builder<'_>, storage: StorageId, root: Root) -> (ValueId, bool) {
        let s = &mut self.storages[storage.0];
        let history = match s.histories.get(root) {
            Some((value, version)) if version == s.version => return (value, false),
            Some((value, _)) if self.flows.differentiable(b.graph, value) => value,
            _ => return (s.base, self.flows.differentiable(b.graph, s.base)),
        };
        let args = vec![Arg::Value(s.base), Arg::Value(history)];
        let made = recording(b, |b| b.call("restride.with_history.default", args, TensorType::clone(&s.ty)));
        s.histories.set(root, made, s.version);
        (made, false)
    }

    /// Whether one of a storage's histories is that of a constant that nothing recorded was written to.
    pub fn is_constant(&self, storage: StorageId, root: Root) -> bool {
        self[storage].histories.get(root).is_none()
    }

    /// The content of a storage with one of its histories.
    pub fn content_as(&mut self, b: &mut Builder<'_>, storage: StorageId, root: Root) -> ValueId {
        let (value, constant) = self.content_of(b, storage, root);
        if constant { self.as_constant(b, value) } else { value }
    }

    /// Whether the alias is known to hold this value already: writing it changes nothing.
    pub fn holds(&self, alias: AliasId, value: ValueId) -> bool {
        let a = &self[alias];
        a.current == Some((value, self[a.storage].version))
    }

    /// Makes `value` the content of the alias: sizes and element type are the alias's.
    pub fn write(&mut self, b: &mut Builder<'_>, alias: AliasId, value: ValueId) -> Result<()> {
        let a = self[alias].clone();
        let s = &self[a.storage];
        if let Some(why) = &s.lost {
            return Err(Error::unsupported(why.clone()));
        }
        if a.ty.is_empty() {
            return Ok(());
        }
        let (old_ty, base) = (s.ty.clone(), s.base);
        let stored = math(b, value, &a);
        // PyTorch records no write under `no_grad`: it changes the elements and no history.
        let recorded = !b.origin.no_grad;
        let old = if recorded && a.ty != old_ty { self.content_as(b, a.storage, a.root) } else { base };
        let base = if a.ty.dtype == old_ty.dtype {
            write(b, old, &old_ty, &a.ty.layout, stored)?
        } else if let Some((cells, region)) = as_cells(b, stored, &a.ty.layout, old_ty.dtype) {
            write(b, old, &old_ty, &region, cells)?
        } else {
            let (typed, typed_ty) = retype(b, old, &old_ty, a.ty.dtype)?;
            let changed = write(b, typed, &typed_ty, &a.ty.layout, stored)?;
            untype(b, changed, old, &old_ty)?
        };
        let s = &mut self.storages[a.storage.0];
        s.base = base;
        s.version += 1;
        s.writes.push(a.ty.clone());
        let version = s.version;
        let history = s.histories.get(a.root).map(|h| h.0);
        if recorded {
            s.histories.set(a.root, base, version);
        }
        s.readings.overwrite(&a.ty, recorded.then_some(a.root));
        let mut depends = |v: ValueId| self.flows.differentiable(b.graph, v);
        // Later reads have the history that the alias had.
        let known = recorded || !depends(value) && !history.is_some_and(depends);
        self.aliases[alias.0].current = known.then_some((value, version));
        self.lose_maybes(a.storage);
        Ok(())
    }

    /// The whole content in an element type, with the history of the tensor that the storage was made for.
    pub fn content(
        &mut self,
        b: &mut Builder<'_>,
        storage: StorageId,
        dtype: DType,
    ) -> Result<(ValueId, SharedRegion)> {
        if let Some(why) = &self[storage].lost {
            return Err(Error::unsupported(why.clone()));
        }
        let base = self.content_as(b, storage, Root::OWN);
        let ty = &self[storage].ty;
        let base = b.declare(base, ty);
        retype(b, base, ty, dtype)
    }

    /// Replaces the value of [`Self::content`] by content that was made elsewhere and differs in these regions alone.
    pub fn update(
        &mut self,
        b: &mut Builder<'_>,
        storage: StorageId,
        content: ValueId,
        regions: &[SharedRegion],
    ) -> Result<()> {
        let (old, ty) = (self[storage].base, self[storage].ty.clone());
        let base = if b.graph.tensor(content).dtype == ty.dtype { content } else { untype(b, content, old, &ty)? };
        let s = &mut self.storages[storage.0];
        s.base = base;
        s.version += regions.len();
        s.writes.extend(regions.iter().cloned());
        let root = (!b.origin.no_grad).then_some(Root::OWN);
        if root.is_some() {
            s.histories.set(Root::OWN, base, s.version);
        }
        regions.iter().for_each(|r| s.readings.overwrite(r, root));
        self.lose_maybes(storage);
        Ok(())
    }

    /// Puts the content into a larger storage: the old cells keep their elements.
    pub fn extend(&mut self, storage: StorageId, base: ValueId, ty: TensorType) {
        let s = &mut self.storages[storage.0];
        (s.base, s.ty) = (base, ty.into());
        // PyTorch resizes nothing that is differentiated.
        s.histories.extend(base, s.version);
    }

    /// Replaces the whole content, made elsewhere (a loop's result), in one of its histories; in none under `no_grad`.
    pub fn replace(&mut self, storage: StorageId, base: ValueId, root: Option<Root>) {
        let s = &mut self.storages[storage.0];
        s.base = base;
        s.version += 1;
        if let Some(root) = root {
            s.histories.set(root, base, s.version);
        }
        s.readings.overwrite(&s.ty, root);
        s.writes.push(s.ty.clone());
        self.lose_maybes(storage);
    }
}

/// Adds nodes that a gradient goes through, whatever region the node that needs them is in.
fn recording<T>(b: &mut Builder<'_>, f: impl FnOnce(&mut Builder<'_>) -> T) -> T {
    if !b.origin.no_grad {
        return f(b);
    }
    let recorded = Arc::new(Origin { no_grad: false, ..(*b.origin).clone() });
    let origin = std::mem::replace(&mut b.origin, recorded);
    let made = f(b);
    b.origin = origin;
    made
}
