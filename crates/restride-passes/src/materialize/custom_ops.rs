//! Users' operators that write arguments: called on the memory itself if no other node reads it.
//!
//! The functional form takes the contents of storages and the views of them that the arguments are, and returns the new
//! contents. Here the operator is called on those views: of the memory of the content, if that may be overwritten and has
//! the declared layout, and of a copy otherwise.

use super::strides::refuse;
use super::{Destination, ExportForm, Materializer};
use restride_ir::{Arg, Dim, Error, Expr, Node, Op, Result, TensorType, Type, ValueId};
use restride_ops::{CustomArg, CustomView, custom_form_of, decode_views};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Materializer<'_> {
    /// A call of a user's operator over bases becomes a call on memory.
    pub(super) fn custom(&mut self, at: usize, node: &Node) -> Result<bool> {
        let Some(op) = custom_form_of(node.op).filter(|_| self.form == ExportForm::InPlace) else { return Ok(false) };
        let bad = || Error::invalid(format!("{} is not called as a functional form is", node.op));
        let [Arg::Values(bases), views, rest @ ..] = &node.args[..] else { return Err(bad()) };
        let bases: Vec<ValueId> = bases.iter().map(|b| b.ok_or_else(bad)).collect::<Result<_>>()?;
        let written = decode_views(op, views.scalars(), bases.len())?;
        let own = node.results.len().checked_sub(bases.len()).ok_or_else(bad)?;
        let (results, contents) = node.results.split_at(own);

        // The operator may depend on strides, and must find the operands that it reads unchanged.
        let mut read = Vec::with_capacity(rest.len());
        for arg in rest {
            read.push(arg.try_map(|v| self.as_declared(*v, node, op), |e| Ok::<_, Error>(e.clone()))?);
        }
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        for v in read.iter().flat_map(Arg::values) {
            taken.extend(&self.facts[*v].roots);
        }
        let mut memory: Vec<ValueId> = Vec::with_capacity(bases.len());
        for (&base, &content) in bases.iter().zip(contents) {
            // Later bases must not share memory that becomes new content here.
            let mut others = taken.clone();
            for other in bases.iter().skip(memory.len() + 1) {
                others.extend(&self.facts[self.value(*other)?].roots);
            }
            let v = self.memory_for(at, node, op, (base, content), &others)?;
            taken.extend(&self.facts[v].roots);
            memory.push(v);
        }
        let mut given = Vec::with_capacity(written.len());
        for arg in &written {
            given.push(match arg {
                CustomArg::One(view) => self.written_view(node, view, &bases, &memory)?.map_or(Arg::None, Arg::Value),
                CustomArg::List(None) => Arg::None,
                CustomArg::List(Some(list)) => {
                    let one = |view: &CustomView| self.written_view(node, view, &bases, &memory);
                    Arg::Values(list.iter().map(one).collect::<Result<_>>()?)
                }
            });
        }

        let schema = op.schema();
        let writes = |a: &restride_ir::SchemaArg| a.alias.as_ref().is_some_and(|x| x.write);
        let (mut given, mut read) = (given.into_iter(), read.into_iter());
        let mut args = Vec::with_capacity(schema.args.len());
        for decl in &schema.args {
            let next = if writes(decl) { given.next() } else { read.next() };
            args.push(next.or_else(|| decl.default_arg()).ok_or_else(bad)?);
        }
        let mut fresh = results.iter();
        let mut made: Vec<(Arc<str>, Type)> = Vec::new();
        let mut bound = Vec::new();
        for decl in &schema.returns {
            match &decl.alias {
                None => {
                    let old = *fresh.next().ok_or_else(bad)?;
                    let value = &self.old.values[old];
                    bound.push(Some(old));
                    made.push((self.names.fresh(&value.name), value.ty.clone()));
                }
                Some(alias) => {
                    let is = |a: &restride_ir::SchemaArg| {
                        writes(a) && a.alias.as_ref().is_some_and(|x| x.sets.iter().any(|s| alias.sets.contains(s)))
                    };
                    let of = schema.args.iter().position(is).and_then(|i| args.get(i));
                    let Some(Arg::Value(v)) = of else { return Err(bad()) };
                    let value = &self.new.values[*v];
                    let (name, ty) = (value.name.clone(), value.ty.clone());
                    bound.push(None);
                    made.push((self.names.fresh(&name), ty));
                }
            }
        }
        let id = self.new.add_node(op, args, made, node.origin.clone());
        let made = self.new.nodes[id].results.clone();
        for (old, &new) in bound.into_iter().zip(&made) {
            let Some(old) = old else { continue };
            if self.new.values[new].ty.tensor().is_some() {
                // The operator got the exporter's operands, and returns the results that the exporter recorded.
                self.own(new, true);
            }
            self.bind(old, new);
        }
        for (&content, &v) in contents.iter().zip(&memory) {
            self.bind(content, v);
        }
        Ok(true)
    }

    /// A value with its declared layout: itself, or a copy.
    fn as_declared(&mut self, old: ValueId, node: &Node, op: Op) -> Result<ValueId> {
        let new = self.value(old)?;
        let Some(want) = self.old.values[old].ty.tensor().cloned() else { return Ok(new) };
        if self.has_strides_of(new, &want) || !self.facts[new].sure {
            return Ok(new);
        }
        self.showing.push(old);
        self.copy_of(new, &want, &node.origin)?.ok_or_else(|| refuse(op))
    }

    /// Memory that holds a base's content, is laid out as the base is declared, and may become the new content; it has nothing
    /// in common with `others`.
    fn memory_for(
        &mut self,
        at: usize,
        node: &Node,
        op: Op,
        (base, content): (ValueId, ValueId),
        others: &BTreeSet<usize>,
    ) -> Result<ValueId> {
        let want = self.old.tensor(base).clone();
        let have = self.value(base)?;
        let apart = |m: &Self, v: ValueId| m.facts[v].roots.is_disjoint(others);
        if self.may_overwrite(at, have, None)
            && self.has_strides_of(have, &want)
            && apart(self, have)
            && !self.misplaced(content, have)
        {
            self.counts.in_place += 1;
            return Ok(have);
        }
        // The memory of an input that becomes the new content takes the copy.
        if let Some(Destination::Input(i)) = self.wants.get(&content).copied() {
            let input = self.value(self.input(i))?;
            if self.new.values[input].ty.tensor().is_some()
                && self.may_overwrite(at, input, None)
                && self.has_strides_of(input, &want)
                && apart(self, input)
                && self.facts[input].roots.is_disjoint(&self.facts[have].roots)
            {
                self.copy_into(input, have, node)?;
                self.counts.straight += 1;
                return Ok(input);
            }
        }
        let ty = TensorType::new(want.dtype, want.layout.clone());
        self.copy_of(have, &ty, &node.origin)?.ok_or_else(|| refuse(op))
    }

    /// The view of a base's memory that an argument is.
    fn written_view(
        &mut self,
        node: &Node,
        view: &CustomView,
        bases: &[ValueId],
        memory: &[ValueId],
    ) -> Result<Option<ValueId>> {
        let (base, layout) = match view {
            CustomView::None => return Ok(None),
            CustomView::Base(b) => return Ok(Some(memory[*b])),
            CustomView::Strided(b, layout) => (*b, layout),
        };
        let (want, have) = (self.old.tensor(bases[base]).clone(), self.new.tensor(memory[base]).clone());
        let mut layout = layout.clone();
        layout.offset = layout.offset.minus(&want.layout.offset).plus(&have.layout.offset);
        let ty = TensorType::new(have.dtype, layout);
        let args = vec![
            Arg::Value(memory[base]),
            Arg::Scalars(ty.layout.sizes.to_vec()),
            Arg::Scalars(ty.layout.strides.to_vec()),
            Arg::Scalar(Expr::clone(&ty.layout.offset)),
        ];
        let hint = format!("{}_region", self.new.values[memory[base]].name);
        self.view("aten.as_strided.default", args, ty, &hint, memory[base], node).map(Some)
    }
}
