//! Computing again instead of keeping: a node that is run a second time, next to where its result is needed late, so that the
//! memory of its result is free in between.
//!
//! What is run is a sequence of the nodes of a graph, some of them several times. A node reads what was made last of each of its
//! operands, so that a sequence means what the graph means, however it repeats: the same node makes the same value of the same
//! operands, and what is random draws by the number of the node that it was in the program ([`restride_ir::Origin::key`]).
//! [`recompute`] finds a sequence that needs less memory at once, [`keep`] one in which backward keeps less of forward, and
//! [`again`] makes the program that runs one.

mod cost;
mod evict;
mod keep;
mod restore;
#[cfg(test)]
mod tests;

pub use keep::{Keep, Kept, keep};

use crate::build::Names;
use crate::dce::dce;
use crate::memory::Model;
use restride_ir::{Arg, Error, ErrorKind, Graph, NodeId, Program, Reason, Remark, RemarkKind, Result, Table, ValueId};

/// How often what can be reached is halved in looking for it.
const HALVINGS: usize = 8;

/// A sequence of nodes to run, and how much the model says that it needs at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recomputed {
    /// The nodes, some of them several times.
    pub sequence: Vec<NodeId>,
    /// The most bytes that are there at once, by the model.
    pub peak: i64,
}

/// A sequence that keeps at most so many bytes at once, by the model of memory, or else as few as it finds.
///
/// The program has known sizes. Nodes keep their order; what is in the way where memory is short, can be computed again and is
/// needed latest for its cost is dropped, and computed again where it is needed. What turns out to fit after all is kept.
pub fn recompute(program: &Program, most: i64) -> Recomputed {
    let model = Model::new(program.graph());
    let costs = cost::costs(program.graph(), &model);
    let (sequence, peak) = reach(program, &model, &costs, Aim { most, work: i64::MAX });
    Recomputed { sequence: sequence.into_iter().map(|at| model.nodes[at].id).collect(), peak }
}

/// What a sequence should come to.
#[derive(Clone, Copy)]
struct Aim {
    /// Bytes at once by the model; where that cannot be, as few as are found.
    most: i64,
    /// What computing again may cost altogether.
    work: i64,
}

/// As [`recompute`], with the model of the program, whose nodes may be free to be run again or not: the positions of nodes to run,
/// and the peak.
fn reach(program: &Program, model: &Model, costs: &[i64], aim: Aim) -> (Vec<usize>, i64) {
    let all = work(costs, 0..model.nodes.len());
    // What is too much work is nothing.
    let reach = |most: i64| {
        let found = restore::restore(model, costs, evict::evict(program, model, costs, most), most);
        let added = work(costs, found.0.iter().copied()).saturating_sub(all);
        (added <= aim.work).then_some(found)
    };
    let mut best = reach(aim.most).unwrap_or_else(|| (model.own_order(), model.own_peak()));
    // Where it cannot be reached, aiming that low is not what comes closest: everything is dropped then, again and again.
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

/// What running nodes costs.
fn work(costs: &[i64], nodes: impl Iterator<Item = usize>) -> i64 {
    nodes.fold(0i64, |sum, k| sum.saturating_add(costs[k]))
}

/// The most bytes that are there at once in a program of known sizes, by the model of memory.
pub fn modelled(program: &Program) -> i64 {
    Model::new(program.graph()).own_peak()
}

/// A program that computes some of its values again.
#[derive(Clone, Debug)]
pub struct Again {
    /// The program.
    pub program: Program,
    /// Its nodes that compute something again, with the bytes of what they make and the value that was made before.
    pub remarks: Vec<Remark>,
}

/// The program that runs a sequence of the nodes of its main graph. Where a node comes again its results are new values, and
/// later nodes read these; what the caller gets is what was made first. Nodes that nobody needs are left out.
///
/// # Errors
/// A sequence that is none of this program: one that reads or returns what is not made, that leaves out or repeats what has an
/// effect or learns a number, or moves it.
pub fn again(program: &Program, sequence: &[NodeId]) -> Result<Again> {
    run(program, &Model::new(program.graph()), sequence)
}

/// As [`again`], with the model of the graph.
fn run(program: &Program, model: &Model, sequence: &[NodeId]) -> Result<Again> {
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
    // What stands for each value now, and the node that each node was run as last.
    let mut now: Table<ValueId, Option<ValueId>> = Table::new();
    let mut last: Table<NodeId, Option<NodeId>> = Table::new();
    // The node that a run is another one of.
    let mut of: Table<NodeId, Option<NodeId>> = Table::new();
    graph.inputs.iter().for_each(|v| now.set(*v, Some(*v)));
    for &id in sequence {
        let Some(k) = at[id] else { return refuse("has a node that the program has not") };
        if stays(&k) && wanted.next() != Some(k) {
            return refuse("moves or repeats what has to stay where it is");
        }
        let node = &graph.nodes[id];
        let mut there = true;
        let mut operand = |v: &ValueId| {
            there &= now[*v].is_some();
            now[*v].unwrap_or(*v)
        };
        let args: Vec<Arg> = node.args.iter().map(|a| a.map_values(&mut operand)).collect();
        if !there {
            return refuse("reads what is not made yet");
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
        return refuse("leaves out what has an effect");
    }
    if graph.output_values().any(|v| now[v].is_none()) {
        return refuse("does not make what is returned");
    }
    dce(&mut out);
    // What was made first and is not read before it is made again is made later, not again.
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

/// Values whose memory the caller gets: there is one of each.
fn fixed(model: &Model, graph: &Graph) -> Table<ValueId, bool> {
    let mut memory = vec![false; model.sizes.len()];
    graph.output_values().filter_map(|v| model.memory[v]).for_each(|m| memory[m] = true);
    let mut out: Table<ValueId, bool> = Table::new();
    for v in graph.values.ids() {
        out.set(v, model.memory[v].is_some_and(|m| memory[m]));
    }
    out
}

/// Why a node is never run again; `None` for what may be.
pub fn refusal(graph: &Graph, id: NodeId) -> Option<&'static str> {
    let def = graph.nodes[id].op.def();
    match () {
        () if def.effectful => Some("which has an effect, and is not computed again"),
        () if def.hop.is_some() => Some("which bodies compute, and is not computed again"),
        () if !crate::memory::free(graph, &graph.nodes[id]) => {
            Some("whose size the run decides on, and is not computed again")
        }
        () => None,
    }
}
