//! Object detection: suppression of overlapping boxes, pooling of regions.

pub mod deform;
pub mod grid;
pub mod resample;
pub mod resample_bytes;

use crate::support::number::Real;
use crate::support::pack::{Target, pack, with_compute};
use crate::support::par;
use restride_tensor::{View, ViewMut};
use smallvec::SmallVec;

/// The boxes (x1, y1, x2, y2) that no better box overlaps by more than the threshold, best first.
pub fn nms(boxes: &View<'_>, scores: &View<'_>, threshold: f64) -> Result<Vec<i64>, String> {
    with_compute!(float boxes.dtype(), T => Ok(nms_as::<T>(boxes, scores, threshold)))
}

/// One copy of the sort for all element types.
fn sort_places(order: &mut [usize], compare: &dyn Fn(&usize, &usize) -> std::cmp::Ordering) {
    order.sort_by(compare);
}

fn nms_as<T: Real>(boxes: &View<'_>, scores: &View<'_>, threshold: f64) -> Vec<i64> {
    let (boxes, scores) = (pack::<T>(boxes), pack::<T>(scores));
    let boxes: Vec<[T; 4]> = boxes.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]).collect();
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    // As a stable descending sort: NaN before all numbers.
    let key = |i: usize| scores[i];
    sort_places(&mut order, &|&a, &b| key(b).order(key(a)));
    let area: Vec<T> = boxes.iter().map(|b| (b[2] - b[0]) * (b[3] - b[1])).collect();
    let mut gone = vec![false; boxes.len()];
    let mut keep = Vec::new();
    for (k, &i) in order.iter().enumerate() {
        if gone[i] {
            continue;
        }
        keep.push(i as i64);
        let a = boxes[i];
        for &j in &order[k + 1..] {
            if gone[j] {
                continue;
            }
            let b = boxes[j];
            let w = (a[2].min(b[2]) - a[0].max(b[0])).max(T::zero());
            let h = (a[3].min(b[3]) - a[1].max(b[1])).max(T::zero());
            let inter = w * h;
            let overlap = inter / (area[i] + area[j] - inter);
            gone[j] = overlap.wide() > threshold;
        }
    }
    keep
}

/// How regions are pooled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoiAlign {
    /// From the regions' coordinates to the image's.
    pub scale: f64,
    /// Sampling points in each dimension of a bin; as many as elements if not positive.
    pub ratio: i64,
    /// Whether regions are shifted by half an element.
    pub aligned: bool,
}

/// Averages of bilinear samples over the bins of regions (K × 5: image, x1, y1, x2, y2); `x` is N × C × H × W,
/// `out` is K × C × bins.
pub fn roi_align(
    x: &View<'_>,
    rois: &View<'_>,
    how: RoiAlign,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    with_compute!(float out.dtype(), T => roi_as::<T>(x, rois, how, out, threads))
}

/// Limit of sampling points in a dimension of a bin, beyond the size of any image.
const MOST_POINTS: f64 = 1e6;

/// Refuses regions whose image index is out of range or whose size is not finite.
fn check_regions<T: Real>(rois: &[T], images: usize, scale: f64) -> Result<(), String> {
    for r in rois.chunks_exact(5) {
        let image = r[0].wide();
        if !(image >= 0.0 && image < images as f64) {
            return Err(format!("roi_align: there is no image {image} in a batch of {images}"));
        }
        let size = |a: T, b: T| ((b - a) * T::of(scale)).wide().abs();
        if !(size(r[1], r[3]) < MOST_POINTS && size(r[2], r[4]) < MOST_POINTS) {
            return Err("roi_align: a region is not finite, or beyond any image".into());
        }
    }
    Ok(())
}

/// The sampling points of a region along one dimension.
#[derive(Clone, Copy)]
struct Points<T> {
    start: T,
    /// Size of a bin.
    size: T,
    /// Points in a bin.
    count: i64,
}

impl<T: Real> Points<T> {
    fn at(&self, bin: usize, i: i64) -> T {
        self.start
            + T::of(bin as f64) * self.size
            + (T::of(i as f64) + T::of(0.5)) * self.size / T::of(self.count as f64)
    }
}

