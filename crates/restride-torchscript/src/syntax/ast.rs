//! Syntax trees of the Python that TorchScript archives and printed graphs are written in.

use std::rc::Rc;
use std::sync::Arc;

/// A line of a source.
pub type LineNumber = u32;

/// An expression.
#[derive(Debug, Clone)]
pub struct Ast {
    /// What it is.
    pub kind: AstKind,
    /// Its line.
    pub line: LineNumber,
}

/// Kinds of expressions.
#[derive(Debug, Clone)]
pub enum AstKind {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// `12`
    Int(i64),
    /// `1.5`
    Float(f64),
    /// `2j`
    Imaginary(f64),
    /// `"text"`
    Str(Arc<str>),
    /// `...`
    Ellipsis,
    /// `x`
    Name(Arc<str>),
    /// `x.name`
    Attr(Box<Ast>, Arc<str>),
    /// `f(a, *b, name=c)`
    Call {
        /// The function.
        callee: Box<Ast>,
        /// Positional arguments; true for a starred one.
        args: Vec<(Ast, bool)>,
        /// Keyword arguments.
        kwargs: Vec<(Arc<str>, Ast)>,
    },
    /// `x[i]`
    Index(Box<Ast>, Box<Ast>),
    /// `a:b:c` in an index
    Slice(Option<Box<Ast>>, Option<Box<Ast>>, Option<Box<Ast>>),
    /// `(a, b)`
    Tuple(Vec<Ast>),
    /// `[a, b]`
    List(Vec<Ast>),
    /// `{a: b}`
    Dict(Vec<(Ast, Ast)>),
    /// `a + b`, by the name of Python's `operator` function
    Binary(&'static str, Box<Ast>, Box<Ast>),
    /// `-a`, likewise
    Unary(&'static str, Box<Ast>),
    /// `a and b`, `a or b`
    Logic {
        /// `and`
        and: bool,
        /// The left side.
        left: Box<Ast>,
        /// The right side.
        right: Box<Ast>,
    },
    /// `a if c else b`
    Choice(Box<Ast>, Box<Ast>, Box<Ast>),
    /// `[body for target in iter if condition]`
    Comprehension(Box<Ast>, Box<Ast>, Box<Ast>, Option<Box<Ast>>),
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Its line.
    pub line: LineNumber,
}

/// Kinds of statements.
#[derive(Debug, Clone)]
pub enum StmtKind {
    /// `a = b = value`
    Assign(Vec<Ast>, Ast),
    /// `a : T = value`, `a : T`
    Annotated(Ast, Ast, Option<Ast>),
    /// `a += value`, by the name of Python's `operator` function
    Augmented(&'static str, Ast, Ast),
    /// An expression.
    Expr(Ast),
    /// `return value`
    Return(Option<Ast>),
    /// `if c: … else: …`
    If(Ast, Vec<Stmt>, Vec<Stmt>),
    /// `while c: …`
    While(Ast, Vec<Stmt>),
    /// TorchScript's loop: at most `trips` iterations, while the condition variable is true.
    For(Ast, Ast, Vec<Stmt>),
    /// `with a as b: …`
    With(Vec<(Ast, Option<Ast>)>, Vec<Stmt>),
    /// `assert c, message`
    Assert(Ast, Option<Ast>),
    /// `raise e`
    Raise(Option<Ast>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `pass`, `import …`, `del …`
    Pass,
    /// `def …`
    Def(Rc<FunctionDef>),
    /// `class …`
    Class(Rc<ClassDef>),
}

/// A function.
#[derive(Debug)]
pub struct FunctionDef {
    /// Its name.
    pub name: Arc<str>,
    /// Its parameters.
    pub params: Vec<Param>,
    /// The first parameter that is given by name alone: those after a bare `*`.
    pub keyword_only: usize,
    /// The annotated result.
    pub returns: Option<Ast>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Its line.
    pub line: LineNumber,
}

/// A parameter.
#[derive(Debug, Clone)]
pub struct Param {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub annotation: Option<Ast>,
    /// Its default.
    pub default: Option<Ast>,
    /// `*args` is 1, `**kwargs` 2.
    pub stars: u8,
}

/// A class.
#[derive(Debug)]
pub struct ClassDef {
    /// Its name.
    pub name: Arc<str>,
    /// `Module`, `NamedTuple`, `Enum`, …
    pub base: Option<Arc<str>>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Its line.
    pub line: LineNumber,
}

impl Ast {
    /// An expression at a line.
    pub fn new(kind: AstKind, line: LineNumber) -> Ast {
        Ast { kind, line }
    }

    /// `a.b.c`, if it is a chain of names.
    pub fn dotted(&self) -> Option<String> {
        match &self.kind {
            AstKind::Name(n) => Some(n.to_string()),
            AstKind::Attr(base, name) => {
                let mut out = base.dotted()?;
                out.push('.');
                out.push_str(name);
                Some(out)
            }
            _ => None,
        }
    }
}
