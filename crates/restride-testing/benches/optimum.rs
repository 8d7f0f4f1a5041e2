//! How far placements are from the best: random programs that are small enough to try all choices.
//!
//! ```text
//! cargo bench -p restride-testing --bench optimum [-- [--seeds FROM..TO] [--values N] [--show SEED]]
//! ```
//!
//! A program's choices are the values that nodes make anew, each of which goes where `place` puts it or into memory of its
//! own: all subsets are placed, and beside these some placements with single candidates declined at random. The best is the
//! one that moves the fewest bytes, and among these the one with the fewest bytes of buffers that its steps touch. What no subset leads to is not
//! tried, so that the best is the best of what `place` can say, and may be beaten by another algorithm.

use restride::{PlaceOptions, Result, text};
use restride_ir::{BufferId, GraphId, Placement, Program, Type, ValueId};
use restride_passes::place::{self, Avoid, place_avoiding};
use restride_testing::generate;
use restride_testing::segment_run::SegmentRun;
use std::collections::BTreeSet;

/// Placements with candidates declined at random, for each program.
const VARIED: u64 = 128;

/// Bytes moved, bytes of buffers.
type Cost = (i64, i64);

/// Costs summed over programs, and how often they are the best.
#[derive(Default)]
struct Sum {
    moved: i64,
    memory: i64,
    optimal: usize,
    optimal_moves: usize,
    /// Gap in bytes moved over the bytes of the best placement's buffers: sum, and the worst with its seed.
    gaps: f64,
    worst: (f64, u64),
}

impl Sum {
    fn add(&mut self, seed: u64, have: Cost, best: Cost) {
        self.moved += have.0;
        self.memory += have.1;
        self.optimal += usize::from(have == best);
        self.optimal_moves += usize::from(have.0 == best.0);
        let gap = (have.0 - best.0) as f64 / best.1.max(1) as f64;
        self.gaps += gap;
        if gap > self.worst.0 {
            self.worst = (gap, seed);
        }
    }

    fn print(&self, name: &str, programs: usize) {
        let percent = |n: usize| 100.0 * n as f64 / programs.max(1) as f64;
        println!(
            "{name:<12} {:>8.2}% {:>12.2}% {:>12} {:>12} {:>9.2}% {:>9.2}% (seed {})",
            percent(self.optimal),
            percent(self.optimal_moves),
            self.moved,
            self.memory,
            100.0 * self.gaps / programs.max(1) as f64,
            100.0 * self.worst.0,
            self.worst.1
        );
    }
}

/// Bytes moved, and bytes of all buffers that are touched.
fn cost(program: &Program, placement: &Placement) -> Cost {
    fn touched(placement: &Placement) -> i64 {
        let buffers: BTreeSet<BufferId> = placement.steps.iter().flat_map(|s| placement.touched(s)).collect();
        let own: i64 = buffers.iter().map(|b| placement.buffers[*b].bytes).sum();
        own + placement.nested.values().map(|n| touched(&n.placement)).sum::<i64>()
    }
    (place::cost(program, placement).0, touched(placement))
}

/// Values that may go to several places.
fn choices(program: &Program) -> Vec<(GraphId, ValueId)> {
    let mut out = Vec::new();
    for (id, graph) in program.graphs.iter() {
        for (_, node) in graph.ordered().filter(|(_, n)| n.op.def().view.is_none()) {
            let tensors = node.results.iter().filter(|r| matches!(graph.values[**r].ty, Type::Tensor(_)));
            out.extend(tensors.map(|r| (id, *r)));
        }
    }
    out
}

/// The best placement that can be found.
fn optimum(piece: &SegmentRun, choices: &[(GraphId, ValueId)]) -> Result<(Cost, Placement)> {
    let mut best: Option<(Cost, Placement)> = None;
    let mut see = |placement: Placement| {
        let its = cost(&piece.program, &placement);
        if best.as_ref().is_none_or(|b| its < b.0) {
            best = Some((its, placement));
        }
    };
    for subset in 0..1usize << choices.len() {
        let avoid: Avoid = choices.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1).map(|(_, v)| *v).collect();
        see(place_avoiding(&piece.program, &PlaceOptions::default(), &avoid)?.placement);
    }
    for seed in 0..VARIED {
        see(piece.place(&PlaceOptions { vary: Some(seed), ..PlaceOptions::default() })?);
    }
    Ok(best.expect("the subset without a value is placed"))
}

fn main() -> Result<()> {
    let (mut range, mut most, mut show) = ((0u64, 2_000u64), 10, None);
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        let mut next = || args.next().unwrap_or_default();
        match a.as_str() {
            "--seeds" => {
                let given = next();
                let parsed = given.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                range = parsed.unwrap_or(range);
            }
            "--values" => most = next().parse().unwrap_or(most),
            "--show" => show = next().parse().ok(),
            _ => {}
        }
    }
    if let Some(seed) = show {
        range = (seed, seed + 1);
    }
    let (mut greedy, mut revised, mut found) = (Sum::default(), Sum::default(), Sum::default());
    let (mut programs, mut worse) = (0, Vec::new());
    for seed in range.0..range.1 {
        let Some(piece) = SegmentRun::of(&generate(seed)) else { continue };
        let choices = choices(&piece.program);
        if choices.is_empty() || choices.len() > most {
            continue;
        }
        let Ok(placement) = piece.place(&PlaceOptions::default()) else { continue };
        let once = piece.place(&PlaceOptions { revise: false, ..PlaceOptions::default() })?;
        let (best, best_placement) = optimum(&piece, &choices)?;
        let have = cost(&piece.program, &placement);
        programs += 1;
        greedy.add(seed, cost(&piece.program, &once), best);
        revised.add(seed, have, best);
        found.add(seed, best, best);
        if have != best {
            worse.push((have.0 - best.0, have.1 - best.1, seed));
        }
        if show.is_some() {
            let print = |p: &Placement| text::print_placed(&piece.program, p, None, &text::PrintOptions::default());
            println!("{have:?}\n{}\nthe best is {best:?}\n{}", print(&placement), print(&best_placement));
        }
    }
    println!("{programs} programs of at most {most} choices");
    println!(
        "{:<12} {:>9} {:>13} {:>12} {:>12} {:>10} {:>10}",
        "", "optimal", "moves optimal", "moved bytes", "buffer bytes", "mean gap", "worst gap"
    );
    greedy.print("as they come", programs);
    revised.print("with undoing", programs);
    found.print("best found", programs);
    worse.sort_unstable_by(|a, b| b.cmp(a));
    for (moved, memory, seed) in worse.iter().take(20) {
        println!("seed {seed}: {moved} bytes more are moved, buffers are larger by {memory} bytes");
    }
    Ok(())
}
