//! The one error type of the toolchain.

use std::fmt;

/// What an operator's own rule or kernel has to say; the caller adds the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpError(pub String, ErrorKind);

impl OpError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        OpError(message.into(), ErrorKind::Program)
    }
    /// What PyTorch does and restride does not (yet).
    pub fn unsupported(message: impl Into<String>) -> Self {
        OpError(message.into(), ErrorKind::Unsupported)
    }
    /// More than is allowed, whatever the program's limits are.
    pub fn limit(message: impl Into<String>) -> Self {
        OpError(message.into(), ErrorKind::Limit)
    }
}
impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for OpError {}
impl From<restride_tensor::LayoutError> for OpError {
    fn from(e: restride_tensor::LayoutError) -> Self {
        OpError::new(e.0)
    }
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// A file that is damaged, of another format, or not there.
    File,
    /// A program that breaks the rules of the IR.
    Invalid,
    /// A program that PyTorch itself refuses to run, or inputs that it does not take.
    Program,
    /// Something restride does not do (yet).
    Unsupported,
    /// A program that asks for more than a [`crate::Limits`] allows.
    Limit,
    /// Inputs that do not fit the program.
    Inputs,
    /// A checker found a decision wrong: a bug in restride.
    Check,
}

/// Why something could not be done: one line of what, where and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// What kind of error.
    pub kind: ErrorKind,
    /// What is wrong.
    pub what: String,
    /// The node, as `%name = op`.
    pub node: Option<String>,
    /// The line of the user's source, as `file.py:12`.
    pub source: Option<String>,
    /// The text of that line, where the file records it.
    pub code: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
}

/// Result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Error { kind, what: what.into(), node: None, source: None, code: None, help: None }
    }
    /// A refusal: something restride does not do.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unsupported, what)
    }
    /// A program that breaks the rules of the IR.
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::new(ErrorKind::Invalid, what)
    }
    /// With advice on what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// With the node and its source line, unless an inner node is named already.
    pub fn at(self, graph: &crate::Graph, node: crate::NodeId) -> Self {
        let n = &graph.nodes[node];
        self.at_call(&n.origin, || {
            let results: Vec<String> = n.results.iter().map(|&r| format!("%{}", graph.values[r].name)).collect();
            let lead = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
            format!("{lead}{}", n.op.name())
        })
    }
    /// With a call, as `%name = op`, and its source line, unless an inner one is named already.
    pub fn at_call(mut self, origin: &crate::Origin, call: impl FnOnce() -> String) -> Self {
        if self.node.is_none() {
            self.node = Some(call());
            self.source = origin.source_line();
            self.code = origin.source_text().map(str::to_string);
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(node) = &self.node {
            write!(f, " (at {node}")?;
            if let Some(source) = &self.source {
                write!(f, ", {source}")?;
            }
            f.write_str(")")?;
        }
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}
impl std::error::Error for Error {}

impl From<OpError> for Error {
    fn from(e: OpError) -> Self {
        Error::new(e.1, e.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Graph, Node, Origin, test_ops};
    use std::sync::Arc;

    fn at(trace: &str) -> Error {
        let mut graph = Graph::default();
        let origin = Arc::new(Origin { stack_trace: Some(trace.into()), ..Origin::default() });
        let op = test_ops::lookup("aten.t.default").unwrap();
        let node = graph.nodes.push(Node { op, args: vec![], results: Default::default(), origin });
        Error::unsupported("unsupported").help("return the view").at(&graph, node)
    }

    #[test]
    fn an_error_names_the_innermost_call_and_its_line() {
        let e = at(
            "  File \"/m/model.py\", line 7, in forward\n    y = self.f(x)\n  File \"/m/f.py\", line 12, in f\n    return x.relu()\n           ^^^\n",
        );
        assert_eq!(e.to_string(), "unsupported (at aten.t.default, f.py:12); return the view");
        assert_eq!(e.code.as_deref(), Some("return x.relu()"));
        assert_eq!(at("  File \"/m/f.py\", line 12, in f\n").code, None);
    }
}
