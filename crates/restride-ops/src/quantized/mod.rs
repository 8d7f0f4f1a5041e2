//! `quantized_decomposed`: operators that quantized programs (`convert_pt2e`) call between floats and integers.
//!
//! Each is a composition of what PyTorch runs in Python (`torch/ao/quantization/fx/_decomposed.py`), in the same order and with
//! the same promotions. Gradients follow from the compositions, as in PyTorch.

mod qparams;
mod torchao;

use crate::gradient::terms::{Cx, rule};
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{Arg, DType, Emit, Expr, OpDef, Scalar, Val};
use smallvec::smallvec;

/// A number of the grid in a call: a number, or a tensor of one element.
type Number = Arg<Val, Scalar>;

/// Declares an operator: its schema, its composition, sample calls.
macro_rules! quantized {
    ($schema:literal, $form:ident, $samples:expr) => {
        composite!($form, $samples, concat!("quantized_decomposed::", $schema))
    };
}
use quantized;

/// Smallest and largest number of an integer type of quantized tensors.
fn range(dtype: DType) -> Result<(i64, i64)> {
    Ok(match dtype {
        DType::U8 => (0, 255),
        DType::I8 => (-128, 127),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        other => return fail(format!("Unsupported dtype: {other}")),
    })
}

/// The element type behind `(quant_min, quant_max)`, which must lie in its range. `low` is the position of `quant_min`.
fn bounded(a: &ValArgs<'_>, low: usize) -> Result<DType> {
    let dtype = dtype(a, low + 2)?;
    let (least, most) = range(dtype)?;
    let (min, max) = (a.int(low)?, a.int(low + 1)?);
    ensure!(min >= least, "quant_min out of bounds for dtype, quant_min_lower_bound: {least} quant_min: {min}");
    ensure!(max <= most, "quant_max out of bounds for dtype, quant_max_upper_bound: {most} quant_max: {max}");
    Ok(dtype)
}

/// An element type that the schema requires.
fn dtype(a: &ValArgs<'_>, i: usize) -> Result<DType> {
    a.opt_dtype(i)?.map_or_else(|| fail("expected an element type"), Ok)
}

/// A float operand as f32.
fn single(e: &mut dyn Emit, x: Val) -> Result<Val> {
    let own = e.meta(x).dtype;
    ensure!(
        matches!(own, DType::F16 | DType::BF16 | DType::F32),
        "Expecting input to have dtype torch.float32, but got dtype: {}",
        name(own)
    );
    to(e, x, DType::F32)
}

/// What `item` gives of a tensor of one element: without a history, and without a say in the type of results.
fn item(e: &mut dyn Emit, a: &ValArgs<'_>, i: usize, dtype: DType) -> Result<Val> {
    let v = *a.tensor(i)?;
    let n = e.meta(v).layout.numel();
    ensure!(n == 1, "Expecting a tensor of one element, but received : {n}");
    let v = emit!(e, "aten.detach.default", v)?;
    only(e, v, dtype)
}

/// A number argument, or the element of a tensor argument.
fn number(e: &mut dyn Emit, a: &ValArgs<'_>, i: usize, dtype: DType) -> Result<Number> {
    Ok(if a.as_tensor(i).is_some() { Arg::Value(item(e, a, i, dtype)?) } else { pass(a, i) })
}

/// The element type that a call states of its operand.
fn stated(e: &mut dyn Emit, a: &ValArgs<'_>, i: usize) -> Result<DType> {
    let (own, stated) = (e.meta(*a.tensor(0)?).dtype, dtype(a, i)?);
    ensure!(own == stated, "Expecting input to have dtype: {}, but got {}", name(stated), name(own));
    Ok(own)
}

/// An operand beside which tensors without dimensions count as numbers.
fn wide(e: &mut dyn Emit, x: Val) -> Result<Val> {
    if e.meta(x).rank() == 0 { emit!(e, "aten.unsqueeze.default", x, 0) } else { Ok(x) }
}

