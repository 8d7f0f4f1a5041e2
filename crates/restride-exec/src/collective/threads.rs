//! Threads as ranks: an engine for tests, and for one process that runs all ranks.

use super::{Engine, ExchangeMemory, InFlight, WORLD, World, group_of, reduce, slice, slice_mut};
use restride_ir::{CollectTree, Exchange, Pattern};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Engines of `size` ranks of one process; each is for one thread. A group's name that `groups` does not bind is that of all
/// ranks; a bound one has a list of ranks for each of its groups.
pub fn thread_ranks(size: usize, groups: &[(&str, Vec<Vec<usize>>)]) -> Vec<Arc<dyn Engine>> {
    let shared = Arc::new(ThreadWorld {
        size,
        groups: groups.iter().map(|(name, lists)| (name.to_string(), lists.clone())).collect_map(),
        state: Mutex::new(ThreadState {
            failed: None,
            ended: vec![false; size],
            started: HashMap::new(),
            open: HashMap::new(),
        }),
        changed: Condvar::new(),
    });
    (0..size).map(|rank| Arc::new(ThreadRank { rank, shared: shared.clone() }) as Arc<dyn Engine>).collect()
}

struct ThreadWorld {
    size: usize,
    groups: BTreeMap<String, Vec<Vec<usize>>>,
    state: Mutex<ThreadState>,
    changed: Condvar,
}

/// World ranks of a group, and the number of one of its exchanges.
type ExchangeKey = (Vec<usize>, u64);

struct ThreadState {
    /// The first error of a rank.
    failed: Option<String>,
    /// Ranks whose engine was dropped.
    ended: Vec<bool>,
    /// How many exchanges a rank started in a group.
    started: HashMap<(usize, Vec<usize>), u64>,
    /// Exchanges that not all ranks have waited for.
    open: HashMap<ExchangeKey, Open>,
}

struct Open {
    /// One for each rank of the group that has started the exchange.
    parts: Vec<Option<Part>>,
    done: bool,
    /// Number of ranks that have not waited.
    left: usize,
}

#[derive(Clone)]
struct Part {
    exchange: Exchange,
    memory: ExchangeMemory,
}

// SAFETY: the memory belongs to the exchange until its rank has waited for it or dropped it, which takes the lock; the rank
// that completes the exchange uses it under the lock.
unsafe impl Send for Part {}

struct ThreadRank {
    rank: usize,
    shared: Arc<ThreadWorld>,
}

impl ThreadWorld {
    fn lock(&self) -> MutexGuard<'_, ThreadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, state: &mut ThreadState, why: &str) -> String {
        let why = state.failed.get_or_insert_with(|| why.to_string()).clone();
        self.changed.notify_all();
        why
    }
}

impl Engine for ThreadRank {
    fn name(&self) -> &str {
        "threads"
    }

    fn world(&self) -> World {
        World { rank: self.rank, size: self.shared.size }
    }

    fn group(&self, name: &str) -> Result<Vec<usize>, String> {
        let bound = self.shared.groups.get(name).filter(|_| name != WORLD);
        group_of(name, self.world(), bound.map(Vec::as_slice))
    }

    unsafe fn start(&self, exchange: &Exchange, memory: ExchangeMemory) -> Result<Box<dyn InFlight>, String> {
        let group = self.group(&exchange.group)?;
        let at = group.iter().position(|r| *r == self.rank).ok_or("this rank is not in its group")?;
        let mut state = self.shared.lock();
        let state = &mut *state;
        if let Some(why) = &state.failed {
            return Err(why.clone());
        }
        let number = state.started.entry((self.rank, group.clone())).or_insert(0);
        let key = (group, *number);
        *number += 1;
        let size = key.0.len();
        let new = || Open { parts: vec![None; size], done: false, left: size };
        let open = state.open.entry(key.clone()).or_insert_with(new);
        open.parts[at] = Some(Part { exchange: exchange.clone(), memory });
        if open.parts.iter().all(Option::is_some) {
            let parts: Vec<Part> = open.parts.iter().flatten().cloned().collect();
            // SAFETY: the memory of all ranks is the exchange's until they have waited for it.
            match unsafe { complete(&parts, &key.0) } {
                Ok(()) => open.done = true,
                Err(why) => drop(self.shared.fail(state, &why)),
            }
            self.shared.changed.notify_all();
        }
        Ok(Box::new(ThreadFlight { shared: self.shared.clone(), key, at }))
    }

    fn abort(&self, why: &str) {
        let why = format!("rank {} failed: {why}", self.rank);
        self.shared.fail(&mut self.shared.lock(), &why);
    }
}

