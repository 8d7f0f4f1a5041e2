//! Parameters, buffers and constants: one file a storage.

use super::graph::tensor_meta;
use crate::archive::File;
use crate::model::{PayloadConfig, PayloadMeta};
use restride_ir::{Binding, Error, InputKind, Program, Result, TensorType};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Files of weights and constants, with their configs.
pub struct WeightFiles<'a> {
    /// Config of the state dict.
    pub config: PayloadConfig,
    /// Storages of the state dict.
    pub files: Vec<File<'a>>,
    /// Config of constants and non-persistent buffers.
    pub constants_config: PayloadConfig,
    /// Storages of constants.
    pub constants: Vec<File<'a>>,
}

/// The files of the program's weights.
pub fn files(program: &Program) -> Result<WeightFiles<'_>> {
    let mut out = WeightFiles {
        config: PayloadConfig::default(),
        files: Vec::new(),
        constants_config: PayloadConfig::default(),
        constants: Vec::new(),
    };
    let mut kept: BTreeMap<&Arc<str>, bool> = BTreeMap::new();
    let mut order: Vec<&Arc<str>> = Vec::new();
    for spec in &program.signature.inputs {
        let (name, in_state) = match &spec.kind {
            InputKind::Parameter(n) => (n, true),
            InputKind::Buffer { name, persistent } => (name, *persistent),
            InputKind::Constant(n) => (n, false),
            _ => continue,
        };
        if kept.insert(name, in_state).is_none() {
            order.push(name);
        }
    }
    // Weights that no graph takes stay with the state dict.
    for name in program.weights.tensors.keys() {
        if kept.insert(name, true).is_none_or(|before| {
            kept.insert(name, before);
            false
        }) {
            order.push(name);
        }
    }
    let mut paths: BTreeMap<(bool, usize), String> = BTreeMap::new();
    for name in order {
        let in_state = kept[name];
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
            files.push(File { name: path.clone(), bytes: Cow::Borrowed(memory) });
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
