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
    assert!(said.contains(why) && said.lines().count() == 1, "{args:?}: {said}");
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
