//! Core ATen: which operators it has, and how others are said in them.
//!
//! PyTorch tags the operators that it asks every backend to take (`torch.Tag.core`); `scripts/dump_schemas.py` lists them in
//! `data/core.txt`. A form has the operator's meaning; sums may be taken in another order than the operator's own kernel
//! takes them. Views are not here: their view rules say them by the few core ones.

use crate::nn::*;
use restride_ir::{Arg, Args, DType, DecomposeFn, Emit, MemoryFormat, Op, OpError, Scalar, Val};
use smallvec::smallvec;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

static CORE: &str = include_str!("../data/core.txt");

/// Whether PyTorch tags an operator as one of Core ATen.
pub fn is_core(op: Op) -> bool {
    static NAMES: OnceLock<HashSet<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| CORE.lines().collect()).contains(op.name())
}

/// What says an operator by core operators or by others that have such a form: a form from here, or its composition.
pub fn core_form(op: Op) -> Option<DecomposeFn> {
    static NAMES: OnceLock<HashMap<&'static str, DecomposeFn>> = OnceLock::new();
    let forms = NAMES.get_or_init(|| FORMS.iter().flat_map(|(names, f)| names.iter().map(|n| (*n, *f))).collect());
    forms.get(op.name()).copied().or(op.def().decompose)
}

fn one_of(v: Val) -> Vals {
    Ok(smallvec![v])
}

fn dtype(e: &dyn Emit, v: Val) -> DType {
    e.meta(v).dtype
}

/// A 0-d tensor of a number.
fn number(e: &mut dyn Emit, value: Scalar, dtype: DType) -> Result<Val> {
    emit!(e, "aten.full.default", Vec::<i64>::new(), value, dtype)
}

fn all_dims(e: &dyn Emit, v: Val) -> Vec<i64> {
    (0..e.meta(v).rank() as i64).collect()
}

/// The dimensions of an argument; all where it names none.
fn dims(e: &dyn Emit, v: Val, given: Option<restride_ir::Ints>) -> Vec<i64> {
    given.filter(|d| !d.is_empty()).map_or_else(|| all_dims(e, v), |d| d.to_vec())
}

fn floating(e: &dyn Emit, v: Val) -> Result<()> {
    ensure!(dtype(e, v).is_float(), "a form for floating-point tensors alone");
    Ok(())
}

fn swap_last(e: &mut dyn Emit, v: Val) -> Result<Val> {
    let rank = e.meta(v).rank() as i64;
    let mut order: Vec<i64> = (0..rank).collect();
    order.swap(rank as usize - 2, rank as usize - 1);
    emit!(e, "aten.permute.default", v, order)
}

// Products.

/// The rows of a tensor as a matrix.
fn rows(e: &mut dyn Emit, v: Val) -> Result<Val> {
    let n = sizes(e, v);
    if n.len() == 2 {
        return Ok(v);
    }
    let (last, lead) = n.split_last().ok_or_else(|| OpError::new("a product of a 0-d tensor"))?;
    emit!(e, "aten.reshape.default", v, [lead.iter().product(), *last])
}

fn linear(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, w) = (*a.tensor(0)?, *a.tensor(1)?);
    ensure!(e.meta(w).rank() == 2, "linear with a weight that is no matrix");
    let (mut to, flat, wt) = (sizes(e, x), rows(e, x)?, swap_last(e, w)?);
    let made = match a.opt_tensor(2)? {
        Some(b) => emit!(e, "aten.addmm.default", *b, flat, wt)?,
        None => emit!(e, "aten.mm.default", flat, wt)?,
    };
    if to.len() == 2 {
        return one_of(made);
    }
    *to.last_mut().expect("rows were taken") = sizes(e, w)[0];
    one_of(emit!(e, "aten.reshape.default", made, to)?)
}

