//! Values of forward that backward keeps: values that both need are kept until backward reads them, or recomputed before.

use super::cost::costs;
use super::{Aim, reach, run, work};
use crate::memory_model::{MemoryModel, ModelNode};
use crate::symbols::specialize;
use restride_ir::{Binding, CollectTree, Error, ErrorKind, NodeId, Program, Result, sort_indices};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The values of forward that are kept for backward.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keep {
    /// All that backward reads.
    All,
    /// All but values that are cheap to recompute for their bytes, where that lowers the peak: together for at most a thirtieth of the
    /// program's work. All where sizes are symbols.
    #[default]
    Auto,
    /// Nothing for its own sake: whatever makes the peak smaller is recomputed, as often as that takes. Where sizes are not
    /// known, everything that can be is recomputed.
    None,
    /// At most this many bytes, beside inputs and outputs.
    Bytes(i64),
}

/// A joint program, and the values that its backward keeps.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The program.
    pub program: Program,
    /// Bytes of forward that backward keeps, inputs and outputs not counted.
    pub bytes: i64,
    /// Bytes that it would keep without computing anything again.
    pub all_bytes: i64,
    /// How many nodes of forward are run again.
    pub again: usize,
}

/// The fraction of a program's work that [`Keep::Auto`] may add.
const WORK: i64 = 30;

/// The number of nodes that the choice looks at; after that, values are dropped in order.
const LOOKS: usize = 20_000_000;

/// Chooses the values of forward that backward keeps, for the sizes that `sizes` gives the symbols. Forward is the first
/// `forward` nodes of a functional program of both. Random draws are kept: a run of the file would draw anew.
///
/// # Errors
/// The values that must be kept exceed the limit; bytes are asked for and a size is a symbol.
pub fn keep(program: &Program, forward: usize, sizes: &Binding, keep: Keep) -> Result<Kept> {
    let known = specialize(program, sizes);
    let mut model = MemoryModel::new(known.graph());
    let random = |n: &ModelNode| known.graph().nodes[n.id].op.def().random;
    model.nodes.iter_mut().for_each(|n| n.free &= !random(n));
    // Memory is not made again under a view that stays: one between numbers that a run learns.
    let graph = known.graph();
    let stay = model.nodes.iter().filter(|n| !n.free).flat_map(|n| &graph.nodes[n.id].results);
    let under: Vec<usize> = stay.filter_map(|r| model.maker[model.memory[*r]?]).collect();
    under.into_iter().for_each(|k| model.nodes[k].free = false);
    let model = model;
    let costs = costs(known.graph(), &model);
    let mut choice = Choice::new(&known, &model, &costs, forward);
    let all_bytes = choice.bytes();
    let as_it_is = || Kept { program: program.clone(), bytes: all_bytes, all_bytes, again: 0 };
    let (sequence, bytes) = match keep {
        Keep::All => return Ok(as_it_is()),
        Keep::Auto | Keep::None if choice.known().is_ok() => {
            let lowest = |work| reach(&known, &model, &costs, Aim { most: 0, work });
            let cheap = lowest(work(&costs, 0..costs.len()) / WORK);
            let (sequence, peak) = match keep {
                Keep::Auto => cheap,
                // Recomputing less can need less memory at once.
                _ => [cheap, lowest(i64::MAX)].into_iter().min_by_key(|(_, peak)| *peak).expect("there are two"),
            };
            if peak >= model.own_peak() {
                return Ok(as_it_is());
            }
            let bytes = crossing(&model, &sequence, forward);
            (sequence, bytes)
        }
        Keep::Auto => return Ok(as_it_is()),
        Keep::None => {
            choice.drop_all();
            (choice.sequence(), choice.bytes())
        }
        Keep::Bytes(most) => {
            choice.known()?;
            choice.drop_to(most)?;
            (choice.sequence(), choice.bytes())
        }
    };
    let again = sequence.len() - model.nodes.len();
    let sequence: Vec<NodeId> = sequence.into_iter().map(|at| model.nodes[at].id).collect();
    Ok(Kept { program: run(program, &model, &sequence)?.program, bytes, all_bytes, again })
}

