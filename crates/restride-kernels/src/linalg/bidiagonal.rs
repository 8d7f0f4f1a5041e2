//! Singular values and vectors: reflections from both sides leave two diagonals, and shifted QR steps by plane rotations (Golub and
//! Van Loan, Matrix Computations, 8.6; steps and tests for zero as in LINPACK's `dsvdc`) leave one.

use super::qr::reflect_behind;
use super::vectors::{dot, reflect, rotate, scale_of, subtract};
use super::{Field, Matrix, matrix_room};
use crate::sort::sort_positions;
use crate::support::scratch::{Temp, room};

/// QR steps for each singular value: far more than any needs.
const STEPS: usize = 300;
/// Numbers below this are zero beside others of matrices whose largest is near 1.
const TINY: f64 = 1e-290;

/// Which vectors a decomposition has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SingularVectors {
    /// None.
    None,
    /// As many as the shorter side.
    Some,
    /// Both sides square.
    All,
}

/// `A = U S Vᴴ`.
#[derive(Debug)]
pub struct Svd<T: Field> {
    // Scratch is returned in reverse order.
    short: Matrix<T>,
    /// S, largest first.
    pub values: Temp<f64>,
    long: Matrix<T>,
    wide: bool,
}

impl<T: Field> Svd<T> {
    /// U.
    pub fn u(&self) -> &Matrix<T> {
        if self.wide { &self.short } else { &self.long }
    }
    /// V.
    pub fn v(&self) -> &Matrix<T> {
        if self.wide { &self.long } else { &self.short }
    }
}

/// `A = U S Vᴴ`, S largest first. NaN or infinity makes all results NaN.
pub fn svd<T: Field>(a: &Matrix<T>, vectors: SingularVectors) -> Svd<T> {
    T::svd(a, vectors)
}

/// Columns of the vectors of both sides of an m × n matrix that is not wide.
fn columns(m: usize, n: usize, vectors: SingularVectors) -> (usize, usize) {
    match vectors {
        SingularVectors::None => (0, 0),
        SingularVectors::Some => (n, n),
        SingularVectors::All => (m, n),
    }
}

pub(super) fn svd_of<T: Field>(a: &Matrix<T>, vectors: SingularVectors) -> Svd<T> {
    // Of a wide matrix that of the adjoint.
    let wide = a.rows < a.cols;
    let (m, n) = (a.rows.max(a.cols), a.rows.min(a.cols));
    let (long, short) = columns(m, n, vectors);
    let mut left = Matrix::zeros(m, long);
    let (mut values, mut right) = (Temp::filled(n, 0.0), Matrix::zeros(n, short));
    let mut x = if wide { a.adjoint() } else { a.clone() };
    if x.data.iter().any(|x| !x.size().is_finite()) {
        values.fill(f64::NAN);
        left.data.fill(T::real(f64::NAN));
        right.data.fill(T::real(f64::NAN));
        return Svd { short: right, values, long: left, wide };
    }
    let scale = scale_of(&x.data);
    x.data.iter_mut().for_each(|x| *x = x.scaled(scale));
    // The vectors as rows, which are next to each other in memory.
    let (mut u, mut v) = (Matrix::eye(long, if long > 0 { m } else { 0 }), Matrix::eye(short, short));
    let (mut s, mut e) = (Temp::filled(n, 0.0), Temp::filled(n, 0.0));
    reduce(&mut x, &mut s, &mut e, &mut u, &mut v);
    diagonal(&mut s, &mut e, &mut u, &mut v);
    let mut order: Temp<usize> = (0..n).collect();
    sort_positions(&mut order, &|&a, &b| s[b].total_cmp(&s[a]).then(a.cmp(&b)));
    for (to, &from) in order.iter().enumerate() {
        values[to] = s[from] / scale;
        (0..short).for_each(|r| right[(r, to)] = v[(from, r)]);
    }
    for to in 0..long {
        let from = order.get(to).copied().unwrap_or(to);
        (0..m).for_each(|r| left[(r, to)] = u[(from, r)]);
    }
    Svd { short: right, values, long: left, wide }
}

/// Bytes of scratch of [`svd`], its results among them.
pub fn svd_room<T: Field>(rows: usize, cols: usize, vectors: SingularVectors) -> usize {
    let (m, n) = (rows.max(cols), rows.min(cols));
    let (long, short) = columns(m, n, vectors);
    let lists = 3 * room::<f64>(n) + (2 * room::<T>(n) + room::<T>(m)).max(room::<usize>(n));
    2 * matrix_room::<T>(m, long) + 2 * matrix_room::<T>(n, short) + matrix_room::<T>(m, n) + lists
}

