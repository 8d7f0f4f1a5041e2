//! Products with a vector, which are sums in eight lanes, and products of types that no vectors hold.
//!
//! A product with a vector sums in [`LANES`] lanes whatever the strides of the matrix.

use super::blocked::{self, DEPTH, Matrix, MatrixMut, SHARED, Shared};
use super::panels::{Panels, Rows};
use crate::support::array;
use crate::support::cache::{CacheLevel, LINE, prefetch};
use crate::support::convert::{Compute, Kind};
use crate::support::stack::Stack;
use crate::support::{isa, par};
use num_traits::Zero;
use std::ops::Range;
use std::ops::{Add, Mul};

/// Partial sums of a product with a vector: term `p` is in sum `p % LANES`.
pub(super) const LANES: usize = 8;

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
    let threads = if n * k < SHARED_VECTOR { 1 } else { threads };
    let most = if b.2 == 1 { WIDE } else { SIDE };
    let part = n.div_ceil(threads).next_multiple_of(16).clamp(1, most);
    let shared = Shared((a, b, c));
    par::each(threads, n.div_ceil(part), &|i| {
        let (a, b, c) = shared.get();
        let (first, len) = (i * part, part.min(n - i * part));
        // SAFETY: the caller's promise; parts do not share elements of `c`.
        unsafe {
            let b = (b.0.offset(first as isize * b.2), b.1, b.2);
            let c = (c.0.offset(first as isize * c.1), c.1);
            isa::run(Columns((len, k), a, b, c, add));
        }
    });
}

/// [`columns`] of one part: made by [`vector`], which promises what it asks for.
struct Columns<T>((usize, usize), (*const T, isize), Matrix<T>, (*mut T, isize), bool);

impl<T: Copy + Zero + Add<Output = T> + Mul<Output = T>> isa::Work for Columns<T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let Columns(size, a, b, c, add) = self;
        // SAFETY: what `vector` promised.
        unsafe { columns(size, a, b, c, add) }
    }
}

/// Products with a vector of fewer multiplications are not worth sharing: they take as long as memory does.
const SHARED_VECTOR: usize = 1 << 16;
/// Columns at a time that are side by side: runs of them are pages, and their sums stay in a cache.
const WIDE: usize = 2048;
/// Such columns that are made piece by piece.
const MADE: usize = 512;
/// Columns at a time that are runs, or neither.
const SIDE: usize = 64;
/// Elements of the vector that are copied at a time if they are apart.
const RUN: usize = 1024;

/// The lanes added up.
#[inline(always)]
pub(super) fn sum_of_lanes<T: Copy + Add<Output = T>>(lanes: [T; LANES]) -> T {
    ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]))
}

/// Adds the lanes to a sum, which is written.
///
/// # Safety
/// The cell is readable and writable.
#[inline(always)]
unsafe fn put<T: Copy + Add<Output = T>>(cell: *mut T, lanes: [T; LANES], add: bool) {
    // SAFETY: the caller's promise.
    unsafe { blocked::put(cell, sum_of_lanes(lanes), add) }
}

