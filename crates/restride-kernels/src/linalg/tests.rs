use super::*;
use restride_tensor::C64;

/// Test numbers; complex ones have both parts.
trait Made: Field {
    fn made(i: usize) -> Self;
}
fn number(i: usize) -> f64 {
    ((i * i * i * 17 + i * 29 + 3) % 101) as f64 / 25.0 - 2.0
}
impl Made for f64 {
    fn made(i: usize) -> f64 {
        number(i)
    }
}
impl Made for C64 {
    fn made(i: usize) -> C64 {
        C64::new(number(i), number(i + 1000))
    }
}

fn matrix<T: Made>(rows: usize, cols: usize) -> Matrix<T> {
    matrix_of(rows, cols, T::made)
}
fn matrix_of<T: Field>(rows: usize, cols: usize, at: impl Fn(usize) -> T) -> Matrix<T> {
    Matrix { rows, cols, data: (0..rows * cols).map(at).collect() }
}
fn product<T: Field>(a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let mut out = Matrix::zeros(a.rows, b.cols);
    out.product(a, b);
    out
}
fn diagonal<T: Field>(rows: usize, cols: usize, values: &[T]) -> Matrix<T> {
    let mut d = Matrix::zeros(rows, cols);
    values.iter().enumerate().for_each(|(i, &x)| d[(i, i)] = x);
    d
}
fn close<T: Field>(a: &Matrix<T>, b: &Matrix<T>) {
    assert_eq!((a.rows, a.cols), (b.rows, b.cols));
    for (x, y) in a.data.iter().zip(&b.data) {
        assert!((*x - *y).abs() < 1e-9, "{a:?} {b:?}");
    }
}
fn unitary<T: Field>(q: &Matrix<T>) {
    close(&product(&q.adjoint(), q), &Matrix::eye(q.cols, q.cols));
}

fn solutions<T: Made>() {
    for n in [5, 32, 75] {
        let (a, b) = (matrix::<T>(n, n), matrix::<T>(n, 2));
        let f = lu(a.clone());
        assert_eq!(f.info, 0);
        close(&product(&a, &f.solve(b.clone())), &b);
        close(&product(&a.transposed(), &f.solve_transposed(b.clone())), &b);
        close(&product(&a, &f.inverse()), &Matrix::eye(n, n));
        let (sign, log) = f.log_det();
        assert!((f.det() - sign.scaled(log.exp())).abs() < 1e-9 * f.det().abs());
    }
    assert_eq!(lu(Matrix::<T>::zeros(3, 3)).info, 1);
}

fn factors<T: Made>() {
    for (m, n) in [(5, 3), (3, 5), (4, 4), (1, 1), (75, 40), (20, 66)] {
        let a = matrix::<T>(m, n);
        for full in [false, true] {
            let (q, r) = qr(&a, full);
            close(&product(&q, &r), &a);
            unitary(&q);
            assert!((0..m.min(n)).all(|i| r[(i, i)].im() == 0.0));
            let svd = svd(&a, if full { SingularVectors::All } else { SingularVectors::Some });
            let (u, v) = (svd.u(), svd.v());
            let s: Vec<T> = svd.values.iter().map(|&x| T::real(x)).collect();
            close(&product(&product(u, &diagonal(u.cols, v.cols, &s)), &v.adjoint()), &a);
            unitary(u);
            unitary(v);
            assert!(svd.values.windows(2).all(|w| w[0] >= w[1]));
        }
        let made = reflections(a.clone());
        let q = q_of(&made.vectors, &made.factors, m);
        for adjoint in [false, true] {
            let own = if adjoint { q.adjoint() } else { q.clone() };
            let mut c = matrix::<T>(m, 2);
            apply_q(&made.vectors, &made.factors, &mut c, true, adjoint);
            close(&c, &product(&own, &matrix(m, 2)));
            let mut c = matrix::<T>(2, m);
            apply_q(&made.vectors, &made.factors, &mut c, false, adjoint);
            close(&c, &product(&matrix(2, m), &own));
        }
    }
    for n in [4, 32, 75] {
        let m = matrix::<T>(n, n);
        let mut a = product(&m, &m.adjoint());
        let (l, info) = cholesky(&a);
        assert_eq!(info, 0);
        close(&product(&l, &l.adjoint()), &a);
        assert!((0..n).all(|r| (r + 1..n).all(|c| l[(r, c)] == T::ZERO)));
        // The columns before a pivot that is not positive are the factor's.
        a[(n / 2, n / 2)] = T::real(-1.0);
        let (part, info) = cholesky(&a);
        assert_eq!(info, n as i64 / 2 + 1);
        assert!((0..n / 2).all(|c| (0..n / 2).all(|r| part[(r, c)] == l[(r, c)])));
    }
    assert_eq!(cholesky(&matrix_of(1, 1, |_| T::real(-1.0))).1, 1);
}

