//! Users' operators, known by their schemas alone.
//!
//! A schema does not state the values that an operator writes, or their order: arguments that alias must reach it
//! aliased. Its functional form therefore takes the bases of the written arguments, describes the views, and returns the
//! bases' new contents:
//!
//! `mylib::foo(Tensor(a!) x, Tensor(b!)[] ys, Tensor z) -> Tensor` becomes
//! `mylib::foo_functional(Tensor[] _all_bases, int[] _views, Tensor z) -> (Tensor, Tensor[])`.
//!
//! PyTorch's `auto_functionalized_v2` expresses the same in a file. [`CustomView`] describes a view in numbers.

use super::{keep, register_custom};
use restride_ir::{ArgType, Dim, Expr, Layout, Op, OpDef, OpError, RegisteredOp, Schema, SchemaArg};
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

type Result<T> = std::result::Result<T, OpError>;

/// Operators that write arguments, and their functional forms, each stored under the other's name.
fn pairs() -> &'static RwLock<HashMap<&'static str, Op>> {
    static PAIRS: OnceLock<RwLock<HashMap<&'static str, Op>>> = OnceLock::new();
    PAIRS.get_or_init(Default::default)
}

fn other(op: Op) -> Option<Op> {
    pairs().read().unwrap_or_else(PoisonError::into_inner).get(op.name()).copied()
}

/// The functional form of a user's operator that writes arguments.
pub fn custom_form(op: Op) -> Option<Op> {
    other(op).filter(|_| op.is_mutable())
}

/// The user's operator that a functional form belongs to.
pub fn custom_form_of(form: Op) -> Option<Op> {
    other(form).filter(|_| !form.is_mutable())
}

/// View of one written tensor on its base.
#[derive(Clone, PartialEq, Debug)]
pub enum CustomView {
    /// The argument is `None`.
    None,
    /// The base with this index itself.
    Base(usize),
    /// A view of the base with this index, on its storage.
    Strided(usize, Layout<Expr>),
}

/// Description of a written argument.
#[derive(Clone, PartialEq, Debug)]
pub enum CustomArg {
    /// A tensor.
    One(CustomView),
    /// A list of tensors, or a `None` list.
    List(Option<Vec<CustomView>>),
}

const NONE: i64 = -1;

/// Encodes the written arguments, in schema order, as the form's argument `_views`.
///
/// A list starts with its length. A view is its base's index, its rank (-1 for the base itself), sizes, strides and offset.
pub fn encode_views(args: &[CustomArg]) -> Vec<Expr> {
    fn one(v: &CustomView, out: &mut Vec<Expr>) {
        match v {
            CustomView::None => out.push(Expr::Int(NONE)),
            CustomView::Base(b) => out.extend([Expr::Int(*b as i64), Expr::Int(NONE)]),
            CustomView::Strided(b, l) => {
                out.extend([Expr::Int(*b as i64), Expr::Int(l.rank() as i64)]);
                out.extend(l.sizes.iter().chain(&l.strides).chain([&l.offset]).cloned());
            }
        }
    }
    let mut out = Vec::new();
    for arg in args {
        match arg {
            CustomArg::One(v) => one(v, &mut out),
            CustomArg::List(None) => out.push(Expr::Int(NONE)),
            CustomArg::List(Some(list)) => {
                out.push(Expr::Int(list.len() as i64));
                list.iter().for_each(|v| one(v, &mut out));
            }
        }
    }
    out
}

/// Decodes the numbers of [`encode_views`] for the arguments that `op` writes, on `bases` bases.
///
/// # Errors
/// The numbers describe no views of these bases.
pub fn decode_views(op: Op, numbers: &[Expr], bases: usize) -> Result<Vec<CustomArg>> {
    let bad = || OpError::new(format!("the views of {op} are not what its functional form takes"));
    let mut rest = numbers.iter();
    let mut next = || rest.next().cloned().ok_or_else(bad);
    let known = |e: Expr| e.known().ok_or_else(bad);
    let one = |next: &mut dyn FnMut() -> Result<Expr>| -> Result<CustomView> {
        let base = known(next()?)?;
        if base == NONE {
            return Ok(CustomView::None);
        }
        let base = usize::try_from(base).ok().filter(|b| *b < bases).ok_or_else(bad)?;
        let rank = known(next()?)?;
        if rank == NONE {
            return Ok(CustomView::Base(base));
        }
        let rank = usize::try_from(rank).ok().filter(|r| *r <= numbers.len()).ok_or_else(bad)?;
        let sizes = (0..rank).map(|_| next()).collect::<Result<Vec<_>>>()?;
        let strides = (0..rank).map(|_| next()).collect::<Result<Vec<_>>>()?;
        Ok(CustomView::Strided(base, Layout::strided(&sizes, &strides, next()?)))
    };
    let mut out = Vec::new();
    for arg in op.schema().args.iter().filter(|a| writes(a)) {
        if arg.ty == ArgType::Tensor {
            out.push(CustomArg::One(one(&mut next)?));
            continue;
        }
        let len = known(next()?)?;
        out.push(CustomArg::List(if len == NONE {
            None
        } else {
            let len = usize::try_from(len).ok().filter(|n| *n <= numbers.len()).ok_or_else(bad)?;
            Some((0..len).map(|_| one(&mut next)).collect::<Result<_>>()?)
        }));
    }
    if next().is_ok() { Err(bad()) } else { Ok(out) }
}

