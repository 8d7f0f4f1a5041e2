//! Higher-order calls by their bodies.

use super::invalid;
use crate::higher_order::{HopCall, HopItem};
use crate::{Arg, Graph, Hop, Node, Program, Result, TensorType, Type};

/// A call and its bodies agree in the number, element types and known sizes of values.
pub(super) fn check(program: &Program, graph: &Graph, node: &Node) -> Result<()> {
    crate::tiles::check_fused(program, graph, node)?;
    let Some(call) = HopCall::of(graph, node)? else { return Ok(()) };
    let given = call.inputs().count();
    let carried = call.carried.len();
    let stacks = matches!(call.hop, Hop::Scan | Hop::Map);
    for (k, &b) in call.bodies.iter().enumerate() {
        let body = &program.graphs[b];
        if body.inputs.len() != given {
            return invalid(format!("a body expects {} inputs, got {given}", body.inputs.len()));
        }
        for (i, (item, &v)) in call.inputs().zip(&body.inputs).enumerate() {
            let HopItem::Tensor { value, .. } = item else { continue };
            let (inside, outside) = (&body.values[v].ty, &graph.values[*value].ty);
            if !agree(inside, outside, call.is_slice(i)) {
                let name = &body.values[v].name;
                return invalid(format!("input %{name} of a body is {inside}, but gets {outside}"));
            }
        }
        let condition = call.hop == Hop::WhileLoop && k == 0;
        let wanted = if condition { 1 } else { node.results.len() };
        if body.outputs.len() != wanted {
            return invalid(format!("a body returns {} values, expected {wanted}", body.outputs.len()));
        }
        if condition {
            continue;
        }
        for (i, (out, &r)) in body.outputs.iter().zip(&node.results).enumerate() {
            let Arg::Value(v) = out else { continue };
            let (inside, outside) = (&body.values[*v].ty, &graph.values[r].ty);
            if !agree(inside, outside, stacks && i >= carried) {
                return invalid(format!("a body returns {inside} for %{}, which is {outside}", graph.values[r].name));
            }
        }
    }
    if carried > node.results.len() {
        return invalid(format!("the loop carries {carried} values and returns {}", node.results.len()));
    }
    Ok(())
}

/// Whether a body's value fits one of the call, or a slice of it along dimension 0.
fn agree(inside: &Type, outside: &Type, slice: bool) -> bool {
    let (Type::Tensor(a), Type::Tensor(b)) = (inside, outside) else {
        // Numbers fit numbers; `None` stands for a missing optional value.
        return true;
    };
    let sizes = |t: &TensorType, skip: usize| -> Vec<Option<i64>> {
        t.layout.sizes.iter().skip(skip).map(crate::Dim::known).collect()
    };
    let (x, y) = (sizes(a, 0), sizes(b, slice as usize));
    let same = |(p, q): (&Option<i64>, &Option<i64>)| p.is_none() || q.is_none() || p == q;
    a.dtype == b.dtype && (!slice || b.rank() > 0) && x.len() == y.len() && x.iter().zip(&y).all(same)
}
