//! Higher-order calls: both branches of a `cond`, and loop bodies as functions of their inputs.

use super::ReplayStop;
use super::cells::Runs;
use super::names::{Byte, NamedArg, TermKey};
use super::replay::{Replay, ReplayArgs, ReplayResult, ReplayTensor, ReplayValue, skip, whole};
use restride_ir::{Arg, Expr, Graph, GraphId, Hop, Layout, LazyBits, Meta, Node, Program, Type, ValueId};
use std::cell::RefCell;
use std::rc::Rc;

impl Replay<'_> {
    pub(super) fn higher(&mut self, graph: &Graph, node: &Node, args: &ReplayArgs) -> ReplayResult<Vec<ReplayValue>> {
        let hop = node.op.def().hop;
        match (hop, args) {
            (Some(Hop::Cond), [pred, Arg::Graph(a), Arg::Graph(b), operands, ..]) => {
                let pred = self.predicate(pred)?;
                let operands = items(operands);
                self.cond(pred, (*a, *b), &operands)
            }
            (Some(Hop::WhileLoop | Hop::Scan | Hop::Map), _) => self.looped(graph, node, args),
            _ => skip(format!("{} is not supported here", node.op)),
        }
    }

    /// A fused node is the calls of its body.
    pub(super) fn fused(&mut self, body: GraphId, args: &ReplayArgs) -> ReplayResult<Vec<ReplayValue>> {
        let operands = args.get(1).map_or_else(Vec::new, items);
        let results = self.graph(body, &operands)?;
        let value = |r: Arg<ReplayValue, Expr>| match r {
            Arg::Value(v) => Ok(v),
            _ => Err(ReplayStop::Fault("a fused body returns a number".into())),
        };
        results.into_iter().map(value).collect()
    }

    fn predicate(&mut self, pred: &Arg<ReplayValue, Expr>) -> ReplayResult<Byte> {
        match pred {
            Arg::Value(ReplayValue::Tensor(t)) => {
                let t = t.borrow().clone();
                self.read(&t)?.at(0).ok_or_else(|| ReplayStop::Fault("a predicate without an element".into()))
            }
            other => {
                let given = self.given(other, false)?;
                Ok((self.names.term(TermKey::Body(vec![given])), 0))
            }
        }
    }

    /// Both branches on the same memory; what differs afterwards is either.
    fn cond(
        &mut self,
        pred: Byte,
        (a, b): (GraphId, GraphId),
        operands: &[ReplayValue],
    ) -> ReplayResult<Vec<ReplayValue>> {
        let mut storages: Vec<Rc<RefCell<super::cells::StorageCells>>> = Vec::new();
        let mut objects = Vec::new();
        for o in operands {
            if let ReplayValue::Tensor(t) = o {
                let cells = t.borrow().cells.clone();
                if !storages.iter().any(|s| Rc::ptr_eq(s, &cells)) {
                    storages.push(cells);
                }
                objects.push((t.clone(), t.borrow().layout.clone()));
            }
        }
        let before: Vec<_> = storages.iter().map(|s| s.borrow().clone()).collect();
        self.depth += 1;
        let then = self.graph(a, operands)?;
        let after: Vec<_> = storages.iter().zip(before).map(|(s, old)| s.replace(old)).collect();
        let other = self.graph(b, operands)?;
        self.depth -= 1;
        if objects.iter().any(|(o, layout)| o.borrow().layout != *layout) {
            return skip("a branch changes the sizes of an operand");
        }
        // Results first: they are read from what their own branch left.
        let mut results = Vec::new();
        for (x, y) in then.iter().zip(&other) {
            results.push(match (x, y) {
                (Arg::Value(ReplayValue::Tensor(x)), Arg::Value(ReplayValue::Tensor(y))) => {
                    let (x, y) = (x.borrow().clone(), y.borrow().clone());
                    let of_operand = |t: &ReplayTensor| storages.iter().position(|s| Rc::ptr_eq(s, &t.cells));
                    let (i, j) = (of_operand(&x), of_operand(&y));
                    if i.is_some() && i == j && x.layout == y.layout && x.dtype == y.dtype && x.bits == y.bits {
                        results.push(ReplayValue::new(x));
                        continue;
                    }
                    if !x.bits.is_clear() || !y.bits.is_clear() {
                        return skip("a branch returns a conjugate or negative view");
                    }
                    let q = self.read(&y)?;
                    let p = match i {
                        // The other branch ran last: what the first one left is put aside.
                        Some(i) => {
                            let aside = Rc::new(RefCell::new(after[i].clone()));
                            self.read(&ReplayTensor { cells: aside, ..x.clone() })?
                        }
                        None => self.read(&x)?,
                    };
                    let runs = self.either(pred, &p, &q, x.dtype.size() as i64);
                    let made = self.fresh(&Meta::new(x.dtype, eager(&x)), &runs);
                    if i.is_some() || j.is_some() {
                        self.uncertain.extend(i.into_iter().chain(j).map(|k| storages[k].clone()));
                        self.uncertain.push(made.cells.clone());
                    }
                    ReplayValue::new(made)
                }
                (Arg::Scalar(_), _) | (_, Arg::Scalar(_)) => return skip("a branch returns a number"),
                _ => ReplayValue::Other("None".into()),
            });
        }
        for (s, taken) in storages.iter().zip(after) {
            s.borrow_mut().merge(&taken, self.names, pred);
        }
        Ok(results)
    }

    /// Elements of `size` bytes, of the first where the predicate holds.
    fn either(&mut self, pred: Byte, then: &Runs, other: &Runs, size: i64) -> Runs {
        let mut out = Runs::default();
        then.beside(other, |a, b| {
            let in_parts = [a, b].iter().any(|r| self.names.parts(r.term).is_some());
            for i in 0..a.len {
                let (x, y) = (a.at(i), b.at(i));
                if in_parts {
                    let part = |of: Byte, k: i64| self.names.part((of.0, of.1 + k));
                    let pairs: Vec<(Byte, Byte)> = (0..size).map(|k| (part(x, k), part(y, k))).collect();
                    let bytes = pairs.into_iter().map(|(x, y)| self.names.either(pred, x, y)).collect();
                    out.one(self.names.composite(bytes));
                    continue;
                }
                // Even stretches are one name.
                let (term, first) = self.names.either(pred, x, y);
                if a.step == b.step && a.len > 1 {
                    out.push(super::cells::NameRun { term, first, ..a });
                    break;
                }
                out.one((term, first));
            }
        });
        out
    }

    /// A loop whose body writes nothing that it is given: named by the body, as a function, and what it is given.
    fn looped(&mut self, graph: &Graph, node: &Node, args: &ReplayArgs) -> ReplayResult<Vec<ReplayValue>> {
        let mut given = Vec::new();
        for a in args {
            given.push(match a {
                Arg::Graph(body) => self.function(*body)?,
                other => self.given(other, false)?,
            });
        }
        let mut out = Vec::with_capacity(node.results.len());
        for (result, &v) in node.results.iter().enumerate() {
            let term = self.names.term(TermKey::Call { op: node.op.name(), args: given.clone(), result, draw: None });
            out.push(match &graph.values[v].ty {
                Type::Tensor(ty) => match ty.known() {
                    Some(ty) => {
                        let mut runs = Runs::default();
                        let step = ty.dtype.size() as i64;
                        runs.push(super::cells::NameRun { term, first: 0, step, len: ty.layout.numel() });
                        ReplayValue::new(self.fresh(&ty, &runs))
                    }
                    None => return skip("the sizes of a loop's result depend on data"),
                },
                _ => return skip("a loop gives a number"),
            });
        }
        Ok(out)
    }

    /// What a body gives for its parameters.
    fn function(&mut self, body: GraphId) -> ReplayResult<NamedArg> {
        let graph = &self.program.graphs[body];
        self.depth += 1;
        let mut inputs = Vec::new();
        let mut memory = Vec::new();
        for (index, &v) in graph.inputs.iter().enumerate() {
            inputs.push(match &graph.values[v].ty {
                Type::Tensor(ty) => {
                    let Some(ty) = ty.known() else { return skip("the sizes of a body's input depend on data") };
                    let layout = Layout::contiguous(&ty.layout.sizes);
                    let bytes = layout.numel() * ty.dtype.size() as i64;
                    let cells = whole(self.names, TermKey::Parameter { depth: self.depth, index }, bytes);
                    let t = ReplayTensor { cells, dtype: ty.dtype, layout, bits: LazyBits::default() };
                    memory.push((t.clone(), self.content(&t)?));
                    ReplayValue::new(t)
                }
                Type::Scalar(e) => ReplayValue::Number(e.clone()),
                other => ReplayValue::Other(format!("{other:?}")),
            });
        }
        // A view that says where in the storage it begins is elsewhere in each iteration, and one of other elements may be
        // refused in some.
        if placed(self.program, body, 0) {
            return skip("the body of a loop makes views that depend on where in storages they are");
        }
        let outputs = self.graph(body, &inputs)?;
        let of_parameter = |o: &Arg<ReplayValue, Expr>| match o {
            Arg::Value(ReplayValue::Tensor(t)) => memory.iter().any(|(m, _)| Rc::ptr_eq(&m.cells, &t.borrow().cells)),
            _ => false,
        };
        if outputs.iter().any(of_parameter) {
            return skip("the body of a loop gives back what it is given");
        }
        let lazy =
            |o: &Arg<ReplayValue, Expr>| matches!(o, Arg::Value(ReplayValue::Tensor(t)) if !t.borrow().bits.is_clear());
        if outputs.iter().any(lazy) {
            return skip("the body of a loop returns a conjugate or negative view");
        }
        let mut given = Vec::with_capacity(outputs.len());
        for o in &outputs {
            given.push(self.given(o, false)?);
        }
        for (t, content) in memory {
            // A write that changes nothing is a write too: the functional form carries it.
            if t.cells.borrow().written || self.content(&t)? != content {
                return skip("the body of a loop writes what it is given");
            }
        }
        self.depth -= 1;
        let term = self.names.term(TermKey::Body(given));
        Ok(NamedArg::Element(restride_ir::DType::U8, (term, 0)))
    }
}

