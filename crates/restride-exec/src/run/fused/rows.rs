//! Bodies whose calls are all functions of rows ([`RowForm`]): they run one after the other on a part of a row that stays in the
//! first cache.
//!
//! A box of the iteration space is walked row by row, in the order in which the last output lies in memory. What calls hand on to
//! each other is in buffers on the stack; so are operands whose elements are not neighbours along a row, and numbers.

mod walk;

use super::{BodyTypes, TileSource};
use crate::run::memory::TypedPlace;
use restride_ir::{Arg, Args, Ctx, FusedHead, Graph, OpError, RowForm, RowOperand, Scalar, Tiling, ValueId, view_dims};
use restride_kernels::support::cache::{self, CacheLevel, prefetch};
use restride_kernels::support::convert::load_row;
use restride_kernels::support::par;
use restride_kernels::support::stack::Stack;
use restride_kernels::support::units::Units;
use restride_tensor::{DType, Layout, View, by_stride};
use smallvec::SmallVec;
use std::ops::Range;
use walk::RowWalk;

/// Elements of all buffers of a row's part: half of a first cache.
const BUFFERS: usize = 6144;
/// Most elements of a row's part.
const PART: usize = 2048;
/// Most buffers.
const MOST: usize = 256;
/// Most operands of a call.
const OPERANDS: usize = 8;
/// Most scales and shifts of a body.
pub(super) const FACTORS: usize = 8192;
/// Elements of a row that repeats channels.
const TIMES: usize = 1024;
/// Elements of a line of the caches.
const LINE: usize = cache::LINE / size_of::<f32>();
/// Bytes of a row from which on its next part is fetched while a part is computed: rows of less are in the second cache, or soon are.
const FAR: usize = 1 << 19;
/// Elements times calls from which on a second thread pays.
const SHARED: usize = if cfg!(miri) { 64 } else { 1 << 15 };

/// A body as functions of rows.
pub(super) struct RowProgram {
    /// Sizes of the space, and its dimensions in the order of the walk.
    sizes: SmallVec<[i64; 6]>,
    order: SmallVec<[usize; 6]>,
    tensors: Vec<RowTensor>,
    calls: Vec<RowCall>,
    constants: Vec<f32>,
    /// Buffers for what calls hand on.
    slots: usize,
    scales: Vec<ChannelFactors>,
}

/// A tensor in memory.
struct RowTensor {
    source: TileSource,
    read: bool,
    /// Whether its memory is too large for the caches.
    far: bool,
    /// Of another type: the type and the byte of the only element.
    converted: Option<(DType, isize)>,
    /// First element, and distances of elements along the dimensions of the space.
    offset: isize,
    strides: SmallVec<[isize; 6]>,
}

struct RowCall {
    work: RowWork,
    to: RowTarget,
}

enum RowWork {
    Map(fn(&[&[f32]], &mut [f32]), SmallVec<[RowSource; 4]>),
    /// With the factors of this number.
    Scale(fn(&[f32], &[f32], &[f32], &mut [f32]), RowSource, usize),
}

#[derive(Clone, Copy, PartialEq)]
enum RowSource {
    Tensor(usize),
    Slot(usize),
    Constant(usize),
}

/// Where a result goes: to a buffer that later calls read or from which it is copied, to memory, or both.
struct RowTarget {
    slot: Option<usize>,
    tensor: Option<usize>,
}

/// Scales and shifts of the channels of one call.
pub(super) struct ChannelFactors {
    /// Dimension of the space.
    dim: usize,
    count: usize,
    /// How often scales stand one after the other, and shifts: for rows that are several times all channels.
    times: usize,
    /// The first scale; shifts follow the scales.
    first: usize,
    numbers: fn(&Args<'_, View<'_>>, &mut [f32], &mut [f32]) -> Result<(), OpError>,
    /// Arguments, tensors by their position among the operands; without the one that is scaled.
    pub args: Vec<Arg<usize, Scalar>>,
}

impl ChannelFactors {
    fn len(&self) -> usize {
        2 * self.count * self.times
    }

