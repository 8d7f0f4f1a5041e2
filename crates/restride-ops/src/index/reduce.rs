//! `index_reduce`: a `scatter_reduce` with one index per slice.

use crate::index::select::check_source;
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{DType, Emit, Exactness, OpDef};
use smallvec::smallvec;

/// `(self, dim, index, source, reduce, include_self)`
fn index_reduce(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (t, index, source, how) = (*a.tensor(0)?, *a.tensor(2)?, *a.tensor(3)?, a.str(4)?);
    let (own, at, from) = (e.meta(t), e.meta(index), e.meta(source));
    let dim = check_source(&own, a.int(1)?, &at, &from, "index_reduce_()")?;
    ensure!(
        matches!(how, "prod" | "mean" | "amax" | "amin"),
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {how}."
    );
    ensure!(
        own.dtype != DType::Bool && !own.dtype.is_complex(),
        "\"index_func_\" not implemented for '{}'",
        name(own.dtype)
    );
    // The index of each slice, expanded over the slice.
    let mut sizes = vec![1; from.rank()];
    if let Some(n) = sizes.get_mut(dim) {
        *n = at.layout.numel();
    }
    let index = emit!(e, "aten._to_copy.default", index, DType::I64)?;
    let index = emit!(e, "aten.reshape.default", index, sizes)?;
    let index = emit!(e, "aten.expand.default", index, from.sizes())?;
    let op = "aten.scatter_reduce.two";
    Ok(smallvec![emit!(e, op, t, dim as i64, index, source, how, a.bool(5)?)?])
}

pub(crate) static OPS: &[OpDef] = table![OpDef {
    exactness: Exactness::Within { rtol: 1e-5, atol: 1e-6 },
    ..composite!(index_reduce, samples(), "index_reduce").failing()
}];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn samples() -> Vec<Sample> {
        let f = DType::F32;
        let mut out = Vec::new();
        for how in ["prod", "mean", "amax", "amin"] {
            for keep in [true, false] {
                let t = || transposed(f, &[4, 5, 3], 1);
                out.push(sample![t(), 1, ints(&[4, 0, 0], &[3]), strided(f, &[4, 3, 3], 2), how, keep]);
                out.push(sample![
                    tensor(DType::F64, &[3], 1),
                    0,
                    ints(&[1, 1], &[2]),
                    tensor(DType::F64, &[2], 3),
                    how,
                    keep
                ]);
                let index = RawTensor::from_slice(&[2i32, 2], &[2]);
                out.push(sample![expanded(f, &[4, 3], 1), -1, index, tensor(f, &[4, 2], 2), how, keep]);
                out.push(sample![
                    tensor(DType::I8, &[3], 1),
                    0,
                    ints(&[2, 0], &[2]),
                    tensor(DType::I8, &[2], 2),
                    how,
                    keep
                ]);
                let half = DType::BF16;
                out.push(sample![tensor(half, &[3], 1), 0, ints(&[2, 0], &[2]), tensor(half, &[2], 2), how, keep]);
            }
        }
        out.extend([
            sample![tensor(f, &[], 1), 0, ints(&[0], &[1]), tensor(f, &[], 2), "prod"],
            sample![tensor(f, &[3], 1), 0, ints(&[1], &[]), tensor(f, &[1], 2), "mean"],
            sample![tensor(f, &[0, 3], 1), 0, ints(&[], &[0]), tensor(f, &[0, 3], 2), "amax"],
            sample![tensor(f, &[3], 1), 0, ints(&[1], &[1]), tensor(f, &[], 2), "amax"],
            sample![tensor(f, &[3], 1), 0, ints(&[3], &[1]), tensor(f, &[1], 2), "amax"],
            sample![tensor(f, &[3], 1), 0, ints(&[1], &[1]), tensor(f, &[1], 2), "sum"],
            sample![tensor(DType::Bool, &[3], 1), 0, ints(&[1], &[1]), tensor(DType::Bool, &[1], 2), "prod"],
            sample![tensor(f, &[3, 2], 1), 0, ints(&[1], &[1]), tensor(f, &[1, 3], 2), "prod"],
        ]);
        out
    }
}
