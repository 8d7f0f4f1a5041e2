//! Node by node: views become aliases, writes become versions, everything else is called on what it reads.

use super::storages::{AliasId, Storages, ViewCall, ViewOf};
use crate::build::{Builder, Names};
use restride_ir::{
    Arg, Args, Dim, Error, ErrorKind, Expr, Graph, Id, Kernel, LazyBits, Memory, Node, NodeId, Op, OpError, Program,
    Scalar, Table, TensorType, Twin, TwinReturn, Type, ValueId, ViewOutcome, refuse_cast, refuse_overlap,
};
use restride_ops::lookup;
use std::rc::Rc;
use std::sync::Arc;

/// Why a rewrite does not go on.
pub enum Stop {
    /// The input at this position is needed with its whole storage.
    NeedsStorage(usize),
    /// The storage of the input at this position has to be this large, in bytes: the program makes it grow.
    NeedsRoom(usize, i64),
    /// Whether memory is shared depends on sizes that are symbols, and it matters: the error where they stay symbols.
    NeedsSizes(Box<Error>),
    /// The program cannot be functionalized.
    Error(Error),
}
impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Stop::Error(e)
    }
}
impl From<restride_ir::OpError> for Stop {
    fn from(e: restride_ir::OpError) -> Self {
        Stop::Error(e.into())
    }
}

/// Result of a rewrite step.
pub type Step<T> = std::result::Result<T, Stop>;

/// What an old value is in the new graph.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// A tensor object: its alias may be exchanged by a metadata mutation.
    Object(usize),
    /// A number, string or token.
    Plain(ValueId),
}

/// One graph being rewritten.
pub struct Scope<'a> {
    /// The whole old program.
    pub program: &'a Program,
    /// The old graph.
    pub old: &'a Graph,
    /// The new graph.
    pub new: Graph,
    /// Names of the new graph.
    pub names: Names,
    /// Storages and aliases.
    pub storages: Storages,
    /// What each old value is.
    pub map: Table<ValueId, Option<Bound>>,
    /// The alias of each tensor object.
    pub objects: Vec<AliasId>,
    /// New graphs for subgraphs, of the whole program.
    pub graphs: Vec<Graph>,
    /// Values bound to ids that the old graph does not have.
    items: usize,
}

impl<'a> Scope<'a> {
    /// An empty scope for a graph.
    pub fn new(program: &'a Program, old: &'a Graph) -> Self {
        Scope {
            program,
            old,
            new: Graph::new(),
            names: Names::default(),
            storages: Storages::default(),
            map: Table::new(),
            objects: Vec::new(),
            graphs: Vec::new(),
            items: 0,
        }
    }

    /// A new tensor object.
    pub fn object(&mut self, alias: AliasId) -> Bound {
        self.objects.push(alias);
        Bound::Object(self.objects.len() - 1)
    }

    /// Binds an old value.
    pub fn bind(&mut self, old: ValueId, bound: Bound) {
        self.map.set(old, Some(bound));
    }

    /// The alias of an old tensor value.
    pub fn alias(&self, old: ValueId) -> Step<AliasId> {
        match self.map[old] {
            Some(Bound::Object(o)) => Ok(self.objects[o]),
            _ => Err(Error::invalid(format!("%{} is not a tensor", self.old.values[old].name)).into()),
        }
    }

