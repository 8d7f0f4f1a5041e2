//! Exchanges between ranks, added to a program.

use super::{RandomProgram, int, ints, value};
use crate::rng::Rng;
use restride_ir::{Arg, DType, Graph, Layout, Meta, NodeId, TensorType, Type, ValueId};
use std::sync::Arc;

impl RandomProgram {
    /// The program with exchanges in a group of two ranks between its calls. Later calls read their results instead of their
    /// operands. Without exchanges where no tensor is contiguous.
    pub fn with_exchanges(&self, rng: &mut Rng) -> RandomProgram {
        let mut out = self.clone();
        let graph = out.program.graph_mut();
        for k in 0..1 + rng.below(4) {
            let at = rng.below(graph.order.len() + 1);
            let there = graph.order[..at].iter().flat_map(|n| graph.nodes[*n].results.iter().copied());
            let fits: Vec<(ValueId, Meta)> = graph
                .inputs
                .iter()
                .copied()
                .chain(there)
                .filter_map(|v| Some((v, graph.values[v].ty.tensor()?.known()?)))
                .filter(|(_, m)| m.layout.is_contiguous() && m.layout.offset == 0 && m.layout.numel() < 1 << 12)
                .collect();
            if fits.is_empty() {
                continue;
            }
            let (v, meta) = rng.choose(&fits).clone();
            let later = graph.order.split_off(at);
            let w = exchange(graph, v, &meta, k, rng);
            let from = rng.below(later.len() + 1);
            graph.order.extend(&later);
            for id in &later[from..] {
                replace(graph, *id, v, w);
            }
            if rng.chance(60) {
                graph.outputs.iter_mut().for_each(|a| *a = a.map_values(|o| if *o == v { w } else { *o }));
            }
        }
        out
    }
}

fn replace(graph: &mut Graph, id: NodeId, v: ValueId, w: ValueId) {
    let args = graph.nodes[id].args.iter().map(|a| a.map_values(|o| if *o == v { w } else { *o })).collect();
    graph.nodes[id].args = args;
}

/// Adds an exchange of a value, and the wait for it; a tensor of the value's type.
fn exchange(graph: &mut Graph, v: ValueId, meta: &Meta, number: usize, rng: &mut Rng) -> ValueId {
    let world = || Arg::Str("pair".into());
    let words: &[&str] = match meta.dtype {
        d if d.is_complex() => &["sum"],
        DType::F32 | DType::F64 => &["sum", "avg", "max"],
        _ => &["sum", "max"],
    };
    let by = Arg::Str((*rng.choose(words)).into());
    let mut call = |op: &str, args: Vec<Arg>, sizes: &[i64]| {
        let op = restride_ops::lookup(op).expect("an operator");
        let mut args = args;
        op.fill_defaults_or_none(&mut args);
        let name: Arc<str> = format!("exchange_{number}_{}", graph.values.len()).into();
        let ty = super::symbolic(&Meta::new(meta.dtype, Layout::contiguous(sizes)));
        let ty: TensorType = ty;
        let id = graph.add_node(op, args, [(name, Type::Tensor(ty))], Default::default());
        graph.nodes[id].results[0]
    };
    let sizes = meta.layout.sizes.to_vec();
    let rows = sizes.first().copied().unwrap_or(0);
    let mut doubled = sizes.clone();
    doubled.first_mut().into_iter().for_each(|n| *n *= 2);
    let started = match rng.below(7) {
        0 => call("_c10d_functional.broadcast.default", vec![value(v), int(1), world()], &sizes),
        1 => call("_c10d_functional.all_reduce_.default", vec![value(v), by, world()], &sizes),
        2 if rows > 0 => {
            let all =
                call("_c10d_functional.all_gather_into_tensor.default", vec![value(v), int(2), world()], &doubled);
            let all = call("_c10d_functional.wait_tensor.default", vec![value(all)], &doubled);
            return call("aten.narrow_copy.default", vec![value(all), int(0), int(rows / 2), int(rows)], &sizes);
        }
        3 if rows > 0 => {
            let twice = call("aten.cat.default", vec![super::values(&[v, v]), int(0)], &doubled);
            call("_c10d_functional.reduce_scatter_tensor.default", vec![value(twice), by, int(2), world()], &sizes)
        }
        4 if rows > 0 && rows % 2 == 0 => {
            let splits = || ints(&[rows / 2, rows / 2]);
            call("_c10d_functional.all_to_all_single.default", vec![value(v), splits(), splits(), world()], &sizes)
        }
        _ => call("_c10d_functional.all_reduce.default", vec![value(v), by, world()], &sizes),
    };
    call("_c10d_functional.wait_tensor.default", vec![value(started)], &sizes)
}
