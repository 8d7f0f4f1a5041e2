//! Damage to placements of main graphs and bodies: bugs that a placer could have.

mod exchanges;
mod structure;

use crate::rng::Rng;
use crate::segment_run::quick_plan;
use restride_ir::{
    ARENA_ALIGN, Buffer, BufferId, BufferKind, Graph, GraphId, Id, LoopFrame, Place, Placement, Plan, Program, Step,
    ValueId, aligned,
};
use restride_passes::plan::plan;

/// Kind of damage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DamageKind {
    /// Swaps two steps.
    Swap,
    /// Moves a step up, mostly by one.
    Sooner,
    /// Removes a step.
    Drop,
    /// Repeats a step at another time.
    Repeat,
    /// Changes the offset of one place.
    Offset,
    /// Changes the buffer of one place.
    Buffer,
    /// Changes the strides of one place.
    Strides,
    /// Reads another region of the same memory.
    Region,
    /// Exchanges two places of one step.
    Operands,
    /// Changes the place of a view on its base, for all readers.
    View,
    /// Changes the destination of a copy.
    Target,
    /// Removes a copy and computes its source straight in the copy's destination.
    Straight,
    /// Computes a result on an operand that is read later.
    Reuse,
    /// Computes a result in the memory of an input.
    Input,
    /// Merges two buffers.
    Merge,
    /// Exchanges two buffers, from the start or from some step on.
    Exchange,
    /// Shrinks a buffer.
    Shrink,
    /// A step's scratch is missing, too small, another step's, or holds a value.
    Scratch,
    /// A body overwrites more or fewer of its inputs.
    Carried,
    /// A body's placement is missing or another body's, or its plan is wrong.
    Nested,
    /// A buffer gets another kind, or belongs to another input or output.
    Caller,
    /// A copy copies another value.
    Value,
    /// A kernel step becomes a step without work, or the reverse, or it runs another node.
    Work,
    /// A step has more or fewer operands or results, or loses a place.
    Operand,
    /// An undefined node, value or buffer, or the place of another value.
    Reference,
    /// A place has another rank.
    Rank,
    /// A place has other sizes.
    Sizes,
    /// A number is negative or beyond all memory.
    Extreme,
    /// A wait for an exchange is removed, or happens at another time.
    Wait,
    /// An exchange starts sooner, or in another's turn.
    Start,
    /// A result is computed in memory of an exchange that is under way.
    InFlight,
}

/// Kinds that need exchanges.
pub const EXCHANGE_KINDS: [DamageKind; 3] = [DamageKind::Wait, DamageKind::Start, DamageKind::InFlight];

/// All kinds but those that need exchanges.
pub const KINDS: [DamageKind; 28] = [
    DamageKind::Swap,
    DamageKind::Sooner,
    DamageKind::Drop,
    DamageKind::Repeat,
    DamageKind::Offset,
    DamageKind::Buffer,
    DamageKind::Strides,
    DamageKind::Region,
    DamageKind::Operands,
    DamageKind::View,
    DamageKind::Target,
    DamageKind::Straight,
    DamageKind::Reuse,
    DamageKind::Input,
    DamageKind::Merge,
    DamageKind::Exchange,
    DamageKind::Shrink,
    DamageKind::Scratch,
    DamageKind::Carried,
    DamageKind::Nested,
    DamageKind::Caller,
    DamageKind::Value,
    DamageKind::Work,
    DamageKind::Operand,
    DamageKind::Reference,
    DamageKind::Rank,
    DamageKind::Sizes,
    DamageKind::Extreme,
];

impl DamageKind {
    /// Whether most such placements are malformed, so that no run can test the checker.
    pub fn ill_formed(self) -> bool {
        use DamageKind::{Carried, Extreme, Operand, Rank, Reference, Shrink, Sizes};
        matches!(self, Carried | Extreme | Operand | Rank | Reference | Shrink | Sizes)
    }
}

/// Damages a placement; `None` if the drawn damage does not apply.
pub fn damage(program: &Program, placement: &Placement, kind: DamageKind, rng: &mut Rng) -> Option<Placement> {
    let mut out = placement.clone();
    within(program, program.main, &mut out, kind, rng)?;
    (out != *placement).then_some(out)
}

/// Damages a plan: moves a buffer of the arena or changes a number; `None` if the drawn damage does not apply.
pub fn damage_plan(placement: &Placement, plan: &Plan, rng: &mut Rng) -> Option<Plan> {
    if rng.chance(25) {
        return structure::wrong_plan(placement, plan, rng);
    }
    let arena = placement.buffers.iter().filter(|(_, b)| b.kind == BufferKind::Arena && b.bytes > 0);
    let arena: Vec<(BufferId, i64, i64)> = arena.filter_map(|(id, b)| Some((id, plan.offsets[id]?, b.bytes))).collect();
    let (id, was, bytes) = any(rng, arena.clone())?;
    let (_, other, size) = any(rng, arena)?;
    let by = ARENA_ALIGN * rng.below(4) as i64;
    let at = *rng.choose(&[other, other + by, other - by, other + aligned(size) - by, was + by, was - by]);
    let mut out = plan.clone();
    out.offsets.set(id, Some(at));
    (at != was && at >= 0 && at + bytes <= plan.arena_bytes).then_some(out)
}

