//! Reductions over dimensions.
//!
//! The kept dimensions are walked over, the reduced ones are a row in logical order: the order in which a row is joined depends on
//! its length alone. Long rows are joined pairwise, so that the error of a sum grows with the logarithm of its length. Sums, means,
//! products of singles and extremes read the operand in its own strides (`joined.rs`); others gather rows into contiguous ones.

mod beside;
pub mod cumulative;
pub mod distance;
pub(crate) mod joined;
mod log_sum_exp;
mod norms;
pub mod parts;
pub mod pick;

use crate::reduce::beside::{RowByRow, row_by_row};
use crate::reduce::joined::{BLOCK, JoinedRows, block, is_real, side};
use crate::reduce::log_sum_exp::ReducedColumns;
pub(crate) use crate::reduce::norms::norm;
use crate::reduce::norms::{squared, variance};
use crate::support::convert::{Compute, Kind, copy_convert, round_through};
use crate::support::isa;
use crate::support::number::{Inexact, Number, Ordered};
use crate::support::pack::{Packed, Stored, Target, compute_room, pack, packed_room, with_compute};
use crate::support::par;
use crate::support::scratch;
use crate::support::stack::Stack;
use restride_tensor::{DType, Layout, View, ViewMut};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The result of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reduction {
    /// Sum.
    Sum,
    /// Sum of the elements that are not NaN.
    NanSum,
    /// Sum over the number of elements.
    Mean,
    /// Product.
    Prod,
    /// Largest, or NaN.
    Max,
    /// Smallest, or NaN.
    Min,
    /// Whether any is not zero.
    Any,
    /// Whether all are not zero.
    All,
    /// How many are not zero.
    Count,
    /// Logarithm of the sum of exponentials.
    LogSumExp,
    /// p-norm of the absolute values; infinite and 0 included.
    Norm(f64),
    /// Sum of squared distances from the mean, over the number of elements less `correction`.
    Var {
        /// Degrees of freedom taken off.
        correction: f64,
        /// Its square root (standard deviation).
        root: bool,
    },
}

/// A fold of a row.
struct Fold<'a, A, J> {
    row: &'a [A],
    unit: A,
    join: J,
}

impl<A: Compute, J: Fn(A, A) -> A + Copy> isa::Work for Fold<'_, A, J> {
    type Out = A;
    // Others are rare, and their code is long.
    const VECTORS: bool = is_real::<A>();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) -> A {
        let Fold { row, unit, join } = self;
        if row.len() <= block::<A>() {
            return lanes(row, unit, |x| x, join);
        }
        let mut tree = Tree::new();
        for block in row.chunks(block::<A>()) {
            tree.push(lanes(block, unit, |x| x, join), join);
        }
        tree.root(join)
    }
}

/// Values joined pairwise, as a stack of joined powers of two: the shape depends on their number alone.
struct Tree<A> {
    stack: [MaybeUninit<A>; 64],
    depth: usize,
    values: usize,
}

impl<A: Copy> Tree<A> {
    #[inline(always)]
    fn new() -> Self {
        Tree { stack: [const { MaybeUninit::uninit() }; 64], depth: 0, values: 0 }
    }
    #[inline(always)]
    fn pop(&mut self) -> A {
        self.depth -= 1;
        // SAFETY: values below the depth were pushed.
        unsafe { self.stack[self.depth].assume_init() }
    }
    #[inline(always)]
    fn push(&mut self, mut value: A, join: impl Fn(A, A) -> A) {
        for _ in 0..self.values.trailing_ones() {
            value = join(self.pop(), value);
        }
        self.stack[self.depth].write(value);
        self.depth += 1;
        self.values += 1;
    }
    /// Of at least one value.
    #[inline(always)]
    fn root(mut self, join: impl Fn(A, A) -> A) -> A {
        let mut value = self.pop();
        while self.depth > 0 {
            value = join(self.pop(), value);
        }
        value
    }
}

