//! Indexing: `index` and `index_put` with PyTorch's checks, dimension order and strides; `gather`, `scatter`, `nonzero`.

pub(crate) mod find;
mod gather;
mod grad;
mod masked;
mod reduce;
mod scatter;
mod select;

use restride_ir::{Arg, SampleFn, Scalar};
use restride_ir::{
    Args, Call, DType, Dims, Emit, Exactness, Fails, Kernel, Layout, Meta, OpDef, OpError, Operands, OverlapCheck, Val,
};
use restride_kernels::index::{Axes, SomeDims, first_outside, nonzero, nonzero_room, put_at, split_last, take_at};
use restride_kernels::movement::copy;
use restride_kernels::support::convert::gather;
use restride_kernels::support::rows::cells;
use restride_kernels::support::scratch::{self, Temp, room, tensor_room};
use restride_tensor::PerDim;
use restride_tensor::View;
use smallvec::{SmallVec, smallvec};

use crate::movement::CARRIED;
use crate::reduce::Marks;
use crate::support::promote::name;
use crate::support::strides;
use crate::support::{Metas, Result, ValArgs, Vals, close, ensure, fail, one};

fn is_mask(d: DType) -> bool {
    matches!(d, DType::Bool | DType::U8)
}

/// Checks the types and ranks of indices as PyTorch does; returns the number of dimensions that they cover.
fn check_indices(rank: usize, sizes: &[i64], indices: &[Option<(DType, &Layout)>]) -> Result<()> {
    let too_many = |n: usize| {
        ensure!(n <= rank, "too many indices for tensor of dimension {rank} (got {n})");
        Ok(())
    };
    too_many(indices.len())?;
    let mut at = 0;
    for index in indices {
        let Some((dtype, l)) = *index else {
            at += 1;
            continue;
        };
        ensure!(
            is_mask(dtype) || matches!(dtype, DType::I64 | DType::I32),
            "tensors used as indices must be long, int, byte or bool tensors"
        );
        if !is_mask(dtype) {
            at += 1;
            continue;
        }
        ensure!(l.rank() > 0, "a 0-d mask as an index is not supported: use masked_fill or where");
        too_many(at + l.rank())?;
        for j in 0..l.rank() {
            ensure!(
                l.sizes[j] == sizes[at + j],
                "The shape of the mask {:?} at index {j} does not match the shape of the indexed tensor {sizes:?} at \
                 index {}",
                &l.sizes[..],
                at + j
            );
        }
        at += l.rank();
    }
    too_many(at)?;
    ensure!(indices.iter().any(Option::is_some), "at least one index must be provided");
    Ok(())
}

/// Indexed dimensions, then the result's other dimensions before and after those of the indices.
///
/// Other dimensions come first only if the indexed ones are adjacent.
fn arrange(rank: usize, given: &[bool]) -> (SomeDims, SomeDims, SomeDims) {
    let is = |d: &usize| given.get(*d).copied().unwrap_or(false);
    let indexed: SomeDims = (0..rank).filter(is).collect();
    let (Some(&first), Some(&last)) = (indexed.first(), indexed.last()) else {
        return (indexed, (0..rank).collect(), SomeDims::new());
    };
    if last - first + 1 == indexed.len() {
        (indexed, (0..first).collect(), (last + 1..rank).collect())
    } else {
        (indexed, SomeDims::new(), (0..rank).filter(|d| !is(d)).collect())
    }
}

fn common_shape(shapes: &[&[i64]]) -> Result<Dims<i64>> {
    strides::broadcast_sizes(shapes).map_err(|_| {
        let list: Vec<String> = shapes.iter().map(|s| format!("{s:?}")).collect();
        OpError::new(format!(
            "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
            list.join(", ")
        ))
    })
}

