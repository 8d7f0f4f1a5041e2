//! Convolutions over one to three dimensions: windows as columns and a matrix product per group, without the
//! columns for windows of one element, direct loops where every channel stands alone.

pub mod in_place;
pub mod window;

use crate::conv::window::{Window, add_columns, columns};
use crate::matmul::Gemm;
use crate::matmul::blocked::DEPTH;
use crate::support::pack::{Stored, Target, compute_room, pack, packed_room, packed_rooms, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::{View, ViewMut};
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
    let (x, weight) = (pack::<T>(x), pack::<T>(weight));
    let mut target = Target::<T>::new(out);
    let y = target.slice();
    if s.cin == 1 && !s.w.is_identity() {
        depthwise(&x, &weight, s, y, threads);
    } else {
        grouped(&x, &weight, s, y, threads);
    }
    add_bias(y, bias.as_deref(), s.w.windows());
    target.finish();
    Ok(())
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

/// Gradients of a convolution that are asked for.
pub struct Gradients<'a> {
    /// Of the input.
    pub input: Option<&'a ViewMut<'a>>,
    /// Of the weight.
    pub weight: Option<&'a ViewMut<'a>>,
    /// Of the bias.
    pub bias: Option<&'a ViewMut<'a>>,
}

/// Gradients of [`conv`] (or of [`conv_transposed`], with its window) from the result's.
pub fn conv_backward(
    grad: &View<'_>,
    x: &View<'_>,
    weight: &View<'_>,
    w: &Window,
    transposed: bool,
    groups: usize,
    out: &Gradients<'_>,
    threads: usize,
) -> Result<(), String> {
    let (a, b) = (weight.sizes()[0] as usize, weight.sizes()[1] as usize);
    // Of the convolution that has this weight: its outputs are the transposed one's inputs.
    let s = Shape { batch: batch(x, weight), groups, cin: b, cout: a / groups, w: *w };
    let (wide, narrow) = if transposed { (grad, x) } else { (x, grad) };
    s.holds(wide.numel(), weight.numel(), narrow.numel())?;
    let of_size = |out: Option<&ViewMut<'_>>, n: usize| out.is_none_or(|out| out.numel() == n);
    if !of_size(out.input, x.numel()) || !of_size(out.weight, weight.numel()) {
        return Err("gradients have the sizes of what they are of".into());
    }
    with_compute!(any grad.dtype(), T => {
        let (g, x, weight) = (pack::<T>(grad), pack::<T>(x), pack::<T>(weight));
        if let Some(out) = &out.bias {
            let plane = if transposed { w.volume() } else { w.windows() };
            let mut target = Target::<T>::new(out);
            let sums = target.slice();
            sums.fill(T::default());
            let channels = sums.len();
            for (i, p) in g.chunks(plane.max(1)).enumerate() {
                sums[i % channels] += pairwise(p);
            }
            target.finish();
        }
        if let Some(out) = &out.input {
            let mut target = Target::<T>::new(out);
            let y = target.slice();
            if y.is_empty() {
            } else if transposed {
                grouped(&g, &weight, &s, y, threads);
            } else {
                scatter(&g, &weight, &Shape { cin: s.cout, cout: s.cin, ..s }, y, threads);
            }
            target.finish();
        }
        if let Some(out) = &out.weight {
            let mut target = Target::<T>::new(out);
            // The wide side has the window's input sizes, the narrow side its output sizes.
            let (wide, narrow) = if transposed { (&g, &x) } else { (&x, &g) };
            weight_gradient(wide, narrow, &s, target.slice(), threads);
            target.finish();
        }
    });
    Ok(())
}

/// Rows of columns for all windows that are made at a time.
fn rows_at_once(w: &Window, rows: usize) -> usize {
    (TILE / w.windows().max(1)).clamp(16, rows.max(16))
}

