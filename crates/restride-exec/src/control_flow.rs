//! Control flow call by call, for the interpreter and the tape: as `torch/_higher_order_ops` runs it eagerly. Operands go into
//! bodies by reference, so that writes of a body are seen outside.

use restride_ir::{Arg, Error, ErrorKind, Expr, GraphId, Hop, Limits, Node, Result, Scalar, ValueId};
use restride_tensor::DType;

/// The number that tells iterations of nested loops apart in the key of random draws: `outer` is the enclosing loops', `i` the
/// iteration of this one.
pub(crate) fn nested_iteration(outer: u64, i: u64) -> u64 {
    outer.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(i).wrapping_add(1)
}

/// A value as control flow looks at it.
pub(crate) enum Seen {
    Tensor { dtype: DType, sizes: Vec<i64> },
    Scalar(Scalar),
    None,
    Other,
}

/// One higher-order call: its operands, its bodies, and the operations on values that control flow needs.
pub(crate) trait Bodies {
    type Value: Clone;

    fn limits(&self) -> Limits;
    /// The value of a name in the calling graph.
    fn operand(&self, v: ValueId) -> Result<Self::Value>;
    fn number(&self, e: &Expr) -> Result<Self::Value>;
    fn none() -> Self::Value;

    /// Runs a body with symbols of its own; `iteration` is that of this loop.
    fn run(&mut self, body: GraphId, inputs: &[Self::Value], iteration: Option<u64>) -> Result<Vec<Self::Value>>;
    /// Runs a body only for the sizes of its results.
    fn run_for_sizes(&mut self, body: GraphId, inputs: &[Self::Value]) -> Result<Vec<Self::Value>> {
        self.run(body, inputs, Some(0))
    }

    fn see(value: &Self::Value) -> Seen;
    /// The number in a tensor of one element.
    fn item(value: &Self::Value) -> Result<Scalar>;
    /// `x[i]`, a view.
    fn slice(&mut self, x: &Self::Value, i: i64) -> Result<Self::Value>;
    /// A copy of a tensor.
    fn copy(&mut self, value: &Self::Value) -> Result<Self::Value>;
    /// A copy of `x[0]`, which PyTorch's scan makes.
    fn copy_of_first(&mut self, x: &Self::Value) -> Result<Self::Value> {
        let first = self.slice(x, 0)?;
        self.copy(&first)
    }
    fn zeros(&mut self, dtype: DType, sizes: &[i64]) -> Result<Self::Value>;
    /// Tensors of one type, stacked along a new first dimension.
    fn stack(&mut self, all: Vec<Self::Value>) -> Result<Self::Value>;
}

/// Runs a higher-order call.
pub(crate) fn run_call<B: Bodies>(bodies: &mut B, node: &Node, hop: Hop) -> Result<Vec<B::Value>> {
    let body = |i: usize| {
        let graph = node.args.get(i).and_then(Arg::graph);
        graph.ok_or_else(|| Error::invalid(format!("argument {i} of {} is not a graph", node.op)))
    };
    let list = |bodies: &B, i: usize| match node.args.get(i) {
        Some(Arg::Values(vs)) => vs.iter().map(|v| v.map_or(Ok(B::none()), |v| bodies.operand(v))).collect(),
        Some(Arg::Value(v)) => Ok(vec![bodies.operand(*v)?]),
        Some(Arg::Scalar(e)) => Ok(vec![bodies.number(e)?]),
        Some(Arg::Scalars(es)) => es.iter().map(|e| bodies.number(e)).collect(),
        Some(Arg::None) | None => Ok(Vec::new()),
        _ => Err(Error::invalid(format!("argument {i} of {} is not a list of values", node.op))),
    };
    match hop {
        Hop::Cond => {
            let pred = list(bodies, 0)?;
            let pred = pred.first().ok_or_else(|| Error::invalid("cond has no predicate"))?;
            let taken = body(if truth::<B>(pred)? { 1 } else { 2 })?;
            let inputs = list(bodies, 3)?;
            bodies.run(taken, &inputs, None)
        }
        Hop::WhileLoop => {
            let (carried, rest) = (list(bodies, 2)?, list(bodies, 3)?);
            while_loop(bodies, body(0)?, body(1)?, carried, &rest)
        }
        Hop::Scan => {
            let (init, xs, rest) = (list(bodies, 1)?, list(bodies, 2)?, list(bodies, 3)?);
            scan(bodies, body(0)?, init, &xs, &rest)
        }
        Hop::Map => {
            let (xs, rest) = (list(bodies, 1)?, list(bodies, 2)?);
            map(bodies, body(0)?, &xs, &rest)
        }
    }
}

fn while_loop<B: Bodies>(
    bodies: &mut B,
    cond: GraphId,
    body: GraphId,
    mut carried: Vec<B::Value>,
    rest: &[B::Value],
) -> Result<Vec<B::Value>> {
    let mut i = 0;
    loop {
        bodies.limits().check_trips(i)?;
        let inputs = [&carried, rest].concat();
        let goes_on = match &bodies.run(cond, &inputs, Some(i))?[..] {
            [flag] => match B::see(flag) {
                Seen::Scalar(s @ Scalar::Bool(_)) => Some(s.as_bool()),
                Seen::Tensor { dtype: DType::Bool, sizes } if sizes.is_empty() => Some(truth::<B>(flag)?),
                _ => None,
            },
            _ => None,
        };
        if !goes_on.ok_or_else(|| refused("cond_fn must return a boolean scalar tensor or a boolean"))? {
            // A loop that never runs returns copies of its operands.
            return if i > 0 { Ok(carried) } else { carried.iter().map(|c| copied(bodies, c)).collect() };
        }
        let count = carried.len();
        carried = bodies.run(body, &inputs, Some(i))?;
        if carried.len() != count {
            let n = carried.len();
            return Err(Error::invalid(format!("a loop's body gives {n} values for {count} that it carries")));
        }
        i += 1;
    }
}

