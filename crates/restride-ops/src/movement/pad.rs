//! Padding by a constant, reflection, the edge, or around the circle.

use crate::support::composite::composite;
use crate::support::promote::check_holds;
use crate::support::scratch::mapped;
use crate::support::*;
use restride_ir::{Args, Call, DType, Emit, Meta, OpDef, Scalar};
use restride_kernels::movement::remap::{HOLE, remap};
use restride_kernels::support::scratch::Temp;
use restride_tensor::PerDim;
use smallvec::smallvec;

/// More elements than any memory holds; sums of a few such numbers do not overflow.
const MOST: u64 = 1 << 60;

/// The padding before and after a dimension; `pad` lists the last dimension first.
fn sides(pad: &[i64], rank: usize, dim: usize) -> (i64, i64) {
    let at = 2 * (rank - 1 - dim);
    match pad.get(at..at + 2) {
        Some(&[lo, hi]) => (lo, hi),
        _ => (0, 0),
    }
}

fn sane(pad: &[i64]) -> Result<()> {
    ensure!(pad.iter().all(|p| p.unsigned_abs() < MOST), "padding is out of range: {pad:?}");
    Ok(())
}

fn constant_sizes(sizes: &[i64], pad: &[i64]) -> Result<Vec<i64>> {
    sane(pad)?;
    ensure!(pad.len().is_multiple_of(2), "Length of pad must be even but instead it equals {}", pad.len());
    ensure!(
        sizes.len() * 2 >= pad.len(),
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {} while the input has {} dimensions.",
        pad.len(),
        sizes.len()
    );
    let mut out = Vec::new();
    for (d, &n) in sizes.iter().enumerate() {
        let (lo, hi) = sides(pad, sizes.len(), d);
        let size = n + lo + hi;
        ensure!(
            size >= 0,
            "The input size {n}, plus negative padding {lo} and {hi} resulted in a negative output size, which is invalid. Check dimension {d} of your input."
        );
        out.push(size);
    }
    Ok(out)
}

fn constant_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, pad) = (a.tensor(0)?, a.ints(1)?);
    let sizes = constant_sizes(x.sizes(), &pad)?;
    if pad.iter().all(|&p| p <= 0) {
        // The part that negative padding keeps, cloned.
        let mut l = x.layout.clone();
        for (d, &n) in x.sizes().iter().enumerate() {
            let (lo, hi) = sides(&pad, sizes.len(), d);
            ensure!(-lo <= n && -hi <= n, "start ({}) + length ({}) exceeds dimension size ({n}).", -lo, sizes[d]);
            l = l.slice(d as i64, Some(&-lo), Some(&(-lo + sizes[d])), &1)?;
        }
        return one(Meta::new(x.dtype, crate::support::strides::dense_like(&l)));
    }
    check_holds(x.dtype, a.scalar(2)?)?;
    one(suggested(&x.layout, x.dtype, &sizes))
}

fn constant(c: &Call<'_>) -> Result<()> {
    let (x, pad) = (c.args.tensor(0)?, c.args.ints(1)?);
    let sizes = x.sizes();
    let maps: PerDim<Temp<usize>> = (0..sizes.len())
        .map(|d| {
            let ((lo, _), n) = (sides(&pad, sizes.len(), d), sizes[d]);
            let at = |i: i64| if (0..n).contains(&(i - lo)) { (i - lo) as usize } else { HOLE };
            Temp::gather(c.outs[0].sizes()[d] as usize, (0..c.outs[0].sizes()[d]).map(at))
        })
        .collect();
    ran(remap(x, &maps, c.args.scalar(2)?, &c.outs[0], c.ctx.threads))
}

/// Padding modes that take all elements from the operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PadMode {
    Reflect,
    Replicate,
    Circular,
}

