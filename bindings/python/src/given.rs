//! Inputs and weights that a program is opened for, from Python's arguments.

use crate::arrays::{ExpectedInput, inputs};
use crate::errors::{OrRaise, inputs_error};
use crate::options::Named;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use restride::{
    Bytes, Dynamic, DynamicRange, GivenInputs, GivenValue, Layout, RawTensor, RunValue, Scalar, Weight, Weights,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Deepest nesting of inputs.
const MAX_DEPTH: u32 = 32;

/// The options `inputs` and `dynamic`: text, or what `restride._opening` makes of arguments.
pub fn given_inputs(named: &mut Named<'_, '_>) -> PyResult<GivenInputs> {
    let mut out = GivenInputs::default();
    if let Some(given) = named.object("inputs")? {
        match given.cast::<PyString>() {
            Ok(text) => out.items = GivenInputs::parse_types(text.to_cow()?.as_ref()).or_raise()?,
            Err(_) => {
                for item in given.try_iter()? {
                    let (name, object): (Option<String>, Bound<'_, PyAny>) = item?.extract()?;
                    let value = value(&object, name.as_deref().unwrap_or("inputs"), 0)?;
                    out.items.push((name.map(Arc::from), value));
                }
            }
        }
    }
    if let Some(given) = named.object("dynamic")? {
        match given.cast::<PyString>() {
            Ok(text) => out.dynamic = GivenInputs::parse_dynamic(text.to_cow()?.as_ref()).or_raise()?,
            Err(_) => {
                for item in given.try_iter()? {
                    let (input, dim, size): (String, usize, Bound<'_, PyTuple>) = item?.extract()?;
                    let range = match size.extract::<(i64, i64)>() {
                        Ok((least, largest)) if least <= largest => DynamicRange::Between(least, largest),
                        Ok((least, largest)) => {
                            return Err(inputs_error(format!(
                                "dynamic: {input}.{dim} is {least}..{largest}, no range"
                            )));
                        }
                        Err(_) => {
                            let (other, at) = size.extract()?;
                            DynamicRange::Same(other, at)
                        }
                    };
                    out.dynamic.push(Dynamic { input, dim, range });
                }
            }
        }
    }
    Ok(out)
}

/// An example as a type: sizes of tensors, values of all else.
fn value(object: &Bound<'_, PyAny>, name: &str, depth: u32) -> PyResult<GivenValue> {
    if depth > MAX_DEPTH {
        return Err(inputs_error(format!("the input {name} is nested more than {MAX_DEPTH} deep")));
    }
    let many = |items: &mut dyn Iterator<Item = Bound<'_, PyAny>>| {
        items.map(|v| value(&v, name, depth + 1)).collect::<PyResult<Vec<_>>>()
    };
    if let Ok(items) = object.cast::<PyList>() {
        return Ok(GivenValue::List(many(&mut items.iter())?));
    }
    if let Ok(items) = object.cast::<PyTuple>() {
        return Ok(GivenValue::Tuple(many(&mut items.iter())?));
    }
    if let Ok(items) = object.cast::<PyDict>() {
        let mut out = Vec::new();
        for (key, v) in items.iter() {
            let key: String =
                key.extract().map_err(|_| PyTypeError::new_err(format!("{name} has a key that is no string")))?;
            out.push((Arc::from(key), value(&v, name, depth + 1)?));
        }
        return Ok(GivenValue::Dict(out));
    }
    let made = inputs(std::slice::from_ref(object), &[ExpectedInput::any(name)])?;
    Ok(match made.values.into_iter().next() {
        Some(RunValue::Tensor(t)) => {
            GivenValue::Tensor(t.dtype(), Layout::strided(&t.layout().sizes, &t.layout().strides, 0))
        }
        Some(RunValue::Scalar(Scalar::Complex(_))) => {
            return Err(inputs_error(format!("the input {name} is a complex number, which is not supported")));
        }
        Some(RunValue::Scalar(n)) => GivenValue::Number(n),
        Some(RunValue::Str(s)) => GivenValue::Str(s),
        Some(RunValue::None) | None => GivenValue::None,
    })
}

/// The option `weight_tensors`: name, tensor, and whether it is a parameter. The tensors are copied; what shares memory still does.
pub fn given_weights(named: &mut Named<'_, '_>) -> PyResult<Option<Arc<Weights>>> {
    let Some(given) = named.take::<Vec<(String, Bound<'_, PyAny>, bool)>>("weight_tensors")? else { return Ok(None) };
    let names: Vec<ExpectedInput> = given.iter().map(|(name, ..)| ExpectedInput::any(name)).collect();
    let objects: Vec<Bound<'_, PyAny>> = given.iter().map(|(_, object, _)| object.clone()).collect();
    let mut out = Weights::default();
    let mut storages: BTreeMap<usize, usize> = BTreeMap::new();
    for ((name, _, is_param), made) in given.iter().zip(inputs(&objects, &names)?.values) {
        // A state dict may hold other things beside tensors.
        let RunValue::Tensor(tensor) = made else { continue };
        let at = *storages.entry(tensor.storage().id()).or_insert_with(|| {
            out.storages.push(Bytes::from_owner(tensor.storage().to_vec()));
            out.storages.len() - 1
        });
        out.tensors.insert(name.as_str().into(), weight(&tensor, at, *is_param));
    }
    Ok(Some(Arc::new(out)))
}

fn weight(tensor: &RawTensor, storage: usize, is_param: bool) -> Weight {
    Weight { storage, dtype: tensor.dtype(), layout: tensor.layout().clone(), is_param, requires_grad: is_param }
}
