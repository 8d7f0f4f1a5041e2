//! The proof that a functional program means the same as the imported one, for the inputs of a run.

use crate::binding::{shares, sizes};
use restride_check::{Equivalence, InputPlace, MemoryOps};
use restride_exec::Inputs;
use restride_ir::{CollectTree, Error, Op, Program, Result};
use std::collections::BTreeMap;

/// Proves that a functional program means what the imported one means, by names of elements instead of numbers
/// ([`restride_check::equivalence`]). The proof holds for all inputs of these sizes and strides that share storage likewise.
///
/// ```
/// # use restride::{Equivalence, FunctionalizeOptions, Inputs, OpenOptions};
/// # let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/examples/box_decode.pt2"));
/// let program = restride::open(path, &OpenOptions::default())?;
/// let inputs = Inputs::from_samples(&program).expect("the file has sample inputs")?;
/// let functional = restride::functionalize(&program, &FunctionalizeOptions::default())?;
/// assert!(matches!(restride::meaning(&program, &functional, &inputs)?, Equivalence::Same));
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// The output or input that differs, the element, and its value in each program.
pub fn meaning(imported: &Program, functional: &Program, inputs: &Inputs) -> Result<Equivalence> {
    let binding = sizes(imported, inputs)?;
    // Compositions that may return views are taken apart first, as for functionalization.
    let expanded = restride_passes::aliases::expand(imported)?;
    let imported = restride_passes::specialize(expanded.as_ref().unwrap_or(imported), &binding);
    let functional = restride_passes::specialize(functional, &binding);
    let places = input_places(&imported, inputs);
    restride_check::equivalence(&imported, &functional, &places, &known()?)
        .map_err(|faults| restride_check::error(&functional, &faults))
}

/// The operators that memory itself applies.
fn known() -> Result<MemoryOps> {
    let op = |name: &str| -> Result<Op> {
        restride_ops::lookup(name).ok_or_else(|| Error::invalid(format!("the operator table lacks {name}")))
    };
    Ok(MemoryOps {
        cast: op("aten._to_copy.default")?,
        copy: op("aten.copy.default")?,
        conj: op("aten.conj_physical.default")?,
        neg: op("aten.neg.default")?,
        pad: op("aten.constant_pad_nd.default")?,
    })
}

/// The storage and layout of each tensor input: weights on their storages, user inputs as given.
fn input_places(program: &Program, inputs: &Inputs) -> Vec<Option<InputPlace>> {
    let shares = shares(program, inputs);
    let bytes = program.weights.storage_bytes();
    let of_weight: BTreeMap<usize, usize> = bytes.keys().enumerate().map(|(k, storage)| (*storage, k)).collect_map();
    let weights = of_weight.len();
    let mut next = weights + shares.len();
    let known = |i: usize| program.graph().values[program.signature.inputs[i].value].ty.tensor()?.known();
    let mut of_share = BTreeMap::new();
    for (s, share) in shares.iter().enumerate() {
        for (k, &i) in share.inputs.iter().enumerate() {
            of_share.insert(i, (s, k));
        }
    }
    let lie = |i: usize| {
        let ty = known(i)?;
        let weight = program.weight_name(i).and_then(|n| program.weights.tensors.get(n));
        if let Some(w) = weight {
            let bytes = bytes[&w.storage];
            return Some(InputPlace { storage: of_weight[&w.storage], bytes, layout: w.layout.clone() });
        }
        if let Some(&(s, k)) = of_share.get(&i) {
            let share = &shares[s];
            let mut layout = ty.layout;
            // Inputs that share no storage are taken as the file declares them.
            if share.inputs.len() > 1 {
                (layout.strides, layout.offset) = share.layouts[k].clone();
            }
            let bytes = share.bytes.max(layout.cell_range().end * ty.dtype.size() as i64);
            return Some(InputPlace { storage: weights + s, bytes, layout });
        }
        next += 1;
        let bytes = ty.layout.cell_range().end * ty.dtype.size() as i64;
        Some(InputPlace { storage: next - 1, bytes, layout: ty.layout })
    };
    (0..program.signature.inputs.len()).map(lie).collect()
}
