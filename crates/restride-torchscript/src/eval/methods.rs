//! Methods and attributes of values, as Python code writes them.

use super::expressions::refused;
use super::{Dialect, Evaluator, code_of_dtype};
use crate::record::TensorRef;
use crate::value::PyValue;
use restride_ir::{Arg, DType, Expr, Result};
use std::sync::Arc;

/// The operator of a reflected method of Python.
fn reflected(method: &str) -> Option<&'static str> {
    Some(match method {
        "__radd__" => "add",
        "__rsub__" => "sub",
        "__rmul__" => "mul",
        "__rdiv__" | "__rtruediv__" => "truediv",
        "__rfloordiv__" => "floordiv",
        "__rmod__" => "mod",
        "__rpow__" => "pow",
        "__rmatmul__" => "matmul",
        "__rand__" => "and_",
        "__ror__" => "or_",
        "__rxor__" => "xor",
        "__rlshift__" => "lshift",
        "__rrshift__" => "rshift",
        _ => return None,
    })
}

impl Evaluator<'_, '_> {
    /// Calls a method of a value that is no object of the code.
    pub(crate) fn value_method(
        &mut self,
        base: PyValue,
        name: &str,
        args: Vec<PyValue>,
        kwargs: Vec<(Arc<str>, PyValue)>,
    ) -> Result<PyValue> {
        match &base {
            PyValue::List(l) => match self.list_method(&l.clone(), name, &args)? {
                Some(v) => Ok(v),
                None => Err(refused(format!("a list has no method {name}"))),
            },
            PyValue::Dict(d) => match self.dict_method(&d.clone(), name, &args)? {
                Some(v) => Ok(v),
                None => Err(refused(format!("a dict has no method {name}"))),
            },
            PyValue::Str(s) => match self.string_method(&s.clone(), name, &args)? {
                Some(v) => Ok(v),
                None => Err(refused(format!("a str has no method {name}"))),
            },
            PyValue::Tuple(..) if matches!(name, "index" | "count" | "numel") => {
                let items = base.items().unwrap_or_default();
                if name == "numel" {
                    let mut out = PyValue::int(1);
                    for item in items {
                        out = self.operator_call("mul", out, item)?;
                    }
                    return Ok(out);
                }
                self.value_method(PyValue::list(items), name, args, kwargs)
            }
            PyValue::Tensor(_) => {
                // Operators whose schema has the tensor behind another argument.
                if let ("where" | "polygamma", [first, rest @ ..]) = (name, &args[..]) {
                    let mut all = vec![first.clone(), base];
                    all.extend_from_slice(rest);
                    return self.call_torch(name, all, kwargs);
                }
                if let ("cfloat" | "cdouble", []) = (name, &args[..]) {
                    let dtype = if name == "cfloat" { DType::C64 } else { DType::C128 };
                    return self.call_torch("to", vec![base, PyValue::DType(dtype)], kwargs);
                }
                // `1 - x` is `x.__rsub__(1)`.
                if let (Some(op), [other]) = (reflected(name), &args[..]) {
                    return self.operator_call(op, other.clone(), base);
                }
                let name = match name {
                    "__add__" => "add",
                    "__sub__" => "sub",
                    "__mul__" => "mul",
                    "__truediv__" => "div",
                    "__matmul__" => "matmul",
                    "__div__" => "div",
                    "__floordiv__" => "floor_divide",
                    "__mod__" => "remainder",
                    "__pow__" => "pow",
                    "__neg__" => "neg",
                    "__abs__" => "abs",
                    "__invert__" => "bitwise_not",
                    "__eq__" => "eq",
                    "__ne__" => "ne",
                    "__lt__" => "lt",
                    "__le__" => "le",
                    "__gt__" => "gt",
                    "__ge__" => "ge",
                    "__iadd__" => "add_",
                    "__isub__" => "sub_",
                    "__imul__" => "mul_",
                    "__itruediv__" | "__idiv__" => "div_",
                    "__len__" => "len",
                    "__getitem__" => return self.get_item(base, args.into_iter().next().unwrap_or(PyValue::None)),
                    "__setitem__" => {
                        let mut args = args.into_iter();
                        let (index, value) =
                            (args.next().unwrap_or(PyValue::None), args.next().unwrap_or(PyValue::None));
                        self.set_item(base, index, value)?;
                        return Ok(PyValue::None);
                    }
                    other => other,
                };
                let mut all = vec![base];
                all.extend(args);
                self.call_torch(name, all, kwargs)
            }
            PyValue::Num(Expr::Float(x)) if name == "is_integer" => Ok(PyValue::bool(x.0.fract() == 0.0)),
            other => Err(refused(format!("{} has no method {name}", other.kind()))),
        }
    }

    /// An attribute of a tensor; `None` for a method.
    pub(crate) fn tensor_attribute(&mut self, t: &TensorRef, name: &str) -> Result<Option<PyValue>> {
        let one =
            |e: &mut Self, op: &str| e.rec.tensor(op, vec![Arg::Value(t.clone())]).map(|t| Some(PyValue::Tensor(t)));
        match name {
            "shape" => Ok(Some(PyValue::tuple(self.rec.sizes(t).into_iter().map(PyValue::Num).collect()))),
            "ndim" => Ok(Some(PyValue::int(t.rank() as i64))),
            "dtype" => Ok(Some(match self.dialect {
                Dialect::Python => PyValue::DType(t.dtype()),
                Dialect::TorchScript(_) | Dialect::JitIr => PyValue::int(code_of_dtype(t.dtype())),
            })),
            "device" => Ok(Some(PyValue::Device("cpu".into()))),
            "layout" => Ok(Some(PyValue::Strided)),
            "requires_grad" => Ok(Some(PyValue::bool(!self.rec.no_grad && self.rec.requires_grad(t)))),
            "is_cuda" | "is_sparse" | "is_quantized" | "is_meta" | "is_mkldnn" => Ok(Some(PyValue::bool(false))),
            "is_leaf" | "is_cpu" => Ok(Some(PyValue::bool(true))),
            "data" => one(self, "aten.detach.default"),
            "grad" | "grad_fn" => Ok(Some(PyValue::None)),
            "T" => one(self, "aten.numpy_T.default"),
            "mT" => one(self, "aten.mT.default"),
            "H" => one(self, "aten.matrix_H.default"),
            "mH" => one(self, "aten.mH.default"),
            "real" => one(self, "aten.real.default"),
            "imag" => one(self, "aten.imag.default"),
            "itemsize" => Ok(Some(PyValue::int(t.dtype().size() as i64))),
            _ => Ok(None),
        }
    }
}
