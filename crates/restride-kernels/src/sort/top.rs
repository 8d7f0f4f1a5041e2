//! The first `k` of a row as C++'s `std::partial_sort` and `std::nth_element` leave them.
//!
//! PyTorch's `topk` says nothing about ties, yet models compare what it picks (boxes of equal scores), and which of the
//! equals come first is what its selection does with them: heap selection for few of many, introselect and introsort
//! otherwise (`topk_impl_loop` in `aten/src/ATen/native/TopKImpl.h`), as libstdc++ has them (Musser, "Introspective Sorting
//! and Selection Algorithms", 1997). These are the same steps, written for slices.

/// True when the first element goes strictly before the second.
pub(crate) trait Less<T>: Fn(&T, &T) -> bool {}
impl<T, F: Fn(&T, &T) -> bool> Less<T> for F {}

/// Puts the first `k` elements of the order in front; in order unless `sorted` is false (few of many always are).
pub(crate) fn first<T: Copy>(row: &mut [T], k: usize, sorted: bool, less: &impl Less<T>) {
    if k == 0 {
        return;
    }
    if k * 64 <= row.len() {
        heap_select(row, k, less);
        sort_heap(&mut row[..k], less);
    } else {
        nth_element(row, k - 1, less);
        if sorted {
            sort(&mut row[..k - 1], less);
        }
    }
}

/// Moves `value` down from the hole at `at` to a leaf, then up to where it belongs, but not above `at`.
fn adjust_heap<T: Copy>(heap: &mut [T], at: usize, value: T, less: &impl Less<T>) {
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
fn heap_select<T: Copy>(row: &mut [T], k: usize, less: &impl Less<T>) {
    for at in (0..k / 2).rev() {
        let value = row[at];
        adjust_heap(&mut row[..k], at, value, less);
    }
    for i in k..row.len() {
        if less(&row[i], &row[0]) {
            let value = row[i];
            row[i] = row[0];
            adjust_heap(&mut row[..k], 0, value, less);
        }
    }
}

fn sort_heap<T: Copy>(heap: &mut [T], less: &impl Less<T>) {
    for last in (1..heap.len()).rev() {
        let value = heap[last];
        heap[last] = heap[0];
        adjust_heap(&mut heap[..last], 0, value, less);
    }
}

/// Splits a row of more than 3 elements around the median of three of them; gives where the second part begins.
fn partition<T: Copy>(row: &mut [T], less: &impl Less<T>) -> usize {
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
fn nth_element<T: Copy>(row: &mut [T], nth: usize, less: &impl Less<T>) {
    let (mut first, mut last, mut left) = (0, row.len(), depth(row.len()));
    while last - first > 3 {
        if left == 0 {
            heap_select(&mut row[first..last], nth + 1 - first, less);
            row.swap(first, nth);
            return;
        }
        left -= 1;
        let cut = first + partition(&mut row[first..last], less);
        if cut <= nth {
            first = cut;
        } else {
            last = cut;
        }
    }
    insertion_sort(&mut row[first..last], less);
}

fn sort<T: Copy>(row: &mut [T], less: &impl Less<T>) {
    if row.is_empty() {
        return;
    }
    split(row, depth(row.len()), less);
    insertion_sort(row, less);
}

/// Splits a row until its parts are short.
fn split<T: Copy>(row: &mut [T], mut left: u32, less: &impl Less<T>) {
    let mut last = row.len();
    while last > 16 {
        if left == 0 {
            heap_select(&mut row[..last], last, less);
            sort_heap(&mut row[..last], less);
            return;
        }
        left -= 1;
        let cut = partition(&mut row[..last], less);
        split(&mut row[cut..last], left, less);
        last = cut;
    }
}

fn insertion_sort<T: Copy>(row: &mut [T], less: &impl Less<T>) {
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
        let indices = |n: usize, k, sorted| {
            let mut row: Vec<(f32, usize)> = (0..n).map(|i| (0.25, i)).collect();
            first(&mut row, k, sorted, &|a: &(f32, usize), b: &(f32, usize)| a.0 > b.0);
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
                (state >> 33) % (n as u64)
            };
            let row: Vec<u64> = (0..n).map(|_| next()).collect();
            let mut all = row.clone();
            all.sort_unstable();
            for k in [1, n / 70, n / 3, n - 1, n] {
                let mut got = row.clone();
                first(&mut got, k, true, &|a: &u64, b: &u64| a < b);
                assert_eq!(got[..k], all[..k], "{k} of {row:?}");
                // Heap selection where partitions run out.
                let mut got = row.clone();
                split(&mut got, 0, &|a: &u64, b: &u64| a < b);
                insertion_sort(&mut got, &|a: &u64, b: &u64| a < b);
                assert_eq!(got, all);
            }
        }
    }
}
