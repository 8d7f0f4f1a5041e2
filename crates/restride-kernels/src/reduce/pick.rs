//! Reductions that take one element of a row and say which: largest, smallest, of a rank, most frequent.

use crate::reduce::{fold, kept_first, largest, smallest};
use crate::sort::sort_numbers;
use crate::support::convert::{Compute, round_through};
use crate::support::isa;
use crate::support::number::{Number, Ordered};
use crate::support::pack::{Stored, compute_room, pack, packed_room, unpack, with_compute};
use crate::support::par;
use crate::support::scratch::{Temp, room};
use restride_tensor::{DType, Layout, View, ViewMut};
use std::cmp::Ordering;

/// Which element of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// The first of the largest, or the first NaN.
    Max,
    /// The first of the smallest, or the first NaN.
    Min,
    /// The lower median, or the first NaN.
    Median,
    /// The lower median of the elements that are not NaN.
    NanMedian,
    /// The smallest of the most frequent, where it stands last.
    Mode,
}

impl Pick {
    /// Whether the elements of a row are put in order.
    fn sorts(self) -> bool {
        matches!(self, Pick::Median | Pick::NanMedian | Pick::Mode)
    }
}

/// Scratch bytes of [`pick`].
pub fn pick_room((dtype, layout): Stored<'_>, reduced: &[bool], what: Pick) -> usize {
    fn of<T: Compute>(rows: usize) -> usize {
        room::<(T, i64)>(rows) + room::<T>(rows).max(room::<i64>(rows))
    }
    let (layout, len) = kept_first(layout, reduced);
    let rows =
        layout.numel().checked_div(len as i64).unwrap_or_else(|| {
            layout.sizes.iter().take(layout.rank() - reduced.iter().filter(|&&r| r).count()).product()
        }) as usize;
    let own = match dtype {
        DType::F64 => of::<f64>(rows),
        d if d.is_float() => of::<f32>(rows),
        _ => of::<i64>(rows),
    };
    packed_room((dtype, &layout)) + own + if what.sorts() { room::<u32>(len) } else { 0 }
}

/// Picks an element of each row of the marked dimensions: values, and their positions in the row. Rows may be empty
/// only if no index is asked for.
pub fn pick(
    x: &View<'_>,
    reduced: &[bool],
    what: Pick,
    values: Option<&ViewMut<'_>>,
    indices: Option<&ViewMut<'_>>,
    threads: usize,
) -> Result<(), String> {
    with_compute!(real x.dtype(), T => {
        let (layout, len) = kept_first(x.layout(), reduced);
        // SAFETY: the same cells with dimensions in another order.
        let x = unsafe { x.with_layout(&layout) };
        let data = pack::<T>(&x);
        let rows: usize = layout.sizes.iter().take(layout.rank() - reduced.iter().filter(|&&r| r).count()).map(|&n| n as usize).product();
        if u32::try_from(len).is_err() {
            return Err(format!("a row of {len} elements is too long"));
        }
        if len == 0 && rows > 0 {
            if indices.is_some() || !x.dtype().is_float() {
                return Err("an element of an empty row".to_string());
            }
            if let Some(out) = values {
                unpack(&Temp::filled(rows, f64::NAN), out);
            }
            return Ok(());
        }
        let mut picked = Temp::filled(rows, (T::default(), 0i64));
        let chunk = 16384usize.div_ceil(len.max(1));
        par::pieces(threads, &mut picked, chunk, &|i, piece| {
            let mut order = Temp::filled(if what.sorts() { len } else { 0 }, 0u32);
            for (j, r) in piece.iter_mut().enumerate() {
                let row = &data[(i * chunk + j) * len..][..len];
                let at = position(row, what, &mut order);
                *r = (row[at], at as i64);
            }
        });
        if let Some(out) = values {
            unpack(&picked.iter().map(|p| p.0).collect::<Temp<T>>(), out);
        }
        if let Some(out) = indices {
            unpack(&picked.iter().map(|p| p.1).collect::<Temp<i64>>(), out);
        }
    });
    Ok(())
}

