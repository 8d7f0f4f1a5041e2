//! Arrays in kernels.

use std::mem::MaybeUninit;

/// As [`std::array::from_fn`], for numbers and vectors. Kernels have hundreds of these, and that one, which drops what it has if a
/// closure panics, is three times the code for the compiler.
#[inline(always)]
pub(crate) fn from_fn<T: Copy, const N: usize>(mut element: impl FnMut(usize) -> T) -> [T; N] {
    let mut all = MaybeUninit::<[T; N]>::uninit();
    let first = all.as_mut_ptr().cast::<T>();
    let mut i = 0;
    while i < N {
        // SAFETY: one of the `N` elements.
        unsafe { first.add(i).write(element(i)) };
        i += 1;
    }
    // SAFETY: each element is written.
    unsafe { all.assume_init() }
}
