//! Autocast regions: operators that run in the lower precision, in `f32`, or in the widest dtype of their operands.
//! The lists come from `aten/src/ATen/autocast_mode.h` for the CPU.

use super::nodes::GraphImporter;
use restride_ir::{Arg, DType, Op, Origin, Result, Type, ValueId};
use std::sync::Arc;

const LOWER: &str = "conv1d conv2d conv3d bmm mm linalg_vecdot baddbmm addmm addbmm linear _convolution matmul conv_tbc \
    mkldnn_rnn_layer conv_transpose1d conv_transpose2d conv_transpose3d prelu \
    scaled_dot_product_attention _native_multi_head_attention";
const FULL: &str = "avg_pool3d binary_cross_entropy grid_sampler polar prod quantile nanquantile stft cdist trace \
    view_as_complex cholesky cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr pinverse \
    max_pool3d max_unpool2d max_unpool3d adaptive_avg_pool3d reflection_pad1d reflection_pad2d \
    replication_pad1d replication_pad2d replication_pad3d mse_loss cosine_embedding_loss nll_loss \
    nll_loss2d hinge_embedding_loss poisson_nll_loss smooth_l1_loss cross_entropy_loss l1_loss \
    huber_loss margin_ranking_loss soft_margin_loss triplet_margin_loss multi_margin_loss ctc_loss \
    kl_div multilabel_margin_loss binary_cross_entropy_with_logits fft_fft fft_ifft fft_fft2 fft_ifft2 \
    fft_fftn fft_ifftn fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn fft_hfft fft_ihfft";
const WIDEST: &str = "stack cat index_copy";

/// Arguments with the casts that the region makes.
pub fn cast(
    importer: &mut GraphImporter<'_>,
    op: Op,
    args: Vec<Arg>,
    lower: DType,
    origin: &Arc<Origin>,
) -> Result<Vec<Arg>> {
    let name = op.schema().name.as_str();
    let float = |importer: &GraphImporter<'_>, v: ValueId| match importer.value_type(v) {
        Type::Tensor(t) => t.dtype.is_float().then_some(t.dtype),
        _ => None,
    };
    let listed = |operators: &str| operators.split_whitespace().any(|operator| operator == name);
    let to = if listed(LOWER) {
        lower
    } else if listed(FULL) {
        DType::F32
    } else if listed(WIDEST) {
        let mut found = args.iter().flat_map(|a| a.values()).filter_map(|v| float(importer, *v));
        if found.any(|d| d == DType::F32) { DType::F32 } else { lower }
    } else {
        return Ok(args);
    };
    let mut out = Vec::with_capacity(args.len());
    for arg in args {
        let mut convert = |v: ValueId| -> Result<ValueId> {
            let Type::Tensor(ty) = importer.value_type(v).clone() else { return Ok(v) };
            let castable = ty.dtype.is_float() && ty.dtype != DType::F64 && ty.dtype != to;
            if !castable {
                return Ok(v);
            }
            importer.cast(v, to, ty.layout, origin)
        };
        out.push(match arg {
            Arg::Value(v) => Arg::Value(convert(v)?),
            Arg::Values(vs) => {
                Arg::Values(vs.into_iter().map(|v| v.map(&mut convert).transpose()).collect::<Result<_>>()?)
            }
            other => other,
        });
    }
    Ok(out)
}
