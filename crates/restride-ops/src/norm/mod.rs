//! Normalisations over the last dimensions or over groups of channels, softmax, and weight normalisation.

mod backward;
mod backward_grad;
mod batch;
mod grad;
mod softmax;

use crate::support::promote;
use crate::support::scratch::{opt_stored, stored};
use crate::support::tiles::{all, by_rows, leading, whole};
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Meta, OpDef, TileRule};
use restride_kernels::norm::{self, Affine};
use restride_tensor::View;
use smallvec::smallvec;

/// Element type of statistics. Parameters have the operand's type, or are all `f32` beside a half type.
pub(crate) fn stats_type(x: DType, params: &[Option<&Meta>]) -> Result<DType> {
    ensure!(x.is_float(), "normalization is not implemented for '{}'", promote::name(x));
    let mut given = params.iter().flatten().map(|p| p.dtype);
    let half = matches!(x, DType::F16 | DType::BF16);
    let stats = given.clone().next().unwrap_or(x);
    ensure!(
        given.all(|d| d == stats) && (stats == x || (half && stats == DType::F32)),
        "mixed dtype (CPU): expect parameter to have scalar type of Float"
    );
    Ok(stats)
}

/// Number of normalised dimensions, and the sizes of the others.
pub(crate) struct NormalizedRows {
    outer: Vec<i64>,
    rank: usize,
}

pub(crate) fn rows(x: &[i64], normalized: &[i64], params: &[(&str, Option<&[i64]>)]) -> Result<NormalizedRows> {
    ensure!(
        !normalized.is_empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
         normalized_shape = []"
    );
    for (name, p) in params {
        ensure!(
            p.is_none_or(|p| p == normalized),
            "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {p:?} and normalized_shape = \
             {normalized:?}"
        );
    }
    ensure!(
        x.ends_with(normalized),
        "Given normalized_shape={normalized:?}, expected input with shape [*, {normalized:?}], but got input of size {x:?}"
    );
    let outer = x[..x.len() - normalized.len()].to_vec();
    Ok(NormalizedRows { outer, rank: normalized.len() })
}

impl NormalizedRows {
    /// Sizes of the statistics: normalised dimensions have size 1.
    pub(crate) fn stats(&self) -> Vec<i64> {
        self.outer.iter().copied().chain(std::iter::repeat_n(1, self.rank)).collect()
    }
}

fn opt_sizes(p: Option<&Meta>) -> Option<&[i64]> {
    p.map(|p| p.sizes())
}

fn layer_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, w, b) = (a.tensor(0)?, a.opt_tensor(2)?, a.opt_tensor(3)?);
    let r = rows(x.sizes(), &a.ints(1)?, &[("weight", opt_sizes(w)), ("bias", opt_sizes(b))])?;
    let stats = fresh(stats_type(x.dtype, &[w, b])?, &r.stats());
    Ok(smallvec![fresh(x.dtype, x.sizes()), stats.clone(), stats])
}

fn layer(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let len = c.args.ints(1)?.iter().product::<i64>() as usize;
    let affine = Affine { weight: c.args.opt_tensor(2)?.copied(), bias: c.args.opt_tensor(3)?.copied() };
    let stats = (c.outs.get(1), c.outs.get(2));
    ran(norm::layer_norm(x, len, affine, c.args.float(4)?, &c.outs[0], stats, c.ctx.threads))
}

fn layer_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let len = a.ints(1)?.iter().product::<i64>() as usize;
    let affine = [opt_stored(a, 2)?, opt_stored(a, 3)?];
    Ok(norm::layer_norm_room(stored(a.tensor(0)?), len, affine, stored(&outs[0]), outs.len() > 1))
}

fn rms_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let len = a.ints(1)?.iter().product::<i64>() as usize;
    let stats = outs.get(1).map(|s| s.dtype);
    Ok(norm::rms_norm_room(stored(a.tensor(0)?), len, opt_stored(a, 2)?.as_ref(), stored(&outs[0]), stats))
}

