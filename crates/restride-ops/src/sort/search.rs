//! Search and counting by value: `searchsorted`, `bucketize`, `isin`, `histc`, `bincount`.

use crate::support::promote::{AsTensor, name};
use crate::support::scratch::stored;
use crate::support::{Metas, Result, ensure, exact, found, fresh};
use restride_ir::{Args, Call, Meta, OpDef, OpError, Scalar};
use restride_kernels::sort::search::{count, histogram, histogram_room, is_in, is_in_room, search, search_room};
use restride_kernels::support::scratch;
use restride_tensor::{DType, Layout, RawTensor, View};
use smallvec::smallvec;

fn index_type<V>(a: &Args<'_, V>, i: usize) -> Result<DType> {
    Ok(if a.opt_bool(i)?.unwrap_or(false) { DType::I32 } else { DType::I64 })
}

/// Calls `f` with a number as a 0-d tensor, in the other operand's type if it holds the number.
fn boxed<R>(s: Scalar, other: DType, f: impl FnOnce(&View<'_>) -> R) -> R {
    scratch::tensor(box_type(s, other), &Layout::contiguous(&[]), |t| {
        match s {
            Scalar::Int(_) | Scalar::Bool(_) => restride_kernels::support::convert::scatter(&[s.as_i64()], t),
            s => restride_kernels::support::convert::scatter(&[s.as_f64()], t),
        }
        f(&t.as_view())
    })
}
fn box_type(s: Scalar, other: DType) -> DType {
    let whole = matches!(s, Scalar::Int(_) | Scalar::Bool(_));
    if whole || other.is_float() { other } else { s.dtype() }
}

/// Scratch bytes and type of an operand beside another one; a number counts as a 0-d tensor.
fn beside(a: &Args<'_, Meta>, i: usize, other: DType) -> Result<(usize, Meta)> {
    match a.as_tensor(i) {
        Some(t) => Ok((0, t.clone())),
        None => {
            let dtype = box_type(a.scalar(i)?, other);
            Ok((scratch::tensor_room(dtype, 1), Meta::contiguous(dtype, &[])))
        }
    }
}
fn found_scratch(a: &Args<'_, Meta>, rows: usize, values: usize) -> Result<usize> {
    let rows = a.tensor(rows)?;
    let (own, values) = beside(a, values, rows.dtype)?;
    let order = a.0.get(5).and_then(|o| o.values().next()).map(|o| &o.layout);
    Ok(own + search_room(stored(rows), stored(&values), order))
}
fn sorted_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    found_scratch(a, 0, 1)
}
fn buckets_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    found_scratch(a, 1, 0)
}
fn is_in_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let other = a.0.iter().flat_map(|arg| arg.values()).next().map_or(DType::I64, |t| t.dtype);
    let (x, set) = (beside(a, 0, other)?, beside(a, 1, other)?);
    Ok(x.0 + set.0 + is_in_room(stored(&x.1), stored(&set.1)))
}
fn histogram_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(histogram_room(stored(a.tensor(0)?), outs[0].layout.numel()))
}

fn comparable(dtypes: &[DType]) -> Result<()> {
    for &d in dtypes {
        ensure!(!d.is_complex(), "not implemented for '{}'", name(d));
    }
    Ok(())
}

