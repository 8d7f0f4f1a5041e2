//! Products of complex numbers and of integers, as products of floats.
//!
//! Complex: a row on the left is read as it is in memory, real and imaginary parts in turn. A number `x + iy` on the right becomes
//! two rows of two columns, `x y` above `-y x`, while its panel is made. The sums of that product are the parts of the complex one.
//!
//! Integers: doubles hold whole numbers up to 2^53. Where no sum can exceed that, every order of summation gives the exact result.

use super::blocked::{DEPTH, Matrix, MatrixMut, SHARED, Shared, put};
use super::cells::From;
use super::panels::{Panels, Rows, Strided};
use super::tile::{Turn, turn_plain};
use super::{Gemm, blended, vector};
use crate::support::epilogue;
use crate::support::par;
use crate::support::stack::Stack;
use num_complex::Complex;
use num_traits::{Num, Zero};
use restride_tensor::{C32, C64, Scalar};
use std::ops::{Neg, Range};

/// The type of a complex number's parts.
pub(super) trait Part: Gemm + Num + Neg<Output = Self> + 'static {}
impl Part for f32 {}
impl Part for f64 {}

/// The product of a type that vectors do not hold: one multiplication after the other, but for those that floats compute.
macro_rules! plain {
    (|$x:ident, $y:ident, $z:ident| $multiply_add:expr, $floats:expr) => {
        unsafe fn product(
            size: (usize, usize, usize),
            vector: bool,
            a: Matrix<Self>,
            b: Matrix<Self>,
            c: MatrixMut<Self>,
            add: bool,
            threads: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                if vector || !$floats(size, &Strided::new(a), &Strided::new(b), c, add, threads) {
                    vector::plain(size, a, b, c, add, |$x: Self, $y: Self, $z: Self| $multiply_add, threads)
                }
            }
        }
        unsafe fn product_of<A: Rows<Self> + ?Sized, B: Panels<Self> + ?Sized>(
            size: (usize, usize, usize),
            a: &A,
            b: &B,
            c: MatrixMut<Self>,
            add: bool,
            threads: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                if !$floats(size, a, b, c, add, threads) {
                    vector::plain_of(size, a, b, c, add, |$x: Self, $y: Self, $z: Self| $multiply_add, threads)
                }
            }
        }
        unsafe fn product_by(
            size: (usize, usize, usize),
            vector: bool,
            a: &dyn Rows<Self>,
            b: &dyn Panels<Self>,
            c: MatrixMut<Self>,
            add: bool,
            threads: usize,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                if vector || !$floats(size, a, b, c, add, threads) {
                    vector::plain_of(size, a, b, c, add, |$x: Self, $y: Self, $z: Self| $multiply_add, threads)
                }
            }
        }
        fn width() -> usize {
            16
        }
        fn turn() -> Turn<Self> {
            turn_plain::<Self>
        }
    };
}

macro_rules! complex {
    ($($t:ty, |$s:ident| $cast:expr;)*) => {$(
        impl Gemm for $t {
            plain!(|x, y, z| z + x * y, complex);
            // Of an imaginary part the first product has the real part on the left.
            const SYMMETRIC: bool = false;
            blended!($t, <$t>::new(1.0, 0.0), <$t>::new(0.0, 0.0), |$s| $cast);
        }
    )*};
}
complex! {
    C32, |s| { let z = s.as_c64(); C32::new(z.re as f32, z.im as f32) };
    C64, |s| s.as_c64();
}

impl Gemm for i64 {
    plain!(|x, y, z| z.wrapping_add(x.wrapping_mul(y)), integers);
    fn blend(ab: Self, alpha: Scalar, c: Self, beta: Scalar) -> Self {
        c.wrapping_mul(beta.as_i64()).wrapping_add(alpha.as_i64().wrapping_mul(ab))
    }
}

/// Bytes of a panel of complex numbers.
const PANEL: usize = 1 << 14;
/// Rows and columns of a part of a result whose columns are apart.
const SIDE: usize = 32;

/// An operand of a type of its own, as one of any: the loops below are compiled once.
struct AnyOperand<'a, X: ?Sized>(&'a X);

impl<T: Send + Sync, A: Rows<T> + ?Sized> Rows<T> for AnyOperand<'_, A> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.0.fill(rows, depth, step, to) }
    }
    fn in_place(&self, columns: usize) -> Option<(*const T, isize)> {
        self.0.in_place(columns)
    }
}

impl<T: Send + Sync, B: Panels<T> + ?Sized> Panels<T> for AnyOperand<'_, B> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.0.fill(depth, columns, width, panel) }
    }
    fn runs(&self) -> bool {
        self.0.runs()
    }
}

