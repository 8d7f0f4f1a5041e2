//! Symbolic numbers: as sympy text in types, as nodes that compute them in graphs.

use crate::model::{Float, SymBool, SymExpr, SymExprHint, SymFloat, SymInt};
use crate::sympy::{SymAst, SymFn, Symbol as SympySymbol};
use restride_ir::{Binding, Conditions, Error, Expr, ExprFn, Program, Result, SampleInput, Scalar, Symbol, Type};

/// What the symbols were at export, or may be: the hints that PyTorch keeps beside its expressions. The sizes of the
/// sample inputs say it where there are any.
pub fn hints(program: &Program) -> Binding {
    let mut out = Binding::new();
    if let Some(samples) = &program.sample_inputs {
        let users = program
            .signature
            .inputs
            .iter()
            .filter(|i| matches!(i.kind, restride_ir::InputKind::User(_) | restride_ir::InputKind::Fixed { .. }));
        for (spec, sample) in users.zip(&samples.inputs) {
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
    // The samples' sizes pass what is checked.
    if drawn { Conditions::of(program).witness(out, &[]) } else { out }
}

fn symbol(s: &Symbol) -> SymAst {
    let assume = |k: &str| (k.to_string(), true);
    let assumptions = match (s.is_float(), s.is_unbacked()) {
        (true, true) => Vec::new(),
        (true, false) => vec![assume("real")],
        (false, true) => vec![assume("integer")],
        (false, false) if s.min().is_some_and(|m| m >= 1) => vec![assume("positive"), assume("integer")],
        (false, false) => vec![assume("integer")],
    };
    SymAst::Symbol(SympySymbol { name: s.name().to_string(), assumptions })
}

/// The expression as sympy has it.
pub fn ast(e: &Expr) -> Result<SymAst> {
    let (f, args) = match e {
        Expr::Int(i) => return Ok(SymAst::Int(*i)),
        Expr::Bool(b) => return Ok(SymAst::Bool(*b)),
        Expr::Float(x) => return Ok(SymAst::Float(x.0)),
        Expr::Sym(s) => return Ok(symbol(s)),
        Expr::Call(c) => (c.0, &c.1),
    };
    let float = args.iter().any(Expr::is_float);
    let f = match f {
        ExprFn::Add => SymFn::Add,
        ExprFn::Mul => SymFn::Mul,
        ExprFn::Pow if float => SymFn::FloatPow,
        ExprFn::Pow => SymFn::PowByNatural,
        ExprFn::FloorDiv => SymFn::FloorDiv,
        ExprFn::Mod => SymFn::PythonMod,
        ExprFn::ModularIndexing => SymFn::ModularIndexing,
        ExprFn::TrueDiv if float => SymFn::FloatTrueDiv,
        ExprFn::TrueDiv => SymFn::IntTrueDiv,
        ExprFn::Min => SymFn::Min,
        ExprFn::Max => SymFn::Max,
        ExprFn::Abs => SymFn::Abs,
        ExprFn::Ceil => SymFn::CeilToInt,
        ExprFn::Floor => SymFn::FloorToInt,
        ExprFn::Trunc => SymFn::TruncToInt,
        ExprFn::Round => SymFn::RoundToInt,
        ExprFn::ToFloat => SymFn::ToFloat,
        ExprFn::Eq => SymFn::Eq,
        ExprFn::Ne => SymFn::Ne,
        ExprFn::Lt => SymFn::Lt,
        ExprFn::Le => SymFn::Le,
        ExprFn::Gt => SymFn::Gt,
        ExprFn::Ge => SymFn::Ge,
        ExprFn::And => SymFn::And,
        ExprFn::Or => SymFn::Or,
        ExprFn::Not => SymFn::Not,
        ExprFn::Where => SymFn::Where,
        ExprFn::LShift => SymFn::LShift,
        ExprFn::RShift => SymFn::RShift,
        // PyTorch's reader does not know these.
        ExprFn::Sqrt | ExprFn::BitAnd | ExprFn::BitOr => {
            return Err(Error::unsupported(format!("{e} cannot be written: PyTorch does not read {}", f.name())));
        }
    };
    Ok(SymAst::Call(f, args.iter().map(ast).collect::<Result<_>>()?))
}

/// A size, stride, offset, or the value of a symbolic integer.
pub fn sym_int(e: &Expr, hints: &Binding) -> Result<SymInt> {
    if let Expr::Int(i) = e {
        return Ok(SymInt::AsInt(*i));
    }
    let hint = e.eval(hints).ok().map(|s| SymExprHint::AsInt(s.as_i64()));
    Ok(SymInt::AsExpr(SymExpr { expr_str: ast(e)?.to_string(), hint }))
}

/// The value of a symbolic float.
pub fn sym_float(e: &Expr, hints: &Binding) -> Result<SymFloat> {
    if let Some(x) = e.constant() {
        return Ok(SymFloat::AsFloat(Float(x.as_f64())));
    }
    let hint = e.eval(hints).ok().map(|s| SymExprHint::AsFloat(Float(s.as_f64())));
    Ok(SymFloat::AsExpr(SymExpr { expr_str: ast(e)?.to_string(), hint }))
}

/// The value of a symbolic bool.
pub fn sym_bool(e: &Expr) -> Result<SymBool> {
    if let Expr::Bool(b) = e {
        return Ok(SymBool::AsBool(*b));
    }
    Ok(SymBool::AsExpr(SymExpr { expr_str: ast(e)?.to_string(), hint: None }))
}

/// A symbol compared with a number, as it is: not what the symbol's own range makes of it.
pub fn bound(s: &Symbol, f: SymFn, number: i64) -> SymBool {
    let compared = SymAst::Call(f, vec![symbol(s), SymAst::Int(number)]);
    SymBool::AsExpr(SymExpr { expr_str: compared.to_string(), hint: None })
}

/// How a function of numbers is computed in a graph: by which of Python's functions, over which of its arguments.
pub fn python(f: ExprFn) -> Option<&'static str> {
    Some(match f {
        ExprFn::Add => "_operator.add",
        ExprFn::Mul => "_operator.mul",
        ExprFn::Pow => "_operator.pow",
        ExprFn::FloorDiv => "_operator.floordiv",
        ExprFn::Mod => "_operator.mod",
        ExprFn::TrueDiv => "_operator.truediv",
        ExprFn::Min => "torch.sym_min",
        ExprFn::Max => "torch.sym_max",
        ExprFn::Trunc => "math.trunc",
        ExprFn::ToFloat => "torch.sym_float",
        ExprFn::Eq => "_operator.eq",
        ExprFn::Ne => "_operator.ne",
        ExprFn::Lt => "_operator.lt",
        ExprFn::Le => "_operator.le",
        ExprFn::Gt => "_operator.gt",
        ExprFn::Ge => "_operator.ge",
        ExprFn::And => "_operator.and_",
        ExprFn::Or => "_operator.or_",
        ExprFn::Not => "torch.sym_not",
        ExprFn::Where => "torch.sym_ite",
        ExprFn::LShift => "_operator.lshift",
        ExprFn::RShift => "_operator.rshift",
        ExprFn::Sqrt => "torch.sym_sqrt",
        ExprFn::ModularIndexing
        | ExprFn::Abs
        | ExprFn::Ceil
        | ExprFn::Floor
        | ExprFn::Round
        | ExprFn::BitAnd
        | ExprFn::BitOr => return None,
    })
}

/// The expression as `str` of sympy prints it: the keys of range constraints.
pub fn python_text(e: &Expr) -> String {
    match e {
        Expr::Call(c) => match (c.0, c.1.as_slice()) {
            (ExprFn::Add, args) => args.iter().map(python_text).collect::<Vec<_>>().join(" + ").replace("+ -", "- "),
            (ExprFn::Mul, args) => args
                .iter()
                .map(|a| {
                    if matches!(a, Expr::Call(c) if c.0 == ExprFn::Add) {
                        format!("({})", python_text(a))
                    } else {
                        python_text(a)
                    }
                })
                .collect::<Vec<_>>()
                .join("*"),
            _ => e.to_string(),
        },
        _ => e.to_string(),
    }
}
