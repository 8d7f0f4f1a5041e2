//! Gradients of normalisations. Sums are in `f64` and in one order, whatever the strides.

use crate::norm::{numbers, put};
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
    let factor = |j: usize| weight.as_ref().map_or(1.0, |w| w[j]);
    with_compute!(float x.dtype(), T => {
        let (g, x) = (pack::<T>(g), pack::<T>(x));
        let row = |i: usize| g[i * len..][..len].iter().zip(&x[i * len..][..len]);
        if grads.weight.is_some() || grads.bias.is_some() {
            let (mut dw, mut db) = (Temp::filled(len, 0.0), Temp::filled(len, 0.0));
            for i in 0..x.len() / len.max(1) {
                let (m, r) = (centre(i), rstd[i]);
                for (j, (&g, &x)) in row(i).enumerate() {
                    dw[j] += g.wide() * (x.wide() - m) * r;
                    db[j] += g.wide();
                }
            }
            put(grads.weight, dw.iter().copied());
            put(grads.bias, db.iter().copied());
        }
        if let Some(out) = &grads.input {
            let mut target = Target::<T>::new(out);
            par::pieces(threads, target.slice(), len, &|i, out| {
                let (m, r) = (centre(i), rstd[i]);
                let (mut a, mut b) = (0.0, 0.0);
                for (j, (&g, &x)) in row(i).enumerate() {
                    let g = g.wide() * factor(j);
                    a += g;
                    b += g * (x.wide() - m) * r;
                }
                let (a, b) = (if mean.is_some() { a / len as f64 } else { 0.0 }, b / len as f64);
                for (j, (o, (&g, &x))) in out.iter_mut().zip(row(i)).enumerate() {
                    *o = T::of(r * (g.wide() * factor(j) - a - (x.wide() - m) * r * b));
                }
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

/// Bytes of working memory of [`rows`] over rows of `len` elements.
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
                let (mut sum, mut dot) = (0.0, 0.0);
                for (&g, &x) in g.iter().zip(x) {
                    sum += g.wide();
                    dot += g.wide() * (x.wide() - mean[s]);
                }
                dot *= rstd[s];
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
                let (g, x) = (&g[p * inner..][..inner], &x[p * inner..][..inner]);
                for ((o, &g), &x) in out.iter_mut().zip(g).zip(x) {
                    *o = T::of(r * (w * g.wide() - a - (x.wide() - m) * r * b));
                }
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
