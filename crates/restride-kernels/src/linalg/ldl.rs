//! `L D Lᵀ` of symmetric and `L D Lᴴ` of Hermitian matrices, with pivots of one and two rows (Bunch and Kaufman's), as LAPACK's
//! `sytf2` and `hetf2` make and keep it: of the lower triangle.

use super::{Field, Matrix};
use crate::support::scratch::Temp;

/// Factors in one matrix: D in blocks of one or two rows on the diagonal, L below.
#[derive(Debug)]
pub struct Ldl<T: Field> {
    /// With which row each was exchanged, from 1; of blocks of two rows both are negative.
    pub pivots: Temp<i64>,
    /// The lower triangle; elements above it are unchanged.
    pub ld: Matrix<T>,
    /// The first block that is zero, from 1; 0 if none is.
    pub info: i64,
}

/// The conjugate where the matrix is Hermitian.
fn mirror<T: Field>(x: T, hermitian: bool) -> T {
    if hermitian { x.conj() } else { x }
}

/// Factors of a matrix; reads its lower triangle.
pub fn ldl<T: Field>(mut a: Matrix<T>, hermitian: bool) -> Ldl<T> {
    let n = a.rows;
    let (mut pivots, mut info) = (Temp::filled(n, 0i64), 0);
    let alpha = (1.0 + 17f64.sqrt()) / 8.0;
    let diagonal = |a: &Matrix<T>, k: usize| if hermitian { a[(k, k)].re().abs() } else { a[(k, k)].size() };
    let mut k = 0;
    while k < n {
        let own = diagonal(&a, k);
        let below = (k + 1..n).fold(None, |best: Option<usize>, r| match best {
            Some(b) if a[(r, k)].size() <= a[(b, k)].size() => best,
            _ => Some(r),
        });
        let most = below.map_or(0.0, |r| a[(r, k)].size());
        let (mut with, mut two) = (k, false);
        if own.max(most) == 0.0 || own.is_nan() {
            info = if info == 0 { k as i64 + 1 } else { info };
            if hermitian {
                a[(k, k)] = T::real(a[(k, k)].re());
            }
            pivots[k] = k as i64 + 1;
            k += 1;
            continue;
        }
        if let (Some(r), true) = (below, own < alpha * most) {
            // The largest of row r beside its diagonal.
            let left = (k..r).map(|c| a[(r, c)].size()).fold(0.0, f64::max);
            let under = (r + 1..n).map(|i| a[(i, r)].size()).fold(0.0, f64::max);
            let row = left.max(under);
            if own >= alpha * most * (most / row) {
                with = k;
            } else if diagonal(&a, r) >= alpha * row {
                with = r;
            } else {
                (with, two) = (r, true);
            }
        }
        let at = if two { k + 1 } else { k };
        exchange(&mut a, at, with, k, two, hermitian);
        if two {
            eliminate_two(&mut a, k, hermitian);
            pivots[k] = -(with as i64 + 1);
            pivots[k + 1] = pivots[k];
            k += 2;
        } else {
            eliminate(&mut a, k, hermitian);
            pivots[k] = with as i64 + 1;
            k += 1;
        }
    }
    Ldl { pivots, ld: a, info }
}

/// Exchanges rows and columns `at` and `with` of the remaining matrix from column `k` on.
fn exchange<T: Field>(a: &mut Matrix<T>, at: usize, with: usize, k: usize, two: bool, hermitian: bool) {
    let n = a.rows;
    if hermitian {
        a[(k, k)] = T::real(a[(k, k)].re());
        if two {
            a[(k + 1, k + 1)] = T::real(a[(k + 1, k + 1)].re());
        }
    }
    if at == with {
        return;
    }
    for i in with + 1..n {
        let x = a[(i, at)];
        a[(i, at)] = a[(i, with)];
        a[(i, with)] = x;
    }
    for j in at + 1..with {
        let x = a[(j, at)];
        a[(j, at)] = mirror(a[(with, j)], hermitian);
        a[(with, j)] = mirror(x, hermitian);
    }
    a[(with, at)] = mirror(a[(with, at)], hermitian);
    let x = a[(at, at)];
    a[(at, at)] = if hermitian { T::real(a[(with, with)].re()) } else { a[(with, with)] };
    a[(with, with)] = if hermitian { T::real(x.re()) } else { x };
    if two {
        let x = a[(at, k)];
        a[(at, k)] = a[(with, k)];
        a[(with, k)] = x;
    }
}

