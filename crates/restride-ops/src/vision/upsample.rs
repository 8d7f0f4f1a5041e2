//! Interpolation of the last dimensions: nearest, linear, cubic, antialiased.

use crate::support::promote::name;
use crate::support::scratch::{mapped, stored};
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Exactness, Meta, OpDef, Scalar};
use restride_kernels::movement::remap::remap;
use restride_kernels::support::scratch::Temp;
use restride_kernels::vision::resample::{Filter, Scaling, resample, resample_room};
use restride_kernels::vision::resample_bytes::{resample_bytes, resample_bytes_room};
use restride_tensor::PerDim;
use smallvec::{SmallVec, smallvec};

fn show(sizes: &[i64]) -> String {
    format!("[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}

/// How a result element follows from input elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UpsampleMode {
    /// The element below its corner.
    Nearest,
    /// The element below its centre.
    NearestExact,
    /// A weighted sum of neighbours.
    Filter(Filter),
}

impl UpsampleMode {
    /// Position of the first scale: after the sizes and an optional `align_corners`.
    fn scales(self) -> usize {
        if matches!(self, UpsampleMode::Filter(_)) { 3 } else { 2 }
    }
}

fn infer(a: &Args<'_, Meta>, mode: UpsampleMode, dims: usize) -> Metas {
    let (x, out) = (a.tensor(0)?, spread(a, 1, dims, "output_size")?);
    ensure!(x.rank() == dims + 2, "It is expected input_size equals to {}, but got size {}", dims + 2, x.rank());
    let spatial = &x.sizes()[2..];
    ensure!(
        spatial.iter().chain(&out).all(|&n| n > 0),
        "Input and output sizes should be greater than 0, but got input {} output {}",
        show(spatial),
        show(&out)
    );
    ensure!(
        x.sizes()[1] > 0,
        "Non-empty {}D data tensor expected but got a tensor with sizes {}",
        dims + 2,
        show(x.sizes())
    );
    let takes = match mode {
        UpsampleMode::Nearest | UpsampleMode::NearestExact => x.dtype.is_float() || x.dtype == DType::U8,
        UpsampleMode::Filter(_) if x.dtype == DType::U8 => dims == 2,
        UpsampleMode::Filter(Filter::Linear | Filter::Cubic) => x.dtype.is_float(),
        UpsampleMode::Filter(_) => matches!(x.dtype, DType::F32 | DType::F64),
    };
    ensure!(takes, "scaling is not implemented for '{}'", name(x.dtype));
    let mut sizes = x.sizes()[..2].to_vec();
    sizes.extend(out);
    one(if dims == 1 { fresh(x.dtype, &sizes) } else { suggested(&x.layout, x.dtype, &sizes) })
}

/// The input index that each result index reads.
fn nearest_map(input: usize, output: usize, scale: Option<f64>, exact: bool, dtype: DType) -> Temp<usize> {
    let shift = if exact { 0.5 } else { 0.0 };
    let scale = scale.filter(|&s| s > 0.0);
    // Positions have the elements' precision, as in PyTorch.
    if dtype == DType::F64 {
        let ratio = scale.map_or(input as f64 / output as f64, |s| 1.0 / s);
        return (0..output).map(|i| (((i as f64 + shift) * ratio).floor() as usize).min(input - 1)).collect();
    }
    let (ratio, shift) = (scale.map_or(input as f32 / output as f32, |s| (1.0 / s) as f32), shift as f32);
    (0..output).map(|i| (((i as f32 + shift) * ratio).floor() as usize).min(input - 1)).collect()
}

fn run(c: &Call<'_>, mode: UpsampleMode, dims: usize) -> Result<()> {
    let x = c.args.tensor(0)?;
    let out = &c.outs[0];
    let each = scaled(&c.args, mode, dims, x.sizes(), out.sizes())?;
    let filter = match mode {
        UpsampleMode::Filter(f) => f,
        _ => {
            let mut maps: PerDim<Temp<usize>> = x.sizes()[..2].iter().map(|&n| (0..n as usize).collect()).collect();
            let exact = mode == UpsampleMode::NearestExact;
            maps.extend(each.into_iter().map(|(n, m, s)| match m {
                // PyTorch ignores the given scales here and uses the sizes.
                _ if dims == 2 && !exact && (m == n || m == 2 * n) => (0..m).map(|i| i * n / m).collect(),
                _ => nearest_map(n, m, s, exact, x.dtype()),
            }));
            return ran(remap(x, &maps, Scalar::Int(0), out, c.ctx.threads));
        }
    };
    let each = scalings(each, filter, c.args.bool(2)?);
    if let (DType::U8, [rows, columns]) = (x.dtype(), &each[..]) {
        resample_bytes(x, [rows, columns], out, c.ctx.threads);
        return Ok(());
    }
    ran(resample(x, &each, out, c.ctx.threads))
}

/// Operand size, result size and scale of each dimension.
type ScaledSizes = SmallVec<[(usize, usize, Option<f64>); 3]>;

fn scaled<V>(a: &Args<'_, V>, mode: UpsampleMode, dims: usize, from: &[i64], to: &[i64]) -> Result<ScaledSizes> {
    (0..dims).map(|d| Ok((from[2 + d] as usize, to[2 + d] as usize, a.opt_float(mode.scales() + d)?))).collect()
}
fn scalings(each: ScaledSizes, filter: Filter, align_corners: bool) -> SmallVec<[Scaling; 3]> {
    each.into_iter().map(|(input, output, scale)| Scaling { filter, input, output, align_corners, scale }).collect()
}
fn scratch(a: &Args<'_, Meta>, outs: &[Meta], mode: UpsampleMode, dims: usize) -> Result<usize> {
    let (UpsampleMode::Filter(filter), x) = (mode, a.tensor(0)?) else { return mapped(a, outs) };
    let each = scaled(a, mode, dims, x.sizes(), outs[0].sizes())?;
    let each = scalings(each, filter, a.bool(2)?);
    if let (DType::U8, [rows, columns]) = (x.dtype, &each[..]) {
        return Ok(resample_bytes_room(stored(x), [rows, columns], stored(&outs[0])));
    }
    Ok(resample_room(stored(x), &each, stored(&outs[0])))
}

/// The `vec` overload, with either sizes or scales.
fn vec(e: &mut dyn Emit, a: &ValArgs<'_>, op: &str, mode: UpsampleMode, dims: usize) -> Vals {
    let x = *a.tensor(0)?;
    let factors = a.opt_floats(mode.scales())?;
    let input = sizes(e, x);
    ensure!(input.len() == dims + 2, "It is expected input_size equals to {}, but got size {}", dims + 2, input.len());
    let (out, scales) = match (a.opt_ints(1)?, factors) {
        (Some(out), None) => {
            ensure!(out.len() == dims, "output_size must have {dims} elements, got {}", out.len());
            (out, vec![None; dims])
        }
        (None, Some(f)) => {
            ensure!(f.len() == dims, "scale_factors must have {dims} elements, got {}", f.len());
            let out = f.iter().zip(&input[2..]).map(|(f, &n)| (n as f64 * f) as i64).collect();
            (out, f.into_iter().map(Some).collect())
        }
        _ => return fail("Must specify exactly one of output_size and scale_factors"),
    };
    let mut args = vec![x.operand(), out.operand()];
    if matches!(mode, UpsampleMode::Filter(_)) {
        args.push(a.bool(2)?.operand());
    }
    args.extend(scales.into_iter().map(IntoOperand::operand));
    Ok(smallvec![first(e.call(op, &args), op)?])
}

macro_rules! scaling {
    ($schema:expr, $vec:expr, $name:literal, $mode:expr, $dims:expr, $exactness:expr) => {
        [
            OpDef {
                exactness: $exactness,
                ..close(
                    $schema,
                    |a| infer(a, $mode, $dims),
                    |c| run(c, $mode, $dims),
                    |a, outs| scratch(a, outs, $mode, $dims),
                    samples!(|| samples($mode, $dims)),
                )
            },
            OpDef {
                infer: Some(|a| crate::support::composite::infer(|e, a| vec(e, a, $name, $mode, $dims), a)),
                decompose: Some(|e, a| vec(e, a, $name, $mode, $dims)),
                exactness: $exactness,
                samples: samples!(|| vec_samples($mode, $dims)),
                ..OpDef::new($vec)
            },
        ]
    };
}

const CLOSE: Exactness = Exactness::Within { rtol: 1e-4, atol: 1e-5 };
const LINEAR: UpsampleMode = UpsampleMode::Filter(Filter::Linear);
const CUBIC: UpsampleMode = UpsampleMode::Filter(Filter::Cubic);
const LINEAR_AA: UpsampleMode = UpsampleMode::Filter(Filter::LinearAntialias);
const CUBIC_AA: UpsampleMode = UpsampleMode::Filter(Filter::CubicAntialias);
const LANCZOS_AA: UpsampleMode = UpsampleMode::Filter(Filter::LanczosAntialias);

pub(crate) static OPS: &[OpDef] = {
    static ALL: [[OpDef; 2]; 13] = [
        scaling!(
            "upsample_nearest1d",
            "upsample_nearest1d.vec",
            "aten.upsample_nearest1d.default",
            UpsampleMode::Nearest,
            1,
            Exactness::Exact
        ),
        scaling!(
            "upsample_nearest2d",
            "upsample_nearest2d.vec",
            "aten.upsample_nearest2d.default",
            UpsampleMode::Nearest,
            2,
            Exactness::Exact
        ),
        scaling!(
            "upsample_nearest3d",
            "upsample_nearest3d.vec",
            "aten.upsample_nearest3d.default",
            UpsampleMode::Nearest,
            3,
            Exactness::Exact
        ),
        scaling!(
            "_upsample_nearest_exact1d",
            "_upsample_nearest_exact1d.vec",
            "aten._upsample_nearest_exact1d.default",
            UpsampleMode::NearestExact,
            1,
            Exactness::Exact
        ),
        scaling!(
            "_upsample_nearest_exact2d",
            "_upsample_nearest_exact2d.vec",
            "aten._upsample_nearest_exact2d.default",
            UpsampleMode::NearestExact,
            2,
            Exactness::Exact
        ),
        scaling!(
            "_upsample_nearest_exact3d",
            "_upsample_nearest_exact3d.vec",
            "aten._upsample_nearest_exact3d.default",
            UpsampleMode::NearestExact,
            3,
            Exactness::Exact
        ),
        scaling!("upsample_linear1d", "upsample_linear1d.vec", "aten.upsample_linear1d.default", LINEAR, 1, CLOSE),
        scaling!(
            "upsample_bilinear2d",
            "upsample_bilinear2d.vec",
            "aten.upsample_bilinear2d.default",
            LINEAR,
            2,
            CLOSE
        ),
        scaling!(
            "upsample_trilinear3d",
            "upsample_trilinear3d.vec",
            "aten.upsample_trilinear3d.default",
            LINEAR,
            3,
            CLOSE
        ),
        scaling!("upsample_bicubic2d", "upsample_bicubic2d.vec", "aten.upsample_bicubic2d.default", CUBIC, 2, CLOSE),
        scaling!(
            "_upsample_bilinear2d_aa",
            "_upsample_bilinear2d_aa.vec",
            "aten._upsample_bilinear2d_aa.default",
            LINEAR_AA,
            2,
            CLOSE
        ),
        scaling!(
            "_upsample_bicubic2d_aa",
            "_upsample_bicubic2d_aa.vec",
            "aten._upsample_bicubic2d_aa.default",
            CUBIC_AA,
            2,
            CLOSE
        ),
        scaling!(
            "_upsample_lanczos2d_aa",
            "_upsample_lanczos2d_aa.vec",
            "aten._upsample_lanczos2d_aa.default",
            LANCZOS_AA,
            2,
            CLOSE
        ),
    ];
    ALL.as_flattened()
};

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    pub(crate) const SHAPE: [i64; 5] = [2, 3, 4, 5, 3];

    pub(crate) const SIZES: [[i64; 3]; 6] = [[7, 3, 5], [4, 5, 3], [1, 9, 2], [8, 10, 6], [4, 8, 4], [8, 4, 3]];

    pub(super) fn samples(mode: UpsampleMode, dims: usize) -> Samples {
        let d = DType::F32;
        let shape = &SHAPE[..dims + 2];
        let aligned: &[bool] = if matches!(mode, UpsampleMode::Filter(_)) { &[false, true] } else { &[false] };
        let mut out = Samples::new();
        for (i, size) in SIZES.iter().enumerate() {
            for &aligned in aligned {
                let mut s = sample![forms(d, shape, i as u64)[i % 3].clone(), &size[..dims]];
                if matches!(mode, UpsampleMode::Filter(_)) {
                    s.args.push(crate::support::samples::IntoArg::arg(aligned));
                }
                let mut scaled = s.clone();
                scaled.args.extend(
                    (0..dims)
                        .map(|d| crate::support::samples::IntoArg::arg(size[d] as f64 / shape[d + 2] as f64 + 0.1)),
                );
                out.extend([s, scaled]);
            }
        }
        let mut with = |t: restride_tensor::RawTensor, size: &[i64]| {
            let mut s = sample![t, size];
            if matches!(mode, UpsampleMode::Filter(_)) {
                s.args.push(crate::support::samples::IntoArg::arg(false));
            }
            out.push(s);
        };
        if dims > 1 {
            with(nhwc(d, shape, 1), &SIZES[0][..dims]);
            with(nhwc(d, shape, 1), &SIZES[3][..dims]);
        }
        with(expanded(d, shape, 1), &SIZES[0][..dims]);
        with(tensor(d, &shape[1..], 1), &SIZES[0][..dims]);
        with(tensor(d, shape, 1), &[0; 3][..dims]);
        let mut none = shape.to_vec();
        none[0] = 0;
        with(tensor(d, &none, 1), &SIZES[0][..dims]);
        for d in [DType::F64, DType::F16, DType::BF16, DType::I64] {
            with(tensor(d, shape, 1), &SIZES[0][..dims]);
        }
        for size in [SIZES[0], SIZES[2], SIZES[4]] {
            with(tensor(DType::U8, shape, 1), &size[..dims]);
        }
        if dims == 2 {
            // Few channels, channels last and more than four channels: PyTorch has different kernels for them.
            with(nhwc(DType::U8, &[1, 4, 9, 12], 1), &[5, 7]);
            with(tensor(DType::U8, &[1, 6, 20, 7], 2), &[9, 16]);
        }
        out
    }

    pub(super) fn vec_samples(mode: UpsampleMode, dims: usize) -> Samples {
        let d = DType::F32;
        let shape = &SHAPE[..dims + 2];
        let mut out = Samples::new();
        for factors in [None, Some([2.0; 3]), Some([0.6, 1.5, 2.3])] {
            let mut s = match factors {
                None => sample![tensor(d, shape, 1), &SIZES[0][..dims]],
                Some(_) => sample![tensor(d, shape, 1), ()],
            };
            if matches!(mode, UpsampleMode::Filter(_)) {
                s.args.push(crate::support::samples::IntoArg::arg(true));
            }
            s.args.push(match factors {
                None => restride_ir::Arg::None,
                Some(f) => crate::support::samples::IntoArg::arg(&f[..dims]),
            });
            out.push(s);
        }
        let mut both = out[0].clone();
        both.args[mode.scales()] = crate::support::samples::IntoArg::arg(&[2.0; 3][..dims]);
        out.push(both);
        out
    }
}
