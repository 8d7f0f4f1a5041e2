//! Gradients of what moves elements: views that have an operator for their adjoint, casts, what is put together, and
//! reading and writing by index.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, Operand, T, form, op, rule, wrap};
use restride_ir::{Arg, DType, Dim, Expr, Grad, MemoryFormat, Val};
use restride_tensor::Layout;

/// The start of a region, counted from the front.
fn from_front(at: Expr, size: &Expr) -> Expr {
    if at.less(&Expr::Int(0)) == Some(true) { at.plus(size) } else { at }
}

fn slice<'c>(c: &'c Cx<'c>) {
    let zeros = c.arg(0).zeros_like();
    c.set(0, op!(c, "aten.slice_scatter.default", zeros, c.grad(), c.raw(1), c.raw(2), c.raw(3), c.raw(4)));
}

fn narrow<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let start = from_front(c.num(2), &x.size(c.int(1)));
    let end = start.plus(&c.num(3));
    c.set(0, op!(c, "aten.slice_scatter.default", x.zeros_like(), c.grad(), c.raw(1), start, end, 1));
}

fn select<'c>(c: &'c Cx<'c>) {
    let zeros = c.arg(0).zeros_like();
    c.set(0, op!(c, "aten.select_scatter.default", zeros, c.grad(), c.raw(1), c.raw(2)));
}

fn diagonal<'c>(c: &'c Cx<'c>) {
    let zeros = c.arg(0).zeros_like();
    c.set(0, op!(c, "aten.diagonal_scatter.default", zeros, c.grad(), c.raw(1), c.raw(2), c.raw(3)));
}

fn unfold<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    if x.rank() == 0 {
        return c.set(0, c.grad().reshape(Vec::new()));
    }
    let sizes = x.sizes();
    c.set(0, op!(c, "aten.unfold_backward.default", c.grad(), sizes, c.raw(1), c.raw(2), c.raw(3)));
}

/// Parts of a dimension, one after the other.
fn parts<'c>(c: &'c Cx<'c>, dim: i64) {
    let all: Vec<T<'c>> = (0..c.results()).map(|k| c.grad_at(k)).collect();
    c.set(0, c.cat(&all, dim));
}

fn unbind<'c>(c: &'c Cx<'c>) {
    let all: Vec<T<'c>> = (0..c.results()).map(|k| c.grad_at(k)).collect();
    c.set(0, op!(c, "aten.stack.default", all, c.raw(1)));
}

/// `as_strided` reads cells of the storage under its operand: what lies there is the operand's elements, each in every
/// cell that its layout says.
fn as_strided<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let own = x.ty().layout;
    let (sizes, strides) = (c.nums(1), c.nums(2));
    let offset = if c.is_none(3) { own.offset.clone() } else { c.num(3) };
    let (Some(a), Some(b)) = (own.known(), Layout::strided(&sizes, &strides, offset.clone()).known()) else {
        return c.fail("as_strided with symbolic sizes");
    };
    let (ra, rb) = (a.cell_range(), b.cell_range());
    let first = ra.start.min(rb.start);
    let cells = (ra.end.max(rb.end) - first).max(0);
    let flat = op!(c, "aten.full.default", [cells], 0, x.dtype());
    let place = op!(c, "aten.arange.default", cells);
    let at = |l: &Layout| cells_of(c, place, l, first);
    // A region without cells has no place to start from.
    let g = if b.numel() == 0 {
        flat
    } else {
        op!(c, "aten.index_add.default", flat, 0, at(&b), c.grad().reshape(vec![Expr::Int(b.numel())]))
    };
    if a.numel() == 0 {
        return c.set(0, x.zeros_like());
    }
    // A cell that shows several elements of the operand has the gradient of one of them only: as PyTorch, each has its
    // share.
    let own_at = at(&a);
    let mut back = op!(c, "aten.index_select.default", g, 0, own_at);
    if restride_tensor::self_overlaps(&a) != Some(false) {
        let ones = op!(c, "aten.full.default", [a.numel()], 1, x.dtype());
        let n = op!(c, "aten.index_add.default", flat, 0, own_at, ones);
        back = back / op!(c, "aten.index_select.default", n, 0, own_at);
    }
    c.set(0, back.reshape(x.sizes()));
}

fn from_parts<'c>(re: T<'c>, im: T<'c>) -> T<'c> {
    op!(re.cx(), "aten.complex.default", re, im)
}

