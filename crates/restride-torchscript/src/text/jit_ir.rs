//! TorchScript's intermediate form: `%3 : Tensor = aten::add(%x, %y, %2) # m.py:4:0`, with blocks of `prim::If` and `prim::Loop`.

use super::Parsed;
use crate::archive::code::class_info;
use crate::source::SourceText;
use crate::syntax::ast::{Ast, AstKind, FunctionDef, Param, Stmt, StmtKind};
use crate::syntax::{parse_expression, unescape};
use restride_ir::Result;
use std::rc::Rc;
use std::sync::Arc;

/// Deepest nesting of blocks.
const MAX_DEPTH: u32 = 48;

/// A line with its indentation.
struct IrLine {
    number: u32,
    indent: usize,
    text: String,
}

/// A graph of the text: its parameters as they are printed, and its lines.
#[derive(Default)]
struct PrintedGraph {
    header: String,
    at: u32,
    lines: Vec<IrLine>,
}

/// The graphs of a text, one after another.
fn graphs(text: &str) -> Vec<PrintedGraph> {
    let mut out: Vec<PrintedGraph> = Vec::new();
    let mut open = false;
    for (i, line) in text.lines().enumerate() {
        let number = i as u32 + 1;
        if !open {
            if let Some(start) = line.find("graph(") {
                out.push(PrintedGraph { header: line[start..].to_string(), at: number, lines: Vec::new() });
                open = true;
            }
            continue;
        }
        let Some(graph) = out.last_mut() else { continue };
        if !graph.header.contains("):") {
            graph.header.push_str(line.trim());
            continue;
        }
        let text = without_note(line);
        if text.trim().is_empty() {
            continue;
        }
        open = !text.trim_start().starts_with("return ");
        let indent = text.len() - text.trim_start().len();
        graph.lines.push(IrLine { number, indent, text: text.trim().to_string() });
    }
    out
}

/// Reads the first graph of a text. The graphs after it are the `forward` of the classes of modules that their first parameters have.
pub(super) fn parse(source: &Arc<SourceText>) -> Result<Parsed> {
    let mut all = graphs(source.text()).into_iter();
    let Some(main) = all.next() else { return Err(source.error(1, "the text has no graph")) };
    let mut out = Parsed::default();
    for (name, ty) in parameters(source, &main)? {
        if ty.starts_with("__torch__") && out.params.is_empty() && out.module.is_none() {
            out.module = Some(name);
            continue;
        }
        // `%x.1` is the parameter `x`.
        let short: Arc<str> = name.split('.').next().unwrap_or(&name).into();
        let short = if out.params.iter().any(|p| p.name == short) { name.clone() } else { short };
        if short != name {
            out.body.push(assign(&name, self::name(short.to_string(), main.at), main.at));
        }
        let annotation = tensor_type(&ty).map(|t| Ast::new(AstKind::Str(t.into()), main.at));
        out.params.push(Param { name: short, annotation, default: None, stars: 0 });
    }
    let mut reader = Blocks { source, lines: main.lines, at: 0, notes: Vec::new() };
    let body = reader.block(0, 0)?;
    out.body.extend(body);
    out.notes = reader.notes;
    for graph in all {
        let params = parameters(source, &graph)?;
        let Some(class) = params.first().map(|p| p.1.clone()).filter(|ty| ty.starts_with("__torch__")) else {
            continue;
        };
        let plain = |(name, _): (Arc<str>, String)| Param { name, annotation: None, default: None, stars: 0 };
        let params: Vec<Param> = params.into_iter().map(plain).collect();
        let mut reader = Blocks { source, lines: graph.lines, at: 0, notes: Vec::new() };
        let body = reader.block(0, 0)?;
        out.notes.append(&mut reader.notes);
        let keyword_only = params.len();
        let def = FunctionDef { name: "forward".into(), params, keyword_only, returns: None, body, line: graph.at };
        let forward = Stmt { kind: StmtKind::Def(Rc::new(def)), line: graph.at };
        let class: Arc<str> = class.into();
        out.classes.push((class.clone(), class_info(class, None, &[forward], source)));
    }
    Ok(out)
}

