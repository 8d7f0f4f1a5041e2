//! The memory and the threads of runs.

use crate::copy::room_for;
use restride_ir::{Error, ErrorKind, Result};
use restride_kernels::support::threads::Pool;
use std::sync::Arc;

/// A unit of the alignment that vector kernels expect.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block([u8; 64]);

/// One aligned allocation, reused from run to run, which grows to the largest request; and the threads that share the work of
/// kernels.
#[derive(Default)]
pub struct ByteArena {
    blocks: Vec<Block>,
    /// Whether a run may not grow it.
    fixed: bool,
    pool: Option<Arc<Pool>>,
}

impl ByteArena {
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * size_of::<Block>()
    }

    /// Grows to at least this size.
    ///
    /// # Errors
    /// The system refuses the memory.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        self.grow(bytes)
    }

    /// Lets only [`ByteArena::take`] grow it from now on: a run that needs more is refused.
    pub fn fix(&mut self) {
        self.fixed = true;
    }

    /// Whether only [`ByteArena::take`] grows it.
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Grows for a run, and returns the address of the first byte, a multiple of 64.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<*mut u8> {
        if self.fixed && bytes > self.bytes() {
            let what = format!("the run needs an arena of {bytes} bytes, and {} were reserved", self.bytes());
            return Err(Error::new(ErrorKind::Unsupported, what)
                .help("Instance::reserve_for takes the memory for given inputs"));
        }
        self.grow(bytes)?;
        Ok(self.blocks.as_mut_ptr().cast())
    }

    fn grow(&mut self, bytes: usize) -> Result<()> {
        let blocks = bytes.div_ceil(size_of::<Block>());
        if blocks > self.blocks.len() {
            // Freed first: its contents are not needed.
            self.blocks = Vec::new();
            let refuse = || {
                Error::new(
                    ErrorKind::Unsupported,
                    format!("an arena of {bytes} bytes is more memory than the system has"),
                )
            };
            if !room_for(bytes as u128) {
                return Err(refuse());
            }
            self.blocks.try_reserve_exact(blocks).map_err(|_| refuse())?;
            self.blocks.resize(blocks, Block([0; 64]));
        }
        Ok(())
    }

    /// The threads of a run, made when a run first asks for this number; `None` for one.
    pub(super) fn pool(&mut self, threads: usize) -> Result<Option<Arc<Pool>>> {
        if threads <= 1 {
            return Ok(None);
        }
        if self.pool.as_ref().is_none_or(|p| p.threads() != threads) {
            self.pool = Some(Arc::new(pool(threads)?));
        }
        Ok(self.pool.clone())
    }
}

/// Starts threads.
pub(crate) fn pool(threads: usize) -> Result<Pool> {
    Pool::new(threads).map_err(|e| Error::new(ErrorKind::Unsupported, format!("{threads} threads: {e}")))
}

impl std::fmt::Debug for ByteArena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ByteArena({} bytes)", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_arena_grows_only_when_asked() {
        let mut arena = ByteArena::default();
        arena.take(1000).expect("memory");
        arena.fix();
        let room = arena.bytes();
        arena.reserve(room).expect("its own size");
        let refused = arena.reserve(room + 1).expect_err("a fixed arena");
        assert!(refused.to_string().contains("1024 were reserved"), "{refused}");
        assert_eq!(arena.bytes(), room);
        arena.take(room + 1).expect("memory");
        arena.reserve(room + 1).expect("its own size");
    }
}
