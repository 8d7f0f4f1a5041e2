//! Weights that packed forms were made of, and what tells that one was changed.

use crate::dlpack::{DLTensor, memory_of};
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A weight that packed forms were made of.
pub struct HeldWeight {
    /// The tensor object, for comparisons. It is alive while `gone` is not set.
    pub object: usize,
    pub gone: Arc<AtomicBool>,
    pub _reference: Py<PyAny>,
    pub start: usize,
    pub version: i64,
    /// Elements at some places, to notice writes that PyTorch does not count.
    pub sample: [u64; 3],
}

/// How often PyTorch has counted a write; `None` where it does not count.
pub fn version(tensor: &Bound<'_, PyAny>) -> Option<i64> {
    tensor.getattr(intern!(tensor.py(), "_version")).ok()?.extract().ok()
}

/// Set once a tensor is gone.
#[pyclass(frozen, module = "restride._restride")]
pub struct Gone {
    pub gone: Arc<AtomicBool>,
}

#[pymethods]
impl Gone {
    fn __call__(&self, _reference: &Bound<'_, PyAny>) {
        self.gone.store(true, Ordering::Release);
    }
}

/// The bytes at the beginning, in the middle and at the end of a tensor without gaps.
pub fn sample(lent: &DLTensor) -> [u64; 3] {
    let mut out = [0; 3];
    let Ok((start, bytes, ..)) = memory_of(lent, "a weight") else { return out };
    if bytes == 0 {
        return out;
    }
    for (at, sampled) in [0, bytes / 2, bytes.saturating_sub(8)].into_iter().zip(&mut out) {
        for byte in at..(at + 8).min(bytes) {
            // SAFETY: the byte is inside of the tensor's memory, and no thread writes it during a call.
            *sampled = *sampled << 8 | u64::from(unsafe { start.add(byte).read() });
        }
    }
    out
}