/// Names and types of a graph's parameters.
fn parameters(source: &Arc<SourceText>, graph: &PrintedGraph) -> Result<Vec<(Arc<str>, String)>> {
    let inner = graph.header.trim_start_matches("graph(").split("):").next().unwrap_or_default();
    let one = |param: String| match param.split_once(" : ") {
        Some((name, ty)) => Ok((Arc::from(name.trim().trim_start_matches('%')), ty.trim().to_string())),
        None => Err(source.error(graph.at, format!("the parameter {param:?} has no type"))),
    };
    split(inner).into_iter().map(one).collect()
}

/// A line without its source note.
fn without_note(line: &str) -> &str {
    // A `#` inside of a string constant is none.
    let mut quoted = false;
    for (i, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..i],
            _ => {}
        }
    }
    line
}

/// Splits at commas outside of brackets and strings.
fn split(text: &str) -> Vec<String> {
    let (mut out, mut depth, mut quoted, mut one) = (Vec::new(), 0i32, false, String::new());
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                out.push(std::mem::take(&mut one).trim().to_string());
                continue;
            }
            _ => {}
        }
        one.push(c);
    }
    if !one.trim().is_empty() {
        out.push(one.trim().to_string());
    }
    out
}

/// `Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)` as `f32[2, 3][3, 1]`.
fn tensor_type(ty: &str) -> Option<String> {
    let (name, inner) = ty.trim().split_once('(')?;
    let dtype = crate::given::dtype_named(name)?;
    let mut sizes = Vec::new();
    let mut strides = String::new();
    for part in split(inner.trim_end_matches(')')) {
        match part.strip_prefix("strides=") {
            Some(s) => strides = s.to_string(),
            None if part.contains('=') => {}
            None => sizes.push(part.parse::<i64>().ok()?.to_string()),
        }
    }
    Some(format!("{}[{}]{strides}", dtype.name(), sizes.join(", ")))
}

struct Blocks<'s> {
    source: &'s Arc<SourceText>,
    lines: Vec<IrLine>,
    at: usize,
    notes: Vec<String>,
}

