//! Products composed of others: `outer`, `addr`, `addbmm`, `bilinear`, `inner`, `tensordot`, and products of bytes.

use crate::matmul::bmm_meta;
use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Args, DType, Emit, Meta, OpDef, OpError, OverlapCheck};
use smallvec::smallvec;

/// `_int_mm(self, mat2)`: a product of bytes in 32 bits, which wraps.
fn int_mm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    let (own, other) = (e.meta(x).dtype, e.meta(y).dtype);
    ensure!(
        matches!(own, DType::I8 | DType::U8),
        "Expected self dtype to be int8 or uint8 but got {}",
        crate::support::promote::name(own)
    );
    ensure!(other == DType::I8, "Expected mat2 dtype to be int8 but got {}", crate::support::promote::name(other));
    // Sums below 2^24 are exact as singles, and below 2^31 as doubles, in any order: products of floats are many times as fast.
    let most: i64 = if own == DType::U8 { 255 * 128 } else { 128 * 128 };
    let exact = match e.meta(x).sizes().last().and_then(|k| k.checked_mul(most)) {
        Some(sum) if sum <= 1 << 24 => DType::F32,
        Some(sum) if sum < 1 << 31 => DType::F64,
        _ => DType::I32,
    };
    let (x, y) = (to(e, x, exact)?, to(e, y, exact)?);
    let product = emit!(e, "aten.mm.default", x, y)?;
    Ok(smallvec![to(e, product, DType::I32)?])
}

/// `_weight_int8pack_mm(self, mat2, scales)`: a product with rows of bytes, each with a scale, summed in f32.
fn weight_bytes_mm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, w, scales) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (own, rows, factors) = (e.meta(x).clone(), e.meta(w).clone(), e.meta(scales).clone());
    ensure!(
        matches!(own.dtype, DType::F32 | DType::F16 | DType::BF16),
        "_weight_int8pack_mm_cpu : expect A to be either 32-bit or 16-bit float tensor."
    );
    ensure!(own.rank() == 2, "_weight_int8pack_mm_cpu : expect A to be 2D tensor.");
    ensure!(rows.dtype == DType::I8, "_weight_int8pack_mm_cpu : expect B to be int8 tensor.");
    let k = own.sizes()[1];
    ensure!(rows.rank() == 2 && rows.sizes()[1] == k, "_weight_int8pack_mm_cpu : expect B.size(1) == {k}");
    let n = rows.sizes()[0];
    ensure!(factors.sizes() == [n], "_weight_int8pack_mm_cpu : expect scales to be 1d tensor with size {n}");
    ensure!(factors.dtype == own.dtype, "expected scales of the element type of A");
    let w = emit!(e, "aten.t.default", w)?;
    let (x, w, scales) = (to(e, x, DType::F32)?, to(e, w, DType::F32)?, to(e, scales, DType::F32)?);
    let product = emit!(e, "aten.mm.default", x, w)?;
    let product = emit!(e, "aten.mul.Tensor", product, scales)?;
    Ok(smallvec![to(e, product, own.dtype)?])
}

fn outer(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    for (v, name) in [(x, "self"), (y, "vec2")] {
        let rank = e.meta(v).rank();
        ensure!(rank == 1, "outer: Expected 1-D argument {name}, but got {rank}-D");
    }
    let column = emit!(e, "aten.unsqueeze.default", x, 1)?;
    Ok(smallvec![emit!(e, "aten.mul.Tensor", column, y)?])
}

fn addr(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let truth = (0..3).map(|i| Ok(e.meta(*a.tensor(i)?).dtype == DType::Bool)).collect::<Result<Vec<_>>>()?;
    let sum = sum_of_products(e, a)?[0];
    // With `bool` operands the result is `bool`, whatever the compute type.
    let truth = truth.iter().all(|&t| t);
    Ok(smallvec![if truth { emit!(e, "aten.to.dtype", sum, DType::Bool)? } else { sum }])
}

