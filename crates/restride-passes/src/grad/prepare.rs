//! Preparation for differentiation: operators whose gradient is that of another form, or of their composition, are
//! replaced.

use super::control_flow::bound_loops;
use super::emit::{GraphEmit, val, value};
use super::{Flow, overwritten_saves, refused};
use crate::build::{Rebuilt, rebuild};
use crate::lower::lower_node;
use restride_ir::{
    Arg, Error, Expr, FormFn, Grad, GradCall, GradEmit, Node, Op, Program, Result, Table, Type, Val, ValueId,
};

/// Forms of forms deeper than this are taken for a mistake in the table.
const ROUNDS: usize = 8;

/// The program with the calls between the targets and the loss in forms that have gradient rules.
pub(super) fn prepare(
    program: Program,
    losses: &[usize],
    targets: &[usize],
    max_trips: Option<u64>,
) -> Result<Program> {
    let mut out = program;
    let way = between(&out, losses, targets).reached;
    bound_loops(&mut out, |node| node.results.iter().any(|r| way[*r]), max_trips)?;
    for _ in 0..ROUNDS {
        let between = between(&out, losses, targets).reached;
        let main = out.main;
        let on_way = |node: &Node| node.results.iter().any(|r| between[*r]);
        let composed = |node: &Node| {
            on_way(node) && (node.op.member().is_some() || matches!(node.op.def().grad, Some(Grad::Composed)))
        };
        let formed = |node: &Node| on_way(node) && matches!(node.op.def().grad, Some(Grad::Form(_)));
        if !out.graph().ordered().any(|(_, n)| composed(n) || formed(n)) {
            return Ok(out);
        }
        let whole = |op: Op| {
            let ruled = matches!(op.def().grad, Some(Grad::Rule(_) | Grad::View | Grad::Zero | Grad::Form(_)));
            ruled || op.def().decompose.is_none()
        };
        out = rebuild(&out, |new, node| match node.op.def().grad {
            Some(Grad::Form(form)) if new.id == main && formed(node) => {
                let from = new.graph.order.len();
                reform(new, node, form)?;
                overwritten_saves::hand_on(new, node, from);
                Ok(())
            }
            _ if new.id == main && composed(node) => {
                let from = new.graph.order.len();
                lower_node(new, node, &whole)?;
                overwritten_saves::hand_on(new, node, from);
                Ok(())
            }
            _ => {
                let args = new.args(node);
                new.keep(node, args);
                Ok(())
            }
        })?;
    }
    Err(Error::invalid("operators are replaced by each other without end"))
}

/// The nodes between the targets and the losses.
pub(super) struct NodesBetween {
    /// Values that a gradient reaches.
    pub reached: Table<ValueId, bool>,
    pub flow: Flow,
}

/// The values between the targets and the loss.
pub(super) fn between(program: &Program, losses: &[usize], targets: &[usize]) -> NodesBetween {
    let graph = program.graph();
    let flow = Flow::new(graph, targets.iter().map(|i| program.signature.inputs[*i].value));
    let mut reached: Table<ValueId, bool> = Table::new();
    losses.iter().flat_map(|l| graph.outputs[*l].values()).for_each(|v| reached.set(*v, flow.needs[*v]));
    for id in graph.order.iter().rev() {
        let node = &graph.nodes[*id];
        if flow.passes(node) && node.results.iter().any(|r| reached[*r]) {
            let skipped = usize::from(node.op.def().history);
            node.operands().skip(skipped).filter(|v| flow.needs[*v]).for_each(|v| reached.set(v, true));
        }
    }
    NodesBetween { reached, flow }
}

/// Puts the form of a call in its place.
fn reform(new: &mut Rebuilt<'_>, node: &Node, form: FormFn) -> Result<()> {
    let old = new.old;
    let args = new.args(node);
    let args: Vec<Arg<Val, Expr>> = args.iter().map(|a| a.map_values(|v| val(*v))).collect();
    let needs = vec![true; node.operands().count()];
    let hint = node.results.first().map_or("v".into(), |r| old.values[*r].name.clone());
    let before = new.graph.values.len();
    let (origin, conditions) = (node.origin.clone(), Some(new.conditions()));
    let near = super::emit::types_of_node(old, node);
    let mut emit = GraphEmit { graph: &mut new.graph, names: &mut new.names, origin, hint, conditions, near };
    let call = GradCall { op: node.op, args: &args, results: &[], grads: &[], needs: &needs };
    let made = form(&mut emit, &call).map_err(refused)?;
    if made.len() != node.results.len() {
        return Err(Error::invalid(format!("{} is {} results in its other form", node.op, made.len())));
    }
    for (&o, &n) in node.results.iter().zip(&made) {
        // A result that is not asked for has no type, and no reader.
        let Some(want) = old.values[o].ty.tensor().cloned() else {
            new.map.set(o, Some(value(n)));
            continue;
        };
        let have = emit.ty(n);
        let same = have.dtype == want.dtype && have.rank() == want.rank();
        if !same {
            return Err(Error::invalid(format!("{} gives {have}, but the program declares {want}", node.op)));
        }
        let n = value(n);
        // The declared layout is the one that counts, for values that the form made.
        if restride_ir::Id::index(n) >= before {
            emit.graph.values[n].ty = Type::Tensor(want);
        }
        new.map.set(o, Some(n));
    }
    Ok(())
}
