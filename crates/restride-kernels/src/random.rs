//! Random numbers from a counter: a draw depends on a key and the element's index alone, not on the order or the
//! number of threads in which elements are made. The generator is Philox4x32-10.

use crate::support::convert::{Compute, gather, store_row};
use crate::support::pack::{compute_room, unpack, with_compute};
use crate::support::par;
use crate::support::rows::Rows;
use crate::support::scratch::{Temp, room};
use crate::support::stack::Stack;
use restride_tensor::{C64, DType, Layout, View, ViewMut};

/// The draws of one call.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    key: [u32; 2],
    salt: [u32; 2],
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Draws {
    /// The draws of the call that these numbers identify.
    pub fn new(key: &[u64]) -> Draws {
        let fold = |start: u64| {
            key.iter().fold(start, |h, &k| {
                mix(h ^ mix(k.wrapping_add(0x9E37_79B9_7F4A_7C15)).rotate_left(17)).wrapping_add(start)
            })
        };
        let (a, b) = (fold(0x9E37_79B9_7F4A_7C15), fold(0xD1B5_4A32_D192_ED03));
        Draws { key: [a as u32, (a >> 32) as u32], salt: [b as u32, (b >> 32) as u32] }
    }

    /// 128 bits for an element; `turn` counts further ones.
    fn block(&self, element: u64, turn: u32) -> [u32; 4] {
        let mut c = [element as u32, (element >> 32) as u32, self.salt[0].wrapping_add(turn), self.salt[1]];
        let mut k = self.key;
        for _ in 0..10 {
            let (p, q) = (0xD251_1F53u64 * c[0] as u64, 0xCD9E_8D57u64 * c[2] as u64);
            c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
            k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
        }
        c
    }

    /// Two times 64 bits for an element.
    fn pair(&self, element: u64, turn: u32) -> (u64, u64) {
        let [a, b, c, d] = self.block(element, turn);
        ((a as u64) << 32 | b as u64, (c as u64) << 32 | d as u64)
    }

    /// A number in `0..1` with 53 digits.
    fn unit(&self, element: u64) -> f64 {
        digits(self.pair(element, 0).0, 53)
    }

    /// A number in `0..=1` that is not 0.
    fn positive(&self, element: u64) -> f64 {
        1.0 - self.unit(element)
    }

    /// Two independent numbers of the standard normal distribution.
    fn normals(&self, element: u64) -> (f64, f64) {
        let (a, b) = self.pair(element, 0);
        let radius = (-2.0 * (1.0 - digits(a, 53)).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * digits(b, 53)).sin_cos();
        (radius * cos, radius * sin)
    }

    /// An integer below `range` (below 2^64 if that is 0).
    fn below(&self, element: u64, range: u64) -> u64 {
        let bits = self.pair(element, 0).0;
        if range == 0 { bits } else { ((bits as u128 * range as u128) >> 64) as u64 }
    }
}

fn digits(bits: u64, n: u32) -> f64 {
    (bits >> (64 - n)) as f64 / (1u64 << n) as f64
}

/// How many digits a number in `0..1` has in an element type, so that rounding never gives 1.
fn precision(dtype: DType) -> u32 {
    match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 | DType::C64 => 24,
        _ => 53,
    }
}

