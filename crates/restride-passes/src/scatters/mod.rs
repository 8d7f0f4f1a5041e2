//! Nested scatters as one write.
//!
//! Programs functionalized elsewhere (`run_decompositions`, an exporter without views) write a part of a part by a scatter
//! into each of them, from the innermost out:
//!
//! ```text
//! %s = select(%y, 0, 1); %v = select(%s, 0, 2)
//! %t = select_scatter(%s, f(%v), 0, 2)
//! %z = select_scatter(%y, %t, 0, 1)
//! ```
//!
//! Here this becomes one write of the composed region, as `functionalize` makes it of a write through a view of a view, and
//! later reads of that region read the source. `versions.rs` finds the versions by view rules and declared regions alone. A
//! scatter whose part is read before the whole exists stays, and the whole is written beside it.

mod versions;

use crate::args::symbolic_views;
use crate::build::Rebuilt;
use crate::dce;
use crate::functionalize::region_ops::{read, write};
use crate::functionalize::shared_region::SharedRegion;
use restride_ir::{Arg, Binding, Error, Graph, Movement, Node, NodeId, Program, Result, Table, TensorType, ValueId};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use versions::{Raised, ScatterWrite, ShownRegion, Versions};

/// The program with nested scatters as one write each, and with sources in place of reads of them.
///
/// # Errors
/// A valid functional program gives none.
pub fn merge(program: &Program) -> Result<Cow<'_, Program>> {
    let scatters = |g: &Graph| g.ordered().any(|(_, n)| matches!(n.op.def().movement, Some(Movement::Scatter { .. })));
    if !program.graphs.iter().any(|(_, g)| scatters(g)) {
        return Ok(Cow::Borrowed(program));
    }
    let mut out = program.copy_without(|id| scatters(&program.graphs[id]));
    let witness = crate::symbols::witness(program);
    for (id, old) in program.graphs.iter().filter(|(_, g)| scatters(g)) {
        let mut merger = Merger::new(Rebuilt::new(id, old), &witness);
        for (n, node) in old.ordered() {
            merger.node(n, node).map_err(|e| e.at(old, n))?;
        }
        merger.outputs()?;
        merger.new.finish(&mut out);
    }
    dce(&mut out);
    Ok(Cow::Owned(out))
}

/// A graph that is written anew.
struct Merger<'a> {
    new: Rebuilt<'a>,
    versions: Versions<'a>,
    /// Values that are made when they are asked for.
    waiting: Table<ValueId, Option<WaitingValue>>,
    outputs: BTreeSet<ValueId>,
    /// Values of versions in a region: version, position in its `raised`.
    made: BTreeMap<(usize, usize), ValueId>,
}

/// A value that is made when it is asked for.
#[derive(Clone, Copy)]
struct WaitingValue {
    node: NodeId,
    /// The source of a write that it shows whole.
    source: Option<ValueId>,
}

/// The outcome of making a value.
enum MergedScatters {
    /// The value exists.
    Value(ValueId),
    /// These values must be made first.
    Needs(Vec<ValueId>),
    /// It cannot be made so.
    No,
}

impl<'a> Merger<'a> {
    fn new(new: Rebuilt<'a>, witness: &'a Binding) -> Self {
        let versions = Versions::of(new.old, witness);
        let outputs = new.old.output_values().collect();
        let waiting = Table::with_capacity(new.old.values.len());
        Merger { new, versions, waiting, outputs, made: BTreeMap::new() }
    }

