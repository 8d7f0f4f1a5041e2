//! Pooling over one to three dimensions, its gradients, and unpooling.
//!
//! Two-dimensional results are channels-last if the operand's strides suggest it. In three dimensions only maxima are, as on
//! PyTorch's CPU.

mod grad;
#[cfg(feature = "samples")]
mod samples;
mod unpool;

use crate::support::promote;
use crate::support::scratch::{packed, stored};
use crate::support::*;
use restride_ir::{Args, Call, DType, Ints, Layout, Meta, OpDef};
use restride_kernels::pool::{self, Span, Spans};
use restride_kernels::support::scratch::{Temp, room};
use smallvec::{SmallVec, smallvec};

/// Where one operator takes its windows from, and the layout of its results.
#[derive(Clone, Copy)]
struct PoolForm {
    /// Number of dimensions over which windows slide.
    spatial: usize,
    windows: WindowSource,
    layout: ResultOrder,
    types: PoolTypes,
}

/// Source of the windows.
#[derive(Clone, Copy)]
enum WindowSource {
    /// Kernel size, stride and padding from argument `at` on, then an optional dilation, then `ceil_mode`.
    Sliding { at: usize, dilated: bool },
    /// The argument with the result sizes.
    Adaptive(usize),
    /// One window per element of this operand (the gradient of adaptive pooling).
    Like(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ResultOrder {
    RowMajor,
    /// Channels-last if the operand's strides suggest it.
    Suggested,
    /// As `Suggested`, but only for a result with one element per channel, which PyTorch computes as a mean over dimensions.
    SuggestedIfGlobal,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PoolTypes {
    /// Floats and integers.
    Real,
    Float,
    /// Floats and `i64`.
    FloatOrLong,
    /// `f32`, `f64` and `i64`.
    WideOrLong,
}

/// The checked windows and result sizes of a call.
struct PoolCall {
    spans: Spans,
    sizes: Ints,
}

/// A list argument; an empty list means the default.
fn list<V>(a: &Args<'_, V>, i: usize, n: usize, what: &str, default: &[i64]) -> Result<Ints> {
    if a.is_none(i) || a.ints(i)?.is_empty() { Ok(Ints::from_slice(default)) } else { spread(a, i, n, what) }
}

fn check_type(types: PoolTypes, d: DType) -> Result<()> {
    let fits = match types {
        PoolTypes::Real => d.is_float() || d.is_int(),
        PoolTypes::Float => d.is_float(),
        PoolTypes::FloatOrLong => d.is_float() || d == DType::I64,
        PoolTypes::WideOrLong => matches!(d, DType::F32 | DType::F64 | DType::I64),
    };
    ensure!(fits, "pooling is not implemented for '{}'", promote::name(d));
    Ok(())
}

impl PoolForm {
    /// Windows and result sizes for an operand of sizes `x`; `like` returns the sizes of another argument.
    fn read<V>(&self, a: &Args<'_, V>, x: &[i64], like: impl Fn(&V) -> Ints) -> Result<PoolCall> {
        let n = self.spatial;
        ensure!(
            x.len() == n + 1 || x.len() == n + 2,
            "Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got: {x:?}",
            n + 1,
            n + 2
        );
        let plane = &x[x.len() - n..];
        let adaptive = |out: &[i64]| -> Result<Windowed> {
            ensure!(
                plane.iter().all(|&k| k > 0),
                "adaptive pooling: Expected input to have non-zero size for non-batch dimensions, but input has sizes {x:?}"
            );
            ensure!(
                out.iter().all(|&k| (0..1 << 31).contains(&k)),
                "adaptive pooling: output_size must not be negative"
            );
            Ok(plane.iter().zip(out).map(|(&k, &o)| adaptive_spans(k, o)).collect())
        };
        let windows = match self.windows {
            WindowSource::Adaptive(i) => adaptive(&adaptive_sizes(a, i, n)?)?,
            WindowSource::Like(i) => {
                let g = like(a.tensor(i)?);
                ensure!(
                    g.len() == x.len() && g[..g.len() - n] == x[..x.len() - n],
                    "the gradient of sizes {g:?} does not fit an input of sizes {x:?}"
                );
                adaptive(&g[g.len() - n..])?
            }
            WindowSource::Sliding { at, dilated } => {
                ensure!(
                    x[x.len() - n - 1..].iter().all(|&k| k > 0),
                    "Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got: {x:?}",
                    n + 1,
                    n + 2
                );
                self.sliding(a, at, dilated, plane)?
            }
        };
        let mut sizes = Ints::from_slice(&x[..x.len() - n]);
        sizes.extend(windows.iter().map(|w| w.len() as i64));
        let mut input = [1; 3];
        let lone = || Temp::filled(1, Span { start: 0, end: 1, step: 1, size: 1 });
        let mut all = [lone(), lone(), lone()];
        for (d, w) in windows.into_iter().enumerate() {
            input[3 - n + d] = plane[d] as usize;
            all[3 - n + d] = w;
        }
        Ok(PoolCall { spans: Spans { spatial: n, input, windows: all }, sizes })
    }

    fn sliding<V>(&self, a: &Args<'_, V>, at: usize, dilated: bool, plane: &[i64]) -> Result<Windowed> {
        let n = self.spatial;
        let kernel = spread(a, at, n, "kernel_size")?;
        let stride = list(a, at + 1, n, "stride", &kernel)?;
        let pad = spread(a, at + 2, n, "padding")?;
        let dilation = if dilated { spread(a, at + 3, n, "dilation")? } else { smallvec![1; n] };
        let ceil = a.bool(at + 3 + dilated as usize)?;
        // Whether padding counts in the divisor; maxima have none.
        let include = dilated || a.bool(at + 4)?;
        ensure!(kernel.iter().all(|&k| k > 0), "kernel size should be greater than zero, but got {kernel:?}");
        ensure!(stride.iter().all(|&s| s > 0), "stride should be greater than zero, but got {stride:?}");
        ensure!(dilation.iter().all(|&d| d > 0), "dilation should be greater than zero, but got {dilation:?}");
        ensure!(
            pad.iter().zip(&kernel).all(|(&p, &k)| p >= 0 && p <= k / 2),
            "pad should be at most half of effective kernel size, but got pad={pad:?} and kernel_size={kernel:?}"
        );
        let mut out = Windowed::new();
        for d in 0..n {
            let (size, k, s, p, by) = (plane[d], kernel[d], stride[d], pad[d], dilation[d]);
            let room = size + 2 * p - by * (k - 1) - 1;
            let mut count = (room + if ceil { s - 1 } else { 0 }).div_euclid(s) + 1;
            if ceil && (count - 1) * s >= size + p {
                count -= 1;
            }
            ensure!(
                count >= 1,
                "Given input size: {plane:?}. Calculated output size is {count} in dimension {d}. Output size is too small"
            );
            let span = |o: i64| {
                let first = o * s - p;
                // The last window of `ceil_mode` may extend past the padding; that part does not count.
                let end = (first + by * (k - 1) + 1).min(size + p);
                let start = if first < 0 { first + (-first + by - 1) / by * by } else { first };
                let inside = end.min(size).max(start);
                let divide = if include { end - first } else { inside - start };
                Span { start: start as usize, end: inside as usize, step: by as usize, size: divide.max(0) as usize }
            };
            out.push(Temp::gather(count as usize, (0..count).map(span)));
        }
        Ok(out)
    }

    /// Layout of results of the given sizes for an operand's layout.
    fn order(&self, x: &Layout, sizes: &[i64]) -> Result<Layout> {
        let batched = x.rank() == self.spatial + 2;
        let global = sizes[sizes.len() - self.spatial..].iter().all(|&n| n == 1);
        let row_major =
            self.layout == ResultOrder::RowMajor || (self.layout == ResultOrder::SuggestedIfGlobal && !global);
        if row_major || !batched {
            return Ok(Layout::contiguous(sizes));
        }
        if self.spatial > 1 {
            return Ok(suggested(x, DType::F32, sizes).layout);
        }
        // One-dimensional pooling treats a row as an image of one line.
        let image: Vec<i64> = [sizes[0], sizes[1], 1, sizes[2]].to_vec();
        Ok(suggested(&x.unsqueeze(2)?, DType::F32, &image).layout.select(2, &0)?)
    }

    fn infer(&self, a: &Args<'_, Meta>, operand: usize) -> Result<(Meta, PoolCall)> {
        let x = a.tensor(operand)?;
        check_type(self.types, x.dtype)?;
        let pool = self.read(a, x.sizes(), |m| Ints::from_slice(m.sizes()))?;
        // PyTorch's kernel does not support NHWC strides for a volume without a batch.
        ensure!(
            !(self.spatial == 3
                && self.layout == ResultOrder::Suggested
                && x.rank() == 4
                && suggests_channels_last(&x.layout)),
            "Unsupported memory format. Supports only ChannelsLast3d, Contiguous"
        );
        Ok((Meta::new(x.dtype, self.order(&x.layout, &pool.sizes)?), pool))
    }

    fn spans(&self, c: &Call<'_>, operand: usize) -> Result<Spans> {
        Ok(self.read(&c.args, c.args.tensor(operand)?.sizes(), |v| Ints::from_slice(v.sizes()))?.spans)
    }
}

/// The requested sizes of an adaptive pooling.
fn adaptive_sizes<V>(a: &Args<'_, V>, i: usize, n: usize) -> Result<Ints> {
    let sizes = a.ints(i)?;
    ensure!(sizes.len() == n, "adaptive pooling: output_size must be {n}");
    Ok(sizes)
}

/// `out` windows that together cover `n` elements.
fn adaptive_spans(n: i64, out: i64) -> Temp<Span> {
    let span = |o: i64| {
        let (start, end) = ((o * n / out) as usize, ((o + 1) * n + out - 1) as usize / out as usize);
        Span { start, end, step: 1, size: end - start }
    };
    Temp::gather(out as usize, (0..out).map(span))
}

/// The windows of each dimension.
type Windowed = SmallVec<[Temp<Span>; 3]>;

/// Scratch bytes of the windows and of converted operands and results; of packed ones unless `forward`.
fn scratch(a: &Args<'_, Meta>, outs: &[Meta], f: &PoolForm, operand: usize, forward: bool) -> Result<usize> {
    let spans = f.read(a, a.tensor(operand)?.sizes(), |m| Ints::from_slice(m.sizes()))?.spans;
    // The windows of each dimension; the sum below adds one window for each of up to three missing dimensions.
    let windows: usize = spans.windows.iter().map(|w| room::<Span>(w.len())).sum();
    let operands = match forward {
        true => pool::room(stored(a.tensor(operand)?), stored(&outs[0])),
        false => packed(a, outs)?,
    };
    Ok(windows + 3 * room::<Span>(1) + operands)
}

/// Picoseconds of a pooling by the layouts of operand and result: channels that are side by side are computed together.
fn time(a: &Args<'_, Meta>, outs: &[Meta], f: &PoolForm) -> Result<i64> {
    let x = a.tensor(0)?;
    let spans = f.read(a, x.sizes(), |m| Ints::from_slice(m.sizes()))?.spans;
    let along = |w: &[Span]| w.iter().map(|w| (w.end.saturating_sub(w.start) / w.step.max(1)) as i64).sum::<i64>();
    let planes: i64 = x.sizes()[..x.rank() - f.spatial].iter().product();
    let elements = spans.windows.iter().map(|w| along(w).max(1)).fold(planes, i64::saturating_mul);
    // One result for each channel is in both orders.
    let beside = |m: &Meta| is_channels_last(m, f.spatial) || m.sizes()[m.rank() - f.spatial..].iter().all(|&n| n == 1);
    let last = [is_channels_last(x, f.spatial), beside(&outs[0])];
    Ok(elements.saturating_mul(match last {
        [true, true] => 100,
        [false, _] if !is_channels_last(&outs[0], f.spatial) => 400,
        _ => 400 + MIXED,
    }))
}

fn one_result(f: &PoolForm, a: &Args<'_, Meta>) -> Metas {
    one(f.infer(a, 0)?.0)
}

fn with_indices(f: &PoolForm, a: &Args<'_, Meta>) -> Metas {
    let y = f.infer(a, 0)?.0;
    let indices = Meta::new(DType::I64, y.layout.clone());
    Ok(smallvec![y, indices])
}

fn run_max(f: &PoolForm, c: &Call<'_>) -> Result<()> {
    ran(pool::max(c.args.tensor(0)?, &f.spans(c, 0)?, &c.outs[0], c.outs.get(1), c.ctx.threads))
}

/// Kernel of mean pooling; `by` is the position of `divisor_override`.
fn run_mean(f: &PoolForm, by: Option<usize>, c: &Call<'_>) -> Result<()> {
    let by = by.map_or(Ok(None), |i| c.args.opt_int(i))?;
    ran(pool::mean(c.args.tensor(0)?, &f.spans(c, 0)?, by, &c.outs[0], c.ctx.threads))
}

/// The gradient has the operand's sizes; argument 0, the result's gradient, must match them.
fn backward_infer(f: &PoolForm, a: &Args<'_, Meta>) -> Metas {
    let (g, x) = (a.tensor(0)?, a.tensor(1)?);
    let (_, pool) = f.infer(a, 1)?;
    ensure!(
        g.dtype == x.dtype && *g.sizes() == pool.sizes[..],
        "expected a gradient of type {} and sizes {:?}, got {g}",
        x.dtype,
        pool.sizes
    );
    let order =
        if f.layout == ResultOrder::Suggested { f.order(&x.layout, x.sizes())? } else { Layout::contiguous(x.sizes()) };
    one(Meta::new(x.dtype, order))
}

fn run_mean_backward(f: &PoolForm, by: Option<usize>, c: &Call<'_>) -> Result<()> {
    let by = by.map_or(Ok(None), |i| c.args.opt_int(i))?;
    ran(pool::mean_backward(c.args.tensor(0)?, &f.spans(c, 1)?, by, &c.outs[0], c.ctx.threads))
}

/// Shape rule of the gradient of maxima, with the indices at `at`.
fn max_backward_infer(f: &PoolForm, at: usize, a: &Args<'_, Meta>) -> Metas {
    let (g, i) = (a.tensor(0)?, a.tensor(at)?);
    ensure!(
        i.dtype == DType::I64 && i.sizes() == g.sizes(),
        "expected indices of type i64 and sizes {:?}, got {i}",
        g.sizes()
    );
    backward_infer(f, a)
}

fn run_max_backward(f: &PoolForm, at: usize, c: &Call<'_>) -> Result<()> {
    ran(pool::max_backward(c.args.tensor(0)?, c.args.tensor(at)?, f.spatial, &c.outs[0], c.ctx.threads))
}

const fn sliding(spatial: usize, at: usize, dilated: bool, layout: ResultOrder, types: PoolTypes) -> PoolForm {
    PoolForm { spatial, windows: WindowSource::Sliding { at, dilated }, layout, types }
}

const fn adaptive(spatial: usize, layout: ResultOrder) -> PoolForm {
    PoolForm { spatial, windows: WindowSource::Adaptive(1), layout, types: PoolTypes::Float }
}

const fn adaptive_gradient(spatial: usize, layout: ResultOrder) -> PoolForm {
    PoolForm { spatial, windows: WindowSource::Like(0), layout, types: PoolTypes::Float }
}

macro_rules! maximum {
    ($schema:literal, $form:expr, $infer:ident, $samples:expr) => {
        close(
            $schema,
            |a| $infer(&$form, a),
            |c| run_max(&$form, c),
            |a, outs| scratch(a, outs, &$form, 0, true),
            samples!($samples),
        )
        .timed(|a, outs| time(a, outs, &$form))
    };
}
macro_rules! average {
    ($schema:literal, $form:expr, $by:expr, $samples:expr) => {
        close(
            $schema,
            |a| one_result(&$form, a),
            |c| run_mean(&$form, $by, c),
            |a, outs| scratch(a, outs, &$form, 0, true),
            samples!($samples),
        )
        .timed(|a, outs| time(a, outs, &$form))
    };
}
macro_rules! average_backward {
    ($schema:literal, $form:expr, $by:expr, $samples:expr) => {
        close(
            $schema,
            |a| backward_infer(&$form, a),
            |c| run_mean_backward(&$form, $by, c),
            |a, outs| scratch(a, outs, &$form, 1, false),
            samples!($samples),
        )
    };
}
macro_rules! maximum_backward {
    ($schema:literal, $form:expr, $at:literal, $samples:expr) => {
        close(
            $schema,
            |a| max_backward_infer(&$form, $at, a),
            |c| run_max_backward(&$form, $at, c),
            |a, outs| scratch(a, outs, &$form, 1, false),
            samples!($samples),
        )
        .failing()
    };
}

pub(crate) static OPS: &[OpDef] = table![
    maximum!("max_pool1d", sliding(1, 1, true, ResultOrder::RowMajor, PoolTypes::Float), one_result, || maxima(1)),
    maximum!(
        "max_pool1d_with_indices",
        sliding(1, 1, true, ResultOrder::Suggested, PoolTypes::Real),
        with_indices,
        || { maxima(1) }
    ),
    maximum!("max_pool2d", sliding(2, 1, true, ResultOrder::Suggested, PoolTypes::Real), one_result, || maxima(2)),
    maximum!(
        "max_pool2d_with_indices",
        sliding(2, 1, true, ResultOrder::Suggested, PoolTypes::Real),
        with_indices,
        || { maxima(2) }
    ),
    maximum!("max_pool3d", sliding(3, 1, true, ResultOrder::Suggested, PoolTypes::Real), one_result, || maxima(3)),
    maximum!(
        "max_pool3d_with_indices",
        sliding(3, 1, true, ResultOrder::Suggested, PoolTypes::Real),
        with_indices,
        || { maxima(3) }
    ),
    average!("avg_pool1d", sliding(1, 1, false, ResultOrder::Suggested, PoolTypes::FloatOrLong), None, || means(1)),
    average!("avg_pool2d", sliding(2, 1, false, ResultOrder::Suggested, PoolTypes::FloatOrLong), Some(6), || means(2)),
    average!("avg_pool3d", sliding(3, 1, false, ResultOrder::RowMajor, PoolTypes::WideOrLong), Some(6), || means(3)),
    average!("adaptive_avg_pool1d", adaptive(1, ResultOrder::Suggested), None, || adaptive(1)),
    average!("adaptive_avg_pool2d", adaptive(2, ResultOrder::Suggested), None, || adaptive(2)),
    average!("_adaptive_avg_pool2d", adaptive(2, ResultOrder::Suggested), None, || adaptive(2)),
    average!("adaptive_avg_pool3d", adaptive(3, ResultOrder::SuggestedIfGlobal), None, || adaptive(3)),
    average!("_adaptive_avg_pool3d", adaptive(3, ResultOrder::RowMajor), None, || adaptive(3)),
    maximum!("adaptive_max_pool1d", adaptive(1, ResultOrder::Suggested), with_indices, || adaptive(1)),
    maximum!("adaptive_max_pool2d", adaptive(2, ResultOrder::Suggested), with_indices, || adaptive(2)),
    maximum!("adaptive_max_pool3d", adaptive(3, ResultOrder::RowMajor), with_indices, || adaptive(3)),
    maximum_backward!(
        "max_pool2d_with_indices_backward",
        sliding(2, 2, true, ResultOrder::Suggested, PoolTypes::Float),
        7,
        || maxima_backward(2)
    ),
    maximum_backward!(
        "max_pool3d_with_indices_backward",
        sliding(3, 2, true, ResultOrder::Suggested, PoolTypes::Float),
        7,
        || maxima_backward(3)
    ),
    maximum_backward!("adaptive_max_pool2d_backward", adaptive_gradient(2, ResultOrder::Suggested), 2, || {
        adaptive_maxima_backward(2)
    }),
    maximum_backward!("adaptive_max_pool3d_backward", adaptive_gradient(3, ResultOrder::RowMajor), 2, || {
        adaptive_maxima_backward(3)
    }),
    average_backward!(
        "avg_pool2d_backward",
        sliding(2, 2, false, ResultOrder::Suggested, PoolTypes::FloatOrLong),
        Some(7),
        || means_backward(2)
    ),
    average_backward!(
        "avg_pool3d_backward",
        sliding(3, 2, false, ResultOrder::RowMajor, PoolTypes::WideOrLong),
        Some(7),
        || { means_backward(3) }
    ),
    average_backward!("_adaptive_avg_pool2d_backward", adaptive_gradient(2, ResultOrder::Suggested), None, || {
        adaptive_means_backward(2)
    }),
    average_backward!("_adaptive_avg_pool3d_backward", adaptive_gradient(3, ResultOrder::RowMajor), None, || {
        adaptive_means_backward(3)
    }),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[unpool::OPS, OPS], gradients: &[grad::GRADS], aliases: &[] };
