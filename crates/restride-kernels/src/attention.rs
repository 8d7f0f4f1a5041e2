//! Scaled dot-product attention: a product, a softmax and a product per batch entry and stretch of queries, so that scores
//! are never all in memory at once.

use crate::matmul::blocked::Matrix;
use crate::matmul::packed::{InPlace, packed_len, write};
use crate::matmul::panels::Strided;
use crate::matmul::{Gemm, Matrices};
use crate::norm::softmax::{Softmax, softmax_row};
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Compute, Packed, Stored, compute_room, pack_owned, unpack, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::{DType, Dims, Layout, View, ViewMut};

/// Most queries that are computed at a time: whole tiles of a product.
const TILE: usize = 72;
/// Rows of the tiles of a product.
const ROWS: usize = 6;

/// Queries that are computed at a time, of `l`.
fn tile(l: usize) -> usize {
    l.div_ceil(l.div_ceil(TILE).max(1)).next_multiple_of(ROWS).clamp(1, l.max(1))
}

/// Elements of an entry's keys in panels, which several tiles of queries read; none where there is one.
fn packed_keys(dtype: DType, l: usize, e: usize, s: usize) -> usize {
    if l > TILE { packed_len(dtype, e, s).unwrap_or(0) } else { 0 }
}

/// Mask and scale of attention.
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

/// Results of attention.
#[derive(Clone, Copy)]
pub struct Results<'a> {
    /// `… × L × Ev`.
    pub out: &'a ViewMut<'a>,
    /// Logarithm of the sum of exponentials of each query's scores, `… × L`.
    pub logsumexp: Option<&'a ViewMut<'a>>,
    /// The softmax of the scores, `… × L × S`.
    pub weights: Option<&'a ViewMut<'a>>,
}

/// A batch of matrices, where they are or, in another type than the one that is computed in, copied.
struct Batch<'a, T: Copy> {
    own: Option<Packed<'a, T>>,
    all: Matrices<T>,
}

impl<'a, T: Compute> Batch<'a, T> {
    /// The last two dimensions of a view; the others are broadcast to `outer`. With `repeat`, the last of the others is
    /// repeated until it fits, each entry as often in a row.
    fn new(view: &View<'a>, outer: &[i64], repeat: bool) -> Result<Self, String> {
        let mut layout = view.layout().clone();
        let own = (view.dtype() != T::DTYPE).then(|| {
            // Dimensions that repeat one cell are copied once.
            let once = unrepeated(&layout);
            // SAFETY: a part of the view's cells.
            let own = pack_owned::<T>(&unsafe { view.with_layout(&once) });
            let places = Layout::contiguous(&once.sizes);
            let strides = places.strides.iter().zip(&once.sizes).map(|(&s, &n)| if n == 1 { 0 } else { s });
            layout = Layout::strided(&layout.sizes, &strides.collect::<Dims<i64>>(), 0);
            Packed::Owned(own)
        });
        let rank = layout.rank();
        let mut full: Dims<i64> = outer.into();
        let shared = if rank > 2 { layout.sizes[rank - 3] } else { 0 };
        if repeat && shared > 0 && outer.last().is_some_and(|&n| n != shared) {
            let want = outer[outer.len() - 1];
            if want % shared != 0 {
                return Err(format!("{want} heads cannot share {shared}"));
            }
            full.pop();
            full.extend([shared, want / shared]);
            layout = layout.unsqueeze(rank as i64 - 2).map_err(|e| e.0)?;
        }
        let rank = layout.rank();
        let wide: Dims<i64> = full.iter().chain(&layout.sizes[rank - 2..]).copied().collect();
        let layout = layout.expand(&wide).map_err(|e| e.0)?;
        let base = own.as_ref().map_or(view.base() as *const T, |own| own.as_ptr());
        Ok(Batch { own, all: Matrices::new(base as *mut T, &layout, &full) })
    }
    /// An entry's matrix.
    fn at(&self, entry: usize) -> Matrix<T> {
        let (p, row, col) = self.all.at(entry);
        debug_assert!(self.own.as_ref().is_none_or(|own| !own.is_empty()));
        (p, row, col)
    }
}

/// A layout's cells, each dimension that repeats one of them once.
fn unrepeated(layout: &Layout) -> Layout {
    let mut once = layout.clone();
    for (n, &s) in once.sizes.iter_mut().zip(&layout.strides) {
        *n = if s == 0 { (*n).min(1) } else { *n };
    }
    once
}

