//! Results whose elements are an operand's, looked up dimension by dimension: padding, nearest-neighbour scaling.

use crate::support::pack::{Compute, Target, pack, with_compute};
use crate::support::par;
use crate::support::scratch::Temp;
use restride_tensor::{Scalar, View, ViewMut};

/// In a map: an index that reads nothing and gets the fill.
pub const HOLE: usize = usize::MAX;

/// `out[i, j, …] = x[maps[0][i], maps[1][j], …]`, or the fill where one of them is a [`HOLE`].
///
/// # Panics
/// If the number of maps or their lengths differ from the result's dimensions.
pub fn remap(
    x: &View<'_>,
    maps: &[Temp<usize>],
    fill: Scalar,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    assert!(
        maps.len() == out.sizes().len() && maps.iter().zip(out.sizes()).all(|(m, &n)| m.len() == n as usize),
        "one map for each dimension"
    );
    if out.numel() > 0 {
        with_compute!(any out.dtype(), T => run::<T>(x, maps, T::from_scalar(fill), out, threads));
    }
    Ok(())
}

fn run<T: Compute>(x: &View<'_>, maps: &[Temp<usize>], fill: T, out: &ViewMut<'_>, threads: usize) {
    let data = pack::<T>(x);
    let mut target = Target::<T>::new(out);
    let Some((row, outer)) = maps.split_last() else {
        target.slice()[0] = data[0];
        return target.finish();
    };
    let len = x.sizes()[outer.len()] as usize;
    // The part of a row that is a copy as it is: first index of the result, of the operand, length.
    let start = row.iter().position(|&i| i != HOLE).unwrap_or(0);
    let run = row[start..].iter().enumerate().take_while(|&(k, &i)| i != HOLE && i == row[start] + k).count();
    let (from, to) = (row.get(start).copied().unwrap_or(0), start + run);
    let sizes = x.sizes();
    par::pieces(threads, target.slice(), row.len(), &|r, dst| {
        let (mut r, mut base, mut step) = (r, 0, 1);
        for (map, &n) in outer.iter().zip(sizes).rev() {
            let i = map[r % map.len()];
            if i == HOLE {
                return dst.fill(fill);
            }
            base += i * step;
            step *= n as usize;
            r /= map.len();
        }
        let src = &data[base * len..][..len];
        let look = |dst: &mut [T], row: &[usize]| {
            for (d, &i) in dst.iter_mut().zip(row) {
                *d = if i == HOLE { fill } else { src[i] };
            }
        };
        look(&mut dst[..start], &row[..start]);
        if run > 0 {
            dst[start..to].copy_from_slice(&src[from..from + run]);
        }
        look(&mut dst[to..], &row[to..]);
    });
    target.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, Layout, RawTensor};

    #[test]
    fn every_index_is_looked_up() {
        let data: Vec<i64> = (1..=12).collect();
        let x = RawTensor::from_slice(&data, &[3, 4]);
        let maps = [Temp::copied(&[2, HOLE, 0]), Temp::copied(&[HOLE, 1, 2, 3, 0, HOLE])];
        let want = [0, 10, 11, 12, 9, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 4, 1, 0];
        for (dtype, perm) in [(DType::I64, [0, 1]), (DType::F16, [1, 0])] {
            let out = RawTensor::zeros(dtype, Layout::permuted(&[3, 6], &perm));
            // Holes get the fill, not the old elements.
            let source = RawTensor::zeros(dtype, Layout::contiguous(&[3, 4]));
            crate::movement::copy::same_order(&x.read().view(), &source.write().view_mut()).unwrap();
            remap(&source.read().view(), &maps, Scalar::Int(7), &out.write().view_mut(), 2).unwrap();
            for (at, &w) in want.iter().enumerate() {
                let got = out.get(&[at as i64 / 6, at as i64 % 6]).as_i64();
                assert_eq!(got, if w == 0 { 7 } else { w }, "{at}");
            }
        }
    }
}
