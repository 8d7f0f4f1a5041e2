//! `auto_functionalized` and `auto_functionalized_v2`: a custom operator called on clones of the arguments that it mutates.
//!
//! The importer expands them as PyTorch runs them: clones with the original strides, views of the clones, and the operator on
//! those views. Functionalization then sees an ordinary mutating operator.

use super::damaged;
use super::nodes::GraphImporter;
use crate::model::{self, Argument};
use restride_ir::{
    Arg, ArgType, CollectTree, Dim, Error, Expr, Layout, Op, Origin, Result, SchemaArg, TensorType, Type, ValueId,
};
use restride_tensor::self_overlaps;
use std::collections::BTreeMap;
use std::sync::Arc;

type Keywords<'n> = BTreeMap<&'n str, &'n Argument>;

fn missing(name: &str) -> Error {
    damaged(format!("auto_functionalized lacks its argument {name}"))
}

impl GraphImporter<'_> {
    /// Reads one such node; `v2` with views of bases.
    pub(super) fn auto_functionalized(
        &mut self,
        source: &model::FileGraph,
        node: &model::FileNode,
        origin: Origin,
        v2: bool,
    ) -> Result<()> {
        let origin = Arc::new(origin);
        let Some(Argument::AsOperator(name)) = node.inputs.first().map(|i| &i.arg) else {
            return Err(Error::unsupported("auto_functionalized without an operator"));
        };
        let op = self.operator(name)?;
        let given: Keywords<'_> = node.inputs.iter().skip(1).map(|i| (i.name.as_str(), &i.arg)).collect_map();
        let mut bases: Vec<ValueId> = Vec::new();
        if let (true, Some(Argument::AsTensors(list))) = (v2, given.get("_all_bases")) {
            for t in list {
                let base = self.value(&t.name)?;
                bases.push(self.clone_as_laid(base, &origin)?);
            }
        }
        // Results of version 1: the clones of each mutated argument.
        let mut clones: Vec<Option<Vec<ValueId>>> = Vec::new();
        let mut out = false;
        let mut args = Vec::with_capacity(op.schema().args.len());
        for decl in &op.schema().args {
            args.push(if !crate::mutates(decl) {
                match given.get(decl.name.as_str()) {
                    Some(arg) => self.arg(arg, Some(decl.ty))?,
                    None => decl.default_arg().ok_or_else(|| missing(&decl.name))?,
                }
            } else if !v2 {
                let arg = given.get(decl.name.as_str()).ok_or_else(|| missing(&decl.name))?;
                let arg = self.arg(arg, Some(decl.ty))?;
                let cloned = arg.try_map(|v| self.clone_as_laid(*v, &origin), |e| Ok::<_, Error>(e.clone()))?;
                clones.push((cloned != Arg::None).then(|| cloned.values().copied().collect()));
                cloned
            } else if given.contains_key(format!("_{}_dtype", decl.name).as_str()) {
                out = true;
                self.empty_as_said(&decl.name, &given, &origin)?
            } else {
                self.views_as_said(decl, &given, &bases, &origin)?
            });
        }
        let own = op.schema().returns.len();
        let (first, contents) = node.outputs.split_at(own.max(1).min(node.outputs.len()));
        let mut results: Vec<(String, Type)> = Vec::new();
        for o in first.iter().take(own) {
            let found = self.named_type(source, o)?;
            results.push(found.ok_or_else(|| damaged(format!("a result of {op} that is not a tensor")))?);
        }
        let named = results.iter().map(|(n, ty)| (self.fresh(n), ty.clone())).collect();
        let id = self.add(op, args, named, origin);
        let made = self.graph().nodes[id].results.clone();
        for ((name, _), v) in results.into_iter().zip(made) {
            self.bind(name, v);
        }
        if out {
            return Ok(());
        }
        let clones = if v2 { bases.into_iter().map(|b| Some(vec![b])).collect() } else { clones };
        if contents.len() != clones.len() {
            return Err(damaged(format!("{} new contents of {} written", contents.len(), clones.len())));
        }
        for (output, values) in contents.iter().zip(clones) {
            let names = output.tensor_names();
            let values = values.unwrap_or_default();
            if names.len() != values.len() {
                return Err(damaged(format!("{} new contents of {} tensors", names.len(), values.len())));
            }
            for (name, v) in names.into_iter().zip(values) {
                self.bind(name.to_string(), v);
            }
        }
        Ok(())
    }

    /// Adds a call with one tensor result, arguments left out at their defaults.
    pub(super) fn call(
        &mut self,
        name: &str,
        mut args: Vec<Arg>,
        ty: TensorType,
        origin: &Arc<Origin>,
    ) -> Result<ValueId> {
        let op: Op = self.operator(name)?;
        op.fill_defaults_or_none(&mut args);
        let result = self.fresh(&op.schema().name.clone());
        let id = self.add(op, args, vec![(result, Type::Tensor(ty))], origin.clone());
        Ok(self.graph().nodes[id].results[0])
    }

    fn strided(&mut self, v: ValueId, ty: TensorType, origin: &Arc<Origin>) -> Result<ValueId> {
        let args = [vec![Arg::Value(v)], crate::as_strided_args(&ty.layout)].concat();
        self.call("aten.as_strided.default", args, ty, origin)
    }

    /// PyTorch's `clone_preserve_strides`: a clone with the strides and storage offset of the original.
    pub(super) fn clone_as_laid(&mut self, v: ValueId, origin: &Arc<Origin>) -> Result<ValueId> {
        let Type::Tensor(ty) = self.value_type(v).clone() else {
            return Err(damaged("a mutated argument that is not a tensor"));
        };
        if ty.layout.is_contiguous() && ty.layout.offset.is(0) {
            return self.call("aten.clone.default", vec![Arg::Value(v)], ty, origin);
        }
        let one = Expr::Int(1);
        let empty = ty.layout.sizes.iter().any(|n| n.is(0));
        let reach = ty.layout.sizes.iter().zip(&ty.layout.strides);
        let reach = reach.fold(ty.layout.offset.plus(&one), |e, (n, s)| e.plus(&n.minus(&one).times(s)));
        let reach = if empty { Expr::Int(0) } else { reach };
        let flat = TensorType::new(ty.dtype, Layout::strided(&[reach], &[one], Expr::Int(0)));
        let gaps = ty.layout.known().is_some_and(|l| !l.is_dense() || l.offset != 0);
        if gaps && ty.known().is_some_and(|t| self_overlaps(&t.layout) == Some(false)) {
            // Memory between the elements need not exist in an input.
            let args = vec![Arg::Scalars(flat.layout.sizes.to_vec()), Arg::Scalar(Expr::Int(0)), Arg::DType(ty.dtype)];
            let memory = self.call("aten.full.default", args, flat, origin)?;
            let clone = self.strided(memory, ty.clone(), origin)?;
            return self.call("aten.copy_.default", vec![Arg::Value(clone), Arg::Value(v)], ty, origin);
        }
        let whole = self.strided(v, flat.clone(), origin)?;
        let clone = self.call("aten.clone.default", vec![Arg::Value(whole)], flat, origin)?;
        self.strided(clone, ty, origin)
    }

    /// A mutated argument as views of the clones.
    fn views_as_said(
        &mut self,
        decl: &SchemaArg,
        given: &Keywords<'_>,
        bases: &[ValueId],
        origin: &Arc<Origin>,
    ) -> Result<Arg> {
        let prefix = format!("_{}", decl.name);
        if decl.ty == ArgType::Tensor {
            return Ok(self.view_as_said(&prefix, given, bases, origin)?.map_or(Arg::None, Arg::Value));
        }
        let length = format!("{prefix}_length");
        match given.get(length.as_str()) {
            Some(Argument::AsNone(_)) => Ok(Arg::None),
            Some(Argument::AsInt(n)) if (0..=given.len() as i64).contains(n) => Ok(Arg::Values(
                (0..*n)
                    .map(|i| self.view_as_said(&format!("{prefix}_{i}"), given, bases, origin))
                    .collect::<Result<_>>()?,
            )),
            _ => Err(missing(&length)),
        }
    }

    fn view_as_said(
        &mut self,
        prefix: &str,
        given: &Keywords<'_>,
        bases: &[ValueId],
        origin: &Arc<Origin>,
    ) -> Result<Option<ValueId>> {
        let key = |what: &str| format!("{prefix}_{what}");
        let base = match given.get(key("base_index").as_str()) {
            Some(Argument::AsNone(_)) => return Ok(None),
            Some(Argument::AsInt(i)) => usize::try_from(*i).ok().and_then(|i| bases.get(i)).copied(),
            _ => None,
        };
        let base = base.ok_or_else(|| missing(&key("base_index")))?;
        let Type::Tensor(ty) = self.value_type(base).clone() else { return Err(missing(&key("base_index"))) };
        if given.contains_key(key("storage_offset").as_str()) {
            let (sizes, strides) = (self.numbers(&key("size"), given)?, self.numbers(&key("stride"), given)?);
            if sizes.len() != strides.len() {
                return Err(damaged(format!("{prefix} has {} sizes and {} strides", sizes.len(), strides.len())));
            }
            let offset = self.one_number(&key("storage_offset"), given)?;
            let ty = TensorType::new(ty.dtype, Layout::strided(&sizes, &strides, offset));
            return self.strided(base, ty, origin).map(Some);
        }
        if !given.contains_key(key("slice_dim").as_str()) {
            // `alias` or the base itself, which behave alike.
            return Ok(Some(base));
        }
        let (dim, start) = (self.one_number(&key("slice_dim"), given)?, self.one_number(&key("slice_start"), given)?);
        let (end, step) = (self.one_number(&key("slice_end"), given)?, Expr::Int(1));
        let at = dim.known().filter(|d| usize::try_from(*d).is_ok_and(|d| d < ty.layout.rank()));
        let at = at.ok_or_else(|| damaged(format!("{prefix} is a slice of a dimension that its base lacks")))?;
        let layout = ty.layout.slice(at, Some(&start), Some(&end), &step).map_err(|e| damaged(e.to_string()))?;
        let args = [dim, start, end, step].into_iter().map(Arg::Scalar);
        let args = std::iter::once(Arg::Value(base)).chain(args).collect();
        self.call("aten.slice.Tensor", args, TensorType::new(ty.dtype, layout), origin).map(Some)
    }

    /// An `out=` argument: new memory of the file's sizes.
    fn empty_as_said(&mut self, name: &str, given: &Keywords<'_>, origin: &Arc<Origin>) -> Result<Arg> {
        let (sizes, strides) =
            (self.numbers(&format!("_{name}_size"), given)?, self.numbers(&format!("_{name}_stride"), given)?);
        let dtype = format!("_{name}_dtype");
        let dtype = match given.get(dtype.as_str()) {
            Some(Argument::AsScalarType(s)) => crate::dtype::computed(s.dtype()?)?,
            _ => return Err(missing(&dtype)),
        };
        if sizes.len() != strides.len() {
            return Err(damaged(format!("{name} has {} sizes and {} strides", sizes.len(), strides.len())));
        }
        let args = vec![Arg::Scalars(sizes.clone()), Arg::Scalars(strides.clone()), Arg::DType(dtype)];
        let ty = TensorType::new(dtype, Layout::strided(&sizes, &strides, Expr::Int(0)));
        self.call("aten.empty_strided.default", args, ty, origin).map(Arg::Value)
    }

    fn one_number(&mut self, name: &str, given: &Keywords<'_>) -> Result<Expr> {
        match self.numbers(name, given)?.as_slice() {
            [one] => Ok(one.clone()),
            _ => Err(damaged(format!("{name} is not one number"))),
        }
    }

    /// Numbers under a name.
    fn numbers(&mut self, name: &str, given: &Keywords<'_>) -> Result<Vec<Expr>> {
        let arg = given.get(name).ok_or_else(|| missing(name))?;
        match self.arg(arg, Some(ArgType::Ints(None)))? {
            Arg::Scalar(e) => Ok(vec![e]),
            Arg::Scalars(list) => Ok(list),
            Arg::Values(list) if list.is_empty() => Ok(Vec::new()),
            _ => Err(damaged(format!("{name} is not a list of numbers"))),
        }
    }
}
