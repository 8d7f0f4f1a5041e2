//! Normalisations: statistics in `f64` of sums over some elements, one order of summation whatever the strides, then one pass over
//! the elements.

pub mod backward;
mod beside;
mod channels;
mod factors;
mod group;
mod moments;
pub mod softmax;

use crate::norm::beside::{ChannelsBeside, TogetherRuns, channels_beside, moments_room};
use crate::norm::channels::{scale_channels, scale_room};
use crate::norm::moments::{COLUMNS, ColumnMoments, Moments, NormParts, distance_sums, moments, run_sum, wide_moments};
use crate::norm::softmax::{rows_room, rowwise, sum};
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Compute, Stored, Target, compute_room, pack, packed_room, packed_rooms, with_compute};
use crate::support::par;
use crate::support::scratch::{self, Temp};
pub use factors::row_factors;
pub use group::{group_norm, group_norm_room};
use restride_tensor::{DType, View, ViewMut};

/// A row of `layer_norm` in its own memory; the result has its moments.
struct LayerRow<'a, T> {
    row: &'a mut [T],
    weight: Option<&'a [T]>,
    bias: Option<&'a [T]>,
    eps: f64,
}
impl<T: Real> isa::Work for LayerRow<'_, T> {
    type Out = Moments;
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) -> Moments {
        let LayerRow { row, weight, bias, eps } = self;
        let near = T::of(run_sum(row) / row.len() as f64);
        let m = Moments::about(near.wide(), distance_sums(row, near), row.len())
            .unwrap_or_else(|| wide_moments(std::iter::once(&*row), row.len()));
        let (mean, rstd) = (T::of(m.mean), T::of(m.rstd(row.len(), eps)));
        match (weight, bias) {
            (Some(w), Some(b)) => {
                row.iter_mut().zip(w).zip(b).for_each(|((x, &w), &b)| *x = (*x - mean) * rstd * w + b)
            }
            (Some(w), None) => row.iter_mut().zip(w).for_each(|(x, &w)| *x = (*x - mean) * rstd * w),
            (None, Some(b)) => row.iter_mut().zip(b).for_each(|(x, &b)| *x = (*x - mean) * rstd + b),
            (None, None) => row.iter_mut().for_each(|x| *x = (*x - mean) * rstd),
        }
        m
    }
}

/// A row of `rms_norm` in its own memory; the result is the inverse root of its mean square.
struct RmsRow<'a, T> {
    row: &'a mut [T],
    weight: Option<&'a [T]>,
    eps: f64,
}
impl<T: Real> isa::Work for RmsRow<'_, T> {
    type Out = f64;
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) -> f64 {
        let RmsRow { row, weight, eps } = self;
        let squares = sum(row, |x: T| x.wide() * x.wide());
        let inverse = 1.0 / (squares / row.len() as f64 + eps).sqrt();
        let r = T::of(inverse);
        match weight {
            Some(w) => row.iter_mut().zip(w).for_each(|(x, &w)| *x = *x * r * w),
            None => row.iter_mut().for_each(|x| *x *= r),
        }
        inverse
    }
}

/// The type of a scale and a shift of elements of type `T`.
trait Factor<T>: Copy + Sync {
    /// `x * scale + shift`.
    fn map(x: T, scale: Self, shift: Self) -> T;
}
/// As PyTorch does with given statistics.
impl Factor<f32> for f32 {
    #[inline(always)]
    fn map(x: f32, scale: f32, shift: f32) -> f32 {
        x * scale + shift
    }
}
/// In double precision: with a mean far from zero, the shift takes away most of the product, and a training network of small
/// batches makes much of what is left.
impl Factor<f32> for f64 {
    #[inline(always)]
    fn map(x: f32, scale: f64, shift: f64) -> f32 {
        (f64::from(x) * scale + shift) as f32
    }
}
impl Factor<f64> for f64 {
    #[inline(always)]
    fn map(x: f64, scale: f64, shift: f64) -> f64 {
        x * scale + shift
    }
}

