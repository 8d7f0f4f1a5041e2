//! Inputs of the program that have contents: parameters, buffers, constants.

use super::{Recorder, TensorRef};
use restride_ir::{DType, Error, Expr, InputKind, InputSpec, Result, TensorType, ValueId, Weight, Weights};
use restride_tensor::{Bytes, Layout};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Weights so far.
#[derive(Default)]
pub(super) struct WeightInputs {
    pub weights: Weights,
    /// Storages by key.
    storages: BTreeMap<String, usize>,
    /// Tensors by name.
    tensors: BTreeMap<Arc<str>, TensorRef>,
    /// A tensor of each storage.
    of_storage: BTreeMap<usize, TensorRef>,
    /// Kinds of the inputs.
    pub specs: Vec<InputSpec>,
    constants: usize,
    /// Weights without memory.
    absent: usize,
}

impl Recorder<'_> {
    /// The weight of a name.
    pub fn weight_ref(&self, name: &str) -> Option<TensorRef> {
        self.inputs.tensors.get(name).cloned()
    }

    /// Whether a tensor is a parameter that asks for its gradient.
    pub fn requires_grad(&self, t: &TensorRef) -> bool {
        let name = self.state_name(t);
        name.and_then(|n| self.inputs.weights.tensors.get(&n)).is_some_and(|w| w.requires_grad)
    }

    /// All weights.
    pub fn into_weights(self) -> Weights {
        self.inputs.weights
    }

    /// Number of storages so far.
    pub fn weight_count(&self) -> usize {
        self.inputs.weights.storages.len()
    }

    /// A storage without memory, for a weight of which only the type is known.
    pub fn no_storage(&mut self) -> usize {
        self.inputs.absent += 1;
        usize::MAX - self.inputs.absent
    }

    /// The storage of a key.
    pub fn weight_storage(&self, key: &str) -> Option<usize> {
        self.inputs.storages.get(key).copied()
    }

    /// Adds a storage.
    pub fn add_storage(&mut self, key: String, bytes: Bytes) -> usize {
        let storages = &mut self.inputs.weights.storages;
        storages.push(bytes);
        let at = storages.len() - 1;
        self.inputs.storages.insert(key, at);
        at
    }

    /// Adds a weight as an input of the program.
    ///
    /// # Errors
    /// A weight outside of its storage.
    pub fn weight(&mut self, name: &str, kind: InputKind, weight: Weight) -> Result<TensorRef> {
        let bytes = self.inputs.weights.storages.get(weight.storage).map_or(i128::MAX, |s| s.len() as i128);
        if weight.layout.cell_range().end as i128 * weight.dtype.size() as i128 > bytes && weight.layout.numel() > 0 {
            return Err(Error::new(restride_ir::ErrorKind::File, format!("{name} leaves its storage")));
        }
        let ty = TensorType::new(weight.dtype, weight.layout.map(|n| Expr::Int(*n)));
        let prefix = match kind {
            InputKind::Parameter(_) => "p_",
            InputKind::Buffer { .. } => "b_",
            _ => "c_",
        };
        let short: String = name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect();
        let (made, value) = self.input(&format!("{prefix}{short}"), ty);
        self.inputs.specs.push(InputSpec { value, kind });
        let storage = weight.storage;
        self.inputs.weights.tensors.insert(name.into(), weight);
        self.inputs.tensors.insert(name.into(), made.clone());
        match self.inputs.of_storage.get(&storage).cloned() {
            Some(other) => self.share(&other, &made),
            None => {
                self.inputs.of_storage.insert(storage, made.clone());
            }
        }
        Ok(made)
    }

    /// Adds a constant with these row-major elements.
    ///
    /// # Errors
    /// As [`Recorder::weight`].
    pub fn constant(&mut self, dtype: DType, sizes: &[i64], bytes: Vec<u8>) -> Result<TensorRef> {
        let key = format!("constant {} {sizes:?} {bytes:?}", dtype.name());
        let short = bytes.len() <= 4096;
        if short
            && let Some(at) = self.weight_storage(&key)
            && let Some(found) = self.inputs.of_storage.get(&at)
        {
            return Ok(found.clone());
        }
        let key = if short { key } else { format!("constant {}", self.inputs.constants) };
        let name = format!("_tensor_constant{}", self.inputs.constants);
        self.inputs.constants += 1;
        let storage = self.add_storage(key, Bytes::copy_of(&bytes));
        let layout = Layout::contiguous(sizes);
        let weight = Weight { storage, dtype, layout, is_param: false, requires_grad: false };
        let kind = InputKind::Constant(name.as_str().into());
        self.weight(&name, kind, weight)
    }

    /// Turns a buffer into a constant of another name, so that its own name is free.
    ///
    /// # Errors
    /// A tensor that is no weight.
    pub fn as_constant(&mut self, t: &TensorRef) -> Result<TensorRef> {
        let name = self.state_name(t).ok_or_else(|| Error::invalid("a tensor that is no weight"))?;
        let new: Arc<str> = format!("{name}.initial").into();
        let Some(weight) = self.inputs.weights.tensors.remove(&name) else {
            return Err(Error::invalid("a weight without memory"));
        };
        self.inputs.weights.tensors.insert(new.clone(), weight);
        self.inputs.tensors.remove(&name);
        self.inputs.tensors.insert(new.clone(), t.clone());
        let value = t.value.get();
        for spec in &mut self.inputs.specs {
            if spec.value == value {
                spec.kind = InputKind::Constant(new.clone());
            }
        }
        Ok(t.clone())
    }

    /// Adds a user input's kind.
    pub fn user_input(&mut self, value: ValueId, kind: InputKind) {
        self.inputs.specs.push(InputSpec { value, kind });
    }

    /// The name of an input that is a tensor, for messages.
    pub fn state_name(&self, t: &TensorRef) -> Option<Arc<str>> {
        self.inputs.tensors.iter().find(|(_, w)| std::rc::Rc::ptr_eq(w, t)).map(|(n, _)| n.clone())
    }
}
