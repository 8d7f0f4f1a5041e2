//! Runs a program on names instead of numbers: true storages, aliases and writes.

use super::cells::{Cells, Run, Runs};
use super::names::{Byte, ContentId, Given, Key, Names, Term};
use super::{Known, Stop};
use restride_ir::{
    Arg, Args, DType, Expr, Graph, GraphId, Layout, LazyBits, Meta, Movement, Node, NodeId, Op, OpError, Program,
    Scalar, TensorType, Twin, TwinReturn, Type, ValueId, ViewOutcome, Visited, Visits, visits,
};
use restride_tensor::self_overlaps;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) type Step<T> = Result<T, Stop>;

/// Results of up to this many elements of an operator that works element by element are named one by one, so that a part
/// of a call is the call of a part.
const SMALL: i64 = 256;

/// A tensor object.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) cells: Rc<RefCell<Cells>>,
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    pub(super) bits: LazyBits,
}

impl Tensor {
    fn meta(&self) -> Meta {
        TensorType::new(self.dtype, self.layout.clone())
    }
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    Tensor(Rc<RefCell<Tensor>>),
    Number(Expr),
    Other(String),
}

impl Slot {
    pub(super) fn new(t: Tensor) -> Slot {
        Slot::Tensor(Rc::new(RefCell::new(t)))
    }
}

pub(super) type CallArgs = [Arg<Slot, Expr>];

/// A run of one program.
pub(super) struct Replay<'a> {
    pub(super) program: &'a Program,
    pub(super) names: &'a mut Names,
    pub(super) known: &'a Known,
    /// Numbers learned from data, by symbol.
    pub(super) learned: BTreeMap<String, Byte>,
    /// Bodies of higher-order calls that are being run.
    pub(super) depth: usize,
    /// Storages that may be one with another, as a branch was taken or not.
    pub(super) uncertain: Vec<Rc<RefCell<Cells>>>,
    /// Work left before the judge gives up.
    pub(super) budget: u64,
}

/// Refuses to judge, with the reason.
pub(super) fn skip<T>(why: impl Into<String>) -> Step<T> {
    Err(Stop::NotJudged(why.into()))
}

impl From<OpError> for Stop {
    fn from(e: OpError) -> Stop {
        Stop::Fault(e.0)
    }
}

