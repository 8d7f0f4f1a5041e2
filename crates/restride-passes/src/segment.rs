//! Segments: a program is cut where a size or number is learnt from data, so that each piece is placed with sizes
//! that are known when it starts. A number that is only checked decides nothing: its piece learns it as it runs.

use crate::outer_numbers::as_symbols;
use restride_ir::{
    Arg, CollectTree, Graph, GraphId, InputKind, InputSpec, Node, NodeId, OutputKind, OutputSpec, Program, Result,
    Symbol, Table, Type, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// After this many rounds every number that is learnt cuts the program.
const MAX_ROUNDS: usize = 4;

/// Where an input of a segment comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentInput {
    /// The program's input at this position.
    Input(usize),
    /// A value that an earlier segment or learning node left, by its number.
    Live(usize),
}

/// A node whose results' sizes or number are learnt when it runs.
#[derive(Clone, Debug)]
pub struct Learn {
    /// The node, over the values of `graph`.
    pub node: Node,
    /// Where each tensor operand comes from, in the order of `Node::operands`.
    pub operands: Vec<SegmentInput>,
    /// Types of the results, as the program says them.
    pub types: Vec<Type>,
    /// Numbers of the live values that its tensor results become; `None` for one that nothing reads.
    pub live: Vec<Option<usize>>,
    /// For messages: `%name = op` and its source line.
    pub position: NodeId,
}

/// A piece of a program.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The piece, as a functional program. The last one has the program's own outputs. The others return the values that
    /// later pieces need, as outputs of kind `Base`, then new contents of inputs whose old contents have no more readers:
    /// later pieces read such an input in place of the value.
    pub program: Program,
    /// Where each of its inputs comes from.
    pub inputs: Vec<SegmentInput>,
    /// Numbers of the live values that its first outputs become; empty for the last segment.
    pub live: Vec<usize>,
    /// The node that runs after the piece; `None` for the last one.
    pub learn: Option<Learn>,
}

/// Cuts a functional program; gives the program too, whose bodies the learning nodes call. A program without data-dependent sizes is
/// one segment. In others, bodies read numbers that are learnt from data as symbols.
///
/// # Errors
/// A body takes a number that is learnt from data, under another name.
pub fn segments(program: Program) -> Result<(Program, Vec<Segment>)> {
    let (cuts, deciding) = cuts(&program);
    if cuts.is_empty() {
        let inputs = (0..program.graph().inputs.len()).map(SegmentInput::Input).collect();
        let whole = Segment { program: program.clone(), inputs, live: Vec::new(), learn: None };
        return Ok((program, vec![whole]));
    }
    let program = as_symbols(program)?;
    let segments = Cutter::new(&program, &cuts, deciding).run(&cuts);
    Ok((program, segments))
}

/// The positions of the nodes at which a program is cut, and the symbols that a piece must know before it runs.
fn cuts(program: &Program) -> (Vec<usize>, BTreeSet<Symbol>) {
    let graph = program.graph();
    let mut given: BTreeSet<Symbol> = BTreeSet::new();
    for &v in &graph.inputs {
        symbols_of(&graph.values[v].ty, &mut given);
    }
    let mut deciding = deciding(program);
    let mut rounds = 0;
    loop {
        let mut known = given.clone();
        let mut cuts: Vec<usize> = Vec::new();
        // For each number that is only checked: the piece that learns it, and whether a later one reads it.
        let mut learnt: BTreeMap<Symbol, usize> = BTreeMap::new();
        let mut later: BTreeSet<Symbol> = BTreeSet::new();
        for (at, (_, node)) in graph.ordered().enumerate() {
            let mut own = BTreeSet::new();
            node.results.iter().for_each(|r| symbols_of(&graph.values[*r].ty, &mut own));
            for arg in &node.args {
                let mut read = BTreeSet::new();
                arg.scalars().iter().for_each(|e| e.symbols(&mut read));
                later.extend(read.into_iter().filter(|s| learnt.get(s).is_some_and(|piece| *piece != cuts.len())));
            }
            if own.iter().any(|s| !known.contains(s) && deciding.contains(s)) || bodies_learn(program, node, &known) {
                cuts.push(at);
            } else {
                learnt.extend(own.iter().filter(|s| !known.contains(*s)).map(|s| (s.clone(), cuts.len())));
            }
            known.extend(own);
        }
        if later.is_empty() {
            return (cuts, deciding);
        }
        deciding.extend(later);
        rounds += 1;
        if rounds == MAX_ROUNDS {
            deciding.extend(program.symbols.values().cloned());
        }
    }
}

