//! Eviction: nodes are visited in order, and when the live bytes exceed the limit, values that are cheap to recompute for
//! their bytes and are not needed soon are dropped. Their next reader recomputes them, with the values that this needs.

use crate::memory_model::MemoryModel;
use restride_ir::{OutputKind, Program, ValueId};
use std::collections::BTreeSet;

/// Candidates that are looked at for each value that is dropped.
const LOOKS: usize = 24;

/// Nodes behind a candidate that are looked at.
const DEPTH: usize = 32;

/// The program's nodes are run at most this many times; beyond that, memory over the limit stays.
const TIMES: usize = 4;

/// Positions of nodes to run so that, by the model, at most `most` bytes are live at once, as far as that is possible.
pub(super) fn evict(program: &Program, model: &MemoryModel, costs: &[i64], most: i64) -> Vec<usize> {
    let mut dropping = Dropping::new(program, model, costs, most);
    (0..model.nodes.len()).for_each(|at| dropping.step(at));
    dropping.out
}

struct Dropping<'a> {
    program: &'a Program,
    model: &'a MemoryModel,
    costs: &'a [i64],
    most: i64,
    /// The last position at which memory can be made again; `None` if it cannot.
    until: Vec<Option<usize>>,
    /// Values on each piece of memory.
    values: Vec<Vec<ValueId>>,
    /// Whether each value is live.
    valid: restride_ir::Table<ValueId, bool>,
    there: Vec<bool>,
    /// The number of nodes about to run that read each value.
    pins: Vec<u32>,
    /// Values that may be dropped, by cost for each byte.
    candidates: BTreeSet<(i64, usize)>,
    now: i64,
    out: Vec<usize>,
    /// The last look at the nodes behind a candidate, by node, and the number of that look.
    seen: Vec<u32>,
    round: u32,
}

impl<'a> Dropping<'a> {
    fn new(program: &'a Program, model: &'a MemoryModel, costs: &'a [i64], most: i64) -> Self {
        let graph = program.graph();
        let pieces = model.sizes.len();
        let mut values = vec![Vec::new(); pieces];
        let all = graph.ordered().flat_map(|(_, n)| n.results.iter().copied());
        all.for_each(|v| values[model.memory[v].expect("results lie somewhere")].push(v));
        let mut out = Dropping {
            until: Vec::new(),
            valid: restride_ir::Table::new(),
            there: vec![false; pieces],
            pins: vec![0; pieces],
            candidates: BTreeSet::new(),
            now: 0,
            seen: vec![0; model.nodes.len()],
            round: 0,
            out: Vec::with_capacity(model.nodes.len()),
            program,
            model,
            costs,
            most,
            values,
        };
        for &v in &graph.inputs {
            out.valid.set(v, true);
            if let Some(m) = model.memory[v] {
                out.there[m] = true;
            }
        }
        out.until = out.until();
        out
    }

    /// How long each piece of memory can be made again: as long as the operands of its node are live or can be made. Inputs
    /// that are written count only as long as the program reads them itself: a later read would keep them from being
    /// written in their own memory. Small ones are an exception.
    fn until(&self) -> Vec<Option<usize>> {
        let (graph, model) = (self.program.graph(), self.model);
        let mut bytes = vec![0i64; model.sizes.len()];
        for spec in &self.program.signature.outputs {
            if let OutputKind::Mutation(i) = spec.kind
                && let Some(m) = model.memory[graph.inputs[i]]
            {
                bytes[m] = crate::memory_model::bytes(graph, graph.inputs[i]).max(1);
            }
        }
        let mut until: Vec<Option<usize>> = vec![None; model.sizes.len()];
        for node in model.nodes.iter() {
            let made = node.makes.iter().map(|m| model.whole[*m]).max().unwrap_or(0);
            let last = |&m: &usize| {
                let read = model.readers[m].last().copied().unwrap_or(0);
                match self.model.maker[m] {
                    None if bytes[m] > made / 16 => read,
                    None => usize::MAX,
                    Some(_) if self.model.is_callers(m) => usize::MAX,
                    Some(_) => until[m].unwrap_or(read),
                }
            };
            if node.free {
                let own = node.reads.iter().map(last).min().unwrap_or(usize::MAX);
                node.makes.iter().for_each(|&m| until[m] = Some(own));
            }
        }
        until
    }

    /// The next node that reads it after a position.
    fn next(&self, m: usize, at: usize) -> Option<usize> {
        let all = &self.model.readers[m];
        all.get(all.partition_point(|r| *r <= at)).copied()
    }

    /// Runs the node at a position, after recomputing its operands.
    fn step(&mut self, at: usize) {
        let redo = self.missing(at);
        for &k in redo.iter().chain([&at]) {
            self.model.nodes[k].reads.iter().for_each(|&m| self.pins[m] += 1);
        }
        redo.iter().for_each(|&k| self.run(k, at));
        self.run(at, at);
    }

