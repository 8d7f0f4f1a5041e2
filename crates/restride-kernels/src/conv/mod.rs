//! Convolutions over one to three dimensions, on operands and results in their own strides.
//!
//! Each result is one sum, in an order that depends on sizes alone. With one input channel per group (`depthwise.rs`) it is the bias
//! and then the taps in order. Otherwise it has blocks of 256 terms, each summed from zero and added to the bias (to nothing without
//! one); the terms are channel by channel of each tap where there are more windows than result channels of a group, else tap by tap of
//! each channel (`implicit.rs`). A single window of one element is a product with a vector. Layouts choose the loops, not the order:
//! tiles over framed planes (`direct.rs`), or products whose panels are made of the input. Padding is multiplied, as zeros, but for
//! depthwise windows: PyTorch does the same, which infinite weights show.

mod backward;
mod depthwise;
mod direct;
pub(crate) mod frame;
mod implicit;
pub mod in_place;
pub(crate) mod lanes;
pub mod window;

pub use crate::conv::backward::{Gradients, conv_backward, conv_backward_room};
use crate::conv::depthwise::Depthwise;
use crate::conv::direct::{Boxes, Direct};
use crate::conv::frame::Planes;
use crate::conv::implicit::Implicit;
use crate::conv::window::{Window, add_columns};
use crate::matmul::Gemm;
use crate::support::pack::{
    Packed, Stored, Target, compute_room, is_compute, pack, packed_room, packed_rooms, with_compute,
};
use crate::support::par;
use crate::support::scratch::Temp;
use num_traits::Zero;
use restride_tensor::{DType, Layout, View, ViewMut};
use std::ops::{AddAssign, Mul};

/// A type that convolutions compute in.
pub trait Number: Gemm + Zero + Mul<Output = Self> + AddAssign {}
impl<T: Gemm + Zero + Mul<Output = T> + AddAssign> Number for T {}

/// Elements of columns that are made at a time: few enough to stay in a cache and to be little beside the arena.
const TILE: usize = 1 << 15;

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
    with_compute!(any out.dtype(), T => forward::<T>(x, weight, bias, &shape, out, threads)?);
    Ok(())
}

fn forward<T: Number>(
    x: &View<'_>,
    weight: &View<'_>,
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
        if !s.w.is_identity() || s.batch * s.groups != 1 || s.cout > s.cin || !trails {
            return Err("a convolution's result lies on its input, which it is computed of as a whole".into());
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
    let plane = |sizes: &[i64], lead: usize| {
        let mut all = [1; 3];
        let own = &sizes[lead..];
        all[3 - own.len()..].iter_mut().zip(own).for_each(|(to, n)| *to = *n as usize);
        all
    };
    let lead = 1 + batched as usize;
    if plane(x.sizes(), lead) != s.w.input
        || plane(weight.sizes(), 2) != s.w.kernel
        || plane(out.sizes(), lead) != s.w.output
        || x.sizes()[lead - 1] as usize != s.groups * s.cin
        || out.sizes()[lead - 1] as usize != s.groups * s.cout
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
    let (weight, weight_out) = planes(weight.1, &weight.2, true);
    // SAFETY: the sizes are those of a convolution, and the result meets no operand.
    unsafe {
        if is_depthwise(s) {
            let bias = bias.as_ref().map(|b| b.as_ptr().cast());
            let of = Depthwise {
                w: &s.w,
                batch: s.batch,
                channels: s.groups,
                each: s.cout,
                x: x.cast(),
                x_sample,
                weight: Planes { channel: weight_out, ..weight.cast() },
                bias,
                y: Planes { base: y.base.cast(), channel: y.channel, strides: y.strides },
                y_sample,
            };
            of.run(threads);
        } else {
            let window = y.line(s.w.output).expect("other results are computed elsewhere");
            let y = (y.base, y_sample, y.channel, window);
            // Tiles are planes: for single elements that are channels-last there is more to move than to compute.
            let planar = T::DTYPE == DType::F32 && (y.3 == 1 && y.2 != 1 || s.w.taps() > 1);
            let boxes = if planar { Boxes::of(s, &x.cast(), threads) } else { None };
            match boxes {
                None => Implicit { s, x, x_sample, weight, weight_out, bias: bias.as_deref(), y }.run(threads),
                Some(boxes) => {
                    let bias = bias.as_deref().map(|b| std::slice::from_raw_parts(b.as_ptr().cast(), b.len()));
                    let y = (y.0.cast(), y.1, y.2, y.3);
                    Direct { s, x: x.cast(), x_sample, weight: weight.cast(), weight_out, bias, y }
                        .run(&boxes, threads);
                }
            }
        }
    }
    if let Some(t) = target {
        t.finish();
    }
    Ok(())
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

/// A convolution of row-major operands into a row-major result.
fn row_major<T: Number>(x: &[T], weight: &[T], s: &Shape, y: &mut [T], threads: usize) {
    let rows = |[_, h, w]: [usize; 3]| [(h * w) as isize, w as isize, 1];
    let plane =
        |base, size: [usize; 3]| Planes { base, channel: size.iter().product::<usize>() as isize, strides: rows(size) };
    let w = &s.w;
    let of = Implicit {
        s,
        x: plane(x.as_ptr(), w.input),
        x_sample: (s.groups * s.cin * w.volume()) as isize,
        weight: plane(weight.as_ptr(), w.kernel),
        weight_out: (s.cin * w.taps()) as isize,
        bias: None,
        y: (y.as_mut_ptr(), (s.groups * s.cout * w.windows()) as isize, w.windows() as isize, 1),
    };
    // SAFETY: the sizes are those of a convolution, and the result is borrowed exclusively.
    unsafe { of.run(threads) }
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
        let (x, weight) = (pack::<T>(x), pack::<T>(weight));
        let bias = bias.map(|b| pack::<T>(b));
        let mut target = Target::<T>::new(out);
        scatter(&x, &weight, &s, target.slice(), threads);
        add_bias(target.slice(), bias.as_deref(), w.volume());
        target.finish();
    });
    Ok(())
}

