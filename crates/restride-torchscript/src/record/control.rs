//! Branches and loops on data: bodies recorded as graphs of `cond` and `while_loop`.

use super::{RecordedResult, Recorder, TensorRef};
use restride_ir::{Arg, DType, Error, Expr, Graph, GraphId, Layout, Result, TensorType, Type, ValueId};
use std::rc::Rc;
use std::sync::Arc;

/// A body that was recorded: its graph, without outputs yet, and the values of the outer graph that it reads.
pub struct RecordedBody {
    graph: Graph,
    serial: u64,
    captured: Vec<(ValueId, ValueId)>,
    taken: restride_ir::Names,
    first_group: u32,
}

impl Recorder<'_> {
    /// Starts a body.
    ///
    /// # Errors
    /// Bodies nested deeper than the limit.
    pub fn enter(&mut self, name: &str) -> Result<()> {
        let most = self.program.limits.depth;
        if self.frames.len() as u64 > most {
            return Err(restride_ir::beyond(
                format!("branches and loops nested {} deep", self.frames.len()),
                "depth",
                most,
            ));
        }
        self.push_frame(name);
        Ok(())
    }

    /// Ends a body; its tensors are still valid when it is entered again with [`Recorder::resume`].
    pub fn leave(&mut self) -> RecordedBody {
        let frame = self.frames.pop().expect("a body was entered");
        RecordedBody {
            graph: frame.graph,
            serial: frame.serial,
            captured: frame.captured,
            taken: frame.taken,
            first_group: frame.first_group,
        }
    }

    /// Enters a body again.
    pub fn resume(&mut self, body: RecordedBody) {
        self.frames.push(super::RecordFrame {
            serial: body.serial,
            graph: body.graph,
            taken: body.taken,
            captured: body.captured,
            first_group: body.first_group,
        });
    }

    /// Lets writes pass to memory that branches may have shared: what they gave are copies.
    pub fn settle_branches(&mut self) {
        self.conditional.clear();
    }

    /// Notes that a new tensor may share memory with another one, as data decides, and with what that one may share memory with.
    pub fn may_share(&mut self, new: &TensorRef, old: &TensorRef) {
        self.share_conditionally(new.group, old.group);
    }

    fn share_conditionally(&mut self, new: u32, old: u32) {
        let root = self.root(old);
        let mut others: Vec<u32> = vec![old];
        for (a, b) in &self.conditional {
            others.extend((self.root(*a) == root).then_some(*b));
            others.extend((self.root(*b) == root).then_some(*a));
        }
        others.sort_unstable();
        others.dedup();
        self.conditional.extend(others.into_iter().filter(|o| *o != new).map(|o| (new, o)));
        if self.conditional.len() > self.many_conditional {
            let live = self.objects.iter().filter_map(std::rc::Weak::upgrade).map(|t| self.root(t.group));
            let live: std::collections::HashSet<u32> = live.collect();
            let kept = self.conditional.iter().copied();
            let seen = |g: u32| live.contains(&self.root(g));
            self.conditional = kept.filter(|(a, b)| *a == new || seen(*a) && seen(*b)).collect();
            self.many_conditional = 2 * self.conditional.len().max(64);
        }
    }

    /// Whether a tensor of a body shows memory from outside.
    pub fn shows_outside(&self, t: &TensorRef) -> bool {
        !self.is_local(t) || self.shares_outside(t)
    }

    /// Whether the code sees a tensor's memory otherwise than through `held` references to the tensor.
    pub fn is_seen_besides(&self, t: &TensorRef, held: usize) -> bool {
        let root = self.root(t.group);
        let other = |o: Rc<super::TensorObject>| self.root(o.group) == root && !Rc::ptr_eq(&o, t);
        Rc::strong_count(t) > held || self.objects.iter().filter_map(std::rc::Weak::upgrade).any(other)
    }

    /// The writes so far, for [`Recorder::is_written_since`].
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether a tensor's memory was written since.
    pub fn is_written_since(&self, t: &TensorRef, writes: u64) -> bool {
        self.groups[self.root(t.group) as usize].0 > writes
    }

    /// Whether a tensor was made in the body under construction.
    pub fn is_local(&self, t: &TensorRef) -> bool {
        self.frames.last().is_some_and(|f| f.serial == t.frame.get())
    }

    /// A tensor on memory of its own in row-major order, as bodies return.
    fn fresh_copy(&mut self, t: &TensorRef) -> Result<TensorRef> {
        let format = Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous);
        self.tensor("aten.clone.default", vec![Arg::Value(t.clone()), format])
    }

    /// Records a `cond` of two recorded bodies that return pairs of tensors. Results come in the order of the pairs.
    ///
    /// # Errors
    /// Results that differ in type.
    pub fn cond(
        &mut self,
        pred: &TensorRef,
        bodies: [RecordedBody; 2],
        pairs: &[[TensorRef; 2]],
    ) -> Result<Vec<TensorRef>> {
        // Sizes that differ, or that a body learns, are numbers that the call learns.
        let mut declared: Vec<TensorType> = Vec::new();
        for [a, b] in pairs {
            let (a, b) = (a.ty(), b.ty());
            if a.dtype != b.dtype || a.rank() != b.rank() {
                return Err(Error::unsupported(format!("a branch on data gives {a} or {b}: one type is needed")));
            }
            let sizes: Vec<Expr> = a
                .layout
                .sizes
                .iter()
                .zip(&b.layout.sizes)
                .map(|(n, m)| match n == m && self.known_here(n) {
                    true => n.clone(),
                    false => self.symbol("u", Some(0), None),
                })
                .collect();
            declared.push(TensorType::new(a.dtype, Layout::contiguous(&sizes)));
        }
        let mut aliased: Vec<(usize, u32)> = Vec::new();
        let mut ended: Vec<(RecordedBody, Vec<Arg>)> = Vec::new();
        for (which, body) in bodies.into_iter().enumerate() {
            self.resume(body);
            let mut outputs = Vec::new();
            for (k, pair) in pairs.iter().enumerate() {
                let t = &pair[which];
                if self.shows_outside(t) {
                    aliased.push((k, t.group));
                }
                let copy = self.fresh_copy(t)?;
                outputs.push(Arg::Value(self.value(&copy)?));
            }
            ended.push((self.leave(), outputs));
        }
        let (graphs, outer) = self.closed(ended)?;
        let operands = self.operands(&outer);
        let pred = self.value(pred)?;
        let args = vec![Arg::Value(pred), Arg::Graph(graphs[0]), Arg::Graph(graphs[1]), operands];
        let made = self.hop("higher_order.cond", args, &declared)?;
        for (k, group) in aliased {
            let own = made[k].group;
            self.share_conditionally(own, group);
        }
        Ok(made)
    }

    /// Whether a size is known in the graph under construction.
    pub fn known_here(&self, size: &Expr) -> bool {
        self.learnt_in(size, self.frames.len())
    }

    /// Whether a size is known before the body under construction runs.
    pub fn known_before_body(&self, size: &Expr) -> bool {
        self.learnt_in(size, self.frames.len() - 1)
    }

    /// Whether a value of the first `frames` graphs tells a size.
    fn learnt_in(&self, size: &Expr, frames: usize) -> bool {
        let mut wanted = std::collections::BTreeSet::new();
        size.symbols(&mut wanted);
        if !wanted.iter().any(restride_ir::Symbol::is_unbacked) {
            return true;
        }
        let mut have = std::collections::BTreeSet::new();
        for frame in &self.frames[..frames] {
            for value in frame.graph.values.iter() {
                match &value.1.ty {
                    Type::Tensor(t) => t.layout.sizes.iter().for_each(|e| e.symbols(&mut have)),
                    Type::Scalar(e) => e.symbols(&mut have),
                    _ => {}
                }
            }
        }
        wanted.iter().filter(|s| s.is_unbacked()).all(|s| have.contains(s))
    }

    /// Whether a tensor of a body may share memory with one from outside.
    fn shares_outside(&self, t: &TensorRef) -> bool {
        let frame = self.frames.last().expect("a body is open");
        // Groups made since the body was entered are its own.
        self.root(t.group) < frame.first_group
    }

    /// Ends the graphs of bodies with these outputs, each with inputs for the outer values that any of them reads, in order. Outputs may
    /// be outer values themselves.
    fn closed(&mut self, bodies: Vec<(RecordedBody, Vec<Arg>)>) -> Result<(Vec<GraphId>, Vec<ValueId>)> {
        let mut outer: Vec<ValueId> = Vec::new();
        for (value, _) in bodies.iter().flat_map(|(body, _)| &body.captured) {
            if !outer.contains(value) {
                outer.push(*value);
            }
        }
        let graphs =
            bodies.into_iter().map(|(body, outputs)| self.close(body, &outer, outputs)).collect::<Result<_>>()?;
        Ok((graphs, outer))
    }

    /// Adds inputs for all outer values, in order, and ends the graph.
    fn close(&mut self, body: RecordedBody, outer: &[ValueId], outputs: Vec<Arg>) -> Result<GraphId> {
        let mut graph = body.graph;
        let frame = self.frames.last().expect("the main frame stays");
        let inner_of = |v: ValueId| body.captured.iter().find(|c| c.0 == v).map(|c| c.1);
        let first: Vec<ValueId> =
            graph.inputs.iter().copied().filter(|v| body.captured.iter().all(|c| c.1 != *v)).collect();
        let (mut inputs, mut taken) = (first, body.taken);
        for &v in outer {
            inputs.push(match inner_of(v) {
                Some(inner) => inner,
                None => {
                    let value = &frame.graph.values[v];
                    let name = taken.fresh(&value.name);
                    graph.add_value(name, value.ty.clone())
                }
            });
        }
        graph.inputs = inputs;
        graph.outputs = outputs;
        let id = self.program.graphs.len();
        graph.name = format!("{}_{id}", graph.name).into();
        Ok(self.push_graph(graph))
    }

    fn operands(&self, outer: &[ValueId]) -> Arg {
        Arg::Values(outer.iter().map(|v| Some(*v)).collect())
    }

    fn hop(&mut self, name: &str, args: Vec<Arg>, types: &[TensorType]) -> Result<Vec<TensorRef>> {
        let op = self.operator(name)?;
        // PyTorch names the call itself after its operator.
        let hint = format!("{}_result", op.schema().name);
        let results: Vec<(Arc<str>, Type)> =
            types.iter().map(|ty| (self.fresh(&hint), Type::Tensor(ty.clone()))).collect();
        let origin = self.origin();
        let id = self.frame().graph.add_node(op, args, results, origin);
        let ids = self.frame().graph.nodes[id].results.clone();
        let serial = self.frame().serial;
        let mut out = Vec::new();
        for (value, ty) in ids.into_iter().zip(types) {
            let group = self.group();
            out.push(self.object(value, serial, ty.clone(), group));
        }
        Ok(out)
    }

    /// Adds an input of the body under construction for a tensor that a loop carries.
    pub fn carried(&mut self, like: &TensorRef) -> TensorRef {
        let ty = TensorType::new(like.dtype(), Layout::contiguous(&like.ty().layout.sizes));
        let name = self.fresh("carried");
        let frame = self.frame();
        let value = frame.graph.add_input(name, Type::Tensor(ty.clone()));
        let serial = frame.serial;
        let group = self.group();
        self.object(value, serial, ty, group)
    }

    /// Records a `while_loop` of recorded bodies: a condition that returns a bool tensor, and a body that returns the carried
    /// tensors anew. Both start with inputs for the carried tensors.
    ///
    /// # Errors
    /// A carried tensor that changes its type.
    pub fn while_loop(
        &mut self,
        condition: (RecordedBody, TensorRef),
        body: (RecordedBody, Vec<TensorRef>),
        initial: &[TensorRef],
    ) -> Result<Vec<TensorRef>> {
        let mut first = Vec::new();
        let mut types = Vec::new();
        for t in initial {
            let copy = self.fresh_copy(t)?;
            types.push(copy.ty());
            first.push(Some(self.value(&copy)?));
        }
        self.resume(condition.0);
        let flag = self.to_bool(&condition.1)?;
        let flag = Arg::Value(self.value(&flag)?);
        let condition = (self.leave(), vec![flag]);
        self.resume(body.0);
        let mut outputs = Vec::new();
        for (t, want) in body.1.iter().zip(&types) {
            let copy = self.fresh_copy(t)?;
            let have = copy.ty();
            if have.dtype != want.dtype || have.layout.sizes != want.layout.sizes {
                return Err(Error::unsupported(format!(
                    "a loop whose end depends on data turns {want} into {have}: one type is needed"
                )));
            }
            outputs.push(Arg::Value(self.value(&copy)?));
        }
        let body = (self.leave(), outputs);
        let (graphs, outer) = self.closed(vec![condition, body])?;
        let operands = self.operands(&outer);
        let args = vec![Arg::Graph(graphs[0]), Arg::Graph(graphs[1]), Arg::Values(first), operands];
        self.hop("higher_order.while_loop", args, &types)
    }

    /// A bool tensor without dimensions.
    ///
    /// # Errors
    /// A tensor of several elements.
    pub fn to_bool(&mut self, t: &TensorRef) -> Result<TensorRef> {
        let mut out = t.clone();
        if out.dtype() != DType::Bool {
            out = self.tensor("aten.ne.Scalar", vec![Arg::Value(out), Arg::Scalar(Expr::Int(0))])?;
        }
        if out.rank() != 0 {
            let none: Vec<Expr> = Vec::new();
            out = self.tensor("aten.reshape.default", vec![Arg::Value(out), Arg::Scalars(none)])?;
        }
        Ok(out)
    }

    /// A tensor that holds a condition.
    ///
    /// # Errors
    /// As [`Recorder::call`].
    pub fn condition_tensor(&mut self, e: &Expr) -> Result<TensorRef> {
        match self
            .call_named("aten.scalar_tensor.default", vec![Arg::Scalar(e.clone()), Arg::DType(DType::Bool)])?
            .pop()
        {
            Some(RecordedResult::Tensor(t)) => Ok(t),
            _ => Err(Error::invalid("scalar_tensor gives no tensor")),
        }
    }
}
