//! Core decompositions of pointwise operators and reductions.

use super::*;

pub(super) fn silu(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let s = emit!(e, "aten.sigmoid.default", *a.tensor(0)?)?;
    one_of(emit!(e, "aten.mul.Tensor", *a.tensor(0)?, s)?)
}

fn hard(e: &mut dyn Emit, a: &ValArgs<'_>) -> Result<Val> {
    let x = emit!(e, "aten.add.Scalar", *a.tensor(0)?, 3)?;
    emit!(e, "aten.clamp.default", x, 0, 6)
}

pub(super) fn hardsigmoid(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = hard(e, a)?;
    one_of(emit!(e, "aten.div.Scalar", x, 6)?)
}

pub(super) fn hardswish(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = hard(e, a)?;
    let x = emit!(e, "aten.mul.Tensor", *a.tensor(0)?, x)?;
    one_of(emit!(e, "aten.div.Scalar", x, 6)?)
}

pub(super) fn mish(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let curve = emit!(e, "aten.softplus.default", *a.tensor(0)?)?;
    let curve = emit!(e, "aten.tanh.default", curve)?;
    one_of(emit!(e, "aten.mul.Tensor", *a.tensor(0)?, curve)?)
}

pub(super) fn softplus(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    floating(e, x)?;
    let scaled = emit!(e, "aten.mul.Scalar", x, pass(a, 1))?;
    let raised = emit!(e, "aten.exp.default", scaled)?;
    let raised = emit!(e, "aten.log1p.default", raised)?;
    let curve = emit!(e, "aten.div.Scalar", raised, pass(a, 1))?;
    let line = emit!(e, "aten.gt.Scalar", scaled, pass(a, 2))?;
    one_of(emit!(e, "aten.where.self", line, x, curve)?)
}

pub(super) fn rsub(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let less = emit!(e, "aten.mul.Scalar", *a.tensor(0)?, Scalar::Int(-1))?;
    let less = if a.scalar(2)? == Scalar::Int(1) { less } else { emit!(e, "aten.mul.Scalar", less, pass(a, 2))? };
    one_of(emit!(e, "aten.add.Scalar", less, pass(a, 1))?)
}

pub(super) fn masked_fill(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, mask) = (*a.tensor(0)?, *a.tensor(1)?);
    let to = dtype(e, x);
    let value = match a.as_tensor(2) {
        Some(v) if dtype(e, *v) == to => *v,
        Some(v) => emit!(e, "aten._to_copy.default", *v, to)?,
        None => number(e, a.scalar(2)?, to)?,
    };
    one_of(emit!(e, "aten.where.self", mask, value, x)?)
}

/// `where` with scalar branches; they take the type of the tensor branch.
pub(super) fn choose(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (yes, no) = (a.as_tensor(1), a.as_tensor(2));
    let like = dtype(e, *yes.or(no).ok_or_else(|| OpError::new("where of two numbers"))?);
    let mut branch = |i: usize, v: Option<&Val>| match v {
        Some(v) => Ok(*v),
        None => {
            let s = a.scalar(i)?;
            let fits = like.is_float() || matches!(s, Scalar::Int(_) | Scalar::Bool(_)) && like != DType::Bool;
            ensure!(fits, "where of {like} and {s}");
            number(e, s, like)
        }
    };
    let (yes, no) = (branch(1, yes)?, branch(2, no)?);
    one_of(emit!(e, "aten.where.self", pass(a, 0), yes, no)?)
}

pub(super) fn addcmul(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str) -> Vals {
    let product = emit!(e, op, *a.tensor(1)?, *a.tensor(2)?)?;
    let product =
        if a.scalar(3)? == Scalar::Int(1) { product } else { emit!(e, "aten.mul.Scalar", product, pass(a, 3))? };
    one_of(emit!(e, "aten.add.Tensor", *a.tensor(0)?, product)?)
}

pub(super) fn lerp(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, end, w) = (*a.tensor(0)?, *a.tensor(1)?, a.float(2)?);
    let way = emit!(e, "aten.sub.Tensor", end, x)?;
    one_of(if w.abs() < 0.5 {
        let part = emit!(e, "aten.mul.Scalar", way, w)?;
        emit!(e, "aten.add.Tensor", x, part)?
    } else {
        let part = emit!(e, "aten.mul.Scalar", way, 1.0 - w)?;
        emit!(e, "aten.sub.Tensor", end, part)?
    })
}

pub(super) fn isfinite(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    floating(e, x)?;
    let (inf, nan) = (emit!(e, "aten.isinf.default", x)?, emit!(e, "aten.isnan.default", x)?);
    let other = emit!(e, "aten.logical_or.default", inf, nan)?;
    one_of(emit!(e, "aten.logical_not.default", other)?)
}

