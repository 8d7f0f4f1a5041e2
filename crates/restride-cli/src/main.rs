//! The command `restride`.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod commands;
mod explain;
mod optimizer;
mod page;
mod progress;
mod tables;

use clap::Parser;
use clap::error::ErrorKind as ClapError;
use restride::Error;
use std::process::ExitCode;

/// Passes make many small objects, and so does a file's JSON.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why a command failed.
enum Failure {
    /// The program, its inputs, or a file: exit status 1.
    Error(Error),
    /// The command line: exit status 2.
    Usage(String),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Error(e)
    }
}

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let help = matches!(e.kind(), ClapError::DisplayHelp | ClapError::DisplayVersion);
            // A closed pipe is nobody's error.
            let _ = e.print();
            return ExitCode::from(if help { 0 } else { 2 });
        }
    };
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Error(e)) => {
            eprintln!("restride: {}", one_line(&e.to_string()));
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprintln!("restride: {}", one_line(&message));
            ExitCode::from(2)
        }
    }
}

/// Messages are one line, whatever a file put into them.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
