//! One call of an operator.

use super::{MAX_NODES, RecordFrame, RecordedResult, Recorder, TensorRef, data_sizes};
use restride_ir::{
    Arg, Args, DType, Dim, Error, ErrorKind, Expr, ExprFn, Kernel, Layout, Op, OpError, Result, TensorType, TwinReturn,
    Type, ValueId, ViewOutcome,
};
use restride_passes::result_types;
use std::sync::Arc;

/// An argument over tensor objects.
pub type CallArg = Arg<TensorRef, Expr>;

impl Recorder<'_> {
    /// Calls an operator by name; missing trailing arguments take their defaults.
    ///
    /// # Errors
    /// As [`Recorder::call`].
    pub fn call_named(&mut self, name: &str, args: Vec<CallArg>) -> Result<Vec<RecordedResult>> {
        let op = self.operator(name)?;
        let mut args = args;
        op.fill_defaults(&mut args)?;
        self.call(op, args)
    }

    /// The one tensor that a call by name gives.
    ///
    /// # Errors
    /// As [`Recorder::call`].
    pub fn tensor(&mut self, name: &str, args: Vec<CallArg>) -> Result<TensorRef> {
        match self.call_named(name, args)?.into_iter().next() {
            Some(RecordedResult::Tensor(t)) => Ok(t),
            _ => Err(Error::invalid(format!("{name} gives no tensor"))),
        }
    }

    /// Records a call.
    ///
    /// # Errors
    /// What PyTorch refuses, and what restride does not know.
    pub fn call(&mut self, op: Op, args: Vec<CallArg>) -> Result<Vec<RecordedResult>> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("the code makes more than {MAX_NODES} calls of operators"),
            ));
        }
        let def = op.def();
        if def.hop.is_some() {
            return Err(Error::unsupported(format!("{op} called by its name")));
        }
        if let [Arg::Value(t)] = &args[..]
            && data_sizes::gives_columns(op)
        {
            return self.columns(t.clone());
        }
        let plain: Vec<Arg<(), Expr>> = args.iter().map(|a| a.map_values(|_| ())).collect();
        let writes = def.metadata || op.mutates(&plain);
        if matches!(def.kernel, Kernel::Scalar(_)) {
            return self.number(op, args);
        }
        let known = if writes || def.random || def.effectful { None } else { self.fold(op, &args) };
        if !writes && self.is_itself(op, &args)? {
            let Some(Arg::Value(t)) = args.first() else { return Err(Error::invalid("a view of no tensor")) };
            return Ok(vec![RecordedResult::Tensor(t.clone())]);
        }
        let args = self.fitted_args(op, args)?;
        let values: Vec<Arg> = args.iter().map(|a| self.arg(a)).collect::<Result<_>>()?;
        let types = self.types(op, &args, &values, writes)?;
        if op.name() == "aten.set_.source_Tensor" {
            return Err(Error::unsupported("set_ in TorchScript code"));
        }
        let group = self.group_of(op, &args);
        let mut made = Vec::with_capacity(types.len());
        let hint = op.schema().name.trim_start_matches('_').trim_end_matches('_').to_string();
        let hint = if hint.is_empty() { "value".into() } else { hint };
        let mut results: Vec<(Arc<str>, Type)> = Vec::with_capacity(types.len());
        for ty in &types {
            let name = self.fresh(&hint);
            results.push((name, ty.clone().map_or(Type::None, Type::Tensor)));
        }
        let origin = self.origin();
        let id = self.frame().graph.add_node(op, values, results, origin);
        let ids: Vec<ValueId> = self.frame().graph.nodes[id].results.to_vec();
        if writes {
            self.wrote(op, &args, &types)?;
        }
        let serial = self.frame().serial;
        let returned = |r: usize| op.twin().filter(|_| writes).and_then(|t| t.returns.get(r)).copied();
        for (r, (&value, ty)) in ids.iter().zip(&types).enumerate() {
            let Some(ty) = ty else {
                made.push(RecordedResult::None);
                continue;
            };
            let same = match returned(r) {
                Some(TwinReturn::Arg(i)) => args.get(i as usize),
                _ if def.metadata => args.first(),
                _ => None,
            };
            if let Some(Arg::Value(t)) = same {
                let changed = def.metadata || op.twin().is_some_and(|t| t.resizes);
                if changed {
                    if t.frame.get() != serial {
                        return Err(Error::unsupported(format!(
                            "{op} in a branch or loop changes the sizes or strides of a tensor from outside"
                        )));
                    }
                    t.value.set(value);
                    *t.ty.borrow_mut() = ty.clone();
                }
                made.push(RecordedResult::Tensor(t.clone()));
                continue;
            }
            let group = match group {
                Some(group) => group,
                None => self.group(),
            };
            made.push(RecordedResult::Tensor(self.object(value, serial, ty.clone(), group)));
        }
        for check in std::mem::take(&mut self.pending) {
            self.assert(&check, &format!("Runtime assertion failed for expression {check}"))?;
        }
        if !writes && !def.random && !matches!(def.kernel, Kernel::Dynamic(_)) {
            self.number_contents(op, &args, &made);
        }
        if let (&[Arg::Scalar(ref e), ..], [RecordedResult::Tensor(t)]) = (&args[..], &made[..])
            && op.name() == "aten.scalar_tensor.default"
        {
            self.set_known_number(t, e);
        }
        if let Some(known) = known {
            for (m, k) in made.iter().zip(known) {
                if let RecordedResult::Tensor(t) = m {
                    self.set_known(t, k);
                }
            }
        }
        Ok(made)
    }

    /// Gives results of a call the content that the same call gave before.
    fn number_contents(&mut self, op: Op, args: &[CallArg], made: &[RecordedResult]) {
        if args.iter().flat_map(Arg::values).next().is_none() {
            return;
        }
        let of: Vec<Arg<(u64, u64), Expr>> = args.iter().map(|a| a.map_values(|t| self.content(t))).collect();
        for (i, m) in made.iter().enumerate() {
            let RecordedResult::Tensor(t) = m else { continue };
            let (own, version) = t.content.get();
            let key = format!("{} {i} {of:?}", op.name());
            if key.len() > 512 {
                continue;
            }
            let number = *self.numbering.entry(key).or_insert(own);
            t.content.set((number, version));
        }
    }

    /// An argument over values of the graph under construction.
    fn arg(&mut self, arg: &CallArg) -> Result<Arg> {
        let mut numbers = Vec::new();
        let out = arg.try_map(|t| self.value(t), |e| Ok::<_, Error>(e.clone()))?;
        arg.scalars().iter().for_each(|e| numbers.push(e.clone()));
        Ok(out)
    }

    /// Whether the call returns its operand, the same tensor object.
    fn is_itself(&self, op: Op, args: &[CallArg]) -> Result<bool> {
        let def = op.def();
        let (true, Some(rule), Some(Arg::Value(t))) = (def.itself, def.view, args.first()) else { return Ok(false) };
        let outcome = match known_args(args) {
            Some(known) => match rule.of(&known)? {
                ViewOutcome::Views(views) => ViewOutcome::Views(views.into_iter().map(TensorType::from).collect()),
                ViewOutcome::Copy => ViewOutcome::Copy,
                ViewOutcome::Unknown => ViewOutcome::Unknown,
            },
            None => (rule.symbolic)(&Args(&view_args(args)))?,
        };
        Ok(match outcome {
            ViewOutcome::Views(views) => matches!(&views[..], [one] if *one == t.ty()),
            _ => false,
        })
    }

    /// Types of a call's results; `None` for a result that is `None`.
    fn types(&mut self, op: Op, args: &[CallArg], values: &[Arg], writes: bool) -> Result<Vec<Option<TensorType>>> {
        let def = op.def();
        if let Some(member) = op.member() {
            return self.member_types(op, member, args);
        }
        if def.metadata {
            let typed = view_args(args);
            let rule =
                def.view.ok_or_else(|| Error::unsupported(format!("{op} changes a tensor in an unknown way")))?;
            return match (rule.symbolic)(&Args(&typed))? {
                ViewOutcome::Views(views) => Ok(views.into_iter().map(Some).collect()),
                _ => Err(Error::unsupported(format!("{op} with these arguments changes a tensor in an unknown way"))),
            };
        }
        if writes {
            let Some(twin) = op.twin() else {
                // A user's operator without a body: what its schema says of the results must be all.
                if op.schema().returns.is_empty() {
                    return Ok(Vec::new());
                }
                return Err(Error::unsupported(format!("{op} writes its arguments, and how is not known"))
                    .help("give its body with --ops"));
            };
            let of_twin: Vec<Arg> = twin.args.iter().map(|i| values[*i as usize].clone()).collect();
            let refs: Vec<CallArg> = twin.args.iter().map(|i| args[*i as usize].clone()).collect();
            let made = self.plain_types(twin.op, &of_twin, &refs)?;
            let given = |i: u8| match args.get(i as usize) {
                Some(Arg::Value(t)) => Some(t.ty()),
                _ => None,
            };
            let content = |i: u8| {
                let (_, r) = twin.writes.iter().find(|w| w.0 == i)?;
                made.get(*r as usize).cloned().flatten()
            };
            return Ok(twin
                .returns
                .iter()
                .map(|r| match r {
                    TwinReturn::Arg(i) if twin.resizes => {
                        let (old, new) = (given(*i), content(*i));
                        match (old, new) {
                            (Some(old), Some(new)) if old.layout.sizes != new.layout.sizes => {
                                Some(TensorType::new(old.dtype, new.layout))
                            }
                            (old, _) => old,
                        }
                    }
                    TwinReturn::Arg(i) => given(*i),
                    TwinReturn::Result(r) => made.get(*r as usize).cloned().flatten(),
                })
                .collect());
        }
        self.plain_types(op, values, args)
    }

    fn plain_types(&mut self, op: Op, values: &[Arg], refs: &[CallArg]) -> Result<Vec<Option<TensorType>>> {
        let frame: &RecordFrame = self.frames.last().expect("the main frame stays");
        let graph = &frame.graph;
        let typed: Vec<Arg<TensorType, Expr>> = values
            .iter()
            .map(|a| a.try_map(|v| graph.values[*v].ty.tensor().cloned().ok_or(()), |e| Ok(e.clone())))
            .collect::<std::result::Result<_, ()>>()
            .map_err(|()| Error::invalid(format!("an operand of {op} is no tensor")))?;
        if let Some(types) = data_sizes::types(self, op, &typed, refs)? {
            return Ok(types.into_iter().map(Some).collect());
        }
        let frame = self.frames.last().expect("the main frame stays");
        let ty = |v: ValueId| frame.graph.tensor(v).clone();
        match result_types(op, values, &self.conditions, ty) {
            Ok(types) => Ok(types.into_iter().map(Some).collect()),
            Err(e) => Err(undecided(op, &typed).unwrap_or_else(|| e.into())),
        }
    }

    fn member_types(&mut self, op: Op, member: Op, args: &[CallArg]) -> Result<Vec<Option<TensorType>>> {
        if op.schema().returns.is_empty() {
            return Ok(Vec::new());
        }
        let count = args.iter().find_map(|a| if let Arg::Values(vs) = a { Some(vs.len()) } else { None }).unwrap_or(0);
        let mut out = Vec::new();
        for i in 0..count {
            let item = |_: &TensorRef, _: usize| Err(OpError::unsupported("a list of numbers in a tensor"));
            let mut one = op.member_args(args, i, item)?;
            member.fill_defaults(&mut one)?;
            let values: Vec<Arg> = one.iter().map(|a| self.arg(a)).collect::<Result<_>>()?;
            out.extend(self.types(member, &one, &values, false)?);
        }
        Ok(out)
    }

    /// The group of a call's results; `None` for memory of their own.
    fn group_of(&mut self, op: Op, args: &[CallArg]) -> Option<u32> {
        let def = op.def();
        let operands: Vec<u32> = args.iter().flat_map(Arg::values).map(|t| t.group).collect();
        if def.view.is_some() && !def.metadata {
            return match args.get(def.base as usize) {
                Some(Arg::Value(t)) => Some(t.group),
                _ => None,
            };
        }
        if op.may_pass_through() {
            let first = *operands.first()?;
            operands.iter().for_each(|g| self.join(first, *g));
            return Some(first);
        }
        None
    }

    /// Notes what a call wrote.
    fn wrote(&mut self, op: Op, args: &[CallArg], _types: &[Option<TensorType>]) -> Result<()> {
        let mut written: Vec<TensorRef> = Vec::new();
        for (i, decl) in op.schema().args.iter().enumerate() {
            let by_schema = decl.alias.as_ref().is_some_and(|a| a.write);
            let by_twin = op.twin().is_some_and(|t| t.writes.iter().any(|w| w.0 as usize == i));
            if (by_schema || by_twin || op.def().metadata && i == 0)
                && let Some(arg) = args.get(i)
            {
                written.extend(arg.values().cloned());
            }
        }
        for t in written {
            let root = self.root(t.group);
            self.writes += 1;
            self.groups[root as usize].0 = self.writes;
            let meets = |g: u32| self.root(g) == root;
            let shares = |(a, b): &(u32, u32)| meets(*a) && self.is_seen(*b) || meets(*b) && self.is_seen(*a);
            if self.conditional.iter().any(shares) {
                return Err(Error::unsupported(
                    "a write to a tensor that shares memory with another one only if data decides so, in a branch or loop",
                )
                .help("clone the tensor before the write, or in that branch or loop"));
            }
        }
        Ok(())
    }

    /// A call whose result is a number: known, or learnt by a run.
    fn number(&mut self, op: Op, args: Vec<CallArg>) -> Result<Vec<RecordedResult>> {
        if let Some(Arg::Value(t)) = args.first() {
            if let Some(e) = self.known_number(t) {
                return Ok(vec![RecordedResult::Number(e)]);
            }
            let dtype = t.dtype();
            let learnt = self.learn(dtype)?;
            let values: Vec<Arg> = args.iter().map(|a| self.arg(a)).collect::<Result<_>>()?;
            let name = self.fresh(&op.schema().name);
            let origin = self.origin();
            self.frame().graph.add_node(op, values, [(name, Type::Scalar(learnt.clone()))], origin);
            return Ok(vec![RecordedResult::Number(learnt)]);
        }
        Err(Error::unsupported(format!("{op} of no tensor")))
    }

    /// A fresh number of an element type that data decides.
    fn learn(&mut self, dtype: DType) -> Result<Expr> {
        Ok(match dtype {
            DType::Bool => {
                let symbol = self.symbol("u", Some(0), Some(1));
                Expr::call(ExprFn::Eq, vec![symbol, Expr::Int(1)])
            }
            d if d.is_float() => self.symbol("zuf", None, None),
            d if d.is_complex() => return Err(Error::unsupported("a complex number read from a tensor")),
            _ => self.symbol("u", None, None),
        })
    }

    /// The number in a tensor of one element.
    ///
    /// # Errors
    /// A tensor of several elements.
    pub fn item(&mut self, t: &TensorRef) -> Result<Expr> {
        if t.ty().layout.sizes.iter().any(|n| n.known().is_some_and(|n| n != 1)) {
            let sizes: Vec<String> = t.ty().layout.sizes.iter().map(|n| n.to_string()).collect();
            return Err(Error::new(
                restride_ir::ErrorKind::Program,
                format!("a Tensor of sizes [{}] cannot be converted to Scalar", sizes.join(", ")),
            ));
        }
        match self.call_named("aten.item.default", vec![Arg::Value(t.clone())])?.into_iter().next() {
            Some(RecordedResult::Number(e)) => Ok(e),
            _ => Err(Error::invalid("item gives no number")),
        }
    }

    /// A tensor without dimensions that holds a number.
    ///
    /// # Errors
    /// As [`Recorder::call`].
    pub fn scalar_tensor(&mut self, e: &Expr, dtype: DType) -> Result<TensorRef> {
        let args = vec![Arg::Scalar(e.clone()), Arg::DType(dtype)];
        self.tensor("aten.scalar_tensor.default", args)
    }

    /// A copy of a tensor.
    ///
    /// # Errors
    /// As [`Recorder::call`].
    pub fn clone_of(&mut self, t: &TensorRef) -> Result<TensorRef> {
        self.tensor("aten.clone.default", vec![Arg::Value(t.clone())])
    }

    /// Records a check.
    ///
    /// # Errors
    /// As [`Recorder::call`].
    pub fn assert(&mut self, condition: &Expr, message: &str) -> Result<()> {
        self.call_named("aten._assert_scalar.default", vec![Arg::Scalar(condition.clone()), Arg::Str(message.into())])?;
        self.ensure(condition);
        Ok(())
    }

    /// The numbers of a layout, as values of the code.
    pub fn sizes(&self, t: &TensorRef) -> Vec<Expr> {
        t.ty().layout.sizes.to_vec()
    }

    /// Number of elements.
    pub fn numel(&self, t: &TensorRef) -> Expr {
        t.ty().layout.sizes.iter().fold(Expr::Int(1), |n, s| n.times(s))
    }
}

