//! Where in the arena each buffer lies: offsets from lifetimes.
//!
//! First a lower bound: the largest sum of bytes that are live at one step. Then best fit under several orders, of which
//! the smallest arena is taken. The order of time needs no list of conflicts and is always near-linear; the others look
//! at each pair of buffers that live at the same time, and where there are too many pairs they only stack.

use restride_ir::{Buffer, BufferKind, Id, Placement, Plan, aligned};
use std::collections::{BTreeMap, BTreeSet};

/// In which order buffers are given offsets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanOrder {
    /// As they come alive, each into the smallest hole that is free at that time.
    Time,
    /// Largest first.
    Size,
    /// Longest life first.
    Lifetime,
    /// Largest product of size and life first.
    Area,
}

/// What `plan` may do.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanOptions {
    /// Whether buffers that do not live at the same time may share bytes.
    pub reuse: bool,
    /// Orders to try; none of them means one after another.
    pub orders: Vec<PlanOrder>,
    /// Budget of the orders other than `Time` for looking at pairs of buffers alive at the same time; an order for which
    /// it does not suffice stacks buffers without looking for holes.
    pub pairs: u64,
}

impl Default for PlanOptions {
    fn default() -> Self {
        let orders = vec![PlanOrder::Time, PlanOrder::Size, PlanOrder::Area, PlanOrder::Lifetime];
        PlanOptions { reuse: true, orders, pairs: 8_000_000 }
    }
}

/// A buffer to be placed: the steps from its first to its last use, and its bytes in whole blocks.
#[derive(Clone, Copy, Debug)]
struct Item {
    start: usize,
    end: usize,
    size: i64,
}

/// Gives every arena buffer an offset.
pub fn plan(placement: &Placement, options: &PlanOptions) -> Plan {
    let lives = lifetimes(placement);
    let mut ids = Vec::new();
    let mut items = Vec::new();
    let mut plan = Plan::default();
    for (id, buffer) in placement.buffers.iter() {
        let Buffer { kind: BufferKind::Arena, bytes } = buffer else { continue };
        match lives[id.index()] {
            // Never used, or nothing to hold: any offset will do.
            None => plan.offsets.set(id, Some(0)),
            _ if *bytes <= 0 => plan.offsets.set(id, Some(0)),
            Some((start, end)) => {
                ids.push(id);
                items.push(Item { start, end, size: aligned(*bytes) });
            }
        }
    }
    plan.lower_bound_bytes = lower_bound(&items);
    let mut best = (sum(items.iter().map(|i| i.size)), one_after_another(&items));
    if options.reuse {
        let pairs = count_pairs(&items);
        let mut budget = options.pairs;
        for &order in &options.orders {
            if best.0 == plan.lower_bound_bytes {
                break;
            }
            let offsets = match order {
                PlanOrder::Time => fit_in_time(&items),
                _ if pairs <= budget => {
                    budget -= pairs;
                    fit_among_pairs(&items, &sorted(&items, order))
                }
                _ => stack(&items, &sorted(&items, order)),
            };
            let arena = items.iter().zip(&offsets).map(|(i, o)| o.saturating_add(i.size)).max().unwrap_or(0);
            if arena < best.0 {
                best = (arena, offsets);
            }
        }
    }
    for (id, offset) in ids.into_iter().zip(best.1) {
        plan.offsets.set(id, Some(offset));
    }
    plan.arena_bytes = best.0;
    plan.optimal = plan.arena_bytes == plan.lower_bound_bytes;
    plan
}

/// First and last step that touches each buffer.
fn lifetimes(placement: &Placement) -> Vec<Option<(usize, usize)>> {
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; placement.buffers.len()];
    for (step, s) in placement.steps.iter().enumerate() {
        for buffer in placement.touched(s) {
            let life = &mut lives[buffer.index()];
            *life = Some((life.map_or(step, |l| l.0), step));
        }
    }
    lives
}

fn sum(sizes: impl Iterator<Item = i64>) -> i64 {
    sizes.fold(0, i64::saturating_add)
}

/// Largest sum of sizes over the items alive at one step.
fn lower_bound(items: &[Item]) -> i64 {
    let mut changes: BTreeMap<usize, i128> = BTreeMap::new();
    for i in items {
        *changes.entry(i.start).or_default() += i128::from(i.size);
        *changes.entry(i.end + 1).or_default() -= i128::from(i.size);
    }
    let mut live = 0;
    let most = changes.values().map(|c| {
        live += c;
        live
    });
    i64::try_from(most.max().unwrap_or(0)).unwrap_or(i64::MAX)
}

