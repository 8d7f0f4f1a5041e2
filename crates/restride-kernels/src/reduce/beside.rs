//! The loops of `joined.rs`: elements of one row, or of neighbouring rows, in the order that the length of a row decides.

use super::joined::{block, is_real, side};
use super::lanes;
use crate::support::array;
use crate::support::cache::{CacheLevel, LINE, prefetch};
use crate::support::convert::Compute;
use crate::support::isa;
use restride_tensor::DType;

/// Rows that are fetched before they are joined beside each other.
const AHEAD: isize = 8;

/// Joins rows of one block each, which are runs.
pub(super) struct RowByRow<'a, T, J> {
    pub to: &'a mut [T],
    pub from: *const T,
    /// Elements from a row to the next.
    pub apart: isize,
    pub len: usize,
    pub unit: T,
    pub join: J,
}

impl<T: Compute, J: Fn(T, T) -> T + Copy> isa::Work for RowByRow<'_, T, J> {
    type Out = ();
    const VECTORS: bool = is_real::<T>();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let RowByRow { to, mut from, apart, len, unit, join } = self;
        for to in to {
            // SAFETY: the elements of a row.
            let row = unsafe { std::slice::from_raw_parts(from, len) };
            *to = lanes(row, unit, |x| x, join);
            from = from.wrapping_offset(apart);
        }
    }
}

/// Joins rows of one block each, which are runs; short ones a vector of rows at a time.
// Its code is long: one copy for each type and join.
#[inline(never)]
pub(super) fn row_by_row<T: Compute, J: Fn(T, T) -> T + Copy>(mut rows: RowByRow<'_, T, J>) {
    let done = short_rows(&mut rows);
    let from = rows.from.wrapping_offset(done as isize * rows.apart);
    isa::run(RowByRow { to: &mut rows.to[done..], from, ..rows });
}

/// Joins rows as [`RowByRow`], the first ones that fill vectors of them, if they are short: how many it has joined.
fn short_rows<T: Compute, J: Fn(T, T) -> T + Copy>(rows: &mut RowByRow<'_, T, J>) -> usize {
    if rows.len > SHORT || !const { is_real::<T>() } || !isa::has_vectors() {
        return 0;
    }
    let (vectors, _) = rows.to.as_chunks_mut::<STRIP>();
    let count = vectors.len() * STRIP;
    let (from, apart, len, unit, join) = (rows.from, rows.apart, rows.len, rows.unit, rows.join);
    isa::run_narrow(RowsBeside { vectors, from, apart, len, unit, join });
    count
}

/// Elements of rows that are joined beside each other though their elements are neighbours.
const SHORT: usize = 16;

/// Joins rows of at most [`SHORT`] elements, a vector of rows at a time, in the order of [`lanes`].
struct RowsBeside<'a, T, J> {
    vectors: &'a mut [[T; STRIP]],
    from: *const T,
    apart: isize,
    len: usize,
    unit: T,
    join: J,
}

impl<T: Compute, J: Fn(T, T) -> T + Copy> isa::Work for RowsBeside<'_, T, J> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let RowsBeside { vectors, mut from, apart, len, unit, join } = self;
        for to in vectors {
            let mut parts = [[unit; STRIP]; SHORT];
            for (i, part) in parts.iter_mut().enumerate().take(len) {
                for (j, part) in part.iter_mut().enumerate() {
                    // SAFETY: the elements of the rows.
                    *part = join(unit, unsafe { from.wrapping_offset(j as isize * apart).add(i).read() });
                }
            }
            let mut n = len.next_power_of_two();
            while n > 1 {
                n /= 2;
                for i in 0..n {
                    let right = parts[i + n];
                    for j in 0..STRIP {
                        parts[i][j] = join(parts[i][j], right[j]);
                    }
                }
            }
            *to = parts[0];
            from = from.wrapping_offset(STRIP as isize * apart);
        }
    }
}

/// Elements of the parts of rows that are one run together.
pub(super) const RUN: usize = 256;

/// Joins the elements of a few neighbouring rows of at most [`side`] elements, which are one run together: the elements of a part are
/// side by side, and so are those of the first half of all parts.
pub(super) struct OneRun<'a, T, J> {
    pub to: &'a mut [T],
    pub from: *const T,
    pub len: usize,
    pub unit: T,
    pub join: J,
}

impl<T: Compute, J: Fn(T, T) -> T + Copy> isa::Work for OneRun<'_, T, J> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let OneRun { to, from, len, unit, join } = self;
        let mut n = to.len() * len.next_power_of_two();
        let mut parts = [unit; RUN];
        let parts = &mut parts[..n];
        for (i, part) in parts.iter_mut().enumerate().take(to.len() * len) {
            // SAFETY: the elements of the rows.
            *part = join(unit, unsafe { from.add(i).read() });
        }
        while n > to.len() {
            n /= 2;
            let (low, high) = parts.split_at_mut(n);
            for (a, &b) in low.iter_mut().zip(&*high) {
                *a = join(*a, b);
            }
        }
        to.copy_from_slice(&parts[..to.len()]);
    }
}

