//! Gradients of indexed reads and writes: `index`, `gather`, `scatter`, masks and their like.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op, rule, wrap};
use restride_ir::{Arg, DType, Dim, Expr};

fn index<'c>(c: &'c Cx<'c>) {
    c.set(0, op!(c, "aten.index_put.default", c.arg(0).zeros_like(), c.raw(1), c.grad(), true));
}

/// Gradient of written elements: of several elements written to one position, the last remains. `put` writes into a tensor
/// of the target's sizes; `g` is the gradient gathered from it.
fn landed<'c>(
    c: &'c Cx<'c>,
    g: T<'c>,
    put: impl FnOnce(T<'c>, T<'c>) -> T<'c>,
    read: impl FnOnce(T<'c>) -> T<'c>,
) -> T<'c> {
    let own = op!(c, "aten.arange.default", &g.numel()).reshape(g.sizes());
    let none = op!(c, "aten.full.default", c.arg(0).sizes(), -1, DType::I64);
    g.only(read(put(none, own)).than("eq", own))
}

fn index_put<'c>(c: &'c Cx<'c>) {
    let adds = c.flag(3);
    c.give(0, || {
        if adds {
            c.grad()
        } else {
            let zero = op!(c, "aten.full.default", Vec::<Expr>::new(), 0, c.grad().dtype());
            op!(c, "aten.index_put.default", c.grad(), c.raw(1), zero)
        }
    });
    if c.needs(2)
        && let Some(g) = masked(c)
    {
        return c.set(2, g);
    }
    c.give(2, || {
        let read = |t: T<'c>| op!(c, "aten.index.Tensor", t, c.raw(1));
        // A mask selects each element once.
        if adds || c.list(1).iter().any(|t| t.dtype() == DType::Bool) {
            return read(c.grad());
        }
        landed(c, read(c.grad()), |into, own| op!(c, "aten.index_put.default", into, c.raw(1), own), read)
    });
}

/// Gradient of values put by one mask; only the size of the values states the number of selected positions.
fn masked<'c>(c: &'c Cx<'c>) -> Option<T<'c>> {
    let Arg::Values(list) = c.raw(1) else { return None };
    let [mask] = c.list(1)[..] else { return None };
    if mask.dtype() != DType::Bool {
        return None;
    }
    let (g, values) = (c.grad(), c.arg(2));
    let before = list.iter().position(Option::is_some)?;
    let (wide, after) = (mask.rank(), g.rank().checked_sub(before + mask.rank())?);
    let own = values.rank().checked_sub(after + 1).map(|d| values.size(d as i64));
    match own {
        Some(n) if !n.is(1) => {
            let places = op!(c, "aten.nonzero_static.default", mask, n);
            let columns = (0..wide as i64).map(|k| Some(places.select(1, k).val()));
            let index = std::iter::repeat_n(None, before).chain(columns).collect();
            Some(op!(c, "aten.index.Tensor", g, Arg::Values(index)))
        }
        // One value for all positions.
        _ => {
            let shape: Vec<Expr> = std::iter::repeat_n(Expr::Int(1), before)
                .chain(mask.sizes())
                .chain(std::iter::repeat_n(Expr::Int(1), after))
                .collect();
            let dims = (before as i64..(before + wide) as i64).collect();
            Some(g.only(mask.reshape(shape)).sum(dims, false).unsqueeze(before as i64))
        }
    }
}

/// `repeat_interleave(self, repeats, dim)` by a tensor: adds each copy's gradient to its source element.
fn interleave_by<'c>(c: &'c Cx<'c>) {
    let (x, mut repeats, g) = (c.arg(0), c.arg(1), c.grad());
    let flat = c.is_none(2);
    let dim = if flat { 0 } else { wrap(c.int(2), x.rank()) };
    let zeros = if flat { x.zeros_like().reshape(vec![x.numel()]) } else { x.zeros_like() };
    let n = zeros.size(dim as i64);
    if repeats.rank() == 0 || repeats.size(0).is(1) {
        repeats = repeats.reshape(vec![Expr::Int(1)]).expand(vec![n]);
    }
    let from = op!(c, "restride.repeat_index.default", repeats, g.size(dim as i64));
    c.set(0, op!(c, "aten.index_add.default", zeros, dim as i64, from, g).reshape(x.sizes()));
}

fn index_add<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad());
    c.give(3, || picked(c, 3).times(c.conj_num(4)));
}

/// Gathers the gradient by the index at argument 2, for a source at argument `i` that may be 0-d.
fn picked<'c>(c: &'c Cx<'c>, i: usize) -> T<'c> {
    let g = op!(c, "aten.index_select.default", c.grad(), c.raw(1), c.arg(2));
    if c.arg(i).rank() < g.rank() { g.reshape(c.arg(i).sizes()) } else { g }
}

fn index_copy<'c>(c: &'c Cx<'c>) {
    c.give(0, || op!(c, "aten.index_fill.int_Scalar", c.grad(), c.raw(1), c.arg(2), 0));
    c.give(3, || {
        let read = |t: T<'c>| op!(c, "aten.index_select.default", t, c.raw(1), c.arg(2));
        let put = |into: T<'c>, own: T<'c>| op!(c, "aten.index_copy.default", into, c.raw(1), c.arg(2), own);
        landed(c, read(c.grad()), put, read).reshape(c.arg(3).sizes())
    });
}

