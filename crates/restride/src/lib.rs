//! Open, functionalize, place, check and run PyTorch programs.
//!
//! [`open`] reads what `torch.export.save` wrote; [`Compiled`] is the program without mutation, placed and planned for the
//! sizes that it meets; an [`Instance`] runs it in one arena. [`interpret`] runs any stage with true aliasing: the
//! oracle that the others are held against, as [`verify`] does. [`eager`] has tensors with gradients, call by call.
//!
//! # Memory of the caller
//!
//! A [`RawTensor`] is a layout on a [`Storage`], which may be memory of the caller: a `Vec` or a mapped file that it takes over
//! ([`Storage::from_owner`]), or any address ([`Storage::foreign`]). Inputs are read and written where they are, outputs are
//! computed into the tensors that [`Instance::session`] is given, and state, such as a key-value cache, is stored where
//! [`State::move_to`] or [`State::resume`] put it. A run locks the memory that it uses: a second run or thread on it at the same time
//! is an error, never a race. Programs, instances, sessions and tensors go from thread to thread.
#![deny(unsafe_code)]

mod binding;
mod compile;
mod constants;
mod counts;
mod coverage;
mod describe;
pub mod eager;
pub mod files;
mod inspect;
mod instance;
mod meaning;
mod methods;
mod open;
mod prepare;
mod progress;
mod ranks;
mod save;
mod session;
mod units;
mod verify;

pub use binding::random_inputs_of;
pub use compile::{CompileOptions, Compiled, Times};
pub use counts::Counts;
pub use coverage::{Coverage, Differentiated, How, coverage, runs};
pub use describe::{DeclaredSize, DescribedValue, Description, ValueKind, describe, named_inputs};
pub use inspect::Prepared;
pub use inspect::exchanges::{ExchangeCounts, Rates, SimulatedRank};
pub use inspect::explain::{Copied, Decision, Explanation, Inside, Site, Why};
pub use inspect::profile::StepTime;
pub use inspect::report::{Memories, MemoryCounts, PlacedCounts, PlanCounts, PlanRow, PlanTable, Report};
pub use inspect::timeline::{
    Body, BufferAccess, BufferRow, Overview, Owner, Rect, StepKind, StepRow, Timeline, TimelinePart, ValueRow,
};
pub use instance::Instance;
pub use meaning::meaning;
pub use methods::Methods;
pub use open::{OpenOptions, graph_form, models, open, open_bytes, open_reader, saved_plan};
pub use prepare::UpperBound;
pub use progress::{Doing, Progress};
pub use restride_check::Equivalence;
pub use restride_exec::collective;
pub use restride_exec::copy::{copy_into, resolve};
pub use restride_exec::eager::Tensor;
pub use restride_exec::inputs::user_inputs;
/// # Example
///
/// ```
/// # use restride::{Inputs, OpenOptions, RunOptions, State};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/kv_cache.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
/// let mut state = State::new(&program)?; // which the program writes
/// let outputs = restride::interpret(&program, &inputs, &mut state, &RunOptions::default())?;
/// assert!(outputs.values[0].tensor().is_some());
/// # Ok::<(), restride::Error>(())
/// ```
pub use restride_exec::interp::interpret;
pub use restride_exec::interp::{Outputs, RunOptions};
/// # Example
///
/// ```
/// # use restride::OpenOptions;
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/dynamic_batch.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let inputs = restride::random_inputs(&program, 0)?;
/// assert_eq!(inputs.values.len(), restride::user_inputs(&program).count());
/// # Ok::<(), restride::Error>(())
/// ```
pub use restride_exec::random_inputs;
pub use restride_exec::{Addresses, Inputs, RunValue, State, declared_inputs};
pub use restride_ir::{
    DType, Error, ErrorKind, Layout, Limits, Live, Program, Reason, RemarkKind, Result, Scalar, Stage, Weight, Weights,
    text,
};
pub use restride_passes::ViewOptions;
/// # Example
///
/// ```
/// # use restride::{FunctionalizeOptions, OpenOptions};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/box_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let functional = restride::functionalize(&program, &FunctionalizeOptions::default())?;
/// assert!(functional.graph().ordered().all(|(_, n)| !n.op.mutates(&n.args)));
/// # Ok::<(), restride::Error>(())
/// ```
pub use restride_passes::functionalize::functionalize;
pub use restride_passes::functionalize::{FunctionalizeOptions, Share};
pub use restride_passes::fuse::FuseOptions;
pub use restride_passes::grad::{
    Adam, DataParallel, Loss, Optimizer, Options as GradOptions, Parameter, Sgd, Shard, Update, UpdateStep, grad,
    train, train_parallel,
};
pub use restride_passes::place::PlaceOptions;
pub use restride_passes::plan::{MemorySpec, PlanOptions, PlanOrder, SearchOptions};
/// # Example
///
/// ```
/// # use restride::{FunctionalizeOptions, OpenOptions};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/box_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let functional = restride::functionalize(&program, &FunctionalizeOptions::default())?;
/// let portable = restride::portable(&functional)?; // operators that other compilers take
/// # assert!(!portable.graph().order.is_empty());
/// # Ok::<(), restride::Error>(())
/// ```
pub use restride_passes::portable;
pub use restride_passes::recompute::{Keep, Kept};
pub use restride_pt2::placed::SavedPlan;
pub use restride_tensor::{AccessError, Bytes, RawTensor, Storage};
pub use restride_torchscript::text::{GraphForm, print::print as print_graph};
pub use restride_torchscript::{Dynamic, DynamicRange, GivenInputs, GivenValue};
pub use save::{save, save_bytes, written};
pub use session::Session;
pub use verify::{StageVerdict, Verdict, verify};
