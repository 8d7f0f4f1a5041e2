//! `convolution_backward`: the gradients of a convolution's input, weight and bias.

use crate::conv::{Conv, Positions, Transposed, check_types, show};
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, Meta, OpDef};
use restride_kernels::conv::{self, Gradients};
use smallvec::smallvec;

const BACKWARD: Positions = Positions {
    stride: 4,
    padding: 5,
    dilation: 6,
    groups: 9,
    transposed: Transposed::Arg(7),
    output_padding: Some(8),
};

fn backward_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (g, x, w) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let conv = Conv::read(a, &BACKWARD, x.sizes(), w.sizes())?;
    let window = conv.window(x.sizes(), w.sizes());
    let mask = a.ints(10)?;
    let out = |i: usize| (mask[i] != 0).then(|| stored(&outs[i]));
    Ok(conv::conv_backward_room([g, x, w].map(stored), &window, conv.transposed, out(0), out(1), out(2)))
}

/// Types of the three gradients; one that the mask omits is an empty tensor.
fn backward_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, x, w) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let c = Conv::read(a, &BACKWARD, x.sizes(), w.sizes())?;
    check_types(x, w, None, 0)?;
    ensure!(
        g.dtype == x.dtype && *g.sizes() == c.out[..],
        "convolution_backward: the gradient should be {}{}, got {}{}",
        x.dtype,
        show(&c.out),
        g.dtype,
        show(g.sizes())
    );
    let mask = a.ints(10)?;
    ensure!(mask.len() == 3, "output_mask must have 3 elements");
    let last = c.channels_last(x, w)?;
    let none = || fresh(x.dtype, &[0]);
    let like = |t: &Meta| -> Result<Meta> { Ok(Meta::new(t.dtype, c.layout(t.sizes(), last)?)) };
    let cout = if c.transposed { w.sizes()[1] * c.groups } else { w.sizes()[0] };
    Ok(smallvec![
        if mask[0] != 0 { like(x)? } else { none() },
        if mask[1] != 0 { like(w)? } else { none() },
        if mask[2] != 0 { fresh(x.dtype, &[cout]) } else { none() },
    ])
}

fn backward(c: &Call<'_>) -> Result<()> {
    let (g, x, w) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.tensor(2)?);
    let conv = Conv::read(&c.args, &BACKWARD, x.sizes(), w.sizes())?;
    let window = conv.window(x.sizes(), w.sizes());
    let mask = c.args.ints(10)?;
    let out = |i: usize| (mask[i] != 0).then(|| &c.outs[i]);
    let grads = Gradients { input: out(0), weight: out(1), bias: out(2) };
    ran(conv::conv_backward(g, x, w, &window, conv.transposed, conv.groups as usize, &grads, c.ctx.threads))
}

/// Multiply-adds: as the convolution for each of the gradients of input and weight.
fn macs(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<i64> {
    let (g, x, w) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    let each = if a.bool(7)? { x } else { g };
    let one = each.layout.numel().saturating_mul(w.layout.numel() / w.sizes()[0].max(1));
    Ok(outs[..2].iter().filter(|o| o.layout.numel() != 0).fold(0, |sum, _| one.saturating_add(sum)))
}

pub(crate) static OPS: &[OpDef] = table![
    close("convolution_backward", backward_infer, backward, backward_scratch, samples!(backward_samples))
        .counted(macs)
        .noted("A gradient that the mask leaves out is a tensor without elements")
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn backward_samples() -> Samples {
        let d = DType::F32;
        let all = || Arg::Scalars(vec![Scalar::Bool(true); 3]);
        let (x, w) = (tensor(d, &[2, 4, 7, 8], 1), tensor(d, &[6, 2, 3, 3], 7));
        let g = tensor(d, &[2, 6, 4, 6], 3);
        vec![
            sample![&g, &x, &w, [6], [2, 1], [1, 0], [1, 1], false, [0, 0], 2, all()],
            sample![
                nhwc(d, &[2, 6, 4, 6], 1),
                nhwc(d, &[2, 4, 7, 8], 1),
                &w,
                [6],
                [2, 1],
                [1, 0],
                [1, 1],
                false,
                [0, 0],
                2,
                all()
            ],
            sample![
                tensor(d, &[2, 6, 13, 9], 3),
                &x,
                tensor(d, &[4, 3, 3, 2], 7),
                [6],
                [2, 1],
                [1, 0],
                [1, 1],
                true,
                [0, 0],
                2,
                all()
            ],
            sample![
                tensor(d, &[2, 5, 7], 3),
                tensor(d, &[2, 4, 9], 1),
                tensor(d, &[5, 4, 3], 7),
                [5],
                [1],
                [0],
                [1],
                false,
                [0],
                1,
                all()
            ],
            sample![
                tensor(DType::F64, &[1, 3, 5, 5], 3),
                tensor(DType::F64, &[1, 3, 5, 5], 1),
                tensor(DType::F64, &[3, 1, 3, 3], 7),
                [3],
                [1, 1],
                [1, 1],
                [1, 1],
                false,
                [0, 0],
                3,
                all()
            ],
        ]
    }
}
