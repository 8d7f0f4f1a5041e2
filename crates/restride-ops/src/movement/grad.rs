//! Gradients of operators that move elements: views with an adjoint operator, casts, and joins.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, TermOperand, form, op, rule, wrap};
use restride_ir::{Arg, DType, Dim, Expr, MemoryFormat, Val};
use restride_tensor::Layout;

fn slice<'c>(c: &'c Cx<'c>) {
    let zeros = c.arg(0).zeros_like();
    c.set(0, op!(c, "aten.slice_scatter.default", zeros, c.grad(), c.raw(1), c.raw(2), c.raw(3), c.raw(4)));
}

fn narrow<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let start = c.num(2).bound_from_start(&x.size(c.int(1)));
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

/// Splits the gradient into consecutive parts of a dimension.
fn parts<'c>(c: &'c Cx<'c>, dim: i64) {
    let all: Vec<T<'c>> = (0..c.results()).map(|k| c.grad_at(k)).collect();
    c.set(0, c.cat(&all, dim));
}

fn unbind<'c>(c: &'c Cx<'c>) {
    let all: Vec<T<'c>> = (0..c.results()).map(|k| c.grad_at(k)).collect();
    c.set(0, op!(c, "aten.stack.default", all, c.raw(1)));
}

/// `as_strided` reads cells of the operand's storage: each element of the operand occupies the cells that its layout names.
fn as_strided<'c>(c: &'c Cx<'c>) {
    let x = c.arg(0);
    let own = x.ty().layout;
    let (sizes, strides) = (c.nums(1), c.nums(2));
    let offset = if c.is_none(3) { own.offset.clone() } else { c.num(3) };
    let region = Layout::strided(&sizes, &strides, offset.clone());
    let (Some(a), Some(b)) = (own.known(), region.known()) else {
        if !own.is_contiguous() || !own.offset.is(0) {
            return c.fail("as_strided of an operand that is not contiguous, with symbolic sizes");
        }
        // The cells of a contiguous operand are its elements.
        let flat = op!(c, "aten.full.default", [x.numel()], 0, x.dtype());
        let place = op!(c, "aten.arange.default", &x.numel());
        let at = op!(c, "aten.as_strided.default", place, sizes, strides, offset).reshape(vec![region.numel()]);
        let g = op!(c, "aten.index_add.default", flat, 0, at, c.grad().reshape(vec![region.numel()]));
        return c.set(0, g.reshape(x.sizes()));
    };
    let (ra, rb) = (a.cell_range(), b.cell_range());
    let first = ra.start.min(rb.start);
    let cells = (ra.end.max(rb.end) - first).max(0);
    let flat = op!(c, "aten.full.default", [cells], 0, x.dtype());
    let place = op!(c, "aten.arange.default", cells);
    let at = |l: &Layout| cells_of(c, place, l, first);
    // An empty region has no first cell.
    let g = if b.numel() == 0 {
        flat
    } else {
        op!(c, "aten.index_add.default", flat, 0, at(&b), c.grad().reshape(vec![Expr::Int(b.numel())]))
    };
    if a.numel() == 0 {
        return c.set(0, x.zeros_like());
    }
    // If several elements of the operand share a cell, each gets an equal share of the cell's gradient, as in PyTorch.
    let own_at = at(&a);
    let mut back = op!(c, "aten.index_select.default", g, 0, own_at);
    if restride_tensor::self_overlaps(&a) != Some(false) {
        let ones = op!(c, "aten.full.default", [a.numel()], 1, x.dtype());
        let n = op!(c, "aten.index_add.default", flat, 0, own_at, ones);
        back = back / op!(c, "aten.index_select.default", n, 0, own_at);
    }
    c.set(0, back.reshape(x.sizes()));
}

fn view_as_real<'c>(c: &'c Cx<'c>) {
    let g = c.grad();
    c.set(0, g.select(-1, 0).with_imag(g.select(-1, 1)));
}

fn real<'c>(c: &'c Cx<'c>, second: bool) {
    let g = c.grad();
    if !c.arg(0).dtype().is_complex() {
        return c.set(0, g);
    }
    let zero = g.zeros_like();
    c.set(0, if second { zero.with_imag(g) } else { g.with_imag(zero) });
}

/// Differentiates `dropout` as `native_dropout`, which also returns the mask.
fn dropout<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    if !c.flag(2) || c.float(1) == 0.0 {
        return vec![c.arg(0)];
    }
    vec![op!(c, "aten.native_dropout.default", c.arg(0), c.raw(1), true)]
}

