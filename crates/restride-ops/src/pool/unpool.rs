//! Indexed pooling: `max_unpool*`, which writes maxima back to their positions, and `fractional_max_pool*`, whose windows
//! are drawn.

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Arg, DType, Emit, MemoryFormat, OpDef, Val};
use smallvec::smallvec;

fn product(sizes: &[i64]) -> i64 {
    sizes.iter().product()
}

/// `max_unpoolNd(self, indices, output_size, …)`
fn unpool(e: &mut dyn Emit, a: &ValArgs<'_>, n: usize) -> Vals {
    let (x, at) = (*a.tensor(0)?, *a.tensor(1)?);
    let (mx, mi) = (e.meta(x), e.meta(at));
    ensure!(mi.dtype == DType::I64, "elements in indices should be type int64 but got: {}", name(mi.dtype));
    let rank = mx.rank();
    ensure!(
        rank == n + 1 || rank == n + 2,
        "Input to max_unpooling{n}d should be a {}d or {}d Tensor, but got a tensor with {rank} dimensions.",
        n + 1,
        n + 2
    );
    ensure!(
        mx.sizes() == mi.sizes(),
        "Expected shape of indices to be same as that of the input tensor ({:?}) but got indices tensor with shape: {:?}",
        mx.sizes(),
        mi.sizes()
    );
    let to = spread(a, 2, n, "output_size")?;
    ensure!(to.iter().all(|&m| m >= 0), "max_unpooling{n}d: output_size must not be negative: {to:?}");
    let (lead, inner) = mx.sizes().split_at(rank - n);
    let flat = |m: i64| -> Vec<i64> { lead.iter().copied().chain([m]).collect() };
    let from = product(inner);
    let (values, places) =
        (emit!(e, "aten.reshape.default", x, flat(from))?, emit!(e, "aten.reshape.default", at, flat(from))?);
    let zeros = emit!(e, "aten.full.default", flat(product(&to)), 0, mx.dtype)?;
    let out = emit!(e, "aten.scatter.src", zeros, -1, places, values)?;
    let shape: Vec<i64> = lead.iter().copied().chain(to.iter().copied()).collect();
    let out = emit!(e, "aten.view.default", out, shape)?;
    if n == 2 && suggests_channels_last(&mx.layout) {
        return Ok(smallvec![emit!(e, "aten.clone.default", out, Arg::MemoryFormat(MemoryFormat::ChannelsLast))?]);
    }
    Ok(smallvec![out])
}
fn unpool2d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    unpool(e, a, 2)
}
fn unpool3d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    unpool(e, a, 3)
}

/// Start of each window along a dimension: `N × C × windows`, for random samples of `N × C`.
fn starts(e: &mut dyn Emit, sample: Val, input: i64, output: i64, pool: i64) -> Result<Val> {
    let m = e.meta(sample);
    let last = emit!(e, "aten.full.default", [m.sizes()[0], m.sizes()[1], 1], input - pool, DType::I64)?;
    if output <= 1 {
        return Ok(last);
    }
    // Computed in the samples' type, to round as PyTorch does.
    let step = (input - pool) as f64 / (output - 1) as f64;
    let step = emit!(e, "aten.full.default", &[][..] as &[i64], step, m.dtype)?;
    let sample = emit!(e, "aten.unsqueeze.default", sample, -1)?;
    let count = emit!(e, "aten.arange.default", output - 1, m.dtype)?;
    let cut = |e: &mut dyn Emit, v: Val| -> Result<Val> {
        let v = emit!(e, "aten.mul.Tensor", v, step)?;
        emit!(e, "aten.to.dtype", v, DType::I64)
    };
    let moved = emit!(e, "aten.add.Tensor", count, sample)?;
    let (moved, base) = (cut(e, moved)?, cut(e, sample)?);
    let first = emit!(e, "aten.sub.Tensor", moved, base)?;
    emit!(e, "aten.cat.default", vec![first, last], -1)
}

