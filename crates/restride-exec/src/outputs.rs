//! Outputs for the caller: views of the memory that they alias, and the new state.

use crate::inputs::{RunValue, State, evaluate, user_inputs};
use crate::interp::Outputs;
use restride_ir::{AliasRoot, Binding, Error, OutputAlias, OutputKind, Program, Result};
use restride_tensor::RawTensor;

/// Makes the outputs of a program from the results of a run: `inputs` are those of the main graph, whose memory
/// holds its new content already; `results` are one per graph output (`None` for new contents of inputs).
///
/// # Errors
/// An output that is declared to be a view of memory that it does not fit.
pub fn outputs(
    program: &Program,
    inputs: &[RunValue],
    results: &[RunValue],
    symbols: &Binding,
    state: &mut State,
) -> Result<Outputs> {
    let mut inputs = inputs.to_vec();
    let mut out = Outputs::default();
    let mut changed = Vec::new();
    for (spec, result) in program.signature.outputs.iter().zip(results) {
        let value = match &spec.alias {
            Some(alias) => RunValue::Tensor(on_root(program, alias, &inputs, results, symbols)?),
            None => result.clone(),
        };
        match spec.kind {
            OutputKind::User | OutputKind::Loss => out.values.push(value),
            OutputKind::Gradient(i) => {
                let t = value.tensor().ok_or_else(|| Error::invalid("a gradient that is no tensor"))?;
                out.gradients.push((i, t.clone()));
            }
            OutputKind::Metadata(i) => changed.push((i, value)),
            OutputKind::Mutation(_) | OutputKind::Token | OutputKind::Base => {}
        }
    }
    for (i, value) in changed {
        inputs[i] = value;
    }
    out.inputs = user_inputs(program).map(|(i, _)| inputs[i].clone()).collect();
    for (i, value) in inputs.iter().enumerate() {
        if let (Some(name), Some(t)) = (program.weight_name(i), value.tensor()) {
            state.set(name.clone(), t.clone());
        }
    }
    Ok(out)
}

/// The view of an input's or a base's memory that an output is declared to be.
fn on_root(
    program: &Program,
    alias: &OutputAlias,
    inputs: &[RunValue],
    results: &[RunValue],
    symbols: &Binding,
) -> Result<RawTensor> {
    let root = match alias.root {
        AliasRoot::Input(i) => inputs.get(i),
        AliasRoot::Base(i) => results.get(i),
    };
    let root = root
        .and_then(RunValue::tensor)
        .ok_or_else(|| Error::invalid("an output is declared a view of a value that is no tensor"))?;
    view_of(program, alias, root, symbols)
}

/// The declared view of a tensor's memory. Where an input or a base has another offset than the program declares, its views move
/// with it.
fn view_of(program: &Program, alias: &OutputAlias, root: &RawTensor, symbols: &Binding) -> Result<RawTensor> {
    let unknown = |what| Error::invalid(format!("the layout {what} of an output has unknown symbols"));
    let mut layout = evaluate(&alias.layout, symbols).ok_or_else(|| unknown(alias.layout.to_string()))?;
    let graph = program.graph();
    let declared = match alias.root {
        AliasRoot::Input(i) => Some(program.signature.inputs[i].value),
        AliasRoot::Base(i) => graph.outputs.get(i).and_then(|a| a.values().next().copied()),
    };
    if let Some(ty) = declared.and_then(|v| graph.values[v].ty.tensor()) {
        let declared = evaluate(&ty.layout, symbols).ok_or_else(|| unknown(ty.layout.to_string()))?;
        let (from, to) = (ty.dtype.size() as i64, alias.dtype.size() as i64);
        let shift = (root.layout().offset - declared.offset) * from;
        if shift % to != 0 {
            return Err(Error::invalid("an output begins inside of an element of the memory that it is a view of"));
        }
        layout.offset += shift / to;
        // Symbolic sizes do not tell the strides that the base got along dimensions of size 1.
        let whole = matches!(alias.root, AliasRoot::Base(_)) && ty.layout == alias.layout && ty.dtype == alias.dtype;
        if whole && root.layout().sizes == layout.sizes {
            for d in (0..layout.rank()).filter(|d| root.layout().sizes[*d] == 1) {
                layout.strides[d] = root.layout().strides[d];
            }
        }
    }
    RawTensor::new(root.storage().clone(), alias.dtype, layout.clone())
        .ok_or_else(|| Error::invalid(format!("an output of layout {layout} leaves the memory it is a view of")))
}
