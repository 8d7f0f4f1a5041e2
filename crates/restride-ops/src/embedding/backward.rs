//! Compositions of the gradient operators of bags of embeddings.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::{SmallVec, smallvec};

fn wide(e: &mut dyn Emit, v: Val) -> Result<Val> {
    to(e, v, DType::I64)
}

/// The bag of each index; a forward part that does not need them leaves them out.
fn bags(e: &mut dyn Emit, at: Val, offsets: Val, bags: Val) -> Result<Val> {
    let n = sizes(e, at)[0];
    if n == 0 || sizes(e, bags) != [0] {
        return wide(e, bags);
    }
    let (offsets, places) = (wide(e, offsets)?, emit!(e, "aten.arange.default", n, DType::I64)?);
    let next = emit!(e, "aten.searchsorted.Tensor", offsets, places, false, true)?;
    emit!(e, "aten.sub.Scalar", next, 1)
}

/// The gradient of the table. A row gets the gradients of all bags that look it up: `at` has the rows that are looked up, and `bag`
/// has the bag of each. The arguments from `next` on are `(bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode)`, the last two `(per_sample_weights,
/// padding_idx)`.
fn table(e: &mut dyn Emit, a: &ValArgs<'_>, (at, bag): (Val, Val), next: usize) -> Vals {
    let (grad, counts, rows, mode) = (*a.tensor(0)?, *a.tensor(next)?, a.int(next + 2)?, a.int(next + 4)?);
    let (weights, padding) = (a.0.len() - 2, a.int(a.0.len() - 1)?);
    let columns = e.meta(grad).sizes()[1];
    let zeros = emit!(e, "aten.new_zeros.default", grad, [rows, columns])?;
    if mode == 2 {
        let empty = emit!(e, "aten.eq.Scalar", counts, 0)?;
        let empty = emit!(e, "aten.unsqueeze.default", empty, 1)?;
        let g = emit!(e, "aten.masked_fill.Scalar", grad, empty, 0)?;
        // An empty bag has no maximum: its row is -1.
        let maxima = wide(e, *a.tensor(next + 1)?)?;
        let maxima = emit!(e, "aten.clamp_min.default", maxima, 0)?;
        return Ok(smallvec![emit!(e, "aten.scatter_add.default", zeros, 0, maxima, g)?]);
    }
    let mut parts = emit!(e, "aten.index_select.default", grad, 0, bag)?;
    let column = |e: &mut dyn Emit, v: Val| emit!(e, "aten.unsqueeze.default", v, 1);
    let mut scales = SmallVec::<[(&str, Val); 3]>::new();
    if let Some(w) = a.opt_tensor(weights)? {
        scales.push(("aten.mul.Tensor", *w));
    }
    if a.bool(next + 3)? {
        let ones = emit!(e, "aten.ones_like.default", at)?;
        let times = emit!(e, "aten.new_zeros.default", at, [rows])?;
        let times = emit!(e, "aten.index_add.default", times, 0, at, ones)?;
        scales.push(("aten.div.Tensor", emit!(e, "aten.index_select.default", times, 0, at)?));
    }
    if mode == 1 {
        scales.push(("aten.div.Tensor", emit!(e, "aten.index_select.default", counts, 0, bag)?));
    }
    for (op, scale) in scales {
        let scale = column(e, scale)?;
        parts = emit!(e, op, parts, scale)?;
    }
    if padding >= 0 {
        let skipped = emit!(e, "aten.eq.Scalar", at, padding)?;
        let skipped = column(e, skipped)?;
        parts = emit!(e, "aten.masked_fill.Scalar", parts, skipped, 0)?;
    }
    Ok(smallvec![emit!(e, "aten.index_add.default", zeros, 0, at, parts)?])
}

/// `(grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse,
/// per_sample_weights, padding_idx)`
fn bag_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    ensure!(!a.bool(9)?, "unsupported: a sparse gradient of embedding_bag; set sparse=False");
    let at = wide(e, *a.tensor(1)?)?;
    let bag = bags(e, at, *a.tensor(2)?, *a.tensor(3)?)?;
    table(e, a, (at, bag), 4)
}