/// `fractional_max_poolNd(self, kernel_size, output_size, random_samples)`: maxima, and their indices in their planes.
fn fractional(e: &mut dyn Emit, a: &ValArgs<'_>, n: usize) -> Vals {
    let (x, samples) = (*a.tensor(0)?, *a.tensor(3)?);
    let (mx, ms) = (e.meta(x), e.meta(samples));
    let (kernel, output) = (spread(a, 1, n, "kernel_size")?, spread(a, 2, n, "output_size")?);
    let rank = mx.rank();
    ensure!(
        (rank == n + 1 || rank == n + 2) && mx.sizes()[rank - n - 1..].iter().all(|&m| m > 0),
        "fractional_max_pool{n}d(): Expected {}D or {}D tensor, but got: {:?}",
        n + 1,
        n + 2,
        mx.sizes()
    );
    ensure!(mx.dtype.is_float(), "\"fractional_max_pool{n}d\" not implemented for '{}'", name(mx.dtype));
    ensure!(ms.dtype == mx.dtype, "Expect _random_samples to have the same dtype as input");
    let (lead, inner) = mx.sizes().split_at(rank - n);
    let (batch, channels) = if lead.len() == 2 { (lead[0], lead[1]) } else { (1, lead[0]) };
    ensure!(
        ms.rank() == 3 && ms.sizes()[0] >= batch && ms.sizes()[1] >= channels && ms.sizes()[2] == n as i64,
        "Expect _random_samples of sizes [{batch}, {channels}, {n}], but got {:?}",
        ms.sizes()
    );
    for d in 0..n {
        ensure!(
            kernel[d] >= 1 && output[d] >= 1 && output[d] + kernel[d] - 1 <= inner[d],
            "fractional_max_pool{n}d(): pool size {} too large relative to input size {}",
            kernel[d],
            inner[d]
        );
    }
    let samples = emit!(e, "aten.slice.Tensor", samples, 0, 0, batch, 1)?;
    let samples = emit!(e, "aten.slice.Tensor", samples, 1, 0, channels, 1)?;
    // Indices of the windows' elements, outer dimensions first: N × C × windows × elements, dimension by dimension.
    let mut places: Option<Val> = None;
    for d in 0..n {
        // In two dimensions PyTorch uses the first sample for the last dimension.
        let which = if n == 2 { 1 - d } else { d };
        let sample = emit!(e, "aten.select.int", samples, 2, which as i64)?;
        let first = starts(e, sample, inner[d], output[d], kernel[d])?;
        let inside = emit!(e, "aten.arange.default", kernel[d], DType::I64)?;
        let mut shape = vec![batch, channels];
        shape.extend((0..n).map(|k| if k == d { output[d] } else { 1 }));
        shape.extend((0..n).map(|_| 1));
        let first = emit!(e, "aten.view.default", first, shape)?;
        let mut shape = vec![1; 2 + 2 * n];
        shape[2 + n + d] = kernel[d];
        let inside = emit!(e, "aten.view.default", inside, shape)?;
        let at = emit!(e, "aten.add.Tensor", first, inside)?;
        places = Some(match places {
            None => at,
            Some(p) => {
                let p = emit!(e, "aten.mul.Scalar", p, inner[d])?;
                emit!(e, "aten.add.Tensor", p, at)?
            }
        });
    }
    let Some(places) = places else { return fail("pooling over no dimensions") };
    let (windows, elements) = (product(&output), product(&kernel));
    let flat = emit!(e, "aten.reshape.default", x, [batch, channels, product(inner)])?;
    let at = emit!(e, "aten.reshape.default", places, [batch, channels, windows * elements])?;
    let values = emit!(e, "aten.gather.default", flat, -1, at)?;
    let values = emit!(e, "aten.view.default", values, [batch, channels, windows, elements])?;
    let best = emit_all!(e, "aten.max.dim", values, -1, false)?;
    let at = emit!(e, "aten.view.default", at, [batch, channels, windows, elements])?;
    let which = emit!(e, "aten.unsqueeze.default", best[1], -1)?;
    let at = emit!(e, "aten.gather.default", at, -1, which)?;
    let shape: Vec<i64> = lead.iter().copied().chain(output.iter().copied()).collect();
    Ok(smallvec![emit!(e, "aten.view.default", best[0], shape.clone())?, emit!(e, "aten.view.default", at, shape)?])
}
fn fractional2d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    fractional(e, a, 2)
}
fn fractional3d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    fractional(e, a, 3)
}

