//! The comparison of what ranks are about to exchange, before any of them writes memory.
//!
//! Ranks may run different programs (each its part of a model), so they agree group by group: all ranks of a group carry out
//! the same sequence of exchanges, of the same types and sizes.

use super::{Engine, ExchangeMemory, WORLD};
use restride_ir::{Arg, ArgType, Binding, CollectTree, Exchange, Expr, GraphId, Kernel, Pattern, Program};
use restride_tensor::DType;
use std::collections::{BTreeMap, BTreeSet};

/// The exchanges of one group: how many, and a digest of their sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Sequence {
    count: u64,
    digest: u64,
}

impl Sequence {
    fn add(&mut self, text: &str) {
        self.count += 1;
        // FNV-1a over what came before and this exchange.
        let start = if self.digest == 0 { 0xcbf2_9ce4_8422_2325 } else { self.digest };
        self.digest = fnv(start, text.as_bytes());
    }
}

fn fnv(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// The group's name of a call of a collective: its last argument, for every collective.
fn group_name(args: &[Arg]) -> Option<&str> {
    args.iter().rev().find_map(|a| if let Arg::Str(s) = a { Some(&**s) } else { None })
}

/// The sequences of the groups that a program names.
fn sequences(program: &Program, symbols: &Binding) -> BTreeMap<String, Sequence> {
    let mut out = BTreeMap::new();
    collect(program, program.main, symbols, &mut out, 0);
    out
}

fn collect(program: &Program, id: GraphId, symbols: &Binding, out: &mut BTreeMap<String, Sequence>, depth: usize) {
    let Some(graph) = program.graphs.get(id).filter(|_| depth < 64) else { return };
    for (_, node) in graph.ordered() {
        for body in node.bodies() {
            let mut inner = BTreeMap::new();
            collect(program, body, symbols, &mut inner, depth + 1);
            for (group, sequence) in inner {
                let text = format!("{} {sequence:?}", node.op);
                out.entry(group).or_default().add(&text);
            }
        }
        let op = node.op.twin().map_or(node.op, |t| t.op);
        let (Kernel::Collective(_), Some(group)) = (op.def().kernel, group_name(&node.args)) else { continue };
        // Values are not named: names differ between files of one model.
        let known = |e: &Expr| e.eval(symbols).map_or_else(|_| e.to_string(), |n| format!("{n:?}"));
        let operand =
            |v| graph.values[v].ty.tensor().map(|t| (t.dtype, t.layout.sizes.iter().map(known).collect::<Vec<_>>()));
        let operands: Vec<_> = node.operands().map(operand).collect();
        let plain = node.args.iter().filter(|a| a.values().next().is_none());
        let numbers: Vec<String> =
            plain.map(|a| format!("{:?} {a:?}", a.scalars().iter().map(known).collect::<Vec<_>>())).collect();
        // Counts for each rank, as all-to-all has them, differ from rank to rank.
        let counted = op.schema().args.iter().any(|a| matches!(a.ty, ArgType::Ints(_)));
        let text = if counted { op.to_string() } else { format!("{op} {operands:?} {numbers:?}") };
        out.entry(group.to_string()).or_default().add(&text);
    }
}

/// Compares a program's exchanges with those of the other ranks. Symbols have the values that
/// this rank's inputs give them.
///
/// # Errors
/// Ranks of one group would not carry out the same exchanges: on all ranks, with the rank that differs.
pub fn agree(engine: &dyn Engine, program: &Program, symbols: &Binding) -> Result<(), String> {
    let world = engine.world();
    if world.size == 1 {
        return Ok(());
    }
    let mut own = Vec::new();
    let sequences = sequences(program, symbols);
    for (group, sequence) in &sequences {
        let ranks = engine.group(group)?;
        let name = fnv(0xcbf2_9ce4_8422_2325, format!("{group} {ranks:?}").as_bytes());
        own.push([name, sequence.count, sequence.digest]);
    }
    let whole = own.iter().flatten().fold(own.len() as u64, |h, x| fnv(h, &x.to_le_bytes()));
    let all = gather(engine, &[own.len() as u64, whole])?;
    if all.chunks_exact(2).all(|other| other == &all[..2]) {
        return Ok(());
    }
    // Ranks have different groups, or one of them has other exchanges.
    let most = all.chunks_exact(2).map(|c| c[0]).max().unwrap_or(0) as usize;
    let mut padded: Vec<u64> = own.iter().flatten().copied().collect();
    padded.resize(most * 3, 0);
    let all = gather(engine, &padded)?;
    let of = |rank: usize, name: u64| {
        let rows = all[rank * most * 3..(rank + 1) * most * 3].chunks_exact(3);
        rows.filter(|row| row[0] == name).map(|row| [row[1], row[2]]).next()
    };
    // Every rank judges all groups, so all of them end with the same error.
    let names: BTreeSet<u64> = all.chunks_exact(3).map(|row| row[0]).filter(|n| *n != 0).collect_set();
    for name in names {
        let having: Vec<(usize, [u64; 2])> = (0..world.size).filter_map(|r| Some((r, of(r, name)?))).collect();
        let Some(&(first, sequence)) = having.first() else { continue };
        if let Some((rank, other)) = having.iter().find(|(_, s)| *s != sequence) {
            let what = if other[0] == sequence[0] { "with other operators or sizes" } else { "of another number" };
            return Err(format!(
                "rank {rank} runs another program, or other sizes, than rank {first}: {} exchanges on rank {first}, {} on rank \
                 {rank}, {what}",
                sequence[0], other[0]
            ));
        }
    }
    missing(engine, &sequences, &own, &|r, name| of(r, name).is_some())
}

/// Refuses a group that has a rank whose program does not use the group.
fn missing(
    engine: &dyn Engine,
    sequences: &BTreeMap<String, Sequence>,
    own: &[[u64; 3]],
    has: &dyn Fn(usize, u64) -> bool,
) -> Result<(), String> {
    let mut failed = None;
    for (group, row) in sequences.keys().zip(own) {
        if let Some(rank) = engine.group(group)?.into_iter().find(|r| !has(*r, row[0])) {
            failed.get_or_insert(format!("rank {rank} runs a program without exchanges in group `{group}`"));
        }
    }
    // The ranks that lack the group see no fault of their own.
    let faults = gather(engine, &[u64::from(failed.is_some())])?;
    match (failed, faults.iter().position(|f| *f != 0)) {
        (Some(why), _) => Err(why),
        (None, Some(rank)) => Err(format!("rank {rank} waits for exchanges that another rank's program does not have")),
        (None, None) => Ok(()),
    }
}

/// All ranks' numbers, as many from each.
fn gather(engine: &dyn Engine, own: &[u64]) -> Result<Vec<u64>, String> {
    let size = engine.world().size;
    let mut all = vec![0u64; own.len() * size];
    let exchange = Exchange { pattern: Pattern::AllGather, group: WORLD.into(), ranks: Some(size as i64) };
    let memory = ExchangeMemory {
        dtype: DType::I64,
        send: own.as_ptr().cast(),
        sent: own.len(),
        receive: all.as_mut_ptr().cast(),
        received: all.len(),
    };
    // SAFETY: both vectors live until the exchange is over, and are apart.
    unsafe { engine.start(&exchange, memory) }?.wait()?;
    Ok(all)
}
