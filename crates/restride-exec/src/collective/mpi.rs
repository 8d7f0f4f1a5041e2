//! MPI: ranks are the processes that `mpirun` starts. Exchanges are MPI's non-blocking collectives on the run's own memory.

use super::{Engine, ExchangeMemory, InFlight, WORLD, World, group_of, reduce};
use ::mpi::ffi;
use restride_ir::{Exchange, Pattern, ReduceOp};
use restride_tensor::DType;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_int, c_void};
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The engine of a process that an MPI launcher started. MPI ends when it is dropped, and by then no exchange may be under way.
pub struct Mpi {
    shared: Arc<MpiProcess>,
    world: World,
    groups: BTreeMap<String, Vec<Vec<usize>>>,
    /// `MPI_IN_PLACE`, of libraries for which it is known.
    in_place: Option<*const c_void>,
}

/// One thread at a time calls MPI.
struct MpiProcess {
    state: Mutex<MpiState>,
}

struct MpiState {
    /// Communicators of groups by their ranks.
    comms: HashMap<Vec<usize>, ffi::MPI_Comm>,
    /// Ends MPI when it is dropped.
    _universe: ::mpi::environment::Universe,
}

// SAFETY: handles are used under the lock of `MpiProcess`, by one thread at a time, which MPI was initialised for; the address of
// `in_place` is a constant that is never read through.
unsafe impl Send for Mpi {}
// SAFETY: as above.
unsafe impl Sync for Mpi {}

impl MpiProcess {
    fn lock(&self) -> MutexGuard<'_, MpiState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mpi {
    /// Whether a launcher of MPI started this process: Open MPI, MPICH and Slurm say so in the environment.
    pub fn launched() -> bool {
        ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MPI_LOCALNRANKS"]
            .iter()
            .any(|v| std::env::var_os(v).is_some())
    }

    /// Initialises MPI, once in a process. A group's name that `groups` does not bind is that of all ranks; a bound one has a list
    /// of ranks for each of its groups.
    ///
    /// # Errors
    /// MPI is initialised already, or cannot be used by several threads in turn.
    pub fn new(groups: BTreeMap<String, Vec<Vec<usize>>>) -> Result<Mpi, String> {
        let (universe, level) = ::mpi::initialize_with_threading(::mpi::Threading::Serialized)
            .ok_or("MPI is initialised already in this process")?;
        if level < ::mpi::Threading::Serialized {
            return Err("this MPI cannot be called by several threads in turn".into());
        }
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is initialised; the constants are MPI's own.
        unsafe {
            let world = ffi::RSMPI_COMM_WORLD;
            ffi::MPI_Comm_set_errhandler(world, ffi::RSMPI_ERRORS_RETURN);
            ffi::MPI_Comm_rank(world, &mut rank);
            ffi::MPI_Comm_size(world, &mut size);
        }
        let world = World { rank: rank as usize, size: size as usize };
        let version = ::mpi::environment::library_version().unwrap_or_default();
        // As their headers define it.
        let in_place = match () {
            () if version.contains("Open MPI") => Some(1usize),
            () if ["MPICH", "Intel", "MVAPICH", "CRAY"].iter().any(|n| version.contains(n)) => Some(usize::MAX),
            () => None,
        };
        let in_place = in_place.map(std::ptr::without_provenance);
        let state = MpiState { comms: HashMap::new(), _universe: universe };
        Ok(Mpi { shared: Arc::new(MpiProcess { state: Mutex::new(state) }), world, groups, in_place })
    }

