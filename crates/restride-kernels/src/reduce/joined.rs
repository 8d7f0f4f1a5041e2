//! Reductions that join elements two by two, in the strides of the operand: sums, means, products, largest and smallest elements.
//!
//! A row is joined in blocks of [`block`] elements, each in [`side`] interleaved parts, and blocks pairwise: the order depends on
//! the length of a row alone. Strides choose what is computed together: elements of one row, or neighbouring rows.

use super::beside::{
    AddBeside, OneRun, PartByPart, RUN, RowByRow, STRIP, Strips, TreeBeside, is_float, joined_into, row_by_row,
};
use super::{Tree, cast, fold, fold_on};
use crate::support::convert::{Compute, load_row, round_through};
use crate::support::isa;
use crate::support::pack::{Target, merged};
use crate::support::par::{self, EvenParts};
use crate::support::rows::Rows;
use crate::support::stack::Stack;
use restride_tensor::{DType, Layout, PerDim, View, ViewMut};

/// Parts of a block, side by side: 256 bytes of them, fewer of large elements.
pub(crate) const fn side<A>() -> usize {
    match size_of::<A>() {
        0..=4 => 64,
        5..=8 => 32,
        _ => 16,
    }
}

/// Whether rows of the type are joined beside each other: complex numbers are rare, and their loops long.
pub(super) const fn is_real<T: Compute>() -> bool {
    matches!(T::DTYPE, DType::F32 | DType::F64 | DType::I64)
}

/// Elements that are joined in parts; blocks of them are joined pairwise.
pub(crate) const fn block<A>() -> usize {
    32 * side::<A>()
}

/// Elements of the largest block.
pub(super) const BLOCK: usize = block::<f32>();
/// Elements of the parts of a block of [`side`] rows.
const SIDES: usize = side::<f32>() * side::<f32>();
/// Elements of a tree of rows side by side.
const STACK: usize = 8192;
/// Elements of a row that are converted at a time.
const SOME: usize = 8;
/// Fewest neighbouring rows that are computed together.
const FEW: usize = 8;
/// Elements that are worth a thread.
const SHARED: usize = 1 << 15;

/// Rows that are joined: of one dimension of kept indices, those of the others are walked over.
pub(super) struct JoinedRows<T, J> {
    /// What joins nothing.
    pub unit: T,
    pub join: J,
}

