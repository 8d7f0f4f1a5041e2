//! Programs that join the elements of rows: passes over the rows of a block, one after the other and part by part.
//!
//! What a pass hands on to a later one is kept for whole rows; all else is in buffers of a part. Calls on what a row has one of take
//! all rows of the block at once. A single long row is shared by threads in branches of the reductions' trees, which give the same
//! bits for any number of threads.

use super::buffers::RowBuffers;
use super::chain::{RowChain, SUMS};
use super::walk::RowWalk;
use super::{LINE, MOST, OPERANDS, RowCall, RowPlaces, RowProgram, RowSource, RowWork, SlotUse, TileSource, ask};
use restride_ir::{Ctx, RowExtent, RowJoin, RowSpace};
use restride_kernels::reduce::parts::{JoinedParts, SIDE, lane_sums, row_maxima, row_minima, row_sums};
use restride_kernels::support::convert::{fill_singles, load_singles, store_singles};
use restride_kernels::support::par;
use restride_kernels::support::stack::Stack;
use restride_tensor::DType;
use smallvec::SmallVec;
use std::ops::{Range, RangeInclusive};

/// Elements of what is kept of rows, at most.
pub(super) const KEPT_ROWS: usize = RowSpace::KEPT as usize;
/// Elements of all buffers: what is kept, parts, and what rows have one of.
const ROOM: usize = KEPT_ROWS + PARTS + MOST * (ROWS + 2 * LINE) + SUMS * SUM_ROWS * SIDE;
/// Elements of all parts: a first cache and a half.
pub(super) const PARTS: usize = 12288;
/// Most rows of a block.
pub(super) const ROWS: usize = 64;
/// Most rows whose sums are added up at a time.
pub(super) const SUM_ROWS: usize = 16;
/// Most branches of a row.
const BRANCHES: usize = 64;
/// Most reductions of a row that threads share.
const SHARED_FOLDS: usize = 8;

/// What reductions of a pass have joined so far, in the order of the calls.
type Folds = SmallVec<[JoinedParts; 2]>;

/// The calls of a pass; the tensors that it gathers and the slots that it spreads, with their buffers.
struct RowPass<'a> {
    calls: SmallVec<[&'a RowCall; 16]>,
    gathered: SmallVec<[(usize, usize); 8]>,
    spread: SmallVec<[(usize, usize); 4]>,
}

/// Rows that are equally far apart in each tensor.
#[derive(Clone, Copy)]
struct RowBlock<'a> {
    /// The first row's first element in each tensor.
    at: &'a [isize],
    /// From row to row.
    strides: &'a [isize],
    rows: usize,
}

/// A box of rows and where its tensors are.
struct JoinedBox<'a> {
    program: &'a RowProgram,
    /// The walk over one row.
    inner: &'a RowWalk,
    bases: &'a [*mut u8],
    buffers: &'a RowBuffers,
    memory: *mut f32,
    passes: SmallVec<[RowPass<'a>; 2]>,
}

impl RowProgram {
    /// As [`RowProgram::all`], for a program that joins elements.
    ///
    /// # Safety
    /// As [`RowProgram::all`].
    pub(super) unsafe fn all_joined(&self, base: &(dyn Fn(TileSource) -> *mut u8 + Sync), ctx: &Ctx) {
        let (outer, _) = self.order.split_at(self.order.len() - self.row.len());
        let parts = self.parts(ctx.threads);
        let inner = RowWalk::along(self, &self.row, &self.sizes);
        let buffers = self.row_buffers(&inner, &RowWalk::along(self, outer, &self.sizes));
        let none: SmallVec<[isize; 6]> = SmallVec::from_elem(0, self.sizes.len());
        let dims = outer.iter().map(|&d| (d, self.sizes[d] as usize));
        if let Some((dim, parts)) = par::cut(dims, parts, ctx.threads) {
            return parts.each(&|indices| {
                let (mut origin, mut sizes) = (none.clone(), self.sizes.clone());
                (origin[dim], sizes[dim]) = (indices.start as isize, indices.len() as i64);
                // SAFETY: as promised by the caller; parts share no row.
                unsafe { self.rows_of(base, (&inner, &buffers), &origin, &sizes) }
            });
        }
        let mut branch = JoinedParts::BRANCH;
        while inner.len.div_ceil(branch) > BRANCHES {
            branch *= 2;
        }
        let folds = self.calls.iter().filter(|c| matches!(c.work, RowWork::Fold(..))).count();
        let one = outer.iter().all(|d| self.sizes[*d] == 1) && inner.is_one() && self.passes == 1;
        if parts > 1 && one && inner.len >= 4 * branch && folds <= SHARED_FOLDS {
            // SAFETY: as promised by the caller.
            return unsafe { self.in_branches(base, (&inner, &buffers), branch, ctx.threads) };
        }
        // SAFETY: as promised by the caller.
        unsafe { self.rows_of(base, (&inner, &buffers), &none, &self.sizes) }
    }

