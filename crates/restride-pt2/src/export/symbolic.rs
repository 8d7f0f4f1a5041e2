//! Symbolic numbers in types, as sympy text with the value at export.

use crate::expressions::{compared, srepr};
use crate::model::{Float, SymExpr, SymExprHint, SymNumber};
use restride_ir::{Binding, Conditions, Expr, ExprFn, Program, Result, SampleInput, Scalar, Symbol, Type};

/// Values of the symbols at export, which PyTorch keeps beside its expressions as hints: from the sample inputs, or drawn from
/// the symbols' ranges.
pub fn hints(program: &Program) -> Binding {
    let mut out = Binding::new();
    if let Some(samples) = &program.sample_inputs {
        for (spec, sample) in crate::user_inputs(program).zip(&samples.inputs) {
            let mut learn = |e: &Expr, value: Scalar| {
                if let Expr::Sym(s) = e {
                    out.entry(s.clone()).or_insert(value);
                }
            };
            match (&program.graph().values[spec.value].ty, sample) {
                (Type::Tensor(t), SampleInput::Tensor { layout, .. }) => {
                    for (e, n) in t.layout.sizes.iter().zip(&layout.sizes) {
                        learn(e, Scalar::Int(*n));
                    }
                }
                (Type::Scalar(e), SampleInput::Scalar(s)) => learn(e, *s),
                _ => {}
            }
        }
    }
    let mut drawn = false;
    for (i, s) in program.symbols.values().filter(|s| !s.is_unbacked()).enumerate() {
        let wanted = [8, 12, 16, 20, 24, 28][i % 6];
        let value = wanted.min(s.max().unwrap_or(i64::MAX)).max(s.min().unwrap_or(i64::MIN));
        let value = if s.is_float() { Scalar::Float(value as f64) } else { Scalar::Int(value) };
        if !out.contains_key(s) {
            drawn = true;
            out.insert(s.clone(), value);
        }
    }
    // Sizes of samples pass the program's checks already.
    if drawn { Conditions::of(program).witness(out, &[]) } else { out }
}

/// A size, stride, offset, or the value of a symbolic integer.
pub fn sym_int(e: &Expr, hints: &Binding) -> Result<SymNumber> {
    if let Expr::Int(i) = e {
        return Ok(SymNumber::AsInt(*i));
    }
    expression(e, e.eval(hints).ok().map(|s| SymExprHint::AsInt(s.as_i64())))
}

/// The value of a symbolic float.
pub fn sym_float(e: &Expr, hints: &Binding) -> Result<SymNumber> {
    if let Some(x) = e.constant() {
        return Ok(SymNumber::AsFloat(Float(x.as_f64())));
    }
    expression(e, e.eval(hints).ok().map(|s| SymExprHint::AsFloat(Float(s.as_f64()))))
}

/// The value of a symbolic bool.
pub fn sym_bool(e: &Expr) -> Result<SymNumber> {
    if let Expr::Bool(b) = e { Ok(SymNumber::AsBool(*b)) } else { expression(e, None) }
}

fn expression(e: &Expr, hint: Option<SymExprHint>) -> Result<SymNumber> {
    Ok(SymNumber::AsExpr(SymExpr { expr_str: srepr(e)?, hint }))
}

/// A symbol compared with a number, not simplified by the symbol's own range.
pub fn bound(s: &Symbol, f: ExprFn, number: i64) -> SymNumber {
    SymNumber::AsExpr(SymExpr { expr_str: compared(s, f, number), hint: None })
}
