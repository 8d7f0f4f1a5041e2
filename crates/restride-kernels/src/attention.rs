//! Scaled dot-product attention: a product, a softmax and a product per batch entry and stretch of queries, so that scores
//! are never all in memory at once.

use crate::gemm::{Gemm, matmul};
use crate::pack::{Compute, Target, pack, unpack, with_compute};
use crate::par;
use crate::softmax::{Real, Softmax, softmax_row};
use restride_tensor::{Layout, View, ViewMut};

/// Queries that are computed at a time.
const TILE: usize = 64;

/// What attention is told besides queries, keys and values.
#[derive(Clone, Copy)]
pub struct Settings<'a> {
    /// Added to the scores, or where it `selects` which scores count; broadcast to them.
    pub mask: Option<View<'a>>,
    /// The mask says which scores count.
    pub selects: bool,
    /// Each query sees the keys up to its own position only.
    pub causal: bool,
    /// Factor of the scores.
    pub scale: f64,
}

/// What attention gives.
#[derive(Clone, Copy)]
pub struct Results<'a> {
    /// `… × L × Ev`.
    pub out: ViewMut<'a>,
    /// Logarithm of the sum of exponentials of each query's scores, `… × L`.
    pub logsumexp: Option<ViewMut<'a>>,
    /// The softmax of the scores, `… × L × S`.
    pub weights: Option<ViewMut<'a>>,
}

/// A batch of matrices, packed without what broadcasting repeats.
struct Batch<T> {
    data: Vec<T>,
    /// Which matrix each entry of the result's batch uses.
    of: Vec<usize>,
    /// Elements of a matrix.
    len: usize,
    /// Steps of a row and of a column within a matrix; 0 where one stands for all.
    row: usize,
    col: usize,
}

impl<T: Compute> Batch<T> {
    /// The last two dimensions of a view; the others are broadcast to `outer`. With `repeat`, the last of the others is
    /// repeated until it fits, each entry as often in a row. Rows and columns are all there unless they may be `thin`.
    fn new(view: &View<'_>, outer: &[i64], repeat: bool, thin: bool) -> Result<Self, String> {
        // Dimensions that repeat one cell are packed once.
        let mut l = view.layout().clone();
        for d in 0..l.rank() - if thin { 0 } else { 2 } {
            if l.strides[d] == 0 {
                l.sizes[d] = l.sizes[d].min(1);
            }
        }
        // SAFETY: a part of the view's cells.
        let data = pack::<T>(&unsafe { view.with_layout(&l) }).into_owned();
        let rank = l.rank();
        let (rows, cols) = (l.sizes[rank - 2], l.sizes[rank - 1]);
        let mut places = Layout::contiguous(&l.sizes[..rank - 2]);
        if repeat
            && rank > 2
            && outer.last().is_some_and(|&n| n != places.sizes[rank - 3] && places.sizes[rank - 3] > 0)
        {
            let (last, mut full) = (rank - 3, outer.to_vec());
            let (have, want) = (places.sizes[last], outer[outer.len() - 1]);
            if want % have != 0 {
                return Err(format!("{want} heads cannot share {have}"));
            }
            full.pop();
            full.extend([have, want / have]);
            places = places.unsqueeze(-1).and_then(|p| p.expand(&full)).map_err(|e| e.0)?;
        } else {
            places = places.expand(outer).map_err(|e| e.0)?;
        }
        let of = places.cells().into_iter().map(|c| c as usize).collect();
        Ok(Batch {
            data,
            of,
            len: (rows * cols) as usize,
            row: if rows == 1 { 0 } else { cols as usize },
            col: usize::from(cols != 1),
        })
    }
    fn at(&self, entry: usize) -> &[T] {
        &self.data[self.of[entry] * self.len..][..self.len]
    }
}

