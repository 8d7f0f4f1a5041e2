//! Exchanges in flight: from its start to its wait, an exchange reads its operands and writes its result at any time.
//!
//! Until the wait, no step may read or write a cell of the result, or write a cell of an operand. Exchanges start in the program's
//! order, which is the same on all ranks.

use crate::FaultKind;
use crate::placement::PlacementWalk;
use restride_ir::{Graph, GraphId, Kernel, Node, NodeId, Place, Program, ValueId};
use restride_tensor::{Overlap, overlap_bytes};
use std::collections::VecDeque;

/// How deep bodies are nested at most.
const DEEPEST: usize = 64;

/// Whether a node exchanges elements with other ranks, itself or in a body.
fn exchanges(program: &Program, node: &Node, depth: usize) -> bool {
    let body = |id: GraphId| {
        let graph = program.graphs.get(id).filter(|_| depth < DEEPEST);
        graph.is_some_and(|g| g.ordered().any(|(_, n)| exchanges(program, n, depth + 1)))
    };
    matches!(node.op.def().kernel, Kernel::Collective(_)) || node.bodies().any(body)
}

/// Nodes of a graph that exchange elements with other ranks, in the program's order.
pub(crate) fn in_order(program: &Program, graph: &Graph) -> VecDeque<NodeId> {
    graph.ordered().filter(|(_, n)| exchanges(program, n, 0)).map(|(id, _)| id).collect()
}

/// Memory of an exchange that was started.
pub(crate) struct HeldMemory {
    /// The node that waits for it.
    wait: NodeId,
    /// Its result.
    result: ValueId,
    /// Places of the operands, and sizes of their elements.
    operands: Vec<(Option<Place>, usize)>,
    /// Place of the result, and the size of its elements.
    target: (Place, usize),
}

impl PlacementWalk<'_> {
    /// Checks that the exchanges of a step come next among the program's exchanges.
    pub(crate) fn takes_turn(&mut self, id: NodeId) {
        match self.to_exchange.iter().position(|n| *n == id) {
            None => {}
            Some(0) => drop(self.to_exchange.pop_front()),
            Some(k) => {
                self.to_exchange.remove(k);
                let what = "exchanges elements before an earlier exchange of the program: ranks would not agree";
                self.fault(FaultKind::InFlight, None, None, what);
            }
        }
    }

    /// Records the exchange that a step starts, if a later node waits for it. Without one, the step carries it out.
    pub(crate) fn launch(&mut self, id: NodeId, reads: &[Option<Place>], writes: &[Option<Place>]) {
        let node = &self.graph.nodes[id];
        let (Kernel::Collective(_), &[result]) = (node.op.def().kernel, &node.results[..]) else { return };
        let waits = |(_, n): &(NodeId, &restride_ir::Node)| n.op.def().awaits && n.operands().next() == Some(result);
        let Some((wait, _)) = self.graph.ordered().find(waits) else { return };
        let size = |v: ValueId| self.metas[v].as_ref().map_or(1, |m| m.dtype.size());
        let operands = node.operands().zip(reads).map(|(v, p)| (p.clone(), size(v))).collect();
        let Some(Some(target)) = writes.first() else { return };
        self.flights.push(HeldMemory { wait, result, operands, target: (target.clone(), size(result)) });
    }

    /// Checks the step of a wait, and ends the exchange.
    pub(crate) fn land(&mut self, id: NodeId, reads: &[Option<Place>], writes: &[Option<Place>]) {
        let node = &self.graph.nodes[id];
        let (Some(started), &[done]) = (node.operands().next(), &node.results[..]) else {
            return self.fault(FaultKind::Malformed, None, None, "waits for nothing");
        };
        let Some(k) = self.flights.iter().position(|f| f.wait == id && f.result == started) else {
            return self.fault(FaultKind::InFlight, Some(started), None, "is waited for before its exchange starts");
        };
        let flight = self.flights.remove(k);
        let held = flight.operands.iter().map(|(p, _)| p);
        let own = [Some(&flight.target.0)];
        if !reads.iter().map(Option::as_ref).eq(own.into_iter().chain(held.map(Option::as_ref))) {
            let place = reads.first().and_then(Option::as_ref);
            let what = "is waited for at other places than those of its exchange";
            return self.fault(FaultKind::InFlight, Some(started), place, what);
        }
        let Some(Some(place)) = writes.first().filter(|w| w.as_ref() == reads[0].as_ref()) else {
            return self.fault(
                FaultKind::InFlight,
                Some(done),
                None,
                "is in another place than the result of its exchange",
            );
        };
        self.read(started, place);
        if self.placed(done, place).is_some() {
            self.learn(done, place, Vec::new());
        }
    }

    /// Checks that no exchange in flight has cells of a place that a step reads or writes.
    pub(crate) fn not_in_flight(&mut self, v: ValueId, place: &Place, writes: bool) {
        let Some(size) = self.metas[v].as_ref().map(|m| m.dtype.size()) else { return };
        let touches = |(p, own): &(Place, usize)| {
            p.buffer == place.buffer && overlap_bytes(&p.layout, *own, &place.layout, size) != Overlap::Disjoint
        };
        let of = |f: &HeldMemory| {
            let operand = || f.operands.iter().any(|(p, own)| p.clone().is_some_and(|p| touches(&(p, *own))));
            if touches(&f.target) {
                Some((f.result, "receives"))
            } else if writes && operand() {
                Some((f.result, "sends"))
            } else {
                None
            }
        };
        if let Some((result, how)) = self.flights.iter().find_map(of) {
            let doing = if writes { "written" } else { "read" };
            let name = &self.graph.values[result].name;
            let what = format!("is {doing} in cells that the exchange of %{name} {how}, before its wait");
            self.fault(FaultKind::InFlight, Some(v), Some(place), what);
        }
    }

    /// Checks that no exchange is in flight after the last step.
    pub(crate) fn all_landed(&mut self) {
        for flight in std::mem::take(&mut self.flights) {
            self.fault(FaultKind::InFlight, Some(flight.result), None, "is never waited for");
        }
    }
}
