//! Parameters, buffers and constants: one file a storage.

use super::graph::tensor_meta;
use crate::archive::ArchiveFile;
use crate::model::{PayloadConfig, PayloadMeta};
use indexmap::IndexMap;
use restride_ir::{Binding, Error, InputKind, Program, Result, TensorType};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Files of weights and constants, with their configs.
#[derive(Default)]
pub struct WeightFiles<'a> {
    /// Config of the state dict.
    pub config: PayloadConfig,
    /// Storages of the state dict.
    pub files: Vec<ArchiveFile<'a>>,
    /// Config of constants and non-persistent buffers.
    pub constants_config: PayloadConfig,
    /// Storages of constants.
    pub constants: Vec<ArchiveFile<'a>>,
}

/// The files of the program's weights.
pub fn files(program: &Program) -> Result<WeightFiles<'_>> {
    let mut out = WeightFiles::default();
    // In order; true for weights of the state dict.
    let mut kept: IndexMap<&Arc<str>, bool> = IndexMap::new();
    for spec in &program.signature.inputs {
        match &spec.kind {
            InputKind::Parameter(n) => kept.insert(n, true),
            InputKind::Buffer { name, persistent } => kept.insert(name, *persistent),
            InputKind::Constant(n) => kept.insert(n, false),
            _ => None,
        };
    }
    // Weights that no graph takes stay with the state dict.
    for name in program.weights.tensors.keys() {
        kept.entry(name).or_insert(true);
    }
    let mut paths: BTreeMap<(bool, usize), String> = BTreeMap::new();
    for (name, in_state) in kept {
        let weight = program.weights.tensors.get(name);
        let memory = weight.and_then(|w| program.weights.storages.get(w.storage));
        let (Some(weight), Some(memory)) = (weight, memory) else {
            return Err(Error::invalid(format!("there is no data for {name}"))
                .help("give the weights of a .fx with --weights FILE.pt2"));
        };
        let other = paths.contains_key(&(!in_state, weight.storage));
        if other {
            return Err(Error::unsupported(format!(
                "{name} shares storage with a weight of the other kind (state and constants are stored apart)"
            )));
        }
        let (files, config, prefix) = if in_state {
            (&mut out.files, &mut out.config, "weight_")
        } else {
            (&mut out.constants, &mut out.constants_config, "tensor_")
        };
        let path = paths.entry((in_state, weight.storage)).or_insert_with(|| {
            let path = format!("{prefix}{}", files.len());
            files.push(ArchiveFile { name: path.clone(), bytes: Cow::Borrowed(memory) });
            path
        });
        let ty = TensorType::new(weight.dtype, weight.layout.map(|n| restride_ir::Expr::Int(*n)));
        let meta = tensor_meta(&ty, &Binding::new(), weight.requires_grad)?;
        let payload = PayloadMeta {
            path_name: path.clone(),
            is_param: weight.is_param,
            use_pickle: false,
            tensor_meta: Some(meta),
        };
        config.config.insert(name.to_string(), payload);
    }
    Ok(out)
}
