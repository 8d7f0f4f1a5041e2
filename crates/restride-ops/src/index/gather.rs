//! Indexed reads: along a dimension (`gather`, `take_along_dim`) and flat (`take`).

use crate::index::scatter::{flat, has_elements, is_index, nonempty};
use crate::support::promote::name;
use crate::support::scratch::stored;
use crate::support::strides::broadcast_sizes;
use crate::support::{Metas, Result, ensure, exact, fail, fresh, one};
use restride_ir::{Args, Call, DType, Dims, Meta, OpDef, OpError};
use restride_kernels::index::scatter::{Outside, gather, gather_room, index_room};
use restride_kernels::index::{first_outside, take_flat, take_flat_room};
use restride_kernels::movement::copy;
use restride_kernels::support::convert::gather as values_of;

fn infer_gather(a: &Args<'_, Meta>) -> Metas {
    let (t, index) = (a.tensor(0)?, a.tensor(2)?);
    let d = t.layout.dim(a.int(1)?)?;
    if has_elements(index) {
        ensure!(is_index(index.dtype), "gather(): Expected dtype int32/int64 for index");
        let (own, at) = (nonempty(t.sizes()), nonempty(index.sizes()));
        ensure!(own.len() == at.len(), "Index tensor must have the same number of dimensions as input tensor");
        for (i, (n, m)) in own.iter().zip(at).enumerate() {
            ensure!(
                i == d || m <= n,
                "Size does not match at dimension {i} expected index {:?} to be no larger than self {:?} apart from \
                 dimension {d}",
                index.sizes(),
                t.sizes()
            );
        }
    }
    one(fresh(t.dtype, index.sizes()))
}
fn run_gather(c: &Call<'_>) -> Result<()> {
    let (t, index, out) = (c.args.tensor(0)?, c.args.tensor(2)?, &c.outs[0]);
    if out.numel() == 0 {
        return Ok(());
    }
    gather(t, t.layout().dim(c.args.int(1)?)?, index, Outside::Refused, out).map_err(OpError::new)
}
fn gather_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    Ok(index_room(stored(a.tensor(2)?)))
}

fn infer_take(a: &Args<'_, Meta>) -> Metas {
    let (t, index) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(index.dtype == DType::I64, "take(): Expected a long tensor for index, but got {}", name(index.dtype));
    ensure!(has_elements(t) || !has_elements(index), "take(): tried to take from an empty tensor");
    one(fresh(t.dtype, index.sizes()))
}
fn run_take(c: &Call<'_>) -> Result<()> {
    let t = c.args.tensor(0)?;
    take_flat(t, &flat(c.args.tensor(1)?, t.numel() as i64)?, &c.outs[0]).map_err(OpError::new)
}
fn take_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let n = a.tensor(1)?.layout.numel();
    Ok(gather_room(n) + take_flat_room(n))
}

/// Sizes of operand and indices, broadcast in all dimensions but `d`.
fn along_sizes(t: &[i64], index: &[i64], d: usize) -> Result<(Dims<i64>, Dims<i64>)> {
    let set = |sizes: &[i64], n: i64| {
        let mut out = Dims::<i64>::from_slice(sizes);
        out[d] = n;
        out
    };
    let wide = broadcast_sizes(&[&set(t, index[d]), index])?;
    Ok((set(&broadcast_sizes(&[t, &set(index, t[d])])?, t[d]), wide))
}
fn infer_along(a: &Args<'_, Meta>) -> Metas {
    let (t, index) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(
        index.dtype == DType::I64,
        "torch.take_along_dim(): dtype of indices should be Long but got {}",
        name(index.dtype)
    );
    let Some(dim) = a.opt_int(2)? else {
        for m in [t, index] {
            ensure!(
                m.layout.view(&[m.layout.numel()]).is_some(),
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across \
                 two contiguous subspaces). Use .reshape(...) instead."
            );
        }
        return one(fresh(t.dtype, &[index.layout.numel()]));
    };
    ensure!(
        t.rank() == index.rank(),
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions \
         for input, and {} dimensions for indices",
        t.rank(),
        index.rank()
    );
    let d = t.layout.dim(dim)?;
    if t.rank() == 0 {
        return one(fresh(t.dtype, &[]));
    }
    one(fresh(t.dtype, &along_sizes(t.sizes(), index.sizes(), d)?.1))
}
fn run_along(c: &Call<'_>) -> Result<()> {
    let (t, index, out) = (c.args.tensor(0)?, c.args.tensor(1)?, &c.outs[0]);
    if out.numel() == 0 {
        return Ok(());
    }
    ensure!(t.numel() > 0, "index is out of bounds for dimension with size 0");
    let Some(dim) = c.args.opt_int(2)? else {
        let (at, n) = (values_of::<i64>(*index), t.numel() as i64);
        if let Some(i) = first_outside(&at, 0..n) {
            return fail(format!("index {i} is out of bounds for dimension 0 with size {n}"));
        }
        return take_flat(t, &at, out).map_err(OpError::new);
    };
    if t.sizes().is_empty() {
        return gather(t, 0, index, Outside::Wrapped, out).map_err(OpError::new);
    }
    let d = t.layout().dim(dim)?;
    let (from, to) = along_sizes(t.sizes(), index.sizes(), d)?;
    // PyTorch wraps indices along a dimension modulo its size, but not flat indices.
    let all =
        copy::expanded(t, &from, |t| copy::expanded(index, &to, |index| gather(t, d, index, Outside::Wrapped, out)));
    all.map_err(OpError::new)
}
fn along_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let n = outs[0].layout.numel();
    Ok(gather_room(n) + if a.is_none(2) { take_flat_room(n) } else { 0 })
}

