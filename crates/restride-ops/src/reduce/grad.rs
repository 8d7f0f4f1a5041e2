//! Gradients of sums, means, deviations, norms, and extremes.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, as_float, form, op, product, rule, wrap};
use restride_ir::{Dim, Expr, Grad};

/// The dimensions at argument `i`; all if it is `None` or empty.
fn dims(c: &Cx<'_>, i: usize, x: T<'_>) -> Vec<usize> {
    let rank = x.rank();
    let given = c.ints(i);
    if given.is_empty() { (0..rank).collect() } else { given.into_iter().map(|d| wrap(d, rank)).collect() }
}

/// Every dimension of a tensor.
fn all(x: T<'_>) -> Vec<usize> {
    (0..x.rank()).collect()
}

/// A reduced tensor with its reduced dimensions restored as size 1.
fn kept<'c>(t: T<'c>, x: T<'c>, dims: &[usize]) -> T<'c> {
    let sizes = x.sizes().into_iter().enumerate().map(|(d, n)| if dims.contains(&d) { Expr::Int(1) } else { n });
    t.reshape(sizes.collect())
}

/// Number of elements per result.
fn count(x: T<'_>, dims: &[usize]) -> Expr {
    let sizes = x.sizes();
    product(dims.iter().filter_map(|d| sizes.get(*d)))
}

fn as_i64(dims: &[usize]) -> Vec<i64> {
    dims.iter().map(|d| *d as i64).collect()
}

fn sum<'c>(c: &'c Cx<'c>, dims: &[usize]) {
    let x = c.arg(0);
    c.set(0, kept(c.grad(), x, dims).expand(x.sizes()));
}

fn nansum<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let g = kept(c.grad(), x, &dims(c, 1, x)).expand(x.sizes());
    // Multiplies by the mask, so that a non-finite gradient stays non-finite, as in PyTorch.
    c.set(0, g.to(x.dtype()) * op!(c, "aten.logical_not.default", x.unary("aten.isnan.default")));
}

fn mean<'c>(c: &'c Cx<'c>, dims: &[usize]) {
    let x = c.arg(0);
    c.set(0, kept(c.grad(), x, dims).expand(x.sizes()).over(&count(x, dims)));
}

/// Product of the other elements along a dimension: of those before times those after.
fn product_of_others<'c>(x: T<'c>, dim: usize) -> T<'c> {
    let c = x.cx();
    let (d, n) = (dim as i64, x.size(dim as i64));
    let mut one = x.sizes();
    one[dim] = Expr::Int(1);
    let ones = op!(c, "aten.full.default", one, 1, x.dtype());
    let flip = |t: T<'c>| op!(c, "aten.flip.default", t, [d]);
    let before = |t: T<'c>| {
        let shifted = c.cat(&[ones, t.slice(d, Expr::Int(0), n.minus(&Expr::Int(1)))], d);
        op!(c, "aten.cumprod.default", shifted, d)
    };
    before(x) * flip(before(flip(x)))
}

fn prod_dim<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let g = c.grad();
    if x.rank() == 0 || x.numel().is(0) {
        return c.set(0, g.expand(x.sizes()));
    }
    let dim = wrap(c.int(1), x.rank());
    let wide = x.to(c.result().dtype());
    c.set(0, kept(g, x, &[dim]) * product_of_others(wide, dim).conj());
}

fn prod_all<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    if x.rank() == 0 || x.numel().is(0) {
        return c.set(0, c.grad().expand(x.sizes()));
    }
    let flat = x.to(c.result().dtype()).reshape(vec![x.numel()]);
    c.set(0, c.grad() * product_of_others(flat, 0).conj().reshape(x.sizes()));
}

/// Maxima and minima: equal extremes share the gradient.
fn extreme<'c>(c: &'c Cx<'c>, k: usize, dims: &[usize]) -> T<'c> {
    let x = c.arg(0);
    let mask = x.than("eq", kept(c.result_at(k), x, dims));
    let n = mask.to(x.dtype()).sum(as_i64(dims), true);
    // Of NaN no element is the extreme, so that all are 0 over 0, as in PyTorch.
    kept(c.grad_at(k), x, dims).only(mask) / n
}

