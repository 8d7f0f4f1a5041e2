//! Values dropped in vain: where their memory is free in the meantime, they are kept instead of recomputed, the most
//! expensive first.

use crate::memory_model::MemoryModel;
use restride_ir::sort_indices;

/// One time that a piece of memory is made.
#[derive(Clone, Copy)]
struct ValueVersion {
    /// Where in the sequence.
    made: usize,
    /// Where it is read last.
    last: usize,
}

/// The sequence without needless runs for a peak of `most`, and its peak.
pub(super) fn restore(model: &MemoryModel, costs: &[i64], mut sequence: Vec<usize>, most: i64) -> (Vec<usize>, i64) {
    let (versions, levels) = follow(model, &sequence);
    let peak = levels.iter().copied().max().unwrap_or(0);
    if sequence.len() == model.nodes.len() {
        return (sequence, peak);
    }
    // A peak that cannot be lowered is no reason to recompute anything.
    let most = most.max(peak);
    let mut tree = GainTree::new(&levels);
    // The version of each piece of memory that a run of a node makes.
    let mut made: Vec<Vec<(usize, usize)>> = vec![Vec::new(); sequence.len()];
    for (m, all) in versions.iter().enumerate() {
        all.iter().enumerate().skip(1).for_each(|(k, v)| made[v.made].push((m, k)));
    }
    let gap = |&(m, k): &(usize, usize)| (versions[m][k - 1].last, versions[m][k].made);
    let mut back: Vec<usize> = (0..sequence.len()).filter(|i| !made[*i].is_empty()).collect();
    let worth = |i: usize| {
        let held: i64 =
            made[i].iter().map(|v| model.sizes[v.0].saturating_mul((gap(v).1 - gap(v).0).max(1) as i64)).sum();
        costs[sequence[i]] as f64 / held.max(1) as f64
    };
    sort_indices(&mut back, &|a, b| worth(b).total_cmp(&worth(a)).then(a.cmp(&b)));
    let mut stays = vec![true; sequence.len()];
    for i in back {
        let need = |v: &(usize, usize)| model.sizes[v.0];
        for v in &made[i] {
            tree.add(gap(v), need(v));
        }
        // Only where something was added can it be too much now.
        if made[i].iter().all(|v| tree.most(gap(v)) <= most) {
            stays[i] = false;
        } else {
            made[i].iter().for_each(|v| tree.add(gap(v), -need(v)));
        }
    }
    let mut keep = stays.iter();
    sequence.retain(|_| *keep.next().expect("one for each"));
    let (_, levels) = follow(model, &sequence);
    (sequence, levels.into_iter().max().unwrap_or(0))
}

/// The times at which each piece of memory is made, and the live bytes at each node of a sequence.
fn follow(model: &MemoryModel, sequence: &[usize]) -> (Vec<Vec<ValueVersion>>, Vec<i64>) {
    let mut versions: Vec<Vec<ValueVersion>> = vec![Vec::new(); model.sizes.len()];
    for (i, &k) in sequence.iter().enumerate() {
        for &m in &model.nodes[k].reads {
            if let Some(v) = versions[m].last_mut() {
                v.last = i;
            }
        }
        for &m in &model.nodes[k].makes {
            // The caller's values are made once.
            if model.sizes[m] > 0 || versions[m].is_empty() {
                versions[m].push(ValueVersion { made: i, last: i });
            }
        }
    }
    let mut ends: Vec<i64> = vec![0; sequence.len()];
    let mut starts: Vec<i64> = vec![0; sequence.len()];
    // Bytes that a node's operands free.
    let mut gone: Vec<i64> = vec![0; sequence.len()];
    for (m, all) in versions.iter().enumerate() {
        for v in all {
            starts[v.made] += model.sizes[m];
            ends[v.last] += model.sizes[m];
            if v.last > v.made {
                gone[v.last] += model.sizes[m];
            }
        }
    }
    // A value of the caller that is made again beside another one is live for a moment.
    let mut seen = vec![false; model.nodes.len()];
    let mut now = 0i64;
    let mut levels = Vec::with_capacity(sequence.len());
    for (i, &k) in sequence.iter().enumerate() {
        let node = &model.nodes[k];
        let aside: i64 = if seen[k] {
            node.makes.iter().filter(|m| model.sizes[**m] == 0).map(|m| model.whole[*m]).sum()
        } else {
            0
        };
        seen[k] = true;
        let made = starts[i] + aside;
        let over = if node.reuses { made.min(gone[i]) } else { 0 };
        now += starts[i];
        levels.push(now + aside - over);
        now -= ends[i];
    }
    (versions, levels)
}

/// Numbers in a row: adding to a range of them, and the largest of a range.
struct GainTree {
    size: usize,
    most: Vec<i64>,
    /// The amount added to every leaf below.
    added: Vec<i64>,
}

impl GainTree {
    fn new(levels: &[i64]) -> GainTree {
        let size = levels.len().next_power_of_two().max(1);
        let mut most = vec![i64::MIN / 4; 2 * size];
        most[size..size + levels.len()].copy_from_slice(levels);
        for i in (1..size).rev() {
            most[i] = most[2 * i].max(most[2 * i + 1]);
        }
        GainTree { size, most, added: vec![0; 2 * size] }
    }

    /// Adds to all from the first to the last of a range.
    fn add(&mut self, (first, last): (usize, usize), by: i64) {
        self.add_below(1, (0, self.size - 1), (first, last), by);
    }

    fn add_below(&mut self, at: usize, own: (usize, usize), range: (usize, usize), by: i64) {
        if range.1 < own.0 || own.1 < range.0 {
            return;
        }
        if range.0 <= own.0 && own.1 <= range.1 {
            self.most[at] += by;
            self.added[at] += by;
            return;
        }
        let middle = own.0.midpoint(own.1);
        self.add_below(2 * at, (own.0, middle), range, by);
        self.add_below(2 * at + 1, (middle + 1, own.1), range, by);
        self.most[at] = self.most[2 * at].max(self.most[2 * at + 1]) + self.added[at];
    }

    /// The largest from the first to the last of a range.
    fn most(&self, range: (usize, usize)) -> i64 {
        self.most_below(1, (0, self.size - 1), range)
    }

    fn most_below(&self, at: usize, own: (usize, usize), range: (usize, usize)) -> i64 {
        if range.1 < own.0 || own.1 < range.0 {
            return i64::MIN / 4;
        }
        if range.0 <= own.0 && own.1 <= range.1 {
            return self.most[at];
        }
        let middle = own.0.midpoint(own.1);
        let below = self.most_below(2 * at, (own.0, middle), range);
        below.max(self.most_below(2 * at + 1, (middle + 1, own.1), range)) + self.added[at]
    }
}
