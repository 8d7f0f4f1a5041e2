//! Cholesky's and QR factors.

use super::matrix::{Matrix, matrix_room};
use crate::scratch::{Temp, room};

/// The lower triangle whose product with its transpose is `a` (of which the lower triangle is read), and the order of
/// the first minor that is not positive, 0 if there is none.
pub fn cholesky(a: &Matrix) -> (Matrix, i64) {
    let n = a.rows;
    let mut l = Matrix::zeros(n, n);
    for j in 0..n {
        let d = a[(j, j)] - (0..j).map(|k| l[(j, k)] * l[(j, k)]).sum::<f64>();
        if d.is_nan() || d <= 0.0 {
            return (l, j as i64 + 1);
        }
        let d = d.sqrt();
        l[(j, j)] = d;
        for i in j + 1..n {
            let dot: f64 = (0..j).map(|k| l[(i, k)] * l[(j, k)]).sum();
            l[(i, j)] = (a[(i, j)] - dot) / d;
        }
    }
    (l, 0)
}

/// `A = Q R` by reflections, with LAPACK's signs; Q is square if `complete`, otherwise as wide as the shorter side.
pub fn qr(a: &Matrix, complete: bool) -> (Matrix, Matrix) {
    let (m, n) = (a.rows, a.cols);
    let k = m.min(n);
    let wide = if complete { m } else { k };
    let (mut q, mut r) = (Matrix::eye(m, wide), Matrix::zeros(wide, n));
    let mut a = a.clone();
    // Reflections: vectors with a leading one, in a row each, and factors; a factor of zero where there is none.
    let (mut vectors, mut factors) = (Matrix::zeros(k, m), Temp::filled(k, 0.0));
    for j in 0..k {
        let below: f64 = (j + 1..m).map(|r| a[(r, j)] * a[(r, j)]).sum();
        let alpha = a[(j, j)];
        if below == 0.0 {
            continue;
        }
        let beta = -(alpha * alpha + below).sqrt().copysign(alpha);
        let v = &mut vectors.data[j * m..][..m - j];
        v.iter_mut().zip(j..m).for_each(|(v, r)| *v = a[(r, j)] / (alpha - beta));
        v[0] = 1.0;
        factors[j] = (beta - alpha) / beta;
        reflect(&mut a, j, v, factors[j]);
    }
    for j in (0..k).rev().filter(|&j| factors[j] != 0.0) {
        reflect(&mut q, j, &vectors.data[j * m..][..m - j], factors[j]);
    }
    for i in 0..wide {
        for c in i..n {
            r[(i, c)] = a[(i, c)];
        }
    }
    (q, r)
}

/// Bytes of working memory of [`qr`], its results among them.
pub fn qr_room(m: usize, n: usize, complete: bool) -> usize {
    let k = m.min(n);
    let wide = if complete { m } else { k };
    let [q, r, a, vectors] = [(m, wide), (wide, n), (m, n), (k, m)].map(|(rows, cols)| matrix_room(rows, cols));
    q + r + a + vectors + room::<f64>(k)
}

/// Subtracts `tau v vᵀ` times the rows from `first`.
fn reflect(a: &mut Matrix, first: usize, v: &[f64], tau: f64) {
    for c in 0..a.cols {
        let dot: f64 = v.iter().enumerate().map(|(i, v)| v * a[(first + i, c)]).sum();
        let f = tau * dot;
        for (i, v) in v.iter().enumerate() {
            a[(first + i, c)] -= f * v;
        }
    }
}
