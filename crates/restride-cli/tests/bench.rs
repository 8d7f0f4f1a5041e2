//! `bench` times both ways on programs with and without sizes that are learnt from data.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn bench(name: &str) -> Value {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let to =
        std::env::temp_dir().join(format!("restride-bench-{}-{}.json", std::process::id(), name.replace('/', "_")));
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
