//! Higher-order calls of the interpreter.

use super::frame::GraphFrame;
use super::{Interp, Slot};
use crate::control_flow::{Bodies, Seen, nested_iteration};
use crate::copy::{allocate, contiguous_copy, resolve};
use restride_ir::{Arg, Error, Expr, GraphId, Limits, OpError, Result, RngKey, Scalar, ValueId};
use restride_tensor::{DType, Layout, RawTensor};

/// A higher-order call in a graph that runs.
pub(super) struct BodyCalls<'a, 'p, 'f, 's> {
    pub interp: &'a mut Interp<'p>,
    pub frame: &'a GraphFrame<'f, 's>,
    pub key: RngKey,
}

impl BodyCalls<'_, '_, '_, '_> {
    fn call(&mut self, name: &str, args: &[Arg<Slot, Scalar>]) -> Result<Slot> {
        let op = restride_ops::lookup(name).ok_or_else(|| Error::unsupported(format!("unknown operator {name}")))?;
        let made = self.interp.call(op, args, self.key)?;
        made.into_iter().next().ok_or_else(|| Error::invalid(format!("{name} gives nothing")))
    }
}

impl Bodies for BodyCalls<'_, '_, '_, '_> {
    type Value = Slot;

    fn limits(&self) -> Limits {
        self.interp.program.limits
    }

    fn operand(&self, v: ValueId) -> Result<Slot> {
        self.frame.get(v)
    }

    fn number(&self, e: &Expr) -> Result<Slot> {
        self.frame.number(e).map(Slot::Scalar)
    }

    fn none() -> Slot {
        Slot::None
    }

    fn run(&mut self, body: GraphId, inputs: &[Slot], iteration: Option<u64>) -> Result<Vec<Slot>> {
        let outer = self.frame.iteration;
        let iteration = iteration.map_or(outer, |i| nested_iteration(outer, i));
        // A body's own symbols end with it.
        self.interp.run_graph(body, inputs, &mut self.frame.symbols.clone(), iteration)
    }

    fn see(value: &Slot) -> Seen {
        match value {
            Slot::Tensor(t) => {
                let t = t.borrow();
                Seen::Tensor { dtype: t.dtype(), sizes: t.layout().sizes.to_vec() }
            }
            Slot::Scalar(s) => Seen::Scalar(*s),
            Slot::None => Seen::None,
            Slot::Str(_) => Seen::Other,
        }
    }

    fn item(value: &Slot) -> Result<Scalar> {
        let t = resolve(&tensor(value)?)?;
        Ok(t.get(&vec![0; t.layout().rank()]))
    }

    fn slice(&mut self, x: &Slot, i: i64) -> Result<Slot> {
        let t = tensor(x)?;
        let layout = t.layout().select(0, &i).map_err(OpError::from)?;
        let slice = t.alias(t.dtype(), layout).map(Slot::new);
        slice.ok_or_else(|| Error::invalid("a slice outside of its tensor"))
    }

    fn copy(&mut self, value: &Slot) -> Result<Slot> {
        self.call("aten.clone.default", &[Arg::Value(value.clone()), Arg::None])
    }

    fn copy_of_first(&mut self, x: &Slot) -> Result<Slot> {
        let first = tensor(&self.slice(x, 0)?)?;
        Ok(Slot::new(contiguous_copy(&first)?))
    }

    fn zeros(&mut self, dtype: DType, sizes: &[i64]) -> Result<Slot> {
        Ok(Slot::new(allocate(dtype, Layout::contiguous(sizes))?))
    }

    fn stack(&mut self, all: Vec<Slot>) -> Result<Slot> {
        let all = Arg::Values(all.into_iter().map(Some).collect());
        self.call("aten.stack.default", &[all, Arg::Scalar(Scalar::Int(0))])
    }
}

fn tensor(value: &Slot) -> Result<RawTensor> {
    value.tensor().ok_or_else(|| Error::invalid("control flow slices a value that is no tensor"))
}
