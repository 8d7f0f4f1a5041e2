//! Writes graphs: nodes with their arguments, and the types of all names.

use super::symbolic;
use crate::dtype::FileDType;
use crate::import::triton::NAMESPACE;
use crate::import::{HISTORY, MARKS, OVERWRITTEN};
use crate::model::{
    self, Argument, Device, NamedArgument, NumberArgument, OptionalTensorArgument, ScalarType, TensorArgument,
    TensorMeta,
};
use restride_ir::{
    Arg, ArgType, Binding, CollectTree, DType, Effects, Error, Expr, Graph, MemoryFormat, Names, Node, Op, Origin,
    Program, Result, Stage, Symbol, Table, TensorType, Type, ValueId,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Facts that all graphs of a program share.
pub struct ExportContext<'a> {
    /// The program.
    pub program: &'a Program,
    /// Values of symbols at export.
    pub hints: Binding,
    /// Aliases and mutations of each node.
    pub effects: Effects,
}

impl ExportContext<'_> {
    /// Whether the program is functional: PyTorch may give its values other strides than their types say.
    pub fn functional(&self) -> bool {
        self.program.stage == Stage::Functional
    }
}

/// Writes one graph.
pub struct GraphWriter<'a> {
    pub ctx: &'a ExportContext<'a>,
    pub source: &'a Graph,
    pub out: model::FileGraph,
    /// The file's name of each value.
    names: Table<ValueId, Option<Arc<str>>>,
    /// Names that replace values in the arguments of the current node.
    pub instead: BTreeMap<ValueId, Arc<str>>,
    taken: Names,
    /// Names of inputs that differ from the program's.
    renamed: Table<ValueId, Option<Arc<str>>>,
    /// Numbers that have a name already.
    pub(super) numbers: HashMap<Expr, Arc<str>>,
    /// Symbolic sizes, with a tensor and a dimension that have them.
    pub(super) sizes: Vec<(Expr, Arc<str>, usize)>,
    /// Metadata of the current node.
    pub origin: Arc<Origin>,
    /// Whether the current node is a `copy` that stands for its source with the autograd history of its target.
    history: bool,
    /// Strides and storages of PyTorch's tensors, in a functional program.
    pub layouts: super::torch_layouts::TorchLayouts,
    /// Conditions that the graph's own nodes assert.
    pub checks: BTreeSet<Expr>,
    /// Unbacked symbols that a check equates with input sizes, which PyTorch's types use instead.
    pub pinned: BTreeMap<Symbol, Expr>,
    /// Unbacked symbols that nodes so far produced.
    pub learnt: BTreeSet<Symbol>,
    /// Of a body: the numbers that it needs of the graph outside.
    pub(super) asked: Option<Vec<super::bodies::AskedNumber>>,
}

fn file_dtype(d: DType) -> Result<ScalarType> {
    FileDType::from_name(d.torch_name()).map(ScalarType::Known).map_err(Error::from)
}

