//! Mutating calls: the functional twin computes into fresh memory, and the result is written through the target.

use super::call::{CallArgs, grow, infer, materialized, resolved};
use super::frame::refused;
use super::{Interp, Object, RunOptions, Slot, alone};
use crate::copy::{contiguous_copy, copy_into};
use restride_ir::{
    Arg, Args, Error, Kernel, LazyBits, Op, OpError, OperandMemory, OutSize, Result, ReuseKind, RngKey, Scalar,
    TensorType, Twin, TwinReturn, Visited, Visits, computed_aside, refuse_cast, refuse_overlap, visits,
};
use restride_tensor::{Layout, RawTensor, self_overlaps};
use std::rc::Rc;

impl Interp<'_> {
    /// Runs a mutating call.
    pub(super) fn mutate(&mut self, op: Op, twin: &Twin, args: &CallArgs, key: RngKey) -> Result<Vec<Slot>> {
        // A written argument that is `None` (running statistics) takes no new content.
        let mut targets: Vec<(usize, usize, Object)> = Vec::new();
        for &(arg, result) in &twin.writes {
            match args.get(arg as usize) {
                Some(Arg::Value(Slot::Tensor(t))) => targets.push((arg as usize, result as usize, t.clone())),
                Some(Arg::None) => {}
                _ => return Err(Error::unsupported(format!("{op} writes argument {arg}, which is no tensor"))),
            }
        }
        let given = || twin.args.iter().map(|&i| args.get(i as usize).cloned().unwrap_or(Arg::None));
        let own: Vec<Arg<Slot, Scalar>> = match twin.op.def().maps_bits {
            true => given().collect(),
            false => given().map(|a| materialized(&a)).collect::<Result<_>>()?,
        };
        check_overlap(twin, args)?;
        // Lazily mapped targets, and those computed in another type, are put aside as copies and copied back.
        let aside = |t: &Object| put_aside(twin, &own, t);
        // An `out=` that is resized becomes a tensor without a cell twice first.
        let resized = |(arg, result, _): &(usize, usize, Object)| {
            matches!(out_size(twin, args, *arg as u8, *result as u8), OutSize::Resized(_))
        };
        let repeats = |to: &(usize, usize, Object)| {
            self_overlaps(to.2.borrow().layout()) != Some(false) && !resized(to) && !aside(&to.2)
        };
        let visits = match targets.as_slice() {
            [(_, 0, target)] => visits_for(twin, &own, target)?,
            _ => None,
        };
        let results = match (targets.as_slice(), &visits) {
            ([to], Some(visits)) if !resized(to) => self.loop_over_cells(twin, &own, &to.2, visits, key)?,
            ([to @ (arg, result, target)], _) if repeats(to) => {
                self.mutate_cells(twin, &own, *arg, *result, target, key)?
            }
            (many, _) if many.iter().any(repeats) => {
                return Err(Error::unsupported(format!("{op} into a tensor with several elements in one cell"))
                    .help("clone the tensor before writing it"));
            }
            _ => {
                let results = self.call(twin.op, &own, key)?;
                for (arg, result, target) in &targets {
                    let value = results.get(*result).and_then(Slot::tensor);
                    let value = value.ok_or_else(|| Error::invalid(format!("{} gives too few results", twin.op)))?;
                    // A lazily mapped target is read and computed as copies: its own sizes count nowhere.
                    let read = reads_target(twin, args, target);
                    let at = target.borrow().layout().clone();
                    if aside(target) && at.sizes == value.layout().sizes && self_overlaps(&at) != Some(false) {
                        check_store(&value, &target.borrow()).map_err(|e| detail(e, op, *arg))?;
                        self.copy_back(target, value, key)?;
                        continue;
                    }
                    store(&value, target, twin.resizes && !read).map_err(|e| detail(e, op, *arg))?;
                }
                results
            }
        };
        twin.returns
            .iter()
            .map(|r| match *r {
                TwinReturn::Arg(i) => match args.get(i as usize) {
                    Some(Arg::Value(slot)) => Ok(slot.clone()),
                    _ => Ok(Slot::None),
                },
                TwinReturn::Result(i) => {
                    let slot = results.get(i as usize).cloned();
                    slot.ok_or_else(|| Error::invalid(format!("{} gives too few results", twin.op)))
                }
            })
            .collect()
    }

    /// Copies a result into the target that was put aside for it, which has several elements in one cell: in the order of
    /// `copy_`.
    fn copy_back(&mut self, target: &Object, value: RawTensor, key: RngKey) -> Result<()> {
        let copy = restride_ops::lookup("aten.copy_.default")
            .ok_or_else(|| Error::invalid("unknown operator aten.copy_.default"))?;
        let mut args = vec![Arg::Value(Slot::Tensor(target.clone())), Arg::Value(Slot::new(value))];
        copy.fill_defaults(&mut args)?;
        self.call(copy, &args, key).map(|_| ())
    }

    /// A write into a target that has several elements in one cell, which PyTorch lets pass where the overlap is hard to
    /// see, by an operator that is no loop over elements.
    fn mutate_cells(
        &mut self,
        twin: &Twin,
        own: &CallArgs,
        arg: usize,
        result: usize,
        target: &Object,
        key: RngKey,
    ) -> Result<Vec<Slot>> {
        let def = twin.op.def();
        let t = target.borrow().clone();
        // A kernel that carries its operand over only writes what changes, element by element.
        let carried = def.reuse.iter().any(|r| {
            r.kind == ReuseKind::Carried
                && r.result as usize == result
                && twin.args.get(r.arg as usize).is_some_and(|&a| a as usize == arg)
        });
        if carried && matches!(def.kernel, Kernel::Fixed(_)) && !t.conj && !t.neg && twin.writes.len() == 1 {
            let mut reads = resolved(own)?;
            let metas = infer(twin.op, &reads)?;
            if metas.len() == 1 && metas[0].dtype == t.dtype() && metas[0].layout.sizes == t.layout().sizes {
                let position = twin.args.iter().position(|&a| a as usize == arg);
                for (i, read) in reads.iter_mut().enumerate() {
                    if Some(i) != position {
                        *read = apart(read, &t)?;
                    }
                }
                return self.kernel_into(twin.op, &reads, vec![t], key);
            }
        }
        Err(Error::unsupported(format!("{} into a tensor with several elements in one cell", twin.op))
            .help("clone the tensor before writing it"))
    }

    /// A pointwise write that visits cells more than once, or reads cells that it wrote: part by part, in PyTorch's order.
    fn loop_over_cells(
        &mut self,
        twin: &Twin,
        own: &CallArgs,
        target: &Object,
        visits: &Visits,
        key: RngKey,
    ) -> Result<Vec<Slot>> {
        let t = target.borrow().clone();
        let sizes = t.layout().sizes.clone();
        // The result's sizes first: a failing broadcast is refused before the first write. A copy stands for the target, whose
        // layout may have a cell twice.
        let apart = |slot: &Slot| -> Result<Slot> {
            if !is_object(slot, target) {
                return Ok(slot.clone());
            }
            Ok(Slot::new(contiguous_copy(&t)?))
        };
        let first: Vec<Arg<Slot, Scalar>> = own.iter().map(|a| a.try_map(apart, |s| Ok(*s))).collect::<Result<_>>()?;
        let whole = self.call(twin.op, &first, key)?;
        let value = whole.first().and_then(Slot::tensor);
        let value = value.ok_or_else(|| Error::invalid(format!("{} gives no result", twin.op)))?;
        check_store(&value, &t)?;
        for index in visits.indices(&sizes) {
            let cells = |o: &RawTensor| -> Result<RawTensor> {
                let part = o.alias(o.dtype(), visits.part(o.layout(), &sizes, &index)?);
                part.ok_or_else(|| Error::invalid("a part outside of its tensor"))
            };
            let part = |slot: &Slot| -> Result<Slot> {
                let Slot::Tensor(o) = slot else { return Ok(slot.clone()) };
                let o = o.borrow();
                // A 0-d tensor stays one: it counts as a number when types are promoted.
                if o.layout().rank() == 0 { Ok(slot.clone()) } else { Ok(Slot::new(cells(&o)?)) }
            };
            let args: Vec<Arg<Slot, Scalar>> =
                own.iter().map(|a| a.try_map(part, |s| Ok(*s))).collect::<Result<_>>()?;
            let results = self.call(twin.op, &args, key)?;
            let value = results.first().and_then(Slot::tensor);
            let value = value.ok_or_else(|| Error::invalid(format!("{} gives no result", twin.op)))?;
            copy_into(&cells(&t)?, &value)?;
        }
        Ok(vec![Slot::Tensor(target.clone())])
    }
}

