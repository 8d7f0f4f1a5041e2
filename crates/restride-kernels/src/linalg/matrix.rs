//! Row-major matrices in working memory, and batches of them.

use crate::convert::gather;
use crate::scratch::{Temp, room};
use restride_tensor::View;

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
    pub(super) fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            (0..self.cols).for_each(|c| self.data.swap(a * self.cols + c, b * self.cols + c));
        }
    }
}
