//! Records calls of operators into a program's graphs, with the types that the operators' own rules give.
//!
//! A [`TensorRef`] is a tensor object of the evaluated code. Its value in the graph changes where an operator changes the object
//! itself (`unsqueeze_`); its element type, sizes and strides are known at once, maybe over symbols. Tensors that share memory are
//! in one group, so that a write to one forgets what is known about the contents of the others.

mod call;
mod control;
mod data_sizes;
mod fit;
mod known;
mod tidy;
mod weights;

pub use call::CallArg;
pub use control::RecordedBody;
pub use known::KnownContent;

use crate::source::SourceText;
use restride_ir::{
    Arg, Conditions, DType, Error, Expr, Graph, GraphId, Limits, Names, Op, Origin, OutputKind, OutputSpec, Program,
    Result, Stage, Symbol, TensorType, Type, ValueId,
};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Most calls that an archive may record.
const MAX_NODES: usize = 1 << 20;

/// A tensor object.
pub type TensorRef = Rc<TensorObject>;

/// A tensor object of the evaluated code.
pub struct TensorObject {
    value: Cell<ValueId>,
    /// Which frame its value is of.
    frame: Cell<u64>,
    ty: RefCell<TensorType>,
    group: u32,
    known: RefCell<Option<(KnownContent, u64)>>,
    /// Number of its content when it was made, and the version of its group then.
    content: Cell<(u64, u64)>,
}

/// A content: its number, and the writes since.
type Content = (u64, u64);

impl TensorObject {
    /// Its type.
    pub fn ty(&self) -> TensorType {
        self.ty.borrow().clone()
    }

    /// Its element type.
    pub fn dtype(&self) -> DType {
        self.ty.borrow().dtype
    }

    /// Number of its dimensions.
    pub fn rank(&self) -> usize {
        self.ty.borrow().rank()
    }
}

/// A result of a call.
#[derive(Clone)]
pub enum RecordedResult {
    /// A tensor.
    Tensor(TensorRef),
    /// A number that a run learns.
    Number(Expr),
    /// Nothing.
    None,
}

/// A graph under construction.
struct RecordFrame {
    serial: u64,
    graph: Graph,
    taken: Names,
    /// Values of the frame around it, and the inputs that stand for them.
    captured: Vec<(ValueId, ValueId)>,
    /// Groups from here on were made inside.
    first_group: u32,
}

/// Where a call is in the source.
#[derive(Clone)]
pub struct CallSite {
    /// The source.
    pub source: Arc<SourceText>,
    /// The line.
    pub line: u32,
}

/// Records calls.
pub struct Recorder<'a> {
    /// The program.
    pub program: Program,
    lookup: &'a dyn Fn(&str) -> Option<Op>,
    frames: Vec<RecordFrame>,
    serials: u64,
    keys: u32,
    /// Of each group of tensors on one memory, the number of its last write, and the group that it was joined with.
    groups: Vec<(u64, u32)>,
    /// Number of writes.
    writes: u64,
    /// Groups that share memory only if a branch on data was taken, or a loop made no iteration.
    conditional: Vec<(u32, u32)>,
    /// How many of them there may be before those that nothing sees are forgotten.
    many_conditional: usize,
    /// Tensor objects in the order of their making; dropped ones are dead references.
    objects: Vec<Weak<TensorObject>>,
    /// Numbers of nonzero elements of tensors, by their versions.
    counts: Vec<(Content, Expr)>,
    /// Numbers of contents, by the calls that compute them: the same call of the same operands gives the same content.
    numbering: std::collections::HashMap<String, u64>,
    /// Checks of numbers that the next node learns.
    pending: Vec<Expr>,
    /// What recorded checks ensure.
    ensured: Vec<Expr>,
    conditions: Conditions,
    /// The place of the calls.
    pub site: Option<CallSite>,
    /// Modules from the root to the one that runs.
    pub module: Option<Arc<str>>,
    /// The real source of a line, where the archive records it.
    pub no_grad: bool,
    nodes: usize,
    contents: u64,
    inputs: weights::WeightInputs,
}

