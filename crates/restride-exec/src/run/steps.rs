//! Carrying out the steps of a graph.

use super::RunCtx;
use super::code::{Code, CodeStep, Compute, KernelStep, Root, What, fit, inferred};
use super::hops::Desk;
use crate::copy::allocate;
use crate::inputs::RunValue;
use crate::interp::{Options, call_once};
use crate::symbols::{Unified, unify};
use restride_ir::{
    Arg, Args, Binding, Call, Ctx, Error, ErrorKind, Expr, Graph, OpError, Program, Result, RngKey, Scalar, Type,
};
use restride_kernels::support::convert::copy_convert;
use restride_kernels::support::scratch;
use restride_tensor::{Fitted, Layout, RawTensor, View, ViewMut};
use std::mem::MaybeUninit;

/// What a graph input is at a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    /// Memory from this address on.
    Memory(*mut u8),
    /// A number, or something that is only passed on.
    Nothing,
}

/// One run.
pub(super) struct Job<'r> {
    pub program: &'r Program,
    pub ctx: RunCtx,
    pub poison: bool,
}

/// Makes an expression agree with the number that it turned out to be.
pub(super) fn meet(expr: &Expr, value: Scalar, symbols: &mut Binding) -> Result<(), OpError> {
    match unify(expr, value, symbols) {
        Unified::Differs(want) if !expr.is_float() => {
            Err(OpError::new(format!("is {value} and was declared as {expr} = {want}")))
        }
        Unified::OutOfRange(why) => Err(OpError::new(format!("is {value}: {why}"))),
        _ => Ok(()),
    }
}

pub(super) fn number(e: &Expr, symbols: &Binding) -> Result<Scalar> {
    match e.constant() {
        Some(s) => Ok(s),
        None => e.eval(symbols).map_err(|why| Error::invalid(format!("{e}: {why}"))),
    }
}

impl Code {
    /// The address of each buffer.
    pub fn bases(&self, arena: *mut u8, inputs: &[Entry], outputs: &[*mut u8]) -> Result<Vec<*mut u8>> {
        let mut bases: Vec<*mut u8> = Vec::with_capacity(self.roots.len());
        self.bases_into(arena, inputs, outputs, &mut bases)?;
        Ok(bases)
    }

    /// The same in a list that there is.
    pub fn bases_into(
        &self,
        arena: *mut u8,
        inputs: &[Entry],
        outputs: &[*mut u8],
        bases: &mut Vec<*mut u8>,
    ) -> Result<()> {
        let aligned = |address: *mut u8, to: usize| {
            if (address as usize).is_multiple_of(to) {
                return Ok(address);
            }
            Err(Error::unsupported(format!("memory that is not aligned to {to} bytes is viewed as larger elements")))
        };
        bases.clear();
        for root in &self.roots {
            bases.push(match *root {
                Root::Arena { offset, .. } => arena.wrapping_add(offset),
                Root::Input(i) => match inputs[i] {
                    Entry::Memory(address) => aligned(address, self.inputs[i].as_ref().map_or(1, |m| m.align))?,
                    Entry::Nothing => return Err(Error::invalid("a tensor input is given no memory")),
                },
                Root::Output(i) => aligned(outputs[i], self.output_align[i])?,
                Root::Idle => std::ptr::null_mut(),
            });
        }
        Ok(())
    }
}

