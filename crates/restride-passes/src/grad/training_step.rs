//! Training steps: forward, backward and the update of every parameter as one program.
//!
//! A parameter is updated as soon as its gradient is known: after the backward part of the first node that reads it. No
//! later node reads the old content, so placement can put the new content in its place, and the gradient is not kept.

use super::data_parallel::{Buckets, DataParallel};
use super::emit::{GraphEmit, val, value};
use super::{Found, Joint, Loss, Options, differentiable, taken};
use crate::dce::dce;
use restride_ir::{
    AliasRoot, Arg, CollectTree, DType, Error, Expr, GradEmit, Graph, InputKind, InputSpec, Layout, Names, NodeId,
    OpError, Origin, OutputAlias, OutputKind, OutputSpec, Program, Result, TensorType, Type, Val, ValueId, Weight,
    Weights,
};
use restride_tensor::{Bytes, Overlap, overlap_bytes};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Computes a parameter's new content, of the same type. [`super::Sgd`] and [`super::Adam`] are updates; others call
/// operators through [`UpdateStep`].
pub type Update<'a> = dyn Fn(&mut UpdateStep<'_>, &Parameter) -> std::result::Result<Val, OpError> + 'a;

/// A parameter that is updated.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name in the state dict.
    pub name: Arc<str>,
    /// Its content.
    pub value: Val,
    /// The loss's gradient, of the parameter's sizes and element type.
    pub grad: Val,
}

/// A buffer that an update keeps from step to step.
struct OptimizerState {
    input: ValueId,
    name: Arc<str>,
    dtype: DType,
    sizes: Vec<i64>,
    now: ValueId,
}

/// A training step that is being written.
pub struct UpdateStep<'a> {
    emit: GraphEmit<'a>,
    states: &'a mut States,
}

/// The buffers of updates, and values computed once for all parameters.
#[derive(Default)]
struct States {
    kept: Vec<OptimizerState>,
    by_name: BTreeMap<Arc<str>, usize>,
    once: BTreeMap<&'static str, Val>,
    /// Names that the program has.
    names: Names,
}

impl UpdateStep<'_> {
    /// Calls an operator with one result by name (`aten.mul.Tensor`).
    ///
    /// # Errors
    /// The operator does not exist, has several results, or does not accept the arguments.
    pub fn op(&mut self, op: &str, args: &[Arg<Val, Expr>]) -> std::result::Result<Val, OpError> {
        let made = self.emit.call(op, args)?;
        match made[..] {
            [one] => Ok(one),
            _ => Err(OpError::new(format!("{op} has {} results", made.len()))),
        }
    }

    /// The current content of a buffer that is zero before the first step. Its name is unique below `optimizer.`.
    ///
    /// # Errors
    /// A buffer of this name has other sizes or another element type.
    pub fn state(&mut self, name: &str, dtype: DType, sizes: &[Expr]) -> std::result::Result<Val, OpError> {
        let known: Option<Vec<i64>> = sizes.iter().map(|s| s.constant().map(|n| n.as_i64())).collect();
        let Some(known) = known else { return Err(OpError::new(format!("the state {name} has unknown sizes"))) };
        let ty = TensorType::contiguous(dtype, sizes);
        if let Some(&at) = self.states.by_name.get(name) {
            let have = self.emit.graph.tensor(self.states.kept[at].input);
            if have.dtype != ty.dtype || have.layout.sizes != ty.layout.sizes {
                return Err(OpError::new(format!("the state {name} is {have}, not {ty}")));
            }
            return Ok(val(self.states.kept[at].now));
        }
        let full = self.states.names.fresh(&format!("optimizer.{name}"));
        let word = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let own = self.emit.names.fresh(&format!("b_{}", full.chars().map(word).collect::<String>()));
        let input = self.emit.graph.add_input(own, Type::Tensor(ty));
        self.states.by_name.insert(name.into(), self.states.kept.len());
        self.states.kept.push(OptimizerState { input, name: full, dtype, sizes: known, now: input });
        Ok(val(input))
    }

    /// Gives a buffer of [`UpdateStep::state`] another content.
    ///
    /// # Errors
    /// A buffer that was not asked for before; a content of other sizes or another element type.
    pub fn set_state(&mut self, name: &str, content: Val) -> std::result::Result<(), OpError> {
        let Some(&at) = self.states.by_name.get(name) else {
            return Err(OpError::new(format!("there is no state {name}")));
        };
        let (have, want) = (self.ty(content), self.emit.graph.tensor(self.states.kept[at].input));
        if have.dtype != want.dtype || have.layout.sizes != want.layout.sizes {
            return Err(OpError::new(format!("the state {name} is {want}; its new content is {have}")));
        }
        self.states.kept[at].now = value(content);
        Ok(())
    }

    /// A value that is the same for all parameters: computed when the first one asks for it.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn once(
        &mut self,
        what: &'static str,
        make: impl FnOnce(&mut Self) -> std::result::Result<Val, OpError>,
    ) -> std::result::Result<Val, OpError> {
        if let Some(v) = self.states.once.get(what) {
            return Ok(*v);
        }
        let made = make(self)?;
        self.states.once.insert(what, made);
        Ok(made)
    }
}

