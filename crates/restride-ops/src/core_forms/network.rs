//! Core decompositions of products, convolution, normalization, attention and pooling.

use super::*;

/// Reshapes a tensor to a matrix of its rows.
pub(super) fn rows(e: &mut dyn Emit, v: Val) -> Result<Val> {
    let n = sizes(e, v);
    if n.len() == 2 {
        return Ok(v);
    }
    let (last, lead) = n.split_last().ok_or_else(|| OpError::new("a product of a 0-d tensor"))?;
    emit!(e, "aten.reshape.default", v, [lead.iter().product(), *last])
}

pub(super) fn linear(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
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

pub(super) fn matmul(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
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
    let mut to = crate::support::strides::broadcast_sizes(&[bx, by])?.to_vec();
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
pub(super) fn scaled_sum(e: &mut dyn Emit, a: &ValArgs<'_>, product: Val) -> Vals {
    let is_one = |i: usize| a.scalar(i).map(|s| s == Scalar::Int(1));
    let product = if is_one(4)? { product } else { emit!(e, "aten.mul.Scalar", product, pass(a, 4))? };
    if !a.scalar(3)?.as_bool() {
        return one_of(product);
    }
    let x = *a.tensor(0)?;
    let x = if is_one(3)? { x } else { emit!(e, "aten.mul.Scalar", x, pass(a, 3))? };
    one_of(emit!(e, "aten.add.Tensor", x, product)?)
}

pub(super) fn baddbmm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let product = emit!(e, "aten.bmm.default", *a.tensor(1)?, *a.tensor(2)?)?;
    scaled_sum(e, a, product)
}

pub(super) fn addmv(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let product = matmul(e, &Args(&a.0[1..3]))?[0];
    scaled_sum(e, a, product)
}

pub(super) fn conv(e: &mut dyn Emit, a: &ValArgs<'_>, transposed: bool) -> Vals {
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

pub(super) fn batch_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    ensure!(!a.bool(5)? && !a.is_none(3) && !a.is_none(4), "batch_norm that takes statistics of its input");
    let args = [0, 1, 2, 3, 4, 6, 7].map(|i| pass(a, i));
    one_of(first(e.call("aten._native_batch_norm_legit_no_training.default", &args), "batch norm")?)
}

/// Output, batch mean, reciprocal batch deviation, and the updated running statistics.
pub(super) fn batch_norm_functional(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
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
    // PyTorch computes statistics of 16-bit floats in f32, and rounds what it stores.
    let wide = |e: &mut dyn Emit, v: Val| if is_16_bit(dtype(e, v)) { to(e, v, DType::F32) } else { Ok(v) };
    let x = wide(e, x)?;
    let mean = emit!(e, "aten.mean.dim", x, over.clone(), false)?;
    let var = emit!(e, "aten.var.correction", x, over, 1, false)?;
    let mut mixed = |old: Val, new: Val| -> Result<Val> {
        let own = dtype(e, old);
        let old = wide(e, old)?;
        let kept = emit!(e, "aten.mul.Scalar", old, 1.0 - momentum)?;
        let new = emit!(e, "aten.mul.Scalar", new, momentum)?;
        let sum = emit!(e, "aten.add.Tensor", kept, new)?;
        to(e, sum, own)
    };
    let (rm, rv) = (mixed(rm, mean)?, mixed(rv, var)?);
    Ok(smallvec![made[0], made[1], made[2], rm, rv])
}

pub(super) fn layer_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    one_of(emit!(e, "aten.native_layer_norm.default", pass(a, 0), pass(a, 1), pass(a, 2), pass(a, 3), pass(a, 4))?)
}

pub(super) fn group_norm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let n = sizes(e, x);
    ensure!(n.len() >= 2, "group_norm of a vector");
    let (batch, channels, rest) = (n[0], n[1], n[2..].iter().product::<i64>());
    let (w, b, groups, eps) = (pass(a, 2), pass(a, 3), pass(a, 1), pass(a, 4));
    one_of(emit!(e, "aten.native_group_norm.default", x, w, b, batch, channels, rest, groups, eps)?)
}

pub(super) fn softmax(e: &mut dyn Emit, a: &ValArgs<'_>, core: &str) -> Vals {
    let mut x = *a.tensor(0)?;
    if let Some(to) = a.opt_dtype(2)?.filter(|d| *d != dtype(e, x)) {
        x = emit!(e, "aten._to_copy.default", x, to)?;
    }
    one_of(emit!(e, core, x, pass(a, 1), false)?)
}

/// Softmax in which a row of only `-inf` becomes zeros.
pub(super) fn safe_softmax(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let made = softmax(e, a, "aten._softmax.default")?[0];
    let some = emit!(e, "aten.ne.Scalar", x, f64::NEG_INFINITY)?;
    let some = emit!(e, "aten.any.dim", some, pass(a, 1), true)?;
    let to = dtype(e, made);
    let zero = number(e, Scalar::Float(0.0), to)?;
    one_of(emit!(e, "aten.where.self", some, made, zero)?)
}

pub(super) fn max_pool2d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    one_of(first(e.call("aten.max_pool2d_with_indices.default", a.0), "max_pool2d")?)
}

pub(super) fn max_pool3d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    one_of(first(e.call("aten.max_pool3d_with_indices.default", a.0), "max_pool3d")?)
}
