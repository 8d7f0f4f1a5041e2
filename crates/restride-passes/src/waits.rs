//! Waits for the results of collectives.
//!
//! A functional program has none: a collective is a function of its operand. A run starts an exchange where its operand is known
//! and waits where its result is first read ([`started`]), so that steps between them overlap with the exchange; a file waits
//! by PyTorch's operator ([`awaited`]).

use crate::build::Rebuilt;
use restride_ir::{Arg, CollectTree, Graph, GraphId, Kernel, Node, Op, Program, Stage, Type, ValueId};
use restride_ops::lookup;
use std::collections::{BTreeMap, BTreeSet};

/// The program with each exchange split into its start and a `restride.wait` before the first reader of its result. The wait has
/// the operand of the exchange as an operand too, whose memory stays as it is until then.
pub fn started(program: Program) -> Program {
    let wait = lookup("restride.wait.default").expect("the operator table has the wait");
    each_graph(program, &|args, result| {
        let held: Vec<Option<ValueId>> = args.first().into_iter().flat_map(Arg::values).map(|v| Some(*v)).collect();
        (wait, vec![Arg::Value(result), Arg::Values(held)])
    })
}

/// The program with PyTorch's waits, for a file: before the first reader of a result, or, in a program that writes memory, right
/// after the start.
pub fn awaited(program: Program) -> Program {
    let wait = lookup("_c10d_functional.wait_tensor.default").expect("the operator table has the wait");
    each_graph(program, &|_, result| (wait, vec![Arg::Value(result)]))
}

/// The collective that a call carries out, in a functional or an in-place form.
fn is_exchange(op: Op) -> bool {
    let plain = op.twin().map_or(op, |t| t.op);
    matches!(plain.def().kernel, Kernel::Collective(_))
}

/// The operator and arguments of a wait, from the arguments and the result of the exchange.
type WaitFn<'a> = &'a dyn Fn(&[Arg], ValueId) -> (Op, Vec<Arg>);

fn each_graph(program: Program, wait: WaitFn<'_>) -> Program {
    let has = |graph: &Graph| graph.ordered().any(|(_, n)| is_exchange(n.op));
    let ids: Vec<GraphId> = program.graphs.iter().filter(|(_, g)| has(g)).map(|(id, _)| id).collect();
    if ids.is_empty() {
        return program;
    }
    let mut out = program.copy_without(|id| ids.contains(&id));
    for id in ids {
        with_waits(&program, id, wait).finish(&mut out);
    }
    out
}

/// One exchange without a wait so far: its node's position, and its arguments over new values.
struct Unawaited {
    at: usize,
    args: Vec<Arg>,
}

fn with_waits<'a>(program: &'a Program, id: GraphId, wait: WaitFn<'_>) -> Rebuilt<'a> {
    let old = &program.graphs[id];
    let nodes: Vec<&Node> = old.ordered().map(|(_, n)| n).collect();
    let read: BTreeSet<ValueId> = nodes.iter().flat_map(|n| n.operands()).chain(old.output_values()).collect_set();
    let at_once = program.stage == Stage::Imported;
    let mut new = Rebuilt::new(id, old);
    // Old results whose exchanges are under way, in the order of their starts.
    let mut pending: BTreeMap<ValueId, Unawaited> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        let mut due: Vec<(usize, ValueId)> =
            node.operands().filter_map(|v| pending.get(&v).map(|p| (p.at, v))).collect();
        due.sort_unstable();
        for (_, v) in due {
            if let Some(p) = pending.remove(&v) {
                finish(&mut new, nodes[p.at], v, &p.args, wait);
            }
        }
        let args = new.args(node);
        new.keep(node, args.clone());
        if let (true, &[r]) = (is_exchange(node.op), &node.results[..]) {
            pending.insert(r, Unawaited { at, args });
            if at_once || !read.contains(&r) {
                let p = pending.remove(&r).expect("it was inserted");
                finish(&mut new, node, r, &p.args, wait);
            }
        }
    }
    let mut rest: Vec<(ValueId, Unawaited)> = pending.into_iter().collect();
    rest.sort_by_key(|(_, p)| p.at);
    for (v, p) in rest {
        finish(&mut new, nodes[p.at], v, &p.args, wait);
    }
    new
}

/// Adds the wait for the exchange of an old node, whose result is `v` from then on.
fn finish(new: &mut Rebuilt<'_>, node: &Node, v: ValueId, args: &[Arg], wait: WaitFn<'_>) {
    let started = new.map[v].expect("the exchange was started");
    let ty = new.graph.values[started].ty.clone();
    let Type::Tensor(ty) = ty else { return };
    let (op, args) = wait(args, started);
    let name = new.names.fresh(&format!("{}_done", new.old.values[v].name));
    let id = new.graph.add_node(op, args, [(name, Type::Tensor(ty))], node.origin.clone());
    new.map.set(v, Some(new.graph.nodes[id].results[0]));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"stage: functional
        graph(%x: f32[4]) {
          %y: f32[4] = aten.relu.default(%x)
          %s: f32[4] = _c10d_functional.all_reduce.default(%y, "sum", "0")
          %u: f32[4] = _c10d_functional.all_reduce.default(%y, "max", "0")
          %n: f32[4] = aten.neg.default(%x)
          %m: f32[4] = aten.mul.Tensor(%n, %s)
          return %m
        }"#;

    fn ops(program: &Program) -> Vec<&'static str> {
        program.graph().ordered().map(|(_, n)| n.op.schema().name.as_str()).collect()
    }

    #[test]
    fn exchanges_are_under_way_until_their_results_are_read() {
        let program = restride_ir::text::parse(TEXT, &lookup).unwrap();
        let out = started(program.clone());
        assert_eq!(ops(&out), ["relu", "all_reduce", "all_reduce", "wait", "neg", "wait", "mul"]);
        let text = restride_ir::text::print(&out);
        assert!(text.contains("%s_done: f32[4] = restride.wait.default(%s, [%y])"), "{text}");
        assert!(text.contains("aten.mul.Tensor(%n, %s_done)"), "{text}");
        let file = awaited(program.clone());
        assert_eq!(ops(&file), ["relu", "all_reduce", "all_reduce", "wait_tensor", "neg", "wait_tensor", "mul"]);
        let imported = Program { stage: Stage::Imported, ..program };
        assert_eq!(ops(&awaited(imported))[1..4], ["all_reduce", "wait_tensor", "all_reduce"]);
    }
}
