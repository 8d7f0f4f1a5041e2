//! Ends of gradients that a file states: exported functional programs have no `no_grad` regions, and PyTorch differentiates through
//! every call that they hold. So what leaves such a region is detached.

use crate::build::Rebuilt;
use restride_ir::{Arg, Graph, GraphId, Node, Program, Stage, Table, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// The program with a `detach` of each value that leaves a `no_grad` region: one that other calls read, or an output. A program that is
/// written for inference alone, or is not functional, stays as it is.
///
/// Calls that read a value for its elements, and another one for its history, read it as it is.
pub fn detached(program: Program) -> Program {
    if program.inference || program.stage != Stage::Functional {
        return program;
    }
    let found = program.graphs.iter().map(|(id, g)| (id, leaving(g)));
    let found: BTreeMap<GraphId, BTreeSet<ValueId>> = found.filter(|(_, values)| !values.is_empty()).collect();
    if found.is_empty() {
        return program;
    }
    let mut out = program.copy_without(|id| found.contains_key(&id));
    for (id, leaving) in &found {
        ended(*id, &program.graphs[*id], leaving).finish(&mut out);
    }
    out
}

fn ended<'a>(id: GraphId, old: &'a Graph, leaving: &BTreeSet<ValueId>) -> Rebuilt<'a> {
    let mut new = Rebuilt::new(id, old);
    let mut ends: Table<ValueId, Option<ValueId>> = Table::new();
    for (_, node) in old.ordered() {
        let read = |v: &ValueId| ends[*v].filter(|_| reads(node)).or(new.map[*v]).expect("operands come first");
        let args = node.args.iter().map(|a| a.map_values(read)).collect();
        new.keep(node, args);
        for r in node.results.iter().filter(|r| leaving.contains(r)) {
            let held = new.map[*r].expect("the node was kept");
            let end = new.builder(node, *r).call("aten.detach.default", vec![Arg::Value(held)], old.tensor(*r).clone());
            ends.set(*r, Some(end));
        }
    }
    old.output_values().filter(|v| ends[*v].is_some()).for_each(|v| new.map.set(v, ends[v]));
    new
}

/// Whether autograd records a call, as a reader of all of its operands.
fn reads(node: &Node) -> bool {
    !node.origin.no_grad && !node.op.def().history
}

/// Values of calls that autograd does not record, where others read them, or that are outputs.
fn leaving(graph: &Graph) -> BTreeSet<ValueId> {
    let differentiable =
        |v: &ValueId| graph.values[*v].ty.tensor().is_some_and(|t| t.dtype.is_float() || t.dtype.is_complex());
    let ends = |node: &Node| node.origin.no_grad && !node.op.def().detaches && node.operands().next().is_some();
    let inside: BTreeSet<ValueId> = graph
        .ordered()
        .filter(|(_, node)| ends(node))
        .flat_map(|(_, node)| node.results.iter().copied().filter(differentiable))
        .collect();
    let read = graph.ordered().filter(|(_, node)| reads(node)).flat_map(|(_, node)| node.operands());
    read.chain(graph.output_values()).filter(|v| inside.contains(v)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ops::lookup;

    const TEXT: &str = "stage: functional
        graph(%x: f32[4], %w: f32[4]) {
          %a: f32[4] = aten.mul.Tensor(%x, %w) !no_grad
          %b: f32[4] = aten.relu.default(%a) !no_grad
          %c: f32[4] = aten.zeros.default([4]) !no_grad
          %d: f32[4] = aten.add.Tensor(%b, %c)
          %e: f32[4] = aten.mul.Tensor(%d, %b)
          return %e, %a
        }";

    #[test]
    fn what_leaves_a_region_is_detached_once() {
        let program = restride_ir::text::parse(TEXT, &lookup).unwrap();
        let text = restride_ir::text::print(&detached(program.clone()));
        for line in [
            "%a_1: f32[4] = aten.detach.default(%a) !no_grad",
            "%b: f32[4] = aten.relu.default(%a) !no_grad",
            "%b_1: f32[4] = aten.detach.default(%b) !no_grad",
            "%d: f32[4] = aten.add.Tensor(%b_1, %c)",
            "%e: f32[4] = aten.mul.Tensor(%d, %b_1)",
            "return %e, %a_1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let alone = Program { inference: true, ..program };
        assert!(!restride_ir::text::print(&detached(alone)).contains("detach"));
    }
}
