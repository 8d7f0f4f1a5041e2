//! Discrete Fourier transforms, in double precision, and overlapping frames added up.

use crate::support::pack::{Compute, Stored, Target, compute_room, pack, packed_room, with_compute};
use crate::support::scratch::{Temp, room};
use restride_tensor::{C64, DType, View, ViewMut};
use rustfft::{Fft, FftDirection, FftPlanner};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};

/// Dimensions, or their sizes.
pub type FftDims = SmallVec<[usize; 8]>;

/// Dimensions, direction and scale of a transform.
#[derive(Clone, Debug, PartialEq)]
pub struct Transform {
    /// Transformed dimensions.
    pub dims: FftDims,
    /// Whether the exponents are negative.
    pub forward: bool,
    /// Factor of the result.
    pub scale: f64,
}

/// Recent plans, the latest at the end: asking for the scratch bytes of a transform plans it.
static PLANS: Mutex<Vec<Arc<dyn Fft<f64>>>> = Mutex::new(Vec::new());

/// Plans that are kept: more lengths than a program has.
const KEPT: usize = 64;

/// The plan for a transform of `n` elements.
fn planned(n: usize, direction: FftDirection) -> Arc<dyn Fft<f64>> {
    let find =
        |plans: &Vec<Arc<dyn Fft<f64>>>| plans.iter().find(|p| p.len() == n && p.fft_direction() == direction).cloned();
    let plans = || PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = find(&plans()) {
        return plan;
    }
    // A fresh planner: a plan must not depend on earlier ones. Planned without the lock, for which other threads wait.
    let plan = FftPlanner::new().plan_fft(n, direction);
    let mut plans = plans();
    if plans.len() == KEPT {
        plans.remove(0);
    }
    plans.push(plan.clone());
    plan
}

/// Transforms one dimension of row-major data.
fn along(data: &mut [C64], sizes: &[usize], dim: usize, direction: FftDirection) {
    let n = sizes[dim];
    let inner: usize = sizes[dim + 1..].iter().product();
    if n < 2 || inner == 0 {
        return;
    }
    let fft = planned(n, direction);
    let mut scratch = Temp::filled(fft.get_inplace_scratch_len(), C64::default());
    let mut line = Temp::filled(if inner == 1 { 0 } else { n }, C64::default());
    for block in data.chunks_mut(n * inner) {
        if inner == 1 {
            fft.process_with_scratch(block, &mut scratch);
            continue;
        }
        for i in 0..inner {
            line.iter_mut().zip(block[i..].iter().step_by(inner)).for_each(|(l, &x)| *l = x);
            fft.process_with_scratch(&mut line, &mut scratch);
            block[i..].iter_mut().step_by(inner).zip(&line).for_each(|(x, &l)| *x = l);
        }
    }
}

fn direction(forward: bool) -> FftDirection {
    if forward { FftDirection::Forward } else { FftDirection::Inverse }
}

fn all(data: &mut [C64], sizes: &[usize], dims: &[usize], forward: bool, scale: f64) {
    for &d in dims {
        along(data, sizes, d, direction(forward));
    }
    if scale != 1.0 {
        data.iter_mut().for_each(|z| *z = C64::new(z.re * scale, z.im * scale));
    }
}

/// Scratch bytes of one-dimensional transforms of these sizes, run one after the other.
fn lines_room(sizes: impl Iterator<Item = i64>, forward: bool) -> usize {
    let each = sizes.filter(|&n| n > 1).map(|n| {
        let plan = planned(n as usize, direction(forward));
        room::<C64>(plan.get_inplace_scratch_len()) + room::<C64>(n as usize)
    });
    each.max().unwrap_or(0)
}

/// Scratch bytes of operands or results in the type of transforms.
fn wide_room((dtype, layout): Stored<'_>) -> usize {
    let wide = if dtype.is_complex() { DType::C128 } else { DType::F64 };
    if dtype == wide { packed_room((dtype, layout)) } else { compute_room(wide, layout.numel()) }
}

