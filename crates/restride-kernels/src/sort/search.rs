//! Finding numbers among others: positions in sorted rows, membership, counts by class.

use crate::sort::sort_numbers;
use crate::support::convert::{Compute, gather};
use crate::support::number::{Number, Ordered};
use crate::support::pack::{Stored, compute_room, pack, packed_room, unpack, with_compute};
use crate::support::scratch::{Temp, room};
use restride_tensor::{DType, Layout, RawTensor, View, ViewMut};

/// Where each value would stand in its sorted row: before its equals, or (`right`) behind them. `rows` is one row for all
/// or has a row (its last dimension) for each of `values`; `order` gives the order in which a row is sorted.
pub fn search(
    rows: &View<'_>,
    values: &View<'_>,
    right: bool,
    order: Option<&View<'_>>,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    let dtype = rows.dtype().promote(values.dtype());
    let n = rows.sizes().last().map_or(1, |&n| n as usize);
    let each = if rows.sizes().len() > 1 { values.sizes().last().map_or(1, |&n| n as usize) } else { values.numel() };
    let order = order.map(|o| gather::<i64>(*o));
    if order.as_ref().is_some_and(|o| o.iter().any(|&i| i < 0 || i >= n as i64)) {
        return Err("sorter index out of range".to_string());
    }
    with_compute!(real dtype, T => {
        let (rows, values) = (pack::<T>(rows), pack::<T>(values));
        let found = values
            .iter()
            .enumerate()
            .map(|(i, &value)| {
                let row = i / each.max(1) * n;
                let at = |k: usize| rows[row + order.as_ref().map_or(k, |o| o[row + k] as usize)];
                // Written so that NaN stands behind everything.
                let (mut low, mut high) = (0, n);
                while low < high {
                    let mid = low + (high - low) / 2;
                    let stop = if right { at(mid) > value } else { at(mid) >= value };
                    if stop { high = mid } else { low = mid + 1 }
                }
                low as i64
            });
        unpack(&Temp::gather(values.len(), found), out);
    });
    Ok(())
}

/// Scratch bytes of [`search`].
pub fn search_room(rows: Stored<'_>, values: Stored<'_>, order: Option<&Layout>) -> usize {
    let dtype = rows.0.promote(values.0);
    let order = order.map_or(0, |o| room::<i64>(o.numel() as usize));
    order + packed_as(rows, dtype) + packed_as(values, dtype) + room::<i64>(values.1.numel() as usize)
}

/// Scratch bytes of [`is_in`].
pub fn is_in_room(x: Stored<'_>, set: Stored<'_>) -> usize {
    let dtype = x.0.promote(set.0);
    compute_room(dtype, set.1.numel()) + packed_as(x, dtype) + room::<i64>(x.1.numel() as usize)
}

/// Scratch bytes of [`histogram`].
pub fn histogram_room(x: Stored<'_>, bins: i64) -> usize {
    packed_room(x) + room::<i64>(bins as usize)
}

/// Scratch bytes of packing in the compute type of another element type.
fn packed_as((dtype, layout): Stored<'_>, to: DType) -> usize {
    if dtype == to { packed_room((dtype, layout)) } else { compute_room(to, layout.numel()) }
}

/// Whether each element is among those of `set` (or is not); NaN is in no set.
pub fn is_in(x: &View<'_>, set: &View<'_>, invert: bool, out: &ViewMut<'_>) -> Result<(), String> {
    let dtype = x.dtype().promote(set.dtype());
    with_compute!(real dtype, T => {
        let mut set = gather::<T>(*set);
        let mut kept = 0;
        for i in 0..set.len() {
            if !set[i].has_nan() {
                set[kept] = set[i];
                kept += 1;
            }
        }
        set.truncate(kept);
        sort_numbers(&mut set);
        let x = pack::<T>(x);
        let found = x.iter().map(|&x| (set.binary_search_by(|&y| y.order(x)).is_ok() != invert) as i64);
        unpack(&Temp::gather(x.len(), found), out);
    });
    Ok(())
}

