//! Operators whose result sizes depend on data: `nonzero`, `masked_select`, `repeat_interleave` by a tensor.

use restride_ir::{Arg, Args, Call, DType, Emit, Exactness, Fails, Kernel, Layout, Meta, OpDef, OpError, Scalar};
use restride_kernels::index::{nonzero, nonzero_room, split_last};
use restride_kernels::movement::copy;
use restride_kernels::support::convert::{gather, scatter};
use restride_kernels::support::scratch::{Temp, room};
use restride_tensor::RawTensor;
use smallvec::smallvec;

use crate::support::promote::name;
use crate::support::{Metas, Result, ValArgs, Vals, emit, ensure, exact, fail, found, fresh, one};

/// Above this size an allocation is fallible, so that it returns an error instead of an abort.
const SURE: u128 = 1 << 28;

/// Allocates a result whose sizes the data has just decided.
pub(crate) fn allocate(dtype: DType, layout: Layout) -> Result<RawTensor> {
    let cells = layout.sizes.iter().fold(1u128, |n, s| n.saturating_mul((*s).max(0) as u128));
    let bytes = cells.saturating_mul(dtype.size() as u128);
    let room = || usize::try_from(bytes).is_ok_and(|n| Vec::<u8>::new().try_reserve_exact(n).is_ok());
    ensure!(
        bytes <= SURE || room(),
        "a result of {dtype} and sizes {:?} needs more memory than there is",
        &layout.sizes[..]
    );
    Ok(RawTensor::zeros(dtype, layout))
}

/// Indices of the nonzero elements, one row each, with contiguous columns as in PyTorch.
fn positions(c: &Call<'_>) -> Result<RawTensor> {
    let t = c.args.tensor(0)?;
    let mut flat = nonzero(t);
    let (n, rank) = (flat.len() as i64, t.sizes().len() as i64);
    let mut columns = Temp::filled(flat.len() * rank as usize, 0);
    for (column, &size) in columns.chunks_exact_mut(flat.len().max(1)).zip(t.sizes()).rev() {
        split_last(&mut flat, size, |i, at| column[i] = at);
    }
    let out = allocate(DType::I64, Layout::contiguous(&[rank, n]))?;
    scatter(&columns, &out.write().view_mut());
    Ok(out.alias(DType::I64, Layout::strided(&[n, rank], &[1, n], 0)).expect("the layout has the same cells"))
}

fn run_nonzero(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    Ok(vec![positions(c)?])
}

fn infer_nonzero_static(a: &Args<'_, Meta>) -> Metas {
    let size = a.int(1)?;
    ensure!(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
    one(fresh(DType::I64, &[size, a.tensor(0)?.rank() as i64]))
}
fn run_nonzero_static(c: &Call<'_>) -> Result<()> {
    let (t, fill) = (c.args.tensor(0)?, c.args.int(2)?);
    let mut rows = Temp::filled(c.outs[0].numel(), fill);
    let (mut flat, rank) = (nonzero(t), t.sizes().len());
    flat.truncate(rows.len().checked_div(rank).unwrap_or(0).min(flat.len()));
    for (d, &size) in t.sizes().iter().enumerate().rev() {
        split_last(&mut flat, size, |i, at| rows[i * rank + d] = at);
    }
    scatter(&rows, &c.outs[0]);
    Ok(())
}
fn nonzero_static_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let t = a.tensor(0)?;
    Ok(nonzero_room(t.layout.numel()) + room::<i64>(outs[0].layout.numel() as usize))
}

/// The columns of `nonzero`, as tensors.
fn columns(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let mut t = *a.tensor(0)?;
    if e.meta(t).rank() == 0 {
        t = e.call("aten.unsqueeze.default", &[Arg::Value(t), Arg::Scalar(Scalar::Int(0))])?[0];
    }
    let found = e.call("aten.nonzero.default", &[Arg::Value(t)])?[0];
    e.call("aten.unbind.int", &[Arg::Value(found), Arg::Scalar(Scalar::Int(1))])
}

fn run_masked_select(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    let (t, mask) = (c.args.tensor(0)?, c.args.tensor(1)?);
    ensure!(mask.dtype() == DType::Bool, "masked_select: expected BoolTensor for mask");
    let sizes = crate::support::strides::broadcast_sizes(&[t.sizes(), mask.sizes()])?;
    // Row-major copies of the mask and of the elements to select.
    let wide = |v: &restride_tensor::View<'_>| -> Result<RawTensor> {
        let own = allocate(v.dtype(), Layout::contiguous(&sizes))?;
        copy::stretched(v, &own.write().view_mut()).map_err(OpError::new)?;
        Ok(own)
    };
    let picked = nonzero(&wide(mask)?.read().view());
    let elements = wide(t)?;
    let out = allocate(t.dtype(), Layout::contiguous(&[picked.len() as i64]))?;
    restride_kernels::index::take_flat(&elements.read().view(), &picked, &out.write().view_mut())
        .map_err(OpError::new)?;
    Ok(vec![out])
}

