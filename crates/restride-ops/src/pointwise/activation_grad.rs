//! Gradients of activations and of their backward operators.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, op, rule};
use std::f64::consts::{FRAC_2_SQRT_PI, PI, SQRT_2};

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

/// `elu` and its like, by `elu_backward`.
fn elu<'c>(c: &'c Cx<'c>, alpha: f64, scale: f64, input_scale: f64) {
    c.set(0, op!(c, "aten.elu_backward.default", c.grad(), alpha, scale, input_scale, false, c.arg(0)));
}

/// `elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result)`
fn elu_backward<'c>(c: &'c Cx<'c>) {
    c.give(0, || op!(c, "aten.elu_backward.default", c.grad(), c.raw(1), c.raw(2), c.raw(3), c.raw(4), c.arg(5)));
    c.give(5, || {
        let (x, alpha, scale, input) = (c.arg(5), c.float(1), c.float(2), c.float(3));
        let slope = if c.flag(4) {
            c.grad() * c.arg(0) * input
        } else {
            c.grad() * c.arg(0) * (x * input).exp() * (alpha * scale * input * input)
        };
        slope.only(x.is("lt", 0))
    });
}

/// `threshold_backward`, `hardtanh_backward` and their like: the operand masks the gradient.
fn masked<'c>(c: &'c Cx<'c>, name: &str, numbers: usize) {
    c.zero(1);
    c.give(0, || {
        let mut args = vec![crate::gradient::terms::TermOperand::operand(c.grad()), c.raw(1)];
        args.extend((0..numbers).map(|k| c.raw(2 + k)));
        c.call(name, &args)
    });
}

/// The second derivative times both gradients, for `f_backward(grad, self)`.
fn second<'c>(c: &'c Cx<'c>, name: &str, curve: impl FnOnce(T<'c>) -> T<'c>) {
    c.give(0, || op!(c, name, c.grad(), c.arg(1)));
    c.give(1, || c.grad() * c.arg(0) * curve(c.arg(1)));
}

fn gelu_backward<'c>(c: &'c Cx<'c>) {
    let tanh = c.str(2) == Some("tanh");
    c.give(0, || op!(c, "aten.gelu_backward.default", c.grad(), c.arg(1), c.raw(2)));
    c.give(1, || {
        let x = c.arg(1);
        let curve = if tanh {
            let (k, a) = (SQRT_2 * FRAC_2_SQRT_PI * 0.5, 0.044715);
            let x2 = x.square();
            let t = (x * (x2 * a + 1.0) * k).unary("aten.tanh.default");
            let du = (x2 * (3.0 * a) + 1.0) * k;
            let left = 1.0 - t.square();
            left * du + x * 0.5 * left * (x * (6.0 * a * k) - t * du.square() * 2.0)
        } else {
            (x.square() * -0.5).exp() * (2.0 * PI).sqrt().recip() * (2.0 - x.square())
        };
        c.grad() * c.arg(0) * curve
    });
}

fn silu_curve(x: T<'_>) -> T<'_> {
    let s = x.sigmoid();
    s * (1.0 - s) * (x * (1.0 - s * 2.0) + 2.0)
}

fn mish_curve(x: T<'_>) -> T<'_> {
    let s = x.sigmoid();
    let w = x.unary("aten.softplus.default").unary("aten.tanh.default");
    let left = 1.0 - w.square();
    let d = left * s;
    let dd = left * s * (1.0 - s) - w * d * s * 2.0;
    d * 2.0 + x * dd
}

/// `softplus_backward(grad, self, beta, threshold)`
fn softplus_backward<'c>(c: &'c Cx<'c>) {
    c.give(0, || op!(c, "aten.softplus_backward.default", c.grad(), c.arg(1), c.raw(2), c.raw(3)));
    c.give(1, || {
        let (beta, limit) = (c.float(2), c.float(3));
        let t = c.arg(1) * beta;
        let s = t.sigmoid();
        (c.grad() * c.arg(0) * s * (1.0 - s) * beta).except(t.is("gt", limit))
    });
}

fn hardswish_backward<'c>(c: &'c Cx<'c>) {
    c.give(0, || op!(c, "aten.hardswish_backward.default", c.grad(), c.arg(1)));
    c.give(1, || {
        let x = c.arg(1);
        let bent = op!(c, "aten.logical_and.default", x.is("gt", -3.0), x.is("lt", 3.0));
        (c.grad() * c.arg(0) * (1.0 / 3.0)).only(bent)
    });
}