/// Adds `k` terms to the sums of `n` columns that are side by side, all of a lane after those of the one before: the first term is the
/// first lane's.
///
/// # Safety
/// `b` is the address of `k` rows of `n` elements and their distance.
#[inline(always)]
unsafe fn across<T: Copy + Add<Output = T> + Mul<Output = T>>(
    sums: &mut [T],
    (n, k): (usize, usize),
    factor: impl Fn(usize) -> T,
    b: (*const T, isize),
) {
    assert!(sums.len() == LANES * n, "each lane has a sum for each column");
    let b_row = |p: usize| b.0.wrapping_offset(p as isize * b.1);
    // SAFETY: `n` elements of a row of the matrix.
    let row = |p: usize| unsafe { std::slice::from_raw_parts(b_row(p), n) };
    // Several terms of a lane at a time: its sums are read and written once for them.
    let whole = k / (4 * LANES) * (4 * LANES);
    for p in (0..whole).step_by(4 * LANES) {
        for (l, sums) in sums.chunks_exact_mut(n).enumerate() {
            let x: [T; 4] = array::from_fn(|i| factor(p + i * LANES + l));
            let [a, b, c, d] = array::from_fn(|i| row(p + i * LANES + l));
            if n <= MADE {
                // Short rows that come next.
                for ahead in 4..8 {
                    let next = b_row(p + l + ahead * LANES);
                    (0..n)
                        .step_by((LINE / size_of::<T>()).max(1))
                        .for_each(|j| prefetch(next.wrapping_add(j), CacheLevel::Second));
                }
            }
            for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *sum = (((*sum + x[0] * *a) + x[1] * *b) + x[2] * *c) + x[3] * *d;
            }
        }
    }
    for p in whole..k {
        let x = factor(p);
        let sums = &mut sums[p % LANES * n..][..n];
        sums.iter_mut().zip(row(p)).for_each(|(s, y)| *s = *s + x * *y);
    }
}

/// Adds terms to the lanes of one sum; the first is the first lane's.
#[inline(always)]
fn dot<T: Copy + Add<Output = T> + Mul<Output = T>>(sum: &mut [T; LANES], x: &[T], y: &[T]) {
    let mut lanes = *sum;
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for l in 0..LANES {
            lanes[l] = lanes[l] + x[l] * y[l];
        }
    }
    for (l, (x, y)) in x_rest.iter().zip(y_rest).enumerate() {
        lanes[l] = lanes[l] + *x * *y;
    }
    *sum = lanes;
}

/// Columns that are runs of `bf16` whose sums are computed together.
const BRAIN: usize = 8;

/// Adds terms to the sums of columns that are runs of `bf16`, [`BRAIN`] at once; the first is the first lane's.
///
/// # Safety
/// `from` is the address of as many columns as sums, `apart` from each other, of as many elements as `x` has.
#[inline(always)]
unsafe fn brain<T: Compute + Add<Output = T> + Mul<Output = T>>(
    sums: &mut [[T; LANES]],
    x: &[T],
    from: *const u16,
    apart: isize,
) {
    let wide = |bits: u16| T::from_f32(f32::from_bits((bits as u32) << 16));
    let (chunks, rest) = x.as_chunks::<LANES>();
    let whole = x.len() - rest.len();
    // What is read some time later: of long runs the same ones, of short runs those after the next ones.
    let ahead = if x.len() >= RUN { 512 } else { 2 * BRAIN as isize * apart };
    for (j, sums) in sums.chunks_mut(BRAIN).enumerate() {
        // Of fewer columns the last one again.
        let column = |i: usize| (BRAIN * j + i.min(sums.len() - 1)) as isize;
        let runs: [*const u16; BRAIN] = array::from_fn(|i| from.wrapping_offset(column(i) * apart));
        let mut made: [[T; LANES]; BRAIN] = array::from_fn(|i| sums[i.min(sums.len() - 1)]);
        for (line, chunks) in chunks.chunks(LINE / size_of::<u16>() / LANES).enumerate() {
            let first = line * (LINE / size_of::<u16>());
            runs.iter().for_each(|run| prefetch(run.wrapping_add(first).wrapping_offset(ahead), CacheLevel::Second));
            for (at, x) in chunks.iter().enumerate() {
                for (sum, run) in made.iter_mut().zip(runs) {
                    // SAFETY: eight elements of a column.
                    let y = unsafe { run.add(first + at * LANES).cast::<[u16; LANES]>().read_unaligned() };
                    for l in 0..LANES {
                        sum[l] = sum[l] + x[l] * wide(y[l]);
                    }
                }
            }
        }
        for (p, x) in rest.iter().enumerate() {
            for (sum, run) in made.iter_mut().zip(runs) {
                // SAFETY: an element of a column.
                sum[p] = sum[p] + *x * wide(unsafe { run.add(whole + p).read() });
            }
        }
        sums.iter_mut().zip(made).for_each(|(sum, made)| *sum = made);
    }
}

