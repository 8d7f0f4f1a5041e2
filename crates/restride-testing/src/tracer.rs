//! Builder of imported programs, call by call, with eager PyTorch's types by the operators' own rules. Bounds of the
//! numbers keep every element type exact.

use crate::magnitude::{self, Magnitude};
use restride_ir::{
    Arg, Args, DType, Expr, Graph, LazyBits, Meta, Op, OperandMemory, Origin, OutSize, Scalar, TensorType, TwinReturn,
    Type, ValueId, ViewOutcome, dense_like, refuse_overlap,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A graph under construction.
#[derive(Clone, Debug, Default)]
pub struct Tracer {
    /// Graph.
    pub graph: Graph,
    /// Tensor object of each value: an in-place call returns its target.
    objects: BTreeMap<ValueId, usize>,
    /// Current layout of each object: `t_` changes it.
    metas: Vec<Meta>,
    /// The storage of each object.
    on: Vec<usize>,
    /// The lazy bits of each object.
    bits: Vec<LazyBits>,
    /// Magnitude of the numbers in each storage.
    bounds: Vec<Magnitude>,
    /// Storages whose magnitude may not grow: operands of a loop's body.
    held: BTreeSet<usize>,
    hidden: BTreeSet<usize>,
    /// Objects that may be one, returned by bodies. Their sizes stay fixed.
    pinned: BTreeSet<usize>,
    /// Whether all objects keep their sizes: in a body, which runs repeatedly or elsewhere.
    fixed: bool,
    calls: u32,
    /// Whether to add calls that eager refuses because their arguments overlap.
    wild: bool,
}

impl Tracer {
    /// An empty graph. With `wild`, it adds calls that eager refuses because their arguments overlap; with `fixed`, tensors
    /// keep their sizes.
    pub fn new(wild: bool, fixed: bool) -> Tracer {
        Tracer { wild, fixed, ..Tracer::default() }
    }

    /// Adds an input on its own storage, or on that of another value.
    pub fn input(&mut self, name: &str, meta: Meta, beside: Option<ValueId>, bound: Magnitude) -> ValueId {
        let v = self.graph.add_input(name, Type::Tensor(symbolic(&meta)));
        let storage = match beside {
            Some(b) => self.storage(b),
            None => self.fresh(bound),
        };
        self.bounds[storage] = self.bounds[storage].or(bound);
        self.add(v, meta, storage, LazyBits::default());
        v
    }

    fn fresh(&mut self, bound: Magnitude) -> usize {
        self.bounds.push(bound);
        self.bounds.len() - 1
    }

    fn add(&mut self, v: ValueId, meta: Meta, storage: usize, bits: LazyBits) {
        self.objects.insert(v, self.metas.len());
        self.metas.push(meta);
        self.on.push(storage);
        self.bits.push(bits);
    }

    fn bits(&self, v: ValueId) -> LazyBits {
        self.bits[self.objects[&v]]
    }

    /// Type of a tensor as an operator sees it: a lazily mapped tensor is copied.
    fn settled(&self, v: ValueId) -> Meta {
        let meta = self.meta(v);
        let layout = if self.bits(v).is_clear() { meta.layout.clone() } else { dense_like(&meta.layout) };
        Meta::new(meta.dtype, layout)
    }

    /// All tensors so far in order, except hidden ones.
    pub fn values(&self) -> Vec<ValueId> {
        self.objects.iter().filter(|(_, o)| !self.hidden.contains(o)).map(|(v, _)| *v).collect()
    }

    /// Hides a tensor from random choices.
    pub fn hide(&mut self, v: ValueId) {
        self.hidden.insert(self.objects[&v]);
    }

    /// Fixes the sizes of a tensor object.
    pub fn pin(&mut self, v: ValueId) {
        self.pinned.insert(self.objects[&v]);
    }

    /// Current layout of a tensor.
    pub fn meta(&self, v: ValueId) -> &Meta {
        &self.metas[self.objects[&v]]
    }

    /// Whether two values are the same tensor object.
    pub fn same(&self, a: ValueId, b: ValueId) -> bool {
        self.objects[&a] == self.objects[&b]
    }

    /// Current storage of a tensor.
    pub fn storage(&self, v: ValueId) -> usize {
        self.on[self.objects[&v]]
    }

    /// Magnitude of a tensor's storage.
    pub fn bound(&self, v: ValueId) -> Magnitude {
        self.bounds[self.storage(v)]
    }

    /// Raises the magnitude of a tensor's storage.
    pub fn widen(&mut self, v: ValueId, bound: Magnitude) {
        let s = self.storage(v);
        self.bounds[s] = self.bounds[s].or(bound);
    }

    /// Fixes the magnitude of a tensor's storage.
    pub fn hold(&mut self, v: ValueId) {
        self.held.insert(self.storage(v));
    }

    /// Adds a call with tensor results; missing trailing arguments take their defaults. `None` without a change if the
    /// operator cannot run, its rules refuse the arguments, or numbers would round.
    pub fn call(&mut self, name: &str, args: Vec<Arg>) -> Option<Vec<ValueId>> {
        let op = restride_ops::lookup(name)?;
        let args = filled(op, args)?;
        if !op.can_run() {
            return None;
        }
        let Traced { made, writes, bound } = self.results(op, &args)?;
        for (target, dtype) in writes {
            let storage = self.storage(target);
            if self.held.contains(&storage) && !bound.within(self.bounds[storage]) {
                return None;
            }
            if bound.exact_in(dtype).is_none() && !(magnitude::only_moves(op) && self.moved(&args, dtype)) {
                return None;
            }
            self.bounds[storage] = self.bounds[storage].or(bound);
        }
        let names: Vec<(Arc<str>, Type)> = made
            .iter()
            .enumerate()
            .map(|(i, r)| {
                let meta = match r {
                    TracedResult::New(meta) | TracedResult::Piece(meta) | TracedResult::View(meta, _, _) => meta,
                    TracedResult::Object(o, meta, _) => meta.as_ref().unwrap_or(&self.metas[*o]),
                };
                let name = format!("v{}", self.graph.values.len() + i);
                (name.into(), Type::Tensor(symbolic(meta)))
            })
            .collect();
        // A lazily mapped tensor keeps its bits on other memory.
        let lazy = is_lazy(name);
        let base = args.first().and_then(|a| a.values().next().copied()).filter(|_| lazy);
        let results = self.push(op, args, names, made, &[bound]);
        base.iter().chain(results.iter().filter(|_| lazy)).for_each(|v| self.pin(*v));
        Some(results)
    }

    /// Adds a higher-order call with tensor results of these types, on new storages or on that of another value.
    pub fn call_as(&mut self, op: Op, args: Vec<Arg>, types: &[(Meta, Option<ValueId>, Magnitude)]) -> Vec<ValueId> {
        let n = self.graph.values.len();
        let names = types
            .iter()
            .enumerate()
            .map(|(i, (m, _, _))| (format!("v{}", n + i).into(), Type::Tensor(symbolic(m))))
            .collect();
        let made = types.iter().map(|(m, on, _)| match on {
            Some(v) => TracedResult::View(m.clone(), self.storage(*v), LazyBits::default()),
            None => TracedResult::New(m.clone()),
        });
        let made = made.collect();
        let bounds: Vec<Magnitude> = types.iter().map(|t| t.2).collect();
        self.push(op, args, names, made, &bounds)
    }

    /// Adds a call without tensor results: none, or a number of this type. `None` if arguments do not fit.
    pub fn plain(&mut self, name: &str, args: Vec<Arg>, ty: Option<Type>) -> Option<()> {
        let op = restride_ops::lookup(name)?;
        let args = filled(op, args)?;
        self.calls += 1;
        let origin = Arc::new(Origin { key: self.calls, ..Origin::default() });
        let named = ty.map(|ty| (format!("n{}", self.graph.values.len()).into(), ty));
        self.graph.add_node(op, args, named, origin);
        Some(())
    }

    /// `bounds` are magnitudes of the results, or one for all.
    fn push(
        &mut self,
        op: Op,
        args: Vec<Arg>,
        names: Vec<(Arc<str>, Type)>,
        made: Vec<TracedResult>,
        bounds: &[Magnitude],
    ) -> Vec<ValueId> {
        self.calls += 1;
        let origin = Arc::new(Origin { key: self.calls, ..Origin::default() });
        let id = self.graph.add_node(op, args, names, origin);
        let values = self.graph.nodes[id].results.to_vec();
        let mut whole = None;
        for (i, (&v, made)) in values.iter().zip(made).enumerate() {
            let bound = bounds.get(i).or(bounds.first()).copied().unwrap_or_default();
            match made {
                TracedResult::New(meta) => {
                    let storage = self.fresh(bound.of(meta.dtype));
                    self.add(v, meta, storage, LazyBits::default());
                }
                TracedResult::Piece(meta) => {
                    let storage = *whole.get_or_insert_with(|| self.fresh(bound.of(meta.dtype)));
                    self.add(v, meta, storage, LazyBits::default());
                }
                TracedResult::View(meta, storage, bits) => {
                    self.bounds[storage] = self.bounds[storage].or(bound);
                    self.add(v, meta, storage, bits);
                }
                TracedResult::Object(o, meta, storage) => {
                    self.objects.insert(v, o);
                    if let Some(meta) = meta {
                        self.metas[o] = meta;
                    }
                    if let Some(storage) = storage {
                        self.on[o] = storage;
                    }
                }
            }
        }
        values
    }

    /// Whether a result of a type converts only integers.
    fn moved(&self, args: &[Arg], to: DType) -> bool {
        let mut types = args.iter().flat_map(|a| a.values()).map(|v| self.meta(*v).dtype);
        types.all(|d| d == to || d.is_int() || d == DType::Bool)
    }

    /// A view of a tensor with these bits, or the copy that PyTorch makes instead.
    fn view(&self, base: ValueId, bits: Option<LazyBits>, meta: Meta) -> TracedResult {
        match bits {
            Some(bits) => TracedResult::View(meta, self.storage(base), bits),
            None => TracedResult::New(Meta::new(meta.dtype, dense_like(&meta.layout))),
        }
    }

    fn results(&self, op: Op, args: &[Arg]) -> Option<Traced> {
        let def = op.def();
        let metas: Vec<Arg<Meta, Scalar>> = args
            .iter()
            .map(|a| a.try_map(|v| Ok(self.meta(*v).clone()), |e| e.constant().ok_or(())))
            .collect::<Result<_, ()>>()
            .ok()?;
        let bounds: Vec<Arg<(Magnitude, Meta), Scalar>> = args
            .iter()
            .map(|a| a.try_map(|v| Ok((self.bound(*v), self.meta(*v).clone())), |e| e.constant().ok_or(())))
            .collect::<Result<_, ()>>()
            .ok()?;
        // Operators other than views get copies of lazily mapped tensors.
        let settled: Vec<Arg<Meta, Scalar>> = args
            .iter()
            .map(|a| a.try_map(|v| Ok(self.settled(*v)), |e| e.constant().ok_or(())))
            .collect::<Result<_, ()>>()
            .ok()?;
        if op.member().is_some() {
            if !op.schema().returns.is_empty() {
                return None;
            }
            // A repeated member grows repeatedly.
            let list: Vec<ValueId> = args[0].values().copied().collect();
            let bound = magnitude::bound(op, &bounds, list.len() as f64)?;
            let writes = list.iter().map(|v| (*v, self.meta(*v).dtype)).collect();
            return Some(Traced { made: Vec::new(), writes, bound });
        }
        if let (Some(twin), true) = (op.twin(), op.mutates(args)) {
            // A written tensor may have several elements in one cell, which shape functions may refuse.
            let dense = |m: &Meta| Meta::contiguous(m.dtype, &m.layout.sizes);
            let own: Vec<_> = twin.args.iter().map(|&i| metas[i as usize].map_values(dense)).collect();
            let own = filled(twin.op, own)?;
            let inferred = twin.op.def().infer?(&Args(&own)).ok()?;
            if !self.wild {
                let see = |v: &ValueId| {
                    Some(OperandMemory::new(self.meta(*v), self.storage(*v), self.objects[v]).with_bits(self.bits(*v)))
                };
                let size = |arg: u8, result: u8| {
                    let target = args[arg as usize].values().next().map(|v| self.meta(*v));
                    match (target, inferred.get(result as usize)) {
                        (Some(t), Some(made)) if t.layout.sizes == made.layout.sizes => OutSize::Kept,
                        (_, Some(made)) => OutSize::Resized(made.layout.numel()),
                        (_, None) => OutSize::Unknown,
                    }
                };
                refuse_overlap(twin, args, see, size).ok()?;
            }
            let mut resized = BTreeMap::new();
            let mut writes = Vec::new();
            for &(arg, result) in &twin.writes {
                let target = *args[arg as usize].values().next()?;
                let value = inferred.get(result as usize)?;
                let meta = self.meta(target);
                if !value.dtype.can_cast(meta.dtype) {
                    return None;
                }
                if meta.layout.sizes != value.layout.sizes {
                    // Only a pure output is resized.
                    let shares = |v: &ValueId| *v != target && self.storage(*v) == self.storage(target);
                    if twin.args.contains(&arg)
                        || self.fixed
                        || self.pinned.contains(&self.objects[&target])
                        || args.iter().flat_map(|a| a.values()).any(shares)
                    {
                        return None;
                    }
                    let strided: Vec<_> = twin.args.iter().map(|&i| settled[i as usize].clone()).collect();
                    let real = twin.op.def().infer?(&Args(&filled(twin.op, strided)?)).ok()?;
                    let mut layout = real.get(result as usize)?.layout.clone();
                    layout.offset = meta.layout.offset;
                    resized.insert(self.objects[&target], Meta::new(meta.dtype, layout));
                }
                writes.push((target, meta.dtype));
            }
            let made = |r: &TwinReturn| match *r {
                TwinReturn::Arg(i) => {
                    let object = self.objects[args[i as usize].values().next()?];
                    Some(TracedResult::Object(object, resized.get(&object).cloned(), None))
                }
                TwinReturn::Result(r) => Some(TracedResult::New(inferred.get(r as usize)?.clone())),
            };
            let bound = magnitude::bound(op, &bounds, 1.0)?;
            let made = twin.returns.iter().map(made).collect::<Option<_>>()?;
            return Some(Traced { made, writes, bound });
        }
        let of_copy = def.resolves && args.first().is_some_and(|a| a.values().any(|v| !self.bits(*v).is_clear()));
        if let Some(rule) = def.view
            && let ViewOutcome::Views(views) = rule.of(if of_copy { &settled } else { &metas }).ok()?
        {
            let base = *args[def.base as usize].values().next()?;
            let (storage, own) = (self.storage(base), self.bits(base));
            let bound = self.bound(base).seen_as(self.meta(base).dtype, views.first()?.dtype)?;
            let made = if def.metadata {
                let object = self.objects[args[0].values().next()?];
                if self.fixed || self.pinned.contains(&object) {
                    return None;
                }
                vec![TracedResult::Object(object, Some(views.into_iter().next()?), Some(storage))]
            } else if of_copy {
                views.into_iter().map(TracedResult::Piece).collect()
            } else {
                let bits = |m: &Meta| own.of_view(op, self.meta(base), m).ok();
                match &views[..] {
                    [one] if def.itself && one == self.meta(base) && bits(one)? == Some(own) => {
                        vec![TracedResult::Object(self.objects[&base], None, None)]
                    }
                    _ => views.into_iter().map(|m| Some(self.view(base, bits(&m)?, m))).collect::<Option<_>>()?,
                }
            };
            return Some(Traced { made, writes: Vec::new(), bound });
        }
        // Complex numbers with half parts would be `ComplexHalf`, which is not supported.
        let types = || metas.iter().flat_map(|a| a.values()).map(|m| m.dtype);
        if types().any(DType::is_complex) && types().any(|d| d == DType::F16) {
            return None;
        }
        let made: Vec<Meta> = def.infer?(&Args(&settled)).ok()?.into_iter().collect();
        let bound = magnitude::bound(op, &bounds, 1.0)?;
        // No result may round; bits that are only moved may be anything.
        if made
            .iter()
            .any(|m| bound.exact_in(m.dtype).is_none() && !(magnitude::only_moves(op) && self.moved(args, m.dtype)))
        {
            return None;
        }
        Some(Traced { made: made.into_iter().map(TracedResult::New).collect(), writes: Vec::new(), bound })
    }
}

/// Effect of a call.
struct Traced {
    made: Vec<TracedResult>,
    /// Written value, with its type.
    writes: Vec<(ValueId, DType)>,
    /// Computed values.
    bound: Magnitude,
}

/// Result of a call.
enum TracedResult {
    New(Meta),
    /// A new object on the call's new storage.
    Piece(Meta),
    /// A new object on an existing storage.
    View(Meta, usize, LazyBits),
    /// An existing object, perhaps with a new layout or storage.
    Object(usize, Option<Meta>, Option<usize>),
}

fn is_lazy(name: &str) -> bool {
    ["aten.imag.", "aten._conj.", "aten.conj.", "aten._neg_view."].iter().any(|start| name.starts_with(start))
}

/// Arguments with defaults for missing trailing ones.
fn filled<V, S: From<Scalar>>(op: Op, mut args: Vec<Arg<V, S>>) -> Option<Vec<Arg<V, S>>> {
    op.fill_defaults(&mut args).ok()?;
    Some(args)
}

/// A known type as a program's type.
pub fn symbolic(meta: &Meta) -> TensorType {
    TensorType::new(meta.dtype, meta.layout.map(|n| Expr::Int(*n)))
}
