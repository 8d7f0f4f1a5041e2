//! Effects: the operands that a node reads, writes and aliases, derived from declarations on demand.
//!
//! Effects say *may*: by an alias annotation or a view rule, a result may share memory with an operand. Regions decide
//! which cells it shares, if any.

use crate::higher_order::{HopCall, HopItem};
use crate::{
    Arg, CollectTree, Error, Graph, GraphId, Hop, Id, Node, Op, Program, Result, Table, Twin, TwinReturn, ValueId,
};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::ops::Range;

/// Effect of a node on its operands, which are positions in [`Node::operands`]; [`operands_of`] gives those of an argument.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Effect {
    /// Operands whose elements may be read.
    pub reads: SmallVec<[usize; 4]>,
    /// Operands whose memory may be written, or that (metadata operators) become another view.
    pub writes: SmallVec<[usize; 1]>,
    /// Pairs (result, operand) that may share memory.
    pub aliases: SmallVec<[(usize, usize); 1]>,
}

/// Positions of an argument's values among [`Node::operands`].
pub fn operands_of<V, S>(args: &[Arg<V, S>], arg: usize) -> Range<usize> {
    let start = args.iter().take(arg).map(|a| a.values().count()).sum();
    start..start + args.get(arg).map_or(0, |a| a.values().count())
}

/// Effect of a graph on its inputs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Inputs whose memory may be written.
    pub writes: BTreeSet<usize>,
    /// For each output, the inputs that it may share memory with.
    pub aliases: Vec<BTreeSet<usize>>,
}

/// Effects of the nodes of a program, through its subgraphs.
pub struct Effects {
    summaries: Table<GraphId, Summary>,
}

impl Effects {
    /// Derives the effects of all graphs, callees first.
    pub fn new(program: &Program) -> Result<Effects> {
        let mut effects = Effects { summaries: Table::new() };
        for id in callees_first(program)? {
            let summary = effects.summarize(&program.graphs[id])?;
            effects.summaries.set(id, summary);
        }
        Ok(effects)
    }

    /// Effect of a graph.
    pub fn graph(&self, id: GraphId) -> &Summary {
        &self.summaries[id]
    }

    /// Effect of a node.
    pub fn node(&self, graph: &Graph, node: &Node) -> Result<Effect> {
        if node.op.def().hop.is_some() {
            let call = HopCall::of(graph, node)?;
            if let Some(call) = call {
                return Ok(self.hop(&call, node));
            }
        }
        let mut effect = schema_effect(node.op, &node.args, node.results.len());
        if node.op.def().fused {
            return Ok(effect);
        }
        // An undeclared operator with subgraphs may do anything to all of its operands.
        let operands = 0..node.operands().count();
        for body in node.bodies() {
            if !self.summaries[body].writes.is_empty() {
                effect.writes = operands.clone().collect();
            }
            for r in 0..node.results.len() {
                effect.aliases.extend(operands.clone().map(|o| (r, o)));
            }
        }
        effect.aliases.sort_unstable();
        effect.aliases.dedup();
        Ok(effect)
    }

