//! Reading the text format: the parser's state, and the header lines of a program.

use super::lex::{Lexer, Tok, Token, unquote};
use crate::{
    AliasRoot, Arg, Error, Graph, GraphId, Guard, Id, InputKind, InputSpec, Op, OutputAlias, OutputKind, OutputSpec,
    Program, Result, Stage, Symbol, TensorType, ValueId, Weight, Weights,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// Reads a program. `lookup` finds operators by their full names.
///
/// Weights get types but no memory (see [`attach_weights`](super::attach_weights)). The result is not verified (see
/// [`verify`](crate::verify)).
pub fn parse(text: &str, lookup: &dyn Fn(&str) -> Option<Op>) -> Result<Program> {
    let mut parser = Parser::new(text, lookup)?;
    let mut header = GraphHeader::default();
    parser.header(&mut header)?;
    parser.graphs()?;
    parser.finish(header)
}

pub(super) struct Parser<'s> {
    pub lexer: Lexer<'s>,
    /// The token that is read next.
    pub tok: Token,
    pub lookup: &'s dyn Fn(&str) -> Option<Op>,
    pub program: Program,
    /// Subgraphs by name, in the order in which they are first mentioned.
    pub graph_ids: HashMap<Arc<str>, GraphId>,
    /// Position of the first mention of each graph, and whether it is defined.
    pub mentioned: Vec<(usize, bool)>,
    /// Nodes read so far, over all graphs: the default key of random draws.
    pub nodes: u32,
    /// Values that arguments may name.
    pub scope: HashMap<Arc<str>, ValueId>,
}

/// Declarations of the header about later lines.
#[derive(Default)]
struct GraphHeader {
    stage: Option<Stage>,
    inputs: Vec<(Arc<str>, usize, PendingInput)>,
    outputs: BTreeMap<usize, (usize, PendingOutput)>,
}

enum PendingInput {
    Done(InputKind),
    Storage(Vec<(Arc<str>, usize)>),
}

enum PendingKind {
    Done(OutputKind),
    /// Of an input, whose position goes in.
    Of(fn(usize) -> OutputKind, Arc<str>, usize),
}

struct PendingOutput {
    kind: PendingKind,
    alias: Option<(TensorType, PendingRoot)>,
}

enum PendingRoot {
    Input(Arc<str>, usize),
    Base(usize),
}