/// A result in the shape of the operand.
fn narrow(e: &mut dyn Emit, a: &ValArgs<'_>, result: Val) -> Vals {
    let scalar = e.meta(*a.tensor(0)?).rank() == 0 && e.meta(result).rank() == 1;
    Ok(smallvec![if scalar { emit!(e, "aten.squeeze.default", result)? } else { result }])
}

/// `(input, scale, zero_point, quant_min, quant_max, dtype)`
fn quantize_tensor(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = single(e, *a.tensor(0)?)?;
    let x = wide(e, x)?;
    let f = DType::F32;
    const ZERO: &str = "float division by zero";
    let inverse: Number = if a.as_tensor(1).is_some() {
        let scale = item(e, a, 1, DType::F64)?;
        let some = emit!(e, "aten.ne.Scalar", scale, 0)?;
        require(e, some, ZERO)?;
        let inverse = emit!(e, "aten.reciprocal.default", scale)?;
        Arg::Value(to(e, inverse, f)?)
    } else {
        let scale = a.float(1)?;
        ensure!(scale != 0.0, "{ZERO}");
        (1.0 / scale).operand()
    };
    let q = emit!(e, "aten.mul.Tensor", x, inverse)?;
    let q = emit!(e, "aten.round.default", q)?;
    let zero = number(e, a, 2, f)?;
    let q = emit!(e, "aten.add.Tensor", q, zero)?;
    let (q, dtype) = if a.as_tensor(3).is_some() {
        let dtype = dtype(a, 5)?;
        let (least, most) = range(dtype)?;
        let (low, high) = (item(e, a, 3, f)?, item(e, a, 4, f)?);
        let (above, below) = (emit!(e, "aten.ge.Scalar", low, least)?, emit!(e, "aten.le.Scalar", high, most)?);
        let within = emit!(e, "aten.logical_and.default", above, below)?;
        require(e, within, "quant_min or quant_max out of bounds for dtype")?;
        (emit!(e, "aten.clamp.Tensor", q, low, high)?, dtype)
    } else {
        (emit!(e, "aten.clamp.default", q, pass(a, 3), pass(a, 4))?, bounded(a, 3)?)
    };
    let q = to(e, q, dtype)?;
    narrow(e, a, q)
}

/// `(input, scale, zero_point, quant_min, quant_max, dtype, *, out_dtype)`
fn dequantize_tensor(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    range(stated(e, a, 5)?)?;
    let out = a.opt_dtype(6)?.unwrap_or(DType::F32);
    let x = to(e, x, out)?;
    let x = wide(e, x)?;
    // Numbers beside halves are singles.
    let beside = if matches!(out, DType::F16 | DType::BF16) { DType::F32 } else { out };
    let zero = number(e, a, 2, beside)?;
    let x = emit!(e, "aten.sub.Tensor", x, zero)?;
    let scale = number(e, a, 1, beside)?;
    let x = emit!(e, "aten.mul.Tensor", x, scale)?;
    narrow(e, a, x)
}

/// An operand with the axis in front, its dimensions in the order that brings them back, and the shape of the axis' numbers.
fn axis_first(e: &mut dyn Emit, a: &ValArgs<'_>, x: Val) -> Result<(Val, Vec<i64>, Vec<i64>)> {
    let (rank, axis) = (e.meta(x).rank() as i64, a.int(3)?);
    ensure!((-rank..rank).contains(&axis), "Expecting axis to be < {rank}");
    let mut order: Vec<i64> = (0..rank).collect();
    order.swap(0, axis.rem_euclid(rank) as usize);
    let mut shape = vec![1; rank as usize];
    let Some(&n) = sizes(e, *a.tensor(1)?).first() else { return fail("Expecting scales with one dimension") };
    shape[0] = n;
    Ok((emit!(e, "aten.permute.default", x, order.clone())?, order, shape))
}

