//! Dense linear algebra on small matrices, computed in `f64` whatever the element type.
//!
//! Matrices lie in working memory, which is given back from its end: what a function returns is made before what it needs
//! on the way, and what it takes over was made before that.

use crate::convert::gather;
use crate::pack::{Compute, Target, pack, packed_rooms, with_compute};
use crate::scratch::{Temp, room};
use restride_tensor::{DType, Layout, View, ViewMut};

/// A row-major matrix.
#[derive(Debug, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements, row by row.
    pub data: Temp<f64>,
}

/// The room of a matrix.
pub fn matrix_room(rows: usize, cols: usize) -> usize {
    room::<f64>(rows * cols)
}

impl Clone for Matrix {
    fn clone(&self) -> Matrix {
        Matrix { data: Temp::copied(&self.data), ..*self }
    }
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

/// Matrices of equal sizes, one after the other.
#[derive(Debug)]
pub struct Matrices {
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub cols: usize,
    /// How many there are.
    pub count: usize,
    data: Temp<f64>,
}

impl Matrices {
    /// Those in the last two dimensions.
    pub fn of(x: &View<'_>) -> Matrices {
        let (batch, last) = x.sizes().split_at(x.sizes().len().saturating_sub(2));
        let (rows, cols) = match *last {
            [rows, cols] => (rows as usize, cols as usize),
            [rows] => (rows as usize, 1),
            _ => (1, 1),
        };
        Matrices { rows, cols, count: batch.iter().product::<i64>() as usize, data: gather::<f64>(*x) }
    }
    /// The vectors in the last dimension, as matrices of one column.
    pub fn columns(x: &View<'_>) -> Matrices {
        let rows = x.sizes().last().map_or(1, |&n| n as usize);
        Matrices { rows, cols: 1, count: x.numel() / rows.max(1), data: gather::<f64>(*x) }
    }
    /// A copy of one of them.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn get(&self, i: usize) -> Matrix {
        let each = self.rows * self.cols;
        Matrix { rows: self.rows, cols: self.cols, data: Temp::copied(&self.data[i * each..][..each]) }
    }
}

impl Matrix {
    /// Zeros.
    pub fn zeros(rows: usize, cols: usize) -> Matrix {
        Matrix { rows, cols, data: Temp::filled(rows * cols, 0.0) }
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
    fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            (0..self.cols).for_each(|c| self.data.swap(a * self.cols + c, b * self.cols + c));
        }
    }
}

/// `P A = L U`, both in one matrix, and with which row each row was exchanged (from 1, as LAPACK counts).
#[derive(Debug)]
pub struct Lu {
    /// Row exchanges. (Made last, and so given back first.)
    pub pivots: Temp<i64>,
    /// U, and L below its diagonal of ones.
    pub lu: Matrix,
    /// The first pivot that is zero, from 1; 0 if none is.
    pub info: i64,
}

/// LU with exchanges of rows.
pub fn lu(mut a: Matrix) -> Lu {
    let (mut pivots, mut info) = (Temp::filled(a.rows.min(a.cols), 0i64), 0);
    for k in 0..pivots.len() {
        let best = (k + 1..a.rows).fold(k, |best, r| if a[(r, k)].abs() > a[(best, k)].abs() { r } else { best });
        pivots[k] = best as i64 + 1;
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
    Lu { pivots, lu: a, info }
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
}

/// Bytes of the factors of a matrix.
pub fn lu_room(rows: usize, cols: usize) -> usize {
    matrix_room(rows, cols) + room::<i64>(rows.min(cols))
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