/// `x * scale + shift`: of one channel, in place or into another row, or of the channels in turn.
enum Scaled<'a, T, N> {
    One(&'a mut [T], N, N),
    To(&'a [T], &'a mut [T], N, N),
    Each(&'a mut [T], &'a [N], &'a [N]),
}
impl<T: Real, N: Factor<T>> isa::Work for Scaled<'_, T, N> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        match self {
            Scaled::One(row, a, b) => row.iter_mut().for_each(|x| *x = N::map(*x, a, b)),
            Scaled::To(x, row, a, b) => row.iter_mut().zip(x).for_each(|(y, x)| *y = N::map(*x, a, b)),
            Scaled::Each(row, a, b) => row.iter_mut().zip(a).zip(b).for_each(|((x, &a), &b)| *x = N::map(*x, a, b)),
        }
    }
}

/// Optional per-channel numbers as `f64`.
pub(crate) fn numbers(view: Option<&View<'_>>) -> Option<Temp<f64>> {
    view.map(|v| pack::<f64>(v).into_owned())
}

/// Writes numbers given as `f64`, rounded through the compute type of the result.
pub(crate) fn put(out: Option<&ViewMut<'_>>, data: impl Iterator<Item = f64>) {
    if let Some(out) = out {
        if out.dtype() == DType::F64 {
            crate::support::pack::unpack(&Temp::gather(out.numel(), data), out);
        } else {
            crate::support::pack::unpack(&Temp::gather(out.numel(), data.map(|x| x as f32)), out);
        }
    }
}

/// Weight and bias of a normalisation.
#[derive(Clone, Copy, Default)]
pub struct Affine<'a> {
    /// Factors.
    pub weight: Option<View<'a>>,
    /// Addends.
    pub bias: Option<View<'a>>,
}

/// `x * scale + shift`, a row of [`batch_norm_with`]: where the numbers are fewer than elements, they begin anew.
///
/// # Panics
/// If `x` and `out`, or `scale` and `shift`, have different lengths, or no number is given.
pub fn scale_row(x: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]) {
    assert!(x.len() == out.len() && scale.len() == shift.len(), "rows are of one length");
    match (scale, shift) {
        (&[a], &[b]) => isa::run(Scaled::To(x, out, a, b)),
        _ => isa::run(ScaledInTurn(x, scale, shift, out)),
    }
}

struct ScaledInTurn<'a>(&'a [f32], &'a [f32], &'a [f32], &'a mut [f32]);
impl isa::Work for ScaledInTurn<'_> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let ScaledInTurn(x, scale, shift, out) = self;
        for (out, x) in out.chunks_mut(scale.len()).zip(x.chunks(scale.len())) {
            let numbers = scale.iter().zip(shift);
            out.iter_mut().zip(x).zip(numbers).for_each(|((y, x), (a, b))| *y = Factor::map(*x, *a, *b));
        }
    }
}

/// Batch normalisation with given statistics. The result may share the memory of `x` index by index.
pub fn batch_norm_with(
    x: &View<'_>,
    mean: &View<'_>,
    var: &View<'_>,
    affine_: Affine<'_>,
    eps: f64,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    let channels = mean.numel();
    with_compute!(float out.dtype(), T => {
        let (mut scale, mut shift) = (Temp::<T>::filled(channels, 0.0), Temp::<T>::filled(channels, 0.0));
        factors::batch_factors(mean, var, affine_, eps, &mut scale, &mut shift)?;
        scale_channels::<T, T>(x, &scale, &shift, out, threads);
    });
    Ok(())
}

/// Scratch bytes of [`batch_norm_with`].
pub fn batch_norm_room(x: Stored<'_>, out: Stored<'_>) -> usize {
    let channels = x.1.sizes.get(1).copied().unwrap_or(0);
    2 * compute_room(out.0, channels) + scale_room(x, out)
}