fn view_as_real<'c>(c: &'c Cx<'c>) {
    let g = c.grad();
    c.set(0, from_parts(g.select(-1, 0), g.select(-1, 1)));
}

fn real<'c>(c: &'c Cx<'c>, second: bool) {
    let g = c.grad();
    if !c.arg(0).dtype().is_complex() {
        return c.set(0, g);
    }
    let zero = g.zeros_like();
    c.set(0, if second { from_parts(zero, g) } else { from_parts(g, zero) });
}

/// `dropout` as `native_dropout`, which gives the mask.
fn dropout<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    if !c.flag(2) || c.float(1) == 0.0 {
        return vec![c.arg(0)];
    }
    vec![op!(c, "aten.native_dropout.default", c.arg(0), c.raw(1), true)]
}

/// What of each plane is kept, as ones and zeros, with the draws of the operators that drop planes; its scale is 1.
fn planes<'c>(c: &'c Cx<'c>, whole: bool) -> T<'c> {
    let x = c.arg(0);
    let sizes = x.sizes().into_iter().enumerate().map(|(d, n)| if whole && d >= 2 { Expr::Int(1) } else { n });
    let ones = op!(c, "aten.full.default", sizes.collect::<Vec<_>>(), 1, x.dtype());
    c.call_at("aten.native_dropout.default", &[Operand::operand(ones), c.raw(1), Operand::operand(true)], 1)
}

/// Whether a dropout drops anything.
fn drops(c: &Cx<'_>) -> bool {
    c.flag(2) && c.float(1) != 0.0
}

fn feature_dropout<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let p = c.float(1);
    let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    vec![if drops(c) { (c.arg(0) * scale).only(planes(c, true)) } else { c.arg(0) }]
}

fn alpha_dropout<'c>(c: &'c Cx<'c>, whole: bool) -> Vec<T<'c>> {
    /// `-scale * alpha` of `selu`.
    const ALPHA: f64 = 1.758_099_340_847_376_6;
    let (x, p) = (c.arg(0), c.float(1));
    if !drops(c) {
        return vec![x];
    }
    if p == 1.0 {
        return vec![x * 0.0];
    }
    let a = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
    let (kept, dropped) = (x * a + ALPHA * a * p, x * 0.0 + ALPHA * a * (p - 1.0));
    vec![op!(c, "aten.where.self", planes(c, whole), kept, dropped)]
}
fn alpha_elements<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    alpha_dropout(c, false)
}
fn alpha_planes<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    alpha_dropout(c, true)
}

fn native_dropout<'c>(c: &'c Cx<'c>) {
    let p = c.float(1);
    if !c.is_none(2) && !c.flag(2) {
        return c.set(0, c.grad());
    }
    let scale = if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 };
    c.set(0, op!(c, "aten.native_dropout_backward.default", c.grad(), c.result_at(1), scale));
}

fn cat<'c>(c: &'c Cx<'c>) {
    let all = c.list(0);
    let rank = c.result().rank();
    let dim = wrap(c.int_or(1, 0), rank) as i64;
    let mut start = Expr::Int(0);
    for (k, t) in all.into_iter().enumerate() {
        // Empty vectors count as nothing, whatever the others are.
        if t.rank() == 1 && rank != 1 && t.numel().is(0) {
            c.zero_item(0, k);
            continue;
        }
        let end = start.plus(&t.size(dim));
        if c.needs_item(0, k) {
            c.set_item(0, k, c.grad().slice(dim, start, end.clone()));
        }
        start = end;
    }
}

fn stack<'c>(c: &'c Cx<'c>) {
    for k in 0..c.list(0).len() {
        if c.needs_item(0, k) {
            c.set_item(0, k, c.grad().select(c.int_or(1, 0), k as i64));
        }
    }
}

/// `repeat` and `tile`: copies sum up.
fn repeat<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let mut own = x.sizes();
    let mut times = c.nums(1);
    while own.len() < times.len() {
        own.insert(0, Expr::Int(1));
    }
    while times.len() < own.len() {
        times.insert(0, Expr::Int(1));
    }
    if times.iter().any(|t| t.is(0)) {
        return c.set(0, x.zeros_like());
    }
    let split: Vec<Expr> = times.iter().zip(&own).flat_map(|(t, n)| [t.clone(), n.clone()]).collect();
    let copies: Vec<i64> = (0..own.len() as i64).map(|d| 2 * d).collect();
    c.set(0, c.grad().reshape(split).sum(copies, false).reshape(x.sizes()));
}

