//! `softmax` and `log_softmax`, row by row: a row is read completely before it is written, so that a result may share its
//! operand's memory index by index.

use crate::reduce::lanes;
use crate::support::convert::copy_convert;
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{
    Compute, Packed, Stored, compute_room, is_compute, pack, pack_owned, pack_to, with_compute,
};
use crate::support::par;
use crate::support::rows::may_share;
use crate::support::runs;
use crate::support::scratch::Temp;
use crate::support::stack::Stack;
use restride_tensor::{DType, Layout, View, ViewMut};

/// The sum of `f` over a row in interleaved parts: an order that depends on the length alone.
#[inline(always)]
pub fn sum<T: Copy, A: Copy + Default + std::ops::Add<Output = A>>(row: &[T], f: impl Fn(T) -> A) -> A {
    lanes(row, A::default(), f, |a, b| a + b)
}

/// The largest element, or NaN if the row has one.
#[inline(always)]
fn largest<T: Real>(row: &[T]) -> T {
    lanes(row, T::neg_infinity(), |x| x, |a, b| if b > a || b.is_nan() { b } else { a })
}

/// Applies `f(index, row)` to copies of consecutive rows of `len` elements (in row-major order) and writes them to
/// `out`. Each row is read before it is written, and written by one thread: `out` may share the memory of `x` index by index.
pub(crate) fn rowwise<T: Compute>(
    x: &View<'_>,
    out: &ViewMut<'_>,
    len: usize,
    threads: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    blockwise(x, out, len, threads, &|first, block| {
        block.chunks_mut(len.max(1)).enumerate().for_each(|(i, row)| f(first + i, row));
    });
}

/// As [`rowwise`], with `f(index of the first row, rows)` of several short rows at a time.
pub(crate) fn blockwise<T: Compute>(
    x: &View<'_>,
    out: &ViewMut<'_>,
    len: usize,
    threads: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    assert_eq!(x.sizes(), out.sizes(), "rows are computed between equal sizes");
    let n = out.numel();
    if n == 0 {
        return;
    }
    if !(dense::<T>(x.dtype(), x.layout()) && dense::<T>(out.dtype(), out.layout())) {
        // Some rows at a time, each in order.
        let cut = Boxes::of(out.sizes(), len);
        let sizes = out.sizes();
        let own = || Temp::filled(cut.elements, T::default());
        // SAFETY: each part of the result, and of an operand in the same memory, is one thread's.
        let both = unsafe { par::Across::new((*x, out)) };
        return par::each_with(threads, cut.count(sizes), &own, &|own, at| {
            let (x, out) = both.get();
            let (from, to) = (cut.part(x.layout(), at), cut.part(out.layout(), at));
            // SAFETY: parts of the views' cells, and no two parts of the result share any.
            let (x, out) = unsafe { (x.with_layout(&from), out.with_layout(&to)) };
            let own = &mut own[..out.numel()];
            let dense = Layout::contiguous(&to.sizes);
            if x.dtype() == T::DTYPE {
                // SAFETY: as many elements of the thread's own.
                copy_convert(x, &unsafe { ViewMut::from_raw(own.as_mut_ptr().cast(), T::DTYPE, &dense) });
            } else {
                pack_to(&x, own);
            }
            f(cut.first_row(sizes, at, len), own);
            // SAFETY: as above.
            copy_convert(unsafe { View::from_raw(own.as_ptr().cast(), T::DTYPE, &dense) }, &out);
        });
    }
    let (src, dst) = (x.ptr::<T>(), out.ptr::<T>());
    let apart = !std::ptr::eq(src, dst);
    // SAFETY: the operand is read where no thread writes, or only index by index.
    let src = unsafe { par::Across::new(src) };
    // Less work than it takes to wake a thread is one thread's.
    let threads = if n < 1 << 14 { 1 } else { threads };
    let len = len.max(1);
    let some = (DENSE / len).max(1);
    // SAFETY: the result's elements, writable, and used by this kernel alone.
    par::pieces(threads, unsafe { std::slice::from_raw_parts_mut(dst, n) }, some * len, &|i, block| {
        if apart {
            // SAFETY: a part of the operand's `n` elements; the result overlaps them only index by index, which the addresses
            // say it does not.
            unsafe { runs::copy(src.get().add(i * some * len), block.as_mut_ptr(), block.len()) };
        }
        f(i * some, block);
    });
}

