//! Sorting and search: `sort`, `argsort`, `topk`, `kthvalue`, histograms and distinct elements.
//!
//! A stable sort keeps ties in index order; `topk` returns ties as PyTorch's selection does.

mod histogram;
mod search;
mod unique;

use restride_ir::{Args, Call, DType, Layout, Meta, OpDef, OpError};
use restride_kernels::sort::{SortPick, sort, sort_room};
use smallvec::smallvec;

use crate::support::promote::name;
use crate::support::scratch::stored;
use crate::support::strides::dense_like;
use crate::support::{Metas, Result, ensure, exact, one};

fn check_type(what: &str, dtype: DType, bools: bool) -> Result<()> {
    ensure!(!dtype.is_complex(), "{what} does not support complex dtypes on CPU");
    ensure!(bools || dtype != DType::Bool, "{what} is not implemented for '{}' on CPU", name(dtype));
    Ok(())
}

/// Types of the sorted tensor and of its indices, both with the operand's dimension order.
fn sorted(a: &Args<'_, Meta>, dim: i64) -> Result<(Meta, Meta)> {
    let t = a.tensor(0)?;
    check_type("Sort", t.dtype, true)?;
    t.layout.dim(dim)?;
    let layout = dense_like(&t.layout);
    Ok((Meta::new(t.dtype, layout.clone()), Meta::new(DType::I64, layout)))
}

/// Declares a sorting operator; overloads differ in the positions of the dimension and of `descending`.
macro_rules! sorts {
    ($($infer:ident, $run:ident, $infer_arg:ident, $run_arg:ident, $scratch:ident: $dim:literal, $descending:literal;)*) => {$(
        fn $scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
            let t = a.tensor(0)?;
            let pick = SortPick::All { descending: a.bool($descending)? };
            Ok(sort_room(stored(t), t.layout.dim(a.int($dim)?)?, pick, outs.len() > 1, true))
        }
        fn $infer(a: &Args<'_, Meta>) -> Metas {
            let (values, indices) = sorted(a, a.int($dim)?)?;
            Ok(smallvec![values, indices])
        }
        fn $run(c: &Call<'_>) -> Result<()> {
            let t = c.args.tensor(0)?;
            let pick = SortPick::All { descending: c.args.bool($descending)? };
            sort(t, t.layout().dim(c.args.int($dim)?)?, pick, Some(&c.outs[0]), Some(&c.outs[1])).map_err(OpError::new)
        }
        fn $infer_arg(a: &Args<'_, Meta>) -> Metas {
            one(sorted(a, a.int($dim)?)?.1)
        }
        fn $run_arg(c: &Call<'_>) -> Result<()> {
            let t = c.args.tensor(0)?;
            let pick = SortPick::All { descending: c.args.bool($descending)? };
            sort(t, t.layout().dim(c.args.int($dim)?)?, pick, None, Some(&c.outs[0])).map_err(OpError::new)
        }
    )*};
}
sorts! {
    infer_sort, run_sort, infer_argsort, run_argsort, room: 1, 2;
    infer_stable, run_stable, infer_argstable, run_argstable, stable_scratch: 2, 3;
}

fn infer_msort(a: &Args<'_, Meta>) -> Metas {
    one(sorted(a, 0)?.0)
}
fn run_msort(c: &Call<'_>) -> Result<()> {
    sort(c.args.tensor(0)?, 0, SortPick::All { descending: false }, Some(&c.outs[0]), None).map_err(OpError::new)
}

fn msort_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    Ok(sort_room(stored(a.tensor(0)?), 0, SortPick::All { descending: false }, true, false))
}

fn infer_topk(a: &Args<'_, Meta>) -> Metas {
    let (t, k) = (a.tensor(0)?, a.int(1)?);
    check_type("topk", t.dtype, false)?;
    let d = t.layout.dim(a.int(2)?)?;
    let n = t.sizes().get(d).copied().unwrap_or(1);
    ensure!((0..=n).contains(&k), "selected index k out of range");
    let mut sizes = t.layout.sizes.clone();
    if let Some(size) = sizes.get_mut(d) {
        *size = k;
    }
    Ok(smallvec![Meta::contiguous(t.dtype, &sizes), Meta::contiguous(DType::I64, &sizes)])
}
fn top<V>(a: &Args<'_, V>, layout: &Layout) -> Result<(usize, SortPick)> {
    let (k, d) = (a.int(1)?, layout.dim(a.int(2)?)?);
    // A 0-d tensor returns its element even for k = 0.
    let k = if layout.rank() == 0 { 1 } else { k as usize };
    Ok((d, SortPick::Top { k, largest: a.bool(3)?, sorted: a.bool(4)? }))
}
fn run_topk(c: &Call<'_>) -> Result<()> {
    let t = c.args.tensor(0)?;
    let (d, pick) = top(&c.args, t.layout())?;
    sort(t, d, pick, Some(&c.outs[0]), Some(&c.outs[1])).map_err(OpError::new)
}
fn topk_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let t = a.tensor(0)?;
    let (d, pick) = top(a, &t.layout)?;
    Ok(sort_room(stored(t), d, pick, true, true))
}