    /// The communicator of a group of these ranks. All of them make it at their first exchange.
    fn comm(&self, state: &mut MpiState, ranks: &[usize]) -> Result<ffi::MPI_Comm, String> {
        // SAFETY: MPI is initialised, and the constants are MPI's own.
        let world = unsafe { ffi::RSMPI_COMM_WORLD };
        if ranks.iter().copied().eq(0..self.world.size) {
            return Ok(world);
        }
        if let Some(comm) = state.comms.get(ranks) {
            return Ok(*comm);
        }
        let members: Vec<c_int> = ranks.iter().map(|r| *r as c_int).collect();
        // SAFETY: handles are initialised by MPI before they are used.
        unsafe {
            let (mut all, mut group, mut comm) = (ffi::RSMPI_GROUP_NULL, ffi::RSMPI_GROUP_NULL, ffi::RSMPI_COMM_NULL);
            succeeded(ffi::MPI_Comm_group(world, &mut all))?;
            succeeded(ffi::MPI_Group_incl(all, members.len() as c_int, members.as_ptr(), &mut group))?;
            succeeded(ffi::MPI_Comm_create_group(world, group, 0, &mut comm))?;
            ffi::MPI_Group_free(&mut group);
            ffi::MPI_Group_free(&mut all);
            ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN);
            state.comms.insert(ranks.to_vec(), comm);
            Ok(comm)
        }
    }
}

/// The error of a call of MPI.
fn succeeded(code: c_int) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("MPI failed with error {code}")) }
}

fn count(n: usize) -> Result<c_int, String> {
    c_int::try_from(n).map_err(|_| format!("an exchange of {n} elements: MPI counts up to {}", c_int::MAX))
}

/// The type of elements that are moved only.
fn moved(dtype: DType) -> ffi::MPI_Datatype {
    // SAFETY: constants of MPI.
    unsafe {
        match dtype.size() {
            1 => ffi::RSMPI_UINT8_T,
            2 => ffi::RSMPI_UINT16_T,
            4 => ffi::RSMPI_UINT32_T,
            8 => ffi::RSMPI_UINT64_T,
            _ => ffi::RSMPI_DOUBLE_COMPLEX,
        }
    }
}

/// Type and operation of a reduction; `None` where MPI has none, as for halves.
fn reduction(op: ReduceOp, dtype: DType) -> Option<(ffi::MPI_Datatype, ffi::MPI_Op)> {
    // SAFETY: constants of MPI.
    unsafe {
        let ty = match dtype {
            DType::Bool => ffi::RSMPI_C_BOOL,
            DType::U8 => ffi::RSMPI_UINT8_T,
            DType::I8 => ffi::RSMPI_INT8_T,
            DType::I16 => ffi::RSMPI_INT16_T,
            DType::I32 => ffi::RSMPI_INT32_T,
            DType::I64 => ffi::RSMPI_INT64_T,
            DType::F32 => ffi::RSMPI_FLOAT,
            DType::F64 => ffi::RSMPI_DOUBLE,
            DType::C64 => ffi::RSMPI_FLOAT_COMPLEX,
            DType::C128 => ffi::RSMPI_DOUBLE_COMPLEX,
            DType::F16 | DType::BF16 => return None,
        };
        let by = match (dtype, op) {
            (DType::Bool, ReduceOp::Sum | ReduceOp::Max | ReduceOp::BitOr) => ffi::RSMPI_LOR,
            (DType::Bool, ReduceOp::Product | ReduceOp::Min | ReduceOp::BitAnd) => ffi::RSMPI_LAND,
            (DType::Bool, ReduceOp::BitXor) => ffi::RSMPI_LXOR,
            (_, ReduceOp::Sum) => ffi::RSMPI_SUM,
            (_, ReduceOp::Avg) if dtype.is_float() || dtype.is_complex() => ffi::RSMPI_SUM,
            (_, ReduceOp::Product) => ffi::RSMPI_PROD,
            // MPI's extremes pass over NaN, which PyTorch's keep.
            (_, ReduceOp::Min) if !dtype.is_float() && !dtype.is_complex() => ffi::RSMPI_MIN,
            (_, ReduceOp::Max) if !dtype.is_float() && !dtype.is_complex() => ffi::RSMPI_MAX,
            (_, ReduceOp::BitAnd) if !dtype.is_float() && !dtype.is_complex() => ffi::RSMPI_BAND,
            (_, ReduceOp::BitOr) if !dtype.is_float() && !dtype.is_complex() => ffi::RSMPI_BOR,
            (_, ReduceOp::BitXor) if !dtype.is_float() && !dtype.is_complex() => ffi::RSMPI_BXOR,
            _ => return None,
        };
        Some((ty, by))
    }
}

