//! Kernels: their reads and writes, and licences for overlaps of both.

use crate::FaultKind;
use crate::placement::PlacementWalk;
use restride_ir::{
    Arg, HopCall, Licence, Meta, NodeId, Place, ReuseKind, Tiling, Type, ValueId, check_fused, fused_body, may_trail,
};
use restride_tensor::{Overlap, index_by_index, overlap_bytes, self_overlaps};

/// An operand of a kernel.
struct KernelOperand {
    value: ValueId,
    /// Position among the node's operands.
    operand: usize,
    /// Position of its argument, or of the list that holds it.
    arg: usize,
    place: Place,
    meta: Meta,
}

impl PlacementWalk<'_> {
    /// Checks a kernel step.
    pub(crate) fn run(&mut self, at: usize, id: NodeId, reads: &[Option<Place>], writes: &[Option<Place>]) {
        let node = &self.graph.nodes[id];
        if reads.len() != node.operands().count() || writes.len() != node.results.len() {
            return self.fault(
                FaultKind::Malformed,
                None,
                None,
                "the step has not one place for each operand and result",
            );
        }
        if node.op.def().awaits {
            return self.land(id, reads, writes);
        }
        self.takes_turn(id);
        let tiling = match check_fused(self.program, self.graph, node) {
            Ok(tiling) => tiling,
            Err(e) => return self.fault(FaultKind::Malformed, None, None, e.0),
        };
        let mut operands = Vec::new();
        let mut reads_left = reads.iter().enumerate();
        for (arg, a) in node.args.iter().enumerate() {
            for (&value, (operand, place)) in a.values().zip(&mut reads_left) {
                match (&self.graph.values[value].ty, place) {
                    (Type::Tensor(_), Some(place)) => {
                        self.read(value, place);
                        if let Some(meta) = self.metas[value].clone() {
                            operands.push(KernelOperand { value, operand, arg, place: place.clone(), meta });
                        }
                    }
                    (Type::Tensor(_), None) => {
                        self.fault(FaultKind::Malformed, Some(value), None, "is read and has no place");
                    }
                    (_, Some(place)) => {
                        self.fault(FaultKind::Malformed, Some(value), Some(place), "is no tensor and has a place");
                    }
                    (_, None) => {}
                }
            }
        }
        let mut results: Vec<(usize, ValueId, Place, Meta)> = Vec::new();
        for (k, (&value, place)) in node.results.iter().zip(writes).enumerate() {
            match (&self.graph.values[value].ty, place) {
                (Type::Tensor(_), Some(place)) => {
                    let Some(meta) = self.writable(value, place) else { continue };
                    if self_overlaps(&place.layout) != Some(false) {
                        let what = "is written to cells that are not all different";
                        self.fault(FaultKind::Overlap, Some(value), Some(place), what);
                    }
                    results.push((k, value, place.clone(), meta));
                }
                (Type::Tensor(_), None) => {
                    self.fault(FaultKind::Malformed, Some(value), None, "is written and has no place");
                }
                (_, Some(place)) => {
                    self.fault(FaultKind::Malformed, Some(value), Some(place), "is no tensor and has a place");
                }
                (_, None) => {}
            }
        }
        for (i, (_, value, place, meta)) in results.iter().enumerate() {
            for (_, other, elsewhere, its) in &results[..i] {
                if touch(place, meta, elsewhere, its) {
                    let what = format!(
                        "is written to cells of %{}, which the kernel writes too",
                        self.graph.values[*other].name
                    );
                    self.fault(FaultKind::Overlap, Some(*value), Some(place), what);
                }
            }
        }
        for (k, value, place, meta) in &results {
            if let Err(what) = self.licensed(id, tiling.as_ref(), *k, place, meta, &operands, reads) {
                self.fault(FaultKind::Overlap, Some(*value), Some(place), what);
            }
        }
        if node.op.def().hop.is_some() {
            self.bodies(id, reads, writes);
        } else {
            self.enough(id, restride_ir::scratch_bytes(&self.program.graphs, self.graph, id, reads, writes));
        }
        for (_, _, place, meta) in &results {
            self.memory.write(place, meta.dtype.size(), at);
        }
        for (_, value, place, _) in &results {
            self.learn(*value, place, Vec::new());
        }
        self.launch(id, reads, writes);
    }

    /// Whether the operator's declared licences allow the overlaps of a result with its operands.
    fn licensed(
        &self,
        id: NodeId,
        tiling: Option<&Tiling>,
        result: usize,
        place: &Place,
        meta: &Meta,
        operands: &[KernelOperand],
        reads: &[Option<Place>],
    ) -> Result<(), String> {
        let node = &self.graph.nodes[id];
        let def = node.op.def();
        let met: Vec<usize> =
            (0..operands.len()).filter(|&i| touch(place, meta, &operands[i].place, &operands[i].meta)).collect();
        if let (Ok(Some(call)), &[i]) = (HopCall::of(self.graph, node), &met[..])
            && call.takes_over(result).is_some_and(|(operand, _)| operand == operands[i].operand)
            && operands[i].place == *place
            && operands[i].meta.dtype == meta.dtype
        {
            return Ok(());
        }
        // Each index begins at the same byte in both. Elements of one size then share their cells; elements of different
        // sizes stay within their index.
        let same_cell = |o: &KernelOperand| {
            let expanded = if def.pointwise {
                o.place.layout.expand(&place.layout.sizes).ok()
            } else {
                Some(o.place.layout.clone())
            };
            let (from, to) = (o.meta.dtype.size(), meta.dtype.size());
            o.place.buffer == place.buffer && expanded.is_some_and(|l| index_by_index(&l, from, &place.layout, to))
        };
        if let (Some(body), Some(tiling)) = (fused_body(node), tiling) {
            let met: Vec<(usize, bool)> = met.iter().map(|&i| (operands[i].operand, same_cell(&operands[i]))).collect();
            return crate::fused::overlaps(&self.program.graphs[body], tiling, result, &met).map_err(|operand| {
                let name = &self.graph.values[node.operands().nth(operand).expect("an operand of the node")].name;
                format!("is written to cells of %{name}, which the body reads")
            });
        }
        for &i in &met {
            let o = &operands[i];
            // A licence is for an argument that is a single tensor.
            let single = matches!(node.args.get(o.arg), Some(Arg::Value(_)));
            let mut licences =
                def.reuse.iter().filter(|l| single && l.arg as usize == o.arg && l.result as usize == result);
            let holds = licences.any(|l| match l.kind {
                ReuseKind::SameIndex => same_cell(o) && met.iter().all(|&j| j == i || same_cell(&operands[j])),
                ReuseKind::RowWise { .. } => {
                    // Rows are read and written in place.
                    let of_one_size = met.iter().all(|&j| operands[j].meta.dtype.size() == meta.dtype.size());
                    of_one_size && same_cell(o) && met.iter().all(|&j| j == i || same_cell(&operands[j]))
                }
                ReuseKind::Carried => o.place == *place && met.iter().all(|&j| j == i),
                ReuseKind::ReadsFirst => true,
                ReuseKind::Trailing => {
                    let licence = Licence { operand: o.operand, result, kind: l.kind };
                    met.iter().all(|&j| j == i) && may_trail(self.graph, id, &licence, reads, place)
                }
            });
            // An operand with the result's cells is covered by the licence of another operand.
            let covered = || {
                same_cell(o)
                    && def.reuse.iter().any(|l| {
                        l.result as usize == result
                            && matches!(l.kind, ReuseKind::SameIndex | ReuseKind::RowWise { .. })
                            && met.iter().all(|&j| same_cell(&operands[j]))
                            && met.iter().any(|&j| {
                                operands[j].arg == l.arg as usize
                                    && matches!(node.args.get(l.arg as usize), Some(Arg::Value(_)))
                            })
                    })
            };
            if !holds && !covered() {
                return Err(format!(
                    "is written to cells of %{}, which the kernel reads",
                    self.graph.values[o.value].name
                ));
            }
        }
        Ok(())
    }
}

/// Whether two places may share a cell.
fn touch(a: &Place, a_meta: &Meta, b: &Place, b_meta: &Meta) -> bool {
    a.buffer == b.buffer
        && overlap_bytes(&a.layout, a_meta.dtype.size(), &b.layout, b_meta.dtype.size()) != Overlap::Disjoint
}
