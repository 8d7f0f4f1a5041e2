//! The programs of `examples/` do what they say, on files of the repository.

#![allow(dead_code)]

use restride::{Adam, CompileOptions, Compiled, GradOptions, OpenOptions, open, save};
use std::path::{Path, PathBuf};

#[path = "../examples/decode.rs"]
mod decode;
#[path = "../examples/explain.rs"]
mod explain;
#[path = "../examples/functionalize.rs"]
mod functionalize;
#[path = "../examples/train.rs"]
mod train;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/examples").join(name)
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("restride-example-{}-{name}", std::process::id()))
}

#[test]
fn decoding_reads_its_own_cache() {
    let tokens = decode::decode(&fixture("llama_decode.pt2"), 1, 8).expect("decodes");
    assert_eq!(tokens.len(), 8);
    assert!(tokens.iter().all(|t| (0..128).contains(t)), "{tokens:?}");
    // A shorter run gives the same tokens, another first token others.
    assert_eq!(decode::decode(&fixture("llama_decode.pt2"), 1, 3).expect("decodes"), tokens[..3]);
    assert_ne!(decode::decode(&fixture("llama_decode.pt2"), 5, 8).expect("decodes"), tokens);
}

#[test]
fn the_written_program_mutates_nothing() {
    let out = temporary("functional.pt2");
    let lines = functionalize::functionalize(&fixture("box_decode.pt2"), &out).expect("writes");
    assert!(!lines.is_empty() && lines.iter().all(|l| l.contains(".py:")), "{lines:?}");
    let written = open(&out, &OpenOptions::default()).expect("opens");
    assert!(written.graph().ordered().all(|(_, n)| !n.op.mutates(&n.args)));
    std::fs::remove_file(out).expect("removed");
}

#[test]
fn copies_are_explained() {
    let lines = explain::explain(&fixture("llama_decode.pt2")).expect("explains");
    let [copies @ .., totals] = &lines[..] else { panic!("no lines") };
    assert!(copies.iter().any(|l| l.contains("`cat` operand not computed in place")), "{copies:?}");
    assert!(totals.contains("bytes saved in place"), "{totals}");
}

#[test]
fn training_lowers_the_loss() {
    let program = open(&fixture("classifier.pt2"), &OpenOptions::default()).expect("opens");
    let forward = Compiled::new(program, None, &CompileOptions::default()).expect("compiles");
    let adam = Adam { lr: 0.01, ..Adam::default() };
    let step = forward.train(&GradOptions::default(), &|step, p| adam.update(step, p)).expect("a training step");
    let file = temporary("step.pt2");
    save(&step, &file).expect("writes");
    let losses = train::train(&file, 10).expect("trains");
    assert!(losses.len() == 10 && losses[9] < losses[0], "{losses:?}");
    std::fs::remove_file(file).expect("removed");
}
