//! The memory that runs compute in, and the threads.

use crate::copy::room_for;
use restride_ir::{Error, ErrorKind, Result};
use restride_kernels::support::threads::Pool;
use std::sync::Arc;

/// What vector kernels expect.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block([u8; 64]);

/// One aligned allocation, reused from run to run; it grows to the largest that was asked of it. With it the threads that share
/// the work of kernels, made when a run first asks for so many.
#[derive(Default)]
pub struct Arena {
    blocks: Vec<Block>,
    /// Runs get no more than there is.
    fixed: bool,
    pool: Option<Arc<Pool>>,
}

impl Arena {
    /// Bytes that there are.
    pub fn bytes(&self) -> usize {
        self.blocks.len() * size_of::<Block>()
    }

    /// Makes room for runs to come.
    ///
    /// # Errors
    /// More memory than there is.
    pub fn take(&mut self, bytes: usize) -> Result<()> {
        self.grow(bytes)
    }

    /// From now on only [`Arena::take`] takes memory: a run that needs more than there is is refused.
    pub fn fix(&mut self) {
        self.fixed = true;
    }

    /// Makes room for a run and gives the address of the first byte, which is aligned to 64.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<*mut u8> {
        if self.fixed && bytes > self.bytes() {
            let what = format!("the run needs an arena of {bytes} bytes, and {} were reserved", self.bytes());
            return Err(Error::new(ErrorKind::Unsupported, what).help("reserve_for takes what certain inputs need"));
        }
        self.grow(bytes)?;
        Ok(self.blocks.as_mut_ptr().cast())
    }

    fn grow(&mut self, bytes: usize) -> Result<()> {
        let blocks = bytes.div_ceil(size_of::<Block>());
        if blocks > self.blocks.len() {
            // What was there is of no use: it need not be moved.
            self.blocks = Vec::new();
            let refuse = || {
                Error::new(ErrorKind::Unsupported, format!("an arena of {bytes} bytes is more memory than there is"))
            };
            if !room_for(bytes as u128) {
                return Err(refuse());
            }
            self.blocks.try_reserve_exact(blocks).map_err(|_| refuse())?;
            self.blocks.resize(blocks, Block([0; 64]));
        }
        Ok(())
    }
}

impl Arena {
    /// The threads of a run that asks for so many; none for one.
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

/// So many threads.
pub(crate) fn pool(threads: usize) -> Result<Pool> {
    Pool::new(threads).map_err(|e| Error::new(ErrorKind::Unsupported, format!("{threads} threads: {e}")))
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arena({} bytes)", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fixed_grows_when_asked_only() {
        let mut arena = Arena::default();
        arena.take(1000).expect("memory");
        arena.fix();
        let room = arena.bytes();
        arena.reserve(room).expect("it is there");
        let refused = arena.reserve(room + 1).expect_err("more than there is");
        assert!(refused.to_string().contains("1024 were reserved"), "{refused}");
        assert_eq!(arena.bytes(), room);
        arena.take(room + 1).expect("memory");
        arena.reserve(room + 1).expect("it is there");
    }
}