/// Scratch bytes of [`c2c`].
pub fn c2c_room((_, x): Stored<'_>, t: &Transform) -> usize {
    compute_room(DType::C128, x.numel()) + lines_room(t.dims.iter().map(|&d| x.sizes[d]), t.forward)
}

/// Scratch bytes of [`r2c`].
pub fn r2c_room(x: Stored<'_>, t: &Transform, out: Stored<'_>) -> usize {
    let lines = lines_room(t.dims.iter().map(|&d| x.1.sizes[d]), t.forward);
    compute_room(DType::C128, x.1.numel()) + wide_room(x).max(lines).max(wide_room(out))
}

/// Scratch bytes of [`c2r`].
pub fn c2r_room((_, x): Stored<'_>, t: &Transform, out: Stored<'_>) -> usize {
    let last = t.dims.last().map(|&d| out.1.sizes[d]);
    let rest = t.dims.iter().rev().skip(1).map(|&d| x.sizes[d]);
    let n = out.1.numel();
    let lines = lines_room(rest.chain(last), t.forward);
    compute_room(DType::C128, x.numel()) + compute_room(DType::C128, n) + lines.max(compute_room(DType::F64, n))
}

fn sizes(v: &[i64]) -> FftDims {
    v.iter().map(|&n| n as usize).collect()
}

/// An error unless transforms have the element type.
fn check(name: &str, dtype: DType, complex: bool) -> Result<(), String> {
    let [single, double] = if complex { [DType::C64, DType::C128] } else { [DType::F32, DType::F64] };
    if dtype == single || dtype == double {
        return Ok(());
    }
    Err(format!("{name} is not implemented for {}", dtype.torch_name()))
}

/// Complex to complex.
pub fn c2c(x: &View<'_>, t: &Transform, out: &ViewMut<'_>) -> Result<(), String> {
    check("_fft_c2c", x.dtype(), true)?;
    let mut data = pack::<C64>(x).into_owned();
    all(&mut data, &sizes(x.sizes()), &t.dims, t.forward, t.scale);
    crate::support::pack::unpack(&data, out);
    Ok(())
}

/// Real to complex: of the last transformed dimension the first half, or all (the result's size says which).
pub fn r2c(x: &View<'_>, t: &Transform, out: &ViewMut<'_>) -> Result<(), String> {
    check("_fft_r2c", x.dtype(), false)?;
    let mut data = Temp::filled(x.numel(), C64::default());
    data.iter_mut().zip(pack::<f64>(x).iter()).for_each(|(z, &x)| z.re = x);
    let full = sizes(x.sizes());
    all(&mut data, &full, &t.dims, t.forward, t.scale);
    let cut = sizes(out.sizes());
    let Some(&last) = t.dims.last() else {
        crate::support::pack::unpack(&data, out);
        return Ok(());
    };
    let inner: usize = full[last + 1..].iter().product();
    let mut target = Target::<C64>::new(out);
    let (from, to) = ((full[last] * inner).max(1), (cut[last] * inner).max(1));
    for (dst, src) in target.slice().chunks_mut(to).zip(data.chunks(from)) {
        dst.copy_from_slice(&src[..dst.len()]);
    }
    target.finish();
    Ok(())
}

