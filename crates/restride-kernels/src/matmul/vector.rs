//! Products with a vector, which are sums in eight lanes, and products of types that no vectors hold.
//!
//! A product with a vector sums in [`LANES`] lanes whichever way the matrix lies.

use super::blocked::{DEPTH, Matrix, MatrixMut, SHARED, Shared};
use super::panels::{Panels, Rows};
use crate::support::par;
use num_traits::Zero;
use std::ops::{Add, Mul};

/// Partial sums of a product with a vector: term `p` is in sum `p % LANES`.
const LANES: usize = 8;

/// `c[j] = Σ a[p] b[p][j]`, or `+=` where `add`, for `n` columns of `k` elements. `a` and `c` are an address and a distance.
///
/// # Safety
/// As [`product`](super::blocked::product).
pub unsafe fn vector<T: Copy + Zero + Send + Sync + Add<Output = T> + Mul<Output = T>>(
    (n, k): (usize, usize),
    a: (*const T, isize),
    b: Matrix<T>,
    c: (*mut T, isize),
    add: bool,
    threads: usize,
) {
    const PART: usize = 64;
    let threads = if n * k < SHARED { 1 } else { threads };
    let shared = Shared((a, b, c));
    par::each(threads, n.div_ceil(PART), &|i| {
        let (a, b, c) = shared.get();
        let (first, len) = (i * PART, PART.min(n - i * PART));
        // SAFETY: the caller's promise; parts do not share elements of `c`.
        unsafe {
            let b = (b.0.offset(first as isize * b.2), b.1, b.2);
            let c = (c.0.offset(first as isize * c.1), c.1);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                return columns_avx2((len, k), (a.0, a.1), b, c, add);
            }
            columns((len, k), (a.0, a.1), b, c, add);
        }
    });
}

/// As [`columns`], with wider vectors: the operations are the same.
///
/// # Safety
/// As [`vector`], on a machine that has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn columns_avx2<T: Copy + Zero + Add<Output = T> + Mul<Output = T>>(
    size: (usize, usize),
    a: (*const T, isize),
    b: Matrix<T>,
    c: (*mut T, isize),
    add: bool,
) {
    // SAFETY: the caller's promise.
    unsafe { columns(size, a, b, c, add) }
}

/// # Safety
/// As [`vector`].
#[inline(always)]
unsafe fn columns<T: Copy + Zero + Add<Output = T> + Mul<Output = T>>(
    (n, k): (usize, usize),
    a: (*const T, isize),
    b: Matrix<T>,
    c: (*mut T, isize),
    add: bool,
) {
    /// Columns computed at a time if adjacent in memory.
    const SIDE: usize = 8;
    let put = |j: usize, lanes: [T; LANES]| {
        let sum = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
        // SAFETY: the caller's promise.
        unsafe {
            let cell = c.0.offset(j as isize * c.1);
            cell.write(if add { cell.read() + sum } else { sum });
        }
    };
    let whole = k / LANES * LANES;
    let mut j = 0;
    // SAFETY: the caller's promise: all of these are elements of the operands.
    unsafe {
        let factor = |p: usize| a.0.offset(p as isize * a.1).read();
        let term = |p: usize, j: usize| b.0.offset(p as isize * b.1 + j as isize * b.2).read();
        if b.1 == 1 && a.1 == 1 {
            // Four columns at once, each a run.
            while j < n {
                let many = 4.min(n - j);
                let mut sums = [[T::zero(); LANES]; 4];
                let run = |i: usize| b.0.offset((j + i.min(many - 1)) as isize * b.2);
                let runs = [run(0), run(1), run(2), run(3)];
                for p in (0..whole).step_by(LANES) {
                    let x = a.0.add(p).cast::<[T; LANES]>().read_unaligned();
                    for (sum, run) in sums.iter_mut().zip(runs) {
                        let y = run.add(p).cast::<[T; LANES]>().read_unaligned();
                        for l in 0..LANES {
                            sum[l] = sum[l] + x[l] * y[l];
                        }
                    }
                }
                for (i, mut sum) in sums.into_iter().enumerate().take(many) {
                    for p in whole..k {
                        sum[p - whole] = sum[p - whole] + factor(p) * term(p, j + i);
                    }
                    put(j + i, sum);
                }
                j += many;
            }
        }
        while b.2 == 1 && j + SIDE <= n {
            // `sums[lane][column]`.
            let mut sums = [[T::zero(); SIDE]; LANES];
            let from = b.0.add(j);
            for p in (0..k).step_by(LANES) {
                for (l, sum) in sums.iter_mut().enumerate().take(k - p) {
                    let x = factor(p + l);
                    let y = from.offset((p + l) as isize * b.1).cast::<[T; SIDE]>().read_unaligned();
                    for i in 0..SIDE {
                        sum[i] = sum[i] + x * y[i];
                    }
                }
            }
            let across = (0..SIDE).map(|i| std::array::from_fn(|l| sums[l][i]));
            across.enumerate().for_each(|(i, sum)| put(j + i, sum));
            j += SIDE;
        }
        while j < n {
            let mut sum = [T::zero(); LANES];
            for p in 0..k {
                sum[p % LANES] = sum[p % LANES] + factor(p) * term(p, j);
            }
            put(j, sum);
            j += 1;
        }
    }
}

