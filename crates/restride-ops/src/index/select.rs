//! Indexing of one dimension by a vector: `index_select`, `index_add`, `index_copy`, `index_fill`.

use restride_ir::{Args, Call, DType, Exactness, Meta, OpDef, OpError, OverlapCheck, Scalar};
use restride_kernels::index::{Axes, add_scaled, put_at, take_at};
use restride_kernels::movement::copy;
use restride_kernels::support::convert::gather;
use restride_kernels::support::scratch::{Temp, room, tensor_room};
use restride_tensor::{View, ViewMut};

use crate::index::{count_from_start, put_stretched, stretched_scratch};
use crate::movement::CARRIED;
use crate::support::promote::{check_holds, name};
use crate::support::strides::dense_like;
use crate::support::{Metas, Result, close, ensure, exact, fail, fresh, one};

/// Runs `f(operand, result)`; a 0-d operand counts as a vector of one element.
fn on_lifted(t: &View<'_>, out: &ViewMut<'_>, f: impl FnOnce(&View<'_>, &ViewMut<'_>) -> Result<()>) -> Result<()> {
    copy::with_dimension(t, |t| copy::with_dimension_mut(out, |out| f(t, out)))
}

/// Scratch bytes for a vector of indices at argument 2: their numbers, and their offsets in operand and result.
fn indices_scratch(a: &Args<'_, Meta>) -> Result<usize> {
    let count = a.tensor(2)?.layout.numel() as usize;
    Ok(room::<i64>(count) + 2 * room::<isize>(count))
}
fn vector_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    indices_scratch(a)
}
/// Scratch bytes for a vector of indices, and for values at argument 3.
fn values_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    Ok(indices_scratch(a)? + stretched_scratch(a.tensor(3)?, a.tensor(0)?.dtype))
}
/// Scratch bytes for a vector of indices, and for a number.
fn number_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let dtype = a.tensor(0)?.dtype;
    Ok(indices_scratch(a)? + tensor_room(dtype, 1))
}

/// The indices of a call that refuses negative ones, with PyTorch's message for the first invalid index.
fn vector(index: &View<'_>, size: i64, bad: impl Fn(i64) -> String) -> Result<Temp<i64>> {
    let at = gather::<i64>(*index);
    match at.iter().find(|i| !(0..size).contains(*i)) {
        Some(i) => fail(bad(*i)),
        None => Ok(at),
    }
}

fn is_index(d: DType) -> bool {
    matches!(d, DType::I64 | DType::I32)
}

fn infer_select(a: &Args<'_, Meta>) -> Metas {
    let (t, index) = (a.tensor(0)?, a.tensor(2)?);
    let d = t.layout.dim(a.int(1)?)?;
    ensure!(index.rank() <= 1, "index_select(): Index is supposed to be a vector");
    ensure!(is_index(index.dtype), "index_select(): Expected dtype int32 or int64 for index");
    let n = index.layout.numel();
    let mut sizes = t.layout.sizes.clone();
    match sizes.get_mut(d) {
        Some(size) => {
            ensure!(*size > 0 || n == 0, "index_select(): self indexing axis dim should be positive");
            *size = n;
        }
        None => ensure!(n == 1, "index_select(): Index to scalar can have only 1 value, got {n} value(s)"),
    }
    one(fresh(t.dtype, &sizes))
}
fn run_select(c: &Call<'_>) -> Result<()> {
    let (t, index, out) = (c.args.tensor(0)?, c.args.tensor(2)?, &c.outs[0]);
    let d = t.layout().dim(c.args.int(1)?)?;
    let small = t.sizes().len() <= 1;
    on_lifted(t, out, |t, out| {
        let size = t.sizes()[d];
        let at = vector(index, size, |i| {
            if small {
                return "index out of range in self".into();
            }
            format!("INDICES element is out of DATA bounds, id={i} axis_dim={size}")
        })?;
        take_at(t, &Axes::one(t.sizes().len(), d, at), out).map_err(OpError::new)
    })
}

/// Sizes without one dimension.
fn without(sizes: &[i64], d: usize) -> Vec<i64> {
    sizes.iter().enumerate().filter(|(i, _)| *i != d).map(|(_, n)| *n).collect()
}

