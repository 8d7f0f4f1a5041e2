//! Best fit: each item in turn, under several orders, goes into the smallest hole that it fits into.
//!
//! The order of time needs no list of conflicts and is always near-linear. The others look at each pair of items that live
//! at the same time; with too many pairs they only stack items.

use super::problem::{PlanItem, forbidden, height};
use restride_ir::sort_indices;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// In which order items are given offsets.
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

/// The best of several orders, which end as soon as one is no higher than `enough`. `pairs` is the budget for looking at pairs.
pub(super) fn best_fit(items: &[PlanItem], orders: &[PlanOrder], mut pairs: u64, enough: i64) -> Vec<i64> {
    let mut best = one_after_another(items);
    let mut lowest = height(items, &best);
    let needed = count_pairs(items);
    for &order in orders {
        if lowest <= enough {
            break;
        }
        let offsets = match order {
            PlanOrder::Time => fit_in_time(items),
            _ if needed <= pairs => {
                pairs -= needed;
                fit_among_pairs(items, &sorted(items, order))
            }
            _ => stack(items, &sorted(items, order)),
        };
        let reached = height(items, &offsets);
        if reached < lowest {
            (lowest, best) = (reached, offsets);
        }
    }
    best
}

/// How many pairs of parts live at the same time; those of one item are counted with them.
fn count_pairs(items: &[PlanItem]) -> u64 {
    let (mut starts, mut ends) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
    for i in items {
        i.each_part(|p| {
            starts.push(p.start);
            ends.push(p.end);
        });
    }
    starts.sort_unstable();
    ends.sort_unstable();
    let (mut pairs, mut ended) = (0u64, 0);
    for (begun, &start) in starts.iter().enumerate() {
        while ends[ended] <= start {
            ended += 1;
        }
        pairs += (begun - ended) as u64;
    }
    pairs
}

pub(super) fn one_after_another(items: &[PlanItem]) -> Vec<i64> {
    let mut top = 0i64;
    let place = |i: &PlanItem| {
        let next = top.saturating_add(i.size);
        std::mem::replace(&mut top, next)
    };
    items.iter().map(place).collect()
}

fn sorted(items: &[PlanItem], order: PlanOrder) -> Vec<usize> {
    let mut out: Vec<usize> = (0..items.len()).collect();
    out.sort_by_cached_key(|&k| {
        let i = &items[k];
        let life = (i.end - i.start) as i128;
        let key = match order {
            PlanOrder::Time => -(i.start as i128),
            PlanOrder::Size => i128::from(i.size),
            PlanOrder::Lifetime => life,
            PlanOrder::Area => life * i128::from(i.size),
        };
        // The size breaks ties, then the order of time, then that of the items.
        (Reverse((key, i.size)), i.start, k)
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
    /// The smallest hole that fits, or the top, together with a hole that ends at it.
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

/// The steps from which on parts of an item are free, each with a range of the item.
fn endings(item: &PlanItem, k: usize, out: &mut Vec<(usize, usize, i64, i64)>) {
    if item.parts.is_empty() {
        return out.push((item.end, k, 0, item.size));
    }
    // Over the bytes, with the step from which each is free.
    let mut parts = item.parts.clone();
    parts.sort_unstable_by_key(|p| p.from);
    let mut edges: Vec<i64> = parts.iter().flat_map(|p| [p.from, p.to]).chain([0, item.size]).collect();
    edges.sort_unstable();
    edges.dedup();
    let (mut there, mut next) = (BinaryHeap::new(), 0);
    for pair in edges.windows(2) {
        while parts.get(next).is_some_and(|p| p.from <= pair[0]) {
            there.push((parts[next].end, parts[next].to));
            next += 1;
        }
        while there.peek().is_some_and(|p| p.1 <= pair[0]) {
            there.pop();
        }
        // Bytes that are never needed are free from the next step on.
        out.push((there.peek().map_or(item.start + 1, |p| p.0), k, pair[0], pair[1]));
    }
}

/// As an allocator would: best fit as items come and go, and parts of them go before.
fn fit_in_time(items: &[PlanItem]) -> Vec<i64> {
    let mut ending = Vec::with_capacity(items.len());
    items.iter().enumerate().for_each(|(k, i)| endings(i, k, &mut ending));
    ending.sort_unstable();
    let mut starting: Vec<usize> = (0..items.len()).collect();
    let key = |k: usize| (items[k].start, Reverse(items[k].size), k);
    sort_indices(&mut starting, &|a, b| key(a).cmp(&key(b)));
    let mut holes = Holes::default();
    let mut offsets = vec![0; items.len()];
    let mut ended = ending.into_iter().peekable();
    for k in starting {
        while let Some((_, gone, from, to)) = ended.next_if(|e| e.0 <= items[k].start) {
            holes.give(offsets[gone] + from, to - from);
        }
        offsets[k] = holes.take(items[k].size);
    }
    offsets
}

/// Placed items, to find those that live at the same time as a new item: items that begin while it lives, by start; and
/// items that are alive when it begins, from a tree over time whose nodes hold the lives that cover them. Both visit only
/// items that live at the same time.
struct PlacedItem<'a> {
    items: &'a [PlanItem],
    by_start: Vec<usize>,
    is_placed: Vec<bool>,
    covering: Vec<Vec<usize>>,
    leaves: usize,
}

impl PlacedItem<'_> {
    fn new(items: &[PlanItem]) -> PlacedItem<'_> {
        let steps = items.iter().map(|i| i.end).max().unwrap_or(1);
        let leaves = steps.next_power_of_two();
        let by_start = sorted(items, PlanOrder::Time);
        PlacedItem {
            items,
            by_start,
            is_placed: vec![false; items.len()],
            covering: vec![Vec::new(); 2 * leaves],
            leaves,
        }
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
        let later = self.by_start[first..].iter().take_while(|&&c| self.items[c].start < item.end);
        out.extend(later.filter(|&&c| self.is_placed[c]));
    }
}

/// The nodes of a tree over time that together are the life of an item: node 1 is the root, steps are `leaves` on.
fn cover(item: &PlanItem, leaves: usize) -> Vec<usize> {
    let (mut lo, mut hi) = (item.start + leaves, item.end + leaves);
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
fn fit_among_pairs(items: &[PlanItem], order: &[usize]) -> Vec<i64> {
    let mut placed = PlacedItem::new(items);
    let mut offsets = vec![0i64; items.len()];
    let (mut found, mut taken) = (Vec::new(), Vec::new());
    for &k in order {
        placed.conflicts(k, &mut found);
        taken.clear();
        for &c in &found {
            let at = offsets[c];
            forbidden(&items[c], &items[k], |after, before| {
                taken.push((at.saturating_add(after), at.saturating_add(before)));
            });
        }
        taken.sort_unstable();
        // By how much larger than the item a hole is, and where it begins.
        let (mut top, mut best): (i64, Option<(i64, i64)>) = (0, None);
        for &(after, before) in &taken {
            let room = after.saturating_sub(top);
            if room >= 0 && best.is_none_or(|b| room < b.0) {
                best = Some((room, top));
            }
            top = top.max(before);
        }
        offsets[k] = best.map_or(top, |b| b.1);
        placed.insert(k);
    }
    offsets
}

/// Each item, in the given order, on top of all that was placed and lives at the same time; holes stay.
fn stack(items: &[PlanItem], order: &[usize]) -> Vec<i64> {
    let steps = items.iter().map(|i| i.end).max().unwrap_or(1);
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
