//! `restride bench`: times of runs, some of each way in turn, so that other load on the machine slows both alike; and where the
//! time goes, beside what a plain product and a plain copy reach.

use crate::screen::{HEAD, styled};
use restride::{
    Bytes, CompileOptions, Compiled, ErrorKind, Inputs, OpenOptions, Program, Result, RunOptions, Session, State,
    StepTime, interpret, open_bytes, random_inputs,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Turns go on for this long, and until each way has run [`FEWEST`] times.
const TIME: Duration = Duration::from_secs(2);
const FEWEST: usize = 5;
/// One way runs for this long, and at most [`MOST`] times, before the other one does: as in a program that does nothing else, its
/// memory is in the processor's caches.
const TURN: Duration = Duration::from_millis(50);
const MOST: usize = 1000;
/// Runs whose steps are timed, at most.
const PROFILED: usize = 50;

/// The times of a program's runs.
pub struct Bench {
    program: String,
    steps: usize,
    plan: Vec<Duration>,
    interp: Vec<Duration>,
    /// Of a bound program.
    profile: Option<Profile>,
}

/// Where the time of a run goes.
struct Profile {
    steps: Vec<StepTime>,
    operators: Vec<Operator>,
    /// What this machine reaches with as many threads: multiply-adds a second in a product of two 512 × 512 matrices, bytes a
    /// second, read and written, in a copy of 64 MiB.
    product: f64,
    copy: f64,
}

/// The steps of one operator, added up.
struct Operator {
    name: String,
    steps: usize,
    time: Duration,
    bytes: i64,
    macs: i64,
}

impl Operator {
    fn add(&mut self, step: &StepTime) {
        self.steps += 1;
        self.time += step.time;
        self.bytes += step.bytes;
        self.macs += step.macs;
    }
}

/// A step's operator; a move is a copy that no operator asks for.
fn operator(step: &StepTime) -> &str {
    step.site.as_ref().filter(|_| !step.moves).map_or("move", |site| &site.op)
}

/// The time of each step and operator of a session, the slowest operator first.
fn profile(session: &mut Session, runs: usize, options: &RunOptions) -> Result<Profile> {
    let steps = session.profile(runs)?;
    let mut operators: BTreeMap<&str, Operator> = BTreeMap::new();
    for step in &steps {
        let name = operator(step);
        let new = || Operator { name: name.into(), steps: 0, time: Duration::ZERO, bytes: 0, macs: 0 };
        operators.entry(name).or_insert_with(new).add(step);
    }
    let mut operators: Vec<Operator> = operators.into_values().collect();
    operators.sort_by_key(|o| std::cmp::Reverse(o.time));
    let product = "graph(%a: f32[512, 512], %b: f32[512, 512]) {\n  %c: f32[512, 512] = aten.mm.default(%a, %b)\n  return %c\n}\n";
    let copy = "graph(%x: f32[16777216]) {\n  %y: f32[16777216] = aten.clone.default(%x)\n  return %y\n}\n";
    let (product, copy) = (plain(product, options)?, plain(copy, options)?);
    Ok(Profile {
        product: per_second(product.macs, product.time),
        copy: per_second(copy.bytes, copy.time),
        steps,
        operators,
    })
}

/// The only step of a program, at its fastest.
fn plain(text: &str, options: &RunOptions) -> Result<StepTime> {
    let program = open_bytes(&Bytes::copy_of(text.as_bytes()), &OpenOptions::default())?;
    let inputs = random_inputs(&program, 1)?;
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;
    let mut session = compiled.instance()?.session(&inputs, &[], options)?;
    session.profile(2)?;
    let times = (0..8).map(|_| session.profile(1)).collect::<Result<Vec<_>>>()?;
    Ok(times.into_iter().flatten().min_by_key(|s| s.time).expect("one step"))
}

fn per_second(n: i64, time: Duration) -> f64 {
    n as f64 / time.as_secs_f64().max(1e-9)
}

/// Runs a program as planned and by the interpreter, in turn, each on memory and state of its own.
///
/// # Errors
/// As a run's.
pub fn measure(program: &Program, compiled: &Compiled, inputs: &Inputs, options: &RunOptions) -> Result<Bench> {
    let given = inputs.deep_clone();
    let mut instance = compiled.instance()?;
    let mut session = match compiled.instance()?.session(&given, &[], options) {
        Ok(session) => Some(session),
        Err(e) if e.kind == ErrorKind::Unsupported => None,
        Err(e) => return Err(e),
    };
    let mut planned = || match &mut session {
        Some(session) => session.run(),
        None => instance.run(&given, options).map(|_| ()),
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
        plan: Vec::new(),
        interp: Vec::new(),
        profile: None,
    };
    let start = Instant::now();
    while out.plan.len().min(out.interp.len()) < FEWEST || start.elapsed() < TIME {
        turn(&mut planned, &mut out.plan)?;
        turn(&mut interp, &mut out.interp)?;
    }
    out.plan.sort_unstable();
    out.interp.sort_unstable();
    let runs = out.plan.len().min(PROFILED);
    out.profile = session.as_mut().map(|s| profile(s, runs, options)).transpose()?;
    Ok(out)
}

/// Times some runs.
fn turn(run: &mut dyn FnMut() -> Result<()>, times: &mut Vec<Duration>) -> Result<()> {
    let (first, mut total) = (times.len(), Duration::ZERO);
    while total < TURN && times.len() - first < MOST {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed());
        total += times[times.len() - 1];
    }
    Ok(())
}