/// Whether elements are of the compute type, and contiguous.
pub(super) fn dense<T: Compute>(dtype: DType, layout: &Layout) -> bool {
    dtype == T::DTYPE && layout.is_contiguous()
}

/// Elements that are worth putting in order together.
const CHUNK: usize = 4096;

/// Elements of contiguous rows that are computed together.
const DENSE: usize = 2048;

/// How rows of `len` elements, the last dimensions, are taken together: boxes of some indices of one dimension and of all of those
/// after it.
struct Boxes {
    /// That dimension; none of a single box.
    cut: Option<usize>,
    /// Indices of it in a box, but the last.
    some: usize,
    /// Elements of the largest box.
    elements: usize,
}

impl Boxes {
    fn of(sizes: &[i64], len: usize) -> Boxes {
        let (mut first, mut each) = (sizes.len(), 1);
        // Whole rows, then whole dimensions, then a part of one.
        while first > 0 && (each < len || !each.is_multiple_of(len.max(1)) || each * sizes[first - 1] as usize <= CHUNK)
        {
            first -= 1;
            each *= sizes[first] as usize;
        }
        let Some(cut) = first.checked_sub(1) else { return Boxes { cut: None, some: 1, elements: each } };
        let some = (CHUNK / each.max(1)).clamp(1, (sizes[cut] as usize).max(1));
        Boxes { cut: Some(cut), some, elements: some * each }
    }

    /// Boxes along the dimension that is cut.
    fn along(&self, sizes: &[i64]) -> usize {
        self.cut.map_or(1, |d| (sizes[d] as usize).div_ceil(self.some))
    }

    fn count(&self, sizes: &[i64]) -> usize {
        self.along(sizes) * sizes[..self.cut.unwrap_or(0)].iter().map(|&n| n as usize).product::<usize>()
    }

    /// The index of a box's first row.
    fn first_row(&self, sizes: &[i64], at: usize, len: usize) -> usize {
        let Some(d) = self.cut else { return 0 };
        let (along, size) = (self.along(sizes), sizes[d] as usize);
        let index = at / along * size + at % along * self.some;
        index * (self.elements / self.some) / len.max(1)
    }

    /// A box's cells.
    fn part(&self, l: &Layout, at: usize) -> Layout {
        let Some(d) = self.cut else { return l.clone() };
        let along = self.along(&l.sizes);
        let (start, mut rest) = ((at % along * self.some) as i64, at / along);
        let mut own = Layout::strided(&l.sizes[d..], &l.strides[d..], l.offset + start * l.strides[d]);
        own.sizes[0] = (l.sizes[d] - start).min(self.some as i64);
        for (&n, &s) in l.sizes[..d].iter().zip(&l.strides[..d]).rev() {
            own.offset += (rest % n as usize) as i64 * s;
            rest /= n as usize;
        }
        own
    }
}

/// Scratch bytes of a kernel on rows of `len` elements.
pub fn rows_room(x: Stored<'_>, len: usize, out: Stored<'_>) -> usize {
    let dense = |(d, l): Stored<'_>| is_compute(d) && l.is_contiguous();
    if x.0 == out.0 && dense(x) && dense(out) || out.1.numel() == 0 {
        return 0;
    }
    compute_room(out.0, Boxes::of(&out.1.sizes, len).elements as i64)
}

/// Which function of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Softmax {
    /// Exponentials over their sum.
    Plain,
    /// The logarithm of it.
    Log,
    /// Exponentials over their sum; zeros where all elements are minus infinity.
    Safe,
}

/// Over dimension `dim` (a 0-d tensor counts as one element).
pub fn softmax(x: &View<'_>, dim: usize, what: Softmax, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    let n = out.sizes().get(dim).map_or(1, |&n| n as usize);
    let inner: usize = out.sizes().iter().skip(dim + 1).map(|&n| n as usize).product();
    with_compute!(float out.dtype(), T => {
        if inner == 1 {
            blockwise::<T>(x, out, n, threads, &|_, rows| softmax_rows(rows, n, what));
        } else {
            rowwise::<T>(x, out, n * inner, threads, &|_, block| columns(block, inner, what));
        }
    });
    Ok(())
}

