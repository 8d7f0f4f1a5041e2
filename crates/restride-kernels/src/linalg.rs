//! Dense linear algebra on small matrices, computed in `f64` whatever the element type.

use crate::convert::gather;
use crate::pack::{Compute, Target, pack, packed_rooms, unpack, with_compute};
use crate::scratch::{Temp, room};
use restride_tensor::{DType, Layout, View, ViewMut};

/// A row-major matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements, row by row.
    pub data: Vec<f64>,
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (r, c): (usize, usize)) -> &f64 {
        &self.data[r * self.cols + c]
    }
}
impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (r, c): (usize, usize)) -> &mut f64 {
        &mut self.data[r * self.cols + c]
    }
}

/// The matrices in the last two dimensions.
pub fn matrices(x: &View<'_>) -> Vec<Matrix> {
    let [.., rows, cols] = *x.sizes() else { return Vec::new() };
    let (rows, cols) = (rows as usize, cols as usize);
    let count = x.sizes()[..x.sizes().len() - 2].iter().product::<i64>() as usize;
    let data = gather::<f64>(*x);
    let each = rows * cols;
    (0..count).map(|i| Matrix { rows, cols, data: data[i * each..(i + 1) * each].to_vec() }).collect()
}

/// Writes numbers in row-major order, rounded to the result's type.
///
/// # Panics
/// If there are not as many as the result has elements.
pub fn write(numbers: &[f64], out: &ViewMut<'_>) {
    unpack(numbers, out);
}

/// Writes integers in row-major order.
///
/// # Panics
/// As [`write`].
pub fn write_ints(numbers: &[i64], out: &ViewMut<'_>) {
    unpack(numbers, out);
}

impl Matrix {
    /// Zeros.
    pub fn zeros(rows: usize, cols: usize) -> Matrix {
        Matrix { rows, cols, data: vec![0.0; rows * cols] }
    }
    /// Ones on the diagonal.
    pub fn eye(rows: usize, cols: usize) -> Matrix {
        let mut m = Matrix::zeros(rows, cols);
        (0..rows.min(cols)).for_each(|i| m[(i, i)] = 1.0);
        m
    }
    /// Rows and columns exchanged.
    pub fn transposed(&self) -> Matrix {
        let mut m = Matrix::zeros(self.cols, self.rows);
        for r in 0..self.rows {
            for c in 0..self.cols {
                m[(c, r)] = self[(r, c)];
            }
        }
        m
    }
    /// The first columns.
    pub fn first_columns(&self, n: usize) -> Matrix {
        let mut m = Matrix::zeros(self.rows, n);
        for r in 0..self.rows {
            for c in 0..n {
                m[(r, c)] = self[(r, c)];
            }
        }
        m
    }
    fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            (0..self.cols).for_each(|c| self.data.swap(a * self.cols + c, b * self.cols + c));
        }
    }
}

/// `P A = L U`, both in one matrix, and with which row each row was exchanged (from 1, as LAPACK counts).
#[derive(Clone, Debug)]
pub struct Lu {
    /// U, and L below its diagonal of ones.
    pub lu: Matrix,
    /// Row exchanges.
    pub pivots: Vec<i64>,
    /// The first pivot that is zero, from 1; 0 if none is.
    pub info: i64,
}

/// LU with exchanges of rows.
pub fn lu(mut a: Matrix) -> Lu {
    let (mut pivots, mut info) = (Vec::new(), 0);
    for k in 0..a.rows.min(a.cols) {
        let best = (k + 1..a.rows).fold(k, |best, r| if a[(r, k)].abs() > a[(best, k)].abs() { r } else { best });
        pivots.push(best as i64 + 1);
        if a[(best, k)] == 0.0 {
            info = if info == 0 { k as i64 + 1 } else { info };
            continue;
        }
        a.swap_rows(k, best);
        for r in k + 1..a.rows {
            let f = a[(r, k)] / a[(k, k)];
            a[(r, k)] = f;
            for c in k + 1..a.cols {
                let u = a[(k, c)];
                a[(r, c)] -= f * u;
            }
        }
    }
    Lu { lu: a, pivots, info }
}

