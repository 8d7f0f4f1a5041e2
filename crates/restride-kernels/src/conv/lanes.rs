//! Loops over vectors of `f32`, compiled for each instruction set.
//!
//! A loop is written once, as a [`Task`] that is generic over [`Lanes`]. [`Isa::run`] compiles it for each instruction set. Lanes are
//! outputs, or parts of one sum whose number is the same for each instruction set.

pub(crate) use crate::matmul::lanes::Lanes;
use crate::matmul::lanes::Plain;
use crate::support::isa::Isa;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256, __m512};

    /// # Safety
    /// The machine has AVX-512, and the task may run.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma")]
    pub(super) unsafe fn avx512<T: super::Task>(task: &T) {
        // SAFETY: the caller's promise.
        unsafe { task.run::<__m512>() }
    }

    /// # Safety
    /// The machine has AVX2 and FMA, and the task may run.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn avx2<T: super::Task>(task: &T) {
        // SAFETY: the caller's promise.
        unsafe { task.run::<__m256>() }
    }
}

/// A loop over vectors. `run` and all that it calls are `#[inline(always)]`, so that they are compiled for the instruction set.
pub(crate) trait Task {
    /// # Safety
    /// The machine has the instruction set of `V`, and the task's memory may be used as it says.
    unsafe fn run<V: Lanes<T = f32>>(&self);
}

impl Isa {
    /// Runs a task with this instruction set.
    ///
    /// # Safety
    /// The machine has it, and the task's memory may be used as the task says.
    #[inline(always)]
    pub(crate) unsafe fn run<T: Task>(self, task: &T) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => x86::avx2(task),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => x86::avx512(task),
                _ => task.run::<Plain<f32, 4>>(),
            }
        }
    }
}

/// Copies `n` elements.
///
/// # Safety
/// They are readable and writable, apart from each other.
#[inline(always)]
pub(crate) unsafe fn copy<V: Lanes<T = f32>>(from: *const f32, to: *mut f32, n: usize) {
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while i + V::LANES <= n {
            V::load(from.add(i)).store(to.add(i));
            i += V::LANES;
        }
        if i < n {
            V::load_first(from.add(i), n - i).store_first(to.add(i), n - i);
        }
    }
}

/// Zeros for `n` elements.
///
/// # Safety
/// They are writable.
#[inline(always)]
pub(crate) unsafe fn clear<V: Lanes<T = f32>>(to: *mut f32, n: usize) {
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let zero = V::splat(0.0);
        while i + V::LANES <= n {
            zero.store(to.add(i));
            i += V::LANES;
        }
        if i < n {
            zero.store_first(to.add(i), n - i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::isa::isa;

    /// Parts of vectors leave what is beside them.
    struct Parts<'a>(&'a [f32], *mut f32, usize);
    impl Task for Parts<'_> {
        #[inline(always)]
        unsafe fn run<V: Lanes<T = f32>>(&self) {
            // SAFETY: both have 40 elements.
            unsafe {
                clear::<V>(self.1, self.2);
                copy::<V>(self.0.as_ptr(), self.1, self.2 / 2);
                let sum = V::load_first(self.0.as_ptr(), self.2.min(4)).plus_product(V::splat(2.0), V::splat(3.0));
                sum.store_first(self.1.add(20), self.2.min(4));
            }
        }
    }

    #[test]
    fn parts_of_vectors_touch_no_other_elements() {
        let x: Vec<f32> = (1..=40).map(|i| i as f32).collect();
        for n in 0..20 {
            let mut y = vec![-1.0; 40];
            // SAFETY: the machine's own instruction set.
            unsafe { isa().run(&Parts(&x, y.as_mut_ptr(), n)) }
            for (i, &y) in y.iter().enumerate() {
                let want = match i {
                    _ if i < n / 2 => x[i],
                    _ if i < n => 0.0,
                    20.. if i < 20 + n.min(4) => x[i - 20] + 6.0,
                    _ => -1.0,
                };
                assert_eq!(y, want, "{n} {i}");
            }
        }
    }
}