/// Symbols that a piece must know before it runs: sizes of tensors, numbers that tensors are computed from, and returned
/// numbers. Other symbols are only checked.
fn deciding(program: &Program) -> BTreeSet<Symbol> {
    let mut out = BTreeSet::new();
    for (id, graph) in program.graphs.iter() {
        for (_, value) in graph.values.iter().filter(|(_, v)| id != program.main || v.ty.tensor().is_some()) {
            symbols_of(&value.ty, &mut out);
        }
        for (_, node) in graph.ordered() {
            if id == program.main && checks_numbers(graph, node) {
                continue;
            }
            node.args.iter().flat_map(Arg::scalars).for_each(|e| e.symbols(&mut out));
            // Numbers that bodies are given.
            node.operands().for_each(|v| symbols_of(&graph.values[v].ty, &mut out));
        }
        graph.outputs.iter().flat_map(Arg::scalars).for_each(|e| e.symbols(&mut out));
        graph.output_values().for_each(|v| symbols_of(&graph.values[v].ty, &mut out));
    }
    for alias in program.signature.outputs.iter().filter_map(|o| o.alias.as_ref()) {
        let layout = &alias.layout;
        layout.sizes.iter().chain(&layout.strides).chain([&layout.offset]).for_each(|e| e.symbols(&mut out));
    }
    out
}

/// Whether a body of a call, or a body in it, learns a number that tensors in it are computed from: no plan knows it.
fn bodies_learn(program: &Program, node: &Node, known: &BTreeSet<Symbol>) -> bool {
    let mut open: Vec<GraphId> = node.bodies().collect();
    let mut seen: BTreeSet<GraphId> = open.iter().copied().collect_set();
    while let Some(id) = open.pop() {
        let Some(graph) = program.graphs.get(id) else { continue };
        let mut read = BTreeSet::new();
        for (_, inner) in graph.ordered() {
            open.extend(inner.bodies().filter(|g| seen.insert(*g)));
            let tensors = inner.results.iter().filter(|r| graph.values[**r].ty.tensor().is_some());
            tensors.for_each(|r| symbols_of(&graph.values[*r].ty, &mut read));
            if !checks_numbers(graph, inner) {
                inner.args.iter().flat_map(Arg::scalars).for_each(|e| e.symbols(&mut read));
            }
        }
        if read.iter().any(|s| s.is_unbacked() && !known.contains(s)) {
            return true;
        }
    }
    false
}

/// Whether a node only computes numbers, or checks them.
fn checks_numbers(graph: &Graph, node: &Node) -> bool {
    let number = |r: &ValueId| matches!(graph.values[*r].ty, Type::Scalar(_));
    node.op.def().hop.is_none() && (node.results.iter().all(number) || node.op.def().asserts.is_some())
}

fn symbols_of(ty: &Type, out: &mut BTreeSet<Symbol>) {
    match ty {
        Type::Tensor(t) => t.layout.sizes.iter().chain(&t.layout.strides).for_each(|e| e.symbols(out)),
        Type::Scalar(e) => e.symbols(out),
        _ => {}
    }
}

struct Cutter<'a> {
    program: &'a Program,
    graph: &'a Graph,
    /// The last cut after which a value is read; the number of cuts for the program's outputs.
    needed_until: Table<ValueId, usize>,
    /// Number of each value that lives from one segment to another.
    live: BTreeMap<ValueId, usize>,
    inputs: BTreeMap<ValueId, usize>,
    /// The input that a value is the new content of, if that may be written as soon as the value is made.
    becomes: BTreeMap<ValueId, usize>,
    /// The last position at which a node reads a value.
    read_until: Table<ValueId, usize>,
    /// New contents that their inputs hold already.
    written: BTreeMap<ValueId, usize>,
    /// The symbols that pieces must know before they run.
    deciding: BTreeSet<Symbol>,
}

impl<'a> Cutter<'a> {
    fn new(program: &'a Program, cuts: &[usize], deciding: BTreeSet<Symbol>) -> Self {
        let graph = program.graph();
        let mut needed_until: Table<ValueId, usize> = Table::new();
        for (at, (_, node)) in graph.ordered().enumerate() {
            // Pieces and learning nodes alternate: piece k is 2k, the node after it 2k + 1.
            let piece = cuts.partition_point(|c| *c < at);
            let position = if cuts.get(piece) == Some(&at) { 2 * piece + 1 } else { 2 * piece };
            for v in node.operands() {
                let n = needed_until.entry(v);
                *n = position.max(*n);
            }
        }
        let read_until = needed_until.clone();
        for v in graph.output_values() {
            needed_until.set(v, 2 * cuts.len());
        }
        let inputs = graph.inputs.iter().enumerate().map(|(i, v)| (*v, i)).collect_map();
        let (becomes, live, written) = (becomes(program), BTreeMap::new(), BTreeMap::new());
        Cutter { program, graph, needed_until, live, inputs, becomes, read_until, written, deciding }
    }

