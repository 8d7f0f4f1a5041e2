//! Owned memory of tensors.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment for vector kernels and `.pt2` weights.
pub(super) const ALIGN: usize = 64;

/// The address of memory without bytes, which is never accessed: aligned for the elements of an empty tensor.
pub(crate) fn no_bytes() -> *mut u8 {
    std::ptr::without_provenance_mut(ALIGN)
}

/// Owned zeroed bytes, aligned to [`ALIGN`]. The bytes are reached through the address only: no Rust reference to them is kept.
pub(super) struct Aligned {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the bytes belong to this value alone, whichever thread it is on; it has no method that reaches them.
unsafe impl Send for Aligned {}
// SAFETY: as above.
unsafe impl Sync for Aligned {}

impl Aligned {
    /// `len` zero bytes; `None` if the allocation fails.
    pub(super) fn try_zeroed(len: usize) -> Option<Aligned> {
        let layout = Aligned::layout(len)?;
        if len == 0 {
            return Some(Aligned { start: NonNull::new(no_bytes())?, len });
        }
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        Some(Aligned { start: NonNull::new(start)?, len })
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
        if let (Some(layout), true) = (Aligned::layout(self.len), self.len > 0) {
            // SAFETY: allocated with this layout, and freed once.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}
