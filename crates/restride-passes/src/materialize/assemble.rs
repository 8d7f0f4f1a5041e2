//! `cat` and `stack` assembled in place.
//!
//! The whole is an `empty` tensor made before its parts. A part is computed in its region of the whole or copied into it; a
//! `cat` of adjacent parts of a larger one is a slice of that. A region only ever gets the elements of the one value that
//! belongs there, and nothing else is written in place in the whole before it is complete. This is done where it saves
//! memory. Regions have symbolic sizes and are compared with the operator's own at the witness.
//!
//! [`crate::place`] takes the same pieces from the operator's declaration, but its parts are cells of known buffers. Here
//! each part must be a slice or an index that PyTorch can express for all sizes.

use super::{Materializer, ValueFact, filled};
use crate::args::{at_witness, layout_at, type_at};
use crate::place::AssembleFn;
use restride_ir::{
    Arg, Args, Binding, Dim, Expr, Graph, Layout, Meta, Movement, Node, Op, Result, Scalar, TensorType, Type, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// A step from a region to one inside it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Cut {
    Slice { dim: usize, start: Expr, length: Expr },
    Select { dim: usize, index: i64 },
}

impl Cut {
    /// The region that the step leads to.
    fn of(&self, from: &Layout<Expr>) -> Layout<Expr> {
        let mut to = from.clone();
        match self {
            Cut::Slice { dim, start, length } => {
                to.offset = to.offset.plus(&start.times(&from.strides[*dim]));
                to.sizes[*dim] = length.clone();
            }
            Cut::Select { dim, index } => {
                to.offset = to.offset.plus(&Expr::Int(*index).times(&from.strides[*dim]));
                to.sizes.remove(*dim);
                to.strides.remove(*dim);
            }
        }
        to
    }
}

/// How a region of a tensor is cut out of it, at known sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cutting {
    /// The whole tensor.
    Nothing,
    /// It is a slice of this dimension, from the index on.
    Slice { dim: usize, start: i64 },
    /// It is this index of the dimension.
    Select { dim: usize, index: i64 },
}

fn between(from: &Layout, to: &Layout) -> Option<Cutting> {
    let distance = to.offset - from.offset;
    let index = |d: usize| {
        let stride = from.strides[d];
        (stride > 0 && distance >= 0 && distance % stride == 0).then(|| distance / stride)
    };
    if to.rank() == from.rank() {
        let mut differ = (0..to.rank()).filter(|d| to.sizes[*d] != from.sizes[*d]);
        let Some(dim) = differ.next() else { return (distance == 0).then_some(Cutting::Nothing) };
        if differ.next().is_some() {
            return None;
        }
        let start = index(dim)?;
        let cut = from.slice(dim as i64, Some(&start), Some(&(start + to.sizes[dim])), &1).ok()?;
        return (cut == *to).then_some(Cutting::Slice { dim, start });
    }
    let found = |dim: usize| {
        let index = index(dim)?;
        let cut = from.select(dim as i64, &index).ok()?;
        (cut == *to).then_some(Cutting::Select { dim, index })
    };
    (0..from.rank()).find_map(found)
}

/// The place of a value in a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PartPlace {
    /// Result of the outermost `cat`.
    root: ValueId,
    /// The steps from the whole to the place.
    cuts: Vec<Cut>,
    layout: Layout<Expr>,
}

impl PartPlace {
    /// The spot inside this one.
    fn inner(&self, cut: Option<Cut>) -> PartPlace {
        let layout = cut.as_ref().map_or_else(|| self.layout.clone(), |c| c.of(&self.layout));
        PartPlace { root: self.root, cuts: self.cuts.iter().cloned().chain(cut).collect(), layout }
    }
}

/// A `cat` or its like.
struct Cat {
    at: usize,
    result: ValueId,
    operands: Vec<ValueId>,
    /// Sizes of the operands.
    sizes: Vec<Vec<Expr>>,
    args: Vec<Arg<Meta, Scalar>>,
    pieces: AssembleFn,
}

impl Cat {
    fn of(graph: &Graph, witness: &Binding, at: usize, node: &Node) -> Option<Cat> {
        let (Some(Movement::Assemble(pieces)), [result]) = (node.op.def().movement, &node.results[..]) else {
            return None;
        };
        let meta_of = |v: ValueId| type_at(graph.values[v].ty.tensor()?, witness);
        let whole = meta_of(*result)?;
        let operands: Vec<ValueId> = node.operands().collect();
        let alike = operands.iter().all(|v| meta_of(*v).is_some_and(|m| m.dtype == whole.dtype));
        let sizes = operands.iter().map(|v| graph.tensor(*v).layout.sizes.to_vec()).collect();
        let args = at_witness(graph, witness, &node.args)?;
        alike.then_some(Cat { at, result: *result, operands, sizes, args, pieces })
    }

