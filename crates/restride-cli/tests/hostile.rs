//! Files that once crashed the command.

use std::path::Path;
use std::process::{Command, Output};

fn hostile(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hostile").join(name);
    path.to_str().expect("a path in UTF-8").to_string()
}

fn restride(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_restride")).args(args).output().expect("the command")
}

fn refused(args: &[&str], why: &str) {
    let out = restride(args);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{args:?}: {said}");
    assert!(
        said.contains(why) && said.starts_with("error: ") && said.matches("error: ").count() == 1,
        "{args:?}: {said}"
    );
}

/// `--no-check` is about what this process decides: a plan in a file is checked.
#[test]
fn a_spoilt_plan_is_refused_unchecked_too() {
    let (program, inputs) = (&hostile("no-check-plan.pt2"), &hostile("no-check-plan.inputs.npz"));
    for more in [&[][..], &["--no-check"]] {
        refused(&[&["run", program, "--inputs", inputs][..], more].concat(), "compile the program again");
    }
}

#[test]
fn weights_that_are_not_given() {
    let out = std::env::temp_dir().join(format!("restride-hostile-{}.pt2", std::process::id()));
    let out = out.to_str().expect("a path in UTF-8");
    let text = &hostile("panic-weights-absent.fx");
    for command in ["run", "verify", "compile", "plan", "explain", "bench"] {
        refused(&[command, text, "--random", "1"], "--weights");
    }
    for command in ["functionalize", "reinplace"] {
        refused(&[command, text, "--random", "1", "-o", out], "--weights");
    }
    // A text needs no weights.
    let written = format!("{out}.fx");
    let done = restride(&["functionalize", text, "-o", &written]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let _ = std::fs::remove_file(written);

    let export = &hostile("panic-weights-absent-export.fx");
    for command in ["functionalize", "reinplace", "grad"] {
        refused(&[command, export, "-o", out], "storage number");
    }
}

/// A count of parts is looked at before a type is made for each.
#[test]
fn more_parts_than_any_program_has() {
    for file in ["chunk.fx", "split.fx", "tensor_split.fx", "unbind.fx"] {
        let program = &hostile(&format!("open-oom-{file}"));
        refused(&["show", program, "--stage", "imported"], "1099511627776 parts");
    }
    refused(&["show", &hostile("open-oom-unbind.pt2"), "--stage", "imported"], "1099511627776");
}

/// A sum over 4 TB of one repeated number is refused before it runs.
#[test]
fn more_elements_than_memory_has() {
    let program = &hostile("abort-reduce-expanded.fx");
    for via in ["interp", "functional", "plan"] {
        refused(&["run", program, "--random", "0", "--via", via], "memory");
    }
}

/// Forty levels of branches, each calling the next one twice, are 2^40 calls.
#[test]
fn bodies_that_double_with_every_level() {
    let program = &hostile("hang-nested-cond-40.fx");
    for command in ["run", "compile", "plan", "explain"] {
        refused(&[command, program, "--random", "0"], "each counted in every body that calls it");
    }
    assert!(restride(&["run", program, "--random", "0", "--via", "interp"]).status.success());
}

/// Counts come with a limit that is looked at first, and that may be another one.
#[test]
fn loops_that_do_not_end() {
    for (file, vias) in
        [("hang-loop-2e63.fx", &["interp", "functional", "plan"][..]), ("hang-loop-wraps.fx", &["interp"][..])]
    {
        for via in vias {
            let run = ["run", &hostile(file), "--random", "1", "--via", via, "--limit", "trips=1000"];
            refused(&run, "a loop of 1001 iterations: the limit \"trips\" is 1000");
        }
    }
}

#[test]
fn bodies_in_bodies_in_bodies() {
    let program = &hostile("hang-nested-cond-400.fx");
    for command in ["show", "run", "verify", "compile", "plan", "explain"] {
        refused(&[command, program, "--random", "0"], "nested 401 deep: the limit \"depth\" is 64");
    }
    let program = &hostile("hang-nested-cond-40.fx");
    refused(&["run", program, "--random", "0", "--limit", "depth=40"], "nested 41 deep");
    refused(&["run", program, "--random", "0", "--limit", "bodies=10"], "the limit \"bodies\" is 10");
    refused(&["run", program, "--random", "0", "--via", "interp", "--limit", "memory=7"], "the limit \"memory\" is 7");
    let unknown = restride(&["show", program, "--limit", "time=3"]);
    assert_eq!(unknown.status.code(), Some(2));
}
