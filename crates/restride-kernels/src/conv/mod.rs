//! Convolutions over one to three dimensions, on operands and results in their own strides.
//!
//! Each result is one sum, in an order that depends on sizes alone. With one input channel per group (`depthwise.rs`) it is the bias
//! and then the taps in order. Otherwise it has blocks of 256 terms, each summed from zero and added to the bias (to nothing without
//! one); the terms are channel by channel of each tap where there are more windows than result channels of a group, else tap by tap of
//! each channel (`implicit.rs`). A single window of one element is a product with a vector. Layouts choose the loops, not the order:
//! tiles over a copy of the input (`tiled.rs`), or products whose panels are made of the input. Padding is multiplied, as zeros, but for
//! depthwise windows: PyTorch does the same, which infinite weights show.

mod backward;
mod boxes;
mod columns;
mod depthwise;
mod depthwise_backward;
mod depthwise_last;
pub(crate) mod frame;
mod implicit;
pub mod in_place;
pub(crate) mod lanes;
mod packed;
mod tiled;
mod transposed;
pub mod window;

pub use crate::conv::backward::{Gradients, conv_backward, conv_backward_room};
use crate::conv::depthwise::Depthwise;
use crate::conv::frame::Planes;
use crate::conv::implicit::Implicit;
pub use crate::conv::packed::{filled_channels, filter_order, pack_filter};
use crate::conv::tiled::{ConvFilter, TiledConv};
use crate::conv::transposed::{TransposedConv, transposed_room};
use crate::conv::window::Window;
use crate::matmul::Gemm;
use crate::support::epilogue::{self, Epilogue};
use crate::support::pack::{
    Packed, Stored, Target, compute_room, is_compute, pack, packed_room, packed_rooms, with_compute,
};
use crate::support::par;
use num_traits::Zero;
use restride_tensor::{DType, Layout, View, ViewMut};
use std::ops::{AddAssign, Mul};

/// Multiplications that are worth a thread.
const SHARED: usize = 1 << 16;

/// A type that convolutions compute in.
pub trait Number: Gemm + Zero + Mul<Output = Self> + AddAssign {}
impl<T: Gemm + Zero + Mul<Output = T> + AddAssign> Number for T {}

/// Sizes of one convolution.
#[derive(Clone, Copy)]
struct Shape {
    batch: usize,
    groups: usize,
    /// Input and output channels of a group.
    cin: usize,
    cout: usize,
    w: Window,
}

impl Shape {
    /// An error unless input, weight and result have the numbers of elements of this shape.
    fn holds(&self, input: usize, weight: usize, result: usize) -> Result<(), String> {
        let product = |of: &[usize]| of.iter().try_fold(1usize, |n, &m| n.checked_mul(m));
        let (b, g, (volume, windows)) = (self.batch, self.groups, (self.w.volume(), self.w.windows()));
        let fit = product(&[b, g, self.cin, volume]) == Some(input)
            && product(&[g, self.cout, self.cin, self.w.taps()]) == Some(weight)
            && product(&[b, g, self.cout, windows]) == Some(result)
            && (!self.w.is_identity() || volume == windows);
        if fit { Ok(()) } else { Err("input, weight and result do not have the sizes of one convolution".into()) }
    }
}

/// Number of samples: one without a dimension for them.
fn batch(x: &View<'_>, weight: &View<'_>) -> usize {
    if x.sizes().len() < weight.sizes().len() { 1 } else { x.sizes()[0] as usize }
}

/// `out = conv(x, weight) + bias`: `x` is N × C × …, `weight` is O × C/groups × …, `out` is N × O × …. The window's
/// sizes are the spatial ones.
pub fn conv(
    x: &View<'_>,
    weight: &View<'_>,
    bias: Option<&View<'_>>,
    w: &Window,
    groups: usize,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (o, c) = (weight.sizes()[0] as usize, weight.sizes()[1] as usize);
    let shape = Shape { batch: batch(x, weight), groups, cin: c, cout: o / groups, w: *w };
    shape.holds(x.numel(), weight.numel(), out.numel())?;
    with_compute!(any out.dtype(), T => forward::<T>(x, weight, false, bias, &shape, out, threads)?);
    Ok(())
}

