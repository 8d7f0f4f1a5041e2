//! Results in the memory of an operand or straight where they are wanted, and writes into views.

use super::{Destination, Materializer, ValueFact, filled};
use restride_ir::{Arg, Kernel, Movement, Node, Op, OverlapCheck, Result, TensorType, ValueId};
use restride_ops::{WritingForm, in_place_form, out_form, view_form};
use restride_tensor::self_overlaps;

impl Materializer<'_> {
    /// Whether the tensor `target` may be overwritten at this position: no later node but the readers of `except` reads its
    /// old elements.
    pub(super) fn may_overwrite(&self, at: usize, target: ValueId, except: Option<ValueId>) -> bool {
        let fact = &self.facts[target];
        let free = |root: &usize| {
            self.writable.contains(root)
                && self.busy.get(root).is_none_or(|busy| {
                    // A later use of the same tensor object would read the new content.
                    if Some(busy.value) == except { busy.others <= Some(at) } else { busy.last <= at }
                })
        };
        !fact.roots.is_empty()
            && fact.roots.iter().all(free)
            && self
                .known(self.new.tensor(target))
                .is_some_and(|meta| fact.sure && self_overlaps(&meta.layout) == Some(false))
    }

    /// Whether an operand of the node may share the target's storage, not counting the one at position `but` nor, with
    /// `same_allowed`, the target itself.
    fn touched_by_others(&self, node: &Node, target: ValueId, but: Option<usize>, same_allowed: bool) -> Result<bool> {
        let roots = &self.facts[target].roots;
        for (i, v) in node.operands().enumerate() {
            let v = self.value(v)?;
            if Some(i) == but || same_allowed && v == target {
                continue;
            }
            if !self.facts[v].roots.is_disjoint(roots) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a result's elements fill the tensor `target` as they are.
    fn fills(&self, made: &TensorType, target: ValueId) -> bool {
        let have = self.new.values[target].ty.tensor();
        have.is_some_and(|have| made.dtype == have.dtype && made.layout.sizes == have.layout.sizes)
    }

    /// Whether a result that the caller gets must not stay in the target: in memory of an input that becomes another value,
    /// or with strides other than those the caller is to see.
    pub(super) fn misplaced(&self, result: ValueId, target: ValueId) -> bool {
        if !self.visible.contains(&result) {
            return false;
        }
        let roots = &self.facts[target].roots;
        match self.wants.get(&result) {
            Some(Destination::Input(i)) if !roots.is_disjoint(&self.input_roots) => {
                self.map[self.input(*i)].is_none_or(|input| self.facts[input].roots != *roots)
            }
            Some(_) => false,
            None => !roots.is_disjoint(&self.input_roots) || !self.has_strides_of(target, self.old.tensor(result)),
        }
    }

    /// Writes the node's result into an operand that dies: into the first by the in-place form, into another one by the
    /// out= form if the operator goes element by element.
    pub(super) fn in_place(&mut self, at: usize, node: &Node) -> Result<bool> {
        let Some((result, made)) = self.single(node) else { return Ok(false) };
        let op = node.op;
        let mut candidates = Vec::new();
        if let Some(Arg::Value(first)) = node.args.first() {
            // The in-place form; by it the first operand is read and written cell by cell where the operator is pointwise.
            candidates.push((*first, true));
        }
        if cell_by_cell(op) {
            candidates.extend(node.operands().map(|v| (v, false)));
        }
        for (v, first) in candidates {
            let target = self.value(v)?;
            let (but, same) = if first { (Some(0), op.def().pointwise) } else { (None, true) };
            if self.fills(&made, target)
                && self.may_overwrite(at, target, None)
                && !self.misplaced(result, target)
                && !self.touched_by_others(node, target, but, same)?
            {
                let Some(form) = (if first { self.form_in(op, target) } else { out_form(op) }) else { continue };
                self.write(node, form, target, result)?;
                self.counts.in_place += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The in-place form of an operator for this target. PyTorch's process groups read and write memory of any strides as if it
    /// were row-major.
    fn form_in(&self, op: Op, target: ValueId) -> Option<WritingForm> {
        let exchange = matches!(op.def().kernel, Kernel::Collective(_));
        let dense = || self.known(self.new.tensor(target)).is_some_and(|m| m.layout.is_contiguous());
        in_place_form(op).filter(|_| !exchange || dense())
    }

    /// The only result of a node that a writing form may stand for.
    fn single(&self, node: &Node) -> Option<(ValueId, TensorType)> {
        let def = node.op.def();
        let [result] = node.results[..] else { return None };
        let ty = self.old.values[result].ty.tensor().cloned()?;
        (!def.random && !node.op.is_view() && def.hop.is_none()).then_some((result, ty))
    }

    /// The node as a write of `target`. Operands keep their order, so that it is seen to mean the same.
    fn write(&mut self, node: &Node, form: WritingForm, target: ValueId, result: ValueId) -> Result<()> {
        let args = form.args(&self.mapped(node)?, Arg::Value(target));
        let ty = self.new.values[target].ty.clone();
        let name = self.names.fresh(&self.old.values[result].name);
        let id = self.new.add_node(form.op, args, [(name, ty)], node.origin.clone());
        let new = self.new.nodes[id].results[0];
        let fact: ValueFact = self.facts[target].clone();
        self.facts.set(new, fact);
        self.bind(result, new);
        Ok(())
    }

    /// Computes a result straight where it is wanted.
    pub(super) fn straight(&mut self, at: usize, node: &Node) -> Result<bool> {
        let Some((result, made)) = self.single(node) else { return Ok(false) };
        let Some(want) = self.wants.get(&result).copied() else { return Ok(false) };
        if let Destination::Region(scatter) = want {
            let Some((form, target)) = self.region_ahead(at, scatter, node, &made)? else { return Ok(false) };
            self.in_region.insert(scatter, result);
            self.write(node, form, target, result)?;
            self.counts.straight += 1;
            return Ok(true);
        }
        let Some(form) = out_form(node.op) else { return Ok(false) };
        let target = match want {
            Destination::Input(i) => {
                let target = self.value(self.input(i))?;
                // The in-place form says the same where the first operand is the input.
                let first = matches!(node.args.first(), Some(Arg::Value(v)) if self.value(*v)? == target);
                let may = self.fills(&made, target) && self.may_overwrite(at, target, None);
                if first || !may || self.touched_by_others(node, target, None, cell_by_cell(node.op))? {
                    return Ok(false);
                }
                target
            }
            Destination::Part => match self.region_of_part(result, node)? {
                Some(target) => {
                    self.parts.mark_in_place(result);
                    target
                }
                None => return Ok(false),
            },
            Destination::Region(_) => return Ok(false),
        };
        self.write(node, form, target, result)?;
        self.counts.straight += 1;
        Ok(true)
    }

    /// The region that a later scatter writes, if the node may write it now, and the writing form. After this node only the
    /// scatter reads the base; the node itself reads that region of it, or nothing.
    fn region_ahead(
        &mut self,
        at: usize,
        scatter: usize,
        node: &Node,
        made: &TensorType,
    ) -> Result<Option<(WritingForm, ValueId)>> {
        let old = self.old;
        let scatter_node = &old.nodes[old.order[scatter]];
        let Some(Arg::Value(base)) = scatter_node.args.first() else { return Ok(None) };
        let Some(target) = self.map[*base] else { return Ok(None) };
        let only = self.last_use[*base] == Some(scatter) && self.use_before[*base] <= Some(at);
        if !only || !self.may_overwrite(at, target, Some(*base)) {
            return Ok(None);
        }
        let Some(region) = self.region_of(scatter_node, target, made)? else { return Ok(None) };
        let ScatterRegion { view, args, ty, hint } = region;
        let mut seen = Vec::new();
        for v in node.operands() {
            let v = self.value(v)?;
            if !self.facts[v].roots.is_disjoint(&self.facts[target].roots) {
                seen.push(v);
            }
        }
        let Some(&first) = seen.first() else {
            let Some(form) = out_form(node.op) else { return Ok(None) };
            return Ok(Some((form, self.view(view.name(), args, ty, &hint, target, node)?)));
        };
        // All operands in the base's memory are one tensor, which is the region cell for cell.
        let both = self.new.tensor(first).known().zip(ty.known());
        let same = both.is_some_and(|(a, b)| a.same_strides(&b) && a.layout.offset == b.layout.offset);
        if !same || !self.facts[first].sure || seen.iter().any(|v| *v != first) || !self.fills(made, first) {
            return Ok(None);
        }
        let at_first = matches!(node.args.first(), Some(Arg::Value(v)) if self.map[*v] == Some(first));
        let cells = cell_by_cell(node.op);
        let form = match self.form_in(node.op, first).filter(|_| at_first && (cells || seen.len() == 1)) {
            Some(form) => Some(form),
            None => out_form(node.op).filter(|_| cells),
        };
        Ok(form.map(|form| (form, first)))
    }

    /// Writes a scatter's source into a view of its base, if no later node reads the old base.
    pub(super) fn scatter(&mut self, at: usize, node: &Node) -> Result<bool> {
        let op = node.op;
        let ([result], Some(Movement::Scatter { base: 0, src: 1, .. })) = (&node.results[..], op.def().movement) else {
            return Ok(false);
        };
        let (Some(Arg::Value(old)), Some(Arg::Value(src))) = (node.args.first(), node.args.get(1)) else {
            return Ok(false);
        };
        if self.in_region.get(&at) == Some(src) {
            let target = self.value(*old)?;
            self.bind(*result, target);
            self.counts.scatters += 1;
            return Ok(true);
        }
        let (mut target, src) = (self.value(*old)?, self.value(*src)?);
        let source = self.new.tensor(src).clone();
        if !self.may_overwrite(at, target, None) || self.touched_by_others(node, target, Some(0), false)? {
            // Makes the scatter's copy of the base, and writes into it.
            let own = self.old.tensor(*result).clone();
            let dense = own.layout.is_contiguous() || own.known().is_some_and(|m| m.layout.is_dense());
            let told = !op.def().strided || own.layout == self.old.tensor(*old).layout;
            if !dense || !told || self.region_of(node, target, &source)?.is_none() {
                return Ok(false);
            }
            let Some(copy) = self.copy_of(target, &own, &node.origin)? else { return Ok(false) };
            target = copy;
        }
        let Some(ScatterRegion { view, args, ty, hint }) = self.region_of(node, target, &source)? else {
            return Ok(false);
        };
        let region = self.view(view.name(), args, ty, &hint, target, node)?;
        self.copy_into(region, src, node)?;
        self.bind(*result, target);
        self.counts.scatters += 1;
        Ok(true)
    }

    /// The region of a scatter's base, which is stored in `target`, for a source of this type.
    fn region_of(&self, node: &Node, target: ValueId, source: &TensorType) -> Result<Option<ScatterRegion>> {
        let (Some(view), Some(Arg::Value(old))) = (view_form(node.op), node.args.first()) else { return Ok(None) };
        let want = self.old.tensor(*old).clone();
        if view.def().strided {
            let have = &self.new.tensor(target).layout;
            if !self.has_strides_of(target, &want) || have.offset != want.layout.offset {
                return Ok(None);
            }
        }
        let mut args = vec![Arg::Value(target)];
        args.extend(node.args[2..].iter().cloned());
        let (view, args) = filled(view.name(), args)?;
        // Sizes of the region are those of the source.
        let Some(region) = self.metas(&args).and_then(|metas| view.eager_metas(&metas)) else { return Ok(None) };
        let ([region], true) = (&region[..], source.dtype == want.dtype) else { return Ok(None) };
        let known = self.known(source);
        if known.is_none_or(|k| k.layout.sizes != region.layout.sizes) || self_overlaps(&region.layout) != Some(false) {
            return Ok(None);
        }
        let mut ty = source.clone();
        if want.known().is_some() {
            ty.layout = region.layout.map(|n| restride_ir::Expr::Int(*n));
        }
        let hint = format!("{}_region", self.old.values[node.results[0]].name);
        Ok(Some(ScatterRegion { view, args, ty, hint }))
    }
}

/// A view into the base of a scatter.
struct ScatterRegion {
    view: Op,
    args: Vec<Arg>,
    ty: TensorType,
    hint: String,
}

/// Whether the out= form of an operator may be given one of its operands: PyTorch goes cell by cell, and says so where
/// operands share cells in another way.
fn cell_by_cell(op: Op) -> bool {
    op.def().pointwise && op.def().overlap == OverlapCheck::Partial
}
