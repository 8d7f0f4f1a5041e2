//! Gradients of convolutions.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op, rule};
use restride_ir::{Arg, Expr, Val};

/// A list argument as `n` numbers; a single number stands for all.
fn spread(c: &Cx<'_>, i: usize, n: usize, default: i64) -> Vec<Expr> {
    let given = c.nums(i);
    match given.as_slice() {
        [] => vec![Expr::Int(default); n],
        [one] => vec![one.clone(); n],
        _ => given,
    }
}

/// Arguments of a convolution call.
struct ConvCall {
    stride: Vec<Expr>,
    padding: Vec<Expr>,
    dilation: Vec<Expr>,
    transposed: bool,
    output_padding: Vec<Expr>,
    groups: Arg<Val, Expr>,
}

/// A convolution of complex numbers is three real ones, as in PyTorch (`complex_convolution`), whose `convolution` takes real numbers
/// alone.
fn convolution<'c>(x: T<'c>, w: T<'c>, b: Option<T<'c>>, v: &ConvCall) -> T<'c> {
    let real = |x: T<'c>, w: T<'c>, b: Option<T<'c>>| {
        op!(
            x.cx(),
            "aten.convolution.default",
            x,
            w,
            b,
            v.stride.clone(),
            v.padding.clone(),
            v.dilation.clone(),
            v.transposed,
            v.output_padding.clone(),
            v.groups.clone()
        )
    };
    if !w.dtype().is_complex() {
        return real(x, w, b);
    }
    let [(x_re, x_im), (w_re, w_im)] = [x, w].map(|t| (t.real(), t.imag()));
    let of_re = real(x_re, w_re, b.map(T::real));
    let of_im = real(x_im, w_im, None);
    let of_both = real(x_re + x_im, w_re + w_im, b.map(|b| b.real() + b.imag()));
    (of_re - of_im).with_imag(of_both - of_re - of_im)
}

/// Runs `conv` on a batch; a single image becomes a batch of one.
fn batched<'c>(c: &'c Cx<'c>, n: usize, conv: impl FnOnce(T<'c>) -> T<'c>) -> Vec<T<'c>> {
    let x = c.arg(0);
    vec![if x.rank() == n + 1 { conv(x.unsqueeze(0)).squeeze(0) } else { conv(x) }]
}

/// `conv1d` and its like: `(input, weight, bias, stride, padding, dilation, groups)`, with padding as numbers or a word.
fn conv_n<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let n = c.arg(1).rank().saturating_sub(2);
    let dilation = spread(c, 5, n, 1);
    let mut padding = spread(c, 4, n, 0);
    let mut extra = vec![0; n];
    if let Some(word) = c.str(4) {
        padding = vec![Expr::Int(0); n];
        if word == "same" {
            let sizes = c.arg(1).sizes();
            for d in 0..n {
                let (Some(k), Some(by)) = (sizes[d + 2].constant(), dilation[d].constant()) else {
                    c.fail("padding='same' with a kernel of symbolic size");
                    return vec![c.arg(0)];
                };
                let total = by.as_i64() * (k.as_i64() - 1);
                padding[d] = Expr::Int(total / 2);
                extra[d] = total % 2;
            }
        }
    }
    batched(c, n, |x| {
        // The surplus of uneven padding goes after the input.
        let x = if extra.iter().any(|e| *e != 0) {
            let pad: Vec<i64> = extra.iter().rev().flat_map(|e| [0, *e]).collect();
            op!(c, "aten.constant_pad_nd.default", x, pad)
        } else {
            x
        };
        let stride = spread(c, 3, n, 1);
        let output_padding = vec![Expr::Int(0); n];
        let v = ConvCall { stride, padding, dilation, transposed: false, output_padding, groups: c.raw(6) };
        convolution(x, c.arg(1), c.opt(2), &v)
    })
}

/// `conv_transpose2d(input, weight, bias, stride, padding, output_padding, groups, dilation)`
fn conv_transpose<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let n = c.arg(1).rank().saturating_sub(2);
    batched(c, n, |x| {
        let v = ConvCall {
            stride: spread(c, 3, n, 1),
            padding: spread(c, 4, n, 0),
            dilation: spread(c, 7, n, 1),
            transposed: true,
            output_padding: spread(c, 5, n, 0),
            groups: c.raw(6),
        };
        convolution(x, c.arg(1), c.opt(2), &v)
    })
}

