//! Core decompositions of operators that create tensors or move elements.

use super::*;

/// `full` of the operand's or the given sizes, in the given element type or the operand's.
pub(super) fn filled(
    e: &mut dyn Emit,
    a: &ValArgs<'_>,
    sizes_at: Option<usize>,
    dtype_at: usize,
    value: Scalar,
) -> Vals {
    let to = match (a.opt_dtype(dtype_at)?, a.as_tensor(0)) {
        (Some(d), _) => d,
        (None, Some(like)) => dtype(e, *like),
        (None, None) => DType::F32,
    };
    let n = match sizes_at {
        Some(i) => a.ints(i)?.to_vec(),
        None => sizes(e, *a.tensor(0)?),
    };
    one_of(emit!(e, "aten.full.default", n, value, to)?)
}

pub(super) fn arange(e: &mut dyn Emit, a: &ValArgs<'_>, start: Option<usize>) -> Vals {
    let end = start.map_or(0, |i| i + 1);
    let from = start.map_or(Ok(Scalar::Int(0)), |i| a.scalar(i))?;
    one_of(emit!(e, "aten.arange.start_step", from, pass(a, end), 1, pass(a, end + 1))?)
}

pub(super) fn stack(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let parts: Vec<Val> = a.tensors(0)?.into_iter().copied().collect();
    let rank = parts.first().map_or(0, |v| e.meta(*v).rank()) as i64;
    let dim = a.int(1)?;
    let dim = if dim < 0 { dim + rank + 1 } else { dim };
    let mut thin = Vec::new();
    for v in parts {
        thin.push(emit!(e, "aten.unsqueeze.default", v, dim)?);
    }
    one_of(emit!(e, "aten.cat.default", thin, dim)?)
}

pub(super) fn roll(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (mut x, shifts, over) = (*a.tensor(0)?, a.ints(1)?, a.ints(2)?);
    let to = sizes(e, x);
    let flat = over.is_empty();
    if flat {
        x = emit!(e, "aten.reshape.default", x, [to.iter().product()])?;
    }
    for (i, &by) in shifts.iter().enumerate() {
        let n = sizes(e, x);
        let d = if flat { 0 } else { over[i].rem_euclid(n.len() as i64) };
        let size = n[d as usize];
        if size == 0 || by.rem_euclid(size) == 0 {
            continue;
        }
        let at = size - by.rem_euclid(size);
        let head = emit!(e, "aten.slice.Tensor", x, d, 0, at, 1)?;
        let tail = emit!(e, "aten.slice.Tensor", x, d, at, size, 1)?;
        x = emit!(e, "aten.cat.default", vec![tail, head], d)?;
    }
    one_of(if flat { emit!(e, "aten.reshape.default", x, to)? } else { x })
}

pub(super) fn repeat_interleave(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (mut x, times) = (*a.tensor(0)?, a.int(1)?);
    let dim = match a.opt_int(2)? {
        Some(d) => d.rem_euclid(e.meta(x).rank().max(1) as i64) as usize,
        None => {
            let n: i64 = sizes(e, x).iter().product();
            x = emit!(e, "aten.reshape.default", x, [n])?;
            0
        }
    };
    let mut to = sizes(e, x);
    let thin = emit!(e, "aten.unsqueeze.default", x, dim as i64 + 1)?;
    let mut wide = to.clone();
    wide.insert(dim + 1, times);
    let wide = emit!(e, "aten.expand.default", thin, wide)?;
    to[dim] *= times;
    one_of(emit!(e, "aten.reshape.default", wide, to)?)
}

/// `index_put` along one dimension.
pub(super) fn put_along(e: &mut dyn Emit, a: &ValArgs<'_>, value: Val, accumulate: bool) -> Vals {
    let (x, index) = (*a.tensor(0)?, *a.tensor(2)?);
    let rank = e.meta(x).rank() as i64;
    ensure!(rank > 0 && e.meta(index).rank() == 1, "an index into a 0-d tensor");
    let dim = a.int(1)?.rem_euclid(rank) as usize;
    let mut at: Vec<Option<Val>> = vec![None; dim];
    at.push(Some(index));
    one_of(emit!(e, "aten.index_put.default", x, Arg::Values(at), value, accumulate)?)
}

pub(super) fn index_add(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let source = *a.tensor(3)?;
    let source = if a.scalar(4)? == Scalar::Int(1) { source } else { emit!(e, "aten.mul.Scalar", source, pass(a, 4))? };
    put_along(e, a, source, true)
}

pub(super) fn index_fill(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let to = dtype(e, *a.tensor(0)?);
    let value = match a.as_tensor(3) {
        Some(v) if dtype(e, *v) == to => *v,
        Some(v) => emit!(e, "aten._to_copy.default", *v, to)?,
        None => number(e, a.scalar(3)?, to)?,
    };
    put_along(e, a, value, false)
}

pub(super) fn without_scales(a: &ValArgs<'_>, from: usize) -> Result<()> {
    ensure!((from..a.0.len()).all(|i| a.is_none(i)), "a scale factor beside the size");
    Ok(())
}
