//! Eigenvectors of Hermitian matrices and singular vectors, by rotations (Jacobi's): as exact as the matrix says.

use super::{Field, Matrix, matrix_room};
use crate::sort::sort_positions;
use crate::support::scratch::{Temp, room};

/// Sweeps of rotations until nothing is left to turn: far more than any matrix needs.
const SWEEPS: usize = 100;

/// A rotation of columns p and q that makes `x` zero: their inner product, or the element at (p, q). `pp` and `qq` are the
/// diagonal ones.
struct Rotation<T: Field> {
    cos: f64,
    sin: f64,
    /// The direction that makes `x` real.
    phase: T,
}

impl<T: Field> Rotation<T> {
    fn new(pp: f64, qq: f64, x: T) -> Rotation<T> {
        let theta = (qq - pp) / (2.0 * x.abs());
        let t = 1.0f64.copysign(theta) / (theta.abs() + (theta * theta + 1.0).sqrt());
        let cos = 1.0 / (t * t + 1.0).sqrt();
        Rotation { cos, sin: t * cos, phase: x.direction().conj() }
    }
    /// The elements that become those of p and q.
    fn turned(&self, a: T, b: T, phase: T) -> (T, T) {
        let b = b * phase;
        (a.scaled(self.cos) - b.scaled(self.sin), a.scaled(self.sin) + b.scaled(self.cos))
    }
    fn columns(&self, m: &mut Matrix<T>, p: usize, q: usize) {
        for row in m.data.chunks_exact_mut(m.cols) {
            (row[p], row[q]) = self.turned(row[p], row[q], self.phase);
        }
    }
    fn rows(&self, m: &mut Matrix<T>, p: usize, q: usize) {
        self.both(m, p, q, self.phase.conj());
    }
    /// Columns p and q of the transpose.
    fn columns_of_transpose(&self, m: &mut Matrix<T>, p: usize, q: usize) {
        self.both(m, p, q, self.phase);
    }
    fn both(&self, m: &mut Matrix<T>, p: usize, q: usize, phase: T) {
        let (p, q) = m.two_rows(p, q);
        for (a, b) in p.iter_mut().zip(q) {
            (*a, *b) = self.turned(*a, *b, phase);
        }
    }
}

/// Eigenvalues of a Hermitian matrix, smallest first, and their vectors as columns. Reads one triangle. NaN or infinity in it
/// makes all results NaN.
pub fn eigh<T: Field>(a: &Matrix<T>, upper: bool) -> (Temp<f64>, Matrix<T>) {
    T::eigh(a, upper)
}

pub(super) fn eigh_of<T: Field>(a: &Matrix<T>, upper: bool) -> (Temp<f64>, Matrix<T>) {
    let n = a.rows;
    let (mut values, mut vectors) = (Temp::filled(n, 0.0), Matrix::zeros(n, n));
    let mut s = a.clone();
    for r in 0..n {
        s[(r, r)] = T::real(a[(r, r)].re());
        for c in 0..r {
            let x = if upper { a[(c, r)].conj() } else { a[(r, c)] };
            (s[(r, c)], s[(c, r)]) = (x, x.conj());
        }
    }
    // The vectors as rows, which are next to each other in memory.
    let mut v = Matrix::eye(n, n);
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let (x, pp, qq) = (s[(p, q)], s[(p, p)].re(), s[(q, q)].re());
                if x == T::ZERO || x.abs() <= f64::EPSILON * 1e-2 * (pp * qq).abs().sqrt() {
                    continue;
                }
                turned = true;
                let r = Rotation::new(pp, qq, x);
                r.columns(&mut s, p, q);
                r.rows(&mut s, p, q);
                (s[(p, q)], s[(q, p)]) = (T::ZERO, T::ZERO);
                r.columns_of_transpose(&mut v, p, q);
            }
        }
        if !turned {
            break;
        }
    }
    let mut order: Temp<usize> = (0..n).collect();
    sort_positions(&mut order, &|&a, &b| s[(a, a)].re().total_cmp(&s[(b, b)].re()).then(a.cmp(&b)));
    for (to, &from) in order.iter().enumerate() {
        values[to] = s[(from, from)].re();
        (0..n).for_each(|r| vectors[(r, to)] = v[(from, r)]);
    }
    (values, vectors)
}

