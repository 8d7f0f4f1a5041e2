//! The planning problem and its solution as plain numbers, independent of programs and placements.
//!
//! Sizes and offsets are in any unit; alignment is a choice of unit (the arena is planned in whole blocks).

/// Bytes of an item that are needed during some steps: steps `start..end`, bytes `from..to`, counted from the item's own start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ItemPart {
    /// First step.
    pub start: usize,
    /// The step after the last.
    pub end: usize,
    /// First byte.
    pub from: i64,
    /// The byte after the last.
    pub to: i64,
}

/// Something that needs memory, all of it at one offset.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlanItem {
    /// First step of its life.
    pub start: usize,
    /// The step after its last.
    pub end: usize,
    /// How much it needs; more than nothing.
    pub size: i64,
    /// The ranges needed at each time, without overlap; empty means all of the item, all the time.
    pub parts: Vec<ItemPart>,
}

impl PlanItem {
    /// An item that is needed whole.
    pub fn whole(start: usize, end: usize, size: i64) -> PlanItem {
        PlanItem { start, end, size, parts: Vec::new() }
    }

    /// Calls back for each range and its time.
    pub fn each_part(&self, mut f: impl FnMut(ItemPart)) {
        if self.parts.is_empty() {
            f(ItemPart { start: self.start, end: self.end, from: 0, to: self.size });
        } else {
            self.parts.iter().for_each(|p| f(*p));
        }
    }
}

/// Items to find offsets for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Problem {
    /// The items that need memory.
    pub items: Vec<PlanItem>,
    /// A height that is low enough: lower solutions are not looked for. By default, the lower bound.
    pub capacity: Option<i64>,
}

/// Knowledge of the lowest possible height.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// As much is needed at one step, or by one item: no solution is lower.
    Bound,
    /// The search has been through everything that is lower.
    Search,
    /// None is lower than this; whether one is lower than that found is not known.
    Open {
        /// The proved bound.
        at_least: i64,
    },
}

/// Offsets for the items of a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Solution {
    /// One for each item, none negative.
    pub offsets: Vec<i64>,
    /// The end of the item that ends last.
    pub height: i64,
    /// The largest sum needed at one step.
    pub lower_bound: i64,
    /// Knowledge of lower heights.
    pub proof: Proof,
    /// Steps that the search took.
    pub steps: u64,
}

impl Solution {
    /// No solution is lower than this.
    pub fn at_least(&self) -> i64 {
        match self.proof {
            Proof::Bound | Proof::Search => self.height,
            Proof::Open { at_least } => at_least,
        }
    }
}

pub(super) fn height(items: &[PlanItem], offsets: &[i64]) -> i64 {
    items.iter().zip(offsets).map(|(i, o)| o.saturating_add(i.size)).max().unwrap_or(0)
}

/// The largest sum needed at one step.
pub(super) fn lower_bound(items: &[PlanItem]) -> i64 {
    let mut changes: Vec<(usize, i64)> = Vec::with_capacity(items.len() * 2);
    for i in items {
        i.each_part(|p| changes.extend([(p.start, p.to - p.from), (p.end, p.from - p.to)]));
    }
    most(changes)
}

/// The largest value of a sum that changes over time.
pub(super) fn most(mut changes: Vec<(usize, i64)>) -> i64 {
    changes.sort_unstable_by_key(|c| c.0);
    let (mut now, mut most) = (0i128, 0i128);
    for (k, (at, by)) in changes.iter().enumerate() {
        now += i128::from(*by);
        // Items that end at a step free their memory for those that begin at it.
        if changes.get(k + 1).is_none_or(|next| next.0 != *at) {
            most = most.max(now);
        }
    }
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// The offsets of `b` at which it would share needed bytes with `a` at offset 0 in some step: between the two numbers of
/// each pair, both excluded.
pub(super) fn forbidden(a: &PlanItem, b: &PlanItem, mut f: impl FnMut(i64, i64)) {
    if a.end <= b.start || b.end <= a.start {
        return;
    }
    if a.parts.is_empty() && b.parts.is_empty() {
        return f(-b.size, a.size);
    }
    a.each_part(|p| {
        b.each_part(|q| {
            if p.start < q.end && q.start < p.end {
                f(p.from - q.to, p.to - q.from);
            }
        });
    });
}