/// Checks the source of a write along `dim` as PyTorch's `what` does; returns the dimension.
pub(crate) fn check_source(t: &Meta, dim: i64, index: &Meta, source: &Meta, what: &str) -> Result<usize> {
    let d = t.layout.dim(dim)?;
    ensure!(
        index.rank() <= 1,
        "{what}: Index is supposed to be a vector, but got dim: {} with type: {} and size: {:?}",
        index.rank(),
        name(index.dtype),
        index.sizes()
    );
    ensure!(is_index(index.dtype), "{what}: Expected dtype int32/int64 for index but got: {}", name(index.dtype));
    ensure!(
        t.dtype == source.dtype,
        "{what}: self ({}) and source ({}) must have the same scalar type",
        name(t.dtype),
        name(source.dtype)
    );
    ensure!(
        d == 0 || d < source.rank(),
        "{what}: Indexing dim {d} is out of bounds of the source tensor with dim {}",
        source.rank()
    );
    let (n, have) = (index.layout.numel(), source.sizes().get(d).copied().unwrap_or(1));
    ensure!(n == have, "{what}: Number of indices ({n}) should be equal to source.size(dim): ({have}), for dim: {d}");
    ensure!(
        t.rank() == source.rank() && without(t.sizes(), d) == without(source.sizes(), d),
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {:?} \
         source.shape = {:?}",
        t.sizes(),
        source.sizes()
    );
    Ok(d)
}

fn infer_add(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    check_source(t, a.int(1)?, a.tensor(2)?, a.tensor(3)?, "index_add_()")?;
    let alpha = a.scalar(4)?;
    ensure!(
        t.dtype.is_complex() || !matches!(alpha, Scalar::Complex(_)),
        "value cannot be converted to type {} without overflow",
        name(t.dtype)
    );
    one(fresh(t.dtype, t.sizes()))
}
fn run_add(c: &Call<'_>) -> Result<()> {
    let (t, index, source, out) = (c.args.tensor(0)?, c.args.tensor(2)?, c.args.tensor(3)?, &c.outs[0]);
    let (d, alpha) = (t.layout().dim(c.args.int(1)?)?, c.args.scalar(4)?);
    // A factor of 1 skips the product, which could turn an infinity into NaN.
    let plain = matches!(alpha, Scalar::Int(1) | Scalar::Bool(true)) || alpha == Scalar::Float(1.0);
    on_lifted(t, out, |t, out| {
        let at = vector(index, t.sizes()[d], |_| "index out of range in self".into())?;
        let axes = Axes::one(t.sizes().len(), d, at);
        copy::carry(t, out);
        let added = copy::with_dimension(source, |source| match plain {
            true => put_at(source, &axes, out, true),
            false => add_scaled(source, &axes, alpha, out),
        });
        added.map_err(OpError::new)
    })
}

fn infer_copy(a: &Args<'_, Meta>) -> Metas {
    let (t, index, source) = (a.tensor(0)?, a.tensor(2)?, a.tensor(3)?);
    let d = t.layout.dim(a.int(1)?)?;
    let (n, rank) = (index.layout.numel(), source.rank());
    ensure!(index.rank() < 2, "index_copy_(): Index should have dimension 1 or 0 (got {})", index.rank());
    ensure!(rank > 0 || n == 1, "index_copy_(): When source is scalar, index should have one element (got {n})");
    ensure!(
        rank == t.rank() || rank == 0 || t.rank() == 0,
        "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source \
         dimensionality ({rank}), destination dimensionality ({})",
        t.rank()
    );
    ensure!(
        index.dtype == DType::I64,
        "index_copy_(): Expected a long tensor for index, but got {}",
        name(index.dtype)
    );
    ensure!(
        t.dtype == source.dtype,
        "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
        name(t.dtype),
        name(source.dtype)
    );
    let (own, theirs) = (without(t.sizes(), d), without(source.sizes(), d));
    let show = |l: &[i64]| l.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    ensure!(
        own == theirs,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at dimension \
         {d} and source slice shape: {} at dimension 0.",
        show(&own),
        show(&theirs)
    );
    if let Some(have) = source.sizes().get(d) {
        ensure!(n == *have, "index_copy_(): Number of indices ({n}) should be equal to source.size(dim) ({have})");
    }
    one(fresh(t.dtype, t.sizes()))
}
fn run_copy(c: &Call<'_>) -> Result<()> {
    let (t, index, source, out) = (c.args.tensor(0)?, c.args.tensor(2)?, c.args.tensor(3)?, &c.outs[0]);
    let d = t.layout().dim(c.args.int(1)?)?;
    on_lifted(t, out, |t, out| {
        let size = t.sizes()[d];
        let at = vector(index, size, |i| {
            format!("index_copy_(): index {i} is out of bounds for dimension {d} with size {size}")
        })?;
        let axes = Axes::one(t.sizes().len(), d, at);
        copy::carry(t, out);
        put_stretched(source, &axes, &axes.sizes(t.sizes()), out, false)
    })
}

