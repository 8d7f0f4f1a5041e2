//! Convolutions with a constant filter that was packed once, in the panels of its sums.
//!
//! The operators have the arguments of the plain ones, and two more: whether the result is channels-last, which the layout of the filter
//! no longer says, and the number of its channels, which a packed filter fills up.

use super::{Conv, GENERAL, PLAIN, Positions, check_types, finished, macs, time};
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, DType, Ints, Layout, Meta, OpDef, Prepacked, Scalar};
use restride_kernels::conv::{conv_packed, conv_room, filled_channels, filter_order, pack_filter};

/// Numbers of a packed filter: groups, and whether its terms are channel by channel of each tap; those of the call.
fn numbers(a: &Args<'_, Meta>, p: &Positions) -> Option<(Vec<i64>, Vec<i64>)> {
    let (x, w) = (a.tensor(0).ok()?, a.tensor(1).ok()?);
    let conv = Conv::read(a, p, x.sizes(), w.sizes()).ok()?;
    if conv.transposed || x.dtype != w.dtype {
        return None;
    }
    let by_taps = filter_order(w.dtype, w.sizes(), &conv.window(x.sizes(), w.sizes()), conv.groups as usize)?;
    Some((vec![conv.groups, by_taps as i64], vec![conv.channels_last(x, w).ok()? as i64, w.sizes()[0]]))
}

const fn form(call: &'static str, numbers: restride_ir::PrepackFn) -> Prepacked {
    Prepacked { operand: 1, pack: "restride.pack_filter.default", call, numbers }
}

pub(super) static PLAIN_FORM: Prepacked = form("restride.conv_packed.default", |a| numbers(a, &PLAIN));
pub(super) static NAMED_FORM: Prepacked = form("restride.conv_packed.padding", |a| numbers(a, &PLAIN));
pub(super) static GENERAL_FORM: Prepacked = form("restride.convolution_packed.default", |a| numbers(a, &GENERAL));

/// The filter of argument 0, its result channels filled up group by group.
fn packing(a: &Args<'_, Meta>) -> Metas {
    let (w, groups) = (a.tensor(0)?, a.int(1)?);
    ensure!(w.rank() >= 3, "a {}-D tensor is no filter of a convolution", w.rank());
    ensure!(matches!(w.dtype, DType::F32 | DType::F64), "filters of {} are not packed", promote::name(w.dtype));
    ensure!(groups > 0 && w.sizes()[0] % groups == 0, "a filter of {} channels has no {groups} groups", w.sizes()[0]);
    let mut sizes = w.sizes().to_vec();
    sizes[0] = groups * filled_channels(w.dtype, (sizes[0] / groups) as usize) as i64;
    one(Meta::new(w.dtype, Layout::contiguous(&sizes)))
}

fn packing_kernel(c: &Call<'_>) -> Result<()> {
    ran(pack_filter(c.args.tensor(0)?, c.args.int(1)? as usize, c.args.bool(2)?, &c.outs[0]))
}

/// A call: the arguments of the plain operator, whether its result is channels-last, and the sizes of the filter.
struct PackedCall<'a, V> {
    args: Args<'a, V, Scalar>,
    channels_last: bool,
    filter: Ints,
}

impl<'a, V> PackedCall<'a, V> {
    /// `packed` are the sizes of the packed filter.
    fn read(a: &Args<'a, V>, packed: &[i64]) -> Result<Self> {
        let last = a.0.len() - 2;
        let mut filter = Ints::from_slice(packed);
        ensure!(!filter.is_empty(), "a packed filter has dimensions");
        filter[0] = a.int(last + 1)?;
        Ok(PackedCall { args: Args(&a.0[..last]), channels_last: a.bool(last)?, filter })
    }
}

fn infer(a: &Args<'_, Meta>, p: &Positions) -> Metas {
    let (x, w, bias) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    let call = PackedCall::read(a, w.sizes())?;
    let conv = Conv::read(&call.args, p, x.sizes(), &call.filter)?;
    ensure!(!conv.transposed, "filters of transposed convolutions are not packed");
    check_types(x, w, bias, call.filter[0])?;
    let each = filled_channels(w.dtype, (call.filter[0] / conv.groups) as usize) as i64;
    ensure!(
        w.sizes()[0] == conv.groups * each,
        "a packed filter of {} channels in {} groups has {}, not {}",
        call.filter[0],
        conv.groups,
        conv.groups * each,
        w.sizes()[0]
    );
    one(Meta::new(x.dtype, conv.layout(&conv.out, call.channels_last)?))
}

fn run(c: &Call<'_>, p: &Positions) -> Result<()> {
    let (x, w, bias) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.opt_tensor(2)?);
    let call = PackedCall::read(&c.args, w.sizes())?;
    let conv = Conv::read(&call.args, p, x.sizes(), &call.filter)?;
    let window = conv.window(x.sizes(), &call.filter);
    let channels = (conv.groups as usize, call.filter[0] as usize);
    ran(conv_packed(x, w, bias, &window, channels, &c.outs[0], c.ctx.threads))
}

fn scratch(a: &Args<'_, Meta>, outs: &[Meta], p: &Positions) -> Result<usize> {
    let (x, w, bias) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    let call = PackedCall::read(a, w.sizes())?;
    let window = Conv::read(&call.args, p, x.sizes(), &call.filter)?.window(x.sizes(), &call.filter);
    let room = || conv_room(stored(x), stored(w), bias.map(stored), &window, stored(&outs[0]));
    Ok(if outs[0].layout.numel() == 0 { 0 } else { room() })
}

macro_rules! packed {
    ($schema:literal, $positions:expr, $note:literal) => {
        close(
            $schema,
            |a| infer(a, &$positions),
            |c| run(c, &$positions),
            |a, outs| scratch(a, outs, &$positions),
            None,
        )
        .counted(|a, outs| {
            let call = PackedCall::read(a, a.tensor(1)?.sizes())?;
            macs(&call.args, outs, &$positions, &call.filter)
        })
        .timed(|a, outs| {
            let call = PackedCall::read(a, a.tensor(1)?.sizes())?;
            time(&call.args, outs, &$positions, &call.filter, true)
        })
        .finishing(|a, outs| {
            let call = PackedCall::read(a, a.tensor(1).ok()?.sizes()).ok()?;
            finished(&call.args, outs, &$positions, &call.filter)
        })
        .noted($note)
    };
}

pub(super) static OPS: &[OpDef] = table![
    without_scratch(
        "restride::pack_filter(Tensor self, SymInt groups, bool by_taps) -> Tensor",
        packing,
        packing_kernel,
        None,
    )
    .noted("a filter in the panels of a convolution's sums"),
    packed!(
        "restride::conv_packed(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, \
         SymInt[] dilation, SymInt groups, bool channels_last, SymInt channels) -> Tensor",
        PLAIN,
        "a convolution with a packed filter"
    ),
    packed!(
        "restride::conv_packed.padding(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, \
         SymInt[] dilation, SymInt groups, bool channels_last, SymInt channels) -> Tensor",
        PLAIN,
        "a convolution with a packed filter"
    ),
    packed!(
        "restride::convolution_packed(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, \
         SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool channels_last, SymInt channels) -> Tensor",
        GENERAL,
        "a convolution with a packed filter"
    ),
];
