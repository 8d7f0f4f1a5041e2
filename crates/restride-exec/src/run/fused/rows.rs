//! Bodies whose calls are all functions of rows ([`RowForm`]): they run one after the other on a part of a row that stays in the
//! first cache.
//!
//! A box of the iteration space is walked row by row, in the order in which the last output lies in memory. What calls hand on to
//! each other is in buffers on the stack; so are operands whose elements are not neighbours along a row, and numbers.

mod buffers;
mod call;
mod chain;
mod joined;
mod maker;
mod walk;

use super::{BodyTypes, TileSource};
use crate::run::memory::TypedPlace;
use call::{RowCall, RowPlaces, RowSource, RowTarget, RowWork, ask};
use maker::RowMaker;
use restride_ir::{Arg, Args, Ctx, FusedHead, Graph, OpError, RowExtent, RowSpace, Scalar, Tiling, ValueId, view_dims};
use restride_kernels::support::cache::{self, CacheLevel, prefetch};
use restride_kernels::support::convert::{fill_singles, load_singles, store_singles};
use restride_kernels::support::par;
use restride_kernels::support::stack::Stack;
use restride_kernels::support::units::Units;
use restride_tensor::{DType, View, by_stride};
use smallvec::SmallVec;
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
/// Elements of a row from which on a chain computes it where it lies; shorter ones are copied to be longer ones.
const DIRECT: usize = 16;
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
    slots: Vec<SlotUse>,
    /// What is ever read from memory or written to it: what a chain alone has is in registers.
    in_memory: BufferUses,
    scales: Vec<ChannelFactors>,
    /// Where calls join elements: the dimensions of a row, slowest first, which are the last ones of the order.
    row: SmallVec<[usize; 4]>,
    /// How often calls that join elements walk over a row.
    passes: usize,
}

/// What calls have in memory, element by element.
#[derive(Default)]
struct BufferUses {
    slots: SmallVec<[bool; 16]>,
    /// Slots that a row has one of, and whose value stands in a row for its calls.
    spread: SmallVec<[bool; 16]>,
    constants: SmallVec<[bool; 8]>,
    tensors: SmallVec<[bool; 8]>,
}

/// What a buffer holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotUse {
    /// A part of a row.
    Part,
    /// A whole row.
    Kept,
    /// What a row has one of.
    Once,
    /// As `Once`, and read by calls on elements.
    Spread,
}

/// A tensor in memory.
struct RowTensor {
    source: TileSource,
    read: bool,
    /// Whether its memory is too large for the caches.
    far: bool,
    dtype: DType,
    /// First element, and distances of elements along the dimensions of the space.
    offset: isize,
    strides: SmallVec<[isize; 6]>,
}

