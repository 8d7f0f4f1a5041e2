//! Gradients of softmax and normalisations.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op, product, rule, wrap};
use restride_ir::{Arg, DType};

fn softmax<'c>(c: &'c Cx<'c>, backward: &str) {
    let dtype = c.result().dtype();
    c.set(0, op!(c, backward, c.grad(), c.result(), c.raw(1), dtype));
}

/// `_softmax_backward_data(grad_output, output, dim, input_dtype)`
fn softmax_backward<'c>(c: &'c Cx<'c>) {
    let (g, y) = (c.arg(0), c.arg(1));
    let d = if y.rank() == 0 { Vec::new() } else { vec![c.int(2)] };
    c.give(0, || op!(c, "aten._softmax_backward_data.default", c.grad(), y, c.raw(2), c.raw(3)));
    c.give(1, || {
        let h = c.grad();
        h * g - h * (g * y).sum(d.clone(), true) - g * (h * y).sum(d.clone(), true)
    });
}

fn log_softmax_backward<'c>(c: &'c Cx<'c>) {
    let (g, y) = (c.arg(0), c.arg(1));
    let d = if y.rank() == 0 { Vec::new() } else { vec![c.int(2)] };
    let h = c.grad();
    c.give(0, || h - (h * y.exp()).sum(d.clone(), true));
    c.give(1, || -h * y.exp() * g.sum(d.clone(), true));
}

fn layer_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    vec![op!(c, "aten.native_layer_norm.default", c.arg(0), c.raw(1), c.raw(2), c.raw(3), c.raw(4))]
}

fn native_layer_norm<'c>(c: &'c Cx<'c>) {
    if !c.only_first() {
        return;
    }
    let mask = [c.needs(0), c.needs(2), c.needs(3)];
    let args = [
        c.grad().operand(),
        c.arg(0).operand(),
        c.raw(1),
        c.result_at(1).operand(),
        c.result_at(2).operand(),
        c.raw(2),
        c.raw(3),
        mask.operand(),
    ];
    c.set_needed(&[0, 2, 3], c.calls("aten.native_layer_norm_backward.default", &args));
}

/// Composed of plain arithmetic: PyTorch has no gradient operator for all devices.
fn fused_rms_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0);
    let dtype = x.dtype();
    let wide = x.to(if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype });
    let least = if matches!(dtype, DType::F64 | DType::C128) { f64::EPSILON } else { f32::EPSILON.into() };
    let dims: Vec<i64> = (1..=c.nums(1).len() as i64).map(|d| -d).collect();
    let mean = op!(c, "aten.mean.dim", wide.square(), dims, true);
    let scale = (mean + c.opt_float(3).unwrap_or(least)).rsqrt();
    let mut out = wide * scale;
    if let Some(w) = c.opt(2) {
        out = out * w;
    }
    vec![out.to(dtype), scale]
}

fn rms_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    fused_rms_norm(c).into_iter().take(1).collect()
}

fn group_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let x = c.arg(0);
    let sizes = x.sizes();
    let (n, channels, inner) = (x.size(0), x.size(1), product(sizes.iter().skip(2)));
    vec![op!(c, "aten.native_group_norm.default", x, c.raw(2), c.raw(3), n, channels, inner, c.raw(1), c.raw(4))]
}

fn native_group_norm<'c>(c: &'c Cx<'c>) {
    if !c.only_first() {
        return;
    }
    let mask = [c.needs(0), c.needs(1), c.needs(2)];
    let args = [
        c.grad().operand(),
        c.arg(0).operand(),
        c.result_at(1).operand(),
        c.result_at(2).operand(),
        c.raw(1),
        c.raw(3),
        c.raw(4),
        c.raw(5),
        c.raw(6),
        mask.operand(),
    ];
    c.set_needed(&[0, 1, 2], c.calls("aten.native_group_norm_backward.default", &args));
}

