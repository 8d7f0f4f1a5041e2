//! Higher-order operators as PyTorch's eager implementations run them: operands go in by reference, so that what a body
//! writes is seen outside; `torch/_higher_order_ops` is what is followed.

use super::frame::{Frame, refused};
use super::{Interp, Slot};
use crate::copy::{allocate, copy_into};
use restride_ir::{Arg, Error, GraphId, Hop, Node, Result, RngKey, Scalar};
use restride_tensor::{DType, Layout, RawTensor};

/// The number that tells the iterations of nested loops apart, for the key of random draws: `outer` is that of the
/// loops around, `i` the iteration of this one.
pub fn nested_iteration(outer: u64, i: u64) -> u64 {
    outer.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(i).wrapping_add(1)
}

impl Interp<'_> {
    pub(super) fn run_hop(&mut self, frame: &mut Frame<'_, '_>, node: &Node, hop: Hop) -> Result<Vec<Slot>> {
        let args = node.args.iter().map(|a| frame.arg(a)).collect::<Result<Vec<_>>>()?;
        let body = |i: usize| match args.get(i) {
            Some(Arg::Graph(g)) => Ok(*g),
            _ => Err(Error::invalid(format!("argument {i} of {} is not a graph", node.op))),
        };
        let list = |i: usize| match args.get(i) {
            Some(Arg::Values(vs)) => Ok(vs.iter().map(|v| v.clone().unwrap_or(Slot::None)).collect()),
            Some(Arg::Value(v)) => Ok(vec![v.clone()]),
            Some(Arg::Scalar(s)) => Ok(vec![Slot::Scalar(*s)]),
            Some(Arg::Scalars(ss)) => Ok(ss.iter().map(|s| Slot::Scalar(*s)).collect::<Vec<_>>()),
            Some(Arg::None) | None => Ok(Vec::new()),
            _ => Err(Error::invalid(format!("argument {i} of {} is not a list of values", node.op))),
        };
        let key = RngKey {
            seed: self.options.seed,
            call: self.options.call,
            node: node.origin.key,
            iteration: frame.iteration,
        };
        match hop {
            Hop::Cond => {
                let taken = match args.first() {
                    Some(Arg::Scalar(s)) => s.as_bool(),
                    Some(Arg::Value(slot)) => truth(slot)?,
                    _ => return Err(Error::invalid("cond has no predicate")),
                };
                let graph = body(if taken { 1 } else { 2 })?;
                // A branch's own symbols end with it.
                self.run_graph(graph, &list(3)?, &mut frame.symbols.clone(), frame.iteration)
            }
            Hop::WhileLoop => self.while_loop(frame, body(0)?, body(1)?, list(2)?, &list(3)?, key),
            Hop::Scan => self.scan(frame, body(0)?, list(1)?, &list(2)?, &list(3)?),
            Hop::Map => self.map(frame, body(0)?, &list(1)?, &list(2)?, key),
        }
    }

    /// One iteration's run of a body, with symbols of its own.
    fn iterate(&mut self, frame: &Frame<'_, '_>, graph: GraphId, operands: &[Slot], i: u64) -> Result<Vec<Slot>> {
        self.run_graph(graph, operands, &mut frame.symbols.clone(), nested_iteration(frame.iteration, i))
    }

    fn while_loop(
        &mut self,
        frame: &Frame<'_, '_>,
        cond: GraphId,
        body: GraphId,
        mut carried: Vec<Slot>,
        rest: &[Slot],
        key: RngKey,
    ) -> Result<Vec<Slot>> {
        let count = carried.len();
        for i in 0.. {
            self.program.limits.check_trips(i)?;
            let operands: Vec<Slot> = carried.iter().chain(rest).cloned().collect();
            let goes_on = match self.iterate(frame, cond, &operands, i)?.as_slice() {
                [Slot::Scalar(s @ Scalar::Bool(_))] => s.as_bool(),
                [slot @ Slot::Tensor(t)] if t.borrow().dtype() == DType::Bool && t.borrow().layout().rank() == 0 => {
                    truth(slot)?
                }
                _ => return Err(refused("cond_fn must return a boolean scalar tensor or a boolean")),
            };
            if !goes_on {
                // A loop that never runs gives copies of what it was given.
                return if i == 0 { carried.iter().map(|c| self.cloned(c, key)).collect() } else { Ok(carried) };
            }
            carried = self.iterate(frame, body, &operands, i)?;
            if carried.len() != count {
                let n = carried.len();
                return Err(Error::invalid(format!("a loop's body gives {n} values for {count} that it carries")));
            }
        }
        unreachable!("the loop above has no end of its own")
    }

    fn scan(
        &mut self,
        frame: &Frame<'_, '_>,
        combine: GraphId,
        init: Vec<Slot>,
        xs: &[Slot],
        rest: &[Slot],
    ) -> Result<Vec<Slot>> {
        let count = init.len();
        let trips = leading_size(xs)?;
        self.program.limits.check_trips(trips.unsigned_abs())?;
        let mut carry = init.clone();
        let mut stacked: Vec<Option<RawTensor>> = Vec::new();
        // With nothing to scan PyTorch still runs the body once, on zeros, to learn the sizes.
        for i in 0..trips.max(1) {
            let slices = xs.iter().map(|x| self.slice(x, i, trips)).collect::<Result<Vec<_>>>()?;
            let operands: Vec<Slot> = carry.iter().chain(&slices).chain(rest).cloned().collect();
            let mut out = self.iterate(frame, combine, &operands, i as u64)?;
            if out.len() < count {
                return Err(Error::invalid(format!("a scan's body gives {} values for {count} carries", out.len())));
            }
            let ys = out.split_off(count);
            carry = out;
            if i == 0 {
                for y in &ys {
                    stacked.push(y.tensor().map(|y| stack_of(&y, trips)).transpose()?);
                }
            }
            if trips > 0 {
                for (all, y) in stacked.iter().zip(&ys) {
                    if let (Some(all), Some(y)) = (all, y.tensor()) {
                        put(all, i, &y)?;
                    }
                }
            }
        }
        let carry = if trips == 0 { init } else { carry };
        Ok(carry.into_iter().chain(stacked.into_iter().map(|t| t.map_or(Slot::None, Slot::new))).collect())
    }

    /// The slice of one iteration: a copy for the first, as PyTorch takes it, and views from then on.
    fn slice(&mut self, x: &Slot, i: i64, trips: i64) -> Result<Slot> {
        let t = x.tensor().ok_or_else(|| Error::invalid("what is scanned is no tensor"))?;
        if trips == 0 {
            return Ok(Slot::new(allocate(t.dtype(), Layout::contiguous(&t.layout().sizes[1..]))?));
        }
        let view = at(&t, i)?;
        if i > 0 {
            return Ok(Slot::new(view));
        }
        let own = allocate(t.dtype(), Layout::contiguous(&view.layout().sizes))?;
        copy_into(&own, &view)?;
        Ok(Slot::new(own))
    }

    fn map(
        &mut self,
        frame: &Frame<'_, '_>,
        body: GraphId,
        xs: &[Slot],
        rest: &[Slot],
        key: RngKey,
    ) -> Result<Vec<Slot>> {
        let trips = leading_size(xs)?;
        self.program.limits.check_trips(trips.unsigned_abs())?;
        if trips == 0 {
            return Err(refused("map over no elements: PyTorch cannot tell the sizes of the results"));
        }
        let mut results: Vec<Vec<Slot>> = Vec::new();
        for i in 0..trips {
            let slices = xs.iter().map(|x| {
                let t = x.tensor().ok_or_else(|| Error::invalid("what is mapped over is no tensor"))?;
                at(&t, i).map(Slot::new)
            });
            let operands: Vec<Slot> =
                slices.collect::<Result<Vec<_>>>()?.into_iter().chain(rest.iter().cloned()).collect();
            results.push(self.iterate(frame, body, &operands, i as u64)?);
        }
        let width = results[0].len();
        let stack = |k: usize, interp: &mut Self| -> Result<Slot> {
            let leaves: Vec<Option<Slot>> = results.iter().map(|r| r.get(k).cloned()).collect();
            if leaves.iter().all(|l| matches!(l, Some(Slot::None))) {
                return Ok(Slot::None);
            }
            if !leaves.iter().all(|l| matches!(l, Some(Slot::Tensor(_)))) {
                return Err(refused("the results of map cannot be stacked"));
            }
            let mut out =
                interp.named("aten.stack.default", &[Arg::Values(leaves), Arg::Scalar(Scalar::Int(0))], key)?;
            out.pop().ok_or_else(|| Error::invalid("aten.stack.default gives nothing"))
        };
        (0..width).map(|k| stack(k, self)).collect()
    }

    /// A copy, as `Tensor.clone` makes it; numbers as they are.
    fn cloned(&mut self, slot: &Slot, key: RngKey) -> Result<Slot> {
        if slot.tensor().is_none() {
            return Ok(slot.clone());
        }
        let mut out = self.named("aten.clone.default", &[Arg::Value(slot.clone()), Arg::None], key)?;
        out.pop().ok_or_else(|| Error::invalid("aten.clone.default gives nothing"))
    }

    fn named(&mut self, op: &str, args: &[Arg<Slot, Scalar>], key: RngKey) -> Result<Vec<Slot>> {
        let op = restride_ops::lookup(op).ok_or_else(|| Error::unsupported(format!("there is no operator {op}")))?;
        self.call(op, args, key)
    }
}

