//! From given types to inputs of the program, and from results to its outputs.

use crate::eval::Evaluator;
use crate::given::{Dynamic, DynamicRange, GivenInputs, GivenValue};
use crate::syntax::ast::{Ast, AstKind, Param};
use crate::value::{PyKey, PyValue};
use indexmap::IndexMap;
use restride_ir::{Arg, Error, ErrorKind, Expr, InputKind, Result, Scalar, Symbol, TensorType, Type};
use restride_pt2::pytree::{Container, TreeSpec};
use restride_tensor::{Layout, by_stride};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The arguments of a call, and how they are nested.
pub struct Bound {
    /// One for each parameter.
    pub args: Vec<PyValue>,
    /// The nesting, as PyTorch's `in_spec`.
    pub spec: String,
    /// Names of the parameters.
    pub names: Vec<Arc<str>>,
}

/// Takes given items for parameters.
struct Supply<'g> {
    items: &'g [(Option<Arc<str>>, GivenValue)],
    used: Vec<bool>,
}

impl Supply<'_> {
    fn named(&mut self, name: &str) -> Option<GivenValue> {
        let at = self.items.iter().position(|(n, _)| n.as_deref() == Some(name))?;
        self.used[at] = true;
        Some(self.items[at].1.clone())
    }

    fn unnamed(&mut self) -> Option<GivenValue> {
        let at = (0..self.items.len()).find(|i| !self.used[*i] && self.items[*i].0.is_none())?;
        self.used[at] = true;
        Some(self.items[at].1.clone())
    }

    fn left(&self) -> usize {
        (0..self.items.len()).filter(|i| !self.used[*i] && self.items[*i].0.is_none()).count()
    }

    /// The item of a parameter, put together from its parts where it is a list, tuple or dictionary.
    fn take(&mut self, name: &str, annotation: Option<&Ast>, after: usize) -> Option<GivenValue> {
        if let Some(found) = self.named(name) {
            return Some(found);
        }
        let (container, inner) = match annotation.map(|a| &a.kind) {
            Some(AstKind::Index(base, inner)) => (base.dotted().unwrap_or_default(), Some(&**inner)),
            _ => (String::new(), None),
        };
        match (container.as_str(), inner) {
            ("Optional", Some(inner)) => self.take(name, Some(inner), after),
            ("List", _) => {
                let mut out = Vec::new();
                while let Some(one) = self
                    .named(&format!("{name}_{}", out.len()))
                    .or_else(|| self.named(&format!("{name}.{}", out.len())))
                {
                    out.push(one);
                }
                if out.is_empty() {
                    if let Some(whole @ GivenValue::List(_)) = self.peek() {
                        self.unnamed();
                        return Some(whole);
                    }
                    while self.left() > after {
                        out.push(self.unnamed()?);
                    }
                }
                (!out.is_empty()).then_some(GivenValue::List(out))
            }
            ("Tuple", Some(inner)) => {
                if let Some(whole @ GivenValue::Tuple(_)) = self.peek() {
                    self.unnamed();
                    return Some(whole);
                }
                let types: Vec<&Ast> = match &inner.kind {
                    AstKind::Tuple(types) => types.iter().collect(),
                    _ => vec![inner],
                };
                let mut out = Vec::new();
                for (i, ty) in types.iter().enumerate() {
                    let left = after + types.len() - i - 1;
                    out.push(self.take(&format!("{name}_{i}"), Some(ty), left)?);
                }
                Some(GivenValue::Tuple(out))
            }
            ("Dict", _) => {
                if let Some(whole @ GivenValue::Dict(_)) = self.peek() {
                    self.unnamed();
                    return Some(whole);
                }
                let prefix = format!("{name}_");
                let mut out = Vec::new();
                for (i, (n, given)) in self.items.iter().enumerate() {
                    if let Some(key) = n.as_deref().and_then(|n| n.strip_prefix(&prefix)) {
                        self.used[i] = true;
                        out.push((Arc::from(key), given.clone()));
                    }
                }
                (!out.is_empty()).then_some(GivenValue::Dict(out))
            }
            _ => self.unnamed(),
        }
    }

    fn peek(&self) -> Option<GivenValue> {
        let at = (0..self.items.len()).find(|i| !self.used[*i] && self.items[*i].0.is_none())?;
        Some(self.items[at].1.clone())
    }
}

