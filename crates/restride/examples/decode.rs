//! Decodes tokens greedily with a llama-style model whose key-value cache is in the caller's memory.
//!
//! ```sh
//! cargo run --release -p restride --example decode -- fixtures/examples/llama_decode.pt2 8
//! ```
//!
//! The model decodes one token a call: its inputs are the token and its position, its output the logits of the next token. It
//! writes keys and values into its buffers `key_cache_*` and `value_cache_*`.

use restride::{CompileOptions, Compiled, Inputs, OpenOptions, RawTensor, Result, RunOptions, Storage, open};
use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let count = args.get(1).map_or(Ok(8), |n| n.parse());
    let (Some(file), Ok(count)) = (args.first(), count) else {
        eprintln!("usage: decode MODEL.pt2 [TOKENS]");
        std::process::exit(2);
    };
    match decode(Path::new(file), 1, count) {
        Ok(tokens) => println!("{tokens:?}"),
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    }
}

/// The tokens that follow `first`.
pub fn decode(file: &Path, first: i64, count: i64) -> Result<Vec<i64>> {
    let program = open(file, &OpenOptions::default())?;
    let token = RawTensor::from_slice(&[first], &[1, 1]);
    let position = RawTensor::from_slice(&[0i64], &[1]);
    let inputs = Inputs::new([token.clone().into(), position.clone().into()]);
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default())?;

    // Every cache gets memory of this program, which could as well be a mapped file or a device's.
    let mut instance = compiled.instance()?;
    let state = instance.state_mut();
    let caches = state.iter().filter(|(name, _)| name.starts_with("key_cache") || name.starts_with("value_cache"));
    let caches: Vec<_> = caches.map(|(name, t)| (name.clone(), t.storage().len())).collect();
    for (name, bytes) in caches {
        state.move_to(&name, Storage::zeroed(bytes))?;
    }

    // A session is bound to the memory of its inputs and outputs: a step writes the inputs into it, runs, and reads the logits.
    let mut session = instance.session(&inputs, &[], &RunOptions::default())?;
    let mut tokens = Vec::new();
    for at in 0..count {
        position.storage().write(&at.to_le_bytes());
        session.run()?;
        let logits = session.outputs().values[0].tensor().expect("logits").to_elements::<f32>();
        let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i as i64);
        tokens.push(best);
        token.storage().write(&best.to_le_bytes());
    }
    Ok(tokens)
}
