//! Symbolic numbers: what sizes, strides and scalar arguments are made of in programs with dynamic shapes.
//!
//! Sums and products of integers are kept as polynomials in one normal form, so that equal polynomials are
//! equal expressions; everything else is an opaque call over normal forms. Proofs go through the normal form of
//! a difference and through interval bounds from the symbols' ranges.

use restride_tensor::{Dim, Scalar};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A name for a number that is known at run time.
#[derive(Clone, Debug)]
pub struct Symbol(Arc<SymbolData>);

#[derive(Debug)]
struct SymbolData {
    name: String,
    min: Option<i64>,
    max: Option<i64>,
}

impl Symbol {
    /// A symbol with the range that it is known to lie in (inclusive; `None` is unbounded).
    pub fn new(name: impl Into<String>, min: Option<i64>, max: Option<i64>) -> Symbol {
        Symbol(Arc::new(SymbolData { name: name.into(), min, max }))
    }
    /// Its name (`s77`, `u0`, `zuf0`).
    pub fn name(&self) -> &str {
        &self.0.name
    }
    /// Smallest value, if bounded.
    pub fn min(&self) -> Option<i64> {
        self.0.min
    }
    /// Largest value, if bounded.
    pub fn max(&self) -> Option<i64> {
        self.0.max
    }
    /// Whether it is data-dependent: learnt from a result, not from the inputs' sizes.
    pub fn is_unbacked(&self) -> bool {
        self.0.name.starts_with('u') || self.0.name.starts_with("zu")
    }
    /// Whether it stands for a float.
    pub fn is_float(&self) -> bool {
        self.0.name.starts_with('z')
    }
}
impl PartialEq for Symbol {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}
impl Eq for Symbol {}
impl PartialOrd for Symbol {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Symbol {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}
impl std::hash::Hash for Symbol {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

/// Values of symbols.
pub type Binding = BTreeMap<Symbol, Scalar>;

/// A function in an expression. Names and meanings are those of `torch.utils._sympy.functions`.
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

/// A float compared and hashed by its bits.
#[derive(Clone, Copy, Debug)]
pub struct Bits(pub f64);
impl PartialEq for Bits {
    fn eq(&self, o: &Self) -> bool {
        self.0.to_bits() == o.0.to_bits()
    }
}
impl Eq for Bits {}
impl PartialOrd for Bits {
    fn partial_cmp(&self, o: &Self) -> Option<Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Bits {
    fn cmp(&self, o: &Self) -> Ordering {
        self.0.to_bits().cmp(&o.0.to_bits())
    }
}
impl std::hash::Hash for Bits {
    fn hash<H: std::hash::Hasher>(&self, s: &mut H) {
        self.0.to_bits().hash(s);
    }
}

/// A number: known, a symbol, or a function of others. Build with the methods, which keep the normal form.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Expr {
    /// An integer.
    Int(i64),
    /// A bool.
    Bool(bool),
    /// A float.
    Float(Bits),
    /// A symbol.
    Sym(Symbol),
    /// A function of expressions.
    Call(Arc<(ExprFn, Vec<Expr>)>),
}

impl From<i64> for Expr {
    fn from(i: i64) -> Self {
        Expr::Int(i)
    }
}
impl From<Symbol> for Expr {
    fn from(s: Symbol) -> Self {
        Expr::Sym(s)
    }
}
impl From<Scalar> for Expr {
    /// Complex numbers have no expression form; their real part is taken (they travel as `Arg::Complex`).
    fn from(s: Scalar) -> Self {
        match s {
            Scalar::Int(i) => Expr::Int(i),
            Scalar::Bool(b) => Expr::Bool(b),
            Scalar::Float(x) => Expr::Float(Bits(x)),
            Scalar::Complex(z) => Expr::Float(Bits(z.re)),
        }
    }
}

/// Monomials with their coefficients: a product of atoms (sorted, repeats for powers) to an integer.
type Poly = BTreeMap<Vec<Expr>, i64>;

impl Expr {
    /// A float.
    pub fn float(x: f64) -> Expr {
        Expr::Float(Bits(x))
    }