/// As [`Tree`], of `wide` rows side by side.
pub(super) struct TreeBeside<'a, T> {
    pub memory: &'a mut [T],
    pub wide: usize,
    pub depth: usize,
}

impl<'a, T: Copy> TreeBeside<'a, T> {
    /// Memory of the value that is pushed next.
    #[inline(always)]
    pub(super) fn top(&mut self) -> &mut [T] {
        &mut self.memory[self.depth * self.wide..][..self.wide]
    }
    /// Pushes the value there, joined with the last ones.
    #[inline(always)]
    pub(super) fn push(&mut self, joins: u32, join: impl Fn(T, T) -> T) {
        for _ in 0..joins {
            let (left, right) = self.memory.split_at_mut(self.depth * self.wide);
            let left = &mut left[(self.depth - 1) * self.wide..];
            left.iter_mut().zip(right).for_each(|(l, r)| *l = join(*l, *r));
            self.depth -= 1;
        }
        self.depth += 1;
    }
    /// Of at least one value.
    pub(super) fn root(self, join: impl Fn(T, T) -> T + Copy) -> &'a mut [T] {
        let TreeBeside { memory, wide, depth } = self;
        for depth in (1..depth).rev() {
            let (left, right) = memory.split_at_mut(depth * wide);
            joined_into(&mut left[(depth - 1) * wide..], &right[..wide], join);
        }
        &mut memory[..wide]
    }
}

/// Joins elements with as many others, the left operands.
// Its code is long: one copy for each type and join.
#[inline(never)]
pub(super) fn joined_into<T: Copy>(left: &mut [T], right: &[T], join: impl Fn(T, T) -> T) {
    left.iter_mut().zip(right).for_each(|(l, r)| *l = join(*l, *r));
}

/// Joins the elements of neighbouring rows one part of a block after the other, in the order of their tree: the operand is read in
/// long runs, and little memory holds the values.
pub(super) struct PartByPart<'a, 'b, T, J> {
    pub tree: &'a mut TreeBeside<'b, T>,
    pub from: *const T,
    pub apart: isize,
    pub len: usize,
    pub unit: T,
    pub join: J,
}

impl<T: Compute, J: Fn(T, T) -> T + Copy> isa::Work for PartByPart<'_, '_, T, J> {
    type Out = ();
    const VECTORS: bool = is_float::<T>();
    const WIDEST: bool = matches!(T::DTYPE, DType::F32);
    #[inline(always)]
    fn run(self) {
        let PartByPart { tree, from, apart, len, unit, join } = self;
        let (side, block) = (side::<T>(), block::<T>());
        for (blocks, start) in (0..len).step_by(block).enumerate() {
            let end = len.min(start + block);
            let used = side.min((end - start).next_power_of_two());
            let bits = used.ilog2();
            let part = |i: usize| i.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
            let row = |r: usize| from.wrapping_offset(r as isize * apart);
            // Four parts of one row each are joined at once; the last of them is the farthest row.
            let four = |i: usize| end - start <= side && used >= 4 && i.is_multiple_of(4) && start + part(i + 3) < end;
            let mut i = 0;
            while i < used {
                let count = if four(i) { 4 } else { 1 };
                // The rows of the next parts are elsewhere: they come while these are joined.
                for next in (i + count..used.min(i + 2 * count)).map(|i| start + part(i)) {
                    if end - start <= side && next < end {
                        for line in (0..tree.wide).step_by(LINE / size_of::<T>()) {
                            prefetch(row(next).wrapping_add(line), CacheLevel::First);
                        }
                    }
                }
                let to = tree.top();
                let mut r = start + part(i);
                // SAFETY: elements of the rows.
                unsafe {
                    if count == 4 {
                        join_parts(to, array::from_fn(|k| row(start + part(i + k))), unit, join);
                    } else {
                        to.fill(unit);
                        while r + 3 * side < end {
                            join_rows(to, [row(r), row(r + side), row(r + 2 * side), row(r + 3 * side)], join);
                            r += 4 * side;
                        }
                        while r < end {
                            join_rows(to, [row(r)], join);
                            r += side;
                        }
                    }
                }
                // Two of the joins of four parts are done.
                let joins = (i + count - 1).trailing_ones() - if count == 4 { 2 } else { 0 };
                i += count;
                tree.push(joins + if i == used { blocks.trailing_ones() } else { 0 }, join);
            }
        }
    }
}

/// Whether rows of the type are joined in vectors.
pub(super) const fn is_float<T: Compute>() -> bool {
    matches!(T::DTYPE, DType::F32 | DType::F64)
}

