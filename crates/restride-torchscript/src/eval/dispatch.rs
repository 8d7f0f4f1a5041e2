//! Chooses an operator's overload by its schemas, as PyTorch does where code does not name one.

use super::Evaluator;
use crate::record::{CallArg, RecordedResult, TensorRef};
use crate::value::PyValue;
use restride_ir::{Arg, ArgType, DType, Error, ErrorKind, Expr, MemoryFormat, Op, Result, Schema, SchemaArg};
use std::sync::Arc;

/// An argument for a parameter: with the cost of its conversion, so that an exact match wins.
enum Fit {
    /// The argument as it is.
    Ready(CallArg, u32),
    /// A number for a tensor, which becomes one.
    FromNumber(Expr),
    /// A complex number for a tensor.
    FromComplex(f64, f64),
    /// A tensor for a number, which is read.
    ReadNumber(TensorRef, ArgType),
    /// A list with tensors for numbers, which are read.
    ReadNumbers(Vec<PyValue>),
    /// A list of tensors and numbers, for tensors.
    Mixed(Vec<PyValue>),
}

impl Fit {
    fn cost(&self) -> u32 {
        match self {
            Fit::Ready(_, cost) => *cost,
            Fit::FromNumber(_) | Fit::FromComplex(..) => 20,
            Fit::ReadNumber(..) | Fit::ReadNumbers(_) => 10,
            Fit::Mixed(_) => 30,
        }
    }
}

/// PyTorch's numbers of element types.
pub fn dtype_of_code(code: i64) -> Option<DType> {
    let name = match code {
        0 => "uint8",
        1 => "int8",
        2 => "int16",
        3 => "int32",
        4 => "int64",
        5 => "float16",
        6 => "float32",
        7 => "float64",
        9 => "complex64",
        10 => "complex128",
        11 => "bool",
        15 => "bfloat16",
        _ => return None,
    };
    DType::from_name(name)
}

/// The number of an element type.
pub fn code_of_dtype(dtype: DType) -> i64 {
    (0..16).find(|c| dtype_of_code(*c) == Some(dtype)).unwrap_or(-1)
}

fn memory_format(code: i64) -> Option<MemoryFormat> {
    Some(match code {
        0 => MemoryFormat::Contiguous,
        1 => MemoryFormat::Preserve,
        2 => MemoryFormat::ChannelsLast,
        3 => MemoryFormat::ChannelsLast3d,
        _ => return None,
    })
}

fn ready(arg: CallArg, cost: u32) -> Option<Fit> {
    Some(Fit::Ready(arg, cost))
}

