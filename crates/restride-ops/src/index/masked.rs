//! Masked indexing, and combinations of elements.

use restride_ir::{Arg, Args, Call, DType, Emit, Meta, OpDef, OpError, Scalar, Val};
use restride_kernels::index::{take_flat, take_flat_room};
use restride_kernels::support::scratch::{Temp, room};

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::{Metas, Result, ValArgs, Vals, emit, ensure, exact, fail, fresh, one, sizes};
use smallvec::smallvec;

/// Indices clamped to valid ones; where the mask is false, any value may occur.
fn clamped(e: &mut dyn Emit, a: &ValArgs<'_>, what: &str) -> Result<Arg<Val, Scalar>> {
    let t = e.meta(*a.tensor(0)?);
    let indices: Vec<Option<Val>> = a.opt_tensors(2)?.into_iter().map(|i| i.copied()).collect();
    ensure!(indices.len() <= t.rank(), "too many indices for tensor of dimension {} (got {})", t.rank(), indices.len());
    let mut out = Vec::with_capacity(indices.len());
    for (index, &n) in indices.into_iter().zip(t.sizes()) {
        let Some(v) = index else {
            out.push(None);
            continue;
        };
        let dtype = e.meta(v).dtype;
        ensure!(matches!(dtype, DType::I64 | DType::I32), "{what} found unexpected index type {}", name(dtype));
        let bounds = [Arg::Value(v), Arg::Scalar(Scalar::Int(-n)), Arg::Scalar(Scalar::Int(n - 1))];
        out.push(Some(e.call("aten.clamp.default", &bounds)?[0]));
    }
    Ok(Arg::Values(out))
}

/// A tensor with a number where the mask is false.
fn filled(e: &mut dyn Emit, t: Val, mask: Val, fill: Arg<Val, Scalar>) -> Vals {
    let outside = e.call("aten.logical_not.default", &[Arg::Value(mask)])?[0];
    e.call("aten.masked_fill.Scalar", &[Arg::Value(t), Arg::Value(outside), fill])
}

fn masked_index(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (t, mask) = (*a.tensor(0)?, *a.tensor(1)?);
    ensure!(!e.meta(t).sizes().contains(&0), "_unsafe_masked_index of a tensor without elements is not supported");
    let indices = clamped(e, a, "_unsafe_masked_index")?;
    let picked = e.call("aten.index.Tensor", &[Arg::Value(t), indices])?[0];
    filled(e, picked, mask, a.0[3].clone())
}
fn masked_put(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (t, mask, values) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(3)?);
    if e.meta(t).sizes().contains(&0) {
        return e.call("aten.clone.default", &[Arg::Value(t)]);
    }
    let indices = clamped(e, a, "_unsafe_masked_index_put_accumulate")?;
    let values = filled(e, values, mask, Arg::Scalar(Scalar::Int(0)))?[0];
    let add = Arg::Scalar(Scalar::Bool(true));
    e.call("aten.index_put.default", &[Arg::Value(t), indices, Arg::Value(values), add])
}

/// `masked_scatter_backward(grad_output, mask, sizes)`: the gradient where the mask is true, then zeros, in other sizes.
fn masked_scatter_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (g, mask, to) = (*a.tensor(0)?, *a.tensor(1)?, a.ints(2)?);
    let (from, dtype) = (sizes(e, g), e.meta(g).dtype);
    let (n, room): (i64, i64) = (from.iter().product(), to.iter().product());
    let mask = emit!(e, "aten.expand.default", mask, from)?;
    let mask = emit!(e, "aten.reshape.default", mask, [n])?;
    let place = emit!(e, "aten.to.dtype", mask, DType::I64)?;
    let place = emit!(e, "aten.cumsum.default", place, 0)?;
    // What the mask leaves out goes to a place of its own, at the end.
    let place = emit!(e, "aten.sub.Scalar", place, 1)?;
    let outside = emit!(e, "aten.logical_not.default", mask)?;
    let place = emit!(e, "aten.masked_fill.Scalar", place, outside, room)?;
    let flat = emit!(e, "aten.reshape.default", g, [n])?;
    let zeros = emit!(e, "aten.full.default", [room + 1], 0, dtype)?;
    let all = emit!(e, "aten.scatter.src", zeros, 0, place, flat)?;
    let kept = emit!(e, "aten.slice.Tensor", all, 0, 0, room)?;
    Ok(smallvec![emit!(e, "aten.reshape.default", kept, to)?])
}

