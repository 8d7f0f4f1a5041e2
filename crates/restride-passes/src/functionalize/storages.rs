//! Storages with versions, and the aliases that read and write them.
//!
//! A storage's content is one value of the new graph at a time: its *base*. An alias is a region of it. A write
//! through an alias makes a new base in which exactly the region's cells changed; other aliases are read again only
//! when somebody asks for them and a write since may have touched their cells.

use super::region::{Pick, Relation, relate};
use crate::build::Builder;
use restride_ir::{Arg, DType, Dim, Error, Expr, Layout, LazyBits, Origin, Result, TensorType, ValueId};
use restride_tensor::{Overlap, overlap_bytes};
use std::collections::BTreeMap;
use std::rc::Rc;
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
    /// Its type: how its elements lie in the storage.
    pub ty: Rc<TensorType>,
    /// Number of writes so far.
    pub version: usize,
    /// Regions written, the write that made version `k` at `k - 1`.
    writes: Vec<Rc<TensorType>>,
    /// The graph input whose storage it is.
    pub input: Option<usize>,
    /// Why its content is not known any more.
    pub lost: Option<String>,
}

/// How an alias was made: by a view node of the old graph.
#[derive(Clone, Debug)]
pub struct ViewOf {
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
    pub results: std::sync::OnceLock<Vec<AliasId>>,
    /// Names of the results.
    pub names: Vec<Arc<str>>,
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
    pub ty: Rc<TensorType>,
    /// Elements are read and written through complex conjugation.
    pub conj: bool,
    /// Elements are read and written negated.
    pub neg: bool,
    /// The view call that made it.
    pub from: Option<ViewOf>,
    /// Version of the storage when it was made.
    born: usize,
    /// A value that holds its elements, and up to which version.
    current: Option<(ValueId, usize)>,
}

/// All storages and aliases of one graph.
#[derive(Debug, Default)]
pub struct Storages {
    storages: Vec<StorageState>,
    aliases: Vec<Alias>,
    /// Storages that may be one: for each, the others and the call that leaves it open.
    maybe: BTreeMap<StorageId, Vec<(StorageId, Arc<str>)>>,
    /// Storages that a write to another one may have changed.
    uncertain: BTreeMap<StorageId, Arc<str>>,
}

impl std::ops::Index<StorageId> for Storages {
    type Output = StorageState;
    fn index(&self, id: StorageId) -> &StorageState {
        &self.storages[id.0]
    }
}
impl std::ops::Index<AliasId> for Storages {
    type Output = Alias;
    fn index(&self, id: AliasId) -> &Alias {
        &self.aliases[id.0]
    }
}

impl Storages {
    /// A storage with its content, and the alias that is all of it.
    pub fn add(&mut self, base: ValueId, ty: impl Into<Rc<TensorType>>, input: Option<usize>) -> AliasId {
        let ty = ty.into();
        let storage = StorageId(self.storages.len());
        self.storages.push(StorageState { base, ty: ty.clone(), version: 0, writes: Vec::new(), input, lost: None });
        let id = self.region(storage, ty);
        self.aliases[id.0].current = Some((base, 0));
        id
    }

    /// An alias of a region.
    pub fn region(&mut self, storage: StorageId, ty: impl Into<Rc<TensorType>>) -> AliasId {
        let ty = ty.into();
        let born = self[storage].version;
        self.aliases.push(Alias { storage, ty, conj: false, neg: false, from: None, born, current: None });
        AliasId(self.aliases.len() - 1)
    }

    /// An alias of a region whose elements are read and written through conjugation or negation.
    pub fn region_as(&mut self, storage: StorageId, ty: impl Into<Rc<TensorType>>, conj: bool, neg: bool) -> AliasId {
        let id = self.region(storage, ty);
        (self.aliases[id.0].conj, self.aliases[id.0].neg) = (conj, neg);
        id
    }