impl KernelStep {
    /// The arguments of a call.
    ///
    /// # Safety
    /// `bases` are the addresses of the buffers that the step was made for, valid while the views are used.
    pub unsafe fn operands<'a>(&'a self, bases: &[*mut u8], symbols: &Binding) -> Result<Vec<Arg<View<'a>, Scalar>>> {
        let mut args = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            args.push(arg.try_map(
                |k| match &self.reads[*k] {
                    // SAFETY: as promised by the caller.
                    Some(spot) => Ok(unsafe { spot.view(bases) }),
                    None => Err(Error::invalid("a number stands for a tensor")),
                },
                |e| number(e, symbols),
            )?);
        }
        Ok(args)
    }

    /// Memory for the results that have no place.
    pub fn spare(&self) -> Result<Vec<Option<RawTensor>>, OpError> {
        self.unplaced.iter().map(|m| m.as_ref().map(|m| allocate(m.dtype, m.layout.clone())).transpose()).collect()
    }

    /// Where a call's results go: to their places, and to spare memory.
    ///
    /// # Safety
    /// As [`KernelStep::operands`].
    pub unsafe fn targets<'a>(&'a self, bases: &[*mut u8], spare: &'a [Option<RawTensor>]) -> Result<Vec<ViewMut<'a>>> {
        let mut outs = Vec::with_capacity(self.writes.len());
        for (write, spare) in self.writes.iter().zip(spare) {
            match (write, spare) {
                // SAFETY: as promised by the caller.
                (Some(w), _) => outs.push(unsafe { w.view_mut(bases) }),
                (None, Some(t)) => {
                    // SAFETY: the spare memory is the step's own.
                    outs.push(unsafe { ViewMut::from_raw(t.storage().address(), t.dtype(), t.layout()) })
                }
                (None, None) => return Err(Error::invalid("a result without a place")),
            }
        }
        Ok(outs)
    }
}