impl Blocks<'_> {
    fn peek(&self) -> Option<&IrLine> {
        self.lines.get(self.at)
    }

    /// Statements up to the block's end; a `-> (…)` is left to the caller.
    fn block(&mut self, indent: usize, depth: u32) -> Result<Vec<Stmt>> {
        let mut out = Vec::new();
        if depth > MAX_DEPTH {
            return Err(self.source.error(self.peek().map_or(1, |l| l.number), "blocks nested too deep"));
        }
        while let Some(line) = self.peek() {
            let (number, text) = (line.number, line.text.clone());
            if line.indent < indent || text.starts_with("->") || text.starts_with("block") {
                break;
            }
            self.at += 1;
            if let Some(value) = text.strip_prefix("return ") {
                let mut values = names(value);
                let value = if values.len() == 1 {
                    name(values.remove(0), number)
                } else {
                    Ast::new(AstKind::Tuple(values.into_iter().map(|n| name(n, number)).collect()), number)
                };
                out.push(Stmt { kind: StmtKind::Return(Some(value)), line: number });
                break;
            }
            self.node(number, &text, depth, &mut out)?;
        }
        Ok(out)
    }

    fn node(&mut self, line: u32, text: &str, depth: u32, out: &mut Vec<Stmt>) -> Result<()> {
        let bad = |what: &str| self.source.error(line, what.to_string());
        // Results are declared before ` = `; a node without any starts with ` = `.
        let (left, right) = match text.strip_prefix("= ") {
            Some(right) => ("", right),
            None => text.split_once(" = ").ok_or_else(|| bad("a node without `=`"))?,
        };
        let targets: Vec<String> =
            split(left).iter().map(|t| plain(t.split(" : ").next().unwrap_or_default())).collect();
        let open = right.find(['[', '(']).ok_or_else(|| bad("a node without operands"))?;
        let (op, rest) = right.split_at(open);
        let (attributes, rest) = match rest.strip_prefix('[') {
            Some(inside) => {
                let end = closing(inside).ok_or_else(|| bad("attributes without an end"))?;
                (&inside[..end], &inside[end + 1..])
            }
            None => ("", rest),
        };
        // Traces of modules end with the module that a node is of: `, scope: __module.layer`.
        let rest = rest.rsplit_once("), scope: ").map_or(rest.trim(), |r| &rest[..r.0.len() + 1]);
        let inside = rest.trim().strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or_default();
        let operands: Vec<String> = split(inside).iter().map(|o| plain(o)).collect();
        match op.trim() {
            "prim::If" => return self.branch(line, &targets, &operands, depth, out),
            "prim::Loop" => return self.repeat(line, &targets, &operands, depth, out),
            _ => {}
        }
        let args: Vec<Ast> = operands.iter().map(|o| name(o.clone(), line)).collect();
        let value = self.value(line, op.trim(), attributes, args, left)?;
        let kind = match targets.len() {
            0 => StmtKind::Expr(value),
            1 => StmtKind::Assign(vec![name(targets[0].clone(), line)], value),
            _ => {
                let all = targets.into_iter().map(|t| name(t, line)).collect();
                StmtKind::Assign(vec![Ast::new(AstKind::Tuple(all), line)], value)
            }
        };
        // An attribute is assigned by a node without results.
        let kind = match (op.trim(), kind) {
            ("prim::SetAttr", StmtKind::Expr(value)) => match value.kind {
                AstKind::Tuple(mut parts) if parts.len() == 2 => {
                    let value = parts.remove(1);
                    StmtKind::Assign(parts, value)
                }
                kind => StmtKind::Expr(Ast::new(kind, line)),
            },
            (_, kind) => kind,
        };
        out.push(Stmt { kind, line });
        Ok(())
    }

    fn value(&mut self, line: u32, op: &str, attributes: &str, mut args: Vec<Ast>, left: &str) -> Result<Ast> {
        let ast = |kind: AstKind| Ast::new(kind, line);
        let source = self.source;
        let attribute = |key: &str| {
            let found =
                split(attributes).into_iter().find_map(|a| a.strip_prefix(&format!("{key}=")).map(str::to_string));
            found.ok_or_else(|| source.error(line, format!("{op} without its attribute {key}")))
        };
        let text = |key: &str| -> Result<Arc<str>> {
            let value = attribute(key)?;
            Ok(unescape(&value).unwrap_or(value).into())
        };
        let dotted = |path: &str| {
            let mut parts = path.split('.');
            let root = ast(AstKind::Name(parts.next().unwrap_or_default().into()));
            parts.fold(root, |base, part| ast(AstKind::Attr(Box::new(base), part.into())))
        };
        let call = |path: &str, args: Vec<Ast>| {
            let callee = dotted(path);
            let args = args.into_iter().map(|a| (a, false)).collect();
            ast(AstKind::Call { callee: Box::new(callee), args, kwargs: Vec::new() })
        };
        Ok(match op {
            "prim::Constant" => match (attribute("value"), text("name")) {
                (Ok(value), _) => return self.constant(line, &value, left),
                // `%f : Function = prim::Constant[name="relu"]()`; some are printed with the private name of their overload.
                (_, Ok(function)) => {
                    let path = format!("torch.nn.functional.{}", function.trim_start_matches('_'));
                    self.notes.push(format!("the function {function} is taken as {path}"));
                    dotted(&path)
                }
                _ => ast(AstKind::None),
            },
            "prim::ListConstruct" => ast(AstKind::List(args)),
            "prim::TupleConstruct" | "prim::NamedTupleConstruct" => ast(AstKind::Tuple(args)),
            "prim::ListUnpack" | "prim::TupleUnpack" => args.remove(0),
            "prim::DictConstruct" => {
                let mut items = Vec::new();
                let mut args = args.into_iter();
                while let (Some(k), Some(v)) = (args.next(), args.next()) {
                    items.push((k, v));
                }
                ast(AstKind::Dict(items))
            }
            "prim::TupleIndex" | "aten::__getitem__" if args.len() == 2 => {
                let index = args.remove(1);
                ast(AstKind::Index(Box::new(args.remove(0)), Box::new(index)))
            }
            // A module by its path; the weights may lack that module.
            "prim::GetAttr" if args.len() == 1 && left.contains(" : __torch__") => {
                let ty = left.split_once(" : ").map_or("", |l| l.1).trim();
                let strings = [text("name")?, ty.into()].map(|s| ast(AstKind::Str(s)));
                call("restride_module", args.into_iter().chain(strings).collect())
            }
            "prim::GetAttr" if args.len() == 1 => ast(AstKind::Attr(Box::new(args.remove(0)), text("name")?)),
            "prim::SetAttr" if args.len() == 2 => {
                let value = args.remove(1);
                let target = ast(AstKind::Attr(Box::new(args.remove(0)), text("name")?));
                ast(AstKind::Tuple(vec![target, value]))
            }
            "prim::CallMethod" | "prim::CallFunction" if !args.is_empty() => {
                let callee = args.remove(0);
                let callee = match op {
                    "prim::CallMethod" if *text("name")? != *"forward" => {
                        ast(AstKind::Attr(Box::new(callee), text("name")?))
                    }
                    _ => callee,
                };
                let args = args.into_iter().map(|a| (a, false)).collect();
                ast(AstKind::Call { callee: Box::new(callee), args, kwargs: Vec::new() })
            }
            "prim::unchecked_cast" | "prim::data" if op == "prim::unchecked_cast" => args.remove(0),
            "prim::Uninitialized" => call("uninitialized", vec![ast(AstKind::None)]),
            "aten::Int" | "aten::IntImplicit" => call("int", args),
            "aten::Float" | "aten::FloatImplicit" => call("float", args),
            "aten::Bool" => call("bool", args),
            "aten::ScalarImplicit" => call("torch.item", args),
            "prim::RaiseException" => call("ops.prim.RaiseException", args),
            _ => match op.split_once("::") {
                Some(("aten", f)) => call(&format!("torch.{f}"), args),
                Some(("prim", f)) => call(&format!("ops.prim.{f}"), args),
                Some((namespace, f)) => call(&format!("ops.{namespace}.{f}"), args),
                None => return Err(source.error(line, format!("the operator {op:?} has no namespace"))),
            },
        })
    }

    /// `[value=3]`, `[value="a"]`, `[value={1.5}]`, `[value=[1, 2]]`.
    fn constant(&mut self, line: u32, value: &str, left: &str) -> Result<Ast> {
        let value = value.trim();
        if value == "<Tensor>" {
            return Err(self
                .source
                .error(line, "a constant tensor, whose elements the text does not have")
                .help("open the archive itself"));
        }
        let ty = left.split_once(" : ").map_or("", |l| l.1).trim();
        if let Some((elements, kind)) = value.strip_suffix("} ]").and_then(|v| v.rsplit_once("[ CPU")) {
            return self.printed_tensor(line, elements, kind, ty);
        }
        let tensor = value.starts_with('{') || value.contains("CPU");
        let text = value.trim_matches(['{', '}']).trim();
        let text = match text {
            "inf" | "-inf" | "nan" => text.to_string(),
            // `2.` and `1e-05` are floats as they are.
            other => other.replace("annotate(List[Tensor], [])", "[]"),
        };
        if tensor && text.contains('.') && text.trim_start_matches(['-', '0', '.']).replace(['.', '-'], "").len() >= 6 {
            self.notes.push(format!("line {line}: the constant {text} is printed with six digits"));
        }
        // `{(0,1)}`: a complex number by its parts.
        let complex = ty.starts_with("Complex") || ty == "complex";
        let text = if complex && text.starts_with('(') { format!("complex{text}") } else { text };
        let text = if ty == "Device" { format!("torch.device({text})") } else { text };
        let own = SourceText::new(self.source.name().clone(), format!("{}{text}", "\n".repeat(line as usize - 1)));
        let parsed = parse_expression(&own)?;
        if ty == "bool" {
            return Ok(Ast::new(AstKind::Bool(matches!(parsed.kind, AstKind::Int(1) | AstKind::Bool(true))), line));
        }
        if !tensor {
            return Ok(parsed);
        }
        Ok(tensor_of(parsed, ty, line))
    }

    /// ` 1  2  3 [ CPULongType{3} ]`: elements as PyTorch prints a tensor. It prints only integers exactly.
    fn printed_tensor(&self, line: u32, elements: &str, kind: &str, ty: &str) -> Result<Ast> {
        let sizes = kind.split_once('{').map_or("", |k| k.1);
        let sizes = sizes.split(',').map(|n| n.trim().parse::<usize>().ok()).collect::<Option<Vec<_>>>();
        let items = elements.split_whitespace().map(|e| e.parse::<i64>().ok()).collect::<Option<Vec<_>>>();
        let (Some(sizes), Some(items)) = (sizes, items) else {
            return Err(self
                .source
                .error(line, "a constant tensor, whose elements are printed with few digits")
                .help("open the archive itself"));
        };
        let number = |n: &i64| Ast::new(AstKind::Int(*n), line);
        let list = match sizes[..] {
            [n] if n == items.len() => items.iter().map(number).collect(),
            [n, m] if m > 0 && n.checked_mul(m) == Some(items.len()) => {
                items.chunks(m).map(|r| Ast::new(AstKind::List(r.iter().map(number).collect()), line)).collect()
            }
            _ => return Err(self.source.error(line, "a constant tensor that is printed in columns")),
        };
        Ok(tensor_of(Ast::new(AstKind::List(list), line), ty, line))
    }

    /// `block0(%i : int, %x : Tensor):` with its statements and what it returns.
    fn nested(&mut self, depth: u32) -> Result<(Vec<String>, Vec<Stmt>, Vec<String>)> {
        let Some(line) = self.peek() else { return Err(self.source.error(1, "a block is missing")) };
        let (number, indent, text) = (line.number, line.indent, line.text.clone());
        if !text.starts_with("block") {
            return Err(self.source.error(number, "a block is missing"));
        }
        self.at += 1;
        let inner = text.split_once('(').map_or("", |t| t.1).trim_end_matches("):");
        let params = split(inner).iter().map(|p| plain(p.split(" : ").next().unwrap_or_default())).collect();
        let body = self.block(indent + 1, depth + 1)?;
        let Some(line) = self.peek() else { return Err(self.source.error(number, "a block without an end")) };
        let Some(results) = line.text.strip_prefix("->") else {
            return Err(self.source.error(line.number, "a block without results"));
        };
        let results = names(results.trim());
        self.at += 1;
        Ok((params, body, results))
    }

    fn branch(
        &mut self,
        line: u32,
        targets: &[String],
        operands: &[String],
        depth: u32,
        out: &mut Vec<Stmt>,
    ) -> Result<()> {
        let Some(condition) = operands.first() else {
            return Err(self.source.error(line, "a branch without a condition"));
        };
        let mut blocks = Vec::new();
        for _ in 0..2 {
            let (_, mut body, results) = self.nested(depth)?;
            for (t, r) in targets.iter().zip(results) {
                body.push(assign(t, name(r, line), line));
            }
            blocks.push(body);
        }
        let other = blocks.pop().unwrap_or_default();
        let then = blocks.pop().unwrap_or_default();
        out.push(Stmt { kind: StmtKind::If(name(condition.clone(), line), then, other), line });
        Ok(())
    }

    fn repeat(
        &mut self,
        line: u32,
        targets: &[String],
        operands: &[String],
        depth: u32,
        out: &mut Vec<Stmt>,
    ) -> Result<()> {
        let [trips, condition, initial @ ..] = operands else {
            return Err(self.source.error(line, "a loop without a number of iterations"));
        };
        let (params, mut body, results) = self.nested(depth)?;
        let [index, carried @ ..] = &params[..] else {
            return Err(self.source.error(line, "a loop without its index"));
        };
        let [again, results @ ..] = &results[..] else {
            return Err(self.source.error(line, "a loop without its condition"));
        };
        for (c, i) in carried.iter().zip(initial) {
            out.push(assign(c, name(i.clone(), line), line));
        }
        // Results are read at once: one may be another's carried value.
        let all =
            |names: &[String]| Ast::new(AstKind::Tuple(names.iter().map(|n| name(n.clone(), line)).collect()), line);
        // A loop that always goes on counts its iterations; another one is left by its condition.
        let counted = again == condition;
        let flag = format!("{index} goes on");
        if !counted {
            body.push(assign(&flag, name(again.clone(), line), line));
        }
        if !carried.is_empty() {
            body.push(Stmt { kind: StmtKind::Assign(vec![all(carried)], all(results)), line });
        }
        let call = |f: &str, args: Vec<Ast>| {
            let callee = Box::new(Ast::new(AstKind::Name(f.into()), line));
            let args = args.into_iter().map(|a| (a, false)).collect();
            Ast::new(AstKind::Call { callee, args, kwargs: Vec::new() }, line)
        };
        if counted {
            let iter = call("range", vec![name(trips.clone(), line)]);
            out.push(Stmt { kind: StmtKind::For(name(index.clone(), line), iter, body), line });
        } else {
            out.push(assign(&flag, name(condition.clone(), line), line));
            out.push(assign(index, Ast::new(AstKind::Int(0), line), line));
            let one = Ast::new(AstKind::Int(1), line);
            let next = AstKind::Binary("add", Box::new(name(index.clone(), line)), Box::new(one));
            body.push(assign(index, Ast::new(next, line), line));
            let limit = AstKind::Binary("lt", Box::new(name(index.clone(), line)), Box::new(name(trips.clone(), line)));
            let goes =
                AstKind::Logic { and: true, left: Box::new(Ast::new(limit, line)), right: Box::new(name(flag, line)) };
            out.push(Stmt { kind: StmtKind::While(Ast::new(goes, line), body), line });
        }
        for (t, c) in targets.iter().zip(carried) {
            out.push(assign(t, name(c.clone(), line), line));
        }
        Ok(())
    }
}

