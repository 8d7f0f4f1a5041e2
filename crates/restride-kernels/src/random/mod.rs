//! Random numbers from a counter: a draw depends on a key and the element's index alone, not on the order or the
//! number of threads in which elements are made.

mod generator;
mod groups;
mod rejection;

use crate::sort::sort_keys;
use crate::support::convert::{Compute, Kind, gather, store_row};
use crate::support::isa::{self, Work};
use crate::support::math;
use crate::support::number::{Ordered, Real};
use crate::support::pack::{compute_room, unpack, with_compute};
use crate::support::par;
use crate::support::rows::Rows;
use crate::support::scratch::{Temp, room};
use crate::support::stack::Stack;
pub use generator::Draws;
use generator::{RandomBits, digits};
use groups::{Grouped, Numbers};
pub use rejection::{binomial, dirichlet, gammas, poisson};
use restride_tensor::{C64, DType, Layout, View, ViewMut};

/// How many digits a number in `0..1` has in an element type, so that rounding never gives 1.
fn precision(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 | DType::C64 => 24,
        _ => 53,
    }
}

/// Elements that are made together.
const CHUNK: usize = 1024;
/// Elements whose bits are drawn together.
const DRAWN: usize = 256;

/// Numbers in logical order: `f(index of the first, numbers)` makes some of them, at most [`CHUNK`].
fn fill_rows<T: Compute>(out: &ViewMut<'_>, threads: usize, f: impl Fn(u64, &mut [T]) + Sync) {
    let dtype = out.dtype();
    // SAFETY: each part of the result is written by one thread alone.
    let base = unsafe { par::Across::new(out.base()) };
    let put = |cell: isize, stride: isize, first: usize, n: usize| {
        for start in (0..n).step_by(CHUNK) {
            let mut data = Stack::<T, CHUNK>::new();
            let data = data.filled(CHUNK.min(n - start), T::default());
            f((first + start) as u64, data);
            let cell = cell + start as isize * stride;
            // SAFETY: cells of the result, each written by one thread alone.
            unsafe { store_row(dtype, *base.get(), cell, stride, data) };
        }
    };
    if out.layout().is_contiguous() {
        let (cell, n) = (out.layout().offset as isize, out.numel());
        let part = |i: usize| put(cell + (i * CHUNK) as isize, 1, i * CHUNK, CHUNK.min(n - i * CHUNK));
        return par::each(threads, n.div_ceil(CHUNK), &|i| part(i));
    }
    let rows = Rows::logical(&[out.layout()]);
    let mut done = 0;
    rows.for_each(|at| {
        put(at[0], rows.stride(0), done, rows.len());
        done += rows.len();
    });
}

/// Numbers by index, in logical order.
fn fill<T: Compute>(out: &ViewMut<'_>, threads: usize, f: impl Fn(u64) -> T + Sync) {
    fill_rows(out, threads, |first, row| (first..).zip(row).for_each(|(i, x)| *x = f(i)));
}

/// Calls `f` with the place and the bits of some of `n` elements at a time, from `first` on.
fn each_drawn(draws: &Draws, first: u64, n: usize, mut f: impl FnMut(usize, &[RandomBits])) {
    let mut bits = [RandomBits::default(); DRAWN];
    for start in (0..n).step_by(DRAWN) {
        let bits = &mut bits[..DRAWN.min(n - start)];
        draws.run(first + start as u64, bits);
        f(start, bits);
    }
}

/// Numbers that are functions of the index and its bits.
fn fill_drawn<T: Compute>(draws: &Draws, out: &ViewMut<'_>, threads: usize, f: impl Fn(u64, RandomBits) -> T + Sync) {
    fill_rows(out, threads, |first, row| {
        each_drawn(draws, first, row.len(), |start, bits| {
            let row = (first + start as u64..).zip(&mut row[start..]);
            row.zip(bits).for_each(|((i, x), bits)| *x = f(i, *bits));
        });
    });
}

/// Scratch bytes of [`dropout`].
pub fn dropout_room(dtype: DType, n: i64) -> usize {
    if dtype.is_complex() { room::<C64>(n as usize) } else { compute_room(dtype, n) }
}