/// `searchsorted`: the sorted rows, and the values to find (`None` for a plain number).
fn check<V: AsTensor>(
    a: &Args<'_, V>,
    rows: &V,
    values: Option<&V>,
    sorter: Option<&V>,
    bucketize: bool,
) -> Result<bool> {
    let l = rows.layout();
    comparable(&[rows.dtype()])?;
    ensure!(l.rank() > 0, "boundaries tensor should have positive dimension, but got 0 dimension");
    if bucketize {
        ensure!(l.rank() == 1, "boundaries tensor must be 1 dimension, but got dim({})", l.rank());
    }
    match values {
        Some(v) => {
            comparable(&[v.dtype()])?;
            let m = v.layout();
            let fits = l.rank() == 1 || (l.rank() == m.rank() && l.sizes[..l.rank() - 1] == m.sizes[..l.rank() - 1]);
            ensure!(
                fits,
                "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input \
                 value tensor must match, but we got boundaries tensor {:?} and input value tensor {:?}",
                &l.sizes[..],
                &m.sizes[..]
            );
        }
        None => ensure!(
            l.rank() == 1,
            "input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim({})",
            l.rank()
        ),
    }
    if let Some(s) = sorter {
        ensure!(s.layout().sizes == l.sizes, "boundary and sorter must have the same size");
        ensure!(s.dtype() == DType::I64, "sorter must be a tensor of long dtype but got dtype {}", name(s.dtype()));
    }
    let right = a.opt_bool(3)?.unwrap_or(false);
    if bucketize {
        return Ok(right);
    }
    match a.opt_str(4)? {
        None => Ok(right),
        Some("left") => {
            ensure!(!right, "side and right can't be set to opposites, got side of left while right was True");
            Ok(false)
        }
        Some("right") => Ok(true),
        Some(other) => Err(OpError::new(format!("side can only be 'left' or 'right' but got {other}"))),
    }
}

fn infer_sorted(a: &Args<'_, Meta>) -> Metas {
    let values = a.as_tensor(1);
    check(a, a.tensor(0)?, values, a.opt_tensor(5)?, false)?;
    Ok(smallvec![fresh(index_type(a, 2)?, values.map_or(&[], |v| v.sizes()))])
}
fn run_sorted(c: &Call<'_>) -> Result<()> {
    let rows = c.args.tensor(0)?;
    let (values, sorter) = (c.args.as_tensor(1), c.args.opt_tensor(5)?);
    let right = check(&c.args, rows, values, sorter, false)?;
    find(c, rows, 1, right, sorter)
}
fn infer_buckets(a: &Args<'_, Meta>) -> Metas {
    let values = a.as_tensor(0);
    check(a, a.tensor(1)?, values, None, true)?;
    Ok(smallvec![fresh(index_type(a, 2)?, values.map_or(&[], |v| v.sizes()))])
}
fn run_buckets(c: &Call<'_>) -> Result<()> {
    let rows = c.args.tensor(1)?;
    let right = check(&c.args, rows, c.args.as_tensor(0), None, true)?;
    find(c, rows, 0, right, None)
}
fn find(
    c: &Call<'_>,
    rows: &restride_tensor::View<'_>,
    values: usize,
    right: bool,
    sorter: Option<&restride_tensor::View<'_>>,
) -> Result<()> {
    match c.args.as_tensor(values) {
        Some(v) => search(rows, v, right, sorter, &c.outs[0]).map_err(OpError::new),
        None => {
            let of = |number: &View<'_>| search(rows, number, right, sorter, &c.outs[0]);
            boxed(c.args.scalar(values)?, rows.dtype(), of).map_err(OpError::new)
        }
    }
}

fn infer_is_in(a: &Args<'_, Meta>) -> Metas {
    for i in [0, 1] {
        if let Some(t) = a.as_tensor(i) {
            comparable(&[t.dtype])?;
            ensure!(t.dtype != DType::Bool, "Unsupported input type encountered for isin(): Bool");
        }
    }
    Ok(smallvec![fresh(DType::Bool, a.tensor(0).map_or(&[], |t| t.sizes()))])
}
fn run_is_in(c: &Call<'_>) -> Result<()> {
    let invert = c.args.opt_bool(3)?.unwrap_or(false);
    let r = match (c.args.as_tensor(0), c.args.as_tensor(1)) {
        (Some(x), Some(set)) => is_in(x, set, invert, &c.outs[0]),
        (Some(x), None) => boxed(c.args.scalar(1)?, x.dtype(), |set| is_in(x, set, invert, &c.outs[0])),
        (None, _) => {
            let set = c.args.tensor(1)?;
            boxed(c.args.scalar(0)?, set.dtype(), |x| is_in(x, set, invert, &c.outs[0]))
        }
    };
    r.map_err(OpError::new)
}