/// Joins all elements: interleaved parts within a block ([`lanes`]), blocks pairwise.
// Its code is long: one copy for each type and join.
#[inline(never)]
pub(crate) fn fold<A: Compute>(row: &[A], unit: A, join: impl Fn(A, A) -> A + Copy) -> A {
    isa::run(Fold { row, unit, join })
}

/// As [`fold`], on up to `threads` threads.
fn fold_on<A: Compute>(row: &[A], threads: usize, unit: A, join: impl Fn(A, A) -> A + Copy + Sync) -> A {
    branches(row.len(), threads, unit, join, &|part| fold(&row[part], unit, join))
}

/// As [`fold_on`] of `len` terms: `write` puts those from a position on into a slice. All that terms are made of shares one fold.
fn fold_terms<A: Compute>(
    len: usize,
    threads: usize,
    unit: A,
    join: impl Fn(A, A) -> A + Copy + Sync,
    write: &(dyn Fn(usize, &mut [A]) + Sync),
) -> A {
    branches(len, threads, unit, join, &|part| {
        let mut buffer = Stack::<A, BLOCK>::new();
        let buffer = buffer.filled(part.len().min(block::<A>()), unit);
        let mut tree = Tree::new();
        for start in part.clone().step_by(block::<A>()) {
            let terms = &mut buffer[..block::<A>().min(part.end - start)];
            write(start, terms);
            tree.push(fold(terms, unit, join), join);
        }
        if part.is_empty() { unit } else { tree.root(join) }
    })
}

/// Joins the branches of a tree, each folded by one thread: the result is the same for any number of threads.
fn branches<A: Compute>(
    len: usize,
    threads: usize,
    unit: A,
    join: impl Fn(A, A) -> A + Copy + Sync,
    fold: &(dyn Fn(Range<usize>) -> A + Sync),
) -> A {
    // The shortest branch that is worth a thread.
    let mut branch = 16 * block::<A>();
    if threads <= 1 || len < 4 * branch {
        return fold(0..len);
    }
    let mut values = [unit; 64];
    while len.div_ceil(branch) > values.len() {
        branch *= 2;
    }
    let values = &mut values[..len.div_ceil(branch)];
    par::pieces(threads, values, 1, &|i, value| value[0] = fold(i * branch..len.min((i + 1) * branch)));
    let mut tree = Tree::new();
    values.iter().for_each(|&value| tree.push(value, join));
    tree.root(join)
}

/// A row in [`side`] interleaved parts, which are joined at the end: an order that depends on the length alone.
#[inline(always)]
pub(crate) fn lanes<T: Copy, A: Copy>(row: &[T], unit: A, f: impl Fn(T) -> A, join: impl Fn(A, A) -> A) -> A {
    match const { side::<A>() } {
        64 => parts::<T, A, 16>(row, unit, f, join),
        32 => parts::<T, A, 8>(row, unit, f, join),
        _ => parts::<T, A, 4>(row, unit, f, join),
    }
}

/// As [`lanes`], in four times `N` parts: arrays that are small enough to be registers.
#[inline(always)]
fn parts<T: Copy, A: Copy, const N: usize>(row: &[T], unit: A, f: impl Fn(T) -> A, join: impl Fn(A, A) -> A) -> A {
    let [mut first, mut second, mut third, mut fourth] = [[unit; N]; 4];
    let (runs, _) = row.as_chunks::<N>();
    let (chunks, _) = runs.as_chunks::<4>();
    for [a, b, c, d] in chunks {
        for i in 0..N {
            first[i] = join(first[i], f(a[i]));
        }
        for i in 0..N {
            second[i] = join(second[i], f(b[i]));
        }
        for i in 0..N {
            third[i] = join(third[i], f(c[i]));
        }
        for i in 0..N {
            fourth[i] = join(fourth[i], f(d[i]));
        }
    }
    let rest = &row[chunks.len() * 4 * N..];
    // Parts of a short row without elements do not count.
    let used = if chunks.is_empty() { rest.len().next_power_of_two() } else { 4 * N };
    let mut all = [first, second, third, fourth];
    // The compiler would choose the loop's registers by what follows, and shuffle them in each round.
    std::hint::black_box(&mut all);
    for (l, &x) in all.as_flattened_mut().iter_mut().zip(rest) {
        *l = join(*l, f(x));
    }
    let [mut first, mut second, third, fourth] = all;
    if used > 2 * N {
        for i in 0..N {
            (first[i], second[i]) = (join(first[i], third[i]), join(second[i], fourth[i]));
        }
    }
    if used > N {
        for i in 0..N {
            first[i] = join(first[i], second[i]);
        }
    }
    // Each half by a loop of constant length: `N` is 16 at most.
    let mut all = first;
    halve(&mut all, N / 2, used, &join);
    halve(&mut all, N / 4, used, &join);
    halve(&mut all, N / 8, used, &join);
    halve(&mut all, N / 16, used, &join);
    all[0]
}

