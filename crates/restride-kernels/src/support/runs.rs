//! Copies of runs of memory, and of rows whose cells are apart.

use crate::support::isa;
use std::mem::MaybeUninit;

/// Bytes from which on the C library on x86-64 copies with `rep movsb` instead of vectors, less some. At some distances of the two
/// addresses (a run of 4096 bytes, 16 bytes behind a multiple of 4096) that takes fifteen times as long.
const PART: usize = 2048;
/// Bytes from which on what it does, past the caches, is faster.
const LARGE: usize = 4 << 20;

/// Copies `n` elements; both runs may be the same.
///
/// # Safety
/// As [`std::ptr::copy`]; the runs are the same or do not overlap.
#[inline]
pub unsafe fn copy<T: Copy>(from: *const T, to: *mut T, n: usize) {
    let part = const { PART / if size_of::<T>() == 0 { 1 } else { size_of::<T>() } };
    if n <= part {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy(from, to, n) };
    }
    // SAFETY: the caller's promise.
    unsafe { in_parts(from.cast(), to.cast(), n * size_of::<T>()) }
}

/// As [`copy`], of bytes.
#[inline(never)]
unsafe fn in_parts(from: *const u8, to: *mut u8, bytes: usize) {
    let part = if bytes >= LARGE { bytes } else { PART };
    for start in (0..bytes).step_by(part) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(from.add(start), to.add(start), part.min(bytes - start)) };
    }
}

/// Copies `n` elements, `from_step` and `to_step` cells from one to the next, first to last.
///
/// # Safety
/// The cells may be read and written and are aligned; both sides are the same memory only cell by cell.
#[inline]
pub unsafe fn copy_row<T: Copy>(from: *const T, from_step: isize, to: *mut T, to_step: isize, n: usize) {
    match (to_step, from_step) {
        // SAFETY: the caller's promise.
        (1, 1) => unsafe { copy(from, to, n) },
        (1, 0) if n > 0 => {
            // SAFETY: as above.
            let word = unsafe { from.read() };
            // SAFETY: as above.
            (0..n).for_each(|i| unsafe { to.add(i).write(word) });
        }
        (1, -1) => isa::run(Reversed { from, to, n }),
        _ => {
            for i in 0..n as isize {
                // SAFETY: as above.
                unsafe { to.wrapping_offset(i * to_step).write(from.wrapping_offset(i * from_step).read()) };
            }
        }
    }
}

/// A row copied from its last element to its first one. [`copy_row`] has the promise that its cells may be read and written.
struct Reversed<T> {
    from: *const T,
    to: *mut T,
    n: usize,
}
impl<T: Copy> isa::Work for Reversed<T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        for i in 0..self.n {
            // SAFETY: the promise that [`copy_row`] has.
            unsafe { self.to.add(i).write(self.from.wrapping_sub(i).read()) };
        }
    }
}

/// Longest rows for [`short_rows`].
pub(crate) const SHORT_ROW: usize = 8;

/// Copies `to[i * row + j] = from[i * row + j * step]`, with rows of their own, for `i` and `j` below the sizes, `j` in a loop of
/// constant length.
///
/// # Safety
/// These are cells that may be read and written, aligned for `W`; both sides are the same memory only cell by cell.
#[inline(never)]
pub(crate) unsafe fn short_rows<W: Copy>(
    [count, n]: [usize; 2],
    (from, from_row, step): (*const W, isize, isize),
    (to, to_row): (*mut W, isize),
) {
    // SAFETY: the caller's promise.
    let copy = |i: usize, n: usize| unsafe {
        let (from, to) = (from.wrapping_offset(i as isize * from_row), to.wrapping_offset(i as isize * to_row));
        (0..n).for_each(|j| to.add(j).write(from.wrapping_offset(j as isize * step).read()));
    };
    match n {
        2 => (0..count).for_each(|i| copy(i, 2)),
        3 => (0..count).for_each(|i| copy(i, 3)),
        4 => (0..count).for_each(|i| copy(i, 4)),
        _ => (0..count).for_each(|i| copy(i, n)),
    }
}

/// Copies `to[i * to_step + j] = from[i + j * from_step]` for `i` and `j` below the sizes, in tiles: the cache gets whole lines of
/// both sides.
///
/// # Safety
/// These are cells that may be read and written, aligned for `W`; both sides are the same memory only cell by cell.
pub(super) unsafe fn transpose<W: Copy>(
    from: *const W,
    from_step: isize,
    to: *mut W,
    to_step: isize,
    sizes: [usize; 2],
) {
    const SIDE: usize = 16;
    let mut tile = [const { MaybeUninit::<W>::uninit() }; SIDE * SIDE];
    for i in (0..sizes[0]).step_by(SIDE) {
        let rows = SIDE.min(sizes[0] - i);
        for j in (0..sizes[1]).step_by(SIDE) {
            let columns = SIDE.min(sizes[1] - j);
            for jj in 0..columns {
                let line = from.wrapping_offset(i as isize + (j + jj) as isize * from_step);
                // SAFETY: the caller's promise; the tile has `SIDE` lines of `SIDE` elements.
                unsafe { tile.as_mut_ptr().add(jj * SIDE).cast::<W>().copy_from_nonoverlapping(line, rows) };
            }
            for ii in 0..rows {
                let line = to.wrapping_offset((i + ii) as isize * to_step + j as isize);
                if columns == SIDE {
                    for jj in 0..SIDE {
                        // SAFETY: the caller's promise; these elements of the tile were just written.
                        unsafe { line.add(jj).write(tile[jj * SIDE + ii].assume_init()) };
                    }
                } else {
                    for jj in 0..columns {
                        // SAFETY: as above.
                        unsafe { line.add(jj).write(tile[jj * SIDE + ii].assume_init()) };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_is_copied() {
        for n in [0, 1, 511, 512, 513, 1024, 5000, (4 << 20) / 4 + 3] {
            let from: Vec<u32> = (0..n as u32).collect();
            let mut to = vec![7u32; n + 1];
            // SAFETY: two vectors of these lengths.
            unsafe { super::copy(from.as_ptr(), to.as_mut_ptr(), n) };
            assert!(to[..n] == from && to[n] == 7, "{n}");
        }
    }

    #[test]
    fn rows_are_copied_in_any_strides() {
        let from: Vec<u32> = (0..400).collect();
        for (from_step, to_step) in [-3, -1, 0, 1, 2].iter().flat_map(|f| [-1, 0, 1, 3].map(|t| (*f, t))) {
            for n in [0, 1, 2, 37] {
                let mut to = vec![7; 400];
                // SAFETY: both begin in the middle, and no row reaches an end.
                unsafe { super::copy_row(from[200..].as_ptr(), from_step, to[200..].as_mut_ptr(), to_step, n) };
                let mut want = vec![7; 400];
                (0..n as isize).for_each(|i| want[(200 + i * to_step) as usize] = (200 + i * from_step) as u32);
                assert_eq!(to, want, "{from_step} {to_step} {n}");
            }
        }
    }
}
