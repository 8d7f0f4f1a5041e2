//! Time cut into sections for the search: the ranges that items need in each, and the pairs of items that must be apart.
//!
//! A step that needs no more than a neighbouring step adds no constraint. So a section ends at each step after which memory
//! is freed, if memory was needed newly since the last such step. Within a section an item needs one range, from its first
//! to its last needed byte.

use super::problem::PlanItem;

/// The range that an item needs in a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionRange {
    /// The other one: section or item.
    pub at: u32,
    pub from: i64,
    pub to: i64,
}

/// Rows of different lengths.
#[derive(Clone, Debug)]
pub(super) struct SectionRows<T> {
    all: Vec<T>,
    starts: Vec<usize>,
}

impl<T> Default for SectionRows<T> {
    fn default() -> Self {
        SectionRows { all: Vec::new(), starts: vec![0] }
    }
}

impl<T> SectionRows<T> {
    pub fn end_row(&mut self) {
        self.starts.push(self.all.len());
    }
    pub fn push(&mut self, value: T) {
        self.all.push(value);
    }
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }
    pub fn row(&self, row: usize) -> &[T] {
        &self.all[self.range(row)]
    }
    pub fn all(&self) -> &[T] {
        &self.all
    }
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }
}

/// Items by sections.
#[derive(Clone, Debug, Default)]
pub(super) struct Sections {
    /// The sections of each item, in order.
    pub of_item: SectionRows<SectionRange>,
    /// The items of each section.
    pub items: SectionRows<SectionRange>,
    /// For each item, the others that it must be apart from, and how much higher their offsets must be when they are above
    /// it.
    pub above: SectionRows<(u32, i64)>,
    /// Whether items have parts: then a search that ends without a solution proves nothing.
    pub ragged: bool,
}

/// The range that an item needs, from each step on at which it changes.
fn windows(item: &PlanItem, out: &mut Vec<(usize, i64, i64)>) {
    out.clear();
    if item.parts.is_empty() {
        out.extend([(item.start, 0, item.size), (item.end, 0, 0)]);
        return;
    }
    let mut edges: Vec<usize> = item.parts.iter().flat_map(|p| [p.start, p.end]).collect();
    edges.sort_unstable();
    edges.dedup();
    for at in edges {
        let alive = || item.parts.iter().filter(|p| p.start <= at && at < p.end);
        let from = alive().map(|p| p.from).min().unwrap_or(0);
        let to = alive().map(|p| p.to).max().unwrap_or(0);
        if out.last().is_none_or(|last| (last.1, last.2) != (from, to)) {
            out.push((at, from, to));
        }
    }
}

impl Sections {
    /// The sections of items, or `None` if that would take more than `budget` steps; its steps are taken from the budget.
    pub fn new(items: &[PlanItem], budget: &mut u64) -> Option<Sections> {
        let mut out = Sections { ragged: items.iter().any(|i| !i.parts.is_empty()), ..Sections::default() };
        // (step, item, range from then on)
        let mut changes: Vec<(usize, u32, i64, i64)> = Vec::new();
        let mut own = Vec::new();
        for (k, item) in items.iter().enumerate() {
            windows(item, &mut own);
            changes.extend(own.iter().map(|w| (w.0, k as u32, w.1, w.2)));
        }
        changes.sort_unstable();
        // Alive now, by item: its range; and the living, in no order.
        let mut now: Vec<(i64, i64)> = vec![(0, 0); items.len()];
        let mut living: Vec<u32> = Vec::new();
        let mut position: Vec<usize> = vec![0; items.len()];
        let mut by_item: Vec<Vec<SectionRange>> = vec![Vec::new(); items.len()];
        let mut grown = false;
        let mut k = 0;
        while k < changes.len() {
            let group = changes[k..].iter().take_while(|c| c.0 == changes[k].0).count();
            let group = &changes[k..k + group];
            k += group.len();
            let wider = |c: &&(usize, u32, i64, i64)| {
                let had = now[c.1 as usize];
                c.2 < c.3 && (had.0 == had.1 || c.2 < had.0 || had.1 < c.3)
            };
            let narrower = |c: &&(usize, u32, i64, i64)| {
                let had = now[c.1 as usize];
                had.0 < had.1 && (c.2 == c.3 || had.0 < c.2 || c.3 < had.1)
            };
            if grown && group.iter().any(|c| narrower(&c)) {
                *budget = budget.checked_sub(living.len() as u64)?;
                let section = out.items.len() as u32;
                living.sort_unstable();
                for (p, &i) in living.iter().enumerate() {
                    let (from, to) = now[i as usize];
                    position[i as usize] = p;
                    out.items.push(SectionRange { at: i, from, to });
                    by_item[i as usize].push(SectionRange { at: section, from, to });
                }
                out.items.end_row();
                grown = false;
            }
            grown |= group.iter().any(|c| wider(&c));
            for &(_, i, from, to) in group {
                let at = i as usize;
                let was = now[at].0 < now[at].1;
                now[at] = (from, to);
                if !was && from < to {
                    position[at] = living.len();
                    living.push(i);
                } else if was && from == to {
                    living.swap_remove(position[at]);
                    if let Some(&moved) = living.get(position[at]) {
                        position[moved as usize] = position[at];
                    }
                }
            }
        }
        for row in by_item {
            row.into_iter().for_each(|w| out.of_item.push(w));
            out.of_item.end_row();
        }
        out.apart(items.len(), budget)?;
        Some(out)
    }

    /// The greatest common divisor of all sizes.
    pub fn unit(&self) -> i64 {
        let gcd = |mut a: i64, mut b: i64| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let all = self.of_item.all().iter().flat_map(|w| [w.from, w.to]);
        all.fold(0, gcd).max(1)
    }

    /// Fills `above`.
    fn apart(&mut self, items: usize, budget: &mut u64) -> Option<()> {
        let mut most: Vec<i64> = vec![i64::MIN; items];
        let mut met: Vec<u32> = Vec::new();
        for i in 0..items {
            met.clear();
            for w in self.of_item.row(i) {
                let others = self.items.row(w.at as usize);
                *budget = budget.checked_sub(others.len() as u64)?;
                for o in others.iter().filter(|o| o.at as usize != i) {
                    let most = &mut most[o.at as usize];
                    if *most == i64::MIN {
                        met.push(o.at);
                    }
                    *most = (*most).max(w.to.saturating_sub(o.from));
                }
            }
            met.sort_unstable();
            for &m in &met {
                self.above.push((m, std::mem::replace(&mut most[m as usize], i64::MIN)));
            }
            self.above.end_row();
        }
        Some(())
    }
}
