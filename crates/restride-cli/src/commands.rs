//! What each command does.

use crate::args::{
    BenchArgs, Cli, Command, Compile, EmitForm, Explain, Functionalize, GivenArgs, GradArgs, Man, MemoryArgs, PlanArgs,
    ProgramArgs, Reinplace, Run, RunArgs, Show, StageArg, Verify, Via,
};
use crate::screen::Screen;
use crate::{Failure, bench, explain, optimizer, page, tables};
use clap::CommandFactory;
use restride::{
    CompileOptions, Compiled, Doing, Error, ErrorKind, GivenInputs, GraphForm, Inputs, MemorySpec, OpenOptions,
    Overview, Program, Report, RunOptions, State, Times, ViewOptions, files,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

type Result<T> = std::result::Result<T, Failure>;

const GIVE_INPUTS: &str = "give inputs with --inputs FILE, or draw them with --random SEED";

/// Runs a command.
pub fn run(screen: &Screen, command: &Command) -> Result<()> {
    match command {
        Command::Show(args) => show(screen, args),
        Command::Run(args) => run_program(screen, args),
        Command::Verify(args) => verify(screen, args),
        Command::Functionalize(args) => functionalize(screen, args),
        Command::Reinplace(args) => reinplace(screen, args),
        Command::Compile(args) => compile(screen, args),
        Command::Grad(args) => grad(screen, args),
        Command::Bench(args) => time(screen, args),
        Command::Plan(args) => plan(screen, args),
        Command::Explain(args) => explain(screen, args),
        Command::Ops(args) => {
            let rows = restride::coverage();
            write_json(screen, args.json.json.as_deref(), || tables::ops_json(&rows))?;
            screen.print(&tables::ops_text(&rows))
        }
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "restride", &mut script);
            screen.result(&script)
        }
        Command::Man(args) => man(screen, args),
    }
}

/// Where a program is, and how to open it.
struct ProgramSource {
    file: PathBuf,
    options: OpenOptions,
}

impl ProgramSource {
    fn new(screen: &Screen, args: &ProgramArgs, given: &GivenArgs) -> Result<ProgramSource> {
        let file = screen.read_file(&args.file, |b| if b.starts_with(b"PK") { "pt2" } else { "fx" })?;
        let archive = |ext: &std::ffi::OsStr| ext == "pt2" || ext == "pt";
        let text = file.extension().is_some_and(|e| e == "fx");
        if text && args.model.is_some() {
            return usage("--model names a model of a .pt2, and FILE is a text", "leave it out");
        }
        if file.extension().is_some_and(archive) && args.weights.is_some() {
            return usage("--weights gives weights to a text, and FILE is an archive with its own", "leave it out");
        }
        let dynamic = args.dynamic.iter().flat_map(|d| d.0.clone()).collect();
        let mut inputs = GivenInputs { dynamic, ..GivenInputs::default() };
        if let Some(path) = &given.inputs {
            inputs.items = files::given_inputs(&screen.read_file(path, inputs_format)?)?;
        }
        inputs.items.extend(given.types());
        let options = OpenOptions {
            model: args.model.clone(),
            weights: args.weights.as_ref().map(|p| screen.read_file(p, |_| "pt2")).transpose()?,
            given_weights: None,
            ops: args.ops.as_ref().map(|p| screen.read_file(p, |_| "txt")).transpose()?,
            no_mmap: args.no_mmap,
            limits: args.limits(),
            inputs,
        };
        Ok(ProgramSource { file, options })
    }

    fn open(&self, screen: &Screen) -> Result<Program> {
        screen.doing("opening");
        let program = restride::open(&self.file, &self.options).or_else(|e| match e {
            Error { kind: ErrorKind::Inputs, what, help: Some(help), node: None, .. } => usage(what, help),
            other => Err(other.into()),
        })?;
        program.notes.iter().for_each(|note| screen.note(note));
        Ok(program)
    }
}

fn open(screen: &Screen, args: &ProgramArgs, given: &GivenArgs) -> Result<Program> {
    ProgramSource::new(screen, args, given)?.open(screen)
}

/// The extension of a tensor file on standard input.
fn inputs_format(bytes: &[u8]) -> &'static str {
    match bytes.trim_ascii_start() {
        [b'P', b'K', ..] => "npz",
        [b'{', ..] => "json",
        _ => "safetensors",
    }
}

fn usage<T>(what: impl Into<String>, help: impl Into<String>) -> Result<T> {
    Err(Failure::Usage(what.into(), help.into()))
}