impl<T: Compute, J: Fn(T, T) -> T + Copy + Sync> JoinedRows<T, J> {
    /// Writes joined rows after `finish`, which changes some of them in place, elements read as `read` holds them.
    pub(super) fn run(
        &self,
        x: &View<'_>,
        reduced: &[bool],
        read: DType,
        out: &ViewMut<'_>,
        threads: usize,
        finish: &(dyn Fn(&mut [T]) + Sync),
    ) {
        let threads = if x.numel() < SHARED { 1 } else { threads };
        cast(x, read, &mut |x| {
            let of = ReducedRows::of(x, reduced, const { is_real::<T>() });
            // Where the elements of a result are from, and its position.
            let mut target = Target::<T>::new(out);
            let results = target.slice().len();
            let to = par::Shared::new(target.slice());
            let len = of.len;
            let here = x.dtype() == T::DTYPE && read == T::DTYPE;
            let source = ReducedElements { x: *x, read, rows: &of.rows, len, run: here && of.rows.len() == len };
            if results == 0 {
            } else if const { is_real::<T>() }
                && let (Some((n, _, step)), true) = (of.tile, len > 0)
            {
                let wide = source.columns::<T>(n, results / n, threads);
                let tiles = n.div_ceil(wide);
                let items = results / n * tiles;
                let some = SHARED.div_ceil(len * wide);
                EvenParts::new(items, threads).at_least(some).each(&|items| {
                    let mut memory = Stack::<T, STACK>::new();
                    for i in items {
                        let (cell, at) = of.start(&of.beside, i / tiles);
                        let first = i % tiles * wide;
                        let wide = wide.min(n - first);
                        let sums = self.beside(&source, cell + first as isize, wide, &mut memory);
                        finish(sums);
                        if step == 1 {
                            // SAFETY: the positions of results, which are this item's alone.
                            unsafe { to.at(at + first).copy_from_nonoverlapping(sums.as_ptr(), wide) };
                            continue;
                        }
                        for (j, &sum) in sums.iter().enumerate() {
                            // SAFETY: as above.
                            unsafe { to.at(at + (first + j) * step).write(sum) };
                        }
                    }
                });
            } else {
                let here = source.run && (of.rows.stride(0) == 1 || len == 1);
                // A single row is shared between the threads itself.
                let within = if results == 1 { threads } else { 1 };
                let some = SHARED.div_ceil(2 * len.max(1));
                // Short rows that are equally far apart are joined one after the other, those of another type where they are one run.
                let line = of.rows.len() == len && (of.rows.stride(0) == 1 || len == 1);
                let apart = match of.dims[..] {
                    [(_, apart, _)] if line && (1..=block::<T>()).contains(&len) => Some(apart),
                    _ => None,
                };
                EvenParts::new(results, threads).at_least(some).each(&|range| {
                    if let Some(apart) = apart.filter(|apart| here || *apart == len as isize) {
                        // SAFETY: the positions of results, which are this item's alone.
                        let to = unsafe { std::slice::from_raw_parts_mut(to.at(range.start), range.len()) };
                        let start = of.start(&of.dims, range.start).0;
                        let (unit, join) = (self.unit, self.join);
                        if here {
                            let from = source.base().cast::<T>().wrapping_offset(start);
                            row_by_row(RowByRow { to: &mut *to, from, apart, len, unit, join });
                            return finish(to);
                        }
                        let mut memory = Stack::<T, BLOCK>::new();
                        let many = block::<T>() / len;
                        for (i, to) in to.chunks_mut(many).enumerate() {
                            let rows = memory.filled(to.len() * len, unit);
                            source.load(start + (i * many * len) as isize, 1, rows);
                            row_by_row(RowByRow { to, from: rows.as_ptr(), apart, len, unit, join });
                        }
                        return finish(to);
                    }
                    for i in range {
                        let cell = of.start(&of.dims, i).0;
                        let mut sum = if len == 0 {
                            self.unit
                        } else if here {
                            // SAFETY: the elements of the row, which is a run.
                            let row =
                                unsafe { std::slice::from_raw_parts(source.base().cast::<T>().offset(cell), len) };
                            fold_on(row, within, self.unit, self.join)
                        } else {
                            self.gathered(&source, cell)
                        };
                        finish(std::slice::from_mut(&mut sum));
                        // SAFETY: the position of a result, which is this item's alone.
                        unsafe { to.at(i).write(sum) };
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
        let (mut tree, mut held, mut left) = (Tree::new(), 0, of.len);
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
                    tree.push(fold(&buffer[..held], self.unit, self.join), self.join);
                    held = 0;
                }
            }
        });
        tree.root(self.join)
    }

    /// Rows whose elements are neighbours, the first ones at a cell: their results.
    fn beside<'m>(
        &self,
        of: &ReducedElements<'_>,
        at: isize,
        wide: usize,
        memory: &'m mut Stack<T, STACK>,
    ) -> &'m mut [T] {
        let from = of.x.base().cast::<T>().wrapping_offset(at + of.rows.first());
        if const { is_float::<T>() }
            && of.run
            && of.len <= side::<T>()
            && (STRIP..=side::<T>()).contains(&wide)
            && isa::has_vectors()
        {
            let to = memory.filled(wide, self.unit);
            let (apart, len) = (of.rows.stride(0), of.len);
            isa::run_narrow(Strips { to: &mut *to, from, apart, len, unit: self.unit, join: self.join });
            return to;
        }
        if const { is_float::<T>() } && of.run && of.one_run(wide) && isa::has_vectors() {
            let to = memory.filled(wide, self.unit);
            isa::run_narrow(OneRun { to: &mut *to, from, len: of.len, unit: self.unit, join: self.join });
            return to;
        }
        let mut tree = TreeBeside { memory: memory.filled(of.levels::<T>() * wide, self.unit), wide, depth: 0 };
        if of.run && wide > side::<T>() {
            isa::run(PartByPart {
                tree: &mut tree,
                from,
                apart: of.rows.stride(0),
                len: of.len,
                unit: self.unit,
                join: self.join,
            });
        } else {
            self.side_by_side(of, at, &mut tree);
        }
        tree.root(self.join)
    }

