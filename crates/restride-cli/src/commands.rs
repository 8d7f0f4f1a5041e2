//! What each command does.

use crate::Failure;
use crate::args::{Command, OptimizerArgs, ProgramArgs, RunArgs, StageArg, Via};
use crate::progress::Screen;
use crate::{bench, explain, optimizer, page, tables};
use restride::{
    CompileOptions, Compiled, Doing, Error, ErrorKind, Inputs, MemorySpec, OpenOptions, Program, Report, RunOptions,
    State, Times, ViewOptions, files,
};
use std::path::Path;

type Result<T> = std::result::Result<T, Failure>;

/// Runs a command.
pub fn run(command: Command) -> Result<()> {
    let screen = &Screen::new();
    match command {
        Command::Show { program, stage, run } => show(screen, &program, stage, &run),
        Command::Run { program, run, outputs, via, json } => {
            run_program(screen, &program, &run, outputs.as_deref(), via, json.as_deref())
        }
        Command::Verify { program, run, json } => verify(screen, &program, &run, json.as_deref()),
        Command::Functionalize { program, output, portable, views, run } => {
            let operators = match (portable, views) {
                (true, _) => Operators::Portable,
                (_, true) => Operators::Views,
                _ => Operators::AsTheyAre,
            };
            functionalize(screen, &program, &output, operators, &run)
        }
        Command::Reinplace { program, output, views, run } => reinplace(screen, &program, &output, views, &run),
        Command::Compile { program, output, report, json, run } => {
            let to = CompileTo { output: output.as_deref(), report: report.as_deref(), json: json.as_deref() };
            compile(screen, &program, &to, &run)
        }
        Command::Grad { program, output, loss, wrt, keep, max_trips, optimizer, run } => {
            let way = GradArgs { output: &output, loss: &loss, wrt, keep, max_trips, optimizer: &optimizer };
            grad(screen, &program, way, &run)
        }
        Command::Bench { program, json, run } => time(screen, &program, json.as_deref(), &run),
        Command::Plan { program, json, run } => plan(screen, &program, json.as_deref(), &run),
        Command::Explain { program, node, all, json, run } => {
            explain(screen, &program, node.as_deref(), all, json.as_deref(), &run)
        }
        Command::Ops { json } => ops(screen, json.as_deref()),
    }
}

fn open_options(args: &ProgramArgs) -> OpenOptions {
    OpenOptions {
        model: args.model.clone(),
        weights: args.weights.clone(),
        ops: args.ops.clone(),
        no_mmap: args.no_mmap,
        limits: args.limits(),
    }
}

fn open(screen: &Screen, args: &ProgramArgs) -> Result<Program> {
    screen.doing("opening");
    let program = restride::open(&args.file, &open_options(args))?;
    for note in &program.notes {
        screen.note(&format!("note: {note}"));
    }
    Ok(program)
}

/// The inputs of a run: given, drawn, or stored with the program; `None` if there are none of these.
fn optional_inputs(program: &Program, run: &RunArgs) -> Result<Option<Inputs>> {
    if let Some(path) = &run.inputs {
        return Ok(Some(files::read_inputs(path, program)?));
    }
    if let Some(seed) = run.random {
        return Ok(Some(restride::random_inputs(program, seed)?));
    }
    if let Some(samples) = Inputs::from_samples(program) {
        return Ok(Some(samples?));
    }
    let names: Vec<String> = restride::user_inputs(program).map(|(_, n)| n.to_string()).collect();
    Ok(if names.is_empty() { Some(Inputs::default()) } else { None })
}

fn inputs(program: &Program, run: &RunArgs) -> Result<Inputs> {
    optional_inputs(program, run)?.ok_or_else(|| {
        let names: Vec<String> = restride::user_inputs(program).map(|(_, n)| n.to_string()).collect();
        Failure::Usage(format!(
            "the program has no sample inputs: give {} with --inputs FILE, or draw them with --random SEED",
            names.join(", ")
        ))
    })
}