/// The inputs: given, drawn, or stored with the program; `None` where the program takes some and has none of these.
fn inputs(screen: &Screen, program: &Program, args: &GivenArgs) -> Result<Option<Inputs>> {
    let (from, inputs) = if let Some(path) = &args.inputs {
        let inputs = files::read_inputs(&screen.read_file(path, inputs_format)?, program)?;
        (path.display().to_string(), Some(inputs))
    } else if let Some(seed) = args.seed() {
        // A TorchScript archive and a graph without types are recorded for types of their own.
        let types = args.types();
        let sized = program.sample_inputs.is_some() || !program.symbols.is_empty();
        let drawn = if sized && !types.is_empty() {
            restride::random_inputs_of(program, seed, &types)?
        } else {
            restride::random_inputs(program, seed)?
        };
        (format!("drawn from seed {seed}"), Some(drawn))
    } else if let Some(samples) = Inputs::from_samples(program) {
        ("the sample inputs in the file".into(), Some(samples?))
    } else if restride::user_inputs(program).next().is_none() {
        ("the program takes none".into(), Some(Inputs::default()))
    } else {
        ("none; sizes as declared".into(), None)
    };
    screen.detail(&format!("inputs: {from}"));
    Ok(inputs)
}

/// The inputs of a run, which needs their values.
fn values(screen: &Screen, program: &Program, args: &GivenArgs) -> Result<Inputs> {
    let names: Vec<String> = restride::user_inputs(program).map(|(_, n)| n.to_string()).collect();
    match inputs(screen, program, args)? {
        Some(inputs) => Ok(inputs),
        None => usage(
            "the program has no sample inputs",
            format!("give {} with --inputs FILE, or draw them with --random SEED", names.join(", ")),
        ),
    }
}

/// The inputs that a program is placed for: without any, those of the declared sizes.
fn placed_for(compiled: &Compiled, inputs: Option<Inputs>) -> Result<Inputs> {
    if let Some(inputs) = inputs {
        return Ok(inputs);
    }
    if let Some(node) = compiled.learns().first() {
        return usage(format!("the sizes after {node} depend on data"), GIVE_INPUTS);
    }
    restride::declared_inputs(compiled.functional()).or_else(|e| usage(e.what, GIVE_INPUTS))
}

fn compile_options(screen: &Screen, given: &GivenArgs, memory: Option<&MemoryArgs>) -> Result<CompileOptions> {
    let mut options =
        CompileOptions { check: !given.no_check, progress: screen.progress(), ..CompileOptions::default() };
    let Some(args) = memory else { return Ok(options) };
    options.order = !args.no_reorder;
    options.fold = !args.no_fold;
    options.fuse.most = if args.no_fuse { 0 } else { args.fuse_limit.unwrap_or(options.fuse.most) };
    options.fuse.heads = args.fuse_heads;
    options.fuse.tiles = args.fuse_tiles;
    options.budget = args.budget;
    options.place.views = !args.no_views;
    options.place.inputs_in_arena = args.alloc_graph_input;
    options.place.outputs_in_arena = args.alloc_graph_output;
    options.memories = memories(args)?;
    options.plan.align = args.align.unwrap_or(options.plan.align);
    options.plan.search.budget = args.search_steps.unwrap_or(options.plan.search.budget);
    Ok(options)
}

fn memories(args: &MemoryArgs) -> Result<Vec<MemorySpec>> {
    if let Some((value, memory)) = args.pin.iter().find(|p| args.memories.iter().all(|m| m.0 != p.1)) {
        return usage(format!("{value} is pinned to {memory}, and --memories names no such memory"), "name it there");
    }
    let pins = |memory: &str| args.pin.iter().filter(|p| p.1 == memory).map(|p| p.0.clone()).collect();
    let spec =
        |(name, capacity): &(String, _)| MemorySpec { name: name.clone(), capacity: *capacity, pins: pins(name) };
    Ok(args.memories.iter().map(spec).collect())
}

fn run_options(args: &RunArgs) -> RunOptions {
    RunOptions { seed: args.seed, threads: args.threads.max(1), ..RunOptions::default() }
}

fn write_json(screen: &Screen, path: Option<&Path>, value: impl FnOnce() -> serde_json::Value) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let mut text = serde_json::to_string_pretty(&value()).expect("plain data");
    if crate::screen::is_dash(path) {
        text.push('\n');
    }
    screen.write_text(path, &text)
}

