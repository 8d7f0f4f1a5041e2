//! Values of a functional graph as regions of versions of roots.
//!
//! A root is a value that is no part of another one here: an input, or the result of a kernel. A view shows a region of the
//! cells that its operand shows. A scatter makes a new version of the root, in which the cells of one region hold its
//! source. A scatter that puts a version of a region back into the same region makes no version: it shows more of the same
//! one.

use crate::args::symbolic_views;
use crate::chains::detaches;
use crate::functionalize::shared_region::SharedRegion;
use crate::place::view_rule;
use foldhash::fast::FixedState;
use restride_ir::{Arg, Binding, Dim, Expr, Graph, Layout, Movement, Node, Table, TensorType, ValueId, ViewRule};
use restride_tensor::{Overlap, nested, overlap, self_overlaps};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Versions that are looked at for one value before it is taken to be touched by all of them.
const LOOK_BACK: usize = 64;

/// Versions that are looked at for the scatters of a graph, for each of its nodes.
const EFFORT: usize = 64;

/// One version of a root.
pub(super) struct RootVersion {
    /// The write that made it; `None` for a root's first.
    pub write: Option<ScatterWrite>,
    root: usize,
    depth: usize,
    /// A value that shows all of the root.
    whole: Option<ValueId>,
}

/// The write that made a version.
pub(super) struct ScatterWrite {
    /// The previous version.
    pub parent: usize,
    /// The cells that changed.
    pub region: SharedRegion,
    /// The elements of the region.
    pub src: ValueId,
    /// Regions that are known to contain `region`.
    inside: Vec<SharedRegion>,
    /// Regions that show the version and not only the part that was written, each inside the next.
    pub raised: Vec<Raised>,
}

/// A region that shows a version because a scatter put a part of it back, or because it is seen through a view.
pub(super) struct Raised {
    /// The value that showed the region before the write.
    pub base: ValueId,
    /// The region.
    pub cells: SharedRegion,
}

/// The region and version that a value shows.
#[derive(Clone)]
pub(super) struct ShownRegion {
    /// Which version.
    pub version: usize,
    /// Where its elements are in the root.
    pub cells: SharedRegion,
    /// Whether no two elements are known to be in one cell.
    single: bool,
    /// Whether gradients do not go to the root: a file says that of a value by its own operator.
    detached: bool,
}

/// The versions of all roots of a graph.
pub(super) struct Versions<'a> {
    graph: &'a Graph,
    pub list: Vec<RootVersion>,
    shown: Table<ValueId, Option<ShownRegion>>,
    /// Values that equal others: results of scatters that change nothing, and views of exactly an earlier value.
    same: Table<ValueId, Option<ValueId>>,
    /// The first value that shows a region of a version.
    first: HashMap<(usize, SharedRegion), ValueId, FixedState>,
    /// Results of view rules with symbolic sizes in the program's own expressions: `s - Max(0, Min(s, 1))` as `s - 1`.
    spelled: HashMap<Layout<Expr>, Layout<Expr>>,
    witness: &'a Binding,
    effort: usize,
}

impl<'a> Versions<'a> {
    /// Looks at all nodes of a graph; at the values of symbols in `witness` its types are compared.
    // Keys are compared and hashed by their types, which stay.
    #[allow(clippy::mutable_key_type)]
    pub fn of(graph: &'a Graph, witness: &'a Binding) -> Self {
        let effort = graph.order.len().saturating_mul(EFFORT);
        let count = graph.values.len();
        let (shown, same) = (Table::with_capacity(count), Table::with_capacity(count));
        let first = HashMap::with_capacity_and_hasher(count, FixedState::default());
        let spelled = HashMap::new();
        let mut all = Versions { graph, list: Vec::new(), shown, same, first, spelled, witness, effort };
        graph.inputs.iter().for_each(|v| all.root(*v));
        for (_, node) in graph.ordered() {
            if all.scatter(node).or_else(|| all.view(node)).is_none() {
                node.results.iter().for_each(|r| all.root(*r));
            }
        }
        all
    }

    /// The region that a tensor shows.
    pub fn shown(&self, v: ValueId) -> Option<&ShownRegion> {
        self.shown[v].as_ref()
    }

    /// The earlier value that a value is.
    pub fn same(&self, v: ValueId) -> Option<ValueId> {
        self.same[v]
    }

    /// The source of the last write that may have touched the region, if it wrote exactly the region.
    pub fn source(&self, shown: &ShownRegion) -> Option<ValueId> {
        let mut version = shown.version;
        for _ in 0..LOOK_BACK {
            let write = self.list[version].write.as_ref()?;
            if write.region.same_cells(&shown.cells) {
                return Some(write.src);
            }
            if !write.region.disjoint(&shown.cells) {
                return None;
            }
            version = write.parent;
        }
        None
    }

