//! Several memories: the memory and the offset of each buffer.
//!
//! A buffer is in one memory for its whole life. Memories are filled in their order, fastest first. Each takes the buffers
//! with the most traffic (bytes that steps read and write) for their space and time, as long as they fit; the others spill
//! to the next memory. The choice for the first memory is exact for few buffers ([`EXACT`]). For more, the plan gives a
//! lower bound of the spilled traffic: at each step the live bytes beyond the capacity are elsewhere, and the fractional
//! knapsack bounds their traffic from below.

use super::bytes_per_step::BytesPerStep;
use super::problem::{PlanItem, Problem};
use super::{Needs, PlanOptions, Proof, needs, solve};
use restride_ir::{
    BufferId, BufferKind, Error, Graph, MemorySpace, Place, Placement, Plan, Result, Step, Table, ValueId, sort_indices,
};

/// A memory to plan for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemorySpec {
    /// Its name.
    pub name: String,
    /// Bytes that it has; `None` for no limit.
    pub capacity: Option<i64>,
    /// Names of values whose buffers must be in this memory.
    pub pins: Vec<String>,
}

/// Up to this many buffers all choices for the first memory are tried.
const EXACT: usize = 12;
/// Plans that trying all choices may make.
const EXACT_PLANS: usize = 256;
/// Steps with the largest loads that the bound on spilled traffic looks at.
const BOUND_STEPS: usize = 256;

/// Gives every arena buffer a memory and an offset in it. The arena is the memories one after the other.
///
/// # Errors
/// No memory, two of one name, a pinned value that no arena buffer holds or that two memories claim, or buffers that do not
/// fit, with the bytes that they need.
pub fn plan_memories(
    graph: &Graph,
    placement: &Placement,
    options: &PlanOptions,
    specs: &[MemorySpec],
) -> Result<Plan> {
    for (k, spec) in specs.iter().enumerate() {
        if specs[..k].iter().any(|s| s.name == spec.name) {
            return Err(Error::unsupported(format!("two memories are called {}", spec.name)));
        }
    }
    let Needs { ids, items, lower_bound, idle, .. } = needs(graph, placement, options);
    let traffic = traffic(graph, placement);
    let values: Vec<i64> = ids.iter().map(|id| traffic[*id]).collect();
    let (pinned, pins) = pins(graph, placement, &ids, specs)?;
    let chooser = BufferChooser { items: &items, values: &values, pinned: &pinned, specs, options };
    let by_traffic = chooser.all(&|k| values[k] as f64 / chooser.area(k));
    // A good choice for one memory may leave later ones too little space: keep large buffers out of them.
    let chosen = match by_traffic {
        Ok(chosen) => chosen,
        Err(error) => chooser.all(&|k| chooser.area(k)).map_err(|_| error)?,
    };
    let mut plan = Plan { align: options.align, lower_bound_bytes: lower_bound, ..Plan::default() };
    idle.into_iter().for_each(|id| plan.offsets.set(id, Some(0)));
    for ((spec, pinned), part) in specs.iter().zip(pins).zip(&chosen.parts) {
        let start = plan.arena_bytes;
        for (&k, offset) in part.items.iter().zip(&part.offsets) {
            plan.offsets.set(ids[k], Some(start + offset));
        }
        let traffic = part.items.iter().map(|&k| values[k]).sum();
        let (name, capacity) = (spec.name.clone(), spec.capacity);
        plan.memories.push(MemorySpace { name, start, bytes: part.height, capacity, traffic, pinned });
        plan.arena_bytes = start.saturating_add(part.height);
    }
    let spilled = plan.memories.iter().skip(1).map(|m| m.traffic).sum();
    plan.spilled_at_least = if chosen.exact { spilled } else { chooser.least_spilled().min(spilled) };
    plan.at_least_bytes = lower_bound;
    plan.optimal = plan.arena_bytes == lower_bound;
    Ok(plan)
}

/// Bytes that the steps of one run read and write in each buffer.
fn traffic(graph: &Graph, placement: &Placement) -> Table<BufferId, i64> {
    let mut out: Table<BufferId, i64> = Table::new();
    let mut add = |buffer: BufferId, bytes: i64| {
        let sum = out.entry(buffer);
        *sum = sum.saturating_add(bytes);
    };
    let bytes = |v: ValueId, place: &Place| {
        let size = graph.values[v].ty.tensor().map_or(1, |t| t.dtype.size() as i64);
        place.layout.numel().saturating_mul(size)
    };
    for step in &placement.steps {
        match step {
            Step::Run { node, reads, writes } => {
                let n = &graph.nodes[*node];
                let read = n.operands().zip(reads).chain(n.results.iter().copied().zip(writes));
                read.for_each(|(v, p)| p.iter().for_each(|p| add(p.buffer, bytes(v, p))));
                if let Some(&scratch) = placement.scratch.get(node) {
                    add(scratch, placement.buffers[scratch].bytes);
                }
            }
            Step::Move { value, from, to } => {
                add(from.buffer, bytes(*value, from));
                add(to.buffer, bytes(*value, to));
            }
            Step::Free { .. } => {}
        }
    }
    out
}

