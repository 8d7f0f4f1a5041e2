//! Nodes and values of a graph.

use super::damaged;
use super::origins::{has_history, node_name, origin, short_target};
use super::predispatch::{self, Batching};
use super::{args, autocast, data_sizes, default_dtype, pinned_numbers, symbols};
use crate::model::{self, Argument};
use restride_ir::{
    Arg, ArgType, Args, Error, Expr, Graph, Kernel, Layout, Names, NodeId, Op, Origin, Program, Result, Schema, Symbol,
    TensorType, TwinReturn, Type, ValueId, ViewOutcome,
};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// State that all graphs of a file share.
#[derive(Default)]
pub struct FileWide {
    /// Symbols for numbers from data that the file writes as constants.
    pub(super) pins: Vec<Symbol>,
    /// Symbols that have a range but occur in no type.
    pub(super) spare: Vec<Symbol>,
    /// Unbacked symbols that nodes so far produced.
    pub(super) known: BTreeSet<Symbol>,
    /// Names of subgraphs. In a file they are unique only within a module.
    graphs: Names,
}

impl FileWide {
    /// A unique name for a subgraph.
    pub(super) fn graph_name(&mut self, name: &str) -> Arc<str> {
        self.graphs.fresh(name)
    }
}

/// The trace that `x.data = y` leaves in an exported program, which goes on with the old contents of `x`.
const DATA_CHECK: &str = "aten._has_compatible_shallow_copy_type.default";

/// Reads one graph.
pub struct GraphImporter<'a> {
    pub(super) program: &'a mut Program,
    pub(super) graph: &'a mut Graph,
    pub(super) lookup: &'a dyn Fn(&str) -> Option<Op>,
    /// Values by the file's names; those of inlined regions shadow.
    pub(super) names: BTreeMap<String, ValueId>,
    taken: Names,
    pub(super) no_grad: bool,
    pub(super) autocast: Option<restride_ir::DType>,
    pub(super) depth: usize,
    pub(super) keys: u32,
    /// The file's values for pinned numbers ([`super::pinned_numbers`]).
    told: BTreeMap<ValueId, Expr>,
    /// State that all graphs of the file share.
    pub(super) file: FileWide,
    /// Whether arguments use the symbols of pinned numbers instead of the file's values.
    reads_learnt: bool,
    /// Numbers of the enclosing graph, by name.
    around: BTreeMap<String, Expr>,
    /// Tensors whose sizes data decides and the file writes without a symbol of their own.
    pinned_sizes: HashSet<ValueId>,
}

impl<'a> GraphImporter<'a> {
    /// An importer into an empty graph.
    pub fn new(program: &'a mut Program, graph: &'a mut Graph, lookup: &'a dyn Fn(&str) -> Option<Op>) -> Self {
        GraphImporter {
            program,
            graph,
            lookup,
            names: BTreeMap::new(),
            taken: Names::default(),
            no_grad: false,
            autocast: None,
            depth: 0,
            keys: 0,
            told: BTreeMap::new(),
            file: FileWide::default(),
            reads_learnt: false,
            around: BTreeMap::new(),
            pinned_sizes: HashSet::new(),
        }
    }

    /// Sets the symbols that have a range but occur in no type: numbers that a check pinned.
    pub fn set_spare(&mut self, spare: Vec<Symbol>) {
        self.file.spare = spare;
    }

    /// Whether data decides the sizes of a tensor and a check pinned them.
    pub(super) fn has_pinned_sizes(&self, v: ValueId) -> bool {
        self.pinned_sizes.contains(&v)
    }

    /// The number of this name.
    pub(super) fn number(&self, name: &str) -> Result<Expr> {
        if let (None, Some(e)) = (self.names.get(name), self.around.get(name)) {
            return Ok(e.clone());
        }
        let v = self.value(name)?;
        match (&self.graph.values[v].ty, self.told.get(&v)) {
            (Type::Scalar(_), Some(told)) if !self.reads_learnt => Ok(told.clone()),
            (Type::Scalar(e), _) => Ok(e.clone()),
            _ => Err(damaged(format!("{name} is used as a number but is not one"))),
        }
    }

