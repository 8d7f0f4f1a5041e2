//! Vision: torchvision's detection operators, grid sampling and interpolation.

mod grad;
mod grid;
mod grid_grad;
mod upsample;
mod upsample_grad;

use crate::support::promote::name;
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, Exactness, Kernel, Meta, OpDef};
use restride_kernels::vision::deform::{self as k, Deform, Deformed};
use restride_kernels::vision::{self, RoiAlign};
use restride_tensor::RawTensor;
use smallvec::SmallVec;

fn nms(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    let (boxes, scores) = (c.args.tensor(0)?, c.args.tensor(1)?);
    ensure!(boxes.sizes().len() == 2, "boxes should be a 2d tensor, got {}D", boxes.sizes().len());
    ensure!(boxes.sizes()[1] == 4, "boxes should have 4 elements in dimension 1, got {}", boxes.sizes()[1]);
    ensure!(scores.sizes().len() == 1, "scores should be a 1d tensor, got {}D", scores.sizes().len());
    ensure!(
        boxes.sizes()[0] == scores.sizes()[0],
        "boxes and scores should have same number of elements in dimension 0, got {} and {}",
        boxes.sizes()[0],
        scores.sizes()[0]
    );
    ensure!(boxes.dtype() == scores.dtype(), "dets should have the same type as scores");
    let kept = ran(vision::nms(boxes, scores, c.args.float(2)?))?;
    Ok(vec![RawTensor::from_slice(&kept, &[kept.len() as i64])])
}

/// Checks of `rois` beside the tensor called `what`, and of the sampling ratio.
fn check_regions(rois: &Meta, what: &str, of: &Meta, op: &str, ratio: i64) -> Result<()> {
    ensure!(rois.rank() == 2 && rois.sizes()[1] == 5, "rois must have shape as Tensor[K, 5]");
    let (own, other) = (name(of.dtype), name(rois.dtype));
    ensure!(rois.dtype == of.dtype, "Expected tensor for {what} to have the same type as rois, got {own} and {other}");
    ensure!(of.dtype.is_float(), "\"{op}\" not implemented for '{own}'");
    ensure!(ratio < 1 << 12, "roi_align: sampling_ratio is out of range");
    Ok(())
}

/// `roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)`
fn roi_infer(a: &Args<'_, Meta>) -> Metas {
    let (x, r, h, w) = (a.tensor(0)?, a.tensor(1)?, a.int(3)?, a.int(4)?);
    ensure!(x.rank() == 4, "roi_align expects an input of 4 dimensions, got {}", x.rank());
    check_regions(r, "input", x, "roi_align", a.int(5)?)?;
    ensure!((0..1 << 20).contains(&h) && (0..1 << 20).contains(&w), "roi_align: pooled sizes are out of range");
    one(fresh(x.dtype, &[r.sizes()[0], x.sizes()[1], h, w]))
}

fn roi(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let how = RoiAlign { scale: a.float(2)?, ratio: a.int(5)?, aligned: a.bool(6)? };
    ran(vision::roi_align(a.tensor(0)?, a.tensor(1)?, how, &c.outs[0], c.ctx.threads))
}

/// `(grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width, sampling_ratio, aligned)`
fn roi_back_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, r, h, w) = (a.tensor(0)?, a.tensor(1)?, a.int(3)?, a.int(4)?);
    let mut sizes = [0; 4];
    for (i, n) in sizes.iter_mut().enumerate() {
        *n = a.int(5 + i)?;
        ensure!((0..1 << 31).contains(n), "roi_align_backward: sizes are out of range");
    }
    check_regions(r, "grad", g, "roi_align_backward", a.int(9)?)?;
    ensure!(
        g.sizes() == [r.sizes()[0], sizes[1], h, w],
        "roi_align_backward: a gradient of sizes {:?}, expected {:?}",
        g.sizes(),
        [r.sizes()[0], sizes[1], h, w]
    );
    one(fresh(g.dtype, &sizes))
}

fn roi_back(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let how = RoiAlign { scale: a.float(2)?, ratio: a.int(9)?, aligned: a.bool(10)? };
    ran(vision::roi_align_backward(a.tensor(0)?, a.tensor(1)?, how, &c.outs[0], c.ctx.threads))
}

