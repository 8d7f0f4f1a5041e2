//! An exact search for a solution within a capacity: branch and bound with the inferences of MiniMalloc (Moffitt,
//! "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023).
//!
//! Items are placed one after another, from the bottom up, each as low as those below it permit: every solution can be
//! pushed down to such a one. Each node of the search chooses the next item. Inferences prune choices and do not change the
//! answer. The remaining choices are tried in several orders in turn, each with more nodes than the time before: most
//! problems are easy in one of them.
//!
//! An item with parts is placed by the range that it needs in each section. Of two such items one is assumed to be above
//! the other wherever they meet, so a search that ends without a solution proves nothing.

use super::sections::Sections;

/// The order among items that are equally low, by the first criterion that differs; the largest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    /// How long it lives, then size times life, then how much is needed at most while it lives.
    Width,
    /// How much is needed at most while it lives, then size times life, then how long it lives.
    Total,
    /// How much is needed at most while it lives, then how long it lives, then size times life.
    TotalWidth,
}

/// Options of the search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchOptions {
    /// Steps that a search may take; each looks at one item or one section. A step takes two to seven nanoseconds in an
    /// optimised build (`cargo bench -p restride-passes --bench plan` measures it), so the default is at most about a
    /// second.
    pub budget: u64,
    /// Orders to try in turn; none of them means no search.
    pub ranks: Vec<Rank>,
    /// Only solutions in which no item can move down are tried, and only one of those that differ in order alone.
    pub canonical: bool,
    /// A section whose floor plus remaining items exceed the capacity has no solution.
    pub section_inference: bool,
    /// The lowest item goes first.
    pub dynamic_ordering: bool,
    /// An item is not placed above the top of another that would fit below it.
    pub dominance: bool,
    /// The floor of a section is where the lowest of its items can go.
    pub unallocated_floor: bool,
    /// The floor is nowhere below the last item put down.
    pub monotonic_floor: bool,
    /// Items that are not connected in time are searched apart.
    pub decomposition: bool,
    /// Where an item with nothing above it was of no use, none that comes later is.
    pub hatless_pruning: bool,
}

impl Default for SearchOptions {
    fn default() -> Self {
        SearchOptions {
            budget: 100_000_000,
            ranks: vec![Rank::Width, Rank::Total, Rank::TotalWidth],
            canonical: true,
            section_inference: true,
            dynamic_ordering: true,
            dominance: true,
            unallocated_floor: true,
            monotonic_floor: true,
            decomposition: true,
            hatless_pruning: true,
        }
    }
}

/// How a search ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// With a solution.
    Found(Vec<i64>),
    /// No solution exists, if no item has parts.
    Nothing,
    /// With its budget.
    Spent,
}

