//! The options about memory: budgets, what backward keeps, the order of nodes, and bounds over sizes.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples").join(name)
}

/// A file of this process that goes with the value.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        // Tests run side by side.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        File(std::env::temp_dir().join(format!("restride-memory-{}-{number}-{name}", std::process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn restride(command: &str, program: &Path, more: &[&str]) -> Output {
    let mut call = Command::new(env!("CARGO_BIN_EXE_restride"));
    call.arg(command).arg(program).args(more).output().expect("the command")
}

fn text(out: &Output) -> String {
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn plan(program: &Path, more: &[&str]) -> Value {
    let json = File::new(&format!("{}.json", more.join("")));
    text(&restride("compile", program, &[more, &["--json", json.0.to_str().expect("a name")]].concat()));
    let read: Value = serde_json::from_slice(&std::fs::read(&json.0).expect("it was written")).expect("JSON");
    read["plan"].clone()
}

fn joint(name: &str, more: &[&str]) -> (File, String) {
    let file = File::new(name);
    let more = [&["-o", file.0.to_str().expect("a name")], more].concat();
    let said = text(&restride("grad", &example("classifier.pt2"), &more));
    (file, said)
}

#[test]
fn a_budget_is_met_or_refused_with_the_reason() {
    let (joint, _) = joint("budget.pt2", &["--keep", "all"]);
    let whole = plan(&joint.0, &[])["arena_bytes"].as_i64().expect("bytes");
    let budget = (whole * 3 / 4).to_string();
    let within = plan(&joint.0, &["--budget", &budget]);
    assert!(within["arena_bytes"].as_i64().expect("bytes") <= whole * 3 / 4);
    assert!(within["computed_again"].as_i64().expect("a number") > 0);
    for command in ["run", "verify", "plan"] {
        text(&restride(command, &joint.0, &["--budget", &budget]));
    }
    let said = text(&restride("explain", &joint.0, &["--budget", &budget, "--all"]));
    assert!(said.contains("recomputed: "), "{said}");
    // Enough is enough, whatever it is said in.
    assert_eq!(plan(&joint.0, &["--budget", "1.5GiB"])["computed_again"], 0);
    let refused = restride("run", &joint.0, &["--budget", "64B"]);
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("the arena cannot be brought to 64 bytes") && why.contains("can be met"), "{why}");
    assert_eq!(restride("run", &joint.0, &["--budget", "7 apples"]).status.code(), Some(2));
}

#[test]
fn backward_keeps_what_is_said() {
    let (all, said) = joint("all.pt2", &["--keep", "all"]);
    assert_eq!(said, "");
    let (none, said) = joint("none.pt2", &["--keep", "none"]);
    assert!(said.contains("of it recomputed"), "{said}");
    let run = |file: &File| text(&restride("run", &file.0, &[]));
    assert_eq!(run(&all), run(&none));
    // What is cheap is recomputed without being asked.
    let (auto, said) = joint("auto.pt2", &[]);
    assert!(said.contains("of it recomputed"), "{said}");
    assert_eq!(run(&all), run(&auto));
    assert!(plan(&auto.0, &[])["arena_bytes"].as_i64() < plan(&all.0, &[])["arena_bytes"].as_i64());
    let few = File::new("few.pt2");
    let more = ["-o", few.0.to_str().expect("a name"), "--keep", "8B"];
    let refused = restride("grad", &example("classifier.pt2"), &more);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    let met = refused.status.success() || why.contains("backward cannot keep 8 bytes or less of forward");
    assert!(met, "{why}");
    assert_eq!(restride("grad", &example("classifier.pt2"), &["-o", "x.pt2", "--keep", "some"]).status.code(), Some(2));
}

#[test]
fn the_order_and_the_search_are_switches() {
    let program = example("vit_small.pt2");
    let arena = |more: &[&str]| plan(&program, more)["arena_bytes"].as_i64().expect("bytes");
    assert!(arena(&[]) <= arena(&["--no-reorder"]));
    assert!(arena(&[]) <= arena(&["--search-steps", "0"]));
}

