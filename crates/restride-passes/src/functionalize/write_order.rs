//! How a write goes: at once, on a copy that is copied back, or in rounds.

use super::overlapping_writes::{self, Rounds};
use super::region::{Extent, Relation, relate};
use super::rewrite::{NewValue, Rewrite, Rewriter, needs_sizes};
use restride_ir::{
    Arg, Dim, Error, Expr, Layout, Node, OpError, OutSize, TensorType, Twin, ValueId, Visited, computed_aside, fits,
};
use restride_tensor::{LayoutError, nested, self_overlaps};

/// How a write goes.
pub(super) enum WriteOrder {
    /// In one step.
    Once,
    /// On a copy of the target, copied back as `copy_` does, because the order shows.
    Aside,
    /// In rounds, each on the result of the last.
    Rounds(Rounds),
}

impl Rewriter<'_> {
    /// Asserts that a write with symbolic sizes puts no two elements into one cell: this is proved for views that step over
    /// themselves, and for a part of the indices of such a base.
    pub(super) fn prove_single_cells(&self, node: &Node, twin: &Twin) -> Rewrite<()> {
        for target in twin.writes.iter().filter_map(|(arg, _)| node.args.get(*arg as usize)).flat_map(Arg::values) {
            let own = &self.storages[self.alias(*target)?];
            let (layout, base) = (&own.ty.layout, &self.storages[own.storage].ty);
            if own.ty.known().is_some() || nested(layout) {
                continue;
            }
            let part =
                (base.dtype == own.ty.dtype && nested(&base.layout)).then(|| relate(&base.layout, layout)).flatten();
            let stretched =
                |r: Relation<Expr>| r.source.iter().zip(&layout.sizes).any(|(s, n)| s.is_none() && !n.is(1));
            if part.is_none_or(stretched) {
                return Err(needs_sizes(&format!("whether {} writes a cell twice", node.op)));
            }
        }
        Ok(())
    }

    /// How a write goes.
    pub(super) fn way(&self, node: &Node, twin: &Twin) -> Rewrite<WriteOrder> {
        let [(arg, result)] = twin.writes[..] else {
            self.refuse_repeats(node, twin)?;
            return Ok(WriteOrder::Once);
        };
        let Some(Arg::Value(target)) = node.args.get(arg as usize) else { return Ok(WriteOrder::Once) };
        let target = self.alias(*target)?;
        let own = &self.storages[target];
        let repeats = || own.ty.known().is_some_and(|t| self_overlaps(&t.layout) != Some(false));
        let aside = || if repeats() { WriteOrder::Aside } else { WriteOrder::Once };
        // Lazily mapped tensors are put aside: nothing that is read is written.
        if own.is_copied_for(twin.op) {
            return Ok(aside());
        }
        // A resized `out=` has no cell twice, and none of an operand's.
        if matches!(self.out_size(node, twin, arg, result), OutSize::Resized(_)) {
            return Ok(WriteOrder::Once);
        }
        if twin.copies_out() {
            return Ok(aside());
        }
        let def = twin.op.def();
        if !def.pointwise || def.random || result != 0 {
            if !repeats() {
                return Ok(WriteOrder::Once);
            }
            if own.ty.known().is_some_and(|t| computed_aside(def, t, &[])) {
                return Ok(WriteOrder::Aside);
            }
            return Err(repeated(node).into());
        }
        let known = own.ty.known();
        let mut operands = Vec::new();
        for v in twin.args.iter().filter_map(|i| node.args.get(*i as usize)).flat_map(Arg::values) {
            let Some(NewValue::Object(o)) = self.map[*v] else { continue };
            let a = &self.storages[self.objects[o]];
            let shares = a.storage == own.storage && !a.is_copied_for(twin.op);
            match (a.ty.known(), known) {
                (Some(ty), Some(_)) => operands.push(Visited { ty: ty.clone(), shares }),
                _ if !shares
                    || a.ty == own.ty
                    || self.storages.disjoint(target, self.objects[o])
                    || same_or_apart(&self.storages[own.storage].ty, &own.ty, &a.ty) => {}
                _ => {
                    return Err(needs_sizes(&format!("whether {} reads cells that it writes", node.op)));
                }
            }
        }
        let Some(known) = known else { return Ok(WriteOrder::Once) };
        if !twin.op.def().maps_bits && computed_aside(def, known, &operands) && fits(known, &operands) {
            return Ok(aside());
        }
        Ok(overlapping_writes::rounds(known, &operands)?.map_or(WriteOrder::Once, WriteOrder::Rounds))
    }

    /// Refuses a call that writes several tensors if one of them has several elements in one cell.
    fn refuse_repeats(&self, node: &Node, twin: &Twin) -> Rewrite<()> {
        for &(arg, result) in &twin.writes {
            let Some(v) = node.args.get(arg as usize).and_then(|a| a.values().next()) else { continue };
            let own = &self.storages[self.alias(*v)?];
            let resized = || matches!(self.out_size(node, twin, arg, result), OutSize::Resized(_));
            let passes = own.is_copied_for(twin.op) || resized();
            if !passes && own.ty.known().is_some_and(|t| self_overlaps(&t.layout) != Some(false)) {
                return Err(repeated(node).into());
            }
        }
        Ok(())
    }

    /// A pointwise write in rounds: a loop over the outer indices, each on the result of the last.
    pub(super) fn mutate_in_rounds(&mut self, node: &Node, twin: &Twin, rounds: &Rounds) -> Rewrite<()> {
        let (arg, result) = (twin.writes[0].0 as usize, twin.writes[0].1 as usize);
        let Some(Arg::Value(target_value)) = node.args.get(arg) else { return Ok(()) };
        let target = self.alias(*target_value)?;
        let (ty, storage) = (TensorType::clone(&self.storages[target].ty), self.storages[target].storage);
        for prefix in &rounds.prefixes {
            let mut layout = ty.layout.permute(&rounds.order).map_err(OpError::from)?;
            for i in prefix {
                layout = fixed(&layout, *i).map_err(OpError::from)?;
            }
            let sub = TensorType::new(ty.dtype, layout);
            let part = self.storages.region_like(target, storage, sub.clone());
            let mut args = Vec::with_capacity(twin.args.len());
            for &i in &twin.args {
                let a = &node.args[i as usize];
                args.push(match a {
                    Arg::Value(v) if *v == *target_value || self.alias(*v).ok() == Some(target) => {
                        Arg::Value(self.build(node, |b, s| s.read(b, part))?)
                    }
                    Arg::Value(v) => {
                        let whole = self.read(node, *v)?;
                        Arg::Value(self.part_of(node, whole, &ty, &rounds.order, prefix)?)
                    }
                    other => self.read_arg(node, other)?,
                });
            }
            let value = self.call_twin(node, twin, args, &[(arg, sub.clone().into())])?;
            let new = self.cast(node, value[result], &sub)?;
            self.build(node, |b, s| s.write(b, part, new))?;
        }
        self.bind_returns(node, twin, &[])
    }

    /// The operand's elements for one round: broadcast to the target's sizes, in the order of the loop, then the outer
    /// indices fixed.
    fn part_of(
        &mut self,
        node: &Node,
        value: ValueId,
        target: &TensorType,
        order: &[i64],
        prefix: &[i64],
    ) -> Rewrite<ValueId> {
        let have = self.new.tensor(value).clone();
        // A 0-d tensor stays one: it counts as a number when types are promoted.
        if have.rank() == 0 {
            return Ok(value);
        }
        let mut layout = have.layout.expand(&target.layout.sizes).map_err(OpError::from)?;
        let permuted = layout.permute(order).map_err(OpError::from)?;
        Ok(self.build(node, |b, _| {
            let mut v = value;
            let mut call = |op: &str, args: Vec<Arg>, layout: &Layout<Expr>| {
                v = b.call(
                    op,
                    std::iter::once(Arg::Value(v)).chain(args).collect(),
                    TensorType::new(have.dtype, layout.clone()),
                );
            };
            if layout.sizes != have.layout.sizes {
                call("aten.expand.default", vec![Arg::Scalars(target.layout.sizes.to_vec())], &layout);
            }
            if !order.is_sorted() {
                let dims = order.iter().map(|d| Expr::Int(*d)).collect();
                call("aten.permute.default", vec![Arg::Scalars(dims)], &permuted);
            }
            layout = permuted;
            for i in prefix {
                let last = layout.rank() == 1;
                layout = fixed(&layout, *i).expect("the prefix is an index of the target");
                let number = |n: i64| Arg::Scalar(Expr::Int(n));
                if last {
                    call("aten.slice.Tensor", vec![number(0), number(*i), number(i + 1)], &layout);
                } else {
                    call("aten.select.int", vec![number(0), number(*i)], &layout);
                }
            }
            v
        }))
    }
}