/// `repeat_interleave` by a number.
fn interleave<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let times = c.num(1);
    let mut sizes = if c.is_none(2) { vec![x.numel()] } else { x.sizes() };
    if sizes.is_empty() {
        sizes.push(Expr::Int(1));
    }
    let dim = if c.is_none(2) { 0 } else { wrap(c.int(2), sizes.len()) };
    sizes.insert(dim + 1, times);
    c.set(0, c.grad().reshape(sizes).sum(vec![dim as i64 + 1], false).reshape(x.sizes()));
}

fn roll<'c>(c: &'c Cx<'c>) {
    let back: Vec<Expr> = c.nums(1).iter().map(|n| Expr::Int(0).minus(n)).collect();
    c.set(0, op!(c, "aten.roll.default", c.grad(), back, c.raw(2)));
}

fn rot90<'c>(c: &'c Cx<'c>) {
    c.set(0, op!(c, "aten.rot90.default", c.grad(), -c.int_or(1, 1), c.raw(2)));
}

/// The same operator on the gradient.
fn again<'c>(c: &'c Cx<'c>, name: &str) {
    c.set(0, op!(c, name, c.grad(), c.raw(1)));
}

/// `slice_scatter` and its kin: the base has the gradient but in the region, the source that of the region.
fn region<'c>(c: &'c Cx<'c>, scatter: &str, read: &str, numbers: usize) {
    let rest: Vec<_> = (0..numbers).map(|k| c.raw(2 + k)).collect();
    let arg = Operand::operand;
    c.give(0, || {
        let mut args = vec![arg(c.grad()), Operand::operand(c.arg(1).zeros_like())];
        args.extend(rest.clone());
        c.call(scatter, &args)
    });
    c.give(1, || {
        let mut args = vec![arg(c.grad())];
        args.extend(rest.clone());
        c.call(read, &args)
    });
}

/// Which cells a layout shows, counted from `first`, in logical order.
fn cells_of<'c>(c: &'c Cx<'c>, place: T<'c>, l: &Layout, first: i64) -> T<'c> {
    let shown = op!(c, "aten.as_strided.default", place, &l.sizes[..], &l.strides[..], l.offset - first);
    shown.reshape(vec![Expr::Int(l.numel())])
}

/// The cells of the base lie as its layout says, and the region is written into them.
fn as_strided_scatter<'c>(c: &'c Cx<'c>) {
    let base = c.arg(0).ty().layout;
    let offset = if c.is_none(4) { base.offset.clone() } else { c.num(4) };
    let region = Layout::strided(&c.nums(2), &c.nums(3), offset.clone());
    let known = (base.known(), region.known());
    if known.1.as_ref().is_none_or(|r| restride_tensor::self_overlaps(r) != Some(false)) {
        return c.fail("as_strided_scatter into cells that are written more than once");
    }
    let g = c.grad();
    if base.is_contiguous() && base.offset.is(0) {
        let g = g.reshape(vec![c.arg(0).numel()]);
        // The region counts cells of a row-major gradient.
        let own = g.ty().layout;
        let g = if own.is_contiguous() && own.offset.is(0) {
            g
        } else {
            let row_major: Arg<Val, Expr> = Arg::MemoryFormat(MemoryFormat::Contiguous);
            op!(c, "aten.clone.default", g, row_major)
        };
        let args = [c.raw(2), c.raw(3), Operand::operand(&offset)];
        c.give(0, || {
            let [sizes, strides, offset] = args.clone();
            let zeros = c.arg(1).zeros_like();
            op!(c, "aten.as_strided_scatter.default", g, zeros, sizes, strides, offset).reshape(c.arg(0).sizes())
        });
        c.give(1, || {
            let [sizes, strides, offset] = args.clone();
            op!(c, "aten.as_strided.default", g, sizes, strides, offset)
        });
        return;
    }
    let (Some(a), Some(b)) = known else { return c.fail("as_strided_scatter with symbolic sizes") };
    if restride_tensor::self_overlaps(&a) != Some(false) {
        return c.fail("as_strided_scatter into a base that overlaps itself");
    }
    let (ra, rb) = (a.cell_range(), b.cell_range());
    let first = ra.start.min(rb.start);
    let cells = (ra.end.max(rb.end) - first).max(0);
    let place = op!(c, "aten.arange.default", cells);
    let (at_a, at_b) = (cells_of(c, place, &a, first), cells_of(c, place, &b, first));
    let zeros = op!(c, "aten.full.default", [cells], 0, g.dtype());
    let flat = op!(c, "aten.index_copy.default", zeros, 0, at_a, g.reshape(vec![c.arg(0).numel()]));
    c.give(0, || {
        let rest = op!(c, "aten.index_fill.int_Scalar", flat, 0, at_b, 0);
        op!(c, "aten.index_select.default", rest, 0, at_a).reshape(c.arg(0).sizes())
    });
    c.give(1, || op!(c, "aten.index_select.default", flat, 0, at_b).reshape(c.arg(1).sizes()));
}

