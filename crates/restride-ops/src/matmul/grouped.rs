//! Grouped matrix products, as in mixtures of experts.

use crate::support::*;
use restride_ir::{Args, Call, DType, Fails, Kernel, Meta, OpDef};
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

fn run(c: &Call<'_>) -> Result<()> {
    let (x, w, ends) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.tensor(2)?);
    restride_kernels::matmul::grouped::grouped(x, w, ends, &c.outs[0], c.ctx.threads).map_err(restride_ir::OpError::new)
}

pub(crate) static OPS: &[OpDef] = &[OpDef {
    doc: "Rows up to each end times that group's matrix: what transformers' mixtures of experts call on the CPU",
    infer: Some(infer),
    kernel: Kernel::Fixed(run),
    fails: Fails::Elements,
    samples: samples!(samples),
    ..OpDef::new("transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")
}];

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
}
