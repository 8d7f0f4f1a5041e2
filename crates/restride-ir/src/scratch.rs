//! Working memory of kernels, by their operators' declarations.

use crate::{Arg, Args, Graph, Kernel, Meta, NodeId, OpError, Place, Scalar, ValueId, aligned, known_meta};

/// Bytes that a node's kernel takes while it reads and writes at these places: 0 where its operator declares nothing, or where
/// that depends on numbers that only a run tells.
pub fn scratch_bytes(graph: &Graph, id: NodeId, reads: &[Option<Place>], writes: &[Option<Place>]) -> i64 {
    let node = &graph.nodes[id];
    let def = node.op.def();
    let (Some(scratch), Kernel::Fixed(_)) = (def.scratch, def.kernel) else { return 0 };
    let mut at = reads.iter();
    let placed = |v: &ValueId, place: Option<&Option<Place>>| -> Result<Meta, OpError> {
        let mut meta = known_meta(graph, *v)?;
        if let Some(Some(place)) = place {
            meta.layout = place.layout.clone();
        }
        Ok(meta)
    };
    let number = |e: &crate::Expr| e.constant().ok_or_else(|| OpError::new("a number that is not known"));
    let args = node.args.iter().map(|a| a.try_map(|v| placed(v, at.next()), number));
    let Ok(args) = args.collect::<Result<Vec<Arg<Meta, Scalar>>, OpError>>() else { return 0 };
    let outs = node.results.iter().enumerate().map(|(i, v)| placed(v, writes.get(i)));
    let Ok(outs) = outs.collect::<Result<Vec<Meta>, OpError>>() else { return 0 };
    let bytes = scratch(&Args(&args), &outs).unwrap_or(0);
    aligned(i64::try_from(bytes).unwrap_or(i64::MAX))
}
