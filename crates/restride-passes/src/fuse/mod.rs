//! Fusion: calls that compute their results from one another tile by tile become one node, whose body is a graph. What only the next
//! call reads is never written.
//!
//! A group grows from its last node towards its operands. A producer joins where the group can still be computed in tiles
//! ([`restride_ir::Tiling`]), and everything that reads its results is in the group or comes after it, so no value is computed twice; what is
//! read outside is a result of the fused node. The producer's operands live until the group runs: it stays out where they take
//! more memory than its results did, and something else runs in between. What reads the same large values joins a group as well, so
//! that they are read once (`siblings.rs`).
//!
//! Source: the cones of technology mapping (Cong and Ding, FlowMap, 1994); loop fusion of XLA.

mod grouping;
mod shape;
mod siblings;

use self::grouping::{DeclinedProducer, Grouping, ValueUses};
use self::shape::in_passes;
use crate::build::Rebuilt;
use restride_ir::{
    Arg, Error, Graph, GraphId, Node, NodeId, Program, Reason, Remark, RemarkKind, Result, Table, ValueId, check_fused,
    known_meta,
};
use restride_ops::lookup;
use std::collections::BTreeMap;

/// Bytes that what the calls of a group hand on may take in the smallest tile.
const FRAME: i64 = 48 << 10;
/// Most elements of a row that is read again, if nothing of it is kept: two calls read longer ones as fast.
const AGAIN: i64 = 1024;
/// Most operands and results of a group.
const OPERANDS: usize = 64;

/// Options of [`fuse`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FuseOptions {
    /// Most operators of a group; below 2, nothing is fused.
    pub most: usize,
    /// Products and convolutions head groups: the calls behind them work on finished parts of their results (off by default).
    pub heads: bool,
    /// Groups take in what reads the same values without feeding them (on by default).
    pub siblings: bool,
    /// Groups may have operators that are no functions of rows: normalisations, variances, other types than singles (off by default).
    pub tiles: bool,
    /// Fewest elements of rows that a group joins (64 by default): shorter ones cost more to walk over than to write.
    pub row: i64,
    /// Declines one candidate in four, drawn from this seed: other groups that are as correct, for tests.
    pub vary: Option<u64>,
}

impl Default for FuseOptions {
    fn default() -> Self {
        FuseOptions { most: 32, heads: false, siblings: true, tiles: false, row: 64, vary: None }
    }
}

impl FuseOptions {
    /// No fusion.
    pub fn none() -> Self {
        FuseOptions { most: 0, ..FuseOptions::default() }
    }
}

/// For each graph, the groups of nodes, as positions in its order.
pub type FusedGroups = BTreeMap<GraphId, Vec<Vec<usize>>>;

/// A program with fused nodes.
#[derive(Clone, Debug)]
pub struct Fused {
    /// The program.
    pub program: Program,
    /// The groups that became nodes.
    pub groups: FusedGroups,
    /// What was fused, and where it was declined.
    pub remarks: Vec<Remark>,
}

/// Fuses the nodes of a lowered program with known sizes; `None` where nothing is fused.
///
/// # Errors
/// A valid lowered program gives none.
pub fn fuse(program: &Program, options: &FuseOptions) -> Result<Option<Fused>> {
    let mut groups = FusedGroups::new();
    let mut declined: BTreeMap<GraphId, Vec<DeclinedProducer>> = BTreeMap::new();
    for (id, graph) in program.graphs.iter().filter(|_| options.most > 1) {
        let found = Grouping::new(graph, options).run();
        declined.insert(id, found.declined);
        if !found.groups.is_empty() {
            groups.insert(id, found.groups);
        }
    }
    if groups.is_empty() {
        return Ok(None);
    }
    let rest = program.copy_without(|id| groups.contains_key(&id));
    let mut out = Fused { program: rest, groups, remarks: Vec::new() };
    for (id, groups) in &out.groups {
        let declined = declined.remove(id).unwrap_or_default();
        rewrite(*id, &program.graphs[*id], groups, &declined, &mut out.program, &mut out.remarks)?;
    }
    Ok(Some(out))
}

/// Fuses groups that were found before.
///
/// # Errors
/// Positions that are not there or in two groups, nodes that cannot be computed in tiles, or a reader between the nodes of a group.
pub fn apply(program: &Program, groups: &FusedGroups) -> Result<Program> {
    let mut out = program.copy_without(|id| groups.contains_key(&id));
    for (id, groups) in groups {
        let graph = program.graphs.get(*id).ok_or_else(|| Error::invalid("a group of a graph that is not there"))?;
        rewrite(*id, graph, groups, &[], &mut out, &mut Vec::new())?;
    }
    Ok(out)
}

