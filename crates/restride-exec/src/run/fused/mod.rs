//! Fused nodes: the body's calls, tile by tile, each by its own kernel.
//!
//! A head runs first, as a whole, in the place of the last output; its kernel calls an epilogue for each finished part, which runs the other
//! calls on it while it is in the cache. If it calls none, they run on all of it afterwards.
//!
//! A tile is a box of the body's iteration space. What calls only hand on to each other lies in a frame on the thread's stack, which
//! the next tile uses again; operands are read, and results written, where they are placed. Threads share tiles.

mod rows;

use super::code::{fit, inferred};
use super::memory::TypedPlace;
use super::steps::with_scratch;
use restride_ir::{
    Arg, Args, Call, Ctx, Error, Expr, FusedHead, Graph, Kernel, Layout, Meta, NodeId, OpError, Result, Scalar, Tiling,
    ValueId, fused_head, known_meta, view_dims,
};
use restride_kernels::support::stack::Stack;
use restride_kernels::support::{epilogue, par, scratch};
use restride_tensor::{DType, Fitted, View, ViewMut};
use rows::{FACTORS, RowProgram};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a frame for what calls hand on.
const TEMPORARIES: usize = 48 << 10;
/// Bytes of a frame for the working memory of one kernel at a time.
const SCRATCH: usize = 32 << 10;
/// Bytes that a tile touches: they stay in a processor's second cache.
const TOUCHED: usize = 160 << 10;
/// Elements times calls from which on a second thread pays.
const SHARED: usize = if cfg!(miri) { 64 } else { 1 << 16 };

/// A fused node, ready to be bound.
pub(super) struct FusedStep {
    parts: BodyParts,
    calls: Vec<TileCall>,
    head: Option<HeadCall>,
    /// The calls as functions of rows, where they all are; else they run on tiles.
    rows: Option<RowProgram>,
    /// Tiles of the whole space.
    whole: TileGrid,
    /// Whether threads share the tiles.
    share: bool,
}

/// A body at its places.
struct BodyParts {
    body: Graph,
    tiling: Tiling,
    metas: BodyTypes,
    frame: FrameLayout,
    returned: Vec<ValueId>,
    reads: Vec<TypedPlace>,
    writes: Vec<TypedPlace>,
    head: Option<FusedHead>,
}

/// Tiles of a region of the iteration space.
struct TileGrid {
    /// Every tensor that calls on tiles use.
    tensors: Vec<(ValueId, TileTensor)>,
    cuts: SmallVec<[SpaceCut; 4]>,
    tiles: usize,
}

/// The call of a head.
struct HeadCall {
    run: fn(&Call<'_>) -> std::result::Result<(), OpError>,
    /// Tensors by their position among the operands.
    args: Vec<Arg<usize, Scalar>>,
    /// Of the result, in the place of the last output.
    layout: Layout,
    dtype: DType,
    dims: SmallVec<[Option<usize>; 6]>,
    rows: usize,
    /// Working memory: its buffer and how many bytes it has.
    scratch: Option<(usize, usize)>,
}

/// A dimension of the iteration space in ranges of `tile` indices; only the last range of the last such dimension may be shorter.
struct SpaceCut {
    dim: usize,
    tile: i64,
    count: usize,
}

/// A tensor as a tile sees it.
struct TileTensor {
    source: TileSource,
    dtype: DType,
    /// In a whole tile, and in one that is shorter along the last cut. Their offset is that of the first tile.
    layouts: [Layout; 2],
    /// Bytes from tile to tile, along each cut.
    steps: SmallVec<[isize; 4]>,
    /// Bytes from index to index, along each dimension of the space.
    along: SmallVec<[isize; 6]>,
}

#[derive(Clone, Copy)]
enum TileSource {
    Read(usize),
    Write(usize),
    /// At this byte of the frame.
    Frame(usize),
}

struct TileCall {
    run: fn(&Call<'_>) -> std::result::Result<(), OpError>,
    /// Tensors by their position in [`TileGrid::tensors`].
    args: Vec<Arg<usize, Scalar>>,
    outs: SmallVec<[usize; 1]>,
    node: NodeId,
}

/// Memory of one tile.
#[repr(C, align(64))]
struct TileFrame {
    temporaries: [MaybeUninit<u8>; TEMPORARIES],
    scratch: [MaybeUninit<u8>; SCRATCH],
}

impl FusedStep {
    /// The step of a body at places that are inside of their buffers.
    ///
    /// # Errors
    /// The body does not fit the places, an operator gives other types than declared, or even the smallest tile is too large.
    pub fn new(
        body: &Graph,
        reads: Vec<TypedPlace>,
        writes: Vec<TypedPlace>,
        scratch: Option<(usize, usize)>,
    ) -> Result<FusedStep> {
        let tiling = Tiling::of(body)?;
        let metas = BodyTypes::of(body)?;
        let head = fused_head(body, &tiling)?;
        let returned: Vec<ValueId> = body.output_values().collect();
        let fits = |(v, p): (&ValueId, &TypedPlace)| {
            metas.get(*v).is_ok_and(|m| m.dtype == p.dtype && m.layout.sizes == p.layout.sizes)
        };
        let counted = body.inputs.len() == reads.len() && returned.len() == writes.len() && !returned.is_empty();
        if !counted || !body.inputs.iter().zip(&reads).all(fits) || !returned.iter().zip(&writes).all(fits) {
            return Err(Error::invalid("a fused body does not fit its operands and results"));
        }
        let frame = FrameLayout::of(body, &returned, head.as_ref().map(|h| h.result));
        let parts = BodyParts { body: body.clone(), tiling, metas, frame, returned, reads, writes, head };
        let whole = parts.grid(&parts.tiling.sizes)?;
        let position = |v: &ValueId| {
            let missing = || Error::invalid("a fused body uses a value that it does not have");
            whole.tensors.iter().position(|(own, _)| own == v).ok_or_else(missing)
        };
        let mut calls = Vec::with_capacity(body.order.len());
        let ahead = usize::from(parts.head.is_some());
        for id in body.order[ahead..].iter().filter(|id| body.nodes[**id].op.def().view.is_none()) {
            let call = TileCall::new(body, *id, position);
            let call = call.and_then(|c| c.hold(body, &whole.tensors, &parts.metas).map(|()| c));
            calls.push(call.map_err(|e| e.at(body, *id))?);
        }
        let head = match &parts.head {
            Some(head) => Some(parts.head_call(head, scratch).map_err(|e| e.at(body, body.order[0]))?),
            None => None,
        };
        let elements = parts.tiling.sizes.iter().product::<i64>() as usize;
        let share = whole.tiles > 1 && elements.saturating_mul(calls.len()) >= SHARED;
        let BodyParts { body, tiling, metas, reads, writes, head: of, .. } = &parts;
        let rows = RowProgram::of(body, (tiling, of.as_ref()), metas, reads, writes);
        Ok(FusedStep { parts, calls, head, rows, whole, share })
    }
}

impl BodyParts {
    /// The place of the output that has the iteration space.
    fn last(&self) -> &TypedPlace {
        &self.writes[self.writes.len() - 1]
    }