/// Scratch bytes of [`softmax`].
pub fn softmax_room(x: Stored<'_>, dim: usize, out: Stored<'_>) -> usize {
    let n = out.1.sizes.get(dim).map_or(1, |&n| n as usize);
    let inner: usize = out.1.sizes.iter().skip(dim + 1).map(|&n| n as usize).product();
    let columns = if inner == 1 { 0 } else { 2 * compute_room(out.0, inner as i64) };
    rows_room(x, n * inner, out) + columns
}

/// One contiguous row.
pub(crate) fn softmax_row<T: Real>(row: &mut [T], what: Softmax) {
    struct Row<'a, T>(&'a mut [T], Softmax);
    impl<T: Real> isa::Work for Row<'_, T> {
        type Out = ();
        const WIDEST: bool = size_of::<T>() == 4;
        #[inline(always)]
        fn run(self) {
            softmax_here(self.0, self.1);
        }
    }
    isa::run(Row(row, what));
}

#[inline(always)]
fn softmax_here<T: Real>(row: &mut [T], what: Softmax) {
    let max = largest(row);
    if what == Softmax::Safe && max == T::neg_infinity() {
        return row.fill(T::zero());
    }
    if what == Softmax::Log {
        let total = sum(row, |x| (x - max).exp_down());
        return less_logarithm(row, max, total.ln_fast());
    }
    row.iter_mut().for_each(|x| *x = (*x - max).exp_down());
    let total = sum(row, |x| x);
    let scale = T::one() / total;
    row.iter_mut().for_each(|x| *x *= scale);
}

/// Contiguous rows of `len` elements.
fn softmax_rows<T: Real>(rows: &mut [T], len: usize, what: Softmax) {
    if len <= SHORT && what != Softmax::Log {
        isa::run(ShortRows(rows, len, what));
    } else if len <= SHORT {
        let mut buffer = Stack::<T, LOGS>::new();
        let buffer = buffer.filled(LOGS / len * len, T::zero());
        isa::run(LogRows(rows, len, buffer));
    } else {
        rows.chunks_mut(len).for_each(|row| softmax_row(row, what));
    }
}

/// Elements of the longest of [`ShortRows`].
const SHORT: usize = 256;
/// Rows that go through each step of [`ShortRows`] together.
const ROWS: usize = 16;

/// Rows of up to [`SHORT`] elements. Exponentials are of several rows in one run: vectors are full, however short a row is.
struct ShortRows<'a, T>(&'a mut [T], usize, Softmax);
impl<T: Real> isa::Work for ShortRows<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        let ShortRows(rows, len, what) = self;
        for rows in rows.chunks_mut(ROWS * len) {
            let mut kept = [T::zero(); ROWS];
            for (row, max) in rows.chunks_exact(len).zip(&mut kept) {
                // NaN is left out here, and makes the sum NaN.
                *max = in_eighths(row, T::neg_infinity(), |a, b| if b > a { b } else { a });
                if what == Softmax::Safe && *max == T::neg_infinity() {
                    *max = T::zero();
                }
            }
            for (row, &max) in rows.chunks_exact_mut(len).zip(&kept) {
                row.iter_mut().for_each(|x| *x -= max);
            }
            rows.iter_mut().for_each(|x| *x = x.exp_down());
            for (row, scale) in rows.chunks_exact(len).zip(&mut kept) {
                let total = in_eighths(row, T::zero(), |a, b| a + b);
                *scale = if what == Softmax::Safe && total == T::zero() { T::zero() } else { T::one() / total };
            }
            for (row, &scale) in rows.chunks_exact_mut(len).zip(&kept) {
                row.iter_mut().for_each(|x| *x *= scale);
            }
        }
    }
}

/// Elements of some rows of [`LogRows`].
const LOGS: usize = 2048;

/// Logarithms of rows of up to [`SHORT`] elements, with the bits of single rows. Exponentials are of several rows in one run, in memory
/// of their own.
struct LogRows<'a, T>(&'a mut [T], usize, &'a mut [T]);
impl<T: Real> isa::Work for LogRows<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        let LogRows(rows, len, buffer) = self;
        let some = (buffer.len() / len).min(ROWS);
        for rows in rows.chunks_mut(some * len) {
            let (mut kept, mut totals) = ([T::zero(); ROWS], [T::zero(); ROWS]);
            let terms = &mut buffer[..rows.len()];
            for ((row, terms), max) in rows.chunks_exact(len).zip(terms.chunks_exact_mut(len)).zip(&mut kept) {
                *max = largest(row);
                let max = *max;
                terms.iter_mut().zip(row).for_each(|(y, &x)| *y = x - max);
            }
            terms.iter_mut().for_each(|y| *y = y.exp_down());
            for (terms, total) in terms.chunks_exact(len).zip(&mut totals) {
                *total = sum(terms, |x| x);
            }
            totals.iter_mut().for_each(|total| *total = total.ln_fast());
            for ((row, &max), &total) in rows.chunks_exact_mut(len).zip(&kept).zip(&totals) {
                less_logarithm(row, max, total);
            }
        }
    }
}