/// Rows of complex numbers as rows of their parts.
struct PartRows<'a, P>(&'a dyn Rows<Complex<P>>);

impl<P: Part> Rows<P> for PartRows<'_, P> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut P) {
        // SAFETY: the caller's promise; a complex number is its two parts.
        unsafe { self.0.fill(rows, halved(depth), step / 2, to.cast()) }
    }
    fn in_place(&self, columns: usize) -> Option<(*const P, isize)> {
        self.0.in_place(columns / 2).map(|(at, step)| (at.cast(), 2 * step))
    }
}

/// The panels of a matrix of complex numbers, two rows and two columns for each number.
struct PartPanels<'a, P>(&'a dyn Panels<Complex<P>>);

impl<P: Part> Panels<P> for PartPanels<'_, P> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut P) {
        let mut numbers = Stack::<u8, PANEL>::new();
        let numbers: *mut Complex<P> = numbers.start().cast();
        let (len, wide) = (depth.len() / 2, width / 2);
        assert!(len * wide * size_of::<Complex<P>>() <= PANEL, "a panel is too wide");
        // SAFETY: the memory holds the numbers of the panel; else the caller's promise.
        unsafe {
            self.0.fill(halved(depth), halved(columns), wide, numbers);
            let numbers = std::slice::from_raw_parts(numbers, len * wide);
            let rows = std::slice::from_raw_parts_mut(panel, 2 * len * width);
            for (row, rows) in numbers.chunks_exact(wide).zip(rows.chunks_exact_mut(2 * width)) {
                let (above, below) = rows.split_at_mut(width);
                for ((z, a), b) in row.iter().zip(above.as_chunks_mut().0).zip(below.as_chunks_mut().0) {
                    (*a, *b) = ([z.re, z.im], [-z.im, z.re]);
                }
            }
        }
    }
    fn runs(&self) -> bool {
        self.0.runs()
    }
}

/// Numbers of a range of their parts.
fn halved(range: Range<usize>) -> Range<usize> {
    range.start / 2..range.end / 2
}

/// Columns of another operand from one on.
struct FromColumn<'a, P> {
    of: &'a dyn Panels<P>,
    column: usize,
}

impl<P> Panels<P> for FromColumn<'_, P> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut P) {
        // SAFETY: the caller's promise.
        unsafe { self.of.fill(depth, columns.start + self.column..columns.end + self.column, width, panel) }
    }
}

/// [`Gemm::product_of`] of complex numbers; true.
///
/// # Safety
/// As there.
pub(super) unsafe fn complex<P: Part, A: Rows<Complex<P>> + ?Sized, B: Panels<Complex<P>> + ?Sized>(
    size: (usize, usize, usize),
    a: &A,
    b: &B,
    c: MatrixMut<Complex<P>>,
    add: bool,
    threads: usize,
) -> bool {
    let (rows, panels) = (AnyOperand(a), AnyOperand(b));
    // SAFETY: the caller's promise.
    unsafe { by_parts(size, &PartRows(&rows), &PartPanels(&panels), c, add, threads) }
    true
}

/// As [`complex`], of operands in their parts.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn by_parts<P: Part>(
    (m, n, k): (usize, usize, usize),
    rows: &dyn Rows<P>,
    panels: &dyn Panels<P>,
    c: MatrixMut<Complex<P>>,
    add: bool,
    threads: usize,
) {
    let c = Shared(c);
    epilogue::take_of_product(|done| {
        let (at, row, column) = c.get();
        if column == 1 {
            // SAFETY: the caller's promise.
            let product =
                || unsafe { P::product_of((m, 2 * n, 2 * k), rows, panels, (at.cast(), 2 * row, 1), add, threads) };
            return match done {
                Some(done) => epilogue::with_product(&|rows, columns| done(rows, halved(columns)), product),
                None => product(),
            };
        }
        // The parts of a number are neighbours in the result, its columns are not: a few rows and columns at a time.
        let down = m.div_ceil(SIDE);
        par::each(if m * n * k < SHARED { 1 } else { threads }, down * n.div_ceil(SIDE), &|item| {
            let (at, row, column) = c.get();
            let part = |i: usize, len: usize| i * SIDE..len.min((i + 1) * SIDE);
            let (high, wide) = (part(item % down, m), part(item / down, n));
            let size = (high.len(), 2 * wide.len(), 2 * k);
            let rows = From(rows, high.start);
            let panels = FromColumn { of: panels, column: 2 * wide.start };
            let mut own = Stack::<Complex<P>, { SIDE * SIDE }>::new();
            let own = own.filled(high.len() * wide.len(), Complex::zero());
            // SAFETY: the caller's promise; no two parts have an element of `c`.
            unsafe {
                let to = (own.as_mut_ptr().cast(), 2 * wide.len() as isize, 1);
                P::product_of(size, &rows as &dyn Rows<P>, &panels as &dyn Panels<P>, to, false, 1);
                for (sums, i) in own.chunks_exact(wide.len()).zip(high) {
                    for (&sum, j) in sums.iter().zip(wide.clone()) {
                        put(at.offset(i as isize * row + j as isize * column), sum, add);
                    }
                }
            }
        });
    });
}