/// `fractional_max_poolNd_backward(grad_output, self, kernel_size, output_size, indices)`
fn backward(e: &mut dyn Emit, a: &ValArgs<'_>, n: usize) -> Vals {
    let (g, x, at) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(4)?);
    let (own, to) = (sizes(e, x), sizes(e, at));
    ensure!(own.len() > n && own.len() == to.len(), "fractional_max_pool{n}d_backward: indices do not fit the input");
    let lead = own.len() - n;
    let flat = |s: &[i64]| -> Vec<i64> { s[..lead].iter().copied().chain([product(&s[lead..])]).collect() };
    let dtype = e.meta(x).dtype;
    let zeros = emit!(e, "aten.full.default", flat(&own), 0, dtype)?;
    let at = emit!(e, "aten.reshape.default", at, flat(&to))?;
    let g = emit!(e, "aten.reshape.default", g, flat(&to))?;
    let out = emit!(e, "aten.scatter_add.default", zeros, -1, at, g)?;
    Ok(smallvec![emit!(e, "aten.view.default", out, own)?])
}
fn backward2d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    backward(e, a, 2)
}
fn backward3d(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    backward(e, a, 3)
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(unpool2d, unpools(2), "max_unpool2d").failing(),
    composite!(unpool3d, unpools(3), "max_unpool3d").failing(),
    composite!(fractional2d, fractionals(2), "fractional_max_pool2d"),
    composite!(fractional3d, fractionals(3), "fractional_max_pool3d"),
    composite!(backward2d, backwards(2), "fractional_max_pool2d_backward").failing(),
    composite!(backward3d, backwards(3), "fractional_max_pool3d_backward").failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn unpools(n: usize) -> Samples {
        let from: &[i64] = &[2, 3, 2, 2, 1][..n + 2];
        let to: &[i64] = &[4, 5, 2][..n];
        let count: i64 = to.iter().product();
        let at = |sizes: &[i64]| {
            let m: i64 = sizes.iter().product();
            ints(&(0..m).map(|i| (i * 3) % count).collect::<Vec<_>>(), sizes)
        };
        let extra = |mut s: restride_ir::Sample| {
            if n == 3 {
                s.args.extend([
                    crate::support::samples::IntoArg::arg([2, 2, 1]),
                    crate::support::samples::IntoArg::arg([0, 0, 0]),
                ]);
            }
            s
        };
        let mut out = Samples::new();
        for x in forms(F, from, 1) {
            out.push(extra(sample![x, at(from), to]));
        }
        out.push(extra(sample![tensor(DType::F64, &from[1..], 1), at(&from[1..]), to]));
        if n == 2 {
            out.push(sample![nhwc(F, from, 1), at(from), to]);
        }
        let outside: Vec<i64> = (0..from.iter().product()).map(|i| i + count).collect();
        out.push(extra(sample![tensor(F, from, 1), ints(&outside, from), to]));
        out
    }

    pub(crate) fn drawn(d: DType, sizes: &[i64]) -> RawTensor {
        in_range(d, Layout::contiguous(sizes), 5, 0.0, 1.0)
    }

    pub(crate) fn fractionals(n: usize) -> Samples {
        let from: &[i64] = &[2, 3, 7, 8, 5][..n + 2];
        let mut out = Samples::new();
        for x in forms(F, from, 1) {
            out.push(sample![x, &[2, 3, 2][..n], &[3, 4, 2][..n], drawn(F, &[2, 3, n as i64])]);
        }
        out.push(sample![
            transposed(DType::F64, &from[1..], 1),
            [2],
            &[1, 3, 3][..n],
            drawn(DType::F64, &[1, 3, n as i64])
        ]);
        out.push(sample![tensor(F, from, 1), [8], [2], drawn(F, &[2, 3, n as i64])]);
        out
    }

    pub(crate) fn backwards(n: usize) -> Samples {
        let from: &[i64] = &[2, 3, 4, 4, 2][..n + 2];
        let to: &[i64] = &[2, 3, 2, 2, 2][..n + 2];
        let count: i64 = to.iter().product();
        let at = ints(&(0..count).map(|i| (i * 5) % 16).collect::<Vec<_>>(), to);
        vec![sample![tensor(F, to, 1), tensor(F, from, 2), [2], &to[2..], at]]
    }
}
