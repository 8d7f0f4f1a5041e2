//! A command on several ranks: processes of `mpirun`, or threads of this process (`--ranks`).
//!
//! `{rank}` in an argument stands for the number of the rank. Rank 0 prints; the others print errors only.

use crate::Failure;
use crate::args::{Cli, RankArgs};
use crate::commands;
use crate::screen::{Screen, say};
use clap::{CommandFactory, FromArgMatches};
use restride::collective::{Engine, thread_ranks, with_engine};
use restride::{Error, ErrorKind};
use std::ffi::OsString;
use std::sync::Arc;

type Result<T> = std::result::Result<T, Failure>;

/// Group names, each with the ranks of its groups.
type BoundGroups = Vec<(String, Vec<Vec<usize>>)>;

/// A command line with the number of a rank for `{rank}`.
pub fn of_rank(args: &[OsString], rank: usize) -> Vec<OsString> {
    let one = |a: &OsString| match a.to_str() {
        Some(text) => text.replace("{rank}", &rank.to_string()).into(),
        None => a.clone(),
    };
    args.iter().map(one).collect()
}

/// Whether a command runs on ranks: it is told so, or a launcher of MPI started this process.
pub fn runs_on_ranks(cli: &Cli) -> Option<&RankArgs> {
    let args = cli.command.ranks()?;
    (args.ranks.is_some() || launched()).then_some(args)
}

/// Runs a command line as each of its ranks in this process.
pub fn run(line: &[OsString], args: &RankArgs) -> Result<()> {
    let groups = args.group.clone();
    if !launched() {
        return on_threads(line, args.ranks.unwrap_or(1), &groups);
    }
    if args.ranks.is_some() {
        let what = "--ranks runs ranks as threads, and a launcher of MPI started this process as one of its ranks";
        return Err(Failure::Usage(what.into(), "leave one of them out".into()));
    }
    let engine = mpi(groups)?;
    let world = engine.world();
    each_writes_its_own(line, world.size)?;
    let done = as_rank(line, world.rank, engine.clone());
    if done.is_err() {
        engine.abort("its error is above");
    }
    done
}

/// Threads as ranks. The errors of all are printed; those that follow from another rank's end are left out.
fn on_threads(line: &[OsString], size: usize, groups: &BoundGroups) -> Result<()> {
    if size == 0 || size > 1024 {
        return Err(Failure::Usage(format!("--ranks {size}"), "give a number of ranks from 1 to 1024".into()));
    }
    each_writes_its_own(line, size)?;
    let groups: Vec<(&str, Vec<Vec<usize>>)> = groups.iter().map(|(n, l)| (n.as_str(), l.clone())).collect();
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let engines = thread_ranks(size, &groups).into_iter().enumerate();
        let threads: Vec<_> = engines.map(|(rank, engine)| scope.spawn(move || as_rank(line, rank, engine))).collect();
        let ended = || Error::new(ErrorKind::Invalid, "a rank ended without a result").into();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(ended()))).collect()
    });
    let mut failures: Vec<Failure> = results.into_iter().filter_map(Result::err).collect();
    let follows = |f: &Failure| matches!(f, Failure::Error(e) if e.what.starts_with("rank "));
    let own = failures.iter().position(|f| !follows(f)).unwrap_or(0);
    if failures.is_empty() { Ok(()) } else { Err(failures.swap_remove(own)) }
}

/// Runs the command as one rank, which tells the others if it fails.
fn as_rank(line: &[OsString], rank: usize, engine: Arc<dyn Engine>) -> Result<()> {
    let matches = Cli::command().try_get_matches_from(of_rank(line, rank));
    let cli = match matches.and_then(|m| Cli::from_arg_matches(&m)) {
        Ok(mut cli) => {
            cli.screen.quiet |= rank > 0;
            cli
        }
        Err(e) => {
            engine.abort("its command line is wrong");
            let text = e.to_string();
            return Err(Failure::Usage(text.lines().next().unwrap_or("").into(), String::new()));
        }
    };
    let screen = Screen::new(&cli.screen, false);
    let done = with_engine(Some(engine.clone()), || commands::run(&screen, &cli.command));
    done.inspect_err(|failure| {
        let what = match failure {
            Failure::Error(e) => e.what.clone(),
            Failure::Usage(what, _) => what.clone(),
        };
        if engine.world().size > 1 && !what.starts_with("rank ") {
            say(&format!("rank {rank}:"));
            screen.fail(failure);
        }
        engine.abort(&what);
    })
}

/// Refuses an output that every rank would write.
fn each_writes_its_own(line: &[OsString], size: usize) -> Result<()> {
    let given: Vec<String> = line.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    for name in ["--outputs", "--json"] {
        let value = given.iter().enumerate().find_map(|(i, a)| match a.strip_prefix(name)? {
            "" => given.get(i + 1).cloned(),
            rest => rest.strip_prefix('=').map(str::to_string),
        });
        if let Some(path) = value.filter(|p| size > 1 && !p.contains("{rank}")) {
            let what = format!("{size} ranks would all write {path}");
            return Err(Failure::Usage(what, format!("give each a file of its own: {name} 'out.{{rank}}.npz'")));
        }
    }
    Ok(())
}

#[cfg(feature = "mpi")]
fn launched() -> bool {
    restride::collective::Mpi::launched()
}

#[cfg(feature = "mpi")]
fn mpi(groups: BoundGroups) -> Result<Arc<dyn Engine>> {
    let engine = restride::collective::Mpi::new(groups.into_iter().collect());
    engine.map(|e| Arc::new(e) as Arc<dyn Engine>).map_err(|why| Error::unsupported(why).into())
}

/// Whether a launcher of MPI started this process as one of several ranks.
#[cfg(not(feature = "mpi"))]
fn launched() -> bool {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter().any(|v| std::env::var(v).is_ok_and(|n| n != "1"))
}

#[cfg(not(feature = "mpi"))]
fn mpi(_: BoundGroups) -> Result<Arc<dyn Engine>> {
    Err(Error::unsupported("a launcher of MPI started this process, and this build has no MPI")
        .help("build it with --features mpi, or run ranks as threads of one process with --ranks N")
        .into())
}
