//! Reading graphs, nodes and arguments.

use super::lex::{Tok, unquote};
use super::parse::{Parser, cut};
use crate::{Arg, ArgType, DType, Expr, Graph, Id, MemoryFormat, Op, Origin, Result, SchemaArg, Type, ValueId};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Values by name in the graph that is being read.
type NameScope = HashMap<Arc<str>, ValueId>;

impl<'s> Parser<'s> {
    /// All graphs of the text; the main one is nameless.
    pub fn graphs(&mut self) -> Result<()> {
        while self.tok.tok != Tok::End {
            self.expect_word("graph")?;
            let at = self.tok.start;
            let id = if self.tok.tok == Tok::Graph {
                let (name, at) = self.name(Tok::Graph)?;
                self.graph_id(name, at)
            } else {
                self.program.main
            };
            if std::mem::replace(&mut self.mentioned[id.index()].1, true) {
                return self.error_at(at, "this graph is defined twice");
            }
            let mut graph = std::mem::take(&mut self.program.graphs[id]);
            self.graph(&mut graph)?;
            self.program.graphs[id] = graph;
        }
        if !self.mentioned[self.program.main.index()].1 {
            return self.expected("`graph(…) { … }`");
        }
        Ok(())
    }

    fn graph(&mut self, graph: &mut Graph) -> Result<()> {
        let mut scope = NameScope::new();
        self.expect('(')?;
        while !self.is(')') {
            let (name, at) = self.name(Tok::Value)?;
            self.expect(':')?;
            let ty = self.ty()?;
            let v = self.define(graph, &mut scope, name, at, ty)?;
            graph.inputs.push(v);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(')')?;
        self.expect('{')?;
        while !self.is_word("return") {
            self.node(graph, &mut scope)?;
        }
        self.bump()?;
        self.scope = scope;
        while !self.is('}') {
            let out = self.arg(None)?;
            graph.outputs.push(out);
            if !self.eat(',')? {
                break;
            }
        }
        self.scope = NameScope::new();
        self.expect('}')
    }

    fn define(&self, graph: &mut Graph, scope: &mut NameScope, name: Arc<str>, at: usize, ty: Type) -> Result<ValueId> {
        let v = graph.add_value(name.clone(), ty);
        if scope.insert(name.clone(), v).is_some() {
            return self.error_at(at, format_args!("%{name} is defined twice"));
        }
        Ok(v)
    }

    /// `%a: f32[2], %b: i64[2] = aten.max.dim(%x, 0) !no_grad`.
    fn node(&mut self, graph: &mut Graph, scope: &mut NameScope) -> Result<()> {
        let mut results: SmallVec<[(Arc<str>, usize, Type); 1]> = SmallVec::new();
        if self.tok.tok == Tok::Value {
            loop {
                let (name, at) = self.name(Tok::Value)?;
                self.expect(':')?;
                results.push((name, at, self.ty()?));
                if !self.eat(',')? {
                    break;
                }
            }
            self.expect('=')?;
        }
        let op = self.op()?;
        self.scope = std::mem::take(scope);
        let args = self.args(op)?;
        *scope = std::mem::take(&mut self.scope);
        let mut origin = Origin { key: self.nodes, ..Origin::default() };
        self.nodes = self.nodes.saturating_add(1);
        let mut overwritten = Vec::new();
        while self.eat('!')? {
            if self.eat_word("no_grad")? {
                origin.no_grad = true;
            } else if self.eat_word("overwritten")? {
                overwritten = self.overwritten()?;
            } else if self.eat_word("key")? {
                let at = self.tok.start;
                origin.key = match u32::try_from(self.index()?) {
                    Ok(key) => key,
                    Err(_) => return self.error_at(at, "a key fits 32 bits"),
                };
            } else {
                return self.expected("`no_grad`, `parts`, `overwritten` or `key`");
            }
        }
        let mut ids = SmallVec::new();
        for (name, at, ty) in results {
            ids.push(self.define(graph, scope, name, at, ty)?);
        }
        let mut node = crate::Node { op, args, results: ids, origin: Arc::default() };
        if !overwritten.is_empty() {
            let all: Vec<ValueId> = node.operands().chain(node.results.iter().copied()).collect();
            let named = |v: &ValueId| overwritten.iter().any(|(name, _)| graph.values[*v].name == *name);
            let found = all.iter().enumerate().filter(|(_, v)| named(v)).map(|(i, _)| i as u32);
            origin.overwritten = Some(found.collect());
            if let Some((name, at)) = overwritten.iter().find(|(n, _)| all.iter().all(|v| graph.values[*v].name != *n))
            {
                return self.error_at(*at, format_args!("%{name} is no operand and no result of this node"));
            }
        }
        node.origin = Arc::new(origin);
        let id = graph.nodes.push(node);
        graph.order.push(id);
        Ok(())
    }

    /// `(%a, %b)`: values by name, with their positions in the text.
    fn overwritten(&mut self) -> Result<Vec<(Arc<str>, usize)>> {
        let mut out = Vec::new();
        self.expect('(')?;
        loop {
            out.push(self.name(Tok::Value)?);
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(')')?;
        Ok(out)
    }

    fn op(&mut self) -> Result<Op> {
        let at = self.tok.start;
        let name: Arc<str> = match self.tok.tok {
            Tok::Word => self.text().into(),
            Tok::Str => match unquote(self.text()) {
                Ok(name) => name.into(),
                Err(why) => return self.error(why),
            },
            _ => return self.expected("an operator, a value or `return`"),
        };
        let Some(op) = (self.lookup)(&name) else {
            return self.error_at(at, format_args!("unknown operator `{}`", cut(&name)));
        };
        self.bump()?;
        Ok(op)
    }

    /// Arguments of a call in schema order, with defaults.
    fn args(&mut self, op: Op) -> Result<Vec<Arg>> {
        let slots = &op.schema().args;
        let mut given: Vec<Option<Arg>> = vec![None; slots.len()];
        let (mut positional, mut named) = (0, false);
        let call = self.tok.start;
        self.expect('(')?;
        while !self.is(')') {
            let at = self.tok.start;
            let position = if self.is_named() {
                named = true;
                let name = self.text();
                let Some(i) = slots.iter().position(|s| s.name == name) else {
                    return self.error_at(at, format_args!("{op} has no argument `{}`", cut(name)));
                };
                self.bump()?;
                self.expect('=')?;
                i
            } else if named {
                return self.error_at(at, "arguments without a name stand before those with one");
            } else {
                positional += 1;
                positional - 1
            };
            match slots.get(position) {
                None => return self.error_at(at, format_args!("{op} takes only {} arguments", slots.len())),
                Some(slot) if slot.kwarg_only && !named => {
                    return self.error_at(at, format_args!("`{}` is given by name: `{}=…`", slot.name, slot.name));
                }
                Some(slot) => {
                    let arg = self.arg(Some(slot))?;
                    if given[position].replace(arg).is_some() {
                        return self.error_at(at, format_args!("argument `{}` is given twice", slot.name));
                    }
                }
            }
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(')')?;
        let mut args = Vec::with_capacity(slots.len());
        for (slot, arg) in slots.iter().zip(given) {
            match arg.or_else(|| slot.default_arg()) {
                Some(arg) => args.push(arg),
                None => return self.error_at(call, format_args!("{op} needs argument `{}`", slot.name)),
            }
        }
        Ok(args)
    }

    /// Whether a `name=` comes next.
    fn is_named(&self) -> bool {
        self.tok.tok == Tok::Word && self.peek(1) == Tok::Punct('=')
    }

    /// The kind of the token `n` behind the next one.
    fn peek(&self, n: usize) -> Tok {
        let mut ahead = self.lexer.clone();
        let mut tok = self.tok.tok;
        for _ in 0..n {
            match ahead.next() {
                Ok(t) => tok = t.tok,
                Err(_) => return Tok::End,
            }
        }
        tok
    }

    /// One argument; without a slot, of any kind.
    pub fn arg(&mut self, slot: Option<&SchemaArg>) -> Result<Arg> {
        let ty = slot.map(|s| s.ty);
        match self.tok.tok {
            Tok::Value => self.value().map(Arg::Value),
            Tok::Graph => {
                let (name, at) = self.name(Tok::Graph)?;
                Ok(Arg::Graph(self.graph_id(name, at)))
            }
            Tok::Str => {
                let text = self.string()?;
                Ok(if ty == Some(ArgType::Device) { Arg::Device(text) } else { Arg::Str(text) })
            }
            Tok::Punct('&') => {
                self.bump()?;
                self.op().map(Arg::Op)
            }
            Tok::Punct('[') => self.list(ty),
            Tok::Word => match self.word(ty)? {
                Some(arg) => Ok(arg),
                None => self.expr().map(Arg::Scalar),
            },
            _ if self.is_complex() => self.complex(),
            _ => self.expr().map(Arg::Scalar),
        }
    }

    fn value(&mut self) -> Result<ValueId> {
        let (name, at) = self.name(Tok::Value)?;
        match self.scope.get(&name) {
            Some(&v) => Ok(v),
            None => self.error_at(at, format_args!("%{name} is not defined before this")),
        }
    }

    /// A word that is no number: `None`, an element type, a device, …
    fn word(&mut self, ty: Option<ArgType>) -> Result<Option<Arg>> {
        let text = self.text();
        let arg = match (text.strip_prefix("torch."), ty) {
            (None, _) if text == "None" => Some(Arg::None),
            (None, Some(ArgType::DType)) => DType::ALL.into_iter().find(|d| d.name() == text).map(Arg::DType),
            (None, Some(ArgType::Layout)) if text == "strided" => Some(Arg::Strided),
            (None, Some(ArgType::MemoryFormat)) => memory_format(text).map(Arg::MemoryFormat),
            (None, Some(ArgType::Device)) if text != "device" => return self.device(text).map(Some),
            (None, _) if text == "device" && self.peek(1) == Tok::Punct('(') => {
                self.bump()?;
                self.bump()?;
                let name = self.string()?;
                self.expect(')')?;
                return Ok(Some(Arg::Device(name)));
            }
            (None, _) => None,
            (Some("strided"), _) => Some(Arg::Strided),
            (Some(name), _) => {
                let dtype = DType::ALL.into_iter().find(|d| d.torch_name() == name).map(Arg::DType);
                dtype.or_else(|| memory_format(name).map(Arg::MemoryFormat))
            }
        };
        if arg.is_some() {
            self.bump()?;
        }
        Ok(arg)
    }

    /// `cpu` or `cuda:0`.
    fn device(&mut self, name: &str) -> Result<Arg> {
        self.bump()?;
        if self.eat(':')? {
            let index = self.index()?;
            return Ok(Arg::Device(format!("{name}:{index}").into()));
        }
        Ok(Arg::Device(name.into()))
    }

    fn list(&mut self, ty: Option<ArgType>) -> Result<Arg> {
        let at = self.tok.start;
        self.expect('[')?;
        let (mut values, mut numbers, mut strings) = (Vec::new(), Vec::<Expr>::new(), Vec::new());
        while !self.is(']') {
            match self.tok.tok {
                Tok::Value => values.push(Some(self.value()?)),
                Tok::Str => strings.push(self.string()?),
                Tok::Word if self.text() == "None" => {
                    self.bump()?;
                    values.push(None);
                }
                _ => numbers.push(self.expr()?),
            }
            if !self.eat(',')? {
                break;
            }
        }
        self.expect(']')?;
        match (values.is_empty(), numbers.is_empty(), strings.is_empty()) {
            (true, true, true) => Ok(match ty {
                None | Some(ArgType::Tensors | ArgType::OptTensors | ArgType::Other) => Arg::Values(values),
                Some(ArgType::Strs) => Arg::Strs(strings),
                _ => Arg::Scalars(numbers),
            }),
            (false, true, true) => Ok(Arg::Values(values)),
            (true, false, true) => Ok(Arg::Scalars(numbers)),
            (true, true, false) => Ok(Arg::Strs(strings)),
            _ => self.error_at(at, "a list holds values, numbers or strings, not several of them"),
        }
    }

    /// Whether `(1.0-2.0j)` comes next.
    fn is_complex(&self) -> bool {
        if !self.is('(') {
            return false;
        }
        let at = 1 + (self.peek(1) == Tok::Punct('-')) as usize;
        let signed = matches!(self.peek(at + 1), Tok::Punct('+' | '-'));
        let mut ahead = self.lexer.clone();
        let last = (0..at + 2).map(|_| ahead.next()).last();
        let Some(Ok(last)) = last else { return false };
        let word = matches!(ahead.text(last), "infj" | "NaNj" | "nanj");
        matches!(self.peek(at), Tok::Number | Tok::Word) && signed && (last.tok == Tok::Imaginary || word)
    }

    fn complex(&mut self) -> Result<Arg> {
        self.expect('(')?;
        let re = self.part("")?;
        let im = self.part("j")?;
        self.expect(')')?;
        Ok(Arg::Complex(re, im))
    }

    /// A float with its sign and suffix.
    fn part(&mut self, suffix: &str) -> Result<f64> {
        let sign = if self.eat('-')? {
            "-"
        } else {
            self.eat('+')?;
            ""
        };
        let text = self.text();
        match text.strip_suffix(suffix).map(|digits| format!("{sign}{digits}").parse::<f64>()) {
            Some(Ok(x)) => {
                self.bump()?;
                // A NaN has one spelling, and no sign.
                Ok(if x.is_nan() { f64::NAN } else { x })
            }
            _ => self.expected("a float"),
        }
    }
}

fn memory_format(name: &str) -> Option<MemoryFormat> {
    super::MEMORY_FORMATS.iter().find(|(_, n)| *n == name).map(|(m, _)| *m)
}
