//! From a problem to a solution: the lower bound, best fit, and the search where best fit has left room.

use super::PlanOptions;
use super::best_fit::{best_fit, one_after_another};
use super::problem::{ItemPart, PlanItem, Problem, Proof, Solution, height, lower_bound};
use super::search::{Outcome, SearchOptions, search};
use super::sections::Sections;
use restride_ir::sort_indices;

/// More items than this that hang together in time are not searched: each is a level of the search, which is on the stack.
const DEEPEST: usize = 4096;

/// Stack of a search, for the deepest one in a build without optimisation.
const STACK: usize = 32 << 20;

/// Finds offsets for the items of a problem. The same problem has the same solution everywhere.
///
/// # Panics
/// If an item has no life or no size, or a part is not inside of its item.
pub fn solve(problem: &Problem, options: &PlanOptions) -> Solution {
    let PlanOptions { orders, pairs, search: options, .. } = options;
    for i in &problem.items {
        assert!(i.start < i.end && i.size > 0, "an item without life or size: {i:?}");
        let inside =
            |p: ItemPart| i.start <= p.start && p.start < p.end && p.end <= i.end && 0 <= p.from && p.from < p.to;
        i.each_part(|p| assert!(inside(p) && p.to <= i.size, "a part outside of its item: {i:?}"));
    }
    let items = in_ranks(&problem.items);
    let bound = lower_bound(&items);
    // An item that is only needed in parts still has one offset.
    let mut at_least = items.iter().map(|i| i.size).max().unwrap_or(0).max(bound);
    let (least, mut steps) = (at_least, 0);
    let enough = problem.capacity.unwrap_or(at_least).max(at_least);
    let mut offsets = best_fit(&items, orders, *pairs, enough);
    let mut reached = height(&items, &offsets);
    // The search adds heights up without looking.
    let small = items.iter().try_fold(0i64, |sum, i| sum.checked_add(i.size)).is_some_and(|sum| sum < i64::MAX / 4);
    if reached > enough && small && !options.ranks.is_empty() && options.budget > 0 {
        let mut budget = options.budget;
        let mut groups = connected(&items);
        // The highest item has to come down most.
        let top = |group: &Vec<usize>| group.iter().map(|&k| offsets[k] + items[k].size).max().unwrap_or(0);
        groups.sort_by_cached_key(|group| (std::cmp::Reverse(top(group)), group[0]));
        groups.retain(|group| top(group) > enough);
        for group in groups {
            let own: Vec<PlanItem> = group.iter().map(|&k| items[k].clone()).collect();
            // Lives as they are, not as they were made shorter.
            let life = |k: usize| i64::try_from(problem.items[k].end - problem.items[k].start).unwrap_or(i64::MAX);
            let shapes: Vec<(i64, i64)> = group.iter().map(|&k| (items[k].size, life(k))).collect();
            let were: Vec<i64> = group.iter().map(|&k| offsets[k]).collect();
            let goal = at_least.max(enough);
            let (found, proved) = lower(&own, &shapes, were, goal, options, &mut budget);
            group.iter().zip(found).for_each(|(&k, offset)| offsets[k] = offset);
            at_least = at_least.max(proved);
        }
        reached = height(&items, &offsets);
        steps = options.budget - budget;
    }
    let proof = match reached {
        _ if reached == least => Proof::Bound,
        _ if reached == at_least => Proof::Search,
        _ => Proof::Open { at_least },
    };
    Solution { offsets, height: reached, lower_bound: bound, proof, steps }
}

/// Gives every item memory of its own.
pub(super) fn apart(problem: &Problem) -> Solution {
    let bound = lower_bound(&problem.items);
    let offsets = one_after_another(&problem.items);
    let height = height(&problem.items, &offsets);
    let proof = if height == bound { Proof::Bound } else { Proof::Open { at_least: bound } };
    Solution { offsets, height, lower_bound: bound, proof, steps: 0 }
}

/// The items with steps counted from 0, without those at which nothing begins or ends.
fn in_ranks(items: &[PlanItem]) -> Vec<PlanItem> {
    let mut edges: Vec<usize> = Vec::with_capacity(2 * items.len());
    for i in items {
        edges.extend([i.start, i.end]);
        edges.extend(i.parts.iter().flat_map(|p| [p.start, p.end]));
    }
    edges.sort_unstable();
    edges.dedup();
    let rank = |step: usize| edges.partition_point(|e| *e < step);
    let part = |p: &ItemPart| ItemPart { start: rank(p.start), end: rank(p.end), ..*p };
    let ranked = |i: &PlanItem| PlanItem {
        start: rank(i.start),
        end: rank(i.end),
        size: i.size,
        parts: i.parts.iter().map(part).collect(),
    };
    items.iter().map(ranked).collect()
}

/// Items in groups whose members do not live at the same time.
fn connected(items: &[PlanItem]) -> Vec<Vec<usize>> {
    let mut by_start: Vec<usize> = (0..items.len()).collect();
    sort_indices(&mut by_start, &|a, b| items[a].start.cmp(&items[b].start));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut end = 0;
    for k in by_start {
        match groups.last_mut() {
            Some(group) if items[k].start < end => group.push(k),
            _ => groups.push(vec![k]),
        }
        end = end.max(items[k].end);
    }
    groups
}

/// Searches for offsets that are no higher than `goal`, and else as low as the budget lets it: these, and a height that no
/// offsets are lower than.
fn lower(
    items: &[PlanItem],
    shapes: &[(i64, i64)],
    offsets: Vec<i64>,
    goal: i64,
    options: &SearchOptions,
    budget: &mut u64,
) -> (Vec<i64>, i64) {
    let bound = lower_bound(items);
    let reached = height(items, &offsets);
    if items.len() > DEEPEST || goal >= reached {
        return (offsets, bound);
    }
    let Some(sections) = Sections::new(items, budget) else { return (offsets, bound) };
    let mut proved = bound;
    let mut best = offsets;
    // On a stack of its own, as deep as it gets.
    std::thread::scope(|scope| {
        let work = || halve(shapes, &sections, (goal, reached), &mut best, &mut proved, options, budget);
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        // Without a thread the search is skipped, and the result says that the optimum is open.
        if let Ok(Err(panic)) = thread.map(|t| t.join()) {
            std::panic::resume_unwind(panic);
        }
    });
    (best, proved)
}

/// Tries the lowest sufficient height, then bisects between heights without and with a solution.
fn halve(
    shapes: &[(i64, i64)],
    sections: &Sections,
    (mut low, mut high): (i64, i64),
    best: &mut Vec<i64>,
    proved: &mut i64,
    options: &SearchOptions,
    budget: &mut u64,
) {
    // All offsets are sums of sizes, so heights are multiples of their common divisor.
    let unit = sections.unit();
    let down = |height: i64| height - height.rem_euclid(unit);
    let mut try_at = down(low);
    while low < high && *budget > 1 {
        // A height that uses up its budget leaves as much for the others.
        let mut share = *budget / 2;
        *budget -= share;
        let ended = search(shapes, sections, try_at, options, &mut share);
        *budget += share;
        match ended {
            Outcome::Found(offsets) => {
                high = offsets.iter().zip(shapes).map(|(o, s)| o + s.0).max().unwrap_or(0);
                *best = offsets;
            }
            Outcome::Nothing => {
                low = try_at + unit;
                if !sections.ragged {
                    *proved = (*proved).max(low);
                }
            }
            Outcome::Spent => low = try_at + unit,
        }
        try_at = down(low + (high - low) / 2).max(down(low)).min(high - 1);
    }
}
