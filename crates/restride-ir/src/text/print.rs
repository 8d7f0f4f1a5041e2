//! Printer of the text format.

use super::lex::{is_plain_name, is_plain_word, quote};
use crate::{
    AliasRoot, Arg, ArgType, Expr, Graph, GraphId, Id, IdArena, InputKind, MemoryFormat, Node, NodeId, OutputKind,
    Program, Stage, TensorType, ValueId,
};
use std::collections::BTreeSet;

/// Additions to the program's text.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintOptions {
    /// The source line of each node, as a comment.
    pub sources: bool,
}

/// The program as text.
pub fn print(program: &Program) -> String {
    print_with(program, &PrintOptions::default())
}

/// The program as text, with additions.
pub fn print_with(program: &Program, options: &PrintOptions) -> String {
    let mut out = String::new();
    header(&mut out, program);
    for (i, id) in reachable(program).into_iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        Printer { graphs: &program.graphs, graph: &program.graphs[id], options }.graph(
            &mut out,
            id,
            id == program.main,
        );
    }
    out
}

/// A node as text, without types.
pub fn print_node(program: &Program, graph: &Graph, node: NodeId) -> String {
    let mut out = String::new();
    let printer = Printer { graphs: &program.graphs, graph, options: &PrintOptions::default() };
    let node = &graph.nodes[node];
    for (i, &r) in node.results.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        printer.value(&mut out, r);
    }
    out.push_str(if node.results.is_empty() { "" } else { " = " });
    printer.call(&mut out, node, &mut |out, v| printer.value(out, v));
    out
}

/// Graphs in the order in which the text mentions them, the main one first.
pub(crate) fn reachable(program: &Program) -> Vec<GraphId> {
    let mut seen: BTreeSet<GraphId> = [program.main].into();
    let mut order = vec![program.main];
    let mut next = 0;
    while let Some(&id) = order.get(next) {
        next += 1;
        let graph = &program.graphs[id];
        let args = graph.ordered().flat_map(|(_, n)| &n.args).chain(&graph.outputs);
        let called = args.filter_map(Arg::graph).filter(|g| program.graphs.get(*g).is_some());
        order.extend(called.filter(|g| seen.insert(*g)));
    }
    order
}

/// Appends formatted text; writes to a string cannot fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($arg)*);
    }};
}
pub(super) use put;

/// `%name`, in quotes if it needs them.
pub(super) fn sigil_name(out: &mut String, sigil: char, name: &str) {
    out.push(sigil);
    if is_plain_name(name) { out.push_str(name) } else { quote(out, name) }
}

fn header(out: &mut String, program: &Program) {
    let start = out.len();
    if !program.name.is_empty() {
        out.push_str("program ");
        quote(out, &program.name);
        out.push('\n');
    }
    if program.stage != super::stage_by_ops(program) {
        out.push_str(match program.stage {
            Stage::Imported => "stage: imported\n",
            Stage::Functional => "stage: functional\n",
        });
    }
    for note in &program.notes {
        out.push_str("note ");
        quote(out, note);
        out.push('\n');
    }
    for symbol in program.symbols.values() {
        put!(out, "symbol {}", symbol.name());
        if symbol.min().is_some() || symbol.max().is_some() {
            bounds(out, symbol.min(), symbol.max());
        }
        out.push('\n');
    }
    for (expr, lo, hi) in &program.ranges {
        put!(out, "range {expr}");
        bounds(out, *lo, *hi);
        out.push('\n');
    }
    for guard in &program.guards {
        put!(out, "guard {} ", guard.condition);
        quote(out, &guard.text);
        out.push('\n');
    }
    if let Some((inputs, outputs)) = &program.pytree {
        out.push_str("pytree ");
        quote(out, inputs);
        out.push(' ');
        quote(out, outputs);
        out.push('\n');
    }
    for (name, w) in &program.weights.tensors {
        out.push_str("weight ");
        quote(out, name);
        let ty: TensorType<i64> = TensorType { dtype: w.dtype, layout: w.layout.clone() };
        put!(out, ": {ty} storage {}", w.storage);
        out.push_str(if w.is_param { " parameter" } else { "" });
        out.push_str(if w.requires_grad { " requires_grad\n" } else { "\n" });
    }
    signature(out, program);
    if out.len() > start {
        out.push('\n');
    }
}

fn bounds(out: &mut String, lo: Option<i64>, hi: Option<i64>) {
    let show = |x: Option<i64>, none: &str| x.map_or(none.to_string(), |x| x.to_string());
    put!(out, " in [{}, {}]", show(lo, "-inf"), show(hi, "inf"));
}