impl Replay<'_> {
    /// Runs a graph on its inputs.
    pub(super) fn graph(&mut self, id: GraphId, inputs: &[Slot]) -> Step<Vec<Arg<Slot, Expr>>> {
        let graph = &self.program.graphs[id];
        if graph.inputs.len() != inputs.len() {
            return Err(Stop::Fault(format!("a graph of {} inputs is given {}", graph.inputs.len(), inputs.len())));
        }
        let mut values: BTreeMap<ValueId, Slot> = graph.inputs.iter().copied().zip(inputs.iter().cloned()).collect();
        let last = last_uses(graph);
        for (n, node) in graph.ordered() {
            let args = node.args.iter().map(|a| slots(graph, &values, a)).collect::<Step<Vec<_>>>()?;
            // What is used here for the last time is the call's alone.
            for v in last.get(&n).map_or(&[] as &[_], Vec::as_slice) {
                values.remove(v);
            }
            let results = self.node(graph, node, args).map_err(|stop| stop.at(id, n))?;
            if results.len() != node.results.len() {
                let what = format!("{} gives {} results, not {}", node.op, results.len(), node.results.len());
                return Err(Stop::Fault(what).at(id, n));
            }
            values.extend(node.results.iter().copied().zip(results));
        }
        graph.outputs.iter().map(|a| slots(graph, &values, a)).collect()
    }

    fn node(&mut self, graph: &Graph, node: &Node, args: Vec<Arg<Slot, Expr>>) -> Step<Vec<Slot>> {
        if node.op.def().hop.is_some() {
            return self.higher(graph, node, &args);
        }
        let types: Vec<Type> = node.results.iter().map(|r| graph.values[*r].ty.clone()).collect();
        self.call(node.op, args, Some(&types), node.origin.key)
    }

    /// One call; `types` are the declared types of its results, where there are such.
    fn call(&mut self, op: Op, args: Vec<Arg<Slot, Expr>>, types: Option<&[Type]>, key: u32) -> Step<Vec<Slot>> {
        let def = op.def();
        let mut args = args;
        op.fill_defaults(&mut args)?;
        let mutates = op.mutates(&args);
        if let (Some(member), true) = (op.member(), mutates) {
            return self.members(op, member, &args, key);
        }
        if def.metadata {
            return self.metadata(op, &args);
        }
        if mutates {
            let Some(twin) = op.twin() else { return skip(format!("{op} writes in a way that is not declared")) };
            return self.mutate(op, twin, &args, key);
        }
        if let Some(rule) = def.view {
            match rule.of(&metas(&args)?)? {
                ViewOutcome::Views(views) => {
                    let base = tensor(&args, def.base as usize)?.borrow().clone();
                    return self.views(op, base, &views);
                }
                ViewOutcome::Copy => {}
                ViewOutcome::Unknown => return skip(format!("whether {op} copies is not known")),
            }
        }
        self.pure(op, &args, types, key)
    }

    fn views(&mut self, op: Op, base: Tensor, views: &[Meta]) -> Step<Vec<Slot>> {
        let base = if op.def().strided && self.program.stage == restride_ir::Stage::Functional {
            // A functional value has its own elements alone, laid as declared.
            let runs = self.read(&base)?;
            self.fresh(&base.meta(), &runs)
        } else {
            base
        };
        let mut out = Vec::with_capacity(views.len());
        for v in views {
            let bits = base.bits.of_view(op, &base.meta(), v).map_err(|e| Stop::Fault(e.to_string()))?;
            out.push(Slot::new(match bits {
                Some(bits) => Tensor { cells: base.cells.clone(), dtype: v.dtype, layout: v.layout.clone(), bits },
                None => {
                    let runs = self.read(&base)?;
                    self.fresh(v, &runs)
                }
            }));
        }
        Ok(out)
    }

    /// `t_`, `as_strided_`, `set_`: the object becomes another view.
    fn metadata(&mut self, op: Op, args: &CallArgs) -> Step<Vec<Slot>> {
        let def = op.def();
        let target = tensor(args, 0)?.clone();
        let base = tensor(args, def.base as usize)?.borrow().clone();
        let Some(rule) = def.view else { return skip(format!("{op} has no view rule")) };
        let ViewOutcome::Views(views) = rule.of(&metas(args)?)? else {
            return skip(format!("{op} may need more memory than the tensor has"));
        };
        let made = self.views(op, base, &views)?;
        let [Slot::Tensor(made)] = &made[..] else { return Err(Stop::Fault(format!("{op} gives no view"))) };
        let mut made = made.borrow().clone();
        if def.base != 0 {
            // Memory is taken over; the lazy bits are the object's own.
            made.bits = target.borrow().bits;
        }
        *target.borrow_mut() = made;
        Ok(vec![Slot::Tensor(target)])
    }

    /// A `_foreach_*` call: one call a member, in order.
    fn members(&mut self, op: Op, member: Op, args: &CallArgs, key: u32) -> Step<Vec<Slot>> {
        let count = args.iter().find_map(|a| if let Arg::Values(vs) = a { Some(vs.len()) } else { None }).unwrap_or(0);
        let mut results = Vec::new();
        for i in 0..count {
            let item = |slot: &Slot, i: usize| {
                let Slot::Tensor(t) = slot else { return Err(OpError::new("a member of a number")) };
                let t = t.borrow();
                let layout = t.layout.select(0, &(i as i64))?;
                Ok(Slot::new(Tensor { layout, ..t.clone() }))
            };
            let one = op.member_args(args, i, item)?;
            results.extend(self.call(member, one, None, key)?);
        }
        Ok(if op.schema().returns.is_empty() { Vec::new() } else { results })
    }

    /// A write: the functional twin's result, element by element into the target's cells.
    fn mutate(&mut self, op: Op, twin: &Twin, args: &CallArgs, key: u32) -> Step<Vec<Slot>> {
        let mut own: Vec<Arg<Slot, Expr>> =
            twin.args.iter().map(|&i| args.get(i as usize).cloned().unwrap_or(Arg::None)).collect();
        twin.op.fill_defaults(&mut own)?;
        let mut targets = Vec::new();
        for &(arg, result) in &twin.writes {
            if let Some(Arg::Value(Slot::Tensor(t))) = args.get(arg as usize) {
                targets.push((t.clone(), result as usize));
            }
        }
        let repeats = |t: &Rc<RefCell<Tensor>>| self_overlaps(&t.borrow().layout) != Some(false);
        let mut results = Vec::new();
        let visits = match &targets[..] {
            [(target, 0)] if twin.op.def().pointwise && !twin.op.def().random => visits_of(&own, target),
            _ => Ok(None),
        };
        let Ok(visits) = visits else {
            return skip(format!("{op} writes in an order that is not known"));
        };
        match (&targets[..], &visits) {
            ([(target, _)], Some(visits)) => self.cell_by_cell(twin.op, &own, target, visits, key)?,
            (many, None) if many.iter().any(|t| repeats(&t.0)) => {
                return skip(format!("{op} writes a tensor with several elements in one cell"));
            }
            _ => {
                let declared = self.twin_types(twin, &own, &targets)?;
                results = self.call(twin.op, own, Some(&declared), key)?;
                for (target, result) in &targets {
                    let Some(Slot::Tensor(value)) = results.get(*result) else {
                        return Err(Stop::Fault(format!("{} gives too few results", twin.op)));
                    };
                    let value = value.borrow().clone();
                    if value.layout.sizes != target.borrow().layout.sizes {
                        if !twin.resizes {
                            return skip(format!("{op} writes a result of other sizes"));
                        }
                        let offset = target.borrow().layout.offset;
                        target.borrow_mut().layout = Layout { offset, ..value.layout.clone() };
                    }
                    self.store(&value, &target.borrow().clone())?;
                }
            }
        }
        let returned = |r: &TwinReturn| match *r {
            TwinReturn::Arg(i) => match args.get(i as usize) {
                Some(Arg::Value(slot)) => Ok(slot.clone()),
                _ => Ok(Slot::Other("None".into())),
            },
            TwinReturn::Result(i) => results
                .get(i as usize)
                .cloned()
                .ok_or_else(|| Stop::Fault(format!("{} gives too few results", twin.op))),
        };
        twin.returns.iter().map(returned).collect()
    }

    /// Types of a twin's results: what its rule says, or the targets' where it has none.
    fn twin_types(&self, twin: &Twin, own: &CallArgs, targets: &[(Rc<RefCell<Tensor>>, usize)]) -> Step<Vec<Type>> {
        let symbolic = |m: Meta| Type::Tensor(TensorType::new(m.dtype, m.layout.map(|d| Expr::Int(*d))));
        if let Some(rule) = twin.op.def().infer
            && let Ok(metas) = metas(own)
        {
            return Ok(rule(&Args(&metas))?.into_iter().map(symbolic).collect());
        }
        let count = twin.op.schema().returns.len();
        let of = |r: usize| targets.iter().find(|t| t.1 == r).map(|t| symbolic(t.0.borrow().meta()));
        (0..count).map(|r| of(r).map_or_else(|| skip(format!("{} has no shape rule", twin.op)), Ok)).collect()
    }

    /// Puts a tensor's elements where another shows its own, converted and mapped as it asks.
    fn store(&mut self, value: &Tensor, target: &Tensor) -> Step<()> {
        let mut runs = self.read(value)?;
        if value.dtype != target.dtype {
            runs = self.cast(value.dtype, &value.layout.sizes, &runs, target.dtype)?;
        }
        runs = self.mapped(target, runs)?;
        if self.uncertain.iter().any(|c| Rc::ptr_eq(c, &target.cells)) {
            return skip("memory is written that a branch may have returned");
        }
        target.cells.borrow_mut().write(&target.layout, target.dtype.size(), &runs);
        self.spend(&target.cells)
    }

    fn cast(&mut self, from: DType, sizes: &[i64], runs: &Runs, to: DType) -> Step<Runs> {
        let value = self.fresh(&Meta::contiguous(from, sizes), runs);
        let mut args = vec![Arg::Value(Slot::new(value)), Arg::DType(to)];
        self.known.cast.fill_defaults(&mut args)?;
        let ty = Meta::contiguous(to, sizes);
        self.compute(self.known.cast, &args, &[Some(ty)], 0).map(|mut r| r.remove(0))
    }

    /// A scalar loop over the indices, in PyTorch's order, of a target that has several elements in one cell, or some that are
    /// read after they are written.
    fn cell_by_cell(
        &mut self,
        op: Op,
        own: &CallArgs,
        target: &Rc<RefCell<Tensor>>,
        visits: &Visits,
        key: u32,
    ) -> Step<()> {
        let t = target.borrow().clone();
        if t.layout.numel() > SMALL || !t.bits.is_clear() {
            return skip(format!("{op} writes a tensor with several elements in one cell"));
        }
        let sizes = t.layout.sizes.clone();
        let dtype = match op.def().infer {
            Some(rule) => {
                let dense = |s: &Slot| match s {
                    Slot::Tensor(o) if Rc::ptr_eq(o, target) => {
                        Slot::new(Tensor { layout: Layout::contiguous(&sizes), ..o.borrow().clone() })
                    }
                    other => other.clone(),
                };
                let own: Vec<_> = own.iter().map(|a| a.map_values(dense)).collect();
                rule(&Args(&metas(&own)?))?.first().map_or(t.dtype, |m| m.dtype)
            }
            None => t.dtype,
        };
        for i in 0..t.layout.numel() {
            let (mut index, mut left) = (vec![0; sizes.len()], i);
            for &d in visits.order.iter().rev() {
                index[d] = left % sizes[d];
                left /= sizes[d];
            }
            let cell = t.layout.cell(&index);
            let one = |slot: &Slot| -> Step<Slot> {
                let Slot::Tensor(o) = slot else { return Ok(slot.clone()) };
                let o = o.borrow();
                let mut l = o.layout.expand(&sizes).map_err(OpError::from)?;
                l.offset = l.cell(&index);
                Ok(Slot::new(Tensor { layout: Layout { offset: l.offset, ..Layout::contiguous(&[]) }, ..o.clone() }))
            };
            let args = own.iter().map(|a| a.try_map(one, |e| Ok(e.clone()))).collect::<Step<Vec<_>>>()?;
            let ty = Meta::contiguous(dtype, &[]);
            let mut made = if op == self.known.copy {
                self.pure(op, &args, Some(&[Type::Tensor(TensorType::contiguous(dtype, &[]))]), key)?
            } else {
                let runs = self.compute(op, &args, &[Some(ty.clone())], key)?.remove(0);
                vec![Slot::new(self.fresh(&ty, &runs))]
            };
            let Slot::Tensor(value) = made.remove(0) else { return skip("a number is written") };
            let place = Tensor { layout: Layout { offset: cell, ..Layout::contiguous(&[]) }, ..t.clone() };
            let value = value.borrow().clone();
            self.store(&value, &place)?;
        }
        Ok(())
    }

    /// A call that only reads: moved elements keep their names, others get the call's.
    fn pure(&mut self, op: Op, args: &CallArgs, types: Option<&[Type]>, key: u32) -> Step<Vec<Slot>> {
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
            return Ok(vec![Slot::new(self.fresh(meta, &runs))]);
        }
        if op.def().movement.is_some_and(|m| matches!(m, Movement::View(_))) {
            return self.copied_views(op, args, &metas);
        }
        let made = self.compute(op, args, &metas, key)?;
        let mut out = Vec::with_capacity(types.len());
        for ((ty, meta), runs) in types.iter().zip(&metas).zip(made) {
            out.push(match (ty, meta) {
                (_, Some(meta)) => Slot::new(self.fresh(meta, &runs)),
                (Type::Scalar(e), _) => {
                    if let (Expr::Sym(s), Some(name)) = (e, runs.at(0)) {
                        self.learned.insert(s.name().to_string(), name);
                    }
                    Slot::Number(e.clone())
                }
                (other, _) => Slot::Other(format!("{other:?}")),
            });
        }
        Ok(out)
    }

    /// Copies of views of argument 0 (`permute_copy`).
    fn copied_views(&mut self, op: Op, args: &CallArgs, types: &[Option<Meta>]) -> Step<Vec<Slot>> {
        let Some(Movement::View(rule)) = op.def().movement else { return skip("no view") };
        let base = tensor(args, 0)?.borrow().clone();
        let ViewOutcome::Views(views) = rule.of(&metas(args)?)? else { return skip(format!("{op} is no view")) };
        let views = self.views(op, base, &views)?;
        let mut out = Vec::with_capacity(views.len());
        for (view, ty) in views.iter().zip(types) {
            let (Slot::Tensor(view), Some(ty)) = (view, ty) else { return skip(format!("{op} gives a number")) };
            let view = view.borrow().clone();
            let runs = self.read(&view)?;
            out.push(Slot::new(self.fresh(ty, &runs)));
        }
        Ok(out)
    }

    /// The elements of the one result of an operator that only moves them.
    fn moved(&mut self, op: Op, args: &CallArgs, to: &Meta) -> Step<Option<Runs>> {
        let element = to.dtype.size();
        let first = || tensor(args, 0).map(|t| t.borrow().clone());
        if op == self.known.copy {
            let (target, src) = (first()?, tensor(args, 1)?.borrow().clone());
            let layout = src.layout.expand(&target.layout.sizes).map_err(OpError::from)?;
            let src = Tensor { layout, ..src };
            let runs = self.read(&src)?;
            return if src.dtype == to.dtype {
                Ok(Some(runs))
            } else {
                self.cast(src.dtype, &to.layout.sizes, &runs, to.dtype).map(Some)
            };
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
                // On cells like the base's own, of which only the base's elements count in the end.
                let whole = self.read(&base)?;
                let mut cells = Cells::default();
                cells.write(&base.layout, element, &whole);
                cells.write(&region.layout, element, &value);
                let cells = Rc::new(RefCell::new(cells));
                let made = Tensor { cells, bits: LazyBits::default(), ..base };
                Ok(Some(self.read(&made)?))
            }
            Some(Movement::Assemble(pieces)) => {
                let operands: Vec<Tensor> = args
                    .iter()
                    .flat_map(Arg::values)
                    .filter_map(|s| if let Slot::Tensor(t) = s { Some(t.borrow().clone()) } else { None })
                    .collect();
                let layout = Layout::contiguous(&to.layout.sizes);
                let mut cells = Cells::default();
                for piece in pieces(&Args(&metas(args)?), &layout)? {
                    let Some(t) = operands.get(piece.operand) else { return Ok(None) };
                    if t.dtype != to.dtype {
                        return Ok(None);
                    }
                    let runs = self.read(t)?;
                    cells.write(&piece.region, element, &runs);
                }
                let made =
                    Tensor { cells: Rc::new(RefCell::new(cells)), dtype: to.dtype, layout, bits: LazyBits::default() };
                Ok(Some(self.read(&made)?))
            }
        }
    }

    /// Names for the results of a call; `None` among the types is a number.
    pub(super) fn compute(&mut self, op: Op, args: &CallArgs, types: &[Option<Meta>], key: u32) -> Step<Vec<Runs>> {
        if let ([Arg::Value(Slot::Tensor(t)), ..], [Some(_)]) = (args, types) {
            let t = t.borrow().clone();
            if op == self.known.conj && t.dtype.is_complex() {
                return Ok(vec![self.conjugate(&t)?]);
            }
            // What is negated twice is itself.
            if op == self.known.neg {
                let runs = self.read(&t)?;
                if let Some(before) = self.names.undone(op.name(), &runs) {
                    return Ok(vec![before]);
                }
            }
        }
        let draw = op.def().random.then_some(key);
        if let ([Some(ty)], true, None) = (types, op.def().pointwise, draw)
            && ty.layout.numel() <= SMALL
            && args.iter().all(|a| !matches!(a, Arg::Values(_)))
        {
            return Ok(vec![self.elements(op, args, ty)?]);
        }
        let strided = op.def().strided;
        let mut given = Vec::with_capacity(args.len());
        for a in args {
            given.push(self.given(a, strided)?);
        }
        let mut out = Vec::with_capacity(types.len());
        for (result, ty) in types.iter().enumerate() {
            let term = self.names.term(Key::Call { op: op.name(), args: given.clone(), result, draw });
            let (step, len) = ty.as_ref().map_or((8, 1), |t| (t.dtype.size() as i64, t.layout.numel()));
            let mut runs = Runs::default();
            runs.push(Run { term, first: 0, step, len });
            out.push(runs);
        }
        Ok(out)
    }

    /// Complex conjugates: the real parts as they are, and the imaginary ones negated, so that parts are known by name.
    fn conjugate(&mut self, t: &Tensor) -> Step<Runs> {
        let runs = self.read(t)?;
        let whole = self.fresh(&Meta::contiguous(t.dtype, &t.layout.sizes), &runs);
        let mut imaginary = Tensor { dtype: t.dtype.real(), ..whole.clone() };
        imaginary.layout.strides.iter_mut().for_each(|s| *s *= 2);
        imaginary.layout.offset = 1;
        let ty = Meta::contiguous(imaginary.dtype, &t.layout.sizes);
        let negated = self.compute(self.known.neg, &[Arg::Value(Slot::new(imaginary.clone()))], &[Some(ty)], 0)?;
        imaginary.cells.borrow_mut().write(&imaginary.layout, imaginary.dtype.size(), &negated[0]);
        self.read(&whole)
    }

    /// Element by element: each is named by the elements that it is computed of.
    fn elements(&mut self, op: Op, args: &CallArgs, ty: &Meta) -> Step<Runs> {
        let sizes = &ty.layout.sizes;
        let mut columns = Vec::with_capacity(args.len());
        for a in args {
            columns.push(match a {
                Arg::Value(Slot::Tensor(t)) => {
                    let t = t.borrow().clone();
                    let Ok(layout) = t.layout.expand(sizes) else {
                        return skip(format!("an operand of {op} does not broadcast to its result"));
                    };
                    Err((t.dtype, self.read(&Tensor { layout, ..t })?))
                }
                other => Ok(self.given(other, false)?),
            });
        }
        let result = Given::Other(ty.dtype.name().to_string());
        let mut out = Runs::default();
        for i in 0..ty.layout.numel() {
            let mut given = Vec::with_capacity(columns.len() + 1);
            for c in &columns {
                given.push(match c {
                    Ok(g) => g.clone(),
                    Err((dtype, runs)) => match runs.at(i) {
                        Some(name) => Given::Element(*dtype, name),
                        None => return Err(Stop::Fault(format!("an operand of {op} has too few elements"))),
                    },
                });
            }
            given.push(result.clone());
            out.one((self.names.term(Key::Call { op: op.name(), args: given, result: 0, draw: None }), 0));
        }
        Ok(out)
    }

    /// An argument as part of a name.
    pub(super) fn given(&mut self, arg: &Arg<Slot, Expr>, strided: bool) -> Step<Given> {
        Ok(match arg {
            Arg::Value(slot) => self.given_slot(slot, strided)?,
            Arg::Values(slots) => {
                let one = |s: &Option<Slot>| match s {
                    Some(slot) => self.given_slot(slot, strided),
                    None => Ok(Given::Other("None".into())),
                };
                Given::List(slots.iter().map(one).collect::<Step<_>>()?)
            }
            Arg::Scalar(e) => self.number(e)?,
            Arg::Scalars(es) => Given::List(es.iter().map(|e| self.number(e)).collect::<Step<_>>()?),
            Arg::Graph(_) => return skip("a graph is an argument of a call"),
            other => {
                let plain: Arg<(), ()> = other.try_map(|_| Ok::<_, Stop>(()), |_| Ok(()))?;
                Given::Other(format!("{plain:?}"))
            }
        })
    }

    fn given_slot(&mut self, slot: &Slot, strided: bool) -> Step<Given> {
        Ok(match slot {
            Slot::Tensor(t) => {
                let t = t.borrow().clone();
                let content = self.content(&t)?;
                let strides = strided.then(|| t.layout.strides.to_vec());
                Given::Tensor(t.dtype, t.layout.sizes.to_vec(), content, strides)
            }
            Slot::Number(e) => self.number(e)?,
            Slot::Other(text) => Given::Other(text.clone()),
        })
    }

    fn number(&self, e: &Expr) -> Step<Given> {
        Ok(match e.constant() {
            Some(Scalar::Int(i)) => Given::Number(0, i as u64),
            Some(Scalar::Bool(b)) => Given::Number(1, b as u64),
            Some(other) => Given::Number(2, other.as_f64().to_bits()),
            None => {
                let mut symbols = Default::default();
                e.symbols(&mut symbols);
                let mut names = Vec::new();
                let mut text = e.to_string();
                for (i, s) in symbols.iter().enumerate() {
                    let Some(name) = self.learned.get(s.name()) else {
                        return skip(format!("the number {e} is not known"));
                    };
                    text = text.replace(s.name(), &format!("#{i}"));
                    names.push(*name);
                }
                Given::Learned(text, names)
            }
        })
    }

    pub(super) fn content(&mut self, t: &Tensor) -> Step<ContentId> {
        let runs = self.read(t)?;
        Ok(self.names.content(t.dtype.size(), &runs))
    }

    /// What a tensor shows.
    pub(super) fn read(&mut self, t: &Tensor) -> Step<Runs> {
        let runs = t.cells.borrow_mut().read(self.names, &t.layout, t.dtype.size());
        self.spend(&t.cells)?;
        let Some(runs) = runs else { return skip("memory is read that nothing was put in") };
        self.mapped(t, runs)
    }

    /// Elements through a tensor's lazy bits, either way.
    fn mapped(&mut self, t: &Tensor, runs: Runs) -> Step<Runs> {
        let mut runs = runs;
        let ty = Meta::contiguous(t.dtype, &t.layout.sizes);
        for op in
            [(t.bits.conj && t.dtype.is_complex()).then_some(self.known.conj), t.bits.neg.then_some(self.known.neg)]
                .into_iter()
                .flatten()
        {
            // Twice is not at all.
            if let Some(before) = self.undone(op, &runs) {
                runs = before;
                continue;
            }
            let value = self.fresh(&ty, &runs);
            runs = self.compute(op, &[Arg::Value(Slot::new(value))], &[Some(ty.clone())], 0)?.remove(0);
        }
        Ok(runs)
    }

    /// What the elements were before an operator was applied to each of them, if it was.
    fn undone(&self, op: Op, runs: &Runs) -> Option<Runs> {
        let mut out = Runs::default();
        for run in &runs.0 {
            for i in 0..run.len {
                out.one(self.names.applied_to(op.name(), run.at(i))?);
            }
        }
        (!out.0.is_empty()).then_some(out)
    }

    /// A tensor on memory of its own.
    pub(super) fn fresh(&mut self, ty: &Meta, runs: &Runs) -> Tensor {
        let mut cells = Cells::default();
        cells.write(&ty.layout, ty.dtype.size(), runs);
        self.budget = self.budget.saturating_sub(cells.work);
        cells.work = 0;
        Tensor {
            cells: Rc::new(RefCell::new(cells)),
            dtype: ty.dtype,
            layout: ty.layout.clone(),
            bits: LazyBits::default(),
        }
    }

    fn spend(&mut self, cells: &Rc<RefCell<Cells>>) -> Step<()> {
        let work = std::mem::take(&mut cells.borrow_mut().work);
        self.budget = self.budget.saturating_sub(work);
        if self.budget == 0 { skip("the program is too large for this judge") } else { Ok(()) }
    }
}