    /// Runs a box of rows.
    ///
    /// # Safety
    /// As [`RowProgram::all`], for the box.
    unsafe fn rows_of(
        &self,
        base: &dyn Fn(TileSource) -> *mut u8,
        (inner, buffers): (&RowWalk, &RowBuffers),
        origin: &[isize],
        sizes: &[i64],
    ) {
        let mut outer = RowWalk::along(self, &self.order[..self.order.len() - self.row.len()], sizes);
        outer.begin(self, origin);
        let bases: SmallVec<[*mut u8; 8]> = self.tensors.iter().map(|t| base(t.source)).collect();
        self.with_buffers((inner, buffers), &bases, &mut |rows| {
            let mut first: SmallVec<[isize; 12]> = SmallVec::new();
            outer.for_each(|at| {
                first.clear();
                first.extend_from_slice(at);
                for start in (0..outer.len).step_by(buffers.rows) {
                    let count = buffers.rows.min(outer.len - start);
                    let block = RowBlock { at: &first, strides: &outer.strides, rows: count };
                    // SAFETY: as promised by the caller.
                    unsafe { rows.block(block) };
                    first.iter_mut().zip(&outer.strides).for_each(|(at, stride)| *at += count as isize * stride);
                }
            });
        });
    }

    /// Runs a single row, whose branches threads share.
    ///
    /// # Safety
    /// As [`RowProgram::all`].
    unsafe fn in_branches(
        &self,
        base: &(dyn Fn(TileSource) -> *mut u8 + Sync),
        (inner, buffers): (&RowWalk, &RowBuffers),
        branch: usize,
        threads: usize,
    ) {
        let mut results = [[0f32; SHARED_FOLDS]; BRANCHES];
        let count = inner.len.div_ceil(branch);
        let mut start = RowWalk::along(self, &[], &self.sizes);
        start.begin(self, &SmallVec::<[isize; 6]>::from_elem(0, self.sizes.len()));
        let bases = || -> SmallVec<[*mut u8; 8]> { self.tensors.iter().map(|t| base(t.source)).collect() };
        let block = |f: &mut dyn FnMut(RowBlock<'_>)| {
            start.for_each(|at| f(RowBlock { at, strides: &start.strides, rows: 1 }));
        };
        par::pieces(threads, &mut results[..count], 1, &|i, results| {
            self.with_buffers((inner, buffers), &bases(), &mut |rows| {
                let end = inner.len.min((i + 1) * branch);
                let mut folds = rows.folds(0);
                // SAFETY: as promised by the caller; branches share no element.
                block(&mut |row| unsafe { rows.elements(0, row, 0, i * branch..end, &mut folds) });
                let results = results.iter_mut().flatten();
                results.zip(folds).for_each(|(to, fold)| *to = fold.result());
            });
        });
        self.with_buffers((inner, buffers), &bases(), &mut |rows| {
            let mut folds = rows.folds(0);
            for results in &results[..count] {
                folds.iter_mut().zip(results).for_each(|(fold, x)| fold.push_branch(*x));
            }
            let results: SmallVec<[f32; 4]> = folds.into_iter().map(JoinedParts::result).collect();
            // SAFETY: as promised by the caller.
            block(&mut |row| unsafe {
                rows.joined(0, row, 0, &results);
                rows.once(1..=usize::MAX, row);
            });
        });
    }

