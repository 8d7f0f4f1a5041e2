//! Runs code on values: numbers, lists and modules are what they are, tensors are recorded calls.
//!
//! A branch on known numbers is taken. One that sizes decide is taken as the given sizes say, and the condition becomes a guard of
//! the program. A branch or loop on the contents of tensors becomes `cond` or `while_loop`.

mod bodies;
mod bounds;
mod branches;
mod builtins;
mod carried;
mod collections;
pub(crate) mod dispatch;
mod expressions;
mod fast_paths;
mod functional;
mod growth;
mod indexing;
mod joins;
mod liveness;
mod loops;
mod methods;
mod module_table;
mod modules;
mod names;
pub(crate) mod numbers;
mod prims;
mod statements;
mod string_methods;
mod strings;
mod upgraders;

pub(crate) use liveness::VariableEnds;

pub use dispatch::{code_of_dtype, dtype_of_code};

use crate::record::{CallSite, Recorder};
use crate::source::SourceText;
use crate::value::{CodeFunction, DictRef, ListRef, PyKey, PyObject, PyValue};
use indexmap::IndexMap;
use restride_ir::{Binding, Error, ErrorKind, Expr, ExprFn, Guard, Result};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Most statements that a code may run while it is evaluated.
const MAX_STEPS: u64 = 1 << 22;
/// Deepest nesting of calls.
const MAX_CALLS: u32 = 100;
/// Most values of one list.
pub(crate) const MAX_ITEMS: usize = 1 << 20;

/// A definition of the code.
pub enum Definition {
    /// A class.
    Class(Rc<ClassInfo>),
    /// A function.
    Function(Rc<CodeFunction>),
}

/// A class of the code.
pub struct ClassInfo {
    /// Its qualified name.
    pub name: Arc<str>,
    /// The class that it extends: `Module`, `NamedTuple`, `Enum`, …
    pub base: Option<Arc<str>>,
    /// Its methods.
    pub methods: HashMap<Arc<str>, Rc<CodeFunction>>,
    /// Its annotated attributes, with the values of constants.
    pub fields: Vec<(Arc<str>, Option<crate::syntax::ast::Ast>)>,
    /// Names of attributes that are parameters.
    pub parameters: Vec<Arc<str>>,
    /// Names of attributes that are buffers.
    pub buffers: Vec<Arc<str>>,
    /// Where it is.
    pub source: Arc<SourceText>,
}

/// Where definitions come from.
pub trait Library {
    /// The definition of a qualified name.
    ///
    /// # Errors
    /// ArchiveCode that does not parse.
    fn find(&self, name: &str) -> Result<Option<Definition>>;
    /// The constant of a number.
    fn constant(&self, i: usize) -> Option<PyValue>;
    /// The tensor of an attribute that the library knows by itself, such as a weight of a pasted graph.
    fn weight(&self, _path: &str) -> Option<PyValue> {
        None
    }
    /// Whether such tensors are below a path.
    fn has_below(&self, _path: &str) -> bool {
        false
    }
}

/// How the code's dialect differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// ArchiveCode of TorchScript archives, of an operator version.
    TorchScript(u64),
    /// Python as FX prints it.
    Python,
    /// TorchScript IR: all arguments are positional.
    JitIr,
}

/// Variables of a running function.
pub(crate) struct Env {
    pub vars: HashMap<Arc<str>, PyValue>,
    pub source: Arc<SourceText>,
    /// Where the function's variables end.
    pub ends: Rc<liveness::VariableEnds>,
}

impl Env {
    /// An environment without variables.
    pub fn new(source: Arc<SourceText>) -> Env {
        Env { vars: HashMap::new(), source, ends: Rc::default() }
    }

    /// The same variables, for code that sets others.
    pub fn inside(&self) -> Env {
        Env { vars: self.vars.clone(), source: self.source.clone(), ends: self.ends.clone() }
    }
}

/// How a block ended.
pub(crate) enum BlockEnd {
    Next,
    Return(PyValue),
    Break,
    Continue,
    /// ArchiveCode that raises, with the message.
    Raise(Arc<str>),
}

/// A change that a branch made, with what was before.
enum Change {
    Attribute(Rc<PyObject>, Arc<str>, Option<PyValue>),
    List(ListRef, Vec<PyValue>),
    Dict(DictRef, IndexMap<PyKey, PyValue>),
}

/// Runs code.
pub struct Evaluator<'a, 'l> {
    /// Where calls are recorded.
    pub rec: Recorder<'a>,
    pub(crate) library: &'l dyn Library,
    pub(crate) dialect: Dialect,
    /// Values of symbols that stand for sizes of the given inputs.
    pub hints: Binding,
    /// What open branches changed.
    journal: Vec<Change>,
    /// Attributes that were written, and those that were read before.
    pub(crate) written: HashSet<(usize, Arc<str>)>,
    pub(crate) read: HashSet<(usize, Arc<str>)>,
    journaling: u32,
    calls: u32,
    steps: u64,
}

impl<'a, 'l> Evaluator<'a, 'l> {
    /// An evaluator.
    pub fn new(rec: Recorder<'a>, library: &'l dyn Library, dialect: Dialect) -> Self {
        Evaluator {
            rec,
            library,
            dialect,
            hints: Binding::new(),
            journal: Vec::new(),
            written: HashSet::new(),
            read: HashSet::new(),
            journaling: 0,
            calls: 0,
            steps: 0,
        }
    }

