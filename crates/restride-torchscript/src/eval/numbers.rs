//! Python's arithmetic on numbers, maybe over symbols.

use restride_ir::{Dim, Error, ErrorKind, Expr, ExprFn, Result, Scalar};

fn zero_division() -> Error {
    Error::new(ErrorKind::Program, "ZeroDivisionError: division by zero")
}

fn overflow() -> Error {
    Error::new(ErrorKind::Program, "an integer of more than 64 bits")
}

/// A number as an integer or a float: bools count as integers.
pub fn plain(e: &Expr) -> Expr {
    match e {
        Expr::Bool(b) => Expr::Int(i64::from(*b)),
        e if e.is_bool() => Expr::call(ExprFn::Where, vec![e.clone(), Expr::Int(1), Expr::Int(0)]),
        e => e.clone(),
    }
}

fn ints(a: &Expr, b: &Expr) -> Option<(i64, i64)> {
    match (a, b) {
        (Expr::Int(a), Expr::Int(b)) => Some((*a, *b)),
        _ => None,
    }
}

fn floats(a: &Expr, b: &Expr) -> Option<(f64, f64)> {
    let (a, b) = (a.constant()?, b.constant()?);
    match (a, b) {
        (Scalar::Float(_), Scalar::Float(_) | Scalar::Int(_)) | (Scalar::Int(_), Scalar::Float(_)) => {
            Some((a.as_f64(), b.as_f64()))
        }
        _ => None,
    }
}

