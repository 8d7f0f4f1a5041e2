//! Functions that ask for sizes and types, make tensors from Python values, or are TorchScript's own.

use super::expressions::refused;
use super::{Evaluator, code_of_dtype, dtype_of_code, numbers};
use crate::record::{KnownContent, TensorRef};
use crate::value::{KeywordArgs, PyValue};
use restride_exec::eager;
use restride_ir::{Arg, DType, Error, Expr, Result, TensorType};
use restride_tensor::Layout;
use std::sync::Arc;

impl Evaluator<'_, '_> {
    /// `ops.prim.NAME(...)`
    pub(crate) fn call_prim(
        &mut self,
        name: &str,
        args: Vec<PyValue>,
        kwargs: Vec<(Arc<str>, PyValue)>,
    ) -> Result<PyValue> {
        let arg = |i: usize| args.get(i).cloned().ok_or_else(|| refused(format!("ops.prim.{name} lacks an argument")));
        let tensor = |i: usize| match args.get(i) {
            Some(PyValue::Tensor(t)) => Ok(t.clone()),
            other => Err(refused(format!(
                "ops.prim.{name} needs a tensor, got {}",
                other.map_or("nothing".into(), PyValue::kind)
            ))),
        };
        Ok(match name {
            "NumToTensor" => {
                let e = self.number(&arg(0)?)?;
                PyValue::Tensor(self.rec.scalar_tensor(&e, numbers::dtype_of(&e))?)
            }
            "dtype" => match self.dialect {
                super::Dialect::TorchScript(_) | super::Dialect::JitIr => {
                    PyValue::int(code_of_dtype(tensor(0)?.dtype()))
                }
                super::Dialect::Python => PyValue::DType(tensor(0)?.dtype()),
            },
            "device" => PyValue::Device("cpu".into()),
            "layout" => PyValue::int(0),
            "data" => self.dispatch("aten", "detach", &[arg(0)?], &[])?,
            "grad" => return Err(Error::unsupported("the gradient of a tensor in TorchScript code")),
            "requires_grad" => PyValue::bool(!self.rec.no_grad && self.rec.requires_grad(&tensor(0)?)),
            "is_cuda" | "is_xpu" | "is_sparse" | "is_sparse_csr" | "is_quantized" | "is_mkldnn" | "is_vulkan"
            | "is_mps" | "is_mtia" | "is_ipu" | "is_maia" | "is_meta" | "is_nested" => PyValue::bool(false),
            "is_cpu" | "is_leaf" => PyValue::bool(true),
            "itemsize" => PyValue::int(tensor(0)?.dtype().size() as i64),
            "nbytes" => {
                let n = self.rec.numel(&tensor(0)?);
                PyValue::Num(numbers::binary("mul", &n, &Expr::Int(tensor(0)?.dtype().size() as i64))?.unwrap_or(n))
            }
            "shape" => self.call_torch("size", args, kwargs)?,
            "T" | "mT" | "H" | "mH" | "real" | "imag" => {
                let found = self.tensor_attribute(&tensor(0)?, name)?;
                found.ok_or_else(|| refused(format!("a tensor has no attribute {name}")))?
            }
            "tolist" => self.listed(&tensor(0)?)?,
            "TupleIndex" => self.get_item(arg(0)?, arg(1)?)?,
            "unchecked_unwrap_optional" => match arg(0)? {
                PyValue::None => return Err(refused("Unwrapping null optional")),
                PyValue::Maybe(maybe) => maybe.value.clone(),
                v => v,
            },
            "unchecked_cast" => match arg(0)? {
                PyValue::Maybe(maybe) => maybe.value.clone(),
                v => v,
            },
            "min" | "max" => match &args[..] {
                [PyValue::Num(a), PyValue::Num(b)] => PyValue::Num(numbers::binary(name, a, b)?.unwrap_or(a.clone())),
                [PyValue::List(_)] => self.call_path(name, args, Vec::new())?,
                _ => return Err(refused(format!("ops.prim.{name} of these values"))),
            },
            "abs" => self.unary_call("abs", arg(0)?)?,
            "rangelist" => {
                let n = self.known_int(&arg(0)?, "a length")?;
                self.step(n.max(0) as u64)?;
                PyValue::list((0..n).map(PyValue::int).collect())
            }
            "index" => PyValue::None,
            "type" => PyValue::str("cpu"),
            "value" | "name" => arg(0)?,
            "profile" | "BailOut" => arg(0)?,
            "AutogradAllNonZero" | "AutogradAllZero" => PyValue::bool(false),
            "RaiseException" => {
                let message = self.text(&arg(0)?)?.unwrap_or_default();
                return Err(refused(format!("the code raises: {message}")));
            }
            _ => return Err(Error::unsupported(format!("the TorchScript operator prim::{name}"))),
        })
    }

