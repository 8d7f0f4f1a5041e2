//! Symbolic expressions as PyTorch writes them: sympy's `srepr` in types and values, sympy's `str` as the keys of
//! range constraints.

use crate::error::{Pt2Error, Result};
use crate::pyexpr::{self, Binary, Compare, Expr, Unary};
use std::fmt;

/// A symbol, with what sympy assumes of it; two symbols that differ in that are different to sympy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Such as `s77` (an input's size), `u0` (a value known only at a run), `zuf0` (a float).
    pub name: String,
    /// Such as `positive=True`, in the order written.
    pub assumptions: Vec<(String, bool)>,
}

impl Symbol {
    /// A symbol of which nothing is assumed.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), assumptions: Vec::new() }
    }
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum SymAst {
    /// a symbol
    Symbol(Symbol),
    /// an integer
    Int(i64),
    /// a float, perhaps infinite or NaN
    Float(f64),
    /// a truth value
    Bool(bool),
    /// a function of expressions
    Call(SymFn, Vec<SymAst>),
}

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal ($args:pat);)*) => {
        /// What sympy and PyTorch compute symbolically.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum SymFn { $($(#[$doc])* $variant,)* }

        impl SymFn {
            /// All of them.
            pub const ALL: &'static [SymFn] = &[$(SymFn::$variant,)*];

            /// Its name in `srepr`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// From its name in `srepr`.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// Whether it takes so many arguments.
            pub fn takes(self, count: usize) -> bool {
                match self { $(Self::$variant => matches!(count, $args),)* }
            }
        }
    };
}

functions! {
    /// sum
    Add "Add" (_);
    /// product
    Mul "Mul" (_);
    /// power
    Pow "Pow" (2);
    /// quotient of two integers
    Rational "Rational" (2);
    /// smallest
    Min "Min" (1..);
    /// largest
    Max "Max" (1..);
    /// absolute value
    Abs "Abs" (1);
    /// largest integer below
    Floor "floor" (1);
    /// smallest integer above
    Ceiling "ceiling" (1);
    /// Python's `//`
    FloorDiv "FloorDiv" (2);
    /// quotient rounded up
    CeilDiv "CeilDiv" (2);
    /// quotient known to be exact
    CleanDiv "CleanDiv" (2);
    /// remainder of numbers that are not negative
    Mod "Mod" (2);
    /// Python's `%`
    PythonMod "PythonMod" (2);
    /// `(a // b) % c`
    ModularIndexing "ModularIndexing" (3);
    /// Python's `int / int`
    IntTrueDiv "IntTrueDiv" (2);
    /// Python's `float / float`
    FloatTrueDiv "FloatTrueDiv" (2);
    /// power of integers, the exponent not negative
    PowByNatural "PowByNatural" (2);
    /// power of floats
    FloatPow "FloatPow" (2);
    /// `math.ceil`
    CeilToInt "CeilToInt" (1);
    /// `math.floor`
    FloorToInt "FloorToInt" (1);
    /// `math.trunc`
    TruncToInt "TruncToInt" (1);
    /// `math.trunc`, as a float
    TruncToFloat "TruncToFloat" (1);
    /// `round(x)`
    RoundToInt "RoundToInt" (1);
    /// `round(x, n)`
    RoundDecimal "RoundDecimal" (2);
    /// `float(x)`
    ToFloat "ToFloat" (1);
    /// `<<`
    LShift "LShift" (2);
    /// `>>`
    RShift "RShift" (2);
    /// `&` of integers
    BitwiseAnd "BitwiseFn_bitwise_and" (2);
    /// `|` of integers
    BitwiseOr "BitwiseFn_bitwise_or" (2);
    /// `^` of integers
    BitwiseXor "BitwiseFn_bitwise_xor" (2);
    /// `a if c else b`, the condition first
    Where "Where" (3);
    /// the first value whose condition holds
    Piecewise "Piecewise" (1..);
    /// a value and its condition, in a `Piecewise`
    ExprCondPair "ExprCondPair" (2);
    /// its argument
    Identity "Identity" (1);
    /// whether sizes and strides cover memory without gaps
    IsNonOverlappingAndDense "IsNonOverlappingAndDenseIndicator" (_);
    /// `>=`
    Ge "GreaterThan" (2);
    /// `<=`
    Le "LessThan" (2);
    /// `>`
    Gt "StrictGreaterThan" (2);
    /// `<`
    Lt "StrictLessThan" (2);
    /// `==`
    Eq "Equality" (2);
    /// `!=`
    Ne "Unequality" (2);
    /// conjunction
    And "And" (_);
    /// disjunction
    Or "Or" (_);
    /// negation
    Not "Not" (1);
    /// square root
    Sqrt "OpaqueUnaryFn_sqrt" (1);
    /// cosine
    Cos "OpaqueUnaryFn_cos" (1);
    /// hyperbolic cosine
    Cosh "OpaqueUnaryFn_cosh" (1);
    /// sine
    Sin "OpaqueUnaryFn_sin" (1);
    /// hyperbolic sine
    Sinh "OpaqueUnaryFn_sinh" (1);
    /// tangent
    Tan "OpaqueUnaryFn_tan" (1);
    /// hyperbolic tangent
    Tanh "OpaqueUnaryFn_tanh" (1);
    /// arc sine
    Asin "OpaqueUnaryFn_asin" (1);
    /// arc cosine
    Acos "OpaqueUnaryFn_acos" (1);
    /// arc tangent
    Atan "OpaqueUnaryFn_atan" (1);
    /// exponential
    Exp "OpaqueUnaryFn_exp" (1);
    /// natural logarithm
    Log "OpaqueUnaryFn_log" (1);
    /// logarithm to base two
    Log2 "OpaqueUnaryFn_log2" (1);
    /// inverse hyperbolic sine
    Asinh "OpaqueUnaryFn_asinh" (1);
}