/// A function of two numbers, by the name that Python's `operator` or TorchScript has for it; `None` for another name.
///
/// # Errors
/// Python's: a division by zero.
pub fn binary(name: &str, a: &Expr, b: &Expr) -> Result<Option<Expr>> {
    let bools = a.is_bool() && b.is_bool();
    match name {
        "__and__" | "and_" | "bitwise_and" | "logical_and" if bools => return Ok(Some(and(a, b))),
        "__or__" | "or_" | "bitwise_or" | "logical_or" if bools => return Ok(Some(or(a, b))),
        "__xor__" | "xor" | "bitwise_xor" if bools => {
            return Ok(Some(Expr::call(ExprFn::Ne, vec![plain(a), plain(b)])));
        }
        _ => {}
    }
    let (a, b) = (&plain(a), &plain(b));
    let call = |f: ExprFn| Expr::call(f, vec![a.clone(), b.clone()]);
    let float = a.is_float() || b.is_float();
    let cast = |e: &Expr| match e {
        Expr::Int(i) => Expr::float(*i as f64),
        e if e.is_float() => e.clone(),
        e => Expr::call(ExprFn::ToFloat, vec![e.clone()]),
    };
    Ok(Some(match name {
        "add" | "iadd" => match (ints(a, b), floats(a, b)) {
            (Some((x, y)), _) => Expr::Int(x.checked_add(y).ok_or_else(overflow)?),
            (_, Some((x, y))) => Expr::float(x + y),
            _ => call(ExprFn::Add),
        },
        "sub" | "isub" => match (ints(a, b), floats(a, b)) {
            (Some((x, y)), _) => Expr::Int(x.checked_sub(y).ok_or_else(overflow)?),
            (_, Some((x, y))) => Expr::float(x - y),
            _ if float => {
                Expr::call(ExprFn::Add, vec![a.clone(), Expr::call(ExprFn::Mul, vec![b.clone(), Expr::Int(-1)])])
            }
            _ => a.minus(b),
        },
        "mul" | "imul" => match (ints(a, b), floats(a, b)) {
            (Some((x, y)), _) => Expr::Int(x.checked_mul(y).ok_or_else(overflow)?),
            (_, Some((x, y))) => Expr::float(x * y),
            _ => call(ExprFn::Mul),
        },
        "div" | "truediv" | "itruediv" | "true_divide" => match (cast(a), cast(b)) {
            (_, Expr::Float(y)) if y.0 == 0.0 => return Err(zero_division()),
            (Expr::Float(x), Expr::Float(y)) => Expr::float(x.0 / y.0),
            _ => call(ExprFn::TrueDiv),
        },
        "floordiv" | "ifloordiv" | "floor_divide" => match (ints(a, b), floats(a, b)) {
            (Some((_, 0)), _) => return Err(zero_division()),
            (Some((x, y)), _) => Expr::Int(floor_div(x, y).ok_or_else(overflow)?),
            (_, Some((_, 0.0))) => return Err(zero_division()),
            (_, Some((x, y))) => Expr::float((x / y).floor()),
            _ => call(ExprFn::FloorDiv),
        },
        "remainder" | "mod" | "imod" => match (ints(a, b), floats(a, b)) {
            (Some((_, 0)), _) => return Err(zero_division()),
            (Some((x, y)), _) => Expr::Int(python_mod(x, y)),
            (_, Some((x, y))) => {
                let r = x % y;
                Expr::float(if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r })
            }
            _ => call(ExprFn::Mod),
        },
        "pow" | "ipow" => match (ints(a, b), floats(a, b)) {
            (Some((0, y)), _) if y < 0 => return Err(zero_division()),
            (Some((x, y)), _) if y < 0 => Expr::float((x as f64).powf(y as f64)),
            (Some((x, y)), _) => Expr::Int(u32::try_from(y).ok().and_then(|n| x.checked_pow(n)).ok_or_else(overflow)?),
            (_, Some((x, y))) => Expr::float(x.powf(y)),
            _ => call(ExprFn::Pow),
        },
        "__lshift__" | "lshift" => match ints(a, b) {
            Some((x, y @ 0..=62)) => Expr::Int(x.checked_mul(1 << y).ok_or_else(overflow)?),
            _ => call(ExprFn::LShift),
        },
        "__rshift__" | "rshift" => match ints(a, b) {
            Some((x, y)) if y >= 0 => Expr::Int(x >> y.min(63)),
            _ => call(ExprFn::RShift),
        },
        "__and__" | "and_" | "iand" | "bitwise_and" if !float => match ints(a, b) {
            Some((x, y)) => Expr::Int(x & y),
            None => call(ExprFn::BitAnd),
        },
        "__or__" | "or_" | "ior" | "bitwise_or" if !float => match ints(a, b) {
            Some((x, y)) => Expr::Int(x | y),
            None => call(ExprFn::BitOr),
        },
        "__xor__" | "xor" | "ixor" | "bitwise_xor" => match ints(a, b) {
            Some((x, y)) => Expr::Int(x ^ y),
            None => return Ok(None),
        },
        "eq" => compare(ExprFn::Eq, a, b),
        "ne" => compare(ExprFn::Ne, a, b),
        "lt" => compare(ExprFn::Lt, a, b),
        "le" => compare(ExprFn::Le, a, b),
        "gt" => compare(ExprFn::Gt, a, b),
        "ge" => compare(ExprFn::Ge, a, b),
        "min" => call(ExprFn::Min),
        "max" => call(ExprFn::Max),
        "fmod" | "copysign" | "atan2" | "hypot" => {
            let (x, y) = match (cast(a), cast(b)) {
                (Expr::Float(x), Expr::Float(y)) => (x.0, y.0),
                _ => return Ok(None),
            };
            Expr::float(match name {
                "fmod" => x % y,
                "copysign" => x.copysign(y),
                "atan2" => x.atan2(y),
                _ => x.hypot(y),
            })
        }
        "gcd" => match ints(a, b) {
            Some((mut x, mut y)) => {
                while y != 0 {
                    (x, y) = (y, x.checked_rem(y).unwrap_or(0));
                }
                Expr::Int(x.checked_abs().ok_or_else(overflow)?)
            }
            None => return Ok(None),
        },
        _ => return Ok(None),
    }))
}

fn compare(f: ExprFn, a: &Expr, b: &Expr) -> Expr {
    Expr::call(f, vec![a.clone(), b.clone()])
}