    /// Calls `run` with memory for the buffers.
    // By itself: its frame is many pages.
    #[inline(never)]
    fn with_buffers(
        &self,
        (inner, buffers): (&RowWalk, &RowBuffers),
        bases: &[*mut u8],
        run: &mut dyn FnMut(&JoinedBox<'_>),
    ) {
        let mut memory = Stack::<f32, ROOM>::new();
        let memory = memory.zeroed(buffers.len);
        for (x, at) in self.constants.iter().zip(&buffers.constants).filter_map(|(x, at)| Some((x, (*at)?))) {
            fill_singles(&mut memory[at..][..buffers.width.max(buffers.rows)], *x);
        }
        let pass = |p: usize| {
            let own = |c: &&RowCall| c.extent.pass() == p && !matches!(c.extent, RowExtent::Once(_));
            let calls: SmallVec<[&RowCall; 16]> = self.calls.iter().filter(own).collect();
            let reads = |s: RowSource| calls.iter().any(|c| c.work.sources().contains(&s));
            let given = |to: &[Option<usize>], source: fn(usize) -> RowSource| {
                let all = to.iter().enumerate().filter_map(|(k, to)| Some((k, (*to)?)));
                all.filter(|(k, _)| reads(source(*k))).collect::<SmallVec<[(usize, usize); 8]>>()
            };
            let gathered = given(&buffers.apart, RowSource::Tensor);
            let spread = given(&buffers.spread, RowSource::Slot).into_iter().collect();
            RowPass { calls, gathered, spread }
        };
        let passes = (0..self.passes).map(pass).collect();
        run(&JoinedBox { program: self, inner, bases, buffers, memory: memory.as_mut_ptr(), passes });
    }
}

impl JoinedBox<'_> {
    /// An address in the memory of the buffers.
    fn buffer(&self, at: usize) -> *mut f32 {
        self.memory.wrapping_add(at)
    }

    /// The buffer of a constant.
    fn constant(&self, k: usize) -> *mut f32 {
        self.buffer(self.buffers.constants[k].expect("a buffer for what is in memory"))
    }

    /// The reductions of a pass, of no elements yet.
    fn folds(&self, pass: usize) -> Folds {
        let begun = |call: &RowCall| match call.work {
            RowWork::Fold(RowJoin::Sum, ..) => Some(JoinedParts::sum()),
            RowWork::Fold(RowJoin::Largest, ..) => Some(JoinedParts::largest()),
            RowWork::Fold(RowJoin::Smallest, ..) => Some(JoinedParts::smallest()),
            _ => None,
        };
        self.passes[pass].calls.iter().filter_map(|call| begun(call)).collect()
    }

    /// Runs all calls on a block.
    ///
    /// # Safety
    /// As [`RowProgram::all`].
    unsafe fn block(&self, block: RowBlock<'_>) {
        for pass in 0..self.passes.len() {
            // SAFETY: as promised by the caller.
            unsafe {
                self.once(pass..=pass, block);
                if self.inner.is_one() && self.inner.len <= self.buffers.width {
                    self.whole_rows(pass, block);
                    continue;
                }
                for row in 0..block.rows {
                    let mut folds = self.folds(pass);
                    self.elements(pass, block, row, 0..self.inner.len, &mut folds);
                    let results: SmallVec<[f32; 4]> = folds.into_iter().map(JoinedParts::result).collect();
                    self.joined(pass, block, row, &results);
                }
            }
        }
        // Those that no pass follows.
        // SAFETY: as promised by the caller.
        unsafe { self.once(self.passes.len()..=usize::MAX, block) }
    }

    /// The address of a row's first element in a tensor.
    fn cell(&self, block: RowBlock<'_>, row: usize, k: usize) -> *mut u8 {
        self.program.tensors[k].cell(self.bases[k], block.at[k] + row as isize * block.strides[k])
    }

    /// Hands on what a pass has joined of a row.
    ///
    /// # Safety
    /// As [`RowProgram::all`].
    unsafe fn joined(&self, pass: usize, block: RowBlock<'_>, row: usize, results: &[f32]) {
        let calls = self.passes[pass].calls.iter().filter(|c| matches!(c.work, RowWork::Fold(..)));
        for (call, result) in calls.zip(results) {
            // SAFETY: as promised by the caller.
            unsafe { self.hand_on(call, block, row, &mut [*result]) };
        }
    }

    /// Hands on what a reduction has joined of some rows.
    ///
    /// # Safety
    /// As [`RowProgram::all`].
    unsafe fn hand_on(&self, call: &RowCall, block: RowBlock<'_>, first: usize, results: &mut [f32]) {
        let RowWork::Fold(_, finish, _) = call.work else { return };
        let elements = self.inner.rows_len();
        results.iter_mut().for_each(|x| *x = finish(*x, elements));
        // SAFETY: one of the buffers, which nothing else uses now; cells of the result's place.
        unsafe {
            if let Some(slot) = call.to.slot {
                out(self.buffer(self.buffers.slot(slot) + first), results.len()).copy_from_slice(results);
            }
            if let Some(k) = call.to.tensor {
                let (dtype, cell) = (self.program.tensors[k].dtype, self.cell(block, first, k));
                store_singles(dtype, cell, 0, block.strides[k], results);
            }
        }
    }

