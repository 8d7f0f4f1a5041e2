//! One operator call on real tensors.

use super::frame::refused;
use super::{Interp, Object, Slot};
use crate::collective;
use crate::copy::{allocate, contiguous_copy, resolve, room_for};
use restride_ir::{
    Arg, Args, Call, Ctx, Emit, Error, ErrorKind, Expr, Kernel, LazyBits, Meta, Movement, Op, OpError, Result, RngKey,
    Scalar, TensorType, Val, ViewOutcome, ViewRule,
};
use restride_tensor::{Access, AccessError, DType, Fitted, Layout, RawTensor, View, ViewMut};
use smallvec::SmallVec;

/// Arguments of a call while a program runs.
pub(crate) type CallArgs = [Arg<Slot, Scalar>];

impl Interp<'_> {
    /// Runs a call: members of a list, a change of metadata, a write, a view, a kernel or a composition.
    pub(super) fn call(&mut self, op: Op, args: &CallArgs, key: RngKey) -> Result<Vec<Slot>> {
        let def = op.def();
        if op.member().is_some() {
            return self.members(op, args, key);
        }
        if def.metadata {
            return metadata(op, args);
        }
        // In a body PyTorch's calls find a lazily mapped target already copied: all of the copy is written back.
        let lazy = |a: &Arg<Slot, Scalar>| a.values().filter_map(Slot::tensor).any(|t| t.conj || t.neg);
        if let Some(composed) = def.in_place_calls
            && !(self.depth > 1 && args.first().is_some_and(lazy))
        {
            return self.decompose(composed.calls, args, key);
        }
        if let Some(twin) = op.twin()
            && op.mutates(&plain(args))
        {
            return self.mutate(op, twin, args, key);
        }
        if op.is_mutable() && op.twin().is_none() {
            return Err(Error::unsupported(format!("{op} writes its arguments, and how is not known"))
                .help("give its body with --ops, or leave it out of the exported part"));
        }
        if let Some(results) = view(op, args)? {
            return Ok(results);
        }
        match (def.kernel, def.decompose) {
            (Kernel::None, None) => {
                Err(Error::unsupported(format!("{op} cannot be run: restride has no kernel for it"))
                    .help("decompose it before the export (run_decompositions), or leave it out of the exported part"))
            }
            (Kernel::None, Some(decompose)) => self.decompose(decompose, args, key),
            (_, Some(decompose)) if composed(op, args)? => self.decompose(decompose, args, key),
            _ => self.kernel(op, args, key),
        }
    }

    /// A `_foreach_*` call.
    fn members(&mut self, op: Op, args: &CallArgs, key: RngKey) -> Result<Vec<Slot>> {
        let item = |slot: &Slot, i: usize| {
            let t = slot.tensor().ok_or_else(|| OpError::new("a member of a number"))?;
            let layout = t.layout().select(0, &(i as i64))?;
            let t = t.alias(t.dtype(), layout).ok_or_else(|| OpError::new("a member outside of its tensor"))?;
            Ok(Slot::new(t))
        };
        run_members(op, args, settled, item, |member, args| self.call(member, args, key))
    }

    /// Computes into fresh memory.
    pub(super) fn kernel(&mut self, op: Op, args: &CallArgs, key: RngKey) -> Result<Vec<Slot>> {
        if let (true, Some(Movement::View(rule))) = (op.def().strided, &op.def().movement) {
            return copied_view(op, rule, args);
        }
        let tensors = resolved(args)?;
        let mut outs = Vec::new();
        if let Kernel::Fixed(_) | Kernel::Collective(_) = op.def().kernel {
            for meta in infer(op, &tensors)? {
                let bytes = meta.layout.byte_range(meta.dtype.size()).map_or(u64::MAX, |r| r.end as u64);
                self.program.limits.check_memory(bytes)?;
                outs.push(allocate(meta.dtype, meta.layout)?);
            }
        }
        self.kernel_into(op, &tensors, outs, key)
    }

    /// Computes into the given tensors.
    pub(super) fn kernel_into(
        &mut self,
        op: Op,
        args: &[Arg<RawTensor, Scalar>],
        outs: Vec<RawTensor>,
        key: RngKey,
    ) -> Result<Vec<Slot>> {
        room_to_work(op, args, &outs)?;
        let ctx = Ctx { rng: key, threads: self.options.threads.max(1) };
        let access = Access::of(args.iter().flat_map(Arg::values), &outs).map_err(in_use)?;
        // SAFETY: results are of the types that the shape rule gives for these arguments, on memory of their own or, where the
        // operator's licences allow it, on an argument's (the callers of this).
        let (reads, writes, fitted) = unsafe {
            let reads: Vec<Arg<View<'_>, Scalar>> = args.iter().map(|a| views_of(&access, a)).collect();
            let writes: Vec<ViewMut<'_>> = outs.iter().map(|t| access.view_mut(t)).collect();
            (reads, writes, Fitted::promise())
        };
        let call = Call { args: Args(&reads), outs: &writes, ctx: &ctx, fitted };
        let results = match op.def().kernel {
            Kernel::None => return Err(Error::unsupported(format!("{op} has no kernel"))),
            Kernel::Fixed(run) => {
                run(&call)?;
                None
            }
            Kernel::Dynamic(run) => Some(run(&call)?.into_iter().map(Slot::new).collect()),
            Kernel::Scalar(run) => Some(vec![Slot::Scalar(run(&call)?)]),
            Kernel::Collective(describe) => {
                let exchange = describe(&Args(&metas(args)))?;
                let out = writes.first().ok_or_else(|| Error::invalid(format!("{op} has no result")))?;
                collective::carry_out(&exchange, *call.args.tensor(0)?, out)?;
                None
            }
        };
        drop(access);
        Ok(results.unwrap_or_else(|| outs.into_iter().map(Slot::new).collect()))
    }

    fn decompose(&mut self, rule: restride_ir::DecomposeFn, args: &CallArgs, key: RngKey) -> Result<Vec<Slot>> {
        let mut eager = Eager { interp: self, key, slots: Vec::new(), error: None };
        let vals: Vec<Arg<Val, Scalar>> = args.iter().map(|a| a.map_values(|slot| eager.keep(slot.clone()))).collect();
        match rule(&mut eager, &Args(&vals)) {
            Ok(results) => results.into_iter().map(|v| eager.get(v).cloned().map_err(Error::from)).collect(),
            Err(e) => Err(eager.error.take().unwrap_or_else(|| e.into())),
        }
    }
}

