//! Reductions that join elements two by two, in the strides of the operand: sums, means, largest and smallest elements.
//!
//! A row is joined in blocks of [`block`] elements, each in [`side`] interleaved parts, and blocks pairwise: the order depends on
//! the length of a row alone. Strides choose what is computed together: elements of one row, or neighbouring rows.

use super::{Tree, cast, fold, fold_on};
use crate::matmul::panels::prefetch;
use crate::support::convert::{Compute, load_row, round_through};
use crate::support::isa;
use crate::support::pack::{Target, merged};
use crate::support::par;
use crate::support::rows::Rows;
use crate::support::stack::Stack;
use restride_tensor::{DType, Layout, View, ViewMut};
use std::mem::MaybeUninit;

/// Parts of a block, side by side: 256 bytes of them, fewer of large elements.
pub(crate) const fn side<A>() -> usize {
    match size_of::<A>() {
        0..=4 => 64,
        5..=8 => 32,
        _ => 16,
    }
}

/// Elements that are joined in parts; blocks of them are joined pairwise.
pub(crate) const fn block<A>() -> usize {
    32 * side::<A>()
}

/// Elements of the largest block.
const BLOCK: usize = block::<f32>();
/// Fewest neighbouring rows that are computed together.
const FEW: usize = 8;
/// Elements that are worth a thread.
const SHARED: usize = 1 << 15;
/// Rows that are fetched before they are joined beside each other.
const AHEAD: isize = 8;

/// Rows that are joined: of one dimension of kept indices, those of the others are walked over.
pub(super) struct JoinedRows<T, J> {
    /// What joins nothing.
    pub unit: T,
    pub join: J,
}

impl<T: Compute, J: Fn(T, T) -> T + Copy + Sync> JoinedRows<T, J> {
    /// Writes `finish` of each joined row, elements read as `read` holds them.
    pub(super) fn run(
        &self,
        x: &View<'_>,
        reduced: &[bool],
        read: DType,
        out: &ViewMut<'_>,
        threads: usize,
        finish: &(dyn Fn(T) -> T + Sync),
    ) {
        let threads = if x.numel() < SHARED { 1 } else { threads };
        cast(x, read, &mut |x| {
            let part = |reduced_: bool| {
                let dims = (0..reduced.len()).filter(|&d| reduced[d] == reduced_);
                let of = |v: &[i64]| dims.clone().map(|d| v[d]).collect();
                Layout { sizes: of(&x.layout().sizes), strides: of(&x.layout().strides), offset: 0 }
            };
            let (kept, terms) = (part(false), part(true));
            let len = terms.numel() as usize;
            // Where the elements of a result are from, and its position: dimension by dimension.
            let mut dims = merged(&kept);
            let mut target = Target::<T>::new(out);
            let results = target.slice().len();
            let to = par::Shared::new(target.slice());
            // The loops of complex numbers are long, and theirs are rare.
            let beside = if const { size_of::<T>() <= 8 } {
                dims.iter().position(|&(n, s, _)| s == 1 && n >= FEW)
            } else {
                None
            };
            let tile = beside.map(|d| dims.remove(d));
            let offset = x.layout().offset as isize;
            let start = |mut i: usize| {
                let (mut cell, mut at) = (offset, 0);
                for &(n, s, step) in dims.iter().rev() {
                    cell += (i % n) as isize * s;
                    at += i % n * step;
                    i /= n;
                }
                (cell, at)
            };
            let rows = Rows::logical(&[&terms]);
            let source = ReducedElements { x: *x, read, rows: &rows, len };
            if results == 0 {
            } else if let (Some((n, _, step)), true) = (tile, len > 0) {
                let wide = side::<T>();
                let tiles = n.div_ceil(wide);
                let items = results / n * tiles;
                let some = SHARED.div_ceil(len * wide);
                par::each(threads, items.div_ceil(some), &|i| {
                    for i in i * some..items.min((i + 1) * some) {
                        let (cell, at) = start(i / tiles);
                        let first = i % tiles * wide;
                        let mut sums = [self.unit; 64];
                        let sums = &mut sums[..wide.min(n - first)];
                        match const { side::<T>() } {
                            64 => self.beside::<64, 64>(&source, cell + first as isize, sums),
                            32 => self.beside::<32, 32>(&source, cell + first as isize, sums),
                            _ => self.beside::<16, 16>(&source, cell + first as isize, sums),
                        }
                        for (j, &sum) in sums.iter().enumerate() {
                            // SAFETY: the position of a result, which is this item's alone.
                            unsafe { to.at(at + (first + j) * step).write(finish(sum)) };
                        }
                    }
                });
            } else {
                // Rows of one operand element are neighbours: `dims` are all, or the tile goes back to its place.
                if let (Some(d), Some(tile)) = (beside, tile) {
                    dims.insert(d, tile);
                }
                let start = |mut i: usize| {
                    let mut cell = offset;
                    for &(n, s, _) in dims.iter().rev() {
                        cell += (i % n) as isize * s;
                        i /= n;
                    }
                    cell
                };
                let here =
                    x.dtype() == T::DTYPE && read == T::DTYPE && rows.len() == len && (rows.stride(0) == 1 || len == 1);
                // A single row is shared between the threads itself.
                let within = if results == 1 { threads } else { 1 };
                let some = SHARED.div_ceil(2 * len.max(1));
                par::each(threads, results.div_ceil(some), &|i| {
                    for i in i * some..results.min((i + 1) * some) {
                        let cell = start(i);
                        let sum = if len == 0 {
                            self.unit
                        } else if here {
                            // SAFETY: the elements of the row, which is a run.
                            let row =
                                unsafe { std::slice::from_raw_parts(source.base().cast::<T>().offset(cell), len) };
                            fold_on(row, within, self.unit, |x| x, self.join)
                        } else {
                            self.gathered(&source, cell)
                        };
                        // SAFETY: the position of a result, which is this item's alone.
                        unsafe { to.at(i).write(finish(sum)) };
                    }
                });
            }
            target.finish();
        });
    }