/// Scratch bytes of [`attention`]; operands are queries, keys, values and a mask.
pub fn attention_room(
    operands: [Option<Stored<'_>>; 4],
    keys: usize,
    out: Stored<'_>,
    logsumexp: bool,
    weights: bool,
) -> usize {
    let rank = out.1.rank();
    let (queries, rows) = (out.1.sizes[rank - 2] as usize, out.1.sizes[..rank - 1].iter().product::<i64>() as usize);
    let compute = if out.0 == DType::F64 { DType::F64 } else { DType::F32 };
    let room = |n: usize| compute_room(compute, n as i64);
    let copied = |(d, l): Stored<'_>| if d == compute { 0 } else { room(unrepeated(l).numel() as usize) };
    operands.into_iter().flatten().map(copied).sum::<usize>()
        + if out.0 == compute { 0 } else { room(out.1.numel() as usize) }
        + room(tile(queries) * keys)
        + operands[0].map_or(0, |q| room(packed_keys(compute, queries, q.1.sizes[q.1.rank() - 1] as usize, keys)))
        + if logsumexp { room(rows) } else { 0 }
        + if weights { room(rows * keys) } else { 0 }
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
    let last = |x: &View<'_>| x.sizes().last_chunk::<2>().map(|&[a, b]| (a as usize, b as usize));
    let masks = |m: &View<'_>| last(m).is_some_and(|(a, b)| (a == 1 || a == l) && (b == 1 || b == s));
    if q.sizes().len() < 2
        || last(k) != Some((s, e))
        || last(v) != Some((s, ev))
        || !settings.mask.as_ref().is_none_or(masks)
    {
        return Err("queries, keys, values and mask do not have the sizes of one attention".into());
    }
    let entries: usize = outer.iter().map(|&n| n as usize).product();
    let rows = entries * l;
    let full: Dims<i64> = outer.iter().copied().chain([l as i64, e as i64]).collect();
    let wide = q.layout().expand(&full).map_err(|e| e.0)?;
    // SAFETY: the same cells, some of them repeated.
    let q = Batch::<T>::new(&unsafe { q.with_layout(&wide) }, outer, false)?;
    let (k, v) = (Batch::<T>::new(k, outer, grouped)?, Batch::<T>::new(v, outer, grouped)?);
    let mask = settings.mask.as_ref().map(|m| Batch::<T>::new(m, outer, false)).transpose()?;
    let thin = settings.mask.map_or([false; 2], |m| [2, 1].map(|d| m.sizes()[m.sizes().len() - d] == 1));
    let selects = settings.selects;
    let scale = T::of(settings.scale);
    let mut own = (results.out.dtype() != T::DTYPE).then(|| Temp::filled(rows * ev, T::zero()));
    let own_layout = Layout::contiguous(sizes);
    let out = match &mut own {
        None => Matrices::new(results.out.base() as *mut T, results.out.layout(), outer),
        Some(own) => Matrices::new(own.as_mut_ptr(), &own_layout, outer),
    };
    let mut sums = Temp::filled(if results.logsumexp.is_some() { rows } else { 0 }, T::zero());
    let mut weights = Temp::filled(if results.weights.is_some() { rows * s } else { 0 }, T::zero());
    let tile = tile(l);
    let tiles = l.div_ceil(tile);
    let packed = packed_keys(T::DTYPE, l, e, s);
    let (sums_at, weights_at) = (par::Shared::new(&mut sums), par::Shared::new(&mut weights));
    let (causal, wants_sums, wants_weights) = (settings.causal, results.logsumexp.is_some(), results.weights.is_some());
    let scratch = || (Temp::filled(tile * s, T::zero()), Temp::filled(packed, T::zero()), None);
    par::each_with(threads, entries * tiles, &scratch, &|(scores, keys, here), item| {
        let (entry, first) = (item / tiles, item % tiles * tile);
        let len = tile.min(l - first);
        let row = entry * l + first;
        let scores = &mut scores[..len * s];
        // Keys that the last of these queries sees, and so all others see at most.
        let shown = if causal { (first + len).min(s) } else { s };
        if e == 0 || s == 0 {
            scores.fill(T::zero());
        } else {
            let (q, k) = (down(q.at(entry), first), k.at(entry));
            let (k, to) = ((k.0, k.2, k.1), (scores.as_mut_ptr(), s as isize, 1));
            // SAFETY: `len` rows of queries from the first, keys as columns, and scores for them; packed keys are the entry's.
            unsafe {
                if packed == 0 {
                    T::product((len, shown, e), len == 1 || s == 1, q, k, to, false, 1)
                } else {
                    if here.replace(entry) != Some(entry) {
                        write(&Strided::new(k), (e, s), keys.as_mut_ptr());
                    }
                    let keys = InPlace::new((e, s), keys.as_ptr());
                    T::product_of((len, shown, e), &Strided::new(q), &keys, to, false, 1)
                }
            }
        }
        for i in 0..len {
            let seen = if causal { (first + i + 1).min(s) } else { s };
            let (line, hidden) = scores[i * s..][..s].split_at_mut(seen);
            hidden.fill(T::zero());
            isa::run(ScaledScores(line, scale));
            if let Some(m) = &mask {
                let line_of = down(m.at(entry), if thin[0] { 0 } else { first + i });
                for (j, x) in line.iter_mut().enumerate() {
                    let column = if thin[1] { 0 } else { j as isize };
                    // SAFETY: an element of the mask, which has these rows and columns or one for all.
                    let m = unsafe { line_of.0.offset(column * line_of.2).read() };
                    *x = match selects {
                        true if m == T::zero() => T::neg_infinity(),
                        true => *x,
                        false => *x + m,
                    };
                }
            }
            if wants_sums {
                // SAFETY: this row's number, which is this item's alone.
                unsafe { sums_at.at(row + i).write(logsumexp(line)) };
            }
            softmax_row(line, Softmax::Safe);
        }
        if wants_weights {
            // SAFETY: this item's rows of the weights, which no other item uses.
            unsafe { std::slice::from_raw_parts_mut(weights_at.at(row * s), len * s) }.copy_from_slice(scores);
        }
        let (base, down_by, right_by) = out.at(entry);
        let to = (base.wrapping_offset(first as isize * down_by), down_by, right_by);
        if s == 0 {
            for (i, j) in (0..len).flat_map(|i| (0..ev).map(move |j| (i as isize, j as isize))) {
                // SAFETY: elements of this item's rows of the result, which no other item uses.
                unsafe { to.0.offset(i * to.1 + j * to.2).write(T::zero()) };
            }
        } else if ev > 0 {
            let from = (scores.as_ptr(), s as isize, 1);
            // SAFETY: the scores of `len` queries, values of the keys that they see, and this item's rows of the result, which no other item uses.
            unsafe { T::product((len, ev, shown), len == 1 || ev == 1, from, v.at(entry), to, false, 1) }
        }
    });
    if let Some(own) = &own {
        unpack(own, results.out);
    }
    if let Some(out) = &results.logsumexp {
        unpack(&sums, out);
    }
    if let Some(out) = &results.weights {
        unpack(&weights, out);
    }
    Ok(())
}

/// A row of scores times their scale.
struct ScaledScores<'a, T>(&'a mut [T], T);
impl<T: Real> isa::Work for ScaledScores<'_, T> {
    type Out = ();
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().for_each(|x| *x *= self.1);
    }
}

