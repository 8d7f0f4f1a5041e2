//! Operator schemas, as PyTorch prints them: `aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)`.

use crate::OpError;

/// Types of arguments and returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgType {
    /// `Tensor`.
    Tensor,
    /// `Tensor[]`.
    Tensors,
    /// `Tensor?[]`.
    OptTensors,
    /// `Scalar`: any number.
    Scalar,
    /// `Scalar[]`.
    Scalars,
    /// `int` and `SymInt`.
    Int,
    /// `int[]` and `SymInt[]`, with the length that a single number is spread to.
    Ints(Option<u8>),
    /// `float` and `SymFloat`.
    Float,
    /// `float[]`.
    Floats,
    /// `bool` and `SymBool`.
    Bool,
    /// `bool[]`.
    Bools(Option<u8>),
    /// `str`, and `Any`, which names a process group or a reduction.
    Str,
    /// `str[]`.
    Strs,
    /// `ScalarType`.
    DType,
    /// `Device`.
    Device,
    /// `Layout`.
    Layout,
    /// `MemoryFormat`.
    MemoryFormat,
    /// `Generator`, dimension names, streams and the like; only `None` is supported.
    Other,
}

/// `(a!)`, `(a)`, `(a -> *)`: the alias set of an argument or return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AliasInfo {
    /// Names of the alias sets; `*` is the wildcard.
    pub sets: Vec<char>,
    /// Whether the operator writes it.
    pub write: bool,
}

/// A default value.
#[derive(Clone, PartialEq, Debug)]
pub enum Default {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
    /// A list of integers (or bools as 0 and 1).
    Ints(Vec<i64>),
    /// `contiguous_format`, `preserve_format`.
    MemoryFormat(crate::MemoryFormat),
    /// `strided`.
    Strided,
    /// A `ScalarType` by PyTorch's number (`long`, `float`).
    DType(restride_tensor::DType),
}

/// One argument.
#[derive(Clone, PartialEq, Debug)]
pub struct SchemaArg {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: ArgType,
    /// Whether `None` is allowed.
    pub optional: bool,
    /// Alias annotation.
    pub alias: Option<AliasInfo>,
    /// Default value.
    pub default: Option<Default>,
    /// Whether it is keyword-only.
    pub kwarg_only: bool,
}

/// One return.
#[derive(Clone, PartialEq, Debug)]
pub struct SchemaReturn {
    /// Type.
    pub ty: ArgType,
    /// Alias annotation.
    pub alias: Option<AliasInfo>,
}

/// A parsed schema.
#[derive(Clone, PartialEq, Debug)]
pub struct Schema {
    /// Namespace (`aten`).
    pub namespace: String,
    /// Name (`add_`).
    pub name: String,
    /// Overload (`Tensor`; `default` where PyTorch leaves it empty).
    pub overload: String,
    /// Arguments in order.
    pub args: Vec<SchemaArg>,
    /// Returns in order.
    pub returns: Vec<SchemaReturn>,
}

impl Schema {
    /// How many of the returns are lists. A node holds the members of all of them in one row.
    pub fn returned_lists(&self) -> usize {
        self.returns.iter().filter(|r| r.ty == ArgType::Tensors).count()
    }

    /// Full name: `aten.add_.Tensor`. Python functions and higher-order operators have no overload: `_operator.mul`,
    /// `higher_order.cond`.
    pub fn full_name(&self) -> String {
        Schema::name_of(&self.namespace, &self.name, &self.overload)
    }

    /// The full name of an operator from the parts of its schema's head.
    pub fn name_of(namespace: &str, name: &str, overload: &str) -> String {
        let python = matches!(namespace, "_operator" | "math" | "torch" | "higher_order");
        if python && overload == "default" {
            return format!("{namespace}.{name}");
        }
        format!("{namespace}.{name}.{overload}")
    }

    /// Whether the schema declares a written argument.
    pub fn is_mutable(&self) -> bool {
        self.args.iter().any(|a| a.alias.as_ref().is_some_and(|x| x.write))
    }

    /// Position of an argument.
    pub fn arg(&self, name: &str) -> Option<usize> {
        self.args.iter().position(|a| a.name == name)
    }

