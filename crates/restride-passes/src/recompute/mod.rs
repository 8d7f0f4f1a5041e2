//! Rematerialisation: a node is run a second time, shortly before its result is needed late, so that the memory of its
//! result is free in between.
//!
//! The result is a sequence of the nodes of a graph, some of them several times. A node reads the latest run of each
//! operand, so a sequence means the same as the graph, however often it repeats nodes: the same node makes the same value
//! of the same operands, and random draws depend on the node's number in the program ([`restride_ir::Origin::key`]).
//! [`recompute`] finds a sequence that needs less memory at once, `backward_keeps` one in which backward keeps less of
//! forward, and [`again`] makes the program that runs a sequence.

mod backward_keeps;
mod cost;
mod drop_values;
mod keep_again;
#[cfg(test)]
mod tests;

pub use backward_keeps::{Keep, Kept, keep};

use crate::dce::dce;
use crate::memory_model::MemoryModel;
use restride_ir::{
    Arg, Error, ErrorKind, Graph, Names, NodeId, Program, Reason, Remark, RemarkKind, Result, Table, ValueId,
};

/// Number of bisection steps towards the smallest peak that can be reached.
const HALVINGS: usize = 8;

/// A sequence of nodes to run, and how much the model says that it needs at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recomputed {
    /// The nodes, some of them several times.
    pub sequence: Vec<NodeId>,
    /// The largest number of live bytes, by the model.
    pub peak: i64,
}

/// A sequence with at most `most` live bytes by the model of memory, or else as few as it finds.
///
/// The program has known sizes. Nodes keep their order. Where memory is short, values that can be recomputed and are needed
/// latest for their cost are dropped, and recomputed for their next reader. Values that fit after all are kept.
pub fn recompute(program: &Program, most: i64) -> Recomputed {
    let model = MemoryModel::new(program.graph());
    let costs = cost::costs(program.graph(), &model);
    let (sequence, peak) = reach(program, &model, &costs, Aim { most, work: i64::MAX });
    Recomputed { sequence: sequence.into_iter().map(|at| model.nodes[at].id).collect(), peak }
}

/// Targets of the search.
#[derive(Clone, Copy)]
struct Aim {
    /// Bytes at once by the model; where that cannot be, as few as are found.
    most: i64,
    /// The largest cost of all recomputation.
    work: i64,
}

/// As [`recompute`], with the model of the program, whose nodes may be free to be run again or not: the positions of nodes to run,
/// and the peak.
fn reach(program: &Program, model: &MemoryModel, costs: &[i64], aim: Aim) -> (Vec<usize>, i64) {
    let all = work(costs, 0..model.nodes.len());
    // A sequence with too much work does not count.
    let reach = |most: i64| {
        let found = keep_again::restore(model, costs, drop_values::evict(program, model, costs, most), most);
        let added = work(costs, found.0.iter().copied()).saturating_sub(all);
        (added <= aim.work).then_some(found)
    };
    let mut best = reach(aim.most).unwrap_or_else(|| (model.own_order(), model.own_peak()));
    // Aiming at a peak that cannot be reached gives poor sequences: everything is dropped again and again.
    let (mut low, mut high) = (aim.most.max(model.floor()), best.1);
    for _ in 0..HALVINGS {
        if best.1 <= aim.most || low >= high {
            break;
        }
        let middle = low.midpoint(high);
        let found = reach(middle);
        match &found {
            Some(found) if found.1 <= middle => high = found.1,
            _ => low = middle + 1,
        }
        if let Some(found) = found.filter(|found| found.1 < best.1) {
            best = found;
        }
    }
    best
}

/// The cost of running nodes.
fn work(costs: &[i64], nodes: impl Iterator<Item = usize>) -> i64 {
    nodes.fold(0i64, |sum, k| sum.saturating_add(costs[k]))
}

/// The largest number of live bytes in a program of known sizes, by the model of memory.
pub fn modelled(program: &Program) -> i64 {
    MemoryModel::new(program.graph()).own_peak()
}

/// A program that computes some of its values again.
#[derive(Clone, Debug)]
pub struct Again {
    /// The program.
    pub program: Program,
    /// Nodes that recompute a value, with its bytes and the value that was made first.
    pub remarks: Vec<Remark>,
}

/// The program that runs a sequence of the nodes of its main graph. A repeated node makes new values, which later nodes
/// read; the caller gets the first ones. Nodes without readers are left out.
///
/// # Errors
/// The sequence does not fit the program: it reads or returns a value before it is made, or leaves out, repeats or moves a
/// node that has an effect or learns a number.
pub fn again(program: &Program, sequence: &[NodeId]) -> Result<Again> {
    run(program, &MemoryModel::new(program.graph()), sequence)
}

