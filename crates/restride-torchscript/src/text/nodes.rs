//! FX nodes, one a line: `%y : [num_users=1] = call_function[target=torch.add](args = (%x, 1), kwargs = {})`.

use super::Parsed;
use crate::source::SourceText;
use crate::syntax::ast::{Ast, AstKind, Param, Stmt, StmtKind};
use restride_ir::Result;
use std::sync::Arc;

/// Deepest nesting of arguments.
const MAX_DEPTH: u32 = 48;

/// Python's built-in functions that graphs call.
const PYTHON: [&str; 12] =
    ["getattr", "len", "max", "min", "sum", "abs", "round", "int", "float", "bool", "isinstance", "setattr"];

/// Reads the nodes of a printed graph.
pub(super) fn parse(source: &Arc<SourceText>) -> Result<Parsed> {
    let mut out = Parsed::default();
    for (i, line) in source.text().lines().enumerate() {
        let number = i as u32 + 1;
        let line = line.trim();
        if line.starts_with('%') {
            node(source, number, line, &mut out)?;
        } else if let Some(names) = line.strip_prefix("graph(").and_then(|l| l.strip_suffix("):")) {
            // In PyTorch 1.8, the inputs stand here: `graph(x, y : torch.Tensor):`.
            for name in names.split(',').map(|n| n.split(':').next().unwrap_or_default().trim()) {
                if !name.is_empty() {
                    let stars = name.bytes().take_while(|b| *b == b'*').count();
                    let name = name[stars..].trim_start_matches('%').into();
                    out.params.push(Param { name, annotation: None, default: None, stars: stars as u8 });
                }
            }
        } else if let Some(value) = line.strip_prefix("return ") {
            let mut reader = NodeReader::new(source, number, value);
            let value = reader.value(true)?;
            out.body.push(Stmt { kind: StmtKind::Return(Some(value)), line: number });
            break;
        }
    }
    if out.body.is_empty() {
        return Err(source.error(1, "the graph has no nodes"));
    }
    Ok(out)
}

fn node(source: &Arc<SourceText>, line: u32, text: &str, out: &mut Parsed) -> Result<()> {
    let bad = |what: &str| source.error(line, format!("{what} in a node"));
    let (left, right) = text.split_once(" = ").ok_or_else(|| bad("no `=`"))?;
    let name = left.trim_start_matches('%').split([' ', ':']).next().unwrap_or_default();
    let attribute = right.strip_prefix("self.").filter(|a| a.chars().all(|c| c.is_alphanumeric() || "_.".contains(c)));
    if let Some(attribute) = attribute {
        // In PyTorch 1.8: `%w : [#users=1] = self.lin.weight`.
        let this = Ast::new(AstKind::Name("self".into()), line);
        let value =
            attribute.split('.').fold(this, |base, part| Ast::new(AstKind::Attr(Box::new(base), part.into()), line));
        let target = Ast::new(AstKind::Name(name.into()), line);
        out.body.push(Stmt { kind: StmtKind::Assign(vec![target], value), line });
        return Ok(());
    }
    let (op, rest) = right.split_once("[target=").ok_or_else(|| bad("no target"))?;
    // Names of targets such as `<built-in function add>` contain brackets at most in pairs.
    let end = rest.find("](").or_else(|| rest.rfind(']')).ok_or_else(|| bad("no end of the target"))?;
    let (target, rest) = (&rest[..end], &rest[end + 1..]);
    let inside = rest.trim().strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or_default();
    let ast = |kind: AstKind| Ast::new(kind, line);
    let this = || ast(AstKind::Name("self".into()));
    let path = |base: Ast, path: &str| {
        path.split('.').fold(base, |base, part| ast(AstKind::Attr(Box::new(base), part.into())))
    };
    let value = match op {
        "placeholder" => {
            let default =
                inside.strip_prefix("default=").map(|d| NodeReader::new(source, line, d).value(false)).transpose()?;
            let stars = target.bytes().take_while(|b| *b == b'*').count() as u8;
            // The graph's own name; the target is the argument's.
            out.params.push(Param { name: name.into(), annotation: None, default, stars });
            return Ok(());
        }
        "get_attr" => path(this(), target),
        "output" => {
            let (args, _) = arguments(source, line, inside)?;
            let value = args.into_iter().next().unwrap_or(ast(AstKind::None));
            out.body.push(Stmt { kind: StmtKind::Return(Some(value)), line });
            return Ok(());
        }
        "call_function" | "call_method" | "call_module" => {
            let (mut args, kwargs) = arguments(source, line, inside)?;
            if target.ends_with("einsum") {
                join_equation(&mut args);
            }
            let callee = match op {
                "call_module" => {
                    let callee = Box::new(ast(AstKind::Name("restride_module".into())));
                    let args = vec![(this(), false), (ast(AstKind::Str(target.into())), false)];
                    ast(AstKind::Call { callee, args, kwargs: Vec::new() })
                }
                "call_method" => {
                    if args.is_empty() {
                        return Err(bad("no arguments"));
                    }
                    let base = args.remove(0);
                    ast(AstKind::Attr(Box::new(base), target.into()))
                }
                _ => {
                    let target = match target {
                        // `<built-in method add of type object at 0x…>`
                        t if t.starts_with("<built-in method ") => {
                            let name = t.trim_start_matches("<built-in method ").split(' ').next().unwrap_or_default();
                            format!("torch.{name}")
                        }
                        t if t.starts_with("<built-in function ") => {
                            let name = t.trim_start_matches("<built-in function ").trim_end_matches('>');
                            // `getattr`, `len` and their like are Python's own; the others are of its module `operator`.
                            if PYTHON.contains(&name) { name.to_string() } else { format!("operator.{name}") }
                        }
                        t => t.trim_start_matches("<OpOverload(op='").to_string(),
                    };
                    let target = match target.split_once("', overload='") {
                        Some((op, overload)) => {
                            format!("torch.ops.{op}.{}", overload.trim_end_matches("')>"))
                        }
                        None => target,
                    };
                    let target = target.strip_prefix("builtins.").map_or(target.clone(), str::to_string);
                    // Operators of Python print with their private module's name.
                    let target = target.replace("_operator.", "operator.").replace("torch._C._nn.", "torch.");
                    let mut parts = target.split('.');
                    let root = ast(AstKind::Name(parts.next().unwrap_or_default().into()));
                    parts.fold(root, |base, part| ast(AstKind::Attr(Box::new(base), part.into())))
                }
            };
            let args = args.into_iter().map(|a| (a, false)).collect();
            ast(AstKind::Call { callee: Box::new(callee), args, kwargs })
        }
        other => return Err(bad(&format!("the operation {other}"))),
    };
    out.body.push(Stmt { kind: StmtKind::Assign(vec![ast(AstKind::Name(name.into()))], value), line });
    Ok(())
}

