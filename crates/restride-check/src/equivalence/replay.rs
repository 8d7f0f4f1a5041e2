//! Replay of a program on names: true storages, aliases and writes.

use super::cells::{Runs, StorageCells};
use super::names::{Byte, ContentId, TermId, TermKey, TermTable};
use super::{MemoryOps, ReplayStop};
use restride_ir::{
    Arg, Args, CollectTree, DType, Expr, Graph, GraphId, Layout, LazyBits, Meta, Movement, Node, NodeId, Op, OpError,
    Program, Scalar, TensorType, Type, ValueId, ViewOutcome, dense_like, fused_body,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) type ReplayResult<T> = Result<T, ReplayStop>;

/// Pointwise results of up to this many elements get a name for each element, so a part of a call is the call of a part.
pub(super) const SMALL: i64 = 256;

/// A tensor object.
#[derive(Clone, Debug)]
pub(super) struct ReplayTensor {
    pub(super) cells: Rc<RefCell<StorageCells>>,
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    pub(super) bits: LazyBits,
}

impl ReplayTensor {
    pub(super) fn meta(&self) -> Meta {
        TensorType::new(self.dtype, self.layout.clone())
    }
}

/// A value during a replay.
#[derive(Clone, Debug)]
pub(super) enum ReplayValue {
    Tensor(Rc<RefCell<ReplayTensor>>),
    Number(Expr),
    Other(String),
}

impl ReplayValue {
    pub(super) fn new(t: ReplayTensor) -> ReplayValue {
        ReplayValue::Tensor(Rc::new(RefCell::new(t)))
    }
}

pub(super) type ReplayArgs = [Arg<ReplayValue, Expr>];

/// Replay of one program.
pub(super) struct Replay<'a> {
    pub(super) program: &'a Program,
    pub(super) names: &'a mut TermTable,
    pub(super) known: &'a MemoryOps,
    /// Numbers learned from data, by symbol.
    pub(super) learned: BTreeMap<String, Byte>,
    /// Nesting depth of bodies.
    pub(super) depth: usize,
    /// Storages that may be one, depending on a branch.
    pub(super) uncertain: Vec<Rc<RefCell<StorageCells>>>,
    /// Work left before the checker gives up.
    pub(super) budget: u64,
}

/// Gives up, with the reason.
pub(super) fn skip<T>(why: impl Into<String>) -> ReplayResult<T> {
    Err(ReplayStop::Undecided(why.into()))
}

impl From<OpError> for ReplayStop {
    fn from(e: OpError) -> ReplayStop {
        ReplayStop::Fault(e.0)
    }
}