/// The values last used at each node.
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

fn slots(graph: &Graph, values: &BTreeMap<ValueId, Slot>, arg: &Arg) -> Step<Arg<Slot, Expr>> {
    let get = |v: &ValueId| {
        let missing = || Stop::Fault(format!("%{} is used before it is made", graph.values[*v].name));
        values.get(v).cloned().ok_or_else(missing)
    };
    Ok(match arg.try_map(get, |e| Ok::<_, Stop>(e.clone()))? {
        Arg::Value(Slot::Number(e)) => Arg::Scalar(e),
        Arg::Value(Slot::Other(text)) if text == "None" => Arg::None,
        other => other,
    })
}

pub(super) fn tensor(args: &CallArgs, i: usize) -> Step<&Rc<RefCell<Tensor>>> {
    match args.get(i) {
        Some(Arg::Value(Slot::Tensor(t))) => Ok(t),
        _ => Err(Stop::Fault(format!("argument {i} is not a tensor"))),
    }
}

/// The arguments as rules read them.
fn metas(args: &CallArgs) -> Step<Vec<Arg<Meta, Scalar>>> {
    let meta = |s: &Slot| match s {
        Slot::Tensor(t) => Ok(t.borrow().meta()),
        _ => skip("a number stands for a tensor"),
    };
    let number = |e: &Expr| e.constant().map_or_else(|| skip(format!("the number {e} is not known")), Ok);
    args.iter().map(|a| a.try_map(meta, number)).collect()
}

/// A term alone, for a storage or a parameter.
pub(super) fn whole(names: &mut Names, key: Key, bytes: i64) -> Rc<RefCell<Cells>> {
    let term: Term = names.term(key);
    Rc::new(RefCell::new(Cells::whole(term, bytes)))
}

/// In what order a pointwise write visits its target.
fn visits_of(own: &CallArgs, target: &Rc<RefCell<Tensor>>) -> restride_ir::Result<Option<Visits>> {
    let t = target.borrow();
    let tensors = own.iter().flat_map(Arg::values).filter_map(|s| match s {
        Slot::Tensor(o) => Some(o.borrow()),
        _ => None,
    });
    let operands: Vec<Visited> =
        tensors.map(|o| Visited { ty: o.meta(), shares: Rc::ptr_eq(&o.cells, &t.cells) }).collect();
    visits(&t.meta(), &operands)
}
