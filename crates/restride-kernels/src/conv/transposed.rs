//! Transposed convolutions as convolutions: the gradient of an input, too.
//!
//! Results whose positions have one remainder to the strides (a phase) are windows over the source with a stride of 1: of the taps
//! that reach them, last to first. So each result is one sum in the order of a convolution's, with as many terms as its phase has
//! taps. Results of a phase without taps are the bias.

use crate::conv::depthwise::Depthwise;
use crate::conv::frame::Planes;
use crate::conv::implicit::{Implicit, put};
use crate::conv::tiled::{ConvFilter, TiledConv};
use crate::conv::window::Window;
use crate::conv::{Number, Shape};
use crate::support::array;
use crate::support::pack::compute_room;
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::DType;

/// Elements of results of a phase that are computed together, if they are not one channel's: few enough to be little beside the arena.
const STRIP: usize = 1 << 15;

/// Windows that are computed together.
fn wide(channels: usize, windows: usize) -> usize {
    (STRIP / channels.max(1)).clamp(1, windows.max(1))
}

/// Scratch bytes of [`TransposedConv::run`] for results of a type, with these numbers of samples and of channels in a group.
pub(super) fn transposed_room(dtype: DType, w: &Window, batch: usize, channels: usize) -> usize {
    let windows: usize = (0..3).map(|d| w.input[d].div_ceil(w.stride[d])).product();
    let windows = batch.saturating_mul(windows);
    compute_room(dtype, (channels * wide(channels, windows)) as i64)
}

/// A transposed convolution in strides. Its window slides over the result.
pub(super) struct TransposedConv<'a, T> {
    /// Channels as those of a convolution of the source: `cin` are the source's of a group.
    pub s: &'a Shape,
    pub x: Planes<*const T>,
    /// Distance of samples.
    pub x_sample: isize,
    /// Channels are the source's.
    pub weight: Planes<*const T>,
    /// Distance of result channels.
    pub weight_out: isize,
    /// A number for each result channel.
    pub bias: Option<&'a [T]>,
    pub y: Planes<*mut T>,
    pub y_sample: isize,
}
// SAFETY: threads read the operands and write each their own elements of the result.
unsafe impl<T: Sync> Sync for TransposedConv<'_, T> {}

/// One dimension of a phase: its taps, the source elements that they start from, its windows.
#[derive(Clone, Copy, Default)]
struct PhaseLine {
    /// First result, number of results.
    first: usize,
    count: usize,
    /// The last tap, distance and number of taps.
    tap: usize,
    step: usize,
    taps: usize,
    /// Distance of the source elements of neighbouring taps, padding of the source and elements of it that are left out.
    dilation: usize,
    pad: usize,
    skip: usize,
}

impl PhaseLine {
    fn new(w: &Window, d: usize, phase: usize) -> PhaseLine {
        let (stride, dilation) = (w.stride[d], w.dilation[d]);
        let reach = phase + w.pad[d];
        let mut taps =
            (0..w.kernel[d]).filter(|k| (reach as isize - (k * dilation) as isize).rem_euclid(stride as isize) == 0);
        let count = w.input[d].saturating_sub(phase).div_ceil(stride);
        let mut line = PhaseLine { first: phase, count, ..PhaseLine::default() };
        let Some(first) = taps.next() else { return line };
        let step = taps.next().map_or(w.kernel[d], |second| second - first);
        line.taps = (w.kernel[d] - first).div_ceil(step);
        (line.step, line.tap) = (step, first + step * (line.taps - 1));
        line.dilation = (step * dilation / stride).max(1);
        // The source element of the last tap for the first result.
        let from = (reach as isize - (line.tap * dilation) as isize) / stride as isize;
        (line.pad, line.skip) = ((-from).max(0) as usize, from.max(0) as usize);
        if line.skip >= w.output[d] {
            line.taps = 0;
        }
        line
    }
}

