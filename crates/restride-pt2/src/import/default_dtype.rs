//! Programs exported under a default dtype other than `torch.float32`.
//!
//! `torch.set_default_dtype` decides the dtype of `arange(0.0, 1.0, 0.1)`, `ones(3)` and `integers / 2`. A file records it only in the
//! types of results. The importer makes it explicit: in the `dtype` argument of operators that have one, else by casting integers.

use super::nodes::GraphImporter;
use restride_ir::{Arg, ArgType, DType, Expr, Layout, Op, Origin, Type, ValueId};
use std::sync::Arc;

/// Arguments with which a call returns the file's types under any default dtype.
pub(super) fn settle(
    importer: &mut GraphImporter<'_>,
    op: Op,
    mut args: Vec<Arg>,
    results: &[(String, Type)],
    origin: &Arc<Origin>,
) -> Vec<Arg> {
    let [(_, Type::Tensor(result))] = results else { return args };
    let usual = matches!(result.dtype, DType::F32 | DType::C64);
    if usual || !result.dtype.is_float() && !result.dtype.is_complex() || op.is_mutable() {
        return args;
    }
    let schema = op.schema();
    let own = schema.args.iter().position(|a| a.ty == ArgType::DType);
    let operands: Vec<ValueId> = args.iter().flat_map(Arg::values).copied().collect();
    if operands.is_empty() {
        if let Some(Arg::None) = own.and_then(|i| args.get(i)) {
            args[own.expect("just found")] = Arg::DType(result.dtype);
        }
        return args;
    }
    let integer = |v: &ValueId| {
        let dtype = importer.value_type(*v).tensor().map(|t| t.dtype);
        dtype.is_some_and(|d| !d.is_float() && !d.is_complex())
    };
    let typed = own.is_some_and(|i| !matches!(args.get(i), None | Some(Arg::None)));
    if !op.def().pointwise || typed || !operands.iter().all(integer) {
        return args;
    }
    args.iter().map(|a| a.map_values(|v| cast(importer, *v, result.dtype, origin))).collect()
}

fn cast(importer: &mut GraphImporter<'_>, v: ValueId, to: DType, origin: &Arc<Origin>) -> ValueId {
    let Type::Tensor(ty) = importer.value_type(v).clone() else { return v };
    let layout = Layout { offset: Expr::Int(0), ..ty.layout };
    importer.cast(v, to, layout, origin).unwrap_or(v)
}
