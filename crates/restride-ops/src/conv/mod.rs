//! Convolutions. Results are channels-last if the strides of input or weight suggest it, as on PyTorch's CPU.

mod backward;
mod grad;
mod packed;

use crate::support::promote;
use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Arg, Args, Call, DType, Ints, Layout, Meta, OpDef, Reuse, ReuseKind};
use restride_kernels::conv::in_place;
use restride_kernels::conv::window::Window;
use restride_kernels::conv::{self};
use smallvec::smallvec;

/// Argument positions of one operator.
pub(crate) struct Positions {
    pub stride: usize,
    pub padding: usize,
    pub dilation: usize,
    pub groups: usize,
    pub transposed: Transposed,
    pub output_padding: Option<usize>,
}

pub(crate) enum Transposed {
    No,
    Yes,
    Arg(usize),
}

const PLAIN: Positions =
    Positions { stride: 3, padding: 4, dilation: 5, groups: 6, transposed: Transposed::No, output_padding: None };
const GENERAL: Positions = Positions {
    stride: 3,
    padding: 4,
    dilation: 5,
    groups: 8,
    transposed: Transposed::Arg(6),
    output_padding: Some(7),
};
const TRANSPOSED: Positions =
    Positions { stride: 3, padding: 4, dilation: 7, groups: 6, transposed: Transposed::Yes, output_padding: Some(5) };

/// The checked sizes and options of a convolution.
#[derive(Debug)]
pub(crate) struct Conv {
    stride: Ints,
    /// Padding before the first element.
    pad: Ints,
    dilation: Ints,
    pub groups: i64,
    pub transposed: bool,
    output_padding: Ints,
    /// Sizes of the result, without the batch if the input has none.
    pub out: Ints,
    /// Number of spatial dimensions.
    spatial: usize,
}