fn show(sizes: &[i64]) -> String {
    format!("[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}

/// Shape rule for padding of the last `dims` dimensions.
fn edge_infer(a: &Args<'_, Meta>, edge: PadMode, dims: usize) -> Metas {
    let (x, pad) = (a.tensor(0)?, a.ints(1)?);
    let rank = x.rank();
    sane(&pad)?;
    ensure!(pad.len() == 2 * dims, "padding size is expected to be {}, but got: {}", 2 * dims, pad.len());
    // Only the batch dimension may be empty.
    let batched = rank == dims + 2;
    let fits = (batched || rank == dims + 1) && x.sizes()[batched as usize..].iter().all(|&n| n > 0);
    ensure!(
        fits,
        "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {}",
        dims + 1,
        dims + 2,
        show(x.sizes())
    );
    ensure!(
        x.dtype != DType::Bool,
        "\"{}_pad{dims}d\" not implemented for 'Bool'",
        if edge == PadMode::Reflect { "reflection" } else { "replication" }
    );
    let mut sizes = x.sizes().to_vec();
    for (d, size) in sizes.iter_mut().enumerate().skip(rank - dims) {
        let (lo, hi) = sides(&pad, rank, d);
        let n = *size;
        if edge == PadMode::Reflect {
            ensure!(
                lo < n && hi < n,
                "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({lo}, {hi}) at dimension {d} of input {}",
                show(x.sizes())
            );
        }
        *size = n + lo + hi;
        ensure!(*size >= 1, "input (size {n}) is too small at dimension {d}. Calculated output size: {size}");
    }
    // A batched operand keeps channels-last order.
    one(if dims == 1 { fresh(x.dtype, &sizes) } else { suggested(&x.layout, x.dtype, &sizes) })
}

fn circular_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, pad) = (a.tensor(0)?, a.ints(1)?);
    sane(&pad)?;
    let (rank, dims) = (x.rank(), pad.len() / 2);
    ensure!(
        dims > 0 && pad.len() == 2 * dims && (rank == dims + 1 || rank == dims + 2),
        "Invalid padding size, expected {} but got {}",
        2 * (rank as i64 - 2).max(1),
        pad.len()
    );
    let mut sizes = x.sizes().to_vec();
    for (d, n) in sizes.iter_mut().enumerate().skip(rank - dims) {
        let (lo, hi) = sides(&pad, rank, d);
        ensure!(lo <= *n && hi <= *n, "Padding value causes wrapping around more than once.");
        // Circular padding repeats the part that negative padding keeps.
        let left = *n + lo.min(0) + hi.min(0);
        *n += lo + hi;
        ensure!(
            *n >= 0 && left >= 0 && lo <= left && hi <= left,
            "Negative padding value is resulting in an empty dimension"
        );
    }
    one(fresh(x.dtype, &sizes))
}

/// The padding operator for `dims` dimensions that takes elements from the operand.
pub(crate) fn moving(mode: &str, dims: usize) -> Option<&'static str> {
    Some(match (mode, dims) {
        ("reflect", 1) => "aten.reflection_pad1d.default",
        ("reflect", 2) => "aten.reflection_pad2d.default",
        ("reflect", _) => "aten.reflection_pad3d.default",
        ("replicate", 1) => "aten.replication_pad1d.default",
        ("replicate", 2) => "aten.replication_pad2d.default",
        ("replicate", _) => "aten.replication_pad3d.default",
        ("circular", _) => "aten._pad_circular.default",
        _ => return None,
    })
}

fn edge_run(c: &Call<'_>, edge: PadMode) -> Result<()> {
    let (x, pad) = (c.args.tensor(0)?, c.args.ints(1)?);
    let sizes = x.sizes();
    let maps: PerDim<Temp<usize>> = (0..sizes.len())
        .map(|d| {
            let ((lo, hi), n) = (sides(&pad, sizes.len(), d), sizes[d]);
            let (cut, left) = ((-lo).max(0), n + lo.min(0) + hi.min(0));
            let at = |i: i64| match edge {
                PadMode::Circular => cut + (i - lo.max(0)).rem_euclid(left.max(1)),
                PadMode::Replicate => (i - lo).clamp(0, n - 1),
                PadMode::Reflect => {
                    let j = (i - lo).abs();
                    if j < n { j } else { 2 * (n - 1) - j }
                }
            };
            // An empty result reads nothing.
            let size = c.outs[0].sizes()[d];
            Temp::gather(size as usize, (0..size).map(|i| if n > 0 { at(i) as usize } else { HOLE }))
        })
        .collect();
    ran(remap(x, &maps, Scalar::Int(0), &c.outs[0], c.ctx.threads))
}

