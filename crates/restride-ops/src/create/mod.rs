//! Creation: `full`, `zeros`, `ones`, `empty` and their `_like` and `new_` forms, `fill`, ranges, triangles and windows.

mod range;
mod triangle;
mod window;

use crate::pointwise::{Metas, Result};
use crate::support::promote::check_holds;
use crate::support::strides::{dense_like, in_format};
use crate::support::{IN_PLACE, ensure, without_scratch};
use restride_ir::{
    Args, Call, Exactness, Grad, Layout, MemoryFormat, Meta, OpDef, OpError, OverlapCheck, SampleFn, Scalar,
};
use restride_kernels::pointwise::{self as k, Input};
use restride_tensor::{DType, DType::*, ViewMut};
use smallvec::smallvec;

/// Refuses negative sizes, and sizes whose number of bytes overflows.
pub(crate) fn check_sizes(dtype: DType, sizes: &[i64]) -> Result<()> {
    if let Some(n) = sizes.iter().find(|n| **n < 0) {
        return Err(OpError::new(format!("Trying to create tensor with negative dimension {n}: {sizes:?}")));
    }
    // A size of 0 counts as 1, as in strides.
    let bytes = sizes.iter().try_fold(dtype.size() as i64, |bytes, &n| bytes.checked_mul(n.max(1)));
    match bytes {
        Some(_) => Ok(()),
        None => Err(OpError::new(format!("Storage size calculation overflowed with sizes={sizes:?}"))),
    }
}

/// Type of a row-major result.
pub(crate) fn row_major(dtype: DType, sizes: &[i64]) -> Metas {
    check_sizes(dtype, sizes)?;
    Ok(smallvec![Meta::contiguous(dtype, sizes)])
}

/// Type of a result whose sizes are at a position.
fn sized(a: &Args<'_, Meta>, at: usize, dtype: DType) -> Metas {
    row_major(dtype, &a.ints(at)?)
}

/// Type of a result like argument 0: in its dimension order or in the given memory format.
///
/// The format is an argument after element type, layout, device and flag.
fn like(a: &Args<'_, Meta>, options: usize) -> Metas {
    let t = a.tensor(0)?;
    let dtype = a.opt_dtype(options)?.unwrap_or(t.dtype);
    let format = a.opt_memory_format(options + 4)?.unwrap_or(MemoryFormat::Preserve);
    Ok(smallvec![Meta::new(dtype, in_format(format, &t.layout)?)])
}

/// Writes one number to every element.
pub(crate) fn put(value: Scalar, out: &ViewMut<'_>) -> Result<()> {
    k::compute(&k::IDENTITY, out.dtype(), &[Input::Number(value)], out, 1).map_err(|e| OpError::new(e.to_string()))
}
fn run_zeros(c: &Call<'_>) -> Result<()> {
    put(Scalar::Int(0), &c.outs[0])
}
fn run_ones(c: &Call<'_>) -> Result<()> {
    put(Scalar::Int(1), &c.outs[0])
}
fn run_second(c: &Call<'_>) -> Result<()> {
    put(c.args.scalar(1)?, &c.outs[0])
}

