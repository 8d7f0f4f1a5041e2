//! Distances between rows.

use crate::reduce::norm;
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
}
