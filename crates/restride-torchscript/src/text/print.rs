//! Functional programs in the forms in which PyTorch prints graphs.

use super::GraphForm;
use super::printed_numbers::{Computed, NumberOperand, PrintedNumber, PrintedNumbers, infix};
use restride_ir::{
    Arg, DType, Error, Expr, Graph, InputKind, MemoryFormat, Node, NodeId, OutputKind, Program, Result, Symbol, Type,
    ValueId,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Prints a program in a form. Mutated inputs get their new contents by `copy_` before the `return`, except in an ExportedProgram,
/// which declares them.
///
/// # Errors
/// A program with control flow, which the forms cannot show as one graph.
pub fn print(program: &Program, form: GraphForm) -> Result<String> {
    let graph = program.graph();
    for (id, node) in graph.ordered() {
        if node.op.def().hop.is_some() {
            return Err(Error::unsupported(format!("{} with its bodies in a printed graph", node.op))
                .at(graph, id)
                .help("write a .pt2 or a .fx with -o"));
        }
    }
    let numbers = PrintedNumbers::of(program, |v| plain_name(graph, v))?;
    let mut users = users(program);
    for v in numbers.sized() {
        *users.entry(v).or_insert(0) += 1;
    }
    let printer = GraphPrinter { program, graph, users, numbers };
    Ok(match form {
        GraphForm::Nodes => printer.nodes(),
        GraphForm::Code => printer.code(),
        GraphForm::Exported => printer.exported(),
        GraphForm::JitIr => printer.jit_ir(),
    })
}

/// How often each value is read.
fn users(program: &Program) -> BTreeMap<ValueId, usize> {
    let graph = program.graph();
    let mut out = BTreeMap::new();
    for v in graph.ordered().flat_map(|(_, n)| n.operands().collect::<Vec<_>>()).chain(graph.output_values()) {
        *out.entry(v).or_insert(0) += 1;
    }
    out
}

struct GraphPrinter<'p> {
    program: &'p Program,
    graph: &'p Graph,
    users: BTreeMap<ValueId, usize>,
    numbers: PrintedNumbers,
}