    /// An alias made by a view call.
    pub fn view(&mut self, from: ViewOf, ty: impl Into<Rc<TensorType>>, bits: LazyBits) -> AliasId {
        let ty = ty.into();
        let storage = self[from.parent].storage;
        let LazyBits { conj, neg } = bits;
        let born = self[storage].version;
        self.aliases.push(Alias { storage, ty, conj, neg, from: Some(from), born, current: None });
        AliasId(self.aliases.len() - 1)
    }

    /// Number of storages so far: those with a higher id are newer.
    pub fn len(&self) -> usize {
        self.storages.len()
    }

    /// Says that two storages may be one: whether a call copies or aliases depends on sizes that are not known. That
    /// does not matter until one of them is written or shown to the caller.
    pub fn may_share(&mut self, a: StorageId, b: StorageId, call: &str) {
        let call: Arc<str> = call.into();
        self.maybe.entry(a).or_default().push((b, call.clone()));
        self.maybe.entry(b).or_default().push((a, call));
    }

    /// Every storage that may be the same as this one, with the call that leaves it open.
    pub fn maybe_same(&self, storage: StorageId) -> Vec<(StorageId, Arc<str>)> {
        let mut found: Vec<(StorageId, Arc<str>)> = Vec::new();
        let mut todo = vec![storage];
        while let Some(s) = todo.pop() {
            for (other, call) in self.maybe.get(&s).map_or(&[] as &[_], Vec::as_slice) {
                if *other != storage && found.iter().all(|f| f.0 != *other) {
                    found.push((*other, call.clone()));
                    todo.push(*other);
                }
            }
        }
        found
    }

    /// The call that leaves open whether a write elsewhere changed this storage.
    pub fn uncertain(&self, storage: StorageId) -> Option<&Arc<str>> {
        self.uncertain.get(&storage)
    }

    /// What may share memory with a storage that was just written is not known any more.
    fn lose_maybes(&mut self, written: StorageId) {
        if self.maybe.is_empty() {
            return;
        }
        for (other, call) in self.maybe_same(written) {
            self.uncertain.insert(other, call);
        }
    }

    /// Whether two aliases are known to have no cell in common.
    pub fn disjoint(&self, a: AliasId, b: AliasId) -> bool {
        let (a, b) = (&self[a], &self[b]);
        let maybe = || self.maybe_same(a.storage).iter().any(|m| m.0 == b.storage);
        if a.storage != b.storage { !maybe() } else { disjoint(&a.ty, &b.ty) }
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
        since.len() > LOOK_BACK || since.iter().any(|w| !disjoint(&a.ty, w))
    }