/// A distribution of one number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// Evenly in `from..to`.
    Uniform(f64, f64),
    /// Mean and standard deviation.
    Normal(f64, f64),
    /// The exponential of a normal number.
    LogNormal(f64, f64),
    /// Rate.
    Exponential(f64),
    /// Median and width.
    Cauchy(f64, f64),
    /// Trials until one with this probability succeeds.
    Geometric(f64),
    /// 1 with this probability, otherwise 0.
    Bernoulli(f64),
}

/// Independent numbers.
pub fn draw(draws: &Draws, what: Distribution, out: &ViewMut<'_>, threads: usize) {
    let dtype = out.dtype();
    match (Kind::of(dtype), what) {
        (Kind::F32, Distribution::Normal(mean, std)) => normals_of::<f32>(draws, &[mean], &[std], out, threads),
        (Kind::F64, Distribution::Normal(mean, std)) => normals_of::<f64>(draws, &[mean], &[std], out, threads),
        (Kind::F32, Distribution::Uniform(from, to)) => uniform_of::<f32>(draws, from, to, out, threads),
        (Kind::F64, Distribution::Uniform(from, to)) => uniform_of::<f64>(draws, from, to, out, threads),
        (Kind::C32 | Kind::C64, _) => fill_drawn(draws, out, threads, |_, bits| match what {
            // The parts of a normal number each have half of its variance.
            Distribution::Normal(mean, std) => {
                let (a, b) = bits.normals();
                C64::new(a, b) * (std * std::f64::consts::FRAC_1_SQRT_2) + mean
            }
            Distribution::Uniform(from, to) => C64::new(even(bits.0, from, to, dtype), even(bits.1, from, to, dtype)),
            other => C64::new(number(bits, other, dtype), 0.0),
        }),
        (Kind::F32, Distribution::Exponential(rate)) => fill_rows(out, threads, |first, row| {
            each_drawn(draws, first, row.len(), |start, bits| {
                isa::run(Exponentials { bits, rate: rate as f32, to: &mut row[start..][..bits.len()] });
            });
        }),
        (Kind::F32, _) => fill_drawn(draws, out, threads, |_, bits| number(bits, what, dtype) as f32),
        (Kind::F64 | Kind::Int, _) => fill_drawn(draws, out, threads, |_, bits| number(bits, what, dtype)),
    }
}

/// Numbers evenly distributed in `from..to`.
fn uniform_of<T: Grouped + Real>(draws: &Draws, from: f64, to: f64, out: &ViewMut<'_>, threads: usize) {
    let what = Numbers::Uniform(T::of(from), T::of(to), precision(out.dtype()));
    fill_rows(out, threads, |first, row: &mut [T]| T::make(draws, first, what, row));
}

/// Singles, computed in single precision.
struct Exponentials<'a> {
    bits: &'a [RandomBits],
    rate: f32,
    to: &'a mut [f32],
}
impl Work for Exponentials<'_> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let Exponentials { bits, rate, to } = self;
        // A loop: closures of iterators would be compiled for the baseline.
        for (x, bits) in to.iter_mut().zip(bits) {
            *x = -math::ln_usual(bits.positive_single()) / rate;
        }
    }
}

fn even(bits: u64, from: f64, to: f64, dtype: DType) -> f64 {
    from + digits(bits, precision(dtype)) * (to - from)
}

fn number(bits: RandomBits, what: Distribution, dtype: DType) -> f64 {
    match what {
        Distribution::Uniform(from, to) => even(bits.0, from, to, dtype),
        Distribution::Normal(mean, std) => mean + std * bits.normals().0,
        Distribution::LogNormal(mean, std) => (mean + std * bits.normals().0).exp(),
        Distribution::Exponential(rate) => -bits.positive().ln() / rate,
        Distribution::Cauchy(median, width) => median + width * (std::f64::consts::PI * (bits.unit() - 0.5)).tan(),
        Distribution::Geometric(p) if p >= 1.0 => 1.0,
        Distribution::Geometric(p) => (bits.positive().ln() / (-p).ln_1p()).ceil().max(1.0),
        Distribution::Bernoulli(p) => (bits.unit() < p) as u8 as f64,
    }
}

