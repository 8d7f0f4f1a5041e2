//! Functions that ask for sizes and types, make tensors from Python values, or are TorchScript's own.

use super::expressions::refused;
use super::{Evaluator, code_of_dtype, dtype_of_code, numbers};
use crate::record::{Known, TensorRef};
use crate::value::Value;
use restride_exec::eager;
use restride_ir::{Arg, DType, Error, Expr, Result, TensorType};
use restride_tensor::Layout;
use std::sync::Arc;

type Kwargs = [(Arc<str>, Value)];

impl Evaluator<'_, '_> {
    /// `ops.prim.NAME(...)`
    pub(crate) fn call_prim(&mut self, name: &str, args: Vec<Value>, kwargs: Vec<(Arc<str>, Value)>) -> Result<Value> {
        let arg = |i: usize| args.get(i).cloned().ok_or_else(|| refused(format!("ops.prim.{name} lacks an argument")));
        let tensor = |i: usize| match args.get(i) {
            Some(Value::Tensor(t)) => Ok(t.clone()),
            other => Err(refused(format!(
                "ops.prim.{name} needs a tensor, got {}",
                other.map_or("nothing".into(), Value::kind)
            ))),
        };
        Ok(match name {
            "NumToTensor" => {
                let e = self.number(&arg(0)?)?;
                let dtype = if e.is_float() {
                    DType::F64
                } else if e.is_bool() {
                    DType::Bool
                } else {
                    DType::I64
                };
                Value::Tensor(self.rec.scalar_tensor(&e, dtype)?)
            }
            "dtype" => match self.dialect {
                super::Dialect::TorchScript(_) | super::Dialect::JitIr => Value::int(code_of_dtype(tensor(0)?.dtype())),
                super::Dialect::Python => Value::DType(tensor(0)?.dtype()),
            },
            "device" => Value::Device("cpu".into()),
            "layout" => Value::int(0),
            "data" => self.dispatch("aten", "detach", &[arg(0)?], &[])?,
            "grad" => return Err(Error::unsupported("the gradient of a tensor in TorchScript code")),
            "requires_grad" => Value::bool(!self.rec.no_grad && self.rec.requires_grad(&tensor(0)?)),
            "is_cuda" | "is_xpu" | "is_sparse" | "is_sparse_csr" | "is_quantized" | "is_mkldnn" | "is_vulkan"
            | "is_mps" | "is_mtia" | "is_ipu" | "is_maia" | "is_meta" | "is_nested" => Value::bool(false),
            "is_cpu" | "is_leaf" => Value::bool(true),
            "itemsize" => Value::int(tensor(0)?.dtype().size() as i64),
            "nbytes" => {
                let n = self.rec.numel(&tensor(0)?);
                Value::Num(numbers::binary("mul", &n, &Expr::Int(tensor(0)?.dtype().size() as i64))?.unwrap_or(n))
            }
            "shape" => self.call_torch("size", args, kwargs)?,
            "T" | "mT" | "H" | "mH" | "real" | "imag" => {
                let found = self.tensor_attribute(&tensor(0)?, name)?;
                found.ok_or_else(|| refused(format!("a tensor has no attribute {name}")))?
            }
            "tolist" => self.listed(&tensor(0)?)?,
            "TupleIndex" => self.get_item(arg(0)?, arg(1)?)?,
            "unchecked_unwrap_optional" => match arg(0)? {
                Value::None => return Err(refused("Unwrapping null optional")),
                v => v,
            },
            "unchecked_cast" => arg(0)?,
            "min" | "max" => match &args[..] {
                [Value::Num(a), Value::Num(b)] => Value::Num(numbers::binary(name, a, b)?.unwrap_or(a.clone())),
                [Value::List(_)] => self.call_path(name, args, Vec::new())?,
                _ => return Err(refused(format!("ops.prim.{name} of these values"))),
            },
            "abs" => self.unary_call("abs", arg(0)?)?,
            "rangelist" => {
                let n = self.known_int(&arg(0)?, "a length")?;
                self.step(n.max(0) as u64)?;
                Value::list((0..n).map(Value::int).collect())
            }
            "index" => Value::None,
            "type" => Value::str("cpu"),
            "value" | "name" => arg(0)?,
            "Print" => Value::None,
            "profile" | "BailOut" => arg(0)?,
            "AutogradAllNonZero" | "AutogradAllZero" => Value::bool(false),
            "RaiseException" => {
                let message = self.text(&arg(0)?);
                return Err(refused(format!("the code raises: {message}")));
            }
            _ => return Err(Error::unsupported(format!("the TorchScript operator prim::{name}"))),
        })
    }