    fn source(&self, v: ValueId) -> SegmentInput {
        match self.inputs.get(&v).or_else(|| self.written.get(&v)) {
            Some(i) => SegmentInput::Input(*i),
            None => SegmentInput::Live(self.live[&v]),
        }
    }

    fn number(&mut self, v: ValueId) -> usize {
        let next = self.live.len();
        *self.live.entry(v).or_insert(next)
    }

    fn run(mut self, cuts: &[usize]) -> Vec<Segment> {
        let mut out = Vec::new();
        let mut start = 0;
        for (k, &cut) in cuts.iter().enumerate() {
            let mut segment = self.piece(&self.graph.order[start..cut], Some(2 * k));
            let id = self.graph.order[cut];
            let node = self.graph.nodes[id].clone();
            let operands = node.operands().map(|v| self.source(v)).collect();
            let types: Vec<Type> = node.results.iter().map(|r| self.graph.values[*r].ty.clone()).collect();
            let live = node
                .results
                .iter()
                .zip(&types)
                .map(|(r, ty)| {
                    let read = self.needed_until[*r] > 0;
                    (read && matches!(ty, Type::Tensor(_))).then(|| self.number(*r))
                })
                .collect();
            segment.learn = Some(Learn { node, operands, types, live, position: id });
            out.push(segment);
            start = cut + 1;
        }
        out.push(self.piece(&self.graph.order[start..], None));
        out
    }

    /// Whether a node reads a number off a tensor that no piece has to know before.
    fn teaches(&self, node: &Node) -> bool {
        let mut own = BTreeSet::new();
        node.results.iter().for_each(|r| symbols_of(&self.graph.values[*r].ty, &mut own));
        node.operands().next().is_some() && own.iter().any(|s| s.is_unbacked() && !self.deciding.contains(s))
    }