impl<'s> Parser<'s> {
    fn new(text: &'s str, lookup: &'s dyn Fn(&str) -> Option<Op>) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let tok = lexer.next()?;
        let program = Program::new("", Stage::Imported);
        Ok(Parser {
            lexer,
            tok,
            lookup,
            program,
            graph_ids: HashMap::new(),
            mentioned: vec![(0, false)],
            nodes: 0,
            scope: HashMap::new(),
        })
    }

    pub fn text(&self) -> &'s str {
        self.lexer.text(self.tok)
    }

    pub fn bump(&mut self) -> Result<Token> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.tok, next))
    }

    /// An error at the next token.
    pub fn error<T>(&self, what: impl fmt::Display) -> Result<T> {
        self.error_at(self.tok.start, what)
    }

    pub fn error_at<T>(&self, at: usize, what: impl fmt::Display) -> Result<T> {
        Err(self.lexer.error(at, what))
    }

    pub fn expected<T>(&self, want: &str) -> Result<T> {
        match self.tok.tok {
            Tok::End => self.error(format_args!("expected {want}, found the end of the text")),
            _ => self.error(format_args!("expected {want}, found `{}`", cut(self.text()))),
        }
    }

    pub fn is(&self, c: char) -> bool {
        self.tok.tok == Tok::Punct(c)
    }

    pub fn eat(&mut self, c: char) -> Result<bool> {
        let is = self.is(c);
        if is {
            self.bump()?;
        }
        Ok(is)
    }

    pub fn expect(&mut self, c: char) -> Result<()> {
        if self.eat(c)? { Ok(()) } else { self.expected(&format!("`{c}`")) }
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.tok.tok == Tok::Word && self.text() == word
    }

    pub fn eat_word(&mut self, word: &str) -> Result<bool> {
        let is = self.is_word(word);
        if is {
            self.bump()?;
        }
        Ok(is)
    }

    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word)? { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    /// A string in quotes.
    pub fn string(&mut self) -> Result<Arc<str>> {
        if self.tok.tok != Tok::Str {
            return self.expected("a string");
        }
        let text = self.unquoted(self.text())?;
        self.bump()?;
        Ok(text)
    }

    fn unquoted(&self, text: &str) -> Result<Arc<str>> {
        match unquote(text) {
            Ok(text) => Ok(text.into()),
            Err(why) => self.error(why),
        }
    }

    /// `%name` or `@name`, with the place where it stands.
    pub fn name(&mut self, kind: Tok) -> Result<(Arc<str>, usize)> {
        if self.tok.tok != kind {
            return self.expected(if kind == Tok::Value { "a value (`%name`)" } else { "a graph (`@name`)" });
        }
        let (text, at) = (&self.text()[1..], self.tok.start);
        let name = if text.starts_with('"') { self.unquoted(text)? } else { text.into() };
        self.bump()?;
        Ok((name, at))
    }

    /// A number that is not negative.
    pub fn index(&mut self) -> Result<usize> {
        match (self.tok.tok, self.text().parse()) {
            (Tok::Number, Ok(n)) => {
                self.bump()?;
                Ok(n)
            }
            _ => self.expected("a whole number"),
        }
    }

    /// `[a, b]` with `inf` and `-inf` for unbounded.
    fn bounds(&mut self) -> Result<(Option<i64>, Option<i64>)> {
        self.expect('[')?;
        let lo = self.bound()?;
        self.expect(',')?;
        let hi = self.bound()?;
        self.expect(']')?;
        Ok((lo, hi))
    }

    fn bound(&mut self) -> Result<Option<i64>> {
        let minus = self.eat('-')?;
        if self.eat_word("inf")? {
            return Ok(None);
        }
        let digits = if self.tok.tok == Tok::Number { self.text() } else { "" };
        let value = if minus { format!("-{digits}").parse() } else { digits.parse() };
        match value {
            Ok(n) => {
                self.bump()?;
                Ok(Some(n))
            }
            Err(_) => self.expected("a whole number or `inf`"),
        }
    }

    fn header(&mut self, header: &mut GraphHeader) -> Result<()> {
        let mut weights = BTreeMap::new();
        let mut storages = 0;
        while self.tok.tok == Tok::Word && self.text() != "graph" {
            let (word, at) = (self.text(), self.tok.start);
            self.bump()?;
            match word {
                "program" => self.program.name = self.string()?,
                "stage" => {
                    self.expect(':')?;
                    let stage = match self.text() {
                        "imported" => Stage::Imported,
                        "functional" => Stage::Functional,
                        _ => return self.expected("`imported` or `functional`"),
                    };
                    self.bump()?;
                    header.stage = Some(stage);
                }
                "symbol" => self.symbol()?,
                "range" => {
                    let expr = self.expr()?;
                    self.expect_word("in")?;
                    let (lo, hi) = self.bounds()?;
                    self.program.ranges.push((expr, lo, hi));
                }
                "guard" => {
                    let condition = self.expr()?;
                    let text = self.string()?;
                    self.program.guards.push(Guard { condition, text });
                }
                "pytree" => self.program.pytree = Some((self.string()?, self.string()?)),
                "note" => {
                    let note = self.string()?;
                    self.program.notes.push(note.to_string());
                }
                "weight" => {
                    let (name, weight) = self.weight()?;
                    storages = storages.max(weight.storage.saturating_add(1));
                    if weights.insert(name.clone(), weight).is_some() {
                        return self.error_at(at, format_args!("weight {name:?} is declared twice"));
                    }
                }
                "input" => {
                    let (name, at) = self.name(Tok::Value)?;
                    self.expect(':')?;
                    let kind = self.input_kind()?;
                    header.inputs.push((name, at, kind));
                }
                "output" => {
                    let index = self.index()?;
                    self.expect(':')?;
                    let output = self.output_kind()?;
                    if header.outputs.insert(index, (at, output)).is_some() {
                        return self.error_at(at, format_args!("output {index} is declared twice"));
                    }
                }
                _ => {
                    return self.error_at(
                        at,
                        format_args!("expected `graph` or a header line (`symbol`, `input`, …), found `{}`", cut(word)),
                    );
                }
            }
        }
        self.program.weights = Arc::new(Weights { storages: Vec::new(), tensors: weights });
        Ok(())
    }

    fn symbol(&mut self) -> Result<()> {
        let (name, at) = (self.text(), self.tok.start);
        if self.tok.tok != Tok::Word || !super::is_symbol_name(name) {
            return self.expected("the name of a symbol");
        }
        self.bump()?;
        let (lo, hi) = if self.eat_word("in")? { self.bounds()? } else { (None, None) };
        if self.program.symbols.insert(name.into(), Symbol::new(name, lo, hi)).is_some() {
            return self.error_at(at, format_args!("symbol {name} is declared twice"));
        }
        Ok(())
    }

    fn weight(&mut self) -> Result<(Arc<str>, Weight)> {
        let name = self.string()?;
        self.expect(':')?;
        let at = self.tok.start;
        let ty = self.tensor_type()?;
        let Some(known) = ty.known() else {
            return self.error_at(at, "a weight's sizes are numbers");
        };
        self.expect_word("storage")?;
        let storage = self.index()?;
        let is_param = self.eat_word("parameter")?;
        let requires_grad = self.eat_word("requires_grad")?;
        Ok((name, Weight { storage, dtype: known.dtype, layout: known.layout, is_param, requires_grad }))
    }

    fn input_kind(&mut self) -> Result<PendingInput> {
        let word = self.text();
        if self.tok.tok != Tok::Word {
            return self.expected("what the input is (`parameter`, `buffer`, …)");
        }
        let at = self.bump()?.start;
        let kind = match word {
            "parameter" => InputKind::Parameter(self.string()?),
            "buffer" => {
                let name = self.string()?;
                InputKind::Buffer { name, persistent: !self.eat_word("non_persistent")? }
            }
            "constant" => InputKind::Constant(self.string()?),
            "user" => InputKind::User(self.string()?),
            "fixed" => {
                let name = self.string()?;
                self.expect('=')?;
                let at = self.tok.start;
                let value = self.arg(None)?;
                if !matches!(value, Arg::None | Arg::Scalar(_) | Arg::Str(_) | Arg::Complex(..)) {
                    return self.error_at(at, "a fixed input is `None`, a number or a string");
                }
                InputKind::Fixed { name, value }
            }
            "storage" => {
                let mut under = Vec::new();
                if self.eat_word("of")? {
                    under.push(self.name(Tok::Value)?);
                    while self.eat(',')? {
                        under.push(self.name(Tok::Value)?);
                    }
                }
                return Ok(PendingInput::Storage(under));
            }
            "opaque" => InputKind::Opaque(self.string()?),
            _ => {
                return self.error_at(
                    at,
                    "expected `parameter`, `buffer`, `constant`, `user`, `fixed`, `storage` or `opaque`",
                );
            }
        };
        Ok(PendingInput::Done(kind))
    }

    fn output_kind(&mut self) -> Result<PendingOutput> {
        let word = if self.tok.tok == Tok::Word { self.text() } else { "" };
        let kind = match word {
            "user" => PendingKind::Done(OutputKind::User),
            "loss" => PendingKind::Done(OutputKind::Loss),
            "token" => PendingKind::Done(OutputKind::Token),
            "base" => PendingKind::Done(OutputKind::Base),
            "mutation" => return self.output_of(OutputKind::Mutation),
            "gradient" => return self.output_of(OutputKind::Gradient),
            "metadata" => return self.output_of(OutputKind::Metadata),
            _ => return self.expected("`user`, `loss`, `mutation`, `gradient`, `metadata`, `token` or `base`"),
        };
        self.bump()?;
        Ok(PendingOutput { kind, alias: self.output_alias()? })
    }

    fn output_of(&mut self, kind: fn(usize) -> OutputKind) -> Result<PendingOutput> {
        self.bump()?;
        self.expect_word("of")?;
        let (name, at) = self.name(Tok::Value)?;
        Ok(PendingOutput { kind: PendingKind::Of(kind, name, at), alias: self.output_alias()? })
    }

    fn output_alias(&mut self) -> Result<Option<(TensorType, PendingRoot)>> {
        if !self.eat_word("as")? {
            return Ok(None);
        }
        self.expect_word("view")?;
        let ty = self.tensor_type()?;
        self.expect_word("of")?;
        let root = if self.eat_word("input")? {
            let (name, at) = self.name(Tok::Value)?;
            PendingRoot::Input(name, at)
        } else if self.eat_word("base")? {
            PendingRoot::Base(self.index()?)
        } else {
            return self.expected("`input` or `base`");
        };
        Ok(Some((ty, root)))
    }

    /// Joins the header's declarations of inputs and outputs with the main graph.
    fn finish(mut self, header: GraphHeader) -> Result<Program> {
        for (name, id) in &self.graph_ids {
            let (at, defined) = self.mentioned[id.index()];
            if !defined {
                return self.error_at(at, format_args!("unknown graph @{name}"));
            }
        }
        let graph = self.program.graph();
        let by_name: HashMap<Arc<str>, usize> =
            graph.inputs.iter().enumerate().map(|(i, &v)| (graph.values[v].name.clone(), i)).collect();
        let input = |name: &Arc<str>, at: usize| match by_name.get(name) {
            Some(&i) => Ok(i),
            None => self.error_at(at, format_args!("the graph has no input %{name}")),
        };
        let mut kinds: Vec<Option<InputKind>> = vec![None; graph.inputs.len()];
        for (name, at, kind) in header.inputs {
            let kind = match kind {
                PendingInput::Done(kind) => kind,
                PendingInput::Storage(under) => {
                    InputKind::Storage(under.iter().map(|(n, at)| input(n, *at)).collect::<Result<_>>()?)
                }
            };
            if kinds[input(&name, at)?].replace(kind).is_some() {
                return self.error_at(at, format_args!("input %{name} is declared twice"));
            }
        }
        let inputs: Vec<InputSpec> = graph
            .inputs
            .iter()
            .zip(kinds)
            .map(|(&value, kind)| {
                let user = || InputKind::User(graph.values[value].name.clone());
                InputSpec { value, kind: kind.unwrap_or_else(user) }
            })
            .collect();
        let mut outputs = vec![OutputSpec { kind: OutputKind::User, alias: None }; graph.outputs.len()];
        for (index, (at, pending)) in header.outputs {
            let Some(out) = outputs.get_mut(index) else {
                return self.error_at(at, format_args!("the graph has only {} outputs", graph.outputs.len()));
            };
            out.kind = match pending.kind {
                PendingKind::Done(kind) => kind,
                PendingKind::Of(kind, name, at) => kind(input(&name, at)?),
            };
            let Some((ty, root)) = pending.alias else { continue };
            let root = match root {
                PendingRoot::Input(name, at) => AliasRoot::Input(input(&name, at)?),
                PendingRoot::Base(i) => AliasRoot::Base(i),
            };
            out.alias = Some(OutputAlias { root, dtype: ty.dtype, layout: ty.layout });
        }
        let stage = header.stage.unwrap_or_else(|| super::stage_by_ops(&self.program));
        self.program.signature = crate::Signature { inputs, outputs };
        self.program.stage = stage;
        Ok(self.program)
    }

    /// Id of a subgraph, perhaps defined later.
    pub fn graph_id(&mut self, name: Arc<str>, at: usize) -> GraphId {
        if let Some(&id) = self.graph_ids.get(&name) {
            return id;
        }
        let id = self.program.graphs.push(Graph::new());
        // A name that the printer gave to a nameless graph.
        if *name != *super::default_graph_name(id) {
            self.program.graphs[id].name = name.clone();
        }
        self.mentioned.push((at, false));
        self.graph_ids.insert(name, id);
        id
    }
}

