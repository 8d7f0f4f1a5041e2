//! Instruction sets: a loop is compiled for each of them, and the processor's own is called.
//!
//! The loops are plain code that the compiler makes vectors of; operations are fused only where the code says `mul_add`, which is one
//! rounding everywhere. So all instruction sets give the same bits, and tests hold them to each other.

/// An instruction set that loops are compiled for.
#[cfg_attr(any(miri, not(target_arch = "x86_64")), allow(dead_code))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Isa {
    /// What every processor of the target has; on AArch64 that includes NEON.
    Baseline,
    /// AVX2 with its companions (x86-64-v3).
    Avx2,
    /// AVX-512 (x86-64-v4).
    Avx512,
}

/// The widest instruction set of this processor; under Miri the baseline.
pub(crate) fn isa() -> Isa {
    #[cfg(test)]
    if let Some(isa) = tests::FORCED.get() {
        return isa;
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return detected();
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    Isa::Baseline
}

/// The widest instruction set, looked for once.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn detected() -> Isa {
    use std::sync::atomic::{AtomicU8, Ordering};
    static FOUND: AtomicU8 = AtomicU8::new(0);
    #[cold]
    fn detect() -> u8 {
        let found = if !(is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2"))
        {
            1
        } else if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            3
        } else {
            2
        };
        FOUND.store(found, Ordering::Relaxed);
        found
    }
    let found = match FOUND.load(Ordering::Relaxed) {
        0 => detect(),
        found => found,
    };
    match found {
        3 => Isa::Avx512,
        2 => Isa::Avx2,
        _ => Isa::Baseline,
    }
}

/// A loop that is worth compiling for several instruction sets.
pub(crate) trait Work {
    /// Its result.
    type Out;
    /// Whether it is compiled for more than the baseline: loops over singles, mostly. Each copy is code to compile.
    const VECTORS: bool = true;
    /// Whether AVX-512 makes it faster than AVX2: not where memory is what it waits for.
    const WIDEST: bool;
    /// Runs it. Implementations are `#[inline(always)]`, and so is all that they call in loops.
    fn run(self) -> Self::Out;
}

/// Runs a loop on the processor's widest instruction set.
#[inline(always)]
pub(crate) fn run<W: Work>(work: W) -> W::Out {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if const { W::VECTORS } {
        // Only processors from before 2013 run it: one copy is enough for all callers.
        #[cold]
        #[inline(never)]
        fn baseline<W: Work>(work: W) -> W::Out {
            work.run()
        }
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
        fn avx2<W: Work>(work: W) -> W::Out {
            work.run()
        }
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512<W: Work>(work: W) -> W::Out {
            work.run()
        }
        return match isa() {
            Isa::Baseline => baseline(work),
            // SAFETY: the processor has these features, as `isa` found.
            Isa::Avx512 if W::WIDEST => unsafe { avx512(work) },
            // SAFETY: as above.
            Isa::Avx2 | Isa::Avx512 => unsafe { avx2(work) },
        };
    }
    work.run()
}

/// Whether [`run_narrow`] may be called: there are vectors of 256 bits, or loops are compiled once.
pub(crate) fn has_vectors() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return isa() != Isa::Baseline;
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    true
}

/// As [`run`], without a copy for the baseline and one for the widest vectors.
///
/// # Panics
/// Where [`has_vectors`] is false.
#[inline(always)]
pub(crate) fn run_narrow<W: Work>(work: W) -> W::Out {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
        fn avx2<W: Work>(work: W) -> W::Out {
            work.run()
        }
        assert!(has_vectors(), "narrow rows need vectors");
        // SAFETY: the processor has these features, as `has_vectors` found.
        unsafe { avx2(work) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    work.run()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        pub(super) static FORCED: Cell<Option<Isa>> = const { Cell::new(None) };
    }

    /// Calls `f` once for each instruction set that this processor has, which [`run`] then takes on this thread.
    pub(crate) fn on_each(mut f: impl FnMut(Isa)) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        for forced in [Isa::Avx2, Isa::Avx512] {
            if forced <= isa() {
                FORCED.set(Some(forced));
                f(forced);
                FORCED.set(None);
            }
        }
        FORCED.set(Some(Isa::Baseline));
        f(Isa::Baseline);
        FORCED.set(None);
    }
}