/// Numbers on the grid of each channel, rounded before the zero point is added. The ends of the grid are arguments 4 and 5.
fn channels_on_grid(e: &mut dyn Emit, a: &ValArgs<'_>, x: Val, scale: Val, zero: Val) -> Result<Val> {
    let inverse = emit!(e, "aten.reciprocal.default", scale)?;
    let q = emit!(e, "aten.mul.Tensor", x, inverse)?;
    let q = emit!(e, "aten.round.default", q)?;
    let q = emit!(e, "aten.add.Tensor", q, zero)?;
    emit!(e, "aten.clamp.default", q, pass(a, 4), pass(a, 5))
}

/// `(input, scales, zero_points, axis, quant_min, quant_max, dtype)`
fn quantize_channels(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = single(e, *a.tensor(0)?)?;
    let dtype = bounded(a, 4)?;
    let (x, order, shape) = axis_first(e, a, x)?;
    let scale = emit!(e, "aten.view.default", *a.tensor(1)?, shape.clone())?;
    let zero = emit!(e, "aten.view.default", *a.tensor(2)?, shape)?;
    let q = channels_on_grid(e, a, x, scale, zero)?;
    let q = emit!(e, "aten.permute.default", q, order)?;
    Ok(smallvec![to(e, q, dtype)?])
}

/// `(input, scales, zero_points, axis, quant_min, quant_max, dtype, *, out_dtype)`
fn dequantize_channels(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    stated(e, a, 6)?;
    bounded(a, 4)?;
    let (mut x, order, shape) = axis_first(e, a, *a.tensor(0)?)?;
    if let Some(&zero) = a.opt_tensor(2)? {
        let zero = emit!(e, "aten.view.default", zero, shape.clone())?;
        x = emit!(e, "aten.sub.Tensor", x, zero)?;
    }
    let scale = emit!(e, "aten.view.default", *a.tensor(1)?, shape)?;
    let x = emit!(e, "aten.mul.Tensor", x, scale)?;
    let x = to(e, x, a.opt_dtype(7)?.unwrap_or(DType::F32))?;
    Ok(smallvec![emit!(e, "aten.permute.default", x, order)?])
}

/// Numbers on the grid of each row, rounded after the zero point was added.
fn rows_on_grid(e: &mut dyn Emit, a: &ValArgs<'_>, x: Val, scales: Val, zeros: Val) -> Result<Val> {
    let dtype = bounded(a, 3)?;
    let inverse = emit!(e, "aten.reciprocal.default", scales)?;
    let q = emit!(e, "aten.mul.Tensor", x, inverse)?;
    let q = emit!(e, "aten.add.Tensor", q, zeros)?;
    let q = emit!(e, "aten.round.default", q)?;
    let q = emit!(e, "aten.clamp.default", q, pass(a, 3), pass(a, 4))?;
    to(e, q, dtype)
}

/// `(input, scales, zero_points, quant_min, quant_max, dtype)`
fn quantize_tokens(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, scales, zeros) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?);
    let s = sizes(e, x);
    let tokens: i64 = s[..s.len().saturating_sub(1)].iter().product();
    for v in [scales, zeros] {
        let n = e.meta(v).layout.numel();
        ensure!(n == tokens, "num_tokens: {tokens}, but scales or zero_points have {n} elements");
    }
    Ok(smallvec![rows_on_grid(e, a, x, scales, zeros)?])
}

/// `(input, scales, zero_points, quant_min, quant_max, dtype, output_dtype)`
fn dequantize_tokens(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = emit!(e, "aten.sub.Tensor", *a.tensor(0)?, *a.tensor(2)?)?;
    let x = emit!(e, "aten.mul.Tensor", x, *a.tensor(1)?)?;
    Ok(smallvec![to(e, x, dtype(a, 6)?)?])
}