fn sum_of_products(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let product = outer(e, &Args(&a.0[1..3]))?[0];
    let product = emit!(e, "aten.mul.Scalar", product, pass(a, 4))?;
    // A factor of zero skips its operand, as in the other products.
    if !a.scalar(3)?.as_bool() {
        return Ok(smallvec![product]);
    }
    let scaled = emit!(e, "aten.mul.Scalar", *a.tensor(0)?, pass(a, 3))?;
    Ok(smallvec![emit!(e, "aten.add.Tensor", scaled, product)?])
}

/// `addbmm` as one matrix product with a longer sum: `[n, b m] @ [b m, p]`.
fn addbmm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(1)?, *a.tensor(2)?);
    bmm_meta(&e.meta(x), &e.meta(y))?;
    let (sx, sy) = (sizes(e, x), sizes(e, y));
    let rows = emit!(e, "aten.permute.default", x, [1, 0, 2])?;
    let rows = emit!(e, "aten.reshape.default", rows, [sx[1], sx[0] * sx[2]])?;
    let cols = emit!(e, "aten.reshape.default", y, [sy[0] * sy[1], sy[2]])?;
    Ok(smallvec![emit!(e, "aten.addmm.default", *a.tensor(0)?, rows, cols, pass(a, 3), pass(a, 4))?])
}

/// `out[.., o] = sum(x1[.., i] w[o, i, j] x2[.., j]) + bias[o]`
fn bilinear(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y, w) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (sx, sy, sw) = (sizes(e, x), sizes(e, y), sizes(e, w));
    ensure!(sw.len() == 3 && !sx.is_empty() && !sy.is_empty(), "bilinear(): the weight must have 3 dimensions");
    ensure!(
        sx[..sx.len() - 1] == sy[..sy.len() - 1],
        "bilinear(): input batch dimensions do not match: {sx:?} and {sy:?}"
    );
    ensure!(
        sx[sx.len() - 1] == sw[1] && sy[sy.len() - 1] == sw[2],
        "bilinear(): input sizes do not match weight size: {sx:?}, {sy:?} and {sw:?}"
    );
    let rows: i64 = sx[..sx.len() - 1].iter().product();
    let (i, j, o) = (sw[1], sw[2], sw[0]);
    let x = emit!(e, "aten.reshape.default", x, [rows, i])?;
    let y = emit!(e, "aten.reshape.default", y, [rows, 1, j])?;
    let w = emit!(e, "aten.permute.default", w, [1, 0, 2])?;
    let w = emit!(e, "aten.reshape.default", w, [i, o * j])?;
    let xw = emit!(e, "aten.mm.default", x, w)?;
    let xw = emit!(e, "aten.view.default", xw, [rows, o, j])?;
    let product = emit!(e, "aten.mul.Tensor", xw, y)?;
    let sum = emit!(e, "aten.sum.dim_IntList", product, [-1], false, ())?;
    let shape: Vec<i64> = sx[..sx.len() - 1].iter().copied().chain([o]).collect();
    let out = emit!(e, "aten.view.default", sum, shape)?;
    match a.opt_tensor(3)? {
        Some(b) => Ok(smallvec![emit!(e, "aten.add.Tensor", out, *b)?]),
        None => Ok(smallvec![out]),
    }
}

fn inner(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    let (sx, sy) = (sizes(e, x), sizes(e, y));
    if sx.is_empty() || sy.is_empty() {
        return Ok(smallvec![emit!(e, "aten.mul.Tensor", x, y)?]);
    }
    let dims = [[sx.len() as i64 - 1], [sy.len() as i64 - 1]];
    Ok(smallvec![emit!(e, "aten.tensordot.default", x, y, dims[0], dims[1])?])
}

