//! Exchanges of a placed program: bytes sent, in flight and overlapped, and a simulation of ranks from stated rates.

use super::{Prepared, bytes_of};
use crate::prepare::PreparedSegment;
use restride_ir::{Args, Error, Exchange, Graph, Kernel, NodeId, Pattern, Place, Result, Step, ValueId, placed_args};
use std::sync::Arc;

/// Exchanges of one run, in bytes that are the same for any number of ranks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ExchangeCounts {
    /// Exchanges, those in bodies included.
    pub exchanges: usize,
    /// Bytes of their operands.
    pub operand_bytes: i64,
    /// Most bytes of operands and results that are the engine's at one step.
    pub in_flight_bytes: i64,
    /// Exchanges with other steps between start and wait.
    pub overlapped: usize,
    /// Bytes of the operands of these.
    pub overlapped_bytes: i64,
    /// Copies of operands and results that are not contiguous, which are exchanged at once.
    pub packed: usize,
}

/// Rates of a machine, for [`Prepared::simulate`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// Bytes that a rank sends in a second.
    pub link: f64,
    /// Seconds from a rank to the next, for each message.
    pub latency: f64,
    /// Bytes that the steps of a rank read and write in a second.
    pub memory: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Rates { link: 10e9, latency: 10e-6, memory: 10e9 }
    }
}

/// One rank of several, simulated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimulatedRank {
    /// Number of ranks.
    pub ranks: usize,
    /// Bytes of the arena.
    pub arena_bytes: i64,
    /// Bytes of the state that a run changes.
    pub state_bytes: i64,
    /// Bytes that the rank sends in a run.
    pub sent_bytes: f64,
    /// Seconds of the steps.
    pub steps: f64,
    /// Seconds in which the link is busy.
    pub exchanges: f64,
    /// Seconds in which the rank waits for the link and nothing else.
    pub exposed: f64,
}

impl SimulatedRank {
    /// Seconds of the run.
    pub fn total(&self) -> f64 {
        self.steps + self.exposed
    }
}

/// An exchange of a main graph, between two steps.
struct ExchangeSpan {
    exchange: Exchange,
    start: usize,
    /// The step that waits; the start itself where memory is packed.
    wait: usize,
    sent: i64,
    received: i64,
    packed: usize,
}

fn flights(segment: &PreparedSegment) -> Result<Vec<ExchangeSpan>> {
    let (graph, steps) = (segment.program.graph(), &segment.placement.steps);
    let mut out = Vec::new();
    for (start, step) in steps.iter().enumerate() {
        let Step::Run { node, reads, writes } = step else { continue };
        let Some((exchange, result)) = exchange(graph, *node, reads)? else { continue };
        let packed = reads.iter().chain(writes).flatten().filter(|p| !p.layout.is_contiguous()).count();
        let ends = |s: &Step| match s {
            Step::Run { node, .. } => {
                let node = &graph.nodes[*node];
                node.op.def().awaits && node.operands().next() == Some(result)
            }
            _ => false,
        };
        let wait = steps.iter().position(ends).filter(|_| packed == 0).unwrap_or(start);
        let operands = graph.nodes[*node].operands();
        let sent = operands.map(|v| bytes_of(&graph.values[v].ty)).sum();
        let received = bytes_of(&graph.values[result].ty);
        out.push(ExchangeSpan { exchange, start, wait, sent, received, packed });
    }
    Ok(out)
}

/// The exchange of a node, and its result.
fn exchange(graph: &Graph, id: NodeId, reads: &[Option<Place>]) -> Result<Option<(Exchange, ValueId)>> {
    let node = &graph.nodes[id];
    let (Kernel::Collective(describe), &[result]) = (node.op.def().kernel, &node.results[..]) else { return Ok(None) };
    let args = placed_args(graph, id, reads)?;
    Ok(Some((describe(&Args(&args))?, result)))
}

impl ExchangeSpan {
    /// Bytes that one of `n` ranks sends, by rings, and the messages that follow each other.
    fn cost(&self, n: usize) -> (f64, f64) {
        let (ranks, sent, received) = (n as f64, self.sent as f64, self.received as f64);
        if n < 2 {
            return (0.0, 0.0);
        }
        match &self.exchange.pattern {
            Pattern::AllReduce(_) => (2.0 * (ranks - 1.0) / ranks * sent, 2.0 * (ranks - 1.0)),
            Pattern::AllGather => ((ranks - 1.0) * sent, ranks - 1.0),
            Pattern::ReduceScatter(_) => ((ranks - 1.0) * received, ranks - 1.0),
            Pattern::AllToAll { .. } => ((ranks - 1.0) / ranks * sent, ranks - 1.0),
            Pattern::Broadcast { .. } => (sent, ranks.log2().ceil()),
        }
    }
}

