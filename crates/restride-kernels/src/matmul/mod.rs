//! Matrix products. One order of summation for given sizes, whatever the strides and the number of threads: see `blocked.rs`.

mod as_floats;
pub(crate) mod blocked;
mod by_rows;
mod cells;
pub mod grouped;
pub(crate) mod lanes;
mod outer;
pub mod packed;
mod pairs;
pub(crate) mod panels;
mod small;
mod tile;
mod vector;

use crate::support::convert::load_row;
use crate::support::epilogue;
use crate::support::pack::{Compute, Stored, Target, fill, pack, with_compute};
use crate::support::par::{self, EvenParts};
use crate::support::rows::Rows;
use crate::support::scratch::Temp;
use blocked::{Matrix, MatrixMut};
use by_rows::{Right, by_rows};
use panels::{Panels, Strided};
use restride_tensor::{C32, C64, DType, Layout, PerDim, Scalar, View, ViewMut};
use small::{EachProduct, is_small};

/// A compute type with a matrix product.
pub trait Gemm: Compute + num_traits::Zero {
    /// `c = a b`, or `c += a b` where `add`: `a` is m × k, `b` is k × n, `c` is m × n; an address and the distances of rows and of
    /// columns, in elements. Where `vector`, one of `m` and `n` is 1, and the order of summation is that of such products.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of `c` writable, different cells that no other thread uses.
    unsafe fn product(
        size: (usize, usize, usize),
        vector: bool,
        a: Matrix<Self>,
        b: Matrix<Self>,
        c: MatrixMut<Self>,
        add: bool,
        threads: usize,
    );
    /// As [`product`](Gemm::product), of operands that are made piece by piece, in the order of products of matrices whatever the
    /// sizes.
    ///
    /// # Safety
    /// Both operands have these sizes, and their promises hold. All elements of `c` are readable and writable, different cells that
    /// no other thread uses and that no operand is made of.
    unsafe fn product_of<A: panels::Rows<Self> + ?Sized, B: Panels<Self> + ?Sized>(
        size: (usize, usize, usize),
        a: &A,
        b: &B,
        c: MatrixMut<Self>,
        add: bool,
        threads: usize,
    );
    /// As [`product`](Gemm::product), of operands that are made piece by piece: the same bits.
    ///
    /// # Safety
    /// As [`product_of`](Gemm::product_of).
    unsafe fn product_by(
        size: (usize, usize, usize),
        vector: bool,
        a: &dyn panels::Rows<Self>,
        b: &dyn Panels<Self>,
        c: MatrixMut<Self>,
        add: bool,
        threads: usize,
    ) {
        let _ = vector;
        // SAFETY: the caller's promise.
        unsafe { Self::product_of(size, a, b, c, add, threads) }
    }
    /// Products of a few terms and columns, one after the other, if there is a loop for them.
    ///
    /// # Safety
    /// The promise that `EachProduct::run` asks for.
    unsafe fn each_product(of: EachProduct<Self>) {
        unreachable!("no products of {:?} are small", of.size)
    }
    /// Whether there is [`each_product`](Gemm::each_product).
    const EACH: bool = false;
    /// Whether the transposes of both operands, exchanged, have the same bits as a product.
    const SYMMETRIC: bool = true;
    /// The kernels of pairs of `bf16`.
    fn pairs() -> Option<&'static tile::Kernels<Self>> {
        None
    }
    /// Columns of a panel.
    fn width() -> usize;
    /// Transposes columns that are runs.
    fn turn() -> tile::Turn<Self>;
    /// `beta c + alpha ab`, element by element; `c` is not looked at where `beta` is zero.
    fn blend(ab: Self, alpha: Scalar, c: Self, beta: Scalar) -> Self;
}

/// The [`Gemm::blend`] of a type: its one, its zero, and the type's number of a scalar.
macro_rules! blended {
    ($t:ty, $one:expr, $zero:expr, |$s:ident| $cast:expr) => {
        fn blend(ab: Self, alpha: Scalar, c: Self, beta: Scalar) -> Self {
            let cast = |$s: Scalar| -> $t { $cast };
            let (alpha, beta) = (cast(alpha), cast(beta));
            let ab = if alpha == $one { ab } else { alpha * ab };
            if beta == $zero {
                ab
            } else if beta == $one {
                c + ab
            } else {
                beta * c + ab
            }
        }
    };
}

