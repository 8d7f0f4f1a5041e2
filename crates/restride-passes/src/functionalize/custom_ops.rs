//! Calls of users' operators that write their arguments.
//!
//! Such an operator is opaque, so it is called on the storages. Its functional form takes the current content of each
//! storage that it writes, with the views that the arguments are, and returns the new contents. Arguments that share memory
//! reach the operator sharing memory.

use super::rewrite::{NewValue, Rewrite, Rewriter};
use super::shared_region::SharedRegion;
use super::storages::{AliasId, StorageId};
use restride_ir::{Arg, Error, Node, Op, SchemaArg, TensorType, Type, ValueId};
use restride_ops::{CustomArg, CustomView, encode_views};
use std::sync::Arc;

/// A storage that a call writes.
struct CustomBase {
    storage: StorageId,
    /// Its content in the element type of the views.
    value: ValueId,
    ty: SharedRegion,
    /// The region of the storage that the operator writes.
    regions: Vec<SharedRegion>,
}

fn writes(arg: &SchemaArg) -> bool {
    arg.alias.as_ref().is_some_and(|a| a.write)
}

impl Rewriter<'_> {
    /// A call of a user's operator becomes one of its form over bases.
    pub(super) fn custom(&mut self, node: &Node, form: Op) -> Rewrite<()> {
        self.reads_apart(node)?;
        let schema = node.op.schema();
        let mut bases: Vec<CustomBase> = Vec::new();
        let mut written = Vec::new();
        let mut rest = Vec::new();
        for (i, decl) in schema.args.iter().enumerate() {
            let arg = node.args.get(i).unwrap_or(&Arg::None);
            if !writes(decl) {
                rest.push(self.declared_arg(node, arg)?);
                continue;
            }
            let list = decl.ty != restride_ir::ArgType::Tensor;
            written.push(match arg {
                Arg::None if list => CustomArg::List(None),
                Arg::None => CustomArg::One(CustomView::None),
                Arg::Value(v) if !list => CustomArg::One(self.view_of(node, *v, &mut bases)?),
                Arg::Values(vs) if list => {
                    let one = |v: &Option<ValueId>| match v {
                        Some(v) => self.view_of(node, *v, &mut bases),
                        None => Ok(CustomView::None),
                    };
                    CustomArg::List(Some(vs.iter().map(one).collect::<Rewrite<_>>()?))
                }
                Arg::Scalars(s) if list && s.is_empty() => CustomArg::List(Some(Vec::new())),
                _ => return Err(Error::invalid(format!("argument {} of {} is no tensor", decl.name, node.op)).into()),
            });
        }
        let mut args =
            vec![Arg::Values(bases.iter().map(|b| Some(b.value)).collect()), Arg::Scalars(encode_views(&written))];
        args.append(&mut rest);

        let fresh: Vec<ValueId> =
            node.results.iter().zip(&schema.returns).filter(|(_, r)| r.alias.is_none()).map(|(v, _)| *v).collect();
        let mut results: Vec<(Arc<str>, Type)> = Vec::new();
        for &r in &fresh {
            let v = &self.old.values[r];
            results.push((self.names.fresh(&v.name), v.ty.clone()));
        }
        for b in &bases {
            let name = self.new.values[b.value].name.clone();
            results.push((self.names.fresh(&name), Type::Tensor(TensorType::clone(&b.ty))));
        }
        let id = self.new.add_node(form, args, results, node.origin.clone());
        let made = self.new.nodes[id].results.clone();
        let (own, contents) = made.split_at(fresh.len());
        for (&old, &new) in fresh.iter().zip(own) {
            self.bind_fresh(old, new);
        }
        for (base, &content) in bases.into_iter().zip(contents) {
            self.build(node, |b, s| s.update(b, base.storage, content, &base.regions))?;
        }
        self.returned(node)
    }

    /// Results that are arguments stay those tensors.
    fn returned(&mut self, node: &Node) -> Rewrite<()> {
        let schema = node.op.schema();
        for (&r, decl) in node.results.iter().zip(&schema.returns) {
            let Some(alias) = &decl.alias else { continue };
            let of = schema.args.iter().position(|a| {
                writes(a) && a.alias.as_ref().is_some_and(|x| x.sets.iter().any(|s| alias.sets.contains(s)))
            });
            let Some(Arg::Value(v)) = of.and_then(|i| node.args.get(i)) else {
                return Err(Error::invalid(format!("{} returns an argument that is no tensor", node.op)).into());
            };
            let bound = self.map[*v];
            self.map.set(r, bound);
        }
        Ok(())
    }

    /// The view and storage of a written argument; notes that the call writes the storage.
    fn view_of(&mut self, node: &Node, value: ValueId, bases: &mut Vec<CustomBase>) -> Rewrite<CustomView> {
        let alias = self.alias(value)?;
        self.certain(alias)?;
        let a = self.storages[alias].clone();
        let refuse = |why: &str| Error::unsupported(format!("{} of {why}", node.op)).help("clone it before the call");
        if a.conj || a.neg {
            return Err(refuse("a lazily conjugated or negated tensor").into());
        }
        let at = match bases.iter().position(|b| b.storage == a.storage) {
            Some(at) if bases[at].ty.dtype == a.ty.dtype => at,
            Some(_) => return Err(refuse("views of one storage with several element types").into()),
            None => {
                let (value, ty) = self.build(node, |b, s| s.content(b, a.storage, a.ty.dtype))?;
                bases.push(CustomBase { storage: a.storage, value, ty, regions: Vec::new() });
                bases.len() - 1
            }
        };
        let base = &mut bases[at];
        base.regions.push(a.ty.clone());
        if a.ty.layout == base.ty.layout {
            return Ok(CustomView::Base(at));
        }
        Ok(CustomView::Strided(at, a.ty.layout.clone()))
    }

    /// An argument that is only read is passed by value, so none of it may be in memory that the operator writes.
    fn reads_apart(&self, node: &Node) -> Rewrite<()> {
        let schema = node.op.schema();
        let aliases = |written: bool| -> Vec<(usize, AliasId)> {
            let args = node.args.iter().zip(&schema.args).enumerate().filter(|(_, (_, d))| writes(d) == written);
            args.flat_map(|(i, (a, _))| a.values().map(move |v| (i, *v)))
                .filter_map(|(i, v)| match self.map[v] {
                    Some(NewValue::Object(o)) => Some((i, self.objects[o])),
                    _ => None,
                })
                .collect()
        };
        let read = aliases(false);
        for (i, target) in aliases(true) {
            if let Some((k, _)) = read.iter().find(|(_, r)| !self.storages.disjoint(target, *r)) {
                let name = |i: usize| schema.args[i].name.as_str();
                let what = format!("{} writes {} and reads {}, which may share memory", node.op, name(i), name(*k));
                return Err(Error::unsupported(what).help("clone the argument that is read before the call").into());
            }
        }
        Ok(())
    }
}
