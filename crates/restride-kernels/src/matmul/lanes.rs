//! Vectors of processors: what the innermost loops of products need of them.
//!
//! Every implementation multiplies and adds at once where its processor can ([`Plain`] on other processors rounds twice), so vectors
//! of different widths give the same bits on one processor.

use crate::support::array;
use num_traits::Zero;
use std::ops::{Add, Mul};

/// A vector of [`LANES`](Lanes::LANES) numbers.
///
/// All functions are unsafe because the processor must have the instructions; addresses are those of as many elements as named.
pub trait Lanes: Copy {
    /// A number.
    type T: Copy + Zero + Send + Sync + 'static;
    /// Numbers in a vector.
    const LANES: usize;
    /// All lanes the same number.
    unsafe fn splat(x: Self::T) -> Self;
    /// A vector's elements.
    unsafe fn load(from: *const Self::T) -> Self;
    /// A vector's elements.
    unsafe fn store(self, to: *mut Self::T);
    /// The first `n`, and zeros.
    unsafe fn load_first(from: *const Self::T, n: usize) -> Self;
    /// The first `n`.
    unsafe fn store_first(self, to: *mut Self::T, n: usize);
    /// Lane by lane.
    unsafe fn plus(self, other: Self) -> Self;
    /// `x y + self`, lane by lane.
    unsafe fn plus_product(self, x: Self, y: Self) -> Self;
}

/// Numbers side by side, for processors without vectors of a kind that is known here.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Plain<T, const N: usize>([T; N]);

/// A number that can be multiplied and added.
pub trait Scalar: Copy + Zero + Add<Output = Self> + Mul<Output = Self> + Send + Sync + 'static {
    /// `x y + self`: at once where every processor of the target can.
    fn plus_product(self, x: Self, y: Self) -> Self;
}
macro_rules! scalar {
    ($($t:ty),*) => {$(
        impl Scalar for $t {
            #[inline(always)]
            fn plus_product(self, x: Self, y: Self) -> Self {
                if cfg!(any(target_arch = "aarch64", target_feature = "fma")) { x.mul_add(y, self) } else { self + x * y }
            }
        }
    )*};
}
scalar!(f32, f64);

