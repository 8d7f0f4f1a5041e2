//! Calls of PyTorch's modules, by their printed form and the weights of their paths.

use super::Evaluator;
use super::module_table::{ModuleArg, ModuleCall, ROWS};
use crate::library::{self, Part};
use crate::syntax::ast::{AstKind, Param};
use crate::value::{CodeFunction, KeywordArgs, PyObject, PyValue};
use restride_ir::{Error, ErrorKind, Expr, Result};
use std::rc::Rc;
use std::sync::Arc;

/// A module that is called: its class, and the options of its printed form.
pub(super) struct CalledModule<'m> {
    pub object: &'m Rc<PyObject>,
    pub path: Arc<str>,
    pub class: &'m str,
    pub options: &'m [PyValue],
    pub named: &'m KeywordArgs,
}

/// Splits `Conv2d` into `Conv` and 2.
fn family(class: &str) -> (&str, usize) {
    match class.strip_suffix('d').and_then(|c| Some((&c[..c.len().checked_sub(1)?], c.chars().last()?.to_digit(10)?))) {
        Some((family, rank)) => (family, rank as usize),
        None => (class, 0),
    }
}

/// Whether a module is known by its class alone: it has no options, or a weight says what they are.
pub(super) fn without_options(class: &str) -> bool {
    let row = ROWS.iter().find(|r| r.class == class);
    row.is_some_and(|r| {
        r.slots.iter().all(|s| matches!(s, ModuleArg::Input(_) | ModuleArg::Weight(..) | ModuleArg::InPlace))
    })
}

/// Whether a parameter of the library has this mark.
fn is_marked(param: &Param, mark: &str) -> bool {
    matches!(param.annotation.as_ref().map(|a| &a.kind), Some(AstKind::Str(s)) if &**s == mark)
}

/// A parameter's default as Python writes it.
fn literal(param: &Param) -> String {
    match param.default.as_ref().map(|d| &d.kind) {
        Some(AstKind::Int(i)) => i.to_string(),
        Some(AstKind::Float(x)) => format!("{x:?}"),
        Some(AstKind::Bool(b)) => if *b { "True" } else { "False" }.to_string(),
        Some(AstKind::Str(s)) => format!("'{s}'"),
        Some(AstKind::Unary(_, a)) => match &a.kind {
            AstKind::Int(i) => format!("-{i}"),
            _ => "its default".into(),
        },
        _ => "its default".into(),
    }
}

/// Options without which a module cannot be called, and which its printed form lacks.
const UNPRINTED: [(&str, &str); 9] = [
    ("MultiheadAttention", "num_heads"),
    ("Transformer", "nhead"),
    ("TransformerEncoder", "the number of heads of its layers"),
    ("TransformerDecoder", "the number of heads of its layers"),
    ("TransformerEncoderLayer", "nhead"),
    ("TransformerDecoderLayer", "nhead"),
    ("AdaptiveLogSoftmaxWithLoss", "cutoffs"),
    ("FractionalMaxPool2d", "kernel_size"),
    ("FractionalMaxPool3d", "kernel_size"),
];

/// The error for a module that cannot be called.
pub(super) fn refused_class(path: &str, class: &str) -> Error {
    let lacks = UNPRINTED.iter().find(|u| u.0 == class).map(|u| format!(", whose printed form lacks {}", u.1));
    Error::unsupported(format!("a call of the module {path} of class {class}{}", lacks.unwrap_or_default()))
        .help("export the program, or open the archive of torch.jit.save")
}