/// Attention. Queries are `… × L × E`, keys `… × S × E`, values `… × S × Ev`; the dimensions before broadcast to the
/// result's, heads of keys and values repeating where `grouped`.
pub fn attention(
    q: &View<'_>,
    k: &View<'_>,
    v: &View<'_>,
    grouped: bool,
    settings: &Settings<'_>,
    results: &Results<'_>,
    threads: usize,
) -> Result<(), String> {
    with_compute!(float results.out.dtype(), T => run::<T>(q, k, v, grouped, settings, results, threads))
}

fn run<T: Gemm + Real>(
    q: &View<'_>,
    k: &View<'_>,
    v: &View<'_>,
    grouped: bool,
    settings: &Settings<'_>,
    results: &Results<'_>,
    threads: usize,
) -> Result<(), String> {
    let sizes = results.out.sizes();
    let rank = sizes.len();
    let outer = &sizes[..rank - 2];
    let (l, ev) = (sizes[rank - 2] as usize, sizes[rank - 1] as usize);
    let e = q.sizes()[q.sizes().len() - 1] as usize;
    let s = k.sizes()[k.sizes().len() - 2] as usize;
    let entries: usize = outer.iter().map(|&n| n as usize).product();
    let rows = entries * l;
    let q = {
        // Every row of every matrix is there once, so that stretches of queries lie together.
        let full: Vec<i64> = outer.iter().copied().chain([l as i64, e as i64]).collect();
        let layout = q.layout().expand(&full).map_err(|e| e.0)?;
        // SAFETY: the same cells, some of them repeated.
        pack::<T>(&unsafe { q.with_layout(&layout) }).into_owned()
    };
    let (k, v) = (Batch::<T>::new(k, outer, grouped, false)?, Batch::<T>::new(v, outer, grouped, false)?);
    let mask = settings.mask.as_ref().map(|m| Batch::<T>::new(m, outer, false, true)).transpose()?;
    let selects = settings.selects;
    let scale = T::of(settings.scale);
    let mut target = Target::<T>::new(&results.out);
    let mut sums = vec![T::zero(); if results.logsumexp.is_some() { rows } else { 0 }];
    let mut weights = vec![T::zero(); if results.weights.is_some() { rows * s } else { 0 }];
    let tiles = l.div_ceil(TILE);
    let out = par::Shared::new(target.slice());
    let (sums_at, weights_at) = (par::Shared::new(&mut sums), par::Shared::new(&mut weights));
    let scratch = || vec![T::zero(); TILE.min(l) * s];
    par::each(threads, entries * tiles, scratch, |scores, item| {
        let (entry, first) = (item / tiles, item % tiles * TILE);
        let len = TILE.min(l - first);
        let row = entry * l + first;
        let scores = &mut scores[..len * s];
        if e == 0 || s == 0 {
            scores.fill(T::zero());
        } else {
            matmul((len, s, e), (&q[row * e..][..len * e], false), (k.at(entry), true), scores, false, 1);
        }
        for i in 0..len {
            let line = &mut scores[i * s..][..s];
            line.iter_mut().for_each(|x| *x = *x * scale);
            if let Some(m) = &mask {
                let (data, at) = (m.at(entry), (first + i) * m.row);
                for (j, x) in line.iter_mut().enumerate() {
                    let m = data[at + j * m.col];
                    *x = match selects {
                        true if m == T::zero() => T::neg_infinity(),
                        true => *x,
                        false => *x + m,
                    };
                }
            }
            let seen = if settings.causal { (first + i + 1).min(s) } else { s };
            let (line, hidden) = line.split_at_mut(seen);
            hidden.fill(T::zero());
            if results.logsumexp.is_some() {
                // SAFETY: this row's number, which is this item's alone.
                unsafe { sums_at.at(row + i).write(logsumexp(line)) };
            }
            softmax_row(line, Softmax::Safe);
        }
        if results.weights.is_some() {
            // SAFETY: this item's rows of the weights, nobody else's.
            unsafe { std::slice::from_raw_parts_mut(weights_at.at(row * s), len * s) }.copy_from_slice(scores);
        }
        // SAFETY: this item's rows of the result, nobody else's.
        let out = unsafe { std::slice::from_raw_parts_mut(out.at(row * ev), len * ev) };
        if s == 0 || ev == 0 {
            out.fill(T::zero());
        } else {
            matmul((len, ev, s), (scores, false), (v.at(entry), false), out, false, 1);
        }
    });
    target.finish();
    if let Some(out) = &results.logsumexp {
        unpack(&sums, out);
    }
    if let Some(out) = &results.weights {
        unpack(&weights, out);
    }
    Ok(())
}