    /// The step to each operand's region, in operand order, if the operands cover the whole and each is a slice or an index
    /// of it.
    fn regions(&self, whole: &Layout<Expr>, witness: &Binding) -> Option<Vec<Option<Cut>>> {
        let at = layout_at(whole, witness)?;
        let pieces = (self.pieces)(&Args(&self.args), &at).ok()?;
        let each = pieces.iter().enumerate().all(|(k, p)| p.operand == k) && pieces.len() == self.operands.len();
        let cells: i64 = pieces.iter().map(|p| p.region.numel()).sum();
        if !each || cells != at.numel() || cells == 0 {
            return None;
        }
        let mut ends: BTreeMap<usize, Expr> = BTreeMap::new();
        let mut cuts = Vec::with_capacity(pieces.len());
        for (piece, sizes) in pieces.iter().zip(&self.sizes) {
            let cut = match between(&at, &piece.region)? {
                Cutting::Nothing => None,
                Cutting::Select { dim, index } => Some(Cut::Select { dim, index }),
                Cutting::Slice { dim, start } => {
                    // Operands follow each other: each starts where those before it end.
                    let end = ends.entry(dim).or_insert(Expr::Int(0));
                    let (from, length) = (end.clone(), sizes.get(dim)?.clone());
                    *end = end.plus(&length);
                    let same = from.eval(witness).is_ok_and(|n| n.as_i64() == start);
                    Some(Cut::Slice { dim, start: from, length }).filter(|_| same).map(Some)?
                }
            };
            let region = cut.as_ref().map_or_else(|| whole.clone(), |c| c.of(whole));
            if layout_at(&region, witness)? != piece.region {
                return None;
            }
            cuts.push(cut);
        }
        Some(cuts)
    }
}

/// The wholes that are assembled in place, and the places of their parts.
#[derive(Default)]
pub(super) struct WholeParts {
    spots: BTreeMap<ValueId, PartPlace>,
    cats: BTreeMap<ValueId, Cat>,
    /// The wholes made so far.
    wholes: BTreeMap<ValueId, ValueId>,
    /// Values that only wholes are put together of.
    only_parts: BTreeSet<ValueId>,
    /// Values that were computed in their places.
    in_place: BTreeSet<ValueId>,
    /// Bytes that are not copied.
    saved: i64,
}

impl WholeParts {
    /// Values to be computed where they are wanted.
    pub(super) fn straight(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.spots.keys().filter(|v| !self.cats.contains_key(v)).copied()
    }

    pub(super) fn mark_in_place(&mut self, v: ValueId) {
        self.in_place.insert(v);
    }

    /// Bytes that parts which are computed where they belong save.
    pub(super) fn saved(&self) -> i64 {
        self.saved
    }

    /// Whether a value is stored in a larger whole.
    pub(super) fn is_in_place(&self, v: ValueId) -> bool {
        self.in_place.contains(&v) && self.spots.get(&v).is_some_and(|s| s.root != v)
    }
}

/// State of the choice of parts.
struct PartChooser<'a> {
    graph: &'a Graph,
    witness: &'a Binding,
    /// Nodes that make values, where a value may be a part.
    makers: BTreeMap<ValueId, &'a Node>,
    /// Values whose readers all accept any strides.
    any_strides: BTreeSet<ValueId>,
    /// Bytes that a whole saves.
    saved: BTreeMap<ValueId, i64>,
    parts: WholeParts,
}

