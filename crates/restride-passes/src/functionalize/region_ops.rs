//! The operators that read a region out of a base, and those that write one into it.

use super::region::{Extent, Relation, relate};
use super::rewrite::op;
use super::shared_region::SharedRegion;
use super::storages::Alias;
use crate::args::symbolic_views;
use crate::build::Builder;
use restride_ir::{Arg, DType, Dim, Dims, Error, Expr, Layout, MemoryFormat, Result, TensorType, ValueId};

/// A value as its alias shows it, or back.
pub fn math(b: &mut Builder<'_>, value: ValueId, a: &Alias) -> ValueId {
    let mut value = value;
    if a.conj && a.ty.dtype.is_complex() {
        value = b.call("aten.conj_physical.default", vec![Arg::Value(value)], TensorType::clone(&a.ty));
    }
    if a.neg {
        value = b.call("aten.neg.default", vec![Arg::Value(value)], TensorType::clone(&a.ty));
    }
    value
}

/// The base under another element type, with its layout in that type's cells. Where the base ends inside of such a cell, it
/// is the part of the base that has whole ones.
pub fn retype(b: &mut Builder<'_>, base: ValueId, ty: &SharedRegion, dtype: DType) -> Result<(ValueId, SharedRegion)> {
    if dtype == ty.dtype {
        return Ok((base, ty.clone()));
    }
    let (from, to) = (ty.dtype.size() as i64, dtype.size() as i64);
    let (mut base, mut ty) = (base, TensorType::clone(ty));
    if from != to && !rows_fit(&ty.layout, from, to) {
        // Only a run of cells can be read as cells of another size: take the storage flat.
        let run = run(&ty, from, to)?;
        base = read(b, base, &ty, &run)?;
        ty.layout = run;
    }
    let layout = rescale(&ty.layout, from, to);
    let typed = TensorType::new(dtype, layout);
    let value = bits(b, base, typed.clone());
    Ok((value, typed.into()))
}

/// A value's bits as another type. PyTorch has a gradient through `view_as_real` and `view_as_complex`, none through
/// `view.dtype`.
fn bits(b: &mut Builder<'_>, value: ValueId, ty: TensorType) -> ValueId {
    let have = b.graph.tensor(value).clone();
    // Complex numbers as pairs of their parts.
    let pairs = |complex: &Layout<Expr>| {
        let (mut pairs, two) = (complex.clone(), Expr::Int(2));
        pairs.strides.iter_mut().chain([&mut pairs.offset]).for_each(|s| *s = s.times(&two));
        pairs.sizes.push(two);
        pairs.strides.push(Expr::Int(1));
        pairs
    };
    if have.dtype.is_complex() && have.dtype.real() == ty.dtype {
        let parts = TensorType::new(ty.dtype, pairs(&have.layout));
        let parts = b.call("aten.view_as_real.default", vec![Arg::Value(value)], parts);
        viewed(b, parts, ty)
    } else if ty.dtype.is_complex() && ty.dtype.real() == have.dtype {
        let parts = viewed(b, value, TensorType::new(have.dtype, pairs(&ty.layout)));
        b.call("aten.view_as_complex.default", vec![Arg::Value(parts)], ty)
    } else {
        b.call("aten.view.dtype", vec![Arg::Value(value), Arg::DType(ty.dtype)], ty)
    }
}

/// A value in another layout of its cells: by `view` where that gives the layout.
fn viewed(b: &mut Builder<'_>, value: ValueId, ty: TensorType) -> ValueId {
    let rule = op("aten.view.default").def().view;
    let args = vec![Arg::Value(value), Arg::Scalars(ty.layout.sizes.to_vec())];
    let gives = rule.and_then(|rule| symbolic_views(rule, &args, |v| b.graph.values[v].ty.tensor().cloned()));
    match gives {
        Some(views) if views[..] == [ty.clone()] => b.call("aten.view.default", args, ty),
        _ => b.as_strided(value, ty),
    }
}

/// The inverse of [`retype`] for `base`.
pub fn untype(b: &mut Builder<'_>, value: ValueId, base: ValueId, ty: &TensorType) -> Result<ValueId> {
    let have = b.graph.tensor(value).clone();
    let (from, to) = (have.dtype.size() as i64, ty.dtype.size() as i64);
    let layout = rescale(&have.layout, from, to);
    let back = TensorType::new(ty.dtype, layout);
    let value = bits(b, value, back.clone());
    if back.layout.sizes == ty.layout.sizes {
        return Ok(value);
    }
    if back.layout.numel().equals(&ty.layout.numel()) == Some(false) {
        return write(b, base, ty, &back.layout, value);
    }
    Ok(b.as_strided(value, ty.clone()))
}

