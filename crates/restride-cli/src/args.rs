//! The command line: every command and option, declared once.

use clap::{Args, Parser, Subcommand, ValueEnum};
use restride::Limits;
use std::path::PathBuf;

/// PyTorch programs without mutation, placed in one arena, and run without PyTorch.
#[derive(Parser, Debug)]
#[command(name = "restride", version, about, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Print a program as text: as exported, functional, placed; all three by default.
    Show {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Only this stage.
        #[arg(long)]
        stage: Option<StageArg>,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
    },
    /// Run a program.
    Run {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
        /// Where to write outputs and what the run changed (.npz, .safetensors or .json).
        #[arg(long, value_name = "FILE")]
        outputs: Option<PathBuf>,
        /// How to run it.
        #[arg(long, default_value = "plan")]
        via: Via,
        /// Print what is written, as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Run every stage on the same inputs and compare them bit for bit; run the checkers.
    Verify {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
        /// Write the result as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Write the program without mutation: input and buffer mutations become declared outputs.
    Functionalize {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Where to write it (.pt2, or .fx for text).
        #[arg(short, long, value_name = "OUT")]
        output: PathBuf,
        /// Use Core ATen alone, the operators that every importer is asked to take, wherever it has a form of the program.
        #[arg(long)]
        portable: bool,
        /// Views for copies of views, and no copies that change nothing.
        #[arg(long, conflicts_with = "portable")]
        views: bool,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
    },
    /// Write the program with in-place operators and views, for PyTorch: results in memory that is no longer needed. It is
    /// for inference: run it under `torch.no_grad()`.
    Reinplace {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Where to write it (.pt2, or .fx for text).
        #[arg(short, long, value_name = "OUT")]
        output: PathBuf,
        /// The view form: views for copies of views, `cat` and `stack` computed in slices of new memory, no copies that change
        /// nothing. Nothing that has contents is overwritten; what inputs become are declared outputs.
        #[arg(long)]
        views: bool,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
    },
    /// Go the whole way and print a table of before and after.
    Compile {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Write the functional program with placement and plan.
        #[arg(short, long, value_name = "OUT")]
        output: Option<PathBuf>,
        /// Write a page that shows memory over steps and why each copy stays (.html, for a browser; nothing is loaded).
        #[arg(long, value_name = "FILE")]
        report: Option<PathBuf>,
        /// Write the report as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
    },
    /// Write a program of forward and backward: the loss and its gradients, without mutation. With an optimizer, a whole
    /// training step: the loss, and the new contents of parameters and of what the optimizer keeps.
    Grad {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Where to write it (.pt2, or .fx for text).
        #[arg(short, long, value_name = "OUT")]
        output: PathBuf,
        /// The output that is the loss: one floating number.
        #[arg(long, value_name = "OUTPUT", default_value = "output.0")]
        loss: String,
        /// Gradients of these parameters and user inputs only; by default of every parameter that asks for gradients and
        /// every floating user input.
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        wrt: Option<Vec<String>>,
        /// What backward keeps of forward: all but what is cheap to compute again where memory is short (auto), all, none (whatever
        /// makes the peak smaller is computed again) or so many bytes (as 10MB).
        #[arg(long, value_name = "auto|all|none|BYTES", default_value = "auto", value_parser = keep)]
        keep: restride::Keep,
        /// How often loops whose end depends on data run at most, to differentiate them; going on after that is an error.
        #[arg(long, value_name = "N")]
        max_trips: Option<u64>,
        /// The optimizer.
        #[command(flatten)]
        optimizer: OptimizerArgs,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
    },
    /// Print the memory plan.
    Plan {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Write it as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
    },
    /// Say what was done in place and what was not, and why; and why each copy that is left stays.
    Explain {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Only what is about this value, node or operator, by its name at any stage.
        #[arg(value_name = "NODE")]
        node: Option<String>,
        /// Print all rows, not only those with the most bytes.
        #[arg(long)]
        all: bool,
        /// Write all of it as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
    },
    /// Time runs: as planned and by the interpreter, in turn.
    Bench {
        /// The program.
        #[command(flatten)]
        program: ProgramArgs,
        /// Write the times as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Inputs and seed.
        #[command(flatten)]
        run: RunArgs,
    },
    /// List the operators and what each has.
    Ops {
        /// Write the table as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

/// An optimizer, with PyTorch's names and defaults.
#[derive(Args, Debug)]
pub struct OptimizerArgs {
    /// Update the parameters (--wrt names which): make a whole training step of it.
    #[arg(long, value_enum, value_name = "NAME")]
    pub optimizer: Option<OptimizerArg>,
    /// Learning rate [default: 0.001].
    #[arg(long, value_name = "X", requires = "optimizer")]
    pub lr: Option<f64>,
    /// L2 penalty [default: 0].
    #[arg(long, value_name = "X", requires = "optimizer")]
    pub weight_decay: Option<f64>,
    /// Up the gradient instead of down.
    #[arg(long, requires = "optimizer")]
    pub maximize: bool,
    /// Momentum of sgd [default: 0].
    #[arg(long, value_name = "X", requires = "optimizer")]
    pub momentum: Option<f64>,
    /// Dampening of sgd's momentum [default: 0].
    #[arg(long, value_name = "X", requires = "optimizer")]
    pub dampening: Option<f64>,
    /// Nesterov's momentum for sgd.
    #[arg(long, requires = "optimizer")]
    pub nesterov: bool,
    /// What stays of adam's averages in a step [default: 0.9,0.999].
    #[arg(long, value_name = "B1,B2", value_delimiter = ',', num_args = 1, requires = "optimizer")]
    pub betas: Option<Vec<f64>>,
    /// Added to adam's denominator [default: 1e-8].
    #[arg(long, value_name = "X", requires = "optimizer")]
    pub eps: Option<f64>,
    /// Adam with the largest average of squares so far.
    #[arg(long, requires = "optimizer")]
    pub amsgrad: bool,
    /// Adam's weights decay by themselves and not through the gradient: AdamW.
    #[arg(long, requires = "optimizer")]
    pub decoupled_weight_decay: bool,
}

/// One of PyTorch's optimizers.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptimizerArg {
    /// `torch.optim.SGD`.
    Sgd,
    /// `torch.optim.Adam`.
    Adam,
}

/// A program file and how to open it.
#[derive(Args, Debug)]
pub struct ProgramArgs {
    /// A .pt2 or .fx file.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Which model of an archive with several.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Schemas of custom operators, one a line.
    #[arg(long, value_name = "FILE")]
    pub ops: Option<PathBuf>,
    /// A .pt2 with the weights of a .fx.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Read files into memory instead of mapping them: others may change or cut them meanwhile.
    #[arg(long)]
    pub no_mmap: bool,
    /// What the file may ask for, as `trips=1000`: bytes that it inflates to (inflated), levels of bodies (depth), bodies
    /// counted where they are called (bodies), iterations of a loop (trips), bytes of an arena or a tensor (memory). May be
    /// given several times.
    #[arg(long = "limit", value_name = "NAME=N", value_parser = limit)]
    pub limit: Vec<(String, u64)>,
}

impl ProgramArgs {
    /// The default limits, with what was given.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (name, most) in &self.limit {
            limits.set(name, *most).expect("the parser took it");
        }
        limits
    }
}