/// Exchanges of all segments, with bodies.
pub(crate) fn counts(segments: &[Arc<PreparedSegment>]) -> ExchangeCounts {
    let mut out = ExchangeCounts::default();
    for segment in segments {
        let flights = flights(segment).unwrap_or_default();
        let other = |at: usize| match &segment.placement.steps[at] {
            Step::Run { node, .. } => {
                let def = segment.program.graph().nodes[*node].op.def();
                !def.awaits && !matches!(def.kernel, Kernel::Collective(_))
            }
            Step::Move { .. } => true,
            Step::Free { .. } => false,
        };
        for f in &flights {
            out.operand_bytes += f.sent;
            out.packed += f.packed;
            if (f.start + 1..f.wait).any(other) {
                out.overlapped += 1;
                out.overlapped_bytes += f.sent;
            }
            let there = flights.iter().filter(|o| o.start <= f.start && f.start <= o.wait);
            out.in_flight_bytes = out.in_flight_bytes.max(there.map(|o| o.sent + o.received).sum());
        }
        let nodes = segment.program.graphs.iter().flat_map(|(_, g)| g.ordered());
        out.exchanges += nodes.filter(|(_, n)| matches!(n.op.def().kernel, Kernel::Collective(_))).count();
    }
    out
}

impl Prepared {
    /// One rank of `ranks`, all of them in one group, from stated rates: each step takes the time of the bytes that it reads and
    /// writes; exchanges go one after the other, by rings, beside the steps up to their waits. No engine is needed.
    ///
    /// # Errors
    /// The program is for another number of ranks.
    pub fn simulate(&self, ranks: usize, rates: &Rates) -> Result<SimulatedRank> {
        let plan = self.report().plan;
        let (arena_bytes, state_bytes) = (plan.arena_bytes, plan.state_bytes);
        let mut out = SimulatedRank {
            ranks,
            arena_bytes,
            state_bytes,
            sent_bytes: 0.0,
            steps: 0.0,
            exchanges: 0.0,
            exposed: 0.0,
        };
        let (mut now, mut link_free) = (0.0f64, 0.0f64);
        for segment in &self.segments {
            let flights = flights(segment)?;
            let mut ends = vec![0.0f64; flights.len()];
            for (at, step) in segment.placement.steps.iter().enumerate() {
                for (k, f) in flights.iter().enumerate().filter(|(_, f)| f.start == at) {
                    if let Some(made_for) = f.exchange.ranks.filter(|n| *n != ranks as i64) {
                        let what = format!("{} is of {made_for} ranks, not of {ranks}", f.exchange);
                        return Err(Error::unsupported(what).help("export the program for the number of ranks"));
                    }
                    let (bytes, messages) = f.cost(ranks);
                    let took = bytes / rates.link + messages * rates.latency;
                    link_free = now.max(link_free) + took;
                    ends[k] = link_free;
                    out.sent_bytes += bytes;
                    out.exchanges += took;
                }
                for (k, _) in flights.iter().enumerate().filter(|(_, f)| f.wait == at) {
                    out.exposed += (ends[k] - now).max(0.0);
                    now = now.max(ends[k]);
                }
                if flights.iter().all(|f| f.start != at && f.wait != at) {
                    let took = moved(segment, step) as f64 / rates.memory;
                    out.steps += took;
                    now += took;
                }
            }
        }
        Ok(out)
    }
}

/// Bytes that a step reads and writes.
fn moved(segment: &PreparedSegment, step: &Step) -> i64 {
    let graph = segment.program.graph();
    let bytes = |v: ValueId| bytes_of(&graph.values[v].ty);
    match step {
        Step::Run { node, reads, writes } => {
            let node = &graph.nodes[*node];
            let placed = |(v, p): (ValueId, &Option<Place>)| p.as_ref().map_or(0, |_| bytes(v));
            let read: i64 = node.operands().zip(reads).map(placed).sum();
            read + node.results.iter().copied().zip(writes).map(placed).sum::<i64>()
        }
        Step::Move { value, .. } => 2 * bytes(*value),
        Step::Free { .. } => 0,
    }
}
