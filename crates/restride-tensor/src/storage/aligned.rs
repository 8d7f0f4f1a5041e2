//! Owned memory of tensors.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignment for vector kernels and `.pt2` weights.
pub(super) const ALIGN: usize = 64;

/// Memory of this many bytes starts at different places of a page, so that loops over several tensors use different sets of the
/// caches: allocators give large memory at multiples of 64 KiB, where each set would have to hold all of them. Measured with a step
/// of SGD on two million bytes: 114 µs for 350.
const SHIFTED: usize = 1 << 17;
/// Distance of two such starts, an odd number of lines, and how many there are.
const SHIFT: usize = 17 * 64;
const SHIFTS: usize = 8;

/// The address of memory without bytes, which is never accessed: aligned for the elements of an empty tensor.
pub(crate) fn no_bytes() -> *mut u8 {
    std::ptr::without_provenance_mut(ALIGN)
}

/// Owned zeroed bytes, aligned to [`ALIGN`]. The bytes are reached through the address only: no Rust reference to them is kept.
pub(super) struct Aligned {
    start: NonNull<u8>,
    len: usize,
    /// Bytes that were allocated in front of them.
    shift: usize,
}

// SAFETY: the bytes belong to this value alone, whichever thread it is on; it has no method that reaches them.
unsafe impl Send for Aligned {}
// SAFETY: as above.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// `len` zero bytes; `None` if the allocation fails.
    pub(super) fn try_zeroed(len: usize) -> Option<Aligned> {
        static LARGE: AtomicUsize = AtomicUsize::new(0);
        if len == 0 {
            return Some(Aligned { start: NonNull::new(no_bytes())?, len, shift: 0 });
        }
        let shift = match len < SHIFTED {
            true => 0,
            false => LARGE.fetch_add(1, Ordering::Relaxed) % SHIFTS * SHIFT,
        };
        let layout = Aligned::layout(len.checked_add(shift)?)?;
        // SAFETY: the layout is not empty.
        let first = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        // SAFETY: the allocation has `shift` bytes and `len` more.
        Some(Aligned { start: unsafe { first.add(shift) }, len, shift })
    }

    /// As [`Aligned::try_zeroed`]. Allocation failure ends the process, as for `Vec`.
    pub(super) fn zeroed(len: usize) -> Aligned {
        let lacking = || match Aligned::layout(len) {
            Some(layout) => handle_alloc_error(layout),
            None => panic!("{len} bytes are more than an address space holds"),
        };
        Aligned::try_zeroed(len).unwrap_or_else(lacking)
    }

    /// A copy of `len` bytes.
    ///
    /// # Safety
    /// `from` is readable for `len` bytes, which nothing writes meanwhile.
    pub(super) unsafe fn copy_of(from: *const u8, len: usize) -> Aligned {
        let own = Aligned::zeroed(len);
        // SAFETY: as the caller promises; `own` was just made with room for `len` bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, own.start(), len) };
        own
    }

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.checked_next_multiple_of(ALIGN)?, ALIGN).ok()
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        if let (Some(layout), true) = (Aligned::layout(self.len + self.shift), self.len > 0) {
            // SAFETY: `try_zeroed` allocated this layout, and returned the address `shift` bytes behind its first one. Only `drop`
            // frees it.
            unsafe { dealloc(self.start.sub(self.shift).as_ptr(), layout) };
        }
    }
}
