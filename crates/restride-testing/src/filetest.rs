//! Tests that are files: a program, and behind it what each command makes of it.
//!
//! ```text
//! // What this is about.
//! // run: functionalize, run
//! // share: %x %y
//! graph(%x: f32[4], %y: f32[2]+2) { … }
//!
//! // == functionalize
//! // (the expected output, line by line)
//! ```
//!
//! `run:` lists the commands, `share:` inputs that lie on one storage as their types say, `sizes: s0=3` what symbols are
//! in a run, `trips:` how often loops run at most where they are differentiated, `ops:` the schema of a user's operator, `caller: output 0 = 7` what the caller fills a tensor with after it. Weights count 0, 1, 2, … like inputs.
//! `scripts/check/filetests_check.py` holds the runs to eager PyTorch. With `RESTRIDE_BLESS=1` in the environment the expected
//! outputs are rewritten instead of compared. Commands:
//!
//! - `verify`: what the verifier says of the program.
//! - `functionalize`: the functional program, or the error.
//! - `written`: the functional program as files say it. `portable`: the same in operators that other compilers take.
//! - `grad`: the program of forward and backward, its first output being the loss, or the error.
//! - `sgd`, `adam`: a training step with that optimizer, with momentum, or the error.
//! - `recompute`: the program with what is recomputed so that, by the model of memory, as many bytes live at once as the
//!   line `most:` says.
//! - `place`: the placed program and its plan. `remarks`: the decisions that led to it, in program order.
//! - `reinplace`: the program with in-place operators and views. `views`: the functional one with views.
//! - `copies`: every copy that is left in the placed program, with its bytes and why it stays.
//! - `run`: what the inputs and outputs are after a run on inputs that count 0, 1, 2, …; all ways must agree on it.
//! - `share-later`: what a run on inputs that share says of a program that was compiled for inputs apart.
//! - `part-later`: what a run on inputs apart says of a program that was compiled for inputs that share.

use crate::outcome::{Leftovers, WaysVerdict, difference, differential};
use restride::{Adam, CompileOptions, Compiled, Explanation, Optimizer, Sgd};
use restride_exec::copy::{copy_into, resolve};
use restride_exec::inputs::evaluate;
use restride_exec::interp::RunOptions;
use restride_exec::{Inputs, RunValue};
use restride_ir::text::{attach_weights, parse, print, print_node, print_placed};
use restride_ir::{Arg, Binding, DType, Error, InputKind, Layout, Plan, Program, Scalar, TensorType, Type, Weights};
use restride_passes::functionalize::{FunctionalizeOptions, Share};
use restride_passes::fuse::{FuseOptions, fuse};
use restride_passes::place::{PlaceOptions, Placed};
use restride_passes::plan::PlanOptions;
use restride_passes::recompute::{again, modelled, recompute};
use restride_passes::{ViewOptions, functionalize, lower, materialize, place, plan::plan, simplify, specialize, views};
use restride_tensor::{Bytes, RawTensor, Storage};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All `.fx` files under a directory, sorted.
///
/// # Panics
/// If a directory cannot be read.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("a directory that can be read").path();
        if path.is_dir() {
            out.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "fx") {
            out.push(path);
        }
    }
    out.sort();
    out
}

