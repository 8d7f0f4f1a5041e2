//! Strides and storages that PyTorch's tensors have when PyTorch runs a functional program.
//!
//! Types in a functional program declare eager PyTorch's layouts. PyTorch's kernels may give the rewritten program other strides:
//! for example where a write into a transposed tensor became a new tensor. Operators that ask for strides need the declared ones,
//! so the writer inserts a copy with exactly those strides unless PyTorch's tensor surely has them. The storages are tracked for
//! the outputs.

use super::graph::GraphWriter;
use restride_ir::{
    Arg, Error, Expr, Meta, Movement, Node, Result, Scalar, Table, TensorType, Type, ValueId, operands_of,
};
use restride_tensor::{Dim, self_overlaps};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Facts about PyTorch's tensors for the values of one graph.
#[derive(Default)]
pub struct TorchLayouts {
    /// Whether PyTorch's tensor has the strides of the type.
    strides: Table<ValueId, bool>,
    /// Whether PyTorch's tensor has the storage offset of the type.
    offset: Table<ValueId, bool>,
    /// Storages that the tensor may be stored in.
    roots: Table<ValueId, BTreeSet<usize>>,
    /// Copies of exact strides.
    exact: BTreeMap<ValueId, Arc<str>>,
    next: usize,
}

impl TorchLayouts {
    /// A storage of its own.
    pub fn fresh_root(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }
    /// Records an input: in storage `root`, with the layout of its type.
    pub fn input(&mut self, v: ValueId, root: usize) {
        self.strides.set(v, true);
        self.offset.set(v, true);
        self.roots.set(v, [root].into());
    }
    /// Storages that a tensor may be stored in.
    pub fn roots(&self, v: ValueId) -> &BTreeSet<usize> {
        &self.roots[v]
    }
    /// Records that a tensor has the strides of its type, and whether it has the offset.
    pub fn laid(&mut self, v: ValueId, offset: bool) {
        self.strides.set(v, true);
        self.offset.set(v, offset);
    }
    /// Whether PyTorch's tensor has the strides of the type.
    pub fn has_strides(&self, v: ValueId) -> bool {
        self.strides[v]
    }
    /// Whether it has strides and offset of the type.
    pub fn has_layout(&self, v: ValueId) -> bool {
        self.strides[v] && self.offset[v]
    }
}

/// Replaces operands of a node that asks for strides by exact copies where needed; returns the node's arguments.
pub fn prepare<'n>(w: &mut GraphWriter<'_>, node: &'n Node) -> Result<Cow<'n, [Arg]>> {
    let op = node.op;
    let Some(Arg::Value(base)) = node.args.first() else { return Ok(Cow::Borrowed(&node.args)) };
    if op.def().strided {
        if w.layouts.has_layout(*base) {
            return Ok(Cow::Borrowed(&node.args));
        }
        let ty = w.source.tensor(*base).clone();
        let copy = exact_copy(w, *base)?
            .ok_or_else(|| Error::unsupported(format!("{op} of a value whose memory PyTorch may lay out otherwise")))?;
        w.instead.insert(*base, copy);
        // The copy starts at cell 0 of a storage of its own.
        let mut args = node.args.clone();
        if let Some(i) = op.schema().arg("storage_offset") {
            let shifted = match &args[i] {
                Arg::Scalar(e) => e.minus(&ty.layout.offset),
                _ => Expr::Int(0),
            };
            args[i] = Arg::Scalar(shifted);
        }
        return Ok(Cow::Owned(args));
    }
    if op.def().asks_for_strides && !w.layouts.has_strides(*base) {
        let name = exact(w, *base)?
            .ok_or_else(|| Error::unsupported(format!("{op} of a value whose memory PyTorch may lay out otherwise")))?;
        w.instead.insert(*base, name);
    }
    Ok(Cow::Borrowed(&node.args))
}

/// A tensor with the value's elements and exactly its strides: the value itself, or a copy. `None` if the strides overlap
/// themselves, so that no copy can have them.
pub fn exact(w: &mut GraphWriter<'_>, v: ValueId) -> Result<Option<Arc<str>>> {
    if w.layouts.has_strides(v) {
        return w.name(v).map(Some);
    }
    exact_copy(w, v)
}

/// A copy with exactly the value's strides, at offset 0. `None` if the strides overlap themselves.
pub fn exact_copy(w: &mut GraphWriter<'_>, v: ValueId) -> Result<Option<Arc<str>>> {
    if let Some(name) = w.layouts.exact.get(&v) {
        return Ok(Some(name.clone()));
    }
    let mut ty = w.source.tensor(v).clone();
    ty.layout.offset = Expr::Int(0);
    let name = w.name(v)?;
    let hint = format!("{name}_laid_out");
    let made = if ty.layout.is_contiguous() {
        let format = Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous);
        // A view of a larger tensor can be contiguous and start anywhere.
        w.call("aten.clone.default", &[Arg::Value(v), format], &hint, &ty)?
    } else {
        let known = known(w, &ty);
        if known.is_none_or(|k| self_overlaps(&k.layout) != Some(false)) {
            return Ok(None);
        }
        let empty = w.call(
            "aten.empty_strided.default",
            &[Arg::Scalars(ty.layout.sizes.to_vec()), Arg::Scalars(ty.layout.strides.to_vec()), Arg::DType(ty.dtype)],
            &hint,
            &ty,
        )?;
        w.call_on("aten.copy.default", &empty, &[Arg::Value(v)], &hint, &ty)?
    };
    w.layouts.exact.insert(v, made.clone());
    Ok(Some(made))
}

