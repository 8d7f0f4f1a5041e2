//! Eigenvalues and vectors of Hermitian matrices: reflections from both sides leave three diagonals, and shifted QL steps by plane
//! rotations (Golub and Van Loan, Matrix Computations, 8.3) leave one.

use super::vectors::{dot, reflect, rotate, scale_of, subtract};
use super::{Field, Matrix, matrix_room};
use crate::sort::sort_positions;
use crate::support::scratch::{Temp, room};

/// QL steps for each eigenvalue: far more than any needs.
const STEPS: usize = 300;

/// Eigenvalues of a Hermitian matrix, smallest first, and their vectors as columns, or no columns. Reads one triangle. NaN or
/// infinity in it makes all results NaN.
pub fn eigh<T: Field>(a: &Matrix<T>, upper: bool, wanted: bool) -> (Temp<f64>, Matrix<T>) {
    T::eigh(a, upper, wanted)
}

pub(super) fn eigh_of<T: Field>(a: &Matrix<T>, upper: bool, wanted: bool) -> (Temp<f64>, Matrix<T>) {
    let n = a.rows;
    let cols = if wanted { n } else { 0 };
    let (mut values, mut vectors) = (Temp::filled(n, 0.0), Matrix::zeros(n, cols));
    let mut s = a.clone();
    for r in 0..n {
        s[(r, r)] = T::real(a[(r, r)].re());
        for c in 0..r {
            let x = if upper { a[(c, r)].conj() } else { a[(r, c)] };
            (s[(r, c)], s[(c, r)]) = (x, x.conj());
        }
    }
    if s.data.iter().any(|x| !x.size().is_finite()) {
        values.fill(f64::NAN);
        vectors.data.fill(T::real(f64::NAN));
        return (values, vectors);
    }
    let scale = scale_of(&s.data);
    s.data.iter_mut().for_each(|x| *x = x.scaled(scale));
    // The vectors as rows, which are next to each other in memory.
    let mut turned = Matrix::eye(cols, cols);
    let (mut d, mut e) = (Temp::filled(n, 0.0), Temp::filled(n, 0.0));
    reduce(&mut s, &mut d, &mut e, &mut turned);
    diagonal(&mut d, &mut e, &mut turned);
    let mut order: Temp<usize> = (0..n).collect();
    sort_positions(&mut order, &|&a, &b| d[a].total_cmp(&d[b]).then(a.cmp(&b)));
    for (to, &from) in order.iter().enumerate() {
        values[to] = d[from] / scale;
        (0..cols).for_each(|r| vectors[(r, to)] = turned[(from, r)]);
    }
    (values, vectors)
}

/// Bytes of scratch of [`eigh`], its results among them.
pub fn eigh_room<T: Field>(n: usize, wanted: bool) -> usize {
    let vectors = if wanted { 2 * matrix_room::<T>(n, n) } else { 0 };
    vectors + matrix_room::<T>(n, n) + 3 * room::<f64>(n) + (4 * room::<T>(n)).max(room::<usize>(n))
}

/// Overwrites a Hermitian matrix by reflections that leave its diagonal `d` and the diagonal `e` below it, both real. Rows of
/// `turned`, if it has any, become the columns of their product.
fn reduce<T: Field>(s: &mut Matrix<T>, d: &mut [f64], e: &mut [f64], turned: &mut Matrix<T>) {
    let n = s.rows;
    let mut factors = Temp::filled(n, T::ZERO);
    let [mut v, mut w, mut other] = std::array::from_fn(|_| Temp::filled(n, T::ZERO));
    for k in 0..n {
        d[k] = s[(k, k)].re();
        // A real matrix of two rows has its form.
        if k + 1 == n || k + 2 == n && !T::COMPLEX {
            if k + 1 < n {
                e[k] = s[(k, k + 1)].re();
            }
            continue;
        }
        // The column below the diagonal is the conjugate of the row.
        let first = k + 1;
        let v = &mut v[first..];
        v.iter_mut().zip(&s.row(k)[first..]).for_each(|(v, x)| *v = x.conj());
        let (beta, tau) = reflect(v);
        (e[k], factors[k]) = (beta, tau);
        s.data[k * n..][first..n].copy_from_slice(v);
        if tau == T::ZERO {
            continue;
        }
        // A -= v wᴴ + w vᴴ, where w = p - (tau / 2) (pᴴ v) v and p = tau A v.
        let (w, other) = (&mut w[first..], &mut other[first..]);
        other.iter_mut().zip(&*v).for_each(|(o, v)| *o = v.conj());
        for (i, w) in w.iter_mut().enumerate() {
            *w = tau * dot(&s.row(first + i)[first..], other).conj();
        }
        let half = (tau * dot(w, v)).scaled(0.5);
        subtract(w, half, v);
        // The conjugates of both.
        v.iter_mut().for_each(|v| *v = v.conj());
        other.iter_mut().zip(&*w).for_each(|(o, w)| *o = w.conj());
        for i in 0..v.len() {
            let (f, g) = (v[i].conj(), w[i]);
            let row = &mut s.data[(first + i) * n..][first..n];
            subtract(row, f, other);
            subtract(row, g, v);
        }
    }
    for k in (0..n).rev().filter(|&k| factors[k] != T::ZERO) {
        let v = &s.row(k)[k + 1..];
        for c in k + 1..turned.rows {
            let row = &mut turned.data[c * n..][k + 1..n];
            let f = factors[k] * dot(v, row);
            subtract(row, f, v);
        }
    }
}

/// QL steps until nothing is left in `e`. Rows of `turned` are turned with them.
fn diagonal<T: Field>(d: &mut [f64], e: &mut [f64], turned: &mut Matrix<T>) {
    let n = d.len();
    for l in 0..n {
        for _ in 0..STEPS {
            // The end of the part whose rows still depend on each other.
            let small = |m: usize| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs()) || e[m].abs() < 1e-290;
            let m = (l..n - 1).find(|&m| small(m)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let half = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let mut g = d[m] - d[l] + e[l] / (half + half.hypot(1.0).copysign(half));
            let (mut sin, mut cos, mut p) = (1.0, 1.0, 0.0);
            let mut at = m;
            while at > l {
                let i = at - 1;
                let (f, b) = (sin * e[i], cos * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    break;
                }
                (sin, cos) = (f / r, g / r);
                g = d[i + 1] - p;
                let r = (d[i] - g) * sin + 2.0 * cos * b;
                p = sin * r;
                d[i + 1] = g + p;
                g = cos * r - b;
                if turned.rows > 0 {
                    let (a, b) = turned.two_rows(i, i + 1);
                    rotate(a, b, cos, -sin);
                }
                at = i;
            }
            if at == l {
                d[l] -= p;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
}