/// The keep mask of a dropout: one draw per element or, if `whole`, per plane of the first two dimensions.
fn planes<'c>(c: &'c Cx<'c>, whole: bool) -> T<'c> {
    let x = c.arg(0);
    let sizes = x.sizes().into_iter().enumerate().map(|(d, n)| if whole && d >= 2 { Expr::Int(1) } else { n });
    let ones = op!(c, "aten.full.default", sizes.collect::<Vec<_>>(), 1, x.dtype());
    c.call_at("aten.native_dropout.default", &[TermOperand::operand(ones), c.raw(1), TermOperand::operand(true)], 1)
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
        // `cat` ignores empty vectors beside operands of any rank.
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

fn block_diag<'c>(c: &'c Cx<'c>) {
    let (mut row, mut column) = (Expr::Int(0), Expr::Int(0));
    for (k, t) in c.list(0).into_iter().enumerate() {
        let mut sizes = t.sizes();
        while sizes.len() < 2 {
            sizes.insert(0, Expr::Int(1));
        }
        let (down, right) = (row.plus(&sizes[0]), column.plus(&sizes[1]));
        if c.needs_item(0, k) {
            let part = c.grad().slice(0, row, down.clone()).slice(1, column, right.clone());
            c.set_item(0, k, part.reshape(t.sizes()));
        }
        (row, column) = (down, right);
    }
}

/// Gathers the source index of each element and scatters the gradient to it.
fn combinations<'c>(c: &'c Cx<'c>) {
    let n = c.arg(0).numel();
    let place = op!(c, "aten.arange.default", &n);
    let from = op!(c, "aten.combinations.default", place, c.raw(1), c.raw(2));
    let flat = op!(c, "aten.full.default", vec![n], 0, c.arg(0).dtype());
    let count = vec![c.grad().numel()];
    c.set(0, op!(c, "aten.index_add.default", flat, 0, from.reshape(count.clone()), c.grad().reshape(count)));
}

/// `repeat` and `tile`: sums the gradients of all copies.
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

/// `repeat_interleave` with one count for all elements.
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

/// Applies the same operator to the gradient.
fn again<'c>(c: &'c Cx<'c>, name: &str) {
    c.set(0, op!(c, name, c.grad(), c.raw(1)));
}

/// `slice_scatter` and its like: the base gets the gradient outside the region, the source gets that of the region.
fn region<'c>(c: &'c Cx<'c>, scatter: &str, read: &str, numbers: usize) {
    let rest: Vec<_> = (0..numbers).map(|k| c.raw(2 + k)).collect();
    let arg = TermOperand::operand;
    c.give(0, || {
        let mut args = vec![arg(c.grad()), TermOperand::operand(c.arg(1).zeros_like())];
        args.extend(rest.clone());
        c.call(scatter, &args)
    });
    c.give(1, || {
        let mut args = vec![arg(c.grad())];
        args.extend(rest.clone());
        c.call(read, &args)
    });
}

/// The cell of each element of a layout, counted from `first`, in logical order.
fn cells_of<'c>(c: &'c Cx<'c>, place: T<'c>, l: &Layout, first: i64) -> T<'c> {
    let shown = op!(c, "aten.as_strided.default", place, &l.sizes[..], &l.strides[..], l.offset - first);
    shown.reshape(vec![Expr::Int(l.numel())])
}

/// `as_strided_scatter`: writes the region into the cells that the base's layout names.
fn as_strided_scatter<'c>(c: &'c Cx<'c>) {
    let base = c.arg(0).ty().layout;
    let offset = if c.is_none(4) { base.offset.clone() } else { c.num(4) };
    let region = Layout::strided(&c.nums(2), &c.nums(3), offset.clone());
    let known = (base.known(), region.known());
    let single = |r: &Layout| restride_tensor::self_overlaps(r) == Some(false);
    if !known.1.as_ref().map_or_else(|| restride_tensor::nested(&region), single) {
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
        let args = [c.raw(2), c.raw(3), TermOperand::operand(&offset)];
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

/// `constant_pad_nd`: padding with the opposite widths drops added elements and restores removed ones as zeros.
fn pad<'c>(c: &'c Cx<'c>) {
    let back: Vec<Expr> = c.nums(1).iter().map(|n| Expr::Int(0).minus(n)).collect();
    c.set(0, op!(c, "aten.constant_pad_nd.default", c.grad(), back));
}

/// Any operator that only moves elements: moves the index of each element, then scatters the gradient by the indices.
fn moved<'c>(c: &'c Cx<'c>, name: &str) {
    let x = c.arg(0);
    let n = x.numel();
    // Padding kernels reject integers; f64 holds element counts exactly.
    let place = op!(c, "aten.arange.default", &n, DType::F64).reshape(x.sizes());
    let from = op!(c, name, place, c.raw(1)).to(DType::I64);
    let flat = op!(c, "aten.full.default", vec![n], 0, x.dtype());
    let count = vec![c.grad().numel()];
    let g = op!(c, "aten.index_add.default", flat, 0, from.reshape(count.clone()), c.grad().reshape(count));
    c.set(0, g.reshape(x.sizes()));
}

/// `pad(self, pad, mode, value)`, whose sizes may be symbolic.
fn any_pad<'c>(c: &'c Cx<'c>) -> Vec<T<'c>> {
    let mode = c.str(2).unwrap_or("constant");
    if mode == "constant" {
        let value = if c.is_none(3) { 0.0.operand() } else { c.raw(3) };
        return vec![op!(c, "aten.constant_pad_nd.default", c.arg(0), c.raw(1), value)];
    }
    // Shape rules have already refused unknown modes.
    let name = crate::movement::pad::moving(mode, c.nums(1).len() / 2).unwrap_or("aten._pad_circular.default");
    vec![op!(c, name, c.arg(0), c.raw(1))]
}