/// Whether a write goes to a copy of the target, with lazy bits applied or converted, which is copied back.
fn put_aside(twin: &Twin, own: &CallArgs, target: &Object) -> bool {
    if twin.copies_out() {
        return true;
    }
    let converted = || computed_aside(twin.op.def(), &meta(&target.borrow()), &operands(own, target));
    lazy(twin, target) || !twin.op.def().maps_bits && converted()
}

/// Whether a target has lazy bits that the operator does not handle.
fn lazy(twin: &Twin, target: &Object) -> bool {
    !twin.op.def().maps_bits && (target.borrow().conj || target.borrow().neg)
}

/// The parts in which a call visits its only target, the twin's first result; `None` if one write does. The arguments
/// are the twin's.
pub(crate) fn visits_for(twin: &Twin, own: &CallArgs, target: &Object) -> Result<Option<Visits>> {
    let def = twin.op.def();
    if put_aside(twin, own, target) || !def.pointwise || def.random {
        return Ok(None);
    }
    visits(&meta(&target.borrow()), &operands(own, target))
}

/// PyTorch's checks of how the memory of a mutating call's arguments overlaps.
pub(crate) fn check_overlap(twin: &Twin, args: &CallArgs) -> Result<()> {
    refuse_overlap(twin, args, memory, |arg, result| out_size(twin, args, arg, result))
}

