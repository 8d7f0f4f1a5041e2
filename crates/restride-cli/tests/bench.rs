//! `bench` times both ways on programs with and without sizes that are learnt from data.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

fn bench(name: &str) -> Value {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    // Tests of one process run at the same time, some on the same file.
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let to = std::env::temp_dir().join(format!("restride-bench-{}-{call}.json", std::process::id()));
    let out = Command::new(env!("CARGO_BIN_EXE_restride"))
        .arg("bench")
        .arg(fixtures.join(name))
        .arg("--json")
        .arg(&to)
        .output()
        .expect("the command");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = std::fs::read_to_string(&to).expect("the times");
    let _ = std::fs::remove_file(&to);
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn both_ways_are_timed() {
    for (name, bound) in [("examples/llama_decode.pt2", true), ("pt2/data_dependent.pt2", false)] {
        let times = bench(name);
        assert_eq!(times["bound"], bound, "{name}");
        assert!(times["runs"].as_u64().is_some_and(|n| n >= 5), "{name}: {times}");
        for way in ["plan", "interp"] {
            let of = |what: &str| times["time_us"][way][what].as_f64().expect("a time");
            assert!(of("fastest") > 0.0 && of("fastest") <= of("median") && of("median") <= of("slowest"), "{times}");
        }
    }
}

#[test]
fn the_profile_has_each_step_and_its_work() {
    let times = bench("examples/llama_decode.pt2");
    let profile = &times["profile"];
    let rows = |of: &str| profile[of].as_array().expect("rows").clone();
    let sum = |rows: &[Value], of: &str| rows.iter().map(|r| r[of].as_f64().expect("a number")).sum::<f64>();
    let (operators, steps) = (rows("operators"), rows("steps"));
    assert_eq!(sum(&operators, "steps") as usize, steps.len(), "{profile}");
    for of in ["bytes", "macs"] {
        assert_eq!(sum(&operators, of), sum(&steps, of), "{of}");
    }
    assert!(steps.iter().all(|s| s["time_us"].as_f64().is_some_and(|t| t >= 0.0)), "{profile}");
    assert!(profile["machine"]["product_macs_per_second"].as_f64().is_some_and(|n| n > 0.0), "{profile}");
    assert!(bench("pt2/data_dependent.pt2")["profile"].is_null(), "its steps are bound anew in each run");
}