    /// Scales and shifts.
    fn of<'a>(&self, all: &'a [f32]) -> (&'a [f32], &'a [f32]) {
        all[self.first..][..self.len()].split_at(self.count * self.times)
    }

    fn of_mut<'a>(&self, all: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32]) {
        all[self.first..][..self.len()].split_at_mut(self.count * self.times)
    }
}

impl RowProgram {
    /// The functions of a body at its places; `far` says of each buffer whether its memory is too large for the caches. `None` if a
    /// call has none, or works on other elements than a row's own.
    pub fn of(
        body: &Graph,
        (tiling, head): (&Tiling, Option<&FusedHead>),
        metas: &BodyTypes,
        reads: &[TypedPlace],
        writes: &[TypedPlace],
        far: &[bool],
    ) -> Option<RowProgram> {
        if (0..tiling.sizes.len()).any(|d| tiling.sizes[d] != 1 && !tiling.cut[d]) {
            return None;
        }
        let last = &writes.last()?.layout;
        let mut order: SmallVec<[usize; 6]> = (0..tiling.sizes.len()).collect();
        by_stride(&mut order, |d| last.strides[d]);
        let (tensors, calls, constants, scales) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let program = RowProgram { sizes: tiling.sizes.clone(), order, tensors, calls, constants, slots: 0, scales };
        let mut maker = RowMaker { body, tiling, metas, far, program, places: Vec::new(), values: Vec::new() };
        let returned: Vec<ValueId> = body.output_values().collect();
        for (k, v) in returned.iter().enumerate() {
            maker.tensor(*v, TileSource::Write(k), &writes[k].layout, writes[k].clone(), false)?;
        }
        if let Some(head) = head {
            let sizes = &metas.get(head.result).ok()?.layout.sizes;
            let layout = head.place(last, sizes);
            let at = maker.tensor(
                head.result,
                TileSource::Write(writes.len() - 1),
                &layout,
                writes.last()?.clone(),
                true,
            )?;
            maker.values.push((head.result, RowSource::Tensor(at)));
        }
        for (at, id) in body.order.iter().enumerate().skip(usize::from(head.is_some())) {
            let node = &body.nodes[*id];
            if node.op.def().view.is_some() {
                view_dims(body, node)?;
                let (base, view) = (node.operands().next()?, *node.results.first()?);
                let source = maker.source(base)?;
                maker.values.push((view, source));
                continue;
            }
            maker.call(at, &returned, reads)?;
        }
        let program = maker.program;
        (program.buffers() <= MOST && program.factor_count() <= FACTORS).then_some(program)
    }

    /// Scales and shifts that need arguments.
    pub fn scales(&self) -> &[ChannelFactors] {
        &self.scales
    }

