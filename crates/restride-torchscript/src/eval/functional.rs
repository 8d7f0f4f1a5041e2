//! Constants and functions of `torch.nn.functional` and its like, for graphs that were traced above the operators.

use super::modules::CalledModule;
use super::{Dialect, Evaluator};
use crate::library::{self, Part};
use crate::record::TensorRef;
use crate::value::{CodeFunction, KeywordArgs, PyObject, PyValue};
use restride_ir::{DType, Error, MemoryFormat, Result};
use std::rc::Rc;
use std::sync::Arc;

/// A constant by its path.
pub(super) fn constant(path: &str) -> Option<PyValue> {
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
            return Some(PyValue::DType(d));
        }
        return Some(match name {
            "strided" => PyValue::Strided,
            "contiguous_format" => PyValue::MemoryFormat(MemoryFormat::Contiguous),
            "preserve_format" => PyValue::MemoryFormat(MemoryFormat::Preserve),
            "channels_last" => PyValue::MemoryFormat(MemoryFormat::ChannelsLast),
            "channels_last_3d" => PyValue::MemoryFormat(MemoryFormat::ChannelsLast3d),
            "inf" => PyValue::float(f64::INFINITY),
            "nan" => PyValue::float(f64::NAN),
            "pi" => PyValue::float(std::f64::consts::PI),
            "e" => PyValue::float(std::f64::consts::E),
            _ => return None,
        });
    }
    Some(match path {
        "math.pi" => PyValue::float(std::f64::consts::PI),
        "math.e" => PyValue::float(std::f64::consts::E),
        "math.tau" => PyValue::float(std::f64::consts::TAU),
        "math.inf" => PyValue::float(f64::INFINITY),
        "math.nan" => PyValue::float(f64::NAN),
        _ => return None,
    })
}

/// Activations that `torch.nn.functional` calls in place where it is asked to, and whether the operator has an in-place form.
const ACTIVATIONS: [(&str, bool); 14] = [
    ("relu", true),
    ("relu6", true),
    ("silu", true),
    ("gelu", false),
    ("leaky_relu", true),
    ("elu", true),
    ("selu", true),
    ("celu", true),
    ("hardtanh", true),
    ("hardswish", true),
    ("hardsigmoid", true),
    ("mish", true),
    ("threshold", true),
    ("rrelu", false),
];

/// Named arguments in the order of a Python function's parameters.
struct Named<'a> {
    names: &'a [&'a str],
    args: &'a [PyValue],
    kwargs: &'a KeywordArgs,
}

impl Named<'_> {
    fn get(&self, name: &str) -> PyValue {
        let at = self.names.iter().position(|n| *n == name).and_then(|i| self.args.get(i));
        at.or_else(|| self.kwargs.iter().find(|k| *k.0 == *name).map(|k| &k.1)).cloned().unwrap_or(PyValue::None)
    }

    fn or(&self, name: &str, default: PyValue) -> PyValue {
        match self.get(name) {
            PyValue::None => default,
            v => v,
        }
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        match self.get(name) {
            PyValue::Num(restride_ir::Expr::Bool(b)) => b,
            _ => default,
        }
    }
}

/// The operator behind a function of `torch.fft`, `torch.linalg` or `torch.special`: `torch.fft.rfft`, which FX prints as
/// `torch._C._fft.fft_rfft`, is `fft_rfft`.
fn of_namespace(path: &str) -> Option<String> {
    ["fft", "linalg", "special"].iter().find_map(|namespace| {
        let op = match path.strip_prefix(&format!("torch._C._{namespace}.")) {
            Some(op) => op.to_string(),
            None => format!("{namespace}_{}", path.strip_prefix(&format!("torch.{namespace}."))?),
        };
        // `torch.special.softmax` is an operator of that name alone.
        let plain = op.strip_prefix(&format!("{namespace}_")).unwrap_or(&op);
        Some(if restride_ops::overloads("aten", &op).is_empty() { plain.to_string() } else { op.clone() })
    })
}