/// Parses an `srepr`, such as `Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(-1))`.
pub fn parse_srepr(text: &str) -> Result<SymAst> {
    pyexpr::parse(text).and_then(|e| from_expr(&e)).map_err(|e| e.at(format!("symbolic expression {}", shorten(text))))
}

/// Parses what sympy's `str` prints, such as `2*s65` or `s0 + 1`. Symbols come without assumptions.
pub fn parse_str(text: &str) -> Result<SymAst> {
    parse_srepr(text)
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn from_expr(e: &Expr) -> Result<SymAst> {
    Ok(match e {
        Expr::Name(n) => name(n),
        Expr::Int(n) => SymAst::Int(*n),
        Expr::Float(x) => SymAst::Float(*x),
        Expr::Unary(op, a) => unary(*op, from_expr(a)?)?,
        Expr::Binary(op, a, b) => binary(*op, from_expr(a)?, from_expr(b)?)?,
        Expr::Compare(first, rest) => compare(from_expr(first)?, rest)?,
        Expr::And(parts) => SymAst::Call(SymFn::And, all(parts)?),
        Expr::Or(parts) => SymAst::Call(SymFn::Or, all(parts)?),
        Expr::Call { function, args, keywords } => {
            let Expr::Name(f) = &**function else {
                return Err(Pt2Error::unsupported("a call of something unnamed"));
            };
            call(f, args, keywords)?
        }
        Expr::Str(_) | Expr::Attr(..) | Expr::Index(..) | Expr::IfElse { .. } => {
            return Err(Pt2Error::unsupported("something that is no symbolic expression"));
        }
    })
}

fn all(parts: &[Expr]) -> Result<Vec<SymAst>> {
    parts.iter().map(from_expr).collect()
}

fn name(n: &str) -> SymAst {
    match n {
        "true" | "True" => SymAst::Bool(true),
        "false" | "False" => SymAst::Bool(false),
        "oo" | "int_oo" => SymAst::Float(f64::INFINITY),
        "nan" => SymAst::Float(f64::NAN),
        n => SymAst::Symbol(Symbol::new(n)),
    }
}

fn unary(op: Unary, a: SymAst) -> Result<SymAst> {
    Ok(match (op, a) {
        (Unary::Neg, a) => negated(a),
        (Unary::Pos, a) => a,
        (Unary::Invert | Unary::Not, a) => SymAst::Call(SymFn::Not, vec![a]),
    })
}

fn negated(a: SymAst) -> SymAst {
    match a {
        // Literals are never negative, so this cannot overflow but for what `-(-n)` makes of the smallest.
        SymAst::Int(n) if n != i64::MIN => SymAst::Int(-n),
        SymAst::Float(x) => SymAst::Float(-x),
        a => joined(SymFn::Mul, SymAst::Int(-1), a),
    }
}

/// Sums and products take any number of terms: `a + b + c` is one call.
fn joined(f: SymFn, a: SymAst, b: SymAst) -> SymAst {
    match a {
        SymAst::Call(g, mut args) if g == f => {
            args.push(b);
            SymAst::Call(f, args)
        }
        a => SymAst::Call(f, vec![a, b]),
    }
}

fn binary(op: Binary, a: SymAst, b: SymAst) -> Result<SymAst> {
    let f = match op {
        Binary::Add => return Ok(joined(SymFn::Add, a, b)),
        Binary::Sub => return Ok(joined(SymFn::Add, a, negated(b))),
        Binary::Mul => return Ok(joined(SymFn::Mul, a, b)),
        Binary::TrueDiv => {
            let inverse = SymAst::Call(SymFn::Pow, vec![b, SymAst::Int(-1)]);
            return Ok(joined(SymFn::Mul, a, inverse));
        }
        Binary::Pow => SymFn::Pow,
        Binary::FloorDiv => SymFn::FloorDiv,
        Binary::Mod => SymFn::PythonMod,
        Binary::LShift => SymFn::LShift,
        Binary::RShift => SymFn::RShift,
        // sympy prints its logical operators so; bitwise ones print as functions.
        Binary::BitAnd => return Ok(joined(SymFn::And, a, b)),
        Binary::BitOr => return Ok(joined(SymFn::Or, a, b)),
        Binary::BitXor => return Err(Pt2Error::unsupported("an exclusive or")),
    };
    Ok(SymAst::Call(f, vec![a, b]))
}

fn compare(first: SymAst, rest: &[(Compare, Expr)]) -> Result<SymAst> {
    let mut left = first;
    let mut parts = Vec::new();
    for (op, right) in rest {
        let f = match op {
            Compare::Eq => SymFn::Eq,
            Compare::Ne => SymFn::Ne,
            Compare::Lt => SymFn::Lt,
            Compare::Le => SymFn::Le,
            Compare::Gt => SymFn::Gt,
            Compare::Ge => SymFn::Ge,
        };
        let right = from_expr(right)?;
        parts.push(SymAst::Call(f, vec![left, right.clone()]));
        left = right;
    }
    Ok(match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            SymAst::Call(SymFn::And, parts)
        }
        None => left,
    })
}

