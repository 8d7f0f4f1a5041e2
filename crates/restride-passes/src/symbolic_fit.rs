//! Fits expressions to numbers known at several values of the symbols.
//!
//! Shape rules and compositions work on known sizes, so each is evaluated at several witnesses: bindings of every symbol. A
//! resulting number becomes the expression over sizes of the arguments that fits all witnesses; without one it has no
//! symbolic form. The witnesses are far apart, in different orders, even and odd, least and large, so that products show
//! their factors, and a minimum or a case for small sizes shows. They satisfy the program's checks ([`Conditions`]).

use restride_ir::{Binding, Conditions, Dim, Expr, ExprFn, OpError, Scalar, Symbol, TensorType};
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, OpError>;

/// At how many witnesses everything must work.
const NEEDED: usize = 3;

/// Sizes that are combined in pairs, at most.
const PAIRED: usize = 32;

/// Witnesses, with the sizes and numbers that expressions are made of.
pub(crate) struct Witnesses {
    bindings: Vec<Binding>,
    /// Expressions with their values at the witnesses.
    there: Vec<(Expr, Vec<i64>)>,
    /// Whether a symbol has one value at all witnesses for which no condition is known.
    stuck: bool,
}

/// The constant that, divided by these sizes, is these quotients. Some product of both is that constant, without rounding.
fn dividend(sizes: &[i64], quotients: &[Scalar]) -> Option<f64> {
    let pairs = || sizes.iter().map(|n| *n as f64).zip(quotients.iter().map(|x| x.as_f64()));
    pairs().map(|(n, x)| n * x).find(|all| pairs().all(|(n, x)| all / n == x))
}