pub(crate) static GRADS: Rules = &[
    (&["slice.Tensor", "slice_copy.Tensor"], rule!(slice)),
    (&["narrow", "narrow_copy"], rule!(narrow)),
    (&["select.int", "select_copy.int"], rule!(select)),
    (&["diagonal", "diagonal_copy", "linalg_diagonal"], rule!(diagonal)),
    (&["unfold", "unfold_copy"], rule!(unfold)),
    (
        &[
            "split.Tensor",
            "split_with_sizes",
            "chunk",
            "unsafe_split.Tensor",
            "unsafe_split_with_sizes",
            "unsafe_chunk",
            "split_copy.Tensor",
            "split_with_sizes_copy",
        ],
        rule!(|c| parts(c, c.int_or(2, 0))),
    ),
    (&["unbind.int", "unbind_copy.int"], rule!(unbind)),
    (&["as_strided", "as_strided_copy"], rule!(as_strided)),
    (&["view_as_real", "view_as_real_copy"], rule!(view_as_real)),
    (&["view_as_complex", "view_as_complex_copy"], rule!(|c| c.set(0, c.grad().unary("aten.view_as_real.default")))),
    (&["real"], rule!(|c| real(c, false))),
    (&["imag"], rule!(|c| real(c, true))),
    (&["_conj", "conj"], rule!(|c| c.set(0, c.grad().conj()))),
    (
        &["mH", "matrix_H", "adjoint"],
        rule!(|c| c.set(0, if c.arg(0).rank() < 2 { c.grad().conj() } else { c.grad().mh() })),
    ),
    (&["_neg_view"], rule!(|c| c.set(0, -c.grad()))),
    (
        &[
            "resolve_conj",
            "resolve_neg",
            "clone",
            "lift_fresh_copy",
            "_to_copy",
            "contiguous",
            "to.dtype",
            "to.device",
            "to.dtype_layout",
            "to.other",
            "type_as",
        ],
        rule!(|c| {
            c.set(0, c.grad());
            // Argument 1 only provides an element type.
            c.zero(1);
        }),
    ),
    (&["dropout"], form!(dropout)),
    (&["feature_dropout"], form!(feature_dropout)),
    (&["alpha_dropout"], form!(alpha_elements)),
    (&["feature_alpha_dropout"], form!(alpha_planes)),
    (&["native_dropout"], rule!(native_dropout)),
    (&["cat"], rule!(cat)),
    (&["stack"], rule!(stack)),
    (&["block_diag"], rule!(block_diag)),
    (&["combinations"], rule!(combinations)),
    (
        &["restride::with_history"],
        rule!(|c| {
            // Argument 0 only provides elements.
            c.zero(0);
            c.set(1, c.grad());
        }),
    ),
    (&["repeat", "tile"], rule!(repeat)),
    (&["repeat_interleave.self_int"], rule!(interleave)),
    (&["roll"], rule!(roll)),
    (&["rot90"], rule!(rot90)),
    (&["flip"], rule!(|c| again(c, "aten.flip.default"))),
    (&["fliplr"], rule!(|c| c.set(0, c.grad().unary("aten.fliplr.default")))),
    (&["flipud"], rule!(|c| c.set(0, c.grad().unary("aten.flipud.default")))),
    (&["tril"], rule!(|c| again(c, "aten.tril.default"))),
    (&["triu"], rule!(|c| again(c, "aten.triu.default"))),
    (&["slice_scatter"], rule!(|c| region(c, "aten.slice_scatter.default", "aten.slice.Tensor", 4))),
    (&["select_scatter"], rule!(|c| region(c, "aten.select_scatter.default", "aten.select.int", 2))),
    (&["diagonal_scatter"], rule!(|c| region(c, "aten.diagonal_scatter.default", "aten.diagonal.default", 3))),
    (&["as_strided_scatter"], rule!(as_strided_scatter)),
    (&["pad"], form!(any_pad)),
    (&["constant_pad_nd"], rule!(pad)),
    (&["reflection_pad1d"], rule!(|c| moved(c, "aten.reflection_pad1d.default"))),
    (&["reflection_pad2d"], rule!(|c| moved(c, "aten.reflection_pad2d.default"))),
    (&["reflection_pad3d"], rule!(|c| moved(c, "aten.reflection_pad3d.default"))),
    (&["replication_pad1d"], rule!(|c| moved(c, "aten.replication_pad1d.default"))),
    (&["replication_pad2d"], rule!(|c| moved(c, "aten.replication_pad2d.default"))),
    (&["replication_pad3d"], rule!(|c| moved(c, "aten.replication_pad3d.default"))),
    (&["_pad_circular"], rule!(|c| moved(c, "aten._pad_circular.default"))),
];
