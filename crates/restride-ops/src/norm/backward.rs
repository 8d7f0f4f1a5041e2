//! Gradients of normalisations. A result that the mask omits is an empty tensor.

use crate::norm::rows;
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, DType, Meta, OpDef};
use restride_kernels::norm::backward::{self, Lies, NormGradients, Over};
use restride_kernels::support::pack::pack;
use restride_kernels::support::scratch::room;
use smallvec::smallvec;

/// Result types by the mask at `at`: the operand's gradient, then the gradients of weight and bias.
fn results(a: &Args<'_, Meta>, at: usize, input: Meta, params: Meta) -> Metas {
    let mask = a.ints(at)?;
    let none = |d: DType| fresh(d, &[0]);
    let mut out = smallvec![if mask.first().is_some_and(|m| *m != 0) { input.clone() } else { none(input.dtype) }];
    for m in &mask[1..] {
        out.push(if *m != 0 { params.clone() } else { none(params.dtype) });
    }
    Ok(out)
}

fn gradients<'a>(c: &Call<'a>, at: usize) -> Result<NormGradients<'a>> {
    let mask = c.args.ints(at)?;
    let out = |i: usize| if mask.get(i).is_some_and(|m| *m != 0) { c.outs.get(i) } else { None };
    Ok(NormGradients { input: out(0), weight: out(1), bias: out(2) })
}

/// Storage of the results of a call, by its mask at `at`.
fn lie<'a>(a: &Args<'a, Meta>, x: usize, at: usize, outs: &'a [Meta]) -> Result<Lies<'a>> {
    let mask = a.ints(at)?;
    let asked = |i: usize| mask.get(i).is_some_and(|m| *m != 0);
    let pair = [stored(a.tensor(0)?), stored(a.tensor(x)?)];
    Ok(Lies { pair, input: asked(0).then(|| stored(&outs[0])), params: asked(1) || asked(2) })
}
fn layer_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(backward::rows_room(&lie(a, 1, 7, outs)?, a.ints(2)?.iter().product::<i64>() as usize))
}
fn rms_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(backward::rows_room(&lie(a, 1, 5, outs)?, a.ints(2)?.iter().product::<i64>() as usize))
}
fn group_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let stats = a.tensor(2)?.layout.numel() as usize;
    Ok(2 * room::<f64>(stats) + backward::channels_room(&lie(a, 1, 9, outs)?, stats))
}
fn batch_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let stats = a.tensor(1)?.sizes()[1] as usize;
    Ok(3 * room::<f64>(stats) + backward::channels_room(&lie(a, 1, BATCH.mask, outs)?, stats))
}

fn check_pair(g: &Meta, x: &Meta) -> Result<()> {
    ensure!(x.dtype.is_float(), "not implemented for '{}'", crate::support::promote::name(x.dtype));
    ensure!(
        g.sizes() == x.sizes() && g.dtype == x.dtype,
        "the gradient must be of the operand's type and sizes, got {g} and {x}"
    );
    Ok(())
}

/// Type of the parameters' gradients; without parameters, the statistics' type.
fn param_type(weight: Option<&Meta>, stats: &Meta) -> DType {
    weight.map_or(stats.dtype, |w| w.dtype)
}

/// `(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)`
fn layer_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, x, mean, rstd) = (a.tensor(0)?, a.tensor(1)?, a.tensor(3)?, a.tensor(4)?);
    let (w, normalized) = (a.opt_tensor(5)?, a.ints(2)?);
    check_pair(g, x)?;
    let r = rows(x.sizes(), &normalized, &[("weight", w.map(|w| w.sizes()))])?;
    let count: i64 = r.stats().iter().product();
    for s in [mean, rstd] {
        ensure!(s.layout.numel() == count, "statistics {s} do not fit {x}");
    }
    results(a, 7, fresh(x.dtype, x.sizes()), fresh(param_type(w, mean), &normalized))
}

fn layer(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let len = a.ints(2)?.iter().product::<i64>() as usize;
    let (mean, rstd, w) = (a.tensor(3)?, a.tensor(4)?, a.opt_tensor(5)?);
    ran(backward::rows(a.tensor(0)?, a.tensor(1)?, len, Some(mean), rstd, w, &gradients(c, 7)?, c.ctx.threads))
}

/// `(grad_out, input, normalized_shape, rstd, weight, output_mask)`
fn rms_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, x, rstd, w) = (a.tensor(0)?, a.tensor(1)?, a.tensor(3)?, a.opt_tensor(4)?);
    let normalized = a.ints(2)?;
    check_pair(g, x)?;
    let r = rows(x.sizes(), &normalized, &[("weight", w.map(|w| w.sizes()))])?;
    ensure!(rstd.layout.numel() == r.stats().iter().product::<i64>(), "statistics {rstd} do not fit {x}");
    results(a, 5, fresh(x.dtype, x.sizes()), fresh(w.map_or(x.dtype, |w| w.dtype), &normalized))
}