/// A tensor's type in the archive.
pub fn tensor_meta(ty: &TensorType, hints: &Binding, requires_grad: bool) -> Result<TensorMeta> {
    let list = |v: &[Expr]| v.iter().map(|e| symbolic::sym_int(e, hints)).collect::<Result<Vec<_>>>();
    Ok(TensorMeta {
        dtype: file_dtype(ty.dtype)?,
        sizes: list(&ty.layout.sizes)?,
        requires_grad,
        device: Device { r#type: "cpu".into(), index: None },
        strides: list(&ty.layout.strides)?,
        storage_offset: symbolic::sym_int(&ty.layout.offset, hints)?,
        layout: model::Layout::Strided,
    })
}

pub(super) fn as_tensor(name: &str) -> Argument {
    Argument::AsTensor(TensorArgument { name: name.to_string() })
}

/// An operator's name in the file.
pub fn target(op: Op) -> String {
    match op.schema().namespace.as_str() {
        "_operator" | "math" | "torch" => op.name().to_string(),
        _ => format!("torch.ops.{}", op.name()),
    }
}

/// `with_history(value, history)` in PyTorch's operators: `copy(history, value)`, whose elements are the same.
fn history_as_copy(node: &Node) -> Result<Node> {
    let [value, history] = &node.args[..] else {
        return Err(Error::invalid(format!("{} takes a value and a history", node.op)));
    };
    let op = restride_ops::lookup("aten.copy.default").ok_or_else(|| Error::unsupported("aten.copy is not known"))?;
    let mut args = vec![history.clone(), value.clone()];
    op.fill_defaults(&mut args)?;
    Ok(Node { op, args, ..node.clone() })
}

impl<'a> GraphWriter<'a> {
    /// A writer for a graph.
    pub fn new(ctx: &'a ExportContext<'a>, source: &'a Graph) -> Self {
        let mut taken: Names = source.values.iter().map(|(_, v)| v.name.clone()).collect();
        // A local variable of this name would hide the module.
        taken.take("self".into());
        let renamed = super::python_names::renamed_inputs(source, &mut taken);
        let asserted = source.ordered().filter_map(|(_, n)| n.op.def().asserts.map(|asserts| asserts(&n.args)));
        let checks: BTreeSet<Expr> = asserted.flatten().collect_set();
        GraphWriter {
            ctx,
            source,
            out: model::FileGraph::default(),
            names: Table::new(),
            instead: BTreeMap::new(),
            taken,
            renamed,
            numbers: HashMap::new(),
            sizes: Vec::new(),
            origin: Arc::default(),
            history: false,
            layouts: super::torch_layouts::TorchLayouts::default(),
            pinned: checks.iter().filter_map(super::range_asserts::pinned).collect_map(),
            checks,
            learnt: source
                .inputs
                .iter()
                .flat_map(|v| super::range_asserts::named(&source.values[*v].ty))
                .map(|(s, _)| s)
                .collect_set(),
            asked: None,
        }
    }

    /// A name that no value has.
    pub fn fresh(&mut self, hint: &str) -> Arc<str> {
        self.taken.fresh(hint)
    }

    /// A value's name in the current node.
    pub fn name(&self, v: ValueId) -> Result<Arc<str>> {
        if let Some(name) = self.instead.get(&v) {
            return Ok(name.clone());
        }
        self.names[v]
            .clone()
            .ok_or_else(|| Error::invalid(format!("%{} is used before it is made", self.source.values[v].name)))
    }

    /// Declares a tensor of this name.
    pub fn declare_tensor(&mut self, name: &Arc<str>, ty: &TensorType, requires_grad: bool) -> Result<()> {
        self.out.tensor_values.insert(name.to_string(), tensor_meta(ty, &self.ctx.hints, requires_grad)?);
        for (d, e) in ty.layout.sizes.iter().enumerate() {
            if !matches!(e, Expr::Int(_)) && !self.sizes.iter().any(|(have, _, _)| have == e) {
                self.sizes.push((e.clone(), name.clone(), d));
            }
        }
        Ok(())
    }

    /// Declares a tensor whose sizes no other node reads.
    pub fn declare_unused(&mut self, name: &Arc<str>, ty: &TensorType) -> Result<()> {
        self.out.tensor_values.insert(name.to_string(), tensor_meta(ty, &self.ctx.hints, false)?);
        Ok(())
    }

    /// Declares a number of this name; returns it as an argument.
    pub(super) fn declare_number(&mut self, name: &Arc<str>, e: &Expr) -> Result<Argument> {
        self.numbers.entry(e.clone()).or_insert_with(|| name.clone());
        let key = name.to_string();
        let said = &e.replace(&self.pinned);
        let hints = &self.ctx.hints;
        if e.is_bool() {
            self.out.sym_bool_values.insert(key, symbolic::sym_bool(said)?);
        } else if e.is_float() {
            self.out.sym_float_values.insert(key, symbolic::sym_float(said, hints)?);
        } else {
            self.out.sym_int_values.insert(key, symbolic::sym_int(said, hints)?);
        }
        Ok(Argument::number(&**name, e))
    }

    /// Declares a value under its own name, or a fresh one; returns it as an argument.
    pub fn declare(&mut self, v: ValueId, requires_grad: bool) -> Result<Argument> {
        let value = &self.source.values[v];
        let name = match &self.renamed[v] {
            Some(name) => name.clone(),
            None if &*value.name == "self" => self.fresh("self_"),
            None => value.name.clone(),
        };
        self.names.set(v, Some(name.clone()));
        match &value.ty {
            Type::Tensor(ty) => {
                self.declare_tensor(&name, ty, requires_grad)?;
                Ok(as_tensor(&name))
            }
            Type::Scalar(e) => self.declare_number(&name, e),
            Type::None => Ok(Argument::AsNone(true)),
            Type::Str | Type::Opaque => {
                Err(Error::unsupported(format!("%{name} is neither a tensor nor a number: a `.pt2` cannot hold it")))
            }
        }
    }

    /// Gives a value the name of a declared tensor.
    pub fn bind(&mut self, v: ValueId, name: &Arc<str>) {
        self.names.set(v, Some(name.clone()));
    }

    fn metadata(&self) -> model::Map<String> {
        let mut out = model::Map::new();
        if let Some(trace) = &self.origin.stack_trace {
            out.insert("stack_trace".into(), trace.to_string());
        }
        if let Some(module) = &self.origin.module {
            // A program keeps no class names: each module is written as a plain `Module`.
            let class = "torch.nn.modules.module.Module";
            let mut stack = vec![format!("L__self__,,{class}")];
            let mut path = String::new();
            for part in module.split('.').filter(|p| !p.contains([',', ';', '[', ']', '(', ')'])) {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(part);
                stack.push(format!("L__self___{},{path},{class}", path.replace('.', "_")));
            }
            out.insert("nn_module_stack".into(), stack.join(";"));
        }
        let origin = &self.origin;
        let mut marks: Vec<String> = Vec::new();
        marks.extend(origin.no_grad.then(|| "no_grad".to_string()));
        marks.extend(self.history.then(|| HISTORY.to_string()));
        if let Some(which) = &origin.overwritten {
            let which: Vec<String> = which.iter().map(u32::to_string).collect();
            marks.push(format!("{OVERWRITTEN}{}", which.join(",")));
        }
        if !marks.is_empty() {
            out.insert("custom".into(), serde_json::json!({ MARKS: marks.join(" ") }).to_string());
        }
        out
    }

    /// Adds a node.
    pub fn push(&mut self, target: String, inputs: Vec<NamedArgument>, outputs: Vec<Argument>, hop: bool) {
        let name = outputs.iter().find_map(Argument::number_name).map(str::to_string);
        let metadata = self.metadata();
        self.out.nodes.push(model::FileNode {
            target,
            inputs,
            outputs,
            metadata,
            is_hop_single_tensor_return: hop.then_some(false),
            name,
        });
    }

    /// Writes an extra call with one tensor result; arguments in schema order.
    pub fn call(&mut self, op: &str, args: &[Arg], hint: &str, ty: &TensorType) -> Result<Arc<str>> {
        self.call_with(op, args, None, hint, ty)
    }

    /// [`Self::call`] with a tensor given by name as the first argument.
    pub fn call_on(&mut self, op: &str, first: &str, rest: &[Arg], hint: &str, ty: &TensorType) -> Result<Arc<str>> {
        self.call_with(op, &[&[Arg::None], rest].concat(), Some(first), hint, ty)
    }

    fn call_with(
        &mut self,
        op: &str,
        args: &[Arg],
        first: Option<&str>,
        hint: &str,
        ty: &TensorType,
    ) -> Result<Arc<str>> {
        let op = restride_ops::lookup(op).ok_or_else(|| Error::unsupported(format!("{op} is not known")))?;
        let mut inputs = self.inputs(op, args)?;
        if let Some(first) = first {
            inputs[0].arg = as_tensor(first);
        }
        let name = self.fresh(hint);
        self.declare_tensor(&name, ty, false)?;
        self.push(target(op), inputs, vec![as_tensor(&name)], false);
        Ok(name)
    }

    /// Writes a node.
    pub fn node(&mut self, node: &Node) -> Result<()> {
        self.origin = node.origin.clone();
        self.history = node.op.def().history;
        let copy = if self.history { Some(history_as_copy(node)?) } else { None };
        let node = copy.as_ref().unwrap_or(node);
        if super::range_asserts::holds(node) {
            return Ok(());
        }
        if let ("aten._linalg_check_errors.default", [Arg::Value(info), Arg::Str(api), ..]) =
            (node.op.name(), &node.args[..])
        {
            return self.check_of_factors(*info, api);
        }
        let op = node.op;
        if let Some(custom) = restride_ops::custom_form_of(op) {
            if custom.schema().namespace == NAMESPACE {
                return super::triton::write_functional(self, node, custom);
            }
            return super::auto_functionalized::write(self, node, custom);
        }
        if op.schema().namespace == NAMESPACE {
            return super::triton::write(self, node);
        }
        if !op.in_torch() {
            return Err(Error::unsupported(format!("{op} is no operator of PyTorch's, and cannot be written")));
        }
        let hop = op.def().hop.is_some();
        let inputs = if hop {
            self.hop_inputs(node)?
        } else if self.ctx.functional() {
            let args = super::torch_layouts::prepare(self, node)?;
            self.inputs(op, &args)?
        } else {
            self.inputs(op, &node.args)?
        };
        self.instead.clear();
        let mut outputs = Vec::new();
        let mut made = Vec::with_capacity(node.results.len());
        for &r in &node.results {
            made.push(self.declare(r, false)?);
        }
        let returns = &op.schema().returns;
        if hop {
            outputs = made;
        } else {
            let lists = op.schema().returned_lists();
            let list_length = (made.len() + lists).checked_sub(returns.len());
            let mut made = made.into_iter();
            for r in returns {
                if r.ty != ArgType::Tensors {
                    outputs.extend(made.next());
                    continue;
                }
                let (1, Some(n)) = (lists, list_length) else {
                    return Err(Error::unsupported(format!("{op} returns several lists")));
                };
                let list = made.by_ref().take(n).map(|a| match a {
                    Argument::AsTensor(t) => Ok(t),
                    _ => Err(Error::invalid(format!("{op} returns a list that holds something other than tensors"))),
                });
                outputs.push(Argument::AsTensors(list.collect::<Result<_>>()?));
            }
        }
        self.push(target(op), inputs, outputs, hop);
        self.history = false;
        if self.ctx.functional() {
            super::torch_layouts::learn(self, node)?;
        }
        super::range_asserts::assert_learnt(self, node)
    }

    /// `_linalg_check_errors` as an assertion: PyTorch drops the check itself when it loads a file.
    fn check_of_factors(&mut self, info: ValueId, api: &str) -> Result<()> {
        let sizes = self.source.tensor(info).layout.sizes.clone();
        let zero = [Arg::Value(info), Arg::Scalar(Expr::Int(0))];
        let fine = self.call("aten.eq.Scalar", &zero, "fine", &TensorType::contiguous(DType::Bool, &sizes))?;
        let all =
            self.call_on("aten.all.default", &fine, &[], "all_fine", &TensorType::contiguous(DType::Bool, &[]))?;
        let says = format!("{api}: the input matrix is singular or has no such factors");
        let inputs = vec![
            NamedArgument::positional("self", as_tensor(&all)),
            NamedArgument::positional("assert_msg", Argument::AsString(says)),
        ];
        self.push("torch.ops.aten._assert_async.msg".into(), inputs, Vec::new(), false);
        Ok(())
    }

    /// Arguments of a call, without the trailing ones that have their defaults.
    pub(super) fn inputs(&mut self, op: Op, args: &[Arg]) -> Result<Vec<NamedArgument>> {
        let schema = op.schema();
        let default = |i: usize| {
            let decl = &schema.args[i];
            args.get(i).is_none_or(|a| decl.default_arg().is_some_and(|d: Arg| d == *a))
        };
        let last = (0..schema.args.len()).rfind(|&i| !schema.args[i].kwarg_only && !default(i));
        let mut out = Vec::new();
        for (i, decl) in schema.args.iter().enumerate() {
            let given = match last {
                _ if decl.kwarg_only => !default(i),
                Some(last) => i <= last,
                None => false,
            };
            let Some(arg) = args.get(i).filter(|_| given) else { continue };
            let made = if decl.kwarg_only { NamedArgument::keyword } else { NamedArgument::positional };
            out.push(made(decl.name.clone(), self.argument(arg, Some(decl.ty))?));
        }
        Ok(out)
    }

    /// An argument, typed by the schema where there is one.
    pub fn argument(&mut self, arg: &Arg, ty: Option<ArgType>) -> Result<Argument> {
        let tensor = |name: Arc<str>| TensorArgument { name: name.to_string() };
        Ok(match arg {
            Arg::None => Argument::AsNone(true),
            Arg::Value(v) => match &self.source.values[*v].ty {
                Type::Tensor(_) => Argument::AsTensor(tensor(self.name(*v)?)),
                Type::Scalar(e) => {
                    let e = e.clone();
                    match self.names[*v].clone() {
                        Some(name) if e.constant().is_none() => Argument::number(&*name, &e),
                        _ => self.scalar(&e, ty)?,
                    }
                }
                Type::None => Argument::AsNone(true),
                Type::Str | Type::Opaque => {
                    return Err(Error::unsupported("an argument that is neither a tensor nor a number"));
                }
            },
            Arg::Values(list) if list.iter().all(Option::is_some) => {
                // Numbers among the operands of a higher-order operator are written by name, like tensors.
                Argument::AsTensors(list.iter().flatten().map(|v| self.name(*v).map(tensor)).collect::<Result<_>>()?)
            }
            Arg::Values(list) => Argument::AsOptionalTensors(
                list.iter()
                    .map(|v| {
                        Ok(match v {
                            Some(v) => OptionalTensorArgument::AsTensor(tensor(self.name(*v)?)),
                            None => OptionalTensorArgument::AsNone(true),
                        })
                    })
                    .collect::<Result<_>>()?,
            ),
            Arg::Scalar(e) => match ty {
                // A number becomes a list of one.
                Some(ArgType::Ints(_)) => self.scalars(std::slice::from_ref(e), ty)?,
                _ => self.scalar(e, ty)?,
            },
            Arg::Scalars(list) => self.scalars(list, ty)?,
            Arg::Complex(re, im) => {
                Argument::AsComplex(model::ComplexValue { real: model::Float(*re), imag: model::Float(*im) })
            }
            Arg::Str(s) => Argument::AsString(s.to_string()),
            Arg::Strs(s) => Argument::AsStrings(s.iter().map(|s| s.to_string()).collect()),
            Arg::DType(d) => Argument::AsScalarType(file_dtype(*d)?),
            Arg::Device(d) => {
                let (kind, index) = match d.split_once(':') {
                    Some((kind, index)) => (kind, index.parse().ok()),
                    None => (&**d, None),
                };
                Argument::AsDevice(Device { r#type: kind.to_string(), index })
            }
            Arg::Strided => Argument::AsLayout(model::Layout::Strided),
            Arg::MemoryFormat(m) => Argument::AsMemoryFormat(match m {
                MemoryFormat::Contiguous => model::MemoryFormat::ContiguousFormat,
                MemoryFormat::Preserve => model::MemoryFormat::PreserveFormat,
                MemoryFormat::ChannelsLast => model::MemoryFormat::ChannelsLast,
                MemoryFormat::ChannelsLast3d => model::MemoryFormat::ChannelsLast3d,
            }),
            Arg::Graph(_) => return Err(Error::invalid("a graph as an argument of an operator that has no bodies")),
            Arg::Op(op) => Argument::AsOperator(target(*op)),
        })
    }

    pub(super) fn scalar(&mut self, e: &Expr, ty: Option<ArgType>) -> Result<Argument> {
        let Some(value) = e.constant() else {
            let name = self.number(e)?;
            return Ok(Argument::number(&*name, e));
        };
        Ok(match (ty, e) {
            (Some(ArgType::Float), _) | (_, Expr::Float(_)) => Argument::AsFloat(model::Float(value.as_f64())),
            // Beside a tensor of truth values 1 is another number than `True`: it decides the type of the result.
            (Some(ArgType::Bool), _) | (None | Some(ArgType::Scalar | ArgType::Tensor), Expr::Bool(_)) => {
                Argument::AsBool(value.as_bool())
            }
            _ => Argument::AsInt(value.as_i64()),
        })
    }

    fn scalars(&mut self, list: &[Expr], ty: Option<ArgType>) -> Result<Argument> {
        let known: Option<Vec<_>> = list.iter().map(Expr::constant).collect();
        let float = matches!(ty, Some(ArgType::Floats)) || list.iter().any(Expr::is_float);
        if let Some(known) = known {
            let bools = !list.is_empty() && list.iter().all(|e| matches!(e, Expr::Bool(_)));
            return Ok(match ty {
                _ if float => Argument::AsFloats(known.iter().map(|s| model::Float(s.as_f64())).collect()),
                Some(ArgType::Bools(_)) => Argument::AsBools(known.iter().map(|s| s.as_bool()).collect()),
                None | Some(ArgType::Scalars) if bools => {
                    Argument::AsBools(known.iter().map(|s| s.as_bool()).collect())
                }
                Some(ArgType::Tensors | ArgType::OptTensors) if list.is_empty() => Argument::AsTensors(Vec::new()),
                _ => Argument::AsInts(known.iter().map(|s| s.as_i64()).collect()),
            });
        }
        let numbers = list.iter().map(|e| {
            Ok(match e.constant() {
                Some(x) if float => NumberArgument::AsFloat(model::Float(x.as_f64())),
                Some(x) => NumberArgument::AsInt(x.as_i64()),
                None => NumberArgument::AsName(self.number(e)?.to_string()),
            })
        });
        let numbers = numbers.collect::<Result<_>>()?;
        Ok(if float { Argument::AsSymFloats(numbers) } else { Argument::AsSymInts(numbers) })
    }
}
