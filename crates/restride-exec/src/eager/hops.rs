//! Control flow on the tape: the branch that is taken and the iterations that there are, call by call, as Python's own control
//! flow. What bodies give is differentiated as what any call gives.

use super::call::{Value, call_op};
use super::mode::no_grad;
use super::program::Frame;
use super::tensor::{Tensor, refuse};
use restride_ir::{Arg, Error, Expr, GraphId, Hop, Node, Result, Scalar};
use restride_tensor::DType;

impl Frame<'_> {
    pub(super) fn hop(&self, node: &Node, hop: Hop) -> Result<Vec<Value>> {
        let body = |i: usize| match node.args.get(i) {
            Some(Arg::Graph(g)) => Ok(*g),
            _ => Err(Error::invalid(format!("argument {i} of {} is not a graph", node.op))),
        };
        let list = |i: usize| self.list(node.args.get(i));
        match hop {
            Hop::Cond => {
                let taken = match list(0)?.first() {
                    Some(value) => truth(value)?,
                    None => return Err(Error::invalid("cond has no predicate")),
                };
                self.body(node, body(if taken { 1 } else { 2 })?, &list(3)?)
            }
            Hop::WhileLoop => self.while_loop(node, (body(0)?, body(1)?), list(2)?, &list(3)?),
            Hop::Scan => self.scan(node, body(0)?, list(1)?, &list(2)?, &list(3)?),
            Hop::Map => self.map(node, body(0)?, &list(1)?, &list(2)?),
        }
    }

    /// The values of an operand list.
    fn list(&self, arg: Option<&Arg>) -> Result<Vec<Value>> {
        let number = |e: &Expr| self.number(e).map(Value::Scalar);
        match arg {
            Some(Arg::Values(vs)) => vs.iter().map(|v| v.map_or(Ok(Value::None), |v| self.value(v))).collect(),
            Some(Arg::Value(v)) => Ok(vec![self.value(*v)?]),
            Some(Arg::Scalar(s)) => Ok(vec![number(s)?]),
            Some(Arg::Scalars(ss)) => ss.iter().map(number).collect(),
            Some(Arg::None) | None => Ok(Vec::new()),
            _ => Err(Error::invalid("an argument that is no list of values")),
        }
    }

    fn while_loop(
        &self,
        node: &Node,
        (cond, body): (GraphId, GraphId),
        mut carried: Vec<Value>,
        rest: &[Value],
    ) -> Result<Vec<Value>> {
        let mut ran = false;
        loop {
            let operands = joined(&[&carried, rest]);
            let goes_on = match &self.body(node, cond, &operands)?[..] {
                [Value::Scalar(s @ Scalar::Bool(_))] => s.as_bool(),
                [value @ Value::Tensor(t)] if t.dtype() == DType::Bool && t.sizes().is_empty() => truth(value)?,
                _ => return refuse("cond_fn must return a boolean scalar tensor or a boolean"),
            };
            if !goes_on {
                // A loop that never runs gives copies of what it was given.
                return if ran { Ok(carried) } else { carried.iter().map(cloned).collect() };
            }
            let count = carried.len();
            carried = self.body(node, body, &operands)?;
            if carried.len() != count {
                let n = carried.len();
                return Err(Error::invalid(format!("a loop's body gives {n} values for {count} that it carries")));
            }
            ran = true;
        }
    }

    fn scan(
        &self,
        node: &Node,
        combine: GraphId,
        init: Vec<Value>,
        xs: &[Value],
        rest: &[Value],
    ) -> Result<Vec<Value>> {
        let (count, trips) = (init.len(), leading_size(xs)?);
        let short = |n: usize| Error::invalid(format!("a scan's body gives {n} values for {count} carries"));
        if trips == 0 {
            // PyTorch runs the body once, on zeros, to learn the sizes.
            let _off = no_grad();
            let zeros = xs.iter().map(|x| zeros_of(&tensor(x)?.sizes()[1..], x)).collect::<Result<Vec<_>>>()?;
            let made = self.body(node, combine, &joined(&[&init, &zeros, rest]))?;
            let ys = made.get(count..).ok_or_else(|| short(made.len()))?;
            let empty = ys.iter().map(|y| zeros_of(&[&[0], &tensor(y)?.sizes()[..]].concat(), y));
            return init.iter().cloned().map(Ok).chain(empty).collect();
        }
        let mut carry = init;
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for i in 0..trips {
            let slices = xs.iter().map(|x| {
                let slice = at(x, i)?;
                // PyTorch copies the first one.
                if i == 0 { cloned(&slice) } else { Ok(slice) }
            });
            let slices = slices.collect::<Result<Vec<_>>>()?;
            let mut out = self.body(node, combine, &joined(&[&carry, &slices, rest]))?;
            if out.len() < count {
                return Err(short(out.len()));
            }
            rows.push(out.split_off(count));
            carry = out;
        }
        let ys = (0..rows[0].len()).map(|k| stack(&rows, k));
        carry.into_iter().map(Ok).chain(ys).collect()
    }

    fn map(&self, node: &Node, body: GraphId, xs: &[Value], rest: &[Value]) -> Result<Vec<Value>> {
        let trips = leading_size(xs)?;
        if trips == 0 {
            return refuse("map over no elements: PyTorch cannot tell the sizes of the results");
        }
        let mut rows = Vec::new();
        for i in 0..trips {
            let slices = xs.iter().map(|x| at(x, i)).collect::<Result<Vec<_>>>()?;
            rows.push(self.body(node, body, &joined(&[&slices, rest]))?);
        }
        (0..rows[0].len()).map(|k| stack(&rows, k)).collect()
    }
}

