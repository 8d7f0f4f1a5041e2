//! LU factorisation, its parts, and solutions with triangles.

use super::vectors::subtract;
use super::{BLOCK, Field, Matrix, matrix_room};
use crate::support::pack::{Compute, Stored, Target, pack, packed_rooms, with_compute};
use crate::support::scratch::{Temp, room};
use restride_tensor::{View, ViewMut};

/// `P A = L U`, both in one matrix, and with which row each row was exchanged (from 1, as LAPACK counts).
#[derive(Debug)]
pub struct Lu<T: Field> {
    /// Row exchanges. (Made last, and so given back first.)
    pub pivots: Temp<i64>,
    /// U, and L below its diagonal of ones.
    pub lu: Matrix<T>,
    /// The first pivot that is zero, from 1; 0 if none is.
    pub info: i64,
}

/// LU with exchanges of rows.
pub fn lu<T: Field>(a: Matrix<T>) -> Lu<T> {
    T::lu(a)
}

pub(super) fn lu_of<T: Field>(mut a: Matrix<T>) -> Lu<T> {
    let (mut pivots, mut info) = (Temp::filled(a.rows.min(a.cols), 0i64), 0);
    let (rows, cols, short) = (a.rows, a.cols, pivots.len());
    for first in (0..short).step_by(BLOCK) {
        let end = short.min(first + BLOCK);
        // The columns of the block alone, then the rows of the block, then what is left.
        for k in first..end {
            let best = (k + 1..rows).fold(k, |best, r| if a[(r, k)].size() > a[(best, k)].size() { r } else { best });
            pivots[k] = best as i64 + 1;
            if a[(best, k)] == T::ZERO {
                info = if info == 0 { k as i64 + 1 } else { info };
                continue;
            }
            a.swap_rows(k, best);
            let (above, below) = a.data.split_at_mut((k + 1) * cols);
            let from = &above[k * cols..][k..end];
            for row in below.chunks_exact_mut(cols) {
                row[k] = row[k] / from[0];
                let f = row[k];
                subtract(&mut row[k + 1..end], f, &from[1..]);
            }
        }
        for (k, r) in (first..end).flat_map(|k| (k + 1..end).map(move |r| (k, r))) {
            let f = a[(r, k)];
            let (from, to) = a.two_rows(k, r);
            subtract(&mut to[end..], f, &from[end..]);
        }
        a.subtract_product(end..rows, end..cols, first..end);
    }
    Lu { pivots, lu: a, info }
}

impl<T: Field> Lu<T> {
    /// Solves `A X = B`.
    pub fn solve(&self, mut b: Matrix<T>) -> Matrix<T> {
        for (k, &p) in self.pivots.iter().enumerate() {
            b.swap_rows(k, p as usize - 1);
        }
        triangular(&self.lu, &mut b, false, true);
        triangular(&self.lu, &mut b, true, false);
        b
    }
    /// Solves `Aᵀ X = B`.
    pub fn solve_transposed(&self, mut b: Matrix<T>) -> Matrix<T> {
        let t = self.lu.transposed();
        triangular(&t, &mut b, false, false);
        triangular(&t, &mut b, true, true);
        for (k, &p) in self.pivots.iter().enumerate().rev() {
            b.swap_rows(k, p as usize - 1);
        }
        b
    }
    /// The inverse; of a singular matrix infinities and NaN.
    pub fn inverse(&self) -> Matrix<T> {
        self.solve(Matrix::eye(self.lu.rows, self.lu.rows))
    }
    /// The determinant's sign and the logarithm of its magnitude.
    pub fn log_det(&self) -> (T, f64) {
        let mut sign = T::real(self.parity());
        let mut log = 0.0;
        for i in 0..self.lu.rows {
            let u = self.lu[(i, i)];
            sign *= if u == T::ZERO { T::ZERO } else { u.direction() };
            log += u.abs().ln();
        }
        (sign, log)
    }
    /// The determinant.
    pub fn det(&self) -> T {
        (0..self.lu.rows).fold(T::real(self.parity()), |d, i| d * self.lu[(i, i)])
    }
    fn parity(&self) -> f64 {
        let swaps = self.pivots.iter().enumerate().filter(|&(k, &p)| p != k as i64 + 1).count();
        if swaps.is_multiple_of(2) { 1.0 } else { -1.0 }
    }
}

/// Bytes of the factors of a matrix.
pub fn lu_room<T: Field>(rows: usize, cols: usize) -> usize {
    matrix_room::<T>(rows, cols) + room::<i64>(rows.min(cols))
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
    with_compute!(any lu.dtype(), T => lu_unpack_as::<T>(lu, pivots, p, l, u))
}

/// Scratch bytes of [`lu_unpack`].
pub fn lu_unpack_room(lu: Stored<'_>, pivots: Stored<'_>, outs: &[Stored<'_>]) -> usize {
    let rows = lu.1.sizes.get(lu.1.rank().saturating_sub(2)).map_or(0, |m| *m as usize);
    packed_rooms([lu, pivots]) + packed_rooms(outs.iter().copied()) + room::<usize>(rows)
}

fn lu_unpack_as<T: Compute>(
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
        target.slice().fill(T::default());
        let mut rows = Temp::filled(m, 0usize);
        for (b, p) in target.slice().chunks_exact_mut((m * m).max(1)).enumerate() {
            rows.iter_mut().enumerate().for_each(|(i, r)| *r = i);
            pivots[b * k..][..k].iter().enumerate().for_each(|(i, &p)| rows.swap(i, p as usize - 1));
            rows.iter().enumerate().for_each(|(i, &r)| p[r * m + i] = T::from_i64(1));
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
        std::cmp::Ordering::Less => T::default(),
        std::cmp::Ordering::Equal => T::from_i64(1),
        std::cmp::Ordering::Greater => x,
    });
    part(u, k, n, &|r, c, x| if r > c { T::default() } else { x });
    Ok(())
}

/// Solves `T X = B` in place of B, T being a triangle of `a`.
pub fn triangular<T: Field>(a: &Matrix<T>, b: &mut Matrix<T>, upper: bool, unit: bool) {
    T::triangular(a, b, upper, unit);
}

pub(super) fn triangular_of<T: Field>(a: &Matrix<T>, b: &mut Matrix<T>, upper: bool, unit: bool) {
    let (n, cols) = (b.rows, b.cols);
    for start in (0..n).step_by(BLOCK) {
        let done = start..n.min(start + BLOCK);
        // Rows of a block in turn, from the first or from the last one on, then all rows that are left.
        let turn = |i: usize| if upper { n - 1 - i } else { i };
        for i in done.clone() {
            let r = turn(i);
            for k in (start..i).map(turn) {
                let f = a[(r, k)];
                let (first, second) = b.two_rows(r.min(k), r.max(k));
                let (from, to) = if k < r { (first, second) } else { (second, first) };
                subtract(to, f, from);
            }
            if !unit {
                let d = a[(r, r)];
                b.data[r * cols..][..cols].iter_mut().for_each(|x| *x = *x / d);
            }
        }
        if done.end < n {
            let (rest, block) = match upper {
                true => (0..n - done.end, n - done.end..n - start),
                false => (done.end..n, done),
            };
            b.subtract_rows(a, rest, block);
        }
    }
}