/// What is left to do when MPI has finished.
enum AfterMpi {
    Nothing,
    /// The sum becomes a mean of this many ranks.
    Divide(usize),
    /// All ranks' operands were gathered here: the result is the reduction of their parts that begin at the given element.
    Reduce {
        by: ReduceOp,
        all: Vec<u8>,
        ranks: usize,
        first: usize,
    },
}

/// What MPI reads and writes beside the caller's memory, until the exchange is over.
#[derive(Default)]
struct MpiBuffers {
    counts: Vec<Vec<c_int>>,
    /// A copy of an operand that is in the result's place, for an MPI whose mark for that is not known.
    operand: Vec<u8>,
}

struct MpiFlight {
    shared: Arc<MpiProcess>,
    request: ffi::MPI_Request,
    memory: ExchangeMemory,
    then: AfterMpi,
    _own: MpiBuffers,
    over: bool,
}

impl Mpi {
    /// Starts an exchange of this rank, the `own`-th of `ranks`.
    ///
    /// # Safety
    /// As [`Engine::start`]; what is returned lives until MPI has finished the request.
    unsafe fn launch(
        &self,
        comm: ffi::MPI_Comm,
        exchange: &Exchange,
        memory: &ExchangeMemory,
        own: usize,
        ranks: usize,
    ) -> Result<(ffi::MPI_Request, AfterMpi, MpiBuffers), String> {
        let ExchangeMemory { dtype, send, sent, receive, received } = *memory;
        let (n, out, to) = (count(sent)?, count(received)?, receive.cast::<c_void>());
        let (mut kept, mut then) = (MpiBuffers::default(), AfterMpi::Nothing);
        let mut from: *const c_void = send.cast();
        if std::ptr::eq(send, receive) && sent > 0 && !matches!(exchange.pattern, Pattern::Broadcast { .. }) {
            from = match self.in_place {
                Some(mark) => mark,
                None => {
                    // SAFETY: as promised by the caller.
                    kept.operand = unsafe { super::slice(send, memory.send_bytes()) }.to_vec();
                    kept.operand.as_ptr().cast()
                }
            };
        }
        // SAFETY: as promised by the caller; counts fit the group, and the constants are MPI's.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let (any, r) = (moved(dtype), &mut request);
            let code = match &exchange.pattern {
                Pattern::AllReduce(op) | Pattern::ReduceScatter(op) => {
                    let whole = matches!(exchange.pattern, Pattern::AllReduce(_));
                    match reduction(*op, dtype) {
                        Some((ty, by)) => {
                            if *op == ReduceOp::Avg {
                                then = AfterMpi::Divide(ranks);
                            }
                            match whole {
                                true => ffi::MPI_Iallreduce(from, to, n, ty, by, comm, r),
                                false => ffi::MPI_Ireduce_scatter_block(from, to, out, ty, by, comm, r),
                            }
                        }
                        None => {
                            let mut all = vec![0; memory.send_bytes() * ranks];
                            let at = all.as_mut_ptr().cast();
                            let first = if whole { 0 } else { own * received };
                            then = AfterMpi::Reduce { by: *op, all, ranks, first };
                            ffi::MPI_Iallgather(send.cast(), n, any, at, n, any, comm, r)
                        }
                    }
                }
                Pattern::AllGather => ffi::MPI_Iallgather(from, n, any, to, n, any, comm, r),
                Pattern::Broadcast { root } => {
                    if *root == own as i64 && !std::ptr::eq(send, receive) {
                        receive.copy_from_nonoverlapping(send, memory.send_bytes());
                    }
                    ffi::MPI_Ibcast(to, out, any, count(*root as usize)?, comm, r)
                }
                Pattern::AllToAll { sent, received } => {
                    let counts = |parts: &[usize]| -> Result<[Vec<c_int>; 2], String> {
                        let sizes = parts.iter().map(|n| count(*n)).collect::<Result<Vec<_>, _>>()?;
                        let starts = sizes.iter().scan(0, |at, n| Some(std::mem::replace(at, *at + n))).collect();
                        Ok([sizes, starts])
                    };
                    let ([a, b], [c, d]) = (counts(sent)?, counts(received)?);
                    kept.counts = vec![a, b, c, d];
                    let at = |k: usize| kept.counts[k].as_ptr();
                    ffi::MPI_Ialltoallv(from, at(0), at(1), any, to, at(2), at(3), any, comm, r)
                }
            };
            succeeded(code)?;
            Ok((request, then, kept))
        }
    }
}