impl PartChooser<'_> {
    /// Gives a value its region, if it may have one.
    fn settle(&mut self, v: ValueId, spot: PartPlace) {
        let Some(maker) = self.makers.get(&v).filter(|_| !self.parts.spots.contains_key(&v)) else { return };
        if !spot.layout.is_contiguous() && !self.any_strides.contains(&v) {
            return;
        }
        let saves =
            self.parts.cats.contains_key(&v) || maker.results.len() == 1 && restride_ops::out_form(maker.op).is_some();
        if saves {
            let cells = layout_at(&spot.layout, self.witness).map_or(0, |l| l.numel());
            let bytes = cells * self.graph.tensor(v).dtype.size() as i64;
            *self.saved.entry(spot.root).or_default() += bytes;
        }
        self.parts.spots.insert(v, spot);
    }

    /// The parts of a whole, and the smaller wholes that are slices of it.
    fn cat(&mut self, cat: &Cat, starting: &BTreeMap<ValueId, Vec<ValueId>>) {
        let spot = match self.parts.spots.get(&cat.result) {
            Some(spot) => spot.clone(),
            None => {
                let whole = self.graph.tensor(cat.result).layout.clone();
                if !layout_at(&whole, self.witness).is_some_and(|l| l.offset == 0 && l.is_dense()) {
                    return;
                }
                PartPlace { root: cat.result, cuts: Vec::new(), layout: whole }
            }
        };
        let Some(regions) = cat.regions(&spot.layout, self.witness) else { return };
        self.parts.spots.insert(cat.result, spot.clone());
        for (k, v) in cat.operands.iter().enumerate() {
            self.settle(*v, spot.inner(regions[k].clone()));
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
                let Some(part) = run(&spot, &regions[k..end]) else { continue };
                let lie = |cut: &Option<Cut>, of: &PartPlace| of.inner(cut.clone()).layout;
                let alike = part.layout.sizes == self.graph.tensor(*smaller).layout.sizes
                    && inner.regions(&part.layout, self.witness).is_some_and(|inner| {
                        inner.iter().zip(&regions[k..end]).all(|(a, b)| lie(a, &part) == lie(b, &spot))
                    });
                if alike {
                    self.settle(*smaller, part);
                }
            }
        }
    }
}

/// Regions side by side as one.
fn run(spot: &PartPlace, regions: &[Option<Cut>]) -> Option<PartPlace> {
    let Some(Some(Cut::Slice { dim, start, .. })) = regions.first() else { return None };
    let mut length = Expr::Int(0);
    for region in regions {
        match region {
            Some(Cut::Slice { dim: d, length: more, .. }) if d == dim => length = length.plus(more),
            _ => return None,
        }
    }
    Some(spot.inner(Some(Cut::Slice { dim: *dim, start: start.clone(), length })))
}

fn is_assembled(op: Op) -> bool {
    matches!(op.def().movement, Some(Movement::Assemble(_)))
}