/// As [`conv`] with a filter that [`pack_filter`] packed, for a result of `channels`: the same bits.
///
/// # Errors
/// As [`conv`]; other operands than of one real type.
#[allow(clippy::too_many_arguments)] // those of a convolution
pub fn conv_packed(
    x: &View<'_>,
    weight: &View<'_>,
    bias: Option<&View<'_>>,
    w: &Window,
    (groups, channels): (usize, usize),
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (cout, dtype) = (channels / groups, out.dtype());
    let s = Shape { batch: batch(x, weight), groups, cin: weight.sizes()[1] as usize, cout, w: *w };
    let terms = s.cin * w.taps();
    s.holds(x.numel(), channels * terms, out.numel())?;
    let filled = groups * filled_channels(dtype, cout) * terms;
    let same = weight.dtype() == dtype && x.dtype() == dtype && matches!(dtype, DType::F32 | DType::F64);
    if weight.numel() != filled || !weight.layout().is_contiguous() || !same || cout < 2 || s.cin < 2 {
        return Err("a packed filter has other elements than its convolution".into());
    }
    with_compute!(float dtype, T => forward::<T>(x, weight, true, bias, &s, out, threads)?);
    Ok(())
}

fn forward<T: Number>(
    x: &View<'_>,
    weight: &View<'_>,
    packed: bool,
    bias: Option<&View<'_>>,
    s: &Shape,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let bias = bias.map(|b| pack::<T>(b));
    if bias.as_ref().is_some_and(|b| b.len() != s.groups * s.cout) {
        return Err("a convolution's bias has a number for each channel".into());
    }
    if in_place::meet(x, out) {
        let trails = x.dtype() == T::DTYPE
            && out.dtype() == T::DTYPE
            && std::ptr::eq(x.ptr::<T>().wrapping_add(x.numel()), out.ptr::<T>().wrapping_add(out.numel()));
        if packed || s.batch != 1 || !trails || !in_place::fits(T::DTYPE, (s.cin, s.cout), &s.w, s.groups) {
            return Err(
                "the result of a convolution shares memory with its input, which every element of the result reads"
                    .into(),
            );
        }
        let weight = pack::<T>(weight);
        // SAFETY: both are row-major, of one sample and group; the result overlaps no other operand.
        unsafe { in_place::over(x.ptr(), (s.cin, s.w.windows()), &weight, bias.as_deref(), out.ptr(), threads) }
        return Ok(());
    }
    if is_depthwise(s) && T::DTYPE != DType::F32 {
        let (x, weight) = (pack::<T>(x), pack::<T>(weight));
        let mut target = Target::<T>::new(out);
        depthwise(&x, &weight, s, target.slice(), threads);
        add_bias(target.slice(), bias.as_deref(), s.w.windows());
        target.finish();
        return Ok(());
    }
    let batched = x.sizes().len() == weight.sizes().len();
    if !is_plane(x.sizes(), batched, &s.w.input, s.groups * s.cin)
        || !is_plane(out.sizes(), batched, &s.w.output, s.groups * s.cout)
        || !packed && !is_plane(weight.sizes(), true, &s.w.kernel, s.cin)
    {
        return Err("planes do not have the sizes of the windows".into());
    }
    let (x, weight) = (operand::<T>(x), operand::<T>(weight));
    let in_strides = written_in_strides(T::DTYPE, (out.dtype(), out.layout()), s.cin, &s.w, batched);
    let mut target = (!in_strides).then(|| Target::<T>::new(out));
    let (y, y_layout) = match &mut target {
        None => (out.ptr::<T>(), out.layout().clone()),
        Some(t) => (t.slice().as_mut_ptr(), Layout::contiguous(out.sizes())),
    };
    let (y, y_sample) = planes(y, &y_layout, batched);
    let (x, x_sample) = planes(x.1, &x.2, batched);
    let packed = packed.then_some(weight.1);
    let (weight, weight_out) = planes(weight.1, &weight.2, true);
    let of = StridedConv { s, x, x_sample, weight, weight_out, packed, bias: bias.as_deref(), y, y_sample };
    let run = |done: Option<Epilogue<'_>>| {
        // Parts are finished where they are written.
        let done = done.filter(|_| in_strides);
        // SAFETY: the sizes are those of a convolution, and the result meets no operand.
        unsafe { of.run(threads, done) }
    };
    epilogue::take(run);
    if let Some(t) = target {
        t.finish();
    }
    Ok(())
}