/// Joins each of the first `n` parts with the part `n` places after it, if more than `n` parts have elements.
#[inline(always)]
fn halve<A: Copy>(all: &mut [A], n: usize, used: usize, join: &impl Fn(A, A) -> A) {
    if used > n {
        for i in 0..n {
            all[i] = join(all[i], all[i + n]);
        }
    }
}

/// Writes `f` of elements, for [`fold_terms`].
fn terms<T: Copy, A>(row: &[T], f: impl Fn(T) -> A) -> impl Fn(usize, &mut [A]) {
    move |start, to| to.iter_mut().zip(&row[start..]).for_each(|(to, &x)| *to = f(x))
}

/// The sum of `f` of all elements, on up to `threads` threads.
fn total_on<T: Copy + Sync, A: Number>(row: &[T], threads: usize, f: impl Fn(T) -> A + Sync) -> A {
    fold_terms(row.len(), threads, A::ZERO, A::plus, &terms(row, f))
}

/// As [`total_on`], on one thread.
pub(crate) fn total<T: Copy + Sync, A: Number>(row: &[T], f: impl Fn(T) -> A + Sync) -> A {
    total_on(row, 1, f)
}

/// The layout with the kept dimensions first, and the length of a row of reduced elements.
pub(crate) fn kept_first(layout: &Layout, reduced: &[bool]) -> (Layout, usize) {
    let rank = layout.rank();
    let order = (0..rank).filter(|&d| !reduced[d]).chain((0..rank).filter(|&d| reduced[d]));
    let mut out = Layout { offset: layout.offset, ..Layout::contiguous(&[]) };
    for d in order {
        out.sizes.push(layout.sizes[d]);
        out.strides.push(layout.strides[d]);
    }
    let len = (0..rank).filter(|&d| reduced[d]).map(|d| layout.sizes[d] as usize).product();
    (out, len)
}

/// Whether elements are cast to another type first: where that is not a mere widening, which packing does.
fn is_cast(from: DType, to: DType) -> bool {
    from.promote(to) != to
}

/// Calls `f` with the elements, cast to another type where packing does not do that.
pub(crate) fn cast(x: &View<'_>, to: DType, f: &mut dyn FnMut(&View<'_>)) {
    if !is_cast(x.dtype(), to) {
        return f(x);
    }
    scratch::tensor(to, &Layout::contiguous(x.sizes()), |own| {
        copy_convert(*x, own);
        f(&own.as_view())
    })
}

/// Scratch bytes of [`cast`], and type and layout of the elements after it.
pub(crate) fn cast_room((dtype, layout): Stored<'_>, to: DType) -> (usize, DType, Layout) {
    if !is_cast(dtype, to) {
        return (0, dtype, layout.clone());
    }
    (scratch::tensor_room(to, layout.numel()), to, Layout::contiguous(&layout.sizes))
}

/// Writes `f` of each row, elements read as `read` holds them.
pub(crate) fn each_row<T: Compute, R: Compute>(
    x: &View<'_>,
    reduced: &[bool],
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
    f: &(dyn Fn(&[T], usize) -> R + Sync),
) {
    each_block::<T, R>(x, reduced, read, out, threads, &|rows, len, to, within| {
        for (i, r) in to.iter_mut().enumerate() {
            *r = f(&rows[i * len..][..len], within);
        }
    });
}