    fn root(&mut self, v: ValueId) {
        let Some(ty) = self.graph.values[v].ty.tensor() else { return };
        let layout = if single(&ty.layout) { ty.layout.clone() } else { Layout::contiguous(&ty.layout.sizes) };
        let version = self.list.len();
        self.list.push(RootVersion { write: None, root: version, depth: 0, whole: Some(v) });
        let cells = SharedRegion::from(TensorType::new(ty.dtype, layout));
        self.shown.set(v, Some(ShownRegion { version, cells, single: true, detached: false }));
        self.unite(v);
    }

    /// Notes the region of a value; the value equals an earlier one of its type that shows the same.
    fn unite(&mut self, v: ValueId) {
        let Some(shown) = self.shown[v].as_ref().filter(|s| !s.detached) else { return };
        match self.first.entry((shown.version, shown.cells.clone())) {
            Entry::Vacant(free) => {
                free.insert(v);
            }
            Entry::Occupied(first) if self.graph.values[*first.get()].ty == self.graph.values[v].ty => {
                self.same.set(v, Some(*first.get()));
            }
            Entry::Occupied(_) => {}
        }
    }

    /// The result of a rule on the region that the operand `base` shows.
    fn seen(&self, node: &Node, rule: &ViewRule, base: ValueId) -> Option<(ShownRegion, Vec<TensorType>)> {
        let shown = self.shown(base)?.clone();
        let declared = self.graph.tensor(base);
        // The operator reads strides, which must be the declared ones.
        if node.op.def().strided && shown.cells.layout != declared.layout {
            return None;
        }
        let ty = |v: ValueId| match v == base {
            true => Some(TensorType::clone(&shown.cells)),
            false => self.graph.values[v].ty.tensor().cloned(),
        };
        let mut views = symbolic_views(*rule, &node.args, ty)?;
        for w in views.iter_mut() {
            if w.dtype != shown.cells.dtype {
                return None;
            }
            if let Some(spelled) = self.spelled.get(&w.layout) {
                w.layout = spelled.clone();
            }
        }
        Some((shown, views))
    }

    /// A region with symbolic sizes in the program's own expressions, where the program has them for a value with the
    /// declared layout.
    fn spell(&mut self, base: (ValueId, &ShownRegion), result: ValueId, found: &mut Layout<Expr>) {
        if found.known().is_some() || base.1.cells.layout != self.graph.tensor(base.0).layout {
            return;
        }
        let Some(said) = self.graph.values[result].ty.tensor() else { return };
        let at = |l: &Layout<Expr>| l.map(|e| e.substitute(self.witness)).known();
        if said.layout != *found && at(found).is_some_and(|l| at(&said.layout) == Some(l)) {
            self.spelled.insert(found.clone(), said.layout.clone());
            *found = said.layout.clone();
        }
    }

    /// The part of its operand's region that a view shows; `None` if the node is no view.
    fn view(&mut self, node: &Node) -> Option<()> {
        let (rule, position, _) = view_rule(node)?;
        let Some(Arg::Value(base)) = node.args.get(position) else { return None };
        let (shown, views) = self.seen(node, &rule, *base)?;
        if views.len() != node.results.len() {
            return None;
        }
        for (&r, mut view) in node.results.iter().zip(views) {
            self.spell((*base, &shown), r, &mut view.layout);
            let single = self.single_part(&shown, &view.layout, node.op.def().strided);
            let detached = shown.detached || detaches(node);
            self.shown.set(r, Some(ShownRegion { version: shown.version, cells: view.into(), single, detached }));
            self.sees_whole(r);
            self.unite(r);
        }
        Some(())
    }

    /// Whether a part of a region has no two elements in one cell. With symbolic sizes: it has as many elements as the
    /// whole, or each of its dimensions runs along one of the whole, at any step, or along two as a diagonal does.
    fn single_part(&self, of: &ShownRegion, part: &Layout<Expr>, strided: bool) -> bool {
        if single(part) {
            return true;
        }
        let from = &of.cells.layout;
        if !of.single || strided || part.known().is_some() {
            return false;
        }
        let at = |e: &Expr| e.eval(self.witness).ok().map(|n| n.as_i64());
        let fits = |n: &Expr, whole: &Expr| {
            whole.less(n) != Some(true) && at(n).zip(at(whole)).is_some_and(|(n, whole)| n <= whole)
        };
        let mut used = vec![false; from.rank()];
        let mut along = |(n, stride): (&Expr, &Expr)| {
            let ranks = || (0..from.rank()).filter(|d| !used[*d] && fits(n, &from.sizes[*d]));
            let steps = |d: &usize| {
                let step = at(stride).zip(at(&from.strides[*d])).and_then(|(s, own)| s.checked_div(own));
                let Some(step) = step.filter(|s| *s >= 1).map(Expr::Int) else { return false };
                let reach = n.minus(&Expr::Int(1)).times(&step).plus(&Expr::Int(1));
                from.strides[*d].times(&step).equals(stride) == Some(true) && fits(&reach, &from.sizes[*d])
            };
            let one = ranks().find(steps).map(|d| (d, d));
            // A diagonal runs along two.
            let diagonal =
                |(d, e): &(usize, usize)| from.strides[*d].plus(&from.strides[*e]).equals(stride) == Some(true);
            let both = || ranks().flat_map(|d| ranks().filter(move |e| *e > d).map(move |e| (d, e))).find(diagonal);
            let Some((d, e)) = one.or_else(both) else { return false };
            (used[d], used[e]) = (true, true);
            true
        };
        part.numel().equals(&from.numel()) == Some(true)
            || part.sizes.iter().zip(&part.strides).all(|dim| dim.0.is(1) || along(dim))
    }

