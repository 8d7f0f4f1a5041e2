//! The conditions on its inputs that an exported program carries (`guards_code`): Python source such as
//! `(L['x'].size()[0] % 2) == 0`.

use crate::error::{Pt2Error, Result};
use crate::pyexpr::{self, Expr, Unary};
pub use crate::pyexpr::{Binary, Compare};
use std::fmt;

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Guard {
    /// Must be true of the inputs.
    Check(GuardExpr),
    /// Source that is not understood; whoever runs the program says that it is not enforced.
    Unsupported(String),
}

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// `['key']`; the first step is the name of a parameter of `forward`
    Key(String),
    /// `[0]`
    Index(i64),
    /// `.attribute`
    Attr(String),
}

/// What is asked of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Itself, a number, truth value, string or none.
    Value,
    /// A size; negative dimensions count from the end.
    Size(i64),
    /// A stride.
    Stride(i64),
    /// The storage offset.
    StorageOffset,
    /// The number of dimensions.
    Rank,
    /// The number of elements.
    Numel,
    /// The length of a list.
    Len,
}

/// An input, or part of one, and what is asked of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRef {
    /// The way to it; never empty.
    pub path: Vec<PathStep>,
    /// What is asked.
    pub what: Quantity,
}

/// A function in a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names are Python's
pub enum GuardFn {
    Min,
    Max,
    Abs,
    Floor,
    Ceil,
    Trunc,
    Round,
    Float,
    Int,
    Sqrt,
    IsNan,
}

/// What a guard computes.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names are Python's
pub enum GuardExpr {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Input(InputRef),
    Neg(Box<GuardExpr>),
    Not(Box<GuardExpr>),
    Binary(Binary, Box<GuardExpr>, Box<GuardExpr>),
    /// A chain: every neighbouring pair must compare so.
    Compare(Box<GuardExpr>, Vec<(Compare, GuardExpr)>),
    And(Vec<GuardExpr>),
    Or(Vec<GuardExpr>),
    Call(GuardFn, Vec<GuardExpr>),
    IfElse {
        then: Box<GuardExpr>,
        condition: Box<GuardExpr>,
        otherwise: Box<GuardExpr>,
    },
}

/// Reads one guard. What is not understood is kept as text.
pub fn parse(text: &str) -> Guard {
    match pyexpr::parse(text).and_then(|e| convert(&e)) {
        Ok(e) => Guard::Check(e),
        Err(_) => Guard::Unsupported(text.to_string()),
    }
}

fn boxed(e: &Expr) -> Result<Box<GuardExpr>> {
    convert(e).map(Box::new)
}

fn all(parts: &[Expr]) -> Result<Vec<GuardExpr>> {
    parts.iter().map(convert).collect()
}

fn unknown() -> Pt2Error {
    Pt2Error::unsupported("a guard in a form that is not known")
}

fn convert(e: &Expr) -> Result<GuardExpr> {
    if let Some((path, what)) = input(e)? {
        return Ok(GuardExpr::Input(InputRef { path, what }));
    }
    Ok(match e {
        Expr::Int(n) => GuardExpr::Int(*n),
        Expr::Float(x) => GuardExpr::Float(*x),
        Expr::Str(s) => GuardExpr::Str(s.clone()),
        Expr::Name(n) => match n.as_str() {
            "True" => GuardExpr::Bool(true),
            "False" => GuardExpr::Bool(false),
            "None" => GuardExpr::None,
            _ => return Err(unknown()),
        },
        Expr::Attr(..) => match dotted(e).as_deref() {
            Some("math.inf") => GuardExpr::Float(f64::INFINITY),
            Some("math.nan") => GuardExpr::Float(f64::NAN),
            _ => return Err(unknown()),
        },
        Expr::Unary(Unary::Neg, a) => GuardExpr::Neg(boxed(a)?),
        Expr::Unary(Unary::Pos, a) => convert(a)?,
        Expr::Unary(Unary::Not, a) => GuardExpr::Not(boxed(a)?),
        Expr::Unary(Unary::Invert, _) | Expr::Index(..) => return Err(unknown()),
        Expr::Binary(op, a, b) => GuardExpr::Binary(*op, boxed(a)?, boxed(b)?),
        Expr::Compare(first, rest) => {
            let rest = rest.iter().map(|(c, e)| Ok((*c, convert(e)?))).collect::<Result<_>>()?;
            GuardExpr::Compare(boxed(first)?, rest)
        }
        Expr::And(parts) => GuardExpr::And(all(parts)?),
        Expr::Or(parts) => GuardExpr::Or(all(parts)?),
        Expr::IfElse { then, condition, otherwise } => {
            GuardExpr::IfElse { then: boxed(then)?, condition: boxed(condition)?, otherwise: boxed(otherwise)? }
        }
        Expr::Call { function, args, keywords } => {
            let name = dotted(function).ok_or_else(unknown)?;
            let (f, count) = guard_fn(&name).ok_or_else(unknown)?;
            if !keywords.is_empty() || count.is_some_and(|n| args.len() != n) || args.is_empty() {
                return Err(unknown());
            }
            GuardExpr::Call(f, all(args)?)
        }
    })
}