/// As [`each_row`], several rows at a time: `f` gets them, the length of each, where their results go, and the threads it may use.
fn each_block<T: Compute, R: Compute>(
    x: &View<'_>,
    reduced: &[bool],
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
    f: &(dyn Fn(&[T], usize, &mut [R], usize) + Sync),
) {
    // Less work than it takes to wake a thread is one thread's.
    let threads = if x.numel() < 1 << 15 { 1 } else { threads };
    cast(x, read, &mut |x| {
        let (layout, len) = kept_first(x.layout(), reduced);
        // SAFETY: the same cells with dimensions in another order.
        let x = unsafe { x.with_layout(&layout) };
        let mut data = pack::<T>(&x);
        if read != x.dtype() {
            let mut own = data.into_owned();
            round_through(read, &mut own);
            data = Packed::Owned(own);
        }
        let mut target = Target::<R>::new(out);
        let chunk = 16384usize.div_ceil(len.max(1));
        // A single row is shared between the threads itself.
        let within = if out.numel() == 1 { threads } else { 1 };
        par::pieces(threads, target.slice(), chunk, &|i, piece| {
            f(&data[i * chunk * len..][..piece.len() * len], len, piece, within);
        });
        target.finish();
    });
}

/// Writes `finish` of the sum of `term` of each row's elements.
fn each_total<T: Compute, A: Number>(
    x: &View<'_>,
    reduced: &[bool],
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
    term: impl Fn(T) -> A + Copy + Sync,
    finish: impl Fn(A) -> A + Sync,
) {
    each_block::<T, A>(x, reduced, read, out, threads, &|rows, len, to, within| {
        if to.len() > 1 && (1..=block::<A>()).contains(&len) {
            let mut memory = Stack::<A, BLOCK>::new();
            let many = block::<A>() / len;
            for (rows, to) in rows.chunks(many * len).zip(to.chunks_mut(many)) {
                let terms = memory.filled(rows.len(), A::ZERO);
                terms.iter_mut().zip(rows).for_each(|(to, &x)| *to = term(x));
                let (from, apart) = (terms.as_ptr(), len as isize);
                row_by_row(RowByRow { to, from, apart, len, unit: A::ZERO, join: A::plus });
            }
        } else {
            to.iter_mut().enumerate().for_each(|(i, to)| *to = total_on(&rows[i * len..][..len], within, term));
        }
        to.iter_mut().for_each(|to| *to = finish(*to));
    });
}

/// Scratch bytes of [`reduce`].
pub fn reduce_room(x: Stored<'_>, reduced: &[bool], what: Reduction, read: DType, out: Stored<'_>) -> usize {
    let (own, dtype, layout) = cast_room(x, read);
    let product = what == Reduction::Prod && Kind::of(read) == Kind::F32;
    if product || matches!(what, Reduction::Sum | Reduction::Mean | Reduction::Max | Reduction::Min) {
        return own + packed_room(out);
    }
    if what == Reduction::LogSumExp
        && let Some(columns) = ReducedColumns::of(x, reduced, read)
    {
        return columns.room(read) + packed_room(out);
    }
    let (layout, _) = kept_first(&layout, reduced);
    let whole = if read == dtype { packed_room((dtype, &layout)) } else { compute_room(read, layout.numel()) };
    // Variances are kept in double precision.
    let wide = matches!(what, Reduction::Var { .. }) && out.0 != DType::F64;
    own + whole + if wide { scratch::room::<f64>(out.1.numel() as usize) } else { packed_room(out) }
}

/// Most elements of an operand. Memory has no more; an expanded operand may, and reading them would take minutes.
const MOST: usize = 1 << 36;

