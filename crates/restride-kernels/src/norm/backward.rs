//! Gradients of normalisations. Sums are in `f64` and in one order, whatever the strides.

use crate::norm::{numbers, put};
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Stored, Target, pack, packed_room, packed_rooms, with_compute};
use crate::support::par;
use crate::support::scratch::{Temp, room};
use restride_tensor::{View, ViewMut};

/// Where the gradients that are asked for go.
#[derive(Clone, Copy, Default)]
pub struct NormGradients<'a> {
    /// With respect to the operand.
    pub input: Option<&'a ViewMut<'a>>,
    /// With respect to the factors.
    pub weight: Option<&'a ViewMut<'a>>,
    /// With respect to the addends.
    pub bias: Option<&'a ViewMut<'a>>,
}

/// The sums of `g w` and of `g w (x - mean)` over a run, in interleaved parts: an order that depends on the length alone.
struct GradientDots<'a, T> {
    g: &'a [T],
    x: &'a [T],
    mean: f64,
    /// A factor for each element.
    weight: Option<&'a [f64]>,
}
impl<T: Real> isa::Work for GradientDots<'_, T> {
    type Out = (f64, f64);
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) -> (f64, f64) {
        const N: usize = 16;
        let GradientDots { g, x, mean, weight } = self;
        let ((g, g_rest), (x, x_rest)) = (g.as_chunks::<N>(), x.as_chunks::<N>());
        let ones = [1.0; N];
        let (w, w_rest) = weight.map_or((&[][..], &ones[..]), |w| w.as_chunks::<N>());
        let (mut sums, mut dots) = ([0.0; N], [0.0; N]);
        for (at, (g, x)) in g.iter().zip(x).enumerate() {
            let w = w.get(at).unwrap_or(&ones);
            for i in 0..N {
                let g = g[i].wide() * w[i];
                sums[i] += g;
                dots[i] += g * (x[i].wide() - mean);
            }
        }
        for (i, ((&g, &x), &w)) in g_rest.iter().zip(x_rest).zip(w_rest).enumerate() {
            let g = g.wide() * w;
            sums[i] += g;
            dots[i] += g * (x.wide() - mean);
        }
        let total = |mut parts: [f64; N]| {
            for n in [8, 4, 2, 1] {
                (0..n).for_each(|i| parts[i] += parts[i + n]);
            }
            parts[0]
        };
        (total(sums), total(dots))
    }
}

/// `scale (g w - a - (x - mean) b)` of each element.
struct GradientOfRow<'a, T> {
    out: &'a mut [T],
    pair: (&'a [T], &'a [T]),
    weight: Option<&'a [f64]>,
    /// A factor of all elements.
    factor: f64,
    mean: f64,
    scale: f64,
    a: f64,
    b: f64,
}
impl<T: Real> isa::Work for GradientOfRow<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        let GradientOfRow { out, pair: (g, x), weight, factor, mean, scale, a, b } = self;
        let one = |g: T, x: T, w: f64| T::of(scale * (g.wide() * w - a - (x.wide() - mean) * b));
        let all = out.iter_mut().zip(g).zip(x);
        match weight {
            None => all.for_each(|((o, &g), &x)| *o = one(g, x, factor)),
            Some(w) => all.zip(w).for_each(|(((o, &g), &x), &w)| *o = one(g, x, w)),
        }
    }
}

/// Adds a row to the sums of the factors' and the addends' gradients.
struct GradientOfParams<'a, T> {
    sums: (&'a mut [f64], &'a mut [f64]),
    pair: (&'a [T], &'a [T]),
    mean: f64,
    rstd: f64,
}
impl<T: Real> isa::Work for GradientOfParams<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        let GradientOfParams { sums: (dw, db), pair: (g, x), mean, rstd } = self;
        for (((dw, db), &g), &x) in dw.iter_mut().zip(db).zip(g).zip(x) {
            *dw += g.wide() * (x.wide() - mean) * rstd;
            *db += g.wide();
        }
    }
}