/// Writes a program as a `.pt2`, or as text where the name ends in `.fx`.
fn save(screen: &Screen, program: &Program, output: &Path) -> Result<()> {
    if output.extension().is_some_and(|e| e == "fx") {
        return screen.write_text(output, &restride::text::print(&restride::written(program)?));
    }
    screen.write_file(output, "archive.pt2", |path| restride::save(program, path))
}

fn show(screen: &Screen, args: &Show) -> Result<()> {
    let shown = |s: StageArg| args.stage.is_none_or(|stage| stage == s);
    if let (false, Some(option)) = (shown(StageArg::Placed), args.memory.given()) {
        return usage(format!("{option} changes the placed stage alone"), "show it with --stage placed");
    }
    let program = open(screen, &args.program, &args.given)?;
    if shown(StageArg::Imported) {
        screen.result(restride::text::print(&program).as_bytes())?;
    }
    if args.stage == Some(StageArg::Imported) {
        return Ok(());
    }
    let inputs = inputs(screen, &program, &args.given)?;
    let options = compile_options(screen, &args.given, Some(&args.memory))?;
    let compiled = Compiled::new(program, inputs.as_ref(), &options)?;
    if shown(StageArg::Functional) {
        screen.result(restride::text::print(compiled.functional()).as_bytes())?;
    }
    if shown(StageArg::Placed) {
        let prepared = compiled.prepare(&placed_for(&compiled, inputs)?)?;
        screen.result(prepared.show().as_bytes())?;
    }
    Ok(())
}

fn run_program(screen: &Screen, args: &Run) -> Result<()> {
    if let (true, Some(option)) = (args.via != Via::Plan, args.memory.given()) {
        return usage(format!("{option} changes the planned run alone"), "leave it out, or run --via plan");
    }
    let source = ProgramSource::new(screen, &args.program, &args.given)?;
    let program = source.open(screen)?;
    let inputs = values(screen, &program, &args.given)?;
    let before = inputs.deep_clone();
    let options = run_options(&args.run);
    let making = compile_options(screen, &args.given, Some(&args.memory))?;
    let (outputs, state, state_before) = match args.via {
        Via::Plan => {
            let saved = restride::saved_plan(&source.file, &source.options)?.map(Arc::new);
            let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions { saved, ..making })?;
            let mut instance = compiled.instance()?;
            // A fresh state shares the file's bytes: the comparison after the run skips every tensor that the run did not write.
            let old = State::new(compiled.functional())?;
            given_state(screen, args, instance.state_mut())?;
            (instance.run(&inputs, &options)?, instance.into_state(), old)
        }
        Via::Interp | Via::Functional => {
            let functional = args.via == Via::Functional;
            let made = || Compiled::new(program.clone(), Some(&inputs), &making)?.at(&inputs);
            let compiled = functional.then(made).transpose()?;
            let (mut state, old) = (State::new(&program)?, State::new(&program)?);
            given_state(screen, args, &mut state)?;
            screen.doing(if functional { Doing::InterpretingFunctional } else { Doing::Interpreting });
            let stage = compiled.as_ref().map_or(&program, Compiled::functional);
            (restride::interpret(stage, &inputs, &mut state, &options)?, state, old)
        }
    };
    if let Some(path) = &args.outputs {
        let write = |path: &Path| files::write_outputs(path, &program, (&before, &state_before), &outputs, &state);
        screen.write_file(path, "outputs.json", write)?;
    }
    let summary = tables::outputs(&program, (&before, &state_before), &outputs, &state);
    write_json(screen, args.json.json.as_deref(), || summary.clone())?;
    screen.print(&tables::outputs_text(&summary))
}

/// Reads the state of `--state`. What a run then writes is what differs from the program's own state, so that runs can be chained.
fn given_state(screen: &Screen, args: &Run, state: &mut State) -> Result<()> {
    match &args.state {
        Some(path) => Ok(files::read_state(&screen.read_file(path, inputs_format)?, state)?),
        None => Ok(()),
    }
}

fn verify(screen: &Screen, args: &Verify) -> Result<()> {
    let program = open(screen, &args.program, &args.given)?;
    let inputs = values(screen, &program, &args.given)?;
    let options = compile_options(screen, &args.given, Some(&args.memory))?;
    let verdict = restride::verify(&program, &inputs, &run_options(&args.run), &options)?;
    write_json(screen, args.json.json.as_deref(), || tables::verdict_json(&verdict))?;
    screen.print(&tables::verdict_text(&verdict))?;
    verdict.fault().map_or(Ok(()), |why| Err(Error::new(ErrorKind::Check, why).into()))
}