/// As [`vector`], of operands that are made piece by piece: `m` or `n` is 1. `width` is that of panels.
///
/// # Safety
/// As [`product`](super::blocked::product).
pub unsafe fn vector_of<T: Compute + Zero + Add<Output = T> + Mul<Output = T>>(
    (m, n, k): (usize, usize, usize),
    width: usize,
    a: &dyn Rows<T>,
    b: &dyn Panels<T>,
    c: MatrixMut<T>,
    add: bool,
    threads: usize,
) {
    let threads = if m * n * k < SHARED { 1 } else { threads };
    let (len, part) = match () {
        () if m > 1 => (m, SIDE),
        () if b.padded() => (n, width),
        () if b.runs() => (n, SIDE),
        () => (n, n.div_ceil(threads).next_multiple_of(16).clamp(1, MADE)),
    };
    let c = Shared(c);
    par::each(threads, len.div_ceil(part), &|i| {
        let these = i * part..len.min((i + 1) * part);
        // The caller's promise; parts do not share elements of `c`.
        isa::run(Part { by_rows: m > 1, these, k, a, b, c: c.get(), add });
    });
}

/// Some of the sums of a product with a vector: those of rows of `a`, or of columns of `b`. Made by [`vector_of`], which promises
/// that the operands have these elements and that no other part has these of `c`.
struct Part<'a, T> {
    by_rows: bool,
    these: Range<usize>,
    k: usize,
    a: &'a dyn Rows<T>,
    b: &'a dyn Panels<T>,
    c: MatrixMut<T>,
    add: bool,
}

impl<T: Compute + Zero + Add<Output = T> + Mul<Output = T>> isa::Work for Part<'_, T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let Part { by_rows, these, k, a, b, c, add } = self;
        /// Rows of the matrix that are made at a time.
        const DEEP: usize = 2 * LANES;
        let (len, step) = (these.len(), if by_rows { c.1 } else { c.2 });
        let cell = |j: usize| c.0.wrapping_offset((these.start + j) as isize * step);
        let depths = (0..k).step_by(DEPTH).map(|first| first..k.min(first + DEPTH));
        let mut x = [T::zero(); DEPTH];
        // SAFETY: what `vector_of` promised; the memory holds the elements.
        unsafe {
            if let Some((from, apart)) = b.brain_runs().filter(|_| !by_rows) {
                let mut sums = [[T::zero(); LANES]; SIDE];
                let mut x = [T::zero(); RUN];
                for first in (0..k).step_by(RUN) {
                    let n = RUN.min(k - first);
                    for depth in (first..first + n).step_by(DEPTH) {
                        let to = x.as_mut_ptr().add(depth - first);
                        a.fill(0..1, depth..(first + n).min(depth + DEPTH), DEPTH, to);
                    }
                    let from = from.wrapping_offset(first as isize + these.start as isize * apart);
                    brain(&mut sums[..len], &x[..n], from, apart);
                }
                return sums[..len].iter().enumerate().for_each(|(j, sum)| put(cell(j), *sum, add));
            }
            if by_rows || b.runs() {
                let mut sums = [[T::zero(); LANES]; SIDE];
                let mut run = [T::zero(); DEPTH];
                for depth in depths {
                    if by_rows {
                        b.fill(depth.clone(), 0..1, 1, x.as_mut_ptr());
                    } else {
                        a.fill(0..1, depth.clone(), DEPTH, x.as_mut_ptr());
                    }
                    for (sum, j) in sums.iter_mut().zip(these.clone()) {
                        if by_rows {
                            a.fill(j..j + 1, depth.clone(), DEPTH, run.as_mut_ptr());
                        } else {
                            b.fill(depth.clone(), j..j + 1, 1, run.as_mut_ptr());
                        }
                        dot(sum, &x[..depth.len()], &run[..depth.len()]);
                    }
                }
                return sums[..len].iter().enumerate().for_each(|(j, sum)| put(cell(j), *sum, add));
            }
            let mut sums = Stack::<T, { LANES * MADE }>::new();
            let sums = sums.filled(LANES * len, T::zero());
            let mut rows = [T::zero(); DEEP * MADE];
            for depth in depths {
                a.fill(0..1, depth.clone(), DEPTH, x.as_mut_ptr());
                if let Some(at) = b.in_place(depth.start, these.start, len, 1).filter(|_| b.padded()) {
                    across(sums, (len, depth.len()), |p| x[p], at);
                    continue;
                }
                for first in depth.clone().step_by(DEEP) {
                    let deep = first..depth.end.min(first + DEEP);
                    b.fill(deep.clone(), these.clone(), len, rows.as_mut_ptr());
                    across(sums, (len, deep.len()), |p| x[first - depth.start + p], (rows.as_ptr(), len as isize));
                }
            }
            (0..len).for_each(|j| put(cell(j), array::from_fn(|l| sums[l * len + j]), add));
        }
    }
}

