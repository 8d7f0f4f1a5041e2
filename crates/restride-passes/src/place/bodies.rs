//! Higher-order calls: their bodies are placed as graphs of their own, and a loop updates carried values in place.

use super::Placer;
use super::overwrite::Write;
use crate::plan::{PlanOptions, plan};
use restride_ir::{Error, GraphId, HopCall, LoopFrame, Nested, NodeId, Placement, Result, Step, aligned};
use std::collections::BTreeMap;

impl Placer<'_> {
    /// Places a higher-order call and its bodies; false for other nodes. Carried values are updated in the operand's memory
    /// where the operand dies.
    pub(super) fn place_call(&mut self, at: usize, id: NodeId, nested: &mut BTreeMap<GraphId, Nested>) -> Result<bool> {
        let facts = self.facts;
        let node = &facts.graph.nodes[id];
        if node.op.def().hop.is_none() {
            return Ok(false);
        }
        let call = HopCall::of(facts.graph, node)?.ok_or_else(|| Error::invalid("not a higher-order operator"))?;
        for (b, &body) in call.bodies.iter().enumerate() {
            self.place_body(body, call.replaced(b), nested)?;
        }
        let mut writes = Vec::new();
        for (k, &r) in node.results.iter().enumerate() {
            if !facts.is_tensor(r) {
                writes.push(None);
                continue;
            }
            let dtype = facts.ty(r)?.dtype;
            let place = match call.takes_over(k) {
                Some(_) => self.result_place(at, id, k, r, &writes)?,
                None => self.moved_place(&Write { taken: &writes, ..Write::moved(at, id) }, r)?,
            };
            self.settle(r, place.clone(), dtype)?;
            writes.push(Some(place));
        }
        let reads = self.reads(id);
        let frame = LoopFrame::of(&facts.program.graphs, facts.id, id, &reads, &writes, nested)?;
        self.places.add_scratch(id, aligned(frame.bytes));
        self.places.placement.steps.push(Step::Run { node: id, reads, writes });
        Ok(true)
    }

    /// Places and plans a body whose first `carried` inputs are replaced by each iteration, once for all of its calls.
    fn place_body(&mut self, body: GraphId, carried: usize, nested: &mut BTreeMap<GraphId, Nested>) -> Result<()> {
        let graph = &self.facts.program.graphs[body];
        if let Some(placed) = nested.get(&body) {
            if placed.carried != carried {
                let text = format!("the graph {} is a loop's body, and another call's", graph.name);
                return Err(Error::unsupported(text).help("give each call a graph of its own"));
            }
            return Ok(());
        }
        let mut inner = BTreeMap::new();
        let facts = &self.all[&(body, carried)];
        let mut placer =
            Placer::new(self.all, facts, self.revision.of_body(body, facts.graph.values.len()), &self.options)
                .run(&mut inner)?;
        self.decisions.remarks.append(&mut placer.decisions.remarks);
        self.revision.regrets.append(&mut placer.revision.regrets);
        let placement: Placement = Placement { nested: inner, ..placer.places.placement };
        let plan = plan(graph, &placement, &PlanOptions::default());
        nested.insert(body, Nested { placement, plan, carried });
        Ok(())
    }
}