/// Bytes that are made before the first node of backward, and read then or later.
fn crossing(model: &MemoryModel, sequence: &[usize], forward: usize) -> i64 {
    let begin = sequence.iter().position(|k| *k >= forward).unwrap_or(sequence.len());
    let mut early = vec![false; model.sizes.len()];
    sequence[..begin].iter().flat_map(|k| &model.nodes[*k].makes).for_each(|&m| early[m] = true);
    let mut bytes = 0i64;
    for &k in &sequence[begin..] {
        for &m in &model.nodes[k].reads {
            if std::mem::take(&mut early[m]) {
                bytes = bytes.saturating_add(model.sizes[m]);
            }
        }
        model.nodes[k].makes.iter().for_each(|&m| early[m] = false);
    }
    bytes
}

struct Choice<'a> {
    program: &'a Program,
    model: &'a MemoryModel,
    costs: &'a [i64],
    forward: usize,
    /// Pieces of memory of forward that are kept.
    kept: BTreeSet<usize>,
    /// Nodes of forward that are run again.
    redone: Vec<bool>,
    looks: usize,
}

/// The cost of dropping a piece of memory.
struct Closure {
    /// Nodes that are run again for it, beside those that are anyway.
    nodes: Vec<usize>,
    /// Memory that must be kept to make it again.
    stops: Vec<usize>,
}

impl<'a> Choice<'a> {
    fn new(program: &'a Program, model: &'a MemoryModel, costs: &'a [i64], forward: usize) -> Self {
        let mut out =
            Choice { program, model, costs, forward, kept: BTreeSet::new(), redone: vec![false; forward], looks: 0 };
        out.kept = (0..model.sizes.len()).filter(|&m| out.crosses(m)).collect_set();
        out
    }

    /// Memory that forward makes and backward reads.
    fn crosses(&self, m: usize) -> bool {
        let read = self.model.readers[m].last().is_some_and(|r| *r >= self.forward);
        read && !self.model.is_callers(m) && self.model.maker[m].is_some_and(|k| k < self.forward)
    }

    fn bytes(&self) -> i64 {
        self.kept.iter().fold(0i64, |sum, &m| sum.saturating_add(self.model.sizes[m]))
    }

    fn name(&self, m: usize) -> String {
        let graph = self.program.graph();
        let node = self.model.maker[m].map(|k| &graph.nodes[self.model.nodes[k].id]);
        let own = node.and_then(|n| n.results.iter().find(|r| self.model.memory[**r] == Some(m)));
        own.map_or_else(|| "an input".into(), |v| format!("%{}", graph.values[*v].name))
    }

    /// Whether all sizes are known that count.
    fn known(&self) -> Result<()> {
        let graph = self.program.graph();
        for &m in &self.kept {
            let node = &graph.nodes[self.model.nodes[self.model.maker[m].expect("it is made")].id];
            let unknown = node.results.iter().any(|r| graph.values[*r].ty.tensor().is_none_or(|t| t.known().is_none()));
            if unknown {
                let what = format!("the size of {} is only known at run time", self.name(m));
                return Err(Error::unsupported(what).help("give inputs of typical sizes, or keep all or none"));
            }
        }
        Ok(())
    }

    /// The nodes that run again without this piece of memory, and the memory that must be kept for them.
    fn closure(&mut self, m: usize) -> Closure {
        let mut out = Closure { nodes: Vec::new(), stops: Vec::new() };
        let Some(start) = self.model.maker[m] else { return out };
        let (mut open, mut seen) = (vec![start], BTreeSet::from([start]));
        while let Some(k) = open.pop() {
            self.looks += 1;
            out.nodes.push(k);
            for &read in &self.model.nodes[k].reads {
                if self.model.is_callers(read) || read != m && self.kept.contains(&read) {
                    continue;
                }
                let Some(maker) = self.model.maker[read] else { continue };
                if self.redone[maker] || !seen.insert(maker) {
                    continue;
                }
                if self.model.nodes[maker].free {
                    open.push(maker);
                } else {
                    seen.remove(&maker);
                    out.stops.push(read);
                }
            }
        }
        out.stops.sort_unstable();
        out.stops.dedup();
        out
    }