/// Values selected along a dimension: the gradient goes to the selected elements.
fn chosen<'c>(c: &'c Cx<'c>, dim: i64, keep: bool, values: usize, indices: usize) {
    let x = c.arg(0);
    let Some(g) = c.opt_grad(values) else { return };
    let at = c.result_at(indices);
    let zeros = x.zeros_like();
    if x.rank() == 0 {
        return c.set(0, g);
    }
    let (g, at) = if keep { (g, at) } else { (g.unsqueeze(dim), at.unsqueeze(dim)) };
    c.set(0, op!(c, "aten.scatter_add.default", zeros, dim, at, g));
}

/// The one element that a reduction of all picked, or several equal ones, which share its gradient; a NaN is one of all NaNs.
fn picked<'c>(c: &'c Cx<'c>, skips: bool) {
    let x = c.arg(0);
    let mut mask = x.than("eq", c.result());
    if skips || !x.dtype().is_complex() {
        let nan = x.unary("aten.isnan.default");
        let both = op!(c, "aten.logical_and.default", nan, c.result().unary("aten.isnan.default"));
        mask = op!(c, "aten.logical_or.default", mask, both);
    }
    let n = mask.to(x.dtype()).sum_all();
    c.set(0, (c.grad() / n).only(mask));
}

fn aminmax<'c>(c: &'c Cx<'c>, dims: &[usize]) {
    let part = |k: usize| c.opt_grad(k).map(|_| extreme(c, k, dims));
    match (part(0), part(1)) {
        (Some(a), Some(b)) => c.set(0, a + b),
        (Some(a), None) | (None, Some(a)) => c.set(0, a),
        (None, None) => {}
    }
}

fn logsumexp<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let dims = dims(c, 1, x);
    let r = kept(c.result(), x, &dims);
    c.set(0, kept(c.grad(), x, &dims) * (x - r).exp().conj());
}

/// Dimensions and correction of a call of `var` and its like.
fn deviation<'c>(c: &'c Cx<'c>, overload: &str) -> (Vec<usize>, Expr) {
    let x = c.arg(0);
    let unbiased = |i: usize| Expr::Int(if c.is_none(i) { 1 } else { i64::from(c.flag(i)) });
    let (dims, off) = match overload {
        "default" => (all(x), unbiased(1)),
        "dim" => (dims(c, 1, x), unbiased(2)),
        _ => (dims(c, 1, x), if c.is_none(2) { Expr::Int(1) } else { c.num(2) }),
    };
    let n = count(x, &dims);
    // A correction may be a float.
    let left = if off.is_float() { as_float(&n).minus(&off) } else { n.minus(&off) };
    (dims, left)
}

fn var_part<'c>(x: T<'c>, g: T<'c>, dims: &[usize], n: &Expr) -> T<'c> {
    let center = x - x.mean_kept(dims);
    (kept(g, x, dims) * center * 2.0).over(n)
}

impl<'c> T<'c> {
    fn mean_kept(self, dims: &[usize]) -> T<'c> {
        if self.rank() == 0 {
            return self;
        }
        op!(self.cx(), "aten.mean.dim", self, as_i64(dims), true)
    }
}

/// Gradient of `var` and `std`, optionally with the mean as a second result.
fn spread<'c>(c: &'c Cx<'c>, overload: &str, root: bool, mean: bool) {
    let x = c.arg(0);
    let (dims, n) = deviation(c, overload);
    let mut total: Option<T<'c>> = None;
    if let Some(g) = c.opt_grad(0) {
        let g = if root { (g / (c.result() * 2.0)).except(c.result().is("eq", 0)) } else { g };
        total = Some(var_part(x, g, &dims, &n));
    }
    if let Some(g) = c.opt_grad(1).filter(|_| mean) {
        let part = kept(g, x, &dims).expand(x.sizes()).over(&count(x, &dims));
        total = Some(total.map_or(part, |t| t + part));
    }
    if let Some(t) = total {
        c.set(0, t);
    }
}