/// Runs the test of a file. With `bless` the file is rewritten where it differs.
///
/// # Errors
/// What differs, or what is wrong with the file.
pub fn run(path: &Path, bless: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let source = text.split("\n// == ").next().unwrap_or(&text).trim_end();
    let mut out = format!("{source}\n");
    for (name, made) in outputs(source).map_err(|e| format!("{}: {e}", path.display()))? {
        let _ = writeln!(out, "\n// == {name}");
        for line in made.trim_end().lines() {
            out.push_str(if line.is_empty() { "//" } else { "// " });
            out.push_str(line);
            out.push('\n');
        }
    }
    if out == text {
        return Ok(());
    }
    if bless {
        return std::fs::write(path, out).map_err(|e| format!("{}: {e}", path.display()));
    }
    let differs = text.lines().zip(out.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or_else(|| text.lines().count().min(out.lines().count()));
    let at = |t: &str| t.lines().nth(line).unwrap_or("(the end)").to_string();
    Err(format!("{}:{}:\n  expected {}\n  made     {}", path.display(), line + 1, at(&text), at(&out)))
}

/// What each command of a file gives.
fn outputs(source: &str) -> Result<Vec<(String, String)>, String> {
    let directive = |key: &str| {
        let lines = source.lines().filter_map(|l| l.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(':'));
        lines.map(str::trim).collect::<Vec<_>>()
    };
    let commands: Vec<&str> = directive("run").iter().flat_map(|l| l.split(',')).map(str::trim).collect();
    if commands.is_empty() {
        return Err("there is no `// run:` line".into());
    }
    for schema in directive("ops") {
        restride_ops::register_custom(schema).map_err(|e| e.to_string())?;
    }
    let mut program = match parse(source, &restride_ops::lookup) {
        Ok(p) => p,
        // A text that cannot be read is a test of what is said about it.
        Err(e) => return Ok(commands.iter().map(|c| (c.to_string(), format!("error: {e}"))).collect()),
    };
    if !program.weights.tensors.is_empty() {
        let weights = counting_weights(&program);
        attach_weights(&mut program, Arc::new(weights)).map_err(|e| e.to_string())?;
    }
    let sizes = sizes(&program, &directive("sizes"))?;
    let groups: Vec<Vec<&str>> = directive("share").iter().map(|l| l.split_whitespace().collect()).collect();
    let shares = groups.iter().map(|g| share(&program, g, &sizes)).collect::<Result<Vec<_>, _>>()?;
    let max_trips = directive("trips").iter().find_map(|n| n.parse().ok());
    let caller = directive("caller").into_iter().map(caller_s_write).collect::<Result<Vec<_>, _>>()?;
    let test = Test { program, shares, sizes, caller };
    let (program, shares) = (&test.program, &test.shares);
    let made = |command: &&str| {
        let text = match *command {
            "verify" => restride_ir::verify(program).map(|()| "ok".to_string()),
            "functionalize" => functional(program, shares).map(|p| print(&p)),
            "written" => functional(program, shares).and_then(|p| restride::written(&p)).map(|p| print(&p)),
            "portable" => functional(program, shares).and_then(|p| restride::portable(&p)).map(|p| print(&p)),
            "grad" => functional(program, shares)
                .and_then(|p| restride::grad(&p, &restride::GradOptions { max_trips, ..Default::default() }))
                .map(|p| print(&p)),
            "sgd" => trained(program, shares, Optimizer::Sgd(Sgd { momentum: 0.5, ..Sgd::default() })),
            "adam" => trained(program, shares, Optimizer::Adam(Adam::default())),
            "recompute" => functional(program, shares).and_then(|p| recomputed(&p, &test.sizes, &directive("most"))),
            "fuse" => test.lowered().and_then(|p| fused(&p, &everything())).map(|p| print(&p)),
            "fuse by default" => test.lowered().and_then(|p| fused(&p, &FuseOptions::default())).map(|p| print(&p)),
            "place" => test.placed(false).map(|p| p.text()),
            "place fused" => test.placed(true).map(|p| p.text()),
            "remarks" => test.placed(false).map(|p| p.remarks()),
            "copies" => test.placed(false).map(|p| p.copies()),
            "reinplace" => functional(program, shares)
                .and_then(|p| materialize(&p))
                .and_then(|(p, _)| restride_ir::verify(&p).map(|()| print(&p))),
            "views" => view_form(program, shares, true),
            "functional-views" => view_form(program, shares, false),
            "run" => return Ok((command.to_string(), test.ran()?)),
            "share-later" => return Ok((command.to_string(), test.later(&[], shares)?)),
            "part-later" => return Ok((command.to_string(), test.later(shares, &[])?)),
            other => return Err(format!("there is no command {other}")),
        };
        Ok((command.to_string(), text.unwrap_or_else(|e| format!("error: {e}"))))
    };
    commands.iter().map(made).collect()
}

fn view_form(program: &Program, shares: &[Share], slices: bool) -> restride_ir::Result<String> {
    let out = views(&functional(program, shares)?, ViewOptions { slices })?;
    restride_ir::verify(&out)?;
    Ok(print(&out))
}

/// `s0=3 s1=4`
fn sizes(program: &Program, lines: &[&str]) -> Result<Binding, String> {
    let mut out = Binding::new();
    for pair in lines.iter().flat_map(|l| l.split_whitespace()) {
        let known = pair.split_once('=').and_then(|(n, v)| Some((program.symbols.get(n)?, v.parse::<i64>().ok()?)));
        let (symbol, value) = known.ok_or_else(|| format!("{pair:?} is no symbol of the program with its value"))?;
        out.insert(symbol.clone(), Scalar::Int(value));
    }
    Ok(out)
}

/// A tensor that the caller fills after a run: whether it is an output, its position, and what with.
type CallerWrite = (bool, usize, i64);

/// `output 0 = 7`
fn caller_s_write(line: &str) -> Result<CallerWrite, String> {
    let parts: Vec<&str> = line.split_whitespace().collect();
    let read = match parts[..] {
        [what @ ("input" | "output"), at, "=", value] => at.parse().ok().zip(value.parse().ok()).map(|x| (what, x)),
        _ => None,
    };
    let (what, (at, value)) = read.ok_or_else(|| format!("`caller: {line}` is not `output 0 = 7`"))?;
    Ok((what == "output", at, value))
}

/// Memory for the weights that a text declares.
fn counting_weights(program: &Program) -> Weights {
    let mut tensors = program.weights.tensors.clone();
    let mut position: BTreeMap<usize, usize> = BTreeMap::new();
    let mut memory: Vec<(DType, usize)> = Vec::new();
    for w in tensors.values_mut() {
        let at = *position.entry(w.storage).or_insert(memory.len());
        if at == memory.len() {
            memory.push((w.dtype, 0));
        }
        memory[at].1 = memory[at].1.max(w.layout.cell_range().end as usize * w.dtype.size());
        w.storage = at;
    }
    let storage = |(dtype, bytes): &(DType, usize)| Bytes::copy_of(&count(*dtype, bytes / dtype.size()).to_vec());
    Weights { storages: memory.iter().map(storage).collect(), tensors }
}

/// Inputs on one storage, as their types say.
fn share(program: &Program, names: &[&str], sizes: &Binding) -> Result<Share, String> {
    let mut share = Share { inputs: Vec::new(), bytes: 0, layouts: Vec::new() };
    for name in names {
        let named = |i: &usize| {
            let value = &program.graph().values[program.signature.inputs[*i].value];
            name.strip_prefix('%') == Some(&value.name)
        };
        let i = (0..program.signature.inputs.len()).find(named).ok_or_else(|| format!("there is no input {name}"))?;
        let ty = program.graph().values[program.signature.inputs[i].value].ty.tensor().and_then(|t| known(t, sizes));
        let ty = ty.ok_or_else(|| format!("{name} is no tensor of known sizes"))?;
        share.inputs.push(i);
        share.bytes = share.bytes.max(ty.layout.cell_range().end * ty.dtype.size() as i64);
        share.layouts.push((ty.layout.strides.clone(), ty.layout.offset));
    }
    Ok(share)
}

fn known(ty: &TensorType, sizes: &Binding) -> Option<TensorType<i64>> {
    Some(TensorType::new(ty.dtype, evaluate(&ty.layout, sizes)?))
}

fn functional(program: &Program, shares: &[Share]) -> Result<Program, Error> {
    restride_ir::verify(program)?;
    let out = functionalize(program, &FunctionalizeOptions { shares: shares.to_vec(), ..Default::default() })?;
    restride_ir::verify(&out)?;
    restride_check::functional(&out).map_err(|f| restride_check::error(&out, &f))?;
    Ok(out)
}

fn trained(program: &Program, shares: &[Share], optimizer: Optimizer) -> Result<String, Error> {
    let update: &restride::Update<'_> = &|step, parameter| optimizer.update(step, parameter);
    let out = restride::train(&functional(program, shares)?, &restride::GradOptions::default(), update)?;
    restride_ir::verify(&out)?;
    restride_check::functional(&out).map_err(|f| restride_check::error(&out, &f))?;
    Ok(print(&out))
}

/// The program with rematerialised values, for a peak of this number of bytes by the model of memory.
fn recomputed(program: &Program, sizes: &Binding, most: &[&str]) -> Result<String, Error> {
    let most = most.first().and_then(|n| n.parse().ok());
    let most = most.ok_or_else(|| Error::invalid("`recompute` needs a `// most: BYTES` line"))?;
    let program = simplify(&lower(&specialize(program, sizes))?)?;
    let found = recompute(&program, most);
    let made = again(&program, &found.sequence)?;
    restride_ir::verify(&made.program)?;
    let mut out = print(&made.program);
    for r in &made.remarks {
        let node = print_node(&made.program, made.program.graph(), r.node);
        let over = r.over.map_or_else(String::new, |v| format!(", %{}", program.graph().values[v].name));
        let _ = writeln!(out, "{node}\n  {}{over}: {} bytes", r.kind, r.bytes);
    }
    let _ = writeln!(out, "at most {} bytes at once instead of {}", found.peak, modelled(&program));
    Ok(out)
}

/// A placed program, checked.
struct CheckedPlacement {
    program: Program,
    placed: Placed,
    offsets: Plan,
}

impl CheckedPlacement {
    fn text(&self) -> String {
        print_placed(&self.program, &self.placed.placement, Some(&self.offsets), &Default::default())
    }

    fn remarks(&self) -> String {
        let mut out = String::new();
        for r in &self.placed.remarks {
            let graph = &self.program.graphs[r.graph];
            let node = print_node(&self.program, graph, r.node);
            let over = r.over.map_or_else(String::new, |v| format!(", %{}", graph.values[v].name));
            let by = match r.reason {
                restride_ir::Reason::StillRead { by: Some(reader) } => {
                    format!("still read by {}", print_node(&self.program, graph, reader))
                }
                other => other.to_string(),
            };
            let _ = writeln!(out, "{node}\n  {}{over}: {by}, {} bytes", r.kind.words(!r.missed()), r.bytes);
        }
        if out.is_empty() { "none".to_string() } else { out }
    }

    fn copies(&self) -> String {
        let mut out = String::new();
        for c in Explanation::of(&self.program, &self.placed.placement, &self.placed.remarks).copies {
            let what = match &c.site {
                Some(site) if c.run => format!("{site} is run"),
                Some(site) => format!("%{} to {}, for {site}", c.values.join(", %"), c.to),
                None => format!("%{} to {}", c.values.join(", %"), c.to),
            };
            let _ = writeln!(out, "{what}, {} bytes\n  {}", c.bytes, c.why());
        }
        if out.is_empty() { "none".to_string() } else { out }
    }
}

/// Groups with all that they may have.
fn everything() -> FuseOptions {
    FuseOptions { heads: true, tiles: true, ..FuseOptions::default() }
}

/// A program with fused nodes, held against the one without.
fn fused(program: &Program, options: &FuseOptions) -> Result<Program, Error> {
    let Some(fused) = fuse(program, options)? else { return Ok(program.clone()) };
    restride_ir::verify(&fused.program)?;
    restride_check::fusion(program, &fused.program).map_err(|f| restride_check::error(&fused.program, &f))?;
    Ok(fused.program)
}

/// A file's program and what it is run with.
struct Test {
    program: Program,
    shares: Vec<Share>,
    sizes: Binding,
    caller: Vec<CallerWrite>,
}

impl Test {
    fn lowered(&self) -> Result<Program, Error> {
        simplify(&lower(&specialize(&functional(&self.program, &self.shares)?, &self.sizes))?)
    }

    fn placed(&self, with_fusion: bool) -> Result<CheckedPlacement, Error> {
        let lowered = self.lowered()?;
        let program = if with_fusion { fused(&lowered, &everything())? } else { lowered };
        let placed = place(&program, &PlaceOptions::default())?;
        let offsets = plan(program.graph(), &placed.placement, &PlanOptions::default());
        restride_check::placement(&program, &placed.placement).map_err(|f| restride_check::error(&program, &f))?;
        restride_check::plan(&program, &placed.placement, &offsets).map_err(|f| restride_check::error(&program, &f))?;
        Ok(CheckedPlacement { program, placed, offsets })
    }

    /// Inputs and outputs after a run.
    fn ran(&self) -> Result<String, String> {
        let inputs = self.counting(&self.shares)?;
        let (program, options) = (&self.program, CompileOptions::default());
        match differential(program, &inputs, &options) {
            WaysVerdict::Agree => {}
            WaysVerdict::Rejected(why) => return Ok(format!("error: {why}")),
            WaysVerdict::Refused(way, why) => return Ok(format!("{way} refuses: {why}")),
            WaysVerdict::Wrong(way, why) => return Err(format!("{way} is wrong: {why}")),
        }
        let left = Leftovers::interp(program, &inputs, &RunOptions::default()).map_err(|e| e.to_string())?;
        if !self.caller.is_empty() {
            let compiled = Compiled::new(program.clone(), Some(&inputs), &options).map_err(|e| e.to_string())?;
            let options = RunOptions::default();
            let functional = compiled.at(&inputs).and_then(|c| Leftovers::interp(c.functional(), &inputs, &options));
            let planned = Leftovers::planned(&compiled, &inputs, &options);
            self.caller_writes(&left)?;
            for (way, other) in [("functional", functional), ("plan", planned)] {
                let other = other.map_err(|e| e.to_string())?;
                self.caller_writes(&other)?;
                if let Some(what) = difference(&left, &other) {
                    return Err(format!("{way} is wrong after the caller wrote: {what}"));
                }
            }
        }
        show(&left)
    }

    fn caller_writes(&self, left: &Leftovers) -> Result<(), String> {
        for &(output, at, value) in &self.caller {
            let target = if output { left.values.get(at) } else { left.inputs.get(at) };
            let target = target.and_then(RunValue::tensor).ok_or("the caller writes what is no tensor")?;
            let filled = RawTensor::from_slice(&vec![value; target.numel()], &target.layout().sizes);
            copy_into(target, &filled).map_err(|e| e.0)?;
        }
        Ok(())
    }

    /// Compiled for inputs that share in one way, run on inputs that share in another.
    fn later(&self, compiled_for: &[Share], run_on: &[Share]) -> Result<String, String> {
        let (before, inputs) = (self.counting(compiled_for)?, self.counting(run_on)?);
        let compiled = match Compiled::new(self.program.clone(), Some(&before), &CompileOptions::default()) {
            Ok(c) => c,
            Err(e) => return Ok(format!("error: {e}")),
        };
        let options = RunOptions::default();
        let functional = compiled.at(&inputs).and_then(|c| Leftovers::interp(c.functional(), &inputs, &options));
        match (functional, Leftovers::planned(&compiled, &inputs, &options)) {
            (Err(a), Err(b)) if a.to_string() == b.to_string() => Ok(format!("error: {a}")),
            (Err(a), Err(b)) => Err(format!("functional says {a}, plan {b}")),
            (Err(e), _) => Err(format!("plan accepts what functional refuses: {e}")),
            (_, Err(e)) => Err(format!("functional accepts what plan refuses: {e}")),
            (Ok(functional), Ok(planned)) => {
                let left = Leftovers::interp(&self.program, &inputs, &options).map_err(|e| e.to_string())?;
                for (way, other) in [("functional", functional), ("plan", planned)] {
                    if let Some(what) = difference(&left, &other) {
                        return Err(format!("{way} is wrong: {what}"));
                    }
                }
                show(&left)
            }
        }
    }

    /// Inputs whose cells count from 0.
    fn counting(&self, shares: &[Share]) -> Result<Inputs, String> {
        let program = &self.program;
        let mut storages: Vec<Option<Storage>> = vec![None; shares.len()];
        let mut values = Vec::new();
        for (i, spec) in program.signature.inputs.iter().enumerate() {
            match &spec.kind {
                InputKind::User(_) => {}
                InputKind::Fixed { value, .. } => {
                    values.push(match value {
                        Arg::Scalar(n) => RunValue::Scalar(n.constant().ok_or("a fixed input that is not known")?),
                        Arg::Str(s) => RunValue::Str(s.clone()),
                        _ => RunValue::None,
                    });
                    continue;
                }
                InputKind::Parameter(_) | InputKind::Buffer { .. } | InputKind::Constant(_) => continue,
                InputKind::Storage(_) | InputKind::Opaque(_) => {
                    return Err("`run` takes no programs with storages or objects as inputs".into());
                }
            }
            let ty = match &program.graph().values[spec.value].ty {
                Type::Tensor(ty) => known(ty, &self.sizes).ok_or("an input whose sizes no `sizes:` line says")?,
                Type::Scalar(e) => {
                    values.push(RunValue::Scalar(e.eval(&self.sizes)?));
                    continue;
                }
                _ => {
                    values.push(RunValue::None);
                    continue;
                }
            };
            let group = shares.iter().position(|s| s.inputs.contains(&i));
            let bytes = group.map_or(ty.layout.cell_range().end * ty.dtype.size() as i64, |g| shares[g].bytes);
            let fresh = || count(ty.dtype, bytes as usize / ty.dtype.size());
            let storage = match group {
                Some(g) => storages[g].get_or_insert_with(fresh).clone(),
                None => fresh(),
            };
            let t =
                RawTensor::new(storage, ty.dtype, ty.layout.clone()).ok_or("an input reaches beyond its storage")?;
            values.push(RunValue::Tensor(t));
        }
        Ok(Inputs::new(values))
    }
}

fn show(left: &Leftovers) -> Result<String, String> {
    let mut out = String::new();
    let mut storages: Vec<(usize, String)> = Vec::new();
    for (name, value) in left.named() {
        let RunValue::Tensor(t) = &value else {
            let _ = writeln!(out, "{name}: {value:?}");
            continue;
        };
        let id = t.storage().id();
        let shared = storages.iter().find(|s| s.0 == id).map(|s| s.1.clone());
        let on = shared.map_or(String::new(), |s| format!(", on the storage of {s}"));
        let resolved = resolve(t).map_err(|e| e.0)?;
        let _ = writeln!(out, "{name}: {}{} = {}{on}", t.dtype(), t.layout(), elements(&resolved));
        storages.push((id, name));
    }
    Ok(out)
}

fn elements(t: &RawTensor) -> String {
    let contiguous = Layout::contiguous(&t.layout().sizes);
    let own = RawTensor::zeros(t.dtype(), contiguous);
    copy_into(&own, t).expect("one element type");
    let flat = own.alias(t.dtype(), Layout::contiguous(&[t.numel() as i64])).expect("all elements");
    let list: Vec<String> = (0..t.numel() as i64).map(|i| flat.get(&[i]).to_string()).collect();
    format!("[{}]", list.join(" "))
}

fn count(dtype: DType, cells: usize) -> Storage {
    let n = cells as i64;
    let numbers: Vec<i64> = (0..n).collect();
    let own = RawTensor::zeros(dtype, Layout::contiguous(&[n]));
    copy_into(&own, &RawTensor::from_slice(&numbers, &[n])).expect("numbers convert");
    own.storage().clone()
}
