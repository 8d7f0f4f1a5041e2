//! Calls that write: the functional form's result, element by element into the target's cells.

use super::ReplayStop;
use super::cells::Runs;
use super::replay::{Replay, ReplayArgs, ReplayResult, ReplayTensor, ReplayValue, SMALL, metas, skip};
use restride_ir::{
    Arg, Args, DType, Expr, Layout, Meta, Op, OpError, TensorType, Twin, TwinReturn, Type, Visited, Visits,
    computed_aside, visits,
};
use restride_tensor::self_overlaps;
use std::cell::RefCell;
use std::rc::Rc;

impl Replay<'_> {
    /// A `_foreach_*` call: one call a member, in order.
    pub(super) fn members(
        &mut self,
        op: Op,
        member: Op,
        args: &ReplayArgs,
        key: u32,
    ) -> ReplayResult<Vec<ReplayValue>> {
        let count = args.iter().find_map(|a| if let Arg::Values(vs) = a { Some(vs.len()) } else { None }).unwrap_or(0);
        let mut results = Vec::new();
        // Lazily mapped tensors that are only read are copied before the first member runs.
        let written = |i: usize| op.schema().args.get(i).and_then(|a| a.alias.as_ref()).is_some_and(|a| a.write);
        let mut args = args.to_vec();
        for (_, arg) in args.iter_mut().enumerate().filter(|(i, _)| !written(*i)) {
            *arg = self.materialized(arg)?;
        }
        for i in 0..count {
            let item = |slot: &ReplayValue, i: usize| {
                let ReplayValue::Tensor(t) = slot else { return Err(OpError::new("a member of a number")) };
                let t = t.borrow();
                let layout = t.layout.select(0, &(i as i64))?;
                Ok(ReplayValue::new(ReplayTensor { layout, ..t.clone() }))
            };
            let one = op.member_args(&args, i, item)?;
            results.extend(self.call(member, one, None, key)?);
        }
        Ok(if op.schema().returns.is_empty() { Vec::new() } else { results })
    }

    /// A write: the functional twin's result, element by element into the target's cells.
    pub(super) fn mutate(
        &mut self,
        op: Op,
        twin: &Twin,
        args: &ReplayArgs,
        key: u32,
    ) -> ReplayResult<Vec<ReplayValue>> {
        let mut own: Vec<Arg<ReplayValue, Expr>> =
            twin.args.iter().map(|&i| args.get(i as usize).cloned().unwrap_or(Arg::None)).collect();
        twin.op.fill_defaults(&mut own)?;
        // Lazily mapped tensors are put aside, all at once; what is written there is copied back.
        if !twin.op.def().maps_bits {
            own = own.iter().map(|a| self.materialized(a)).collect::<ReplayResult<_>>()?;
        }
        let converted =
            |t: &Rc<RefCell<ReplayTensor>>| computed_aside(twin.op.def(), &t.borrow().meta(), &operands(&own, t));
        let aside = |t: &Rc<RefCell<ReplayTensor>>| {
            twin.copies_out() || !twin.op.def().maps_bits && (!t.borrow().bits.is_clear() || converted(t))
        };
        let mut targets = Vec::new();
        for &(arg, result) in &twin.writes {
            if let Some(Arg::Value(ReplayValue::Tensor(t))) = args.get(arg as usize) {
                targets.push((t.clone(), result as usize));
            }
        }
        let repeats = |t: &Rc<RefCell<ReplayTensor>>| self_overlaps(&t.borrow().layout) != Some(false);
        let mut results = Vec::new();
        let visits = match &targets[..] {
            [(target, 0)] if !aside(target) && twin.op.def().pointwise && !twin.op.def().random => {
                visits_of(&own, target)
            }
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
                    let Some(ReplayValue::Tensor(value)) = results.get(*result) else {
                        return Err(ReplayStop::Fault(format!("{} gives too few results", twin.op)));
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
                _ => Ok(ReplayValue::Other("None".into())),
            },
            TwinReturn::Result(i) => results
                .get(i as usize)
                .cloned()
                .ok_or_else(|| ReplayStop::Fault(format!("{} gives too few results", twin.op))),
        };
        twin.returns.iter().map(returned).collect()
    }

    /// Types of a twin's results: what its rule says, or the targets' where it has none.
    fn twin_types(
        &self,
        twin: &Twin,
        own: &ReplayArgs,
        targets: &[(Rc<RefCell<ReplayTensor>>, usize)],
    ) -> ReplayResult<Vec<Type>> {
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
    fn store(&mut self, value: &ReplayTensor, target: &ReplayTensor) -> ReplayResult<()> {
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

    pub(super) fn cast(&mut self, from: DType, sizes: &[i64], runs: &Runs, to: DType) -> ReplayResult<Runs> {
        let value = self.fresh(&Meta::contiguous(from, sizes), runs);
        let mut args = vec![Arg::Value(ReplayValue::new(value)), Arg::DType(to)];
        self.known.cast.fill_defaults(&mut args)?;
        let ty = Meta::contiguous(to, sizes);
        self.compute(self.known.cast, &args, &[Some(ty)], 0).map(|mut r| r.remove(0))
    }

    /// A scalar loop over the indices, in PyTorch's order, of a target that has several elements in one cell, or some that are
    /// read after they are written.
    fn cell_by_cell(
        &mut self,
        op: Op,
        own: &ReplayArgs,
        target: &Rc<RefCell<ReplayTensor>>,
        visits: &Visits,
        key: u32,
    ) -> ReplayResult<()> {
        let t = target.borrow().clone();
        if t.layout.numel() > SMALL || !t.bits.is_clear() {
            return skip(format!("{op} writes a tensor with several elements in one cell"));
        }
        let sizes = t.layout.sizes.clone();
        let dtype = match op.def().infer {
            Some(rule) => {
                let dense = |s: &ReplayValue| match s {
                    ReplayValue::Tensor(o) if Rc::ptr_eq(o, target) => {
                        ReplayValue::new(ReplayTensor { layout: Layout::contiguous(&sizes), ..o.borrow().clone() })
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
            let one = |slot: &ReplayValue| -> ReplayResult<ReplayValue> {
                let ReplayValue::Tensor(o) = slot else { return Ok(slot.clone()) };
                let o = o.borrow();
                let mut l = o.layout.expand(&sizes).map_err(OpError::from)?;
                l.offset = l.cell(&index);
                Ok(ReplayValue::new(ReplayTensor {
                    layout: Layout { offset: l.offset, ..Layout::contiguous(&[]) },
                    ..o.clone()
                }))
            };
            let args = own.iter().map(|a| a.try_map(one, |e| Ok(e.clone()))).collect::<ReplayResult<Vec<_>>>()?;
            let ty = Meta::contiguous(dtype, &[]);
            let mut made = if op == self.known.copy {
                self.pure(op, &args, Some(&[Type::Tensor(TensorType::contiguous(dtype, &[]))]), key)?
            } else {
                let runs = self.compute(op, &args, &[Some(ty.clone())], key)?.remove(0);
                vec![ReplayValue::new(self.fresh(&ty, &runs))]
            };
            let ReplayValue::Tensor(value) = made.remove(0) else { return skip("a number is written") };
            let place = ReplayTensor { layout: Layout { offset: cell, ..Layout::contiguous(&[]) }, ..t.clone() };
            let value = value.borrow().clone();
            self.store(&value, &place)?;
        }
        Ok(())
    }
}

/// In what order a pointwise write visits its target.
fn visits_of(own: &ReplayArgs, target: &Rc<RefCell<ReplayTensor>>) -> restride_ir::Result<Option<Visits>> {
    visits(&target.borrow().meta(), &operands(own, target))
}

/// The operands of a write as they lie beside its target.
fn operands(own: &ReplayArgs, target: &Rc<RefCell<ReplayTensor>>) -> Vec<Visited> {
    let t = target.borrow();
    let tensors = own.iter().flat_map(Arg::values).filter_map(|s| match s {
        ReplayValue::Tensor(o) => Some(o.borrow()),
        _ => None,
    });
    tensors.map(|o| Visited { ty: o.meta(), shares: Rc::ptr_eq(&o.cells, &t.cells) }).collect()
}