/// The gradient of a p-norm over dimensions.
fn norm<'c>(c: &'c Cx<'c>, p: f64, dims: &[usize]) {
    let x = c.arg(0);
    let (g, r) = (kept(c.grad(), x, dims), kept(c.result(), x, dims));
    let wide = x.to(if x.dtype().is_complex() { x.dtype() } else { c.result().dtype() });
    let size = wide.unary("aten.abs.default");
    let zero = r.is("eq", 0);
    let d = if p == 0.0 {
        return c.zero(0);
    } else if p == 1.0 {
        wide.sign() * g
    } else if p == 2.0 {
        wide * (g / r).except(zero)
    } else if p.is_infinite() {
        let mask = op!(c, "aten.logical_or.default", size.than("eq", r), size.unary("aten.isnan.default"));
        let n = mask.to(r.dtype()).sum(as_i64(dims), true);
        wide.sign() * (g / n).only(mask)
    } else if p < 1.0 {
        let along = wide.sign() * size.pow(p - 1.0).except(wide.is("eq", 0));
        along * g * r.pow(1.0 - p)
    } else if p < 2.0 {
        let along = wide.sign() * size.pow(p - 1.0);
        along * (g / r.pow(p - 1.0)).except(zero)
    } else {
        wide * size.pow(p - 2.0) * (g / r.pow(p - 1.0)).except(zero)
    };
    c.set(0, d);
}

/// The order of a norm at argument `i`, by default 2.
fn order(c: &Cx<'_>, i: usize) -> f64 {
    if c.is_none(i) { 2.0 } else { c.float(i) }
}

/// Gradient of the values of a sort, by its indices.
pub(super) fn sorted<'c>(c: &'c Cx<'c>, dim: i64) {
    chosen(c, dim, true, 0, 1);
}

/// Composes `msort` of `sort`, whose indices the gradient needs.
fn msort<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    vec![op!(c, "aten.sort.stable", c.arg(0), false, 0, false)]
}

/// `quantile(self, q, dim, keepdim, interpolation)`: elements of sorted rows, interpolated between two if necessary.
fn quantile<'c>(c: &'c Cx<'c>, skips: bool) -> Vec<T<'c>> {
    let (given, keep) = (c.arg(0), c.flag(3));
    let q = match c.opt(1) {
        Some(q) => q,
        None => op!(c, "aten.full.default", Vec::<Expr>::new(), c.num(1), given.dtype()),
    };
    let whole = c.is_none(2);
    let flat = whole || given.rank() == 0;
    let x = if flat { given.reshape(vec![given.numel()]) } else { given };
    let dim = if flat { 0 } else { wrap(c.int(2), x.rank()) };
    let mut order: Vec<i64> = (0..x.rank() as i64).filter(|d| *d != dim as i64).collect();
    order.push(dim as i64);
    let x = x.permute(order);
    let sorted = op!(c, "aten.sort.default", x, -1, false);
    let n = x.size(-1);
    let nan = x.unary("aten.isnan.default");
    let marks = q.reshape(vec![q.numel()]);
    let place = if skips {
        let some = nan.unary("aten.logical_not.default").to(x.dtype()).sum(vec![-1], true);
        marks * op!(c, "aten.clamp_min.default", some - 1.0, 0)
    } else {
        // A row with NaN returns NaN, which sorts last.
        let last = n.minus(&Expr::Int(1));
        let any = op!(c, "aten.any.dim", nan, -1, true);
        let mut sizes = x.sizes();
        let rows = sizes.len() - 1;
        sizes[rows] = marks.size(0);
        let places = marks.times(as_float(&last)).expand(sizes);
        op!(c, "aten.masked_fill.Scalar", places, any, as_float(&last))
    };
    let round = |how: &str| place.unary(&format!("aten.{how}.default"));
    let at = |p: T<'c>| op!(c, "aten.gather.default", sorted, -1, p.to(restride_ir::DType::I64));
    let values = match c.str(4).unwrap_or("linear") {
        "lower" => at(round("floor")),
        "higher" => at(round("ceil")),
        "nearest" => at(round("round")),
        how => {
            let (below, above) = (at(round("floor")), at(round("ceil")));
            let part = place - round("floor");
            let part = if how == "midpoint" { op!(c, "aten.full_like.default", part, 0.5) } else { part };
            op!(c, "aten.lerp.Tensor", below, above, part)
        }
    };
    // The dimension of quantiles comes first.
    let rank = values.rank() as i64;
    let mut out = values.permute(std::iter::once(rank - 1).chain(0..rank - 1).collect());
    if keep {
        out = if flat {
            let mut sizes = vec![Expr::Int(1); given.rank() + 1];
            sizes[0] = q.numel();
            out.reshape(sizes)
        } else {
            out.unsqueeze(dim as i64 + 1)
        };
    }
    vec![if q.rank() == 0 { out.select(0, 0) } else { out }]
}

