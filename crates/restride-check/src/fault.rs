//! What a judge found.

use restride_ir::{Error, ErrorKind, GraphId, NodeId, Place, Program};
use std::fmt;

/// What kind of thing is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// A value is read where it was never put.
    NotThere,
    /// A value is read where some of its cells have been written since.
    Overwritten,
    /// A kernel writes cells that it reads, or writes cells twice, without a licence.
    Overlap,
    /// A place leaves its buffer, or a buffer its arena.
    Outside,
    /// Memory is written that must not be.
    ReadOnly,
    /// A step, a buffer or a plan does not fit the program: something is missing, double or of another size.
    Malformed,
    /// Two buffers share bytes while both live.
    Shared,
    /// What a plan says of itself is not true.
    Claim,
    /// A program that is said to be functional is not.
    Impure,
    /// A functional program computes something else than the imported one.
    Meaning,
}

/// Something wrong in a placement, a plan or a program.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// In which graph.
    pub graph: Option<GraphId>,
    /// At which step of the placement; `None` before the first and after the last.
    pub step: Option<usize>,
    /// Which node the step belongs to.
    pub node: Option<NodeId>,
    /// Name of the value.
    pub value: Option<String>,
    /// Which cells.
    pub place: Option<Place>,
    /// The first element of the value that is wrong, by its index in each dimension, where that is known.
    pub element: Option<Vec<i64>>,
    /// What is wrong, in words.
    pub what: String,
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

/// The faults as one error: the first with its node and source line, and how many there are.
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
