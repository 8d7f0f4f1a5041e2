//! Vectors of `f32` of each instruction set, and the choice of one at run time.
//!
//! A loop is written once, as a [`Task`] that is generic over [`Lanes`]. [`perform`] compiles it for each instruction set and runs the
//! widest that the machine has. Lanes are outputs, never terms of one sum.

/// A vector of `f32`.
///
/// # Safety
/// Methods need the instruction set of the vector: they are called inside of [`perform`] alone.
pub(crate) trait Lanes: Copy {
    /// Number of lanes.
    const N: usize;
    /// Most vectors of columns in a tile of a product: as many as registers hold beside its rows.
    const VECTORS: usize;
    /// All lanes `x`.
    unsafe fn splat(x: f32) -> Self;
    /// `N` elements from `p` on.
    unsafe fn load(p: *const f32) -> Self;
    /// To `N` elements from `p` on.
    unsafe fn store(self, p: *mut f32);
    /// The first `n` lanes from `p`, zeros after them; other elements are not touched.
    unsafe fn load_part(p: *const f32, n: usize) -> Self;
    /// The first `n` lanes to `p`; other elements are not touched.
    unsafe fn store_part(self, p: *mut f32, n: usize);
    /// `self + x w`: one rounding where the instruction set has it.
    unsafe fn mul_add(self, x: Self, w: Self) -> Self;
}