fn compile_options(screen: &Screen, run: &RunArgs) -> Result<CompileOptions> {
    let mut options = CompileOptions {
        check: !run.no_check,
        order: !run.no_reorder,
        budget: run.budget,
        progress: screen.progress(),
        ..CompileOptions::default()
    };
    options.place.views = !run.no_views;
    options.place.inputs_in_arena = run.alloc_graph_input;
    options.place.outputs_in_arena = run.alloc_graph_output;
    options.memories = memories(run)?;
    if let Some(align) = run.align {
        options.plan.align = align;
    }
    if let Some(steps) = run.search_steps {
        options.plan.search.budget = steps;
    }
    Ok(options)
}

fn memories(run: &RunArgs) -> Result<Vec<MemorySpec>> {
    if let Some((value, memory)) = run.pin.iter().find(|p| run.memories.iter().all(|m| m.0 != p.1)) {
        return Err(Failure::Usage(format!("{value} is pinned to {memory}, and --memories names no such memory")));
    }
    let pins = |memory: &str| run.pin.iter().filter(|p| p.1 == memory).map(|p| p.0.clone()).collect();
    let spec = |(name, capacity): &(String, Option<i64>)| MemorySpec {
        name: name.clone(),
        capacity: *capacity,
        pins: pins(name),
    };
    Ok(run.memories.iter().map(spec).collect())
}

fn run_options(run: &RunArgs) -> RunOptions {
    RunOptions { seed: run.seed, threads: run.threads.max(1), ..RunOptions::default() }
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| Error::new(ErrorKind::File, format!("{}: {e}", path.display())).into())
}

fn write_json(path: Option<&Path>, value: impl FnOnce() -> serde_json::Value) -> Result<()> {
    match path {
        Some(path) => write_text(path, &serde_json::to_string_pretty(&value()).expect("plain data")),
        None => Ok(()),
    }
}

fn show(screen: &Screen, args: &ProgramArgs, stage: Option<StageArg>, run: &RunArgs) -> Result<()> {
    let program = open(screen, args)?;
    let wanted = |s: StageArg| stage.is_none() || stage == Some(s);
    if wanted(StageArg::Imported) {
        screen.print(&restride::text::print(&program))?;
    }
    if stage == Some(StageArg::Imported) {
        return Ok(());
    }
    let inputs = optional_inputs(&program, run)?;
    let compiled = Compiled::new(program, inputs.as_ref(), &compile_options(screen, run)?)?;
    if wanted(StageArg::Functional) {
        screen.print(&restride::text::print(compiled.functional()))?;
    }
    if wanted(StageArg::Placed) {
        let Some(inputs) = inputs else {
            return Err(Failure::Usage("a placement needs sizes: give --inputs FILE or --random SEED".into()));
        };
        screen.print(&compiled.prepare(&inputs)?.show())?;
    }
    Ok(())
}

fn run_program(
    screen: &Screen,
    args: &ProgramArgs,
    run: &RunArgs,
    out: Option<&Path>,
    via: Via,
    json: Option<&Path>,
) -> Result<()> {
    let program = open(screen, args)?;
    let inputs = inputs(&program, run)?;
    let before = inputs.deep_clone();
    let options = run_options(run);
    let (outputs, state, state_before) = match via {
        Via::Interp => {
            let mut state = State::new(&program)?;
            let old = state.deep_clone();
            screen.doing(Doing::Interpreting);
            let outputs = restride::interpret(&program, &inputs, &mut state, &options)?;
            (outputs, state, old)
        }
        Via::Functional => {
            let compiled = Compiled::new(program.clone(), Some(&inputs), &compile_options(screen, run)?)?;
            let mut state = State::new(&program)?;
            let old = state.deep_clone();
            screen.doing(Doing::InterpretingFunctional);
            let outputs = restride::interpret(compiled.functional(), &inputs, &mut state, &options)?;
            (outputs, state, old)
        }
        Via::Plan => {
            let saved = restride::saved_plan(&args.file, &open_options(args))?.map(std::sync::Arc::new);
            let making = CompileOptions { saved, ..compile_options(screen, run)? };
            let compiled = Compiled::new(program.clone(), Some(&inputs), &making)?;
            let mut instance = compiled.instance()?;
            let old = instance.state().deep_clone();
            let outputs = instance.run(&inputs, &options)?;
            let state = instance.into_state();
            (outputs, state, old)
        }
    };
    if let Some(path) = out {
        files::write_outputs(path, &program, (&before, &state_before), &outputs, &state)?;
    }
    let summary = tables::outputs(&program, (&before, &state_before), &outputs, &state);
    write_json(json, || summary.clone())?;
    screen.print(&tables::outputs_text(&summary))?;
    Ok(())
}

