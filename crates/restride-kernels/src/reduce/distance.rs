//! Distances between rows.

use crate::reduce::norm;
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Stored, Target, compute_room, pack, packed_rooms, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use crate::support::stack::Stack;
use restride_tensor::{DType, View, ViewMut};

/// p-norms of the differences of each row of `a` (the last dimension) and each of `b`, for every matrix of a batch:
/// sizes `[.., n, m]`, `[.., k, m]` and `[.., n, k]`.
pub fn distances(a: &View<'_>, b: &View<'_>, p: f64, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    let [.., n, k] = *out.sizes() else { return Err("distances have two dimensions".to_string()) };
    let (n, k) = (n as usize, k as usize);
    let m = a.sizes().last().map_or(0, |&m| m as usize);
    with_compute!(float out.dtype(), T => {
        let (a, b) = (pack::<T>(a), pack::<T>(b));
        let mut target = Target::<T>::new(out);
        if let Some(power) = Power::of(p) {
            in_tiles(&a, &b, [n, k, m], power, false, target.slice(), threads);
            target.finish();
            return Ok(());
        }
        par::pieces(threads, target.slice(), k.max(1), &|i, piece| {
            let mut difference = Temp::filled(m, T::default());
            let x = &a[i * m..][..m];
            for (j, d) in piece.iter_mut().enumerate() {
                let y = &b[(i / n * k + j) * m..][..m];
                *d = between(x, y, p, &mut difference);
            }
        });
        target.finish();
    });
    Ok(())
}

/// p-norms of the differences of all pairs of rows of a matrix, those of the first row first.
pub fn pairs(x: &View<'_>, p: f64, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    let [n, m] = *x.sizes() else { return Err("pairs of rows need a matrix".to_string()) };
    let (n, m) = (n as usize, m as usize);
    with_compute!(float out.dtype(), T => {
        let x = pack::<T>(x);
        let mut target = Target::<T>::new(out);
        if let Some(power) = Power::of(p) {
            in_tiles(&x, &x, [n, n, m], power, true, target.slice(), threads);
            target.finish();
            return Ok(());
        }
        let mut difference = Temp::filled(m, T::default());
        let all = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        for (d, (i, j)) in target.slice().iter_mut().zip(all) {
            *d = between(&x[i * m..][..m], &x[j * m..][..m], p, &mut difference);
        }
        target.finish();
    });
    Ok(())
}

/// Scratch bytes of [`distances`] and [`pairs`]; operands are given as broadcast.
pub fn room(operands: &[Stored<'_>], out: Stored<'_>) -> usize {
    let row = operands[0].1.sizes.last().copied().unwrap_or(0);
    packed_rooms(operands.iter().copied().chain([out])) + compute_room(out.0, row)
}

/// Norms whose terms are cheap: [`in_tiles`] computes them.
#[derive(Clone, Copy)]
enum Power {
    One,
    Two,
}

impl Power {
    fn of(p: f64) -> Option<Power> {
        match p {
            1.0 => Some(Power::One),
            2.0 => Some(Power::Two),
            _ => None,
        }
    }
}

/// Rows of `b` that are side by side in a tile.
const LANES: usize = 16;
/// Columns of a tile: a sum begins anew in each, so that its rounding errors stay small.
const DEPTH: usize = 128;
/// Rows of `a` whose sums are in registers at once.
const HEIGHT: usize = 4;
/// Rows of `a` that a piece of work has, where threads share them; without threads four times as many, for which `b` is put in tiles
/// less often.
const PIECE: usize = 64;

/// [`distances`] of `n` and `k` rows of `m` numbers, or [`pairs`] of `n` rows, which `b` has, too.
fn in_tiles<T: Real>(
    a: &[T],
    b: &[T],
    [n, k, m]: [usize; 3],
    power: Power,
    pairs: bool,
    out: &mut [T],
    threads: usize,
) {
    let piece = if threads > 1 { PIECE } else { 4 * PIECE };
    let pieces = n.div_ceil(piece);
    if out.is_empty() {
        return;
    }
    let batches = if pairs { 1 } else { out.len() / (n * k) };
    let out = par::Shared::new(out);
    par::each(threads, batches * pieces, &|i| {
        let (batch, first) = (i / pieces, i % pieces * piece);
        let rows = piece.min(n - first);
        let a = &a[(batch * n + first) * m..][..rows * m];
        let b = &b[batch * k * m..][..k * m];
        let to = DistanceRows { out: &out, first: batch * n + first, k, pairs };
        match power {
            Power::One => {
                isa::run(Tiles { a, b, sizes: [rows, k, m], to, add: |s: T, d: T| s + d.abs(), end: |s: T| s })
            }
            Power::Two => isa::run(Tiles {
                a,
                b,
                sizes: [rows, k, m],
                to,
                add: |s: T, d: T| d.mul_add(d, s),
                end: |s: T| s.sqrt(),
            }),
        }
    });
}

/// Where the distances of some rows are stored.
struct DistanceRows<'a, T> {
    out: &'a par::Shared<T>,
    /// Number of the first one.
    first: usize,
    /// Rows that each is compared with.
    k: usize,
    /// Whether it is compared with those behind it alone, of the same `k` rows.
    pairs: bool,
}

