//! Conditions on a program's numbers, and witnesses: values of the symbols that satisfy them.
//!
//! Guards, ranges, recorded checks and operators that need equal sizes restrict the symbols. A pass that asks a shape function at a witness needs one that
//! satisfies them: the program would fail before it at any other.

use crate::expr::ExprTable;
use crate::{
    Arg, Args, Binding, CollectTree, Dim, Expr, ExprFn, Graph, Node, Program, Scalar, Symbol, TensorType, ValueId,
    ViewOutcome,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Repairs of one start.
const ROUNDS: usize = 48;

/// Further starts, for wanted values that no repair satisfies or that were given before.
const STARTS: u64 = 48;

/// Values that symbols are given in turn. At the first of them everything must work. No two symbols have the same remainders by a
/// number from 2 to 8 in all rows, so that the parity of one is never taken for another's, nor the same quotients by one up to 64, as
/// convolutions with strides make them of heights and widths.
const VALUES: [[i64; 8]; 6] = [
    [7, 11, 13, 17, 19, 23, 29, 31],
    [37, 42, 43, 46, 53, 60, 61, 68],
    [800, 705, 623, 540, 448, 362, 263, 177],
    [8, 6, 10, 4, 16, 12, 18, 14],
    [1008, 2039, 3049, 4064, 5083, 6107, 7086, 8128],
    // Bounds of slices within small sizes.
    [1, 3, 2, 5, 4, 7, 6, 9],
];

/// The size that a witness gives the symbol of this number where its conditions allow it. No two are equal, and none is small: a
/// dimension of size 1 behind strided convolutions would tell nothing of strides.
pub fn size_apart(symbol: usize) -> i64 {
    [263, 331, 397, 467, 541, 607, 673, 739][symbol % 8] + 97 * (symbol / 8) as i64
}

/// The conditions of a program over its symbols.
#[derive(Debug, Default)]
pub struct Conditions {
    all: Vec<Expr>,
    of: BTreeMap<Symbol, Vec<usize>>,
    /// Witnesses of symbols that were asked for.
    made: Mutex<BTreeMap<BTreeSet<Symbol>, Arc<[Binding]>>>,
}

impl Conditions {
    /// No conditions.
    pub const fn none() -> Conditions {
        Conditions { all: Vec::new(), of: BTreeMap::new(), made: Mutex::new(BTreeMap::new()) }
    }

    /// Guards, ranges, recorded checks, and what calls require of the sizes of their operands.
    pub fn of(program: &Program) -> Conditions {
        if program.symbols.is_empty() {
            return Conditions::none();
        }
        let mut all: Vec<Expr> = program.guards.iter().map(|g| g.condition.clone()).collect();
        for (e, min, max) in &program.ranges {
            all.extend(within(e, *min, *max));
        }
        for (_, graph) in program.graphs.iter() {
            for (_, node) in graph.ordered() {
                if let Some(asserts) = node.op.def().asserts {
                    all.extend(asserts(&node.args));
                }
                if let Some(requires) = node.op.def().requires {
                    let ty = |v: &ValueId| graph.values[*v].ty.tensor().cloned().ok_or(());
                    let typed: Result<Vec<_>, ()> =
                        node.args.iter().map(|a| a.try_map(ty, |s| Ok(s.clone()))).collect();
                    all.extend(typed.map_or_else(|()| Vec::new(), |args| requires(&Args(&args))));
                }
                all.extend(learnt_sizes(graph, node));
            }
        }
        Conditions::new(all)
    }

    /// These conditions, without those that have no symbol.
    pub fn new(mut all: Vec<Expr>) -> Conditions {
        let mut seen = BTreeSet::new();
        all.retain(|e| e.constant().is_none() && seen.insert(e.clone()));
        let mut of: BTreeMap<Symbol, Vec<usize>> = BTreeMap::new();
        for (i, e) in all.iter().enumerate() {
            symbols_of(e).into_iter().for_each(|s| of.entry(s).or_default().push(i));
        }
        Conditions { all, of, made: Mutex::default() }
    }

    /// Witnesses that tell these symbols apart: several values of each, and the least.
    pub fn witnesses(&self, symbols: &BTreeSet<Symbol>) -> Arc<[Binding]> {
        let made = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made().get(symbols) {
            return known.clone();
        }
        // Further symbols are even in some rows where those eight before them are odd.
        let value = |row: usize, i: usize| VALUES[row][i % 8] + ((96 + row) * (i / 8)) as i64;
        let rows = (0..VALUES.len()).map(|row| bind(symbols, |i| value(row, i)));
        let least = bind(symbols, |_| i64::MIN);
        let mut all: Vec<Binding> = Vec::new();
        for wanted in rows.chain([least]) {
            all.push(self.witness(wanted, &all));
        }
        let all: Arc<[Binding]> = all.into();
        if !self.all.is_empty() {
            made().insert(symbols.clone(), all.clone());
        }
        all
    }

    /// A witness near `wanted` and not in `seen`; `wanted` itself if none is found. It binds the symbols of `wanted`.
    pub fn witness(&self, wanted: Binding, seen: &[Binding]) -> Binding {
        let mut whole: Binding = wanted.iter().map(|(s, v)| (s.clone(), clamp(s, *v))).collect_map();
        // Conditions reach other symbols, which must satisfy theirs.
        let mut open: Vec<Symbol> = whole.keys().cloned().collect();
        let mut mine: BTreeSet<usize> = BTreeSet::new();
        while let Some(s) = open.pop() {
            for &i in self.of.get(&s).map_or(&[][..], |v| v) {
                if !mine.insert(i) {
                    continue;
                }
                for other in symbols_of(&self.all[i]) {
                    if !whole.contains_key(&other) {
                        whole.insert(other.clone(), clamp(&other, Scalar::Int(5 + 6 * whole.len() as i64)));
                        open.push(other);
                    }
                }
            }
        }
        if mine.is_empty() {
            return whole;
        }
        let own = |b: Binding| -> Binding { b.into_iter().filter(|(s, _)| wanted.contains_key(s)).collect_map() };
        if seen.is_empty() && mine.iter().all(|i| self.holds(*i, &whole)) {
            return own(whole);
        }
        let table = ExprTable::new(mine.iter().map(|i| &self.all[*i]));
        let mut passed = None;
        for start in 0..=STARTS {
            let from = if start == 0 { whole.clone() } else { drawn(&whole, start) };
            let Some(found) = self.mended(from, &mine, &table, &wanted) else { continue };
            let found = own(found);
            if !seen.contains(&found) {
                return found;
            }
            passed.get_or_insert(found);
        }
        passed.unwrap_or_else(|| own(whole))
    }

    fn holds(&self, i: usize, b: &Binding) -> bool {
        self.all[i].eval(b).is_ok_and(Scalar::as_bool)
    }

    /// Whether a condition over this symbol alone gives its value.
    pub fn pins(&self, s: &Symbol) -> bool {
        let alone = |i: &usize| {
            matches!(&self.all[*i], Expr::Call(c) if c.0 == ExprFn::Eq) && symbols_of(&self.all[*i]).len() == 1
        };
        self.of.get(s).is_some_and(|own| own.iter().any(alone))
    }

    /// Changes one or two symbols of a failing condition at a time, if that leaves fewer failures; other symbols than those of
    /// `wanted` first, so that equal numbers follow the wanted one.
    fn mended(&self, mut b: Binding, mine: &BTreeSet<usize>, table: &ExprTable, wanted: &Binding) -> Option<Binding> {
        let mut values = table.values(&b);
        for _ in 0..ROUNDS {
            let Some(&failing) = mine.iter().find(|i| !self.holds(**i, &b)) else { return Some(b) };
            let symbols: Vec<Symbol> =
                symbols_of(&self.all[failing]).into_iter().filter(|s| !s.is_float()).take(4).collect();
            // Additional failures of a change, whether a wanted value goes, its distance, and the change; the least wins.
            let mut changes: Vec<(i64, bool, i64, Vec<(Symbol, i64)>)> = Vec::new();
            for s in &symbols {
                let goes = wanted.contains_key(s);
                let old = b.get(s).map_or(0, |v| v.as_i64());
                let candidates = self.candidates(failing, s, &b);
                let mut trials = Trials::new(table, &[s], &b, &mut values);
                for value in candidates {
                    let far = i64::try_from(value.abs_diff(old)).unwrap_or(i64::MAX);
                    let change = vec![(s.clone(), value)];
                    changes.push((trials.additional_failures(&change), goes, far, change));
                }
            }
            if let (false, [first, second, ..]) = (changes.iter().any(|c| c.0 < 0), &symbols[..]) {
                let mut trials = Trials::new(table, &[first, second], &b, &mut values);
                for (x, y) in (0..144).map(|k| (k / 12, k % 12)) {
                    let least = |s: &Symbol| s.min().unwrap_or(1);
                    let (x, y) = (least(first).saturating_add(x), least(second).saturating_add(y));
                    if out_of(first, x) || out_of(second, y) {
                        continue;
                    }
                    // The largest of the small values are the least likely to coincide.
                    let far = x.saturating_add(y).saturating_neg();
                    let change = vec![(first.clone(), x), (second.clone(), y)];
                    changes.push((trials.additional_failures(&change), true, far, change));
                }
            }
            let best = changes.into_iter().filter(|c| c.0 < 0).min_by_key(|c| (c.0, c.1, c.2));
            let (.., change) = best?;
            let changed: Vec<&Symbol> = change.iter().map(|c| &c.0).collect();
            let parts = table.dependents(&changed);
            b.extend(change.into_iter().map(|(s, v)| (s, Scalar::Int(v))));
            table.refresh(&parts, &b, &mut values);
        }
        None
    }

    /// Values of a symbol that may make a failing condition true.
    fn candidates(&self, failing: usize, s: &Symbol, b: &Binding) -> Vec<i64> {
        let now = b.get(s).map_or(0, |v| v.as_i64());
        let mut out: Vec<i64> = Vec::new();
        let mut constants = BTreeSet::new();
        constants_of(&self.all[failing], &mut constants);
        for &c in &constants {
            out.extend([c - 1, c, c + 1]);
            if c > 1 {
                let whole = now.div_euclid(c) * c;
                out.extend([whole, whole + c, c, 2 * c]);
            }
        }
        out.extend(b.values().map(|v| v.as_i64()));
        let least = s.min().unwrap_or(0);
        out.extend((0..10).map(|k| least.saturating_add(k)));
        out.extend(s.max());
        roots(&self.all[failing], s, b, &mut out);
        out.retain(|v| !out_of(s, *v) && *v != now);
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// A value for each symbol in its range. Of ranges that are too small for the wanted ones, values are drawn.
fn bind(symbols: &BTreeSet<Symbol>, wanted: impl Fn(usize) -> i64) -> Binding {
    let value = |(i, s): (usize, &Symbol)| {
        let (min, max) = (s.min().unwrap_or(2), s.max().unwrap_or(i64::MAX));
        let wanted = wanted(i);
        let v = if wanted > max && max > min {
            min + ((wanted as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as i64 % (max - min + 1)
        } else {
            wanted.clamp(min, max)
        };
        (s.clone(), if s.is_float() { Scalar::Float(v as f64) } else { Scalar::Int(v) })
    };
    symbols.iter().enumerate().map(value).collect_map()
}

/// Values of a few symbols that are tried in turn.
struct Trials<'a> {
    table: &'a ExprTable,
    /// What depends on the symbols.
    parts: Vec<u32>,
    binding: &'a Binding,
    values: &'a mut [Option<Scalar>],
    failures: usize,
}

impl<'a> Trials<'a> {
    fn new(
        table: &'a ExprTable,
        symbols: &[&Symbol],
        binding: &'a Binding,
        values: &'a mut [Option<Scalar>],
    ) -> Trials<'a> {
        let parts = table.dependents(symbols);
        let failures = table.failures(&parts, values);
        Trials { table, parts, binding, values, failures }
    }

    /// How many more conditions fail with these values, or fewer.
    fn additional_failures(&mut self, change: &[(Symbol, i64)]) -> i64 {
        let mut trial = self.binding.clone();
        trial.extend(change.iter().map(|(s, v)| (s.clone(), Scalar::Int(*v))));
        self.table.refresh(&self.parts, &trial, self.values);
        self.table.failures(&self.parts, self.values) as i64 - self.failures as i64
    }
}

impl Drop for Trials<'_> {
    fn drop(&mut self) {
        self.table.refresh(&self.parts, self.binding, self.values);
    }
}

/// Sizes of a view for which the file has symbols: a slice between numbers that a run learns.
fn learnt_sizes(graph: &Graph, node: &Node) -> Vec<Expr> {
    let learnt = |e: &Expr| matches!(e, Expr::Sym(s) if s.is_unbacked());
    let Some(rule) = node.op.def().view else { return Vec::new() };
    let declared: Vec<&TensorType> = node.results.iter().filter_map(|r| graph.values[*r].ty.tensor()).collect();
    if !declared.iter().any(|t| t.layout.sizes.iter().any(learnt)) {
        return Vec::new();
    }
    let typed = |v: &ValueId| graph.values[*v].ty.tensor().cloned().ok_or(());
    let args: Result<Vec<Arg<TensorType, Expr>>, ()> =
        node.args.iter().map(|a| a.try_map(typed, |e| Ok(e.clone()))).collect();
    let Ok(Ok(ViewOutcome::Views(views))) = args.map(|args| (rule.symbolic)(&Args(&args))) else { return Vec::new() };
    let pairs = declared.iter().zip(&views).flat_map(|(d, v)| d.layout.sizes.iter().zip(&v.layout.sizes));
    let open = pairs.filter(|(d, v)| learnt(d) && d != v);
    open.map(|(d, v)| Expr::call(ExprFn::Eq, vec![d.clone(), v.clone()])).collect()
}

/// `min <= e <= max`.
pub fn within(e: &Expr, min: Option<i64>, max: Option<i64>) -> Vec<Expr> {
    let one = |f, bound: Option<i64>| bound.map(|n| Expr::call(f, vec![e.clone(), Expr::Int(n)]));
    one(ExprFn::Ge, min).into_iter().chain(one(ExprFn::Le, max)).collect()
}

/// The integer where both sides of a comparison are equal, if they are linear in the symbol, and its neighbours.
fn roots(e: &Expr, s: &Symbol, b: &Binding, out: &mut Vec<i64>) {
    let Expr::Call(c) = e else { return };
    match (c.0, c.1.as_slice()) {
        (ExprFn::Eq | ExprFn::Ne | ExprFn::Lt | ExprFn::Le | ExprFn::Gt | ExprFn::Ge, [x, y]) => {
            let difference = x.minus(y);
            let at = |n: i64| {
                let mut trial = b.clone();
                trial.insert(s.clone(), Scalar::Int(n));
                difference.eval(&trial).ok().map(Scalar::as_i64)
            };
            let now = b.get(s).map_or(0, |v| v.as_i64());
            let (Some(f0), Some(f1)) = (at(now), at(now.saturating_add(1))) else { return };
            if let Some(slope) = f1.checked_sub(f0).filter(|d| *d != 0) {
                let root = now.saturating_sub(f0.div_euclid(slope));
                out.extend([root.saturating_sub(1), root, root.saturating_add(1)]);
            }
        }
        (ExprFn::And | ExprFn::Or | ExprFn::Not, args) => args.iter().for_each(|a| roots(a, s, b, out)),
        _ => {}
    }
}

fn constants_of(e: &Expr, out: &mut BTreeSet<i64>) {
    match e {
        Expr::Int(n) if n.abs() < 1 << 32 => drop(out.insert(*n)),
        Expr::Call(c) => c.1.iter().for_each(|a| constants_of(a, out)),
        _ => {}
    }
}

fn symbols_of(e: &Expr) -> BTreeSet<Symbol> {
    let mut out = BTreeSet::new();
    e.symbols(&mut out);
    out
}

fn out_of(s: &Symbol, v: i64) -> bool {
    s.min().is_some_and(|m| v < m) || s.max().is_some_and(|m| v > m)
}

fn clamp(s: &Symbol, v: Scalar) -> Scalar {
    if s.is_float() {
        return Scalar::Float(v.as_f64());
    }
    let v = v.as_i64().max(s.min().unwrap_or(i64::MIN));
    Scalar::Int(v.min(s.max().unwrap_or(i64::MAX)))
}

/// Other starts: smaller and larger ones in turn, deterministic.
fn drawn(like: &Binding, start: u64) -> Binding {
    let span = 2i64 << (start % 6);
    let one = |(k, s): (usize, &Symbol)| {
        let mut z = (start << 32 | k as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let least = s.min().unwrap_or(2).max(1);
        (s.clone(), clamp(s, Scalar::Int(least.saturating_add((z >> 33) as i64 % span))))
    };
    like.keys().enumerate().map(one).collect_map()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sym(name: &str, min: i64) -> (Symbol, Expr) {
        let s = Symbol::new(name, Some(min), None);
        (s.clone(), Expr::Sym(s))
    }

    fn call(f: ExprFn, a: &Expr, b: i64) -> Expr {
        Expr::call(f, vec![a.clone(), Expr::Int(b)])
    }

    fn found(conditions: Vec<Expr>, wanted: &[(&Symbol, i64)]) -> Vec<i64> {
        let all = Conditions::new(conditions.clone());
        let b = all.witness(wanted.iter().map(|(s, v)| ((*s).clone(), Scalar::Int(*v))).collect(), &[]);
        for c in &conditions {
            assert_eq!(c.eval(&b), Ok(Scalar::Bool(true)), "{c} at {b:?}");
        }
        wanted.iter().map(|(s, _)| b[*s].as_i64()).collect()
    }

    #[test]
    fn a_witness_passes_every_condition() {
        let ((a, u0), (b, u1), (c, u2)) = (sym("u0", 1), sym("u1", 1), sym("u2", 0));
        assert_eq!(found(vec![call(ExprFn::Le, &u0.times(&u1), 400)], &[(&a, 7), (&b, 11)]), [7, 11]);
        found(vec![call(ExprFn::Le, &u0.times(&u1), 16)], &[(&a, 7), (&b, 11)]);
        found(vec![call(ExprFn::Eq, &u0.times(&u1), 35)], &[(&a, 70), (&b, 110)]);
        found(vec![Expr::call(ExprFn::Eq, vec![u0.clone(), u1.clone()])], &[(&a, 7), (&b, 11)]);
        let rest = call(ExprFn::Mod, &u0, 8);
        found(vec![call(ExprFn::Eq, &rest, 0), call(ExprFn::Ge, &u0, 100)], &[(&a, 7)]);
        let sum = u0.plus(&u1).plus(&u2);
        found(vec![call(ExprFn::Eq, &sum, 64), call(ExprFn::Ne, &u2, 0)], &[(&a, 7), (&b, 11), (&c, 13)]);
        found(vec![call(ExprFn::Eq, &u0, 3)], &[(&a, 7), (&b, 11)]);
        let either = Expr::call(ExprFn::Or, vec![call(ExprFn::Eq, &u0, 1), call(ExprFn::Gt, &u0, 50)]);
        found(vec![either], &[(&a, 7)]);
    }

    #[test]
    fn other_witnesses_are_others() {
        let ((a, u0), (b, u1)) = (sym("u0", 1), sym("u1", 1));
        let all = Conditions::new(vec![call(ExprFn::Le, &u0.times(&u1), 16)]);
        let mut seen: Vec<Binding> = Vec::new();
        for k in 0..5 {
            let wanted = [(a.clone(), Scalar::Int(7 + 30 * k)), (b.clone(), Scalar::Int(11 + 30 * k))].into();
            let one = all.witness(wanted, &seen);
            assert!(one[&a].as_i64() * one[&b].as_i64() <= 16 && !seen.contains(&one), "{seen:?}, then {one:?}");
            seen.push(one);
        }
    }

    #[test]
    fn witnesses_are_found_once() {
        let (a, u0) = sym("u0", 1);
        let all = Conditions::new(vec![call(ExprFn::Le, &u0, 500)]);
        let symbols = [a.clone()].into();
        let one = all.witnesses(&symbols);
        assert!(one.iter().all(|b| (1..=500).contains(&b[&a].as_i64())) && one.len() > 3);
        assert!(Arc::ptr_eq(&one, &all.witnesses(&symbols)));
    }

    #[test]
    fn what_nothing_satisfies_is_as_wanted() {
        let (a, u0) = sym("u0", 1);
        let all = Conditions::new(vec![call(ExprFn::Le, &u0, 0)]);
        let wanted: Binding = [(a, Scalar::Int(7))].into();
        assert_eq!(all.witness(wanted.clone(), &[]), wanted);
    }
}