    /// Row by row of the operand, in all parts at once.
    fn side_by_side(&self, of: &ReducedElements<'_>, at: isize, tree: &mut TreeBeside<'_, T>) {
        let (size, wide) = (block::<T>(), tree.wide);
        let mut parts = Stack::<T, SIDES>::new();
        // A short row has elements for these only.
        let parts = parts.filled(side::<T>().min(of.len.next_power_of_two()) * wide, self.unit);
        let mut buffer = Stack::<T, SIDES>::new();
        let buffer = buffer.filled(if of.run { 0 } else { SOME * wide }, self.unit);
        let here = of.x.dtype() == T::DTYPE && of.read == T::DTYPE;
        let step = of.rows.stride(0);
        let (mut held, mut blocks, mut left) = (0, 0usize, of.len);
        of.rows.for_each(|cell| {
            let mut done = 0;
            while done < of.rows.len() {
                let mut n = (of.rows.len() - done).min(size - held);
                let cell = at + cell[0] + done as isize * step;
                let (from, apart) = if here {
                    (of.x.base().cast::<T>().wrapping_offset(cell), step)
                } else {
                    n = n.min(SOME);
                    for (i, row) in buffer.chunks_exact_mut(wide).take(n).enumerate() {
                        of.load(cell + i as isize * step, 1, row);
                    }
                    (buffer.as_ptr(), wide as isize)
                };
                isa::run(AddBeside { parts, held, from, apart, rows: n, wide, join: self.join });
                (held, done, left) = (held + n, done + n, left - n);
                if held == size || left == 0 {
                    let used = side::<T>().min(held.next_power_of_two());
                    let mut n = used;
                    while n > 1 {
                        n /= 2;
                        let (low, high) = parts.split_at_mut(n * wide);
                        joined_into(low, high, self.join);
                    }
                    tree.top().copy_from_slice(&parts[..wide]);
                    tree.push(blocks.trailing_ones(), self.join);
                    parts[..used * wide].fill(self.unit);
                    (held, blocks) = (0, blocks + 1);
                }
            }
        });
    }
}

/// Where rows and their results are, which depends on no type of elements.
struct ReducedRows {
    /// Kept dimensions: results, and the steps of the operand and of the result.
    dims: PerDim<(usize, isize, usize)>,
    /// Those without `tile`.
    beside: PerDim<(usize, isize, usize)>,
    /// The dimension whose rows are neighbours in the operand, where they are computed together.
    tile: Option<(usize, isize, usize)>,
    offset: isize,
    /// The terms of a row, from its first cell.
    rows: Rows,
    len: usize,
}

impl ReducedRows {
    /// `tiles`: neighbouring rows may be computed together.
    fn of(x: &View<'_>, reduced: &[bool], tiles: bool) -> ReducedRows {
        let part = |reduced_: bool| {
            let dims = (0..reduced.len()).filter(|&d| reduced[d] == reduced_);
            let of = |v: &[i64]| dims.clone().map(|d| v[d]).collect();
            Layout { sizes: of(&x.layout().sizes), strides: of(&x.layout().strides), offset: 0 }
        };
        let terms = part(true);
        let dims = merged(&part(false));
        let (rows, len) = (Rows::logical(&[&terms]), terms.numel() as usize);
        let few = |n: usize| n > 1 && one_run(&rows, len, n);
        let at = dims.iter().position(|&(n, s, _)| s == 1 && (n >= FEW || few(n))).filter(|_| tiles);
        let mut beside = dims.clone();
        let tile = at.map(|d| beside.remove(d));
        ReducedRows { dims, beside, tile, offset: x.layout().offset as isize, rows, len }
    }