/// Registers a user's operator, and its functional form if it writes arguments and has one.
pub(crate) fn custom(schema: &Schema, text: &'static str) -> Result<Op> {
    let op = RegisteredOp::new(OpDef::new(text), None, None)?;
    let written: Vec<&SchemaArg> = schema.args.iter().filter(|a| writes(a)).collect();
    let tensors = |ty: ArgType| matches!(ty, ArgType::Tensor | ArgType::Tensors | ArgType::OptTensors);
    // The form cannot represent the length of a list of results. A returned view does not declare which part of its argument
    // it shows.
    let results = schema.returns.iter().all(|r| match &r.alias {
        Some(alias) => alias.write && r.ty == ArgType::Tensor,
        None => !matches!(r.ty, ArgType::Tensors | ArgType::OptTensors),
    });
    if written.is_empty() || !results || !written.iter().all(|a| tensors(a.ty)) {
        return Ok(keep(op));
    }
    let form = register_custom(&form_text(schema, text)?)?;
    // Under the lock of the pairs: a thread that finds the operator asks for its form next.
    let mut pairs = pairs().write().unwrap_or_else(PoisonError::into_inner);
    let op = keep(op);
    pairs.insert(op.name(), form);
    pairs.insert(form.name(), op);
    Ok(op)
}

/// The schema of an operator's functional form.
fn form_text(schema: &Schema, text: &str) -> Result<String> {
    let bad = || OpError::new(format!("bad schema `{text}`"));
    let (head, _) = text.split_once('(').ok_or_else(bad)?;
    let (name, overload) = head.split_once('.').map_or((head, ""), |(n, o)| (n, o));
    let dot = if overload.is_empty() { "" } else { "." };
    let (args, returns) = text[head.len() + 1..].rsplit_once("->").ok_or_else(bad)?;
    let args = args.trim().strip_suffix(')').ok_or_else(bad)?;
    let mut kept = vec!["Tensor[] _all_bases", "int[] _views"];
    let mut decls = schema.args.iter();
    for item in split(args) {
        if item == "*" || !writes(decls.next().ok_or_else(bad)?) {
            kept.push(item);
        }
    }
    if kept.last() == Some(&"*") {
        kept.pop();
    }
    let returns = returns.trim();
    let inner = returns.strip_prefix('(').and_then(|r| r.strip_suffix(')')).unwrap_or(returns);
    let own = split(inner).into_iter().zip(&schema.returns).filter(|(_, r)| r.alias.is_none()).map(|(t, _)| t);
    let results: Vec<&str> = own.chain(["Tensor[]"]).collect();
    Ok(format!("{name}_functional{dot}{overload}({}) -> ({})", kept.join(", "), results.join(", ")))
}

/// Splits at commas outside of brackets and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut out, mut depth, mut quoted, mut start) = (Vec::new(), 0, false, 0);
    for (i, c) in text.char_indices() {
        match c {
            '"' | '\'' => quoted = !quoted,
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 && !quoted => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    out.extend((!last.is_empty()).then_some(last));
    out
}

fn writes(arg: &SchemaArg) -> bool {
    arg.alias.as_ref().is_some_and(|a| a.write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register_custom;

    #[test]
    fn operators_that_write_get_a_form_over_bases() {
        let text = "customs::foo(Tensor(a!) x, Tensor y, *, Tensor(b!)? z=None, int n=2, str s=\"ab\") \
                    -> (Tensor, Tensor(a!))";
        let op = register_custom(text).unwrap();
        let form = custom_form(op).unwrap();
        assert_eq!(custom_form_of(form), Some(op));
        assert_eq!((custom_form(form), custom_form_of(op)), (None, None));
        assert_eq!(
            form.def().schema,
            "customs::foo_functional(Tensor[] _all_bases, int[] _views, Tensor y, *, int n=2, str s=\"ab\") \
             -> (Tensor, Tensor[])"
        );
        assert_eq!(register_custom(text), Ok(op));
        assert!(register_custom("customs::foo(Tensor x) -> Tensor").is_err());
        assert!(register_custom("customs::bar(Tensor x").is_err());
    }

    #[test]
    fn what_only_reads_or_cannot_be_said_gets_none() {
        for text in [
            "customs::reads(Tensor x) -> Tensor",
            "customs::view(Tensor(a!) x, Tensor(b) y) -> Tensor(b)",
            "customs::many(Tensor(a!) x) -> Tensor[]",
        ] {
            assert_eq!(custom_form(register_custom(text).unwrap()), None, "{text}");
        }
        let nothing = register_custom("customs::only(*, Tensor(a!) o) -> ()").unwrap();
        assert_eq!(
            custom_form(nothing).unwrap().def().schema,
            "customs::only_functional(Tensor[] _all_bases, int[] _views) -> (Tensor[])"
        );
    }

    #[test]
    fn views_come_back_as_they_were_said() {
        let op = register_custom("customs::lists(Tensor(a!)[] xs, Tensor(b!)? y, Tensor(c!)?[]? zs) -> ()").unwrap();
        let part = CustomView::Strided(1, Layout::strided(&[2, 3].map(Expr::Int), &[3, 1].map(Expr::Int), 6.into()));
        let args = [
            CustomArg::List(Some(vec![CustomView::Base(0), part.clone()])),
            CustomArg::One(CustomView::None),
            CustomArg::List(Some(vec![CustomView::None, part])),
        ];
        let numbers = encode_views(&args);
        assert_eq!(decode_views(op, &numbers, 2).unwrap(), args);
        assert!(decode_views(op, &numbers, 1).is_err());
        assert!(decode_views(op, &numbers[1..], 2).is_err());
        let nothing = [CustomArg::List(Some(Vec::new())), CustomArg::One(CustomView::Base(0)), CustomArg::List(None)];
        assert_eq!(decode_views(op, &encode_views(&nothing), 1).unwrap(), nothing);
    }
}