use blended;

macro_rules! real {
    ($($t:ty, $kernels:ident, $pairs:expr, |$s:ident| $cast:expr;)*) => {$(
        impl Gemm for $t {
            unsafe fn product(
                (m, n, k): (usize, usize, usize),
                vector: bool,
                a: Matrix<Self>,
                b: Matrix<Self>,
                c: MatrixMut<Self>,
                add: bool,
                threads: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    match vector {
                        true if m == 1 => vector::vector((n, k), (a.0, a.2), b, (c.0, c.2), add, threads),
                        true => vector::vector((m, k), (b.0, b.1), (a.0, a.2, a.1), (c.0, c.1), add, threads),
                        false if k == 1 && outer::outer((m, n), a, b, c, add, threads) => {}
                        false => {
                            let (left, right) = (Strided::new(a), Strided::new(b));
                            if flips(tile::$kernels().lanes, (m, n, k), a, b, c) {
                                let (left, right) = (right.transposed(), left.transposed());
                                let c = (c.0, c.2, c.1);
                                turned(&|| {
                                    blocked::product(tile::$kernels(), (n, m, k), &left, &right, c, add, threads)
                                })
                            } else {
                                blocked::product(tile::$kernels(), (m, n, k), &left, &right, c, add, threads)
                            }
                        }
                    }
                }
            }
            unsafe fn product_of<A: panels::Rows<Self> + ?Sized, B: Panels<Self> + ?Sized>(
                size: (usize, usize, usize),
                a: &A,
                b: &B,
                c: MatrixMut<Self>,
                add: bool,
                threads: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe { blocked::product(tile::$kernels(), size, a, b, c, add, threads) }
            }
            unsafe fn product_by(
                size: (usize, usize, usize),
                vector: bool,
                a: &dyn panels::Rows<Self>,
                b: &dyn Panels<Self>,
                c: MatrixMut<Self>,
                add: bool,
                threads: usize,
            ) {
                // SAFETY: the caller's promise.
                unsafe {
                    match vector && (size.0 == 1 || size.1 == 1) {
                        true => vector::vector_of(size, Self::width(), a, b, c, add, threads),
                        false if pairs::product(size, a, b, c, add, threads) => {}
                        false => Self::product_of(size, a, b, c, add, threads),
                    }
                }
            }
            unsafe fn each_product(of: EachProduct<Self>) {
                // SAFETY: the caller's promise.
                unsafe { of.run() }
            }
            const EACH: bool = true;
            fn pairs() -> Option<&'static tile::Kernels<Self>> {
                $pairs
            }
            fn width() -> usize {
                tile::$kernels().width()
            }
            fn turn() -> tile::Turn<Self> {
                tile::$kernels().turn
            }
            blended!($t, 1.0, 0.0, |$s| $cast);
        }
    )*};
}
real! {
    f32, kernels_f32, tile::kernels_pairs(), |s| s.as_f64() as f32;
    f64, kernels_f64, None, |s| s.as_f64();
}

/// Most elements of rows that a product with a few columns reads where they are.
const NEIGHBOURS: usize = 32;

/// Whether a product is computed as its transpose, with the same sums: vectors run along rows of the result, so along its columns
/// if those are runs; but not along what is shorter than a vector. Rows of at most [`NEIGHBOURS`] elements that lie side by side are
/// read where they are all the same: packing them as columns takes longer than vectors that are not full.
fn flips<T>(lanes: usize, (m, n, k): (usize, usize, usize), a: Matrix<T>, b: Matrix<T>, c: MatrixMut<T>) -> bool {
    let short = |n: usize, m: usize, (row, column): (isize, isize)| {
        n < m && (2 * n <= lanes && (column != 1 || k > NEIGHBOURS) || n <= 24 && row == 1 && column != 1)
    };
    if c.1 == 1 && c.2 != 1 { !short(m, n, (b.2, b.1)) } else { short(n, m, (a.1, a.2)) }
}

