//! Connectionist temporal classification loss and its gradient.

use crate::gradient::Rules;
use crate::gradient::terms::{Cx, T, op, rule};
use crate::loss::reduced;
use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, DType, Dim, Emit, Expr, Meta, OpDef};
use restride_kernels::loss::ctc::{self, Ctc, Forward};
use smallvec::smallvec;

/// Checks `log_probs`, `targets` and the lengths at arguments `lengths` and `lengths + 1`; returns the maximum target length.
fn check<V>(a: &Args<'_, V>, (x, t): (&Meta, &Meta), lengths: usize, blank: i64) -> Result<i64> {
    let (inputs, targets) = (a.ints(lengths)?, a.ints(lengths + 1)?);
    ensure!(matches!(x.dtype, DType::F32 | DType::F64), "\"ctc_loss_cpu\" not implemented for '{}'", name(x.dtype));
    ensure!(t.dtype == DType::I64 || t.dtype == DType::I32, "targets must be Long or Int, got {}", name(t.dtype));
    ensure!(x.rank() == 3, "log_probs must have 3 dimensions, got {}", x.rank());
    let [frames, batch, classes] = x.sizes()[..] else { return fail("log_probs must have 3 dimensions") };
    ensure!((0..classes).contains(&blank), "blank must be in label range");
    ensure!(inputs.len() as i64 == batch, "input_lengths must be of size batch_size");
    ensure!(targets.len() as i64 == batch, "target_lengths must be of size batch_size");
    ensure!(targets.iter().all(|&n| (0..1 << 40).contains(&n)), "target_lengths must be non-negative");
    ensure!(
        inputs.iter().all(|n| (0..=frames).contains(n)),
        "Expected input_lengths to have value at most {frames}, got {inputs:?}"
    );
    let longest = targets.iter().copied().max().unwrap_or(0);
    match t.rank() {
        1 => ensure!(t.sizes()[0] == targets.iter().sum(), "targets are not as long as target_lengths say"),
        2 => ensure!(t.sizes()[0] == batch && t.sizes()[1] >= longest, "targets are shorter than target_lengths say"),
        r => return fail(format!("targets must have 1 or 2 dimensions, got {r}")),
    }
    Ok(longest)
}

/// `(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)`.
fn ctc_infer(a: &Args<'_, Meta>) -> Metas {
    let x = a.tensor(0)?;
    let longest = check(a, (x, a.tensor(1)?), 2, a.int(4)?)?;
    let (frames, batch) = (x.sizes()[0], x.sizes()[1]);
    Ok(smallvec![fresh(x.dtype, &[batch]), fresh(x.dtype, &[batch, frames, 2 * longest + 1])])
}

fn ctc_run(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let (inputs, targets) = (a.ints(2)?, a.ints(3)?);
    let ctc = Ctc { input_lengths: &inputs, target_lengths: &targets, blank: a.int(4)? };
    ran(ctc.run(a.tensor(0)?, a.tensor(1)?, &c.outs[0], &c.outs[1]))
}

fn ctc_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(ctc::run_room([stored(a.tensor(0)?), stored(a.tensor(1)?)], [stored(&outs[0]), stored(&outs[1])]))
}

/// `(grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank, zero_infinity)`.
fn back_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, x, losses, alphas) = (a.tensor(0)?, a.tensor(1)?, a.tensor(5)?, a.tensor(6)?);
    let longest = check(a, (x, a.tensor(2)?), 3, a.int(7)?)?;
    let (frames, batch) = (x.sizes()[0], x.sizes()[1]);
    for (t, sizes, what) in [
        (g, &[batch][..], "grad"),
        (losses, &[batch], "neg_log_likelihood"),
        (alphas, &[batch, frames, 2 * longest + 1], "log_alpha"),
    ] {
        ensure!(
            t.sizes() == sizes && t.dtype == x.dtype,
            "_ctc_loss_backward: {what} is {t}, expected sizes {sizes:?}"
        );
    }
    one(fresh(x.dtype, x.sizes()))
}

fn back_run(c: &Call<'_>) -> Result<()> {
    let a = &c.args;
    let (inputs, targets) = (a.ints(3)?, a.ints(4)?);
    let ctc = Ctc { input_lengths: &inputs, target_lengths: &targets, blank: a.int(7)? };
    let forward = Forward { grad: a.tensor(0)?, losses: a.tensor(5)?, alphas: a.tensor(6)?, zero_infinity: a.bool(8)? };
    ran(ctc.backward(a.tensor(1)?, a.tensor(2)?, forward, &c.outs[0]))
}

fn back_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let mut operands = Vec::with_capacity(5);
    for i in [0, 1, 2, 5, 6] {
        operands.push(stored(a.tensor(i)?));
    }
    let width = a.tensor(6)?.sizes()[2] as usize;
    Ok(ctc::backward_room(&operands, stored(&outs[0]), width))
}

