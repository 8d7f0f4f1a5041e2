//! A prepared program as data: numbers, the memory plan, reasons, steps.

pub(crate) mod exchanges;
pub(crate) mod explain;
pub(crate) mod profile;
pub(crate) mod report;
pub(crate) mod timeline;

use crate::compile::Compiled;
use crate::instance::Instance;
use crate::prepare::PreparedSegment;
use explain::{Inside, Site};
use restride_exec::interp::RunOptions;
use restride_exec::{Inputs, State};
use restride_ir::text::{PrintOptions, print_placed};
use restride_ir::{
    Binding, BufferId, BufferKind, Error, ErrorKind, Graph, GraphId, Id, Movement, Node, Placement, Program, Result,
    Type, ValueId, fused_body,
};
use std::sync::Arc;

/// A compiled program, prepared for the sizes of some inputs: specialised, lowered, placed, planned and checked.
pub struct Prepared {
    pub(crate) compiled: Compiled,
    pub(crate) segments: Vec<Arc<PreparedSegment>>,
}

impl Compiled {
    /// Prepares the program for the sizes of these inputs, or with `None` for its static sizes. Otherwise the first run prepares it.
    /// `Compiled` remembers the last 64 preparations, and a run with the sizes of one of them prepares nothing. A program whose sizes
    /// depend on data runs once, on copies of the inputs.
    ///
    /// ```
    /// # use restride::{CompileOptions, Compiled, Inputs, OpenOptions, RunOptions};
    /// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/llama_decode.pt2"));
    /// let program = restride::open(path, &OpenOptions::default())?;
    /// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
    /// let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    /// compiled.prepare(None)?;                                             // places, plans, checks: sizes are static
    /// compiled.instance()?.run(&inputs, &RunOptions::default())?;          // only runs
    /// # Ok::<(), restride::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Instance::run`]; `None` for a program whose sizes depend on inputs.
    pub fn prepare<'i>(&self, inputs: impl Into<Option<&'i Inputs>>) -> Result<Prepared> {
        let program = self.functional();
        let (compiled, segments) = match inputs.into() {
            Some(inputs) => {
                let (compiled, bound) = self.bound(inputs, &State::new(program)?)?;
                let mut segments = Vec::new();
                if compiled.segments().len() == 1 {
                    segments.push(compiled.segment(0, &bound.symbols)?);
                } else {
                    let mut instance = Instance::new(compiled.clone(), State::new(compiled.functional())?);
                    instance.run_showing(&inputs.deep_clone(), &RunOptions::default(), &mut |s| segments.push(s))?;
                }
                (compiled, segments)
            }
            None if program.symbols.is_empty() && self.segments().len() == 1 => {
                (self.clone(), vec![self.segment(0, &Binding::new())?])
            }
            None => {
                let names: Vec<&str> = program.symbols.keys().map(|s| &**s).collect();
                let what = match names.is_empty() {
                    true => "data decides on sizes of the program".to_string(),
                    false => format!("the program has symbolic sizes: {}", names.join(", ")),
                };
                return Err(Error::new(ErrorKind::Inputs, what).help("give inputs"));
            }
        };
        Ok(Prepared { compiled, segments })
    }
}

impl Prepared {
    /// The placed program as text.
    pub fn show(&self) -> String {
        let text =
            |s: &Arc<PreparedSegment>| print_placed(&s.program, &s.placement, Some(&s.plan), &PrintOptions::default());
        self.segments.iter().map(text).collect::<Vec<_>>().join("\n")
    }
}

/// First and last step that touches each buffer.
fn spans(placement: &Placement) -> Vec<Option<(usize, usize)>> {
    let mut spans: Vec<Option<(usize, usize)>> = vec![None; placement.buffers.len()];
    for (at, step) in placement.steps.iter().enumerate() {
        for buffer in placement.touched(step) {
            spans[buffer.index()].get_or_insert((at, at)).1 = at;
        }
    }
    spans
}

fn bytes_of(ty: &Type) -> i64 {
    ty.tensor().and_then(|t| t.known()).map_or(0, |m| m.layout.numel() * m.dtype.size() as i64)
}

/// Whether a node only moves elements when it runs: views, scatters, `cat` and their like. Conversions compute, and so do operators
/// that may draw numbers (`dropout`).
fn only_moves(graph: &Graph, node: &Node) -> bool {
    let def = node.op.def();
    if def.random || def.awaits || def.movement.is_none() && def.view.is_none() {
        return false;
    }
    let dtype = |v: ValueId| graph.values[v].ty.tensor().map(|t| t.dtype);
    let bits = matches!(def.movement, Some(Movement::View(_)));
    bits || node.operands().all(|v| node.results.iter().all(|r| dtype(v).is_none() || dtype(*r) == dtype(v)))
}

/// The owner of a buffer: `the arena`, `%x` for an input, `output 0` (of a body `result 0`).
fn memory_name(graph: &Graph, placement: &Placement, body: bool, buffer: BufferId) -> String {
    match placement.buffers[buffer].kind {
        BufferKind::Arena => "the arena".into(),
        BufferKind::Input(i) => {
            graph.inputs.get(i).map_or_else(|| format!("input {i}"), |v| format!("%{}", graph.values[*v].name))
        }
        BufferKind::Output(i) if body => format!("result {i}"),
        BufferKind::Output(i) => format!("output {i}"),
    }
}

/// The name of a body.
fn graph_name(graph: &Graph, id: GraphId) -> String {
    if graph.name.is_empty() { id.to_string() } else { graph.name.to_string() }
}

fn site(program: &Program, graph: &Graph, node: &Node, piece: usize, body: Option<String>) -> Site {
    let names = |graph: &Graph, node: &Node| -> Vec<String> {
        node.results.iter().map(|r| graph.values[*r].name.to_string()).collect()
    };
    let inside = fused_body(node).map_or_else(Vec::new, |body| {
        let calls = &program.graphs[body];
        let call = |n: &Node| Inside { results: names(calls, n), op: n.op.name().to_string(), key: n.origin.key };
        calls.ordered().map(|(_, n)| call(n)).collect()
    });
    Site {
        inside,
        results: names(graph, node),
        op: node.op.name().to_string(),
        line: node.origin.source_line(),
        module: node.origin.module.as_ref().map(|m| m.to_string()),
        key: node.origin.key,
        piece,
        body,
    }
}