fn check_empty(sizes: &[i64], indexed: &[usize], shape: &[i64]) -> Result<()> {
    let out_of_range = indexed.iter().any(|&d| sizes[d] == 0) && !shape.contains(&0);
    ensure!(!out_of_range, "index is out of bounds for dimension with size 0");
    Ok(())
}

/// Type of an indexed result. PyTorch iterates over operand (with stride 0 in indexed dimensions) and indices together; the
/// result's strides follow from theirs.
fn picked(t: &Meta, indices: &[Option<&Meta>]) -> Result<Meta> {
    let of = |m: &&'_ Meta| (m.dtype, m.layout.clone());
    let given: Vec<Option<(DType, Layout)>> = indices.iter().map(|i| i.as_ref().map(of)).collect();
    let refs: Vec<Option<(DType, &Layout)>> = given.iter().map(|i| i.as_ref().map(|(d, l)| (*d, l))).collect();
    check_indices(t.rank(), t.sizes(), &refs)?;
    if indices.iter().flatten().any(|m| is_mask(m.dtype)) {
        return fail("the number of elements that a mask picks is not known before the run");
    }
    let (indexed, before, after) = arrange(t.rank(), &indices.iter().map(Option::is_some).collect::<Vec<_>>());
    let shape = common_shape(&indices.iter().flatten().map(|m| m.sizes()).collect::<Vec<_>>())?;
    check_empty(t.sizes(), &indexed, &shape)?;
    let l = &t.layout;
    let mut source = Layout::contiguous(&[]);
    let still: Vec<(i64, i64)> = shape.iter().map(|n| (*n, 0)).collect();
    let dims = |ds: &[usize]| ds.iter().map(|&d| (l.sizes[d], l.strides[d])).collect::<Vec<_>>();
    for (n, s) in dims(&before).into_iter().chain(still).chain(dims(&after)) {
        source.sizes.push(n);
        source.strides.push(s);
    }
    let mut wide: Dims<i64> = smallvec![1; before.len()];
    wide.extend(shape.iter().copied());
    wide.extend(after.iter().map(|_| 1));
    let mut operands = vec![source];
    for index in indices.iter().flatten() {
        let mut l = strides::broadcast(&index.layout, &shape);
        if index.dtype == DType::I32 {
            l = strides::dense_like(&l);
        }
        operands.push(l.view(&wide).unwrap_or_else(|| Layout::contiguous(&wide)));
    }
    Ok(Meta::new(t.dtype, strides::pointwise(&operands.iter().collect::<Vec<_>>())?))
}

fn infer_index(a: &Args<'_, Meta>) -> Metas {
    one(picked(a.tensor(0)?, &a.opt_tensors(1)?)?)
}

/// Indices of a dimension of size `n`, which may count from its end, as non-negative numbers. An error names the dimension `d`.
pub(crate) fn count_from_start(indices: &mut [i64], d: usize, n: i64) -> Result<()> {
    if let Some(i) = first_outside(indices, -n..n) {
        return fail(format!("index {i} is out of bounds for dimension {d} with size {n}"));
    }
    indices.iter_mut().for_each(|i| *i += if *i < 0 { n } else { 0 });
    Ok(())
}

