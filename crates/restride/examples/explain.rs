//! Prints the copies that stay in a program, with their reasons, from the explanation as data.
//!
//! ```sh
//! cargo run --release -p restride --example explain -- fixtures/examples/llama_decode.pt2
//! ```

use restride::{CompileOptions, Compiled, Inputs, OpenOptions, Result, open};
use std::path::Path;

fn main() {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: explain MODEL.pt2");
        std::process::exit(2);
    };
    match explain(Path::new(&file)) {
        Ok(lines) => lines.iter().for_each(|l| println!("{l}")),
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    }
}

/// A line for each copy, the largest first, then the totals.
pub fn explain(file: &Path) -> Result<Vec<String>> {
    let program = open(file, &OpenOptions::default())?;
    // Sizes are static in most files; otherwise the sample inputs tell them.
    let inputs = Inputs::from_samples(&program).transpose()?;
    let compiled = Compiled::new(program, inputs.as_ref(), &CompileOptions::default())?;
    let prepared = compiled.prepare(inputs.as_ref())?;

    let explanation = prepared.explain();
    let mut lines = Vec::new();
    for copy in &explanation.copies {
        let site = copy.site.as_ref().map_or_else(|| "the caller".into(), |s| s.to_string());
        let line = copy.site.as_ref().and_then(|s| s.line.as_deref()).unwrap_or("-");
        lines.push(format!("{} bytes to {} for {site} ({line}): {}", copy.bytes, copy.to, copy.why()));
    }
    let saved: i64 = explanation.done.iter().map(|d| d.bytes).sum();
    let copied: i64 = explanation.copies.iter().map(|c| c.bytes).sum();
    lines.push(format!(
        "{saved} bytes saved in place, {copied} bytes copied, arena {}",
        prepared.report().plan.arena_bytes
    ));
    Ok(lines)
}
