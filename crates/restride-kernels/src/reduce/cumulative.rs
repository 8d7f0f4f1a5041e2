//! Running sums and their like along a dimension.

use crate::reduce::{cast, cast_room, kept_first};
use crate::support::convert::{Compute, round_through};
use crate::support::isa;
use crate::support::number::{Number, Ordered};
use crate::support::pack::{Packed, Stored, Target, compute_room, pack, pack_owned, packed_room, unpack, with_compute};
use crate::support::par;
use crate::support::scratch::{self, Temp};
use crate::support::stack::Stack;
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
/// Neighbouring elements that are scanned side by side.
const WIDE: usize = 256;
/// Elements that are worth a thread.
const SHARED: usize = 1 << 15;

/// Rows along a dimension, changed in place and written where the result has them. `f` gets up to [`SIDE`] rows and their length.
fn along<T: Compute>(
    x: &View<'_>,
    dim: usize,
    out: &ViewMut<'_>,
    threads: usize,
    f: &(dyn Fn(&mut [T], usize) + Sync),
) {
    let marks = marked(x.layout(), dim);
    let ((from, len), (to, _)) = (kept_first(x.layout(), &marks), kept_first(out.layout(), &marks));
    // SAFETY: the same cells with dimensions in another order.
    let (x, out) = unsafe { (x.with_layout(&from), out.with_layout(&to)) };
    let mut data = pack_owned::<T>(&x);
    if !data.is_empty() {
        par::pieces(threads, &mut data, SIDE * len, &|_, rows| f(rows, len));
    }
    unpack(&data, &out);
}

fn marked(layout: &Layout, dim: usize) -> SmallVec<[bool; 8]> {
    (0..layout.rank()).map(|d| d == dim).collect()
}

/// Scratch bytes of [`scan`].
pub fn scan_room(x: Stored<'_>, read: DType, out: Stored<'_>) -> usize {
    let (own, dtype, layout) = cast_room(x, read);
    let whole = if read == dtype { packed_room((dtype, &layout)) } else { compute_room(read, layout.numel()) };
    own + whole + packed_room(out)
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
        Scan::Sum => with_compute!(any read, T => {
            let (start, join) = (<T as Number>::Wide::ZERO, Number::plus);
            let rows = |from: &[T], to: &mut [T], len| running(from, to, len, start, join);
            let beside = |of: ScansBeside<'_, T>| isa::run(RunningBeside { of, start, join });
            scanned(x, dim, read, out, threads, &rows, &beside)
        }),
        Scan::Prod => with_compute!(any read, T => {
            scanned_by::<T>(x, dim, read, out, threads, <T as Number>::Wide::ONE, Number::times)
        }),
        Scan::LogSumExp if read.is_complex() => {
            let join = crate::pointwise::complex_math::log_add_exp;
            let start = C64::new(f64::NEG_INFINITY, 0.0);
            if read == DType::C64 {
                scanned_by::<C32>(x, dim, read, out, threads, start, join);
            } else {
                scanned_by::<C64>(x, dim, read, out, threads, start, join);
            }
        }
        Scan::LogSumExp => with_compute!(float read, T => {
            scanned_by::<T>(x, dim, read, out, threads, f64::NEG_INFINITY, log_add_exp)
        }),
    }
    Ok(())
}

/// [`scanned`] by a function that is rarer than sums, or takes longer: its loops are compiled once.
fn scanned_by<T: Number>(
    x: &View<'_>,
    dim: usize,
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
    start: T::Wide,
    join: impl Fn(T::Wide, T::Wide) -> T::Wide + Copy + Sync,
) {
    let rows = |from: &[T], to: &mut [T], len| running(from, to, len, start, join);
    let beside = |of: ScansBeside<'_, T>| isa::Work::run(RunningBeside { of, start, join });
    scanned(x, dim, read, out, threads, &rows, &beside);
}

