//! Scratch of kernels: a part of the caller's memory where it gives some ([`with`]), the heap where it does not or where
//! that is too small.
//!
//! It is found through the thread instead of through the kernels' arguments, because it is needed deep inside of them: an operand
//! that has to be put in order, a result that goes elsewhere than where it was computed. Whoever runs kernels knows how much
//! they take ([`room`]) and gives it to them; a [`Temp`] is always written before it can be read, so that no
//! result depends on old contents.

use restride_tensor::{DType, Layout, ViewMut};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Each piece of scratch begins at a multiple of this.
pub const ALIGN: usize = 64;

/// Bytes that `n` elements take.
pub const fn room<T>(n: usize) -> usize {
    n.saturating_mul(size_of::<T>()).saturating_add(ALIGN - 1) / ALIGN * ALIGN
}

/// Where the thread's kernels take memory from: a stack, from `at` up to `end`.
struct Here {
    inside: Cell<bool>,
    at: Cell<usize>,
    end: Cell<usize>,
    /// Pieces that are in use.
    live: Cell<usize>,
    /// Bytes in use, in the caller's memory or not, and their maximum.
    used: Cell<usize>,
    most: Cell<usize>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            inside: Cell::new(false),
            at: Cell::new(0),
            end: Cell::new(0),
            live: Cell::new(0),
            used: Cell::new(0),
            most: Cell::new(0),
        }
    };
}

/// Gives `memory` to the kernels that `f` calls on this thread. Inside of another such call that one's memory stays in use.
///
/// # Panics
/// If the value that `f` returns holds a [`Temp`]. If `f` leaves one elsewhere, the process aborts: its memory goes now.
pub fn with<R>(memory: &mut [MaybeUninit<u8>], f: impl FnOnce() -> R) -> R {
    /// Takes the memory away again, whatever happens.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            HERE.with(|h| {
                if h.live.get() != 0 {
                    // Unwinding dropped the pieces of `f`; one that is left would outlive its memory.
                    eprintln!("a piece of scratch was kept beyond its use");
                    std::process::abort();
                }
                h.at.set(0);
                h.end.set(0);
                h.inside.set(false);
            });
        }
    }
    if HERE.with(|h| h.inside.replace(true)) {
        return f();
    }
    let leave = Leave;
    HERE.with(|h| {
        let start = memory.as_mut_ptr().expose_provenance();
        h.at.set(start);
        h.end.set(start + memory.len());
    });
    let out = f();
    // The returned value may hold a piece: it is dropped before the memory goes.
    let kept = HERE.with(|h| h.live.get()) != 0;
    let out = if kept {
        drop(out);
        None
    } else {
        Some(out)
    };
    drop(leave);
    out.expect("a piece of scratch was kept beyond its use")
}

/// Bytes that `f` takes on this thread at most.
pub fn taken<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = HERE.with(|h| h.most.replace(h.used.get()));
    let start = HERE.with(|h| h.used.get());
    let out = f();
    let most = HERE.with(|h| h.most.replace(h.most.get().max(before)));
    (out, most.saturating_sub(start))
}

/// Elements for a while: a slice, in scratch.
pub struct Temp<T: Copy>(Piece<T>);

enum Piece<T> {
    /// `len` elements, the first piece of `bytes` below where the next one begins; `before` is where the stack ended without.
    Scratch {
        start: NonNull<T>,
        len: usize,
        before: usize,
        after: usize,
    },
    Heap(Vec<T>),
}

// SAFETY: others only see the elements. (It is not sent to another thread, whose scratch is another.)
unsafe impl<T: Copy + Sync> Sync for Temp<T> {}

/// Takes memory for `n` elements from the thread's, if enough is left.
fn take<T>(n: usize) -> Option<(NonNull<T>, usize, usize)> {
    HERE.with(|h| {
        let before = h.at.get();
        h.used.set(h.used.get().saturating_add(room::<T>(n)));
        h.most.set(h.most.get().max(h.used.get()));
        if before == 0 || n == 0 || align_of::<T>() > ALIGN {
            return None;
        }
        let start = before.next_multiple_of(ALIGN);
        let after = start.checked_add(n.checked_mul(size_of::<T>())?)?.checked_next_multiple_of(ALIGN)?;
        // The last piece need not fill its block.
        if start + n * size_of::<T>() > h.end.get() {
            return None;
        }
        h.at.set(after);
        h.live.set(h.live.get() + 1);
        Some((NonNull::new(std::ptr::with_exposed_provenance_mut(start))?, before, after))
    })
}

