//! Losses over classes: negative log likelihood and cross entropy, and losses that check their data.

use crate::loss::reduced;
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::scratch::{opt_stored, stored};
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Meta, OpDef, Val};
use restride_kernels::loss::{self, LossReduction};
use smallvec::smallvec;

fn reduction<V>(a: &Args<'_, V>, i: usize) -> Result<LossReduction> {
    match a.int(i)? {
        0 => Ok(LossReduction::None),
        1 => Ok(LossReduction::Mean),
        2 => Ok(LossReduction::Sum),
        other => fail(format!("{other} is not a valid value for reduction")),
    }
}

/// Shape rule; `spatial` is 0 for N × C (or C alone), 2 for N × C × H × W.
fn nll_infer(a: &Args<'_, Meta>, spatial: usize) -> Metas {
    let (x, t, w, r) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?, reduction(a, 3)?);
    ensure!(x.dtype.is_float(), "\"nll_loss_out_frame\" not implemented for '{}'", name(x.dtype));
    ensure!(
        t.dtype == DType::I64 || t.dtype == DType::U8 && spatial == 0,
        "expected scalar type Long but found {}",
        name(t.dtype)
    );
    if spatial == 0 {
        ensure!(x.rank() == 1 || x.rank() == 2, "input tensor should be 1D or 2D");
        ensure!(t.rank() <= 1, "0D or 1D target tensor expected, multi-target not supported");
        let free = x.rank() == 1 && t.layout.numel() == 1;
        ensure!(
            free || x.sizes()[0] == t.layout.numel(),
            "size mismatch (got input: {:?}, target: {:?})",
            x.sizes(),
            t.sizes()
        );
        ensure!(
            x.rank() == 2 || t.layout.numel() == 1,
            "size mismatch (got input: {:?}, target: {:?})",
            x.sizes(),
            t.sizes()
        );
    } else {
        ensure!(
            x.rank() == 4,
            "only batches of spatial inputs supported (4D tensors), but got input of dimension: {}",
            x.rank()
        );
        ensure!(
            t.rank() == 3,
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
            t.rank()
        );
        let same = x.sizes()[0] == t.sizes()[0] && x.sizes()[2..] == t.sizes()[1..];
        ensure!(same, "size mismatch (got input: {:?} , target: {:?}", x.sizes(), t.sizes());
    }
    let classes = x.sizes()[(x.rank() > 1) as usize];
    if let Some(w) = w {
        ensure!(
            w.layout.numel() == classes && w.rank() == 1,
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {:?}",
            w.sizes()
        );
        ensure!(w.dtype == x.dtype, "expected scalar type {} but found {}", name(x.dtype), name(w.dtype));
    }
    let scalar = fresh(x.dtype, &[]);
    let out = match r {
        LossReduction::None if x.rank() == 2 => fresh(x.dtype, &[x.sizes()[0]]),
        LossReduction::None if x.rank() == 4 => fresh(x.dtype, t.sizes()),
        _ => scalar.clone(),
    };
    Ok(smallvec![out, scalar])
}

fn nll_run(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let (x, t, w) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    ran(loss::nll(x, t, w, reduction(a, 3)?, a.int(4)?, &c.outs[0], &c.outs[1]))
}

fn nll_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (x, t) = (a.tensor(0)?, a.tensor(1)?);
    Ok(loss::nll_room(stored(x), &t.layout, opt_stored(a, 2)?, stored(&outs[0])))
}

fn nll(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let op = "aten.nll_loss_forward.default";
    Ok(smallvec![emit!(e, op, pass(a, 0), pass(a, 1), pass(a, 2), pass(a, 3), pass(a, 4))?])
}

fn nll2d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let op = "aten.nll_loss2d_forward.default";
    Ok(smallvec![emit!(e, op, pass(a, 0), pass(a, 1), pass(a, 2), pass(a, 3), pass(a, 4))?])
}

fn nll_nd(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, t, w) = (*a.tensor(0)?, *a.tensor(1)?, a.opt_tensor(2)?.copied());
    Ok(smallvec![nd(e, x, t, w, a.int(3)?, a.int(4)?)?])
}