fn eigenvectors<T: Made>() {
    for n in [1, 2, 3, 5, 40] {
        let m = matrix::<T>(n, n);
        // One of full rank, a projection of few eigenvalues, zeros, and one that is diagonal in blocks.
        let full = product(&m, &m.adjoint());
        let q = qr(&matrix::<T>(n, n.div_ceil(2)), false).0;
        let mut blocks = full.clone();
        (0..n * n).filter(|i| (i / n < n / 2) != (i % n < n / 2)).for_each(|i| blocks.data[i] = T::ZERO);
        for a in [full, product(&q, &q.adjoint()), Matrix::zeros(n, n), blocks] {
            let (values, v) = eigh(&a, false, true);
            assert!(values.windows(2).all(|w| w[0] <= w[1]));
            let alone = eigh(&a, false, false).0;
            assert!(values.iter().zip(&alone).all(|(x, y)| (x - y).abs() < 1e-9));
            let values: Vec<T> = values.iter().map(|&x| T::real(x)).collect();
            close(&product(&a, &v), &product(&v, &diagonal(n, n, &values)));
            unitary(&v);
            let other = eigh(&a, true, true).0;
            assert!(other.iter().zip(&values).all(|(x, y)| (x - y.re()).abs() < 1e-9));
            // The size of the numbers does not matter.
            for size in [1e-200, 1e200] {
                let mut scaled = a.clone();
                scaled.data.iter_mut().for_each(|x| *x = x.scaled(size));
                let (own, v) = eigh(&scaled, false, true);
                assert!(own.iter().zip(&values).all(|(x, y)| (x / size - y.re()).abs() < 1e-9));
                unitary(&v);
            }
        }
    }

    for n in [1, 2, 5, 12] {
        let a: Matrix<C64> = {
            let m = matrix::<T>(n, n);
            Matrix { rows: n, cols: n, data: m.data.iter().map(|x| x.to_c64()).collect() }
        };
        let made = eig(&a, !T::COMPLEX, true).unwrap();
        close(&product(&a, &made.vectors), &product(&made.vectors, &diagonal(n, n, &made.values)));
        assert_eq!(eig(&a, !T::COMPLEX, false).unwrap().values[..], made.values[..]);
        let imaginary: f64 = made.values.iter().map(|x| x.im).sum();
        assert!(T::COMPLEX || imaginary == 0.0);
    }
}

fn ldl_factors<T: Made>(hermitian: bool) {
    for n in [1, 2, 3, 7] {
        let m = matrix::<T>(n, n);
        let mut a = if hermitian { m.adjoint() } else { m.transposed() };
        (0..n * n).for_each(|i| a.data[i] += m.data[i]);
        // Zeros on the diagonal ask for pivots of two rows.
        (0..n.min(2)).filter(|_| n > 2).for_each(|i| a[(i, i)] = T::ZERO);
        let f = ldl(a.clone(), hermitian);
        assert_eq!(f.info, 0);
        let b = matrix::<T>(n, 2);
        let mut x = b.clone();
        ldl_solve(&f.ld, &f.pivots, &mut x, hermitian);
        close(&product(&a, &x), &b);
    }
    assert_eq!(ldl(Matrix::<T>::zeros(2, 2), hermitian).info, 1);
}

fn exponentials<T: Made>() {
    let a = matrix::<T>(4, 4);
    let mut less = a.clone();
    less.data.iter_mut().for_each(|x| *x = -*x);
    close(&product(&matrix_exp(&a), &matrix_exp(&less)), &Matrix::eye(4, 4));
    let d = diagonal(2, 2, &[T::real(0.5), T::real(30.0)]);
    let e = matrix_exp(&d);
    assert!((e[(0, 0)].re() - 0.5f64.exp()).abs() < 1e-13 && (e[(1, 1)].re() / 30f64.exp() - 1.0).abs() < 1e-13);
}

#[test]
fn solutions_solve() {
    solutions::<f64>();
    solutions::<C64>();
}

#[test]
fn factors_multiply_to_the_matrix() {
    factors::<f64>();
    factors::<C64>();
}

#[test]
fn eigenvectors_are_stretched() {
    eigenvectors::<f64>();
    eigenvectors::<C64>();
}

#[test]
fn blocks_of_one_and_two_rows_solve() {
    ldl_factors::<f64>(false);
    ldl_factors::<C64>(false);
    ldl_factors::<C64>(true);
}

