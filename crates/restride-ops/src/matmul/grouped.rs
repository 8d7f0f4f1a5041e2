//! Grouped matrix products, as in mixtures of experts.

use super::of_product;
use crate::support::*;
use restride_ir::{Args, Call, DType, Fails, Meta, OpDef};
use restride_tensor::Layout;
use smallvec::smallvec;

fn infer(a: &Args<'_, Meta>) -> Metas {
    let (x, w, ends) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    ensure!(x.rank() == 2, "input must be 2D (S, input_dim), got {} dimensions", x.rank());
    ensure!(w.rank() == 3, "weight must be 3D (num_experts, input_dim, output_dim), got {} dimensions", w.rank());
    ensure!(
        ends.rank() == 1 && ends.sizes()[0] == w.sizes()[0],
        "offs must be 1D with one end for each of the {} experts",
        w.sizes()[0]
    );
    ensure!(matches!(ends.dtype, DType::I32 | DType::I64), "offs must be an integer tensor, got {}", ends.dtype);
    ensure!(x.sizes()[1] == w.sizes()[1], "input_dim mismatch: {} and {}", x.sizes()[1], w.sizes()[1]);
    ensure!(x.dtype == w.dtype, "input is of {} and weight of {}", x.dtype, w.dtype);
    Ok(smallvec![fresh(x.dtype, &[x.sizes()[0], w.sizes()[2]])])
}

/// `_grouped_mm(self, mat2, offs)`: rows of results are padded to whole numbers of 16 bytes.
fn infer_any(a: &Args<'_, Meta>) -> Metas {
    let (x, w, ends) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    ensure!(a.opt_tensor(3)?.is_none(), "bias is not supported yet");
    let known = matches!(x.dtype, DType::F32 | DType::BF16 | DType::F16);
    ensure!(known, "expected mat_a to be a float32, bfloat16 or float16 matrix, got {}", x.dtype.torch_name());
    ensure!(x.dtype == w.dtype, "expected mat_a and mat_b to have the same dtype, got {} and {}", x.dtype, w.dtype);
    ensure!(a.opt_dtype(4)?.is_none_or(|d| d == x.dtype), "the output dtype must match mat_a's dtype, {}", x.dtype);
    let matrices = matches!((x.rank(), w.rank()), (2 | 3, 2 | 3));
    ensure!(matrices, "mat_a and mat_b have to be 2d or 3d, got {} and {} dimensions", x.rank(), w.rank());
    let (depth, depth_of_w) = (x.sizes()[x.rank() - 1], w.sizes()[w.rank() - 2]);
    ensure!(depth == depth_of_w, "the contraction dimensions must match, got {depth} and {depth_of_w}");
    let (m, n) = (x.sizes()[x.rank() - 2], w.sizes()[w.rank() - 1]);
    let batches = x.rank() == 3 && w.rank() == 3;
    ensure!(
        ends.is_none() == batches,
        "have to provide offsets if there is a 2d matrix, and none if both matrices are 3d"
    );
    let int32 = |ends: &Meta| ends.rank() == 1 && ends.dtype == DType::I32;
    ensure!(ends.is_none_or(int32), "offsets have to be 1-d and int32");
    let batch = |t: &Meta| (t.rank() == 3).then(|| t.sizes()[0]);
    let counts = [batch(x), batch(w), ends.map(|e| e.sizes()[0])];
    let groups = counts.into_iter().flatten().next().unwrap_or(0);
    ensure!(counts.into_iter().flatten().all(|n| n == groups), "matrix batch sizes have to match");
    let sizes = if x.rank() == w.rank() { vec![groups, m, n] } else { vec![m, n] };
    let lanes = 16 / x.dtype.size() as i64;
    let row = (n + lanes - 1) / lanes * lanes;
    let strides = if sizes.len() == 2 { vec![row, 1] } else { vec![m * row, row, 1] };
    Ok(smallvec![Meta::new(x.dtype, Layout::strided(&sizes, &strides, 0))])
}

fn run(c: &Call<'_>) -> Result<()> {
    let (x, w, ends) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.opt_tensor(2)?);
    restride_kernels::matmul::grouped::grouped(x, w, ends, &c.outs[0], c.ctx.threads).map_err(restride_ir::OpError::new)
}

pub(crate) static OPS: &[OpDef] = table![
    OpDef {
        fails: Fails::Elements,
        ..close(
            "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
            infer,
            run,
            of_product,
            samples!(samples),
        )
    }
    .noted("Rows up to each end times that group's matrix: what transformers' mixtures of experts call on the CPU"),
    OpDef { fails: Fails::Elements, ..close("_grouped_mm", infer_any, run, of_product, samples!(any_samples)) }
        .noted("A product for each group of rows, of columns, or of what is summed over"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn samples() -> Samples {
        let d = DType::F32;
        let ends = |e: &[i32]| RawTensor::from_slice(e, &[e.len() as i64]);
        vec![
            sample![tensor(d, &[5, 3], 0), tensor(d, &[3, 3, 4], 1), ends(&[2, 2, 5])],
            sample![strided(d, &[5, 3], 0), strided(d, &[2, 3, 4], 1), ends(&[1, 3])],
            sample![tensor(d, &[0, 3], 0), tensor(d, &[2, 3, 4], 1), ends(&[0, 0])],
        ]
    }

    pub(crate) fn any_samples() -> Samples {
        let ends = |e: &[i32]| RawTensor::from_slice(e, &[e.len() as i64]);
        let mut all = Samples::new();
        for d in [DType::BF16, DType::F32, DType::F16] {
            all.extend([
                sample![tensor(d, &[5, 16], 0), tensor(d, &[3, 16, 8], 1), ends(&[2, 2, 5])],
                sample![tensor(d, &[2, 3, 16], 0), tensor(d, &[16, 24], 1), ends(&[8, 24])],
                sample![tensor(d, &[4, 24], 0), tensor(d, &[24, 8], 1), ends(&[8, 8, 24])],
                sample![tensor(d, &[3, 4, 16], 0), tensor(d, &[3, 16, 8], 1)],
            ]);
        }
        all
    }
}
