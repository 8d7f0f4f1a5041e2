//! Facts about a graph that its placement reads and never changes.

use super::views::view_rule;
use restride_ir::{
    Arg, CollectTree, Error, Graph, GraphId, HopCall, IdArena, Layout, Licence, Meta, Movement, Nested, NodeId,
    OutputKind, Program, Result, Table, Type, ValueId, licences, operands_of,
};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::collections::BTreeMap;

type Licences = SmallVec<[Licence; 4]>;

/// Positions of the nodes that read a value, in order: of most values, few.
pub(super) type ReadPositions = SmallVec<[usize; 2]>;

/// Facts about the graphs of a program, by graph and by how many inputs its loop replaces.
pub(super) type ProgramFacts<'a> = BTreeMap<(GraphId, usize), GraphFacts<'a>>;

/// Facts about one graph, computed once for all attempts to place it.
///
/// Invariant: everything here follows from the program alone, so no decision can make it stale. Readers that remain while
/// values are placed are in [`Places`](super::places::Places).
pub(super) struct GraphFacts<'a> {
    pub program: &'a Program,
    pub id: GraphId,
    pub graph: &'a Graph,
    pub boundary: Boundary,
    /// Types with known sizes, of tensors.
    types: Table<ValueId, Option<Meta>>,
    /// Position of the last node that reads a value; past the last node for values that the caller gets.
    pub last_use: Table<ValueId, usize>,
    /// Position of the last node that reads a value or one of its views.
    pub ends: Table<ValueId, usize>,
    /// Positions of the nodes that read a value, in order.
    pub uses: Table<ValueId, ReadPositions>,
    /// Position of the node that makes a value.
    pub makers: Table<ValueId, Option<usize>>,
    /// Licences of fused nodes, which follow from their bodies.
    licences: BTreeMap<NodeId, Licences>,
    /// The region of each scatter on a base with the layout of the result, once asked for; `None` if strides cannot express it.
    pub regions: BTreeMap<NodeId, OnceCell<Option<Layout>>>,
    /// For each value the last of those that can follow it in its cells.
    pub successors: Table<ValueId, Option<ValueId>>,
    /// Layouts that make kernels faster, of values in memory of their own.
    pub layouts: Table<ValueId, Option<Layout>>,
    /// Nanoseconds that kernels take less for it, in the estimate.
    pub layout_gains: Table<ValueId, i64>,
}

/// The inputs and outputs of a graph as its caller sees them.
pub(super) struct Boundary {
    /// For each input, the value that its memory must hold at the end, if it may be written.
    pub becomes: Vec<Option<ValueId>>,
    /// Outputs that get memory of their own: position and value.
    pub outputs: Vec<(usize, ValueId)>,
    /// For each value that the caller gets, where the caller looks for it.
    handed: BTreeMap<ValueId, Handed>,
    /// Whether values start at cell 0 at the border (a body) or where their types say (the main graph).
    pub body: bool,
}

/// Where the caller looks for a value at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Handed {
    /// Inputs whose new content the value is.
    pub inputs: Vec<usize>,
    /// Positions of outputs.
    pub outputs: Vec<usize>,
}

impl Boundary {
    fn new(becomes: Vec<Option<ValueId>>, outputs: Vec<(usize, ValueId)>, body: bool) -> Boundary {
        let mut handed: BTreeMap<ValueId, Handed> = BTreeMap::new();
        for (i, v) in becomes.iter().enumerate().filter_map(|(i, v)| v.map(|v| (i, v))) {
            handed.entry(v).or_default().inputs.push(i);
        }
        for (i, v) in &outputs {
            handed.entry(*v).or_default().outputs.push(*i);
        }
        Boundary { becomes, outputs, handed, body }
    }

    fn of_main(program: &Program) -> Boundary {
        let graph = program.graph();
        let mut becomes = vec![None; graph.inputs.len()];
        let mut outputs = Vec::new();
        for (i, v) in tensor_outputs(graph) {
            let Some(spec) = program.signature.outputs.get(i) else { continue };
            match spec.kind {
                OutputKind::Mutation(input) => becomes[input] = Some(v),
                OutputKind::Metadata(_) | OutputKind::Token => {}
                _ if spec.alias.is_some() => {}
                _ => outputs.push((i, v)),
            }
        }
        Boundary::new(becomes, outputs, false)
    }

