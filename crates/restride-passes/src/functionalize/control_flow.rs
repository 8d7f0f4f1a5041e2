//! Higher-order operators: a storage that a body writes goes in as a whole and comes out as a new version.
//!
//! Operands on storages that no body writes go in as the values that they are. The storages that one writes go in as
//! their bases, and the body sees the operands as regions of them. A loop carries those bases along.

use super::bodies::{BodyOperand, Returned, WrittenBase, storages_of, values_of};
use super::histories::SavedOperand;
use super::rewrite::{Halt, NewValue, Rewrite, Rewriter, op};
use super::storages::{AliasId, StorageId};
use crate::input_effects::{InputStrides, output_roots, placed_inputs, result_roots, written_inputs};
use crate::simplify::meta;
use restride_ir::{Arg, Dim, Error, Graph, GraphId, Hop, HopCall, HopItem, Id, LazyBits, Node, NodeId, Type, ValueId};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Rewriter<'_> {
    /// Rewrites a higher-order call.
    pub fn control(&mut self, node: &Node) -> Rewrite<()> {
        let before = self.new.nodes.len();
        match node.op.def().hop {
            Some(Hop::Cond) => self.cond(node),
            Some(Hop::WhileLoop) => self.while_loop(node),
            Some(Hop::Scan) => self.scan(node),
            Some(Hop::Map) => self.map_impl(node),
            None => Err(Error::invalid("not a higher-order operator").into()),
        }?;
        let added = self.new.order.iter().rev().take_while(|id| id.index() >= before);
        let Some(&id) =
            added.copied().collect::<Vec<_>>().iter().find(|id| self.new.nodes[**id].op.def().hop.is_some())
        else {
            return Ok(());
        };
        self.note_operands(node, id);
        Ok(())
    }

    /// The call keeps the values that calls of its body save: notes operands that are passed by value.
    fn note_operands(&mut self, node: &Node, id: NodeId) {
        if node.origin.no_grad {
            return;
        }
        let given: Vec<ValueId> = self.new.nodes[id].operands().collect();
        for v in node.operands() {
            let Ok(alias) = self.alias(v) else { continue };
            let position = self.storages.shown(alias).and_then(|v| given.iter().position(|g| *g == v));
            if let Some(position) = position {
                self.storages.saved(alias, SavedOperand { node: id, position: position as u32 });
            }
        }
    }

    fn cond(&mut self, node: &Node) -> Rewrite<()> {
        let [_, Arg::Graph(yes), Arg::Graph(no), operands] = &node.args[..] else {
            return Err(Error::invalid("cond takes a predicate, two graphs and operands").into());
        };
        let operands: Vec<ValueId> = operands.values().copied().collect();
        let written: Vec<bool> = written_inputs(self.program, *yes)
            .into_iter()
            .zip(written_inputs(self.program, *no))
            .map(|(a, b)| a || b)
            .collect();
        let bases = self.written_storages(&operands, &written)?;
        let seen = self.operands(node, &operands, 0, &bases)?;
        for branch in [*yes, *no] {
            self.refuse_typed(node, branch, (0, 0), &operands, &storages_of(&bases))?;
        }
        let yes = self.body(*yes, &seen, &operands, &bases, usize::MAX)?;
        let no = self.body(*no, &seen, &operands, &bases, usize::MAX)?;
        let pred = node.args[0].try_map(|v| self.read(node, *v), |e| Ok::<_, Halt>(e.clone()))?;
        let mut args: Vec<Option<ValueId>> = values_of(&seen);
        args.extend(self.base_values(node, &bases));
        let args = vec![pred, Arg::Graph(yes.graph), Arg::Graph(no.graph), Arg::Values(args)];
        let made = self.call_hop(node, node.op, args, &bases, node.results.len());
        let ways = [yes.bits, no.bits];
        let returned: Vec<Option<Returned>> =
            yes.returned.into_iter().zip(no.returned).map(|(a, b)| Returned::of_both(a?, b?)).collect();
        self.bind_results(node, &made, &bases, node.results.len(), &returned)?;
        self.set_result_bits(node, &ways)?;
        // A result that is an operand in one branch alone, or elsewhere in each, may be in the memory of any of them.
        let open: Vec<bool> = (0..node.results.len()).map(|i| returned.get(i).is_none_or(Option::is_none)).collect();
        self.link_returned(node, &operands, &open)
    }

    fn while_loop(&mut self, node: &Node) -> Rewrite<()> {
        let [Arg::Graph(test), Arg::Graph(body), carried, additional] = &node.args[..] else {
            return Err(Error::invalid("while_loop takes two graphs, carried and additional operands").into());
        };
        let carried: Vec<ValueId> = carried.values().copied().collect();
        let additional: Vec<ValueId> = additional.values().copied().collect();
        let operands: Vec<ValueId> = carried.iter().chain(&additional).copied().collect();
        let n = carried.len();
        let written = written_inputs(self.program, *body);
        if written_inputs(self.program, *test).contains(&true) {
            return Err(Error::unsupported("a while_loop whose condition writes its operands").into());
        }
        let mut outer_written = written.clone();
        outer_written[..n].fill(false);
        let bases = self.written_storages(&operands, &outer_written)?;
        for v in &carried {
            if matches!(self.map[*v], Some(NewValue::Object(_)))
                && storages_of(&bases).contains(&self.storages[self.alias(*v)?].storage)
            {
                let name = &self.old.values[*v].name;
                let what = format!("a while_loop that carries %{name} and writes its memory through another operand");
                return Err(Error::unsupported(what).into());
            }
        }
        let seen = self.operands(node, &operands, n, &bases)?;
        self.refuse_placed(node, *body, &carried)?;
        let graphs = [*test, *body];
        for graph in graphs {
            self.refuse_typed(node, graph, (n, 0), &operands, &storages_of(&bases))?;
        }
        let written = self.refuse_shared(node, *body, &operands, (n, n), written)?;
        let outer: Vec<ValueId> = Vec::new();
        let test = self.body(*test, &seen, &outer, &bases, n)?;
        // The condition only gives its verdict: the bases it was given come back unchanged.
        let outputs = &mut self.graphs[test.graph.index() - 1].outputs;
        let verdict = outputs.iter().position(|o| !matches!(o, Arg::Value(v) if test.bases.contains(v))).unwrap_or(0);
        *outputs = vec![outputs.swap_remove(verdict)];
        let body = self.body(*body, &seen, &outer, &bases, n)?;
        let ways = self.refuse_later_bits(node, &graphs, (&seen, &[]), (n, &bases), &body)?;
        let (carried_values, additional_values): (Vec<_>, Vec<_>) = (values_of(&seen[..n]), values_of(&seen[n..]));
        let mut first = carried_values;
        first.extend(self.base_values(node, &bases));
        let args =
            vec![Arg::Graph(test.graph), Arg::Graph(body.graph), Arg::Values(first), Arg::Values(additional_values)];
        let made = self.call_hop(node, node.op, args, &bases, n);
        self.lose_written(&carried, &written[..n], "while_loop")?;
        self.bind_results(node, &made, &bases, n, &[])?;
        self.set_result_bits(node, &ways)?;
        // A value that is carried through may be the operand's memory in the end, or a copy if the loop does not run.
        self.link_returned(node, &operands, &vec![true; n])
    }

    /// Refuses a body that makes views in terms of the storage of operands that are other tensors in each iteration, unless
    /// those begin where their storage does.
    fn refuse_placed(&self, node: &Node, body: GraphId, changing: &[ValueId]) -> Rewrite<()> {
        let graph = &self.program.graphs[body];
        let begins = |i: usize| match graph.outputs.get(i) {
            Some(Arg::Value(v)) => graph.values[*v].ty.tensor().is_some_and(|t| t.layout.offset.is(0)),
            _ => false,
        };
        for (i, (v, placed)) in changing.iter().zip(placed_inputs(self.program, body)).enumerate() {
            if !placed || !matches!(self.map[*v], Some(NewValue::Object(_))) {
                continue;
            }
            let at_start = self.storages[self.alias(*v)?].ty.layout.offset.is(0) && begins(i);
            if node.op.def().hop != Some(Hop::WhileLoop) || !at_start {
                let (name, what) = (&self.old.values[*v].name, node.op.name());
                return Err(Error::unsupported(format!("{what} whose body views %{name} by strides of its storage"))
                    .help("view it by slice and select instead of as_strided")
                    .into());
            }
        }
        Ok(())
    }

    /// Refuses a loop whose body may write an operand that is rebound by each iteration, or memory shared with one, while
    /// it reads the same memory through another operand: each is passed as a value of its own.
    ///
    /// Of `operands`, the first `changing.0` are carried and those up to `changing.1` change. `written` gives the operands
    /// that one body writes; the result, those that the iterations write.
    fn refuse_shared(
        &self,
        node: &Node,
        body: GraphId,
        operands: &[ValueId],
        changing: (usize, usize),
        mut written: Vec<bool>,
    ) -> Rewrite<Vec<bool>> {
        let count = operands.len();
        let roots = output_roots(self.program, body, InputStrides::Any);
        let on: Vec<Option<AliasId>> = operands.iter().map(|v| self.alias(*v).ok()).collect();
        let mut share = vec![vec![false; count]; count];
        for i in 0..count {
            for j in (0..count).filter(|j| *j != i) {
                let (Some(a), Some(b)) = (on[i], on[j]) else { continue };
                let (a, b) = (self.storages[a].storage, self.storages[b].storage);
                share[i][j] = a == b || self.storages.maybe_same(a).iter().any(|m| m.0 == b);
            }
        }
        // The next iteration carries the memory of the body's outputs.
        let mut grown = true;
        while std::mem::take(&mut grown) {
            for i in 0..changing.0.min(roots.len()) {
                for j in (0..count).filter(|j| *j != i) {
                    let own = [j as u32];
                    let others = if j < changing.0.min(roots.len()) { &roots[j][..] } else { &own[..] };
                    let meets = |r: u32, q: u32| {
                        r == q || share.get(r as usize).and_then(|s| s.get(q as usize)).is_some_and(|s| *s)
                    };
                    if !share[i][j] && roots[i].iter().any(|r| others.iter().any(|q| meets(*r, *q))) {
                        (share[i][j], share[j][i], grown) = (true, true, true);
                    }
                }
                for &r in &roots[i] {
                    if written[i] && written.get(r as usize) == Some(&false) {
                        (written[r as usize], grown) = (true, true);
                    }
                }
            }
        }
        for i in 0..changing.1 {
            if let Some(j) = (0..count).find(|&j| j != i && share[i][j] && (written[i] || written[j])) {
                let name = |i: usize| match &*self.old.values[operands[i]].name {
                    "" => format!("operand {i}"),
                    name => format!("%{name}"),
                };
                let what = format!(
                    "{} whose body writes memory that it may see as {} and as {}",
                    node.op.name(),
                    name(i),
                    name(j)
                );
                return Err(Error::unsupported(what).help("clone one of them before the loop or in its body").into());
            }
        }
        Ok(written)
    }

    /// Notes which `open` results of a call may share memory with which operands, and with each other.
    fn link_returned(&mut self, node: &Node, operands: &[ValueId], open: &[bool]) -> Rewrite<()> {
        let Some(call) = HopCall::of(self.old, node)? else { return Ok(()) };
        let declared = call.hop == Hop::Cond && self.has_declared_operands(&call);
        let strides = if declared { InputStrides::Declared } else { InputStrides::Any };
        // By storage of the call, the first result that may be on it.
        let mut first: BTreeMap<u32, StorageId> = BTreeMap::new();
        for (i, roots) in result_roots(self.program, &call, node.results.len(), strides).into_iter().enumerate() {
            let result = node.results[i];
            if open.get(i) != Some(&true) || !matches!(self.map[result], Some(NewValue::Object(_))) {
                continue;
            }
            let made = self.storages[self.alias(result)?].storage;
            for root in roots {
                let other = match operands.get(root as usize) {
                    Some(operand) if matches!(self.map[*operand], Some(NewValue::Object(_))) => {
                        self.storages[self.alias(*operand)?].storage
                    }
                    Some(_) => continue,
                    None => *first.entry(root).or_insert(made),
                };
                if other != made {
                    self.storages.may_share(other, made, node.op);
                }
            }
        }
        Ok(())
    }

    /// Whether the operands of a call have the types that its bodies declare, strides too.
    fn has_declared_operands(&self, call: &HopCall) -> bool {
        let alike = |body: &Graph, i: usize, item: &HopItem| match *item {
            HopItem::Tensor { value, .. } => {
                let (own, given) = (body.inputs.get(i).and_then(|v| meta(body, *v)), meta(self.old, value));
                matches!((own, given), (Some(own), Some(given)) if own.same_strides(&given))
            }
            _ => true,
        };
        let mut bodies = call.bodies.iter().map(|b| &self.program.graphs[*b]);
        bodies.all(|body| call.inputs().enumerate().all(|(i, item)| alike(body, i, item)))
    }

    fn scan(&mut self, node: &Node) -> Rewrite<()> {
        let [Arg::Graph(combine), init, xs, additional] = &node.args[..] else {
            return Err(Error::invalid("scan takes a graph, initial, scanned and additional operands").into());
        };
        let init: Vec<ValueId> = init.values().copied().collect();
        let written = written_inputs(self.program, *combine);
        let carried = (init.len(), xs.values().count());
        let operands: Vec<ValueId> = init.iter().chain(xs.values()).chain(additional.values()).copied().collect();
        self.refuse_typed_results(node, *combine, carried, &operands)?;
        if self.unrolled(node, *combine, init.len(), xs, additional, &written)? {
            return Ok(());
        }
        self.scan_like(node, *combine, &init, xs, additional)
    }

    fn map_impl(&mut self, node: &Node) -> Rewrite<()> {
        let [Arg::Graph(body), xs, additional] = &node.args[..] else {
            return Err(Error::invalid("map takes a graph, mapped and additional operands").into());
        };
        let written = written_inputs(self.program, *body);
        let operands: Vec<ValueId> = xs.values().chain(additional.values()).copied().collect();
        self.refuse_typed_results(node, *body, (0, xs.values().count()), &operands)?;
        if self.unrolled(node, *body, 0, xs, additional, &written)? {
            return Ok(());
        }
        if written.contains(&true) {
            // Storages that a body writes are carried from one iteration to the next: the map becomes a scan.
            return self.scan_like(node, *body, &[], xs, additional);
        }
        let xs: Vec<ValueId> = xs.values().copied().collect();
        self.refuse_placed(node, *body, &xs)?;
        let additional: Vec<ValueId> = additional.values().copied().collect();
        let operands: Vec<ValueId> = xs.iter().chain(&additional).copied().collect();
        self.refuse_typed(node, *body, (0, xs.len()), &operands, &[])?;
        let seen = self.operands(node, &operands, 0, &[])?;
        let body = self.body(*body, &seen, &[], &[], usize::MAX)?;
        let args = vec![
            Arg::Graph(body.graph),
            Arg::Values(values_of(&seen[..xs.len()])),
            Arg::Values(values_of(&seen[xs.len()..])),
        ];
        let made = self.call_hop(node, node.op, args, &[], 0);
        self.bind_results(node, &made, &[], 0, &[])
    }

    fn scan_like(
        &mut self,
        node: &Node,
        combine: GraphId,
        init: &[ValueId],
        xs: &Arg,
        additional: &Arg,
    ) -> Rewrite<()> {
        let xs: Vec<ValueId> = xs.values().copied().collect();
        let additional: Vec<ValueId> = additional.values().copied().collect();
        let operands: Vec<ValueId> = init.iter().chain(&xs).chain(&additional).copied().collect();
        let (n, m) = (init.len(), init.len() + xs.len());
        self.refuse_placed(node, combine, &operands[..m])?;
        let written = written_inputs(self.program, combine);
        let mut outer_written = written.clone();
        outer_written[..m].fill(false);
        let bases = self.written_storages(&operands, &outer_written)?;
        self.refuse_typed(node, combine, (n, xs.len()), &operands, &storages_of(&bases))?;
        let mut seen = self.operands(node, &operands, m, &bases)?;
        // A scan copies the first slices, which applies their lazy bits.
        let mut later = Vec::new();
        for o in &mut seen[n..m] {
            if let BodyOperand::Value(_, bits) = o {
                later.push(*bits);
                *bits = if node.op.def().hop == Some(Hop::Scan) { LazyBits::default() } else { *bits };
            }
        }
        let written = self.refuse_shared(node, combine, &operands, (n, m), written)?;
        let body = self.body(combine, &seen, &[], &bases, n)?;
        let mut ways = vec![body.bits.iter().take(n).copied().collect()];
        if self.trips(&xs)? != Some(1) {
            let later = self.refuse_later_bits(node, &[combine], (&seen, &later), (n, &bases), &body)?;
            ways.extend(later.into_iter().skip(1));
        }
        let mut first = values_of(&seen[..n]);
        first.extend(self.base_values(node, &bases));
        let args = vec![
            Arg::Graph(body.graph),
            Arg::Values(first),
            Arg::Values(values_of(&seen[n..m])),
            Arg::Values(values_of(&seen[m..])),
        ];
        let made = self.call_hop(node, op("higher_order.scan"), args, &bases, n);
        self.lose_written(&operands[..m], &written[..m], node.op.name())?;
        for v in &operands[..m] {
            if matches!(self.map[*v], Some(NewValue::Object(_)))
                && storages_of(&bases).contains(&self.storages[self.alias(*v)?].storage)
            {
                let (what, name) = (node.op.name(), &self.old.values[*v].name);
                let what = format!("{what} over %{name}, whose memory its body writes through another operand");
                return Err(Error::unsupported(what).into());
            }
        }
        self.bind_results(node, &made, &bases, n, &[])?;
        self.set_result_bits(node, &ways)?;
        self.link_returned(node, &operands, &vec![true; n])
    }

    /// A body that writes a carried or scanned operand changes the outer tensor in its first iteration. That change is not
    /// followed, so the tensor must not be read afterwards.
    fn lose_written(&mut self, operands: &[ValueId], written: &[bool], what: &str) -> Rewrite<()> {
        for (v, _) in operands.iter().zip(written).filter(|(_, w)| **w) {
            let storage = self.storages[self.alias(*v)?].storage;
            let name = self.old.values[*v].name.clone();
            let how = if what == "while_loop" { "as a carried value" } else { "in each iteration" };
            self.storages
                .lose(storage, format!("unsupported: the body of `{what}` mutates %{name} and also rebinds it {how}"));
        }
        Ok(())
    }

    /// Adds the new call: results as the old ones', with the bases' new versions put in after `lead` of them.
    fn call_hop(
        &mut self,
        node: &Node,
        op: restride_ir::Op,
        args: Vec<Arg>,
        bases: &[WrittenBase],
        lead: usize,
    ) -> Vec<ValueId> {
        let mut results: Vec<(Arc<str>, Type)> = Vec::new();
        let mut base_results: Vec<(Arc<str>, Type)> = bases
            .iter()
            .map(|b| {
                let state = &self.storages[b.storage];
                (self.names.fresh(&self.new.values[state.base].name), Type::Tensor((*state.ty).clone()))
            })
            .collect();
        for (i, &r) in node.results.iter().enumerate() {
            if i == lead {
                results.append(&mut base_results);
            }
            let v = &self.old.values[r];
            results.push((self.names.fresh(&v.name), v.ty.clone()));
        }
        results.append(&mut base_results);
        let id = self.new.add_node(op, args, results, node.origin.clone());
        self.new.nodes[id].results.to_vec()
    }

    fn bind_results(
        &mut self,
        node: &Node,
        made: &[ValueId],
        bases: &[WrittenBase],
        lead: usize,
        returned: &[Option<Returned>],
    ) -> Rewrite<()> {
        let lead = lead.min(node.results.len());
        for (k, base) in bases.iter().enumerate() {
            let root = (!node.origin.no_grad).then_some(base.root);
            self.storages.replace(base.storage, made[lead + k], root);
        }
        for (i, &old) in node.results.iter().enumerate() {
            let new = made[if i < lead { i } else { i + bases.len() }];
            match returned.get(i).and_then(Option::as_ref) {
                Some(r) => {
                    let alias = self.storages.region(r.storage, r.ty.clone());
                    self.storages.set_history(alias, r.root, r.constant || node.origin.no_grad);
                    let same = |o: &usize| self.storages.equal(self.objects[*o], alias);
                    let bound = match r.object.filter(same) {
                        Some(object) => NewValue::Object(object),
                        None => self.object_of_branches(alias, &r.objects, node.op),
                    };
                    self.bind(old, bound);
                }
                None => self.bind_fresh(old, new),
            }
        }
        Ok(())
    }
}
