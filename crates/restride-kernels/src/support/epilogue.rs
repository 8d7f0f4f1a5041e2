//! Epilogues: work on a part of a result as soon as it is finished, while it is in the cache.
//!
//! A kernel whose operator declares it (`OpDef::epilogue`) may take the epilogue of its call and call it for parts that it neither reads
//! nor writes again: for all elements, each in one part. If it does not take it, whoever gave it sees that no part was finished, and does
//! the work afterwards. It is found through the thread, as working memory is (`scratch.rs`).

use std::cell::Cell;
use std::ops::Range;

/// Called with ranges of rows and columns of the result as a matrix: its first dimensions, which the operator's declaration counts, are
/// the rows.
pub type Epilogue<'a> = &'a (dyn Fn(Range<usize>, Range<usize>) + Sync + 'a);

type RawEpilogue = *const (dyn Fn(Range<usize>, Range<usize>) + Sync + 'static);

thread_local! {
    /// Of the call.
    static GIVEN: Cell<Option<RawEpilogue>> = const { Cell::new(None) };
    /// Of the matrix product that a kernel is made of.
    static OF_PRODUCT: Cell<Option<RawEpilogue>> = const { Cell::new(None) };
}

type EpilogueSlot = &'static std::thread::LocalKey<Cell<Option<RawEpilogue>>>;

fn with_in<R>(slot: EpilogueSlot, epilogue: Epilogue<'_>, f: impl FnOnce() -> R) -> R {
    struct Back(EpilogueSlot, Option<RawEpilogue>);
    impl Drop for Back {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let short: *const (dyn Fn(Range<usize>, Range<usize>) + Sync + '_) = epilogue;
    // SAFETY: only the lifetime changes; the pointer is gone from the thread when this function returns.
    let raw: RawEpilogue = unsafe { std::mem::transmute(short) };
    let _back = Back(slot, slot.replace(Some(raw)));
    f()
}

fn take_from<R>(slot: EpilogueSlot, f: impl FnOnce(Option<Epilogue<'_>>) -> R) -> R {
    // SAFETY: `with_in` has not returned, so what it was given is still there.
    f(slot.take().map(|raw| unsafe { &*raw }))
}

/// Gives an epilogue to the kernel that `f` calls on this thread.
pub fn with<R>(epilogue: Epilogue<'_>, f: impl FnOnce() -> R) -> R {
    with_in(&GIVEN, epilogue, f)
}

/// Calls `f` with the epilogue of this call, if it has one: no kernel that `f` calls finds it.
pub(crate) fn take<R>(f: impl FnOnce(Option<Epilogue<'_>>) -> R) -> R {
    take_from(&GIVEN, f)
}

/// As [`with`], for the one matrix product that `f` computes.
pub(crate) fn with_product<R>(epilogue: Epilogue<'_>, f: impl FnOnce() -> R) -> R {
    with_in(&OF_PRODUCT, epilogue, f)
}

/// As [`take`], in a matrix product.
pub(crate) fn take_of_product<R>(f: impl FnOnce(Option<Epilogue<'_>>) -> R) -> R {
    take_from(&OF_PRODUCT, f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_kernel_takes_it() {
        let called = AtomicUsize::new(0);
        let epilogue = |rows: Range<usize>, columns: Range<usize>| {
            called.fetch_add(rows.len() * columns.len(), Ordering::Relaxed);
        };
        with(&epilogue, || {
            take(|given| {
                given.expect("it was given")(0..2, 0..3);
                take(|inner| assert!(inner.is_none()));
            });
            take(|again| assert!(again.is_none()));
        });
        take(|after| assert!(after.is_none()));
        assert_eq!(called.into_inner(), 6);
    }
}