impl Drop for ThreadRank {
    fn drop(&mut self) {
        self.shared.lock().ended[self.rank] = true;
        self.shared.changed.notify_all();
    }
}

/// Carries out an exchange that all ranks have started.
///
/// # Safety
/// The memory of all parts is valid and used by this call only; each rank's counts fit its exchange.
unsafe fn complete(parts: &[Part], group: &[usize]) -> Result<(), String> {
    let first = &parts[0];
    let kind = |e: &Exchange| std::mem::discriminant(&e.pattern);
    for (part, rank) in parts.iter().zip(group) {
        // The counts of an all-to-all differ from rank to rank.
        let counted = matches!(first.exchange.pattern, Pattern::AllToAll { .. });
        let alike = kind(&part.exchange) == kind(&first.exchange)
            && (counted || part.exchange.pattern == first.exchange.pattern && part.memory.sent == first.memory.sent)
            && part.memory.dtype == first.memory.dtype;
        if !alike {
            let said = |p: &Part| format!("{} of {} {}", p.exchange, p.memory.sent, p.memory.dtype.torch_name());
            return Err(format!("rank {} starts {}, and rank {rank} starts {}", group[0], said(first), said(part)));
        }
    }
    // Operands are copied first: a result may be in an operand's memory.
    // SAFETY: as promised by the caller.
    let bytes = |m: &ExchangeMemory| unsafe { slice(m.send, m.send_bytes()) }.to_vec();
    let sent: Vec<Vec<u8>> = parts.iter().map(|p| bytes(&p.memory)).collect();
    let operands: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
    let gathered: Vec<Vec<u8>> = match &first.exchange.pattern {
        Pattern::AllReduce(op) | Pattern::ReduceScatter(op) => {
            let mut total = vec![0; operands[0].len()];
            reduce(*op, first.memory.dtype, &operands, &mut total)?;
            match first.exchange.pattern {
                Pattern::AllReduce(_) => vec![total; parts.len()],
                _ => {
                    let part = total.len() / parts.len();
                    (0..parts.len()).map(|r| total[r * part..(r + 1) * part].to_vec()).collect()
                }
            }
        }
        Pattern::AllGather => vec![sent.concat(); parts.len()],
        Pattern::Broadcast { root } => vec![sent[*root as usize].clone(); parts.len()],
        Pattern::AllToAll { .. } => (0..parts.len()).map(|to| from_each(parts, &sent, to)).collect::<Result<_, _>>()?,
    };
    for (part, result) in parts.iter().zip(gathered) {
        // SAFETY: as promised by the caller.
        unsafe { slice_mut(part.memory.receive, part.memory.receive_bytes()) }.copy_from_slice(&result);
    }
    Ok(())
}

/// What rank `to` gets from each rank in an all-to-all.
fn from_each(parts: &[Part], sent: &[Vec<u8>], to: usize) -> Result<Vec<u8>, String> {
    let Pattern::AllToAll { received, .. } = &parts[to].exchange.pattern else { return Ok(Vec::new()) };
    let size = parts[to].memory.dtype.size();
    let mut out = Vec::new();
    for (from, part) in parts.iter().enumerate() {
        let Pattern::AllToAll { sent: counts, .. } = &part.exchange.pattern else { continue };
        if counts[to] != received[from] {
            let (have, want) = (counts[to], received[from]);
            return Err(format!("rank {from} of the group sends {have} elements to rank {to}, which takes {want}"));
        }
        let start: usize = counts[..to].iter().sum();
        out.extend_from_slice(&sent[from][start * size..(start + counts[to]) * size]);
    }
    Ok(out)
}

struct ThreadFlight {
    shared: Arc<ThreadWorld>,
    key: ExchangeKey,
    /// The rank in its group.
    at: usize,
}