/// Makes inputs of the program for the parameters of a function.
///
/// # Errors
/// A parameter without a type and without a default: a usage error that names all of them.
pub fn bind(
    eval: &mut Evaluator<'_, '_>,
    params: &[Param],
    given: &GivenInputs,
    recorded: Option<&[GivenValue]>,
) -> Result<Bound> {
    let from_record: Vec<(Option<Arc<str>>, GivenValue)> =
        recorded.unwrap_or_default().iter().map(|g| (None, g.clone())).collect();
    let mut supply = Supply { items: &given.items, used: vec![false; given.items.len()] };
    let mut record = Supply { items: &from_record, used: vec![false; from_record.len()] };
    let mut chosen: Vec<Option<GivenValue>> = Vec::new();
    for (i, param) in params.iter().enumerate() {
        let after = params[i + 1..].iter().filter(|p| p.default.is_none()).count();
        let recorded = record.unnamed();
        let own = supply.take(&param.name, param.annotation.as_ref(), after.min(supply.left()));
        let declared = param.annotation.as_ref().and_then(Ast::dotted);
        let number = matches!(declared.as_deref(), Some("int" | "float" | "bool" | "number"));
        chosen.push(match own.or(recorded) {
            Some(GivenValue::Element(_, n)) if number => Some(GivenValue::Number(n)),
            chosen => chosen,
        });
    }
    let unused: Vec<&str> = (0..given.items.len())
        .filter(|i| !supply.used[*i])
        .map(|i| given.items[i].0.as_deref().unwrap_or("an unnamed input"))
        .collect();
    if !unused.is_empty() {
        let names: Vec<&str> = params.iter().map(|p| &*p.name).collect();
        return Err(Error::new(
            ErrorKind::Inputs,
            format!("the inputs have {}; the program takes {}", unused.join(", "), names.join(", ")),
        ));
    }
    let missing: Vec<&str> =
        params.iter().zip(&chosen).filter(|(p, c)| c.is_none() && p.default.is_none()).map(|(p, _)| &*p.name).collect();
    if !missing.is_empty() {
        return Err(untyped(&missing));
    }
    let last = chosen.iter().rposition(Option::is_some).map_or(0, |i| i + 1);
    let mut leaves = Leaves { eval, dynamic: &given.dynamic, symbols: BTreeMap::new(), used: Vec::new() };
    let mut out = Bound { args: Vec::new(), spec: String::new(), names: Vec::new() };
    let mut specs = Vec::new();
    for (param, given) in params.iter().zip(&chosen).take(last) {
        let given = match given {
            Some(given) => given.clone(),
            None => default_of(param)?,
        };
        let (value, spec) = leaves.value(&param.name, &given)?;
        out.args.push(value);
        out.names.push(param.name.clone());
        specs.push(spec);
    }
    if let Some(d) = given.dynamic.iter().find(|d| !leaves.used.contains(d)) {
        return Err(Error::new(ErrorKind::Inputs, format!("no input has the dimension {}.{}", d.input, d.dim))
            .help("name it as the inputs of `restride show` are named, as x.0=1..64"));
    }
    let args = TreeSpec::Node(Container::Tuple, specs);
    let spec = TreeSpec::Node(Container::Tuple, vec![args, TreeSpec::Node(Container::Dict(Vec::new()), Vec::new())]);
    out.spec = spec.print();
    Ok(out)
}

/// The usage error for inputs without types.
pub fn untyped(names: &[&str]) -> Error {
    let example: Vec<String> = names.iter().map(|n| format!("{n}=f32[1,3]")).collect();
    Error::new(
        ErrorKind::Inputs,
        format!("the file does not hold the types of its inputs: {} of {}", plural(names.len()), names.join(", ")),
    )
    .help(format!("give inputs with --inputs FILE, or their types with --random \"{}\"", example.join(",")))
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "that" } else { "those" }
}

/// A literal default.
fn default_of(param: &Param) -> Result<GivenValue> {
    Ok(match param.default.as_ref().map(|d| &d.kind) {
        Some(AstKind::Int(i)) => GivenValue::Number(Scalar::Int(*i)),
        Some(AstKind::Float(x)) => GivenValue::Number(Scalar::Float(*x)),
        Some(AstKind::Bool(b)) => GivenValue::Number(Scalar::Bool(*b)),
        Some(AstKind::Str(s)) => GivenValue::Str(s.clone()),
        Some(AstKind::None) | None => GivenValue::None,
        Some(_) => {
            return Err(Error::new(ErrorKind::Inputs, format!("{} has a default that is no literal", param.name))
                .help("give it with --inputs or --random"));
        }
    })
}

