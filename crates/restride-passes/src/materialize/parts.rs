//! `cat` and `stack` put together in place.
//!
//! The whole is an `empty` tensor that is there before its parts: a part is computed in its region of it or copied there, and a
//! `cat` of parts that stand side by side in a larger one is a slice of that. A region is only ever given the elements of the
//! one value that belongs there, and nothing else may be written in place in the whole before it is complete. This is
//! decided where sizes are known, and done where it saves memory.

use super::forms::Forms;
use super::{Fact, Materializer, filled};
use restride_ir::{
    Arg, Args, DType, Expr, Graph, Layout, Meta, Movement, Node, Op, Piece, Result, Scalar, TensorType, Type, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

type Pieces = fn(&Args<'_, Meta>, &Layout) -> std::result::Result<Vec<Piece>, restride_ir::OpError>;

/// A step from a region to one inside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    Slice { dim: i64, start: i64, length: i64 },
    Select { dim: i64, index: i64 },
}

impl Cut {
    fn of(self, from: &Layout) -> Option<Layout> {
        match self {
            Cut::Slice { dim, start, length } => from.slice(dim, Some(&start), Some(&(start + length)), &1).ok(),
            Cut::Select { dim, index } => from.select(dim, &index).ok(),
        }
    }

    /// The step that leads to a region.
    fn between(from: &Layout, to: &Layout) -> Option<Vec<Cut>> {
        let distance = to.offset - from.offset;
        let index = |d: usize| {
            let stride = from.strides[d];
            (stride > 0 && distance >= 0 && distance % stride == 0).then(|| distance / stride)
        };
        let cut = if to.rank() == from.rank() {
            let mut differ = (0..to.rank()).filter(|d| to.sizes[*d] != from.sizes[*d]);
            let Some(d) = differ.next() else { return (distance == 0).then(Vec::new) };
            if differ.next().is_some() {
                return None;
            }
            Cut::Slice { dim: d as i64, start: index(d)?, length: to.sizes[d] }
        } else {
            let found = |d: &usize| {
                let cut = index(*d).map(|index| Cut::Select { dim: *d as i64, index });
                cut.and_then(|c| c.of(from)).is_some_and(|l| l == *to)
            };
            let d = (0..from.rank()).find(found)?;
            Cut::Select { dim: d as i64, index: index(d)? }
        };
        cut.of(from).filter(|l| l == to).map(|_| vec![cut])
    }
}

/// Where a value is to lie in a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    /// Result of the outermost `cat`.
    root: ValueId,
    /// The way there from the whole.
    cuts: Vec<Cut>,
    layout: Layout,
}

/// A `cat` or its like.
struct Cat {
    at: usize,
    result: ValueId,
    operands: Vec<ValueId>,
    args: Vec<Arg<Meta, Scalar>>,
    pieces: Pieces,
}

impl Cat {
    fn of(graph: &Graph, at: usize, node: &Node) -> Option<Cat> {
        let (Some(Movement::Assemble(pieces)), [result]) = (node.op.def().movement, &node.results[..]) else {
            return None;
        };
        let known = |v: ValueId| graph.values[v].ty.tensor().and_then(TensorType::known);
        let whole = known(*result)?;
        let operands: Vec<ValueId> = node.operands().collect();
        let alike = operands.iter().all(|v| known(*v).is_some_and(|m| m.dtype == whole.dtype));
        let meta = |a: &Arg| a.try_map(|v| known(*v).ok_or(()), |e| e.constant().ok_or(())).ok();
        let args: Option<Vec<_>> = node.args.iter().map(meta).collect();
        Some(Cat { at, result: *result, operands, args: args?, pieces }).filter(|_| alike)
    }

    /// The region of each operand, in their order, if they cover all of the whole.
    fn regions(&self, whole: &Layout) -> Option<Vec<Layout>> {
        let pieces = (self.pieces)(&Args(&self.args), whole).ok()?;
        let each = pieces.iter().enumerate().all(|(k, p)| p.operand == k) && pieces.len() == self.operands.len();
        let cells: i64 = pieces.iter().map(|p| p.region.numel()).sum();
        (each && cells == whole.numel() && cells > 0).then(|| pieces.into_iter().map(|p| p.region).collect())
    }
}