/// How a value fits a parameter; `None` if it does not.
fn fit(value: &PyValue, decl: &SchemaArg) -> Option<Fit> {
    if let PyValue::None = value {
        return (decl.optional || matches!(decl.ty, ArgType::Other)).then(|| Fit::Ready(Arg::None, 0));
    }
    let int = |e: &Expr| !e.is_float();
    match (decl.ty, value) {
        (ArgType::Tensor, PyValue::Tensor(t)) => ready(Arg::Value(t.clone()), 0),
        (ArgType::Tensor, PyValue::Num(e)) => Some(Fit::FromNumber(e.clone())),
        (ArgType::Tensor, PyValue::Complex(re, im)) => Some(Fit::FromComplex(*re, *im)),
        (ArgType::Tensors | ArgType::OptTensors, _) => {
            let items = value.items()?;
            let one = |v: &PyValue| match v {
                PyValue::Tensor(t) => Some(Some(t.clone())),
                PyValue::None if decl.ty == ArgType::OptTensors => Some(None),
                _ => None,
            };
            match items.iter().map(one).collect::<Option<Vec<_>>>() {
                Some(tensors) => ready(Arg::Values(tensors), 0),
                None => {
                    items.iter().all(|v| matches!(v, PyValue::Tensor(_) | PyValue::Num(_))).then_some(Fit::Mixed(items))
                }
            }
        }
        (ArgType::Scalar, PyValue::Num(e)) => ready(Arg::Scalar(e.clone()), 0),
        (ArgType::Scalar, PyValue::Complex(re, im)) => ready(Arg::Complex(*re, *im), 0),
        (ArgType::Int, PyValue::Num(e)) if int(e) => {
            ready(Arg::Scalar(super::numbers::plain(e)), u32::from(e.is_bool()))
        }
        (ArgType::Float, PyValue::Num(e)) => {
            ready(Arg::Scalar(super::numbers::to_float(e)), if e.is_float() { 0 } else { 1 })
        }
        (ArgType::Bool, PyValue::Num(e)) if e.is_bool() => ready(Arg::Scalar(e.clone()), 0),
        (ArgType::Scalar | ArgType::Int | ArgType::Float | ArgType::Bool, PyValue::Tensor(t)) => {
            Some(Fit::ReadNumber(t.clone(), decl.ty))
        }
        (ArgType::Ints(Some(_)), PyValue::Num(e)) if int(e) && !e.is_bool() => {
            ready(Arg::Scalars(vec![e.clone()]), 1).map(|f| spread(f, decl))
        }
        (ArgType::Floats, PyValue::Num(e)) => ready(Arg::Scalars(vec![super::numbers::to_float(e)]), 2),
        (ArgType::Ints(_) | ArgType::Floats | ArgType::Bools(_) | ArgType::Scalars, _) => numbers(value, decl),
        // FX prints strings without quotes.
        (ArgType::Device, PyValue::Path(_)) => ready(Arg::Device("cpu".into()), 1),
        (ArgType::Str, PyValue::Str(s)) => ready(Arg::Str(s.clone()), 0),
        (ArgType::Strs, _) => {
            let one = |v: &PyValue| if let PyValue::Str(s) = v { Some(s.clone()) } else { None };
            ready(Arg::Strs(value.items()?.iter().map(one).collect::<Option<_>>()?), 0)
        }
        (ArgType::DType, PyValue::DType(d)) => ready(Arg::DType(*d), 0),
        (ArgType::DType, PyValue::Num(Expr::Int(i))) => ready(Arg::DType(dtype_of_code(*i)?), 0),
        (ArgType::Device, PyValue::Device(_)) => ready(Arg::Device("cpu".into()), 0),
        (ArgType::Device, PyValue::Str(_)) => ready(Arg::Device("cpu".into()), 1),
        (ArgType::Layout, PyValue::Strided | PyValue::Num(Expr::Int(0))) => ready(Arg::Strided, 0),
        (ArgType::MemoryFormat, PyValue::MemoryFormat(m)) => ready(Arg::MemoryFormat(*m), 0),
        (ArgType::MemoryFormat, PyValue::Num(Expr::Int(i))) => ready(Arg::MemoryFormat(memory_format(*i)?), 0),
        _ => None,
    }
}

/// A single number for a list of known length is repeated.
fn spread(fit: Fit, decl: &SchemaArg) -> Fit {
    match (fit, decl.ty) {
        (Fit::Ready(Arg::Scalars(one), cost), ArgType::Ints(Some(n))) if n > 1 && decl.name != "size" => {
            Fit::Ready(Arg::Scalars(vec![one[0].clone(); n as usize]), cost)
        }
        (fit, _) => fit,
    }
}

fn numbers(value: &PyValue, decl: &SchemaArg) -> Option<Fit> {
    let items = value.items()?;
    let mut out = Vec::with_capacity(items.len());
    let mut cost = 0;
    let mut reads = false;
    for item in &items {
        match item {
            PyValue::Num(e) => {
                let fits = match decl.ty {
                    ArgType::Ints(_) => !e.is_float(),
                    ArgType::Bools(_) => e.is_bool(),
                    _ => true,
                };
                if !fits {
                    return None;
                }
                cost += u32::from(decl.ty == ArgType::Floats && !e.is_float());
                out.push(match decl.ty {
                    ArgType::Ints(_) => super::numbers::plain(e),
                    ArgType::Floats => super::numbers::to_float(e),
                    _ => e.clone(),
                });
            }
            PyValue::Tensor(_) => reads = true,
            _ => return None,
        }
    }
    if reads {
        return Some(Fit::ReadNumbers(items));
    }
    let fit = Fit::Ready(Arg::Scalars(out), cost);
    Some(if items.len() == 1 { spread(fit, decl) } else { fit })
}