/// The error of a storage that another access holds.
pub(crate) fn in_use(e: AccessError) -> Error {
    Error::new(ErrorKind::Inputs, e.to_string())
}

/// The arguments as `Op::mutates` reads them.
pub(crate) fn plain<V>(args: &[Arg<V, Scalar>]) -> Vec<Arg<(), Expr>> {
    args.iter().map(|a| numbers(&a.map_values(|_| ()))).collect()
}

/// An argument with expressions for numbers.
pub(crate) fn numbers<V: Clone>(a: &Arg<V, Scalar>) -> Arg<V, Expr> {
    let mapped: std::result::Result<_, std::convert::Infallible> = a.try_map(|v| Ok(v.clone()), |s| Ok(Expr::from(*s)));
    match mapped {
        Ok(arg) => arg,
    }
}

/// Whether the call is composed although the operator has a kernel.
fn composed(op: Op, args: &CallArgs) -> Result<bool> {
    let Some(which) = op.def().composed else { return Ok(false) };
    let meta = |slot: &Slot| {
        let t = slot.tensor().ok_or_else(|| OpError::new("a number or None stands for a tensor"))?;
        Ok(TensorType::new(t.dtype(), t.layout().clone()))
    };
    let metas: Vec<Arg<Meta, Scalar>> =
        args.iter().map(|a| a.try_map(meta, |s| Ok(*s))).collect::<std::result::Result<_, OpError>>()?;
    Ok(which(&Args(&metas)))
}

/// The tensors of the arguments, lazy bits applied.
pub(super) fn resolved(args: &CallArgs) -> Result<Vec<Arg<RawTensor, Scalar>>> {
    let tensor = |slot: &Slot| {
        let t = slot.tensor().ok_or_else(|| OpError::new("a number or None stands for a tensor"))?;
        resolve(&t)
    };
    Ok(args.iter().map(|a| a.try_map(tensor, |s| Ok(*s))).collect::<std::result::Result<_, OpError>>()?)
}