impl Job<'_> {
    /// Runs the steps of a graph.
    ///
    /// # Safety
    /// `arena` has the bytes of the plan that the code was made with. Each input and output that has a buffer is at an
    /// address from which on the memory is valid as far as the code uses it (`CallerMemory::used` for inputs, the
    /// border layout for outputs), inputs for writing where `written` says so. Nobody else uses that memory meanwhile.
    pub unsafe fn code(
        &self,
        code: &Code,
        arena: *mut u8,
        inputs: &[Entry],
        outputs: &[*mut u8],
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<()> {
        let graph = &self.program.graphs[code.graph];
        let bases = code.bases(arena, inputs, outputs)?;
        for (at, step) in code.steps.iter().enumerate() {
            if self.poison {
                // SAFETY: these are parts of the arena; a buffer holds nothing before its first use.
                unsafe { spoil(code, &bases, &code.births[at]) };
            }
            // SAFETY: all places were proved to be inside of their buffers when the code was made.
            let done = unsafe { self.step(code, graph, step, &bases, symbols, iteration) };
            done.map_err(|e| step.node.map_or(e.clone(), |n| e.at(graph, n)))?;
            if self.poison {
                // SAFETY: as above; nor does it after its last.
                unsafe { spoil(code, &bases, &code.deaths[at]) };
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`Job::code`], `bases` being the addresses of its buffers.
    pub unsafe fn step(
        &self,
        code: &Code,
        graph: &Graph,
        step: &CodeStep,
        bases: &[*mut u8],
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<()> {
        match &step.what {
            What::Nothing => Ok(()),
            What::Move(places) => {
                let (from, to) = &**places;
                // SAFETY: as promised by the caller. Moves do not overlap but cell for cell (the checker's business);
                // the copy goes through raw pointers, so that even then it only gives wrong values.
                unsafe { copy_convert(from.view(bases), &to.view_mut(bases)) };
                Ok(())
            }
            // SAFETY: as promised by the caller.
            What::Kernel(kernel) => unsafe { self.kernel(graph, step, kernel, bases, symbols, iteration) },
            // SAFETY: as promised by the caller.
            What::Hop(hop) => unsafe {
                self.hop(code, graph, step, hop, bases, symbols, iteration, &mut Desk::default())
            },
        }
    }

    /// # Safety
    /// As [`Job::step`].
    unsafe fn kernel(
        &self,
        graph: &Graph,
        step: &CodeStep,
        kernel: &KernelStep,
        bases: &[*mut u8],
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<()> {
        let node = &graph.nodes[step.node.expect("a kernel is of a node")];
        // SAFETY: as promised by the caller.
        let args = unsafe { kernel.operands(bases, symbols)? };
        let rng = RngKey { seed: self.ctx.seed, call: self.ctx.call, node: node.origin.key, iteration };
        let ctx = Ctx { rng, threads: self.ctx.threads.max(1) };
        // SAFETY: the code holds declared types against the shape rule; where places may meet, a checker saw to it.
        let fitted = || unsafe { Fitted::promise() };
        match kernel.compute {
            Compute::Fixed(run) => {
                if kernel.late {
                    let metas = inferred(kernel.op, &kernel.args, &kernel.types, &|e| number(e, symbols))?;
                    fit(&metas, &kernel.writes)?;
                }
                let spare = kernel.spare()?;
                // SAFETY: as promised by the caller.
                let outs = unsafe { kernel.targets(bases, &spare)? };
                let call = Call { args: Args(&args), outs: &outs, ctx: &ctx, fitted: fitted() };
                let (at, bytes) = kernel.scratch.map_or((std::ptr::null_mut(), 0), |(b, bytes)| (bases[b], bytes));
                // SAFETY: as promised by the caller: the step's own part of the arena.
                unsafe { with_scratch(at, bytes, || run(&call))? };
            }
            Compute::Dynamic(run) => {
                let results = run(&Call { args: Args(&args), outs: &[], ctx: &ctx, fitted: fitted() })?;
                // SAFETY: as promised by the caller.
                unsafe { bring(&results, kernel, bases)? };
            }
            Compute::Composed => {
                let own = |v: &View<'_>| {
                    let t = allocate(v.dtype(), Layout::contiguous(v.sizes()))?;
                    copy_convert(*v, &t.write().view_mut());
                    Ok::<_, OpError>(RunValue::Tensor(t))
                };
                let args: Vec<Arg<RunValue, Scalar>> =
                    args.iter().map(|a| a.try_map(own, |s| Ok(*s))).collect::<Result<_, OpError>>()?;
                let options =
                    Options { seed: self.ctx.seed, call: self.ctx.call, threads: self.ctx.threads, strict: false };
                let results = call_once(kernel.op, &args, rng, &options)?;
                let results: Vec<RawTensor> = results.iter().filter_map(|r| r.tensor().cloned()).collect();
                // SAFETY: as promised by the caller.
                unsafe { bring(&results, kernel, bases)? };
            }
            Compute::Scalar(run) => {
                let value = run(&Call { args: Args(&args), outs: &[], ctx: &ctx, fitted: fitted() })?;
                if let Some(Type::Scalar(expr)) = node.results.first().map(|r| &graph.values[*r].ty) {
                    let broken = |e: OpError| Error::new(ErrorKind::Program, format!("the number {e}"));
                    meet(expr, value, symbols).map_err(broken)?;
                }
            }
        }
        Ok(())
    }
}

/// Calls a kernel with the working memory that it is given, if it is.
///
/// # Safety
/// There are so many bytes, which nobody else uses meanwhile.
pub(super) unsafe fn with_scratch<R>(at: *mut u8, bytes: usize, call: impl FnOnce() -> R) -> R {
    if bytes == 0 {
        return call();
    }
    // SAFETY: as promised by the caller.
    let memory = unsafe { std::slice::from_raw_parts_mut(at.cast::<MaybeUninit<u8>>(), bytes) };
    scratch::with(memory, call)
}

/// Copies what a call made in memory of its own to where it belongs.
///
/// # Safety
/// `bases` are the addresses of the buffers that the step was made for.
unsafe fn bring(results: &[RawTensor], kernel: &KernelStep, bases: &[*mut u8]) -> Result<()> {
    if results.len() != kernel.writes.len() {
        return Err(Error::invalid(format!("{} gives {} results", kernel.op, results.len())));
    }
    for (t, write) in results.iter().zip(&kernel.writes) {
        let Some(w) = write else { continue };
        if t.dtype() != w.dtype || t.layout().sizes != w.layout.sizes {
            let (have, want) = (&t.layout().sizes[..], &w.layout.sizes[..]);
            return Err(Error::new(ErrorKind::Program, format!("it gives {have:?} where {want:?} is declared")));
        }
        // SAFETY: as promised by the caller; the tensor is on memory of its own.
        copy_convert(t.read().view(), &unsafe { w.view_mut(bases) });
    }
    Ok(())
}

/// # Safety
/// `bases` are the addresses of the code's buffers, whose memory may be written.
unsafe fn spoil(code: &Code, bases: &[*mut u8], parts: &[(usize, std::ops::Range<usize>)]) {
    for (b, part) in parts {
        if let Root::Arena { bytes, .. } = code.roots[*b] {
            let part = part.start.min(bytes)..part.end.min(bytes);
            // SAFETY: as promised by the caller; the part is inside of the buffer.
            unsafe { bases[*b].add(part.start).write_bytes(0xFF, part.len()) };
        }
    }
}