pub(super) fn triangle(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str) -> Vals {
    let x = *a.tensor(0)?;
    let n = sizes(e, x);
    let [.., r, c] = n[..] else { return fail("a triangle of a vector") };
    let row = emit!(e, "aten.arange.start_step", 0, r, 1, DType::I64)?;
    let row = emit!(e, "aten.unsqueeze.default", row, 1)?;
    let column = emit!(e, "aten.arange.start_step", 0, c, 1, DType::I64)?;
    let diagonal = emit!(e, "aten.sub.Tensor", column, row)?;
    let inside = emit!(e, op, diagonal, pass(a, 1))?;
    let to = dtype(e, x);
    let zero = number(e, Scalar::Int(0), to)?;
    one_of(emit!(e, "aten.where.self", inside, x, zero)?)
}

pub(super) fn all(e: &mut dyn Emit, a: &ValArgs<'_>, any: &str) -> Vals {
    ensure!(dtype(e, *a.tensor(0)?) != DType::U8, "all of bytes");
    let not = emit!(e, "aten.logical_not.default", *a.tensor(0)?)?;
    let args: Vec<_> = std::iter::once(Arg::Value(not)).chain(a.0[1..].iter().cloned()).collect();
    let some = first(e.call(any, &args), any)?;
    one_of(emit!(e, "aten.logical_not.default", some)?)
}

pub(super) fn variance(e: &mut dyn Emit, a: &ValArgs<'_>) -> Result<(Val, Val)> {
    // Three overloads: (self, unbiased), (self, dim, unbiased, keepdim) and (self, dim, correction=, keepdim=).
    let x = *a.tensor(0)?;
    let (given, correction, keep) = match a.0.len() {
        2 => (None, a.bool(1)? as i64 as f64, false),
        _ => {
            let c = match a.opt_scalar(2)? {
                None => 1.0,
                Some(Scalar::Bool(b)) => b as i64 as f64,
                Some(s) => s.as_f64(),
            };
            (a.opt_ints(1)?, c, a.bool(3)?)
        }
    };
    let over = dims(e, x, given);
    let correction = if correction.fract() == 0.0 { Scalar::Int(correction as i64) } else { Scalar::Float(correction) };
    let var = emit!(e, "aten.var.correction", x, over.clone(), correction, keep)?;
    let mean = emit!(e, "aten.mean.dim", x, over, keep)?;
    Ok((var, mean))
}

pub(super) fn deviation(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (var, _) = variance(e, a)?;
    one_of(emit!(e, "aten.sqrt.default", var)?)
}

pub(super) fn vector_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    floating(e, x)?;
    ensure!(a.is_none(4), "a norm in another type");
    let (over, keep) = (dims(e, x, a.opt_ints(2)?), a.bool(3)?);
    let order = a.scalar(1)?.as_f64();
    if order == 0.0 {
        let (some, to) = (emit!(e, "aten.ne.Scalar", x, 0)?, dtype(e, x));
        let some = emit!(e, "aten._to_copy.default", some, to)?;
        return one_of(emit!(e, "aten.sum.dim_IntList", some, over, keep)?);
    }
    let sum_of = |e: &mut dyn Emit, v: Val| emit!(e, "aten.sum.dim_IntList", v, over.clone(), keep);
    if order == 2.0 {
        let square = emit!(e, "aten.mul.Tensor", x, x)?;
        let sum = sum_of(e, square)?;
        return one_of(emit!(e, "aten.sqrt.default", sum)?);
    }
    let size = emit!(e, "aten.abs.default", x)?;
    one_of(if order == 1.0 {
        sum_of(e, size)?
    } else if order == f64::INFINITY {
        emit!(e, "aten.amax.default", size, over, keep)?
    } else if order == f64::NEG_INFINITY {
        emit!(e, "aten.amin.default", size, over, keep)?
    } else {
        let power = emit!(e, "aten.pow.Tensor_Scalar", size, order)?;
        let sum = sum_of(e, power)?;
        emit!(e, "aten.pow.Tensor_Scalar", sum, 1.0 / order)?
    })
}

pub(super) fn whole_sum(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let over = all_dims(e, *a.tensor(0)?);
    one_of(emit!(e, "aten.sum.dim_IntList", pass(a, 0), over, false, pass(a, 1))?)
}

pub(super) fn extreme(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str) -> Vals {
    let over = all_dims(e, *a.tensor(0)?);
    one_of(emit!(e, op, pass(a, 0), over, false)?)
}
