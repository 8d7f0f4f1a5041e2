//! Indexed writes: along a dimension, flat, or by masks. `gather.rs` has the reads.

use restride_ir::{Args, Call, DType, Exactness, Meta, OpDef, OpError, OverlapCheck, SampleFn, ScratchFn};
use restride_kernels::index::scatter::{Reduce, Source, gather_room, scatter, scatter_room};
use restride_kernels::index::{nonzero, nonzero_room, put_flat, put_flat_room};
use restride_kernels::movement::copy;
use restride_kernels::support::convert::gather as values_of;
use restride_kernels::support::scratch::Temp;
use restride_tensor::View;

use crate::movement::CARRIED;
use crate::support::promote::{check_holds, name};
use crate::support::scratch::stored;
use crate::support::strides::{broadcast_sizes, dense_like};
use crate::support::{Metas, Result, ensure, exact, fail, fresh, one};

/// Sizes with at least one dimension.
pub(crate) fn nonempty(sizes: &[i64]) -> &[i64] {
    if sizes.is_empty() { &[1] } else { sizes }
}
pub(crate) fn is_index(d: DType) -> bool {
    matches!(d, DType::I64 | DType::I32)
}
pub(crate) fn has_elements(m: &Meta) -> bool {
    !m.sizes().contains(&0)
}

/// Checks a scatter as PyTorch does.
fn check_scatter(t: &Meta, dim: i64, index: &Meta, src: Option<&Meta>) -> Metas {
    let d = t.layout.dim(dim)?;
    if let Some(src) = src {
        ensure!(t.dtype == src.dtype, "scatter(): Expected self.dtype to be equal to src.dtype");
    }
    if has_elements(index) {
        ensure!(is_index(index.dtype), "scatter(): Expected dtype int32/int64 for index");
        let (own, at) = (nonempty(t.sizes()), nonempty(index.sizes()));
        ensure!(own.len() == at.len(), "Index tensor must have the same number of dimensions as self tensor");
        let small = own.iter().zip(at).enumerate().any(|(i, (n, m))| i != d && m > n);
        match src {
            None => ensure!(
                !small,
                "Expected index {:?} to be no larger than self {:?} apart from dimension {d}",
                index.sizes(),
                t.sizes()
            ),
            Some(src) => {
                let from = nonempty(src.sizes());
                ensure!(from.len() == at.len(), "Index tensor must have the same number of dimensions as src tensor");
                ensure!(
                    !small && from.iter().zip(at).all(|(n, m)| m <= n),
                    "Expected index {:?} to be no larger than self {:?} apart from dimension {d} and to be no larger \
                     size than src {:?}",
                    index.sizes(),
                    t.sizes(),
                    src.sizes()
                );
            }
        }
    }
    one(fresh(t.dtype, t.sizes()))
}

fn infer_src(a: &Args<'_, Meta>) -> Metas {
    check_scatter(a.tensor(0)?, a.int(1)?, a.tensor(2)?, Some(a.tensor(3)?))
}
fn infer_value(a: &Args<'_, Meta>) -> Metas {
    check_holds(a.tensor(0)?.dtype, a.scalar(3)?)?;
    check_scatter(a.tensor(0)?, a.int(1)?, a.tensor(2)?, None)
}
fn infer_reduce(a: &Args<'_, Meta>) -> Metas {
    old_reduce(a.str(4)?)?;
    infer_src(a)
}
fn infer_value_reduce(a: &Args<'_, Meta>) -> Metas {
    old_reduce(a.str(4)?)?;
    infer_value(a)
}
fn infer_two(a: &Args<'_, Meta>) -> Metas {
    let (how, t) = (new_reduce(a.str(4)?)?, a.tensor(0)?);
    let ordered = matches!(how, Reduce::Max | Reduce::Min);
    ensure!(
        (!ordered || !t.dtype.is_complex()) && (how != Reduce::Mean || t.dtype != DType::Bool),
        "\"scatter_gather_tensor_cpu_reduce_{}\" not implemented for '{}'",
        a.str(4)?,
        name(t.dtype)
    );
    infer_src(a)
}

/// Reductions of `scatter.reduce`.
fn old_reduce(how: &str) -> Result<Reduce> {
    match how {
        "add" => Ok(Reduce::Sum),
        "multiply" => Ok(Reduce::Prod),
        _ => fail("reduce argument must be either add or multiply."),
    }
}
/// Reductions of `scatter_reduce`.
fn new_reduce(how: &str) -> Result<Reduce> {
    match how {
        "sum" => Ok(Reduce::Sum),
        "prod" => Ok(Reduce::Prod),
        "mean" => Ok(Reduce::Mean),
        "amax" => Ok(Reduce::Max),
        "amin" => Ok(Reduce::Min),
        other => fail(format!("reduce argument must be either sum, prod, mean, amax or amin, got {other}")),
    }
}