    /// Functions of `torch` that are not operators of the table; `None` for all others.
    pub(crate) fn call_meta(&mut self, name: &str, args: &[Value], kwargs: &Kwargs) -> Result<Option<Value>> {
        let first = args.first().or_else(|| kwargs.iter().find(|k| matches!(&*k.0, "self" | "input")).map(|k| &k.1));
        let tensor = match first {
            Some(Value::Tensor(t)) => Some(t.clone()),
            _ => None,
        };
        if let Some(t) = tensor
            && let Some(value) = self.about_tensor(&t, name, args, kwargs)?
        {
            return Ok(Some(value));
        }
        Ok(Some(match name {
            "tensor" | "as_tensor" | "asarray" if !matches!(first, Some(Value::Tensor(_))) => {
                let data = first.cloned().ok_or_else(|| refused("tensor() of nothing"))?;
                let position = if name == "tensor" { None } else { args.get(1) };
                let dtype = kwargs.iter().find(|k| &*k.0 == "dtype").map(|k| &k.1).or(position);
                let dtype = match dtype {
                    Some(v) => self.dtype(v)?,
                    None => None,
                };
                Value::Tensor(self.make_tensor(&data, dtype)?)
            }
            "tensor" => {
                let Some(Value::Tensor(t)) = first else { return Ok(None) };
                let copy = self.rec.clone_of(&t.clone())?;
                let dtype = kwargs.iter().find(|k| &*k.0 == "dtype").map(|k| k.1.clone());
                match dtype {
                    Some(d) => self.convert(&copy, &[d])?,
                    None => Value::Tensor(copy),
                }
            }
            "__range_length" => {
                let n = [0, 1, 2].map(|i| args.get(i).cloned().unwrap_or(Value::None));
                let step = self.known_int(&n[2], "a step")?;
                if step == 0 {
                    return Err(refused("range() arg 3 must not be zero"));
                }
                match (self.number(&n[0])?, self.number(&n[1])?) {
                    (Expr::Int(lo), Expr::Int(hi)) => {
                        let span = if step > 0 { hi.saturating_sub(lo) } else { lo.saturating_sub(hi) };
                        let by = step.saturating_abs();
                        Value::int(if span <= 0 { 0 } else { (span - 1) / by + 1 })
                    }
                    (lo, hi) => {
                        let (a, b) = if step > 0 { (&lo, &hi) } else { (&hi, &lo) };
                        let span = numbers::binary("sub", b, a)?.ok_or_else(|| refused("a range"))?;
                        let by = step.saturating_abs();
                        let up =
                            numbers::binary("add", &span, &Expr::Int(by - 1))?.ok_or_else(|| refused("a range"))?;
                        let n = numbers::binary("floordiv", &up, &Expr::Int(by))?.ok_or_else(|| refused("a range"))?;
                        Value::Num(numbers::binary("max", &n, &Expr::Int(0))?.ok_or_else(|| refused("a range"))?)
                    }
                }
            }
            "__derive_index" => {
                let [i, start, step] = args else { return Err(refused("__derive_index takes three integers")) };
                let by = self.operator_call("mul", i.clone(), step.clone())?;
                self.operator_call("add", start.clone(), by)?
            }
            "device" => self.call_path("torch.device", args.to_vec(), Vec::new())?,
            "is_grad_enabled" => Value::bool(!self.rec.no_grad),
            "set_grad_enabled" | "_set_grad_enabled" | "_C._set_grad_enabled" => {
                if let Some(Value::Num(Expr::Bool(on))) = first {
                    self.rec.no_grad = !on;
                }
                Value::None
            }
            "no_grad" | "inference_mode" => {
                self.rec.no_grad = true;
                Value::None
            }
            "enable_grad" => {
                self.rec.no_grad = false;
                Value::None
            }
            "is_autocast_enabled" | "is_autocast_cpu_enabled" | "is_tracing" | "is_cuda" => Value::bool(false),
            "is_scripting" => Value::bool(true),
            "warn" | "print" | "manual_seed" | "seed" | "_assert" if name != "_assert" => Value::None,
            "_assert" => {
                let message = match args.get(1) {
                    Some(Value::Str(s)) => s.clone(),
                    _ => "".into(),
                };
                let condition = first.cloned().unwrap_or(Value::None);
                if !self.require(condition, &message)? {
                    return Err(refused(format!("the code raises: {message}")));
                }
                Value::None
            }
            "_unwrap_optional" => match first {
                None | Some(Value::None) => return Err(refused("Unwrapping null optional")),
                Some(v) => v.clone(),
            },
            "is_tensor" => Value::bool(matches!(first, Some(Value::Tensor(_)))),
            "Size" => Value::tuple(self.unpacked(first.unwrap_or(&Value::None))?),
            "promote_types" | "result_type" | "can_cast" | "grad" | "backward" | "save" | "wait" | "fork" => {
                return Err(Error::unsupported(format!("torch.{name} in TorchScript code")));
            }
            "is_floating_point" | "is_complex" => match first {
                Some(Value::DType(d)) => Value::bool(if name == "is_complex" { d.is_complex() } else { d.is_float() }),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// What is asked of a tensor without reading its elements.
    fn about_tensor(&mut self, t: &TensorRef, name: &str, args: &[Value], kwargs: &Kwargs) -> Result<Option<Value>> {
        let ty = t.ty();
        let option =
            |n: &str, i: usize| kwargs.iter().find(|k| &*k.0 == n).map(|k| k.1.clone()).or(args.get(i).cloned());
        Ok(Some(match name {
            "size" | "stride" => {
                let all = if name == "size" { &ty.layout.sizes } else { &ty.layout.strides };
                match option("dim", 1) {
                    None | Some(Value::None) => Value::ints(all.to_vec()),
                    Some(d) => {
                        let d = self.known_int(&d, "a dimension")?;
                        let d = ty.layout.dim(d).map_err(|e| refused(e.to_string()))?;
                        Value::Num(all[d].clone())
                    }
                }
            }
            "shape" => Value::ints(ty.layout.sizes.to_vec()),
            "_shape_as_tensor" => {
                Value::Tensor(self.make_tensor(&Value::ints(ty.layout.sizes.to_vec()), Some(DType::I64))?)
            }
            "dim" | "ndimension" => Value::int(ty.rank() as i64),
            "numel" | "nelement" => Value::Num(self.rec.numel(t)),
            "element_size" => Value::int(ty.dtype.size() as i64),
            "len" => match ty.layout.sizes.first() {
                Some(n) => Value::Num(n.clone()),
                None => return Err(refused("len() of a 0-d tensor")),
            },
            "storage_offset" => Value::Num(ty.layout.offset.clone()),
            "is_floating_point" => Value::bool(ty.dtype.is_float()),
            "is_complex" => Value::bool(ty.dtype.is_complex()),
            "is_signed" => Value::bool(!matches!(ty.dtype, DType::U8 | DType::Bool)),
            "is_contiguous" => {
                let format = option("memory_format", 1);
                self.contiguous(&ty, format.as_ref())?
            }
            "is_cuda" | "is_sparse" | "is_inference" | "is_pinned" | "is_conj" | "is_neg" | "is_quantized" => {
                Value::bool(false)
            }
            "is_same_size" => match args.get(1) {
                Some(Value::Tensor(o)) => Value::bool(o.ty().layout.sizes == ty.layout.sizes),
                _ => return Ok(None),
            },
            "item" | "_local_scalar_dense" => Value::Num(self.rec.item(t)?),
            "tolist" => self.listed(t)?,
            "requires_grad_" | "retain_grad" => Value::Tensor(t.clone()),
            "set_requires_grad" => Value::None,
            "cpu" | "cuda" | "to_dense" | "pin_memory" => Value::Tensor(t.clone()),
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
                self.convert(t, &[Value::DType(dtype)])?
            }
            "backward" | "grad" | "register_hook" => {
                return Err(Error::unsupported(format!("{name} of a tensor in the program's code")));
            }
            "new_tensor" => {
                let data = args.get(1).cloned().unwrap_or(Value::None);
                let dtype = match kwargs.iter().find(|k| &*k.0 == "dtype") {
                    Some((_, v)) => self.dtype(v)?,
                    None => Some(ty.dtype),
                };
                Value::Tensor(self.make_tensor(&data, dtype)?)
            }
            "apply_" | "map_" | "numpy" => return Err(Error::unsupported(format!("{name} of a tensor"))),
            "repeat" | "expand" | "view" | "reshape" | "permute" | "flip" | "tile"
                if args.len() > 2 || matches!(args.get(1), Some(Value::Num(_))) =>
            {
                if name == "view" && matches!(args.get(1), Some(Value::DType(_))) {
                    return Ok(None);
                }
                // Sizes as single arguments, as methods take them.
                let mut call = vec![args[0].clone(), Value::list(args[1..].to_vec())];
                if !args[1..].iter().all(|a| matches!(a, Value::Num(_) | Value::Tensor(_))) {
                    call = args.to_vec();
                }
                self.dispatch("aten", name, &call, kwargs)?
            }
            _ => return Ok(None),
        }))
    }

    fn contiguous(&mut self, ty: &TensorType, format: Option<&Value>) -> Result<Value> {
        let wanted = match format {
            None | Some(Value::None | Value::Num(Expr::Int(0))) => true,
            Some(Value::MemoryFormat(m)) => *m == restride_ir::MemoryFormat::Contiguous,
            _ => false,
        };
        if wanted {
            return match ty.known() {
                Some(known) => Ok(Value::bool(known.layout.is_contiguous())),
                None => Ok(Value::bool(ty.layout.is_contiguous())),
            };
        }
        let Some(known) = ty.known() else { return Ok(Value::bool(false)) };
        let order: &[usize] = match known.rank() {
            4 => &[0, 2, 3, 1],
            5 => &[0, 2, 3, 4, 1],
            _ => return Ok(Value::bool(false)),
        };
        let like = Layout::permuted(&known.layout.sizes, order);
        let same = (0..known.rank()).all(|d| known.layout.sizes[d] == 1 || known.layout.strides[d] == like.strides[d]);
        Ok(Value::bool(same))
    }

    /// The element type that a value names.
    pub(crate) fn dtype(&self, value: &Value) -> Result<Option<DType>> {
        match value {
            Value::None => Ok(None),
            Value::DType(d) => Ok(Some(*d)),
            Value::Num(Expr::Int(i)) => {
                dtype_of_code(*i).map(Some).ok_or_else(|| Error::unsupported(format!("element type number {i}")))
            }
            other => Err(refused(format!("{} as a dtype", other.kind()))),
        }
    }

    /// `t.to(...)` in all its forms.
    pub(crate) fn convert(&mut self, t: &TensorRef, options: &[Value]) -> Result<Value> {
        let mut dtype: Option<DType> = None;
        let mut flags = Vec::new();
        let mut format = Arg::None;
        for (i, v) in options.iter().enumerate() {
            match v {
                Value::DType(d) => dtype = Some(*d),
                Value::Num(Expr::Bool(b)) => flags.push(*b),
                // TorchScript's numbers: a memory format comes after the flags.
                // A second number before the flags is a layout.
                Value::Num(Expr::Int(_)) if flags.is_empty() && dtype.is_some() => {}
                Value::Num(Expr::Int(code)) if flags.is_empty() => dtype = self.dtype(&Value::int(*code))?,
                Value::Num(Expr::Int(code)) => {
                    format = match code {
                        0 => Arg::MemoryFormat(restride_ir::MemoryFormat::Contiguous),
                        2 => Arg::MemoryFormat(restride_ir::MemoryFormat::ChannelsLast),
                        3 => Arg::MemoryFormat(restride_ir::MemoryFormat::ChannelsLast3d),
                        _ => Arg::None,
                    }
                }
                Value::MemoryFormat(m) => format = Arg::MemoryFormat(*m),
                Value::Tensor(other) => dtype = Some(other.dtype()),
                Value::Str(s) => {
                    let name = s.trim_start_matches("torch.").trim_end_matches("Tensor").to_string();
                    match (DType::from_name(&name), i) {
                        (Some(d), _) => dtype = Some(d),
                        (None, _) => self.note_device(s),
                    }
                }
                Value::Device(_) | Value::None | Value::Strided => {}
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
        Ok(Value::Tensor(self.rec.tensor("aten.to.dtype", args)?))
    }

    /// `t.tolist()`
    fn listed(&mut self, t: &TensorRef) -> Result<Value> {
        if t.rank() == 0 {
            return Ok(Value::Num(self.rec.item(t)?));
        }
        if let Some(elements) = self.rec.known_elements(t) {
            let sizes: Option<Vec<i64>> = t.ty().layout.sizes.iter().map(restride_ir::Dim::known).collect();
            if let Some(sizes) = sizes {
                return Ok(nested(&sizes, &mut elements.into_iter()));
            }
        }
        let parts = self.unpacked(&Value::Tensor(t.clone()))?;
        if parts.len() > 256 {
            return Err(Error::unsupported("tolist of a tensor with more than 256 elements that data decides"));
        }
        let mut out = Vec::new();
        for part in parts {
            let Value::Tensor(part) = part else { return Err(Error::invalid("a part that is no tensor")) };
            out.push(self.listed(&part)?);
        }
        Ok(Value::list(out))
    }

    /// A tensor with the elements of a number or of nested lists.
    pub(crate) fn make_tensor(&mut self, data: &Value, dtype: Option<DType>) -> Result<TensorRef> {
        let (mut sizes, mut elements) = (Vec::new(), Vec::new());
        flatten(data, 0, &mut sizes, &mut elements)?;
        let default = if elements.is_empty() || elements.iter().any(|e| matches!(e, Value::Complex(..))) {
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
            && let [Value::Num(e)] = &elements[..]
        {
            return self.rec.scalar_tensor(e, dtype);
        }
        let known: Option<Vec<f64>> = elements
            .iter()
            .map(|e| match e {
                Value::Num(e) => e.constant().map(|c| c.as_f64()),
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
            self.rec.set_known(&copy, Known::Data(cast));
            return Ok(copy);
        }
        let mut parts = Vec::new();
        for e in &elements {
            parts.push(Some(match e {
                Value::Num(e) => self.rec.scalar_tensor(e, dtype)?,
                Value::Tensor(t) => match self.convert(t, &[Value::DType(dtype)])? {
                    Value::Tensor(t) => t,
                    _ => return Err(Error::invalid("a cast gives no tensor")),
                },
                Value::Complex(re, im) => {
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
    pub(crate) fn constant_value(&mut self, value: Value, _path: &str) -> Result<Value> {
        Ok(value)
    }
}

fn is_float(v: &Value) -> bool {
    match v {
        Value::Num(e) => e.is_float(),
        Value::Tensor(t) => t.dtype().is_float(),
        _ => false,
    }
}

fn is_bool(v: &Value) -> bool {
    match v {
        Value::Num(e) => e.is_bool(),
        Value::Tensor(t) => t.dtype() == DType::Bool,
        _ => false,
    }
}

fn all_of(args: &[Value], kwargs: &Kwargs) -> Vec<Value> {
    let mut out = args.to_vec();
    // `copy=True` counts as the second flag.
    for (name, v) in kwargs {
        match (&**name, v) {
            ("copy", Value::Num(Expr::Bool(true))) => out.extend([Value::bool(false), Value::bool(true)]),
            ("copy" | "non_blocking", _) => {}
            ("memory_format", Value::Num(Expr::Int(code))) => out.push(match code {
                0 => Value::MemoryFormat(restride_ir::MemoryFormat::Contiguous),
                2 => Value::MemoryFormat(restride_ir::MemoryFormat::ChannelsLast),
                3 => Value::MemoryFormat(restride_ir::MemoryFormat::ChannelsLast3d),
                _ => Value::None,
            }),
            _ => out.push(v.clone()),
        }
    }
    out
}

/// Elements and sizes of nested lists.
fn flatten(data: &Value, depth: usize, sizes: &mut Vec<i64>, out: &mut Vec<Value>) -> Result<()> {
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
fn nested(sizes: &[i64], elements: &mut impl Iterator<Item = Expr>) -> Value {
    match sizes {
        [] => elements.next().map_or(Value::None, Value::Num),
        [n, rest @ ..] => Value::list((0..*n).map(|_| nested(rest, elements)).collect()),
    }
}
