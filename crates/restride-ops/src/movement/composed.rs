//! Operators that PyTorch composes of views, `cat` and products: diagonals, `kron`, `cross`, `_chunk_cat`, `renorm`,
//! `nanmean`, `sum_to_size`.

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Arg, DType, Emit, OpDef, Val};
use smallvec::smallvec;

/// `_chunk_cat(tensors, dim, num_chunks)`: pads each tensor, cuts it into chunks along `dim`, and joins chunks of equal position.
fn chunk_cat(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let tensors: Vec<Val> = a.tensors(0)?.into_iter().copied().collect();
    let chunks = a.int(2)?;
    ensure!(chunks >= 1, "_chunk_cat expects positive num_chunks");
    let Some(&first) = tensors.first() else {
        return fail("_chunk_cat expects a non-empty input tensor list");
    };
    let dim = e.meta(first).layout.dim(a.int(1)?)?;
    let dtype = e.meta(first).dtype;
    let leading = sizes(e, first)[..dim].to_vec();
    let mut parts = Vec::new();
    for t in tensors {
        let s = sizes(e, t);
        ensure!(s.len() > dim && s.iter().all(|&n| n > 0), "_chunk_cat expects non-empty tensor");
        ensure!(e.meta(t).dtype == dtype, "_chunk_cat expects all input tensors with the same dtype");
        ensure!(
            s[..dim] == leading[..],
            "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all input tensors"
        );
        let whole = (s[dim] + chunks - 1) / chunks * chunks;
        let mut t = t;
        if whole != s[dim] {
            let mut pad = vec![0; 2 * (s.len() - dim)];
            if let Some(end) = pad.last_mut() {
                *end = whole - s[dim];
            }
            t = emit!(e, "aten.constant_pad_nd.default", t, pad, 0)?;
        }
        let rest: i64 = s[dim + 1..].iter().product::<i64>() * (whole / chunks);
        let shape: Vec<i64> = leading.iter().copied().chain([chunks, rest]).collect();
        parts.push(emit!(e, "aten.reshape.default", t, shape)?);
    }
    Ok(smallvec![emit!(e, "aten.cat.default", parts, dim as i64 + 1)?])
}

/// `pad_sequence(sequences, batch_first, padding_value, padding_side)`: sequences of different lengths as one tensor.
fn pad_sequence(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let tensors: Vec<Val> = a.tensors(0)?.into_iter().copied().collect();
    let side = a.str(3)?;
    ensure!(matches!(side, "left" | "right"), "Expected padding_side to be one of left or right, but got {side}.");
    let Some(&first) = tensors.first() else { return fail("received an empty list of sequences") };
    let first = e.meta(first);
    ensure!(!first.sizes().is_empty(), "pad_sequence expects sequences with at least one dimension");
    let mut whole = first.sizes().to_vec();
    for &t in &tensors {
        let s = sizes(e, t);
        ensure!(!s.is_empty(), "pad_sequence expects sequences with at least one dimension");
        whole[0] = whole[0].max(s[0]);
    }
    let mut parts = Vec::new();
    for t in tensors {
        // Later sequences are copied into a tensor like the first one: they take its type and broadcast to its shape.
        let mut t = to(e, t, first.dtype)?;
        let n = sizes(e, t)[0];
        let shape: Vec<i64> = [n].into_iter().chain(whole[1..].iter().copied()).collect();
        if sizes(e, t) != shape {
            t = emit!(e, "aten.broadcast_to.default", t, shape)?;
        }
        let mut pad = vec![0; 2 * whole.len()];
        pad[2 * whole.len() - if side == "left" { 2 } else { 1 }] = whole[0] - n;
        parts.push(emit!(e, "aten.constant_pad_nd.default", t, pad, a.float(2)?)?);
    }
    let joined = emit!(e, "aten.stack.default", parts, i64::from(!a.bool(1)?))?;
    Ok(smallvec![emit!(e, "aten.contiguous.default", joined)?])
}

