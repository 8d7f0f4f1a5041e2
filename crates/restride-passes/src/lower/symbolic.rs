//! Compositions on symbolic sizes.
//!
//! A composition reads known sizes. The call is composed at several values of the symbols, far apart, and at the least and
//! the largest. If all give the same calls, the numbers among the arguments become expressions that fit all of them. A
//! composition whose calls differ is refused: a loop over a symbolic number of steps, a case for a tall matrix.
//!
//! # Assumption
//! A composition that makes the same calls at all these values makes them at the others. Sizes of a run are checked against
//! the shape rules again.

use super::{LowerOptions, compose};
use crate::build::Rebuilt;
use crate::symbolic_fit::Witnesses;
use crate::symbolic_shapes::result_types_near;
use restride_ir::{Arg, Error, Expr, Graph, Id, Names, Node, OpError, Result, Scalar, TensorType, Type, ValueId};
use std::convert::Infallible;
use std::sync::Arc;

/// A call composed at one value of each symbol. Inputs of the graph are the call's operands.
struct SymbolicComposition {
    graph: Graph,
    results: Vec<ValueId>,
}

/// Takes a node apart, down to operators that stay `whole`.
pub(super) fn lower_node(new: &mut Rebuilt<'_>, node: &Node, args: Vec<Arg>, rules: &LowerOptions<'_>) -> Result<()> {
    let refuse = |why: String| {
        Error::unsupported(format!("{}: its composition depends on sizes that are not known ({why})", node.op))
            .help("export the program with these sizes fixed")
    };
    let rules = &LowerOptions { any_sizes: true, ..*rules };
    let mut operands: Vec<ValueId> = Vec::new();
    for v in args.iter().flat_map(Arg::values) {
        if !operands.contains(v) {
            operands.push(*v);
        }
    }
    let types: Vec<TensorType> = operands.iter().map(|v| new.graph.tensor(*v).clone()).collect();
    // Numbers of the composition are often sizes of its results: half of an operand's, say.
    let results = node.results.iter().filter_map(|r| new.old.values[*r].ty.tensor().cloned());
    let near: Vec<TensorType> = types.iter().cloned().chain(results).collect();
    let mut witnesses = Witnesses::new(&near, args.iter().flat_map(Arg::scalars), new.conditions());
    let composed = witnesses
        .try_each(|b| {
            let mut graph = Graph::new();
            for (i, ty) in types.iter().enumerate() {
                graph.add_input(format!("v{i}"), Type::Tensor(crate::symbolic_shapes::at(ty, b)?));
            }
            let operand = |v: &ValueId| graph.inputs[operands.iter().position(|o| o == v).expect("an operand")];
            let number = |e: &Expr| e.eval(b).map(Expr::from).map_err(OpError::new);
            let known = args.iter().map(|a| a.try_map(|v| Ok(operand(v)), number));
            let known = known.collect::<std::result::Result<Vec<Arg>, OpError>>()?;
            let hint: Arc<str> = "v".into();
            let results = compose(&mut graph, &mut Names::default(), &node.origin, hint, node.op, &known, rules)?;
            Ok(SymbolicComposition { graph, results })
        })
        .map_err(|e| refuse(e.to_string()))?;
    let first = &composed[0];
    let nodes = |c: &SymbolicComposition, k: usize| c.graph.nodes[c.graph.order[k]].clone();
    if composed.iter().any(|c| c.graph.order.len() != first.graph.order.len() || c.results != first.results) {
        return Err(refuse("their number is the number of its calls".into()));
    }
    let before = new.graph.values.len();
    let hint = node.results.first().map_or("v".into(), |r| new.old.values[*r].name.clone());
    // The compositions' values in the new graph; they have the same numbers in each composition.
    let mut map: Vec<Option<ValueId>> = operands.iter().copied().map(Some).collect();
    for k in 0..first.graph.order.len() {
        let calls: Vec<Node> = composed.iter().map(|c| nodes(c, k)).collect();
        let op = calls[0].op;
        if calls.iter().any(|c| c.op != op || c.results != calls[0].results || c.args.len() != calls[0].args.len()) {
            return Err(refuse(format!("other sizes need other calls than {op}")));
        }
        let mut call = Vec::with_capacity(calls[0].args.len());
        for i in 0..calls[0].args.len() {
            let each: Vec<&Arg> = calls.iter().map(|c| &c.args[i]).collect();
            let said = said(&each, &witnesses).ok_or_else(|| refuse(format!("an argument of {op}")))?;
            call.push(said.map_values(|v| map[v.index()].expect("values are made in order")));
        }
        let types = result_types_near(op, &call, new.conditions(), &near, |v| new.graph.tensor(v).clone())
            .map_err(|e| refuse(e.to_string()))?;
        for (j, &r) in calls[0].results.iter().enumerate() {
            let made = composed.iter().map(|c| c.graph.tensor(r));
            if !types.get(j).is_some_and(|ty| witnesses.fit(ty, made)) {
                return Err(refuse(format!("the type of a result of {op}")));
            }
            witnesses.add_sizes(&types[j]);
        }
        let results: Vec<(Arc<str>, Type)> =
            types.into_iter().map(|ty| (new.names.fresh(&hint), Type::Tensor(ty))).collect();
        let id = new.graph.add_node(op, call, results, node.origin.clone());
        for (&r, &n) in calls[0].results.iter().zip(&new.graph.nodes[id].results) {
            map.resize(map.len().max(r.index() + 1), None);
            map[r.index()] = Some(n);
        }
    }
    let made: Vec<ValueId> =
        first.results.iter().map(|v| map[v.index()].expect("results are operands or made")).collect();
    super::replace(new, node, &made, before)
}

/// The argument that is these at the witnesses.
fn said(each: &[&Arg], witnesses: &Witnesses) -> Option<Arg> {
    let blank = |a: &Arg| -> Arg {
        let blanked: std::result::Result<_, Infallible> = a.try_map(|v| Ok(*v), |_| Ok(Expr::Int(0)));
        match blanked {
            Ok(a) => a,
        }
    };
    let first = blank(each[0]);
    let count = each[0].scalars().len();
    if each.iter().any(|a| blank(a) != first || a.scalars().len() != count) {
        return None;
    }
    let mut at = 0;
    first
        .try_map(
            |v| Ok(*v),
            |_| {
                let values: Option<Vec<Scalar>> = each.iter().map(|a| a.scalars()[at].constant()).collect();
                at += 1;
                witnesses.expression(&values.ok_or(())?).ok_or(())
            },
        )
        .ok()
}
