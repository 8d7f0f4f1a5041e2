//! Collectives: the engines that exchange elements between ranks, and the calls that hand memory to them.
//!
//! - [`Engine`] carries out exchanges: MPI, a caller's own ([`Blocking`]), threads as ranks ([`thread_ranks`]), or a group of
//!   one rank ([`OneRank`]), which is the default.
//! - [`with_engine`] sets the engine of the runs of a thread.
//! - `agreement` compares what ranks are about to exchange before any of them writes memory.

mod agreement;
mod echo;
#[cfg(feature = "mpi")]
mod mpi;
mod one;
mod reduce;
mod threads;

pub use agreement::agree;
pub use echo::EchoRank;
#[cfg(feature = "mpi")]
pub use mpi::Mpi;
pub use one::OneRank;
pub use reduce::reduce;
pub use threads::thread_ranks;

pub use restride_ir::{Exchange, Pattern, ReduceOp};

use restride_ir::OpError;
use restride_kernels::support::convert::copy_convert;
use restride_kernels::support::scratch;
use restride_tensor::{DType, Layout, View, ViewMut};
use std::cell::RefCell;
use std::sync::Arc;

/// The group of all ranks, for exchanges of the executor's own. Programs name theirs otherwise.
pub const WORLD: &str = "";

/// A rank's place among all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct World {
    /// Number of this rank.
    pub rank: usize,
    /// Number of ranks.
    pub size: usize,
}

/// Memory of one rank in an exchange: contiguous operand and result, in elements of one type. They start at the same address (the
/// exchange is in place), or have no byte in common.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeMemory {
    /// Element type.
    pub dtype: DType,
    /// Address of the operand.
    pub send: *const u8,
    /// Elements of the operand.
    pub sent: usize,
    /// Address of the result.
    pub receive: *mut u8,
    /// Elements of the result.
    pub received: usize,
}

impl ExchangeMemory {
    /// Bytes of the operand.
    pub fn send_bytes(&self) -> usize {
        self.sent * self.dtype.size()
    }
    /// Bytes of the result.
    pub fn receive_bytes(&self) -> usize {
        self.received * self.dtype.size()
    }
}

/// Carries out exchanges between ranks.
pub trait Engine: Send + Sync {
    /// The engine's name, for messages.
    fn name(&self) -> &str;
    /// This rank among all.
    fn world(&self) -> World;
    /// World ranks of a group of this rank, in the group's order. The group [`WORLD`] is that of all ranks.
    ///
    /// # Errors
    /// The name is not bound to ranks, or this rank is in no such group.
    fn group(&self, name: &str) -> Result<Vec<usize>, String>;
    /// Starts an exchange. All ranks of a group start the same exchanges in the same order.
    ///
    /// # Errors
    /// The exchange cannot start, another rank failed, or the engine lacks the reduction or element type.
    ///
    /// # Safety
    /// Until [`InFlight::wait`] returns or the exchange is dropped, operand and result stay valid; the caller does not write the
    /// operand, and neither reads nor writes the result. Counts fit the exchange and the group ([`fits`]).
    unsafe fn start(&self, exchange: &Exchange, memory: ExchangeMemory) -> Result<Box<dyn InFlight>, String>;
    /// Tells the other ranks that this one failed: their exchanges end with an error.
    fn abort(&self, why: &str);
}

/// An exchange that was started. Dropping it gives its memory back unread and unwritten from then on.
pub trait InFlight {
    /// Waits until the result is complete.
    ///
    /// # Errors
    /// Another rank failed, or the exchange did.
    fn wait(self: Box<Self>) -> Result<(), String>;
}

/// The finished exchange of an engine that completes each at its start.
struct Done;