    fn drop(&mut self, m: usize, closure: Closure) {
        self.kept.remove(&m);
        self.kept.extend(closure.stops);
        closure.nodes.into_iter().for_each(|k| self.redone[k] = true);
    }

    /// Whether it can be made again at all.
    fn droppable(&self, m: usize) -> bool {
        self.model.maker[m].is_some_and(|k| self.model.nodes[k].free)
    }

    fn drop_all(&mut self) {
        let all: BTreeSet<usize> = self.kept.iter().copied().filter(|m| self.droppable(*m)).collect_set();
        // The first reader finds the memory freed.
        self.kept.retain(|m| !all.contains(m));
        for m in all {
            if self.model.maker[m].is_some_and(|k| !self.redone[k]) {
                let closure = self.closure(m);
                self.drop(m, closure);
            }
        }
    }

    /// Drops the memory with the least work for the bytes that it frees, until no more than `most` are kept.
    fn drop_to(&mut self, most: i64) -> Result<()> {
        let mut heap: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for m in self.kept.iter().copied().filter(|m| self.droppable(*m) && self.model.sizes[*m] > 0) {
            let cost = self.model.maker[m].map_or(0, |k| self.costs[k]);
            heap.push(Reverse((ratio(cost, self.model.sizes[m]), m)));
        }
        let mut now = self.bytes();
        while now > most {
            let Some(Reverse((_, m))) = heap.pop() else { return Err(self.too_much(most)) };
            let closure = self.closure(m);
            let held: i64 = closure.stops.iter().map(|s| self.model.sizes[*s]).sum();
            let freed = self.model.sizes[m].saturating_sub(held);
            if freed <= 0 {
                continue;
            }
            let cost = closure.nodes.iter().fold(0i64, |sum, &k| sum.saturating_add(self.costs[k]));
            let own = ratio(cost, freed);
            // Values dropped since may have made it more expensive than the next one.
            if self.looks < LOOKS && heap.peek().is_some_and(|next| own > next.0.0) {
                heap.push(Reverse((own, m)));
                continue;
            }
            self.drop(m, closure);
            now -= freed;
        }
        Ok(())
    }

    fn too_much(&self, most: i64) -> Error {
        let mut stay: Vec<usize> = self.kept.iter().copied().collect();
        let sizes = &self.model.sizes;
        sort_indices(&mut stay, &|a, b| sizes[b].cmp(&sizes[a]).then(a.cmp(&b)));
        let named: Vec<String> =
            stay.iter().take(4).map(|m| format!("{} ({} bytes)", self.name(*m), self.model.sizes[*m])).collect();
        let what = format!(
            "backward cannot keep only {most} bytes of forward: {} bytes in {} values cannot be recomputed, such as {}",
            self.bytes(),
            stay.len(),
            named.join(", ")
        );
        Error::new(ErrorKind::Program, what)
            .help("these values depend on random draws, on sizes that data decides, or on nodes with effects; keep more bytes")
    }

    /// Positions of nodes to run: those of forward that are run again come where backward needs them first.
    fn sequence(&self) -> Vec<usize> {
        let (graph, model) = (self.program.graph(), self.model);
        let mut out: Vec<usize> = (0..self.forward).collect();
        let mut done = vec![false; self.forward];
        for at in self.forward..model.nodes.len() {
            let mut found = BTreeSet::new();
            let mut open = vec![at];
            while let Some(k) = open.pop() {
                for v in graph.nodes[model.nodes[k].id].operands() {
                    let (Some(maker), Some(m)) = (model.made_by[v], model.memory[v]) else { continue };
                    let stays = self.model.is_callers(m) || self.kept.contains(&m) || !self.lost(m);
                    if maker < self.forward && !stays && !done[maker] && found.insert(maker) {
                        open.push(maker);
                    }
                }
            }
            found.iter().for_each(|k| done[*k] = true);
            out.extend(found);
            out.push(at);
        }
        out
    }

    /// Whether memory of forward is made again for backward.
    fn lost(&self, m: usize) -> bool {
        self.model.maker[m].is_some_and(|k| k < self.forward && self.redone[k])
    }
}

fn ratio(cost: i64, bytes: i64) -> u64 {
    (cost.max(0) as u64).saturating_mul(1024) / bytes.max(1) as u64
}