fn median(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() / 2]
}

fn ms(d: Duration) -> String {
    format!("{:.3} ms", d.as_secs_f64() * 1e3)
}

/// The measurement as text.
pub fn text(b: &Bench, steps: bool) -> String {
    let row = |name: &str, times: &[Duration]| {
        format!("{name:<10} {:>14} {:>14} {:>14}\n", ms(times[0]), ms(median(times)), ms(times[times.len() - 1]))
    };
    let ratio = median(&b.interp).as_secs_f64() / median(&b.plan).as_secs_f64().max(1e-9);
    let kind = match b.profile {
        Some(_) => "bound to memory once",
        // Sizes from data.
        None => "bound anew in each run",
    };
    let profile = b.profile.as_ref().map_or(String::new(), |p| profile_text(p, steps));
    let head = styled(HEAD, format!("{:<10} {:>14} {:>14} {:>14}", "", "fastest", "median", "slowest"));
    let (plan, interp) = (row("plan", &b.plan), row("interp", &b.interp));
    format!(
        "{}: {} runs as planned and {} of the interpreter, some of each in turn, {} steps, {kind}\n\n{head}\n{plan}{interp}\nplan \
         is {ratio:.2} times as fast as interp (medians)\n{profile}",
        b.program,
        b.plan.len(),
        b.interp.len(),
        b.steps,
    )
}

/// Time by operator, and by step where asked for.
fn profile_text(p: &Profile, steps: bool) -> String {
    let total: Duration = p.steps.iter().map(|s| s.time).sum();
    let share = |d: Duration| format!("{:.1} %", 100.0 * d.as_secs_f64() / total.as_secs_f64().max(1e-12));
    let rate = |n: i64, scale: f64, time| match n {
        0 => String::new(),
        n => format!("{:.1}", per_second(n, time) * scale),
    };
    let rates = |time: Duration, macs, bytes| {
        format!(
            "{:>11} {:>8} {:>8} {:>7}",
            format!("{:.1} µs", us(time)),
            share(time),
            rate(macs, 2e-9, time),
            rate(bytes, 1e-9, time)
        )
    };
    let head = format!("{:>11} {:>8} {:>8} {:>7}", "time", "share", "GFLOP/s", "GB/s");
    let mut out = format!("\n{}\n", styled(HEAD, format!("{head} {:>6}  operator", "steps")));
    for o in &p.operators {
        out += &format!("{} {:>6}  {}\n", rates(o.time, o.macs, o.bytes), o.steps, o.name);
    }
    out += &format!(
        "{:>11} {:>8} {:>8.1} {:>7.1}         this machine's plain product, plain copy\n",
        "",
        "",
        p.product * 2e-9,
        p.copy * 1e-9
    );
    if steps {
        out += &format!("\n{}\n", styled(HEAD, format!("{head}  step")));
        for s in &p.steps {
            let results = s.site.as_ref().map_or(&[][..], |site| &site.results);
            let name: String = results.iter().map(|r| format!(" %{r}")).collect();
            let line = s.site.as_ref().and_then(|site| site.line.as_ref()).map_or(String::new(), |l| format!("  {l}"));
            out += &format!("{}  {}{name}{line}\n", rates(s.time, s.macs, s.bytes), operator(s));
        }
    }
    out
}

fn us(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e3
}

fn profile_json(p: &Profile) -> Value {
    let operator_row = |o: &Operator| json!({ "operator": o.name, "steps": o.steps, "time_us": us(o.time), "bytes": o.bytes, "macs": o.macs });
    let step_row = |s: &StepTime| {
        json!({
            "operator": operator(s),
            "results": s.site.as_ref().map(|site| &site.results),
            "line": s.site.as_ref().and_then(|site| site.line.as_ref()),
            "time_us": us(s.time),
            "bytes": s.bytes,
            "macs": s.macs,
        })
    };
    json!({
        "operators": p.operators.iter().map(operator_row).collect::<Vec<_>>(),
        "steps": p.steps.iter().map(step_row).collect::<Vec<_>>(),
        "machine": { "product_macs_per_second": p.product, "copy_bytes_per_second": p.copy },
    })
}

/// The measurement as JSON; times in microseconds. A program whose sizes depend on data has no `profile`.
pub fn json(b: &Bench) -> Value {
    let way = |t: &[Duration]| json!({ "fastest": us(t[0]), "median": us(median(t)), "slowest": us(t[t.len() - 1]) });
    json!({
        "program": b.program,
        "runs": b.plan.len(),
        "steps": b.steps,
        "bound": b.profile.is_some(),
        "time_us": { "plan": way(&b.plan), "interp": way(&b.interp) },
        "profile": b.profile.as_ref().map(profile_json),
    })
}
