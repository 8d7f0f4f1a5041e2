//! Runs a training step again and again, on the inputs that its file holds.
//!
//! ```sh
//! restride grad fixtures/examples/classifier.pt2 -o step.pt2 --optimizer adam --lr 0.01
//! cargo run --release -p restride --example train -- step.pt2 10
//! ```
//!
//! Prints the loss and the time of every step, then the bytes that the plan says a step needs and, where the system tells it, the
//! process's largest resident size before the first step and after the last.

use restride::{CompileOptions, Compiled, Inputs, OpenOptions, Result, RunOptions, open};
use std::path::Path;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let steps = args.get(1).map_or(Ok(10), |n| n.parse());
    let (Some(file), Ok(steps)) = (args.first(), steps) else {
        eprintln!("usage: train STEP.pt2 [STEPS]");
        std::process::exit(2);
    };
    if let Err(e) = train(Path::new(file), steps) {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

/// The loss of each step.
pub fn train(file: &Path, steps: usize) -> Result<Vec<f64>> {
    let program = open(file, &OpenOptions::default())?;
    let inputs = Inputs::from_samples(&program)
        .unwrap_or_else(|| Err(restride::Error::invalid("the file has no sample inputs to train on")))?;
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    let plan = compiled.prepare(&inputs)?.report().plan;
    let mut instance = compiled.instance()?;
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
        println!("step {step} loss {loss:e} time_us {}", took.as_micros());
    }
    println!(
        "plan arena_bytes {} state_bytes {} output_bytes {}",
        plan.arena_bytes, plan.state_bytes, plan.output_bytes
    );
    if let (Some(before), Some(after)) = (before, resident()) {
        println!("resident before_bytes {before} after_bytes {after}");
    }
    Ok(losses)
}

/// Largest resident size of the process so far, in bytes, where the system tells it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kb| kb * 1024)
}