/// A convolution in strides; windows of the result have one distance, unless it is a depthwise one of `f32`.
struct StridedConv<'a, T> {
    s: &'a Shape,
    x: Planes<*const T>,
    x_sample: isize,
    weight: Planes<*const T>,
    weight_out: isize,
    /// The filter in panels, read instead of `weight`.
    packed: Option<*const T>,
    bias: Option<&'a [T]>,
    y: Planes<*mut T>,
    y_sample: isize,
}

impl<T: Number> StridedConv<'_, T> {
    /// Runs it.
    ///
    /// # Safety
    /// All elements that sizes and strides reach are readable, those of `y` writable, different cells that no other thread uses and that
    /// are none of an operand.
    unsafe fn run(self, threads: usize, done: Option<Epilogue<'_>>) {
        let StridedConv { s, x, x_sample, weight, weight_out, packed, bias, y, y_sample } = self;
        // SAFETY: the caller's promise.
        unsafe {
            if is_depthwise(s) && T::DTYPE == DType::F32 {
                let of = Depthwise {
                    w: &s.w,
                    batch: s.batch,
                    channels: s.groups,
                    each: s.cout,
                    x: x.cast(),
                    x_sample,
                    weight: Planes { channel: weight_out, ..weight.cast() },
                    bias: bias.map(|b| b.as_ptr().cast()),
                    y: y.cast_mut(),
                    y_sample,
                };
                return of.run(threads, done);
            }
            let window = y.line(s.w.output).expect("other results are computed elsewhere");
            let implicit =
                Implicit { s, x, x_sample, weight, weight_out, packed, bias, y: (y.base, y_sample, y.channel, window) };
            // Windows of one element are read where they are.
            let boxes = if T::DTYPE == DType::F32 && s.w.taps() > 1 {
                let filter = match packed {
                    Some(filter) => ConvFilter::Packed(filter.cast()),
                    None => ConvFilter::InStrides(weight.cast(), weight_out),
                };
                let bias = bias.map(|b| std::slice::from_raw_parts(b.as_ptr().cast(), b.len()));
                let of = TiledConv { s, x: x.cast(), x_sample, filter, bias, y: y.cast_mut(), y_sample, done };
                of.boxes(threads).map(|boxes| (of, boxes))
            } else {
                None
            };
            match boxes {
                None => implicit.run(threads, done),
                Some((of, boxes)) => of.run(&boxes, threads),
            }
        }
    }
}

/// Whether a result is computed where it is: depthwise ones of `f32` in any strides, others where their windows have one distance.
fn written_in_strides(compute: DType, (dtype, layout): Stored<'_>, cin: usize, w: &Window, batched: bool) -> bool {
    let depthwise = cin == 1 && !w.is_identity();
    dtype == compute && (depthwise || planes((), layout, batched).0.line(w.output).is_some())
}

/// One input channel per group, and more than a factor for it.
fn is_depthwise(s: &Shape) -> bool {
    s.cin == 1 && !s.w.is_identity()
}