impl<'a> Recorder<'a> {
    /// A recorder of an empty program.
    pub fn new(name: &str, limits: Limits, lookup: &'a dyn Fn(&str) -> Option<Op>) -> Recorder<'a> {
        let mut program = Program::new(name, Stage::Imported);
        program.limits = limits;
        let mut out = Recorder {
            program,
            lookup,
            frames: Vec::new(),
            serials: 0,
            keys: 0,
            groups: Vec::new(),
            writes: 0,
            conditional: Vec::new(),
            many_conditional: 128,
            objects: Vec::new(),
            counts: Vec::new(),
            numbering: Default::default(),
            pending: Vec::new(),
            ensured: Vec::new(),
            conditions: Conditions::default(),
            site: None,
            module: None,
            no_grad: false,
            nodes: 0,
            contents: 0,
            inputs: weights::WeightInputs::default(),
        };
        out.push_frame("");
        out
    }

    fn push_frame(&mut self, name: &str) {
        self.serials += 1;
        let graph = Graph { name: name.into(), ..Graph::new() };
        let first_group = self.groups.len() as u32;
        self.frames.push(RecordFrame {
            serial: self.serials,
            graph,
            taken: Names::default(),
            captured: Vec::new(),
            first_group,
        });
    }

    fn frame(&mut self) -> &mut RecordFrame {
        self.frames.last_mut().expect("the main frame stays")
    }

    /// How deep in bodies of control flow the recorder is.
    pub fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// A name that no value of the graph has.
    fn fresh(&mut self, hint: &str) -> Arc<str> {
        self.frame().taken.fresh(hint)
    }

    /// A new group of tensors that share memory.
    fn group(&mut self) -> u32 {
        let id = self.groups.len() as u32;
        self.groups.push((0, id));
        id
    }

    /// The group that a group was joined with.
    fn root(&self, mut group: u32) -> u32 {
        while self.groups[group as usize].1 != group {
            group = self.groups[group as usize].1;
        }
        group
    }

    /// What a tensor holds now, as a number that tensors of the same content share.
    fn content(&self, t: &TensorRef) -> Content {
        let (number, made) = t.content.get();
        let now = self.groups[self.root(t.group) as usize].0;
        // A written tensor has a content of its own.
        if now == made { (number, 0) } else { (Rc::as_ptr(t) as u64, now) }
    }

    fn join(&mut self, a: u32, b: u32) {
        // The older group stays the root, so that groups from outside of a body are known by their number.
        let (a, b) = (self.root(a), self.root(b));
        let (a, b) = (a.min(b), a.max(b));
        if a != b {
            let version = self.groups[a as usize].0.max(self.groups[b as usize].0);
            self.groups[a as usize].0 = version;
            self.groups[b as usize].1 = a;
        }
    }

    /// Whether two tensors may share memory.
    pub fn may_alias(&self, a: &TensorRef, b: &TensorRef) -> bool {
        self.root(a.group) == self.root(b.group)
    }

    /// Adds an input of the main graph.
    pub fn input(&mut self, name: &str, ty: TensorType) -> (TensorRef, ValueId) {
        let frame = &mut self.frames[0];
        let fresh = frame.taken.fresh(name);
        let value = frame.graph.add_input(fresh, Type::Tensor(ty.clone()));
        let serial = frame.serial;
        let group = self.group();
        (self.object(value, serial, ty, group), value)
    }

    /// Adds an input of the main graph that is no tensor.
    pub fn other_input(&mut self, name: &str, ty: Type) -> ValueId {
        let frame = &mut self.frames[0];
        let fresh = frame.taken.fresh(name);
        frame.graph.add_input(fresh, ty)
    }

    /// Lets two tensors count as sharing memory.
    pub fn share(&mut self, a: &TensorRef, b: &TensorRef) {
        self.join(a.group, b.group);
    }

    fn object(&mut self, value: ValueId, frame: u64, ty: TensorType, group: u32) -> TensorRef {
        self.contents += 1;
        let version = self.groups[self.root(group) as usize].0;
        let made = Rc::new(TensorObject {
            content: Cell::new((self.contents, version)),
            value: Cell::new(value),
            frame: Cell::new(frame),
            ty: RefCell::new(ty),
            group,
            known: RefCell::new(None),
        });
        self.objects.push(Rc::downgrade(&made));
        made
    }

    /// Whether the code still has a tensor of a group.
    fn is_seen(&self, group: u32) -> bool {
        let root = self.root(group);
        self.objects.iter().any(|t| t.upgrade().is_some_and(|t| self.root(t.group) == root))
    }

    /// The tensor's value in the graph under construction: an input that stands for it, in a body.
    pub fn value(&mut self, t: &TensorRef) -> Result<ValueId> {
        let serial = t.frame.get();
        let Some(home) = self.frames.iter().position(|f| f.serial == serial) else {
            return Err(Error::unsupported("a tensor of one branch or loop is used after it"));
        };
        let mut value = t.value.get();
        for depth in home + 1..self.frames.len() {
            value = self.capture(depth, value);
        }
        Ok(value)
    }

    /// The input of a frame for a value of the frame around it.
    fn capture(&mut self, depth: usize, outer: ValueId) -> ValueId {
        if let Some((_, inner)) = self.frames[depth].captured.iter().find(|c| c.0 == outer) {
            return *inner;
        }
        let value = &self.frames[depth - 1].graph.values[outer];
        let (name, ty) = (value.name.clone(), value.ty.clone());
        let frame = &mut self.frames[depth];
        let fresh = frame.taken.fresh(&name);
        let inner = frame.graph.add_input(fresh, ty);
        frame.captured.push((outer, inner));
        inner
    }

    /// The operator of a full name.
    ///
    /// # Errors
    /// No such operator.
    pub fn operator(&self, name: &str) -> Result<Op> {
        (self.lookup)(name).ok_or_else(|| {
            Error::unsupported(format!("operator {name} is not known")).help("give its schema in a file with --ops")
        })
    }

    /// Whether an operator of the full name is known.
    pub fn find(&self, name: &str) -> Option<Op> {
        (self.lookup)(name)
    }

    /// The origin of the next node.
    fn origin(&mut self) -> Arc<Origin> {
        self.keys += 1;
        let mut origin = match &self.site {
            Some(site) => site.source.origin(site.line, self.keys),
            None => Origin { key: self.keys, ..Origin::default() },
        };
        origin.module.clone_from(&self.module);
        origin.no_grad = self.no_grad;
        Arc::new(origin)
    }

    /// A symbol that no value has yet.
    pub fn symbol(&mut self, prefix: &str, min: Option<i64>, max: Option<i64>) -> Expr {
        let taken = &self.program.symbols;
        let name = (0..).map(|k| format!("{prefix}{k}")).find(|n| !taken.contains_key(n.as_str()));
        let symbol = Symbol::new(name.expect("there are more names than symbols"), min, max);
        self.program.symbols.insert(Arc::from(symbol.name()), symbol.clone());
        Expr::Sym(symbol)
    }

    /// Notes that a condition holds from here on.
    pub fn ensure(&mut self, condition: &Expr) {
        if condition.constant().is_none() && !self.ensured.contains(condition) {
            self.ensured.push(condition.clone());
            self.conditions = Conditions::new(self.ensured.clone());
        }
    }

    /// Whether a condition was ensured.
    pub fn is_ensured(&self, condition: &Expr) -> bool {
        self.ensured.contains(condition)
    }

    /// Ends the main graph. Inputs come in PyTorch's order, without weights that nothing reads.
    pub fn finish(mut self, outputs: Vec<Arg>) -> Program {
        let main = self.frames.pop().expect("the main frame stays");
        let id = self.program.main;
        self.program.signature.outputs =
            outputs.iter().map(|_| OutputSpec { kind: OutputKind::User, alias: None }).collect();
        self.program.graphs[id] = Graph { outputs, ..main.graph };
        tidy::remove_unread(&mut self.program);
        tidy::order_inputs(&mut self.program, self.inputs.specs, self.inputs.weights);
        restride_ir::relay(&mut self.program);
        self.program
    }

    /// Adds a graph to the program.
    fn push_graph(&mut self, graph: Graph) -> GraphId {
        self.program.graphs.push(graph)
    }
}