/// The matrix from a row on.
fn down<T>((p, row, col): Matrix<T>, by: usize) -> Matrix<T> {
    (p.wrapping_offset(by as isize * row), row, col)
}

/// The logarithm of the sum of exponentials; minus infinity for none.
fn logsumexp<T: Real>(row: &[T]) -> T {
    let max = row.iter().fold(T::neg_infinity(), |m, &x| if x > m || x.is_nan() { x } else { m });
    if max == T::neg_infinity() {
        return max;
    }
    max + isa::run(ScoreExponentials(row, max)).ln()
}

/// The sum of the exponentials of a row less its largest element.
struct ScoreExponentials<'a, T>(&'a [T], T);
impl<T: Real> isa::Work for ScoreExponentials<'_, T> {
    type Out = T;
    const WIDEST: bool = size_of::<T>() == 4;
    #[inline(always)]
    fn run(self) -> T {
        crate::norm::softmax::sum(self.0, |x| (x - self.1).exp_fast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    fn tensor(sizes: &[i64], seed: i64) -> RawTensor {
        let n = sizes.iter().product::<i64>();
        let data: Vec<f64> = (0..n).map(|i| ((i * 7919 + seed * 31) % 101) as f64 * 0.02 - 1.0).collect();
        RawTensor::from_slice(&data, sizes)
    }

    #[test]
    fn is_the_softmax_of_scores_times_values() {
        // More queries than a tile, heads in groups, a mask that hides a row completely.
        let (b, h, kh, l, s, e, ev) = (2i64, 4i64, 2i64, 80i64, 9i64, 5i64, 3i64);
        let (q, k, v) = (tensor(&[b, h, l, e], 1), tensor(&[b, kh, s, e], 2), tensor(&[b, kh, s, ev], 3));
        let mask: Vec<u8> = (0..l * s).map(|i| ((i / s) != 3 && i % 5 != 2) as u8).collect();
        let bits = RawTensor::zeros(DType::Bool, Layout::contiguous(&[l, s]));
        bits.storage().write(&mask);
        let out = RawTensor::zeros(DType::F64, Layout::permuted(&[b, h, l, ev], &[0, 2, 1, 3]));
        let sums = RawTensor::zeros(DType::F64, Layout::contiguous(&[b, h, l]));
        for causal in [false, true] {
            let (locked, mut to, mut sums_to) = (bits.read(), out.write(), sums.write());
            let settings = Settings { mask: Some(locked.view()), selects: true, causal, scale: 0.7 };
            let results = Results { out: &to.view_mut(), logsumexp: Some(&sums_to.view_mut()), weights: None };
            attention(&q.read().view(), &k.read().view(), &v.read().view(), true, &settings, &results, 2).unwrap();
            drop((to, sums_to));
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