impl InFlight for Done {
    fn wait(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}

/// An engine that completes each exchange before it returns: a callback of the caller. [`Blocking`] makes an [`Engine`] of it.
pub trait BlockingEngine: Send + Sync {
    /// As [`Engine::name`].
    fn name(&self) -> &str;
    /// As [`Engine::world`].
    fn world(&self) -> World;
    /// As [`Engine::group`].
    ///
    /// # Errors
    /// As there.
    fn group(&self, name: &str) -> Result<Vec<usize>, String>;
    /// Exchanges elements; without `send`, the operand is at the start of `receive`.
    ///
    /// # Errors
    /// As [`Engine::start`].
    fn exchange(
        &self,
        exchange: &Exchange,
        dtype: DType,
        send: Option<&[u8]>,
        receive: &mut [u8],
    ) -> Result<(), String>;
    /// As [`Engine::abort`].
    fn abort(&self, why: &str);
}

/// An engine made of one that blocks.
pub struct Blocking<E>(pub E);

impl<E: BlockingEngine> Engine for Blocking<E> {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn world(&self) -> World {
        self.0.world()
    }
    fn group(&self, name: &str) -> Result<Vec<usize>, String> {
        self.0.group(name)
    }
    unsafe fn start(&self, exchange: &Exchange, memory: ExchangeMemory) -> Result<Box<dyn InFlight>, String> {
        let in_place = std::ptr::eq(memory.send, memory.receive);
        let receive_bytes =
            if in_place { memory.receive_bytes().max(memory.send_bytes()) } else { memory.receive_bytes() };
        // SAFETY: as promised by the caller; operand and result are apart unless they start at the same address.
        let (send, receive) = unsafe {
            let send = (!in_place).then(|| slice(memory.send, memory.send_bytes()));
            (send, slice_mut(memory.receive, receive_bytes))
        };
        self.0.exchange(exchange, memory.dtype, send, receive)?;
        Ok(Box::new(Done))
    }
    fn abort(&self, why: &str) {
        self.0.abort(why);
    }
}

/// The bytes at an address; none need no address.
///
/// # Safety
/// As [`std::slice::from_raw_parts`], for bytes other than none.
unsafe fn slice<'a>(at: *const u8, bytes: usize) -> &'a [u8] {
    // SAFETY: as promised by the caller.
    if bytes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at, bytes) } }
}

/// The bytes at an address; none need no address.
///
/// # Safety
/// As [`std::slice::from_raw_parts_mut`], for bytes other than none.
unsafe fn slice_mut<'a>(at: *mut u8, bytes: usize) -> &'a mut [u8] {
    // SAFETY: as promised by the caller.
    if bytes == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(at, bytes) } }
}

/// World ranks of a group whose name is bound to a partition of the ranks: each list is one group.
///
/// # Errors
/// No list has this rank.
pub fn group_of(name: &str, world: World, bound: Option<&[Vec<usize>]>) -> Result<Vec<usize>, String> {
    match bound {
        None => Ok((0..world.size).collect()),
        Some(lists) => lists
            .iter()
            .find(|l| l.contains(&world.rank))
            .cloned()
            .ok_or_else(|| format!("rank {} is in no group `{name}`", world.rank)),
    }
}

/// Checks the counts of one rank's memory against an exchange and its group.
///
/// # Errors
/// They do not fit, in words for the program's user.
pub fn fits(exchange: &Exchange, size: usize, memory: &ExchangeMemory) -> Result<(), String> {
    if let Some(ranks) = exchange.ranks
        && ranks != size as i64
    {
        return Err(format!("{exchange} is of {ranks} ranks, and the group has {size} in this run"));
    }
    let (sent, received) = (memory.sent, memory.received);
    let fits = match &exchange.pattern {
        Pattern::AllReduce(_) => sent == received,
        Pattern::Broadcast { root } => {
            if usize::try_from(*root).is_ok_and(|root| root < size) {
                sent == received
            } else {
                return Err(format!("{exchange}: the group has {size} ranks"));
            }
        }
        Pattern::AllGather => sent.checked_mul(size) == Some(received),
        Pattern::ReduceScatter(_) => received.checked_mul(size) == Some(sent),
        Pattern::AllToAll { sent: to, received: from } => {
            to.len() == size
                && from.len() == size
                && to.iter().sum::<usize>() == sent
                && from.iter().sum::<usize>() == received
        }
    };
    if fits { Ok(()) } else { Err(format!("{exchange} of {size} ranks sends {sent} elements and receives {received}")) }
}

