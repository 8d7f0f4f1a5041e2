//! Distinct elements and slices: `unique` in its forms. The data decides the result's size.

use restride_ir::{Call, DType, Layout, OpDef, OpError};
use restride_kernels::index::{Axes, take_at, take_flat};
use restride_kernels::movement::copy;
use restride_kernels::sort::unique::{Groups, groups};
use restride_kernels::support::convert::scatter;
use restride_tensor::{RawTensor, View};

use crate::index::find::allocate;
use crate::support::promote::name;
use crate::support::{Result, ensure, fail, found};

fn check_type(what: &str, dtype: DType) -> Result<()> {
    ensure!(!dtype.is_complex(), "\"{what}\" not implemented for '{}'", name(dtype));
    Ok(())
}

/// A row-major tensor of integers.
fn listed(data: &[i64], sizes: &[i64]) -> Result<RawTensor> {
    let t = allocate(DType::I64, Layout::contiguous(sizes))?;
    scatter(data, &t.write().view_mut());
    Ok(t)
}

/// Values, inverse indices and counts of the distinct elements; results not requested are empty.
fn flat(t: &View<'_>, neighbours: bool, inverse: bool, counts: bool) -> Result<Vec<RawTensor>> {
    check_type("unique", t.dtype())?;
    let g = groups(t, 1, neighbours).map_err(OpError::new)?;
    let n = g.first.len() as i64;
    let values = allocate(t.dtype(), Layout::contiguous(&[n]))?;
    take_flat(t, &g.first, &values.write().view_mut()).map_err(OpError::new)?;
    Ok(vec![
        values,
        if inverse { listed(&g.inverse, t.sizes())? } else { listed(&[], &[0])? },
        if counts { listed(&g.counts, &[n])? } else { listed(&[], &[0])? },
    ])
}