    fn node(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let waiting: SmallVec<[(ValueId, WaitingValue); 1]> =
            node.results.iter().filter_map(|&r| Some((r, self.waits(id, node, r)?))).collect();
        if waiting.is_empty() || waiting.len() < node.results.len() {
            for v in node.operands() {
                self.value(v)?;
            }
            self.keep(node)?;
        }
        for &(r, how) in &waiting {
            self.new.map.set(r, None);
            self.waiting.set(r, Some(how));
        }
        match waiting[..] {
            [(r, _)] if self.is_outermost(r) => self.value(r).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// A result that is made when it is asked for, and not where its node is.
    fn waits(&self, id: NodeId, node: &Node, r: ValueId) -> Option<WaitingValue> {
        if self.versions.same(r).is_some() {
            return Some(WaitingValue { node: id, source: None });
        }
        let (shown, write) = self.written(r)?;
        let source = self.source(r, shown);
        let waits = match node.op.def().movement {
            _ if source.is_some() => true,
            Some(Movement::Scatter { .. }) => !write.raised.is_empty(),
            _ => node.op.def().view.is_some() && node.operands().any(|v| self.new.map[v].is_none()),
        };
        waits.then_some(WaitingValue { node: id, source })
    }

    /// The source of a write that a value shows whole; an output keeps its strides, which would take a copy of the source.
    fn source(&self, v: ValueId, shown: &ShownRegion) -> Option<ValueId> {
        let (old, src) = (self.new.old, self.versions.source(shown)?);
        (old.values[v].ty == old.values[src].ty || !self.outputs.contains(&v)).then_some(src)
    }

    /// Whether a value is the outermost region that a version is put back in.
    fn is_outermost(&self, r: ValueId) -> bool {
        self.written(r).is_some_and(|(shown, write)| {
            write.raised.last().is_some_and(|last| last.cells.layout.same_cells(&shown.cells.layout))
        })
    }

    /// The region that a value shows, with the write that made it, if one did.
    fn written(&self, v: ValueId) -> Option<(&ShownRegion, &ScatterWrite)> {
        let shown = self.versions.shown(v)?;
        Some((shown, self.versions.list[shown.version].write.as_ref()?))
    }

    /// The new value of an old one, made now if it waits.
    fn value(&mut self, v: ValueId) -> Result<ValueId> {
        let mut stack = vec![v];
        while let Some(&top) = stack.last() {
            if self.new.map[top].is_some() {
                stack.pop();
                continue;
            }
            match self.make(top)? {
                MergedScatters::Value(made) => self.new.map.set(top, Some(made)),
                MergedScatters::Needs(more) if stack.len() <= self.new.old.values.len() => stack.extend(more),
                MergedScatters::Needs(_) | MergedScatters::No => {
                    return Err(Error::invalid(format!("%{} is made of itself", self.new.old.values[top].name)));
                }
            }
        }
        Ok(self.new.map[v].expect("it was just made"))
    }

    /// Makes a waiting value: as the source of a write, as a part of a value that exists anyway, or by its node.
    fn make(&mut self, v: ValueId) -> Result<MergedScatters> {
        let old = self.new.old;
        let WaitingValue { node, source } = self.waiting[v]
            .ok_or_else(|| Error::invalid(format!("%{} is used before it is made", old.values[v].name)))?;
        let node = &old.nodes[node];
        if let Some(base) = self.versions.same(v) {
            return Ok(self.new.map[base].map_or_else(|| MergedScatters::Needs(vec![base]), MergedScatters::Value));
        }
        let shown = self.versions.shown(v).expect("what waits shows a version").clone();
        if let Some(src) = source {
            return Ok(self.new.map[src].map_or_else(|| MergedScatters::Needs(vec![src]), MergedScatters::Value));
        }
        let raised = self.versions.list[shown.version].write.as_ref().map_or(0, |w| w.raised.len());
        for k in (0..raised).rev() {
            match self.content(node, v, shown.version, k)? {
                MergedScatters::Value(content) => {
                    let ty = SharedRegion::from(self.new.graph.tensor(content).clone());
                    let mut b = self.new.builder(node, v);
                    return Ok(MergedScatters::Value(read(&mut b, content, &ty, &shown.cells.layout)?));
                }
                MergedScatters::No => {}
                needs => return Ok(needs),
            }
        }
        let missing: Vec<ValueId> = node.operands().filter(|v| self.new.map[*v].is_none()).collect();
        if !missing.is_empty() {
            return Ok(MergedScatters::Needs(missing));
        }
        self.keep(node)?;
        Ok(self.new.map[v].map_or(MergedScatters::No, MergedScatters::Value))
    }

    /// A version in the region that it was put back in by its scatter number `k`.
    fn content(&mut self, node: &Node, named: ValueId, version: usize, k: usize) -> Result<MergedScatters> {
        let level = self.raised(version, k).cells.clone();
        // From the version back to one that exists in this region.
        let (mut chain, mut missing) = (vec![(version, k)], Vec::new());
        let mut value = loop {
            let (x, k) = chain[chain.len() - 1];
            if let Some(&made) = self.made.get(&(x, k)) {
                chain.pop();
                break made;
            }
            let write = self.versions.list[x].write.as_ref().expect("what is raised was written");
            let base = write.raised[k].base;
            if self.new.map[write.src].is_none() {
                missing.push(write.src);
            }
            let at = write.parent;
            let before = self.versions.list[at].write.as_ref();
            let same = |r: &Raised| r.cells.layout.same_cells(&level.layout);
            if let Some(k) = before.and_then(|w| w.raised.iter().position(same)) {
                chain.push((at, k));
                continue;
            }
            if self.versions.shown(base).is_none_or(|s| s.version != at) {
                return Ok(MergedScatters::No);
            }
            match self.new.map[base] {
                Some(value) if self.new.graph.tensor(value).layout.same_cells(&level.layout) => break value,
                None if self.waiting[base].is_some() => {
                    missing.push(base);
                    return Ok(MergedScatters::Needs(missing));
                }
                // The value is made later, or has another layout.
                _ => return Ok(MergedScatters::No),
            }
        };
        if !missing.is_empty() {
            return Ok(MergedScatters::Needs(missing));
        }
        for (x, k) in chain.into_iter().rev() {
            let ScatterWrite { region, src, .. } =
                self.versions.list[x].write.as_ref().expect("what is raised was written");
            let src = self.new.map[*src].expect("sources are there");
            let ty = self.new.graph.tensor(value).clone();
            value = write(&mut self.new.builder(node, named), value, &ty, &region.layout, src)?;
            self.made.insert((x, k), value);
        }
        Ok(MergedScatters::Value(value))
    }

    fn raised(&self, version: usize, k: usize) -> &Raised {
        &self.versions.list[version].write.as_ref().expect("what is raised was written").raised[k]
    }

    /// A node as it is, over new values, which all exist.
    fn keep(&mut self, node: &Node) -> Result<()> {
        let def = node.op.def();
        let mut args = self.new.args(node);
        let moved = |new: &Rebuilt<'_>, v: ValueId| {
            let now = new.map[v].expect("operands come first");
            new.old.values[v].ty != new.graph.values[now].ty
        };
        if node.operands().any(|v| moved(&self.new, v)) {
            if let Some(types) = self.view_types(node, &args) {
                let names: Vec<_> = node.results.iter().map(|r| self.new.old.values[*r].name.clone()).collect();
                let mut b = self.new.builder(node, node.results[0]);
                let made = b.node(node.op, args, names.into_iter().zip(types), &node.origin);
                node.results.iter().zip(made).for_each(|(r, v)| self.new.map.set(*r, Some(v)));
                return Ok(());
            }
            // The operator reads strides: its operands are declared to have the old ones.
            if def.strided || def.view.is_some() || def.hop.is_some() {
                args = node.args.iter().map(|a| a.map_values(|v| self.declared(node, *v))).collect();
            }
        }
        self.new.keep(node, args);
        Ok(())
    }

    /// A value that exists, with its old type.
    fn declared(&mut self, node: &Node, v: ValueId) -> ValueId {
        let now = self.new.map[v].expect("operands come first");
        match self.new.old.values[v].ty.tensor().cloned() {
            Some(ty) => self.new.builder(node, v).declare(now, &ty),
            None => now,
        }
    }

    /// Types of a view's results on operands with another layout; `None` if it is no view of them.
    fn view_types(&self, node: &Node, args: &[Arg]) -> Option<Vec<TensorType>> {
        let def = node.op.def();
        let rule = def.view.filter(|_| def.math.is_none() && !def.strided && !def.metadata)?;
        let views = symbolic_views(rule, args, |v| self.new.graph.values[v].ty.tensor().cloned())?;
        (views.len() == node.results.len()).then_some(views)
    }

    /// Outputs have the types that they had.
    fn outputs(&mut self) -> Result<()> {
        let old = self.new.old;
        for v in old.output_values() {
            let now = self.value(v)?;
            if let Some(ty) = old.values[v].ty.tensor() {
                let hint = old.values[v].name.clone();
                let made = self.new.builder_of(Default::default(), hint).declare(now, ty);
                self.new.map.set(v, Some(made));
            }
        }
        Ok(())
    }
}