fn verify(screen: &Screen, args: &ProgramArgs, run: &RunArgs, json: Option<&Path>) -> Result<()> {
    let program = open(screen, args)?;
    let inputs = inputs(&program, run)?;
    let verdict = restride::verify(&program, &inputs, &run_options(run), &compile_options(screen, run)?)?;
    write_json(json, || tables::verdict_json(&verdict))?;
    screen.print(&tables::verdict_text(&verdict))?;
    match verdict.fault() {
        None => Ok(()),
        Some(why) => Err(Error::new(ErrorKind::Check, why).into()),
    }
}

/// What a functional program is written with.
enum Operators {
    AsTheyAre,
    Portable,
    Views,
}

fn functionalize(
    screen: &Screen,
    args: &ProgramArgs,
    output: &Path,
    operators: Operators,
    run: &RunArgs,
) -> Result<()> {
    let program = open(screen, args)?;
    let inputs = optional_inputs(&program, run)?;
    let compiled = Compiled::new(program, inputs.as_ref(), &compile_options(screen, run)?)?;
    match operators {
        Operators::AsTheyAre => save(compiled.functional(), output),
        Operators::Portable => save(&restride::portable(compiled.functional())?, output),
        Operators::Views => save(&compiled.with_views(ViewOptions { slices: false })?, output),
    }
}

/// What `grad` is told.
struct GradArgs<'a> {
    output: &'a Path,
    loss: &'a str,
    wrt: Option<Vec<String>>,
    keep: restride::Keep,
    max_trips: Option<u64>,
    optimizer: &'a OptimizerArgs,
}

fn grad(screen: &Screen, args: &ProgramArgs, way: GradArgs<'_>, run: &RunArgs) -> Result<()> {
    let GradArgs { output, loss, wrt, keep, max_trips, optimizer } = way;
    let optimizer = optimizer::chosen(optimizer)?;
    let position = loss.strip_prefix("output.").and_then(|i| i.parse().ok());
    let Some(position) = position else {
        return Err(Failure::Usage(format!("--loss {loss}: outputs are called output.0, output.1, …")));
    };
    let program = open(screen, args)?;
    let inputs = optional_inputs(&program, run)?;
    let compiled = Compiled::new(program, inputs.as_ref(), &compile_options(screen, run)?)?;
    let options = restride::GradOptions { loss: restride::Loss::Output(position), wrt, max_trips };
    let made = match optimizer {
        Some(o) => compiled.train(&options, &|step, parameter| o.update(step, parameter))?,
        None => compiled.grad(&options)?,
    };
    if keep == restride::Keep::All {
        return save(&made, output);
    }
    let kept = compiled.keep(&made, &options, keep, inputs.as_ref())?;
    save(&kept.program, output)?;
    if kept.again > 0 || keep != restride::Keep::Auto {
        screen.print(&format!(
            "backward keeps {} of forward instead of {}; {} of it computed again\n",
            tables::bytes(kept.bytes),
            tables::bytes(kept.all_bytes),
            if kept.again == 1 { "1 node".into() } else { format!("{} nodes", kept.again) }
        ))?;
    }
    Ok(())
}

