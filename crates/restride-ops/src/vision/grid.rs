//! Grid sampling: affine grids, and images sampled at given positions.

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Meta, OpDef, Val};
use restride_kernels::vision::grid::{Interpolation, Padding, Sampling, grid_sample};
use smallvec::smallvec;

fn sampling<V>(a: &Args<'_, V>) -> Result<Sampling> {
    let interpolation = match a.int(2)? {
        0 => Interpolation::Linear,
        1 => Interpolation::Nearest,
        2 => Interpolation::Cubic,
        other => return fail(format!("grid_sampler(): no interpolation mode {other}")),
    };
    let padding = match a.int(3)? {
        0 => Padding::Zeros,
        1 => Padding::Border,
        2 => Padding::Reflection,
        other => return fail(format!("grid_sampler(): no padding mode {other}")),
    };
    Ok(Sampling { interpolation, padding, align_corners: a.bool(4)? })
}

fn infer(a: &Args<'_, Meta>, dims: usize) -> Metas {
    let (x, g) = (a.tensor(0)?, a.tensor(1)?);
    sampling(a)?;
    ensure!(
        x.rank() == dims + 2 && g.rank() == dims + 2,
        "grid_sampler(): expected {}D input and grid with same number of dimensions, but got input with sizes {:?} and grid with sizes {:?}",
        dims + 2,
        x.sizes(),
        g.sizes()
    );
    ensure!(
        x.dtype == g.dtype,
        "grid_sampler(): expected input and grid to have same dtype, but input has {} and grid has {}",
        name(x.dtype),
        name(g.dtype)
    );
    ensure!(x.dtype.is_float(), "\"grid_sampler\" not implemented for '{}'", name(x.dtype));
    ensure!(
        x.sizes()[0] == g.sizes()[0],
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes {:?} and grid with sizes {:?}",
        x.sizes(),
        g.sizes()
    );
    ensure!(
        g.sizes()[dims + 1] == dims as i64,
        "grid_sampler(): expected grid to have size {dims} in last dimension, but got grid with sizes {:?}",
        g.sizes()
    );
    ensure!(
        x.sizes()[2..].iter().all(|&n| n > 0),
        "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {:?}",
        x.sizes()
    );
    let mut sizes = x.sizes()[..2].to_vec();
    sizes.extend(&g.sizes()[1..dims + 1]);
    one(fresh(x.dtype, &sizes))
}

fn run(c: &Call<'_>) -> Result<()> {
    let how = sampling(&c.args)?;
    ran(grid_sample(c.args.tensor(0)?, c.args.tensor(1)?, how, &c.outs[0], c.ctx.threads))
}

fn grid_sampler(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let op = match e.meta(*a.tensor(0)?).rank() {
        4 => "aten.grid_sampler_2d.default",
        5 => "aten.grid_sampler_3d.default",
        _ => {
            return fail(format!(
                "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {:?}",
                sizes(e, *a.tensor(0)?)
            ));
        }
    };
    Ok(smallvec![emit!(e, op, pass(a, 0), pass(a, 1), pass(a, 2), pass(a, 3), pass(a, 4))?])
}

/// Positions between -1 and 1 of a dimension's elements, shaped for dimension `back` from the end.
fn line(e: &mut dyn Emit, n: i64, dtype: DType, aligned: bool, rank: usize, back: usize) -> Result<Val> {
    let v = if n <= 1 {
        emit!(e, "aten.zeros.default", [n], dtype)?
    } else {
        let v = emit!(e, "aten.linspace.default", -1, 1, n, dtype)?;
        if aligned { v } else { emit!(e, "aten.mul.Tensor", v, (n - 1) as f64 / n as f64)? }
    };
    let mut shape = vec![1; rank];
    shape[rank - 1 - back] = n;
    emit!(e, "aten.view.default", v, shape)
}

