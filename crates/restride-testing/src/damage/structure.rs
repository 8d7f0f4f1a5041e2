//! Damage to the structure of placements: references, ranks, and numbers beyond all memory.

use super::{DamageKind, Damager, any, places};
use crate::rng::Rng;
use restride_ir::{
    ARENA_ALIGN, BufferId, BufferKind, Id, NodeId, Place, Placement, Plan, Step, Type, ValueId, aligned,
};

/// Numbers at which arithmetic overflows.
const EXTREMES: [i64; 12] =
    [i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 7, 1 << 48, (1 << 48) + 1, -(1 << 48), 1 << 62, 1 << 32, -1, -8, 0];

fn extreme(rng: &mut Rng) -> i64 {
    *rng.choose(&EXTREMES)
}

/// A number near `n`, or an extreme.
fn other(rng: &mut Rng, n: i64) -> i64 {
    if rng.chance(60) { n.wrapping_add(*rng.choose(&[-2, -1, 1, 2, 64, -64])) } else { extreme(rng) }
}

/// Damages the placed bodies.
pub(super) fn bodies(placement: &mut Placement, kind: DamageKind, rng: &mut Rng) -> Option<()> {
    let ids: Vec<_> = placement.nested.keys().copied().collect();
    let id = any(rng, ids.clone())?;
    let deeper = !placement.nested[&id].placement.nested.is_empty();
    if deeper && rng.chance(50) {
        return bodies(&mut placement.nested.get_mut(&id)?.placement, kind, rng);
    }
    let nested = placement.nested.get_mut(&id)?;
    if kind == DamageKind::Carried {
        nested.carried =
            *rng.choose(&[nested.carried + 1, nested.carried.wrapping_sub(1), 0, nested.carried + 2, usize::MAX]);
        return Some(());
    }
    match rng.below(8) {
        0 => {
            let gone = placement.nested.remove(&id)?;
            if rng.chance(50) {
                // Under another name.
                let to = restride_ir::GraphId::new(rng.below(ids.len() + 3));
                placement.nested.insert(to, gone);
            }
        }
        1 => {
            let second = any(rng, ids)?;
            let (a, b) = (placement.nested[&id].clone(), placement.nested[&second].clone());
            placement.nested.insert(id, b);
            placement.nested.insert(second, a);
        }
        2..6 => nested.plan = super::damage_plan(&nested.placement, &nested.plan, rng)?,
        _ => {
            nested.plan = wrong_plan(&nested.placement, &nested.plan, rng)?;
        }
    }
    Some(())
}

/// A plan with one changed number.
pub(super) fn wrong_plan(placement: &Placement, plan: &Plan, rng: &mut Rng) -> Option<Plan> {
    let mut out = plan.clone();
    let far = extreme(rng);
    let arena = placement.buffers.iter().filter(|(_, b)| b.kind == BufferKind::Arena);
    let arena: Vec<(BufferId, Option<i64>)> = arena.map(|(id, _)| (id, plan.offsets[id])).collect();
    match rng.below(6) {
        0 => out.arena_bytes = *rng.choose(&[0, plan.arena_bytes - ARENA_ALIGN, plan.arena_bytes / 2, far]),
        1 => {
            let (id, _) = any(rng, arena)?;
            out.offsets.set(id, None);
        }
        2 => {
            let (id, offset) = any(rng, arena)?;
            let to = [offset? + 1, offset? + 8, offset? - 1, far, offset? & !127, plan.arena_bytes];
            out.offsets.set(id, Some(*rng.choose(&to)));
        }
        3 => {
            let ((a, x), (b, y)) = (any(rng, arena.clone())?, any(rng, arena)?);
            out.offsets.set(a, y);
            out.offsets.set(b, x);
        }
        4 => out.align = *rng.choose(&[1, 0, -64, 96, 4096, far]),
        _ => {
            let (id, _) = any(rng, placement.buffers.iter().collect())?;
            out.offsets.set(id, Some(ARENA_ALIGN * rng.below(8) as i64));
        }
    }
    (out != *plan).then_some(out)
}