fn infer_histogram(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    ensure!(x.dtype.is_float(), "\"histogram_cpu\" not implemented for '{}'", name(x.dtype));
    let bins = a.opt_int(1)?.unwrap_or(100);
    ensure!(bins > 0, "bins must be > 0, but got {bins}");
    crate::create::check_sizes(x.dtype, &[bins])?;
    Ok(smallvec![fresh(x.dtype, &[bins])])
}
fn run_histogram(c: &Call<'_>) -> Result<()> {
    let (min, max) = (c.args.opt_float(2)?.unwrap_or(0.0), c.args.opt_float(3)?.unwrap_or(0.0));
    histogram(c.args.tensor(0)?, min, max, &c.outs[0]).map_err(OpError::new)
}

fn run_count(c: &Call<'_>) -> Result<Vec<RawTensor>> {
    let (x, weights) = (c.args.tensor(0)?, c.args.opt_tensor(1)?);
    let least = c.args.opt_int(2)?.unwrap_or(0);
    ensure!(least >= 0, "minlength should be >= 0");
    ensure!(x.dtype().is_int() && x.sizes().len() == 1, "bincount only supports 1-d non-negative integral inputs.");
    if let Some(w) = weights {
        ensure!(w.sizes() == x.sizes(), "weights should be 1-d and have the same length as input");
        ensure!(!w.dtype().is_complex(), "weights are real numbers");
    }
    Ok(vec![count(x, weights, least as usize).map_err(OpError::new)?])
}