/// `NAME=N`, N in bytes as 10MB where it is memory.
fn limit(text: &str) -> Result<(String, u64), String> {
    let (name, most) = text.split_once('=').ok_or("NAME=N is expected")?;
    let most = bytes(most)?.unsigned_abs();
    Limits::default().set(name, most).map_err(|e| e.what)?;
    Ok((name.to_string(), most))
}

/// Inputs, seed and limits.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Inputs (.npz, .safetensors or .json); the sample inputs in the file by default.
    #[arg(long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
    /// Draw inputs from this seed.
    #[arg(long, value_name = "SEED", conflicts_with = "inputs")]
    pub random: Option<u64>,
    /// Seed of the program's random operators.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Threads that kernels may use.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Do not check what this run decides. What a file decides is checked all the same
    #[arg(long)]
    pub no_check: bool,
    /// An arena of at most so many bytes (as 4000000, 10MB or 4GiB): what is cheap is computed again instead of kept.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub budget: Option<i64>,
    /// Leave nodes in the order of the program, also where another one needs less memory.
    #[arg(long)]
    pub no_reorder: bool,
    /// Memories that the arena consists of, fastest first, each with the bytes that it has (as fast=512kB,slow). Buffers with much
    /// traffic go into the first ones; what does not fit spills.
    #[arg(long, value_name = "NAME[=BYTES],…", value_delimiter = ',', value_parser = memory)]
    pub memories: Vec<(String, Option<i64>)>,
    /// Store a value in one of the memories, by its name in the placed program. May be given several times.
    #[arg(long, value_name = "VALUE=MEMORY", requires = "memories", value_parser = pin)]
    pub pin: Vec<(String, String)>,
    /// Alignment of buffers in the arena: a power of two, 64 or more.
    #[arg(long, value_name = "BYTES", value_parser = alignment)]
    pub align: Option<i64>,
    /// Plan the user inputs' memory in the arena, and copy them there before the run: `alloc_graph_input` of ExecuTorch.
    #[arg(long)]
    pub alloc_graph_input: bool,
    /// Plan the outputs' memory in the arena, and copy them to the caller after the run: `alloc_graph_output` of ExecuTorch.
    #[arg(long)]
    pub alloc_graph_output: bool,
    /// Copy instead of viewing: no view is stored in the memory of its base.
    #[arg(long)]
    pub no_views: bool,
    /// Steps that the search for the smallest plan may take; 0 for best fit alone.
    #[arg(long, value_name = "N")]
    pub search_steps: Option<u64>,
}

