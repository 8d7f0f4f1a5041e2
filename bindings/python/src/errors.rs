//! Errors as Python's exceptions, which `restride._errors` declares.

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use restride::{Error, ErrorKind};

/// The name of the exception's class for an error.
fn class(error: &Error) -> &'static str {
    match error.kind {
        ErrorKind::Program if is_of_index(&error.what) => "OutOfBoundsError",
        ErrorKind::File => "FileError",
        ErrorKind::Invalid => "InvalidError",
        ErrorKind::Program => "ProgramError",
        ErrorKind::Unsupported => "UnsupportedError",
        ErrorKind::Limit => "LimitError",
        ErrorKind::Inputs => "InputsError",
        ErrorKind::Check => "CheckError",
    }
}

/// Whether an error is an `IndexError` of PyTorch: an index, a class or a dimension that a tensor does not have. Rules and kernels give
/// PyTorch's texts.
fn is_of_index(what: &str) -> bool {
    let outside = what.contains("out of bounds") || what.contains("out of range");
    outside && ["ndex", "imension", "Target "].iter().any(|of| what.contains(of))
}

/// The exception for an error.
pub fn raise(error: &Error) -> PyErr {
    Python::attach(|py| {
        let made = || -> PyResult<PyErr> {
            let class = py.import("restride._errors")?.getattr(class(error))?;
            let error = Error { help: error.help.as_deref().map(in_python), ..error.clone() };
            let texts =
                (&error.what, error.node.as_ref(), error.source.as_ref(), error.code.as_deref(), error.help.as_ref());
            Ok(PyErr::from_value(class.call1((error.to_string(), texts.0, texts.1, texts.2, texts.3, texts.4))?))
        };
        // Python tells of Ctrl-C in the middle of any code.
        made().unwrap_or_else(|e| match e.is_instance_of::<PyKeyboardInterrupt>(py) {
            true => e,
            false => PyRuntimeError::new_err(error.to_string()),
        })
    })
}

/// Options of the command that are arguments of functions here.
const ARGUMENTS: [&str; 5] = ["inputs", "max-trips", "ops", "weights", "wrt"];

/// An advice that names options of the command, in Python's words: `--ops FILE` is the argument `ops`.
fn in_python(help: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut words = help.split(' ').peekable();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").map(|w| w.trim_end_matches([',', ';', '.']));
        let Some(name) = name.filter(|name| ARGUMENTS.contains(name)) else {
            out.push(word.to_string());
            continue;
        };
        // What the option takes stands behind it in capitals.
        words.next_if(|w| w.starts_with(|c: char| c.is_ascii_uppercase()));
        out.push(format!("the argument {}{}", name.replace('-', "_"), &word[2 + name.len()..]));
    }
    out.join(" ")
}

/// An error of inputs.
pub fn inputs_error(what: impl Into<String>) -> PyErr {
    raise(&Error::new(ErrorKind::Inputs, what))
}

/// Results with Python's exceptions.
pub trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|e| raise(&e))
    }
}
