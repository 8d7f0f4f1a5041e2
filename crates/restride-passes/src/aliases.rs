//! Compositions whose results are views of their arguments (`meshgrid`, `broadcast_tensors`).
//!
//! Views are known by view rules alone, and these operators have none, as they view several arguments. Decomposed, they are
//! views like any others. They stay as they are if the shared memory is never written, returned or brought in.

use crate::lower::take_apart;
use restride_ir::{
    Arg, Args, Effects, Emit, Graph, GraphId, Kernel, Meta, Node, Op, OpError, Program, Result, Scalar, Type, Val,
    ValueId, ViewOutcome,
};
use restride_ops::lookup;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Compositions of compositions deeper than this are left alone.
const MAX_DEPTH: u32 = 32;

/// The program with such compositions taken apart, where sizes are known and it matters.
///
/// # Errors
/// A composition that fails, with the node.
pub fn expand(program: &Program) -> Result<Option<Program>> {
    let found = |graph: &Graph| graph.ordered().any(|(_, node)| views_arguments(graph, node));
    if !program.graphs.ids().any(|id| found(&program.graphs[id])) {
        return Ok(None);
    }
    let effects = Effects::new(program)?;
    let mut exposed: BTreeSet<(GraphId, ValueId)> = BTreeSet::new();
    for (id, graph) in program.graphs.iter() {
        exposed.extend(share_what_is_seen(graph, &effects)?.into_iter().map(|v| (id, v)));
    }
    let which = |id: GraphId, graph: &Graph, node: &Node| {
        node.results.iter().any(|r| exposed.contains(&(id, *r))) && views_arguments(graph, node)
    };
    if !program.graphs.iter().any(|(id, graph)| graph.ordered().any(|(_, node)| which(id, graph, node))) {
        return Ok(None);
    }
    take_apart(program, |id, graph, node| Ok(which(id, graph, node))).map(Some)
}

/// The values of a graph that may share memory, for any sizes, with a value that is written, returned, or comes from
/// outside.
fn share_what_is_seen(graph: &Graph, effects: &Effects) -> Result<BTreeSet<ValueId>> {
    let mut shared: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
    let mut seen: Vec<ValueId> = graph.inputs.iter().copied().chain(graph.output_values()).collect();
    for (id, node) in graph.ordered() {
        let operands: Vec<ValueId> = node.operands().collect();
        let effect = effects.node(graph, node).map_err(|e| e.at(graph, id))?;
        seen.extend(effect.writes.iter().map(|o| operands[*o]));
        let mut pairs: Vec<_> = effect.aliases.iter().map(|(r, o)| (node.results[*r], operands[*o])).collect();
        if views_arguments(graph, node) {
            pairs.extend(node.results.iter().flat_map(|r| operands.iter().map(|o| (*r, *o))));
        }
        for (a, b) in pairs {
            shared.entry(a).or_default().push(b);
            shared.entry(b).or_default().push(a);
        }
    }
    let mut reached = BTreeSet::new();
    while let Some(v) = seen.pop() {
        if reached.insert(v) {
            seen.extend(shared.get(&v).into_iter().flatten());
        }
    }
    Ok(reached)
}

/// Whether a call is a composition that gives a view of an argument, or the argument.
fn views_arguments(graph: &Graph, node: &Node) -> bool {
    let (op, def) = (node.op, node.op.def());
    let plain = matches!(def.kernel, Kernel::None) && def.view.is_none() && def.hop.is_none();
    let Some(compose) = def.decompose.filter(|_| plain && !op.is_mutable() && op.twin().is_none()) else {
        return false;
    };
    if node.results.iter().any(|r| !matches!(graph.values[*r].ty, Type::Tensor(_))) {
        return false;
    }
    let mut trace = AliasTrace { values: Vec::new(), depth: 0 };
    let args: std::result::Result<Vec<Arg<Val, Scalar>>, ()> = node
        .args
        .iter()
        .map(|a| {
            a.try_map(
                |v| {
                    let meta = graph.values[*v].ty.tensor().and_then(|t| t.known()).ok_or(())?;
                    Ok(trace.push(meta, true))
                },
                |e| e.constant().ok_or(()),
            )
        })
        .collect();
    let Ok(args) = args else { return false };
    // A composition that fails says so when it is run.
    compose(&mut trace, &Args(&args)).is_ok_and(|results| results.iter().any(|v| trace.values[v.0 as usize].1))
}