/// Lines for inputs and outputs other than the user's.
fn signature(out: &mut String, program: &Program) {
    let graph = program.graph();
    let input_name = |out: &mut String, i: usize| match graph.inputs.get(i) {
        Some(&v) => sigil_name(out, '%', &graph.values[v].name),
        None => put!(out, "%?{i}"),
    };
    for (i, spec) in program.signature.inputs.iter().enumerate() {
        if let InputKind::User(name) = &spec.kind
            && *name == graph.values[spec.value].name
        {
            continue;
        }
        out.push_str("input ");
        input_name(out, i);
        out.push_str(": ");
        match &spec.kind {
            InputKind::Parameter(name) => named(out, "parameter ", name),
            InputKind::Buffer { name, persistent } => {
                named(out, "buffer ", name);
                out.push_str(if *persistent { "" } else { " non_persistent" });
            }
            InputKind::Constant(name) => named(out, "constant ", name),
            InputKind::User(name) => named(out, "user ", name),
            InputKind::Fixed { name, value } => {
                named(out, "fixed ", name);
                out.push_str(" = ");
                let options = &PrintOptions::default();
                let printer = Printer { graphs: &program.graphs, graph, options };
                printer.arg(out, value, None, &mut |out, v| printer.value(out, v));
            }
            InputKind::Storage(under) => {
                out.push_str("storage");
                for (k, &i) in under.iter().enumerate() {
                    out.push_str(if k == 0 { " of " } else { ", " });
                    input_name(out, i);
                }
            }
            InputKind::Opaque(name) => named(out, "opaque ", name),
        }
        out.push('\n');
    }
    for (i, spec) in program.signature.outputs.iter().enumerate() {
        if spec.kind == OutputKind::User && spec.alias.is_none() {
            continue;
        }
        put!(out, "output {i}: ");
        match spec.kind {
            OutputKind::User => out.push_str("user"),
            OutputKind::Loss => out.push_str("loss"),
            OutputKind::Mutation(i) => {
                out.push_str("mutation of ");
                input_name(out, i);
            }
            OutputKind::Gradient(i) => {
                out.push_str("gradient of ");
                input_name(out, i);
            }
            OutputKind::Metadata(i) => {
                out.push_str("metadata of ");
                input_name(out, i);
            }
            OutputKind::Token => out.push_str("token"),
            OutputKind::Base => out.push_str("base"),
        }
        if let Some(alias) = &spec.alias {
            put!(out, " as view {} of ", TensorType { dtype: alias.dtype, layout: alias.layout.clone() });
            match alias.root {
                AliasRoot::Input(i) => {
                    out.push_str("input ");
                    input_name(out, i);
                }
                AliasRoot::Base(i) => put!(out, "base {i}"),
            }
        }
        out.push('\n');
    }
}

fn named(out: &mut String, what: &str, name: &str) {
    out.push_str(what);
    quote(out, name);
}

/// Longest line of a graph's inputs; longer lists get a line for each input.
const WIDTH: usize = 110;

/// State of a printer.
pub(super) struct Printer<'p> {
    pub graphs: &'p IdArena<GraphId, Graph>,
    pub graph: &'p Graph,
    pub options: &'p PrintOptions,
}