/// RMS normalisation of complex numbers, whose squares are complex.
fn complex_rms(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let dtype = e.meta(x).dtype;
    let dims: Vec<i64> = (1..=a.ints(1)?.len() as i64).rev().map(|d| -d).collect();
    let square = emit!(e, "aten.mul.Tensor", x, x)?;
    let mean = emit!(e, "aten.mean.dim", square, dims, true)?;
    let least = if dtype == DType::C128 { f64::EPSILON } else { f32::EPSILON as f64 };
    let mean = emit!(e, "aten.add.Scalar", mean, a.opt_float(3)?.unwrap_or(least))?;
    let scale = emit!(e, "aten.rsqrt.default", mean)?;
    let mut out = emit!(e, "aten.mul.Tensor", x, scale)?;
    if let Some(&w) = a.opt_tensor(2)? {
        out = emit!(e, "aten.mul.Tensor", out, w)?;
    }
    Ok(smallvec![out, scale])
}
fn complex_rms_alone(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(smallvec![complex_rms(e, a)?[0]])
}
fn of_complex(a: &Args<'_, Meta>) -> bool {
    a.tensor(0).is_ok_and(|t| t.dtype.is_complex())
}

/// Result and inverse root mean square. The result is channels-last if the operand is.
fn rms_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, w) = (a.tensor(0)?, a.opt_tensor(2)?);
    let r = rows(x.sizes(), &a.ints(1)?, &[("weight", opt_sizes(w))])?;
    if x.dtype.is_complex() {
        return crate::support::composite::infer(complex_rms, a);
    }
    ensure!(x.dtype.is_float(), "\"rms_norm\" not implemented for '{}'", promote::name(x.dtype));
    ensure!(w.is_none_or(|w| w.dtype.is_float()), "rms_norm: the weight must be of a floating type");
    let wide = if x.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    Ok(smallvec![suggested(&x.layout, x.dtype, x.sizes()), fresh(wide, &r.stats())])
}

fn rms(c: &Call<'_>) -> Result<()> {
    let x = c.args.tensor(0)?;
    let len = c.args.ints(1)?.iter().product::<i64>() as usize;
    let least = if x.dtype() == DType::F64 { f64::EPSILON } else { f32::EPSILON as f64 };
    let eps = c.args.opt_float(3)?.unwrap_or(least);
    ran(norm::rms_norm(x, len, c.args.opt_tensor(2)?, eps, &c.outs[0], c.outs.get(1), c.ctx.threads))
}

/// The first result alone.
fn first_of(metas: Metas) -> Metas {
    one(metas?.swap_remove(0))
}

/// Rows of the last dimensions, as many as argument 1 has sizes, with `parameters` of a row's sizes.
fn by_last(a: &Args<'_, Meta>, results: &[Meta], parameters: std::ops::Range<usize>) -> Option<TileRule> {
    let (rank, row) = (results[0].rank(), a.ints(1).ok()?.len());
    let given = parameters.filter(|i| !a.is_none(*i)).map(|_| whole(row));
    // Statistics have a dimension of size 1 in the place of each of a row.
    let stats = results[1..].iter().map(|r| leading(r.rank(), row));
    let (results, operands) = (std::iter::once(all(rank)).chain(stats), std::iter::once(all(rank)).chain(given));
    by_rows(rank, |d| d + row >= rank, results.collect(), operands.collect())
}

fn by_layer(a: &Args<'_, Meta>, results: &[Meta]) -> Option<TileRule> {
    by_last(a, results, 2..4)
}

fn by_root(a: &Args<'_, Meta>, results: &[Meta]) -> Option<TileRule> {
    by_last(a, results, 2..3)
}

