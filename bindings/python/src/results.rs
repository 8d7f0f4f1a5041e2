//! Memory of large results: tensors of PyTorch, lent to results and taken again once nothing else uses their storage. New memory costs
//! the system a fault for each page, which is more than many a kernel takes to fill it.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use restride::{DType, Layout};

/// Fewest bytes of a result that are kept; PyTorch gets less memory without the system.
pub const LEAST: usize = 1 << 16;

/// Memory for a graph's results, freed with the graph or with the tensors that outlive it.
pub struct ResultMemory {
    /// PyTorch's count of a storage's owners.
    count: Py<PyAny>,
    blocks: Vec<Block>,
    /// The block behind the one that was lent last, which the next result had in the call before.
    next: usize,
    /// Bytes of tensors that are in use and of others, as of the last look.
    lent: usize,
    kept: usize,
    /// The most lent bytes at one time; lent and kept bytes together are never more.
    most: usize,
    calls: u64,
}

struct Block {
    dtype: DType,
    layout: Layout,
    /// Owns the storage; results are other tensors on it.
    tensor: Py<PyAny>,
    storage: Py<PyAny>,
    /// PyTorch's name for the storage.
    id: Py<PyAny>,
    start: usize,
    bytes: usize,
    /// How many owners the storage has in C++, and how many in Python, while no result uses it.
    owners: (usize, isize),
    free: bool,
    /// The call that took it last.
    call: u64,
}

impl Block {
    fn owners(&self, count: &Bound<'_, PyAny>) -> PyResult<(usize, isize)> {
        let py = count.py();
        // SAFETY: the object is alive.
        let objects = unsafe { ffi::Py_REFCNT(self.storage.as_ptr()) };
        Ok((count.call1((self.id.bind(py),))?.extract()?, objects))
    }

    /// Whether the storage is as PyTorch made it. A user may have resized or shared it, or handed it to NumPy, since when it cannot
    /// be resized.
    fn is_as_made(&self, py: Python<'_>) -> PyResult<bool> {
        let storage = self.storage.bind(py);
        let bytes: usize = storage.call_method0(intern!(py, "nbytes"))?.extract()?;
        let start: usize = storage.call_method0(intern!(py, "data_ptr"))?.extract()?;
        let resizable: bool = storage.call_method0(intern!(py, "resizable"))?.extract()?;
        Ok(bytes == self.bytes && start == self.start && resizable)
    }
}

impl ResultMemory {
    /// `None` where PyTorch does not count a storage's owners.
    pub fn new(torch: &Bound<'_, PyModule>) -> Option<ResultMemory> {
        let count = torch.getattr("_C").and_then(|c| c.getattr("_storage_Use_Count")).ok()?.unbind();
        Some(ResultMemory { count, blocks: Vec::new(), next: 0, lent: 0, kept: 0, most: 0, calls: 0 })
    }

    /// Sees which memory PyTorch has given back; before the results of a call.
    pub fn look(&mut self, py: Python<'_>) -> PyResult<()> {
        (self.next, self.lent, self.kept) = (0, 0, 0);
        self.calls += 1;
        let count = self.count.bind(py);
        for block in &mut self.blocks {
            block.free = block.owners(count)? == block.owners;
            match block.free {
                true => self.kept += block.bytes,
                false => self.lent += block.bytes,
            }
        }
        Ok(())
    }

    /// A tensor of this element type and layout, on memory that was given back or that `make` makes.
    pub fn take<'py>(
        &mut self,
        py: Python<'py>,
        (dtype, layout): (DType, &Layout),
        make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        while let Some(at) = self.find(dtype, layout) {
            let block = &mut self.blocks[at];
            self.kept -= block.bytes;
            if !block.is_as_made(py)? {
                self.blocks.remove(at);
                continue;
            }
            (block.free, block.call) = (false, self.calls);
            let (bytes, result) = (block.bytes, on_same_storage(block.tensor.bind(py))?);
            self.next = at + 1;
            self.lend(bytes);
            return Ok(result);
        }
        self.lend(layout.byte_range(dtype.size()).map_or(0, |r| r.end));
        let tensor = make()?;
        // A tensor of `inference_mode` is not what other calls may return.
        if tensor.call_method0(intern!(py, "is_inference"))?.extract()? {
            return Ok(tensor);
        }
        let storage = tensor.call_method0(intern!(py, "untyped_storage"))?;
        let mut block = Block {
            dtype,
            layout: layout.clone(),
            id: storage.getattr(intern!(py, "_cdata"))?.unbind(),
            start: storage.call_method0(intern!(py, "data_ptr"))?.extract()?,
            bytes: storage.call_method0(intern!(py, "nbytes"))?.extract()?,
            tensor: tensor.unbind(),
            storage: storage.unbind(),
            owners: (0, 0),
            free: false,
            call: self.calls,
        };
        block.owners = block.owners(self.count.bind(py))?;
        let result = on_same_storage(block.tensor.bind(py))?;
        self.blocks.push(block);
        self.next = self.blocks.len();
        Ok(result)
    }

    fn find(&self, dtype: DType, layout: &Layout) -> Option<usize> {
        let fits = |b: &Block| b.free && b.dtype == dtype && b.layout == *layout;
        let (before, behind) = self.blocks.split_at(self.next.min(self.blocks.len()));
        let at = behind.iter().position(fits).map(|at| before.len() + at);
        at.or_else(|| before.iter().position(fits))
    }

    /// Counts lent bytes, and frees what was used longest ago while lent and kept bytes are too much.
    fn lend(&mut self, bytes: usize) {
        self.lent += bytes;
        self.most = self.most.max(self.lent);
        while self.lent + self.kept > self.most {
            let free = self.blocks.iter().enumerate().filter(|(_, b)| b.free);
            let Some((oldest, _)) = free.min_by_key(|(_, b)| b.call) else { return };
            self.kept -= self.blocks.remove(oldest).bytes;
            self.next -= usize::from(oldest < self.next);
        }
    }

    /// Bytes that no tensor uses.
    pub fn kept(&mut self, py: Python<'_>) -> PyResult<usize> {
        self.look(py)?;
        Ok(self.kept)
    }
}

/// Another tensor on a tensor's storage, which is no view.
fn on_same_storage<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    tensor.getattr(intern!(tensor.py(), "data"))
}