    /// Computes scales and shifts; `args` has the arguments of each.
    pub fn factors(&self, args: &[Vec<Arg<View<'_>, Scalar>>], to: &mut [f32]) -> Result<(), OpError> {
        for (scale, args) in self.scales.iter().zip(args) {
            let (scales, shifts) = scale.of_mut(to);
            (scale.numbers)(&Args(args), &mut scales[..scale.count], &mut shifts[..scale.count])?;
            for i in 1..scale.times {
                scales.copy_within(..scale.count, i * scale.count);
                shifts.copy_within(..scale.count, i * scale.count);
            }
        }
        Ok(())
    }

    /// Number of factors.
    pub fn factor_count(&self) -> usize {
        self.scales.iter().map(ChannelFactors::len).sum()
    }

    /// At most as many buffers.
    fn buffers(&self) -> usize {
        1 + self.slots + self.constants.len() + self.tensors.len()
    }

    /// Runs the whole space. `base` gives the address of a source's first cell.
    ///
    /// # Safety
    /// The addresses are valid as far as the places reach; no one else uses the results' cells, and where results share cells with
    /// operands, the body has a licence for it.
    pub unsafe fn all(&self, base: &(dyn Fn(TileSource) -> *mut u8 + Sync), factors: &[f32], ctx: &Ctx) {
        let none: SmallVec<[isize; 6]> = SmallVec::from_elem(0, self.sizes.len());
        let elements = self.sizes.iter().product::<i64>() as usize;
        let parts = match ctx.threads {
            // As many for each thread.
            threads if threads > 1 => (elements * self.calls.len() / (SHARED / 2) / threads).min(4) * threads,
            _ => 1,
        };
        let dims = self.order.iter().map(|&d| (d, self.sizes[d] as usize));
        let Some((dim, parts)) = par::cut(dims, parts, ctx.threads) else {
            // SAFETY: as promised by the caller.
            return unsafe { self.run(base, factors, &none, &self.sizes) };
        };
        parts.each(&|indices| {
            let (mut origin, mut sizes) = (none.clone(), self.sizes.clone());
            origin[dim] = indices.start as isize;
            sizes[dim] = indices.len() as i64;
            // SAFETY: as promised by the caller; parts share no index of the space.
            unsafe { self.run(base, factors, &origin, &sizes) }
        });
    }

    /// Runs a box of the space.
    ///
    /// # Safety
    /// As [`RowProgram::all`], for the box.
    pub unsafe fn run(&self, base: &dyn Fn(TileSource) -> *mut u8, factors: &[f32], origin: &[isize], sizes: &[i64]) {
        if sizes.contains(&0) {
            return;
        }
        let walk = RowWalk::of(self, origin, sizes);
        let bases: SmallVec<[*mut f32; 8]> = self.tensors.iter().map(|t| base(t.source).cast::<f32>()).collect();
        // SAFETY: as promised by the caller.
        unsafe { self.walked(&walk, &bases, factors) }
    }

    /// The tensors that are `fetched`; of those that share cells, the first.
    fn streams(&self, bases: &[*mut f32], fetched: impl Fn(usize) -> bool) -> SmallVec<[usize; 8]> {
        let cells = |k: usize| (bases[k], self.tensors[k].offset, &self.tensors[k].strides);
        let mut streams: SmallVec<[usize; 8]> = SmallVec::new();
        for k in (0..bases.len()).filter(|k| fetched(*k)) {
            if !streams.iter().any(|other| cells(*other) == cells(k)) {
                streams.push(k);
            }
        }
        streams
    }

    /// # Safety
    /// As [`RowProgram::run`].
    // By itself: its frame is several pages.
    #[inline(never)]
    unsafe fn walked(&self, walk: &RowWalk, bases: &[*mut f32], factors: &[f32]) {
        // The buffers: one to spare, what calls hand on, numbers, tensors that are not read where they are.
        let first_constant = 1 + self.slots;
        let mut count = first_constant + self.constants.len();
        let mut gathered: SmallVec<[Option<usize>; 8]> = SmallVec::new();
        for (k, t) in self.tensors.iter().enumerate() {
            let apart = t.read && (walk.strides[k] != 1 || walk.jumps[k].is_some() || t.converted.is_some());
            gathered.push(apart.then_some(count));
            count += usize::from(apart);
        }
        let width = match walk.period {
            // Whole periods, as many as factors stand one after the other, or that several times.
            Some((channels, times)) => {
                let periods = ((BUFFERS / count).min(PART) / channels).max(1);
                channels * if periods > times { periods / times * times } else { periods }
            }
            None => (BUFFERS / count / 16 * 16).clamp(16, PART).min(walk.len),
        };
        let mut memory = Stack::<f32, BUFFERS>::new();
        let memory = memory.zeroed(count * width).as_mut_ptr();
        let buffer = |k: usize| memory.wrapping_add(k * width);
        for (k, x) in self.constants.iter().enumerate() {
            // SAFETY: one of the buffers, which nothing else uses now.
            unsafe { std::slice::from_raw_parts_mut(buffer(first_constant + k), width) }.fill(*x);
        }
        let runs = |k: usize| walk.strides[k] == 1 && walk.jumps[k].is_none();
        let streams = self.streams(bases, |k| self.tensors[k].far && runs(k) && gathered[k].is_none());
        let far = walk.len * size_of::<f32>() * streams.len() >= FAR;
        walk.for_each(|at| {
            for start in (0..walk.len).step_by(width) {
                let n = width.min(walk.len - start);
                let cell = |k: usize| bases[k].wrapping_offset(at[k] + start as isize * walk.strides[k]);
                // Calls read the caches and leave memory idle: before each, a share of the next part is fetched.
                let next = if far { width.min(walk.len - start - n) } else { 0 };
                let fetch = |call: usize| {
                    let share = next.div_ceil(self.calls.len()).next_multiple_of(LINE);
                    // Line after line of one tensor, as the processor itself expects it.
                    for k in &streams {
                        for line in (call * share..next.min((call + 1) * share)).step_by(LINE) {
                            prefetch(cell(*k).wrapping_add(n + line), CacheLevel::Second);
                        }
                    }
                };
                let store_units = |k: usize, jump: isize, buffer: *const f32| {
                    walk.each_unit(start, n, |part, unit, from| {
                        let first = at[k] + unit as isize * jump;
                        let cell = bases[k].wrapping_offset(first + from as isize * walk.strides[k]);
                        // SAFETY: cells of the tensor's place, which no slice shows now; elements of the buffer.
                        unsafe { buffer.wrapping_add(part.start).copy_to_nonoverlapping(cell, part.len()) };
                    });
                };
                for (k, to) in gathered.iter().enumerate().filter_map(|(k, to)| Some((k, (*to)?))) {
                    // SAFETY: cells of the tensor's place; one of the buffers.
                    unsafe {
                        let to = std::slice::from_raw_parts_mut(buffer(to), n);
                        match (walk.jumps[k], self.tensors[k].converted) {
                            (Some(jump), _) => {
                                let len = walk.unit.unwrap_or(walk.len);
                                let first = bases[k].wrapping_offset(at[k] + (start / len) as isize * jump);
                                Units { len, step: walk.strides[k], jump }.load(first, start % len, to);
                            }
                            // There from the row's first part on.
                            (None, _) if walk.strides[k] == 0 && start > 0 => {}
                            (None, Some((dtype, at))) => {
                                load_row(dtype, bases[k].cast::<u8>().wrapping_offset(at), 0, 0, to);
                            }
                            (None, None) => load_row(DType::F32, cell(k).cast(), 0, walk.strides[k], to),
                        }
                    }
                }
                let source = |s: RowSource| {
                    let from = match s {
                        RowSource::Tensor(k) => gathered[k].map_or_else(|| cell(k), buffer),
                        RowSource::Slot(k) => buffer(1 + k),
                        RowSource::Constant(k) => buffer(first_constant + k),
                    };
                    // SAFETY: elements of a buffer or of a place, which are written when the slice is gone: results that share
                    // cells with an operand of their call go through a buffer, and a call's buffers differ.
                    unsafe { std::slice::from_raw_parts(from.cast_const(), n) }
                };
                for (at_call, call) in self.calls.iter().enumerate() {
                    fetch(at_call);
                    let straight = call.to.tensor.filter(|k| call.to.slot.is_none() && runs(*k));
                    let to = match (straight, call.to.slot) {
                        (Some(k), _) => cell(k),
                        (None, Some(slot)) => buffer(1 + slot),
                        (None, None) => buffer(0),
                    };
                    // SAFETY: as above.
                    let out = unsafe { std::slice::from_raw_parts_mut(to, n) };
                    match &call.work {
                        RowWork::Map(row, from) => {
                            // An array: many rows are short.
                            let mut xs: [&[f32]; OPERANDS] = [&[]; OPERANDS];
                            xs.iter_mut().zip(from).for_each(|(x, s)| *x = source(*s));
                            row(&xs[..from.len()], out);
                        }
                        RowWork::Scale(row, x, k) => {
                            let scale = &self.scales[*k];
                            let layout = self.tensors.len() + k;
                            let (scales, shifts) = scale.of(factors);
                            let x = source(*x);
                            let first = at[layout] as usize;
                            match (walk.strides[layout], walk.period, walk.unit) {
                                (0, ..) => row(x, &scales[first..][..1], &shifts[first..][..1], out),
                                // As many as a row has, or all, which begin anew.
                                (_, Some(_), _) => {
                                    row(x, scales.get(..n).unwrap_or(scales), shifts.get(..n).unwrap_or(shifts), out)
                                }
                                (_, None, None) => {
                                    let first = first + start;
                                    row(x, &scales[first..][..n], &shifts[first..][..n], out);
                                }
                                (_, None, Some(_)) => walk.each_unit(start, n, |part, channel, _| {
                                    let at = first + channel;
                                    let (scale, shift) = (&scales[at..][..1], &shifts[at..][..1]);
                                    row(&x[part.clone()], scale, shift, &mut out[part]);
                                }),
                            }
                        }
                    }
                    if let Some(k) = call.to.tensor.filter(|_| straight.is_none()) {
                        if let Some(jump) = walk.jumps[k] {
                            store_units(k, jump, to);
                            continue;
                        }
                        let (cell, step) = (cell(k), walk.strides[k]);
                        // SAFETY: cells of the result's place, which no slice shows now.
                        unsafe {
                            match step {
                                1 => cell.copy_from_nonoverlapping(to, n),
                                _ => (0..n).for_each(|i| cell.offset(i as isize * step).write(to.add(i).read())),
                            }
                        }
                    }
                }
            }
        });
    }
}

struct RowMaker<'a> {
    body: &'a Graph,
    tiling: &'a Tiling,
    metas: &'a BodyTypes,
    far: &'a [bool],
    program: RowProgram,
    /// Of each tensor.
    places: Vec<TypedPlace>,
    /// Where calls find values.
    values: Vec<(ValueId, RowSource)>,
}