fn matmul(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (mut x, mut y) = (*a.tensor(0)?, *a.tensor(1)?);
    let (row, column) = (e.meta(x).rank() == 1, e.meta(y).rank() == 1);
    if row {
        x = emit!(e, "aten.unsqueeze.default", x, 0)?;
    }
    if column {
        y = emit!(e, "aten.unsqueeze.default", y, 1)?;
    }
    let (sx, sy) = (sizes(e, x), sizes(e, y));
    ensure!(sx.len() >= 2 && sy.len() >= 2, "matmul of a 0-d tensor");
    let (bx, by) = (&sx[..sx.len() - 2], &sy[..sy.len() - 2]);
    let mut to = crate::iter::broadcast_sizes(&[bx, by])?.to_vec();
    let batch: i64 = to.iter().product();
    let (n, k, m) = (sx[sx.len() - 2], sx[sx.len() - 1], sy[sy.len() - 1]);
    let mut made = if by.is_empty() {
        let x = rows(e, x)?;
        emit!(e, "aten.mm.default", x, y)?
    } else {
        let mut three = |v: Val, own: &[i64], last: [i64; 2]| -> Result<Val> {
            let full: Vec<i64> = to.iter().copied().chain(last).collect();
            let v = if own[..] == to[..] { v } else { emit!(e, "aten.expand.default", v, full)? };
            if to.len() == 1 { Ok(v) } else { emit!(e, "aten.reshape.default", v, [batch, last[0], last[1]]) }
        };
        let (x, y) = (three(x, bx, [n, k])?, three(y, by, [k, m])?);
        emit!(e, "aten.bmm.default", x, y)?
    };
    to.extend((!row).then_some(n).into_iter().chain((!column).then_some(m)));
    if sizes(e, made) != to {
        made = emit!(e, "aten.reshape.default", made, to)?;
    }
    one_of(made)
}

/// `beta * self + alpha * product`.
fn scaled_sum(e: &mut dyn Emit, a: &ValArgs<'_>, product: Val) -> Vals {
    let is_one = |i: usize| a.scalar(i).map(|s| s == Scalar::Int(1));
    let product = if is_one(4)? { product } else { emit!(e, "aten.mul.Scalar", product, pass(a, 4))? };
    if !a.scalar(3)?.as_bool() {
        return one_of(product);
    }
    let x = *a.tensor(0)?;
    let x = if is_one(3)? { x } else { emit!(e, "aten.mul.Scalar", x, pass(a, 3))? };
    one_of(emit!(e, "aten.add.Tensor", x, product)?)
}

fn baddbmm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let product = emit!(e, "aten.bmm.default", *a.tensor(1)?, *a.tensor(2)?)?;
    scaled_sum(e, a, product)
}

fn addmv(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let product = matmul(e, &Args(&a.0[1..3]))?[0];
    scaled_sum(e, a, product)
}

// Convolution, normalization, attention, pooling.

fn conv(e: &mut dyn Emit, a: &ValArgs<'_>, transposed: bool) -> Vals {
    let (mut x, w) = (*a.tensor(0)?, *a.tensor(1)?);
    let rank = e.meta(w).rank();
    let single = e.meta(x).rank() + 1 == rank;
    if single {
        x = emit!(e, "aten.unsqueeze.default", x, 0)?;
    }
    let n = rank - 2;
    let list = |i: usize| spread(a, i, n, "a convolution's window");
    let (stride, padding) = (list(3)?, list(4)?);
    let (dilation, output, groups) = if transposed { (list(7)?, list(5)?, 6) } else { (list(5)?, smallvec![0; n], 6) };
    let made = emit!(
        e,
        "aten.convolution.default",
        x,
        w,
        pass(a, 2),
        stride,
        padding,
        dilation,
        transposed,
        output,
        pass(a, groups)
    )?;
    one_of(if single { emit!(e, "aten.squeeze.dims", made, [0])? } else { made })
}

fn batch_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    ensure!(!a.bool(5)? && !a.is_none(3) && !a.is_none(4), "batch_norm that takes statistics of its input");
    let args = [0, 1, 2, 3, 4, 6, 7].map(|i| pass(a, i));
    one_of(first(e.call("aten._native_batch_norm_legit_no_training.default", &args), "batch norm")?)
}

