//! Cholesky's factors.

use super::vectors::subtract;
use super::{BLOCK, Field, Matrix};

/// The lower triangle whose product with its conjugate transpose is `a` (its lower triangle is read), and the order of the
/// first minor that is not positive, or 0.
pub fn cholesky<T: Field>(a: &Matrix<T>) -> (Matrix<T>, i64) {
    T::cholesky(a)
}

pub(super) fn cholesky_of<T: Field>(a: &Matrix<T>) -> (Matrix<T>, i64) {
    let n = a.rows;
    // The conjugate transpose of the factor, whose rows are runs.
    let mut u: Matrix<T> = Matrix::zeros(n, n);
    for r in 0..n {
        (r..n).for_each(|c| u[(r, c)] = a[(c, r)].conj());
    }
    let (mut done, mut bad) = (n, 0);
    for first in (0..n).step_by(BLOCK) {
        let end = n.min(first + BLOCK);
        if let Some(k) = (first..end).find(|&k| !row(&mut u, k, end)) {
            (done, bad) = (k, k as i64 + 1);
            break;
        }
        // The factor itself below the block: the left operand of what is subtracted from the rest.
        for r in end..n {
            (first..end).for_each(|c| u[(r, c)] = u[(c, r)].conj());
        }
        for start in (end..n).step_by(2 * BLOCK) {
            u.subtract_product(start..n.min(start + 2 * BLOCK), start..n, first..end);
        }
    }
    for r in 0..n {
        for c in 0..r {
            u[(r, c)] = if c < done { u[(c, r)].conj() } else { T::ZERO };
        }
    }
    for r in 0..n {
        u.data[r * n..][r + usize::from(r < done)..n].fill(T::ZERO);
    }
    (u, bad)
}

/// Computes row `k` of the factor and subtracts what it gives from the rows before `end`. False if the pivot is not positive.
fn row<T: Field>(u: &mut Matrix<T>, k: usize, end: usize) -> bool {
    let n = u.cols;
    let d = u[(k, k)].re();
    if d.is_nan() || d <= 0.0 {
        return false;
    }
    let d = d.sqrt();
    u[(k, k)] = T::real(d);
    u.data[k * n..][k + 1..n].iter_mut().for_each(|x| *x = x.scaled(1.0 / d));
    for r in k + 1..end {
        let f = u[(k, r)].conj();
        let (from, to) = u.two_rows(k, r);
        subtract(&mut to[r..], f, &from[r..]);
    }
    true
}
