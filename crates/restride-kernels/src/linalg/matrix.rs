//! Row-major matrices in scratch, and batches of them.

use super::Field;
use crate::support::convert::gather;
use crate::support::scratch::{Temp, room};
use restride_tensor::View;

/// A row-major matrix.
#[derive(Debug, PartialEq)]
pub struct Matrix<T: Field> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements, row by row.
    pub data: Temp<T>,
}

/// The room of a matrix.
pub fn matrix_room<T: Field>(rows: usize, cols: usize) -> usize {
    room::<T>(rows * cols)
}

impl<T: Field> Clone for Matrix<T> {
    fn clone(&self) -> Matrix<T> {
        Matrix { data: Temp::copied(&self.data), ..*self }
    }
}

impl<T: Field> std::ops::Index<(usize, usize)> for Matrix<T> {
    type Output = T;
    fn index(&self, (r, c): (usize, usize)) -> &T {
        &self.data[r * self.cols + c]
    }
}
impl<T: Field> std::ops::IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (r, c): (usize, usize)) -> &mut T {
        &mut self.data[r * self.cols + c]
    }
}

/// Matrices of equal sizes, one after the other.
#[derive(Debug)]
pub struct MatrixBatch<T: Field> {
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub cols: usize,
    /// Their number.
    pub count: usize,
    data: Temp<T>,
}

impl<T: Field> MatrixBatch<T> {
    /// Those in the last two dimensions.
    pub fn of(x: &View<'_>) -> MatrixBatch<T> {
        let (batch, last) = x.sizes().split_at(x.sizes().len().saturating_sub(2));
        let (rows, cols) = match *last {
            [rows, cols] => (rows as usize, cols as usize),
            [rows] => (rows as usize, 1),
            _ => (1, 1),
        };
        MatrixBatch { rows, cols, count: batch.iter().product::<i64>() as usize, data: gather::<T>(*x) }
    }
    /// The vectors in the last dimension, as matrices of one column.
    pub fn columns(x: &View<'_>) -> MatrixBatch<T> {
        let (batch, last) = x.sizes().split_at(x.sizes().len().saturating_sub(1));
        let rows = last.first().map_or(1, |&n| n as usize);
        MatrixBatch { rows, cols: 1, count: batch.iter().product::<i64>() as usize, data: gather::<T>(*x) }
    }
    /// A copy of one of them.
    ///
    /// # Panics
    /// If their number differs.
    pub fn get(&self, i: usize) -> Matrix<T> {
        let each = self.rows * self.cols;
        Matrix { rows: self.rows, cols: self.cols, data: Temp::copied(&self.data[i * each..][..each]) }
    }
}

impl<T: Field> Matrix<T> {
    /// Zeros.
    pub fn zeros(rows: usize, cols: usize) -> Matrix<T> {
        Matrix { rows, cols, data: Temp::filled(rows * cols, T::ZERO) }
    }
    /// Ones on the diagonal.
    pub fn eye(rows: usize, cols: usize) -> Matrix<T> {
        let mut m = Matrix::zeros(rows, cols);
        (0..rows.min(cols)).for_each(|i| m[(i, i)] = T::ONE);
        m
    }
    /// Rows and columns exchanged.
    pub fn transposed(&self) -> Matrix<T> {
        let mut m = Matrix::zeros(self.cols, self.rows);
        for r in 0..self.rows {
            for c in 0..self.cols {
                m[(c, r)] = self[(r, c)];
            }
        }
        m
    }
    /// The conjugate transpose.
    pub fn adjoint(&self) -> Matrix<T> {
        let mut m = self.transposed();
        m.data.iter_mut().for_each(|x| *x = x.conj());
        m
    }
    /// Overwrites the matrix with `a * b`.
    ///
    /// # Panics
    /// If sizes do not fit.
    pub fn product(&mut self, a: &Matrix<T>, b: &Matrix<T>) {
        T::product(self, a, b);
    }
    /// A row.
    pub(super) fn row(&self, r: usize) -> &[T] {
        &self.data[r * self.cols..][..self.cols]
    }
    /// Two rows, the first one before the other.
    pub(super) fn two_rows(&mut self, p: usize, q: usize) -> (&mut [T], &mut [T]) {
        let cols = self.cols;
        let (above, below) = self.data.split_at_mut(q * cols);
        (&mut above[p * cols..][..cols], &mut below[..cols])
    }
    pub(super) fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            (0..self.cols).for_each(|c| self.data.swap(a * self.cols + c, b * self.cols + c));
        }
    }
}

pub(super) fn product_of<T: Field>(out: &mut Matrix<T>, a: &Matrix<T>, b: &Matrix<T>) {
    assert!(a.cols == b.rows && (out.rows, out.cols) == (a.rows, b.cols), "sizes of a product");
    out.data.fill(T::ZERO);
    for r in 0..a.rows {
        let to = &mut out.data[r * b.cols..][..b.cols];
        for (k, &f) in a.row(r).iter().enumerate() {
            to.iter_mut().zip(b.row(k)).for_each(|(to, &x)| *to += f * x);
        }
    }
}

/// `to -= f * x`, element by element.
pub(super) fn subtract<T: Field>(to: &mut [T], f: T, x: &[T]) {
    to.iter_mut().zip(x).for_each(|(to, &x)| *to -= f * x);
}