/// The sampling points of a region along the image's rows and columns.
fn region<T: Real>(r: &[T], how: RoiAlign, bins: (usize, usize)) -> (Points<T>, Points<T>) {
    let (scale, shift) = (T::of(how.scale), T::of(if how.aligned { 0.5 } else { 0.0 }));
    let along = |from: T, to: T, bins: usize| {
        let (start, end) = (from * scale - shift, to * scale - shift);
        let all = if how.aligned { end - start } else { (end - start).max(T::one()) };
        let count = if how.ratio > 0 { how.ratio } else { (all / T::of(bins as f64)).ceil().wide() as i64 };
        Points { start, size: all / T::of(bins as f64), count }
    };
    (along(r[2], r[4], bins.0), along(r[1], r[3], bins.1))
}

fn roi_as<T: Real>(
    x: &View<'_>,
    rois: &View<'_>,
    how: RoiAlign,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let (data, rois) = (pack::<T>(x), pack::<T>(rois));
    let s = x.sizes();
    let (images, channels, h, w) = (s[0] as usize, s[1] as usize, s[2] as usize, s[3] as usize);
    let (ph, pw) = (out.sizes()[2] as usize, out.sizes()[3] as usize);
    check_regions(&rois, images, how.scale)?;
    if out.numel() == 0 {
        return Ok(());
    }
    let mut target = Target::<T>::new(out);
    par::pieces(threads, target.slice(), channels * ph * pw, &|k, dst| {
        let r = &rois[k * 5..][..5];
        let (ys, xs) = region(r, how, (ph, pw));
        let count = T::of((ys.count * xs.count).max(1) as f64);
        let image = &data[r[0].wide() as usize * channels * h * w..][..channels * h * w];
        let mut taps = BilinearTaps::new();
        for py in 0..ph {
            for px in 0..pw {
                let sums = |taps: &mut BilinearTaps<T>, dst: &mut [T]| {
                    for c in 0..channels {
                        let (plane, sum) = (&image[c * h * w..][..h * w], &mut dst[(c * ph + py) * pw + px]);
                        *sum = taps.iter().fold(*sum, |s, &(i, v)| s + v * plane[i]);
                    }
                    taps.clear();
                };
                (0..channels).for_each(|c| dst[(c * ph + py) * pw + px] = T::zero());
                for iy in 0..ys.count {
                    for ix in 0..xs.count {
                        taps.extend(bilinear(ys.at(py, iy), xs.at(px, ix), h, w).into_iter().flatten());
                        // Their number depends on the regions; at most `TAPS` are collected at once.
                        if taps.len() + 4 > TAPS {
                            sums(&mut taps, dst);
                        }
                    }
                }
                sums(&mut taps, dst);
                (0..channels).for_each(|c| {
                    let sum = &mut dst[(c * ph + py) * pw + px];
                    *sum /= count;
                });
            }
        }
    });
    target.finish();
    Ok(())
}

/// Weighted elements of an image that are added up at a time.
const TAPS: usize = 64;
type BilinearTaps<T> = SmallVec<[(usize, T); TAPS]>;

/// The gradient of [`roi_align`]'s image: each bin's gradient spread over its samples. `grad` is K × C × bins, `out` is
/// N × C × H × W.
pub fn roi_align_backward(
    grad: &View<'_>,
    rois: &View<'_>,
    how: RoiAlign,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    with_compute!(float out.dtype(), T => roi_backward_as::<T>(grad, rois, how, out, threads))
}