impl Lu {
    /// Solves `A X = B`.
    pub fn solve(&self, mut b: Matrix) -> Matrix {
        for (k, &p) in self.pivots.iter().enumerate() {
            b.swap_rows(k, p as usize - 1);
        }
        triangular(&self.lu, &mut b, false, true);
        triangular(&self.lu, &mut b, true, false);
        b
    }
    /// Solves `Aᵀ X = B`.
    pub fn solve_transposed(&self, mut b: Matrix) -> Matrix {
        let t = self.lu.transposed();
        triangular(&t, &mut b, false, false);
        triangular(&t, &mut b, true, true);
        for (k, &p) in self.pivots.iter().enumerate().rev() {
            b.swap_rows(k, p as usize - 1);
        }
        b
    }
    /// The determinant's sign and the logarithm of its magnitude.
    pub fn log_det(&self) -> (f64, f64) {
        let mut sign = self.parity();
        let mut log = 0.0;
        for i in 0..self.lu.rows {
            let u = self.lu[(i, i)];
            sign *= if u == 0.0 { 0.0 } else { u.signum() };
            log += u.abs().ln();
        }
        (sign, log)
    }
    /// The determinant.
    pub fn det(&self) -> f64 {
        (0..self.lu.rows).fold(self.parity(), |d, i| d * self.lu[(i, i)])
    }
    fn parity(&self) -> f64 {
        let swaps = self.pivots.iter().enumerate().filter(|&(k, &p)| p != k as i64 + 1).count();
        if swaps.is_multiple_of(2) { 1.0 } else { -1.0 }
    }
    /// The matrix that the row exchanges are: `A = P L U`.
    pub fn permutation(&self) -> Matrix {
        let mut rows: Vec<usize> = (0..self.lu.rows).collect();
        for (k, &p) in self.pivots.iter().enumerate() {
            rows.swap(k, p as usize - 1);
        }
        let mut m = Matrix::zeros(self.lu.rows, self.lu.rows);
        rows.iter().enumerate().for_each(|(i, &r)| m[(r, i)] = 1.0);
        m
    }
}

/// The factors that [`Lu`] has in one matrix (`lu` is batches of m × n, `pivots` of the shorter side): the permutation
/// (m × m), L (m × shorter side) and U (shorter side × n), each where it is asked for.
pub fn lu_unpack(
    lu: &View<'_>,
    pivots: &View<'_>,
    p: Option<&ViewMut<'_>>,
    l: Option<&ViewMut<'_>>,
    u: Option<&ViewMut<'_>>,
) -> Result<(), String> {
    with_compute!(float lu.dtype(), T => lu_unpack_as::<T>(lu, pivots, p, l, u))
}

/// Bytes that [`lu_unpack`] takes for operands and results that lie so.
pub fn lu_unpack_room(lu: (DType, &Layout), pivots: (DType, &Layout), outs: &[(DType, &Layout)]) -> usize {
    let rows = lu.1.sizes.get(lu.1.rank().saturating_sub(2)).map_or(0, |m| *m as usize);
    packed_rooms([lu, pivots]) + packed_rooms(outs.iter().copied()) + room::<usize>(rows)
}