    /// A value that holds the alias's elements now.
    pub fn read(&mut self, b: &mut Builder<'_>, alias: AliasId) -> Result<ValueId> {
        // Views of views that nobody read yet are made from the outermost in; the chain may be long.
        let mut chain = vec![alias];
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
            let fresh = |f: &ViewOf| f.replay && (a.born == version || !self.touched(top, a.born));
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
                    // Nobody reads the view that it is a view of: it may be one operator away from the base.
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

    /// Whether an alias shows what another one shows, as it shows it (`contiguous` of what is, `dropout` in evaluation).
    fn same_tensor(&self, a: AliasId, b: AliasId) -> bool {
        let (a, b) = (&self[a], &self[b]);
        a.ty == b.ty && (a.conj, a.neg) == (b.conj, b.neg)
    }

    /// Whether a view of a view takes one operator to read out of the base.
    fn is_near(&self, alias: AliasId, parent: AliasId) -> bool {
        let (a, parent) = (&self[alias], &self[parent]);
        let base = &self[a.storage].ty;
        let plain = a.ty.dtype == base.dtype && !a.conj && !a.neg && !is_empty(&a.ty.layout);
        let one_step = |r: Relation<Expr>| read_steps(&r) == 1 && r.source.iter().all(Option::is_some);
        plain && parent.ty.layout != base.layout && relate(&base.layout, &a.ty.layout).is_some_and(one_step)
    }

    fn call_view(&mut self, b: &mut Builder<'_>, call: &ViewCall, parent: ValueId) {
        let ids = call.results.get().expect("a view call knows its results");
        let types: Vec<TensorType> = ids.iter().map(|i| (*self[*i].ty).clone()).collect();
        let mut args = call.args.clone();
        args[0] = Arg::Value(parent);
        let values = b.node(call.op, args, call.names.iter().cloned().zip(types), &call.origin);
        for (id, value) in ids.iter().zip(values) {
            let version = self[self[*id].storage].version;
            // A sibling that a write has touched since stays as it is.
            if self[*id].born == version || !self.touched(*id, self[*id].born) {
                self.aliases[id.0].current = Some((value, version));
            }
        }
    }

    /// The alias's elements out of the base.
    fn read_region(&mut self, b: &mut Builder<'_>, alias: AliasId) -> Result<ValueId> {
        let a = self[alias].clone();
        let s = &self[a.storage];
        if is_empty(&a.ty.layout) {
            // Wherever it lies, it has nothing of the base.
            let sizes = Arg::Scalars(a.ty.layout.sizes.to_vec());
            let args = vec![sizes, Arg::Scalar(Expr::Int(0)), Arg::DType(a.ty.dtype)];
            return Ok(b.call("aten.full.default", args, (*a.ty).clone()));
        }
        let (base, base_ty) = retype(b, s.base, &s.ty.clone(), a.ty.dtype)?;
        let value = read(b, base, &base_ty, &a.ty.layout)?;
        Ok(math(b, value, &a))
    }

    /// Whether the value is known to be what the alias holds: writing it changes nothing.
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
        if is_empty(&a.ty.layout) {
            return Ok(());
        }
        let stored = math(b, value, &a);
        let (old, old_ty) = (s.base, s.ty.clone());
        let base = if a.ty.dtype == old_ty.dtype {
            write(b, old, &old_ty, &a.ty.layout, stored)?
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
        self.aliases[alias.0].current = Some((value, version));
        self.lose_maybes(a.storage);
        Ok(())
    }

    /// The whole content in an element type.
    pub fn content(&self, b: &mut Builder<'_>, storage: StorageId, dtype: DType) -> Result<(ValueId, TensorType)> {
        let s = &self[storage];
        if let Some(why) = &s.lost {
            return Err(Error::unsupported(why.clone()));
        }
        let base = b.declare(s.base, &s.ty);
        retype(b, base, &s.ty, dtype)
    }

    /// Replaces what [`Self::content`] gave by content that was made elsewhere and differs in these regions alone.
    pub fn update(
        &mut self,
        b: &mut Builder<'_>,
        storage: StorageId,
        content: ValueId,
        regions: &[TensorType],
    ) -> Result<()> {
        let (old, ty) = (self[storage].base, self[storage].ty.clone());
        let base = if b.graph.tensor(content).dtype == ty.dtype { content } else { untype(b, content, old, &ty)? };
        let s = &mut self.storages[storage.0];
        s.base = base;
        s.version += regions.len();
        s.writes.extend(regions.iter().cloned().map(Rc::new));
        self.lose_maybes(storage);
        Ok(())
    }

    /// Puts the content into more memory: the cells that there were hold what they held.
    pub fn extend(&mut self, storage: StorageId, base: ValueId, ty: TensorType) {
        let s = &mut self.storages[storage.0];
        (s.base, s.ty) = (base, Rc::new(ty));
    }

    /// Replaces the whole content, made elsewhere (a loop's result).
    pub fn replace(&mut self, storage: StorageId, base: ValueId) {
        let s = &mut self.storages[storage.0];
        s.base = base;
        s.version += 1;
        s.writes.push(s.ty.clone());
        self.lose_maybes(storage);
    }
}

fn is_empty(l: &Layout<Expr>) -> bool {
    l.sizes.iter().any(|n| n.is(0))
}

/// Whether two regions of a storage are known to have no cell in common.
pub fn disjoint(a: &TensorType, b: &TensorType) -> bool {
    match (a.layout.known(), b.layout.known()) {
        (Some(x), Some(y)) => overlap_bytes(&x, a.dtype.size(), &y, b.dtype.size()) == Overlap::Disjoint,
        _ if a.dtype == b.dtype => apart(&a.layout, &b.layout),
        _ => false,
    }
}

/// Provably disjoint with symbolic sizes: cut or fixed in one dimension of the same strides at different places.
fn apart(a: &Layout<Expr>, b: &Layout<Expr>) -> bool {
    let end = |l: &Layout<Expr>| {
        l.sizes
            .iter()
            .zip(&l.strides)
            .fold(l.offset.plus(&Expr::Int(1)), |e, (n, s)| e.plus(&n.minus(&Expr::Int(1)).times(s)))
    };
    b.offset.less(&end(a)) == Some(false) || a.offset.less(&end(b)) == Some(false)
}

fn math(b: &mut Builder<'_>, value: ValueId, a: &Alias) -> ValueId {
    let mut value = value;
    if a.conj && a.ty.dtype.is_complex() {
        value = b.call("aten.conj_physical.default", vec![Arg::Value(value)], (*a.ty).clone());
    }
    if a.neg {
        value = b.call("aten.neg.default", vec![Arg::Value(value)], (*a.ty).clone());
    }
    value
}

/// The base under another element type, with its layout in that type's cells. Where the base ends inside of such a cell, it
/// is the part of the base that has whole ones.
fn retype(b: &mut Builder<'_>, base: ValueId, ty: &TensorType, dtype: DType) -> Result<(ValueId, TensorType)> {
    if dtype == ty.dtype {
        return Ok((base, ty.clone()));
    }
    let (from, to) = (ty.dtype.size() as i64, dtype.size() as i64);
    let (mut base, mut ty) = (base, ty.clone());
    if from != to && !rows_fit(&ty.layout, from, to) {
        // Only a run of cells can be read as cells of another size: take the storage flat.
        let run = run(&ty, from, to)?;
        base = read(b, base, &ty, &run)?;
        ty.layout = run;
    }
    let layout = rescale(&ty.layout, from, to);
    let typed = TensorType::new(dtype, layout);
    let value = b.call("aten.view.dtype", vec![Arg::Value(base), Arg::DType(dtype)], typed.clone());
    Ok((value, typed))
}

/// Back from what [`retype`] gave for `base`.
fn untype(b: &mut Builder<'_>, value: ValueId, base: ValueId, ty: &TensorType) -> Result<ValueId> {
    let have = b.graph.tensor(value).clone();
    let (from, to) = (have.dtype.size() as i64, ty.dtype.size() as i64);
    let layout = rescale(&have.layout, from, to);
    let back = TensorType::new(ty.dtype, layout);
    let value = b.call("aten.view.dtype", vec![Arg::Value(value), Arg::DType(ty.dtype)], back.clone());
    if back.layout.sizes == ty.layout.sizes {
        return Ok(value);
    }
    if back.layout.numel().equals(&ty.layout.numel()) == Some(false) {
        return write(b, base, ty, &back.layout, value);
    }
    Ok(b.as_strided(value, ty.clone()))
}

/// Whether the cells of every row are whole cells of another size. Symbolic sizes were asked when the view was made.
pub fn rows_fit(l: &Layout<Expr>, from: i64, to: i64) -> bool {
    let whole = |n: &Expr| n.known().is_none_or(|n| n * from % to == 0);
    let Some((last, outer)) = l.strides.split_last() else { return false };
    last.is(1) && whole(&l.sizes[outer.len()]) && outer.iter().all(whole) && whole(&l.offset)
}

/// The run of cells that a dense layout fills, as far as they are whole cells of another size.
fn run(ty: &TensorType, from: i64, to: i64) -> Result<Layout<Expr>> {
    let l = &ty.layout;
    let Some(known) = l.known() else {
        return Ok(Layout::strided(&[l.numel()], &[Expr::Int(1)], l.offset.clone()));
    };
    if !known.is_dense() {
        let what = format!("memory with gaps, {ty}, read as elements of {to} bytes");
        return Err(Error::unsupported(what).help("give the inputs with --inputs, so that their storage is known"));
    }
    let unit = (to / from).max(1);
    let start = (known.offset + unit - 1) / unit * unit;
    let end = (known.offset + known.numel()) / unit * unit;
    Ok(Layout::strided(&[Expr::Int((end - start).max(0))], &[Expr::Int(1)], Expr::Int(start)))
}

fn rescale(l: &Layout<Expr>, from: i64, to: i64) -> Layout<Expr> {
    let mut out = l.clone();
    if from == to {
        return out;
    }
    let scale = |x: &Expr| x.times(&Expr::Int(from)).floor_div(&Expr::Int(to));
    let last = out.sizes.len() - 1;
    out.sizes[last] = scale(&out.sizes[last]);
    for s in out.strides.iter_mut().take(last) {
        *s = scale(s);
    }
    out.offset = scale(&out.offset);
    out
}

/// The region's elements, in the region's sizes.
fn read(b: &mut Builder<'_>, base: ValueId, ty: &TensorType, region: &Layout<Expr>) -> Result<ValueId> {
    let target = TensorType::new(ty.dtype, region.clone());
    if ty.layout.same_cells(region) {
        return Ok(base);
    }
    if ty.layout.is_contiguous()
        && region.is_contiguous()
        && ty.layout.offset.equals(&region.offset) == Some(true)
        && ty.layout.numel().equals(&region.numel()) == Some(true)
    {
        return Ok(b.reshape(base, target));
    }
    let steps = relate(&ty.layout, region).filter(|r| read_steps(r) <= 2);
    match steps {
        Some(relation) => Ok(read_related(b, base, ty, &relation, &target)),
        None => Ok(b.as_strided(base, target)),
    }
}

/// How many operators a relation takes to read.
fn read_steps(r: &Relation<Expr>) -> usize {
    let kept = r.kept();
    let order: Vec<usize> = r.source.iter().flatten().copied().collect();
    let ones =
        r.source.iter().filter(|s| s.is_none()).count() + kept.iter().filter(|d| r.position(**d).is_none()).count();
    r.partial().count() + !order.is_sorted() as usize + (ones > 0) as usize
}

fn read_related(
    b: &mut Builder<'_>,
    base: ValueId,
    ty: &TensorType,
    r: &Relation<Expr>,
    target: &TensorType,
) -> ValueId {
    let (mut value, mut layout) = (base, ty.layout.clone());
    for (d, pick) in r.picks.iter().enumerate().rev() {
        let dim = Expr::Int(d as i64);
        let (op, args, next) = match pick {
            Pick::Whole => continue,
            Pick::Index(i) => ("aten.select.int", vec![dim, i.clone()], layout.select(d as i64, i)),
            Pick::Range { start, len, step } => {
                let end = range_end(start, len, step);
                let next = layout.slice(d as i64, Some(start), Some(&end), step);
                ("aten.slice.Tensor", vec![dim, start.clone(), end, step.clone()], next)
            }
        };
        layout = next.expect("a relation lies inside its base");
        let args = std::iter::once(Arg::Value(value)).chain(args.into_iter().map(Arg::Scalar)).collect();
        value = b.call(op, args, TensorType::new(ty.dtype, layout.clone()));
    }
    // Base dimensions left: those of the region in base order, and ones of size 1 that it does not have.
    let kept = r.kept();
    let mut order: Vec<i64> =
        r.source.iter().flatten().map(|d| kept.iter().position(|k| k == d).expect("a kept dimension") as i64).collect();
    let missing: Vec<i64> = (0..kept.len() as i64).filter(|i| !order.contains(i)).collect();
    order.extend(missing);
    if !order.is_sorted() {
        layout = layout.permute(&order).expect("a permutation");
        let dims = Arg::Scalars(order.into_iter().map(Expr::Int).collect());
        value =
            b.call("aten.permute.default", vec![Arg::Value(value), dims], TensorType::new(ty.dtype, layout.clone()));
    }
    if layout.sizes == target.layout.sizes {
        return value;
    }
    // Dimensions of size 1 come and go in one reshape; then broadcast ones are stretched.
    let ones: Vec<Expr> = target
        .layout
        .sizes
        .iter()
        .zip(&r.source)
        .map(|(n, s)| if s.is_none() { Expr::Int(1) } else { n.clone() })
        .collect();
    if layout.sizes[..] != ones[..] {
        let shaped = layout.view(&ones).unwrap_or_else(|| Layout::contiguous(&ones));
        value = b.reshape(value, TensorType::new(ty.dtype, shaped));
    }
    if ones[..] != target.layout.sizes[..] {
        let sizes = Arg::Scalars(target.layout.sizes.to_vec());
        value = b.call("aten.expand.default", vec![Arg::Value(value), sizes], target.clone());
    }
    value
}

fn range_end(start: &Expr, len: &Expr, step: &Expr) -> Expr {
    let one = Expr::Int(1);
    start.plus(&len.minus(&one).times(step)).plus(&one)
}

/// The base with the region's cells replaced by `value`.
fn write(
    b: &mut Builder<'_>,
    base: ValueId,
    ty: &TensorType,
    region: &Layout<Expr>,
    value: ValueId,
) -> Result<ValueId> {
    if ty.layout.same_cells(region) {
        return Ok(b.declare(value, ty));
    }
    let whole = ty.layout.is_contiguous()
        && region.is_contiguous()
        && ty.layout.offset.equals(&region.offset) == Some(true)
        && ty.layout.numel().equals(&region.numel()) == Some(true);
    if whole {
        return Ok(b.reshape(value, ty.clone()));
    }
    let Some(r) = relate(&ty.layout, region).filter(|r| r.partial().count() <= 1) else {
        let args = vec![
            Arg::Value(base),
            Arg::Value(value),
            Arg::Scalars(region.sizes.to_vec()),
            Arg::Scalars(region.strides.to_vec()),
            Arg::Scalar(region.offset.clone()),
        ];
        return Ok(b.call("aten.as_strided_scatter.default", args, ty.clone()));
    };
    // The value in the order and the dimensions of the base.
    let kept = r.kept();
    let mut order: Vec<i64> = kept.iter().filter_map(|d| r.position(*d)).map(|i| i as i64).collect();
    order.extend((0..r.source.len() as i64).filter(|i| r.source[*i as usize].is_none()));
    let mut value = value;
    let mut layout = b.graph.tensor(value).layout.clone();
    if !order.is_sorted() {
        layout = layout.permute(&order).expect("a permutation");
        let dims = Arg::Scalars(order.into_iter().map(Expr::Int).collect());
        value =
            b.call("aten.permute.default", vec![Arg::Value(value), dims], TensorType::new(ty.dtype, layout.clone()));
    }
    let sizes: Vec<Expr> = kept
        .iter()
        .map(|&d| match &r.picks[d] {
            Pick::Range { len, .. } => len.clone(),
            _ => ty.layout.sizes[d].clone(),
        })
        .collect();
    if layout.sizes[..] != sizes[..] {
        let shaped = layout.view(&sizes).unwrap_or_else(|| Layout::contiguous(&sizes));
        value = b.reshape(value, TensorType::new(ty.dtype, shaped));
    }
    let Some(d) = r.partial().next() else { return Ok(b.declare(value, ty)) };
    let dim = Arg::Scalar(Expr::Int(d as i64));
    Ok(match &r.picks[d] {
        Pick::Index(i) => {
            let args = vec![Arg::Value(base), Arg::Value(value), dim, Arg::Scalar(i.clone())];
            b.call("aten.select_scatter.default", args, ty.clone())
        }
        Pick::Range { start, len, step } => {
            let end = range_end(start, len, step);
            let args = vec![
                Arg::Value(base),
                Arg::Value(value),
                dim,
                Arg::Scalar(start.clone()),
                Arg::Scalar(end),
                Arg::Scalar(step.clone()),
            ];
            b.call("aten.slice_scatter.default", args, ty.clone())
        }
        Pick::Whole => unreachable!("a partial pick is not whole"),
    })
}
