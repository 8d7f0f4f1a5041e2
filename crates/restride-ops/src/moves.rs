//! What operators that only move data have in common: kernels, pieces, and conditions of reuse.

use restride_ir::{Arg, Call, Meta, OpError, Reuse, ReuseKind, Scalar, TensorType};

type Result<T> = std::result::Result<T, OpError>;

/// The result may lie on argument 0, index by index.
pub(crate) static SAME_INDEX: &[Reuse] = &[Reuse { arg: 0, result: 0, kind: ReuseKind::SameIndex }];

/// Argument 0 is carried over into the result, which changes part of it.
pub(crate) static CARRIED: &[Reuse] = &[Reuse { arg: 0, result: 0, kind: ReuseKind::Carried }];

/// Copies argument 0 in logical order, converted to the result's type.
pub(crate) fn same_order(c: &Call<'_>) -> Result<()> {
    restride_kernels::copy::same_order(c.args.tensor(0)?, &c.outs[0]).map_err(OpError)
}

/// Types of a call's arguments, with the layouts that its operands have in memory.
pub(crate) fn metas(c: &Call<'_>) -> Result<Vec<Arg<Meta, Scalar>>> {
    c.args.0.iter().map(|a| a.try_map(|v| Ok(TensorType::new(v.dtype(), v.layout().clone())), |s| Ok(*s))).collect()
}