fn lu_unpack_as<T: Compute + num_traits::Float>(
    lu: &View<'_>,
    pivots: &View<'_>,
    p: Option<&ViewMut<'_>>,
    l: Option<&ViewMut<'_>>,
    u: Option<&ViewMut<'_>>,
) -> Result<(), String> {
    let [.., m, n] = lu.sizes()[..] else { return Err("lu_unpack: expected matrices".into()) };
    let (m, n) = (m as usize, n as usize);
    let k = m.min(n);
    if let Some(out) = p {
        let pivots = pack::<i64>(pivots);
        if let Some(bad) = pivots.iter().find(|&&p| p < 1 || p > m as i64) {
            return Err(format!("lu_unpack: there is no row {bad} of {m}, as pivots count from 1"));
        }
        let mut target = Target::<T>::new(out);
        target.slice().fill(T::zero());
        let mut rows = Temp::filled(m, 0usize);
        for (b, p) in target.slice().chunks_exact_mut((m * m).max(1)).enumerate() {
            rows.iter_mut().enumerate().for_each(|(i, r)| *r = i);
            pivots[b * k..][..k].iter().enumerate().for_each(|(i, &p)| rows.swap(i, p as usize - 1));
            rows.iter().enumerate().for_each(|(i, &r)| p[r * m + i] = T::one());
        }
        target.finish();
    }
    let lu = pack::<T>(lu);
    let part = |out: Option<&ViewMut<'_>>, rows: usize, cols: usize, of: &dyn Fn(usize, usize, T) -> T| {
        let Some(out) = out else { return };
        let mut target = Target::<T>::new(out);
        for (b, own) in target.slice().chunks_exact_mut((rows * cols).max(1)).enumerate() {
            for r in 0..rows {
                let from = &lu[(b * m + r) * n..][..n];
                own[r * cols..][..cols].iter_mut().enumerate().for_each(|(c, x)| *x = of(r, c, from[c]));
            }
        }
        target.finish();
    };
    part(l, m, k, &|r, c, x| match r.cmp(&c) {
        std::cmp::Ordering::Less => T::zero(),
        std::cmp::Ordering::Equal => T::one(),
        std::cmp::Ordering::Greater => x,
    });
    part(u, k, n, &|r, c, x| if r > c { T::zero() } else { x });
    Ok(())
}

/// Solves `T X = B` in place of B, T being a triangle of `a`.
pub fn triangular(a: &Matrix, b: &mut Matrix, upper: bool, unit: bool) {
    let n = b.rows;
    for i in 0..n {
        let r = if upper { n - 1 - i } else { i };
        let known = if upper { r + 1..n } else { 0..r };
        for k in known {
            let f = a[(r, k)];
            for c in 0..b.cols {
                let x = b[(k, c)];
                b[(r, c)] -= f * x;
            }
        }
        if !unit {
            let d = a[(r, r)];
            (0..b.cols).for_each(|c| b[(r, c)] /= d);
        }
    }
}

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
pub fn qr(mut a: Matrix, complete: bool) -> (Matrix, Matrix) {
    let (m, n) = (a.rows, a.cols);
    let k = m.min(n);
    // Reflections: vectors with a leading one, and factors.
    let mut reflections: Vec<(Vec<f64>, f64)> = Vec::new();
    for j in 0..k {
        let below: f64 = (j + 1..m).map(|r| a[(r, j)] * a[(r, j)]).sum();
        let alpha = a[(j, j)];
        if below == 0.0 {
            reflections.push((Vec::new(), 0.0));
            continue;
        }
        let beta = -(alpha * alpha + below).sqrt().copysign(alpha);
        let mut v: Vec<f64> = (j..m).map(|r| a[(r, j)] / (alpha - beta)).collect();
        v[0] = 1.0;
        let tau = (beta - alpha) / beta;
        reflect(&mut a, j, &v, tau);
        reflections.push((v, tau));
    }
    let wide = if complete { m } else { k };
    let mut q = Matrix::eye(m, wide);
    for (j, (v, tau)) in reflections.iter().enumerate().rev() {
        reflect(&mut q, j, v, *tau);
    }
    let mut r = Matrix::zeros(wide, n);
    for i in 0..wide {
        for c in i..n {
            r[(i, c)] = a[(i, c)];
        }
    }
    (q, r)
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

/// Sweeps of rotations until nothing is left to turn: far more than any matrix needs.
const SWEEPS: usize = 100;

/// Eigenvalues of a symmetric matrix (of which one triangle is read), smallest first, and their vectors as columns.
pub fn eigh(a: &Matrix, upper: bool) -> (Vec<f64>, Matrix) {
    let n = a.rows;
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
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| s[(a, a)].total_cmp(&s[(b, b)]));
    let values = order.iter().map(|&i| s[(i, i)]).collect();
    let mut vectors = Matrix::zeros(n, n);
    for (to, &from) in order.iter().enumerate() {
        (0..n).for_each(|r| vectors[(r, to)] = v[(r, from)]);
    }
    (values, vectors)
}