fn nd(e: &mut dyn Emit, x: Val, t: Val, w: Option<Val>, reduction: i64, ignore: i64) -> Result<Val> {
    let (xs, ts) = (sizes(e, x), sizes(e, t));
    ensure!(!xs.is_empty(), "Expected 1 or more dimensions (got 0)");
    ensure!(
        xs.len() == 1 || ts.first() == Some(&xs[0]),
        "Expected input batch_size ({}) to match target batch_size ({}).",
        xs[0],
        ts.first().copied().unwrap_or(0)
    );
    match xs.len() {
        1 | 2 => emit!(e, "aten.nll_loss.default", x, t, w, reduction, ignore),
        4 => emit!(e, "aten.nll_loss2d.default", x, t, w, reduction, ignore),
        _ => {
            let mut out = vec![xs[0]];
            out.extend(&xs[2..]);
            ensure!(ts == out, "Expected target size {out:?}, got {ts:?}");
            let inner: i64 = xs[2..].iter().product();
            let x = emit!(e, "aten.reshape.default", x, [xs[0], xs[1], 1, inner])?;
            let t = emit!(e, "aten.reshape.default", t, [xs[0], 1, inner])?;
            let v = emit!(e, "aten.nll_loss2d.default", x, t, w, reduction, ignore)?;
            if reduction == 0 { emit!(e, "aten.view.default", v, out) } else { Ok(v) }
        }
    }
}

/// `(self, target, weight, reduction, ignore_index, label_smoothing)`.
fn cross_entropy(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, t, w) = (*a.tensor(0)?, *a.tensor(1)?, a.opt_tensor(2)?.copied());
    let (reduction, ignore, smoothing) = (a.int(3)?, a.int(4)?, a.float(5)?);
    let (xs, ts) = (sizes(e, x), sizes(e, t));
    let class = (xs.len() > 1) as usize;
    ensure!(!xs.is_empty(), "Expected 1 or more dimensions (got 0)");
    ensure!((0.0..=1.0).contains(&smoothing), "label_smoothing must be between 0.0 and 1.0. Got: {smoothing}");
    let classes = xs[class];
    // Views a vector along the class dimension of the input.
    let along = |e: &mut dyn Emit, w: Val| {
        let mut shape = vec![1; xs.len()];
        shape[class] = classes;
        emit!(e, "aten.view.default", w, shape)
    };
    let dtype = e.meta(x).dtype;
    let log = emit!(e, "aten.log_softmax.int", x, class as i64, dtype)?;
    let dim = [class as i64];
    if xs == ts {
        ensure!(
            e.meta(t).dtype.is_float(),
            "Expected floating point type for target with class probabilities, got {}",
            name(e.meta(t).dtype)
        );
        ensure!(ignore < 0, "ignore_index is not supported for floating point target");
        let t = if smoothing > 0.0 {
            let kept = emit!(e, "aten.mul.Tensor", t, 1.0 - smoothing)?;
            emit!(e, "aten.add.Tensor", kept, smoothing / classes as f64)?
        } else {
            t
        };
        let mut v = emit!(e, "aten.mul.Tensor", log, t)?;
        if let Some(w) = w {
            let w = along(e, w)?;
            v = emit!(e, "aten.mul.Tensor", v, w)?;
        }
        let v = match reduction {
            0 => emit!(e, "aten.sum.dim_IntList", v, dim)?,
            1 | 2 => emit!(e, "aten.sum.default", v)?,
            other => return fail(format!("{other} is not a valid value for reduction")),
        };
        let v = emit!(e, "aten.neg.default", v)?;
        let count = xs.iter().product::<i64>() / classes.max(1);
        return Ok(smallvec![if reduction == 1 { emit!(e, "aten.div.Tensor", v, count as f64)? } else { v }]);
    }
    let plain = nd(e, log, t, w, reduction, ignore)?;
    if smoothing == 0.0 {
        return Ok(smallvec![plain]);
    }
    let weighted = match w {
        Some(w) => {
            let w = along(e, w)?;
            emit!(e, "aten.mul.Tensor", log, w)?
        }
        None => log,
    };
    let smooth = emit!(e, "aten.sum.dim_IntList", weighted, dim)?;
    let smooth = emit!(e, "aten.neg.default", smooth)?;
    let ignored = emit!(e, "aten.eq.Scalar", t, ignore)?;
    let smooth = emit!(e, "aten.masked_fill.Scalar", smooth, ignored, 0)?;
    let smooth = match reduction {
        0 => smooth,
        1 => {
            let counted = emit!(e, "aten.logical_not.default", ignored)?;
            let count = match w {
                Some(w) => {
                    // Weights of the counted targets; ignored targets take class 0 until they are masked out.
                    let t = emit!(e, "aten.masked_fill.Scalar", t, ignored, 0)?;
                    let n: i64 = ts.iter().product();
                    let flat = emit!(e, "aten.reshape.default", t, [n])?;
                    let w = emit!(e, "aten.index_select.default", w, 0, flat)?;
                    let flat = emit!(e, "aten.reshape.default", ignored, [n])?;
                    emit!(e, "aten.masked_fill.Scalar", w, flat, 0)?
                }
                None => emit!(e, "aten.to.dtype", counted, dtype)?,
            };
            let count = emit!(e, "aten.sum.default", count)?;
            let all = emit!(e, "aten.sum.default", smooth)?;
            emit!(e, "aten.div.Tensor", all, count)?
        }
        _ => reduced(e, smooth, reduction)?,
    };
    let plain = emit!(e, "aten.mul.Tensor", plain, 1.0 - smoothing)?;
    let smooth = emit!(e, "aten.mul.Tensor", smooth, smoothing / classes as f64)?;
    Ok(smallvec![emit!(e, "aten.add.Tensor", plain, smooth)?])
}