/// Scans along a dimension: `rows` of contiguous rows and their results, each of a length; `beside` of neighbouring elements.
fn scanned<T: Number>(
    x: &View<'_>,
    dim: usize,
    read: DType,
    out: &ViewMut<'_>,
    threads: usize,
    rows: &(dyn Fn(&[T], &mut [T], usize) + Sync),
    beside: &(dyn Fn(ScansBeside<'_, T>) + Sync),
) {
    if out.numel() == 0 {
        return;
    }
    let sizes = out.sizes();
    let len = sizes.get(dim).map_or(1, |&n| n as usize);
    let inner: usize = sizes.iter().skip(dim + 1).map(|&n| n as usize).product();
    let threads = if out.numel() < SHARED { 1 } else { threads };
    cast(x, read, &mut |x| {
        let mut data = pack::<T>(x);
        if read != x.dtype() {
            let mut own = data.into_owned();
            round_through(read, &mut own);
            data = Packed::Owned(own);
        }
        let mut target = Target::<T>::new(out);
        if inner == 1 {
            par::pieces(threads, target.slice(), SIDE * len, &|i, to| {
                rows(&data[i * SIDE * len..][..to.len()], to, len);
            });
        } else {
            let tiles = inner.div_ceil(WIDE);
            let to = par::Shared::new(target.slice());
            par::each(threads, data.len() / (len * inner) * tiles, &|item| {
                let (block, first) = (item / tiles * len * inner, item % tiles * WIDE);
                let wide = WIDE.min(inner - first);
                beside(ScansBeside {
                    from: &data[block..][..len * inner],
                    to: to.at(block + first),
                    first,
                    inner,
                    wide,
                });
            });
        }
        target.finish();
    });
}

/// Neighbouring elements of each row of `inner` elements, from `first` on.
struct ScansBeside<'a, T> {
    from: &'a [T],
    /// Where the result of the first element goes; that of the next row is `inner` elements further.
    to: *mut T,
    first: usize,
    inner: usize,
    wide: usize,
}

/// Scans of neighbouring elements, side by side.
struct RunningBeside<'a, T: Number, J> {
    of: ScansBeside<'a, T>,
    start: T::Wide,
    join: J,
}

impl<T: Number, J: Fn(T::Wide, T::Wide) -> T::Wide> isa::Work for RunningBeside<'_, T, J> {
    type Out = ();
    const VECTORS: bool = matches!(T::DTYPE, DType::F32 | DType::F64);
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let RunningBeside { of: ScansBeside { from, to, first, inner, wide }, start, join } = self;
        let mut values = Stack::<T::Wide, WIDE>::new();
        let values = values.filled(wide, start);
        for (i, row) in from.chunks_exact(inner).enumerate() {
            // SAFETY: results of this row, which no one else uses meanwhile.
            let to = unsafe { std::slice::from_raw_parts_mut(to.add(i * inner), wide) };
            for ((value, &x), to) in values.iter_mut().zip(&row[first..][..wide]).zip(to) {
                *value = join(*value, x.widen());
                *to = T::narrow(*value);
            }
        }
    }
}

/// Scans of contiguous rows, [`SIDE`] at a time.
fn running<T: Number>(
    from: &[T],
    to: &mut [T],
    len: usize,
    start: T::Wide,
    join: impl Fn(T::Wide, T::Wide) -> T::Wide,
) {
    if to.len() == SIDE * len {
        let row = |i: usize| &from[i * len..][..len];
        let from = [row(0), row(1), row(2), row(3)];
        let (low, high) = to.split_at_mut(2 * len);
        let ((a, b), (c, d)) = (low.split_at_mut(len), high.split_at_mut(len));
        let to = [&mut a[..len], &mut b[..len], &mut c[..len], &mut d[..len]];
        let mut acc = [start; SIDE];
        for i in 0..len {
            for r in 0..SIDE {
                acc[r] = join(acc[r], from[r][i].widen());
                to[r][i] = T::narrow(acc[r]);
            }
        }
        return;
    }
    for (from, to) in from.chunks(len).zip(to.chunks_mut(len)) {
        let mut acc = start;
        for (x, to) in from.iter().zip(to) {
            acc = join(acc, x.widen());
            *to = T::narrow(acc);
        }
    }
}

// Called in several loops.
#[inline(never)]
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
        along::<T>(x, dim, values, threads, &|rows, len| {
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
        let data = pack::<T>(&x);
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
    fn scans_do_not_depend_on_strides_threads_or_instruction_sets() {
        let sizes = if cfg!(miri) { [2i64, 3, 9] } else { [3, 70, 301] };
        let n = sizes.iter().product::<i64>();
        let data: Vec<f64> = (0..n).map(|i| ((i * 7919) % 1013) as f64 * 0.002 - 0.9).collect();
        for (held, read) in [(DType::F32, DType::F32), (DType::F64, DType::F32), (DType::BF16, DType::BF16)] {
            for (dim, what) in (0..3).flat_map(|d| [Scan::Sum, Scan::Prod, Scan::LogSumExp].map(|w| (d, w))) {
                let mut want: Option<Vec<f64>> = None;
                for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
                    let x = RawTensor::zeros(held, Layout::permuted(&sizes, &order));
                    crate::support::pack::unpack(&data, &x.write().view_mut());
                    isa::tests::on_each(|isa| {
                        for back in [[0, 1, 2], [1, 0, 2]] {
                            let out = RawTensor::zeros(read, Layout::permuted(&sizes, &back));
                            scan(&x.read().view(), dim, what, read, &out.write().view_mut(), 1 + order[0]).unwrap();
                            let got = crate::support::convert::gather::<f64>(out.read().view()).to_vec();
                            let want = want.get_or_insert_with(|| got.clone());
                            assert_eq!(&got, want, "{held} {dim} {what:?} {order:?} {isa:?}");
                        }
                    });
                }
            }
        }
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