/// The memory that each item is pinned to, and the values that are pinned to each memory.
fn pins(
    graph: &Graph,
    placement: &Placement,
    ids: &[BufferId],
    specs: &[MemorySpec],
) -> Result<(Vec<Option<usize>>, Vec<Vec<ValueId>>)> {
    let mut position: Table<BufferId, Option<usize>> = Table::new();
    ids.iter().enumerate().for_each(|(k, id)| position.set(*id, Some(k)));
    let (mut pinned, mut values) = (vec![None; ids.len()], vec![Vec::new(); specs.len()]);
    for (m, spec) in specs.iter().enumerate() {
        for name in &spec.pins {
            let wanted = name.trim_start_matches('%');
            let Some(value) = graph.values.ids().find(|v| *graph.values[*v].name == *wanted) else {
                return Err(Error::unsupported(format!("no value of the placed program is called %{wanted}"))
                    .help("`restride show --stage placed` lists the values"));
            };
            let buffer = placement.places[value].as_ref().map(|p| p.buffer);
            let arena = buffer.filter(|b| placement.buffers[*b].kind == BufferKind::Arena);
            let Some(item) = arena.and_then(|b| position[b]) else {
                let what = format!("%{wanted} is not stored in the arena, so it cannot be pinned to {}", spec.name);
                return Err(Error::unsupported(what).help("inputs, outputs and state are the caller's memory"));
            };
            if pinned[item].replace(m).is_some_and(|other| other != m) {
                let what = format!("the buffer of %{wanted} is pinned to two memories");
                return Err(Error::unsupported(what).help("values that share memory are in one memory"));
            }
            values[m].push(value);
        }
    }
    Ok((pinned, values))
}

/// The items of one memory, with their offsets.
#[derive(Default)]
struct MemoryPart {
    items: Vec<usize>,
    offsets: Vec<i64>,
    height: i64,
}

struct Chosen {
    parts: Vec<MemoryPart>,
    /// No other choice has less traffic outside of the first memory.
    exact: bool,
}

struct BufferChooser<'a> {
    items: &'a [PlanItem],
    values: &'a [i64],
    pinned: &'a [Option<usize>],
    specs: &'a [MemorySpec],
    options: &'a PlanOptions,
}