/// Statistics that batch normalisation writes besides its result.
#[derive(Clone, Copy, Default)]
pub struct BatchStats<'a> {
    /// Mean of the batch.
    pub mean: Option<&'a ViewMut<'a>>,
    /// Inverse standard deviation of the batch.
    pub invstd: Option<&'a ViewMut<'a>>,
    /// New running mean and variance with the old ones.
    pub running: Option<Running<'a>>,
}

/// Running statistics before and after.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// Running mean and variance before.
    pub old: (View<'a>, View<'a>),
    /// And after.
    pub new: (&'a ViewMut<'a>, &'a ViewMut<'a>),
    /// Share of the batch in the new ones.
    pub momentum: f64,
}

/// Batch normalisation with the batch's own statistics. Nothing overlaps.
pub fn batch_norm_train(
    x: &View<'_>,
    affine_: Affine<'_>,
    eps: f64,
    out: &ViewMut<'_>,
    stats: &BatchStats<'_>,
    threads: usize,
) -> Result<(), String> {
    let channels = x.sizes()[1] as usize;
    let inner: usize = x.sizes()[2..].iter().map(|&n| n as usize).product();
    let count = x.sizes()[0] as usize * inner;
    let mut found = Temp::filled(channels, Moments::default());
    // Read before anything is written: new running statistics may share memory with the old ones, and those with the weight.
    let (w, b) = (numbers(affine_.weight.as_ref()), numbers(affine_.bias.as_ref()));
    let factors = |m: &Moments, c: usize| m.factors((count, eps), (w.as_deref(), b.as_deref()), c);
    let mut written = false;
    with_compute!(float x.dtype(), T => {
        if inner == 1 {
            let data = pack::<T>(x);
            par::pieces(threads, &mut found, COLUMNS, &|k, m| {
                isa::run(ColumnMoments { data: &data, channels, first: k * COLUMNS, to: m });
            });
        } else {
            let (step, runs) = (inner * channels, x.sizes()[0] as usize);
            let parts = NormParts { run: inner, part: inner, step, runs, row: inner, channels };
            written = parts.normalise::<T, f64>(x, out, &mut found, &factors, threads);
            if let Some(beside) = channels_beside(x.layout()).filter(|_| !written) {
                // SAFETY: the same cells in another order.
                let data = pack::<T>(&unsafe { x.with_layout(&beside) });
                let of = ChannelsBeside { data: &data, positions: inner, channels };
                of.moments(TogetherRuns::Channel, &mut found, threads);
            } else if !written {
                let data = pack::<T>(x);
                par::pieces(threads, &mut found, 1, &|c, m| {
                    let runs = data.chunks(inner.max(1)).skip(c).step_by(channels);
                    m[0] = moments(runs, count);
                });
            }
        }
    });
    let mean: Temp<f64> = found.iter().map(|m| m.mean).collect();
    let invstd: Temp<f64> = found.iter().map(|m| m.rstd(count, eps)).collect();
    put(stats.mean, mean.iter().copied());
    put(stats.invstd, invstd.iter().copied());
    if let Some(r) = &stats.running {
        let (old_mean, old_var) = (pack::<f64>(&r.old.0).into_owned(), pack::<f64>(&r.old.1).into_owned());
        // A batch without elements changes nothing.
        let m = if count == 0 { 0.0 } else { r.momentum };
        let blend = |new: f64, old: f64| if m == 0.0 { old } else { m * new + (1.0 - m) * old };
        put(Some(r.new.0), mean.iter().zip(&old_mean).map(|(&n, &o)| blend(n, o)));
        let unbiased = found.iter().map(|m| m.squares / (count as f64 - 1.0));
        put(Some(r.new.1), unbiased.zip(&old_var).map(|(n, &o)| blend(n, o)));
    }
    if !written {
        let scale: Temp<f64> = found.iter().enumerate().map(|(c, m)| factors(m, c).0).collect();
        let shift: Temp<f64> = found.iter().enumerate().map(|(c, m)| factors(m, c).1).collect();
        with_compute!(float out.dtype(), T => scale_channels::<T, f64>(x, &scale, &shift, out, threads));
    }
    Ok(())
}