#[test]
fn exponentials_invert() {
    exponentials::<f64>();
    exponentials::<C64>();
}

#[test]
fn matrices_of_low_rank_have_whole_bases() {
    fn holds(a: &Matrix<f64>) {
        let svd = svd(a, SingularVectors::All);
        unitary(svd.u());
        unitary(svd.v());
        let middle = diagonal(a.rows, a.cols, &svd.values);
        close(&product(&product(svd.u(), &middle), &svd.v().adjoint()), a);
        assert!(svd.values.iter().all(|&s| s >= 0.0) && svd.values.windows(2).all(|w| w[0] >= w[1]));
        let alone = super::svd(a, SingularVectors::None);
        assert!(svd.values.iter().zip(&alone.values[..]).all(|(x, y)| (x - y).abs() < 1e-9));
    }
    holds(&matrix_of(3, 2, |i| [1.0, 2.0, 2.0, 4.0, 0.0, 0.0][i]));
    holds(&Matrix::zeros(4, 3));
    holds(&Matrix::eye(3, 5));
    for rank in [1, 2, 5] {
        let a = product(&matrix::<f64>(40, rank), &matrix(rank, 30));
        holds(&a);
        holds(&a.transposed());
    }
    // Two diagonals with zeros in all places.
    for zeros in 0..512usize {
        let number = |i: usize| if zeros >> i & 1 == 1 { 0.0 } else { 1.0 + i as f64 };
        let at = |r: usize, c: usize| if r == c { number(r) } else { number(5 + r) };
        holds(&matrix_of(5, 5, |i| if i % 5 == i / 5 || i % 5 == i / 5 + 1 { at(i / 5, i % 5) } else { 0.0 }));
    }
    // Values of very different sizes, and numbers whose squares are none.
    holds(&matrix_of(6, 6, |i| if i / 6 == i % 6 { 10f64.powi(-3 * (i as i32 / 7)) } else { 0.0 }));
    for size in [1e-200, 1e200] {
        let a = matrix::<f64>(7, 4);
        let mut scaled = a.clone();
        scaled.data.iter_mut().for_each(|x| *x *= size);
        let (own, other) = (svd(&scaled, SingularVectors::None), svd(&a, SingularVectors::None));
        assert!(own.values.iter().zip(&other.values[..]).all(|(x, y)| (x / size - y).abs() < 1e-9));
    }
}

#[test]
fn what_is_not_finite_makes_all_of_it_nan() {
    for bad in [f64::NAN, f64::INFINITY] {
        let a = matrix_of(4, 4, |i| if i == 5 { bad } else { number(i) });
        let (values, v) = eigh(&a, false, true);
        assert!(values.iter().chain(&v.data[..]).all(|x| x.is_nan()));
        let svd = svd(&a, SingularVectors::Some);
        assert!(svd.values.iter().chain(&svd.u().data[..]).chain(&svd.v().data[..]).all(|x| x.is_nan()));
    }
}

#[test]
fn rows_have_the_same_bits_on_all_instruction_sets() {
    use crate::support::isa::tests::on_each;
    let a = matrix::<f64>(70, 70);
    let spd = product(&a, &a.adjoint());
    let mut first: Option<Vec<u64>> = None;
    on_each(|isa| {
        let (values, v) = eigh(&spd, false, true);
        let svd = svd(&a, SingularVectors::Some);
        let (q, _) = qr(&a, false);
        let all = values.iter().chain(&v.data[..]).chain(&svd.u().data[..]).chain(&q.data[..]);
        let all: Vec<u64> = all.map(|x| x.to_bits()).collect();
        let first = first.get_or_insert_with(|| all.clone());
        assert!(*first == all, "{isa:?}");
    });
}

#[test]
fn eigenvalues_of_real_matrices_come_in_pairs() {
    // A rotation, and a shift of four: the roots of one.
    for a in [
        matrix_of(2, 2, |i| C64::real([0.0, -1.0, 1.0, 0.0][i])),
        matrix_of(4, 4, |i| C64::real(f64::from(u8::from([4, 9, 14, 3].contains(&i))))),
        Matrix::zeros(3, 3),
    ] {
        let made = eig(&a, true, true).unwrap();
        close(&product(&a, &made.vectors), &product(&made.vectors, &diagonal(a.rows, a.rows, &made.values)));
        for (i, x) in made.values.iter().enumerate().filter(|(_, x)| x.im > 0.0) {
            assert_eq!(made.values[i + 1], x.conj());
        }
    }
    assert!(eig(&matrix_of(1, 1, |_| C64::real(f64::NAN)), true, true).is_err());
}