/// Values, inverse indices and counts of the distinct slices along a dimension.
fn sliced(t: &View<'_>, dim: i64, neighbours: bool) -> Result<Vec<RawTensor>> {
    let rank = t.sizes().len();
    ensure!(rank > 0, "Dimension specified as {dim} but tensor has no dimensions");
    check_type("unique_dim", t.dtype())?;
    let d = t.layout().dim(dim)?;
    let zeros = t.sizes().iter().filter(|n| **n == 0).count();
    if t.sizes()[d] == 0 {
        ensure!(zeros == 1, "Number of zero sized dimensions is more than one, so unique cannot be applied ");
        let values = allocate(t.dtype(), Layout::contiguous(t.sizes()))?;
        return Ok(vec![values, listed(&[], &[0])?, listed(&[], &[0])?]);
    }
    ensure!(zeros == 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    // A row-major copy with the dimension first: its slices are rows.
    let mut order: Vec<i64> = (0..rank as i64).filter(|i| *i != d as i64).collect();
    order.insert(0, d as i64);
    let turned = t.layout().permute(&order)?;
    let rows = allocate(t.dtype(), Layout::contiguous(&turned.sizes))?;
    copy::from_region(t, t.dtype(), &turned, &rows.write().view_mut()).map_err(OpError::new)?;
    let count = turned.sizes[0];
    let length = rows.numel() / count as usize;
    let Groups { first, inverse, counts } = groups(&rows.read().view(), length, neighbours).map_err(OpError::new)?;
    let mut sizes = turned.sizes.clone();
    sizes[0] = first.len() as i64;
    let picked = allocate(t.dtype(), Layout::contiguous(&sizes))?;
    let n = sizes[0];
    take_at(
        &rows.read().view(),
        &Axes::one(rank, 0, restride_kernels::support::scratch::Temp::copied(&first)),
        &picked.write().view_mut(),
    )
    .map_err(OpError::new)?;
    // Moves the dimension back, on the same memory.
    let mut back: Vec<i64> = (1..rank as i64).collect();
    back.insert(d, 0);
    let layout = picked.layout().permute(&back)?;
    let Some(values) = picked.alias(t.dtype(), layout) else { return fail("unique: a view outside of its tensor") };
    Ok(vec![values, listed(&inverse, &[count])?, listed(&counts, &[n])?])
}

fn run_unique(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    let mut all = flat(c.args.tensor(0)?, false, c.args.bool(2)?, false)?;
    all.truncate(2);
    Ok(all)
}
fn run_unique2(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    flat(c.args.tensor(0)?, false, c.args.bool(2)?, c.args.bool(3)?)
}
fn run_consecutive(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    let (t, inverse, counts) = (c.args.tensor(0)?, c.args.bool(1)?, c.args.bool(2)?);
    match c.args.opt_int(3)? {
        Some(dim) if !(dim == 0 && t.sizes().len() == 1) => sliced(t, dim, true),
        _ => flat(t, true, inverse, counts),
    }
}
fn run_dim(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    sliced(c.args.tensor(0)?, c.args.int(1)?, false)
}
fn run_dim_consecutive(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    sliced(c.args.tensor(0)?, c.args.int(1)?, true)
}

pub(crate) static OPS: &[OpDef] = table![
    found("_unique", run_unique, samples!(s_unique)).exactly(),
    found("_unique2", run_unique2, samples!(s_unique2)).exactly(),
    found("unique_consecutive", run_consecutive, samples!(s_consecutive)).exactly(),
    found("unique_dim", run_dim, samples!(s_dim)).exactly(),
    found("unique_dim_consecutive", run_dim_consecutive, samples!(s_dim_consecutive)).exactly(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    /// Sample tensors with repeated elements.
    pub(crate) fn operands() -> Vec<RawTensor> {
        vec![
            ints(&[3, 1, 2, 1, 3, 3], &[6]),
            transposed(DType::I8, &[4, 5, 2], 1),
            strided(DType::U8, &[4, 3], 1),
            tensor(DType::Bool, &[5, 2], 1),
            tensor(DType::F32, &[3, 2], 1),
            tensor(DType::BF16, &[], 1),
            tensor(DType::F32, &[0, 3], 1),
            tensor(DType::F32, &[2, 0], 1),
            RawTensor::from_slice(&[f32::NAN, 0.0, f32::NAN, -0.0, 1.0, 1.0], &[6]),
            tensor(DType::C64, &[3], 1),
        ]
    }

    pub(crate) fn s_unique() -> Vec<Sample> {
        let mut all: Vec<Sample> = operands().iter().map(|t| sample![t, true, true]).collect();
        all.push(sample![ints(&[3, 1, 3], &[3]), false]);
        all
    }

    pub(crate) fn s_unique2() -> Vec<Sample> {
        let mut all: Vec<Sample> = operands().iter().map(|t| sample![t, true, true, true]).collect();
        for (inverse, counts) in [(false, false), (true, false), (false, true)] {
            all.push(sample![ints(&[3, 1, 3], &[3]), true, inverse, counts]);
        }
        all
    }

    pub(crate) fn s_consecutive() -> Vec<Sample> {
        let mut all: Vec<Sample> = operands().iter().map(|t| sample![t, true, true]).collect();
        all.extend(operands().iter().map(|t| sample![t, false, true, 0]));
        all.push(sample![ints(&[1, 2, 1, 2, 0, 3], &[3, 2]), true, true, 0]);
        all.push(sample![ints(&[1, 1, 3, 3], &[4])]);
        all
    }

    pub(crate) fn s_dim() -> Vec<Sample> {
        // PyTorch defines no order for rows with NaN.
        let all = operands().into_iter().filter(|t| t.layout().sizes[..] != [6] || t.dtype() != DType::F32);
        let mut all: Vec<Sample> = all.flat_map(|t| [sample![&t, 0, true, true, true], sample![&t, -1]]).collect();
        all.push(sample![ints(&[1, 2, 0, 3, 1, 2], &[3, 2]), 0, true, true, true]);
        all.push(sample![ints(&[1, 2, 1, 0, 3, 0], &[2, 3]), 1, true, true, true]);
        all
    }

    pub(crate) fn s_dim_consecutive() -> Vec<Sample> {
        let all = operands().into_iter().filter(|t| t.layout().sizes[..] != [6] || t.dtype() != DType::F32);
        let mut all: Vec<Sample> = all.map(|t| sample![&t, -1, true, true]).collect();
        all.push(sample![ints(&[1, 2, 1, 2, 0, 3], &[3, 2]), 0, true, true]);
        all
    }
}