/// Overwrites a matrix that is not wide by reflections that leave its diagonal `s` and the diagonal `e` above it, both real. Rows of
/// `u` and `v`, if they have any, become the columns of the products of those from the left and from the right.
fn reduce<T: Field>(x: &mut Matrix<T>, s: &mut [f64], e: &mut [f64], u: &mut Matrix<T>, v: &mut Matrix<T>) {
    let (m, n) = (x.rows, x.cols);
    let [mut left, mut right] = std::array::from_fn(|_| Temp::filled(n, T::ZERO));
    let mut column = Temp::filled(m, T::ZERO);
    for k in 0..n {
        let own = &mut column[k..];
        own.iter_mut().enumerate().for_each(|(i, to)| *to = x[(k + i, k)]);
        (s[k], left[k]) = reflect(own);
        own.iter().enumerate().for_each(|(i, &v)| x[(k + i, k)] = v);
        if left[k] != T::ZERO {
            reflect_behind(x, k, left[k].conj());
        }
        if k + 1 == n {
            break;
        }
        let row = &mut x.data[k * n..][k + 1..n];
        row.iter_mut().for_each(|x| *x = x.conj());
        (e[k], right[k]) = reflect(row);
        if right[k] == T::ZERO {
            continue;
        }
        // A (I - tau v vᴴ), where the row holds v: the conjugate is what scalar products take.
        let (above, below) = x.data.split_at_mut((k + 1) * n);
        let v = &mut above[k * n..][k + 1..n];
        v.iter_mut().for_each(|v| *v = v.conj());
        for row in below.chunks_exact_mut(n) {
            let row = &mut row[k + 1..];
            let f = dot(v, row) * right[k];
            subtract(row, f, v);
        }
        v.iter_mut().for_each(|v| *v = v.conj());
    }
    for k in (0..n).rev() {
        if left[k] != T::ZERO && u.rows > 0 {
            let own = &mut column[k..];
            own.iter_mut().enumerate().for_each(|(i, to)| *to = x[(k + i, k)]);
            for c in k..u.rows {
                let row = &mut u.data[c * m..][k..m];
                let f = left[k] * dot(own, row);
                subtract(row, f, own);
            }
        }
        if right[k] != T::ZERO {
            let own = &x.row(k)[k + 1..];
            for c in k + 1..v.rows {
                let row = &mut v.data[c * n..][k + 1..n];
                let f = right[k] * dot(own, row);
                subtract(row, f, own);
            }
        }
    }
}

/// The rotation that takes `(f, g)` to `(r, 0)`: `r`, cosine, sine.
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    let r = f.hypot(g);
    if r == 0.0 { (0.0, 1.0, 0.0) } else { (r, f / r, g / r) }
}

/// QR steps until nothing is left in `e`; `s` is then positive. Rows of `u` and `v` are turned with them.
fn diagonal<T: Field>(s: &mut [f64], e: &mut [f64], u: &mut Matrix<T>, v: &mut Matrix<T>) {
    let turn = |m: &mut Matrix<T>, i: usize, j: usize, cos: f64, sin: f64| {
        if m.rows > 0 {
            // Exchanged rows turn the other way.
            let (first, second) = m.two_rows(i.min(j), i.max(j));
            rotate(first, second, cos, if i < j { sin } else { -sin });
        }
    };
    let (mut end, mut steps) = (s.len(), 0);
    while end > 0 {
        let last = end - 1;
        // The first row of the part that still depends on the last one.
        let apart = |k: usize| e[k].abs() <= TINY + f64::EPSILON * (s[k].abs() + s[k + 1].abs());
        let from = (0..last).rev().find(|&k| apart(k)).map_or(0, |k| k + 1);
        if from > 0 {
            e[from - 1] = 0.0;
        }
        if from == last || steps == STEPS {
            if s[last] < 0.0 {
                s[last] = -s[last];
                let cols = v.cols;
                v.data.chunks_exact_mut(cols.max(1)).skip(last).take(1).flatten().for_each(|x| *x = -*x);
            }
            (end, steps) = (last, 0);
            continue;
        }
        // A zero on the diagonal, which no step goes over.
        let near = |k: usize| {
            let (behind, before) = (if k < last { e[k] } else { 0.0 }, if k > from { e[k - 1] } else { 0.0 });
            behind.abs() + before.abs()
        };
        if let Some(zero) = (from..end).rev().find(|&k| s[k].abs() <= TINY + f64::EPSILON * near(k)) {
            s[zero] = 0.0;
            if zero == last {
                let mut f = std::mem::take(&mut e[last - 1]);
                for j in (from..last).rev() {
                    let (r, cos, sin) = rotation(s[j], f);
                    s[j] = r;
                    if j > from {
                        f = -sin * e[j - 1];
                        e[j - 1] *= cos;
                    }
                    turn(v, j, last, cos, sin);
                }
            } else {
                let mut f = std::mem::take(&mut e[zero]);
                for j in zero + 1..end {
                    let (r, cos, sin) = rotation(s[j], f);
                    s[j] = r;
                    if j < last {
                        f = -sin * e[j];
                        e[j] *= cos;
                    }
                    turn(u, j, zero, cos, sin);
                }
            }
            continue;
        }
        steps += 1;
        let scale = [s[last], s[last - 1], e[last - 1], s[from], e[from]].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let [sp, spm1, epm1, sk, ek] = [s[last], s[last - 1], e[last - 1], s[from], e[from]].map(|x| x / scale);
        let b = ((spm1 + sp) * (spm1 - sp) + epm1 * epm1) / 2.0;
        let c = (sp * epm1) * (sp * epm1);
        let shift = if b != 0.0 || c != 0.0 { c / (b + (b * b + c).sqrt().copysign(b)) } else { 0.0 };
        let (mut f, mut g) = ((sk + sp) * (sk - sp) + shift, sk * ek);
        for j in from..last {
            let (r, cos, sin) = rotation(f, g);
            if j > from {
                e[j - 1] = r;
            }
            f = cos * s[j] + sin * e[j];
            e[j] = cos * e[j] - sin * s[j];
            g = sin * s[j + 1];
            s[j + 1] *= cos;
            turn(v, j, j + 1, cos, sin);
            let (r, cos, sin) = rotation(f, g);
            s[j] = r;
            f = cos * e[j] + sin * s[j + 1];
            s[j + 1] = cos * s[j + 1] - sin * e[j];
            if j + 1 < last {
                g = sin * e[j + 1];
                e[j + 1] *= cos;
            }
            turn(u, j, j + 1, cos, sin);
        }
        e[last - 1] = f;
    }
}
