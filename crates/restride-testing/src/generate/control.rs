//! `cond`, `while_loop`, `scan` and `map` with bodies that view and write their operands, nested too.

use super::{GeneratedCall, Generator, int, ints, value, values};
use crate::magnitude::Magnitude;
use crate::tracer::Tracer;
use restride_ir::{Arg, DType, Graph, GraphId, Id, Layout, Meta, ValueId};

/// Largest numbers in a loop: the range of half types.
const LOOP: Magnitude = Magnitude(32.0);

/// A result of a body: its type, the operand that shares its memory, and its magnitude.
#[derive(Clone, PartialEq, Debug)]
struct ControlResult {
    meta: Meta,
    on: Option<usize>,
    bound: Magnitude,
}

/// A generated body.
struct GeneratedBody {
    graph: Graph,
    results: Vec<ControlResult>,
    /// Magnitudes of the operands' storages after it.
    after: Vec<Magnitude>,
}

/// An operand of a body.
#[derive(Clone)]
struct ControlOperand {
    meta: Meta,
    /// Operands of equal numbers share storage.
    storage: usize,
    bound: Magnitude,
}

impl Generator {
    pub(super) fn control(&mut self) -> GeneratedCall {
        if self.depth >= 2 {
            return None;
        }
        let bodies = self.bodies.len();
        let made = match self.rng.below(8) {
            0..=3 => self.cond(),
            4 | 5 => self.while_loop(),
            6 => self.scan(),
            _ => self.map(),
        };
        // A body may return its operand itself.
        for v in made.iter().flatten() {
            self.t.pin(*v);
        }
        if made.is_none() {
            self.bodies.truncate(bodies);
        }
        made
    }

    /// Some different tensors.
    fn operands(&mut self, n: usize) -> Vec<ValueId> {
        let mut out: Vec<ValueId> = Vec::new();
        for _ in 0..n {
            let v = self.pick();
            if !out.contains(&v) {
                self.t.pin(v);
                out.push(v);
            }
        }
        out
    }

    fn as_operand(&self, v: ValueId) -> ControlOperand {
        ControlOperand { meta: self.t.meta(v).clone(), storage: self.t.storage(v), bound: self.t.bound(v) }
    }

    /// Generates a body on operands; `write` adds its calls and returns its results. In a loop, magnitudes of operands may
    /// not grow.
    fn body(
        &mut self,
        operands: &[ControlOperand],
        looped: bool,
        write: impl FnOnce(&mut Generator, &[ValueId]) -> GeneratedCall,
    ) -> Option<GeneratedBody> {
        let inner = Tracer::new(self.wild, true);
        let outer = std::mem::replace(&mut self.t, inner);
        self.depth += 1;
        let mut inputs: Vec<ValueId> = Vec::new();
        for (i, o) in operands.iter().enumerate() {
            let beside = operands[..i].iter().position(|p| p.storage == o.storage).map(|p| inputs[p]);
            let bound = if looped { o.bound.or(LOOP) } else { o.bound };
            inputs.push(self.t.input(&format!("a{i}"), o.meta.clone(), beside, bound));
        }
        if looped {
            inputs.iter().for_each(|v| self.t.hold(*v));
        }
        let made = write(self, &inputs);
        self.depth -= 1;
        let inner: Tracer = std::mem::replace(&mut self.t, outer);
        let outputs = made?;
        let results = outputs.iter().map(|v| ControlResult {
            meta: inner.meta(*v).clone(),
            on: inputs.iter().position(|i| inner.storage(*i) == inner.storage(*v)),
            bound: inner.bound(*v),
        });
        let results = results.collect();
        let after = inputs.iter().map(|v| inner.bound(*v)).collect();
        let mut graph = inner.graph;
        graph.outputs = outputs.iter().map(|v| value(*v)).collect();
        Some(GeneratedBody { graph, results, after })
    }

    /// Adds a graph and returns its id.
    fn keep(&mut self, mut graph: Graph, name: &str) -> Arg {
        graph.name = format!("{name}{}", self.bodies.len()).into();
        self.bodies.push(graph);
        // The main graph is graph 0; bodies follow in order.
        Arg::Graph(GraphId::new(self.bodies.len()))
    }

    fn widen(&mut self, operands: &[ValueId], after: &[Magnitude]) {
        for (v, b) in operands.iter().zip(after) {
            self.t.widen(*v, *b);
        }
    }

    /// A tensor of a type, or a copy in that type.
    fn of_type(&mut self, meta: &Meta, within: Option<Magnitude>) -> Option<ValueId> {
        let fits: Vec<ValueId> = self
            .t
            .values()
            .into_iter()
            .filter(|v| self.t.meta(*v) == meta && within.is_none_or(|b| self.t.bound(*v).within(b)))
            .collect();
        if fits.is_empty() { None } else { Some(*self.rng.choose(&fits)) }
    }

