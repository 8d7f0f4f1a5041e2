//! The end of the program: inputs get their new contents, and outputs become the tensors or views of eager PyTorch.

use super::strides::refuse;
use super::{ExportForm, Materializer, filled};
use restride_ir::{
    AliasRoot, Arg, CollectTree, Dim, Error, Expr, Layout, Meta, Origin, OutputKind, OutputSpec, Program, Result,
    TensorType, Type, ValueId, dense_like,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The program with these outputs as regions of inputs' new contents, and without nodes that only they need.
pub(super) fn taken_from_inputs(program: &Program, outputs: &BTreeSet<usize>) -> Program {
    let mut out = program.clone();
    let specs = &program.signature.outputs;
    for &k in outputs {
        let Some(AliasRoot::Input(i)) = specs[k].alias.as_ref().map(|a| a.root) else { continue };
        let new = specs.iter().position(|s| s.kind == OutputKind::Mutation(i));
        let held = new.map(|at| program.graph().outputs[at].clone());
        let input = Arg::Value(program.signature.inputs[i].value);
        out.graph_mut().outputs[k] = held.unwrap_or(input);
    }
    crate::dce::dce(&mut out);
    out
}

impl Materializer<'_> {
    /// Write-back and outputs.
    pub(super) fn finish(&mut self) -> Result<Vec<OutputSpec>> {
        let program = self.program;
        let outputs: Vec<(Arg, OutputSpec)> =
            self.old.outputs.iter().cloned().zip(program.signature.outputs.iter().cloned()).collect();
        let none: Arc<Origin> = Arc::default();
        // Copies to make: input, value.
        let mut copies: Vec<(usize, ValueId)> = Vec::new();
        for (arg, spec) in &outputs {
            let (OutputKind::Mutation(i), Arg::Value(v)) = (&spec.kind, arg) else { continue };
            let (input, v) = (self.value(program.signature.inputs[*i].value)?, self.value(*v)?);
            if self.facts[v].identity == self.facts[input].identity && self.facts[v].identity.is_some() {
                self.counts.written_back += 1;
            } else {
                copies.push((*i, v));
                self.counts.copied_back += 1;
            }
        }
        let mut overwritten: BTreeSet<usize> = BTreeSet::new();
        for (i, _) in &copies {
            let input = self.value(program.signature.inputs[*i].value)?;
            overwritten.extend(&self.facts[input].roots);
        }
        // Values that the copies would change under our hands are saved first.
        let mut saved: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for copy in &mut copies {
            copy.1 = self.save(&mut saved, &overwritten, copy.1, &none)?;
        }
        let mut users: Vec<(usize, Arg)> = Vec::new();
        for (k, (arg, spec)) in outputs.iter().enumerate() {
            if !matches!(spec.kind, OutputKind::User | OutputKind::Loss | OutputKind::Gradient(_)) {
                continue;
            }
            let of_input = matches!(spec.alias.as_ref().map(|a| a.root), Some(AliasRoot::Input(_)));
            let mut arg = arg.try_map(|v| self.value(*v), |e| Ok::<_, Error>(e.clone()))?;
            if let Arg::Value(v) = arg
                && !of_input
            {
                arg = Arg::Value(self.save(&mut saved, &overwritten, v, &none)?);
            }
            users.push((k, arg));
        }
        // So is the memory that several outputs share.
        for (arg, spec) in &outputs {
            if let (OutputKind::Base, Arg::Value(v)) = (&spec.kind, arg) {
                let base = self.value(*v)?;
                self.save(&mut saved, &overwritten, base, &none)?;
            }
        }
        let mut specs = Vec::new();
        let mut made = Vec::new();
        for (i, v) in copies {
            if self.form == ExportForm::Slices {
                made.push(Arg::Value(v));
                specs.push(OutputSpec { kind: OutputKind::Mutation(i), alias: None });
                continue;
            }
            let input = self.value(program.signature.inputs[i].value)?;
            let (op, args) = filled("aten.copy_.default", vec![Arg::Value(input), Arg::Value(v)])?;
            let name = self.names.fresh("write_back");
            let ty = self.new.values[input].ty.clone();
            self.new.add_node(op, args, [(name, ty)], none.clone());
        }
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        let inputs: BTreeSet<usize> =
            self.specs.iter().flat_map(|s| self.facts[s.value].roots.iter().copied()).collect_set();
        let mut bases: BTreeMap<usize, ValueId> = BTreeMap::new();
        for (k, arg) in users {
            let spec = &outputs[k].1;
            let arg = match arg {
                Arg::Value(v) if self.new.values[v].ty.tensor().is_some() => {
                    Arg::Value(self.user(k, spec, v, &outputs, &inputs, &saved, &mut taken, &mut bases)?)
                }
                other => other,
            };
            made.push(arg);
            specs.push(OutputSpec { kind: spec.kind.clone(), alias: None });
        }
        for (_, spec) in &outputs {
            let (OutputKind::Metadata(i), Some(alias)) = (&spec.kind, &spec.alias) else { continue };
            self.becomes(*i, alias)?;
        }
        self.new.outputs = made;
        Ok(specs)
    }

    /// The value, or a copy of it if its memory is about to be overwritten.
    fn save(
        &mut self,
        saved: &mut BTreeMap<ValueId, ValueId>,
        overwritten: &BTreeSet<usize>,
        v: ValueId,
        origin: &Arc<Origin>,
    ) -> Result<ValueId> {
        if self.facts[v].roots.is_disjoint(overwritten) {
            return Ok(v);
        }
        if let Some(copy) = saved.get(&v) {
            return Ok(*copy);
        }
        let copy = self.clone_of(v, origin)?;
        saved.insert(v, copy);
        Ok(copy)
    }

    fn clone_of(&mut self, v: ValueId, origin: &Arc<Origin>) -> Result<ValueId> {
        let ty = self.new.tensor(v).clone();
        if self.facts[v].sure
            && let Some(copy) = self.copy_of(v, &ty, origin)?
        {
            return Ok(copy);
        }
        // A tensor that shows cells several times, or not all of them, is copied to a cell for each index.
        let ty = match ty.known() {
            Some(known) => Meta::new(known.dtype, dense_like(&known.layout)).into(),
            None => ty,
        };
        let hint = self.new.values[v].name.clone();
        let copy = self.build(origin, &hint, |b| b.call("aten.clone.default", vec![Arg::Value(v)], ty));
        self.own(copy, false);
        self.copied += self.bytes(copy);
        Ok(copy)
    }

    /// A user output: in the memory that eager PyTorch has it in.
    #[allow(clippy::too_many_arguments)]
    fn user(
        &mut self,
        k: usize,
        spec: &OutputSpec,
        v: ValueId,
        outputs: &[(Arg, OutputSpec)],
        inputs: &BTreeSet<usize>,
        saved: &BTreeMap<ValueId, ValueId>,
        taken: &mut BTreeSet<usize>,
        bases: &mut BTreeMap<usize, ValueId>,
    ) -> Result<ValueId> {
        let none: Arc<Origin> = Arc::default();
        let Arg::Value(old) = outputs[k].0 else { return Ok(v) };
        let want = self.old.tensor(old).clone();
        match &spec.alias {
            Some(alias) => {
                let root = match alias.root {
                    AliasRoot::Input(i) => self.value(self.program.signature.inputs[i].value)?,
                    AliasRoot::Base(at) => match (bases.get(&at), &outputs[at].0) {
                        (Some(base), _) => *base,
                        (None, Arg::Value(b)) => {
                            let b_old = *b;
                            let mut base = self.value(b_old)?;
                            base = saved.get(&base).copied().unwrap_or(base);
                            let ty = self.old.tensor(b_old).clone();
                            let own =
                                self.facts[base].roots.is_disjoint(inputs) && self.facts[base].roots.is_disjoint(taken);
                            let starts = self.new.tensor(base).layout.offset == ty.layout.offset;
                            if own && (!self.has_strides_of(base, &ty) || !starts) {
                                self.showing.push(b_old);
                            }
                            if !own || !self.has_strides_of(base, &ty) || !starts {
                                // A storage of its own that starts where the base is said to start: cells from 0 on.
                                if ty.layout.offset != restride_ir::Expr::Int(0) {
                                    return Err(Error::unsupported(
                                        "unsupported: two outputs alias each other, and their memory does not start at its first element",
                                    ));
                                }
                                base = self.copy_of(base, &ty, &none)?.ok_or_else(|| {
                                    Error::unsupported("unsupported: two outputs alias each other through an overlapping (`expand`ed) view")
                                })?;
                            }
                            taken.extend(self.facts[base].roots.iter().copied());
                            bases.insert(at, base);
                            base
                        }
                        _ => return Err(Error::invalid("a base that is no tensor")),
                    },
                };
                let target = TensorType::new(alias.dtype, alias.layout.clone());
                if self.ctx.regions.contains(&k) {
                    return self.region(root, &target);
                }
                // Views of an input follow its real strides; a value that is such a view already is returned.
                let (have, of) = (&self.facts[v], &self.facts[root]);
                if have.roots == of.roots
                    && self.has_strides_of(v, &want)
                    && self.new.tensor(v).layout.offset == target.layout.offset
                {
                    return Ok(v);
                }
                if matches!(alias.root, AliasRoot::Input(_)) {
                    self.regions.insert(k);
                }
                self.region(root, &target)
            }
            None => {
                let roots = self.facts[v].roots.clone();
                let own = roots.is_disjoint(inputs) && roots.is_disjoint(taken);
                if own && !self.has_strides_of(v, &want) {
                    self.showing.push(old);
                }
                let v = if !own || !self.has_strides_of(v, &want) {
                    match self.copy_of(v, &want, &none)? {
                        Some(copy) => copy,
                        None if own => v,
                        None => self.clone_of(v, &none)?,
                    }
                } else {
                    v
                };
                taken.extend(self.facts[v].roots.iter().copied());
                Ok(v)
            }
        }
    }

    /// A region of a tensor's storage.
    fn region(&mut self, root: ValueId, target: &TensorType) -> Result<ValueId> {
        let have = self.new.tensor(root).clone();
        if have == *target {
            return Ok(root);
        }
        if !self.facts[root].sure {
            return Err(refuse(filled("aten.as_strided.default", Vec::new())?.0));
        }
        let hint = format!("{}_view", self.new.values[root].name);
        let target = target.clone();
        let roots = self.facts[root].roots.clone();
        let none: Arc<Origin> = Arc::default();
        let mut base = root;
        if have.dtype != target.dtype {
            let ty = |dtype, cells: usize| TensorType::new(dtype, Layout::contiguous(&[Expr::Int(cells as i64)]));
            // The storage's first bytes: one element of the larger type, some of the smaller one; none for no elements.
            let some = usize::from(!target.layout.numel().is(0));
            let (a, b) = (have.dtype.size(), target.dtype.size());
            let (from, to) = (ty(have.dtype, some * b.div_ceil(a)), ty(target.dtype, some * a.div_ceil(b)));
            let first = self.build(&none, &hint, |b| b.as_strided(base, from));
            let args = vec![Arg::Value(first), Arg::DType(target.dtype)];
            base = self.build(&none, &hint, |b| b.call("aten.view.dtype", args, to));
        }
        let v = self.build(&none, &hint, |b| b.as_strided(base, target));
        self.set_fact(v, roots, true);
        Ok(v)
    }

    /// The tensor object of an input becomes another view of its storage.
    fn becomes(&mut self, input: usize, alias: &restride_ir::OutputAlias) -> Result<()> {
        let AliasRoot::Input(of) = alias.root else {
            return Err(Error::unsupported("unsupported: an input becomes a view of another tensor's memory"));
        };
        let (v, root) = (
            self.value(self.program.signature.inputs[input].value)?,
            self.value(self.program.signature.inputs[of].value)?,
        );
        let dtype = self.new.tensor(v).dtype;
        if self.facts[v].roots != self.facts[root].roots || dtype != alias.dtype {
            return Err(Error::unsupported("unsupported: an input becomes a view of another tensor's memory"));
        }
        let args = vec![
            Arg::Value(v),
            Arg::Scalars(alias.layout.sizes.to_vec()),
            Arg::Scalars(alias.layout.strides.to_vec()),
            Arg::Scalar(alias.layout.offset.clone()),
        ];
        let (op, args) = filled("aten.as_strided_.default", args)?;
        let name = self.names.fresh(&self.new.values[v].name.clone());
        let ty = Type::Tensor(TensorType::new(alias.dtype, alias.layout.clone()));
        self.new.add_node(op, args, [(name, ty)], Arc::default());
        Ok(())
    }
}