    /// A row, put in order block by block.
    fn gathered(&self, of: &ReducedElements<'_>, at: isize) -> T {
        let mut buffer = Stack::<T, BLOCK>::new();
        let size = block::<T>();
        let buffer = buffer.filled(of.len.min(size), T::default());
        let (mut tree, mut held, mut left) = (Tree::new(self.unit), 0, of.len);
        of.rows.for_each(|cell| {
            let mut done = 0;
            while done < of.rows.len() {
                let n = (of.rows.len() - done).min(buffer.len() - held);
                of.load(
                    at + cell[0] + done as isize * of.rows.stride(0),
                    of.rows.stride(0),
                    &mut buffer[held..held + n],
                );
                (held, done, left) = (held + n, done + n, left - n);
                if held == size || left == 0 {
                    tree.push(fold(&buffer[..held], self.unit, |x| x, self.join), self.join);
                    held = 0;
                }
            }
        });
        tree.root(self.join)
    }

    /// Up to `W` rows whose elements are neighbours, the first ones at a cell; `N` is [`side`].
    fn beside<const N: usize, const W: usize>(&self, of: &ReducedElements<'_>, at: isize, sums: &mut [T]) {
        let mut parts = Stack::<[T; W], N>::new();
        // A short row has elements for these only.
        let parts = parts.filled(N.min(of.len.next_power_of_two()), [self.unit; W]);
        let mut state = BlockParts::<T, N, W> { parts, held: 0 };
        let mut tree = TreeBeside::<T, W> { stack: [const { MaybeUninit::uninit() }; 64], depth: 0, values: 0 };
        let (size, wide) = (block::<T>(), sums.len());
        let mut buffer = [[T::default(); W]; 8];
        let here = of.x.dtype() == T::DTYPE && of.read == T::DTYPE;
        let step = of.rows.stride(0);
        let mut left = of.len;
        of.rows.for_each(|cell| {
            let mut done = 0;
            while done < of.rows.len() {
                let mut n = (of.rows.len() - done).min(size - state.held);
                let cell = at + cell[0] + done as isize * step;
                let (from, apart) = if here {
                    (of.x.base().cast::<T>().wrapping_offset(cell), step)
                } else {
                    n = n.min(buffer.len());
                    for (i, row) in buffer[..n].iter_mut().enumerate() {
                        of.load(cell + i as isize * step, 1, &mut row[..wide]);
                    }
                    (buffer.as_ptr().cast(), W as isize)
                };
                let work = AddBeside { state: &mut state, from, apart, rows: n, wide, join: self.join };
                (done, left) = (done + n, left - n);
                isa::run(work);
                if state.held == size || left == 0 {
                    let value = state.close(self.unit, self.join);
                    tree.push(value, self.join);
                }
            }
        });
        sums.copy_from_slice(&tree.root(self.join)[..wide]);
    }
}

/// Elements that are reduced.
struct ReducedElements<'a> {
    x: View<'a>,
    /// Elements are rounded to this type.
    read: DType,
    /// The terms of a row, from its first cell.
    rows: &'a Rows,
    len: usize,
}

// SAFETY: elements are read only, for the life of the view.
unsafe impl Sync for ReducedElements<'_> {}

