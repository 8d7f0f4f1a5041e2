//! Faults that checkers find.

use restride_ir::{Error, ErrorKind, GraphId, NodeId, Place, Program};
use std::fmt;

/// Kind of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A value is read where it was never stored.
    NotThere,
    /// A value is read where some of its cells were overwritten.
    Overwritten,
    /// Memory of an exchange between ranks is read or written before the wait for it.
    InFlight,
    /// A kernel writes cells that it reads, or a cell twice, without a licence.
    Overlap,
    /// A place leaves its buffer, or a buffer leaves its arena.
    Outside,
    /// A step writes read-only memory.
    ReadOnly,
    /// A step, buffer or plan does not fit the program: missing, duplicate, or of another size.
    Malformed,
    /// Two live buffers share bytes.
    Shared,
    /// A claim of the plan is false.
    Claim,
    /// A program that claims to be functional is not.
    Impure,
    /// The functional program computes something else than the imported one.
    Meaning,
}

/// A fault in a placement, a plan or a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// Kind.
    pub kind: FaultKind,
    /// Graph.
    pub graph: Option<GraphId>,
    /// Step of the placement; `None` before the first and after the last.
    pub step: Option<usize>,
    /// Node of the step.
    pub node: Option<NodeId>,
    /// Name of the value.
    pub value: Option<String>,
    /// Place of the value.
    pub place: Option<Place>,
    /// Index of the first wrong element, if known.
    pub element: Option<Vec<i64>>,
    /// Message.
    pub what: String,
}

impl Fault {
    /// A fault of a whole graph or program.
    pub(crate) fn new(kind: FaultKind, graph: Option<GraphId>, what: impl Into<String>) -> Fault {
        Fault { kind, graph, step: None, node: None, value: None, place: None, element: None, what: what.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            write!(f, "step {step}: ")?;
        }
        if let Some(value) = &self.value {
            write!(f, "%{value} ")?;
        }
        if let Some(place) = &self.place {
            write!(f, "at {} {} ", place.buffer, place.layout)?;
        }
        f.write_str(&self.what)?;
        match &self.element {
            Some(index) => write!(f, ", first at element {index:?}"),
            None => Ok(()),
        }
    }
}

/// The faults as one error: the first with its node and source line, and the number of others.
pub fn error(program: &Program, faults: &[Fault]) -> Error {
    let Some(first) = faults.first() else { return Error::new(ErrorKind::Check, "a check failed without a fault") };
    let more = match faults.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let error = Error::new(ErrorKind::Check, format!("{first}{more}"));
    match (first.graph.and_then(|g| program.graphs.get(g)), first.node) {
        (Some(graph), Some(node)) if graph.nodes.get(node).is_some() => error.at(graph, node),
        _ => error,
    }
}
