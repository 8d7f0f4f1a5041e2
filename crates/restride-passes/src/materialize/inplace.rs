//! Results in the memory of an operand: in-place operators, and writes into views.

use super::{Fact, Materializer, filled};
use restride_ir::{Arg, Error, Movement, Node, Op, Result, TwinReturn, Type, ValueId};
use restride_ops::{lookup, torch_names};
use restride_tensor::self_overlaps;
use std::collections::BTreeMap;

/// In-place forms of functional operators, found when they are asked for.
#[derive(Default)]
pub struct Forms {
    names: Option<BTreeMap<String, Vec<String>>>,
    found: BTreeMap<&'static str, Option<Op>>,
}

impl Forms {
    /// The operator that writes this one's result into its argument 0.
    fn of(&mut self, op: Op) -> Option<Op> {
        if let Some(found) = self.found.get(op.name()) {
            return *found;
        }
        let names = self.names.get_or_insert_with(|| {
            let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for full in torch_names() {
                let base = full.rsplit_once('.').map_or("", |(base, _)| base);
                if let Some(functional) = base.strip_suffix('_').filter(|b| !b.ends_with('_')) {
                    names.entry(functional.to_string()).or_default().push(full.clone());
                }
            }
            names
        });
        let schema = op.schema();
        let key = format!("{}.{}", schema.namespace, schema.name);
        let candidates = names.get(&key).map_or(&[][..], Vec::as_slice);
        let fits = |form: &Op| {
            form.twin().is_some_and(|t| {
                t.op == op
                    && !t.resizes
                    && t.writes[..] == [(0, 0)]
                    && t.args.first() == Some(&0)
                    && t.returns[..] == [TwinReturn::Arg(0)]
            })
        };
        let form = candidates.iter().filter_map(|n| lookup(n)).find(fits);
        self.found.insert(op.name(), form);
        form
    }
}