    /// Values by the file's names.
    pub fn names(&self) -> BTreeMap<String, ValueId> {
        self.names.clone()
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// Adds a node and returns its results.
    pub(super) fn add(
        &mut self,
        op: Op,
        args: Vec<Arg>,
        results: Vec<(Arc<str>, Type)>,
        origin: Arc<Origin>,
    ) -> NodeId {
        self.graph.add_node(op, args, results, origin)
    }

    /// Adds a cast of a tensor.
    pub(super) fn cast(
        &mut self,
        v: ValueId,
        to: restride_ir::DType,
        layout: Layout<Expr>,
        origin: &Arc<Origin>,
    ) -> Result<ValueId> {
        let op = self.operator("aten._to_copy.default")?;
        let mut args = vec![Arg::Value(v), Arg::DType(to)];
        op.fill_defaults_or_none(&mut args);
        let base = self.graph.values[v].name.clone();
        let name = self.fresh(&base);
        let id = self.add(op, args, vec![(name, Type::Tensor(TensorType::new(to, layout)))], origin.clone());
        Ok(self.value_of(id))
    }

    /// The only result of a node.
    pub(super) fn value_of(&self, id: NodeId) -> ValueId {
        self.graph.nodes[id].results[0]
    }

    fn symbols_of(&self, v: ValueId) -> BTreeSet<Symbol> {
        let mut own = BTreeSet::new();
        match &self.graph.values[v].ty {
            Type::Tensor(t) => t.layout.sizes.iter().for_each(|e| e.symbols(&mut own)),
            Type::Scalar(e) => e.symbols(&mut own),
            _ => {}
        }
        own
    }

    /// Records that a value produces its symbols.
    pub(super) fn knows(&mut self, v: ValueId) {
        let own = self.symbols_of(v);
        self.file.known.extend(own);
    }

    /// Marks the symbols of a value whose sizes data decides as known.
    pub(super) fn sized_by_data(&mut self, v: ValueId) {
        if self.symbols_of(v).iter().all(|s| !s.is_unbacked() || self.file.known.contains(s)) {
            self.pinned_sizes.insert(v);
        }
        self.knows(v);
    }

    pub(super) fn value_type(&self, v: ValueId) -> &Type {
        &self.graph.values[v].ty
    }

    /// Gives a value the file's name for it.
    pub(super) fn bind(&mut self, name: String, v: ValueId) {
        self.names.insert(name, v);
    }

    /// A value by the file's name.
    pub fn value(&self, name: &str) -> Result<ValueId> {
        self.names.get(name).copied().ok_or_else(|| damaged(format!("{name} is used before it is computed")))
    }

    /// Adds a note for a device other than the CPU.
    pub fn device(&mut self, d: &model::Device) {
        if d.r#type != "cpu" {
            let note = format!("device {} is mapped to the CPU", d.r#type);
            if !self.program.notes.contains(&note) {
                self.program.notes.push(note);
            }
        }
    }

    /// A name that no value of the graph has yet.
    pub(super) fn fresh(&mut self, name: &str) -> Arc<str> {
        self.taken.fresh(name)
    }

    fn tensor_type(&mut self, name: &str, meta: &model::TensorMeta) -> Result<TensorType> {
        let at = |e: Error| Error { what: format!("%{name}: {}", e.what), ..e };
        if meta.layout != model::Layout::Strided {
            return Err(Error::unsupported(format!("%{name} is not a strided tensor")));
        }
        self.device(&meta.device);
        let dtype = crate::dtype::computed(meta.dtype.dtype()?).map_err(at)?;
        if meta.sizes.len() != meta.strides.len() {
            return Err(damaged(format!("%{name} has {} sizes and {} strides", meta.sizes.len(), meta.strides.len())));
        }
        let symbols = &self.program.symbols;
        let list = |v: &[model::SymNumber]| v.iter().map(|s| symbols::number(s, symbols)).collect::<Result<Vec<_>>>();
        let (sizes, strides) = (list(&meta.sizes)?, list(&meta.strides)?);
        let offset = symbols::number(&meta.storage_offset, symbols)?;
        if sizes.iter().chain(&strides).chain([&offset]).any(|s| s.is_float() || s.is_bool()) {
            return Err(damaged(format!("a size, stride or offset of %{name} is no integer")));
        }
        if sizes.iter().chain([&offset]).any(|s| matches!(s, Expr::Int(i) if *i < 0)) {
            return Err(damaged(format!("%{name} has a negative size or offset")));
        }
        check_reach(name, &sizes, &strides, &offset, dtype)?;
        Ok(TensorType::new(dtype, Layout::strided(&sizes, &strides, offset)))
    }

    /// Name and type of the value that an argument names.
    pub(super) fn named_type(&mut self, source: &model::FileGraph, arg: &Argument) -> Result<Option<(String, Type)>> {
        let missing = |n: &str| damaged(format!("the file does not declare {n}"));
        Ok(Some(match arg {
            Argument::AsTensor(t) => {
                let meta = source.tensor_values.get(&t.name).ok_or_else(|| missing(&t.name))?;
                (t.name.clone(), Type::Tensor(self.tensor_type(&t.name, meta)?))
            }
            Argument::AsCustomObj(o) => (o.name.clone(), Type::Opaque),
            other => {
                let Some(n) = other.number_name() else { return Ok(None) };
                let numbers = match other {
                    Argument::AsSymInt(_) => &source.sym_int_values,
                    Argument::AsSymFloat(_) => &source.sym_float_values,
                    _ => &source.sym_bool_values,
                };
                let e = symbols::number(numbers.get(n).ok_or_else(|| missing(n))?, &self.program.symbols)?;
                (n.to_string(), Type::Scalar(e))
            }
        }))
    }

    /// Inputs and nodes of a graph.
    pub fn graph_inputs(&mut self, source: &model::FileGraph) -> Result<()> {
        for (i, arg) in source.inputs.iter().enumerate() {
            let found = self.named_type(source, arg).map_err(|e| at_first_reader(e, source, arg))?;
            let (name, ty) = match found {
                Some(found) => found,
                None => {
                    let ty = match args::constant(arg)? {
                        Arg::Scalar(e) => Type::Scalar(e),
                        Arg::Str(_) => Type::Str,
                        _ => Type::None,
                    };
                    (format!("input_{i}"), ty)
                }
            };
            let fresh = self.fresh(&name);
            let v = self.graph.add_input(fresh, ty);
            self.names.insert(name, v);
        }
        Ok(())
    }

    /// A whole graph but for its outputs.
    pub fn read(&mut self, source: &model::FileGraph) -> Result<()> {
        self.graph_inputs(source)?;
        self.nodes(source, &source.nodes)
    }

    /// Outputs of a graph.
    pub fn outputs(&mut self, outputs: &[Argument]) -> Result<Vec<Arg>> {
        let mut out = Vec::new();
        self.reads_learnt = true;
        for arg in outputs {
            match arg {
                // PyTorch 2.6 writes the outputs of a subgraph as one list.
                Argument::AsTensors(list) => {
                    for t in list {
                        out.push(Arg::Value(self.value(&t.name)?));
                    }
                }
                other => out.push(self.arg(other, None)?),
            }
        }
        self.reads_learnt = false;
        Ok(out)
    }

    pub(super) fn nodes(&mut self, source: &model::FileGraph, nodes: &[model::FileNode]) -> Result<()> {
        let mut rest = nodes;
        while let Some((node, after)) = rest.split_first() {
            let done = match Batching::of(&node.target) {
                Some(Batching::Load) => Ok(after),
                Some(Batching::Enter) => match predispatch::region_end(rest) {
                    Some(end) => self.vmap(source, &rest[..=end]).map(|()| &rest[end + 1..]),
                    None => Err(damaged("a traced vmap without an end")),
                },
                _ => self.node(source, node).map(|()| after),
            };
            rest = done.map_err(|e| at_node(e, node))?;
        }
        Ok(())
    }

    pub(super) fn node(&mut self, source: &model::FileGraph, node: &model::FileNode) -> Result<()> {
        match node.target.as_str() {
            "torch.ops.higher_order.associative_scan" => return self.associative_scan(node),
            "torch.ops.higher_order.with_effects" => return self.with_effects(source, node),
            "torch.ops.higher_order.wrap_with_set_grad_enabled" => return self.inline(source, node, 1),
            "torch.ops.higher_order.wrap_with_autocast" => return self.inline(source, node, 4),
            "torch.ops.higher_order.auto_functionalized" | "torch.ops.higher_order.auto_functionalized_v2" => {
                self.keys += 1;
                let origin = origin(node, self.keys, self.no_grad);
                return self.auto_functionalized(source, node, origin, node.target.ends_with("_v2"));
            }
            "torch.ops.higher_order.triton_kernel_wrapper_functional"
            | "torch.ops.higher_order.triton_kernel_wrapper_mutation" => {
                self.keys += 1;
                let origin = origin(node, self.keys, self.no_grad);
                return self.triton(source, node, origin, node.target.ends_with("_functional"));
            }
            _ => {}
        }
        if short_target(&node.target) == DATA_CHECK {
            return Err(Error::unsupported("an assignment to `x.data`, for which torch.export records only a check")
                .help("write `x.copy_(y)` under torch.no_grad() instead, which is recorded"));
        }
        let mut op = self.operator(&node.target)?;
        // PyTorch removes the overload without a message from graphs that it loads.
        if op.name() == "aten._assert_async.default" {
            return self.with_message(node);
        }
        // A function of dtypes: its result is a constant in every call that takes it.
        if matches!(&op.schema().returns[..], [r] if r.ty == ArgType::DType) {
            return Ok(());
        }
        self.keys += 1;
        let origin = Arc::new(origin(node, self.keys, self.no_grad));
        self.reads_learnt = pinned_numbers::reads_learnt(op);
        let given = self.arguments(op, node);
        self.reads_learnt = false;
        let mut given = given?;
        if let (true, [history, value, ..]) =
            (node.target.ends_with("aten.copy.default") && has_history(node), &given[..])
        {
            given = vec![value.clone(), history.clone()];
            op = self.operator("restride.with_history.default")?;
        }
        if let Some(to) = self.autocast {
            given = autocast::cast(self, op, given, to, &origin)?;
        }
        let mut results: Vec<(String, Type)> = Vec::new();
        for (i, out) in node.outputs.iter().enumerate() {
            match out {
                Argument::AsTensors(list) => {
                    for t in list {
                        let one = Argument::AsTensor(t.clone());
                        results.extend(self.named_type(source, &one)?);
                    }
                }
                Argument::AsNone(_) => results.push((format!("{}_none_{i}", node_name(node)), Type::None)),
                Argument::AsOptionalTensors(list) => {
                    for (k, t) in list.iter().enumerate() {
                        match t {
                            model::OptionalTensorArgument::AsTensor(t) => {
                                results.extend(self.named_type(source, &Argument::AsTensor(t.clone()))?);
                            }
                            model::OptionalTensorArgument::AsNone(_) => {
                                results.push((format!("{}_none_{k}", node_name(node)), Type::None));
                            }
                        }
                    }
                }
                other => match self.named_type(source, other)? {
                    Some(found) => results.push(found),
                    None => {
                        // A number that export found to be constant.
                        let ty = match args::constant(other)? {
                            Arg::Scalar(e) => Type::Scalar(e),
                            _ => Type::None,
                        };
                        results.push((format!("{}_{i}", node_name(node)), ty));
                    }
                },
            }
        }
        if self.split_at(op, &given, &results, &origin)? || self.columns_of(op, &given, &results, &origin)? {
            return Ok(());
        }
        let (op, mut given) = self.with_declared_parts(op, given, &results)?;
        self.settle_offsets(op, &given, &mut results);
        data_sizes::settle(self, op, &given, &mut results);
        given = default_dtype::settle(self, op, given, &results, &origin);
        let mut told = None;
        if let [(_, Type::Scalar(said))] = &mut results[..]
            && let Some(learnt) = self.learnt(op, &given, said)
        {
            told = Some(std::mem::replace(said, learnt));
        }
        let named: Vec<(Arc<str>, Type)> = results.iter().map(|(n, ty)| (self.fresh(n), ty.clone())).collect();
        let id = self.add(op, given, named, origin);
        let made = self.graph.nodes[id].results.clone();
        if let Some(told) = told {
            self.told.insert(made[0], told);
        }
        let by_data = matches!(op.def().kernel, Kernel::Dynamic(_)) || op.def().composed.is_some();
        made.iter().for_each(|v| if by_data { self.sized_by_data(*v) } else { self.knows(*v) });
        for ((name, _), v) in results.into_iter().zip(made) {
            self.names.insert(name, v);
        }
        Ok(())
    }

    /// Replaces storage offsets for which the file has an unbacked symbol that no node produces: those of views at an index from
    /// data, and of values computed from them.
    pub(super) fn settle_offsets(&self, op: Op, args: &[Arg], results: &mut [(String, Type)]) {
        if !results.iter().any(|r| r.1.tensor().is_some_and(|t| t.layout.offset.is_learnt())) {
            return;
        }
        let typed = |v: &ValueId| self.value_type(*v).tensor().cloned().ok_or(());
        let typed = args.iter().map(|a| a.try_map(typed, |e| Ok(e.clone())));
        let views = match (op.def().view, typed.collect::<std::result::Result<Vec<_>, ()>>()) {
            (Some(rule), Ok(typed)) => (rule.symbolic)(&Args(&typed)).ok(),
            _ => None,
        };
        for (r, (_, ty)) in results.iter_mut().enumerate() {
            let Type::Tensor(t) = ty else { continue };
            t.layout.offset = match (&views, op.twin().and_then(|twin| twin.returns.get(r))) {
                (Some(ViewOutcome::Views(views)), _) if r < views.len() => views[r].layout.offset.clone(),
                (Some(ViewOutcome::Unknown), _) => continue,
                // A mutating operator returns the tensor that it wrote.
                (_, Some(TwinReturn::Arg(i))) => match args.get(*i as usize) {
                    Some(Arg::Value(v)) => {
                        self.value_type(*v).tensor().map_or(Expr::Int(0), |t| t.layout.offset.clone())
                    }
                    _ => continue,
                },
                _ => Expr::Int(0),
            };
        }
    }

    /// `_assert_async` with the message that it raises.
    fn with_message(&mut self, node: &model::FileNode) -> Result<()> {
        let says = "Expected Tensor with single nonzero value, but got zero";
        let op = self.operator("aten._assert_async.msg")?;
        let origin = self.origin_of(node);
        let asserted = match node.inputs.first() {
            Some(input) => self.arg(&input.arg, Some(ArgType::Tensor))?,
            None => return Err(damaged("an assertion of nothing")),
        };
        self.add(op, vec![asserted, Arg::Str(says.into())], Vec::new(), origin);
        Ok(())
    }

    /// Arguments in schema order, with defaults.
    fn arguments(&mut self, op: Op, node: &model::FileNode) -> Result<Vec<Arg>> {
        let schema: &Schema = op.schema();
        if op.def().hop.is_some() || node.inputs.iter().all(|i| i.name.is_empty()) && !node.inputs.is_empty() {
            // The body itself tells which operands it mutates.
            let given = node.inputs.iter().filter(|i| i.name != "mutated_arg_indices");
            return given.map(|i| self.hop_arg(&i.arg)).collect();
        }
        let mut given: Vec<Option<Arg>> = vec![None; schema.args.len()];
        for (position, input) in node.inputs.iter().enumerate() {
            // Names that the schema does not have are ignored, as PyTorch does; Python's own functions have none.
            let python = matches!(&schema.namespace[..], "_operator" | "math" | "torch") && input.name.len() == 1;
            let Some(i) = python.then_some(position).or_else(|| schema.arg(&input.name)) else { continue };
            let Some(decl) = schema.args.get(i) else { continue };
            given[i] = Some(self.arg(&input.arg, Some(decl.ty))?);
        }
        given
            .into_iter()
            .zip(&schema.args)
            .map(|(arg, decl)| match arg {
                // A single number for a list of known length is spread.
                Some(Arg::Scalars(s)) if s.len() == 1 => Ok(match decl.ty {
                    ArgType::Ints(Some(n)) if n > 1 && decl.name != "size" => {
                        Arg::Scalars(vec![s[0].clone(); n as usize])
                    }
                    _ => Arg::Scalars(s),
                }),
                Some(arg) => Ok(arg),
                None => decl.default_arg().ok_or_else(|| damaged(format!("{op} lacks its argument {}", decl.name))),
            })
            .collect()
    }

    /// Arguments of higher-order operators: lists mix tensors and numbers.
    fn hop_arg(&mut self, arg: &Argument) -> Result<Arg> {
        match arg {
            Argument::AsSymInts(list) if list.iter().any(|s| matches!(s, model::NumberArgument::AsName(_))) => {
                let values = list.iter().map(|s| match s {
                    model::NumberArgument::AsName(n) => self.value(n).map(Some),
                    _ => Err(Error::unsupported("a number among the operands of a higher-order operator")),
                });
                Ok(Arg::Values(values.collect::<Result<_>>()?))
            }
            Argument::AsInts(v) if v.is_empty() => Ok(Arg::Values(Vec::new())),
            other => {
                let arg = self.arg(other, None)?;
                Ok(if matches!(&arg, Arg::Scalars(s) if s.is_empty()) { Arg::Values(Vec::new()) } else { arg })
            }
        }
    }

    /// An operator by the file's name for it.
    pub fn operator(&mut self, target: &str) -> Result<Op> {
        let name = short_target(target);
        (self.lookup)(name).ok_or_else(|| {
            Error::unsupported(format!("operator {name} is not known")).help("give its schema in a file with --ops")
        })
    }

    /// Adds an input of this graph under the file's name.
    pub(super) fn add_input(&mut self, name: String, ty: Type) {
        let fresh = self.fresh(&name);
        let v = self.graph.add_input(fresh, ty);
        self.names.insert(name, v);
    }

    /// The origin of the next node.
    pub(super) fn origin_of(&mut self, node: &model::FileNode) -> Arc<Origin> {
        self.keys += 1;
        Arc::new(origin(node, self.keys, self.no_grad))
    }

    /// Numbers by name, for a nested graph.
    pub(super) fn numbers_by_name(&self) -> BTreeMap<String, Expr> {
        let mut out = self.around.clone();
        for (name, v) in &self.names {
            if let Type::Scalar(e) = &self.graph.values[*v].ty {
                out.insert(name.clone(), self.told.get(v).unwrap_or(e).clone());
            }
        }
        out
    }

    /// Sets the numbers of the enclosing graph that nodes read by name.
    pub(super) fn set_numbers(&mut self, numbers: BTreeMap<String, Expr>) {
        self.around = numbers;
    }
}

/// Adds a node of the file to an error, unless it names one.
fn at_node(e: Error, node: &model::FileNode) -> Error {
    e.at_call(&origin(node, 0, false), || format!("%{} = {}", node_name(node), short_target(&node.target)))
}

/// Adds the first node that reads an input to an error about this input.
fn at_first_reader(e: Error, source: &model::FileGraph, input: &Argument) -> Error {
    let names = input.tensor_names();
    let reads = |n: &&model::FileNode| predispatch::reads(n).iter().any(|name| names.contains(name));
    match source.nodes.iter().find(reads) {
        Some(node) => at_node(e, node),
        None => e,
    }
}

/// Sizes and strides whose product leaves 64 bits are refused before anything is computed with them.
fn check_reach(name: &str, sizes: &[Expr], strides: &[Expr], offset: &Expr, dtype: restride_ir::DType) -> Result<()> {
    let too_large = || damaged(format!("%{name} is larger than any memory"));
    let known = |e: &Expr| if let Expr::Int(i) = e { Some(*i) } else { None };
    let mut numel: i64 = dtype.size() as i64;
    let mut reach: i64 = known(offset).unwrap_or(0);
    for (size, stride) in sizes.iter().zip(strides) {
        if let Some(n) = known(size) {
            numel = numel.checked_mul(n.max(1)).ok_or_else(too_large)?;
            if let Some(s) = known(stride) {
                if s < 0 {
                    return Err(damaged(format!("%{name} has a negative stride")));
                }
                let step = s.checked_mul((n - 1).max(0)).ok_or_else(too_large)?;
                reach = reach.checked_add(step).ok_or_else(too_large)?;
            }
        }
    }
    reach.checked_mul(dtype.size() as i64).filter(|r| *r < 1 << 46).ok_or_else(too_large)?;
    if numel < 1 << 46 { Ok(()) } else { Err(too_large()) }
}