    /// Runs the calls of a pass on rows that fit into a part, several at once.
    ///
    /// # Safety
    /// As [`RowProgram::all`].
    unsafe fn whole_rows(&self, pass: usize, block: RowBlock<'_>) {
        let &JoinedBox { program, inner, buffers, .. } = self;
        let RowPass { calls, gathered, spread } = &self.passes[pass];
        let (len, runs) = (inner.len, |k: usize| inner.strides[k] == 1 && program.tensors[k].dtype == DType::F32);
        let go_on = |k: usize| runs(k) && block.strides[k] == len as isize;
        // Tensors that are read where they are go on from row to row, or it is one row.
        let used =
            |k: usize| calls.iter().any(|c| c.to.tensor == Some(k) || c.work.sources().contains(&RowSource::Tensor(k)));
        let apart = |k: usize| program.in_memory.tensors[k] && used(k) && !go_on(k) && buffers.apart[k].is_none();
        let sums = |c: &&RowCall| sums_of(c).is_some();
        let most = if calls.iter().any(sums) { SUM_ROWS } else { ROWS };
        let together = if (0..program.tensors.len()).any(apart) { 1 } else { (buffers.width / len).min(most) };
        for first in (0..block.rows).step_by(together) {
            let rows = together.min(block.rows - first);
            let n = rows * len;
            let here = |k: usize| go_on(k) || runs(k) && rows == 1;
            for &(k, to) in gathered.iter().filter(|(k, _)| !here(*k)) {
                // The same row again is there from the first time on.
                if block.strides[k] == 0 && first > 0 {
                    continue;
                }
                for row in 0..rows {
                    // SAFETY: cells of the tensor's place; one of the buffers.
                    unsafe {
                        let to = out(self.buffer(to + row * len), len);
                        let cell = self.cell(block, first + row, k);
                        load_singles(program.tensors[k].dtype, cell, 0, inner.strides[k], to);
                    }
                }
            }
            for &(k, to) in spread {
                for row in 0..rows {
                    let value = self.buffer(buffers.slot(k) + first + row);
                    // SAFETY: buffers; the second one is not written now.
                    unsafe { fill_singles(out(self.buffer(to + row * len), len), value.read()) };
                }
            }
            let slot = |k: usize| match (program.slots[k], buffers.spread[k]) {
                (_, Some(spread)) => self.buffer(spread),
                (SlotUse::Kept, None) => self.buffer(buffers.slot(k) + first * len),
                _ => self.buffer(buffers.slot(k)),
            };
            let source = |s: RowSource| {
                let from = match s {
                    RowSource::Tensor(k) if here(k) => self.cell(block, first, k).cast(),
                    RowSource::Tensor(k) => self.buffer(buffers.apart[k].unwrap_or(buffers.spare)),
                    RowSource::Slot(k) => slot(k),
                    RowSource::Constant(k) => self.constant(k),
                };
                // SAFETY: elements of a buffer or of a place, which are written when the slice is gone: results that share
                // cells with an operand of their call go through a buffer, and a call's buffers differ.
                unsafe { std::slice::from_raw_parts(from.cast_const(), n) }
            };
            let store = |k: usize, made: &[f32]| {
                for (row, results) in made.chunks_exact(len).enumerate() {
                    // SAFETY: cells of the result's place, which no slice shows now.
                    unsafe {
                        let cell = self.cell(block, first + row, k);
                        store_singles(program.tensors[k].dtype, cell, 0, inner.strides[k], results);
                    }
                }
            };
            let repeated = |s: RowSource| match s {
                RowSource::Tensor(k) => {
                    (self.cell(block, first, k).cast(), block.strides[k] * size_of::<f32>() as isize)
                }
                RowSource::Slot(k) => (self.buffer(buffers.slot(k) + first), size_of::<f32>() as isize),
                RowSource::Constant(k) => (self.constant(k), 0),
            };
            let places = RowPlaces {
                source,
                repeated,
                factors: |_| None,
                slot,
                tensor: |k| here(k).then(|| self.cell(block, first, k).cast()),
                spare: |k: usize| self.buffer(buffers.apart[k].unwrap_or(buffers.spare)),
                store,
            };
            let mut next = 0;
            while let Some(call) = calls.get(next) {
                if let Some(chain) = sums_of(call) {
                    let size = SUM_ROWS * SIDE;
                    let lanes: SmallVec<[*mut f32; SUMS]> =
                        (0..chain.sums).map(|k| self.buffer(buffers.lanes + k * size)).collect();
                    for of in &lanes {
                        // SAFETY: the lanes of a sum, which nothing else uses.
                        unsafe { out(*of, rows * SIDE) }.fill(0.0);
                    }
                    // SAFETY: buffers, cells of the tensors' places.
                    unsafe { chain.run(&places, (len, rows), &lanes) };
                    let of_sums = calls[next..][..chain.len].iter().filter(|c| matches!(c.work, RowWork::Fold(..)));
                    for (call, lanes) in of_sums.zip(lanes) {
                        let mut results = [0f32; SUM_ROWS];
                        let results = &mut results[..rows];
                        // SAFETY: as before.
                        let (lanes, _) = unsafe { out(lanes, rows * SIDE) }.as_chunks_mut();
                        lane_sums(lanes, len, results);
                        // SAFETY: as promised by the caller.
                        unsafe { self.hand_on(call, block, first, results) };
                    }
                    next += chain.len;
                    continue;
                }
                if let RowWork::Fold(join, _, x) = &call.work {
                    let mut results = [0f32; ROWS];
                    let results = &mut results[..rows];
                    match join {
                        RowJoin::Sum => row_sums(source(*x), results),
                        RowJoin::Largest => row_maxima(source(*x), results),
                        RowJoin::Smallest => row_minima(source(*x), results),
                    }
                    // SAFETY: as promised by the caller.
                    unsafe { self.hand_on(call, block, first, results) };
                    next += 1;
                    continue;
                }
                // SAFETY: buffers, cells of the tensors' places.
                next += unsafe { call.run(&places, (len, rows), |_, _| {}) };
            }
        }
    }