fn joined(parts: &[&[Value]]) -> Vec<Value> {
    parts.concat()
}

fn tensor(v: &Value) -> Result<&Tensor> {
    v.tensor().ok_or_else(|| Error::invalid("what is sliced or stacked is no tensor"))
}

fn one(name: &str, args: &[Arg<Tensor, Scalar>]) -> Result<Value> {
    let made = call_op(name, args)?.into_iter().next();
    made.ok_or_else(|| Error::invalid(format!("{name} gives nothing")))
}

/// Zeros of these sizes and a value's element type.
fn zeros_of(sizes: &[i64], like: &Value) -> Result<Value> {
    let sizes = Arg::Scalars(sizes.iter().map(|n| Scalar::Int(*n)).collect());
    one("aten.full.default", &[sizes, Arg::Scalar(Scalar::Int(0)), Arg::DType(tensor(like)?.dtype())])
}

/// Python's `bool(value)`.
fn truth(value: &Value) -> Result<bool> {
    match value {
        Value::Scalar(s) => Ok(s.as_bool()),
        Value::Tensor(t) if t.numel() == 1 => Ok(t.item()?.as_bool()),
        Value::Tensor(_) => refuse("Boolean value of Tensor with more than one value is ambiguous"),
        _ => Err(Error::invalid("a predicate that is no number and no tensor")),
    }
}

/// A copy; numbers as they are.
fn cloned(v: &Value) -> Result<Value> {
    match v {
        Value::Tensor(t) => one("aten.clone.default", &[t.into()]),
        other => Ok(other.clone()),
    }
}

/// `x[i]`.
fn at(x: &Value, i: i64) -> Result<Value> {
    let int = |n: i64| Arg::Scalar(Scalar::Int(n));
    one("aten.select.int", &[tensor(x)?.into(), int(0), int(i)])
}

/// The results of all iterations at position `k`, in one tensor.
fn stack(rows: &[Vec<Value>], k: usize) -> Result<Value> {
    let column: Vec<Option<&Value>> = rows.iter().map(|r| r.get(k)).collect();
    if column.iter().all(|v| matches!(v, Some(Value::None))) {
        return Ok(Value::None);
    }
    let tensors: Option<Vec<&Tensor>> = column.iter().map(|v| v.and_then(Value::tensor)).collect();
    let tensors = tensors.ok_or_else(|| Error::invalid("results of iterations that cannot be stacked"))?;
    let same = |t: &&Tensor| t.sizes() == tensors[0].sizes() && t.dtype() == tensors[0].dtype();
    if !tensors.iter().all(same) {
        return refuse("the results of a loop differ in type from iteration to iteration");
    }
    let list = Arg::Values(tensors.into_iter().cloned().map(Some).collect());
    one("aten.stack.default", &[list, Arg::Scalar(Scalar::Int(0))])
}

/// The size that all slices are taken of.
fn leading_size(xs: &[Value]) -> Result<i64> {
    let mut size = None;
    for x in xs {
        let Some(n) = tensor(x)?.sizes().first().copied() else {
            return refuse("a 0-d tensor has nothing to be sliced along");
        };
        if *size.get_or_insert(n) != n {
            return refuse("Leaves of xs must have same leading dimension size");
        }
    }
    size.ok_or_else(|| Error::unsupported("a loop over no tensors"))
}
