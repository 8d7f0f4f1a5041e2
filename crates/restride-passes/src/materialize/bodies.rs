//! Bodies of higher-order calls, and the results of the calls.
//!
//! A body is a graph of its own: it must not write its inputs, and its outputs have their declared layouts. So a call whose
//! operands have the layouts that its bodies declare has results of known strides.

use super::{MadeGraph, Materializer, ValueFact};
use crate::declared_strides::DeclaredStrides;
use restride_ir::{
    Arg, CollectTree, GraphId, Hop, HopCall, HopItem, Layout, Node, Op, Result, Type, ValueId, dense_like,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An output of a body that was made.
pub(super) struct BodyResult {
    /// The output is sure to have the layout that the functional graph declares.
    sure: bool,
    /// Storages that the output may be on, as the body numbers them.
    roots: BTreeSet<usize>,
    /// Inputs whose memory the output may share.
    inputs: BTreeSet<usize>,
}

impl Materializer<'_> {
    /// Inputs of a body: each may be in the caller's memory, and none may be written.
    pub(super) fn parameters(&mut self) {
        for (i, &old) in self.old.inputs.iter().enumerate() {
            let value = &self.old.values[old];
            let name = self.names.fresh(&value.name);
            let v = self.new.add_input(name, value.ty.clone());
            if matches!(value.ty, Type::Tensor(_)) {
                let root = self.fresh();
                self.input_roots.insert(root);
                if self.written.values().any(|w| *w == i) {
                    self.writable.insert(root);
                }
                self.facts.set(v, ValueFact { roots: [root].into(), identity: Some(root), sure: true });
            }
            self.bind(old, v);
        }
    }

    /// Outputs of a body, laid out as they are declared.
    pub(super) fn results(&mut self) -> Result<Vec<BodyResult>> {
        let mut results = Vec::with_capacity(self.old.outputs.len());
        for (at, arg) in self.old.outputs.iter().enumerate() {
            if let Some(&input) = self.written.get(&at) {
                let input = self.value(self.old.inputs[input])?;
                let there = match arg {
                    Arg::Value(v) => self.facts[self.value(*v)?].identity == self.facts[input].identity,
                    _ => false,
                };
                *(if there { &mut self.counts.written_back } else { &mut self.counts.copied_back }) += 1;
                continue;
            }
            let mut new = arg.try_map(|v| self.value(*v), |e| Ok::<_, restride_ir::Error>(e.clone()))?;
            let mut as_declared = true;
            if let (Arg::Value(old), Arg::Value(v)) = (arg, &mut new)
                && let Some(want) = self.old.values[*old].ty.tensor().cloned()
            {
                as_declared = self.has_strides_of(*v, &want);
                if !as_declared && self.facts[*v].sure {
                    self.showing.push(*old);
                    if let Some(copy) = self.copy_of(*v, &want, &Arc::default())? {
                        (*v, as_declared) = (copy, true);
                    }
                }
            }
            let roots = match &new {
                Arg::Value(v) => self.facts[*v].roots.clone(),
                _ => BTreeSet::new(),
            };
            let meets = |v: &ValueId| !self.facts[*v].roots.is_disjoint(&roots);
            let inputs = self.new.inputs.iter().enumerate().filter(|(_, v)| meets(v)).map(|(i, _)| i).collect_set();
            self.new.outputs.push(new);
            results.push(BodyResult { sure: as_declared, roots, inputs });
        }
        Ok(results)
    }

    /// A body as it is called now.
    fn body(&self, id: &GraphId) -> Option<&MadeGraph> {
        self.writing.get(id).or_else(|| self.ctx.bodies.get(id))
    }

    /// Lets the branches of a `cond` write operands that no later node reads: the last operands, whose new contents are the
    /// last results, as functionalization leaves them. Each branch must compute them in place.
    pub(super) fn branches(&mut self, at: usize, node: &Node) -> Result<bool> {
        let Some(call) = HopCall::of(self.old, node)?.filter(|c| c.hop == Hop::Cond) else { return Ok(false) };
        let alone = |b: &GraphId| self.ctx.calls.get(b) == Some(&1) && self.ctx.bodies.contains_key(b);
        if !call.bodies.iter().all(alone) {
            return Ok(false);
        }
        let operands: Vec<ValueId> = node.operands().collect();
        let (mut count, mut memory) = (0, Vec::new());
        // PyTorch reads no `cond` without a result.
        while count + 1 < node.results.len()
            && let Some(v) = self.overwritten_operand(at, node, &call, &operands, count)?
        {
            memory.push(v);
            count += 1;
        }
        for count in (1..=count).rev() {
            let Some(made) = self.writing_branches(&call, node.results.len(), count)? else { continue };
            self.writing.extend(made);
            let (results, contents) = node.results.split_at(node.results.len() - count);
            let reduced = Node { results: results.iter().copied().collect(), ..node.clone() };
            let mut args = self.mapped(node)?;
            self.settle_parameters(node, &mut args)?;
            self.call(&reduced, node.op, args)?;
            for (k, &content) in contents.iter().rev().enumerate() {
                self.bind(content, memory[k]);
            }
            self.counts.in_place += count;
            return Ok(true);
        }
        Ok(false)
    }

    /// The memory of the `k`-th operand from the end, if the `k`-th result from the end may become its content.
    fn overwritten_operand(
        &self,
        at: usize,
        node: &Node,
        call: &HopCall,
        operands: &[ValueId],
        k: usize,
    ) -> Result<Option<ValueId>> {
        let last = |n: usize| n.checked_sub(k + 1);
        let (Some(result), Some(input)) = (last(node.results.len()), last(call.rest.len())) else { return Ok(None) };
        let HopItem::Tensor { operand, value } = call.rest[input] else { return Ok(None) };
        let target = self.value(value)?;
        let result = node.results[result];
        let roots = &self.facts[target].roots;
        for (i, other) in operands.iter().enumerate() {
            if i != operand && !self.facts[self.value(*other)?].roots.is_disjoint(roots) {
                return Ok(None);
            }
        }
        let same = |a: ValueId, b: &restride_ir::TensorType| {
            self.old.values[a].ty.tensor().is_some_and(|a| a.dtype == b.dtype && self.has_strides_of(target, a))
        };
        let declared = call.bodies.iter().all(|b| {
            let body = &self.program.graphs[*b];
            body.values[body.inputs[input]].ty.tensor().is_some_and(|ty| self.has_strides_of(target, ty))
        });
        let fits = declared && self.old.values[value].ty.tensor().is_some_and(|ty| same(result, ty));
        let may = fits && self.may_overwrite(at, target, None) && !self.misplaced(result, target);
        Ok(may.then_some(target))
    }

    /// The branches of a `cond` that compute their last outputs in their last inputs; `None` if one of them would copy.
    fn writing_branches(
        &self,
        call: &HopCall,
        results: usize,
        count: usize,
    ) -> Result<Option<Vec<(GraphId, MadeGraph)>>> {
        let kept = BTreeSet::new();
        let mut out = Vec::with_capacity(2);
        for &id in &call.bodies {
            let mut body = Materializer::new(self.ctx, id, self.form, &kept);
            let inputs = self.program.graphs[id].inputs.len();
            body.written = (1..=count).map(|k| (results - k, inputs - k)).collect_map();
            let made = body.made()?;
            if made.counts.copied_back > 0 {
                return Ok(None);
            }
            out.push((id, made));
        }
        Ok(Some(out))
    }

    /// Gives the bodies of a higher-order call operands with the layouts that the bodies declare.
    pub(super) fn settle_parameters(&mut self, node: &Node, args: &mut [Arg]) -> Result<()> {
        let Some(call) = HopCall::of(self.old, node)? else { return Ok(()) };
        let mut instead: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for (old, want) in self.handed_over(&call) {
            let new = self.value(old)?;
            if !self.facts[new].sure || instead.contains_key(&new) || self.has_strides_of(new, &want) {
                continue;
            }
            self.showing.push(old);
            if let Some(copy) = self.copy_of(new, &want, &node.origin)? {
                instead.insert(new, copy);
            }
        }
        if !instead.is_empty() {
            for arg in args {
                *arg = arg.map_values(|v| instead.get(v).copied().unwrap_or(*v));
            }
        }
        Ok(())
    }

    /// Tensors that a call hands over as they are, with the types that its bodies declare for them.
    fn handed_over(&self, call: &HopCall) -> Vec<(ValueId, restride_ir::TensorType)> {
        let Some(body) = call.bodies.last().map(|b| &self.program.graphs[*b]) else { return Vec::new() };
        let tensor = |(i, item): (usize, &HopItem)| match item {
            HopItem::Tensor { value, .. } if !call.is_slice(i) => {
                Some((*value, body.values[*body.inputs.get(i)?].ty.tensor()?.clone()))
            }
            _ => None,
        };
        call.inputs().enumerate().filter_map(tensor).collect()
    }

    /// The results with declared layouts, for calls without a shape rule: results of a higher-order call whose bodies
    /// ensure it, and results of a user's operator, or of one whose sizes are data, that is called as the exporter called
    /// it.
    pub(super) fn given(&self, node: &Node, op: Op) -> Result<Vec<bool>> {
        let count = node.results.len();
        let Some(call) = HopCall::of(self.old, node)? else {
            let as_recorded = |v: ValueId| match (self.old.values[v].ty.tensor(), self.map[v]) {
                (Some(want), Some(new)) => self.has_strides_of(new, want),
                _ => true,
            };
            let recorded = !op.may_pass_through() && !op.is_view() && node.operands().all(as_recorded);
            return Ok(vec![recorded; count]);
        };
        for (old, want) in self.handed_over(&call) {
            // Operands with other known layouts were copied.
            if !self.facts[self.value(old)?].sure || self.known(&want).is_none() {
                return Ok(vec![false; count]);
            }
        }
        (0..count).map(|i| self.keeps_strides_of_bodies(&call, node.results[i], i)).collect()
    }

    fn keeps_strides_of_bodies(&self, call: &HopCall, result: ValueId, i: usize) -> Result<bool> {
        let Some(want) = self.old.values[result].ty.tensor() else { return Ok(true) };
        let Some(declared) = self.known(want) else { return Ok(false) };
        // Stacked results are row-major.
        if matches!(call.hop, Hop::Scan | Hop::Map) && i >= call.carried.len() {
            return Ok(declared.layout.is_contiguous());
        }
        let as_declared = |body: &restride_ir::GraphId| {
            let made = self.body(body);
            // A program that stays functional keeps its bodies.
            let graph = made.map_or(&self.program.graphs[*body], |m| &m.graph);
            let Some(Arg::Value(v)) = graph.outputs.get(i) else { return None };
            let sure = match made {
                Some(made) => made.results.get(i).is_some_and(|r| r.sure),
                None => DeclaredStrides::default().of(graph, &self.ctx.witness, *v),
            };
            let made = self.known(graph.values[*v].ty.tensor()?)?;
            Some(sure && made.same_strides(&declared))
        };
        let bodies = if call.hop == Hop::Cond { &call.bodies[..] } else { &call.bodies[call.bodies.len() - 1..] };
        if bodies.iter().any(|b| as_declared(b) != Some(true)) {
            return Ok(false);
        }
        // A loop that does not run returns clones of its carried operands.
        match call.carried.get(i) {
            Some(HopItem::Tensor { value, .. }) if call.hop == Hop::WhileLoop => {
                let started = self.value(*value)?;
                Ok(self.has_strides_of(started, want)
                    && dense_like(&declared.layout).same_cells(&Layout { offset: 0, ..declared.layout.clone() }))
            }
            _ => Ok(true),
        }
    }

    /// Pairs of a result and an operand, by their positions, that may share memory when PyTorch runs the node.
    pub(super) fn aliases(&self, node: &Node) -> Result<Vec<(usize, usize)>> {
        let Some(call) = HopCall::of(self.old, node)? else {
            return Ok(self.ctx.effects.node(self.old, node)?.aliases.to_vec());
        };
        let Some(bodies) = call.bodies.iter().map(|b| self.body(b)).collect::<Option<Vec<_>>>() else {
            return Ok(self.ctx.effects.node(self.old, node)?.aliases.to_vec());
        };
        let operand: Vec<Option<usize>> = call
            .inputs()
            .map(|item| if let HopItem::Tensor { operand, .. } = item { Some(*operand) } else { None })
            .collect();
        let given = |inputs: &BTreeSet<usize>| -> BTreeSet<usize> {
            inputs.iter().filter_map(|j| *operand.get(*j)?).collect_set()
        };
        let mut on: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); node.results.len()];
        if call.hop == Hop::Cond {
            for body in bodies {
                on.iter_mut().zip(&body.results).for_each(|(on, r)| on.extend(given(&r.inputs)));
            }
        } else if let Some(step) = bodies.last() {
            // An iteration may return its own input, from the call or from the iteration before. PyTorch clones carried
            // values if the loop does not run, and stacks the others.
            let carried = call.carried.len().min(step.results.len()).min(on.len());
            let mut grown = true;
            while std::mem::take(&mut grown) {
                for k in 0..carried {
                    let inputs = &step.results[k].inputs;
                    let mut more = given(inputs);
                    more.extend(inputs.iter().filter(|j| **j < carried).flat_map(|j| on[*j].clone()));
                    grown |= more.iter().any(|o| !on[k].contains(o));
                    on[k].extend(more);
                }
            }
        }
        Ok(on.into_iter().enumerate().flat_map(|(k, on)| on.into_iter().map(move |o| (k, o))).collect())
    }

    /// For each result of a higher-order call, its own storage: one for results that a body may return in the same memory.
    /// Empty for other calls.
    pub(super) fn together(&mut self, node: &Node) -> Result<Vec<usize>> {
        let Some(call) = HopCall::of(self.old, node)? else { return Ok(Vec::new()) };
        let count = node.results.len();
        let mut group: Vec<usize> = (0..count).collect();
        for body in call.bodies.iter().filter_map(|b| self.body(b)) {
            // By storage, the first result that may be on it.
            let mut first: BTreeMap<usize, usize> = BTreeMap::new();
            for (k, result) in body.results.iter().enumerate().take(count) {
                for root in &result.roots {
                    let (to, from) = (group[*first.entry(*root).or_insert(k)], group[k]);
                    group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
                }
            }
        }
        let mut roots: BTreeMap<usize, usize> = BTreeMap::new();
        Ok(group
            .iter()
            .map(|g| {
                *roots.entry(*g).or_insert_with(|| {
                    self.next += 1;
                    self.next - 1
                })
            })
            .collect())
    }
}