/// Checks shared by both forms of group normalisation.
fn group_checks(x: &Meta, groups: i64, w: Option<&Meta>, b: Option<&Meta>) -> Result<()> {
    ensure!(x.rank() >= 2, "Expected at least 2 dimensions for input tensor but received {}", x.rank());
    let channels = x.sizes()[1];
    ensure!(groups > 0, "Expected num groups to be greater than 0, got {groups}");
    ensure!(
        channels % groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and \
         num_groups={groups}",
        x.sizes()
    );
    for (name, p) in [("weight", w), ("bias", b)] {
        ensure!(
            p.is_none_or(|p| p.sizes() == [channels]),
            "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {:?} \
             and input of shape {:?}",
            p.map(|p| p.sizes()),
            x.sizes()
        );
    }
    ensure!(x.sizes()[2..].iter().all(|&n| n > 0), "Expected HxW to be greater than 0, got 0");
    Ok(())
}

fn group_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, w, b) = (a.tensor(0)?, a.opt_tensor(2)?, a.opt_tensor(3)?);
    group_checks(x, a.int(1)?, w, b)?;
    stats_type(x.dtype, &[w, b])?;
    one(suggested(&x.layout, x.dtype, x.sizes()))
}

fn native_group_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, w, b) = (a.tensor(0)?, a.opt_tensor(1)?, a.opt_tensor(2)?);
    let (n, channels, inner, groups) = (a.int(3)?, a.int(4)?, a.int(5)?, a.int(6)?);
    group_checks(x, groups, w, b)?;
    let found = (x.sizes()[0], x.sizes()[1], x.sizes()[2..].iter().product::<i64>());
    ensure!(
        found == (n, channels, inner),
        "native_group_norm: input of shape {:?} is not {n} x {channels} x {inner}",
        x.sizes()
    );
    let stats = fresh(stats_type(x.dtype, &[w, b])?, &[n, groups]);
    Ok(smallvec![suggested(&x.layout, x.dtype, x.sizes()), stats.clone(), stats])
}

fn run_group(c: &Call<'_>, groups: i64, weight: usize, eps: f64) -> Result<()> {
    let affine = Affine { weight: c.args.opt_tensor(weight)?.copied(), bias: c.args.opt_tensor(weight + 1)?.copied() };
    let stats = (c.outs.get(1), c.outs.get(2));
    ran(norm::group_norm(c.args.tensor(0)?, groups as usize, affine, eps, &c.outs[0], stats, c.ctx.threads))
}

fn group_scratch(a: &Args<'_, Meta>, outs: &[Meta], groups: i64) -> Result<usize> {
    Ok(norm::group_norm_room(stored(a.tensor(0)?), groups as usize, stored(&outs[0])))
}

/// The dimension whose slices have separate norms; `None` for one norm of all elements.
fn kept_dim(a: i64, rank: usize) -> Result<Option<usize>> {
    if a == -1 {
        return Ok(None);
    }
    ensure!(a >= 0 && (a as usize) < rank, "weight_norm: dimension {a} is out of range for {rank} dimensions");
    Ok(Some(a as usize))
}

fn weight_infer(a: &Args<'_, Meta>) -> Metas {
    let (v, g) = (a.tensor(0)?, a.tensor(1)?);
    let dim = kept_dim(a.int(2)?, v.rank())?;
    ensure!(v.dtype == g.dtype && v.dtype.is_float(), "weight_norm: v and g must be of one floating type");
    let count = dim.map_or(1, |d| v.sizes()[d]);
    let norms: Vec<i64> = (0..v.rank()).map(|d| if Some(d) == dim { count } else { 1 }).collect();
    let numel: i64 = g.sizes().iter().product();
    ensure!(
        numel == count && (dim.is_none() || g.sizes() == norms),
        "weight_norm: g of shape {:?} does not fit v of shape {:?} and dimension {:?}",
        g.sizes(),
        v.sizes(),
        dim
    );
    one(fresh(v.dtype, v.sizes()))
}

/// Adds the norms as a second result.
fn weight_interface_infer(a: &Args<'_, Meta>) -> Metas {
    let (v, g) = (a.tensor(0)?, a.tensor(1)?);
    let dim = a.int(2)?;
    ensure!(dim == 0 || dim + 1 == v.rank() as i64, "fused kernels can only be applied for first or last dim");
    let mut out = weight_infer(a)?;
    let norms = if matches!(g.dtype, DType::BF16) { DType::F32 } else { g.dtype };
    out.push(fresh(norms, g.sizes()));
    Ok(out)
}