    /// The value, if it is a number already.
    pub fn constant(&self) -> Option<Scalar> {
        match self {
            Expr::Int(i) => Some(Scalar::Int(*i)),
            Expr::Bool(b) => Some(Scalar::Bool(*b)),
            Expr::Float(x) => Some(Scalar::Float(x.0)),
            _ => None,
        }
    }

    /// A function of expressions, in normal form; folded if all arguments are known.
    pub fn call(f: ExprFn, args: Vec<Expr>) -> Expr {
        if let Some(known) = args.iter().map(Expr::constant).collect::<Option<Vec<_>>>()
            && let Some(value) = apply(f, &known)
        {
            return value.into();
        }
        let float = args.iter().any(Expr::is_float);
        match (f, args.as_slice()) {
            (ExprFn::Add, _) if !float => {
                let mut sum = Poly::new();
                args.iter().for_each(|a| add_into(&mut sum, &a.poly(), 1));
                from_poly(sum)
            }
            (ExprFn::Mul, _) if !float => {
                let one: Poly = [(Vec::new(), 1)].into();
                let product = args.iter().try_fold(one, |p, a| {
                    let a = a.poly();
                    (p.len() * a.len() <= MONOMIALS).then(|| multiply(&p, &a))
                });
                product.map_or_else(|| opaque_product(args.clone()), from_poly)
            }
            (ExprFn::Pow, [base, Expr::Int(n)]) if !float && (0..=8).contains(n) => {
                Expr::call(ExprFn::Mul, std::iter::repeat_n(base.clone(), *n as usize).collect())
            }
            (ExprFn::FloorDiv, [a, b]) => floor_div(a, b),
            (ExprFn::Mod, [a, b]) => {
                let whole = floor_div(a, b);
                if matches!(&whole, Expr::Call(c) if c.0 == ExprFn::FloorDiv) {
                    Expr::Call(Arc::new((f, args)))
                } else {
                    a.minus(&whole.times(b))
                }
            }
            (ExprFn::ModularIndexing, [a, b, c]) => Expr::call(ExprFn::Mod, vec![floor_div(a, b), c.clone()]),
            (ExprFn::Min | ExprFn::Max, _) => min_max(f, args),
            (ExprFn::Eq, [a, b]) if a.equals(b).is_some() => Expr::Bool(a.equals(b) == Some(true)),
            (ExprFn::Ne, [a, b]) if a.equals(b).is_some() => Expr::Bool(a.equals(b) == Some(false)),
            (ExprFn::Lt, [a, b]) if a.less(b).is_some() => Expr::Bool(a.less(b) == Some(true)),
            (ExprFn::Gt, [a, b]) if b.less(a).is_some() => Expr::Bool(b.less(a) == Some(true)),
            (ExprFn::Le, [a, b]) if b.less(a).is_some() => Expr::Bool(b.less(a) == Some(false)),
            (ExprFn::Ge, [a, b]) if a.less(b).is_some() => Expr::Bool(a.less(b) == Some(false)),
            (ExprFn::Floor | ExprFn::Ceil | ExprFn::Trunc | ExprFn::Round, [a]) if !a.is_float() => a.clone(),
            _ => Expr::Call(Arc::new((f, args))),
        }
    }