/// The operand, scales and zero points of groups of a row's elements, as rows.
fn groups(e: &mut dyn Emit, a: &ValArgs<'_>) -> Result<(Val, Val, Option<Val>)> {
    let (x, scales) = (*a.tensor(0)?, *a.tensor(1)?);
    let (s, mut group) = (sizes(e, x), a.int(6)?);
    ensure!(group > 1, "group_size must be > 1");
    ensure!(s.len() == 2, "input must be 2-dimensional");
    if group > s[1] && sizes(e, scales).last() == Some(&1) {
        group = s[1];
    }
    ensure!(group > 0 && s[1] % group == 0, "input.shape[-1] must be divisible by group_size");
    let zeros = match a.opt_tensor(2)? {
        Some(&zeros) => Some(emit!(e, "aten.reshape.default", zeros, [-1, 1])?),
        None => None,
    };
    Ok((emit!(e, "aten.reshape.default", x, [-1, group])?, emit!(e, "aten.reshape.default", scales, [-1, 1])?, zeros))
}

/// `(input, scales, zero_points, quant_min, quant_max, dtype, group_size)`
fn quantize_groups(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, scales, zeros) = groups(e, a)?;
    let known = emit!(e, "aten.eq.Tensor", x, x)?;
    require(e, known, "to_quant must not contain NaNs")?;
    let Some(zeros) = zeros else { return fail("quantize_per_channel_group expects zero_points") };
    let q = rows_on_grid(e, a, x, scales, zeros)?;
    let shape = sizes(e, *a.tensor(0)?);
    Ok(smallvec![emit!(e, "aten.reshape.default", q, shape)?])
}

/// `(input, scales, zero_points, quant_min, quant_max, dtype, group_size, output_dtype)`
fn dequantize_groups(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (mut x, scales, zeros) = groups(e, a)?;
    if let Some(zeros) = zeros {
        x = emit!(e, "aten.sub.Tensor", x, zeros)?;
    }
    let x = emit!(e, "aten.mul.Tensor", x, scales)?;
    let shape = sizes(e, *a.tensor(0)?);
    let x = emit!(e, "aten.reshape.default", x, shape)?;
    Ok(smallvec![to(e, x, dtype(a, 7)?)?])
}

/// `(input, scales, zero_points, axis, quant_min, quant_max)`: the rounded numbers on the grid of each channel.
fn fake_quantize(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let (rank, axis) = (e.meta(x).rank() as i64, a.int(3)?);
    ensure!(e.meta(x).dtype == DType::F32, "Expecting input to have dtype torch.float32");
    ensure!((0..rank).contains(&axis), "Expecting axis to be < {rank}");
    let mut shape = vec![1; rank as usize];
    shape[axis as usize] = -1;
    let scale = to(e, *a.tensor(1)?, DType::F32)?;
    let zero = to(e, *a.tensor(2)?, DType::I32)?;
    let scale = emit!(e, "aten.view.default", scale, shape.clone())?;
    let zero = emit!(e, "aten.view.default", zero, shape)?;
    let q = channels_on_grid(e, a, x, scale, zero)?;
    let q = emit!(e, "aten.sub.Tensor", q, zero)?;
    Ok(smallvec![emit!(e, "aten.mul.Tensor", q, scale)?])
}

/// The gradient passes where the rounded number is on the grid; scales and zero points get none.
fn fake_gradient(c: &Cx<'_>) {
    (1..3).for_each(|i| c.zero(i));
    c.give(0, || {
        let (x, axis) = (c.arg(0), c.int(3));
        let mut shape = vec![Expr::Int(1); x.rank()];
        if let Some(n) = shape.get_mut(axis as usize) {
            *n = x.size(axis);
        }
        let inverse = c.arg(1).to(DType::F32).reshape(shape.clone()).reciprocal();
        let zero = c.arg(2).to(DType::I32).reshape(shape);
        let q = (x * inverse).unary("aten.round.default") + zero;
        c.grad().only(q.is("ge", c.num(4))).only(q.is("le", c.num(5)))
    });
}

/// `(input, dtype)`
fn convert(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    e.call("prims.convert_element_type.default", a.0)
}