    fn head_call(&self, head: &FusedHead, scratch: Option<(usize, usize)>) -> Result<HeadCall> {
        let node = &self.body.nodes[self.body.order[0]];
        let Kernel::Fixed(run) = node.op.def().kernel else {
            return Err(Error::unsupported(format!("{} has no kernel", node.op)));
        };
        let operand = |v: &ValueId| {
            let at = self.body.inputs.iter().position(|i| i == v);
            at.ok_or_else(|| Error::invalid("the head of a fused body reads what the body makes"))
        };
        let number = |e: &Expr| e.constant().ok_or_else(|| Error::invalid("a number that is not known"));
        let args: Vec<Arg<usize, Scalar>> =
            node.args.iter().map(|a| a.try_map(operand, number)).collect::<Result<_>>()?;
        let own = self.metas.get(head.result)?;
        let types: Vec<Option<Meta>> =
            self.body.inputs.iter().map(|v| self.metas.get(*v).cloned().map(Some)).collect::<Result<_>>()?;
        let symbolic = args.iter().map(|a| a.try_map(|k| Ok::<_, Error>(*k), |s| Ok(Expr::from(*s))));
        let made = inferred(node.op, &symbolic.collect::<Result<Vec<_>>>()?, &types, &number)?;
        let layout = head.place(&self.last().layout, &own.layout.sizes);
        fit(&made, &[Some(TypedPlace { buffer: 0, dtype: own.dtype, layout: layout.clone() })])?;
        Ok(HeadCall { run, args, layout, dtype: own.dtype, dims: head.dims.clone(), rows: head.rows, scratch })
    }