/// A function by its Python name, and how many arguments it takes if that is fixed.
fn guard_fn(name: &str) -> Option<(GuardFn, Option<usize>)> {
    Some(match name {
        "min" | "Min" | "torch.sym_min" => (GuardFn::Min, None),
        "max" | "Max" | "torch.sym_max" => (GuardFn::Max, None),
        "abs" => (GuardFn::Abs, Some(1)),
        "math.floor" => (GuardFn::Floor, Some(1)),
        "math.ceil" => (GuardFn::Ceil, Some(1)),
        "math.trunc" => (GuardFn::Trunc, Some(1)),
        "round" => (GuardFn::Round, None),
        "float" | "torch.sym_float" => (GuardFn::Float, Some(1)),
        "int" | "torch.sym_int" => (GuardFn::Int, Some(1)),
        "math.sqrt" | "torch._sym_sqrt" | "torch.sym_sqrt" => (GuardFn::Sqrt, Some(1)),
        "math.isnan" => (GuardFn::IsNan, Some(1)),
        _ => return None,
    })
}

fn dotted(e: &Expr) -> Option<String> {
    match e {
        Expr::Name(n) => Some(n.clone()),
        Expr::Attr(of, n) => Some(format!("{}.{n}", dotted(of)?)),
        _ => None,
    }
}

/// The path that an expression is, if it starts at `L`.
fn path_of(e: &Expr) -> Option<Vec<PathStep>> {
    match e {
        Expr::Name(n) if n == "L" => Some(Vec::new()),
        Expr::Index(of, key) => {
            let mut path = path_of(of)?;
            path.push(match &**key {
                Expr::Str(s) => PathStep::Key(s.clone()),
                key => PathStep::Index(int_of(key)?),
            });
            Some(path)
        }
        Expr::Attr(of, name) => {
            let mut path = path_of(of)?;
            path.push(PathStep::Attr(name.clone()));
            Some(path)
        }
        _ => None,
    }
}

fn int_of(e: &Expr) -> Option<i64> {
    match e {
        Expr::Int(n) => Some(*n),
        Expr::Unary(Unary::Neg, e) => match **e {
            Expr::Int(n) => Some(-n),
            _ => None,
        },
        _ => None,
    }
}

/// `OBJECT.NAME(ARGS…)`, without keywords.
fn method(e: &Expr) -> Option<(&Expr, &str, &[Expr])> {
    match e {
        Expr::Call { function, args, keywords } if keywords.is_empty() => match &**function {
            Expr::Attr(object, name) => Some((object, name, args)),
            _ => None,
        },
        _ => None,
    }
}

/// An input and what is asked of it; none if the expression is no input, an error if it is one in a form that is
/// not known.
fn input(e: &Expr) -> Result<Option<(Vec<PathStep>, Quantity)>> {
    // `x.size()[0]` and `x.shape[0]`, before the general path, of which the latter would be one.
    if let Expr::Index(of, key) = e
        && let Some(dim) = int_of(key)
    {
        if let Some((object, name @ ("size" | "stride"), [])) = method(of) {
            return Ok(path_of(object).map(|p| (p, per_dim(name, dim))));
        }
        if let Expr::Attr(object, name) = &**of
            && name == "shape"
        {
            return Ok(path_of(object).map(|p| (p, Quantity::Size(dim))));
        }
    }
    if let Some((object, name, args)) = method(e)
        && let Some(path) = path_of(object)
    {
        let what = match (name, args) {
            ("size" | "stride", [dim]) => per_dim(name, int_of(dim).ok_or_else(unknown)?),
            ("storage_offset", []) => Quantity::StorageOffset,
            ("dim" | "ndimension", []) => Quantity::Rank,
            ("numel", []) => Quantity::Numel,
            _ => return Err(unknown()),
        };
        return Ok(Some((path, what)));
    }
    if let Expr::Call { function, args, .. } = e
        && let (Some("len"), [of]) = (dotted(function).as_deref(), args.as_slice())
    {
        return Ok(path_of(of).map(|p| (p, Quantity::Len)));
    }
    let Some(mut path) = path_of(e) else {
        return Ok(None);
    };
    match path.last() {
        None => Err(unknown()),
        Some(PathStep::Attr(a)) if a == "ndim" => {
            path.pop();
            Ok(Some((path, Quantity::Rank)))
        }
        // Some other attribute as a value (`dtype`, `device`): not something that is compared here.
        Some(PathStep::Attr(_)) => Err(unknown()),
        Some(PathStep::Key(_) | PathStep::Index(_)) => Ok(Some((path, Quantity::Value))),
    }
}