/// The position of a named argument, also by the names that PyTorch takes from NumPy.
fn named(schema: &Schema, name: &str) -> Option<usize> {
    schema.arg(name).or_else(|| match name {
        "input" | "x" | "a" | "x1" => schema.arg("self").or_else(|| schema.arg("input")),
        "axis" => schema.arg("dim"),
        "keepdims" => schema.arg("keepdim"),
        "x2" => schema.arg("other"),
        _ => None,
    })
}

/// Kinds of a call's arguments, for messages.
fn kinds(args: &[PyValue], kwargs: &[(Arc<str>, PyValue)]) -> String {
    let named = kwargs.iter().map(|(n, v)| format!("{n}={}", v.kind()));
    args.iter().map(PyValue::kind).chain(named).collect::<Vec<_>>().join(", ")
}

impl Evaluator<'_, '_> {
    /// Calls the overload of an operator that fits the arguments best.
    ///
    /// # Errors
    /// No overload fits.
    pub(crate) fn dispatch(
        &mut self,
        namespace: &str,
        name: &str,
        args: &[PyValue],
        kwargs: &[(Arc<str>, PyValue)],
    ) -> Result<PyValue> {
        let mut best: Option<(u32, Op, Vec<Option<Fit>>)> = None;
        let mut any = false;
        for full in restride_ops::overloads(namespace, name) {
            any = true;
            let Some(op) = self.rec.find(&full) else { continue };
            let Some((cost, fits)) = self.fits(op, args, kwargs) else { continue };
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, op, fits));
            }
        }
        match best {
            Some((_, op, fits)) => self.call_fits(op, fits),
            None if !any => Err(Error::unsupported(format!("operator {namespace}.{name} is not known"))
                .help("give its schema in a file with --ops")),
            None => Err(Error::new(
                ErrorKind::Program,
                format!("no overload of {namespace}.{name} takes ({})", kinds(args, kwargs)),
            )),
        }
    }

    /// Calls an operator of a full name.
    ///
    /// # Errors
    /// Arguments that do not fit.
    pub(crate) fn dispatch_exact(
        &mut self,
        op: Op,
        args: &[PyValue],
        kwargs: &[(Arc<str>, PyValue)],
    ) -> Result<PyValue> {
        match self.fits(op, args, kwargs) {
            Some((_, fits)) => self.call_fits(op, fits),
            None => Err(Error::new(ErrorKind::Program, format!("{op} does not take ({})", kinds(args, kwargs)))),
        }
    }

    fn fits(&self, op: Op, args: &[PyValue], kwargs: &[(Arc<str>, PyValue)]) -> Option<(u32, Vec<Option<Fit>>)> {
        let schema = op.schema();
        let mut fits: Vec<Option<Fit>> = Vec::new();
        fits.resize_with(schema.args.len(), || None);
        let mut cost = 0;
        for (i, value) in args.iter().enumerate() {
            let positional = self.dialect == super::Dialect::JitIr;
            let decl = schema.args.get(i).filter(|d| positional || !d.kwarg_only)?;
            let found = fit(value, decl)?;
            cost += found.cost();
            fits[i] = Some(found);
        }
        for (name, value) in kwargs {
            let Some(at) = named(schema, name) else {
                // Python's own arguments, where they ask for nothing.
                let idle = matches!(value, PyValue::None) || matches!(value, PyValue::Num(Expr::Bool(false)));
                if matches!(&**name, "requires_grad" | "out" | "names") && (idle || &**name == "requires_grad") {
                    continue;
                }
                return None;
            };
            if fits[at].is_some() {
                return None;
            }
            let found = fit(value, &schema.args[at])?;
            cost += found.cost();
            fits[at] = Some(found);
        }
        for (decl, fit) in schema.args.iter().zip(&fits) {
            if fit.is_none() && decl.default.is_none() {
                return None;
            }
        }
        Some((cost, fits))
    }

    fn call_fits(&mut self, op: Op, fits: Vec<Option<Fit>>) -> Result<PyValue> {
        let schema = op.schema();
        let mut call: Vec<CallArg> = Vec::with_capacity(fits.len());
        for (decl, fit) in schema.args.iter().zip(fits) {
            call.push(match fit {
                None => decl
                    .default_arg()
                    .ok_or_else(|| Error::new(ErrorKind::Program, format!("{op} is not given {}", decl.name)))?,
                Some(Fit::Ready(arg, _)) => arg,
                Some(Fit::FromNumber(e)) => Arg::Value(self.wrapped_number(&e)?),
                Some(Fit::FromComplex(re, im)) => {
                    let args = vec![Arg::Scalars(Vec::new()), Arg::Complex(re, im), Arg::DType(DType::C64)];
                    Arg::Value(self.rec.tensor("aten.full.default", args)?)
                }
                Some(Fit::ReadNumber(t, ty)) => {
                    let n = self.rec.item(&t)?;
                    Arg::Scalar(match ty {
                        ArgType::Int => super::numbers::to_int(&n)?,
                        ArgType::Float => super::numbers::to_float(&n),
                        ArgType::Bool => super::numbers::truth(&n),
                        _ => n,
                    })
                }
                Some(Fit::ReadNumbers(items)) => {
                    let mut out = Vec::new();
                    for item in items {
                        out.push(match item {
                            PyValue::Tensor(t) => self.rec.item(&t)?,
                            PyValue::Num(e) => e,
                            other => return Err(Error::invalid(format!("{} among numbers", other.kind()))),
                        });
                    }
                    Arg::Scalars(out)
                }
                Some(Fit::Mixed(items)) => {
                    let mut out = Vec::new();
                    for item in items {
                        out.push(Some(match item {
                            PyValue::Tensor(t) => t,
                            PyValue::Num(e) => {
                                let dtype = if e.is_float() { DType::F32 } else { DType::I64 };
                                self.rec.scalar_tensor(&e, dtype)?
                            }
                            other => return Err(Error::invalid(format!("{} among tensors", other.kind()))),
                        }));
                    }
                    Arg::Values(out)
                }
            });
        }
        let made = self.rec.call(op, call)?;
        Ok(self.results(op, made))
    }

    /// A number as a tensor operand. Its element type takes no part in promotion, so it is the default one of its kind.
    fn wrapped_number(&mut self, e: &Expr) -> Result<TensorRef> {
        let dtype = super::numbers::dtype_of(e);
        let dtype = if dtype == DType::F64 { DType::F32 } else { dtype };
        self.rec.scalar_tensor(e, dtype)
    }

    /// The value that a call returns, as Python sees it.
    fn results(&self, op: Op, made: Vec<RecordedResult>) -> PyValue {
        let one = |m: RecordedResult| match m {
            RecordedResult::Tensor(t) => PyValue::Tensor(t),
            RecordedResult::Number(e) => PyValue::Num(e),
            RecordedResult::None => PyValue::None,
        };
        let returns = &op.schema().returns;
        let list = |ty: ArgType| matches!(ty, ArgType::Tensors | ArgType::OptTensors);
        match &returns[..] {
            [] => PyValue::None,
            [r] if list(r.ty) => PyValue::list(made.into_iter().map(one).collect()),
            [_] => made.into_iter().next().map_or(PyValue::None, one),
            many => {
                // One list among several results takes what the others leave.
                let spare = made.len() + 1 - many.len().min(made.len() + 1);
                let mut made = made.into_iter().map(one);
                let mut out = Vec::new();
                for r in many {
                    if list(r.ty) {
                        out.push(PyValue::list(made.by_ref().take(spare).collect()));
                    } else {
                        out.push(made.next().unwrap_or(PyValue::None));
                    }
                }
                PyValue::tuple(out)
            }
        }
    }
}
