//! Losses on numbers, classes and sequences, composed of pointwise operators and reductions.

mod backward;
mod ctc;
mod grad;
mod linear;
mod margin;
mod nll;

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Emit, OpDef, Val};
use smallvec::smallvec;

/// Reduces a loss by `mean`, `sum` or not at all.
pub(crate) fn reduced(e: &mut dyn Emit, v: Val, reduction: i64) -> Result<Val> {
    match reduction {
        0 => Ok(v),
        1 => emit!(e, "aten.mean.default", v),
        2 => emit!(e, "aten.sum.default", v),
        other => fail(format!("{other} is not a valid value for reduction")),
    }
}

fn done(e: &mut dyn Emit, v: Val, reduction: i64) -> Vals {
    Ok(smallvec![reduced(e, v, reduction)?])
}

fn floats(e: &dyn Emit, vs: &[Val], what: &str) -> Result<()> {
    for &v in vs {
        let d = e.meta(v).dtype;
        ensure!(d.is_float(), "\"{what}\" not implemented for '{}'", name(d));
    }
    Ok(())
}

/// Shorthands for operators that losses use.
trait Math {
    fn add(&mut self, a: impl IntoOperand, b: impl IntoOperand) -> Result<Val>;
    fn sub(&mut self, a: impl IntoOperand, b: impl IntoOperand) -> Result<Val>;
    fn mul(&mut self, a: impl IntoOperand, b: impl IntoOperand) -> Result<Val>;
    fn div(&mut self, a: impl IntoOperand, b: impl IntoOperand) -> Result<Val>;
    fn one(&mut self, op: &str, a: Val) -> Result<Val>;
    fn pick(&mut self, mask: Val, a: Val, b: Val) -> Result<Val>;
}
impl Math for dyn Emit + '_ {
    fn add(&mut self, a: impl IntoOperand, b: impl IntoOperand) -> Result<Val> {
        emit!(self, "aten.add.Tensor", a, b)
    }
    fn sub(&mut self, a: impl IntoOperand, b: impl IntoOperand) -> Result<Val> {
        emit!(self, "aten.sub.Tensor", a, b)
    }
    fn mul(&mut self, a: impl IntoOperand, b: impl IntoOperand) -> Result<Val> {
        emit!(self, "aten.mul.Tensor", a, b)
    }
    fn div(&mut self, a: impl IntoOperand, b: impl IntoOperand) -> Result<Val> {
        emit!(self, "aten.div.Tensor", a, b)
    }
    fn one(&mut self, op: &str, a: Val) -> Result<Val> {
        emit!(self, op, a)
    }
    fn pick(&mut self, mask: Val, a: Val, b: Val) -> Result<Val> {
        emit!(self, "aten.where.self", mask, a, b)
    }
}

fn mse(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    floats(e, &[x, y][..1 + !e.meta(x).dtype.is_float() as usize], "mse_cpu")?;
    let d = e.sub(x, y)?;
    let d = e.mul(d, d)?;
    done(e, d, a.int(2)?)
}

fn absolute(e: &mut dyn Emit, x: Val, y: Val) -> Result<Val> {
    let d = e.sub(x, y)?;
    e.one("aten.abs.default", d)
}

fn l1(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let d = absolute(e, *a.tensor(0)?, *a.tensor(1)?)?;
    done(e, d, a.int(2)?)
}

/// Half of the square of distances. Those that are `far` are not used, but gradients of zero times an infinite distance would be no
/// numbers: a bound replaces them.
fn half_square(e: &mut dyn Emit, d: Val, far: Val, bound: f64) -> Result<Val> {
    let d = emit!(e, "aten.masked_fill.Scalar", d, far, bound)?;
    let half = e.mul(d, 0.5)?;
    e.mul(half, d)
}

fn smooth_l1(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let beta = a.float(3)?;
    ensure!(beta >= 0.0, "smooth_l1_loss does not support negative values for beta.");
    let d = absolute(e, *a.tensor(0)?, *a.tensor(1)?)?;
    if beta == 0.0 {
        return done(e, d, a.int(2)?);
    }
    floats(e, &[d], "smooth_l1_cpu")?;
    // A distance that is no number is near: its slope is none either.
    let mask = emit!(e, "aten.ge.Scalar", d, beta)?;
    let near = half_square(e, d, mask, beta)?;
    let near = e.div(near, beta)?;
    let far = e.sub(d, 0.5 * beta)?;
    let v = e.pick(mask, far, near)?;
    done(e, v, a.int(2)?)
}