    /// Whether the value is a float.
    pub fn is_float(&self) -> bool {
        match self {
            Expr::Float(_) => true,
            Expr::Sym(s) => s.is_float(),
            Expr::Call(c) => match c.0 {
                ExprFn::TrueDiv | ExprFn::ToFloat | ExprFn::Sqrt => true,
                ExprFn::Add | ExprFn::Mul | ExprFn::Pow | ExprFn::Min | ExprFn::Max | ExprFn::Abs | ExprFn::Where => {
                    c.1.iter().any(Expr::is_float)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the value is a bool.
    pub fn is_bool(&self) -> bool {
        match self {
            Expr::Bool(_) => true,
            Expr::Call(c) => matches!(
                c.0,
                ExprFn::Eq
                    | ExprFn::Ne
                    | ExprFn::Lt
                    | ExprFn::Le
                    | ExprFn::Gt
                    | ExprFn::Ge
                    | ExprFn::And
                    | ExprFn::Or
                    | ExprFn::Not
            ),
            _ => false,
        }
    }

    /// The value under a binding, or the first symbol that it lacks (or a description of what cannot be computed).
    pub fn eval(&self, binding: &Binding) -> Result<Scalar, String> {
        match self {
            Expr::Sym(s) => binding.get(s).copied().ok_or_else(|| format!("{} has no value", s.name())),
            Expr::Call(c) => {
                let args = c.1.iter().map(|a| a.eval(binding)).collect::<Result<Vec<_>, _>>()?;
                apply(c.0, &args).ok_or_else(|| format!("{self} cannot be computed"))
            }
            other => Ok(other.constant().expect("what is no symbol and no call is a constant")),
        }
    }

    /// With symbols replaced by their values where the binding has them.
    pub fn substitute(&self, binding: &Binding) -> Expr {
        match self {
            Expr::Sym(s) => binding.get(s).map_or_else(|| self.clone(), |v| Expr::from(*v)),
            Expr::Call(c) => Expr::call(c.0, c.1.iter().map(|a| a.substitute(binding)).collect()),
            other => other.clone(),
        }
    }

    /// With symbols replaced by expressions.
    pub fn replace(&self, map: &BTreeMap<Symbol, Expr>) -> Expr {
        match self {
            Expr::Sym(s) => map.get(s).cloned().unwrap_or_else(|| self.clone()),
            Expr::Call(c) => Expr::call(c.0, c.1.iter().map(|a| a.replace(map)).collect()),
            other => other.clone(),
        }
    }

    /// The symbols in it.
    pub fn symbols(&self, out: &mut std::collections::BTreeSet<Symbol>) {
        match self {
            Expr::Sym(s) => {
                out.insert(s.clone());
            }
            Expr::Call(c) => c.1.iter().for_each(|a| a.symbols(out)),
            _ => {}
        }
    }

    /// Bounds from the ranges of the symbols; `None` is unbounded. Integers only.
    pub fn bounds(&self) -> (Option<i64>, Option<i64>) {
        match self {
            Expr::Int(i) => (Some(*i), Some(*i)),
            Expr::Sym(s) if !s.is_float() => (s.min(), s.max()),
            Expr::Call(c) => {
                let args: Vec<_> = c.1.iter().map(Expr::bounds).collect();
                match c.0 {
                    ExprFn::Add => {
                        args.iter().fold((Some(0), Some(0)), |acc, b| (add_opt(acc.0, b.0), add_opt(acc.1, b.1)))
                    }
                    ExprFn::Mul => args.iter().fold((Some(1), Some(1)), |acc, b| mul_bounds(acc, *b)),
                    // Max is at least any argument's lower bound; Min dually.
                    ExprFn::Max => (
                        args.iter().filter_map(|b| b.0).max(),
                        args.iter().map(|b| b.1).collect::<Option<Vec<_>>>().and_then(|v| v.into_iter().max()),
                    ),
                    ExprFn::Min => (
                        args.iter().map(|b| b.0).collect::<Option<Vec<_>>>().and_then(|v| v.into_iter().min()),
                        args.iter().filter_map(|b| b.1).min(),
                    ),
                    ExprFn::FloorDiv => match (&args[0], c.1.get(1)) {
                        (b, Some(Expr::Int(d))) if *d > 0 => {
                            (b.0.map(|x| x.div_euclid(*d)), b.1.map(|x| x.div_euclid(*d)))
                        }
                        (b, Some(d)) if b.0 >= Some(0) && d.bounds().0 >= Some(1) => (Some(0), b.1),
                        _ => (None, None),
                    },
                    ExprFn::Mod => match args[1] {
                        (Some(lo), hi) if lo > 0 => (Some(0), hi.map(|h| h - 1)),
                        _ => (None, None),
                    },
                    _ => (None, None),
                }
            }
            _ => (None, None),
        }
    }

    fn poly(&self) -> Poly {
        match self {
            Expr::Int(0) => Poly::new(),
            Expr::Int(i) => [(Vec::new(), *i)].into(),
            Expr::Bool(b) => Expr::Int(*b as i64).poly(),
            Expr::Call(c) if c.0 == ExprFn::Add && !self.is_float() => {
                let mut sum = Poly::new();
                c.1.iter().for_each(|a| add_into(&mut sum, &a.poly(), 1));
                sum
            }
            Expr::Call(c) if c.0 == ExprFn::Mul && !self.is_float() => {
                let mut atoms = Vec::new();
                let mut factor = 1i64;
                for a in &c.1 {
                    match a {
                        Expr::Int(i) => factor = factor.wrapping_mul(*i),
                        atom => atoms.push(atom.clone()),
                    }
                }
                atoms.sort();
                [(atoms, factor)].into()
            }
            atom => [(vec![atom.clone()], 1)].into(),
        }
    }
}

/// Products of sums are multiplied out up to so many terms; there could be any number of them.
const MONOMIALS: usize = 4096;

/// A product that stays one: its factors are atoms.
fn opaque_product(mut factors: Vec<Expr>) -> Expr {
    factors.sort();
    Expr::Call(Arc::new((ExprFn::Mul, factors)))
}

fn add_opt(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a?.checked_add(b?)
}

fn mul_bounds(a: (Option<i64>, Option<i64>), b: (Option<i64>, Option<i64>)) -> (Option<i64>, Option<i64>) {
    // Enough for sizes and strides: both not negative, or one a known number.
    let scale = |k: i64, (lo, hi): (Option<i64>, Option<i64>)| {
        let m = |x: Option<i64>| x.and_then(|x| x.checked_mul(k));
        if k >= 0 { (m(lo), m(hi)) } else { (m(hi), m(lo)) }
    };
    match (a, b) {
        ((Some(x), Some(y)), other) | (other, (Some(x), Some(y))) if x == y => {
            if x == 0 {
                (Some(0), Some(0))
            } else {
                scale(x, other)
            }
        }
        ((Some(la), ha), (Some(lb), hb)) if la >= 0 && lb >= 0 => {
            (la.checked_mul(lb), ha.and_then(|h| hb.and_then(|g| h.checked_mul(g))))
        }
        _ => (None, None),
    }
}

fn add_into(sum: &mut Poly, p: &Poly, factor: i64) {
    for (m, c) in p {
        let entry = sum.entry(m.clone()).or_insert(0);
        *entry = entry.wrapping_add(c.wrapping_mul(factor));
        if *entry == 0 {
            sum.remove(m);
        }
    }
}

fn multiply(a: &Poly, b: &Poly) -> Poly {
    let mut out = Poly::new();
    for (ma, ca) in a {
        for (mb, cb) in b {
            let mut m = [ma.as_slice(), mb.as_slice()].concat();
            m.sort();
            add_into(&mut out, &[(m, 1)].into(), ca.wrapping_mul(*cb));
        }
    }
    out
}

fn from_poly(p: Poly) -> Expr {
    let mut terms: Vec<Expr> = p
        .into_iter()
        .map(|(mut atoms, c)| {
            if atoms.is_empty() {
                return Expr::Int(c);
            }
            if c == 1 && atoms.len() == 1 {
                return atoms.remove(0);
            }
            if c != 1 {
                atoms.insert(0, Expr::Int(c));
            }
            Expr::Call(Arc::new((ExprFn::Mul, atoms)))
        })
        .collect();
    match terms.len() {
        0 => Expr::Int(0),
        1 => terms.remove(0),
        _ => {
            // The constant last, as people write it.
            if matches!(terms[0], Expr::Int(_)) {
                terms.rotate_left(1);
            }
            Expr::Call(Arc::new((ExprFn::Add, terms)))
        }
    }
}

/// Divides by a known number, or by a product that stands in every monomial; otherwise stays a call.
fn floor_div(a: &Expr, b: &Expr) -> Expr {
    let opaque = || Expr::Call(Arc::new((ExprFn::FloorDiv, vec![a.clone(), b.clone()])));
    if b.is(1) {
        return a.clone();
    }
    let (pa, pb) = (a.poly(), b.poly());
    if pa.is_empty() && b.bounds().0 >= Some(1) {
        return Expr::Int(0);
    }
    let (Some((atoms, &factor)), 1) = (pb.iter().next(), pb.len()) else { return opaque() };
    if factor <= 0 || (!atoms.is_empty() && b.bounds().0 < Some(1)) {
        return opaque();
    }
    let (mut whole, mut rest) = (Poly::new(), Poly::new());
    for (m, c) in &pa {
        match remove_atoms(m, atoms) {
            Some(left) if c % factor == 0 => {
                whole.insert(left, c / factor);
            }
            _ => {
                rest.insert(m.clone(), *c);
            }
        }
    }
    if rest.is_empty() {
        return from_poly(whole);
    }
    // What is left over is dropped if it is provably between 0 and the divisor.
    let left = from_poly(rest);
    if left.bounds().0 >= Some(0) && left.less(b) == Some(true) {
        return from_poly(whole);
    }
    let inner = Expr::Call(Arc::new((ExprFn::FloorDiv, vec![left, b.clone()])));
    if whole.is_empty() { opaque() } else { Expr::call(ExprFn::Add, vec![from_poly(whole), inner]) }
}

fn remove_atoms(from: &[Expr], atoms: &[Expr]) -> Option<Vec<Expr>> {
    let mut left = from.to_vec();
    for a in atoms {
        let i = left.iter().position(|x| x == a)?;
        left.remove(i);
    }
    Some(left)
}

fn min_max(f: ExprFn, args: Vec<Expr>) -> Expr {
    let mut flat: Vec<Expr> = Vec::new();
    for a in args {
        match &a {
            Expr::Call(c) if c.0 == f => flat.extend(c.1.iter().cloned()),
            _ => flat.push(a),
        }
    }
    // An argument that another one provably makes irrelevant goes.
    let beats = |a: &Expr, b: &Expr| {
        if a == b {
            return true;
        }
        if f == ExprFn::Min { b.less(a) == Some(false) } else { a.less(b) == Some(false) }
    };
    let mut kept: Vec<Expr> = Vec::new();
    for a in flat {
        if kept.iter().any(|k| beats(k, &a)) {
            continue;
        }
        kept.retain(|k| !beats(&a, k));
        kept.push(a);
    }
    kept.sort();
    if kept.len() == 1 { kept.remove(0) } else { Expr::Call(Arc::new((f, kept))) }
}

fn apply(f: ExprFn, args: &[Scalar]) -> Option<Scalar> {
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

impl Dim for Expr {
    fn known(&self) -> Option<i64> {
        match self {
            Expr::Int(i) => Some(*i),
            _ => None,
        }
    }
    fn plus(&self, other: &Self) -> Self {
        match (self, other) {
            (Expr::Int(a), Expr::Int(b)) => Expr::Int(a.wrapping_add(*b)),
            _ => Expr::call(ExprFn::Add, vec![self.clone(), other.clone()]),
        }
    }
    fn minus(&self, other: &Self) -> Self {
        self.plus(&other.times(&Expr::Int(-1)))
    }
    fn times(&self, other: &Self) -> Self {
        match (self, other) {
            (Expr::Int(a), Expr::Int(b)) => Expr::Int(a.wrapping_mul(*b)),
            _ => Expr::call(ExprFn::Mul, vec![self.clone(), other.clone()]),
        }
    }
    fn floor_div(&self, other: &Self) -> Self {
        Expr::call(ExprFn::FloorDiv, vec![self.clone(), other.clone()])
    }
    fn smaller(&self, other: &Self) -> Self {
        Expr::call(ExprFn::Min, vec![self.clone(), other.clone()])
    }
    fn larger(&self, other: &Self) -> Self {
        Expr::call(ExprFn::Max, vec![self.clone(), other.clone()])
    }
    fn equals(&self, other: &Self) -> Option<bool> {
        if self == other {
            return Some(true);
        }
        match (self, other) {
            (Expr::Int(a), Expr::Int(b)) => return Some(a == b),
            _ if self.is_float() || other.is_float() => return None,
            _ => {}
        }
        match self.minus(other) {
            Expr::Int(d) => Some(d == 0),
            d => match d.bounds() {
                (Some(lo), _) if lo > 0 => Some(false),
                (_, Some(hi)) if hi < 0 => Some(false),
                _ => None,
            },
        }
    }
    fn less(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Expr::Int(a), Expr::Int(b)) => return Some(a < b),
            _ if self.is_float() || other.is_float() => return None,
            _ => {}
        }
        match other.minus(self).bounds() {
            (Some(lo), _) if lo > 0 => Some(true),
            (_, Some(hi)) if hi <= 0 => Some(false),
            _ => None,
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list(f: &mut fmt::Formatter<'_>, items: &[Expr], sep: &str) -> fmt::Result {
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    f.write_str(sep)?;
                }
                // Sums of floats may nest, and their order matters.
                match item {
                    Expr::Call(c) if sep != ", " && c.0 == ExprFn::Add => write!(f, "({item})")?,
                    Expr::Call(c) if sep == "*" && c.0 == ExprFn::Mul => write!(f, "({item})")?,
                    _ => write!(f, "{item}")?,
                }
            }
            Ok(())
        }
        match self {
            Expr::Int(i) => write!(f, "{i}"),
            Expr::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            Expr::Float(x) => write!(f, "{:?}", x.0),
            Expr::Sym(s) => f.write_str(s.name()),
            Expr::Call(c) => match c.0 {
                ExprFn::Add => list(f, &c.1, " + "),
                ExprFn::Mul => list(f, &c.1, "*"),
                other => {
                    write!(f, "{}(", other.name())?;
                    list(f, &c.1, ", ")?;
                    f.write_str(")")
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(name: &str) -> Expr {
        Expr::Sym(Symbol::new(name, Some(2), None))
    }

    #[test]
    fn polynomials_have_one_form() {
        let (a, b) = (s("s0"), s("s1"));
        let x = a.plus(&b).times(&a.minus(&b));
        let y = a.times(&a).minus(&b.times(&b));
        assert_eq!(x, y);
        assert_eq!(x.minus(&y), Expr::Int(0));
        assert_eq!(a.times(&Expr::Int(6)).floor_div(&Expr::Int(2)), a.times(&Expr::Int(3)));
        assert_eq!(a.times(&b).floor_div(&b), a);
        assert_eq!(a.plus(&Expr::Int(1)).to_string(), "s0 + 1");
    }

    #[test]
    fn products_of_many_sums_stay_products() {
        let sums: Vec<Expr> = (0..60).map(|i| s(&format!("a{i}")).plus(&s(&format!("b{i}")))).collect();
        let product = Expr::call(ExprFn::Mul, sums.clone());
        let turned = Expr::call(ExprFn::Mul, sums.into_iter().rev().collect());
        assert_eq!(product, turned);
        assert_eq!(product.equals(&turned), Some(true));
        assert_eq!(product.minus(&turned), Expr::Int(0));
        let ones: Binding = (0..60)
            .flat_map(|i| [format!("a{i}"), format!("b{i}")])
            .map(|n| (Symbol::new(n, None, None), Scalar::Int(1)))
            .collect();
        assert_eq!(product.eval(&ones), Ok(Scalar::Int(1 << 60)));
    }

    #[test]
    fn bounds_prove() {
        let a = s("s0");
        assert_eq!(a.equals(&Expr::Int(1)), Some(false));
        assert_eq!(a.equals(&Expr::Int(2)), None);
        assert_eq!(Expr::Int(0).less(&a), Some(true));
        assert_eq!(a.less(&a.plus(&Expr::Int(1))), Some(true));
        assert_eq!(a.larger(&Expr::Int(0)), a);
        assert_eq!(a.smaller(&a.plus(&Expr::Int(3))), a);
    }

    #[test]
    fn division_rounds_down() {
        assert_eq!(Expr::Int(-7).floor_div(&Expr::Int(2)), Expr::Int(-4));
        let e = Expr::call(ExprFn::Mod, vec![s("s0"), Expr::Int(3)]);
        let at = |n| e.eval(&[(Symbol::new("s0", None, None), Scalar::Int(n))].into()).unwrap();
        assert_eq!((at(7), at(9)), (Scalar::Int(1), Scalar::Int(0)));
    }

    #[test]
    fn evaluation_names_what_is_missing() {
        assert!(s("s0").eval(&Binding::new()).unwrap_err().contains("s0"));
    }
}
