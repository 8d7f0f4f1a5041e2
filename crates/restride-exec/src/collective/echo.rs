//! A pair of ranks in one thread, for tests of placements: exchanges happen as late as they may.

use super::{Engine, ExchangeMemory, InFlight, World, reduce, slice, slice_mut};
use restride_ir::{Exchange, Pattern};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rank 0 of two. Rank 1 sends the elements of rank 0, rotated by the number of the exchange, so that results depend on the order of
/// exchanges.
///
/// The start of an exchange spoils its result; the wait reads the operand and writes the result. A step between the two that uses
/// their memory changes results.
#[derive(Default)]
pub struct EchoRank {
    started: AtomicUsize,
}

struct EchoFlight {
    exchange: Exchange,
    memory: ExchangeMemory,
    number: usize,
}

impl Engine for EchoRank {
    fn name(&self) -> &str {
        "echo"
    }

    fn world(&self) -> World {
        World { rank: 0, size: 2 }
    }

    fn group(&self, _name: &str) -> Result<Vec<usize>, String> {
        Ok(vec![0, 1])
    }

    unsafe fn start(&self, exchange: &Exchange, memory: ExchangeMemory) -> Result<Box<dyn InFlight>, String> {
        if !std::ptr::eq(memory.send, memory.receive) {
            // SAFETY: until the wait, the result is the engine's.
            unsafe { slice_mut(memory.receive, memory.receive_bytes()) }.fill(0x7F);
        }
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Box::new(EchoFlight { exchange: exchange.clone(), memory, number }))
    }

    fn abort(&self, _why: &str) {}
}

impl InFlight for EchoFlight {
    fn wait(self: Box<Self>) -> Result<(), String> {
        let EchoFlight { exchange, memory, number } = *self;
        // SAFETY: until now, operand and result are the engine's.
        let own = unsafe { slice(memory.send, memory.send_bytes()) }.to_vec();
        let mut other = own.clone();
        if memory.sent > 0 {
            other.rotate_left(number % memory.sent * memory.dtype.size());
        }
        let result = match &exchange.pattern {
            Pattern::AllReduce(op) | Pattern::ReduceScatter(op) => {
                let mut total = vec![0; own.len()];
                reduce(*op, memory.dtype, &[&own, &other], &mut total)?;
                total.truncate(memory.receive_bytes());
                total
            }
            Pattern::AllGather => [own, other].concat(),
            Pattern::Broadcast { root: 0 } => own,
            Pattern::Broadcast { .. } => other,
            Pattern::AllToAll { sent, received } => {
                let size = memory.dtype.size();
                // As many elements as this rank expects of the other, whatever that is said to send.
                let more = other.iter().copied().cycle().take(received[1] * size);
                own[..sent[0] * size].iter().copied().chain(more).collect()
            }
        };
        // SAFETY: as above.
        unsafe { slice_mut(memory.receive, memory.receive_bytes()) }.copy_from_slice(&result);
        Ok(())
    }
}