fn infer_fill(a: &Args<'_, Meta>, value: DType) -> Metas {
    let (t, index) = (a.tensor(0)?, a.tensor(2)?);
    ensure!(index.dtype == DType::I64, "index_fill_(): Expected dtype int64 for index.");
    t.layout.dim(a.int(1)?)?;
    ensure!(index.rank() <= 1, "Index has to be a vector/scalar");
    ensure!(
        t.dtype.is_complex() || !value.is_complex(),
        "index_fill_(): Converting complex Scalar to non-complex type is not supported"
    );
    one(Meta::new(t.dtype, dense_like(&t.layout)))
}
fn infer_fill_scalar(a: &Args<'_, Meta>) -> Metas {
    check_holds(a.tensor(0)?.dtype, a.scalar(3)?)?;
    infer_fill(a, a.scalar(3)?.dtype())
}
fn infer_fill_tensor(a: &Args<'_, Meta>) -> Metas {
    let value = a.tensor(3)?;
    ensure!(
        value.rank() == 0,
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
        value.rank()
    );
    infer_fill(a, value.dtype)
}
fn fill(c: &Call<'_>, value: &View<'_>) -> Result<()> {
    let (t, index, out) = (c.args.tensor(0)?, c.args.tensor(2)?, &c.outs[0]);
    let d = t.layout().dim(c.args.int(1)?)?;
    on_lifted(t, out, |t, out| {
        let n = t.sizes()[d];
        let mut at = gather::<i64>(*index);
        count_from_start(&mut at, d, n)?;
        let axes = Axes::one(t.sizes().len(), d, at);
        copy::carry(t, out);
        put_stretched(value, &axes, &axes.sizes(t.sizes()), out, false)
    })
}
fn run_fill_scalar(c: &Call<'_>) -> Result<()> {
    copy::number(c.args.scalar(3)?, |value| fill(c, value))
}
fn run_fill_tensor(c: &Call<'_>) -> Result<()> {
    fill(c, c.args.tensor(3)?)
}

/// Declares a write at indices along a dimension; the result carries other slices over.
const fn writes(def: OpDef, overlap: OverlapCheck) -> OpDef {
    OpDef { overlap, ..def.reusing(CARRIED).failing() }
}