impl Engine for Mpi {
    fn name(&self) -> &str {
        "MPI"
    }

    fn world(&self) -> World {
        self.world
    }

    fn group(&self, name: &str) -> Result<Vec<usize>, String> {
        let bound = self.groups.get(name).filter(|_| name != WORLD);
        group_of(name, self.world, bound.map(Vec::as_slice))
    }

    unsafe fn start(&self, exchange: &Exchange, memory: ExchangeMemory) -> Result<Box<dyn InFlight>, String> {
        let ranks = self.group(&exchange.group)?;
        let own = ranks.iter().position(|r| *r == self.world.rank).ok_or("this rank is not in its group")?;
        let mut state = self.shared.lock();
        let comm = self.comm(&mut state, &ranks)?;
        // SAFETY: as promised by the caller; the flight keeps the rest.
        let started = unsafe { self.launch(comm, exchange, &memory, own, ranks.len()) };
        let (request, then, own) = started.map_err(|why| format!("{exchange}: {why}"))?;
        Ok(Box::new(MpiFlight { shared: self.shared.clone(), request, memory, then, _own: own, over: false }))
    }

    fn abort(&self, why: &str) {
        // One write, so that ranks' lines do not mix.
        let line = format!("rank {} failed: {}\n", self.world.rank, why.replace('\n', "; "));
        let _ = std::io::stderr().write_all(line.as_bytes());
        end_all();
    }
}

/// Ends the processes of all ranks.
fn end_all() {
    // SAFETY: MPI is initialised as long as there is an engine or an exchange.
    unsafe {
        ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, 1);
    }
}

impl InFlight for MpiFlight {
    fn wait(mut self: Box<Self>) -> Result<(), String> {
        {
            let shared = self.shared.clone();
            let _one_at_a_time = shared.lock();
            // SAFETY: the request is this flight's own, started and not waited for.
            succeeded(unsafe { ffi::MPI_Wait(&mut self.request, ffi::RSMPI_STATUS_IGNORE) })?;
        }
        self.over = true;
        // SAFETY: MPI has finished, and the result is still the engine's.
        let out = unsafe { super::slice_mut(self.memory.receive, self.memory.receive_bytes()) };
        match &self.then {
            AfterMpi::Nothing => Ok(()),
            AfterMpi::Divide(ranks) => {
                divide(self.memory.dtype, out, *ranks);
                Ok(())
            }
            AfterMpi::Reduce { by, all, ranks, first } => {
                let whole = all.len() / ranks;
                let from = first * self.memory.dtype.size();
                let parts: Vec<&[u8]> = all.chunks_exact(whole.max(1)).map(|p| &p[from..from + out.len()]).collect();
                if parts.is_empty() { Ok(()) } else { reduce(*by, self.memory.dtype, &parts, out) }
            }
        }
    }
}

impl Drop for MpiFlight {
    fn drop(&mut self) {
        // MPI cannot give back memory of a collective that is under way.
        if !self.over {
            end_all();
        }
    }
}

/// Divides elements by a number of ranks.
fn divide(dtype: DType, out: &mut [u8], ranks: usize) {
    macro_rules! each {
        ($t:ty) => {
            for cell in out.chunks_exact_mut(size_of::<$t>()) {
                if let Ok(bytes) = <[u8; size_of::<$t>()]>::try_from(&*cell) {
                    cell.copy_from_slice(&(<$t>::from_ne_bytes(bytes) / ranks as $t).to_ne_bytes());
                }
            }
        };
    }
    // A complex number is divided part by part.
    match dtype {
        DType::F32 | DType::C64 => each!(f32),
        DType::F64 | DType::C128 => each!(f64),
        _ => {}
    }
}