/// A value's name, as Python takes it.
fn plain_name(graph: &Graph, v: ValueId) -> String {
    let name = &graph.values[v].name;
    name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

/// A statement of a printed graph.
struct PrintedCall {
    name: String,
    target: String,
    args: Vec<String>,
    kwargs: Vec<(String, String)>,
    ty: Option<String>,
    users: usize,
}

impl GraphPrinter<'_> {
    fn name(&self, v: ValueId) -> String {
        plain_name(self.graph, v)
    }

    fn ty(&self, v: ValueId) -> Option<String> {
        let ty = self.graph.values[v].ty.tensor()?;
        let sizes: Vec<String> = ty.layout.sizes.iter().map(|n| n.to_string()).collect();
        Some(format!("{}[{}]", ty.dtype, sizes.join(", ")))
    }

    fn used(&self, v: ValueId) -> usize {
        self.users.get(&v).copied().unwrap_or(0)
    }

    /// An argument as Python writes it; `sigil` stands before names of values.
    fn arg(&self, arg: &Arg, sigil: &str, quote: &str) -> String {
        let value = |v: &ValueId| format!("{sigil}{}", self.name(*v));
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        let number = |e: &Expr| self.numbers.name(e).map_or_else(|| number(e), |n| format!("{sigil}{n}"));
        match arg {
            Arg::None => "None".into(),
            Arg::Value(v) => value(v),
            Arg::Values(vs) => list(vs.iter().map(|v| v.as_ref().map_or("None".into(), value)).collect()),
            Arg::Scalar(e) => number(e),
            Arg::Scalars(es) => list(es.iter().map(number).collect()),
            Arg::Complex(re, im) => format!("({re:?}+{im:?}j)"),
            Arg::Str(s) => format!("{quote}{s}{quote}"),
            Arg::Strs(ss) => list(ss.iter().map(|s| format!("{quote}{s}{quote}")).collect()),
            Arg::DType(d) => format!("torch.{}", d.torch_name()),
            Arg::Device(d) if quote.is_empty() => d.to_string(),
            Arg::Device(d) => format!("torch.device('{d}')"),
            Arg::Strided => "torch.strided".into(),
            Arg::MemoryFormat(m) => format!("torch.{}", format_name(*m)),
            Arg::Graph(_) | Arg::Op(_) => "None".into(),
        }
    }

    /// The call of a node, without arguments that have their defaults.
    fn line(&self, node: &Node, sigil: &str, quote: &str) -> PrintedCall {
        let schema = node.op.schema();
        let (mut args, mut kwargs) = (Vec::new(), Vec::new());
        let default =
            |i: usize| schema.args.get(i).and_then(|d| d.default_arg()).is_some_and(|d: Arg| d == node.args[i]);
        let positional =
            (0..node.args.len()).rev().find(|i| !schema.args[*i].kwarg_only && !default(*i)).map_or(0, |i| i + 1);
        for (i, arg) in node.args.iter().enumerate() {
            let decl = &schema.args[i];
            if decl.kwarg_only {
                if !default(i) {
                    kwargs.push((decl.name.clone(), self.arg(arg, sigil, quote)));
                }
            } else if i < positional {
                args.push(self.arg(arg, sigil, quote));
            }
        }
        let target = match schema.namespace.as_str() {
            "_operator" => format!("operator.{}", schema.name),
            "math" | "torch" => format!("{}.{}", schema.namespace, schema.name),
            _ => format!("torch.ops.{}", node.op.name()),
        };
        let (name, ty, users) = match node.results[..] {
            [one] => (self.name(one), self.ty(one), self.used(one)),
            _ => {
                let users = node.results.iter().filter(|r| self.used(**r) > 0).count();
                (self.tuple_name(node), None, users)
            }
        };
        PrintedCall { name, target, args, kwargs, ty, users }
    }

    /// A name for the results of a node as one.
    fn tuple_name(&self, node: &Node) -> String {
        match node.results.first() {
            Some(r) => format!("{}_results", self.name(*r)),
            None => format!("_{}_{}", node.op.schema().name, node.origin.key),
        }
    }

    /// All statements: calls, and the parts of several results.
    fn lines(&self, sigil: &str, quote: &str) -> Vec<PrintedCall> {
        let mut out = Vec::new();
        for (id, node) in self.graph.ordered() {
            out.extend(self.computed(Some(id), sigil));
            let line = self.line(node, sigil, quote);
            let whole = line.name.clone();
            out.push(line);
            if node.results.len() < 2 {
                continue;
            }
            for (i, &r) in node.results.iter().enumerate() {
                if self.used(r) == 0 {
                    continue;
                }
                out.push(PrintedCall {
                    name: self.name(r),
                    target: "operator.getitem".into(),
                    args: vec![format!("{sigil}{whole}"), i.to_string()],
                    kwargs: Vec::new(),
                    ty: self.ty(r),
                    users: self.used(r),
                });
            }
        }
        out.extend(self.computed(None, sigil));
        out
    }

    /// Numbers that are computed before a node, or at the end.
    fn computed(&self, before: Option<NodeId>, sigil: &str) -> Vec<PrintedCall> {
        let one = |n: &PrintedNumber| {
            let (target, args) = match &n.how {
                Computed::Size(v, d) => {
                    ("torch.ops.aten.sym_size.int", vec![format!("{sigil}{}", self.name(*v)), d.to_string()])
                }
                Computed::Call(f, operands) => {
                    let operand = |o: &NumberOperand| match o {
                        NumberOperand::Name(n) => format!("{sigil}{n}"),
                        NumberOperand::Constant(e) => number(e),
                    };
                    (f.python, operands.iter().map(operand).collect())
                }
            };
            PrintedCall {
                name: n.name.clone(),
                target: target.into(),
                args,
                kwargs: Vec::new(),
                ty: None,
                users: self.numbers.readers(self.graph, &n.name),
            }
        };
        self.numbers.before(before).iter().map(one).collect()
    }

    /// Writes of mutated inputs, and the results.
    fn ends(&self) -> (Vec<(String, ValueId)>, Vec<&Arg>) {
        let (mut writes, mut results) = (Vec::new(), Vec::new());
        for (spec, arg) in self.program.signature.outputs.iter().zip(&self.graph.outputs) {
            match (&spec.kind, arg) {
                (OutputKind::Mutation(i), Arg::Value(v)) => {
                    writes.push((self.name(self.program.signature.inputs[*i].value), *v));
                }
                (OutputKind::User | OutputKind::Loss, arg) => results.push(arg),
                _ => {}
            }
        }
        (writes, results)
    }

    fn results(&self, results: &[&Arg], sigil: &str) -> String {
        let items: Vec<String> = results.iter().map(|a| self.arg(a, sigil, "'")).collect();
        match &items[..] {
            [one] => format!("({one},)"),
            many => format!("({})", many.join(", ")),
        }
    }

    fn nodes(&self) -> String {
        let mut out = "graph():\n".to_string();
        for spec in &self.program.signature.inputs {
            let (name, users) = (self.name(spec.value), self.used(spec.value));
            let _ = match weight(&spec.kind) {
                Some(path) => writeln!(out, "    %{name} : [num_users={users}] = get_attr[target={path}]"),
                None => writeln!(out, "    %{name} : [num_users={users}] = placeholder[target={name}]"),
            };
        }
        let mut push = |name: &str, users: usize, target: &str, args: &[String], kwargs: &[(String, String)]| {
            let comma = if args.len() == 1 { "," } else { "" };
            let kwargs: Vec<String> = kwargs.iter().map(|(k, v)| format!("{k}: {v}")).collect();
            let _ = writeln!(
                out,
                "    %{name} : [num_users={users}] = call_function[target={target}](args = ({}{comma}), kwargs = {{{}}})",
                args.join(", "),
                kwargs.join(", ")
            );
        };
        for l in self.lines("%", "") {
            push(&l.name, l.users, &l.target, &l.args, &l.kwargs);
        }
        let (writes, results) = self.ends();
        for (target, v) in writes {
            let args = [format!("%{target}"), format!("%{}", self.name(v))];
            push(&format!("copy__{target}"), 0, "torch.ops.aten.copy_.default", &args, &[]);
        }
        let _ = writeln!(out, "    return {}", self.results(&results, ""));
        out
    }

    fn call(l: &PrintedCall) -> String {
        if l.target == "operator.getitem" {
            return format!("{}[{}]", l.args[0], l.args[1]);
        }
        if let ([a, b], Some(infix)) = (&l.args[..], infix(&l.target)) {
            return format!("{a} {infix} {b}");
        }
        let args: Vec<String> =
            l.args.iter().cloned().chain(l.kwargs.iter().map(|(k, v)| format!("{k} = {v}"))).collect();
        format!("{}({})", l.target, args.join(", "))
    }

    fn body(&self, indent: &str, out: &mut String) {
        for l in self.lines("", "'") {
            let ty = l.ty.as_ref().map_or(String::new(), |t| format!(": \"{t}\""));
            let _ = writeln!(out, "{indent}{}{ty} = {}", l.name, Self::call(&l));
        }
    }

    fn params(&self, weights: bool) -> String {
        let mut out = "self".to_string();
        for spec in &self.program.signature.inputs {
            if weights || weight(&spec.kind).is_none() {
                let ty = self.ty(spec.value).map_or(String::new(), |t| format!(": \"{t}\""));
                let _ = write!(out, ", {}{ty}", self.name(spec.value));
            }
        }
        out
    }

    fn code(&self) -> String {
        let mut out = format!("def forward({}):\n", self.params(false));
        for spec in &self.program.signature.inputs {
            if let Some(path) = weight(&spec.kind) {
                let ty = self.ty(spec.value).map_or(String::new(), |t| format!(": \"{t}\""));
                let path = path.split('.').fold("self".to_string(), |base, part| {
                    if part.starts_with(|c: char| c.is_ascii_digit()) {
                        format!("getattr({base}, \"{part}\")")
                    } else {
                        format!("{base}.{part}")
                    }
                });
                let _ = writeln!(out, "    {}{ty} = {path}", self.name(spec.value));
            }
        }
        self.body("    ", &mut out);
        let (writes, results) = self.ends();
        for (target, v) in writes {
            let _ = writeln!(
                out,
                "    copy__{target} = torch.ops.aten.copy_.default({target}, {});  copy__{target} = None",
                self.name(v)
            );
        }
        let _ = writeln!(out, "    return {}", self.results(&results, ""));
        out
    }

    fn exported(&self) -> String {
        let mut out = "ExportedProgram:\n    class GraphModule(torch.nn.Module):\n".to_string();
        let _ = writeln!(out, "        def forward({}):", self.params(true));
        self.body("            ", &mut out);
        let all: Vec<&Arg> = self.graph.outputs.iter().collect();
        let _ = writeln!(out, "            return {}\n\nGraph signature:\n    # inputs", self.results(&all, ""));
        for spec in &self.program.signature.inputs {
            let name = self.name(spec.value);
            let _ = match &spec.kind {
                InputKind::Parameter(n) => writeln!(out, "    {name}: PARAMETER target='{n}'"),
                InputKind::Buffer { name: n, persistent } => {
                    let persistent = if *persistent { "True" } else { "False" };
                    writeln!(out, "    {name}: BUFFER target='{n}' persistent={persistent}")
                }
                InputKind::Constant(n) => writeln!(out, "    {name}: CONSTANT_TENSOR target='{n}'"),
                _ => writeln!(out, "    {name}: USER_INPUT"),
            };
        }
        out.push_str("\n    # outputs\n");
        for (spec, arg) in self.program.signature.outputs.iter().zip(&self.graph.outputs) {
            let name = self.arg(arg, "", "'");
            let _ = match &spec.kind {
                OutputKind::Mutation(i) => match &self.program.signature.inputs[*i].kind {
                    InputKind::User(n) => writeln!(out, "    {name}: USER_INPUT_MUTATION target='{n}'"),
                    InputKind::Parameter(n) => writeln!(out, "    {name}: PARAMETER_MUTATION target='{n}'"),
                    InputKind::Buffer { name: n, .. } => writeln!(out, "    {name}: BUFFER_MUTATION target='{n}'"),
                    _ => Ok(()),
                },
                _ => writeln!(out, "    {name}: USER_OUTPUT"),
            };
        }
        let ranges: Vec<String> = self.ranges();
        let _ = writeln!(out, "\nRange constraints: {{{}}}", ranges.join(", "));
        out
    }

    /// Ranges of the symbols in the inputs' sizes.
    fn ranges(&self) -> Vec<String> {
        let mut symbols = std::collections::BTreeSet::new();
        for spec in &self.program.signature.inputs {
            if let Some(ty) = self.graph.values[spec.value].ty.tensor() {
                ty.layout.sizes.iter().for_each(|e| e.symbols(&mut symbols));
            }
        }
        let bound = |b: Option<i64>, open: &str| b.map_or(open.to_string(), |n| n.to_string());
        let range =
            |s: &Symbol| format!("{}: VR[{}, {}]", s.name(), bound(s.min(), "-int_oo"), bound(s.max(), "int_oo"));
        symbols.iter().map(range).collect()
    }

    fn jit_ir(&self) -> String {
        let mut out = "graph(".to_string();
        for (i, spec) in self.program.signature.inputs.iter().enumerate() {
            let lead = if i > 0 { ",\n      " } else { "" };
            let _ = write!(out, "{lead}%{} : {}", self.name(spec.value), self.jit_type(spec.value));
        }
        out.push_str("):\n");
        let mut constants = 0;
        for (id, node) in self.graph.ordered() {
            self.jit_numbers(Some(id), &mut constants, &mut out);
            self.jit_node(node.op.schema().namespace.as_str(), &node.op.schema().name, node, &mut constants, &mut out);
        }
        self.jit_numbers(None, &mut constants, &mut out);
        let (writes, results) = self.ends();
        for (target, v) in writes {
            constants += 1;
            let _ = writeln!(out, "  %c.{constants} : bool = prim::Constant[value=0]()");
            let _ =
                writeln!(out, "  %{target}.new : Tensor = aten::copy_(%{target}, %{}, %c.{constants})", self.name(v));
        }
        let names: Vec<String> = results
            .iter()
            .map(|a| match a {
                Arg::Value(v) => format!("%{}", self.name(*v)),
                other => self.jit_constant(other, &mut constants, &mut out),
            })
            .collect();
        match &names[..] {
            [one] => {
                let _ = writeln!(out, "  return ({one})");
            }
            many => {
                let types = vec!["Tensor"; many.len()].join(", ");
                let _ = writeln!(
                    out,
                    "  %results : ({types}) = prim::TupleConstruct({})\n  return (%results)",
                    many.join(", ")
                );
            }
        }
        out
    }

    fn jit_numbers(&self, before: Option<NodeId>, constants: &mut usize, out: &mut String) {
        for n in self.numbers.before(before) {
            let (op, args) = match &n.how {
                Computed::Size(v, d) => {
                    let d = self.jit_constant(&Arg::Scalar(Expr::Int(*d as i64)), constants, out);
                    ("aten::size", vec![format!("%{}", self.name(*v)), d])
                }
                Computed::Call(f, operands) => {
                    let mut operand = |o: &NumberOperand| match o {
                        NumberOperand::Name(n) => format!("%{n}"),
                        NumberOperand::Constant(e) => self.jit_constant(&Arg::Scalar(e.clone()), constants, out),
                    };
                    (f.jit, operands.iter().map(&mut operand).collect())
                }
            };
            let _ = writeln!(out, "  %{} : int = {op}({})", n.name, args.join(", "));
        }
    }

    fn jit_type(&self, v: ValueId) -> String {
        let Type::Tensor(ty) = &self.graph.values[v].ty else { return "Tensor".into() };
        let Some(name) = jit_dtype(ty.dtype) else { return "Tensor".into() };
        if ty.layout.sizes.iter().chain(&ty.layout.strides[..]).any(|n| n.constant().is_none()) {
            return "Tensor".into();
        }
        let list = |all: &[Expr]| all.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        let sizes = list(&ty.layout.sizes);
        let comma = if sizes.is_empty() { "" } else { ", " };
        format!("{name}({sizes}{comma}strides=[{}], requires_grad=0, device=cpu)", list(&ty.layout.strides))
    }

    fn jit_constant(&self, arg: &Arg, constants: &mut usize, out: &mut String) -> String {
        let list = |me: &Self, items: Vec<Arg>, ty: &str, constants: &mut usize, out: &mut String| {
            let names: Vec<String> = items.iter().map(|i| me.jit_constant(i, constants, out)).collect();
            *constants += 1;
            let _ = writeln!(out, "  %c.{constants} : {ty} = prim::ListConstruct({})", names.join(", "));
            format!("%c.{constants}")
        };
        let (ty, value) = match arg {
            Arg::Value(v) => return format!("%{}", self.name(*v)),
            Arg::Values(vs) => {
                let items = vs.iter().map(|v| v.map_or(Arg::None, Arg::Value)).collect();
                return list(self, items, if vs.contains(&None) { "Tensor?[]" } else { "Tensor[]" }, constants, out);
            }
            Arg::Scalars(es) => {
                let ty = if es.iter().any(Expr::is_float) { "float[]" } else { "int[]" };
                return list(self, es.iter().cloned().map(Arg::Scalar).collect(), ty, constants, out);
            }
            Arg::None => ("NoneType", String::new()),
            Arg::Scalar(e) if e.constant().is_none() => {
                return format!("%{}", self.numbers.name(e).unwrap_or_default());
            }
            Arg::Scalar(Expr::Bool(b)) => ("bool", u8::from(*b).to_string()),
            Arg::Scalar(e) if e.is_float() => ("float", number(e)),
            Arg::Scalar(e) => ("int", number(e)),
            Arg::Str(s) => ("str", format!("\"{s}\"")),
            Arg::DType(d) => ("int", crate::eval::code_of_dtype(*d).to_string()),
            Arg::Device(d) => ("Device", format!("\"{d}\"")),
            Arg::Strided => ("int", "0".into()),
            Arg::MemoryFormat(m) => ("int", format_code(*m).to_string()),
            _ => ("NoneType", String::new()),
        };
        *constants += 1;
        let value = if ty == "NoneType" { String::new() } else { format!("[value={value}]") };
        let _ = writeln!(out, "  %c.{constants} : {ty} = prim::Constant{value}()");
        format!("%c.{constants}")
    }

    fn jit_node(&self, namespace: &str, op: &str, node: &Node, constants: &mut usize, out: &mut String) {
        let args: Vec<String> = node.args.iter().map(|a| self.jit_constant(a, constants, out)).collect();
        let returns = &node.op.schema().returns;
        let list = matches!(&returns[..], [r] if matches!(r.ty, restride_ir::ArgType::Tensors));
        let results: Vec<String> =
            node.results.iter().map(|r| format!("%{} : {}", self.name(*r), self.jit_type(*r))).collect();
        let call = format!("{namespace}::{op}({})", args.join(", "));
        if list {
            *constants += 1;
            let _ = writeln!(out, "  %c.{constants} : Tensor[] = {call}");
            let _ = writeln!(out, "  {} = prim::ListUnpack(%c.{constants})", results.join(", "));
            return;
        }
        let _ = writeln!(out, "  {} = {call}", results.join(", "));
    }
}