impl Replay<'_> {
    /// Replays a graph on its inputs.
    pub(super) fn graph(&mut self, id: GraphId, inputs: &[ReplayValue]) -> ReplayResult<Vec<Arg<ReplayValue, Expr>>> {
        let graph = &self.program.graphs[id];
        if graph.inputs.len() != inputs.len() {
            return Err(ReplayStop::Fault(format!(
                "a graph of {} inputs is given {}",
                graph.inputs.len(),
                inputs.len()
            )));
        }
        let mut values: BTreeMap<ValueId, ReplayValue> =
            graph.inputs.iter().copied().zip(inputs.iter().cloned()).collect_map();
        let last = last_uses(graph);
        for (n, node) in graph.ordered() {
            let args = node.args.iter().map(|a| slots(graph, &values, a)).collect::<ReplayResult<Vec<_>>>()?;
            // A last use gives the value to the call.
            for v in last.get(&n).map_or(&[] as &[_], Vec::as_slice) {
                values.remove(v);
            }
            let results = self.node(graph, node, args).map_err(|stop| stop.at(id, n))?;
            if results.len() != node.results.len() {
                let what = format!("{} gives {} results, not {}", node.op, results.len(), node.results.len());
                return Err(ReplayStop::Fault(what).at(id, n));
            }
            values.extend(node.results.iter().copied().zip(results));
        }
        graph.outputs.iter().map(|a| slots(graph, &values, a)).collect()
    }

    fn node(
        &mut self,
        graph: &Graph,
        node: &Node,
        args: Vec<Arg<ReplayValue, Expr>>,
    ) -> ReplayResult<Vec<ReplayValue>> {
        if node.op.def().hop.is_some() {
            return self.higher(graph, node, &args);
        }
        if let Some(body) = fused_body(node) {
            return self.fused(body, &args);
        }
        let types: Vec<Type> = node.results.iter().map(|r| graph.values[*r].ty.clone()).collect();
        self.call(node.op, args, Some(&types), node.origin.key)
    }

    /// Replays one call; `types` are the declared types of its results, if any.
    pub(super) fn call(
        &mut self,
        op: Op,
        args: Vec<Arg<ReplayValue, Expr>>,
        types: Option<&[Type]>,
        key: u32,
    ) -> ReplayResult<Vec<ReplayValue>> {
        let def = op.def();
        let mut args = args;
        op.fill_defaults(&mut args)?;
        let mutates = op.mutates(&args);
        if let (Some(member), true) = (op.member(), op.is_each_member(mutates)) {
            return self.members(op, member, &args, key);
        }
        if def.metadata {
            return self.metadata(op, &args);
        }
        if mutates {
            let Some(twin) = op.twin() else { return skip(format!("{op} writes in a way that is not declared")) };
            return self.mutate(op, twin, &args, key);
        }
        if def.resolves {
            args[def.base as usize] = self.materialized(&args[def.base as usize])?;
        }
        if let Some(rule) = def.view {
            match rule.of(&metas(&args)?)? {
                ViewOutcome::Views(views) => {
                    let given = tensor(&args, def.base as usize)?;
                    let base = given.borrow().clone();
                    let made = self.views(op, base.clone(), &views)?;
                    let all = |t: &ReplayTensor| {
                        Rc::ptr_eq(&t.cells, &base.cells) && t.meta() == base.meta() && t.bits == base.bits
                    };
                    return Ok(match &made[..] {
                        // No change: the result is the tensor itself.
                        [ReplayValue::Tensor(one)] if def.itself && all(&one.borrow()) => {
                            vec![ReplayValue::Tensor(given.clone())]
                        }
                        _ => made,
                    });
                }
                ViewOutcome::Copy => {}
                ViewOutcome::Unknown => return skip(format!("whether {op} copies is not known")),
            }
        }
        self.pure(op, &args, types, key)
    }

    fn views(&mut self, op: Op, base: ReplayTensor, views: &[Meta]) -> ReplayResult<Vec<ReplayValue>> {
        let base = if op.def().strided && self.program.stage == restride_ir::Stage::Functional {
            // A functional value has its own elements only, in the declared layout.
            let runs = self.read(&base)?;
            self.fresh(&base.meta(), &runs)
        } else {
            base
        };
        let mut out = Vec::with_capacity(views.len());
        for v in views {
            let bits = base.bits.of_view(op, &base.meta(), v).map_err(|e| ReplayStop::Fault(e.to_string()))?;
            out.push(ReplayValue::new(match bits {
                Some(bits) => {
                    ReplayTensor { cells: base.cells.clone(), dtype: v.dtype, layout: v.layout.clone(), bits }
                }
                None => self.copied(&base)?,
            }));
        }
        Ok(out)
    }

    /// A copy of a tensor in the layout of `clone`.
    fn copied(&mut self, t: &ReplayTensor) -> ReplayResult<ReplayTensor> {
        let runs = self.read(t)?;
        Ok(self.fresh(&Meta::new(t.dtype, dense_like(&t.layout)), &runs))
    }

    /// An argument with lazily mapped tensors resolved.
    pub(super) fn materialized(&mut self, arg: &Arg<ReplayValue, Expr>) -> ReplayResult<Arg<ReplayValue, Expr>> {
        let one = |slot: &ReplayValue| match slot {
            ReplayValue::Tensor(t) if !t.borrow().bits.is_clear() => {
                let t = t.borrow().clone();
                self.copied(&t).map(ReplayValue::new)
            }
            other => Ok(other.clone()),
        };
        arg.try_map(one, |e| Ok(e.clone()))
    }

    /// The object becomes another view (`t_`, `as_strided_`, `set_`).
    fn metadata(&mut self, op: Op, args: &ReplayArgs) -> ReplayResult<Vec<ReplayValue>> {
        let def = op.def();
        let target = tensor(args, 0)?.clone();
        let base = tensor(args, def.base as usize)?.borrow().clone();
        let Some(rule) = def.view else { return skip(format!("{op} has no view rule")) };
        let ViewOutcome::Views(views) = rule.of(&metas(args)?)? else {
            return skip(format!("{op} may need more memory than the tensor has"));
        };
        let made = self.views(op, base, &views)?;
        let [ReplayValue::Tensor(made)] = &made[..] else {
            return Err(ReplayStop::Fault(format!("{op} gives no view")));
        };
        let mut made = made.borrow().clone();
        if def.base != 0 {
            // The object takes over memory and keeps its own lazy bits.
            made.bits = target.borrow().bits;
        }
        *target.borrow_mut() = made;
        Ok(vec![ReplayValue::Tensor(target)])
    }

    /// A call that only reads: moved elements keep their names, others get the call's.
    pub(super) fn pure(
        &mut self,
        op: Op,
        args: &ReplayArgs,
        types: Option<&[Type]>,
        key: u32,
    ) -> ReplayResult<Vec<ReplayValue>> {
        let inferred;
        let types = match types {
            Some(types) => types,
            None => {
                let Some(rule) = op.def().infer else { return skip(format!("{op} has no shape rule")) };
                let symbolic = |m: Meta| Type::Tensor(TensorType::new(m.dtype, m.layout.map(|d| Expr::Int(*d))));
                inferred = rule(&Args(&metas(args)?))?.into_iter().map(symbolic).collect::<Vec<_>>();
                &inferred
            }
        };
        let mut metas = Vec::with_capacity(types.len());
        for t in types {
            metas.push(match t {
                Type::Tensor(t) => match t.known() {
                    Some(meta) => Some(meta),
                    None => return skip(format!("the sizes of a result of {op} depend on data")),
                },
                _ => None,
            });
        }
        if let [Some(meta)] = &metas[..]
            && let Some(runs) = self.moved(op, args, meta)?
        {
            return Ok(vec![ReplayValue::new(self.fresh(meta, &runs))]);
        }
        if op.def().movement.is_some_and(|m| matches!(m, Movement::View(_))) {
            return self.copied_views(op, args, &metas);
        }
        let made = self.compute(op, args, &metas, key)?;
        let mut out = Vec::with_capacity(types.len());
        for ((ty, meta), runs) in types.iter().zip(&metas).zip(made) {
            out.push(match (ty, meta) {
                (_, Some(meta)) => ReplayValue::new(self.fresh(meta, &runs)),
                (Type::Scalar(e), _) => {
                    if let (Expr::Sym(s), Some(name)) = (e, runs.at(0)) {
                        self.learned.insert(s.name().to_string(), name);
                    }
                    ReplayValue::Number(e.clone())
                }
                (other, _) => ReplayValue::Other(format!("{other:?}")),
            });
        }
        Ok(out)
    }

    /// Copies of views of argument 0 (`permute_copy`).
    fn copied_views(&mut self, op: Op, args: &ReplayArgs, types: &[Option<Meta>]) -> ReplayResult<Vec<ReplayValue>> {
        let Some(Movement::View(rule)) = op.def().movement else { return skip("no view") };
        let base = tensor(args, 0)?.borrow().clone();
        let ViewOutcome::Views(views) = rule.of(&metas(args)?)? else { return skip(format!("{op} is no view")) };
        let views = self.views(op, base, &views)?;
        let mut out = Vec::with_capacity(views.len());
        for (view, ty) in views.iter().zip(types) {
            let (ReplayValue::Tensor(view), Some(ty)) = (view, ty) else { return skip(format!("{op} gives a number")) };
            let view = view.borrow().clone();
            let runs = self.read(&view)?;
            out.push(ReplayValue::new(self.fresh(ty, &runs)));
        }
        Ok(out)
    }

    /// Elements of the result of an operator that only moves them.
    fn moved(&mut self, op: Op, args: &ReplayArgs, to: &Meta) -> ReplayResult<Option<Runs>> {
        let element = to.dtype.size();
        let first = || tensor(args, 0).map(|t| t.borrow().clone());
        if op == self.known.copy {
            let (target, src) = (first()?, tensor(args, 1)?.borrow().clone());
            let layout = src.layout.expand(&target.layout.sizes).map_err(OpError::from)?;
            let src = ReplayTensor { layout, ..src };
            let runs = self.read(&src)?;
            return if src.dtype == to.dtype {
                Ok(Some(runs))
            } else {
                self.cast(src.dtype, &to.layout.sizes, &runs, to.dtype).map(Some)
            };
        }
        if op == self.known.pad {
            return self.padded(op, args, &first()?, to);
        }
        match op.def().movement {
            None | Some(Movement::View(_)) => Ok(None),
            Some(Movement::Same) => {
                let from = first()?;
                if from.dtype != to.dtype {
                    return Ok(None);
                }
                Ok(Some(self.read(&from)?))
            }
            Some(Movement::Scatter { base, src, region }) => {
                let (base_slot, src) =
                    (tensor(args, base as usize)?.clone(), tensor(args, src as usize)?.borrow().clone());
                let value = self.read(&src)?;
                let base = base_slot.borrow().clone();
                let ViewOutcome::Views(regions) = region.of(&metas(args)?)? else { return Ok(None) };
                let Some(region) = regions.first() else { return Ok(None) };
                // Same cells as the base; only the base's elements count in the end.
                let whole = self.read(&base)?;
                let mut cells = StorageCells::default();
                cells.write(&base.layout, element, &whole);
                cells.write(&region.layout, element, &value);
                let cells = Rc::new(RefCell::new(cells));
                let made = ReplayTensor { cells, bits: LazyBits::default(), ..base };
                Ok(Some(self.read(&made)?))
            }
            Some(Movement::Assemble(pieces)) => {
                let operands: Vec<ReplayTensor> = args
                    .iter()
                    .flat_map(Arg::values)
                    .filter_map(|s| if let ReplayValue::Tensor(t) = s { Some(t.borrow().clone()) } else { None })
                    .collect();
                let layout = Layout::contiguous(&to.layout.sizes);
                let mut cells = StorageCells::default();
                for piece in pieces(&Args(&metas(args)?), &layout)? {
                    let Some(t) = operands.get(piece.operand) else { return Ok(None) };
                    if t.dtype != to.dtype {
                        return Ok(None);
                    }
                    let runs = self.read(t)?;
                    cells.write(&piece.region, element, &runs);
                }
                let made = ReplayTensor {
                    cells: Rc::new(RefCell::new(cells)),
                    dtype: to.dtype,
                    layout,
                    bits: LazyBits::default(),
                };
                Ok(Some(self.read(&made)?))
            }
        }
    }

    /// Elements of a padded tensor: its own, and around them the operator's. `None` if the padding takes elements away.
    fn padded(&mut self, op: Op, args: &ReplayArgs, from: &ReplayTensor, to: &Meta) -> ReplayResult<Option<Runs>> {
        let metas = metas(args)?;
        let pads = Args(&metas).ints(1)?;
        if pads.iter().any(|p| *p < 0) {
            return Ok(None);
        }
        let whole = Layout::contiguous(&to.layout.sizes);
        // Widths come last dimension first, left before right.
        let lefts = pads.iter().step_by(2).zip(whole.strides.iter().rev());
        let offset = lefts.map(|(left, stride)| left * stride).sum();
        let region = Layout::strided(&from.layout.sizes, &whole.strides, offset);
        let (own, around) = (self.read(from)?, self.compute(op, args, &[Some(to.clone())], 0)?.remove(0));
        let mut cells = StorageCells::default();
        cells.write(&whole, to.dtype.size(), &around);
        cells.write(&region, to.dtype.size(), &own);
        let cells = Rc::new(RefCell::new(cells));
        let made = ReplayTensor { cells, dtype: to.dtype, layout: whole, bits: LazyBits::default() };
        Ok(Some(self.read(&made)?))
    }

    pub(super) fn content(&mut self, t: &ReplayTensor) -> ReplayResult<ContentId> {
        let runs = self.read(t)?;
        Ok(self.names.content(t.dtype.size(), &runs))
    }

    /// Elements of a tensor.
    pub(super) fn read(&mut self, t: &ReplayTensor) -> ReplayResult<Runs> {
        let runs = t.cells.borrow_mut().read(self.names, &t.layout, t.dtype.size());
        self.spend(&t.cells)?;
        let Some(runs) = runs else { return skip("memory is read that nothing was put in") };
        self.mapped(t, runs)
    }

    /// Elements through a tensor's lazy bits, in either direction.
    pub(super) fn mapped(&mut self, t: &ReplayTensor, runs: Runs) -> ReplayResult<Runs> {
        let mut runs = runs;
        let ty = Meta::contiguous(t.dtype, &t.layout.sizes);
        for op in
            [(t.bits.conj && t.dtype.is_complex()).then_some(self.known.conj), t.bits.neg.then_some(self.known.neg)]
                .into_iter()
                .flatten()
        {
            // Two applications cancel.
            if let Some(before) = self.undone(op, &runs) {
                runs = before;
                continue;
            }
            let value = self.fresh(&ty, &runs);
            runs = self.compute(op, &[Arg::Value(ReplayValue::new(value))], &[Some(ty.clone())], 0)?.remove(0);
        }
        Ok(runs)
    }

    /// The elements before an operator was applied to each of them, if it was.
    fn undone(&self, op: Op, runs: &Runs) -> Option<Runs> {
        let mut out = Runs::default();
        for run in &runs.0 {
            for i in 0..run.len {
                out.one(self.names.applied_to(op.name(), run.at(i))?);
            }
        }
        (!out.0.is_empty()).then_some(out)
    }

    /// A tensor on its own storage.
    pub(super) fn fresh(&mut self, ty: &Meta, runs: &Runs) -> ReplayTensor {
        let mut cells = StorageCells::default();
        cells.write(&ty.layout, ty.dtype.size(), runs);
        self.budget = self.budget.saturating_sub(cells.work);
        cells.work = 0;
        ReplayTensor {
            cells: Rc::new(RefCell::new(cells)),
            dtype: ty.dtype,
            layout: ty.layout.clone(),
            bits: LazyBits::default(),
        }
    }

    pub(super) fn spend(&mut self, cells: &Rc<RefCell<StorageCells>>) -> ReplayResult<()> {
        let work = std::mem::take(&mut cells.borrow_mut().work);
        self.budget = self.budget.saturating_sub(work);
        if self.budget == 0 { skip("the program is too large to compare") } else { Ok(()) }
    }
}