    /// Runs `f` with a builder for the new graph.
    pub fn build<T>(&mut self, node: &Node, f: impl FnOnce(&mut Builder<'_>, &mut Storages) -> T) -> T {
        let mut b = Builder::new(&mut self.new, &mut self.names);
        b.origin = node.origin.clone();
        if let Some(&r) = node.results.first() {
            b.hint = self.old.values[r].name.clone();
        }
        f(&mut b, &mut self.storages)
    }

    /// The current elements of an old value.
    pub fn read(&mut self, node: &Node, old: ValueId) -> Step<ValueId> {
        match self.map[old] {
            Some(Bound::Plain(v)) => Ok(v),
            Some(Bound::Object(o)) => self.read_object(node, o),
            None => Err(Error::invalid(format!("%{} is used before it is made", self.old.values[old].name)).into()),
        }
    }

    /// The current elements of a tensor object.
    pub fn read_object(&mut self, node: &Node, object: usize) -> Step<ValueId> {
        let alias = self.objects[object];
        self.certain(alias)?;
        Ok(self.build(node, |b, s| s.read(b, alias))?)
    }

    /// An argument over current values.
    pub(super) fn read_arg(&mut self, node: &Node, arg: &Arg) -> Step<Arg> {
        arg.try_map(|v| self.read(node, *v), |e| Ok(e.clone()))
    }

    /// Rewrites every node.
    pub fn nodes(&mut self) -> Step<()> {
        let old = self.old;
        for (id, node) in old.ordered() {
            self.node(node).map_err(|stop| locate(stop, old, id))?;
        }
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Step<()> {
        let op = node.op;
        if op.def().hop.is_some() {
            return self.control(node);
        }
        if let (Some(member), true) = (op.member(), op.mutates(&node.args)) {
            return self.foreach(node, member);
        }
        if op.def().metadata {
            return self.metadata(node);
        }
        if let Some(form) = restride_ops::custom_form(op) {
            return self.custom(node, form);
        }
        if op.mutates(&node.args) {
            let Some(twin) = op.twin() else {
                return Err(Error::unsupported(format!("{op} writes an argument and has no functional form"))
                    .help("register the operator with a functional form")
                    .into());
            };
            return self.mutate(node, twin);
        }
        if op.is_view() && self.view(node)? {
            return Ok(());
        }
        self.pure(node)
    }

    /// A call that only reads.
    fn pure(&mut self, node: &Node) -> Step<()> {
        let shares = |r: &restride_ir::SchemaReturn| r.alias.is_some();
        if !node.op.is_view() && !node.op.can_run() && node.op.schema().returns.iter().any(shares) {
            let what = format!("{} gives a view of which nobody knows the region", node.op);
            return Err(Error::unsupported(what).into());
        }
        let mut args = Vec::with_capacity(node.args.len());
        for a in &node.args {
            args.push(if node.op.def().strided { self.declared_arg(node, a)? } else { self.read_arg(node, a)? });
        }
        self.add_pure(node, node.op, args)
    }

    /// An argument over current values that are declared to lie as eager PyTorch's do, for operators that ask for strides.
    pub(super) fn declared_arg(&mut self, node: &Node, arg: &Arg) -> Step<Arg> {
        let declared = |scope: &mut Self, v: &ValueId| {
            let value = scope.read(node, *v)?;
            let Some(Bound::Object(o)) = scope.map[*v] else { return Ok(value) };
            let ty = scope.storages[scope.objects[o]].ty.clone();
            Ok::<_, Stop>(scope.build(node, |b, _| b.declare(value, &ty)))
        };
        arg.try_map(|v| declared(self, v), |e| Ok(e.clone()))
    }

    fn add_pure(&mut self, node: &Node, op: Op, args: Vec<Arg>) -> Step<()> {
        let results: Vec<(Arc<str>, Type)> = node
            .results
            .iter()
            .map(|&r| {
                let v = &self.old.values[r];
                (self.names.fresh(&v.name), v.ty.clone())
            })
            .collect();
        let id = self.new.add_node(op, args, results, node.origin.clone());
        let made = self.new.nodes[id].results.clone();
        for (&old, &new) in node.results.iter().zip(&made) {
            self.bind_fresh(old, new);
        }
        Ok(())
    }

    /// Binds an old value to a new one with a storage of its own.
    pub fn bind_fresh(&mut self, old: ValueId, new: ValueId) {
        self.bind_storage(old, new, None);
    }

    /// Binds an old value to an input, which may be on a larger storage.
    pub fn bind_given(&mut self, old: ValueId, new: ValueId, input: usize) {
        self.bind_storage(old, new, Some(input));
    }

    fn bind_storage(&mut self, old: ValueId, new: ValueId, input: Option<usize>) {
        let bound = match &self.new.values[new].ty {
            Type::Tensor(ty) => {
                let ty = ty.clone();
                let alias = self.storages.add(new, ty, input);
                self.object(alias)
            }
            _ => Bound::Plain(new),
        };
        self.bind(old, bound);
    }

    /// Types and numbers of a call's arguments as a view rule reads them, with aliases' regions for tensors.
    fn view_args(&self, node: &Node) -> Step<Vec<Arg<TensorType, Expr>>> {
        node.args
            .iter()
            .map(|a| a.try_map(|v| Ok::<_, Stop>((*self.storages[self.alias(*v)?].ty).clone()), |e| Ok(flag(e))))
            .collect()
    }

    pub(super) fn outcome(&self, node: &Node) -> Step<ViewOutcome<Expr>> {
        let rule = node.op.def().view.expect("a view operator has a rule");
        let args = self.view_args(node)?;
        Ok((rule.symbolic)(&Args(&args))?)
    }

    /// Binds the results of a view call to aliases; false if the call copies.
    fn view(&mut self, node: &Node) -> Step<bool> {
        let types = match self.outcome(node)? {
            ViewOutcome::Copy => return Ok(false),
            ViewOutcome::Unknown => {
                self.pure(node)?;
                self.link(node)?;
                return Ok(true);
            }
            ViewOutcome::Views(types) => types,
        };
        let Some(Arg::Value(base)) = node.args.first() else {
            return Err(Error::invalid("a view of something that is no tensor").into());
        };
        let parent = self.alias(*base)?;
        self.check_reach(node.op, parent, &types)?;
        let Some(made) = self.views(node, parent, &types)? else {
            // A lazy bit is applied: a copy of what the tensor shows.
            let value = self.read(node, *base)?;
            node.results.iter().for_each(|&r| self.bind_fresh(r, value));
            return Ok(true);
        };
        for (&old, alias) in node.results.iter().zip(made) {
            let bound = self.object(alias);
            self.bind(old, bound);
        }
        Ok(true)
    }

    /// Refuses an alias whose content depends on whether an earlier call copied.
    pub(super) fn certain(&self, alias: AliasId) -> Step<()> {
        match self.storages.uncertain(self.storages[alias].storage) {
            Some(call) => Err(open_sharing(call)),
            None => Ok(()),
        }
    }

    /// The results of a call that may be views of its first argument, or copies of it.
    fn link(&mut self, node: &Node) -> Step<()> {
        let Some(Arg::Value(base)) = node.args.first() else { return Ok(()) };
        let parent = self.alias(*base)?;
        let parent = self.storages[parent].storage;
        for &r in &node.results {
            let made = self.alias(r)?;
            let made = self.storages[made].storage;
            self.storages.may_share(parent, made, node.op.name());
        }
        Ok(())
    }

    /// The aliases that a view call makes; `None` if it is a copy after all.
    fn views(&mut self, node: &Node, parent: AliasId, types: &[TensorType]) -> Step<Option<Vec<AliasId>>> {
        if types.len() != node.results.len() {
            return Err(Error::invalid(format!(
                "{} gives {} results, not {}",
                node.op,
                types.len(),
                node.results.len()
            ))
            .into());
        }
        let mut bits = Vec::with_capacity(types.len());
        for ty in types {
            let from = &self.storages[parent];
            let own = LazyBits { conj: from.conj, neg: from.neg };
            match own.of_view(node.op, &from.ty, ty)? {
                Some(b) => bits.push(b),
                None => return Ok(None),
            }
        }
        let mut args = node.args.clone();
        for a in args.iter_mut().skip(1) {
            *a = self.read_arg(node, a)?;
        }
        let call = Arc::new(ViewCall {
            op: node.op,
            args,
            results: std::sync::OnceLock::new(),
            names: node.results.iter().map(|r| self.old.values[*r].name.clone()).collect(),
            origin: node.origin.clone(),
        });
        // A view in terms of the storage means nothing on a value that holds only its own cells, and a lazy bit is set by
        // nothing in a functional program.
        let replay = !node.op.def().strided && node.op.def().math.is_none();
        let made: Vec<AliasId> = types
            .iter()
            .zip(bits)
            .map(|(ty, bits)| self.storages.view(ViewOf { parent, call: call.clone(), replay }, ty.clone(), bits))
            .collect();
        call.results.set(made.clone()).expect("a new call has no results yet");
        Ok(Some(made))
    }

    /// `_foreach_*_`: the member operator on each member, in order.
    fn foreach(&mut self, node: &Node, member: Op) -> Step<()> {
        let count = node.args.iter().filter_map(|a| if let Arg::Values(v) = a { Some(v.len()) } else { None }).max();
        for i in 0..count.unwrap_or(0) {
            let item = |list: &ValueId, i: usize| {
                self.item(node, *list, i).map_err(|stop| match stop {
                    Stop::Error(e) => OpError::new(e.what),
                    Stop::NeedsSizes(e) => OpError::new(e.what),
                    Stop::NeedsStorage(_) | Stop::NeedsRoom(..) => OpError::new("a list of numbers that is not known"),
                })
            };
            let mut args = node.op.member_args(&node.args, i, item)?;
            member.fill_defaults_or_none(&mut args);
            let one = Node { op: member, args, results: Default::default(), origin: node.origin.clone() };
            self.node(&one)?;
        }
        // What is returned, if anything, is the list that was written.
        if let Some(Arg::Values(list)) = node.args.first() {
            for (&r, &v) in node.results.iter().zip(list.iter().flatten()) {
                let bound = self.map[v];
                self.map.set(r, bound);
            }
        }
        Ok(())
    }

    /// Element `i` of a 1-d tensor, under an id of its own that no old value has.
    fn item(&mut self, node: &Node, list: ValueId, i: usize) -> Step<ValueId> {
        let whole = self.read(node, list)?;
        let ty = self.new.tensor(whole).clone();
        let at = Expr::Int(i as i64);
        let layout = ty.layout.select(0, &at).map_err(restride_ir::OpError::from)?;
        let args = vec![Arg::Value(whole), Arg::Scalar(Expr::Int(0)), Arg::Scalar(at)];
        let value = self.build(node, |b, _| b.call("aten.select.int", args, TensorType::new(ty.dtype, layout)));
        let id = ValueId::new(self.old.values.len() + self.items);
        self.items += 1;
        self.bind_fresh(id, value);
        Ok(id)
    }

    /// A mutating call: its functional twin, and the results written where they belong.
    fn mutate(&mut self, node: &Node, twin: &Twin) -> Step<()> {
        refuse_overlap(twin, &node.args, |v| self.memory(v))?;
        if !twin.op.can_run() {
            self.apart(node, twin)?;
        }
        if let Some(rounds) = self.rounds(node, twin)? {
            return self.mutate_in_rounds(node, twin, &rounds);
        }
        let mut args = Vec::with_capacity(twin.args.len());
        for &i in &twin.args {
            args.push(self.read_arg(node, &node.args[i as usize])?);
        }
        self.twin_call(node, twin, args)
    }

    /// What an operator that is known by its schema alone does in what order is not known: what it writes must be apart
    /// from its other arguments.
    fn apart(&self, node: &Node, twin: &Twin) -> Step<()> {
        for &(arg, _) in &twin.writes {
            for v in node.args[arg as usize].values() {
                let target = self.alias(*v)?;
                for (i, other) in node.args.iter().enumerate().filter(|(i, _)| *i != arg as usize) {
                    for w in other.values() {
                        let Some(Bound::Object(o)) = self.map[*w] else { continue };
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

    /// What eager PyTorch's checks of memory see of an argument.
    fn memory(&self, v: &ValueId) -> Option<Memory> {
        let Some(Bound::Object(o)) = self.map[*v] else { return None };
        let a = &self.storages[self.objects[o]];
        Some(Memory::new(&a.ty, a.storage.0, o))
    }

    fn twin_call(&mut self, node: &Node, twin: &Twin, args: Vec<Arg>) -> Step<()> {
        let mut targets = Vec::new();
        for &(arg, _) in &twin.writes {
            if let Some(Arg::Value(v)) = node.args.get(arg as usize) {
                targets.push((arg as usize, self.storages[self.alias(*v)?].ty.clone()));
            }
        }
        let values = self.call_twin(node, twin, args, &targets)?;
        for &(arg, result) in &twin.writes {
            let Some(Arg::Value(v)) = node.args.get(arg as usize) else { continue };
            let alias = self.alias(*v)?;
            self.certain(alias)?;
            let ty = self.storages[alias].ty.clone();
            let new = values[result as usize];
            let made = self.new.tensor(new).clone();
            if made.layout.sizes != ty.layout.sizes && twin.resizes && !self.reads_target(node, twin, arg as usize) {
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
        targets: &[(usize, Rc<TensorType>)],
    ) -> Step<Vec<ValueId>> {
        let op = twin.op;
        let mut args = args;
        op.fill_defaults_or_none(&mut args);
        if let Some(value) = crate::peephole::replace(op, &args, &self.new).or_else(|| self.given_back(op, &args)) {
            return Ok(vec![value]);
        }
        let inferred = infer_types(self.program, &self.new, op, &args)?;
        let resized = |r: usize| {
            let arg = twin.writes.iter().find(|w| w.1 as usize == r).map(|w| w.0 as usize);
            arg.filter(|a| twin.resizes && !self.reads_target(node, twin, *a))
        };
        let count = op.schema().returns.len();
        let mut types = Vec::with_capacity(count);
        for r in 0..count {
            let target = twin
                .writes
                .iter()
                .find(|w| w.1 as usize == r)
                .and_then(|w| targets.iter().find(|t| t.0 == w.0 as usize));
            let own =
                twin.returns.iter().position(|x| *x == TwinReturn::Result(r as u8)).and_then(|i| node.results.get(i));
            types.push(match (target, own, inferred.as_ref().and_then(|t| t.get(r))) {
                (Some((_, ty)), _, Some(Inferred { dtype, sizes })) => {
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
                (Some((_, ty)), _, None) => (**ty).clone(),
                (None, Some(&old), _) => self.old.tensor(old).clone(),
                (None, None, Some(Inferred { dtype, sizes })) => TensorType::contiguous(*dtype, sizes),
                (None, None, None) => {
                    return Err(Error::unsupported(format!("the type of result {r} of {op} is not known")).into());
                }
            });
        }
        let hints: Vec<Arc<str>> = (0..count).map(|_| self.hint(node)).collect();
        Ok(self.build(node, |b, _| b.node(op, args, hints.into_iter().zip(types), &node.origin)))
    }

    /// The first argument of a call that gives that back as it is (`dropout` in evaluation).
    fn given_back(&self, op: Op, args: &[Arg]) -> Option<ValueId> {
        let rule = op.def().view.filter(|_| op.def().math.is_none() && op.def().base == 0)?;
        let Some(Arg::Value(given)) = args.first() else { return None };
        let types: Option<Vec<Arg<TensorType, Expr>>> = args
            .iter()
            .map(|a| a.try_map(|v| self.new.values[*v].ty.tensor().cloned().ok_or(()), |e| Ok(flag(e))).ok())
            .collect();
        match (rule.symbolic)(&Args(&types?)) {
            Ok(ViewOutcome::Views(made)) if made[..] == [self.new.tensor(*given).clone()] => Some(*given),
            _ => None,
        }
    }

    fn hint(&self, node: &Node) -> Arc<str> {
        let own = node.results.first().map(|r| self.old.values[*r].name.trim_end_matches('_').to_string());
        own.unwrap_or_else(|| node.op.schema().name.trim_matches('_').to_string()).into()
    }

    /// The value in the target's element type, as a write converts it.
    pub(super) fn cast(&mut self, node: &Node, value: ValueId, target: &TensorType) -> Step<ValueId> {
        let have = self.new.tensor(value).clone();
        if have.dtype == target.dtype {
            return Ok(value);
        }
        refuse_cast(have.dtype, target.dtype)?;
        let ty = TensorType::new(target.dtype, have.layout.clone());
        Ok(self
            .build(node, |b, _| b.call("aten._to_copy.default", vec![Arg::Value(value), Arg::DType(target.dtype)], ty)))
    }

    pub(super) fn bind_returns(&mut self, node: &Node, twin: &Twin, values: &[ValueId]) -> Step<()> {
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

/// What is wrong where the choice between copy and alias matters.
pub fn open_sharing(call: &str) -> Stop {
    if call.starts_with("higher_order.") {
        let what = format!("which memory the results of {call} are in depends on data, and it matters here");
        return Error::unsupported(what).help("clone what the call returns, or what its graphs return").into();
    }
    let what = format!("whether {call} copies or aliases depends on sizes that are not known, and it matters here");
    let help = "give inputs with --inputs so that sizes are known, or call .clone() or .view() in the model";
    Stop::NeedsSizes(Box::new(Error::unsupported(what).help(help)))
}

/// A number as view rules read it: a known one as an integer.
fn flag(e: &Expr) -> Expr {
    e.constant().map_or_else(|| e.clone(), |s| Expr::Int(s.as_view_number()))
}

/// Element type and sizes of a result.
pub struct Inferred {
    dtype: restride_ir::DType,
    sizes: Vec<Expr>,
}

/// Types of a call's results. With symbolic sizes the rule runs at a witness binding: element types do not depend on
/// sizes, and the sizes are those of the operand that has the same at the witness.
fn infer_types(program: &Program, graph: &Graph, op: Op, args: &[Arg]) -> Step<Option<Vec<Inferred>>> {
    let Some(rule) = op.def().infer else { return Ok(None) };
    if matches!(op.def().kernel, Kernel::Dynamic(_) | Kernel::Scalar(_)) {
        return Ok(None);
    }
    let witness = crate::symbols::witness(program);
    let number = |e: &Expr| -> Result<i64, Stop> {
        e.eval(&witness).map(Scalar::as_i64).map_err(|why| Error::unsupported(why).into())
    };
    let mut known_sizes: Vec<(Vec<i64>, Vec<Expr>)> = Vec::new();
    let mut metas = Vec::with_capacity(args.len());
    for a in args {
        metas.push(a.try_map(
            |v| {
                let ty = graph.tensor(*v);
                let mut layout = restride_ir::Layout::contiguous(&[]);
                layout.sizes = ty.layout.sizes.iter().map(number).collect::<Result<_, _>>()?;
                layout.strides = ty.layout.strides.iter().map(number).collect::<Result<_, _>>()?;
                if ty.layout.sizes.iter().any(|n| n.known().is_none()) {
                    known_sizes.push((layout.sizes.to_vec(), ty.layout.sizes.to_vec()));
                }
                Ok::<_, Stop>(TensorType::new(ty.dtype, layout))
            },
            |e| e.eval(&witness).map_err(|why| Error::unsupported(why).into()),
        )?);
    }
    let metas = rule(&Args(&metas))?;
    Ok(Some(
        metas
            .into_iter()
            .map(|m| {
                let same = known_sizes.iter().find(|(k, _)| k[..] == m.layout.sizes[..]);
                let sizes =
                    same.map_or_else(|| m.layout.sizes.iter().map(|n| Expr::Int(*n)).collect(), |(_, s)| s.clone());
                Inferred { dtype: m.dtype, sizes }
            })
            .collect(),
    ))
}

fn show(sizes: &[Expr]) -> String {
    format!("[{}]", sizes.iter().map(|s| s.to_string()).collect::<Vec<_>>().join(", "))
}

fn locate(stop: Stop, graph: &Graph, node: NodeId) -> Stop {
    match stop {
        Stop::Error(e) => Stop::Error(e.at(graph, node)),
        Stop::NeedsSizes(e) => Stop::NeedsSizes(Box::new(e.at(graph, node))),
        other => other,
    }
}

/// Used by control flow: an operator that the table must have.
pub fn op(name: &str) -> Op {
    lookup(name).unwrap_or_else(|| panic!("the operator table has {name}"))
}