impl GradEmit for UpdateStep<'_> {
    fn call(
        &mut self,
        op: &str,
        args: &[Arg<Val, Expr>],
    ) -> std::result::Result<smallvec::SmallVec<[Val; 1]>, OpError> {
        self.emit.call(op, args)
    }
    fn ty(&self, v: Val) -> TensorType {
        self.emit.ty(v)
    }
}

/// The updates of a training step.
pub(super) struct Updates<'a> {
    inputs: Vec<InputSpec>,
    update: &'a Update<'a>,
    states: States,
    /// New contents of parameters, by their inputs.
    updated: BTreeMap<usize, ValueId>,
}

impl Updates<'_> {
    /// The value of an input.
    pub fn value(&self, input: usize) -> ValueId {
        self.inputs[input].value
    }

    /// The name of a parameter.
    pub fn name(&self, input: usize) -> Arc<str> {
        match &self.inputs[input].kind {
            InputKind::Parameter(name) => name.clone(),
            _ => "input".into(),
        }
    }

    /// Updates a parameter by its gradient.
    pub fn one(
        &mut self,
        graph: &mut Graph,
        names: &mut Names,
        origin: &Arc<Origin>,
        input: usize,
        grad: Val,
    ) -> Result<()> {
        let (name, parameter) = (self.name(input), val(self.value(input)));
        let new = self.call(graph, names, origin, &name, parameter, grad)?;
        self.updated.insert(input, value(new));
        Ok(())
    }

    /// Adds a buffer that no update changes by itself: its value.
    pub fn buffer(&mut self, graph: &mut Graph, names: &mut Names, name: &str, ty: &TensorType) -> Result<ValueId> {
        let emit = GraphEmit::plain(graph, names, Arc::default(), "step");
        let mut step = UpdateStep { emit, states: &mut self.states };
        Ok(value(step.state(name, ty.dtype, &ty.layout.sizes)?))
    }

    /// The new content of a value that the update takes for a parameter of this name.
    pub fn call(
        &mut self,
        graph: &mut Graph,
        names: &mut Names,
        origin: &Arc<Origin>,
        name: &str,
        content: Val,
        grad: Val,
    ) -> Result<Val> {
        let parameter = Parameter { name: name.into(), value: content, grad };
        let emit = GraphEmit::plain(graph, names, origin.clone(), "step");
        let mut step = UpdateStep { emit, states: &mut self.states };
        let new = (self.update)(&mut step, &parameter)
            .map_err(|e| Error::from(OpError::new(format!("the update of {name}: {e}"))))?;
        let (have, want) = (step.ty(new), step.ty(content));
        if have.dtype != want.dtype || have.layout.sizes != want.layout.sizes {
            return Err(Error::invalid(format!("the update of {name} gives {have}; the parameter is {want}")));
        }
        Ok(new)
    }
}

/// The training step: the functional program with the loss declared, and the new contents of parameters and of the update's
/// buffers as mutations. Parameters that the loss does not depend on keep their content, as with PyTorch's optimizers.
/// Gradients are not outputs.
///
/// `options.wrt` names the parameters; by default they are all that require gradients.
///
/// # Errors
/// Those of [`super::grad`] and of the update. A parameter that the program writes or returns, or whose memory another
/// input shares in part.
pub fn train(program: &Program, options: &Options, update: &Update<'_>) -> Result<Program> {
    training_step(program, options, None, update)
}

/// [`train`] on several ranks, each with a part of the batch: parameters are updated by the mean of their gradients over the ranks.
///
/// # Errors
/// Those of [`train`]; a shard of a parameter that is not contiguous.
pub fn train_parallel(
    program: &Program,
    options: &Options,
    parallel: &DataParallel,
    update: &Update<'_>,
) -> Result<Program> {
    training_step(program, options, Some(parallel), update)
}

