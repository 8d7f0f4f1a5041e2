//! The judges held against runs: placements of random programs are spoilt, what the judges accept is run and must leave behind
//! what the interpreter does, and what they reject is run to see whether it was wrong. `SEEDS=FROM..TO` spoils other programs
//! than the usual ones.

use restride::{PlaceOptions, RunOptions};
use restride_check::FaultKind;
use restride_exec::run::Runnable;
use restride_ir::{BufferId, BufferKind, GraphId, Hop, Place, Placement, Program, Step, ValueId};
use restride_passes::plan::{PlanOptions, plan};
use restride_tensor::{Overlap, overlap_bytes};
use restride_testing::placed::Piece;
use restride_testing::rng::Rng;
use restride_testing::spoil::{KINDS, Kind, spoil, spoil_plan};
use restride_testing::{Left, by_chance, difference, generate};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What runs a placement that may be wrong, with memory spoilt where nothing may be read.
fn runnable(piece: &Piece, placement: &Placement) -> restride::Result<Runnable> {
    let offsets = plan(piece.program.graph(), placement, &PlanOptions::default());
    // SAFETY: not for certain, that is what is tested: steps stay inside of their memory, and where a kernel reads what it
    // writes, the numbers are what is looked at.
    Ok(unsafe { Runnable::new(&piece.program, placement.clone(), offsets)? }.poisoned())
}

/// How often one placement is spoilt in each way.
const EACH: usize = 2;

/// What became of placements spoilt in one way.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    done: usize,
    /// Accepted, and right.
    accepted: usize,
    /// Rejected, and a run gives something else or fails.
    caught: usize,
    /// Rejected by the judges and by what runs placements.
    unfit: usize,
    /// Rejected, and this run comes out right.
    strict: usize,
    /// Rejected, and not run: a loop might not end, or a kernel might leave memory.
    not_run: usize,
}

/// Whether a program that computes with wrong numbers may run forever.
fn loops(program: &Program) -> bool {
    let mut nodes = program.graphs.iter().flat_map(|(_, g)| g.ordered());
    nodes.any(|(_, n)| n.op.def().hop == Some(Hop::WhileLoop))
}

/// Whether a kernel meets with memory that it cannot cope with: it may copy without looking at an overlap, or go by indices
/// that it has looked at and then written over. Pointwise kernels only compute wrong numbers. `spread`: inputs are written that
/// may share memory with any other.
fn unsafe_to_run(program: &Program, id: GraphId, placement: &Placement, spread: bool) -> bool {
    let graph = &program.graphs[id];
    let size = |v: ValueId| graph.values[v].ty.tensor().and_then(|t| t.known()).map_or(1, |m| m.dtype.size());
    let input = |b: BufferId| matches!(placement.buffers[b].kind, BufferKind::Input(_));
    let meets = |(v, a): (ValueId, &Place), (r, b): (ValueId, &Place)| {
        let touch = || overlap_bytes(&a.layout, size(v), &b.layout, size(r)) != Overlap::Disjoint;
        if a.buffer == b.buffer { touch() } else { spread && input(a.buffer) && input(b.buffer) }
    };
    let here = placement.steps.iter().any(|step| {
        let Step::Run { node, reads, writes } = step else { return false };
        let node = &graph.nodes[*node];
        let def = node.op.def();
        let written: Vec<_> = node.results.iter().zip(writes).map(|(r, w)| (*r, w)).collect();
        let arguments = node.args.iter().enumerate().flat_map(|(i, a)| a.values().map(move |v| (i, *v)));
        let reads_what_it_writes = arguments.zip(reads).any(|((arg, v), read)| {
            let Some(read) = read else { return false };
            written.iter().enumerate().any(|(k, (r, write))| {
                let Some(write) = write else { return false };
                let licensed =
                    read == write && def.reuse.iter().any(|l| l.arg as usize == arg && l.result as usize == k);
                !licensed && meets((v, read), (*r, write))
            })
        });
        let twice = (0..written.len()).any(|k| {
            let Some(b) = written[k].1 else { return false };
            written[..k].iter().any(|(r, a)| a.as_ref().is_some_and(|a| meets((*r, a), (written[k].0, b))))
        });
        !def.pointwise && (reads_what_it_writes || twice)
    });
    here || placement.nested.iter().any(|(body, n)| unsafe_to_run(program, *body, &n.placement, spread))
}

