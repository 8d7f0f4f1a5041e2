//! Results whose elements are an operand's, looked up dimension by dimension: padding, nearest-neighbour scaling.

use crate::support::convert::{element, with_word};
use crate::support::pack::{Compute as _, Stored, Target, pack, packed_rooms, with_compute};
use crate::support::par;
use crate::support::rows::slowest_first;
use crate::support::scratch::Temp;
use restride_tensor::{Dims, Layout, PerDim, Scalar, View, ViewMut};

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
    if out.numel() == 0 {
        return Ok(());
    }
    let order = memory_order(x.layout(), out.layout());
    let (from, to) = (in_order(x.layout(), &order), in_order(out.layout(), &order));
    let maps: PerDim<&[usize]> = order.iter().map(|&d| &maps[d as usize][..]).collect();
    // SAFETY: the same cells in another order.
    let (x, out) = unsafe { (x.with_layout(&from), out.with_layout(&to)) };
    if !as_they_are((x.dtype(), x.layout()), (out.dtype(), out.layout())) {
        with_compute!(any out.dtype(), T => {
            let data = pack::<T>(&x);
            let mut target = Target::<T>::new(&out);
            run::<T>(&data, x.sizes(), &maps, T::from_scalar(fill), target.slice(), threads);
            target.finish();
        });
        return Ok(());
    }
    let hole = element(out.dtype(), fill);
    with_word!(out.dtype(), W => {
        let from = (x.base() as *const W).wrapping_offset(x.layout().offset as isize);
        let to = (out.base() as *mut W).wrapping_offset(out.layout().offset as isize);
        // SAFETY: the cells of both views are neighbours of `W`'s size, and the result is memory of its own.
        let (data, target, hole) = unsafe {
            (
                if x.numel() == 0 { &[][..] } else { std::slice::from_raw_parts(from, x.numel()) },
                std::slice::from_raw_parts_mut(to, out.numel()),
                hole.as_ptr().cast::<W>().read(),
            )
        };
        run::<W>(data, x.sizes(), &maps, hole, target, threads);
    });
    Ok(())
}

/// The dimensions in the order of the result's memory, slowest first; as they are where both memories are in their order.
fn memory_order(x: &Layout, out: &Layout) -> Dims<i64> {
    let plain = x.is_contiguous() && out.is_contiguous();
    if plain { (0..out.rank() as i64).collect() } else { slowest_first(out).iter().map(|&d| d as i64).collect() }
}

fn in_order(l: &Layout, order: &[i64]) -> Layout {
    l.permute(order).expect("an order of all dimensions")
}

/// Whether elements are moved as they are from memory to memory.
fn as_they_are(x: Stored<'_>, out: Stored<'_>) -> bool {
    x.0 == out.0 && x.1.is_contiguous() && out.1.is_contiguous()
}

/// Scratch bytes of [`remap`].
pub fn remap_room(x: Stored<'_>, out: Stored<'_>) -> usize {
    let order = memory_order(x.1, out.1);
    let (from, to) = (in_order(x.1, &order), in_order(out.1, &order));
    if as_they_are((x.0, &from), (out.0, &to)) { 0 } else { packed_rooms([(out.0, &from), (out.0, &to)]) }
}