/// The elements of a row less the logarithm of the sum of their exponentials, whose parts are the maximum and a logarithm.
#[inline(always)]
fn less_logarithm<T: Real>(row: &mut [T], max: T, total: T) {
    // One after the other: added to a large maximum first, the logarithm would be rounded away.
    let (max, total) = if max.is_finite() { (max, total) } else { (T::zero(), max + total) };
    row.iter_mut().for_each(|x| *x = (*x - max) - total);
}

/// A short row in eight interleaved parts, and what is left of its length after them.
#[inline(always)]
fn in_eighths<T: Copy>(row: &[T], unit: T, join: impl Fn(T, T) -> T) -> T {
    let mut parts = [unit; 8];
    let (runs, rest) = row.as_chunks::<8>();
    for x in runs {
        for i in 0..8 {
            parts[i] = join(parts[i], x[i]);
        }
    }
    let mut last = unit;
    for &x in rest {
        last = join(last, x);
    }
    let mut n = 4;
    while n > 0 {
        for i in 0..n {
            parts[i] = join(parts[i], parts[i + n]);
        }
        n /= 2;
    }
    join(parts[0], last)
}

/// Over the first dimension of a block, `inner` columns at a time.
fn columns<T: Real>(block: &mut [T], inner: usize, what: Softmax) {
    struct Columns<'a, T>(&'a mut [T], [&'a mut [T]; 2], Softmax);
    impl<T: Real> isa::Work for Columns<'_, T> {
        type Out = ();
        const WIDEST: bool = size_of::<T>() == 4;
        #[inline(always)]
        fn run(self) {
            let Columns(block, [max, total], what) = self;
            let inner = max.len();
            let some = (TILE / (block.len() / inner)).max(64);
            let mut first = 0;
            for (max, total) in max.chunks_mut(some).zip(total.chunks_mut(some)) {
                columns_here(block, inner, first, [max, total], what);
                first += some;
            }
        }
    }
    let (mut max, mut total) = (Temp::filled(inner, T::neg_infinity()), Temp::filled(inner, T::zero()));
    isa::run(Columns(block, [&mut max, &mut total], what));
}

/// Elements of the columns that go through all steps together, in the nearest cache.
const TILE: usize = 8192;

/// As many columns as `max` and `total` have, from a first one on. `max` begins as minus infinity and `total` as zero, of each.
#[inline(always)]
fn columns_here<T: Real>(block: &mut [T], inner: usize, first: usize, [max, total]: [&mut [T]; 2], what: Softmax) {
    for row in block.chunks(inner) {
        for (m, &x) in max.iter_mut().zip(&row[first..]) {
            *m = if x > *m || x.is_nan() { x } else { *m };
        }
    }
    for row in block.chunks_mut(inner) {
        for ((x, &m), t) in row[first..].iter_mut().zip(&*max).zip(&mut *total) {
            let y = (*x - m).exp_down();
            *t += y;
            if what != Softmax::Log {
                *x = y;
            }
        }
    }
    match what {
        Softmax::Log => {
            total.iter_mut().for_each(|t| *t = t.ln_fast());
            for row in block.chunks_mut(inner) {
                row[first..].iter_mut().zip(&*max).zip(&*total).for_each(|((x, &m), &t)| *x = (*x - m) - t);
            }
        }
        Softmax::Plain | Softmax::Safe => {
            for row in block.chunks_mut(inner) {
                for ((x, &m), &t) in row[first..].iter_mut().zip(&*max).zip(&*total) {
                    *x = if what == Softmax::Safe && m == T::neg_infinity() { T::zero() } else { *x / t };
                }
            }
        }
    }
}