    /// The first cell of a row, and the position of its result, over some dimensions.
    fn start(&self, dims: &[(usize, isize, usize)], mut i: usize) -> (isize, usize) {
        let (mut cell, mut at) = (self.offset, 0);
        for &(n, s, step) in dims.iter().rev() {
            cell += (i % n) as isize * s;
            at += i % n * step;
            i /= n;
        }
        (cell, at)
    }
}

/// Whether `wide` neighbouring rows are one run of few elements together.
fn one_run(rows: &Rows, len: usize, wide: usize) -> bool {
    rows.len() == len && rows.stride(0) == wide as isize && len.next_power_of_two() * wide <= RUN
}

/// Elements that are reduced.
struct ReducedElements<'a> {
    x: View<'a>,
    /// Elements are rounded to this type.
    read: DType,
    /// The terms of a row, from its first cell.
    rows: &'a Rows,
    len: usize,
    /// Whether the terms of a row are of the compute type and equally far apart.
    run: bool,
}

// SAFETY: elements are read only, for the life of the view.
unsafe impl Sync for ReducedElements<'_> {}

impl ReducedElements<'_> {
    fn base(&self) -> *const u8 {
        self.x.base()
    }
    /// Whether the elements of `wide` neighbouring rows, each in parts of its own, are one run.
    fn one_run(&self, wide: usize) -> bool {
        self.len <= side::<f64>() && one_run(self.rows, self.len, wide)
    }
    /// Most values of a tree of parts and of blocks.
    fn levels<T>(&self) -> usize {
        let log = |n: usize| n.next_power_of_two().ilog2() as usize;
        log(side::<T>().min(self.len)) + log(self.len.div_ceil(block::<T>())) + 2
    }
    /// How many of `n` neighbouring rows are joined at a time, of `all` such groups.
    fn columns<T>(&self, n: usize, all: usize, threads: usize) -> usize {
        let narrow = side::<T>();
        if !self.run || n <= narrow {
            return n.min(narrow);
        }
        let parts = if threads > 1 { (4 * threads).div_ceil(all) } else { 1 };
        n.div_ceil(parts).next_multiple_of(16).clamp(narrow + 1, STACK / self.levels::<T>()).min(n)
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
            vec![[2i64, 5, 9], [1, 70, 3], [7, 5, 3], [2, 3, 20], [3, 6, 2]]
        } else {
            vec![
                [2i64, 5, 9],
                [23, 12, 3],
                [40, 16, 4],
                [30, 33, 2],
                [30, 5, 7],
                [3, 11, 40],
                [3, 70, 67],
                [2, 2500, 10],
                [1, 9, 5000],
                [4, 64, 64],
                [1, 6500, 150],
            ]
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
    fn products_are_exact_whatever_the_strides() {
        for sizes in [[9i64, 5, 7], [2, 40, 33], [3, 3, 100]] {
            let data: Vec<f64> =
                (0..sizes.iter().product()).map(|i: i64| [1.0, -1.0, 2.0, 0.5][i as usize % 4]).collect();
            for (order, reduced) in
                [[0, 1, 2], [2, 0, 1], [1, 2, 0]].into_iter().flat_map(|order| (0..3).map(move |d| (order, d)))
            {
                let x = RawTensor::zeros(DType::F32, Layout::permuted(&sizes, &order));
                crate::support::pack::unpack(&data, &x.write().view_mut());
                let mut marks = [false; 3];
                marks[reduced] = true;
                let inner = sizes[reduced + 1..].iter().product::<i64>() as usize;
                let n = sizes[reduced] as usize;
                let want: Vec<f64> = (0..data.len() / n)
                    .map(|i| (0..n).map(|k| data[i / inner * n * inner + k * inner + i % inner]).product())
                    .collect();
                assert_eq!(run(&x, &marks, Reduction::Prod, 2), want, "{sizes:?} {order:?} {reduced}");
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
