//! Which inputs of a graph may be written, through any chain of views.

use crate::args::known;
use crate::simplify::meta;
use restride_ir::{
    Arg, Graph, GraphId, Hop, HopCall, HopItem, MemoryFormat, Node, Program, Table, TwinReturn, ValueId, ViewOutcome,
};
use smallvec::{SmallVec, smallvec};

/// What is known of the strides of a graph's inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputStrides {
    /// The graph may be given others than it declares.
    Any,
    /// They are those that the graph declares.
    Declared,
}

/// The possible storages of a value, in order; few values have more than one.
type Roots = SmallVec<[u32; 2]>;

/// For each input of the graph, whether a node may write its storage. Follows views and subgraphs; possible views count as
/// views.
pub fn written_inputs(program: &Program, graph: GraphId) -> Vec<bool> {
    reach(program, graph, InputStrides::Any).0
}

/// For each output of the graph, the inputs whose storage it may be on.
pub fn returned_inputs(program: &Program, graph: GraphId) -> Vec<Vec<u32>> {
    let count = program.graphs[graph].inputs.len() as u32;
    let mut roots = output_roots(program, graph, InputStrides::Any);
    roots.iter_mut().for_each(|r| r.retain(|root| *root < count));
    roots
}

/// For each output of the graph, its possible storages: that of the input at a position, or, with larger numbers, one made
/// by the graph, with the same number in all outputs.
pub fn output_roots(program: &Program, graph: GraphId, strides: InputStrides) -> Vec<Vec<u32>> {
    let roots = reach(program, graph, strides).1;
    let of = |o: &Arg| if let Arg::Value(v) = o { roots[*v].to_vec() } else { Vec::new() };
    program.graphs[graph].outputs.iter().map(of).collect()
}

/// For each result of a higher-order call, its possible storages: that of the operand at a position, or, with larger
/// numbers, one made by the call, with the same number in all results. Carried values count as the body returns them: a
/// loop that does not run returns copies.
pub fn result_roots(program: &Program, call: &HopCall, results: usize, strides: InputStrides) -> Vec<Vec<u32>> {
    let count = call.inputs().count() as u32;
    let carried = call.carried.len() as u32;
    let mut made = count;
    let mut out: Vec<Vec<u32>> = vec![Vec::new(); results];
    let bodies = match call.hop {
        Hop::WhileLoop => &call.bodies[1..],
        _ => &call.bodies[..],
    };
    for &body in bodies {
        let mut last = made;
        for (i, (result, roots)) in out.iter_mut().zip(output_roots(program, body, strides)).enumerate() {
            // The iterations' results are stacked in memory of their own.
            if call.hop == Hop::Map || call.hop == Hop::Scan && i as u32 >= carried {
                continue;
            }
            for r in roots {
                let r = if r < count { r } else { made + (r - count) };
                last = last.max(r + 1);
                result.push(r);
            }
        }
        made = last;
    }
    // Carried values of an iteration are the results of the iteration before.
    let mut grown = true;
    while std::mem::take(&mut grown) {
        for i in 0..results {
            let through = out[i].iter().filter(|r| **r < carried).filter_map(|r| out.get(*r as usize));
            let mut all: Vec<u32> = through.flatten().chain(&out[i]).copied().collect();
            all.sort_unstable();
            all.dedup();
            grown |= all.len() > out[i].len();
            out[i] = all;
        }
    }
    for result in out.iter_mut().filter(|r| r.is_empty()) {
        result.push(made);
        made += 1;
    }
    out
}

/// For each input of the graph, whether a view in terms of its storage is made of it: one that says where in the storage it
/// begins, which is elsewhere in each iteration where the input is another tensor.
pub fn placed_inputs(program: &Program, graph: GraphId) -> Vec<bool> {
    let placed = used_inputs(program, graph, &|_, node| node.op.def().strided as i64);
    placed.into_iter().map(|p| p > 0).collect()
}

/// For each input of the graph, the largest elements that it is viewed as where those are of another size than its own, in
/// bytes, 0 where it is not: such views ask for its strides and where it begins.
pub fn typed_inputs(program: &Program, graph: GraphId) -> Vec<i64> {
    used_inputs(program, graph, &typed)
}