impl Damager<'_> {
    pub(super) fn structure(&mut self, kind: DamageKind) -> Option<()> {
        match kind {
            DamageKind::Scratch => self.scratch(),
            DamageKind::Caller => self.caller(),
            DamageKind::Value => self.value(),
            DamageKind::Work => self.work(),
            DamageKind::Operand => self.operand(),
            DamageKind::Reference => self.reference(),
            _ => self.one(kind),
        }
    }

    fn scratch(&mut self) -> Option<()> {
        let held: Vec<(NodeId, BufferId)> = self.placement.scratch.iter().map(|(n, b)| (*n, *b)).collect();
        let buffer = self.buffer()?;
        let (node, own) = any(self.rng, held.clone())?;
        match self.rng.below(8) {
            0 => drop(self.placement.scratch.remove(&node)),
            1 => {
                let bytes = &mut self.placement.buffers[own].bytes;
                *bytes = *self.rng.choose(&[0, *bytes - 1, *bytes / 2, aligned(*bytes / 2)]);
            }
            2 => {
                let (second, theirs) = any(self.rng, held)?;
                self.placement.scratch.insert(node, theirs);
                self.placement.scratch.insert(second, own);
            }
            3 => drop(self.placement.scratch.insert(node, buffer)),
            // Memory of a value that a later step may use.
            _ => {
                let runs = |s: &Step| matches!(s, Step::Run { node: n, .. } if *n == node);
                let at = self.placement.steps.iter().position(runs)?;
                let bytes = self.placement.buffers[own].bytes;
                let mut free = self.buffers(|b| b.kind == BufferKind::Arena);
                free.retain(|b| self.placement.touched(&self.placement.steps[at]).all(|t| t != *b));
                let to = any(self.rng, free)?;
                let has = &mut self.placement.buffers[to].bytes;
                *has = (*has).max(bytes);
                self.placement.scratch.insert(node, to);
            }
        }
        Some(())
    }

    fn caller(&mut self) -> Option<()> {
        let id = self.buffer()?;
        let (inputs, outputs) = (self.graph.inputs.len(), self.graph.outputs.len());
        if self.rng.chance(50) {
            let second = self.buffer()?;
            let kind = self.placement.buffers[second].kind;
            self.placement.buffers[second].kind = std::mem::replace(&mut self.placement.buffers[id].kind, kind);
            return Some(());
        }
        self.placement.buffers[id].kind = match self.rng.below(5) {
            0 => BufferKind::Arena,
            1 | 2 => BufferKind::Input(self.rng.below(inputs + 1)),
            3 => BufferKind::Output(self.rng.below(outputs + 1)),
            _ => *self.rng.choose(&[BufferKind::Input(usize::MAX), BufferKind::Output(usize::MAX)]),
        };
        Some(())
    }

    fn value(&mut self) -> Option<()> {
        let moves = self.placement.steps.iter().enumerate();
        let moves =
            moves.filter_map(|(at, s)| if let Step::Move { value, .. } = s { Some((at, *value)) } else { None });
        let (at, was) = any(self.rng, moves.collect())?;
        let like: Vec<ValueId> = self.graph.values.ids().filter(|v| *v != was).collect();
        let known = |v: ValueId| match &self.graph.values[v].ty {
            Type::Tensor(t) => t.known().map(|m| (m.dtype, m.layout.sizes)),
            _ => None,
        };
        let same: Vec<ValueId> = like.iter().copied().filter(|v| known(*v) == known(was)).collect();
        let now = if same.is_empty() || self.rng.chance(20) { any(self.rng, like)? } else { any(self.rng, same)? };
        let lies = self.placement.places[now].clone().filter(|_| self.rng.chance(60));
        if let Step::Move { value, from, .. } = &mut self.placement.steps[at] {
            *value = now;
            if let Some(place) = lies {
                **from = place;
            }
        }
        Some(())
    }

    /// Exchanges kernel steps and steps without work, or runs another node.
    fn work(&mut self) -> Option<()> {
        let steps = self.placement.steps.iter().enumerate();
        let of = |s: &Step| match s {
            Step::Run { node, .. } | Step::Free { node } => Some(*node),
            Step::Move { .. } => None,
        };
        let all: Vec<(usize, NodeId)> = steps.filter_map(|(at, s)| Some((at, of(s)?))).collect();
        let (at, id) = any(self.rng, all.clone())?;
        let like = |n: NodeId| (self.graph.nodes[n].operands().count(), self.graph.nodes[n].results.len());
        let others = all.iter().map(|(_, n)| *n).filter(|n| *n != id && like(*n) == like(id));
        let second = any(self.rng, others.collect());
        let placed = |v: ValueId| self.placement.places[v].clone();
        let now = match (&self.placement.steps[at], second) {
            (Step::Run { reads, writes, .. }, Some(node)) if self.rng.chance(40) => {
                Step::Run { node, reads: reads.clone(), writes: writes.clone() }
            }
            (Step::Run { .. }, _) => Step::Free { node: id },
            (_, Some(node)) if self.rng.chance(40) => Step::Free { node },
            _ => {
                let node = &self.graph.nodes[id];
                let reads = node.operands().map(placed).collect();
                Step::Run { node: id, reads, writes: node.results.iter().map(|v| placed(*v)).collect() }
            }
        };
        self.placement.steps[at] = now;
        Some(())
    }

    /// One operand or result fewer or more, or a missing place.
    fn operand(&mut self) -> Option<()> {
        let runs = self.placement.steps.iter_mut();
        let runs =
            runs.filter_map(|s| if let Step::Run { reads, writes, .. } = s { Some([reads, writes]) } else { None });
        let lists: Vec<&mut Vec<Option<Place>>> = runs.flatten().filter(|l| !l.is_empty()).collect();
        let list = any(self.rng, lists)?;
        let at = self.rng.below(list.len());
        match self.rng.below(4) {
            0 => drop(list.remove(at)),
            1 => list.insert(at, list[at].clone()),
            2 => list.truncate(0),
            _ => list[at] = None,
        }
        Some(())
    }

    /// An undefined node, value or buffer, or a place of another value.
    fn reference(&mut self) -> Option<()> {
        let far = *self.rng.choose(&[0, 1, 1000]);
        let (nodes, values) = (self.graph.nodes.len(), self.graph.values.len());
        let (node, value) = (NodeId::new(nodes + far), ValueId::new(values + far));
        let buffer = BufferId::new(self.placement.buffers.len() + far);
        match self.rng.below(4) {
            0 => {
                let at = self.step()?;
                match &mut self.placement.steps[at] {
                    Step::Run { node: n, .. } | Step::Free { node: n } => *n = node,
                    Step::Move { value: v, .. } => *v = value,
                }
            }
            1 => any(self.rng, self.placement.steps.iter_mut().flat_map(places).collect())?.buffer = buffer,
            2 => {
                let used = self.placement.scratch.keys().copied().collect::<Vec<_>>();
                let node = any(self.rng, used).unwrap_or(node);
                self.placement.scratch.insert(node, buffer);
            }
            _ => {
                let all: Vec<ValueId> = self.graph.values.ids().collect();
                let (a, b) = (any(self.rng, all.clone())?, any(self.rng, all)?);
                let place = if self.rng.chance(50) { self.placement.places[b].clone() } else { None };
                self.placement.places.set(a, place);
            }
        }
        Some(())
    }

    /// A place or buffer size that no memory has.
    fn one(&mut self, kind: DamageKind) -> Option<()> {
        if kind == DamageKind::Extreme && self.rng.chance(20) {
            let id = self.buffer()?;
            self.placement.buffers[id].bytes = extreme(self.rng);
            return Some(());
        }
        let stated = self.graph.values.ids().filter(|v| self.placement.places[*v].is_some()).collect();
        if self.rng.chance(20) {
            let v = any(self.rng, stated)?;
            let mut place = self.placement.places[v].clone()?;
            change(&mut place, kind, self.rng)?;
            self.placement.places.set(v, Some(place));
            return Some(());
        }
        let all = self.placement.steps.iter_mut().flat_map(places).collect();
        change(any(self.rng, all)?, kind, self.rng)
    }
}

/// Changes the rank, the sizes or a number of a place.
fn change(place: &mut Place, kind: DamageKind, rng: &mut Rng) -> Option<()> {
    let layout = &mut place.layout;
    let at = rng.below(layout.rank().max(1));
    match kind {
        DamageKind::Rank => match rng.below(5) {
            0 => {
                layout.sizes.push(1);
                layout.strides.push(1);
            }
            1 => {
                layout.sizes.pop()?;
                layout.strides.pop()?;
            }
            2 => drop(layout.strides.pop()?),
            3 => drop(layout.sizes.pop()?),
            _ => layout.strides.push(1),
        },
        DamageKind::Sizes => {
            let size = layout.sizes.get_mut(at)?;
            *size = other(rng, *size);
        }
        _ if rng.chance(50) => layout.offset = extreme(rng),
        _ => *layout.strides.get_mut(at)? = extreme(rng),
    }
    Some(())
}
