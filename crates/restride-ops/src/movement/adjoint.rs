//! PyTorch's gradients of views (`slice_backward`), which traces of training steps contain: zeros with the gradient in the region
//! that the view shows.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{Arg, Emit, OpDef};
use smallvec::smallvec;

/// `(grad_output, input_sizes, ...)`: the numbers after the sizes are those of the scatter.
fn scattered(e: &mut dyn Emit, a: &ValArgs<'_>, scatter: &str) -> Vals {
    let g = *a.tensor(0)?;
    let zeros = emit!(e, "aten.new_zeros.default", g, pass(a, 1))?;
    let args: Vec<_> = [zeros, g].map(Arg::Value).into_iter().chain(a.0[2..].iter().cloned()).collect();
    e.call(scatter, &args)
}

fn slice(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    scattered(e, a, "aten.slice_scatter.default")
}

fn select(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    scattered(e, a, "aten.select_scatter.default")
}

fn diagonal(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    scattered(e, a, "aten.diagonal_scatter.default")
}

/// `_new_zeros_with_same_feature_meta(self, other, *, self_num_batch_dims)`: zeros in the strides of `other` behind the batch
/// dimensions of `self`, the tangent that a forward gradient starts from.
fn zeros_like_feature(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, other, batch) = (*a.tensor(0)?, *a.tensor(1)?, a.int(2)?);
    let (own, l) = (e.meta(x), e.meta(other).layout);
    ensure!(
        (0..=own.rank() as i64).contains(&batch),
        "self_num_batch_dims: expected at most {} dimensions, got {batch}",
        own.rank()
    );
    let batches = &own.sizes()[..batch as usize];
    let cells = l.cell_range().end;
    let sizes = [batches, &l.sizes].concat();
    let inner = (1..=batches.len()).map(|d| batches[d..].iter().product::<i64>() * cells);
    let strides: Vec<i64> = inner.chain(l.strides.iter().copied()).collect();
    let all = batches.iter().product::<i64>() * cells;
    let zeros = emit!(e, "aten.new_zeros.default", other, [all])?;
    Ok(smallvec![emit!(e, "aten.as_strided.default", zeros, sizes, strides, l.offset)?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(slice, slices(), "slice_backward").exactly(),
    composite!(select, selects(), "select_backward").exactly(),
    composite!(diagonal, diagonals(), "diagonal_backward").exactly(),
    composite!(zeros_like_feature, features(), "_new_zeros_with_same_feature_meta").exactly(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;
    use restride_ir::DType;

    const TYPES: [DType; 3] = [DType::F32, DType::F64, DType::I64];

    pub(crate) fn slices() -> Samples {
        let whole = i64::MAX;
        let calls: [(&[i64], [i64; 4]); 5] = [
            (&[2, 3], [0, 1, 3, 1]),
            (&[4, 2], [1, 0, whole, 2]),
            (&[4, 1], [-1, -1, whole, 1]),
            (&[0, 3], [0, 2, 2, 1]),
            (&[4, 3], [0, 0, whole, 1]),
        ];
        let mut out = Samples::new();
        for d in TYPES {
            for (sizes, [dim, start, end, step]) in calls {
                out.extend(forms(d, sizes, 1).into_iter().map(|g| sample![g, [4, 3], dim, start, end, step]));
            }
        }
        out
    }

    pub(crate) fn selects() -> Samples {
        let mut out = Samples::new();
        for d in TYPES {
            for (sizes, dim, index) in [(&[3, 2][..], 0, 1), (&[4, 3], 2, -1), (&[4, 2], 1, 0)] {
                out.extend(forms(d, sizes, 1).into_iter().map(|g| sample![g, [4, 3, 2], dim, index]));
            }
        }
        out
    }

    pub(crate) fn diagonals() -> Samples {
        let mut out = Samples::new();
        for d in TYPES {
            for (sizes, [offset, a, b]) in [(&[2, 3][..], [0, 0, 1]), (&[4, 2], [-1, 2, 1]), (&[3, 1], [1, 0, -1])] {
                out.extend(forms(d, sizes, 1).into_iter().map(|g| sample![g, [4, 3, 2], offset, a, b]));
            }
        }
        out
    }

    pub(crate) fn features() -> Samples {
        let d = DType::F32;
        let mut out: Samples = forms(d, &[3, 4], 1).into_iter().map(|o| sample![tensor(d, &[2], 2), o]).collect();
        for batch in 0..3 {
            out.push(sample![tensor(DType::F64, &[2, 5, 3], 2), transposed(d, &[3, 4], 1), batch]);
        }
        out.push(sample![tensor(d, &[2], 2), tensor(d, &[0, 3], 1)]);
        out
    }
}