pub(crate) static OPS: &[OpDef] = table![
    exact("searchsorted.Tensor", infer_sorted, run_sorted, sorted_scratch, samples!(sorted_samples)).failing(),
    exact("searchsorted.Scalar", infer_sorted, run_sorted, sorted_scratch, samples!(number_samples)),
    exact("bucketize.Tensor", infer_buckets, run_buckets, buckets_scratch, samples!(|| swapped(sorted_samples()))),
    exact("bucketize.Scalar", infer_buckets, run_buckets, buckets_scratch, samples!(|| swapped(number_samples()))),
    exact("isin.Tensor_Tensor", infer_is_in, run_is_in, is_in_scratch, samples!(members)),
    exact("isin.Tensor_Scalar", infer_is_in, run_is_in, is_in_scratch, samples!(s_isin_tensor_scalar)),
    exact("isin.Scalar_Tensor", infer_is_in, run_is_in, is_in_scratch, samples!(s_isin_scalar_tensor)),
    exact("histc", infer_histogram, run_histogram, histogram_scratch, samples!(histograms)).failing(),
    found("bincount", run_count, samples!(counts)).failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    /// A sorted row of an element type.
    pub(crate) fn sorted(dtype: DType, sizes: &[i64]) -> RawTensor {
        let t = RawTensor::zeros(dtype, Layout::contiguous(sizes));
        let data: Vec<f64> =
            (0..t.numel()).map(|i| (i % sizes[sizes.len() - 1] as usize / 2) as f64 * 0.75 - 1.0).collect();
        restride_kernels::support::convert::scatter(&data, &t.write().view_mut());
        t
    }

    pub(crate) fn sorted_samples() -> Vec<Sample> {
        let mut out = Vec::new();
        for d in [F, DType::F64, DType::F16, DType::BF16] {
            for v in [tensor(d, &[2, 3], 1), sorted(d, &[7])] {
                out.push(sample![sorted(d, &[7]), &v]);
                out.push(sample![sorted(d, &[7]), v, true, true]);
            }
        }
        for v in [transposed(F, &[2, 5], 1), strided(F, &[2, 5], 2), expanded(F, &[2, 5], 3), tensor(F, &[2, 0], 1)] {
            out.push(sample![sorted(F, &[2, 6]), &v]);
            out.push(sample![sorted(F, &[2, 6]), v, false, false, "right"]);
        }
        out.push(sample![sorted(F, &[6]), tensor(F, &[], 1), false, true, "left"]);
        out.push(sample![sorted(F, &[6]), tensor(F, &[], 1)]);
        out.push(sample![sorted(F, &[6]), tensor(DType::F64, &[2], 1)]);
        out.push(sample![sorted(F, &[2, 6]), tensor(F, &[3, 6], 1)]);
        let row = RawTensor::from_slice(&[3.0f32, 1.0, 2.0], &[3]);
        out.push(sample![row, tensor(F, &[4], 1), false, false, (), ints(&[1, 2, 0], &[3])]);
        let numbers = RawTensor::from_slice(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.25], &[4]);
        out.push(sample![sorted(F, &[6]), numbers]);
        out.push(sample![ints(&[1, 3, 3, 5], &[4]), ints(&[0, 1, 3, 4, 9], &[5]), false, true]);
        out.push(sample![sorted(F, &[0, 4]), tensor(F, &[0, 2], 1)]);
        out
    }

    pub(crate) fn number_samples() -> Vec<Sample> {
        vec![
            sample![sorted(F, &[6]), 0.5],
            sample![sorted(F, &[6]), 2, true, true],
            sample![ints(&[1, 3, 5], &[3]), 3],
            sample![ints(&[1, 3, 5], &[3]), 3.5],
            sample![sorted(F, &[2, 6]), 1],
        ]
    }

    /// Swaps the first two arguments: `bucketize` takes the boundaries second.
    pub(crate) fn swapped(samples: Vec<Sample>) -> Vec<Sample> {
        let mut samples: Vec<Sample> = samples.into_iter().filter(|s| s.args.len() <= 4).collect();
        samples.iter_mut().for_each(|s| s.args.swap(0, 1));
        samples
    }

    pub(crate) fn members() -> Vec<Sample> {
        let nan = RawTensor::from_slice(&[1.0f32, f32::NAN, 2.0], &[3]);
        vec![
            sample![tensor(DType::I64, &[2, 5], 1), ints(&[1, -2, 4], &[3])],
            sample![transposed(DType::I64, &[2, 5], 1), tensor(DType::I64, &[30], 2), false, true],
            sample![tensor(DType::I32, &[5], 1), ints(&[1, -2, 4], &[3])],
            sample![&nan, &nan],
            sample![tensor(F, &[0, 2], 1), &nan],
            sample![tensor(F, &[], 1), tensor(F, &[0], 1)],
            sample![tensor(DType::U8, &[7], 1), tensor(F, &[3], 2)],
        ]
    }

    pub(crate) fn histograms() -> Vec<Sample> {
        let mut out = Vec::new();
        for d in [F, DType::F64] {
            out.push(sample![transposed(d, &[5, 20], 1), 7]);
            out.push(sample![tensor(d, &[50], 2), 10, -1, 1]);
            out.push(sample![tensor(d, &[50], 2), 4, 0.5, 1.5]);
        }
        out.push(sample![tensor(F, &[50], 2)]);
        out.push(sample![in_range(F, Layout::contiguous(&[5]), 2, 1.0, 1.0), 4]);
        out.push(sample![tensor(F, &[0], 2), 4]);
        out.push(sample![tensor(F, &[5], 2), 4, 2, 1]);
        out.push(sample![tensor(F, &[5], 2), 0]);
        out.push(sample![tensor(DType::I64, &[5], 2), 4]);
        out.push(sample![RawTensor::from_slice(&[1.0f32, f32::INFINITY], &[2]), 4]);
        out
    }

    pub(crate) fn counts() -> Vec<Sample> {
        let x = ints(&[3, 1, 0, 3, 7], &[5]);
        vec![
            sample![&x],
            sample![&x, (), 12],
            sample![&x, tensor(F, &[5], 1)],
            sample![&x, tensor(DType::F64, &[5], 1), 3],
            sample![&x, tensor(DType::I64, &[5], 1)],
            sample![tensor(DType::U8, &[6], 1)],
            sample![ints(&[], &[0]), (), 3],
            sample![ints(&[-1], &[1])],
            sample![ints(&[1, 2], &[2, 1])],
        ]
    }

    pub(crate) fn s_isin_tensor_scalar() -> Samples {
        vec![
            sample![transposed(DType::I64, &[2, 5], 1), 2],
            sample![tensor(F, &[5], 1), 2.0, false, true],
            sample![tensor(DType::I64, &[5], 1), 2.5],
            sample![tensor(DType::I64, &[0], 1), 2],
        ]
    }

    pub(crate) fn s_isin_scalar_tensor() -> Samples {
        vec![
            sample![2, tensor(DType::I64, &[9], 1)],
            sample![2.0, tensor(F, &[5], 1), false, true],
            sample![2.5, tensor(DType::I64, &[5], 1)],
        ]
    }
}