/// Repeats each index by its count.
fn repeated(repeats: &restride_tensor::View<'_>, size: Option<i64>) -> Result<Vec<i64>> {
    ensure!(repeats.sizes().len() == 1, "repeat_interleave only accept 1D vector as repeat");
    let counts = gather::<i64>(*repeats);
    ensure!(counts.iter().all(|n| *n >= 0), "repeats can not be negative");
    let total = counts.iter().try_fold(0i64, |sum, n| sum.checked_add(*n));
    let Some(total) = total else { return fail("repeat_interleave: the result is too large") };
    ensure!(size.is_none_or(|s| s == total), "allocated size does not match required size");
    allocate(DType::I64, Layout::contiguous(&[total]))?;
    Ok(counts.iter().enumerate().flat_map(|(i, n)| std::iter::repeat_n(i as i64, *n as usize)).collect())
}
fn check_repeats(dtype: DType) -> Result<()> {
    ensure!(
        matches!(dtype, DType::I64 | DType::I32),
        "\"repeat_interleave_cpu\" not implemented for '{}'",
        name(dtype)
    );
    Ok(())
}
fn run_repeats(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    let repeats = c.args.tensor(0)?;
    check_repeats(repeats.dtype())?;
    let all = repeated(repeats, c.args.opt_int(1)?)?;
    let out = allocate(repeats.dtype(), Layout::contiguous(&[all.len() as i64]))?;
    scatter(&all, &out.write().view_mut());
    Ok(vec![out])
}
fn infer_known_repeats(a: &Args<'_, Meta>) -> Metas {
    let repeats = a.tensor(0)?;
    check_repeats(repeats.dtype)?;
    one(fresh(repeats.dtype, &[a.int(1)?]))
}
fn run_known_repeats(c: &Call<'_>) -> Result<()> {
    scatter(&repeated(c.args.tensor(0)?, Some(c.args.int(1)?))?, &c.outs[0]);
    Ok(())
}

/// PyTorch's operators for `repeat_index(repeats, size)`: each result element is the last repeat that starts at or before it.
fn known_repeats(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (repeats, size) = (*a.tensor(0)?, a.int(1)?);
    let dtype = e.meta(repeats).dtype;
    let ends = emit!(e, "aten.cumsum.default", repeats, 0, DType::I64)?;
    let places = emit!(e, "aten.arange.default", size, DType::I64)?;
    Ok(smallvec![emit!(e, "aten.searchsorted.Tensor", ends, places, dtype == DType::I32, true)?])
}

/// `repeat_interleave` by a tensor: computes the indices, then selects.
fn repeat_by(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (mut t, mut repeats, dim, size) = (*a.tensor(0)?, *a.tensor(1)?, a.opt_int(2)?, a.opt_int(3)?);
    if dim.is_none() {
        t = emit!(e, "aten.flatten.using_ints", t)?;
    }
    let (meta, r) = (e.meta(t), e.meta(repeats));
    let d = meta.layout.dim(dim.unwrap_or(0))?;
    ensure!(meta.rank() > 0, "Dimension specified as 0 but tensor has no dimensions");
    let n = meta.sizes()[d];
    match *r.sizes() {
        [] | [1] => {
            let one = emit!(e, "aten.reshape.default", repeats, [1])?;
            repeats = emit!(e, "aten.expand.default", one, [n])?;
        }
        [have] => ensure!(
            have == n,
            "repeats must have the same size as input along dim, but got repeats.size(0) = {have} and input.size({d}) = \
             {n}"
        ),
        _ => return fail("repeats must be 0-dim or 1-dim tensor"),
    }
    let index = match size {
        Some(size) => emit!(e, "restride.repeat_index.default", repeats, size)?,
        None => emit!(e, "aten.repeat_interleave.Tensor", repeats)?,
    };
    Ok(smallvec![emit!(e, "aten.index_select.default", t, d as i64, index)?])
}

const fn in_columns(schema: &'static str) -> OpDef {
    OpDef {
        decompose: Some(columns),
        composed: Some(|_| true),
        exactness: Exactness::Exact,
        samples: samples!(s_nonzero),
        ..OpDef::new(schema)
    }
}

