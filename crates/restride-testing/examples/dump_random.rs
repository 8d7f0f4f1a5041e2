//! Random programs as lines of JSON, with what each way of running them leaves behind; `scripts/check/random_check.py` runs
//! them by eager PyTorch and compares.
//!
//!     dump_random FROM..TO          one line per seed
//!     dump_random --text SEED       the program of a seed, printed

use restride_testing::{dump, generate};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--text", seed] => {
            let Ok(seed) = seed.parse() else { return usage() };
            println!("{}", dump::text(&generate(seed).program));
        }
        [range] => {
            let ends = range.split_once("..").and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
            let Some((from, to)) = ends else { return usage() };
            let mut out = std::io::stdout().lock();
            for seed in from..to {
                // Whoever reads may have seen enough.
                if writeln!(out, "{}", dump::line(seed, &generate(seed))).is_err() {
                    break;
                }
            }
        }
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: dump_random FROM..TO | --text SEED");
    ExitCode::from(2)
}