    /// The boundary of a body whose first `carried` inputs a loop replaces.
    fn of_body(graph: &Graph, carried: usize) -> Boundary {
        let outputs = tensor_outputs(graph).filter(|(i, _)| *i >= carried).collect();
        Boundary::new(Nested::becomes(graph, carried), outputs, true)
    }
}

fn tensor_outputs(graph: &Graph) -> impl Iterator<Item = (usize, ValueId)> {
    let value = |(i, a): (usize, &Arg)| if let Arg::Value(v) = a { Some((i, *v)) } else { None };
    let tensor = |(_, v): &(usize, ValueId)| matches!(graph.values[*v].ty, Type::Tensor(_));
    graph.outputs.iter().enumerate().filter_map(value).filter(tensor)
}

impl<'a> GraphFacts<'a> {
    /// Facts about the main graph and every body below it; layouts of images are chosen if `by_time`.
    pub fn of_program(program: &'a Program, by_time: bool) -> ProgramFacts<'a> {
        let mut all = ProgramFacts::new();
        let mut todo = vec![(program.main, 0)];
        while let Some((id, carried)) = todo.pop() {
            if all.contains_key(&(id, carried)) {
                continue;
            }
            let graph = &program.graphs[id];
            let boundary = match id == program.main {
                true => Boundary::of_main(program),
                false => Boundary::of_body(graph, carried),
            };
            let mut facts = GraphFacts::new(program, id, boundary);
            if by_time {
                (facts.layouts, facts.layout_gains) = super::layout_times::by_time(&facts);
            }
            all.insert((id, carried), facts);
            // A call that is no call is an error where its node is placed.
            for call in graph.ordered().filter_map(|(_, node)| HopCall::of(graph, node).ok().flatten()) {
                todo.extend(call.bodies.iter().enumerate().map(|(b, &body)| (body, call.replaced(b))));
            }
        }
        all
    }

    fn new(program: &'a Program, id: GraphId, boundary: Boundary) -> Self {
        let graph = &program.graphs[id];
        let count = graph.values.len();
        let mut types = Table::with_capacity(count);
        for (v, value) in graph.values.iter() {
            if let Type::Tensor(t) = &value.ty {
                types.set(v, t.known());
            }
        }
        let mut last_use: Table<ValueId, usize> = Table::with_capacity(count);
        let mut uses: Table<ValueId, ReadPositions> = Table::with_capacity(count);
        let mut makers: Table<ValueId, Option<usize>> = Table::with_capacity(count);
        for (at, (_, node)) in graph.ordered().enumerate() {
            node.results.iter().for_each(|r| makers.set(*r, Some(at)));
            // What a wait holds is no read of its own: placement holds it where the exchange does not run in place.
            let read = if node.op.def().awaits { operands_of(&node.args, 0) } else { 0..usize::MAX };
            for v in node.operands().take(read.end) {
                last_use.set(v, at);
                let u = uses.entry(v);
                if u.last() != Some(&at) {
                    u.push(at);
                }
            }
        }
        boundary.handed.keys().for_each(|v| last_use.set(*v, graph.order.len()));
        let fused = graph.ordered().filter(|(_, n)| n.op.def().fused);
        let licences = fused.map(|(id, n)| (id, licences(&program.graphs, n))).collect_map();
        let scatters = graph.ordered().filter(|(_, n)| matches!(n.op.def().movement, Some(Movement::Scatter { .. })));
        let regions = scatters.map(|(id, _)| (id, OnceCell::new())).collect_map();
        let ends = ends(graph, &last_use);
        let successors = successors(&licences, &program.graphs, graph, &types, (&last_use, &ends));
        GraphFacts {
            program,
            id,
            graph,
            boundary,
            types,
            last_use,
            ends,
            uses,
            makers,
            licences,
            regions,
            successors,
            layouts: Table::new(),
            layout_gains: Table::new(),
        }
    }

    /// The type of a tensor; `None` for other values and where a size is a symbol.
    pub fn known_type(&self, v: ValueId) -> Option<&Meta> {
        self.types[v].as_ref()
    }

    /// The type of a tensor.
    ///
    /// # Errors
    /// A size is a symbol.
    pub fn ty(&self, v: ValueId) -> Result<&Meta> {
        self.known_type(v).ok_or_else(|| {
            Error::unsupported(format!("the sizes of %{} are not known before the run", self.graph.values[v].name))
        })
    }

    /// The licences of a node.
    pub fn licences(&self, id: NodeId) -> Licences {
        match self.licences.get(&id) {
            Some(own) => own.clone(),
            None => licences(&self.program.graphs, &self.graph.nodes[id]),
        }
    }

    pub fn is_tensor(&self, v: ValueId) -> bool {
        matches!(self.graph.values[v].ty, Type::Tensor(_))
    }

    pub fn bytes_of(&self, v: ValueId) -> i64 {
        self.known_type(v).map_or(0, |t| t.layout.numel().saturating_mul(t.dtype.size() as i64))
    }

    /// Bytes of all results of a node.
    pub fn result_bytes(&self, id: NodeId) -> i64 {
        self.graph.nodes[id].results.iter().map(|r| self.bytes_of(*r)).sum()
    }

    /// Whether layouts were chosen by time.
    pub fn has_layouts(&self) -> bool {
        self.graph.values.iter().any(|(v, _)| self.layouts[v].is_some())
    }

    /// Where the caller looks for a value; `None` if the caller does not get it.
    pub fn handed(&self, v: ValueId) -> Option<&Handed> {
        self.boundary.handed.get(&v)
    }
}

/// For each value, the position of the last node that reads it or one of its views.
pub(crate) fn ends(graph: &Graph, last_use: &Table<ValueId, usize>) -> Table<ValueId, usize> {
    let mut ends = last_use.clone();
    for &id in graph.order.iter().rev() {
        let node = &graph.nodes[id];
        let Some((_, base, _)) = view_rule(node) else { continue };
        if let Some(Arg::Value(v)) = node.args.get(base) {
            let end = node.results.iter().map(|r| ends[*r]).fold(ends[*v], usize::max);
            ends.set(*v, end);
        }
    }
    ends
}

/// For each value, the last of the values that can follow it in the same cells, each over the one before it.
fn successors(
    fused: &BTreeMap<NodeId, Licences>,
    graphs: &IdArena<GraphId, Graph>,
    graph: &Graph,
    types: &Table<ValueId, Option<Meta>>,
    (last_use, ends): (&Table<ValueId, usize>, &Table<ValueId, usize>),
) -> Table<ValueId, Option<ValueId>> {
    let mut last: Table<ValueId, Option<ValueId>> = Table::with_capacity(graph.values.len());
    for (at, &id) in graph.order.iter().enumerate().rev() {
        let node = &graph.nodes[id];
        // A scatter leaves the cells outside of its region to their readers.
        let last_read = match node.op.def().movement {
            Some(Movement::Scatter { .. }) => last_use,
            _ => ends,
        };
        let mut follow = |v: ValueId, r: ValueId| {
            let alike = match (&types[v], &types[r]) {
                (Some(a), Some(b)) => a.dtype.size() == b.dtype.size() && a.layout.sizes == b.layout.sizes,
                _ => false,
            };
            if alike && last_read[v] == at && last[v].is_none() {
                last.set(v, Some(last[r].unwrap_or(r)));
            }
        };
        if let Ok(Some(call)) = HopCall::of(graph, node) {
            for (k, r) in node.results.iter().enumerate() {
                if let Some((_, v)) = call.takes_over(k) {
                    follow(v, *r);
                }
            }
            continue;
        }
        match node.op.def().movement {
            Some(Movement::Scatter { base, .. }) => {
                if let (Some(Arg::Value(v)), Some(r)) = (node.args.get(base as usize), node.results.first()) {
                    follow(*v, *r);
                }
            }
            _ => {
                let own = fused.get(&id).cloned().unwrap_or_else(|| licences(graphs, node));
                for l in own {
                    if let (Some(v), Some(r)) = (node.operands().nth(l.operand), node.results.get(l.result)) {
                        follow(v, *r);
                    }
                }
            }
        }
    }
    last
}