impl BufferChooser<'_> {
    /// Bytes times steps; more than nothing.
    fn area(&self, k: usize) -> f64 {
        let i = &self.items[k];
        i.size as f64 * (i.end - i.start) as f64
    }

    fn solve(&self, items: &[usize], capacity: Option<i64>) -> (MemoryPart, Proof) {
        let problem = Problem { items: items.iter().map(|&k| self.items[k].clone()).collect(), capacity };
        let solution = solve(&problem, self.options);
        (MemoryPart { items: items.to_vec(), offsets: solution.offsets, height: solution.height }, solution.proof)
    }

    /// Fills the memories in their order, highest rank first.
    fn all(&self, rank: &dyn Fn(usize) -> f64) -> Result<Chosen> {
        let mut left: Vec<usize> = (0..self.items.len()).filter(|&k| self.pinned[k].is_none()).collect();
        let (mut parts, mut exact) = (Vec::new(), false);
        for (m, spec) in self.specs.iter().enumerate() {
            let own: Vec<usize> = (0..self.items.len()).filter(|&k| self.pinned[k] == Some(m)).collect();
            let part = match spec.capacity {
                None => {
                    exact |= m == 0;
                    self.solve(&[&own[..], &left[..]].concat(), None).0
                }
                Some(capacity) => {
                    let (part, proved) = self.within(&own, &left, capacity, rank, m == 0).map_err(|needed| {
                        let (name, count) = (&spec.name, own.len());
                        let what =
                            format!("the {count} buffers pinned to {name} need {needed} bytes of its {capacity}");
                        Error::unsupported(what).help("pin fewer values to it, or give it more bytes")
                    })?;
                    exact |= m == 0 && proved;
                    part
                }
            };
            left.retain(|k| !part.items.contains(k) || self.pinned[*k].is_some());
            parts.push(part);
        }
        if !left.is_empty() {
            let needed = self.solve(&left, None).0.height;
            let what = format!("{} buffers do not fit into the memories: they need {needed} more bytes", left.len());
            return Err(Error::unsupported(what).help("give a memory more bytes, or add a last one without a limit"));
        }
        Ok(Chosen { parts, exact })
    }

    /// The candidates of the highest rank that fit into a capacity beside the pinned ones, and whether no other choice has
    /// more traffic there. The error is the height that the pinned buffers need.
    fn within(
        &self,
        own: &[usize],
        candidates: &[usize],
        capacity: i64,
        rank: &dyn Fn(usize) -> f64,
        prove: bool,
    ) -> Result<(MemoryPart, bool), i64> {
        let (alone, _) = self.solve(own, Some(capacity));
        if alone.height > capacity {
            return Err(alone.height);
        }
        let mut order: Vec<usize> = candidates.to_vec();
        sort_indices(&mut order, &|a, b| rank(b).total_cmp(&rank(a)).then(a.cmp(&b)));
        let mut load = BytesPerStep::new(self.items);
        own.iter().for_each(|&k| load.add(&self.items[k]));
        let mut admitted = own.to_vec();
        for &k in &order {
            if load.with(&self.items[k]) <= capacity {
                load.add(&self.items[k]);
                admitted.push(k);
            }
        }
        let mut best = alone;
        while admitted.len() > own.len() {
            let (part, _) = self.solve(&admitted, Some(capacity));
            if part.height <= capacity {
                best = part;
                break;
            }
            // Buffers below the capacity are planned already. If only pinned buffers are above it, the lowest rank goes.
            let above = |at: usize| part.offsets[at].saturating_add(self.items[part.items[at]].size) > capacity;
            let stays: Vec<usize> = (0..admitted.len()).filter(|&at| at < own.len() || !above(at)).collect();
            if stays.len() < admitted.len() {
                admitted = stays.into_iter().map(|at| admitted[at]).collect();
            } else {
                admitted.pop();
            }
        }
        if !prove || candidates.len() > EXACT {
            return Ok((best, admitted.len() == own.len() + candidates.len()));
        }
        let mut search =
            Exact { of: self, capacity, load: BytesPerStep::new(self.items), best, plans: EXACT_PLANS, proved: true };
        own.iter().for_each(|&k| search.load.add(&self.items[k]));
        let mut by_value = candidates.to_vec();
        sort_indices(&mut by_value, &|a, b| self.values[b].cmp(&self.values[a]).then(a.cmp(&b)));
        search.go(&by_value, &mut own.to_vec());
        Ok((search.best, search.proved))
    }

    /// No choice has less traffic outside of the first memory.
    fn least_spilled(&self) -> i64 {
        let Some(capacity) = self.specs[0].capacity else { return 0 };
        let must = |k: usize| self.pinned[k].is_some_and(|m| m != 0) || self.items[k].size > capacity;
        let always: i64 = (0..self.items.len()).filter(|&k| must(k)).map(|k| self.values[k]).sum();
        let rest: Vec<usize> = (0..self.items.len()).filter(|&k| !must(k)).collect();
        let mut load = BytesPerStep::new(self.items);
        rest.iter().for_each(|&k| load.add(&self.items[k]));
        let at_step = |step: usize| {
            let mut live: Vec<(i64, i64, bool)> = Vec::new();
            for &k in &rest {
                let mut bytes = 0;
                self.items[k].each_part(|p| bytes += if (p.start..p.end).contains(&step) { p.to - p.from } else { 0 });
                if bytes > 0 {
                    live.push((bytes, self.values[k], self.pinned[k] == Some(0)));
                }
            }
            let mut excess = live.iter().map(|l| l.0).sum::<i64>() - capacity;
            live.retain(|l| !l.2);
            live.sort_by(|a, b| (i128::from(a.1) * i128::from(b.0)).cmp(&(i128::from(b.1) * i128::from(a.0))));
            let mut least = 0i64;
            for (bytes, value, _) in live {
                if excess <= 0 {
                    break;
                }
                // A part of a buffer counts with its share, rounded down.
                let share = i128::from(value) * i128::from(bytes.min(excess)) / i128::from(bytes);
                least = least.saturating_add(i64::try_from(share).unwrap_or(i64::MAX));
                excess -= bytes;
            }
            least
        };
        always.saturating_add(load.largest(BOUND_STEPS).into_iter().map(at_step).max().unwrap_or(0))
    }
}

