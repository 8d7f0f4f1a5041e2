//! Connectionist temporal classification: the likelihood of targets under all alignments, and its gradient.

use crate::support::number::Real;
use crate::support::pack::{Stored, Target, compute_room, pack, packed_rooms};
use crate::support::scratch::Temp;
use restride_tensor::{DType, View, ViewMut};

/// The negative log likelihood of each sample's targets (`log_probs` is T × N × C) under all alignments, and the
/// logarithms of the forward variables (N × T × (2 · longest target + 1)).
#[derive(Clone, Debug)]
pub struct Ctc<'a> {
    /// Frames of each sample.
    pub input_lengths: &'a [i64],
    /// Target elements of each sample.
    pub target_lengths: &'a [i64],
    /// The class between the others.
    pub blank: i64,
}

/// Results of the forward pass, and the gradient of the losses.
#[derive(Clone, Copy)]
pub struct Forward<'a, 'v> {
    /// Gradient of each sample's loss.
    pub grad: &'a View<'v>,
    /// The losses.
    pub losses: &'a View<'v>,
    /// Logarithms of the forward variables.
    pub alphas: &'a View<'v>,
    /// Whether samples of infinite loss have no gradient.
    pub zero_infinity: bool,
}

/// Scratch bytes of [`Ctc::run`].
pub fn run_room(operands: [Stored<'_>; 2], outs: [Stored<'_>; 2]) -> usize {
    packed_rooms(operands.into_iter().chain(outs))
}

/// Scratch bytes of [`Ctc::backward`]; `width` is the last size of the
/// forward variables.
pub fn backward_room(operands: &[Stored<'_>], out: Stored<'_>, width: usize) -> usize {
    packed_rooms(operands.iter().copied().chain([out])) + 2 * compute_room(out.0, width as i64)
}

/// One sample's targets with blanks between them.
struct Labels<'a> {
    own: &'a [i64],
    blank: i64,
}

impl Labels<'_> {
    /// Number of states.
    fn states(&self) -> usize {
        2 * self.own.len() + 1
    }
    /// The class of a state.
    fn at(&self, s: usize) -> usize {
        (if s.is_multiple_of(2) { self.blank } else { self.own[s / 2] }) as usize
    }
    /// Whether the state two before this one may come right before it.
    fn skips(&self, s: usize) -> bool {
        s > 1 && self.at(s - 2) != self.at(s)
    }
}

