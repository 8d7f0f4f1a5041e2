//! PyTorch's own schemas, by name.

use restride_ir::OpDef;

/// Schemas of all operators in PyTorch's dispatcher, one per line, sorted (`scripts/make/dump_schemas.py`).
static SCHEMAS: &str = include_str!("../../data/schemas.txt");

/// All schemas, in alphabetical order.
pub(super) fn lines() -> impl Iterator<Item = &'static str> {
    SCHEMAS.lines()
}

/// Namespace, name and overload of a schema or a declaration's name: `add.Tensor` is PyTorch's `aten::add.Tensor`.
pub(super) fn head(schema: &str) -> (&str, &str, &str) {
    let head = schema.split('(').next().unwrap_or("");
    let (namespace, name) = head.split_once("::").unwrap_or(("aten", head));
    let (name, overload) = parts(name);
    (namespace, name, overload)
}

/// Splits `add.Tensor` into name and overload.
pub(super) fn parts(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, "default"))
}

/// The schemas from the first that sorts at or after `head`.
fn from(head: &str) -> impl Iterator<Item = &'static str> + use<> {
    // Byte positions of line starts: `low` is at or before the answer, and every line from `high` on sorts at or after `head`.
    let (mut low, mut high) = (0, SCHEMAS.len());
    while low < high {
        let middle = (low + high) / 2;
        let start = SCHEMAS[..middle].rfind('\n').map_or(0, |at| at + 1);
        let end = SCHEMAS[middle..].find('\n').map_or(SCHEMAS.len(), |at| middle + at + 1);
        if SCHEMAS[start..end] < *head {
            low = end;
        } else {
            high = start;
        }
    }
    SCHEMAS[low..].lines()
}

fn with_head(namespace: &str, name: &str, overload: &str) -> Option<&'static str> {
    let head = match overload {
        "default" => format!("{namespace}::{name}("),
        _ => format!("{namespace}::{name}.{overload}("),
    };
    // A name with a parenthesis is invalid, although a schema may start with it.
    from(&head).next().filter(|line| line.starts_with(&head) && !overload.contains('('))
}

/// PyTorch's schema of a full name (`aten.add.Tensor`).
pub(crate) fn of(full_name: &str) -> Option<&'static str> {
    let mut parts = full_name.splitn(3, '.');
    with_head(parts.next()?, parts.next()?, parts.next()?)
}

/// The schema that a declaration states or, by its name, takes from PyTorch.
pub(crate) fn text(def: &OpDef) -> Option<&'static str> {
    if def.schema.contains('(') {
        return Some(def.schema);
    }
    let (namespace, name, overload) = head(def.schema);
    with_head(namespace, name, overload)
}

/// PyTorch's schemas of the overloads of an operator (`aten`, `add`).
pub(crate) fn overloads(namespace: &str, name: &str) -> impl Iterator<Item = &'static str> {
    let head = format!("{namespace}::{name}");
    // `(` and `.` sort before every character that continues a longer name.
    from(&format!("{head}("))
        .take_while(move |line| line.strip_prefix(&head).is_some_and(|rest| rest.starts_with(['(', '.'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_found_by_its_name_and_nothing_else_is() {
        assert!(lines().is_sorted());
        for line in lines() {
            let (namespace, name, overload) = head(line);
            assert_eq!(of(&format!("{namespace}.{name}.{overload}")), Some(line));
            assert!(overloads(namespace, name).any(|l| l == line), "{line}");
        }
        for name in ["aten.add", "aten.add.", "aten.zzz.default", "a.a.a", "", "aten.add_.Tensor(Tensor", "zz.zz.zz"] {
            assert_eq!(of(name), None, "{name}");
        }
        let count = overloads("aten", "add").inspect(|l| assert_eq!(head(l).1, "add")).count();
        assert_eq!(count, lines().filter(|l| head(l).1 == "add" && l.starts_with("aten::")).count());
    }
}
