//! Losses that look at their data: class indices that must exist, probabilities that must be such.

pub mod ctc;

use crate::norm::softmax::sum;
use crate::support::convert::gather;
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Stored, Target, compute_room, fill, pack, packed_room, packed_rooms, with_compute};
use crate::support::scratch::{Temp, room};
use restride_tensor::{Layout, View, ViewMut};

/// How the losses of all elements are reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossReduction {
    /// They are the result.
    None,
    /// Their mean, weighted by the weights if given.
    Mean,
    /// Their sum.
    Sum,
}

/// Negative log likelihood: minus the element of `x` (N × C × …, or C alone) that each target names, times the class's
/// weight. `total` gets the sum of the weights (0 where nothing is summed).
pub fn nll(
    x: &View<'_>,
    target: &View<'_>,
    weight: Option<&View<'_>>,
    reduction: LossReduction,
    ignore: i64,
    out: &ViewMut<'_>,
    total: &ViewMut<'_>,
) -> Result<(), String> {
    with_compute!(float out.dtype(), T => nll_as::<T>(x, target, weight, reduction, ignore, out, total))
}

fn nll_as<T: Real>(
    x: &View<'_>,
    target: &View<'_>,
    weight: Option<&View<'_>>,
    reduction: LossReduction,
    ignore: i64,
    out: &ViewMut<'_>,
    total: &ViewMut<'_>,
) -> Result<(), String> {
    let sizes = x.sizes();
    let class = usize::from(sizes.len() > 1);
    let classes = sizes[class] as usize;
    let inner: usize = sizes[class + 1..].iter().map(|&n| n as usize).product();
    let (data, targets) = (pack::<T>(x), gather::<i64>(*target));
    let weights = weight.map(|w| pack::<T>(w));
    let mut losses = Temp::filled(targets.len(), T::zero());
    let (mut all, mut sum) = (0.0f64, 0.0f64);
    let samples = targets.chunks(inner.max(1)).zip(losses.chunks_mut(inner.max(1)));
    for (sample, (targets, losses)) in samples.enumerate() {
        for (i, (&t, loss)) in targets.iter().zip(losses).enumerate() {
            if t == ignore {
                continue;
            }
            let c = usize::try_from(t).ok().filter(|&c| c < classes);
            let c = c.ok_or_else(|| format!("Target {t} is out of bounds."))?;
            let w = weights.as_ref().map_or(T::one(), |w| w[c]);
            *loss = -(data[(sample * classes + c) * inner + i] * w);
            all += w.wide();
            sum += loss.wide();
        }
    }
    if reduction == LossReduction::None && class == 1 {
        crate::support::pack::unpack(&losses, out);
        fill(total, T::zero());
        return Ok(());
    }
    let value = match reduction {
        LossReduction::Mean => sum / all,
        _ => sum,
    };
    fill(out, T::of(value));
    fill(total, T::of(all));
    Ok(())
}

/// Scratch bytes of [`nll`].
pub fn nll_room(x: Stored<'_>, target: &Layout, weight: Option<Stored<'_>>, out: Stored<'_>) -> usize {
    let n = target.numel();
    packed_rooms(std::iter::once(x).chain(weight)) + room::<i64>(n as usize) + compute_room(x.0, n) + packed_room(out)
}

/// Scratch bytes of [`binary_cross_entropy`].
pub fn binary_cross_entropy_room(x: Stored<'_>, y: Stored<'_>, weight: Option<Stored<'_>>, out: Stored<'_>) -> usize {
    let n = x.1.numel();
    let wide = weight.map_or(0, |w| compute_room(w.0, n));
    packed_rooms([x, y]) + compute_room(x.0, n) + wide + packed_room(out)
}