/// Makes the leaves of nested inputs.
struct Leaves<'e, 'a, 'l, 'd> {
    eval: &'e mut Evaluator<'a, 'l>,
    dynamic: &'d [Dynamic],
    /// Symbols and their given values, by the first of the sizes that are equal.
    symbols: BTreeMap<(String, usize), (Expr, i64)>,
    used: Vec<Dynamic>,
}

impl Leaves<'_, '_, '_, '_> {
    fn value(&mut self, name: &str, given: &GivenValue) -> Result<(PyValue, TreeSpec)> {
        let many = |me: &mut Self, items: &[GivenValue]| -> Result<(Vec<PyValue>, Vec<TreeSpec>)> {
            let mut out = (Vec::new(), Vec::new());
            for (i, item) in items.iter().enumerate() {
                let (value, spec) = me.value(&format!("{name}_{i}"), item)?;
                out.0.push(value);
                out.1.push(spec);
            }
            Ok(out)
        };
        Ok(match given {
            GivenValue::Tensor(dtype, layout) => {
                let layout = self.layout(name, layout)?;
                let (t, value) = self.eval.rec.input(name, TensorType::new(*dtype, layout));
                self.eval.rec.user_input(value, InputKind::User(name.into()));
                (PyValue::Tensor(t), TreeSpec::Leaf)
            }
            GivenValue::Element(dtype, _) => {
                return self.value(name, &GivenValue::Tensor(*dtype, Layout::contiguous(&[])));
            }
            GivenValue::Number(n) => {
                let e = Expr::from(*n);
                self.fixed(name, Type::Scalar(e.clone()), Arg::Scalar(e.clone()));
                (PyValue::Num(e), TreeSpec::Leaf)
            }
            GivenValue::Str(s) => {
                self.fixed(name, Type::Str, Arg::Str(s.clone()));
                (PyValue::Str(s.clone()), TreeSpec::Leaf)
            }
            GivenValue::None => {
                self.fixed(name, Type::None, Arg::None);
                (PyValue::None, TreeSpec::Leaf)
            }
            GivenValue::List(items) => {
                let (values, specs) = many(self, items)?;
                (PyValue::list(values), TreeSpec::Node(Container::List, specs))
            }
            GivenValue::Tuple(items) => {
                let (values, specs) = many(self, items)?;
                (PyValue::tuple(values), TreeSpec::Node(Container::Tuple, specs))
            }
            GivenValue::Dict(items) => {
                let (mut out, mut specs, mut keys) = (IndexMap::new(), Vec::new(), Vec::new());
                for (key, item) in items {
                    let (value, spec) = self.value(&format!("{name}_{key}"), item)?;
                    out.insert(PyKey::Str(key.clone()), value);
                    specs.push(spec);
                    keys.push(restride_pt2::pytree::Value::String(key.to_string()));
                }
                (PyValue::Dict(Rc::new(crate::value::Shared::new(out))), TreeSpec::Node(Container::Dict(keys), specs))
            }
        })
    }

    fn fixed(&mut self, name: &str, ty: Type, value: Arg) {
        let v = self.eval.rec.other_input(name, ty);
        self.eval.rec.user_input(v, InputKind::Fixed { name: name.into(), value });
    }

    /// The first of the sizes that a symbolic size equals, and its range.
    fn range_of(&self, d: &Dynamic) -> Result<((String, usize), i64, i64)> {
        let mut d = d;
        for _ in 0..=self.dynamic.len() {
            match &d.range {
                DynamicRange::Between(lo, hi) => return Ok(((d.input.clone(), d.dim), *lo, *hi)),
                DynamicRange::Same(other, dim) => {
                    let found = self.dynamic.iter().find(|o| o.input == *other && o.dim == *dim);
                    d = found.ok_or_else(|| {
                        Error::new(ErrorKind::Inputs, format!("{other}.{dim} is no symbolic size of an input"))
                            .help(format!("give it a range, as {other}.{dim}=1..64"))
                    })?;
                }
            }
        }
        Err(Error::new(ErrorKind::Inputs, format!("{}.{} equals itself: give it a range", d.input, d.dim)))
    }