    /// Runs the calls on what rows have one of that come before these passes.
    ///
    /// # Safety
    /// As [`RowProgram::all`].
    unsafe fn once(&self, passes: RangeInclusive<usize>, block: RowBlock<'_>) {
        let n = block.rows;
        for call in self.program.calls.iter().filter(|c| matches!(c.extent, RowExtent::Once(p) if passes.contains(&p)))
        {
            let mut loaded = [[0f32; ROWS]; OPERANDS];
            let mut xs: [&[f32]; OPERANDS] = [&[]; OPERANDS];
            let from = call.work.sources();
            for ((x, loaded), source) in xs.iter_mut().zip(&mut loaded).zip(from) {
                // SAFETY: cells of the tensor's place, or elements of a buffer that is not written now.
                *x = unsafe {
                    match *source {
                        RowSource::Tensor(k) => {
                            let dtype = self.program.tensors[k].dtype;
                            load_singles(dtype, self.cell(block, 0, k), 0, block.strides[k], &mut loaded[..n]);
                            &loaded[..n]
                        }
                        RowSource::Slot(k) => std::slice::from_raw_parts(self.buffer(self.buffers.slot(k)), n),
                        RowSource::Constant(k) => std::slice::from_raw_parts(self.constant(k), n),
                    }
                };
            }
            let to = call.to.slot.map_or(self.buffers.spare, |slot| self.buffers.slot(slot));
            // SAFETY: one of the buffers, which nothing else uses now.
            let results = unsafe { out(self.buffer(to), n) };
            match &call.work {
                RowWork::Map(row, _) => row(&xs[..from.len()], results),
                RowWork::Ask(row, _) => ask(*row, &xs[..from.len()], results),
                // No calls on what a row has one of.
                RowWork::Scale(..) | RowWork::Fold(..) => {}
            }
            if let Some(k) = call.to.tensor {
                let dtype = self.program.tensors[k].dtype;
                // SAFETY: cells of the result's place.
                unsafe { store_singles(dtype, self.cell(block, 0, k), 0, block.strides[k], results) };
            }
        }
    }

