//! Placement and plan of a program, stored below `extra/` in its archive and reused by runs of the file.
//!
//! `restride.plan.json` refers to the placed program: functional, of known sizes, all operators with kernels. Values go by name,
//! nodes by position. The archive holds the program that the placed one follows from; a digest ties the plan to it.
//! `restride.placed.txt` shows the same to people.
//!
//! Reading checks that positions, sizes and bytes are within their limits, so that later code cannot panic. `restride-check`
//! decides whether the plan is right.

mod read;

use crate::model;
pub use read::{SavedPlan, saved_plan};
use restride_ir::text::{PrintOptions, print_placed};
use restride_ir::{
    Binding, BufferKind, CollectTree, Graph, GraphId, Id, NodeId, Place, Placement, Plan, Program, Result, Step, Table,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The plan as JSON.
const PLAN: &str = "restride.plan.json";
/// The plan as text.
const TEXT: &str = "restride.placed.txt";
/// Version of these files.
const FORMAT: u32 = 4;

/// A piece of a program, as it was placed.
pub struct PlacedPiece<'a> {
    /// Functional, with known sizes.
    pub program: &'a Program,
    /// Places of its values.
    pub placement: &'a Placement,
    /// Offsets in the arena.
    pub plan: &'a Plan,
    /// If nodes run in another order, or again: the nodes in running order, as positions in the order without that.
    pub sequence: Option<&'a [usize]>,
    /// Nodes that were fused, as positions in that order.
    pub groups: &'a BTreeMap<GraphId, Vec<Vec<usize>>>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    format: u32,
    /// SHA-256 of the archive's `models/model.json`, in hexadecimal: the plan is for that program and no other.
    model_sha256: String,
    /// Values of the symbols that it was made for.
    sizes: BTreeMap<String, String>,
    segments: Vec<GraphPlan>,
}

/// A graph, placed and planned.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct GraphPlan {
    arena_bytes: i64,
    lower_bound_bytes: i64,
    at_least_bytes: i64,
    optimal: bool,
    /// Alignment of offsets, if larger than the default.
    #[serde(default, skip_serializing_if = "is_zero")]
    align: i64,
    /// Memories that the arena consists of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    memories: Vec<MemoryFile>,
    #[serde(default, skip_serializing_if = "is_zero")]
    spilled_at_least: i64,
    buffers: Vec<BufferFile>,
    /// Places of values, by name.
    values: BTreeMap<String, PlaceFile>,
    steps: Vec<StepFile>,
    /// Scratch: node and buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scratch: Vec<(usize, usize)>,
    /// Bodies that higher-order nodes call, by position among the program's graphs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    bodies: BTreeMap<usize, BodyPlan>,
    /// Placed nodes as positions among those of the program, if they run in another order, or some of them again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequence: Option<Vec<usize>>,
    /// Nodes that were fused, as positions among the placed ones: by position of their graph among the program's graphs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fused: BTreeMap<usize, Vec<Vec<usize>>>,
}

fn is_zero(n: &i64) -> bool {
    *n == 0
}

#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct MemoryFile {
    name: String,
    start: i64,
    bytes: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<i64>,
    traffic: i64,
    /// Names of values that must be in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pinned: Vec<String>,
}

/// The body of a higher-order node.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct BodyPlan {
    /// Number of leading inputs that the loop carries.
    carried: usize,
    graph: GraphPlan,
}

#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct BufferFile {
    kind: KindFile,
    /// Position among the inputs or outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    bytes: i64,
    /// In the arena, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
enum KindFile {
    Arena,
    Input,
    Output,
}

/// A buffer's position among the buffers, and the layout in it.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct PlaceFile {
    buffer: usize,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
}

#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum StepFile {
    Run { node: usize, reads: Vec<Option<PlaceFile>>, writes: Vec<Option<PlaceFile>> },
    Move { value: String, from: PlaceFile, to: PlaceFile },
    Free { node: usize },
}