/// The indices of a call as non-negative numbers of one shape; masks become the positions that they select.
fn axes(sizes: &[i64], indices: &[Option<&View<'_>>]) -> Result<Axes> {
    let types: Operands<Option<(DType, &Layout)>> =
        indices.iter().map(|i| i.map(|v| (v.dtype(), v.layout()))).collect();
    check_indices(sizes.len(), sizes, &types)?;
    let mut given: PerDim<Option<(Dims<i64>, Temp<i64>)>> = PerDim::new();
    for index in indices {
        match index {
            None => given.push(None),
            Some(v) if is_mask(v.dtype()) => {
                let mut flat = nonzero(v);
                let first = given.len();
                for &size in v.sizes().iter().rev() {
                    let mut column = Temp::filled(flat.len(), 0);
                    split_last(&mut flat, size, |i, at| column[i] = at);
                    given.push(Some((smallvec![flat.len() as i64], column)));
                }
                given[first..].reverse();
            }
            Some(v) => given.push(Some((v.sizes().iter().copied().collect(), gather::<i64>(**v)))),
        }
    }
    let (indexed, before, after) = arrange(sizes.len(), &given.iter().map(Option::is_some).collect::<Marks>());
    let shape = common_shape(&given.iter().flatten().map(|(s, _)| &s[..]).collect::<Operands<_>>())?;
    check_empty(sizes, &indexed, &shape)?;
    let mut at = SmallVec::new();
    for (j, ((own, mut values), &d)) in given.into_iter().flatten().zip(&indexed).enumerate() {
        let n = sizes[d];
        count_from_start(&mut values, j, n)?;
        if own != shape {
            let from = cells(&Layout::contiguous(&own).expand(&shape)?);
            values = from.iter().map(|&c| values[c as usize]).collect();
        }
        at.push(values);
    }
    Ok(Axes { indexed, before, after, shape, at })
}

/// Scratch bytes for the indices at argument 1: their numbers, and their offsets in operand and result.
fn indices_scratch(a: &Args<'_, Meta>, picked: i64) -> Result<usize> {
    let given = a.opt_tensors(1)?;
    let count = picked.max(0) as usize;
    let own: usize = given.iter().flatten().map(|i| room::<i64>(i.layout.numel() as usize)).sum();
    // Indices that broadcast need their numbers twice.
    let shapes = given.iter().flatten().map(|i| i.sizes()).collect::<Operands<_>>();
    let same = shapes.windows(2).all(|w| w[0] == w[1]);
    let stretched = if same { 0 } else { 2 * shapes.len() * room::<i64>(count) };
    Ok(own + stretched + 2 * room::<isize>(count))
}

/// Number of positions that the indices select.
fn places(a: &Args<'_, Meta>) -> Result<i64> {
    let given = a.opt_tensors(1)?;
    let shapes = given.iter().flatten().map(|i| i.sizes()).collect::<Operands<_>>();
    Ok(common_shape(&shapes)?.iter().product())
}

fn index_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    indices_scratch(a, places(a)?)
}

fn run_index(c: &Call<'_>) -> Result<()> {
    let t = c.args.tensor(0)?;
    take_at(t, &axes(t.sizes(), &c.args.opt_tensors(1)?)?, &c.outs[0]).map_err(OpError::new)
}

fn has_mask(a: &Args<'_, Meta>) -> bool {
    a.opt_tensors(1).is_ok_and(|indices| indices.iter().flatten().any(|m| is_mask(m.dtype)))
}

/// Composes an index with masks: each mask becomes the positions that it selects.
fn unmasked(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let t = e.meta(*a.tensor(0)?);
    let indices: Vec<Option<Val>> = a.opt_tensors(1)?.into_iter().map(|i| i.copied()).collect();
    let metas: Vec<Option<Meta>> = indices.iter().map(|i| i.map(|v| e.meta(v))).collect();
    let refs: Vec<Option<(DType, &Layout)>> = metas.iter().map(|m| m.as_ref().map(|m| (m.dtype, &m.layout))).collect();
    check_indices(t.rank(), t.sizes(), &refs)?;
    let mut plain: Vec<Option<Val>> = Vec::new();
    for (index, meta) in indices.into_iter().zip(&metas) {
        match (index, meta) {
            (Some(v), Some(m)) if is_mask(m.dtype) => {
                let found = e.call("aten.nonzero.default", &[Arg::Value(v)])?[0];
                for j in 0..m.rank() as i64 {
                    let column = [Arg::Value(found), Arg::Scalar(Scalar::Int(1)), Arg::Scalar(Scalar::Int(j))];
                    plain.push(Some(e.call("aten.select.int", &column)?[0]));
                }
            }
            (index, _) => plain.push(index),
        }
    }
    e.call("aten.index.Tensor", &[a.0[0].clone(), Arg::Values(plain)])
}

