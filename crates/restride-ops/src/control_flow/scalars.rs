//! Python's arithmetic on sizes and scalars, and numbers read from tensors.
//!
//! PyTorch traces Python expressions over symbolic sizes as these operators. Integers have 64 bits; overflow is an error,
//! and so is every error of Python (a division by zero).

use crate::support::ensure;
use restride_ir::{Call, Kernel, OpDef, OpError, Scalar};
use std::cmp::Ordering;

type Result<T> = std::result::Result<T, OpError>;

fn overflow() -> OpError {
    OpError::new("the result does not fit a 64-bit integer")
}

fn zero_division() -> OpError {
    OpError::new("division by zero")
}

/// Two numbers converted as in Python: both floats if one is a float.
enum Pair {
    Ints(i64, i64),
    Floats(f64, f64),
}

fn pair(c: &Call<'_>) -> Result<Pair> {
    let (a, b) = (c.args.scalar(0)?, c.args.scalar(1)?);
    both(a, b)
}

fn both(a: Scalar, b: Scalar) -> Result<Pair> {
    match (a, b) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => Err(OpError::new("complex numbers have no place here")),
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => Ok(Pair::Floats(a.as_f64(), b.as_f64())),
        _ => Ok(Pair::Ints(a.as_i64(), b.as_i64())),
    }
}

fn arithmetic(p: Pair, int: fn(i64, i64) -> Option<i64>, float: fn(f64, f64) -> f64) -> Result<Scalar> {
    match p {
        Pair::Ints(a, b) => int(a, b).map(Scalar::Int).ok_or_else(overflow),
        Pair::Floats(a, b) => Ok(Scalar::Float(float(a, b))),
    }
}

fn add(c: &Call<'_>) -> Result<Scalar> {
    arithmetic(pair(c)?, i64::checked_add, |a, b| a + b)
}
fn sub(c: &Call<'_>) -> Result<Scalar> {
    arithmetic(pair(c)?, i64::checked_sub, |a, b| a - b)
}
fn mul(c: &Call<'_>) -> Result<Scalar> {
    arithmetic(pair(c)?, i64::checked_mul, |a, b| a * b)
}

fn floordiv(c: &Call<'_>) -> Result<Scalar> {
    match pair(c)? {
        Pair::Ints(_, 0) => Err(zero_division()),
        Pair::Floats(_, 0.0) => Err(zero_division()),
        Pair::Ints(a, b) => floor_div(a, b).map(Scalar::Int).ok_or_else(overflow),
        Pair::Floats(a, b) => Ok(Scalar::Float((a / b).floor())),
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
}

fn modulo(c: &Call<'_>) -> Result<Scalar> {
    match pair(c)? {
        Pair::Ints(_, 0) => Err(zero_division()),
        Pair::Floats(_, 0.0) => Err(zero_division()),
        // Any number modulo -1 is 0; the hardware division of i64::MIN by -1 overflows.
        Pair::Ints(a, b) => {
            let r = a.checked_rem(b).unwrap_or(0);
            Ok(Scalar::Int(if r != 0 && (r < 0) != (b < 0) { r + b } else { r }))
        }
        Pair::Floats(a, b) => {
            let r = a % b;
            let r = if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r };
            // In Python a zero remainder has the divisor's sign.
            Ok(Scalar::Float(if r == 0.0 { 0.0f64.copysign(b) } else { r }))
        }
    }
}

fn truediv(c: &Call<'_>) -> Result<Scalar> {
    match pair(c)? {
        Pair::Ints(_, 0) => Err(zero_division()),
        Pair::Floats(_, 0.0) => Err(zero_division()),
        Pair::Ints(a, b) => Ok(Scalar::Float(a as f64 / b as f64)),
        Pair::Floats(a, b) => Ok(Scalar::Float(a / b)),
    }
}

fn pow(c: &Call<'_>) -> Result<Scalar> {
    match pair(c)? {
        Pair::Ints(0, b) if b < 0 => Err(zero_division()),
        Pair::Ints(a, b) if b < 0 => Ok(Scalar::Float((a as f64).powf(b as f64))),
        Pair::Ints(a, b) => match u32::try_from(b) {
            Ok(n) => a.checked_pow(n).map(Scalar::Int).ok_or_else(overflow),
            Err(_) if a == 0 || a == 1 => Ok(Scalar::Int(a)),
            Err(_) if a == -1 => Ok(Scalar::Int(if b % 2 == 0 { 1 } else { -1 })),
            Err(_) => Err(overflow()),
        },
        Pair::Floats(a, b) => Ok(Scalar::Float(a.powf(b))),
    }
}

fn neg(c: &Call<'_>) -> Result<Scalar> {
    match c.args.scalar(0)? {
        Scalar::Float(x) => Ok(Scalar::Float(-x)),
        Scalar::Complex(z) => Ok(Scalar::Complex(-z)),
        other => other.as_i64().checked_neg().map(Scalar::Int).ok_or_else(overflow),
    }
}