/// Integers in `low..high`, all that 64 bits hold if the two are equal.
pub fn integers(draws: &Draws, low: i64, high: i64, out: &ViewMut<'_>, threads: usize) {
    let range = high.wrapping_sub(low) as u64;
    fill_drawn(draws, out, threads, |_, bits| low.wrapping_add(bits.below(range) as i64));
}

/// Normal numbers, each with its mean and standard deviation, given in logical order (one stands for all).
pub fn normals(draws: &Draws, mean: &[f64], std: &[f64], out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    with_compute!(float out.dtype(), T => normals_of::<T>(draws, mean, std, out, threads));
    Ok(())
}

/// As [`normals`], of one type.
fn normals_of<T: Grouped + Real>(draws: &Draws, mean: &[f64], std: &[f64], out: &ViewMut<'_>, threads: usize) {
    fill_rows(out, threads, |first, row: &mut [T]| {
        T::make(draws, first, Numbers::Normal, row);
        if let ([mean], [std]) = (mean, std) {
            let (mean, std) = (T::of(*mean), T::of(*std));
            row.iter_mut().for_each(|x| *x = mean + std * *x);
            return;
        }
        let at = |x: &[f64], i: u64| T::of(if x.len() == 1 { x[0] } else { x[i as usize] });
        (first..).zip(row).for_each(|(i, x)| *x = at(mean, i) + at(std, i) * *x);
    });
}

/// 1 with each element's probability, otherwise 0. Fails at a number outside of 0..=1.
pub fn bernoulli(draws: &Draws, p: &[f64], out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    if !p.iter().all(|p| (0.0..=1.0).contains(p)) {
        return Err("Expected p_in >= 0 && p_in <= 1 to be true, but got false.".to_string());
    }
    fill_drawn(draws, out, threads, |i, bits| (bits.unit() < p[i as usize]) as i64);
    Ok(())
}

/// The numbers below `n` in random order.
pub fn permutation(draws: &Draws, out: &ViewMut<'_>) {
    let n = out.numel();
    let mut order: Temp<i64> = Temp::gather(n, 0..n as i64);
    for i in (1..n).rev() {
        order.swap(i, draws.first(i as u64).below(i as u64 + 1) as usize);
    }
    unpack(&order, out);
}

/// Draws categories by weight for each row of `weights` (the last dimension): with replacement, or each at most once.
pub fn multinomial(draws: &Draws, weights: &View<'_>, replacement: bool, out: &ViewMut<'_>) -> Result<(), String> {
    let n = weights.sizes().last().map_or(1, |&n| n as usize);
    let samples = out.sizes().last().map_or(1, |&n| n as usize);
    let all = gather::<f64>(*weights);
    let mut picked = Temp::filled(out.numel(), 0i64);
    let mut running = Temp::filled(if replacement { n } else { 0 }, 0.0);
    let mut order = Temp::filled(if replacement { 0 } else { n }, (0, 0));
    let rows = all.chunks(n.max(1)).zip(picked.chunks_exact_mut(samples.max(1)));
    for (r, (row, picked)) in rows.enumerate() {
        if !row.iter().all(|&w| w >= 0.0 && w.is_finite()) {
            return Err("probability tensor contains either `inf`, `nan` or element < 0".to_string());
        }
        let total: f64 = row.iter().sum();
        if total <= 0.0 {
            return Err("invalid multinomial distribution (sum of probabilities <= 0)".to_string());
        }
        if replacement {
            let mut sum = 0.0;
            for (to, w) in running.iter_mut().zip(row) {
                sum += w;
                *to = sum;
            }
            let last = row.iter().rposition(|&w| w > 0.0).unwrap_or(0);
            for (s, place) in picked.iter_mut().enumerate() {
                let at = draws.first((r * samples + s) as u64).unit() * total;
                *place = running.partition_point(|&sum| sum <= at).min(last) as i64;
            }
        } else {
            // Each category waits for an exponential time at the rate of its weight; the first to come are taken.
            let wait = |i: usize| -draws.first((r * n + i) as u64).positive().ln() / row[i];
            for (i, place) in order.iter_mut().enumerate() {
                *place = (if row[i] > 0.0 { wait(i) } else { f64::INFINITY }.total_key(), i as i64);
            }
            // The index breaks ties.
            sort_keys(&mut order);
            picked.iter_mut().zip(order.iter()).for_each(|(place, o)| *place = o.1);
        }
    }
    unpack(&picked, out);
    Ok(())
}