/// All choices for the first memory, those with the most traffic first.
struct Exact<'a> {
    of: &'a BufferChooser<'a>,
    capacity: i64,
    load: BytesPerStep,
    best: MemoryPart,
    plans: usize,
    proved: bool,
}

impl Exact<'_> {
    fn value(&self, items: &[usize]) -> i64 {
        items.iter().map(|&k| self.of.values[k]).sum()
    }

    fn go(&mut self, open: &[usize], chosen: &mut Vec<usize>) {
        if self.value(chosen).saturating_add(self.value(open)) <= self.value(&self.best.items) {
            return;
        }
        let Some((&k, rest)) = open.split_first() else {
            if self.plans == 0 {
                self.proved = false;
                return;
            }
            self.plans -= 1;
            let (part, proof) = self.of.solve(chosen, Some(self.capacity));
            match proof {
                _ if part.height <= self.capacity => self.best = part,
                Proof::Open { at_least } if at_least <= self.capacity => self.proved = false,
                _ => {}
            }
            return;
        };
        let item = &self.of.items[k];
        if self.load.with(item) <= self.capacity {
            self.load.add(item);
            chosen.push(k);
            self.go(rest, chosen);
            chosen.pop();
            self.load.remove(item);
        }
        self.go(rest, chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(name: &str, capacity: Option<i64>) -> MemorySpec {
        MemorySpec { name: name.into(), capacity, pins: Vec::new() }
    }

    /// Items of a few sizes and lives, and their traffic.
    fn drawn(seed: u64, count: usize) -> (Vec<PlanItem>, Vec<i64>) {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut item = |_| {
            let start = next(8) as usize;
            let item = PlanItem::whole(start, start + 1 + next(5) as usize, 64 * (1 + next(6) as i64));
            let traffic = item.size * (1 + next(4) as i64);
            (item, traffic)
        };
        (0..count).map(&mut item).unzip()
    }

    #[test]
    fn few_buffers_are_chosen_as_well_as_by_trying_all_subsets() {
        let options = PlanOptions::default();
        for seed in 0..60 {
            let (items, values) = drawn(seed, 3 + seed as usize % 6);
            let pinned = vec![None; items.len()];
            let capacity = 64 * (2 + seed as i64 % 9);
            let specs = [memory("fast", Some(capacity)), memory("slow", None)];
            let chooser =
                BufferChooser { items: &items, values: &values, pinned: &pinned, specs: &specs, options: &options };
            let chosen = chooser.all(&|k| values[k] as f64 / chooser.area(k)).expect("slow has no limit");
            let have: i64 = chosen.parts[0].items.iter().map(|&k| values[k]).sum();
            let fits = |mask: usize| {
                let subset: Vec<usize> = (0..items.len()).filter(|k| mask >> k & 1 == 1).collect();
                let value: i64 = subset.iter().map(|&k| values[k]).sum();
                (chooser.solve(&subset, Some(capacity)).0.height <= capacity).then_some(value)
            };
            let best = (0..1 << items.len()).filter_map(fits).max();
            assert!(chosen.exact && Some(have) == best, "seed {seed}: {have}, not {best:?}");
            let spilled = values.iter().sum::<i64>() - have;
            assert!(chooser.least_spilled() <= spilled, "seed {seed}: the bound is above the best choice");
        }
    }

    #[test]
    fn many_buffers_are_near_the_bound_on_what_spills() {
        let options = PlanOptions::default();
        let (mut spilled, mut least) = (0, 0);
        for seed in 100..120 {
            let (items, values) = drawn(seed, 60);
            let pinned = vec![None; items.len()];
            let specs = [memory("fast", Some(64 * 20)), memory("slow", None)];
            let chooser =
                BufferChooser { items: &items, values: &values, pinned: &pinned, specs: &specs, options: &options };
            let chosen = chooser.all(&|k| values[k] as f64 / chooser.area(k)).expect("slow has no limit");
            assert!(chosen.parts[0].height <= 64 * 20);
            let all: usize = chosen.parts.iter().map(|p| p.items.len()).sum();
            assert_eq!(all, items.len(), "each buffer is in one memory");
            let own: i64 = chosen.parts[1].items.iter().map(|&k| values[k]).sum();
            assert!(chooser.least_spilled() <= own, "seed {seed}");
            spilled += own;
            least += chooser.least_spilled();
        }
        assert!(least > 0 && spilled < 12 * least, "{spilled} {least}");
    }
}
