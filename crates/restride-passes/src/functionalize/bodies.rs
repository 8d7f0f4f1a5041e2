//! Bodies of higher-order operators, rewritten: operands go in by value, or as regions of storages that the body writes.

use super::histories::Root;
use super::result_bits::operand_bits;
use super::rewrite::{Halt, NewValue, Rewrite, Rewriter, op, open_sharing};
use super::shared_region::SharedRegion;
use super::storages::{Alias, StorageId};
use restride_ir::{Arg, Error, ErrorKind, GraphId, Id, LazyBits, Node, TensorType, Type, ValueId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An operand as a body sees it.
#[derive(Clone)]
pub(super) enum BodyOperand {
    /// By value: its elements, and the lazy bits that eager PyTorch's tensor has.
    Value(ValueId, LazyBits),
    /// As a region of the base with this position among the bases, of this outer tensor object.
    Region { base: usize, ty: SharedRegion, maps: LazyBits, applied: LazyBits, history: SeenHistory, object: usize },
}

/// The history that a body sees of a region of a base.
#[derive(Clone, Copy)]
pub(super) enum SeenHistory {
    /// The base's.
    Base,
    /// The base's, as a view that was made under `no_grad`.
    Constant,
    /// One of its own, in which it is a constant.
    Detached,
}

/// A storage that a body writes: it goes in as a value with one of its histories.
#[derive(Clone, Copy)]
pub(super) struct WrittenBase {
    pub storage: StorageId,
    pub root: Root,
}

/// A body's result that is a region of an operand.
#[derive(Clone, PartialEq)]
pub(super) struct Returned {
    /// Position among the operands whose storage it is on.
    pub storage: StorageId,
    pub ty: TensorType,
    pub root: Root,
    pub constant: bool,
    /// The outer tensor object that it is, not only its memory: PyTorch's checks of overlap compare objects first.
    pub object: Option<usize>,
    /// The objects that it is in one of two branches.
    pub objects: Vec<usize>,
}

impl Returned {
    /// What a result is that each of two branches returns.
    pub fn of_both(yes: Self, no: Self) -> Option<Self> {
        let object = yes.object.filter(|_| yes.object == no.object);
        let objects = if object.is_some() { Vec::new() } else { yes.object.into_iter().chain(no.object).collect() };
        let no = Returned { object, objects: Vec::new(), ..no };
        let yes = Returned { object, objects: Vec::new(), ..yes };
        (yes == no).then_some(Returned { objects, ..yes })
    }
}

/// A rewritten body.
pub(super) struct RewrittenBody {
    pub graph: GraphId,
    /// For each old output, the outer storage and region that it is, if it is one.
    pub returned: Vec<Option<Returned>>,
    /// The lazy bits of eager PyTorch's tensor for each old output.
    pub bits: Vec<LazyBits>,
    /// The final bases, as values of the new body.
    pub bases: Vec<ValueId>,
}
impl Rewriter<'_> {
    /// Storages of operands that a body writes, in operand order, by per-operand flags.
    pub(super) fn written_storages(&self, operands: &[ValueId], written: &[bool]) -> Rewrite<Vec<WrittenBase>> {
        let mut out: Vec<WrittenBase> = Vec::new();
        for (v, w) in operands.iter().zip(written) {
            if *w && matches!(self.map[*v], Some(NewValue::Object(_))) {
                let Alias { storage, root, .. } = self.storages[self.alias(*v)?];
                if out.iter().all(|b| b.storage != storage) {
                    out.push(WrittenBase { storage, root });
                }
            }
        }
        // The history that is not constant of the values that the body reads.
        for v in operands.iter().filter(|v| matches!(self.map[**v], Some(NewValue::Object(_)))) {
            let Alias { storage, root, .. } = self.storages[self.alias(*v)?];
            let Some(base) = out.iter_mut().find(|b| b.storage == storage && b.root != root) else { continue };
            match (self.storages.is_constant(storage, base.root), self.storages.is_constant(storage, root)) {
                (_, true) => {}
                (true, false) => base.root = root,
                (false, false) => {
                    let name = &self.old.values[*v].name;
                    let what = format!("a body that writes the memory of %{name} and reads it both detached and not");
                    return Err(Error::unsupported(what).help("clone the detached tensor before the call").into());
                }
            }
        }
        Ok(out)
    }

    /// The bases as they go in.
    pub(super) fn base_values(&mut self, node: &Node, bases: &[WrittenBase]) -> Vec<Option<ValueId>> {
        let all = bases.iter().map(|base| Some(self.build(node, |b, s| s.content_as(b, base.storage, base.root))));
        all.collect()
    }

    /// The operands of a call as its body sees them. The first `by_value` are rebound by each iteration: they are passed by
    /// value.
    pub(super) fn operands(
        &mut self,
        node: &Node,
        operands: &[ValueId],
        by_value: usize,
        bases: &[WrittenBase],
    ) -> Rewrite<Vec<BodyOperand>> {
        let each = operands.iter().enumerate();
        each.map(|(i, v)| self.operand(node, *v, if i < by_value { &[] } else { bases })).collect()
    }

    fn operand(&mut self, node: &Node, v: ValueId, bases: &[WrittenBase]) -> Rewrite<BodyOperand> {
        if let Some(NewValue::Object(object)) = self.map[v] {
            let a = &self.storages[self.alias(v)?];
            self.refuse_open(a)?;
            if let Some(base) = bases.iter().position(|b| b.storage == a.storage) {
                let history = match (a.root == bases[base].root, a.constant) {
                    (true, false) => SeenHistory::Base,
                    (true, true) => SeenHistory::Constant,
                    (false, _) => SeenHistory::Detached,
                };
                let (ty, maps, applied) = (a.ty.clone(), a.bits(), a.applied);
                return Ok(BodyOperand::Region { base, ty, maps, applied, history, object });
            }
        }
        let bits = match self.map[v] {
            Some(NewValue::Object(_)) => self.bits(v)?,
            _ => LazyBits::default(),
        };
        Ok(BodyOperand::Value(self.read(node, v)?, bits))
    }

    /// Rewrites a body. Its new inputs are the operands by value, in order, with the bases put in before operand
    /// `bases_at`; its new outputs are the old ones with the final bases put in at the same position.
    pub(super) fn body(
        &mut self,
        graph: GraphId,
        operands: &[BodyOperand],
        outer: &[ValueId],
        bases: &[WrittenBase],
        bases_at: usize,
    ) -> Rewrite<RewrittenBody> {
        let program = self.program;
        let old = &program.graphs[graph];
        if old.inputs.len() != operands.len() {
            return Err(Error::invalid("a body has another number of inputs than its call has operands").into());
        }
        let mut inner = Rewriter::new(program, old);
        inner.graphs = std::mem::take(&mut self.graphs);
        // Inputs of the new body: values by position, with the bases put in at `bases_at`.
        let mut base_values = vec![None; bases.len()];
        let base_types: Vec<TensorType> = bases.iter().map(|b| (*self.storages[b.storage].ty).clone()).collect();
        let mut base_storages = vec![None; bases.len()];
        let mut add_bases = |inner: &mut Rewriter<'_>| {
            for (k, ty) in base_types.iter().enumerate() {
                let name = inner.names.fresh(&format!("base_{k}"));
                let v = inner.new.add_input(name, Type::Tensor(ty.clone()));
                base_values[k] = Some(v);
                let alias = inner.storages.add(v, ty.clone(), Some(k));
                base_storages[k] = Some(inner.storages[alias].storage);
            }
        };
        let mut regions = Vec::new();
        for (i, (o, &v)) in operands.iter().zip(&old.inputs).enumerate() {
            if i == bases_at {
                add_bases(&mut inner);
            }
            match o {
                BodyOperand::Value(_, bits) => {
                    let name = inner.names.fresh(&old.values[v].name);
                    let new = inner.new.add_input(name, old.values[v].ty.clone());
                    inner.bind_given(v, new, bases.len() + i);
                    if let Ok(alias) = inner.alias(v) {
                        inner.storages.set_applied(alias, *bits);
                    }
                }
                BodyOperand::Region { base, ty, maps, applied, history, object } => {
                    regions.push((v, *base, ty.clone(), (*maps, *applied), *history, *object));
                }
            }
        }
        if bases_at >= operands.len() {
            add_bases(&mut inner);
        }
        // An operand that is given twice is one object.
        let mut bound: BTreeMap<usize, NewValue> = BTreeMap::new();
        for (v, base, ty, (maps, applied), history, object) in regions {
            if let Some(&same) = bound.get(&object) {
                inner.bind(v, same);
                continue;
            }
            let storage = base_storages[base].expect("bases were added");
            let alias = inner.storages.region_as(storage, ty, maps.conj, maps.neg);
            inner.storages.set_applied(alias, applied);
            match history {
                SeenHistory::Base => {}
                SeenHistory::Constant => inner.storages.set_history(alias, Root::OWN, true),
                SeenHistory::Detached => inner.storages.detach(alias),
            }
            let new = inner.object(alias);
            bound.insert(object, new);
            inner.bind(v, new);
        }
        let value_storages: Vec<(StorageId, usize)> = operands
            .iter()
            .zip(&old.inputs)
            .enumerate()
            .filter(|(_, (o, _))| matches!(o, BodyOperand::Value(..)))
            .filter_map(|(i, (_, v))| Some((inner.storages[inner.alias(*v).ok()?].storage, i)))
            .collect();
        inner.nodes().map_err(|stop| match stop {
            Halt::NeedsStorage(k) => self.beyond(bases.get(k).map(|b| b.storage)),
            Halt::NeedsRoom(..) => Error::unsupported("a body that makes the memory of an operand grow").into(),
            other => other,
        })?;
        inner.mark_overwritten();
        let node = Node {
            op: op("aten.alias.default"),
            args: Vec::new(),
            results: Default::default(),
            origin: Arc::default(),
        };
        let mut outputs = Vec::new();
        let (mut returned, mut bits) = (Vec::new(), Vec::new());
        for arg in &old.outputs {
            let Arg::Value(v) = arg else {
                outputs.push(arg.clone());
                returned.push(None);
                bits.push(LazyBits::default());
                continue;
            };
            bits.push(inner.bits(*v).unwrap_or_default());
            let mut from = None;
            if let Ok(alias) = inner.alias(*v) {
                inner.refuse_open(&inner.storages[alias])?;
                let a = inner.storages[alias].clone();
                let own = inner.object_of(*v);
                let input = old.inputs.iter().position(|input| own.is_some() && inner.object_of(*input) == own);
                let object = input.and_then(|i| outer.get(i)).and_then(|v| self.object_of(*v));
                let whole_ty = inner.storages[a.storage].ty.clone();
                if let Some(k) = base_storages.iter().position(|s| *s == Some(a.storage)) {
                    let WrittenBase { storage, root } = bases[k];
                    from = Some(Returned {
                        storage,
                        ty: (*a.ty).clone(),
                        root,
                        constant: false,
                        object,
                        objects: Vec::new(),
                    });
                } else if let Some((_, i)) = value_storages.iter().find(|(s, _)| *s == a.storage)
                    && let Some(&outer_value) = outer.get(*i)
                    && let Ok(outer_alias) = self.alias(outer_value)
                {
                    let o = &self.storages[outer_alias];
                    // A part of the operand is where the body sees it, if the body sees the operand where it is.
                    let part = match (a.ty == whole_ty, o.ty == whole_ty) {
                        (true, _) => Some((*o.ty).clone()),
                        (false, true) => Some((*a.ty).clone()),
                        (false, false) => None,
                    };
                    from = part.filter(|_| !o.conj && !o.neg).map(|ty| Returned {
                        storage: o.storage,
                        ty,
                        root: o.root,
                        constant: o.constant,
                        object,
                        objects: Vec::new(),
                    });
                }
                if a.conj || a.neg || a.constant || a.root != Root::OWN {
                    from = None;
                }
            }
            returned.push(from);
            outputs.push(Arg::Value(inner.read(&node, *v)?));
        }
        // The caller sees the memory that a body leaves, whether the body reads it again or not.
        if let Some(why) = (0..inner.storages.len())
            .map(|s| &inner.storages[StorageId(s)])
            .find_map(|state| state.lost.as_ref().filter(|_| state.input.is_some()))
        {
            return Err(Error::unsupported(why.clone()).into());
        }
        if let Some(call) = base_storages.iter().flatten().find_map(|s| inner.storages.uncertain(*s)) {
            return Err(open_sharing(call));
        }
        let last = base_storages.iter().map(|s| {
            let storage = s.expect("bases were added");
            inner.build(&node, |b, s| s.content_as(b, storage, Root::OWN))
        });
        let last: Vec<ValueId> = last.collect();
        let at = if bases_at >= operands.len() { outputs.len() } else { bases_at.min(outputs.len()) };
        outputs.splice(at..at, last.iter().map(|v| Arg::Value(*v)));
        inner.new.outputs = outputs;
        self.graphs = inner.graphs;
        self.graphs.push(inner.new);
        // The main graph is graph 0.
        Ok(RewrittenBody { graph: GraphId::new(self.graphs.len()), returned, bits, bases: last })
    }

    /// The lazy bits of the carried operands before the loop and after any iteration, given those that the body `rewritten` returns
    /// for carried operands, and `later` for the others. Refuses a loop whose bodies refuse them in a later iteration.
    pub(super) fn refuse_later_bits(
        &mut self,
        node: &Node,
        graphs: &[GraphId],
        (operands, later): (&[BodyOperand], &[LazyBits]),
        (carried, bases): (usize, &[WrittenBase]),
        rewritten: &RewrittenBody,
    ) -> Rewrite<Vec<Vec<LazyBits>>> {
        let carried_bits = |bits: &[LazyBits]| bits.iter().take(carried).copied().collect();
        let mut ways = vec![operand_bits(operands, carried), carried_bits(&rewritten.bits)];
        let bits = |operands: &[BodyOperand]| -> Vec<Option<LazyBits>> {
            let of = |o: &BodyOperand| if let BodyOperand::Value(_, bits) = o { Some(*bits) } else { None };
            operands.iter().map(of).collect()
        };
        let (mut tried, mut returned) = (vec![bits(operands)], rewritten.bits.clone());
        loop {
            let mut next = operands.to_vec();
            for (i, o) in next.iter_mut().enumerate() {
                let now = if i < carried { returned.get(i) } else { later.get(i - carried) };
                if let (BodyOperand::Value(_, bits), Some(now)) = (o, now) {
                    *bits = *now;
                }
            }
            if tried.contains(&bits(&next)) {
                return Ok(ways);
            }
            tried.push(bits(&next));
            for &graph in graphs {
                // The rewritten body is the same but for what it refuses.
                let made = self.graphs.len();
                let body = self.body(graph, &next, &[], bases, carried).map_err(|stop| match stop {
                    Halt::Error(e) => Halt::Error(Error {
                        kind: ErrorKind::Unsupported,
                        what: format!("{} in a later iteration: {}", node.op.name(), e.what),
                        ..e
                    }),
                    other => other,
                })?;
                self.graphs.truncate(made);
                returned = body.bits;
            }
            ways.push(carried_bits(&returned));
        }
    }

    /// The error for a body that reaches beyond its operands: a base that may be passed with its whole storage, or an
    /// operand that is passed by value.
    pub(super) fn beyond(&self, base: Option<StorageId>) -> Halt {
        match base.map(|s| self.storages[s].input) {
            Some(Some(input)) => Halt::NeedsStorage(input),
            Some(None) => Error::new(ErrorKind::Program, "a body reaches beyond the storage of its operand").into(),
            None => Error::unsupported("a body that reaches beyond the elements of an operand, into its storage")
                .help("take the view outside of the body")
                .into(),
        }
    }
}

pub(super) fn storages_of(bases: &[WrittenBase]) -> Vec<StorageId> {
    bases.iter().map(|b| b.storage).collect()
}

pub(super) fn values_of(operands: &[BodyOperand]) -> Vec<Option<ValueId>> {
    operands
        .iter()
        .filter_map(|o| match o {
            BodyOperand::Value(v, _) => Some(Some(*v)),
            BodyOperand::Region { .. } => None,
        })
        .collect()
}