fn each(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str) -> Vals {
    let tensors: Vec<Val> = a.tensors(0)?.into_iter().copied().collect();
    tensors.into_iter().map(|t| emit!(e, op, t)).collect()
}
fn atleast_1d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    each(e, a, "aten.atleast_1d.default")
}
fn atleast_2d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    each(e, a, "aten.atleast_2d.default")
}
fn atleast_3d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    each(e, a, "aten.atleast_3d.default")
}

/// Places the last dimension on a diagonal of two new dimensions.
fn embedded(e: &mut dyn Emit, x: Val, offset: i64, dims: (i64, i64)) -> Result<Val> {
    let meta = e.meta(x);
    let mut shape = meta.sizes().to_vec();
    let rank = shape.len() as i64 + 1;
    let wrap = |d: i64| -> Result<i64> {
        ensure!(
            (-rank..rank).contains(&d),
            "Dimension out of range (expected to be in range of [{}, {}], but got {d})",
            -rank,
            rank - 1
        );
        Ok(d.rem_euclid(rank))
    };
    let (d1, d2) = (wrap(dims.0)?, wrap(dims.1)?);
    ensure!(d1 != d2, "diagonal dimensions cannot be identical {}, {}", dims.0, dims.1);
    let Some(n) = shape.pop() else { return fail("diag_embed needs at least one dimension") };
    ensure!(offset.unsigned_abs() < 1 << 40, "diag_embed: the offset is out of range: {offset}");
    let side = n + offset.abs();
    shape.insert(d1.min(d2) as usize, side);
    shape.insert(d1.max(d2) as usize, side);
    let zeros = emit!(e, "aten.full.default", shape, 0, meta.dtype)?;
    emit!(e, "aten.diagonal_scatter.default", zeros, x, offset, d1, d2)
}
fn diag_embed(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![embedded(e, *a.tensor(0)?, a.int(1)?, (a.int(2)?, a.int(3)?))?])
}
/// The diagonal matrix of a vector, or the diagonal of a matrix.
fn diag(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, offset) = (*a.tensor(0)?, a.int(1)?);
    Ok(smallvec![match e.meta(x).rank() {
        1 => embedded(e, x, offset, (-2, -1))?,
        2 => emit!(e, "aten.diagonal_copy.default", x, offset, 0, 1)?,
        rank => return fail(format!("diag(): Supports 1D or 2D tensors. Got {rank}D")),
    }])
}
fn diagflat(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let n: i64 = sizes(e, x).iter().product();
    let flat = emit!(e, "aten.reshape.default", x, [n])?;
    Ok(smallvec![embedded(e, flat, a.int(1)?, (-2, -1))?])
}

/// Multiplies every element of the first tensor by the whole second tensor.
fn kron(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    let (sx, sy) = (sizes(e, x), sizes(e, y));
    let rank = sx.len().max(sy.len());
    let wide = |s: &[i64], second: bool| -> (Vec<i64>, Vec<i64>) {
        let padded: Vec<i64> = std::iter::repeat_n(1, rank - s.len()).chain(s.iter().copied()).collect();
        let pairs = padded.iter().flat_map(|&n| if second { [1, n] } else { [n, 1] }).collect();
        (padded, pairs)
    };
    let ((px, wx), (py, wy)) = (wide(&sx, false), wide(&sy, true));
    let x = emit!(e, "aten.reshape.default", x, wx)?;
    let y = emit!(e, "aten.reshape.default", y, wy)?;
    let product = emit!(e, "aten.mul.Tensor", x, y)?;
    let shape: Vec<i64> = px.iter().zip(&py).map(|(m, n)| m * n).collect();
    Ok(smallvec![emit!(e, "aten.reshape.default", product, shape)?])
}