/// Adds to a count what becomes of a spoilt placement.
fn held(piece: &Piece, eager: &Left, spoilt: &Placement, count: &mut Count) -> Result<(), String> {
    count.done += 1;
    let faults = match piece.judge(spoilt) {
        Ok(_) => {
            let left = runnable(piece, spoilt).and_then(|r| piece.run(&r)).map_err(|e| e.to_string())?;
            count.accepted += 1;
            return difference(eager, &left).map_or(Ok(()), Err);
        }
        Err(faults) => faults,
    };
    let program = &piece.program;
    let spread = faults.iter().any(|f| f.kind == FaultKind::ReadOnly);
    let counter = match runnable(piece, spoilt) {
        Err(_) => &mut count.unfit,
        Ok(_) if loops(program) || unsafe_to_run(program, program.main, spoilt, spread) => &mut count.not_run,
        // Kernels may overflow on numbers that are none.
        Ok(runnable) => match catch_unwind(AssertUnwindSafe(|| piece.run(&runnable))) {
            Ok(Ok(left)) if difference(eager, &left).is_none() => &mut count.strict,
            _ => &mut count.caught,
        },
    };
    *counter += 1;
    Ok(())
}

/// Plans of right placements with a buffer elsewhere: what is accepted is right. What is rejected is not run: a kernel may go by
/// indices that it has looked at and that are written over.
#[test]
fn a_plan_that_is_accepted_is_right() {
    let (mut accepted, mut rejected) = (0, 0);
    for seed in 0..240 {
        let sample = generate(seed);
        let Ok(eager) = Left::interp(&sample.program, &sample.inputs, &RunOptions::default()) else { continue };
        let Some(piece) = Piece::of(&sample) else { continue };
        let options = if seed % 2 == 0 { PlaceOptions::default() } else { by_chance(seed).place };
        let Ok(placement) = piece.place(&options) else { continue };
        let good = piece.judge(&placement).unwrap_or_else(|f| panic!("seed {seed}: {f:?}"));
        let mut rng = Rng::new(seed);
        for _ in 0..12 {
            let Some(mut bad) = spoil_plan(&placement, &good, &mut rng) else { continue };
            // Room to leave the peak.
            if rng.chance(30) {
                bad.arena_bytes += 4096;
                bad.optimal = false;
            }
            if restride_check::plan(&piece.program, &placement, &bad).is_err() {
                rejected += 1;
                continue;
            }
            accepted += 1;
            let runnable = Runnable::checked(&piece.program, placement.clone(), bad.clone()).unwrap();
            let left = piece.run(&runnable).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            if let Some(what) = difference(&eager, &left) {
                panic!("seed {seed}: {what}\n{good:?}\n{bad:?}\n{placement:?}");
            }
        }
    }
    assert!(accepted > 20 && rejected > 200, "{accepted} {rejected}");
}

#[test]
fn what_changes_a_result_is_rejected() {
    let seeds = std::env::var("SEEDS").ok();
    let range = seeds.as_deref().and_then(|s| s.split_once(".."));
    let range = range.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))).unwrap_or((0u64, 160));
    let mut counts: BTreeMap<Kind, Count> = BTreeMap::new();
    let (mut programs, mut wrong) = (0, Vec::new());
    for seed in range.0..range.1 {
        let sample = generate(seed);
        let Ok(eager) = Left::interp(&sample.program, &sample.inputs, &RunOptions::default()) else { continue };
        let Some(piece) = Piece::of(&sample) else { continue };
        let options = if seed % 2 == 0 { PlaceOptions::default() } else { by_chance(seed).place };
        let Ok(placement) = piece.place(&options) else { continue };
        let mut right = Count::default();
        let whole = held(&piece, &eager, &placement, &mut right);
        assert!(whole.is_ok() && right.accepted == 1, "seed {seed} is wrong before it is spoilt: {whole:?} {right:?}");
        programs += 1;
        let mut rng = Rng::new(seed);
        for kind in KINDS.into_iter().flat_map(|k| [k; EACH]) {
            let Some(spoilt) = spoil(&piece.program, &placement, kind, &mut rng) else { continue };
            let count = counts.entry(kind).or_default();
            if let Err(what) = held(&piece, &eager, &spoilt, count) {
                let text = |p: &Placement| {
                    restride_ir::text::print_placed(
                        &piece.program,
                        p,
                        None,
                        &restride_ir::text::PrintOptions::default(),
                    )
                };
                wrong.push(format!(
                    "seed {seed}: {kind:?} passes, and {what}\n{}\nfor\n{}",
                    text(&spoilt),
                    text(&placement)
                ));
            }
        }
    }
    println!("{programs} programs");
    counts.iter().for_each(|(kind, count)| println!("{kind:?} {count:?}"));
    assert!(wrong.is_empty(), "{} accepted that are wrong\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n\n"));
    if seeds.is_none() {
        assert_eq!(counts.len(), KINDS.len(), "{counts:?}");
        assert!(counts.values().all(|c| c.caught + c.unfit >= 5), "{counts:?}");
    }
}