/// A copy in memory of its own. Where the value's memory has gaps, so has the copy's, as what eager PyTorch returns.
pub fn own_copy(w: &mut GraphWriter<'_>, v: ValueId) -> Result<Arc<str>> {
    let ty = w.source.tensor(v).clone();
    let gaps = known(w, &ty).is_some_and(|k| !k.layout.is_dense());
    if gaps
        && !w.layouts.exact.contains_key(&v)
        && let Some(name) = exact_copy(w, v)?
    {
        return Ok(name);
    }
    w.call("aten.clone.default", &[Arg::Value(v)], &format!("{}_copy", w.source.values[v].name), &ty)
}

/// The type with its sizes at export.
fn known(w: &GraphWriter<'_>, ty: &TensorType) -> Option<Meta> {
    ty.known().or_else(|| TensorType::new(ty.dtype, ty.layout.map(|e| e.substitute(&w.ctx.hints))).known())
}

/// Records strides, offsets and storages of a node's results.
pub fn learn(w: &mut GraphWriter<'_>, node: &Node) -> Result<()> {
    let effect = w.ctx.effects.node(w.source, node)?;
    let operands: Vec<ValueId> = node.operands().collect();
    let strides = gives_declared(w, node, &operands);
    for (i, &r) in node.results.iter().enumerate() {
        let Type::Tensor(ty) = &w.source.values[r].ty else { continue };
        let offset = ty.layout.offset.is(0);
        let mut roots = BTreeSet::new();
        for (_, o) in effect.aliases.iter().filter(|a| a.0 == i) {
            roots.extend(w.layouts.roots(operands[*o]).iter().copied());
        }
        let mut own = roots.is_empty();
        if own && node.op.may_pass_through() {
            // An operand that is returned keeps its dtype, except for the parts of complex numbers.
            let same = |o: &&ValueId| {
                let given = w.source.values[**o].ty.tensor().map(|t| t.dtype);
                given.is_some_and(|d| d == ty.dtype || d.is_complex() || ty.dtype.is_complex())
            };
            roots.extend(operands.iter().filter(same).flat_map(|o| w.layouts.roots(*o)).copied());
            own = roots.is_empty();
        }
        if own {
            roots.insert(w.layouts.fresh_root());
        }
        w.layouts.roots.set(r, roots);
        w.layouts.strides.set(r, strides);
        w.layouts.offset.set(r, own && offset);
    }
    Ok(())
}

/// Whether PyTorch's kernel returns the declared layouts.
fn gives_declared(w: &GraphWriter<'_>, node: &Node, operands: &[ValueId]) -> bool {
    let tensor = |v: &ValueId| w.source.values[*v].ty.tensor();
    let ready = |v: &ValueId| {
        tensor(v).is_none()
            || w.layouts.has_strides(*v)
            || w.layouts.exact.contains_key(v) && node.op.def().asks_for_strides
    };
    // The source of a scatter does not influence the strides of the result.
    let source = match node.op.def().movement {
        Some(Movement::Scatter { src, .. }) => operands_of(&node.args, src as usize),
        _ => 0..0,
    };
    let decides = operands.iter().enumerate().filter(|(i, _)| !source.contains(i)).map(|(_, v)| v);
    if node.op.def().hop.is_some() || !decides.into_iter().all(ready) {
        return false;
    }
    // The result of a scatter has the strides of its base, also if it writes at an index that data decides.
    if let (Some(Movement::Scatter { base: 0, .. }), Some(Arg::Value(base)), &[result]) =
        (node.op.def().movement, node.args.first(), &node.results[..])
    {
        let of = |v: &ValueId| tensor(v).and_then(|t| known(w, t));
        if of(base).zip(of(&result)).is_some_and(|(b, r)| b.layout.is_dense() && r.same_strides(&b)) {
            return true;
        }
    }
    // A number from data does not influence the strides of a pointwise result.
    let number = |e: &Expr| match e.eval(&w.ctx.hints) {
        Err(_) if node.op.def().pointwise && e.is_float() => Ok(Scalar::Float(1.0)),
        other => other.map_err(|_| ()),
    };
    let metas: Option<Vec<Arg<Meta, Scalar>>> =
        node.args.iter().map(|a| a.try_map(|v| tensor(v).and_then(|t| known(w, t)).ok_or(()), number).ok()).collect();
    let Some(given) = metas.and_then(|m| node.op.eager_metas(&m)) else { return false };
    // A result that nothing reads may have no type.
    let declared = |r: &ValueId, given: &Meta| match tensor(r) {
        Some(ty) => known(w, ty).is_some_and(|d| given.same_strides(&d)),
        None => w.source.values[*r].ty == Type::None,
    };
    given.len() == node.results.len() && node.results.iter().zip(&given).all(|(r, g)| declared(r, g))
}