    /// Runs the calls of a pass on elements of a row, `range` of each of its runs.
    ///
    /// # Safety
    /// As [`RowProgram::all`].
    unsafe fn elements(&self, pass: usize, block: RowBlock<'_>, row: usize, range: Range<usize>, folds: &mut Folds) {
        let &JoinedBox { program, inner, buffers, .. } = self;
        let RowPass { calls, gathered, spread } = &self.passes[pass];
        for &(k, to) in spread {
            // SAFETY: buffers; the second one is not written now.
            unsafe { fill_singles(out(self.buffer(to), buffers.width), self.buffer(buffers.slot(k) + row).read()) };
        }
        let kept = row * inner.rows_len();
        let mut before = 0;
        inner.for_each(|from| {
            for start in range.clone().step_by(buffers.width) {
                let n = buffers.width.min(range.end - start);
                let first = before + start;
                let cell = |k: usize| {
                    let at = block.at[k] + row as isize * block.strides[k];
                    program.tensors[k].cell(self.bases[k], at + from[k] + start as isize * inner.strides[k])
                };
                for &(k, to) in gathered {
                    // There from the first part on, which is the longest.
                    if inner.strides[k] == 0 && start > range.start {
                        continue;
                    }
                    // SAFETY: cells of the tensor's place; one of the buffers.
                    unsafe {
                        let to = std::slice::from_raw_parts_mut(self.buffer(to), n);
                        load_singles(program.tensors[k].dtype, cell(k), 0, inner.strides[k], to);
                    }
                }
                let slot = |k: usize| match (program.slots[k], buffers.spread[k]) {
                    (_, Some(spread)) => self.buffer(spread),
                    (SlotUse::Kept, None) => self.buffer(buffers.slot(k) + kept + first),
                    _ => self.buffer(buffers.slot(k)),
                };
                let source = |s: RowSource| {
                    let from = match s {
                        RowSource::Tensor(k) => match buffers.apart[k] {
                            Some(to) => self.buffer(to),
                            None => cell(k).cast(),
                        },
                        RowSource::Slot(k) => slot(k),
                        RowSource::Constant(k) => self.constant(k),
                    };
                    // SAFETY: elements of a buffer or of a place, which are written when the slice is gone: results that share
                    // cells with an operand of their call go through a buffer, and a call's buffers differ.
                    unsafe { std::slice::from_raw_parts(from.cast_const(), n) }
                };
                let runs = |k: usize| inner.strides[k] == 1 && program.tensors[k].dtype == DType::F32;
                let store = |k: usize, results: &[f32]| {
                    // SAFETY: cells of the result's place, which no slice shows now.
                    unsafe { store_singles(program.tensors[k].dtype, cell(k), 0, inner.strides[k], results) };
                };
                let repeated = |s: RowSource| match s {
                    RowSource::Tensor(k) => (cell(k).cast(), 0),
                    RowSource::Slot(k) => (self.buffer(buffers.slot(k) + row), 0),
                    RowSource::Constant(k) => (self.constant(k), 0),
                };
                let places = RowPlaces {
                    source,
                    repeated,
                    factors: |_| None,
                    slot,
                    tensor: |k| runs(k).then(|| cell(k).cast()),
                    spare: |k: usize| self.buffer(buffers.apart[k].unwrap_or(buffers.spare)),
                    store,
                };
                let (mut fold, mut next) = (0, 0);
                while let Some(call) = calls.get(next) {
                    if let Some(chain) = sums_of(call) {
                        let of = &mut folds[fold..][..chain.sums];
                        let lanes: SmallVec<[*mut f32; SUMS]> = of.iter_mut().map(JoinedParts::lanes).collect();
                        // SAFETY: buffers, cells of the tensors' places.
                        unsafe { chain.run(&places, (n, 1), &lanes) };
                        of.iter_mut().for_each(|f| f.joined(n));
                        (fold, next) = (fold + chain.sums, next + chain.len);
                        continue;
                    }
                    if let RowWork::Fold(_, _, x) = &call.work {
                        folds[fold].push(source(*x));
                        (fold, next) = (fold + 1, next + 1);
                        continue;
                    }
                    // SAFETY: buffers, cells of the tensors' places.
                    next += unsafe { call.run(&places, (n, 1), |_, _| {}) };
                }
            }
            before += inner.len;
        });
    }
}

/// The chain that begins with a call, if it adds up sums.
fn sums_of(call: &RowCall) -> Option<&RowChain> {
    call.chain.as_ref().filter(|chain| chain.sums > 0)
}

/// # Safety
/// As of [`std::slice::from_raw_parts_mut`], and nothing else uses the elements.
unsafe fn out<'a>(to: *mut f32, n: usize) -> &'a mut [f32] {
    // SAFETY: as promised by the caller.
    unsafe { std::slice::from_raw_parts_mut(to, n) }
}