fn bce_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, y, w) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    ensure!(x.dtype.is_float(), "\"binary_cross_entropy\" not implemented for '{}'", name(x.dtype));
    ensure!(y.dtype == x.dtype, "Found dtype {} but expected {}", name(y.dtype), name(x.dtype));
    ensure!(
        x.sizes() == y.sizes(),
        "Using a target size ({:?}) that is different to the input size ({:?}) is not supported",
        y.sizes(),
        x.sizes()
    );
    if let Some(w) = w {
        ensure!(w.dtype == x.dtype, "Found dtype {} but expected {}", name(w.dtype), name(x.dtype));
        ensure!(
            crate::support::strides::broadcast_sizes(&[x.sizes(), w.sizes()])?[..] == *x.sizes(),
            "the weight does not broadcast to the input"
        );
    }
    match reduction(a, 3)? {
        LossReduction::None => one(Meta::new(x.dtype, crate::support::strides::dense_like(&x.layout))),
        _ => one(fresh(x.dtype, &[])),
    }
}

fn bce_run(c: &Call<'_>) -> Result<()> {
    let (x, y, w) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.opt_tensor(2)?);
    let wide = w.map(|w| crate::support::strides::broadcast(w.layout(), x.sizes()));
    ran(loss::binary_cross_entropy(x, y, w.zip(wide.as_ref()), reduction(&c.args, 3)?, &c.outs[0]))
}

fn bce_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (x, y) = (stored(a.tensor(0)?), stored(a.tensor(1)?));
    Ok(loss::binary_cross_entropy_room(x, y, opt_stored(a, 2)?, stored(&outs[0])))
}