/// Puts the equation of `einsum` together: it is printed without quotes, so that its commas part it.
fn join_equation(args: &mut Vec<Ast>) {
    let parts: Vec<&str> =
        args.iter().map_while(|a| if let AstKind::Str(s) = &a.kind { Some(&**s) } else { None }).collect();
    if parts.len() > 1 {
        let (whole, n) = (parts.join(",").into(), parts.len());
        args.drain(1..n);
        args[0].kind = AstKind::Str(whole);
    }
}

type Arguments = (Vec<Ast>, Vec<(Arc<str>, Ast)>);

/// `args = (…), kwargs = {…}`
fn arguments(source: &Arc<SourceText>, line: u32, text: &str) -> Result<Arguments> {
    let mut reader = NodeReader::new(source, line, text);
    let (mut args, mut kwargs) = (Vec::new(), Vec::new());
    reader.space();
    if reader.eat_word("args = ") {
        if let AstKind::Tuple(items) = reader.value(false)?.kind {
            args = items;
        }
        reader.eat(',');
        reader.space();
    }
    if reader.eat_word("kwargs = ")
        && let AstKind::Dict(items) = reader.value(false)?.kind
    {
        for (k, v) in items {
            if let AstKind::Str(k) = k.kind {
                kwargs.push((k, v));
            }
        }
    }
    Ok((args, kwargs))
}

/// Reads values as FX prints them: names of nodes with `%`, strings without quotes.
struct NodeReader<'s> {
    source: &'s Arc<SourceText>,
    line: u32,
    text: &'s str,
    at: usize,
    depth: u32,
}

impl<'s> NodeReader<'s> {
    fn new(source: &'s Arc<SourceText>, line: u32, text: &'s str) -> Self {
        NodeReader { source, line, text, at: 0, depth: 0 }
    }