fn log_sigmoid_backward<'c>(c: &'c Cx<'c>) {
    // The saved buffer is a function of the operand and has no gradient.
    c.zero(2);
    c.give(0, || op!(c, "aten.log_sigmoid_backward.default", c.grad(), c.arg(1), c.arg(2)));
    c.give(1, || {
        let s = c.arg(1).sigmoid();
        -c.grad() * c.arg(0) * s * (1.0 - s)
    });
}

/// `logit_backward(grad, self, eps)`
fn logit_backward<'c>(c: &'c Cx<'c>) {
    let x = c.arg(1);
    c.give(0, || op!(c, "aten.logit_backward.default", c.grad(), x, c.raw(2)));
    c.give(1, || {
        let d = c.grad() * c.arg(0) * (x * 2.0 - 1.0) / (x * (1.0 - x)).square();
        if c.is_none(2) {
            return d;
        }
        let eps = c.float(2);
        d.only(op!(c, "aten.logical_and.default", x.is("ge", eps), x.is("le", 1.0 - eps)))
    });
}

fn prelu<'c>(c: &'c Cx<'c>) {
    let both = c.calls("aten._prelu_kernel_backward.default", &[arg(c.grad()), arg(c.arg(0)), arg(c.arg(1))]);
    if let [x, w] = both[..] {
        c.set(0, x);
        c.set(1, w);
    }
}

fn arg(t: T<'_>) -> restride_ir::Arg<restride_ir::Val, restride_ir::Expr> {
    TermOperand::operand(t)
}

/// `_prelu_kernel_backward(grad, self, weight)` returns the gradients of self and weight.
fn prelu_backward<'c>(c: &'c Cx<'c>) {
    let (g, x, w) = (c.arg(0), c.arg(1), c.arg(2));
    let right = x.is("gt", 0);
    c.give(0, || {
        let mut total: Option<T<'_>> = None;
        if let Some(a) = c.opt_grad(0) {
            total = Some(op!(c, "aten.where.self", right, a, a * w));
        }
        if let Some(b) = c.opt_grad(1) {
            let part = (b * x).except(right);
            total = Some(total.map_or(part, |t| t + part));
        }
        total.unwrap_or_else(|| g.zeros_like())
    });
    match c.opt_grad(1) {
        Some(b) => c.give(1, || (b * g).except(right)),
        None => c.zero(1),
    }
    match c.opt_grad(0) {
        Some(a) => c.give(2, || (a * g).except(right)),
        None => c.zero(2),
    }
}

/// Quantization with a learnt scale and zero point.
fn learnable<'c>(c: &'c Cx<'c>, arguments: usize, back: &'static str) {
    let mut args = vec![c.grad().operand()];
    args.extend((0..arguments).map(|i| c.raw(i)));
    c.set_needed(&[0, 1, 2], c.calls(back, &args));
}

/// A rule that calls a backward operator with the gradient, the operand, and these arguments of the call.
macro_rules! by {
    ($name:literal $(, $at:literal)*) => {
        rule!(|c| c.set(0, op!(c, $name, c.grad(), c.arg(0) $(, c.raw($at))*)))
    };
}