fn huber(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let delta = a.float(3)?;
    ensure!(delta > 0.0, "huber_loss does not support non-positive values for delta.");
    let d = absolute(e, *a.tensor(0)?, *a.tensor(1)?)?;
    floats(e, &[d], "huber_cpu")?;
    let mask = emit!(e, "aten.gt.Scalar", d, delta)?;
    let near = half_square(e, d, mask, delta)?;
    let far = e.sub(d, 0.5 * delta)?;
    let far = e.mul(far, delta)?;
    let v = e.pick(mask, far, near)?;
    done(e, v, a.int(2)?)
}

fn kl_div(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    let complex = e.meta(x).dtype.is_complex() || e.meta(y).dtype.is_complex();
    ensure!(!complex, "kl_div: Complex inputs not supported");
    let v = if a.bool(3)? {
        let p = e.one("aten.exp.default", y)?;
        let d = e.sub(y, x)?;
        e.mul(p, d)?
    } else {
        let entropy = emit!(e, "aten.xlogy.Tensor", y, y)?;
        let cross = e.mul(y, x)?;
        e.sub(entropy, cross)?
    };
    done(e, v, a.int(2)?)
}

fn bce_logits(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    let mut log = e.one("aten.log_sigmoid.default", x)?;
    if let Some(&weight) = a.opt_tensor(3)? {
        let w = e.sub(weight, 1)?;
        let w = e.mul(w, y)?;
        let w = e.add(w, 1)?;
        log = e.mul(log, w)?;
    }
    let rest = emit!(e, "aten.rsub.Scalar", y, 1)?;
    let loss = e.mul(rest, x)?;
    let mut loss = e.sub(loss, log)?;
    if let Some(&weight) = a.opt_tensor(2)? {
        loss = e.mul(loss, weight)?;
    }
    done(e, loss, a.int(4)?)
}

fn hinge(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    let zeros = emit!(e, "aten.zeros_like.default", x)?;
    let gap = emit!(e, "aten.rsub.Scalar", x, a.float(2)?)?;
    let gap = emit!(e, "aten.clamp_min.default", gap, 0)?;
    let mask = emit!(e, "aten.ne.Scalar", y, 1)?;
    let gap = e.pick(mask, gap, zeros)?;
    let mask = emit!(e, "aten.ne.Scalar", y, -1)?;
    let own = e.pick(mask, x, zeros)?;
    let v = e.add(gap, own)?;
    done(e, v, a.int(3)?)
}

fn margin_ranking(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y, t) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let t = e.one("aten.neg.default", t)?;
    let d = e.sub(x, y)?;
    let v = e.mul(t, d)?;
    let v = e.add(v, a.float(3)?)?;
    let v = emit!(e, "aten.clamp_min.default", v, 0)?;
    done(e, v, a.int(4)?)
}

fn soft_margin(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let t = e.one("aten.neg.default", *a.tensor(1)?)?;
    let v = e.mul(t, *a.tensor(0)?)?;
    let v = e.one("aten.exp.default", v)?;
    let v = e.one("aten.log1p.default", v)?;
    done(e, v, a.int(2)?)
}

fn poisson(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y) = (*a.tensor(0)?, *a.tensor(1)?);
    let mut v = if a.bool(2)? {
        let p = e.one("aten.exp.default", x)?;
        let m = e.mul(y, x)?;
        e.sub(p, m)?
    } else {
        let l = e.add(x, a.float(4)?)?;
        let l = e.one("aten.log.default", l)?;
        let m = e.mul(y, l)?;
        e.sub(x, m)?
    };
    if a.bool(3)? {
        let l = e.one("aten.log.default", y)?;
        let s = e.mul(y, l)?;
        let s = e.sub(s, y)?;
        let r = e.mul(y, 2.0 * std::f64::consts::PI)?;
        let r = e.one("aten.log.default", r)?;
        let r = e.mul(r, 0.5)?;
        let s = e.add(s, r)?;
        let mask = emit!(e, "aten.le.Scalar", y, 1)?;
        let s = emit!(e, "aten.masked_fill.Scalar", s, mask, 0)?;
        v = e.add(v, s)?;
    }
    done(e, v, a.int(5)?)
}