/// Counts elements in classes of equal width from `min` to `max`; the range of the elements if the two are 0.
pub fn histogram(x: &View<'_>, min: f64, max: f64, out: &ViewMut<'_>) -> Result<(), String> {
    let bins = out.numel();
    with_compute!(float x.dtype(), T => {
        let x = pack::<T>(x);
        let (mut low, mut high) = (T::from_f64(min), T::from_f64(max));
        if low == high && !x.is_empty() {
            low = x.iter().copied().fold(T::INFINITY, |a, b| if b < a || b.is_nan() { b } else { a });
            high = x.iter().copied().fold(T::NEG_INFINITY, |a, b| if b > a || b.is_nan() { b } else { a });
        }
        if low == high {
            (low, high) = (low - 1.0, high + 1.0);
        }
        if !(low.is_finite() && high.is_finite()) {
            return Err(format!("range of [{low}, {high}] is not finite"));
        }
        if low > high {
            return Err("max must be larger than min".to_string());
        }
        let mut counts = Temp::filled(bins, 0i64);
        for &x in x.iter().filter(|x| (low..=high).contains(*x)) {
            let at = ((x - low) / (high - low) * bins as T) as usize;
            counts[at.min(bins - 1)] += 1;
        }
        unpack(&counts, out);
    });
    Ok(())
}

/// How often each number from 0 occurs, or the sum of the weights where it does, up to the largest and at least
/// `least` numbers.
pub fn count(x: &View<'_>, weights: Option<&View<'_>>, least: usize) -> Result<RawTensor, String> {
    let x = gather::<i64>(*x);
    if x.iter().any(|&i| i < 0) {
        return Err("bincount only supports 1-d non-negative integral inputs.".to_string());
    }
    let n = x.iter().max().map_or(0, |&m| m.saturating_add(1));
    let n = usize::try_from(n).map_err(|_| "too many classes".to_string())?.max(least);
    // An untrusted number must not take all memory.
    if n > 1 << 30 {
        return Err(format!("{n} classes are too many"));
    }
    let sizes = [n as i64];
    Ok(match weights {
        None => {
            let mut counts = vec![0i64; n];
            x.iter().for_each(|&i| counts[i as usize] += 1);
            RawTensor::from_slice(&counts, &sizes)
        }
        Some(w) if w.dtype() == DType::F32 => RawTensor::from_slice(&weighed::<f32>(&x, w, n), &sizes),
        Some(w) => RawTensor::from_slice(&weighed::<f64>(&x, w, n), &sizes),
    })
}

fn weighed<T: Number>(x: &[i64], weights: &View<'_>, n: usize) -> Vec<T> {
    let mut sums = vec![T::ZERO; n];
    for (&i, &w) in x.iter().zip(&gather::<T>(*weights)) {
        sums[i as usize] = sums[i as usize].plus(w);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_are_before_or_behind() {
        let rows = RawTensor::from_slice(&[1.0f32, 3.0, 3.0, 5.0], &[4]);
        let values = RawTensor::from_slice(&[0.0f32, 3.0, 6.0, f32::NAN], &[4]);
        let out = RawTensor::zeros(DType::I64, Layout::contiguous(&[4]));
        search(&rows.read().view(), &values.read().view(), false, None, &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<i64>(), [0, 1, 4, 4]);
        search(&rows.read().view(), &values.read().view(), true, None, &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<i64>(), [0, 3, 4, 4]);
    }

    #[test]
    fn counts_grow_with_the_largest() {
        let x = RawTensor::from_slice(&[3i64, 1, 3], &[3]);
        assert_eq!(count(&x.read().view(), None, 0).unwrap().to_elements::<i64>(), [0, 1, 0, 2]);
        let w = RawTensor::from_slice(&[0.5f32, 1.0, 0.25], &[3]);
        assert_eq!(
            count(&x.read().view(), Some(&w.read().view()), 5).unwrap().to_elements::<f32>(),
            [0.0, 1.0, 0.0, 0.75, 0.0]
        );
        assert!(count(&RawTensor::from_slice(&[-1i64], &[1]).read().view(), None, 0).is_err());
    }
}