    fn hop(&self, call: &HopCall, node: &Node) -> Effect {
        let operand: Vec<Option<usize>> = call
            .inputs()
            .map(|item| if let HopItem::Tensor { operand, .. } = item { Some(*operand) } else { None })
            .collect();
        let carried = call.carried.len();
        // Values that each input of a body may hold: the operand, and in later rounds the results of earlier ones.
        let mut holds: Vec<BTreeSet<usize>> = operand.iter().map(|o| o.iter().copied().collect_set()).collect();
        let body = call.bodies.last().map(|b| &self.summaries[*b]);
        let step: &[BTreeSet<usize>] = body.map_or(&[], |b| b.aliases.as_slice());
        let mut changed = matches!(call.hop, Hop::WhileLoop | Hop::Scan);
        while std::mem::take(&mut changed) {
            for (k, roots) in step.iter().enumerate().take(carried) {
                let more: Vec<usize> = roots.iter().filter_map(|j| holds.get(*j)).flatten().copied().collect();
                let before = holds[k].len();
                holds[k].extend(more);
                changed |= holds[k].len() > before;
            }
        }
        let mut writes = BTreeSet::new();
        for b in &call.bodies {
            for j in &self.summaries[*b].writes {
                writes.extend(holds.get(*j).into_iter().flatten());
            }
        }
        let mut aliases = BTreeSet::new();
        for r in 0..node.results.len() {
            match call.hop {
                Hop::Cond => {
                    let outs = call.bodies.iter().filter_map(|b| self.summaries[*b].aliases.get(r));
                    let roots = outs.flatten().filter_map(|j| holds.get(*j)).flatten();
                    aliases.extend(roots.map(|&o| (r, o)));
                }
                // Carried values are returned as they are, perhaps after no iteration; the others are stacked.
                Hop::WhileLoop | Hop::Scan if r < carried => aliases.extend(holds[r].iter().map(|&o| (r, o))),
                _ => {}
            }
        }
        Effect {
            reads: (0..node.operands().count()).collect(),
            writes: writes.into_iter().collect(),
            aliases: aliases.into_iter().collect(),
        }
    }

    fn summarize(&self, graph: &Graph) -> Result<Summary> {
        let mut roots: Table<ValueId, BTreeSet<usize>> = Table::new();
        for (i, &v) in graph.inputs.iter().enumerate() {
            roots.entry(v).insert(i);
        }
        let mut writes = BTreeSet::new();
        for (id, node) in graph.ordered() {
            let effect = self.node(graph, node).map_err(|e| e.at(graph, id))?;
            if effect.writes.is_empty() && effect.aliases.is_empty() {
                continue;
            }
            let operands: Vec<ValueId> = node.operands().collect();
            for &o in &effect.writes {
                writes.extend(&roots[operands[o]]);
            }
            for &(r, o) in &effect.aliases {
                let from = roots[operands[o]].clone();
                roots.entry(node.results[r]).extend(from);
            }
            // `set_` makes argument 0 a view of another one, for all names of argument 0.
            if node.op.def().metadata {
                let base = operands_of(&node.args, node.op.def().base as usize);
                if let (Some(base), Some(&own)) = (base.clone().next(), operands.first()) {
                    let from = roots[operands[base]].clone();
                    roots.entry(own).extend(from);
                }
            }
        }
        let aliases = graph.outputs.iter().map(|out| out.values().flat_map(|v| roots[*v].clone()).collect()).collect();
        Ok(Summary { writes, aliases })
    }
}

/// Effect of an operator without subgraphs: from schema, view rule and functional form.
pub fn schema_effect<V>(op: Op, args: &[Arg<V, crate::Expr>], results: usize) -> Effect {
    let schema = op.schema();
    let mut effect = Effect::default();
    let twin = op.twin();
    let written = |arg: usize| {
        let by_schema = schema.args.get(arg).is_some_and(|a| a.alias.as_ref().is_some_and(|x| x.write));
        by_schema || twin.is_some_and(|t| t.writes.iter().any(|w| w.0 as usize == arg))
    };
    let mutates = op.mutates(args);
    // An `out=` tensor is resized and filled, so its old content is not read.
    let overwrites = twin.is_some_and(|t: &Twin| t.resizes);
    for arg in 0..args.len() {
        let writes = mutates && (written(arg) || (op.def().metadata && arg == 0));
        let operands = operands_of(args, arg);
        if writes {
            effect.writes.extend(operands.clone());
        }
        if !(writes && overwrites) {
            effect.reads.extend(operands);
        }
    }
    let returns = returns_of_results(op, results);
    for (r, &ret) in returns.iter().enumerate() {
        let mut alias = |arg: usize| effect.aliases.extend(operands_of(args, arg).map(|o| (r, o)));
        if op.is_view() {
            alias(op.def().base as usize);
        }
        let Some(ret) = ret else {
            (0..args.len()).for_each(alias);
            continue;
        };
        if let Some(Some(TwinReturn::Arg(arg))) = twin.map(|t| t.returns.get(ret)) {
            alias(*arg as usize);
        }
        let Some(out) = schema.returns.get(ret).and_then(|r| r.alias.as_ref()) else { continue };
        for (arg, slot) in schema.args.iter().enumerate() {
            let Some(into) = &slot.alias else { continue };
            let wild = out.sets.contains(&'*') || into.sets.contains(&'*');
            if wild || out.sets.iter().any(|s| into.sets.contains(s)) {
                alias(arg);
            }
        }
    }
    effect.aliases.sort_unstable();
    effect.aliases.dedup();
    effect
}