fn cosine_embedding(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y, t) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (rx, ry, rt) = (e.meta(x).rank(), e.meta(y).rank(), e.meta(t).rank());
    ensure!(rt <= 1, "0D or 1D target tensor expected, multi-target not supported");
    ensure!(
        rx == rt + 1 && ry == rt + 1,
        "{rt}D target tensor expects {}D input tensors, but found inputs with sizes {:?} and {:?}.",
        rt + 1,
        sizes(e, x),
        sizes(e, y)
    );
    let dim = [rt as i64];
    let dot = |e: &mut dyn Emit, a: Val, b: Val| {
        let p = e.mul(a, b)?;
        emit!(e, "aten.sum.dim_IntList", p, dim)
    };
    let product = dot(e, x, y)?;
    let (xx, yy) = (dot(e, x, x)?, dot(e, y, y)?);
    let (xx, yy) = (e.add(xx, 1e-12)?, e.add(yy, 1e-12)?);
    let norm = e.mul(xx, yy)?;
    let norm = e.one("aten.sqrt.default", norm)?;
    let cos = e.div(product, norm)?;
    let zeros = emit!(e, "aten.zeros_like.default", cos)?;
    let pos = emit!(e, "aten.rsub.Scalar", cos, 1)?;
    let neg = e.sub(cos, a.float(3)?)?;
    let neg = emit!(e, "aten.clamp_min.default", neg, 0)?;
    let mask = emit!(e, "aten.eq.Scalar", t, 1)?;
    let pos = e.pick(mask, pos, zeros)?;
    let mask = emit!(e, "aten.eq.Scalar", t, -1)?;
    let neg = e.pick(mask, neg, zeros)?;
    let v = e.add(pos, neg)?;
    done(e, v, a.int(4)?)
}

fn distance(e: &mut dyn Emit, x: Val, y: Val, p: f64, eps: f64, keepdim: bool) -> Result<Val> {
    let last = e.meta(x).rank().max(e.meta(y).rank()) as i64 - 1;
    let d = e.sub(x, y)?;
    let d = e.add(d, eps)?;
    emit!(e, "aten.linalg_vector_norm.default", d, p, [last], keepdim)
}

fn pairwise(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![distance(e, *a.tensor(0)?, *a.tensor(1)?, a.float(2)?, a.float(3)?, a.bool(4)?)?])
}

fn triplet(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, pos, neg) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let (margin, p, eps) = (a.float(3)?, a.float(4)?, a.float(5)?);
    let ranks = [x, pos, neg].map(|v| e.meta(v).rank());
    ensure!(
        ranks[0] == ranks[1] && ranks[1] == ranks[2],
        "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor {}D, positive {}D, and negative {}D inputs",
        ranks[0],
        ranks[1],
        ranks[2]
    );
    let near = distance(e, x, pos, p, eps, false)?;
    let mut far = distance(e, x, neg, p, eps, false)?;
    if a.bool(6)? {
        let swapped = distance(e, pos, neg, p, eps, false)?;
        far = emit!(e, "aten.minimum.default", far, swapped)?;
    }
    let v = e.add(near, margin)?;
    let v = e.sub(v, far)?;
    let v = emit!(e, "aten.clamp_min.default", v, 0)?;
    done(e, v, a.int(7)?)
}

