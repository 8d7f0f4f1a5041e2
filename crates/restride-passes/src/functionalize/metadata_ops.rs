//! Tensor objects that become other views, and storages that grow under them: `t_`, `as_strided_`, `set_`, `resize_`, and
//! `out=` arguments of other sizes than the result.

use super::region_ops::rows_fit;
use super::rewrite::{Halt, NewValue, Rewrite, Rewriter, needs_sizes, with_sizes};
use super::shared_region::SharedRegion;
use super::storages::{Alias, AliasId, StorageId};
use restride_ir::{
    Arg, Dim, Error, ErrorKind, Expr, Grad, Layout, Meta, Node, Op, TensorType, Twin, TwinReturn, ValueId, ViewOutcome,
    refuse_cast,
};

impl Rewriter<'_> {
    /// A view in terms of the storage may reach cells that the base does not hold.
    pub(super) fn check_reach(&self, op: Op, parent: AliasId, types: &[SharedRegion]) -> Rewrite<()> {
        let storage = self.storages[parent].storage;
        let state = &self.storages[storage];
        let dense = || state.ty.known().is_some_and(|t| t.layout.is_dense());
        // Where rows are not whole cells of the other size, memory is taken flat, which needs all of it.
        let (from, input) = (state.ty.dtype.size() as i64, state.input);
        let odd = |to: i64| from != to && !rows_fit(&state.ty.layout, from, to) && !dense();
        if let Some(input) = input.filter(|_| types.iter().any(|ty| odd(ty.dtype.size() as i64))) {
            return Err(Halt::NeedsStorage(input));
        }
        if !op.def().strided {
            return Ok(());
        }
        let dense = dense();
        for ty in types {
            let inside = match (state.ty.known(), ty.known()) {
                (Some(base), Some(t)) if dense => {
                    let (b, r) = (base.layout.cell_range(), t.layout.cell_range());
                    let (bs, rs) = (base.dtype.size() as i64, t.dtype.size() as i64);
                    r.is_empty() || (b.start * bs <= r.start * rs && r.end * rs <= b.end * bs)
                }
                (Some(base), Some(t)) => base.layout.same_cells(&t.layout),
                // With symbolic sizes a dense base is the rule; a run checks the reach.
                _ => has_no_gaps(&state.ty.layout),
            };
            if !inside {
                return match state.input {
                    Some(input) => Err(Halt::NeedsStorage(input)),
                    None if state.ty.known().is_none() || ty.known().is_none() => {
                        Err(needs_sizes(&format!("whether {op} stays inside the storage of its operand")))
                    }
                    None if state.ty.known().zip(ty.known()).is_some_and(|(base, t)| leaves(base, t)) => {
                        Err(Error::new(ErrorKind::Program, format!("{op} reaches beyond the storage of its operand"))
                            .into())
                    }
                    None => Err(Error::unsupported(format!("{op} of memory that has gaps between its elements"))
                        .help("make its operand contiguous first")
                        .into()),
                };
            }
        }
        Ok(())
    }

    /// `t_`, `squeeze_`, `as_strided_`: the tensor object becomes another view.
    pub(super) fn metadata(&mut self, node: &Node) -> Rewrite<()> {
        let Some(Arg::Value(target)) = node.args.first() else {
            return Err(Error::invalid(format!("{} of something that is no tensor", node.op)).into());
        };
        let Some(NewValue::Object(object)) = self.map[*target] else {
            return Err(Error::invalid(format!("{} of something that is no tensor", node.op)).into());
        };
        if node.op.def().view.is_none() {
            return Err(Error::unsupported(format!("{} has no functional form", node.op)).into());
        }
        let types = match self.outcome(node)? {
            ViewOutcome::Views(types) => types,
            ViewOutcome::Unknown => {
                return Err(needs_sizes(&format!("the result of {}", node.op)));
            }
            ViewOutcome::Copy => {
                return Err(
                    Error::unsupported(format!("{} that needs more memory than the tensor has", node.op)).into()
                );
            }
        };
        // `set_` takes over another tensor's memory.
        let parent = match node.args.get(node.op.def().base as usize) {
            Some(Arg::Value(source)) => self.alias(*source)?,
            _ => self.objects[object],
        };
        let ty = types.into_iter().next().ok_or_else(|| Error::invalid("a view rule without a result"))?;
        let ty = SharedRegion::from(ty);
        let storage = self.storages[parent].storage;
        let own = &self.storages[self.objects[object]].ty.layout;
        if node.op.def().base != 0 && own.sizes == ty.layout.sizes && own.strides == ty.layout.strides {
            // PyTorch makes no room where sizes and strides stay, and fails when it looks at the tensor next.
            self.check_reach(node.op, parent, std::slice::from_ref(&ty)).map_err(|stop| match stop {
                Halt::Error(e) => Error::unsupported(e.what).into(),
                other => other,
            })?;
        } else if node.op.def().grows {
            self.make_room(node, storage, &ty)?;
        } else {
            self.check_reach(node.op, parent, std::slice::from_ref(&ty))?;
        }
        // The lazy bits are the object's own.
        let old = self.objects[object];
        let now = self.storages.region_like(old, storage, ty);
        if self.storages[old].storage != storage {
            let Alias { root, constant, .. } = self.storages[parent];
            self.storages.set_history(now, root, constant);
        }
        self.objects[object] = now;
        if matches!(node.op.def().grad, Some(Grad::Zero)) {
            self.storages.detach(now);
        }
        for &r in &node.results {
            self.bind(r, NewValue::Object(object));
        }
        Ok(())
    }

    /// `out=` of other sizes: the tensor is resized to the result on its own memory. Other tensors on it stay, and see the
    /// write.
    pub(super) fn resize_out(&mut self, node: &Node, value: ValueId, new: ValueId) -> Rewrite<()> {
        let alias = self.alias(value)?;
        let have = self.storages[alias].ty.clone();
        let want = self.new.tensor(new).clone();
        refuse_cast(want.dtype, have.dtype)?;
        let layout = Layout { offset: have.layout.offset.clone(), ..want.layout };
        let ty = TensorType::new(have.dtype, layout);
        let storage = self.storages[alias].storage;
        self.make_room(node, storage, &ty)?;
        let resized = self.storages.region_like(alias, storage, ty.clone());
        let new = self.cast(node, new, &ty)?;
        self.build(node, |b, s| s.write(b, resized, new))?;
        if let Some(NewValue::Object(object)) = self.map[value] {
            self.objects[object] = resized;
        }
        Ok(())
    }

    /// The type that an `out=` argument of other sizes is resized to: as the call returns it, where it does.
    pub(super) fn resized_type(&self, node: &Node, twin: &Twin, arg: usize, want: &TensorType) -> TensorType {
        let at = twin.returns.iter().position(|r| *r == TwinReturn::Arg(arg as u8));
        let returned = at.and_then(|i| node.results.get(i)).and_then(|r| self.old.values[*r].ty.tensor());
        match returned {
            Some(ty) if ty.layout.sizes == want.layout.sizes => {
                let layout = Layout { offset: Expr::Int(0), ..ty.layout.clone() };
                TensorType::new(want.dtype, layout)
            }
            _ => want.clone(),
        }
    }

    /// Whether a call reads the object that it writes at an argument: such an `out=` is not resized. A lazily mapped one is read
    /// as a copy.
    pub(super) fn reads_target(&self, node: &Node, twin: &Twin, arg: usize) -> bool {
        let object = |v: &ValueId| self.object_of(*v);
        let target = node.args.get(arg).and_then(|a| a.values().next()).and_then(object);
        let mut read = twin.args.iter().filter_map(|i| node.args.get(*i as usize)).flat_map(Arg::values);
        let copied = |o: usize| self.storages[self.objects[o]].is_copied_for(twin.op);
        target.is_some_and(|o| !copied(o)) && read.any(|v| object(v) == target)
    }

    /// Makes a storage large enough for a region. Cells that PyTorch leaves undefined are 0.
    fn make_room(&mut self, node: &Node, storage: StorageId, region: &TensorType) -> Rewrite<()> {
        let ty = TensorType::clone(&self.storages[storage].ty);
        let Some(needed) = cells(region, ty.dtype.size() as i64) else {
            return Err(unsure(node, "of sizes that are not known"));
        };
        let Some(have) = cells(&ty, ty.dtype.size() as i64) else {
            return Err(unsure(node, "of memory of sizes that are not known"));
        };
        let gaps = |l: &Layout<Expr>| match l.known() {
            Some(l) => !l.is_dense() || !l.cell_range().is_empty() && l.cell_range().start != 0,
            None => !l.is_contiguous() || !l.offset.is(0),
        };
        let inside = have.less(&needed) == Some(false);
        if region.layout.sizes.iter().any(|n| n.is(0)) || inside && !gaps(&ty.layout) {
            return Ok(());
        }
        if let Some(input) = self.storages[storage].input {
            // To the byte: a region of small cells may end within a larger one.
            let Some(bytes) = cells(region, 1).and_then(|n| n.known()) else {
                return Err(unsure(node, "of an input of sizes that are not known"));
            };
            // The input has this much memory from the start; no node reads the added cells before.
            return Err(Halt::NeedsRoom(input, bytes));
        }
        if gaps(&ty.layout) {
            return Err(unsure(node, "of memory with gaps"));
        }
        if needed.less(&have) != Some(false) {
            return Err(unsure(node, "of sizes that are not known"));
        }
        let flat = TensorType::contiguous(ty.dtype, std::slice::from_ref(&have));
        let grown = TensorType::contiguous(ty.dtype, std::slice::from_ref(&needed));
        let value = self.storages[storage].base;
        let value = self.build(node, |b, _| {
            let flat = match ty.layout.is_contiguous() {
                true => b.reshape(value, flat),
                false => b.as_strided(value, flat),
            };
            let pads = Arg::Scalars(vec![Expr::Int(0), needed.minus(&have)]);
            b.call("aten.constant_pad_nd.default", vec![Arg::Value(flat), pads], grown.clone())
        });
        // A tensor that takes all of its memory says how the memory is looked at.
        let all = region.dtype == ty.dtype && region.layout.is_contiguous() && region.layout.offset.is(0);
        let ty = if all { region.clone() } else { grown };
        let value = self.build(node, |b, _| b.reshape(value, ty.clone()));
        self.storages.extend(storage, value, ty);
        Ok(())
    }
}