/// Channels whose columns for all windows are made at a time: at least one.
fn channels_at_once(w: &Window, channels: usize) -> usize {
    (TILE / (w.taps() * w.windows()).max(1)).clamp(1, channels.max(1))
}

/// `out[group] = add_columns(weightᵀ · x)` for each sample and group.
fn scatter<T: Number>(x: &[T], weight: &[T], s: &Shape, y: &mut [T], threads: usize) {
    let (w, n) = (&s.w, s.w.windows());
    let k = s.cout * w.taps();
    let many = channels_at_once(w, s.cout);
    let parts = s.cout.div_ceil(many);
    let items = s.batch * s.groups * parts;
    let (over, inner) = if items >= threads { (threads, 1) } else { (1, threads) };
    let vector = k == 1 || n == 1;
    let y = par::Shared::new(y);
    let cols = || Temp::filled(many * w.taps() * n, T::default());
    par::each_with(over, items, &cols, &|cols, item| {
        let (image, first) = (item / parts, item % parts * many);
        let group = image % s.groups;
        let channels = many.min(s.cout - first);
        let rows = channels * w.taps();
        let src = &x[image * s.cin * n..][..s.cin * n];
        let a = &weight[group * s.cin * k..][..s.cin * k][first * w.taps()..];
        // SAFETY: the planes of these channels are this item's alone.
        let plane = unsafe {
            let start = y.at((image * s.cout + first) * w.volume());
            std::slice::from_raw_parts_mut(start, channels * w.volume())
        };
        let c = (cols.as_mut_ptr(), n as isize, 1);
        // SAFETY: `a` is cin × rows, its rows `k` apart, taken column by column; `b` is cin × n, the columns rows × n.
        unsafe {
            T::product(
                (rows, n, s.cin),
                vector,
                (a.as_ptr(), 1, k as isize),
                (src.as_ptr(), n as isize, 1),
                c,
                false,
                inner,
            )
        }
        plane.fill(T::default());
        add_columns(cols, channels, w, plane);
    });
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
    let many = channels_at_once(w, weight.1.sizes[1] as usize);
    let columns = compute_room(out.0, (many * w.taps() * w.windows()) as i64);
    packed_rooms([x, weight, out].into_iter().chain(bias)) + columns
}

#[cfg(test)]
mod tests;
