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
//! `run:` lists the commands, `share:` inputs that lie on one storage as their types say. With `RESTRIDE_BLESS=1` in the
//! environment the expected outputs are rewritten instead of compared. Commands:
//!
//! - `verify`: what the verifier says of the program.
//! - `functionalize`: the functional program, or the error.
//! - `place`: the placed program and its plan. `remarks`: the decisions that led to it.
//! - `run`: what the inputs and outputs are after a run on inputs that count 0, 1, 2, …; all ways must agree on it.

use crate::outcome::{Left, Verdict, differential};
use restride::CompileOptions;
use restride_exec::copy::{copy_into, resolve};
use restride_exec::interp::Options;
use restride_exec::{Inputs, RunValue};
use restride_ir::text::{parse, print, print_node, print_placed};
use restride_ir::{DType, Error, InputKind, Layout, Program, Type};
use restride_passes::functionalize::{Options as FunctionalizeOptions, Share};
use restride_passes::place::PlaceOptions;
use restride_passes::plan::PlanOptions;
use restride_passes::{functionalize, lower, place, plan::plan};
use restride_tensor::{Storage, Tensor};
use std::fmt::Write;
use std::path::{Path, PathBuf};

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
    let program = match parse(source, &restride_ops::lookup) {
        Ok(p) => p,
        // A text that cannot be read is a test of what is said about it.
        Err(e) => return Ok(commands.iter().map(|c| (c.to_string(), format!("error: {e}"))).collect()),
    };
    let groups: Vec<Vec<&str>> = directive("share").iter().map(|l| l.split_whitespace().collect()).collect();
    let shares = groups.iter().map(|g| share(&program, g)).collect::<Result<Vec<_>, _>>()?;
    let made = |command: &&str| {
        let text = match *command {
            "verify" => restride_ir::verify(&program).map(|()| "ok".to_string()),
            "functionalize" => functional(&program, &shares).map(|p| print(&p)),
            "place" => placed(&program, &shares).map(|p| p.0),
            "remarks" => placed(&program, &shares).map(|p| p.1),
            "run" => return Ok((command.to_string(), ran(&program, &shares)?)),
            other => return Err(format!("there is no command {other}")),
        };
        Ok((command.to_string(), text.unwrap_or_else(|e| format!("error: {e}"))))
    };
    commands.iter().map(made).collect()
}

/// Inputs on one storage, as their types say.
fn share(program: &Program, names: &[&str]) -> Result<Share, String> {
    let mut share = Share { inputs: Vec::new(), bytes: 0, layouts: Vec::new() };
    for name in names {
        let named = |i: &usize| {
            let value = &program.graph().values[program.signature.inputs[*i].value];
            name.strip_prefix('%') == Some(&value.name)
        };
        let i = (0..program.signature.inputs.len()).find(named).ok_or_else(|| format!("there is no input {name}"))?;
        let ty = program.graph().values[program.signature.inputs[i].value].ty.tensor().and_then(|t| t.known());
        let ty = ty.ok_or_else(|| format!("{name} is no tensor of known sizes"))?;
        share.inputs.push(i);
        share.bytes = share.bytes.max(ty.layout.cell_range().end * ty.dtype.size() as i64);
        share.layouts.push((ty.layout.strides.clone(), ty.layout.offset));
    }
    Ok(share)
}

fn functional(program: &Program, shares: &[Share]) -> Result<Program, Error> {
    restride_ir::verify(program)?;
    let out = functionalize(program, &FunctionalizeOptions { shares: shares.to_vec(), ..Default::default() })?;
    restride_ir::verify(&out)?;
    restride_check::functional(&out).map_err(|f| restride_check::error(&out, &f))?;
    Ok(out)
}

/// The placed program, and the remarks.
fn placed(program: &Program, shares: &[Share]) -> Result<(String, String), Error> {
    let program = lower(&functional(program, shares)?)?;
    let placed = place(&program, &PlaceOptions::default())?;
    let offsets = plan(&placed.placement, &PlanOptions::default());
    restride_check::placement(&program, &placed.placement).map_err(|f| restride_check::error(&program, &f))?;
    restride_check::plan(&placed.placement, &offsets).map_err(|f| restride_check::error(&program, &f))?;
    let mut remarks = String::new();
    for r in &placed.remarks {
        let node = print_node(&program, program.graph(), r.node);
        let by = match r.reason {
            restride_ir::Reason::StillRead { by: Some(reader) } => {
                format!("still read by {}", print_node(&program, program.graph(), reader))
            }
            other => other.to_string(),
        };
        let _ = writeln!(remarks, "{node}\n  {}: {by}, {} bytes", r.kind, r.bytes);
    }
    let text = print_placed(&program, &placed.placement, Some(&offsets), &Default::default());
    Ok((text, if remarks.is_empty() { "none".to_string() } else { remarks }))
}

/// Inputs and outputs after a run.
fn ran(program: &Program, shares: &[Share]) -> Result<String, String> {
    let inputs = counting(program, shares)?;
    match differential(program, &inputs, &CompileOptions::default()) {
        Verdict::Agree => {}
        Verdict::Rejected(why) => return Ok(format!("error: {why}")),
        Verdict::Refused(way, why) => return Ok(format!("{way} refuses: {why}")),
        Verdict::Wrong(way, why) => return Err(format!("{way} is wrong: {why}")),
    }
    let left = Left::interp(program, &inputs, &Options::default()).map_err(|e| e.to_string())?;
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

fn elements(t: &Tensor) -> String {
    let contiguous = Layout::contiguous(&t.layout().sizes);
    let own = Tensor::zeros(t.dtype(), contiguous);
    copy_into(&own, t).expect("one element type");
    let flat = own.alias(t.dtype(), Layout::contiguous(&[t.numel() as i64])).expect("all elements");
    let list: Vec<String> = (0..t.numel() as i64).map(|i| flat.get(&[i]).to_string()).collect();
    format!("[{}]", list.join(" "))
}

/// Inputs whose cells count from 0.
fn counting(program: &Program, shares: &[Share]) -> Result<Inputs, String> {
    let mut storages: Vec<Option<Storage>> = vec![None; shares.len()];
    let mut values = Vec::new();
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        if !matches!(spec.kind, InputKind::User(_)) {
            return Err("`run` takes programs with plain inputs only".into());
        }
        let Type::Tensor(ty) = &program.graph().values[spec.value].ty else {
            return Err("`run` takes programs with tensor inputs only".into());
        };
        let ty = ty.known().ok_or("`run` takes programs of known sizes only")?;
        let group = shares.iter().position(|s| s.inputs.contains(&i));
        let bytes = group.map_or(ty.layout.cell_range().end * ty.dtype.size() as i64, |g| shares[g].bytes);
        let fresh = || count(ty.dtype, bytes as usize / ty.dtype.size());
        let storage = match group {
            Some(g) => storages[g].get_or_insert_with(fresh).clone(),
            None => fresh(),
        };
        let t = Tensor::new(storage, ty.dtype, ty.layout.clone()).ok_or("an input reaches beyond its storage")?;
        values.push(RunValue::Tensor(t));
    }
    Ok(Inputs::new(values))
}

fn count(dtype: DType, cells: usize) -> Storage {
    let n = cells as i64;
    let numbers: Vec<i64> = (0..n).collect();
    let own = Tensor::zeros(dtype, Layout::contiguous(&[n]));
    copy_into(&own, &Tensor::from_slice(&numbers, &[n])).expect("numbers convert");
    own.storage().clone()
}