/// Cross entropy of probabilities `x` and `y` of two outcomes; `weight` broadcasts to their sizes.
pub fn binary_cross_entropy(
    x: &View<'_>,
    y: &View<'_>,
    weight: Option<(&View<'_>, &Layout)>,
    reduction: LossReduction,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    with_compute!(float out.dtype(), T => bce_as::<T>(x, y, weight, reduction, out))
}

fn bce_as<T: Real>(
    x: &View<'_>,
    y: &View<'_>,
    weight: Option<(&View<'_>, &Layout)>,
    reduction: LossReduction,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    let (p, t) = (pack::<T>(x), pack::<T>(y));
    let mut losses = Temp::filled(p.len(), T::zero());
    let [inputs, targets] = isa::run(CrossEntropies(&p, &t, &mut losses));
    if !inputs {
        return Err("all elements of input should be between 0 and 1".into());
    }
    if !targets {
        return Err("all elements of target should be between 0 and 1".into());
    }
    if let Some((w, layout)) = weight {
        if layout.sizes[..] != *x.sizes() || !layout_within(w.layout(), layout) {
            return Err("the weight does not broadcast to the input".into());
        }
        // SAFETY: the layout visits the weight's own cells only, with strides of 0 where it broadcasts.
        let wide = unsafe { w.with_layout(layout) };
        let wide = pack::<T>(&wide);
        losses.iter_mut().zip(wide.iter()).for_each(|(l, &w)| *l *= w);
    }
    match reduction {
        LossReduction::None => {
            let mut target = Target::<T>::new(out);
            target.slice().copy_from_slice(&losses);
            target.finish();
        }
        LossReduction::Sum => fill(out, T::of(sum(&losses, |x| x.wide()))),
        LossReduction::Mean => fill(out, T::of(sum(&losses, |x| x.wide()) / losses.len() as f64)),
    }
    Ok(())
}

/// Cross entropies of probabilities, and whether all of each are such.
struct CrossEntropies<'a, T>(&'a [T], &'a [T], &'a mut [T]);
impl<T: Real> isa::Work for CrossEntropies<'_, T> {
    type Out = [bool; 2];
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) -> [bool; 2] {
        let (zero, one, least) = (T::zero(), T::one(), T::of(-100.0));
        let (mut inputs, mut targets) = (true, true);
        for ((&p, &t), loss) in self.0.iter().zip(self.1).zip(self.2) {
            inputs &= (p >= zero) & (p <= one);
            targets &= (t >= zero) & (t <= one);
            *loss = (t - one) * (-p).ln_1p_fast().larger(least) - t * p.ln_fast().larger(least);
        }
        [inputs, targets]
    }
}

/// Whether a broadcast layout stays in the cells of the original one.
fn layout_within(own: &Layout, wide: &Layout) -> bool {
    let lead = wide.rank().checked_sub(own.rank());
    lead.is_some_and(|lead| {
        own.offset == wide.offset
            && wide.strides[..lead].iter().all(|&s| s == 0)
            && (0..own.rank()).all(|d| {
                let (n, s) = (wide.sizes[lead + d], wide.strides[lead + d]);
                s == 0 && own.sizes[d] > 0 || n == own.sizes[d] && s == own.strides[d]
            })
            && (!own.sizes.contains(&0) || wide.sizes.contains(&0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, RawTensor};

    #[test]
    fn entropies_of_certain_outcomes_are_cut_at_a_hundred() {
        let of = |p: [f32; 4], t: [f32; 4]| {
            let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[4]));
            let (p, t) = (RawTensor::from_slice(&p, &[4]), RawTensor::from_slice(&t, &[4]));
            let (p, t) = (p.read(), t.read());
            binary_cross_entropy(&p.view(), &t.view(), None, LossReduction::None, &out.write().view_mut())?;
            Ok::<_, String>(out.to_elements::<f32>())
        };
        let found = of([0.0, 1.0, 1.0, 0.5], [1.0, 0.0, 1.0, 0.25]).unwrap();
        assert_eq!(found[..3], [100.0, 100.0, 0.0]);
        assert!((found[3] - std::f32::consts::LN_2).abs() < 1e-7);
        for wrong in [-0.5, 1.5, f32::NAN] {
            assert!(of([0.5, 0.5, wrong, 0.5], [0.5; 4]).unwrap_err().contains("input"));
            assert!(of([0.5; 4], [0.5, 0.5, 0.5, wrong]).unwrap_err().contains("target"));
        }
    }

    #[test]
    fn classes_must_exist() {
        let x = RawTensor::from_slice(&[0f32, 1.0, 2.0, 3.0], &[2, 2]);
        let out = || RawTensor::zeros(DType::F32, Layout::contiguous(&[]));
        for (t, ok) in [([0i64, 1], true), ([0, 2], false), ([0, -1], false), ([0, -100], true)] {
            let t = RawTensor::from_slice(&t, &[2]);
            let (a, b) = (out(), out());
            let r = nll(
                &x.read().view(),
                &t.read().view(),
                None,
                LossReduction::Mean,
                -100,
                &a.write().view_mut(),
                &b.write().view_mut(),
            );
            assert_eq!(r.is_ok(), ok);
        }
    }
}
