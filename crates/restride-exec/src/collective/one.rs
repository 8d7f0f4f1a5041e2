//! The group of one rank: exchanges are copies.

use super::{Done, Engine, ExchangeMemory, InFlight, World};
use restride_ir::Exchange;
use std::sync::{Arc, OnceLock};

/// The engine of a single rank, which is the whole of every group.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneRank;

impl OneRank {
    pub(super) fn shared() -> Arc<dyn Engine> {
        static ONE: OnceLock<Arc<OneRank>> = OnceLock::new();
        ONE.get_or_init(|| Arc::new(OneRank)).clone()
    }
}

impl Engine for OneRank {
    fn name(&self) -> &str {
        "one rank"
    }
    fn world(&self) -> World {
        World { rank: 0, size: 1 }
    }
    fn group(&self, _name: &str) -> Result<Vec<usize>, String> {
        Ok(vec![0])
    }
    unsafe fn start(&self, _exchange: &Exchange, memory: ExchangeMemory) -> Result<Box<dyn InFlight>, String> {
        // Reductions of one rank's elements, and parts of one rank, are the operand.
        if !std::ptr::eq(memory.send, memory.receive) && memory.sent > 0 {
            // SAFETY: as promised by the caller: apart, and of as many elements, since counts fit a group of one.
            unsafe { std::ptr::copy_nonoverlapping(memory.send, memory.receive, memory.send_bytes()) };
        }
        Ok(Box::new(Done))
    }
    fn abort(&self, _why: &str) {}
}
