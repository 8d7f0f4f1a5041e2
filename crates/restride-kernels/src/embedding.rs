//! Rows of a table by index, sums of them, and gradients.

use crate::index::AddRow;
use crate::support::cache::{CacheLevel, LINE, prefetch};
use crate::support::convert::load_row;
use crate::support::isa;
use crate::support::number::{Number, Real};
use crate::support::pack::{
    Compute, Packed, Stored, Target, compute_room, pack, packed_room, packed_rooms, unpack, with_compute,
};
use crate::support::par;
use crate::support::runs;
use crate::support::scratch::{Temp, room};
use restride_tensor::{Layout, View, ViewMut};

/// The indices; an error if one is outside a table of `rows`.
pub fn checked<'a>(indices: &View<'a>, rows: i64) -> Result<Packed<'a, i64>, String> {
    let indices = pack::<i64>(indices);
    match indices.iter().find(|&&i| i < 0 || i >= rows) {
        Some(bad) => Err(format!("index out of range in self: {bad} for {rows} rows")),
        None => Ok(indices),
    }
}

/// `out[i] = table[indices[i]]`: `table` is R × D, `out` has the elements of I × D.
pub fn rows(table: &View<'_>, indices: &View<'_>, out: &ViewMut<'_>, threads: usize) -> Result<(), String> {
    let &[count, width] = table.sizes() else { return Err("a table has two dimensions".into()) };
    let (indices, width) = (checked(indices, count)?, width as usize);
    if indices.len().checked_mul(width) != Some(out.numel()) {
        return Err(format!("{} rows of {width} do not fill sizes {:?}", indices.len(), out.sizes()));
    }
    if out.numel() == 0 {
        return Ok(());
    }
    let size = table.dtype().size();
    if table.strides()[1] == 1 && table.dtype() == out.dtype() && out.layout().is_contiguous() {
        // SAFETY: the bytes of the result, which overlaps no operand and which this kernel alone uses.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(
                out.base().wrapping_add(out.layout().offset as usize * size),
                out.numel() * size,
            )
        };
        // SAFETY: threads read the table only.
        let (base, layout) = (unsafe { par::Across::new(table.base()) }, table.layout());
        par::pieces(threads, bytes, width * size, &|i, row| {
            let cell = layout.offset + indices[i] * layout.strides[0];
            let from = base.get().wrapping_offset(cell as isize * size as isize);
            // SAFETY: the row's index was checked, and its elements are adjacent.
            unsafe { runs::copy(from, row.as_mut_ptr(), row.len()) };
        });
        return Ok(());
    }
    fn run<T: Compute>(table: &View<'_>, indices: &[i64], width: usize, out: &ViewMut<'_>) {
        let mut data = Temp::filled(indices.len() * width, T::default());
        let l = table.layout();
        for (&i, row) in indices.iter().zip(data.chunks_mut(width.max(1))) {
            let cell = l.offset + i * l.strides[0];
            // SAFETY: a row of the table.
            unsafe { load_row(table.dtype(), table.base(), cell as isize, l.strides[1] as isize, row) };
        }
        unpack(&data, out);
    }
    with_compute!(any out.dtype(), T => run::<T>(table, &indices, width, out));
    Ok(())
}

/// Scratch bytes of [`rows`].
pub fn rows_room(table: Stored<'_>, indices: Stored<'_>, out: Stored<'_>) -> usize {
    let direct = table.1.strides[1] == 1 && table.0 == out.0 && out.1.is_contiguous();
    packed_room(indices) + if direct { 0 } else { compute_room(out.0, out.1.numel()) }
}