/// The error for memory that may have to grow by an unknown size.
fn unsure(node: &Node, what: &str) -> Halt {
    let what = format!("{} {what}, where memory may have to grow", node.op);
    with_sizes(what, ", or give the tensor its sizes where it is made")
}

/// A region of `size` bytes up to the end of a region.
fn cells(region: &TensorType, size: i64) -> Option<Expr> {
    let l = &region.layout;
    if let Some(known) = l.known() {
        let bytes = known.cell_range().end.checked_mul(region.dtype.size() as i64)?;
        return Some(Expr::Int((bytes.checked_add(size - 1)?) / size));
    }
    (l.is_contiguous() && region.dtype.size() as i64 == size).then(|| l.offset.plus(&l.numel()))
}

/// Whether a layout is row-major over some order of its dimensions, whatever the sizes are.
fn has_no_gaps(layout: &Layout<Expr>) -> bool {
    let mut left: Vec<usize> = (0..layout.rank()).filter(|d| !layout.sizes[*d].is(1)).collect();
    let mut expected = Expr::Int(1);
    while !left.is_empty() {
        let Some(at) = left.iter().rposition(|d| layout.strides[*d].equals(&expected) == Some(true)) else {
            return false;
        };
        expected = expected.times(&layout.sizes[left.remove(at)]);
    }
    true
}

/// Whether a view leaves the range of bytes of its base.
fn leaves(base: &Meta, view: &Meta) -> bool {
    let (b, r) = (base.layout.byte_range(base.dtype.size()), view.layout.byte_range(view.dtype.size()));
    b.zip(r).is_none_or(|(b, r)| r.start < b.start || r.end > b.end)
}