/// What is put together in place, and where.
#[derive(Default)]
pub(super) struct Parts {
    spots: BTreeMap<ValueId, Spot>,
    cats: BTreeMap<ValueId, Cat>,
    /// The wholes that are there.
    wholes: BTreeMap<ValueId, ValueId>,
    /// Values that only wholes are put together of.
    only_parts: BTreeSet<ValueId>,
    /// Values that lie where they are to.
    lies: BTreeSet<ValueId>,
}

impl Parts {
    /// Values to be computed where they are wanted.
    pub(super) fn straight(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.spots.keys().filter(|v| !self.cats.contains_key(v)).copied()
    }

    pub(super) fn lies(&mut self, v: ValueId) {
        self.lies.insert(v);
    }
}

/// What the choice of parts looks at.
struct Chooser<'a> {
    graph: &'a Graph,
    forms: &'a mut Forms,
    /// Nodes that make values, where a value may be a part.
    makers: BTreeMap<ValueId, &'a Node>,
    /// Values that are read by what takes any strides as they are.
    any_strides: BTreeSet<ValueId>,
    /// Bytes that a whole saves.
    saved: BTreeMap<ValueId, i64>,
    parts: Parts,
}

impl Chooser<'_> {
    /// Gives a value its region, if it may have one.
    fn settle(&mut self, v: ValueId, spot: Spot) {
        let Some(maker) = self.makers.get(&v).filter(|_| !self.parts.spots.contains_key(&v)) else { return };
        if !spot.layout.is_contiguous() && !self.any_strides.contains(&v) {
            return;
        }
        let saves = self.parts.cats.contains_key(&v) || maker.results.len() == 1 && self.forms.out(maker.op).is_some();
        if saves {
            let bytes = spot.layout.numel() * self.graph.tensor(v).dtype.size() as i64;
            *self.saved.entry(spot.root).or_default() += bytes;
        }
        self.parts.spots.insert(v, spot);
    }

    /// The parts of a whole, and the smaller wholes that are slices of it.
    fn cat(&mut self, cat: &Cat, starting: &BTreeMap<ValueId, Vec<ValueId>>) {
        let spot = match self.parts.spots.get(&cat.result) {
            Some(spot) => spot.clone(),
            None => {
                let Some(whole) = self.graph.tensor(cat.result).known() else { return };
                if whole.layout.offset != 0 || !whole.layout.is_dense() {
                    return;
                }
                Spot { root: cat.result, cuts: Vec::new(), layout: whole.layout }
            }
        };
        let Some(regions) = cat.regions(&spot.layout) else { return };
        self.parts.spots.insert(cat.result, spot.clone());
        for (k, v) in cat.operands.iter().enumerate() {
            if let Some(cuts) = Cut::between(&spot.layout, &regions[k]) {
                let cuts = spot.cuts.iter().copied().chain(cuts).collect();
                self.settle(*v, Spot { root: spot.root, cuts, layout: regions[k].clone() });
            }
            if cat.operands[..k].contains(v) {
                continue;
            }
            for smaller in starting.get(v).into_iter().flatten() {
                // It itself is taken out.
                let Some(inner) = self.parts.cats.get(smaller) else { continue };
                let end = k + inner.operands.len();
                if inner.at >= cat.at || cat.operands.get(k..end) != Some(&inner.operands[..]) {
                    continue;
                }
                let (Some(part), Some(ty)) = (self.run(&spot, &regions[k..end]), self.graph.tensor(*smaller).known())
                else {
                    continue;
                };
                let alike = part.layout.sizes == ty.layout.sizes
                    && inner.regions(&part.layout).is_some_and(|r| r == regions[k..end]);
                if alike {
                    self.settle(*smaller, part);
                }
            }
        }
    }

    /// Regions side by side as one.
    fn run(&self, spot: &Spot, regions: &[Layout]) -> Option<Spot> {
        let first = Cut::between(&spot.layout, regions.first()?)?;
        let [Cut::Slice { dim, start, .. }] = first[..] else { return None };
        let length = regions.iter().map(|r| r.sizes.get(dim as usize).copied().unwrap_or(0)).sum();
        let cut = Cut::Slice { dim, start, length };
        let layout = cut.of(&spot.layout)?;
        Some(Spot { root: spot.root, cuts: spot.cuts.iter().copied().chain([cut]).collect(), layout })
    }
}