/// One part's columns: at most [`WIDE`] where they are side by side, at most [`SIDE`] else.
///
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
    // SAFETY: the caller's promise: an element of the vector.
    let factor = |p: usize| unsafe { a.0.offset(p as isize * a.1).read() };
    // SAFETY: the caller's promise.
    let put = |j: usize, lanes: [T; LANES]| unsafe { put(c.0.offset(j as isize * c.1), lanes, add) };
    // A single column whose elements are neighbours is a run.
    if b.2 == 1 && (n > 1 || b.1 != 1) {
        let mut sums = Stack::<T, { LANES * WIDE }>::new();
        let sums = sums.filled(LANES * n, T::zero());
        // SAFETY: the caller's promise.
        unsafe { across(sums, (n, k), factor, (b.0, b.1)) }
        (0..n).for_each(|j| put(j, array::from_fn(|l| sums[l * n + j])));
        return;
    }
    let mut sums = [[T::zero(); LANES]; SIDE];
    let mut run = [T::zero(); RUN];
    for first in (0..k).step_by(RUN) {
        let len = RUN.min(k - first);
        let whole = len / LANES * LANES;
        let left = if a.1 == 1 {
            a.0.wrapping_add(first)
        } else {
            run.iter_mut().take(len).enumerate().for_each(|(p, x)| *x = factor(first + p));
            run.as_ptr()
        };
        let from = b.0.wrapping_offset(first as isize * b.1);
        // SAFETY: the caller's promise: all of these are elements of the operands.
        unsafe {
            let term = |p: usize, j: usize| from.offset(p as isize * b.1 + j as isize * b.2).read();
            // The next four runs, which a processor does not foresee.
            let ahead = 4 * b.2;
            for (j, sums) in sums[..n].chunks_mut(4).enumerate() {
                let j = 4 * j;
                if b.1 == 1 {
                    // Four columns at once, each a run.
                    let runs: [*const T; 4] =
                        array::from_fn(|i| from.wrapping_offset((j + i.min(sums.len() - 1)) as isize * b.2));
                    let mut four: [[T; LANES]; 4] = array::from_fn(|i| sums[i.min(sums.len() - 1)]);
                    for p in (0..whole).step_by(LANES) {
                        if p % (LINE / size_of::<T>()) == 0 {
                            runs.iter().for_each(|run| {
                                prefetch(run.wrapping_add(p).wrapping_offset(ahead), CacheLevel::Second)
                            });
                        }
                        let x = left.add(p).cast::<[T; LANES]>().read_unaligned();
                        for (sum, run) in four.iter_mut().zip(runs) {
                            let y = run.add(p).cast::<[T; LANES]>().read_unaligned();
                            for l in 0..LANES {
                                sum[l] = sum[l] + x[l] * y[l];
                            }
                        }
                    }
                    sums.iter_mut().zip(four).for_each(|(sum, made)| *sum = made);
                }
                let rest = if b.1 == 1 { whole } else { 0 };
                for (i, sum) in sums.iter_mut().enumerate() {
                    (rest..len).for_each(|p| sum[p % LANES] = sum[p % LANES] + left.add(p).read() * term(p, j + i));
                }
            }
        }
    }
    sums[..n].iter().enumerate().for_each(|(j, sum)| put(j, *sum));
}

