//! Higher-order calls of programs exported before dispatch: traced `torch.vmap`, `associative_scan`, `with_effects`.
//!
//! A traced `vmap` is a region of nodes over one element of the batch, between `_vmap_increment_nesting` and
//! `_vmap_decrement_nesting`; `_add_batch_dim` brings tensors in and `_remove_batch_dim` takes results out. It becomes a `map` over the
//! batch. An `associative_scan` becomes a `scan` that combines from the front on.

use super::damaged;
use super::nodes::GraphImporter;
use crate::model::{self, Argument};
use restride_ir::{
    Arg, CollectTree, Dim, Error, Expr, Graph, Layout, OpError, Origin, Result, TensorType, Type, ValueId,
};
use std::collections::BTreeSet;
use std::sync::Arc;

const PREFIX: &str = "torch._functorch.predispatch.";

/// A function of a traced `vmap`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Batching {
    /// Loads decompositions; no effect.
    Load,
    /// Starts a region.
    Enter,
    /// Ends a region.
    Leave,
    /// Takes a batched tensor into the region.
    Add,
    /// Takes a result out of the region.
    Remove,
}

impl Batching {
    /// The function of this name.
    pub(super) fn of(target: &str) -> Option<Batching> {
        Some(match target.strip_prefix(PREFIX)? {
            "lazy_load_decompositions" => Batching::Load,
            "_vmap_increment_nesting" => Batching::Enter,
            "_vmap_decrement_nesting" => Batching::Leave,
            "_add_batch_dim" => Batching::Add,
            "_remove_batch_dim" => Batching::Remove,
            _ => return None,
        })
    }
}