thread_local! {
    static ENGINE: RefCell<Option<Arc<dyn Engine>>> = const { RefCell::new(None) };
}

/// Runs `run` with an engine for all exchanges that this thread carries out meanwhile; without one, in a group of one rank.
pub fn with_engine<R>(engine: Option<Arc<dyn Engine>>, run: impl FnOnce() -> R) -> R {
    struct Restore(Option<Arc<dyn Engine>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ENGINE.with(|e| *e.borrow_mut() = self.0.take());
        }
    }
    let _restore = Restore(ENGINE.with(|e| e.replace(engine)));
    run()
}

/// The engine of this thread's runs.
pub fn engine() -> Arc<dyn Engine> {
    let set = ENGINE.with(|e| e.borrow().clone());
    set.unwrap_or_else(OneRank::shared)
}

/// An exchange of this rank that was started.
pub(crate) struct Flight(Box<dyn InFlight>);

impl Flight {
    pub fn wait(self) -> Result<(), OpError> {
        self.0.wait().map_err(OpError::new)
    }
}

/// Starts an exchange on contiguous memory.
///
/// # Safety
/// As [`Engine::start`], but for the counts.
unsafe fn start(exchange: &Exchange, memory: ExchangeMemory) -> Result<Flight, OpError> {
    let engine = engine();
    let ranks = engine.group(&exchange.group).map_err(|why| OpError::new(format!("{exchange}: {why}")))?;
    fits(exchange, ranks.len(), &memory).map_err(|why| OpError::new(explained(why, &*engine)))?;
    // SAFETY: as promised by the caller; counts were checked.
    let flight = unsafe { engine.start(exchange, memory) };
    flight.map(Flight).map_err(OpError::new)
}

/// A refusal of an exchange for its number of ranks, with the way out.
fn explained(why: String, engine: &dyn Engine) -> String {
    if engine.world().size > 1 || !why.contains(" ranks, and the group has ") {
        return why;
    }
    format!(
        "{why}, which has no engine for more than one: start it on all ranks (`mpirun -n N restride run`), or give an engine"
    )
}

/// The memory of an exchange whose operand and result are contiguous, as engines take them.
pub(crate) fn direct(x: &View<'_>, out: &ViewMut<'_>) -> Option<ExchangeMemory> {
    let at = |base: *const u8, l: &Layout| base.wrapping_offset(l.offset as isize * x.dtype().size() as isize);
    (x.layout().is_contiguous() && out.layout().is_contiguous()).then(|| ExchangeMemory {
        dtype: x.dtype(),
        send: at(x.base(), x.layout()),
        sent: x.numel(),
        receive: at(out.base(), out.layout()).cast_mut(),
        received: out.numel(),
    })
}

/// Carries out an exchange from start to end. Strided operands and results are packed.
pub(crate) fn carry_out(exchange: &Exchange, x: View<'_>, out: &ViewMut<'_>) -> Result<(), OpError> {
    if let Some(memory) = direct(&x, out) {
        // SAFETY: the views' memory lives and is this call's own until it returns.
        return unsafe { start(exchange, memory) }?.wait();
    }
    let (rows, of_result) = (Layout::contiguous(x.sizes()), Layout::contiguous(out.sizes()));
    scratch::tensor(x.dtype(), &rows, |from| {
        copy_convert(x, from);
        scratch::tensor(out.dtype(), &of_result, |to| {
            let memory = direct(&from.as_view(), to).expect("row-major memory is contiguous");
            // SAFETY: as above, on memory of this call.
            unsafe { start(exchange, memory) }?.wait()?;
            copy_convert(to.as_view(), out);
            Ok(())
        })
    })
}

/// Starts an exchange whose memory is contiguous; others are carried out at once.
///
/// # Safety
/// As [`Engine::start`] for the memory of both views, but for the counts.
pub(crate) unsafe fn launch(exchange: &Exchange, x: View<'_>, out: &ViewMut<'_>) -> Result<Option<Flight>, OpError> {
    match direct(&x, out) {
        // SAFETY: as promised by the caller.
        Some(memory) => unsafe { start(exchange, memory) }.map(Some),
        None => carry_out(exchange, x, out).map(|()| None),
    }
}
