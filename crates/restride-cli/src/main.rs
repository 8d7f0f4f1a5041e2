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
use std::io::Write;
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
            let printed = e.print().and_then(|()| std::io::stdout().flush());
            return match printed {
                _ if !help => ExitCode::from(2),
                // A closed pipe is nobody's error.
                Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                    progress::say(&format!("restride: standard output: {e}"));
                    ExitCode::from(1)
                }
                _ => ExitCode::SUCCESS,
            };
        }
    };
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Error(e)) => {
            progress::say(&format!("restride: {}", one_line(&e.to_string())));
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            progress::say(&format!("restride: {}", one_line(&message)));
            ExitCode::from(2)
        }
    }
}

/// Messages are one line, whatever a file put into them.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