    /// Tiles of a region of these sizes; dimensions that are not cut have their whole size.
    fn grid(&self, region: &[i64]) -> Result<TileGrid> {
        let BodyParts { body, tiling, metas, frame, returned, .. } = self;
        let last = self.last();
        let (tile, cuts) = self.tile(region)?;
        let mut short = tile.clone();
        if let Some(cut) = cuts.last() {
            short[cut.dim] = region[cut.dim] - (cut.count as i64 - 1) * cut.tile;
        }
        let mut tensors: Vec<(ValueId, TileTensor)> = Vec::new();
        let mut placed = |v: ValueId, source: TileSource, place: &TypedPlace| {
            let dims = tiling.cut_of(v);
            let layout = |tile: &[i64]| {
                let sizes = dims.iter().zip(&place.layout.sizes).map(|(d, n)| d.map_or(*n, |d| tile[d]));
                Layout { sizes: sizes.collect(), ..place.layout.clone() }
            };
            let stride = |dim: usize| {
                let stride = dims.iter().position(|d| *d == Some(dim)).map_or(0, |i| place.layout.strides[i]);
                stride as isize * place.dtype.size() as isize
            };
            let steps = cuts.iter().map(|cut| stride(cut.dim) * cut.tile as isize).collect();
            let along = (0..region.len()).map(stride).collect();
            let layouts = [layout(&tile), layout(&short)];
            tensors.push((v, TileTensor { source, dtype: place.dtype, layouts, steps, along }));
        };
        for (k, (v, place)) in body.inputs.iter().zip(&self.reads).enumerate() {
            // An operand of the head alone is no tile.
            if !tiling.cut_of(*v).is_empty() || place.layout.rank() == 0 {
                placed(*v, TileSource::Read(k), place);
            }
        }
        for (k, (v, place)) in returned.iter().zip(&self.writes).enumerate() {
            placed(*v, TileSource::Write(k), place);
        }
        if let Some(head) = &self.head {
            let layout = head.place(&last.layout, &metas.get(head.result)?.layout.sizes);
            let place = TypedPlace { buffer: last.buffer, dtype: last.dtype, layout };
            placed(head.result, TileSource::Write(self.writes.len() - 1), &place);
        }
        for (v, at) in frame.places(tiling, metas, &tile)? {
            let meta = metas.get(v)?;
            let whole = sizes_in(tiling, v, meta, &tile);
            let in_frame = dense_along(tiling, v, &whole, &last.layout);
            let shorter = Layout { sizes: sizes_in(tiling, v, meta, &short), ..in_frame.clone() };
            let (layouts, steps, along) = ([in_frame, shorter], SmallVec::new(), SmallVec::new());
            tensors.push((v, TileTensor { source: TileSource::Frame(at), dtype: meta.dtype, layouts, steps, along }));
        }
        for (_, node) in body.ordered() {
            let Some(dims) = view_dims(body, node) else { continue };
            let (base, view) = (node.operands().next(), node.results.first());
            let base = tensors.iter().find(|(v, _)| Some(*v) == base).map(|(_, t)| t);
            let (Some(base), Some(&view)) = (base, view) else {
                return Err(Error::invalid("a fused body views a value that it does not have"));
            };
            let strides = |l: &Layout| dims.iter().map(|d| d.map_or(1, |d| l.strides[d])).collect();
            let layout = |l: &Layout, tile: &[i64]| -> Result<Layout> {
                let sizes = sizes_in(tiling, view, metas.get(view)?, tile);
                Ok(Layout { sizes, strides: strides(l), ..l.clone() })
            };
            let layouts = [layout(&base.layouts[0], &tile)?, layout(&base.layouts[1], &short)?];
            let (steps, along) = (base.steps.clone(), base.along.clone());
            tensors.push((view, TileTensor { source: base.source, dtype: base.dtype, layouts, steps, along }));
        }
        let tiles = cuts.iter().map(|c| c.count).product();
        Ok(TileGrid { tensors, cuts, tiles })
    }

    /// The sizes of a tile and the dimensions that are cut: those that are slowest in memory first, so that a tile's elements are
    /// neighbours.
    fn tile(&self, region: &[i64]) -> Result<(SmallVec<[i64; 6]>, SmallVec<[SpaceCut; 4]>)> {
        let BodyParts { body, tiling, metas, frame, returned, .. } = self;
        let last = self.last();
        let outside: Vec<(ValueId, &Meta)> =
            body.inputs.iter().chain(returned).map(|v| Ok((*v, metas.get(*v)?))).collect::<Result<_>>()?;
        let fits = |tile: &[i64]| -> Result<bool> {
            let inside = frame.slots(tiling, metas, tile)?.iter().fold(0usize, |sum, s| sum.saturating_add(*s));
            let streams = |(v, _): &&(ValueId, &Meta)| tiling.cut_of(*v).iter().any(Option::is_some);
            let touched = outside.iter().filter(streams).map(|(v, m)| bytes_in(tiling, *v, m, tile));
            Ok(inside <= TEMPORARIES && touched.fold(inside, usize::saturating_add) <= TOUCHED)
        };
        let mut order: SmallVec<[usize; 6]> = (0..region.len()).filter(|d| tiling.cut[*d] && region[*d] > 1).collect();
        order.sort_by_key(|d| Reverse(last.layout.strides[*d].unsigned_abs()));
        let (mut tile, mut cuts) = (SmallVec::from(region), SmallVec::new());
        for dim in order {
            if fits(&tile)? {
                break;
            }
            let (size, mut low, mut high) = (tile[dim], 1, tile[dim]);
            while low < high {
                let middle = low + (high - low + 1) / 2;
                tile[dim] = middle;
                if fits(&tile)? { low = middle } else { high = middle - 1 }
            }
            // Ranges of about one length.
            let count = (size as usize).div_ceil(low as usize);
            tile[dim] = (size as usize).div_ceil(count) as i64;
            let count = (size as usize).div_ceil(tile[dim] as usize);
            cuts.push(SpaceCut { dim, tile: tile[dim], count });
        }
        let inside: usize = frame.slots(tiling, metas, &tile)?.iter().fold(0, |sum, s| sum.saturating_add(*s));
        if inside > TEMPORARIES {
            return Err(Error::invalid(format!("the smallest tile of a fused body takes {inside} bytes")));
        }
        Ok((tile, cuts))
    }
}

impl TileCall {
    fn new(body: &Graph, id: NodeId, position: impl Fn(&ValueId) -> Result<usize>) -> Result<TileCall> {
        let node = &body.nodes[id];
        let Kernel::Fixed(run) = node.op.def().kernel else {
            return Err(Error::unsupported(format!("{} has no kernel", node.op)));
        };
        let number = |e: &Expr| e.constant().ok_or_else(|| Error::invalid("a number that is not known"));
        let args = node.args.iter().map(|a| a.try_map(&position, number)).collect::<Result<_>>()?;
        let outs = node.results.iter().map(&position).collect::<Result<_>>()?;
        Ok(TileCall { run, args, outs, node: id })
    }