fn weight(c: &Call<'_>) -> Result<()> {
    let (v, g): (&View<'_>, &View<'_>) = (c.args.tensor(0)?, c.args.tensor(1)?);
    let dim = kept_dim(c.args.int(2)?, v.sizes().len())?;
    ran(norm::weight_norm(v, g, dim, &c.outs[0], c.outs.get(1)))
}

fn weight_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let norms = outs.get(1).map(|n| n.dtype);
    Ok(norm::weight_norm_room(stored(a.tensor(0)?), stored(a.tensor(1)?), stored(&outs[0]), norms))
}

pub(crate) static OPS: &[OpDef] = table![
    close("layer_norm", |a| first_of(layer_infer(a)), layer, layer_scratch, samples!(layer_samples))
        .reusing(IN_PLACE)
        .tiled(by_layer),
    close("native_layer_norm", layer_infer, layer, layer_scratch, samples!(native_layer_samples))
        .reusing(IN_PLACE)
        .tiled(by_layer),
    OpDef {
        decompose: Some(complex_rms_alone),
        composed: Some(of_complex),
        ..close("rms_norm", |a| first_of(rms_infer(a)), rms, rms_scratch, samples!(rms_samples))
            .reusing(IN_PLACE)
            .tiled(by_root)
    },
    OpDef {
        decompose: Some(complex_rms),
        composed: Some(of_complex),
        ..close("_fused_rms_norm", rms_infer, rms, rms_scratch, samples!(rms_samples)).reusing(IN_PLACE).tiled(by_root)
    },
    close(
        "group_norm",
        group_infer,
        |c| run_group(c, c.args.int(1)?, 2, c.args.float(4)?),
        |a, outs| group_scratch(a, outs, a.int(1)?),
        samples!(group_samples),
    )
    .reusing(IN_PLACE),
    close(
        "native_group_norm",
        native_group_infer,
        |c| run_group(c, c.args.int(6)?, 1, c.args.float(7)?),
        |a, outs| group_scratch(a, outs, a.int(6)?),
        samples!(native_group_samples),
    )
    .reusing(IN_PLACE),
    close("_weight_norm", weight_infer, weight, weight_scratch, samples!(weight_samples))
        .noted("v times g over the norm of v, taken over all dimensions but one"),
    close("_weight_norm_interface", weight_interface_infer, weight, weight_scratch, samples!(weight_interface_samples)),
];