/// Numbers by index, in logical order.
fn fill<T: Compute>(out: &ViewMut<'_>, threads: usize, f: impl Fn(u64) -> T + Sync) {
    const CHUNK: usize = 1024;
    let dtype = out.dtype();
    // SAFETY: each part of the result is written by one thread alone.
    let base = unsafe { par::Across::new(out.base()) };
    let put = |cell: isize, stride: isize, first: usize, n: usize| {
        for start in (0..n).step_by(CHUNK) {
            let mut data = Stack::<T, CHUNK>::new();
            let data = data.filled(CHUNK.min(n - start), T::default());
            for (j, x) in data.iter_mut().enumerate() {
                *x = f((first + start + j) as u64);
            }
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
    if dtype.is_complex() {
        // The parts of a normal number each have half of its variance.
        return fill(out, threads, |i| match what {
            Distribution::Normal(mean, std) => {
                let (a, b) = draws.normals(i);
                C64::new(a, b) * (std * std::f64::consts::FRAC_1_SQRT_2) + mean
            }
            Distribution::Uniform(from, to) => {
                let (a, b) = draws.pair(i, 0);
                C64::new(even(a, from, to, dtype), even(b, from, to, dtype))
            }
            other => C64::new(number(draws, i, other, dtype), 0.0),
        });
    }
    fill(out, threads, |i| number(draws, i, what, dtype));
}

fn even(bits: u64, from: f64, to: f64, dtype: DType) -> f64 {
    let u = digits(bits, precision(dtype));
    from + u * (to - from)
}

fn number(draws: &Draws, i: u64, what: Distribution, dtype: DType) -> f64 {
    match what {
        Distribution::Uniform(from, to) => even(draws.pair(i, 0).0, from, to, dtype),
        Distribution::Normal(mean, std) => mean + std * draws.normals(i).0,
        Distribution::LogNormal(mean, std) => (mean + std * draws.normals(i).0).exp(),
        Distribution::Exponential(rate) => -draws.positive(i).ln() / rate,
        Distribution::Cauchy(median, width) => median + width * (std::f64::consts::PI * (draws.unit(i) - 0.5)).tan(),
        Distribution::Geometric(p) if p >= 1.0 => 1.0,
        Distribution::Geometric(p) => (draws.positive(i).ln() / (-p).ln_1p()).ceil().max(1.0),
        Distribution::Bernoulli(p) => (draws.unit(i) < p) as u8 as f64,
    }
}

/// Integers in `low..high`, all that 64 bits hold if the two are equal.
pub fn integers(draws: &Draws, low: i64, high: i64, out: &ViewMut<'_>, threads: usize) {
    let range = high.wrapping_sub(low) as u64;
    fill(out, threads, |i| low.wrapping_add(draws.below(i, range) as i64));
}

/// Normal numbers, each with its mean and standard deviation, given in logical order (one stands for all).
pub fn normals(draws: &Draws, mean: &[f64], std: &[f64], out: &ViewMut<'_>, threads: usize) {
    let at = |x: &[f64], i: u64| if x.len() == 1 { x[0] } else { x[i as usize] };
    fill(out, threads, |i| at(mean, i) + at(std, i) * draws.normals(i).0);
}

/// 1 with each element's probability, otherwise 0. Fails at a number outside of 0..=1.
pub fn bernoulli(draws: &Draws, p: &[f64], out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    if !p.iter().all(|p| (0.0..=1.0).contains(p)) {
        return Err("Expected p_in >= 0 && p_in <= 1 to be true, but got false.".to_string());
    }
    fill(out, threads, |i| (draws.unit(i) < p[i as usize]) as i64);
    Ok(())
}

/// Poisson-distributed numbers with these expected values. Fails at negative ones.
pub fn poisson(draws: &Draws, rates: &View<'_>, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    let rates = gather::<f64>(*rates);
    if !rates.iter().all(|&r| r >= 0.0) {
        return Err("invalid Poisson rate, expected rate to be non-negative".to_string());
    }
    fill(out, threads, |i| events(draws, i, rates[i as usize]));
    Ok(())
}

/// Gamma-distributed numbers with these shapes, given in logical order, and scale 1; each is above 0.
pub fn gammas(draws: &Draws, shapes: &[f64], out: &ViewMut<'_>, threads: usize) {
    let least = smallest(out.dtype());
    fill(out, threads, |i| gamma(draws, i, shapes[i as usize]).max(least));
}

/// Points whose coordinates sum to 1, one for each row of `row` shapes: gamma-distributed numbers divided by their sum.
pub fn dirichlet(draws: &Draws, shapes: &[f64], row: usize, out: &ViewMut<'_>) {
    let least = smallest(out.dtype());
    let most = if out.dtype() == DType::F64 { 1.0 - f64::EPSILON / 2.0 } else { 1.0 - f64::from(f32::EPSILON) / 2.0 };
    let mut all = Temp::gather(shapes.len(), shapes.iter().enumerate().map(|(i, &s)| gamma(draws, i as u64, s)));
    for row in all.chunks_exact_mut(row.max(1)) {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x = (*x / sum).max(least).min(most));
    }
    unpack(&all, out);
}

/// The smallest normal number of a type.
fn smallest(dtype: DType) -> f64 {
    if dtype == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) }
}