/// `(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights,
/// padding_idx)`
fn dense_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (at, bag) = (wide(e, *a.tensor(1)?)?, wide(e, *a.tensor(2)?)?);
    table(e, a, (at, bag), 3)
}

/// `_embedding_bag_per_sample_weights_backward(grad, weight, indices, offsets, offset2bag, mode, padding_idx)`: for each
/// index the product of its row with the gradient of its bag.
fn sample_weights_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (g, table) = (*a.tensor(0)?, *a.tensor(1)?);
    ensure!(a.int(5)? == 0, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
    let at = wide(e, *a.tensor(2)?)?;
    ensure!(e.meta(at).rank() == 1 && e.meta(table).rank() == 2, "embedding_bag_backward: expected a list of indices");
    let bag = bags(e, at, *a.tensor(3)?, *a.tensor(4)?)?;
    let rows = emit!(e, "aten.index_select.default", table, 0, at)?;
    let grads = emit!(e, "aten.index_select.default", g, 0, bag)?;
    let out = emit!(e, "aten.mul.Tensor", rows, grads)?;
    let out = emit!(e, "aten.sum.dim_IntList", out, [1])?;
    let padding = a.int(6)?;
    if padding < 0 {
        return Ok(smallvec![out]);
    }
    let skipped = emit!(e, "aten.eq.Scalar", at, padding)?;
    Ok(smallvec![emit!(e, "aten.masked_fill.Scalar", out, skipped, 0)?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(bag_backward, bag_samples(true), "_embedding_bag_backward").failing(),
    composite!(dense_backward, bag_samples(false), "_embedding_bag_dense_backward").failing(),
    composite!(sample_weights_backward, weight_samples(), "_embedding_bag_per_sample_weights_backward").failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    /// Calls with the arguments of `_embedding_bag_backward`, or without those that the dense form lacks.
    pub(crate) fn bag_samples(all: bool) -> Samples {
        let at = ints(&[1, 2, 0, 5, 5], &[5]);
        let starts = ints(&[0, 2, 2, 4], &[4]);
        let (bags, counts) = (ints(&[0, 0, 2, 2, 3], &[5]), ints(&[2, 0, 2, 1], &[4]));
        let maxima = ints(&[1, 2, 1, -1, -1, -1, 0, 5, 5, 5, 5, 5], &[4, 3]);
        let weights = || tensor(DType::F32, &[5], 3).arg();
        let calls = [
            (0, false, SampleArg::None, -1),
            (0, true, SampleArg::None, 5),
            (0, false, weights(), -1),
            (0, true, weights(), 2),
            (1, false, SampleArg::None, -1),
            (1, true, SampleArg::None, -1),
            (2, false, SampleArg::None, -1),
        ];
        let mut out = Samples::new();
        for (mode, scaled, weights, padding) in calls {
            for g in forms(DType::F32, &[4, 3], 1) {
                let mut sample = sample![g, &at];
                if all {
                    sample.args.push((&starts).arg());
                }
                sample.args.extend([(&bags).arg(), (&counts).arg()]);
                sample.args.push(if mode == 2 { (&maxima).arg() } else { ints(&[], &[0]).arg() });
                sample.args.extend([6.arg(), scaled.arg(), mode.arg()]);
                if all {
                    sample.args.push(false.arg());
                }
                sample.args.extend([weights.clone(), padding.arg()]);
                out.push(sample);
            }
        }
        out
    }

    pub(crate) fn weight_samples() -> Samples {
        let (at, starts) = (ints(&[1, 2, 0, 5, 5], &[5]), ints(&[0, 2, 2, 4], &[4]));
        let (g, w) = (tensor(DType::F32, &[4, 3], 1), transposed(DType::F32, &[6, 3], 2));
        let bags = ints(&[0, 0, 2, 2, 3], &[5]);
        vec![
            sample![&g, &w, &at, &starts, &bags, 0, -1],
            sample![&g, &w, &at, &starts, ints(&[], &[0]), 0, 5],
            sample![&g, &w, ints(&[], &[0]), ints(&[0, 0, 0, 0], &[4]), ints(&[], &[0]), 0],
            sample![&g, &w, &at, &starts, &bags, 1],
        ]
    }
}