#[test]
fn the_bound_over_sizes_is_said_or_why_there_is_none() {
    let bounded = File::new("bounded.fx");
    let program = "symbol n in [2, 100]\ngraph(%x: f32[n]) {\n  %a: f32[n] = aten.exp.default(%x)\n  \
                   %b: f32[n] = aten.mul.Tensor(%a, %x)\n  %c: f32[] = aten.sum.default(%b)\n  return %c\n}\n";
    std::fs::write(&bounded.0, program).expect("a file");
    let counts = plan(&bounded.0, &["--random", "1"]);
    let (now, most) = (counts["arena_bytes"].as_i64(), counts["upper_bound_bytes"].as_i64());
    assert!(now.expect("bytes") > 0 && most >= now && counts["unbounded"].is_null(), "{counts}");

    let open = File::new("open.fx");
    std::fs::write(&open.0, program.replace("100", "inf")).expect("a file");
    let counts = plan(&open.0, &["--random", "1"]);
    assert!(counts["upper_bound_bytes"].is_null());
    assert_eq!(counts["unbounded"], "n has no largest value: a size of %x");

    let learnt = File::new("learnt.fx");
    let program = "symbol u0 in [0, inf]\ngraph(%x: f32[8]) {\n  %a: i64[u0, 1] = aten.nonzero.default(%x)\n  \
                   %b: i64[u0, 1] = aten.neg.default(%a)\n  return %b\n}\n";
    std::fs::write(&learnt.0, program).expect("a file");
    let said = text(&restride("compile", &learnt.0, &["--random", "1"]));
    assert!(said.contains("memory when size is known what comes after %a = aten.nonzero.default"), "{said}");
}

#[test]
fn memories_are_filled_in_their_order_and_say_what_spills() {
    let program = example("vit_small.pt2");
    let whole = plan(&program, &[])["arena_bytes"].as_i64().expect("bytes");
    let most = whole * 2 / 3;
    let two = format!("fast={most},slow");
    let counts = plan(&program, &["--memories", &two]);
    let [fast, slow] = &counts["memories"].as_array().expect("memories")[..] else { panic!("{counts}") };
    assert!(fast["bytes"].as_i64() <= Some(most) && slow["capacity"].is_null(), "{counts}");
    assert!(fast["traffic"].as_i64() > slow["traffic"].as_i64(), "{counts}");
    assert_eq!(counts["spilled_bytes"], slow["traffic"]);
    for command in ["run", "verify", "plan", "compile"] {
        text(&restride(command, &program, &["--memories", &two, "--align", "4096"]));
    }
    // In the file too, and checked there.
    let saved = File::new("memories.pt2");
    text(&restride("compile", &program, &["--memories", &two, "-o", saved.0.to_str().expect("a name")]));
    assert_eq!(text(&restride("run", &saved.0, &[])), text(&restride("run", &program, &[])));
    let refused = restride("plan", &program, &["--memories", "fast=1kB,slow=1kB"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("do not fit into the memories"));
    let missing = restride("plan", &program, &["--memories", "fast=1kB,slow", "--pin", "x=none"]);
    assert_eq!(missing.status.code(), Some(2));
    assert_eq!(restride("plan", &program, &["--align", "48"]).status.code(), Some(2));
}

#[test]
fn views_are_a_switch() {
    let program = example("vit_small.pt2");
    let json = |more: &[&str]| {
        let json = File::new(&format!("views{}.json", more.join("")));
        text(&restride("compile", &program, &[more, &["--json", json.0.to_str().expect("a name")]].concat()));
        let read: Value = serde_json::from_slice(&std::fs::read(&json.0).expect("it was written")).expect("JSON");
        read["placed"].clone()
    };
    let (with, without) = (json(&[]), json(&["--no-views"]));
    assert!(without["copies"].as_i64() > with["copies"].as_i64(), "{with} {without}");
    assert!(without["copy_bytes"].as_i64() > with["copy_bytes"].as_i64(), "{with} {without}");
    assert_eq!(text(&restride("run", &program, &["--no-views"])), text(&restride("run", &program, &[])));
}

/// Inputs and outputs in the arena: the same results, from more arena and copies at the border.
#[test]
fn the_border_may_be_in_the_arena() {
    for name in ["vit_small.pt2", "llama_decode.pt2", "classifier.pt2"] {
        let program = example(name);
        let measure = |more: &[&str]| {
            let json = File::new(&format!("border{}{name}.json", more.join("")));
            text(&restride("compile", &program, &[more, &["--json", json.0.to_str().expect("a name")]].concat()));
            let read: Value = serde_json::from_slice(&std::fs::read(&json.0).expect("it was written")).expect("JSON");
            let arena = read["plan"]["arena_bytes"].as_i64().expect("a number");
            (arena, read["placed"]["copies"].as_i64().expect("a number"))
        };
        let outside = measure(&[]);
        for more in
            [&["--alloc-graph-input"][..], &["--alloc-graph-output"], &["--alloc-graph-input", "--alloc-graph-output"]]
        {
            let inside = measure(more);
            assert!(inside.0 >= outside.0 && inside.1 > outside.1, "{name} {more:?}: {inside:?}, outside {outside:?}");
            assert_eq!(
                text(&restride("run", &program, more)),
                text(&restride("run", &program, &[])),
                "{name} {more:?}"
            );
            text(&restride("verify", &program, more));
        }
    }
}
