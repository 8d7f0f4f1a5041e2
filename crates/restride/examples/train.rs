//! Runs a training step again and again, on the inputs that its file holds.
//!
//! ```sh
//! restride grad fixtures/examples/classifier.pt2 -o step.pt2 --optimizer adam --lr 0.01
//! cargo run --release -p restride --example train -- step.pt2 10
//! ```
//!
//! Prints the loss and the time of every step, then the bytes and the copies that the plan says a step needs and, where the system
//! tells it, the process's largest resident size before the first step and after the last.
//!
//! A third argument is a number of ranks, which run as threads. `{rank}` in the file's name is the number of the rank. Built with
//! the feature `mpi`, processes of `mpirun` are the ranks. Lines begin with the rank then.

use restride::collective::{Engine, thread_ranks};
use restride::{CompileOptions, Compiled, Inputs, OpenOptions, Result, RunOptions, open};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let steps = args.get(1).map_or(Ok(10), |n| n.parse());
    let ranks = args.get(2).map_or(Ok(1), |n| n.parse());
    let (Some(file), Ok(steps), Ok(ranks)) = (args.first(), steps, ranks) else {
        eprintln!("usage: train STEP.pt2 [STEPS [RANKS]]");
        std::process::exit(2);
    };
    let done = match launched() {
        Some(engine) => of_rank(file, steps, engine).map(drop),
        None if ranks > 1 => std::thread::scope(|scope| {
            let one = |engine: Arc<dyn Engine>| scope.spawn(move || of_rank(file, steps, engine));
            let threads: Vec<_> = thread_ranks(ranks, &[]).into_iter().map(one).collect();
            let ended = || Err(restride::Error::invalid("a rank ended without a result"));
            threads.into_iter().try_for_each(|t| t.join().unwrap_or_else(|_| ended()).map(drop))
        }),
        None => train(Path::new(file), steps).map(drop),
    };
    if let Err(e) = done {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

/// The engine of a process that an MPI launcher started.
#[cfg(feature = "mpi")]
fn launched() -> Option<Arc<dyn Engine>> {
    use restride::collective::Mpi;
    Mpi::launched().then(|| Arc::new(Mpi::new(Default::default()).expect("MPI")) as Arc<dyn Engine>)
}

#[cfg(not(feature = "mpi"))]
fn launched() -> Option<Arc<dyn Engine>> {
    None
}

fn of_rank(file: &str, steps: usize, engine: Arc<dyn Engine>) -> Result<Vec<f64>> {
    let rank = engine.world().rank;
    let path = PathBuf::from(file.replace("{rank}", &rank.to_string()));
    let mut lines = String::new();
    let done = run(&path, steps, Some(engine.clone()), &mut |line| lines += &format!("rank {rank} {line}\n"));
    print!("{lines}");
    done.inspect_err(|e| engine.abort(&e.to_string()))
}

/// The loss of each step.
pub fn train(file: &Path, steps: usize) -> Result<Vec<f64>> {
    run(file, steps, None, &mut |line| println!("{line}"))
}

fn run(file: &Path, steps: usize, engine: Option<Arc<dyn Engine>>, say: &mut dyn FnMut(&str)) -> Result<Vec<f64>> {
    let program = open(file, &OpenOptions::default())?;
    let inputs = Inputs::from_samples(&program)
        .unwrap_or_else(|| Err(restride::Error::invalid("the file has no sample inputs to train on")))?;
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    let report = compiled.prepare(&inputs)?.report();
    let mut instance = compiled.instance()?;
    if let Some(engine) = engine {
        instance.set_engine(engine);
    }
    let before = resident();
    let mut losses = Vec::new();
    for step in 0..steps {
        let start = Instant::now();
        let outputs = instance.run(&inputs, &RunOptions::default())?;
        let took = start.elapsed();
        let loss = outputs.values.first().and_then(|v| v.tensor()).map_or(f64::NAN, |t| {
            let first = vec![0; t.layout().sizes.len()];
            t.get(&first).as_f64()
        });
        losses.push(loss);
        say(&format!("step {step} loss {loss:e} time_us {}", took.as_micros()));
    }
    let plan = report.plan;
    say(&format!(
        "plan arena_bytes {} state_bytes {} output_bytes {} copies {} copy_bytes {}",
        plan.arena_bytes, plan.state_bytes, plan.output_bytes, report.placed.copies, report.placed.copy_bytes
    ));
    if let (Some(before), Some(after)) = (before, resident()) {
        say(&format!("resident before_bytes {before} after_bytes {after}"));
    }
    Ok(losses)
}

/// Largest resident size of the process so far, in bytes, where the system tells it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}
