//! Deformable convolution, and its gradient.

use crate::support::number::Real;
use crate::support::pack::{Packed, Stored, Target, compute_room, fill, pack, packed_rooms, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::{Layout, View, ViewMut};

/// Geometry of a deformable convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deform {
    /// Steps between windows.
    pub stride: [usize; 2],
    /// Padding: elements of the first window before the image.
    pub pad: [usize; 2],
    /// Steps between a window's elements.
    pub dilation: [usize; 2],
    /// Groups of the weight.
    pub groups: usize,
    /// Groups of channels with offsets of their own.
    pub offset_groups: usize,
}

/// Operands of a deformable convolution, each N × C × H × W.
pub struct Deformed<'a> {
    /// Images.
    pub x: View<'a>,
    /// Filters.
    pub weight: View<'a>,
    /// How far each element of each window is moved, down and across.
    pub offset: View<'a>,
    /// Factors of the windows' elements.
    pub mask: Option<View<'a>>,
    /// Geometry.
    pub how: Deform,
}

/// A convolution whose windows' elements are moved and scaled.
pub fn deform_conv2d(of: &Deformed<'_>, bias: &View<'_>, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    with_compute!(float out.dtype(), T => deform::<T>(of, bias, out, threads));
    Ok(())
}

/// Operands in row-major order, and their sizes.
struct Images<'a, T: Copy> {
    data: Packed<'a, T>,
    offsets: Packed<'a, T>,
    mask: Option<Packed<'a, T>>,
    how: Deform,
    channels: usize,
    size: [usize; 2],
    kernel: [usize; 2],
    result: [usize; 2],
}

impl<'a, T: Real> Images<'a, T> {
    fn new(of: &Deformed<'a>, result: &[i64]) -> Self {
        let pair = |s: &[i64]| [s[2] as usize, s[3] as usize];
        Images {
            data: pack(&of.x),
            offsets: pack(&of.offset),
            mask: of.mask.as_ref().map(pack),
            how: of.how,
            channels: of.x.sizes()[1] as usize,
            size: pair(of.x.sizes()),
            kernel: pair(of.weight.sizes()),
            result: pair(result),
        }
    }
    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }
    fn points(&self) -> usize {
        self.result[0] * self.result[1]
    }
    fn group(&self) -> usize {
        self.channels / self.how.offset_groups
    }
    /// Which offsets of an image a channel has at a tap.
    fn row(&self, c: usize, tap: usize) -> usize {
        c / self.group() * self.taps() + tap
    }
    fn plane(&self, b: usize, c: usize) -> &[T] {
        let n = self.size[0] * self.size[1];
        &self.data[(b * self.channels + c) * n..][..n]
    }
    /// Where image `b` is sampled for a point of the result, at a row of offsets.
    fn position(&self, b: usize, row: usize, p: usize) -> (T, T) {
        let (points, width) = (self.points(), self.result[1]);
        let base = |i: usize, d: usize, t: usize| {
            T::of((i * self.how.stride[d] + t * self.how.dilation[d]) as f64 - self.how.pad[d] as f64)
        };
        let own = &self.offsets[(b * self.how.offset_groups * self.taps() + row) * 2 * points..];
        let tap = row % self.taps();
        (base(p / width, 0, tap / self.kernel[1]) + own[p], base(p % width, 1, tap % self.kernel[1]) + own[points + p])
    }
    fn scale(&self, b: usize, row: usize, p: usize) -> T {
        let at = (b * self.how.offset_groups * self.taps() + row) * self.points() + p;
        self.mask.as_ref().map_or(T::one(), |m| m[at])
    }
    /// Samples that the weights multiply: for each channel and tap, all points.
    fn columns(&self, b: usize, columns: &mut [T], threads: usize) {
        par::pieces(threads, columns, self.points(), &|k, col| {
            let (c, tap) = (k / self.taps(), k % self.taps());
            let (plane, row) = (self.plane(b, c), self.row(c, tap));
            for (p, v) in col.iter_mut().enumerate() {
                let (y, x) = self.position(b, row, p);
                *v = self.scale(b, row, p) * corner(plane, self.size, y, x);
            }
        });
    }
}

