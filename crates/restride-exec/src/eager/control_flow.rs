//! Higher-order calls of the tape. It records the calls that bodies make, as for Python's own control flow.

use super::call::EagerValue;
use super::mode::no_grad;
use super::program::ProgramFrame;
use super::tensor::Tensor;
use crate::control_flow::{Bodies, Seen};
use restride_ir::{Arg, Error, Expr, GraphId, Limits, Node, Result, Scalar, ValueId};
use restride_tensor::DType;

/// A higher-order call in a graph that runs.
pub(super) struct TapeBodies<'a, 'g> {
    pub frame: &'a ProgramFrame<'g>,
    pub node: &'a Node,
}

impl Bodies for TapeBodies<'_, '_> {
    type Value = EagerValue;

    fn limits(&self) -> Limits {
        self.frame.limits()
    }

    fn operand(&self, v: ValueId) -> Result<EagerValue> {
        self.frame.value(v)
    }

    fn number(&self, e: &Expr) -> Result<EagerValue> {
        self.frame.number(e).map(EagerValue::Scalar)
    }

    fn none() -> EagerValue {
        EagerValue::None
    }

    fn run(&mut self, body: GraphId, inputs: &[EagerValue], _iteration: Option<u64>) -> Result<Vec<EagerValue>> {
        self.frame.body(self.node, body, inputs)
    }

    fn run_for_sizes(&mut self, body: GraphId, inputs: &[EagerValue]) -> Result<Vec<EagerValue>> {
        let _off = no_grad();
        self.frame.body(self.node, body, inputs)
    }

    fn see(value: &EagerValue) -> Seen {
        match value {
            EagerValue::Tensor(t) => Seen::Tensor { dtype: t.dtype(), sizes: t.sizes() },
            EagerValue::Scalar(s) => Seen::Scalar(*s),
            EagerValue::None => Seen::None,
            EagerValue::Str(_) => Seen::Other,
        }
    }

    fn item(value: &EagerValue) -> Result<Scalar> {
        tensor(value)?.item()
    }

    fn slice(&mut self, x: &EagerValue, i: i64) -> Result<EagerValue> {
        let int = |n: i64| Arg::Scalar(Scalar::Int(n));
        Tensor::call_one("aten.select.int", &[tensor(x)?.into(), int(0), int(i)]).map(EagerValue::Tensor)
    }

    fn copy(&mut self, value: &EagerValue) -> Result<EagerValue> {
        Tensor::call_one("aten.clone.default", &[tensor(value)?.into()]).map(EagerValue::Tensor)
    }

    fn zeros(&mut self, dtype: DType, sizes: &[i64]) -> Result<EagerValue> {
        let sizes = Arg::Scalars(sizes.iter().map(|n| Scalar::Int(*n)).collect());
        Tensor::call_one("aten.full.default", &[sizes, Arg::Scalar(Scalar::Int(0)), Arg::DType(dtype)])
            .map(EagerValue::Tensor)
    }

    fn stack(&mut self, all: Vec<EagerValue>) -> Result<EagerValue> {
        let all = all.iter().map(|v| tensor(v).cloned().map(Some)).collect::<Result<_>>()?;
        Tensor::call_one("aten.stack.default", &[Arg::Values(all), Arg::Scalar(Scalar::Int(0))]).map(EagerValue::Tensor)
    }
}

fn tensor(v: &EagerValue) -> Result<&Tensor> {
    v.tensor().ok_or_else(|| Error::invalid("control flow slices a value that is no tensor"))
}