/// Scratch bytes of [`batch_norm_train`].
pub fn batch_norm_train_room(x: Stored<'_>, out: Stored<'_>) -> usize {
    let channels = x.1.sizes.get(1).map_or(0, |&n| n as usize);
    // Moments, mean, deviation, weight, bias, running statistics as they are and as they become, factors.
    let sums = scratch::room::<Moments>(channels) + 11 * scratch::room::<f64>(channels);
    sums + moments_room(x) + scale_room(x, out)
}

/// Layer normalisation over the last elements of each row of `len`. The result may share the memory of `x` index by index.
pub fn layer_norm(
    x: &View<'_>,
    len: usize,
    affine_: Affine<'_>,
    eps: f64,
    out: &ViewMut<'_>,
    stats: (Option<&ViewMut<'_>>, Option<&ViewMut<'_>>),
    threads: usize,
) -> Result<(), String> {
    with_compute!(float out.dtype(), T => {
        let w = affine_.weight.as_ref().map(pack::<T>);
        let b = affine_.bias.as_ref().map(pack::<T>);
        let rows = if stats.0.is_some() || stats.1.is_some() { out.numel() / len.max(1) } else { 0 };
        let mut found = Temp::filled(rows, Moments::default());
        let keep = par::Shared::new(&mut found);
        rowwise::<T>(x, out, len, threads, &|i, row| {
            let m = isa::run(LayerRow { row, weight: w.as_deref(), bias: b.as_deref(), eps });
            if i < rows {
                // SAFETY: this row's place, which is its thread's alone.
                unsafe { keep.at(i).write(m) };
            }
        });
        put(stats.0, found.iter().map(|m| m.mean));
        put(stats.1, found.iter().map(|m| m.rstd(len, eps)));
    });
    Ok(())
}