impl Witnesses {
    /// Witnesses for results computed from these types and numbers.
    pub(crate) fn new<'a>(
        types: &'a [TensorType],
        numbers: impl Iterator<Item = &'a Expr> + Clone,
        conditions: &Conditions,
    ) -> Witnesses {
        let mut symbols = BTreeSet::new();
        for t in types {
            let layout = &t.layout;
            layout.sizes.iter().chain(&layout.strides).chain([&layout.offset]).for_each(|e| e.symbols(&mut symbols));
        }
        numbers.clone().for_each(|e| e.symbols(&mut symbols));
        let bindings = conditions.witnesses(&symbols);
        let stuck = |s: &Symbol| {
            let same = bindings.windows(2).all(|two| two[0].get(s) == two[1].get(s));
            same && (s.min().is_none() || s.min() != s.max()) && !conditions.pins(s)
        };
        let stuck = symbols.iter().any(stuck);
        let mut out = Witnesses { bindings: bindings.to_vec(), there: Vec::new(), stuck };
        types.iter().for_each(|t| out.add_sizes(t));
        numbers.for_each(|e| out.add(e));
        out
    }

    /// The results of a function at each witness. Witnesses at which it fails are left out from here on: an index into a tensor of
    /// a size that data decides, at size 0.
    ///
    /// # Errors
    /// The first error of the function, where too few witnesses are left.
    pub(crate) fn try_each<T>(&mut self, mut f: impl FnMut(&Binding) -> Result<T>) -> Result<Vec<T>> {
        let mut out = Vec::with_capacity(self.bindings.len());
        let several = |all: &[Binding], s: &Symbol| all.windows(2).any(|two| two[0].get(s) != two[1].get(s));
        // The symbols that had several values, and the first error.
        let mut first: Option<(Vec<Symbol>, OpError)> = None;
        let mut at = 0;
        while at < self.bindings.len() {
            match f(&self.bindings[at]) {
                Ok(made) => {
                    out.push(made);
                    at += 1;
                }
                Err(e) if self.bindings.len() <= NEEDED => return Err(first.map_or(e, |f| f.1)),
                Err(e) => {
                    first.get_or_insert_with(|| {
                        let all = self.bindings[at].keys();
                        (all.filter(|s| several(&self.bindings, s)).cloned().collect(), e)
                    });
                    self.bindings.remove(at);
                    self.there.iter_mut().for_each(|(_, values)| {
                        values.remove(at);
                    });
                }
            }
        }
        self.stuck |= first.is_some_and(|(told, _)| told.iter().any(|s| !several(&self.bindings, s)));
        Ok(out)
    }

    /// Adds the sizes of a type.
    pub(crate) fn add_sizes(&mut self, ty: &TensorType) {
        ty.layout.sizes.iter().for_each(|e| self.add(e));
    }

    fn add(&mut self, e: &Expr) {
        let values: Option<Vec<i64>> = self.bindings.iter().map(|b| Some(e.eval(b).ok()?.as_i64())).collect();
        if let Some(values) = values
            && !self.there.iter().any(|(_, v)| *v == values)
        {
            self.there.push((e.clone(), values));
        }
    }

    /// Whether a type has these sizes at the witnesses.
    pub(crate) fn fit<'a>(&self, ty: &TensorType, mut known: impl Iterator<Item = &'a TensorType>) -> bool {
        self.bindings.iter().all(|b| {
            let at = known.next().filter(|at| at.dtype == ty.dtype && at.layout.rank() == ty.layout.rank());
            let same = |(a, b): (&Expr, &Expr)| a == b;
            at.is_some_and(|at| {
                let here: Vec<Expr> = ty.layout.sizes.iter().map(|e| e.substitute(b)).collect();
                here.iter().zip(&at.layout.sizes).all(same)
            })
        })
    }

    /// The number that has these values at the witnesses.
    pub(crate) fn expression(&self, values: &[Scalar]) -> Option<Expr> {
        if values.iter().all(|v| *v == values[0]) {
            // A constant, or a number that the witnesses could not vary.
            let varies = |(e, v): &(Expr, Vec<i64>)| e.constant().is_none() && Scalar::Int(v[0]) == values[0];
            let open = self.stuck && self.there.iter().any(varies);
            return (!open).then(|| Expr::from(values[0]));
        }
        let ints: Option<Vec<i64>> =
            values.iter().map(|v| if let Scalar::Int(n) = v { Some(*n) } else { None }).collect();
        if let Some(ints) = ints {
            return self.find(|v| v == ints).or_else(|| self.product(&ints)).or_else(|| self.affine(&ints));
        }
        // A mean's divisor, or a constant divided by it.
        let as_it_is = self.find(|v| v.iter().zip(values).all(|(n, x)| *n as f64 == x.as_f64()));
        as_it_is.map(|e| Expr::call(ExprFn::ToFloat, vec![e])).or_else(|| {
            let e = self.find(|v| dividend(v, values).is_some())?;
            let sizes: Option<Vec<i64>> = self.bindings.iter().map(|b| Some(e.eval(b).ok()?.as_i64())).collect();
            let whole = dividend(&sizes?, values)?;
            let whole = if whole == 1.0 { Expr::Int(1) } else { Expr::float(whole) };
            Some(Expr::call(ExprFn::TrueDiv, vec![whole, e]))
        })
    }

    /// The sum of the operands' sizes in a dimension, if it has these values at the witnesses: parts of a `cat`.
    pub(crate) fn assembled(&self, types: &[TensorType], dim: usize, values: &[i64]) -> Option<Expr> {
        let parts = types.iter().map(|t| t.layout.sizes.get(dim));
        let sum = parts.collect::<Option<Vec<_>>>()?.into_iter().fold(Expr::Int(0), |sum, n| sum.plus(n));
        let fits = |(b, v): (&Binding, &i64)| sum.eval(b).is_ok_and(|n| n.as_i64() == *v);
        self.bindings.iter().zip(values).all(fits).then_some(sum)
    }

    /// The product of sizes and a constant that has these values: an operand of several dimensions as a matrix.
    fn product(&self, values: &[i64]) -> Option<Expr> {
        let mut rest = values.to_vec();
        let mut factors: Vec<&Expr> = Vec::new();
        while rest.iter().any(|r| *r != rest[0]) {
            // Values of different witnesses hardly have another common factor than a size.
            let (e, v) = self.there.iter().take(PAIRED).find(|(e, v)| {
                e.constant().is_none()
                    && v.iter().zip(&rest).all(|(v, r)| *v > 0 && r % v == 0)
                    && v.iter().any(|v| *v > 1)
            })?;
            rest.iter_mut().zip(v).for_each(|(r, v)| *r /= v);
            factors.push(e);
        }
        Some(factors.into_iter().fold(Expr::Int(rest[0]), |all, e| all.times(e)))
    }

    /// A size, or half of one, times a constant, plus a constant, that has these values: the shift of `fft_fftshift`, or the number of
    /// relative positions.
    fn affine(&self, values: &[i64]) -> Option<Expr> {
        // Any three values may be on a line.
        if self.bindings.len() <= NEEDED {
            return None;
        }
        for (e, v) in self.there.iter().take(PAIRED).filter(|(e, _)| e.constant().is_none()) {
            let half = |more: i64| {
                let e = e.plus(&Expr::Int(more)).floor_div(&Expr::Int(2));
                (e, v.iter().map(|n| (n + more).div_euclid(2)).collect())
            };
            for (e, v) in [(e.clone(), v.clone()), half(0), half(1)] {
                let Some(other) = v.iter().position(|n| *n != v[0]) else { continue };
                let (rise, run) = (values[other] - values[0], v[other] - v[0]);
                if rise % run != 0 {
                    continue;
                }
                let slope = rise / run;
                let first = values[0] - slope * v[0];
                if values.iter().zip(&v).all(|(x, n)| *x == slope * n + first) {
                    return Some(e.times(&Expr::Int(slope)).plus(&Expr::Int(first)));
                }
            }
        }
        None
    }

    /// The first known expression, combination of two, or neighbour whose values pass.
    fn find(&self, pass: impl Fn(&[i64]) -> bool) -> Option<Expr> {
        if let Some((e, _)) = self.there.iter().find(|(_, v)| pass(v)) {
            return Some(e.clone());
        }
        type Pair = (fn(i64, i64) -> Option<i64>, fn(&Expr, &Expr) -> Expr);
        let pairs: [Pair; 6] = [
            (i64::checked_mul, Expr::times),
            (i64::checked_add, Expr::plus),
            (i64::checked_sub, Expr::minus),
            (|a, b| Some(a.min(b)), |a, b| Expr::call(ExprFn::Min, vec![a.clone(), b.clone()])),
            (|a, b| Some(a.max(b)), |a, b| Expr::call(ExprFn::Max, vec![a.clone(), b.clone()])),
            (|a, b| (b > 0 && a >= 0 && a % b == 0).then(|| a / b), Expr::floor_div),
        ];
        let one = (Expr::Int(1), vec![1; self.bindings.len()]);
        let few: Vec<&(Expr, Vec<i64>)> = self.there.iter().take(PAIRED).chain([&one]).collect();
        for (number, symbol) in pairs {
            for a in &few {
                for b in &few {
                    let made: Option<Vec<i64>> = a.1.iter().zip(&b.1).map(|(x, y)| number(*x, *y)).collect();
                    if made.is_some_and(|v| pass(&v)) {
                        return Some(symbol(&a.0, &b.0));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_ir::DType;

    #[test]
    fn sizes_that_equal_a_learnt_number_vary() {
        let s = |name: &str, unbacked| Expr::Sym(Symbol::new(name, Some(if unbacked { 0 } else { 2 }), Some(64)));
        let (n, u) = (s("s77", false), s("u2", true));
        let equal = Expr::call(ExprFn::Eq, vec![u.clone(), n.clone()]);
        let types = [TensorType::contiguous(DType::F32, &[n.clone(), s("u0", true)])];
        let witnesses = Witnesses::new(&types, std::iter::empty(), &Conditions::new(vec![equal]));
        let values: Vec<Scalar> = witnesses.bindings.iter().map(|b| n.eval(b).unwrap()).collect();
        assert!(values.iter().any(|v| *v != values[0]), "{values:?}");
        assert_eq!(witnesses.expression(&values), Some(n));
        // Where no witness is found with another value, the number may be the symbol or a constant.
        let stuck = Witnesses { bindings: vec![witnesses.bindings[0].clone(); 3], there: witnesses.there, stuck: true };
        assert_eq!(stuck.expression(&[values[0]; 3]), None);
        assert_eq!(stuck.expression(&[Scalar::Int(1000); 3]), Some(Expr::Int(1000)));
    }

    #[test]
    fn remainders_and_quotients_of_two_sizes_differ() {
        let sizes: Vec<Expr> = (0..16).map(|i| Expr::Sym(Symbol::new(format!("s{i}"), Some(1), None))).collect();
        let remainders = (2..=8).map(|k| (ExprFn::Mod, k));
        for (f, k) in remainders.chain((2..=64).map(|k| (ExprFn::FloorDiv, k))) {
            let numbers: Vec<Expr> = sizes.iter().map(|n| Expr::call(f, vec![n.clone(), Expr::Int(k)])).collect();
            let witnesses = Witnesses::new(&[], numbers.iter(), &Conditions::default());
            for e in &numbers {
                let values: Vec<Scalar> = witnesses.bindings.iter().map(|b| e.eval(b).unwrap()).collect();
                assert_eq!(witnesses.expression(&values).as_ref(), Some(e));
            }
        }
    }

    #[test]
    fn numbers_are_said_with_sizes() {
        let (n, m) = (Expr::Sym(Symbol::new("n", Some(2), None)), Expr::Sym(Symbol::new("m", Some(2), None)));
        let types = [TensorType::contiguous(DType::F32, &[n.clone(), m.clone(), Expr::Int(5)])];
        let witnesses = Witnesses::new(&types, std::iter::empty(), &Conditions::default());
        let said = |f: &dyn Fn(i64, i64) -> Scalar| {
            let at = |b: &Binding, e: &Expr| e.eval(b).unwrap().as_i64();
            let values: Vec<Scalar> = witnesses.bindings.iter().map(|b| f(at(b, &n), at(b, &m))).collect();
            witnesses.expression(&values).map(|e| e.to_string())
        };
        let some = |s: &str| Some(s.to_string());
        assert_eq!(said(&|n, m| Scalar::Int(n * m)), some("m*n"));
        assert_eq!(said(&|n, _| Scalar::Int(n - 1)), some("n + -1"));
        assert_eq!(said(&|n, m| Scalar::Int(n.min(m))), some("Min(m, n)"));
        assert_eq!(said(&|n, _| Scalar::Int(n.min(5))), some("Min(5, n)"));
        assert_eq!(said(&|_, m| Scalar::Float(1.0 / m as f64)), some("TrueDiv(1, m)"));
        assert_eq!(said(&|_, m| Scalar::Float(0.1 / m as f64)), some("TrueDiv(0.1, m)"));
        assert_eq!(said(&|n, m| Scalar::Float(0.3 / (n * m) as f64)), some("TrueDiv(0.3, m*n)"));
        assert_eq!(said(&|_, m| Scalar::Float(0.1 * m as f64)), None);
        assert_eq!(said(&|_, _| Scalar::Int(3)), some("3"));
        assert_eq!(said(&|n, m| Scalar::Int(12 * n * m * m)), some("12*m*m*n"));
        assert_eq!(said(&|n, _| Scalar::Int(2 * n - 1)), some("2*n + -1"));
        assert_eq!(said(&|n, _| Scalar::Int(-(n / 2))), some("-1*FloorDiv(n, 2)"));
        assert_eq!(said(&|n, _| Scalar::Int((n + 1) / 2)), some("FloorDiv(n + 1, 2)"));
        assert_eq!(said(&|n, m| Scalar::Int(n * n + m)), None);
        assert_eq!(said(&|n, m| Scalar::Int(n / 3 + m)), None);
    }
}