impl Ctc<'_> {
    /// The labels of sample `b`; targets are given in rows, or one sample's behind the other's.
    fn labels<'l>(&self, all: &'l [i64], sizes: &[i64], b: usize, classes: usize) -> Result<Labels<'l>, String> {
        let len = self.target_lengths[b] as usize;
        let start = match sizes {
            [_, wide] => b * *wide as usize,
            _ => self.target_lengths[..b].iter().sum::<i64>() as usize,
        };
        let own = &all[start..start + len];
        match own.iter().find(|&&c| c < 0 || c >= classes as i64) {
            Some(bad) => Err(format!("ctc_loss: target {bad} is not a class")),
            None => Ok(Labels { own, blank: self.blank }),
        }
    }

    /// Computes both results.
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

    fn run_as<T: Real>(
        &self,
        log_probs: &View<'_>,
        targets: &View<'_>,
        losses: &ViewMut<'_>,
        alphas: &ViewMut<'_>,
    ) -> Result<(), String> {
        let (batch, classes) = (log_probs.sizes()[1] as usize, log_probs.sizes()[2] as usize);
        let (probs, all) = (pack::<T>(log_probs), pack::<i64>(targets));
        let (frames, width) = (alphas.sizes()[1] as usize, alphas.sizes()[2] as usize);
        let (mut alpha, mut loss) = (Target::<T>::new(alphas), Target::<T>::new(losses));
        alpha.slice().fill(T::neg_infinity());
        for b in 0..batch {
            let steps = self.input_lengths[b] as usize;
            let labels = self.labels(&all, targets.sizes(), b, classes)?;
            let (states, len) = (labels.states(), labels.own.len());
            let prob = |t: usize, c: usize| probs[(t * batch + b) * classes + c];
            let rows = &mut alpha.slice()[b * frames * width..][..frames * width];
            loss.slice()[b] = if steps == 0 {
                if len == 0 { T::zero() } else { T::infinity() }
            } else {
                rows[0] = prob(0, labels.at(0));
                if len > 0 {
                    rows[1] = prob(0, labels.at(1));
                }
                for t in 1..steps {
                    let (before, now) = rows.split_at_mut(t * width);
                    let before = &before[(t - 1) * width..];
                    for s in 0..states {
                        let one = before[s];
                        let two = if s > 0 { before[s - 1] } else { T::neg_infinity() };
                        let three = if labels.skips(s) { before[s - 2] } else { T::neg_infinity() };
                        now[s] = log_add([one, two, three]) + prob(t, labels.at(s));
                    }
                }
                let last = &rows[(steps - 1) * width..];
                let second = if len > 0 { last[states - 2] } else { T::neg_infinity() };
                -log_add([last[states - 1], second, T::neg_infinity()])
            };
        }
        loss.finish();
        alpha.finish();
        Ok(())
    }

    /// The gradient of what `log_probs` are the logarithms of the softmax of, as PyTorch has it: each class's
    /// probability less that of being in it, given the targets.
    pub fn backward(
        &self,
        log_probs: &View<'_>,
        targets: &View<'_>,
        forward: Forward<'_, '_>,
        out: &ViewMut<'_>,
    ) -> Result<(), String> {
        match out.dtype() {
            DType::F32 => self.backward_as::<f32>(log_probs, targets, forward, out),
            DType::F64 => self.backward_as::<f64>(log_probs, targets, forward, out),
            other => Err(format!("\"ctc_loss_backward_cpu\" not implemented for {}", other.torch_name())),
        }
    }

    fn backward_as<T: Real>(
        &self,
        log_probs: &View<'_>,
        targets: &View<'_>,
        forward: Forward<'_, '_>,
        out: &ViewMut<'_>,
    ) -> Result<(), String> {
        let (batch, classes) = (log_probs.sizes()[1] as usize, log_probs.sizes()[2] as usize);
        let (probs, all) = (pack::<T>(log_probs), pack::<i64>(targets));
        let (grads, losses, alphas) = (pack::<T>(forward.grad), pack::<T>(forward.losses), pack::<T>(forward.alphas));
        let (frames, width) = (forward.alphas.sizes()[1] as usize, forward.alphas.sizes()[2] as usize);
        let none = T::neg_infinity();
        let (mut now, mut after) = (Temp::filled(width, none), Temp::filled(width, none));
        let mut target = Target::<T>::new(out);
        let sums = target.slice();
        // Frames beyond a sample's end have no gradient.
        sums.fill(T::zero());
        for b in 0..batch {
            let (steps, loss, grad) = (self.input_lengths[b] as usize, losses[b], grads[b]);
            let labels = self.labels(&all, targets.sizes(), b, classes)?;
            if forward.zero_infinity && loss == T::infinity() {
                continue;
            }
            let states = labels.states();
            for t in (0..steps).rev() {
                let row = &mut sums[(t * batch + b) * classes..][..classes];
                let probs = &probs[(t * batch + b) * classes..][..classes];
                let alphas = &alphas[(b * frames + t) * width..][..width];
                // First the logarithms of the sums over all ways that are in the class at this time.
                row.fill(none);
                for s in 0..states {
                    let way = if t + 1 == steps {
                        if s + 2 >= states { T::zero() } else { none }
                    } else {
                        let two = if s + 1 < states { after[s + 1] } else { none };
                        let three = if s + 2 < states && labels.skips(s + 2) { after[s + 2] } else { none };
                        log_add([after[s], two, three])
                    };
                    let class = labels.at(s);
                    now[s] = way + probs[class];
                    row[class] = log_add([row[class], alphas[s] + now[s], none]);
                }
                for (x, &p) in row.iter_mut().zip(probs) {
                    // A class on no path has no part in a finite loss, however improbable it is.
                    let part = if *x == none && loss < T::infinity() { T::zero() } else { (*x + loss - p).exp() };
                    *x = (p.exp() - part) * grad;
                }
                std::mem::swap(&mut now, &mut after);
            }
        }
        target.finish();
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
    use restride_tensor::{Layout, RawTensor};

    #[test]
    fn ctc_sums_over_the_alignments() {
        // Two frames, one label: blank-a, a-blank, a-a.
        let p = [0.3f64, 0.7, 0.6, 0.4];
        let x = RawTensor::from_slice(&p.map(f64::ln), &[2, 1, 2]);
        let t = RawTensor::from_slice(&[1i64], &[1, 1]);
        let (loss, alpha) = (
            RawTensor::zeros(DType::F64, Layout::contiguous(&[1])),
            RawTensor::zeros(DType::F64, Layout::contiguous(&[1, 2, 3])),
        );
        let ctc = Ctc { input_lengths: &[2], target_lengths: &[1], blank: 0 };
        ctc.run(&x.read().view(), &t.read().view(), &loss.write().view_mut(), &alpha.write().view_mut()).unwrap();
        let all = 0.3f64 * 0.4 + 0.7 * 0.6 + 0.7 * 0.4;
        assert!((loss.get(&[0]).as_f64() + all.ln()).abs() < 1e-12);
        // The first frame is blank in the first alignment alone, the second in the second.
        let (grad, out) =
            (RawTensor::from_slice(&[2f64], &[1]), RawTensor::zeros(DType::F64, Layout::contiguous(&[2, 1, 2])));
        let (g, l, a) = (grad.read(), loss.read(), alpha.read());
        let (g, l, a) = (g.view(), l.view(), a.view());
        let forward = Forward { grad: &g, losses: &l, alphas: &a, zero_infinity: false };
        ctc.backward(&x.read().view(), &t.read().view(), forward, &out.write().view_mut()).unwrap();
        let blank = [0.3 * 0.4 / all, 0.7 * 0.6 / all];
        let want = [0.3 - blank[0], 0.7 - (1.0 - blank[0]), 0.6 - blank[1], 0.4 - (1.0 - blank[1])];
        let have = out.to_elements::<f64>();
        assert!(have.iter().zip(want).all(|(h, w)| (h - 2.0 * w).abs() < 1e-12), "{have:?}");
    }
}