/// Damages the placement of a graph or of one of its bodies, and gives callers the scratch that it then needs.
fn within(program: &Program, id: GraphId, placement: &mut Placement, kind: DamageKind, rng: &mut Rng) -> Option<()> {
    if matches!(kind, DamageKind::Carried | DamageKind::Nested) {
        return structure::bodies(placement, kind, rng);
    }
    let bodies: Vec<GraphId> = placement.nested.keys().copied().collect();
    if bodies.is_empty() || rng.chance(50) {
        return Damager { graph: &program.graphs[id], placement, rng }.done(kind);
    }
    let body = *rng.choose(&bodies);
    let nested = placement.nested.get_mut(&body)?;
    within(program, body, &mut nested.placement, kind, rng)?;
    if kind.ill_formed() {
        return Some(());
    }
    nested.plan = plan(&program.graphs[body], &nested.placement, &quick_plan());
    for step in &placement.steps {
        if let Step::Run { node, reads, writes } = step
            && let Some(buffer) = placement.scratch.get(node)
            && let Ok(frame) = LoopFrame::of(&program.graphs, id, *node, reads, writes, &placement.nested)
        {
            let bytes = &mut placement.buffers[*buffer].bytes;
            *bytes = (*bytes).max(aligned(frame.bytes));
        }
    }
    Some(())
}

fn reads(step: &mut Step) -> Vec<&mut Place> {
    match step {
        Step::Run { reads, .. } => reads.iter_mut().flatten().collect(),
        Step::Move { from, .. } => vec![from],
        Step::Free { .. } => Vec::new(),
    }
}

fn writes(step: &mut Step) -> Vec<&mut Place> {
    match step {
        Step::Run { writes, .. } => writes.iter_mut().flatten().collect(),
        Step::Move { to, .. } => vec![to],
        Step::Free { .. } => Vec::new(),
    }
}

fn places(step: &mut Step) -> Vec<&mut Place> {
    match step {
        Step::Run { reads, writes, .. } => reads.iter_mut().chain(writes).flatten().collect(),
        Step::Move { from, to, .. } => vec![from, to],
        Step::Free { .. } => Vec::new(),
    }
}

/// A random item.
fn any<T>(rng: &mut Rng, mut from: Vec<T>) -> Option<T> {
    if from.is_empty() { None } else { Some(from.swap_remove(rng.below(from.len()))) }
}

struct Damager<'a> {
    graph: &'a Graph,
    placement: &'a mut Placement,
    rng: &'a mut Rng,
}

