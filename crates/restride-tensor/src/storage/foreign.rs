//! Owners of foreign memory.

/// Notifies the owner of foreign memory once, on any thread, after the last use.
pub(super) struct Release(Option<Box<dyn FnOnce() + Send>>);

// SAFETY: the only use through a shared reference is none at all; dropping takes `&mut` and may be on any thread (`Send`).
unsafe impl Sync for Release {}

/// An owner on the heap, dropped with this handle.
struct HeapOwner<T>(*mut T);
// SAFETY: the owner is `Send` where this is made, and is reached through this alone.
unsafe impl<T: Send> Send for HeapOwner<T> {}
impl<T> Drop for HeapOwner<T> {
    fn drop(&mut self) {
        // SAFETY: the address of a box that `into_raw` gave up.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl Release {
    pub(super) fn by(release: impl FnOnce() + Send + 'static) -> Release {
        Release(Some(Box::new(release)))
    }

    fn keeping<T: Send + 'static>(kept: HeapOwner<T>) -> Release {
        Release::by(move || drop(kept))
    }

    /// The bytes of an owner, for reading.
    pub(super) fn of_shared<T: AsRef<[u8]> + Send + Sync + 'static>(owner: T) -> (Release, *const u8, usize) {
        let kept = HeapOwner(Box::into_raw(Box::new(owner)));
        // SAFETY: the owner stays where it is, borrowed for as long as the release lives.
        let bytes: &'static [u8] = unsafe { &*kept.0 }.as_ref();
        let (start, len) = (bytes.as_ptr(), bytes.len());
        (Release::keeping(kept), start, len)
    }

    /// The bytes of an owner, for writing.
    pub(super) fn of_mut<T: AsMut<[u8]> + Send + 'static>(owner: T) -> (Release, *mut u8, usize) {
        let kept = HeapOwner(Box::into_raw(Box::new(owner)));
        // SAFETY: the owner stays where it is, borrowed exclusively for as long as the release lives.
        let bytes: &'static mut [u8] = unsafe { &mut *kept.0 }.as_mut();
        let (start, len) = (bytes.as_mut_ptr(), bytes.len());
        (Release::keeping(kept), start, len)
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(release) = self.0.take() {
            release();
        }
    }
}
