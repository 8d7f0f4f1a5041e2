//! Symbolic numbers: sizes, strides and scalar arguments of programs with dynamic shapes.
//!
//! Sums and products of integers are polynomials in one normal form, so equal polynomials are equal expressions. Every
//! other function is an opaque call over normal forms. Proofs use the normal form of a difference, and interval bounds from
//! the ranges of symbols.

mod bounds;
mod function;
mod polynomial;
mod symbol;
mod table;

pub use function::ExprFn;
pub use polynomial::gcd;
pub use symbol::Symbol;
pub(crate) use table::ExprTable;

use function::apply;
use polynomial::{MONOMIALS, Poly, add_into, floor_div, from_poly, min_max, multiply, opaque_product};
use restride_tensor::{Dim, Scalar};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Values of symbols.
pub type Binding = BTreeMap<Symbol, Scalar>;

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

/// A number: known, a symbol, or a function of numbers. The methods keep the normal form.
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
    /// The real part of a complex number, as expressions are real (`Arg::Complex` carries complex numbers).
    fn from(s: Scalar) -> Self {
        match s {
            Scalar::Int(i) => Expr::Int(i),
            Scalar::Bool(b) => Expr::Bool(b),
            Scalar::Float(x) => Expr::Float(Bits(x)),
            Scalar::Complex(z) => Expr::Float(Bits(z.re)),
        }
    }
}

impl Expr {
    /// A float.
    pub fn float(x: f64) -> Expr {
        Expr::Float(Bits(x))
    }

    /// The value, if it is known.
    pub fn constant(&self) -> Option<Scalar> {
        match self {
            Expr::Int(i) => Some(Scalar::Int(*i)),
            Expr::Bool(b) => Some(Scalar::Bool(*b)),
            Expr::Float(x) => Some(Scalar::Float(x.0)),
            _ => None,
        }
    }

    /// A function of expressions in normal form, folded if all arguments are known. Ranges of symbols decide no comparison:
    /// a range often comes from a recorded check, which must stay.
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
            (ExprFn::Eq | ExprFn::Ne | ExprFn::Lt | ExprFn::Gt | ExprFn::Le | ExprFn::Ge, [a, b]) => {
                match difference(a, b) {
                    Some(d) => apply(f, &[Scalar::Int(d), Scalar::Int(0)])
                        .map_or_else(|| Expr::Call(Arc::new((f, args))), Expr::from),
                    None => Expr::Call(Arc::new((f, args))),
                }
            }
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

    /// The value under a binding.
    ///
    /// # Errors
    /// The first unbound symbol, or the operation without a value.
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

    /// Replaces the symbols that the binding has.
    pub fn substitute(&self, binding: &Binding) -> Expr {
        match self {
            Expr::Sym(s) => binding.get(s).map_or_else(|| self.clone(), |v| Expr::from(*v)),
            Expr::Call(c) => Expr::call(c.0, c.1.iter().map(|a| a.substitute(binding)).collect()),
            other => other.clone(),
        }
    }

    /// Replaces symbols by expressions.
    pub fn replace(&self, map: &BTreeMap<Symbol, Expr>) -> Expr {
        match self {
            Expr::Sym(s) => map.get(s).cloned().unwrap_or_else(|| self.clone()),
            Expr::Call(c) => Expr::call(c.0, c.1.iter().map(|a| a.replace(map)).collect()),
            other => other.clone(),
        }
    }

    /// Collects the symbols.
    pub fn symbols(&self, out: &mut std::collections::BTreeSet<Symbol>) {
        match self {
            Expr::Sym(s) => {
                out.insert(s.clone());
            }
            Expr::Call(c) => c.1.iter().for_each(|a| a.symbols(out)),
            _ => {}
        }
    }

    /// Whether it has a symbol that a run learns.
    pub fn is_learnt(&self) -> bool {
        match self {
            Expr::Sym(s) => s.is_unbacked(),
            Expr::Call(c) => c.1.iter().any(Expr::is_learnt),
            _ => false,
        }
    }
}

/// `a - b`, if it is the same integer for all values of the symbols.
fn difference(a: &Expr, b: &Expr) -> Option<i64> {
    if a.is_float() || b.is_float() || a.is_bool() || b.is_bool() {
        return None;
    }
    a.minus(b).known()
}

