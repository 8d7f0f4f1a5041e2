//! Second gradients of normalisations: compositions of their backward operators.
//!
//! A backward operator takes the mean and deviation of its input. The rule recomputes both from the input, with the epsilon
//! that the given deviation implies.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, form, op, product};
use restride_ir::{Dim, Expr};

/// Means over dimensions, kept with size 1.
fn mean<'c>(t: T<'c>, dims: &[i64]) -> T<'c> {
    let sizes: Vec<Expr> = dims.iter().map(|d| t.size(*d)).collect();
    t.sum(dims.to_vec(), true).over(&product(&sizes))
}

/// The normalised input and its inverse deviation.
struct Normal<'c> {
    hat: T<'c>,
    inverse: T<'c>,
    /// Whether the mean was subtracted.
    centred: bool,
}

fn normal<'c>(x: T<'c>, dims: &[i64], given: T<'c>) -> Normal<'c> {
    let off = x - mean(x, dims);
    let var = mean(off * off, dims);
    let constant = |t: T<'c>| t.unary("aten.detach.default");
    let given = constant(given.reshape(var.sizes()));
    let eps = given.pow(-2.0) - constant(var);
    let inverse = (var + eps).rsqrt();
    Normal { hat: off * inverse, inverse, centred: true }
}

impl<'c> Normal<'c> {
    /// Gradient of the input, from the gradient of the normalised input.
    fn backward(&self, g: T<'c>, dims: &[i64]) -> T<'c> {
        let along = self.hat * mean(g * self.hat, dims);
        let flat = if self.centred { g - mean(g, dims) } else { g };
        (flat - along) * self.inverse
    }
}

/// The empty tensor in place of a result that the mask omits.
fn nothing<'c>(c: &'c Cx<'c>, like: T<'c>) -> T<'c> {
    op!(c, "aten.full.default", [0], 0, like.dtype())
}

fn masked<'c>(c: &'c Cx<'c>, at: usize, like: T<'c>, all: Vec<Box<dyn Fn() -> T<'c> + 'c>>) -> Vec<T<'c>> {
    let mask = c.ints(at);
    let wanted = |k: usize| mask.get(k).is_none_or(|m| *m != 0);
    all.into_iter().enumerate().map(|(k, f)| if wanted(k) { f() } else { nothing(c, like) }).collect()
}

/// `native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)`
fn layer_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (g, x, weight) = (c.arg(0), c.arg(1), c.opt(5));
    let inner = c.nums(2).len() as i64;
    let dims: Vec<i64> = (-inner..0).collect();
    let outer: Vec<i64> = (0..x.rank() as i64 - inner).collect();
    let own = normal(x, &dims, c.arg(4));
    let hat = own.hat;
    let d = x.dtype();
    let outer_too = outer.clone();
    masked(
        c,
        7,
        x,
        vec![
            Box::new(move || own.backward(weight.map_or(g, |w| g * w), &dims).to(d)),
            Box::new(move || (g * hat).sum(outer.clone(), false).to(d)),
            Box::new(move || g.sum(outer_too.clone(), false).to(d)),
        ],
    )
}

/// `_fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask)`
fn rms_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (g, x, weight) = (c.arg(0), c.arg(1), c.opt(4));
    let inner = c.nums(2).len() as i64;
    let dims: Vec<i64> = (-inner..0).collect();
    let outer: Vec<i64> = (0..x.rank() as i64 - inner).collect();
    // The forward operator is composed of others, so its deviation has a gradient.
    let sizes = x.sizes().into_iter().enumerate().map(|(d, n)| if d < outer.len() { n } else { Expr::Int(1) });
    let inverse = c.arg(3).reshape(sizes.collect());
    let own = Normal { hat: x * inverse, inverse, centred: false };
    let hat = own.hat;
    let d = x.dtype();
    masked(
        c,
        5,
        x,
        vec![
            Box::new(move || own.backward(weight.map_or(g, |w| g * w), &dims).to(d)),
            Box::new(move || (g * hat).sum(outer.clone(), false).to(d)),
        ],
    )
}

/// `native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)`
fn group_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (x, weight) = (c.arg(1), c.opt(4));
    let (n, channels, inner, groups) = (c.num(5), c.num(6), c.num(7), c.num(8));
    let by_channel = vec![n.clone(), channels.clone(), inner.clone()];
    let by_group = vec![n, groups.clone(), channels.floor_div(&groups).times(&inner)];
    let g = c.arg(0).reshape(by_channel.clone());
    let own = normal(x.reshape(by_group.clone()), &[-1], c.arg(3));
    let hat = own.hat.reshape(by_channel.clone());
    let d = x.dtype();
    masked(
        c,
        9,
        x,
        vec![
            Box::new(move || {
                let g = weight.map_or(g, |w| g * w.reshape(vec![Expr::Int(1), by_channel[1].clone(), Expr::Int(1)]));
                own.backward(g.reshape(by_group.clone()), &[-1]).reshape(x.sizes()).to(d)
            }),
            Box::new(move || (g * hat).sum(vec![0, 2], false).to(d)),
            Box::new(move || g.sum(vec![0, 2], false).to(d)),
        ],
    )
}

/// `native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
/// output_mask)`, and `batch_norm_backward`, which adds a reserve as its last argument.
fn batch_norm<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let (g, x, weight, eps) = (c.arg(0), c.arg(1), c.opt(2), c.float(8));
    let dims: Vec<i64> = (0..x.rank() as i64).filter(|d| *d != 1).collect();
    let mut one = vec![Expr::Int(1); x.rank()];
    one[1] = x.size(1);
    let per_channel = |t: T<'c>| t.reshape(one.clone());
    let d = x.dtype();
    let weight = weight.map(per_channel);
    let wide = move || weight.map_or(g, |w| g * w);
    let (hat, of_input): (T<'c>, Box<dyn Fn() -> T<'c> + 'c>) = if c.flag(7) {
        let off = x - mean(x, &dims);
        let inverse = (mean(off * off, &dims) + eps).rsqrt();
        let own = Normal { hat: off * inverse, inverse, centred: true };
        let dims = dims.clone();
        (own.hat, Box::new(move || own.backward(wide(), &dims).to(d)))
    } else {
        let inverse = (per_channel(c.arg(4)) + eps).rsqrt();
        ((x - per_channel(c.arg(3))) * inverse, Box::new(move || (wide() * inverse).to(d)))
    };
    let dims_too = dims.clone();
    masked(
        c,
        9,
        x,
        vec![
            of_input,
            Box::new(move || (g * hat).sum(dims.clone(), false).to(d)),
            Box::new(move || g.sum(dims_too.clone(), false).to(d)),
        ],
    )
}

pub(crate) static GRADS: Rules = &[
    (&["native_layer_norm_backward"], form!(layer_norm)),
    (&["_fused_rms_norm_backward"], form!(rms_norm)),
    (&["native_group_norm_backward"], form!(group_norm)),
    (&["native_batch_norm_backward", "batch_norm_backward"], form!(batch_norm)),
];