/// The number of ways to choose `r` of `n`; with replacement if `again`.
fn ways(n: i64, r: i64, again: bool) -> Option<i64> {
    let n = if again && r > 0 { n.checked_add(r - 1)? } else { n };
    if r > n {
        return Some(0);
    }
    let r = r.min(n - r);
    let all = (0..r).try_fold(1i128, |all, i| Some(all.checked_mul((n - i) as i128)? / (i as i128 + 1)))?;
    all.try_into().ok()
}
fn infer_combinations(a: &Args<'_, Meta>) -> Metas {
    let (t, r, again) = (a.tensor(0)?, a.int(1)?, a.bool(2)?);
    ensure!(t.rank() == 1, "Expect a 1D vector, but got shape {:?}", t.sizes());
    ensure!(r >= 0, "Expect a non-negative number, but got {r}");
    if r == 0 {
        return one(fresh(t.dtype, &[0]));
    }
    // Larger numbers do not fit in memory.
    let n = t.sizes()[0];
    match (r <= 64).then(|| if n == 0 { Some(0) } else { ways(n, r, again) }).flatten() {
        Some(rows) if rows.checked_mul(r).is_some() => one(fresh(t.dtype, &[rows, r])),
        _ => fail(format!("combinations: too many of {r} out of {n}")),
    }
}
fn run_combinations(c: &Call<'_>) -> Result<()> {
    let (t, again, out) = (c.args.tensor(0)?, c.args.bool(2)?, &c.outs[0]);
    if out.numel() == 0 {
        return Ok(());
    }
    let (n, r) = (t.numel() as i64, c.args.int(1)? as usize);
    let mut all = Temp::filled(out.numel(), 0i64);
    let mut chosen: Temp<i64> = (0..r as i64).map(|i| if again { 0 } else { i }).collect();
    for row in all.chunks_exact_mut(r) {
        row.copy_from_slice(&chosen);
        // Increment the last position that can advance; later positions restart from it.
        let last = |i: usize| if again { n - 1 } else { n - (r - i) as i64 };
        let Some(i) = (0..r).rev().find(|&i| chosen[i] < last(i)) else { break };
        let next = chosen[i] + 1;
        for (k, place) in chosen[i..].iter_mut().enumerate() {
            *place = if again { next } else { next + k as i64 };
        }
    }
    take_flat(t, &all, out).map_err(OpError::new)
}
fn combinations_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let n = outs[0].layout.numel();
    Ok(room::<i64>(n as usize) + room::<i64>(a.int(1)?.max(0) as usize) + take_flat_room(n))
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(masked_index, s_masked_index(), "_unsafe_masked_index").exactly(),
    composite!(masked_put, s_masked_put(), "_unsafe_masked_index_put_accumulate"),
    composite!(masked_scatter_backward, s_masked_scatter_backward(), "masked_scatter_backward").failing().exactly(),
    exact("combinations", infer_combinations, run_combinations, combinations_scratch, samples!(s_combinations)),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn bools(data: &[u8], sizes: &[i64]) -> RawTensor {
        let t = tensor(DType::Bool, sizes, 1);
        t.storage().write(data);
        t
    }

    pub(crate) fn s_masked_index() -> Vec<Sample> {
        let at = |data: &[i64]| Some(ints(data, &[data.len() as i64]));
        vec![
            sample![transposed(F, &[3, 4], 1), bools(&[1, 0, 1], &[3]), vec![at(&[0, 9, -9]), at(&[1, 1, 1])], -1.0],
            sample![strided(F, &[3, 4], 1), bools(&[1, 0, 1], &[3, 1]), vec![at(&[0, 9, -9])], 2],
            sample![tensor(DType::I64, &[3, 4], 1), bools(&[1, 0], &[2]), vec![None, at(&[0, 9])], 2],
            sample![tensor(F, &[3, 4], 1), bools(&[1, 0], &[2]), vec![Some(bools(&[1, 0, 1], &[3]))], 2],
        ]
    }

    pub(crate) fn s_masked_put() -> Vec<Sample> {
        let at = |data: &[i64]| Some(ints(data, &[data.len() as i64]));
        vec![
            sample![
                transposed(F, &[3, 4], 1),
                bools(&[1, 0, 1], &[3]),
                vec![at(&[0, 9, 0]), at(&[1, 1, 1])],
                tensor(F, &[3], 2)
            ],
            sample![tensor(F, &[0, 4], 1), bools(&[0], &[1]), vec![at(&[0]), at(&[0])], tensor(F, &[1], 2)],
        ]
    }

    pub(crate) fn s_masked_scatter_backward() -> Vec<Sample> {
        let mask = || bools(&[1, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 1], &[3, 4]);
        vec![
            sample![transposed(F, &[3, 4], 1), mask(), [2, 5]],
            sample![tensor(DType::I64, &[3, 4], 1), bools(&[1, 0, 1, 1], &[4]), [9]],
            sample![tensor(F, &[3, 4], 1), mask(), [2, 3]],
        ]
    }

    pub(crate) fn s_combinations() -> Vec<Sample> {
        let mut all: Vec<Sample> = Vec::new();
        for r in [0, 1, 2, 3, 5, -1] {
            for again in [false, true] {
                all.push(sample![strided(F, &[4], 1), r, again]);
            }
        }
        all.push(sample![tensor(F, &[0], 1)]);
        all.push(sample![tensor(F, &[2, 2], 1)]);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::ways;

    #[test]
    fn ways_to_choose() {
        assert_eq!((ways(4, 2, false), ways(4, 2, true), ways(4, 5, false)), (Some(6), Some(10), Some(0)));
        assert_eq!((ways(5, 0, true), ways(60, 30, false)), (Some(1), Some(118264581564861424)));
        assert_eq!(ways(1000, 60, false), None);
    }
}