/// Computes the transpose of a product, whose epilogue gets the product's own rows and columns.
fn turned(product: &dyn Fn()) {
    epilogue::take_of_product(|done| match done {
        Some(done) => epilogue::with_product(&|rows, columns| done(columns, rows), product),
        None => product(),
    });
}

/// Whether a product is one with a vector.
fn is_vector(m: usize, n: usize) -> bool {
    m == 1 || n == 1
}

/// `c = a b` (or `+=`) on slices: `a` is m × k and row-major, or k × m where `a_t`; `b` likewise.
///
/// # Panics
/// If a slice is too short for these sizes.
pub fn matmul<T: Gemm>(
    (m, n, k): (usize, usize, usize),
    (a, a_t): (&[T], bool),
    (b, b_t): (&[T], bool),
    c: &mut [T],
    add: bool,
    threads: usize,
) {
    let holds = |len: usize, rows: usize, columns: usize| rows.checked_mul(columns).is_some_and(|n| len >= n);
    let fits = holds(a.len(), m, k) && holds(b.len(), k, n) && holds(c.len(), m, n);
    assert!(fits, "operands of a product are too short");
    let a_strides = if a_t { (1, m as isize) } else { (k as isize, 1) };
    let b_strides = if b_t { (1, k as isize) } else { (n as isize, 1) };
    // SAFETY: the sizes were checked above, and `c` is borrowed exclusively.
    unsafe {
        let a = (a.as_ptr(), a_strides.0, a_strides.1);
        let b = (b.as_ptr(), b_strides.0, b_strides.1);
        T::product((m, n, k), is_vector(m, n), a, b, (c.as_mut_ptr(), n as isize, 1), add, threads)
    }
}

/// A batch of matrices, found by number.
pub(crate) struct Matrices<T> {
    base: *mut T,
    sizes: PerDim<usize>,
    strides: PerDim<isize>,
    row: isize,
    col: isize,
}
// SAFETY: an address; whoever reads or writes through it says why it may.
unsafe impl<T> Sync for Matrices<T> {}

impl<T> Matrices<T> {
    /// The last two dimensions of a layout at `base`, broadcast over `batch`.
    pub(crate) fn new(base: *mut T, layout: &Layout, batch: &[i64]) -> Self {
        let rank = layout.rank();
        let own = rank - 2;
        let mut strides: PerDim<isize> = PerDim::from_elem(0, batch.len());
        for d in 0..own {
            if layout.sizes[d] != 1 {
                strides[batch.len() - own + d] = layout.strides[d] as isize;
            }
        }
        let base = base.wrapping_offset(layout.offset as isize);
        let sizes = batch.iter().map(|&n| n as usize).collect();
        Matrices {
            base,
            sizes,
            strides,
            row: layout.strides[rank - 2] as isize,
            col: layout.strides[rank - 1] as isize,
        }
    }
    pub(crate) fn at(&self, mut i: usize) -> MatrixMut<T> {
        let mut cell = 0;
        for (&n, &s) in self.sizes.iter().zip(&self.strides).rev() {
            cell += (i % n) as isize * s;
            i /= n;
        }
        (self.base.wrapping_offset(cell), self.row, self.col)
    }
}

/// The addend of a product: `beta c + alpha ab`.
#[derive(Clone, Copy)]
pub struct Added<'a> {
    /// Broadcast to the result.
    pub c: Option<View<'a>>,
    /// Factor of `c`; `c` is not looked at where it is zero.
    pub beta: Scalar,
    /// Factor of the product.
    pub alpha: Scalar,
}

impl<'a> Added<'a> {
    /// Only the product.
    pub const NONE: Added<'static> = Added { c: None, beta: Scalar::Int(0), alpha: Scalar::Int(1) };
    /// The product and a bias.
    pub fn bias(c: Option<View<'a>>) -> Self {
        Added { c, beta: Scalar::Int(1), alpha: Scalar::Int(1) }
    }
}