impl<T: Number> TransposedConv<'_, T> {
    /// Runs it.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of `y` writable, different cells that no other thread uses and that
    /// are none of an operand.
    pub(super) unsafe fn run(&self, threads: usize) {
        let stride = self.s.w.stride;
        for phase in 0..stride.iter().product::<usize>() {
            let at = [phase / (stride[1] * stride[2]), phase / stride[2] % stride[1], phase % stride[2]];
            let lines: [PhaseLine; 3] = array::from_fn(|d| PhaseLine::new(&self.s.w, d, at[d]));
            if lines.iter().all(|line| line.count > 0) {
                // SAFETY: the caller's promise.
                unsafe { self.phase(&lines, threads) }
            }
        }
    }

    /// The results of one phase.
    unsafe fn phase(&self, lines: &[PhaseLine; 3], threads: usize) {
        let (s, w) = (self.s, &self.s.w);
        let of = |f: fn(&PhaseLine) -> usize| lines.each_ref().map(f);
        let sum = |at: [usize; 3], strides: [isize; 3]| -> isize { (0..3).map(|d| at[d] as isize * strides[d]).sum() };
        let y = Planes {
            base: self.y.base.wrapping_offset(sum(of(|l| l.first), self.y.strides)),
            channel: self.y.channel,
            strides: array::from_fn(|d| self.y.strides[d] * w.stride[d] as isize),
        };
        let count = of(|l| l.count);
        if lines.iter().any(|line| line.taps == 0) {
            // SAFETY: the caller's promise.
            return unsafe { self.nothing(&y, count) };
        }
        let window = Window {
            input: array::from_fn(|d| w.output[d] - lines[d].skip),
            kernel: of(|l| l.taps),
            output: count,
            stride: [1; 3],
            pad: of(|l| l.pad),
            dilation: of(|l| l.dilation),
        };
        let x = Planes { base: self.x.base.wrapping_offset(sum(of(|l| l.skip), self.x.strides)), ..self.x };
        let weight = Planes {
            base: self.weight.base.wrapping_offset(sum(of(|l| l.tap), self.weight.strides)),
            channel: self.weight.channel,
            strides: array::from_fn(|d| -self.weight.strides[d] * lines[d].step as isize),
        };
        // SAFETY: the caller's promise: taps, elements of the source and results are those of the operands.
        unsafe {
            if s.cin == 1
                && T::DTYPE == DType::F32
                && (s.cout == 1 || weight.channel == s.cout as isize * self.weight_out)
            {
                // A plane for each result.
                let channel = if s.cout == 1 { weight.channel } else { self.weight_out };
                let bias = self.bias.map(|b| b.as_ptr().cast());
                let of = Depthwise {
                    w: &window,
                    batch: s.batch,
                    channels: s.groups,
                    each: s.cout,
                    x: x.cast(),
                    x_sample: self.x_sample,
                    weight: Planes { channel, ..weight.cast() },
                    bias,
                    y: y.cast_mut(),
                    y_sample: self.y_sample,
                };
                return of.run(threads, None);
            }
            let one = Shape { batch: s.batch, groups: 1, w: window, ..*s };
            for group in 0..s.groups {
                let (from, to) = ((group * s.cin) as isize, (group * s.cout) as isize);
                let x = Planes { base: x.base.offset(from * x.channel), ..x };
                let weight = Planes { base: weight.base.offset(from * weight.channel), ..weight };
                let y = Planes { base: y.base.offset(to * y.channel), ..y };
                let bias = self.bias.map(|b| &b[group * s.cout..][..s.cout]);
                self.dense(&one, x, weight, bias, y, threads);
            }
        }
    }

    /// The results of one phase and group, as a convolution.
    unsafe fn dense(
        &self,
        s: &Shape,
        x: Planes<*const T>,
        weight: Planes<*const T>,
        bias: Option<&[T]>,
        y: Planes<*mut T>,
        threads: usize,
    ) {
        let w = &s.w;
        let (x_sample, weight_out) = (self.x_sample, self.weight_out);
        let line = y.line(w.output);
        // SAFETY: the caller's promise.
        unsafe {
            let tiled = TiledConv {
                s,
                x: x.cast(),
                x_sample,
                filter: ConvFilter::InStrides(weight.cast(), weight_out),
                bias: bias.map(|b| std::slice::from_raw_parts(b.as_ptr().cast(), b.len())),
                y: y.cast_mut(),
                y_sample: self.y_sample,
                done: None,
            };
            // Windows of one element are products.
            if T::DTYPE == DType::F32
                && w.taps() > 1
                && let Some(boxes) = tiled.boxes(threads)
            {
                return tiled.run(&boxes, threads);
            }
            if let Some(line) = line {
                let y = (y.base, self.y_sample, y.channel, line);
                return Implicit { s, x, x_sample, weight, weight_out, packed: None, bias, y }.run(threads, None);
            }
            let (n, m) = (s.batch * w.windows(), s.cout);
            let most = wide(m, n);
            // As many for each thread.
            let strips = n.div_ceil(most).next_multiple_of(threads);
            let wide = n.div_ceil(strips).next_multiple_of(T::width()).min(most);
            let strips = n.div_ceil(wide);
            let (over, inner) = if strips >= threads { (threads, 1) } else { (1, threads) };
            let all = par::Across::new((x, weight, y));
            let own = || Temp::filled(m * wide, T::default());
            par::each_with(over, strips, &own, &|own, strip| {
                let windows = strip * wide..n.min((strip + 1) * wide);
                let &(x, weight, ref y) = all.get();
                let nowhere = (y.base, 0, 0, 0);
                let of = Implicit { s, x, x_sample, weight, weight_out, packed: None, bias, y: nowhere };
                // The strip's results, channel by channel.
                let to = (own.as_mut_ptr(), wide as isize, 1);
                of.strip(0, windows.clone(), to, inner);
                put((own.as_ptr(), to.1, to.2), m, windows, (y, self.y_sample, w.output));
            });
        }
    }

    /// Results without terms.
    unsafe fn nothing(&self, y: &Planes<*mut T>, count: [usize; 3]) {
        let s = self.s;
        let channels = s.groups * s.cout;
        for image in 0..s.batch * channels {
            let (n, c) = (image / channels, image % channels);
            let value = self.bias.map_or(T::default(), |b| b[c]);
            for (i, j) in (0..count[0]).flat_map(|i| (0..count[1]).map(move |j| (i, j))) {
                let cell = n as isize * self.y_sample
                    + c as isize * y.channel
                    + i as isize * y.strides[0]
                    + j as isize * y.strides[1];
                // SAFETY: the caller's promise.
                (0..count[2]).for_each(|k| unsafe { y.base.offset(cell + k as isize * y.strides[2]).write(value) });
            }
        }
    }
}