/// Marsaglia's and Tsang's method; a shape below 1 is one above with a power of a uniform number.
fn gamma(draws: &Draws, i: u64, shape: f64) -> f64 {
    if shape == 0.0 {
        return 0.0;
    }
    let unit = |x: u64| 1.0 - digits(x, 53);
    let (shape, scale) =
        if shape < 1.0 { (shape + 1.0, unit(draws.pair(i, u32::MAX).0).powf(1.0 / shape)) } else { (shape, 1.0) };
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    // One try in twenty fails, so a thousand in a row do not, but of a shape that is no number.
    for turn in 0..1000 {
        let (a, b) = draws.pair(i, 2 * turn);
        let x = (-2.0 * unit(a).ln()).sqrt() * (std::f64::consts::TAU * digits(b, 53)).cos();
        let v = (1.0 + c * x).powi(3);
        let u = unit(draws.pair(i, 2 * turn + 1).0);
        if v > 0.0 && u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            return scale * d * v;
        }
    }
    f64::NAN
}

/// The number of successes in `counts` trials that succeed with these probabilities, given in logical order. Fails at a number of
/// trials that is infinite or NaN, on which PyTorch does not return.
pub fn binomial(draws: &Draws, counts: &[f64], p: &[f64], out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    if let Some(wrong) = counts.iter().find(|n| n.is_nan() || **n == f64::INFINITY) {
        return Err(format!("binomial expects finite numbers of trials, but found {wrong}"));
    }
    fill(out, threads, |i| {
        let (n, p) = (counts[i as usize], p[i as usize]);
        match p {
            _ if n <= 0.0 || p <= 0.0 => 0.0,
            _ if p.is_nan() => p,
            _ if p >= 1.0 => n,
            _ if p <= 0.5 => successes(draws, i, n, p),
            _ => n - successes(draws, i, n, 1.0 - p),
        }
    });
    Ok(())
}

/// Successes in `n` trials, for a probability of one half at most.
fn successes(draws: &Draws, i: u64, n: f64, p: f64) -> f64 {
    let unit = |turn: u32| digits(draws.pair(i, turn).0, 53);
    if n * p < 10.0 {
        // The number of geometric waiting times that fit.
        let fail = (-p).ln_1p();
        let mut waited = 0.0;
        for k in 0.. {
            waited += ((1.0 - unit(k)).ln() / fail).ceil().max(1.0);
            if waited > n {
                return k as f64;
            }
        }
    }
    // Hörmann's transformed rejection (BTRD without the table).
    let deviation = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let alpha = (2.83 + 5.1 / b) * deviation;
    let edge = 0.92 - 4.2 / b;
    let odds = (p / (1.0 - p)).ln();
    let mode = ((n + 1.0) * p).floor();
    let weight = |k: f64| libm::lgamma(k + 1.0) + libm::lgamma(n - k + 1.0);
    // One try in seven fails, so a thousand in a row do not.
    for turn in 0..1000 {
        let (u, v) = draws.pair(i, turn);
        let (u, v) = (digits(u, 53) - 0.5, 1.0 - digits(v, 53));
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + n * p + 0.5).floor();
        if !(0.0..=n).contains(&k) {
            continue;
        }
        if us >= 0.07 && v <= edge {
            return k;
        }
        if (v * alpha / (a / (us * us) + b)).ln() <= weight(mode) - weight(k) + (k - mode) * odds {
            return k;
        }
    }
    mode
}

