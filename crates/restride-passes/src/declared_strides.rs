//! Which values have the strides that they are declared to have when PyTorch runs the file.

use crate::args::{at_witness, type_at};
use restride_ir::{Arg, Binding, Graph, Movement, Table, ValueId};

/// Strides of the values of a graph that is being written.
#[derive(Default)]
pub(crate) struct DeclaredStrides {
    values: Table<ValueId, bool>,
    /// Nodes that were looked at.
    done: usize,
}

impl DeclaredStrides {
    /// Whether PyTorch's tensor has the declared layout.
    pub fn of(&mut self, graph: &Graph, witness: &Binding, v: ValueId) -> bool {
        if self.done == 0 {
            graph.inputs.iter().for_each(|v| self.values.set(*v, true));
        }
        for id in &graph.order[self.done..] {
            let node = &graph.nodes[*id];
            let known = |v: ValueId| graph.values[v].ty.tensor().is_none() || self.values[v];
            let sure = match (node.op.def().movement, node.args.first()) {
                // A scatter's result has the layout of its base.
                (Some(Movement::Scatter { base: 0, .. }), Some(Arg::Value(base))) => known(*base),
                _ => node.op.def().hop.is_none() && node.operands().all(known),
            };
            let metas =
                sure.then(|| at_witness(graph, witness, &node.args)).flatten().and_then(|m| node.op.eager_metas(&m));
            for (i, &r) in node.results.iter().enumerate() {
                let meta = metas.as_ref().filter(|m| m.len() == node.results.len()).map(|m| &m[i]);
                let declared = graph.values[r].ty.tensor().and_then(|t| type_at(t, witness));
                self.values.set(r, meta.zip(declared).is_some_and(|(m, d)| d.same_strides(m)));
            }
        }
        self.done = graph.order.len();
        self.values[v]
    }
}