/// The attribute path of a weight.
fn weight(kind: &InputKind) -> Option<&str> {
    match kind {
        InputKind::Parameter(n) | InputKind::Constant(n) | InputKind::Buffer { name: n, .. } => Some(n),
        _ => None,
    }
}

fn number(e: &Expr) -> String {
    match e {
        Expr::Float(x) if x.0 == f64::INFINITY => "inf".into(),
        Expr::Float(x) if x.0 == f64::NEG_INFINITY => "-inf".into(),
        Expr::Float(x) if x.0.is_nan() => "nan".into(),
        other => other.to_string(),
    }
}

fn format_name(m: MemoryFormat) -> &'static str {
    match m {
        MemoryFormat::Contiguous => "contiguous_format",
        MemoryFormat::Preserve => "preserve_format",
        MemoryFormat::ChannelsLast => "channels_last",
        MemoryFormat::ChannelsLast3d => "channels_last_3d",
    }
}

fn format_code(m: MemoryFormat) -> i64 {
    match m {
        MemoryFormat::Contiguous => 0,
        MemoryFormat::Preserve => 1,
        MemoryFormat::ChannelsLast => 2,
        MemoryFormat::ChannelsLast3d => 3,
    }
}

fn jit_dtype(d: DType) -> Option<&'static str> {
    Some(match d {
        DType::F32 => "Float",
        DType::F64 => "Double",
        DType::F16 => "Half",
        DType::BF16 => "BFloat16",
        DType::I64 => "Long",
        DType::I32 => "Int",
        DType::I16 => "Short",
        DType::I8 => "Char",
        DType::U8 => "Byte",
        DType::Bool => "Bool",
        DType::C64 => "ComplexFloat",
        DType::C128 => "ComplexDouble",
    })
}
