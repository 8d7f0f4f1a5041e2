//! One matrix product: panels of `b` on the stack, and the library's innermost kernels on them.
//!
//! Every element of the result is one sum over `k` from first to last in blocks of [`DEPTH`], whatever the strides, and however
//! rows and columns are dealt out: the bits depend on `k` alone. Products with a vector sum in [`LANES`] lanes instead, which runs
//! along `k` and across it alike.

use crate::support::par;
use gemm_common::microkernel::MicroKernelFn;
use num_traits::{One, Zero};
use std::mem::MaybeUninit;
use std::ops::{Add, Mul};

/// Terms that are summed before they are added to the result.
pub const DEPTH: usize = 256;
/// Partial sums of a product with a vector: term `p` is in sum `p % LANES`.
const LANES: usize = 8;
/// Rows of `a` that are used while a panel is in the first cache, so that they stay in the second.
const ROWS: usize = 384;
/// Products of fewer multiplications are not worth sharing.
const SHARED: usize = 1 << 17;

/// The operands of a product: address, distance of rows, distance of columns.
pub type Matrix<T> = (*const T, isize, isize);
/// The result's.
pub type MatrixMut<T> = (*mut T, isize, isize);

/// Innermost kernels of a type, on this machine.
#[derive(Clone, Copy)]
pub struct Kernels<T: 'static> {
    /// By number of vectors and of rows, less one each.
    table: &'static [MicroKernelFn<T>],
    /// Elements of a vector, and vectors in a panel's row.
    lanes: usize,
    vectors: usize,
    /// Most rows of `a` at a time.
    rows: usize,
    /// Makes rows of columns, where the machine has instructions for it.
    turn: Option<Turn<T>>,
}

/// Transposes columns that are runs into rows of a panel, `width` apart: the given rows and columns, both
/// multiples of eight.
type Turn<T> = unsafe fn(panel: *mut T, width: usize, columns: (*const T, isize), size: (usize, usize));

impl<T> Kernels<T> {
    /// Columns of a panel.
    pub const fn width(&self) -> usize {
        self.lanes * self.vectors
    }
}

macro_rules! kernels {
    ($t:ty, $krate:ident, $ty:ident, $module:ident, $lanes:expr, $turn:expr) => {{
        use $krate::microkernel::$module::$ty::{MR_DIV_N, NR, UKR};
        static TABLE: [[MicroKernelFn<$t>; NR]; MR_DIV_N] = UKR;
        Kernels { table: TABLE.as_flattened(), lanes: $lanes, vectors: MR_DIV_N, rows: NR, turn: $turn }
    }};
}

macro_rules! choose {
    ($name:ident, $t:ty, $krate:ident, $ty:ident, $wide:expr, $half:expr, $turn:expr) => {
        /// The kernels for this machine.
        pub fn $name() -> Kernels<$t> {
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("fma") {
                return kernels!($t, $krate, $ty, fma, $wide, $turn);
            }
            #[cfg(target_arch = "aarch64")]
            if std::arch::is_aarch64_feature_detected!("neon") {
                return kernels!($t, $krate, $ty, neon, $half, None);
            }
            kernels!($t, $krate, $ty, scalar, 1, None)
        }
    };
}
// Machines that multiply and add at once have the vectors that `turn_avx` needs.
choose!(kernels_f32, f32, gemm_f32, f32, 8, 4, Some(turn_avx));
choose!(kernels_f64, f64, gemm_f64, f64, 4, 2, None);

/// Bytes of a panel of the widest kernels.
const PANEL: usize = DEPTH * 64;

/// A panel's memory, aligned to lines of the cache.
#[repr(align(64))]
struct Panel([MaybeUninit<u8>; PANEL]);