/// Whether an `index_put` is a `masked_fill`: one mask and one value, which PyTorch then converts.
fn is_fill(indices: &[Option<DType>], values: i64, accumulate: bool) -> bool {
    let mut given = indices.iter().flatten();
    !accumulate && values == 1 && matches!((given.next(), given.next()), (Some(d), None) if is_mask(*d))
}

fn infer_put(a: &Args<'_, Meta>) -> Metas {
    let (t, indices, values, add) = (a.tensor(0)?, a.opt_tensors(1)?, a.tensor(2)?, a.bool(3)?);
    let refs: Vec<Option<(DType, &Layout)>> = indices.iter().map(|i| i.map(|m| (m.dtype, &m.layout))).collect();
    check_indices(t.rank(), t.sizes(), &refs)?;
    let dtypes: Vec<Option<DType>> = indices.iter().map(|i| i.map(|m| m.dtype)).collect();
    if is_fill(&dtypes, values.layout.numel(), add) {
        ensure!(
            !dtypes.contains(&Some(DType::U8)),
            "masked_fill only supports boolean masks, but got mask with dtype unsigned char"
        );
        let complex = values.dtype.is_complex() && !t.dtype.is_complex();
        ensure!(!complex, "value cannot be converted to type {} without overflow", name(t.dtype));
    } else {
        ensure!(
            values.dtype == t.dtype,
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the \
             source.",
            name(t.dtype),
            name(values.dtype)
        );
    }
    if !indices.iter().flatten().any(|m| is_mask(m.dtype)) {
        fits(values.sizes(), picked(t, &indices)?.sizes())?;
    }
    one(Meta::new(t.dtype, strides::dense_like(&t.layout)))
}

fn fits(values: &[i64], picked: &[i64]) -> Result<()> {
    let wide = strides::broadcast_sizes(&[picked, values]);
    ensure!(
        wide.is_ok_and(|w| w[..] == *picked),
        "shape mismatch: value tensor of shape {values:?} cannot be broadcast to indexing result of shape {picked:?}"
    );
    Ok(())
}

fn run_put(c: &Call<'_>) -> Result<()> {
    let (t, values, add, out) = (c.args.tensor(0)?, c.args.tensor(2)?, c.args.bool(3)?, &c.outs[0]);
    let axes = axes(t.sizes(), &c.args.opt_tensors(1)?)?;
    let sizes = axes.sizes(t.sizes());
    fits(values.sizes(), &sizes)?;
    copy::carry(t, out);
    put_stretched(values, &axes, &sizes, out, add)
}

fn put_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    let own = stretched_scratch(a.tensor(2)?, a.tensor(0)?.dtype);
    if !has_mask(a) {
        return Ok(indices_scratch(a, places(a)?)? + own);
    }
    // Unknown number of selected elements: at most all of them.
    let given = a.opt_tensors(1)?;
    let count = |m: &Meta| if is_mask(m.dtype) { m.layout.numel().max(1) } else { 1 };
    let shapes = given.iter().flatten().filter(|m| !is_mask(m.dtype)).map(|i| i.sizes()).collect::<Operands<_>>();
    let most = given.iter().flatten().map(|m| count(m)).fold(common_shape(&shapes)?.iter().product::<i64>(), i64::max);
    let most_places = if given.iter().flatten().any(|m| m.layout.numel() == 0) { 0 } else { most } as usize;
    let numbers = |m: &Meta| {
        let n = m.layout.numel();
        if is_mask(m.dtype) { nonzero_room(n) + m.rank() * room::<i64>(n as usize) } else { room::<i64>(n as usize) }
    };
    let dims: usize = given.iter().flatten().map(|m| if is_mask(m.dtype) { m.rank() } else { 1 }).sum();
    let stretched = 2 * dims * room::<i64>(most_places);
    Ok(given.iter().flatten().map(|m| numbers(m)).sum::<usize>() + stretched + 2 * room::<isize>(most_places) + own)
}

