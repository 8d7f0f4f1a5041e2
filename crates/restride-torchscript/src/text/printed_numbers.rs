//! Symbolic numbers of a printed graph: sizes that are read from tensors, and what is computed of them, as nodes before their readers.

use restride_ir::{Arg, Error, Expr, ExprFn, Graph, Node, NodeId, Program, Result, Symbol, Type, ValueId};
use std::collections::BTreeMap;

/// A number that a node before its first reader computes.
pub(super) struct PrintedNumber {
    pub name: String,
    pub how: Computed,
}

/// How a number is computed.
pub(super) enum Computed {
    /// A size of a tensor.
    Size(ValueId, usize),
    /// A function of other numbers.
    Call(&'static NumberFunction, Vec<NumberOperand>),
}

/// An operand of a computed number.
pub(super) enum NumberOperand {
    /// Another number, by its name.
    Name(String),
    /// A constant.
    Constant(Expr),
}

/// A function of numbers, as FX and as TorchScript IR name it.
pub(super) struct NumberFunction {
    function: ExprFn,
    pub python: &'static str,
    pub jit: &'static str,
    /// Python's infix operator.
    pub infix: &'static str,
}

const fn function(function: ExprFn, python: &'static str, jit: &'static str, infix: &'static str) -> NumberFunction {
    NumberFunction { function, python, jit, infix }
}

static FUNCTIONS: [NumberFunction; 16] = [
    function(ExprFn::Add, "operator.add", "aten::add", "+"),
    function(ExprFn::Mul, "operator.mul", "aten::mul", "*"),
    function(ExprFn::Pow, "operator.pow", "aten::pow", "**"),
    function(ExprFn::FloorDiv, "operator.floordiv", "aten::floordiv", "//"),
    function(ExprFn::Mod, "operator.mod", "aten::remainder", "%"),
    function(ExprFn::TrueDiv, "operator.truediv", "aten::div", "/"),
    function(ExprFn::Min, "torch.sym_min", "prim::min", ""),
    function(ExprFn::Max, "torch.sym_max", "prim::max", ""),
    function(ExprFn::ToFloat, "torch.sym_float", "aten::Float", ""),
    function(ExprFn::Not, "torch.sym_not", "aten::__not__", ""),
    function(ExprFn::Eq, "operator.eq", "aten::eq", "=="),
    function(ExprFn::Ne, "operator.ne", "aten::ne", "!="),
    function(ExprFn::Lt, "operator.lt", "aten::lt", "<"),
    function(ExprFn::Le, "operator.le", "aten::le", "<="),
    function(ExprFn::Gt, "operator.gt", "aten::gt", ">"),
    function(ExprFn::Ge, "operator.ge", "aten::ge", ">="),
];

/// Python's infix operator for a function by its target.
pub(super) fn infix(target: &str) -> Option<&'static str> {
    FUNCTIONS.iter().find(|f| f.python == target).map(|f| f.infix).filter(|i| !i.is_empty())
}

/// The numbers of a program's main graph, in the order in which they are computed.
#[derive(Default)]
pub(super) struct PrintedNumbers {
    /// Names by the printed expression.
    names: BTreeMap<String, String>,
    /// What comes before each node.
    before: BTreeMap<NodeId, Vec<PrintedNumber>>,
    /// What comes before the end.
    last: Vec<PrintedNumber>,
}

impl PrintedNumbers {
    /// Finds a name and a place for each number that is no constant.
    ///
    /// # Errors
    /// A number that no tensor has as a size, or a function of numbers that the forms do not have.
    pub(super) fn of(program: &Program, name: impl Fn(ValueId) -> String) -> Result<PrintedNumbers> {
        let graph = program.graph();
        let mut finder =
            NumberFinder { graph, name: &name, sources: BTreeMap::new(), out: PrintedNumbers::default(), count: 0 };
        graph.inputs.iter().for_each(|v| finder.source(*v));
        for (id, node) in graph.ordered() {
            let made = finder.needed(&node.args).map_err(|e| e.at(graph, id))?;
            finder.out.before.insert(id, made);
            finder.results(node);
        }
        finder.out.last = finder.needed(&graph.outputs)?;
        Ok(finder.out)
    }

    /// The name of a number.
    pub(super) fn name(&self, e: &Expr) -> Option<&str> {
        self.names.get(&e.to_string()).map(String::as_str)
    }

    /// Numbers that are computed before a node, or at the end.
    pub(super) fn before(&self, node: Option<NodeId>) -> &[PrintedNumber] {
        match node {
            Some(id) => self.before.get(&id).map_or(&[], Vec::as_slice),
            None => &self.last,
        }
    }