/// Rows of integers as doubles.
struct DoubleRows<'a>(&'a dyn Rows<i64>);

impl Rows<f64> for DoubleRows<'_> {
    unsafe fn fill(&self, rows: Range<usize>, depth: Range<usize>, step: usize, to: *mut f64) {
        // SAFETY: the caller's promise; an integer has as many bytes as a double.
        unsafe {
            self.0.fill(rows.clone(), depth.clone(), step, to.cast());
            (0..rows.len()).for_each(|i| to_doubles(to.add(i * step), depth.len()));
        }
    }
}

/// Panels of integers as doubles.
struct DoublePanels<'a>(&'a dyn Panels<i64>);

impl Panels<f64> for DoublePanels<'_> {
    unsafe fn fill(&self, depth: Range<usize>, columns: Range<usize>, width: usize, panel: *mut f64) {
        // SAFETY: as for rows.
        unsafe {
            self.0.fill(depth.clone(), columns, width, panel.cast());
            to_doubles(panel, depth.len() * width);
        }
    }
}

/// Converts integers in their own memory.
///
/// # Safety
/// `n` integers are there, readable and writable.
unsafe fn to_doubles(at: *mut f64, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { at.add(i).write(at.add(i).cast::<i64>().read() as f64) }
    }
}

/// Products of fewer multiplications are not worth a look at the operands.
const LEAST: usize = 1 << 12;

/// `c = a b` of integers whose sums doubles hold exactly. Returns false without a write to `c` if they might not.
///
/// # Safety
/// As [`Gemm::product_of`].
pub(super) unsafe fn integers<A: Rows<i64> + ?Sized, B: Panels<i64> + ?Sized>(
    size: (usize, usize, usize),
    a: &A,
    b: &B,
    c: MatrixMut<i64>,
    add: bool,
    threads: usize,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { by_doubles(size, &AnyOperand(a), &AnyOperand(b), c, add, threads) }
}

