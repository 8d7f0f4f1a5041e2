//! The processor's caches.

/// Bytes of a line.
pub const LINE: usize = 64;

/// A cache of the processor.
#[derive(Clone, Copy)]
pub enum CacheLevel {
    /// The smallest and nearest one.
    First,
    /// The one behind it.
    Second,
}

/// Fetches a line of memory to a cache, without waiting for it. Any address may be given.
#[inline(always)]
pub fn prefetch<T>(line: *const T, to: CacheLevel) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint, which reads nothing that the program sees.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        match to {
            CacheLevel::First => _mm_prefetch::<_MM_HINT_T0>(line.cast()),
            CacheLevel::Second => _mm_prefetch::<_MM_HINT_T1>(line.cast()),
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (line, to);
}
