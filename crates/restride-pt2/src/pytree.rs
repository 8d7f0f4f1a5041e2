//! The nesting of a program's inputs and outputs: PyTorch's pytree specs, as the JSON strings `in_spec` and
//! `out_spec`.

use crate::error::{At, Pt2Error, Result};
use crate::model;
use serde::Deserialize;
/// A key of a dictionary.
pub use serde_json::Value;
use std::fmt::Write;

/// How values are nested. A leaf is one value, `None` included.
#[derive(Debug, Clone, PartialEq)]
pub enum TreeSpec {
    /// one value
    Leaf,
    /// a container
    Node(Container, Vec<TreeSpec>),
}

/// A container of Python. Keys of dictionaries are JSON, nearly always strings.
#[derive(Debug, Clone, PartialEq)]
pub enum Container {
    /// `tuple`
    Tuple,
    /// `list`
    List,
    /// `dict`, with its keys
    Dict(Vec<Value>),
    /// `collections.OrderedDict`, with its keys
    OrderedDict(Vec<Value>),
    /// `collections.defaultdict`
    DefaultDict {
        /// module of the default factory
        module: String,
        /// name of the default factory
        factory: String,
        /// the keys
        keys: Vec<Value>,
    },
    /// a named tuple, by the name that its class is registered under
    NamedTuple(String),
    /// `collections.deque`
    Deque {
        /// its `maxlen`
        max_len: Option<i64>,
    },
    /// some registered class, such as `torch.return_types.sort`
    Custom {
        /// its registered name
        name: String,
        /// the class's own context
        context: Value,
    },
}

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// `['key']`
    Key(String),
    /// `[0]`
    Index(i64),
    /// `.attribute`
    Attr(String),
}

#[derive(Deserialize)]
struct TreeRecord {
    r#type: Option<String>,
    context: Value,
    children_spec: Vec<TreeRecord>,
}

impl TreeSpec {
    /// Reads a spec (protocol 1, the only one that PyTorch has).
    pub fn parse(text: &str) -> Result<Self> {
        let (protocol, spec): (i64, TreeRecord) = model::parse(text.as_bytes()).at(|| place(text))?;
        if protocol != 1 {
            return Err(Pt2Error::unsupported(format!("pytree protocol {protocol}")).at(place(text)));
        }
        convert(spec).at(|| place(text))
    }

    /// Prints it as PyTorch does.
    pub fn print(&self) -> String {
        let mut out = "[1, ".to_string();
        self.print_into(&mut out);
        out.push(']');
        out
    }

    /// The number of leaves.
    pub fn leaf_count(&self) -> usize {
        match self {
            Self::Leaf => 1,
            Self::Node(_, children) => children.iter().map(Self::leaf_count).sum(),
        }
    }

    /// The path to every leaf, in order.
    pub fn leaf_paths(&self) -> Vec<Vec<PathStep>> {
        let mut out = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut out);
        out
    }

    fn collect_paths(&self, prefix: &mut Vec<PathStep>, out: &mut Vec<Vec<PathStep>>) {
        let Self::Node(container, children) = self else {
            out.push(prefix.clone());
            return;
        };
        for (i, child) in children.iter().enumerate() {
            prefix.push(match container.keys().and_then(|k| k.get(i)) {
                Some(Value::String(s)) => PathStep::Key(s.clone()),
                Some(key) => match key.as_i64() {
                    Some(n) => PathStep::Index(n),
                    None => PathStep::Key(key.to_string()),
                },
                None => PathStep::Index(i as i64),
            });
            child.collect_paths(prefix, out);
            prefix.pop();
        }
    }

    fn print_into(&self, out: &mut String) {
        let Self::Node(container, children) = self else {
            out.push_str(r#"{"type": null, "context": null, "children_spec": []}"#);
            return;
        };
        let quoted = |text: &str| python_json(&Value::String(text.to_string()));
        let list = |keys: &[Value]| python_json(&Value::Array(keys.to_vec()));
        let (name, context) = match container {
            Container::Tuple => ("builtins.tuple", quoted("null")),
            Container::List => ("builtins.list", quoted("null")),
            Container::Dict(keys) => ("builtins.dict", quoted(&list(keys))),
            Container::OrderedDict(keys) => ("collections.OrderedDict", quoted(&list(keys))),
            Container::DefaultDict { module, factory, keys } => (
                "collections.defaultdict",
                format!(
                    r#"{{"default_factory_module": {}, "default_factory_name": {}, "dict_context": {}}}"#,
                    quoted(module),
                    quoted(factory),
                    list(keys)
                ),
            ),
            Container::NamedTuple(class) => ("collections.namedtuple", quoted(class)),
            Container::Deque { max_len: None } => ("collections.deque", quoted("null")),
            Container::Deque { max_len: Some(n) } => ("collections.deque", quoted(&n.to_string())),
            Container::Custom { name, context } => (name.as_str(), python_json(context)),
        };
        // Writing to a string cannot fail.
        let _ = write!(out, r#"{{"type": {}, "context": {context}, "children_spec": ["#, quoted(name));
        for (i, child) in children.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            child.print_into(out);
        }
        out.push_str("]}");
    }
}

impl Container {
    /// The keys, of a dictionary.
    pub fn keys(&self) -> Option<&[Value]> {
        match self {
            Self::Dict(keys) | Self::OrderedDict(keys) | Self::DefaultDict { keys, .. } => Some(keys),
            _ => None,
        }
    }
}

fn place(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("pytree spec {short}")
}