impl RowMaker<'_> {
    /// Adds a tensor of these cells; `None` if it is used as a whole, or is neither of singles nor read and 0-d.
    fn tensor(
        &mut self,
        v: ValueId,
        source: TileSource,
        layout: &Layout,
        place: TypedPlace,
        read: bool,
    ) -> Option<usize> {
        let meta = self.metas.get(v).ok()?;
        let sizes = &meta.layout.sizes;
        let converted = match meta.dtype {
            DType::F32 => None,
            dtype if read && sizes.is_empty() => Some((dtype, layout.offset as isize * dtype.size() as isize)),
            _ => return None,
        };
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, self.tiling.sizes.len());
        for ((d, n), stride) in self.tiling.cut_of(v).iter().zip(sizes).zip(&layout.strides) {
            match d {
                Some(d) => strides[*d] += *stride as isize,
                None if *n == 1 => {}
                None => return None,
            }
        }
        let offset = if converted.is_some() { 0 } else { layout.offset as isize };
        let far = self.far.get(place.buffer).is_some_and(|far| *far);
        self.program.tensors.push(RowTensor { source, read, far, converted, offset, strides });
        self.places.push(place);
        Some(self.program.tensors.len() - 1)
    }

    fn source(&self, v: ValueId) -> Option<RowSource> {
        self.values.iter().find(|(own, _)| *own == v).map(|(_, s)| *s)
    }

    /// Adds the call at a position of the body.
    fn call(&mut self, at: usize, returned: &[ValueId], reads: &[TypedPlace]) -> Option<()> {
        let body = self.body;
        let node = &body.nodes[body.order[at]];
        let &[result] = &node.results[..] else { return None };
        let position = |v: &ValueId| body.inputs.iter().position(|i| i == v);
        let operand = |maker: &mut Self, v: ValueId| -> Option<RowSource> {
            if let Some(known) = maker.source(v) {
                return Some(known);
            }
            let k = position(&v)?;
            let source =
                RowSource::Tensor(maker.tensor(v, TileSource::Read(k), &reads[k].layout, reads[k].clone(), true)?);
            maker.values.push((v, source));
            Some(source)
        };
        let work = match RowForm::of(body, node)? {
            RowForm::Map { operands, .. } if operands.len() > OPERANDS => return None,
            RowForm::Map { row, operands } => {
                let mut from = SmallVec::new();
                for o in operands {
                    from.push(match o {
                        RowOperand::Number(x) => {
                            self.program.constants.push(x);
                            RowSource::Constant(self.program.constants.len() - 1)
                        }
                        RowOperand::Tensor(k) => match node.args.get(usize::from(k))? {
                            Arg::Value(v) => operand(self, *v)?,
                            _ => return None,
                        },
                    });
                }
                RowWork::Map(row, from)
            }
            RowForm::Scale { dim, count, numbers, row } => {
                let Some(Arg::Value(x)) = node.args.first() else { return None };
                let from = operand(self, *x)?;
                let along = self.tiling.cut_of(*x).get(dim).copied()?;
                let dim = match along {
                    Some(d) => d,
                    // One channel: any dimension of one index.
                    None if count == 1 => (0..self.tiling.sizes.len()).find(|d| self.tiling.sizes[*d] == 1)?,
                    None => return None,
                };
                let number = |e: &restride_ir::Expr| e.constant().ok_or(());
                let given = |v: &ValueId| position(v).ok_or(());
                let others = node.args.iter().skip(1).map(|a| a.try_map(given, number));
                let args = std::iter::once(Ok(Arg::None)).chain(others).collect::<Result<_, ()>>().ok()?;
                let first = self.program.factor_count();
                let times = (TIMES / count.max(1)).max(1);
                self.program.scales.push(ChannelFactors { dim, count, times, first, numbers, args });
                RowWork::Scale(row, from, self.program.scales.len() - 1)
            }
        };
        let tensor = returned.iter().position(|v| *v == result);
        let read_later = self.last_reader(result).is_some();
        // What a call reads in memory that it writes is read before.
        let from: SmallVec<[RowSource; 4]> = match &work {
            RowWork::Map(_, from) => from.clone(),
            RowWork::Scale(_, x, _) => SmallVec::from_slice(&[*x]),
        };
        let meets = |s: &RowSource| match (s, tensor) {
            (RowSource::Tensor(k), Some(t)) => may_meet(&self.places[*k], &self.places[t]),
            _ => false,
        };
        let slot = (read_later || tensor.is_none() || from.iter().any(meets)).then(|| self.free_slot(at));
        if let Some(slot) = slot {
            self.program.slots = self.program.slots.max(slot + 1);
            self.values.push((result, RowSource::Slot(slot)));
        }
        self.program.calls.push(RowCall { work, to: RowTarget { slot, tensor } });
        Some(())
    }

    /// The position of the last call that reads a value, or a view of it.
    fn last_reader(&self, v: ValueId) -> Option<usize> {
        let mut shown: SmallVec<[ValueId; 4]> = SmallVec::from_slice(&[v]);
        let mut last = None;
        for (at, id) in self.body.order.iter().enumerate() {
            let node = &self.body.nodes[*id];
            if node.operands().any(|o| shown.contains(&o)) {
                last = Some(at);
                if node.op.def().view.is_some() {
                    shown.extend(node.results.iter().copied());
                }
            }
        }
        last
    }

    /// A slot that no call from this one on reads.
    fn free_slot(&self, at: usize) -> usize {
        let busy = |slot: usize| {
            let held = |(v, s): &(ValueId, RowSource)| {
                *s == RowSource::Slot(slot) && self.last_reader(*v).is_some_and(|last| last >= at)
            };
            self.values.iter().any(held)
        };
        (0..).find(|slot| !busy(*slot)).unwrap_or_default()
    }
}

/// Whether places may have cells in common.
fn may_meet(a: &TypedPlace, b: &TypedPlace) -> bool {
    let span = |p: &TypedPlace| -> Range<i64> {
        let (cells, size) = (p.layout.cell_range(), p.dtype.size() as i64);
        cells.start * size..cells.end * size
    };
    let (x, y) = (span(a), span(b));
    a.buffer == b.buffer && x.start < y.end && y.start < x.end
}