/// Output, mean and reciprocal deviation of the batch, and the new running statistics.
fn batch_norm_functional(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    ensure!(a.bool(5)?, "batch norm in evaluation");
    let (x, rm, rv) = (*a.tensor(0)?, *a.tensor(3)?, *a.tensor(4)?);
    let n = sizes(e, x);
    let over: Vec<i64> = (0..n.len() as i64).filter(|d| *d != 1).collect();
    let made = emit_all!(
        e,
        "aten._native_batch_norm_legit.no_stats",
        x,
        pass(a, 1),
        pass(a, 2),
        true,
        pass(a, 6),
        pass(a, 7)
    )?;
    let momentum = a.float(6)?;
    let mean = emit!(e, "aten.mean.dim", x, over.clone(), false)?;
    let var = emit!(e, "aten.var.correction", x, over, 1, false)?;
    let mut mixed = |old: Val, new: Val| -> Result<Val> {
        let kept = emit!(e, "aten.mul.Scalar", old, 1.0 - momentum)?;
        let new = emit!(e, "aten.mul.Scalar", new, momentum)?;
        emit!(e, "aten.add.Tensor", kept, new)
    };
    let (rm, rv) = (mixed(rm, mean)?, mixed(rv, var)?);
    Ok(smallvec![made[0], made[1], made[2], rm, rv])
}

fn layer_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    one_of(emit!(e, "aten.native_layer_norm.default", pass(a, 0), pass(a, 1), pass(a, 2), pass(a, 3), pass(a, 4))?)
}

fn group_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let n = sizes(e, x);
    ensure!(n.len() >= 2, "group_norm of a vector");
    let (batch, channels, rest) = (n[0], n[1], n[2..].iter().product::<i64>());
    let (w, b, groups, eps) = (pass(a, 2), pass(a, 3), pass(a, 1), pass(a, 4));
    one_of(emit!(e, "aten.native_group_norm.default", x, w, b, batch, channels, rest, groups, eps)?)
}

fn softmax(e: &mut dyn Emit, a: &ValArgs<'_>, core: &str) -> Vals {
    let mut x = *a.tensor(0)?;
    if let Some(to) = a.opt_dtype(2)?.filter(|d| *d != dtype(e, x)) {
        x = emit!(e, "aten._to_copy.default", x, to)?;
    }
    one_of(emit!(e, core, x, pass(a, 1), false)?)
}

/// Softmax in which a row of nothing but `-inf` is zero.
fn safe_softmax(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let made = softmax(e, a, "aten._softmax.default")?[0];
    let some = emit!(e, "aten.ne.Scalar", x, f64::NEG_INFINITY)?;
    let some = emit!(e, "aten.any.dim", some, pass(a, 1), true)?;
    let to = dtype(e, made);
    let zero = number(e, Scalar::Float(0.0), to)?;
    one_of(emit!(e, "aten.where.self", some, made, zero)?)
}

fn max_pool2d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    one_of(first(e.call("aten.max_pool2d_with_indices.default", a.0), "max_pool2d")?)
}

fn max_pool3d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    one_of(first(e.call("aten.max_pool3d_with_indices.default", a.0), "max_pool3d")?)
}

// Pointwise.

fn silu(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let s = emit!(e, "aten.sigmoid.default", *a.tensor(0)?)?;
    one_of(emit!(e, "aten.mul.Tensor", *a.tensor(0)?, s)?)
}

fn hard(e: &mut dyn Emit, a: &ValArgs<'_>) -> Result<Val> {
    let x = emit!(e, "aten.add.Scalar", *a.tensor(0)?, 3)?;
    emit!(e, "aten.clamp.default", x, 0, 6)
}

fn softplus(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    floating(e, x)?;
    let scaled = emit!(e, "aten.mul.Scalar", x, pass(a, 1))?;
    let raised = emit!(e, "aten.exp.default", scaled)?;
    let raised = emit!(e, "aten.log1p.default", raised)?;
    let curve = emit!(e, "aten.div.Scalar", raised, pass(a, 1))?;
    let line = emit!(e, "aten.gt.Scalar", scaled, pass(a, 2))?;
    one_of(emit!(e, "aten.where.self", line, x, curve)?)
}

fn rsub(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let less = emit!(e, "aten.mul.Scalar", *a.tensor(0)?, Scalar::Int(-1))?;
    let less = if a.scalar(2)? == Scalar::Int(1) { less } else { emit!(e, "aten.mul.Scalar", less, pass(a, 2))? };
    one_of(emit!(e, "aten.add.Scalar", less, pass(a, 1))?)
}

fn masked_fill(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, mask) = (*a.tensor(0)?, *a.tensor(1)?);
    let to = dtype(e, x);
    let value = match a.as_tensor(2) {
        Some(v) if dtype(e, *v) == to => *v,
        Some(v) => emit!(e, "aten._to_copy.default", *v, to)?,
        None => number(e, a.scalar(2)?, to)?,
    };
    one_of(emit!(e, "aten.where.self", mask, value, x)?)
}