fn index<'c>(c: &'c Cx<'c>) {
    c.set(0, op!(c, "aten.index_put.default", c.arg(0).zeros_like(), c.raw(1), c.grad(), true));
}

/// The gradient of what was written: of elements that are written to one place the last one is there. `put` writes into a
/// tensor of the target's sizes, `g` is what is read there.
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
    c.give(2, || {
        let read = |t: T<'c>| op!(c, "aten.index.Tensor", t, c.raw(1));
        // A mask names no element twice.
        if adds || c.list(1).iter().any(|t| t.dtype() == DType::Bool) {
            return read(c.grad());
        }
        landed(c, read(c.grad()), |into, own| op!(c, "aten.index_put.default", into, c.raw(1), own), read)
    });
}

fn index_add<'c>(c: &'c Cx<'c>) {
    c.give(0, || c.grad());
    c.give(3, || picked(c, 3).times(&c.num(4)));
}

/// The gradient at the index of argument 2, for a source at argument `i` that may have no dimension.
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
        // What is filled is read as often as it is named: once.
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

/// The source's gradient: the gathered one, in a source that may be larger than the index.
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
            let mine = x.than("eq", r).to(x.dtype());
            let n = add(outside(mine), hit.to(x.dtype()));
            let g = c.grad() / op!(c, "aten.clamp_min.default", n, 1);
            c.give(0, || outside(g).only(x.than("eq", r)));
            c.give(3, || gathered(c, g).only(hit));
        }
        "prod" if whole => product(c, own),
        _ => c.fail(format!("scatter_reduce with reduce='{how}' and a source that is larger than the index")),
    }
}

/// A product's gradient is the product of the others: the result divided by the factor, and the result without the factor
/// where that is the only zero.
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
fn scatter_with<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let args = [c.raw(0), c.raw(1), c.raw(2), c.raw(3)];
    vec![match c.str(4) {
        Some("multiply") => {
            let mut args = args.to_vec();
            args.extend(["prod".operand(), true.operand()]);
            c.call("aten.scatter_reduce.two", &args)
        }
        _ => c.call("aten.scatter_add.default", &args),
    }]
}

/// `scatter.value_reduce(self, dim, index, value, reduce)`
fn scatter_value_with<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let value = op!(c, "aten.full.default", c.arg(2).sizes(), c.num(3), c.arg(0).dtype());
    let args = [c.raw(0), c.raw(1), c.raw(2), value.operand()];
    vec![match c.str(4) {
        Some("multiply") => {
            let mut args = args.to_vec();
            args.extend(["prod".operand(), true.operand()]);
            c.call("aten.scatter_reduce.two", &args)
        }
        _ => c.call("aten.scatter_add.default", &args),
    }]
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
    // The mask and the operand are broadcast to each other.
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

/// `constant_pad_nd`: what was put around is cut off, what was cut off is zero.
fn pad<'c>(c: &'c Cx<'c>) {
    let back: Vec<Expr> = c.nums(1).iter().map(|n| Expr::Int(0).minus(n)).collect();
    c.set(0, op!(c, "aten.constant_pad_nd.default", c.grad(), back));
}

/// Any operator that only moves elements: it is asked where each element came from.
fn moved<'c>(c: &'c Cx<'c>, name: &str) {
    let x = c.arg(0);
    let n = x.numel();
    // Pads take no integers. Numbers of elements are exact in f64.
    let place = op!(c, "aten.arange.default", &n, DType::F64).reshape(x.sizes());
    let from = op!(c, name, place, c.raw(1)).to(DType::I64);
    let flat = op!(c, "aten.full.default", vec![n], 0, x.dtype());
    let count = vec![c.grad().numel()];
    let g = op!(c, "aten.index_add.default", flat, 0, from.reshape(count.clone()), c.grad().reshape(count));
    c.set(0, g.reshape(x.sizes()));
}