/// A search for offsets of items, given by sizes and lifetimes, below a capacity. Its steps are taken from the budget.
pub(super) fn search(
    shapes: &[(i64, i64)],
    sections: &Sections,
    capacity: i64,
    options: &SearchOptions,
    budget: &mut u64,
) -> Outcome {
    let mut search = Search::new(shapes, sections, capacity, options);
    let mut nodes = shapes.len() as u64;
    loop {
        nodes = nodes.saturating_mul(2);
        for &rank in &options.ranks {
            search.rank = rank;
            search.nodes = nodes;
            search.left = *budget;
            let all = (0..shapes.len() as u32).map(|i| (0, i)).collect();
            let ended = search.part(all, 0, sections.items.len());
            *budget = search.left;
            match ended {
                End::Found => return Outcome::Found(search.offsets),
                End::Nothing => return Outcome::Nothing,
                End::Spent if *budget == 0 => return Outcome::Spent,
                End::Spent => {}
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Found,
    Nothing,
    Spent,
}

struct Search<'a> {
    /// Size, and length of life.
    shapes: &'a [(i64, i64)],
    sections: &'a Sections,
    capacity: i64,
    options: &'a SearchOptions,
    rank: Rank,
    /// Nodes and steps that are left.
    nodes: u64,
    left: u64,
    placed: Vec<bool>,
    offsets: Vec<i64>,
    /// How low an item that is not placed could go.
    lowest: Vec<i64>,
    /// By section: nothing else goes below this; and how much is still to come.
    floor: Vec<i64>,
    total: Vec<i64>,
    /// Items to come that are in a section and the next one as well, or before and after both.
    cuts: Vec<u32>,
    /// The values before: of `lowest`, of `floor`.
    lowest_were: Vec<(u32, i64)>,
    floors_were: Vec<(u32, i64)>,
    /// The node at which the floor of a section was last looked at.
    looked: Vec<u64>,
    node: u64,
    /// Lists that are used again.
    spare: Vec<Vec<(u32, u32)>>,
    spare_choices: Vec<Vec<(i64, u32, u32)>>,
}

impl<'a> Search<'a> {
    fn new(shapes: &'a [(i64, i64)], sections: &'a Sections, capacity: i64, options: &'a SearchOptions) -> Search<'a> {
        let (n, m) = (shapes.len(), sections.items.len());
        let total = (0..m).map(|s| sections.items.row(s).iter().map(|w| w.to - w.from).sum()).collect();
        let mut search = Search {
            shapes,
            sections,
            capacity,
            options,
            rank: Rank::Width,
            nodes: 0,
            left: 0,
            placed: vec![false; n],
            offsets: vec![0; n],
            lowest: vec![0; n],
            floor: vec![0; m],
            total,
            cuts: vec![0; m],
            lowest_were: Vec::new(),
            floors_were: Vec::new(),
            looked: vec![0; m],
            node: 0,
            spare: Vec::new(),
            spare_choices: Vec::new(),
        };
        for i in 0..n {
            let (first, last) = search.span(i as u32);
            search.cuts[first..last].iter_mut().for_each(|c| *c += 1);
        }
        search
    }

    /// First and last section of an item.
    fn span(&self, i: u32) -> (usize, usize) {
        let own = self.sections.of_item.row(i as usize);
        (own.first().map_or(0, |w| w.at as usize), own.last().map_or(0, |w| w.at as usize))
    }

    fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps as u64);
    }

    /// Items that need only these sections: sorted, then searched.
    fn part(&mut self, mut items: Vec<(u32, u32)>, from: usize, to: usize) -> End {
        let mut steps = items.len();
        let key = |i: u32| {
            let own = self.sections.of_item.row(i as usize);
            steps += own.len();
            let total = own.iter().map(|w| self.total[w.at as usize]).max().unwrap_or(0);
            let (size, width) = self.shapes[i as usize];
            let area = i128::from(size) * i128::from(width);
            let (total, width) = (i128::from(total), i128::from(width));
            let key = match self.rank {
                Rank::Width => [width, area, total],
                Rank::Total => [total, area, width],
                Rank::TotalWidth => [total, width, area],
            };
            (std::cmp::Reverse(key), i)
        };
        let mut keyed: Vec<_> = items.iter().map(|x| x.1).map(key).collect();
        keyed.sort_unstable();
        for (rank, (slot, keyed)) in items.iter_mut().zip(keyed).enumerate() {
            *slot = (rank as u32, keyed.1);
        }
        self.spend(steps);
        self.choose(&items, from, to, 0, 0)
    }

    /// Chooses the next item and searches on. `items` are with their ranks, and some are placed already.
    fn choose(&mut self, items: &[(u32, u32)], from: usize, to: usize, least: i64, least_rank: u32) -> End {
        if self.nodes == 0 || self.left == 0 {
            return End::Spent;
        }
        self.nodes -= 1;
        let mut open = self.spare.pop().unwrap_or_default();
        open.clear();
        open.extend(items.iter().filter(|x| !self.placed[x.1 as usize]));
        self.spend(items.len());
        let end = if open.is_empty() { End::Found } else { self.branch(&open, from, to, least, least_rank) };
        self.spare.push(open);
        end
    }

    fn branch(&mut self, open: &[(u32, u32)], from: usize, to: usize, least: i64, least_rank: u32) -> End {
        let tops = open.iter().map(|&(_, i)| self.lowest[i as usize].saturating_add(self.shapes[i as usize].0));
        let top = tops.min().unwrap_or(i64::MAX);
        let mut choices = self.spare_choices.pop().unwrap_or_default();
        choices.clear();
        for &(rank, i) in open {
            let offset = self.lowest[i as usize];
            let sooner = self.options.canonical && (offset, rank) < (least, least_rank);
            let gap = self.options.dominance && offset >= top;
            if !sooner && !gap {
                choices.push((offset, rank, i));
            }
        }
        if self.options.dynamic_ordering {
            choices.sort_unstable();
        }
        self.spend(open.len() + choices.len());
        let mut end = End::Nothing;
        let mut before = (i64::MAX, u32::MAX);
        for &(offset, rank, i) in &choices {
            if (offset, rank) > before {
                continue;
            }
            let (lowest_were, floors_were) = (self.lowest_were.len(), self.floors_were.len());
            let (fits, hatless) = self.put(i, offset);
            if fits && self.could_do(from, to, offset) {
                end = if self.options.decomposition {
                    self.apart(i, open, from, to, offset, rank)
                } else {
                    self.choose(open, from, to, offset, rank)
                };
            }
            self.take_back(i, lowest_were, floors_were);
            if end != End::Nothing {
                break;
            }
            // An earlier choice would have placed it at that offset before any later item, without harm to those.
            if hatless && self.options.hatless_pruning {
                before = (offset, rank);
            }
        }
        self.spare_choices.push(choices);
        end
    }

    /// Places an item. Returns whether the others can still end below the capacity, and whether the item has none above it.
    fn put(&mut self, i: u32, offset: i64) -> (bool, bool) {
        let sections = self.sections;
        let above = sections.above.row(i as usize);
        let own = sections.of_item.row(i as usize);
        self.spend(above.len() + own.len());
        self.placed[i as usize] = true;
        self.offsets[i as usize] = offset;
        self.node += 1;
        for w in own {
            let s = w.at as usize;
            self.floors_were.push((w.at, self.floor[s]));
            self.floor[s] = self.floor[s].max(offset.saturating_add(w.to));
            self.total[s] -= w.to - w.from;
        }
        let mut fits = offset.saturating_add(self.shapes[i as usize].0) <= self.capacity;
        let mut hatless = true;
        let changed = self.lowest_were.len();
        for &(other, by) in above {
            if self.placed[other as usize] {
                continue;
            }
            hatless = false;
            let lowest = &mut self.lowest[other as usize];
            let now = offset.saturating_add(by);
            if *lowest < now {
                self.lowest_were.push((other, std::mem::replace(lowest, now)));
                fits &= now.saturating_add(self.shapes[other as usize].0) <= self.capacity;
            }
        }
        if fits && self.options.unallocated_floor {
            own.iter().for_each(|w| self.raise(w.at as usize));
            for k in changed..self.lowest_were.len() {
                let (other, was) = self.lowest_were[k];
                let theirs = sections.of_item.row(other as usize);
                self.spend(theirs.len());
                for w in theirs {
                    // Another one was lower where this one was not the lowest.
                    if was.saturating_add(w.from) <= self.floor[w.at as usize] {
                        self.raise(w.at as usize);
                    }
                }
            }
        }
        (fits, hatless)
    }

    /// The floor of a section is where the lowest of its items can go.
    fn raise(&mut self, s: usize) {
        if std::mem::replace(&mut self.looked[s], self.node) == self.node {
            return;
        }
        let mut lowest = i64::MAX;
        let mut steps = 0;
        for w in self.sections.items.row(s) {
            steps += 1;
            if !self.placed[w.at as usize] {
                lowest = lowest.min(self.lowest[w.at as usize].saturating_add(w.from));
                if lowest <= self.floor[s] {
                    break;
                }
            }
        }
        self.spend(steps);
        if lowest != i64::MAX && lowest > self.floor[s] {
            self.floors_were.push((s as u32, self.floor[s]));
            self.floor[s] = lowest;
        }
    }

    /// Whether no section is too high already.
    fn could_do(&mut self, from: usize, to: usize, offset: i64) -> bool {
        self.spend((to - from) / 4);
        let least = if self.options.monotonic_floor { offset } else { 0 };
        let infer = i64::from(self.options.section_inference);
        let sections = self.floor[from..to].iter().zip(&self.total[from..to]);
        sections.fold(0, |most: i64, (&floor, &total)| most.max(floor.max(least) + infer * total)) <= self.capacity
    }

    fn take_back(&mut self, i: u32, lowest_were: usize, floors_were: usize) {
        while self.lowest_were.len() > lowest_were {
            let Some((other, was)) = self.lowest_were.pop() else { break };
            self.lowest[other as usize] = was;
        }
        while self.floors_were.len() > floors_were {
            let Some((s, was)) = self.floors_were.pop() else { break };
            self.floor[s as usize] = was;
        }
        for w in self.sections.of_item.row(i as usize) {
            self.total[w.at as usize] += w.to - w.from;
        }
        self.placed[i as usize] = false;
    }

    /// Goes on after an item was placed, by itself with each group of items that are no longer connected in time.
    fn apart(&mut self, i: u32, open: &[(u32, u32)], from: usize, to: usize, offset: i64, rank: u32) -> End {
        let (first, last) = self.span(i);
        let mut ends = Vec::new();
        for s in first..last {
            self.cuts[s] -= 1;
            if self.cuts[s] == 0 {
                ends.push(s + 1);
            }
        }
        self.spend(last - first);
        let end = if ends.is_empty() {
            self.choose(open, from, to, offset, rank)
        } else {
            ends.push(to);
            let mut end = End::Found;
            let mut start = from;
            for stop in ends {
                let within = |x: &&(u32, u32)| {
                    let (first, last) = self.span(x.1);
                    !self.placed[x.1 as usize] && start <= first && last < stop
                };
                let group: Vec<(u32, u32)> = open.iter().filter(within).copied().collect();
                self.spend(open.len());
                if !group.is_empty() {
                    end = self.part(group, start, stop);
                }
                if end != End::Found {
                    break;
                }
                start = stop;
            }
            end
        };
        self.cuts[first..last].iter_mut().for_each(|c| *c += 1);
        end
    }
}