fn training_step(
    program: &Program,
    options: &Options,
    parallel: Option<&DataParallel>,
    update: &Update<'_>,
) -> Result<Program> {
    if matches!(options.loss, Loss::Seeds(_)) {
        return Err(Error::invalid("a training step has one loss"));
    }
    let mut options = options.clone();
    if options.wrt.is_none() {
        options.wrt = Some(asking(program));
    }
    let mut joint = Joint::new(program, &options)?;
    joint.targets = joint.targets.iter().map(|i| joint.tied[*i]).collect();
    joint.targets.sort_unstable();
    joint.targets.dedup();
    updatable(&joint)?;
    let mut states = States::default();
    joint.program.weights.tensors.keys().for_each(|n| {
        states.names.fresh(n);
    });
    // The last word on a parameter's gradient is said where the parameter is first read.
    let graph = &joint.program.graphs[joint.program.main];
    let mut at: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    let of_value: BTreeMap<ValueId, usize> =
        joint.targets.iter().map(|i| (joint.program.signature.inputs[*i].value, *i)).collect_map();
    let mut read = vec![false; joint.program.signature.inputs.len()];
    for (id, node) in graph.ordered() {
        for i in node.operands().filter_map(|v| of_value.get(&v)) {
            if !std::mem::replace(&mut read[*i], true) {
                at.entry(id).or_default().push(*i);
            }
        }
    }
    let inputs = joint.program.signature.inputs.clone();
    let mut updates = Updates { inputs, update, states, updated: BTreeMap::new() };
    let mut buckets = parallel.map(Buckets::new).transpose()?;
    let mut ready =
        |graph: &mut Graph, names: &mut Names, i: usize, grads: &Found, origin: Arc<Origin>| -> Result<()> {
            let (InputKind::Parameter(_), Some(grad)) = (&updates.inputs[i].kind, grads[updates.inputs[i].value])
            else {
                return Ok(());
            };
            match &mut buckets {
                Some(buckets) => buckets.add(graph, names, &mut updates, i, grad, &origin),
                None => updates.one(graph, names, &origin, i, val(grad)),
            }
        };
    let grads = joint.backward(None, &mut |graph, names, id, grads| {
        let Some(done) = at.get(&id) else { return Ok(()) };
        let origin = differentiable(&graph.nodes[id].origin);
        done.iter().try_for_each(|i| ready(graph, names, *i, grads, origin.clone()))
    })?;
    // A loss that is a parameter itself.
    let graph = &mut joint.program.graphs[joint.program.main];
    let mut names = taken(graph);
    for i in joint.targets.iter().filter(|i| !read[**i]) {
        ready(graph, &mut names, *i, &grads, Arc::default())?;
    }
    if let Some(buckets) = &mut buckets {
        buckets.finish(graph, &mut names, &mut updates)?;
        // They are declared last.
        let storages = buckets.storages();
        graph.inputs.retain(|v| !storages.contains(v));
    }
    let out = &mut joint.program;
    out.signature.outputs[joint.losses[0]].kind = OutputKind::Loss;
    super::drop_histories(out);
    let Updates { states, updated, .. } = updates;
    for (i, new) in updated {
        out.graph_mut().outputs.push(Arg::Value(new));
        out.signature.outputs.push(OutputSpec { kind: OutputKind::Mutation(i), alias: None });
    }
    let kept = keep_states(out, states);
    if let Some(buckets) = buckets {
        let mut tied: Vec<usize> = joint.tied.clone();
        tied.splice(kept.start..kept.start, kept.clone());
        for (i, to) in tied.iter_mut().enumerate() {
            *to += if !kept.contains(&i) && *to >= kept.start { kept.len() } else { 0 };
        }
        buckets.declare(out, &tied)?;
    }
    dce(out);
    Ok(joint.program)
}

/// Parameters that ask for gradients.
fn asking(program: &Program) -> Vec<String> {
    let asks = |spec: &InputSpec| match &spec.kind {
        InputKind::Parameter(n) => {
            let ty = program.graph().values[spec.value].ty.tensor();
            let floating = ty.is_some_and(|t| t.dtype.is_float() || t.dtype.is_complex());
            (floating && program.weights.tensors.get(n).is_none_or(|w| w.requires_grad)).then(|| n.to_string())
        }
        _ => None,
    };
    program.signature.inputs.iter().filter_map(asks).collect()
}

