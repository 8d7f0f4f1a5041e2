//! Memory of a run that addresses tell, instead of tensors.

use crate::inputs::{BoundInputs, RunValue, check_sharing, meeting};
use restride_ir::{Binding, Program, Result};
use restride_tensor::{Layout, RawTensor, Storage};

/// Where inputs and outputs of one run are, for which a caller vouches.
pub struct Addresses {
    /// Positions among the graph's inputs, and the first elements there.
    pub(crate) inputs: Vec<(usize, *mut u8)>,
    /// As `inputs`, of outputs.
    pub(crate) outputs: Vec<(usize, *mut u8)>,
}

// SAFETY: the addresses are used by runs, which may be on any thread.
unsafe impl Send for Addresses {}
// SAFETY: as above; a shared reference gives no access.
unsafe impl Sync for Addresses {}

impl Addresses {
    /// Addresses of first elements, by positions among the inputs and the outputs of a graph.
    ///
    /// # Safety
    /// Each address is of memory with the element type, sizes and strides of the tensor that the run is bound to at this position. While
    /// a run uses the addresses, the memory lives, and no other code writes it or reads what the run writes. The memory of an output
    /// shares no byte with that of an input or of another output.
    pub unsafe fn promise(inputs: Vec<(usize, *mut u8)>, outputs: Vec<(usize, *mut u8)>) -> Addresses {
        Addresses { inputs, outputs }
    }

    /// Refuses a written input whose memory meets another input's. `bound` has a tensor of each input's type; an input without an address
    /// is that tensor.
    ///
    /// # Errors
    /// As [`check_sharing`].
    pub fn check_sharing(&self, program: &Program, bound: &[RunValue], written: &[usize]) -> Result<()> {
        if written.is_empty() {
            return Ok(());
        }
        let mut at: Vec<Option<*mut u8>> = vec![None; bound.len()];
        for (i, first) in self.inputs.iter().filter(|(i, _)| *i < bound.len()) {
            at[*i] = Some(*first);
        }
        let range = |(i, (value, first)): (usize, (&RunValue, &Option<*mut u8>))| {
            let t = value.tensor()?;
            let given = first.map(|first| {
                let (start, bytes) = lowest(t, first);
                start.addr()..start.addr().saturating_add(bytes)
            });
            Some((given.unwrap_or_else(|| t.addresses()), i))
        };
        if meeting(bound.iter().zip(&at).enumerate().filter_map(range).collect(), written).is_empty() {
            return Ok(());
        }
        let values = bound.iter().zip(&at).map(|(value, first)| match (value, first) {
            (RunValue::Tensor(t), Some(first)) => moved(t, *first).map_or(RunValue::None, RunValue::Tensor),
            _ => value.clone(),
        });
        check_sharing(program, &BoundInputs { values: values.collect(), symbols: Binding::new() }, written)
    }
}

/// The lowest byte of a tensor whose first element is there, and its bytes from there on.
fn lowest(t: &RawTensor, first: *mut u8) -> (*mut u8, usize) {
    let (layout, size) = (t.layout(), t.dtype().size());
    let cells = layout.cell_range();
    let below = (layout.offset - cells.start).max(0) as usize * size;
    (first.wrapping_sub(below), (cells.end - cells.start).max(0) as usize * size)
}

/// A tensor of the same type whose first element is there.
fn moved(t: &RawTensor, first: *mut u8) -> Option<RawTensor> {
    let (start, bytes) = lowest(t, first);
    let skipped = (first.addr() - start.addr()) / t.dtype().size();
    // SAFETY: `Addresses::promise` promises the memory; it is compared here.
    let storage = unsafe { Storage::foreign(start, bytes, true, || {}) };
    RawTensor::new(storage, t.dtype(), Layout::strided(&t.layout().sizes, &t.layout().strides, skipped as i64))
}
