//! The adjoint of any view: the gradient of an element of the base is the sum of those of the elements that show it.
//!
//! The view rule gives the view's layout on a row-major base. The adjoint inverts a permutation, sums expanded dimensions,
//! writes a region into zeros, and accumulates cells that the view shows several times.

use super::terms::{Cx, T, op, run};
use super::view_args;
use restride_ir::{Arg, Args, Dim, Expr, GradCall, GradEmit, Movement, OpError, TensorType, Val, ViewOutcome};
use restride_tensor::{Layout, self_overlaps};

type Result<R> = std::result::Result<R, OpError>;

/// Gradients of a view's operands.
pub(super) fn adjoint(emit: &mut dyn GradEmit, call: &GradCall<'_>) -> Result<Vec<Option<Val>>> {
    let def = call.op.def();
    let rule = match (def.view, def.movement) {
        (Some(rule), _) => rule,
        (None, Some(Movement::View(rule))) => rule,
        _ => return Err(OpError::new("it has no view rule")),
    };
    let base = def.base as usize;
    let mut args = view_args(emit, call)?;
    let Some(Arg::Value(ty)) = args.get_mut(base) else { return Err(OpError::new("it is a view of no tensor")) };
    let from = TensorType::contiguous(ty.dtype, &ty.layout.sizes);
    *ty = from.clone();
    let outcome = (rule.symbolic)(&Args(&args))?;
    run(emit, call, &|c| match &outcome {
        ViewOutcome::Views(views) if views.len() == c.results() => {
            let parts = views.iter().enumerate().filter_map(|(k, v)| Some((c.opt_grad(k)?, v)));
            let mut total: Option<T<'_>> = None;
            for (g, view) in parts {
                if view.dtype != from.dtype {
                    return c.fail("the gradient of a view as another element type");
                }
                let back = back(c, g, &view.layout, &from);
                total = Some(total.map_or(back, |t| t + back));
            }
            if let Some(total) = total {
                c.set(base, total);
            }
            // The other operands only provide a size (`view_as`).
            (0..args.len()).filter(|i| *i != base).for_each(|i| c.zero(i));
        }
        // The call copies, or may copy, the same elements in the same order.
        ViewOutcome::Copy | ViewOutcome::Unknown if c.results() == 1 => {
            c.set(base, c.grad().reshape(from.layout.sizes.to_vec()))
        }
        _ => c.fail("where its elements come from depends on sizes that are not known"),
    })
}

/// Gradient of a row-major base, from the gradient of a view.
fn back<'c>(c: &'c Cx<'c>, g: T<'c>, view: &Layout<Expr>, base: &TensorType) -> T<'c> {
    let repeated: Vec<i64> =
        (0..view.rank()).filter(|&d| view.strides[d].is(0) && !view.sizes[d].is(1)).map(|d| d as i64).collect();
    let g = g.sum(repeated.clone(), false);
    let keep = |l: &restride_tensor::Dims<Expr>| -> Vec<Expr> {
        l.iter().enumerate().filter(|(d, _)| !repeated.contains(&(*d as i64))).map(|(_, e)| e.clone()).collect()
    };
    let layout = Layout::strided(&keep(&view.sizes), &keep(&view.strides), view.offset.clone());
    let sizes = base.layout.sizes.to_vec();
    if let Some(order) = permutation(&layout, &base.layout.numel()) {
        let sorted = order.iter().enumerate().all(|(k, d)| k as i64 == *d);
        let g = if sorted { g } else { g.permute(order) };
        return g.reshape(sizes);
    }
    let cells = base.layout.numel();
    let flat = op!(c, "aten.full.default", vec![cells.clone()], 0, base.dtype);
    let (view_sizes, view_strides) = (layout.sizes.to_vec(), layout.strides.to_vec());
    let disjoint = layout.known().is_some_and(|l| self_overlaps(&l) == Some(false));
    let flat = if disjoint {
        op!(c, "aten.as_strided_scatter.default", flat, g, view_sizes, view_strides, layout.offset.clone())
    } else {
        let all = op!(c, "aten.arange.default", &cells);
        let at = op!(c, "aten.as_strided.default", all, view_sizes, view_strides, layout.offset.clone());
        let n = vec![layout.numel()];
        op!(c, "aten.index_add.default", flat, 0, at.reshape(n.clone()), g.reshape(n))
    };
    flat.reshape(sizes)
}

/// The dimension order in which the layout is row-major from cell 0 over `cells` cells.
fn permutation(layout: &Layout<Expr>, cells: &Expr) -> Option<Vec<i64>> {
    if !layout.offset.is(0) || layout.numel().equals(cells) != Some(true) {
        return None;
    }
    let mut left: Vec<usize> = (0..layout.rank()).collect();
    let mut order = Vec::with_capacity(left.len());
    let mut stride = Expr::Int(1);
    while !left.is_empty() {
        // Prefer the last fitting dimension, and dimensions of size 1 first: dimensions already in order keep their positions.
        let one = left.iter().rposition(|&d| layout.sizes[d].is(1));
        let next = one.or_else(|| left.iter().rposition(|&d| layout.strides[d].equals(&stride) == Some(true)))?;
        let d = left.remove(next);
        stride = stride.times(&layout.sizes[d]);
        order.push(d as i64);
    }
    order.reverse();
    Some(order)
}
