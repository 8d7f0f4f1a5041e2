//! A plan in a file: it gives the results of a fresh plan, and a damaged one is refused, or right nevertheless.

use restride::{CompileOptions, Compiled, ErrorKind, Inputs, OpenOptions, RunOptions, open, saved_plan};
use restride_ir::Program;
use restride_pt2::archive::Archive;
use restride_pt2::export::export_file_with;
use restride_tensor::Bytes;
use restride_testing::{Leftovers, difference};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PLAN: &str = "restride.plan.json";

const PROGRAMS: [&str; 10] = [
    "examples/batchnorm_train.pt2",
    "examples/box_decode.pt2",
    "examples/llama_decode.pt2",
    "pt2/cond_branch.pt2",
    "pt2/data_dependent.pt2",
    "pt2/dynamic_batch.pt2",
    "pt2/input_mutation_views.pt2",
    "pt2/kv_cache.pt2",
    "pt2/map_rows.pt2",
    "pt2/parameter_step.pt2",
];

/// A program in a file with its plan.
struct Saved {
    program: Program,
    /// What is in the file.
    written: Program,
    inputs: Inputs,
    path: PathBuf,
}

impl Saved {
    fn new(name: &str, test: &str) -> Saved {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
        let program = open(&path, &OpenOptions::default()).expect(name);
        let inputs = Inputs::from_samples(&program).expect("sample inputs").expect("that can be read");
        let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect(name);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}_{}", name.replace('/', "_")));
        compiled.save(&inputs, &path).expect(name);
        let written = restride::written(compiled.functional()).expect("PyTorch's operators");
        Saved { program: open(&path, &OpenOptions::default()).expect(name), written, inputs, path }
    }

    fn json(&self) -> Value {
        let bytes = Bytes::map(&self.path).expect("the file");
        let archive = Archive::open(&bytes).expect("an archive");
        let (_, path) = archive.extra_files().find(|(n, _)| *n == PLAN).expect("a plan");
        serde_json::from_slice(&archive.read(path).expect("its text")).expect("its JSON")
    }

    /// The same program in a file beside it, with this plan.
    fn with(&self, json: &Value) -> PathBuf {
        let beside = self.path.with_extension("damaged.pt2");
        let files = [(PLAN.to_string(), serde_json::to_vec(json).expect("JSON"))];
        export_file_with(&self.written, &beside, &files).expect("a file");
        beside
    }

    fn run(&self, plan: Option<&Path>) -> restride::Result<Leftovers> {
        self.run_with(plan, CompileOptions { poison: true, ..CompileOptions::default() })
    }

    fn run_with(&self, plan: Option<&Path>, options: CompileOptions) -> restride::Result<Leftovers> {
        let saved = match plan {
            Some(path) => Some(Arc::new(saved_plan(path, &OpenOptions::default())?.expect("a plan"))),
            None => None,
        };
        let options = CompileOptions { saved, ..options };
        let compiled = Compiled::new(self.program.clone(), Some(&self.inputs), &options)?;
        Leftovers::planned(&compiled, &self.inputs, &RunOptions::default())
    }
}

#[test]
fn a_plan_from_a_file_gives_what_one_made_now_gives() {
    for name in PROGRAMS {
        let saved = Saved::new(name, "same");
        let (now, read) = (saved.run(None).expect(name), saved.run(Some(&saved.path)).expect(name));
        assert_eq!(difference(&now, &read), None, "{name}");
    }
}

/// As `functionalize` writes it, for whoever takes no strides.
#[test]
fn a_program_with_its_plan_is_said_by_chains_of_views() {
    let saved = Saved::new("pt2/input_mutation_views.pt2", "chains");
    let strided = |p: &Program| {
        let nodes = p.graphs.iter().flat_map(|(_, g)| g.ordered());
        nodes.filter(|(_, n)| n.op.name().starts_with("aten.as_strided")).count()
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pt2/input_mutation_views.pt2");
    let program = open(&path, &OpenOptions::default()).expect("the fixture");
    let compiled = Compiled::new(program, Some(&saved.inputs), &CompileOptions::default()).expect("it compiles");
    assert!(strided(compiled.functional()) > 0);
    assert_eq!(strided(&saved.program), 0);
}

/// Calls `f` with each number in turn as something else. True if there was one at `at`.
fn change(value: &mut Value, at: &mut usize, by: i64) -> bool {
    match value {
        Value::Number(n) => {
            if *at > 0 {
                *at -= 1;
                return false;
            }
            let changed = n.as_i64().expect("a whole number").saturating_add(by);
            *value = Value::from(changed);
            true
        }
        Value::Array(list) => list.iter_mut().any(|v| change(v, at, by)),
        Value::Object(map) => map.values_mut().any(|v| change(v, at, by)),
        _ => false,
    }
}

fn numbers(value: &Value) -> usize {
    match value {
        Value::Number(_) => 1,
        Value::Array(list) => list.iter().map(numbers).sum(),
        Value::Object(map) => map.values().map(numbers).sum(),
        _ => 0,
    }
}

#[test]
fn a_damaged_plan_is_refused_or_right() {
    let (mut refused, mut right) = (0, 0);
    for name in PROGRAMS {
        let saved = Saved::new(name, "damaged");
        let (json, want) = (saved.json(), saved.run(None).expect(name));
        let count = numbers(&json);
        let step = count.div_ceil(8);
        for at in (0..count).step_by(step) {
            for by in [1, -64, i64::MAX] {
                let mut damaged = json.clone();
                assert!(change(&mut damaged, &mut at.clone(), by));
                // What a file decides is checked, whether what this process decides is or not.
                let options = CompileOptions { poison: true, check: by != -64, ..CompileOptions::default() };
                match saved.run_with(Some(&saved.with(&damaged)), options) {
                    Ok(left) => {
                        assert_eq!(difference(&want, &left), None, "{name}: number {at} by {by}");
                        right += 1;
                    }
                    Err(e) => {
                        assert_eq!(e.kind, ErrorKind::File, "{name}: number {at} by {by}: {e}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 100 && right > 5, "{refused} refused, {right} right");
}

#[test]
fn a_plan_is_for_its_program_and_its_sizes() {
    let saved = Saved::new("pt2/kv_cache.pt2", "other");
    let mut json = saved.json();
    json["model_sha256"] = Value::from("0".repeat(64));
    let error = saved_plan(&saved.with(&json), &OpenOptions::default()).expect_err("another program's plan");
    assert!(error.what.contains("another program"), "{error}");

    // Other sizes are placed anew.
    let saved = Saved::new("pt2/dynamic_batch.pt2", "sizes");
    let mut json = saved.json();
    let sizes = json["sizes"].as_object_mut().expect("sizes");
    sizes.values_mut().for_each(|n| *n = Value::from("7"));
    json["segments"] = Value::from(Vec::<Value>::new());
    let (now, read) = (saved.run(None).expect("runs"), saved.run(Some(&saved.with(&json))).expect("runs"));
    assert_eq!(difference(&now, &read), None);
}
