//! Reading and writing a region by the views of its chain.

use super::find_views::{Chain, Shaped};
use crate::build::Builder;
use crate::functionalize::region::{Extent, relate};
use crate::functionalize::region_ops::{fitted, range_end, read_related, read_steps};
use restride_ir::{Arg, Expr, Graph, Layout, TensorType, ValueId};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Views that a graph has already: for each value, the calls on it with their results.
#[derive(Default)]
pub(crate) struct Views(HashMap<ValueId, Vec<(&'static str, Vec<Arg>, ValueId)>>);

/// Calls on one value that are compared with a new one.
const LOOK_BACK: usize = 16;

impl Views {
    /// Notes a view that the graph has, if it is one step of a chain.
    pub fn note(&mut self, b: &Graph, of: ValueId, made: ValueId) {
        let (base, view) = (b.tensor(of), b.tensor(made));
        if base.dtype != view.dtype {
            return;
        }
        if base.layout.view(&view.layout.sizes).is_some_and(|l| l.same_cells(&view.layout)) {
            let sizes = vec![Arg::Scalars(view.layout.sizes.to_vec())];
            self.0.entry(of).or_default().push(("aten.reshape.default", sizes, made));
            return;
        }
        let Some(relation) = relate(&base.layout, &view.layout) else { return };
        if relation.partial().count() == 1 && read_steps(&relation) == 1 {
            let step = steps(&Chain { shaped: SmallVec::new(), relation }, &base.layout).remove(0);
            self.0.entry(of).or_default().push((step.view, step.args, made));
        }
    }

    /// The view, made once.
    fn call(
        &mut self,
        b: &mut Builder<'_>,
        op: &'static str,
        of: ValueId,
        rest: Vec<Arg>,
        layout: &Layout<Expr>,
    ) -> ValueId {
        let seen = self.0.entry(of).or_default();
        if let Some((_, _, made)) = seen.iter().rev().take(LOOK_BACK).find(|(o, r, _)| *o == op && *r == rest) {
            return *made;
        }
        let args = std::iter::once(Arg::Value(of)).chain(rest.iter().cloned()).collect();
        let ty = TensorType::new(b.graph.tensor(of).dtype, layout.clone());
        let made = named(b, op, |b| b.call(op, args, ty));
        seen.push((op, rest, made));
        made
    }
}

/// Adds a call that is named after its operator.
fn named(b: &mut Builder<'_>, op: &str, f: impl FnOnce(&mut Builder<'_>) -> ValueId) -> ValueId {
    let plain = op.split('.').nth(1).unwrap_or(op).into();
    let name = std::mem::replace(&mut b.hint, plain);
    let made = f(b);
    b.hint = name;
    made
}

/// A step of a chain: the view operator and the scatter operator with their arguments behind the tensors.
struct ChainStep {
    view: &'static str,
    scatter: &'static str,
    args: Vec<Arg>,
    layout: Layout<Expr>,
}

fn int(n: usize) -> Arg {
    Arg::Scalar(Expr::Int(n as i64))
}

/// The indices of a relation, outermost dimension first.
fn steps(chain: &Chain, base: &Layout<Expr>) -> Vec<ChainStep> {
    let (mut out, mut layout) = (Vec::new(), base.clone());
    let mut gone = 0;
    for (d, pick) in chain.relation.picks.iter().enumerate() {
        let dim = d - gone;
        let step = match pick {
            Extent::Whole => continue,
            Extent::Index(i) => {
                gone += 1;
                layout = layout.select(dim as i64, i).expect("a relation is inside its base");
                ("aten.select.int", "aten.select_scatter.default", vec![int(dim), Arg::Scalar(i.clone())])
            }
            Extent::Range { start, len, step } => {
                let end = range_end(start, len, step);
                let sliced = layout.slice(dim as i64, Some(start), Some(&end), step);
                layout = sliced.expect("a relation is inside its base");
                layout.sizes[dim] = len.clone();
                let args = [start, &end, step].map(|e| Arg::Scalar(e.clone()));
                let args = std::iter::once(int(dim)).chain(args).collect();
                ("aten.slice.Tensor", "aten.slice_scatter.default", args)
            }
        };
        out.push(ChainStep { view: step.0, scatter: step.1, args: step.2, layout: layout.clone() });
    }
    out
}

/// The base under the views that a chain begins with: each of these values.
fn shaped(b: &mut Builder<'_>, views: &mut Views, chain: &Chain, base: ValueId) -> Vec<ValueId> {
    let mut out = vec![base];
    for (view, layout) in &chain.shaped {
        let of = out[out.len() - 1];
        out.push(match view {
            Shaped::Permuted(order) => {
                let dims = Arg::Scalars(order.iter().map(|d| Expr::Int(*d)).collect());
                views.call(b, "aten.permute.default", of, vec![dims], layout)
            }
            Shaped::Reshaped(sizes) => {
                views.call(b, "aten.reshape.default", of, vec![Arg::Scalars(sizes.to_vec())], layout)
            }
            Shaped::Diagonal { offset, dims } => {
                let args = vec![Arg::Scalar(Expr::Int(*offset)), int(dims.0), int(dims.1)];
                views.call(b, "aten.diagonal.default", of, args, layout)
            }
        });
    }
    out
}

/// The region's elements.
pub(crate) fn read(
    b: &mut Builder<'_>,
    views: &mut Views,
    base: ValueId,
    chain: &Chain,
    target: &TensorType,
) -> ValueId {
    let seen = *shaped(b, views, chain, base).last().expect("the base is there");
    let ty = b.graph.tensor(seen).clone();
    read_related(b, seen, &ty, &chain.relation, target)
}

/// The base with the region's elements replaced: views down to the region, scatters back up. A diagonal is scattered as one.
pub(crate) fn write(b: &mut Builder<'_>, views: &mut Views, base: ValueId, chain: &Chain, value: ValueId) -> ValueId {
    let ty = b.graph.tensor(base).clone();
    let layout = chain.shaped.last().map_or(&ty.layout, |(_, l)| l);
    let steps = steps(chain, layout);
    // The region of the base that each level but the last shows.
    let wholes = match (chain.shaped.split_last(), steps.is_empty()) {
        // The base is only scattered into where no more is read of it.
        (Some((_, before)), true) => {
            shaped(b, views, &Chain { shaped: before.into(), relation: chain.relation.clone() }, base)
        }
        _ => shaped(b, views, chain, base),
    };
    let mut into = vec![*wholes.last().expect("the base is there")];
    for step in steps.iter().take(steps.len().saturating_sub(1)) {
        into.push(views.call(b, step.view, into[into.len() - 1], step.args.clone(), &step.layout));
    }
    let mut new = named(b, "region", |b| fitted(b, value, &chain.relation, &TensorType::new(ty.dtype, layout.clone())));
    for (i, (step, &old)) in steps.iter().zip(&into).enumerate().rev() {
        let args = [Arg::Value(old), Arg::Value(new)].into_iter().chain(step.args.iter().cloned()).collect();
        let like = b.graph.tensor(old).clone();
        new = match i + chain.shaped.len() {
            0 => b.call(step.scatter, args, like),
            _ => named(b, step.scatter, |b| b.call(step.scatter, args, like)),
        };
    }
    for (i, (view, _)) in chain.shaped.iter().enumerate().rev() {
        let before = if i == 0 { &ty.layout } else { &chain.shaped[i - 1].1 };
        let like = TensorType::new(ty.dtype, before.clone());
        new = match view {
            Shaped::Permuted(order) => {
                let mut back = vec![Expr::Int(0); order.len()];
                order.iter().enumerate().for_each(|(i, d)| back[*d as usize] = Expr::Int(i as i64));
                b.call("aten.permute.default", vec![Arg::Value(new), Arg::Scalars(back)], like)
            }
            Shaped::Reshaped(_) => b.reshape(new, like),
            Shaped::Diagonal { offset, dims } => {
                let place = [Arg::Scalar(Expr::Int(*offset)), int(dims.0), int(dims.1)];
                let args = [Arg::Value(wholes[i]), Arg::Value(new)].into_iter().chain(place).collect();
                b.call("aten.diagonal_scatter.default", args, like)
            }
        };
    }
    b.declare(new, &ty)
}