impl Dim for Expr {
    type Room = [Expr; 4];

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
    fn divide(&self, other: &Self) -> (Self, Self) {
        polynomial::divide(self, other)
    }
    fn smaller(&self, other: &Self) -> Self {
        match (self, other) {
            (Expr::Int(a), Expr::Int(b)) => Expr::Int(*a.min(b)),
            _ => Expr::call(ExprFn::Min, vec![self.clone(), other.clone()]),
        }
    }
    fn larger(&self, other: &Self) -> Self {
        match (self, other) {
            (Expr::Int(a), Expr::Int(b)) => Expr::Int(*a.max(b)),
            _ => Expr::call(ExprFn::Max, vec![self.clone(), other.clone()]),
        }
    }
    fn counted_from_start(&self, size: &Self) -> Self {
        match self.less(&Expr::Int(0)) {
            Some(true) => self.plus(size),
            Some(false) => self.clone(),
            // For an index between `-size` and `size - 1`, which another check ensures.
            None => Expr::call(ExprFn::Mod, vec![self.clone(), size.clone()]),
        }
    }
    fn bound_from_start(&self, size: &Self) -> Self {
        match self.less(&Expr::Int(0)) {
            Some(true) => self.plus(size),
            // Never above 0, such as `-(n % 4)`; or only a run knows it. Of others the exporter ensures that they are not negative.
            None if self.is_learnt() || self.bounds().1.is_some_and(|most| most <= 0) => {
                let negative = self.times(&Expr::Int(-1)).larger(&Expr::Int(0)).smaller(&Expr::Int(1));
                self.plus(&size.times(&negative))
            }
            Some(false) | None => self.clone(),
        }
    }
    fn equals(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Expr::Int(a), Expr::Int(b)) => return Some(a == b),
            _ if self == other => return Some(true),
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
        other.minus(self).above_zero()
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
    use restride_tensor::{Layout, nested};

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
        let most = a.times(&Expr::Int(3)).minus(&Expr::Int(1));
        assert_eq!(most.floor_div(&a), Expr::Int(2));
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
    fn ranges_decide_no_comparison() {
        let u = Expr::Sym(Symbol::new("u0", Some(3), Some(3)));
        let eq = Expr::call(ExprFn::Eq, vec![u.clone(), Expr::Int(3)]);
        assert_eq!(eq.to_string(), "Eq(u0, 3)");
        assert_eq!(Expr::call(ExprFn::Ge, vec![s("s0"), Expr::Int(2)]).to_string(), "Ge(s0, 2)");
        let more = Expr::call(ExprFn::Gt, vec![s("s0").plus(&Expr::Int(1)), s("s0")]);
        assert_eq!(more, Expr::Bool(true));
        let broken: Binding = [(Symbol::new("u0", None, None), Scalar::Int(4))].into();
        assert_eq!(eq.substitute(&broken), Expr::Bool(false));
    }

    #[test]
    fn bounds_prove() {
        let a = s("s0");
        assert_eq!(a.equals(&Expr::Int(1)), Some(false));
        assert_eq!(a.equals(&Expr::Int(2)), None);
        assert_eq!(Expr::Int(0).less(&a), Some(true));
        assert_eq!(a.less(&a.plus(&Expr::Int(1))), Some(true));
        let area = a.times(&s("s1"));
        assert_eq!(area.plus(&Expr::Int(1)).less(&Expr::Int(0)), Some(false));
        assert_eq!(Expr::Int(3).minus(&area).bounds(), (None, Some(-1)));
        assert_eq!(area.times(&Expr::Int(-1)).times(&a).less(&Expr::Int(-7)), Some(true));
        assert_eq!(a.larger(&Expr::Int(0)), a);
        assert_eq!(a.smaller(&a.plus(&Expr::Int(3))), a);
        // A maximum is no less than its arguments, a minimum no more.
        let u = Expr::Sym(Symbol::new("u0", Some(0), None));
        let (most, least) = (u.larger(&Expr::Int(1)), u.smaller(&a));
        assert_eq!(most.less(&u), Some(false));
        assert_eq!(most.times(&a).less(&u.times(&a)), Some(false));
        assert_eq!(u.less(&most.plus(&Expr::Int(1))), Some(true));
        assert_eq!(a.less(&least), Some(false));
        assert_eq!(least.less(&u.plus(&Expr::Int(1))), Some(true));
        assert_eq!([most.less(&a), u.less(&most), a.less(&u), least.less(&u)], [None; 4]);
        // A quotient is no more than its part, and less by no more than a remainder.
        let half = |e: &Expr| Expr::call(ExprFn::FloorDiv, vec![e.clone(), Expr::Int(2)]);
        let (lower, upper) = (half(&a), half(&a.plus(&Expr::Int(1))));
        assert_eq!(a.less(&upper.plus(&upper)), None);
        assert_eq!(upper.plus(&upper).less(&a), Some(false));
        assert_eq!(a.less(&lower.plus(&lower)), Some(false));
        let both = a.smaller(&s("s1"));
        assert_eq!(half(&both).smaller(&both.minus(&Expr::Int(1))), half(&both));
        // 0 // 2 is more than 0 - 1.
        assert_eq!(half(&u).less(&u), None);
        // So elements of a contiguous tensor are apart, also where a run learns a size.
        let four = Expr::Int(4);
        let contiguous = Layout::strided(
            &[Expr::Int(2), u.clone(), four.clone()],
            &[four.times(&most), four.clone(), Expr::Int(1)],
            Expr::Int(0),
        );
        assert!(nested(&contiguous));
        let overlapping = Layout { strides: [most, four, Expr::Int(1)].into_iter().collect(), ..contiguous };
        assert!(!nested(&overlapping));
    }

