//! Expressions as PyTorch writes them.

use super::functions::written;
use restride_ir::{Error, Expr, ExprFn, Result, Symbol};

/// The expression in sympy's `srepr`.
///
/// # Errors
/// A function that PyTorch does not read.
pub fn srepr(e: &Expr) -> Result<String> {
    let (f, args) = match e {
        Expr::Int(i) => return Ok(format!("Integer({i})")),
        Expr::Bool(b) => return Ok(b.to_string()),
        Expr::Float(x) if x.0.is_nan() => return Ok("nan".into()),
        Expr::Float(x) if x.0.is_infinite() => return Ok(if x.0 > 0.0 { "oo" } else { "-oo" }.into()),
        Expr::Float(x) => return Ok(format!("Float('{:?}', precision=53)", x.0)),
        Expr::Sym(s) => return Ok(symbol(s)),
        Expr::Call(c) => (c.0, &c.1),
    };
    let name = written(f, args.iter().any(Expr::is_float))
        .ok_or_else(|| Error::unsupported(format!("{e} cannot be written: PyTorch does not read {}", f.name())))?;
    let args = args.iter().map(srepr).collect::<Result<Vec<_>>>()?;
    Ok(format!("{name}({})", args.join(", ")))
}

/// A symbol with the assumptions that PyTorch gives it; sympy takes symbols that differ in them for different ones.
fn symbol(s: &Symbol) -> String {
    let assumptions = match (s.is_float(), s.is_unbacked()) {
        (true, true) => "",
        (true, false) => ", real=True",
        (false, false) if s.min().is_some_and(|m| m >= 1) => ", positive=True, integer=True",
        (false, _) => ", integer=True",
    };
    format!("Symbol('{}'{assumptions})", s.name().replace('\\', "\\\\").replace('\'', "\\'"))
}

/// A symbol compared with a number in sympy's `srepr`, not simplified by the symbol's own range.
pub fn compared(s: &Symbol, f: ExprFn, number: i64) -> String {
    format!("{}({}, Integer({number}))", written(f, false).unwrap_or_default(), symbol(s))
}

/// The expression in sympy's `str`, as keys of range constraints have it.
pub fn python_text(e: &Expr) -> String {
    let Expr::Call(c) = e else { return e.to_string() };
    let joined = |part: &dyn Fn(&Expr) -> String, by: &str| c.1.iter().map(part).collect::<Vec<_>>().join(by);
    match c.0 {
        ExprFn::Add => joined(&python_text, " + ").replace("+ -", "- "),
        ExprFn::Mul => joined(
            &|a| match a {
                Expr::Call(c) if c.0 == ExprFn::Add => format!("({})", python_text(a)),
                a => python_text(a),
            },
            "*",
        ),
        _ => e.to_string(),
    }
}
