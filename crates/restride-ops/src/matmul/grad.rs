//! Gradients of matrix products and convolutions.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, Operand, T, form, op, product, rule};
use restride_ir::{Arg, Expr, Val};

fn mm<'c>(c: &'c Cx<'c>, a: usize, b: usize, product: &str, scale: Option<Expr>) {
    let scaled = |t: T<'c>| scale.as_ref().map_or(t, |s| t.times(s));
    c.give(a, || scaled(op!(c, product, c.grad(), c.arg(b).mh())));
    c.give(b, || scaled(op!(c, product, c.arg(a).mh(), c.grad())));
}

/// `beta * self + alpha * (a @ b)`
fn add_product<'c>(c: &'c Cx<'c>, product: &str) {
    c.give(0, || c.grad().times(&c.num(3)));
    mm(c, 1, 2, product, Some(c.num(4)));
}

/// `addmv(self, mat, vec, beta, alpha)`
fn addmv<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad().times(&c.num(3)));
    mv(c, 1, 2, Some(c.num(4)));
}

fn mv<'c>(c: &'c Cx<'c>, m: usize, v: usize, scale: Option<Expr>) {
    let scaled = |t: T<'c>| scale.as_ref().map_or(t, |s| t.times(s));
    c.give(m, || scaled(c.grad().unsqueeze(1) * c.arg(v).conj().unsqueeze(0)));
    c.give(v, || scaled(op!(c, "aten.mv.default", c.arg(m).mh(), c.grad())));
}

/// Flattens all dimensions but the last.
fn rows(t: T<'_>) -> T<'_> {
    let sizes = t.sizes();
    match sizes.split_last() {
        Some((last, lead)) if lead.len() != 1 => t.reshape(vec![product(lead), last.clone()]),
        _ => t,
    }
}

fn matmul<'c>(c: &'c Cx<'c>) {
    let (a, b, g) = (c.arg(0), c.arg(1), c.grad());
    match (a.rank(), b.rank()) {
        (1, 1) => {
            c.give(0, || g * b.conj());
            c.give(1, || g * a.conj());
        }
        (2, 2) => mm(c, 0, 1, "aten.mm.default", None),
        (ra, 2) if ra > 2 => {
            c.give(0, || g.matmul(b.mh()));
            c.give(1, || op!(c, "aten.mm.default", rows(a).mh(), rows(g)));
        }
        (1, _) => {
            let g = g.unsqueeze(-2);
            c.give(0, || g.matmul(b.mh()).squeeze(-2));
            c.give(1, || a.unsqueeze(-1).conj().matmul(g));
        }
        (_, 1) => {
            let g = g.unsqueeze(-1);
            c.give(0, || g.matmul(b.unsqueeze(0).conj()));
            c.give(1, || a.mh().matmul(g).squeeze(-1));
        }
        _ => {
            c.give(0, || g.matmul(b.mh()));
            c.give(1, || a.mh().matmul(g));
        }
    }
}

fn linear<'c>(c: &'c Cx<'c>) {
    let (x, w, g) = (c.arg(0), c.arg(1), c.grad());
    if w.rank() == 1 {
        c.give(0, || g.unsqueeze(-1) * w.conj());
        c.give(1, || g.unsqueeze(-1) * x.conj());
    } else {
        c.give(0, || g.matmul(w.conj()));
        c.give(1, || op!(c, "aten.mm.default", rows(g).mt(), rows(x).conj()));
    }
    if c.opt(2).is_some() {
        c.give(2, || g);
    }
}

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

fn convolution<'c>(x: T<'c>, w: T<'c>, b: Option<T<'c>>, v: ConvCall) -> T<'c> {
    op!(
        x.cx(),
        "aten.convolution.default",
        x,
        w,
        b,
        v.stride,
        v.padding,
        v.dilation,
        v.transposed,
        v.output_padding,
        v.groups
    )
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
        convolution(x, c.arg(1), c.opt(2), v)
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
        convolution(x, c.arg(1), c.opt(2), v)
    })
}

/// `_convolution`: the arguments of `convolution`, followed by flags.
fn plain_convolution<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let args: Vec<_> = (0..9).map(|i| c.raw(i)).collect();
    vec![c.call("aten.convolution.default", &args)]
}

fn convolution_grad<'c>(c: &'c Cx<'c>) {
    let (x, w) = (c.arg(0), c.arg(1));
    let bias = c.opt(2).map_or(Arg::None, |b| Arg::Scalars(b.sizes()));
    let mask = [c.needs(0), c.needs(1), c.opt(2).is_some() && c.needs(2)];
    let mut args = vec![c.grad().operand(), x.operand(), w.operand(), bias];
    args.extend((3..9).map(|i| c.raw(i)));
    args.push(mask.operand());
    let all = c.calls("aten.convolution_backward.default", &args);
    for (i, g) in all.into_iter().enumerate() {
        if mask[i] {
            c.set(i, g);
        }
    }
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

/// `grouped_mm_fallback(input, weight, offs)`: multiplies the rows up to each offset by that group's matrix.
fn grouped<'c>(c: &'c Cx<'c>) {
    let (x, w, ends, g) = (c.arg(0), c.arg(1), c.arg(2), c.grad());
    c.give(0, || op!(c, "transformers.grouped_mm_fallback.default", g, w.mt(), ends));
    c.give(1, || {
        let row = op!(c, "aten.arange.default", &x.size(0)).unsqueeze(0);
        let zero = op!(c, "aten.full.default", [1], 0, ends.dtype());
        let groups = w.size(0);
        let starts = c.cat(&[zero, ends], 0).slice(0, Expr::Int(0), groups);
        let (after, before) = (row.than("ge", starts.unsqueeze(1)), row.than("lt", ends.unsqueeze(1)));
        let own = op!(c, "aten.logical_and.default", after, before);
        // The rows of each group; zeros elsewhere.
        x.unsqueeze(0).only(own.unsqueeze(-1)).mt().matmul(g)
    });
}

pub(crate) static GRADS: Rules = &[
    (&["transformers::grouped_mm_fallback"], rule!(grouped)),
    (&["convolution_backward"], rule!(convolution_again)),
    (&["mm"], rule!(|c| mm(c, 0, 1, "aten.mm.default", None))),
    (&["bmm"], rule!(|c| mm(c, 0, 1, "aten.bmm.default", None))),
    (&["addmm"], rule!(|c| add_product(c, "aten.mm.default"))),
    (&["baddbmm"], rule!(|c| add_product(c, "aten.bmm.default"))),
    (&["matmul"], rule!(matmul)),
    (&["linear"], rule!(linear)),
    (&["mv"], rule!(|c| mv(c, 0, 1, None))),
    (&["addmv"], rule!(addmv)),
    (
        &["dot"],
        rule!(|c| {
            c.give(0, || c.grad() * c.arg(1).conj());
            c.give(1, || c.grad() * c.arg(0).conj());
        }),
    ),
    (
        &["vdot"],
        rule!(|c| {
            c.give(0, || c.grad().conj() * c.arg(1));
            c.give(1, || c.grad() * c.arg(0));
        }),
    ),
    (&["convolution"], rule!(convolution_grad)),
    (&["_convolution"], form!(plain_convolution)),
    (
        &["conv1d", "conv2d", "conv3d", "conv1d.padding", "conv2d.padding", "conv3d.padding", "_convolution_mode"],
        form!(conv_n),
    ),
    (&["conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"], form!(conv_transpose)),
];
