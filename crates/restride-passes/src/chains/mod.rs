//! Regions as chains of views, as PyTorch's functionalization writes them and other compilers accept them.
//!
//! Inside restride a write through any view is one scatter into a region of its base, and a read is one view:
//! `as_strided_scatter` and `as_strided` if the region is no single index or range. These use strides, which compilers of
//! values lack. Files therefore use operators with indices: views down to the region, scatters back up. The strided forms
//! remain for regions that no such chain shows.

mod emit_views;
mod find_views;

pub(crate) use emit_views::{Views, read, write};
pub(crate) use find_views::{find, find_plain};

use crate::build::{Rebuilt, rebuild};
use restride_ir::{
    Arg, Args, Error, Expr, GraphId, Kernel, Layout, Movement, Node, Program, Result, Stage, TensorType, ValueId,
    ViewOutcome,
};
use std::cell::RefCell;
use std::collections::HashMap;

/// The largest number of views of views that are looked through.
const LEVELS: usize = 8;

/// Facts about a graph that is being written.
#[derive(Default)]
struct Known {
    views: Views,
    /// For each view its base, and whether its operator may copy.
    of: HashMap<ValueId, (ValueId, bool)>,
}

/// The program with regions said by chains of views, in every graph, and with views of views as one view of the base where
/// that is one operator.
///
/// # Errors
/// A program that is not functional.
pub fn nested(program: &Program) -> Result<Program> {
    if program.stage != Stage::Functional {
        return Err(Error::invalid("only functional programs can be written with chains of views"));
    }
    let graphs: RefCell<HashMap<GraphId, Known>> = RefCell::default();
    rebuild(program, |new, node| {
        let mut graphs = graphs.borrow_mut();
        let known = graphs.entry(new.id).or_default();
        let args = new.args(node);
        if !(scattered(new, known, node, &args) || seen(new, known, node, &args)) {
            new.keep(node, args);
        }
        note(new, known, node);
        Ok(())
    })
}

/// A call's arguments with the types of its operands.
pub(crate) fn typed(new: &Rebuilt<'_>, args: &[Arg]) -> Vec<Arg<TensorType, Expr>> {
    args.iter().map(|a| a.map_values(|v| new.graph.tensor(*v).clone())).collect()
}

/// The view of its first operand that a call is, if it is one view.
fn shown(new: &Rebuilt<'_>, node: &Node, args: &[Arg]) -> Option<TensorType> {
    let rule = node.op.def().view.filter(|_| node.op.def().math.is_none())?;
    let tensors = args.iter().flat_map(Arg::values).all(|v| new.graph.values[*v].ty.tensor().is_some());
    if !tensors {
        return None;
    }
    match (rule.symbolic)(&Args(&typed(new, args))).ok()? {
        ViewOutcome::Views(views) => <[TensorType; 1]>::try_from(views.into_vec()).ok().map(|[view]| view),
        _ => None,
    }
}

/// A scatter in terms of strides as a chain of scatters.
fn scattered(new: &mut Rebuilt<'_>, known: &mut Known, node: &Node, args: &[Arg]) -> bool {
    let def = node.op.def();
    let (true, Some(Movement::Scatter { base: 0, src: 1, region }), &[result]) =
        (def.strided, &def.movement, &node.results[..])
    else {
        return false;
    };
    let [Arg::Value(base), Arg::Value(value), ..] = *args else { return false };
    let Some(region) = region_of(new, args, region.symbolic) else { return false };
    let (ty, from) = (new.graph.tensor(base).clone(), new.graph.tensor(value).dtype);
    let same = new.old.tensor(result).layout.same_cells(&ty.layout) && from == ty.dtype;
    let Some(chain) = find(&ty.layout, &region).filter(|c| same && c.is_exact(&region)) else { return false };
    let mut b = new.builder(node, result);
    let made = write(&mut b, &mut known.views, base, &chain, value);
    new.map.set(result, Some(made));
    true
}

type SymbolicRule = fn(&Args<'_, TensorType, Expr>) -> std::result::Result<ViewOutcome<Expr>, restride_ir::OpError>;

/// The region of a scatter, by its rule.
pub(crate) fn region_of(new: &Rebuilt<'_>, args: &[Arg], rule: SymbolicRule) -> Option<Layout<Expr>> {
    match rule(&Args(&typed(new, args))).ok()? {
        ViewOutcome::Views(views) => <[TensorType; 1]>::try_from(views.into_vec()).ok().map(|[view]| view.layout),
        _ => None,
    }
}

/// A view in terms of strides as a chain of views, and a view of views as one view.
fn seen(new: &mut Rebuilt<'_>, known: &mut Known, node: &Node, args: &[Arg]) -> bool {
    let (Some(&Arg::Value(parent)), &[result]) = (args.first(), &node.results[..]) else { return false };
    // A detached value is a constant for a compiler that differentiates the file.
    let Some(view) = shown(new, node, args).filter(|_| !detaches(node)) else { return false };
    let declared = new.old.tensor(result).clone();
    if view.dtype != declared.dtype || !view.layout.same_cells(&declared.layout) {
        return false;
    }
    // The furthest base that the value views by one operator.
    let mut bases = vec![parent];
    let mut copies = Vec::new();
    while let Some((of, copy)) = known.of.get(&bases[bases.len() - 1]).filter(|_| bases.len() < LEVELS) {
        bases.push(*of);
        copies.push(*copy);
    }
    for (i, &base) in bases.iter().enumerate().skip(1).rev() {
        let ty = new.graph.tensor(base).clone();
        if ty.dtype != declared.dtype {
            continue;
        }
        // The same call on it, unless that asks for strides which a copy in between provides.
        let mut same = args.to_vec();
        same[0] = Arg::Value(base);
        let copied = copies[..i].iter().any(|c| *c) && matches!(node.op.def().kernel, Kernel::None);
        if !copied && shown(new, node, &same).is_some_and(|t| t.layout.same_cells(&declared.layout)) {
            new.keep(node, same);
            return true;
        }
        let Some(chain) = find(&ty.layout, &declared.layout) else { continue };
        if chain.len(&declared.layout) <= 1 {
            let mut b = new.builder(node, result);
            let made = read(&mut b, &mut known.views, base, &chain, &declared);
            new.map.set(result, Some(made));
            return true;
        }
    }
    if !node.op.def().strided {
        return false;
    }
    let ty = new.graph.tensor(parent).clone();
    let Some(chain) = find(&ty.layout, &declared.layout).filter(|_| ty.dtype == declared.dtype) else { return false };
    let mut b = new.builder(node, result);
    let made = read(&mut b, &mut known.views, parent, &chain, &declared);
    new.map.set(result, Some(made));
    true
}

/// Whether a gradient does not go from a call's result to its first operand.
pub(crate) fn detaches(node: &Node) -> bool {
    !crate::grad::passes(node, |v| node.operands().next() == Some(v))
}

/// Notes the views that were just made.
fn note(new: &Rebuilt<'_>, known: &mut Known, node: &Node) {
    let &[result] = &node.results[..] else { return };
    let Some(made) = new.map[result] else { return };
    let Some(&last) = new.graph.order.last() else { return };
    let last = &new.graph.nodes[last];
    let (Some(&Arg::Value(of)), true) = (last.args.first(), last.results[..] == [made]) else { return };
    if !detaches(last)
        && shown(new, last, &last.args).is_some_and(|t| t.layout.same_cells(&new.graph.tensor(made).layout))
    {
        known.views.note(&new.graph, of, made);
        known.of.insert(made, (of, !matches!(last.op.def().kernel, Kernel::None)));
    }
}