pub(crate) static OPS: &[OpDef] = table![
    exact("gather", infer_gather, run_gather, gather_scratch, samples!(s_gather)).failing(),
    exact("take", infer_take, run_take, take_scratch, samples!(s_take)).failing(),
    exact("take_along_dim", infer_along, run_along, along_scratch, samples!(s_along)).failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use crate::index::scatter::samples::{F, index, odd_index, p};
    pub(super) use crate::support::samples::*;

    pub(crate) fn s_gather() -> Vec<Sample> {
        vec![
            sample![p(), 1, odd_index(&[3, 2, 3], 5, 2)],
            sample![strided(DType::C64, &[4, 3], 1), 0, index(&[7, 2], 4, 2)],
            sample![expanded(DType::Bool, &[4, 3], 1), -1, index(&[4, 4], 3, 2)],
            sample![tensor(DType::I8, &[4], 1), 0, RawTensor::from_slice(&[3i32, 0], &[2])],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[])],
            sample![tensor(F, &[], 1), 0, ints(&[0, 0], &[2])],
            sample![tensor(F, &[3], 1), -1, ints(&[2], &[])],
            sample![p(), 1, ints(&[], &[0])],
            sample![p(), 1, index(&[5, 2, 3], 5, 2)],
            sample![p(), 1, index(&[5, 2], 5, 2)],
            sample![p(), 1, ints(&[5], &[1, 1, 1])],
            sample![p(), 1, ints(&[-1], &[1, 1, 1])],
            sample![tensor(F, &[0, 3], 1), 0, ints(&[0], &[1, 1])],
        ]
    }

    pub(crate) fn s_take() -> Vec<Sample> {
        vec![
            sample![p(), odd_index(&[2, 3], 60, 2)],
            sample![strided(DType::C64, &[4, 3], 1), ints(&[-1, 0, -12], &[3])],
            sample![expanded(DType::I16, &[4, 3], 1), ints(&[5], &[])],
            sample![tensor(F, &[], 1), ints(&[0], &[1])],
            sample![tensor(F, &[0], 1), ints(&[], &[0])],
            sample![tensor(F, &[0], 1), ints(&[0], &[1])],
            sample![p(), ints(&[60], &[1])],
            sample![p(), ints(&[-61], &[1])],
            sample![p(), RawTensor::from_slice(&[1i32], &[1])],
        ]
    }

    pub(crate) fn s_along() -> Vec<Sample> {
        vec![
            sample![p(), index(&[1, 2, 3], 5, 2), 1],
            sample![strided(DType::I64, &[1, 5], 1), index(&[4, 2], 5, 2), -1],
            sample![p(), ints(&[-1], &[1, 1, 1]), 1],
            sample![tensor(F, &[2, 3], 1), ints(&[5, 0, -1], &[3])],
            sample![tensor(F, &[2, 3], 1), ints(&[5, 0, 1, 2], &[2, 2])],
            sample![p(), ints(&[5, 0], &[2])],
            sample![p(), ints(&[5, 0], &[2]), 1],
            sample![p(), ints(&[5], &[1, 1, 1]), 1],
            sample![p(), index(&[2, 2, 3], 5, 2), 1],
            sample![p(), RawTensor::from_slice(&[1i32], &[1, 1, 1]), 1],
        ]
    }
}