/// Order of two numbers; `None` if one is NaN. An integer and a float compare exactly, as in Python.
fn order(c: &Call<'_>) -> Result<Option<Ordering>> {
    compare(c.args.scalar(0)?, c.args.scalar(1)?)
}

fn compare(a: Scalar, b: Scalar) -> Result<Option<Ordering>> {
    Ok(match both(a, b)? {
        Pair::Ints(a, b) => Some(a.cmp(&b)),
        Pair::Floats(x, y) => match (a, b) {
            (Scalar::Float(_), Scalar::Float(_)) => x.partial_cmp(&y),
            (_, Scalar::Float(_)) => int_float(a.as_i64(), y),
            _ => int_float(b.as_i64(), x).map(Ordering::reverse),
        },
    })
}

fn int_float(a: i64, y: f64) -> Option<Ordering> {
    if y.is_nan() {
        return None;
    }
    // 2^63 is the smallest float above every i64.
    if y >= 9_223_372_036_854_775_808.0 {
        return Some(Ordering::Less);
    }
    if y < -9_223_372_036_854_775_808.0 {
        return Some(Ordering::Greater);
    }
    let whole = y.floor();
    Some(a.cmp(&(whole as i64)).then(if y > whole { Ordering::Less } else { Ordering::Equal }))
}

fn eq(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Bool(order(c)?.is_some_and(Ordering::is_eq)))
}
fn ne(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Bool(!order(c)?.is_some_and(Ordering::is_eq)))
}
fn ge(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Bool(order(c)?.is_some_and(Ordering::is_ge)))
}
fn gt(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Bool(order(c)?.is_some_and(Ordering::is_gt)))
}
fn le(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Bool(order(c)?.is_some_and(Ordering::is_le)))
}
fn lt(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Bool(order(c)?.is_some_and(Ordering::is_lt)))
}

fn bits(c: &Call<'_>, op: fn(i64, i64) -> i64) -> Result<Scalar> {
    match (c.args.scalar(0)?, c.args.scalar(1)?) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Ok(Scalar::Bool(op(a as i64, b as i64) != 0)),
        (a @ (Scalar::Int(_) | Scalar::Bool(_)), b @ (Scalar::Int(_) | Scalar::Bool(_))) => {
            Ok(Scalar::Int(op(a.as_i64(), b.as_i64())))
        }
        _ => Err(OpError::new("bits of a number that is no integer")),
    }
}
fn and(c: &Call<'_>) -> Result<Scalar> {
    bits(c, |a, b| a & b)
}
fn or(c: &Call<'_>) -> Result<Scalar> {
    bits(c, |a, b| a | b)
}

fn to_int(c: &Call<'_>, round: fn(f64) -> f64) -> Result<Scalar> {
    match c.args.scalar(0)? {
        Scalar::Float(x) => {
            let y = round(x);
            let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&y);
            if fits { Ok(Scalar::Int(y as i64)) } else { Err(OpError::new(format!("{x} cannot become an integer"))) }
        }
        Scalar::Complex(_) => Err(OpError::new("a complex number cannot become an integer")),
        other => Ok(Scalar::Int(other.as_i64())),
    }
}
fn trunc(c: &Call<'_>) -> Result<Scalar> {
    to_int(c, f64::trunc)
}
fn ceil(c: &Call<'_>) -> Result<Scalar> {
    to_int(c, f64::ceil)
}
fn floor(c: &Call<'_>) -> Result<Scalar> {
    to_int(c, f64::floor)
}

fn not(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Bool(!c.args.scalar(0)?.as_bool()))
}

/// `min` and `max` keep the type of the chosen number; if one is a float, the result is a float.
fn pick(c: &Call<'_>, want: Ordering) -> Result<Scalar> {
    let (a, b) = (c.args.scalar(0)?, c.args.scalar(1)?);
    let first = compare(a, b)? != Some(want.reverse());
    let taken = if first { a } else { b };
    Ok(match both(a, b)? {
        Pair::Floats(..) => Scalar::Float(taken.as_f64()),
        Pair::Ints(..) => Scalar::Int(taken.as_i64()),
    })
}
fn min(c: &Call<'_>) -> Result<Scalar> {
    pick(c, Ordering::Less)
}
fn max(c: &Call<'_>) -> Result<Scalar> {
    pick(c, Ordering::Greater)
}

fn ite(c: &Call<'_>) -> Result<Scalar> {
    c.args.scalar(if c.args.scalar(0)?.as_bool() { 1 } else { 2 })
}

fn to_float(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Float(c.args.scalar(0)?.as_f64()))
}

fn sqrt(c: &Call<'_>) -> Result<Scalar> {
    let x = c.args.scalar(0)?.as_f64();
    if x < 0.0 { Err(OpError::new("square root of a negative number")) } else { Ok(Scalar::Float(x.sqrt())) }
}