/// The gradient with respect to the table: each row of `g` is added where its index says; indices equal to `skip` are left
/// out. With `by_frequency`, each row of `g` is divided by the count of its index.
pub fn rows_backward(
    g: &View<'_>,
    indices: &View<'_>,
    skip: Option<i64>,
    by_frequency: bool,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    let (count, width) = (out.sizes()[0], out.sizes()[1] as usize);
    let indices = pack::<i64>(indices);
    let kept = |i: i64| Some(i) != skip;
    if let Some(bad) = indices.iter().find(|&&i| kept(i) && (i < 0 || i >= count)) {
        return Err(format!("index {bad} is out of range for {count} rows"));
    }
    let mut seen = Temp::filled(count as usize, 0u64);
    indices.iter().filter(|&&i| kept(i)).for_each(|&i| seen[i as usize] += 1);
    with_compute!(float out.dtype(), T => {
        let data = pack::<T>(g);
        let mut target = Target::<T>::new(out);
        let sums = target.slice();
        sums.fill(T::default());
        for (k, &i) in indices.iter().enumerate().filter(|(_, i)| kept(**i)) {
            let scale = if by_frequency { 1.0 / seen[i as usize] as f64 } else { 1.0 };
            let scale = T::from_f64(scale);
            let row = &data[k * width..][..width];
            sums[i as usize * width..][..width].iter_mut().zip(row).for_each(|(s, &x)| *s += x * scale);
        }
        target.finish();
    });
    Ok(())
}

/// Scratch bytes of [`rows_backward`].
pub fn rows_backward_room(g: Stored<'_>, indices: Stored<'_>, out: Stored<'_>) -> usize {
    packed_rooms([g, indices, out]) + room::<u64>(out.1.sizes[0] as usize)
}

/// How the rows of a bag become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bag {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// Element by element the largest.
    Max,
}

/// Which entries form the bags.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    /// Rows of the table, those of one bag after those of the other; checked.
    pub indices: &'a [i64],
    /// Where each bag begins among them, and where the last one ends: never less than before, nor beyond the end.
    pub offsets: &'a [i64],
    /// Factors of the rows.
    pub weights: Option<&'a [f64]>,
    /// The index that is left out.
    pub skip: Option<i64>,
}

impl Entries<'_> {
    /// Index and weight of the entries of a bag.
    fn of(&self, bag: usize) -> impl Iterator<Item = (i64, Option<f64>)> {
        let all = self.offsets[bag] as usize..self.offsets[bag + 1] as usize;
        let kept = all.filter(|&j| Some(self.indices[j]) != self.skip);
        kept.map(|j| (self.indices[j], self.weights.map(|w| w[j])))
    }
    /// How many rows each bag has.
    pub fn counts(&self) -> impl Iterator<Item = i64> {
        (1..self.offsets.len()).map(|end| self.of(end - 1).count() as i64)
    }
}

/// One row per bag; a bag without entries is a row of zeros. Where asked for, `places` gets the index that each maximum came
/// from.
pub fn bags(
    table: &View<'_>,
    entries: &Entries<'_>,
    what: Bag,
    out: &ViewMut<'_>,
    places: Option<&ViewMut<'_>>,
    threads: usize,
) -> Result<(), String> {
    let width = out.sizes()[1] as usize;
    let mut from = Temp::filled(if places.is_some() { out.numel() } else { 0 }, 0i64);
    let l = table.layout();
    let count = if l.rank() == 2 { l.sizes[0] } else { 0 };
    if let Some((i, _)) =
        (1..entries.offsets.len()).flat_map(|end| entries.of(end - 1)).find(|(i, _)| !(0..count).contains(i))
    {
        return Err(format!("index {i} is out of range for a table of sizes {:?}", table.sizes()));
    }
    if width == 0 {
        return Ok(());
    }
    with_compute!(float out.dtype(), T => {
        let mut target = Target::<T>::new(out);
        // SAFETY: threads read the table only.
        let table = unsafe { par::Across::new(*table) };
        let from = (par::Shared::new(&mut from), from.len());
        par::pieces(threads, target.slice(), width, &|b, row| {
            // SAFETY: each bag's places are one thread's.
            let places = unsafe { std::slice::from_raw_parts_mut(from.0.at((b * width).min(from.1)), width.min(from.1)) };
            bag::<T>(table.get(), entries, what, b, row, places);
        });
        target.finish();
    });
    if let Some(places) = places {
        unpack(&from, places);
    }
    Ok(())
}