/// Subtracts the part of a one-row pivot from the remaining matrix.
fn eliminate<T: Field>(a: &mut Matrix<T>, k: usize, hermitian: bool) {
    let n = a.rows;
    let inverse = T::ONE / a[(k, k)];
    for j in k + 1..n {
        let f = inverse * mirror(a[(j, k)], hermitian);
        for i in j..n {
            let x = a[(i, k)];
            a[(i, j)] -= x * f;
        }
        if hermitian {
            a[(j, j)] = T::real(a[(j, j)].re());
        }
    }
    (k + 1..n).for_each(|i| a[(i, k)] *= inverse);
}

/// The same of two rows.
fn eliminate_two<T: Field>(a: &mut Matrix<T>, k: usize, hermitian: bool) {
    let n = a.rows;
    let (d, e, f) = (a[(k, k)], a[(k + 1, k)], a[(k + 1, k + 1)]);
    let det = d * f - e * mirror(e, hermitian);
    for j in k + 2..n {
        let (x, y) = (a[(j, k)], a[(j, k + 1)]);
        // The row of L: that of the matrix times the inverse of the block [d, mirror(e); e, f].
        let w = ((x * f - y * e) / det, (y * d - x * mirror(e, hermitian)) / det);
        for i in j..n {
            let (p, q) = (a[(i, k)], a[(i, k + 1)]);
            a[(i, j)] -= p * mirror(w.0, hermitian) + q * mirror(w.1, hermitian);
        }
        (a[(j, k)], a[(j, k + 1)]) = w;
        if hermitian {
            a[(j, j)] = T::real(a[(j, j)].re());
        }
    }
}

/// Solves `A X = B` in place of B, with the factors of A.
pub fn ldl_solve<T: Field>(ld: &Matrix<T>, pivots: &[i64], b: &mut Matrix<T>, hermitian: bool) {
    let n = ld.rows;
    let row = |p: i64| (p.unsigned_abs() as usize).clamp(1, n.max(1)) - 1;
    let subtract = |b: &mut Matrix<T>, to: usize, from: usize, f: T| {
        for c in 0..b.cols {
            let x = b[(from, c)];
            b[(to, c)] -= f * x;
        }
    };
    let mut k = 0;
    while k < n {
        if pivots[k] > 0 || k + 1 == n {
            b.swap_rows(k, row(pivots[k]));
            (k + 1..n).for_each(|i| subtract(b, i, k, ld[(i, k)]));
            (0..b.cols).for_each(|c| b[(k, c)] = b[(k, c)] / ld[(k, k)]);
            k += 1;
            continue;
        }
        b.swap_rows(k + 1, row(pivots[k]));
        for i in k + 2..n {
            subtract(b, i, k, ld[(i, k)]);
            subtract(b, i, k + 1, ld[(i, k + 1)]);
        }
        let (d, e, f) = (ld[(k, k)], ld[(k + 1, k)], ld[(k + 1, k + 1)]);
        let above = mirror(e, hermitian);
        let det = d * f - e * above;
        for c in 0..b.cols {
            let (x, y) = (b[(k, c)], b[(k + 1, c)]);
            (b[(k, c)], b[(k + 1, c)]) = ((f * x - above * y) / det, (d * y - e * x) / det);
        }
        k += 2;
    }
    while k > 0 {
        k -= 1;
        let two = pivots[k] < 0 && k > 0;
        let first = if two { k - 1 } else { k };
        for at in first..=k {
            (k + 1..n).for_each(|i| subtract(b, at, i, mirror(ld[(i, at)], hermitian)));
        }
        b.swap_rows(k, row(pivots[k]));
        k = first;
    }
}
