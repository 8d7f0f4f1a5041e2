//! How a session of a graph of `torch.compile` finds its arguments, and how its results are made.

use crate::dlpack::{DLDataType, DLTensor, data_type};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};
use restride::{DType, Layout, RunValue, Scalar};

/// An argument that a session takes.
pub enum InputForm {
    /// A tensor of an element type, at a multiple of these bytes, with sizes and, behind them, strides.
    Tensor { dtype: DLDataType, align: usize, numbers: Box<[i64]> },
    /// A number or `None`.
    Value(RunValue),
}

/// Memory that PyTorch makes for a result, whose first element is the memory's.
pub struct FreshForm {
    /// Sizes, strides and element type, as PyTorch takes them.
    pub arguments: Py<PyTuple>,
    pub layout: Layout,
    pub own: DType,
    pub bytes: usize,
}

/// Memory that outputs are views of.
pub struct BaseForm {
    pub form: FreshForm,
    /// The output that is made in its place.
    pub shown: Option<usize>,
}

/// How an output is made.
pub enum OutputForm {
    /// Memory of its own.
    Fresh(FreshForm),
    /// The only view of a base, of all of it: made for the base.
    Whole(FreshForm),
    /// A view of a base: sizes, strides and offset, in its own element type.
    OfBase { base: usize, dtype: Py<PyAny>, own: DType, layout: Layout, arguments: Py<PyTuple> },
    /// An argument as it is.
    Argument { argument: usize },
    /// A view of an argument.
    View { argument: usize, layout: Layout },
    /// A view of an argument in another element type.
    Retyped { argument: usize, dtype: Py<PyAny>, own: DType, layout: Layout },
    /// A number.
    Number(Scalar),
    /// `None`.
    Nothing,
}

impl InputForm {
    /// The form of a value.
    pub fn of(value: &RunValue) -> InputForm {
        match value {
            RunValue::Tensor(t) => InputForm::Tensor {
                dtype: data_type(t.dtype()),
                align: t.dtype().align(),
                numbers: t.layout().sizes.iter().chain(&t.layout().strides).copied().collect(),
            },
            other => InputForm::Value(other.clone()),
        }
    }

    /// Whether the argument, which is a tensor where its memory is lent, is one of these.
    pub fn fits(&self, argument: &Bound<'_, PyAny>, lent: Option<&DLTensor>, position: usize) -> PyResult<bool> {
        let (dtype, align, numbers, lent) = match (self, lent) {
            (InputForm::Tensor { dtype, align, numbers }, Some(lent)) => (dtype, align, numbers, lent),
            (InputForm::Value(value), None) => return Ok(alike(&number(argument, position)?, value)),
            _ => return Ok(false),
        };
        // Kernels read elements where their type may be, and opening a session refuses what is elsewhere.
        let (at, rank) = (lent.start().addr(), numbers.len() / 2);
        if !at.is_multiple_of(*align) || at == 0 && !numbers[..rank].contains(&0) {
            return Ok(false);
        }
        if lent.dtype != *dtype || lent.ndim as usize != rank || lent.device != DLTensor::EMPTY.device {
            return Ok(false);
        }
        if rank == 0 {
            return Ok(true);
        }
        // SAFETY: the lender promises `ndim` numbers each, and the tensor lives as long as the call.
        let same = |own: *mut i64, want: &[i64]| unsafe { std::slice::from_raw_parts(own.cast_const(), rank) } == want;
        let (sizes, strides) = numbers.split_at(rank);
        Ok(!lent.strides.is_null() && same(lent.shape, sizes) && same(lent.strides, strides))
    }
}

/// An argument that is no tensor.
pub fn number(argument: &Bound<'_, PyAny>, position: usize) -> PyResult<RunValue> {
    if argument.is_none() {
        return Ok(RunValue::None);
    }
    let value = if argument.is_exact_instance_of::<PyBool>() {
        Scalar::Bool(argument.extract()?)
    } else if argument.is_instance_of::<PyInt>() {
        Scalar::Int(argument.extract()?)
    } else if argument.is_instance_of::<PyFloat>() {
        Scalar::Float(argument.extract()?)
    } else {
        let class = argument.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(format!("argument {position} is a {class}, neither a tensor nor a number")));
    };
    Ok(RunValue::Scalar(value))
}

/// Whether a number or `None` is another one.
fn alike(a: &RunValue, b: &RunValue) -> bool {
    match (a, b) {
        (RunValue::Scalar(a), RunValue::Scalar(b)) => a == b,
        (RunValue::None, RunValue::None) => true,
        _ => false,
    }
}
