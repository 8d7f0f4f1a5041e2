//! An engine of the caller: its functions exchange elements between ranks.

use crate::dlpack::{DLDataType, data_type};
use crate::handle::own;
use crate::instance::restride_instance;
use crate::status::{CallError, call, restride_status};
use restride::DType;
use restride::collective::{Blocking, BlockingEngine, Engine, Exchange, Pattern, ReduceOp, World};
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// The ranks' parts in an exchange. Parts of ranks follow each other, in the order of restride_exchange.ranks.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum restride_pattern {
    /// Every rank gets the reduction of all ranks' operands.
    AllReduce = 0,
    /// Every rank gets all ranks' operands.
    AllGather = 1,
    /// Rank r gets part r of the reduction of all ranks' operands.
    ReduceScatter = 2,
    /// Rank r gets part r of every rank's operand.
    AllToAll = 3,
    /// Every rank gets the operand of rank `root`.
    Broadcast = 4,
}

/// How an exchange reduces.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum restride_reduce {
    /// The exchange reduces nothing.
    None = 0,
    /// Sum.
    Sum = 1,
    /// Mean: the sum, divided by the number of ranks.
    Avg = 2,
    /// Product.
    Product = 3,
    /// Minimum; NaN stays.
    Min = 4,
    /// Maximum; NaN stays.
    Max = 5,
    /// Bitwise and.
    BitAnd = 6,
    /// Bitwise or.
    BitOr = 7,
    /// Bitwise exclusive or.
    BitXor = 8,
}

/// One exchange of a group. It is valid during the call.
#[repr(C)]
pub struct restride_exchange {
    /// A restride_pattern.
    pub pattern: u32,
    /// A restride_reduce.
    pub reduce: u32,
    /// For a broadcast, the position in `ranks` of the rank that sends.
    pub root: usize,
    /// Name of the group.
    pub group: *const c_char,
    /// World ranks of the group, in its order.
    pub ranks: *const usize,
    /// How many.
    pub rank_count: usize,
    /// Element type.
    pub dtype: DLDataType,
    /// Row-major operand. The same address as `receive`, or no byte in common.
    pub send: *const c_void,
    /// Elements of the operand.
    pub sent: usize,
    /// Row-major result.
    pub receive: *mut c_void,
    /// Elements of the result.
    pub received: usize,
    /// For an all-to-all, the elements that go to each rank of the group; else NULL.
    pub sent_to: *const usize,
    /// For an all-to-all, the elements that come from each rank of the group; else NULL.
    pub received_from: *const usize,
}

/// Functions of the caller that exchange elements between ranks. They are called by the thread that runs the instance, one call at a
/// time, and all ranks of a group make the same calls in the same order. `context` must stay until the instance is freed or has
/// another engine.
#[repr(C)]
pub struct restride_engine {
    /// Given to each function.
    pub context: *mut c_void,
    /// Number of this rank among all.
    pub rank: usize,
    /// Number of ranks.
    pub size: usize,
    /// Writes the world ranks of this rank's group of that name to `ranks`, which has space for `size` of them, and returns how many;
    /// 0 if it is in no such group. NULL: every name is the group of all ranks.
    pub group: Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char, ranks: *mut usize) -> usize>,
    /// Carries out an exchange. 0 is success; anything else ends the run with an error.
    pub exchange: Option<unsafe extern "C" fn(context: *mut c_void, exchange: *const restride_exchange) -> i32>,
    /// Told that this rank's run failed: the other ranks' exchanges should end with an error. May be NULL.
    pub abort: Option<unsafe extern "C" fn(context: *mut c_void, why: *const c_char)>,
}

/// The caller's functions.
struct Callbacks {
    context: *mut c_void,
    world: World,
    group: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *mut usize) -> usize>,
    exchange: unsafe extern "C" fn(*mut c_void, *const restride_exchange) -> i32,
    abort: Option<unsafe extern "C" fn(*mut c_void, *const c_char)>,
}

// SAFETY: an instance is run by one thread at a time, which the caller's functions are told to expect.
unsafe impl Send for Callbacks {}
// SAFETY: as above.
unsafe impl Sync for Callbacks {}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

fn reduce_code(op: ReduceOp) -> restride_reduce {
    match op {
        ReduceOp::Sum => restride_reduce::Sum,
        ReduceOp::Avg => restride_reduce::Avg,
        ReduceOp::Product => restride_reduce::Product,
        ReduceOp::Min => restride_reduce::Min,
        ReduceOp::Max => restride_reduce::Max,
        ReduceOp::BitAnd => restride_reduce::BitAnd,
        ReduceOp::BitOr => restride_reduce::BitOr,
        ReduceOp::BitXor => restride_reduce::BitXor,
    }
}

