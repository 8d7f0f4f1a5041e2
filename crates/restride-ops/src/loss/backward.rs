//! Compositions of the gradient operators of losses.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::smallvec;

/// `(grad_output, self, target, weight, reduction, ignore_index, total_weight)`
fn nll(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (g, x) = (*a.tensor(0)?, *a.tensor(1)?);
    let (shape, dtype) = (sizes(e, x), e.meta(x).dtype);
    let (reduction, ignore) = (a.int(4)?, a.int(5)?);
    let target = emit!(e, "aten._to_copy.default", *a.tensor(2)?, DType::I64)?;
    let ts = sizes(e, target);
    let ignored = emit!(e, "aten.eq.Scalar", target, ignore)?;
    let class = emit!(e, "aten.masked_fill.Scalar", target, ignored, 0)?;
    let g = if reduction == 1 { emit!(e, "aten.div.Tensor", g, *a.tensor(6)?)? } else { g };
    let mut v = emit!(e, "aten.neg.default", g)?;
    if let Some(w) = a.opt_tensor(3)? {
        let flat = emit!(e, "aten.reshape.default", class, [-1])?;
        let w = emit!(e, "aten.index_select.default", *w, 0, flat)?;
        let w = emit!(e, "aten.reshape.default", w, &ts[..])?;
        v = emit!(e, "aten.mul.Tensor", v, w)?;
    }
    let mut v = emit!(e, "aten.expand.default", v, &ts[..])?;
    v = emit!(e, "aten.masked_fill.Scalar", v, ignored, 0)?;
    // A single sample has no batch dimension.
    let place = |e: &mut dyn Emit, t| match shape.len() {
        1 => emit!(e, "aten.reshape.default", t, [1]),
        _ => emit!(e, "aten.unsqueeze.default", t, 1),
    };
    let (class, v) = (place(e, class)?, place(e, v)?);
    let dim = i64::from(shape.len() > 1);
    let zeros = emit!(e, "aten.full.default", &shape[..], 0, dtype)?;
    Ok(smallvec![emit!(e, "aten.scatter.src", zeros, dim, class, v)?])
}

/// `(grad_output, self, target, weight, reduction)`
fn bce(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (g, x, t) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let away = emit!(e, "aten.sub.Tensor", x, t)?;
    let rest = emit!(e, "aten.rsub.Scalar", x, 1)?;
    let slope = emit!(e, "aten.mul.Tensor", rest, x)?;
    let slope = emit!(e, "aten.clamp_min.default", slope, 1e-12)?;
    let mut v = emit!(e, "aten.mul.Tensor", g, away)?;
    v = emit!(e, "aten.div.Tensor", v, slope)?;
    if let Some(w) = a.opt_tensor(3)? {
        v = emit!(e, "aten.mul.Tensor", v, *w)?;
    }
    reduced(e, v, x, a.int(4)?)
}

/// The gradient of a mean of `like`'s elements is a part of it, that of a sum is all of it.
fn reduced(e: &mut dyn Emit, grad: Val, like: Val, reduction: i64) -> Vals {
    let n: i64 = sizes(e, like).iter().product();
    Ok(smallvec![if reduction == 1 { emit!(e, "aten.div.Scalar", grad, n)? } else { grad }])
}

/// `(grad_output, self, target, reduction)`
fn mse(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let away = emit!(e, "aten.sub.Tensor", *a.tensor(1)?, *a.tensor(2)?)?;
    let slope = emit!(e, "aten.mul.Scalar", away, 2)?;
    let v = emit!(e, "aten.mul.Tensor", slope, *a.tensor(0)?)?;
    let v = reduced(e, v, away, a.int(3)?)?[0];
    // PyTorch computes into row-major memory, unlike for the losses below.
    Ok(smallvec![emit!(e, "aten.contiguous.default", v)?])
}

/// The gradient of a loss whose slope is the distance over `scale` up to a distance of `bound`, and `far` beyond it.
fn bent(e: &mut dyn Emit, a: &ValArgs<'_>, bound: f64, scale: f64, far: f64) -> Vals {
    let away = emit!(e, "aten.sub.Tensor", *a.tensor(1)?, *a.tensor(2)?)?;
    let below = emit!(e, "aten.le.Scalar", away, -bound)?;
    let above = emit!(e, "aten.ge.Scalar", away, bound)?;
    let mut slope = match scale {
        1.0 => away,
        // Only a distance that is no number is near; others are replaced below.
        0.0 => emit!(e, "aten.mul.Scalar", away, 0)?,
        _ => emit!(e, "aten.div.Scalar", away, scale)?,
    };
    slope = emit!(e, "aten.masked_fill.Scalar", slope, above, far)?;
    slope = emit!(e, "aten.masked_fill.Scalar", slope, below, -far)?;
    let v = emit!(e, "aten.mul.Tensor", slope, *a.tensor(0)?)?;
    reduced(e, v, away, a.int(3)?)
}