/// Any product, from first to last, for types that have no kernels of their own.
///
/// # Safety
/// As [`product`](super::blocked::product).
pub unsafe fn plain<T: Copy + Default + Send + Sync>(
    (m, n, k): (usize, usize, usize),
    a: Matrix<T>,
    b: Matrix<T>,
    c: MatrixMut<T>,
    add: bool,
    multiply_add: impl Fn(T, T, T) -> T + Sync,
    threads: usize,
) {
    const SIDE: usize = 64;
    let parts = n.div_ceil(SIDE);
    let shared = Shared((a, b, c));
    par::each(if m * n * k < SHARED { 1 } else { threads }, m * parts, &|item| {
        let (a, b, c) = shared.get();
        let (i, first) = (item / parts, item % parts * SIDE);
        let mut sums = [T::default(); SIDE];
        let sums = &mut sums[..SIDE.min(n - first)];
        // SAFETY: the caller's promise; no two items have an element of `c`.
        unsafe {
            let cell = |j: usize| c.0.offset(i as isize * c.1 + (first + j) as isize * c.2);
            if add {
                sums.iter_mut().enumerate().for_each(|(j, s)| *s = cell(j).read());
            }
            for p in 0..k {
                let x = a.0.offset(i as isize * a.1 + p as isize * a.2).read();
                let row = b.0.offset(p as isize * b.1 + first as isize * b.2);
                for (j, s) in sums.iter_mut().enumerate() {
                    *s = multiply_add(x, row.offset(j as isize * b.2).read(), *s);
                }
            }
            sums.iter().enumerate().for_each(|(j, s)| cell(j).write(*s));
        }
    });
}

/// As [`plain`], of operands that are made piece by piece: the order of every sum is the same.
///
/// # Safety
/// As [`product`](super::blocked::product).
pub unsafe fn plain_of<T: Copy + Default + Send + Sync, A: Rows<T>, B: Panels<T>>(
    (m, n, k): (usize, usize, usize),
    a: &A,
    b: &B,
    c: MatrixMut<T>,
    add: bool,
    multiply_add: impl Fn(T, T, T) -> T + Sync,
    threads: usize,
) {
    const WIDE: usize = 16;
    let c = Shared(c);
    par::each(if m * n * k < SHARED { 1 } else { threads }, n.div_ceil(WIDE), &|part| {
        let c = c.get();
        let columns = part * WIDE..n.min((part + 1) * WIDE);
        let cell = |i: usize, j: usize| c.0.wrapping_offset(i as isize * c.1 + (columns.start + j) as isize * c.2);
        let mut panel = [T::default(); DEPTH * WIDE];
        let mut row = [T::default(); DEPTH];
        if !add {
            for (i, j) in (0..m).flat_map(|i| (0..columns.len()).map(move |j| (i, j))) {
                // SAFETY: the caller's promise; no two parts have an element of `c`.
                unsafe { cell(i, j).write(T::default()) }
            }
        }
        for first in (0..k).step_by(DEPTH) {
            let depth = first..k.min(first + DEPTH);
            // SAFETY: the panel holds these rows and columns.
            unsafe { b.fill(depth.clone(), columns.clone(), WIDE, panel.as_mut_ptr()) }
            for i in 0..m {
                // SAFETY: as above; the row holds the elements.
                unsafe { a.fill(i..i + 1, depth.clone(), DEPTH, row.as_mut_ptr()) }
                for j in 0..columns.len() {
                    let terms = row[..depth.len()].iter().zip(panel[j..].iter().step_by(WIDE));
                    // SAFETY: the caller's promise; no two parts have an element of `c`.
                    unsafe { cell(i, j).write(terms.fold(cell(i, j).read(), |s, (x, y)| multiply_add(*x, *y, s))) }
                }
            }
        }
    });
}
