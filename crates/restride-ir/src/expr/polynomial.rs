//! Normal form of sums and products: polynomials over atoms, which are all other expressions.

use super::{Expr, ExprFn};
use restride_tensor::Dim;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Monomials with their coefficients: a product of atoms (sorted, repeats for powers) to an integer.
pub(super) type Poly = BTreeMap<Vec<Expr>, i64>;

impl Expr {
    pub(super) fn poly(&self) -> Poly {
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

impl Expr {
    /// The constant term of an integer expression, and the greatest common divisor of its other coefficients (0 if it has none): its
    /// value is the constant plus a multiple of the divisor, whatever its symbols are.
    pub fn residue(&self) -> (i64, i64) {
        let poly = self.poly();
        let others = poly.iter().filter(|(atoms, _)| !atoms.is_empty());
        let divisor = others.fold(0, |divisor, (_, factor)| gcd(divisor, factor.saturating_abs()));
        (poly.get(&Vec::new()).copied().unwrap_or(0), divisor)
    }
}

/// The greatest common divisor of two numbers that are not negative.
pub fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Largest number of terms that products of sums are expanded to.
pub(super) const MONOMIALS: usize = 4096;

/// A product that stays unexpanded: its factors are atoms.
pub(super) fn opaque_product(mut factors: Vec<Expr>) -> Expr {
    factors.sort();
    Expr::Call(Arc::new((ExprFn::Mul, factors)))
}

pub(super) fn add_into(sum: &mut Poly, p: &Poly, factor: i64) {
    for (m, c) in p {
        let entry = sum.entry(m.clone()).or_insert(0);
        *entry = entry.wrapping_add(c.wrapping_mul(factor));
        if *entry == 0 {
            sum.remove(m);
        }
    }
}

pub(super) fn multiply(a: &Poly, b: &Poly) -> Poly {
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

pub(super) fn from_poly(p: Poly) -> Expr {
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

/// Divides by a known number, or by a product that every monomial has; else it stays a call.
pub(super) fn floor_div(a: &Expr, b: &Expr) -> Expr {
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
    // A remainder that is provably between 0 and the divisor is dropped.
    let left = from_poly(rest);
    if left.bounds().0 >= Some(0) && left.less(b) == Some(true) {
        return from_poly(whole);
    }
    // One between minus the divisor and -1 takes one more: `(3*s - 1) // s` is 2.
    if left.bounds().1.is_some_and(|most| most < 0) && left.plus(b).bounds().0 >= Some(0) {
        return from_poly(whole).minus(&Expr::Int(1));
    }
    let inner = Expr::Call(Arc::new((ExprFn::FloorDiv, vec![left, b.clone()])));
    if whole.is_empty() { opaque() } else { Expr::call(ExprFn::Add, vec![from_poly(whole), inner]) }
}

/// Division steps before the rest counts as the remainder.
const DIVISIONS: usize = 64;

/// Division of polynomials by their leading terms, highest degree first: `(q, r)` with `a = q * b + r`.
pub(super) fn divide(a: &Expr, b: &Expr) -> (Expr, Expr) {
    let leading = |p: &Poly| p.iter().max_by_key(|(m, _)| (m.len(), *m)).map(|(m, c)| (m.clone(), *c));
    let (mut rest, by) = (a.poly(), b.poly());
    let (mut quotient, mut remainder) = (Poly::new(), Poly::new());
    let Some((atoms, factor)) = leading(&by) else { return (Expr::Int(0), a.clone()) };
    for _ in 0..DIVISIONS {
        let Some((m, c)) = leading(&rest) else { break };
        match remove_atoms(&m, &atoms) {
            Some(left) if c.div_euclid(factor) != 0 => {
                let term: Poly = [(left, c.div_euclid(factor))].into();
                add_into(&mut rest, &multiply(&term, &by), -1);
                add_into(&mut quotient, &term, 1);
                // The undivided part of the leading term is not divided again.
                if let Some(over) = rest.remove(&m) {
                    add_into(&mut remainder, &[(m, over)].into(), 1);
                }
            }
            _ => {
                rest.remove(&m);
                add_into(&mut remainder, &[(m, c)].into(), 1);
            }
        }
    }
    add_into(&mut remainder, &rest, 1);
    (from_poly(quotient), from_poly(remainder))
}

fn remove_atoms(from: &[Expr], atoms: &[Expr]) -> Option<Vec<Expr>> {
    let mut left = from.to_vec();
    for a in atoms {
        let i = left.iter().position(|x| x == a)?;
        left.remove(i);
    }
    Some(left)
}

pub(super) fn min_max(f: ExprFn, args: Vec<Expr>) -> Expr {
    let mut flat: Vec<Expr> = Vec::new();
    for a in args {
        match &a {
            Expr::Call(c) if c.0 == f => flat.extend(c.1.iter().cloned()),
            _ => flat.push(a),
        }
    }
    // Drops an argument that another one provably dominates.
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