/// Geometry of a deformable convolution whose numbers start at argument `from`, and the number of window positions.
fn deform_read<V>(a: &Args<'_, V>, from: usize, x: &[i64], w: &[i64]) -> Result<(Deform, [i64; 2])> {
    let n = |i: usize| -> Result<i64> {
        let v = a.int(from + i)?;
        ensure!((0..1 << 31).contains(&v), "deform_conv2d: argument {} is out of range", from + i);
        Ok(v)
    };
    let pair = |i: usize| -> Result<[i64; 2]> { Ok([n(i)?, n(i + 1)?]) };
    let (stride, pad, dilation, groups, offset_groups) = (pair(0)?, pair(2)?, pair(4)?, n(6)?, n(7)?);
    ensure!(stride.iter().chain(&dilation).all(|&v| v > 0), "deform_conv2d: stride and dilation must be positive");
    ensure!(groups > 0 && offset_groups > 0, "deform_conv2d: groups must be positive");
    let mut out = [0; 2];
    for d in 0..2 {
        out[d] = (x[2 + d] + 2 * pad[d] - (dilation[d] * (w[2 + d] - 1) + 1)).div_euclid(stride[d]) + 1;
        ensure!(out[d] > 0, "Calculated output size too small - out_h: {} out_w: {}", out[0], out[1]);
    }
    let u = |v: [i64; 2]| v.map(|x| x as usize);
    let how = Deform {
        stride: u(stride),
        pad: u(pad),
        dilation: u(dilation),
        groups: groups as usize,
        offset_groups: offset_groups as usize,
    };
    Ok((how, out))
}

/// Result sizes; `input, weight, offset, mask, bias` start at argument `at`, followed by the numbers.
fn deform_sizes(a: &Args<'_, Meta>, at: usize) -> Result<[i64; 4]> {
    let [x, w, o, m, b] = [a.tensor(at)?, a.tensor(at + 1)?, a.tensor(at + 2)?, a.tensor(at + 3)?, a.tensor(at + 4)?];
    ensure!(x.rank() == 4 && w.rank() == 4 && o.rank() == 4, "deform_conv2d expects 4 dimensions");
    ensure!(x.dtype.is_float(), "deform_conv2d is not implemented for '{}'", name(x.dtype));
    ensure!(
        [w, o, b].iter().all(|t| t.dtype == x.dtype),
        "deform_conv2d: all operands must have the input's type {}",
        name(x.dtype)
    );
    let (how, [oh, ow]) = deform_read(a, at + 5, x.sizes(), w.sizes())?;
    let (groups, shifts) = (how.groups as i64, how.offset_groups as i64);
    let (n, c, taps) = (x.sizes()[0], x.sizes()[1], w.sizes()[2] * w.sizes()[3]);
    ensure!(w.sizes()[1] * groups == c, "deform_conv2d: the weight {:?} does not fit {c} channels", w.sizes());
    ensure!(w.sizes()[0] % groups == 0, "deform_conv2d: {} filters do not divide into {groups} groups", w.sizes()[0]);
    ensure!(c % shifts == 0, "deform_conv2d: {c} channels do not divide into {shifts} offset groups");
    ensure!(
        o.sizes() == [n, shifts * 2 * taps, oh, ow],
        "offset.shape[1] is not valid: got {:?} expected {:?}",
        o.sizes(),
        [n, shifts * 2 * taps, oh, ow]
    );
    if a.bool(at + 13)? {
        ensure!(
            m.sizes() == [n, shifts * taps, oh, ow] && m.dtype == x.dtype,
            "mask.shape[1] is not valid: got {:?} expected {:?}",
            m.sizes(),
            [n, shifts * taps, oh, ow]
        );
    }
    ensure!(
        b.sizes() == [w.sizes()[0]],
        "deform_conv2d: the bias {:?} does not fit {} filters",
        b.sizes(),
        w.sizes()[0]
    );
    Ok([n, w.sizes()[0], oh, ow])
}

/// `(input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups,
/// use_mask)`
fn deform_infer(a: &Args<'_, Meta>) -> Metas {
    one(fresh(a.tensor(0)?.dtype, &deform_sizes(a, 0)?))
}

fn deform(c: &Call<'_>) -> Result<()> {
    ran(k::deform_conv2d(&deformed(c, 0)?, c.args.tensor(4)?, &c.outs[0], c.ctx.threads))
}

/// The operands whose first is argument `at`.
fn deformed<'a>(c: &'a Call<'_>, at: usize) -> Result<Deformed<'a>> {
    let a = &c.args;
    let (x, weight, offset) = (*a.tensor(at)?, *a.tensor(at + 1)?, *a.tensor(at + 2)?);
    let (how, _) = deform_read(a, at + 5, x.sizes(), weight.sizes())?;
    let mask = if a.bool(at + 13)? { Some(*a.tensor(at + 3)?) } else { None };
    Ok(Deformed { x, weight, offset, mask, how })
}

fn deform_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let operands = [a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.tensor(3)?, a.tensor(4)?];
    Ok(k::deform_room(&operands.map(stored), stored(&outs[0])))
}