impl<T: Copy> Temp<T> {
    /// `n` elements, all of them `value`.
    pub fn filled(n: usize, value: T) -> Self {
        match take::<T>(n) {
            None => Temp(Piece::Heap(vec![value; n])),
            Some((start, before, after)) => {
                for i in 0..n {
                    // SAFETY: the piece holds `n` elements, and no other piece shares it.
                    unsafe { start.add(i).write(value) };
                }
                Temp(Piece::Scratch { start, len: n, before, after })
            }
        }
    }

    /// A copy.
    pub fn copied(of: &[T]) -> Self {
        Temp::gather(of.len(), of.iter().copied())
    }

    /// The first `n` elements of `from`, or all of fewer.
    pub fn gather(n: usize, from: impl Iterator<Item = T>) -> Self {
        match take::<T>(n) {
            None => {
                let mut out = Vec::with_capacity(n);
                out.extend(from.take(n));
                Temp(Piece::Heap(out))
            }
            Some((start, before, after)) => {
                let mut out = Temp(Piece::Scratch { start, len: 0, before, after });
                for (i, value) in from.take(n).enumerate() {
                    // SAFETY: the piece holds `n` elements, and no other piece shares it.
                    unsafe { start.add(i).write(value) };
                    if let Piece::Scratch { len, .. } = &mut out.0 {
                        *len = i + 1;
                    }
                }
                out
            }
        }
    }
}

impl<T: Copy + PartialEq> PartialEq for Temp<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<T: Copy + std::fmt::Debug> std::fmt::Debug for Temp<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self[..].fmt(f)
    }
}

impl<T: Copy> Temp<T> {
    /// Keeps at most the first `n` elements.
    pub fn truncate(&mut self, n: usize) {
        match &mut self.0 {
            Piece::Scratch { len, .. } => *len = (*len).min(n),
            Piece::Heap(v) => v.truncate(n),
        }
    }
}

impl<T: Copy> FromIterator<T> for Temp<T> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let iter = iter.into_iter();
        match iter.size_hint() {
            (n, Some(most)) if n == most => Temp::gather(n, iter),
            _ => {
                let out: Vec<T> = iter.collect();
                Temp::copied(&out)
            }
        }
    }
}

impl<T: Copy> Deref for Temp<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.0 {
            // SAFETY: the piece's elements, all of them written; the memory outlives its pieces.
            Piece::Scratch { start, len, .. } => unsafe { std::slice::from_raw_parts(start.as_ptr(), *len) },
            Piece::Heap(v) => v,
        }
    }
}

impl<T: Copy> DerefMut for Temp<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            // SAFETY: as above, and this is the only one who has them.
            Piece::Scratch { start, len, .. } => unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), *len) },
            Piece::Heap(v) => v,
        }
    }
}

impl<'a, T: Copy> IntoIterator for &'a Temp<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: Copy> IntoIterator for &'a mut Temp<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<T: Copy> Drop for Temp<T> {
    fn drop(&mut self) {
        HERE.with(|h| match &self.0 {
            Piece::Scratch { before, after, .. } => {
                h.used.set(h.used.get().saturating_sub(after - before.next_multiple_of(ALIGN)));
                h.live.set(h.live.get() - 1);
                // The piece taken last gives its memory back; memory below a live piece is kept until the end.
                if h.at.get() == *after {
                    h.at.set(*before);
                }
            }
            Piece::Heap(v) => h.used.set(h.used.get().saturating_sub(room::<T>(v.capacity()))),
        });
    }
}

/// Bytes that [`tensor`] takes for `n` elements.
pub fn tensor_room(dtype: DType, n: i64) -> usize {
    room::<u8>((n as usize).saturating_mul(dtype.size()).next_multiple_of(16))
}

