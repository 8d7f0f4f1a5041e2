//! Runs as one of several ranks.

use restride_exec::collective::{Engine, agree, engine, with_engine};
use restride_ir::{Binding, Error, ErrorKind, Program, Result};
use std::sync::Arc;

/// Runs `run` with an engine, or with the thread's if there is none. An error ends the exchanges of all ranks.
pub(crate) fn as_rank<R>(own: Option<&Arc<dyn Engine>>, run: impl FnOnce() -> Result<R>) -> Result<R> {
    let engine = own.cloned().unwrap_or_else(engine);
    if engine.world().size == 1 {
        return with_engine(Some(engine), run);
    }
    with_engine(Some(engine.clone()), run).inspect_err(|e| engine.abort(&e.to_string()))
}

/// Compares the exchanges that this rank is about to carry out with those of the other ranks.
pub(crate) fn ready(program: &Program, symbols: &Binding) -> Result<()> {
    agree(&*engine(), program, symbols).map_err(|why| {
        Error::new(ErrorKind::Inputs, format!("the ranks do not agree: {why}"))
            .help("start all ranks with the same program and with inputs of the same sizes")
    })
}