/// Refuses a kernel whose scratch memory the system lacks: its own allocation would abort.
fn room_to_work(op: Op, args: &[Arg<RawTensor, Scalar>], outs: &[RawTensor]) -> Result<()> {
    let Some(scratch) = op.def().scratch else { return Ok(()) };
    let outs: Vec<Meta> = outs.iter().map(|t| TensorType::new(t.dtype(), t.layout().clone())).collect();
    let bytes = scratch(&Args(&metas(args)), &outs).unwrap_or(0);
    if !room_for(bytes as u128) {
        return Err(Error::unsupported(format!(
            "{op} needs {bytes} bytes of scratch, more memory than the system has"
        )));
    }
    Ok(())
}

fn metas(args: &[Arg<RawTensor, Scalar>]) -> Vec<Arg<Meta, Scalar>> {
    args.iter().map(|a| a.map_values(|t| TensorType::new(t.dtype(), t.layout().clone()))).collect()
}

pub(super) fn infer(op: Op, args: &[Arg<RawTensor, Scalar>]) -> Result<SmallVec<[Meta; 1]>> {
    let rule = op.def().infer.ok_or_else(|| Error::unsupported(format!("{op} has no shape rule")))?;
    Ok(rule(&Args(&metas(args)))?)
}

/// # Safety
/// As [`Access::view`].
unsafe fn views_of<'a>(access: &'a Access<'_>, arg: &'a Arg<RawTensor, Scalar>) -> Arg<View<'a>, Scalar> {
    // SAFETY: as promised by the caller.
    let view = |t: &'a RawTensor| unsafe { access.view(t) };
    match arg {
        Arg::Value(t) => Arg::Value(view(t)),
        Arg::Values(ts) => Arg::Values(ts.iter().map(|t| t.as_ref().map(view)).collect()),
        other => {
            let mapped: std::result::Result<_, ()> = other.try_map(|_| Err(()), |s| Ok(*s));
            mapped.expect("no tensors are left in other arguments")
        }
    }
}

/// Runs one call per member of the lists, in order. Operands that are only read are settled before the first call.
pub(crate) fn run_members<V: Clone, R>(
    op: Op,
    args: &[Arg<V, Scalar>],
    settle: impl Fn(&V) -> Result<V>,
    item: impl Fn(&V, usize) -> std::result::Result<V, OpError>,
    mut run: impl FnMut(Op, &[Arg<V, Scalar>]) -> Result<Vec<R>>,
) -> Result<Vec<R>> {
    let member = op.member().expect("the caller asked");
    let written = |i: usize| op.schema().args.get(i).and_then(|a| a.alias.as_ref()).is_some_and(|a| a.write);
    let one = |(i, a): (usize, &Arg<V, Scalar>)| match written(i) {
        true => Ok(a.clone()),
        false => a.try_map(&settle, |s| Ok::<_, Error>(*s)),
    };
    let args = args.iter().enumerate().map(one).collect::<Result<Vec<_>>>()?;
    let count = args.iter().find_map(|a| if let Arg::Values(vs) = a { Some(vs.len()) } else { None }).unwrap_or(0);
    let mut results = Vec::new();
    for i in 0..count {
        let mut one = op.member_args(&args, i, &item)?;
        member.fill_defaults(&mut one)?;
        results.extend(run(member, &one)?);
    }
    // In-place forms return nothing.
    Ok(if op.schema().returns.is_empty() { Vec::new() } else { results })
}

/// The tensor, or a copy that has its lazy bits applied.
fn settled(slot: &Slot) -> Result<Slot> {
    match slot.tensor() {
        Some(t) if t.conj || t.neg => Ok(Slot::new(resolve(&t)?)),
        _ => Ok(slot.clone()),
    }
}

/// An argument with copies for lazily mapped tensors.
pub(super) fn materialized(arg: &Arg<Slot, Scalar>) -> Result<Arg<Slot, Scalar>> {
    arg.try_map(settled, |s| Ok(*s))
}

/// The outcome of the operator's view rule.
fn view_outcome(op: Op, args: &CallArgs) -> Result<Option<ViewOutcome<i64>>> {
    op.def().view.map(|rule| outcome(&rule, args)).transpose()
}