impl Materializer<'_> {
    /// Chooses the wholes that are assembled in place; values in `apart` are no parts.
    pub(super) fn plan_parts(&mut self, apart: &BTreeSet<ValueId>) -> Result<()> {
        let graph = self.old;
        let mut makers = BTreeMap::new();
        let mut any_strides: BTreeSet<ValueId> = BTreeSet::new();
        let mut only_parts: BTreeSet<ValueId> = BTreeSet::new();
        let mut cats: BTreeMap<ValueId, Cat> = BTreeMap::new();
        let mut order: Vec<ValueId> = Vec::new();
        let mut starting: BTreeMap<ValueId, Vec<ValueId>> = BTreeMap::new();
        for (at, (_, node)) in graph.ordered().enumerate() {
            let cat = Cat::of(graph, &self.ctx.witness, at, node);
            let is_cat = cat.is_some();
            if let Some(cat) = cat {
                order.push(cat.result);
                if let Some(first) = cat.operands.first() {
                    starting.entry(*first).or_default().push(cat.result);
                }
                cats.insert(cat.result, cat);
            }
            let may_alias = node.op.is_view() || node.op.def().hop.is_some() || node.op.may_pass_through();
            if may_alias && !is_cat || !self.ctx.effects.node(graph, node)?.aliases.is_empty() {
                continue;
            }
            for &r in node.results.iter().filter(|r| !apart.contains(*r)) {
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
        let parts = WholeParts { cats, only_parts, ..WholeParts::default() };
        let witness = &self.ctx.witness;
        let mut chooser = PartChooser { graph, witness, makers, any_strides, saved: BTreeMap::new(), parts };
        for result in order.iter().rev() {
            let cat = chooser.parts.cats.remove(result).expect("every one was noted");
            chooser.cat(&cat, &starting);
            chooser.parts.cats.insert(*result, cat);
        }
        let PartChooser { saved, mut parts, .. } = chooser;
        parts.spots.retain(|_, spot| saved.get(&spot.root).is_some_and(|s| *s > 0));
        parts.saved = saved.values().sum();
        self.parts = parts;
        Ok(())
    }

    /// The region of a whole for a part.
    pub(super) fn region_of_part(&mut self, v: ValueId, node: &Node) -> Result<Option<ValueId>> {
        let Some(spot) = self.parts.spots.get(&v).cloned() else { return Ok(None) };
        self.region_at(&spot, node).map(Some)
    }

    fn region_at(&mut self, spot: &PartPlace, node: &Node) -> Result<ValueId> {
        let ty = self.old.tensor(spot.root).clone();
        let mut v = match self.parts.wholes.get(&spot.root) {
            Some(v) => *v,
            None => self.whole(spot.root, &ty, node),
        };
        let mut layout = ty.layout.clone();
        let hint = format!("{}_part", self.old.values[spot.root].name);
        for cut in &spot.cuts {
            layout = cut.of(&layout);
            let (view, dim, of) = match cut {
                Cut::Slice { dim, start, length } => {
                    ("aten.slice.Tensor", dim, vec![start.clone(), start.plus(length)])
                }
                Cut::Select { dim, index } => ("aten.select.int", dim, vec![Expr::Int(*index)]),
            };
            let numbers = std::iter::once(Expr::Int(*dim as i64)).chain(of).map(Arg::Scalar);
            let args = std::iter::once(Arg::Value(v)).chain(numbers).collect();
            v = self.view(view, args, TensorType::new(ty.dtype, layout.clone()), &hint, v, node)?;
        }
        Ok(v)
    }

    /// The memory of a whole, in which nothing is written in place until it is complete.
    fn whole(&mut self, root: ValueId, ty: &TensorType, node: &Node) -> ValueId {
        let hint = self.old.values[root].name.clone();
        let args = vec![
            Arg::Scalars(ty.layout.sizes.to_vec()),
            Arg::Scalars(ty.layout.strides.to_vec()),
            Arg::DType(ty.dtype),
        ];
        let v = self.build(&node.origin, &hint, |b| b.call("aten.empty_strided.default", args, ty.clone()));
        let memory = self.fresh();
        self.facts.set(v, ValueFact { roots: [memory].into(), identity: Some(memory), sure: true });
        self.parts.wholes.insert(root, v);
        v
    }

    /// Completes a whole: parts that were computed elsewhere are copied into it.
    pub(super) fn assemble(&mut self, at: usize, node: &Node) -> Result<bool> {
        let [result] = node.results[..] else { return Ok(false) };
        let (Some(spot), Some(cat)) = (self.parts.spots.get(&result).cloned(), self.parts.cats.remove(&result)) else {
            return Ok(false);
        };
        let Some(regions) = cat.regions(&spot.layout, &self.ctx.witness) else { return Ok(false) };
        for (&v, cut) in cat.operands.iter().zip(regions) {
            let target = spot.inner(cut);
            let own = self.parts.spots.get(&v).filter(|s| s.root == spot.root && s.layout == target.layout).cloned();
            if own.is_some() && self.parts.in_place.contains(&v) {
                continue;
            }
            let target = own.clone().unwrap_or(target);
            let target = self.region_at(&target, node)?;
            let source = self.value(v)?;
            self.copy_into(target, source, node)?;
            if own.is_some() {
                self.parts.in_place.insert(v);
                // Later readers that only assemble wholes find the part in this one.
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
        self.parts.in_place.insert(result);
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
        self.set_fact(v, self.facts[base].roots.clone(), self.facts[base].sure);
        Ok(v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_is_a_slice_or_an_index() {
        let whole = Layout::contiguous(&[2, 6, 3]);
        let slice = whole.slice(1, Some(&2), Some(&5), &1).unwrap();
        assert_eq!(between(&whole, &slice), Some(Cutting::Slice { dim: 1, start: 2 }));
        let select = whole.select(1, &4).unwrap();
        assert_eq!(between(&whole, &select), Some(Cutting::Select { dim: 1, index: 4 }));
        assert_eq!(between(&whole, &whole), Some(Cutting::Nothing));
        let two = slice.slice(0, Some(&1), None, &1).unwrap();
        assert_eq!(between(&whole, &two), None);
        assert_eq!(between(&whole, &whole.permute(&[0, 2, 1]).unwrap()), None);
    }

    #[test]
    fn a_cut_leads_to_what_lies_between() {
        let ints = |l: &Layout| l.map(|n| Expr::Int(*n));
        let whole = Layout::contiguous(&[2, 6, 3]);
        let slice = Cut::Slice { dim: 1, start: Expr::Int(2), length: Expr::Int(3) };
        assert_eq!(slice.of(&ints(&whole)), ints(&whole.slice(1, Some(&2), Some(&5), &1).unwrap()));
        let select = Cut::Select { dim: 1, index: 4 };
        assert_eq!(select.of(&ints(&whole)), ints(&whole.select(1, &4).unwrap()));
    }
}