impl InFlight for ThreadFlight {
    fn wait(self: Box<Self>) -> Result<(), String> {
        let shared = &self.shared;
        let mut state = shared.lock();
        loop {
            // This rank's part keeps the exchange open.
            let Some(open) = state.open.get(&self.key) else { return Err("the exchange is not there".into()) };
            if open.done {
                return Ok(());
            }
            if let Some(why) = &state.failed {
                return Err(why.clone());
            }
            let mut ranks = self.key.0.iter().zip(&open.parts);
            if let Some((rank, _)) = ranks.find(|(rank, part)| part.is_none() && state.ended[**rank]) {
                let why = format!("rank {rank} ended, and the others wait for it");
                return Err(shared.fail(&mut state, &why));
            }
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for ThreadFlight {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let Some(open) = state.open.get_mut(&self.key) else { return };
        open.left -= 1;
        if open.left == 0 {
            state.open.remove(&self.key);
        } else if !open.done {
            // The memory is the caller's again, so the exchange cannot complete.
            open.parts[self.at] = None;
            let why = format!("rank {} left an exchange", self.key.0[self.at]);
            self.shared.fail(&mut state, &why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{carry_out, engine, with_engine};
    use restride_ir::ReduceOp;
    use restride_tensor::RawTensor;

    /// Runs `rank` on each of `size` ranks and returns their results.
    fn on_ranks<T: Send>(size: usize, groups: &[(&str, Vec<Vec<usize>>)], rank: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let rank = &rank;
        std::thread::scope(|scope| {
            let engines = thread_ranks(size, groups);
            let threads: Vec<_> = engines
                .into_iter()
                .enumerate()
                .map(|(r, engine)| scope.spawn(move || with_engine(Some(engine), || rank(r))))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    fn exchanged(pattern: Pattern, group: &str, x: &[f32], received: i64) -> Result<Vec<f32>, String> {
        let x = RawTensor::from_slice(x, &[x.len() as i64]);
        let out = RawTensor::zeros(x.dtype(), restride_tensor::Layout::contiguous(&[received]));
        let exchange = Exchange { pattern, group: group.into(), ranks: None };
        {
            let x = x.read();
            let mut writing = out.write();
            carry_out(&exchange, x.view(), &writing.view_mut()).map_err(|e| e.to_string())?;
        }
        Ok(out.read().view().to_elements())
    }

    #[test]
    fn ranks_get_their_parts() {
        let groups = [("pairs", vec![vec![0, 2], vec![3, 1]])];
        let of = |pattern: Pattern, group: &str, n: i64| {
            let run = |r: usize| exchanged(pattern.clone(), group, &[r as f32, 10.0 * r as f32, 1.0, 2.0], n).unwrap();
            on_ranks(4, &groups, run)
        };
        let sum = of(Pattern::AllReduce(ReduceOp::Sum), "0", 4);
        assert!(sum.iter().all(|s| s == &[6.0, 60.0, 4.0, 8.0]));
        let pairs = of(Pattern::AllReduce(ReduceOp::Max), "pairs", 4);
        assert_eq!(pairs[0], [2.0, 20.0, 1.0, 2.0]);
        assert_eq!(pairs[1], [3.0, 30.0, 1.0, 2.0]);
        assert_eq!(of(Pattern::ReduceScatter(ReduceOp::Sum), "0", 1)[1], [60.0]);
        assert_eq!(of(Pattern::AllGather, "pairs", 8)[3][..2], [3.0, 30.0]);
        assert_eq!(of(Pattern::AllGather, "pairs", 8)[3][4..6], [1.0, 10.0]);
        assert_eq!(of(Pattern::Broadcast { root: 1 }, "pairs", 4)[0], [2.0, 20.0, 1.0, 2.0]);
        let all = of(Pattern::AllToAll { sent: vec![1; 4], received: vec![1; 4] }, "0", 4);
        assert_eq!(all[1], [0.0, 10.0, 20.0, 30.0]);
    }

    #[test]
    fn a_rank_that_fails_ends_or_differs_ends_all() {
        let failed = on_ranks(3, &[], |r| {
            if r == 1 {
                engine().abort("no input");
                return Err("no input".into());
            }
            exchanged(Pattern::AllGather, "0", &[1.0], 3)
        });
        assert_eq!(failed[0], Err("rank 1 failed: no input".into()));
        let ended =
            on_ranks(3, &[], |r| if r == 2 { Ok(vec![]) } else { exchanged(Pattern::AllGather, "0", &[1.0], 3) });
        assert!(ended[0].as_ref().is_err_and(|e| e.contains("rank 2 ended")), "{ended:?}");
        let other = on_ranks(2, &[], |r| {
            let by = if r == 0 { ReduceOp::Sum } else { ReduceOp::Max };
            exchanged(Pattern::AllReduce(by), "0", &[1.0], 1)
        });
        assert!(
            other.iter().all(|o| o.as_ref().is_err_and(|e| e.contains("rank 1 starts all_reduce(max)"))),
            "{other:?}"
        );
    }

    #[test]
    fn counts_that_do_not_fit_are_refused() {
        let alone = exchanged(Pattern::AllGather, "0", &[1.0], 3);
        assert!(alone.is_err_and(|e| e.contains("receives 3")));
        let root = exchanged(Pattern::Broadcast { root: 1 }, "0", &[1.0], 1);
        assert!(root.is_err_and(|e| e.contains("1 ranks")));
    }
}