/// An operand of the compute type, where it is or converted: what holds it, address and layout.
fn operand<'a, T: Number>(x: &View<'a>) -> (Option<Packed<'a, T>>, *const T, Layout) {
    if x.dtype() == T::DTYPE {
        return (None, x.ptr::<T>(), x.layout().clone());
    }
    let packed = pack::<T>(x);
    let at = packed.as_ptr();
    (Some(packed), at, Layout::contiguous(x.sizes()))
}

/// Bytes that [`operand`] takes.
fn operand_room((dtype, layout): Stored<'_>) -> usize {
    if is_compute(dtype) { 0 } else { compute_room(dtype, layout.numel()) }
}

/// Elements of an operand in its own strides, and the distance of its samples.
pub(crate) fn planes<P>(base: P, layout: &Layout, batched: bool) -> (Planes<P>, isize) {
    let strides = &layout.strides[batched as usize..];
    let mut spatial = [0; 3];
    let first = 4 - strides.len();
    spatial[first..].iter_mut().zip(&strides[1..]).for_each(|(to, s)| *to = *s as isize);
    let sample = if batched { layout.strides[0] as isize } else { 0 };
    (Planes { base, channel: strides[0] as isize, strides: spatial }, sample)
}

/// Adds a number per channel; planes have `plane` elements.
fn add_bias<T: Number>(y: &mut [T], bias: Option<&[T]>, plane: usize) {
    let Some(bias) = bias else { return };
    for (i, plane) in y.chunks_mut(plane.max(1)).enumerate() {
        let b = bias[i % bias.len()];
        plane.iter_mut().for_each(|v| *v += b);
    }
}

/// One input channel per group: every output plane is a sum of shifted input planes, tap by tap.
fn depthwise<T: Number>(x: &[T], weight: &[T], s: &Shape, y: &mut [T], threads: usize) {
    let (w, taps, volume) = (&s.w, s.w.taps(), s.w.volume());
    let channels = s.groups * s.cout;
    let [od, oh, ow] = w.output;
    let [_, ih, iw] = w.input;
    par::pieces(threads, y, w.windows(), &|i, plane| {
        let (n, o) = (i / channels, i % channels);
        let src = &x[(n * s.groups + o / s.cout) * volume..][..volume];
        let taps = &weight[o * taps..][..taps];
        plane.fill(T::default());
        w.each_tap(|t, [kz, ky, kx]| {
            let (lo, hi) = w.inside(2, kx);
            if lo >= hi {
                return;
            }
            let start = lo * w.stride[2] + kx * w.dilation[2] - w.pad[2];
            for oz in 0..od {
                for oy in 0..oh {
                    let Some((z, y)) = w.at(0, oz, kz).zip(w.at(1, oy, ky)) else { continue };
                    let line = &src[(z * ih + y) * iw..][..iw][start..];
                    let out = &mut plane[(oz * oh + oy) * ow..][lo..hi];
                    if w.stride[2] == 1 {
                        out.iter_mut().zip(line).for_each(|(o, v)| *o += taps[t] * *v);
                    } else {
                        out.iter_mut().zip(line.iter().step_by(w.stride[2])).for_each(|(o, v)| *o += taps[t] * *v);
                    }
                }
            }
        });
    });
}

/// Transposed convolution: `x` is N × C × …, `weight` is C × O/groups × …, `out` is N × O × …. The window slides over the
/// output: its `input` sizes are the output's, its `output` sizes are those of `x`.
pub fn conv_transposed(
    x: &View<'_>,
    weight: &View<'_>,
    bias: Option<&View<'_>>,
    w: &Window,
    groups: usize,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    if out.numel() == 0 {
        return Ok(());
    }
    let (c, o) = (weight.sizes()[0] as usize, weight.sizes()[1] as usize);
    let s = Shape { batch: batch(x, weight), groups, cin: c / groups, cout: o, w: *w };
    // The other way round: the result is the input of the convolution that this is the transpose of.
    Shape { cin: s.cout, cout: s.cin, ..s }.holds(out.numel(), weight.numel(), x.numel())?;
    with_compute!(any out.dtype(), T => {
        let bias = bias.map(|b| pack::<T>(b));
        if bias.as_ref().is_some_and(|b| b.len() != groups * o) {
            return Err("a convolution's bias has a number for each channel".into());
        }
        transpose::<T>(x, weight, bias.as_deref(), &s, out, threads)
    })
}