/// Reduces the marked dimensions of `x`, whose elements are read as `read` holds them (`sum(dtype=...)`). The result
/// has the kept dimensions, or all with the reduced ones of size 1.
///
/// # Errors
/// An operand of more than 2^36 elements.
pub fn reduce(
    x: &View<'_>,
    reduced: &[bool],
    what: Reduction,
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    if x.numel() > MOST {
        return Err(format!("an operand of {} elements is more than memory can hold", x.numel()));
    }
    match what {
        Reduction::Sum => with_compute!(any read, T => summed::<T>(x, reduced, read, out, threads, &|_| {})),
        Reduction::NanSum => with_compute!(any read, T => {
            each_row::<T, T>(x, reduced, read, out, threads, &|row, threads| {
                total_on(row, threads, |x: T| if x.has_nan() { T::ZERO } else { x })
            })
        }),
        Reduction::Mean => with_compute!(inexact read, T => {
            let len = (0..reduced.len()).filter(|&d| reduced[d]).map(|d| x.sizes()[d] as usize).product();
            summed::<T>(x, reduced, read, out, threads, &|sums| sums.iter_mut().for_each(|sum| *sum = sum.over(len)))
        }),
        Reduction::Prod if Kind::of(read) == Kind::F32 => {
            JoinedRows { unit: 1.0, join: f32::times }.run(x, reduced, read, out, threads, &|_| {})
        }
        Reduction::Prod => with_compute!(any read, T => {
            each_row::<T, T>(x, reduced, read, out, threads, &|row, _| fold(row, T::ONE, T::times))
        }),
        Reduction::Max => with_compute!(real read, T => {
            JoinedRows { unit: T::LEAST, join: largest::<T> }.run(x, reduced, read, out, threads, &|_| {})
        }),
        Reduction::Min => with_compute!(real read, T => {
            JoinedRows { unit: T::MOST, join: smallest::<T> }.run(x, reduced, read, out, threads, &|_| {})
        }),
        Reduction::Any => with_compute!(any read, T => {
            each_row::<T, i64>(x, reduced, read, out, threads, &|row, _| row.iter().any(|x| x.truth()) as i64)
        }),
        Reduction::All => with_compute!(any read, T => {
            each_row::<T, i64>(x, reduced, read, out, threads, &|row, _| row.iter().all(|x| x.truth()) as i64)
        }),
        Reduction::Count => with_compute!(any read, T => {
            each_total(x, reduced, read, out, threads, |x: T| x.truth() as i64, |count| count)
        }),
        Reduction::LogSumExp => with_compute!(float read, T => {
            if let Some(columns) = ReducedColumns::of((x.dtype(), x.layout()), reduced, read) {
                let mut target = Target::<T>::new(out);
                log_sum_exp::columns::<T>(x, columns, target.slice(), threads);
                target.finish();
                return Ok(());
            }
            each_block::<T, T>(x, reduced, read, out, threads, &|rows, len, to, _| log_sum_exp::rows(rows, len, to))
        }),
        Reduction::Norm(2.0) => with_compute!(inexact read, T => {
            each_total(x, reduced, read, out, threads, squared::<T>, |sum| sum.sqrt())
        }),
        Reduction::Norm(p) => with_compute!(inexact read, T => {
            each_row::<T, <T as Inexact>::Abs>(x, reduced, read, out, threads, &|row, _| norm(row, p))
        }),
        Reduction::Var { correction, root } => with_compute!(inexact read, T => {
            each_row::<T, f64>(x, reduced, read, out, threads, &|row, _| {
                let v = variance(row, correction);
                if root { v.sqrt() } else { v }
            })
        }),
    }
    Ok(())
}

/// Sums of the marked dimensions, after `finish`.
fn summed<T: Number>(
    x: &View<'_>,
    reduced: &[bool],
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
    finish: &(dyn Fn(&mut [T]) + Sync),
) {
    JoinedRows { unit: T::ZERO, join: T::plus }.run(x, reduced, read, out, threads, finish)
}

/// The larger of two, or NaN.
#[inline(always)]
fn largest<T: Ordered>(a: T, b: T) -> T {
    let larger = if b > a { b } else { a };
    if b.has_nan() { b } else { larger }
}

