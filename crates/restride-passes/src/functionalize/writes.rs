//! Mutating calls: the functional twin, and its results written where they belong. Lists are taken apart into their
//! members.

use super::histories::saves;
use super::rewrite::{Halt, NewValue, Rewrite, Rewriter, op, open_sharing};
use super::shared_region::SharedRegion;
use super::storages::AliasId;
use super::write_order::WriteOrder;
use crate::args::symbolic_views;
use restride_ir::{
    Arg, Args, Binding, Dim, Dims, Error, ErrorKind, Expr, Kernel, Node, Op, OpError, OperandMemory, OutSize, Scalar,
    Symbol, TensorType, Twin, TwinReturn, ValueId, refuse_cast, refuse_overlap,
};
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Rewriter<'_> {
    /// `_foreach_*_`: the member operator on each member, in order.
    pub(super) fn foreach(&mut self, node: &Node, member: Op) -> Rewrite<()> {
        let count = node.args.iter().filter_map(|a| if let Arg::Values(v) = a { Some(v.len()) } else { None }).max();
        // Lazily mapped tensors that are only read are copied before the first member runs.
        let schema = &node.op.schema().args;
        let mut all = node.args.clone();
        for (i, arg) in all.iter_mut().enumerate() {
            if !schema.get(i).and_then(|a| a.alias.as_ref()).is_some_and(|a| a.write) {
                *arg = arg.try_map(
                    |v| if self.bits(*v)?.is_clear() { Ok(*v) } else { self.settled(node, *v) },
                    |e| Ok::<_, Halt>(e.clone()),
                )?;
            }
        }
        for i in 0..count.unwrap_or(0) {
            let item = |list: &ValueId, i: usize| {
                self.item(node, *list, i).map_err(|stop| match stop {
                    Halt::Error(e) => OpError::new(e.what),
                    Halt::NeedsSizes(e) => OpError::new(e.what),
                    Halt::NeedsStorage(_) | Halt::NeedsRoom(..) => OpError::new("a list of numbers that is not known"),
                })
            };
            let mut args = node.op.member_args(&all, i, item)?;
            member.fill_defaults_or_none(&mut args);
            let mutates = member.mutates(&args);
            let results = if mutates { Default::default() } else { node.results.get(i).copied().into_iter().collect() };
            let one = Node { op: member, args, results, origin: node.origin.clone() };
            self.node(&one)?;
        }
        // A call that writes returns the list that it wrote, or nothing.
        if node.op.mutates(&node.args)
            && let Some(Arg::Values(list)) = node.args.first()
        {
            for (&r, &v) in node.results.iter().zip(list.iter().flatten()) {
                let bound = self.map[v];
                self.map.set(r, bound);
            }
        }
        Ok(())
    }

    /// Element `i` of a 1-d tensor, under an id of its own that no old value has.
    fn item(&mut self, node: &Node, list: ValueId, i: usize) -> Rewrite<ValueId> {
        let whole = self.read(node, list)?;
        let ty = self.new.tensor(whole).clone();
        let at = Expr::Int(i as i64);
        let layout = ty.layout.select(0, &at).map_err(restride_ir::OpError::from)?;
        let args = vec![Arg::Value(whole), Arg::Scalar(Expr::Int(0)), Arg::Scalar(at)];
        let value = self.build(node, |b, _| b.call("aten.select.int", args, TensorType::new(ty.dtype, layout)));
        Ok(self.bind_new(value))
    }

    /// A mutating call: its functional twin, and the results written where they belong.
    pub(super) fn mutate(&mut self, node: &Node, twin: &Twin) -> Rewrite<()> {
        refuse_overlap(twin, &node.args, |v| self.memory(v), |arg, result| self.out_size(node, twin, arg, result))?;
        self.refuse_possible_overlap(node, twin)?;
        self.refuse_open_write(node, twin)?;
        self.record_through(node, twin)?;
        self.prove_single_cells(node, twin)?;
        if self.copies_itself(node, twin)? {
            return self.bind_returns(node, twin, &[]);
        }
        if !twin.op.can_run() {
            self.apart(node, twin)?;
        }
        match self.way(node, twin)? {
            WriteOrder::Aside => self.mutate_aside(node, twin),
            WriteOrder::Rounds(rounds) => self.mutate_in_rounds(node, twin, &rounds),
            WriteOrder::Once => {
                let args = self.twin_args(node, twin)?;
                self.twin_call(node, twin, args)
            }
        }
    }

    /// Whether a call copies a tensor onto itself, or onto an alias of the same elements: PyTorch does nothing then.
    fn copies_itself(&self, node: &Node, twin: &Twin) -> Rewrite<bool> {
        let (true, [Arg::Value(target), Arg::Value(source), ..]) = (twin.op.def().maps_bits, &node.args[..]) else {
            return Ok(false);
        };
        let (a, b) = (&self.storages[self.alias(*target)?], &self.storages[self.alias(*source)?]);
        let same = a.storage == b.storage && a.ty == b.ty && (a.conj, a.neg) == (b.conj, b.neg);
        // A copy of a detached tensor leaves the elements and takes the history.
        Ok(same && (node.origin.no_grad || (a.root, a.constant) == (b.root, b.constant)))
    }

    fn twin_args(&mut self, node: &Node, twin: &Twin) -> Rewrite<Vec<Arg>> {
        let mut args = Vec::with_capacity(twin.op.schema().args.len());
        for &i in &twin.args {
            args.push(self.read_arg(node, &node.args[i as usize])?);
        }
        Ok(args)
    }

    /// A write of a copy, and the copy's way back.
    fn mutate_aside(&mut self, node: &Node, twin: &Twin) -> Rewrite<()> {
        let (arg, result) = (twin.writes[0].0 as usize, twin.writes[0].1 as usize);
        let Some(Arg::Value(target)) = node.args.get(arg) else { return Ok(()) };
        let ty = self.storages[self.alias(*target)?].ty.clone();
        let args = self.twin_args(node, twin)?;
        let dense = TensorType::contiguous(ty.dtype, &ty.layout.sizes);
        let values = self.call_twin(node, twin, args, &[(arg, dense.into())])?;
        let value = self.cast(node, values[result], &ty)?;
        let value = self.bind_new(value);
        let copy = op("aten.copy_.default");
        let mut args = vec![Arg::Value(*target), Arg::Value(value)];
        copy.fill_defaults_or_none(&mut args);
        self.node(&Node { op: copy, args, results: Default::default(), origin: node.origin.clone() })?;
        self.bind_returns(node, twin, &values)
    }

    /// The order of work inside an operator that is known by its schema alone is unknown: memory that it writes must be
    /// apart from its other arguments.
    fn apart(&self, node: &Node, twin: &Twin) -> Rewrite<()> {
        for &(arg, _) in &twin.writes {
            for v in node.args[arg as usize].values() {
                let target = self.alias(*v)?;
                for (i, other) in node.args.iter().enumerate().filter(|(i, _)| *i != arg as usize) {
                    for w in other.values() {
                        let Some(NewValue::Object(o)) = self.map[*w] else { continue };
                        if !self.storages.disjoint(target, self.objects[o]) {
                            let what =
                                format!("arguments {arg} and {i} of {} may share memory, and it writes", node.op);
                            return Err(Error::unsupported(what).help("clone one of them before the call").into());
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Refuses a call that eager PyTorch refuses if an operand is in the target's memory, where an earlier call leaves open
    /// whether it is.
    fn refuse_possible_overlap(&self, node: &Node, twin: &Twin) -> Rewrite<()> {
        for target in twin.writes.iter().filter_map(|w| node.args.get(w.0 as usize)).flat_map(Arg::values) {
            let Some(NewValue::Object(object)) = self.map[*target] else { continue };
            let own = &self.storages[self.objects[object]];
            let (possible, objects) = (self.storages.maybe_same(own.storage), self.maybe_objects(object));
            if possible.is_empty() && objects.is_empty() {
                continue;
            }
            let see = |v: &ValueId| {
                let Some(NewValue::Object(o)) = self.map[*v] else { return None };
                let a = &self.storages[self.objects[o]];
                // A body that returns what it is given returns the tensor itself.
                let (call, same) = match objects.iter().find(|p| p.0 == o) {
                    Some((_, call)) => (*call, object),
                    None => {
                        let call = possible.iter().find(|p| p.0 == a.storage).map(|p| p.1)?;
                        (call, if a.ty.layout == own.ty.layout { object } else { o })
                    }
                };
                Some((call, OperandMemory::new(&a.ty, own.storage.0, same).with_bits(a.eager_bits())))
            };
            let Some((call, _)) = node.args.iter().flat_map(Arg::values).find_map(see) else { continue };
            let see = |v: &ValueId| see(v).map(|s| s.1).or_else(|| self.memory(v));
            if refuse_overlap(twin, &node.args, see, |arg, result| self.out_size(node, twin, arg, result)).is_err() {
                return Err(open_sharing(call));
            }
        }
        Ok(())
    }

    /// What a call makes of the sizes of an `out=`.
    pub(super) fn out_size(&self, node: &Node, twin: &Twin, arg: u8, result: u8) -> OutSize {
        let Some(Arg::Value(target)) = node.args.get(arg as usize) else { return OutSize::Kept };
        if !twin.resizes || self.reads_target(node, twin, arg as usize) {
            return OutSize::Kept;
        }
        let mut args: Vec<Arg> = twin.args.iter().map(|&i| node.args[i as usize].clone()).collect();
        twin.op.fill_defaults_or_none(&mut args);
        let of = |v: ValueId| match self.map[v] {
            Some(NewValue::Object(o)) => Ok(&*self.storages[self.objects[o]].ty),
            _ => Ok(self.old.tensor(v)),
        };
        let made = infer_types(of, twin.op, &args, || self.witness()).ok().flatten();
        let (Some(made), Ok(alias)) = (made.as_ref().and_then(|m| m.get(result as usize)), self.alias(*target)) else {
            return OutSize::Unknown;
        };
        let have = &self.storages[alias].ty.layout.sizes;
        let Some(sizes) = &made.sizes else { return OutSize::Unknown };
        let same = || sizes.iter().zip(have).map(|(a, b)| a.equals(b)).collect::<Vec<_>>();
        match (sizes.len() == have.len()).then(same) {
            Some(same) if same.iter().all(|s| *s == Some(true)) => OutSize::Kept,
            Some(same) if !same.contains(&Some(false)) => OutSize::Unknown,
            _ => match sizes.iter().map(Expr::known).product::<Option<i64>>() {
                Some(count) => OutSize::Resized(count),
                None => OutSize::Unknown,
            },
        }
    }

    /// An argument's memory, as eager PyTorch's checks see it.
    fn memory(&self, v: &ValueId) -> Option<OperandMemory> {
        let Some(NewValue::Object(o)) = self.map[*v] else { return None };
        let a = &self.storages[self.objects[o]];
        Some(OperandMemory::new(&a.ty, a.storage.0, o).with_bits(a.eager_bits()))
    }

    fn twin_call(&mut self, node: &Node, twin: &Twin, args: Vec<Arg>) -> Rewrite<()> {
        let mut targets: SmallVec<[_; 1]> = SmallVec::new();
        for &(arg, _) in &twin.writes {
            if let Some(Arg::Value(v)) = node.args.get(arg as usize) {
                targets.push((arg as usize, self.storages[self.alias(*v)?].ty.clone()));
            }
        }
        let values = self.call_twin(node, twin, args, &targets)?;
        self.note_twin(node, twin, &values);
        for &(arg, result) in &twin.writes {
            let Some(Arg::Value(v)) = node.args.get(arg as usize) else { continue };
            let alias = self.alias(*v)?;
            self.certain(alias)?;
            let ty = self.storages[alias].ty.clone();
            let new = values[result as usize];
            let sizes = &self.new.tensor(new).layout.sizes;
            if *sizes != ty.layout.sizes && twin.resizes && !self.reads_target(node, twin, arg as usize) {
                self.resize_out(node, *v, new)?;
                continue;
            }
            let new = self.cast(node, new, &ty)?;
            if !self.storages.holds(alias, new) {
                self.build(node, |b, s| s.write(b, alias, new))?;
            }
        }
        self.bind_returns(node, twin, &values)
    }

    /// Calls the twin. Results that will be written somewhere are declared with the target's layout.
    pub(super) fn call_twin(
        &mut self,
        node: &Node,
        twin: &Twin,
        args: Vec<Arg>,
        targets: &[(usize, SharedRegion)],
    ) -> Rewrite<SmallVec<[ValueId; 1]>> {
        let op = twin.op;
        let mut args = args;
        op.fill_defaults_or_none(&mut args);
        if let Some(value) = crate::peephole::replace(op, &args, &self.new).or_else(|| self.given_back(op, &args)) {
            return Ok(smallvec![value]);
        }
        let inferred = infer_types(|v| Ok(self.new.tensor(v)), op, &args, || self.witness())?;
        let resized = |r: usize| {
            let arg = twin.writes.iter().find(|w| w.1 as usize == r).map(|w| w.0 as usize);
            arg.filter(|a| twin.resizes && !self.reads_target(node, twin, *a))
        };
        let count = op.schema().returns.len();
        let mut types: SmallVec<[TensorType; 1]> = SmallVec::with_capacity(count);
        for r in 0..count {
            let target = twin
                .writes
                .iter()
                .find(|w| w.1 as usize == r)
                .and_then(|w| targets.iter().find(|t| t.0 == w.0 as usize));
            let own =
                twin.returns.iter().position(|x| *x == TwinReturn::Result(r as u8)).and_then(|i| node.results.get(i));
            types.push(match (target, own, inferred.as_ref().and_then(|t| t.get(r))) {
                (Some((_, ty)), _, Some(Inferred { dtype, sizes: None })) => TensorType::new(*dtype, ty.layout.clone()),
                (Some((_, ty)), _, Some(Inferred { dtype, sizes: Some(sizes) })) => {
                    let fits = sizes.len() == ty.rank()
                        && sizes.iter().zip(&ty.layout.sizes).all(|(a, b)| a.equals(b) != Some(false));
                    if fits {
                        TensorType::new(*dtype, ty.layout.clone())
                    } else if let Some(arg) = resized(r) {
                        self.resized_type(node, twin, arg, &TensorType::contiguous(*dtype, sizes))
                    } else {
                        return Err(Error::new(
                            ErrorKind::Program,
                            format!(
                                "output with shape {} doesn't match the broadcast shape {}",
                                show(&ty.layout.sizes),
                                show(sizes)
                            ),
                        )
                        .into());
                    }
                }
                (Some((_, ty)), _, None) => TensorType::clone(ty),
                (None, Some(&old), _) => self.old.tensor(old).clone(),
                (None, None, Some(Inferred { dtype, sizes: Some(sizes) })) => TensorType::contiguous(*dtype, sizes),
                (None, None, _) => {
                    return Err(Error::unsupported(format!("the type of result {r} of {op} is not known")).into());
                }
            });
        }
        let hint = self.hint(node);
        Ok(self.build(node, |b, _| b.node(op, args, types.into_iter().map(|ty| (hint.clone(), ty)), &node.origin)))
    }

    /// Notes the values that PyTorch saves of a twin's call, if one was added.
    fn note_twin(&mut self, node: &Node, twin: &Twin, values: &[ValueId]) {
        let last = self.new.order.last().map(|id| &self.new.nodes[*id]);
        if last.is_none_or(|n| n.op != twin.op || n.results[..] != *values || !saves(n.op)) {
            return;
        }
        let target = |r: usize| {
            let (arg, _) = twin.writes.iter().find(|w| w.1 as usize == r)?;
            node.args.get(*arg as usize)?.values().next().and_then(|v| self.alias(*v).ok())
        };
        let results: SmallVec<[Option<AliasId>; 1]> = (0..values.len()).map(target).collect();
        let args: Vec<Arg> = twin.args.iter().map(|i| node.args[*i as usize].clone()).collect();
        self.note_saved(node, &args, &results);
    }

    /// Writing in grad mode through a view that was made under `no_grad` makes it one of the base's history.
    fn record_through(&mut self, node: &Node, twin: &Twin) -> Rewrite<()> {
        for v in twin.writes.iter().filter_map(|w| node.args.get(w.0 as usize)).flat_map(Arg::values) {
            let alias = self.alias(*v)?;
            if self.storages[alias].constant && !node.origin.no_grad {
                self.storages.record(alias);
            }
        }
        Ok(())
    }

    /// The first argument of a call that gives that back as it is (`dropout` in evaluation).
    fn given_back(&self, op: Op, args: &[Arg]) -> Option<ValueId> {
        let rule = op.def().view.filter(|_| op.def().math.is_none() && op.def().base == 0)?;
        let Some(Arg::Value(given)) = args.first() else { return None };
        let made = symbolic_views(rule, args, |v| self.new.values[v].ty.tensor().cloned())?;
        (made[..] == [self.new.tensor(*given).clone()]).then_some(*given)
    }

    fn hint(&self, node: &Node) -> Arc<str> {
        let Some(&own) = node.results.first() else { return node.op.schema().name.trim_matches('_').into() };
        let name = &self.old.values[own].name;
        if name.ends_with('_') { name.trim_end_matches('_').into() } else { name.clone() }
    }

    /// The value converted to the target's element type.
    pub(super) fn cast(&mut self, node: &Node, value: ValueId, target: &TensorType) -> Rewrite<ValueId> {
        let have = self.new.tensor(value);
        if have.dtype == target.dtype {
            return Ok(value);
        }
        refuse_cast(have.dtype, target.dtype)?;
        let ty = TensorType::new(target.dtype, have.layout.clone());
        Ok(self
            .build(node, |b, _| b.call("aten._to_copy.default", vec![Arg::Value(value), Arg::DType(target.dtype)], ty)))
    }

    pub(super) fn bind_returns(&mut self, node: &Node, twin: &Twin, values: &[ValueId]) -> Rewrite<()> {
        for (&old, what) in node.results.iter().zip(&twin.returns) {
            match what {
                TwinReturn::Arg(i) => {
                    let Some(Arg::Value(v)) = node.args.get(*i as usize) else {
                        return Err(Error::invalid(format!("{} returns an argument that is no tensor", node.op)).into());
                    };
                    let bound = self.map[*v];
                    self.map.set(old, bound);
                }
                TwinReturn::Result(r) => {
                    let value = values[*r as usize];
                    self.bind_fresh(old, value);
                }
            }
        }
        Ok(())
    }
}

/// Element type and sizes of a result.
pub struct Inferred {
    dtype: restride_ir::DType,
    /// `None` where operands fit in some runs only.
    sizes: Option<Dims<Expr>>,
}

/// Types of a call's results. With symbolic sizes the rule runs at a witness binding: element types do not depend on
/// sizes, and the sizes are those of the operand that has the same at the witness. Where the rule refuses the sizes of the
/// witness, those that a run learns from data fit or not only then: they are 1 here, which all others broadcast with. So do
/// those that the program does not say are equal (`cache[:, positions] = keys`): where sizes of 1 fit, a run checks its own.
fn infer_types<'t, 'b>(
    of: impl Fn(ValueId) -> Rewrite<&'t TensorType>,
    op: Op,
    args: &[Arg],
    witness: impl Fn() -> &'b Binding,
) -> Rewrite<Option<SmallVec<[Inferred; 1]>>> {
    let Some(rule) = op.def().infer else { return Ok(None) };
    if matches!(op.def().kernel, Kernel::Dynamic(_) | Kernel::Scalar(_)) {
        return Ok(None);
    }
    let learnt = |e: &Expr| {
        let mut symbols = BTreeSet::new();
        e.symbols(&mut symbols);
        symbols.iter().any(Symbol::is_unbacked)
    };
    let number = |e: &Expr| -> Result<i64, Halt> {
        e.eval(witness()).map(Scalar::as_i64).map_err(|why| Error::unsupported(why).into())
    };
    let at_witness = |is_one: &dyn Fn(&Expr) -> bool| -> Rewrite<_> {
        let mut known_sizes: Vec<(Dims<i64>, Dims<Expr>)> = Vec::new();
        let size = |e: &Expr| if is_one(e) { Ok(1) } else { number(e) };
        let metas = Arg::try_map_all(
            args,
            |v| {
                let ty = of(*v)?;
                if let Some(known) = ty.known() {
                    return Ok(known);
                }
                let mut layout = restride_ir::Layout::contiguous(&[]);
                layout.sizes = ty.layout.sizes.iter().map(size).collect::<Result<_, _>>()?;
                layout.strides = ty.layout.strides.iter().map(number).collect::<Result<_, _>>()?;
                if ty.layout.sizes.iter().any(|n| n.known().is_none()) {
                    known_sizes.push((layout.sizes.clone(), ty.layout.sizes.clone()));
                }
                Ok::<_, Halt>(TensorType::new(ty.dtype, layout))
            },
            |e| match e.constant() {
                Some(known) => Ok(known),
                None => e.eval(witness()).map_err(|why| Error::unsupported(why).into()),
            },
        )?;
        Ok((rule(&Args(&metas)), known_sizes))
    };
    let (mut metas, mut known_sizes) = at_witness(&|_| false)?;
    let learnt_size = |v: &ValueId| of(*v).is_ok_and(|ty| ty.layout.sizes.iter().any(learnt));
    if metas.is_err() && args.iter().flat_map(Arg::values).any(learnt_size) {
        (metas, known_sizes) = at_witness(&learnt)?;
    }
    let metas = match metas {
        Ok(metas) => metas,
        Err(why) => {
            let ones = at_witness(&|e| e.known().is_none())?.0.map_err(|_| why)?;
            return Ok(Some(ones.into_iter().map(|m| Inferred { dtype: m.dtype, sizes: None }).collect()));
        }
    };
    Ok(Some(
        metas
            .into_iter()
            .map(|m| {
                let same = known_sizes.iter().find(|(k, _)| k[..] == m.layout.sizes[..]);
                let sizes =
                    same.map_or_else(|| m.layout.sizes.iter().map(|n| Expr::Int(*n)).collect(), |(_, s)| s.clone());
                Inferred { dtype: m.dtype, sizes: Some(sizes) }
            })
            .collect(),
    ))
}

fn show(sizes: &[Expr]) -> String {
    format!("[{}]", sizes.iter().map(|s| s.to_string()).collect::<Vec<_>>().join(", "))
}
