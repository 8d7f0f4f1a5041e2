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

    /// The address of the first element.
    pub fn start(&mut self) -> *mut T {
        self.0.as_mut_ptr().cast()
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

impl<T, const N: usize> Stack<T, N> {
    /// The first `n` elements, all bytes of them zero: as [`Stack::filled`], by the C library, and so fast however the caller is
    /// compiled.
    ///
    /// # Safety
    /// Such bytes are a value of the type.
    unsafe fn cleared(&mut self, n: usize) -> &mut [T] {
        let part = &mut self.0[..n];
        // SAFETY: elements of the stack; as promised by the caller.
        unsafe {
            part.as_mut_ptr().write_bytes(0, n);
            std::slice::from_raw_parts_mut(part.as_mut_ptr().cast(), n)
        }
    }
}

impl<const N: usize> Stack<f32, N> {
    /// The first `n` elements, zeros.
    ///
    /// # Panics
    /// If `n` exceeds `N`.
    pub fn zeroed(&mut self, n: usize) -> &mut [f32] {
        // SAFETY: they are the number zero.
        unsafe { self.cleared(n) }
    }
}

impl<const N: usize> Stack<bool, N> {
    /// The first `n` elements, all false.
    ///
    /// # Panics
    /// If `n` exceeds `N`.
    pub fn falses(&mut self, n: usize) -> &mut [bool] {
        // SAFETY: they are the value false.
        unsafe { self.cleared(n) }
    }
}

impl<T: Copy, const N: usize> Default for Stack<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