impl<T> DistanceRows<'_, T> {
    /// The first column of a row that is stored, and the position of column 0, wrapping.
    #[inline(always)]
    fn row(&self, i: usize) -> (usize, usize) {
        let i = self.first + i;
        match self.pairs {
            // Rows before have `k - 1`, `k - 2` and so on.
            true => (i + 1, (i * (2 * self.k - i - 1) / 2).wrapping_sub(i + 1)),
            false => (0, i * self.k),
        }
    }
}

/// Distances of `sizes[0]` rows of `a` from `sizes[1]` of `b`, `sizes[2]` long: `end` of the sum to which `add` adds a term of each
/// difference.
struct Tiles<'a, T, F, G> {
    a: &'a [T],
    b: &'a [T],
    sizes: [usize; 3],
    to: DistanceRows<'a, T>,
    add: F,
    end: G,
}

impl<T: Real, F: Fn(T, T) -> T, G: Fn(T) -> T> isa::Work for Tiles<'_, T, F, G> {
    type Out = ();
    const WIDEST: bool = matches!(T::DTYPE, DType::F32);
    #[inline(always)]
    fn run(self) {
        let Tiles { a, b, sizes: [n, k, m], to, add, end } = self;
        // Each row of the tile is a line of the cache.
        let mut tile = Stack::<[T; LANES], DEPTH>::new();
        let tile = tile.filled(DEPTH, [T::zero(); LANES]);
        // Columns before are stored for none of the rows.
        let before = to.row(0).0 / LANES * LANES;
        for j in (before..k).step_by(LANES) {
            let columns = LANES.min(k - j);
            // Without columns, differences are 0.
            for start in (0..m.max(1)).step_by(DEPTH) {
                let depth = DEPTH.min(m - start);
                for c in 0..columns {
                    let row = &b[(j + c) * m + start..][..depth];
                    for (t, &x) in tile.iter_mut().zip(row) {
                        t[c] = x;
                    }
                }
                let tile = &tile[..depth];
                for i in (0..n).step_by(HEIGHT) {
                    if to.row(i).0 >= j + columns {
                        break;
                    }
                    let rows = HEIGHT.min(n - i);
                    // The last rows may be there more than once.
                    let mut from = [&a[..0]; HEIGHT];
                    for (r, from) in from.iter_mut().enumerate() {
                        *from = &a[(i + r.min(rows - 1)) * m + start..][..depth];
                    }
                    let mut sums = [[T::zero(); LANES]; HEIGHT];
                    for (c, t) in tile.iter().enumerate() {
                        for r in 0..HEIGHT {
                            let x = from[r][c];
                            for l in 0..LANES {
                                sums[r][l] = add(sums[r][l], x - t[l]);
                            }
                        }
                    }
                    for (r, sums) in sums[..rows].iter_mut().enumerate() {
                        let (skipped, at) = to.row(i + r);
                        let skipped = skipped.saturating_sub(j);
                        if skipped >= columns {
                            break;
                        }
                        // SAFETY: distances of a row that is this piece's alone; the result is borrowed until all are done.
                        let to = unsafe {
                            let at = to.out.at(at.wrapping_add(j + skipped));
                            std::slice::from_raw_parts_mut(at, columns - skipped)
                        };
                        if start > 0 {
                            sums[skipped..].iter_mut().zip(&*to).for_each(|(s, &o)| *s = o + *s);
                        }
                        if start + depth == m {
                            sums.iter_mut().for_each(|s| *s = end(*s));
                        }
                        to.copy_from_slice(&sums[skipped..columns]);
                    }
                }
            }
        }
    }
}