fn call(f: &str, args: &[Expr], keywords: &[(String, Expr)]) -> Result<SymAst> {
    let bad = || Pt2Error::malformed(format!("{f} does not take these arguments"));
    match (f, args) {
        ("Symbol", [Expr::Str(name)]) => {
            let assumption = |(k, v): &(String, Expr)| match v {
                Expr::Name(b) if b == "True" => Ok((k.clone(), true)),
                Expr::Name(b) if b == "False" => Ok((k.clone(), false)),
                _ => Err(bad()),
            };
            return Ok(SymAst::Symbol(Symbol {
                name: name.clone(),
                assumptions: keywords.iter().map(assumption).collect::<Result<_>>()?,
            }));
        }
        ("Integer", [n]) if keywords.is_empty() => {
            return match from_expr(n)? {
                SymAst::Int(n) => Ok(SymAst::Int(n)),
                _ => Err(bad()),
            };
        }
        // The precision is always 53 bits; PyTorch has no other floats.
        ("Float", [Expr::Str(digits)]) => {
            return digits.parse().map(SymAst::Float).map_err(|_| bad());
        }
        ("Symbol" | "Integer" | "Float", _) => return Err(bad()),
        ("IntInfinity" | "Infinity", []) => return Ok(SymAst::Float(f64::INFINITY)),
        ("NegativeIntInfinity" | "NegativeInfinity", []) => {
            return Ok(SymAst::Float(f64::NEG_INFINITY));
        }
        _ => {}
    }
    // The short names are what `str` prints.
    let function = match f {
        "Eq" => Some(SymFn::Eq),
        "Ne" => Some(SymFn::Ne),
        "sqrt" => Some(SymFn::Sqrt),
        f => SymFn::from_name(f),
    }
    .ok_or_else(|| Pt2Error::unsupported(format!("function {f}")))?;
    // Some print an `evaluate=False`; it says how to build, not what.
    if keywords.iter().any(|(k, _)| k != "evaluate") || !function.takes(args.len()) {
        return Err(bad());
    }
    Ok(SymAst::Call(function, all(args)?))
}

