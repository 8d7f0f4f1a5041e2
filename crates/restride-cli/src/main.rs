//! The command `restride`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Passes and JSON make many small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(restride_cli::run(std::env::args_os()))
}