impl Evaluator<'_, '_> {
    /// Calls a function of PyTorch's Python library; `None` for one that is not known.
    pub(crate) fn call_functional(
        &mut self,
        path: &str,
        args: &[PyValue],
        kwargs: &KeywordArgs,
    ) -> Result<Option<PyValue>> {
        if let Some(op) = of_namespace(path) {
            return self.dispatch("aten", &op, args, kwargs).map(Some);
        }
        // `torch.Tensor.relu(x)` is `x.relu()`.
        if let (Some(method), [this, rest @ ..]) = (path.strip_prefix("torch.Tensor."), args) {
            return self.value_method(this.clone(), method, rest.to_vec(), kwargs.to_vec()).map(Some);
        }
        let Some(name) = path
            .strip_prefix("torch.nn.functional.")
            .or_else(|| path.strip_prefix("torch.functional."))
            .or_else(|| path.strip_prefix("torch._C._nn."))
            .or_else(|| path.strip_prefix("F."))
            .or_else(|| path.strip_prefix("torch."))
        else {
            return Ok(None);
        };
        // `F.threshold` is another name of a function with this one.
        let name = if name == "_threshold" { "threshold" } else { name };
        let functional = path.strip_prefix("torch.").is_none_or(|r| r.contains('.'));
        if let Some(function) = self.library_function(path, name) {
            return self.call_library(&function, args.to_vec(), kwargs.to_vec()).map(Some);
        }
        if let Some((_, has_in_place)) = ACTIVATIONS.iter().find(|a| functional && a.0 == name) {
            return self.activation(name, *has_in_place, args, kwargs).map(Some);
        }
        let named = |names: &'static [&'static str]| Named { names, args, kwargs };
        let made = match name {
            "einsum" | "broadcast_tensors" | "meshgrid" | "block_diag" | "cartesian_prod" | "atleast_1d"
                if args.iter().any(|a| matches!(a, PyValue::Tensor(_))) =>
            {
                let first = usize::from(name == "einsum");
                let mut call = args[..first].to_vec();
                call.push(PyValue::list(args[first..].to_vec()));
                self.dispatch("aten", name, &call, kwargs)?
            }
            "zeros" | "ones" | "empty" | "rand" | "randn"
                if args.len() != 1 && matches!(args.first(), Some(PyValue::Num(_))) =>
            {
                self.dispatch("aten", name, &[PyValue::list(args.to_vec())], kwargs)?
            }
            "zeros" | "ones" | "empty" | "rand" | "randn" if matches!(args.first(), Some(PyValue::Num(_))) => {
                self.dispatch("aten", name, &[PyValue::list(args.to_vec())], kwargs)?
            }
            "new_zeros" | "new_ones" | "new_empty" if matches!(args.get(1), Some(PyValue::Num(_))) => {
                self.dispatch("aten", name, &[args[0].clone(), PyValue::list(args[1..].to_vec())], kwargs)?
            }
            "dropout" if functional => {
                let n = named(&["input", "p", "training", "inplace"]);
                let call = [n.get("input"), n.or("p", PyValue::float(0.5)), PyValue::bool(n.flag("training", true))];
                self.dispatch("aten", if n.flag("inplace", false) { "dropout_" } else { "dropout" }, &call, &[])?
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
                    PyValue::bool(n.flag("training", false)),
                    n.or("momentum", PyValue::float(0.1)),
                    n.or("eps", PyValue::float(1e-5)),
                    PyValue::bool(true),
                ];
                self.dispatch("aten", name, &call, &[])?
            }
            "embedding" if functional => {
                let n =
                    named(&["input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"]);
                if !matches!(n.get("max_norm"), PyValue::None) {
                    return Err(Error::unsupported("embedding with max_norm"));
                }
                let padding = n.or("padding_idx", PyValue::int(-1));
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
                    n.or("padding", PyValue::int(0)),
                    n.or("dilation", PyValue::int(1)),
                    PyValue::bool(n.flag("ceil_mode", false)),
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
                let (p, dim) = (n.or("p", PyValue::float(2.0)), n.or("dim", PyValue::int(1)));
                let dims = PyValue::list(vec![dim]);
                let norm =
                    self.dispatch("aten", "linalg_vector_norm", &[n.get("input"), p, dims, PyValue::bool(true)], &[])?;
                let norm = self.dispatch("aten", "clamp_min", &[norm, n.or("eps", PyValue::float(1e-12))], &[])?;
                self.dispatch("aten", "div", &[n.get("input"), norm], &[])?
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

    /// The function of PyTorch's library that a printed graph calls by this path.
    fn library_function(&self, path: &str, name: &str) -> Option<Rc<CodeFunction>> {
        if path.starts_with("torch.nn.functional.") || path.starts_with("F.") {
            return library::find(Part::Functional, name);
        }
        let own = path.strip_prefix("torch.functional.").or_else(|| path.strip_prefix("torch."));
        // In TorchScript, these are operators.
        (self.dialect == Dialect::Python && own == Some(name)).then(|| library::find(Part::Torch, name))?
    }

    /// Calls a function of the library.
    pub(super) fn call_library(
        &mut self,
        function: &Rc<CodeFunction>,
        args: Vec<PyValue>,
        kwargs: Vec<(Arc<str>, PyValue)>,
    ) -> Result<PyValue> {
        self.call_function(function, args, kwargs).map_err(|e| match e.what.strip_prefix("the code raises: ") {
            Some(what) => Error::unsupported(what),
            None => e,
        })
    }

    fn activation(
        &mut self,
        name: &str,
        has_in_place: bool,
        args: &[PyValue],
        kwargs: &KeywordArgs,
    ) -> Result<PyValue> {
        let in_place = |v: &PyValue| matches!(v, PyValue::Num(restride_ir::Expr::Bool(true)));
        let mut call = args.to_vec();
        let mut inplace = false;
        if call.len() > 1 && matches!(call.last(), Some(PyValue::Num(e)) if e.is_bool()) {
            inplace = call.pop().is_some_and(|v| in_place(&v));
        }
        let mut kwargs = kwargs.to_vec();
        kwargs.retain(|k| {
            let own = &*k.0 == "inplace";
            inplace |= own && in_place(&k.1);
            !own
        });
        if inplace && has_in_place {
            return self.dispatch("aten", &format!("{name}_"), &call, &kwargs);
        }
        self.dispatch("aten", name, &call, &kwargs)
    }

    fn interpolate(&mut self, n: &Named<'_>) -> Result<PyValue> {
        let PyValue::Tensor(input) = n.get("input") else {
            return Err(super::expressions::refused("interpolate of no tensor"));
        };
        let dims = input.rank().saturating_sub(2);
        let spread = |v: PyValue| match v {
            PyValue::Num(e) => PyValue::list(vec![PyValue::Num(e); dims]),
            v => v,
        };
        let mode = match n.get("mode") {
            PyValue::Str(s) => s.to_string(),
            PyValue::Path(p) => p.to_string(),
            _ => "nearest".into(),
        };
        let (size, scale) = (spread(n.get("size")), spread(n.get("scale_factor")));
        let align = PyValue::bool(n.flag("align_corners", false));
        let antialias = if n.flag("antialias", false) { "_aa" } else { "" };
        let (op, aligned) = match (mode.as_str(), dims) {
            ("area", d) => {
                let whole = self.area_sizes(&input, size, scale)?;
                return self.dispatch("aten", &format!("adaptive_avg_pool{d}d"), &[PyValue::Tensor(input), whole], &[]);
            }
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
        let mut call = vec![PyValue::Tensor(input), size];
        if aligned {
            call.push(align);
        }
        call.push(scale);
        self.dispatch_exact(op, &call, &[])
    }

    /// The sizes that `interpolate` gives, of a size or of a scale.
    fn area_sizes(&mut self, input: &TensorRef, size: PyValue, scale: PyValue) -> Result<PyValue> {
        if !matches!(size, PyValue::None) {
            return Ok(size);
        }
        let scales = self.unpacked(&scale)?;
        let own = self.rec.sizes(input);
        let mut out = Vec::new();
        for (n, scale) in own.iter().skip(2).zip(scales) {
            let scaled = self.operator_call("mul", PyValue::Num(n.clone()), scale)?;
            out.push(PyValue::Num(super::numbers::to_int(&self.number(&scaled)?)?));
        }
        Ok(PyValue::list(out))
    }

    /// Calls a module whose class has no code: by the form in which `print(gm)` shows it.
    pub(crate) fn call_module(
        &mut self,
        object: &Rc<PyObject>,
        args: Vec<PyValue>,
        kwargs: Vec<(Arc<str>, PyValue)>,
    ) -> Result<PyValue> {
        let path = object.path.borrow().clone().unwrap_or_default();
        let module = |class: &str, options: &[PyValue], named: &KeywordArgs, me: &mut Self| {
            CalledModule { object, path: path.clone(), class, options, named }.call(me, &args, &kwargs)
        };
        let Some(repr) = object.class.strip_prefix("repr ") else {
            // TorchScript IR has the class alone (`__torch__.torch.nn.modules.linear.Linear`).
            let class = object.class.rsplit('.').next().unwrap_or_default();
            if object.class.starts_with("__torch__.torch.")
                && (super::modules::without_options(class) || class == "GuardsFn")
            {
                return module(class, &[], &[], self);
            }
            // A matrix with a bias is a linear layer.
            let weight = self.library.weight(&format!("{path}.weight"));
            let bias = self.library.weight(&format!("{path}.bias"));
            if let (Some(PyValue::Tensor(w)), Some(PyValue::Tensor(b))) = (&weight, &bias)
                && &*object.class == "unknown"
                && (w.rank(), b.rank()) == (2, 1)
            {
                return module("Linear", &[], &[], self);
            }
            // The exported program's checks of its inputs, which `torch.export` gives this name.
            if &*path == "_guards_fn" {
                return Ok(PyValue::None);
            }
            let code = Error::unsupported(format!("a call of the module {path}, whose code is not in the text"));
            return Err(match self.dialect {
                Dialect::JitIr => code.help(
                    "print the inlined graph (`m.inlined_graph`), add the graphs of its modules, or open the archive itself",
                ),
                _ => code.help("paste `print(gm)`, which lists the modules, or print_readable(), which has their code"),
            });
        };
        let (class, inside) = repr.split_once('(').unwrap_or((repr, ""));
        if class == "GraphModule" {
            return Err(Error::unsupported(format!("a call of the graph {path}, whose code is not in the text"))
                .help("paste print_readable(), which has it"));
        }
        if matches!(class, "Sequential" | "Module") {
            let parts: Vec<PyValue> = object.attributes.borrow().values().cloned().collect();
            let mut value = args.first().cloned().unwrap_or(PyValue::None);
            for part in parts {
                if let PyValue::Object(_) = part {
                    value = self.call_value(part, vec![value], Vec::new())?;
                }
            }
            return Ok(value);
        }
        let source = crate::source::SourceText::new("text", format!("f({}", inside));
        let parsed =
            crate::syntax::parse_expression(&source).map_err(|_| super::modules::refused_class(&path, class))?;
        let crate::syntax::ast::AstKind::Call { args: given, kwargs: named, .. } = parsed.kind else {
            return Err(Error::unsupported(format!("a call of the module {path}: {repr}")));
        };
        let mut env = super::Env::new(source);
        let mut options = Vec::new();
        for (a, _) in &given {
            options.push(self.expression(&mut env, a)?);
        }
        let mut keywords = Vec::new();
        for (n, a) in &named {
            keywords.push((n.clone(), self.expression(&mut env, a)?));
        }
        module(class, &options, &keywords, self)
    }
}
