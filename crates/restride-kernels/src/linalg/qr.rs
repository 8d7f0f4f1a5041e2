//! Reflections (Householder's), as LAPACK makes, keeps and applies them, and QR factors.

use super::vectors::subtract;
use super::{Field, Matrix, matrix_room};
use crate::support::scratch::{Temp, room};

/// Reflections `H = I - tau v vᴴ`, whose product in their order is Q: vectors in the columns of a matrix, below an element
/// that counts as 1, and a factor for each.
#[derive(Debug)]
pub struct Reflections<T: Field> {
    // Scratch is returned in reverse order.
    /// A factor for each.
    pub factors: Temp<T>,
    /// The vectors, and R in the other elements.
    pub vectors: Matrix<T>,
}

/// LAPACK's `geqrf`: the diagonal of R is real.
pub fn reflections<T: Field>(a: Matrix<T>) -> Reflections<T> {
    T::reflections(a)
}

pub(super) fn reflections_of<T: Field>(mut a: Matrix<T>) -> Reflections<T> {
    let (m, k) = (a.rows, a.rows.min(a.cols));
    let mut factors = Temp::filled(k, T::ZERO);
    for j in 0..k {
        let below = (j + 1..m).map(|r| a[(r, j)].square()).sum::<f64>();
        let alpha = a[(j, j)];
        if below == 0.0 && alpha.im() == 0.0 {
            continue;
        }
        let beta = -(alpha.square() + below).sqrt().copysign(alpha.re());
        factors[j] = (T::real(beta) - alpha).scaled(1.0 / beta);
        let scale = T::ONE / (alpha - T::real(beta));
        (j + 1..m).for_each(|r| a[(r, j)] *= scale);
        // The conjugate transpose of H, from the left, on the columns to the right.
        a[(j, j)] = T::ONE;
        reflect_behind(&mut a, j, factors[j].conj());
        a[(j, j)] = T::real(beta);
    }
    Reflections { factors, vectors: a }
}

/// Applies `I - tau v vᴴ` from the left to the columns behind `k`, which holds `v` from its row `k` on.
pub(super) fn reflect_behind<T: Field>(x: &mut Matrix<T>, k: usize, tau: T) {
    let (m, n) = (x.rows, x.cols);
    let mut sums = [T::ZERO; SOME];
    for first in (k + 1..n).step_by(SOME) {
        let some = first..n.min(first + SOME);
        let sums = &mut sums[..some.len()];
        sums.fill(T::ZERO);
        (k..m).for_each(|r| subtract(sums, -x[(r, k)].conj(), &x.row(r)[some.clone()]));
        sums.iter_mut().for_each(|sum| *sum = tau * *sum);
        for r in k..m {
            let f = x[(r, k)];
            subtract(&mut x.data[r * n..][some.clone()], f, sums);
        }
    }
}

/// Columns that a reflection is applied to at a time.
const SOME: usize = 256;

/// Applies H number `j` to `c` from the left, to its columns from `first` on, or from the right.
fn apply<T: Field>(vectors: &Matrix<T>, j: usize, tau: T, c: &mut Matrix<T>, left: bool, first: usize) {
    let m = vectors.rows;
    let v = |r: usize| if r == j { T::ONE } else { vectors[(r, j)] };
    if left {
        let cols = c.cols;
        for first in (first..cols).step_by(SOME) {
            let some = first..cols.min(first + SOME);
            let mut dots = [T::ZERO; SOME];
            let dots = &mut dots[..some.len()];
            (j..m).for_each(|r| subtract(dots, -v(r).conj(), &c.row(r)[some.clone()]));
            dots.iter_mut().for_each(|dot| *dot = tau * *dot);
            for r in j..m {
                subtract(&mut c.data[r * cols..][some.clone()], v(r), dots);
            }
        }
    } else {
        for row in c.data.chunks_exact_mut(c.cols) {
            let mut dot = T::ZERO;
            (j..m).for_each(|r| dot += row[r] * v(r));
            let f = tau * dot;
            (j..m).for_each(|r| row[r] -= f * v(r).conj());
        }
    }
}

/// `Q C` in place of C: `Qᴴ C` if `adjoint`, with Q on the other side unless `left` (LAPACK's `ormqr`).
pub fn apply_q<T: Field>(vectors: &Matrix<T>, factors: &[T], c: &mut Matrix<T>, left: bool, adjoint: bool) {
    T::apply_q(vectors, factors, c, left, adjoint);
}

pub(super) fn apply_q_of<T: Field>(vectors: &Matrix<T>, factors: &[T], c: &mut Matrix<T>, left: bool, adjoint: bool) {
    let k = factors.len();
    for i in 0..k {
        // The factor next to C comes first.
        let j = if left == adjoint { i } else { k - 1 - i };
        let tau = if adjoint { factors[j].conj() } else { factors[j] };
        if tau != T::ZERO {
            apply(vectors, j, tau, c, left, 0);
        }
    }
}

/// The first columns of Q (LAPACK's `orgqr`).
pub fn q_of<T: Field>(vectors: &Matrix<T>, factors: &[T], cols: usize) -> Matrix<T> {
    let mut q = Matrix::eye(vectors.rows, cols);
    T::fill_q(&mut q, vectors, factors);
    q
}

/// Makes Q of ones on the diagonal.
pub(super) fn fill_q_of<T: Field>(q: &mut Matrix<T>, vectors: &Matrix<T>, factors: &[T]) {
    for (j, &tau) in factors.iter().enumerate().rev().filter(|(_, tau)| **tau != T::ZERO) {
        // Columns before it have nothing yet in its rows.
        apply(vectors, j, tau, q, true, j);
    }
}

/// `A = Q R` with LAPACK's signs; Q is square if `complete`, otherwise as wide as the shorter side.
pub fn qr<T: Field>(a: &Matrix<T>, complete: bool) -> (Matrix<T>, Matrix<T>) {
    let (m, n) = (a.rows, a.cols);
    let wide = if complete { m } else { m.min(n) };
    let (mut q, mut r) = (Matrix::eye(m, wide), Matrix::zeros(wide, n));
    let made = reflections(a.clone());
    T::fill_q(&mut q, &made.vectors, &made.factors);
    for i in 0..wide {
        for c in i..n {
            r[(i, c)] = made.vectors[(i, c)];
        }
    }
    (q, r)
}

/// Bytes of scratch of [`qr`], its results among them.
pub fn qr_room<T: Field>(m: usize, n: usize, complete: bool) -> usize {
    let k = m.min(n);
    let wide = if complete { m } else { k };
    matrix_room::<T>(m, wide) + matrix_room::<T>(wide, n) + matrix_room::<T>(m, n) + room::<T>(k)
}