    /// The nodes that make a node's dropped operands, in order.
    fn missing(&self, at: usize) -> Vec<usize> {
        let graph = self.program.graph();
        let mut found = BTreeSet::new();
        let mut open = vec![at];
        while let Some(k) = open.pop() {
            for v in graph.nodes[self.model.nodes[k].id].operands().filter(|v| !self.valid[*v]) {
                if let Some(maker) = self.model.made_by[v]
                    && found.insert(maker)
                {
                    open.push(maker);
                }
            }
        }
        found.into_iter().collect()
    }

    fn run(&mut self, k: usize, at: usize) {
        let node = &self.model.nodes[k];
        let again = k != at;
        let mut gone = Vec::new();
        for &m in &node.reads {
            self.pins[m] -= 1;
            if self.pins[m] == 0 && self.next(m, at).is_none() && !self.model.is_callers(m) && self.there[m] {
                gone.push(m);
            }
        }
        let freed: i64 = self.model.sum(&gone);
        let made: i64 = node.makes.iter().map(|&m| if again { self.model.whole[m] } else { self.model.sizes[m] }).sum();
        let over = if node.reuses { made.min(freed) } else { 0 };
        // Its operands must not be dropped now.
        node.reads.iter().for_each(|&m| self.pins[m] += 1);
        self.make_room(made - over, at);
        node.reads.iter().for_each(|&m| self.pins[m] -= 1);
        self.out.push(k);
        gone.into_iter().for_each(|m| self.drop(m));
        for &m in &node.makes {
            if again && self.model.is_callers(m) {
                continue;
            }
            if self.there[m] {
                // Only this one is read from now on.
                self.drop(m);
            }
            self.there[m] = true;
            self.now += self.model.sizes[m];
        }
        let graph = self.program.graph();
        for &r in &graph.nodes[node.id].results {
            self.valid.set(r, true);
        }
        for &m in &node.makes {
            if self.model.is_callers(m) {
                continue;
            }
            match self.next(m, at) {
                None if self.pins[m] == 0 => self.drop(m),
                _ if self.until[m].is_some() && self.model.sizes[m] >= self.most / 8192 => {
                    self.candidates.insert((self.density(m), m));
                }
                _ => {}
            }
        }
    }

    /// Cost for each byte, in parts of 1/1024.
    fn density(&self, m: usize) -> i64 {
        let cost = self.model.maker[m].map_or(0, |k| self.costs[k]);
        cost.saturating_mul(1024) / self.model.sizes[m].max(1)
    }

    fn drop(&mut self, m: usize) {
        self.there[m] = false;
        self.now -= self.model.sizes[m];
        self.candidates.remove(&(self.density(m), m));
        for v in &self.values[m] {
            self.valid.set(*v, false);
        }
    }

    fn make_room(&mut self, need: i64, at: usize) {
        // No more than the live bytes can be dropped.
        while self.now.saturating_add(need) > self.most && self.out.len() < TIMES * self.model.nodes.len() + 1024 {
            let Some(m) = self.worst(at) else { return };
            self.drop(m);
        }
    }

    /// The best value to drop: little work for many bytes and a long time.
    fn worst(&mut self, at: usize) -> Option<usize> {
        let may = |m: usize| {
            let next = self.next(m, at)?;
            (self.pins[m] == 0 && self.until[m].is_some_and(|u| u >= next)).then_some((m, next))
        };
        let found: Vec<(usize, usize)> = self.candidates.iter().filter_map(|c| may(c.1)).take(LOOKS).collect();
        let mut best: Option<(f64, usize)> = None;
        for (m, next) in found {
            let freed = self.model.sizes[m] as f64 * (next - at) as f64;
            let most = best.map_or(f64::INFINITY, |b| b.0 * freed);
            let Some(cost) = self.behind(m, most) else { continue };
            best = Some((cost as f64 / freed, m));
        }
        best.map(|b| b.1)
    }

    /// The cost of making a value again, with its dropped operands, if it is less than `most`.
    fn behind(&mut self, m: usize, most: f64) -> Option<i64> {
        self.round += 1;
        let (mut open, mut seen, mut cost) = (vec![self.model.maker[m]?], 1, 0i64);
        while let Some(k) = open.pop() {
            cost = cost.saturating_add(self.costs[k]);
            if cost as f64 >= most {
                return None;
            }
            for &read in &self.model.nodes[k].reads {
                if self.there[read] || self.model.is_callers(read) {
                    continue;
                }
                if let Some(maker) = self.model.maker[read]
                    && self.seen[maker] != self.round
                {
                    if seen == DEPTH {
                        // The cost exceeds the limit, by an unknown amount.
                        cost = cost.saturating_mul(4);
                        return ((cost as f64) < most).then_some(cost);
                    }
                    seen += 1;
                    self.seen[maker] = self.round;
                    open.push(maker);
                }
            }
        }
        Some(cost)
    }
}