/// The start of a text, for messages.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((i, _)) => format!("{}…", &text[..i]),
        None => text.to_string(),
    }
}

/// Attaches weights to a program from text. They must be those that the text declares.
pub fn attach_weights(program: &mut Program, weights: Arc<Weights>) -> Result<()> {
    let wrong = |name: &str, why: &str| {
        Err(Error::new(crate::ErrorKind::Inputs, format!("the weights do not fit the program: {name:?} {why}"))
            .help("give the .pt2 that the text was made from"))
    };
    // Weights share memory in both, or in neither.
    let (mut there, mut here) = (BTreeMap::new(), BTreeMap::new());
    for (name, want) in &program.weights.tensors {
        let Some(have) = weights.tensors.get(name) else { return wrong(name, "is not among them") };
        if (have.dtype, &have.layout) != (want.dtype, &want.layout) {
            return wrong(name, "is of another type");
        }
        if *there.entry(want.storage).or_insert(have.storage) != have.storage
            || *here.entry(have.storage).or_insert(want.storage) != want.storage
        {
            return wrong(name, "shares memory with other weights than the text says");
        }
    }
    let named = program.signature.inputs.len();
    for i in 0..named {
        if let Some(name) = program.weight_name(i)
            && !weights.tensors.contains_key(name)
        {
            return wrong(name, "is not among them");
        }
    }
    program.weights = weights;
    Ok(())
}