impl<T: Scalar, const N: usize> Lanes for Plain<T, N> {
    type T = T;
    const LANES: usize = N;
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Plain([x; N])
    }
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller's promise.
        Plain(unsafe { from.cast::<[T; N]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[T; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn load_first(from: *const T, n: usize) -> Self {
        // SAFETY: the caller's promise.
        Plain(array::from_fn(|i| if i < n { unsafe { from.add(i).read() } } else { T::zero() }))
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut T, n: usize) {
        for (i, x) in self.0.into_iter().enumerate().take(n) {
            // SAFETY: the caller's promise.
            unsafe { to.add(i).write(x) }
        }
    }
    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Plain(array::from_fn(|i| self.0[i] + other.0[i]))
    }
    #[inline(always)]
    unsafe fn plus_product(self, x: Self, y: Self) -> Self {
        Plain(array::from_fn(|i| self.0[i].plus_product(x.0[i], y.0[i])))
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::Pairs;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    /// A mask whose lanes below `n` count, for vectors of up to eight lanes of four bytes: `n` of the first eight words are ones.
    static FIRST: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    macro_rules! wide {
        ($vector:ty, $t:ty, $lanes:expr, $mask:ty, $splat:ident, $load:ident, $store:ident, $load_first:ident, $store_first:ident,
         $add:ident, $fma:ident) => {
            impl Lanes for $vector {
                type T = $t;
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn splat(x: $t) -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(from: *const $t) -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $t) {
                    // SAFETY: the caller's promise.
                    unsafe { $store(to, self) }
                }
                #[inline(always)]
                unsafe fn load_first(from: *const $t, n: usize) -> Self {
                    // SAFETY: the caller's promise: other lanes are not read.
                    unsafe { $load_first(<$mask>::first(n), from) }
                }
                #[inline(always)]
                unsafe fn store_first(self, to: *mut $t, n: usize) {
                    // SAFETY: the caller's promise: other lanes are not written.
                    unsafe { $store_first(to, <$mask>::first(n), self) }
                }
                #[inline(always)]
                unsafe fn plus(self, other: Self) -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $add(self, other) }
                }
                #[inline(always)]
                unsafe fn plus_product(self, x: Self, y: Self) -> Self {
                    // SAFETY: the caller's promise.
                    unsafe { $fma(x, y, self) }
                }
            }
        };
    }

    /// A mask of the first lanes.
    trait First {
        unsafe fn first(n: usize) -> Self;
    }
    impl First for __mmask16 {
        #[inline(always)]
        unsafe fn first(n: usize) -> Self {
            ((1u32 << n) - 1) as u16
        }
    }
    impl First for __mmask8 {
        #[inline(always)]
        unsafe fn first(n: usize) -> Self {
            ((1u32 << n) - 1) as u8
        }
    }
    /// Lanes of four bytes.
    struct Four(__m256i);
    /// Lanes of eight bytes.
    struct Eight(__m256i);
    impl First for Four {
        #[inline(always)]
        unsafe fn first(n: usize) -> Self {
            // SAFETY: eight words of the table, as `n` is at most eight.
            Four(unsafe { _mm256_loadu_si256(FIRST.as_ptr().add(8 - n).cast()) })
        }
    }
    impl First for Eight {
        #[inline(always)]
        unsafe fn first(n: usize) -> Self {
            // SAFETY: eight words of the table, as `n` is at most four.
            Eight(unsafe { _mm256_loadu_si256(FIRST.as_ptr().add(8 - 2 * n).cast()) })
        }
    }

    #[inline(always)]
    unsafe fn load_first_ps(mask: Four, from: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_maskload_ps(from, mask.0) }
    }
    #[inline(always)]
    unsafe fn store_first_ps(to: *mut f32, mask: Four, x: __m256) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_maskstore_ps(to, mask.0, x) }
    }
    #[inline(always)]
    unsafe fn load_first_pd(mask: Eight, from: *const f64) -> __m256d {
        // SAFETY: the caller's promise.
        unsafe { _mm256_maskload_pd(from, mask.0) }
    }
    #[inline(always)]
    unsafe fn store_first_pd(to: *mut f64, mask: Eight, x: __m256d) {
        // SAFETY: the caller's promise.
        unsafe { _mm256_maskstore_pd(to, mask.0, x) }
    }

    wide!(
        __m512,
        f32,
        16,
        __mmask16,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_maskz_loadu_ps,
        _mm512_mask_storeu_ps,
        _mm512_add_ps,
        _mm512_fmadd_ps
    );
    wide!(
        __m512d,
        f64,
        8,
        __mmask8,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_maskz_loadu_pd,
        _mm512_mask_storeu_pd,
        _mm512_add_pd,
        _mm512_fmadd_pd
    );
    wide!(
        __m256,
        f32,
        8,
        Four,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        load_first_ps,
        store_first_ps,
        _mm256_add_ps,
        _mm256_fmadd_ps
    );
    wide!(
        __m256d,
        f64,
        4,
        Eight,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        load_first_pd,
        store_first_pd,
        _mm256_add_pd,
        _mm256_fmadd_pd
    );

    /// Sums of singles, and operands that are pairs of `bf16`, given as the single of their bits: the term in the upper half comes
    /// first. Sums have the bits of [`__m512`]'s, as far as [`pairs`](super::super::pairs) says.
    #[derive(Clone, Copy)]
    #[repr(transparent)]
    pub struct Pairs(__m512);

    impl Lanes for Pairs {
        type T = f32;
        const LANES: usize = 16;
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            // SAFETY: the caller's promise.
            Pairs(unsafe { _mm512_set1_ps(x) })
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller's promise.
            Pairs(unsafe { _mm512_loadu_ps(from) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: the caller's promise.
            unsafe { _mm512_storeu_ps(to, self.0) }
        }
        #[inline(always)]
        unsafe fn load_first(from: *const f32, n: usize) -> Self {
            // SAFETY: the caller's promise: other lanes are not read.
            Pairs(unsafe { _mm512_maskz_loadu_ps(__mmask16::first(n), from) })
        }
        #[inline(always)]
        unsafe fn store_first(self, to: *mut f32, n: usize) {
            // SAFETY: the caller's promise: other lanes are not written.
            unsafe { _mm512_mask_storeu_ps(to, __mmask16::first(n), self.0) }
        }
        #[inline(always)]
        unsafe fn plus(self, other: Self) -> Self {
            // SAFETY: the caller's promise.
            Pairs(unsafe { _mm512_add_ps(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn plus_product(self, x: Self, y: Self) -> Self {
            // SAFETY: the caller's promise; all bits are pairs.
            Pairs(unsafe {
                let pairs = |v: Pairs| std::mem::transmute::<__m512, __m512bh>(v.0);
                _mm512_dpbf16_ps(self.0, pairs(x), pairs(y))
            })
        }
    }
}