impl BlockingEngine for Callbacks {
    fn name(&self) -> &str {
        "the caller's engine"
    }

    fn world(&self) -> World {
        self.world
    }

    fn group(&self, name: &str) -> Result<Vec<usize>, String> {
        let Some(group) = self.group else { return Ok((0..self.world.size).collect()) };
        // The group of all ranks, which programs do not name.
        if name.is_empty() {
            return Ok((0..self.world.size).collect());
        }
        let mut ranks = vec![0usize; self.world.size];
        let name_text = c_text(name);
        // SAFETY: the caller promised a function that writes as many numbers as there are ranks.
        let count = unsafe { group(self.context, name_text.as_ptr(), ranks.as_mut_ptr()) };
        ranks.truncate(count.min(self.world.size));
        let known = |r: &usize| *r < self.world.size;
        if !ranks.contains(&self.world.rank) || !ranks.iter().all(known) || count > self.world.size {
            return Err(format!("rank {} is in no group `{name}`", self.world.rank));
        }
        Ok(ranks)
    }

    fn exchange(
        &self,
        exchange: &Exchange,
        dtype: DType,
        send: Option<&[u8]>,
        receive: &mut [u8],
    ) -> Result<(), String> {
        let ranks = self.group(&exchange.group)?;
        let (sent_to, received_from) = match &exchange.pattern {
            Pattern::AllToAll { sent, received } => (sent.as_ptr(), received.as_ptr()),
            _ => (ptr::null(), ptr::null()),
        };
        let (pattern, reduce, root) = match &exchange.pattern {
            Pattern::AllReduce(op) => (restride_pattern::AllReduce, reduce_code(*op), 0),
            Pattern::AllGather => (restride_pattern::AllGather, restride_reduce::None, 0),
            Pattern::ReduceScatter(op) => (restride_pattern::ReduceScatter, reduce_code(*op), 0),
            Pattern::AllToAll { .. } => (restride_pattern::AllToAll, restride_reduce::None, 0),
            Pattern::Broadcast { root } => (restride_pattern::Broadcast, restride_reduce::None, *root as usize),
        };
        let elements = |bytes: usize| bytes / dtype.size();
        let group = c_text(&exchange.group);
        let call = restride_exchange {
            pattern: pattern as u32,
            reduce: reduce as u32,
            root,
            group: group.as_ptr(),
            ranks: ranks.as_ptr(),
            rank_count: ranks.len(),
            dtype: data_type(dtype),
            send: send.map_or(receive.as_ptr(), <[u8]>::as_ptr).cast(),
            sent: elements(send.map_or(receive.len(), <[u8]>::len)),
            receive: receive.as_mut_ptr().cast(),
            received: elements(receive.len()),
            sent_to,
            received_from,
        };
        // SAFETY: the caller promised a function that takes this struct; the memory is the exchange's until it returns.
        match unsafe { (self.exchange)(self.context, &call) } {
            0 => Ok(()),
            code => Err(format!("{exchange}: the caller's engine failed with {code}")),
        }
    }

    fn abort(&self, why: &str) {
        if let Some(abort) = self.abort {
            let why = c_text(why);
            // SAFETY: the caller promised a function that takes a text.
            unsafe { abort(self.context, why.as_ptr()) }
        }
    }
}

/// Runs exchange elements by the caller's functions from now on. NULL takes the engine away: the instance is alone then. The struct is
/// copied; its functions are called by restride_instance_run, and by sessions that are made of the instance.
/// Threads: one at a time for an instance.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_instance_set_engine(
    instance: *mut restride_instance,
    engine: *const restride_engine,
) -> *mut restride_status {
    call(|| {
        let mut handle = own(instance, "instance")?;
        // SAFETY: NULL, or a struct of the caller.
        let engine: Arc<dyn Engine> = match unsafe { engine.as_ref() } {
            None => Arc::new(restride::collective::OneRank),
            Some(given) => {
                let Some(exchange) = given.exchange else {
                    return Err(CallError::argument("engine.exchange is NULL; an engine needs it"));
                };
                if given.rank >= given.size {
                    let what = format!("engine.rank is {} of {} ranks; ranks count from 0", given.rank, given.size);
                    return Err(CallError::argument(what));
                }
                let world = World { rank: given.rank, size: given.size };
                let (context, group, abort) = (given.context, given.group, given.abort);
                Arc::new(Blocking(Callbacks { context, world, group, exchange, abort }))
            }
        };
        handle.instance()?.set_engine(engine);
        Ok(())
    })
}