/// `grad[cout × (cin taps)] = Σ narrow[cout × windows] · columns(wide)ᵀ` over samples, for each group.
fn weight_gradient<T: Number>(wide: &[T], narrow: &[T], s: &Shape, y: &mut [T], threads: usize) {
    let (w, n) = (&s.w, s.w.windows());
    let k = s.cin * w.taps();
    y.fill(T::default());
    let many = rows_at_once(w, k);
    let mut cols = Temp::filled(many * n, T::default());
    let vector = s.cout == 1 || k == 1;
    for sample in 0..s.batch {
        for group in 0..s.groups {
            let image = sample * s.groups + group;
            let src = &wide[image * s.cin * w.volume()..][..s.cin * w.volume()];
            let a = &narrow[image * s.cout * n..][..s.cout * n];
            for first in (0..k).step_by(many) {
                let rows = many.min(k - first);
                columns(src, first..first + rows, w, 0, n, n, &mut cols);
                let c = &mut y[group * s.cout * k..][..s.cout * k][first..];
                let c = (c.as_mut_ptr(), k as isize, 1);
                let b = (cols.as_ptr(), 1, n as isize);
                // SAFETY: `a` is cout × n, `b` is n × rows, and `c` is a stretch of the columns of cout rows of `k`.
                unsafe { T::product((s.cout, rows, n), vector, (a.as_ptr(), n as isize, 1), b, c, true, threads) }
            }
        }
    }
}