    fn layout(&mut self, name: &str, layout: &Layout) -> Result<Layout<Expr>> {
        let mut sizes: Vec<Expr> = layout.sizes.iter().map(|n| Expr::Int(*n)).collect();
        let mut any = false;
        for d in self.dynamic.iter().filter(|d| d.input == name) {
            let Some(size) = sizes.get_mut(d.dim) else { continue };
            any = true;
            self.used.push(d.clone());
            let given = layout.sizes[d.dim];
            let (first, lo, hi) = self.range_of(d)?;
            if !(lo..=hi).contains(&given) {
                let what = format!("{name} has size {given} in dimension {}, outside of {lo}..{hi}", d.dim);
                return Err(Error::new(ErrorKind::Inputs, what));
            }
            *size = match self.symbols.get(&first) {
                Some((symbol, same)) if *same == given => symbol.clone(),
                Some((_, other)) => {
                    let what = format!(
                        "{name}.{} is {given}, and {}.{} is {other}: they must be equal",
                        d.dim, first.0, first.1
                    );
                    return Err(Error::new(ErrorKind::Inputs, what));
                }
                None => {
                    let symbol = self.eval.rec.symbol("s", Some(lo), Some(hi));
                    if let Expr::Sym(s) = &symbol {
                        self.hint(s, given);
                    }
                    self.symbols.insert(first, (symbol.clone(), given));
                    symbol
                }
            };
        }
        if !any {
            return Ok(layout.map(|n| Expr::Int(*n)));
        }
        if layout.is_contiguous() {
            return Ok(Layout::contiguous(&sizes));
        }
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        by_stride(&mut order, |d| layout.strides[d]);
        Ok(Layout::permuted(&sizes, &order))
    }

    fn hint(&mut self, symbol: &Symbol, given: i64) {
        self.eval.hints.insert(symbol.clone(), Scalar::Int(given));
    }
}

/// The outputs of a program for the value that the code returns, and their nesting.
///
/// # Errors
/// A result that is no tensor, number, string or container of those.
pub fn outputs(eval: &mut Evaluator<'_, '_>, value: &PyValue) -> Result<(Vec<PyValue>, TreeSpec)> {
    let mut leaves = Vec::new();
    let spec = flatten(eval, value, &mut leaves, 0)?;
    // PyTorch's programs return a tuple of results for a single one, too.
    Ok((leaves, spec))
}

fn flatten(eval: &mut Evaluator<'_, '_>, value: &PyValue, out: &mut Vec<PyValue>, depth: usize) -> Result<TreeSpec> {
    if depth > 32 {
        return Err(Error::new(ErrorKind::Limit, "results nested too deep"));
    }
    let mut many = |eval: &mut Evaluator<'_, '_>, items: &[PyValue]| {
        items.iter().map(|i| flatten(eval, i, out, depth + 1)).collect::<Result<Vec<_>>>()
    };
    Ok(match value {
        PyValue::Tuple(items, _) => TreeSpec::Node(Container::Tuple, many(eval, items)?),
        PyValue::List(items) => {
            let items = items.borrow().clone();
            TreeSpec::Node(Container::List, many(eval, &items)?)
        }
        PyValue::Dict(d) => {
            let d = d.borrow().clone();
            let mut keys = Vec::new();
            for k in d.keys() {
                keys.push(match k {
                    PyKey::Str(s) => restride_pt2::pytree::Value::String(s.to_string()),
                    PyKey::Int(i) => restride_pt2::pytree::Value::from(*i),
                    _ => return Err(Error::unsupported("a result that is a dictionary with such keys")),
                });
            }
            let items: Vec<PyValue> = d.values().cloned().collect();
            TreeSpec::Node(Container::Dict(keys), many(eval, &items)?)
        }
        PyValue::Tensor(_) | PyValue::Num(_) | PyValue::None | PyValue::Str(_) | PyValue::Complex(..) => {
            out.push(value.clone());
            TreeSpec::Leaf
        }
        PyValue::Poison(why) => return Err(Error::unsupported(why.to_string())),
        other => return Err(Error::unsupported(format!("a result that is {}", other.kind()))),
    })
}

/// A leaf of the results as an output of the graph.
///
/// # Errors
/// A tensor of a branch alone.
pub fn output_arg(eval: &mut Evaluator<'_, '_>, leaf: &PyValue) -> Result<Arg> {
    Ok(match leaf {
        PyValue::Tensor(t) => Arg::Value(eval.rec.value(t)?),
        PyValue::Num(e) => Arg::Scalar(e.clone()),
        PyValue::Str(s) => Arg::Str(s.clone()),
        PyValue::Complex(re, im) => Arg::Complex(*re, *im),
        _ => Arg::None,
    })
}