/// The values with their last use at each node.
fn last_uses(graph: &Graph) -> BTreeMap<NodeId, Vec<ValueId>> {
    let mut last: BTreeMap<ValueId, NodeId> = BTreeMap::new();
    for (n, node) in graph.ordered() {
        last.extend(node.operands().map(|v| (v, n)));
    }
    for v in graph.output_values() {
        last.remove(&v);
    }
    let mut out: BTreeMap<NodeId, Vec<ValueId>> = BTreeMap::new();
    for (v, n) in last {
        out.entry(n).or_default().push(v);
    }
    out
}

fn slots(graph: &Graph, values: &BTreeMap<ValueId, ReplayValue>, arg: &Arg) -> ReplayResult<Arg<ReplayValue, Expr>> {
    let get = |v: &ValueId| {
        let missing = || ReplayStop::Fault(format!("%{} is used before it is made", graph.values[*v].name));
        values.get(v).cloned().ok_or_else(missing)
    };
    Ok(match arg.try_map(get, |e| Ok::<_, ReplayStop>(e.clone()))? {
        Arg::Value(ReplayValue::Number(e)) => Arg::Scalar(e),
        Arg::Value(ReplayValue::Other(text)) if text == "None" => Arg::None,
        other => other,
    })
}

pub(super) fn tensor(args: &ReplayArgs, i: usize) -> ReplayResult<&Rc<RefCell<ReplayTensor>>> {
    match args.get(i) {
        Some(Arg::Value(ReplayValue::Tensor(t))) => Ok(t),
        _ => Err(ReplayStop::Fault(format!("argument {i} is not a tensor"))),
    }
}

/// Arguments for declared rules.
pub(super) fn metas(args: &ReplayArgs) -> ReplayResult<Vec<Arg<Meta, Scalar>>> {
    let meta = |s: &ReplayValue| match s {
        ReplayValue::Tensor(t) => Ok(t.borrow().meta()),
        _ => skip("a number stands for a tensor"),
    };
    let number = |e: &Expr| e.constant().map_or_else(|| skip(format!("the number {e} is not known")), Ok);
    args.iter().map(|a| a.try_map(meta, number)).collect()
}

/// A single term, for a storage or a parameter.
pub(super) fn whole(names: &mut TermTable, key: TermKey, bytes: i64) -> Rc<RefCell<StorageCells>> {
    let term: TermId = names.term(key);
    Rc::new(RefCell::new(StorageCells::whole(term, bytes)))
}