/// Calls `f` with a tensor for a while, of zeros, contiguous.
///
/// # Panics
/// For another layout.
pub fn tensor<R>(dtype: DType, layout: &Layout, f: impl FnOnce(&mut ViewMut<'_>) -> R) -> R {
    assert!(layout.is_contiguous() && layout.offset == 0, "a temporary tensor is contiguous");
    let bytes = layout.byte_range(dtype.size()).expect("a temporary tensor has a layout of memory").end;
    let mut words = Temp::filled(bytes.div_ceil(16), [0u64; 2]);
    // SAFETY: `words` has these bytes, aligned for every element type, and zeros are elements of all.
    f(&mut unsafe { ViewMut::from_raw(words.as_mut_ptr().cast(), dtype, layout) })
}

/// Scratch of a pool's thread; grows to the largest need and is kept.
#[derive(Default)]
pub(crate) struct Own(Vec<MaybeUninit<u8>>);

impl Own {
    /// Runs `f` in it.
    pub(crate) fn lend<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let (out, most) = taken(|| with(&mut self.0, f));
        // The first piece begins at the next multiple of the alignment.
        if most > 0 && self.0.len() < most + ALIGN {
            self.0 = Vec::new();
            self.0.resize(most + ALIGN, MaybeUninit::uninit());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(n: usize) -> Vec<MaybeUninit<u8>> {
        vec![MaybeUninit::new(0xFF); n]
    }

    #[test]
    fn pieces_lie_one_after_the_other_in_what_is_given() {
        let mut m = memory(1024);
        let range = m.as_ptr_range();
        let inside = |p: *const u8| range.contains(&p.cast());
        with(&mut m, || {
            let a = Temp::filled(10, 1.5f32);
            let b = Temp::filled(3, 7i64);
            assert!(inside(a.as_ptr().cast()) && inside(b.as_ptr().cast()));
            assert_eq!((&a[..], &b[..]), (&[1.5f32; 10][..], &[7i64; 3][..]));
            let at = b.as_ptr();
            drop(b);
            let mut c: Temp<i64> = (0..3).collect();
            assert_eq!(c.as_ptr(), at);
            c[1] = 9;
            assert_eq!(c[..], [0, 9, 2]);
            // Too large for what is left.
            let d = Temp::filled(1024, 1u8);
            assert!(!inside(d.as_ptr()));
            // Given back in another order than taken.
            drop(a);
            assert_eq!(c[..], [0, 9, 2]);
        });
        assert!(!inside(Temp::filled(1, 1u8).as_ptr()));
    }

    #[test]
    fn what_is_taken_is_counted() {
        let ((), most) = taken(|| {
            let a = Temp::filled(10, 1.5f32);
            drop(a);
            let _b = Temp::filled(20, 1.5f32);
            let _c = Temp::filled(1, 1u8);
        });
        assert_eq!(most, room::<f32>(20) + room::<u8>(1));
        let mut own = Own::default();
        for round in 0..3 {
            own.lend(|| {
                let t = Temp::filled(100, 1u64);
                assert_eq!(matches!(t.0, Piece::Scratch { .. }), round > 0);
            });
        }
    }

    /// Scratch that is kept where unwinding does not drop it ends the process: this test runs itself again for that.
    #[test]
    #[cfg_attr(miri, ignore = "no processes")]
    fn a_piece_that_survives_a_panic_ends_the_process() {
        const AGAIN: &str = "RESTRIDE_KEEPS_A_PIECE";
        if std::env::var_os(AGAIN).is_some() {
            let mut kept = None;
            let mut m = memory(4096);
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                with(&mut m, || {
                    kept = Some(Temp::filled(8, 5u64));
                    panic!("unwinds");
                })
            }));
            drop(m);
            println!("{:?}", kept.map(|k| k[0]));
            return;
        }
        let name = "support::scratch::tests::a_piece_that_survives_a_panic_ends_the_process";
        let again = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(AGAIN, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stderr);
        assert!(!again.status.success() && said.contains("kept beyond its use"), "{said}");
    }

    #[test]
    #[should_panic(expected = "kept beyond its use")]
    fn a_piece_cannot_be_kept() {
        let mut m = memory(1024);
        let _kept = with(&mut m, || Temp::filled(4, 1u8));
    }
}