/// The cross product along a dimension of size 3; other dimensions broadcast.
fn crossed(e: &mut dyn Emit, x: Val, y: Val, dim: i64) -> Vals {
    let (mx, my) = (e.meta(x), e.meta(y));
    ensure!(mx.rank() == my.rank(), "linalg.cross: inputs must have the same number of dimensions.");
    ensure!(mx.dtype == my.dtype, "linalg.cross: expected {} and {} to be of one type", name(mx.dtype), name(my.dtype));
    ensure!(mx.dtype != DType::Bool, "\"cross\" not implemented for 'Bool'");
    let d = mx.layout.dim(dim)?;
    ensure!(
        mx.rank() > 0 && mx.sizes()[d] == 3 && my.sizes()[d] == 3,
        "linalg.cross: inputs dimension {dim} must have length 3. Got {:?} and {:?}",
        mx.sizes(),
        my.sizes()
    );
    let shape = crate::support::strides::broadcast_sizes(&[mx.sizes(), my.sizes()])?.to_vec();
    let turned = |e: &mut dyn Emit, v: Val, by: i64| -> Result<Val> {
        let v = emit!(e, "aten.expand.default", v, shape.clone())?;
        emit!(e, "aten.roll.default", v, [by], [d as i64])
    };
    let (x1, y2) = (turned(e, x, -1)?, turned(e, y, -2)?);
    let (x2, y1) = (turned(e, x, -2)?, turned(e, y, -1)?);
    let (first, second) = (emit!(e, "aten.mul.Tensor", x1, y2)?, emit!(e, "aten.mul.Tensor", x2, y1)?);
    let out = emit!(e, "aten.sub.Tensor", first, second)?;
    Ok(smallvec![emit!(e, "aten.contiguous.default", out)?])
}
fn linalg_cross(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    crossed(e, *a.tensor(0)?, *a.tensor(1)?, a.int(2)?)
}
/// The cross product along the given dimension, by default the first of size 3.
fn cross(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let dim = match a.opt_int(2)? {
        Some(d) => d,
        None => match sizes(e, x).iter().position(|&n| n == 3) {
            Some(d) => d as i64,
            None => return fail("no dimension of size 3 in input"),
        },
    };
    crossed(e, x, *a.tensor(1)?, dim)
}

/// Sums over the dimensions that broadcasting from the given sizes would repeat.
fn sum_to_size(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, to) = (*a.tensor(0)?, a.ints(1)?);
    let own = sizes(e, x);
    let fits = to.len() <= own.len() && to.iter().zip(&own[own.len() - to.len()..]).all(|(&n, &m)| n == m || n == 1);
    ensure!(fits, "size {{{to:?}}} is not expandable to size {{{own:?}}}.");
    if to.is_empty() {
        return Ok(smallvec![emit!(e, "aten.sum.default", x)?]);
    }
    let lead = own.len() - to.len();
    let dims: Vec<i64> =
        (0..own.len()).filter(|&d| d < lead || to[d - lead] == 1 && own[d] != 1).map(|d| d as i64).collect();
    let mut out = x;
    if !dims.is_empty() {
        out = emit!(e, "aten.sum.dim_IntList", x, dims, true)?;
    }
    if lead > 0 {
        out = emit!(e, "aten.view.default", out, to)?;
    }
    Ok(smallvec![out])
}

/// The mean of the elements that are not NaN.
fn nanmean(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let d = e.meta(x).dtype;
    ensure!(
        d.is_float() || d.is_complex(),
        "nanmean(): expected input to have floating point or complex dtype but got {}",
        name(d)
    );
    let missing = emit!(e, "aten.isnan.default", x)?;
    let there = emit!(e, "aten.logical_not.default", missing)?;
    let count = emit!(e, "aten.sum.dim_IntList", there, pass(a, 1), pass(a, 2))?;
    let sum = if d.is_complex() {
        // `nansum` accepts real numbers only.
        let kept = emit!(e, "aten.masked_fill.Scalar", x, missing, 0)?;
        emit!(e, "aten.sum.dim_IntList", kept, pass(a, 1), pass(a, 2), pass(a, 3))?
    } else {
        emit!(e, "aten.nansum.default", x, pass(a, 1), pass(a, 2), pass(a, 3))?
    };
    Ok(smallvec![emit!(e, "aten.div.Tensor", sum, count)?])
}