/// As [`again`], with the model of the graph.
fn run(program: &Program, model: &MemoryModel, sequence: &[NodeId]) -> Result<Again> {
    let graph = program.graph();
    let refuse = |what: &str| Err(Error::new(ErrorKind::Invalid, format!("a sequence of nodes that {what}")));
    let mut at: Table<NodeId, Option<usize>> = Table::new();
    model.nodes.iter().enumerate().for_each(|(k, n)| at.set(n.id, Some(k)));
    let fixed = fixed(model, graph);
    let stays = |k: &usize| !model.nodes[*k].free;
    let mut wanted = (0..model.nodes.len()).filter(stays);
    let mut out = program.clone();
    let main = out.main;
    let new = &mut out.graphs[main];
    new.order = Vec::with_capacity(sequence.len());
    let mut remarks = Vec::new();
    let mut names = Names::default();
    graph.values.iter().for_each(|(_, v)| drop(names.fresh(&v.name)));
    // The current counterpart of each value, and the latest run of each node.
    let mut now: Table<ValueId, Option<ValueId>> = Table::new();
    let mut last: Table<NodeId, Option<NodeId>> = Table::new();
    // The node that a run is another one of.
    let mut of: Table<NodeId, Option<NodeId>> = Table::new();
    graph.inputs.iter().for_each(|v| now.set(*v, Some(*v)));
    for &id in sequence {
        let Some(k) = at[id] else { return refuse("has a node that is not in the program") };
        if stays(&k) && wanted.next() != Some(k) {
            return refuse("moves or repeats a node that must keep its place");
        }
        let node = &graph.nodes[id];
        let mut there = true;
        let mut operand = |v: &ValueId| {
            there &= now[*v].is_some();
            now[*v].unwrap_or(*v)
        };
        let args: Vec<Arg> = node.args.iter().map(|a| a.map_values(&mut operand)).collect();
        if !there {
            return refuse("reads a value before it is made");
        }
        let first = last[id].is_none();
        // A view of the same is the same.
        if let Some(last) = last[id]
            && node.op.is_view()
            && new.nodes[last].args == args
        {
            for (old, own) in node.results.iter().zip(&graph_results(new, last)) {
                now.set(*old, Some(*own));
            }
            continue;
        }
        let run = if first {
            new.nodes[id].args = args;
            new.order.push(id);
            id
        } else {
            let results = node.results.iter().map(|r| {
                let value = &graph.values[*r];
                (names.fresh(&value.name), value.ty.clone())
            });
            let run = new.add_node(node.op, args, results.collect::<Vec<_>>(), node.origin.clone());
            of.set(run, Some(id));
            if !node.op.is_view() {
                let bytes = model.nodes[k].makes.iter().fold(0i64, |sum, &m| sum.saturating_add(model.whole[m]));
                let (kind, reason, over) = (RemarkKind::ComputeAgain, Reason::Taken, node.results.first().copied());
                remarks.push(Remark { graph: main, node: run, kind, reason, bytes, over });
            }
            run
        };
        last.set(id, Some(run));
        for (old, own) in node.results.iter().zip(&graph_results(new, run)) {
            if first || !fixed[*old] {
                now.set(*old, Some(*own));
            }
        }
    }
    if wanted.next().is_some() {
        return refuse("leaves out a node with an effect");
    }
    if graph.output_values().any(|v| now[v].is_none()) {
        return refuse("does not make a returned value");
    }
    dce(&mut out);
    // A value that is not read before it is made again is made later, not twice.
    let mut ran: Table<NodeId, bool> = Table::new();
    let twice: Vec<NodeId> = out
        .graph()
        .order
        .iter()
        .copied()
        .filter(|id| std::mem::replace(ran.entry(of[*id].unwrap_or(*id)), true))
        .collect();
    let mut again: Table<NodeId, bool> = Table::new();
    twice.into_iter().for_each(|id| again.set(id, true));
    remarks.retain(|r: &Remark| again[r.node]);
    Ok(Again { program: out, remarks })
}

fn graph_results(graph: &Graph, node: NodeId) -> Vec<ValueId> {
    graph.nodes[node].results.to_vec()
}

/// Values whose memory the caller gets: each is made once.
fn fixed(model: &MemoryModel, graph: &Graph) -> Table<ValueId, bool> {
    let mut memory = vec![false; model.sizes.len()];
    graph.output_values().filter_map(|v| model.memory[v]).for_each(|m| memory[m] = true);
    let mut out: Table<ValueId, bool> = Table::new();
    for v in graph.values.ids() {
        out.set(v, model.memory[v].is_some_and(|m| memory[m]));
    }
    out
}

/// Why a node is never run again; `None` if it may be.
pub fn refusal(graph: &Graph, id: NodeId) -> Option<&'static str> {
    let def = graph.nodes[id].op.def();
    match () {
        () if def.effectful => Some("which has an effect and is not recomputed"),
        () if def.hop.is_some() => Some("which bodies compute and is not recomputed"),
        () if !crate::memory_model::free(graph, &graph.nodes[id]) => {
            Some("whose size the run decides and is not recomputed")
        }
        () => None,
    }
}
