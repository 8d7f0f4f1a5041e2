//! Losses that look at their data: class indices that must exist, probabilities that must be such.

use crate::convert::gather;
use crate::pack::{Compute, Target, compute_room, fill, pack, packed_room, packed_rooms, with_compute};
use crate::scratch::{Temp, room};
use crate::softmax::{Real, sum};
use restride_tensor::{DType, Layout, View, ViewMut};

/// What becomes of the losses of all elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// They are the result.
    None,
    /// Their mean (weighted, where there are weights).
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
    reduction: Reduction,
    ignore: i64,
    out: &ViewMut<'_>,
    total: &ViewMut<'_>,
) -> Result<(), String> {
    with_compute!(float out.dtype(), T => nll_as::<T>(x, target, weight, reduction, ignore, out, total))
}

fn nll_as<T: Real + Compute>(
    x: &View<'_>,
    target: &View<'_>,
    weight: Option<&View<'_>>,
    reduction: Reduction,
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
    for (i, (&t, loss)) in targets.iter().zip(&mut losses).enumerate() {
        if t == ignore {
            continue;
        }
        let c = usize::try_from(t).ok().filter(|&c| c < classes);
        let c = c.ok_or_else(|| format!("Target {t} is out of bounds."))?;
        let at = (i / inner.max(1) * classes + c) * inner + i % inner.max(1);
        let w = weights.as_ref().map_or(T::one(), |w| w[c]);
        *loss = -(data[at] * w);
        all += w.wide();
        sum += loss.wide();
    }
    if reduction == Reduction::None && class == 1 {
        crate::pack::unpack(&losses, out);
        fill(total, T::zero());
        return Ok(());
    }
    let value = match reduction {
        Reduction::Mean => sum / all,
        _ => sum,
    };
    fill(out, T::of(value));
    fill(total, T::of(all));
    Ok(())
}

/// Bytes of working memory of [`nll`] for operands and a result that lie so.
pub fn nll_room(
    x: (DType, &Layout),
    target: &Layout,
    weight: Option<(DType, &Layout)>,
    out: (DType, &Layout),
) -> usize {
    let n = target.numel();
    packed_rooms(std::iter::once(x).chain(weight)) + room::<i64>(n as usize) + compute_room(x.0, n) + packed_room(out)
}

/// Bytes of working memory of [`binary_cross_entropy`] for operands that lie so.
pub fn binary_cross_entropy_room(
    x: (DType, &Layout),
    y: (DType, &Layout),
    weight: Option<(DType, &Layout)>,
    out: (DType, &Layout),
) -> usize {
    let n = x.1.numel();
    let wide = weight.map_or(0, |w| compute_room(w.0, n));
    packed_rooms([x, y]) + compute_room(x.0, n) + wide + packed_room(out)
}