/// The rows of one bag as one. Whoever calls it has checked the indices.
fn bag<T: Real + Number>(
    table: &View<'_>,
    entries: &Entries<'_>,
    what: Bag,
    bag: usize,
    row: &mut [T],
    places: &mut [i64],
) {
    let l = table.layout();
    let (stride, width) = (l.strides[1] as isize, row.len());
    let cell = |i: i64| (l.offset + i * l.strides[0]) as isize;
    let direct = table.dtype() == T::DTYPE && line(l).is_contiguous();
    let mut own = Temp::filled(if direct { 0 } else { width }, T::default());
    if direct && what != Bag::Max {
        let cell = |i: i64| (table.base() as *const T).wrapping_offset(cell(i));
        return isa::run(AddEntries { entries, bag, cell, row, mean: what == Bag::Mean });
    }
    row.fill(T::default());
    let mut count = 0;
    for (k, (i, weight)) in entries.of(bag).enumerate() {
        count = k + 1;
        let data = if direct {
            // SAFETY: a row of the table, whose elements are neighbours; the index was checked.
            unsafe { std::slice::from_raw_parts((table.base() as *const T).wrapping_offset(cell(i)), width) }
        } else {
            // SAFETY: a row of the table: the index was checked.
            unsafe { load_row(table.dtype(), table.base(), cell(i), stride, &mut own) };
            &own[..]
        };
        match what {
            Bag::Sum | Bag::Mean => isa::run(AddRow { have: &mut *row, more: data, alpha: weight.map(T::from_f64) }),
            Bag::Max => {
                for (j, (s, &x)) in row.iter_mut().zip(data).enumerate() {
                    if k == 0 || x > *s {
                        *s = x;
                        if let Some(p) = places.get_mut(j) {
                            *p = i;
                        }
                    }
                }
            }
        }
    }
    if what == Bag::Mean && count > 0 {
        let n = T::from_f64(count as f64);
        row.iter_mut().for_each(|x| *x /= n);
    }
}

/// The sum or the mean of the entries of a bag, whose rows are read where they are.
struct AddEntries<'a, T, F> {
    entries: &'a Entries<'a>,
    bag: usize,
    /// Where the row of an index is in the table.
    cell: F,
    row: &'a mut [T],
    mean: bool,
}

impl<T: Real + Number, F: Fn(i64) -> *const T> AddEntries<'_, T, F> {
    /// `N` columns from a first one on, whose sums are registers.
    #[inline(always)]
    fn columns<const N: usize>(&mut self, first: usize) {
        let Entries { indices, offsets, weights, skip } = *self.entries;
        let (start, end) = (offsets[self.bag] as usize, offsets[self.bag + 1] as usize);
        let mut sums = [T::default(); N];
        let mut count = 0;
        for j in start..end {
            // The rows of a large table are in no cache: a later one comes while this one is added.
            if let Some(&later) = indices[..end].get(j + AHEAD) {
                let later = (self.cell)(later).wrapping_add(first);
                for k in (0..N).step_by(LINE / size_of::<T>()) {
                    prefetch(later.wrapping_add(k), CacheLevel::First);
                }
            }
            if Some(indices[j]) == skip {
                continue;
            }
            let row = (self.cell)(indices[j]).wrapping_add(first);
            // SAFETY: elements of a row of the table, which are neighbours; whoever called `bag` has checked the index.
            let x = |k: usize| unsafe { row.add(k).read() };
            match weights {
                None => {
                    for (k, sum) in sums.iter_mut().enumerate() {
                        *sum = sum.plus(x(k));
                    }
                }
                Some(w) => {
                    let alpha = T::from_f64(w[j]);
                    for (k, sum) in sums.iter_mut().enumerate() {
                        *sum = sum.plus(alpha.times(x(k)));
                    }
                }
            }
            count += 1;
        }
        if self.mean && count > 0 {
            let n = T::from_f64(count as f64);
            sums.iter_mut().for_each(|x| *x /= n);
        }
        self.row[first..][..N].copy_from_slice(&sums);
    }
}

impl<T: Real + Number, F: Fn(i64) -> *const T> isa::Work for AddEntries<'_, T, F> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(mut self) {
        let width = self.row.len();
        let mut first = 0;
        while first + 64 <= width {
            self.columns::<64>(first);
            first += 64;
        }
        while first + 8 <= width {
            self.columns::<8>(first);
            first += 8;
        }
        while first < width {
            self.columns::<1>(first);
            first += 1;
        }
    }
}

