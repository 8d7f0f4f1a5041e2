//! No kernel takes memory of its own while it computes, beside the scratch that its operator declares.
//! `RESTRIDE_SHOW=1` shows what each call declares and takes where that differs much.

#[path = "../examples/dump_samples/run.rs"]
#[allow(dead_code)]
mod run;

use restride_ir::{Args, Ctx, Kernel, TensorType};
use restride_kernels::support::scratch::{self, ALIGN};
use restride_tensor::{Layout, RawTensor};
use run::{Outcome, call, filled, fitted, meta, on_views, resolved};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::collections::BTreeSet;
use std::mem::MaybeUninit;

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// All elements' bytes in logical order, through a copy on memory of its own.
fn bytes(t: &RawTensor) -> Vec<u8> {
    let own = RawTensor::zeros(t.dtype(), Layout::contiguous(&t.layout().sizes));
    restride_kernels::support::convert::copy_convert(t.read().view(), &own.write().view_mut());
    own.storage().to_vec()
}

#[test]
fn kernels_allocate_nothing() {
    let mut found = BTreeSet::new();
    let mut calls = 0;
    for &op in restride_ops::ops() {
        let (Kernel::Fixed(kernel), Some(samples)) = (op.def().kernel, op.def().samples) else { continue };
        for sample in samples() {
            let Ok(args) = filled(op, &sample.args) else { continue };
            let metas: Vec<_> = args.iter().map(|a| a.map_values(meta)).collect();
            if op.def().composed.is_some_and(|f| f(&Args(&metas))) {
                continue;
            }
            let Ok(Outcome::Tensors(outs)) = call(op, &args) else { continue };
            let own: Vec<_> = args.iter().map(|a| a.map_values(resolved)).collect();
            let ctx = Ctx { threads: 1, ..Ctx::default() };
            if op.def().view.is_some() || on_views(&own, &outs, |args, to| kernel(&fitted(args, to, &ctx))).is_err() {
                continue;
            }
            let types: Vec<_> = outs.iter().map(|t| TensorType::new(t.dtype(), t.layout().clone())).collect();
            let placed: Vec<_> = own.iter().map(|a| a.map_values(|t: &RawTensor| meta(t))).collect();
            let declared = op.def().scratch.map_or(0, |f| f(&Args(&placed), &types).expect("what it takes"));
            // Spoilt, and beginning where the arena's parts do.
            let mut memory = vec![MaybeUninit::new(0xFFu8); declared + ALIGN];
            let start = memory.as_ptr().align_offset(ALIGN);
            let before: Vec<Vec<u8>> = outs.iter().map(bytes).collect();
            // The second call finds what is made once in a thread.
            let (done, taken, change) = on_views(&own, &outs, |args, to| {
                let call = fitted(args, to, &ctx);
                let region = Region::new(GLOBAL);
                let (done, taken) =
                    scratch::taken(|| scratch::with(&mut memory[start..start + declared], || kernel(&call)));
                (done, taken, region.change())
            });
            assert!(done.is_ok(), "{op} does not give twice what it gave");
            if !op.def().random {
                assert!(before == outs.iter().map(bytes).collect::<Vec<_>>(), "{op} depends on scratch");
            }
            let allocated = change.allocations + change.reallocations;
            let odd = allocated > 0 || taken > declared || declared > 2 * taken + 1024;
            if std::env::var_os("RESTRIDE_SHOW").is_some() && odd {
                eprintln!("{op}: declares {declared} bytes, takes {taken} and allocates {allocated} times: {metas:?}");
            }
            calls += 1;
            if allocated > 0 {
                found.insert(op.name().to_string());
            }
        }
    }
    assert!(calls > 3000, "only {calls} sample calls");
    assert!(found.is_empty(), "kernels that allocate: {found:?}");
}