/// Sums that are kept in registers.
const SUMS: usize = 16;

/// Adds the terms of several sums, from first to last.
struct AddTerms<'a, T, F> {
    sums: &'a mut [T],
    k: usize,
    /// The factor of all sums' first terms, and the step to that of the next.
    left: (*const T, isize),
    /// The other factor of the first sum's first term, and the steps to those of the next term and of the next sum.
    right: Matrix<T>,
    multiply_add: &'a F,
}

impl<T: Compute, F: Fn(T, T, T) -> T> isa::Work for AddTerms<'_, T, F> {
    type Out = ();
    const VECTORS: bool = matches!(T::KIND, Kind::Int);
    // AVX-512 has products of 64 bits.
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let AddTerms { sums, k, left, right, multiply_add } = self;
        for (i, sums) in sums.chunks_mut(SUMS).enumerate() {
            let right = (right.0.wrapping_offset((SUMS * i) as isize * right.2), right.1, right.2);
            let term = |p: usize, j: usize, step: isize, sum: T| {
                // SAFETY: the promise of `plain`: elements of the operands.
                unsafe {
                    let x = left.0.offset(p as isize * left.1).read();
                    multiply_add(x, right.0.offset(p as isize * right.1 + j as isize * step).read(), sum)
                }
            };
            match <&mut [T; SUMS]>::try_from(&mut *sums) {
                // Sums in registers.
                Ok(sums) if right.2 == 1 => {
                    let mut own = *sums;
                    for p in 0..k {
                        (0..SUMS).for_each(|j| own[j] = term(p, j, 1, own[j]));
                    }
                    *sums = own;
                }
                _ => {
                    for p in 0..k {
                        sums.iter_mut().enumerate().for_each(|(j, sum)| *sum = term(p, j, right.2, *sum));
                    }
                }
            }
        }
    }
}

/// Any product, from first to last, for types that have no kernels of their own.
///
/// # Safety
/// As [`product`](super::blocked::product).
pub unsafe fn plain<T: Compute>(
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
            let left = (a.0.offset(i as isize * a.1), a.2);
            let right = (b.0.wrapping_offset(first as isize * b.2), b.1, b.2);
            isa::run(AddTerms { sums, k, left, right, multiply_add: &multiply_add });
            sums.iter().enumerate().for_each(|(j, s)| cell(j).write(*s));
        }
    });
}

/// As [`plain`], of operands that are made piece by piece: the order of every sum is the same.
///
/// # Safety
/// As [`product`](super::blocked::product).
pub unsafe fn plain_of<T: Compute, A: Rows<T> + ?Sized, B: Panels<T> + ?Sized>(
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
                let mut sums: [T; WIDE] = array::from_fn(|j| match j < columns.len() {
                    // SAFETY: the caller's promise; no two parts have an element of `c`.
                    true => unsafe { cell(i, j).read() },
                    false => T::default(),
                });
                let (left, right) = ((row.as_ptr(), 1), (panel.as_ptr(), WIDE as isize, 1));
                isa::run(AddTerms { sums: &mut sums, k: depth.len(), left, right, multiply_add: &multiply_add });
                // SAFETY: as above.
                sums.iter().take(columns.len()).enumerate().for_each(|(j, s)| unsafe { cell(i, j).write(*s) });
            }
        }
    });
}