/// `out = beta c + alpha a b` as `torch.matmul` multiplies: vectors, matrices and batches of matrices that
/// broadcast. Where `b_t`, the last dimensions of `b` are n × k.
pub fn product(
    a: &View<'_>,
    b: &View<'_>,
    b_t: bool,
    added: &Added<'_>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let (mut la, mut lb, mut lo) = (a.layout().clone(), b.layout().clone(), out.layout().clone());
    let mut lc = added.c.map(|c| c.layout().expand(out.sizes())).transpose().map_err(|e| e.0)?;
    let put = |l: &mut Layout, d: i64| -> Result<(), String> {
        *l = l.unsqueeze(d).map_err(|e| e.0)?;
        Ok(())
    };
    if lb.rank() == 1 {
        put(&mut lb, if b_t { 0 } else { 1 })?;
        put(&mut lo, -1)?;
        lc.iter_mut().try_for_each(|l| put(l, -1))?;
    }
    if la.rank() == 1 {
        put(&mut la, 0)?;
        put(&mut lo, -2)?;
        lc.iter_mut().try_for_each(|l| put(l, -2))?;
    }
    fits(&la, &lb, b_t, &lo)?;
    // SAFETY: new dimensions of size 1 and broadcasting reach no other cells.
    let (a, b, out) = unsafe { (a.with_layout(&la), b.with_layout(&lb), out.with_layout(&lo)) };
    // SAFETY: as above.
    let c = added.c.zip(lc.as_ref()).map(|(c, l)| unsafe { c.with_layout(l) });
    let added = Added { c, ..*added };
    with_compute!(any out.dtype(), T => {
        if lb.rank() == 2 {
            let n = out.layout().sizes[out.layout().rank() - 1] as usize;
            by_rows::<T>(&a, &Right::of(&b, b_t), n, &added, &out, threads)
        } else {
            stacked::<T>(&a, &b, b_t, &added, &out, threads)
        }
    })
}

/// Whether matrices or batches of them have the sizes of a product, batches those that broadcast to the result's.
fn fits(a: &Layout, b: &Layout, b_t: bool, out: &Layout) -> Result<(), String> {
    let ranks = [a.rank(), b.rank(), out.rank()];
    let sizes = |l: &Layout| (l.sizes[l.rank() - 2], l.sizes[l.rank() - 1]);
    let broadcasts = |l: &Layout| {
        let (own, all) = (&l.sizes[..l.rank() - 2], &out.sizes[..out.rank() - 2]);
        own.len() <= all.len() && own.iter().zip(&all[all.len() - own.len()..]).all(|(&n, &m)| n == m || n == 1)
    };
    let fit = ranks.iter().all(|r| *r >= 2) && {
        let ((m, k), (depth, n)) = (
            sizes(a),
            if b_t {
                let (n, k) = sizes(b);
                (k, n)
            } else {
                sizes(b)
            },
        );
        // One matrix on the right: all rows on the left are those of one product.
        let rows = b.rank() > 2 || a.rank() == 2 || a.sizes[..a.rank() - 1] == out.sizes[..out.rank() - 1];
        k == depth && sizes(out) == (m, n) && broadcasts(a) && broadcasts(b) && rows
    };
    if fit {
        return Ok(());
    }
    let [a, b, out] = [a, b, out].map(|l| &l.sizes[..]);
    Err(format!("matrices of sizes {a:?} and {b:?}{} have no product of sizes {out:?}", if b_t { "ᵀ" } else { "" }))
}

/// As [`batched`], with the addend, for any type of the result.
fn stacked<T: Gemm>(
    a: &View<'_>,
    b: &View<'_>,
    b_t: bool,
    added: &Added<'_>,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    if out.dtype() == T::DTYPE {
        batched::<T>(a, b, b_t, out, threads)?;
        return blend::<T>(out, added);
    }
    let mut target = Target::<T>::new(out);
    let lo = Layout::contiguous(out.sizes());
    // SAFETY: the target's elements, not used otherwise before it is finished.
    let ab = unsafe { ViewMut::from_raw(target.slice().as_mut_ptr() as *mut u8, T::DTYPE, &lo) };
    batched::<T>(a, b, b_t, &ab, threads)?;
    blend::<T>(&ab, added)?;
    target.finish();
    Ok(())
}