static OPS: &[OpDef] = table![
    quantized!("quantize_per_tensor", quantize_tensor, per_tensor(0, true)),
    quantized!("quantize_per_tensor.tensor", quantize_tensor, per_tensor(1, true)).failing(),
    quantized!("quantize_per_tensor.tensor2", quantize_tensor, per_tensor(2, true)).failing(),
    quantized!("dequantize_per_tensor", dequantize_tensor, per_tensor(0, false)),
    quantized!("dequantize_per_tensor.tensor", dequantize_tensor, per_tensor(1, false)),
    quantized!("dequantize_per_tensor.tensor2", dequantize_tensor, per_tensor(2, false)),
    quantized!("quantize_per_channel", quantize_channels, per_channel(true)),
    quantized!("dequantize_per_channel", dequantize_channels, per_channel(false)),
    quantized!("quantize_per_token", quantize_tokens, per_token(true)),
    quantized!("dequantize_per_token", dequantize_tokens, per_token(false)),
    quantized!("quantize_per_channel_group", quantize_groups, per_group(true)).failing(),
    quantized!("dequantize_per_channel_group", dequantize_groups, per_group(false)),
    quantized!("fake_quant_per_channel", fake_quantize, fake()).graded(rule!(fake_gradient)),
    quantized!("convert_element_type.no_fuse", convert, converted()),
];