/// A value written to a region of its element type, as cells of another type, with the region in those cells. Other cells
/// keep their elements. `None` where the elements are not known to be whole cells.
pub fn as_cells(
    b: &mut Builder<'_>,
    value: ValueId,
    region: &Layout<Expr>,
    dtype: DType,
) -> Option<(ValueId, Layout<Expr>)> {
    let mut value = value;
    let mut own = b.graph.tensor(value).clone();
    let (from, to) = (own.dtype.size() as i64, dtype.size() as i64);
    let whole = |l: &Layout<Expr>| l.known().is_some() && rows_fit(l, from, to);
    if from != to && !(whole(region) && whole(&own.layout)) {
        return None;
    }
    if from != to && own.layout.sizes.last().is_some_and(|n| n.is(1)) {
        // PyTorch asks for the stride of this dimension, which the value may have another one of than it is declared with.
        own = TensorType::contiguous(own.dtype, &own.layout.sizes);
        let format = Arg::MemoryFormat(MemoryFormat::Contiguous);
        value = b.call("aten.clone.default", vec![Arg::Value(value), format], own.clone());
    }
    let ty = TensorType::new(dtype, rescale(&own.layout, from, to));
    let value = bits(b, value, ty);
    Some((value, rescale(region, from, to)))
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

/// Whether a region is all cells of its base, row-major in both: the one reshaped is the other.
fn is_whole(ty: &TensorType, region: &Layout<Expr>) -> bool {
    let (base, same) = (&ty.layout, |a: &Expr, b: &Expr| a.equals(b) == Some(true));
    base.is_contiguous()
        && region.is_contiguous()
        && same(&base.offset, &region.offset)
        && same(&base.numel(), &region.numel())
}

/// The region's elements, in the region's sizes.
pub fn read(b: &mut Builder<'_>, base: ValueId, ty: &TensorType, region: &Layout<Expr>) -> Result<ValueId> {
    if ty.layout.same_cells(region) {
        return Ok(base);
    }
    let target = TensorType::new(ty.dtype, region.clone());
    if is_whole(ty, region) {
        return Ok(b.reshape(base, target));
    }
    let steps = relate(&ty.layout, region).filter(|r| read_steps(r) <= 2);
    match steps {
        Some(relation) => Ok(read_related(b, base, ty, &relation, &target)),
        None => Ok(b.as_strided(base, target)),
    }
}

/// How many operators a relation takes to read.
pub fn read_steps(r: &Relation<Expr>) -> usize {
    let kept = r.kept();
    let order: Vec<usize> = r.source.iter().flatten().copied().collect();
    let ones =
        r.source.iter().filter(|s| s.is_none()).count() + kept.iter().filter(|d| r.position(**d).is_none()).count();
    r.partial().count() + !order.is_sorted() as usize + (ones > 0) as usize
}

pub fn read_related(
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
            Extent::Whole => continue,
            Extent::Index(i) => ("aten.select.int", vec![dim, i.clone()], layout.select(d as i64, i)),
            Extent::Range { start, len, step } => {
                let end = range_end(start, len, step);
                let next = layout.slice(d as i64, Some(start), Some(&end), step);
                ("aten.slice.Tensor", vec![dim, start.clone(), end, step.clone()], next)
            }
        };
        layout = next.expect("a relation is inside its base");
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

/// Where a range ends: behind its last index if it is known to have one. The end of an empty range is its start: less could be
/// negative, which counts from the end of the dimension.
pub fn range_end(start: &Expr, len: &Expr, step: &Expr) -> Expr {
    let one = Expr::Int(1);
    match Expr::Int(0).less(len) {
        Some(true) => start.plus(&len.minus(&one).times(step)).plus(&one),
        _ => start.plus(&len.times(step)),
    }
}

/// The base with the region's cells replaced by `value`.
pub fn write(
    b: &mut Builder<'_>,
    base: ValueId,
    ty: &TensorType,
    region: &Layout<Expr>,
    value: ValueId,
) -> Result<ValueId> {
    if ty.layout.same_cells(region) {
        return Ok(b.declare(value, ty));
    }
    if is_whole(ty, region) {
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
    let value = fitted(b, value, &r, ty);
    let Some(d) = r.partial().next() else { return Ok(b.declare(value, ty)) };
    let dim = Arg::Scalar(Expr::Int(d as i64));
    Ok(match &r.picks[d] {
        Extent::Index(i) => {
            let args = vec![Arg::Value(base), Arg::Value(value), dim, Arg::Scalar(i.clone())];
            b.call("aten.select_scatter.default", args, ty.clone())
        }
        Extent::Range { start, len, step } => {
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
        Extent::Whole => unreachable!("a partial pick is not whole"),
    })
}

/// A region's value in the order and dimensions of its base, without the dimensions in which it takes one index.
pub fn fitted(b: &mut Builder<'_>, value: ValueId, r: &Relation<Expr>, ty: &TensorType) -> ValueId {
    let (kept, dtype) = (r.kept(), b.graph.tensor(value).dtype);
    let mut order: Dims<i64> = kept.iter().filter_map(|d| r.position(*d)).map(|i| i as i64).collect();
    let in_order = order.is_sorted();
    order.extend((0..r.source.len() as i64).filter(|i| r.source[*i as usize].is_none()));
    let mut value = value;
    // Dimensions of size 1 that stand elsewhere come and go with the reshape.
    if !in_order {
        let layout = b.graph.tensor(value).layout.permute(&order).expect("a permutation");
        let dims = Arg::Scalars(order.into_iter().map(Expr::Int).collect());
        value = b.call("aten.permute.default", vec![Arg::Value(value), dims], TensorType::new(dtype, layout));
    }
    let sizes: Dims<Expr> = kept
        .iter()
        .map(|&d| match &r.picks[d] {
            Extent::Range { len, .. } => len.clone(),
            _ => ty.layout.sizes[d].clone(),
        })
        .collect();
    let layout = &b.graph.tensor(value).layout;
    if layout.sizes != sizes {
        let shaped = layout.view(&sizes).unwrap_or_else(|| Layout::contiguous(&sizes));
        value = b.reshape(value, TensorType::new(dtype, shaped));
    }
    value
}