    /// Holds the types of results against the shape rule, which kernels write by.
    fn hold(&self, body: &Graph, tensors: &[(ValueId, TileTensor)], metas: &BodyTypes) -> Result<()> {
        let op = body.nodes[self.node].op;
        let symbolic = self.args.iter().map(|a| a.try_map(|k| Ok::<_, Error>(*k), |s| Ok(Expr::from(*s))));
        let args: Vec<Arg<usize, Expr>> = symbolic.collect::<Result<_>>()?;
        let number = |e: &Expr| e.constant().ok_or_else(|| Error::invalid("a number that is not known"));
        let types: Vec<Option<Meta>> =
            tensors.iter().map(|(v, _)| metas.get(*v).cloned().map(Some)).collect::<Result<_>>()?;
        let made = inferred(op, &args, &types, &number)?;
        let place = |k: &usize| {
            let Meta { dtype, layout } = types[*k].clone()?;
            Some(TypedPlace { buffer: 0, dtype, layout })
        };
        fit(&made, &self.outs.iter().map(place).collect::<Vec<_>>())
    }
}

/// Types of a body's values.
struct BodyTypes(Vec<(ValueId, Meta)>);

impl BodyTypes {
    fn of(body: &Graph) -> Result<BodyTypes> {
        let values = body.inputs.iter().copied().chain(body.ordered().flat_map(|(_, n)| n.results.iter().copied()));
        Ok(BodyTypes(values.map(|v| Ok((v, known_meta(body, v)?))).collect::<Result<_>>()?))
    }

    fn get(&self, v: ValueId) -> Result<&Meta> {
        let missing = || Error::invalid("a fused body uses a value that it does not have");
        self.0.iter().find(|(own, _)| *own == v).map(|(_, m)| m).ok_or_else(missing)
    }
}

/// Sizes of a value in a tile.
fn sizes_in(tiling: &Tiling, v: ValueId, meta: &Meta, tile: &[i64]) -> SmallVec<[i64; 6]> {
    tiling.cut_of(v).iter().zip(&meta.layout.sizes).map(|(d, n)| d.map_or(*n, |d| tile[d])).collect()
}

fn bytes_in(tiling: &Tiling, v: ValueId, meta: &Meta, tile: &[i64]) -> usize {
    let sizes = sizes_in(tiling, v, meta, tile);
    let elements = sizes.iter().fold(1usize, |n, s| n.saturating_mul(usize::try_from(*s).unwrap_or(0)));
    elements.saturating_mul(meta.dtype.size()).saturating_add(63) / 64 * 64
}

/// A dense layout of a temporary, its dimensions in the order in which `like` has those of the space in memory.
fn dense_along(tiling: &Tiling, v: ValueId, sizes: &[i64], like: &Layout) -> Layout {
    let along = tiling.cut_of(v);
    let mut order: SmallVec<[usize; 6]> = (0..sizes.len()).collect();
    if like.rank() == sizes.len() && along.iter().enumerate().all(|(i, d)| d.is_none_or(|d| d == i)) {
        order.sort_by_key(|d| Reverse(like.strides[*d].unsigned_abs()));
    }
    let mut out = Layout::contiguous(sizes);
    let mut stride = 1;
    for &d in order.iter().rev() {
        out.strides[d] = stride;
        stride *= sizes[d].max(1);
    }
    out
}

/// Which temporaries are alive at once: each result that is not returned has the first slot that is free.
struct FrameLayout {
    /// Value and slot.
    values: Vec<(ValueId, usize)>,
    slots: usize,
}

impl FrameLayout {
    /// `head` is the result of the body's head, which is in the place of an output.
    fn of(body: &Graph, returned: &[ValueId], head: Option<ValueId>) -> FrameLayout {
        let mut busy: Vec<usize> = Vec::new();
        let mut values = Vec::new();
        // Views are of their base's memory.
        let mut base: Vec<(ValueId, ValueId)> = Vec::new();
        let root =
            |base: &[(ValueId, ValueId)], v: ValueId| base.iter().find(|(view, _)| *view == v).map_or(v, |(_, b)| *b);
        for (_, node) in body.ordered().filter(|(_, n)| n.op.def().view.is_some()) {
            if let (Some(of), Some(view)) = (node.operands().next(), node.results.first()) {
                base.push((*view, root(&base, of)));
            }
        }
        for (at, (_, node)) in body.ordered().enumerate().filter(|(_, (_, n))| n.op.def().view.is_none()) {
            for &r in node.results.iter().filter(|r| !returned.contains(r) && Some(**r) != head) {
                let reads = |id: &NodeId| body.nodes[*id].operands().any(|v| root(&base, v) == r);
                let until = body.order.iter().rposition(reads).unwrap_or(at);
                let slot = busy.iter().position(|end| *end < at).unwrap_or_else(|| {
                    busy.push(0);
                    busy.len() - 1
                });
                busy[slot] = until;
                values.push((r, slot));
            }
        }
        FrameLayout { values, slots: busy.len() }
    }