/// An index of the first dimension. The last dimension stays, with one index: without it an element would count as a number
/// when types are promoted.
fn fixed(layout: &Layout<Expr>, i: i64) -> Result<Layout<Expr>, LayoutError> {
    match layout.rank() {
        1 => layout.slice(0, Some(&Expr::Int(i)), Some(&Expr::Int(i + 1)), &Expr::Int(1)),
        _ => layout.select(0, &Expr::Int(i)),
    }
}

fn repeated(node: &Node) -> Error {
    Error::unsupported(format!("{} into a tensor with several elements in one cell", node.op))
        .help("clone the tensor before writing it")
}

/// Whether two regions of a base have all cells in common, element by element, or none, whatever the symbols are: of rows `i` and `j`
/// an element has its own cell or another one than all elements of the other row, and columns apart are so in any number of rows.
fn same_or_apart(base: &TensorType, a: &TensorType, b: &TensorType) -> bool {
    if a.dtype != b.dtype || a.dtype != base.dtype || !nested(&base.layout) {
        return false;
    }
    let Some((x, y)) = relate(&base.layout, &a.layout).zip(relate(&base.layout, &b.layout)) else { return false };
    if x.picks.iter().zip(&y.picks).any(|(x, y)| x.apart(y)) {
        return true;
    }
    let stretched = |r: &Relation<Expr>| r.source.iter().zip(&a.layout.sizes).any(|(s, n)| s.is_none() && !n.is(1));
    let alike = |pair: (&Extent<Expr>, &Extent<Expr>)| match pair {
        (Extent::Index(_), Extent::Index(_)) => true,
        (Extent::Range { len: n, .. }, Extent::Range { len: m, .. }) if n.is(1) && m.is(1) => true,
        (x, y) => x == y,
    };
    a.layout.sizes == b.layout.sizes
        && x.source == y.source
        && !stretched(&x)
        && !stretched(&y)
        && x.picks.iter().zip(&y.picks).all(alike)
}