/// Writes values, broadcast to the selected sizes and converted.
pub(crate) fn put_stretched(
    values: &View<'_>,
    axes: &Axes,
    sizes: &[i64],
    out: &restride_tensor::ViewMut<'_>,
    add: bool,
) -> Result<()> {
    let put = |values: &View<'_>| {
        copy::expanded(values, sizes, |values| put_at(values, axes, out, add)).map_err(OpError::new)
    };
    if values.dtype() == out.dtype() {
        return put(values);
    }
    scratch::tensor(out.dtype(), &Layout::contiguous(values.sizes()), |own| {
        copy::same_order(values, own).map_err(OpError::new)?;
        put(&own.as_view())
    })
}

/// Scratch bytes of [`put_stretched`] for its values.
pub(crate) fn stretched_scratch(values: &Meta, to: DType) -> usize {
    if values.dtype == to { 0 } else { tensor_room(to, values.layout.numel()) }
}

const fn an_index(schema: &'static str, samples: Option<SampleFn>) -> OpDef {
    OpDef {
        infer: Some(infer_index),
        kernel: Kernel::Fixed(run_index),
        scratch: Some(index_scratch),
        // With masks the data decides the sizes.
        decompose: Some(unmasked),
        composed: Some(has_mask),
        fails: Fails::Elements,
        exactness: Exactness::Exact,
        samples,
        ..OpDef::new(schema)
    }
}
const fn a_put(schema: &'static str, samples: Option<SampleFn>) -> OpDef {
    OpDef {
        overlap: OverlapCheck::Operands,
        exactness: Exactness::Within { rtol: 1e-5, atol: 1e-6 },
        ..close(schema, infer_put, run_put, put_scratch, samples).reusing(CARRIED).failing()
    }
}

pub(crate) static OPS: &[OpDef] = table![
    an_index("index.Tensor", samples!(s_index)),
    an_index("_unsafe_index.Tensor", samples!(s_index_plain)),
    a_put("index_put", samples!(s_put)),
    a_put("_unsafe_index_put", samples!(s_put)),
    a_put("_index_put_impl", samples!(s_put)),
];