fn index_fill<'c>(c: &'c Cx<'c>, tensor: bool) {
    c.give(0, || op!(c, "aten.index_fill.int_Scalar", c.grad(), c.raw(1), c.arg(2), 0));
    if tensor {
        // The fill value's gradient counts each filled element once, however often the index names it.
        c.give(3, || {
            let filled = op!(c, "aten.index_fill.int_Scalar", c.grad(), c.raw(1), c.arg(2), 0);
            (c.grad() - filled).sum_all()
        });
    }
}

fn index_select<'c>(c: &'c Cx<'c>) {
    let zeros = c.arg(0).zeros_like();
    let g = if c.arg(0).rank() == 0 { c.grad().reshape(Vec::new()) } else { c.grad() };
    c.set(0, op!(c, "aten.index_add.default", zeros, c.raw(1), c.arg(2), g));
}

fn gather<'c>(c: &'c Cx<'c>) {
    c.set(0, op!(c, "aten.scatter_add.default", c.arg(0).zeros_like(), c.raw(1), c.arg(2), c.grad()));
}

fn gathered<'c>(c: &'c Cx<'c>, g: T<'c>) -> T<'c> {
    op!(c, "aten.gather.default", g, c.raw(1), c.arg(2))
}

/// The source's gradient: the gathered one, zero where the source exceeds the index.
fn source<'c>(c: &'c Cx<'c>, g: T<'c>) -> T<'c> {
    let (src, have) = (c.arg(3), g.sizes());
    let want = src.sizes();
    if have.iter().zip(&want).all(|(a, b)| a.equals(b) == Some(true)) {
        return g;
    }
    let pad: Vec<Expr> = have.iter().zip(&want).rev().flat_map(|(a, b)| [Expr::Int(0), b.minus(a)]).collect();
    op!(c, "aten.constant_pad_nd.default", g, pad)
}

fn zeroed<'c>(c: &'c Cx<'c>) -> T<'c> {
    op!(c, "aten.scatter.value", c.grad(), c.raw(1), c.arg(2), 0)
}

fn scatter<'c>(c: &'c Cx<'c>) {
    c.give(0, || zeroed(c));
    c.give(3, || {
        let put = |into: T<'c>, own: T<'c>| op!(c, "aten.scatter.src", into, c.raw(1), c.arg(2), own);
        source(c, landed(c, gathered(c, c.grad()), put, |t| gathered(c, t)))
    });
}

fn scatter_add<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad());
    c.give(3, || source(c, gathered(c, c.grad())));
}

/// `scatter_reduce(self, dim, index, src, reduce, include_self)`
fn scatter_reduce<'c>(c: &'c Cx<'c>) {
    let (x, src, r) = (c.arg(0), c.arg(3), c.result());
    let own = c.is_none(5) || c.flag(5);
    let how = c.str(4).unwrap_or("");
    let whole = src.sizes().iter().zip(&c.arg(2).sizes()).all(|(a, b)| a.equals(b) == Some(true));
    let add = |into: T<'c>, t: T<'c>| op!(c, "aten.scatter_add.default", into, c.raw(1), c.arg(2), t);
    let outside = |g: T<'c>| if own { g } else { op!(c, "aten.scatter.value", g, c.raw(1), c.arg(2), 0) };
    match how {
        "sum" => {
            c.give(0, || outside(c.grad()));
            c.give(3, || source(c, gathered(c, c.grad())));
        }
        "mean" => {
            let start = op!(c, "aten.full.default", x.sizes(), i64::from(own), x.dtype());
            let n = add(start, op!(c, "aten.full.default", c.arg(2).sizes(), 1, x.dtype()));
            let g = c.grad() / op!(c, "aten.clamp_min.default", n, 1);
            c.give(0, || outside(g));
            c.give(3, || source(c, gathered(c, g)));
        }
        "amax" | "amin" if whole => {
            let hit = src.than("eq", gathered(c, r));
            // PyTorch counts an element of `self` among the ties also where it takes no part.
            let n = add(x.than("eq", r).to(x.dtype()), hit.to(x.dtype()));
            let g = c.grad() / op!(c, "aten.clamp_min.default", n, 1);
            c.give(0, || outside(g).only(x.than("eq", r)));
            c.give(3, || gathered(c, g).only(hit));
        }
        "prod" if whole => product(c, own),
        _ => c.fail(format!("scatter_reduce with reduce='{how}' and a source that is larger than the index")),
    }
}