    fn cond(&mut self) -> GeneratedCall {
        let flag = self.pick_where(|m| m.dtype == DType::Bool && m.layout.rank() == 0)?;
        let count = 1 + self.rng.below(3);
        let operands = self.operands(count);
        let seen: Vec<ControlOperand> = operands.iter().map(|v| self.as_operand(*v)).collect();
        let (calls, copies) = (1 + self.rng.below(4), self.rng.chance(60));
        let yes = self.body(&seen, false, |g, inputs| {
            g.calls(calls);
            let first = if copies { g.t.call("aten.clone.default", vec![value(inputs[0])])?[0] } else { g.pick() };
            let mut out = vec![first];
            if g.rng.chance(30) {
                out.push(*g.rng.choose(inputs));
            }
            Some(out)
        })?;
        let types: Vec<Meta> = yes.results.iter().map(|r| r.meta.clone()).collect();
        let calls = self.rng.below(4);
        let no = self.body(&seen, false, |g, inputs| {
            g.calls(calls);
            let mut out = Vec::new();
            for (i, meta) in types.iter().enumerate() {
                let copy = if i == 0 && copies { g.t.call("aten.clone.default", vec![value(inputs[0])]) } else { None };
                let v = match copy.map(|c| c[0]).filter(|c| g.t.meta(*c) == meta) {
                    Some(v) => v,
                    None => g.of_type(meta, None)?,
                };
                out.push(v);
            }
            Some(out)
        })?;
        let mut results = Vec::new();
        for (a, b) in yes.results.iter().zip(&no.results) {
            // The result's memory does not depend on the branch here.
            if a.meta != b.meta || a.on != b.on {
                return None;
            }
            results.push((a.meta.clone(), a.on.map(|i| operands[i]), a.bound.or(b.bound)));
        }
        let yes_graph = self.keep(yes.graph, "yes");
        let no_graph = self.keep(no.graph, "no");
        self.widen(&operands, &yes.after);
        self.widen(&operands, &no.after);
        let op = restride_ops::lookup("higher_order.cond")?;
        Some(self.t.call_as(op, vec![value(flag), yes_graph, no_graph, values(&operands)], &results))
    }

    /// Tensors for a loop to carry, the counter first: contiguous, like the body's results.
    fn while_loop(&mut self) -> GeneratedCall {
        let dtype = Arg::DType(DType::I64);
        let zero = self.t.call("aten.full.default", vec![ints(&[]), int(0), dtype])?[0];
        self.t.hide(zero);
        let mut carried = vec![zero];
        for _ in 0..self.rng.below(3) {
            let plain = |m: &Meta| m.layout.is_contiguous() && m.layout.offset == 0;
            let v = self.pick_where(plain)?;
            if self.t.bound(v).within(LOOP) && !carried.contains(&v) {
                self.t.pin(v);
                carried.push(v);
            }
        }
        let n = carried.len();
        let count = self.rng.below(3);
        let additional: Vec<ValueId> = self.operands(count).into_iter().filter(|v| !carried.contains(v)).collect();
        if n + additional.len() < 2 {
            return None;
        }
        // From the second iteration on, the carried tensor is another one.
        let mut seen: Vec<ControlOperand> = carried.iter().chain(&additional).map(|v| self.as_operand(*v)).collect();
        for (i, o) in seen[..n].iter_mut().enumerate() {
            o.storage = usize::MAX - i;
        }
        let trips = self.rng.between(0, 3);
        let test =
            self.body(&seen, true, |g, inputs| g.t.call("aten.lt.Scalar", vec![value(inputs[0]), int(trips)]))?;
        let calls = 1 + self.rng.below(4);
        let body = self.body(&seen, true, |g, inputs| {
            let next = g.t.call("aten.add.Scalar", vec![value(inputs[0]), int(1)])?[0];
            g.t.hide(inputs[0]);
            g.t.hide(next);
            g.calls(calls);
            // In the first iteration, the carried tensor is the operand itself.
            let carry = *g.rng.choose(inputs);
            if inputs[1..n].contains(&carry) && g.rng.chance(50) {
                let ops = ["aten.zero_.default", "aten.neg_.default", "aten.relu_.default"];
                let some = match g.t.meta(carry).dtype {
                    DType::Bool => 1,
                    d if d.is_complex() => 2,
                    _ => 3,
                };
                let op = *g.rng.choose(&ops[..some]);
                g.t.call(op, vec![value(carry)]);
            }
            let mut out = vec![next];
            for &v in &inputs[1..n] {
                let meta = g.t.meta(v).clone();
                let bound = g.t.bound(v);
                let found = g.of_type(&meta, Some(bound)).filter(|_| g.rng.chance(60));
                let result = match found {
                    Some(r) if !out.contains(&r) => r,
                    _ => g.t.call("aten.clone.default", vec![value(v)])?[0],
                };
                out.push(result);
            }
            Some(out)
        })?;
        let (cond_graph, body_graph) = (self.keep(test.graph, "test"), self.keep(body.graph, "body"));
        let operands: Vec<ValueId> = carried.iter().chain(&additional).copied().collect();
        self.widen(&operands, &body.after);
        let results: Vec<(Meta, Option<ValueId>, Magnitude)> = body
            .results
            .iter()
            .enumerate()
            .map(|(i, r)| (r.meta.clone(), r.on.map(|o| operands[o]), r.bound.or(self.t.bound(carried[i]))))
            .collect();
        let op = restride_ops::lookup("higher_order.while_loop")?;
        let made = self.t.call_as(op, vec![cond_graph, body_graph, values(&carried), values(&additional)], &results);
        self.t.hide(made[0]);
        Some(made)
    }