fn count_pairs(items: &[Item]) -> u64 {
    let mut starts: Vec<usize> = items.iter().map(|i| i.start).collect();
    let mut ends: Vec<usize> = items.iter().map(|i| i.end).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let (mut pairs, mut ended) = (0u64, 0);
    for (begun, &start) in starts.iter().enumerate() {
        while ends[ended] < start {
            ended += 1;
        }
        pairs += (begun - ended) as u64;
    }
    pairs
}

fn one_after_another(items: &[Item]) -> Vec<i64> {
    let mut top = 0i64;
    let place = |i: &Item| {
        let next = top.saturating_add(i.size);
        std::mem::replace(&mut top, next)
    };
    items.iter().map(place).collect()
}

fn sorted(items: &[Item], order: PlanOrder) -> Vec<usize> {
    let mut out: Vec<usize> = (0..items.len()).collect();
    out.sort_by_key(|&k| {
        let i = &items[k];
        let life = (i.end - i.start + 1) as i128;
        let key = match order {
            PlanOrder::Time => -(i.start as i128),
            PlanOrder::Size => i128::from(i.size),
            PlanOrder::Lifetime => life,
            PlanOrder::Area => life * i128::from(i.size),
        };
        // The size breaks ties, then the order of time, then that of the buffers.
        (std::cmp::Reverse((key, i.size)), i.start, k)
    });
    out
}

/// Holes below a top: by offset and by size.
#[derive(Default)]
struct Holes {
    by_offset: BTreeMap<i64, i64>,
    by_size: BTreeSet<(i64, i64)>,
    top: i64,
}

impl Holes {
    fn insert(&mut self, offset: i64, size: i64) {
        self.by_offset.insert(offset, size);
        self.by_size.insert((size, offset));
    }
    fn remove(&mut self, offset: i64, size: i64) {
        self.by_offset.remove(&offset);
        self.by_size.remove(&(size, offset));
    }
    /// The smallest hole that fits, or the top, with a hole that ends there used up.
    fn take(&mut self, size: i64) -> i64 {
        if let Some(&(have, offset)) = self.by_size.range((size, 0)..).next() {
            self.remove(offset, have);
            if have > size {
                self.insert(offset + size, have - size);
            }
            return offset;
        }
        let last = self.by_offset.last_key_value().map(|(&o, &s)| (o, s)).filter(|(o, s)| o + s == self.top);
        let offset = match last {
            Some((offset, have)) => {
                self.remove(offset, have);
                offset
            }
            None => self.top,
        };
        self.top = offset.saturating_add(size);
        offset
    }
    fn give(&mut self, mut offset: i64, mut size: i64) {
        if let Some((&before, &have)) = self.by_offset.range(..offset).next_back()
            && before + have == offset
        {
            self.remove(before, have);
            (offset, size) = (before, size + have);
        }
        if let Some(&have) = self.by_offset.get(&(offset + size)) {
            self.remove(offset + size, have);
            size += have;
        }
        self.insert(offset, size);
    }
}

/// As an allocator would: best fit as buffers come and go.
fn fit_in_time(items: &[Item]) -> Vec<i64> {
    let mut ending: Vec<usize> = (0..items.len()).collect();
    ending.sort_by_key(|&k| (items[k].end, k));
    let mut starting: Vec<usize> = (0..items.len()).collect();
    starting.sort_by_key(|&k| (items[k].start, std::cmp::Reverse(items[k].size), k));
    let mut holes = Holes::default();
    let mut offsets = vec![0; items.len()];
    let mut ended = 0;
    for k in starting {
        while items[ending[ended]].end < items[k].start {
            let gone = ending[ended];
            holes.give(offsets[gone], items[gone].size);
            ended += 1;
        }
        offsets[k] = holes.take(items[k].size);
    }
    offsets
}

/// What has been placed, for asking what lives at the same time as a new item: those that begin while it lives, from
/// all items by their start; and those that are alive when it begins, from a tree over time whose nodes hold the lives
/// that cover them. Both look at no more than lives at the same time.
struct Placed<'a> {
    items: &'a [Item],
    by_start: Vec<usize>,
    is_placed: Vec<bool>,
    covering: Vec<Vec<usize>>,
    leaves: usize,
}