    /// Functions of `torch` that are not operators of the table; `None` for all others.
    pub(crate) fn call_meta(&mut self, name: &str, args: &[PyValue], kwargs: &KeywordArgs) -> Result<Option<PyValue>> {
        let first = args.first().or_else(|| kwargs.iter().find(|k| matches!(&*k.0, "self" | "input")).map(|k| &k.1));
        let tensor = match first {
            Some(PyValue::Tensor(t)) => Some(t.clone()),
            _ => None,
        };
        if let Some(t) = tensor
            && let Some(value) = self.about_tensor(&t, name, args, kwargs)?
        {
            return Ok(Some(value));
        }
        Ok(Some(match name {
            "tensor" | "as_tensor" | "asarray" if !matches!(first, Some(PyValue::Tensor(_))) => {
                let data = first.cloned().ok_or_else(|| refused("tensor() of nothing"))?;
                let position = if name == "tensor" { None } else { args.get(1) };
                let dtype = kwargs.iter().find(|k| &*k.0 == "dtype").map(|k| &k.1).or(position);
                let dtype = match dtype {
                    Some(v) => self.dtype(v)?,
                    None => None,
                };
                PyValue::Tensor(self.make_tensor(&data, dtype)?)
            }
            "tensor" => {
                let Some(PyValue::Tensor(t)) = first else { return Ok(None) };
                let copy = self.rec.clone_of(&t.clone())?;
                let dtype = kwargs.iter().find(|k| &*k.0 == "dtype").map(|k| k.1.clone());
                match dtype {
                    Some(d) => self.convert(&copy, &[d])?,
                    None => PyValue::Tensor(copy),
                }
            }
            "__range_length" => {
                let n = [0, 1, 2].map(|i| args.get(i).cloned().unwrap_or(PyValue::None));
                let step = self.known_int(&n[2], "a step")?;
                if step == 0 {
                    return Err(refused("range() arg 3 must not be zero"));
                }
                match (self.number(&n[0])?, self.number(&n[1])?) {
                    (Expr::Int(lo), Expr::Int(hi)) => {
                        let span = if step > 0 { hi.saturating_sub(lo) } else { lo.saturating_sub(hi) };
                        let by = step.saturating_abs();
                        PyValue::int(if span <= 0 { 0 } else { (span - 1) / by + 1 })
                    }
                    (lo, hi) => {
                        let (a, b) = if step > 0 { (&lo, &hi) } else { (&hi, &lo) };
                        let span = numbers::binary("sub", b, a)?.ok_or_else(|| refused("a range"))?;
                        let by = step.saturating_abs();
                        let up =
                            numbers::binary("add", &span, &Expr::Int(by - 1))?.ok_or_else(|| refused("a range"))?;
                        let n = numbers::binary("floordiv", &up, &Expr::Int(by))?.ok_or_else(|| refused("a range"))?;
                        PyValue::Num(numbers::binary("max", &n, &Expr::Int(0))?.ok_or_else(|| refused("a range"))?)
                    }
                }
            }
            "__derive_index" => {
                let [i, start, step] = args else { return Err(refused("__derive_index takes three integers")) };
                let by = self.operator_call("mul", i.clone(), step.clone())?;
                self.operator_call("add", start.clone(), by)?
            }
            "device" => self.call_path("torch.device", args.to_vec(), Vec::new())?,
            "is_grad_enabled" => PyValue::bool(!self.rec.no_grad),
            "set_grad_enabled" | "_set_grad_enabled" | "_C._set_grad_enabled" => {
                if let Some(PyValue::Num(Expr::Bool(on))) = first {
                    self.rec.no_grad = !on;
                }
                PyValue::None
            }
            "no_grad" | "inference_mode" => {
                self.rec.no_grad = true;
                PyValue::None
            }
            "enable_grad" => {
                self.rec.no_grad = false;
                PyValue::None
            }
            "is_autocast_enabled" | "is_autocast_cpu_enabled" | "is_tracing" | "is_cuda" => PyValue::bool(false),
            "is_scripting" => PyValue::bool(true),
            "warn" | "print" | "manual_seed" | "seed" | "_assert" if name != "_assert" => PyValue::None,
            "_assert" => {
                let message = match args.get(1) {
                    Some(PyValue::Str(s)) => s.clone(),
                    _ => "".into(),
                };
                let condition = first.cloned().unwrap_or(PyValue::None);
                if !self.require(condition, &message)? {
                    return Err(refused(format!("the code raises: {message}")));
                }
                PyValue::None
            }
            "_unwrap_optional" => match first {
                None | Some(PyValue::None) => return Err(refused("Unwrapping null optional")),
                Some(PyValue::Maybe(maybe)) => {
                    self.require(PyValue::Tensor(maybe.is_set.clone()), "Unwrapping null optional")?;
                    maybe.value.clone()
                }
                Some(v) => v.clone(),
            },
            "is_tensor" => PyValue::bool(matches!(first, Some(PyValue::Tensor(_)))),
            "Size" => PyValue::tuple(self.unpacked(first.unwrap_or(&PyValue::None))?),
            "promote_types" | "result_type" | "can_cast" | "grad" | "backward" | "save" | "wait" | "fork" => {
                return Err(Error::unsupported(format!("torch.{name} in TorchScript code")));
            }
            "is_floating_point" | "is_complex" => match first {
                Some(PyValue::DType(d)) => {
                    PyValue::bool(if name == "is_complex" { d.is_complex() } else { d.is_float() })
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// What is asked of a tensor without reading its elements.
    fn about_tensor(
        &mut self,
        t: &TensorRef,
        name: &str,
        args: &[PyValue],
        kwargs: &KeywordArgs,
    ) -> Result<Option<PyValue>> {
        let ty = t.ty();
        let option =
            |n: &str, i: usize| kwargs.iter().find(|k| &*k.0 == n).map(|k| k.1.clone()).or(args.get(i).cloned());
        Ok(Some(match name {
            "size" | "stride" => {
                let all = if name == "size" { &ty.layout.sizes } else { &ty.layout.strides };
                match option("dim", 1) {
                    None | Some(PyValue::None) => PyValue::ints(all.to_vec()),
                    Some(d) => {
                        let d = self.known_int(&d, "a dimension")?;
                        let d = ty.layout.dim(d).map_err(|e| refused(e.to_string()))?;
                        PyValue::Num(all[d].clone())
                    }
                }
            }
            "shape" => PyValue::ints(ty.layout.sizes.to_vec()),
            "_shape_as_tensor" => {
                PyValue::Tensor(self.make_tensor(&PyValue::ints(ty.layout.sizes.to_vec()), Some(DType::I64))?)
            }
            "dim" | "ndimension" => PyValue::int(ty.rank() as i64),
            "numel" | "nelement" => PyValue::Num(self.rec.numel(t)),
            "element_size" => PyValue::int(ty.dtype.size() as i64),
            "len" => match ty.layout.sizes.first() {
                Some(n) => PyValue::Num(n.clone()),
                None => return Err(refused("len() of a 0-d tensor")),
            },
            "storage_offset" => PyValue::Num(ty.layout.offset.clone()),
            "is_floating_point" => PyValue::bool(ty.dtype.is_float()),
            "is_complex" => PyValue::bool(ty.dtype.is_complex()),
            "is_signed" => PyValue::bool(!matches!(ty.dtype, DType::U8 | DType::Bool)),
            "is_contiguous" => {
                let format = option("memory_format", 1);
                self.contiguous(&ty, format.as_ref())?
            }
            "is_cuda" | "is_sparse" | "is_inference" | "is_pinned" | "is_conj" | "is_neg" | "is_quantized" => {
                PyValue::bool(false)
            }
            "is_same_size" => match args.get(1) {
                Some(PyValue::Tensor(o)) => PyValue::bool(o.ty().layout.sizes == ty.layout.sizes),
                _ => return Ok(None),
            },
            "item" | "_local_scalar_dense" => PyValue::Num(self.rec.item(t)?),
            "tolist" => self.listed(t)?,
            "requires_grad_" | "retain_grad" => PyValue::Tensor(t.clone()),
            "set_requires_grad" => PyValue::None,
            "cpu" | "cuda" | "to_dense" | "pin_memory" => PyValue::Tensor(t.clone()),
            "to" | "type" => self.convert(t, &all_of(&args[1.min(args.len())..], kwargs))?,
            "float" | "double" | "half" | "bfloat16" | "int" | "long" | "short" | "char" | "byte" | "bool" => {
                let dtype = match name {
                    "float" => "float32",
                    "double" => "float64",
                    "half" => "float16",
                    "int" => "int32",
                    "long" => "int64",
                    "short" => "int16",
                    "char" => "int8",
                    "byte" => "uint8",
                    other => other,
                };
                let dtype =
                    DType::from_name(dtype).ok_or_else(|| Error::unsupported(format!("element type {dtype}")))?;
                self.convert(t, &[PyValue::DType(dtype)])?
            }
            "backward" | "grad" | "register_hook" => {
                return Err(Error::unsupported(format!("{name} of a tensor in the program's code")));
            }
            "new_tensor" => {
                let data = args.get(1).cloned().unwrap_or(PyValue::None);
                let dtype = match kwargs.iter().find(|k| &*k.0 == "dtype") {
                    Some((_, v)) => self.dtype(v)?,
                    None => Some(ty.dtype),
                };
                PyValue::Tensor(self.make_tensor(&data, dtype)?)
            }
            "apply_" | "map_" | "numpy" => return Err(Error::unsupported(format!("{name} of a tensor"))),
            "repeat" | "expand" | "view" | "reshape" | "permute" | "flip" | "tile"
                if args.len() > 2 || matches!(args.get(1), Some(PyValue::Num(_))) =>
            {
                if name == "view" && matches!(args.get(1), Some(PyValue::DType(_))) {
                    return Ok(None);
                }
                // Sizes as single arguments, as methods take them.
                let mut call = vec![args[0].clone(), PyValue::list(args[1..].to_vec())];
                if !args[1..].iter().all(|a| matches!(a, PyValue::Num(_) | PyValue::Tensor(_))) {
                    call = args.to_vec();
                }
                self.dispatch("aten", name, &call, kwargs)?
            }
            _ => return Ok(None),
        }))
    }

    fn contiguous(&mut self, ty: &TensorType, format: Option<&PyValue>) -> Result<PyValue> {
        let wanted = match format {
            None | Some(PyValue::None | PyValue::Num(Expr::Int(0))) => true,
            Some(PyValue::MemoryFormat(m)) => *m == restride_ir::MemoryFormat::Contiguous,
            _ => false,
        };
        if wanted {
            return match ty.known() {
                Some(known) => Ok(PyValue::bool(known.layout.is_contiguous())),
                None => Ok(PyValue::bool(ty.layout.is_contiguous())),
            };
        }
        let Some(known) = ty.known() else { return Ok(PyValue::bool(false)) };
        let order: &[usize] = match known.rank() {
            4 => &[0, 2, 3, 1],
            5 => &[0, 2, 3, 4, 1],
            _ => return Ok(PyValue::bool(false)),
        };
        let like = Layout::permuted(&known.layout.sizes, order);
        let same = (0..known.rank()).all(|d| known.layout.sizes[d] == 1 || known.layout.strides[d] == like.strides[d]);
        Ok(PyValue::bool(same))
    }

    /// The element type that a value names.
    pub(crate) fn dtype(&self, value: &PyValue) -> Result<Option<DType>> {
        match value {
            PyValue::None => Ok(None),
            PyValue::DType(d) => Ok(Some(*d)),
            PyValue::Num(Expr::Int(i)) => {
                dtype_of_code(*i).map(Some).ok_or_else(|| Error::unsupported(format!("element type number {i}")))
            }
            other => Err(refused(format!("{} as a dtype", other.kind()))),
        }
    }

    /// `t.to(...)` in all its forms.
    pub(crate) fn convert(&mut self, t: &TensorRef, options: &[PyValue]) -> Result<PyValue> {
        let mut dtype: Option<DType> = None;
        let mut flags = Vec::new();
        let mut format = Arg::None;
        for (i, v) in options.iter().enumerate() {
            match v {
                PyValue::DType(d) => dtype = Some(*d),
                PyValue::Num(Expr::Bool(b)) => flags.push(*b),
                // TorchScript's numbers: a memory format comes after the flags.
                // A second number before the flags is a layout.
                PyValue::Num(Expr::Int(_)) if flags.is_empty() && dtype.is_some() => {}
                PyValue::Num(Expr::Int(code)) if flags.is_empty() => dtype = self.dtype(&PyValue::int(*code))?,
                PyValue::Num(Expr::Int(code)) => {
                    format = match code {
                        0 => Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous),
                        2 => Arg::MemoryFormat(restride_ir::MemoryFormat::ChannelsLast),
                        3 => Arg::MemoryFormat(restride_ir::MemoryFormat::ChannelsLast3d),
                        _ => Arg::None,
                    }
                }
                PyValue::MemoryFormat(m) => format = Arg::MemoryFormat(*m),
                PyValue::Tensor(other) => dtype = Some(other.dtype()),
                PyValue::Str(s) => {
                    let name = s.trim_start_matches("torch.").trim_end_matches("Tensor").to_string();
                    match (DType::from_name(&name), i) {
                        (Some(d), _) => dtype = Some(d),
                        (None, _) => self.note_device(s),
                    }
                }
                PyValue::Device(_) | PyValue::None | PyValue::Strided => {}
                other => return Err(refused(format!("to() of {}", other.kind()))),
            }
        }
        let copy = flags.get(1).copied().unwrap_or(false);
        let dtype = dtype.unwrap_or(t.dtype());
        let args = vec![
            Arg::Value(t.clone()),
            Arg::DType(dtype),
            Arg::Scalar(Expr::Bool(false)),
            Arg::Scalar(Expr::Bool(copy)),
            format,
        ];
        Ok(PyValue::Tensor(self.rec.tensor("aten.to.dtype", args)?))
    }

    /// `t.tolist()`
    fn listed(&mut self, t: &TensorRef) -> Result<PyValue> {
        if t.rank() == 0 {
            return Ok(PyValue::Num(self.rec.item(t)?));
        }
        if let Some(elements) = self.rec.known_elements(t) {
            let sizes: Option<Vec<i64>> = t.ty().layout.sizes.iter().map(restride_ir::Dim::known).collect();
            if let Some(sizes) = sizes {
                return Ok(nested(&sizes, &mut elements.into_iter()));
            }
        }
        let parts = self.unpacked(&PyValue::Tensor(t.clone()))?;
        if parts.len() > 256 {
            return Err(Error::unsupported("tolist of a tensor with more than 256 elements that data decides"));
        }
        let mut out = Vec::new();
        for part in parts {
            let PyValue::Tensor(part) = part else { return Err(Error::invalid("a part that is no tensor")) };
            out.push(self.listed(&part)?);
        }
        Ok(PyValue::list(out))
    }

    /// A tensor with the elements of a number or of nested lists.
    pub(crate) fn make_tensor(&mut self, data: &PyValue, dtype: Option<DType>) -> Result<TensorRef> {
        let (mut sizes, mut elements) = (Vec::new(), Vec::new());
        flatten(data, 0, &mut sizes, &mut elements)?;
        let default = if elements.is_empty() || elements.iter().any(|e| matches!(e, PyValue::Complex(..))) {
            if elements.is_empty() { DType::F32 } else { DType::C64 }
        } else if elements.iter().any(is_float) {
            DType::F32
        } else if elements.iter().all(is_bool) {
            DType::Bool
        } else {
            DType::I64
        };
        let dtype = dtype.unwrap_or(default);
        if sizes.is_empty()
            && let [PyValue::Num(e)] = &elements[..]
        {
            return self.rec.scalar_tensor(e, dtype);
        }
        let known: Option<Vec<f64>> = elements
            .iter()
            .map(|e| match e {
                PyValue::Num(e) => e.constant().map(|c| c.as_f64()),
                _ => None,
            })
            .collect();
        // Numbers of 64 bits pass through floats unchanged up to 2^53.
        if let Some(data) = known.filter(|d| !d.is_empty() && d.iter().all(|x| !(x.abs() > 9e15 && x.is_finite())))
            && !dtype.is_complex()
        {
            let wide = eager::Tensor::from_slice(&data, &sizes)?;
            let cast = eager::call_op("aten._to_copy.default", &[Arg::Value(wide), Arg::DType(dtype)])?;
            let Some(cast) = cast.first().and_then(|v| v.tensor().cloned()) else {
                return Err(Error::invalid("a cast gives no tensor"));
            };
            let constant = self.constant_tensor(&cast)?;
            let copy = self.rec.tensor("aten.lift_fresh_copy.default", vec![Arg::Value(constant)])?;
            self.rec.set_known(&copy, KnownContent::Data(cast));
            return Ok(copy);
        }
        let mut parts = Vec::new();
        for e in &elements {
            parts.push(Some(match e {
                PyValue::Num(e) => self.rec.scalar_tensor(e, dtype)?,
                PyValue::Tensor(t) => match self.convert(t, &[PyValue::DType(dtype)])? {
                    PyValue::Tensor(t) => t,
                    _ => return Err(Error::invalid("a cast gives no tensor")),
                },
                PyValue::Complex(re, im) => {
                    let none: Vec<Expr> = Vec::new();
                    let args = vec![Arg::Scalars(none), Arg::Complex(*re, *im), Arg::DType(dtype)];
                    self.rec.tensor("aten.full.default", args)?
                }
                other => return Err(refused(format!("a tensor of {}", other.kind()))),
            }));
        }
        let sizes: Vec<Expr> = sizes.into_iter().map(Expr::Int).collect();
        if parts.is_empty() {
            return self.rec.tensor("aten.empty.memory_format", vec![Arg::Scalars(sizes), Arg::DType(dtype)]);
        }
        let flat = self.rec.tensor("aten.stack.default", vec![Arg::Values(parts)])?;
        self.rec.tensor("aten.reshape.default", vec![Arg::Value(flat), Arg::Scalars(sizes)])
    }

    /// An input of the program for a constant tensor.
    fn constant_tensor(&mut self, data: &eager::Tensor) -> Result<TensorRef> {
        let raw = data.to_raw()?;
        self.rec.constant(raw.dtype(), &raw.layout().sizes, raw.storage().to_vec())
    }

    /// The value of a constant of the archive.
    pub(crate) fn constant_value(&mut self, value: PyValue, _path: &str) -> Result<PyValue> {
        Ok(value)
    }
}

fn is_float(v: &PyValue) -> bool {
    match v {
        PyValue::Num(e) => e.is_float(),
        PyValue::Tensor(t) => t.dtype().is_float(),
        _ => false,
    }
}

fn is_bool(v: &PyValue) -> bool {
    match v {
        PyValue::Num(e) => e.is_bool(),
        PyValue::Tensor(t) => t.dtype() == DType::Bool,
        _ => false,
    }
}

fn all_of(args: &[PyValue], kwargs: &KeywordArgs) -> Vec<PyValue> {
    let mut out = args.to_vec();
    // `copy=True` counts as the second flag.
    for (name, v) in kwargs {
        match (&**name, v) {
            ("copy", PyValue::Num(Expr::Bool(true))) => out.extend([PyValue::bool(false), PyValue::bool(true)]),
            ("copy" | "non_blocking", _) => {}
            ("memory_format", PyValue::Num(Expr::Int(code))) => out.push(match code {
                0 => PyValue::MemoryFormat(restride_ir::MemoryFormat::Contiguous),
                2 => PyValue::MemoryFormat(restride_ir::MemoryFormat::ChannelsLast),
                3 => PyValue::MemoryFormat(restride_ir::MemoryFormat::ChannelsLast3d),
                _ => PyValue::None,
            }),
            _ => out.push(v.clone()),
        }
    }
    out
}

/// Elements and sizes of nested lists.
fn flatten(data: &PyValue, depth: usize, sizes: &mut Vec<i64>, out: &mut Vec<PyValue>) -> Result<()> {
    let Some(items) = data.items() else {
        if depth != sizes.len() {
            return Err(refused("expected sequences of equal length"));
        }
        out.push(data.clone());
        return Ok(());
    };
    if depth > 16 {
        return Err(refused("too many dimensions"));
    }
    if sizes.len() == depth {
        sizes.push(items.len() as i64);
    } else if sizes[depth] != items.len() as i64 {
        return Err(refused("expected sequences of equal length"));
    }
    items.iter().try_for_each(|i| flatten(i, depth + 1, sizes, out))
}

/// Nested lists of these sizes.
fn nested(sizes: &[i64], elements: &mut impl Iterator<Item = Expr>) -> PyValue {
    match sizes {
        [] => elements.next().map_or(PyValue::None, PyValue::Num),
        [n, rest @ ..] => PyValue::list((0..*n).map(|_| nested(rest, elements)).collect()),
    }
}