/// `torch.tensor(data, dtype=…)`, of the element type that a type is printed with.
fn tensor_of(data: Ast, ty: &str, line: u32) -> Ast {
    let torch = Box::new(Ast::new(AstKind::Name("torch".into()), line));
    let callee = Box::new(Ast::new(AstKind::Attr(torch, "tensor".into()), line));
    let mut kwargs = Vec::new();
    if let Some(d) = crate::given::dtype_named(ty.split('(').next().unwrap_or_default()) {
        kwargs.push((Arc::from("dtype"), Ast::new(AstKind::Int(crate::eval::code_of_dtype(d)), line)));
    }
    Ast::new(AstKind::Call { callee, args: vec![(data, false)], kwargs }, line)
}

/// A value's name without `%`.
fn plain(name: &str) -> String {
    name.trim().trim_start_matches('%').to_string()
}

fn name(n: String, line: u32) -> Ast {
    Ast::new(AstKind::Name(n.into()), line)
}

fn assign(target: &str, value: Ast, line: u32) -> Stmt {
    Stmt { kind: StmtKind::Assign(vec![name(target.to_string(), line)], value), line }
}

/// `(%a, %b)`
fn names(text: &str) -> Vec<String> {
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
    split(inner).iter().map(|n| plain(n)).collect()
}

/// The position of the bracket that closes the one before `text`.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => {
                escaped = false;
                continue;
            }
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(i);
        }
    }
    None
}