fn is_assembled(op: Op) -> bool {
    matches!(op.def().movement, Some(Movement::Assemble(_)))
}

impl Materializer<'_> {
    /// Chooses what is put together in place.
    pub(super) fn plan_parts(&mut self, may_be_part: impl Fn(ValueId) -> bool) -> Result<()> {
        let graph = self.old;
        let mut makers = BTreeMap::new();
        let mut any_strides: BTreeSet<ValueId> = BTreeSet::new();
        let mut only_parts: BTreeSet<ValueId> = BTreeSet::new();
        let mut cats: BTreeMap<ValueId, Cat> = BTreeMap::new();
        let mut order: Vec<ValueId> = Vec::new();
        let mut starting: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
        for (at, (_, node)) in graph.ordered().enumerate() {
            let cat = Cat::of(graph, at, node);
            let is_cat = cat.is_some();
            if let Some(cat) = cat {
                order.push(cat.result);
                if let Some(first) = cat.operands.first() {
                    starting.entry(*first).or_default().push(cat.result);
                }
                cats.insert(cat.result, cat);
            }
            let may_alias = node.op.is_view() || node.op.def().hop.is_some() || node.op.may_pass_through();
            if may_alias && !is_cat || !self.effects.node(graph, node)?.aliases.is_empty() {
                continue;
            }
            for &r in node.results.iter().filter(|r| may_be_part(**r)) {
                makers.insert(r, node);
                any_strides.insert(r);
                only_parts.insert(r);
            }
        }
        if cats.is_empty() {
            return Ok(());
        }
        for (_, node) in graph.ordered().filter(|(_, n)| !is_assembled(n.op)) {
            for v in node.operands() {
                only_parts.remove(&v);
                if !node.op.def().pointwise {
                    any_strides.remove(&v);
                }
            }
        }
        let parts = Parts { cats, only_parts, ..Parts::default() };
        let mut chooser = Chooser { graph, forms: &mut self.forms, makers, any_strides, saved: BTreeMap::new(), parts };
        for result in order.iter().rev() {
            let cat = chooser.parts.cats.remove(result).expect("every one was noted");
            chooser.cat(&cat, &starting);
            chooser.parts.cats.insert(*result, cat);
        }
        let Chooser { saved, mut parts, .. } = chooser;
        parts.spots.retain(|_, spot| saved.get(&spot.root).is_some_and(|s| *s > 0));
        self.parts = parts;
        Ok(())
    }

    /// The region of a whole that a part is to lie in.
    pub(super) fn region_of_part(&mut self, v: ValueId, node: &Node) -> Result<Option<ValueId>> {
        let Some(spot) = self.parts.spots.get(&v).cloned() else { return Ok(None) };
        self.region_at(&spot, node).map(Some)
    }

    fn region_at(&mut self, spot: &Spot, node: &Node) -> Result<ValueId> {
        let ty = self.old.tensor(spot.root).clone();
        let mut v = match self.parts.wholes.get(&spot.root) {
            Some(v) => *v,
            None => self.whole(spot.root, &ty, node),
        };
        let known = |ty: &TensorType| ty.known().expect("wholes have known sizes").layout;
        let mut layout = known(&ty);
        let hint = format!("{}_part", self.old.values[spot.root].name);
        for &cut in &spot.cuts {
            layout = cut.of(&layout).expect("a cut that was made before");
            let (view, args) = match cut {
                Cut::Slice { dim, start, length } => ("aten.slice.Tensor", vec![dim, start, start + length]),
                Cut::Select { dim, index } => ("aten.select.int", vec![dim, index]),
            };
            let args = std::iter::once(Arg::Value(v)).chain(args.into_iter().map(|n| Arg::Scalar(Expr::Int(n))));
            v = self.view(view, args.collect(), typed(ty.dtype, &layout), &hint, v, node)?;
        }
        Ok(v)
    }

    /// The memory of a whole: nothing is written in place there until it is complete.
    fn whole(&mut self, root: ValueId, ty: &TensorType, node: &Node) -> ValueId {
        let hint = self.old.values[root].name.clone();
        let args = vec![
            Arg::Scalars(ty.layout.sizes.to_vec()),
            Arg::Scalars(ty.layout.strides.to_vec()),
            Arg::DType(ty.dtype),
        ];
        let v = self.build(&node.origin, &hint, |b| b.call("aten.empty_strided.default", args, ty.clone()));
        let memory = self.fresh();
        self.facts.set(v, Fact { roots: [memory].into(), identity: Some(memory), sure: true });
        self.parts.wholes.insert(root, v);
        v
    }

    /// Puts a whole together of the parts that lie in it and copies of those that do not.
    pub(super) fn assemble(&mut self, at: usize, node: &Node) -> Result<bool> {
        let [result] = node.results[..] else { return Ok(false) };
        let (Some(spot), Some(cat)) = (self.parts.spots.get(&result).cloned(), self.parts.cats.remove(&result)) else {
            return Ok(false);
        };
        let Some(regions) = cat.regions(&spot.layout) else { return Ok(false) };
        for (&v, region) in cat.operands.iter().zip(&regions) {
            let own = self.parts.spots.get(&v).filter(|s| s.root == spot.root && s.layout == *region).cloned();
            if own.is_some() && self.parts.lies.contains(&v) {
                continue;
            }
            let target = match &own {
                Some(own) => own.clone(),
                None => {
                    let cuts = Cut::between(&spot.layout, region)
                        .ok_or_else(|| restride_ir::Error::unsupported("a part of a whole that is no slice of it"))?;
                    let cuts = spot.cuts.iter().copied().chain(cuts).collect();
                    Spot { root: spot.root, cuts, layout: region.clone() }
                }
            };
            let target = self.region_at(&target, node)?;
            let source = self.value(v)?;
            self.copy_into(target, source, node)?;
            if own.is_some() {
                self.parts.lies.insert(v);
                // Those that come after it and only put wholes together find it there.
                if self.last_use[v].is_some_and(|last| last > at) && self.parts.only_parts.contains(&v) {
                    self.bind(v, target);
                }
            }
        }
        let whole = self.region_at(&spot, node)?;
        if spot.root == result {
            let roots = self.facts[whole].roots.clone();
            self.writable.extend(roots);
        }
        self.parts.lies.insert(result);
        self.bind(result, whole);
        self.counts.assembled += 1;
        Ok(true)
    }

    /// Adds a `copy_`.
    pub(super) fn copy_into(&mut self, target: ValueId, source: ValueId, node: &Node) -> Result<()> {
        let (copy, args) = filled("aten.copy_.default", vec![Arg::Value(target), Arg::Value(source)])?;
        let value = &self.new.values[target];
        let (name, ty) = (value.name.clone(), value.ty.clone());
        let name = self.names.fresh(&name);
        self.new.add_node(copy, args, [(name, ty)], node.origin.clone());
        Ok(())
    }

    /// Adds a view of a value.
    pub(super) fn view(
        &mut self,
        name: &str,
        args: Vec<Arg>,
        ty: TensorType,
        hint: &str,
        base: ValueId,
        node: &Node,
    ) -> Result<ValueId> {
        let (view, args) = filled(name, args)?;
        let name = self.names.fresh(hint);
        let id = self.new.add_node(view, args, [(name, Type::Tensor(ty))], node.origin.clone());
        let v = self.new.nodes[id].results[0];
        let roots = self.facts[base].roots.clone();
        let identity = Some(self.fresh());
        self.facts.set(v, Fact { roots, identity, sure: self.facts[base].sure });
        Ok(v)
    }
}

fn typed(dtype: DType, layout: &Layout) -> TensorType {
    TensorType::new(dtype, layout.map(|n| Expr::Int(*n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_leads_to_a_part() {
        let whole = Layout::contiguous(&[2, 6, 3]);
        let slice = whole.slice(1, Some(&2), Some(&5), &1).unwrap();
        let cut = Cut::between(&whole, &slice).unwrap();
        assert_eq!(cut, [Cut::Slice { dim: 1, start: 2, length: 3 }]);
        let select = whole.select(1, &4).unwrap();
        assert_eq!(Cut::between(&whole, &select).unwrap(), [Cut::Select { dim: 1, index: 4 }]);
        assert_eq!(Cut::between(&whole, &whole).unwrap(), []);
        let two = slice.slice(0, Some(&1), None, &1).unwrap();
        assert_eq!(Cut::between(&whole, &two), None);
        assert_eq!(Cut::between(&whole, &whole.permute(&[0, 2, 1]).unwrap()), None);
    }
}