impl Printer<'_> {
    fn graph(&self, out: &mut String, id: GraphId, main: bool) {
        out.push_str("graph");
        if !main {
            out.push(' ');
            self.graph_name(out, id);
        }
        self.inputs(out, |out, v| self.typed(out, v));
        out.push_str(" {\n");
        for (_, node) in self.graph.ordered() {
            out.push_str("  ");
            for (i, &r) in node.results.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                self.typed(out, r);
            }
            out.push_str(if node.results.is_empty() { "" } else { " = " });
            self.call(out, node, &mut |out, v| self.value(out, v));
            self.node_end(out, node);
        }
        self.outputs(out, |out, v| self.value(out, v));
        out.push_str("}\n");
    }

    /// `(…)` around the inputs, on one line if they fit.
    pub fn inputs(&self, out: &mut String, mut each: impl FnMut(&mut String, ValueId)) {
        let mut texts = Vec::with_capacity(self.graph.inputs.len());
        for &v in &self.graph.inputs {
            let mut text = String::new();
            each(&mut text, v);
            texts.push(text);
        }
        if texts.iter().map(|t| t.chars().count() + 2).sum::<usize>() <= WIDTH {
            put!(out, "({})", texts.join(", "));
        } else {
            out.push_str("(\n");
            for text in texts {
                put!(out, "  {text},\n");
            }
            out.push(')');
        }
    }

    /// The line of the outputs.
    pub fn outputs(&self, out: &mut String, mut each: impl FnMut(&mut String, ValueId)) {
        out.push_str("  return");
        for (i, arg) in self.graph.outputs.iter().enumerate() {
            out.push_str(if i == 0 { " " } else { ", " });
            self.arg(out, arg, None, &mut each);
        }
        out.push('\n');
    }

    /// Marks of a node's origin, and the end of its line.
    pub fn node_end(&self, out: &mut String, node: &Node) {
        if node.op.def().random {
            put!(out, " !key {}", node.origin.key);
        }
        if node.origin.no_grad {
            out.push_str(" !no_grad");
        }
        if let Some(which) = &node.origin.overwritten {
            let all: Vec<ValueId> = node.operands().chain(node.results.iter().copied()).collect();
            let mut seen: Vec<ValueId> = Vec::new();
            for v in which.iter().filter_map(|i| all.get(*i as usize)) {
                if !seen.contains(v) {
                    seen.push(*v);
                }
            }
            out.push_str(" !overwritten(");
            for (i, v) in seen.into_iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                self.value(out, v);
            }
            out.push(')');
        }
        if self.options.sources
            && let Some(source) = node.origin.source_line()
        {
            out.push_str("  # ");
            out.extend(source.chars().filter(|c| !c.is_control()));
        }
        out.push('\n');
    }

    /// `%name`.
    pub fn value(&self, out: &mut String, v: ValueId) {
        match self.graph.values.get(v) {
            Some(value) => sigil_name(out, '%', &value.name),
            None => put!(out, "%?{}", v.index()),
        }
    }

    /// `%name: type`.
    pub fn typed(&self, out: &mut String, v: ValueId) {
        self.value(out, v);
        if let Some(value) = self.graph.values.get(v) {
            put!(out, ": {}", value.ty);
        }
    }

    /// `@name`.
    pub fn graph_name(&self, out: &mut String, id: GraphId) {
        match self.graphs.get(id) {
            Some(g) if !g.name.is_empty() => sigil_name(out, '@', &g.name),
            _ => sigil_name(out, '@', &super::default_graph_name(id)),
        }
    }

    /// `aten.add.Tensor(%x, %y, alpha=2)`: positions up to the last that is not its default, then names.
    pub fn call(&self, out: &mut String, node: &Node, value: &mut dyn FnMut(&mut String, ValueId)) {
        let name = node.op.name();
        if is_plain_word(name) {
            out.push_str(name)
        } else {
            quote(out, name)
        }
        out.push('(');
        let slots = &node.op.schema().args;
        let shown: Vec<bool> = node
            .args
            .iter()
            .enumerate()
            .map(|(i, arg)| slots.get(i).and_then(|s| s.default_arg()).as_ref() != Some(arg))
            .collect();
        let by_name = |i: usize| slots.get(i).is_some_and(|s| s.kwarg_only);
        let last = (0..node.args.len()).rev().find(|&i| shown[i] && !by_name(i));
        let mut first = true;
        for (i, arg) in node.args.iter().enumerate() {
            let positional = !by_name(i) && last.is_some_and(|last| i <= last);
            if !positional && !shown[i] {
                continue;
            }
            out.push_str(if std::mem::take(&mut first) { "" } else { ", " });
            if !positional {
                put!(out, "{}=", slots[i].name);
            }
            self.arg(out, arg, slots.get(i).map(|s| s.ty), value);
        }
        out.push(')');
    }

    /// One argument. Words that the slot's type leaves ambiguous are spelled out.
    pub fn arg(&self, out: &mut String, arg: &Arg, slot: Option<ArgType>, value: &mut dyn FnMut(&mut String, ValueId)) {
        match arg {
            Arg::None => out.push_str("None"),
            Arg::Value(v) => value(out, *v),
            Arg::Values(vs) => list(out, vs, |out, v| match v {
                Some(v) => value(out, *v),
                None => out.push_str("None"),
            }),
            Arg::Scalar(e) => put!(out, "{e}"),
            Arg::Scalars(es) => list(out, es, |out, e: &Expr| put!(out, "{e}")),
            Arg::Complex(re, im) => {
                let sign = if im.is_sign_negative() && !im.is_nan() { '-' } else { '+' };
                put!(out, "({re:?}{sign}{:?}j)", im.abs());
            }
            Arg::Str(s) => quote(out, s),
            Arg::Strs(ss) => list(out, ss, |out, s| quote(out, s)),
            Arg::DType(d) if slot == Some(ArgType::DType) => out.push_str(d.name()),
            Arg::DType(d) => put!(out, "torch.{}", d.torch_name()),
            Arg::Device(d) if slot == Some(ArgType::Device) && is_plain_device(d) => out.push_str(d),
            Arg::Device(d) => {
                out.push_str("device(");
                quote(out, d);
                out.push(')');
            }
            Arg::Strided => out.push_str(if slot == Some(ArgType::Layout) { "strided" } else { "torch.strided" }),
            Arg::MemoryFormat(m) => {
                out.push_str(if slot == Some(ArgType::MemoryFormat) { "" } else { "torch." });
                out.push_str(memory_format(*m));
            }
            Arg::Graph(g) => self.graph_name(out, *g),
            Arg::Op(op) => {
                out.push('&');
                if is_plain_word(op.name()) { out.push_str(op.name()) } else { quote(out, op.name()) }
            }
        }
    }
}

fn list<T>(out: &mut String, items: &[T], mut each: impl FnMut(&mut String, &T)) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        each(out, item);
    }
    out.push(']');
}

/// `cpu`, `cuda:0`.
fn is_plain_device(name: &str) -> bool {
    let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
    let canonical = index.parse::<usize>().is_ok_and(|i| i.to_string() == index);
    !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_lowercase()) && canonical
}

fn memory_format(m: MemoryFormat) -> &'static str {
    super::MEMORY_FORMATS.iter().find(|(x, _)| *x == m).map_or("", |(_, n)| n)
}