fn convert(spec: TreeRecord) -> Result<TreeSpec> {
    let Some(name) = spec.r#type else {
        if !spec.context.is_null() || !spec.children_spec.is_empty() {
            return Err(Pt2Error::malformed("a leaf with context or children"));
        }
        return Ok(TreeSpec::Leaf);
    };
    let container = container(name, spec.context)?;
    let children: Vec<TreeSpec> = spec.children_spec.into_iter().map(convert).collect::<Result<_>>()?;
    if let Some(keys) = container.keys()
        && keys.len() != children.len()
    {
        return Err(Pt2Error::malformed(format!("a dictionary of {} keys and {} values", keys.len(), children.len())));
    }
    Ok(TreeSpec::Node(container, children))
}

fn container(name: String, context: Value) -> Result<Container> {
    let bad = || Pt2Error::malformed(format!("the context of a {name} is {context}"));
    // Most contexts are JSON inside of a JSON string.
    let inner = || -> Result<Value> {
        let text = context.as_str().ok_or_else(bad)?;
        model::parse(text.as_bytes()).map_err(|_| bad())
    };
    let keys = |v: &Value| v.as_array().cloned().ok_or_else(bad);
    Ok(match name.as_str() {
        "builtins.tuple" => Container::Tuple,
        "builtins.list" => Container::List,
        "builtins.dict" => Container::Dict(keys(&inner()?)?),
        "collections.OrderedDict" => Container::OrderedDict(keys(&inner()?)?),
        "collections.defaultdict" => {
            let text = |field: &str| {
                let value = context.get(field).and_then(Value::as_str);
                value.map(str::to_string).ok_or_else(bad)
            };
            Container::DefaultDict {
                module: text("default_factory_module")?,
                factory: text("default_factory_name")?,
                keys: keys(context.get("dict_context").ok_or_else(bad)?)?,
            }
        }
        "collections.namedtuple" => Container::NamedTuple(context.as_str().ok_or_else(bad)?.to_string()),
        "collections.deque" => Container::Deque {
            max_len: match inner()? {
                Value::Null => None,
                n => Some(n.as_i64().ok_or_else(bad)?),
            },
        },
        _ => Container::Custom { name, context },
    })
}

/// JSON in ASCII, with Python's spaces.
fn python_json(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python_json).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|(k, v)| format!("{}: {}", python_json(&Value::String(k.clone())), python_json(v)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
        simple => {
            let mut out = String::new();
            for c in simple.to_string().chars() {
                if c.is_ascii() {
                    out.push(c);
                } else {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
            }
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PyTorch 2.15 printed it.
    const IN_SPEC: &str = r#"[1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": "builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": "builtins.dict", "context": "[\"k\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}, {"type": "builtins.list", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}, {"type": "collections.namedtuple", "context": "my.NT", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", "default_factory_name": "int", "dict_context": ["u"]}, "children_spec": [{"type": null, "context": null, "children_spec": []}]}, {"type": "collections.OrderedDict", "context": "[\"z\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}, {"type": "collections.deque", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}]"#;
    const OUT_SPEC: &str = r#"[1, {"type": "builtins.dict", "context": "[\"a\", 3]", "children_spec": [{"type": "torch.return_types.sort", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}, {"type": null, "context": null, "children_spec": []}]}]"#;

    #[test]
    fn specs_round_trip() {
        for text in [IN_SPEC, OUT_SPEC] {
            assert_eq!(TreeSpec::parse(text).unwrap().print(), text);
        }
        let odd = TreeSpec::Node(
            Container::Dict(vec![Value::String("é\"😀".to_string())]),
            vec![TreeSpec::Node(Container::Deque { max_len: Some(3) }, vec![])],
        );
        assert!(odd.print().is_ascii());
        assert_eq!(TreeSpec::parse(&odd.print()).unwrap(), odd);
    }

    #[test]
    fn leaves() {
        let spec = TreeSpec::parse(IN_SPEC).unwrap();
        assert_eq!(spec.leaf_count(), 8);
        let paths = spec.leaf_paths();
        assert_eq!(paths.len(), 8);
        let at = PathStep::Index;
        assert_eq!(paths[1], [at(0), at(1), PathStep::Key("k".into())]);
        assert_eq!(paths[4], [at(0), at(3), at(1)]);
        assert_eq!(TreeSpec::parse(OUT_SPEC).unwrap().leaf_count(), 3);
    }

    #[test]
    fn what_is_no_spec_is_an_error() {
        let leaf = r#"{"type": null, "context": null, "children_spec": []}"#;
        for text in [
            String::new(),
            format!("[2, {leaf}]"),
            format!("[1, {}]", leaf.replace("[]", &format!("[{leaf}]"))),
            r#"[1, {"type": "builtins.dict", "context": "[\"a\"]", "children_spec": []}]"#.to_string(),
            r#"[1, {"type": "builtins.dict", "context": "null", "children_spec": []}]"#.to_string(),
            r#"[1, {"type": "builtins.dict", "context": null, "children_spec": []}]"#.to_string(),
            r#"[1, {"type": "collections.defaultdict", "context": {}, "children_spec": []}]"#.to_string(),
            format!("[1, {}", r#"{"type":"builtins.list","context":"null","children_spec":["#.repeat(10_000)),
        ] {
            assert!(TreeSpec::parse(&text).is_err(), "{text}");
        }
        for n in 0..IN_SPEC.len() {
            assert!(TreeSpec::parse(&IN_SPEC[..n]).is_err());
        }
    }
}