/// `A = U S Vᵀ`: U and V with as many columns as the shorter side (or square, if `full`), S largest first.
pub fn svd(a: &Matrix, full: bool) -> (Matrix, Vec<f64>, Matrix) {
    if a.rows < a.cols {
        let (u, s, v) = svd(&a.transposed(), full);
        return (v, s, u);
    }
    let (m, n) = (a.rows, a.cols);
    let (mut u, mut v) = (a.clone(), Matrix::eye(n, n));
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
    let norms: Vec<f64> = (0..n).map(|c| dot(&u, c, c).sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| norms[b].total_cmp(&norms[a]));
    let values: Vec<f64> = order.iter().map(|&i| norms[i]).collect();
    let least = values.first().copied().unwrap_or(0.0) * f64::EPSILON * m as f64;
    let mut left = Matrix::zeros(m, if full { m } else { n });
    let mut right = Matrix::zeros(n, n);
    let mut have = Vec::new();
    for (to, &from) in order.iter().enumerate() {
        (0..n).for_each(|r| right[(r, to)] = v[(r, from)]);
        if norms[from] > least {
            (0..m).for_each(|r| left[(r, to)] = u[(r, from)] / norms[from]);
            have.push(to);
        }
    }
    complete(&mut left, have);
    (left, values, right)
}

/// Fills the columns that are not in `have` so that all are orthonormal.
fn complete(m: &mut Matrix, mut have: Vec<usize>) {
    let mut axis = 0;
    for c in 0..m.cols {
        if have.contains(&c) {
            continue;
        }
        while axis < m.rows {
            let mut v = vec![0.0; m.rows];
            v[axis] = 1.0;
            axis += 1;
            // Twice, against what rounding leaves.
            for _ in 0..2 {
                for &h in &have {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: usize, cols: usize) -> Matrix {
        let data = (0..rows * cols).map(|i| ((i * i * i * 17 + i * 29 + 3) % 101) as f64 / 25.0 - 2.0).collect();
        Matrix { rows, cols, data }
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
                let (q, r) = qr(a.clone(), full);
                close(&product(&q, &r), &a);
                close(&product(&q.transposed(), &q), &Matrix::eye(q.cols, q.cols));
                let (u, s, v) = svd(&a, full);
                let mut d = Matrix::zeros(u.cols, v.cols);
                s.iter().enumerate().for_each(|(i, &x)| d[(i, i)] = x);
                close(&product(&product(&u, &d), &v.transposed()), &a);
                close(&product(&u.transposed(), &u), &Matrix::eye(u.cols, u.cols));
                assert!(s.windows(2).all(|w| w[0] >= w[1]));
            }
        }
        let a = product(&matrix(4, 4), &matrix(4, 4).transposed());
        let (l, info) = cholesky(&a);
        assert_eq!(info, 0);
        close(&product(&l, &l.transposed()), &a);
        assert_eq!(cholesky(&Matrix { rows: 1, cols: 1, data: vec![-1.0] }).1, 1);
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
        let a = Matrix { rows: 3, cols: 2, data: vec![1.0, 2.0, 2.0, 4.0, 0.0, 0.0] };
        let (u, s, _) = svd(&a, true);
        close(&product(&u.transposed(), &u), &Matrix::eye(3, 3));
        assert!(s[1].abs() < 1e-12);
    }
}