fn per_dim(name: &str, dim: i64) -> Quantity {
    if name == "size" { Quantity::Size(dim) } else { Quantity::Stride(dim) }
}

impl fmt::Display for InputRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.path.iter().enumerate() {
            match step {
                PathStep::Key(k) if i == 0 => f.write_str(k)?,
                PathStep::Key(k) => write!(f, "[{k:?}]")?,
                PathStep::Index(n) => write!(f, "[{n}]")?,
                PathStep::Attr(a) => write!(f, ".{a}")?,
            }
        }
        match self.what {
            Quantity::Value => Ok(()),
            Quantity::Size(d) => write!(f, ".size({d})"),
            Quantity::Stride(d) => write!(f, ".stride({d})"),
            Quantity::StorageOffset => f.write_str(".storage_offset()"),
            Quantity::Rank => f.write_str(".dim()"),
            Quantity::Numel => f.write_str(".numel()"),
            Quantity::Len => f.write_str(".len()"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> GuardExpr {
        match parse(text) {
            Guard::Check(e) => e,
            Guard::Unsupported(t) => panic!("not understood: {t}"),
        }
    }

    fn size(name: &str, dim: i64) -> GuardExpr {
        GuardExpr::Input(InputRef { path: vec![PathStep::Key(name.to_string())], what: Quantity::Size(dim) })
    }

    #[test]
    fn what_pytorch_writes() {
        assert_eq!(
            check("(L['x'].size()[0] % 2) == 0"),
            GuardExpr::Compare(
                Box::new(GuardExpr::Binary(Binary::Mod, Box::new(size("x", 0)), Box::new(GuardExpr::Int(2)))),
                vec![(Compare::Eq, GuardExpr::Int(0))]
            )
        );
        assert_eq!(
            check("torch.sym_max(L['y'].size()[0], L['x'].size()[1]) < 100"),
            GuardExpr::Compare(
                Box::new(GuardExpr::Call(GuardFn::Max, vec![size("y", 0), size("x", 1)])),
                vec![(Compare::Lt, GuardExpr::Int(100))]
            )
        );
        for text in [
            "((L['x'].size()[1]*(L['y'].size()[0] + L['x'].size()[0])) % 2) == 0",
            "24 <= 4*L['x']._base.size()[0]",
            "2 <= L['x'].size()[0] <= 17",
            "L['f'] == -math.inf and not math.isnan(L['g'])",
            "(1 if L['n'] > 2 else 0) == 1 or L['s'] == 'it\\'s'",
            "L['b'] == True",
            "L['k'] == None",
        ] {
            check(text);
        }
    }

    #[test]
    fn paths_and_quantities() {
        let input = |text: &str| match check(text) {
            GuardExpr::Input(r) => r.to_string(),
            e => panic!("{e:?}"),
        };
        assert_eq!(input("L['xs'][1].size()[0]"), "xs[1].size(0)");
        assert_eq!(input("L['d']['a'].stride()[-1]"), "d[\"a\"].stride(-1)");
        assert_eq!(input("L['args'][0].storage_offset()"), "args[0].storage_offset()");
        assert_eq!(input("L['x']._base.size(2)"), "x._base.size(2)");
        assert_eq!(input("L['x'].shape[2]"), "x.size(2)");
        assert_eq!(input("L['x'].ndim"), "x.dim()");
        assert_eq!(input("L['x'].numel()"), "x.numel()");
        assert_eq!(input("len(L['xs'])"), "xs.len()");
        assert_eq!(input("L['n']"), "n");
    }

    #[test]
    fn what_is_not_known_is_kept() {
        for text in [
            "L['x'].dtype == torch.float32",
            "L['x'].item() > 3",
            "foo(L['x'])",
            "L == 3",
            "L['x'] is None",
            "lambda: 0",
            "",
            "(((",
            "L['x'].size()[L['n']] > 2",
            "max() == 1",
            "__import__('os').system('x')",
        ] {
            assert_eq!(parse(text), Guard::Unsupported(text.to_string()));
        }
        let text = "(L['x'].size()[0] % 2) == 0 and not L['y'][0].dim() < 1.5";
        check(text);
        for n in 0..text.len() {
            parse(&text[..n]);
        }
    }
}
