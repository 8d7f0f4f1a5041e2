//! Distributions whose numbers take several tries: Poisson, gamma, Dirichlet and binomial.

use super::fill;
use super::generator::{Draws, RandomBits, digits};
use crate::support::convert::gather;
use crate::support::pack::unpack;
use crate::support::scratch::Temp;
use restride_tensor::{DType, View, ViewMut};

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
        if shape < 1.0 { (shape + 1.0, unit(draws.bits(i, u32::MAX).0).powf(1.0 / shape)) } else { (shape, 1.0) };
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    // One try in twenty fails, so a thousand in a row do not, but of a shape that is no number.
    for turn in 0..1000 {
        let RandomBits(a, b) = draws.bits(i, 2 * turn);
        let x = (-2.0 * unit(a).ln()).sqrt() * (std::f64::consts::TAU * digits(b, 53)).cos();
        let v = (1.0 + c * x).powi(3);
        let u = unit(draws.bits(i, 2 * turn + 1).0);
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
    let unit = |turn: u32| digits(draws.bits(i, turn).0, 53);
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
        let RandomBits(u, v) = draws.bits(i, turn);
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
            product *= 1.0 - digits(draws.bits(i, k).0, 53);
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
        let RandomBits(u, v) = draws.bits(i, turn);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::tests::moments_of;
    use restride_tensor::{Layout, RawTensor};

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
}