    /// The piece of the given nodes; `Some(position)` for all but the last.
    fn piece(&mut self, nodes: &[NodeId], position: Option<usize>) -> Segment {
        let old = self.graph;
        let mut program = Program { signature: Default::default(), ..self.program.clone() };
        let mut graph = Graph { name: old.name.clone(), ..Graph::new() };
        let mut map: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        let mut inputs = Vec::new();
        // Inputs are the values that the nodes read and do not make; the last piece has all of the program's, for its
        // signature.
        let made: BTreeSet<ValueId> = nodes.iter().flat_map(|n| old.nodes[*n].results.iter().copied()).collect_set();
        let mut wanted: Vec<ValueId> = Vec::new();
        if position.is_none() {
            wanted.extend(&old.inputs);
        }
        wanted.extend(nodes.iter().flat_map(|n| old.nodes[*n].operands()).filter(|v| !made.contains(v)));
        // New contents made here that may be written to their inputs now.
        let mut finished: Vec<(ValueId, usize)> = Vec::new();
        if let Some(position) = position {
            for v in nodes.iter().flat_map(|n| old.nodes[*n].results.iter().copied()) {
                let Some(&i) = self.becomes.get(&v) else { continue };
                if self.read_until[old.inputs[i]] <= position {
                    finished.push((v, i));
                    wanted.push(old.inputs[i]);
                }
            }
        }
        if position.is_none() {
            wanted.extend(old.output_values().filter(|v| !made.contains(v)));
        }
        for v in wanted {
            if map.contains_key(&v) {
                continue;
            }
            // The last piece reads such an input as the signature declares it.
            if let (None, Some(i)) = (position, self.written.get(&v)) {
                map.insert(v, map[&old.inputs[*i]]);
                continue;
            }
            let value = &old.values[v];
            // Numbers are expressions over symbols, which a binding carries.
            let known = self.inputs.contains_key(&v) || self.live.contains_key(&v) || self.written.contains_key(&v);
            if !known {
                continue;
            }
            let new = graph.add_input(value.name.clone(), value.ty.clone());
            let source = self.source(v);
            let kind = match source {
                SegmentInput::Input(i) => self.program.signature.inputs[i].kind.clone(),
                SegmentInput::Live(_) => InputKind::User(value.name.clone()),
            };
            program.signature.inputs.push(InputSpec { value: new, kind });
            inputs.push(source);
            map.insert(v, new);
        }
        for &n in nodes {
            let node = &old.nodes[n];
            let numbers_only = node.results.iter().all(|r| matches!(old.values[*r].ty, Type::Scalar(_)));
            if numbers_only && !node.results.is_empty() && !node.op.def().effectful && !self.teaches(node) {
                // Symbols that are known already are not recomputed.
                continue;
            }
            let args = node.args.iter().map(|a| a.map_values(|v| map[v])).collect();
            let results: Vec<_> =
                node.results.iter().map(|r| (old.values[*r].name.clone(), old.values[*r].ty.clone())).collect();
            let id = graph.add_node(node.op, args, results, node.origin.clone());
            for (&o, &new) in node.results.iter().zip(&graph.nodes[id].results) {
                map.insert(o, new);
            }
        }
        let mut live = Vec::new();
        match position {
            Some(position) => {
                for v in nodes.iter().flat_map(|n| old.nodes[*n].results.iter().copied()) {
                    let kept = finished.iter().all(|f| f.0 != v);
                    if kept && self.needed_until[v] > position && matches!(old.values[v].ty, Type::Tensor(_)) {
                        live.push(self.number(v));
                        graph.outputs.push(Arg::Value(map[&v]));
                        program.signature.outputs.push(OutputSpec { kind: OutputKind::Base, alias: None });
                    }
                }
                for (v, i) in finished {
                    let input = inputs.iter().position(|s| *s == SegmentInput::Input(i)).expect("it was asked for");
                    graph.outputs.push(Arg::Value(map[&v]));
                    program.signature.outputs.push(OutputSpec { kind: OutputKind::Mutation(input), alias: None });
                    self.written.insert(v, i);
                }
            }
            None => {
                graph.outputs = old
                    .outputs
                    .iter()
                    .map(|a| match a {
                        Arg::Value(v) if !map.contains_key(v) => match &old.values[*v].ty {
                            Type::Scalar(e) => Arg::Scalar(e.clone()),
                            _ => Arg::None,
                        },
                        other => other.map_values(|v| map[v]),
                    })
                    .collect();
                program.signature.outputs = self.program.signature.outputs.clone();
            }
        }
        let main = program.main;
        program.graphs[main] = graph;
        drop_bodies(&mut program);
        Segment { program, inputs, live, learn: None }
    }
}

/// Empties bodies that no node of a piece calls: a node between two pieces has them.
fn drop_bodies(program: &mut Program) {
    let mut called: BTreeSet<GraphId> = BTreeSet::from([program.main]);
    let mut open = vec![program.main];
    while let Some(id) = open.pop() {
        let bodies = program.graphs[id].ordered().flat_map(|(_, n)| n.bodies());
        open.extend(bodies.filter(|g| called.insert(*g)));
    }
    for id in program.graphs.ids().collect::<Vec<_>>() {
        if !called.contains(&id) {
            program.graphs[id] = Graph { name: program.graphs[id].name.clone(), ..Graph::new() };
        }
    }
}

/// For each value, the input whose new content it is, for inputs on memory of their own with the same layout.
fn becomes(program: &Program) -> BTreeMap<ValueId, usize> {
    let (graph, signature) = (program.graph(), &program.signature);
    let mut out: BTreeMap<ValueId, usize> = BTreeMap::new();
    let mut twice: BTreeSet<ValueId> = graph.inputs.iter().copied().collect_set();
    let shared: BTreeSet<usize> = signature
        .inputs
        .iter()
        .enumerate()
        .flat_map(|(i, s)| match &s.kind {
            InputKind::Storage(members) => members.iter().copied().chain([i]).collect(),
            _ => Vec::new(),
        })
        .collect_set();
    let returned: BTreeSet<ValueId> = graph
        .outputs
        .iter()
        .zip(&signature.outputs)
        .filter(|(_, s)| !matches!(s.kind, OutputKind::Mutation(_)) && s.alias.is_none())
        .filter_map(|(a, _)| if let Arg::Value(v) = a { Some(*v) } else { None })
        .collect_set();
    for (arg, spec) in graph.outputs.iter().zip(&signature.outputs) {
        let (Arg::Value(v), OutputKind::Mutation(i)) = (arg, &spec.kind) else { continue };
        let input = graph.inputs[*i];
        let fits = graph.values[*v].ty == graph.values[input].ty && !shared.contains(i) && !returned.contains(&input);
        if !fits || !twice.insert(*v) {
            out.remove(v);
            continue;
        }
        out.insert(*v, *i);
    }
    out
}
