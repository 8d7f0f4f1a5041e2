//! Discrete Fourier transforms, and overlapping frames added up.

mod real;

use self::real::RealLines;
use crate::support::pack::{Compute, Packed, Stored, Target, compute_room, pack, packed_room, with_compute};
use crate::support::scratch::{Temp, room};
use num_complex::Complex;
use restride_tensor::{DType, View, ViewMut};
use rustfft::{Fft, FftDirection, FftNum, FftPlannerAvx, FftPlannerNeon, FftPlannerScalar};
use smallvec::SmallVec;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

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
    fn plans() -> &'static FftPlans<Self>;
    fn plan(n: usize, direction: FftDirection) -> Arc<dyn Fft<Self>>;
}
impl FftNumber for f32 {
    fn of(x: f64) -> f32 {
        x as f32
    }
    fn plans() -> &'static FftPlans<f32> {
        static PLANS: FftPlans<f32> = Mutex::new(Vec::new());
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
    fn plans() -> &'static FftPlans<f64> {
        static PLANS: FftPlans<f64> = Mutex::new(Vec::new());
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

/// How transforms of one length are computed.
struct FftPlan<T> {
    fft: Arc<dyn Fft<T>>,
    turns: OnceLock<Box<[Complex<T>]>>,
}

impl<T: FftNumber> FftPlan<T> {
    /// `exp(-i pi k / n)` for `n` elements, `k` up to `n / 2`: what twice as many real numbers take.
    fn turns(&self) -> &[Complex<T>] {
        let n = self.fft.len();
        let turn = |k: usize| {
            let (sin, cos) = (-std::f64::consts::PI * k as f64 / n as f64).sin_cos();
            Complex::new(T::of(cos), T::of(sin))
        };
        self.turns.get_or_init(|| (0..=n / 2).map(turn).collect())
    }
}

/// Recent plans, the latest at the end: asking for the scratch bytes of a transform plans it.
type FftPlans<T> = Mutex<Vec<Arc<FftPlan<T>>>>;

/// Plans that are kept of each element type: more lengths than a program has.
const KEPT: usize = 64;

/// The plan for a transform of `n` elements.
fn planned<T: FftNumber>(n: usize, direction: FftDirection) -> Arc<FftPlan<T>> {
    let find = |plans: &Vec<Arc<FftPlan<T>>>| {
        plans.iter().find(|p| p.fft.len() == n && p.fft.fft_direction() == direction).cloned()
    };
    let plans = || T::plans().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = find(&plans()) {
        return plan;
    }
    // A fresh planner: a plan must not depend on earlier ones. Planned without the lock, for which other threads wait.
    let plan = Arc::new(FftPlan { fft: T::plan(n, direction), turns: OnceLock::new() });
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
    let plan = planned::<T>(n, direction);
    let fft = &plan.fft;
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
        room::<Complex<T>>(planned::<T>(n, direction).fft.get_inplace_scratch_len()) + room::<Complex<T>>(n)
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

/// Scratch bytes of a transform to or from `n` real numbers at a time.
fn real_room(dtype: DType, n: i64, direction: FftDirection) -> usize {
    match computed(dtype).real() {
        DType::F64 => RealLines::<f64>::room(n as usize, direction),
        _ => RealLines::<f32>::room(n as usize, direction),
    }
}

/// Scratch bytes of [`r2c`].
pub fn r2c_room(x: Stored<'_>, t: &Transform, out: Stored<'_>) -> usize {
    let Some((&last, rest)) = t.dims.split_last() else { return computed_room(x) + computed_room(out) };
    let line = real_room(x.0, x.1.sizes[last], FftDirection::Forward);
    let lines = lines_room(x.0, rest.iter().map(|&d| x.1.sizes[d]), t.forward);
    computed_room(x) + line.max(lines) + computed_room(out)
}

/// Scratch bytes of [`c2r`].
pub fn c2r_room((dtype, x): Stored<'_>, t: &Transform, out: Stored<'_>) -> usize {
    let Some((&last, rest)) = t.dims.split_last() else { return 0 };
    let own = if rest.is_empty() { computed_room((dtype, x)) } else { compute_room(computed(dtype), x.numel()) };
    let line = real_room(dtype, out.1.sizes[last], FftDirection::Inverse);
    let lines = lines_room(dtype, rest.iter().map(|&d| x.sizes[d]), t.forward);
    own + lines.max(line + computed_room(out))
}

fn sizes(v: &[i64]) -> FftDims {
    v.iter().map(|&n| n as usize).collect()
}

/// Runs a transform of singles or of doubles: of what `x` has, complex numbers where `complex`, and real ones otherwise.
fn by_type(name: &str, x: &View<'_>, complex: bool, singles: &dyn Fn(), doubles: &dyn Fn()) -> Result<(), String> {
    let dtype = computed(x.dtype());
    match dtype.real() {
        DType::F32 if dtype.is_complex() == complex => singles(),
        DType::F64 if dtype.is_complex() == complex => doubles(),
        _ => return Err(format!("{name} is not implemented for {}", x.dtype().torch_name())),
    }
    Ok(())
}

/// Complex to complex.
pub fn c2c(x: &View<'_>, t: &Transform, out: &ViewMut<'_>) -> Result<(), String> {
    by_type("_fft_c2c", x, true, &|| c2c_as::<f32>(x, t, out), &|| c2c_as::<f64>(x, t, out))
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
    by_type("_fft_r2c", x, false, &|| r2c_as::<f32>(x, t, out), &|| r2c_as::<f64>(x, t, out))
}

fn r2c_as<T: FftNumber>(x: &View<'_>, t: &Transform, out: &ViewMut<'_>)
where
    Complex<T>: Compute,
{
    let (data, mut target) = (pack::<T>(x), Target::<Complex<T>>::new(out));
    let Some((&last, rest)) = t.dims.split_last() else {
        target.slice().iter_mut().zip(data.iter()).for_each(|(z, x)| *z = Complex::new(*x, T::zero()));
        return target.finish();
    };
    let (n, cut) = (x.sizes()[last] as usize, sizes(out.sizes()));
    let (kept, inner) = (cut[last], cut[last + 1..].iter().product::<usize>());
    let mut lines = RealLines::<T>::new(n, FftDirection::Forward);
    for (dst, src) in target.slice().chunks_mut((kept * inner).max(1)).zip(data.chunks((n * inner).max(1))) {
        for i in 0..inner {
            let half = lines.spectrum(&src[i..], inner);
            let mirrored = half[1..].iter().rev().skip(usize::from(n.is_multiple_of(2))).map(Complex::conj);
            if inner == 1 {
                let (first, rest) = dst.split_at_mut(half.len());
                first.copy_from_slice(half);
                rest.iter_mut().zip(mirrored).for_each(|(to, from)| *to = from);
            } else {
                let own = dst[i..].iter_mut().step_by(inner);
                own.zip(half.iter().copied().chain(mirrored)).for_each(|(to, from)| *to = from);
            }
        }
    }
    // The next transforms use its scratch.
    drop(lines);
    if !t.forward {
        // Not what is real: it would get the imaginary part -0.
        let turned = |z: &mut Complex<T>| z.im = T::zero() - z.im;
        target.slice().iter_mut().for_each(turned);
    }
    all(target.slice(), &cut, rest, t.forward, t.scale);
    target.finish();
}

/// Complex to real: the last transformed dimension of `x` is the first half of a spectrum whose other half mirrors it,
/// conjugated; their number follows from the result's size.
pub fn c2r(x: &View<'_>, t: &Transform, out: &ViewMut<'_>) -> Result<(), String> {
    by_type("_fft_c2r", x, true, &|| c2r_as::<f32>(x, t, out), &|| c2r_as::<f64>(x, t, out))
}

fn c2r_as<T: FftNumber>(x: &View<'_>, t: &Transform, out: &ViewMut<'_>)
where
    Complex<T>: Compute,
{
    let Some((&last, rest)) = t.dims.split_last() else { return };
    let (half_sizes, mut data) = (sizes(x.sizes()), pack::<Complex<T>>(x));
    if !rest.is_empty() {
        let mut own = data.into_owned();
        all(&mut own, &half_sizes, rest, t.forward, 1.0);
        data = Packed::Owned(own);
    }
    let (half, n) = (half_sizes[last], out.sizes()[last] as usize);
    let inner: usize = half_sizes[last + 1..].iter().product();
    let mut target = Target::<T>::new(out);
    if n == 0 {
        return;
    }
    let (mut lines, scale) = (RealLines::<T>::new(n, FftDirection::Inverse), T::of(t.scale));
    for (dst, src) in target.slice().chunks_mut((n * inner).max(1)).zip(data.chunks((half * inner).max(1))) {
        for i in 0..inner {
            let own = lines.half();
            let given = own.len().min(half);
            if inner == 1 {
                own[..given].copy_from_slice(&src[..given]);
            } else {
                own.iter_mut().zip(src[i..].iter().step_by(inner)).for_each(|(to, from)| *to = *from);
            }
            own[given..].fill(Complex::new(T::zero(), T::zero()));
            if t.forward {
                own.iter_mut().for_each(|z| z.im = -z.im);
            }
            lines.reals(scale, &mut dst[i..], inner);
        }
    }
    target.finish();
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