/// Whether data decides a size of the type.
pub(super) fn has_learnt_size(ty: &TensorType) -> bool {
    ty.layout.sizes.iter().any(Expr::is_learnt)
}

/// The refusal of a call whose results have sizes that hang on data in a way that no expression says.
fn undecided(op: Op, args: &[Arg<TensorType, Expr>]) -> Option<Error> {
    let operand = |t: &TensorType| {
        let size = |e: &Expr| if e.is_learnt() { "?".to_string() } else { e.to_string() };
        let sizes: Vec<String> = t.layout.sizes.iter().map(size).collect();
        format!("{}[{}]", t.dtype, sizes.join(", "))
    };
    let learnt = args.iter().flat_map(Arg::values).any(has_learnt_size)
        || args.iter().flat_map(Arg::scalars).any(Expr::is_learnt);
    learnt.then(|| {
        let operands: Vec<String> = args.iter().flat_map(Arg::values).map(operand).collect();
        let of = match operands.is_empty() {
            true => "a number that data decides".to_string(),
            false => format!("{}, where data decides the sizes written `?`", operands.join(" and ")),
        };
        let what = format!("{op} of {of}: the sizes do not fit, or those of the result are no expression of them");
        Error::unsupported(what)
            .help("let this line use sizes of the inputs, or save the part before it as a model of its own")
    })
}

/// Arguments of known sizes and numbers, if all are known.
fn known_args(args: &[CallArg]) -> Option<Vec<Arg<restride_ir::Meta, restride_ir::Scalar>>> {
    args.iter().map(|a| a.try_map(|t| t.ty().known().ok_or(()), |e| e.constant().ok_or(())).ok()).collect()
}

/// Arguments as view rules read them: flags are numbers.
fn view_args(args: &[CallArg]) -> Vec<Arg<TensorType, Expr>> {
    let number = |e: &Expr| match e {
        Expr::Bool(b) => Expr::Int(i64::from(*b)),
        e => e.clone(),
    };
    let one = |a: &CallArg| {
        let mapped: std::result::Result<_, std::convert::Infallible> = a.try_map(|t| Ok(t.ty()), |e| Ok(number(e)));
        match mapped {
            Ok(arg) => arg,
        }
    };
    args.iter().map(one).collect()
}

/// A row-major type.
pub(super) fn contiguous(dtype: DType, sizes: &[Expr]) -> TensorType {
    TensorType::new(dtype, Layout::contiguous(sizes))
}
