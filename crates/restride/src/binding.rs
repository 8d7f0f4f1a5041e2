//! Facts that inputs tell a program: the values of its symbols, shared storages, other strides.

use restride_exec::inputs::{Strides, bind, evaluate, same_strides, user_inputs};
use restride_exec::{Inputs, State};
use restride_ir::{Binding, Expr, Meta, Program, Result, Stage, Type, relay};
use restride_passes::functionalize::Share;
use restride_passes::specialize;
use restride_torchscript::GivenValue;
use std::borrow::Cow;
use std::sync::Arc;

/// The imported program with the strides of these inputs, which all other values follow: an input that was expanded at export
/// may be dense now. `sizes` are the inputs' sizes by symbol. Borrowed where no strides differ.
///
/// # Errors
/// A shape rule's; never for an imported program that passed the verifier.
pub(crate) fn with_strides_of<'p>(program: &'p Program, inputs: &Inputs, sizes: &Binding) -> Result<Cow<'p, Program>> {
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
    if !program.symbols.is_empty() {
        own.notes.push(
            "sizes are fixed to those of the inputs: an input has other strides than the program declares".into(),
        );
    }
    for (v, strides) in others {
        if let Type::Tensor(ty) = &mut own.graph_mut().values[v].ty {
            ty.layout.strides = strides.iter().map(|s| Expr::Int(*s)).collect();
        }
    }
    relay(&mut own);
    Ok(Cow::Owned(own))
}

/// As [`random_inputs`](crate::random_inputs), of these sizes: types by input name, or in order. Sizes that they do not tell are those
/// of the sample inputs, if there are any.
///
/// ```
/// # use restride::{GivenInputs, OpenOptions};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pt2/dynamic_batch.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let types = GivenInputs::parse_types("f32[7, 3, 4]")?;
/// let inputs = restride::random_inputs_of(&program, 0, &types)?;
/// assert_eq!(inputs.values[0].tensor().expect("a tensor").layout().sizes[..], [7, 3, 4]);
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// An input that the program does not have, another element type, sizes that do not fit the declared ones.
pub fn random_inputs_of(program: &Program, seed: u64, types: &[(Option<Arc<str>>, GivenValue)]) -> Result<Inputs> {
    let mut leaves = Vec::new();
    types.iter().for_each(|(name, value)| leaves_of(name.as_ref(), value, &mut leaves));
    restride_exec::random_inputs_of(program, seed, &leaves)
}

/// The tensors and numbers in a value, by the names that parts of lists and dictionaries have as inputs: `xs_0`, `d_k`.
fn leaves_of(name: Option<&Arc<str>>, value: &GivenValue, out: &mut Vec<(Option<Arc<str>>, Type)>) {
    let part = |key: &dyn std::fmt::Display| name.map(|name| Arc::from(format!("{name}_{key}")));
    match value {
        GivenValue::Tensor(dtype, layout) => {
            out.push((name.cloned(), Type::Tensor(Meta::new(*dtype, layout.clone()).into())));
        }
        GivenValue::Element(dtype, _) => {
            out.push((name.cloned(), Type::Tensor(Meta::contiguous(*dtype, &[]).into())));
        }
        GivenValue::Number(n) => out.push((name.cloned(), Type::Scalar((*n).into()))),
        GivenValue::List(items) | GivenValue::Tuple(items) => {
            items.iter().enumerate().for_each(|(i, v)| leaves_of(part(&i).as_ref(), v, out));
        }
        GivenValue::Dict(items) => items.iter().for_each(|(key, v)| leaves_of(part(key).as_ref(), v, out)),
        // These are no inputs of a program: it was made for them.
        GivenValue::Str(_) | GivenValue::None => {}
    }
}

/// The values of a program's symbols that its inputs tell.
pub(crate) fn sizes(program: &Program, inputs: &Inputs) -> Result<Binding> {
    if program.symbols.is_empty() {
        return Ok(Binding::new());
    }
    Ok(bind(program, inputs, &State::new(program)?, Strides::Any)?.symbols)
}

/// User inputs by storage, with their layouts. Inputs that share a storage without a common cell are shares, too: the program may
/// reach further than an input shows.
pub(crate) fn shares(program: &Program, inputs: &Inputs) -> Vec<Share> {
    let positions: Vec<usize> = user_inputs(program).map(|(i, _)| i).collect();
    let mut by_storage: Vec<(usize, Share)> = Vec::new();
    for (&position, value) in positions.iter().zip(&inputs.values) {
        let Some(t) = value.tensor() else { continue };
        let layout = (t.layout().strides.clone(), t.layout().offset);
        match by_storage.iter_mut().find(|(id, _)| *id == t.storage().id()) {
            Some((_, share)) => {
                share.inputs.push(position);
                share.layouts.push(layout);
            }
            None => {
                let share = Share { inputs: vec![position], bytes: t.storage().len() as i64, layouts: vec![layout] };
                by_storage.push((t.storage().id(), share));
            }
        }
    }
    by_storage.into_iter().map(|(_, s)| s).collect()
}