impl ReducedElements<'_> {
    fn base(&self) -> *const u8 {
        self.x.base()
    }
    /// Elements from a cell on.
    fn load<T: Compute>(&self, cell: isize, step: isize, to: &mut [T]) {
        // SAFETY: whoever walks over rows names cells of the operand.
        unsafe { load_row(self.x.dtype(), self.x.base(), cell, step, to) };
        if self.read != self.x.dtype() {
            round_through(self.read, to);
        }
    }
}

/// The parts of a block of each of `W` rows.
struct BlockParts<'a, T, const N: usize, const W: usize> {
    parts: &'a mut [[T; W]],
    /// Elements of the block so far.
    held: usize,
}

impl<T: Copy, const N: usize, const W: usize> BlockParts<'_, T, N, W> {
    /// The block joined; the next one begins.
    fn close(&mut self, unit: T, join: impl Fn(T, T) -> T) -> [T; W] {
        let used = N.min(self.held.next_power_of_two());
        let mut n = used;
        while n > 1 {
            n /= 2;
            let (low, high) = self.parts.split_at_mut(n);
            for (a, b) in low.iter_mut().zip(high) {
                a.iter_mut().zip(b).for_each(|(a, b)| *a = join(*a, *b));
            }
        }
        let value = self.parts[0];
        self.parts[..used].fill([unit; W]);
        self.held = 0;
        value
    }
}

/// As [`Tree`], of rows side by side.
struct TreeBeside<T, const W: usize> {
    stack: [MaybeUninit<[T; W]>; 64],
    depth: usize,
    values: usize,
}

impl<T: Copy, const W: usize> TreeBeside<T, W> {
    fn pop(&mut self) -> [T; W] {
        self.depth -= 1;
        // SAFETY: values below `depth` were pushed.
        unsafe { self.stack[self.depth].assume_init() }
    }
    fn push(&mut self, mut value: [T; W], join: impl Fn(T, T) -> T) {
        for _ in 0..self.values.trailing_ones() {
            let left = self.pop();
            value.iter_mut().zip(left).for_each(|(v, l)| *v = join(l, *v));
        }
        self.stack[self.depth].write(value);
        self.depth += 1;
        self.values += 1;
    }
    /// Of at least one value.
    fn root(mut self, join: impl Fn(T, T) -> T) -> [T; W] {
        let mut value = self.pop();
        while self.depth > 0 {
            let left = self.pop();
            value.iter_mut().zip(left).for_each(|(v, l)| *v = join(l, *v));
        }
        value
    }
}

/// Elements of `wide` rows that go to the next parts.
struct AddBeside<'a, 'b, T, J, const N: usize, const W: usize> {
    state: &'a mut BlockParts<'b, T, N, W>,
    from: *const T,
    apart: isize,
    rows: usize,
    wide: usize,
    join: J,
}

