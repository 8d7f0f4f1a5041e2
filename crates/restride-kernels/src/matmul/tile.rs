//! The innermost loops of products: a tile of the result, a few rows by a few vectors, in registers.
//!
//! Chosen once for the processor: AVX-512, AVX2 with FMA, or vectors that the compiler makes of plain numbers (NEON on 64-bit ARM).

use super::blocked::DEPTH;
use super::lanes::{Lanes, Plain};
use crate::support::array;
use crate::support::cache::{CacheLevel, LINE, prefetch};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::support::isa::{Isa, isa};
use num_traits::Zero;

/// Computes a tile, `R` × `N` vectors: the length of its sums; the address of the left operand's rows and their distance, elements
/// of a row side by side; that of a panel of the right operand and the distance of its rows; the result's likewise; columns that
/// are written, more than the first `N - 1` vectors have; whether the sums are added to the result; rows of the next panel, of `N`
/// vectors each, that are copied meanwhile.
///
/// All rows of the panel have `N` whole vectors to read.
pub type Tile<T> =
    unsafe fn(usize, (*const T, isize), (*const T, isize), (*mut T, isize), usize, bool, &mut NextPanel<T>);

/// Rows of a panel that are still to be copied, or only fetched where they are read in place. Between the products of a tile, one row
/// after some of the terms each, that takes the time in which the products wait for nothing.
pub struct NextPanel<T> {
    /// The first of these rows in memory, and their distance.
    from: (*const T, isize),
    /// Where it goes; rows there are side by side. Null where rows are fetched only.
    to: *mut T,
    /// How many these are.
    pub rows: usize,
    /// Terms from one copied row to the next.
    every: usize,
    /// The row that is fetched while the first of these is copied, and how many rows lie between the two. While the last rows are
    /// copied, the first rows of the panel `behind` are fetched.
    fetched: (*const T, usize),
    /// The first row of the panel behind this one.
    behind: *const T,
}

/// Rows of the next panel that are fetched before they are copied.
const FETCHED_ROWS: usize = 16;

impl<T> NextPanel<T> {
    /// Nothing to copy.
    pub fn none() -> Self {
        let (from, to) = (std::ptr::null(), std::ptr::null_mut());
        NextPanel { from: (from, 0), to, rows: 0, every: 1, fetched: (from, 0), behind: from }
    }
    /// Copies `rows` rows of `width` elements to `to`: `from` is the address of the first row and the distance of the next. Tiles copy
    /// one row after each `every` terms.
    pub fn new(from: (*const T, isize), rows: usize, width: usize, to: *mut T, every: usize) -> Self {
        let ahead = FETCHED_ROWS.min(rows / 2);
        let fetched = (from.0.wrapping_offset(ahead as isize * from.1), ahead);
        NextPanel { from, to, rows, every, fetched, behind: from.0.wrapping_add(width) }
    }
    /// Fetches `rows` rows, which are read in place, as [`new`](NextPanel::new) copies them.
    pub fn in_place(from: (*const T, isize), rows: usize, every: usize) -> Self {
        NextPanel { from, rows, every, ..NextPanel::none() }
    }
    /// Copies a row of `N` vectors, or fetches it.
    ///
    /// # Safety
    /// A row is left, its elements are readable and its place writable, and the processor has the vectors.
    #[inline(always)]
    unsafe fn take<V: Lanes<T = T>, const N: usize>(&mut self) {
        let row = self.from.0;
        self.rows -= 1;
        self.from.0 = row.wrapping_offset(self.from.1);
        if self.to.is_null() {
            let lines = (N * V::LANES * size_of::<T>()).div_ceil(LINE);
            return (0..lines).for_each(|i| prefetch(row.cast::<u8>().wrapping_add(i * LINE), CacheLevel::Second));
        }
        for j in 0..N {
            let at = j * V::LANES;
            prefetch(self.fetched.0.wrapping_add(at), CacheLevel::First);
            // SAFETY: the caller's promise.
            unsafe { V::load(row.add(at)).store(self.to.add(at)) };
        }
        self.to = self.to.wrapping_add(N * V::LANES);
        let last = self.rows == self.fetched.1;
        self.fetched.0 = if last { self.behind } else { self.fetched.0.wrapping_offset(self.from.1) };
    }
}

/// Transposes columns that are runs into rows of a panel, `width` apart: the address of the columns and their distance, rows and
/// columns, both multiples of eight.
pub type Turn<T> = unsafe fn(*mut T, usize, (*const T, isize), (usize, usize));

