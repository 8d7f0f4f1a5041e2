//! Printer of placements: places of all values, and the steps.

use super::print::{PrintOptions, Printer, put};
use crate::{Buffer, BufferKind, Graph, GraphId, Place, Placement, Plan, Program, Step, TensorType, ValueId};
use std::collections::VecDeque;

/// The placed program as text. For the main graph and every called body: buffers with owner, bytes and planned offset, then
/// the steps with their places. `%v @ buf1[2, 3][3, 1]+4` is the place of the elements of `%v`.
pub fn print_placed(program: &Program, placement: &Placement, plan: Option<&Plan>, options: &PrintOptions) -> String {
    let mut out = String::new();
    if !program.name.is_empty() {
        out.push_str("program ");
        super::lex::quote(&mut out, &program.name);
        out.push('\n');
    }
    out.push_str("stage: placed\n");
    // Callees come after their callers. Placements form a tree, so this ends.
    let mut todo: VecDeque<(Option<GraphId>, &Placement, Option<&Plan>)> = [(None, placement, plan)].into();
    while let Some((id, placement, plan)) = todo.pop_front() {
        if id.is_some() {
            out.push('\n');
        }
        let graph = &program.graphs[id.unwrap_or(program.main)];
        let printer = Printer { graphs: &program.graphs, graph, options };
        one(&mut out, &printer, id, placement, plan);
        todo.extend(placement.nested.iter().map(|(id, n)| (Some(*id), &n.placement, Some(&n.plan))));
    }
    out
}

/// One graph as placed.
fn one(out: &mut String, printer: &Printer<'_>, id: Option<GraphId>, placement: &Placement, plan: Option<&Plan>) {
    let graph = printer.graph;
    if let Some(plan) = plan {
        let optimal = if plan.optimal { ", optimal" } else { "" };
        put!(out, "arena {} bytes, at least {} needed{optimal}\n", plan.arena_bytes, plan.at_least_bytes);
    }
    for (id, buffer) in placement.buffers.iter() {
        put!(out, "buffer {id}: {}, {} bytes", owner(printer, buffer), buffer.bytes);
        if let Some(offset) = plan.and_then(|p| p.offsets[id]) {
            put!(out, " at {offset}");
        }
        out.push('\n');
    }
    out.push_str("\ngraph");
    if let Some(id) = id {
        out.push(' ');
        printer.graph_name(out, id);
    }
    let at_rest = |out: &mut String, v: ValueId| placed(printer, out, v, placement.places[v].as_ref());
    printer.inputs(out, |out, v| {
        printer.typed(out, v);
        if let Some(place) = &placement.places[v] {
            out.push_str(" @ ");
            place_text(out, graph, v, place);
        }
    });
    out.push_str(" {\n");
    for step in &placement.steps {
        out.push_str("  ");
        match step {
            Step::Run { node, reads, writes } => {
                let scratch = placement.scratch.get(node);
                let node = &graph.nodes[*node];
                for (i, &r) in node.results.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    placed(printer, out, r, writes.get(i).and_then(Option::as_ref));
                }
                out.push_str(if node.results.is_empty() { "" } else { " = " });
                let mut next = 0;
                printer.call(out, node, &mut |out, v| {
                    placed(printer, out, v, reads.get(next).and_then(Option::as_ref));
                    next += 1;
                });
                if let Some(buffer) = scratch {
                    put!(out, " !scratch {buffer}");
                }
                printer.node_end(out, node);
            }
            Step::Move { value, from, to } => {
                out.push_str("move ");
                printer.value(out, *value);
                out.push_str(": ");
                place_text(out, graph, *value, from);
                out.push_str(" -> ");
                place_text(out, graph, *value, to);
                out.push('\n');
            }
            Step::Free { node } => {
                let node = &graph.nodes[*node];
                out.push_str("free ");
                for (i, &r) in node.results.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    at_rest(out, r);
                }
                out.push_str(if node.results.is_empty() { "" } else { " = " });
                printer.call(out, node, &mut |out, v| at_rest(out, v));
                printer.node_end(out, node);
            }
        }
    }
    printer.outputs(out, at_rest);
    out.push_str("}\n");
}

fn owner(printer: &Printer<'_>, buffer: &Buffer) -> String {
    match buffer.kind {
        BufferKind::Arena => "arena".to_string(),
        BufferKind::Input(i) => {
            let mut out = "input ".to_string();
            match printer.graph.inputs.get(i) {
                Some(&v) => printer.value(&mut out, v),
                None => put!(out, "{i}"),
            }
            out
        }
        BufferKind::Output(i) => format!("output {i}"),
    }
}

fn placed(printer: &Printer<'_>, out: &mut String, v: ValueId, place: Option<&Place>) {
    printer.value(out, v);
    if let Some(place) = place {
        out.push_str(" @ ");
        place_text(out, printer.graph, v, place);
    }
}

/// `buf1[2, 3][3, 1]+4`, counted in elements of the value's type.
fn place_text(out: &mut String, graph: &Graph, v: ValueId, place: &Place) {
    put!(out, "{}", place.buffer);
    let dtype = graph.values[v].ty.tensor().map_or(crate::DType::U8, |t| t.dtype);
    // A type's text is its element type's name followed by its layout.
    let text = TensorType { dtype, layout: place.layout.clone() }.to_string();
    out.push_str(text.strip_prefix(dtype.name()).unwrap_or(&text));
}