fn tensordot(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (mut x, mut y) = (*a.tensor(0)?, *a.tensor(1)?);
    let (mx, my) = (e.meta(x), e.meta(y));
    let wrap = |m: &Meta, dims: restride_ir::Ints| -> Result<Vec<usize>> {
        dims.into_iter().map(|d| m.layout.dim(d).map_err(OpError::from)).collect()
    };
    let (dx, dy) = (wrap(&mx, a.ints(2)?)?, wrap(&my, a.ints(3)?)?);
    ensure!(dx.len() == dy.len(), "both dimension lists should have same length");
    ensure!(mx.dtype == my.dtype, "both inputs should have same dtype");
    let mut shared = 1;
    for (&i, &j) in dx.iter().zip(&dy) {
        let (m, n) = (mx.sizes()[i], my.sizes()[j]);
        // A dimension that broadcasts is summed before the product; one of equal symbolic sizes never does.
        if m == n && e.any_sizes() {
            shared *= m;
        } else if n == 1 {
            x = emit!(e, "aten.sum.dim_IntList", x, [i as i64], true, ())?;
        } else if m == 1 {
            y = emit!(e, "aten.sum.dim_IntList", y, [j as i64], true, ())?;
        } else {
            ensure!(
                m == n,
                "contracted dimensions need to match, but first has size {m} in dim {i} and second has size {n} in dim {j}"
            );
            shared *= m;
        }
    }
    let free = |rank: usize, taken: &[usize]| -> Vec<usize> { (0..rank).filter(|d| !taken.contains(d)).collect() };
    let (fx, fy) = (free(mx.rank(), &dx), free(my.rank(), &dy));
    let out: Vec<i64> = fx.iter().map(|&d| mx.sizes()[d]).chain(fy.iter().map(|&d| my.sizes()[d])).collect();
    let perm = |a: &[usize], b: &[usize]| -> Vec<i64> { a.iter().chain(b).map(|&d| d as i64).collect() };
    let x = emit!(e, "aten.permute.default", x, perm(&fx, &dx))?;
    let y = emit!(e, "aten.permute.default", y, perm(&dy, &fy))?;
    let x = emit!(e, "aten.reshape.default", x, [out[..fx.len()].iter().product(), shared])?;
    let y = emit!(e, "aten.reshape.default", y, [shared, out[fx.len()..].iter().product()])?;
    let product = emit!(e, "aten.mm.default", x, y)?;
    Ok(smallvec![emit!(e, "aten.reshape.default", product, out)?])
}