/// `(theta, size, align_corners)`: the base grid of homogeneous coordinates multiplied by the matrices.
fn affine(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (theta, size, aligned) = (*a.tensor(0)?, a.ints(1)?, a.bool(2)?);
    let dims = size.len().wrapping_sub(2);
    ensure!(dims == 2 || dims == 3, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
    let (t, d) = (e.meta(theta), dims as i64);
    ensure!(
        t.sizes() == [size[0], d, d + 1],
        "Expected a batch of {dims}D affine matrices of shape Nx{dims}x{} for size {size:?}. Got {:?}.",
        dims + 1,
        t.sizes()
    );
    ensure!(t.dtype.is_float(), "affine_grid_generator is not implemented for '{}'", name(t.dtype));
    ensure!(size.iter().all(|&n| n >= 0), "Expected a positive output size. Got {size:?}");
    let mut space = size[2..].to_vec();
    let points: i64 = space.iter().product();
    let mut parts = Vec::new();
    space.push(1);
    for back in 0..dims {
        let v = line(e, size[size.len() - 1 - back], t.dtype, aligned, dims + 1, back + 1)?;
        parts.push(emit!(e, "aten.expand.default", v, space.clone())?);
    }
    parts.push(emit!(e, "aten.ones.default", space, t.dtype)?);
    let base = emit!(e, "aten.cat.default", parts, -1)?;
    let base = emit!(e, "aten.view.default", base, [1, points, d + 1])?;
    let base = emit!(e, "aten.expand.default", base, [size[0], points, d + 1])?;
    let turned = emit!(e, "aten.transpose.int", theta, 1, 2)?;
    let v = emit!(e, "aten.bmm.default", base, turned)?;
    let mut out = vec![size[0]];
    out.extend(&size[2..]);
    out.push(d);
    Ok(smallvec![emit!(e, "aten.view.default", v, out)?])
}

macro_rules! sampler {
    ($dims:expr, $schema:expr) => {
        close($schema, |a| infer(a, $dims), run, crate::support::scratch::packed, samples!(|| samples($dims)))
    };
}

pub(crate) static OPS: &[OpDef] = table![
    sampler!(2, "grid_sampler_2d"),
    sampler!(3, "grid_sampler_3d"),
    composite!(grid_sampler, samples(2).into_iter().chain(samples(3)).collect(), "grid_sampler"),
    composite!(affine, affine_samples(), "affine_grid_generator"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn samples(dims: usize) -> Samples {
        let d = DType::F32;
        let (xs, gs) = match dims {
            2 => (vec![2, 3, 4, 5], vec![2, 3, 2, 2]),
            _ => (vec![2, 3, 4, 5, 3], vec![2, 3, 2, 2, 3]),
        };
        let grid = |d: DType| in_range(d, Layout::contiguous(&gs), 7, -1.6, 1.6);
        let mut out = Samples::new();
        for mode in 0..3 {
            for padding in 0..3 {
                for aligned in [false, true] {
                    out.push(sample![tensor(d, &xs, 1), grid(d), mode as i64, padding as i64, aligned]);
                }
            }
        }
        // Positions that are NaN or infinite.
        let count = gs.iter().product::<i64>() as usize;
        let cells: Vec<f32> = (0..count).map(|i| [0.5, f32::NAN, f32::INFINITY, -0.25, 1e20][i % 5]).collect();
        for (mode, padding) in [(0, 0), (0, 1), (1, 0)] {
            out.push(sample![
                tensor(d, &xs, 1),
                restride_tensor::RawTensor::from_slice(&cells, &gs),
                mode,
                padding,
                false
            ]);
        }
        out.extend(forms(d, &xs, 1).into_iter().map(|x| sample![x, grid(d), 0, 0, false]));
        out.extend([
            sample![nhwc(d, &xs, 1), grid(d), 0, 0, false],
            sample![tensor(DType::F64, &xs, 1), grid(DType::F64), 0, 2, false],
            sample![tensor(DType::F64, &xs, 1), grid(d), 0, 2, false],
            sample![tensor(d, &xs[1..], 1), grid(d), 0, 0, false],
            sample![tensor(d, &xs, 1), tensor(d, &xs, 1), 0, 0, false],
        ]);
        out
    }

    pub(crate) fn affine_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[2, 2, 3], 1), [2, 3, 4, 5], false],
            sample![tensor(d, &[2, 2, 3], 1), [2, 3, 4, 5], true],
            sample![tensor(d, &[1, 2, 3], 1), [1, 3, 1, 5], true],
            sample![tensor(DType::F64, &[2, 3, 4], 1), [2, 3, 4, 5, 2], false],
            sample![tensor(d, &[2, 2, 3], 1), [1, 3, 4, 5], false],
            sample![tensor(d, &[2, 2, 3], 1), [2, 3, 0, 5], false],
        ]
    }
}