/// Adds products to the sums of a few rows by many columns, which are in memory: the length of the sums; the address of the left
/// operand's rows and their distance; that of the right operand and the distance of its rows; the sums and the distance of their
/// rows, each of whole vectors; the number of columns.
pub type Few<T> = unsafe fn(usize, (*const T, isize), (*const T, isize), (*mut T, isize), usize);

/// The innermost loops of a type, on this processor.
#[derive(Clone, Copy)]
pub struct Kernels<T: 'static> {
    /// Tiles of one vector and of two, by number of rows, less one.
    pub tiles: [&'static [Tile<T>]; 2],
    /// By number of rows, less one.
    pub few: &'static [Few<T>],
    /// Terms of a block of sums.
    pub depth: usize,
    /// Numbers in a vector.
    pub lanes: usize,
    /// Makes rows of columns.
    pub turn: Turn<T>,
}

impl<T> Kernels<T> {
    /// Columns of a panel.
    pub const fn width(&self) -> usize {
        2 * self.lanes
    }
}

/// Sums from first to last, each product added at once where the processor can.
///
/// # Safety
/// As [`Tile`].
#[allow(clippy::needless_range_loop)] // rows by columns
#[inline(always)]
unsafe fn tile<V: Lanes, const R: usize, const N: usize>(
    k: usize,
    a: (*const V::T, isize),
    mut b: (*const V::T, isize),
    c: (*mut V::T, isize),
    wide: usize,
    add: bool,
    next: &mut NextPanel<V::T>,
) {
    // SAFETY: the caller's promise: all of these are elements of the operands, and the processor has the vectors.
    unsafe {
        let mut sums = [[V::splat(V::T::zero()); N]; R];
        let rows: [*const V::T; R] = array::from_fn(|i| a.0.offset(i as isize * a.1));
        let mut p = 0;
        while p < k {
            let mut end = k;
            if N > 1 && next.rows > 0 {
                next.take::<V, N>();
                end = k.min(p + next.every);
            }
            for p in p..end {
                let right: [V; N] = array::from_fn(|j| V::load(b.0.add(j * V::LANES)));
                for i in 0..R {
                    let left = V::splat(rows[i].add(p).read());
                    for j in 0..N {
                        sums[i][j] = sums[i][j].plus_product(left, right[j]);
                    }
                }
                b.0 = b.0.wrapping_offset(b.1);
            }
            p = end;
        }
        let rest = wide - (N - 1) * V::LANES;
        for i in 0..R {
            let row = c.0.offset(i as isize * c.1);
            for j in 0..N {
                let to = row.add(j * V::LANES);
                if j + 1 < N || rest == V::LANES {
                    let sum = if add { V::load(to).plus(sums[i][j]) } else { sums[i][j] };
                    sum.store(to);
                } else {
                    let sum = if add { V::load_first(to, rest).plus(sums[i][j]) } else { sums[i][j] };
                    sum.store_first(to, rest);
                }
            }
        }
    }
}

/// As [`Few`], each sum in the order of a tile's; `Q` rows of the right operand at a time, the last ones not if they are fewer.
///
/// # Safety
/// As [`Few`].
#[inline(always)]
#[allow(clippy::needless_range_loop)] // rows by columns
unsafe fn few<V: Lanes, const R: usize, const Q: usize>(
    k: usize,
    a: (*const V::T, isize),
    b: (*const V::T, isize),
    sums: (*mut V::T, isize),
    wide: usize,
) {
    // SAFETY: the caller's promise: all of these are elements of the operands, and the processor has the vectors.
    unsafe {
        let rows: [*const V::T; R] = array::from_fn(|i| a.0.offset(i as isize * a.1));
        let to: [*mut V::T; R] = array::from_fn(|i| sums.0.offset(i as isize * sums.1));
        let (whole, rest) = (wide / V::LANES * V::LANES, wide % V::LANES);
        for p in (0..k / Q * Q).step_by(Q) {
            let left: [[V; Q]; R] = array::from_fn(|i| array::from_fn(|q| V::splat(*rows[i].add(p + q))));
            let from: [*const V::T; Q] = array::from_fn(|q| b.0.offset((p + q) as isize * b.1));
            for j in (0..whole).step_by(V::LANES) {
                // The same columns of the rows that come next.
                from.iter()
                    .for_each(|row| prefetch(row.wrapping_offset(Q as isize * b.1 + j as isize), CacheLevel::Second));
                add_columns(&to, j, &left, array::from_fn(|q| V::load(from[q].add(j))));
            }
            if rest > 0 {
                add_columns(&to, whole, &left, array::from_fn(|q| V::load_first(from[q].add(whole), rest)));
            }
        }
    }
}

