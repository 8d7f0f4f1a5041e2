//! Compositions of the gradient operators of bags of embeddings.

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::{SmallVec, smallvec};

fn wide(e: &mut dyn Emit, v: Val) -> Result<Val> {
    emit!(e, "aten._to_copy.default", v, DType::I64)
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

/// What the gradient of a table is computed from.
struct Bags {
    grad: Val,
    /// The index of each entry, and its bag.
    at: Val,
    bag: Val,
    /// Entries in each bag.
    counts: Val,
    /// For each bag and column the row of the largest entry.
    maxima: Val,
    rows: i64,
    scale_by_frequency: bool,
    mode: i64,
    weights: Option<Val>,
    padding: i64,
}

/// The gradient of the table: adds the gradient of each bag to the rows that its indices name.
fn table(e: &mut dyn Emit, b: &Bags) -> Vals {
    let meta = e.meta(b.grad);
    let zeros = emit!(e, "aten.new_zeros.default", b.grad, [b.rows, meta.sizes()[1]])?;
    if b.mode == 2 {
        let empty = emit!(e, "aten.eq.Scalar", b.counts, 0)?;
        let empty = emit!(e, "aten.unsqueeze.default", empty, 1)?;
        let g = emit!(e, "aten.masked_fill.Scalar", b.grad, empty, 0)?;
        // An empty bag has no maximum: its row is -1.
        let maxima = wide(e, b.maxima)?;
        let maxima = emit!(e, "aten.clamp_min.default", maxima, 0)?;
        return Ok(smallvec![emit!(e, "aten.scatter_add.default", zeros, 0, maxima, g)?]);
    }
    let mut rows = emit!(e, "aten.index_select.default", b.grad, 0, b.bag)?;
    let column = |e: &mut dyn Emit, v: Val| emit!(e, "aten.unsqueeze.default", v, 1);
    let mut scales = SmallVec::<[(&str, Val); 3]>::new();
    if let Some(w) = b.weights {
        scales.push(("aten.mul.Tensor", w));
    }
    if b.scale_by_frequency {
        let ones = emit!(e, "aten.ones_like.default", b.at)?;
        let counts = emit!(e, "aten.new_zeros.default", b.at, [b.rows])?;
        let counts = emit!(e, "aten.index_add.default", counts, 0, b.at, ones)?;
        scales.push(("aten.div.Tensor", emit!(e, "aten.index_select.default", counts, 0, b.at)?));
    }
    if b.mode == 1 {
        scales.push(("aten.div.Tensor", emit!(e, "aten.index_select.default", b.counts, 0, b.bag)?));
    }
    for (op, scale) in scales {
        let scale = column(e, scale)?;
        rows = emit!(e, op, rows, scale)?;
    }
    if b.padding >= 0 {
        let skipped = emit!(e, "aten.eq.Scalar", b.at, b.padding)?;
        let skipped = column(e, skipped)?;
        rows = emit!(e, "aten.masked_fill.Scalar", rows, skipped, 0)?;
    }
    Ok(smallvec![emit!(e, "aten.index_add.default", zeros, 0, b.at, rows)?])
}

/// `(grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, sparse,
/// per_sample_weights, padding_idx)`
fn bag_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    ensure!(!a.bool(9)?, "unsupported: a sparse gradient of embedding_bag; set sparse=False");
    let at = wide(e, *a.tensor(1)?)?;
    let bag = bags(e, at, *a.tensor(2)?, *a.tensor(3)?)?;
    table(
        e,
        &Bags {
            grad: *a.tensor(0)?,
            at,
            bag,
            counts: *a.tensor(4)?,
            maxima: *a.tensor(5)?,
            rows: a.int(6)?,
            scale_by_frequency: a.bool(7)?,
            mode: a.int(8)?,
            weights: a.opt_tensor(10)?.copied(),
            padding: a.int(11)?,
        },
    )
}

/// `(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights,
/// padding_idx)`
fn dense_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (at, bag) = (wide(e, *a.tensor(1)?)?, wide(e, *a.tensor(2)?)?);
    table(
        e,
        &Bags {
            grad: *a.tensor(0)?,
            at,
            bag,
            counts: *a.tensor(3)?,
            maxima: *a.tensor(4)?,
            rows: a.int(5)?,
            scale_by_frequency: a.bool(6)?,
            mode: a.int(7)?,
            weights: a.opt_tensor(8)?.copied(),
            padding: a.int(9)?,
        },
    )
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

pub(crate) static OPS: &[OpDef] = &[
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