pub(crate) static GRADS: Rules = &[
    (&["relu"], rule!(|c| c.set(0, op!(c, "aten.threshold_backward.default", c.grad(), c.result(), 0)))),
    (&["threshold"], by!("aten.threshold_backward.default", 1)),
    (&["relu6"], rule!(|c| c.set(0, op!(c, "aten.hardtanh_backward.default", c.grad(), c.arg(0), 0, 6)))),
    (&["hardtanh"], by!("aten.hardtanh_backward.default", 1, 2)),
    (
        &["leaky_relu"],
        rule!(|c| c.set(0, op!(c, "aten.leaky_relu_backward.default", c.grad(), c.arg(0), c.raw(1), false))),
    ),
    (&["elu"], rule!(|c| elu(c, c.float(1), c.float(2), c.float(3)))),
    (&["celu"], rule!(|c| elu(c, c.float(1), 1.0, 1.0 / c.float(1)))),
    (&["selu"], rule!(|c| elu(c, SELU_ALPHA, SELU_SCALE, 1.0))),
    (&["gelu"], by!("aten.gelu_backward.default", 1)),
    (&["silu"], by!("aten.silu_backward.default")),
    (&["mish"], by!("aten.mish_backward.default")),
    (&["softplus"], by!("aten.softplus_backward.default", 1, 2)),
    (&["hardsigmoid"], by!("aten.hardsigmoid_backward.default")),
    (&["hardswish"], by!("aten.hardswish_backward.default")),
    (&["hardshrink"], by!("aten.hardshrink_backward.default", 1)),
    (&["softshrink"], by!("aten.softshrink_backward.default", 1)),
    (&["log_sigmoid"], rule!(|c| c.set(0, c.grad() * (-c.arg(0)).sigmoid()))),
    (
        &["log_sigmoid_forward"],
        rule!(|c| {
            if c.only_first() {
                c.set(0, op!(c, "aten.log_sigmoid_backward.default", c.grad(), c.arg(0), c.result_at(1)));
            }
        }),
    ),
    (&["sigmoid"], rule!(|c| c.set(0, op!(c, "aten.sigmoid_backward.default", c.grad(), c.result())))),
    (&["tanh"], rule!(|c| c.set(0, op!(c, "aten.tanh_backward.default", c.grad(), c.result())))),
    (&["_prelu_kernel"], rule!(prelu)),
    (
        &[
            "fake_quantize_per_tensor_affine_cachemask",
            "fake_quantize_per_channel_affine_cachemask",
            "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
        ],
        rule!(|c| {
            // The grid has no gradient.
            (1..3).for_each(|i| c.zero(i));
            let back = "aten.fake_quantize_per_tensor_affine_cachemask_backward.default";
            c.give(0, || op!(c, back, c.grad(), c.result_at(1)));
        }),
    ),
    (
        &["fake_quantize_per_tensor_affine_cachemask_backward", "fake_quantize_per_channel_affine_cachemask_backward"],
        rule!(|c| c.set(0, c.grad().only(c.arg(1)))),
    ),
    (
        &["_fake_quantize_learnable_per_tensor_affine"],
        rule!(|c| learnable(c, 6, "aten._fake_quantize_learnable_per_tensor_affine_backward.default")),
    ),
    (
        &["_fake_quantize_learnable_per_channel_affine"],
        rule!(|c| learnable(c, 7, "aten._fake_quantize_learnable_per_channel_affine_backward.default")),
    ),
    // Second derivatives.
    (
        &["sigmoid_backward"],
        rule!(|c| {
            let s = c.arg(1);
            c.give(0, || op!(c, "aten.sigmoid_backward.default", c.grad(), s.conj()));
            c.give(1, || c.grad().conj() * c.arg(0) * (1.0 - s.conj() * 2.0));
        }),
    ),
    (
        &["tanh_backward"],
        rule!(|c| {
            let t = c.arg(1);
            c.give(0, || op!(c, "aten.tanh_backward.default", c.grad(), t.conj()));
            c.give(1, || c.grad().conj() * (c.arg(0) * t.conj() * -2.0));
        }),
    ),
    (&["threshold_backward"], rule!(|c| masked(c, "aten.threshold_backward.default", 1))),
    (&["hardtanh_backward"], rule!(|c| masked(c, "aten.hardtanh_backward.default", 2))),
    (&["leaky_relu_backward"], rule!(|c| masked(c, "aten.leaky_relu_backward.default", 2))),
    (&["hardsigmoid_backward"], rule!(|c| masked(c, "aten.hardsigmoid_backward.default", 0))),
    (&["hardshrink_backward"], rule!(|c| masked(c, "aten.hardshrink_backward.default", 1))),
    (&["softshrink_backward"], rule!(|c| masked(c, "aten.softshrink_backward.default", 1))),
    (&["elu_backward"], rule!(elu_backward)),
    (&["gelu_backward"], rule!(gelu_backward)),
    (&["silu_backward"], rule!(|c| second(c, "aten.silu_backward.default", silu_curve))),
    (&["mish_backward"], rule!(|c| second(c, "aten.mish_backward.default", mish_curve))),
    (&["softplus_backward"], rule!(softplus_backward)),
    (&["hardswish_backward"], rule!(hardswish_backward)),
    (&["log_sigmoid_backward"], rule!(log_sigmoid_backward)),
    (&["logit_backward"], rule!(logit_backward)),
    (&["_prelu_kernel_backward"], rule!(prelu_backward)),
    (
        &["native_dropout_backward"],
        rule!(|c| {
            c.give(0, || op!(c, "aten.native_dropout_backward.default", c.grad(), c.arg(1), c.raw(2)));
        }),
    ),
];