/// How many entries ahead a row is fetched.
const AHEAD: usize = 4;

/// The first row of a table.
fn line(table: &Layout) -> Layout {
    Layout::strided(&table.sizes[1..], &table.strides[1..], 0)
}

/// Scratch bytes of [`bags`].
pub fn bags_room(table: Stored<'_>, what: Bag, out: Stored<'_>) -> usize {
    let places = if what == Bag::Max { room::<i64>(out.1.numel() as usize) } else { 0 };
    places + packed_rooms([(table.0, &line(table.1)), out])
}

/// The table with every row that is indexed and whose norm is larger than `max_norm` scaled down to it.
pub fn renorm(
    table: &View<'_>,
    indices: &View<'_>,
    max_norm: f64,
    norm_type: f64,
    out: &ViewMut<'_>,
) -> Result<(), String> {
    let (count, width) = (table.sizes()[0], table.sizes()[1] as usize);
    let mut indices = checked(indices, count)?.into_owned();
    indices.sort_unstable();
    with_compute!(float out.dtype(), T => {
        let mut data = crate::support::pack::pack_owned::<T>(table);
        for (at, &i) in indices.iter().enumerate() {
            if at > 0 && indices[at - 1] == i {
                continue;
            }
            let row = &mut data[i as usize * width..][..width];
            let size = |x: &T| x.to_f64().abs();
            let norm = if norm_type == f64::INFINITY {
                row.iter().map(size).fold(0.0, f64::max)
            } else {
                row.iter().map(|x| size(x).powf(norm_type)).sum::<f64>().powf(1.0 / norm_type)
            };
            if norm > max_norm {
                let scale = T::from_f64(max_norm / (norm + 1e-7));
                row.iter_mut().for_each(|x| *x *= scale);
            }
        }
        unpack(&data, out);
    });
    Ok(())
}

/// Scratch bytes of [`renorm`].
pub fn renorm_room(table: Stored<'_>, indices: &Layout) -> usize {
    room::<i64>(indices.numel() as usize) + compute_room(table.0, table.1.numel())
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, RawTensor};

    #[test]
    fn rows_are_found_and_added_back() {
        let table = RawTensor::from_slice(&[0f32, 1.0, 2.0, 3.0, 4.0, 5.0], &[3, 2]);
        let turned = RawTensor::from_slice(&[0f32, 2.0, 4.0, 1.0, 3.0, 5.0], &[2, 3]);
        let turned = turned.alias(DType::F32, turned.layout().transpose(0, 1).unwrap()).unwrap();
        let at = RawTensor::from_slice(&[2i64, 0, 2], &[3]);
        let out = RawTensor::zeros(DType::F32, Layout::contiguous(&[3, 2]));
        for t in [&table, &turned] {
            rows(&t.read().view(), &at.read().view(), &out.write().view_mut(), 2).unwrap();
            assert_eq!(out.to_elements::<f32>(), [4.0, 5.0, 0.0, 1.0, 4.0, 5.0]);
        }
        assert!(
            rows(&table.read().view(), &RawTensor::from_slice(&[3i64], &[1]).read().view(), &out.write().view_mut(), 1)
                .is_err()
        );
        rows_backward(&table.read().view(), &at.read().view(), Some(0), true, &out.write().view_mut()).unwrap();
        assert_eq!(out.to_elements::<f32>(), [0.0, 0.0, 0.0, 0.0, 2.0, 3.0]);
    }

    #[test]
    fn long_rows_are_cut_to_the_norm() {
        let table = RawTensor::from_slice(&[3f64, 4.0, 30.0, 40.0, 0.3, 0.4], &[3, 2]);
        let out = RawTensor::zeros(DType::F64, Layout::contiguous(&[3, 2]));
        let at = RawTensor::from_slice(&[0i64, 2, 0], &[3]);
        renorm(&table.read().view(), &at.read().view(), 1.0, 2.0, &out.write().view_mut()).unwrap();
        let got = out.to_elements::<f64>();
        assert!((got[0] - 0.6).abs() < 1e-6 && got[2..] == [30.0, 40.0, 0.3, 0.4]);
    }
}