fn outcome(rule: &ViewRule, args: &CallArgs) -> Result<ViewOutcome<i64>> {
    let tensor = |slot: &Slot| {
        let t = slot.tensor().ok_or_else(|| OpError::new("a number or None stands for a tensor"))?;
        Ok(TensorType::new(t.dtype(), t.layout().clone()))
    };
    let args = args.iter().map(|a| a.try_map(tensor, |s| Ok(*s))).collect::<std::result::Result<Vec<_>, OpError>>()?;
    Ok(rule.of(&args)?)
}

/// The copy form of a view that sees strides (`as_strided_copy`): it reads cells of the storage that are no elements
/// of its operand.
fn copied_view(op: Op, rule: &ViewRule, args: &CallArgs) -> Result<Vec<Slot>> {
    let base = object(op, args, 0)?.borrow().clone();
    let ViewOutcome::Views(types) = outcome(rule, args)? else {
        return Err(Error::invalid(format!("the view rule of {op} does not decide known sizes")));
    };
    let copy = |ty: TensorType<i64>| {
        let view = alias(op, &base, ty)?;
        Ok(Slot::new(contiguous_copy(&view)?))
    };
    types.into_iter().map(copy).collect()
}

fn object(op: Op, args: &CallArgs, i: usize) -> Result<&Object> {
    match args.get(i) {
        Some(Arg::Value(Slot::Tensor(t))) => Ok(t),
        _ => Err(Error::invalid(format!("argument {i} of {op} is not a tensor"))),
    }
}

/// The results of a view operator; `None` if the operator is none, or copies for these arguments.
fn view(op: Op, args: &CallArgs) -> Result<Option<Vec<Slot>>> {
    let def = op.def();
    if def.view.is_none() {
        return Ok(None);
    }
    let given = object(op, args, def.base as usize)?;
    let base = given.borrow().clone();
    if def.resolves && (base.conj || base.neg) {
        let mut args = args.to_vec();
        args[def.base as usize] = Arg::Value(Slot::new(resolve(&base)?));
        return view(op, &args);
    }
    let Some(outcome) = view_outcome(op, args)? else { return Ok(None) };
    match outcome {
        ViewOutcome::Copy => Ok(None),
        ViewOutcome::Unknown => Err(Error::invalid(format!("the view rule of {op} does not decide known sizes"))),
        ViewOutcome::Views(types) => {
            let made: Vec<RawTensor> = types.into_iter().map(|ty| alias(op, &base, ty)).collect::<Result<_>>()?;
            if def.itself && matches!(&made[..], [one] if is_view_of_all(one, &base)) {
                return Ok(Some(vec![Slot::Tensor(given.clone())]));
            }
            Ok(Some(made.into_iter().map(Slot::new).collect()))
        }
    }
}

/// A view of a tensor, with its lazy bits as PyTorch carries them.
fn alias(op: Op, base: &RawTensor, ty: TensorType<i64>) -> Result<RawTensor> {
    let from = TensorType::new(base.dtype(), base.layout().clone());
    let Some(bits) = (LazyBits { conj: base.conj, neg: base.neg }).of_view(op, &from, &ty)? else {
        return Ok(resolve(base)?);
    };
    let mut t = base.alias(ty.dtype, ty.layout.clone()).ok_or_else(|| outside(base, &ty.layout, ty.dtype))?;
    (t.conj, t.neg) = (bits.conj, bits.neg);
    Ok(t)
}

/// Whether a view shows all of its base with the same layout and bits.
fn is_view_of_all(view: &RawTensor, base: &RawTensor) -> bool {
    view.storage().same(base.storage())
        && (view.dtype(), view.conj, view.neg) == (base.dtype(), base.conj, base.neg)
        && view.layout() == base.layout()
}

fn outside(base: &RawTensor, layout: &Layout, dtype: DType) -> Error {
    let needed = layout.cell_range().end as i128 * dtype.size() as i128;
    refused(format!(
        "setStorage: sizes {:?}, strides {:?}, storage offset {}, and itemsize {} requiring a storage size of {needed} \
         are out of bounds for storage of size {}",
        &layout.sizes[..],
        &layout.strides[..],
        layout.offset,
        dtype.size(),
        base.storage().len()
    ))
}