/// Puts fused nodes in the place of their groups' last nodes.
fn rewrite(
    id: GraphId,
    graph: &Graph,
    groups: &[Vec<usize>],
    declined: &[DeclinedProducer],
    program: &mut Program,
    remarks: &mut Vec<Remark>,
) -> Result<()> {
    let op = lookup("restride.fused.default").expect("the operator table has restride.fused");
    let mut group_of: Table<NodeId, Option<usize>> = Table::with_capacity(graph.nodes.len());
    for (g, group) in groups.iter().enumerate() {
        let in_order = group.len() > 1 && group.is_sorted_by(|a, b| a < b);
        for position in group {
            match graph.order.get(*position) {
                Some(n) if in_order && group_of[*n].is_none() => group_of.set(*n, Some(g)),
                _ => return Err(Error::invalid("a group of nodes that are not there, or are in another group")),
            }
        }
    }
    let uses = ValueUses::of(graph);
    let mut new = Rebuilt::new(id, graph);
    // Value, the group's last node, reason, bytes.
    let mut notes: Vec<(ValueId, Option<NodeId>, Reason, i64)> = Vec::new();
    for (position, (n, node)) in graph.ordered().enumerate() {
        let Some(group) = group_of[n].map(|g| &groups[g]) else {
            if node.operands().any(|v| new.map[v].is_none()) {
                return Err(Error::invalid("a node reads a result of a group before the group runs").at(graph, n));
            }
            let args = new.args(node);
            new.keep(node, args);
            continue;
        };
        if group.last() != Some(&position) {
            continue;
        }
        let members: Vec<NodeId> = group.iter().map(|p| graph.order[*p]).collect();
        let (body, operands, results) = body(graph, &uses, &members);
        if results.is_empty() || operands.iter().any(|v| new.map[*v].is_none()) {
            return Err(Error::invalid("a group reads what is made after it, or makes nothing").at(graph, n));
        }
        let saved = members.iter().flat_map(|m| &graph.nodes[*m].results).filter(|r| !results.contains(r));
        notes.push((results[results.len() - 1], None, Reason::Taken, saved.map(|r| bytes(graph, *r)).sum()));
        let body = program.graphs.push(body);
        let operands = operands.iter().map(|v| new.map[*v]).collect();
        let args = vec![Arg::Graph(body), Arg::Values(operands)];
        new.keep(&Node { op, results: results.into(), args: Vec::new(), origin: node.origin.clone() }, args);
        let made = &new.graph.nodes[*new.graph.order.last().expect("a node was added")];
        check_fused(program, &new.graph, made).map_err(|e| Error::from(e).at(graph, n))?;
    }
    for DeclinedProducer { value, root, reason } in declined {
        notes.push((*value, Some(*root), *reason, bytes(graph, *value)));
    }
    let mut maker: Table<ValueId, Option<NodeId>> = Table::with_capacity(new.graph.values.len());
    for (n, node) in new.graph.ordered() {
        node.results.iter().for_each(|r| maker.set(*r, Some(n)));
    }
    let made = |v: ValueId| new.map[v].and_then(|v| maker[v]);
    for (value, root, reason, bytes) in notes {
        // What stayed out has a node of its own, or is in another group.
        let Some(node) = made(value) else { continue };
        let first = |r: NodeId| graph.nodes[r].results.iter().find_map(|v| made(*v));
        let reason = match reason {
            Reason::StillRead { by: Some(reader) } => Reason::StillRead { by: first(reader) },
            other => other,
        };
        let over = root.and_then(|r| graph.nodes[r].results.iter().find_map(|v| new.map[*v]));
        remarks.push(Remark { graph: id, node, kind: RemarkKind::Fuse, reason, bytes, over });
    }
    new.finish(program);
    Ok(())
}

fn bytes(graph: &Graph, v: ValueId) -> i64 {
    known_meta(graph, v).map_or(0, |m| m.layout.numel().saturating_mul(m.dtype.size() as i64))
}

/// The graph of a group, its operands in the order of the graph's inputs, and the values that it returns.
fn body(graph: &Graph, uses: &ValueUses, group: &[NodeId]) -> (Graph, Vec<ValueId>, Vec<ValueId>) {
    let mut body = Graph::new();
    body.reserve(group.len(), group.len() + 1);
    let mut map: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    let (mut operands, mut results) = (Vec::new(), Vec::new());
    // A head comes first.
    let (mut order, calls): (Vec<NodeId>, Vec<NodeId>) =
        group.iter().partition(|id| graph.nodes[**id].op.def().epilogue.is_some());
    order.extend(in_passes(graph, calls.into_iter()));
    let last = order.last().copied();
    for id in order {
        let node = &graph.nodes[id];
        for v in node.operands() {
            if let std::collections::btree_map::Entry::Vacant(e) = map.entry(v) {
                let value = &graph.values[v];
                e.insert(body.add_input(value.name.clone(), value.ty.clone()));
                operands.push(v);
            }
        }
        let args = node.args.iter().map(|a| a.map_values(|v| map[v])).collect();
        let types = node.results.iter().map(|r| (graph.values[*r].name.clone(), graph.values[*r].ty.clone()));
        let made = body.add_node(node.op, args, types, node.origin.clone());
        for (old, new) in node.results.iter().zip(body.nodes[made].results.clone()) {
            map.insert(*old, new);
        }
        let leaves =
            |r: &&ValueId| uses.returned[**r] || uses.readers[**r].iter().any(|reader| !group.contains(reader));
        let mut kept: Vec<ValueId> = node.results.iter().filter(leaves).copied().collect();
        // The first result of the last node has the iteration space.
        if Some(id) == last {
            kept.reverse();
        }
        results.extend(kept);
    }
    body.outputs = results.iter().map(|v| Arg::Value(map[v])).collect();
    (body, operands, results)
}
