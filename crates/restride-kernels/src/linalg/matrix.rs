//! Row-major matrices in scratch, and batches of them.

use super::Field;
use crate::matmul::matmul;
use crate::support::convert::gather;
use crate::support::scratch::{Temp, room};
use restride_tensor::View;
use std::ops::Range;

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
        assert!(a.cols == b.rows && (self.rows, self.cols) == (a.rows, b.cols), "sizes of a product");
        matmul((a.rows, b.cols, a.cols), (&a.data, false), (&b.data, false), &mut self.data, false, 1);
    }
    /// Subtracts from some rows and columns the product of columns `between` of these rows with rows `between` of these columns.
    ///
    /// # Panics
    /// If a range exceeds the matrix, or `between` has one of the rows or columns.
    pub(super) fn subtract_product(&mut self, rows: Range<usize>, columns: Range<usize>, between: Range<usize>) {
        assert!(apart(&rows, &between) && apart(&columns, &between), "a product of what it is subtracted from");
        assert!(
            rows.end.max(between.end) <= self.rows && columns.end.max(between.end) <= self.cols,
            "the matrix's parts"
        );
        let cols = self.cols;
        let at = self.data.as_mut_ptr();
        let cell = |row: usize, column: usize| at.wrapping_add(row * cols + column);
        let (left, right) = (cell(rows.start, between.start), cell(between.start, columns.start));
        let to = cell(rows.start, columns.start);
        // SAFETY: parts of the matrix without a common cell, as asserted.
        unsafe { subtract_product((rows.len(), columns.len(), between.len()), (left, cols), (right, cols), (to, cols)) }
    }
    /// Subtracts from some rows the product of columns `between` of these rows of `a` with rows `between`.
    ///
    /// # Panics
    /// If a range exceeds a matrix, or `between` has one of the rows.
    pub(super) fn subtract_rows(&mut self, a: &Matrix<T>, rows: Range<usize>, between: Range<usize>) {
        assert!(apart(&rows, &between), "a product of what it is subtracted from");
        assert!(rows.end.max(between.end) <= self.rows, "the matrix's rows");
        assert!(rows.end <= a.rows && between.end <= a.cols, "parts of the left operand");
        let cols = self.cols;
        let left = a.data.as_ptr().wrapping_add(rows.start * a.cols + between.start);
        let at = self.data.as_mut_ptr();
        let (right, to) = (at.wrapping_add(between.start * cols), at.wrapping_add(rows.start * cols));
        // SAFETY: rows of both matrices, as asserted, and no row twice.
        unsafe { subtract_product((rows.len(), cols, between.len()), (left, a.cols), (right, cols), (to, cols)) }
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

fn apart(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.end <= b.start || b.end <= a.start
}

/// `c -= a b`, each an address and the distance of rows. `b` is negative meanwhile.
///
/// # Safety
/// The operands have these sizes and no common cell; `b` and `c` are the caller's alone.
unsafe fn subtract_product<T: Field>(
    (m, n, k): (usize, usize, usize),
    a: (*const T, usize),
    b: (*mut T, usize),
    c: (*mut T, usize),
) {
    let negate = || {
        for row in 0..k {
            // SAFETY: the caller's promise.
            unsafe { std::slice::from_raw_parts_mut(b.0.add(row * b.1), n) }.iter_mut().for_each(|x| *x = -*x);
        }
    };
    negate();
    let row = |step: usize| step as isize;
    // SAFETY: the caller's promise.
    unsafe {
        T::product((m, n, k), false, (a.0, row(a.1), 1), (b.0.cast_const(), row(b.1), 1), (c.0, row(c.1), 1), true, 1)
    }
    negate();
}