    #[test]
    fn a_missing_size_is_what_common_sizes_leave() {
        let u = |name| Expr::Sym(Symbol::new(name, Some(0), None));
        let (a, b, c) = (u("u0"), u("u1"), u("u2"));
        let sums = [a.plus(&b), c.clone(), Expr::Int(4)];
        let layout = Layout::contiguous(&sums);
        let inferred = layout.infer_sizes(&[Expr::Int(-1), sums[0].clone()]).unwrap();
        assert_eq!(inferred[..], [c.times(&Expr::Int(4)), sums[0].clone()]);
    }

    #[test]
    fn division_rounds_down() {
        assert_eq!(Expr::Int(-7).floor_div(&Expr::Int(2)), Expr::Int(-4));
        let e = Expr::call(ExprFn::Mod, vec![s("s0"), Expr::Int(3)]);
        let at = |n| e.eval(&[(Symbol::new("s0", None, None), Scalar::Int(n))].into()).unwrap();
        assert_eq!((at(7), at(9)), (Scalar::Int(1), Scalar::Int(0)));
    }

    #[test]
    fn polynomials_are_divided_term_by_term() {
        let (a, b) = (s("s0"), s("s1"));
        let by = a.minus(&Expr::Int(3)).times(&b);
        let x = by.times(&b).plus(&a).plus(&Expr::Int(2));
        assert_eq!(x.divide(&by), (b.clone(), a.plus(&Expr::Int(2))));
        assert_eq!(
            b.times(&Expr::Int(7)).plus(&Expr::Int(9)).divide(&Expr::Int(4)),
            (b.plus(&Expr::Int(2)), b.times(&Expr::Int(3)).plus(&Expr::Int(1)))
        );
        assert_eq!(a.divide(&Expr::Int(1)), (a.clone(), Expr::Int(0)));
        assert_eq!(a.minus(&Expr::Int(1)).divide(&a), (Expr::Int(1), Expr::Int(-1)));
        assert_eq!(b.divide(&a), (Expr::Int(0), b.clone()));
        assert_eq!(Expr::Int(11).divide(&Expr::Int(4)), (Expr::Int(2), Expr::Int(3)));
    }

    #[test]
    fn a_bound_of_unknown_sign_counts_from_either_end() {
        let u = Symbol::new("u0", None, None);
        let bound = Expr::Sym(u.clone()).bound_from_start(&Expr::Int(10));
        for (at, from_start) in [(-30, -20), (-10, 0), (-3, 7), (0, 0), (4, 4), (12, 12)] {
            let binding = [(u.clone(), Scalar::Int(at))].into_iter().collect();
            assert_eq!(bound.eval(&binding).map(|n| n.as_i64()), Ok(from_start), "{bound} at {at}");
        }
        let rest = Expr::call(ExprFn::Mod, vec![s("s0"), Expr::Int(4)]).times(&Expr::Int(-1));
        for (n, from_start) in [(8, 0), (9, 9), (11, 7)] {
            let binding = [(Symbol::new("s0", Some(2), None), Scalar::Int(n))].into();
            assert_eq!(rest.bound_from_start(&Expr::Int(10)).eval(&binding), Ok(Scalar::Int(from_start)));
        }
        // The exporter decided on values that are not negative.
        assert_eq!(s("s0").minus(&Expr::Int(9)).bound_from_start(&s("s1")), s("s0").minus(&Expr::Int(9)));
    }

    #[test]
    fn an_index_of_unknown_sign_counts_from_either_end() {
        let u = Symbol::new("u0", Some(-4), Some(3));
        let index = Expr::Sym(u.clone()).counted_from_start(&Expr::Int(4));
        assert_eq!(index.bounds(), (Some(0), Some(3)));
        for (n, want) in [(-4, 0), (-1, 3), (0, 0), (3, 3)] {
            assert_eq!(index.eval(&[(u.clone(), Scalar::Int(n))].into()), Ok(Scalar::Int(want)));
        }
        assert_eq!(s("s0").counted_from_start(&Expr::Int(9)), s("s0"));
    }

    #[test]
    fn evaluation_names_what_is_missing() {
        assert!(s("s0").eval(&Binding::new()).unwrap_err().contains("s0"));
    }
}
