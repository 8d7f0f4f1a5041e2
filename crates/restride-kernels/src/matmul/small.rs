//! Batches of products of a few terms and columns, such as those of rotations and of points: nothing is packed, each product is a
//! few instructions.
//!
//! The bits are those of `blocked.rs` and, where one side is a vector, of `vector.rs`.

use super::blocked::{Matrix, MatrixMut};
use super::is_vector;
use super::lanes::Scalar;
use super::vector::{LANES, sum_of_lanes};
use crate::support::array;
use crate::support::isa::{Isa, Work, isa, run};
use num_traits::Float;

/// Terms and columns of a product that is computed here, at most.
const MOST: usize = 4;
/// And its rows.
const ROWS: usize = 16;

/// Whether products of this size are computed here.
pub fn is_small((m, n, k): (usize, usize, usize)) -> bool {
    let (m, n) = if m == 1 { (n, m) } else { (m, n) };
    (1..=MOST).contains(&n) && (2..=MOST).contains(&k) && m <= ROWS
}

/// Products one after the other: the first one's operands and result, and how far the next one's are.
pub struct EachProduct<T> {
    pub size: (usize, usize, usize),
    pub a: (Matrix<T>, isize),
    pub b: (Matrix<T>, isize),
    pub c: (MatrixMut<T>, isize),
    pub count: usize,
}

impl<T: Scalar + Float> EachProduct<T> {
    /// Computes them.
    ///
    /// # Safety
    /// [`is_small`] holds, all elements that sizes and distances reach are readable, those of the results writable, different cells
    /// that no other thread uses.
    pub unsafe fn run(self) {
        let vector = is_vector(self.size.0, self.size.1);
        let this = if self.size.0 == 1 { self.transposed() } else { self };
        run(ProductsInTurn { of: this, vector, fused: isa() != Isa::Baseline });
    }

    fn transposed(self) -> Self {
        let turn = |m: Matrix<T>| (m.0, m.2, m.1);
        let ((m, n, k), (c, c_next)) = (self.size, self.c);
        EachProduct {
            size: (n, m, k),
            a: (turn(self.b.0), self.b.1),
            b: (turn(self.a.0), self.a.1),
            c: ((c.0, c.2, c.1), c_next),
            count: self.count,
        }
    }
}

/// Made by [`EachProduct::run`], whose caller promises what the loops need.
struct ProductsInTurn<T> {
    of: EachProduct<T>,
    vector: bool,
    /// Whether the processor's tiles multiply and add at once.
    fused: bool,
}

impl<T: Scalar + Float> ProductsInTurn<T> {
    #[inline(always)]
    fn columns<const N: usize>(&self) {
        match self.of.size.2 {
            2 => self.with::<N, 2>(),
            3 => self.with::<N, 3>(),
            4 => self.with::<N, 4>(),
            k => unreachable!("products of {k} terms are not small"),
        }
    }

    #[inline(always)]
    fn with<const N: usize, const K: usize>(&self) {
        match (self.vector, self.fused) {
            (true, _) => self.each::<N, K>(|x, y: [[T; N]; K]| {
                array::from_fn(|j| {
                    let mut lanes = [T::zero(); LANES];
                    for p in 0..K {
                        lanes[p] = lanes[p] + x[p] * y[p][j];
                    }
                    sum_of_lanes(lanes)
                })
            }),
            (false, true) => self.each::<N, K>(|x, y: [[T; N]; K]| {
                array::from_fn(|j| (0..K).fold(T::zero(), |sum, p| x[p].mul_add(y[p][j], sum)))
            }),
            (false, false) => self.each::<N, K>(|x, y: [[T; N]; K]| {
                array::from_fn(|j| (0..K).fold(T::zero(), |sum, p| sum.plus_product(x[p], y[p][j])))
            }),
        }
    }

    #[inline(always)]
    fn each<const N: usize, const K: usize>(&self, row: impl Fn([T; K], [[T; N]; K]) -> [T; N]) {
        let EachProduct { size: (m, ..), a, b, c, count } = &self.of;
        for i in 0..*count as isize {
            let (a, b, c) =
                (a.0.0.wrapping_offset(i * a.1), b.0.0.wrapping_offset(i * b.1), c.0.0.wrapping_offset(i * c.1));
            let (da, db, dc) = (&self.of.a.0, &self.of.b.0, &self.of.c.0);
            let right = array::from_fn(|p| {
                array::from_fn(|j| {
                    let cell = b.wrapping_offset(p as isize * db.1 + j as isize * db.2);
                    // SAFETY: an element of the operand, as the caller of `run` promised.
                    unsafe { cell.read() }
                })
            });
            for r in 0..*m as isize {
                // SAFETY: as above.
                let left = array::from_fn(|p| unsafe { a.wrapping_offset(r * da.1 + p as isize * da.2).read() });
                for (j, x) in row(left, right).into_iter().enumerate() {
                    // SAFETY: an element of the result, likewise.
                    unsafe { c.wrapping_offset(r * dc.1 + j as isize * dc.2).write(x) };
                }
            }
        }
    }
}

impl<T: Scalar + Float> Work for ProductsInTurn<T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        match self.of.size.1 {
            1 => self.columns::<1>(),
            2 => self.columns::<2>(),
            3 => self.columns::<3>(),
            4 => self.columns::<4>(),
            n => unreachable!("products of {n} columns are not small"),
        }
    }
}