/// Whether a graph, or one in it, makes views in terms of storages, or of larger elements. Graphs deeper than any real one
/// count as such.
fn placed(program: &Program, graph: GraphId, depth: usize) -> bool {
    let g = &program.graphs[graph];
    let size = |v: &ValueId| g.values[*v].ty.tensor().map_or(0, |t| t.dtype.size());
    g.ordered().any(|(_, n)| {
        let larger = match (n.args.first(), n.results.first()) {
            (Some(Arg::Value(from)), Some(to)) => n.op.is_view() && size(to) > size(from),
            _ => false,
        };
        n.op.def().strided || larger || depth > 64 || n.bodies().any(|g| placed(program, g, depth + 1))
    })
}

/// Layout of a result on its own storage.
fn eager(t: &ReplayTensor) -> Layout {
    Layout { offset: 0, ..t.layout.clone() }
}

fn items(arg: &Arg<ReplayValue, Expr>) -> Vec<ReplayValue> {
    match arg {
        Arg::Value(s) => vec![s.clone()],
        Arg::Values(list) => list.iter().map(|s| s.clone().unwrap_or(ReplayValue::Other("None".into()))).collect(),
        Arg::Scalar(e) => vec![ReplayValue::Number(e.clone())],
        Arg::Scalars(es) => es.iter().cloned().map(ReplayValue::Number).collect(),
        _ => Vec::new(),
    }
}