    /// Counts work, so that code cannot run without end.
    pub(crate) fn step(&mut self, n: u64) -> Result<()> {
        self.steps += n;
        if self.steps > MAX_STEPS {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("the code runs more than {MAX_STEPS} statements while it is evaluated"),
            ));
        }
        Ok(())
    }

    /// Calls a function of the code.
    ///
    /// # Errors
    /// What the code or PyTorch refuses.
    pub fn call_function(
        &mut self,
        function: &Rc<CodeFunction>,
        args: Vec<PyValue>,
        kwargs: Vec<(Arc<str>, PyValue)>,
    ) -> Result<PyValue> {
        if self.calls >= MAX_CALLS {
            return Err(Error::new(ErrorKind::Limit, format!("calls nested more than {MAX_CALLS} deep")));
        }
        let def = function.def.clone();
        let mut env = Env::new(function.source.clone());
        env.ends = function.ends.get_or_init(|| Rc::new(liveness::VariableEnds::of(&function.def))).clone();
        let refused = |what: String| Error::new(ErrorKind::Program, format!("{}: {what}", def.name));
        // `*args` takes what is left.
        let mut args = args;
        let star = def.params.iter().position(|p| p.stars == 1);
        if let (Some(at), true) = (star, crate::source::SourceText::is_library(&function.source)) {
            let rest = args.split_off(at.min(args.len()));
            env.vars.insert(def.params[at].name.clone(), PyValue::tuple(rest));
        }
        if args.len() > def.params.len() {
            return Err(refused(format!("takes {} arguments, got {}", def.params.len(), args.len())));
        }
        for (param, value) in def.params.iter().zip(args) {
            env.vars.insert(param.name.clone(), value);
        }
        for (name, value) in kwargs {
            if def.params.iter().all(|p| p.name != name) || env.vars.contains_key(&name) {
                return Err(refused(format!("does not take the argument {name}")));
            }
            env.vars.insert(name, value);
        }
        for param in &def.params {
            if env.vars.contains_key(&param.name) || param.stars > 0 {
                continue;
            }
            let Some(default) = &param.default else { return Err(refused(format!("is not given {}", param.name))) };
            let value = self.expression(&mut env, default)?;
            env.vars.insert(param.name.clone(), value);
        }
        self.calls += 1;
        let site = self.rec.site.clone();
        let flow = self.block(&mut env, &def.body);
        self.calls -= 1;
        let flow = flow?;
        self.rec.site = site;
        match flow {
            BlockEnd::Return(value) => Ok(value),
            BlockEnd::Next => Ok(PyValue::None),
            BlockEnd::Raise(message) => Err(Error::new(ErrorKind::Program, format!("the code raises: {message}"))),
            BlockEnd::Break | BlockEnd::Continue => {
                Err(Error::new(ErrorKind::File, "break or continue outside of a loop"))
            }
        }
    }

    /// Sets the place of the calls that follow.
    pub(crate) fn at(&mut self, source: &Arc<SourceText>, line: u32) {
        // What the library calls is called at the place of the call to it.
        if source.is_library() {
            return;
        }
        match &mut self.rec.site {
            Some(site) if Arc::ptr_eq(&site.source, source) => site.line = line,
            other => *other = Some(CallSite { source: source.clone(), line }),
        }
    }

    /// Whether a condition holds: known, or decided by sizes and then guarded; `None` if data decides.
    pub(crate) fn decide(&mut self, condition: &Expr) -> Result<Option<bool>> {
        let condition = numbers::truth(condition);
        if let Expr::Bool(b) = condition {
            return Ok(Some(b));
        }
        if self.rec.is_ensured(&condition) {
            return Ok(Some(true));
        }
        if self.rec.is_ensured(&numbers::not(&condition)) {
            return Ok(Some(false));
        }
        if let Some(proved) = proved(&condition) {
            return Ok(Some(proved));
        }
        if condition.is_learnt() {
            return Ok(None);
        }
        let holds = condition.eval(&self.hints).map_err(Error::unsupported)?.as_bool();
        let guard = if holds { condition } else { numbers::not(&condition) };
        let text: Arc<str> = format!("the code decides on {guard}").into();
        self.rec.program.guards.push(Guard { condition: guard.clone(), text });
        self.rec.ensure(&guard);
        Ok(Some(holds))
    }
}

/// A comparison that the ranges of symbols decide for all sizes.
fn proved(condition: &Expr) -> Option<bool> {
    use restride_ir::Dim;
    let Expr::Call(c) = condition else { return None };
    match (c.0, &c.1[..]) {
        (ExprFn::Eq, [a, b]) => a.equals(b),
        (ExprFn::Ne, [a, b]) => a.equals(b).map(|e| !e),
        (ExprFn::Lt, [a, b]) => a.less(b),
        (ExprFn::Ge, [a, b]) => a.less(b).map(|l| !l),
        (ExprFn::Gt, [a, b]) => b.less(a),
        (ExprFn::Le, [a, b]) => b.less(a).map(|l| !l),
        (ExprFn::And, parts) => {
            let each: Vec<Option<bool>> = parts.iter().map(proved).collect();
            if each.contains(&Some(false)) {
                Some(false)
            } else {
                each.iter().all(|e| *e == Some(true)).then_some(true)
            }
        }
        (ExprFn::Or, parts) => {
            let each: Vec<Option<bool>> = parts.iter().map(proved).collect();
            if each.contains(&Some(true)) {
                Some(true)
            } else {
                each.iter().all(|e| *e == Some(false)).then_some(false)
            }
        }
        (ExprFn::Not, [a]) => proved(a).map(|b| !b),
        _ => None,
    }
}
