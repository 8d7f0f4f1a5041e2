//! Sizes that torch.export declares wrongly: those of `unique_consecutive` over the last dimension.

use super::nodes::GraphImporter;
use restride_ir::{Arg, Layout, Op, Scalar, Type};

/// Removes the operand's sizes that the exporter appends to the result's, since it computes `shape[:dim] + [n] + shape[dim + 1:]`
/// with `dim = -1`. The counts have size `n`.
pub(super) fn settle(importer: &GraphImporter<'_>, op: Op, args: &[Arg], results: &mut [(String, Type)]) {
    if op.name() != "aten.unique_consecutive.default" {
        return;
    }
    let (Some(Arg::Value(v)), Some(Arg::Scalar(dim))) = (args.first(), args.get(3)) else { return };
    let [(_, Type::Tensor(values)), _, (_, counts)] = results else { return };
    let Some(rank) = importer.value_type(*v).tensor().map(|t| t.rank()) else { return };
    if rank == 0 || values.rank() != 2 * rank || !matches!(dim.constant(), Some(Scalar::Int(-1))) {
        return;
    }
    values.layout = Layout::contiguous(&values.layout.sizes[..rank]);
    if let Type::Tensor(counts) = counts {
        counts.layout = Layout::contiguous(&values.layout.sizes[rank - 1..]);
    }
}