pub(crate) static OPS: &[OpDef] = table![
    found("nonzero", run_nonzero, samples!(s_nonzero)).exactly(),
    in_columns("nonzero_numpy"),
    in_columns("where"),
    exact(
        "nonzero_static",
        infer_nonzero_static,
        run_nonzero_static,
        nonzero_static_scratch,
        samples!(s_nonzero_static),
    ),
    found("masked_select", run_masked_select, samples!(s_masked_select)).exactly(),
    found("repeat_interleave.Tensor", run_repeats, samples!(s_repeats)).failing().exactly(),
    OpDef {
        decompose: Some(repeat_by),
        // The data decides the size: the run computes it, even if the program states an `output_size`.
        composed: Some(|a| a.is_none(3)),
        exactness: Exactness::Exact,
        fails: Fails::Elements,
        samples: samples!(s_repeat_by),
        ..OpDef::new("repeat_interleave.self_Tensor")
    },
    OpDef {
        doc: "`repeat_interleave` of indices with a result of known size",
        infer: Some(infer_known_repeats),
        kernel: Kernel::Fixed(run_known_repeats),
        decompose: Some(known_repeats),
        exactness: Exactness::Exact,
        ..OpDef::new("restride::repeat_index(Tensor repeats, SymInt size) -> Tensor")
    },
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn s_nonzero() -> Vec<Sample> {
        vec![
            sample![transposed(DType::Bool, &[3, 4, 2], 1)],
            sample![strided(DType::I64, &[3, 4], 1)],
            sample![expanded(F, &[2, 3], 1)],
            sample![tensor(DType::C64, &[4], 1)],
            sample![tensor(DType::BF16, &[], 1)],
            sample![ints(&[0], &[])],
            sample![ints(&[0, 0], &[1, 2])],
            sample![tensor(F, &[0, 3], 1)],
        ]
    }

    pub(crate) fn s_nonzero_static() -> Vec<Sample> {
        vec![
            sample![ints(&[0, 1, 1, 0, 2, 0], &[2, 3]), 2],
            sample![ints(&[0, 1, 1, 0, 2, 0], &[2, 3]), 5],
            sample![ints(&[0, 1, 1, 0, 2, 0], &[2, 3]), 4, 7],
            sample![transposed(DType::Bool, &[3, 4], 1), 0],
            sample![ints(&[1], &[]), 2],
        ]
    }

    pub(crate) fn s_masked_select() -> Vec<Sample> {
        vec![
            sample![transposed(F, &[3, 4], 1), tensor(DType::Bool, &[3, 4], 2)],
            sample![strided(DType::C64, &[3, 4], 1), tensor(DType::Bool, &[4], 2)],
            sample![tensor(DType::I16, &[4], 1), transposed(DType::Bool, &[3, 4], 2)],
            sample![tensor(F, &[], 1), tensor(DType::Bool, &[3], 2)],
            sample![tensor(F, &[], 1), tensor(DType::Bool, &[], 2)],
            sample![tensor(F, &[0, 3], 1), tensor(DType::Bool, &[3], 2)],
            sample![tensor(F, &[3, 4], 1), tensor(DType::Bool, &[3], 2)],
            sample![tensor(F, &[3, 4], 1), tensor(DType::U8, &[3, 4], 2)],
        ]
    }

    pub(crate) fn s_repeats() -> Vec<Sample> {
        vec![
            sample![ints(&[2, 0, 3], &[3])],
            sample![RawTensor::from_slice(&[1i32, 2], &[2]), 3],
            sample![ints(&[], &[0])],
            sample![ints(&[2, 1], &[2]), 4],
            sample![ints(&[2, -1], &[2])],
            sample![tensor(F, &[2], 1)],
            sample![ints(&[2], &[])],
        ]
    }

    pub(crate) fn s_repeat_by() -> Vec<Sample> {
        vec![
            sample![transposed(F, &[3, 4], 1), ints(&[2, 0, 3], &[3]), 0],
            sample![strided(DType::I64, &[3, 4], 1), RawTensor::from_slice(&[2i32, 0, 3, 1], &[4]), -1],
            sample![transposed(F, &[2, 3], 1), ints(&[2, 0, 3, 1, 1, 1], &[6])],
            sample![tensor(F, &[3, 4], 1), ints(&[2], &[1]), 1],
            sample![tensor(F, &[3, 4], 1), ints(&[2], &[])],
            sample![tensor(F, &[3, 4], 1), ints(&[2, 0, 3], &[3]), 0, 5],
            sample![tensor(F, &[3, 4], 1), ints(&[2, 0, 3], &[3]), 0, 6],
            sample![tensor(F, &[3, 4], 1), ints(&[2, 0], &[2]), 0],
            sample![tensor(F, &[3, 4], 1), ints(&[2, 0, -3], &[3]), 0],
        ]
    }
}