/// Scratch bytes of [`multinomial`] for a result of `out` elements.
pub fn multinomial_room(weights: &Layout, replacement: bool, out: i64) -> usize {
    let n = weights.sizes.last().map_or(1, |&n| n as usize);
    let each = if replacement { room::<f64>(n) } else { room::<(i64, i64)>(n) };
    room::<f64>(weights.numel() as usize) + room::<i64>(out as usize) + each
}

/// Kept and dropped elements of `dropout`: each becomes `x * (keep * scale) + shift`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dropout {
    /// Probability to be dropped.
    pub p: f64,
    /// Factor of kept elements (dropped ones have 0).
    pub scale: f64,
    /// Addends of kept and of dropped elements.
    pub shift: [f64; 2],
}

/// Drops elements of `x`, `inner` neighbours (in logical order) together. `mask` marks the kept ones.
pub fn dropout(
    draws: &Draws,
    x: &View<'_>,
    how: Dropout,
    inner: usize,
    out: &ViewMut<'_>,
    mask: Option<&ViewMut<'_>>,
    threads: usize,
) -> Result<(), String> {
    let kept = |i: usize| draws.first((i / inner.max(1)) as u64).unit() >= how.p;
    if out.dtype().is_complex() {
        let mut data = crate::support::pack::pack_owned::<C64>(x);
        for (i, x) in data.iter_mut().enumerate() {
            *x = if kept(i) { *x * how.scale + how.shift[0] } else { *x * 0.0 + how.shift[1] };
        }
        unpack(&data, out);
        if let Some(mask) = mask {
            fill(mask, threads, |i| kept(i as usize) as i64);
        }
        return Ok(());
    }
    with_compute!(float out.dtype(), T => {
        const CHUNK: usize = 4096;
        let mut data = crate::support::pack::pack_owned::<T>(x);
        par::pieces(threads, &mut data, CHUNK, &|i, piece| {
            let first = i * CHUNK;
            if inner > 1 {
                let mut bits = [RandomBits::default()];
                for (j, x) in piece.iter_mut().enumerate() {
                    if j == 0 || (first + j).is_multiple_of(inner) {
                        bits[0] = draws.first(((first + j) / inner) as u64);
                    }
                    DroppedOrKept { bits: &bits, how, to: std::slice::from_mut(x) }.run();
                }
            } else {
                each_drawn(draws, first as u64, piece.len(), |start, bits| {
                    isa::run(DroppedOrKept { bits, how, to: &mut piece[start..][..bits.len()] });
                });
            }
        });
        unpack(&data, out);
    });
    match mask {
        Some(mask) if inner > 1 => fill(mask, threads, |i| kept(i as usize) as i64),
        Some(mask) => fill_drawn(draws, mask, threads, |_, bits| (bits.unit() >= how.p) as i64),
        None => {}
    }
    Ok(())
}