pub(crate) fn show(sizes: &[i64]) -> String {
    format!("[{}]", sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}

impl Conv {
    pub fn read<V>(a: &Args<'_, V>, p: &Positions, x: &[i64], w: &[i64]) -> Result<Conv> {
        let spatial = w.len().wrapping_sub(2);
        ensure!(
            (1..=3).contains(&spatial),
            "weight should have at least three and at most five dimensions, got {}",
            w.len()
        );
        ensure!(
            x.len() == w.len() || x.len() + 1 == w.len(),
            "Expected {}D (unbatched) or {}D (batched) input to conv, but got input of size: {}",
            w.len() - 1,
            w.len(),
            show(x)
        );
        let transposed = match p.transposed {
            Transposed::No => false,
            Transposed::Yes => true,
            Transposed::Arg(i) => a.bool(i)?,
        };
        let stride = spread(a, p.stride, spatial, "stride")?;
        let dilation = spread(a, p.dilation, spatial, "dilation")?;
        let output_padding = match p.output_padding {
            Some(i) if transposed => spread(a, i, spatial, "output_padding")?,
            _ => smallvec![0; spatial],
        };
        let groups = a.int(p.groups)?;
        ensure!(groups > 0, "non-positive groups is not supported");
        ensure!(stride.iter().all(|&s| s > 0), "non-positive stride is not supported");
        ensure!(dilation.iter().all(|&d| d > 0), "dilation should be greater than zero");
        ensure!(output_padding.iter().all(|&p| p >= 0), "negative output_padding is not supported");
        let kernel = &w[2..];
        let named = match a.0.get(p.padding) {
            Some(Arg::Str(s)) => Some(&**s),
            _ => None,
        };
        let mut same = false;
        let pad = match named {
            None => spread(a, p.padding, spatial, "padding")?,
            Some("valid") => smallvec![0; spatial],
            Some("same") => {
                ensure!(stride.iter().all(|&s| s == 1), "padding='same' is not supported for strided convolutions");
                same = true;
                kernel.iter().zip(&dilation).map(|(k, d)| d * (k - 1) / 2).collect()
            }
            Some(other) => return fail(format!("Invalid padding string: '{other}'")),
        };
        ensure!(pad.iter().all(|&p| p >= 0), "negative padding is not supported");
        let lead = x.len() + 1 - w.len();
        let channels = x[lead];
        let (cin, cout) = if transposed { (w[0], w[1] * groups) } else { (w[1] * groups, w[0]) };
        ensure!(
            w[0] >= groups && w[0] % groups == 0,
            "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{}] instead",
            show(w)
        );
        ensure!(
            channels == cin,
            "Given {}groups={groups}, weight of size {}, expected input{} to have {cin} channels, but got {channels} channels instead",
            if transposed { "transposed=1, " } else { "" },
            show(w),
            show(x)
        );
        let mut out = Ints::from_slice(&x[..lead]);
        // PyTorch's result for an input without channels.
        out.push(if channels == 0 { 0 } else { cout });
        for d in 0..spatial {
            let (n, k) = (x[lead + 1 + d], dilation[d] * (kernel[d] - 1) + 1);
            if transposed {
                let size = (n - 1) * stride[d] - 2 * pad[d] + k + output_padding[d];
                ensure!(
                    output_padding[d] < stride[d].max(dilation[d]),
                    "output padding must be smaller than either stride or dilation, but got {}",
                    output_padding[d]
                );
                ensure!(
                    size > 0,
                    "Given input size per channel: {}. Calculated output size is too small",
                    show(&x[lead + 1..])
                );
                out.push(size);
            } else if same {
                out.push(n);
            } else {
                let padded: Ints = (0..spatial).map(|d| x[lead + 1 + d] + 2 * pad[d]).collect();
                ensure!(
                    padded[d] >= k,
                    "Calculated padded input size per channel: {}. Kernel size: {}. Kernel size can't be greater than actual input size",
                    show(&padded),
                    show(kernel)
                );
                out.push((padded[d] - k) / stride[d] + 1);
            }
        }
        Ok(Conv { stride, pad, dilation, groups, transposed, output_padding, out, spatial })
    }

    /// The sliding window over the wide side: the input, or the result of a transposed convolution.
    pub fn window(&self, x: &[i64], w: &[i64]) -> Window {
        let (x, out) = (&x[x.len() - self.spatial..], &self.out[self.out.len() - self.spatial..]);
        let (wide, narrow) = if self.transposed { (out, x) } else { (x, out) };
        Window::new(wide, &w[2..], narrow, &self.stride, &self.pad, &self.dilation)
    }

    /// Whether the results are channels-last, as on PyTorch's CPU.
    pub fn channels_last(&self, x: &Meta, w: &Meta) -> Result<bool> {
        let batched = if x.rank() < w.rank() { x.layout.unsqueeze(0)? } else { x.layout.clone() };
        Ok(match self.spatial {
            // The input becomes row-major before it becomes an image of one line.
            1 => suggests_channels_last(&w.layout.unsqueeze(2)?),
            2 => suggests_channels_last(&batched) || suggests_channels_last(&w.layout),
            // Only oneDNN's kernels keep NDHWC; PyTorch selects them for large f32 tensors.
            _ => {
                let n = batched.sizes[0];
                let padded = self.output_padding.iter().zip(&self.stride).any(|(p, s)| p >= s);
                let big = batched.sizes[..4].iter().product::<i64>() > 20480;
                let wide = w.sizes()[3] > 3 && w.sizes()[4] > 3;
                let fast = !(self.transposed && padded) && (self.groups > 1 || wide || n > 1 || big);
                x.dtype == DType::F32 && fast && (suggests_channels_last(&batched) || suggests_channels_last(&w.layout))
            }
        })
    }

    /// Layout of a result of the given sizes.
    pub fn layout(&self, sizes: &[i64], channels_last: bool) -> Result<Layout> {
        let batched = sizes.len() == self.spatial + 2;
        if !channels_last {
            return Ok(Layout::contiguous(sizes));
        }
        let mut full = sizes.to_vec();
        if !batched {
            full.insert(0, 1);
        }
        if self.spatial == 1 {
            full.insert(2, 1);
        }
        let mut l =
            if full.contains(&0) { Layout::contiguous(&full) } else { crate::support::strides::channels_last(&full) };
        if self.spatial == 1 {
            l = l.select(2, &0)?;
        }
        Ok(if batched { l } else { l.select(0, &0)? })
    }
}

pub(crate) fn check_types(x: &Meta, w: &Meta, bias: Option<&Meta>, cout: i64) -> Result<()> {
    let lower = |d: DType| promote::name(d).to_lowercase();
    ensure!(
        x.dtype == w.dtype,
        "Input type ({}) and weight type ({}) should be the same",
        lower(x.dtype),
        lower(w.dtype)
    );
    ensure!(x.dtype != DType::Bool, "convolution is not implemented for 'Bool'");
    if let Some(b) = bias {
        ensure!(
            b.dtype == x.dtype,
            "Input type ({}) and bias type ({}) should be the same",
            lower(x.dtype),
            lower(b.dtype)
        );
        ensure!(
            b.sizes() == [cout],
            "Given weight of size {}, expected bias to be 1-dimensional with {cout} elements, but got bias of size {} instead",
            show(w.sizes()),
            show(b.sizes())
        );
    }
    Ok(())
}

fn infer(a: &Args<'_, Meta>, p: &Positions) -> Metas {
    let (x, w, bias) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    let c = Conv::read(a, p, x.sizes(), w.sizes())?;
    let cout = if c.transposed { w.sizes()[1] * c.groups } else { w.sizes()[0] };
    check_types(x, w, bias, cout)?;
    one(Meta::new(x.dtype, c.layout(&c.out, c.channels_last(x, w)?)?))
}

fn run(c: &Call<'_>, p: &Positions) -> Result<()> {
    let (x, w, bias) = (c.args.tensor(0)?, c.args.tensor(1)?, c.args.opt_tensor(2)?);
    let conv = Conv::read(&c.args, p, x.sizes(), w.sizes())?;
    let window = conv.window(x.sizes(), w.sizes());
    let f = if conv.transposed { conv::conv_transposed } else { conv::conv };
    ran(f(x, w, bias, &window, conv.groups as usize, &c.outs[0], c.ctx.threads))
}

fn scratch(a: &Args<'_, Meta>, outs: &[Meta], p: &Positions) -> Result<usize> {
    let (x, w, bias) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    let conv = Conv::read(a, p, x.sizes(), w.sizes())?;
    let window = conv.window(x.sizes(), w.sizes());
    let f = if conv.transposed { conv::conv_transposed_room } else { conv::conv_room };
    Ok(if outs[0].layout.numel() == 0 {
        0
    } else {
        f(stored(x), stored(w), bias.map(stored), &window, stored(&outs[0]))
    })
}

/// Multiply-adds: each element of the result sums the products of a filter, each element of a transposed convolution's input meets
/// all filters of its channel.
fn macs(a: &Args<'_, Meta>, outs: &[Meta], p: &Positions, w: &[i64]) -> Result<i64> {
    let x = a.tensor(0)?;
    let each = if Conv::read(a, p, x.sizes(), w)?.transposed { x } else { &outs[0] };
    Ok(each.layout.numel().saturating_mul(w[1..].iter().product()))
}

/// Picoseconds of a convolution by the layouts of input and result, as `cargo bench -p restride-kernels -- conv2d` has them on AVX2.
/// Channels-last products write lines of few channels and put windows in order; channels-first depthwise windows are framed. Packed
/// filters have one kernel for all layouts.
fn time(a: &Args<'_, Meta>, outs: &[Meta], p: &Positions, w: &[i64], packed: bool) -> Result<i64> {
    let x = a.tensor(0)?;
    let conv = Conv::read(a, p, x.sizes(), w)?;
    let last = [is_channels_last(x, conv.spatial), is_channels_last(&outs[0], conv.spatial)];
    let (macs, results) = (macs(a, outs, p, w)?, outs[0].layout.numel());
    let mixed = if last[0] == last[1] { 0 } else { x.layout.numel().saturating_add(results).saturating_mul(MIXED) };
    let taps: i64 = w[2..].iter().product();
    let (cin, cout) = (w[1], w[0] / conv.groups);
    let channels_last = last == [true, true];
    if packed {
        // The input is copied from either layout, planes in more steps; results that are planes are turned.
        let copied = if last[0] { 0 } else { x.layout.numel().saturating_mul(400) };
        let turned = if last[1] { 0 } else { results.saturating_mul(100) };
        return Ok(macs.saturating_mul(21).saturating_add(copied).saturating_add(turned));
    }
    // Terms that are put in order for the result's channels.
    let terms = if taps > 1 { macs / cout.max(1) } else { 0 };
    let time = match () {
        // The input is framed from either layout.
        () if cin < 16 && (cin > 1 || taps == 1) && !conv.transposed => {
            return Ok(macs.saturating_mul(28) + if last[1] { results.saturating_mul(300) } else { 0 });
        }
        () if conv.transposed => macs.saturating_mul(if channels_last { 24 } else { 28 }),
        () if cin == 1 => macs.saturating_mul(if channels_last { 66 } else { 120 }),
        () if channels_last => macs.saturating_mul(23) + results.saturating_mul(200) + terms.saturating_mul(200),
        () => macs.saturating_mul(28),
    };
    Ok(time.saturating_add(mixed))
}

/// Samples and channels are rows of finished parts, windows the columns.
fn finished(a: &Args<'_, Meta>, outs: &[Meta], p: &Positions, w: &[i64]) -> Option<usize> {
    let conv = Conv::read(a, p, a.tensor(0).ok()?.sizes(), w).ok()?;
    (!conv.transposed).then(|| outs[0].rank() + 2 - w.len())
}

/// Whether the result may take over the input's memory.
fn trailing(a: &Args<'_, Meta>, p: &Positions) -> Result<bool> {
    let (x, w, bias) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    let conv = Conv::read(a, p, x.sizes(), w.sizes())?;
    let samples = if x.rank() == w.rank() { x.sizes()[0] } else { 1 };
    let channels = (w.sizes()[1] as usize, w.sizes()[0] as usize);
    Ok(!conv.transposed
        && samples == 1
        && bias.is_none_or(|b| b.dtype == x.dtype)
        && in_place::fits(x.dtype, channels, &conv.window(x.sizes(), w.sizes()), conv.groups as usize))
}

macro_rules! convolution {
    ($schema:literal, $positions:expr, $samples:expr) => {
        close(
            $schema,
            |a| infer(a, &$positions),
            |c| run(c, &$positions),
            |a, outs| scratch(a, outs, &$positions),
            samples!($samples),
        )
        .reusing(&[Reuse { arg: 0, result: 0, kind: ReuseKind::Trailing }])
        .trailing(|a| trailing(a, &$positions).unwrap_or(false))
        .counted(|a, outs| macs(a, outs, &$positions, a.tensor(1)?.sizes()))
        .timed(|a, outs| time(a, outs, &$positions, a.tensor(1)?.sizes(), false))
        .finishing(|a, outs| finished(a, outs, &$positions, a.tensor(1).ok()?.sizes()))
    };
}

pub(crate) static OPS: &[OpDef] = table![
    convolution!("conv2d", PLAIN, conv2d_samples).packing(&packed::PLAIN_FORM),
    convolution!("convolution", GENERAL, general_samples).packing(&packed::GENERAL_FORM),
    convolution!("conv2d.padding", PLAIN, padding2d_samples).packing(&packed::NAMED_FORM),
    convolution!("conv1d", PLAIN, conv1d_samples).packing(&packed::PLAIN_FORM),
    convolution!("conv1d.padding", PLAIN, padding1d_samples).packing(&packed::NAMED_FORM),
    convolution!("conv3d", PLAIN, conv3d_samples).packing(&packed::PLAIN_FORM),
    convolution!("conv3d.padding", PLAIN, padding3d_samples).packing(&packed::NAMED_FORM),
    convolution!("_convolution_mode", PLAIN, s_convolution_mode),
    convolution!("_convolution", GENERAL, underscore_samples),
    convolution!("conv_transpose2d.input", TRANSPOSED, transpose2d_samples),
    convolution!("conv_transpose1d", TRANSPOSED, transpose1d_samples),
    convolution!("conv_transpose3d.input", TRANSPOSED, transpose3d_samples),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[OPS, backward::OPS, packed::OPS], gradients: &[grad::GRADS], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const TYPES: [DType; 4] = [DType::F64, DType::F16, DType::BF16, DType::C64];

    pub(crate) fn conv2d_samples() -> Samples {
        let d = DType::F32;
        let (w, b) = (tensor(d, &[4, 3, 3, 3], 7), tensor(d, &[4], 8));
        let x = tensor(d, &[2, 3, 7, 8], 1);
        let mut out: Samples = forms(d, &[2, 3, 7, 8], 1).into_iter().map(|x| sample![x, &w, &b]).collect();
        out.extend([
            sample![&x, &w],
            sample![nhwc(d, &[2, 3, 7, 8], 2), &w, &b, [2, 1], [1, 0]],
            sample![&x, nhwc(d, &[4, 3, 3, 3], 2), &b, [1, 1], [2, 2], [2, 2]],
            sample![nhwc(d, &[1, 3, 7, 8], 2), &w, &b, 2, 1],
            sample![tensor(d, &[3, 7, 8], 1), &w, &b],
            sample![&x, tensor(d, &[4, 3, 1, 1], 2), &b],
            sample![&x, tensor(d, &[4, 3, 1, 1], 2), (), 2],
            sample![nhwc(d, &[2, 3, 7, 8], 1), tensor(d, &[6, 1, 3, 3], 2), tensor(d, &[6], 3), 1, 1, 1, 3],
            sample![tensor(d, &[2, 4, 5, 5], 1), tensor(d, &[6, 2, 2, 3], 2), (), [1, 2], [0, 1], [2, 1], 2],
            sample![tensor(d, &[0, 3, 7, 8], 1), &w, &b],
            sample![expanded(d, &[2, 3, 7, 8], 1), transposed(d, &[4, 3, 3, 3], 2), strided(d, &[4], 3)],
            sample![tensor(d, &[1, 16, 20, 20], 1), tensor(d, &[24, 16, 3, 3], 2), (), 1, 1],
        ]);
        out.extend(
            TYPES
                .iter()
                .map(|&d| sample![nhwc(d, &[2, 2, 5, 6], 1), tensor(d, &[3, 2, 3, 3], 2), tensor(d, &[3], 3), 1, 1]),
        );
        out.push(sample![tensor(DType::I64, &[1, 2, 5, 6], 1), tensor(DType::I64, &[3, 2, 3, 3], 2)]);
        out
    }

    pub(crate) fn padding2d_samples() -> Samples {
        let d = DType::F32;
        let (x, w, b) = (tensor(d, &[2, 3, 7, 8], 1), tensor(d, &[4, 3, 3, 4], 7), tensor(d, &[4], 8));
        vec![
            sample![&x, &w, &b, 1, "same"],
            sample![nhwc(d, &[2, 3, 7, 8], 1), &w, &b, [1, 1], "same", [2, 1]],
            sample![&x, &w, (), [2, 1], "valid"],
            sample![tensor(d, &[3, 7, 8], 1), &w, &b, 1, "same"],
        ]
    }

    pub(crate) fn conv1d_samples() -> Samples {
        let d = DType::F32;
        let (w, b) = (tensor(d, &[4, 3, 3], 7), tensor(d, &[4], 8));
        let mut out: Samples = forms(d, &[2, 3, 9], 1).into_iter().map(|x| sample![x, &w, &b, 2, 1]).collect();
        out.extend([
            sample![tensor(d, &[3, 9], 1), &w],
            sample![tensor(d, &[2, 3, 9], 1), tensor(d, &[4, 3, 3], 7).clone(), (), 1, 0, 2],
            sample![
                tensor(d, &[2, 3, 9], 1),
                crate::support::samples::laid(d, Layout::permuted(&[4, 3, 3], &[0, 2, 1]), 2),
                &b
            ],
            sample![tensor(d, &[2, 4, 9], 1), tensor(d, &[4, 1, 4], 7), &b, 1, 3, 1, 4],
        ]);
        out
    }

    pub(crate) fn padding1d_samples() -> Samples {
        let d = DType::F32;
        vec![
            sample![tensor(d, &[2, 3, 9], 1), tensor(d, &[4, 3, 4], 7), (), 1, "same"],
            sample![tensor(d, &[2, 3, 9], 1), tensor(d, &[4, 3, 3], 7), tensor(d, &[4], 8), 2, "valid"],
        ]
    }

    pub(crate) fn conv3d_samples() -> Samples {
        let d = DType::F32;
        let (w, b) = (tensor(d, &[4, 2, 2, 3, 2], 7), tensor(d, &[4], 8));
        vec![
            sample![tensor(d, &[1, 2, 4, 5, 6], 1), &w, &b],
            sample![nhwc(d, &[2, 2, 4, 5, 6], 1), &w, &b, [1, 2, 1], [1, 0, 1]],
            sample![nhwc(d, &[1, 2, 4, 5, 6], 1), &w, &b],
            sample![tensor(d, &[2, 4, 5, 6], 1), &w, &b, 1, 1, 2],
            sample![nhwc(DType::F64, &[2, 2, 4, 5, 6], 1), tensor(DType::F64, &[4, 2, 2, 3, 2], 7)],
        ]
    }

    pub(crate) fn padding3d_samples() -> Samples {
        let d = DType::F32;
        vec![sample![tensor(d, &[1, 2, 4, 5, 6], 1), tensor(d, &[4, 2, 2, 3, 2], 7), tensor(d, &[4], 8), 1, "same"]]
    }

    pub(crate) fn general_samples() -> Samples {
        let d = DType::F32;
        let (x, w, b) = (tensor(d, &[2, 4, 7, 8], 1), tensor(d, &[4, 2, 3, 3], 7), tensor(d, &[4], 8));
        let one: &[i64] = &[1];
        vec![
            sample![&x, &w, &b, [2, 1], [1, 0], [1, 1], false, [0, 0], 2],
            sample![&x, &w, (), [2, 1], [1, 0], [1, 2], true, [1, 0], 2],
            sample![nhwc(d, &[2, 4, 7, 8], 1), &w, &b, [1, 1], [1, 1], [1, 1], false, [0, 0], 2],
            sample![tensor(d, &[2, 4, 9], 1), tensor(d, &[4, 4, 3], 7), &b, one, one, one, false, [0], 1],
            sample![tensor(d, &[2, 4, 9], 1), tensor(d, &[4, 4, 3], 7), &b, [3], [0], [2], true, [2], 1],
        ]
    }

    pub(crate) fn underscore_samples() -> Samples {
        let mut out = general_samples();
        for s in &mut out {
            s.args.extend([false, false, true, true].map(|b| Arg::Scalar(Scalar::Bool(b))));
        }
        out
    }

    pub(crate) fn transpose2d_samples() -> Samples {
        let d = DType::F32;
        let (w, b) = (tensor(d, &[3, 4, 3, 2], 7), tensor(d, &[4], 8));
        let mut out: Samples = forms(d, &[2, 3, 5, 6], 1).into_iter().map(|x| sample![x, &w, &b]).collect();
        out.extend([
            sample![nhwc(d, &[2, 3, 5, 6], 1), &w, (), 2, 1, [1, 0]],
            sample![tensor(d, &[3, 5, 6], 1), &w, &b, [2, 3], [1, 0], [0, 2], 1, [2, 1]],
            sample![tensor(d, &[2, 4, 5, 6], 1), tensor(d, &[4, 3, 2, 2], 7), (), 2, 0, 0, 2],
            sample![tensor(d, &[1, 16, 9, 9], 1), tensor(d, &[16, 20, 3, 3], 7), (), 1, 1],
            sample![nhwc(DType::F64, &[2, 3, 5, 6], 1), tensor(DType::F64, &[3, 4, 3, 2], 7)],
            sample![tensor(DType::BF16, &[2, 3, 5, 6], 1), tensor(DType::BF16, &[3, 4, 3, 2], 7)],
        ]);
        out
    }

    pub(crate) fn transpose1d_samples() -> Samples {
        let d = DType::F32;
        let (w, b) = (tensor(d, &[3, 4, 3], 7), tensor(d, &[4], 8));
        let mut out: Samples = forms(d, &[2, 3, 9], 1).into_iter().map(|x| sample![x, &w, &b, 2, 1]).collect();
        out.push(sample![tensor(d, &[3, 9], 1), &w, (), 2, 1, 1]);
        out
    }

    pub(crate) fn transpose3d_samples() -> Samples {
        let d = DType::F32;
        let w = tensor(d, &[2, 3, 2, 3, 2], 7);
        vec![
            sample![tensor(d, &[1, 2, 3, 4, 5], 1), &w, tensor(d, &[3], 8), 2, 1, [1, 0, 1]],
            sample![nhwc(d, &[2, 2, 3, 4, 5], 1), &w],
        ]
    }

    pub(crate) fn s_convolution_mode() -> Samples {
        vec![sample![
            tensor(DType::F32, &[2, 3, 7, 8], 1),
            tensor(DType::F32, &[4, 3, 3, 4], 7),
            (),
            [1, 1],
            "same",
            [1, 1],
            1
        ]]
    }
}