/// Refuses parameters that cannot be updated in their own memory.
fn updatable(joint: &Joint) -> Result<()> {
    let (program, signature) = (&joint.program, &joint.program.signature);
    if joint.targets.is_empty() {
        return Err(Error::invalid("the program has no parameter that asks for gradients").help("name some with --wrt"));
    }
    let mut of_storage: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for i in 0..signature.inputs.len() {
        if let Some(w) = program.weight_name(i).and_then(|n| program.weights.tensors.get(n)) {
            of_storage.entry(w.storage).or_default().push(i);
        }
    }
    for &i in &joint.targets {
        let InputKind::Parameter(name) = &signature.inputs[i].kind else {
            let name = &program.graph().values[signature.inputs[i].value].name;
            return Err(Error::invalid(format!("%{name} is no parameter, so a training step does not update it")));
        };
        for spec in &signature.outputs {
            if spec.kind == OutputKind::Mutation(i) {
                return Err(Error::unsupported(format!("the program writes the parameter {name} itself"))
                    .help("leave it out of the update with --wrt"));
            }
            if spec.alias.as_ref().is_some_and(|a| a.root == AliasRoot::Input(i)) {
                return Err(Error::unsupported(format!("the program returns memory of the parameter {name}"))
                    .help("return a clone of it, or leave it out of the update with --wrt"));
            }
        }
        let Some(own) = program.weights.tensors.get(name) else { continue };
        for &j in of_storage.get(&own.storage).into_iter().flatten().filter(|j| joint.tied[**j] != joint.tied[i]) {
            let Some((other, w)) = program.weight_name(j).and_then(|n| Some((n, program.weights.tensors.get(n)?)))
            else {
                continue;
            };
            if overlap_bytes(&own.layout, own.dtype.size(), &w.layout, w.dtype.size()) != Overlap::Disjoint {
                return Err(Error::unsupported(format!("the parameter {name} shares part of its memory with {other}"))
                    .help("let them be one parameter or two of their own, or leave it out of the update with --wrt"));
            }
        }
    }
    Ok(())
}

/// Declares the buffers that updates keep: before the user's inputs, where PyTorch has buffers. Their positions among the inputs.
fn keep_states(out: &mut Program, states: States) -> Range<usize> {
    let inputs = &out.signature.inputs;
    let before = inputs.iter().position(|s| !is_weight(&s.kind)).unwrap_or(inputs.len());
    let more = states.kept.len();
    let move_up = |i: &mut usize| *i += if *i >= before { more } else { 0 };
    for spec in &mut out.signature.outputs {
        match &mut spec.kind {
            OutputKind::Mutation(i) | OutputKind::Gradient(i) | OutputKind::Metadata(i) => move_up(i),
            OutputKind::User | OutputKind::Loss | OutputKind::Token | OutputKind::Base => {}
        }
        if let Some(OutputAlias { root: AliasRoot::Input(i), .. }) = &mut spec.alias {
            move_up(i);
        }
    }
    for spec in &mut out.signature.inputs {
        if let InputKind::Storage(members) = &mut spec.kind {
            members.iter_mut().for_each(move_up);
        }
    }
    let mut weights = Weights::clone(&out.weights);
    let graph = &mut out.graphs[out.main];
    // A program whose weights have no memory, read from text, gets it later.
    let declared = weights.tensors.values().map(|w| w.storage + 1).max().unwrap_or(0);
    let with_memory = weights.storages.len() >= declared;
    let first = weights.storages.len().max(declared);
    let mut specs = Vec::new();
    for (k, state) in states.kept.into_iter().enumerate() {
        let (dtype, layout) = (state.dtype, Layout::contiguous(&state.sizes));
        if with_memory {
            weights.storages.push(Bytes::copy_of(&vec![0; layout.numel() as usize * dtype.size()]));
        }
        let weight = Weight { storage: first + k, dtype, layout, is_param: false, requires_grad: false };
        weights.tensors.insert(state.name.clone(), weight);
        specs.push(InputSpec { value: state.input, kind: InputKind::Buffer { name: state.name, persistent: true } });
        if state.now != state.input {
            graph.outputs.push(Arg::Value(state.now));
            out.signature.outputs.push(OutputSpec { kind: OutputKind::Mutation(before + k), alias: None });
        }
    }
    graph.inputs.truncate(graph.inputs.len() - more);
    graph.inputs.splice(before..before, specs.iter().map(|s| s.value));
    out.signature.inputs.splice(before..before, specs);
    out.weights = Arc::new(weights);
    before..before + more
}

fn is_weight(kind: &InputKind) -> bool {
    matches!(kind, InputKind::Parameter(_) | InputKind::Buffer { .. } | InputKind::Constant(_))
}
