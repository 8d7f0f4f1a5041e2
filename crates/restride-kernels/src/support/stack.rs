//! Scratch on the stack, for kernels that need a little of it.

use std::mem::MaybeUninit;

/// Memory for up to `N` elements. Unused elements cost nothing. Begins at a line of the cache: the widest vectors cross none.
#[repr(align(64))]
pub struct Stack<T, const N: usize>([MaybeUninit<T>; N]);

impl<T: Copy, const N: usize> Stack<T, N> {
    /// Uninitialised.
    pub fn new() -> Self {
        Stack([const { MaybeUninit::uninit() }; N])
    }

    /// The first `n` elements, filled with `value`.
    ///
    /// # Panics
    /// If `n` exceeds `N`.
    pub fn filled(&mut self, n: usize, value: T) -> &mut [T] {
        let part = &mut self.0[..n];
        part.iter_mut().for_each(|x| {
            x.write(value);
        });
        // SAFETY: all of them were just written.
        unsafe { std::slice::from_raw_parts_mut(part.as_mut_ptr().cast(), n) }
    }
}

impl<const N: usize> Stack<f32, N> {
    /// The first `n` elements, zeros: as [`Stack::filled`], by the C library, and so fast however the caller is compiled.
    ///
    /// # Panics
    /// If `n` exceeds `N`.
    pub fn zeroed(&mut self, n: usize) -> &mut [f32] {
        let part = &mut self.0[..n];
        // SAFETY: elements of the stack; bytes of zero are the number.
        unsafe {
            part.as_mut_ptr().write_bytes(0, n);
            std::slice::from_raw_parts_mut(part.as_mut_ptr().cast(), n)
        }
    }
}

impl<const N: usize> Stack<bool, N> {
    /// The first `n` elements, all false, as [`Stack::zeroed`].
    ///
    /// # Panics
    /// If `n` exceeds `N`.
    pub fn falses(&mut self, n: usize) -> &mut [bool] {
        let part = &mut self.0[..n];
        // SAFETY: elements of the stack; a byte of zero is false.
        unsafe {
            part.as_mut_ptr().write_bytes(0, n);
            std::slice::from_raw_parts_mut(part.as_mut_ptr().cast(), n)
        }
    }
}

impl<T: Copy, const N: usize> Default for Stack<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
