//! Lower and upper bounds of expressions, from the ranges of symbols.

use super::polynomial::from_poly;
use super::{Expr, ExprFn};
use restride_tensor::Dim;

/// Quotients that are taken out of a sum to find its sign.
const QUOTIENTS: usize = 4;

impl Expr {
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

    /// Whether it is above zero for all values of the symbols (`Some(true)`), or for none (`Some(false)`), as far as bounds prove it.
    /// A maximum is no less than each of its arguments, a minimum no more: contiguous strides have `Max(1, u0)` where sizes have `u0`.
    /// And `n // 2` is at most half of `n`, and less than that by no more than a half.
    pub(super) fn above_zero(&self) -> Option<bool> {
        let found = |lo: Option<i64>, hi: Option<i64>, scale: i64| match (lo, hi) {
            (Some(lo), _) if lo > 0 => Some(true),
            // The sum of integers is no more than `hi / scale`.
            (_, Some(hi)) if hi < scale => Some(false),
            _ => None,
        };
        let bounded = |e: &Expr, scale: i64| {
            let (lo, hi) = e.bounds();
            found(lo, hi, scale).or_else(|| {
                let tries = [(0, true), (1, true), (0, false), (1, false)].into_iter();
                tries
                    .filter_map(|(which, below)| Some((below, e.with_argument(which, below)?.bounds())))
                    .find_map(|(below, (lo, hi))| if below { found(lo, None, scale) } else { found(None, hi, scale) })
            })
        };
        bounded(self, 1).or_else(|| {
            if !self.has_quotient() {
                return None;
            }
            [true, false].into_iter().find_map(|below| {
                let (mut e, mut scale) = (self.clone(), 1i64);
                for _ in 0..QUOTIENTS {
                    let by;
                    (e, by) = e.without_quotient(below)?;
                    scale = scale.checked_mul(by)?;
                    if let Some(above) = bounded(&e, scale).filter(|above| *above == below) {
                        return Some(above);
                    }
                }
                None
            })
        })
    }

    /// Whether a term has a quotient as a factor.
    fn has_quotient(&self) -> bool {
        match self {
            Expr::Call(c) if matches!(c.0, ExprFn::Add | ExprFn::Mul) => c.1.iter().any(Expr::has_quotient),
            Expr::Call(c) => c.0 == ExprFn::FloorDiv,
            _ => false,
        }
    }

    /// This, times a number, without one of its quotients by that number: no larger (`below`), or no smaller. `None` without a
    /// quotient in a term of known sign.
    fn without_quotient(&self, below: bool) -> Option<(Expr, i64)> {
        let mut sum = self.poly();
        let quotient = |atoms: &Vec<Expr>| {
            let by = |e: &Expr| match e {
                Expr::Call(c) if c.0 == ExprFn::FloorDiv => match c.1[1] {
                    Expr::Int(d) if d > 1 => Some((c.1[0].clone(), d)),
                    _ => None,
                },
                _ => None,
            };
            let (at, (over, d)) = atoms.iter().enumerate().find_map(|(at, e)| Some((at, by(e)?)))?;
            let times = product(atoms[..at].iter().chain(&atoms[at + 1..]));
            (times.bounds().0 >= Some(0)).then(|| (atoms.clone(), over, d, times))
        };
        let (atoms, over, d, times) = sum.keys().find_map(quotient)?;
        let factor = sum.remove(&atoms)?;
        // From `over - (d - 1)` to `over`.
        let end = if (factor > 0) == below { over.plus(&Expr::Int(1 - d)) } else { over };
        let rest = from_poly(sum).times(&Expr::Int(d));
        Some((rest.plus(&times.times(&Expr::Int(factor)).times(&end)), d))
    }

    /// With one of the arguments in place of each maximum and minimum that is a factor of a term, where that makes the sum no larger
    /// (`below`), or no smaller. `None` without such a factor.
    fn with_argument(&self, which: usize, below: bool) -> Option<Expr> {
        let list = |e: &Expr, of: ExprFn| match e {
            Expr::Call(c) if c.0 == of => c.1.clone(),
            e => vec![e.clone()],
        };
        let mut changed = false;
        let mut sum = Expr::Int(0);
        for term in list(self, ExprFn::Add) {
            let mut factors = list(&term, ExprFn::Mul);
            let extreme = |f: &Expr| matches!(f, Expr::Call(c) if matches!(c.0, ExprFn::Max | ExprFn::Min));
            if let Some(at) = factors.iter().position(extreme)
                && let Expr::Call(c) = factors[at].clone()
                && let Some(argument) = c.1.get(which)
            {
                factors.remove(at);
                let (lo, hi) = product(&factors).bounds();
                // An argument is no more than a maximum: in terms that grow with it, the sum is no larger.
                let grows = (c.0 == ExprFn::Max) == below;
                let fits = if grows { lo >= Some(0) } else { hi.is_some_and(|h| h <= 0) };
                factors.insert(at, if fits { argument.clone() } else { Expr::Call(c) });
                changed |= fits;
            }
            sum = sum.plus(&product(&factors));
        }
        changed.then_some(sum)
    }
}

fn product<'a>(factors: impl IntoIterator<Item = &'a Expr>) -> Expr {
    factors.into_iter().fold(Expr::Int(1), |all, f| all.times(f))
}

fn add_opt(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a?.checked_add(b?)
}

fn mul_bounds(a: (Option<i64>, Option<i64>), b: (Option<i64>, Option<i64>)) -> (Option<i64>, Option<i64>) {
    // Enough for sizes and strides: one is a known number, or each is of one sign.
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
        ((_, Some(ha)), (Some(lb), _)) if ha <= 0 && lb >= 0 => scale(-1, mul_bounds(scale(-1, a), b)),
        ((Some(la), _), (_, Some(hb))) if la >= 0 && hb <= 0 => mul_bounds(b, a),
        _ => (None, None),
    }
}