/// Bytes of the elements that a call views its operand as, where those are of another size than the operand's own; else 0.
fn typed(g: &Graph, node: &Node) -> i64 {
    let dtype = |v: &ValueId| g.values[*v].ty.tensor().map(|t| t.dtype);
    let (Some(Arg::Value(from)), Some(to)) = (node.args.first(), node.results.first()) else { return 0 };
    match (dtype(from), dtype(to)) {
        // The parts of complex numbers can be read in any layout.
        (Some(from), Some(to)) if from.is_complex() && to == from.real() => 0,
        (Some(from), Some(to)) if node.op.is_view() && !node.op.def().itself && from.size() != to.size() => {
            to.size() as i64
        }
        _ => 0,
    }
}

/// For each input of the graph, whether a tensor that is computed of it, in strides that may follow the input's, is viewed as
/// elements of another size.
pub fn typed_results(program: &Program, graph: GraphId) -> Vec<bool> {
    let g = &program.graphs[graph];
    let count = g.inputs.len() as u32;
    let roots = reach(program, graph, InputStrides::Any).1;
    // For each value the inputs that it is computed of; a view of an input is computed of none.
    let mut of: Table<ValueId, Roots> = Table::new();
    let mut found = vec![false; g.inputs.len()];
    for (_, node) in g.ordered() {
        let mut all: Roots = node.operands().flat_map(|v| of[v].clone()).collect();
        if typed(g, node) > 0 {
            all.iter().for_each(|r| found[*r as usize] = true);
        }
        let given = |v: ValueId| roots[v].iter().copied().filter(|r| *r < count);
        if let Ok(Some(call)) = HopCall::of(g, node) {
            for &body in &call.bodies {
                let inner = typed_inputs(program, body).into_iter().zip(typed_results(program, body));
                for (item, (direct, computed)) in call.inputs().zip(inner) {
                    let HopItem::Tensor { value, .. } = item else { continue };
                    let own = of[*value].iter().copied().filter(|_| direct > 0 || computed);
                    own.chain(given(*value).filter(|_| computed)).for_each(|r| found[r as usize] = true);
                }
            }
        }
        // A copy in row-major order follows no operand.
        let rows = |a: &Arg| matches!(a, Arg::MemoryFormat(MemoryFormat::Contiguous));
        if !node.op.is_view() && node.args.iter().any(rows) {
            continue;
        }
        if !node.op.is_view() && !node.op.mutates(&node.args) {
            all.extend(node.operands().flat_map(given));
        }
        node.results.iter().for_each(|r| of.set(*r, in_order(all.clone())));
    }
    found
}

/// For each input, the maximum of `by(node)` over the nodes that read it or a possible view of it.
fn used_inputs(program: &Program, graph: GraphId, by: &dyn Fn(&Graph, &Node) -> i64) -> Vec<i64> {
    let g = &program.graphs[graph];
    let roots = reach(program, graph, InputStrides::Any).1;
    let mut used = vec![0; g.inputs.len()];
    let mut mark = |r: u32, n: i64| {
        if let Some(u) = used.get_mut(r as usize) {
            *u = n.max(*u);
        }
    };
    for (_, node) in g.ordered() {
        let n = by(g, node);
        if n > 0 {
            node.operands().flat_map(|v| &roots[v]).for_each(|r| mark(*r, n));
        }
        let Ok(Some(call)) = HopCall::of(g, node) else { continue };
        for &body in &call.bodies {
            for (item, inner) in call.inputs().zip(used_inputs(program, body, by)) {
                if let HopItem::Tensor { value, .. } = item {
                    roots[*value].iter().for_each(|r| mark(*r, inner));
                }
            }
        }
    }
    used
}