pub(crate) static OPS: &[OpDef] = table![
    exact("index_select", infer_select, run_select, vector_scratch, samples!(s_select)).failing(),
    OpDef {
        halves_aside: true,
        exactness: Exactness::Within { rtol: 1e-5, atol: 1e-6 },
        ..writes(close("index_add", infer_add, run_add, vector_scratch, samples!(s_add)), OverlapCheck::Any)
    },
    writes(exact("index_copy", infer_copy, run_copy, values_scratch, samples!(s_copy)), OverlapCheck::Any),
    writes(
        exact("index_fill.int_Scalar", infer_fill_scalar, run_fill_scalar, number_scratch, samples!(s_fill)),
        OverlapCheck::Index,
    ),
    writes(
        exact("index_fill.int_Tensor", infer_fill_tensor, run_fill_tensor, values_scratch, samples!(s_fill_tensor)),
        OverlapCheck::Index,
    ),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn p() -> RawTensor {
        transposed(F, &[4, 5, 3], 1)
    }

    pub(crate) fn s_select() -> Vec<Sample> {
        vec![
            sample![p(), 1, ints(&[4, 0, 0], &[3])],
            sample![strided(DType::I64, &[4, 3], 1), -1, RawTensor::from_slice(&[2i32, 1], &[2])],
            sample![expanded(DType::C64, &[4, 3], 1), 0, ints(&[1, 1], &[2])],
            sample![p(), 0, ints(&[1], &[])],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[1])],
            sample![tensor(F, &[], 1), 0, ints(&[0, 0], &[2])],
            sample![tensor(F, &[], 1), 0, ints(&[1], &[1])],
            sample![tensor(DType::Bool, &[5], 1), 0, tensor(DType::U8, &[2], 1)],
            sample![p(), 2, ints(&[], &[0])],
            sample![tensor(F, &[0, 3], 1), 0, ints(&[0], &[1])],
            sample![tensor(F, &[0, 3], 1), 1, ints(&[2, 2], &[2])],
            sample![p(), 1, ints(&[5], &[1])],
            sample![p(), 1, ints(&[-1], &[1])],
            sample![tensor(F, &[3], 1), 0, ints(&[3], &[1])],
            sample![p(), 1, ints(&[1, 1], &[2, 1])],
        ]
    }

    pub(crate) fn s_add() -> Vec<Sample> {
        vec![
            sample![p(), 1, ints(&[4, 0, 0], &[3]), strided(F, &[4, 3, 3], 2)],
            sample![p(), -1, ints(&[1, 1], &[2]), tensor(F, &[4, 5, 2], 2), 2.5],
            sample![
                strided(DType::I8, &[3, 2], 1),
                0,
                RawTensor::from_slice(&[2i32, 2], &[2]),
                tensor(DType::I8, &[2, 2], 2),
                100
            ],
            sample![tensor(DType::C64, &[3], 1), 0, ints(&[2, 2], &[2]), tensor(DType::C64, &[2], 2)],
            sample![
                tensor(DType::C64, &[3], 1),
                0,
                ints(&[2, 2], &[2]),
                tensor(DType::C64, &[2], 2),
                complex(0.5, 2.0)
            ],
            sample![tensor(DType::BF16, &[3, 2], 1), 0, ints(&[2, 2], &[2]), tensor(DType::BF16, &[2, 2], 2), 0.5],
            sample![tensor(DType::Bool, &[3], 1), 0, ints(&[2, 0], &[2]), tensor(DType::Bool, &[2], 2)],
            sample![tensor(DType::I64, &[3], 1), 0, ints(&[2, 0], &[2]), tensor(DType::I64, &[2], 2), 1.5],
            sample![tensor(DType::I64, &[3, 1], 1), 0, ints(&[2, 0], &[2]), tensor(DType::I64, &[2, 1], 2), 1.5],
            sample![expanded(F, &[4, 3], 1), 0, ints(&[0], &[1]), tensor(F, &[1, 3], 2)],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[1]), tensor(F, &[], 2)],
            sample![tensor(F, &[3], 1), 0, ints(&[1], &[]), tensor(F, &[1], 2)],
            sample![tensor(F, &[0, 3], 1), 0, ints(&[], &[0]), tensor(F, &[0, 3], 2)],
            sample![tensor(F, &[3], 1), 0, ints(&[1], &[1]), tensor(F, &[], 2)],
            sample![p(), 1, ints(&[5], &[1]), tensor(F, &[4, 1, 3], 2)],
            sample![p(), 1, ints(&[1], &[1]), tensor(F, &[4, 2, 3], 2)],
            sample![p(), 1, ints(&[1], &[1]), tensor(F, &[3, 1, 3], 2)],
            sample![p(), 1, ints(&[1], &[1]), tensor(DType::F64, &[4, 1, 3], 2)],
        ]
    }

    pub(crate) fn s_copy() -> Vec<Sample> {
        vec![
            sample![p(), 1, ints(&[4, 0, 0], &[3]), strided(F, &[4, 3, 3], 2)],
            sample![strided(DType::C64, &[3, 2], 1), 0, ints(&[2], &[]), tensor(DType::C64, &[1, 2], 2)],
            sample![expanded(DType::Bool, &[4, 3], 1), 0, ints(&[0], &[1]), tensor(DType::Bool, &[1, 3], 2)],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[1]), tensor(F, &[], 2)],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[1]), tensor(F, &[1], 2)],
            sample![tensor(F, &[3], 1), 0, ints(&[1], &[1]), tensor(F, &[], 2)],
            sample![tensor(F, &[3], 1), 0, ints(&[1, 2], &[2]), tensor(F, &[], 2)],
            sample![p(), 1, ints(&[5], &[1]), tensor(F, &[4, 1, 3], 2)],
            sample![p(), 1, ints(&[-1], &[1]), tensor(F, &[4, 1, 3], 2)],
            sample![p(), 1, ints(&[1], &[1]), tensor(F, &[4, 2, 3], 2)],
            sample![p(), 1, ints(&[1], &[1]), tensor(F, &[3, 1, 3], 2)],
            sample![p(), 1, ints(&[1], &[1]), tensor(DType::F64, &[4, 1, 3], 2)],
            sample![p(), 1, RawTensor::from_slice(&[1i32], &[1]), tensor(F, &[4, 1, 3], 2)],
        ]
    }

    pub(crate) fn s_fill() -> Vec<Sample> {
        vec![
            sample![p(), 1, ints(&[4, 0, -2], &[3]), 1.5],
            sample![strided(DType::I32, &[3, 2], 1), 0, ints(&[2], &[]), 2.7],
            sample![expanded(DType::C64, &[4, 3], 1), 0, ints(&[0], &[1]), 3],
            sample![tensor(DType::Bool, &[3], 1), 0, ints(&[1], &[1]), 2],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[1]), 7],
            sample![tensor(F, &[0, 3], 1), 1, ints(&[0], &[1]), 7],
            sample![p(), 2, ints(&[], &[0]), 7],
            sample![p(), 1, ints(&[5], &[1]), 1],
            sample![p(), 1, ints(&[1], &[1, 1]), 1],
            sample![p(), 1, RawTensor::from_slice(&[1i32], &[1]), 1],
        ]
    }

    pub(crate) fn s_fill_tensor() -> Vec<Sample> {
        vec![
            sample![p(), 1, ints(&[4, 0, -2], &[3]), tensor(DType::F64, &[], 2)],
            sample![strided(DType::I32, &[3, 2], 1), 0, ints(&[2], &[]), tensor(F, &[], 2)],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[1]), tensor(DType::I64, &[], 2)],
            sample![p(), 1, ints(&[1], &[1]), tensor(F, &[1], 2)],
        ]
    }
}