fn events(draws: &Draws, i: u64, rate: f64) -> f64 {
    if rate < 10.0 {
        // Knuth's method: multiply uniform numbers until the product falls below e^-rate.
        let (limit, mut product) = ((-rate).exp(), 1.0);
        for k in 0.. {
            product *= 1.0 - digits(draws.pair(i, k).0, 53);
            if product <= limit {
                return k as f64;
            }
        }
    }
    // Hörmann's transformed rejection (PTRS).
    let (root, log) = (rate.sqrt(), rate.ln());
    let b = 0.931 + 2.53 * root;
    let a = -0.059 + 0.02483 * b;
    let inverse = 1.1239 + 1.1328 / (b - 3.4);
    let edge = 0.9277 - 3.6224 / (b - 2.0);
    // One try in ten fails, so a thousand in a row do not.
    for turn in 0..1000 {
        let (u, v) = draws.pair(i, turn);
        let (u, v) = (digits(u, 53) - 0.5, 1.0 - digits(v, 53));
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= edge {
            return k;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        if v.ln() + inverse.ln() - (a / (us * us) + b).ln() <= -rate + k * log - libm::lgamma(k + 1.0) {
            return k;
        }
    }
    rate.floor()
}

/// The numbers below `n` in random order.
pub fn permutation(draws: &Draws, out: &ViewMut<'_>) {
    let n = out.numel();
    let mut order: Temp<i64> = Temp::gather(n, 0..n as i64);
    for i in (1..n).rev() {
        order.swap(i, draws.below(i as u64, i as u64 + 1) as usize);
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
    let mut order = Temp::filled(if replacement { 0 } else { n }, (0.0, 0));
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
                let at = draws.unit((r * samples + s) as u64) * total;
                *place = running.partition_point(|&sum| sum <= at).min(last) as i64;
            }
        } else {
            // Each category waits for an exponential time at the rate of its weight; the first to come are taken.
            let wait = |i: usize| -draws.positive((r * n + i) as u64).ln() / row[i];
            for (i, place) in order.iter_mut().enumerate() {
                *place = (if row[i] > 0.0 { wait(i) } else { f64::INFINITY }, i);
            }
            // The index breaks ties.
            order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            picked.iter_mut().zip(order.iter()).for_each(|(place, o)| *place = o.1 as i64);
        }
    }
    unpack(&picked, out);
    Ok(())
}