impl RowTensor {
    /// The address of an element.
    fn cell(&self, base: *mut u8, at: isize) -> *mut u8 {
        base.wrapping_offset(at * self.dtype.size() as isize)
    }
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
        let whole = (0..tiling.sizes.len()).any(|d| tiling.sizes[d] != 1 && !tiling.cut[d]);
        let space = if whole { Some(RowSpace::of(body, tiling, body.order.iter().copied())?) } else { None };
        let row = space.as_ref().map(|s| s.row.clone()).unwrap_or_default();
        let passes = space.as_ref().map_or(0, RowSpace::passes);
        let last = &writes.last()?.layout;
        let mut order: SmallVec<[usize; 6]> = (0..last.rank()).filter(|d| !row.contains(d)).collect();
        by_stride(&mut order, |d| last.strides[d]);
        order.extend_from_slice(&row);
        let program = RowProgram {
            sizes: tiling.sizes.clone(),
            order,
            tensors: Vec::new(),
            calls: Vec::new(),
            constants: Vec::new(),
            slots: Vec::new(),
            in_memory: BufferUses::default(),
            scales: Vec::new(),
            row,
            passes,
        };
        let (places, values, made, held) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let readers = maker::readers(body);
        let mut maker = RowMaker { body, tiling, metas, far, space, program, places, values, made, readers, held };
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
        maker.chains();
        let mut program = maker.program;
        program.in_memory = program.buffer_uses();
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
        1 + self.slots.len() + self.constants.len() + self.tensors.len()
    }

    /// What calls have in memory; chains that are never computed call by call have what they share with others.
    fn buffer_uses(&self) -> BufferUses {
        let mut uses = BufferUses {
            slots: SmallVec::from_elem(false, self.slots.len()),
            spread: SmallVec::from_elem(false, self.slots.len()),
            constants: SmallVec::from_elem(false, self.constants.len()),
            tensors: SmallVec::from_elem(false, self.tensors.len()),
        };
        let mut next = 0;
        while let Some(call) = self.calls.get(next) {
            let chain = call.chain.as_ref().filter(|c| c.is_one());
            let calls = &self.calls[next..][..chain.map_or(1, |c| c.len)];
            let elements = |c: &&RowCall| matches!(c.extent, RowExtent::Elements(_));
            calls.iter().filter(elements).filter_map(|c| c.to.tensor).for_each(|k| uses.tensors[k] = true);
            let once = matches!(call.extent, RowExtent::Once(_));
            let mut read = |source: RowSource| match source {
                RowSource::Slot(k) => {
                    uses.slots[k] = true;
                    uses.spread[k] |= !once && self.slots[k] == SlotUse::Spread;
                }
                RowSource::Constant(k) => uses.constants[k] = true,
                RowSource::Tensor(k) => uses.tensors[k] |= !once,
            };
            match chain {
                Some(chain) => {
                    chain.rows_of().for_each(&mut read);
                    chain.slots().for_each(|slot| uses.slots[slot] = true);
                    // Its sums are handed on in memory, where later chains read them, one for a row.
                    let sums = calls.iter().filter(|c| matches!(c.work, RowWork::Fold(..)));
                    sums.filter_map(|c| c.to.slot).for_each(|slot| uses.slots[slot] = true);
                }
                None => {
                    call.work.sources().iter().copied().for_each(&mut read);
                    call.to.slot.iter().for_each(|slot| uses.slots[*slot] = true);
                }
            }
            next += calls.len();
        }
        uses
    }

    /// In how many parts threads share the space: as many for each thread.
    fn parts(&self, threads: usize) -> usize {
        let elements = self.sizes.iter().product::<i64>() as usize;
        if threads <= 1 {
            return 1;
        }
        (elements * self.calls.len() / (SHARED / 2) / threads).min(4) * threads
    }

    /// Runs the whole space. `base` gives the address of a source's first cell.
    ///
    /// # Safety
    /// The addresses are valid as far as the places reach; no one else uses the results' cells, and where results share cells with
    /// operands, the body has a licence for it.
    pub unsafe fn all(&self, base: &(dyn Fn(TileSource) -> *mut u8 + Sync), factors: &[f32], ctx: &Ctx) {
        if !self.row.is_empty() {
            // SAFETY: as promised by the caller.
            return unsafe { self.all_joined(base, ctx) };
        }
        let none: SmallVec<[isize; 6]> = SmallVec::from_elem(0, self.sizes.len());
        let parts = self.parts(ctx.threads);
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
        let bases: SmallVec<[*mut u8; 8]> = self.tensors.iter().map(|t| base(t.source)).collect();
        let walk = RowWalk::of(self, origin, sizes, true);
        if let Some(chain) = self.calls.first().and_then(|c| c.chain.as_ref()).filter(|c| c.len == self.calls.len()) {
            let short = walk.unit.map(|_| RowWalk::of(self, origin, sizes, false));
            let rows = short.as_ref().unwrap_or(&walk);
            // SAFETY: as promised by the caller.
            if rows.len >= DIRECT && unsafe { chain.run_rows(rows, &self.tensors, &bases) } {
                return;
            }
        }
        // SAFETY: as promised by the caller.
        unsafe { self.walked(&walk, &bases, factors) }
    }

    /// The tensors that are `fetched`; of those that share cells, the first.
    fn streams(&self, bases: &[*mut u8], fetched: impl Fn(usize) -> bool) -> SmallVec<[usize; 8]> {
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
    unsafe fn walked(&self, walk: &RowWalk, bases: &[*mut u8], all_factors: &[f32]) {
        // The buffers: what calls hand on, numbers, tensors that are not read or written where they are.
        let mut count = 0;
        let mut take = |used: bool| {
            count += usize::from(used);
            used.then(|| count - 1)
        };
        let runs = |k: usize| walk.strides[k] == 1 && walk.jumps[k].is_none() && self.tensors[k].dtype == DType::F32;
        let slots: SmallVec<[Option<usize>; 16]> = self.in_memory.slots.iter().map(|used| take(*used)).collect();
        let constants: SmallVec<[Option<usize>; 8]> = self.in_memory.constants.iter().map(|used| take(*used)).collect();
        let apart: SmallVec<[Option<usize>; 8]> = (0..self.tensors.len()).map(|k| take(!runs(k))).collect();
        let gathered = |k: usize| apart[k].filter(|_| self.tensors[k].read);
        let count = count.max(1);
        let chained = self.calls.iter().any(|c| c.chain.is_some());
        let width = match walk.period {
            // Whole periods, as many as factors stand one after the other; or that several times, but for chains.
            Some((channels, times)) => {
                let periods = ((BUFFERS / count).min(PART) / channels).max(1);
                let whole = match periods > times {
                    true if chained => times,
                    true => periods / times * times,
                    false => periods,
                };
                channels * whole
            }
            None => (BUFFERS / count / 16 * 16).clamp(16, PART).min(walk.len),
        };
        let mut memory = Stack::<f32, BUFFERS>::new();
        let memory = memory.zeroed(count * width).as_mut_ptr();
        let buffer = |k: usize| memory.wrapping_add(k * width);
        let used = |k: Option<usize>| buffer(k.expect("a buffer for each use"));
        for (x, k) in self.constants.iter().zip(&constants).filter_map(|(x, k)| Some((x, (*k)?))) {
            // SAFETY: one of the buffers, which nothing else uses now.
            fill_singles(unsafe { std::slice::from_raw_parts_mut(buffer(k), width) }, *x);
        }
        let streams = self.streams(bases, |k| self.tensors[k].far && runs(k));
        // A chain goes through all streams at once, as the processor itself expects it.
        let far = !chained && walk.len * size_of::<f32>() * streams.len() >= FAR;
        walk.for_each(|at| {
            for start in (0..walk.len).step_by(width) {
                let n = width.min(walk.len - start);
                let cell = |k: usize| self.tensors[k].cell(bases[k], at[k] + start as isize * walk.strides[k]);
                // Calls read the caches and leave memory idle: before each, a share of the next part is fetched.
                let next = if far { width.min(walk.len - start - n) } else { 0 };
                let fetch = |call: usize| {
                    let share = next.div_ceil(self.calls.len()).next_multiple_of(LINE);
                    // Line after line of one tensor, as the processor itself expects it.
                    for k in &streams {
                        for line in (call * share..next.min((call + 1) * share)).step_by(LINE) {
                            prefetch(cell(*k).cast::<f32>().wrapping_add(n + line), CacheLevel::Second);
                        }
                    }
                };
                for (k, to) in (0..self.tensors.len()).filter_map(|k| Some((k, gathered(k)?))) {
                    // SAFETY: cells of the tensor's place; one of the buffers.
                    unsafe {
                        let to = std::slice::from_raw_parts_mut(buffer(to), n);
                        match walk.jumps[k] {
                            Some(jump) => self.load_units(walk, (k, jump), (bases[k], at[k]), start, to),
                            // There from the row's first part on.
                            None if walk.strides[k] == 0 && start > 0 => {}
                            None => load_singles(self.tensors[k].dtype, cell(k), 0, walk.strides[k], to),
                        }
                    }
                }
                let store = |k: usize, results: &[f32]| {
                    // SAFETY: cells of the result's place, which no slice shows now.
                    unsafe {
                        match walk.jumps[k] {
                            Some(jump) => self.store_units(walk, (k, jump), (bases[k], at[k]), start, results),
                            None => store_singles(self.tensors[k].dtype, cell(k), 0, walk.strides[k], results),
                        }
                    }
                };
                let source = |s: RowSource| {
                    let from = match s {
                        RowSource::Tensor(k) => gathered(k).map_or_else(|| cell(k).cast(), buffer),
                        RowSource::Slot(k) => used(slots[k]),
                        RowSource::Constant(k) => used(constants[k]),
                    };
                    // SAFETY: elements of a buffer or of a place, which are written when the slice is gone: results that share
                    // cells with an operand of their call go through a buffer, and a call's buffers differ.
                    unsafe { std::slice::from_raw_parts(from.cast_const(), n) }
                };
                let factors = |k: usize| {
                    let (scales, shifts) = self.scales[k].of(all_factors);
                    let layout = self.tensors.len() + k;
                    let first = at[layout] as usize;
                    let of = match (walk.strides[layout], walk.period, walk.unit) {
                        (0, ..) => first..first + 1,
                        (_, Some(_), _) => 0..n.min(scales.len()),
                        (_, None, None) => first + start..first + start + n,
                        (_, None, Some(_)) => return None,
                    };
                    Some((&scales[of.clone()], &shifts[of]))
                };
                let places = RowPlaces {
                    source,
                    // Its chains take such operands as rows.
                    repeated: |s| (source(s).as_ptr().cast_mut(), 0),
                    factors,
                    slot: |k| used(slots[k]),
                    tensor: |k| runs(k).then(|| cell(k).cast()),
                    spare: |k| used(apart[k]),
                    store,
                };
                let scaled = |work: &RowWork, out: &mut [f32]| {
                    let RowWork::Scale(row, x, k) = work else { return };
                    let (scales, shifts) = self.scales[*k].of(all_factors);
                    let (x, first) = (source(*x), at[self.tensors.len() + k] as usize);
                    walk.each_unit(start, n, |part, channel, _| {
                        let at = first + channel;
                        row(&x[part.clone()], &scales[at..][..1], &shifts[at..][..1], &mut out[part]);
                    });
                };
                let mut next_call = 0;
                while let Some(call) = self.calls.get(next_call) {
                    fetch(next_call);
                    // SAFETY: buffers, cells of the tensors' places.
                    next_call += unsafe { call.run(&places, (n, 1), scaled) };
                }
            }
        });
    }

    /// Reads elements of a row whose units are apart, from one of them on; `first` is the base and the first element of the row.
    ///
    /// # Safety
    /// They are cells of the tensor's place.
    unsafe fn load_units(
        &self,
        walk: &RowWalk,
        (k, jump): (usize, isize),
        (base, first): (*mut u8, isize),
        start: usize,
        to: &mut [f32],
    ) {
        let (tensor, step) = (&self.tensors[k], walk.strides[k]);
        if tensor.dtype == DType::F32 {
            let len = walk.unit.unwrap_or(walk.len);
            let cell = tensor.cell(base, first + (start / len) as isize * jump).cast::<f32>();
            // SAFETY: as promised by the caller.
            return unsafe { Units { len, step, jump }.load(cell, start % len, to) };
        }
        walk.each_unit(start, to.len(), |part, unit, from| {
            let cell = tensor.cell(base, first + unit as isize * jump + from as isize * step);
            // SAFETY: as promised by the caller.
            unsafe { load_singles(tensor.dtype, cell, 0, step, &mut to[part]) };
        });
    }

    /// Writes elements of a row whose units are apart, as [`RowProgram::load_units`] reads them.
    ///
    /// # Safety
    /// They are cells of the tensor's place, which nothing else uses.
    unsafe fn store_units(
        &self,
        walk: &RowWalk,
        (k, jump): (usize, isize),
        (base, first): (*mut u8, isize),
        start: usize,
        from: &[f32],
    ) {
        let (tensor, step) = (&self.tensors[k], walk.strides[k]);
        walk.each_unit(start, from.len(), |part, unit, at| {
            let cell = tensor.cell(base, first + unit as isize * jump + at as isize * step);
            // SAFETY: as promised by the caller.
            unsafe { store_singles(tensor.dtype, cell, 0, step, &from[part]) };
        });
    }
}
