//! Dense linear algebra on small matrices, computed in `f64` whatever the element type.
//!
//! Matrices lie in working memory, which is given back from its end: what a function returns is made before what it needs
//! on the way, and what it takes over was made before that.

mod cholesky_qr;
mod eigen;
mod lu;
mod matrix;

pub use cholesky_qr::{cholesky, qr, qr_room};
pub use eigen::{Svd, eigh, eigh_room, svd, svd_room};
pub use lu::{Lu, lu, lu_room, lu_unpack, lu_unpack_room, triangular};
pub use matrix::{Matrices, Matrix, matrix_room};

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, cols: usize) -> Matrix {
        matrix_of(rows, cols, |i| ((i * i * i * 17 + i * 29 + 3) % 101) as f64 / 25.0 - 2.0)
    }
    fn matrix_of(rows: usize, cols: usize, at: impl Fn(usize) -> f64) -> Matrix {
        Matrix { rows, cols, data: (0..rows * cols).map(at).collect() }
    }
    fn product(a: &Matrix, b: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(a.rows, b.cols);
        for r in 0..a.rows {
            for c in 0..b.cols {
                out[(r, c)] = (0..a.cols).map(|k| a[(r, k)] * b[(k, c)]).sum();
            }
        }
        out
    }
    fn close(a: &Matrix, b: &Matrix) {
        assert_eq!((a.rows, a.cols), (b.rows, b.cols));
        for (x, y) in a.data.iter().zip(&b.data) {
            assert!((x - y).abs() < 1e-9, "{a:?} {b:?}");
        }
    }

    #[test]
    fn solutions_solve() {
        let (a, b) = (matrix(5, 5), matrix(5, 2));
        let f = lu(a.clone());
        assert_eq!(f.info, 0);
        close(&product(&a, &f.solve(b.clone())), &b);
        close(&product(&a.transposed(), &f.solve_transposed(b.clone())), &b);
        let (sign, log) = f.log_det();
        assert!((f.det() - sign * log.exp()).abs() < 1e-9 * f.det().abs());
        assert_eq!(lu(Matrix::zeros(3, 3)).info, 1);
    }

    #[test]
    fn factors_multiply_to_the_matrix() {
        for (m, n) in [(5, 3), (3, 5), (4, 4)] {
            let a = matrix(m, n);
            for full in [false, true] {
                let (q, r) = qr(&a, full);
                close(&product(&q, &r), &a);
                close(&product(&q.transposed(), &q), &Matrix::eye(q.cols, q.cols));
                let svd = svd(&a, full);
                let (u, s, v) = (svd.u(), &svd.values, svd.v());
                let mut d = Matrix::zeros(u.cols, v.cols);
                s.iter().enumerate().for_each(|(i, &x)| d[(i, i)] = x);
                close(&product(&product(u, &d), &v.transposed()), &a);
                close(&product(&u.transposed(), u), &Matrix::eye(u.cols, u.cols));
                assert!(s.windows(2).all(|w| w[0] >= w[1]));
            }
        }
        let a = product(&matrix(4, 4), &matrix(4, 4).transposed());
        let (l, info) = cholesky(&a);
        assert_eq!(info, 0);
        close(&product(&l, &l.transposed()), &a);
        assert_eq!(cholesky(&matrix_of(1, 1, |_| -1.0)).1, 1);
    }

    #[test]
    fn eigenvectors_are_stretched() {
        let m = matrix(5, 5);
        let a = product(&m, &m.transposed());
        let (values, v) = eigh(&a, false);
        let mut d = Matrix::zeros(5, 5);
        values.iter().enumerate().for_each(|(i, &x)| d[(i, i)] = x);
        close(&product(&a, &v), &product(&v, &d));
        close(&product(&v.transposed(), &v), &Matrix::eye(5, 5));
        assert!(values.windows(2).all(|w| w[0] <= w[1]));
    }

    #[test]
    fn matrices_of_low_rank_have_whole_bases() {
        let a = matrix_of(3, 2, |i| [1.0, 2.0, 2.0, 4.0, 0.0, 0.0][i]);
        let svd = svd(&a, true);
        close(&product(&svd.u().transposed(), svd.u()), &Matrix::eye(3, 3));
        assert!(svd.values[1].abs() < 1e-12);
    }
}