/// `(grad, input, weight, offset, mask, bias, …)`, then as `deform_conv2d`: gradients of the tensors after the first.
fn deform_back_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, sizes) = (a.tensor(0)?, deform_sizes(a, 1)?);
    ensure!(
        g.sizes() == sizes && g.dtype == a.tensor(1)?.dtype,
        "deform_conv2d: a gradient {g} of a result of sizes {sizes:?}"
    );
    let mut out = SmallVec::new();
    for i in 1..=5 {
        let t = a.tensor(i)?;
        out.push(fresh(t.dtype, t.sizes()));
    }
    Ok(out)
}

fn deform_back(c: &Call<'_>) -> Result<()> {
    let [of_x, of_weight, of_offset, of_mask, of_bias] = c.outs else {
        return fail("deform_conv2d has five gradients");
    };
    let outs = [of_x, of_weight, of_offset, of_mask, of_bias];
    ran(k::deform_conv2d_backward(c.args.tensor(0)?, &deformed(c, 1)?, outs, c.ctx.threads))
}

fn deform_back_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let operands = [a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.tensor(3)?, a.tensor(4)?];
    let outs: SmallVec<[_; 5]> = outs.iter().map(stored).collect();
    Ok(k::deform_backward_room(&operands.map(stored), &outs))
}

