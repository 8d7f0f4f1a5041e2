//! Bytes that are needed at each step, while items are added one by one.

use super::problem::{ItemPart, PlanItem};

/// Sums of needed bytes over steps: a tree in which each node has the largest sum below it. Adding an item and reading the
/// largest sum over its life are each logarithmic in the number of steps.
pub(super) struct BytesPerStep {
    /// Steps at which something begins or ends.
    edges: Vec<usize>,
    /// Leaves of the tree.
    leaves: usize,
    /// Largest sum below each node, without the amounts of its parents.
    most: Vec<i64>,
    /// The amount of each node, which counts for every step below it.
    added: Vec<i64>,
}

impl BytesPerStep {
    /// Nothing is needed yet, and no item other than these will be added.
    pub fn new(items: &[PlanItem]) -> BytesPerStep {
        let mut edges: Vec<usize> = Vec::new();
        items.iter().for_each(|i| i.each_part(|p| edges.extend([p.start, p.end])));
        edges.sort_unstable();
        edges.dedup();
        let leaves = edges.len().next_power_of_two();
        BytesPerStep { edges, leaves, most: vec![0; 2 * leaves], added: vec![0; 2 * leaves] }
    }

    /// Adds an item.
    pub fn add(&mut self, item: &PlanItem) {
        item.each_part(|p| self.change(p, 1));
    }

    /// Takes an item back.
    pub fn remove(&mut self, item: &PlanItem) {
        item.each_part(|p| self.change(p, -1));
    }

    /// The largest sum over the life of an item, were it added.
    pub fn with(&mut self, item: &PlanItem) -> i64 {
        self.add(item);
        let mut most = 0;
        item.each_part(|p| {
            let (from, to) = self.span(p);
            most = most.max(self.ask(1, (0, self.leaves), (from, to)));
        });
        self.remove(item);
        most
    }

    /// The steps with the largest sums, no more than `count`.
    pub fn largest(&self, count: usize) -> Vec<usize> {
        let sum = |leaf: usize| {
            let (mut node, mut sum) = (leaf + self.leaves, 0);
            while node > 0 {
                sum += self.added[node];
                node /= 2;
            }
            sum
        };
        let mut steps: Vec<(i64, usize)> = self.edges.iter().enumerate().map(|(k, step)| (sum(k), *step)).collect();
        steps.sort_by_key(|(sum, step)| (std::cmp::Reverse(*sum), *step));
        steps.into_iter().take(count).map(|(_, step)| step).collect()
    }

    fn span(&self, p: ItemPart) -> (usize, usize) {
        let at = |step: usize| self.edges.partition_point(|e| *e < step);
        (at(p.start), at(p.end))
    }

    fn change(&mut self, p: ItemPart, sign: i64) {
        let span = self.span(p);
        self.put(1, (0, self.leaves), span, sign * (p.to - p.from));
    }

    fn put(&mut self, node: usize, own: (usize, usize), span: (usize, usize), by: i64) {
        if span.1 <= own.0 || own.1 <= span.0 {
            return;
        }
        if span.0 <= own.0 && own.1 <= span.1 {
            self.added[node] += by;
            self.most[node] += by;
            return;
        }
        let middle = own.0.midpoint(own.1);
        self.put(2 * node, (own.0, middle), span, by);
        self.put(2 * node + 1, (middle, own.1), span, by);
        self.most[node] = self.added[node] + self.most[2 * node].max(self.most[2 * node + 1]);
    }

    fn ask(&self, node: usize, own: (usize, usize), span: (usize, usize)) -> i64 {
        if span.1 <= own.0 || own.1 <= span.0 {
            return 0;
        }
        if span.0 <= own.0 && own.1 <= span.1 {
            return self.most[node];
        }
        let middle = own.0.midpoint(own.1);
        let below = self.ask(2 * node, (own.0, middle), span).max(self.ask(2 * node + 1, (middle, own.1), span));
        self.added[node] + below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_counting() {
        let items: Vec<PlanItem> =
            (0..40).map(|k| PlanItem::whole(k * 7 % 31, k * 7 % 31 + 1 + k % 9, 1 + (k as i64 * 13) % 50)).collect();
        let mut load = BytesPerStep::new(&items);
        let mut there: Vec<&PlanItem> = Vec::new();
        let count = |there: &[&PlanItem], step: usize| -> i64 {
            there.iter().filter(|i| i.start <= step && step < i.end).map(|i| i.size).sum()
        };
        for (k, item) in items.iter().enumerate() {
            let slow = (item.start..item.end).map(|s| count(&there, s) + item.size).max();
            assert_eq!(Some(load.with(item)), slow, "item {k}");
            if k % 3 > 0 {
                load.add(item);
                there.push(item);
            }
        }
        load.remove(there.remove(5));
        let peak = (0..60).map(|s| count(&there, s)).max().expect("steps");
        let [step] = load.largest(1)[..] else { panic!("one step") };
        assert_eq!(count(&there, step), peak);
    }
}
