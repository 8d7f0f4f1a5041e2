//! Fused nodes: the body's calls, tile by tile, each by its own kernel.
//!
//! A head runs first, as a whole, in the place of the last output; its kernel calls an epilogue for each finished part, which runs the other
//! calls on it while it is in the cache. If it calls none, they run on all of it afterwards.
//!
//! A tile is a box of the body's iteration space. What calls only hand on to each other lies in a frame on the thread's stack, which
//! the next tile uses again; operands are read, and results written, where they are placed. Threads share tiles.

mod bound;
mod rows;

pub(super) use bound::BoundFused;

use super::code::{fit, inferred};
use super::memory::TypedPlace;
use super::steps::with_scratch;
use restride_ir::{
    Arg, Args, Call, Error, Expr, FusedHead, Graph, Kernel, Layout, Meta, NodeId, OpError, Result, Scalar, Tiling,
    ValueId, fused_head, known_meta, view_dims,
};
use restride_kernels::support::par::EvenParts;
use restride_kernels::support::stack::Stack;
use restride_kernels::support::{epilogue, scratch};
use restride_tensor::{DType, Fitted, View, ViewMut, by_stride};
use rows::{FACTORS, RowProgram};
use smallvec::SmallVec;
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
    /// Empty where calls are functions of rows.
    calls: Vec<TileCall>,
    head: Option<HeadCall>,
    /// The calls as functions of rows, where they all are; else they run on tiles.
    rows: Option<RowProgram>,
    /// Tiles of the whole space, where calls run on them.
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
#[derive(Default)]
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
}

/// Memory of one tile.
#[repr(C, align(64))]
struct TileFrame {
    temporaries: [MaybeUninit<u8>; TEMPORARIES],
    scratch: [MaybeUninit<u8>; SCRATCH],
}

impl FusedStep {
    /// The step of a body at places that are inside of their buffers; `far` says of each buffer whether its memory is too large
    /// for the caches.
    ///
    /// # Errors
    /// The body does not fit the places, an operator gives other types than declared, or even the smallest tile is too large.
    pub fn new(
        body: &Graph,
        reads: Vec<TypedPlace>,
        writes: Vec<TypedPlace>,
        scratch: Option<(usize, usize)>,
        far: &[bool],
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
        let rows = {
            let BodyParts { body, tiling, metas, reads, writes, head, .. } = &parts;
            RowProgram::of(body, (tiling, head.as_ref()), metas, reads, writes, far)
        };
        let whole = match &rows {
            Some(_) => TileGrid::default(),
            None => parts.grid(&parts.tiling.sizes)?,
        };
        let position = |v: &ValueId| {
            let missing = || Error::invalid("a fused body uses a value that it does not have");
            whole.tensors.iter().position(|(own, _)| own == v).ok_or_else(missing)
        };
        let mut calls = Vec::with_capacity(body.order.len());
        let ahead = usize::from(parts.head.is_some());
        for id in body.order[ahead..].iter().filter(|id| body.nodes[**id].op.def().view.is_none()) {
            hold(body, *id, &parts.metas).map_err(|e| e.at(body, *id))?;
            if rows.is_none() {
                calls.push(TileCall::new(body, *id, position).map_err(|e| e.at(body, *id))?);
            }
        }
        let head = match &parts.head {
            Some(head) => Some(parts.head_call(head, scratch).map_err(|e| e.at(body, body.order[0]))?),
            None => None,
        };
        let elements = parts.tiling.sizes.iter().product::<i64>() as usize;
        let share = whole.tiles > 1 && elements.saturating_mul(calls.len()) >= SHARED;
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
            // Elements repeat along other dimensions than the base's.
            let strides = |l: &Layout| dims.iter().map(|d| d.map_or(0, |d| l.strides[d])).collect();
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
        by_stride(&mut order, |d| last.layout.strides[d]);
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
        Ok(TileCall { run, args, outs })
    }
}

/// Holds the types of a call's results against its shape rule, which kernels write by.
fn hold(body: &Graph, id: NodeId, metas: &BodyTypes) -> Result<()> {
    let node = &body.nodes[id];
    let position = |v: &ValueId| {
        let missing = || Error::invalid("a fused body uses a value that it does not have");
        metas.0.iter().position(|(own, _)| own == v).ok_or_else(missing)
    };
    let args: Vec<Arg<usize, Expr>> =
        node.args.iter().map(|a| a.try_map(position, |e| Ok(e.clone()))).collect::<Result<_>>()?;
    let number = |e: &Expr| e.constant().ok_or_else(|| Error::invalid("a number that is not known"));
    let types: Vec<Option<Meta>> = metas.0.iter().map(|(_, m)| Some(m.clone())).collect();
    let made = inferred(node.op, &args, &types, &number)?;
    let place = |v: &ValueId| {
        let Meta { dtype, layout } = metas.get(*v).ok()?.clone();
        Some(TypedPlace { buffer: 0, dtype, layout })
    };
    fit(&made, &node.results.iter().map(place).collect::<Vec<_>>())
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
        by_stride(&mut order, |d| like.strides[d]);
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