    /// Bytes of each slot with tiles of these sizes.
    fn slots(&self, tiling: &Tiling, metas: &BodyTypes, tile: &[i64]) -> Result<Vec<usize>> {
        let mut slots = vec![0usize; self.slots];
        for (v, slot) in &self.values {
            slots[*slot] = slots[*slot].max(bytes_in(tiling, *v, metas.get(*v)?, tile));
        }
        Ok(slots)
    }

    /// The byte at which each temporary begins.
    fn places(&self, tiling: &Tiling, metas: &BodyTypes, tile: &[i64]) -> Result<Vec<(ValueId, usize)>> {
        let slots = self.slots(tiling, metas, tile)?;
        let start = |slot: usize| slots[..slot].iter().sum();
        Ok(self.values.iter().map(|(v, slot)| (*v, start(*slot))).collect())
    }
}

/// Arguments and results of each call, for one thread.
type TileViews<'c> = Vec<(Vec<Arg<View<'c>, Scalar>>, SmallVec<[ViewMut<'c>; 1]>)>;

/// Regions that a thread keeps tiles of.
const REGIONS: usize = 4;

/// What one thread works with.
struct TileWorker<'c> {
    whole: TileViews<'c>,
    /// Sizes of regions that a head finished, their tiles, and views that point into these.
    regions: Vec<(SmallVec<[i64; 6]>, Box<TileGrid>, TileViews<'static>)>,
}

/// A fused node, bound to memory.
pub(super) struct BoundFused<'c> {
    step: &'c FusedStep,
    /// Addresses of cell 0 of operands, and of results.
    reads: Vec<*mut u8>,
    writes: Vec<*mut u8>,
    /// Arguments of the head, and its working memory.
    head: Vec<Arg<View<'c>, Scalar>>,
    /// Arguments of the scales of rows.
    scales: Vec<Vec<Arg<View<'c>, Scalar>>>,
    scratch: (*mut u8, usize),
    /// Workers that no thread is at.
    idle: Mutex<Vec<TileWorker<'c>>>,
}

/// What threads share.
struct TileShare<'a, 'c>(&'a BoundFused<'c>);
// SAFETY: each thread takes a worker of its own; no two tiles write a cell that another one uses.
unsafe impl Sync for TileShare<'_, '_> {}

impl<'c> TileShare<'_, 'c> {
    fn bound(&self) -> &BoundFused<'c> {
        self.0
    }
}

type TileResult = std::result::Result<(), OpError>;

impl<'c> BoundFused<'c> {
    /// # Safety
    /// The addresses are valid as far as the step's places reach, while the step is used or until [`BoundFused::rebase`].
    pub unsafe fn new(step: &'c FusedStep, bases: &[*mut u8]) -> Self {
        let (reads, writes, head, scales, idle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Mutex::default());
        let mut new = BoundFused { step, reads, writes, head, scales, scratch: (std::ptr::null_mut(), 0), idle };
        // SAFETY: as promised by the caller.
        unsafe { new.rebase(bases) };
        new
    }

    /// Moves the step to other addresses of its buffers.
    ///
    /// # Safety
    /// As [`BoundFused::new`].
    pub unsafe fn rebase(&mut self, bases: &[*mut u8]) {
        let parts = &self.step.parts;
        self.reads.clear();
        self.reads.extend(parts.reads.iter().map(|p| bases[p.buffer]));
        self.writes.clear();
        self.writes.extend(parts.writes.iter().map(|p| bases[p.buffer]));
        self.head.clear();
        if let Some(head) = &self.step.head {
            // SAFETY: as promised by the caller.
            let view = |k: &usize| unsafe { parts.reads[*k].view(bases) };
            self.head.extend(head.args.iter().map(|a| a.map_values(view)));
            self.scratch = head.scratch.map_or((std::ptr::null_mut(), 0), |(b, bytes)| (bases[b], bytes));
        }
        self.scales.clear();
        for scale in self.step.rows.iter().flat_map(RowProgram::scales) {
            // SAFETY: as promised by the caller.
            let view = |k: &usize| unsafe { parts.reads[*k].view(bases) };
            self.scales.push(scale.args.iter().map(|a| a.map_values(view)).collect());
        }
    }

    /// Runs the body.
    ///
    /// # Safety
    /// As [`BoundFused::new`]; no one else uses the results' cells, and where results share cells with operands, the body has a
    /// licence for it.
    pub unsafe fn run(&mut self, ctx: &Ctx) -> TileResult {
        let step = self.step;
        if let Some(rows) = &step.rows {
            // SAFETY: as promised by the caller.
            return unsafe { self.in_rows(rows, ctx) };
        }
        let threads = ctx.threads.max(1);
        let most = if step.share || step.head.is_some() { threads } else { 1 };
        {
            let idle = self.idle.get_mut().unwrap_or_else(PoisonError::into_inner);
            while idle.len() < most {
                idle.push(step.worker());
            }
        }
        match &step.head {
            // SAFETY: as promised by the caller.
            Some(head) => unsafe { self.headed(head, None, ctx) },
            // SAFETY: as promised by the caller.
            None => unsafe { self.all(ctx) },
        }
    }

