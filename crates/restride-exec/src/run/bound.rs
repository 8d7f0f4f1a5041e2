//! Steps bound to memory: each with views that are ready, so that running them allocates nothing but what kernels do.

use super::code::{Code, Compute, KernelStep, What};
use super::hops::Desk;
use super::memory::Spot;
use super::steps::{Job, with_scratch};
use restride_ir::{Arg, Args, Binding, Call, Ctx, Error, Graph, NodeId, OpError, Result, RngKey, Scalar};
use restride_kernels::support::convert::copy_convert;
use restride_tensor::{Fitted, RawTensor, View, ViewMut};

/// A step with all that it takes.
enum Ready {
    Nothing,
    Move(View<'static>, ViewMut<'static>),
    Kernel(ReadyKernel),
    /// A call of bodies, and what it works with.
    Hop(Box<Desk>),
    /// As the runnable does it.
    Other,
}

struct ReadyKernel {
    run: fn(&Call<'_>) -> Result<(), OpError>,
    args: Vec<Arg<View<'static>, Scalar>>,
    outs: Vec<ViewMut<'static>>,
    /// Working memory.
    scratch: (*mut u8, usize),
    /// Memory of results that nobody wants.
    _spare: Vec<Option<RawTensor>>,
    node: NodeId,
    key: u32,
}

/// The steps of a graph, bound to its buffers' addresses.
pub(super) struct Bound {
    steps: Vec<Ready>,
    bases: Vec<*mut u8>,
    /// Per buffer that may be elsewhere at the next run: the steps that touch it.
    uses: Vec<Vec<usize>>,
}

impl Bound {
    /// # Safety
    /// What `bases` are the addresses of is valid as [`Job::code`] says, and it and the code stay, unchanged, for as long as
    /// this does (or until [`Bound::rebase`] is told another address).
    pub unsafe fn new(code: &Code, graph: &Graph, bases: Vec<*mut u8>, symbols: &Binding) -> Result<Bound> {
        let mut uses = vec![Vec::new(); bases.len()];
        let mut steps = Vec::with_capacity(code.steps.len());
        for (at, step) in code.steps.iter().enumerate() {
            let mut touch = |buffer: usize| {
                if uses[buffer].last() != Some(&at) {
                    uses[buffer].push(at);
                }
            };
            steps.push(match &step.what {
                What::Nothing => Ready::Nothing,
                // SAFETY: the places were proved to be inside of their buffers; all is kept, as promised by the caller.
                What::Move(places) => unsafe {
                    let (from, to): &'static (Spot, Spot) = &*std::ptr::from_ref(&**places);
                    touch(from.buffer);
                    touch(to.buffer);
                    Ready::Move(from.view(&bases), to.view_mut(&bases))
                },
                What::Kernel(kernel) => {
                    let spots = kernel.reads.iter().chain(&kernel.writes).flatten().map(|s| s.buffer);
                    spots.chain(kernel.scratch.map(|s| s.0)).for_each(touch);
                    let node = step.node.expect("a kernel is of a node");
                    let key = graph.nodes[node].origin.key;
                    // SAFETY: as above.
                    unsafe { ready(&*std::ptr::from_ref(&**kernel), &bases, symbols, node, key) }
                        .map_err(|e| e.at(graph, node))?
                }
                What::Hop(_) => Ready::Hop(Box::default()),
            });
        }
        Ok(Bound { steps, bases, uses })
    }

    /// Other addresses of the same buffers.
    ///
    /// # Safety
    /// As [`Bound::new`].
    pub unsafe fn rebase(&mut self, code: &Code, bases: &[*mut u8]) {
        for (buffer, &base) in bases.iter().enumerate() {
            if self.bases[buffer] == base {
                continue;
            }
            self.bases[buffer] = base;
            for &at in &self.uses[buffer] {
                // SAFETY: as promised by the caller.
                unsafe { self.steps[at].rebase(&code.steps[at].what, &self.bases) };
            }
        }
    }