/// `where` with numbers among its branches, of the type of the tensor among them.
fn choose(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
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

fn addcmul(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str) -> Vals {
    let product = emit!(e, op, *a.tensor(1)?, *a.tensor(2)?)?;
    let product =
        if a.scalar(3)? == Scalar::Int(1) { product } else { emit!(e, "aten.mul.Scalar", product, pass(a, 3))? };
    one_of(emit!(e, "aten.add.Tensor", *a.tensor(0)?, product)?)
}

fn lerp(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
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

fn isfinite(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    floating(e, x)?;
    let (inf, nan) = (emit!(e, "aten.isinf.default", x)?, emit!(e, "aten.isnan.default", x)?);
    let other = emit!(e, "aten.logical_or.default", inf, nan)?;
    one_of(emit!(e, "aten.logical_not.default", other)?)
}

fn triangle(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str) -> Vals {
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

// Reductions.

fn all(e: &mut dyn Emit, a: &ValArgs<'_>, any: &str) -> Vals {
    ensure!(dtype(e, *a.tensor(0)?) != DType::U8, "all of bytes");
    let not = emit!(e, "aten.logical_not.default", *a.tensor(0)?)?;
    let args: Vec<_> = std::iter::once(Arg::Value(not)).chain(a.0[1..].iter().cloned()).collect();
    let some = first(e.call(any, &args), any)?;
    one_of(emit!(e, "aten.logical_not.default", some)?)
}

fn variance(e: &mut dyn Emit, a: &ValArgs<'_>) -> Result<(Val, Val)> {
    // (self, unbiased), (self, dim, unbiased, keepdim) or (self, dim, correction=, keepdim=).
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

fn deviation(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (var, _) = variance(e, a)?;
    one_of(emit!(e, "aten.sqrt.default", var)?)
}

fn vector_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    floating(e, x)?;
    ensure!(a.is_none(4), "a norm in another type");
    let (over, keep) = (dims(e, x, a.opt_ints(2)?), a.bool(3)?);
    let order = a.scalar(1)?.as_f64();
    let size = emit!(e, "aten.abs.default", x)?;
    one_of(if order == 2.0 {
        let square = emit!(e, "aten.mul.Tensor", x, x)?;
        let sum = emit!(e, "aten.sum.dim_IntList", square, over, keep)?;
        emit!(e, "aten.sqrt.default", sum)?
    } else if order == 1.0 {
        emit!(e, "aten.sum.dim_IntList", size, over, keep)?
    } else if order == f64::INFINITY {
        emit!(e, "aten.amax.default", size, over, keep)?
    } else {
        return fail(format!("a norm of order {order}"));
    })
}

fn whole_sum(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let over = all_dims(e, *a.tensor(0)?);
    one_of(emit!(e, "aten.sum.dim_IntList", pass(a, 0), over, false, pass(a, 1))?)
}

fn extreme(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str) -> Vals {
    let over = all_dims(e, *a.tensor(0)?);
    one_of(emit!(e, op, pass(a, 0), over, false)?)
}

// Made of numbers.

/// `full` of an operand's or of given sizes, in the type that is given or the operand's.
fn filled(e: &mut dyn Emit, a: &ValArgs<'_>, sizes_at: Option<usize>, dtype_at: usize, value: Scalar) -> Vals {
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

fn arange(e: &mut dyn Emit, a: &ValArgs<'_>, start: Option<usize>) -> Vals {
    let end = start.map_or(0, |i| i + 1);
    let from = start.map_or(Ok(Scalar::Int(0)), |i| a.scalar(i))?;
    one_of(emit!(e, "aten.arange.start_step", from, pass(a, end), 1, pass(a, end + 1))?)
}

// Moving data.

fn stack(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
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

fn roll(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
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

fn repeat_interleave(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
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
fn put_along(e: &mut dyn Emit, a: &ValArgs<'_>, value: Val, accumulate: bool) -> Vals {
    let (x, index) = (*a.tensor(0)?, *a.tensor(2)?);
    let rank = e.meta(x).rank() as i64;
    ensure!(rank > 0 && e.meta(index).rank() == 1, "an index into a 0-d tensor");
    let dim = a.int(1)?.rem_euclid(rank) as usize;
    let mut at: Vec<Option<Val>> = vec![None; dim];
    at.push(Some(index));
    one_of(emit!(e, "aten.index_put.default", x, Arg::Values(at), value, accumulate)?)
}

fn index_add(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let source = *a.tensor(3)?;
    let source = if a.scalar(4)? == Scalar::Int(1) { source } else { emit!(e, "aten.mul.Scalar", source, pass(a, 4))? };
    put_along(e, a, source, true)
}

fn index_fill(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let to = dtype(e, *a.tensor(0)?);
    let value = match a.as_tensor(3) {
        Some(v) if dtype(e, *v) == to => *v,
        Some(v) => emit!(e, "aten._to_copy.default", *v, to)?,
        None => number(e, a.scalar(3)?, to)?,
    };
    put_along(e, a, value, false)
}

fn convert(e: &mut dyn Emit, a: &ValArgs<'_>, to: Option<DType>) -> Vals {
    let x = *a.tensor(0)?;
    one_of(match to.filter(|d| *d != dtype(e, x)) {
        Some(to) => emit!(e, "aten._to_copy.default", x, to)?,
        None => emit!(e, "aten.clone.default", x)?,
    })
}

fn without_scales(a: &ValArgs<'_>, from: usize) -> Result<()> {
    ensure!((from..a.0.len()).all(|i| a.is_none(i)), "a scale factor beside the size");
    Ok(())
}

type Form = (&'static [&'static str], DecomposeFn);

/// Another name for an operator with the same arguments.
macro_rules! renamed {
    ($($from:literal => $to:literal),* $(,)?) => {
        [$((&[$from], (|e, a| e.call($to, a.0)) as DecomposeFn)),*]
    };
}

static RENAMED: [Form; 35] = renamed! {
    "aten.__and__.Tensor" => "aten.bitwise_and.Tensor", "aten.__and__.Scalar" => "aten.bitwise_and.Scalar",
    "aten.__or__.Tensor" => "aten.bitwise_or.Tensor", "aten.__or__.Scalar" => "aten.bitwise_or.Scalar",
    "aten.__xor__.Tensor" => "aten.bitwise_xor.Tensor", "aten.__xor__.Scalar" => "aten.bitwise_xor.Scalar",
    "aten.greater.Tensor" => "aten.gt.Tensor", "aten.greater.Scalar" => "aten.gt.Scalar",
    "aten.greater_equal.Tensor" => "aten.ge.Tensor", "aten.greater_equal.Scalar" => "aten.ge.Scalar",
    "aten.less.Tensor" => "aten.lt.Tensor", "aten.less.Scalar" => "aten.lt.Scalar",
    "aten.less_equal.Tensor" => "aten.le.Tensor", "aten.less_equal.Scalar" => "aten.le.Scalar",
    "aten.not_equal.Tensor" => "aten.ne.Tensor", "aten.not_equal.Scalar" => "aten.ne.Scalar",
    "aten.divide.Tensor" => "aten.div.Tensor", "aten.divide.Scalar" => "aten.div.Scalar",
    "aten.divide.Tensor_mode" => "aten.div.Tensor_mode", "aten.divide.Scalar_mode" => "aten.div.Scalar_mode",
    "aten.multiply.Tensor" => "aten.mul.Tensor", "aten.multiply.Scalar" => "aten.mul.Scalar",
    "aten.subtract.Tensor" => "aten.sub.Tensor", "aten.subtract.Scalar" => "aten.sub.Scalar",
    "aten.negative.default" => "aten.neg.default", "aten.absolute.default" => "aten.abs.default",
    "aten.max.other" => "aten.maximum.default", "aten.min.other" => "aten.minimum.default",
    "aten.clip.default" => "aten.clamp.default", "aten.clip.Tensor" => "aten.clamp.Tensor",
    "aten.concat.default" => "aten.cat.default", "aten.concatenate.default" => "aten.cat.default",
    "aten.fix.default" => "aten.trunc.default", "aten.adaptive_avg_pool2d.default" => "aten._adaptive_avg_pool2d.default",
    "aten.adaptive_avg_pool3d.default" => "aten._adaptive_avg_pool3d.default",
};

static FORMS: std::sync::LazyLock<Vec<Form>> =
    std::sync::LazyLock::new(|| RENAMED.iter().chain(SAID).copied().collect());

static SAID: &[Form] = &[
    (&["aten.linear.default"], linear),
    (&["aten.matmul.default", "aten.mv.default", "aten.dot.default", "aten.linalg_matmul.default"], matmul),
    (&["aten.baddbmm.default"], baddbmm),
    (&["aten.addmv.default"], addmv),
    (&["aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default"], |e, a| conv(e, a, false)),
    (&["aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input"], |e, a| {
        conv(e, a, true)
    }),
    (&["aten.batch_norm.default"], batch_norm),
    (&["aten._native_batch_norm_legit_functional.default"], batch_norm_functional),
    (&["aten.layer_norm.default"], layer_norm),
    (&["aten.group_norm.default"], group_norm),
    (&["aten.softmax.int", "aten.special_softmax.default"], |e, a| softmax(e, a, "aten._softmax.default")),
    (&["aten.log_softmax.int", "aten.special_log_softmax.default"], |e, a| softmax(e, a, "aten._log_softmax.default")),
    (&["aten._safe_softmax.default"], safe_softmax),
    (&["aten.max_pool2d.default"], max_pool2d),
    (&["aten.max_pool3d.default"], max_pool3d),
    (&["aten.silu.default"], silu),
    (&["aten.hardsigmoid.default"], |e, a| {
        let x = hard(e, a)?;
        one_of(emit!(e, "aten.div.Scalar", x, 6)?)
    }),
    (&["aten.hardswish.default"], |e, a| {
        let x = hard(e, a)?;
        let x = emit!(e, "aten.mul.Tensor", *a.tensor(0)?, x)?;
        one_of(emit!(e, "aten.div.Scalar", x, 6)?)
    }),
    (&["aten.softplus.default"], softplus),
    (&["aten.mish.default"], |e, a| {
        let curve = emit!(e, "aten.softplus.default", *a.tensor(0)?)?;
        let curve = emit!(e, "aten.tanh.default", curve)?;
        one_of(emit!(e, "aten.mul.Tensor", *a.tensor(0)?, curve)?)
    }),
    (&["aten.relu6.default"], |e, a| one_of(emit!(e, "aten.hardtanh.default", pass(a, 0), 0, 6)?)),
    (&["aten.square.default"], |e, a| one_of(emit!(e, "aten.mul.Tensor", pass(a, 0), pass(a, 0))?)),
    (&["aten.exp2.default"], |e, a| one_of(emit!(e, "aten.pow.Scalar", 2, pass(a, 0))?)),
    (&["aten.rsub.Scalar"], rsub),
    (&["aten.rsub.Tensor"], |e, a| one_of(emit!(e, "aten.sub.Tensor", pass(a, 1), pass(a, 0), pass(a, 2))?)),
    (&["aten.clamp_min.default"], |e, a| one_of(emit!(e, "aten.clamp.default", pass(a, 0), pass(a, 1), ())?)),
    (&["aten.clamp_max.default"], |e, a| one_of(emit!(e, "aten.clamp.default", pass(a, 0), (), pass(a, 1))?)),
    (&["aten.clamp_min.Tensor"], |e, a| one_of(emit!(e, "aten.clamp.Tensor", pass(a, 0), pass(a, 1), ())?)),
    (&["aten.clamp_max.Tensor"], |e, a| one_of(emit!(e, "aten.clamp.Tensor", pass(a, 0), (), pass(a, 1))?)),
    (&["aten.masked_fill.Scalar", "aten.masked_fill.Tensor"], masked_fill),
    (&["aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar"], choose),
    (&["aten.addcmul.default"], |e, a| addcmul(e, a, "aten.mul.Tensor")),
    (&["aten.addcdiv.default"], |e, a| addcmul(e, a, "aten.div.Tensor")),
    (&["aten.lerp.Scalar"], lerp),
    (&["aten.isfinite.default"], isfinite),
    (&["aten.floor_divide.default"], |e, a| one_of(emit!(e, "aten.div.Tensor_mode", pass(a, 0), pass(a, 1), "floor")?)),
    (&["aten.floor_divide.Scalar"], |e, a| one_of(emit!(e, "aten.div.Scalar_mode", pass(a, 0), pass(a, 1), "floor")?)),
    (&["aten.tril.default"], |e, a| triangle(e, a, "aten.le.Scalar")),
    (&["aten.triu.default"], |e, a| triangle(e, a, "aten.ge.Scalar")),
    (&["aten.all.default"], |e, a| all(e, a, "aten.any.default")),
    (&["aten.all.dim"], |e, a| all(e, a, "aten.any.dim")),
    (&["aten.all.dims"], |e, a| all(e, a, "aten.any.dims")),
    (&["aten.var.default"], |e, a| one_of(variance(e, a)?.0)),
    (&["aten.std.default", "aten.std.dim", "aten.std.correction"], deviation),
    (&["aten.var_mean.default", "aten.var_mean.dim", "aten.var_mean.correction"], |e, a| {
        let (var, mean) = variance(e, a)?;
        Ok(smallvec![var, mean])
    }),
    (&["aten.linalg_vector_norm.default"], vector_norm),
    (&["aten.sum.default"], whole_sum),
    (&["aten.max.default"], |e, a| extreme(e, a, "aten.amax.default")),
    (&["aten.min.default"], |e, a| extreme(e, a, "aten.amin.default")),
    (&["aten.zeros.default"], |e, a| filled(e, a, Some(0), 1, Scalar::Int(0))),
    (&["aten.ones.default"], |e, a| filled(e, a, Some(0), 1, Scalar::Int(1))),
    (&["aten.zeros_like.default"], |e, a| filled(e, a, None, 1, Scalar::Int(0))),
    (&["aten.ones_like.default"], |e, a| filled(e, a, None, 1, Scalar::Int(1))),
    (&["aten.new_zeros.default"], |e, a| filled(e, a, Some(1), 2, Scalar::Int(0))),
    (&["aten.new_ones.default"], |e, a| filled(e, a, Some(1), 2, Scalar::Int(1))),
    (&["aten.new_full.default"], |e, a| filled(e, a, Some(1), 3, a.scalar(2)?)),
    (&["aten.zero.default"], |e, a| one_of(emit!(e, "aten.full_like.default", pass(a, 0), 0)?)),
    (&["aten.arange.default"], |e, a| arange(e, a, None)),
    (&["aten.arange.start"], |e, a| arange(e, a, Some(0))),
    (&["aten.stack.default"], stack),
    (&["aten.roll.default"], roll),
    (&["aten.repeat_interleave.self_int"], repeat_interleave),
    (&["aten.index_copy.default"], |e, a| put_along(e, a, *a.tensor(3)?, false)),
    (&["aten.index_add.default"], index_add),
    (&["aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor"], index_fill),
    (&["aten.to.dtype"], |e, a| convert(e, a, a.opt_dtype(1)?)),
    (&["aten.to.device"], |e, a| convert(e, a, a.opt_dtype(2)?)),
    (&["aten.to.dtype_layout"], |e, a| convert(e, a, a.opt_dtype(1)?)),
    (&["aten.to.other", "aten.type_as.default"], |e, a| {
        let to = dtype(e, *a.tensor(1)?);
        convert(e, a, Some(to))
    }),
    (&["aten.lift_fresh_copy.default"], |e, a| one_of(emit!(e, "aten.clone.default", pass(a, 0))?)),
    (&["aten.contiguous.default"], |e, a| {
        one_of(emit!(e, "aten.clone.default", pass(a, 0), Arg::MemoryFormat(MemoryFormat::Contiguous))?)
    }),
    (&["aten.dropout.default"], |e, a| {
        ensure!(!a.bool(2)? || a.float(1)? == 0.0, "dropout that drops");
        one_of(emit!(e, "aten.clone.default", pass(a, 0))?)
    }),
    (&["aten.upsample_nearest2d.default"], |e, a| {
        without_scales(a, 2)?;
        one_of(emit!(e, "aten.upsample_nearest2d.vec", pass(a, 0), pass(a, 1), ())?)
    }),
    (&["aten.upsample_bilinear2d.default"], |e, a| {
        without_scales(a, 3)?;
        one_of(emit!(e, "aten.upsample_bilinear2d.vec", pass(a, 0), pass(a, 1), pass(a, 2), ())?)
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::lookup;

    #[test]
    fn every_name_is_an_operator() {
        for name in CORE.lines() {
            assert!(lookup(name).is_some(), "{name}");
        }
        for name in FORMS.iter().flat_map(|(names, _)| names.iter()) {
            let op = lookup(name).unwrap_or_else(|| panic!("{name}"));
            assert!(!is_core(op) && !op.is_mutable(), "{name}");
        }
    }
}