/// Return of the schema for each result, lists being spread; `None` if several lists make it ambiguous.
fn returns_of_results(op: Op, results: usize) -> Vec<Option<usize>> {
    use crate::ArgType::{OptTensors, Tensors};
    let returns = &op.schema().returns;
    let lists: Vec<usize> =
        returns.iter().enumerate().filter(|(_, r)| matches!(r.ty, Tensors | OptTensors)).map(|(i, _)| i).collect();
    match lists[..] {
        [] => (0..results).map(|r| (r < returns.len()).then_some(r)).collect(),
        [list] => {
            let after = returns.len() - list - 1;
            (0..results)
                .map(|r| {
                    let from_end = results - r;
                    Some(if r < list {
                        r
                    } else if from_end <= after {
                        returns.len() - from_end
                    } else {
                        list
                    })
                })
                .collect()
        }
        _ => vec![None; results],
    }
}

/// Graphs reachable from the main one, callees first.
///
/// # Errors
/// A graph calls itself.
pub fn callees_first(program: &Program) -> Result<Vec<GraphId>> {
    #[derive(Clone, Copy, Default, PartialEq)]
    enum Mark {
        #[default]
        New,
        Open,
        Done,
    }
    let callees = |id: GraphId| -> Result<Vec<GraphId>> {
        let graph = &program.graphs[id];
        // The verifier calls this before ids are checked.
        let nodes = graph.order.iter().filter_map(|n| graph.nodes.get(*n));
        let args = nodes.flat_map(|n| &n.args).chain(&graph.outputs);
        args.filter_map(Arg::graph)
            .map(|g| match program.graphs.get(g) {
                Some(_) => Ok(g),
                None => Err(Error::invalid(format!("undefined subgraph number {}", g.index()))),
            })
            .collect()
    };
    let mut marks: Table<GraphId, Mark> = Table::new();
    let mut out = Vec::new();
    marks.set(program.main, Mark::Open);
    let mut stack = vec![(program.main, callees(program.main)?, 0)];
    while let Some((id, called, next)) = stack.last_mut() {
        let id = *id;
        match called.get(*next).copied() {
            Some(g) => {
                *next += 1;
                match marks[g] {
                    Mark::Open => {
                        let name = &program.graphs[g].name;
                        return Err(Error::invalid(format!("subgraph {name:?} (number {}) calls itself", g.index())));
                    }
                    Mark::Done => {}
                    Mark::New => {
                        marks.set(g, Mark::Open);
                        stack.push((g, callees(g)?, 0));
                    }
                }
            }
            None => {
                marks.set(id, Mark::Done);
                out.push(id);
                stack.pop();
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ops::lookup;
    use crate::text::parse;

    fn effect(call: &str) -> Effect {
        let text = format!(
            "graph(%x: f32[2], %y: f32[2], %z: f32[2]) {{\n  {call}\n  return\n}}
            graph @writes(%a: f32[2], %b: f32[2]) {{\n %v: f32[2] = aten.t.default(%b)\n %w: f32[2] = aten.relu_.default(%v)\n return %a\n}}
            graph @reads(%a: f32[2], %b: f32[2]) {{\n %r: f32[2] = aten.relu.default(%a)\n return %b\n}}
            graph @swap(%a: f32[2], %b: f32[2]) {{\n return %b, %a\n}}
            graph @first(%a: f32[2], %b: f32[2]) {{\n %r: f32[2] = aten.relu_.default(%a)\n return %r\n}}
            graph @outer(%a: f32[2], %b: f32[2]) {{\n %c: f32[2] = higher_order.cond(%a, @reads, @writes, [%b, %a])\n return %c\n}}"
        );
        let program = parse(&text, &lookup).unwrap();
        let effects = Effects::new(&program).unwrap();
        let graph = program.graph();
        effects.node(graph, &graph.nodes[graph.order[0]]).unwrap()
    }

    fn check(call: &str, reads: &[usize], writes: &[usize], aliases: &[(usize, usize)]) {
        let e = effect(call);
        assert_eq!((&e.reads[..], &e.writes[..], &e.aliases[..]), (reads, writes, aliases), "{call}");
    }

    #[test]
    fn schemas_and_view_rules_say_what_calls_do() {
        check("%r: f32[2] = aten.add.Tensor(%x, %y)", &[0, 1], &[], &[]);
        check("%r: f32[2] = aten.add_.Tensor(%x, %y)", &[0, 1], &[0], &[(0, 0)]);
        check("%r: f32[2] = aten.add.out(%x, %y, out=%z)", &[0, 1], &[2], &[(0, 2)]);
        check("%r: f32[2] = aten.t.default(%x)", &[0], &[], &[(0, 0)]);
        check("%r: f32[2] = aten.t_.default(%x)", &[0], &[0], &[(0, 0)]);
        check("%r: f32[1], %s: f32[1] = aten.split.default(%x, 1)", &[0], &[], &[(0, 0), (1, 0)]);
        check("aten._foreach_neg_.default([%x, %y])", &[0, 1], &[0, 1], &[]);
        check("%r: f32[2], %s: f32[2] = test.two.default(%x, %y)", &[0, 1], &[0], &[(0, 0), (1, 1)]);
    }

    #[test]
    fn silent_writes_follow_the_arguments() {
        check("%r: f32[2] = aten.norm.default(%x, %y, None, True)", &[0, 1], &[1], &[]);
        check("%r: f32[2] = aten.norm.default(%x, %y, None, False)", &[0, 1], &[], &[]);
        check("%r: f32[2] = aten.norm.default(%x, None, %y, True)", &[0, 1], &[], &[]);
    }

    #[test]
    fn subgraphs_are_looked_through() {
        check("%r: f32[2] = higher_order.cond(%x, @reads, @reads, [%y, %z])", &[0, 1, 2], &[], &[(0, 2)]);
        check("%r: f32[2] = higher_order.cond(%x, @reads, @writes, [%y, %z])", &[0, 1, 2], &[2], &[(0, 1), (0, 2)]);
        check("%r: f32[2] = higher_order.cond(%x, @outer, @reads, [%y, %z])", &[0, 1, 2], &[1], &[(0, 1), (0, 2)]);
        check("%r: f32[2] = higher_order.map_impl(@writes, [%x], [%y])", &[0, 1], &[1], &[]);
    }

    #[test]
    fn loops_carry_what_earlier_rounds_returned() {
        check(
            "%r: f32[2], %s: f32[2] = higher_order.while_loop(@reads, @swap, [%x, %y], [])",
            &[0, 1],
            &[],
            &[(0, 0), (0, 1), (1, 0), (1, 1)],
        );
        check("%r: f32[2] = higher_order.while_loop(@reads, @first, [%x], [%y])", &[0, 1], &[0], &[(0, 0)]);
        // The condition sees what the body swapped in.
        check(
            "%r: f32[2], %s: f32[2] = higher_order.while_loop(@first, @swap, [%x, %y], [])",
            &[0, 1],
            &[0, 1],
            &[(0, 0), (0, 1), (1, 0), (1, 1)],
        );
    }

    #[test]
    fn a_graph_that_calls_itself_is_an_error() {
        let text = "graph(%x: f32[2]) {\n %r: f32[2] = higher_order.map_impl(@f, [%x], [])\n return %r\n}
            graph @f(%x: f32[]) {\n %r: f32[] = higher_order.map_impl(@g, [%x], [])\n return %r\n}
            graph @g(%x: f32[]) {\n %r: f32[] = higher_order.map_impl(@f, [%x], [])\n return %r\n}";
        let program = parse(text, &lookup).unwrap();
        assert!(Effects::new(&program).err().unwrap().to_string().contains("calls itself"));
    }
}