/// Both.
pub fn and(a: &Expr, b: &Expr) -> Expr {
    match (a, b) {
        (Expr::Bool(false), _) | (_, Expr::Bool(false)) => Expr::Bool(false),
        (Expr::Bool(true), e) | (e, Expr::Bool(true)) => e.clone(),
        _ => Expr::call(ExprFn::And, vec![a.clone(), b.clone()]),
    }
}

/// One of both.
pub fn or(a: &Expr, b: &Expr) -> Expr {
    match (a, b) {
        (Expr::Bool(true), _) | (_, Expr::Bool(true)) => Expr::Bool(true),
        (Expr::Bool(false), e) | (e, Expr::Bool(false)) => e.clone(),
        _ => Expr::call(ExprFn::Or, vec![a.clone(), b.clone()]),
    }
}

/// The negation.
pub fn not(e: &Expr) -> Expr {
    match e {
        Expr::Bool(b) => Expr::Bool(!b),
        Expr::Call(c) => match (c.0, &c.1[..]) {
            (ExprFn::Not, [inner]) => inner.clone(),
            (ExprFn::Eq, _) => Expr::call(ExprFn::Ne, c.1.clone()),
            (ExprFn::Ne, _) => Expr::call(ExprFn::Eq, c.1.clone()),
            (ExprFn::Lt, [a, b]) if !a.is_float() && !b.is_float() => Expr::call(ExprFn::Ge, c.1.clone()),
            (ExprFn::Ge, [a, b]) if !a.is_float() && !b.is_float() => Expr::call(ExprFn::Lt, c.1.clone()),
            (ExprFn::Gt, [a, b]) if !a.is_float() && !b.is_float() => Expr::call(ExprFn::Le, c.1.clone()),
            (ExprFn::Le, [a, b]) if !a.is_float() && !b.is_float() => Expr::call(ExprFn::Gt, c.1.clone()),
            _ => Expr::call(ExprFn::Not, vec![e.clone()]),
        },
        _ => Expr::call(ExprFn::Not, vec![e.clone()]),
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
}

fn python_mod(a: i64, b: i64) -> i64 {
    let r = a.checked_rem(b).unwrap_or(0);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

/// Functions of floats.
const OF_FLOATS: &[(&str, fn(f64) -> f64)] = &[
    ("exp", f64::exp),
    ("log", f64::ln),
    ("log2", f64::log2),
    ("log10", f64::log10),
    ("log1p", f64::ln_1p),
    ("expm1", f64::exp_m1),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("asin", f64::asin),
    ("acos", f64::acos),
    ("atan", f64::atan),
    ("sinh", f64::sinh),
    ("cosh", f64::cosh),
    ("tanh", f64::tanh),
    ("asinh", f64::asinh),
    ("acosh", f64::acosh),
    ("atanh", f64::atanh),
    ("fabs", f64::abs),
];

/// A function of numbers from data that an operator computes on a tensor of one float.
pub(crate) struct NumberByTensor {
    /// Its name.
    pub name: &'static str,
    /// The operator.
    pub operator: &'static str,
    /// Whether the operator's result is made an integer.
    pub whole: bool,
    /// Whether the operator is called for integers, too.
    pub of_integers: bool,
}

const fn by_tensor(name: &'static str, operator: &'static str) -> NumberByTensor {
    NumberByTensor { name, operator, whole: false, of_integers: true }
}

/// Functions that expressions do not have, or that a file cannot compute.
pub(crate) const BY_TENSORS: &[NumberByTensor] = &[
    by_tensor("exp", "aten.exp.default"),
    by_tensor("log", "aten.log.default"),
    by_tensor("log2", "aten.log2.default"),
    by_tensor("log10", "aten.log10.default"),
    by_tensor("log1p", "aten.log1p.default"),
    by_tensor("expm1", "aten.expm1.default"),
    by_tensor("sin", "aten.sin.default"),
    by_tensor("cos", "aten.cos.default"),
    by_tensor("tan", "aten.tan.default"),
    by_tensor("asin", "aten.asin.default"),
    by_tensor("acos", "aten.acos.default"),
    by_tensor("atan", "aten.atan.default"),
    by_tensor("sinh", "aten.sinh.default"),
    by_tensor("cosh", "aten.cosh.default"),
    by_tensor("tanh", "aten.tanh.default"),
    by_tensor("asinh", "aten.asinh.default"),
    by_tensor("acosh", "aten.acosh.default"),
    by_tensor("atanh", "aten.atanh.default"),
    by_tensor("fabs", "aten.abs.default"),
    by_tensor("erf", "aten.erf.default"),
    by_tensor("erfc", "aten.erfc.default"),
    by_tensor("lgamma", "aten.lgamma.default"),
    by_tensor("degrees", "aten.rad2deg.default"),
    by_tensor("radians", "aten.deg2rad.default"),
    by_tensor("sqrt", "aten.sqrt.default"),
    by_tensor("round", "aten.round.default"),
    by_tensor("isnan", "aten.isnan.default"),
    by_tensor("isinf", "aten.isinf.default"),
    by_tensor("isfinite", "aten.isfinite.default"),
    NumberByTensor { name: "floor", operator: "aten.floor.default", whole: true, of_integers: false },
    NumberByTensor { name: "ceil", operator: "aten.ceil.default", whole: true, of_integers: false },
];

/// A function of two numbers from data that operators compute on tensors of one float each.
pub(crate) struct NumbersByTensor {
    /// Its names.
    pub names: &'static [&'static str],
    /// The operator of both.
    pub operator: &'static str,
    /// The operator of its result.
    pub last: Option<&'static str>,
    /// Whether the operators are called for two integers, too.
    pub of_integers: bool,
}

/// Functions that expressions do not have, or have for integers alone.
pub(crate) const OF_TWO_BY_TENSORS: &[NumbersByTensor] = &[
    NumbersByTensor {
        names: &["floordiv", "ifloordiv", "floor_divide"],
        operator: "aten.div.Tensor",
        last: Some("aten.floor.default"),
        of_integers: false,
    },
    NumbersByTensor {
        names: &["remainder", "mod", "imod"],
        operator: "aten.remainder.Tensor",
        last: None,
        of_integers: false,
    },
    NumbersByTensor { names: &["fmod"], operator: "aten.fmod.Tensor", last: None, of_integers: true },
    NumbersByTensor { names: &["copysign"], operator: "aten.copysign.Tensor", last: None, of_integers: true },
    NumbersByTensor { names: &["atan2"], operator: "aten.atan2.default", last: None, of_integers: true },
    NumbersByTensor { names: &["hypot"], operator: "aten.hypot.default", last: None, of_integers: true },
];

/// A function of one number; `None` for another name.
///
/// # Errors
/// Python's: the square root of a negative number.
pub fn unary(name: &str, e: &Expr) -> Result<Option<Expr>> {
    if matches!(name, "not_" | "__not__" | "logical_not") {
        return Ok(Some(not(&truth(e))));
    }
    let e = &plain(e);
    let float = |f: fn(f64) -> f64| match e.constant() {
        Some(x) => Ok(Some(Expr::float(f(x.as_f64())))),
        None => Ok(None),
    };
    let whole = |f: fn(f64) -> f64, symbolic: ExprFn| match e {
        Expr::Float(x) => whole_number(f(x.0)).map(Some),
        e if e.is_float() => Ok(Some(Expr::call(symbolic, vec![e.clone()]))),
        e => Ok(Some(e.clone())),
    };
    match name {
        "neg" => Ok(Some(match e {
            Expr::Int(i) => Expr::Int(i.checked_neg().ok_or_else(overflow)?),
            Expr::Float(x) => Expr::float(-x.0),
            e => Expr::call(ExprFn::Mul, vec![e.clone(), Expr::Int(-1)]),
        })),
        "pos" => Ok(Some(e.clone())),
        "invert" | "bitwise_not" => Ok(match e {
            Expr::Int(i) => Some(Expr::Int(!i)),
            _ => None,
        }),
        "abs" => Ok(Some(match e {
            Expr::Int(i) => Expr::Int(i.checked_abs().ok_or_else(overflow)?),
            Expr::Float(x) => Expr::float(x.0.abs()),
            e => Expr::call(ExprFn::Abs, vec![e.clone()]),
        })),
        "ceil" => whole(f64::ceil, ExprFn::Ceil),
        "floor" => whole(f64::floor, ExprFn::Floor),
        "trunc" => whole(f64::trunc, ExprFn::Trunc),
        // Python's and TorchScript's round differ: TorchScript gives a float.
        "round" => float(f64::round_ties_even),
        "sqrt" => match e.constant() {
            Some(x) if x.as_f64() < 0.0 => Err(Error::new(ErrorKind::Program, "ValueError: math domain error")),
            Some(x) => Ok(Some(Expr::float(x.as_f64().sqrt()))),
            None => Ok(Some(Expr::call(ExprFn::Sqrt, vec![e.clone()]))),
        },
        "degrees" => float(f64::to_degrees),
        "radians" => float(f64::to_radians),
        "isnan" => Ok(e.constant().map(|x| Expr::Bool(x.as_f64().is_nan()))),
        "isinf" => Ok(e.constant().map(|x| Expr::Bool(x.as_f64().is_infinite()))),
        "isfinite" => Ok(e.constant().map(|x| Expr::Bool(x.as_f64().is_finite()))),
        _ => OF_FLOATS.iter().find(|f| f.0 == name).map_or(Ok(None), |f| float(f.1)),
    }
}

/// A float without a fraction as an integer.
fn whole_number(x: f64) -> Result<Expr> {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x);
    if fits { Ok(Expr::Int(x as i64)) } else { Err(overflow()) }
}