    /// # Safety
    /// As [`Job::code`]; the code and the graph are those that this was made of.
    pub unsafe fn run(
        &mut self,
        job: &Job<'_>,
        code: &Code,
        graph: &Graph,
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<()> {
        for (ready, step) in self.steps.iter_mut().zip(&code.steps) {
            match ready {
                Ready::Nothing => {}
                Ready::Move(from, to) => copy_convert(*from, to),
                Ready::Kernel(kernel) => {
                    let ReadyKernel { run, args, outs, scratch, node, key, .. } = kernel;
                    let rng = RngKey { seed: job.ctx.seed, call: job.ctx.call, node: *key, iteration };
                    let ctx = Ctx { rng, threads: job.ctx.threads.max(1) };
                    // SAFETY: the code holds declared types against the shape rule; where places may meet, a checker saw to it.
                    let fitted = unsafe { Fitted::promise() };
                    let call = Call { args: Args(args), outs, ctx: &ctx, fitted };
                    // SAFETY: the step's own part of the arena.
                    let done = unsafe { with_scratch(scratch.0, scratch.1, || run(&call)) };
                    done.map_err(|e| Error::from(e).at(graph, *node))?;
                }
                Ready::Hop(desk) => {
                    let What::Hop(hop) = &step.what else { continue };
                    // SAFETY: as promised by the caller.
                    let done = unsafe { job.hop(code, graph, step, hop, &self.bases, symbols, iteration, desk) };
                    done.map_err(|e| step.node.map_or(e.clone(), |n| e.at(graph, n)))?;
                }
                // SAFETY: as above.
                Ready::Other => unsafe {
                    job.step(code, graph, step, &self.bases, symbols, iteration)
                        .map_err(|e| step.node.map_or(e.clone(), |n| e.at(graph, n)))?;
                },
            }
        }
        Ok(())
    }
}

impl Ready {
    /// The views on buffers that are elsewhere now.
    ///
    /// # Safety
    /// As [`Bound::new`]; the step is the one that this was made of.
    unsafe fn rebase(&mut self, what: &What, bases: &[*mut u8]) {
        match (self, what) {
            // SAFETY: as promised by the caller.
            (Ready::Move(from, to), What::Move(places)) => unsafe {
                let places: &'static (Spot, Spot) = &*std::ptr::from_ref(&**places);
                (*from, *to) = (places.0.view(bases), places.1.view_mut(bases));
            },
            // SAFETY: as promised by the caller.
            (Ready::Kernel(ready), What::Kernel(kernel)) => unsafe {
                let kernel: &'static KernelStep = &*std::ptr::from_ref(&**kernel);
                for (arg, spec) in ready.args.iter_mut().zip(&kernel.args) {
                    match (arg, spec) {
                        (Arg::Value(v), Arg::Value(k)) => kernel.reread(*k, bases, v),
                        (Arg::Values(vs), Arg::Values(ks)) => vs
                            .iter_mut()
                            .zip(ks)
                            .filter_map(|(v, k)| Some((v.as_mut()?, (*k)?)))
                            .for_each(|(v, k)| kernel.reread(k, bases, v)),
                        _ => {}
                    }
                }
                if let Some((buffer, _)) = kernel.scratch {
                    ready.scratch.0 = bases[buffer];
                }
                for (out, write) in ready.outs.iter_mut().zip(&kernel.writes) {
                    if let Some(spot) = write {
                        *out = spot.view_mut(bases);
                    }
                }
            },
            _ => {}
        }
    }
}

impl KernelStep {
    /// # Safety
    /// As [`Spot::view`].
    unsafe fn reread(&'static self, operand: usize, bases: &[*mut u8], view: &mut View<'static>) {
        if let Some(spot) = &self.reads[operand] {
            // SAFETY: as promised by the caller.
            *view = unsafe { spot.view(bases) };
        }
    }
}

/// A step's call, with views on the memory at `bases`.
///
/// # Safety
/// The memory lives as long as what is returned.
unsafe fn ready(
    kernel: &'static KernelStep,
    bases: &[*mut u8],
    symbols: &Binding,
    node: NodeId,
    key: u32,
) -> Result<Ready> {
    let Compute::Fixed(run) = kernel.compute else { return Ok(Ready::Other) };
    if kernel.late {
        return Ok(Ready::Other);
    }
    let spare = kernel.spare()?;
    // SAFETY: as promised by the caller; the spare memory's list is kept beside the views, and never changes.
    unsafe {
        let kept: &'static [Option<RawTensor>] = &*std::ptr::from_ref(spare.as_slice());
        let (args, outs) = (kernel.operands(bases, symbols)?, kernel.targets(bases, kept)?);
        let scratch = kernel.scratch.map_or((std::ptr::null_mut(), 0), |(b, bytes)| (bases[b], bytes));
        Ok(Ready::Kernel(ReadyKernel { run, args, outs, scratch, _spare: spare, node, key }))
    }
}