/// The gradient of a block of `total.len()` columns, in its own memory; `total` begins as zeros.
struct Backward<'a, T> {
    block: &'a mut [T],
    y: &'a [T],
    total: &'a mut [T],
    log: bool,
}

impl<T: Real> isa::Work for Backward<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        let Backward { block, y, total, log } = self;
        let inner = total.len();
        if inner == 1 {
            // A row: its products are summed in parts.
            let mut parts = [T::zero(); 16];
            for (g, y) in block.chunks(16).zip(y.chunks(16)) {
                for ((t, &g), &y) in parts.iter_mut().zip(g).zip(y) {
                    *t += if log { g } else { g * y };
                }
            }
            let t = sum(&parts, |x| x);
            for (g, &y) in block.iter_mut().zip(y) {
                *g = if log { *g - y.exp_fast() * t } else { y * (*g - t) };
            }
            return;
        }
        for (g, y) in block.chunks(inner).zip(y.chunks(inner)) {
            for ((t, &g), &y) in total.iter_mut().zip(g).zip(y) {
                *t += if log { g } else { g * y };
            }
        }
        for (g, y) in block.chunks_mut(inner).zip(y.chunks(inner)) {
            for ((g, &y), &t) in g.iter_mut().zip(y).zip(&*total) {
                *g = if log { *g - y.exp_fast() * t } else { y * (*g - t) };
            }
        }
    }
}