fn run(c: &Call<'_>, how: Reduce, keep: bool) -> Result<()> {
    let (t, index, out) = (c.args.tensor(0)?, c.args.tensor(2)?, &c.outs[0]);
    let d = t.layout().dim(c.args.int(1)?)?;
    copy::carry(t, out);
    if index.numel() == 0 {
        return Ok(());
    }
    // A number first converts to the element type.
    let src = match c.args.as_tensor(3) {
        Some(src) => Source::Tensor(*src),
        None => Source::Number(copy::held(t.dtype(), c.args.scalar(3)?)),
    };
    scatter(out, d, index, src, how, keep).map_err(OpError::new)
}
fn run_set(c: &Call<'_>) -> Result<()> {
    run(c, Reduce::Set, true)
}
fn run_sum(c: &Call<'_>) -> Result<()> {
    run(c, Reduce::Sum, true)
}
fn run_reduce(c: &Call<'_>) -> Result<()> {
    run(c, old_reduce(c.args.str(4)?)?, true)
}
fn run_two(c: &Call<'_>) -> Result<()> {
    run(c, new_reduce(c.args.str(4)?)?, c.args.bool(5)?)
}

fn room(a: &Args<'_, Meta>, outs: &[Meta], how: Reduce, keep: bool) -> Result<usize> {
    Ok(scatter_room(stored(a.tensor(2)?), stored(&outs[0]), how, keep))
}
fn set_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    room(a, outs, Reduce::Set, true)
}
fn sum_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    room(a, outs, Reduce::Sum, true)
}
fn reduce_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    room(a, outs, old_reduce(a.str(4)?)?, true)
}
fn two_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    room(a, outs, new_reduce(a.str(4)?)?, a.bool(5)?)
}

/// Flat indices into `n` elements, with negative ones counted from the end.
pub(crate) fn flat(index: &View<'_>, n: i64) -> Result<Temp<i64>> {
    let mut at = values_of::<i64>(*index);
    for i in &mut at {
        ensure!((-n..n).contains(i), "out of range: tried to access index {i} on a tensor of {n} elements.");
        *i += if *i < 0 { n } else { 0 };
    }
    Ok(at)
}
fn infer_put(a: &Args<'_, Meta>) -> Metas {
    let (t, index, source) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    ensure!(index.dtype == DType::I64, "put_(): Expected a long tensor for index, but got {}", name(index.dtype));
    ensure!(
        t.dtype == source.dtype,
        "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
        name(t.dtype),
        name(source.dtype)
    );
    let (n, m) = (source.layout.numel(), index.layout.numel());
    ensure!(
        n == m,
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = {n}, \
         index.numel() = {m}"
    );
    ensure!(has_elements(t) || n == 0, "put_(): Tried to put elements into an empty tensor");
    one(Meta::new(t.dtype, dense_like(&t.layout)))
}
fn run_put(c: &Call<'_>) -> Result<()> {
    let (t, out) = (c.args.tensor(0)?, &c.outs[0]);
    let at = flat(c.args.tensor(1)?, t.numel() as i64)?;
    copy::carry(t, out);
    put_flat(c.args.tensor(2)?, &at, out, c.args.bool(3)?).map_err(OpError::new)
}

fn put_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let (n, values) = (a.tensor(1)?.layout.numel(), a.tensor(2)?.layout.numel());
    Ok(gather_room(n) + put_flat_room(n, values))
}

fn infer_masked(a: &Args<'_, Meta>) -> Metas {
    let (t, mask, source) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let sizes = broadcast_sizes(&[t.sizes(), mask.sizes()])?;
    ensure!(
        t.dtype == source.dtype,
        "masked_scatter: expected self and source to have same dtypes but got{} and {}",
        name(t.dtype),
        name(source.dtype)
    );
    ensure!(
        mask.dtype == DType::Bool,
        "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
        name(mask.dtype)
    );
    one(fresh(t.dtype, &sizes))
}
fn run_masked(c: &Call<'_>) -> Result<()> {
    let (t, mask, source, out) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.tensor(2)?, &c.outs[0]);
    let at = copy::expanded(mask, out.sizes(), |mask| Ok(nonzero(mask))).map_err(OpError::new)?;
    ensure!(at.len() <= source.numel(), "Number of elements of source < number of ones in mask");
    if t.sizes() == out.sizes() {
        copy::carry(t, out);
    } else {
        copy::stretched(t, out).map_err(OpError::new)?;
    }
    put_flat(source, &at, out, false).map_err(OpError::new)
}

fn masked_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (n, values) = (outs[0].layout.numel(), a.tensor(2)?.layout.numel());
    Ok(nonzero_room(n) + put_flat_room(n, values))
}

