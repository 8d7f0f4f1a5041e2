//! The first `k` of a row as C++'s `std::partial_sort` and `std::nth_element` leave them.
//!
//! PyTorch's `topk` says nothing about ties, yet models compare what it picks (boxes of equal scores), and which of the
//! equals come first is what its selection does with them: heap selection for few of many, introselect and introsort
//! otherwise (`topk_impl_loop` in `aten/src/ATen/native/TopKImpl.h`), as libstdc++ has them (Musser, "Introspective Sorting
//! and Selection Algorithms", 1997). These are the same steps, written for slices.

/// A number's [key](crate::support::number::Ordered::key), or its complement, and its position.
type Keyed = (i64, i64);

/// Whether the first element goes strictly before the second.
fn less(a: &Keyed, b: &Keyed) -> bool {
    a.0 < b.0
}

/// Puts the first `k` elements of the order in front; in order unless `sorted` is false (few of many always are).
pub(crate) fn first(row: &mut [Keyed], k: usize, sorted: bool) {
    if k == 0 {
        return;
    }
    if k * 64 <= row.len() {
        heap_select(row, k);
        sort_heap(&mut row[..k]);
    } else {
        nth_element(row, k - 1);
        if sorted {
            sort(&mut row[..k - 1]);
        }
    }
}

/// Moves `value` down from the hole at `at` to a leaf, then up to where it belongs, but not above `at`.
fn adjust_heap(heap: &mut [Keyed], at: usize, value: Keyed) {
    let (len, mut hole) = (heap.len(), at);
    while 2 * hole + 2 < len {
        let mut child = 2 * hole + 2;
        if less(&heap[child], &heap[child - 1]) {
            child -= 1;
        }
        heap[hole] = heap[child];
        hole = child;
    }
    if 2 * hole + 2 == len {
        heap[hole] = heap[len - 1];
        hole = len - 1;
    }
    while hole > at && less(&heap[(hole - 1) / 2], &value) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = value;
}

/// Leaves the first `k` of the order in front, as a heap with the last of them on top.
fn heap_select(row: &mut [Keyed], k: usize) {
    for at in (0..k / 2).rev() {
        let value = row[at];
        adjust_heap(&mut row[..k], at, value);
    }
    for i in k..row.len() {
        if less(&row[i], &row[0]) {
            let value = row[i];
            row[i] = row[0];
            adjust_heap(&mut row[..k], 0, value);
        }
    }
}

fn sort_heap(heap: &mut [Keyed]) {
    for last in (1..heap.len()).rev() {
        let value = heap[last];
        heap[last] = heap[0];
        adjust_heap(&mut heap[..last], 0, value);
    }
}

/// Splits a row of more than 3 elements around the median of three of them; gives where the second part begins.
fn partition(row: &mut [Keyed]) -> usize {
    let (a, b, c) = (1, row.len() / 2, row.len() - 1);
    let median = if less(&row[a], &row[b]) {
        if less(&row[b], &row[c]) {
            b
        } else if less(&row[a], &row[c]) {
            c
        } else {
            a
        }
    } else if less(&row[a], &row[c]) {
        a
    } else if less(&row[b], &row[c]) {
        c
    } else {
        b
    };
    row.swap(0, median);
    let (mut first, mut last) = (1, row.len());
    loop {
        while less(&row[first], &row[0]) {
            first += 1;
        }
        last -= 1;
        while less(&row[0], &row[last]) {
            last -= 1;
        }
        if first >= last {
            return first;
        }
        row.swap(first, last);
        first += 1;
    }
}

/// Partitions that are allowed before heap selection takes over.
fn depth(len: usize) -> u32 {
    2 * len.ilog2()
}

/// Puts the element of the given rank in its place, smaller ones before it.
fn nth_element(row: &mut [Keyed], nth: usize) {
    let (mut first, mut last, mut left) = (0, row.len(), depth(row.len()));
    while last - first > 3 {
        if left == 0 {
            heap_select(&mut row[first..last], nth + 1 - first);
            row.swap(first, nth);
            return;
        }
        left -= 1;
        let cut = first + partition(&mut row[first..last]);
        if cut <= nth {
            first = cut;
        } else {
            last = cut;
        }
    }
    insertion_sort(&mut row[first..last]);
}

fn sort(row: &mut [Keyed]) {
    if row.is_empty() {
        return;
    }
    split(row, depth(row.len()));
    insertion_sort(row);
}

/// Splits a row until its parts are short.
fn split(row: &mut [Keyed], mut left: u32) {
    let mut last = row.len();
    while last > 16 {
        if left == 0 {
            heap_select(&mut row[..last], last);
            sort_heap(&mut row[..last]);
            return;
        }
        left -= 1;
        let cut = partition(&mut row[..last]);
        split(&mut row[cut..last], left);
        last = cut;
    }
}

fn insertion_sort(row: &mut [Keyed]) {
    for i in 1..row.len() {
        let at = row[..i].iter().rposition(|x| !less(&row[i], x)).map_or(0, |p| p + 1);
        row[at..=i].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where `torch.topk(torch.full((n,), 0.25), k)` of PyTorch 2.15 takes its elements from.
    #[test]
    fn equals_come_as_pytorch_has_them() {
        let indices = |n, k, sorted| {
            let mut row: Vec<Keyed> = (0..n).map(|i| (25, i)).collect();
            first(&mut row, k, sorted);
            row[..k.min(12)].iter().map(|x| x.1).collect::<Vec<_>>()
        };
        assert_eq!(indices(100, 2, true), [67, 66]);
        assert_eq!(indices(1000, 10, true), [8, 9, 4, 7, 5, 3, 1, 0, 2, 6]);
        assert_eq!(indices(91, 50, true), [54, 66, 65, 64, 63, 62, 61, 60, 59, 58, 57, 56]);
        assert_eq!(indices(91, 50, false), [45, 90, 89, 88, 87, 86, 85, 84, 83, 82, 81, 80]);
        assert_eq!(indices(300, 300, true), [45, 54, 53, 52, 51, 50, 49, 48, 47, 46, 55, 44]);
        assert_eq!(indices(8400, 300, true), [5580, 5571, 5572, 5573, 5574, 5575, 5576, 5577, 5578, 5579, 5570, 5581]);
        assert_eq!(indices(40, 39, true), [9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 21, 15]);
    }

    #[test]
    fn what_is_selected_is_what_sorting_gives() {
        let mut state = 1u64;
        for n in 1..200usize {
            let mut next = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((state >> 33) % n as u64) as i64
            };
            let row: Vec<Keyed> = (0..n).map(|_| (next(), 0)).collect();
            let mut all = row.clone();
            all.sort_unstable();
            for k in [1, n / 70, n / 3, n - 1, n] {
                let mut got = row.clone();
                first(&mut got, k, true);
                assert_eq!(got[..k], all[..k], "{k} of {row:?}");
                // Heap selection where partitions run out.
                let mut got = row.clone();
                split(&mut got, 0);
                insertion_sort(&mut got);
                assert_eq!(got, all);
            }
        }
    }
}