/// As [`integers`], of any operands.
///
/// # Safety
/// As there.
#[inline(never)]
unsafe fn by_doubles(
    (m, n, k): (usize, usize, usize),
    a: &dyn Rows<i64>,
    b: &dyn Panels<i64>,
    c: MatrixMut<i64>,
    add: bool,
    threads: usize,
) -> bool {
    if add || m * n * k < LEAST {
        return false;
    }
    const WIDE: usize = 16;
    let most = |numbers: &[i64]| numbers.iter().fold(0, |most, x| x.unsigned_abs().max(most));
    let mut numbers = Stack::<i64, { DEPTH * WIDE }>::new();
    let (mut left, mut right) = (0, 0);
    for first in (0..k).step_by(DEPTH) {
        let depth = first..k.min(first + DEPTH);
        for i in (0..m).step_by(WIDE) {
            let rows = i..m.min(i + WIDE);
            let numbers = numbers.filled(rows.len() * depth.len(), 0);
            // SAFETY: the memory holds the numbers; else the caller's promise.
            unsafe { a.fill(rows, depth.clone(), depth.len(), numbers.as_mut_ptr()) }
            left = most(numbers).max(left);
        }
        for j in (0..n).step_by(WIDE) {
            let columns = j..n.min(j + WIDE);
            let numbers = numbers.filled(depth.len() * columns.len(), 0);
            // SAFETY: as above.
            unsafe { b.fill(depth.clone(), columns.clone(), columns.len(), numbers.as_mut_ptr()) }
            right = most(numbers).max(right);
        }
    }
    let bound = (u128::from(left) * u128::from(right)).saturating_mul(k as u128);
    if bound > 1 << f64::MANTISSA_DIGITS {
        return false;
    }
    let (rows, panels) = (DoubleRows(a), DoublePanels(b));
    let (rows, panels): (&dyn Rows<f64>, &dyn Panels<f64>) = (&rows, &panels);
    // SAFETY: the caller's promise.
    unsafe { f64::product_of((m, n, k), rows, panels, (c.0.cast(), c.1, c.2), false, threads) };
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let cell = c.0.wrapping_offset(i as isize * c.1 + j as isize * c.2);
        // SAFETY: an element of the result, which holds a double.
        unsafe { cell.write(cell.cast::<f64>().read() as i64) }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::tests::relaid_as;
    use super::super::{Added, product};
    use super::*;
    use crate::support::convert::{Compute, gather};
    use restride_tensor::{DType, Layout};

    const SIZES: [(usize, usize, usize); 9] = [
        (1, 1, 1),
        (1, 40, 70),
        (40, 1, 70),
        (2, 3, 1),
        (5, 7, 0),
        (33, 35, 130),
        (17, 70, 300),
        (70, 9, 257),
        (30, 30, 30),
    ];

    /// The product of operands in many layouts, by one thread and by two: always the same.
    fn products<T: Compute>(
        dtype: DType,
        (m, n, k): (usize, usize, usize),
        number: impl Fn(usize) -> T,
        same: impl Fn(&T, &T) -> bool,
    ) -> (Vec<T>, Vec<T>, Vec<T>) {
        let a: Vec<T> = (0..m * k).map(&number).collect();
        let b: Vec<T> = (0..k * n).map(|i| number(i + 7)).collect();
        let mut first: Option<Vec<T>> = None;
        for how in 0..8 {
            let x = relaid_as(dtype, &a, &[m as i64, k as i64], how);
            let y = relaid_as(dtype, &b, &[k as i64, n as i64], how / 2 + how % 2 * 4);
            for (batch, result) in [(false, how ^ 1), (true, 0), (true, 1)] {
                let sizes = [1, m as i64, n as i64];
                let out = relaid_as(dtype, &vec![T::default(); m * n], &sizes[usize::from(!batch)..], result);
                let (x, y) = (x.read(), y.read());
                let wider = |l: &Layout| if batch { l.unsqueeze(0).unwrap() } else { l.clone() };
                let (lx, ly) = (wider(x.view().layout()), wider(y.view().layout()));
                // SAFETY: the same elements.
                let (x, y) = unsafe { (x.view().with_layout(&lx), y.view().with_layout(&ly)) };
                product(&x, &y, false, &Added::NONE, &out.write().view_mut(), 1 + how % 2).unwrap();
                let got = gather::<T>(out.read().view()).to_vec();
                let first = first.get_or_insert_with(|| got.clone());
                assert!(first.iter().zip(&got).all(|(a, b)| same(a, b)), "{dtype:?} {m} {n} {k} {how} {batch}");
            }
        }
        (a, b, first.unwrap())
    }

    #[test]
    fn complex_products_are_right_in_all_layouts_and_have_the_same_bits() {
        let number = |i: usize| {
            let part = |i: usize| ((i * 7919) % 1013) as f64 / 500.0 - 1.0;
            C64::new(part(i), part(3 * i + 1))
        };
        for (m, n, k) in SIZES {
            let same = |a: &C64, b: &C64| a.re.to_bits() == b.re.to_bits() && a.im.to_bits() == b.im.to_bits();
            let (a, b, c) = products(DType::C128, (m, n, k), number, same);
            let single = |i| number(i).to_c32();
            let same = |a: &C32, b: &C32| a.re.to_bits() == b.re.to_bits() && a.im.to_bits() == b.im.to_bits();
            let (_, _, singles) = products(DType::C64, (m, n, k), single, same);
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let want: C64 = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
                assert!((want - c[i * n + j]).norm() < 1e-12 * (k + 1) as f64, "{m} {n} {k}");
                assert!((want - singles[i * n + j].to_c64()).norm() < 1e-5 * (k + 1) as f64, "{m} {n} {k}");
            }
        }
    }

    #[test]
    fn integer_products_are_exact_and_wrap() {
        for most in [100, 1 << 22, 1 << 24, 1 << 40, i64::MAX] {
            for (m, n, k) in SIZES {
                let number = |i: usize| (i as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64) % most;
                let (a, b, c) = products(DType::I64, (m, n, k), number, |a, b| a == b);
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let term = |p: usize| a[i * k + p].wrapping_mul(b[p * n + j]);
                    let want = (0..k).fold(0i64, |sum, p| sum.wrapping_add(term(p)));
                    assert_eq!(c[i * n + j], want, "{m} {n} {k} {most}");
                }
            }
        }
    }

    #[test]
    fn sums_are_added_to_complex_results() {
        let a: Vec<C64> = (0..20 * 30).map(|i| C64::new(i as f64, -1.0)).collect();
        let mut c = vec![C64::new(0.5, 2.0); 400];
        let mut want = vec![C64::ZERO; 400];
        super::super::matmul((20, 20, 30), (&a, false), (&a, true), &mut c, true, 1);
        super::super::matmul((20, 20, 30), (&a, false), (&a, true), &mut want, false, 1);
        assert!(c.iter().zip(&want).all(|(c, w)| *c == C64::new(0.5, 2.0) + w));
    }
}