/// Of a normalisation over rows of `len` elements, with the mean (`None`: not subtracted, as in `rms_norm`) and the inverse
/// standard deviation of each row.
pub fn rows(
    g: &View<'_>,
    x: &View<'_>,
    len: usize,
    mean: Option<&View<'_>>,
    rstd: &View<'_>,
    weight: Option<&View<'_>>,
    grads: &NormGradients<'_>,
    threads: usize,
) -> Result<(), String> {
    let (mean, rstd, weight) = (numbers(mean), pack::<f64>(rstd), numbers(weight));
    let centre = |i: usize| mean.as_ref().map_or(0.0, |m| m[i]);
    let weight = weight.as_deref();
    with_compute!(float x.dtype(), T => {
        let (g, x) = (pack::<T>(g), pack::<T>(x));
        let row = |i: usize| (&g[i * len..][..len], &x[i * len..][..len]);
        if grads.weight.is_some() || grads.bias.is_some() {
            let (mut dw, mut db) = (Temp::filled(len, 0.0), Temp::filled(len, 0.0));
            for i in 0..x.len() / len.max(1) {
                isa::run(GradientOfParams { sums: (&mut dw, &mut db), pair: row(i), mean: centre(i), rstd: rstd[i] });
            }
            put(grads.weight, dw.iter().copied());
            put(grads.bias, db.iter().copied());
        }
        if let Some(out) = &grads.input {
            let mut target = Target::<T>::new(out);
            par::pieces(threads, target.slice(), len, &|i, out| {
                let (pair, mean_of, scale) = (row(i), centre(i), rstd[i]);
                let (a, b) = isa::run(GradientDots { g: pair.0, x: pair.1, mean: mean_of, weight });
                let a = if mean.is_some() { a / len as f64 } else { 0.0 };
                let b = b * scale * scale / len as f64;
                isa::run(GradientOfRow { out, pair, weight, factor: 1.0, mean: mean_of, scale, a, b });
            });
            target.finish();
        }
    });
    Ok(())
}

/// Types and layouts of operands and results.
#[derive(Clone, Copy, Debug)]
pub struct Lies<'a> {
    /// The gradient with respect to the result, and the operand.
    pub pair: [Stored<'a>; 2],
    /// The gradient with respect to the operand, if it is asked for.
    pub input: Option<Stored<'a>>,
    /// Whether gradients of factors or addends are asked for.
    pub params: bool,
}

/// Bytes of scratch of [`rows`] over rows of `len` elements.
pub fn rows_room(lies: &Lies<'_>, len: usize) -> usize {
    let stats = lies.pair[1].1.numel() as usize / len.max(1);
    let sums = if lies.params { 3 * room::<f64>(len) } else { 0 };
    2 * room::<f64>(stats) + room::<f64>(len) + packed_rooms(lies.pair) + sums.max(lies.input.map_or(0, packed_room))
}

/// Scratch bytes of [`channels`].
pub fn channels_room(lies: &Lies<'_>, stats: usize) -> usize {
    let each = room::<f64>(lies.pair[1].1.sizes[1] as usize);
    3 * each + 2 * room::<f64>(stats) + packed_rooms(lies.pair) + each.max(lies.input.map_or(0, packed_room))
}

/// Over which elements the statistics of a channel-wise normalisation were taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// All samples, each channel alone (`batch_norm`).
    Batch,
    /// Each sample and group of channels alone (`group_norm`); the number of groups.
    Groups(usize),
    /// None: they were given (`batch_norm` with running statistics), one per channel.
    Given,
}