/// Elements of rows that are joined in a vector.
pub(super) const STRIP: usize = 16;

/// Values of a tree of [`side`] parts.
const LEVELS: usize = side::<f32>().ilog2() as usize + 1;

/// Joins the elements of neighbouring rows of at most [`side`] elements, a vector of rows at a time.
pub(super) struct Strips<'a, T, J> {
    pub to: &'a mut [T],
    pub from: *const T,
    pub apart: isize,
    pub len: usize,
    pub unit: T,
    pub join: J,
}

impl<T: Compute, J: Fn(T, T) -> T + Copy> isa::Work for Strips<'_, T, J> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let Strips { to, from, apart, len, unit, join } = self;
        let used = len.next_power_of_two();
        let mut stack = [[unit; STRIP]; LEVELS];
        let both = |a: [T; STRIP], b: [T; STRIP]| {
            let mut joined = a;
            for j in 0..STRIP {
                joined[j] = join(a[j], b[j]);
            }
            joined
        };
        let last = to.len() - STRIP;
        for first in (0..last).step_by(STRIP).chain([last]) {
            let part = |part: usize| {
                if part >= len {
                    return [unit; STRIP];
                }
                let row = from.wrapping_offset(part as isize * apart).wrapping_add(first);
                // SAFETY: elements of the rows.
                both([unit; STRIP], unsafe { row.cast::<[T; STRIP]>().read_unaligned() })
            };
            if used < 4 {
                stack[0] = if used == 2 { both(part(0), part(1)) } else { part(0) };
            }
            // Four parts at a time, in the order of the bits of a counter read backwards.
            let (quarter, mut depth) = (used / 4, 0);
            for i in 0..quarter {
                let k = i.reverse_bits().checked_shr(usize::BITS - quarter.ilog2()).unwrap_or(0);
                let low = both(part(k), part(k + 2 * quarter));
                let mut value = both(low, both(part(k + quarter), part(k + 3 * quarter)));
                for _ in 0..i.trailing_ones() {
                    depth -= 1;
                    value = both(stack[depth], value);
                }
                stack[depth] = value;
                depth += 1;
            }
            to[first..][..STRIP].copy_from_slice(&stack[0]);
        }
    }
}

/// Joins elements of rows with `to`, one row after the other.
///
/// # Safety
/// The rows have as many elements.
#[inline(always)]
unsafe fn join_rows<T: Copy, const R: usize>(to: &mut [T], rows: [*const T; R], join: impl Fn(T, T) -> T) {
    for (j, to) in to.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *to = rows.iter().fold(*to, |sum, row| join(sum, unsafe { row.add(j).read() }));
    }
}

/// Joins the elements of four rows pairwise, each of them a part.
///
/// # Safety
/// The rows have as many elements as `to`.
#[inline(always)]
unsafe fn join_parts<T: Copy>(to: &mut [T], rows: [*const T; 4], unit: T, join: impl Fn(T, T) -> T) {
    for (j, to) in to.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let [a, b, c, d] = rows.map(|row| join(unit, unsafe { row.add(j).read() }));
        *to = join(join(a, b), join(c, d));
    }
}

/// Elements of `wide` rows that go to the next parts.
pub(super) struct AddBeside<'a, T, J> {
    pub parts: &'a mut [T],
    /// Elements of the block so far.
    pub held: usize,
    pub from: *const T,
    pub apart: isize,
    pub rows: usize,
    pub wide: usize,
    pub join: J,
}

impl<T: Compute, J: Fn(T, T) -> T + Copy> isa::Work for AddBeside<'_, T, J> {
    type Out = ();
    const VECTORS: bool = is_float::<T>();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let AddBeside { parts, mut held, mut from, apart, mut rows, wide, join } = self;
        let side = side::<T>();
        // Four elements of each part at a time, so that a part is read and written once for them.
        while rows >= 4 * side && held % side == 0 {
            for part in parts.chunks_exact_mut(wide) {
                let row = |g: usize| from.wrapping_offset((g * side) as isize * apart);
                // The same of the rows that come next.
                for line in (0..wide).step_by(LINE / size_of::<T>()) {
                    (0..4).for_each(|g| {
                        prefetch(row(g).wrapping_offset(AHEAD * apart).wrapping_add(line), CacheLevel::Second)
                    });
                }
                // SAFETY: elements of the rows.
                unsafe { join_rows(part, [row(0), row(1), row(2), row(3)], join) };
                from = from.wrapping_offset(apart);
            }
            from = from.wrapping_offset((3 * side) as isize * apart);
            (rows, held) = (rows - 4 * side, held + 4 * side);
        }
        for i in held..held + rows {
            // SAFETY: elements of the rows; the last step is not read from.
            unsafe { join_rows(&mut parts[i % side * wide..][..wide], [from], join) };
            from = from.wrapping_offset(apart);
        }
    }
}