fn scan<B: Bodies>(
    bodies: &mut B,
    combine: GraphId,
    init: Vec<B::Value>,
    xs: &[B::Value],
    rest: &[B::Value],
) -> Result<Vec<B::Value>> {
    let (count, trips) = (init.len(), leading_size::<B>(xs)?);
    bodies.limits().check_trips(trips.unsigned_abs())?;
    let short = |n: usize| Error::invalid(format!("a scan's body gives {n} values for {count} carries"));
    if trips == 0 {
        // PyTorch runs the body once, on zeros, to learn the sizes.
        let zeros = xs.iter().map(|x| {
            let (dtype, sizes) = tensor::<B>(x)?;
            bodies.zeros(dtype, &sizes[1..])
        });
        let zeros = zeros.collect::<Result<Vec<_>>>()?;
        let made = bodies.run_for_sizes(combine, &[&init, &zeros, rest].concat())?;
        let ys = made.get(count..).ok_or_else(|| short(made.len()))?;
        let empty = ys.iter().map(|y| match B::see(y) {
            Seen::Tensor { dtype, sizes } => bodies.zeros(dtype, &[&[0], &sizes[..]].concat()),
            _ => Ok(B::none()),
        });
        return init.iter().cloned().map(Ok).chain(empty).collect();
    }
    let (mut carry, mut rows) = (init, Vec::new());
    for i in 0..trips {
        let slice = |x| if i == 0 { bodies.copy_of_first(x) } else { bodies.slice(x, i) };
        let slices = xs.iter().map(slice).collect::<Result<Vec<_>>>()?;
        let mut out = bodies.run(combine, &[&carry, &slices, rest].concat(), Some(i as u64))?;
        if out.len() < count {
            return Err(short(out.len()));
        }
        // PyTorch writes each iteration's results into the stacked ones before the next iteration, which may change their memory.
        let ys = out.split_off(count);
        rows.push(ys.iter().map(|y| copied(bodies, y)).collect::<Result<_>>()?);
        carry = out;
    }
    carry.extend(stacked(bodies, &rows)?);
    Ok(carry)
}

fn map<B: Bodies>(bodies: &mut B, body: GraphId, xs: &[B::Value], rest: &[B::Value]) -> Result<Vec<B::Value>> {
    let trips = leading_size::<B>(xs)?;
    bodies.limits().check_trips(trips.unsigned_abs())?;
    if trips == 0 {
        return Err(refused("map over no elements: PyTorch cannot tell the sizes of the results"));
    }
    let mut rows = Vec::new();
    for i in 0..trips {
        let slices = xs.iter().map(|x| bodies.slice(x, i)).collect::<Result<Vec<_>>>()?;
        rows.push(bodies.run(body, &[&slices, rest].concat(), Some(i as u64))?);
    }
    stacked(bodies, &rows)
}

/// The results of all iterations, each position in one tensor.
fn stacked<B: Bodies>(bodies: &mut B, rows: &[Vec<B::Value>]) -> Result<Vec<B::Value>> {
    let mut out = Vec::new();
    for k in 0..rows[0].len() {
        let column: Vec<B::Value> = rows.iter().filter_map(|r| r.get(k).cloned()).collect();
        if column.iter().all(|v| matches!(B::see(v), Seen::None)) {
            out.push(B::none());
            continue;
        }
        let types: Option<Vec<_>> = column.iter().map(|v| tensor::<B>(v).ok()).collect();
        let types = types.filter(|t| t.len() == rows.len());
        let types = types.ok_or_else(|| refused("the results of a loop's iterations cannot be stacked"))?;
        if types.iter().any(|t| *t != types[0]) {
            return Err(refused("the results of a loop differ in type from iteration to iteration"));
        }
        out.push(bodies.stack(column)?);
    }
    Ok(out)
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Program, what)
}

fn tensor<B: Bodies>(value: &B::Value) -> Result<(DType, Vec<i64>)> {
    match B::see(value) {
        Seen::Tensor { dtype, sizes } => Ok((dtype, sizes)),
        _ => Err(Error::invalid("control flow slices a value that is no tensor")),
    }
}

/// A copy of a tensor; other values as they are.
fn copied<B: Bodies>(bodies: &mut B, value: &B::Value) -> Result<B::Value> {
    if matches!(B::see(value), Seen::Tensor { .. }) { bodies.copy(value) } else { Ok(value.clone()) }
}

/// Python's `bool(value)`.
fn truth<B: Bodies>(value: &B::Value) -> Result<bool> {
    match B::see(value) {
        Seen::Scalar(s) => Ok(s.as_bool()),
        Seen::Tensor { sizes, .. } if sizes.iter().product::<i64>() == 1 => Ok(B::item(value)?.as_bool()),
        Seen::Tensor { .. } => Err(refused("Boolean value of Tensor with more than one value is ambiguous")),
        _ => Err(Error::invalid("a predicate that is no number and no tensor")),
    }
}

/// The size of dimension 0, which all `xs` have in common.
fn leading_size<B: Bodies>(xs: &[B::Value]) -> Result<i64> {
    let mut size = None;
    for x in xs {
        let (_, sizes) = tensor::<B>(x)?;
        let n = *sizes.first().ok_or_else(|| refused("a 0-d tensor has nothing to be sliced along"))?;
        if *size.get_or_insert(n) != n {
            return Err(refused("Leaves of xs must have same leading dimension size"));
        }
    }
    size.ok_or_else(|| Error::unsupported("a loop over no tensors"))
}
