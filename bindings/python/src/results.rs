//! Memory of results. PyTorch gives it back when a tensor is gone, and a later call takes it again: new memory costs the system a fault
//! for each page, which is more than many a kernel takes to fill it.

use restride::Storage;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::{Arc, Mutex, PoisonError};

/// Fewest bytes of a result that are kept; PyTorch gets less memory without the system.
pub const LEAST: usize = 1 << 16;
/// Alignment, as PyTorch's.
const ALIGN: usize = 64;

/// Memory for a graph's results, freed with the graph or with the tensors that outlive it.
#[derive(Default)]
pub struct ResultMemory(Arc<Mutex<Pool>>);

/// Kept and lent bytes together are at most the bytes that were lent at one time.
#[derive(Default)]
struct Pool {
    /// Blocks that no tensor uses, the oldest first.
    kept: Vec<Block>,
    kept_bytes: usize,
    lent_bytes: usize,
    most: usize,
}

struct Block {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: a block is memory that nothing else points to.
unsafe impl Send for Block {}

impl Block {
    fn new(bytes: usize) -> Block {
        let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGN) else {
            unreachable!("results of more bytes than there are addresses are refused before")
        };
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout)
        }
        Block { start, layout }
    }

    /// Whether a result of `bytes` fits in this block and fills at least seven eighths of it.
    fn fits(&self, bytes: usize) -> bool {
        let own = self.layout.size();
        bytes <= own && own - bytes <= own / 8
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.start, self.layout) }
    }
}

impl Pool {
    fn take(&mut self, bytes: usize) -> Block {
        let block = match self.kept.iter().rposition(|b| b.fits(bytes)) {
            Some(at) => self.no_longer_kept(at),
            None => Block::new(bytes),
        };
        self.lent_bytes += block.layout.size();
        self.most = self.most.max(self.lent_bytes);
        self.shrink();
        block
    }

    fn put(&mut self, block: Block) {
        self.lent_bytes -= block.layout.size();
        self.kept_bytes += block.layout.size();
        self.kept.push(block);
        self.shrink();
    }

    /// Frees the oldest blocks that are too much.
    fn shrink(&mut self) {
        while self.kept_bytes + self.lent_bytes > self.most && !self.kept.is_empty() {
            self.no_longer_kept(0);
        }
    }

    fn no_longer_kept(&mut self, at: usize) -> Block {
        let block = self.kept.remove(at);
        self.kept_bytes -= block.layout.size();
        block
    }
}

impl ResultMemory {
    /// A storage of `bytes`, and its address. Dropping the storage gives the memory back.
    pub fn take(&self, bytes: usize) -> (Storage, *mut u8) {
        let block = self.0.lock().unwrap_or_else(PoisonError::into_inner).take(bytes);
        let (start, home) = (block.start, Arc::downgrade(&self.0));
        let back = move || {
            if let Some(pool) = home.upgrade() {
                pool.lock().unwrap_or_else(PoisonError::into_inner).put(block);
            }
        };
        // SAFETY: the block has these bytes, initialised, and is in no other hands until it comes back.
        (unsafe { Storage::foreign(start, bytes, true, back) }, start)
    }

    /// Bytes that no tensor uses.
    pub fn kept(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).kept_bytes
    }
}
