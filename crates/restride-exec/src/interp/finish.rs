//! After the graph: declared mutations are written, and outputs become the caller's values.

use super::{Interp, Outputs, Slot};
use crate::copy::{copy_as, copy_into};
use crate::inputs::{RunValue, State, evaluate, input_name};
use crate::outputs::outputs;
use restride_ir::{Arg, Binding, Error, Graph, OutputKind, Result, Stage, TensorType, border_layout, relay_units};
use restride_tensor::{Layout, RawTensor, Storage};
use std::borrow::Cow;

impl Interp<'_> {
    pub(super) fn finish(
        &self,
        objects: &[Slot],
        results: Vec<Slot>,
        symbols: &Binding,
        state: &mut State,
    ) -> Result<Outputs> {
        let specs = &self.program.signature.outputs;
        if specs.len() != results.len() {
            return Err(Error::invalid("the signature's outputs are not those of the graph"));
        }
        let functional = self.program.stage == Stage::Functional;
        let graph = if functional { self.graph_of(symbols) } else { Cow::Borrowed(self.program.graph()) };
        let inputs: Vec<RunValue> = objects.iter().map(Slot::to_value).collect();
        let mut taken: Vec<Storage> = inputs.iter().filter_map(RunValue::tensor).map(|t| t.storage().clone()).collect();
        // All values are taken before any is written: a new content may be another input's old one.
        let mut kept: Vec<RunValue> = Vec::with_capacity(results.len());
        for ((spec, arg), slot) in specs.iter().zip(&graph.outputs).zip(results) {
            let own = match spec.kind {
                OutputKind::Mutation(_) => true,
                OutputKind::Metadata(_) | OutputKind::Token => false,
                // An imported program's outputs alias what they alias.
                _ => functional && spec.alias.is_none(),
            };
            kept.push(match slot.to_value() {
                RunValue::Tensor(t) if own => {
                    let layout = match spec.kind {
                        OutputKind::Mutation(_) => t.layout().clone(),
                        _ => border(&graph, arg, &t, symbols)?,
                    };
                    let there = layout == *t.layout() && !t.conj && !t.neg;
                    let t = if there && !taken.iter().any(|s| s.same(t.storage())) { t } else { copy_of(&t, layout)? };
                    taken.push(t.storage().clone());
                    RunValue::Tensor(t)
                }
                other => other,
            });
        }
        for (spec, value) in specs.iter().zip(&kept) {
            if let OutputKind::Mutation(i) = spec.kind {
                self.write_back(i, &inputs, value)?;
            }
        }
        let mut out = outputs(self.program, &inputs, &kept, symbols, state)?;
        for value in &mut out.values {
            // Lazily conjugated or negated tensors become the elements that they show.
            if let RunValue::Tensor(t) = value
                && (t.conj || t.neg)
            {
                *t = copy_of(t, t.layout().clone())?;
            }
        }
        Ok(out)
    }

    /// The graph with the strides that eager PyTorch gives values of these sizes.
    fn graph_of(&self, symbols: &Binding) -> Cow<'_, Graph> {
        let own = self.program.graph();
        if self.program.symbols.is_empty() {
            return Cow::Borrowed(own);
        }
        let mut graph = own.clone();
        graph.substitute(symbols);
        relay_units(&mut graph);
        Cow::Owned(graph)
    }

    /// Writes the new content of an input into its memory.
    fn write_back(&self, input: usize, inputs: &[RunValue], value: &RunValue) -> Result<()> {
        let target = inputs.get(input).and_then(RunValue::tensor);
        let (Some(target), Some(value)) = (target, value.tensor()) else {
            return Err(Error::invalid("a mutation of a value that is no tensor"));
        };
        if target.layout().sizes != value.layout().sizes || target.dtype() != value.dtype() {
            let name = input_name(self.program, input);
            let (have, new) = (&target.layout().sizes, &value.layout().sizes);
            let (of, new_of) = (target.dtype(), value.dtype());
            return Err(Error::invalid(format!("{name} is {of}{have:?}, its new content {new_of}{new:?}")));
        }
        Ok(copy_into(target, value)?)
    }
}

/// The declared layout of a functional program's output in memory of its own.
fn border(graph: &Graph, output: &Arg, t: &RawTensor, symbols: &Binding) -> Result<Layout> {
    let declared = match output {
        Arg::Value(v) => graph.values[*v].ty.tensor(),
        _ => None,
    };
    let declared = declared.ok_or_else(|| Error::invalid("an output that is declared to be no tensor"))?;
    let layout = evaluate(&declared.layout, symbols)
        .filter(|l| l.sizes == t.layout().sizes)
        .ok_or_else(|| Error::invalid(format!("an output of sizes {:?} is declared {declared}", t.layout().sizes)))?;
    Ok(border_layout(&TensorType::new(t.dtype(), layout)))
}

/// The elements on memory of their own, in the layout if it has no cell twice.
fn copy_of(t: &RawTensor, layout: Layout) -> Result<RawTensor> {
    Ok(copy_as(t, border_layout(&TensorType::new(t.dtype(), layout)))?)
}
