//! Each operator that is not core by ones that are.

use super::flat;
use crate::build::{Builder, Rebuilt, rebuild};
use crate::chains::{Views, find, find_plain, read, region_of, typed, write};
use crate::declared_strides::DeclaredStrides;
use crate::lower::{LowerOptions, lower_by};
use crate::symbols::witness;
use restride_ir::{
    Arg, Args, Binding, Expr, GraphId, Layout, MemoryFormat, Movement, Node, Program, Result, TensorType, ValueId,
    ViewOutcome,
};
use restride_ops::{core_form, is_core};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Forms of forms of forms deeper than this stay as they are.
const ROUNDS: usize = 8;

/// Facts about a graph that is being written.
#[derive(Default)]
struct CoreFacts {
    sure: DeclaredStrides,
    views: Views,
}

/// The program in core operators, where they have a form for it.
pub(super) fn core(program: &Program) -> Result<Program> {
    let witness = witness(program);
    let mut out = program.clone();
    for _ in 0..ROUNDS {
        let graphs: RefCell<HashMap<GraphId, CoreFacts>> = RefCell::default();
        let changed = Cell::new(false);
        out = rebuild(&out, |new, node| {
            let mut graphs = graphs.borrow_mut();
            let known = graphs.entry(new.id).or_default();
            if said(new, known, &witness, node) {
                changed.set(true);
            } else {
                let args = new.args(node);
                new.keep(node, args);
            }
            Ok(())
        })?;
        if !changed.get() {
            break;
        }
    }
    crate::dce(&mut out);
    Ok(out)
}

/// Says a node by others, if it is not core and can be.
fn said(new: &mut Rebuilt<'_>, known: &mut CoreFacts, witness: &Binding, node: &Node) -> bool {
    let def = node.op.def();
    if is_core(node.op) || def.hop.is_some() || node.op.is_mutable() || node.results.is_empty() {
        return false;
    }
    let args = new.args(node);
    viewed(new, known, node, &args)
        || scattered(new, known, node, &args)
        || in_order(new, known, witness, node, &args)
        || composed(new, node)
}

/// Views, and copies of views.
fn viewed(new: &mut Rebuilt<'_>, known: &mut CoreFacts, node: &Node, args: &[Arg]) -> bool {
    let Some(&Arg::Value(base)) = args.first().filter(|_| node.op.name() != RESHAPE) else { return false };
    let copies = match node.op.def().movement {
        Some(Movement::View(rule)) => Some(rule),
        _ => None,
    };
    let tensors = args.iter().flat_map(Arg::values).all(|v| new.graph.values[*v].ty.tensor().is_some());
    let Some(rule) = node.op.def().view.or(copies).filter(|_| node.op.def().math.is_none() && tensors) else {
        return false;
    };
    let Ok(ViewOutcome::Views(views)) = (rule.symbolic)(&Args(&typed(new, args))) else { return false };
    let ty = new.graph.tensor(base).clone();
    if views.len() != node.results.len() || views.iter().any(|v| v.dtype != ty.dtype) {
        return false;
    }
    let chains: Option<Vec<_>> = views.iter().map(|v| find(&ty.layout, &v.layout)).collect();
    let Some(chains) = chains else { return false };
    for ((&r, view), chain) in node.results.iter().zip(&views).zip(&chains) {
        let want = new.old.tensor(r).clone();
        let mut b = new.builder(node, r);
        let made = read(&mut b, &mut known.views, base, chain, view);
        let made = declared(&mut b, made, &want);
        new.map.set(r, Some(made));
    }
    true
}

/// The value with these strides; where only dimensions of one index differ, as it is.
fn declared(b: &mut Builder<'_>, value: ValueId, ty: &TensorType) -> ValueId {
    if b.graph.tensor(value).layout.same_cells(&ty.layout) { value } else { b.declare(value, ty) }
}

/// Scatters that speak of strides or of diagonals.
fn scattered(new: &mut Rebuilt<'_>, known: &mut CoreFacts, node: &Node, args: &[Arg]) -> bool {
    let (Some(Movement::Scatter { base: 0, src: 1, region }), &[result]) = (&node.op.def().movement, &node.results[..])
    else {
        return false;
    };
    let [Arg::Value(base), Arg::Value(value), ..] = *args else { return false };
    let Some(region) = region_of(new, args, region.symbolic) else { return false };
    let (ty, from) = (new.graph.tensor(base).clone(), new.graph.tensor(value).dtype);
    if !new.old.tensor(result).layout.same_cells(&ty.layout) || from != ty.dtype {
        return false;
    }
    let mut b = new.builder(node, result);
    let made = match find_plain(&ty.layout, &region).filter(|c| c.is_exact(&region)) {
        Some(chain) => Some(write(&mut b, &mut known.views, base, &chain, value)),
        None => flat::put(&mut b, base, &region, value),
    };
    let Some(made) = made else { return false };
    new.map.set(result, Some(made));
    true
}

const RESHAPE: &str = "aten.reshape.default";

/// The same elements in the same order under other sizes: a view if the operand is sure to have the strides, otherwise a
/// view of a copy.
fn in_order(new: &mut Rebuilt<'_>, known: &mut CoreFacts, witness: &Binding, node: &Node, args: &[Arg]) -> bool {
    let (Some(&Arg::Value(x)), &[result]) = (args.first(), &node.results[..]) else { return false };
    let def = node.op.def();
    // Views that copy where strides do not express them, with the same elements.
    let reshapes = def.view.is_some() && def.math.is_none() && matches!(def.movement, Some(Movement::Same));
    let (Some(from), Some(to)) =
        (new.graph.values[x].ty.tensor().cloned(), new.old.values[result].ty.tensor().cloned())
    else {
        return false;
    };
    if !reshapes || from.dtype != to.dtype {
        return false;
    }
    let seen = from.layout.view(&to.layout.sizes).filter(|_| known.sure.of(&new.graph, witness, x));
    let mut b = new.builder(node, result);
    let (x, layout) = match seen {
        Some(layout) => (x, layout),
        None => {
            let whole = TensorType::contiguous(from.dtype, &from.layout.sizes);
            let args = vec![Arg::Value(x), Arg::MemoryFormat(MemoryFormat::Contiguous)];
            (b.call("aten.clone.default", args, whole), Layout::contiguous(&to.layout.sizes))
        }
    };
    let sizes: Vec<Expr> = to.layout.sizes.to_vec();
    let made = if from.layout.sizes[..] == sizes[..] {
        x
    } else {
        let ty = TensorType::new(from.dtype, layout);
        b.call("aten.view.default", vec![Arg::Value(x), Arg::Scalars(sizes)], ty)
    };
    let made = declared(&mut b, made, &to);
    new.map.set(result, Some(made));
    true
}

/// Compositions.
fn composed(new: &mut Rebuilt<'_>, node: &Node) -> bool {
    if core_form(node.op).is_none() && node.op.member().is_none() {
        return false;
    }
    let ordered = new.graph.order.len();
    let rules = LowerOptions { whole: &is_core, form: core_form, by_size: false, any_sizes: false };
    let typed = node.results.iter().all(|r| new.old.values[*r].ty.tensor().is_some());
    if typed && lower_by(new, node, &rules).is_ok() && node.results.iter().all(|r| new.map[*r].is_some()) {
        return true;
    }
    new.graph.order.truncate(ordered);
    node.results.iter().for_each(|r| new.map.set(*r, None));
    false
}
