//! The native module of the Python package `restride`: `py_src/restride` has what users see.
//!
//! Unsafe code here reads memory that objects of Python lend, by DLPack, and lends memory of restride.

mod arrays;
mod compiled;
mod dlpack;
mod engine;
mod errors;
mod forms;
mod given;
mod graph;
mod held;
mod options;
mod program;
mod results;

use pyo3::prelude::*;
use std::ffi::OsString;

/// The operators and what each has, as JSON.
#[pyfunction]
fn ops() -> String {
    restride_cli::ops_json(&restride::coverage()).to_string()
}

/// Whether restride runs an operator of a full name, such as `aten.add_.Tensor`.
#[pyfunction]
fn runs(name: &str) -> bool {
    restride::runs(name)
}

/// Carries out a command line, and returns the exit status.
#[pyfunction]
fn cli(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| restride_cli::run(args))
}

/// The native module.
#[pymodule]
mod _restride {
    #[pymodule_export]
    use super::arrays::Tensor;
    #[pymodule_export]
    use super::compiled::{Compiled, Instance, Session};
    #[pymodule_export]
    use super::engine::use_engine;
    #[pymodule_export]
    use super::graph::Graph;
    #[pymodule_export]
    use super::program::{Program, models, open, open_bytes};
    #[pymodule_export]
    use super::{cli, ops, runs};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
