//! Damage to exchanges between their start and their wait.

use super::{DamageKind, Damager, any};
use restride_ir::{BufferKind, Kernel, NodeId, Place, Step};

impl Damager<'_> {
    pub(super) fn exchanges(&mut self, kind: DamageKind) -> Option<()> {
        let waits = self.exchange_steps(|n| self.graph.nodes[n].op.def().awaits);
        let starts = self.exchange_steps(|n| matches!(self.graph.nodes[n].op.def().kernel, Kernel::Collective(_)));
        match kind {
            DamageKind::Wait => {
                let at = any(self.rng, waits)?;
                let step = self.placement.steps.remove(at);
                if self.rng.chance(80) {
                    let to = self.rng.below(self.placement.steps.len() + 1);
                    self.placement.steps.insert(to, step);
                }
                Some(())
            }
            DamageKind::Start if self.rng.chance(50) => {
                // Two exchanges in turn.
                let (a, b) = (any(self.rng, starts.clone())?, any(self.rng, starts)?);
                self.placement.steps.swap(a, b);
                Some(())
            }
            DamageKind::Start => {
                let at = any(self.rng, starts)?;
                let step = self.placement.steps.remove(at);
                let to = self.rng.below(at + 1);
                self.placement.steps.insert(to, step);
                Some(())
            }
            _ => self.in_flight(starts, waits),
        }
    }

    /// Positions of kernel steps by their nodes.
    fn exchange_steps(&self, is: impl Fn(NodeId) -> bool) -> Vec<usize> {
        let steps = self.placement.steps.iter().enumerate();
        steps.filter(|(_, s)| matches!(s, Step::Run { node, .. } if is(*node))).map(|(at, _)| at).collect()
    }

    /// Lets a step between start and wait write into the memory of the exchange.
    fn in_flight(&mut self, starts: Vec<usize>, waits: Vec<usize>) -> Option<()> {
        let mut found: Vec<(usize, Place, Place)> = Vec::new();
        for start in starts {
            let Step::Run { node, reads, writes } = &self.placement.steps[start] else { continue };
            let result = self.graph.nodes[*node].results.first().copied();
            let ends = |at: &&usize| {
                let Step::Run { node, .. } = &self.placement.steps[**at] else { return false };
                self.graph.nodes[*node].operands().next() == result
            };
            let Some(end) = waits.iter().find(ends) else { continue };
            let held: Vec<&Place> = reads.iter().chain(writes).flatten().collect();
            let arena = |p: &Place| self.placement.buffers[p.buffer].kind == BufferKind::Arena;
            for at in start + 1..*end {
                let Step::Run { writes, .. } = &self.placement.steps[at] else { continue };
                for was in writes.iter().flatten().filter(|p| arena(p)) {
                    for of in held.iter().filter(|p| arena(p) && p.buffer != was.buffer) {
                        let alike = of.layout.sizes == was.layout.sizes;
                        let layout = if alike { of.layout.clone() } else { was.layout.clone() };
                        found.push((at, was.clone(), Place { buffer: of.buffer, layout }));
                    }
                }
            }
        }
        let (at, was, now) = any(self.rng, found)?;
        self.carry(at, &was, &now);
        Some(())
    }
}
