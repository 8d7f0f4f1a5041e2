//! Checkers against runs. Placements of random programs are damaged: accepted ones must run to the interpreter's results,
//! and rejected ones run to see whether they were wrong. `SEEDS=FROM..TO` selects programs.

use restride::{Inputs, PlaceOptions, RunOptions};
use restride_check::FaultKind;
use restride_exec::collective::{EchoRank, with_engine};
use restride_exec::run::Runnable;
use restride_ir::{BufferId, BufferKind, GraphId, Hop, Kernel, Place, Placement, Program, Step, ValueId, aligned};
use restride_passes::plan::plan;
use restride_tensor::{Overlap, overlap_bytes};
use restride_testing::damage::{DamageKind, EXCHANGE_KINDS, KINDS, damage, damage_plan};
use restride_testing::rng::Rng;
use restride_testing::segment_run::{SegmentRun, quick_plan, turned};
use restride_testing::{Leftovers, RandomProgram, by_chance, difference, generate};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What runs a placement that may be wrong, with memory damaged where nothing may be read.
fn runnable(piece: &SegmentRun, placement: &Placement) -> restride::Result<Runnable> {
    let offsets = plan(piece.program.graph(), placement, &quick_plan());
    // SAFETY: not for certain, that is what is tested: steps stay inside of their memory, and where a kernel reads what it
    // writes, the numbers are what is looked at.
    Ok(unsafe { Runnable::new(&piece.program, placement.clone(), offsets)? }.poisoned())
}

/// As [`runnable`], with no two buffers on the same bytes: a kernel that reads what was never stored does not meet its own result.
fn runnable_apart(piece: &SegmentRun, placement: &Placement) -> restride::Result<Runnable> {
    let mut offsets = plan(piece.program.graph(), placement, &quick_plan());
    let mut end = 0i64;
    for (id, buffer) in placement.buffers.iter().filter(|(_, b)| b.kind == BufferKind::Arena) {
        offsets.offsets.set(id, Some(end));
        end = end.saturating_add(aligned(buffer.bytes));
    }
    offsets.arena_bytes = end.max(offsets.arena_bytes);
    // SAFETY: as in `runnable`.
    Ok(unsafe { Runnable::new(&piece.program, placement.clone(), offsets)? }.poisoned())
}

/// How often one placement is damaged in a way: more often where few have what is damaged.
fn each(kind: DamageKind) -> usize {
    match kind {
        DamageKind::Nested => 24,
        DamageKind::InFlight => 16,
        DamageKind::Wait | DamageKind::Start => 4,
        DamageKind::Scratch => 8,
        _ => 2,
    }
}

/// Bytes that a test need not have.
const ARENA_OF_NONE: usize = 1 << 26;

/// What became of placements damaged in one way.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    done: usize,
    /// Accepted, and right.
    accepted: usize,
    /// Accepted, and refused by what runs placements.
    refused: usize,
    /// Rejected, and a run gives something else or fails.
    caught: usize,
    /// Rejected by the checkers and by what runs placements.
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
        // Of an exchange in memory that overlaps, `EchoRank` reads all before it writes. Strided memory is packed.
        let whole = || reads.iter().chain(writes).flatten().all(|p| p.layout.is_contiguous());
        let exchange = def.awaits || matches!(def.kernel, Kernel::Collective(_)) && whole();
        !def.pointwise && !exchange && (reads_what_it_writes || twice)
    });
    here || placement.nested.iter().any(|(body, n)| unsafe_to_run(program, *body, &n.placement, spread))
}

/// Runs with another rank, for programs with exchanges.
fn paired<R>(run: impl FnOnce() -> R) -> R {
    with_engine(Some(Arc::new(EchoRank::default())), run)
}

/// Inputs, with what the interpreter leaves of them.
type Sets = Vec<(Inputs, Leftovers)>;

/// The sample's inputs and others, as far as eager takes them.
fn sets(sample: &RandomProgram) -> Option<Sets> {
    let mut out = Sets::new();
    for by in 0..3 {
        let inputs = if by == 0 { sample.inputs.clone() } else { turned(&sample.inputs, by) };
        match paired(|| Leftovers::interp(&sample.program, &inputs, &RunOptions::default())) {
            Ok(left) => out.push((inputs, left)),
            Err(_) if by == 0 => return None,
            Err(_) => {}
        }
    }
    Some(out)
}

/// What a run leaves that eager does not, on any of the inputs.
fn differs(piece: &SegmentRun, runnable: &Runnable, sets: &Sets) -> Option<String> {
    sets.iter().find_map(|(inputs, eager)| match paired(|| piece.run_on(runnable, inputs)) {
        Ok(left) => difference(eager, &left),
        Err(e) => Some(e.to_string()),
    })
}