/// Which inputs are written, and those whose storage each value may be on; past the inputs, numbers of storages that the
/// graph makes.
fn reach(program: &Program, graph: GraphId, strides: InputStrides) -> (Vec<bool>, Table<ValueId, Roots>) {
    let g = &program.graphs[graph];
    let mut roots: Table<ValueId, Roots> = Table::with_capacity(g.values.len());
    for (i, &v) in g.inputs.iter().enumerate() {
        roots.set(v, smallvec![i as u32]);
    }
    // Values that are one tensor object: `set_` of one puts all of them on other memory.
    let mut objects: Table<ValueId, Option<ValueId>> = Table::with_capacity(g.values.len());
    let mut moved = false;
    let mut written = vec![false; g.inputs.len()];
    let mut made = g.inputs.len() as u32;
    for (_, node) in g.ordered() {
        for (&result, &arg) in node.results.iter().zip(returned_args(node).iter()) {
            if let Some(arg) = arg {
                objects.set(result, Some(objects[arg].unwrap_or(arg)));
            }
        }
        let of = |v: ValueId| objects[v].unwrap_or(v);
        let operands = node.operands().map(of);
        if let (true, Some(Arg::Value(target)), Some(Arg::Value(source))) =
            (node.op.def().metadata, node.args.first(), node.args.get(node.op.def().base as usize))
            && of(*target) != of(*source)
        {
            // The target may still be on the old memory: later writes count for both.
            let mut all = roots[of(*target)].clone();
            all.extend_from_slice(&roots[of(*source)]);
            roots.set(of(*target), in_order(all));
            moved = true;
        }
        let call = HopCall::of(g, node).ok().flatten();
        for v in written_operands(program, node, call.as_ref()) {
            for &r in &roots[of(v)] {
                if let Some(w) = written.get_mut(r as usize) {
                    *w = true;
                }
            }
        }
        if let Some(call) = call {
            let root =
                |item| if let &HopItem::Tensor { value, .. } = item { roots[of(value)].clone() } else { Roots::new() };
            let operands: Vec<Roots> = call.inputs().map(root).collect();
            let count = operands.len() as u32;
            let mut last = made;
            for (&r, own) in
                node.results.iter().zip(result_roots(program, &call, node.results.len(), InputStrides::Any))
            {
                let mut all = Roots::new();
                for root in own {
                    match operands.get(root as usize) {
                        Some(outer) => all.extend_from_slice(outer),
                        None => all.push(made + (root - count)),
                    }
                }
                let all = in_order(all);
                last = last.max(all.last().map_or(0, |r| r + 1));
                roots.set(r, all);
            }
            made = last;
            continue;
        }
        let views = node.op.is_view() && !(strides == InputStrides::Declared && surely_copies(g, node));
        if views || node.op.mutates(&node.args) {
            let all = match node.args.get(node.op.def().base as usize) {
                Some(Arg::Value(base)) => Roots::from_slice(&roots[of(*base)]),
                _ => in_order(operands.flat_map(|v| roots[v].clone()).collect()),
            };
            for &r in &node.results {
                roots.set(r, Roots::from_slice(&all));
            }
        } else {
            for &r in &node.results {
                roots.set(r, smallvec![made]);
                made += 1;
            }
        }
    }
    if moved {
        for v in g.values.ids() {
            if let Some(object) = objects[v] {
                let all = roots[object].clone();
                roots.set(v, all);
            }
        }
    }
    (written, roots)
}

/// Whether the types of a call's operands, strides too, say that its result is a copy (`contiguous` of a transpose, `to` of another
/// type).
fn surely_copies(graph: &Graph, node: &Node) -> bool {
    let outcome = || node.op.def().view?.of(&known(&node.args, |v| meta(graph, v))?).ok();
    matches!(outcome(), Some(ViewOutcome::Copy))
}

fn in_order(mut roots: Roots) -> Roots {
    roots.sort_unstable();
    roots.dedup();
    roots
}

/// For each result of a node, the argument that it is.
fn returned_args(node: &Node) -> SmallVec<[Option<ValueId>; 2]> {
    let value = |i: usize| match node.args.get(i) {
        Some(Arg::Value(v)) => Some(*v),
        _ => None,
    };
    match node.op.twin() {
        _ if node.op.def().metadata => smallvec![value(0)],
        // Where nothing changes it is the operand; where something does, it counts as being on its memory.
        _ if node.op.def().itself => smallvec![value(0)],
        Some(twin) if node.op.mutates(&node.args) => {
            let arg = |r: &TwinReturn| if let TwinReturn::Arg(i) = r { value(*i as usize) } else { None };
            twin.returns.iter().map(arg).collect()
        }
        _ => SmallVec::new(),
    }
}

/// The operands whose data a node writes.
fn written_operands(program: &Program, node: &Node, call: Option<&HopCall>) -> SmallVec<[ValueId; 2]> {
    if let Some(call) = call {
        let mut out = SmallVec::new();
        for &body in &call.bodies {
            for (item, written) in call.inputs().zip(written_inputs(program, body)) {
                if let (HopItem::Tensor { value, .. }, true) = (item, written) {
                    out.push(*value);
                }
            }
        }
        return out;
    }
    if node.op.def().metadata || !node.op.mutates(&node.args) {
        return SmallVec::new();
    }
    let writes = |i: usize| match node.op.twin() {
        Some(twin) => twin.writes.iter().any(|w| w.0 as usize == i),
        None => node.op.schema().args.get(i).and_then(|a| a.alias.as_ref()).is_some_and(|a| a.write),
    };
    let args = node.args.iter().enumerate().filter(|(i, _)| writes(*i) || node.op.member().is_some() && *i == 0);
    args.flat_map(|(_, a)| a.values().copied()).collect()
}