    /// Notes that a value may show all of its root. Versions that were written in another view of it are raised to that.
    fn sees_whole(&mut self, v: ValueId) {
        let Some(shown) = self.shown[v].clone() else { return };
        if self.list[shown.version].whole.is_some() || !self.is_whole(&shown) {
            return;
        }
        let (mut path, mut at) = (Vec::new(), shown.version);
        let base = loop {
            if let Some(base) = self.list[at].whole {
                break base;
            }
            let Some(effort) = self.effort.checked_sub(1) else { return };
            self.effort = effort;
            path.push(at);
            at = write_of(&self.list, at).parent;
        };
        for x in path {
            self.raise(x, Raised { base, cells: shown.cells.clone() });
        }
        self.list[shown.version].whole = Some(v);
    }

    fn is_whole(&self, shown: &ShownRegion) -> bool {
        let root = self.list[self.list[shown.version].root].whole.and_then(|v| self.shown(v));
        root.is_some_and(|root| root.cells.layout.same_cells(&shown.cells.layout))
    }

    /// Says that a region shows a version; nothing is larger than the whole.
    fn raise(&mut self, version: usize, raised: Raised) {
        let shown = |r: &Raised| ShownRegion { version, cells: r.cells.clone(), single: true, detached: false };
        let write = write_of(&self.list, version);
        if write.raised.last().is_some_and(|last| self.is_whole(&shown(last))) {
            return;
        }
        let write = self.list[version].write.as_mut().expect("what is raised was written");
        write.inside.push(raised.cells.clone());
        write.raised.push(raised);
    }

    /// A scatter makes a version, or shows more of one. `None` if the node is none, or it cannot be said in cells.
    fn scatter(&mut self, node: &Node) -> Option<()> {
        let Some(Movement::Scatter { base, src, region }) = node.op.def().movement else { return None };
        let (Some(Arg::Value(b)), Some(Arg::Value(src)), [r]) =
            (node.args.get(base as usize), node.args.get(src as usize), &node.results[..])
        else {
            return None;
        };
        let (from, to) = (self.graph.values[*src].ty.tensor()?, self.graph.tensor(*b));
        if from.dtype != to.dtype {
            return None;
        }
        let (shown, mut views) = self.seen(node, &region, *b)?;
        let region = SharedRegion::from(views.pop().filter(|_| views.is_empty())?);
        let sizes = region.layout.sizes.iter().zip(&from.layout.sizes);
        let fits = region.rank() == from.rank() && { sizes }.all(|(a, b)| a.equals(b) == Some(true));
        if !fits {
            return None;
        }
        if region.is_empty() {
            // No cell is written.
            self.same.set(*r, Some(*b));
            self.shown.set(*r, Some(shown));
            return Some(());
        }
        if !shown.single || !self.single_region(node, &region) {
            return None;
        }
        let part = self.shown(*src).filter(|s| s.cells.layout.same_cells(&region.layout)).map(|s| s.version);
        let put_back = part.and_then(|part| self.put_back(&shown, *b, part, &region));
        let version = match put_back {
            Some(version) => version,
            None => {
                let inside = vec![shown.cells.clone(), region.clone()];
                self.write(
                    shown.version,
                    ScatterWrite { parent: shown.version, region, src: *src, inside, raised: Vec::new() },
                )
            }
        };
        if version == shown.version {
            self.same.set(*r, Some(*b));
        }
        let shown = ShownRegion { version, ..shown };
        if self.is_whole(&shown) && self.list[version].whole.is_none() {
            self.list[version].whole = Some(*r);
        }
        self.shown.set(*r, Some(shown));
        if self.same[*r].is_none() {
            self.unite(*r);
        }
        Some(())
    }

