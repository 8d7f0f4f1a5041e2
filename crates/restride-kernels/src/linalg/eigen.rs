//! Eigenvectors and singular vectors, by rotations.

use super::matrix::{Matrix, matrix_room};
use crate::scratch::{Temp, room};

/// Sweeps of rotations until nothing is left to turn: far more than any matrix needs.
const SWEEPS: usize = 100;

/// Eigenvalues of a symmetric matrix (of which one triangle is read), smallest first, and their vectors as columns.
pub fn eigh(a: &Matrix, upper: bool) -> (Temp<f64>, Matrix) {
    let n = a.rows;
    let (mut values, mut vectors) = (Temp::filled(n, 0.0), Matrix::zeros(n, n));
    let mut s = a.clone();
    for r in 0..n {
        for c in 0..r {
            let x = if upper { a[(c, r)] } else { a[(r, c)] };
            (s[(r, c)], s[(c, r)]) = (x, x);
        }
    }
    let mut v = Matrix::eye(n, n);
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let (x, d) = (s[(p, q)], s[(q, q)] - s[(p, p)]);
                if x == 0.0 || x.abs() <= f64::EPSILON * 1e-2 * (s[(p, p)] * s[(q, q)]).abs().sqrt() {
                    continue;
                }
                turned = true;
                let theta = d / (2.0 * x);
                let t = 1.0f64.copysign(theta) / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let sn = t * c;
                for k in 0..n {
                    let (a, b) = (s[(k, p)], s[(k, q)]);
                    (s[(k, p)], s[(k, q)]) = (c * a - sn * b, sn * a + c * b);
                }
                for k in 0..n {
                    let (a, b) = (s[(p, k)], s[(q, k)]);
                    (s[(p, k)], s[(q, k)]) = (c * a - sn * b, sn * a + c * b);
                    let (a, b) = (v[(k, p)], v[(k, q)]);
                    (v[(k, p)], v[(k, q)]) = (c * a - sn * b, sn * a + c * b);
                }
            }
        }
        if !turned {
            break;
        }
    }
    let mut order: Temp<usize> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| s[(a, a)].total_cmp(&s[(b, b)]).then(a.cmp(&b)));
    for (to, &from) in order.iter().enumerate() {
        values[to] = s[(from, from)];
        (0..n).for_each(|r| vectors[(r, to)] = v[(r, from)]);
    }
    (values, vectors)
}

/// Bytes of working memory of [`eigh`], its results among them.
pub fn eigh_room(n: usize) -> usize {
    3 * matrix_room(n, n) + room::<f64>(n) + room::<usize>(n)
}

/// `A = U S Vᵀ`.
#[derive(Debug)]
pub struct Svd {
    // What was made last is given back first.
    short: Matrix,
    /// S, largest first.
    pub values: Temp<f64>,
    long: Matrix,
    wide: bool,
}

impl Svd {
    /// U.
    pub fn u(&self) -> &Matrix {
        if self.wide { &self.short } else { &self.long }
    }
    /// V.
    pub fn v(&self) -> &Matrix {
        if self.wide { &self.long } else { &self.short }
    }
}

/// `A = U S Vᵀ`: U and V with as many columns as the shorter side (or square, if `full`), S largest first.
pub fn svd(a: &Matrix, full: bool) -> Svd {
    // Of a wide matrix that of the transpose.
    let wide = a.rows < a.cols;
    let (m, n) = (a.rows.max(a.cols), a.rows.min(a.cols));
    let mut left = Matrix::zeros(m, if full { m } else { n });
    let (mut values, mut right) = (Temp::filled(n, 0.0), Matrix::zeros(n, n));
    let (mut u, mut v) = (if wide { a.transposed() } else { a.clone() }, Matrix::eye(n, n));
    let dot = |u: &Matrix, p: usize, q: usize| (0..m).map(|r| u[(r, p)] * u[(r, q)]).sum::<f64>();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for p in 0..n {
            for q in p + 1..n {
                let (pp, qq, pq) = (dot(&u, p, p), dot(&u, q, q), dot(&u, p, q));
                if pq == 0.0 || pq.abs() <= 1e-15 * (pp * qq).sqrt() {
                    continue;
                }
                turned = true;
                let theta = (qq - pp) / (2.0 * pq);
                let t = 1.0f64.copysign(theta) / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                let turn = |m: &mut Matrix, rows: usize| {
                    for k in 0..rows {
                        let (a, b) = (m[(k, p)], m[(k, q)]);
                        (m[(k, p)], m[(k, q)]) = (c * a - s * b, s * a + c * b);
                    }
                };
                turn(&mut u, m);
                turn(&mut v, n);
            }
        }
        if !turned {
            break;
        }
    }
    let norms: Temp<f64> = (0..n).map(|c| dot(&u, c, c).sqrt()).collect();
    let mut order: Temp<usize> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| norms[b].total_cmp(&norms[a]).then(a.cmp(&b)));
    values.iter_mut().zip(&order).for_each(|(value, &i)| *value = norms[i]);
    let least = values.first().copied().unwrap_or(0.0) * f64::EPSILON * m as f64;
    let mut have = Columns { each: Temp::filled(left.cols, 0), count: 0 };
    for (to, &from) in order.iter().enumerate() {
        (0..n).for_each(|r| right[(r, to)] = v[(r, from)]);
        if norms[from] > least {
            (0..m).for_each(|r| left[(r, to)] = u[(r, from)] / norms[from]);
            have.push(to);
        }
    }
    complete(&mut left, have);
    Svd { short: right, values, long: left, wide }
}

/// Bytes of working memory of [`svd`], its results among them.
pub fn svd_room(rows: usize, cols: usize, full: bool) -> usize {
    let (m, n) = (rows.max(cols), rows.min(cols));
    let left = if full { m } else { n };
    let lists = 2 * room::<f64>(n) + room::<usize>(n) + room::<usize>(left) + room::<f64>(m);
    matrix_room(m, left) + 2 * matrix_room(n, n) + matrix_room(m, n) + lists
}

/// Columns of a matrix, in the order in which they were found.
struct Columns {
    each: Temp<usize>,
    count: usize,
}

impl Columns {
    fn push(&mut self, c: usize) {
        self.each[self.count] = c;
        self.count += 1;
    }
}

/// Fills the columns that are not in `have` so that all are orthonormal.
fn complete(m: &mut Matrix, mut have: Columns) {
    let mut axis = 0;
    for c in 0..m.cols {
        if have.each[..have.count].contains(&c) {
            continue;
        }
        while axis < m.rows {
            let mut v = Temp::filled(m.rows, 0.0);
            v[axis] = 1.0;
            axis += 1;
            // Twice, against what rounding leaves.
            for _ in 0..2 {
                for &h in &have.each[..have.count] {
                    let d: f64 = (0..m.rows).map(|r| v[r] * m[(r, h)]).sum();
                    (0..m.rows).for_each(|r| v[r] -= d * m[(r, h)]);
                }
            }
            let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            if norm > 1e-4 {
                (0..m.rows).for_each(|r| m[(r, c)] = v[r] / norm);
                have.push(c);
                break;
            }
        }
    }
}
