//! `restride bench`: times of runs, both ways in turn, so that other load on the machine slows both alike.

use crate::screen::{HEAD, styled};
use restride::{Compiled, ErrorKind, Inputs, Program, Result, RunOptions, State, interpret};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Rounds go on for this long, and for at least [`FEWEST`].
const TIME: Duration = Duration::from_secs(2);
const FEWEST: usize = 5;
const MOST: usize = 10_000;

/// The times of a program's runs.
pub struct Bench {
    program: String,
    steps: usize,
    /// Whether runs are bound to memory once; a program with sizes from data is bound anew in each run.
    bound: bool,
    plan: Vec<Duration>,
    interp: Vec<Duration>,
}

/// Runs a program as planned and by the interpreter, in turn, each on memory and state of its own.
///
/// # Errors
/// As a run's.
pub fn measure(program: &Program, compiled: &Compiled, inputs: &Inputs, options: &RunOptions) -> Result<Bench> {
    let given = inputs.deep_clone();
    type Way<'a> = Box<dyn FnMut() -> Result<()> + 'a>;
    let (bound, mut planned): (bool, Way<'_>) = match compiled.instance()?.session(&given, &[], options) {
        Ok(mut session) => (true, Box::new(move || session.run())),
        Err(e) if e.kind == ErrorKind::Unsupported => {
            let mut instance = compiled.instance()?;
            (false, Box::new(move || instance.run(&given, options).map(|_| ())))
        }
        Err(e) => return Err(e),
    };
    let own = inputs.deep_clone();
    let mut state = State::new(program)?;
    let mut interp = || interpret(program, &own, &mut state, options).map(|_| ());
    // Not timed: work that is done once.
    planned()?;
    interp()?;
    let mut out = Bench {
        program: program.name.to_string(),
        steps: compiled.prepare(inputs)?.report().placed.steps,
        bound,
        plan: Vec::new(),
        interp: Vec::new(),
    };
    let start = Instant::now();
    while out.plan.len() < FEWEST || (start.elapsed() < TIME && out.plan.len() < MOST) {
        out.plan.push(timed(&mut planned)?);
        out.interp.push(timed(&mut interp)?);
    }
    out.plan.sort_unstable();
    out.interp.sort_unstable();
    Ok(out)
}

fn timed(run: &mut dyn FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed())
}

fn median(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() / 2]
}

fn ms(d: Duration) -> String {
    format!("{:.3} ms", d.as_secs_f64() * 1e3)
}

/// The measurement as text.
pub fn text(b: &Bench) -> String {
    let row = |name: &str, times: &[Duration]| {
        format!("{name:<10} {:>14} {:>14} {:>14}\n", ms(times[0]), ms(median(times)), ms(times[times.len() - 1]))
    };
    let ratio = median(&b.interp).as_secs_f64() / median(&b.plan).as_secs_f64().max(1e-9);
    let kind = if b.bound { "bound to memory once" } else { "bound anew in each run" };
    let head = styled(HEAD, format!("{:<10} {:>14} {:>14} {:>14}", "", "fastest", "median", "slowest"));
    let (plan, interp) = (row("plan", &b.plan), row("interp", &b.interp));
    format!(
        "{}: {} runs of each in turn, {} steps, {kind}\n\n{head}\n{plan}{interp}\nplan is {ratio:.2} times as fast as interp \
         (medians)\n",
        b.program,
        b.plan.len(),
        b.steps,
    )
}

/// The measurement as JSON; times in microseconds.
pub fn json(b: &Bench) -> Value {
    let us = |d: Duration| d.as_nanos() as f64 / 1e3;
    let way = |t: &[Duration]| json!({ "fastest": us(t[0]), "median": us(median(t)), "slowest": us(t[t.len() - 1]) });
    json!({
        "program": b.program,
        "runs": b.plan.len(),
        "steps": b.steps,
        "bound": b.bound,
        "time_us": { "plan": way(&b.plan), "interp": way(&b.interp) },
    })
}