    /// Runs the body by its functions of rows.
    ///
    /// # Safety
    /// As [`BoundFused::run`].
    // By itself: its frame is several pages.
    #[inline(never)]
    unsafe fn in_rows(&self, rows: &RowProgram, ctx: &Ctx) -> TileResult {
        let mut factors = Stack::<f64, FACTORS>::new();
        let factors = factors.filled(rows.factor_count(), 0.0);
        rows.factors(&self.scales, factors)?;
        match &self.step.head {
            // SAFETY: as promised by the caller.
            Some(head) => unsafe { self.headed(head, Some((rows, factors)), ctx) },
            None => {
                // SAFETY: as promised by the caller.
                unsafe { self.all_rows(rows, factors, ctx) };
                Ok(())
            }
        }
    }

    /// # Safety
    /// As [`BoundFused::run`].
    unsafe fn all_rows(&self, rows: &RowProgram, factors: &[f64], ctx: &Ctx) {
        let shared = TileShare(self);
        // SAFETY: as promised by the caller.
        unsafe { rows.all(&|source| shared.bound().base(source), factors, ctx) }
    }

    /// The address of the first cell of a source's buffer.
    fn base(&self, source: TileSource) -> *mut u8 {
        match source {
            TileSource::Read(k) => self.reads[k],
            TileSource::Write(k) => self.writes[k],
            TileSource::Frame(_) => std::ptr::null_mut(),
        }
    }

    /// Runs the head, and the other calls on what it has finished: as functions of rows, with their factors, or on tiles.
    ///
    /// # Safety
    /// As [`BoundFused::run`].
    unsafe fn headed(&self, head: &HeadCall, rows: Option<(&RowProgram, &[f64])>, ctx: &Ctx) -> TileResult {
        let last = self.writes[self.writes.len() - 1];
        // SAFETY: the head's result is where the last output will be.
        let outs = [unsafe { ViewMut::from_raw(last, head.dtype, &head.layout) }];
        // SAFETY: the step holds declared types against the shape rule; a checker saw that the result meets no operand.
        let fitted = unsafe { Fitted::promise() };
        let call = Call { args: Args(&self.head), outs: &outs, ctx, fitted };
        let (finished, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let inner = Ctx { threads: 1, ..ctx.clone() };
        let shared = TileShare(self);
        let in_rows = rows;
        let finish = |lines: Range<usize>, columns: Range<usize>| {
            let count = lines.len() * columns.len();
            // SAFETY: as promised by the caller: the kernel is done with these elements.
            if let Err(e) = unsafe { shared.bound().part(head, (lines, columns), in_rows, &inner) } {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            }
            finished.fetch_add(count, Ordering::Relaxed);
        };
        // SAFETY: the step's own part of the arena.
        epilogue::with(&finish, || unsafe { with_scratch(self.scratch.0, self.scratch.1, || (head.run)(&call)) })?;
        if let Some(e) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(e);
        }
        match finished.into_inner() {
            // SAFETY: as promised by the caller; the head's result is whole.
            0 => match rows {
                Some((rows, factors)) => {
                    // SAFETY: as above.
                    unsafe { self.all_rows(rows, factors, ctx) };
                    Ok(())
                }
                // SAFETY: as above.
                None => unsafe { self.all(ctx) },
            },
            n if n == outs[0].numel() => Ok(()),
            n => Err(OpError::new(format!("the head of a fused body finished {n} of {} elements", outs[0].numel()))),
        }
    }