impl CalledModule<'_> {
    fn option(&self, name: &str, at: Option<usize>) -> Option<PyValue> {
        let found = self.named.iter().find(|k| &*k.0 == name).map(|k| &k.1);
        let found = found.or_else(|| at.and_then(|at| self.options.get(at)))?;
        Some(match found {
            // Strings are printed without quotes in some modules, and tuples stand for lists.
            PyValue::Path(name) => PyValue::Str(name.clone()),
            PyValue::Tuple(items, _) => PyValue::list(items.to_vec()),
            found => found.clone(),
        })
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        match self.option(name, None) {
            Some(PyValue::Num(Expr::Bool(b))) => b,
            _ => default,
        }
    }

    fn weight(&self, eval: &mut Evaluator<'_, '_>, name: &str) -> Result<PyValue> {
        eval.get_attribute(&PyValue::Object(self.object.clone()), &name.into()).map_err(|_| {
            Error::new(ErrorKind::Inputs, format!("the weight {}.{name} is not given", self.path))
                .help("give weights with --weights FILE")
        })
    }

    fn note(&self, eval: &mut Evaluator<'_, '_>, what: &str) {
        let note = format!("the module {} is taken {what}, which its printed form does not say", self.path);
        eval.rec.program.notes.push(note);
    }

    /// Calls the module.
    pub(super) fn call(&self, eval: &mut Evaluator<'_, '_>, args: &[PyValue], kwargs: &KeywordArgs) -> Result<PyValue> {
        if let Some(function) = library::find(Part::Modules, self.class) {
            return self.call_library(eval, &function, args, kwargs);
        }
        let mut all = args.to_vec();
        for (name, value) in kwargs {
            let at = ["input", "x", "input1"].contains(&&**name).then_some(0).or((&**name == "input2").then_some(1));
            if at != Some(all.len()) {
                let what = format!("a call of the module {} of class {} with {name}", self.path, self.class);
                return Err(Error::unsupported(what));
            }
            all.push(value.clone());
        }
        let args = &all[..];
        let (family, rank) = family(if self.class == "SyncBatchNorm" { "BatchNorm2d" } else { self.class });
        let x = args.first().cloned().unwrap_or(PyValue::None);
        if let Some(row) = ROWS.iter().find(|r| r.class == if rank > 0 { family } else { self.class }) {
            return self.row(eval, row, rank, args);
        }
        let torch = |eval: &mut Evaluator<'_, '_>, name: &str, args: &[PyValue]| eval.dispatch("aten", name, args, &[]);
        match family {
            "Conv" | "ConvTranspose" if rank > 0 => self.convolution(eval, family, rank, x),
            "Identity" | "DropPath" => Ok(x),
            "Dropout" | "AlphaDropout" | "FeatureAlphaDropout" | "StochasticDepth" => {
                self.note(eval, "in evaluation mode");
                Ok(x)
            }
            // PyTorch checks the sizes of the exported program's inputs in it.
            "GuardsFn" => Ok(PyValue::None),
            "Upsample" => {
                let given = |name: &str| self.option(name, None).unwrap_or(PyValue::None);
                let kwargs = ["size", "scale_factor", "mode"].map(|n| (Arc::from(n), given(n)));
                if matches!(given("mode"), PyValue::Str(s) if &*s != "nearest") {
                    self.note(eval, "without align_corners");
                }
                let path = "torch.nn.functional.interpolate";
                let made = eval.call_functional(path, &[x], &kwargs)?;
                made.ok_or_else(|| Error::invalid("interpolate is not known"))
            }
            "Softsign" => {
                let below = torch(eval, "abs", std::slice::from_ref(&x))?;
                let below = torch(eval, "add", &[below, PyValue::int(1)])?;
                torch(eval, "div", &[x, below])
            }
            "Tanhshrink" => {
                let tanh = torch(eval, "tanh", std::slice::from_ref(&x))?;
                torch(eval, "sub", &[x, tanh])
            }
            "Softmin" => {
                let x = torch(eval, "neg", &[x])?;
                torch(eval, "softmax", &[x, self.option("dim", Some(0)).unwrap_or(PyValue::int(-1))])
            }
            "ZeroPad" | "ConstantPad" | "ReflectionPad" | "ReplicationPad" | "CircularPad" if rank > 0 => {
                let mode = match family {
                    "ReflectionPad" => "reflect",
                    "ReplicationPad" => "replicate",
                    "CircularPad" => "circular",
                    _ => "constant",
                };
                let value = match family {
                    "ConstantPad" => self.option("value", Some(1)).unwrap_or(PyValue::None),
                    _ => PyValue::None,
                };
                let sizes = self.option("padding", Some(0)).unwrap_or(PyValue::None);
                torch(eval, "pad", &[x, sizes, PyValue::str(mode), value])
            }
            _ => Err(refused_class(&self.path, self.class)),
        }
    }

    /// Calls the library's function for the class: with the inputs, and the printed options by name.
    fn call_library(
        &self,
        eval: &mut Evaluator<'_, '_>,
        function: &Rc<CodeFunction>,
        args: &[PyValue],
        kwargs: &KeywordArgs,
    ) -> Result<PyValue> {
        let (inputs, options) = function.def.params.split_at(function.def.keyword_only);
        let mut given: Vec<(Arc<str>, PyValue)> = kwargs.to_vec();
        let wrong = |what: &str| Error::unsupported(format!("the module {} of class {} {what}", self.path, self.class));
        if args.len() >= inputs.len() || kwargs.iter().any(|k| inputs.iter().all(|p| p.name != k.0)) {
            return Err(wrong("is called with arguments that are not known"));
        }
        let printed = options.iter().filter(|p| !is_marked(p, "unprinted"));
        for (param, value) in printed.zip(self.options) {
            given.push((param.name.clone(), value.clone()));
        }
        for (name, value) in self.named {
            if options.iter().all(|p| p.name != *name) {
                return Err(wrong(&format!("has the option {name}, which is not known")));
            }
            given.push((name.clone(), value.clone()));
        }
        // Strings are printed without quotes in some modules.
        for (_, value) in given.iter_mut().skip(kwargs.len()) {
            if let PyValue::Path(name) = value {
                *value = PyValue::Str(name.clone());
            }
        }
        for param in options {
            let has = given.iter().any(|g| g.0 == param.name);
            if is_marked(param, "unprinted") && !has {
                self.note(eval, &format!("with {}={}", param.name, literal(param)));
            } else if is_marked(param, "training") && has {
                self.note(eval, "in evaluation mode");
            }
        }
        let mut all = vec![PyValue::Object(self.object.clone())];
        all.extend_from_slice(args);
        eval.call_library(function, all, given)
    }

    fn row(&self, eval: &mut Evaluator<'_, '_>, row: &ModuleCall, rank: usize, args: &[PyValue]) -> Result<PyValue> {
        let (mut call, mut keywords) = (Vec::new(), Vec::new());
        let mut in_place = false;
        for slot in row.slots {
            call.push(match slot {
                ModuleArg::Input(i) => args.get(*i).cloned().unwrap_or(PyValue::None),
                ModuleArg::Weight(name, flags) => {
                    let has = flags.iter().all(|(flag, default)| self.flag(flag, *default));
                    let printed = !self.options.is_empty() || !self.named.is_empty();
                    match (has, self.weight(eval, name)) {
                        (false, _) => PyValue::None,
                        (true, Ok(found)) => found,
                        // Without printed options, the weights that are given say which it has.
                        (true, Err(_)) if !printed && !flags.is_empty() => PyValue::None,
                        (true, Err(e)) => return Err(e),
                    }
                }
                ModuleArg::Not(flag, default) => PyValue::bool(!self.flag(flag, *default)),
                ModuleArg::InPlace => {
                    in_place = self.flag("inplace", false);
                    continue;
                }
                ModuleArg::Given(value) => value.value(),
                ModuleArg::Option(name, at, otherwise) => {
                    let found = self.option(name, *at);
                    let found = match (found, otherwise) {
                        // `momentum=None` says something in training alone.
                        (Some(PyValue::None) | None, otherwise) => Some(otherwise.value()),
                        (found, _) => found,
                    };
                    found.ok_or_else(|| Error::new(ErrorKind::File, format!("{} without {name}", self.class)))?
                }
                ModuleArg::Keyword(name, otherwise) => {
                    let value = self.option(name, None).unwrap_or_else(|| otherwise.value());
                    keywords.push((Arc::from(*name), value));
                    continue;
                }
                ModuleArg::Sizes(name) => self.sizes(args, rank, self.option(name, Some(0)))?,
            });
        }
        if row.evaluates {
            self.note(eval, "in evaluation mode");
        }
        let op = row.op.replace('#', &rank.to_string());
        eval.dispatch("aten", &if in_place { format!("{op}_") } else { op }, &call, &keywords)
    }

    /// Sizes of a result: one number for all dimensions, `None` for the input's own.
    fn sizes(&self, args: &[PyValue], rank: usize, given: Option<PyValue>) -> Result<PyValue> {
        let Some(PyValue::Tensor(x)) = args.first() else {
            return Err(super::expressions::refused(format!("{} of no tensor", self.class)));
        };
        let own = x.ty().layout.sizes.to_vec();
        let items = match given {
            Some(PyValue::List(items)) => items.borrow().clone(),
            Some(one) => vec![one; rank],
            None => Vec::new(),
        };
        let at = own.len().saturating_sub(items.len());
        let fill = |(i, v): (usize, PyValue)| match v {
            PyValue::None => PyValue::Num(own.get(at + i).cloned().unwrap_or(Expr::Int(1))),
            v => v,
        };
        Ok(PyValue::list(items.into_iter().enumerate().map(fill).collect()))
    }

    fn convolution(&self, eval: &mut Evaluator<'_, '_>, family: &str, rank: usize, x: PyValue) -> Result<PyValue> {
        let w = self.weight(eval, "weight")?;
        let b = if self.flag("bias", true) { self.weight(eval, "bias")? } else { PyValue::None };
        let option = |name: &str, default: i64| {
            self.option(name, None).unwrap_or_else(|| PyValue::list(vec![PyValue::int(default); rank]))
        };
        let groups = self.option("groups", None).unwrap_or(PyValue::int(1));
        let (stride, mut padding, dilation) = (option("stride", 1), option("padding", 0), option("dilation", 1));
        if family == "ConvTranspose" {
            let call = [x, w, b, stride, padding, option("output_padding", 0), groups, dilation];
            return eval.dispatch("aten", &format!("conv_transpose{rank}d"), &call, &[]);
        }
        let mut x = x;
        if let Some(PyValue::Str(mode)) = self.option("padding_mode", None)
            && &*mode != "zeros"
        {
            let PyValue::List(each) = &padding else {
                return Err(Error::unsupported(format!("the padding of the module {}", self.path)));
            };
            // Pairs before and behind, from the last dimension on.
            let pairs = each.borrow().iter().rev().flat_map(|n| [n.clone(), n.clone()]).collect();
            x = eval.dispatch("aten", "pad", &[x, PyValue::list(pairs), PyValue::Str(mode)], &[])?;
            padding = PyValue::list(vec![PyValue::int(0); rank]);
        }
        let call = [x, w, b, stride, padding, dilation, groups];
        eval.dispatch("aten", &format!("conv{rank}d"), &call, &[])
    }
}
