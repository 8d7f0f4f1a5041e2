//! Constants and functions of `torch.nn.functional` and its like, for graphs that were traced above the operators.

use super::Evaluator;
use crate::value::{Object, Value};
use restride_ir::{DType, Error, MemoryFormat, Result};
use std::rc::Rc;
use std::sync::Arc;

/// A constant by its path.
pub(super) fn constant(path: &str) -> Option<Value> {
    if let Some(name) = path.strip_prefix("torch.") {
        let alias = match name {
            "float" => "float32",
            "double" => "float64",
            "half" => "float16",
            "int" => "int32",
            "long" => "int64",
            "short" => "int16",
            "cfloat" => "complex64",
            "cdouble" => "complex128",
            other => other,
        };
        if let Some(d) = DType::from_name(alias).filter(|_| !alias.contains('.') && alias != "bool" || name == "bool") {
            return Some(Value::DType(d));
        }
        return Some(match name {
            "strided" => Value::Strided,
            "contiguous_format" => Value::MemoryFormat(MemoryFormat::Contiguous),
            "preserve_format" => Value::MemoryFormat(MemoryFormat::Preserve),
            "channels_last" => Value::MemoryFormat(MemoryFormat::ChannelsLast),
            "channels_last_3d" => Value::MemoryFormat(MemoryFormat::ChannelsLast3d),
            "inf" => Value::float(f64::INFINITY),
            "nan" => Value::float(f64::NAN),
            "pi" => Value::float(std::f64::consts::PI),
            "e" => Value::float(std::f64::consts::E),
            _ => return None,
        });
    }
    Some(match path {
        "math.pi" => Value::float(std::f64::consts::PI),
        "math.e" => Value::float(std::f64::consts::E),
        "math.tau" => Value::float(std::f64::consts::TAU),
        "math.inf" => Value::float(f64::INFINITY),
        "math.nan" => Value::float(f64::NAN),
        _ => return None,
    })
}

impl Evaluator<'_, '_> {
    /// Calls a function of PyTorch's Python library; `None` for one that is not known.
    pub(crate) fn call_functional(
        &mut self,
        _path: &str,
        _args: &[Value],
        _kwargs: &[(Arc<str>, Value)],
    ) -> Result<Option<Value>> {
        Ok(None)
    }

    /// Calls a module whose class has no code.
    pub(crate) fn call_module(
        &mut self,
        object: &Rc<Object>,
        _args: Vec<Value>,
        _kwargs: Vec<(Arc<str>, Value)>,
    ) -> Result<Value> {
        Err(Error::unsupported(format!("a call of a module of class {}, whose code is not given", object.class)))
    }
}
