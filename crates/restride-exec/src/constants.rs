//! Values that are computed once, before the runs that read them.

use crate::copy::copy_as;
use crate::inputs::{RunValue, same_strides};
use crate::interp::{RunOptions, call_once};
use restride_ir::{Arg, CollectTree, Error, Graph, OpError, Result, RngKey, Scalar, Table, ValueId, known_meta};
use std::collections::BTreeMap;

/// Computes values of a graph that reads nothing but constants, in which nothing is random. `inputs` has one value per graph input;
/// they are only read. The values are tensors on memory of their own, of the declared types and strides.
///
/// # Errors
/// An operator's own error, with the node; a result of another type than is declared.
pub fn run_constants(graph: &Graph, inputs: &[RunValue], wanted: &[ValueId]) -> Result<Vec<RunValue>> {
    let mut needed: Table<ValueId, bool> = Table::new();
    wanted.iter().for_each(|v| needed.set(*v, true));
    let mut nodes = Vec::new();
    for (id, node) in graph.order.iter().rev().map(|id| (*id, &graph.nodes[*id])) {
        if node.results.iter().any(|r| needed[*r]) {
            node.operands().for_each(|v| needed.set(v, true));
            nodes.push((id, node));
        }
    }
    let mut last: BTreeMap<ValueId, usize> = wanted.iter().map(|v| (*v, nodes.len())).collect_map();
    for (at, (_, node)) in nodes.iter().rev().enumerate() {
        node.operands().for_each(|v| {
            let last = last.entry(v).or_insert(at);
            *last = at.max(*last);
        });
    }
    let mut values: BTreeMap<ValueId, RunValue> =
        graph.inputs.iter().copied().zip(inputs.iter().cloned()).collect_map();
    for (at, (id, node)) in nodes.into_iter().rev().enumerate() {
        let value =
            |v: &ValueId| values.get(v).cloned().ok_or_else(|| OpError::new("a constant that was not computed"));
        let number = |e: &restride_ir::Expr| e.constant().ok_or_else(|| OpError::new(format!("{e} is not known")));
        let args: std::result::Result<Vec<Arg<RunValue, Scalar>>, OpError> =
            node.args.iter().map(|a| a.try_map(value, number)).collect();
        let key = RngKey { seed: 0, call: 0, node: node.origin.key, iteration: 0 };
        let results = args
            .map_err(Error::from)
            .and_then(|args| call_once(node.op, &args, key, &RunOptions::default()))
            .map_err(|e| e.at(graph, id))?;
        values.extend(node.results.iter().copied().zip(results));
        values.retain(|v, _| last.get(v).is_some_and(|l| *l > at));
    }
    let own = |v: &ValueId| -> Result<RunValue> {
        let Some(RunValue::Tensor(t)) = values.get(v) else { return Err(Error::invalid("a constant is no tensor")) };
        let want = known_meta(graph, *v)?;
        if t.dtype() != want.dtype || t.layout().sizes != want.layout.sizes {
            return Err(Error::invalid(format!("a constant is {}{} and is declared as {want}", t.dtype(), t.layout())));
        }
        let given = inputs.iter().filter_map(RunValue::tensor).any(|i| i.storage().meets(t.storage()));
        let fits = same_strides(&want.layout, t.layout()) && !t.conj && !t.neg && !given;
        Ok(RunValue::Tensor(if fits { t.clone() } else { copy_as(t, want.layout)? }))
    };
    wanted.iter().map(own).collect()
}