/// Shape rule for given sizes; the default float type replaces a missing element type.
fn infer_sized(a: &Args<'_, Meta>) -> Metas {
    sized(a, 0, a.opt_dtype(1)?.unwrap_or(F32))
}
fn infer_full(a: &Args<'_, Meta>) -> Metas {
    let value = a.scalar(1)?;
    let dtype = a.opt_dtype(2)?.unwrap_or(value.dtype());
    check_holds(dtype, value)?;
    sized(a, 0, dtype)
}
fn infer_like(a: &Args<'_, Meta>) -> Metas {
    like(a, 1)
}
fn infer_full_like(a: &Args<'_, Meta>) -> Metas {
    let out = like(a, 2)?;
    check_holds(out[0].dtype, a.scalar(1)?)?;
    Ok(out)
}
fn infer_new(a: &Args<'_, Meta>) -> Metas {
    sized(a, 1, a.opt_dtype(2)?.unwrap_or(a.tensor(0)?.dtype))
}
fn infer_new_full(a: &Args<'_, Meta>) -> Metas {
    let dtype = a.opt_dtype(3)?.unwrap_or(a.tensor(0)?.dtype);
    check_holds(dtype, a.scalar(2)?)?;
    sized(a, 1, dtype)
}
fn infer_empty(a: &Args<'_, Meta>) -> Metas {
    let plain = infer_sized(a)?;
    let format = match a.opt_memory_format(5)? {
        None => MemoryFormat::Contiguous,
        Some(MemoryFormat::Preserve) => return Err(OpError::new("unsupported memory format Preserve")),
        Some(f) => f,
    };
    Ok(smallvec![Meta::new(plain[0].dtype, in_format(format, &plain[0].layout)?)])
}
fn infer_empty_permuted(a: &Args<'_, Meta>) -> Metas {
    let plain = sized(a, 0, a.opt_dtype(2)?.unwrap_or(F32))?;
    let order = a.ints(1)?;
    let sizes = plain[0].sizes();
    ensure!(
        order.len() == sizes.len(),
        "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {} is not equal to len(physical_layout) = {}",
        sizes.len(),
        order.len()
    );
    let mut seen = vec![false; sizes.len()];
    let mut perm = Vec::with_capacity(order.len());
    for &d in &order {
        let at = usize::try_from(d).ok().filter(|&d| d < seen.len());
        let at = at.ok_or_else(|| {
            OpError::new(format!("Dimension out of range (expected to be between 0 and {}, but got {d})", seen.len()))
        })?;
        ensure!(!std::mem::replace(&mut seen[at], true), "Duplicate dim not allowed");
        perm.push(at);
    }
    Ok(smallvec![Meta::new(plain[0].dtype, Layout::permuted(sizes, &perm))])
}
fn strided_result(dtype: DType, sizes: &[i64], strides: &[i64]) -> Metas {
    ensure!(
        sizes.len() == strides.len(),
        "mismatch in length of strides and shape: {} strides for {} sizes",
        strides.len(),
        sizes.len()
    );
    check_sizes(dtype, sizes)?;
    let steps = sizes.iter().zip(strides).map(|(n, s)| (n - 1).max(0).checked_mul(*s));
    let cells = steps.into_iter().try_fold(1i64, |end, step| end.checked_add(step?));
    let bytes = cells.and_then(|n| n.checked_mul(dtype.size() as i64));
    if strides.iter().any(|s| *s < 0) || bytes.is_none() {
        return Err(OpError::new(format!(
            "Storage size calculation overflowed with sizes={sizes:?} and strides={strides:?}"
        )));
    }
    Ok(smallvec![Meta::new(dtype, Layout::strided(sizes, strides, 0))])
}
fn infer_empty_strided(a: &Args<'_, Meta>) -> Metas {
    strided_result(a.opt_dtype(2)?.unwrap_or(F32), &a.ints(0)?, &a.ints(1)?)
}
fn infer_new_empty_strided(a: &Args<'_, Meta>) -> Metas {
    strided_result(a.opt_dtype(3)?.unwrap_or(a.tensor(0)?.dtype), &a.ints(1)?, &a.ints(2)?)
}
fn infer_scalar_tensor(a: &Args<'_, Meta>) -> Metas {
    let dtype = a.opt_dtype(1)?.unwrap_or(F32);
    check_holds(dtype, a.scalar(0)?)?;
    row_major(dtype, &[])
}
fn run_scalar_tensor(c: &Call<'_>) -> Result<()> {
    put(c.args.scalar(0)?, &c.outs[0])
}
fn run_new_full(c: &Call<'_>) -> Result<()> {
    put(c.args.scalar(2)?, &c.outs[0])
}

/// `fill` and `zero` keep argument 0's element type and dimension order, but none of its values.
fn infer_fill(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    match a.tensor(1) {
        Ok(v) if v.rank() > 0 => {
            return Err(OpError::new(format!(
                "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
                v.rank()
            )));
        }
        Ok(_) => {}
        Err(_) => check_holds(t.dtype, a.scalar(1)?)?,
    }
    Ok(smallvec![Meta::new(t.dtype, dense_like(&t.layout))])
}
fn run_fill(c: &Call<'_>) -> Result<()> {
    match c.args.as_tensor(1) {
        // A 0-d tensor converts as in `copy_`, without a range check.
        Some(_) => crate::movement::copy_kernel(c),
        None => run_second(c),
    }
}
fn infer_zero(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    Ok(smallvec![Meta::new(t.dtype, dense_like(&t.layout))])
}

/// Declares an `empty` operator: our contents are zeros, PyTorch's are undefined, so only types compare.
const fn empty(schema: &'static str, infer: restride_ir::InferFn, samples: Option<SampleFn>) -> OpDef {
    OpDef {
        exactness: Exactness::Random,
        doc: "filled with zeros",
        ..without_scratch(schema, infer, run_zeros, samples)
    }
}
/// Marks an operator that overwrites argument 0 unread; the result may take over its memory.
const fn overwrite(def: OpDef) -> OpDef {
    OpDef { overlap: OverlapCheck::None, pointwise: true, ..def.reusing(IN_PLACE).exactly() }
}