/// Other names of PyTorch for operators of this family.
static ALIASES: &[(&str, &str)] = &[("argwhere", "nonzero")];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[OPS, find::OPS, masked::OPS, select::OPS, reduce::OPS, gather::OPS, scatter::OPS],
    gradients: &[grad::GRADS],
    aliases: ALIASES,
};

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) type Indices = Vec<Option<RawTensor>>;

    pub(crate) fn at(data: &[i64]) -> Option<RawTensor> {
        Some(ints(data, &[data.len() as i64]))
    }

    pub(crate) fn mask(sizes: &[i64], seed: u64) -> Option<RawTensor> {
        Some(tensor(DType::Bool, sizes, seed))
    }

    pub(crate) fn i32s(data: &[i32]) -> Option<RawTensor> {
        Some(RawTensor::from_slice(data, &[data.len() as i64]))
    }

    /// Sample indices 0 and 1 in a transposed tensor.
    pub(crate) fn turned(sizes: &[i64]) -> Option<RawTensor> {
        let mut perm: Vec<usize> = (0..sizes.len()).collect();
        perm.reverse();
        Some(crate::support::samples::in_range(DType::I64, Layout::permuted(sizes, &perm), 9, 0.0, 2.0))
    }

    pub(crate) fn mixed(sizes: &[i64]) -> RawTensor {
        laid(F, Layout::permuted(sizes, &[2, 0, 3, 1]), 1)
    }

    pub(crate) fn s_index_plain() -> Vec<Sample> {
        let four = [2i64, 3, 4, 5];
        let mut all: Vec<Sample> = Vec::new();
        let patterns: Vec<Indices> = vec![
            vec![at(&[0, 1, -1])],
            vec![None, at(&[0, 1, -1])],
            vec![None, None, at(&[0, 1])],
            vec![None, None, None, at(&[0, 1])],
            vec![at(&[0, 1]), at(&[1, 2])],
            vec![None, at(&[0, 1]), at(&[1, 2])],
            vec![at(&[0, 1]), None, at(&[1, 2])],
            vec![None, at(&[0, 1]), None, at(&[1, 2])],
            vec![at(&[0, 1]), None, None, at(&[1, 2])],
            vec![None, turned(&[2, 3])],
            vec![turned(&[2, 3]), turned(&[3])],
            vec![turned(&[2, 3]), turned(&[2, 1]), turned(&[]), turned(&[2, 3])],
            vec![Some(ints(&[1], &[]))],
            vec![None, Some(ints(&[1], &[])), None, at(&[1, 2])],
            vec![at(&[])],
            vec![i32s(&[0, -2])],
            vec![None, i32s(&[0, 1]), at(&[3, 3])],
            vec![None, at(&[3])],
            vec![at(&[0, 1]), at(&[0, 1, 1])],
            vec![at(&[-3])],
            vec![at(&[0]); 5],
            vec![Some(tensor(F, &[2], 1))],
            vec![Some(tensor(DType::I16, &[2], 1))],
            vec![None, None],
            vec![],
        ];
        for indices in patterns {
            all.push(sample![tensor(F, &four, 1), indices.clone()]);
            all.push(sample![mixed(&four), indices.clone()]);
            all.push(sample![strided(DType::I64, &four, 1), indices]);
        }
        all.push(sample![laid(F, strides::channels_last(&four), 1), vec![at(&[1, 0])]]);
        all.push(sample![expanded(DType::C64, &[4, 3], 1), vec![at(&[1, 0])]]);
        all.push(sample![expanded(DType::BF16, &[4, 3], 1), vec![None, at(&[1, 0])]]);
        all.push(sample![transposed(DType::Bool, &[4, 3], 1), vec![turned(&[2, 2])]]);
        all.push(sample![tensor(F, &[0, 3], 1), vec![at(&[])]]);
        all.push(sample![tensor(F, &[0, 3], 1), vec![at(&[0])]]);
        all.push(sample![tensor(F, &[2, 0], 1), vec![at(&[1])]]);
        all
    }

    pub(crate) fn s_index() -> Vec<Sample> {
        let mut all = s_index_plain();
        let p = || transposed(F, &[4, 5, 3], 1);
        all.extend([
            sample![p(), vec![mask(&[4, 5, 3], 2)]],
            sample![p(), vec![mask(&[4, 5], 2)]],
            sample![p(), vec![mask(&[4], 2)]],
            sample![p(), vec![None, mask(&[5, 3], 2)]],
            sample![p(), vec![None, mask(&[5], 2)]],
            sample![p(), vec![Some(tensor(DType::Bool, &[4], 2)), None, at(&[0])]],
            sample![p(), vec![Some(tensor(DType::U8, &[4], 2))]],
            sample![tensor(F, &[0, 3], 1), vec![mask(&[0], 2)]],
            sample![p(), vec![mask(&[5], 2)]],
            sample![p(), vec![None, None, mask(&[3, 2], 2)]],
        ]);
        all
    }

    pub(crate) fn s_put() -> Vec<Sample> {
        let p = || transposed(F, &[4, 5, 3], 1);
        vec![
            sample![p(), vec![at(&[0, -1])], tensor(F, &[5, 3], 2)],
            sample![p(), vec![None, at(&[0, 0, 2])], strided(F, &[4, 3, 3], 2)],
            sample![p(), vec![None, at(&[0, 0, 2])], strided(F, &[4, 3, 3], 2), true],
            sample![p(), vec![at(&[0, 1]), None, at(&[2, 2])], tensor(F, &[2, 5], 2)],
            sample![p(), vec![turned(&[2, 3]), turned(&[3])], tensor(F, &[], 2), true],
            sample![tensor(DType::I8, &[3], 1), vec![at(&[1, 1, 1])], tensor(DType::I8, &[3], 2)],
            sample![tensor(DType::I8, &[3], 1), vec![at(&[1, 1, 1])], tensor(DType::I8, &[3], 2), true],
            sample![tensor(DType::Bool, &[3], 1), vec![at(&[1, 1])], tensor(DType::Bool, &[2], 2), true],
            sample![tensor(DType::C64, &[3, 2], 1), vec![at(&[1, 1])], tensor(DType::C64, &[2, 2], 2), true],
            sample![tensor(DType::BF16, &[3], 1), vec![i32s(&[1, 0])], tensor(DType::BF16, &[1], 2), true],
            sample![strided(F, &[4, 3], 1), vec![at(&[0])], tensor(F, &[3], 2)],
            sample![expanded(F, &[4, 3], 1), vec![at(&[0])], tensor(F, &[3], 2)],
            sample![p(), vec![mask(&[4, 5, 3], 2)], tensor(F, &[], 3)],
            sample![p(), vec![mask(&[4, 5, 3], 2)], tensor(DType::F64, &[1], 3)],
            sample![tensor(DType::I64, &[4], 1), vec![mask(&[4], 2)], tensor(F, &[], 3)],
            sample![p(), vec![mask(&[4, 5, 3], 2)], tensor(F, &[], 3), true],
            sample![p(), vec![None, mask(&[5], 2)], tensor(F, &[3], 3)],
            sample![p(), vec![mask(&[4], 2), None, at(&[1])], tensor(F, &[5], 3)],
            sample![tensor(F, &[5], 1), vec![mask(&[5], 3)], tensor(F, &[4], 3)],
            sample![p(), vec![at(&[])], tensor(F, &[], 2)],
            sample![tensor(F, &[0, 3], 1), vec![at(&[])], tensor(F, &[3], 2)],
            sample![p(), vec![at(&[0, 1])], tensor(DType::F64, &[3], 2)],
            sample![p(), vec![at(&[0, 1])], tensor(F, &[4], 2)],
            sample![p(), vec![at(&[0, 1])], tensor(F, &[1, 1, 1, 3], 2)],
            sample![p(), vec![at(&[4])], tensor(F, &[3], 2)],
            sample![tensor(F, &[0, 3], 1), vec![at(&[0])], tensor(F, &[3], 2)],
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::samples::{RawTensor, ints};

    #[test]
    fn indexed_dimensions_go_first_unless_they_stand_together() {
        assert_eq!(arrange(4, &[false, true, true]), (smallvec![1, 2], smallvec![0], smallvec![3]));
        assert_eq!(arrange(4, &[false, true, false, true]), (smallvec![1, 3], smallvec![], smallvec![0, 2]));
        assert_eq!(arrange(2, &[true]), (smallvec![0], smallvec![], smallvec![1]));
    }

    #[test]
    fn masks_are_positions() {
        let mask = RawTensor::zeros(DType::Bool, Layout::contiguous(&[2, 2]));
        mask.storage().write(&[0, 1, 1, 0]);
        let other = ints(&[-1], &[1]);
        let axes = axes(&[2, 2, 5], &[Some(&mask.read().view()), Some(&other.read().view())]).unwrap();
        let at: Vec<&[i64]> = axes.at.iter().map(|a| &a[..]).collect();
        assert_eq!(at, [[0, 1], [1, 0], [4, 4]]);
        assert!(super::axes(&[2, 3, 5], &[Some(&mask.read().view())]).is_err());
        assert!(super::axes(&[2], &[Some(&ints(&[2], &[1]).read().view())]).is_err());
    }
}