/// Longest row that is searched element by element.
const SHORT: usize = 16;

/// The first element that no other one comes before, or the first NaN.
fn extreme<T: Ordered>(row: &[T], before: impl Fn(T, T) -> bool) -> usize {
    (1..row.len()).fold(0, |at, i| {
        let (x, best) = (row[i], row[at]);
        if !best.has_nan() && (x.has_nan() || before(x, best)) { i } else { at }
    })
}

fn position<T: Ordered>(row: &[T], what: Pick, order: &mut [u32]) -> usize {
    let nan = || row.iter().position(|x| x.has_nan());
    match what {
        Pick::Max if row.len() <= SHORT => extreme(row, |x, best| x > best),
        Pick::Min if row.len() <= SHORT => extreme(row, |x, best| x < best),
        Pick::Max => first(row, fold(row, T::LEAST, largest)),
        Pick::Min => first(row, fold(row, T::MOST, smallest)),
        Pick::Median => nan().unwrap_or_else(|| ranked(row, (row.len() - 1) / 2, order)),
        Pick::NanMedian => {
            let numbers = row.iter().filter(|x| !x.has_nan()).count();
            ranked(row, numbers.saturating_sub(1) / 2, order)
        }
        Pick::Mode => {
            in_row(order);
            sort_places(order, &|&a, &b| row[a as usize].order(row[b as usize]).then(a.cmp(&b)));
            let (mut best, mut most, mut run) = (0, 0, 0);
            for (i, &at) in order.iter().enumerate() {
                run += 1;
                let same = order.get(i + 1).is_some_and(|&next| row[next as usize] == row[at as usize]);
                if !same {
                    if run > most {
                        (best, most) = (at as usize, run);
                    }
                    run = 0;
                }
            }
            best
        }
    }
}

/// Where a value stands first, or any NaN if it is one.
fn first<T: Number>(row: &[T], value: T) -> usize {
    /// The elements that are looked at together.
    struct HoldsValue<'a, T>(&'a [T], T);
    impl<T: Number> isa::Work for HoldsValue<'_, T> {
        type Out = usize;
        const WIDEST: bool = false;
        #[inline(always)]
        fn run(self) -> usize {
            const SOME: usize = 64;
            let HoldsValue(row, value) = self;
            let is = |x: T| x == value || value.has_nan() && x.has_nan();
            let runs = row.chunks(SOME).position(|run| run.iter().fold(false, |any, &x| any | is(x)));
            let start = runs.map_or(0, |i| i * SOME);
            start + row[start..].iter().position(|&x| is(x)).unwrap_or(0)
        }
    }
    isa::run(HoldsValue(row, value))
}

/// Positions one after the other.
/// One copy for all element types.
fn sort_places(order: &mut [u32], compare: &dyn Fn(&u32, &u32) -> Ordering) {
    order.sort_unstable_by(compare);
}

fn in_row(order: &mut [u32]) {
    order.iter_mut().zip(0..).for_each(|(at, i)| *at = i);
}

/// Where the element of a rank stands; among equals the order is that of the row.
fn ranked<T: Ordered>(row: &[T], k: usize, order: &mut [u32]) -> usize {
    in_row(order);
    let (_, &mut at, _) =
        order.select_nth_unstable_by(k, |&a, &b| row[a as usize].order(row[b as usize]).then(a.cmp(&b)));
    at as usize
}

/// How a quantile between two elements is interpolated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// In proportion.
    Linear,
    /// The lower.
    Lower,
    /// The higher.
    Higher,
    /// Half way.
    Midpoint,
    /// The nearer, an even position in the middle.
    Nearest,
}