fn between<T: Real>(x: &[T], y: &[T], p: f64, difference: &mut [T]) -> T {
    for ((d, &x), &y) in difference.iter_mut().zip(x).zip(y) {
        *d = x - y;
    }
    norm(difference, p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{Layout, RawTensor};

    #[test]
    fn rows_meet_rows() {
        let a = RawTensor::from_slice(&[0.0f32, 0.0, 3.0, 4.0], &[2, 2]);
        let b = RawTensor::from_slice(&[3.0f32, 4.0, 0.0, 1.0, 0.0, 0.0], &[3, 2]);
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 3]));
        distances(&a.read().view(), &b.read().view(), 2.0, &out.write().view_mut(), 2).unwrap();
        assert_eq!(out.to_elements::<f32>()[..3], [5.0, 1.0, 0.0]);
        distances(&a.read().view(), &b.read().view(), 1.0, &out.write().view_mut(), 1).unwrap();
        assert_eq!(out.to_elements::<f32>(), [7.0, 1.0, 0.0, 0.0, 6.0, 7.0]);
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[3]));
        pairs(&b.read().view(), 0.0, &out.write().view_mut(), 1).unwrap();
        assert_eq!(out.to_elements::<f32>(), [2.0, 2.0, 1.0]);
    }

    #[test]
    fn tiles_have_the_norms_of_differences() {
        for [n, k, m] in [[1, 1, 1], [5, 17, 3], [66, 33, 130], [3, 40, 0], [0, 3, 2], [2, 0, 2]] {
            let numbers = |rows: usize, seed: usize| -> Vec<f64> {
                (0..2 * rows * m).map(|i| ((i * 7 + seed) * 31 % 64) as f64 - 32.0).collect()
            };
            let (a, b) = (numbers(n, 1), numbers(k, 5));
            let sizes = |rows: usize, columns: usize| [2, rows as i64, columns as i64];
            let out = RawTensor::zeros(DType::F64, Layout::contiguous(&sizes(n, k)));
            for p in [1.0, 2.0, f64::INFINITY] {
                let (x, y) = (RawTensor::from_slice(&a, &sizes(n, m)), RawTensor::from_slice(&b, &sizes(k, m)));
                let mut difference = vec![0.0; m];
                let want: Vec<f64> = (0..2 * n * k)
                    .map(|i| {
                        let (row, column) = (i / k, i / (n * k) * k + i % k);
                        between(&a[row * m..][..m], &b[column * m..][..m], p, &mut difference)
                    })
                    .collect();
                isa::tests::on_each(|isa| {
                    distances(&x.read().view(), &y.read().view(), p, &out.write().view_mut(), 1).unwrap();
                    // Integers, and their roots: exact.
                    assert_eq!(out.to_elements::<f64>(), want, "{n} {k} {m} {p} {isa:?}");
                });
            }
        }
    }

    #[test]
    fn pairs_have_the_distances_of_their_rows() {
        for [n, m] in [[0, 3], [1, 3], [2, 1], [5, 0], [16, 4], [17, 130], [70, 3], [131, 200]] {
            let numbers: Vec<f32> = (0..n * m).map(|i| ((i * 7 + 1) * 31 % 64) as f32 * 0.37 - 9.0).collect();
            let x = RawTensor::from_slice(&numbers, &[n as i64, m as i64]);
            for p in [1.0, 2.0, 3.0] {
                let all = RawTensor::zeros(DType::F32, Layout::contiguous(&[n as i64, n as i64]));
                distances(&x.read().view(), &x.read().view(), p, &all.write().view_mut(), 1).unwrap();
                let all = all.to_elements::<f32>();
                let want: Vec<f32> = (0..n).flat_map(|i| all[i * n + i + 1..(i + 1) * n].to_vec()).collect();
                isa::tests::on_each(|isa| {
                    for threads in [1, 3] {
                        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[want.len() as i64]));
                        pairs(&x.read().view(), p, &out.write().view_mut(), threads).unwrap();
                        assert_eq!(out.to_elements::<f32>(), want, "{n} {m} {p} {threads} {isa:?}");
                    }
                });
            }
        }
    }

    #[test]
    fn what_is_no_number_has_no_distance() {
        let a = RawTensor::from_slice(&[f32::NAN, 0.0, f32::INFINITY, 0.0], &[2, 2]);
        let b = RawTensor::from_slice(&[1.0f32, 2.0, f32::INFINITY, 0.0], &[2, 2]);
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[2, 2]));
        for p in [1.0, 2.0, f64::INFINITY] {
            distances(&a.read().view(), &b.read().view(), p, &out.write().view_mut(), 1).unwrap();
            let found = out.to_elements::<f32>();
            assert!(
                found[0].is_nan() && found[1].is_nan() && found[2] == f32::INFINITY && found[3].is_nan(),
                "{found:?}"
            );
        }
    }
}