impl Materializer<'_> {
    /// Whether a result may be written over the tensor `target`, of the old value `old`, at this position: nobody sees what
    /// was there afterwards.
    fn may_overwrite(&self, at: usize, old: ValueId, target: ValueId) -> bool {
        let fact = &self.facts[target];
        let free = |root: &usize| {
            self.writable.contains(root)
                && self.in_root.get(root).is_none_or(|values| {
                    // What is one tensor with the target and used later would see the new content as well.
                    values.iter().all(|u| self.last_use[*u].is_none_or(|last| last <= at))
                })
        };
        !fact.roots.is_empty()
            && fact.roots.iter().all(free)
            && self.last_use[old].is_none_or(|last| last <= at)
            && self
                .known(self.new.tensor(target))
                .is_some_and(|meta| fact.sure && self_overlaps(&meta.layout) == Some(false))
    }

    /// Whether another operand of the node may lie in the target's storage.
    fn touched_by_others(&self, node: &Node, target: ValueId, same_allowed: bool) -> Result<bool> {
        let roots = &self.facts[target].roots;
        for (i, v) in node.operands().enumerate() {
            let v = self.value(v)?;
            if i == 0 || same_allowed && v == target {
                continue;
            }
            if !self.facts[v].roots.is_disjoint(roots) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the node's result into its first operand, if that may be.
    pub(super) fn in_place(&mut self, at: usize, node: &Node) -> Result<bool> {
        let op = node.op;
        let ([result], Some(Arg::Value(old))) = (&node.results[..], node.args.first()) else { return Ok(false) };
        if op.def().random || op.is_view() || op.def().hop.is_some() {
            return Ok(false);
        }
        let target = self.value(*old)?;
        let (Type::Tensor(made), Some(have)) = (&self.old.values[*result].ty, self.new.values[target].ty.tensor())
        else {
            return Ok(false);
        };
        if made.dtype != have.dtype || made.layout.sizes != have.layout.sizes || !self.may_overwrite(at, *old, target) {
            return Ok(false);
        }
        let Some(form) = self.forms.of(op) else { return Ok(false) };
        if self.touched_by_others(node, target, op.def().pointwise)? {
            return Ok(false);
        }
        let twin = form.twin().expect("an in-place form has a twin");
        let mut args: Vec<Option<Arg>> = vec![None; form.schema().args.len()];
        for (arg, &position) in node.args.iter().zip(&twin.args) {
            args[position as usize] = Some(arg.try_map(|v| self.value(*v), |e| Ok::<_, Error>(e.clone()))?);
        }
        let args: Vec<Arg> = args
            .into_iter()
            .zip(&form.schema().args)
            .map(|(a, decl)| a.or_else(|| decl.default_arg()).unwrap_or(Arg::None))
            .collect();
        let ty = self.new.values[target].ty.clone();
        let name = self.names.fresh(&self.old.values[*result].name);
        let id = self.new.add_node(form, args, [(name, ty)], node.origin.clone());
        let new = self.new.nodes[id].results[0];
        let fact: Fact = self.facts[target].clone();
        self.facts.set(new, fact);
        self.bind(*result, new);
        self.counts.in_place += 1;
        Ok(true)
    }

    /// Writes a scatter's source into a view of its base, if nobody needs the base as it was.
    pub(super) fn scatter(&mut self, at: usize, node: &Node) -> Result<bool> {
        let op = node.op;
        let ([result], Some(Movement::Scatter { base: 0, src: 1, .. })) = (&node.results[..], op.def().movement) else {
            return Ok(false);
        };
        let Some(view) = view_of(op) else { return Ok(false) };
        let (Some(Arg::Value(old)), Some(Arg::Value(src))) = (node.args.first(), node.args.get(1)) else {
            return Ok(false);
        };
        let (target, src) = (self.value(*old)?, self.value(*src)?);
        if !self.may_overwrite(at, *old, target) || self.touched_by_others(node, target, false)? {
            return Ok(false);
        }
        let want = self.old.tensor(*old).clone();
        if view.def().strided {
            let have = &self.new.tensor(target).layout;
            if !self.lies_as(target, &want) || have.offset != want.layout.offset {
                return Ok(false);
            }
        }
        let mut args = vec![Arg::Value(target)];
        args.extend(node.args[2..].iter().cloned());
        let (view, args) = filled(view.name(), args)?;
        // Sizes of the region are those of the source.
        let Some(mut metas) = self.metas(&args) else { return Ok(false) };
        let Some(region) = view.eager_metas(&std::mem::take(&mut metas)) else { return Ok(false) };
        let source = self.new.tensor(src).clone();
        let ([region], true) = (&region[..], source.dtype == want.dtype) else { return Ok(false) };
        let known = self.known(&source);
        if known.is_none_or(|k| k.layout.sizes != region.layout.sizes) || self_overlaps(&region.layout) != Some(false) {
            return Ok(false);
        }
        let mut ty = source;
        if want.known().is_some() {
            ty.layout = region.layout.map(|n| restride_ir::Expr::Int(*n));
        }
        let hint = format!("{}_region", self.old.values[*result].name);
        let name = self.names.fresh(&hint);
        let id = self.new.add_node(view, args, [(name, Type::Tensor(ty.clone()))], node.origin.clone());
        let region = self.new.nodes[id].results[0];
        let (copy, args) = filled("aten.copy_.default", vec![Arg::Value(region), Arg::Value(src)])?;
        let name = self.names.fresh(&hint);
        self.new.add_node(copy, args, [(name, Type::Tensor(ty))], node.origin.clone());
        self.bind(*result, target);
        self.counts.scatters += 1;
        Ok(true)
    }
}

/// The view whose region a scatter writes: `slice_scatter` writes `slice`.
fn view_of(scatter: Op) -> Option<Op> {
    let schema = scatter.schema();
    let name = schema.name.strip_suffix("_scatter")?;
    ["default", "Tensor", "int"]
        .iter()
        .filter_map(|overload| lookup(&format!("{}.{name}.{overload}", schema.namespace)))
        .find(|view| {
            let names =
                |op: &Op, skip: usize| op.schema().args.iter().skip(skip).map(|a| a.name.clone()).collect::<Vec<_>>();
            view.is_view() && names(view, 1) == names(&scatter, 2)
        })
}