/// A composition traced with types, and with whether each value is on an argument's memory.
struct AliasTrace {
    values: Vec<(Meta, bool)>,
    depth: u32,
}

impl AliasTrace {
    fn push(&mut self, meta: Meta, of_argument: bool) -> Val {
        self.values.push((meta, of_argument));
        Val(self.values.len() as u32 - 1)
    }

    fn views(&self, op: Op, metas: &[Arg<Meta, Scalar>]) -> std::result::Result<Option<SmallVec<[Meta; 1]>>, OpError> {
        let Some(rule) = op.def().view else { return Ok(None) };
        Ok(match rule.of(metas)? {
            ViewOutcome::Views(views) => Some(views),
            ViewOutcome::Copy | ViewOutcome::Unknown => None,
        })
    }
}

impl Emit for AliasTrace {
    fn call(&mut self, name: &str, args: &[Arg<Val, Scalar>]) -> std::result::Result<SmallVec<[Val; 1]>, OpError> {
        let op = lookup(name).ok_or_else(|| OpError::new(format!("there is no operator {name}")))?;
        let mut args = args.to_vec();
        op.fill_defaults_or_none(&mut args);
        let metas: Vec<Arg<Meta, Scalar>> = args.iter().map(|a| a.map_values(|v| self.meta(*v))).collect();
        if let Some(views) = self.views(op, &metas)? {
            let base = Args(&args).tensor(op.def().base as usize)?;
            let of_argument = self.values[base.0 as usize].1;
            return Ok(views.into_iter().map(|m| self.push(m, of_argument)).collect());
        }
        if let (Kernel::None, Some(compose)) = (op.def().kernel, op.def().decompose) {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(OpError::new(format!("{op} is composed of itself")));
            }
            let made = compose(self, &Args(&args));
            self.depth -= 1;
            return made;
        }
        let infer = op.def().infer.ok_or_else(|| OpError::new(format!("{op} has no shape rule")))?;
        Ok(infer(&Args(&metas))?.into_iter().map(|m| self.push(m, false)).collect())
    }

    fn meta(&self, v: Val) -> Meta {
        self.values[v.0 as usize].0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ir::text;

    #[test]
    fn a_grid_is_views_and_a_stack_is_not() {
        let program = text::parse(
            "graph(%x: f32[2], %y: f32[3]) {\n  %a: f32[2, 3][1, 0], %b: f32[2, 3][0, 1] = aten.meshgrid.default([%x, %y])\n  \
             %c: f32[5] = aten.hstack.default([%x, %y])\n  return %a, %b, %c\n}\n",
            &lookup,
        )
        .unwrap();
        let names = |p: &Program| p.graph().ordered().map(|(_, n)| n.op.name()).collect::<Vec<_>>();
        let expanded = expand(&program).unwrap().expect("a grid to take apart");
        assert_eq!(
            names(&expanded),
            [
                "aten.view.default",
                "aten.expand.default",
                "aten.view.default",
                "aten.expand.default",
                "aten.hstack.default"
            ]
        );
        assert!(expand(&expanded).unwrap().is_none());
    }

    #[test]
    fn a_grid_that_nobody_else_sees_stays() {
        let grid = |then: &str| {
            let source = format!(
                "graph(%n: f32[2]) {{\n  %x: f32[2] = aten.neg.default(%n)\n  \
                 %a: f32[2, 2][1, 0], %b: f32[2, 2][0, 1] = aten.meshgrid.default([%x, %x])\n  \
                 %c: f32[2, 2] = aten.add.Tensor(%a, %b)\n{then}  return %c\n}}\n"
            );
            expand(&text::parse(&source, &lookup).unwrap()).unwrap().is_some()
        };
        assert!(!grid(""));
        assert!(grid("  %d: f32[2] = aten.neg_.default(%x)\n"));
    }
}