fn sum(c: &Call<'_>) -> Result<Scalar> {
    let mut total = Scalar::Int(0);
    for &x in c.args.numbers(0)? {
        total = arithmetic(both(total, x)?, i64::checked_add, |a, b| a + b)?;
    }
    Ok(total)
}

fn dim_of(c: &Call<'_>) -> Result<usize> {
    let t = c.args.tensor(0)?;
    ensure!(!t.sizes().is_empty(), "a 0-d tensor has no dimensions to ask for");
    Ok(t.layout().dim(c.args.int(1)?)?)
}
fn sym_size(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Int(c.args.tensor(0)?.sizes()[dim_of(c)?]))
}
fn sym_stride(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Int(c.args.tensor(0)?.strides()[dim_of(c)?]))
}
fn sym_numel(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Int(c.args.tensor(0)?.numel() as i64))
}
fn sym_storage_offset(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Int(c.args.tensor(0)?.layout().offset))
}
fn is_same_size(c: &Call<'_>) -> Result<Scalar> {
    Ok(Scalar::Bool(c.args.tensor(0)?.sizes() == c.args.tensor(1)?.sizes()))
}

/// Traces of forward gradients ask it of values without gaps; a view does not know the storage around it.
fn same_storage_numel(c: &Call<'_>) -> Result<Scalar> {
    let own = |i: usize| -> Result<usize> {
        let t = c.args.tensor(i)?;
        let all = t.layout().offset == 0 && t.layout().is_dense();
        ensure!(all, "unsupported: the number of elements in the storage of a view; its base may be larger");
        Ok(t.numel())
    };
    Ok(Scalar::Bool(own(0)? == own(1)?))
}

fn item(c: &Call<'_>) -> Result<Scalar> {
    let t = c.args.tensor(0)?;
    ensure!(t.numel() == 1, "a tensor with {} elements cannot be converted to a number", t.numel());
    Ok(t.get(&vec![0; t.sizes().len()]))
}

const fn number(schema: &'static str, kernel: fn(&Call<'_>) -> Result<Scalar>) -> OpDef {
    OpDef { kernel: Kernel::Scalar(kernel), exactness: restride_ir::Exactness::Exact, ..OpDef::new(schema) }
}

pub(crate) static OPS: &[OpDef] = table![
    number("_operator::add(Scalar a, Scalar b) -> Scalar", add),
    number("_operator::sub(Scalar a, Scalar b) -> Scalar", sub),
    number("_operator::mul(Scalar a, Scalar b) -> Scalar", mul),
    number("_operator::floordiv(Scalar a, Scalar b) -> Scalar", floordiv),
    number("_operator::mod(Scalar a, Scalar b) -> Scalar", modulo),
    number("_operator::truediv(Scalar a, Scalar b) -> Scalar", truediv),
    number("_operator::pow(Scalar a, Scalar b) -> Scalar", pow),
    number("_operator::neg(Scalar a) -> Scalar", neg),
    number("_operator::eq(Scalar a, Scalar b) -> bool", eq),
    number("_operator::ne(Scalar a, Scalar b) -> bool", ne),
    number("_operator::ge(Scalar a, Scalar b) -> bool", ge),
    number("_operator::gt(Scalar a, Scalar b) -> bool", gt),
    number("_operator::le(Scalar a, Scalar b) -> bool", le),
    number("_operator::lt(Scalar a, Scalar b) -> bool", lt),
    number("_operator::and_(Scalar a, Scalar b) -> Scalar", and),
    number("_operator::or_(Scalar a, Scalar b) -> Scalar", or),
    number("_operator::not_(Scalar a) -> bool", not),
    number("math::trunc(Scalar a) -> int", trunc),
    number("math::ceil(Scalar a) -> int", ceil),
    number("math::floor(Scalar a) -> int", floor),
    number("torch::sym_not(Scalar a) -> bool", not),
    number("torch::sym_min(Scalar a, Scalar b) -> Scalar", min),
    number("torch::sym_max(Scalar a, Scalar b) -> Scalar", max),
    number("torch::sym_ite(Scalar b, Scalar t, Scalar f) -> Scalar", ite),
    number("torch::sym_float(Scalar a) -> float", to_float),
    number("torch::sym_int(Scalar a) -> int", trunc),
    number("torch::sym_sqrt(Scalar a) -> float", sqrt),
    number("torch::sym_sum(Scalar[] args) -> Scalar", sum),
    number("sym_size.int", sym_size),
    OpDef { strided: true, ..number("sym_stride.int", sym_stride) },
    number("sym_numel", sym_numel),
    OpDef { strided: true, ..number("sym_storage_offset", sym_storage_offset) },
    number("is_same_size", is_same_size),
    OpDef { strided: true, ..number("_has_same_storage_numel", same_storage_numel) },
    number("item", item),
    number("_local_scalar_dense", item),
];