/// `c = a b`, or `c += a b` where `add`, of sizes m × n × k.
///
/// # Safety
/// All elements that sizes and strides reach are readable, those of `c` writable, different cells that no other thread uses.
pub unsafe fn product<T: Copy + Zero + One + Send + Sync>(
    kernels: Kernels<T>,
    (m, n, k): (usize, usize, usize),
    a: Matrix<T>,
    b: Matrix<T>,
    c: MatrixMut<T>,
    add: bool,
    threads: usize,
) {
    let width = kernels.width();
    let panels = n.div_ceil(width);
    let threads = if m * n * k < SHARED { 1 } else { threads };
    let shared = Shared((a, b, c));
    // Each thread has a stretch of columns, or of rows if columns are few.
    let by_rows = panels < 2 * threads && m > n;
    let parts = if threads <= 1 { 1 } else { threads };
    let (of, step) = if by_rows { (m, kernels.rows) } else { (n, width) };
    let part = of.div_ceil(step).div_ceil(parts).max(1) * step;
    par::each(threads, of.div_ceil(part), &|i| {
        let (a, b, c) = shared.get();
        let (first, len) = (i * part, part.min(of - i * part));
        // SAFETY: the caller's promise; parts do not share elements of `c`.
        unsafe {
            if by_rows {
                let (a, c) =
                    ((a.0.offset(first as isize * a.1), a.1, a.2), (c.0.offset(first as isize * c.1), c.1, c.2));
                serial(&kernels, (len, n, k), a, b, c, add);
            } else {
                let (b, c) =
                    ((b.0.offset(first as isize * b.2), b.1, b.2), (c.0.offset(first as isize * c.2), c.1, c.2));
                serial(&kernels, (m, len, k), a, b, c, add);
            }
        }
    });
}

struct Shared<T>((Matrix<T>, Matrix<T>, MatrixMut<T>));
// SAFETY: threads read the operands, and write each their own elements of the result.
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn get(&self) -> (Matrix<T>, Matrix<T>, MatrixMut<T>) {
        self.0
    }
}

/// # Safety
/// As [`product`].
unsafe fn serial<T: Copy + Zero + One>(
    kernels: &Kernels<T>,
    (m, n, k): (usize, usize, usize),
    a: Matrix<T>,
    b: Matrix<T>,
    c: MatrixMut<T>,
    add: bool,
) {
    let (width, rows) = (kernels.width(), kernels.rows);
    let mut panel = Panel([MaybeUninit::uninit(); PANEL]);
    let panel: *mut T = panel.0.as_mut_ptr().cast();
    assert!(DEPTH * width * size_of::<T>() <= PANEL, "a panel is too wide");
    if k == 0 && !add {
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            // SAFETY: the caller's promise.
            unsafe { c.0.offset(i as isize * c.1 + j as isize * c.2).write(T::zero()) };
        }
    }
    for first in (0..m).step_by(ROWS) {
        let last = m.min(first + ROWS);
        for depth in (0..k).step_by(DEPTH) {
            let len = DEPTH.min(k - depth);
            let read = (add || depth > 0) as u8;
            for column in (0..n).step_by(width) {
                let wide = width.min(n - column);
                // SAFETY: the caller's promise: all of these are elements of the operands.
                unsafe {
                    let from = b.0.offset(depth as isize * b.1 + column as isize * b.2);
                    // A whole panel can be used where it is if that is for few rows only, or in a cache.
                    let near = b.1.unsigned_abs() * len * size_of::<T>() <= 1 << 18;
                    let (left, step) = if b.2 == 1 && wide == width && (near || last - first <= 2 * rows) {
                        (from, b.1)
                    } else {
                        pack(kernels.turn, panel, width, (from, b.1, b.2), len, wide);
                        (panel as *const T, width as isize)
                    };
                    let line = (wide.div_ceil(kernels.lanes) - 1) * rows;
                    for row in (first..last).step_by(rows) {
                        let high = rows.min(last - row);
                        kernels.table[line + high - 1](
                            wide,
                            high,
                            len,
                            c.0.offset(row as isize * c.1 + column as isize * c.2),
                            left,
                            a.0.offset(row as isize * a.1 + depth as isize * a.2),
                            c.1,
                            c.2,
                            step,
                            a.2,
                            a.1,
                            T::one(),
                            T::one(),
                            read,
                            false,
                            false,
                            false,
                            std::ptr::null(),
                        );
                    }
                }
            }
        }
    }
}

