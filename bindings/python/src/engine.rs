//! Collectives by an object of Python: `torch.distributed` (`restride.torch.distributed`).

use pyo3::prelude::*;
use restride::DType;
use restride::collective::{Blocking, BlockingEngine, Engine, Exchange, Pattern, World, with_engine};
use std::sync::{Arc, Mutex, PoisonError};

/// The engine of all runs of this process: a process is one rank.
static ENGINE: Mutex<Option<Arc<dyn Engine>>> = Mutex::new(None);

/// An object with the methods `group`, `exchange` and `abort`.
struct PyEngine {
    object: Py<PyAny>,
    world: World,
}

/// The text of an exception.
fn words(e: PyErr) -> String {
    Python::attach(|py| e.value(py).to_string())
}

impl BlockingEngine for PyEngine {
    fn name(&self) -> &str {
        "an engine of Python"
    }

    fn world(&self) -> World {
        self.world
    }

    fn group(&self, name: &str) -> Result<Vec<usize>, String> {
        Python::attach(|py| self.object.call_method1(py, "group", (name,))?.extract(py)).map_err(words)
    }

    fn exchange(
        &self,
        exchange: &Exchange,
        dtype: DType,
        send: Option<&[u8]>,
        receive: &mut [u8],
    ) -> Result<(), String> {
        let empty: &[usize] = &[];
        let (pattern, reduce, root, sent, received) = match &exchange.pattern {
            Pattern::AllReduce(op) => ("all_reduce", op.name(), 0, empty, empty),
            Pattern::AllGather => ("all_gather", "", 0, empty, empty),
            Pattern::ReduceScatter(op) => ("reduce_scatter", op.name(), 0, empty, empty),
            Pattern::AllToAll { sent, received } => ("all_to_all", "", 0, &sent[..], &received[..]),
            Pattern::Broadcast { root } => ("broadcast", "", *root, empty, empty),
        };
        let to = (receive.as_mut_ptr() as usize, receive.len());
        let from = send.map_or(to, |bytes| (bytes.as_ptr() as usize, bytes.len()));
        let counts = (sent.to_vec(), received.to_vec());
        let args = (pattern, reduce, root, &*exchange.group, dtype.torch_name(), from, to, counts);
        Python::attach(|py| self.object.call_method1(py, "exchange", args).map(drop)).map_err(words)
    }

    fn abort(&self, why: &str) {
        // The run's own error is raised.
        let _ = Python::attach(|py| self.object.call_method1(py, "abort", (why,)));
    }
}

/// Lets an object carry out the collectives of all runs of this process, which is rank `rank` of `size`; `None` is one rank alone.
#[pyfunction]
#[pyo3(signature = (object, rank=0, size=1))]
pub fn use_engine(object: Option<Py<PyAny>>, rank: usize, size: usize) {
    let engine =
        object.map(|object| Arc::new(Blocking(PyEngine { object, world: World { rank, size } })) as Arc<dyn Engine>);
    *ENGINE.lock().unwrap_or_else(PoisonError::into_inner) = engine;
}

/// Runs with the engine of this process.
pub fn as_rank<R>(run: impl FnOnce() -> R) -> R {
    let engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    with_engine(engine, run)
}