/// An operator that changes the tensor object itself: `t_`, `as_strided_`, `resize_`, `set_`.
fn metadata(op: Op, args: &CallArgs) -> Result<Vec<Slot>> {
    let target = object(op, args, 0)?.clone();
    let changed = match view_outcome(op, args)? {
        Some(ViewOutcome::Views(types)) if types.len() == 1 => {
            let ty = types.into_iter().next().expect("one");
            let base = object(op, args, op.def().base as usize)?.borrow().clone();
            if op.def().grows {
                // PyTorch makes no room where sizes and strides stay, and fails when it looks at the tensor next.
                let own = target.borrow().layout().clone();
                let stays = own.sizes == ty.layout.sizes && own.strides == ty.layout.strides;
                if op.def().base != 0 && stays && room(&ty)? > base.storage().len() {
                    return Err(Error::unsupported(format!("{op} beyond the storage that it is given")));
                }
                grow(&base, &ty)?;
            }
            // Memory is taken over; the bits are the object's own.
            let own = target.borrow();
            let mut t = alias(op, &base, ty)?;
            if op.def().base != 0 {
                (t.conj, t.neg) = (own.conj, own.neg);
            }
            t
        }
        _ => return Err(Error::unsupported(format!("{op} with these arguments changes a tensor in an unknown way"))),
    };
    *target.borrow_mut() = changed;
    Ok(vec![Slot::Tensor(target)])
}

/// Grows the storage to the end of a layout.
pub(super) fn grow(base: &RawTensor, ty: &TensorType<i64>) -> Result<()> {
    let needed = room(ty)?;
    if needed > base.storage().len() {
        // A trial allocation, so that missing memory is an error.
        allocate(ty.dtype, ty.layout.clone())?;
        base.storage().grow(needed).map_err(in_use)?;
    }
    Ok(())
}

/// Bytes that a tensor needs of its storage; none for an empty one, whatever its offset.
fn room(ty: &TensorType<i64>) -> Result<usize> {
    if ty.layout.sizes.contains(&0) {
        return Ok(0);
    }
    let needed = ty.layout.cell_range().end as i128 * ty.dtype.size() as i128;
    usize::try_from(needed).map_err(|_| refused(format!("a storage of {needed} bytes")))
}

/// A composition, run at once: every call of its operators is a call of the interpreter.
struct Eager<'i, 'p> {
    interp: &'i mut Interp<'p>,
    key: RngKey,
    slots: Vec<Slot>,
    /// The whole error of a call; the composition passes on only its text.
    error: Option<Error>,
}

impl Eager<'_, '_> {
    fn keep(&mut self, slot: Slot) -> Val {
        self.slots.push(slot);
        Val(self.slots.len() as u32 - 1)
    }
    fn get(&self, v: Val) -> std::result::Result<&Slot, OpError> {
        self.slots.get(v.0 as usize).ok_or_else(|| OpError::new("a composition uses a value that it did not make"))
    }
}

impl Emit for Eager<'_, '_> {
    fn call(&mut self, op: &str, args: &[Arg<Val, Scalar>]) -> std::result::Result<SmallVec<[Val; 1]>, OpError> {
        let op = restride_ops::lookup(op).ok_or_else(|| OpError::new(format!("unknown operator {op}")))?;
        let mut real: Vec<Arg<Slot, Scalar>> = args
            .iter()
            .map(|a| a.try_map(|v| self.get(*v).cloned(), |s| Ok(*s)))
            .collect::<std::result::Result<_, OpError>>()?;
        op.fill_defaults(&mut real)?;
        match self.interp.call(op, &real, self.key) {
            Ok(results) => Ok(results.into_iter().map(|s| self.keep(s)).collect()),
            Err(e) => {
                let words = OpError::new(e.to_string());
                self.error = Some(e);
                Err(words)
            }
        }
    }

    fn meta(&self, v: Val) -> Meta {
        match self.get(v) {
            Ok(Slot::Tensor(t)) => {
                let t = t.borrow();
                TensorType::new(t.dtype(), t.layout().clone())
            }
            Ok(Slot::Scalar(s)) => TensorType::contiguous(s.dtype(), &[]),
            _ => TensorType::contiguous(DType::Bool, &[]),
        }
    }
}
