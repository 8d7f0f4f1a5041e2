//! Numbers that bodies are given under the names that they have outside. PyTorch passes them as operands; a body may read the symbol
//! itself as well, and needs no operand then.

use restride_ir::{Arg, Error, Expr, Graph, GraphId, HopCall, HopItem, NodeId, Program, Result, Type, ValueId};
use std::collections::BTreeMap;

/// A functional program whose bodies read such numbers as symbols.
///
/// # Errors
/// A body is given a number, computed in the main graph, under another name.
pub(crate) fn as_symbols(mut out: Program) -> Result<Program> {
    let mut calls: BTreeMap<GraphId, usize> = BTreeMap::new();
    for (_, node) in out.graphs.iter().flat_map(|(_, g)| g.ordered()) {
        node.args.iter().for_each(|a| {
            if let Arg::Graph(g) = a {
                *calls.entry(*g).or_default() += 1;
            }
        });
    }
    // An operand of a body goes once the calls in the body do not take it any more.
    while let Some((graph, node, item)) = passed(&out, &calls)? {
        let call = HopCall::of(&out.graphs[graph], &out.graphs[graph].nodes[node])?.expect("it was one");
        let first = call.carried.len() + call.xs.len();
        for body in call.bodies {
            out.graphs[body].inputs.remove(first + item);
        }
        if let Some(Arg::Values(rest)) = out.graphs[graph].nodes[node].args.last_mut() {
            rest.remove(item);
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

/// A call with the position, among its operands that bodies take whole, of a number that every body has under the same name and
/// reads as a symbol alone.
fn passed(program: &Program, calls: &BTreeMap<GraphId, usize>) -> Result<Option<(GraphId, NodeId, usize)>> {
    for (id, graph) in program.graphs.iter() {
        for (at, node) in graph.ordered() {
            let (Some(call), Some(Arg::Values(_))) = (HopCall::of(graph, node)?, node.args.last()) else { continue };
            let first = call.carried.len() + call.xs.len();
            let found = call.rest.iter().enumerate().find(|(i, item)| {
                let HopItem::Number(e) = item else { return false };
                call.bodies.iter().all(|b| calls.get(b) == Some(&1) && reads_symbol(&program.graphs[*b], first + i, e))
            });
            if let Some((i, _)) = found {
                return Ok(Some((id, at, i)));
            }
        }
    }
    Ok(None)
}

/// Whether a body's input is this number, and no node or output of the body takes it as a value.
fn reads_symbol(body: &Graph, input: usize, e: &Expr) -> bool {
    let Some(&v) = body.inputs.get(input) else { return false };
    body.values[v].ty == Type::Scalar(e.clone())
        && !body.ordered().any(|(_, n)| n.operands().any(|o| o == v))
        && !body.output_values().any(|o| o == v)
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
