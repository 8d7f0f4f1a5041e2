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

/// Activations that `torch.nn.functional` calls in place where it is asked to.
const ACTIVATIONS: [&str; 14] = [
    "relu",
    "relu6",
    "silu",
    "gelu",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "mish",
    "threshold",
    "rrelu",
];
/// Those that have an in-place form.
const IN_PLACE: [&str; 12] = [
    "relu",
    "relu6",
    "silu",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "mish",
    "threshold",
];

type Kwargs = [(Arc<str>, Value)];

/// Named arguments in the order of a Python function's parameters.
struct Named<'a> {
    names: &'a [&'a str],
    args: &'a [Value],
    kwargs: &'a Kwargs,
}

impl Named<'_> {
    fn get(&self, name: &str) -> Value {
        let at = self.names.iter().position(|n| *n == name).and_then(|i| self.args.get(i));
        at.or_else(|| self.kwargs.iter().find(|k| *k.0 == *name).map(|k| &k.1)).cloned().unwrap_or(Value::None)
    }

    fn or(&self, name: &str, default: Value) -> Value {
        match self.get(name) {
            Value::None => default,
            v => v,
        }
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        match self.get(name) {
            Value::Num(restride_ir::Expr::Bool(b)) => b,
            _ => default,
        }
    }
}

/// A pair for a single number, or nothing for `None`.
fn given(pairs: &[(&str, Value)]) -> Vec<(Arc<str>, Value)> {
    pairs.iter().filter(|p| !matches!(p.1, Value::None)).map(|(n, v)| (Arc::from(*n), v.clone())).collect()
}