/// Python's `bool(tensor)`.
fn truth(slot: &Slot) -> Result<bool> {
    match slot {
        Slot::Scalar(s) => Ok(s.as_bool()),
        Slot::Tensor(t) => {
            let t = t.borrow();
            if t.numel() != 1 {
                return Err(refused("Boolean value of Tensor with more than one value is ambiguous"));
            }
            Ok(t.get(&vec![0; t.layout().rank()]).as_bool())
        }
        _ => Err(Error::invalid("a predicate that is no number and no tensor")),
    }
}

/// The size that all slices are taken of.
fn leading_size(xs: &[Slot]) -> Result<i64> {
    let mut size = None;
    for x in xs {
        let t = x.tensor().ok_or_else(|| Error::invalid("what is sliced is no tensor"))?;
        let n = *t.layout().sizes.first().ok_or_else(|| refused("a 0-d tensor has nothing to be sliced along"))?;
        if *size.get_or_insert(n) != n {
            return Err(refused("Leaves of xs must have same leading dimension size"));
        }
    }
    size.ok_or_else(|| Error::unsupported("a loop over no tensors"))
}

/// `t[i]`.
fn at(t: &RawTensor, i: i64) -> Result<RawTensor> {
    let layout = t.layout().select(0, &i).map_err(restride_ir::OpError::from)?;
    t.alias(t.dtype(), layout).ok_or_else(|| Error::invalid("a slice outside of its tensor"))
}

/// Room for what all iterations give.
fn stack_of(y: &RawTensor, trips: i64) -> Result<RawTensor> {
    let sizes: Vec<i64> = std::iter::once(trips).chain(y.layout().sizes.iter().copied()).collect();
    Ok(allocate(y.dtype(), Layout::contiguous(&sizes))?)
}

fn put(all: &RawTensor, i: i64, y: &RawTensor) -> Result<()> {
    let place = at(all, i)?;
    if place.layout().sizes != y.layout().sizes || place.dtype() != y.dtype() {
        return Err(refused("the results of a scan differ in type from iteration to iteration"));
    }
    Ok(copy_into(&place, y)?)
}