/// `view.dtype`: complex numbers as their parts and back; other bits have no gradient.
fn view_dtype<'c>(c: &'c Cx<'c>) {
    let (from, to) = (c.arg(0).dtype(), c.grad().dtype());
    let g = c.grad();
    if from == to {
        c.set(0, g);
    } else if from.is_complex() && from.real() == to {
        let mut pairs = c.arg(0).sizes();
        pairs.push(Expr::Int(2));
        let g = g.reshape(pairs);
        c.set(0, from_parts(g.select(-1, 0), g.select(-1, 1)));
    } else if to.is_complex() && to.real() == from {
        c.set(0, g.unary("aten.view_as_real.default").reshape(c.arg(0).sizes()));
    } else {
        c.fail("the gradient of bits read as another element type");
    }
}

pub(crate) static GRADS: Rules = &[
    (&["aten.slice.Tensor", "aten.slice_copy.Tensor"], rule!(slice)),
    (&["aten.narrow.default", "aten.narrow_copy.default"], rule!(narrow)),
    (&["aten.select.int", "aten.select_copy.int"], rule!(select)),
    (&["aten.diagonal.default", "aten.diagonal_copy.default", "aten.linalg_diagonal.default"], rule!(diagonal)),
    (&["aten.unfold.default", "aten.unfold_copy.default"], rule!(unfold)),
    (
        &[
            "aten.split.Tensor",
            "aten.split.sizes",
            "aten.split_with_sizes.default",
            "aten.chunk.default",
            "aten.unsafe_split.Tensor",
            "aten.unsafe_split_with_sizes.default",
            "aten.unsafe_chunk.default",
            "aten.split_copy.Tensor",
            "aten.split_with_sizes_copy.default",
        ],
        rule!(|c| parts(c, c.int_or(2, 0))),
    ),
    (&["aten.unbind.int", "aten.unbind_copy.int"], rule!(unbind)),
    (&["aten.as_strided.default", "aten.as_strided_copy.default"], rule!(as_strided)),
    (&["aten.view_as_real.default", "aten.view_as_real_copy.default"], rule!(view_as_real)),
    (
        &["aten.view_as_complex.default", "aten.view_as_complex_copy.default"],
        rule!(|c| c.set(0, c.grad().unary("aten.view_as_real.default"))),
    ),
    (&["aten.real.default"], rule!(|c| real(c, false))),
    (&["aten.imag.default"], rule!(|c| real(c, true))),
    (&["aten._conj.default", "aten.conj.default"], rule!(|c| c.set(0, c.grad().conj()))),
    (
        &["aten.mH.default", "aten.matrix_H.default", "aten.adjoint.default"],
        rule!(|c| c.set(0, if c.arg(0).rank() < 2 { c.grad().conj() } else { c.grad().mh() })),
    ),
    (&["aten._neg_view.default"], rule!(|c| c.set(0, -c.grad()))),
    (
        &[
            "aten.resolve_conj.default",
            "aten.resolve_neg.default",
            "aten.clone.default",
            "aten.lift_fresh_copy.default",
            "aten._to_copy.default",
            "aten.contiguous.default",
            "aten.to.dtype",
            "aten.to.device",
            "aten.to.dtype_layout",
            "aten.to.other",
            "aten.type_as.default",
        ],
        rule!(|c| {
            c.set(0, c.grad());
            // The one that only says an element type.
            c.zero(1);
        }),
    ),
    (&["aten.view.dtype", "aten.view_copy.dtype"], rule!(view_dtype)),
    (&["aten.dropout.default"], form!(dropout)),
    (&["aten.feature_dropout.default"], form!(feature_dropout)),
    (&["aten.alpha_dropout.default"], form!(alpha_elements)),
    (&["aten.feature_alpha_dropout.default"], form!(alpha_planes)),
    (&["aten.native_dropout.default"], rule!(native_dropout)),
    (&["aten.cat.default", "aten.concat.default", "aten.concatenate.default"], rule!(cat)),
    (&["aten.stack.default"], rule!(stack)),
    (&["aten.repeat.default", "aten.tile.default"], rule!(repeat)),
    (&["aten.repeat_interleave.self_int"], rule!(interleave)),
    (&["aten.roll.default"], rule!(roll)),
    (&["aten.rot90.default"], rule!(rot90)),
    (&["aten.flip.default"], rule!(|c| again(c, "aten.flip.default"))),
    (&["aten.fliplr.default"], rule!(|c| c.set(0, c.grad().unary("aten.fliplr.default")))),
    (&["aten.flipud.default"], rule!(|c| c.set(0, c.grad().unary("aten.flipud.default")))),
    (&["aten.tril.default"], rule!(|c| again(c, "aten.tril.default"))),
    (&["aten.triu.default"], rule!(|c| again(c, "aten.triu.default"))),
    (&["aten.slice_scatter.default"], rule!(|c| region(c, "aten.slice_scatter.default", "aten.slice.Tensor", 4))),
    (&["aten.select_scatter.default"], rule!(|c| region(c, "aten.select_scatter.default", "aten.select.int", 2))),
    (
        &["aten.diagonal_scatter.default"],
        rule!(|c| region(c, "aten.diagonal_scatter.default", "aten.diagonal.default", 3)),
    ),
    (&["aten.as_strided_scatter.default"], rule!(as_strided_scatter)),
    (&["aten.index.Tensor", "aten._unsafe_index.Tensor"], rule!(index)),
    (&["aten.index_put.default", "aten._unsafe_index_put.default", "aten._index_put_impl.default"], rule!(index_put)),
    (&["aten.index_add.default"], rule!(index_add)),
    (&["aten.index_copy.default"], rule!(index_copy)),
    (&["aten.index_fill.int_Scalar"], rule!(|c| index_fill(c, false))),
    (&["aten.index_fill.int_Tensor"], rule!(|c| index_fill(c, true))),
    (&["aten.index_select.default"], rule!(index_select)),
    (&["aten.gather.default"], rule!(gather)),
    (&["aten.scatter.src"], rule!(scatter)),
    (&["aten.scatter.value"], rule!(|c| c.set(0, zeroed(c)))),
    (&["aten.scatter_add.default"], rule!(scatter_add)),
    (&["aten.scatter_reduce.two"], rule!(scatter_reduce)),
    (&["aten.scatter.reduce"], form!(scatter_with)),
    (&["aten.scatter.value_reduce"], form!(scatter_value_with)),
    (&["aten.take.default"], rule!(take)),
    (&["aten.put.default"], rule!(put)),
    (&["aten.masked_select.default"], rule!(masked_select)),
    (&["aten.masked_scatter.default"], rule!(masked_scatter)),
    (&["aten.constant_pad_nd.default"], rule!(pad)),
    (&["aten.reflection_pad1d.default"], rule!(|c| moved(c, "aten.reflection_pad1d.default"))),
    (&["aten.reflection_pad2d.default"], rule!(|c| moved(c, "aten.reflection_pad2d.default"))),
    (&["aten.reflection_pad3d.default"], rule!(|c| moved(c, "aten.reflection_pad3d.default"))),
    (&["aten.replication_pad1d.default"], rule!(|c| moved(c, "aten.replication_pad1d.default"))),
    (&["aten.replication_pad2d.default"], rule!(|c| moved(c, "aten.replication_pad2d.default"))),
    (&["aten.replication_pad3d.default"], rule!(|c| moved(c, "aten.replication_pad3d.default"))),
    (&["aten._pad_circular.default"], rule!(|c| moved(c, "aten._pad_circular.default"))),
    (
        &[
            "aten.detach.default",
            "aten.detach_copy.default",
            "aten.full_like.default",
            "aten.new_full.default",
            "aten.zeros_like.default",
            "aten.new_zeros.default",
            "aten.ones_like.default",
            "aten.new_ones.default",
            "aten.empty_like.default",
            "aten.new_empty.default",
            "aten.new_empty_strided.default",
            "aten.fill.Scalar",
            "aten.zero.default",
            "aten.rand_like.default",
            "aten.randn_like.default",
            "aten.randint_like.default",
            "aten.randint_like.Tensor",
            "aten.randint_like.low_dtype",
            "aten.normal_functional.default",
            "aten.uniform.default",
            "aten.log_normal.default",
            "aten.cauchy.default",
            "aten.exponential.default",
            "aten.geometric.default",
            "aten.random.default",
            "aten.random.to",
            "aten.random.from",
            "aten.bernoulli.default",
            "aten.bernoulli.Tensor",
            "aten.bernoulli.p",
            "aten.poisson.default",
            "aten.normal.Tensor_Tensor",
            "aten.normal.Tensor_float",
            "aten.normal.float_Tensor",
        ],
        Grad::Zero,
    ),
];