/// Whether a call reads the object that it writes: such an `out=` is not resized. A lazily mapped one is read as a copy.
fn reads_target(twin: &Twin, args: &CallArgs, target: &Object) -> bool {
    let mut given = twin.args.iter().filter_map(|&i| args.get(i as usize));
    !lazy(twin, target) && given.any(|a| a.values().any(|s| is_object(s, target)))
}

/// What a call makes of the sizes of an `out=`. Forms whose functional form has no shape rule tell only by running.
fn out_size(twin: &Twin, args: &CallArgs, arg: u8, result: u8) -> OutSize {
    let Some(Arg::Value(Slot::Tensor(target))) = args.get(arg as usize) else { return OutSize::Kept };
    if !twin.resizes || reads_target(twin, args, target) {
        return OutSize::Kept;
    }
    let def = twin.op.def();
    let (Some(rule), Kernel::Fixed(_) | Kernel::None) = (def.infer, def.kernel) else { return OutSize::Unknown };
    let seen = |slot: &Slot| slot.tensor().map(|t| meta(&t)).ok_or(());
    let own = twin.args.iter().filter_map(|&i| args.get(i as usize)).map(|a| a.try_map(seen, |s| Ok(*s)));
    let made = own.collect::<std::result::Result<Vec<_>, ()>>().ok().and_then(|own| rule(&Args(&own)).ok());
    match made.as_ref().and_then(|made| made.get(result as usize)) {
        Some(made) if made.layout.sizes == target.borrow().layout().sizes => OutSize::Kept,
        Some(made) => OutSize::Resized(made.layout.numel()),
        None => OutSize::Unknown,
    }
}