fn infer_kth(a: &Args<'_, Meta>) -> Metas {
    let (t, k, keep) = (a.tensor(0)?, a.int(1)?, a.bool(3)?);
    ensure!(
        !t.dtype.is_complex() && t.dtype != DType::Bool,
        "\"kthvalue_cpu\" not implemented for '{}'",
        name(t.dtype)
    );
    let d = t.layout.dim(a.int(2)?)?;
    let mut sizes = t.layout.sizes.clone();
    let n = sizes.get(d).copied().unwrap_or(1);
    ensure!(n > 0, "kthvalue(): Expected reduction dim {d} to have non-zero size.");
    ensure!((1..=n).contains(&k), "kthvalue(): selected number k out of range for dimension {d}");
    if d < sizes.len() {
        if keep {
            sizes[d] = 1;
        } else {
            sizes.remove(d);
        }
    }
    Ok(smallvec![Meta::contiguous(t.dtype, &sizes), Meta::contiguous(DType::I64, &sizes)])
}
fn run_kth(c: &Call<'_>) -> Result<()> {
    let t = c.args.tensor(0)?;
    if c.outs[0].numel() == 0 {
        return Ok(());
    }
    let (k, d) = (c.args.int(1)?, t.layout().dim(c.args.int(2)?)?);
    sort(t, d, SortPick::Kth(k as usize - 1), Some(&c.outs[0]), Some(&c.outs[1])).map_err(OpError::new)
}

fn kth_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let (t, k) = (a.tensor(0)?, a.int(1)?);
    Ok(sort_room(stored(t), t.layout.dim(a.int(2)?)?, SortPick::Kth(k.max(1) as usize - 1), true, true))
}

pub(crate) static OPS: &[OpDef] = table![
    exact("sort", infer_sort, run_sort, room, samples!(s_sort)),
    exact("sort.stable", infer_stable, run_stable, stable_scratch, samples!(s_stable)),
    exact("argsort", infer_argsort, run_argsort, room, samples!(s_sort)),
    exact("argsort.stable", infer_argstable, run_argstable, stable_scratch, samples!(s_argstable)),
    exact("msort", infer_msort, run_msort, msort_scratch, samples!(s_msort)),
    exact("topk", infer_topk, run_topk, topk_scratch, samples!(s_topk)),
    exact("kthvalue", infer_kth, run_kth, kth_scratch, samples!(s_kth)),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[histogram::OPS, OPS, unique::OPS, search::OPS], gradients: &[], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    /// Sample tensors without ties.
    pub(crate) fn operands() -> Vec<restride_tensor::RawTensor> {
        vec![
            transposed(F, &[4, 5, 3], 1),
            strided(DType::F64, &[4, 3], 1),
            tensor(DType::F16, &[2, 7], 3),
            tensor(F, &[], 1),
            tensor(F, &[0, 3], 1),
        ]
    }

    pub(crate) fn s_sort() -> Vec<Sample> {
        let mut all = Vec::new();
        for t in operands() {
            all.push(sample![&t]);
            all.push(sample![&t, 0, true]);
        }
        all.push(sample![tensor(DType::C64, &[3], 1)]);
        all.push(sample![tensor(F, &[3], 1), 1]);
        all
    }

    pub(crate) fn s_stable() -> Vec<Sample> {
        let mut all = Vec::new();
        let ties = [expanded(F, &[4, 3], 1), tensor(DType::Bool, &[9], 1), strided(DType::I8, &[4, 9], 1)];
        for t in operands().into_iter().chain(ties) {
            all.push(sample![&t, true]);
            all.push(sample![&t, true, 0, true]);
            all.push(sample![&t, (), -1, false]);
        }
        // An unstable sort orders ties as PyTorch's implementation happens to.
        all.retain(|s| !matches!((&s.args[0], &s.args[1]), (restride_ir::Arg::Value(t), restride_ir::Arg::None) if !t.dtype().is_float() || t.layout().strides.contains(&0)));
        all.push(sample![tensor(DType::C64, &[3], 1), true]);
        all
    }

    pub(crate) fn s_argstable() -> Vec<Sample> {
        let mut all = s_stable();
        all.retain(|s| !matches!(s.args[1], restride_ir::Arg::None));
        all
    }

    pub(crate) fn s_msort() -> Vec<Sample> {
        operands().iter().map(|t| sample![t]).collect()
    }

    pub(crate) fn s_topk() -> Vec<Sample> {
        vec![
            sample![transposed(F, &[4, 5, 3], 1), 2],
            sample![transposed(F, &[4, 5, 3], 1), 2, 1, false],
            sample![strided(DType::F64, &[4, 3], 1), 4, 0],
            sample![tensor(DType::BF16, &[2, 5], 1), 0],
            sample![tensor(F, &[], 1), 1],
            sample![tensor(F, &[0, 3], 1), 2],
            sample![restride_tensor::RawTensor::from_slice(&[5i32, -1, 7, 3], &[4]), 3],
            sample![tensor(F, &[4], 1), 5],
            sample![tensor(F, &[4], 1), -1],
            sample![tensor(DType::Bool, &[4], 1), 1],
            sample![tensor(DType::C64, &[4], 1), 1],
        ]
    }

    pub(crate) fn s_kth() -> Vec<Sample> {
        vec![
            sample![transposed(F, &[4, 5, 3], 1), 2],
            sample![transposed(F, &[4, 5, 3], 1), 5, 1, true],
            sample![strided(DType::F64, &[4, 3], 1), 4, 0],
            sample![tensor(F, &[], 1), 1],
            sample![tensor(F, &[0, 3], 1), 2],
            sample![tensor(F, &[0, 3], 1), 1, 0],
            sample![restride_tensor::RawTensor::from_slice(&[5i64, -1, 7, 3], &[4]), 3],
            sample![tensor(F, &[4], 1), 5],
            sample![tensor(F, &[4], 1), 0],
            sample![tensor(DType::Bool, &[4], 1), 1],
        ]
    }
}
