//! Work shared between threads in a way that no result can depend on: every piece is computed by one thread alone.

use crate::support::threads::share;

/// Calls `f(index, piece)` for consecutive pieces of `chunk` elements (the last may be shorter), on up to
/// `threads` threads.
// One copy for each element type, not for each closure.
pub fn pieces<T: Send>(threads: usize, out: &mut [T], chunk: usize, f: &(dyn Fn(usize, &mut [T]) + Sync)) {
    let chunk = chunk.max(1);
    let len = out.len();
    let out = Shared::new(out);
    each(threads, len.div_ceil(chunk), &|i| {
        let start = i * chunk;
        // SAFETY: pieces do not overlap, and each is one thread's; the slice is borrowed until all are done.
        let piece = unsafe { std::slice::from_raw_parts_mut(out.at(start), chunk.min(len - start)) };
        f(i, piece);
    });
}

/// Parts of the work for each thread: a thread that is kept from working leaves its parts to the others.
const PARTS: usize = 4;

/// Items of a part, where there is to be a part for one thread, or several for each.
pub(crate) fn part(items: usize, threads: usize) -> usize {
    items.div_ceil(if threads > 1 { threads * PARTS } else { 1 }).max(1)
}

/// The dimension whose indices threads share, and in how many parts: of dimensions with their sizes, slowest in memory first, the first
/// one that has a few indices for each thread. Parts of a fast one would be short runs in memory.
pub fn cut(dims: impl Iterator<Item = (usize, usize)> + Clone, parts: usize, threads: usize) -> Option<(usize, usize)> {
    let first = |least: usize| dims.clone().find(|(_, size)| *size >= least);
    let found = first(parts.min(2 * threads)).or_else(|| first(threads));
    let (dim, size) = found.or_else(|| dims.clone().max_by_key(|(_, size)| *size))?;
    (parts.min(size) > 1).then_some((dim, parts.min(size)))
}

/// Calls `f` for every index below `count`, on up to `threads` threads.
pub fn each(threads: usize, count: usize, f: &(dyn Fn(usize) + Sync)) {
    if threads <= 1 || count <= 1 {
        return (0..count).for_each(f);
    }
    let part = count.div_ceil(threads * PARTS);
    share(threads, count.div_ceil(part), &|p| (p * part..count.min((p + 1) * part)).for_each(f));
}

/// As [`each`], with a state of its own for each thread.
pub fn each_with<S>(threads: usize, count: usize, state: &(dyn Fn() -> S + Sync), f: &(dyn Fn(&mut S, usize) + Sync)) {
    if threads <= 1 || count <= 1 {
        let mut s = state();
        return (0..count).for_each(|i| f(&mut s, i));
    }
    let per_thread = count.div_ceil(threads);
    share(threads, count.div_ceil(per_thread), &|t| {
        let start = t * per_thread;
        let mut s = state();
        (start..count.min(start + per_thread)).for_each(|i| f(&mut s, i));
    });
}

/// An address that threads write to, each its own elements.
pub struct Shared<T>(*mut T);
// SAFETY: whoever writes through it says why no two threads write the same element.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    /// Of a slice that outlives the threads.
    pub fn new(slice: &mut [T]) -> Self {
        Shared(slice.as_mut_ptr())
    }
    /// Address of an element.
    pub fn at(&self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

/// A view or an address that threads share the work on.
pub(crate) struct Across<T>(T);
// SAFETY: the caller of `new` promises that no thread writes an element that another one uses.
unsafe impl<T> Send for Across<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Across<T> {}
impl<T> Across<T> {
    /// # Safety
    /// While threads share it, no thread writes an element that another one reads or writes.
    pub(crate) unsafe fn new(of: T) -> Self {
        Across(of)
    }
    pub(crate) fn get(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_slowest_long_dimension_is_cut() {
        let cut = |sizes: &[usize], parts| super::cut(sizes.iter().copied().enumerate(), parts, 2);
        assert_eq!(cut(&[1, 28, 28, 96], 8), Some((1, 8)));
        assert_eq!(cut(&[1, 7, 7, 576], 8), Some((1, 7)));
        assert_eq!(cut(&[3, 2, 100], 8), Some((2, 8)));
        assert_eq!(cut(&[3, 2], 8), Some((0, 3)));
        assert_eq!(cut(&[1, 1], 8), None);
        assert_eq!(cut(&[5, 5], 1), None);
        assert_eq!(cut(&[], 4), None);
    }

    #[test]
    fn every_piece_is_visited_once_with_its_index() {
        for threads in [1, 2, 3, 7] {
            let mut out = vec![0usize; 23];
            super::pieces(threads, &mut out, 4, &|i, piece| piece.iter_mut().for_each(|x| *x += i + 1));
            let want: Vec<usize> = (0..23).map(|i| i / 4 + 1).collect();
            assert_eq!(out, want);
            let seen: Vec<_> = (0..10).map(|_| std::sync::atomic::AtomicUsize::new(0)).collect();
            super::each(threads, 10, &|i| {
                seen[i].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            });
            assert!(seen.iter().all(|n| n.load(std::sync::atomic::Ordering::Relaxed) == 1));
        }
    }
}
