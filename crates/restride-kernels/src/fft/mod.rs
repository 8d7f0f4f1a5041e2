//! Discrete Fourier transforms, and overlapping frames added up.

use crate::support::pack::{Compute, Stored, Target, compute_room, pack, packed_room, with_compute};
use crate::support::scratch::{Temp, room};
use num_complex::Complex;
use restride_tensor::{DType, View, ViewMut};
use rustfft::{Fft, FftDirection, FftNum, FftPlannerAvx, FftPlannerNeon, FftPlannerScalar};
use smallvec::SmallVec;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

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

/// Numbers that transforms are made of.
trait FftNumber: FftNum + num_traits::Float + Compute {
    fn of(x: f64) -> Self;
    fn plans() -> &'static Plans<Self>;
    fn plan(n: usize, direction: FftDirection) -> Arc<dyn Fft<Self>>;
}
impl FftNumber for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn plans() -> &'static Plans<f32> {
        static PLANS: Plans<f32> = Mutex::new(Vec::new());
        &PLANS
    }
    fn plan(n: usize, direction: FftDirection) -> Arc<dyn Fft<f32>> {
        let vectors = FftPlannerAvx::new().map(|mut p| p.plan_fft(n, direction));
        let vectors = vectors.or_else(|()| FftPlannerNeon::new().map(|mut p| p.plan_fft(n, direction)));
        vectors.expect("in doubles where there are no vectors")
    }
}
impl FftNumber for f64 {
    fn of(x: f64) -> f64 {
        x
    }
    fn plans() -> &'static Plans<f64> {
        static PLANS: Plans<f64> = Mutex::new(Vec::new());
        &PLANS
    }
    /// Without vectors: transforms of doubles are rare, and their vectors are seconds of a build.
    fn plan(n: usize, direction: FftDirection) -> Arc<dyn Fft<f64>> {
        FftPlannerScalar::new().plan_fft(n, direction)
    }
}

/// The type that a transform of this one is computed in. Without vectors singles are computed as doubles: code of their own for such
/// processors would be a hundredth of the program.
fn computed(dtype: DType) -> DType {
    static DOUBLES: LazyLock<bool> =
        LazyLock::new(|| FftPlannerAvx::<f32>::new().is_err() && FftPlannerNeon::<f32>::new().is_err());
    match dtype {
        DType::F32 if *DOUBLES => DType::F64,
        DType::C64 if *DOUBLES => DType::C128,
        other => other,
    }
}

/// As [`packed_room`], in the type that is computed in.
fn computed_room((dtype, layout): Stored<'_>) -> usize {
    match computed(dtype) {
        own if own == dtype => packed_room((dtype, layout)),
        other => compute_room(other, layout.numel()),
    }
}

/// Recent plans, the latest at the end: asking for the scratch bytes of a transform plans it.
type Plans<T> = Mutex<Vec<Arc<dyn Fft<T>>>>;

/// Plans that are kept of each element type: more lengths than a program has.
const KEPT: usize = 64;

/// The plan for a transform of `n` elements.
fn planned<T: FftNumber>(n: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
    let find =
        |plans: &Vec<Arc<dyn Fft<T>>>| plans.iter().find(|p| p.len() == n && p.fft_direction() == direction).cloned();
    let plans = || T::plans().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = find(&plans()) {
        return plan;
    }
    // A fresh planner: a plan must not depend on earlier ones. Planned without the lock, for which other threads wait.
    let plan = T::plan(n, direction);
    let mut plans = plans();
    if plans.len() == KEPT {
        plans.remove(0);
    }
    plans.push(plan.clone());
    plan
}

