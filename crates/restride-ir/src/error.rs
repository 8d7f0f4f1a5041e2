//! The one error type of the toolchain.

use std::fmt;

/// Error of an operator's rule or kernel; the caller adds the node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpError(pub String, ErrorKind);

impl OpError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        OpError(message.into(), ErrorKind::Program)
    }
    /// An error for a PyTorch feature that restride does not support.
    pub fn unsupported(message: impl Into<String>) -> Self {
        OpError(message.into(), ErrorKind::Unsupported)
    }
    /// An error for a request beyond a fixed limit.
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

/// Kind of an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// The file is damaged, missing, or of another format.
    File,
    /// The program breaks a rule of the IR.
    Invalid,
    /// PyTorch itself refuses the program, or refuses these inputs.
    Program,
    /// restride does not support a feature of the program.
    Unsupported,
    /// The program asks for more than its [`crate::Limits`] allow.
    Limit,
    /// The inputs do not fit the program.
    Inputs,
    /// A checker rejects a decision of a pass: a bug in restride.
    Check,
}

/// An error on one line: what is wrong, where, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// Kind.
    pub kind: ErrorKind,
    /// What is wrong.
    pub what: String,
    /// The node, as `%name = op`.
    pub node: Option<String>,
    /// The line of the user's source, as `file.py:12`.
    pub source: Option<String>,
    /// The text of that line, where the file records it.
    pub code: Option<Box<str>>,
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
    /// An error for an unsupported feature.
    pub fn unsupported(what: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unsupported, what)
    }
    /// An error for a program that breaks a rule of the IR.
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::new(ErrorKind::Invalid, what)
    }
    /// Adds advice on what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// Adds the node and its source line, unless the error names an inner node.
    pub fn at(self, graph: &crate::Graph, node: crate::NodeId) -> Self {
        let n = &graph.nodes[node];
        self.at_call(&n.origin, || {
            let results: Vec<String> = n.results.iter().map(|&r| format!("%{}", graph.values[r].name)).collect();
            let lead = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
            format!("{lead}{}", n.op.name())
        })
    }
    /// Adds a call, as `%name = op`, and its source line, unless the error names an inner call.
    pub fn at_call(mut self, origin: &crate::Origin, call: impl FnOnce() -> String) -> Self {
        if self.node.is_none() {
            self.node = Some(call());
            self.source = origin.source_line();
            self.code = origin.source_text().map(Box::from);
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
