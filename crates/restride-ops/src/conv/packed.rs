//! Convolutions with a constant filter that was put in order once: the terms of its sums follow each other in memory.
//!
//! The operators have the arguments of the plain ones, and last whether the result is channels-last: the layout of the filter no
//! longer says so.

use super::{Conv, GENERAL, PLAIN, Positions, check_types, finished, macs, run, scratch, time};
use crate::support::*;
use restride_ir::{Args, Call, Layout, Meta, OpDef, Prepacked, Scalar};
use restride_kernels::conv::filter_layout;
use restride_kernels::movement::copy::same_order;

/// Numbers of an ordered filter: whether channels are last in it; whether the result is channels-last.
fn numbers(a: &Args<'_, Meta>, p: &Positions) -> Option<(Vec<i64>, Vec<i64>)> {
    let (x, w) = (a.tensor(0).ok()?, a.tensor(1).ok()?);
    let conv = Conv::read(a, p, x.sizes(), w.sizes()).ok()?;
    if conv.transposed || x.dtype != w.dtype {
        return None;
    }
    let layout = filter_layout(w.dtype, &w.layout, &conv.window(x.sizes(), w.sizes()), conv.groups as usize)?;
    Some((vec![!layout.is_contiguous() as i64], vec![conv.channels_last(x, w).ok()? as i64]))
}

const fn form(call: &'static str, numbers: restride_ir::PrepackFn) -> Option<Prepacked> {
    Some(Prepacked { operand: 1, pack: "restride.order_filter.default", call, numbers })
}

pub(super) const PLAIN_FORM: Option<Prepacked> = form("restride.conv_ordered.default", |a| numbers(a, &PLAIN));
pub(super) const NAMED_FORM: Option<Prepacked> = form("restride.conv_ordered.padding", |a| numbers(a, &PLAIN));
pub(super) const GENERAL_FORM: Option<Prepacked> =
    form("restride.convolution_ordered.default", |a| numbers(a, &GENERAL));

/// The filter of argument 0, with channels last where argument 1 says so.
fn ordering(a: &Args<'_, Meta>) -> Metas {
    let w = a.tensor(0)?;
    ensure!(w.rank() >= 3, "a {}-D tensor is no filter of a convolution", w.rank());
    let layout = if a.bool(1)? {
        let order: Vec<usize> = [0].into_iter().chain(2..w.rank()).chain([1]).collect();
        Layout::permuted(w.sizes(), &order)
    } else {
        Layout::contiguous(w.sizes())
    };
    one(Meta::new(w.dtype, layout))
}

fn ordering_kernel(c: &Call<'_>) -> Result<()> {
    ran(same_order(c.args.tensor(0)?, &c.outs[0]))
}

/// The arguments without the last one, and whether that says channels-last.
fn plain<'a, V>(a: &Args<'a, V, Scalar>) -> Result<(Args<'a, V, Scalar>, bool)> {
    let last = a.0.len() - 1;
    Ok((Args(&a.0[..last]), a.bool(last)?))
}

fn infer(a: &Args<'_, Meta>, p: &Positions) -> Metas {
    let (a, channels_last) = plain(a)?;
    let (x, w, bias) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    let conv = Conv::read(&a, p, x.sizes(), w.sizes())?;
    ensure!(!conv.transposed, "filters of transposed convolutions are not put in order");
    check_types(x, w, bias, w.sizes()[0])?;
    one(Meta::new(x.dtype, conv.layout(&conv.out, channels_last)?))
}

macro_rules! ordered {
    ($schema:literal, $positions:expr, $note:literal) => {
        close(
            $schema,
            |a| infer(a, &$positions),
            |c| run(c, &$positions),
            |a, outs| scratch(a, outs, &$positions),
            None,
        )
        .counted(|a, outs| macs(a, outs, &$positions))
        .timed(|a, outs| time(a, outs, &$positions))
        .finishing(|a, outs| finished(a, outs, &$positions))
        .noted($note)
    };
}

pub(super) static OPS: &[OpDef] = &[
    without_scratch(
        "restride::order_filter(Tensor self, bool channels_last) -> Tensor",
        ordering,
        ordering_kernel,
        None,
    )
    .noted("a filter whose terms follow each other in memory in the order of a convolution's sums"),
    ordered!(
        "restride::conv_ordered(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, \
         SymInt[] dilation, SymInt groups, bool channels_last) -> Tensor",
        PLAIN,
        "a convolution with a filter in order"
    ),
    ordered!(
        "restride::conv_ordered.padding(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, \
         SymInt[] dilation, SymInt groups, bool channels_last) -> Tensor",
        PLAIN,
        "a convolution with a filter in order"
    ),
    ordered!(
        "restride::convolution_ordered(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, \
         SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool channels_last) -> Tensor",
        GENERAL,
        "a convolution with a filter in order"
    ),
];