    /// Tensors to slice, with their slices.
    fn slices(&mut self) -> Option<(Vec<ValueId>, Vec<ControlOperand>, i64)> {
        let fits = |m: &Meta| m.layout.rank() > 0 && m.layout.sizes[0] > 0 && m.layout.is_contiguous();
        let first = self.pick_where(fits)?;
        let trips = self.sizes_of(first)[0];
        let mut xs = vec![first];
        if self.rng.chance(30) {
            let more = self.pick_where(|m| fits(m) && m.layout.sizes[0] == trips)?;
            if more != first {
                xs.push(more);
            }
        }
        let slices = xs.iter().map(|v| {
            let m = self.t.meta(*v);
            let layout = Layout::contiguous(&m.layout.sizes[1..]);
            ControlOperand { meta: Meta::new(m.dtype, layout), storage: self.t.storage(*v), bound: self.t.bound(*v) }
        });
        let slices = slices.collect();
        Some((xs, slices, trips))
    }

    fn stacked(results: &[ControlResult], trips: i64) -> Vec<(Meta, Option<ValueId>, Magnitude)> {
        let stack = |r: &ControlResult| {
            let sizes: Vec<i64> = std::iter::once(trips).chain(r.meta.layout.sizes.iter().copied()).collect();
            (Meta::contiguous(r.meta.dtype, &sizes), None, r.bound)
        };
        results.iter().map(stack).collect()
    }

    fn scan(&mut self) -> GeneratedCall {
        let (xs, slices, trips) = self.slices()?;
        let carry = self.pick_where(|m| m.layout.is_contiguous() && m.layout.offset == 0)?;
        if !self.t.bound(carry).within(LOOP) {
            return None;
        }
        self.t.pin(carry);
        let count = self.rng.below(3);
        let additional: Vec<ValueId> =
            self.operands(count).into_iter().filter(|v| *v != carry && !xs.contains(v)).collect();
        let mut seen = vec![ControlOperand { storage: usize::MAX, ..self.as_operand(carry) }];
        seen.extend(slices);
        seen.extend(additional.iter().map(|v| self.as_operand(*v)));
        let calls = 1 + self.rng.below(3);
        let body = self.body(&seen, true, |g, inputs| {
            g.calls(calls);
            let (meta, bound) = (g.t.meta(inputs[0]).clone(), g.t.bound(inputs[0]));
            let found = g.of_type(&meta, Some(bound)).filter(|_| g.rng.chance(60));
            let next = match found {
                Some(v) => v,
                None => g.t.call("aten.clone.default", vec![value(inputs[0])])?[0],
            };
            let y = g.pick();
            Some(vec![next, y])
        })?;
        let graph = self.keep(body.graph, "step");
        let operands: Vec<ValueId> =
            std::iter::once(carry).chain(xs.iter().copied()).chain(additional.iter().copied()).collect();
        self.widen(&operands, &body.after);
        let next = &body.results[0];
        let mut results = vec![(next.meta.clone(), next.on.map(|i| operands[i]), next.bound.or(self.t.bound(carry)))];
        results.extend(Self::stacked(&body.results[1..], trips));
        let op = restride_ops::lookup("higher_order.scan")?;
        Some(self.t.call_as(op, vec![graph, values(&[carry]), values(&xs), values(&additional)], &results))
    }

    fn map(&mut self) -> GeneratedCall {
        let (xs, slices, trips) = self.slices()?;
        let count = self.rng.below(3);
        let additional: Vec<ValueId> = self.operands(count).into_iter().filter(|v| !xs.contains(v)).collect();
        let mut seen = slices;
        seen.extend(additional.iter().map(|v| self.as_operand(*v)));
        let calls = 1 + self.rng.below(3);
        let body = self.body(&seen, true, |g, _| {
            g.calls(calls);
            Some(vec![g.pick()])
        })?;
        let graph = self.keep(body.graph, "each");
        let operands: Vec<ValueId> = xs.iter().chain(&additional).copied().collect();
        self.widen(&operands, &body.after);
        let results = Self::stacked(&body.results, trips);
        let op = restride_ops::lookup("higher_order.map_impl")?;
        Some(self.t.call_as(op, vec![graph, values(&xs), values(&additional)], &results))
    }
}
