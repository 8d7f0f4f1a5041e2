//! Fuzz entries on files of `fixtures`, damaged files and random bytes. `SEEDS=FROM..TO` selects more of them.

use restride_testing::fuzz::ENTRIES;
use restride_testing::rng::Rng;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// Files are begun with up to this size.
const LARGEST: u64 = 24_000;

fn files(dir: &str, ends: &[&str]) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut out: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    out.retain(|p| {
        let name = p.to_string_lossy();
        ends.iter().any(|e| name.ends_with(e)) && p.metadata().is_ok_and(|m| m.len() < LARGEST)
    });
    out.sort();
    out
}

/// What an entry begins with: files of its format, or parts of archives.
fn corpus(entry: &str) -> Vec<Vec<u8>> {
    let read = |paths: Vec<PathBuf>| paths.iter().map(|p| std::fs::read(p).expect("a file")).collect::<Vec<_>>();
    let archives =
        || [read(files("../../fixtures/pt2", &[".pt2"])), read(files("../../fixtures/hostile", &[".pt2"]))].concat();
    let parts = |ends: &str| {
        let mut out = Vec::new();
        for bytes in archives() {
            let Ok(archive) = restride_pt2::archive::Archive::open(&bytes) else { continue };
            let names: Vec<&str> = archive.names().filter(|n| n.ends_with(ends)).collect();
            out.extend(names.iter().filter_map(|n| archive.read(n).ok()).map(|b| b.into_owned()));
        }
        out
    };
    match entry {
        "archive" => archives(),
        "model_json" => parts(".json"),
        "pickled" => parts(".pt"),
        "tensor_files" => {
            [read(files("../../fixtures/pt2", &[".npz"])), read(files("../../fixtures/alias", &[".json"]))].concat()
        }
        "program_text" => {
            let texts = ["semantics", "functionalize", "operators", "place"].iter();
            texts.flat_map(|d| read(files(&format!("filetests/{d}"), &[".fx"]))).collect()
        }
        "torchscript" => ["../../fixtures/torchscript", "../../fixtures/torchscript/old"]
            .iter()
            .flat_map(|d| read(files(d, &[".pt"])))
            .collect(),
        "pasted_graphs" => read(files("../../fixtures/torchscript", &[".txt"])),
        "expressions" => ["s0*(s1 + 4)//2", "Mul(Integer(2), Symbol('s0', integer=True))", "L['x'].size()[0] % 8 == 0"]
            .map(|t| t.as_bytes().to_vec())
            .into(),
        // Bytes are choices.
        _ => Vec::new(),
    }
}

fn damaged(rng: &mut Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..1 + rng.below(6) {
        let at = rng.below(bytes.len() + 1);
        let end = (at + 1 + rng.below(16)).min(bytes.len());
        match rng.below(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 => drop(bytes.drain(at..end.max(at))),
            2 => {
                let again = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => bytes.insert(at, *rng.choose(b"\0\xff09-([{\"' ")),
            _ if at < bytes.len() => bytes[at] = rng.below(256) as u8,
            _ => {}
        }
    }
    bytes
}

#[test]
fn entries_hold() {
    let chosen = std::env::var("SEEDS").ok();
    let range = chosen.as_deref().and_then(|s| s.split_once(".."));
    let range = range.and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?)).unwrap_or(0..24u64);
    let mut failures = Vec::new();
    for (name, entry) in ENTRIES {
        let corpus = corpus(name);
        let (begun, mut calls) = (std::time::Instant::now(), 0);
        let mut call = |what: String, bytes: &[u8]| {
            calls += 1;
            if catch_unwind(|| entry(bytes)).is_err() {
                failures.push(format!("{name}: {what}"));
            }
        };
        for (i, bytes) in corpus.iter().enumerate() {
            call(format!("file {i}"), bytes);
        }
        for seed in range.clone() {
            let mut rng = Rng::new(seed);
            let random: Vec<u8> = (0..rng.below(200)).map(|_| rng.below(256) as u8).collect();
            call(format!("random bytes of seed {seed}"), &random);
            for _ in 0..if corpus.is_empty() { 0 } else { 8 } {
                let whole = rng.choose(&corpus).clone();
                let bytes = damaged(&mut rng, whole);
                call(format!("a damaged file of seed {seed}"), &bytes);
            }
        }
        println!("{name}: {} files, {calls} calls, {:.1} s", corpus.len(), begun.elapsed().as_secs_f64());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
