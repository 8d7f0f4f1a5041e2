//! Work shared between threads in a way that no result can depend on: every piece is computed by one thread alone.

use crate::support::threads::share;
use std::ops::Range;

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

/// Consecutive parts of some items, for threads to share: as many for each thread, and any two differ by one item at most.
#[derive(Clone, Copy, Debug)]
pub struct EvenParts {
    items: usize,
    count: usize,
    threads: usize,
}

impl EvenParts {
    /// A part for one thread, or several for each.
    pub fn new(items: usize, threads: usize) -> EvenParts {
        EvenParts { items, count: if threads > 1 { threads * PARTS } else { 1 }, threads }.rounded()
    }

    /// Fewer parts, where some would have fewer items than this.
    #[must_use]
    pub fn at_least(self, items: usize) -> EvenParts {
        EvenParts { count: self.count.min(self.items / items.max(1)), ..self }.rounded()
    }

    /// More parts, where some would have more items than this.
    #[must_use]
    pub fn at_most(self, items: usize) -> EvenParts {
        EvenParts { count: self.count.max(self.items.div_ceil(items.max(1))), ..self }.rounded()
    }

    fn rounded(self) -> EvenParts {
        let count =
            if self.count > self.threads { self.count.next_multiple_of(self.threads.max(1)) } else { self.count };
        EvenParts { count: count.clamp(1, self.items.max(1)), ..self }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The items of a part.
    pub fn part(&self, number: usize) -> Range<usize> {
        self.items * number / self.count..self.items * (number + 1) / self.count
    }

    /// Calls `f` for the items of every part, on the threads.
    pub fn each(self, f: &(dyn Fn(Range<usize>) + Sync)) {
        if self.threads <= 1 || self.count <= 1 {
            return (0..self.count).for_each(|i| f(self.part(i)));
        }
        share(self.threads, self.count, &|i| f(self.part(i)));
    }
}

/// The dimension whose indices threads share, and in what parts, about `parts` of them: of dimensions with their sizes, slowest in
/// memory first, the first one that has a few indices for each thread. Parts of a fast one would be short runs in memory.
pub fn cut(
    dims: impl Iterator<Item = (usize, usize)> + Clone,
    parts: usize,
    threads: usize,
) -> Option<(usize, EvenParts)> {
    let first = |least: usize| dims.clone().find(|(_, size)| *size >= least);
    let found = first(parts.min(2 * threads)).or_else(|| first(threads));
    let (dim, size) = found.or_else(|| dims.clone().max_by_key(|(_, size)| *size))?;
    (parts.min(size) > 1).then(|| (dim, EvenParts { items: size, count: parts, threads }.rounded()))
}

/// Calls `f` for every index below `count`, on up to `threads` threads.
pub fn each(threads: usize, count: usize, f: &(dyn Fn(usize) + Sync)) {
    EvenParts::new(count, threads).each(&|items| items.for_each(f));
}

/// As [`each`], with a state of its own for each thread.
pub fn each_with<S>(threads: usize, count: usize, state: &(dyn Fn() -> S + Sync), f: &(dyn Fn(&mut S, usize) + Sync)) {
    EvenParts { items: count, count: threads, threads }.rounded().each(&|items| {
        let mut s = state();
        items.for_each(|i| f(&mut s, i));
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
    use super::EvenParts;

    #[test]
    fn the_slowest_long_dimension_is_cut() {
        let cut = |sizes: &[usize], parts| {
            super::cut(sizes.iter().copied().enumerate(), parts, 2).map(|(dim, parts)| (dim, parts.count()))
        };
        assert_eq!(cut(&[1, 28, 28, 96], 8), Some((1, 8)));
        assert_eq!(cut(&[1, 7, 7, 576], 8), Some((1, 7)));
        assert_eq!(cut(&[3, 2, 100], 8), Some((2, 8)));
        assert_eq!(cut(&[3, 2], 8), Some((0, 3)));
        assert_eq!(cut(&[1, 1], 8), None);
        assert_eq!(cut(&[5, 5], 1), None);
        assert_eq!(cut(&[9, 5], 3), Some((0, 4)));
        assert_eq!(cut(&[], 4), None);
    }

    #[test]
    fn parts_are_as_many_for_each_thread_and_even() {
        let parts = |items, threads| EvenParts::new(items, threads);
        let sizes = |parts: EvenParts| (0..parts.count()).map(|i| parts.part(i).len()).collect::<Vec<_>>();
        assert_eq!(sizes(parts(28, 2)), [3, 4, 3, 4, 3, 4, 3, 4]);
        assert_eq!(sizes(parts(10, 2)), [1, 1, 1, 2, 1, 1, 1, 2]);
        assert_eq!(sizes(parts(3, 2)), [1, 1, 1]);
        assert_eq!(sizes(parts(28, 1)), [28]);
        assert_eq!(sizes(parts(28, 2).at_least(7)), [7, 7, 7, 7]);
        assert_eq!(sizes(parts(28, 2).at_least(9)), [7, 7, 7, 7]);
        assert_eq!(sizes(parts(28, 2).at_least(14)), [14, 14]);
        assert_eq!(sizes(parts(28, 2).at_least(20)), [28]);
        assert_eq!(sizes(parts(20, 2).at_most(2)), [2; 10]);
        assert_eq!(sizes(parts(18, 2).at_most(2)), [1, 2, 2, 2, 2, 1, 2, 2, 2, 2]);
        assert_eq!(sizes(parts(5, 1).at_most(2)), [1, 2, 2]);
        assert_eq!(sizes(parts(0, 2)), [0]);
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