/// Bytes of scratch of [`eigh`], its results among them.
pub fn eigh_room<T: Field>(n: usize) -> usize {
    3 * matrix_room::<T>(n, n) + room::<f64>(n) + room::<usize>(n)
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

/// `A = U S Vᴴ`: U and V with as many columns as the shorter side (or square, if `full`), S largest first.
pub fn svd<T: Field>(a: &Matrix<T>, full: bool) -> Svd<T> {
    T::svd(a, full)
}

pub(super) fn svd_of<T: Field>(a: &Matrix<T>, full: bool) -> Svd<T> {
    // Of a wide matrix that of the adjoint.
    let wide = a.rows < a.cols;
    let (m, n) = (a.rows.max(a.cols), a.rows.min(a.cols));
    let mut left = Matrix::zeros(m, if full { m } else { n });
    let (mut values, mut right) = (Temp::filled(n, 0.0), Matrix::zeros(n, n));
    // Both as rows, which are next to each other in memory: the transpose of the adjoint is the conjugate.
    let mut u = if wide { a.clone() } else { a.transposed() };
    if wide {
        u.data.iter_mut().for_each(|x| *x = x.conj());
    }
    let mut v = Matrix::eye(n, n);
    let own = |u: &Matrix<T>, p: usize| u.row(p).iter().map(|x| x.square()).sum::<f64>();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                // Three sums side by side.
                let (mut x, mut pp, mut qq) = (T::ZERO, 0.0, 0.0);
                for (a, b) in u.row(p).iter().zip(u.row(q)) {
                    x += a.conj() * *b;
                    pp += a.square();
                    qq += b.square();
                }
                if x == T::ZERO || x.abs() <= 1e-15 * (pp * qq).sqrt() {
                    continue;
                }
                turned = true;
                let r = Rotation::new(pp, qq, x);
                r.columns_of_transpose(&mut u, p, q);
                r.columns_of_transpose(&mut v, p, q);
            }
        }
        if !turned {
            break;
        }
    }
    let norms: Temp<f64> = (0..n).map(|c| own(&u, c).sqrt()).collect();
    let mut order: Temp<usize> = (0..n).collect();
    sort_positions(&mut order, &|&a, &b| norms[b].total_cmp(&norms[a]).then(a.cmp(&b)));
    values.iter_mut().zip(&order).for_each(|(value, &i)| *value = norms[i]);
    let least = values.first().copied().unwrap_or(0.0) * f64::EPSILON * m as f64;
    let mut have = FoundColumns { each: Temp::filled(left.cols, 0), count: 0 };
    for (to, &from) in order.iter().enumerate() {
        (0..n).for_each(|r| right[(r, to)] = v[(from, r)]);
        if norms[from] > least {
            (0..m).for_each(|r| left[(r, to)] = u[(from, r)].scaled(1.0 / norms[from]));
            have.push(to);
        }
    }
    complete(&mut left, have);
    Svd { short: right, values, long: left, wide }
}

/// Bytes of scratch of [`svd`], its results among them.
pub fn svd_room<T: Field>(rows: usize, cols: usize, full: bool) -> usize {
    let (m, n) = (rows.max(cols), rows.min(cols));
    let left = if full { m } else { n };
    let lists = 2 * room::<f64>(n) + room::<usize>(n) + room::<usize>(left) + room::<T>(m);
    matrix_room::<T>(m, left) + 2 * matrix_room::<T>(n, n) + matrix_room::<T>(m, n) + lists
}

/// Columns of a matrix, in the order in which they were found.
struct FoundColumns {
    each: Temp<usize>,
    count: usize,
}

impl FoundColumns {
    fn push(&mut self, c: usize) {
        self.each[self.count] = c;
        self.count += 1;
    }
}

/// Fills the columns that are not in `have` so that all are orthonormal.
fn complete<T: Field>(m: &mut Matrix<T>, mut have: FoundColumns) {
    let mut axis = 0;
    for c in 0..m.cols {
        if have.each[..have.count].contains(&c) {
            continue;
        }
        while axis < m.rows {
            let mut v = Temp::filled(m.rows, T::ZERO);
            v[axis] = T::ONE;
            axis += 1;
            // Twice, against rounding errors.
            for _ in 0..2 {
                for &h in &have.each[..have.count] {
                    let mut d = T::ZERO;
                    (0..m.rows).for_each(|r| d += m[(r, h)].conj() * v[r]);
                    (0..m.rows).for_each(|r| v[r] -= d * m[(r, h)]);
                }
            }
            let norm = v.iter().map(|x| x.square()).sum::<f64>().sqrt();
            if norm > 1e-4 {
                (0..m.rows).for_each(|r| m[(r, c)] = v[r].scaled(1.0 / norm));
                have.push(c);
                break;
            }
        }
    }
}