fn cosine_similarity(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, y, dim, eps) = (*a.tensor(0)?, *a.tensor(1)?, a.int(2)?, a.float(3)?);
    let (tx, ty) = (e.meta(x), e.meta(y));
    let dtype = crate::support::promote::result_type(&[
        crate::support::promote::Operand::of(&tx),
        crate::support::promote::Operand::of(&ty),
    ])?;
    ensure!(dtype.is_float(), "expected common dtype to be floating point, yet common dtype is {}", name(dtype));
    let common = crate::support::strides::broadcast_sizes(&[tx.sizes(), ty.sizes()])?.to_vec();
    let normal = |e: &mut dyn Emit, v: Val| -> Result<Val> {
        let v = to(e, v, dtype)?;
        let v = emit!(e, "aten.expand.default", v, common.clone())?;
        let n = emit!(e, "aten.linalg_vector_norm.default", v, 2, [dim], true)?;
        // PyTorch clamps where gradients are off, so the norm's gradient passes.
        let clamped = emit!(e, "aten.clamp_min.default", n, eps)?;
        let n = emit!(e, "restride.with_history.default", clamped, n)?;
        e.div(v, n)
    };
    let (x, y) = (normal(e, x)?, normal(e, y)?);
    let p = e.mul(x, y)?;
    Ok(smallvec![emit!(e, "aten.sum.dim_IntList", p, [dim])?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(mse, pair_samples(|r| vec![r.arg()]), "mse_loss"),
    composite!(l1, pair_samples(|r| vec![r.arg()]), "l1_loss"),
    composite!(smooth_l1, pair_samples(|r| vec![r.arg(), [0.0, 0.7, 1.0][r as usize].arg()]), "smooth_l1_loss"),
    composite!(huber, pair_samples(|r| vec![r.arg(), [0.3, 0.7, 1.0][r as usize].arg()]), "huber_loss"),
    composite!(kl_div, pair_samples(|r| vec![r.arg(), (r != 1).arg()]), "kl_div"),
    composite!(bce_logits, logits_samples(), "binary_cross_entropy_with_logits"),
    composite!(hinge, signed_samples(), "hinge_embedding_loss"),
    composite!(soft_margin, pair_samples(|r| vec![r.arg()]), "soft_margin_loss"),
    composite!(margin_ranking, margin_samples(), "margin_ranking_loss"),
    composite!(poisson, poisson_samples(), "poisson_nll_loss"),
    composite!(cosine_embedding, embedding_samples(), "cosine_embedding_loss"),
    composite!(pairwise, distance_samples(), "pairwise_distance"),
    composite!(triplet, triplet_samples(), "triplet_margin_loss"),
    composite!(cosine_similarity, similarity_samples(), "cosine_similarity"),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[margin::OPS, OPS, nll::OPS, ctc::OPS, linear::OPS, backward::OPS],
    gradients: &[ctc::GRADS, grad::GRADS],
    aliases: &[],
};

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn pair_samples(extra: fn(i64) -> Vec<restride_ir::SampleArg>) -> Samples {
        let d = DType::F32;
        let mut calls = vec![
            (tensor(d, &[3, 4], 1), tensor(d, &[3, 4], 2)),
            (transposed(d, &[3, 4, 2], 1), strided(d, &[3, 4, 2], 2)),
            (tensor(d, &[], 1), tensor(d, &[], 2)),
            (tensor(DType::F64, &[5], 1), tensor(d, &[5], 2)),
            (tensor(DType::F16, &[5], 1), tensor(DType::F16, &[5], 2)),
            (tensor(d, &[0, 3], 1), tensor(d, &[0, 3], 2)),
        ];
        calls.extend([(tensor(d, &[2, 3], 5), tensor(d, &[3], 4))]);
        let mut out = Samples::new();
        for (i, (x, y)) in calls.into_iter().enumerate() {
            for reduction in 0..3 {
                // The first case takes all three reductions, each other case one.
                if i == 0 || reduction == i as i64 % 3 {
                    let mut s = sample![&x, &y];
                    s.args.extend(extra(reduction));
                    out.push(s);
                }
            }
        }
        out
    }

    /// Sample targets of 1 and -1.
    pub(crate) fn signs(sizes: &[i64]) -> RawTensor {
        let n: i64 = sizes.iter().product();
        let data: Vec<f32> = (0..n).map(|i| if i % 3 == 1 { -1.0 } else { 1.0 }).collect();
        RawTensor::from_slice(&data, sizes)
    }

    pub(crate) fn positive(d: DType, sizes: &[i64], seed: u64) -> RawTensor {
        in_range(d, Layout::contiguous(sizes), seed, 0.05, 3.0)
    }

    pub(crate) fn logits_samples() -> Samples {
        let d = DType::F32;
        let (x, y) = (tensor(d, &[3, 4], 1), in_range(d, Layout::contiguous(&[3, 4]), 2, 0.0, 1.0));
        vec![
            sample![&x, &y],
            sample![&x, &y, tensor(d, &[4], 3), (), 2],
            sample![&x, &y, (), tensor(d, &[4], 3), 0],
            sample![transposed(d, &[3, 4], 4), &y, tensor(d, &[3, 4], 5), tensor(d, &[4], 3), 1],
            sample![tensor(DType::F64, &[3, 4], 1), tensor(DType::F64, &[3, 4], 2), (), (), 0],
        ]
    }

    pub(crate) fn signed_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[3, 4], 1), signs(&[3, 4])],
            sample![tensor(d, &[3, 4], 1), signs(&[3, 4]), 0.5, 0],
            sample![transposed(d, &[3, 4], 1), signs(&[4]), 1.5, 2],
        ]
    }

    pub(crate) fn margin_samples() -> Samples {
        let d = DType::F32;
        let (x, y) = (tensor(d, &[5], 1), tensor(d, &[5], 2));
        vec![
            sample![&x, &y, signs(&[5])],
            sample![&x, &y, signs(&[5]), 0.5, 0],
            sample![&x, &y, signs(&[5]), 0.5, 2],
            sample![&x, &y, tensor(d, &[1, 5], 3)],
        ]
    }

    pub(crate) fn embedding_samples() -> Samples {
        let d = DType::F32;
        let (x, y) = (tensor(d, &[3, 4], 1), tensor(d, &[3, 4], 2));
        vec![
            sample![&x, &y, signs(&[3])],
            sample![&x, &y, signs(&[3]), 0.3, 0],
            sample![tensor(d, &[4], 1), tensor(d, &[4], 2), signs(&[]), 0.3, 2],
            sample![&x, &y, signs(&[3, 1])],
        ]
    }

    pub(crate) fn distance_samples() -> Samples {
        let d = DType::F32;
        let (x, y) = (tensor(d, &[3, 4], 1), tensor(d, &[3, 4], 2));
        vec![
            sample![&x, &y],
            sample![&x, tensor(d, &[4], 2), 1.0],
            sample![strided(d, &[3, 4], 1), &y, 3.0, 1e-3, true],
            sample![tensor(DType::F64, &[2, 3, 4], 1), tensor(DType::F64, &[2, 1, 4], 1), 2.0, 1e-6, false],
        ]
    }

    pub(crate) fn triplet_samples() -> Samples {
        let d = DType::F32;
        let t = |s| tensor(d, &[3, 4], s);
        let all = |swap: bool, reduction: i64| sample![t(1), t(2), t(3), 1.0, 2.0, 1e-6, swap, reduction];
        vec![
            all(false, 1),
            all(true, 0),
            all(true, 2),
            sample![t(1), t(2), tensor(d, &[4], 3)],
            sample![t(1), t(2), t(3), 0.0],
        ]
    }

    pub(crate) fn similarity_samples() -> Samples {
        let d = DType::F32;
        let mut out: Samples =
            forms(d, &[3, 4, 2], 1).into_iter().map(|x| sample![x, tensor(d, &[3, 4, 2], 9)]).collect();
        out.extend([
            sample![tensor(d, &[3, 4], 1), tensor(d, &[4], 2), -1],
            sample![tensor(d, &[3, 1, 4], 1), tensor(d, &[1, 5, 4], 2), 2, 0.5],
            sample![tensor(DType::F64, &[3, 4], 1), tensor(d, &[3, 4], 2), 0],
            sample![ints(&[1, 2], &[1, 2]), ints(&[1, 2], &[1, 2])],
        ]);
        out
    }

    pub(crate) fn poisson_samples() -> Samples {
        let d = DType::F32;
        let call = |log: bool, full: bool, reduction: i64| -> Sample {
            sample![positive(d, &[3, 4], 1), positive(d, &[3, 4], 2), log, full, 1e-8, reduction]
        };
        vec![call(true, false, 1), call(false, true, 2), call(true, true, 0)]
    }
}
