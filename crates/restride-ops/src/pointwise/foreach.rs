//! Member operators of `_foreach_*` operators for which PyTorch has no operator of its own.

use crate::support::{Result, Vals};
use restride_ir::{Arg, Args, Emit, OpDef, OpError, Scalar, Val};
use smallvec::smallvec;

fn one(e: &mut dyn Emit, op: &str, args: &[Arg<Val, Scalar>]) -> Result<Val> {
    e.call(op, args)?.first().copied().ok_or_else(|| OpError::new(format!("{op} gives no result")))
}

/// `self + value * t1 (* or /) t2`, in that order of operations, with a 0-d tensor for the value.
fn scaled(e: &mut dyn Emit, a: &Args<'_, Val>, op: &str) -> Vals {
    let arg = |i: usize| a.tensor(i).map(|v| Arg::Value(*v));
    let product = one(e, "aten.mul.Tensor", &[arg(1)?, arg(3)?])?;
    let product = one(e, op, &[Arg::Value(product), arg(2)?])?;
    Ok(smallvec![one(e, "aten.add.Tensor", &[arg(0)?, Arg::Value(product)])?])
}

fn addcmul(e: &mut dyn Emit, a: &Args<'_, Val>) -> Vals {
    scaled(e, a, "aten.mul.Tensor")
}

fn addcdiv(e: &mut dyn Emit, a: &Args<'_, Val>) -> Vals {
    scaled(e, a, "aten.div.Tensor")
}

fn vector_norm(e: &mut dyn Emit, a: &Args<'_, Val>) -> Vals {
    let dtype = a.opt_dtype(2)?.map_or(Arg::None, Arg::DType);
    let args =
        [Arg::Value(*a.tensor(0)?), Arg::Scalar(a.scalar(1)?), Arg::None, Arg::Scalar(Scalar::Bool(false)), dtype];
    Ok(smallvec![one(e, "aten.linalg_vector_norm.default", &args)?])
}

pub(crate) static OPS: &[OpDef] = table![
    OpDef {
        doc: "addcmul with a 0-d tensor for its value",
        decompose: Some(addcmul),
        ..OpDef::new(
            "restride::addcmul.Tensor_value(Tensor self, Tensor tensor1, Tensor tensor2, Tensor value) -> Tensor",
        )
    },
    OpDef {
        doc: "addcdiv with a 0-d tensor for its value",
        decompose: Some(addcdiv),
        ..OpDef::new(
            "restride::addcdiv.Tensor_value(Tensor self, Tensor tensor1, Tensor tensor2, Tensor value) -> Tensor",
        )
    },
    OpDef::new(
        "restride::addcmul_.Tensor_value(Tensor(a!) self, Tensor tensor1, Tensor tensor2, Tensor value) -> Tensor(a!)",
    ),
    OpDef::new(
        "restride::addcdiv_.Tensor_value(Tensor(a!) self, Tensor tensor1, Tensor tensor2, Tensor value) -> Tensor(a!)",
    ),
    OpDef {
        doc: "linalg_vector_norm over all elements",
        decompose: Some(vector_norm),
        ..OpDef::new("restride::vector_norm(Tensor self, Scalar ord=2, ScalarType? dtype=None) -> Tensor")
    },
];