/// Declares a write at indices or under a mask; the result carries unwritten elements over.
const fn writes(
    schema: &'static str,
    infer: restride_ir::InferFn,
    run: fn(&Call<'_>) -> Result<()>,
    room: ScratchFn,
    samples: Option<SampleFn>,
) -> OpDef {
    OpDef { reuse: CARRIED, overlap: OverlapCheck::Any, ..exact(schema, infer, run, room, samples).failing() }
}
/// Marks a write that PyTorch computes in place on the whole target in `f32` for 16-bit floats.
const fn aside(def: OpDef) -> OpDef {
    OpDef { halves_aside: true, ..def }
}
/// Marks a write that computes sums or products.
const fn sums(def: OpDef) -> OpDef {
    OpDef { exactness: Exactness::Within { rtol: 1e-5, atol: 1e-6 }, ..def }
}

pub(crate) static OPS: &[OpDef] = table![
    aside(writes("scatter.src", infer_src, run_set, set_scratch, samples!(s_src))),
    aside(writes("scatter.value", infer_value, run_set, set_scratch, samples!(s_value))),
    aside(sums(writes("scatter.reduce", infer_reduce, run_reduce, reduce_scratch, samples!(s_reduce)))),
    aside(sums(writes(
        "scatter.value_reduce",
        infer_value_reduce,
        run_reduce,
        reduce_scratch,
        samples!(s_value_reduce),
    ))),
    aside(sums(writes("scatter_add", infer_src, run_sum, sum_scratch, samples!(s_src)))),
    aside(sums(writes("scatter_reduce.two", infer_two, run_two, two_scratch, samples!(s_two)))),
    sums(writes("put", infer_put, run_put, put_scratch, samples!(s_put))),
    OpDef {
        overlap: OverlapCheck::Target,
        ..writes("masked_scatter", infer_masked, run_masked, masked_scratch, samples!(s_masked))
    },
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn index(sizes: &[i64], below: i64, seed: u64) -> RawTensor {
        crate::support::samples::in_range(DType::I64, Layout::contiguous(sizes), seed, 0.0, below as f64)
    }

    /// Sample indices in every second cell of a transposed tensor.
    pub(crate) fn odd_index(sizes: &[i64], below: i64, seed: u64) -> RawTensor {
        let mut perm: Vec<usize> = (0..sizes.len()).collect();
        perm.reverse();
        crate::support::samples::in_range(DType::I64, Layout::permuted(sizes, &perm), seed, 0.0, below as f64)
    }

    pub(crate) fn p() -> RawTensor {
        transposed(F, &[4, 5, 3], 1)
    }

    pub(crate) fn scatters(extra: &[restride_ir::SampleArg]) -> Vec<Sample> {
        let all = vec![
            sample![p(), 1, odd_index(&[3, 2, 3], 5, 2), strided(F, &[3, 4, 3], 3)],
            sample![strided(DType::I64, &[4, 3], 1), 0, index(&[7, 2], 4, 2), transposed(DType::I64, &[7, 2], 3)],
            sample![expanded(DType::BF16, &[4, 3], 1), -1, index(&[4, 4], 3, 2), tensor(DType::BF16, &[4, 4], 3)],
            sample![
                tensor(DType::U8, &[4], 1),
                0,
                RawTensor::from_slice(&[3i32, 0, 3], &[3]),
                tensor(DType::U8, &[3], 3)
            ],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[]), tensor(F, &[], 3)],
            sample![tensor(F, &[], 1), 0, ints(&[0], &[1]), tensor(F, &[1], 3)],
            sample![p(), 1, ints(&[], &[0]), tensor(F, &[2], 3)],
            sample![p(), 1, index(&[5, 2, 3], 5, 2), tensor(F, &[5, 2, 3], 3)],
            sample![p(), 1, index(&[2, 2, 3], 5, 2), tensor(F, &[2, 1, 3], 3)],
            sample![p(), 1, index(&[2, 2], 5, 2), tensor(F, &[2, 2], 3)],
            sample![p(), 1, ints(&[5], &[1, 1, 1]), tensor(F, &[1, 1, 1], 3)],
            sample![p(), 1, ints(&[-1], &[1, 1, 1]), tensor(F, &[1, 1, 1], 3)],
            sample![p(), 1, ints(&[1], &[1, 1, 1]), tensor(DType::F64, &[1, 1, 1], 3)],
        ];
        all.into_iter()
            .map(|mut s| {
                s.args.extend(extra.iter().cloned());
                s
            })
            .collect()
    }

    pub(crate) fn s_src() -> Vec<Sample> {
        let mut all = scatters(&[]);
        all.push(sample![tensor(DType::C64, &[4], 1), 0, ints(&[3, 0, 3], &[3]), tensor(DType::C64, &[3], 3)]);
        all.push(sample![tensor(DType::Bool, &[4], 1), 0, ints(&[3, 0, 3], &[3]), tensor(DType::Bool, &[3], 3)]);
        all
    }

    pub(crate) fn with_numbers(extra: &[restride_ir::SampleArg]) -> Vec<Sample> {
        let mut all = scatters(&[]);
        all.push(sample![tensor(DType::I32, &[4], 1), 0, ints(&[3, 0, 3], &[3]), ()]);
        let numbers = [Scalar::Float(2.5), Scalar::Int(3)];
        for (i, s) in all.iter_mut().enumerate() {
            s.args.truncate(3);
            s.args.push(restride_ir::Arg::Scalar(numbers[i % 2]));
            s.args.extend(extra.iter().cloned());
        }
        all
    }

    pub(crate) fn s_value() -> Vec<Sample> {
        let mut all = with_numbers(&[]);
        all.push(sample![tensor(DType::U8, &[4], 1), 0, ints(&[3], &[1]), 300]);
        all
    }

    pub(crate) fn word(s: &str) -> restride_ir::SampleArg {
        restride_ir::Arg::Str(s.into())
    }

    pub(crate) fn flag(b: bool) -> restride_ir::SampleArg {
        restride_ir::Arg::Scalar(Scalar::Bool(b))
    }

    pub(crate) fn s_reduce() -> Vec<Sample> {
        let mut all = scatters(&[word("add")]);
        all.extend(scatters(&[word("multiply")]));
        all.extend(scatters(&[word("sum")]).into_iter().take(1));
        all
    }

    pub(crate) fn s_value_reduce() -> Vec<Sample> {
        let mut all = with_numbers(&[word("add")]);
        all.extend(with_numbers(&[word("multiply")]));
        all
    }

    pub(crate) fn s_two() -> Vec<Sample> {
        let mut all = Vec::new();
        for how in ["sum", "prod", "mean", "amax", "amin"] {
            for keep in [true, false] {
                all.extend(scatters(&[word(how), flag(keep)]));
                for dtype in [DType::Bool, DType::C64, DType::F16, DType::I8] {
                    let (t, src) = (tensor(dtype, &[4], 1), tensor(dtype, &[3], 3));
                    all.push(sample![t, 0, ints(&[3, 0, 3], &[3]), src, word(how), keep]);
                }
            }
        }
        all.extend(scatters(&[word("add"), flag(true)]).into_iter().take(1));
        all
    }

    pub(crate) fn s_put() -> Vec<Sample> {
        vec![
            sample![p(), odd_index(&[2, 3], 60, 2), strided(F, &[3, 2], 3)],
            sample![strided(DType::C64, &[4, 3], 1), ints(&[-1, 0, -12], &[3]), tensor(DType::C64, &[3], 3)],
            sample![strided(DType::I8, &[4, 3], 1), ints(&[-1, 0, 11], &[3]), tensor(DType::I8, &[3], 3), true],
            sample![expanded(F, &[4, 3], 1), ints(&[5], &[]), tensor(F, &[1], 3)],
            sample![tensor(F, &[], 1), ints(&[0], &[1]), tensor(F, &[], 3), true],
            sample![tensor(F, &[0], 1), ints(&[], &[0]), tensor(F, &[0], 3)],
            sample![tensor(F, &[0], 1), ints(&[0], &[1]), tensor(F, &[1], 3)],
            sample![p(), ints(&[60], &[1]), tensor(F, &[1], 3)],
            sample![p(), ints(&[6], &[1]), tensor(F, &[2], 3)],
            sample![p(), ints(&[6], &[1]), tensor(DType::F64, &[1], 3)],
        ]
    }

    pub(crate) fn s_masked() -> Vec<Sample> {
        vec![
            sample![p(), tensor(DType::Bool, &[4, 5, 3], 2), strided(F, &[60], 3)],
            sample![strided(DType::C64, &[4, 3], 1), tensor(DType::Bool, &[3], 2), transposed(DType::C64, &[4, 5], 3)],
            sample![tensor(F, &[3], 1), transposed(DType::Bool, &[4, 3], 2), tensor(F, &[4, 5], 3)],
            sample![tensor(F, &[], 1), tensor(DType::Bool, &[], 2), tensor(F, &[1], 3)],
            sample![tensor(F, &[0, 3], 1), tensor(DType::Bool, &[3], 2), tensor(F, &[0], 3)],
            sample![p(), tensor(DType::Bool, &[4, 5, 3], 2), tensor(F, &[3], 3)],
            sample![p(), tensor(DType::Bool, &[4], 2), tensor(F, &[60], 3)],
            sample![p(), tensor(DType::U8, &[4, 5, 3], 2), tensor(F, &[60], 3)],
            sample![p(), tensor(DType::Bool, &[4, 5, 3], 2), tensor(DType::F64, &[60], 3)],
        ]
    }
}