/// Scratch bytes of [`layer_norm`].
pub fn layer_norm_room(
    x: Stored<'_>,
    len: usize,
    affine: [Option<Stored<'_>>; 2],
    out: Stored<'_>,
    stats: bool,
) -> usize {
    let rows = if stats { out.1.numel() as usize / len.max(1) } else { 0 };
    packed_rooms(affine.into_iter().flatten())
        + rows_room(x, len, out)
        + scratch::room::<Moments>(rows)
        + scratch::room::<f64>(rows)
}

/// Division by the root of the mean square over the last `len` elements. The result may share the memory of `x` index by index.
pub fn rms_norm(
    x: &View<'_>,
    len: usize,
    weight: Option<&View<'_>>,
    eps: f64,
    out: &ViewMut<'_>,
    rstd: Option<&ViewMut<'_>>,
    threads: usize,
) -> Result<(), String> {
    with_compute!(float out.dtype(), T => {
        let w = weight.map(pack::<T>);
        let rows = if rstd.is_some() { out.numel() / len.max(1) } else { 0 };
        let mut found = Temp::filled(rows, 0.0);
        let keep = par::Shared::new(&mut found);
        rowwise::<T>(x, out, len, threads, &|i, row| {
            let r = isa::run(RmsRow { row, weight: w.as_deref(), eps });
            if i < rows {
                // SAFETY: this row's place, which is its thread's alone.
                unsafe { keep.at(i).write(r) };
            }
        });
        put(rstd, found.iter().copied());
    });
    Ok(())
}

/// Scratch bytes of [`rms_norm`]; `stats` is the type of the inverse roots, if they are written.
pub fn rms_norm_room(
    x: Stored<'_>,
    len: usize,
    weight: Option<&Stored<'_>>,
    out: Stored<'_>,
    stats: Option<DType>,
) -> usize {
    let rows = out.1.numel() as usize / len.max(1);
    // The weight is read in the type that the result is computed in.
    let own = weight.map_or(0, |w| if w.0 == out.0 { packed_room(*w) } else { compute_room(out.0, w.1.numel()) });
    let found =
        stats.map_or(0, |d| scratch::room::<f64>(rows) + rows_room(x, len, out).max(compute_room(d, rows as i64)));
    own + found.max(rows_room(x, len, out))
}

/// `v * (g / |v|)`, the norm over all dimensions but `dim` (all of them without it). The norms are written where
/// asked for.
pub fn weight_norm(
    v: &View<'_>,
    g: &View<'_>,
    dim: Option<usize>,
    out: &ViewMut<'_>,
    norms: Option<&ViewMut<'_>>,
) -> Result<(), String> {
    let n = dim.map_or(1, |d| v.sizes()[d] as usize);
    let inner: usize = dim.map_or(v.numel(), |d| v.sizes()[d + 1..].iter().map(|&n| n as usize).product());
    let of = |i: usize| (i / inner.max(1)) % n;
    with_compute!(float out.dtype(), T => {
        let (x, g) = (pack::<T>(v), pack::<f64>(g));
        let mut squares = Temp::filled(n, 0.0);
        for (i, &x) in x.iter().enumerate() {
            squares[of(i)] += x.wide() * x.wide();
        }
        let norm: Temp<f64> = squares.iter().map(|s| s.sqrt()).collect();
        let factor: Temp<T> = norm.iter().zip(g.iter()).map(|(&n, &g)| T::of(g / n)).collect();
        let mut target = Target::<T>::new(out);
        for (i, (y, &x)) in target.slice().iter_mut().zip(x.iter()).enumerate() {
            *y = x * factor[of(i)];
        }
        target.finish();
        put(norms, norm.iter().copied());
    });
    Ok(())
}

/// Scratch bytes of [`weight_norm`]; `norms` is the type of the norms, if they are written.
pub fn weight_norm_room(v: Stored<'_>, g: Stored<'_>, out: Stored<'_>, norms: Option<DType>) -> usize {
    let n = g.1.numel();
    let lists = 2 * scratch::room::<f64>(n as usize) + compute_room(out.0, n);
    let wide = if g.0 == DType::F64 { packed_room(g) } else { scratch::room::<f64>(n as usize) };
    let written = norms.map_or(0, |d| compute_room(d, n));
    packed_room(v) + wide + lists + packed_room(out).max(written)
}

/// A copy of running statistics, for operators that give new ones in every case.
pub fn copy(from: &View<'_>, to: &ViewMut<'_>) {
    fn run<T: Compute>(from: &View<'_>, to: &ViewMut<'_>) {
        crate::support::pack::unpack(&pack::<T>(from), to);
    }
    if to.dtype() == DType::F64 { run::<f64>(from, to) } else { run::<f32>(from, to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{Layout, RawTensor};

    fn data(n: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919) % 101) as f32 * 0.13 - 4.0).collect()
    }
    fn laid(perm: &[usize], sizes: &[i64]) -> RawTensor {
        scaled(perm, sizes, 1.0)
    }
    fn scaled(perm: &[usize], sizes: &[i64], by: f32) -> RawTensor {
        let t = RawTensor::zeros(DType::F32, Layout::permuted(sizes, perm));
        let data: Vec<f32> = data(t.numel()).into_iter().map(|x| x * by).collect();
        crate::support::pack::unpack(&data, &t.write().view_mut());
        t
    }
    fn bits(t: &RawTensor) -> Vec<u32> {
        t.to_elements::<f32>().into_iter().map(f32::to_bits).collect()
    }

    #[test]
    fn a_normalised_batch_has_mean_zero_and_variance_one() {
        let x = laid(&[0, 1, 2, 3], &[3, 4, 5, 6]);
        let out = RawTensor::zeros(DType::F32, x.layout().clone());
        let stat = || RawTensor::zeros(DType::F32, Layout::contiguous(&[4]));
        let (mean, invstd, old, m, v) = (stat(), stat(), stat(), stat(), stat());
        let old = old.read();
        let mut to = [&mean, &invstd, &m, &v].map(RawTensor::write);
        let [to_mean, to_invstd, to_m, to_v] = to.each_mut().map(|w| w.view_mut());
        let stats = BatchStats {
            mean: Some(&to_mean),
            invstd: Some(&to_invstd),
            running: Some(Running { old: (old.view(), old.view()), new: (&to_m, &to_v), momentum: 0.25 }),
        };
        batch_norm_train(&x.read().view(), Affine::default(), 0.0, &out.write().view_mut(), &stats, 2).unwrap();
        drop(to);
        for c in 0..4 {
            let y: Vec<f64> = (0..90i64).map(|i| out.get(&[i / 30, c, i / 6 % 5, i % 6]).as_f64()).collect();
            let mu = y.iter().sum::<f64>() / 90.0;
            assert!(mu.abs() < 1e-6 && (y.iter().map(|v| v * v).sum::<f64>() / 90.0 - 1.0).abs() < 1e-5);
            let var = 1.0 / invstd.get(&[c]).as_f64().powi(2);
            assert!((m.get(&[c]).as_f64() - 0.25 * mean.get(&[c]).as_f64()).abs() < 1e-6);
            assert!((v.get(&[c]).as_f64() - 0.25 * var * 90.0 / 89.0).abs() < 1e-4);
        }
    }

    /// Short channels, ones that are summed alone and in several parts, more than are summed at once, and squares that overflow.
    #[test]
    fn bits_do_not_depend_on_strides_or_threads() {
        for (sizes, by) in [
            ([2, 6, 5, 7], 1.0),
            ([2, 6, 17, 16], 1.0),
            ([1, 36, 50, 47], 1.0),
            ([2, 6, 16, 16], 1e25),
            ([3, 6, 4, 4], 1e25),
        ] {
            bits_depend_on_sizes_alone(sizes, by);
        }
    }

    fn bits_depend_on_sizes_alone(sizes: [i64; 4], by: f32) {
        let mut want: Vec<Option<Vec<u32>>> = vec![None; 4];
        let w = laid(&[0], &[sizes[1]]);
        let w = w.read();
        let affine = Affine { weight: Some(w.view()), bias: Some(w.view()) };
        let inner = (sizes[2] * sizes[3]) as usize;
        for perm in [[0, 1, 2, 3], [0, 2, 3, 1], [3, 1, 0, 2], [2, 0, 3, 1]] {
            for threads in [1, 3] {
                let x = scaled(&perm, &sizes, by);
                let mut check = |k: usize, run: &dyn Fn(&ViewMut<'_>)| {
                    let out = RawTensor::zeros(DType::F32, Layout::permuted(&sizes, &perm));
                    run(&out.write().view_mut());
                    let got = bits(&out);
                    assert!(want[k].get_or_insert(got.clone()) == &got, "{k} {perm:?} {sizes:?} {threads}");
                };
                check(0, &|o| {
                    batch_norm_train(&x.read().view(), affine, 1e-5, o, &BatchStats::default(), threads).unwrap()
                });
                check(1, &|o| {
                    layer_norm(&x.read().view(), inner, Affine::default(), 1e-5, o, (None, None), threads).unwrap()
                });
                check(2, &|o| group_norm(&x.read().view(), 3, affine, 1e-5, o, (None, None), threads).unwrap());
                check(3, &|o| rms_norm(&x.read().view(), sizes[3] as usize, None, 1e-5, o, None, threads).unwrap());
                // In place gives the same.
                let apart = RawTensor::zeros(DType::F32, x.layout().clone());
                layer_norm(
                    &x.read().view(),
                    sizes[3] as usize,
                    Affine::default(),
                    1e-5,
                    &apart.write().view_mut(),
                    (None, None),
                    threads,
                )
                .unwrap();
                let both = restride_tensor::Access::of([&x], [&x]).unwrap();
                // SAFETY: a row is read before it is written.
                let (from, to) = unsafe { (both.view(&x), both.view_mut(&x)) };
                layer_norm(&from, sizes[3] as usize, Affine::default(), 1e-5, &to, (None, None), threads).unwrap();
                drop(both);
                assert_eq!(bits(&x), bits(&apart));
            }
        }
    }
}