/// Writes a result through a target, as the in-place call that it is the result of.
pub(crate) fn overwrite(value: RawTensor, target: &Object, key: RngKey, options: &RunOptions) -> Result<()> {
    check_store(&value, &target.borrow())?;
    let repeats = self_overlaps(target.borrow().layout()) != Some(false);
    if repeats { alone(options, |interp| interp.copy_back(target, value, key)) } else { store(&value, target, false) }
}

/// The operands of a write as they lie beside its target.
fn operands(own: &CallArgs, target: &Object) -> Vec<Visited> {
    let t = target.borrow();
    let tensors = own.iter().flat_map(Arg::values).filter_map(Slot::tensor);
    tensors.map(|o| Visited { ty: meta(&o), shares: o.storage().same(t.storage()) }).collect()
}

fn meta(t: &RawTensor) -> TensorType<i64> {
    TensorType::new(t.dtype(), t.layout().clone())
}

fn is_object(slot: &Slot, target: &Object) -> bool {
    matches!(slot, Slot::Tensor(o) if Rc::ptr_eq(o, target))
}

/// Tensors of an argument on memory of their own where they share the target's.
fn apart(arg: &Arg<RawTensor, Scalar>, target: &RawTensor) -> Result<Arg<RawTensor, Scalar>> {
    let one = |t: &RawTensor| if t.storage().same(target.storage()) { contiguous_copy(t) } else { Ok(t.clone()) };
    Ok(arg.try_map(one, |s| Ok::<_, OpError>(*s))?)
}

/// A tensor as PyTorch's overlap checks see it.
fn memory(slot: &Slot) -> Option<OperandMemory> {
    let Slot::Tensor(object) = slot else { return None };
    let t = object.borrow();
    let ty = TensorType::new(t.dtype(), t.layout().clone());
    let bits = LazyBits { conj: t.conj, neg: t.neg };
    Some(OperandMemory::new(&ty, t.storage().id(), Rc::as_ptr(object) as usize).with_bits(bits))
}

/// PyTorch's checks of a result against its target.
pub(crate) fn check_store(value: &RawTensor, target: &RawTensor) -> Result<()> {
    let (have, want) = (&target.layout().sizes, &value.layout().sizes);
    if have != want {
        let (have, want) = (&have[..], &want[..]);
        return Err(refused(format!("output with shape {have:?} doesn't match the broadcast shape {want:?}")));
    }
    refuse_cast(value.dtype(), target.dtype())
}

/// Writes a result through its target. An `out=` of other sizes is resized first: its storage grows, its offset
/// stays, its strides become the result's.
fn store(value: &RawTensor, target: &Object, resizes: bool) -> Result<()> {
    let t = target.borrow().clone();
    if resizes && t.layout().sizes != value.layout().sizes {
        refuse_cast(value.dtype(), t.dtype())?;
        let layout = Layout { offset: t.layout().offset, ..value.layout().clone() };
        let ty = TensorType::new(t.dtype(), layout);
        grow(&t, &ty)?;
        let layout = ty.layout;
        let resized = t.alias(t.dtype(), layout).ok_or_else(|| Error::invalid("a resized tensor has no room"))?;
        *target.borrow_mut() = resized;
    } else {
        check_store(value, &t)?;
    }
    let t = target.borrow().clone();
    Ok(copy_into(&t, value)?)
}

/// Says which argument a refusal is about, where there are several.
fn detail(e: Error, op: Op, arg: usize) -> Error {
    let written = op.schema().args.iter().filter(|a| a.alias.as_ref().is_some_and(|a| a.write)).count();
    match op.schema().args.get(arg) {
        Some(a) if written > 1 => Error { what: format!("{}: {}", a.name, e.what), ..e },
        _ => e,
    }
}
