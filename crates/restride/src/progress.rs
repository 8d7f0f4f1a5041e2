//! Progress of long work.

use std::fmt;
use std::sync::Arc;

/// A part of compiling, verifying or running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// Mutation is taken out of the program.
    Functionalizing,
    /// Sizes are put in, compositions taken apart.
    Simplifying,
    /// Values are given places.
    Placing,
    /// Buffers are given offsets.
    Planning,
    /// A decision is checked.
    Checking,
    /// The steps are made ready to run.
    Preparing,
    /// The program runs as it was exported, with true aliasing.
    Interpreting,
    /// The functional program runs as it is.
    InterpretingFunctional,
    /// The program runs in its arena.
    Running,
    /// The functional program is held against the imported one.
    Proving,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Doing::Functionalizing => "functionalizing",
            Doing::Simplifying => "simplifying",
            Doing::Placing => "placing",
            Doing::Planning => "planning",
            Doing::Checking => "checking",
            Doing::Preparing => "preparing the run",
            Doing::Interpreting => "running as exported",
            Doing::InterpretingFunctional => "running without mutation",
            Doing::Running => "running",
            Doing::Proving => "proving the functional program",
        })
    }
}

/// A function to call when a part of long work begins, on any thread; none by default.
///
/// ```
/// # use restride::{CompileOptions, OpenOptions, Progress};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/kv_cache.pt2"));
/// let progress = Progress::new(|doing| eprintln!("{doing} …"));
/// let options = CompileOptions { progress, ..CompileOptions::default() };
/// let program = restride::open(path, &OpenOptions::default())?;
/// restride::Compiled::new(program, None, &options)?.prepare(None)?; // tells of placing, planning, checking
/// # Ok::<(), restride::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(Doing) + Send + Sync>>);

impl Progress {
    /// Calls `hear` whenever a part begins.
    pub fn new(hear: impl Fn(Doing) + Send + Sync + 'static) -> Progress {
        Progress(Some(Arc::new(hear)))
    }

    pub(crate) fn tell(&self, doing: Doing) {
        if let Some(hear) = &self.0 {
            hear(doing);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(a function)" } else { "Progress(none)" })
    }
}