/// Gradient of a product: the result divided by the factor; for the only zero factor, the product of the others.
fn product<'c>(c: &'c Cx<'c>, own: bool) {
    let (x, src) = (c.arg(0), c.arg(3));
    let reduced = |x: T<'c>, src: T<'c>| op!(c, "aten.scatter_reduce.two", x, c.raw(1), c.arg(2), src, "prod", own);
    let ones = |t: T<'c>, mask: T<'c>| op!(c, "aten.masked_fill.Scalar", t, mask, 1);
    let (zero_x, zero_src) = (x.is("eq", 0), src.is("eq", 0));
    c.give(0, || {
        let x = ones(x, zero_x);
        let g = c.grad() * reduced(x, src) / x;
        if own { g } else { op!(c, "aten.scatter.value", g, c.raw(1), c.arg(2), 0) }
    });
    c.give(3, || {
        let start = if own { zero_x.to(x.dtype()) } else { x.zeros_like() };
        let n = op!(c, "aten.scatter_add.default", start, c.raw(1), c.arg(2), zero_src.to(x.dtype()));
        let alone = op!(c, "aten.logical_and.default", zero_src, gathered(c, n).is("eq", 1));
        let without = reduced(x, ones(src, alone));
        let divided = gathered(c, c.grad() * c.result()) / ones(src, zero_src);
        op!(c, "aten.where.self", alone, gathered(c, c.grad() * without), divided)
    });
}

/// `scatter.reduce(self, dim, index, src, reduce)`
fn scatter_with<'c>(c: &'c Cx<'c>, src: impl TermOperand) -> Vec<T<'c>> {
    let mut args = vec![c.raw(0), c.raw(1), c.raw(2), src.operand()];
    vec![match c.str(4) {
        Some("multiply") => {
            args.extend(["prod".operand(), true.operand()]);
            c.call("aten.scatter_reduce.two", &args)
        }
        _ => c.call("aten.scatter_add.default", &args),
    }]
}

fn scatter_tensor_with<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    scatter_with(c, c.arg(3))
}

/// `scatter.value_reduce(self, dim, index, value, reduce)`
fn scatter_value_with<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    scatter_with(c, op!(c, "aten.full.default", c.arg(2).sizes(), c.num(3), c.arg(0).dtype()))
}

fn take<'c>(c: &'c Cx<'c>) {
    c.set(0, op!(c, "aten.put.default", c.arg(0).zeros_like(), c.arg(1), c.grad(), true));
}

fn put<'c>(c: &'c Cx<'c>) {
    let adds = c.flag(3);
    c.give(0, || if adds { c.grad() } else { op!(c, "aten.put.default", c.grad(), c.arg(1), c.arg(2).zeros_like()) });
    c.give(2, || {
        let read = |t: T<'c>| op!(c, "aten.take.default", t, c.arg(1));
        let put = |into: T<'c>, own: T<'c>| op!(c, "aten.put.default", into, c.arg(1), own);
        let g = read(c.grad());
        (if adds { g } else { landed(c, g, put, read) }).reshape(c.arg(2).sizes())
    });
}

fn masked_select<'c>(c: &'c Cx<'c>) {
    let (x, mask) = (c.arg(0), c.arg(1));
    // Mask and operand broadcast to each other.
    let both = op!(c, "aten.logical_or.default", mask, x.is("ne", 0).unary("aten.zeros_like.default"));
    let zeros = op!(c, "aten.full.default", both.sizes(), 0, x.dtype());
    c.set(0, op!(c, "aten.masked_scatter.default", zeros, mask, c.grad()));
}

fn masked_scatter<'c>(c: &'c Cx<'c>) {
    let mask = c.arg(1);
    c.give(0, || c.grad().except(mask));
    c.give(2, || {
        let (g, src) = (c.grad(), c.arg(2));
        let n = vec![g.numel()];
        let mask = mask.expand(g.sizes()).reshape(n.clone());
        let at = op!(c, "aten.cumsum.default", mask.to(DType::I64), 0);
        let at = op!(c, "aten.clamp_min.default", op!(c, "aten.sub.Scalar", at, 1), 0);
        let zeros = op!(c, "aten.full.default", vec![src.numel()], 0, g.dtype());
        op!(c, "aten.index_add.default", zeros, 0, at, g.reshape(n).only(mask)).reshape(src.sizes())
    });
}

pub(crate) static GRADS: Rules = &[
    (&["index.Tensor", "_unsafe_index.Tensor"], rule!(index)),
    (&["index_put", "_unsafe_index_put", "_index_put_impl"], rule!(index_put)),
    (&["repeat_interleave.self_Tensor"], rule!(interleave_by)),
    (&["index_add"], rule!(index_add)),
    (&["index_copy"], rule!(index_copy)),
    (&["index_fill.int_Scalar"], rule!(|c| index_fill(c, false))),
    (&["index_fill.int_Tensor"], rule!(|c| index_fill(c, true))),
    (&["index_select"], rule!(index_select)),
    (&["gather"], rule!(gather)),
    (&["scatter.src"], rule!(scatter)),
    (&["scatter.value"], rule!(|c| c.set(0, zeroed(c)))),
    (&["scatter_add"], rule!(scatter_add)),
    (&["scatter_reduce.two"], rule!(scatter_reduce)),
    (&["scatter.reduce"], form!(scatter_tensor_with)),
    (&["scatter.value_reduce"], form!(scatter_value_with)),
    (&["take"], rule!(take)),
    (&["put"], rule!(put)),
    (&["masked_select"], rule!(masked_select)),
    (&["masked_scatter"], rule!(masked_scatter)),
];