/// A transposed convolution; channels of the shape are those of `x` and of the result.
fn transpose<T: Number>(
    x: &View<'_>,
    weight: &View<'_>,
    bias: Option<&[T]>,
    s: &Shape,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let batched = x.sizes().len() == weight.sizes().len();
    let whole = (&s.w.output, s.groups * s.cin, &s.w.input, s.groups * s.cout);
    if !is_plane(x.sizes(), batched, whole.0, whole.1) || !is_plane(out.sizes(), batched, whole.2, whole.3) {
        return Err("planes do not have the sizes of the windows".into());
    }
    let (x, weight) = (operand::<T>(x), operand::<T>(weight));
    let mut target = (out.dtype() != T::DTYPE).then(|| Target::<T>::new(out));
    let (y, y_layout) = match &mut target {
        None => (out.ptr::<T>(), out.layout().clone()),
        Some(t) => (t.slice().as_mut_ptr(), Layout::contiguous(out.sizes())),
    };
    let (y, y_sample) = planes(y, &y_layout, batched);
    let (x, x_sample) = planes(x.1, &x.2, batched);
    let (weight, weight_in) = planes(weight.1, &weight.2, true);
    let (weight_out, weight) = (weight.channel, Planes { channel: weight_in, ..weight });
    let of = TransposedConv { s, x, x_sample, weight, weight_out, bias, y, y_sample };
    // SAFETY: the sizes are those of a transposed convolution, and the result meets no operand.
    unsafe { of.run(threads) }
    if let Some(t) = target {
        t.finish();
    }
    Ok(())
}

/// Whether a tensor has these planes of these channels.
fn is_plane(sizes: &[i64], batched: bool, plane: &[usize; 3], channels: usize) -> bool {
    let own = &sizes[1 + batched as usize..];
    let (one, rest) = plane.split_at(3 - own.len());
    sizes[batched as usize] as usize == channels
        && one.iter().all(|&n| n == 1)
        && own.iter().zip(rest).all(|(&n, &m)| n as usize == m)
}

/// Scratch bytes of [`conv`].
pub fn conv_room(x: Stored<'_>, weight: Stored<'_>, bias: Option<Stored<'_>>, w: &Window, out: Stored<'_>) -> usize {
    let channels = weight.1.sizes[1] as usize;
    if channels == 1 && !w.is_identity() && !matches!(out.0, DType::F32 | DType::F16 | DType::BF16) {
        return packed_rooms([x, weight, out].into_iter().chain(bias));
    }
    let batched = x.1.rank() == weight.1.rank();
    let target = if written_in_strides(out.0, out, channels, w, batched) { 0 } else { packed_room(out) };
    let target = if is_compute(out.0) { target } else { packed_room(out) };
    operand_room(x) + operand_room(weight) + target + bias.map_or(0, packed_room)
}

/// Scratch bytes of [`conv_transposed`].
pub fn conv_transposed_room(
    x: Stored<'_>,
    weight: Stored<'_>,
    bias: Option<Stored<'_>>,
    w: &Window,
    out: Stored<'_>,
) -> usize {
    let batch = if x.1.rank() < weight.1.rank() { 1 } else { x.1.sizes[0] as usize };
    let strip = transposed_room(out.0, w, batch, weight.1.sizes[1] as usize);
    let target = if is_compute(out.0) { 0 } else { packed_room(out) };
    operand_room(x) + operand_room(weight) + target + bias.map_or(0, packed_room) + strip
}

#[cfg(test)]
mod tests;
