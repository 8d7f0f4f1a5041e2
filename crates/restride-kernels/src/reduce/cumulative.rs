//! Running sums and their like along a dimension.

use crate::reduce::{cast, cast_room, kept_first};
use crate::support::convert::{Compute, round_through};
use crate::support::number::{Number, Ordered};
use crate::support::pack::{Stored, compute_room, pack_owned, packed_room, unpack, with_compute};
use crate::support::par;
use crate::support::scratch::{self, Temp};
use restride_tensor::{C32, C64, DType, Layout, View, ViewMut};
use smallvec::SmallVec;

/// The running value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scan {
    /// Sum.
    Sum,
    /// Product.
    Prod,
    /// Logarithm of the sum of exponentials.
    LogSumExp,
}

/// Rows that are scanned side by side: each waits for its own last value alone.
const SIDE: usize = 4;

/// Rows along a dimension, changed in place and written where the result has them. `f` gets up to [`SIDE`] rows and their length.
fn along<T: Compute>(
    x: &View<'_>,
    dim: usize,
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
    f: &(dyn Fn(&mut [T], usize) + Sync),
) {
    cast(x, read, &mut |x| {
        let marks = marked(x.layout(), dim);
        let ((from, len), (to, _)) = (kept_first(x.layout(), &marks), kept_first(out.layout(), &marks));
        // SAFETY: the same cells with dimensions in another order.
        let (x, out) = unsafe { (x.with_layout(&from), out.with_layout(&to)) };
        let mut data = pack_owned::<T>(&x);
        if read != x.dtype() {
            round_through(read, &mut data);
        }
        if !data.is_empty() {
            par::pieces(threads, &mut data, SIDE * len, &|_, rows| f(rows, len));
        }
        unpack(&data, &out);
    });
}

fn marked(layout: &Layout, dim: usize) -> SmallVec<[bool; 8]> {
    (0..layout.rank()).map(|d| d == dim).collect()
}

/// Scratch bytes of [`scan`].
pub fn scan_room(x: Stored<'_>, read: DType) -> usize {
    cast_room(x, read).0 + compute_room(read, x.1.numel())
}

/// Scratch bytes of [`extremes`].
pub fn extremes_room(x: Stored<'_>, dim: usize) -> usize {
    let (layout, _) = kept_first(x.1, &marked(x.1, dim));
    let positions = packed_room((x.0, &layout)) + scratch::room::<i64>(layout.numel() as usize);
    compute_room(x.0, layout.numel()).max(positions)
}

/// Scans dimension `dim` (a 0-d tensor counts as one element), elements read as `read` holds them.
pub fn scan(
    x: &View<'_>,
    dim: usize,
    what: Scan,
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    match what {
        Scan::Sum => with_compute!(any read, T => along::<T>(x, dim, read, out, threads, &|rows, len| {
            running(rows, len, <T as Number>::Wide::ZERO, Number::plus)
        })),
        Scan::Prod => with_compute!(any read, T => along::<T>(x, dim, read, out, threads, &|rows, len| {
            running(rows, len, <T as Number>::Wide::ONE, Number::times)
        })),
        Scan::LogSumExp if read.is_complex() => {
            let join = crate::pointwise::complex_math::log_add_exp;
            let least = C64::new(f64::NEG_INFINITY, 0.0);
            if read == DType::C64 {
                along::<C32>(x, dim, read, out, threads, &|rows, len| running(rows, len, least, join));
            } else {
                along::<C64>(x, dim, read, out, threads, &|rows, len| running(rows, len, least, join));
            }
        }
        Scan::LogSumExp => with_compute!(float read, T => along::<T>(x, dim, read, out, threads, &|rows, len| {
            running(rows, len, f64::NEG_INFINITY, log_add_exp)
        })),
    }
    Ok(())
}

fn running<T: Number>(rows: &mut [T], len: usize, start: T::Wide, join: impl Fn(T::Wide, T::Wide) -> T::Wide) {
    if rows.len() == SIDE * len {
        let (low, high) = rows.split_at_mut(2 * len);
        let ((a, b), (c, d)) = (low.split_at_mut(len), high.split_at_mut(len));
        let mut acc = [start; SIDE];
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            for (acc, x) in acc.iter_mut().zip([a, b, c, d]) {
                *acc = join(*acc, x.widen());
                *x = T::narrow(*acc);
            }
        }
        return;
    }
    for row in rows.chunks_mut(len) {
        let mut acc = start;
        for x in row {
            acc = join(acc, x.widen());
            *x = T::narrow(acc);
        }
    }
}

