//! Cross entropy of a linear layer's results, computed for a chunk of rows at a time
//! (`torch.nn.functional.linear_cross_entropy`).

use crate::support::composite::composite;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::smallvec;

/// The operands in the accumulation type.
struct Wide {
    x: Val,
    matrix: Val,
    target: Val,
    bias: Option<Val>,
    weight: Option<Val>,
}

impl Wide {
    /// Reads `(input, linear_weight, target, linear_bias, weight, …)`, and the type of the results.
    fn of(e: &mut dyn Emit, a: &ValArgs<'_>, wide: DType) -> Result<(Wide, DType)> {
        let own = e.meta(*a.tensor(0)?).dtype;
        let rank = e.meta(*a.tensor(0)?).rank();
        ensure!(rank == 2, "linear_cross_entropy: the chunked operator takes rows of features, got {rank} dimensions");
        let cast = |e: &mut dyn Emit, v: Val| -> Result<Val> {
            let dtype = e.meta(v).dtype;
            if dtype == wide || !dtype.is_float() { Ok(v) } else { emit!(e, "aten._to_copy.default", v, wide) }
        };
        let opt = |e: &mut dyn Emit, i: usize| a.opt_tensor(i)?.map(|v| cast(e, *v)).transpose();
        let (x, matrix, target) = (cast(e, *a.tensor(0)?)?, cast(e, *a.tensor(1)?)?, cast(e, *a.tensor(2)?)?);
        Ok((Wide { x, matrix, target, bias: opt(e, 3)?, weight: opt(e, 4)? }, own))
    }

    fn logits(&self, e: &mut dyn Emit) -> Result<Val> {
        emit!(e, "aten.linear.default", self.x, self.matrix, self.bias)
    }

    fn loss(&self, e: &mut dyn Emit, logits: Val, reduction: i64, ignore: i64) -> Result<Val> {
        emit!(e, "aten.cross_entropy_loss.default", logits, self.target, self.weight, reduction, ignore, 0.0)
    }

    /// Gradient of the loss by the logits: `(softmax * sum(m) - m) / count` for the loss `-sum(m * log_softmax) / count`.
    fn slope(&self, e: &mut dyn Emit, logits: Val, mean: bool, ignore: i64) -> Result<Val> {
        let meta = e.meta(logits);
        let (rows, classes) = (meta.sizes()[0], meta.sizes()[1]);
        let (m, count) = if e.meta(self.target).dtype.is_float() {
            let mut m = self.target;
            if let Some(w) = self.weight {
                m = emit!(e, "aten.mul.Tensor", m, w)?;
            }
            (m, emit!(e, "aten.full.default", &[][..] as &[i64], rows as f64, meta.dtype)?)
        } else {
            let ones = emit!(e, "aten.full.default", [classes], 1.0, meta.dtype)?;
            let w = self.weight.unwrap_or(ones);
            let counted = emit!(e, "aten.ne.Scalar", self.target, ignore)?;
            let counted = emit!(e, "aten._to_copy.default", counted, meta.dtype)?;
            let ignored = emit!(e, "aten.eq.Scalar", self.target, ignore)?;
            // Ignored targets take class 0 until they are masked out.
            let t = emit!(e, "aten.masked_fill.Scalar", self.target, ignored, 0)?;
            let each = emit!(e, "aten.index_select.default", w, 0, t)?;
            let each = emit!(e, "aten.mul.Tensor", each, counted)?;
            let count = emit!(e, "aten.sum.default", each)?;
            let column = emit!(e, "aten.unsqueeze.default", t, 1)?;
            let each = emit!(e, "aten.unsqueeze.default", each, 1)?;
            let zeros = emit!(e, "aten.full.default", [rows, classes], 0.0, meta.dtype)?;
            (emit!(e, "aten.scatter.src", zeros, 1, column, each)?, count)
        };
        let all = emit!(e, "aten.sum.dim_IntList", m, [1], true)?;
        let softmax = emit!(e, "aten._softmax.default", logits, 1, false)?;
        let slope = emit!(e, "aten.mul.Tensor", softmax, all)?;
        let slope = emit!(e, "aten.sub.Tensor", slope, m)?;
        if mean { emit!(e, "aten.div.Tensor", slope, count) } else { Ok(slope) }
    }
}

fn narrow(e: &mut dyn Emit, v: Val, dtype: DType) -> Result<Val> {
    if e.meta(v).dtype == dtype { Ok(v) } else { emit!(e, "aten._to_copy.default", v, dtype) }
}