/// The smaller of two, or NaN.
#[inline(always)]
fn smallest<T: Ordered>(a: T, b: T) -> T {
    let smaller = if b < a { b } else { a };
    if b.has_nan() { b } else { smaller }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    fn run(x: &RawTensor, reduced: &[bool], what: Reduction, dtype: DType, sizes: &[i64]) -> RawTensor {
        let out = RawTensor::zeros(dtype, Layout::contiguous(sizes));
        reduce(&x.read().view(), reduced, what, x.dtype(), &out.write().view_mut(), 2).unwrap();
        out
    }

    #[test]
    fn long_sums_are_accurate_whatever_the_strides() {
        let n = 1_000_003;
        let data: Vec<f32> = (0..2 * n).map(|i| 0.1 + (i % 7) as f32).collect();
        let x = RawTensor::from_slice(&data, &[n, 2]);
        let flipped = RawTensor::zeros(DType::F32, Layout::permuted(&[n, 2], &[1, 0]));
        crate::support::pack::unpack(&data, &flipped.write().view_mut());
        let sums = run(&x, &[true, false], Reduction::Sum, DType::F32, &[2]).to_elements::<f32>();
        assert_eq!(sums, run(&flipped, &[true, false], Reduction::Sum, DType::F32, &[2]).to_elements::<f32>());
        for (c, &sum) in sums.iter().enumerate() {
            let want: f64 = data.iter().skip(c).step_by(2).map(|&x| x as f64).sum();
            assert!((sum as f64 - want).abs() < want * 1e-6, "{sum} for {want}");
        }
    }

    #[test]
    fn numbers_that_are_none_are_kept_or_passed_over() {
        let x = RawTensor::from_slice(&[1.0f32, f32::NAN, 3.0, 4.0, 2.0, 5.0], &[2, 3]);
        let max = run(&x, &[false, true], Reduction::Max, DType::F32, &[2, 1]).to_elements::<f32>();
        assert!(max[0].is_nan() && max[1] == 5.0);
        assert_eq!(run(&x, &[false, true], Reduction::NanSum, DType::F32, &[2]).to_elements::<f32>(), [4.0, 11.0]);
        let norm = run(&x, &[true, false], Reduction::Norm(f64::NEG_INFINITY), DType::F32, &[3]).to_elements::<f32>();
        assert!(norm[0] == 1.0 && norm[1].is_nan() && norm[2] == 3.0);
    }

    #[test]
    fn nothing_has_a_sum_and_a_norm() {
        let x = RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 0]));
        let of = |what| run(&x, &[false, true], what, DType::F32, &[2]).to_elements::<f32>();
        assert_eq!(of(Reduction::Sum), [0.0; 2]);
        assert_eq!(of(Reduction::Prod), [1.0; 2]);
        assert_eq!(of(Reduction::LogSumExp), [f32::NEG_INFINITY; 2]);
        assert_eq!(of(Reduction::Norm(2.0)), [0.0; 2]);
        assert!(of(Reduction::Mean)[0].is_nan());
        assert!(of(Reduction::Var { correction: 1.0, root: false })[0].is_nan());
    }

    #[test]
    fn rows_that_threads_share_have_the_same_sum() {
        for n in [131_072, 200_003] {
            let row: Vec<f32> = (0..n).map(|i| 0.1 + (i % 97) as f32).collect();
            let alone = total(&row, |x| x);
            for threads in [2, 3] {
                assert_eq!(total_on(&row, threads, |x| x).to_bits(), alone.to_bits(), "{n}");
            }
        }
    }

    #[test]
    fn sums_do_not_depend_on_the_instruction_set() {
        for n in [5, 31, 64, 100, 511, 3000] {
            let row: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
            let want = total(&row, |x| x).to_bits();
            isa::tests::on_each(|isa| assert_eq!(total(&row, |x| x).to_bits(), want, "{n} {isa:?}"));
        }
    }

    #[test]
    fn trees_join_all_blocks_once() {
        for n in [0, 1, 7, 512, 513, 1024, 1025, 2600, 4096, 70_001] {
            let row: Vec<i64> = (0..n).collect();
            assert_eq!(total(&row, |x| x), n * (n - 1) / 2);
        }
    }
}