/// Whether a step works in memory that holds what it reads or writes, where the kernel may keep indices, or in none.
fn works_elsewhere(program: &Program, id: GraphId, placement: &Placement) -> bool {
    let mut uses: BTreeMap<BufferId, usize> = BTreeMap::new();
    for step in &placement.steps {
        let mut touched: Vec<BufferId> = placement.touched(step).collect();
        touched.sort_unstable();
        touched.dedup();
        touched.into_iter().for_each(|b| *uses.entry(b).or_default() += 1);
    }
    let shared = placement.steps.iter().any(|step| {
        let Step::Run { node, reads, writes } = step else { return false };
        let hop = program.graphs[id].nodes.get(*node).is_some_and(|n| n.op.def().hop.is_some());
        let mut places = reads.iter().chain(writes).flatten();
        let own = placement.scratch.get(node);
        own.is_some_and(|b| places.any(|p| p.buffer == *b) || (hop && uses[b] > 1))
    });
    shared || placement.nested.iter().any(|(body, n)| works_elsewhere(program, *body, &n.placement))
}

/// Adds to a count what becomes of a damaged placement.
fn held(
    piece: &SegmentRun,
    sets: &Sets,
    damaged: &Placement,
    kind: Option<DamageKind>,
    count: &mut Count,
) -> Result<(), String> {
    count.done += 1;
    let checked = catch_unwind(AssertUnwindSafe(|| piece.check(damaged)));
    let faults = match checked.map_err(|_| "the checker panics".to_string())? {
        Ok(_) => {
            // What nothing can run changes no result.
            let Ok(runnable) = runnable(piece, damaged) else {
                count.refused += 1;
                return Ok(());
            };
            // An arena that no machine has is refused when a run asks for it.
            if runnable.arena_bytes() >= ARENA_OF_NONE {
                count.refused += 1;
                return Ok(());
            }
            count.accepted += 1;
            return differs(piece, &runnable, sets).map_or(Ok(()), Err);
        }
        Err(faults) => faults,
    };
    let program = &piece.program;
    let spread = faults.iter().any(|f| f.kind == FaultKind::ReadOnly);
    // What is no placement is not planned either: the planner trusts what it is given.
    let made = match kind.is_some_and(DamageKind::ill_formed) {
        true => None,
        false => catch_unwind(AssertUnwindSafe(|| runnable_apart(piece, damaged))).ok().and_then(Result::ok),
    };
    let counter = match made {
        None => &mut count.unfit,
        // A kernel may go by indices that it has looked at, and that another buffer's elements are then written over.
        Some(_) if faults.iter().any(|f| f.kind == FaultKind::Shared) => &mut count.not_run,
        Some(_) if loops(program) || works_elsewhere(program, program.main, damaged) => &mut count.not_run,
        Some(_) if unsafe_to_run(program, program.main, damaged, spread) => &mut count.not_run,
        // Kernels may overflow on numbers that are none.
        Some(runnable) => match catch_unwind(AssertUnwindSafe(|| differs(piece, &runnable, sets))) {
            Ok(None) => &mut count.strict,
            _ => &mut count.caught,
        },
    };
    *counter += 1;
    Ok(())
}

/// The seeds to go through: `SEEDS=FROM..TO`, or the usual ones.
fn seeds(usual: std::ops::Range<u64>) -> (std::ops::Range<u64>, bool) {
    let seeds = std::env::var("SEEDS").ok();
    let range = seeds.as_deref().and_then(|s| s.split_once(".."));
    match range.and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?)) {
        Some(range) => (range, true),
        None => (usual, false),
    }
}

/// Plans of right placements with a buffer elsewhere: what is accepted is right. What is rejected is not run: a kernel may go by
/// indices that it has looked at and that are written over.
#[test]
fn a_plan_that_is_accepted_is_right() {
    let (mut accepted, mut rejected) = (0, 0);
    for seed in seeds(0..240).0 {
        let sample = generate(seed);
        let Some(sets) = sets(&sample) else { continue };
        let Some(piece) = SegmentRun::of(&sample) else { continue };
        let piece = piece.fused(&by_chance(seed).fuse).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let options = if seed % 2 == 0 { PlaceOptions::default() } else { by_chance(seed).place };
        let Ok(placement) = piece.place(&options) else { continue };
        let good = piece.check(&placement).unwrap_or_else(|f| panic!("seed {seed}: {f:?}"));
        let mut rng = Rng::new(seed);
        for _ in 0..12 {
            let Some(mut bad) = damage_plan(&placement, &good, &mut rng) else { continue };
            // Room to leave the peak.
            if rng.chance(30) {
                bad.arena_bytes = bad.arena_bytes.saturating_add(4096);
                bad.optimal = false;
            }
            let checked = catch_unwind(AssertUnwindSafe(|| restride_check::plan(&piece.program, &placement, &bad)));
            if checked.unwrap_or_else(|_| panic!("seed {seed}: the checker panics at {bad:?}")).is_err() {
                rejected += 1;
                continue;
            }
            accepted += 1;
            // An arena that no machine has is refused.
            if bad.arena_bytes as usize >= ARENA_OF_NONE {
                continue;
            }
            let runnable = Runnable::checked(&piece.program, placement.clone(), bad.clone()).unwrap();
            if let Some(what) = differs(&piece, &runnable, &sets) {
                panic!("seed {seed}: {what}\n{good:?}\n{bad:?}\n{placement:?}");
            }
        }
    }
    println!("plans: {accepted} accepted, {rejected} rejected");
    assert!(accepted > 20 && rejected > 200, "{accepted} {rejected}");
}