    /// Reads a schema as PyTorch prints it.
    pub fn parse(text: &str) -> Result<Schema, OpError> {
        let bad = |why: &str| OpError::new(format!("bad schema `{text}`: {why}"));
        let (head, rest) = text.split_once('(').ok_or_else(|| bad("no arguments"))?;
        let (namespace, name) = head.trim().split_once("::").ok_or_else(|| bad("no namespace"))?;
        let (name, overload) = name.split_once('.').unwrap_or((name, "default"));
        let close = matching(rest).ok_or_else(|| bad("unbalanced parentheses"))?;
        let (inner, tail) = (&rest[..close], rest[close + 1..].trim());
        let returns = tail.strip_prefix("->").ok_or_else(|| bad("no `->`"))?.trim();
        let mut args = Vec::new();
        let mut kwarg_only = false;
        for item in split_top(inner) {
            if item == "*" {
                kwarg_only = true;
                continue;
            }
            let (decl, default) = match split_once_top(item, '=') {
                Some((d, v)) => (d.trim(), Some(v.trim())),
                None => (item, None),
            };
            let (ty_text, arg_name) = decl.rsplit_once(' ').ok_or_else(|| bad("an argument without a name"))?;
            let (ty, optional, alias) = parse_type(ty_text.trim());
            let default = default.map(|d| parse_default(d, ty)).transpose().map_err(|e| bad(&e))?;
            args.push(SchemaArg { name: arg_name.to_string(), ty, optional, alias, default, kwarg_only });
        }
        let returns = match returns.strip_prefix('(') {
            Some(list) => split_top(list.strip_suffix(')').ok_or_else(|| bad("unbalanced returns"))?),
            None => vec![returns],
        };
        let returns = returns
            .into_iter()
            .map(|r| {
                let (r, _name) = split_return(r);
                let (ty, _, alias) = parse_type(r);
                SchemaReturn { ty, alias }
            })
            .collect();
        Ok(Schema { namespace: namespace.into(), name: name.into(), overload: overload.into(), args, returns })
    }
}

/// Position of the parenthesis that closes the one before `text`.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 1;
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(i);
        }
    }
    None
}

/// Splits at commas outside of brackets.
fn split_top(text: &str) -> Vec<&str> {
    let (mut out, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        out.push(last);
    }
    out
}

fn split_once_top(text: &str, sep: char) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            c if c == sep && depth == 0 => return Some((&text[..i], &text[i + 1..])),
            _ => {}
        }
    }
    None
}

/// A return may carry a name after its type.
fn split_return(text: &str) -> (&str, Option<&str>) {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ' ' if depth == 0 => return (&text[..i], Some(&text[i + 1..])),
            _ => {}
        }
    }
    (text, None)
}

fn parse_type(text: &str) -> (ArgType, bool, Option<AliasInfo>) {
    // `Tensor(a!)?`, `Tensor(a!)[]`, `SymInt[2]?`, `Tensor?[]`.
    let mut alias = None;
    let mut plain = String::new();
    let mut rest = text;
    while let Some(i) = rest.find('(') {
        plain.push_str(&rest[..i]);
        let close = matching(&rest[i + 1..]).map_or(rest.len(), |c| i + 1 + c);
        let inner = &rest[i + 1..close];
        let before = inner.split("->").next().unwrap_or("");
        alias = Some(AliasInfo {
            sets: before.chars().filter(|c| c.is_ascii_alphabetic() || *c == '*').collect(),
            write: before.contains('!'),
        });
        rest = rest.get(close + 1..).unwrap_or("");
    }
    plain.push_str(rest);
    let optional = plain.ends_with('?');
    let plain = plain.trim_end_matches('?');
    let (base, list) = match plain.split_once('[') {
        Some((b, n)) => (b, Some(n.trim_end_matches(']').parse::<u8>().ok())),
        None => (plain, None),
    };
    let ty = match (base, list) {
        ("Tensor", None) => ArgType::Tensor,
        ("Tensor", Some(_)) => ArgType::Tensors,
        ("Tensor?", Some(_)) => ArgType::OptTensors,
        ("Scalar" | "number", None) => ArgType::Scalar,
        ("Scalar", Some(_)) => ArgType::Scalars,
        ("int" | "SymInt", None) => ArgType::Int,
        ("int" | "SymInt", Some(n)) => ArgType::Ints(n),
        ("float" | "SymFloat", None) => ArgType::Float,
        ("float" | "SymFloat", Some(_)) => ArgType::Floats,
        ("bool" | "SymBool", None) => ArgType::Bool,
        ("bool", Some(n)) => ArgType::Bools(n),
        ("str" | "Any", None) => ArgType::Str,
        ("str", Some(_)) => ArgType::Strs,
        ("ScalarType", None) => ArgType::DType,
        ("Device", None) => ArgType::Device,
        ("Layout", None) => ArgType::Layout,
        ("MemoryFormat", None) => ArgType::MemoryFormat,
        _ => ArgType::Other,
    };
    (ty, optional, alias)
}