/// Transforms one dimension of row-major data.
fn along<T: FftNumber>(data: &mut [Complex<T>], sizes: &[usize], dim: usize, direction: FftDirection) {
    let n = sizes[dim];
    let inner: usize = sizes[dim + 1..].iter().product();
    if n < 2 || inner == 0 {
        return;
    }
    let fft = planned::<T>(n, direction);
    let zero = Complex::new(T::zero(), T::zero());
    let mut scratch = Temp::filled(fft.get_inplace_scratch_len(), zero);
    let mut line = Temp::filled(if inner == 1 { 0 } else { n }, zero);
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

fn all<T: FftNumber>(data: &mut [Complex<T>], sizes: &[usize], dims: &[usize], forward: bool, scale: f64) {
    for &d in dims {
        along(data, sizes, d, direction(forward));
    }
    if scale != 1.0 {
        let s = T::of(scale);
        data.iter_mut().for_each(|z| *z = Complex::new(z.re * s, z.im * s));
    }
}

/// Scratch bytes of one-dimensional transforms of these sizes, run one after the other.
fn lines_room(dtype: DType, sizes: impl Iterator<Item = i64>, forward: bool) -> usize {
    fn of<T: FftNumber>(n: usize, direction: FftDirection) -> usize {
        room::<Complex<T>>(planned::<T>(n, direction).get_inplace_scratch_len()) + room::<Complex<T>>(n)
    }
    let each = sizes.filter(|&n| n > 1).map(|n| match computed(dtype).real() {
        DType::F64 => of::<f64>(n as usize, direction(forward)),
        _ => of::<f32>(n as usize, direction(forward)),
    });
    each.max().unwrap_or(0)
}

/// Scratch bytes of [`c2c`].
pub fn c2c_room((dtype, x): Stored<'_>, t: &Transform) -> usize {
    compute_room(computed(dtype), x.numel()) + lines_room(dtype, t.dims.iter().map(|&d| x.sizes[d]), t.forward)
}

/// Scratch bytes of [`r2c`].
pub fn r2c_room(x: Stored<'_>, t: &Transform, out: Stored<'_>) -> usize {
    let lines = lines_room(x.0, t.dims.iter().map(|&d| x.1.sizes[d]), t.forward);
    compute_room(computed(out.0), x.1.numel()) + computed_room(x).max(lines).max(computed_room(out))
}

/// Scratch bytes of [`c2r`].
pub fn c2r_room((dtype, x): Stored<'_>, t: &Transform, out: Stored<'_>) -> usize {
    let last = t.dims.last().map(|&d| out.1.sizes[d]);
    let rest = t.dims.iter().rev().skip(1).map(|&d| x.sizes[d]);
    let n = out.1.numel();
    let lines = lines_room(dtype, rest.chain(last), t.forward);
    let (dtype, real) = (computed(dtype), computed(out.0));
    compute_room(dtype, x.numel()) + compute_room(dtype, n) + lines.max(compute_room(real, n))
}

fn sizes(v: &[i64]) -> FftDims {
    v.iter().map(|&n| n as usize).collect()
}

/// Complex to complex.
pub fn c2c(x: &View<'_>, t: &Transform, out: &ViewMut<'_>) -> Result<(), String> {
    match computed(x.dtype()) {
        DType::C64 => c2c_as::<f32>(x, t, out),
        DType::C128 => c2c_as::<f64>(x, t, out),
        _ => return Err(format!("_fft_c2c is not implemented for {}", x.dtype().torch_name())),
    }
    Ok(())
}

fn c2c_as<T: FftNumber>(x: &View<'_>, t: &Transform, out: &ViewMut<'_>)
where
    Complex<T>: Compute,
{
    let mut data = pack::<Complex<T>>(x).into_owned();
    all(&mut data, &sizes(x.sizes()), &t.dims, t.forward, t.scale);
    crate::support::pack::unpack(&data, out);
}

/// Real to complex: of the last transformed dimension the first half, or all (the result's size says which).
pub fn r2c(x: &View<'_>, t: &Transform, out: &ViewMut<'_>) -> Result<(), String> {
    match computed(x.dtype()) {
        DType::F32 => r2c_as::<f32>(x, t, out),
        DType::F64 => r2c_as::<f64>(x, t, out),
        _ => return Err(format!("_fft_r2c is not implemented for {}", x.dtype().torch_name())),
    }
    Ok(())
}

fn r2c_as<T: FftNumber>(x: &View<'_>, t: &Transform, out: &ViewMut<'_>)
where
    Complex<T>: Compute,
{
    let mut data = Temp::filled(x.numel(), Complex::new(T::zero(), T::zero()));
    data.iter_mut().zip(pack::<T>(x).iter()).for_each(|(z, &x)| z.re = x);
    let full = sizes(x.sizes());
    let cut = sizes(out.sizes());
    let Some((&last, rest)) = t.dims.split_last() else { return crate::support::pack::unpack(&data, out) };
    let inner: usize = full[last + 1..].iter().product();
    along(&mut data, &full, last, direction(t.forward));
    // Sums of real numbers with real factors: their imaginary parts are 0, not the -0 that some plans leave, which would
    // turn an angle of pi around.
    let n = full[last];
    for line in data.chunks_mut((n * inner).max(1)) {
        let real = [Some(0), n.is_multiple_of(2).then_some(n / 2)];
        for k in real.into_iter().flatten().filter(|k| *k < n) {
            line[k * inner..][..inner].iter_mut().for_each(|z| z.im = T::zero());
        }
    }
    all(&mut data, &full, rest, t.forward, t.scale);
    let mut target = Target::<Complex<T>>::new(out);
    let (from, to) = ((full[last] * inner).max(1), (cut[last] * inner).max(1));
    for (dst, src) in target.slice().chunks_mut(to).zip(data.chunks(from)) {
        dst.copy_from_slice(&src[..dst.len()]);
    }
    target.finish();
}

/// Complex to real: the last transformed dimension of `x` is the first half of a spectrum whose other half mirrors it,
/// conjugated; their number follows from the result's size.
pub fn c2r(x: &View<'_>, t: &Transform, out: &ViewMut<'_>) -> Result<(), String> {
    match computed(x.dtype()) {
        DType::C64 => c2r_as::<f32>(x, t, out),
        DType::C128 => c2r_as::<f64>(x, t, out),
        _ => return Err(format!("_fft_c2r is not implemented for {}", x.dtype().torch_name())),
    }
    Ok(())
}

fn c2r_as<T: FftNumber>(x: &View<'_>, t: &Transform, out: &ViewMut<'_>)
where
    Complex<T>: Compute,
{
    let Some((&last, rest)) = t.dims.split_last() else { return };
    let half_sizes = sizes(x.sizes());
    let mut data = pack::<Complex<T>>(x).into_owned();
    all(&mut data, &half_sizes, rest, t.forward, 1.0);
    let full_sizes = sizes(out.sizes());
    let (half, n) = (half_sizes[last], full_sizes[last]);
    let inner: usize = full_sizes[last + 1..].iter().product();
    let zero = Complex::new(T::zero(), T::zero());
    let mut full = Temp::filled(full_sizes.iter().product(), zero);
    if inner > 0 && n > 0 {
        for (dst, src) in full.chunks_mut(n * inner).zip(data.chunks(half * inner)) {
            let (first, mirrored) = dst.split_at_mut((n / 2 + 1) * inner);
            let given = first.len().min(src.len());
            first[..given].copy_from_slice(&src[..given]);
            // An element without a partner is real by definition; its imaginary part is ignored.
            for k in [Some(0), n.is_multiple_of(2).then_some(n / 2)].into_iter().flatten() {
                first[k * inner..][..inner].iter_mut().for_each(|z| z.im = T::zero());
            }
            let partners = first[inner..].rchunks_exact(inner).skip(usize::from(n.is_multiple_of(2)));
            if inner == 1 {
                mirrored.iter_mut().zip(partners).for_each(|(to, from)| *to = from[0].conj());
            } else {
                for (to, from) in mirrored.chunks_exact_mut(inner).zip(partners) {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = from.conj());
                }
            }
        }
    }
    all(&mut full, &full_sizes, &[last], t.forward, t.scale);
    let real: Temp<T> = full.iter().map(|z| z.re).collect();
    crate::support::pack::unpack(&real, out);
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
    fn singles_may_be_computed_as_doubles() {
        let data: Vec<f32> = (0..48).map(|i| ((i * 37) % 11) as f32 - 4.0).collect();
        let x = RawTensor::from_slice(&data, &[4, 12]);
        let t = Transform { dims: FftDims::from_slice(&[0, 1]), forward: true, scale: 1.0 };
        let two = |d: DType, columns: i64| [(); 2].map(|()| RawTensor::zeros(d, Layout::contiguous(&[4, columns])));
        let half = two(DType::C64, 7);
        r2c(&x.read().view(), &t, &half[0].write().view_mut()).unwrap();
        r2c_as::<f64>(&x.read().view(), &t, &half[1].write().view_mut());
        let [a, b] = half.each_ref().map(|h| h.to_elements::<restride_tensor::C32>());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).norm() < 1e-4), "{a:?} {b:?}");
        let t = Transform { forward: false, scale: 1.0 / 48.0, ..t };
        let back = two(DType::F32, 12);
        c2r(&half[0].read().view(), &t, &back[0].write().view_mut()).unwrap();
        c2r_as::<f64>(&half[1].read().view(), &t, &back[1].write().view_mut());
        for made in &back {
            assert!(made.to_elements::<f32>().iter().zip(&data).all(|(a, b)| (a - b).abs() < 1e-5));
        }
        let full = two(DType::C64, 7);
        c2c(&half[0].read().view(), &t, &full[0].write().view_mut()).unwrap();
        c2c_as::<f64>(&half[0].read().view(), &t, &full[1].write().view_mut());
        let [a, b] = full.each_ref().map(|h| h.to_elements::<restride_tensor::C32>());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).norm() < 1e-5), "{a:?} {b:?}");
    }

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
    fn sums_of_real_numbers_have_no_negative_zero() {
        for n in [1i64, 5, 8, 12, 128] {
            let data: Vec<f32> = (0..4 * n).map(|i| ((i * 37) % 11) as f32 - 5.0).collect();
            let out = RawTensor::zeros(DType::C64, Layout::contiguous(&[4, n / 2 + 1]));
            let t = Transform { dims: FftDims::from_slice(&[1]), forward: true, scale: 1.0 };
            r2c(&RawTensor::from_slice(&data, &[4, n]).read().view(), &t, &out.write().view_mut()).unwrap();
            for row in out.to_elements::<restride_tensor::C32>().chunks((n / 2 + 1) as usize) {
                assert_eq!(row[0].im.to_bits(), 0, "{n}");
                assert!(n % 2 != 0 || row[n as usize / 2].im.to_bits() == 0, "{n}");
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