/// The operators of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[OPS, qparams::OPS, torchao::OPS], gradients: &[], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    const F: DType = DType::F32;

    /// Numbers from -40 to 40: some lie outside the grids of the samples.
    fn floats(dtype: DType, layout: Layout) -> restride_tensor::RawTensor {
        in_range(dtype, layout, 1, -40.0, 40.0)
    }
    fn wholes(dtype: DType, layout: Layout) -> restride_tensor::RawTensor {
        in_range(dtype, layout, 1, if dtype == DType::U8 { 0.0 } else { -120.0 }, 120.0)
    }
    fn flipped(sizes: &[i64]) -> Layout {
        Layout::permuted(sizes, &(0..sizes.len()).rev().collect::<Vec<_>>())
    }

    /// Calls with scale and zero point as numbers, then as tensors, then with the bounds as tensors too.
    pub(super) fn per_tensor(tensors: usize, quantize: bool) -> Samples {
        let square = Layout::contiguous(&[3, 4]);
        let mut out = Vec::new();
        for (dtype, float, layout, scale, zero) in [
            (DType::I8, F, square.clone(), 0.1, 0),
            (DType::U8, F, flipped(&[3, 4]), 0.37, 128),
            (DType::I16, DType::BF16, square.clone(), 0.013, -3),
            (DType::I32, DType::F16, square.clone(), 0.07, 5),
            (DType::I8, DType::BF16, Layout::contiguous(&[]), 0.33, 7),
            (DType::I8, F, Layout::contiguous(&[0, 2]), 0.5, 0),
            (DType::I8, DType::F64, square, 0.5, 0),
        ] {
            let (low, high) = super::range(dtype).unwrap_or_default();
            let x = if quantize { floats(float, layout) } else { wholes(dtype, layout) };
            let one = |n: f64| restride_tensor::RawTensor::from_slice(&[n], &[1]);
            let whole = |n: i64| ints(&[n], &[]);
            let mut call = match tensors {
                0 => sample![x, scale, zero, low, high, dtype],
                1 => sample![x, one(scale), whole(zero), low, high, dtype],
                _ => sample![x, one(scale), whole(zero), whole(low), whole(high), dtype],
            };
            if !quantize {
                call.args.push(if float == F { Arg::None } else { Arg::DType(float) });
            }
            out.push(call);
        }
        // A scale of zero, and bounds or an element type that do not fit.
        let x =
            if quantize { floats(F, Layout::contiguous(&[3])) } else { wholes(DType::I8, Layout::contiguous(&[3])) };
        match tensors {
            0 => out.extend([
                sample![&x, 0.0, 0, -128, 127, DType::I8],
                sample![&x, 0.1, 0, -128, 255, DType::I8],
                sample![x, 0.1, 0, 0, 1, DType::Bool],
            ]),
            1 => out.extend([
                sample![&x, tensor(F, &[2], 1), ints(&[0], &[]), -128, 127, DType::I8],
                sample![x, in_range(F, Layout::contiguous(&[]), 1, 0.1, 0.9), ints(&[0], &[]), -128, 127, DType::I8],
            ]),
            _ => {}
        }
        out
    }

    fn scales(dtype: DType, sizes: &[i64]) -> restride_tensor::RawTensor {
        in_range(dtype, Layout::contiguous(sizes), 3, 0.05, 0.7)
    }
    fn zeros(dtype: DType, sizes: &[i64]) -> restride_tensor::RawTensor {
        in_range(dtype, Layout::contiguous(sizes), 4, -3.0, 3.0)
    }

    pub(super) fn per_channel(quantize: bool) -> Samples {
        let mut out = Vec::new();
        for (float, layout, scale, zero, axis, n) in [
            (F, Layout::contiguous(&[3, 4]), F, DType::I32, 0, 3),
            (F, flipped(&[2, 3, 4]), F, DType::I64, 1, 3),
            (DType::BF16, Layout::contiguous(&[3, 4]), DType::F64, DType::I8, -1, 4),
            (F, Layout::contiguous(&[3, 4]), F, F, 1, 4),
            (F, Layout::contiguous(&[3, 4]), F, F, 1, 3),
            (F, Layout::contiguous(&[3, 4]), F, F, 2, 3),
        ] {
            let x = if quantize { floats(float, layout) } else { wholes(DType::I8, layout) };
            let mut call = sample![x, scales(scale, &[n]), zeros(zero, &[n]), axis, -128, 127, DType::I8];
            if !quantize {
                call.args.push(Arg::DType(float));
                if zero == DType::I64 {
                    call.args[2] = Arg::None;
                }
            }
            out.push(call);
        }
        out
    }

    pub(super) fn per_token(quantize: bool) -> Samples {
        let mut out = Vec::new();
        for (float, layout, scale, zero) in [
            (F, Layout::contiguous(&[3, 4]), DType::F64, DType::I64),
            (DType::BF16, Layout::contiguous(&[3, 4]), DType::BF16, DType::BF16),
            (F, flipped(&[3, 4]), F, DType::I32),
        ] {
            let x = if quantize { floats(float, layout) } else { wholes(DType::I8, layout) };
            let mut call = sample![x, scales(scale, &[3, 1]), zeros(zero, &[3, 1]), -128, 127, DType::I8];
            if !quantize {
                call.args.push(Arg::DType(float));
            }
            out.push(call);
        }
        out
    }

    pub(super) fn per_group(quantize: bool) -> Samples {
        let mut out = Vec::new();
        for (group, zero, columns) in [(2, DType::I32, 4), (8, F, 1), (3, F, 4)] {
            let layout = Layout::contiguous(&[3, if columns == 1 { 4 } else { 8 }]);
            let x = if quantize { floats(F, layout) } else { wholes(DType::I8, layout) };
            let s = [3, columns];
            let mut call = sample![x, scales(F, &s), zeros(zero, &s), -8, 7, DType::I8, group];
            if !quantize {
                call.args.push(Arg::DType(DType::BF16));
                if columns == 1 {
                    call.args[2] = Arg::None;
                }
            }
            out.push(call);
        }
        out
    }

    pub(super) fn fake() -> Samples {
        let x = in_range(F, Layout::contiguous(&[3, 4]), 1, -2.0, 2.0);
        vec![
            sample![&x, scales(F, &[4]), zeros(DType::I32, &[4]), 1, -8, 7],
            sample![transposed(F, &[3, 4], 1), scales(DType::F64, &[3]), zeros(DType::I64, &[3]), 0, 0, 255],
            sample![&x, scales(F, &[3]), zeros(DType::I32, &[3]), 2, -8, 7],
        ]
    }

    pub(super) fn converted() -> Samples {
        vec![sample![transposed(F, &[2, 3], 1), DType::BF16]]
    }
}
