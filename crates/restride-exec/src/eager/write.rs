//! Calls that write: the functional twin is recorded, and its result becomes part of the base's history.

use super::call::{EagerArgs, EagerValue, native, operands, refuse_views_behind, run, slots};
use super::emit::{fitted, place, rule_on_types};
use super::function::refuse_given;
use super::guards;
use super::memory::{GuardedWrite, Region, before_write, copied, writing, writing_parts};
use super::mode::{self, is_grad_enabled};
use super::node::{Edge, NodeKind, TapeNode};
use super::probe::lifted;
use super::tensor::{Tensor, ViewOf, ViewOrigin, differentiable, refuse, refuse_in_place_view};
use crate::interp::{Slot, call_slots, check_overlap, check_store, overwrite, visits_for};
use restride_ir::{Arg, Error, Meta, Op, Result, Scalar, TensorType, Twin, TwinReturn, Visits};
use restride_tensor::{DType, Layout, self_overlaps};
use std::cell::RefCell;
use std::rc::Rc;

/// A written argument and the twin's result that it takes.
struct WriteTarget {
    result: usize,
    tensor: Tensor,
    /// Written on the side and not given back (running statistics): a constant, as in PyTorch.
    statistic: bool,
}

/// Runs a mutating call.
pub(super) fn mutate(op: Op, twin: &Twin, args: &EagerArgs) -> Result<Vec<EagerValue>> {
    let mut targets = Vec::new();
    for &(arg, result) in &twin.writes {
        match args.get(arg as usize) {
            Some(Arg::Value(t)) => targets.push(WriteTarget {
                result: result as usize,
                tensor: t.clone(),
                statistic: !twin.returns.contains(&TwinReturn::Arg(arg)),
            }),
            Some(Arg::None) => {}
            _ => return Err(Error::unsupported(format!("{op} writes argument {arg}, which is no tensor"))),
        }
    }
    refuse_given(targets.iter().map(|t| &t.tensor))?;
    let grad = is_grad_enabled();
    // A write under `no_grad` changes elements and no history.
    if !grad {
        return plainly(op, args, &targets);
    }
    let moved = targets.iter().any(|t| t.tensor.root().grad_fn().is_some());
    let unseen = mode::strict() && targets.iter().any(|t| t.tensor.is_unseen_view());
    let asks = targets.iter().any(|t| t.tensor.root().requires_grad());
    let seen = operands(args).any(super::call::asks);
    if !(moved || asks || seen || operands(args).any(Tensor::requires_grad)) {
        return plainly(op, args, &targets);
    }
    if twin.resizes {
        let what = "functions with out=... arguments don't support automatic differentiation, but one of the arguments \
                    requires grad.";
        return refuse(what);
    }
    for t in &targets {
        if seen {
            refuse_in_place_view(&t.tensor)?;
        }
        refuse_leaf(&t.tensor)?;
    }
    if unseen {
        return refuse(LEAF);
    }
    refuse_views_behind(op, args)?;
    check_overlap(twin, &slots(args))?;
    let given = |tracked: bool| -> Vec<Arg<Tensor, Scalar>> {
        let is_target = |t: &Tensor| targets.iter().any(|k| k.tensor.is(t));
        // PyTorch copies the argument that is written where a gradient needs it, and not the same tensor as another argument.
        let other = |i: u8| mode::strict() && !twin.writes.iter().any(|w| w.0 == i);
        let own = |i: u8, t: &Tensor| match tracked && is_target(t) {
            true if other(i) => Tensor::standing(t.raw(), t.memory(), t.tracked().edge()),
            true => t.tracked(),
            false => t.clone(),
        };
        twin.args.iter().map(|&i| args.get(i as usize).map_or(Arg::None, |a| a.map_values(|t| own(i, t)))).collect()
    };
    let visits = match &targets[..] {
        [one] if one.result == 0 => visits_for(twin, &slots(&given(false)), one.tensor.object())?,
        _ => None,
    };
    // In-place forms that PyTorch has other formulas of.
    let own = {
        let _writing = writing(targets.iter().map(|t| &t.tensor));
        guards::composed(op, args)
    };
    let made = match (&targets[..], visits) {
        ([one], Some(visits)) => {
            let kept = {
                let _writing = writing(std::iter::once(&one.tensor));
                guards::composed(twin.op, &given(true))
            };
            by_parts(twin, &given(false), &one.tensor, &visits)?;
            if let Some(kept) = kept {
                kept.results(&[&one.tensor]);
            }
            vec![EagerValue::Tensor(one.tensor.clone())]
        }
        (many, _) if many.iter().any(|t| self_overlaps(&t.tensor.layout()) != Some(false)) => {
            return Err(Error::unsupported("a differentiated write into a tensor with several elements in one cell")
                .help("clone the tensor before writing it"));
        }
        _ => {
            let made = {
                let _writing = writing(targets.iter().map(|t| &t.tensor));
                run(twin.op, &given(true))?
            };
            for t in &targets {
                let new = made.get(t.result).and_then(EagerValue::tensor);
                let new = new.ok_or_else(|| Error::invalid(format!("{} gives too few results", twin.op)))?;
                let new = if t.statistic { new.detach() } else { new.clone() };
                store(&t.tensor, &new, SavedResult::Target)?;
            }
            made
        }
    };
    if let Some(own) = own {
        own.results(&targets.iter().map(|t| &t.tensor).collect::<Vec<_>>());
    }
    for t in &targets {
        // A write in grad mode makes the view differentiable again.
        if let Some(v) = t.tensor.view().filter(|v| v.origin == ViewOrigin::NoGrad) {
            t.tensor.set_view(Some(ViewOf { origin: ViewOrigin::Call, ..v }));
        }
        t.tensor.looked_at();
    }
    twin.returns
        .iter()
        .map(|r| match *r {
            TwinReturn::Arg(i) => Ok(match args.get(i as usize) {
                Some(Arg::Value(t)) => EagerValue::Tensor(t.clone()),
                _ => EagerValue::None,
            }),
            TwinReturn::Result(i) => {
                let value = made.get(i as usize).cloned();
                value.ok_or_else(|| Error::invalid(format!("{} gives too few results", twin.op)))
            }
        })
        .collect()
}

