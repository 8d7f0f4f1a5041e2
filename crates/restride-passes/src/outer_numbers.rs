//! Numbers that bodies are given under the names that they have outside. PyTorch passes them as operands; a body may read the symbol
//! itself as well, and needs no operand then.

use restride_ir::{
    Arg, CollectTree, Error, GraphId, HopCall, HopItem, NodeId, Program, Result, Type, ValueId, callees_first,
};
use std::collections::{BTreeMap, BTreeSet};

/// A functional program whose bodies read such numbers as symbols.
///
/// # Errors
/// A body is given a number, computed in the main graph, under another name.
pub(crate) fn as_symbols(mut out: Program) -> Result<Program> {
    let calls = out.call_counts();
    // An operand of a body goes once the calls in the body do not take it any more: bodies come before their callers.
    for id in callees_first(&out)? {
        for at in out.graphs[id].order.clone() {
            let Some((bodies, first, items)) = passed(&out, &calls, id, at)? else { continue };
            for item in items.into_iter().rev() {
                for body in &bodies {
                    out.graphs[*body].inputs.remove(first + item);
                }
                if let Some(Arg::Values(rest)) = out.graphs[id].nodes[at].args.last_mut() {
                    rest.remove(item);
                }
            }
        }
    }
    let graph = out.graph();
    for (id, node) in graph.ordered().filter(|(_, n)| n.op.def().hop.is_some()) {
        let given = |v: ValueId| matches!(graph.values[v].ty, Type::Scalar(_)) && !graph.inputs.contains(&v);
        if let Some(v) = node.operands().find(|v| given(*v)) {
            let what = format!("a body that is given the number %{} under another name", graph.values[v].name);
            return Err(Error::unsupported(what).at(graph, id));
        }
    }
    Ok(out)
}

/// The bodies of a call; the input of each body that is the first one that all bodies take whole; and which of these are numbers that
/// every body has under the same name and reads as a symbol alone.
fn passed(
    program: &Program,
    calls: &BTreeMap<GraphId, usize>,
    graph: GraphId,
    node: NodeId,
) -> Result<Option<(Vec<GraphId>, usize, Vec<usize>)>> {
    let graph = &program.graphs[graph];
    let node = &graph.nodes[node];
    let (Some(call), Some(Arg::Values(_))) = (HopCall::of(graph, node)?, node.args.last()) else { return Ok(None) };
    let number = |item: &HopItem| matches!(item, HopItem::Number(_));
    if !call.rest.iter().any(number) || call.bodies.iter().any(|b| calls.get(b) != Some(&1)) {
        return Ok(None);
    }
    let first = call.carried.len() + call.xs.len();
    let bodies: Vec<_> = call.bodies.iter().map(|b| &program.graphs[*b]).collect();
    let read: Vec<BTreeSet<ValueId>> = bodies
        .iter()
        .map(|b| b.ordered().flat_map(|(_, n)| n.operands()).chain(b.output_values()).collect_set())
        .collect();
    let symbol = |(i, item): &(usize, &HopItem)| {
        let HopItem::Number(e) = item else { return false };
        bodies.iter().zip(&read).all(|(body, read)| {
            let input = body.inputs.get(first + i);
            input.is_some_and(|v| body.values[*v].ty == Type::Scalar(e.clone()) && !read.contains(v))
        })
    };
    let items = call.rest.iter().enumerate().filter(symbol).map(|(i, _)| i).collect();
    Ok(Some((call.bodies, first, items)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ir::text::{parse, print};

    #[test]
    fn nested_bodies_read_the_number_outside() {
        let text = "stage: functional
symbol u0
graph(%n: i64[], %x: f32[3]) {
  %item: Sym(u0) = aten.item.default(%n)
  %some: bool[] = aten.ne.Scalar(%n, 0)
  %r: f32[3] = higher_order.cond(%some, @yes, @no, [%item, %x])
  return %r
}
graph @yes(%k: Sym(u0), %a: f32[3]) {
  %more: bool[] = aten.any.default(%a)
  %s: f32[3] = higher_order.cond(%more, @in, @out, [%a, %k])
  return %s
}
graph @no(%k: Sym(u0), %a: f32[3]) {
  %b: f32[3] = aten.add.Scalar(%a, u0)
  return %b
}
graph @in(%a: f32[3], %k: Sym(u0)) {
  %b: f32[3] = aten.mul.Scalar(%a, u0)
  return %b
}
graph @out(%a: f32[3], %k: Sym(u0)) {
  return %a
}
";
        let made = print(&as_symbols(parse(text, &restride_ops::lookup).unwrap()).unwrap());
        assert!(made.contains("@yes, @no, [%x])") && made.contains("@in, @out, [%a])"), "{made}");
        let other = text.replace("graph @out(%a: f32[3], %k: Sym(u0))", "graph @out(%a: f32[3], %k: Sym(u1))");
        let other = other.replace("symbol u0\n", "symbol u0\nsymbol u1\n");
        assert!(as_symbols(parse(&other, &restride_ops::lookup).unwrap()).is_err());
    }
}