/// A program made functional for a file, with notes on what its inputs decide.
fn functional(screen: &Screen, program: Program, inputs: Option<&Inputs>, given: &GivenArgs) -> Result<Compiled> {
    let told = program.notes.len();
    let compiled = Compiled::new(program, inputs, &compile_options(screen, given, None)?)?;
    compiled.functional().notes.iter().skip(told).for_each(|note| screen.note(note));
    Ok(compiled)
}

fn functionalize(screen: &Screen, args: &Functionalize) -> Result<()> {
    let source = ProgramSource::new(screen, &args.program, &args.given)?;
    let program = source.open(screen)?;
    let inputs = inputs(screen, &program, &args.given)?;
    let compiled = functional(screen, program, inputs.as_ref(), &args.given)?;
    let made = match (args.portable, args.views) {
        (true, _) => restride::portable(compiled.functional())?,
        (_, true) => compiled.with_views(ViewOptions { slices: false })?,
        _ => compiled.functional().clone(),
    };
    if let Some(emit) = args.emit {
        let form = match emit {
            EmitForm::Fx => restride::graph_form(&source.file, &source.options)?.unwrap_or(GraphForm::Nodes),
            EmitForm::Nodes => GraphForm::Nodes,
            EmitForm::Code => GraphForm::Code,
            EmitForm::Exported => GraphForm::Exported,
            EmitForm::Jit => GraphForm::JitIr,
        };
        screen.result(restride::print_graph(&restride::written(&made)?, form)?.as_bytes())?;
    }
    args.output.as_ref().map_or(Ok(()), |output| save(screen, &made, output))
}

fn reinplace(screen: &Screen, args: &Reinplace) -> Result<()> {
    let program = open(screen, &args.program, &args.given)?;
    let inputs = inputs(screen, &program, &args.given)?;
    let compiled = functional(screen, program, inputs.as_ref(), &args.given)?;
    let out = if args.views { compiled.with_views(ViewOptions::default())? } else { compiled.reinplaced()? };
    save(screen, &out, &args.output.output)
}

fn grad(screen: &Screen, args: &GradArgs) -> Result<()> {
    let output = &args.output.output;
    let optimizer = optimizer::chosen(&args.optimizer)?;
    let program = open(screen, &args.program, &args.given)?;
    let inputs = inputs(screen, &program, &args.given)?;
    let compiled = functional(screen, program, inputs.as_ref(), &args.given)?;
    let loss = restride::Loss::Output(args.loss);
    let options = restride::GradOptions { loss, wrt: args.wrt.clone(), max_trips: args.max_trips };
    let write = |made: Program, output: &Path| {
        if args.keep == restride::Keep::All {
            return save(screen, &made, output).map(|()| None);
        }
        let kept = compiled.keep(&made, &options, args.keep, inputs.as_ref())?;
        save(screen, &kept.program, output)?;
        Ok::<_, Failure>(Some(kept))
    };
    let kept = match (optimizer, optimizer::parallel(&args.optimizer)?) {
        (Some(o), Some(parallel)) => {
            let mut last = None;
            for (path, parallel) in optimizer::of_ranks(&parallel, args.optimizer.shard, output)? {
                let made =
                    compiled.train_parallel(&options, &parallel, &|step, parameter| o.update(step, parameter))?;
                last = write(made, &path)?;
            }
            last
        }
        (Some(o), None) => write(compiled.train(&options, &|step, parameter| o.update(step, parameter))?, output)?,
        (None, _) => write(compiled.grad(&options)?, output)?,
    };
    let Some(kept) = kept.filter(|k| k.again > 0 || args.keep != restride::Keep::Auto) else { return Ok(()) };
    screen.print(&format!(
        "backward keeps {} of forward instead of {}; {} of it recomputed\n",
        tables::bytes(kept.bytes),
        tables::bytes(kept.all_bytes),
        if kept.again == 1 { "1 node".into() } else { format!("{} nodes", kept.again) }
    ))
}