    /// Runs all tiles.
    ///
    /// # Safety
    /// As [`BoundFused::run`].
    unsafe fn all(&self, ctx: &Ctx) -> TileResult {
        let step = self.step;
        let (grid, threads) = (&step.whole, if step.share { ctx.threads.max(1) } else { 1 });
        // More parts than threads: one that is kept from working leaves its parts to the others.
        let parts = if threads > 1 { (4 * threads).min(grid.tiles) } else { 1 };
        let part = grid.tiles.div_ceil(parts);
        // A single tile has the threads for its kernels.
        let inner = Ctx { threads: if grid.tiles > 1 { 1 } else { ctx.threads }, ..ctx.clone() };
        let failed = Mutex::new(None);
        let shared = TileShare(self);
        par::each(threads, grid.tiles.div_ceil(part), &|p| {
            let bound = shared.bound();
            let mut worker = bound.worker();
            let tiles = p * part..grid.tiles.min((p + 1) * part);
            // SAFETY: as promised by the caller; the part's tiles are this thread's.
            if let Err(e) = unsafe { bound.tiles(grid, &mut worker.whole, tiles, &[], &inner) } {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            }
            bound.lock().push(worker);
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TileWorker<'c>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn worker(&self) -> TileWorker<'c> {
        let taken = self.lock().pop();
        taken.unwrap_or_else(|| self.step.worker())
    }

    /// Runs the calls behind the head on a finished part of its result.
    ///
    /// # Safety
    /// As [`BoundFused::run`]; the kernel is done with the part.
    unsafe fn part(
        &self,
        head: &HeadCall,
        (rows, columns): (Range<usize>, Range<usize>),
        in_rows: Option<(&RowProgram, &[f64])>,
        ctx: &Ctx,
    ) -> TileResult {
        let (first, second) = head.layout.sizes.split_at(head.rows);
        if let Some((program, factors)) = in_rows {
            boxes(first, rows, &mut |upper| {
                boxes(second, columns.clone(), &mut |lower| {
                    let (origin, sizes) = self.region_of(head, upper.iter().chain(lower).copied());
                    // SAFETY: as promised by the caller.
                    unsafe { program.run(&|source| self.base(source), factors, &origin, &sizes) };
                });
            });
            return Ok(());
        }
        let mut worker = self.worker();
        let mut done = Ok(());
        boxes(first, rows, &mut |upper| {
            boxes(second, columns.clone(), &mut |lower| {
                if done.is_ok() {
                    let index = upper.iter().chain(lower);
                    // SAFETY: as promised by the caller.
                    done = unsafe { self.region(&mut worker, head, index.copied(), ctx) };
                }
            });
        });
        self.lock().push(worker);
        done
    }

    /// Origin and sizes, in the space, of a box of the head's result.
    fn region_of(
        &self,
        head: &HeadCall,
        index: impl Iterator<Item = (i64, i64)>,
    ) -> (SmallVec<[isize; 6]>, SmallVec<[i64; 6]>) {
        let mut sizes: SmallVec<[i64; 6]> = self.step.parts.tiling.sizes.clone();
        let mut origin: SmallVec<[isize; 6]> = SmallVec::from_elem(0, sizes.len());
        for ((start, size), d) in index.zip(&head.dims).filter_map(|(at, d)| Some((at, (*d)?))) {
            (origin[d], sizes[d]) = (start as isize, size);
        }
        (origin, sizes)
    }

    /// Runs the calls behind the head on a box of its result's indices: start and size along each dimension.
    ///
    /// # Safety
    /// As [`BoundFused::part`].
    unsafe fn region(
        &self,
        worker: &mut TileWorker<'c>,
        head: &HeadCall,
        index: impl Iterator<Item = (i64, i64)>,
        ctx: &Ctx,
    ) -> TileResult {
        let parts = &self.step.parts;
        let (origin, sizes) = self.region_of(head, index);
        let at = match worker.regions.iter().position(|r| r.0 == sizes) {
            Some(at) => at,
            None => {
                let grid = Box::new(parts.grid(&sizes).map_err(|e| OpError::new(e.what))?);
                // SAFETY: the views point to the grid's layouts, which stay where they are and are dropped after the views.
                let lasting: &'static TileGrid = unsafe { &*std::ptr::from_ref(&*grid) };
                let views = views(&self.step.calls, lasting);
                if worker.regions.len() == REGIONS {
                    worker.regions.remove(0);
                }
                worker.regions.push((sizes, grid, views));
                worker.regions.len() - 1
            }
        };
        let (_, grid, views) = &mut worker.regions[at];
        // SAFETY: as above, and as promised by the caller.
        unsafe {
            let lasting: &'static TileGrid = &*std::ptr::from_ref(&**grid);
            self.tiles(lasting, views, 0..lasting.tiles, &origin, ctx)
        }
    }

    /// # Safety
    /// As [`BoundFused::run`].
    // By itself: its frame is many pages.
    #[inline(never)]
    unsafe fn tiles<'g>(
        &self,
        grid: &'g TileGrid,
        views: &mut TileViews<'g>,
        tiles: Range<usize>,
        origin: &[isize],
        ctx: &Ctx,
    ) -> TileResult {
        let mut frame = TileFrame {
            temporaries: [const { MaybeUninit::uninit() }; TEMPORARIES],
            scratch: [const { MaybeUninit::uninit() }; SCRATCH],
        };
        let TileFrame { temporaries, scratch: working } = &mut frame;
        let temporaries: *mut u8 = temporaries.as_mut_ptr().cast();
        scratch::with(working, || {
            for tile in tiles {
                // SAFETY: as promised by the caller; the frame has the step's temporaries.
                unsafe { self.tile(grid, views, temporaries, (tile, origin), ctx)? };
            }
            Ok(())
        })
    }

    /// # Safety
    /// As [`BoundFused::run`]; `frame` has the step's temporaries.
    unsafe fn tile<'g>(
        &self,
        grid: &'g TileGrid,
        views: &mut TileViews<'g>,
        frame: *mut u8,
        (tile, origin): (usize, &[isize]),
        ctx: &Ctx,
    ) -> TileResult {
        let mut index: SmallVec<[isize; 4]> = SmallVec::from_elem(0, grid.cuts.len());
        let mut rest = tile;
        for (at, cut) in index.iter_mut().zip(&grid.cuts).rev() {
            (*at, rest) = ((rest % cut.count) as isize, rest / cut.count);
        }
        let last = index.last().zip(grid.cuts.last());
        let variant = usize::from(last.is_some_and(|(at, cut)| *at + 1 == cut.count as isize));
        let at = |t: &TileTensor| {
            let base = match t.source {
                TileSource::Read(k) => self.reads[k],
                TileSource::Write(k) => self.writes[k],
                TileSource::Frame(at) => frame.wrapping_add(at),
            };
            let steps = t.steps.iter().zip(&index).map(|(step, at)| step * at).sum::<isize>();
            base.wrapping_offset(steps + t.along.iter().zip(origin).map(|(step, at)| step * at).sum::<isize>())
        };
        // SAFETY: as promised by the caller: the tile's cells are cells of the tensor's place, or of its part of the frame.
        let view = |t: &'g TileTensor| unsafe { View::from_raw(at(t), t.dtype, &t.layouts[variant]) };
        for (call, (args, outs)) in self.step.calls.iter().zip(views.iter_mut()) {
            for (arg, spec) in args.iter_mut().zip(&call.args) {
                match (arg, spec) {
                    (Arg::Value(v), Arg::Value(k)) => *v = view(&grid.tensors[*k].1),
                    (Arg::Values(vs), Arg::Values(ks)) => {
                        for (v, k) in vs.iter_mut().zip(ks) {
                            if let (Some(v), Some(k)) = (v, k) {
                                *v = view(&grid.tensors[*k].1);
                            }
                        }
                    }
                    _ => {}
                }
            }
            for (out, k) in outs.iter_mut().zip(&call.outs) {
                let t = &grid.tensors[*k].1;
                // SAFETY: as above.
                *out = unsafe { ViewMut::from_raw(at(t), t.dtype, &t.layouts[variant]) };
            }
            // SAFETY: the step holds declared types against the shape rule; temporaries are apart, and where places may meet, a
            // checker saw to it.
            let fitted = unsafe { Fitted::promise() };
            (call.run)(&Call { args: Args(args), outs, ctx, fitted })?;
        }
        Ok(())
    }
}

impl FusedStep {
    fn worker(&self) -> TileWorker<'_> {
        TileWorker { whole: views(&self.calls, &self.whole), regions: Vec::new() }
    }
}