impl Placed<'_> {
    fn new(items: &[Item]) -> Placed<'_> {
        let steps = items.iter().map(|i| i.end + 1).max().unwrap_or(1);
        let leaves = steps.next_power_of_two();
        let by_start = sorted(items, PlanOrder::Time);
        Placed { items, by_start, is_placed: vec![false; items.len()], covering: vec![Vec::new(); 2 * leaves], leaves }
    }
    fn insert(&mut self, k: usize) {
        let item = &self.items[k];
        self.is_placed[k] = true;
        for node in cover(item, self.leaves) {
            self.covering[node].push(k);
        }
    }
    fn conflicts(&self, k: usize, out: &mut Vec<usize>) {
        out.clear();
        let item = &self.items[k];
        let mut node = item.start + self.leaves;
        while node > 0 {
            out.extend_from_slice(&self.covering[node]);
            node >>= 1;
        }
        let first = self.by_start.partition_point(|&c| self.items[c].start <= item.start);
        let later = self.by_start[first..].iter().take_while(|&&c| self.items[c].start <= item.end);
        out.extend(later.filter(|&&c| self.is_placed[c]));
    }
}

/// The nodes of a tree over time that together are the life of an item: node 1 is the root, steps are `leaves` on.
fn cover(item: &Item, leaves: usize) -> Vec<usize> {
    let (mut lo, mut hi) = (item.start + leaves, item.end + 1 + leaves);
    let mut nodes = Vec::new();
    while lo < hi {
        if lo & 1 == 1 {
            nodes.push(lo);
            lo += 1;
        }
        if hi & 1 == 1 {
            hi -= 1;
            nodes.push(hi);
        }
        lo >>= 1;
        hi >>= 1;
    }
    nodes
}

/// Each item, in the given order, into the smallest hole between those placed that live at the same time.
fn fit_among_pairs(items: &[Item], order: &[usize]) -> Vec<i64> {
    let mut placed = Placed::new(items);
    let mut offsets = vec![0i64; items.len()];
    let (mut found, mut taken) = (Vec::new(), Vec::new());
    for &k in order {
        placed.conflicts(k, &mut found);
        taken.clear();
        taken.extend(found.iter().map(|&c| (offsets[c], offsets[c].saturating_add(items[c].size))));
        taken.sort_unstable();
        let (mut top, mut best): (i64, Option<(i64, i64)>) = (0, None);
        for &(from, to) in &taken {
            let hole = from - top;
            if hole >= items[k].size && best.is_none_or(|b| hole < b.0) {
                best = Some((hole, top));
            }
            top = top.max(to);
        }
        offsets[k] = best.map_or(top, |b| b.1);
        placed.insert(k);
    }
    offsets
}

