//! The command `restride`, as a function for programs that have it inside of them, and what it writes as JSON and as a page.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod commands;
mod explain;
mod optimizer;
mod page;
mod ranks;
mod screen;
mod tables;

use clap::error::ErrorKind as ClapError;
use clap::{ArgMatches, ColorChoice, CommandFactory, FromArgMatches};
use restride::Error;
use screen::Screen;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

pub use explain::{json as explanation_json, text as explanation_text};
pub use page::html as report_page;
pub use tables::{ops_json, plan_json, plan_text, report_json, report_text, verdict_json};

/// Why a command failed.
enum Failure {
    /// The program, its inputs, or a file: exit status 1.
    Error(Error),
    /// The command line: exit status 2. The message, and what to do.
    Usage(String, String),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Error(e)
    }
}

/// Carries out a command line, the name of the command first, on standard input and output. Returns the exit status: 0 done, 1 refused or
/// failed, 2 wrong usage.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    color(color_given(&args));
    let parse = |line: Vec<OsString>| {
        let parsed = args::Cli::command().color(color_given(&args)).try_get_matches_from(line);
        parsed.and_then(|m| args::Cli::from_arg_matches(&m).map(|cli| (m, cli)))
    };
    // `grad` writes a file for each rank, and commands that know no ranks have none.
    let parsed = match parse(ranks::of_rank(&args, 0)) {
        Ok((_, cli)) if cli.command.ranks().is_none() => parse(args.clone()),
        other => other,
    };
    let (matches, cli) = match parsed {
        Ok(both) => both,
        Err(e) => return explained(&e),
    };
    let read = dashes(&matches, &["file", "inputs", "weights", "ops"]);
    let written = dashes(&matches, &["output", "outputs", "report", "json"]);
    let screen = Screen::new(&cli.screen, !written.is_empty());
    let done = one_of_each(&read, &written).and_then(|()| match ranks::runs_on_ranks(&cli) {
        Some(ranks) => ranks::run(&args, ranks),
        None => commands::run(&screen, &cli.command),
    });
    match done {
        Ok(()) => 0,
        Err(failure) => {
            screen.fail(&failure);
            if matches!(failure, Failure::Error(_)) { 1 } else { 2 }
        }
    }
}

/// Prints help, the version, or what is wrong with the command line.
fn explained(e: &clap::Error) -> u8 {
    let asked_for = matches!(e.kind(), ClapError::DisplayHelp | ClapError::DisplayVersion);
    match e.print().and_then(|()| std::io::stdout().flush()) {
        _ if !asked_for => 2,
        // A closed pipe is no error.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            screen::say(&format!("{}: standard output: {e}", screen::styled(screen::BAD, "error")));
            1
        }
        _ => 0,
    }
}

/// The value of `--color`, which help and usage errors follow as well.
fn color_given(args: &[OsString]) -> ColorChoice {
    let given: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let value = given.iter().enumerate().find_map(|(i, a)| match a.strip_prefix("--color") {
        Some("") => given.get(i + 1).map(String::as_str),
        Some(value) => value.strip_prefix('='),
        None => None,
    });
    value.and_then(|v| v.parse().ok()).unwrap_or(ColorChoice::Auto)
}

/// Applies `--color` to tables, notes and errors.
fn color(choice: ColorChoice) {
    match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    }
    .write_global();
}

/// Those of these arguments whose value is `-`.
fn dashes(matches: &ArgMatches, names: &[&'static str]) -> Vec<&'static str> {
    let Some((_, command)) = matches.subcommand() else { return Vec::new() };
    let is_dash =
        |name: &&&str| command.try_get_one::<PathBuf>(name).ok().flatten().is_some_and(|p| screen::is_dash(p));
    names.iter().filter(is_dash).copied().collect()
}

/// Standard input and output serve one argument each, and a terminal gets no archive.
fn one_of_each(read: &[&str], written: &[&str]) -> Result<(), Failure> {
    let option = |name: &str| if name == "file" { "FILE".to_string() } else { format!("--{name}") };
    for (list, stream) in [(read, "standard input"), (written, "standard output")] {
        if let [first, second, ..] = list {
            let what = format!("{} and {} are both `-`, and there is one {stream}", option(first), option(second));
            return Err(Failure::Usage(what, "give one of them the path of a file".into()));
        }
    }
    if written == ["output"] && std::io::stdout().is_terminal() {
        let what = "standard output is a terminal, and a .pt2 is no text".to_string();
        return Err(Failure::Usage(what, "redirect it, as in -o - > out.pt2".into()));
    }
    Ok(())
}
