//! Functions of expressions: their names in sympy and in Python, and how many arguments they take.

use restride_ir::ExprFn;
use std::ops::RangeInclusive;

const ANY: RangeInclusive<usize> = 0..=usize::MAX;
const SOME: RangeInclusive<usize> = 1..=usize::MAX;
const ONE: RangeInclusive<usize> = 1..=1;
const TWO: RangeInclusive<usize> = 2..=2;
const THREE: RangeInclusive<usize> = 3..=3;

/// Each function under every name that PyTorch writes for it. A file gets the first name of its function.
const FUNCTIONS: &[(ExprFn, RangeInclusive<usize>, &[&str])] = &[
    (ExprFn::Add, ANY, &["Add"]),
    (ExprFn::Mul, ANY, &["Mul"]),
    (ExprFn::Pow, TWO, &["PowByNatural", "Pow", "FloatPow"]),
    (ExprFn::FloorDiv, TWO, &["FloorDiv", "CleanDiv"]),
    (ExprFn::Mod, TWO, &["PythonMod", "Mod"]),
    (ExprFn::ModularIndexing, THREE, &["ModularIndexing"]),
    (ExprFn::TrueDiv, TWO, &["IntTrueDiv", "FloatTrueDiv", "Rational"]),
    (ExprFn::Min, SOME, &["Min", "min", "torch.sym_min"]),
    (ExprFn::Max, SOME, &["Max", "max", "torch.sym_max"]),
    (ExprFn::Abs, ONE, &["Abs", "abs"]),
    (ExprFn::Ceil, ONE, &["CeilToInt", "ceiling", "math.ceil"]),
    (ExprFn::Floor, ONE, &["FloorToInt", "floor", "math.floor"]),
    (ExprFn::Trunc, ONE, &["TruncToInt", "math.trunc", "int", "torch.sym_int"]),
    (ExprFn::Round, ONE, &["RoundToInt", "round"]),
    (ExprFn::ToFloat, ONE, &["ToFloat", "float", "torch.sym_float"]),
    (ExprFn::Sqrt, ONE, &["OpaqueUnaryFn_sqrt", "sqrt", "math.sqrt", "torch.sym_sqrt", "torch._sym_sqrt"]),
    (ExprFn::Eq, TWO, &["Equality", "Eq"]),
    (ExprFn::Ne, TWO, &["Unequality", "Ne"]),
    (ExprFn::Lt, TWO, &["StrictLessThan"]),
    (ExprFn::Le, TWO, &["LessThan"]),
    (ExprFn::Gt, TWO, &["StrictGreaterThan"]),
    (ExprFn::Ge, TWO, &["GreaterThan"]),
    (ExprFn::And, ANY, &["And"]),
    (ExprFn::Or, ANY, &["Or"]),
    (ExprFn::Not, ONE, &["Not"]),
    (ExprFn::Where, THREE, &["Where"]),
    (ExprFn::LShift, TWO, &["LShift"]),
    (ExprFn::RShift, TWO, &["RShift"]),
    (ExprFn::BitAnd, TWO, &["BitwiseFn_bitwise_and"]),
    (ExprFn::BitOr, TWO, &["BitwiseFn_bitwise_or"]),
];

/// The function of a name and the numbers of arguments that it takes.
pub(super) fn named(name: &str) -> Option<(ExprFn, &'static RangeInclusive<usize>)> {
    FUNCTIONS.iter().find(|row| row.2.contains(&name)).map(|row| (row.0, &row.1))
}

/// The name that PyTorch reads, if it reads the function.
pub(super) fn written(f: ExprFn, float: bool) -> Option<&'static str> {
    match (f, float) {
        (ExprFn::Sqrt, _) => None,
        (ExprFn::Pow, true) => Some("FloatPow"),
        (ExprFn::TrueDiv, true) => Some("FloatTrueDiv"),
        _ => FUNCTIONS.iter().find(|row| row.0 == f).map(|row| row.2[0]),
    }
}

/// Functions that compute numbers in a graph.
const PYTHON: &[(ExprFn, &str)] = &[
    (ExprFn::Add, "_operator.add"),
    (ExprFn::Mul, "_operator.mul"),
    (ExprFn::Pow, "_operator.pow"),
    (ExprFn::FloorDiv, "_operator.floordiv"),
    (ExprFn::Mod, "_operator.mod"),
    (ExprFn::TrueDiv, "_operator.truediv"),
    (ExprFn::Min, "torch.sym_min"),
    (ExprFn::Max, "torch.sym_max"),
    (ExprFn::Trunc, "math.trunc"),
    (ExprFn::ToFloat, "torch.sym_float"),
    (ExprFn::Eq, "_operator.eq"),
    (ExprFn::Ne, "_operator.ne"),
    (ExprFn::Lt, "_operator.lt"),
    (ExprFn::Le, "_operator.le"),
    (ExprFn::Gt, "_operator.gt"),
    (ExprFn::Ge, "_operator.ge"),
    (ExprFn::And, "_operator.and_"),
    (ExprFn::Or, "_operator.or_"),
    (ExprFn::Not, "torch.sym_not"),
    (ExprFn::Where, "torch.sym_ite"),
    (ExprFn::LShift, "_operator.lshift"),
    (ExprFn::RShift, "_operator.rshift"),
    (ExprFn::Sqrt, "torch.sym_sqrt"),
    // Read as the functions of truth values above.
    (ExprFn::BitAnd, "_operator.and_"),
    (ExprFn::BitOr, "_operator.or_"),
    // Read only: PyTorch's writer has other ways to say these.
    (ExprFn::Not, "_operator.not_"),
    (ExprFn::Ceil, "math.ceil"),
    (ExprFn::Floor, "math.floor"),
    (ExprFn::Trunc, "torch.sym_int"),
    (ExprFn::Add, "torch.sym_sum"),
];

/// The operator that computes a function in a graph; `ceil` and `floor` are computed through others.
pub fn python(f: ExprFn) -> Option<&'static str> {
    let computed = !matches!(f, ExprFn::Ceil | ExprFn::Floor);
    PYTHON.iter().find(|row| row.0 == f && computed).map(|row| row.1)
}

/// The function that an operator computes.
pub fn python_function(operator: &str) -> Option<ExprFn> {
    PYTHON.iter().find(|row| row.1 == operator).map(|row| row.0)
}