fn deform<T: Real>(of: &Deformed<'_>, bias: &View<'_>, out: &ViewMut<'_>, threads: usize) {
    if out.numel() == 0 {
        return;
    }
    let (images, how) = (Images::<T>::new(of, out.sizes()), of.how);
    let (weights, bias) = (pack::<T>(&of.weight), pack::<T>(bias));
    let (filters, points) = (out.sizes()[1] as usize, images.points());
    let rows = images.channels / how.groups * images.taps();
    let mut target = Target::<T>::new(out);
    let mut columns = Temp::filled(images.channels * images.taps() * points, T::zero());
    for (b, dst) in target.slice().chunks_mut(filters * points).enumerate() {
        images.columns(b, &mut columns, threads);
        let each = filters / how.groups;
        par::pieces(threads, dst, points, &|f, line| {
            let cols = &columns[f / each * rows * points..][..rows * points];
            line.fill(T::zero());
            for (&w, col) in weights[f * rows..][..rows].iter().zip(cols.chunks_exact(points)) {
                line.iter_mut().zip(col).for_each(|(y, &c)| *y += w * c);
            }
            line.iter_mut().for_each(|y| *y += bias[f]);
        });
    }
    target.finish();
}

/// Elements that the columns of one image have.
fn columns_of(x: &Layout, weight: &Layout, result: &Layout) -> i64 {
    x.sizes[1] * weight.sizes[2] * weight.sizes[3] * result.sizes[2] * result.sizes[3]
}

