//! Gradients of torchvision's operators.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op, rule};
use restride_ir::{DType, Dim, Expr};

/// `roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)`. Regions have no gradient, as
/// in torchvision.
fn roi_align<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    c.zero(1);
    c.give(0, || {
        let mut args = vec![c.grad().operand(), c.raw(1), c.raw(2), c.raw(3), c.raw(4)];
        args.extend(x.sizes().into_iter().map(TermOperand::operand));
        args.extend([c.raw(5), c.raw(6)]);
        c.call("torchvision._roi_align_backward.default", &args)
    });
}

/// The operator is linear: its gradient is the pooling itself.
fn roi_align_backward<'c>(c: &'c Cx<'c>) {
    c.zero(1);
    c.give(0, || {
        let args = [c.grad().operand(), c.raw(1), c.raw(2), c.raw(3), c.raw(4), c.raw(9), c.raw(10)];
        c.call("torchvision.roi_align.default", &args)
    });
}

/// One of the four pixels around each position: its weight in the sample, its value, and its index in the image. Weight and
/// value are zero outside the image.
struct Corner<'c> {
    part: T<'c>,
    value: T<'c>,
    place: T<'c>,
}

/// `deform_conv2d(input, weight, offset, mask, bias, …, use_mask)`
fn deform_conv2d<'c>(c: &'c Cx<'c>) {
    let mut args = vec![c.grad().operand()];
    args.extend((0..14).map(|i| c.raw(i)));
    if !c.flag(13) {
        c.zero(3);
    }
    let all = c.calls("torchvision._deform_conv2d_backward.default", &args);
    for (i, g) in all.into_iter().enumerate().filter(|(i, _)| *i != 3 || c.flag(13)) {
        c.give(i, || g);
    }
}