/// Views for one thread; each tile sets their addresses.
fn views<'g>(calls: &[TileCall], grid: &'g TileGrid) -> TileViews<'g> {
    let null = std::ptr::null_mut();
    let one = |c: &TileCall| {
        let tensor = |k: usize| &grid.tensors[k].1;
        // SAFETY: a tile gives the views their addresses before it uses them.
        let view = |k: &usize| unsafe { View::from_raw(null, tensor(*k).dtype, &tensor(*k).layouts[0]) };
        // SAFETY: as above.
        let out = |k: &usize| unsafe { ViewMut::from_raw(null, tensor(*k).dtype, &tensor(*k).layouts[0]) };
        (c.args.iter().map(|a| a.map_values(view)).collect(), c.outs.iter().map(out).collect())
    };
    calls.iter().map(one).collect()
}

/// Calls `f` with boxes, starts and sizes along dimensions of these sizes, that together are a range of indices in row-major order.
fn boxes(sizes: &[i64], range: Range<usize>, f: &mut dyn FnMut(&[(i64, i64)])) {
    let mut at: SmallVec<[(i64, i64); 6]> = SmallVec::from_elem((0, 1), sizes.len());
    split(sizes, range, 0, &mut at, f);
}

fn split(
    sizes: &[i64],
    range: Range<usize>,
    dim: usize,
    at: &mut SmallVec<[(i64, i64); 6]>,
    f: &mut dyn FnMut(&[(i64, i64)]),
) {
    if range.is_empty() {
        return;
    }
    if dim == sizes.len() {
        return f(at);
    }
    let inner = sizes[dim + 1..].iter().product::<i64>() as usize;
    let (first, end) = (range.start / inner, range.end / inner);
    let (head, tail) = (range.start % inner, range.end % inner);
    let mut whole = first..end;
    if head > 0 {
        // The rest of the first index.
        at[dim] = (first as i64, 1);
        let stop = if first == end { tail } else { inner };
        split(sizes, head..stop, dim + 1, at, f);
        whole.start = first + 1;
    }
    if whole.start < whole.end {
        at[dim] = (whole.start as i64, whole.len() as i64);
        split(sizes, 0..inner, dim + 1, at, f);
    }
    if tail > 0 && (head == 0 || first < end) {
        at[dim] = (end as i64, 1);
        split(sizes, 0..tail, dim + 1, at, f);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_the_range() {
        for sizes in [vec![], vec![7], vec![3, 4], vec![2, 3, 5], vec![1, 6, 1, 2]] {
            let all = sizes.iter().product::<i64>() as usize;
            for start in 0..all {
                for end in start..=all {
                    let mut seen: Vec<usize> = Vec::new();
                    boxes(&sizes, start..end, &mut |b| {
                        let mut found = vec![0usize];
                        for ((from, n), size) in b.iter().zip(&sizes) {
                            let each = |i: usize| (*from..from + n).map(move |k| i * *size as usize + k as usize);
                            found = found.into_iter().flat_map(each).collect();
                        }
                        seen.extend(found);
                    });
                    assert_eq!(seen, (start..end).collect::<Vec<_>>(), "{sizes:?}");
                }
            }
        }
    }
}