fn parse_default(text: &str, ty: ArgType) -> Result<Default, String> {
    let unquoted = text.trim_matches(|c| c == '"' || c == '\'');
    Ok(match text {
        "None" => Default::None,
        "True" => Default::Bool(true),
        "False" => Default::Bool(false),
        "contiguous_format" => Default::MemoryFormat(crate::MemoryFormat::Contiguous),
        "preserve_format" => Default::MemoryFormat(crate::MemoryFormat::Preserve),
        "strided" => Default::Strided,
        "long" => Default::DType(restride_tensor::DType::I64),
        "float" => Default::DType(restride_tensor::DType::F32),
        "Mean" => Default::Int(1),
        _ if text != unquoted => Default::Str(unquoted.to_string()),
        _ if text.starts_with('[') => {
            let items = text.trim_matches(['[', ']']).split(',').map(str::trim).filter(|s| !s.is_empty());
            let numbers: Result<Vec<i64>, String> = items
                .map(|s| match s {
                    "True" | "true" => Ok(1),
                    "False" | "false" => Ok(0),
                    s => s.parse().map_err(|_| format!("default `{text}`")),
                })
                .collect();
            Default::Ints(numbers?)
        }
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            // PyTorch prints `Mean` and other enums as numbers.
            (Ok(i), _) if ty == ArgType::Float => Default::Float(i as f64),
            // Enums by their numbers in PyTorch.
            (Ok(0), _) if ty == ArgType::MemoryFormat => Default::MemoryFormat(crate::MemoryFormat::Contiguous),
            (Ok(1), _) if ty == ArgType::MemoryFormat => Default::MemoryFormat(crate::MemoryFormat::Preserve),
            (Ok(4), _) if ty == ArgType::DType => Default::DType(restride_tensor::DType::I64),
            (Ok(6), _) if ty == ArgType::DType => Default::DType(restride_tensor::DType::F32),
            (Ok(i), _) if matches!(ty, ArgType::Ints(_)) => Default::Ints(vec![i]),
            (Ok(i), _) => Default::Int(i),
            (_, Ok(x)) => Default::Float(x),
            _ => return Err(format!("default `{text}`")),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_aliases_and_defaults() {
        let s =
            Schema::parse("aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)").unwrap();
        assert_eq!(s.full_name(), "aten.add_.Tensor");
        assert!(s.is_mutable() && s.args[2].kwarg_only);
        assert_eq!(s.args[2].default, Some(Default::Int(1)));
        assert_eq!(s.returns[0].alias.as_ref().unwrap().sets, ['a']);
    }

    #[test]
    fn reads_lists_and_wildcards() {
        let s = Schema::parse("aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
            .unwrap();
        assert_eq!(s.args[0].ty, ArgType::Tensor);
        assert_eq!(s.returns[0].ty, ArgType::Tensors);
        let s = Schema::parse(
            "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
        )
        .unwrap();
        assert_eq!(s.args[1].ty, ArgType::OptTensors);
        let s = Schema::parse("aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, SymInt[2] padding=[0, 0]) -> Tensor").unwrap();
        assert_eq!(s.args[3].default, Some(Default::Ints(vec![1])));
        assert!(s.args[2].optional);
        let s = Schema::parse("aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()").unwrap();
        assert!(s.returns.is_empty() && s.args[0].alias.as_ref().unwrap().write && s.args[0].ty == ArgType::Tensors);
        let s =
            Schema::parse("aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)")
                .unwrap();
        assert_eq!(s.returns.len(), 2);
    }
}