/// Of a normalisation of N × C × …, with statistics per channel, or per sample and group.
pub fn channels(
    g: &View<'_>,
    x: &View<'_>,
    over: Over,
    mean: &[f64],
    rstd: &[f64],
    weight: Option<&View<'_>>,
    grads: &NormGradients<'_>,
    threads: usize,
) -> Result<(), String> {
    let channels = x.sizes()[1] as usize;
    let inner: usize = x.sizes()[2..].iter().map(|&n| n as usize).product();
    let samples = x.sizes()[0] as usize;
    let groups = if let Over::Groups(groups) = over { groups } else { channels };
    let per = channels / groups.max(1);
    // The statistics of a plane (sample and channel), and where its sums are collected.
    let stat = |plane: usize| match over {
        Over::Groups(_) => plane / per,
        Over::Batch | Over::Given => plane % channels,
    };
    let weight = numbers(weight);
    let factor = |c: usize| weight.as_ref().map_or(1.0, |w| w[c]);
    with_compute!(float x.dtype(), T => {
        let (g, x) = (pack::<T>(g), pack::<T>(x));
        let (mut dw, mut db) = (Temp::filled(channels, 0.0), Temp::filled(channels, 0.0));
        let (mut a, mut b) = (Temp::filled(mean.len(), 0.0), Temp::filled(mean.len(), 0.0));
        if inner > 0 {
            for (p, (g, x)) in g.chunks(inner).zip(x.chunks(inner)).enumerate() {
                let (s, c) = (stat(p), p % channels);
                let (sum, dot) = isa::run(GradientDots { g, x, mean: mean[s], weight: None });
                let dot = dot * rstd[s];
                dw[c] += dot;
                db[c] += sum;
                a[s] += factor(c) * sum;
                b[s] += factor(c) * dot;
            }
        }
        let count = match over {
            Over::Batch => samples * inner,
            Over::Groups(_) => per * inner,
            Over::Given => 0,
        };
        if let Some(out) = &grads.input {
            let mut target = Target::<T>::new(out);
            par::pieces(threads, target.slice(), inner, &|p, out| {
                let s = stat(p);
                let (m, r, w) = (mean[s], rstd[s], factor(p % channels));
                let (a, b) = if count == 0 { (0.0, 0.0) } else { (a[s] / count as f64, b[s] / count as f64) };
                let pair = (&g[p * inner..][..inner], &x[p * inner..][..inner]);
                isa::run(GradientOfRow { out, pair, weight: None, factor: w, mean: m, scale: r, a, b: r * b });
            });
            target.finish();
        }
        put(grads.weight, dw.iter().copied());
        put(grads.bias, db.iter().copied());
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norm::{Affine, group_norm, layer_norm};
    use restride_tensor::{DType, Layout, RawTensor};

    fn data(n: usize, seed: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + seed * 31) % 101) as f64 * 0.03 - 1.5).collect()
    }
    fn tensor(sizes: &[i64], seed: usize) -> RawTensor {
        RawTensor::from_slice(&data(sizes.iter().product::<i64>() as usize, seed), sizes)
    }

    /// Compares a gradient with central differences of `sum(g * f(x))`.
    fn check(x: &RawTensor, g: &RawTensor, grad: &RawTensor, f: impl Fn(&RawTensor) -> RawTensor) {
        let (values, g) = (x.to_elements::<f64>(), g.to_elements::<f64>());
        for (i, &d) in grad.to_elements::<f64>().iter().enumerate() {
            let at = |step: f64| -> f64 {
                let mut moved = values.clone();
                moved[i] += step;
                let y = f(&RawTensor::from_slice(&moved, x.read().view().sizes()));
                y.to_elements::<f64>().iter().zip(&g).map(|(y, g)| y * g).sum()
            };
            let want = (at(1e-5) - at(-1e-5)) / 2e-5;
            assert!((d - want).abs() < 1e-6, "{i}: {d} for {want}");
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (x, g, w) = (tensor(&[2, 4, 3], 1), tensor(&[2, 4, 3], 2), tensor(&[3], 3));
        let zeros = |sizes: &[i64]| RawTensor::zeros(DType::F64, Layout::contiguous(sizes));
        let (m, r) = (zeros(&[8]), zeros(&[8]));
        let layer = |x: &RawTensor, m: &RawTensor, r: &RawTensor| {
            let out = zeros(&[2, 4, 3]);
            let (weight, mut m, mut r) = (w.read(), m.write(), r.write());
            let affine = Affine { weight: Some(weight.view()), bias: None };
            let stats = (m.view_mut(), r.view_mut());
            layer_norm(&x.read().view(), 3, affine, 1e-3, &out.write().view_mut(), (Some(&stats.0), Some(&stats.1)), 1)
                .unwrap();
            out
        };
        layer(&x, &m, &r);
        let dx = zeros(&[2, 4, 3]);
        let mut to = dx.write();
        let grads = NormGradients { input: Some(&to.view_mut()), ..NormGradients::default() };
        rows(
            &g.read().view(),
            &x.read().view(),
            3,
            Some(&m.read().view()),
            &r.read().view(),
            Some(&w.read().view()),
            &grads,
            2,
        )
        .unwrap();
        drop(to);
        check(&x, &g, &dx, |x| layer(x, &zeros(&[8]), &zeros(&[8])));

        let w = tensor(&[4], 3);
        let group = |x: &RawTensor, m: &RawTensor, r: &RawTensor| {
            let out = zeros(&[2, 4, 3]);
            let (weight, mut m, mut r) = (w.read(), m.write(), r.write());
            let affine = Affine { weight: Some(weight.view()), bias: None };
            let stats = (m.view_mut(), r.view_mut());
            group_norm(&x.read().view(), 2, affine, 1e-3, &out.write().view_mut(), (Some(&stats.0), Some(&stats.1)), 1)
                .unwrap();
            out
        };
        let (m, r) = (zeros(&[2, 2]), zeros(&[2, 2]));
        group(&x, &m, &r);
        let (m, r) = (m.to_elements::<f64>(), r.to_elements::<f64>());
        let mut to = dx.write();
        let grads = NormGradients { input: Some(&to.view_mut()), ..NormGradients::default() };
        channels(&g.read().view(), &x.read().view(), Over::Groups(2), &m, &r, Some(&w.read().view()), &grads, 2)
            .unwrap();
        drop(to);
        check(&x, &g, &dx, |x| group(x, &zeros(&[2, 2]), &zeros(&[2, 2])));
    }
}