fn reinplace(screen: &Screen, args: &ProgramArgs, output: &Path, views: bool, run: &RunArgs) -> Result<()> {
    let program = open(screen, args)?;
    let inputs = inputs(&program, run)?;
    let compiled = Compiled::new(program, Some(&inputs), &compile_options(screen, run)?)?;
    if views {
        return save(&compiled.with_views(ViewOptions::default())?, output);
    }
    save(&compiled.reinplaced()?, output)
}

fn save(program: &Program, output: &Path) -> Result<()> {
    if output.extension().is_some_and(|e| e == "fx") {
        return write_text(output, &restride::text::print(&restride::written(program)?));
    }
    restride::save(program, output)?;
    Ok(())
}

/// Where `compile` writes what, beside the table.
struct CompileTo<'a> {
    output: Option<&'a Path>,
    report: Option<&'a Path>,
    json: Option<&'a Path>,
}

fn compile(screen: &Screen, args: &ProgramArgs, to: &CompileTo, run: &RunArgs) -> Result<()> {
    let start = std::time::Instant::now();
    let program = open(screen, args)?;
    let import = start.elapsed();
    let inputs = inputs(&program, run)?;
    let compiled = Compiled::new(program, Some(&inputs), &compile_options(screen, run)?)?;
    let report = match to.report {
        None => {
            let report = compiled.prepare(&inputs)?.report();
            Report { times: Times { import, ..report.times }, ..report }
        }
        Some(path) => {
            let mut overview = compiled.prepare(&inputs)?.overview();
            overview.report.times.import = import;
            screen.doing("writing the report");
            write_text(path, &page::html(&overview))?;
            overview.report
        }
    };
    write_json(to.json, || tables::report_json(&report))?;
    if let Some(path) = to.output {
        screen.doing("writing the program");
        compiled.save(&inputs, path)?;
    }
    screen.print(&tables::report_text(&report))?;
    Ok(())
}

fn plan(screen: &Screen, args: &ProgramArgs, json: Option<&Path>, run: &RunArgs) -> Result<()> {
    let program = open(screen, args)?;
    let inputs = inputs(&program, run)?;
    let compiled = Compiled::new(program, Some(&inputs), &compile_options(screen, run)?)?;
    let plan = compiled.prepare(&inputs)?.plan_table();
    write_json(json, || tables::plan_json(&plan))?;
    screen.print(&tables::plan_text(&plan))?;
    Ok(())
}

fn explain(
    screen: &Screen,
    args: &ProgramArgs,
    node: Option<&str>,
    all: bool,
    json: Option<&Path>,
    run: &RunArgs,
) -> Result<()> {
    let program = open(screen, args)?;
    let inputs = inputs(&program, run)?;
    let compiled = Compiled::new(program.clone(), Some(&inputs), &compile_options(screen, run)?)?;
    let mut found = compiled.prepare(&inputs)?.explain();
    if let Some(name) = node {
        found = found.about(name, &[&program, compiled.functional()])?;
    }
    write_json(json, || explain::json(&found))?;
    screen.print(&explain::text(&found, node, all || node.is_some()))?;
    Ok(())
}

fn time(screen: &Screen, args: &ProgramArgs, json: Option<&Path>, run: &RunArgs) -> Result<()> {
    let program = open(screen, args)?;
    let inputs = inputs(&program, run)?;
    let compiled = Compiled::new(program.clone(), Some(&inputs), &compile_options(screen, run)?)?;
    screen.doing("running");
    let found = bench::measure(&program, &compiled, &inputs, &run_options(run))?;
    write_json(json, || bench::json(&found))?;
    screen.print(&bench::text(&found))?;
    Ok(())
}

fn ops(screen: &Screen, json: Option<&Path>) -> Result<()> {
    let rows = restride::coverage();
    write_json(json, || tables::ops_json(&rows))?;
    screen.print(&tables::ops_text(&rows))?;
    Ok(())
}