/// Position of the node that ends the region starting at the first node.
pub(super) fn region_end(nodes: &[model::FileNode]) -> Option<usize> {
    let mut depth = 0usize;
    for (i, node) in nodes.iter().enumerate() {
        match Batching::of(&node.target) {
            Some(Batching::Enter) => depth += 1,
            Some(Batching::Leave) if depth == 1 => return Some(i),
            Some(Batching::Leave) => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

fn file(what: &str) -> Error {
    damaged(format!("a traced vmap: {what}"))
}

fn tensor_name(arg: Option<&Argument>) -> Result<&str> {
    match arg {
        Some(Argument::AsTensor(t)) => Ok(&t.name),
        _ => Err(file("an operand is not a tensor")),
    }
}

/// Names of the tensors that a node reads.
pub(super) fn reads(node: &model::FileNode) -> Vec<&str> {
    let mut out = Vec::new();
    for input in &node.inputs {
        match &input.arg {
            Argument::AsOptionalTensor(model::OptionalTensorArgument::AsTensor(t)) => out.push(t.name.as_str()),
            Argument::AsOptionalTensors(list) => out.extend(list.iter().filter_map(|t| match t {
                model::OptionalTensorArgument::AsTensor(t) => Some(t.name.as_str()),
                model::OptionalTensorArgument::AsNone(_) => None,
            })),
            other => out.extend(other.tensor_names()),
        }
    }
    out
}

fn writes(node: &model::FileNode) -> impl Iterator<Item = &str> {
    node.outputs.iter().flat_map(Argument::tensor_names)
}

/// Names of the numbers that a node computes.
fn numbers_made(node: &model::FileNode) -> impl Iterator<Item = &str> {
    node.outputs.iter().filter_map(Argument::number_name)
}

/// Names of the numbers that a node reads.
fn numbers_read(node: &model::FileNode) -> impl Iterator<Item = &str> {
    node.inputs.iter().filter_map(|input| input.arg.number_name())
}

/// Whether a node computes numbers alone.
fn computes_numbers(node: &model::FileNode) -> bool {
    !node.outputs.is_empty() && node.outputs.iter().all(|o| o.number_name().is_some())
}

impl GraphImporter<'_> {
    /// Reads a region of nodes over one element of a batch as a `map`.
    pub(super) fn vmap(&mut self, source: &model::FileGraph, nodes: &[model::FileNode]) -> Result<()> {
        let [enter, inside @ .., _] = nodes else { return Err(file("no nodes")) };
        let at = self.origin_of(enter);
        let count = match self.arg(&enter.inputs.first().ok_or_else(|| file("no batch size"))?.arg, None)? {
            Arg::Scalar(e) => e,
            _ => return Err(file("its batch size is not a number")),
        };
        let each_alike = !matches!(enter.inputs.get(1).map(|i| &i.arg), Some(Argument::AsString(s)) if s == "same");
        // Batched tensors, then tensors shared by all elements, in order of use.
        let mut moved: Vec<(&str, i64, &str)> = Vec::new();
        let mut leaving: Vec<(&str, i64, &str)> = Vec::new();
        let mut body: Vec<model::FileNode> = Vec::new();
        // Calls on sizes alone, which later nodes may use: those of tensors from outside come before the region, those of its results
        // behind it.
        let mut behind: Vec<&model::FileNode> = Vec::new();
        let made_inside: BTreeSet<&str> = inside.iter().flat_map(writes).collect_set();
        let (mut own_numbers, mut later_numbers) = (BTreeSet::new(), BTreeSet::new());
        let mut depth = 0usize;
        for node in inside {
            let kind = Batching::of(&node.target);
            if depth == 0 && kind.is_none() && computes_numbers(node) {
                let left = |name: &&str| leaving.iter().any(|l| l.2 == *name);
                if reads(node).iter().all(|t| !made_inside.contains(t))
                    && numbers_read(node).all(|n| !own_numbers.contains(n) && !later_numbers.contains(n))
                {
                    self.node(source, node)?;
                } else if reads(node).iter().all(|t| !made_inside.contains(t) || left(t))
                    && numbers_read(node).all(|n| !own_numbers.contains(n))
                {
                    later_numbers.extend(numbers_made(node));
                    behind.push(node);
                } else {
                    own_numbers.extend(numbers_made(node));
                    body.push(node.clone());
                }
                continue;
            }
            match kind {
                Some(Batching::Enter) => depth += 1,
                Some(Batching::Leave) => depth = depth.saturating_sub(1),
                _ => {}
            }
            let brought = |i: usize| match (node.inputs.get(i).map(|x| &x.arg), writes(node).next()) {
                (Some(Argument::AsInt(dim)), Some(own)) => {
                    Ok((tensor_name(node.inputs.first().map(|x| &x.arg))?, *dim, own))
                }
                _ => Err(file("a dimension or a result is missing")),
            };
            match kind {
                Some(Batching::Add) if depth == 0 => moved.push(brought(1)?),
                Some(Batching::Remove) if depth == 0 => leaving.push(brought(3)?),
                _ => body.push(node.clone()),
            }
        }
        let mut given: Vec<(&str, ValueId, Type)> = Vec::new();
        for name in body.iter().flat_map(reads).chain(leaving.iter().map(|l| l.0)) {
            if !made_inside.contains(name) && given.iter().all(|g| g.0 != name) {
                let v = self.value(name)?;
                given.push((name, v, self.value_type(v).clone()));
            }
        }
        let numbers = self.numbers_by_name();
        let mut graph = Graph { name: self.file.graph_name("vmap_graph"), ..Graph::new() };
        let mut inner = self.within(&mut graph)?;
        inner.set_numbers(numbers);
        for (_, _, own) in &moved {
            let element = Argument::AsTensor(model::TensorArgument { name: own.to_string() });
            let (name, ty) = inner.named_type(source, &element)?.ok_or_else(|| file("an element is not a tensor"))?;
            inner.add_input(name, ty);
        }
        for (name, _, ty) in &given {
            inner.add_input(name.to_string(), ty.clone());
        }
        inner.nodes(source, &body)?;
        let outputs = leaving.iter().map(|l| inner.value(l.0)).collect::<Result<Vec<_>>>()?;
        let types: Vec<TensorType> = outputs
            .iter()
            .map(|v| inner.value_type(*v).tensor().cloned().ok_or_else(|| file("a result is not a tensor")))
            .collect::<Result<_>>()?;
        let draws = inner.graph().ordered().any(|(_, n)| n.op.def().random);
        if draws && !each_alike {
            return Err(Error::unsupported("a vmap over random operators that draw the same for all elements")
                .help("draw the numbers before the vmap"));
        }
        let left = inner.leave();
        self.come_back(left);
        graph.outputs = outputs.into_iter().map(Arg::Value).collect();
        // An empty batch computes nothing.
        if let Expr::Int(0) = count {
            for ((_, dim, own), ty) in leaving.iter().zip(&types) {
                let sizes: Vec<Expr> = std::iter::once(Expr::Int(0)).chain(ty.layout.sizes.iter().cloned()).collect();
                let args = vec![Arg::Scalars(sizes.clone()), Arg::DType(ty.dtype)];
                let v = self.call("aten.zeros.default", args, TensorType::contiguous(ty.dtype, &sizes), &at)?;
                let v = self.moved(v, 0, *dim, &at)?;
                self.bind(own.to_string(), v);
            }
            return behind.into_iter().try_for_each(|node| self.node(source, node));
        }
        let body = self.push_graph(graph);
        let mut xs = Vec::new();
        for (name, dim, _) in &moved {
            let v = self.value(name)?;
            xs.push(Some(self.moved(v, *dim, 0, &at)?));
        }
        let stacked: Vec<(Arc<str>, Type)> = leaving
            .iter()
            .zip(&types)
            .map(|((_, _, own), ty)| {
                let sizes: Vec<Expr> = std::iter::once(count.clone()).chain(ty.layout.sizes.iter().cloned()).collect();
                (self.fresh(own), Type::Tensor(TensorType::contiguous(ty.dtype, &sizes)))
            })
            .collect();
        let op = self.operator("higher_order.map_impl")?;
        let more = given.iter().map(|g| Some(g.1)).collect();
        let args = vec![Arg::Graph(body), Arg::Values(xs), Arg::Values(more)];
        let id = self.add(op, args, stacked, at.clone());
        let made = self.graph().nodes[id].results.clone();
        for ((_, dim, own), v) in leaving.iter().zip(made) {
            let v = self.moved(v, 0, *dim, &at)?;
            self.bind(own.to_string(), v);
        }
        behind.into_iter().try_for_each(|node| self.node(source, node))
    }

    /// Moves a dimension of a tensor.
    fn moved(&mut self, v: ValueId, from: i64, to: i64, at: &Arc<Origin>) -> Result<ValueId> {
        let ty = self.value_type(v).tensor().cloned().ok_or_else(|| file("an operand is not a tensor"))?;
        let (from, to) = (
            ty.layout.dim(from).map_err(|e| Error::from(OpError::from(e)))?,
            ty.layout.dim(to).map_err(|e| Error::from(OpError::from(e)))?,
        );
        if from == to {
            return Ok(v);
        }
        let (mut sizes, mut strides) = (ty.layout.sizes.to_vec(), ty.layout.strides.to_vec());
        let (n, s) = (sizes.remove(from), strides.remove(from));
        sizes.insert(to, n);
        strides.insert(to, s);
        let layout = Layout::strided(&sizes, &strides, ty.layout.offset.clone());
        let dims = [from, to].map(|d| Arg::Scalar(Expr::Int(d as i64)));
        let [from, to] = dims;
        self.call("aten.movedim.int", vec![Arg::Value(v), from, to], TensorType::new(ty.dtype, layout), at)
    }

    /// `associative_scan(combine, xs, additional)` over the first dimension.
    pub(super) fn associative_scan(&mut self, node: &model::FileNode) -> Result<()> {
        let at = self.origin_of(node);
        let bad = |what: &str| damaged(format!("associative_scan: {what}"));
        let list = |i: usize| match node.inputs.get(i).map(|x| &x.arg) {
            Some(Argument::AsTensors(list)) => Ok(list.iter().map(|t| t.name.clone()).collect::<Vec<_>>()),
            Some(Argument::AsInts(none)) if none.is_empty() => Ok(Vec::new()),
            None if i == 2 => Ok(Vec::new()),
            _ => Err(bad("operands that are not tensors")),
        };
        let Some(Argument::AsGraph(combine)) = node.inputs.first().map(|x| &x.arg) else {
            return Err(bad("no graph"));
        };
        let values = |names: Vec<String>| names.iter().map(|n| self.value(n)).collect::<Result<Vec<_>>>();
        let (xs, more) = (values(list(1)?)?, values(list(2)?)?);
        let names: Vec<String> = writes(node).map(str::to_string).collect();
        if names.len() != xs.len() {
            return Err(bad("the numbers of results and operands differ"));
        }
        let types: Vec<TensorType> = xs
            .iter()
            .map(|v| self.value_type(*v).tensor().cloned().ok_or_else(|| bad("an operand is not a tensor")))
            .collect::<Result<_>>()?;
        let length = types.first().and_then(|t| t.layout.sizes.first()).cloned().ok_or_else(|| bad("no dimension"))?;
        if let Expr::Int(0 | 1) = length {
            for ((name, v), ty) in names.iter().zip(&xs).zip(&types) {
                let own = TensorType::contiguous(ty.dtype, &ty.layout.sizes);
                let format = Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous);
                let copy = self.call("aten.clone.default", vec![Arg::Value(*v), format], own, &at)?;
                self.bind(name.clone(), copy);
            }
            return Ok(());
        }
        let body = self.subgraph(&combine.name, &combine.graph)?;
        self.give_twice(body, &at)?;
        let number = |n: i64| Arg::Scalar(Expr::Int(n));
        let (mut init, mut rest, mut first) = (Vec::new(), Vec::new(), Vec::new());
        for (v, ty) in xs.iter().zip(&types) {
            let sizes = ty.layout.sizes.to_vec();
            let one = TensorType::contiguous(ty.dtype, &sizes[1..]);
            init.push(Some(self.call("aten.select_copy.int", vec![Arg::Value(*v), number(0), number(0)], one, &at)?));
            let part = |from: i64, to: Option<i64>, n: Expr| {
                let mut own = sizes.clone();
                own[0] = n;
                let strides = ty.layout.strides.to_vec();
                let offset = ty.layout.offset.plus(&strides[0].times(&Expr::Int(from)));
                let to = to.map_or(Arg::None, number);
                (
                    vec![Arg::Value(*v), number(0), number(from), to, number(1)],
                    TensorType::new(ty.dtype, Layout::strided(&own, &strides, offset)),
                )
            };
            let (args, own) = part(1, None, length.minus(&Expr::Int(1)));
            rest.push(Some(self.call("aten.slice.Tensor", args, own, &at)?));
            let (args, own) = part(0, Some(1), Expr::Int(1));
            first.push(self.call("aten.slice.Tensor", args, own, &at)?);
        }
        let mut results: Vec<(Arc<str>, Type)> = Vec::new();
        for ty in &types {
            let own = TensorType::contiguous(ty.dtype, &ty.layout.sizes[1..]);
            results.push((self.fresh("carry"), Type::Tensor(own)));
        }
        for ty in &types {
            let mut sizes = ty.layout.sizes.to_vec();
            sizes[0] = length.minus(&Expr::Int(1));
            results.push((self.fresh("combined"), Type::Tensor(TensorType::contiguous(ty.dtype, &sizes))));
        }
        let op = self.operator("higher_order.scan")?;
        let more = Arg::Values(more.into_iter().map(Some).collect());
        let args = vec![Arg::Graph(body), Arg::Values(init), Arg::Values(rest), more];
        let id = self.add(op, args, results, at.clone());
        let made = self.graph().nodes[id].results.clone();
        for (k, (name, ty)) in names.into_iter().zip(&types).enumerate() {
            let parts = Arg::Values(vec![Some(first[k]), Some(made[types.len() + k])]);
            let own = TensorType::contiguous(ty.dtype, &ty.layout.sizes);
            let whole = self.call("aten.cat.default", vec![parts, number(0)], own, &at)?;
            self.bind(name, whole);
        }
        Ok(())
    }

    /// `with_effects(token, op, …)`: reads the call; the order of nodes replaces the token.
    pub(super) fn with_effects(&mut self, source: &model::FileGraph, node: &model::FileNode) -> Result<()> {
        let bad = |what: &str| damaged(format!("with_effects: {what}"));
        let (Some(token), Some(Argument::AsOperator(target))) =
            (node.inputs.first(), node.inputs.get(1).map(|x| &x.arg))
        else {
            return Err(bad("no operator"));
        };
        let op = self.operator(target)?;
        if !op.def().effectful {
            return Err(Error::unsupported(format!("{op} with an effect that restride does not know")));
        }
        let token = self.value(tensor_name(Some(&token.arg))?)?;
        let schema = op.schema();
        let mut call = node.clone();
        call.target = target.clone();
        call.inputs.drain(..2);
        for (input, decl) in call.inputs.iter_mut().zip(&schema.args) {
            if input.name.is_empty() {
                input.name = decl.name.clone();
            }
        }
        let outputs = std::mem::take(&mut call.outputs);
        let mut outputs = outputs.into_iter();
        let Some(Argument::AsTensor(next)) = outputs.next() else { return Err(bad("no token")) };
        call.outputs = if schema.returns.is_empty() { Vec::new() } else { outputs.collect() };
        self.bind(next.name, token);
        self.node(source, &call)
    }
}