pub(crate) static OPS: &[OpDef] = table![
    without_scratch("full", infer_full, run_second, samples!(s_full)).exactly(),
    without_scratch("full_like", infer_full_like, run_second, samples!(s_full_like)).exactly().graded(Grad::Zero),
    without_scratch("new_full", infer_new_full, run_new_full, samples!(s_new_full)).exactly().graded(Grad::Zero),
    without_scratch("zeros", infer_sized, run_zeros, samples!(s_sized)).exactly(),
    without_scratch("zeros_like", infer_like, run_zeros, samples!(s_like)).exactly().graded(Grad::Zero),
    without_scratch("new_zeros", infer_new, run_zeros, samples!(s_new)).exactly().graded(Grad::Zero),
    without_scratch("ones", infer_sized, run_ones, samples!(s_sized)).exactly(),
    without_scratch("ones_like", infer_like, run_ones, samples!(s_like)).exactly().graded(Grad::Zero),
    without_scratch("new_ones", infer_new, run_ones, samples!(s_new)).exactly().graded(Grad::Zero),
    empty("empty.memory_format", infer_empty, samples!(s_empty)),
    empty("empty_like", infer_like, samples!(s_like)).graded(Grad::Zero),
    empty("new_empty", infer_new, samples!(s_new)).graded(Grad::Zero),
    empty("empty_permuted", infer_empty_permuted, samples!(s_permuted)),
    empty("empty_strided", infer_empty_strided, samples!(s_strided)),
    empty("new_empty_strided", infer_new_empty_strided, samples!(s_new_strided)).graded(Grad::Zero),
    without_scratch("scalar_tensor", infer_scalar_tensor, run_scalar_tensor, samples!(s_scalar)).exactly(),
    overwrite(without_scratch("fill.Scalar", infer_fill, run_fill, samples!(|| s_fill(true)))).graded(Grad::Zero),
    // With a tensor as its value, `fill` is a `copy_`, which refuses a target with overlapping elements.
    OpDef {
        overlap: OverlapCheck::Target,
        ..overwrite(without_scratch("fill.Tensor", infer_fill, run_fill, samples!(|| s_fill(false))))
    },
    overwrite(without_scratch("zero", infer_zero, run_zeros, samples!(s_zero))).graded(Grad::Zero),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[OPS, range::OPS, window::PLAIN.as_flattened(), window::OPS, triangle::OPS],
    gradients: &[],
    // PyTorch's tangents of zero; they have no memory there.
    aliases: &[("_efficientzerotensor", "zeros")],
};

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::pointwise::samples::*;
    pub(super) use crate::support::samples::*;
    use crate::support::strides::channels_last;

    /// Element type, layout, device and flag arguments of a creation call.
    pub(crate) fn options(dtype: Option<DType>) -> [Arg<restride_tensor::RawTensor, Scalar>; 4] {
        [dtype.map_or(Arg::None, Arg::DType), Arg::None, Arg::None, Arg::None]
    }

    pub(crate) fn with_options(mut s: Sample, dtype: Option<DType>) -> Sample {
        s.args.extend(options(dtype));
        s
    }

    pub(crate) fn s_sized() -> Vec<Sample> {
        let mut out = vec![sample![[2, 3]], sample![Arg::Scalars(vec![])], sample![[0, 2]], sample![[-1]]];
        out.extend(DType::ALL.map(|d| with_options(sample![[2, 3]], Some(d))));
        out
    }

    pub(crate) fn s_empty() -> Vec<Sample> {
        let mut out = s_sized();
        let formats = [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d];
        for (i, f) in formats.into_iter().enumerate() {
            let sizes = [2, 3, 4, 5, 2];
            let mut s = with_options(sample![&sizes[..if i == 1 { 4 } else { 5 }]], None);
            s.args.push(Arg::MemoryFormat(f));
            out.push(s);
        }
        out
    }

    pub(crate) fn s_full() -> Vec<Sample> {
        let mut out = vec![
            sample![[2, 3], 3],
            sample![[2], true],
            sample![Arg::Scalars(vec![]), 0.5],
            sample![[0], f64::NAN],
            sample![[2], f64::NEG_INFINITY],
            sample![[2], Scalar::Complex(restride_tensor::C64::new(0.5, -1.0))],
        ];
        for d in DType::ALL {
            for x in [Scalar::Int(3), Scalar::Float(2.7), Scalar::Int(-1), Scalar::Int(300), Scalar::Bool(true)] {
                out.push(with_options(sample![[2], x], Some(d)));
            }
        }
        out.push(with_options(sample![[2], 0.5], Some(Bool)));
        out.push(with_options(sample![[2], f64::NAN], Some(I64)));
        out.push(with_options(sample![[2], 1e10], Some(F16)));
        out
    }

    /// Sample calls with a tensor, `values`, and options: with and without element type, and all memory formats.
    pub(crate) fn s_like_with(values: &[Scalar]) -> Vec<Sample> {
        let mut out = Vec::new();
        for t in every_layout(ALL, -2.0, 2.0) {
            let mut s = sample![t];
            s.args.extend(values.iter().map(|v| Arg::Scalar(*v)));
            out.push(s.clone());
            out.push(with_options(s, Some(F64)));
        }
        for f in [MemoryFormat::Contiguous, MemoryFormat::ChannelsLast, MemoryFormat::Preserve] {
            for t in
                [tensor(F32, &[2, 3, 4, 5], 1), crate::support::samples::laid(F32, channels_last(&[2, 3, 4, 5]), 2)]
            {
                let mut s = sample![t];
                s.args.extend(values.iter().map(|v| Arg::Scalar(*v)));
                let mut s = with_options(s, None);
                s.args.push(Arg::MemoryFormat(f));
                out.push(s);
            }
        }
        out
    }

    pub(crate) fn s_like() -> Vec<Sample> {
        s_like_with(&[])
    }

    pub(crate) fn s_full_like() -> Vec<Sample> {
        let mut out = s_like_with(&[Scalar::Int(3)]);
        out.push(sample![tensor(I64, &[2], 1), 1.5]);
        out.push(sample![tensor(U8, &[2], 1), 300]);
        out
    }

    pub(crate) fn s_new() -> Vec<Sample> {
        vec![
            sample![tensor(F32, &[2], 1), [2, 3]],
            sample![tensor(I64, &[2], 1), Arg::Scalars(vec![])],
            with_options(sample![tensor(Bool, &[2], 1), [2, 0]], None),
            with_options(sample![transposed(F32, &[2, 3], 1), [2, 3]], Some(F16)),
        ]
    }

    pub(crate) fn s_new_full() -> Vec<Sample> {
        let mut out = s_new();
        for s in &mut out {
            s.args.insert(2, Arg::Scalar(Scalar::Float(1.5)));
        }
        out.push(sample![tensor(U8, &[2], 1), [2], 300]);
        out
    }

    pub(crate) fn s_permuted() -> Vec<Sample> {
        vec![
            sample![[2, 3, 4], [2, 0, 1]],
            sample![[2, 0, 4], [0, 2, 1]],
            sample![[2, 3], [0, 0]],
            sample![[2, 3], [0]],
            with_options(sample![[2, 3], [1, 0]], Some(I64)),
        ]
    }

    pub(crate) fn s_strided() -> Vec<Sample> {
        vec![
            sample![[2, 3], [1, 2]],
            sample![[2, 3], [7, 2]],
            sample![[2, 3], [0, 1]],
            sample![[2, 0], [5, 3]],
            sample![[2, 3], [-1, 1]],
            sample![[2, 3], [1]],
            with_options(sample![[2, 3], [3, 1]], Some(C64)),
        ]
    }

    pub(crate) fn s_new_strided() -> Vec<Sample> {
        let mut out = s_strided();
        for s in &mut out {
            s.args.insert(0, Arg::Value(tensor(F16, &[2], 1)));
        }
        out
    }

    pub(crate) fn s_scalar() -> Vec<Sample> {
        let mut out = vec![sample![3], sample![true], sample![2.5]];
        for d in DType::ALL {
            out.push(with_options(sample![2.7], Some(d)));
            out.push(with_options(sample![-1], Some(d)));
        }
        out
    }

    pub(crate) fn s_fill(number: bool) -> Vec<Sample> {
        let mut out = Vec::new();
        for t in
            every_layout(ALL, -2.0, 2.0).into_iter().chain([strided(F32, &[2, 3, 4], 1), transposed(I64, &[2, 3], 1)])
        {
            if number {
                out.push(sample![&t, 3]);
                out.push(sample![t, 2.7]);
            } else {
                out.push(sample![&t, tensor(F32, &[], 1)]);
                out.push(sample![t, crate::support::samples::ints(&[300], &[])]);
            }
        }
        if number {
            out.push(sample![tensor(U8, &[2], 1), 300]);
        } else {
            out.push(sample![tensor(F32, &[2], 1), tensor(F32, &[1], 1)]);
            // A conversion to `bool` must not truncate to an integer first.
            out.push(sample![tensor(Bool, &[2], 1), restride_tensor::RawTensor::from_slice(&[0.5f32], &[])]);
        }
        out
    }

    pub(crate) fn s_zero() -> Vec<Sample> {
        every_layout(ALL, -2.0, 2.0).into_iter().map(|t| sample![t]).collect()
    }
}
