//! Learning the values of symbols from sizes and numbers of a run.

use restride_ir::{Binding, Expr, ExprFn, Symbol};
use restride_tensor::Scalar;
use std::collections::BTreeSet;

/// The outcome of unifying an expression with a number.
#[derive(Clone, PartialEq, Debug)]
pub enum Unified {
    /// They agree; a symbol was bound if one was free.
    Agree,
    /// The expression is another number.
    Differs(Scalar),
    /// The number would put a symbol outside of its range, or no integer solves the expression.
    OutOfRange(String),
    /// The expression has several free symbols, or one that cannot be solved for.
    Open,
}

/// Whether two numbers are the same; kinds may differ (`True` is 1), NaN is NaN.
pub fn same_number(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => a.as_c64() == b.as_c64(),
        (Scalar::Float(_), _) | (_, Scalar::Float(_)) => {
            let (x, y) = (a.as_f64(), b.as_f64());
            x == y || (x.is_nan() && y.is_nan())
        }
        _ => a.as_i64() == b.as_i64(),
    }
}

/// Makes an expression agree with a number: binds its one free symbol, or compares.
pub fn unify(expr: &Expr, actual: Scalar, binding: &mut Binding) -> Unified {
    let mut symbols = BTreeSet::new();
    expr.symbols(&mut symbols);
    let free: Vec<Symbol> = symbols.into_iter().filter(|s| !binding.contains_key(s)).collect();
    match free.as_slice() {
        [] => match expr.eval(binding) {
            Ok(value) if same_number(value, actual) => Unified::Agree,
            Ok(value) => Unified::Differs(value),
            Err(_) => Unified::Open,
        },
        [symbol] => match solve(expr, symbol, actual, binding) {
            None => Unified::Open,
            Some(Err(why)) => Unified::OutOfRange(why),
            Some(Ok(value)) => match out_of_range(symbol, value) {
                Some(why) => Unified::OutOfRange(why),
                None => {
                    binding.insert(symbol.clone(), value);
                    Unified::Agree
                }
            },
        },
        _ => Unified::Open,
    }
}

/// Learns symbols from the number that an expression turned out to be; an expression that cannot be solved waits. The complaint
/// continues "the number …".
pub fn learn_number(expr: &Expr, value: Scalar, binding: &mut Binding) -> Result<(), String> {
    match unify(expr, value, binding) {
        Unified::Differs(want) if !expr.is_float() => Err(format!("is {value} and is declared as {expr} = {want}")),
        Unified::OutOfRange(why) => Err(format!("is {value}: {why}")),
        _ => Ok(()),
    }
}

/// The value of the only free symbol that makes the expression the number, where the expression is linear in it.
fn solve(expr: &Expr, symbol: &Symbol, actual: Scalar, binding: &Binding) -> Option<Result<Scalar, String>> {
    if matches!(expr, Expr::Sym(_)) {
        return Some(Ok(actual));
    }
    // A bool that data decides is the comparison of a symbol with 1.
    if let (Expr::Call(c), Scalar::Bool(b)) = (expr, actual)
        && let (ExprFn::Eq, [Expr::Sym(_), Expr::Int(1)]) = (c.0, c.1.as_slice())
    {
        return Some(Ok(Scalar::Int(b.into())));
    }
    if expr.is_float() || matches!(actual, Scalar::Float(_) | Scalar::Complex(_)) {
        return None;
    }
    let at = |n: i64| {
        let mut trial = binding.clone();
        trial.insert(symbol.clone(), Scalar::Int(n));
        expr.eval(&trial).ok().map(Scalar::as_i64)
    };
    // Two points give the line; others tell whether it is one.
    let (f0, f1) = (at(0)?, at(1)?);
    let slope = f1.checked_sub(f0)?;
    let linear = [2, 3, 5, 97, 1000].iter().all(|&n| {
        let expected = slope.checked_mul(n).and_then(|x| x.checked_add(f0));
        expected.is_some() && at(n) == expected
    });
    if slope == 0 || !linear {
        return None;
    }
    let rest = actual.as_i64().checked_sub(f0)?;
    if rest % slope != 0 {
        return Some(Err(format!("{} is not {expr} for any integer {}", actual, symbol.name())));
    }
    Some(Ok(Scalar::Int(rest / slope)))
}

/// Why a value is outside of a symbol's range, if it is.
pub fn out_of_range(symbol: &Symbol, value: Scalar) -> Option<String> {
    if matches!(value, Scalar::Float(_) | Scalar::Complex(_)) {
        return None;
    }
    let n = value.as_i64();
    range_text(n, symbol.min(), symbol.max()).map(|bound| format!("{} = {n} must be {bound}", symbol.name()))
}

/// Which bound a number breaks, in words.
pub fn range_text(n: i64, min: Option<i64>, max: Option<i64>) -> Option<String> {
    match (min, max) {
        (Some(lo), _) if n < lo => Some(format!("at least {lo}")),
        (_, Some(hi)) if n > hi => Some(format!("at most {hi}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ir::Dim;

    #[test]
    fn symbols_are_solved_for() {
        let s = Symbol::new("s0", Some(2), Some(9));
        let e = Expr::from(s.clone()).times(&Expr::Int(2)).plus(&Expr::Int(1));
        let mut b = Binding::new();
        assert_eq!(unify(&e, Scalar::Int(7), &mut b), Unified::Agree);
        assert_eq!(b[&s], Scalar::Int(3));
        assert_eq!(unify(&e, Scalar::Int(9), &mut b), Unified::Differs(Scalar::Int(7)));
        let fresh = &mut Binding::new();
        assert!(matches!(unify(&e, Scalar::Int(8), fresh), Unified::OutOfRange(_)));
        assert!(matches!(unify(&e, Scalar::Int(3), fresh), Unified::OutOfRange(_)));
        let bool = Expr::call(ExprFn::Eq, vec![Expr::Sym(Symbol::new("u0", Some(1), Some(1))), Expr::Int(1)]);
        assert!(matches!(unify(&bool, Scalar::Bool(false), fresh), Unified::OutOfRange(_)));
        assert_eq!(unify(&bool, Scalar::Bool(true), fresh), Unified::Agree);
        assert_eq!(unify(&e.floor_div(&Expr::Int(3)), Scalar::Int(3), fresh), Unified::Open);
    }
}