impl Damager<'_> {
    fn done(&mut self, kind: DamageKind) -> Option<()> {
        // Larger buffers show a wrong place less often.
        if !matches!(kind, DamageKind::Shrink | DamageKind::Merge | DamageKind::Scratch | DamageKind::Extreme)
            && self.rng.chance(60)
        {
            for id in self.buffers(|b| b.kind == BufferKind::Arena) {
                self.placement.buffers[id].bytes += 64;
            }
        }
        match kind {
            DamageKind::Swap | DamageKind::Sooner | DamageKind::Drop | DamageKind::Repeat => self.steps(kind),
            DamageKind::Offset | DamageKind::Buffer | DamageKind::Strides => self.one_place(kind),
            DamageKind::Region => self.region(),
            DamageKind::Operands => self.operands(),
            DamageKind::View => self.view(),
            DamageKind::Target => self.target(),
            DamageKind::Straight => self.straight(),
            DamageKind::Reuse => self.reuse(),
            DamageKind::Input => self.input(),
            DamageKind::Merge => self.merge(),
            DamageKind::Exchange => self.exchange(),
            DamageKind::Shrink => self.shrink(),
            DamageKind::Wait | DamageKind::Start | DamageKind::InFlight => self.exchanges(kind),
            _ => self.structure(kind),
        }
    }

    /// Position of a random step.
    fn step(&mut self) -> Option<usize> {
        let n = self.placement.steps.len();
        (n > 0).then(|| self.rng.below(n))
    }

    fn buffers(&self, fits: impl Fn(&Buffer) -> bool) -> Vec<BufferId> {
        self.placement.buffers.iter().filter(|(_, b)| fits(b)).map(|(id, _)| id).collect()
    }

    fn buffer(&mut self) -> Option<BufferId> {
        let all = self.buffers(|_| true);
        any(self.rng, all)
    }

    /// Changes the places of the steps from one on, and the recorded places of values.
    fn change(&mut self, from: usize, change: impl Fn(&mut Place)) {
        self.placement.steps[from..].iter_mut().flat_map(places).for_each(&change);
        for v in self.graph.values.ids() {
            if let Some(mut place) = self.placement.places[v].clone() {
                change(&mut place);
                self.placement.places.set(v, Some(place));
            }
        }
    }

    fn steps(&mut self, kind: DamageKind) -> Option<()> {
        let at = self.step()?;
        let other = self.step()?;
        let steps = &mut self.placement.steps;
        match kind {
            DamageKind::Swap => steps.swap(at, other),
            DamageKind::Sooner => {
                let by = if self.rng.chance(70) { 1 } else { 1 + self.rng.below(4) };
                let step = steps.remove(at);
                steps.insert(at.checked_sub(by)?, step);
            }
            DamageKind::Repeat => steps.insert(other, steps[at].clone()),
            _ => {
                steps.remove(at);
            }
        }
        Some(())
    }

    fn one_place(&mut self, kind: DamageKind) -> Option<()> {
        let other = self.buffer()?;
        let all = self.placement.steps.iter_mut().flat_map(places).collect();
        let place = any(self.rng, all)?;
        match kind {
            DamageKind::Offset => place.layout.offset += *self.rng.choose(&[-2, -1, 1, 2, 3]),
            DamageKind::Buffer => place.buffer = other,
            _ => {
                let d = self.rng.below(place.layout.rank().max(1));
                *place.layout.strides.get_mut(d)? = *self.rng.choose(&[0, 1, 2, 3]);
            }
        }
        Some(())
    }

    fn region(&mut self) -> Option<()> {
        let known: Vec<Place> = self.placement.steps.iter_mut().flat_map(places).map(|p| p.clone()).collect();
        let mut found = Vec::new();
        for place in self.placement.steps.iter_mut().flat_map(reads) {
            let alike = |p: &&Place| p.buffer == place.buffer && p.layout.sizes == place.layout.sizes && *p != place;
            let mut others: Vec<Place> = known.iter().filter(alike).cloned().collect();
            if place.layout.offset != 0 {
                let mut start = place.clone();
                start.layout.offset = 0;
                others.push(start);
            }
            if let Some(other) = any(self.rng, others) {
                found.push((place, other));
            }
        }
        let (place, other) = any(self.rng, found)?;
        *place = other;
        Some(())
    }

    fn operands(&mut self) -> Option<()> {
        let mut pairs = Vec::new();
        for (at, step) in self.placement.steps.iter_mut().enumerate() {
            let places = places(step);
            for i in 0..places.len() {
                let like = |j: &usize| places[*j] != places[i] && places[*j].layout.sizes == places[i].layout.sizes;
                pairs.extend((0..i).filter(like).map(|j| (at, i, j)));
            }
        }
        let (at, i, j) = any(self.rng, pairs)?;
        let mut places = places(&mut self.placement.steps[at]);
        let (first, second) = places.split_at_mut(i);
        std::mem::swap(first[j], second[0]);
        Some(())
    }

    fn view(&mut self) -> Option<()> {
        let free = |s: &Step| if let Step::Free { node } = s { Some(*node) } else { None };
        let results = self.placement.steps.iter().filter_map(free).flat_map(|n| &self.graph.nodes[n].results);
        let v = any(self.rng, results.copied().collect())?;
        let was = self.placement.places[v].clone()?;
        let mut now = was.clone();
        let rank = now.layout.rank();
        if rank > 1 && self.rng.chance(30) {
            let d = self.rng.below(rank - 1);
            now.layout.strides.swap(d, d + 1);
        } else {
            now.layout.offset += *self.rng.choose(&[-1, 1]);
        }
        self.placement.places.set(v, Some(now.clone()));
        for step in &mut self.placement.steps {
            match step {
                Step::Run { node, reads, .. } => {
                    let operands = self.graph.nodes[*node].operands();
                    operands.zip(reads).filter(|o| o.0 == v).for_each(|(_, place)| {
                        place.iter_mut().filter(|p| **p == was).for_each(|p| *p = now.clone());
                    });
                }
                Step::Move { value, from, .. } if *value == v && **from == was => **from = now.clone(),
                Step::Move { .. } | Step::Free { .. } => {}
            }
        }
        Some(())
    }

    fn target(&mut self) -> Option<()> {
        let other = self.buffer()?;
        let moves = self.placement.steps.iter_mut().filter(|s| matches!(s, Step::Move { .. }));
        any(self.rng, moves.flat_map(writes).collect())?.buffer = other;
        Some(())
    }

    fn straight(&mut self) -> Option<()> {
        let steps = &self.placement.steps;
        let moves = steps.iter().enumerate().filter_map(|(at, s)| match s {
            Step::Move { value, from, to } => Some((at, *value, Place::clone(from), Place::clone(to))),
            _ => None,
        });
        let (at, value, from, to) = any(self.rng, moves.collect())?;
        let makes = |s: &Step| match s {
            Step::Run { node, writes, .. } => {
                let results = &self.graph.nodes[*node].results;
                results.iter().zip(writes).any(|(r, w)| *r == value && w.as_ref() == Some(&from))
            }
            _ => false,
        };
        let made = steps[..at].iter().position(makes)?;
        self.placement.steps.remove(at);
        let change = |p: &mut Place| {
            if *p == from {
                *p = to.clone();
            }
        };
        writes(&mut self.placement.steps[made]).into_iter().for_each(change);
        self.change(made + 1, change);
        Some(())
    }

    /// From the writes of a step on, moves one place to another; if strides match, neighbours follow.
    fn carry(&mut self, at: usize, was: &Place, now: &Place) {
        let shift = now.layout.offset - was.layout.offset;
        let same = was.layout.strides == now.layout.strides;
        let change = |p: &mut Place| {
            if p == was {
                *p = now.clone();
            } else if same && p.buffer == was.buffer {
                p.buffer = now.buffer;
                p.layout.offset += shift;
            }
        };
        writes(&mut self.placement.steps[at]).into_iter().for_each(change);
        self.change(at + 1, change);
    }

    /// Results of kernels in the arena: step and place.
    fn results(&self) -> Vec<(usize, Place)> {
        let arena = |p: &&Place| self.placement.buffers[p.buffer].kind == BufferKind::Arena;
        let steps = self.placement.steps.iter().enumerate();
        let runs = steps.filter_map(|(at, s)| if let Step::Run { writes, .. } = s { Some((at, writes)) } else { None });
        runs.flat_map(|(at, w)| w.iter().flatten().filter(arena).map(move |p| (at, p.clone()))).collect()
    }

    fn reuse(&mut self) -> Option<()> {
        let mut found = Vec::new();
        for (at, was) in self.results() {
            let Step::Run { reads, .. } = &self.placement.steps[at] else { continue };
            for now in reads.iter().flatten() {
                let later = |s: &Step| self.placement.touched(s).any(|b| b == now.buffer);
                let fits = now.buffer != was.buffer && now.layout.sizes == was.layout.sizes;
                if fits && self.placement.steps[at + 1..].iter().any(later) {
                    found.push((at, was.clone(), now.clone()));
                }
            }
        }
        let (at, was, now) = any(self.rng, found)?;
        self.carry(at, &was, &now);
        Some(())
    }

    fn input(&mut self) -> Option<()> {
        let results = self.results();
        let (at, was) = any(self.rng, results)?;
        let inputs: Vec<(ValueId, BufferId)> = self
            .placement
            .buffers
            .iter()
            .filter_map(
                |(id, b)| if let BufferKind::Input(i) = b.kind { Some((self.graph.inputs[i], id)) } else { None },
            )
            .collect();
        let (value, buffer) = any(self.rng, inputs)?;
        // In the input's layout, if sizes match.
        let place = self.placement.places[value].as_ref().filter(|p| p.layout.sizes == was.layout.sizes);
        let layout = place.map_or_else(|| was.layout.clone(), |p| p.layout.clone());
        self.carry(at, &was, &Place { buffer, layout });
        Some(())
    }

    fn merge(&mut self) -> Option<()> {
        let arena = self.buffers(|b| b.kind == BufferKind::Arena);
        let (a, b) = (any(self.rng, arena.clone())?, any(self.rng, arena)?);
        let bytes = self.placement.buffers[a].bytes.max(self.placement.buffers[b].bytes);
        self.placement.buffers[a].bytes = bytes;
        self.change(0, |p| {
            if p.buffer == b {
                p.buffer = a;
            }
        });
        Some(())
    }

    fn exchange(&mut self) -> Option<()> {
        let (a, b) = (self.buffer()?, self.buffer()?);
        let from = if self.rng.chance(50) { 0 } else { self.step()? };
        self.change(from, |p| {
            if p.buffer == a || p.buffer == b {
                p.buffer = BufferId::new(a.index() + b.index() - p.buffer.index());
            }
        });
        Some(())
    }

    fn shrink(&mut self) -> Option<()> {
        let all = self.buffers(|b| b.bytes > 0);
        let id = any(self.rng, all)?;
        let bytes = &mut self.placement.buffers[id].bytes;
        *bytes -= *self.rng.choose(&[1, (*bytes).min(4), (*bytes + 1) / 2, *bytes]);
        Some(())
    }
}