/// Each item, in the given order, on top of all that was placed and lives at the same time; holes stay.
fn stack(items: &[Item], order: &[usize]) -> Vec<i64> {
    let steps = items.iter().map(|i| i.end + 1).max().unwrap_or(1);
    let leaves = steps.next_power_of_two();
    // `most` is the largest top below a node, `whole` the top that was set for all of it.
    let (mut most, mut whole) = (vec![0i64; 2 * leaves], vec![0i64; 2 * leaves]);
    let mut offsets = vec![0i64; items.len()];
    for &k in order {
        let parts = cover(&items[k], leaves);
        let mut top = 0;
        for &node in &parts {
            top = top.max(most[node]);
            let mut above = node >> 1;
            while above > 0 {
                top = top.max(whole[above]);
                above >>= 1;
            }
        }
        offsets[k] = top;
        let new = top.saturating_add(items[k].size);
        for &node in &parts {
            whole[node] = whole[node].max(new);
            let mut at = node;
            while at > 0 {
                most[at] = most[at].max(new);
                at >>= 1;
            }
        }
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ir::{BufferId, NodeId, Place, Step};
    use restride_tensor::Layout;

    struct Lcg(u64);
    impl Lcg {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }
    }

    /// A placement of buffers with the given bytes, moved from at their first and to at their last step.
    fn placement(lives: &[(usize, usize, i64)]) -> Placement {
        let mut p = Placement::default();
        let ids: Vec<BufferId> =
            lives.iter().map(|l| p.buffers.push(Buffer { kind: BufferKind::Arena, bytes: l.2 })).collect();
        let steps = lives.iter().map(|l| l.1 + 1).max().unwrap_or(0);
        let at = |buffer| Place { buffer, layout: Layout::contiguous(&[]) };
        let mut by_step: Vec<Vec<Option<Place>>> = vec![Vec::new(); steps];
        for (&id, l) in ids.iter().zip(lives) {
            by_step[l.0].push(Some(at(id)));
            by_step[l.1].push(Some(at(id)));
        }
        for reads in by_step {
            p.steps.push(Step::Run { node: NodeId::new(0), reads, writes: vec![] });
        }
        p
    }

    fn random(rng: &mut Lcg, n: usize, steps: usize, most: usize) -> Vec<(usize, usize, i64)> {
        (0..n)
            .map(|_| {
                let start = rng.below(steps);
                (start, (start + rng.below(most)).min(steps - 1), rng.below(5000) as i64)
            })
            .collect()
    }

    fn valid(p: &Placement, plan: &Plan) {
        let lives = lifetimes(p);
        let all: Vec<_> = p
            .buffers
            .iter()
            .filter(|(id, b)| b.bytes > 0 && lives[id.index()].is_some())
            .map(|(id, b)| (lives[id.index()].unwrap(), plan.offsets[id].unwrap(), b.bytes))
            .collect();
        for (i, a) in all.iter().enumerate() {
            assert!(a.1 % 64 == 0 && a.1 + a.2 <= plan.arena_bytes);
            for b in &all[..i] {
                let in_time = a.0.0 <= b.0.1 && b.0.0 <= a.0.1;
                assert!(!in_time || a.1 + a.2 <= b.1 || b.1 + b.2 <= a.1, "{a:?} {b:?}");
            }
        }
        assert!(plan.lower_bound_bytes <= plan.arena_bytes);
        assert_eq!(plan.optimal, plan.lower_bound_bytes == plan.arena_bytes);
    }

    #[test]
    fn every_order_keeps_the_living_apart() {
        let mut rng = Lcg(3);
        let mut optimal = 0;
        for round in 0..60 {
            let (most, steps) = ([3, 12, 40][round % 3], 1 + rng.below(60));
            let p = placement(&random(&mut rng, 80, steps, most));
            let mut sizes = Vec::new();
            for order in [PlanOrder::Time, PlanOrder::Size, PlanOrder::Lifetime, PlanOrder::Area] {
                for pairs in [0, u64::MAX] {
                    let plan = plan(&p, &PlanOptions { reuse: true, orders: vec![order], pairs });
                    valid(&p, &plan);
                    sizes.push(plan.arena_bytes);
                }
            }
            let best = plan(&p, &PlanOptions::default());
            valid(&p, &best);
            assert!(best.arena_bytes <= *sizes.iter().min().unwrap());
            assert_eq!(best, plan(&p, &PlanOptions::default()));
            optimal += usize::from(best.optimal);
            let apart = plan(&p, &PlanOptions { reuse: false, ..PlanOptions::default() });
            valid(&p, &apart);
            assert!(apart.arena_bytes >= best.arena_bytes);
        }
        assert!(optimal > 10, "{optimal}");
    }

    #[test]
    fn a_chain_needs_two_buffers() {
        let p = placement(&(0..50).map(|i| (i, i + 1, 1000)).collect::<Vec<_>>());
        let plan = plan(&p, &PlanOptions::default());
        assert_eq!((plan.arena_bytes, plan.optimal), (2048, true));
    }

    #[test]
    fn nothing_to_place() {
        let plan = plan(&placement(&[]), &PlanOptions::default());
        assert_eq!((plan.arena_bytes, plan.lower_bound_bytes, plan.optimal), (0, 0, true));
        let empty = super::plan(&placement(&[(0, 3, 0), (1, 2, 0)]), &PlanOptions::default());
        assert_eq!(empty.arena_bytes, 0);
    }

    #[test]
    fn a_hundred_thousand_buffers() {
        let mut rng = Lcg(11);
        // Short lives, a few long ones among them; and all alive at once, where pairs cannot be looked at.
        for most in [20, 100_000] {
            let mut lives = random(&mut rng, 100_000, 100_000, most);
            lives.iter_mut().step_by(1000).for_each(|l| l.1 = 99_999);
            let p = placement(&lives);
            let start = std::time::Instant::now();
            let plan = plan(&p, &PlanOptions::default());
            eprintln!("{most}: {:?}, {} of {}", start.elapsed(), plan.arena_bytes, plan.lower_bound_bytes);
            assert!(plan.arena_bytes < plan.lower_bound_bytes / 2 * 3);
        }
    }
}