fn compile(screen: &Screen, args: &Compile) -> Result<()> {
    let start = Instant::now();
    let program = open(screen, &args.program, &args.given)?;
    let import = start.elapsed();
    let inputs = inputs(screen, &program, &args.given)?;
    let options = compile_options(screen, &args.given, Some(&args.memory))?;
    let compiled = Compiled::new(program, inputs.as_ref(), &options)?;
    let inputs = placed_for(&compiled, inputs)?;
    let prepared = compiled.prepare(&inputs)?;
    let report = prepared.report();
    let report = Report { times: Times { import, ..report.times }, ..report };
    if let Some(path) = &args.report {
        screen.doing("writing the report");
        let overview = Overview { report: report.clone(), ..prepared.overview() };
        screen.write_text(path, &page::html(&overview))?;
    }
    let (rates, ranks) = simulated(&prepared, args)?;
    write_json(screen, args.json.json.as_deref(), || {
        let mut out = tables::report_json(&report);
        if !ranks.is_empty() {
            out["world"] = tables::simulated_json(&rates, &ranks);
        }
        out
    })?;
    if let Some(path) = &args.output {
        screen.doing("writing the program");
        screen.write_file(path, "archive.pt2", |path| compiled.save(&inputs, path))?;
    }
    screen.print(&tables::report_text(&report))?;
    if ranks.is_empty() { Ok(()) } else { screen.print(&format!("\n{}", tables::simulated_text(&rates, &ranks))) }
}

/// The ranks of `--world`, simulated from rates.
fn simulated(prepared: &restride::Prepared, args: &Compile) -> Result<(restride::Rates, Vec<restride::SimulatedRank>)> {
    let own = restride::Rates::default();
    let rates = restride::Rates {
        link: args.link.map_or(own.link, |n| n as f64),
        latency: args.latency.map_or(own.latency, |us| us * 1e-6),
        memory: args.memory_rate.map_or(own.memory, |n| n as f64),
    };
    let positive = |x: f64| x.is_finite() && x > 0.0;
    let latency = rates.latency == 0.0 || positive(rates.latency);
    if !(positive(rates.link) && positive(rates.memory) && latency) {
        return usage("a rate that is not positive", "as in --link 25GB --latency 5 --memory-rate 100GB");
    }
    if args.world.contains(&0) {
        return usage("--world 0", "give numbers of ranks from 1");
    }
    let ranks = args.world.iter().map(|n| prepared.simulate(*n, &rates)).collect::<restride::Result<_>>()?;
    Ok((rates, ranks))
}

fn plan(screen: &Screen, args: &PlanArgs) -> Result<()> {
    let program = open(screen, &args.program, &args.given)?;
    let inputs = inputs(screen, &program, &args.given)?;
    let options = compile_options(screen, &args.given, Some(&args.memory))?;
    let compiled = Compiled::new(program, inputs.as_ref(), &options)?;
    let plan = compiled.prepare(&placed_for(&compiled, inputs)?)?.plan_table();
    write_json(screen, args.json.json.as_deref(), || tables::plan_json(&plan))?;
    screen.print(&tables::plan_text(&plan))
}

fn explain(screen: &Screen, args: &Explain) -> Result<()> {
    let program = open(screen, &args.program, &args.given)?;
    let inputs = inputs(screen, &program, &args.given)?;
    let options = compile_options(screen, &args.given, Some(&args.memory))?;
    let compiled = Compiled::new(program.clone(), inputs.as_ref(), &options)?;
    let mut found = compiled.prepare(&placed_for(&compiled, inputs)?)?.explain();
    if let Some(name) = &args.node {
        found = found.about(name, &[&program, compiled.functional()])?;
    }
    write_json(screen, args.json.json.as_deref(), || explain::json(&found))?;
    screen.print(&explain::text(&found, args.node.as_deref(), args.all || args.node.is_some()))
}

fn time(screen: &Screen, args: &BenchArgs) -> Result<()> {
    let program = open(screen, &args.program, &args.given)?;
    let inputs = values(screen, &program, &args.given)?;
    let options = compile_options(screen, &args.given, Some(&args.memory))?;
    let compiled = Compiled::new(program.clone(), Some(&inputs), &options)?;
    screen.doing(Doing::Running);
    let found = bench::measure(&program, &compiled, &inputs, &run_options(&args.run))?;
    write_json(screen, args.json.json.as_deref(), || bench::json(&found))?;
    screen.print(&bench::text(&found, args.steps))
}

fn man(screen: &Screen, args: &Man) -> Result<()> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).expect("memory takes all bytes");
        return screen.result(&page);
    };
    let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.map_err(|e| Error::new(ErrorKind::File, format!("{}: {e}", dir.display())).into())
}
