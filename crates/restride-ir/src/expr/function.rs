//! Functions of expressions, and their values on known numbers.

use restride_tensor::Scalar;
use std::cmp::Ordering;

/// A function in an expression, named and defined as in `torch.utils._sympy.functions`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ExprFn {
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Power.
    Pow,
    /// Quotient of integers rounded down.
    FloorDiv,
    /// Remainder with the sign of the divisor.
    Mod,
    /// `(a // b) % c`.
    ModularIndexing,
    /// Quotient as a float.
    TrueDiv,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Absolute value.
    Abs,
    /// Float rounded up to an integer.
    Ceil,
    /// Float rounded down to an integer.
    Floor,
    /// Float cut to an integer.
    Trunc,
    /// Float rounded half to even to an integer.
    Round,
    /// Integer to float.
    ToFloat,
    /// Square root, as a float.
    Sqrt,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Logical and.
    And,
    /// Logical or.
    Or,
    /// Logical not.
    Not,
    /// `Where(condition, a, b)`.
    Where,
    /// Shift to the left.
    LShift,
    /// Arithmetic shift to the right.
    RShift,
    /// Bitwise and.
    BitAnd,
    /// Bitwise or.
    BitOr,
}

impl ExprFn {
    /// Every function.
    pub const ALL: [ExprFn; 29] = [
        ExprFn::Add,
        ExprFn::Mul,
        ExprFn::Pow,
        ExprFn::FloorDiv,
        ExprFn::Mod,
        ExprFn::ModularIndexing,
        ExprFn::TrueDiv,
        ExprFn::Min,
        ExprFn::Max,
        ExprFn::Abs,
        ExprFn::Ceil,
        ExprFn::Floor,
        ExprFn::Trunc,
        ExprFn::Round,
        ExprFn::ToFloat,
        ExprFn::Sqrt,
        ExprFn::Eq,
        ExprFn::Ne,
        ExprFn::Lt,
        ExprFn::Le,
        ExprFn::Gt,
        ExprFn::Ge,
        ExprFn::And,
        ExprFn::Or,
        ExprFn::Not,
        ExprFn::Where,
        ExprFn::LShift,
        ExprFn::RShift,
        ExprFn::BitAnd,
    ];

    /// Name in the text format.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
    /// The function of a name.
    pub fn from_name(name: &str) -> Option<ExprFn> {
        ExprFn::ALL.into_iter().chain([ExprFn::BitOr]).find(|f| f.name() == name)
    }
}

/// Value of a function on known numbers; `None` if undefined.
pub(super) fn apply(f: ExprFn, args: &[Scalar]) -> Option<Scalar> {
    use Scalar::{Bool, Float, Int};
    let float = args.iter().any(|a| matches!(a, Float(_)));
    let fold = |int: fn(i64, i64) -> Option<i64>, flt: fn(f64, f64) -> f64| -> Option<Scalar> {
        if float {
            args.iter().map(|a| a.as_f64()).reduce(flt).map(Float)
        } else {
            let mut items = args.iter().map(|a| a.as_i64());
            let first = items.next()?;
            items.try_fold(first, int).map(Int)
        }
    };
    let compare = |test: fn(Ordering) -> bool| -> Option<Scalar> {
        let [a, b] = args else { return None };
        let order = if float { a.as_f64().partial_cmp(&b.as_f64())? } else { a.as_i64().cmp(&b.as_i64()) };
        Some(Bool(test(order)))
    };
    let to_int = |g: fn(f64) -> f64| -> Option<Scalar> {
        match args {
            [Float(x)] => {
                let y = g(*x);
                (y.abs() < 9.2e18).then_some(Int(y as i64))
            }
            [other] => Some(Int(other.as_i64())),
            _ => None,
        }
    };
    match f {
        ExprFn::Add => fold(i64::checked_add, |a, b| a + b),
        ExprFn::Mul => fold(i64::checked_mul, |a, b| a * b),
        ExprFn::Min => fold(|a, b| Some(a.min(b)), f64::min),
        ExprFn::Max => fold(|a, b| Some(a.max(b)), f64::max),
        ExprFn::Pow => match args {
            [a, b] if float || b.as_i64() < 0 => Some(Float(a.as_f64().powf(b.as_f64()))),
            [a, b] => a.as_i64().checked_pow(u32::try_from(b.as_i64()).ok()?).map(Int),
            _ => None,
        },
        ExprFn::FloorDiv => match args {
            [a, b] if float => Some(Float((a.as_f64() / b.as_f64()).floor())),
            [a, b] => floor_div_i64(a.as_i64(), b.as_i64()).map(Int),
            _ => None,
        },
        ExprFn::Mod => match args {
            [a, b] if float => {
                let (x, y) = (a.as_f64(), b.as_f64());
                Some(Float(x - (x / y).floor() * y))
            }
            [a, b] => {
                let (x, y) = (a.as_i64(), b.as_i64());
                x.checked_sub(floor_div_i64(x, y)?.checked_mul(y)?).map(Int)
            }
            _ => None,
        },
        ExprFn::ModularIndexing => match args {
            [a, b, c] => {
                let q = floor_div_i64(a.as_i64(), b.as_i64())?;
                q.checked_rem_euclid(c.as_i64()).map(Int)
            }
            _ => None,
        },
        ExprFn::TrueDiv => match args {
            [a, b] if b.as_f64() != 0.0 => Some(Float(a.as_f64() / b.as_f64())),
            _ => None,
        },
        ExprFn::Abs => match args {
            [Float(x)] => Some(Float(x.abs())),
            [a] => a.as_i64().checked_abs().map(Int),
            _ => None,
        },
        ExprFn::Ceil => to_int(f64::ceil),
        ExprFn::Floor => to_int(f64::floor),
        ExprFn::Trunc => to_int(f64::trunc),
        ExprFn::Round => to_int(f64::round_ties_even),
        ExprFn::ToFloat => args.first().map(|a| Float(a.as_f64())),
        ExprFn::Sqrt => args.first().map(|a| Float(a.as_f64().sqrt())),
        ExprFn::Eq => compare(Ordering::is_eq),
        ExprFn::Ne => compare(Ordering::is_ne),
        ExprFn::Lt => compare(Ordering::is_lt),
        ExprFn::Le => compare(Ordering::is_le),
        ExprFn::Gt => compare(Ordering::is_gt),
        ExprFn::Ge => compare(Ordering::is_ge),
        ExprFn::And => Some(Bool(args.iter().all(|a| a.as_bool()))),
        ExprFn::Or => Some(Bool(args.iter().any(|a| a.as_bool()))),
        ExprFn::Not => args.first().map(|a| Bool(!a.as_bool())),
        ExprFn::Where => match args {
            [c, a, b] => Some(if c.as_bool() { *a } else { *b }),
            _ => None,
        },
        ExprFn::LShift => fold(|a, b| a.checked_shl(u32::try_from(b).ok()?), |_, _| f64::NAN),
        ExprFn::RShift => fold(|a, b| a.checked_shr(u32::try_from(b).ok()?), |_, _| f64::NAN),
        ExprFn::BitAnd => fold(|a, b| Some(a & b), |_, _| f64::NAN),
        ExprFn::BitOr => fold(|a, b| Some(a | b), |_, _| f64::NAN),
    }
}

fn floor_div_i64(a: i64, b: i64) -> Option<i64> {
    let q = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
}