pub(crate) static GRADS: Rules = &[
    (&["sum"], rule!(|c| sum(c, &all(c.arg(0))))),
    (&["sum.dim_IntList"], rule!(|c| sum(c, &dims(c, 1, c.arg(0))))),
    (&["nansum"], rule!(nansum)),
    (&["mean"], rule!(|c| mean(c, &all(c.arg(0))))),
    (&["mean.dim"], rule!(|c| mean(c, &dims(c, 1, c.arg(0))))),
    (&["prod"], rule!(prod_all)),
    (&["prod.dim_int"], rule!(prod_dim)),
    (&["amax", "amin"], rule!(|c| c.set(0, extreme(c, 0, &dims(c, 1, c.arg(0)))))),
    (&["max", "min", "median"], rule!(|c| picked(c, false))),
    (&["_aminmax"], rule!(|c| aminmax(c, &all(c.arg(0))))),
    (&["_aminmax.dim"], rule!(|c| aminmax(c, &[wrap(c.int(1), c.arg(0).rank())]))),
    (
        &["aminmax"],
        rule!(|c| {
            let x = c.arg(0);
            aminmax(c, &if c.is_none(1) { all(x) } else { vec![wrap(c.int(1), x.rank())] })
        }),
    ),
    (&["max.dim", "min.dim", "median.dim", "nanmedian.dim"], rule!(|c| chosen(c, c.int(1), c.flag(2), 0, 1))),
    (&["mode"], rule!(|c| chosen(c, c.int_or(1, -1), c.flag(2), 0, 1))),
    (&["kthvalue"], rule!(|c| chosen(c, c.int_or(2, -1), c.flag(3), 0, 1))),
    (&["topk"], rule!(|c| sorted(c, c.int_or(2, -1)))),
    (&["sort"], rule!(|c| sorted(c, c.int_or(1, -1)))),
    (&["sort.stable"], rule!(|c| sorted(c, c.int_or(2, -1)))),
    (&["msort"], form!(msort)),
    (&["nanmedian"], rule!(|c| picked(c, true))),
    (&["logsumexp"], rule!(logsumexp)),
    (&["var"], rule!(|c| spread(c, "default", false, false))),
    (&["var.dim"], rule!(|c| spread(c, "dim", false, false))),
    (&["var.correction"], rule!(|c| spread(c, "correction", false, false))),
    (&["std"], rule!(|c| spread(c, "default", true, false))),
    (&["std.dim"], rule!(|c| spread(c, "dim", true, false))),
    (&["std.correction"], rule!(|c| spread(c, "correction", true, false))),
    (&["var_mean"], rule!(|c| spread(c, "default", false, true))),
    (&["var_mean.dim"], rule!(|c| spread(c, "dim", false, true))),
    (&["var_mean.correction"], rule!(|c| spread(c, "correction", false, true))),
    (&["std_mean"], rule!(|c| spread(c, "default", true, true))),
    (&["std_mean.dim"], rule!(|c| spread(c, "dim", true, true))),
    (&["std_mean.correction"], rule!(|c| spread(c, "correction", true, true))),
    (&["linalg_vector_norm"], rule!(|c| norm(c, order(c, 1), &dims(c, 2, c.arg(0))))),
    (&["norm.Scalar", "norm.ScalarOpt_dtype"], rule!(|c| norm(c, order(c, 1), &all(c.arg(0))))),
    (&["norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype"], rule!(|c| norm(c, order(c, 1), &dims(c, 2, c.arg(0))))),
    (&["histc", "count_nonzero"], Grad::Zero),
    (
        &["fill.Tensor"],
        rule!(|c| {
            c.zero(0);
            c.give(1, || c.grad().sum_all());
        }),
    ),
    (
        &["copy"],
        rule!(|c| {
            c.zero(0);
            c.give(1, || c.grad());
        }),
    ),
    (&["quantile", "quantile.scalar"], form!(|c| quantile(c, false))),
    (&["nanquantile", "nanquantile.scalar"], form!(|c| quantile(c, true))),
];