fn keep(text: &str) -> Result<restride::Keep, String> {
    match text {
        "all" => Ok(restride::Keep::All),
        "auto" => Ok(restride::Keep::Auto),
        "none" => Ok(restride::Keep::None),
        _ => bytes(text).map(restride::Keep::Bytes).map_err(|e| format!("auto, all, none or bytes: {e}")),
    }
}

fn memory(text: &str) -> Result<(String, Option<i64>), String> {
    let (name, size) = text.split_once('=').map_or((text, None), |(name, size)| (name, Some(size)));
    if name.is_empty() {
        return Err("a memory needs a name, as in fast=512kB".into());
    }
    Ok((name.to_string(), size.map(bytes).transpose()?))
}

fn pin(text: &str) -> Result<(String, String), String> {
    let (value, memory) = text.split_once('=').ok_or("a value and a memory, as in add_1=fast")?;
    Ok((value.to_string(), memory.to_string()))
}

fn alignment(text: &str) -> Result<i64, String> {
    match bytes(text)? {
        n if (64..=1 << 30).contains(&n) && n.count_ones() == 1 => Ok(n),
        _ => Err("an alignment is a power of two from 64 (which kernels expect) to 1GiB".into()),
    }
}

/// Bytes, as people write them.
fn bytes(text: &str) -> Result<i64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let unit: f64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err("bytes are a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB behind it".into()),
    };
    if let (Ok(whole), true) = (number.parse::<i64>(), unit == 1.0) {
        return Ok(whole);
    }
    match number.parse::<f64>() {
        Ok(n) if (n * unit) < 9e18 => Ok((n * unit) as i64),
        _ => Err("that is no number of bytes".into()),
    }
}

/// A stage to show.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum StageArg {
    /// As exported.
    Imported,
    /// Without mutation.
    Functional,
    /// With a place for every value.
    Placed,
}

/// A way to run.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// As exported, with true aliasing: the oracle.
    Interp,
    /// The functional program.
    Functional,
    /// Placed and planned, in one arena.
    Plan,
}