fn roi_backward_as<T: Real>(
    grad: &View<'_>,
    rois: &View<'_>,
    how: RoiAlign,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let (grads, rois) = (pack::<T>(grad), pack::<T>(rois));
    let s = out.sizes();
    let (images, channels, h, w) = (s[0] as usize, s[1] as usize, s[2] as usize, s[3] as usize);
    let (ph, pw) = (grad.sizes()[2] as usize, grad.sizes()[3] as usize);
    check_regions(&rois, images, how.scale)?;
    if out.numel() == 0 {
        return Ok(());
    }
    // Images in parts of several channels: positions are found once for a part, and no two parts have a cell in common.
    let parts = (1..=threads.clamp(1, channels)).rev().find(|p| channels % p == 0).unwrap_or(1);
    let own = channels / parts;
    let mut target = Target::<T>::new(out);
    par::pieces(threads, target.slice(), own * h * w, &|part, dst| {
        dst.fill(T::zero());
        let (image, first) = (part / parts, part % parts * own);
        for (k, r) in rois.chunks_exact(5).enumerate().filter(|(_, r)| r[0].wide() as usize == image) {
            let (ys, xs) = region(r, how, (ph, pw));
            let count = T::of((ys.count * xs.count).max(1) as f64);
            for (py, px) in (0..ph).flat_map(|py| (0..pw).map(move |px| (py, px))) {
                for (iy, ix) in (0..ys.count).flat_map(|iy| (0..xs.count).map(move |ix| (iy, ix))) {
                    let Some(taps) = bilinear(ys.at(py, iy), xs.at(px, ix), h, w) else { continue };
                    for (c, plane) in dst.chunks_exact_mut(h * w).enumerate() {
                        let g = grads[((k * channels + first + c) * ph + py) * pw + px] / count;
                        for (i, v) in taps {
                            plane[i] += v * g;
                        }
                    }
                }
            }
        }
    });
    target.finish();
    Ok(())
}

/// The four elements around a position, and their parts in it; nothing more than one element outside.
fn bilinear<T: Real>(y: T, x: T, h: usize, w: usize) -> Option<[(usize, T); 4]> {
    let outside = |v: T, n: usize| !(v >= -T::one() && v <= T::of(n as f64));
    if h == 0 || w == 0 || outside(y, h) || outside(x, w) {
        return None;
    }
    let side = |v: T, n: usize| {
        let v = v.max(T::zero());
        let low = v.wide() as usize;
        if low + 1 >= n { (n - 1, n - 1, T::zero()) } else { (low, low + 1, v - T::of(low as f64)) }
    };
    let ((ya, yb, ly), (xa, xb, lx)) = (side(y, h), side(x, w));
    let (hy, hx) = (T::one() - ly, T::one() - lx);
    Some([(ya * w + xa, hy * hx), (ya * w + xb, hy * lx), (yb * w + xa, ly * hx), (yb * w + xb, ly * lx)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    #[test]
    fn better_boxes_suppress_those_that_they_overlap() {
        let boxes =
            RawTensor::from_slice(&[0f32, 0., 2., 2., 0., 0., 2., 1.9, 5., 5., 6., 6., 0., 0., 1., 1.], &[4, 4]);
        let scores = RawTensor::from_slice(&[0.5f32, 0.9, 0.1, 0.7], &[4]);
        assert_eq!(nms(&boxes.read().view(), &scores.read().view(), 0.5).unwrap(), [1, 3, 2]);
        assert_eq!(nms(&boxes.read().view(), &scores.read().view(), 1.0).unwrap(), [1, 3, 0, 2]);
    }

    #[test]
    fn nothing_is_sampled_far_outside() {
        assert_eq!(bilinear(-1.5f64, 0.0, 4, 4), None);
        let taps = bilinear(4.0f64, 0.5, 4, 4).unwrap();
        assert_eq!(taps.iter().map(|t| t.1).sum::<f64>(), 1.0);
        assert!(taps.iter().all(|t| t.0 < 16));
    }

    #[test]
    fn the_gradient_is_the_same_whatever_the_threads() {
        let grad: Vec<f32> = (0..3 * 6 * 4).map(|i| (i % 7) as f32 - 2.5).collect();
        let grad = RawTensor::from_slice(&grad, &[3, 6, 2, 2]);
        let rois = [0f32, 0.3, 0.2, 3.1, 2.7, 1., 1., 1., 4., 4., 0., 2., 0., 3., 4.];
        let rois = RawTensor::from_slice(&rois, &[3, 5]);
        let how = RoiAlign { scale: 1.0, ratio: 2, aligned: true };
        let run = |threads| {
            let out = RawTensor::from_slice(&[f32::NAN; 2 * 6 * 20], &[2, 6, 4, 5]);
            roi_align_backward(&grad.read().view(), &rois.read().view(), how, &out.write().view_mut(), threads)
                .unwrap();
            out.to_elements::<f32>()
        };
        let one = run(1);
        assert!(one.iter().all(|x| x.is_finite()) && one.iter().any(|x| *x != 0.0));
        assert!((2..5).all(|t| run(t) == one));
    }
}
