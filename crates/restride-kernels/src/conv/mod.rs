//! Convolutions over one to three dimensions: windows as columns and a matrix product per group, without the
//! columns for windows of one element, direct loops where every channel stands alone.

mod backward;
mod depthwise;
mod frame;
pub mod in_place;
mod lanes;
pub mod window;

pub use crate::conv::backward::{Gradients, conv_backward, conv_backward_room};
use crate::conv::depthwise::Depthwise;
use crate::conv::frame::Planes;
use crate::conv::window::{Window, add_columns, columns};
use crate::matmul::Gemm;
use crate::matmul::blocked::DEPTH;
use crate::support::pack::{Packed, Stored, Target, compute_room, pack, packed_room, packed_rooms, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::{DType, Layout, View, ViewMut};
use std::ops::{Add, AddAssign, Mul};

/// A type that convolutions compute in.
pub trait Number: Gemm + Add<Output = Self> + Mul<Output = Self> + AddAssign {}
impl<T: Gemm + Add<Output = T> + Mul<Output = T> + AddAssign> Number for T {}

/// Elements of columns that are made at a time: few enough to stay in a cache and to be little beside the arena.
const TILE: usize = 1 << 15;

/// Columns that are made at a time: how many windows of how many rows. Sums do not depend on it.
fn tile(rows: usize, windows: usize) -> (usize, usize) {
    let rows = rows.min(DEPTH);
    let wide = (TILE / rows.max(1) / 16 * 16).max(16);
    (rows, wide.min(windows.next_multiple_of(16)))
}

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
    if T::DTYPE == DType::F32 && is_depthwise(s) {
        with_bias_f32(x, weight, bias.as_deref().map(|b| b.as_ptr().cast()), s, out, threads);
        return Ok(());
    }
    let (x, weight) = (pack::<T>(x), pack::<T>(weight));
    let mut target = Target::<T>::new(out);
    let y = target.slice();
    if is_depthwise(s) {
        depthwise(&x, &weight, s, y, threads);
    } else {
        grouped(&x, &weight, s, y, threads);
    }
    add_bias(y, bias.as_deref(), s.w.windows());
    target.finish();
    Ok(())
}

/// One input channel per group, and more than a factor for it.
fn is_depthwise(s: &Shape) -> bool {
    s.cin == 1 && !s.w.is_identity()
}

/// Convolutions of `f32`: operands and result in their own strides; those of other types are converted before.
fn with_bias_f32(
    x: &View<'_>,
    weight: &View<'_>,
    bias: Option<*const f32>,
    s: &Shape,
    out: &ViewMut<'_>,
    threads: usize,
) {
    let batched = x.sizes().len() == weight.sizes().len();
    let (x, weight) = (operand(x), operand(weight));
    let mut target = (out.dtype() != DType::F32).then(|| Target::<f32>::new(out));
    let (y, y_layout) = match &mut target {
        None => (out.ptr::<f32>(), out.layout().clone()),
        Some(t) => (t.slice().as_mut_ptr(), Layout::contiguous(out.sizes())),
    };
    let (y, y_sample) = planes(y, &y_layout, batched);
    let (x, x_sample) = planes(x.1, &x.2, batched);
    let (taps, weight_channel) = planes(weight.1, &weight.2, true);
    let weight = Planes { channel: weight_channel, ..taps };
    let of =
        Depthwise { w: &s.w, batch: s.batch, channels: s.groups, each: s.cout, x, x_sample, weight, bias, y, y_sample };
    // SAFETY: the sizes are those of a convolution, and the result meets no operand.
    unsafe { of.run(threads) }
    if let Some(t) = target {
        t.finish();
    }
}

/// An operand as `f32`, where it is or converted: what holds it, address and layout.
fn operand<'a>(x: &View<'a>) -> (Option<Packed<'a, f32>>, *const f32, Layout) {
    if x.dtype() == DType::F32 {
        return (None, x.ptr::<f32>(), x.layout().clone());
    }
    let packed = pack::<f32>(x);
    let at = packed.as_ptr();
    (Some(packed), at, Layout::contiguous(x.sizes()))
}

/// Elements of an operand in its own strides, and the distance of its samples.
fn planes<P>(base: P, layout: &Layout, batched: bool) -> (Planes<P>, isize) {
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

/// A product per sample, group and stretch of windows: `weight[cout × (cin taps)] · columns[(cin taps) × windows]`.
fn grouped<T: Number>(x: &[T], weight: &[T], s: &Shape, y: &mut [T], threads: usize) {
    let (w, n) = (&s.w, s.w.windows());
    let k = s.cin * w.taps();
    let direct = w.is_identity();
    let (deep, wide) = if direct { (k, n) } else { tile(k, n) };
    let tiles = n.div_ceil(wide);
    let items = s.batch * s.groups * tiles;
    let (over, inner) = if items >= threads { (threads, 1) } else { (1, threads) };
    let vector = s.cout == 1 || n == 1;
    let y = par::Shared::new(y);
    let cols = || Temp::filled(if direct { 0 } else { deep * wide }, T::default());
    par::each_with(over, items, &cols, &|cols, item| {
        let (image, first) = (item / tiles, item % tiles * wide);
        let (sample, group) = (image / s.groups, image % s.groups);
        let len = wide.min(n - first);
        let src = &x[(sample * s.groups + group) * s.cin * w.volume()..][..s.cin * w.volume()];
        let a = &weight[group * s.cout * k..][..s.cout * k];
        let c = (y.at((sample * s.groups + group) * s.cout * n + first), n as isize, 1);
        for row in (0..k).step_by(deep.max(1)) {
            let rows = deep.min(k - row);
            let a = (a[row..].as_ptr(), k as isize, 1);
            // SAFETY: `a` is cout × rows, `b` is rows × len, and the rows of `c` are `n` apart in a plane of `cout` rows of
            // this sample and group; no two items share a row's stretch.
            unsafe {
                if direct {
                    T::product((s.cout, len, k), vector, a, (src.as_ptr(), n as isize, 1), c, false, inner)
                } else {
                    columns(src, row..row + rows, w, first, len, wide, cols);
                    T::product((s.cout, len, rows), vector, a, (cols.as_ptr(), wide as isize, 1), c, row > 0, inner)
                }
            }
        }
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
    if out.0 == DType::F32 && channels == 1 && !w.is_identity() {
        return bias.map_or(0, packed_room);
    }
    let columns = if w.is_identity() || channels == 1 {
        0
    } else {
        let (deep, wide) = tile(channels * w.taps(), w.windows());
        compute_room(out.0, (deep * wide) as i64)
    };
    packed_rooms([x, weight, out].into_iter().chain(bias)) + columns
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