impl fmt::Display for SymAst {
    /// Prints `srepr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symbol(s) => {
                write!(f, "Symbol('{}'", s.name.replace('\\', "\\\\").replace('\'', "\\'"))?;
                for (k, v) in &s.assumptions {
                    write!(f, ", {k}={}", if *v { "True" } else { "False" })?;
                }
                f.write_str(")")
            }
            Self::Int(n) => write!(f, "Integer({n})"),
            Self::Float(x) if x.is_nan() => f.write_str("nan"),
            Self::Float(x) if x.is_infinite() => f.write_str(if *x > 0.0 { "oo" } else { "-oo" }),
            Self::Float(x) => write!(f, "Float('{x:?}', precision=53)"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Call(SymFn::Rational, args) => match args.as_slice() {
                [Self::Int(p), Self::Int(q)] => write!(f, "Rational({p}, {q})"),
                args => print_call(f, SymFn::Rational, args),
            },
            Self::Call(function, args) => print_call(f, *function, args),
        }
    }
}

fn print_call(f: &mut fmt::Formatter<'_>, function: SymFn, args: &[SymAst]) -> fmt::Result {
    write!(f, "{}(", function.name())?;
    for (i, a) in args.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{a}")?;
    }
    f.write_str(")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn srepr_round_trips() {
        for text in [
            "Symbol('s77', positive=True, integer=True)",
            "Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(-1))",
            "FloatTrueDiv(ToFloat(Symbol('s77', positive=True, integer=True)), Float('3.0', precision=53))",
            "FloorDiv(Mul(Symbol('s27', positive=True, integer=True), Integer(3)), Integer(2))",
            "GreaterThan(Symbol('u0', integer=True), Integer(0))",
            "Piecewise(ExprCondPair(Integer(1), Equality(Symbol('u0', integer=True), Integer(0))), ExprCondPair(Integer(2), true))",
            "Mul(Rational(1, 2), Symbol('zuf0'))",
            "Integer(-9223372036854775807)",
            "And(Not(false), Unequality(Symbol('a'), oo), LessThan(-oo, nan))",
            "OpaqueUnaryFn_sqrt(BitwiseFn_bitwise_and(Symbol('a'), Integer(7)))",
        ] {
            assert_eq!(parse_srepr(text).unwrap().to_string(), text);
        }
        for f in SymFn::ALL {
            assert_eq!(SymFn::from_name(f.name()), Some(*f));
        }
    }

    #[test]
    fn the_keys_of_ranges() {
        let key = |t: &str| parse_str(t).unwrap().to_string();
        assert_eq!(key("s77"), "Symbol('s77')");
        assert_eq!(key("2*s65"), "Mul(Integer(2), Symbol('s65'))");
        assert_eq!(key("s0 + 1 - s1"), "Add(Symbol('s0'), Integer(1), Mul(Integer(-1), Symbol('s1')))");
        assert_eq!(key("((s0*s1)//2)"), "FloorDiv(Mul(Symbol('s0'), Symbol('s1')), Integer(2))");
        assert_eq!(key("s0**2"), "Pow(Symbol('s0'), Integer(2))");
        assert_eq!(key("Max(1, -s0)"), "Max(Integer(1), Mul(Integer(-1), Symbol('s0')))");
        assert_eq!(key("s0/2"), "Mul(Symbol('s0'), Pow(Integer(2), Integer(-1)))");
        assert_eq!(
            key("(s0 < 3) & Ne(s1, 2)"),
            "And(StrictLessThan(Symbol('s0'), Integer(3)), Unequality(Symbol('s1'), Integer(2)))"
        );
        assert_eq!(
            key("1 <= s0 < 3"),
            "And(LessThan(Integer(1), Symbol('s0')), StrictLessThan(Symbol('s0'), Integer(3)))"
        );
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for text in [
            "",
            "Foo(Integer(1))",
            "Symbol(1)",
            "Symbol('a', positive=3)",
            "Integer('1')",
            "Float(1)",
            "Pow(Integer(1))",
            "L['x']",
            "'s0'",
            "Integer(99999999999999999999)",
            "f(1)(2)",
            "__import__('os').system('x')",
            "Add(Integer(1), x=True)",
            "Float('abc')",
        ] {
            let e = parse_srepr(text).unwrap_err();
            assert!(e.to_string().starts_with("symbolic expression"), "{e}");
        }
        let deep = format!("{}Integer(1){}", "Not(".repeat(5000), ")".repeat(5000));
        assert!(parse_srepr(&deep).is_err());
    }

    #[test]
    fn truncation_never_panics() {
        let text = "Add(Mul(Integer(2), Symbol('s77', positive=True)), Float('3.0', precision=53))";
        for n in 0..text.len() {
            let _ = parse_srepr(&text[..n]);
        }
    }
}