/// The logarithm of the sum of exponentials; minus infinity for none.
fn logsumexp<T: Real>(row: &[T]) -> T {
    let max = row.iter().fold(T::neg_infinity(), |m, &x| if x > m || x.is_nan() { x } else { m });
    if max == T::neg_infinity() {
        return max;
    }
    max + crate::softmax::sum(row, |x| (x - max).exp_fast()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, Tensor};

    fn tensor(sizes: &[i64], seed: i64) -> Tensor {
        let n = sizes.iter().product::<i64>();
        let data: Vec<f64> = (0..n).map(|i| ((i * 7919 + seed * 31) % 101) as f64 * 0.02 - 1.0).collect();
        Tensor::from_slice(&data, sizes)
    }

    #[test]
    fn is_the_softmax_of_scores_times_values() {
        // More queries than a tile, heads in groups, a mask that hides a row completely.
        let (b, h, kh, l, s, e, ev) = (2i64, 4i64, 2i64, 70i64, 9i64, 5i64, 3i64);
        let (q, k, v) = (tensor(&[b, h, l, e], 1), tensor(&[b, kh, s, e], 2), tensor(&[b, kh, s, ev], 3));
        let mask: Vec<u8> = (0..l * s).map(|i| ((i / s) != 3 && i % 5 != 2) as u8).collect();
        let bits = Tensor::zeros(DType::Bool, Layout::contiguous(&[l, s]));
        bits.storage().write(&mask);
        let out = Tensor::zeros(DType::F64, Layout::permuted(&[b, h, l, ev], &[0, 2, 1, 3]));
        let sums = Tensor::zeros(DType::F64, Layout::contiguous(&[b, h, l]));
        for causal in [false, true] {
            let settings = Settings { mask: Some(bits.view()), selects: true, causal, scale: 0.7 };
            let results = Results { out: out.view_mut(), logsumexp: Some(sums.view_mut()), weights: None };
            attention(&q.view(), &k.view(), &v.view(), true, &settings, &results, 2).unwrap();
            for i in 0..b * h * l {
                let (x, y, z) = (i / (h * l), i / l % h, i % l);
                let score = |j: i64| -> f64 {
                    let dot = (0..e).map(|c| q.get(&[x, y, z, c]).as_f64() * k.get(&[x, y / 2, j, c]).as_f64());
                    dot.sum::<f64>() * 0.7
                };
                let seen: Vec<i64> =
                    (0..s).filter(|j| mask[(z * s + j) as usize] == 1 && !(causal && *j > z)).collect();
                let total: f64 = seen.iter().map(|&j| score(j).exp()).sum();
                let got = sums.get(&[x, y, z]).as_f64();
                assert!(if total == 0.0 { got == f64::NEG_INFINITY } else { (got - total.ln()).abs() < 1e-12 });
                for c in 0..ev {
                    let sum = seen.iter().map(|&j| score(j).exp() * v.get(&[x, y / 2, j, c]).as_f64()).sum::<f64>();
                    let want = if total == 0.0 { 0.0 } else { sum / total };
                    assert!((out.get(&[x, y, z, c]).as_f64() - want).abs() < 1e-12);
                }
            }
        }
    }
}