/// `(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)`.
fn ctc(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let (x, batched) = match e.meta(x).rank() {
        2 => (emit!(e, "aten.unsqueeze.default", x, 1)?, false),
        _ => (x, true),
    };
    let args = [x.operand(), pass(a, 1), pass(a, 2), pass(a, 3), pass(a, 4), pass(a, 6)];
    let mut v = first(e.call("aten._ctc_loss.default", &args), "aten._ctc_loss.default")?;
    if a.bool(6)? {
        let lost = emit!(e, "aten.eq.Scalar", v, f64::INFINITY)?;
        v = emit!(e, "aten.masked_fill.Scalar", v, lost, 0)?;
    }
    if a.int(5)? == 1 {
        // The mean over the batch of losses divided by target lengths.
        let lengths: Vec<i64> = a.ints(3)?.into_iter().map(|n| n.max(1)).collect();
        let (dtype, n) = (e.meta(x).dtype, lengths.len() as i64);
        let mut parts = Vec::new();
        for (i, &len) in lengths.iter().enumerate() {
            let one = emit!(e, "aten.select.int", v, 0, i as i64)?;
            parts.push(emit!(e, "aten.div.Tensor", one, len as f64)?);
        }
        v = if n == 0 { emit!(e, "aten.to.dtype", v, dtype)? } else { emit!(e, "aten.stack.default", parts, 0)? };
    } else if !batched && a.int(5)? == 0 {
        v = emit!(e, "aten.squeeze.dim", v, 0)?;
    }
    Ok(smallvec![reduced(e, v, a.int(5)?)?])
}

pub(crate) static OPS: &[OpDef] = table![
    close("_ctc_loss", ctc_infer, ctc_run, ctc_scratch, samples!(|| ctc_samples(false))).failing(),
    close("_ctc_loss_backward", back_infer, back_run, back_scratch, samples!(back_samples))
        .failing()
        .noted("The gradient of the scores whose log_softmax the log_probs are"),
    composite!(ctc, ctc_samples(true), "ctc_loss.IntList").failing(),
];

/// `_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)`. PyTorch's gradient is that of the
/// scores before the softmax: it includes the class probabilities, which the softmax's gradient subtracts.
fn ctc_grad<'c>(c: &'c Cx<'c>) {
    if !c.only_first() {
        return;
    }
    let (x, g, loss) = (c.arg(0), c.grad(), c.result());
    let scores = op!(
        c,
        "aten._ctc_loss_backward.default",
        g,
        x,
        c.arg(1),
        c.raw(2),
        c.raw(3),
        loss,
        c.result_at(1),
        c.raw(4),
        c.raw(5)
    );
    let by_sample = |t: T<'c>| t.unsqueeze(-1);
    let mut own = x.exp() * by_sample(g);
    let (frames, lengths) = (x.size(0), c.nums(2));
    if lengths.iter().any(|n| n.equals(&frames) != Some(true)) {
        let each = |n: &Expr| op!(c, "aten.full.default", [1], n, DType::I64);
        let ends = c.cat(&lengths.iter().map(each).collect::<Vec<_>>(), 0);
        let at = op!(c, "aten.arange.default", frames).unsqueeze(-1);
        own = own.only(by_sample(at.than("lt", ends)));
    }
    if c.flag(5) {
        own = own.except(by_sample(loss.is("eq", f64::INFINITY)));
    }
    c.set(0, scores - own);
}

pub(crate) static GRADS: Rules = &[(&["_ctc_loss"], rule!(ctc_grad))];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    /// PyTorch leaves forward variables of shorter samples undefined: without `whole`, all samples have one length.
    pub(crate) fn ctc_samples(whole: bool) -> Samples {
        let mut out = Samples::new();
        for (d, flat) in [(DType::F32, false), (DType::F64, true)] {
            let x = in_range(d, Layout::contiguous(&[6, 2, 4]), 1, -4.0, -0.1);
            let t = if flat && whole {
                ints(&[1, 2, 2, 3], &[4])
            } else if flat {
                ints(&[1, 2, 2, 3, 1, 1], &[6])
            } else {
                ints(&[1, 2, 2, 3, 1, 0], &[2, 3])
            };
            if !whole {
                out.push(sample![&x, &t, [6, 6], [3, 3], if flat { 0 } else { 3 }]);
                continue;
            }
            let lengths = if flat { [3, 1] } else { [3, 2] };
            for reduction in 0..3 {
                out.push(sample![&x, &t, [6, 5], lengths, 0, reduction]);
                out.push(sample![&x, &t, [2, 5], lengths, 0, reduction, true]);
            }
            out.push(sample![&x, &t, [6, 7], lengths, 0, 0]);
        }
        out
    }

    /// Feeds the results of the forward operator to the gradient.
    pub(crate) fn back_samples() -> Samples {
        let mut out = Samples::new();
        for (d, lengths, zero) in [
            (DType::F32, [6, 6], false),
            (DType::F64, [6, 5], false),
            (DType::F32, [2, 6], true),
            (DType::F64, [0, 6], true),
        ] {
            let x = in_range(d, Layout::contiguous(&[6, 2, 4]), 1, -4.0, -0.1);
            let t = ints(&[1, 2, 2, 3, 1, 0], &[2, 3]);
            let (losses, alphas) =
                (RawTensor::zeros(d, Layout::contiguous(&[2])), RawTensor::zeros(d, Layout::contiguous(&[2, 6, 7])));
            let ctc = Ctc { input_lengths: &lengths, target_lengths: &[3, 2], blank: 0 };
            ctc.run(&x.read().view(), &t.read().view(), &losses.write().view_mut(), &alphas.write().view_mut())
                .expect("a sample of its own");
            out.push(sample![tensor(d, &[2], 2), &x, &t, lengths, [3, 2], &losses, &alphas, 0, zero]);
            out.push(sample![
                tensor(d, &[2], 2),
                &x,
                ints(&[1, 2, 2, 3, 1], &[5]),
                lengths,
                [3, 2],
                losses,
                alphas,
                0,
                zero
            ]);
        }
        out
    }
}
