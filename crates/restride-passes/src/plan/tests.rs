//! Plans of random placements, and solutions of random problems against all orders of putting items down.

use super::*;

struct Lcg(u64);
impl Lcg {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

/// Items from their first to their last step.
fn problem(lives: &[(usize, usize, i64)]) -> Problem {
    let items = lives.iter().filter(|l| l.2 > 0).map(|l| PlanItem::whole(l.0, l.1 + 1, l.2)).collect();
    Problem { items, capacity: None }
}

fn random(rng: &mut Lcg, n: usize, steps: usize, most: usize) -> Vec<(usize, usize, i64)> {
    (0..n)
        .map(|_| {
            let start = rng.below(steps);
            (start, (start + rng.below(most)).min(steps - 1), rng.below(5000) as i64)
        })
        .collect()
}

#[test]
fn every_order_keeps_the_living_apart() {
    let mut rng = Lcg(3);
    let mut optimal = 0;
    for round in 0..60 {
        let (most, steps) = ([3, 12, 40][round % 3], 1 + rng.below(60));
        let p = problem(&random(&mut rng, 80, steps, most));
        let mut heights = Vec::new();
        for order in [PlanOrder::Time, PlanOrder::Size, PlanOrder::Lifetime, PlanOrder::Area] {
            for pairs in [0, u64::MAX] {
                let options = PlanOptions { orders: vec![order], pairs, search: no_search(), ..PlanOptions::default() };
                let solution = solve(&p, &options);
                held(&p, &solution);
                heights.push(solution.height);
            }
        }
        let options = PlanOptions {
            search: SearchOptions { budget: 100_000, ..SearchOptions::default() },
            ..PlanOptions::default()
        };
        let best = solve(&p, &options);
        held(&p, &best);
        assert!(best.height <= *heights.iter().min().unwrap());
        assert_eq!(best, solve(&p, &options));
        optimal += usize::from(best.proof == Proof::Bound);
        let apart = solve::apart(&p);
        held(&p, &apart);
        assert!(apart.height >= best.height);
    }
    assert!(optimal > 10, "{optimal}");
}

#[test]
fn a_chain_needs_two_buffers() {
    let p = problem(&(0..50).map(|i| (i, i + 1, 1000)).collect::<Vec<_>>());
    let solution = solve(&p, &PlanOptions::default());
    assert_eq!((solution.height, solution.proof), (2000, Proof::Bound));
}

#[test]
fn nothing_to_place() {
    let solution = solve(&Problem::default(), &PlanOptions::default());
    assert_eq!((solution.height, solution.lower_bound, solution.proof), (0, 0, Proof::Bound));
}

#[test]
fn a_hundred_thousand_items() {
    let mut rng = Lcg(11);
    // Short lives, a few long ones among them; and all alive at once, where pairs cannot be looked at.
    for most in [20, 100_000] {
        let mut lives = random(&mut rng, 100_000, 100_000, most);
        lives.iter_mut().step_by(1000).for_each(|l| l.1 = 99_999);
        let p = problem(&lives);
        let start = std::time::Instant::now();
        let solution = solve(&p, &PlanOptions::default());
        eprintln!("{most}: {:?}, {} of {}", start.elapsed(), solution.height, solution.lower_bound);
        assert!(solution.height < solution.lower_bound / 2 * 3);
    }
}

#[test]
fn many_parts_are_fewer_spans() {
    // Built byte by byte, and gone byte by byte.
    let part = |k: usize| ItemPart { start: k, end: 300 - k, from: k as i64 * 64, to: (k as i64 + 1) * 64 };
    let parts: Vec<ItemPart> = (0..140).map(part).collect();
    assert_eq!(spans(parts.clone()), parts);
    let again =
        parts.iter().flat_map(|p| [ItemPart { end: p.start + 1, ..*p }, ItemPart { start: p.end - 1, ..*p }]).collect();
    assert_eq!(spans(again), parts);
    let live = |p: &ItemPart| Live { steps: p.start..=p.end - 1, bytes: p.from..p.to };
    let whole = item(140 * 64, &parts.iter().map(live).collect::<Vec<_>>(), false).unwrap();
    assert_eq!(whole, PlanItem::whole(0, 300, 140 * 64));
}

fn no_search() -> SearchOptions {
    SearchOptions { budget: 0, ..SearchOptions::default() }
}

/// Checks that any two items that need memory at the same time need different bytes.
fn apart(items: &[PlanItem], offsets: &[i64]) -> bool {
    (0..items.len()).all(|i| {
        offsets[i] >= 0
            && (0..i).all(|j| {
                let mut fine = true;
                problem::forbidden(&items[j], &items[i], |after, before| {
                    let by = offsets[i] - offsets[j];
                    fine &= by <= after || before <= by;
                });
                fine
            })
    })
}

fn held(problem: &Problem, solution: &Solution) {
    assert!(
        apart(&problem.items, &solution.offsets),
        "{:?}",
        problem.items.iter().zip(&solution.offsets).take(9).collect::<Vec<_>>()
    );
    assert_eq!(solution.height, problem::height(&problem.items, &solution.offsets));
    assert!(solution.lower_bound <= solution.at_least() && solution.at_least() <= solution.height);
}

/// The lowest height of all orders in which items are put down, each as low as it goes.
fn of_all_orders(items: &[PlanItem], order: &mut Vec<usize>, offsets: &mut Vec<i64>, best: &mut i64) {
    let height = order.iter().map(|&k| offsets[k] + items[k].size).max().unwrap_or(0);
    if height >= *best {
        return;
    }
    if order.len() == items.len() {
        *best = height;
        return;
    }
    for k in 0..items.len() {
        if order.contains(&k) {
            continue;
        }
        let mut taken = Vec::new();
        for &o in order.iter() {
            problem::forbidden(&items[o], &items[k], |after, before| {
                taken.push((offsets[o] + after, offsets[o] + before));
            });
        }
        taken.sort_unstable();
        offsets[k] = taken.iter().fold(0, |at, t| if at <= t.0 { at } else { at.max(t.1) });
        order.push(k);
        of_all_orders(items, order, offsets, best);
        order.pop();
    }
}

fn random_items(rng: &mut Lcg, n: usize, parts: bool) -> Vec<PlanItem> {
    let item = |_| {
        let (start, life, size) = (rng.below(6), 1 + rng.below(5), 1 + rng.below(8) as i64);
        let mut item = PlanItem::whole(start, start + life, size);
        if parts && rng.below(2) == 0 && life > 1 && size > 1 {
            // Items that are built or freed piece by piece.
            let (grows, at) = (rng.below(2) == 0, start + 1 + rng.below(life - 1));
            let cut = 1 + rng.below(size as usize - 1) as i64;
            let (first, second) = if grows { (cut, size) } else { (size, cut) };
            let from = if rng.below(2) == 0 { 0 } else { size };
            let range = |n: i64| if from == 0 { (0, n) } else { (size - n, size) };
            let part = |(from, to), start, end| ItemPart { start, end, from, to };
            item.parts = vec![part(range(first), start, at), part(range(second), at, start + life)];
        }
        item
    };
    (0..n).map(item).collect()
}

/// All inferences, and all but one of them.
fn switches() -> Vec<SearchOptions> {
    let all = SearchOptions::default();
    let mut out = vec![all.clone()];
    out.push(SearchOptions { canonical: false, ..all.clone() });
    out.push(SearchOptions { section_inference: false, ..all.clone() });
    out.push(SearchOptions { dynamic_ordering: false, ..all.clone() });
    out.push(SearchOptions { dominance: false, ..all.clone() });
    out.push(SearchOptions { unallocated_floor: false, ..all.clone() });
    out.push(SearchOptions { monotonic_floor: false, ..all.clone() });
    out.push(SearchOptions { decomposition: false, ..all.clone() });
    out.push(SearchOptions { hatless_pruning: false, ..all.clone() });
    out.push(SearchOptions {
        canonical: false,
        section_inference: false,
        dynamic_ordering: false,
        dominance: false,
        unallocated_floor: false,
        monotonic_floor: false,
        decomposition: false,
        hatless_pruning: false,
        ..all.clone()
    });
    out.extend(all.ranks.iter().map(|&r| SearchOptions { ranks: vec![r], ..all.clone() }));
    out
}

#[test]
fn each_inference_alone_changes_no_height() {
    let mut rng = Lcg(7);
    for _ in 0..400 {
        let n = 3 + rng.below(4);
        let problem = Problem { items: random_items(&mut rng, n, false), capacity: None };
        let mut best = i64::MAX;
        of_all_orders(&problem.items, &mut Vec::new(), &mut vec![0; n], &mut best);
        for search in switches() {
            // Without best fit, so that the search has everything to do.
            let options = PlanOptions { orders: Vec::new(), search, ..PlanOptions::default() };
            let solution = solve(&problem, &options);
            held(&problem, &solution);
            assert_eq!(solution.height, best, "{options:?} {problem:?} {solution:?}");
            assert_ne!(solution.proof, Proof::Open { at_least: solution.at_least() }, "{problem:?}");
        }
    }
}

/// Problems without a solution as low as their lower bound: starts, ends and sizes. Few random ones are like that.
const ABOVE_THE_BOUND: [&[(usize, usize, i64)]; 4] = [
    &[
        (0, 1, 5),
        (0, 2, 1),
        (0, 2, 3),
        (1, 3, 1),
        (2, 3, 4),
        (1, 4, 1),
        (4, 5, 1),
        (0, 5, 1),
        (3, 5, 3),
        (1, 6, 3),
        (3, 6, 2),
        (5, 6, 5),
    ],
    &[
        (0, 1, 4),
        (0, 2, 2),
        (0, 2, 1),
        (0, 3, 3),
        (1, 4, 3),
        (3, 4, 2),
        (3, 5, 1),
        (4, 5, 1),
        (1, 5, 1),
        (2, 6, 1),
        (4, 6, 4),
        (2, 6, 2),
        (5, 6, 3),
    ],
    &[
        (0, 1, 3),
        (0, 2, 3),
        (1, 3, 1),
        (1, 3, 1),
        (2, 3, 2),
        (2, 4, 1),
        (1, 4, 1),
        (3, 4, 1),
        (3, 5, 3),
        (0, 5, 2),
        (4, 5, 3),
        (5, 6, 1),
        (5, 6, 4),
        (5, 6, 3),
    ],
    &[
        (0, 1, 1),
        (0, 1, 1),
        (0, 1, 1),
        (0, 2, 3),
        (1, 2, 1),
        (2, 3, 2),
        (1, 4, 2),
        (4, 5, 1),
        (3, 5, 2),
        (4, 6, 1),
        (2, 6, 2),
        (6, 7, 3),
        (5, 7, 3),
        (7, 8, 1),
        (7, 8, 1),
        (7, 9, 4),
        (8, 9, 1),
        (8, 9, 1),
    ],
];

/// Whether items fit below a height, by all offsets that those alive can have, step by step.
fn fits(items: &[PlanItem], height: i64) -> bool {
    let last = items.iter().map(|i| i.end).max().unwrap_or(0);
    let mut states = std::collections::BTreeSet::from([Vec::<(usize, i64)>::new()]);
    for step in 0..last {
        states = states.into_iter().map(|s| s.into_iter().filter(|x| items[x.0].end > step).collect()).collect();
        for k in (0..items.len()).filter(|&k| items[k].start == step) {
            let free = |s: &[(usize, i64)], at: i64| {
                s.iter().all(|&(o, there)| at + items[k].size <= there || there + items[o].size <= at)
            };
            let with = |s: &Vec<(usize, i64)>| {
                let at = (0..=height - items[k].size).filter(|&at| free(s, at));
                at.map(|at| s.iter().copied().chain([(k, at)]).collect()).collect::<Vec<Vec<_>>>()
            };
            states = states.iter().flat_map(with).collect();
        }
    }
    !states.is_empty()
}

#[test]
fn the_search_proves_that_nothing_is_lower() {
    for numbers in ABOVE_THE_BOUND {
        let items: Vec<PlanItem> =
            numbers.iter().map(|&(start, end, size)| PlanItem::whole(start, end, size)).collect();
        let problem = Problem { items, capacity: None };
        let bound = problem::lower_bound(&problem.items);
        assert!(!fits(&problem.items, bound) && fits(&problem.items, bound + 1));
        for search in switches() {
            let search = SearchOptions { budget: 20_000_000, ..search };
            let solution =
                solve(&problem, &PlanOptions { orders: Vec::new(), search: search.clone(), ..PlanOptions::default() });
            held(&problem, &solution);
            // Without some inferences it takes longer than that.
            if !matches!(solution.proof, Proof::Open { .. })
                || search == (SearchOptions { budget: 20_000_000, ..SearchOptions::default() })
            {
                assert_eq!((solution.height, solution.proof), (bound + 1, Proof::Search), "{search:?}");
            }
        }
    }
}

#[test]
fn items_of_which_parts_are_needed_may_lie_in_each_other() {
    let mut rng = Lcg(8);
    let (mut lower, mut most) = (0, 0);
    for _ in 0..400 {
        let n = 3 + rng.below(4);
        let items = random_items(&mut rng, n, true);
        let problem = Problem { items, capacity: None };
        let mut best = i64::MAX;
        of_all_orders(&problem.items, &mut Vec::new(), &mut vec![0; n], &mut best);
        let whole = |i: &PlanItem| PlanItem { parts: Vec::new(), ..i.clone() };
        let without = Problem { items: problem.items.iter().map(whole).collect(), capacity: None };
        let solution = solve(&problem, &PlanOptions::default());
        held(&problem, &solution);
        // A proof holds, whether or not the search visited every node.
        assert!(solution.at_least() <= best, "{problem:?} {solution:?}");
        let other = solve(&without, &PlanOptions::default());
        lower += usize::from(solution.height < other.height);
        most += usize::from(solution.height <= best);
        for search in switches() {
            let options = PlanOptions { orders: Vec::new(), search, ..PlanOptions::default() };
            let solution = solve(&problem, &options);
            held(&problem, &solution);
            assert!(solution.at_least() <= best);
        }
    }
    assert!(lower > 40 && most > 360, "{lower} {most}");
}

/// The public instances that MiniMalloc is measured on; see the folder's README.
fn instance(name: &str) -> Problem {
    let path = format!("{}/../../fixtures/minimalloc/{name}.1048576.csv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let item = |line: &str| {
        let numbers: Vec<i64> = line.split(',').map(|n| n.trim().parse().unwrap()).collect();
        PlanItem::whole(numbers[1] as usize, numbers[2] as usize, numbers[3])
    };
    Problem { items: text.lines().skip(1).map(item).collect(), capacity: Some(1_048_576) }
}

#[test]
fn public_instances_that_are_not_too_hard_without_optimisation() {
    for name in ["J", "K"] {
        let problem = instance(name);
        let search = SearchOptions { budget: 4_000_000_000, ..SearchOptions::default() };
        let options = PlanOptions { search, ..PlanOptions::default() };
        let solution = solve(&problem, &options);
        held(&problem, &solution);
        assert!(solution.height <= 1_048_576, "{name}: {}", solution.height);
    }
}

#[test]
fn the_search_ends_with_its_budget() {
    let problem = instance("E");
    let options = |budget| {
        let search = SearchOptions { budget, ..SearchOptions::default() };
        PlanOptions { search, ..PlanOptions::default() }
    };
    let height = |budget| {
        let solution = solve(&problem, &options(budget));
        held(&problem, &solution);
        assert_eq!(solution.proof, Proof::Open { at_least: 1_048_576 });
        assert_eq!(solution, solve(&problem, &options(budget)));
        solution.height
    };
    assert!(height(3_000_000) <= height(0));
}