    /// Tensors whose sizes are read.
    pub(super) fn sized(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.before.values().flatten().chain(&self.last).filter_map(|n| match n.how {
            Computed::Size(v, _) => Some(v),
            Computed::Call(..) => None,
        })
    }

    /// How often a number is read by computed ones and by the arguments of nodes.
    pub(super) fn readers(&self, graph: &Graph, name: &str) -> usize {
        let computed = self.before.values().flatten().chain(&self.last).filter(|n| match &n.how {
            Computed::Call(_, operands) => operands.iter().any(|o| matches!(o, NumberOperand::Name(n) if n == name)),
            Computed::Size(..) => false,
        });
        let reads = |a: &Arg| a.scalars().iter().any(|e| self.name(e) == Some(name));
        let nodes = graph.ordered().filter(|(_, n)| n.args.iter().any(reads)).count();
        computed.count() + nodes + usize::from(graph.outputs.iter().any(reads))
    }
}

/// Where a symbol's value is found.
#[derive(Clone)]
enum NumberSource {
    Size(ValueId, usize),
    Number(ValueId),
}

struct NumberFinder<'p> {
    graph: &'p Graph,
    name: &'p dyn Fn(ValueId) -> String,
    sources: BTreeMap<Symbol, NumberSource>,
    out: PrintedNumbers,
    count: usize,
}

impl NumberFinder<'_> {
    fn source(&mut self, v: ValueId) {
        match &self.graph.values[v].ty {
            Type::Tensor(t) => {
                for (d, size) in t.layout.sizes.iter().enumerate() {
                    if let Expr::Sym(s) = size {
                        self.sources.entry(s.clone()).or_insert(NumberSource::Size(v, d));
                    }
                }
            }
            Type::Scalar(e @ Expr::Sym(s)) => {
                self.sources.entry(s.clone()).or_insert(NumberSource::Number(v));
                self.out.names.insert(e.to_string(), (self.name)(v));
            }
            Type::Scalar(e) if e.constant().is_none() => {
                self.out.names.insert(e.to_string(), (self.name)(v));
            }
            _ => {}
        }
    }

    fn results(&mut self, node: &Node) {
        node.results.iter().for_each(|r| self.source(*r));
    }

    fn needed(&mut self, args: &[Arg]) -> Result<Vec<PrintedNumber>> {
        let mut made = Vec::new();
        for e in args.iter().flat_map(|a| a.scalars().to_vec()) {
            self.number(&e, &mut made)?;
        }
        Ok(made)
    }

    fn number(&mut self, e: &Expr, made: &mut Vec<PrintedNumber>) -> Result<NumberOperand> {
        if e.constant().is_some() {
            return Ok(NumberOperand::Constant(e.clone()));
        }
        if let Some(name) = self.out.name(e) {
            return Ok(NumberOperand::Name(name.to_string()));
        }
        let how = match e {
            Expr::Sym(s) => match self.sources.get(s) {
                Some(NumberSource::Size(v, d)) => Computed::Size(*v, *d),
                Some(NumberSource::Number(v)) => return Ok(NumberOperand::Name((self.name)(*v))),
                None => return Err(Error::unsupported(format!("the number {e}, which no tensor has as a size"))),
            },
            Expr::Call(c) => {
                let Some(function) = FUNCTIONS.iter().find(|f| f.function == c.0) else {
                    return Err(Error::unsupported(format!("the number {e} in a printed graph"))
                        .help("write a .pt2 or a .fx with -o"));
                };
                let mut operands = c.1.iter().map(|o| self.number(o, made)).collect::<Result<Vec<_>>>()?;
                // Sums and products of several numbers, two at a time.
                while operands.len() > 2 {
                    let rest = operands.split_off(2);
                    let name = self.fresh();
                    made.push(PrintedNumber { name: name.clone(), how: Computed::Call(function, operands) });
                    operands = std::iter::once(NumberOperand::Name(name)).chain(rest).collect();
                }
                Computed::Call(function, operands)
            }
            _ => return Err(Error::unsupported(format!("the number {e} in a printed graph"))),
        };
        let name = self.fresh();
        self.out.names.insert(e.to_string(), name.clone());
        made.push(PrintedNumber { name: name.clone(), how });
        Ok(NumberOperand::Name(name))
    }

    fn fresh(&mut self) -> String {
        loop {
            let name = format!("sym_{}", self.count);
            self.count += 1;
            if self.graph.values.iter().all(|v| *v.1.name != *name) {
                return name;
            }
        }
    }
}
