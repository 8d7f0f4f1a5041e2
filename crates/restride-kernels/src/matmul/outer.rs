//! Products of a column with a row: each element of the result is one product, stored in the order of the memory.
//!
//! The bits are those of `blocked.rs`: the product is added to zero, at once where the processor's tiles do so.

use super::blocked::{Matrix, MatrixMut, PART, SHARED, Shared};
use super::lanes::Scalar;
use crate::support::epilogue;
use crate::support::isa::{Isa, Work, isa, run};
use crate::support::par;

/// Fewest columns of a row that is written by itself.
const COLUMNS: usize = 16;

/// A number that products of columns with rows are computed of.
pub trait OuterFactor: Scalar {
    /// `x y`, rounded once.
    fn fused(x: Self, y: Self) -> Self;
}
macro_rules! factor {
    ($($t:ty),*) => {$(
        impl OuterFactor for $t {
            #[inline(always)]
            fn fused(x: Self, y: Self) -> Self {
                x.mul_add(y, 0.0)
            }
        }
    )*};
}
factor!(f32, f64);

/// Some rows of a product.
struct RowsOf<T> {
    rows: std::ops::Range<usize>,
    columns: usize,
    /// The column, and the distance of its elements.
    left: (*const T, isize),
    right: *const T,
    /// The result, and the distance of its rows.
    to: (*mut T, isize),
    add: bool,
}

impl<T: OuterFactor> RowsOf<T> {
    /// # Safety
    /// As [`outer`].
    #[inline(always)]
    unsafe fn each(&self, product: impl Fn(T, T) -> T) {
        for i in self.rows.clone() {
            // SAFETY: the caller's promise: a row of the result, which nothing else uses, and the operands' elements.
            let (x, row, right) = unsafe {
                let row = self.to.0.offset(i as isize * self.to.1);
                let row = std::slice::from_raw_parts_mut(row, self.columns);
                let right = std::slice::from_raw_parts(self.right, self.columns);
                (self.left.0.offset(i as isize * self.left.1).read(), row, right)
            };
            match self.add {
                true => row.iter_mut().zip(right).for_each(|(c, &y)| *c = *c + product(x, y)),
                false => row.iter_mut().zip(right).for_each(|(c, &y)| *c = product(x, y)),
            }
        }
    }
}

impl<T: OuterFactor> Work for (RowsOf<T>, bool) {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        // SAFETY: `outer`'s callers promise it.
        unsafe {
            match self.1 {
                true => self.0.each(T::fused),
                false => self.0.each(|x, y| T::zero().plus_product(x, y)),
            }
        }
    }
}

/// `c = a b`, or `c += a b` where `add`, of a column of `m` and a row of `n` elements; `false`, and nothing is done, where neither
/// the rows nor the columns of the result are runs, or they are short.
///
/// # Safety
/// All elements that sizes and strides reach are readable, those of `c` writable, different cells that no other thread uses and that
/// are no operand's.
pub unsafe fn outer<T: OuterFactor>(
    (m, n): (usize, usize),
    a: Matrix<T>,
    b: Matrix<T>,
    c: MatrixMut<T>,
    add: bool,
    threads: usize,
) -> bool {
    let by_rows = c.2 == 1 && b.2 == 1 && n >= COLUMNS;
    let by_columns = c.1 == 1 && a.1 == 1 && m >= COLUMNS;
    if !by_rows && !by_columns {
        return false;
    }
    let (rows, columns) = if by_rows { (m, n) } else { (n, m) };
    let (left, right, to) = match by_rows {
        true => ((a.0, a.1), b.0, (c.0, c.1)),
        false => ((b.0, b.2), a.0, (c.0, c.2)),
    };
    let fused = isa() != Isa::Baseline;
    let part = (PART / (columns * size_of::<T>())).max(1);
    let threads = if m * n < SHARED { 1 } else { threads };
    let shared = Shared((left, right, to));
    epilogue::take_of_product(|done| {
        par::each(threads, rows.div_ceil(part), &|i| {
            let (left, right, to) = shared.get();
            let rows = i * part..rows.min((i + 1) * part);
            run((RowsOf { rows: rows.clone(), columns, left, right, to, add }, fused));
            if let Some(done) = done {
                let all = 0..columns;
                if by_rows { done(rows, all) } else { done(all, rows) }
            }
        });
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul::panels::Strided;
    use crate::matmul::{blocked, tile};
    use crate::support::isa::tests::on_each;
    use std::sync::Mutex;

    fn values(n: usize, seed: usize) -> Vec<f32> {
        let special = [0.0, -0.0, f32::INFINITY, f32::NAN, 1e-30, -1e-30, f32::MIN_POSITIVE, -3.0, f32::MAX];
        (0..n).map(|i| if i % 5 == seed % 5 { special[(i + seed) % 9] } else { (i as f32 - 7.3) * 1.37 }).collect()
    }

    /// Bits; all NaN are one.
    fn bits(x: &[f32]) -> Vec<u32> {
        x.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect()
    }

    #[test]
    fn bits_are_those_of_blocks() {
        on_each(|_| {
            for (m, n) in [(16, 16), (1, 40), (40, 2), (33, 65), (300, 517)] {
                let (a, b, start) = (values(2 * m, 1), values(n, 3), values(m * n, 2));
                // Rows that are runs, and columns that are.
                for (row, column) in [(n as isize, 1), (1, m as isize)] {
                    // A column with gaps has no run for a result of columns.
                    let gap = if column == 1 { 2 } else { 1 };
                    for add in [false, true] {
                        let (mut have, mut want) = (start.clone(), start.clone());
                        let (x, y) = ((a.as_ptr(), gap, 1), (b.as_ptr(), n as isize, 1));
                        // SAFETY: the vectors have these sizes.
                        let done = unsafe { outer((m, n), x, y, (have.as_mut_ptr(), row, column), add, 2) };
                        let run = if column == 1 { n } else { m };
                        assert_eq!(done, run >= COLUMNS, "{m} {n} {column}");
                        if !done {
                            assert_eq!(bits(&have), bits(&start));
                            continue;
                        }
                        let c = (want.as_mut_ptr(), row, column);
                        // SAFETY: as above.
                        unsafe {
                            let (x, y) = (Strided::new(x), Strided::new(y));
                            blocked::product(tile::kernels_f32(), (m, n, 1), &x, &y, c, add, 1);
                        }
                        assert_eq!(bits(&have), bits(&want), "{m} {n} {column} {add}");
                    }
                }
            }
        });
    }

    #[test]
    fn every_part_is_finished_once() {
        let (m, n) = (700, 300);
        let (a, b) = (values(m, 1), values(n, 2));
        for by_rows in [true, false] {
            let mut c = vec![0.0f32; m * n];
            let (row, column) = if by_rows { (n as isize, 1) } else { (1, m as isize) };
            let seen = Mutex::new(vec![0u8; m * n]);
            let done = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
                let mut seen = seen.lock().unwrap();
                rows.for_each(|i| columns.clone().for_each(|j| seen[i * n + j] += 1));
            };
            let c = c.as_mut_ptr();
            epilogue::with_product(&done, || {
                // SAFETY: the vectors have these sizes.
                let done = unsafe { outer((m, n), (a.as_ptr(), 1, 1), (b.as_ptr(), 1, 1), (c, row, column), false, 3) };
                assert!(done);
            });
            assert!(seen.into_inner().unwrap().iter().all(|n| *n == 1));
        }
    }
}
