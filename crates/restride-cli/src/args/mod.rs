//! The command line: every command and option, declared once.

mod memory;
mod values;

use clap::builder::Styles;
use clap::builder::styling::AnsiColor;
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use restride::Limits;
use std::path::PathBuf;
use values::{bytes, dynamic, group, keep, limit, loss, random};

pub use memory::MemoryArgs;
pub use values::{Dynamics, RandomArg};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

// Headings of the help.
const OUTPUT: &str = "Output";
const OPTIMIZER: &str = "Optimizer";
const OPENING: &str = "Opening FILE";
const GIVEN: &str = "Inputs and checks";
const RUNNING: &str = "Running";
const RANKS: &str = "Ranks";

const OVERVIEW: &str = "\
Start with:
  restride compile model.pt2          a table of the program before and after
  restride explain model.pt2          why each copy stays
  restride verify model.pt2           every stage on the same inputs, bit for bit
  restride functionalize model.pt2 -o functional.pt2

FILE is a .pt2 that torch.export.save wrote, or a .fx text; `-` reads standard input.
An output called `-` is standard output; tables then go to standard error.
Exit status: 0 done, 1 refused or failed, 2 wrong usage.";

/// Functionalize PyTorch programs (.pt2), plan their memory, and run them without PyTorch.
#[derive(Parser)]
#[command(name = "restride", version, styles = STYLES, max_term_width = 110, after_help = OVERVIEW)]
pub struct Cli {
    #[command(flatten)]
    pub screen: ScreenArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// How much a command says.
#[derive(Args)]
pub struct ScreenArgs {
    /// Print errors only: no tables, notes or progress.
    ///
    /// Files are written all the same, and `-` to standard output. `show`, `ops`, `completions` and `man` print their text.
    #[arg(help_heading = OUTPUT, short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say on standard error which inputs are used, and the time of each part of the work.
    #[arg(help_heading = OUTPUT, short, long, global = true)]
    pub verbose: bool,
    /// When to use colours.
    ///
    /// `auto` colours a terminal, unless NO_COLOR or CLICOLOR=0 is set; CLICOLOR_FORCE=1 colours other outputs too.
    #[arg(help_heading = OUTPUT, long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

#[derive(Subcommand)]
pub enum Command {
    Show(Show),
    Run(Run),
    Verify(Verify),
    Functionalize(Functionalize),
    Reinplace(Reinplace),
    Compile(Compile),
    Grad(GradArgs),
    Plan(PlanArgs),
    Explain(Explain),
    Bench(BenchArgs),
    Ops(Ops),
    Completions(Completions),
    Man(Man),
}

/// Print a program as text: as exported, functional and placed; all three by default.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride show model.pt2 --stage imported
  restride show model.pt2 --stage functional > functional.fx
  cat model.pt2 | restride show - --stage placed")]
pub struct Show {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Only this stage.
    #[arg(long)]
    pub stage: Option<StageArg>,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Run a program and print its outputs and the state that it changed.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride run model.pt2                                    on the sample inputs in the file
  restride run model.pt2 --inputs in.npz --outputs out.npz
  restride run model.pt2 --inputs next.npz --state out.npz --outputs out.npz
  restride run model.pt2 --random 0 --via interp            with PyTorch's true aliasing
  restride run model.pt2 --json - | jq '.outputs[0]'
  restride run model.pt2 --ranks 4 --inputs 'in.{rank}.npz' --outputs 'out.{rank}.npz'
  mpirun -n 4 restride run model.pt2 --inputs 'in.{rank}.npz'   with a build that has MPI")]
pub struct Run {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Write outputs, and inputs and state that the run changed (.npz, .safetensors or .json; .json to `-`).
    #[arg(long, value_name = "FILE")]
    pub outputs: Option<PathBuf>,
    /// Start from the state that another run wrote with --outputs (.npz or .safetensors).
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// How to run it.
    #[arg(long, default_value = "plan")]
    pub via: Via,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub ranks: RankArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Run every stage on the same inputs and compare them bit for bit; run the checkers.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride verify model.pt2
  restride verify model.pt2 --random 7 --threads 2")]
pub struct Verify {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub ranks: RankArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Write the program without mutation: input and buffer mutations become declared outputs.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride functionalize model.pt2 -o functional.pt2
  restride functionalize model.pt2 -o core.pt2 --portable   for importers that take Core ATen alone
  restride functionalize model.pt2 -o functional.fx         as text")]
pub struct Functionalize {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Where to write the program (.pt2, or .fx for text; `-` writes a .pt2 to standard output).
    #[arg(short, long, value_name = "OUT", required_unless_present = "emit")]
    pub output: Option<PathBuf>,
    /// Print the program as a graph text: `fx` in the form in which FILE came in, or as FX nodes.
    #[arg(long, value_enum, value_name = "FORM")]
    pub emit: Option<EmitForm>,
    /// Use Core ATen operators wherever they can express the program.
    #[arg(long)]
    pub portable: bool,
    /// Use views instead of copies of views; drop copies that change nothing.
    #[arg(long, conflicts_with = "portable")]
    pub views: bool,
    #[command(flatten)]
    pub given: GivenArgs,
}

/// Write the program with in-place operators and views, for PyTorch under `torch.no_grad()`.
///
/// Results are computed in memory that is no longer needed.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride reinplace model.pt2 -o reinplaced.pt2
  restride reinplace model.pt2 -o views.pt2 --views         without overwriting anything")]
pub struct Reinplace {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Write the view form: views, and no mutation of memory that has contents.
    ///
    /// Copies of views become views, `cat` and `stack` are computed in slices of new memory, and copies that change nothing go.
    /// Input mutations stay declared outputs.
    #[arg(long)]
    pub views: bool,
    #[command(flatten)]
    pub given: GivenArgs,
}

/// Functionalize, place, plan and check a program; print a table of before and after.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride compile model.pt2
  restride compile model.pt2 -o planned.pt2                 with placement and plan inside
  restride compile model.pt2 --report memory.html           memory over steps, for a browser
  restride compile model.pt2 --budget 10MB --json -
  restride compile step.pt2 --world 8,64,1024 --link 25GB   a table over numbers of ranks")]
pub struct Compile {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Write the functional program with placement and plan (.pt2).
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Write a page that shows memory over steps and why each copy stays (.html; it loads nothing).
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Simulate these numbers of ranks from the rates below, without an engine; print a table.
    #[arg(help_heading = RANKS, long, value_name = "N,…", value_delimiter = ',')]
    pub world: Vec<usize>,
    /// Bytes that a rank sends in a second [default: 10GB].
    #[arg(help_heading = RANKS, long, value_name = "BYTES", requires = "world", value_parser = bytes)]
    pub link: Option<i64>,
    /// Microseconds from a rank to the next, for each message [default: 10].
    #[arg(help_heading = RANKS, long, value_name = "US", requires = "world")]
    pub latency: Option<f64>,
    /// Bytes that the steps of a rank read and write in a second [default: 10GB].
    #[arg(help_heading = RANKS, long, value_name = "BYTES", requires = "world", value_parser = bytes)]
    pub memory_rate: Option<i64>,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Write forward and backward as one program without mutation; with --optimizer, a whole training step.
///
/// A training step returns the loss and the new contents of parameters and optimizer state.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride grad classifier.pt2 -o joint.pt2
  restride grad classifier.pt2 -o joint.pt2 --wrt fc.weight,fc.bias --keep none
  restride grad classifier.pt2 -o step.pt2 --optimizer adam --lr 0.01")]
pub struct GradArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// The output that is the loss: one floating-point number.
    #[arg(long, value_name = "OUTPUT", default_value = "output.0", value_parser = loss)]
    pub loss: usize,
    /// Differentiate with respect to these parameters and user inputs [default: every parameter that requires gradients and
    /// every floating-point user input].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub wrt: Option<Vec<String>>,
    /// Intermediates of forward that backward keeps: `auto` recomputes cheap ones where that lowers the peak, `none` whatever
    /// lowers it; BYTES as 10MB.
    #[arg(long, value_name = "auto|all|none|BYTES", default_value = "auto", value_parser = keep)]
    pub keep: restride::Keep,
    /// Most iterations of a loop whose end depends on data; one more is an error at run time.
    #[arg(long, value_name = "N")]
    pub max_trips: Option<u64>,
    #[command(flatten)]
    pub optimizer: OptimizerArgs,
    #[command(flatten)]
    pub given: GivenArgs,
}

/// Print the memory plan: the offset, bytes and steps of each buffer in the arena.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride plan model.pt2
  restride plan model.pt2 --memories fast=64kB,slow --align 256")]
pub struct PlanArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Say what is done in place, what is not and why, and why each copy stays.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride explain model.pt2
  restride explain model.pt2 cat_1                          one value, node or operator
  restride explain model.pt2 --json - | jq '.copies[].why'")]
pub struct Explain {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Only this value, node or operator, by its name at any stage.
    #[arg(value_name = "NODE")]
    pub node: Option<String>,
    /// Print all rows, not only those with the most bytes; with NODE all are printed.
    #[arg(long, conflicts_with = "node")]
    pub all: bool,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Time runs, as planned and by the interpreter in turn, and the operators of the planned run.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride bench model.pt2 --threads 2
  restride bench model.pt2 --steps                          the time of each step too
  restride bench model.pt2 --json - | jq '.profile.operators[0]'")]
pub struct BenchArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Print the time of each step.
    #[arg(long)]
    pub steps: bool,
    #[command(flatten)]
    pub json: JsonArgs,
    #[command(flatten)]
    pub given: GivenArgs,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// List the operators, and whether each has a kernel, a view rule, a gradient.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride ops | grep scatter
  restride ops --json - | jq '.[].name'")]
pub struct Ops {
    #[command(flatten)]
    pub json: JsonArgs,
}

/// Print a completion script for a shell.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride completions bash > ~/.local/share/bash-completion/completions/restride
  restride completions zsh > ~/.zfunc/_restride
  restride completions fish > ~/.config/fish/completions/restride.fish")]
pub struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Print the manual page, or write one page a command into DIR.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  restride man | man -l -
  restride man ~/.local/share/man/man1")]
pub struct Man {
    /// Where to write restride.1, restride-compile.1 and so on.
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// An optimizer, with PyTorch's names and defaults.
#[derive(Args)]
pub struct OptimizerArgs {
    /// Write a training step that updates the parameters (--wrt names which).
    #[arg(help_heading = OPTIMIZER, long, value_enum, value_name = "NAME")]
    pub optimizer: Option<OptimizerArg>,
    /// Average gradients over the ranks of a group, all of them by default: each rank has a part of the batch.
    #[arg(
        help_heading = OPTIMIZER, long, value_name = "GROUP", requires = "optimizer", num_args = 0..=1,
        require_equals = true, default_missing_value = "0"
    )]
    pub data_parallel: Option<String>,
    /// Exchange gradients in buckets of at least this many bytes; with 0, each by itself [default: 1MiB].
    #[arg(help_heading = OPTIMIZER, long, value_name = "BYTES", requires = "data_parallel", value_parser = bytes)]
    pub bucket_bytes: Option<i64>,
    /// Share updates and optimizer state among N ranks; `{rank}` in --output is the number of the rank that runs the file.
    #[arg(help_heading = OPTIMIZER, long, value_name = "N", requires = "data_parallel")]
    pub shard: Option<usize>,
    /// Learning rate [default: 0.001].
    #[arg(help_heading = OPTIMIZER, long, value_name = "X", requires = "optimizer")]
    pub lr: Option<f64>,
    /// L2 penalty [default: 0].
    #[arg(help_heading = OPTIMIZER, long, value_name = "X", requires = "optimizer")]
    pub weight_decay: Option<f64>,
    /// Maximize the objective instead of minimizing it.
    #[arg(help_heading = OPTIMIZER, long, requires = "optimizer")]
    pub maximize: bool,
    /// Momentum of sgd [default: 0].
    #[arg(help_heading = OPTIMIZER, long, value_name = "X", requires = "optimizer")]
    pub momentum: Option<f64>,
    /// Dampening of sgd's momentum [default: 0].
    #[arg(help_heading = OPTIMIZER, long, value_name = "X", requires = "optimizer")]
    pub dampening: Option<f64>,
    /// Nesterov momentum for sgd.
    #[arg(help_heading = OPTIMIZER, long, requires = "optimizer")]
    pub nesterov: bool,
    /// Decay of adam's running averages [default: 0.9,0.999].
    #[arg(help_heading = OPTIMIZER, long, value_name = "B1,B2", value_delimiter = ',', num_args = 1, requires = "optimizer")]
    pub betas: Option<Vec<f64>>,
    /// Term added to adam's denominator [default: 1e-8].
    #[arg(help_heading = OPTIMIZER, long, value_name = "X", requires = "optimizer")]
    pub eps: Option<f64>,
    /// The AMSGrad variant of adam: the largest average of squares so far.
    #[arg(help_heading = OPTIMIZER, long, requires = "optimizer")]
    pub amsgrad: bool,
    /// Decay adam's weights directly and not through the gradient: AdamW.
    #[arg(help_heading = OPTIMIZER, long, requires = "optimizer")]
    pub decoupled_weight_decay: bool,
}

/// One of PyTorch's optimizers.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum OptimizerArg {
    /// torch.optim.SGD
    Sgd,
    /// torch.optim.Adam
    Adam,
}

/// A program file and how to open it.
#[derive(Args)]
pub struct ProgramArgs {
    /// The program: a .pt2, a TorchScript archive, a .fx or another graph text; `-` for standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The model of an archive with several; the method of a TorchScript archive; the graph of a text with several, by its number from 1.
    #[arg(help_heading = OPENING, long, value_name = "NAME")]
    pub model: Option<String>,
    /// Schemas of custom operators, one a line.
    #[arg(help_heading = OPENING, long, value_name = "FILE")]
    pub ops: Option<PathBuf>,
    /// The weights of a text: a .pt2, a TorchScript archive, a .safetensors, or a state dict (.pt, .npz).
    #[arg(help_heading = OPENING, long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Sizes that stay symbolic in a TorchScript archive or a text without types (as x.0=1..64 or y.0=x.0).
    #[arg(help_heading = OPENING, long, value_name = "INPUT.DIM=MIN..MAX", value_parser = dynamic)]
    pub dynamic: Vec<Dynamics>,
    /// Read files instead of mapping them, where others may change or cut them meanwhile.
    #[arg(help_heading = OPENING, long)]
    pub no_mmap: bool,
    /// Set a limit on what the file may ask for; may be given several times.
    ///
    /// NAME is `inflated` (bytes of all inflated files), `depth` (levels of nested bodies), `bodies` (number of bodies, counted
    /// at each call), `trips` (iterations of a loop) or `memory` (bytes of an arena or a tensor). N as 1000 or 10MB.
    #[arg(help_heading = OPENING, long = "limit", value_name = "NAME=N", value_parser = limit)]
    pub limit: Vec<(String, u64)>,
}

impl ProgramArgs {
    /// The default limits, changed by `--limit`.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (name, most) in &self.limit {
            limits.set(name, *most).expect("checked by the parser");
        }
        limits
    }
}

/// A program file to write.
#[derive(Args)]
pub struct OutputArgs {
    /// Where to write the program (.pt2, or .fx for text; `-` writes a .pt2 to standard output).
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
}

/// The result as data.
#[derive(Args)]
pub struct JsonArgs {
    /// Write the result as JSON (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What a program is compiled for.
#[derive(Args)]
pub struct GivenArgs {
    /// Inputs by name, or in order (.npz, .safetensors, .json or .pt) [default: the sample inputs in the file].
    #[arg(help_heading = GIVEN, long, value_name = "FILE")]
    pub inputs: Option<PathBuf>,
    /// Draw inputs from this seed, or of these types and sizes (as "x=f32[2,3],n=4"); both may be given.
    #[arg(help_heading = GIVEN, long, value_name = "SEED|TYPES", conflicts_with = "inputs", value_parser = random)]
    pub random: Vec<RandomArg>,
    /// Do not check the decisions of this run. A plan that comes in a file is checked all the same.
    #[arg(help_heading = GIVEN, long)]
    pub no_check: bool,
}

/// How a program is run.
#[derive(Args)]
pub struct RunArgs {
    /// Seed of the program's random operators.
    #[arg(help_heading = RUNNING, long, default_value_t = 0)]
    pub seed: u64,
    /// Threads that kernels may use.
    #[arg(help_heading = RUNNING, long, default_value_t = 1)]
    pub threads: usize,
}

/// Several ranks, for programs with collectives.
///
/// `{rank}` in an argument stands for the rank's number. A build with MPI runs as one rank where `mpirun` starts it.
#[derive(Args)]
pub struct RankArgs {
    /// Run this many ranks as threads of this process.
    #[arg(help_heading = RANKS, long, value_name = "N")]
    pub ranks: Option<usize>,
    /// Bind a group's name to ranks, each group's parted by `/` (as tp=0,1/2,3); other names are all ranks.
    #[arg(help_heading = RANKS, long, value_name = "NAME=RANKS", value_parser = group)]
    pub group: Vec<(String, Vec<Vec<usize>>)>,
}

impl Command {
    /// The ranks of a command that runs a program.
    pub fn ranks(&self) -> Option<&RankArgs> {
        match self {
            Command::Run(run) => Some(&run.ranks),
            Command::Verify(verify) => Some(&verify.ranks),
            _ => None,
        }
    }
}

impl GivenArgs {
    /// The seed of random inputs, if any are drawn.
    pub fn seed(&self) -> Option<u64> {
        let seed = self.random.iter().find_map(|r| if let RandomArg::Seed(s) = r { Some(*s) } else { None });
        seed.or((!self.random.is_empty()).then_some(0))
    }

    /// The types of random inputs, by name or in order.
    pub fn types(&self) -> Vec<(Option<std::sync::Arc<str>>, restride::GivenValue)> {
        let given = self.random.iter().filter_map(|r| if let RandomArg::Types(t) = r { Some(t) } else { None });
        given.flatten().cloned().collect()
    }
}

/// A form of a printed graph.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum EmitForm {
    /// The form in which the program came in, or FX nodes.
    Fx,
    /// FX nodes, as `print(graph)`.
    Nodes,
    /// Generated code, as `print_readable()`.
    Code,
    /// As `print(exported_program)`.
    Exported,
    /// TorchScript's intermediate form.
    Jit,
}

/// A stage to show.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum StageArg {
    /// As exported.
    Imported,
    /// Without mutation.
    Functional,
    /// With a place for every value.
    Placed,
}

/// A way to run.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// As exported, with true aliasing: the oracle.
    Interp,
    /// The functional program.
    Functional,
    /// Placed and planned, in one arena.
    Plan,
}