/// Products of the last two dimensions, broadcast over the others, into memory of the compute type.
fn batched<T: Gemm>(a: &View<'_>, b: &View<'_>, b_t: bool, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    if out.numel() == 0 {
        return Ok(());
    }
    let rank = out.layout().rank();
    let batch = &out.sizes()[..rank - 2];
    let (m, n) = (out.sizes()[rank - 2] as usize, out.sizes()[rank - 1] as usize);
    let k = a.sizes()[a.layout().rank() - 1] as usize;
    let swapped = b.layout().transpose(-1, -2).map_err(|e| e.0)?;
    // SAFETY: the same cells in another order.
    let b = if b_t { unsafe { b.with_layout(&swapped) } } else { *b };
    let to = Matrices::new(out.base() as *mut T, out.layout(), batch);
    let items = batch.iter().product::<i64>() as usize;
    let (over, inner) = if items >= threads { (threads, 1) } else { (1, threads) };
    let over = if items * m * n * k < 1 << 16 { 1 } else { over };
    let read = |(p, row, col): MatrixMut<T>| (p as *const T, row, col);
    if a.dtype() == T::DTYPE && b.dtype() == T::DTYPE {
        let left = Matrices::new(a.base() as *mut T, a.layout(), batch);
        let right = Matrices::new(b.base() as *mut T, b.layout(), batch);
        if T::EACH && items > 1 && is_small((m, n, k)) {
            small_batch::<T>((m, n, k), (left, a.layout()), (right, b.layout()), (to, out.layout()), over);
            return Ok(());
        }
        par::each(over, items, &|i| {
            let (a, b) = (read(left.at(i)), read(right.at(i)));
            // SAFETY: operands' cells are readable, results' are writable and different, each matrix is one thread's.
            unsafe { T::product((m, n, k), is_vector(m, n), a, b, to.at(i), false, inner) }
        });
        return Ok(());
    }
    // Cells by number.
    let left = Matrices::<u8>::new(std::ptr::null_mut(), a.layout(), batch);
    let right = Matrices::<u8>::new(std::ptr::null_mut(), b.layout(), batch);
    // SAFETY: operands are read only.
    let views = unsafe { par::Across::new((*a, b)) };
    par::each(over, items, &|i| {
        let ((a, b), x, y) = (views.get(), left.at(i), right.at(i));
        // SAFETY: as above; the views live while the product is computed.
        unsafe {
            let x = cells::Cells::matrix(a, x.0 as isize, (x.1, x.2));
            let y = cells::Cells::matrix(b, y.0 as isize, (y.1, y.2));
            T::product_by((m, n, k), is_vector(m, n), &x, &y, to.at(i), false, inner)
        }
    });
    Ok(())
}

/// As [`batched`], of small matrices: those at equal distances are computed in one loop.
fn small_batch<T: Gemm>(
    size: (usize, usize, usize),
    a: (Matrices<T>, &Layout),
    b: (Matrices<T>, &Layout),
    to: (Matrices<T>, &Layout),
    threads: usize,
) {
    let items = |l: &Layout| Layout::strided(&l.sizes[..l.rank() - 2], &l.strides[..l.rank() - 2], 0);
    let (lo, la, lb) = (items(to.1), items(a.1), items(b.1));
    let rows = Rows::logical(&[&lo, &la, &lb]);
    // SAFETY: operands' cells are readable, results' are writable and different, each product is one thread's.
    let shared = unsafe { par::Across::new((&rows, a.0.at(0), b.0.at(0), to.0.at(0))) };
    EvenParts::new(rows.len(), threads).at_least(LEAST_SMALL).each(&|part| {
        let (rows, a, b, to) = shared.get();
        let first = part.start as isize;
        rows.for_each(|at| {
            let [c, a, b] = [(to, 0), (a, 1), (b, 2)].map(|(&(base, row, column), i)| {
                let step = rows.stride(i);
                ((base.wrapping_offset(at[i] + first * step), row, column), step)
            });
            let read = |((p, row, column), step): (MatrixMut<T>, isize)| ((p as *const T, row, column), step);
            // SAFETY: as above; the size was asked for.
            unsafe { T::each_product(EachProduct { size, a: read(a), b: read(b), c, count: part.len() }) }
        });
    });
}