/// Complex to real: the last transformed dimension of `x` is the first half of a spectrum whose other half mirrors it,
/// conjugated; their number follows from the result's size.
pub fn c2r(x: &View<'_>, t: &Transform, out: &ViewMut<'_>) -> Result<(), String> {
    check("_fft_c2r", x.dtype(), true)?;
    let Some((&last, rest)) = t.dims.split_last() else { return Ok(()) };
    let half_sizes = sizes(x.sizes());
    let mut data = pack::<C64>(x).into_owned();
    all(&mut data, &half_sizes, rest, t.forward, 1.0);
    let full_sizes = sizes(out.sizes());
    let (half, n) = (half_sizes[last], full_sizes[last]);
    let inner: usize = full_sizes[last + 1..].iter().product();
    let mut full = Temp::filled(full_sizes.iter().product(), C64::default());
    if inner > 0 {
        for (dst, src) in full.chunks_mut(n * inner).zip(data.chunks(half * inner)) {
            for k in 0..n {
                let mirrored = k > n / 2;
                let from = if mirrored { n - k } else { k };
                for i in 0..inner {
                    let z = if from < half { src[from * inner + i] } else { C64::default() };
                    // An element without a partner is real by definition; its imaginary part is ignored.
                    let alone = from == 0 || 2 * from == n;
                    let im = if alone {
                        0.0
                    } else if mirrored {
                        -z.im
                    } else {
                        z.im
                    };
                    dst[k * inner + i] = C64::new(z.re, im);
                }
            }
        }
    }
    all(&mut full, &full_sizes, &[last], t.forward, t.scale);
    let real: Temp<f64> = full.iter().map(|z| z.re).collect();
    crate::support::pack::unpack(&real, out);
    Ok(())
}

/// The transpose of sliding windows along `dim`: `x` has the windows in `dim` and their elements in the last dimension;
/// elements that windows share are added in the order of the windows.
pub fn add_windows(x: &View<'_>, dim: usize, step: usize, out: &ViewMut<'_>) -> Result<(), String> {
    fn run<T: Compute + std::ops::AddAssign>(x: &View<'_>, dim: usize, step: usize, out: &ViewMut<'_>) {
        let data = pack::<T>(x);
        let s = sizes(x.sizes());
        let taps = s[s.len() - 1];
        // A scalar has one window, of itself.
        let (windows, inner, n) = match out.sizes().is_empty() {
            true => (1, 1, 1),
            false => (s[dim], s[dim + 1..s.len() - 1].iter().product(), out.sizes()[dim] as usize),
        };
        let mut target = Target::<T>::new(out);
        let sums = target.slice();
        sums.fill(T::default());
        if inner > 0 && n > 0 {
            for (o, dst) in sums.chunks_mut(n * inner).enumerate() {
                for w in 0..windows {
                    for i in 0..inner {
                        let src = &data[((o * windows + w) * inner + i) * taps..][..taps];
                        for (k, &v) in src.iter().enumerate() {
                            dst[(w * step + k) * inner + i] += v;
                        }
                    }
                }
            }
        }
        target.finish();
    }
    with_compute!(any out.dtype(), T => run::<T>(x, dim, step, out));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{Layout, RawTensor};

    #[test]
    fn there_and_back_is_the_identity() {
        let data: Vec<f64> = (0..30).map(|i| ((i * 37) % 11) as f64 - 4.0).collect();
        let x = RawTensor::from_slice(&data, &[2, 3, 5]);
        for dim in 0..3 {
            let mut half = [2, 3, 5];
            half[dim] = half[dim] / 2 + 1;
            let mid = RawTensor::zeros(DType::C128, Layout::permuted(&half, &[1, 2, 0]));
            let out = RawTensor::zeros(DType::F64, Layout::contiguous(&[2, 3, 5]));
            let other = (dim + 1) % 3;
            let dims = FftDims::from_slice(&[other, dim]);
            r2c(
                &x.read().view(),
                &Transform { dims: dims.clone(), forward: true, scale: 1.0 },
                &mid.write().view_mut(),
            )
            .unwrap();
            let n = [2, 3, 5][dim] * [2, 3, 5][other];
            let back = Transform { dims, forward: false, scale: 1.0 / n as f64 };
            c2r(&mid.read().view(), &back, &out.write().view_mut()).unwrap();
            for (a, b) in out.to_elements::<f64>().iter().zip(&data) {
                assert!((a - b).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn windows_are_added_where_they_overlap() {
        let x = RawTensor::from_slice(&[1i64, 2, 3, 10, 20, 30], &[2, 3]);
        let out = RawTensor::zeros(DType::I64, Layout::contiguous(&[5]));
        add_windows(&x.read().view(), 0, 2, &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<i64>(), [1, 2, 13, 20, 30]);
    }
}