fn run<T: Copy + Send + Sync>(data: &[T], sizes: &[i64], maps: &[&[usize]], fill: T, target: &mut [T], threads: usize) {
    let Some((&row, outer)) = maps.split_last() else {
        target[0] = data[0];
        return;
    };
    let len = sizes[outer.len()] as usize;
    // The part of a row that is a copy as it is: first index of the result, of the operand, length.
    let (start, run) = longest_run(row);
    let (from, to) = (row.get(start).copied().unwrap_or(0), start + run);
    let once = [0];
    // Of a run of rows, the last of the outer dimensions is walked over; the others choose the plane.
    let (lines, outer) = outer.split_last().map_or((&once[..], outer), |(&lines, outer)| (lines, outer));
    let height = if maps.len() > 1 { sizes[maps.len() - 2] as usize } else { 1 };
    let plane = |number: usize| {
        let (mut rest, mut base, mut step) = (number, 0, 1);
        for (map, &n) in outer.iter().zip(sizes).rev() {
            let i = map[rest % map.len()];
            if i == HOLE {
                return None;
            }
            base += i * step;
            step *= n as usize;
            rest /= map.len();
        }
        Some(base * height * len)
    };
    let look = |dst: &mut [T], row: &[usize], src: &[T]| {
        for (d, &i) in dst.iter_mut().zip(row) {
            *d = if i == HOLE { fill } else { src[i] };
        }
    };
    let count = target.len() / row.len();
    let target = par::Shared::new(target);
    par::EvenParts::new(count, threads).at_least(1 + LEAST / row.len()).each(&|rows| {
        // SAFETY: the rows of a part are one thread's; the slice is borrowed until all are done.
        let part = unsafe { std::slice::from_raw_parts_mut(target.at(rows.start * row.len()), rows.len() * row.len()) };
        let mut part = part.chunks_exact_mut(row.len());
        let mut next = rows.start;
        while next < rows.end {
            let (number, first) = (next / lines.len(), next % lines.len());
            let here = &lines[first..lines.len().min(first + rows.end - next)];
            next += here.len();
            let base = plane(number);
            let mut last: Option<(usize, &[T])> = None;
            for (&line, dst) in here.iter().zip(&mut part) {
                match (base, last) {
                    (Some(_), Some((same, before))) if same == line => dst.copy_from_slice(before),
                    (Some(base), _) if line != HOLE => {
                        let src = &data[base + line * len..][..len];
                        look(&mut dst[..start], &row[..start], src);
                        if run > 0 {
                            dst[start..to].copy_from_slice(&src[from..from + run]);
                        }
                        look(&mut dst[to..], &row[to..], src);
                    }
                    _ => dst.fill(fill),
                }
                last = Some((line, dst));
            }
        }
    });
}

/// First index and length of the longest run of a map: neighbours that read neighbours.
fn longest_run(map: &[usize]) -> (usize, usize) {
    let (mut best, mut start) = ((0, 0), 0);
    while start < map.len() {
        let run = map[start..].iter().enumerate().take_while(|&(k, &i)| i != HOLE && i == map[start] + k).count();
        if run > best.1 {
            best = (start, run);
        }
        start += run.max(1);
    }
    best
}

/// Elements that are worth a thread.
const LEAST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, Layout, RawTensor};

    #[test]
    fn the_longest_run_is_found() {
        assert_eq!(longest_run(&[HOLE, 0, 1, HOLE]), (1, 2));
        assert_eq!(longest_run(&[2, 1, 0, 1, 2, 3, 2, 3]), (2, 4));
        assert_eq!(longest_run(&[HOLE, HOLE]), (0, 0));
        assert_eq!(longest_run(&[]), (0, 0));
    }

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

    #[test]
    fn elements_move_in_the_order_of_both_memories() {
        let maps = [&[1, 0][..], &[0, 1, 2], &[HOLE, 0, 0, 1], &[2, 2, 0, HOLE, 1]].map(Temp::copied);
        let run = |from: [usize; 4], to: [usize; 4]| {
            let x = RawTensor::zeros(DType::I32, Layout::permuted(&[2, 3, 2, 3], &from));
            crate::support::pack::unpack(&(1i64..=36).collect::<Vec<_>>(), &x.write().view_mut());
            let out = RawTensor::zeros(DType::I32, Layout::permuted(&[2, 3, 4, 5], &to));
            let room = remap_room((x.dtype(), x.layout()), (out.dtype(), out.layout()));
            assert_eq!(room == 0, from == to);
            remap(&x.read().view(), &maps, Scalar::Int(-1), &out.write().view_mut(), 2).unwrap();
            out.to_elements::<i32>()
        };
        let (first, last) = ([0, 1, 2, 3], [0, 2, 3, 1]);
        let want = run(first, first);
        assert_eq!(want[5..10], [21, 21, 19, -1, 20]);
        for (from, to) in [(last, last), (first, last), (last, first), ([3, 1, 0, 2], [3, 1, 0, 2])] {
            assert_eq!(run(from, to), want, "{from:?} {to:?}");
        }
    }
}