/// Bytes that [`deform_conv2d`] takes; of the operands, `x` and `weight` come first.
pub fn deform_room(operands: &[Stored<'_>], out: Stored<'_>) -> usize {
    let n = columns_of(operands[0].1, operands[1].1, out.1);
    packed_rooms(operands.iter().copied().chain([out])) + compute_room(out.0, n)
}

/// Bytes that [`deform_conv2d_backward`] takes; of the operands, `grad`, `x` and `weight` come first.
pub fn deform_backward_room(operands: &[Stored<'_>], outs: &[Stored<'_>]) -> usize {
    let n = columns_of(operands[1].1, operands[2].1, operands[0].1);
    packed_rooms(operands.iter().chain(outs).copied()) + 2 * compute_room(operands[1].0, n)
}

/// The gradients of a deformable convolution's input, weight, offset, mask and bias, in this order.
pub fn deform_conv2d_backward(
    grad: &View<'_>,
    of: &Deformed<'_>,
    outs: [&ViewMut<'_>; 5],
    threads: usize,
) -> Result<(), String> {
    with_compute!(float of.x.dtype(), T => backward::<T>(grad, of, outs, threads));
    Ok(())
}

fn backward<T: Real>(grad: &View<'_>, of: &Deformed<'_>, outs: [&ViewMut<'_>; 5], threads: usize) {
    if grad.numel() == 0 {
        return outs.into_iter().for_each(|out| fill(out, T::zero()));
    }
    let (images, how) = (Images::<T>::new(of, grad.sizes()), of.how);
    let (grads, weights) = (pack::<T>(grad), pack::<T>(&of.weight));
    let [mut of_x, mut of_weight, mut of_offset, mut of_mask, mut of_bias] = outs.map(Target::<T>::new);
    let (batch, filters) = (grad.sizes()[0] as usize, grad.sizes()[1] as usize);
    let (taps, points, [h, w]) = (images.taps(), images.points(), images.size);
    let (per_group, each) = (images.channels / how.groups, filters / how.groups);
    let rows = per_group * taps;
    let shifts = how.offset_groups * taps;
    let line_of = |b: usize, f: usize| &grads[(b * filters + f) * points..][..points];
    of_weight.slice().fill(T::zero());
    of_mask.slice().fill(T::zero());
    for (f, g) in of_bias.slice().iter_mut().enumerate() {
        *g = (0..batch).flat_map(|b| line_of(b, f)).fold(T::zero(), |s, &g| s + g);
    }
    let n = images.channels * taps * points;
    let (mut columns, mut slopes) = (Temp::filled(n, T::zero()), Temp::filled(n, T::zero()));
    for b in 0..batch {
        images.columns(b, &mut columns, threads);
        par::pieces(threads, of_weight.slice(), rows, &|f, own| {
            let cols = &columns[f / each * rows * points..][..rows * points];
            for (g, col) in own.iter_mut().zip(cols.chunks_exact(points)) {
                *g = line_of(b, f).iter().zip(col).fold(*g, |s, (&a, &c)| s + a * c);
            }
        });
        // The gradients of the columns.
        par::pieces(threads, &mut slopes, points, &|k, line| {
            let (group, inner) = (k / rows, k % rows);
            line.fill(T::zero());
            for f in group * each..(group + 1) * each {
                let weight = weights[f * rows + inner];
                line.iter_mut().zip(line_of(b, f)).for_each(|(s, &g)| *s += weight * g);
            }
        });
        // Of each channel that a row of offsets moves: its gradients at the row's tap, and its plane.
        let moved = |row: usize| {
            let first = row / taps * images.group();
            let (slopes, images) = (&slopes, &images);
            (first..first + images.group())
                .map(move |c| (&slopes[(c * taps + row % taps) * points..][..points], images.plane(b, c)))
        };
        if images.mask.is_some() {
            par::pieces(
                threads,
                &mut of_mask.slice()[b * shifts * points..][..shifts * points],
                points,
                &|row, line| {
                    for (slope, plane) in moved(row) {
                        for (p, s) in line.iter_mut().enumerate() {
                            let (y, x) = images.position(b, row, p);
                            *s += slope[p] * corner(plane, images.size, y, x);
                        }
                    }
                },
            );
        }
        let both = 2 * shifts * points;
        par::pieces(threads, &mut of_offset.slice()[b * both..][..both], points, &|k, line| {
            let (row, across) = (k / 2, k % 2 == 1);
            line.fill(T::zero());
            for (slope, plane) in moved(row) {
                for (p, s) in line.iter_mut().enumerate() {
                    let (y, x) = images.position(b, row, p);
                    let along = around(images.size, y, x)
                        .into_iter()
                        .flatten()
                        .fold(T::zero(), |s, k| s + plane[k.place] * if across { k.across } else { k.down });
                    *s += slope[p] * images.scale(b, row, p) * along;
                }
            }
        });
        let all = images.channels * h * w;
        par::pieces(threads, &mut of_x.slice()[b * all..][..all], h * w, &|c, plane| {
            plane.fill(T::zero());
            for tap in 0..taps {
                let row = images.row(c, tap);
                for (p, &slope) in slopes[(c * taps + tap) * points..][..points].iter().enumerate() {
                    let (y, x) = images.position(b, row, p);
                    let g = slope * images.scale(b, row, p);
                    for k in around(images.size, y, x).into_iter().flatten() {
                        plane[k.place] += k.part * g;
                    }
                }
            }
        });
    }
    of_x.finish();
    of_weight.finish();
    of_offset.finish();
    of_mask.finish();
    of_bias.finish();
}

/// An element near a position.
#[derive(Clone, Copy)]
struct Near<T> {
    place: usize,
    /// Its weight at the position, and the derivatives of the weight down and across.
    part: T,
    down: T,
    across: T,
}

/// Four elements around a position, from the left and from above, those that are inside.
struct Square<T> {
    places: [Option<usize>; 4],
    /// Distance of the position down and across from the first of them.
    low: [T; 2],
    /// Distance from the position to the last of them.
    high: [T; 2],
}

/// The elements around a position; nothing where none is inside.
fn square<T: Real>([h, w]: [usize; 2], y: T, x: T) -> Option<Square<T>> {
    if !(y > -T::one() && y < T::of(h as f64) && x > -T::one() && x < T::of(w as f64)) {
        return None;
    }
    let (y0, x0) = (y.floor(), x.floor());
    let (ly, lx) = (y - y0, x - x0);
    let (y0, x0) = (y0.wide() as isize, x0.wide() as isize);
    let place = |y: isize, x: isize| {
        let inside = y >= 0 && x >= 0 && (y as usize) < h && (x as usize) < w;
        inside.then(|| y as usize * w + x as usize)
    };
    let places = [place(y0, x0), place(y0, x0 + 1), place(y0 + 1, x0), place(y0 + 1, x0 + 1)];
    Some(Square { places, low: [ly, lx], high: [T::one() - ly, T::one() - lx] })
}

/// The elements around a position that are inside the image, with their weights.
fn around<T: Real>(size: [usize; 2], y: T, x: T) -> [Option<Near<T>>; 4] {
    let Some(Square { places, low: [ly, lx], high: [hy, hx] }) = square(size, y, x) else { return [None; 4] };
    let near = |k: usize, part: T, down: T, across: T| places[k].map(|place| Near { place, part, down, across });
    [near(0, hy * hx, -hx, -hy), near(1, hy * lx, -lx, hy), near(2, ly * hx, hx, -ly), near(3, ly * lx, lx, ly)]
}

/// Bilinear interpolation at a position, with zeros outside the image.
fn corner<T: Real>(plane: &[T], size: [usize; 2], y: T, x: T) -> T {
    let Some(Square { places, low: [ly, lx], high: [hy, hx] }) = square(size, y, x) else { return T::zero() };
    let [a, b, c, d] = places.map(|place| place.map_or(T::zero(), |k| plane[k]));
    hy * hx * a + hy * lx * b + ly * hx * c + ly * lx * d
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, RawTensor};

    #[test]
    fn slopes_are_those_of_what_is_sampled() {
        let plane: Vec<f64> = (0..12).map(|i| f64::from(i * i % 7)).collect();
        let step = 1e-6;
        for (y, x) in [(0.3, 1.6), (-0.4, 0.2), (2.7, 3.9), (1.2, -0.7), (5.0, 1.0)] {
            let near: Vec<_> = around([3, 4], y, x).into_iter().flatten().collect();
            let sum = |f: &dyn Fn(&Near<f64>) -> f64| near.iter().map(|k| plane[k.place] * f(k)).sum::<f64>();
            let at = |y: f64, x: f64| corner(&plane, [3, 4], y, x);
            assert!((sum(&|k| k.part) - at(y, x)).abs() < 1e-12);
            let (down, across) = (at(y + step, x) - at(y - step, x), at(y, x + step) - at(y, x - step));
            assert!((sum(&|k| k.down) - down / (2.0 * step)).abs() < 1e-6);
            assert!((sum(&|k| k.across) - across / (2.0 * step)).abs() < 1e-6);
        }
    }

    #[test]
    fn an_image_without_elements_leaves_the_bias() {
        let none = |sizes: &[i64]| RawTensor::zeros(DType::F32, Layout::contiguous(sizes));
        let (x, w, o) = (none(&[1, 1, 0, 1]), none(&[1, 1, 1, 1]), none(&[1, 2, 2, 1]));
        let g = RawTensor::from_slice(&[2f32, 3.0], &[1, 1, 2, 1]);
        let how = Deform { stride: [1, 1], pad: [1, 0], dilation: [1, 1], groups: 1, offset_groups: 1 };
        let outs = [none(&[1, 1, 0, 1]), none(&[1, 1, 1, 1]), none(&[1, 2, 2, 1]), none(&[0]), none(&[1])];
        let mut locked = outs.each_ref().map(RawTensor::write);
        let to = locked.each_mut().map(|w| w.view_mut());
        let all = [&to[0], &to[1], &to[2], &to[3], &to[4]];
        let (x, w, o) = (x.read(), w.read(), o.read());
        let of = Deformed { x: x.view(), weight: w.view(), offset: o.view(), mask: None, how };
        deform_conv2d_backward(&g.read().view(), &of, all, 2).unwrap();
        drop(locked);
        assert_eq!(outs[4].to_elements::<f32>(), [5.0]);
        assert_eq!(outs[1].to_elements::<f32>(), [0.0]);
    }
}