fn rms(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let len = a.ints(2)?.iter().product::<i64>() as usize;
    let (rstd, w) = (a.tensor(3)?, a.opt_tensor(4)?);
    ran(backward::rows(a.tensor(0)?, a.tensor(1)?, len, None, rstd, w, &gradients(c, 5)?, c.ctx.threads))
}

/// `(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)`
fn group_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, x, mean, rstd, w) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.tensor(3)?, a.opt_tensor(4)?);
    check_pair(g, x)?;
    let (n, channels, inner, groups) = (a.int(5)?, a.int(6)?, a.int(7)?, a.int(8)?);
    ensure!(x.rank() >= 2, "native_group_norm_backward: expected at least 2 dimensions, got {x}");
    let found = (x.sizes()[0], x.sizes()[1], x.sizes()[2..].iter().product::<i64>());
    ensure!(found == (n, channels, inner), "native_group_norm_backward: {x} is not {n} x {channels} x {inner}");
    ensure!(groups > 0 && channels % groups == 0, "{channels} channels are not {groups} groups");
    for s in [mean, rstd] {
        ensure!(s.layout.numel() == n * groups, "statistics {s} do not fit {x} in {groups} groups");
    }
    ensure!(w.is_none_or(|w| w.sizes() == [channels]), "the weight does not have {channels} elements");
    results(a, 9, suggested(&x.layout, x.dtype, x.sizes()), fresh(param_type(w, mean), &[channels]))
}

fn group(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let (mean, rstd) = (pack::<f64>(a.tensor(2)?).into_owned(), pack::<f64>(a.tensor(3)?).into_owned());
    let over = Over::Groups(a.int(8)? as usize);
    let (g, x, w) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(4)?);
    ran(backward::channels(g, x, over, &mean, &rstd, w, &gradients(c, 9)?, c.ctx.threads))
}

/// Argument positions of one form of the batch normalisation gradient.
#[derive(Clone, Copy)]
struct BatchNormGradArgs {
    train: usize,
    eps: usize,
    mask: usize,
}

const BATCH: BatchNormGradArgs = BatchNormGradArgs { train: 7, eps: 8, mask: 9 };

/// `(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)`
fn batch_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, x, w) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    check_pair(g, x)?;
    ensure!(x.rank() >= 2, "batch_norm_backward: expected at least 2 dimensions, got {x}");
    let channels = x.sizes()[1];
    let (first, second, what) = if a.bool(BATCH.train)? { (5, 6, "saved") } else { (3, 4, "running") };
    for i in [first, second] {
        let s = a.opt_tensor(i)?;
        ensure!(
            s.is_some_and(|s| s.sizes() == [channels]),
            "batch_norm_backward: {what} statistics of {channels} channels are needed"
        );
    }
    ensure!(w.is_none_or(|w| w.sizes() == [channels]), "the weight does not have {channels} elements");
    let stats = a.tensor(first)?;
    results(a, BATCH.mask, suggested(&x.layout, x.dtype, x.sizes()), fresh(param_type(w, stats), &[channels]))
}

fn batch(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let train = a.bool(BATCH.train)?;
    let eps = a.float(BATCH.eps)?;
    let (mean, rstd, over) = if train {
        (pack::<f64>(a.tensor(5)?).into_owned(), pack::<f64>(a.tensor(6)?).into_owned(), Over::Batch)
    } else {
        let invstd = pack::<f64>(a.tensor(4)?).iter().map(|v| 1.0 / (v + eps).sqrt()).collect();
        (pack::<f64>(a.tensor(3)?).into_owned(), invstd, Over::Given)
    };
    let (g, x, w) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    ran(backward::channels(g, x, over, &mean, &rstd, w, &gradients(c, BATCH.mask)?, c.ctx.threads))
}

macro_rules! gradient {
    ($schema:literal, $infer:ident, $run:ident, $scratch:ident, $samples:expr) => {
        close($schema, $infer, $run, $scratch, samples!($samples))
    };
}