/// The files with a program's placement and plan.
///
/// # Errors
/// A construct that an archive cannot express.
pub fn placed_files(program: &Program, sizes: &Binding, pieces: &[PlacedPiece<'_>]) -> Result<Vec<(String, Vec<u8>)>> {
    let file = PlanFile {
        format: FORMAT,
        model_sha256: digest(&model::print(&crate::export::program_model(program)?)?),
        sizes: sizes.iter().map(|(s, v)| (s.name().to_string(), v.to_string())).collect_map(),
        segments: pieces.iter().map(segment).collect(),
    };
    let text: Vec<String> =
        pieces.iter().map(|p| print_placed(p.program, p.placement, Some(p.plan), &PrintOptions::default())).collect();
    Ok(vec![(PLAN.into(), model::print(&file)?), (TEXT.into(), text.join("\n").into_bytes())])
}

fn segment(p: &PlacedPiece<'_>) -> GraphPlan {
    let plan = graph_plan(p.program, p.program.main, p.placement, p.plan);
    let fused = p.groups.iter().map(|(id, groups)| (id.index(), groups.clone())).collect_map();
    GraphPlan { sequence: p.sequence.map(<[usize]>::to_vec), fused, ..plan }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Each node's place in the order.
fn positions(graph: &Graph) -> Table<NodeId, usize> {
    let mut positions = Table::new();
    graph.order.iter().enumerate().for_each(|(at, id)| positions.set(*id, at));
    positions
}

fn graph_plan(program: &Program, id: GraphId, placement: &Placement, plan: &Plan) -> GraphPlan {
    let graph = &program.graphs[id];
    let at = positions(graph);
    let name = |v| graph.values[v].name.to_string();
    let places = |list: &[Option<Place>]| list.iter().map(|p| p.as_ref().map(place)).collect();
    let step = |s: &Step| match s {
        Step::Run { node, reads, writes } => {
            StepFile::Run { node: at[*node], reads: places(reads), writes: places(writes) }
        }
        Step::Move { value, from, to } => StepFile::Move { value: name(*value), from: place(from), to: place(to) },
        Step::Free { node } => StepFile::Free { node: at[*node] },
    };
    let buffers = placement.buffers.iter().map(|(id, b)| {
        let (kind, position) = match b.kind {
            BufferKind::Arena => (KindFile::Arena, None),
            BufferKind::Input(i) => (KindFile::Input, Some(i)),
            BufferKind::Output(i) => (KindFile::Output, Some(i)),
        };
        BufferFile { kind, position, bytes: b.bytes, offset: plan.offsets[id] }
    });
    let memory = |m: &restride_ir::MemorySpace| MemoryFile {
        name: m.name.clone(),
        start: m.start,
        bytes: m.bytes,
        capacity: m.capacity,
        traffic: m.traffic,
        pinned: m.pinned.iter().map(|v| name(*v)).collect(),
    };
    let body = |(id, n): (&GraphId, &restride_ir::Nested)| {
        (id.index(), BodyPlan { carried: n.carried, graph: graph_plan(program, *id, &n.placement, &n.plan) })
    };
    GraphPlan {
        arena_bytes: plan.arena_bytes,
        lower_bound_bytes: plan.lower_bound_bytes,
        at_least_bytes: plan.at_least_bytes,
        optimal: plan.optimal,
        align: if plan.align > restride_ir::ARENA_ALIGN { plan.align } else { 0 },
        memories: plan.memories.iter().map(memory).collect(),
        spilled_at_least: plan.spilled_at_least,
        buffers: buffers.collect(),
        values: graph
            .values
            .ids()
            .filter_map(|v| placement.places[v].as_ref().map(|p| (name(v), place(p))))
            .collect_map(),
        steps: placement.steps.iter().map(step).collect(),
        scratch: placement.scratch.iter().map(|(node, buffer)| (at[*node], buffer.index())).collect(),
        bodies: placement.nested.iter().map(body).collect_map(),
        sequence: None,
        fused: BTreeMap::new(),
    }
}

fn place(p: &Place) -> PlaceFile {
    PlaceFile {
        buffer: p.buffer.index(),
        sizes: p.layout.sizes.to_vec(),
        strides: p.layout.strides.to_vec(),
        offset: p.layout.offset,
    }
}