/// Scratch bytes of [`conv`].
pub fn conv_room(x: Stored<'_>, weight: Stored<'_>, bias: Option<Stored<'_>>, w: &Window, out: Stored<'_>) -> usize {
    let channels = weight.1.sizes[1] as usize;
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

/// Scratch bytes of [`conv_backward`] for the gradients asked for.
pub fn conv_backward_room(
    operands: [Stored<'_>; 3],
    w: &Window,
    transposed: bool,
    input: Option<Stored<'_>>,
    weight: Option<Stored<'_>>,
    bias: Option<Stored<'_>>,
) -> usize {
    let channels = operands[2].1.sizes[1] as usize;
    let columns = |n: usize| compute_room(operands[0].0, n as i64);
    let of_input = |out| {
        let made = if transposed {
            let (deep, wide) = tile(channels * w.taps(), w.windows());
            deep * wide
        } else {
            channels_at_once(w, channels) * w.taps() * w.windows()
        };
        packed_room(out) + columns(made)
    };
    let of_weight = |out| packed_room(out) + columns(rows_at_once(w, channels * w.taps()) * w.windows());
    let most = input.map_or(0, of_input).max(weight.map_or(0, of_weight)).max(bias.map_or(0, packed_room));
    packed_rooms(operands) + most
}

/// A sum in halves: the error grows with the logarithm of the length.
fn pairwise<T: Number>(x: &[T]) -> T {
    if x.len() <= 32 {
        return x.iter().fold(T::default(), |a, &b| a + b);
    }
    let (a, b) = x.split_at(x.len() / 2);
    pairwise(a) + pairwise(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, Layout, RawTensor};

    fn numbers(n: usize, seed: i64) -> Vec<f64> {
        (0..n as i64).map(|i| ((i * 7919 + seed * 104729) % 31 - 15) as f64).collect()
    }

    /// The definition, one product at a time.
    fn naive(x: &[f64], wt: &[f64], s: &Shape) -> Vec<f64> {
        let (w, n) = (&s.w, s.w.windows());
        let mut y = vec![0.0; s.batch * s.groups * s.cout * n];
        for b in 0..s.batch {
            for o in 0..s.groups * s.cout {
                for i in 0..n {
                    let at = [i / (w.output[1] * w.output[2]), i / w.output[2] % w.output[1], i % w.output[2]];
                    for c in 0..s.cin {
                        let channel = (b * s.groups + o / s.cout) * s.cin + c;
                        w.each_tap(|t, k| {
                            let p: Option<Vec<usize>> = (0..3).map(|d| w.at(d, at[d], k[d])).collect();
                            if let Some(p) = p {
                                let cell = (p[0] * w.input[1] + p[1]) * w.input[2] + p[2];
                                y[(b * s.groups * s.cout + o) * n + i] +=
                                    x[channel * w.volume() + cell] * wt[(o * s.cin + c) * w.taps() + t];
                            }
                        });
                    }
                }
            }
        }
        y
    }

    fn shapes() -> Vec<Shape> {
        let w2 = Window::new(&[9, 11], &[3, 3], &[5, 6], &[2, 2], &[1, 1], &[1, 1]);
        let w3 = Window::new(&[4, 5, 6], &[2, 3, 2], &[5, 3, 4], &[1, 1, 1], &[1, 0, 0], &[1, 1, 2]);
        let w1 = Window::new(&[7], &[1], &[7], &[1], &[0], &[1]);
        vec![
            Shape { batch: 2, groups: 1, cin: 3, cout: 4, w: w2 },
            Shape { batch: 1, groups: 2, cin: 3, cout: 2, w: w3 },
            Shape { batch: 2, groups: 3, cin: 1, cout: 2, w: w2 },
            Shape { batch: 3, groups: 1, cin: 4, cout: 5, w: w1 },
            Shape { batch: 1, groups: 1, cin: 1, cout: 1, w: w3 },
        ]
    }

    #[test]
    fn convolutions_are_their_definition() {
        for s in shapes() {
            let x = numbers(s.batch * s.groups * s.cin * s.w.volume(), 1);
            let wt = numbers(s.groups * s.cout * s.cin * s.w.taps(), 2);
            let want = naive(&x, &wt, &s);
            let sizes = |c: usize, v: usize| [s.batch as i64, (s.groups * c) as i64, v as i64];
            let tx = RawTensor::from_slice(&x, &sizes(s.cin, s.w.volume()));
            let tw = RawTensor::from_slice(&wt, &[(s.groups * s.cout) as i64, s.cin as i64, s.w.taps() as i64]);
            for threads in [1, 3] {
                let out = RawTensor::zeros(DType::F64, Layout::contiguous(&sizes(s.cout, s.w.windows())));
                conv(&tx.read().view(), &tw.read().view(), None, &s.w, s.groups, &out.write().view_mut(), threads)
                    .unwrap();
                assert_eq!(out.to_elements::<f64>(), want);
            }
            // The transposed convolution and the gradients are transposes of the same linear map.
            let g = numbers(want.len(), 3);
            let tg = RawTensor::from_slice(&g, &sizes(s.cout, s.w.windows()));
            let back = RawTensor::zeros(DType::F64, Layout::contiguous(&sizes(s.cin, s.w.volume())));
            conv_transposed(&tg.read().view(), &tw.read().view(), None, &s.w, s.groups, &back.write().view_mut(), 2)
                .unwrap();
            let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
            assert_eq!(dot(&want, &g), dot(&x, &back.to_elements::<f64>()));
            let gx = RawTensor::zeros(DType::F64, back.layout().clone());
            let gw = RawTensor::zeros(DType::F64, tw.layout().clone());
            let (mut input, mut weight) = (gx.write(), gw.write());
            let grads = Gradients { input: Some(&input.view_mut()), weight: Some(&weight.view_mut()), bias: None };
            conv_backward(&tg.read().view(), &tx.read().view(), &tw.read().view(), &s.w, false, s.groups, &grads, 2)
                .unwrap();
            drop((input, weight));
            assert_eq!(gx.to_elements::<f64>(), back.to_elements::<f64>());
            assert_eq!(dot(&gw.to_elements::<f64>(), &wt), dot(&want, &g));
        }
    }

    #[test]
    fn bits_do_not_depend_on_strides_or_threads() {
        let s = Shape {
            batch: 2,
            groups: 1,
            cin: 16,
            cout: 24,
            w: Window::new(&[20, 20], &[3, 3], &[20, 20], &[1, 1], &[1, 1], &[1, 1]),
        };
        let x: Vec<f32> = numbers(2 * 16 * 400, 5).iter().map(|v| (v * 0.37) as f32).collect();
        let wt: Vec<f32> = numbers(24 * 16 * 9, 6).iter().map(|v| (v * 0.11) as f32).collect();
        let tw = RawTensor::from_slice(&wt, &[24, 16, 3, 3]);
        let mut want: Option<Vec<u32>> = None;
        for perm in [[0, 1, 2, 3], [0, 2, 3, 1], [3, 2, 1, 0]] {
            let tx = RawTensor::zeros(DType::F32, Layout::permuted(&[2, 16, 20, 20], &perm));
            crate::support::pack::unpack(&x, &tx.write().view_mut());
            for threads in [1, 2, 4] {
                let out = RawTensor::zeros(DType::F32, Layout::permuted(&[2, 24, 20, 20], &perm));
                conv(&tx.read().view(), &tw.read().view(), None, &s.w, 1, &out.write().view_mut(), threads).unwrap();
                let got: Vec<u32> = out.to_elements::<f32>().into_iter().map(f32::to_bits).collect();
                assert!(want.get_or_insert(got.clone()) == &got, "{perm:?} {threads}");
            }
        }
    }
}