fn log_add_exp(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    // Of two equal infinities the difference would be no number.
    if low != high || low.is_finite() { high + (low - high).exp().ln_1p() } else { high }
}

/// The largest (or smallest) so far along `dim`, and where it stands: the last of equals, the last NaN.
pub fn extremes(
    x: &View<'_>,
    dim: usize,
    max: bool,
    values: &ViewMut<'_>,
    indices: &ViewMut<'_>,
    threads: usize,
) -> Result<(), String> {
    with_compute!(real x.dtype(), T => {
        let read = x.dtype();
        along::<T>(x, dim, read, values, threads, &|rows, len| {
            for row in rows.chunks_mut(len) {
                let mut best = row.first().copied().unwrap_or_default();
                for x in row {
                    if takes(*x, best, max) {
                        best = *x;
                    }
                    *x = best;
                }
            }
        });
        let positions = |row: &[T], at: &mut [i64]| {
            let (mut best, mut where_) = (row.first().copied().unwrap_or_default(), 0);
            for (i, (&x, at)) in row.iter().zip(at).enumerate() {
                if takes(x, best, max) {
                    (best, where_) = (x, i as i64);
                }
                *at = where_;
            }
        };
        let marks = marked(x.layout(), dim);
        let ((from, len), (to, _)) = (kept_first(x.layout(), &marks), kept_first(indices.layout(), &marks));
        // SAFETY: the same cells with dimensions in another order.
        let (x, indices) = unsafe { (x.with_layout(&from), indices.with_layout(&to)) };
        let data = crate::support::pack::pack::<T>(&x);
        let mut found = Temp::filled(data.len(), 0i64);
        if !found.is_empty() {
            par::pieces(threads, &mut found, len, &|i, at| positions(&data[i * len..][..len], at));
        }
        unpack(&found, &indices);
    });
    Ok(())
}

#[inline(always)]
fn takes<T: Ordered>(x: T, best: T, max: bool) -> bool {
    x.has_nan() || (!best.has_nan() && if max { x >= best } else { x <= best })
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    #[test]
    fn scans_run_along_their_dimension() {
        let x = RawTensor::from_slice(&[1i32, 2, 3, 4, 5, 6], &[2, 3]);
        let out = RawTensor::zeros(DType::I64, Layout::permuted(&[2, 3], &[1, 0]));
        scan(&x.read().view(), 0, Scan::Sum, DType::I64, &out.write().view_mut(), 2).unwrap();
        assert_eq!(out.to_elements::<i64>(), [1, 2, 3, 5, 7, 9]);
        scan(&x.read().view(), 1, Scan::Prod, DType::I64, &out.write().view_mut(), 1).unwrap();
        assert_eq!(out.to_elements::<i64>(), [1, 2, 6, 4, 20, 120]);
    }

    #[test]
    fn the_last_of_equals_counts() {
        let x = RawTensor::from_slice(&[1.0f32, 3.0, 3.0, f32::NAN, 5.0], &[5]);
        let values = RawTensor::zeros(DType::F32, Layout::contiguous(&[5]));
        let indices = RawTensor::zeros(DType::I64, Layout::contiguous(&[5]));
        extremes(&x.read().view(), 0, true, &values.write().view_mut(), &indices.write().view_mut(), 1).unwrap();
        assert_eq!(indices.to_elements::<i64>(), [0, 1, 2, 3, 3]);
        assert_eq!(values.to_elements::<f32>()[..3], [1.0, 3.0, 3.0]);
        assert!(values.to_elements::<f32>()[4].is_nan());
    }

    #[test]
    fn infinities_add_in_the_exponent() {
        assert_eq!(log_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, 1.0), 1.0);
        assert_eq!(log_add_exp(f64::INFINITY, f64::INFINITY), f64::INFINITY);
        assert!((log_add_exp(0.0, 0.0) - 2f64.ln()).abs() < 1e-15);
    }
}