/// Other names of PyTorch for operators of this family.
static ALIASES: &[(&str, &str)] = &[("special_softmax", "softmax.int"), ("special_log_softmax", "log_softmax.int")];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[softmax::OPS, OPS, batch::OPS, backward::OPS],
    gradients: &[backward_grad::GRADS, grad::GRADS],
    aliases: ALIASES,
};

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

    /// Sample operands with their normalised sizes, and the type of weight and bias.
    pub(crate) fn layer_cases() -> Vec<(restride_tensor::RawTensor, Vec<i64>, DType)> {
        let mut out = Vec::new();
        for d in FLOATS {
            for x in forms(d, &[3, 4, 10], 1) {
                out.push((x, vec![10], d));
            }
            out.push((tensor(d, &[3, 4, 10], 1), vec![4, 10], d));
        }
        let d = DType::F32;
        out.push((nhwc(d, &[2, 3, 4, 5], 2), vec![5], d));
        out.push((nhwc(d, &[2, 3, 4, 5], 2), vec![3, 4, 5], d));
        out.push((expanded(d, &[3, 6], 1), vec![6], d));
        out.push((tensor(d, &[0, 6], 1), vec![6], d));
        out.push((tensor(d, &[6], 1), vec![6], d));
        out.push((tensor(DType::BF16, &[3, 6], 1), vec![6], d));
        out
    }

    pub(crate) fn layer_samples() -> Samples {
        let mut out = Vec::new();
        for (x, n, d) in layer_cases() {
            out.push(sample![&x, &n[..], tensor(d, &n, 5), transposed(d, &n, 6), 1e-3]);
            out.push(sample![&x, &n[..], strided(d, &n, 5)]);
            out.push(sample![&x, &n[..]]);
        }
        let x = tensor(DType::F32, &[3, 6], 1);
        out.push(sample![&x, [5]]);
        out.push(sample![&x, [6], tensor(DType::F32, &[3], 1)]);
        out.push(sample![&x, [6], tensor(DType::F64, &[6], 1)]);
        out
    }

    pub(crate) fn native_layer_samples() -> Samples {
        let mut out = Vec::new();
        for (x, n, d) in layer_cases() {
            out.push(sample![&x, &n[..], tensor(d, &n, 5), tensor(d, &n, 6), 1e-3]);
            out.push(sample![&x, &n[..], (), (), 1e-5]);
        }
        out
    }

    pub(crate) fn rms_samples() -> Samples {
        let mut out = Vec::new();
        for (x, n, d) in layer_cases() {
            out.push(sample![&x, &n[..], tensor(d, &n, 5), 1e-3]);
            out.push(sample![&x, &n[..], (), ()]);
        }
        out.push(sample![tensor(DType::F32, &[3, 6], 1), [6], tensor(DType::F64, &[6], 1), ()]);
        out
    }

    pub(crate) fn group_samples() -> Samples {
        let mut out = Vec::new();
        for d in FLOATS {
            let (w, b) = (tensor(d, &[6], 7), tensor(d, &[6], 8));
            for x in forms(d, &[2, 6, 5], 1) {
                out.push(sample![x, 3, &w, &b]);
            }
            out.push(sample![nhwc(d, &[2, 6, 4, 5], 1), 2, strided(d, &[6], 4), &b, 1e-3]);
        }
        let d = DType::F32;
        out.push(sample![tensor(d, &[2, 6], 1), 3]);
        out.push(sample![nhwc(d, &[2, 6, 2, 4, 5], 1), 6]);
        out.push(sample![tensor(DType::BF16, &[2, 6, 5], 1), 1, tensor(d, &[6], 2), tensor(d, &[6], 3)]);
        out.push(sample![tensor(d, &[0, 6, 5], 1), 2]);
        out.push(sample![tensor(d, &[2, 6, 5], 1), 4]);
        out
    }

    pub(crate) fn native_group_samples() -> Samples {
        let mut out = Vec::new();
        for d in FLOATS {
            let (w, b) = (tensor(d, &[6], 7), tensor(d, &[6], 8));
            out.push(sample![nhwc(d, &[2, 6, 4, 5], 1), &w, &b, 2, 6, 20, 3, 1e-5]);
            out.push(sample![transposed(d, &[2, 6, 5], 1), (), (), 2, 6, 5, 1, 1e-3]);
        }
        out
    }

    /// Row-major samples: PyTorch's kernel assumes row-major operands.
    pub(crate) fn weight_interface_samples() -> Samples {
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64] {
            out.push(sample![tensor(d, &[4, 3], 1), tensor(d, &[4, 1], 2)]);
            out.push(sample![tensor(d, &[4, 3, 5], 1), tensor(d, &[1, 1, 5], 2), 2]);
        }
        out
    }

    pub(crate) fn weight_samples() -> Samples {
        let mut out = weight_interface_samples();
        for d in [DType::F32, DType::F64] {
            out.push(sample![transposed(d, &[4, 3, 5], 1), tensor(d, &[4, 1, 1], 2), 0]);
            out.push(sample![transposed(d, &[4, 3, 5], 1), strided(d, &[1, 3, 1], 2), 1]);
        }
        out.push(sample![tensor(DType::F32, &[4, 3, 5], 1), tensor(DType::F32, &[1, 3, 1], 2), 1]);
        out.push(sample![tensor(DType::F32, &[4, 3, 5], 1), tensor(DType::F32, &[], 2), -1]);
        out
    }
}