/// `batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)`. In a functional
/// program, a call that updates running statistics is another operator.
fn batch_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    // An empty input returns unchanged.
    if c.arg(0).rank() < 2 {
        return vec![c.arg(0) * 1.0];
    }
    let common = [c.raw(0), c.raw(1), c.raw(2)];
    let mut args = common.to_vec();
    if c.flag(5) {
        args.extend([c.raw(5), c.raw(6), c.raw(7)]);
        return vec![c.call("aten._native_batch_norm_legit.no_stats", &args)];
    }
    args.extend([c.raw(3), c.raw(4), c.raw(6), c.raw(7)]);
    vec![c.call("aten._native_batch_norm_legit_no_training.default", &args)]
}

/// Batch normalisation with batch statistics (results 1 and 2) or running statistics (arguments 3 and 4).
fn native_batch_norm<'c>(c: &'c Cx<'c>, running: bool, train: bool, eps: usize) {
    if !c.only_first() {
        return;
    }
    if c.arg(0).rank() < 2 {
        (1..3).for_each(|i| c.zero(i));
        return c.give(0, || c.grad());
    }
    if running && !train && (c.needs(3) || c.needs(4)) {
        return c.fail("the gradient of running statistics");
    }
    let stats = |i: usize| if running { c.raw(i) } else { Arg::None };
    let saved = |k: usize| if train { c.result_at(k).operand() } else { Arg::None };
    let mask = [c.needs(0), c.needs(1), c.needs(2)];
    let args = [
        c.grad().operand(),
        c.arg(0).operand(),
        c.raw(1),
        stats(3),
        stats(4),
        saved(1),
        saved(2),
        train.operand(),
        c.raw(eps),
        mask.operand(),
    ];
    c.set_needed(&[0, 1, 2], c.calls("aten.native_batch_norm_backward.default", &args));
}

/// Scales `v` to the norms `g`, computed over all dimensions but `dim`.
fn weight_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (v, g) = (c.arg(0), c.arg(1));
    let rank = v.rank();
    let dim = c.int_or(2, 0);
    let others: Vec<i64> = (0..rank as i64).filter(|d| dim == -1 || *d != wrap(dim, rank) as i64).collect();
    let norm = op!(c, "aten.linalg_vector_norm.default", v, 2, others, dim != -1);
    vec![v * (g / norm), norm]
}

pub(crate) static GRADS: Rules = &[
    (&["softmax.int", "_softmax", "_safe_softmax"], rule!(|c| softmax(c, "aten._softmax_backward_data.default"))),
    (&["log_softmax.int", "_log_softmax"], rule!(|c| softmax(c, "aten._log_softmax_backward_data.default"))),
    (&["_softmax_backward_data"], rule!(softmax_backward)),
    (&["_log_softmax_backward_data"], rule!(log_softmax_backward)),
    (&["layer_norm"], form!(layer_norm)),
    (&["native_layer_norm"], rule!(native_layer_norm)),
    (&["rms_norm"], form!(rms_norm)),
    (&["_fused_rms_norm"], form!(fused_rms_norm)),
    (&["group_norm"], form!(group_norm)),
    (&["native_group_norm"], rule!(native_group_norm)),
    (&["batch_norm"], form!(batch_norm)),
    (
        &["native_batch_norm", "_native_batch_norm_legit_functional"],
        rule!(|c| native_batch_norm(c, true, c.flag(5), 7)),
    ),
    (&["_native_batch_norm_legit.no_stats"], rule!(|c| native_batch_norm(c, false, true, 5))),
    (
        &["_native_batch_norm_legit_no_training", "_batch_norm_no_update"],
        rule!(|c| native_batch_norm(c, true, false, 6)),
    ),
    (&["_batch_norm_with_update_functional"], rule!(|c| native_batch_norm(c, true, true, 6))),
    (&["_weight_norm_interface"], form!(weight_norm)),
    (&["_weight_norm"], form!(weight_norm_value)),
];

fn weight_norm_value<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    weight_norm(c).into_iter().take(1).collect()
}