/// Adds the products of a vector of columns to its sums. No closure: one that is not inlined has no vectors of the processor.
///
/// # Safety
/// As [`Few`].
#[inline(always)]
#[allow(clippy::needless_range_loop)] // rows by terms
unsafe fn add_columns<V: Lanes, const R: usize, const Q: usize>(
    to: &[*mut V::T; R],
    j: usize,
    left: &[[V; Q]; R],
    right: [V; Q],
) {
    for i in 0..R {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sum = V::load(to[i].add(j));
            for q in 0..Q {
                sum = sum.plus_product(left[i][q], right[q]);
            }
            sum.store(to[i].add(j));
        }
    }
}

/// The kernels of a kind of vector, compiled for processors with the features.
macro_rules! kernels {
    ($name:ident, $t:ty, $vector:ty, $turn:expr, [$($feature:literal)?], [$($one:literal)*], [$($two:literal)*]) => {
        kernels!(@ $name, $t, $vector, ($turn, FEW, DEPTH), [$($feature)?], [$($one)*], [$($two)*]);
    };
    (@ $name:ident, $t:ty, $vector:ty, ($turn:expr, $few:expr, $depth:expr), [$($feature:literal)?], [$($one:literal)*],
     [$($two:literal)*]) => {
        mod $name {
            use super::*;
            $(#[target_feature(enable = $feature)])?
            unsafe fn own<const R: usize, const N: usize>(
                k: usize,
                a: (*const $t, isize),
                b: (*const $t, isize),
                c: (*mut $t, isize),
                wide: usize,
                add: bool,
                next: &mut NextPanel<$t>,
            ) {
                // SAFETY: the caller's promise.
                unsafe { tile::<$vector, R, N>(k, a, b, c, wide, add, next) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn own_few<const R: usize, const Q: usize>(
                k: usize,
                a: (*const $t, isize),
                b: (*const $t, isize),
                sums: (*mut $t, isize),
                wide: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    few::<$vector, R, Q>(k, a, b, sums, wide);
                    let done = k / Q * Q;
                    let (a, b) = ((a.0.add(done), a.1), (b.0.wrapping_offset(done as isize * b.1), b.1));
                    few::<$vector, R, 1>(k - done, a, b, sums, wide)
                }
            }
            #[allow(dead_code)] // not every kind has them
            const FEW: &[Few<$t>] = &[
                own_few::<1, 8>,
                own_few::<2, 8>,
                own_few::<3, 4>,
                own_few::<4, 4>,
                own_few::<5, 2>,
                own_few::<6, 2>,
                own_few::<7, 2>,
                own_few::<8, 2>,
            ];
            static ONE: &[Tile<$t>] = &[$(own::<$one, 1>),*];
            static TWO: &[Tile<$t>] = &[$(own::<$two, 2>),*];
            pub static KERNELS: Kernels<$t> = Kernels {
                tiles: [ONE, TWO],
                few: $few,
                depth: $depth,
                lanes: <$vector as Lanes>::LANES,
                turn: $turn,
            };
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(avx512_f32, f32, std::arch::x86_64::__m512, turn_avx, ["avx512f,avx512vl,avx512dq,avx2,fma"],
    [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24], [1 2 3 4 5 6 7 8 9 10 11 12]);
#[cfg(target_arch = "x86_64")]
kernels!(avx512_f64, f64, std::arch::x86_64::__m512d, turn_plain::<f64>, ["avx512f,avx512vl,avx512dq,avx2,fma"],
    [1 2 3 4 5 6 7 8 9 10 11 12], [1 2 3 4 5 6 7 8 9 10 11 12]);
#[cfg(target_arch = "x86_64")]
kernels!(@ avx512_pairs, f32, crate::matmul::lanes::Pairs, (turn_avx, &[], DEPTH / 2),
    ["avx512f,avx512vl,avx512dq,avx512bf16,avx2,fma"],
    [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24], [1 2 3 4 5 6 7 8 9 10 11 12]);
#[cfg(target_arch = "x86_64")]
kernels!(avx2_f32, f32, std::arch::x86_64::__m256, turn_avx, ["avx2,fma"],
    [1 2 3 4 5 6 7 8 9 10 11 12], [1 2 3 4 5 6]);
#[cfg(target_arch = "x86_64")]
kernels!(avx2_f64, f64, std::arch::x86_64::__m256d, turn_plain::<f64>, ["avx2,fma"],
    [1 2 3 4 5 6 7 8 9 10 11 12], [1 2 3 4 5 6]);
kernels!(plain_f32, f32, Plain<f32, 4>, turn_plain::<f32>, [], [1 2 3 4 5 6], [1 2 3 4 5 6]);
kernels!(plain_f64, f64, Plain<f64, 2>, turn_plain::<f64>, [], [1 2 3 4 5 6], [1 2 3 4 5 6]);

macro_rules! choose {
    ($name:ident, $t:ty, $wide:ident, $half:ident, $plain:ident) => {
        /// The kernels for this processor.
        #[inline]
        pub fn $name() -> &'static Kernels<$t> {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            match isa() {
                Isa::Avx512 => return &$wide::KERNELS,
                Isa::Avx2 => return &$half::KERNELS,
                Isa::Baseline => {}
            }
            &$plain::KERNELS
        }
    };
}
choose!(kernels_f32, f32, avx512_f32, avx2_f32, plain_f32);
choose!(kernels_f64, f64, avx512_f64, avx2_f64, plain_f64);

/// The kernels whose elements are pairs of `bf16` ([`pairs`](super::pairs)), if this processor has them.
#[inline]
pub fn kernels_pairs() -> Option<&'static Kernels<f32>> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if isa() == Isa::Avx512 && super::pairs::has_instruction() {
        return Some(&avx512_pairs::KERNELS);
    }
    None
}

/// As [`Turn`], for any processor.
///
/// # Safety
/// The elements are readable, and the panel holds them.
pub unsafe fn turn_plain<T: Copy>(
    panel: *mut T,
    width: usize,
    columns: (*const T, isize),
    (rows, wide): (usize, usize),
) {
    for p in (0..rows).step_by(8) {
        for j in (0..wide).step_by(8) {
            // SAFETY: eight elements of each of eight columns, and eight rows of eight in the panel.
            unsafe {
                let from = columns.0.offset(p as isize + j as isize * columns.1);
                let block: [[T; 8]; 8] =
                    array::from_fn(|i| from.offset(i as isize * columns.1).cast::<[T; 8]>().read_unaligned());
                let rows = (0..8).map(|q| -> [T; 8] { array::from_fn(|i| block[i][q]) });
                for (q, row) in rows.enumerate() {
                    panel.add((p + q) * width + j).cast::<[T; 8]>().write_unaligned(row);
                }
            }
        }
    }
}

/// As [`Turn`].
///
/// # Safety
/// The elements are readable, the panel holds them, and the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn turn_avx(panel: *mut f32, width: usize, (columns, step): (*const f32, isize), (rows, wide): (usize, usize)) {
    use std::arch::x86_64::*;
    let block = |p: usize, j: usize| {
        // SAFETY: eight elements of each of eight columns, and eight rows of eight in the panel.
        unsafe {
            let (from, to) = (columns.offset(p as isize + j as isize * step), panel.add(p * width + j));
            let column: [__m256; 8] = array::from_fn(|i| _mm256_loadu_ps(from.offset(i as isize * step)));
            // Of two columns the elements 0, 1, 4, 5, or 2, 3, 6, 7, by turns.
            let pair: [__m256; 8] = array::from_fn(|i| {
                let (x, y) = (column[i / 2 * 2], column[i / 2 * 2 + 1]);
                if i % 2 == 0 { _mm256_unpacklo_ps(x, y) } else { _mm256_unpackhi_ps(x, y) }
            });
            // Of four columns the elements `i % 4` and `i % 4 + 4`.
            let four: [__m256; 8] = array::from_fn(|i| {
                let (half, row) = (i / 4 * 4, i % 4);
                let (x, y) = (pair[half + row / 2], pair[half + row / 2 + 2]);
                if row % 2 == 0 { _mm256_shuffle_ps::<0x44>(x, y) } else { _mm256_shuffle_ps::<0xEE>(x, y) }
            });
            for row in 0..4 {
                _mm256_storeu_ps(to.add(row * width), _mm256_permute2f128_ps::<0x20>(four[row], four[row + 4]));
                _mm256_storeu_ps(to.add((row + 4) * width), _mm256_permute2f128_ps::<0x31>(four[row], four[row + 4]));
            }
        }
    };
    // Eight columns to their ends before the next ones: more of them, if they compete for places in the cache, would take each other's.
    // Two blocks of a column's elements are a line of the cache.
    for j in (0..wide).step_by(8) {
        for p in (0..rows).step_by(16) {
            let at = p as isize + FETCHED;
            let (at, behind) = if at < rows as isize { (at, 0) } else { (at - rows as isize, 8) };
            for column in j + behind..j + behind + 8 {
                prefetch(columns.wrapping_offset(at + column as isize * step), CacheLevel::First);
            }
            block(p, j);
            if p + 8 < rows {
                block(p + 8, j);
            }
        }
    }
}

/// Elements of a column from those that are put into a panel to those that are fetched meanwhile.
#[cfg(target_arch = "x86_64")]
const FETCHED: isize = 64;