/// `_deform_conv2d_backward(grad, input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h,
/// dilation_w, groups, offset_groups, use_mask)`. Differentiates a matrix product whose columns are sampled from the image,
/// as in `im2col`.
fn deform_conv2d_backward<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (x, weight, offset) = (c.arg(1), c.arg(2), c.arg(3));
    let dtype = x.dtype();
    // Half floats have too few digits for positions.
    let wide = match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        d => d,
    };
    let g = c.arg(0).to(wide);
    let (n, channels, h, w) = (x.size(0), x.size(1), x.size(2), x.size(3));
    let (filters, kh, kw) = (weight.size(0), weight.size(2), weight.size(3));
    let (oh, ow) = (g.size(2), g.size(3));
    let (groups, shifts) = (c.num(12), c.num(13));
    let (points, taps) = (oh.times(&ow), kh.times(&kw));
    let each = channels.floor_div(&shifts);

    // Positions of the samples: offset groups × kernel × result.
    let grid = vec![n.clone(), shifts.clone(), kh.clone(), kw.clone(), oh.clone(), ow.clone()];
    let along = |count: &Expr, step: usize, before: Option<usize>, dim: usize| {
        let mut at = op!(c, "aten.arange.default", count).times(c.num(step));
        if let Some(pad) = before {
            at = op!(c, "aten.sub.Scalar", at, c.num(pad));
        }
        let mut sizes = vec![Expr::Int(1); 6];
        sizes[dim] = count.clone();
        at.to(wide).reshape(sizes)
    };
    let shift = |k: i64| {
        let mut sizes = grid.clone();
        sizes.insert(4, Expr::Int(2));
        offset.to(wide).reshape(sizes).select(4, k)
    };
    let y = along(&oh, 6, Some(8), 4) + along(&kh, 10, None, 2) + shift(0);
    let x_at = along(&ow, 7, Some(9), 5) + along(&kw, 11, None, 3) + shift(1);
    let both = |a: T<'c>, b: T<'c>| op!(c, "aten.logical_and.default", a, b);
    let between = |t: T<'c>, n: &Expr| both(t.is("gt", -1), t.is("lt", n));
    let inside = both(between(y, &h), between(x_at, &w));
    let (y0, x0) = (y.unary("aten.floor.default"), x_at.unary("aten.floor.default"));
    let (ly, lx) = (y - y0, x_at - x0);
    let (hy, hx) = (1.0 - ly, 1.0 - lx);

    // All samples of a channel group, consecutively.
    let samples = taps.times(&points);
    let flat = |t: T<'c>| t.reshape(vec![n.clone(), shifts.clone(), Expr::Int(1), samples.clone()]);
    let rows = vec![n.clone(), shifts.clone(), each.clone(), samples.clone()];
    let image = x.to(wide).reshape(vec![n.clone(), shifts.clone(), each.clone(), h.times(&w)]);
    let corner = |down: bool, right: bool| {
        let at = |from: T<'c>, next: bool| if next { from + 1.0 } else { from };
        let (yi, xi) = (at(y0, down), at(x0, right));
        let there = both(both(yi.is("ge", 0), yi.is("lt", &h)), both(xi.is("ge", 0), xi.is("lt", &w)));
        let there = both(inside, there);
        // Integer arithmetic, because large images have more elements than floats have digits.
        let (yi, xi) = (yi.only(there).to(DType::I64), xi.only(there).to(DType::I64));
        let place = flat(yi.times(&w) + xi).expand(rows.clone());
        let part = (if down { ly } else { hy }) * (if right { lx } else { hx });
        Corner {
            part: flat(part.only(there)),
            value: op!(c, "aten.gather.default", image, -1, place).only(flat(there)),
            place,
        }
    };
    let [a, b, d, e] = [corner(false, false), corner(false, true), corner(true, false), corner(true, true)];
    let sampled = a.part * a.value + b.part * b.value + d.part * d.value + e.part * e.value;
    let mask = c.flag(14).then(|| flat(c.arg(4).to(wide)));
    let masked = |t: T<'c>| mask.map_or(t, |m| t * m);

    // Both sides of the product, by weight group.
    let inner = channels.floor_div(&groups).times(&taps);
    let outer = filters.floor_div(&groups);
    let of_bias = g.sum(vec![0, 2, 3], false);
    let g = g.reshape(vec![n.clone(), groups.clone(), outer.clone(), points.clone()]);
    let columns = masked(sampled).reshape(vec![n.clone(), groups.clone(), inner.clone(), points]);
    let of_weight = g.matmul(columns.mt()).sum(vec![0], false).reshape(weight.sizes());
    let weights = weight.to(wide).reshape(vec![groups, outer, inner]);
    let slopes = weights.mt().matmul(g).reshape(rows);
    let of_mask = match mask {
        Some(_) => (slopes * sampled).sum(vec![2], false).reshape(c.arg(4).sizes()),
        None => c.arg(4).zeros_like(),
    };
    let g = masked(slopes);
    let none = op!(c, "aten.full.default", image.sizes(), 0, wide);
    let add = |sum: T<'c>, k: &Corner<'c>| op!(c, "aten.scatter_add.default", sum, -1, k.place, g * k.part);
    let of_x = [&a, &b, &d, &e].into_iter().fold(none, add).reshape(x.sizes());
    let slope = |near: T<'c>, one: T<'c>, far: T<'c>, other: T<'c>| {
        (g * (flat(near) * one + flat(far) * other)).sum(vec![2], false).reshape(grid.clone())
    };
    let down = slope(hx, d.value - a.value, lx, e.value - b.value);
    let right = slope(hy, b.value - a.value, ly, e.value - d.value);
    let of_offset = op!(c, "aten.stack.default", vec![down, right], 4).reshape(offset.sizes());
    [of_x, of_weight, of_offset, of_mask, of_bias].map(|t| t.to(dtype)).to_vec()
}

pub(crate) static GRADS: Rules = &[
    (&["torchvision::roi_align"], rule!(roi_align)),
    (&["torchvision::_roi_align_backward"], rule!(roi_align_backward)),
    (&["torchvision::deform_conv2d"], rule!(deform_conv2d)),
    (&["torchvision::_deform_conv2d_backward"], form!(deform_conv2d_backward)),
];
