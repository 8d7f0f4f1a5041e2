//! Compositions whose results are views of their arguments (`meshgrid`, `broadcast_tensors`).
//!
//! Views are known by view rules alone, and these operators have none, as they view several arguments. Decomposed, they are
//! views like any others. They stay as they are if the shared memory is never written, returned or brought in.

use crate::lower::take_apart;
use crate::symbolic_fit::Witnesses;
use crate::symbolic_shapes::at;
use restride_ir::{
    Arg, Args, Binding, Conditions, DecomposeFn, Effects, Emit, Graph, GraphId, Kernel, Meta, Node, Op, OpError,
    Program, Result, Scalar, TensorType, Type, Val, ValueId, ViewOutcome,
};
use restride_ops::lookup;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// Compositions of compositions deeper than this are left alone.
const MAX_DEPTH: u32 = 32;

/// The program with such compositions taken apart, where it matters.
///
/// # Errors
/// A composition that fails, or that differs between sizes, with the node.
pub fn expand(program: &Program) -> Result<Option<Program>> {
    let conditions = if program.symbols.is_empty() { Conditions::none() } else { Conditions::of(program) };
    // By the first result of each.
    let mut viewing: BTreeSet<(GraphId, ValueId)> = BTreeSet::new();
    for (id, graph) in program.graphs.iter() {
        let found = graph.ordered().filter(|(_, node)| views_arguments(graph, node, &conditions));
        viewing.extend(found.flat_map(|(_, node)| node.results.first().map(|r| (id, *r))));
    }
    if viewing.is_empty() {
        return Ok(None);
    }
    let views = |id: GraphId, node: &Node| node.results.first().is_some_and(|r| viewing.contains(&(id, *r)));
    let effects = Effects::new(program)?;
    let mut exposed: BTreeSet<(GraphId, ValueId)> = BTreeSet::new();
    for (id, graph) in program.graphs.iter() {
        let seen = share_what_is_seen(graph, &effects, |node| views(id, node))?;
        exposed.extend(seen.into_iter().map(|v| (id, v)));
    }
    let which = |id: GraphId, node: &Node| node.results.iter().any(|r| exposed.contains(&(id, *r))) && views(id, node);
    if !program.graphs.iter().any(|(id, graph)| graph.ordered().any(|(_, node)| which(id, node))) {
        return Ok(None);
    }
    take_apart(program, |id, _, node| Ok(which(id, node))).map(Some)
}

/// The values of a graph that may share memory, for any sizes, with a value that is written, returned, or comes from
/// outside.
fn share_what_is_seen(graph: &Graph, effects: &Effects, views: impl Fn(&Node) -> bool) -> Result<BTreeSet<ValueId>> {
    let mut shared: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
    let mut seen: Vec<ValueId> = graph.inputs.iter().copied().chain(graph.output_values()).collect();
    for (id, node) in graph.ordered() {
        let operands: Vec<ValueId> = node.operands().collect();
        let effect = effects.node(graph, node).map_err(|e| e.at(graph, id))?;
        seen.extend(effect.writes.iter().map(|o| operands[*o]));
        let mut pairs: Vec<_> = effect.aliases.iter().map(|(r, o)| (node.results[*r], operands[*o])).collect();
        if views(node) {
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
fn views_arguments(graph: &Graph, node: &Node, conditions: &Conditions) -> bool {
    let (op, def) = (node.op, node.op.def());
    let plain = matches!(def.kernel, Kernel::None) && def.view.is_none() && def.hop.is_none();
    let Some(compose) = def.decompose.filter(|_| plain && !op.is_mutable() && op.twin().is_none()) else {
        return false;
    };
    if node.results.iter().any(|r| !matches!(graph.values[*r].ty, Type::Tensor(_))) {
        return false;
    }
    let tensors = node.operands().map(|v| graph.values[v].ty.tensor().cloned());
    let Some(types) = tensors.collect::<Option<Vec<TensorType>>>() else { return false };
    // A composition that fails says so when it is run.
    let views_at = |b: &Binding| Ok(traces_view(compose, graph, node, b).unwrap_or(false));
    let numbers = node.args.iter().flat_map(Arg::scalars);
    if types.iter().all(|t| t.known().is_some()) && numbers.clone().all(|e| e.constant().is_some()) {
        return views_at(&Binding::default()).is_ok_and(|views| views);
    }
    let mut sizes = Witnesses::new(&types, numbers, conditions);
    sizes.try_each(views_at).is_ok_and(|views: Vec<bool>| views.contains(&true))
}

/// Whether a composition gives a view of an argument at these values of symbols.
fn traces_view(
    compose: DecomposeFn,
    graph: &Graph,
    node: &Node,
    symbols: &Binding,
) -> std::result::Result<bool, OpError> {
    let mut trace = AliasTrace { values: Vec::new(), depth: 0 };
    let tensor = |v: &ValueId| {
        let ty = graph.values[*v].ty.tensor().ok_or_else(|| OpError::new("no tensor"))?;
        let meta = at(ty, symbols)?.known().ok_or_else(|| OpError::new("a size that is not known"))?;
        Ok(trace.push(meta, true))
    };
    let args: Vec<Arg<Val, Scalar>> = Arg::try_map_all(&node.args, tensor, |e| e.eval(symbols).map_err(OpError::new))?;
    let results = compose(&mut trace, &Args(&args))?;
    Ok(results.iter().any(|v| trace.values[v.0 as usize].1))
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
    fn a_grid_of_symbolic_sizes_is_views() {
        let program = text::parse(
            "symbol s0 in [2, 9]\ngraph(%x: f32[s0], %y: f32[s0]) {\n  \
             %a: f32[s0, s0][1, 0], %b: f32[s0, s0][0, 1] = aten.meshgrid.default([%x, %y])\n  \
             %c: f32[s0], %d: f32[s0] = aten.broadcast_tensors.default([%x, %y])\n  \
             %e: f32[s0] = aten.add_.Tensor(%x, 1)\n  return %a, %b, %c\n}\n",
            &lookup,
        )
        .unwrap();
        let expanded = expand(&program).unwrap().expect("compositions to take apart");
        let views = expanded.graph().ordered().filter(|(_, n)| n.op.is_view()).count();
        assert_eq!((views, expanded.graph().ordered().count()), (6, 7));
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
