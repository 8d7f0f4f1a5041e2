//! Types of results with symbolic sizes.
//!
//! Shape rules work on known sizes. With symbolic ones the rule is asked at several values of the symbols, and a size is
//! the expression over the arguments' sizes and numbers that fits all of them. Where none fits, that is an error. Sizes
//! that a run puts in are checked against the rule again.

use restride_ir::{
    Arg, Args, Binding, Dim, Expr, Layout, Meta, Op, OpError, Scalar, Symbol, TensorType, ValueId, ViewOutcome,
};
use restride_ops::types;
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, OpError>;

/// Values that symbols are given in turn: primes, so that products tell their factors.
const WITNESSES: [[i64; 8]; 3] =
    [[7, 11, 13, 17, 19, 23, 29, 31], [37, 41, 43, 47, 53, 59, 61, 67], [101, 89, 83, 79, 73, 71, 103, 97]];

/// Types of a call's results.
pub(crate) fn result_types(op: Op, args: &[Arg], ty: impl Fn(ValueId) -> TensorType) -> Result<Vec<TensorType>> {
    let typed: Vec<Arg<TensorType, Expr>> = args.iter().map(|a| a.map_values(|v| ty(*v))).collect();
    let known: Option<Vec<Arg<Meta, Scalar>>> =
        typed.iter().map(|a| a.try_map(|t| t.known().ok_or(()), |e| e.constant().ok_or(())).ok()).collect();
    if let Some(known) = known {
        let lift = |m: Meta| TensorType::new(m.dtype, m.layout.map(|d| Expr::Int(*d)));
        return Ok(types(op, &known)?.into_iter().map(lift).collect());
    }
    if let Some(rule) = op.def().view
        && let ViewOutcome::Views(types) = (rule.symbolic)(&Args(&typed))?
    {
        return Ok(types.into_vec());
    }
    symbolic(op, &typed)
}

fn symbolic(op: Op, typed: &[Arg<TensorType, Expr>]) -> Result<Vec<TensorType>> {
    let mut symbols = BTreeSet::new();
    let mut pool: Vec<Expr> = Vec::new();
    for a in typed {
        for t in a.values() {
            for e in t.layout.sizes.iter().chain(&t.layout.strides).chain([&t.layout.offset]) {
                e.symbols(&mut symbols);
            }
            pool.extend(t.layout.sizes.iter().cloned());
        }
        for e in a.scalars() {
            e.symbols(&mut symbols);
            pool.push(e.clone());
        }
    }
    let bindings: Vec<Binding> = WITNESSES.iter().map(|w| bind(&symbols, w)).collect();
    let made = bindings
        .iter()
        .map(|b| types(op, &typed.iter().map(|a| at(a, b)).collect::<Result<Vec<_>>>()?))
        .collect::<Result<Vec<_>>>()?;
    let values =
        |e: &Expr| -> Option<Vec<i64>> { bindings.iter().map(|b| e.eval(b).ok().map(|s| s.as_i64())).collect() };
    let mut candidates: Vec<(Vec<i64>, Expr)> = Vec::new();
    for e in &pool {
        if let Some(v) = values(e)
            && !candidates.iter().any(|c| c.0 == v)
        {
            candidates.push((v, e.clone()));
        }
    }
    let single = candidates.len();
    for i in 0..single.min(16) {
        for j in i..single.min(16) {
            for e in [candidates[i].1.times(&candidates[j].1), candidates[i].1.plus(&candidates[j].1)] {
                if let Some(v) = values(&e)
                    && !candidates.iter().any(|c| c.0 == v)
                {
                    candidates.push((v, e));
                }
            }
        }
    }
    let dim = |all: Vec<i64>| -> Result<Expr> {
        if all.iter().all(|n| *n == all[0]) {
            return Ok(Expr::Int(all[0]));
        }
        let found = candidates.iter().find(|c| c.0 == all).map(|c| c.1.clone());
        found.ok_or_else(|| OpError::unsupported(format!("a size of a result of {op} cannot be said with symbols")))
    };
    let count = made[0].len();
    if made.iter().any(|m| m.len() != count) {
        return Err(OpError::unsupported(format!("the number of results of {op} depends on symbolic sizes")));
    }
    (0..count)
        .map(|k| {
            let each: Vec<&Meta> = made.iter().map(|m| &m[k]).collect();
            if each.iter().any(|m| m.rank() != each[0].rank() || m.dtype != each[0].dtype) {
                return Err(OpError::unsupported(format!("the rank of a result of {op} depends on symbolic sizes")));
            }
            let sizes = (0..each[0].rank())
                .map(|d| dim(each.iter().map(|m| m.layout.sizes[d]).collect()))
                .collect::<Result<Vec<_>>>()?;
            Ok(TensorType::new(each[0].dtype, strides(&sizes, &each[0].layout)))
        })
        .collect()
}

/// Dense strides in the order that they have at known sizes.
fn strides(sizes: &[Expr], known: &Layout) -> Layout<Expr> {
    if known.is_contiguous() {
        return Layout::contiguous(sizes);
    }
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|d| std::cmp::Reverse(known.strides[*d]));
    Layout::permuted(sizes, &order)
}

fn bind(symbols: &BTreeSet<Symbol>, primes: &[i64; 8]) -> Binding {
    let value = |(i, s): (usize, &Symbol)| {
        let wanted = primes[i % 8] + 100 * (i / 8) as i64;
        let v = wanted.clamp(s.min().unwrap_or(i64::MIN), s.max().unwrap_or(i64::MAX));
        (s.clone(), if s.is_float() { Scalar::Float(v as f64) } else { Scalar::Int(v) })
    };
    symbols.iter().enumerate().map(value).collect()
}

fn at(a: &Arg<TensorType, Expr>, b: &Binding) -> Result<Arg<Meta, Scalar>> {
    let number = |e: &Expr| e.eval(b).map_err(OpError::new);
    let size = |e: &Expr| number(e).map(|s| s.as_i64());
    a.try_map(
        |t| {
            let dims = |l: &[Expr]| l.iter().map(size).collect::<Result<Vec<i64>>>();
            let layout = Layout::strided(&dims(&t.layout.sizes)?, &dims(&t.layout.strides)?, size(&t.layout.offset)?);
            Ok(Meta::new(t.dtype, layout))
        },
        number,
    )
}