/// Quantiles `q` of each row of the marked dimensions, all of one `q` after the other in the result. A row with a NaN
/// gives NaN unless NaNs are ignored.
pub fn quantiles(
    x: &View<'_>,
    reduced: &[bool],
    q: &[f64],
    between: Between,
    ignore_nan: bool,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    with_compute!(float x.dtype(), T => {
        let (layout, len) = kept_first(x.layout(), reduced);
        // SAFETY: the same cells with dimensions in another order.
        let x = unsafe { x.with_layout(&layout) };
        let mut data = crate::support::pack::pack_owned::<T>(&x);
        let rows = data.len().checked_div(len).unwrap_or(0);
        let mut result = Temp::filled(rows * q.len(), T::default());
        for (i, row) in data.chunks_mut(len.max(1)).enumerate() {
            sort_numbers(row);
            let numbers = row.iter().filter(|x| !x.has_nan()).count();
            for (j, &q) in q.iter().enumerate() {
                result[j * rows + i] = if numbers == 0 || (numbers < len && !ignore_nan) {
                    T::from_f64(f64::NAN)
                } else {
                    let exact = T::from_f64(q) * (numbers - 1) as T;
                    let (low, high) = (exact.floor(), exact.ceil());
                    let (a, b) = (row[low as usize], row[high as usize]);
                    match between {
                        Between::Linear => {
                            let weight = exact - low;
                            if weight < 0.5 { a + weight * (b - a) } else { b - (b - a) * (1.0 - weight) }
                        }
                        Between::Lower => a,
                        Between::Higher => b,
                        Between::Midpoint => b - (b - a) * 0.5,
                        Between::Nearest => row[exact.round_ties_even() as usize],
                    }
                };
            }
        }
        round_through(x.dtype(), &mut result);
        unpack(&result, out);
    });
    Ok(())
}

/// Scratch bytes of [`quantiles`].
pub fn quantiles_room(x: Stored<'_>, out: &Layout) -> usize {
    compute_room(x.0, x.1.numel()) + compute_room(x.0, out.numel())
}

/// Truth of equal sizes and elements; NaN equals nothing.
pub fn equal(a: &View<'_>, b: &View<'_>) -> Result<bool, String> {
    if a.sizes() != b.sizes() {
        return Ok(false);
    }
    let dtype = if a.dtype() == b.dtype() { a.dtype() } else { DType::promote(a.dtype(), b.dtype()) };
    Ok(with_compute!(any dtype, T => pack::<T>(a)[..] == pack::<T>(b)[..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::RawTensor;

    fn run(x: &RawTensor, reduced: &[bool], what: Pick, sizes: &[i64]) -> (Vec<f32>, Vec<i64>) {
        let values = RawTensor::zeros(DType::F32, Layout::contiguous(sizes));
        let indices = RawTensor::zeros(DType::I64, Layout::contiguous(sizes));
        pick(&x.read().view(), reduced, what, Some(&values.write().view_mut()), Some(&indices.write().view_mut()), 2)
            .unwrap();
        (values.to_elements(), indices.to_elements())
    }

    #[test]
    fn the_first_of_equals_is_taken() {
        let x = RawTensor::from_slice(&[1.0f32, 3.0, 3.0, 2.0, -1.0, -1.0], &[2, 3]);
        assert_eq!(run(&x, &[false, true], Pick::Max, &[2]), (vec![3.0, 2.0], vec![1, 0]));
        assert_eq!(run(&x, &[false, true], Pick::Min, &[2, 1]), (vec![1.0, -1.0], vec![0, 1]));
        assert_eq!(run(&x, &[true, false], Pick::Median, &[3]), (vec![1.0, -1.0, -1.0], vec![0, 1, 1]));
        assert_eq!(run(&x, &[false, true], Pick::Mode, &[2]), (vec![3.0, -1.0], vec![2, 2]));
    }

    #[test]
    fn a_nan_is_the_largest_and_the_smallest() {
        let x = RawTensor::from_slice(&[1.0f32, f32::NAN, 0.0, f32::NAN], &[4]);
        for what in [Pick::Max, Pick::Min, Pick::Median] {
            let (v, i) = run(&x, &[true], what, &[]);
            assert!(v[0].is_nan() && i == [1]);
        }
        assert_eq!(run(&x, &[true], Pick::NanMedian, &[]), (vec![0.0], vec![2]));
    }
}