pub(crate) static OPS: &[OpDef] = table![
    gradient!("native_layer_norm_backward", layer_infer, layer, layer_scratch, layer_samples),
    gradient!("_fused_rms_norm_backward", rms_infer, rms, rms_scratch, rms_samples),
    gradient!("native_group_norm_backward", group_infer, group, group_scratch, group_samples),
    gradient!("native_batch_norm_backward", batch_infer, batch, batch_scratch, batch_samples),
    gradient!("batch_norm_backward", batch_infer, batch, batch_scratch, reserved_samples),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use crate::norm::samples::FLOATS;
    pub(super) use crate::support::samples::*;

    pub(crate) fn mask(bits: &[bool]) -> SampleArg {
        Arg::Scalars(bits.iter().map(|&b| Scalar::Bool(b)).collect())
    }

    pub(crate) fn positive(d: DType, sizes: &[i64], seed: u64) -> RawTensor {
        in_range(d, Layout::contiguous(sizes), seed, 0.5, 1.5)
    }

    pub(crate) fn layer_samples() -> Samples {
        let mut out = Vec::new();
        for d in FLOATS {
            let (w, b) = (tensor(d, &[5], 4), tensor(d, &[5], 5));
            for x in forms(d, &[3, 4, 5], 1) {
                let g = tensor(d, &[3, 4, 5], 9);
                let (m, r) = (tensor(d, &[3, 4, 1], 2), positive(d, &[3, 4, 1], 3));
                out.push(sample![&g, &x, [5], &m, &r, &w, &b, mask(&[true; 3])]);
            }
        }
        let d = DType::F32;
        let (x, g) = (tensor(d, &[3, 4, 5], 1), transposed(d, &[3, 4, 5], 9));
        let w = tensor(d, &[4, 5], 4);
        let (m, r) = (tensor(d, &[3, 1, 1], 2), positive(d, &[3, 1, 1], 3));
        out.push(sample![&g, &x, [4, 5], &m, &r, &w, &w, mask(&[true; 3])]);
        let w = tensor(d, &[5], 4);
        let e = tensor(d, &[0, 5], 1);
        out.push(sample![&e, &e, [5], tensor(d, &[0, 1], 1), tensor(d, &[0, 1], 1), &w, &w, mask(&[true; 3])]);
        out
    }

    /// Row-major samples: PyTorch's composition keeps other strides.
    pub(crate) fn rms_samples() -> Samples {
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64, DType::F16] {
            let (g, x) = (tensor(d, &[3, 4, 5], 9), tensor(d, &[3, 4, 5], 1));
            let stats = if d == DType::F64 { d } else { DType::F32 };
            for (n, r) in [(&[5][..], &[3, 4, 1]), (&[4, 5], &[3, 1, 1])] {
                let (w, r) = (tensor(d, n, 4), positive(stats, r, 3));
                out.push(sample![&g, &x, n, &r, &w, mask(&[true; 2])]);
            }
        }
        out
    }

    pub(crate) fn group_samples() -> Samples {
        let mut out = Vec::new();
        for d in FLOATS {
            let w = tensor(d, &[6], 4);
            let (m, r) = (tensor(d, &[2, 3], 2), positive(d, &[2, 3], 3));
            for x in forms(d, &[2, 6, 5], 1) {
                out.push(sample![tensor(d, &[2, 6, 5], 9), x, &m, &r, &w, 2, 6, 5, 3, mask(&[true; 3])]);
            }
            let (g, x) = (tensor(d, &[2, 6, 4, 5], 9), nhwc(d, &[2, 6, 4, 5], 1));
            out.push(sample![g, x, &m, &r, (), 2, 6, 20, 3, mask(&[true; 3])]);
        }
        out
    }

    pub(crate) fn batch_samples() -> Samples {
        let mut out = Vec::new();
        for d in FLOATS {
            let (w, m, v) = (tensor(d, &[4], 4), tensor(d, &[4], 5), positive(d, &[4], 6));
            let (sm, si) = (tensor(d, &[4], 7), positive(d, &[4], 8));
            let mut pairs: Vec<(RawTensor, RawTensor)> =
                forms(d, &[3, 4, 5], 1).into_iter().map(|x| (tensor(d, &[3, 4, 5], 9), x)).collect();
            pairs.push((nhwc(d, &[2, 4, 3, 5], 9), nhwc(d, &[2, 4, 3, 5], 1)));
            pairs.push((tensor(d, &[2, 4, 3, 5], 9), nhwc(d, &[2, 4, 3, 5], 1)));
            for (g, x) in pairs {
                for train in [true, false] {
                    out.push(sample![&g, &x, &w, &m, &v, &sm, &si, train, 1e-3, mask(&[true; 3])]);
                    out.push(sample![&g, &x, (), &m, &v, &sm, &si, train, 1e-3, mask(&[true; 3])]);
                }
            }
        }
        out
    }

    pub(crate) fn reserved_samples() -> Samples {
        let mut out = batch_samples();
        out.retain(|s| matches!(s.args[2], Arg::Value(_)));
        out.iter_mut().for_each(|s| s.args.push(RawTensor::zeros(DType::U8, Layout::contiguous(&[0])).arg()));
        out
    }
}