    fn rest(&self) -> &'s str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, c: char) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn ast(&self, kind: AstKind) -> Ast {
        Ast::new(kind, self.line)
    }

    /// A value. `names`: words are names of nodes, as in a printed `return`.
    fn value(&mut self, names: bool) -> Result<Ast> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.source.error(self.line, "arguments nested too deep"));
        }
        let out = self.one(names);
        self.depth -= 1;
        out
    }

    fn list(&mut self, close: char, names: bool) -> Result<(Vec<Ast>, bool)> {
        let (mut items, mut comma) = (Vec::new(), false);
        while !self.eat(close) {
            items.push(self.value(names)?);
            comma = self.eat(',');
            if !comma && self.peek() != Some(close) {
                return Err(self.source.error(self.line, format!("`{close}` is missing in the arguments")));
            }
        }
        Ok((items, comma))
    }

    fn one(&mut self, names: bool) -> Result<Ast> {
        self.space();
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let (mut items, comma) = self.list(')', names)?;
                // `(1+2j)` is a number.
                if let ([Ast { kind: AstKind::Call { .. }, .. }], false) = (&items[..], comma) {
                    return Ok(items.remove(0));
                }
                return Ok(self.ast(AstKind::Tuple(items)));
            }
            Some('[') => {
                self.at += 1;
                let (items, _) = self.list(']', names)?;
                return Ok(self.ast(AstKind::List(items)));
            }
            Some('{') => {
                self.at += 1;
                let mut items = Vec::new();
                while !self.eat('}') {
                    self.space();
                    let key = self.rest();
                    let end = key.find(':').ok_or_else(|| self.source.error(self.line, "a dictionary without `:`"))?;
                    let key = key[..end].trim().trim_matches(['\'', '"']);
                    self.at += end + 1;
                    let key = self.ast(AstKind::Str(key.into()));
                    items.push((key, self.value(names)?));
                    if !self.eat(',') && self.peek() != Some('}') {
                        return Err(self.source.error(self.line, "`}` is missing in the arguments"));
                    }
                }
                return Ok(self.ast(AstKind::Dict(items)));
            }
            Some(q @ ('\'' | '"')) => {
                let rest = &self.rest()[1..];
                let end = rest.find(q).ok_or_else(|| self.source.error(self.line, "a string without an end"))?;
                self.at += end + 2;
                return Ok(self.ast(AstKind::Str(rest[..end].into())));
            }
            _ => {}
        }
        if self.eat_word("slice(") {
            let (parts, _) = self.list(')', names)?;
            let callee = Box::new(self.ast(AstKind::Name("slice".into())));
            let args = parts.into_iter().map(|p| (p, false)).collect();
            return Ok(self.ast(AstKind::Call { callee, args, kwargs: Vec::new() }));
        }
        // Up to the end of the item; brackets inside of a string come in pairs.
        let rest = self.rest();
        let mut open = 0i32;
        let end = rest.find(|c: char| {
            match c {
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' if open > 0 => open -= 1,
                ')' | ']' | '}' => return true,
                ',' if open == 0 => return true,
                _ => {}
            }
            false
        });
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        let word = word.trim();
        if let Some(name) = word.strip_prefix('%') {
            return Ok(self.ast(AstKind::Name(name.into())));
        }
        if word.is_empty() {
            return Err(self.source.error(self.line, "a value is missing in the arguments"));
        }
        if let Some((re, im)) = word.strip_suffix('j').and_then(complex) {
            let callee = Box::new(self.ast(AstKind::Name("complex".into())));
            let args = [re, im].map(|x| (self.ast(AstKind::Float(x)), false)).to_vec();
            return Ok(self.ast(AstKind::Call { callee, args, kwargs: Vec::new() }));
        }
        let kind = match word {
            "None" => AstKind::None,
            "True" => AstKind::Bool(true),
            "False" => AstKind::Bool(false),
            "Ellipsis" | "..." => AstKind::Ellipsis,
            "inf" | "nan" => AstKind::Name(word.into()),
            "-inf" => AstKind::Float(f64::NEG_INFINITY),
            _ if word.parse::<i64>().is_ok() => AstKind::Int(word.parse().unwrap_or_default()),
            _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.')
                && word.parse::<f64>().is_ok() =>
            {
                AstKind::Float(word.parse().unwrap_or_default())
            }
            _ if word.starts_with("torch.") => {
                let mut parts = word.split('.');
                let root = self.ast(AstKind::Name(parts.next().unwrap_or_default().into()));
                return Ok(
                    parts.fold(root, |base, part| Ast::new(AstKind::Attr(Box::new(base), part.into()), self.line))
                );
            }
            _ if names => AstKind::Name(word.into()),
            _ => AstKind::Str(word.into()),
        };
        Ok(self.ast(kind))
    }
}

/// The parts of `1+2` or `2`, before a `j`.
fn complex(text: &str) -> Option<(f64, f64)> {
    if let Ok(im) = text.parse() {
        return text.starts_with(|c: char| c.is_ascii_digit() || c == '-').then_some((0.0, im));
    }
    // The last sign that is no exponent's.
    let bytes = text.as_bytes();
    let at = (1..bytes.len()).rev().find(|&i| matches!(bytes[i], b'+' | b'-') && bytes[i - 1] != b'e')?;
    Some((text[..at].parse().ok()?, text[at..].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_of_old_versions_name_inputs_in_their_head() {
        let text = "graph(x, *more : int):\n    %w : [#users=1] = self.lin.weight\n    \
                    %add : [#users=1] = call_function[target=<built-in function add>](args = (%x, %w), kwargs = {})\n    return add\n";
        let parsed = parse(&SourceText::new("text", text)).unwrap();
        let names: Vec<(&str, u8)> = parsed.params.iter().map(|p| (&*p.name, p.stars)).collect();
        assert_eq!(names, [("x", 0), ("more", 1)]);
        assert_eq!(parsed.body.len(), 3);
    }

    #[test]
    fn commas_of_an_equation_part_no_arguments() {
        let text = "graph():\n    %a : [num_users=1] = placeholder[target=a]\n    \
                    %e : [num_users=1] = call_function[target=torch.functional.einsum](args = (ij,jk,kl->il, %a, %a, %a), kwargs = {})\n    return e\n";
        let parsed = parse(&SourceText::new("text", text)).unwrap();
        let StmtKind::Assign(_, value) = &parsed.body[0].kind else { panic!("no assignment") };
        let AstKind::Call { args, .. } = &value.kind else { panic!("no call") };
        assert!(args.len() == 4 && matches!(&args[0].0.kind, AstKind::Str(s) if &**s == "ij,jk,kl->il"));
    }
}