/// `_convolution`: the arguments of `convolution`, followed by flags.
fn plain_convolution<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let args: Vec<_> = (0..9).map(|i| c.raw(i)).collect();
    vec![c.call("aten.convolution.default", &args)]
}

fn convolution_grad<'c>(c: &'c Cx<'c>) {
    let (x, w) = (c.arg(0), c.arg(1));
    let with_bias = c.opt(2).is_some() && c.needs(2);
    let backward = |g: T<'c>, x: T<'c>, w: T<'c>, with_bias: bool| {
        let bias = c.opt(2).map_or(Arg::None, |b| Arg::Scalars(b.sizes()));
        let mut args = vec![g.operand(), x.operand(), w.operand(), bias];
        args.extend((3..9).map(|i| c.raw(i)));
        args.push([c.needs(0), c.needs(1), with_bias].operand());
        c.calls("aten.convolution_backward.default", &args)
    };
    if !w.dtype().is_complex() {
        return c.set_needed(&[0, 1, 2], backward(c.grad(), x, w, with_bias));
    }
    // PyTorch's operator is of real numbers alone: the gradient's parts with the parts of the conjugated operands.
    let [(g_re, g_im), (x_re, x_im), (w_re, w_im)] = [c.grad(), x, w].map(|t| (t.real(), t.imag()));
    let (both_re, both_im) = (backward(g_re, x_re, w_re, with_bias), backward(g_im, x_im, w_im, false));
    let (im_re, re_im) = (backward(g_im, x_re, w_re, with_bias), backward(g_re, x_im, w_im, false));
    if [&both_re, &both_im, &im_re, &re_im].into_iter().any(|results| results.len() < 3) {
        return;
    }
    for k in [0, 1] {
        c.give(k, || (both_re[k] + both_im[k]).with_imag(im_re[k] - re_im[k]));
    }
    c.give(2, || both_re[2].with_imag(im_re[2]));
}

/// `convolution_backward(grad_output, input, weight, bias_sizes, stride, …, groups, output_mask)`. Each result is linear in
/// two operands, whose adjoints are a convolution and the other result.
fn convolution_again<'c>(c: &'c Cx<'c>) {
    let (g, x, w) = (c.arg(0), c.arg(1), c.arg(2));
    let (of_x, of_w, of_b) = (c.opt_grad(0), c.opt_grad(1), c.opt_grad(2));
    let how: Vec<_> = (4..10).map(|i| c.raw(i)).collect();
    let convolved = |x: T<'c>, w: T<'c>| {
        let mut args = vec![x.operand(), w.operand(), Arg::None];
        args.extend(how.iter().cloned());
        c.call("aten.convolution.default", &args)
    };
    let backward = |x: T<'c>, w: T<'c>, k: usize| {
        let mut args = vec![g.operand(), x.operand(), w.operand(), Arg::None];
        args.extend(how.iter().cloned());
        args.push([k == 0, k == 1, false].operand());
        c.call_at("aten.convolution_backward.default", &args, k)
    };
    if c.needs(0) {
        let along = [of_x.map(|t| convolved(t, w)), of_w.map(|t| convolved(x, t))].into_iter().flatten();
        let bias = of_b.map(|t| {
            let mut sizes = vec![Expr::Int(1); g.rank()];
            sizes[1] = g.size(1);
            t.reshape(sizes).expand(g.sizes())
        });
        match along.chain(bias).reduce(|a, b| a + b) {
            Some(t) => c.set(0, t),
            None => c.zero(0),
        }
    }
    match of_w {
        Some(t) => c.give(1, || backward(x, t, 0)),
        None => c.zero(1),
    }
    match of_x {
        Some(t) => c.give(2, || backward(t, w, 1)),
        None => c.zero(2),
    }
}

pub(crate) static GRADS: Rules = &[
    (&["convolution_backward"], rule!(convolution_again)),
    (&["convolution"], rule!(convolution_grad)),
    (&["_convolution"], form!(plain_convolution)),
    (
        &["conv1d", "conv2d", "conv3d", "conv1d.padding", "conv2d.padding", "conv3d.padding", "_convolution_mode"],
        form!(conv_n),
    ),
    (&["conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"], form!(conv_transpose)),
];
