//! Writes a program without mutation, for backends that reject `copy_`.
//!
//! ```sh
//! cargo run --release -p restride --example functionalize -- fixtures/examples/box_decode.pt2 functional.pt2
//! ```
//!
//! Input and buffer mutations become declared outputs of the new file, which `torch.export.load` takes.

use restride::{CompileOptions, Compiled, OpenOptions, Result, open, save};
use std::path::Path;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = &args[..] else {
        eprintln!("usage: functionalize MODEL.pt2 OUT.pt2");
        std::process::exit(2);
    };
    match functionalize(Path::new(from), Path::new(to)) {
        Ok(lines) => lines.iter().for_each(|l| println!("{l}")),
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    }
}

/// Writes the functional form of a program; a line for each mutating node that it replaces.
pub fn functionalize(from: &Path, to: &Path) -> Result<Vec<String>> {
    let program = open(from, &OpenOptions::default())?;
    let mut lines = Vec::new();
    for (_, node) in program.graph().ordered().filter(|(_, n)| n.op.mutates(&n.args)) {
        let line = node.origin.source_line().unwrap_or_else(|| "unknown line".into());
        lines.push(format!("{line}: {} becomes functional", node.op));
    }
    // Compiling functionalizes and checks the result; nothing is placed before a program is prepared or run.
    let compiled = Compiled::new(program, None, &CompileOptions::default())?;
    save(compiled.functional(), to)?;
    Ok(lines)
}
