//! A program for inputs that lie otherwise than the ones it was exported with.

use restride_exec::Inputs;
use restride_exec::inputs::{evaluate, same_strides, user_inputs};
use restride_ir::{Binding, Expr, Program, Result, Stage, Type, relay};
use restride_passes::specialize;
use std::borrow::Cow;

/// The imported program with the strides of these inputs, and those that follow from them for all other values: an input that was
/// an expanded tensor at export may be a dense one now. `sizes` are the inputs' sizes by symbol. The program itself where
/// nothing lies otherwise.
///
/// # Errors
/// Never for an imported program that passed the verifier; what the shape rules say otherwise.
pub(crate) fn laid_as_given<'p>(program: &'p Program, inputs: &Inputs, sizes: &Binding) -> Result<Cow<'p, Program>> {
    if program.stage != Stage::Imported {
        return Ok(Cow::Borrowed(program));
    }
    let mut others = Vec::new();
    for ((i, _), value) in user_inputs(program).zip(&inputs.values) {
        let v = program.signature.inputs[i].value;
        let (Some(t), Some(ty)) = (value.tensor(), program.graph().values[v].ty.tensor()) else { continue };
        let Some(declared) = evaluate(&ty.layout, sizes) else { continue };
        let plain = t.dtype() == ty.dtype && !t.conj && !t.neg;
        if plain && declared.sizes == t.layout().sizes && !same_strides(&declared, t.layout()) {
            others.push((v, t.layout().strides.clone()));
        }
    }
    if others.is_empty() {
        return Ok(Cow::Borrowed(program));
    }
    let mut own = specialize(program, sizes);
    for (v, strides) in others {
        if let Type::Tensor(ty) = &mut own.graph_mut().values[v].ty {
            ty.layout.strides = strides.iter().map(|s| Expr::Int(*s)).collect();
        }
    }
    relay(&mut own);
    Ok(Cow::Owned(own))
}
