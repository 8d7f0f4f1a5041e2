//! Calls of kernels: bound to memory ahead, or made when they run.

use super::{BoundKernel, BoundWork, Mode, number, with_scratch};
use crate::collective::carry_out;
use crate::copy::allocate;
use crate::inputs::RunValue;
use crate::interp::{RunOptions, call_once};
use crate::run::code::{DescribeFn, KernelStep, NodeCode, fit, inferred};
use crate::symbols::learn_number;
use restride_ir::{
    Arg, Args, Binding, Call, Error, ErrorKind, Exchange, Graph, Meta, NodeId, OpError, Result, Scalar, Type,
};
use restride_kernels::support::convert::copy_convert;
use restride_tensor::{Fitted, Layout, RawTensor, View, ViewMut};

impl KernelStep {
    /// The call with views on the memory at `bases`, and at `spare` for results without a place; `None` where it is resolved
    /// when it runs.
    ///
    /// # Safety
    /// `bases` are the addresses of the code's buffers, `spare` has the code's spare bytes. Both are valid while the views
    /// are used.
    pub(super) unsafe fn bind<'c>(
        &'c self,
        bases: &[*mut u8],
        spare: *mut u8,
        symbols: &Binding,
        key: u32,
    ) -> Result<Option<BoundKernel<'c>>> {
        if self.late {
            return Ok(None);
        }
        let work = match self.compute {
            NodeCode::Fixed(run) => BoundWork::Kernel(run),
            NodeCode::Collective(describe) => BoundWork::Exchange(self.exchange(describe, symbols)?, self.starts),
            _ => return Ok(None),
        };
        // SAFETY: as promised by the caller.
        let args = unsafe { self.operands(bases, symbols)? };
        let mut outs = Vec::with_capacity(self.writes.len());
        for (write, unplaced) in self.writes.iter().zip(&self.unplaced) {
            outs.push(match (write, unplaced) {
                // SAFETY: as promised by the caller.
                (Some(place), _) => unsafe { place.view_mut(bases) },
                // SAFETY: as promised by the caller; the code gave the result these bytes of the spare memory.
                (None, Some((at, meta))) => unsafe {
                    ViewMut::from_raw(spare.wrapping_add(*at), meta.dtype, &meta.layout)
                },
                (None, None) => return Err(Error::invalid("a result without a place")),
            });
        }
        let scratch = self.scratch.map_or((std::ptr::null_mut(), 0), |(b, bytes)| (bases[b], bytes));
        Ok(Some(BoundKernel { work, args, outs, scratch, key }))
    }

    /// The exchange of a collective.
    fn exchange(&self, describe: DescribeFn, symbols: &Binding) -> Result<Exchange> {
        let meta = |k: &usize| match &self.reads[*k] {
            Some(place) => Ok(Meta { dtype: place.dtype, layout: place.layout.clone() }),
            None => Err(Error::invalid("a number stands for a tensor")),
        };
        let args: Vec<Arg<Meta, Scalar>> =
            self.args.iter().map(|a| a.try_map(meta, |e| number(e, symbols))).collect::<Result<_>>()?;
        Ok(describe(&Args(&args))?)
    }

    /// The arguments of a call.
    ///
    /// # Safety
    /// As [`KernelStep::bind`].
    unsafe fn operands<'c>(&'c self, bases: &[*mut u8], symbols: &Binding) -> Result<Vec<Arg<View<'c>, Scalar>>> {
        let view = |k: &usize| match &self.reads[*k] {
            // SAFETY: as promised by the caller.
            Some(place) => Ok(unsafe { place.view(bases) }),
            None => Err(Error::invalid("a number stands for a tensor")),
        };
        self.args.iter().map(|a| a.try_map(view, |e| number(e, symbols))).collect()
    }

    /// Runs a call whose numbers or results were not known when the steps were bound.
    ///
    /// # Safety
    /// As [`KernelStep::bind`].
    pub(super) unsafe fn run_late(
        &self,
        graph: &Graph,
        node: NodeId,
        bases: &[*mut u8],
        mode: Mode,
        symbols: &mut Binding,
        iteration: u64,
    ) -> Result<()> {
        let node = &graph.nodes[node];
        // SAFETY: as promised by the caller.
        let args = unsafe { self.operands(bases, symbols)? };
        let ctx = mode.ctx(node.origin.key, iteration);
        let call = |outs| {
            // SAFETY: the code, or the check below, holds types against the shape rule; where places may meet, a checker saw to it.
            let fitted = unsafe { Fitted::promise() };
            Call { args: Args(&args), outs, ctx: &ctx, fitted }
        };
        match self.compute {
            NodeCode::Fixed(run) => {
                let metas = inferred(self.op, &self.args, &self.types, &|e| number(e, symbols))?;
                fit(&metas, &self.writes)?;
                let writes = self.writes.iter().map(Option::as_ref);
                // SAFETY: as promised by the caller.
                let outs: Option<Vec<ViewMut<'_>>> = writes.map(|w| Some(unsafe { w?.view_mut(bases) })).collect();
                let outs = outs.ok_or_else(|| Error::invalid("a result without a place"))?;
                let (at, bytes) = self.scratch.map_or((std::ptr::null_mut(), 0), |(b, bytes)| (bases[b], bytes));
                // SAFETY: the step's own part of the arena.
                unsafe { with_scratch(at, bytes, || run(&call(&outs)))? };
            }
            NodeCode::Collective(describe) => {
                let metas = inferred(self.op, &self.args, &self.types, &|e| number(e, symbols))?;
                fit(&metas, &self.writes)?;
                let exchange = self.exchange(describe, symbols)?;
                let write = self.writes.first().and_then(Option::as_ref);
                let write = write.ok_or_else(|| Error::invalid("a result without a place"))?;
                // SAFETY: as promised by the caller.
                carry_out(&exchange, *Args(&args).tensor(0)?, &unsafe { write.view_mut(bases) })?;
            }
            // SAFETY: as promised by the caller.
            NodeCode::Dynamic(run) => unsafe { self.store(&run(&call(&[]))?, bases)? },
            NodeCode::Composed => {
                let own = |v: &View<'_>| {
                    let t = allocate(v.dtype(), Layout::contiguous(v.sizes()))?;
                    copy_convert(*v, &t.write().view_mut());
                    Ok::<_, OpError>(RunValue::Tensor(t))
                };
                let args: Vec<Arg<RunValue, Scalar>> =
                    args.iter().map(|a| a.try_map(own, |s| Ok(*s))).collect::<Result<_, OpError>>()?;
                let results = call_once(self.op, &args, ctx.rng, &RunOptions::of(mode.ctx))?;
                let results: Vec<RawTensor> = results.iter().filter_map(|r| r.tensor().cloned()).collect();
                // SAFETY: as promised by the caller.
                unsafe { self.store(&results, bases)? };
            }
            NodeCode::Scalar(run) => {
                let value = run(&call(&[]))?;
                if let Some(Type::Scalar(expr)) = node.results.first().map(|r| &graph.values[*r].ty) {
                    let broken = |why| Error::new(ErrorKind::Program, format!("the number {why}"));
                    learn_number(expr, value, symbols).map_err(broken)?;
                }
            }
        }
        Ok(())
    }

    /// Copies results that a call made in memory of its own to their places.
    ///
    /// # Safety
    /// As [`KernelStep::bind`].
    unsafe fn store(&self, results: &[RawTensor], bases: &[*mut u8]) -> Result<()> {
        if results.len() != self.writes.len() {
            return Err(Error::invalid(format!("{} gives {} results", self.op, results.len())));
        }
        for (t, write) in results.iter().zip(&self.writes) {
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
}