/// Four lanes of any machine.
impl Lanes for [f32; 4] {
    const N: usize = 4;
    const VECTORS: usize = 2;
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller's promise.
        unsafe { p.cast::<[f32; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { p.cast::<[f32; 4]>().write_unaligned(self) }
    }
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        // SAFETY: the caller's promise.
        std::array::from_fn(|i| if i < n { unsafe { p.add(i).read() } } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        for (i, x) in self.into_iter().enumerate().take(n) {
            // SAFETY: the caller's promise.
            unsafe { p.add(i).write(x) }
        }
    }
    #[inline(always)]
    unsafe fn mul_add(self, x: Self, w: Self) -> Self {
        // Every 64-bit ARM multiplies and adds at once; elsewhere `mul_add` would be a call.
        std::array::from_fn(|i| {
            if cfg!(target_arch = "aarch64") { x[i].mul_add(w[i], self[i]) } else { self[i] + x[i] * w[i] }
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    /// Lanes below `n` are set in the eight from `MASK[8 - n]` on.
    static MASK: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    unsafe fn mask(n: usize) -> __m256i {
        // SAFETY: at most eight lanes are asked for; the caller has AVX.
        unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - n.min(8)).cast()) }
    }

    impl Lanes for __m256 {
        const N: usize = 8;
        const VECTORS: usize = 2;
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            // SAFETY: the caller's promise.
            unsafe { _mm256_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: the caller's promise.
            unsafe { _mm256_loadu_ps(p) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: the caller's promise.
            unsafe { _mm256_storeu_ps(p, self) }
        }
        #[inline(always)]
        unsafe fn load_part(p: *const f32, n: usize) -> Self {
            // SAFETY: the caller's promise; lanes outside of the mask are not touched.
            unsafe { _mm256_maskload_ps(p, mask(n)) }
        }
        #[inline(always)]
        unsafe fn store_part(self, p: *mut f32, n: usize) {
            // SAFETY: as above.
            unsafe { _mm256_maskstore_ps(p, mask(n), self) }
        }
        #[inline(always)]
        unsafe fn mul_add(self, x: Self, w: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { _mm256_fmadd_ps(x, w, self) }
        }
    }

    impl Lanes for __m512 {
        const N: usize = 16;
        const VECTORS: usize = 4;
        #[inline(always)]
        unsafe fn splat(x: f32) -> Self {
            // SAFETY: the caller's promise.
            unsafe { _mm512_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(p: *const f32) -> Self {
            // SAFETY: the caller's promise.
            unsafe { _mm512_loadu_ps(p) }
        }
        #[inline(always)]
        unsafe fn store(self, p: *mut f32) {
            // SAFETY: the caller's promise.
            unsafe { _mm512_storeu_ps(p, self) }
        }
        #[inline(always)]
        unsafe fn load_part(p: *const f32, n: usize) -> Self {
            // SAFETY: the caller's promise; lanes outside of the mask are not touched.
            unsafe { _mm512_maskz_loadu_ps(((1u32 << n.min(16)) - 1) as u16, p) }
        }
        #[inline(always)]
        unsafe fn store_part(self, p: *mut f32, n: usize) {
            // SAFETY: as above.
            unsafe { _mm512_mask_storeu_ps(p, ((1u32 << n.min(16)) - 1) as u16, self) }
        }
        #[inline(always)]
        unsafe fn mul_add(self, x: Self, w: Self) -> Self {
            // SAFETY: the caller's promise.
            unsafe { _mm512_fmadd_ps(x, w, self) }
        }
    }

    /// # Safety
    /// The machine has AVX-512, and the task may run.
    #[target_feature(enable = "avx512f,avx2,fma")]
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
    unsafe fn run<V: Lanes>(&self);
}

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Set {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Set {
    /// The widest of this machine.
    pub(crate) fn here() -> Set {
        #[cfg(test)]
        if let Some(set) = CHOSEN.get() {
            return set;
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if std::arch::is_x86_feature_detected!("fma") && std::arch::is_x86_feature_detected!("avx2") {
            return if std::arch::is_x86_feature_detected!("avx512f") { Set::Avx512 } else { Set::Avx2 };
        }
        Set::Baseline
    }

    /// Lanes of its vectors, and most vectors in a tile.
    pub(crate) fn sizes(self) -> (usize, usize) {
        fn of<V: Lanes>() -> (usize, usize) {
            (V::N, V::VECTORS)
        }
        match self {
            Set::Baseline => of::<[f32; 4]>(),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => of::<std::arch::x86_64::__m256>(),
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => of::<std::arch::x86_64::__m512>(),
        }
    }

    /// Runs a task with this instruction set.
    ///
    /// # Safety
    /// The machine has it, and the task's memory may be used as the task says.
    #[inline(always)]
    pub(crate) unsafe fn run<T: Task>(self, task: &T) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Set::Baseline => task.run::<[f32; 4]>(),
                #[cfg(target_arch = "x86_64")]
                Set::Avx2 => x86::avx2(task),
                #[cfg(target_arch = "x86_64")]
                Set::Avx512 => x86::avx512(task),
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Set>> = const { std::cell::Cell::new(None) };
}

/// Calls `f` for each instruction set of this machine, which is then the one used.
#[cfg(test)]
pub(crate) fn with_each_set(mut f: impl FnMut()) {
    let widest = Set::here();
    #[cfg(target_arch = "x86_64")]
    let all = [Set::Baseline, Set::Avx2, Set::Avx512];
    #[cfg(not(target_arch = "x86_64"))]
    let all = [Set::Baseline];
    for set in all {
        CHOSEN.set(Some(set));
        f();
        CHOSEN.set(None);
        if set == widest {
            break;
        }
    }
}

/// Copies `n` elements.
///
/// # Safety
/// They are readable and writable, apart from each other.
#[inline(always)]
pub(crate) unsafe fn copy<V: Lanes>(from: *const f32, to: *mut f32, n: usize) {
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while i + V::N <= n {
            V::load(from.add(i)).store(to.add(i));
            i += V::N;
        }
        if i < n {
            V::load_part(from.add(i), n - i).store_part(to.add(i), n - i);
        }
    }
}

/// Zeros for `n` elements.
///
/// # Safety
/// They are writable.
#[inline(always)]
pub(crate) unsafe fn clear<V: Lanes>(to: *mut f32, n: usize) {
    let mut i = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let zero = V::splat(0.0);
        while i + V::N <= n {
            zero.store(to.add(i));
            i += V::N;
        }
        if i < n {
            zero.store_part(to.add(i), n - i);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of vectors leave what is beside them.
    struct Parts<'a>(&'a [f32], *mut f32, usize);
    impl Task for Parts<'_> {
        #[inline(always)]
        unsafe fn run<V: Lanes>(&self) {
            // SAFETY: both have 40 elements.
            unsafe {
                clear::<V>(self.1, self.2);
                copy::<V>(self.0.as_ptr(), self.1, self.2 / 2);
                let sum = V::load_part(self.0.as_ptr(), self.2).mul_add(V::splat(2.0), V::splat(3.0));
                sum.store_part(self.1.add(20), self.2.min(V::N));
            }
        }
    }

    #[test]
    fn parts_of_vectors_touch_no_other_elements() {
        let x: Vec<f32> = (1..=40).map(|i| i as f32).collect();
        for n in 0..20 {
            let mut y = vec![-1.0; 40];
            let set = Set::here();
            // SAFETY: the machine's own instruction set.
            unsafe { set.run(&Parts(&x, y.as_mut_ptr(), n)) }
            let wide = n.min(set.sizes().0);
            for (i, &y) in y.iter().enumerate() {
                let want = match i {
                    _ if i < n / 2 => x[i],
                    _ if i < n => 0.0,
                    20.. if i < 20 + wide => x[i - 20] + 6.0,
                    _ => -1.0,
                };
                assert_eq!(y, want, "{n} {i}");
            }
        }
    }
}