impl<T: Copy, J: Fn(T, T) -> T + Copy, const N: usize, const W: usize> isa::Work for AddBeside<'_, '_, T, J, N, W> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let AddBeside { state, mut from, apart, mut rows, wide, join } = self;
        // Four elements of each part at a time, so that a part is read and written once for them.
        while wide == W && rows >= 4 * N && state.held % N == 0 {
            for part in &mut state.parts[..N] {
                let row = |g: usize| from.wrapping_offset((g * N) as isize * apart).cast::<[T; W]>();
                // The same of the rows that come next.
                for line in (0..W).step_by(64 / size_of::<T>()) {
                    (0..4).for_each(|g| {
                        prefetch(
                            row(g)
                                .wrapping_byte_offset(AHEAD * apart * size_of::<T>() as isize)
                                .cast::<T>()
                                .wrapping_add(line),
                        )
                    });
                }
                // SAFETY: elements of the rows.
                let [a, b, c, d] = unsafe { [&*row(0), &*row(1), &*row(2), &*row(3)] };
                for j in 0..W {
                    part[j] = join(join(join(join(part[j], a[j]), b[j]), c[j]), d[j]);
                }
                from = from.wrapping_offset(apart);
            }
            from = from.wrapping_offset((3 * N) as isize * apart);
            (rows, state.held) = (rows - 4 * N, state.held + 4 * N);
        }
        for i in state.held..state.held + rows {
            let part = &mut state.parts[i % N];
            // SAFETY: elements of the rows; the last step is not read from.
            unsafe {
                if wide == W {
                    let row = &*from.cast::<[T; W]>();
                    for (p, &x) in part.iter_mut().zip(row) {
                        *p = join(*p, x);
                    }
                } else {
                    for (j, p) in part[..wide].iter_mut().enumerate() {
                        *p = join(*p, from.add(j).read());
                    }
                }
            }
            from = from.wrapping_offset(apart);
        }
        state.held += rows;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Reduction, reduce};
    use super::*;
    use crate::support::isa::tests::on_each;
    use restride_tensor::{RawTensor, bf16};

    fn run(x: &RawTensor, reduced: &[bool], what: Reduction, threads: usize) -> Vec<f64> {
        let sizes: Vec<i64> = (0..reduced.len()).filter(|&d| !reduced[d]).map(|d| x.layout().sizes[d]).collect();
        let out = RawTensor::zeros(x.dtype(), Layout::contiguous(&sizes));
        reduce(&x.read().view(), reduced, what, x.dtype(), &out.write().view_mut(), threads).unwrap();
        numbers(&out)
    }

    fn numbers(of: &RawTensor) -> Vec<f64> {
        crate::support::convert::gather::<f64>(of.read().view()).to_vec()
    }

    /// Every way to store the operand gives the same bits, and the right sum.
    #[test]
    fn bits_do_not_depend_on_strides_threads_or_instruction_sets() {
        let sizes = if cfg!(miri) {
            vec![[2i64, 5, 9], [1, 70, 3]]
        } else {
            vec![[2i64, 5, 9], [3, 70, 67], [2, 2500, 10], [1, 9, 5000], [4, 64, 64]]
        };
        for sizes in sizes {
            let n = sizes.iter().product::<i64>();
            let data: Vec<f64> = (0..n).map(|i| ((i * 7919) % 1013) as f64 * 0.37 - 180.0).collect();
            for dtype in [DType::F32, DType::F64, DType::I64, DType::BF16] {
                for reduced in [
                    [false, true, false],
                    [false, false, true],
                    [true, false, true],
                    [true, true, true],
                    [true, true, false],
                ] {
                    for what in [Reduction::Sum, Reduction::Max, Reduction::Min] {
                        let mut want: Option<Vec<f64>> = None;
                        for order in [[0, 1, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0]] {
                            let x = RawTensor::zeros(dtype, Layout::permuted(&sizes, &order));
                            crate::support::pack::unpack(&data, &x.write().view_mut());
                            on_each(|isa| {
                                let got = run(&x, &reduced, what, 1 + order[0]);
                                let want = want.get_or_insert_with(|| got.clone());
                                assert_eq!(&got, want, "{sizes:?} {dtype} {reduced:?} {what:?} {order:?} {isa:?}");
                            });
                        }
                        let want = want.unwrap();
                        let x = RawTensor::zeros(dtype, Layout::contiguous(&sizes));
                        crate::support::pack::unpack(&data, &x.write().view_mut());
                        let rounded = numbers(&x);
                        let mut exact = vec![
                            match what {
                                Reduction::Sum => 0.0,
                                Reduction::Max => f64::NEG_INFINITY,
                                _ => f64::INFINITY,
                            };
                            want.len()
                        ];
                        let mut sizes_of = exact.iter().map(|_| 0.0).collect::<Vec<f64>>();
                        for (i, &v) in rounded.iter().enumerate() {
                            let i = i as i64;
                            let at = [i / (sizes[1] * sizes[2]), i / sizes[2] % sizes[1], i % sizes[2]];
                            let to = (0..3).filter(|&d| !reduced[d]).fold(0, |to, d| to * sizes[d] + at[d]) as usize;
                            sizes_of[to] += v.abs();
                            exact[to] = match what {
                                Reduction::Sum => exact[to] + v,
                                Reduction::Max => exact[to].max(v),
                                _ => exact[to].min(v),
                            };
                        }
                        let eps = match dtype {
                            DType::F32 => 2e-6,
                            DType::BF16 => 4e-3,
                            _ => 1e-14,
                        };
                        for ((got, exact), size) in want.iter().zip(&exact).zip(&sizes_of) {
                            assert!((got - exact).abs() <= eps * size, "{got} for {exact}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rows_beside_each_other_keep_numbers_that_are_none() {
        let mut data = vec![1.0f32; 40 * 20];
        data[5 * 20 + 3] = f32::NAN;
        data[7 * 20 + 4] = f32::INFINITY;
        let x = RawTensor::from_slice(&data, &[40, 20]);
        for what in [Reduction::Max, Reduction::Min, Reduction::Sum] {
            let got = run(&x, &[true, false], what, 2);
            assert!(got[3].is_nan() && got.iter().filter(|x| x.is_nan()).count() == 1, "{what:?}");
        }
        assert_eq!(run(&x, &[true, false], Reduction::Max, 1)[4], f64::INFINITY);
        let halves = RawTensor::from_slice(&[bf16::from_f32(1.5); 9 * 9], &[9, 9]);
        assert_eq!(run(&halves, &[true, false], Reduction::Mean, 1), [1.5; 9]);
    }
}