/// Puts `wide` columns of `len` elements side by side, zeros after them.
///
/// # Safety
/// The elements are readable, `panel` holds `len` rows of `width`, and the processor has what `turn` needs.
unsafe fn pack<T: Copy + Zero>(
    turn: Option<Turn<T>>,
    panel: *mut T,
    width: usize,
    b: Matrix<T>,
    len: usize,
    wide: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if b.2 == 1 {
            for p in 0..len {
                std::ptr::copy_nonoverlapping(b.0.offset(p as isize * b.1), panel.add(p * width), wide);
            }
        } else if b.1 == 1 {
            // Columns are runs: blocks of eight by eight, so that each cache line is used once.
            if let Some(turn) = turn {
                turn(panel, width, (b.0, b.2), (len / 8 * 8, wide / 8 * 8));
            }
            for p in (0..len).step_by(8) {
                for j in (0..wide).step_by(8) {
                    let (high, broad) = (8.min(len - p), 8.min(wide - j));
                    let (from, to) = (b.0.offset(p as isize + j as isize * b.2), panel.add(p * width + j));
                    if high == 8 && broad == 8 {
                        if turn.is_none() {
                            transpose(from, b.2, to, width);
                        }
                    } else {
                        for (q, i) in (0..high).flat_map(|q| (0..broad).map(move |i| (q, i))) {
                            to.add(q * width + i).write(from.offset(q as isize + i as isize * b.2).read());
                        }
                    }
                }
            }
        } else {
            for (p, j) in (0..len).flat_map(|p| (0..wide).map(move |j| (p, j))) {
                panel.add(p * width + j).write(b.0.offset(p as isize * b.1 + j as isize * b.2).read());
            }
        }
        if wide < width {
            for (p, j) in (0..len).flat_map(|p| (wide..width).map(move |j| (p, j))) {
                panel.add(p * width + j).write(T::zero());
            }
        }
    }
}

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
            let column: [__m256; 8] = std::array::from_fn(|i| _mm256_loadu_ps(from.offset(i as isize * step)));
            // Of two columns the elements 0, 1, 4, 5, or 2, 3, 6, 7, by turns.
            let pair: [__m256; 8] = std::array::from_fn(|i| {
                let (x, y) = (column[i / 2 * 2], column[i / 2 * 2 + 1]);
                if i % 2 == 0 { _mm256_unpacklo_ps(x, y) } else { _mm256_unpackhi_ps(x, y) }
            });
            // Of four columns the elements `i % 4` and `i % 4 + 4`.
            let four: [__m256; 8] = std::array::from_fn(|i| {
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
    for p in (0..rows).step_by(8) {
        for j in (0..wide).step_by(8) {
            block(p, j);
        }
    }
}

/// # Safety
/// Eight runs of eight elements, `step` apart, and eight rows of `width`.
#[inline]
unsafe fn transpose<T: Copy>(from: *const T, step: isize, to: *mut T, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let columns: [[T; 8]; 8] =
            std::array::from_fn(|i| from.offset(i as isize * step).cast::<[T; 8]>().read_unaligned());
        let rows = (0..8).map(|q| -> [T; 8] { std::array::from_fn(|i| columns[i][q]) });
        for (q, row) in rows.enumerate() {
            to.add(q * width).cast::<[T; 8]>().write_unaligned(row);
        }
    }
}

/// `c[j] = Σ a[p] b[p][j]`, or `+=` where `add`, for `n` columns of `k` elements. `a` and `c` are an address and a distance.
///
/// # Safety
/// As [`product`].
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
    let shared = Shared(((a.0, a.1, 0), b, (c.0, c.1, 0)));
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
/// As [`product`].
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