const LEAF: &str = "a leaf Variable that requires grad is being used in an in-place operation.";

/// PyTorch's refusals of writes to leaves.
pub(super) fn refuse_leaf(t: &Tensor) -> Result<()> {
    if t.is_asking_leaf() && t.view().is_none() {
        return refuse(LEAF);
    }
    // Of a base that was detached in place views keep their histories, and PyTorch takes it for a leaf.
    let detached = |base: &Tensor| mode::strict() && base.is_leaf() && t.requires_grad();
    if t.view().is_some_and(|v| v.base.is_asking_leaf() || detached(&v.base)) {
        return refuse("a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
    Ok(())
}

/// A write that is not recorded.
fn plainly(op: Op, args: &EagerArgs, targets: &[WriteTarget]) -> Result<Vec<EagerValue>> {
    let writes: Vec<GuardedWrite> = targets.iter().map(|t| before_write(&t.tensor)).collect::<Result<_>>()?;
    let made = native(op, args)?;
    writes.into_iter().for_each(GuardedWrite::done);
    Ok(made)
}

/// The memory of a result that was saved and written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SavedResult {
    /// In the target's cells.
    Target,
    /// In memory of its own.
    Result,
}

/// Writes a result through its target and moves the history.
fn store(target: &Tensor, new: &Tensor, keep: SavedResult) -> Result<()> {
    let write = before_write(target)?;
    overwrite(new.raw(), target.object(), mode::next_key(), &mode::options())?;
    write.done();
    let edge = new.edge();
    if let (Some(e), SavedResult::Target) = (&edge, keep) {
        let (have, want) = (new.raw(), target.raw());
        let same = have.dtype() == want.dtype() && have.layout().sizes == want.layout().sizes;
        let same = same && !want.conj && !want.neg && self_overlaps(want.layout()) == Some(false);
        e.node.repoint(e.slot, new, target, same)?;
    }
    move_history(target, edge.map(|e| (e, new.meta())));
    Ok(())
}

/// The target's region of its base has the elements of another value now, `None` for a constant.
fn move_history(target: &Tensor, value: Option<(Edge, Meta)>) {
    let (base, region) = (target.root(), target.region());
    // A leaf stays one.
    if base.is_asking_leaf() {
        return;
    }
    let old = base.edge();
    let value = value.filter(|_| differentiable(region.dtype));
    let whole = region == base.region();
    match (&value, &old) {
        (None, None) => {}
        (Some((edge, ty)), _) if whole && ty.dtype == base.dtype() && ty.layout.sizes == base.layout().sizes => {
            base.set_edge(Some(edge.clone()));
        }
        _ if region.layout.sizes.contains(&0) => {}
        _ => {
            let value_type = value.as_ref().map(|(_, ty)| ty.clone());
            let kind = NodeKind::Scatter { base: base.region(), region, value: value_type };
            // Nothing is left of a base that is overwritten as a whole; PyTorch goes on with zeros.
            let old = old.filter(|_| !whole || mode::strict());
            let node = TapeNode::new(kind, vec![old, value.map(|(e, _)| e)], vec![base.meta()]);
            base.set_edge(Some(Edge { node, slot: 0 }));
        }
    }
}

/// A pointwise write that visits cells more than once, or reads cells that it wrote: part by part, in PyTorch's order.
fn by_parts(twin: &Twin, own: &EagerArgs, target: &Tensor, visits: &Visits) -> Result<()> {
    let sizes = target.sizes();
    // A failing broadcast is refused before the first write.
    let apart: Vec<Arg<Slot, Scalar>> = own
        .iter()
        .map(|a| a.try_map(|t| Ok::<_, Error>(Slot::new(copied(&t.raw())?)), |s| Ok(*s)))
        .collect::<Result<_>>()?;
    let whole = call_slots(twin.op, &apart, mode::next_key(), &mode::options())?;
    let whole = whole.first().and_then(Slot::tensor);
    check_store(&whole.ok_or_else(|| Error::invalid(format!("{} gives no result", twin.op)))?, &target.raw())?;
    // A later part may overwrite values that an earlier one saved.
    let _writing = writing_parts(target);
    for index in visits.indices(&sizes) {
        let part = |t: &Tensor| -> Result<Tensor> {
            let raw = t.raw();
            // A 0-d tensor stays one: it counts as a number when types are promoted.
            if raw.layout().rank() == 0 {
                return Ok(t.clone());
            }
            let part = raw.alias(raw.dtype(), visits.part(raw.layout(), &sizes, &index)?);
            let part = part.ok_or_else(|| Error::invalid("a part outside of its tensor"))?;
            let object = Rc::new(RefCell::new(part));
            let read_only = t.view().filter(|v| v.origin == ViewOrigin::NoGrad && !t.is(target));
            let origin = if read_only.is_some() { ViewOrigin::NoGrad } else { ViewOrigin::Call };
            Ok(Tensor::region_of(&t.root(), object, origin))
        };
        let args: Vec<Arg<Tensor, Scalar>> = own.iter().map(|a| a.try_map(part, |s| Ok(*s))).collect::<Result<_>>()?;
        let cell = part(target)?;
        let made = run(twin.op, &args)?;
        let new = made.first().and_then(EagerValue::tensor);
        let new = new.ok_or_else(|| Error::invalid(format!("{} gives no result", twin.op)))?;
        store(&cell, new, SavedResult::Result)?;
    }
    Ok(())
}

/// The element type in whose cells both lie: the same, or the parts of complex numbers.
pub(super) fn unit(a: DType, b: DType) -> Option<DType> {
    match () {
        () if a == b => Some(a),
        () if a.is_complex() && a.real() == b => Some(b),
        () if b.is_complex() && b.real() == a => Some(a),
        () => None,
    }
}

/// The layout in cells of another unit: complex numbers as pairs.
fn in_units(r: &Region, unit: DType) -> Layout {
    if r.dtype == unit {
        return r.layout.clone();
    }
    let mut sizes = r.layout.sizes.to_vec();
    let mut strides: Vec<i64> = r.layout.strides.iter().map(|s| s * 2).collect();
    sizes.push(2);
    strides.push(1);
    Layout::strided(&sizes, &strides, r.layout.offset * 2)
}

/// A gradient with the lazy bits of a region applied: they are their own adjoint.
fn with_bits(g: Tensor, r: &Region) -> Result<Tensor> {
    let g = if r.conj && g.dtype().is_complex() {
        Tensor::call_one("aten.conj_physical.default", &[Arg::Value(g)])?
    } else {
        g
    };
    if r.neg { Tensor::call_one("aten.neg.default", &[Arg::Value(g)]) } else { Ok(g) }
}

/// The gradient of a region's elements, as one of its cells.
fn to_cells(g: &Tensor, r: &Region, unit: DType) -> Result<Tensor> {
    let g = with_bits(g.clone(), r)?;
    if r.dtype == unit { Ok(g) } else { Tensor::call_one("aten.view_as_real.default", &[Arg::Value(g)]) }
}

fn from_cells(g: Tensor, r: &Region, unit: DType) -> Result<Tensor> {
    let g = if r.dtype == unit {
        g
    } else {
        let half = |i: i64| {
            let at = |n: i64| Arg::Scalar(Scalar::Int(n));
            Tensor::call_one("aten.select.int", &[Arg::Value(g.clone()), at(-1), at(i)])
        };
        Tensor::call_one("aten.complex.default", &[Arg::Value(half(0)?), Arg::Value(half(1)?)])?
    };
    with_bits(g, r)
}

fn units_of(base: &Region, region: &Region) -> Result<DType> {
    unit(base.dtype, region.dtype).ok_or_else(|| {
        let what = format!("the gradient of {} read as {}", base.dtype, region.dtype);
        Error::unsupported(what).help("detach the view")
    })
}

/// The gradient of a base from that of a region of it: the adjoint of `as_strided`, whatever both look like.
pub(super) fn restride_adjoint(g: &Tensor, base: &Region, region: &Region) -> Result<Tensor> {
    let unit = units_of(base, region)?;
    let g = to_cells(g, region, unit)?;
    let from = lifted(&TensorType::new(unit, in_units(base, unit)));
    let found = rule_on_types("aten.as_strided.default", &[from], &place(&in_units(region, unit)), &g, &[true])?;
    let g = found.into_iter().next().flatten().ok_or_else(|| Error::invalid("a view without a gradient"))?;
    from_cells(g, base, unit)
}

/// The gradients of a base before a write to a region of it, and of the written value.
pub(super) fn scatter_adjoint(
    g: &Tensor,
    base: &Region,
    region: &Region,
    value: Option<&Meta>,
    needs: &[bool],
) -> Result<Vec<Option<Tensor>>> {
    let unit = units_of(base, region)?;
    let g = to_cells(g, base, unit)?;
    let at = in_units(region, unit);
    let types = [
        lifted(&TensorType::new(unit, in_units(base, unit))),
        lifted(&TensorType::new(unit, Layout::contiguous(&at.sizes))),
    ];
    let needs = [needs[0], needs[1] && value.is_some()];
    let found = rule_on_types("aten.as_strided_scatter.default", &types, &place(&at), &g, &needs)?;
    let mut found = found.into_iter();
    let before = found.next().flatten().map(|g| from_cells(g, base, unit)).transpose()?;
    let written = match (found.next().flatten(), value) {
        (Some(g), Some(ty)) => Some(fitted(&from_cells(g, region, unit)?, ty)?),
        _ => None,
    };
    Ok(vec![before, written])
}