/// Cross entropy of probabilities `x` and `y` of two outcomes; `weight` broadcasts to their sizes.
pub fn binary_cross_entropy(
    x: &View<'_>,
    y: &View<'_>,
    weight: Option<(&View<'_>, &Layout)>,
    reduction: Reduction,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    with_compute!(float out.dtype(), T => bce_as::<T>(x, y, weight, reduction, out))
}

fn bce_as<T: Real + Compute>(
    x: &View<'_>,
    y: &View<'_>,
    weight: Option<(&View<'_>, &Layout)>,
    reduction: Reduction,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    let (p, t) = (pack::<T>(x), pack::<T>(y));
    if !p.iter().all(|&p| p >= T::zero() && p <= T::one()) {
        return Err("all elements of input should be between 0 and 1".into());
    }
    if !t.iter().all(|&t| t >= T::zero() && t <= T::one()) {
        return Err("all elements of target should be between 0 and 1".into());
    }
    let least = T::of(-100.0);
    let mut losses: Temp<T> = p
        .iter()
        .zip(t.iter())
        .map(|(&p, &t)| (t - T::one()) * (-p).ln_1p().max(least) - t * p.ln().max(least))
        .collect();
    if let Some((w, layout)) = weight {
        if layout.sizes[..] != *x.sizes() || !layout_within(w.layout(), layout) {
            return Err("the weight does not broadcast to the input".into());
        }
        // SAFETY: the layout visits the weight's own cells only, with strides of 0 where it broadcasts.
        let wide = unsafe { w.with_layout(layout) };
        let wide = pack::<T>(&wide);
        losses.iter_mut().zip(wide.iter()).for_each(|(l, &w)| *l = *l * w);
    }
    match reduction {
        Reduction::None => {
            let mut target = Target::<T>::new(out);
            target.slice().copy_from_slice(&losses);
            target.finish();
        }
        Reduction::Sum => fill(out, T::of(sum(&losses, |x| x.wide()))),
        Reduction::Mean => fill(out, T::of(sum(&losses, |x| x.wide()) / losses.len() as f64)),
    }
    Ok(())
}

/// Whether a broadcast layout stays in the cells of what it was made of.
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

/// Connectionist temporal classification: the negative log likelihood of each sample's targets (`log_probs` is
/// T × N × C) under all alignments, and the logarithms of the forward variables (N × T × (2 · longest target + 1)).
#[derive(Clone, Debug)]
pub struct Ctc<'a> {
    /// Frames of each sample.
    pub input_lengths: &'a [i64],
    /// Target elements of each sample.
    pub target_lengths: &'a [i64],
    /// The class between the others.
    pub blank: i64,
}

impl Ctc<'_> {
    /// Computes both results; `longest` is the largest target length.
    pub fn run(
        &self,
        log_probs: &View<'_>,
        targets: &View<'_>,
        losses: &ViewMut<'_>,
        alphas: &ViewMut<'_>,
    ) -> Result<(), String> {
        match losses.dtype() {
            DType::F32 => self.run_as::<f32>(log_probs, targets, losses, alphas),
            DType::F64 => self.run_as::<f64>(log_probs, targets, losses, alphas),
            other => Err(format!("\"ctc_loss_cpu\" not implemented for {}", other.torch_name())),
        }
    }

    fn run_as<T: Real + Compute>(
        &self,
        log_probs: &View<'_>,
        targets: &View<'_>,
        losses: &ViewMut<'_>,
        alphas: &ViewMut<'_>,
    ) -> Result<(), String> {
        let (batch, classes) = (log_probs.sizes()[1] as usize, log_probs.sizes()[2] as usize);
        let (probs, labels) = (pack::<T>(log_probs), gather::<i64>(*targets));
        let (frames, width) = (alphas.sizes()[1] as usize, alphas.sizes()[2] as usize);
        let mut alpha = Temp::filled(batch * frames * width, T::neg_infinity());
        let mut loss = Temp::filled(batch, T::zero());
        let mut start = 0;
        for b in 0..batch {
            let (steps, len) = (self.input_lengths[b] as usize, self.target_lengths[b] as usize);
            let own = if targets.sizes().len() == 1 {
                start += len;
                &labels[start - len..start]
            } else {
                &labels[b * targets.sizes()[1] as usize..][..len]
            };
            if let Some(bad) = own.iter().find(|&&c| c < 0 || c >= classes as i64) {
                return Err(format!("ctc_loss: target {bad} is not a class"));
            }
            let label = |s: usize| if s.is_multiple_of(2) { self.blank as usize } else { own[s / 2] as usize };
            let prob = |t: usize, c: usize| probs[(t * batch + b) * classes + c];
            let states = 2 * len + 1;
            let rows = &mut alpha[b * frames * width..][..frames * width];
            if steps == 0 {
                loss[b] = if len == 0 { T::zero() } else { T::infinity() };
            } else {
                rows[0] = prob(0, label(0));
                if len > 0 {
                    rows[1] = prob(0, label(1));
                }
                for t in 1..steps {
                    let (before, now) = rows.split_at_mut(t * width);
                    let before = &before[(t - 1) * width..];
                    for s in 0..states {
                        let one = before[s];
                        let two = if s > 0 { before[s - 1] } else { T::neg_infinity() };
                        let skip = s > 1 && label(s - 2) != label(s);
                        let three = if skip { before[s - 2] } else { T::neg_infinity() };
                        now[s] = log_add([one, two, three]) + prob(t, label(s));
                    }
                }
                let last = &rows[(steps - 1) * width..];
                let second = if len > 0 { last[states - 2] } else { T::neg_infinity() };
                loss[b] = -log_add([last[states - 1], second, T::neg_infinity()]);
            }
        }
        crate::pack::unpack(&loss, losses);
        crate::pack::unpack(&alpha, alphas);
        Ok(())
    }
}

/// The logarithm of a sum of exponentials.
fn log_add<T: Real>(x: [T; 3]) -> T {
    let most = x[0].max(x[1]).max(x[2]);
    if most == T::neg_infinity() {
        return most;
    }
    ((x[0] - most).exp() + (x[1] - most).exp() + (x[2] - most).exp()).ln() + most
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::Tensor;

    #[test]
    fn ctc_sums_over_the_alignments() {
        // Two frames, one label: blank-a, a-blank, a-a.
        let p = [0.3f64, 0.7, 0.6, 0.4];
        let x = Tensor::from_slice(&p.map(f64::ln), &[2, 1, 2]);
        let t = Tensor::from_slice(&[1i64], &[1, 1]);
        let (loss, alpha) = (
            Tensor::zeros(DType::F64, Layout::contiguous(&[1])),
            Tensor::zeros(DType::F64, Layout::contiguous(&[1, 2, 3])),
        );
        let ctc = Ctc { input_lengths: &[2], target_lengths: &[1], blank: 0 };
        ctc.run(&x.view(), &t.view(), &loss.view_mut(), &alpha.view_mut()).unwrap();
        let want = -(0.3f64 * 0.4 + 0.7 * 0.6 + 0.7 * 0.4).ln();
        assert!((loss.get(&[0]).as_f64() - want).abs() < 1e-12);
    }

    #[test]
    fn classes_must_exist() {
        let x = Tensor::from_slice(&[0f32, 1.0, 2.0, 3.0], &[2, 2]);
        let out = || Tensor::zeros(DType::F32, Layout::contiguous(&[]));
        for (t, ok) in [([0i64, 1], true), ([0, 2], false), ([0, -1], false), ([0, -100], true)] {
            let t = Tensor::from_slice(&t, &[2]);
            let (a, b) = (out(), out());
            let r = nll(&x.view(), &t.view(), None, Reduction::Mean, -100, &a.view_mut(), &b.view_mut());
            assert_eq!(r.is_ok(), ok);
        }
    }
}
