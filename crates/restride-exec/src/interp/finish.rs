//! After the graph: declared mutations are written, and outputs become what the caller sees.

use super::{Interp, Object, Outputs, Slot};
use crate::copy::{allocate, copy_into};
use crate::inputs::{RunValue, State, evaluate, input_name, user_inputs};
use restride_ir::{
    AliasRoot, Arg, Binding, Error, OutputAlias, OutputKind, Program, Result, Stage, TensorType, border_layout,
};
use restride_tensor::{Layout, RawTensor, Storage};

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
        let mut taken: Vec<Storage> = objects.iter().filter_map(Slot::tensor).map(|t| t.storage().clone()).collect();
        // Everything that is to be written or returned is taken before anything is written: a new content may be
        // another input's old one.
        let mut kept: Vec<Slot> = Vec::with_capacity(results.len());
        for ((spec, arg), slot) in specs.iter().zip(&self.program.graph().outputs).zip(results) {
            let own = match spec.kind {
                OutputKind::Mutation(_) => true,
                OutputKind::Metadata(_) | OutputKind::Token => false,
                // An imported program's outputs alias what they alias.
                _ => functional && spec.alias.is_none(),
            };
            kept.push(match slot {
                Slot::Tensor(t) if own => {
                    let t = t.borrow().clone();
                    let layout = match spec.kind {
                        OutputKind::Mutation(_) => t.layout().clone(),
                        _ => self.border(arg, &t, symbols)?,
                    };
                    let there = layout == *t.layout() && !t.conj && !t.neg;
                    let t = if there && !taken.iter().any(|s| s.same(t.storage())) { t } else { copy_of(&t, layout)? };
                    taken.push(t.storage().clone());
                    Slot::new(t)
                }
                other => other,
            });
        }
        for (spec, slot) in specs.iter().zip(&kept) {
            if let OutputKind::Mutation(i) = spec.kind {
                self.write_back(i, objects, slot)?;
            }
        }
        let mut out = Outputs::default();
        // Inputs may become views of each other's memory: each of what all of them are before.
        let mut changed: Vec<(&Object, RawTensor)> = Vec::new();
        for (spec, slot) in specs.iter().zip(&kept) {
            let slot = match (&spec.alias, &spec.kind) {
                (None, _) => slot.clone(),
                (Some(alias), _) => Slot::new(on_root(self.program, alias, objects, &kept, symbols)?),
            };
            match spec.kind {
                OutputKind::User | OutputKind::Loss => out.values.push(shown(slot.to_value())?),
                OutputKind::Gradient(i) => {
                    let t = slot.tensor().ok_or_else(|| Error::invalid("a gradient that is no tensor"))?;
                    out.gradients.push((i, t));
                }
                OutputKind::Metadata(i) => {
                    if let (Some(Slot::Tensor(object)), Some(t)) = (objects.get(i), slot.tensor()) {
                        changed.push((object, t));
                    }
                }
                OutputKind::Mutation(_) | OutputKind::Token | OutputKind::Base => {}
            }
        }
        for (object, t) in changed {
            *object.borrow_mut() = t;
        }
        out.inputs = user_inputs(self.program).map(|(i, _)| objects[i].to_value()).collect();
        for (i, object) in objects.iter().enumerate() {
            if let (Some(name), Some(t)) = (self.program.weight_name(i), object.tensor()) {
                state.set(name.clone(), t);
            }
        }
        Ok(out)
    }

    /// How a functional program's output lies in memory of its own: as it is declared.
    fn border(&self, output: &Arg, t: &RawTensor, symbols: &Binding) -> Result<Layout> {
        let declared = match output {
            Arg::Value(v) => self.program.graph().values[*v].ty.tensor(),
            _ => None,
        };
        let declared = declared.ok_or_else(|| Error::invalid("an output that is declared to be no tensor"))?;
        let layout = evaluate(&declared.layout, symbols).filter(|l| l.sizes == t.layout().sizes).ok_or_else(|| {
            Error::invalid(format!("an output of sizes {:?} is declared {declared}", t.layout().sizes))
        })?;
        Ok(border_layout(&TensorType::new(t.dtype(), layout)))
    }

    /// Writes the new content of an input into its memory.
    fn write_back(&self, input: usize, objects: &[Slot], value: &Slot) -> Result<()> {
        let target = objects.get(input).and_then(Slot::tensor);
        let (Some(target), Some(value)) = (target, value.tensor()) else {
            return Err(Error::invalid("a mutation of what is no tensor"));
        };
        if target.layout().sizes != value.layout().sizes || target.dtype() != value.dtype() {
            let name = input_name(self.program, input);
            let (have, new) = (&target.layout().sizes, &value.layout().sizes);
            let (of, new_of) = (target.dtype(), value.dtype());
            return Err(Error::invalid(format!("{name} is {of}{have:?}, its new content {new_of}{new:?}")));
        }
        Ok(copy_into(&target, &value)?)
    }
}

/// The value without lazy bits: what is lazily conjugated or negated becomes the elements that it shows, on memory of its own.
fn shown(value: RunValue) -> Result<RunValue> {
    match value {
        RunValue::Tensor(t) if t.conj || t.neg => copy_of(&t, t.layout().clone()).map(RunValue::Tensor),
        other => Ok(other),
    }
}

/// The elements on memory of their own, in the layout where that has no cell twice.
fn copy_of(t: &RawTensor, layout: Layout) -> Result<RawTensor> {
    let layout = border_layout(&TensorType::new(t.dtype(), layout));
    let own = allocate(t.dtype(), layout)?;
    copy_into(&own, t)?;
    Ok(own)
}

/// The view of an input's or a base's memory that an output is declared to be.
fn on_root(
    program: &Program,
    alias: &OutputAlias,
    objects: &[Slot],
    kept: &[Slot],
    symbols: &Binding,
) -> Result<RawTensor> {
    let root = match alias.root {
        AliasRoot::Input(i) => objects.get(i),
        AliasRoot::Base(i) => kept.get(i),
    };
    let root = root.and_then(Slot::tensor).ok_or_else(|| Error::invalid("an output is a view of what is no tensor"))?;
    crate::outputs::view_of(program, alias, &root, symbols)
}