/// `int(e)`
///
/// # Errors
/// A float beyond 64 bits.
pub fn to_int(e: &Expr) -> Result<Expr> {
    match plain(e) {
        Expr::Float(x) => whole_number(x.0.trunc()),
        e if e.is_float() => Ok(Expr::call(ExprFn::Trunc, vec![e])),
        e => Ok(e),
    }
}

/// `float(e)`
pub fn to_float(e: &Expr) -> Expr {
    match plain(e) {
        Expr::Int(i) => Expr::float(i as f64),
        e if e.is_float() => e,
        e => Expr::call(ExprFn::ToFloat, vec![e]),
    }
}

/// `bool(e)`
pub fn truth(e: &Expr) -> Expr {
    match e {
        Expr::Int(i) => Expr::Bool(*i != 0),
        Expr::Float(x) => Expr::Bool(x.0 != 0.0),
        e if e.is_bool() => e.clone(),
        e => Expr::call(ExprFn::Ne, vec![e.clone(), Expr::Int(0)]),
    }
}

/// The element type of a tensor that holds a number as Python has it.
pub(crate) fn dtype_of(e: &Expr) -> restride_ir::DType {
    use restride_ir::DType;
    if e.is_float() {
        DType::F64
    } else if e.is_bool() {
        DType::Bool
    } else {
        DType::I64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_pythons() {
        let i = Expr::Int;
        let f = Expr::float;
        let of = |name: &str, a: Expr, b: Expr| binary(name, &a, &b).unwrap().unwrap();
        assert_eq!(of("floordiv", i(-7), i(2)), i(-4));
        assert_eq!(of("remainder", i(-7), i(2)), i(1));
        assert_eq!(of("remainder", i(7), i(-2)), i(-1));
        assert_eq!(of("div", i(7), i(2)), f(3.5));
        assert_eq!(of("add", Expr::Bool(true), i(2)), i(3));
        assert_eq!(of("mul", i(3), f(0.5)), f(1.5));
        assert_eq!(of("pow", i(2), i(-1)), f(0.5));
        assert_eq!(of("lt", i(1), f(1.5)), Expr::Bool(true));
        assert!(binary("floordiv", &i(1), &i(0)).is_err());
        assert!(binary("add", &i(i64::MAX), &i(1)).is_err());
        assert_eq!(to_int(&f(-2.7)).unwrap(), i(-2));
        assert_eq!(unary("round", &f(2.5)).unwrap(), Some(f(2.0)));
    }
}