/// Damages placements of samples and counts what becomes of them.
///
/// # Panics
/// A placement is wrong before it is damaged, or a wrong one is accepted.
fn spoil(
    samples: impl Iterator<Item = (u64, RandomProgram)>,
    kinds: &[DamageKind],
    has: impl Fn(&Program) -> bool,
) -> BTreeMap<DamageKind, Count> {
    let mut counts: BTreeMap<DamageKind, Count> = BTreeMap::new();
    let (mut programs, mut wrong) = (0, Vec::new());
    for (seed, sample) in samples {
        let Some(sets) = sets(&sample) else { continue };
        let Some(piece) = SegmentRun::of(&sample) else { continue };
        let piece = piece.fused(&by_chance(seed).fuse).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        if !has(&piece.program) {
            continue;
        }
        let options = if seed % 2 == 0 { PlaceOptions::default() } else { by_chance(seed).place };
        let Ok(placement) = piece.place(&options) else { continue };
        let mut right = Count::default();
        let whole = held(&piece, &sets, &placement, None, &mut right);
        assert!(whole.is_ok() && right.accepted == 1, "seed {seed} is wrong before it is damaged: {whole:?} {right:?}");
        programs += 1;
        let mut rng = Rng::new(seed);
        for kind in kinds.iter().flat_map(|k| vec![*k; each(*k)]) {
            let Some(damaged) = damage(&piece.program, &placement, kind, &mut rng) else { continue };
            let count = counts.entry(kind).or_default();
            if let Err(what) = held(&piece, &sets, &damaged, Some(kind), count) {
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
                    text(&damaged),
                    text(&placement)
                ));
            }
        }
    }
    println!("{programs} programs, {} damaged placements", counts.values().map(|c| c.done).sum::<usize>());
    counts.iter().for_each(|(kind, count)| println!("{kind:?} {count:?}"));
    assert!(wrong.is_empty(), "{} accepted that are wrong\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n\n"));
    counts
}

#[test]
fn what_changes_a_result_is_rejected() {
    let (range, chosen) = seeds(0..110);
    let counts = spoil(range.map(|seed| (seed, generate(seed))), &KINDS, |_| true);
    if !chosen {
        assert_eq!(counts.len(), KINDS.len(), "{counts:?}");
        // That the executor refuses a placement too says nothing for its checker, except where there is nothing to run.
        // Wrong plans are not run, neither the main graph's nor a body's.
        let enough = |(kind, c): (&DamageKind, &Count)| match kind {
            DamageKind::Nested => c.not_run + c.strict >= 5,
            k if k.ill_formed() => c.unfit + c.strict >= 5,
            _ => c.caught >= 5,
        };
        assert!(counts.iter().all(enough), "{counts:?}");
    }
}

/// Placements of programs with fused nodes, whose licences come from bodies: another place of an operand or a result that changes an
/// output is rejected.
#[test]
fn what_changes_a_result_of_a_fused_node_is_rejected() {
    let (range, chosen) = seeds(1000..1500);
    let fused = |p: &Program| p.graph().ordered().any(|(_, n)| n.op.def().fused);
    let kinds = [
        DamageKind::Reuse,
        DamageKind::Buffer,
        DamageKind::Offset,
        DamageKind::Strides,
        DamageKind::Operands,
        DamageKind::Target,
        DamageKind::Merge,
        DamageKind::Value,
    ];
    let counts = spoil(range.map(|seed| (seed, generate(seed))), &kinds, fused);
    if !chosen {
        assert!(kinds.iter().all(|k| counts.get(k).is_some_and(|c| c.caught >= 10)), "{counts:?}");
    }
}

/// Placements with exchanges in flight, damaged in all ways and between starts and waits.
#[test]
fn exchanges_in_flight_keep_their_memory() {
    let (range, chosen) = seeds(0..160);
    let exchanging = |p: &Program| p.graph().ordered().any(|(_, n)| n.op.def().awaits);
    let sample = |seed| (seed, generate(seed).with_exchanges(&mut Rng::new(seed)));
    let kinds: Vec<DamageKind> = KINDS.into_iter().chain(EXCHANGE_KINDS).collect();
    let counts = spoil(range.map(sample), &kinds, exchanging);
    if !chosen {
        let caught = |kind: DamageKind| counts.get(&kind).map_or(0, |c| c.caught);
        assert!(EXCHANGE_KINDS.into_iter().all(|k| caught(k) >= 5), "{counts:?}");
    }
}
