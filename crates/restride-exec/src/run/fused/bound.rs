//! A fused node bound to memory: its workers, and its runs over tiles and over the parts that a head finishes.

use super::*;
use restride_ir::Ctx;

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
pub(in crate::run) struct BoundFused<'c> {
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
        let mut factors = Stack::<f32, FACTORS>::new();
        let factors = factors.zeroed(rows.factor_count());
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
    unsafe fn all_rows(&self, rows: &RowProgram, factors: &[f32], ctx: &Ctx) {
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
    unsafe fn headed(&self, head: &HeadCall, rows: Option<(&RowProgram, &[f32])>, ctx: &Ctx) -> TileResult {
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
        // A single tile has the threads for its kernels.
        let inner = Ctx { threads: if grid.tiles > 1 { 1 } else { ctx.threads }, ..ctx.clone() };
        let failed = Mutex::new(None);
        let shared = TileShare(self);
        EvenParts::new(grid.tiles, threads).each(&|tiles| {
            let bound = shared.bound();
            let mut worker = bound.worker();
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
        in_rows: Option<(&RowProgram, &[f32])>,
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
