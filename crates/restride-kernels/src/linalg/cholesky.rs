//! Cholesky's factors.

use super::{Field, Matrix};

/// The lower triangle whose product with its conjugate transpose is `a` (its lower triangle is read), and the order of the
/// first minor that is not positive, or 0.
pub fn cholesky<T: Field>(a: &Matrix<T>) -> (Matrix<T>, i64) {
    let n = a.rows;
    let mut l: Matrix<T> = Matrix::zeros(n, n);
    for j in 0..n {
        let d = a[(j, j)].re() - (0..j).map(|k| l[(j, k)].square()).sum::<f64>();
        if d.is_nan() || d <= 0.0 {
            return (l, j as i64 + 1);
        }
        let d = d.sqrt();
        l[(j, j)] = T::real(d);
        for i in j + 1..n {
            let mut rest = a[(i, j)];
            (0..j).for_each(|k| rest -= l[(i, k)] * l[(j, k)].conj());
            l[(i, j)] = rest.scaled(1.0 / d);
        }
    }
    (l, 0)
}