/// Small products that are worth a thread.
const LEAST_SMALL: usize = 512;

/// Applies `beta` and `alpha` to a product in the compute type; `c` has the result's sizes.
fn blend<T: Gemm>(ab: &ViewMut<'_>, added: &Added<'_>) -> Result<(), String> {
    let base = ab.base() as *mut T;
    match &added.c {
        Some(c) if added.beta.as_bool() => {
            let rows = Rows::any_order(&[ab.layout(), c.layout()]);
            let (to_step, step) = (rows.stride(0), rows.stride(1));
            let sum = T::DTYPE.is_float() && added.alpha == Scalar::Int(1) && added.beta == Scalar::Int(1);
            if sum && c.dtype() == T::DTYPE && (to_step, step) == (1, 1) {
                let addend = c.base() as *const T;
                rows.for_each(|at| {
                    // SAFETY: runs of the result's cells, which this kernel alone uses, and of the addend's.
                    let (to, from) = unsafe {
                        let to = std::slice::from_raw_parts_mut(base.offset(at[0]), rows.len());
                        (to, std::slice::from_raw_parts(addend.offset(at[1]), rows.len()))
                    };
                    to.iter_mut().zip(from).for_each(|(y, &c)| *y = c + *y);
                });
                return Ok(());
            }
            let mut run = [T::default(); 64];
            rows.for_each(|at| {
                for first in (0..rows.len()).step_by(run.len()) {
                    let run = &mut run[..(rows.len() - first).min(64)];
                    // SAFETY: cells of the addend.
                    unsafe { load_row(c.dtype(), c.base(), at[1] + first as isize * step, step, run) }
                    for (i, y) in run.iter().enumerate() {
                        // SAFETY: cells of the result, which this kernel alone uses.
                        unsafe {
                            let cell = base.offset(at[0] + (first + i) as isize * to_step);
                            cell.write(T::blend(cell.read(), added.alpha, *y, added.beta));
                        }
                    }
                }
            });
        }
        _ if added.alpha != Scalar::Int(1) => {
            let rows = Rows::any_order(&[ab.layout()]);
            rows.for_each(|at| {
                for i in 0..rows.len() as isize {
                    // SAFETY: cells of the result, which this kernel alone uses.
                    unsafe {
                        let cell = base.offset(at[0] + i * rows.stride(0));
                        cell.write(T::blend(cell.read(), added.alpha, T::default(), Scalar::Int(0)));
                    }
                }
            });
        }
        _ => {}
    }
    Ok(())
}

/// Scratch bytes of [`product`] and [`product_packed`](packed::product_packed): a result in another type than it is computed in.
pub fn product_room(out: Stored<'_>) -> usize {
    use crate::support::pack::{compute_room, is_compute};
    if is_compute(out.0) { 0 } else { compute_room(out.0, out.1.numel()) }
}

/// `out = sum(conj(a[i]) * b[i])`, of vectors.
pub fn vdot(a: &View<'_>, b: &View<'_>, out: &ViewMut<'_>) -> Result<(), String> {
    fn run<T: Gemm>(a: &View<'_>, b: &View<'_>, conj: impl Fn(T) -> T, out: &ViewMut<'_>) {
        let (x, y) = (pack::<T>(a), pack::<T>(b));
        let x: Temp<T> = x.iter().map(|&x| conj(x)).collect();
        let mut r = [T::default()];
        matmul((1, 1, x.len()), (&x, false), (&y, false), &mut r, false, 1);
        fill(out, r[0]);
    }
    match out.dtype() {
        DType::C64 => run::<C32>(a, b, |z| z.conj(), out),
        DType::C128 => run::<C64>(a, b, |z| z.conj(), out),
        d => with_compute!(any d, T => run::<T>(a, b, |x| x, out)),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