    /// Whether a scatter's region in a base without two elements in a cell has none either: true unless strides give the
    /// region.
    fn single_region(&self, node: &Node, region: &SharedRegion) -> bool {
        !node.op.def().strided || single(&region.layout)
    }

    fn write(&mut self, parent: usize, write: ScatterWrite) -> usize {
        let (root, depth) = (self.list[parent].root, self.list[parent].depth + 1);
        self.list.push(RootVersion { write: Some(write), root, depth, whole: None });
        self.list.len() - 1
    }

    /// The version that is `whole` with the region as it is in the version `part`, where only the region differs.
    fn put_back(&mut self, whole: &ShownRegion, base: ValueId, part: usize, region: &SharedRegion) -> Option<usize> {
        let (to_part, to_whole) = self.paths(part, whole.version)?;
        let write = |version: &usize| self.list[*version].write.as_ref().expect("versions on a path were written");
        if !to_part.iter().all(|x| write(x).is_within(region)) {
            return None;
        }
        // Cells that the whole lost in the region since must be written again.
        let restored = |y: &usize| {
            let lost = &write(y).region;
            lost.disjoint(region) || to_part.iter().any(|x| contained(lost, &write(x).region))
        };
        if !to_whole.iter().all(restored) {
            return None;
        }
        let raised = || Raised { base, cells: whole.cells.clone() };
        if to_whole.is_empty() {
            to_part.iter().for_each(|x| self.raise(*x, raised()));
            return Some(part);
        }
        let mut version = whole.version;
        for x in to_part {
            let ScatterWrite { region, src, inside, .. } = write_of(&self.list, x);
            let (region, src) = (region.clone(), *src);
            let inside = inside.iter().chain([&whole.cells]).cloned().collect();
            version =
                self.write(version, ScatterWrite { parent: version, region, src, inside, raised: vec![raised()] });
        }
        Some(version)
    }

    /// The versions from the last that two have in common to each of them, oldest first. `None` if they are of two roots, or
    /// that takes too long.
    fn paths(&mut self, a: usize, b: usize) -> Option<(Vec<usize>, Vec<usize>)> {
        if self.list[a].root != self.list[b].root {
            return None;
        }
        let (mut x, mut y, mut to_a, mut to_b) = (a, b, Vec::new(), Vec::new());
        while x != y {
            self.effort = self.effort.checked_sub(1)?;
            let (of, path) =
                if self.list[x].depth >= self.list[y].depth { (&mut x, &mut to_a) } else { (&mut y, &mut to_b) };
            path.push(*of);
            *of = write_of(&self.list, *of).parent;
        }
        // Every pair of writes on the two may be compared.
        self.effort = self.effort.checked_sub(to_a.len().saturating_mul(to_b.len()))?;
        to_a.reverse();
        to_b.reverse();
        Some((to_a, to_b))
    }
}

fn write_of(list: &[RootVersion], version: usize) -> &ScatterWrite {
    list[version].write.as_ref().expect("a version that is not a root's first was written")
}

impl ScatterWrite {
    fn is_within(&self, region: &SharedRegion) -> bool {
        self.inside.iter().any(|own| same_set(&own.layout, &region.layout)) || contained(&self.region, region)
    }
}

/// Whether two regions are known to be the same cells, in any order: dimensions of one index do not count.
fn same_set(a: &Layout<Expr>, b: &Layout<Expr>) -> bool {
    let dims = |l: &Layout<Expr>| -> Vec<(Expr, Expr)> {
        let all = l.sizes.iter().cloned().zip(l.strides.iter().cloned());
        all.filter(|(n, _)| !n.is(1)).collect()
    };
    let (own, mut other) = (dims(a), dims(b));
    let equal = |a: &Expr, b: &Expr| a.equals(b) == Some(true);
    if own.len() != other.len() || !equal(&a.offset, &b.offset) {
        return false;
    }
    let found = |(n, stride): (Expr, Expr)| {
        let at = other.iter().position(|(m, s)| equal(&n, m) && equal(&stride, s));
        at.map(|at| other.swap_remove(at)).is_some()
    };
    own.into_iter().all(found)
}

/// Whether all cells of a region are known to be cells of another one.
fn contained(a: &SharedRegion, b: &SharedRegion) -> bool {
    if same_set(&a.layout, &b.layout) {
        return true;
    }
    match (a.known(), b.known()) {
        (Some(a), Some(b)) => matches!(overlap(&a.layout, &b.layout), Overlap::Same | Overlap::Inside),
        _ => false,
    }
}

/// Whether no two elements are known to be in one cell.
fn single(layout: &Layout<Expr>) -> bool {
    match layout.known() {
        Some(known) => self_overlaps(&known) == Some(false),
        None => nested(layout) || layout.is_contiguous(),
    }
}
