//! Copies of runs of memory.

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
}