/// `(grad_output, self, target, reduction, beta)`
fn smooth_l1(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let beta = a.float(4)?;
    bent(e, a, beta, beta, 1.0)
}

/// `(grad_output, self, target, reduction, delta)`
fn huber(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let delta = a.float(4)?;
    bent(e, a, delta, 1.0, delta)
}

/// `(grad_output, self, target, reduction)`
fn soft_margin(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, t) = (*a.tensor(1)?, *a.tensor(2)?);
    let away = emit!(e, "aten.neg.default", t)?;
    let z = emit!(e, "aten.mul.Tensor", away, x)?;
    let z = emit!(e, "aten.exp.default", z)?;
    let slope = emit!(e, "aten.mul.Tensor", away, z)?;
    let z = emit!(e, "aten.add.Scalar", z, 1)?;
    let slope = emit!(e, "aten.div.Tensor", slope, z)?;
    let v = emit!(e, "aten.mul.Tensor", slope, *a.tensor(0)?)?;
    reduced(e, v, x, a.int(3)?)
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(mse, pair_samples(|_| vec![]), "mse_loss_backward"),
    composite!(smooth_l1, pair_samples(|r| vec![[0.0, 0.7, 1.0][r as usize].arg()]), "smooth_l1_loss_backward"),
    composite!(huber, pair_samples(|r| vec![[0.3, 0.7, 1.0][r as usize].arg()]), "huber_loss_backward"),
    composite!(soft_margin, pair_samples(|_| vec![]), "soft_margin_loss_backward"),
    composite!(nll, nll_samples(&[]), "nll_loss_backward").failing(),
    composite!(nll, nll_samples(&[2, 3]), "nll_loss2d_backward").failing(),
    composite!(bce, bce_samples(), "binary_cross_entropy_backward"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    /// Calls with an input and a target of the same sizes.
    pub(crate) fn pair_samples(extra: fn(i64) -> Vec<SampleArg>) -> Samples {
        let mut out = Samples::new();
        for d in [DType::F32, DType::F64, DType::F16] {
            for reduction in 0..3 {
                let sizes: &[i64] = [&[3, 4][..], &[3, 4, 2], &[]][reduction as usize];
                let g = if reduction == 0 { tensor(d, sizes, 1) } else { tensor(d, &[], 1) };
                let x = if reduction == 1 { transposed(d, sizes, 2) } else { tensor(d, sizes, 2) };
                let mut sample = sample![g, x, tensor(d, sizes, 3), reduction];
                sample.args.extend(extra(reduction));
                out.push(sample);
            }
        }
        let mut empty =
            sample![tensor(DType::F32, &[], 1), tensor(DType::F32, &[0, 3], 2), tensor(DType::F32, &[0, 3], 3), 2];
        empty.args.extend(extra(2));
        out.push(empty);
        out
    }

    pub(crate) fn nll_samples(spatial: &[i64]) -> Samples {
        let mut out = Samples::new();
        for d in [DType::F32, DType::F64] {
            let (mut shape, mut ts) = (vec![4, 3], vec![4]);
            shape.extend(spatial);
            ts.extend(spatial);
            let n: i64 = ts.iter().product();
            let classes = |ignore: i64| {
                ints(&(0..n).map(|i| if i % 4 == 2 { ignore } else { i * 7 % 3 }).collect::<Vec<_>>(), &ts)
            };
            let weight = || in_range(d, Layout::contiguous(&[3]), 4, 0.5, 1.5).arg();
            for reduction in 0..3 {
                let g = if reduction == 0 { tensor(d, &ts, 1) } else { tensor(d, &[], 1) };
                for (w, ignore) in [(SampleArg::None, -100), (weight(), 1)] {
                    let total = in_range(d, Layout::contiguous(&[]), 5, 2.0, 3.0);
                    out.push(sample![&g, tensor(d, &shape, 2), classes(ignore), w, reduction, ignore, total]);
                }
            }
            if spatial.is_empty() {
                let total = in_range(d, Layout::contiguous(&[]), 5, 2.0, 3.0);
                out.push(sample![tensor(d, &[], 1), tensor(d, &[3], 2), ints(&[2], &[]), (), 1, -100, total]);
            }
        }
        out
    }

    pub(crate) fn bce_samples() -> Samples {
        let mut out: Vec<Sample> = Vec::new();
        for d in [DType::F32, DType::F64] {
            let unit = |seed| in_range(d, Layout::contiguous(&[3, 4]), seed, 0.1, 0.9);
            let g = |r: i64| -> RawTensor { if r == 0 { tensor(d, &[3, 4], 1) } else { tensor(d, &[], 1) } };
            for r in 0..3 {
                out.push(sample![g(r), unit(2), unit(3), (), r]);
                out.push(sample![g(r), unit(2), unit(3), tensor(d, &[4], 4), r]);
            }
        }
        out
    }
}
