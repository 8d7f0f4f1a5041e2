//! Distances between rows.

use crate::reduce::norm;
use crate::support::isa;
use crate::support::number::Real;
use crate::support::pack::{Stored, Target, compute_room, pack, packed_rooms, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::{View, ViewMut};

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
            in_tiles(&a, &b, [n, k, m], power, target.slice(), threads);
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
pub fn pairs(x: &View<'_>, p: f64, out: &ViewMut<'_>) -> Result<(), String> {
    let [n, m] = *x.sizes() else { return Err("pairs of rows need a matrix".to_string()) };
    let (n, m) = (n as usize, m as usize);
    with_compute!(float out.dtype(), T => {
        let x = pack::<T>(x);
        let mut target = Target::<T>::new(out);
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
/// Rows of `a` that a piece of work has.
const PIECE: usize = 64;

/// [`distances`] of `n` and `k` rows of `m` numbers.
fn in_tiles<T: Real>(a: &[T], b: &[T], [n, k, m]: [usize; 3], power: Power, out: &mut [T], threads: usize) {
    let pieces = n.div_ceil(PIECE);
    if pieces == 0 || k == 0 {
        return;
    }
    let batches = out.len() / (n * k);
    let out = par::Shared::new(out);
    par::each(threads, batches * pieces, &|i| {
        let (batch, first) = (i / pieces, i % pieces * PIECE);
        let rows = PIECE.min(n - first);
        let a = &a[(batch * n + first) * m..][..rows * m];
        let b = &b[batch * k * m..][..k * m];
        // SAFETY: rows of the result that no other piece has; the slice is borrowed until all are done.
        let out = unsafe { std::slice::from_raw_parts_mut(out.at((batch * n + first) * k), rows * k) };
        match power {
            Power::One => isa::run(Tiles { a, b, m, out, term: |d: T| d.abs(), join: |s: T, d: T| s + d }),
            Power::Two => {
                isa::run(Tiles { a, b, m, out: &mut *out, term: |d: T| d * d, join: |s: T, d: T| s + d });
                isa::run(DistanceRoots(out));
            }
        }
    });
}

/// Distances of all rows of `a`, `m` long, from all of `b`: `join` of the `term` of each difference.
struct Tiles<'a, T, F, G> {
    a: &'a [T],
    b: &'a [T],
    m: usize,
    out: &'a mut [T],
    term: F,
    join: G,
}

impl<T: Real, F: Fn(T) -> T, G: Fn(T, T) -> T> isa::Work for Tiles<'_, T, F, G> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let Tiles { a, b, m, out, term, join } = self;
        out.fill(T::zero());
        let k = b.len().checked_div(m).unwrap_or(0);
        let n = a.len().checked_div(m).unwrap_or(0);
        let mut tile = [[T::zero(); LANES]; DEPTH];
        for j in (0..k).step_by(LANES) {
            let columns = LANES.min(k - j);
            for start in (0..m).step_by(DEPTH) {
                let depth = DEPTH.min(m - start);
                for c in 0..columns {
                    let row = &b[(j + c) * m + start..][..depth];
                    for (t, &x) in tile.iter_mut().zip(row) {
                        t[c] = x;
                    }
                }
                let tile = &tile[..depth];
                let mut i = 0;
                while i < n {
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
                                sums[r][l] = join(sums[r][l], term(x - t[l]));
                            }
                        }
                    }
                    for r in 0..rows {
                        let to = &mut out[(i + r) * k + j..][..columns];
                        for (o, &s) in to.iter_mut().zip(&sums[r]) {
                            *o = join(*o, s);
                        }
                    }
                    i += rows;
                }
            }
        }
    }
}

/// Square roots, in place.
struct DistanceRoots<'a, T>(&'a mut [T]);
impl<T: Real> isa::Work for DistanceRoots<'_, T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        for x in self.0 {
            *x = x.sqrt();
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
    use restride_tensor::{DType, Layout, RawTensor};

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
        pairs(&b.read().view(), 0.0, &out.write().view_mut()).unwrap();
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