/// Sums a product of three tensors over some dimensions; each first gets dimensions of size 1 at the given positions.
fn trilinear(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let mut factors = Vec::new();
    for k in 0..3 {
        let mut x = *a.tensor(k)?;
        let mut expand = a.ints(3 + k)?;
        expand.sort_unstable();
        for d in expand {
            x = emit!(e, "aten.unsqueeze.default", x, d)?;
        }
        factors.push(x);
    }
    let product = emit!(e, "aten.mul.Tensor", factors[0], factors[1])?;
    let product = emit!(e, "aten.mul.Tensor", product, factors[2])?;
    let over: Vec<i64> = a.ints(6)?.to_vec();
    if over.is_empty() {
        return Ok(smallvec![product]);
    }
    Ok(smallvec![emit!(e, "aten.sum.dim_IntList", product, over, false, ())?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(outer, outer_samples(), "outer"),
    composite!(addr, addr_samples(), "addr"),
    OpDef { overlap: OverlapCheck::Unseen, ..composite!(addbmm, addbmm_samples(), "addbmm") },
    composite!(trilinear, trilinear_samples(), "_trilinear"),
    composite!(bilinear, bilinear_samples(), "bilinear"),
    composite!(tensordot, tensordot_samples(), "tensordot"),
    composite!(inner, inner_samples(), "inner"),
    composite!(int_mm, int_mm_samples(), "_int_mm"),
    composite!(weight_bytes_mm, weight_bytes_mm_samples(), "_weight_int8pack_mm"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn int_mm_samples() -> Samples {
        let (i, u) = (DType::I8, DType::U8);
        vec![
            sample![tensor(i, &[3, 4], 1), tensor(i, &[4, 5], 2)],
            sample![transposed(u, &[3, 4], 1), transposed(i, &[4, 5], 2)],
            sample![tensor(i, &[0, 4], 1), tensor(i, &[4, 5], 2)],
            sample![tensor(i, &[2, 1100], 1), tensor(i, &[1100, 3], 2)],
            sample![tensor(i, &[3, 4], 1), tensor(i, &[3, 5], 2)],
            sample![tensor(i, &[3, 4], 1), tensor(u, &[4, 5], 2)],
            sample![tensor(DType::I32, &[3, 4], 1), tensor(DType::I32, &[4, 5], 2)],
        ]
    }

    pub(crate) fn weight_bytes_mm_samples() -> Samples {
        let (i, f) = (DType::I8, DType::F32);
        let mut out: Vec<_> = [f, DType::BF16, DType::F16]
            .map(|d| sample![tensor(d, &[3, 4], 1), tensor(i, &[5, 4], 2), tensor(d, &[5], 3)])
            .into();
        out.extend([
            sample![tensor(f, &[3, 4], 1), tensor(i, &[5, 3], 2), tensor(f, &[5], 3)],
            sample![tensor(f, &[3, 4], 1), tensor(i, &[5, 4], 2), tensor(f, &[4], 3)],
            sample![tensor(f, &[3, 4], 1), tensor(i, &[5, 4], 2), tensor(DType::BF16, &[5], 3)],
        ]);
        out
    }

    pub(crate) fn trilinear_samples() -> Samples {
        let d = DType::F32;
        let none: [i64; 0] = [];
        let (x, y, w) = (tensor(d, &[2, 4], 0), tensor(d, &[2, 5], 1), tensor(d, &[6, 4, 5], 2));
        vec![
            sample![tensor(d, &[2, 3], 0), tensor(d, &[2, 3], 1), tensor(d, &[2, 3], 2), none, none, none, [1]],
            sample![&x, &w, &y, [1, 3], [0], [1, 2], [2, 3]],
        ]
    }

    pub(crate) fn outer_samples() -> Samples {
        vec![
            sample![tensor(DType::F32, &[3], 1), strided(DType::F32, &[4], 2)],
            sample![tensor(DType::F32, &[3], 1), tensor(DType::F64, &[4], 2)],
            sample![ints(&[1, 2, 3], &[3]), tensor(DType::F16, &[2], 2)],
            sample![tensor(DType::Bool, &[3], 1), tensor(DType::Bool, &[0], 2)],
        ]
    }

    pub(crate) fn addr_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[3, 4], 0), tensor(d, &[3], 1), strided(d, &[4], 2)],
            sample![tensor(d, &[4], 0), tensor(d, &[3], 1), strided(d, &[4], 2), 2.0, 0.5],
            sample![tensor(d, &[4], 0), tensor(d, &[3], 1), strided(d, &[4], 2), 0, 2],
            sample![tensor(DType::Bool, &[3, 4], 0), tensor(DType::Bool, &[3], 1), tensor(DType::Bool, &[4], 2)],
        ]
    }

    pub(crate) fn addbmm_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[3, 5], 0), tensor(d, &[2, 3, 4], 1), transposed(d, &[2, 4, 5], 2)],
            sample![tensor(d, &[5], 0), strided(d, &[2, 3, 4], 1), tensor(d, &[2, 4, 5], 2), 2.0, -1.0],
        ]
    }

    pub(crate) fn bilinear_samples() -> Samples {
        let d = DType::F32;
        let (x, y, w) = (tensor(d, &[2, 3, 4], 0), tensor(d, &[2, 3, 5], 1), tensor(d, &[6, 4, 5], 2));
        vec![
            sample![&x, &y, &w],
            sample![&x, &y, &w, tensor(d, &[6], 3)],
            sample![tensor(d, &[4], 0), tensor(d, &[5], 1), &w],
        ]
    }

    pub(crate) fn tensordot_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[3, 4, 5], 0), tensor(d, &[4, 3, 2], 1), [1, 0], [0, 1]],
            sample![transposed(d, &[3, 4, 5], 0), tensor(d, &[5, 2], 1), [-1], [0]],
            sample![tensor(d, &[3, 1], 0), tensor(d, &[5, 2], 1), [1], [0]],
        ]
    }

    pub(crate) fn inner_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[3, 4], 0), tensor(d, &[2, 4], 1)],
            sample![tensor(d, &[4], 0), tensor(d, &[4], 1)],
            sample![tensor(d, &[], 0), tensor(d, &[4], 1)],
        ]
    }
}