pub(crate) static OPS: &[OpDef] = table![
    OpDef {
        kernel: Kernel::Dynamic(nms),
        exactness: Exactness::Exact,
        samples: samples!(nms_samples),
        doc: "Indices of the boxes that no better one overlaps by more than the threshold, best first",
        ..OpDef::new("torchvision::nms")
    },
    close("torchvision::roi_align", roi_infer, roi, crate::support::scratch::packed, samples!(roi_samples)).failing(),
    close(
        "torchvision::_roi_align_backward",
        roi_back_infer,
        roi_back,
        crate::support::scratch::packed,
        samples!(roi_back_samples),
    )
    .failing(),
    close("torchvision::deform_conv2d", deform_infer, deform, deform_scratch, samples!(deform_samples)),
    close(
        "torchvision::_deform_conv2d_backward",
        deform_back_infer,
        deform_back,
        deform_back_scratch,
        samples!(deform_back_samples),
    ),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[upsample::OPS, grid::OPS, OPS],
    gradients: &[upsample_grad::GRADS, grid_grad::GRADS, grad::GRADS],
    aliases: &[],
};

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    /// Sample boxes with ordered corners.
    pub(crate) fn boxes(d: DType, n: i64, seed: u64) -> RawTensor {
        let at = in_range(DType::F64, Layout::contiguous(&[n, 2]), seed, 0.0, 6.0).to_elements::<f64>();
        let size = in_range(DType::F64, Layout::contiguous(&[n, 2]), seed + 1, 1.0, 5.0).to_elements::<f64>();
        let data: Vec<f64> = (0..n as usize)
            .flat_map(|i| [at[2 * i], at[2 * i + 1], at[2 * i] + size[2 * i], at[2 * i + 1] + size[2 * i + 1]])
            .collect();
        let t = RawTensor::zeros(d, Layout::contiguous(&[n, 4]));
        restride_kernels::support::convert::scatter(&data, &t.write().view_mut());
        t
    }

    pub(crate) fn nms_samples() -> Samples {
        let d = DType::F32;
        let mut out: Samples = [0.1, 0.3, 0.5, 0.9].map(|t| sample![boxes(d, 20, 1), tensor(d, &[20], 2), t]).into();
        out.extend([
            sample![boxes(DType::F64, 20, 1), tensor(DType::F64, &[20], 2), 0.4],
            sample![boxes(d, 20, 1), RawTensor::zeros(d, Layout::contiguous(&[20])), 0.4],
            sample![boxes(d, 6, 1), strided(d, &[6], 2), 0.4],
            sample![RawTensor::zeros(d, Layout::contiguous(&[0, 4])), tensor(d, &[0], 2), 0.4],
            sample![boxes(d, 6, 1), tensor(d, &[5], 2), 0.4],
            sample![tensor(d, &[6, 5], 1), tensor(d, &[6], 2), 0.4],
        ]);
        out
    }

    /// Sample regions that alternate between two images.
    pub(crate) fn rois(d: DType, n: i64) -> RawTensor {
        let b = boxes(DType::F64, n, 3).to_elements::<f64>();
        let data: Vec<f64> = (0..n as usize)
            .flat_map(|i| [(i % 2) as f64, b[4 * i], b[4 * i + 1], b[4 * i + 2], b[4 * i + 3]])
            .collect();
        let t = RawTensor::zeros(d, Layout::contiguous(&[n, 5]));
        restride_kernels::support::convert::scatter(&data, &t.write().view_mut());
        t
    }

    pub(crate) fn roi_samples() -> Samples {
        let d = DType::F32;
        let mut out: Samples =
            forms(d, &[2, 3, 7, 8], 1).into_iter().map(|x| sample![x, rois(d, 5), 1.0, 3, 2, 2, false]).collect();
        let x = tensor(d, &[2, 3, 7, 8], 1);
        out.extend([
            sample![&x, rois(d, 5), 0.5, 2, 2, 0, true],
            sample![&x, rois(d, 5), 1.5, 3, 3, -1, false],
            sample![&x, rois(d, 5), 0.25, 2, 2, -1, false],
            sample![nhwc(d, &[2, 3, 7, 8], 1), rois(d, 5), 1.0, 2, 2, 2, true],
            sample![&x, rois(d, 0), 1.0, 2, 2, 2, true],
            sample![tensor(DType::F64, &[2, 3, 7, 8], 1), rois(DType::F64, 5), 1.0, 2, 2, 2, true],
            sample![&x, tensor(d, &[5, 4], 1), 1.0, 2, 2, 2, true],
        ]);
        out
    }

    pub(crate) fn roi_back_samples() -> Samples {
        let d = DType::F32;
        let mut out: Samples = forms(d, &[5, 3, 3, 2], 1)
            .into_iter()
            .map(|g| sample![g, rois(d, 5), 1.0, 3, 2, 2, 3, 7, 8, 2, false])
            .collect();
        let g = tensor(d, &[5, 3, 2, 2], 1);
        out.extend([
            sample![&g, rois(d, 5), 0.5, 2, 2, 2, 3, 7, 8, 0, true],
            sample![&g, rois(d, 5), 1.5, 2, 2, 2, 3, 7, 8, -1, false],
            sample![tensor(d, &[0, 3, 2, 2], 1), rois(d, 0), 1.0, 2, 2, 2, 3, 7, 8, 2, true],
            sample![tensor(DType::F64, &[5, 3, 2, 2], 1), rois(DType::F64, 5), 1.0, 2, 2, 2, 3, 7, 8, 2, true],
        ]);
        out
    }

    pub(crate) fn deform_samples() -> Samples {
        let d = DType::F32;
        let call = |d: DType, groups: i64, shifts: i64, mask: bool, s: i64, p: i64, l: i64| {
            let oh = (6 + 2 * p - (l * 2 + 1)) / s + 1;
            let ow = (7 + 2 * p - (l + 1)) / s + 1;
            let m = if mask { tensor(d, &[2, shifts * 6, oh, ow], 4) } else { tensor(d, &[2, 1], 4) };
            sample![
                tensor(d, &[2, 4, 6, 7], 1),
                tensor(d, &[6, 4 / groups, 3, 2], 2),
                tensor(d, &[2, shifts * 12, oh, ow], 3),
                m,
                tensor(d, &[6], 5),
                s,
                s,
                p,
                p,
                l,
                l,
                groups,
                shifts,
                mask
            ]
        };
        let mut out = vec![
            call(d, 1, 1, false, 1, 0, 1),
            call(d, 1, 1, true, 1, 1, 1),
            call(d, 2, 2, true, 2, 1, 1),
            call(d, 2, 1, false, 1, 2, 2),
            call(DType::F64, 1, 2, true, 1, 1, 1),
        ];
        let mut turned = out[1].clone();
        turned.args[0] = restride_ir::Arg::Value(transposed(d, &[2, 4, 6, 7], 1));
        out.push(turned);
        let mut wrong = out[0].clone();
        wrong.args[2] = restride_ir::Arg::Value(tensor(d, &[2, 10, 4, 6], 3));
        out.push(wrong);
        out
    }

    pub(crate) fn deform_back_samples() -> Samples {
        let mut out = Samples::new();
        for mut s in deform_samples() {
            let metas: Vec<_> =
                s.args.iter().map(|a| a.map_values(|t| Meta::new(t.dtype(), t.layout().clone()))).collect();
            let Ok(sizes) = deform_sizes(&Args(&metas), 0) else { continue };
            let d = s.args[0].values().next().map_or(DType::F32, RawTensor::dtype);
            // Every other gradient is transposed.
            let g = if out.len().is_multiple_of(2) { tensor(d, &sizes, 7) } else { transposed(d, &sizes, 7) };
            s.args.insert(0, restride_ir::Arg::Value(g));
            out.push(s);
        }
        out
    }
}