impl Evaluator<'_, '_> {
    /// Calls a function of PyTorch's Python library; `None` for one that is not known.
    pub(crate) fn call_functional(&mut self, path: &str, args: &[Value], kwargs: &Kwargs) -> Result<Option<Value>> {
        let Some(name) = path
            .strip_prefix("torch.nn.functional.")
            .or_else(|| path.strip_prefix("torch.functional."))
            .or_else(|| path.strip_prefix("torch._C._nn."))
            .or_else(|| path.strip_prefix("torch.special."))
            .or_else(|| path.strip_prefix("F."))
            .or_else(|| path.strip_prefix("torch."))
        else {
            return Ok(None);
        };
        let functional = path.strip_prefix("torch.").is_none_or(|r| r.contains('.'));
        if functional && ACTIVATIONS.contains(&name) {
            return self.activation(name, args, kwargs).map(Some);
        }
        let named = |names: &'static [&'static str]| Named { names, args, kwargs };
        let made = match name {
            "einsum" | "broadcast_tensors" | "meshgrid" | "block_diag" | "cartesian_prod" | "atleast_1d"
                if args.iter().any(|a| matches!(a, Value::Tensor(_))) =>
            {
                let first = usize::from(name == "einsum");
                let mut call = args[..first].to_vec();
                call.push(Value::list(args[first..].to_vec()));
                self.dispatch("aten", name, &call, kwargs)?
            }
            "zeros" | "ones" | "empty" | "rand" | "randn"
                if args.len() != 1 && matches!(args.first(), Some(Value::Num(_))) =>
            {
                self.dispatch("aten", name, &[Value::list(args.to_vec())], kwargs)?
            }
            "zeros" | "ones" | "empty" | "rand" | "randn" if matches!(args.first(), Some(Value::Num(_))) => {
                self.dispatch("aten", name, &[Value::list(args.to_vec())], kwargs)?
            }
            "new_zeros" | "new_ones" | "new_empty" if matches!(args.get(1), Some(Value::Num(_))) => {
                self.dispatch("aten", name, &[args[0].clone(), Value::list(args[1..].to_vec())], kwargs)?
            }
            "dropout" if functional => {
                let n = named(&["input", "p", "training", "inplace"]);
                let call = [n.get("input"), n.or("p", Value::float(0.5)), Value::bool(n.flag("training", true))];
                self.dispatch("aten", if n.flag("inplace", false) { "dropout_" } else { "dropout" }, &call, &[])?
            }
            "softmax" | "log_softmax" if functional => {
                let n = named(&["input", "dim", "_stacklevel", "dtype"]);
                self.dispatch("aten", name, &[n.get("input"), n.get("dim")], &given(&[("dtype", n.get("dtype"))]))?
            }
            "batch_norm" if functional => {
                let n =
                    named(&["input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps"]);
                let call = [
                    n.get("input"),
                    n.get("weight"),
                    n.get("bias"),
                    n.get("running_mean"),
                    n.get("running_var"),
                    Value::bool(n.flag("training", false)),
                    n.or("momentum", Value::float(0.1)),
                    n.or("eps", Value::float(1e-5)),
                    Value::bool(true),
                ];
                self.dispatch("aten", name, &call, &[])?
            }
            "embedding" if functional => {
                let n =
                    named(&["input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"]);
                if !matches!(n.get("max_norm"), Value::None) {
                    return Err(Error::unsupported("embedding with max_norm"));
                }
                let padding = n.or("padding_idx", Value::int(-1));
                self.dispatch("aten", name, &[n.get("weight"), n.get("input"), padding], &[])?
            }
            "max_pool1d" | "max_pool2d" | "max_pool3d" if functional => {
                let n =
                    named(&["input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"]);
                let stride = n.or("stride", n.get("kernel_size"));
                let call = [
                    n.get("input"),
                    n.get("kernel_size"),
                    stride,
                    n.or("padding", Value::int(0)),
                    n.or("dilation", Value::int(1)),
                    Value::bool(n.flag("ceil_mode", false)),
                ];
                let op =
                    if n.flag("return_indices", false) { format!("{name}_with_indices") } else { name.to_string() };
                self.dispatch("aten", &op, &call, &[])?
            }
            "interpolate" if functional => {
                let n = named(&[
                    "input",
                    "size",
                    "scale_factor",
                    "mode",
                    "align_corners",
                    "recompute_scale_factor",
                    "antialias",
                ]);
                self.interpolate(&n)?
            }
            "normalize" if functional => {
                let n = named(&["input", "p", "dim", "eps"]);
                let (p, dim) = (n.or("p", Value::float(2.0)), n.or("dim", Value::int(1)));
                let dims = Value::list(vec![dim]);
                let norm =
                    self.dispatch("aten", "linalg_vector_norm", &[n.get("input"), p, dims, Value::bool(true)], &[])?;
                let norm = self.dispatch("aten", "clamp_min", &[norm, n.or("eps", Value::float(1e-12))], &[])?;
                self.dispatch("aten", "div", &[n.get("input"), norm], &[])?
            }
            "mse_loss"
            | "l1_loss"
            | "smooth_l1_loss"
            | "kl_div"
            | "nll_loss"
            | "cross_entropy"
            | "binary_cross_entropy"
            | "binary_cross_entropy_with_logits"
            | "huber_loss"
                if functional =>
            {
                let mut call = args.to_vec();
                let mut kwargs = kwargs.to_vec();
                kwargs.retain(|k| !matches!(&*k.0, "size_average" | "reduce"));
                for k in &mut kwargs {
                    if &*k.0 == "reduction" {
                        k.1 = reduction(&k.1);
                    }
                }
                call.truncate(3);
                let op = match name {
                    "cross_entropy" => "cross_entropy_loss",
                    "nll_loss" => "nll_loss_nd",
                    other => other,
                };
                self.dispatch("aten", op, &call, &kwargs)?
            }
            "unique" if !functional => {
                let n = named(&["input", "sorted", "return_inverse", "return_counts", "dim"]);
                let flags = [n.flag("sorted", true), n.flag("return_inverse", false), n.flag("return_counts", false)];
                let call = [n.get("input"), Value::bool(flags[0]), Value::bool(flags[1]), Value::bool(flags[2])];
                let Value::Tuple(all, _) = self.dispatch("aten", "_unique2", &call, &[])? else { return Ok(None) };
                let mut out = vec![all[0].clone()];
                out.extend((1..3).filter(|i| flags[*i]).map(|i| all[i].clone()));
                if out.len() == 1 { out.remove(0) } else { Value::tuple(out) }
            }
            _ if functional && !name.contains('.') => {
                let known = !restride_ops::overloads("aten", name).is_empty();
                if !known {
                    return Ok(None);
                }
                self.dispatch("aten", name, args, kwargs)?
            }
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    fn activation(&mut self, name: &str, args: &[Value], kwargs: &Kwargs) -> Result<Value> {
        let in_place = |v: &Value| matches!(v, Value::Num(restride_ir::Expr::Bool(true)));
        let mut call = args.to_vec();
        let mut inplace = false;
        if call.len() > 1 && matches!(call.last(), Some(Value::Num(e)) if e.is_bool()) {
            inplace = call.pop().is_some_and(|v| in_place(&v));
        }
        let mut kwargs = kwargs.to_vec();
        kwargs.retain(|k| {
            let own = &*k.0 == "inplace";
            inplace |= own && in_place(&k.1);
            !own
        });
        if inplace && IN_PLACE.contains(&name) {
            return self.dispatch("aten", &format!("{name}_"), &call, &kwargs);
        }
        self.dispatch("aten", name, &call, &kwargs)
    }

    fn interpolate(&mut self, n: &Named<'_>) -> Result<Value> {
        let Value::Tensor(input) = n.get("input") else {
            return Err(super::expressions::refused("interpolate of no tensor"));
        };
        let dims = input.rank().saturating_sub(2);
        let spread = |v: Value| match v {
            Value::Num(e) => Value::list(vec![Value::Num(e); dims]),
            v => v,
        };
        let mode = match n.get("mode") {
            Value::Str(s) => s.to_string(),
            Value::Path(p) => p.to_string(),
            _ => "nearest".into(),
        };
        let (size, scale) = (spread(n.get("size")), spread(n.get("scale_factor")));
        let align = Value::bool(n.flag("align_corners", false));
        let antialias = if n.flag("antialias", false) { "_aa" } else { "" };
        let (op, aligned) = match (mode.as_str(), dims) {
            ("nearest", d) => (format!("upsample_nearest{d}d"), false),
            ("nearest-exact", d) => (format!("_upsample_nearest_exact{d}d"), false),
            ("linear", _) => ("upsample_linear1d".into(), true),
            ("bilinear", _) => {
                (format!("{}upsample_bilinear2d{antialias}", if antialias.is_empty() { "" } else { "_" }), true)
            }
            ("bicubic", _) => {
                (format!("{}upsample_bicubic2d{antialias}", if antialias.is_empty() { "" } else { "_" }), true)
            }
            ("trilinear", _) => ("upsample_trilinear3d".into(), true),
            _ => return Err(Error::unsupported(format!("interpolate with mode {mode}"))),
        };
        let op = self.rec.operator(&format!("aten.{op}.vec"))?;
        let mut call = vec![Value::Tensor(input), size];
        if aligned {
            call.push(align);
        }
        call.push(scale);
        self.dispatch_exact(op, &call, &[])
    }

    /// Calls a module whose class has no code: by the form in which `print(gm)` shows it.
    pub(crate) fn call_module(
        &mut self,
        object: &Rc<Object>,
        args: Vec<Value>,
        kwargs: Vec<(Arc<str>, Value)>,
    ) -> Result<Value> {
        let path = object.path.borrow().clone().unwrap_or_default();
        let Some(repr) = object.class.strip_prefix("repr ") else {
            // A matrix with a bias is a linear layer.
            let weight = self.library.weight(&format!("{path}.weight"));
            let bias = self.library.weight(&format!("{path}.bias"));
            if let (Some(Value::Tensor(w)), Some(Value::Tensor(b)), Some(x)) = (&weight, &bias, args.first())
                && (w.rank(), b.rank()) == (2, 1)
            {
                let call = [x.clone(), Value::Tensor(w.clone()), Value::Tensor(b.clone())];
                return self.dispatch("aten", "linear", &call, &[]);
            }
            return Err(Error::unsupported(format!("a call of the module {path}, whose code is not in the text"))
                .help("paste `print(gm)`, which lists the modules, or export the program"));
        };
        let (class, inside) = repr.split_once('(').unwrap_or((repr, ""));
        if matches!(class, "Sequential" | "Module") {
            let parts: Vec<Value> = object.attributes.borrow().values().cloned().collect();
            let mut value = args.into_iter().next().unwrap_or(Value::None);
            for part in parts {
                if let Value::Object(_) = part {
                    value = self.call_value(part, vec![value], Vec::new())?;
                }
            }
            return Ok(value);
        }
        let source = crate::source::Source::new("text", format!("f({}", inside));
        let parsed = crate::syntax::parse_expression(&source)
            .map_err(|_| Error::unsupported(format!("a call of the module {path}: {repr}")))?;
        let crate::syntax::ast::AstKind::Call { args: given, kwargs: named, .. } = parsed.kind else {
            return Err(Error::unsupported(format!("a call of the module {path}: {repr}")));
        };
        let mut env = super::Env { vars: Default::default(), source };
        let mut options = Vec::new();
        for (a, _) in &given {
            options.push(self.expression(&mut env, a)?);
        }
        let mut keywords = Vec::new();
        for (n, a) in &named {
            keywords.push((n.clone(), self.expression(&mut env, a)?));
        }
        super::modules::call(self, object, class, &args, &kwargs, &options, &keywords)
    }
}

/// A reduction by its number.
fn reduction(v: &Value) -> Value {
    match v {
        Value::Str(s) => Value::int(match &**s {
            "none" => 0,
            "sum" => 2,
            _ => 1,
        }),
        other => other.clone(),
    }
}