fn pad(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, pad, mode, value) = (*a.tensor(0)?, a.ints(1)?, a.str(2)?, a.opt_float(3)?);
    let rank = e.meta(x).rank();
    if mode == "constant" {
        return Ok(smallvec![emit!(e, "aten.constant_pad_nd.default", x, pad, value.unwrap_or(0.0))?]);
    }
    ensure!(value.is_none_or(|v| v == 0.0), "Padding mode \"{mode}\" doesn't take in value argument");
    let dims = pad.len() / 2;
    ensure!(
        pad.len() == 2 * dims && (1..=3).contains(&dims) && (rank == dims + 1 || rank == dims + 2),
        "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"
    );
    let Some(op) = moving(mode, dims) else { return fail(format!("Unrecognised padding mode {mode}")) };
    Ok(smallvec![emit!(e, op, x, pad)?])
}

fn pad_enum(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let mode = match a.int(2)? {
        0 => "reflect",
        1 => "replicate",
        2 => "circular",
        3 => "constant",
        other => return fail(format!("Unrecognised padding mode {other}")),
    };
    Ok(smallvec![emit!(e, "aten.pad.default", pass(a, 0), pass(a, 1), mode, pass(a, 3))?])
}

macro_rules! edge {
    ($schema:expr, $edge:expr, $dims:expr) => {
        exact(
            $schema,
            |a| edge_infer(a, $edge, $dims),
            |c| edge_run(c, $edge),
            mapped,
            samples!(|| edge_samples($edge, $dims)),
        )
    };
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(pad, pad_samples(), "pad").exactly(),
    composite!(
        pad_enum,
        {
            let x = tensor(DType::F32, &[2, 3, 4, 5], 1);
            (0..5).map(|mode| sample![&x, [1, 1, 2, 0], mode as i64]).collect()
        },
        "_pad_enum"
    )
    .exactly(),
    exact("constant_pad_nd", constant_infer, constant, mapped, samples!(constant_samples)),
    edge!("reflection_pad1d", PadMode::Reflect, 1),
    edge!("reflection_pad2d", PadMode::Reflect, 2),
    edge!("reflection_pad3d", PadMode::Reflect, 3),
    edge!("replication_pad1d", PadMode::Replicate, 1),
    edge!("replication_pad2d", PadMode::Replicate, 2),
    edge!("replication_pad3d", PadMode::Replicate, 3),
    exact("_pad_circular", circular_infer, |c| edge_run(c, PadMode::Circular), mapped, samples!(circular_samples)),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    pub(crate) const DTYPES: [DType; 6] = [DType::F64, DType::BF16, DType::I64, DType::U8, DType::Bool, DType::C64];

    pub(crate) fn constant_samples() -> Samples {
        let d = DType::F32;
        let shape: &[i64] = &[2, 3, 4, 5];
        let mut out: Samples = forms(d, shape, 1).into_iter().map(|x| sample![x, [1, 2, 0, 3], 1.5]).collect();
        out.extend([
            sample![nhwc(d, shape, 1), [1, 1, 1, 1]],
            sample![nhwc(d, shape, 1), [0, 0, -1, 1], 2],
            sample![nhwc(d, shape, 1), [-1, 0, 0, -1]],
            sample![nhwc(d, shape, 1), [0, 0]],
            sample![expanded(d, shape, 1), [0, 0, 0, 0, 1, 0, 0, 2], -1],
            sample![expanded(d, shape, 1), [0, -1]],
            sample![tensor(d, &[3], 1), [-3, 2]],
            sample![tensor(d, &[3], 1), [-2, -1]],
            sample![tensor(d, &[0, 3], 1), [1, 1, 1, 1], 4],
            sample![tensor(d, &[], 1), &[] as &[i64]],
            sample![tensor(d, &[2, 3], 1), [1, 1, 1]],
            sample![tensor(d, &[3], 1), [1, 1, 1, 1]],
            sample![tensor(d, &[3], 1), [-2, -2]],
            sample![tensor(DType::U8, &[3], 1), [1, 1], 300],
        ]);
        out.extend(DTYPES.map(|d| sample![tensor(d, &[2, 3], 1), [1, 2], 1]));
        out
    }

    pub(super) fn edge_samples(edge: PadMode, dims: usize) -> Samples {
        let d = DType::F32;
        let shape = [2, 3, 4, 5, 3];
        let shape = &shape[..dims + 2];
        let all = [1, 2, 2, 0, 1, 1];
        let pad = &all[..2 * dims];
        let mut out: Samples = forms(d, shape, 1).into_iter().map(|x| sample![x, pad]).collect();
        if dims > 1 {
            out.push(sample![nhwc(d, shape, 1), pad]);
        }
        out.push(sample![expanded(d, shape, 1), pad]);
        let less: Vec<i64> = pad.iter().map(|p| 1 - p).collect();
        out.push(sample![tensor(d, shape, 1), &less[..]]);
        out.push(sample![tensor(d, shape, 1), &pad[1..]]);
        let wide: Vec<i64> = pad.iter().map(|p| p + 3).collect();
        out.push(sample![tensor(d, shape, 1), &wide[..]]);
        let mut none = shape.to_vec();
        none[0] = 0;
        out.push(sample![tensor(d, &none, 1), pad]);
        if edge != PadMode::Circular {
            out.push(sample![tensor(d, &shape[1..], 1), pad]);
            out.push(sample![crate::support::samples::transposed(d, &shape[1..], 1), pad]);
            out.push(sample![tensor(d, &none[..none.len() - 1], 1), pad]);
            out.extend(DTYPES.map(|d| sample![tensor(d, shape, 1), pad]));
        } else {
            out.push(sample![tensor(DType::I64, shape, 1), pad]);
            out.push(sample![tensor(DType::Bool, shape, 1), pad]);
        }
        out
    }

    pub(crate) fn circular_samples() -> Samples {
        (1..=3).flat_map(|dims| edge_samples(PadMode::Circular, dims)).collect()
    }

    pub(crate) fn pad_samples() -> Samples {
        let d = DType::F32;
        let x = tensor(d, &[2, 3, 4, 5], 1);
        vec![
            sample![&x, [1, 1]],
            sample![&x, [0, 0, 0, 0]],
            sample![&x, [1, 1, 2, 0], "constant", 2.5],
            sample![tensor(DType::I64, &[3, 4], 1), [0, 1], "constant", -1.0],
            sample![tensor(DType::I64, &[3, 4], 1), [0, 1], "constant", -1.5],
            sample![tensor(DType::Bool, &[3, 4], 1), [0, 1], "constant", 1.0],
            sample![tensor(DType::U8, &[3, 4], 1), [0, 1], "constant", 300.0],
            sample![&x, [1, 1, 2, 0], "reflect"],
            sample![nhwc(d, &[2, 3, 4, 5], 1), [1, 1, 2, 0], "reflect"],
            sample![&x, [1, 1, 2, 0], "replicate"],
            sample![&x, [1, 1, 2, 0], "circular"],
            sample![tensor(d, &[3, 4], 1), [1, 1], "reflect"],
            sample![tensor(d, &[3, 4], 1), [1, 1], "circular"],
            sample![tensor(d, &[2, 3, 4], 1), [1, 1], "circular"],
            sample![&x, [1, 1], "reflect"],
            sample![&x, [1, 1, 2, 0], "reflect", 1.0],
            sample![&x, [1, 1, 2, 0], "mirror"],
        ]
    }
}