/// `renorm(self, p, dim, maxnorm)`: scales each slice of `dim` whose norm exceeds `maxnorm` down to that norm.
fn renorm(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let (p, most) = (a.float(1)?, a.float(3)?);
    let meta = e.meta(x);
    ensure!(p > 0.0, "renorm: non-positive-norm not supported");
    ensure!(most >= 0.0, "renorm: expected maxnorm to be >= 0 but got {most}");
    ensure!(meta.rank() > 1, "renorm: input needs at least 2 dimensions, got {} dimensions", meta.rank());
    let d = meta.layout.dim(a.int(2)?)?;
    let dims: Vec<i64> = (0..meta.rank()).filter(|&k| k != d).map(|k| k as i64).collect();
    let half = matches!(meta.dtype, DType::F16 | DType::BF16);
    let wide = if half { Arg::DType(DType::F32) } else { Arg::None };
    let norm = emit!(e, "aten.linalg_vector_norm.default", x, p, dims, true, wide)?;
    let large = emit!(e, "aten.gt.Scalar", norm, most)?;
    let apart = emit!(e, "aten.add.Scalar", norm, 1e-7)?;
    let inverse = emit!(e, "aten.reciprocal.default", apart)?;
    let scale = emit!(e, "aten.mul.Scalar", inverse, most)?;
    let factor = emit!(e, "aten.where.ScalarOther", large, scale, 1.0)?;
    let factor = if half { emit!(e, "aten.to.dtype", factor, meta.dtype)? } else { factor };
    let scaled = emit!(e, "aten.mul.Tensor", x, factor)?;
    // Row-major, whatever the strides of the operand.
    Ok(smallvec![emit!(e, "aten.contiguous.default", scaled)?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(chunk_cat, chunk_samples(), "_chunk_cat"),
    composite!(pad_sequence, sequences(), "pad_sequence"),
    composite!(atleast_1d, lists(), "atleast_1d.Sequence"),
    composite!(atleast_2d, lists(), "atleast_2d.Sequence"),
    composite!(atleast_3d, lists(), "atleast_3d.Sequence"),
    composite!(diag, diagonals(false), "diag"),
    composite!(diag_embed, diagonals(true), "diag_embed"),
    composite!(diagflat, diagonals(false), "diagflat"),
    composite!(kron, kron_samples(), "kron"),
    composite!(cross, cross_samples(), "cross"),
    composite!(linalg_cross, cross_samples(), "linalg_cross"),
    composite!(sum_to_size, sums_to(), "sum_to_size"),
    composite!(nanmean, nan_samples(), "nanmean"),
    composite!(renorm, renorm_samples(), "renorm"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn lists() -> Samples {
        vec![
            sample![vec![tensor(F, &[], 1), tensor(DType::I64, &[3], 2), transposed(F, &[2, 3], 3)]],
            sample![vec![strided(F, &[2, 3, 4], 1)]],
        ]
    }

    pub(crate) fn sequences() -> Samples {
        let of = |d: DType, lengths: &[i64]| {
            lengths.iter().enumerate().map(|(i, &n)| tensor(d, &[n, 2], i as u64)).collect::<Vec<_>>()
        };
        let f = DType::F32;
        vec![
            sample![of(f, &[3, 1, 2]), false, 0.0, "right"],
            sample![of(f, &[0, 4]), true, -1.5, "left"],
            sample![of(DType::I64, &[2, 3]), true, 7.0, "right"],
            sample![
                vec![transposed(f, &[2, 3], 1), tensor(DType::F64, &[4, 1], 2), tensor(f, &[1, 3], 3)],
                true,
                0.5,
                "right"
            ],
            sample![vec![tensor(f, &[3], 1), tensor(f, &[5], 2)], false, 0.0, "left"],
            sample![vec![nhwc(f, &[2, 3, 2, 2], 1), nhwc(f, &[2, 3, 2, 2], 2)], false, 0.0, "right"],
            sample![vec![tensor(f, &[3, 2], 1), tensor(f, &[3, 4], 2)], false, 0.0, "right"],
            sample![of(f, &[2]), false, 0.0, "middle"],
        ]
    }

    pub(crate) fn chunk_samples() -> Samples {
        vec![
            sample![vec![tensor(F, &[3, 4], 1), transposed(F, &[5, 2], 2)], 0, 2],
            sample![vec![tensor(F, &[2, 4, 3], 1), tensor(F, &[2, 3], 2)], 1, 3],
            sample![vec![tensor(F, &[2, 4], 1), tensor(F, &[3, 4], 2)], 1, 3],
            sample![vec![tensor(F, &[2, 4], 1)], 0, 0],
        ]
    }

    pub(crate) fn diagonals(several: bool) -> Samples {
        let mut out = Samples::new();
        for d in [F, DType::I64, DType::Bool, DType::C64, DType::BF16] {
            for offset in [0, 2, -1] {
                out.push(sample![tensor(d, &[3], 1), offset]);
                out.push(sample![strided(d, &[3], 1), offset]);
                out.push(sample![transposed(d, &[2, 4], 1), offset]);
            }
        }
        if several {
            out.push(sample![tensor(F, &[2, 3, 4], 1), 1, 0, 2]);
            out.push(sample![tensor(F, &[2, 3], 1), -1, -1, 1]);
            out.push(sample![tensor(F, &[2, 3], 1), 0, 1, 1]);
            out.push(sample![tensor(F, &[2, 0], 1), 1]);
        } else {
            out.push(sample![tensor(F, &[0], 1)]);
            out.push(sample![tensor(F, &[2, 0], 1)]);
        }
        out.push(sample![tensor(F, &[2, 3, 2], 1), 0]);
        out
    }

    pub(crate) fn kron_samples() -> Samples {
        vec![
            sample![tensor(F, &[2, 3], 1), transposed(F, &[3, 2], 2)],
            sample![tensor(F, &[2], 1), tensor(F, &[3, 2, 2], 2)],
            sample![tensor(DType::I64, &[2, 2], 1), tensor(F, &[], 2)],
            sample![strided(DType::C64, &[2, 2], 1), tensor(F, &[2], 2)],
            sample![tensor(F, &[0, 2], 1), tensor(F, &[2, 2], 2)],
        ]
    }

    pub(crate) fn cross_samples() -> Samples {
        let mut out = Samples::new();
        for d in [F, DType::F64, DType::I64, DType::C64, DType::F16] {
            out.push(sample![tensor(d, &[4, 3], 1), transposed(d, &[4, 3], 2)]);
            out.push(sample![strided(d, &[1, 3], 1), tensor(d, &[4, 3], 2)]);
        }
        out.push(sample![tensor(F, &[3, 4], 1), tensor(F, &[3, 4], 2), 0]);
        out.push(sample![tensor(F, &[2, 4, 3], 1), tensor(F, &[2, 1, 3], 2), 2]);
        out.push(sample![tensor(F, &[2, 4], 1), tensor(F, &[2, 4], 2)]);
        out
    }

    pub(crate) fn sums_to() -> Samples {
        vec![
            sample![tensor(F, &[2, 3, 4], 1), [3, 1]],
            sample![transposed(F, &[2, 3, 4], 1), [2, 1, 4]],
            sample![tensor(F, &[2, 3], 1), [2, 3]],
            sample![tensor(DType::I64, &[2, 3], 1), &[][..] as &[i64]],
            sample![tensor(F, &[2, 3], 1), [2]],
        ]
    }

    pub(crate) fn nan_samples() -> Samples {
        let nan = f32::NAN;
        let x = restride_tensor::RawTensor::from_slice(&[1.0, nan, 3.0, nan, nan, 2.0], &[2, 3]);
        vec![
            sample![&x],
            sample![&x, [0], true],
            sample![&x, [1], false, DType::F64],
            sample![transposed(DType::F64, &[3, 4], 1), [1]],
            sample![tensor(DType::BF16, &[3, 4], 1), [0, 1]],
            sample![tensor(DType::I64, &[3, 4], 1)],
        ]
    }

    pub(crate) fn renorm_samples() -> Samples {
        let mut out = Samples::new();
        for d in [F, DType::F64, DType::BF16, DType::C64] {
            out.push(sample![tensor(d, &[3, 4], 1), 2.0, 0, 1.5]);
            out.push(sample![transposed(d, &[3, 4, 2], 1), 1.0, -1, 3.0]);
        }
        out.push(sample![strided(F, &[3, 4], 1), 3.5, 1, 0.0]);
        out.push(sample![tensor(F, &[3], 1), 2.0, 0, 1.0]);
        out
    }
}