/// The gradient with respect to the operand of [`Softmax::Plain`] or [`Softmax::Log`], from the result `y` and the gradient
/// `g` with respect to it. A row is read before it is written: `out` may share the memory of `g` index by index.
pub fn softmax_backward(
    g: &View<'_>,
    y: &View<'_>,
    dim: usize,
    log: bool,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let n = out.sizes().get(dim).map_or(1, |&n| n as usize);
    let inner: usize = out.sizes().iter().skip(dim + 1).map(|&n| n as usize).product();
    with_compute!(float out.dtype(), T => {
        // `out` may share memory with `g`, and `y` may be the same tensor as `g`.
        let y = if may_share(y, out) { Packed::Owned(pack_owned::<T>(y)) } else { pack::<T>(y) };
        rowwise::<T>(g, out, n * inner, threads, &|i, block| {
            let y = &y[i * n * inner..][..block.len()];
            let mut total = Temp::filled(inner, T::default());
            isa::run(Backward { block, y, total: &mut total, log });
        });
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    #[test]
    fn rows_and_columns_agree_with_the_definition() {
        let data: Vec<f64> = (0..60).map(|i| ((i * 37) % 11) as f64 * 0.7 - 3.0).collect();
        let x = RawTensor::from_slice(&data, &[3, 4, 5]);
        for dim in 0..3 {
            for what in [Softmax::Plain, Softmax::Log, Softmax::Safe] {
                let out = RawTensor::zeros(DType::F64, Layout::permuted(&[3, 4, 5], &[2, 0, 1]));
                softmax(&x.read().view(), dim, what, &out.write().view_mut(), 2).unwrap();
                for i in 0..60i64 {
                    let at = [i / 20, i / 5 % 4, i % 5];
                    let total: f64 = (0..[3, 4, 5][dim])
                        .map(|j| {
                            let mut other = at;
                            other[dim] = j;
                            x.get(&other).as_f64().exp()
                        })
                        .sum();
                    let p = x.get(&at).as_f64().exp() / total;
                    let want = if what == Softmax::Log { p.ln() } else { p };
                    assert!((out.get(&at).as_f64() - want).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn a_row_of_minus_infinity_is_nan_or_zero() {
        let x = RawTensor::from_slice(&[f32::NEG_INFINITY; 3], &[1, 3]);
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[1, 3]));
        softmax(&x.read().view(), 1, Softmax::Plain, &out.write().view_mut(), 1).unwrap();
        assert!(out.to_elements::<f32>().iter().all(|x| x.is_nan()));
        softmax(&x.read().view(), 1, Softmax::Safe, &out.write().view_mut(), 1).unwrap();
        assert_eq!(out.to_elements::<f32>(), [0.0; 3]);
        softmax(&x.read().view(), 0, Softmax::Safe, &out.write().view_mut(), 1).unwrap();
        assert_eq!(out.to_elements::<f32>(), [0.0; 3]);
    }

    #[test]
    fn short_rows_agree_with_the_definition_and_with_each_other_in_any_strides() {
        for len in [1, 2, 7, 8, 9, 49, 96, 200, 256] {
            let sizes = [3, 37, len];
            let data: Vec<f32> = (0..3 * 37 * len).map(|i| ((i * 37) % 101) as f32 * 0.11 - 5.0).collect();
            let x = RawTensor::from_slice(&data, &sizes);
            let out = RawTensor::zeros(DType::F32, Layout::contiguous(&sizes));
            softmax(&x.read().view(), 2, Softmax::Plain, &out.write().view_mut(), 1).unwrap();
            for (x, y) in data.chunks(len as usize).zip(out.to_elements::<f32>().chunks(len as usize)) {
                let total: f64 = x.iter().map(|&x| f64::from(x).exp()).sum();
                for (&x, &y) in x.iter().zip(y) {
                    let want = f64::from(x).exp() / total;
                    assert!((f64::from(y) - want).abs() <= 3e-6 * want, "{len}: {y} {want}");
                }
            }
            for order in [[2, 0, 1], [1, 2, 0], [2, 1, 0]] {
                let turned = RawTensor::zeros(DType::F32, Layout::permuted(&sizes, &order));
                copy_convert(x.read().view(), &turned.write().view_mut());
                for threads in [1, 3] {
                    let to = RawTensor::zeros(DType::F32, Layout::permuted(&sizes, &order));
                    softmax(&turned.read().view(), 2, Softmax::Plain, &to.write().view_mut(), threads).unwrap();
                    assert_eq!(to.to_elements::<f32>(), out.to_elements::<f32>(), "{len} {order:?} {threads}");
                }
            }
        }
    }

    #[test]
    fn logarithms_of_short_rows_have_the_bits_of_single_rows() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        for len in [1, 3, 10, 197, 256] {
            let mut data: Vec<f32> = (0..37 * len).map(|i| ((i * 37) % 101) as f32 * 0.11 - 5.0).collect();
            data[0] = inf;
            data[len] = nan;
            data[2 * len..3 * len].fill(-inf);
            let mut want = data.clone();
            want.chunks_mut(len).for_each(|row| softmax_row(row, Softmax::Log));
            isa::tests::on_each(|isa| {
                let mut got = data.clone();
                softmax_rows(&mut got, len, Softmax::Log);
                let same = got.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
                assert!(same, "{len} {isa:?}");
            });
        }
    }

    #[test]
    fn boxes_of_rows_are_all_rows_in_order() {
        for (sizes, len) in
            [(&[5i64, 70, 96][..], 96), (&[2, 3, 5000], 5000), (&[3, 9, 41, 8], 328), (&[7], 7), (&[], 1)]
        {
            let l = Layout::permuted(sizes, &(0..sizes.len()).rev().collect::<Vec<_>>());
            let (all, cut) = (l.cells(), Boxes::of(sizes, len));
            let mut got = Vec::new();
            for at in 0..cut.count(sizes) {
                assert_eq!(cut.first_row(sizes, at, len), got.len() / len);
                let part = cut.part(&l, at);
                assert!(part.numel() as usize <= cut.elements && (part.numel() as usize).is_multiple_of(len));
                got.extend(part.cells());
            }
            assert_eq!(got, all, "{sizes:?}");
        }
    }

    #[test]
    fn a_result_may_lie_on_its_operand() {
        let data: Vec<f32> = (0..40).map(|i| ((i * 29) % 17) as f32).collect();
        for layout in [Layout::contiguous(&[5, 8]), Layout::permuted(&[5, 8], &[1, 0])] {
            for dim in [0, 1] {
                let x = RawTensor::zeros(DType::F32, layout.clone());
                crate::support::pack::unpack(&data, &x.write().view_mut());
                let apart = RawTensor::zeros(DType::F32, layout.clone());
                softmax(&x.read().view(), dim, Softmax::Plain, &apart.write().view_mut(), 1).unwrap();
                let both = restride_tensor::Access::of([&x], [&x]).unwrap();
                // SAFETY: each row is read before it is written.
                let (from, to) = unsafe { (both.view(&x), both.view_mut(&x)) };
                softmax(&from, dim, Softmax::Plain, &to, 1).unwrap();
                drop(both);
                assert_eq!(x.to_elements::<f32>(), apart.to_elements::<f32>());
            }
        }
    }
}