/// Scratch bytes of [`multinomial`] for a result of `out` elements.
pub fn multinomial_room(weights: &Layout, replacement: bool, out: i64) -> usize {
    let n = weights.sizes.last().map_or(1, |&n| n as usize);
    let each = if replacement { room::<f64>(n) } else { room::<(f64, usize)>(n) };
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
    let kept = |i: usize| draws.unit((i / inner.max(1)) as u64) >= how.p;
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
        let (scale, [kept_shift, shift]) = (how.scale as T, how.shift.map(|s| s as T));
        const CHUNK: usize = 4096;
        let mut data = crate::support::pack::pack_owned::<T>(x);
        par::pieces(threads, &mut data, CHUNK, &|i, piece| {
            for (j, x) in piece.iter_mut().enumerate() {
                *x = if kept(i * CHUNK + j) { *x * scale + kept_shift } else { *x * 0.0 + shift };
            }
        });
        unpack(&data, out);
    });
    if let Some(mask) = mask {
        fill(mask, threads, |i| kept(i as usize) as i64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{Layout, RawTensor};

    fn moments(what: Distribution) -> (f64, f64) {
        let out = RawTensor::zeros(DType::F64, Layout::contiguous(&[100_000]));
        draw(&Draws::new(&[1, 2, 3]), what, &out.write().view_mut(), 2);
        moments_of(&out.to_elements::<f64>())
    }
    fn moments_of(data: &[f64]) -> (f64, f64) {
        let mean = data.iter().sum::<f64>() / data.len() as f64;
        (mean, data.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / data.len() as f64)
    }
    fn close(what: Distribution, mean: f64, var: f64) {
        let (m, v) = moments(what);
        assert!((m - mean).abs() < 4.0 * (var / 1e5).sqrt() && (v - var).abs() < 0.05 * var, "{what:?}: {m} {v}");
    }

    // Test vectors of Philox4x32-10 (Random123's `kat_vectors`).
    #[test]
    fn the_generator_is_philox() {
        let zero = Draws { key: [0, 0], salt: [0, 0] };
        assert_eq!(zero.block(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = Draws { key: [u32::MAX; 2], salt: [u32::MAX; 2] };
        assert_eq!(ones.block(u64::MAX, 0), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
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
    fn gammas_have_their_moments() {
        for shape in [0.3, 1.0, 2.5, 40.0] {
            let out = RawTensor::zeros(DType::F64, Layout::contiguous(&[50_000]));
            gammas(&Draws::new(&[9]), &[shape; 50_000], &out.write().view_mut(), 2);
            let data = out.to_elements::<f64>();
            let (mean, var) = moments_of(&data);
            assert!((mean - shape).abs() < 4.0 * (shape / 5e4).sqrt(), "{shape}: {mean}");
            assert!((var - shape).abs() < 0.1 * shape && data.iter().all(|&x| x > 0.0), "{shape}: {var}");
        }
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[1000, 3]));
        dirichlet(&Draws::new(&[9]), &[1.0, 2.0, 0.5].repeat(1000), 3, &out.write().view_mut());
        let data = out.to_elements::<f32>();
        assert!(data.chunks(3).all(|p| (p.iter().sum::<f32>() - 1.0).abs() < 1e-6 && p.iter().all(|&x| x > 0.0)));
        let mean = data.iter().skip(1).step_by(3).sum::<f32>() / 1000.0;
        assert!((mean - 2.0 / 3.5).abs() < 0.03, "{mean}");
    }

    #[test]
    fn successes_have_their_moments() {
        for (n, p) in [(5.0, 0.3), (40.0, 0.1), (40.0, 0.4), (200.0, 0.9), (1e6, 0.5), (2.5, 0.5)] {
            let out = RawTensor::zeros(DType::F64, Layout::contiguous(&[50_000]));
            binomial(&Draws::new(&[7]), &[n; 50_000], &[p; 50_000], &out.write().view_mut(), 2).unwrap();
            let data = out.to_elements::<f64>();
            let (mean, var) = moments_of(&data);
            let (own, spread) = (n.floor() * p, n.floor() * p * (1.0 - p));
            assert!(
                (mean - own).abs() < 4.0 * (spread / 5e4).sqrt() && (var - spread).abs() < 0.05 * spread,
                "{n} {p}: {mean} {var}"
            );
        }
        let draw = |n: f64, p: f64| {
            let out = RawTensor::zeros(DType::F64, Layout::contiguous(&[1]));
            let drawn = binomial(&Draws::new(&[7]), &[n], &[p], &out.write().view_mut(), 1);
            drawn.map(|()| out.to_elements::<f64>()[0])
        };
        assert_eq!([draw(-1.0, 0.5), draw(2.5, 1.5), draw(3.0, -1.0)], [Ok(0.0), Ok(2.5), Ok(0.0)]);
        assert!(draw(3.0, f64::NAN).unwrap().is_nan() && draw(f64::NAN, 0.5).is_err());
    }

    #[test]
    fn events_have_their_moments() {
        for rate in [0.5, 4.0, 10.0, 57.0] {
            let draws = Draws::new(&[5]);
            let n = 50_000;
            let data: Vec<f64> = (0..n).map(|i| events(&draws, i, rate)).collect();
            let (mean, var) = moments_of(&data);
            assert!(
                (mean - rate).abs() < 4.0 * (rate / n as f64).sqrt() && (var - rate).abs() < 0.05 * rate,
                "{mean} {var}"
            );
        }
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