macro_rules! nll {
    ($spatial:expr, $samples:expr, $schema:expr) => {
        close($schema, |a| nll_infer(a, $spatial), nll_run, nll_scratch, samples!(|| $samples)).failing()
    };
}
pub(crate) static OPS: &[OpDef] = table![
    nll!(0, flat_samples(), "nll_loss_forward"),
    nll!(2, forward_samples(&[2, 3]), "nll_loss2d_forward"),
    composite!(nll, flat_samples(), "nll_loss").failing(),
    composite!(nll2d, forward_samples(&[2, 3]), "nll_loss2d").failing(),
    composite!(nll_nd, nd_samples(), "nll_loss_nd").failing(),
    composite!(cross_entropy, entropy_samples(), "cross_entropy_loss").failing(),
    close("binary_cross_entropy", bce_infer, bce_run, bce_scratch, samples!(bce_samples)).failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn classes(n: i64, sizes: &[i64], ignore: Option<i64>) -> RawTensor {
        let count: i64 = sizes.iter().product();
        let data: Vec<i64> = (0..count).map(|i| if i % 4 == 2 { ignore.unwrap_or(1) } else { (i * 7) % n }).collect();
        ints(&data, sizes)
    }

    pub(crate) fn forward_samples(spatial: &[i64]) -> Samples {
        let d = DType::F32;
        let mut shape = vec![4, 3];
        shape.extend(spatial);
        let mut ts = vec![4];
        ts.extend(spatial);
        let w = tensor(d, &[3], 9);
        let mut out = Samples::new();
        for (i, x) in forms(d, &shape, 1).into_iter().enumerate() {
            for r in 0..3 {
                if i > 0 && r != i as i64 {
                    continue;
                }
                out.push(sample![&x, classes(3, &ts, None), (), r, -100]);
                out.push(sample![&x, classes(3, &ts, Some(-100)), &w, r, -100]);
                out.push(sample![&x, classes(3, &ts, Some(1)), &w, r, 1]);
            }
        }
        out.push(sample![tensor(d, &shape, 1), classes(4, &ts, None), (), 1, -100]);
        out.push(sample![tensor(DType::F64, &shape, 1), classes(3, &ts, None), tensor(DType::F64, &[3], 1), 1, -100]);
        out.push(sample![tensor(DType::BF16, &shape, 1), classes(3, &ts, None), (), 2, -100]);
        out.push(sample![tensor(d, &shape, 1), classes(3, &ts, Some(-100)), tensor(d, &[4], 1), 1, -100]);
        out.push(sample![tensor(d, &shape, 1), tensor(DType::I32, &ts, 1), (), 1, -100]);
        out
    }

    pub(crate) fn flat_samples() -> Samples {
        let d = DType::F32;
        let mut out = forward_samples(&[]);
        out.push(sample![tensor(d, &[3], 1), classes(3, &[1], None), (), 1, -100]);
        out.push(sample![tensor(d, &[3], 1), classes(3, &[], None), tensor(d, &[3], 2), 2, -100]);
        out.push(sample![tensor(d, &[3], 1), classes(3, &[], None), (), 0, -100]);
        out.push(sample![tensor(d, &[0, 3], 1), classes(3, &[0], None), (), 1, -100]);
        out.push(sample![tensor(d, &[0, 3], 1), classes(3, &[0], None), (), 2, -100]);
        out.push(sample![tensor(d, &[4, 3], 1), classes(3, &[3], None), (), 2, -100]);
        out
    }

    pub(crate) fn nd_samples() -> Samples {
        let d = DType::F32;
        let mut out = Samples::new();
        for spatial in [&[] as &[i64], &[2], &[2, 3], &[2, 3, 2]] {
            let mut shape = vec![4, 3];
            shape.extend(spatial);
            let mut ts = vec![4];
            ts.extend(spatial);
            for r in 0..3 {
                out.push(sample![tensor(d, &shape, 1), classes(3, &ts, Some(-100)), tensor(d, &[3], 2), r]);
            }
            out.push(sample![transposed(d, &shape, 1), classes(3, &ts, None)]);
        }
        out.push(sample![tensor(d, &[3], 1), classes(3, &[], None)]);
        out.push(sample![tensor(d, &[4, 3], 1), classes(3, &[3], None)]);
        out.push(sample![tensor(d, &[4, 3, 2], 1), classes(3, &[4, 3], None)]);
        out
    }

    pub(crate) fn entropy_samples() -> Samples {
        let d = DType::F32;
        let mut out = nd_samples();
        let positive = |sizes: &[i64], seed| in_range(d, Layout::contiguous(sizes), seed, 0.1, 2.0);
        for r in 0..3 {
            for w in [None, Some(positive(&[3], 2))] {
                let w = w.map_or(restride_ir::Arg::None, restride_ir::Arg::Value);
                out.push(sample![tensor(d, &[4, 3, 2], 1), classes(3, &[4, 2], Some(-100)), w.clone(), r, -100, 0.2]);
                out.push(sample![strided(d, &[4, 3], 1), positive(&[4, 3], 3), w.clone(), r, -100, 0.2]);
                out.push(sample![tensor(d, &[4, 3, 2], 1), positive(&[4, 3, 2], 3), w, r]);
            }
        }
        out.push(sample![tensor(d, &[3], 1), positive(&[3], 3)]);
        out.push(sample![tensor(d, &[4, 3], 1), classes(3, &[4, 3], None)]);
        out
    }

    pub(crate) fn bce_samples() -> Samples {
        let unit = |d: DType, l: Layout, seed| in_range(d, l, seed, 0.0, 1.0);
        let d = DType::F32;
        let flat = || Layout::contiguous(&[3, 4]);
        let mut out = Samples::new();
        for r in 0..3 {
            out.push(sample![unit(d, flat(), 1), unit(d, flat(), 2), (), r]);
            out.push(sample![
                unit(d, Layout::permuted(&[3, 4], &[1, 0]), 1),
                unit(d, flat(), 2),
                tensor(d, &[4], 3),
                r
            ]);
        }
        out.push(sample![
            RawTensor::from_slice(&[0f32, 1.0, 0.0, 1.0], &[4]),
            RawTensor::from_slice(&[0f32, 1.0, 1.0, 0.0], &[4])
        ]);
        out.push(sample![unit(DType::F64, flat(), 1), unit(DType::F64, flat(), 2)]);
        out.push(sample![tensor(d, &[3, 4], 1), unit(d, flat(), 2)]);
        out.push(sample![unit(d, flat(), 2), RawTensor::zeros(DType::I64, flat())]);
        out
    }
}
