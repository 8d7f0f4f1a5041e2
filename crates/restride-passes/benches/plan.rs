//! What planning takes: the public instances that MiniMalloc is measured on, each to its capacity, and 100,000 items by best fit.
//!
//! ```text
//! cargo bench -p restride-passes --bench plan
//! ```
//!
//! For each instance: items, how high best fit piles them, the height found, the largest sum of what is needed at once, time,
//! and the steps of the search with what one took.

use restride_passes::plan::{PlanItem, PlanOptions, Problem, SearchOptions, solve};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// More than any of them takes.
const BUDGET: u64 = 20_000_000_000;

fn main() -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/minimalloc");
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        files.push(entry.map_err(|e| e.to_string())?.path());
    }
    files.retain(|f| f.extension().is_some_and(|e| e == "csv"));
    files.sort();
    println!(
        "{:<12} {:>7} {:>10} {:>10} {:>10} {:>9} {:>14} {:>8}",
        "instance", "items", "best fit", "found", "at least", "ms", "steps", "ns/step"
    );
    let mut missed = 0;
    for file in &files {
        let problem = read(file)?;
        let name = file.file_stem().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        missed += usize::from(!row(&name, &problem));
    }
    for (name, longest) in [("short lives", 20), ("long lives", 100_000)] {
        row(name, &synthetic(100_000, longest));
    }
    if missed > 0 { Err(format!("{missed} instances above their capacity")) } else { Ok(()) }
}

/// Solves a problem, without a capacity by best fit alone; whether the solution is no higher than the capacity.
fn row(name: &str, problem: &Problem) -> bool {
    let with = |budget| {
        let search = SearchOptions { budget, ..SearchOptions::default() };
        PlanOptions { search, ..PlanOptions::default() }
    };
    let timed = |budget| {
        let start = Instant::now();
        let solution = solve(problem, &with(budget));
        (solution, start.elapsed())
    };
    let fit = timed(0);
    let high = fit.0.height;
    let (found, time) = if problem.capacity.is_some() { timed(BUDGET) } else { fit };
    let ms = time.as_secs_f64() * 1e3;
    println!(
        "{name:<12} {:>7} {high:>10} {:>10} {:>10} {ms:>9.1} {:>14} {:>8.2}",
        problem.items.len(),
        found.height,
        found.at_least(),
        found.steps,
        ms * 1e6 / found.steps.max(1) as f64,
    );
    problem.capacity.is_none_or(|c| found.height <= c)
}

/// Lines `id,lower,upper,size`, an item living from `lower` on and no more at `upper`; the capacity is in the file's name.
fn read(file: &Path) -> Result<Problem, String> {
    let fault = |what: &str| format!("{}: {what}", file.display());
    let text = std::fs::read_to_string(file).map_err(|e| fault(&e.to_string()))?;
    let mut problem = Problem::default();
    for line in text.lines().skip(1) {
        let numbers: Vec<i64> = line.split(',').filter_map(|n| n.trim().parse().ok()).collect();
        let [_, lower, upper, size] = numbers[..] else { return Err(fault("a line of other than four numbers")) };
        problem.items.push(PlanItem::whole(lower as usize, upper as usize, size));
    }
    let name = file.file_stem().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let capacity = name.rsplit('.').next().and_then(|c| c.parse().ok());
    problem.capacity = Some(capacity.ok_or_else(|| fault("no capacity in its name"))?);
    Ok(problem)
}

/// As many items as steps; one item in a thousand lives to the end.
fn synthetic(n: usize, longest: usize) -> Problem {
    let mut state = 11u64;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let mut item = |k: usize| {
        let start = below(n);
        let end = if k.is_multiple_of(1000) { n } else { (start + 1 + below(longest)).min(n) };
        PlanItem::whole(start, end, 1 + below(5000) as i64)
    };
    Problem { items: (0..n).map(&mut item).collect(), capacity: None }
}