/// Elements that are kept or dropped by their bits.
struct DroppedOrKept<'a, T> {
    bits: &'a [RandomBits],
    how: Dropout,
    to: &'a mut [T],
}
impl<T: Real> Work for DroppedOrKept<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        let DroppedOrKept { bits, how, to } = self;
        let (scale, kept_shift, shift) = (T::of(how.scale), T::of(how.shift[0]), T::of(how.shift[1]));
        for (x, bits) in to.iter_mut().zip(bits) {
            let kept = bits.unit() >= how.p;
            *x = *x * T::of(f64::from(u8::from(kept))) * scale + if kept { kept_shift } else { shift };
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use restride_tensor::{Layout, RawTensor};

    fn moments(what: Distribution) -> (f64, f64) {
        let out = RawTensor::zeros(DType::F64, Layout::contiguous(&[100_000]));
        draw(&Draws::new(&[1, 2, 3]), what, &out.write().view_mut(), 2);
        moments_of(&out.to_elements::<f64>())
    }
    pub(crate) fn moments_of(data: &[f64]) -> (f64, f64) {
        let mean = data.iter().sum::<f64>() / data.len() as f64;
        (mean, data.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / data.len() as f64)
    }
    fn close(what: Distribution, mean: f64, var: f64) {
        let (m, v) = moments(what);
        assert!((m - mean).abs() < 4.0 * (var / 1e5).sqrt() && (v - var).abs() < 0.05 * var, "{what:?}: {m} {v}");
    }

    #[test]
    fn distributions_have_their_moments() {
        close(Distribution::Uniform(-1.0, 3.0), 1.0, 16.0 / 12.0);
        close(Distribution::Normal(2.0, 3.0), 2.0, 9.0);
        close(Distribution::Exponential(2.0), 0.5, 0.25);
        close(Distribution::Geometric(0.25), 4.0, 12.0);
        close(Distribution::Bernoulli(0.3), 0.3, 0.21);
        close(Distribution::LogNormal(0.0, 0.25), (0.03125f64).exp(), 0.0687);
    }

    #[test]
    fn draws_depend_on_key_and_index_alone() {
        let run = |threads, dtype, key: &[u64], layout| {
            let out = RawTensor::zeros(dtype, layout);
            draw(&Draws::new(key), Distribution::Uniform(0.0, 1.0), &out.write().view_mut(), threads);
            gather::<f64>(out.read().view())
        };
        let (row, column) = (Layout::contiguous(&[90, 100]), Layout::permuted(&[90, 100], &[1, 0]));
        let a = run(1, DType::F32, &[7, 0], row.clone());
        assert_eq!(a, run(2, DType::F32, &[7, 0], column));
        assert_ne!(a, run(1, DType::F32, &[7, 1], row.clone()));
        assert_ne!(a, run(1, DType::F32, &[8, 0], row.clone()));
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            assert!(run(1, dtype, &[3], row.clone()).iter().all(|x| (0.0..1.0).contains(x)));
        }
    }

    #[test]
    fn picks_are_distinct_and_by_weight() {
        let order = RawTensor::zeros(DType::I64, Layout::contiguous(&[100]));
        permutation(&Draws::new(&[1]), &order.write().view_mut());
        let mut sorted = order.to_elements::<i64>();
        assert_ne!(sorted, (0..100).collect::<Vec<_>>());
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        let weights = RawTensor::from_slice(&[0.0, 1.0, 0.0, 3.0], &[4]);
        let out = RawTensor::zeros(DType::I64, Layout::contiguous(&[4000]));
        multinomial(&Draws::new(&[2]), &weights.read().view(), true, &out.write().view_mut()).unwrap();
        let threes = out.to_elements::<i64>().iter().filter(|&&i| i == 3).count();
        assert!(
            out.to_elements::<i64>().iter().all(|&i| i == 1 || i == 3) && (2880..3120).contains(&threes),
            "{threes}"
        );
        let out = RawTensor::zeros(DType::I64, Layout::contiguous(&[2]));
        multinomial(&Draws::new(&[2]), &weights.read().view(), false, &out.write().view_mut()).unwrap();
        let mut two = out.to_elements::<i64>();
        two.sort_unstable();
        assert_eq!(two, [1, 3]);
    }

    #[test]
    fn dropout_keeps_the_mean() {
        let x = RawTensor::from_slice(&[1.0f32; 20_000], &[100, 200]);
        let out = RawTensor::zeros(DType::F32, x.layout().clone());
        let mask = RawTensor::zeros(DType::Bool, Layout::permuted(&[100, 200], &[1, 0]));
        let how = Dropout { p: 0.25, scale: 1.0 / 0.75, shift: [0.0; 2] };
        let draws = Draws::new(&[9]);
        dropout(&draws, &x.read().view(), how, 1, &out.write().view_mut(), Some(&mask.write().view_mut()), 2).unwrap();
        let mean = out.to_elements::<f32>().iter().sum::<f32>() / 2e4;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        let kept: Vec<bool> = gather::<i64>(mask.read().view()).iter().map(|&m| m != 0).collect();
        assert!(out.to_elements::<f32>().iter().zip(kept).all(|(&x, kept)| (x != 0.0) == kept));
        dropout(&draws, &x.read().view(), how, 200, &out.write().view_mut(), None, 1).unwrap();
        assert!(out.to_elements::<f32>().chunks(200).all(|row| row.iter().all(|x| *x == row[0])));
    }
}