/// `(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, label_smoothing, batch_chunk_size, acc_policy,
/// acc_dtype, allow_retain_graph, compute_input_grad, compute_linear_weight_grad, compute_linear_bias_grad)`: the loss and the
/// requested gradients.
fn chunked(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let reduction = match a.str(5)? {
        "mean" => 1,
        "sum" => 2,
        other => return fail(format!("linear_cross_entropy does not support reduction='{other}'")),
    };
    ensure!(a.float(7)? <= 0.0, "linear_cross_entropy does not support label smoothing");
    let ignore = a.int(6)?;
    let (w, own) = Wide::of(e, a, a.opt_dtype(10)?.unwrap_or(DType::F32))?;
    let logits = w.logits(e)?;
    let loss = w.loss(e, logits, reduction, ignore)?;
    let (for_x, for_matrix, for_bias) = (a.bool(12)?, a.bool(13)?, a.bool(14)?);
    let empty = |e: &mut dyn Emit, sizes: &[i64]| emit!(e, "aten.full.default", sizes.to_vec(), 0.0, own);
    let mut out = smallvec![narrow(e, loss, own)?];
    let slope = if for_x || for_matrix || for_bias { w.slope(e, logits, reduction == 1, ignore)? } else { loss };
    out.push(if for_x {
        let g = emit!(e, "aten.mm.default", slope, w.matrix)?;
        narrow(e, g, own)?
    } else {
        empty(e, &[0, 0])?
    });
    out.push(if for_matrix {
        let turned = emit!(e, "aten.t.default", slope)?;
        let g = emit!(e, "aten.mm.default", turned, w.x)?;
        narrow(e, g, own)?
    } else {
        empty(e, &[0, 0])?
    });
    out.push(if for_bias {
        let g = emit!(e, "aten.sum.dim_IntList", slope, [0])?;
        narrow(e, g, own)?
    } else {
        empty(e, &[0])?
    });
    Ok(out)
}

/// `(input, linear_weight, target, linear_bias, weight, ignore_index, batch_chunk_size, acc_policy, acc_dtype)`
fn by_row(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (w, own) = Wide::of(e, a, a.opt_dtype(8)?.unwrap_or(DType::F32))?;
    let logits = w.logits(e)?;
    let loss = w.loss(e, logits, 0, a.int(5)?)?;
    Ok(smallvec![narrow(e, loss, own)?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(
        chunked,
        chunked_samples(),
        "torch_nn::_linear_cross_entropy_batch_chunked(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, str reduction, SymInt ignore_index, float label_smoothing, SymInt batch_chunk_size, str acc_policy, ScalarType acc_dtype, bool allow_retain_graph, bool compute_input_grad, bool compute_linear_weight_grad, bool compute_linear_bias_grad) -> (Tensor, Tensor, Tensor, Tensor)"
    )
    .failing(),
    composite!(
        by_row,
        row_samples(),
        "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction(Tensor input, Tensor linear_weight, Tensor target, Tensor? linear_bias, Tensor? weight, SymInt ignore_index, SymInt batch_chunk_size, str acc_policy, ScalarType acc_dtype) -> Tensor"
    )
    .failing(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn chunked_samples() -> Samples {
        let f = DType::F32;
        let (x, m) = (|d| tensor(d, &[4, 3], 1), |d| tensor(d, &[5, 3], 2));
        let classes = || ints(&[1, 4, -100, 0], &[4]);
        let shares = |d| in_range(d, Layout::contiguous(&[4, 5]), 3, 0.0, 1.0);
        let weight = |d| in_range(d, Layout::contiguous(&[5]), 4, 0.5, 2.0);
        vec![
            sample![x(f), m(f), classes(), (), (), "mean", -100, 0.0, 2, "compact", f, true, false, false, false],
            sample![
                x(f),
                m(f),
                classes(),
                tensor(f, &[5], 5),
                weight(f),
                "mean",
                -100,
                0.1,
                2,
                "compact",
                f,
                true,
                true,
                true,
                true
            ],
            sample![
                x(f),
                m(f),
                shares(f),
                tensor(f, &[5], 5),
                weight(f),
                "sum",
                -100,
                0.1,
                2,
                "compact",
                f,
                true,
                true,
                true,
                true
            ],
            sample![
                x(DType::BF16),
                m(DType::BF16),
                classes(),
                (),
                (),
                "sum",
                4,
                0.0,
                4,
                "compact",
                f,
                true,
                true,
                false,
                false
            ],
        ]
    }

    pub(crate) fn row_samples() -> Samples {
        let f = DType::F32;
        vec![
            sample![
                tensor(f, &[4, 3], 1),
                tensor(f, &[5, 3], 2),
                ints(&[1, 4, -100, 0], &[4]),
                (),
                (),
                -100,
                2,
                "compact",
                f
            ],
            sample![
                tensor(DType::F64, &[2, 3], 1),
                tensor(DType::F64, &[5, 3], 2),
                ints(&[1, 4], &[2]),
                tensor(DType::F64, &[5], 3),
                in_range(DType::F64, Layout::contiguous(&[5]), 4, 0.5, 2.0),
                -100,
                1,
                "compact",
                DType::F64
            ],
        ]
    }
}
