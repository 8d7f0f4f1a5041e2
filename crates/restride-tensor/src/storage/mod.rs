//! Memory that tensors share: see "Memory" in the crate's documentation.

mod aligned;
mod bytes;
mod foreign;

pub use bytes::Bytes;

pub(crate) use aligned::no_bytes;

use aligned::Aligned;
use foreign::Release;
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Reason why memory cannot be read, written or resized now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessError {
    /// It is being written, by another thread or under a live [`crate::WriteGuard`].
    Written,
    /// It is being read, so it can be neither written nor resized.
    Read,
    /// It is read-only.
    ReadOnly,
    /// It is foreign or pinned, so its address and size are fixed.
    Fixed,
    /// The allocation of this many bytes failed.
    NoMemory(usize),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::Written => f.write_str("the memory is being written elsewhere"),
            AccessError::Read => f.write_str("the memory is being read elsewhere"),
            AccessError::ReadOnly => f.write_str("the memory is read-only"),
            AccessError::Fixed => {
                f.write_str("Trying to resize storage that is not resizable: its address is in use elsewhere")
            }
            AccessError::NoMemory(bytes) => write!(f, "cannot allocate {bytes} bytes"),
        }
    }
}
impl std::error::Error for AccessError {}

type Result<T> = std::result::Result<T, AccessError>;

/// Owner of the bytes.
enum StorageMemory {
    Owned(#[allow(dead_code)] Aligned),
    /// Read-only until the first write, which copies.
    Shared(#[allow(dead_code)] Bytes),
    /// Foreign memory, released with the storage.
    Foreign {
        _release: Release,
        writable: bool,
    },
}

/// [`StorageInner::users`] during a write.
const WRITER: usize = usize::MAX;

struct StorageInner {
    /// Address and number of the bytes. They change only while `users` is [`WRITER`]; the number only grows.
    start: AtomicPtr<u8>,
    len: AtomicUsize,
    /// Number of readers, or [`WRITER`].
    users: AtomicUsize,
    /// How often a writer began.
    writes: AtomicUsize,
    /// The address is fixed.
    pinned: AtomicBool,
    /// Writes are always refused.
    read_only: bool,
    /// Owner of the bytes. Touched by the writer, and when the storage is dropped.
    memory: UnsafeCell<StorageMemory>,
}

// SAFETY: `memory` is touched by the one writer only, and all that it holds may be dropped on any thread. The bytes are reached
// through locks, or through unsafe functions whose callers promise as much.
unsafe impl Send for StorageInner {}
// SAFETY: as above.
unsafe impl Sync for StorageInner {}

/// Shared mutable memory of tensors that alias. Clones are the same storage, on any thread.
///
/// A lock that never blocks guards the bytes: any number of readers or one writer. A conflict is an [`AccessError`].
#[derive(Clone)]
pub struct Storage(Arc<StorageInner>);

impl Storage {
    fn new(start: *mut u8, len: usize, memory: StorageMemory) -> Storage {
        let start = if len == 0 { no_bytes() } else { start };
        let read_only = matches!(memory, StorageMemory::Foreign { writable: false, .. });
        Storage(Arc::new(StorageInner {
            start: AtomicPtr::new(start),
            len: AtomicUsize::new(len),
            users: AtomicUsize::new(0),
            writes: AtomicUsize::new(0),
            pinned: AtomicBool::new(false),
            read_only,
            memory: UnsafeCell::new(memory),
        }))
    }

    fn owned(own: Aligned) -> Storage {
        Storage::new(own.start(), own.len(), StorageMemory::Owned(own))
    }

    /// Zeroed memory of `len` bytes.
    pub fn zeroed(len: usize) -> Storage {
        Storage::owned(Aligned::zeroed(len))
    }

    /// As [`Storage::zeroed`].
    ///
    /// # Errors
    /// [`AccessError::NoMemory`], if the allocation fails.
    pub fn try_zeroed(len: usize) -> Result<Storage> {
        Aligned::try_zeroed(len).map(Storage::owned).ok_or(AccessError::NoMemory(len))
    }

    /// Memory that reads as `bytes`, copied at the first write.
    pub fn from_bytes(bytes: Bytes) -> Storage {
        Storage::new(bytes.as_ptr().cast_mut(), bytes.len(), StorageMemory::Shared(bytes))
    }

    /// Memory of `owner`, which the storage keeps until its last tensor is dropped: a writable mapped file or a `Vec`. It
    /// is written in place and never grows.
    ///
    /// ```
    /// use restride_tensor::{DType, Layout, Storage, RawTensor};
    /// let cache = RawTensor::new(Storage::from_owner(vec![0u8; 64]), DType::U8, Layout::contiguous(&[4, 16])).unwrap();
    /// assert_eq!(cache.numel(), 64);
    /// ```
    pub fn from_owner<T: AsMut<[u8]> + Send + 'static>(owner: T) -> Storage {
        let (release, start, len) = Release::of_mut(owner);
        Storage::new(start, len, StorageMemory::Foreign { _release: release, writable: true })
    }

    /// Foreign memory, written in place. `release` is called on any thread after the last tensor on it is dropped. Without
    /// `writable`, writes are refused.
    ///
    /// # Safety
    /// Until `release` is called:
    /// - `start` is readable for `len` initialised bytes, and writable with `writable`;
    /// - while a run, kernel or method reads the storage, nothing else writes the bytes, and while it writes the storage,
    ///   nothing else touches them. Another storage on the same bytes counts as something else. A run refuses inputs and
    ///   outputs that overlap so if it writes one; other users must ensure it.
    pub unsafe fn foreign(
        start: *mut u8,
        len: usize,
        writable: bool,
        release: impl FnOnce() + Send + 'static,
    ) -> Storage {
        Storage::new(start, len, StorageMemory::Foreign { _release: Release::by(release), writable })
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.len.load(Ordering::Acquire)
    }

    /// Whether the storage has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether two are the same storage.
    pub fn same(&self, other: &Storage) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both are the same storage, or overlap in foreign memory.
    pub fn meets(&self, other: &Storage) -> bool {
        let range = |s: &Storage| {
            let start = s.address() as usize;
            start..start.saturating_add(s.len())
        };
        let (a, b) = (range(self), range(other));
        self.same(other) || (!a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end)
    }

    /// Identity of the storage while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Address of the bytes, for comparisons. It changes when the storage grows, or at the first write of shared bytes.
    /// Access needs [`Storage::lock`].
    pub fn address(&self) -> *mut u8 {
        self.0.start.load(Ordering::Acquire)
    }

    /// Locks for reading or writing until the lock is dropped. The first writer copies shared bytes.
    ///
    /// # Errors
    /// Another lock conflicts, or the memory is read-only.
    pub fn lock(&self, write: bool) -> Result<Lock<'_>> {
        self.acquire(write)?;
        Ok(Lock { storage: self, write })
    }

    /// As [`Storage::lock`], without a guard: [`Storage::release`] unlocks. For holders of many locks.
    ///
    /// # Errors
    /// As [`Storage::lock`].
    pub fn acquire(&self, write: bool) -> Result<()> {
        let users = &self.0.users;
        if !write {
            let mut now = users.load(Ordering::Relaxed);
            loop {
                if now >= WRITER - 1 {
                    return Err(AccessError::Written);
                }
                match users.compare_exchange_weak(now, now + 1, Ordering::Acquire, Ordering::Relaxed) {
                    Ok(_) => return Ok(()),
                    Err(other) => now = other,
                }
            }
        }
        self.begin_writing()?;
        // SAFETY: this is the writer.
        let memory = unsafe { &mut *self.0.memory.get() };
        match memory {
            StorageMemory::Owned(_) | StorageMemory::Foreign { writable: true, .. } => Ok(()),
            StorageMemory::Foreign { writable: false, .. } => {
                self.0.users.store(0, Ordering::Release);
                Err(AccessError::ReadOnly)
            }
            StorageMemory::Shared(bytes) => {
                let Some(own) = Aligned::try_zeroed(bytes.len()) else {
                    self.0.users.store(0, Ordering::Release);
                    return Err(AccessError::NoMemory(bytes.len()));
                };
                // SAFETY: `own` was just made with room for the bytes, which are readable and never written.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), own.start(), bytes.len()) };
                self.0.start.store(own.start(), Ordering::Release);
                *memory = StorageMemory::Owned(own);
                Ok(())
            }
        }
    }

    fn begin_writing(&self) -> Result<()> {
        match self.0.users.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                self.0.writes.fetch_add(1, Ordering::Release);
                Ok(())
            }
            Err(WRITER) => Err(AccessError::Written),
            Err(_) => Err(AccessError::Read),
        }
    }

    /// Unlocks after [`Storage::acquire`].
    ///
    /// # Safety
    /// The storage was acquired with the same `write` and is released once; no address obtained under it is used any more.
    pub unsafe fn release(&self, write: bool) {
        if write {
            self.0.users.store(0, Ordering::Release);
        } else {
            self.0.users.fetch_sub(1, Ordering::Release);
        }
    }

    /// Whether writes are always refused.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// Copies shared bytes now, as the first write would. From then on the address is fixed until the storage grows. Bytes
    /// that are not shared stay in place.
    ///
    /// # Errors
    /// The shared bytes are being read, or the allocation fails.
    pub fn unshare(&self) -> Result<()> {
        match self.acquire(false) {
            Ok(()) => {}
            // A writer has copied them.
            Err(AccessError::Written) => return Ok(()),
            Err(e) => return Err(e),
        }
        // SAFETY: there is no writer now, and readers only look.
        let shared = matches!(unsafe { &*self.0.memory.get() }, StorageMemory::Shared(_));
        // SAFETY: acquired above.
        unsafe { self.release(false) };
        if shared { self.lock(true).map(drop) } else { Ok(()) }
    }

    /// The contents as they are now, to be compared with those of another time or of another storage. `None` of foreign or pinned
    /// memory, which others may change, and of memory that is being written.
    pub fn contents(&self) -> Option<Contents> {
        self.acquire(false).ok()?;
        let writes = self.0.writes.load(Ordering::Acquire);
        // SAFETY: there is no writer now, and readers only look.
        let bytes = match unsafe { &*self.0.memory.get() } {
            StorageMemory::Owned(_) => Some(None),
            StorageMemory::Shared(bytes) => Some(Some(bytes.clone())),
            StorageMemory::Foreign { .. } => None,
        };
        // SAFETY: acquired above.
        unsafe { self.release(false) };
        let bytes = bytes.filter(|_| !self.0.pinned.load(Ordering::SeqCst))?;
        Some(Contents { storage: self.clone(), writes, bytes })
    }

    /// Fixes the address for the life of the storage, so others may keep it. Shared bytes are copied first; growth is
    /// refused afterwards. A storage that is pinned already may be in use.
    ///
    /// # Errors
    /// As [`Storage::unshare`], or the storage is being written.
    pub fn pin(&self) -> Result<*mut u8> {
        if self.0.pinned.load(Ordering::SeqCst) {
            return Ok(self.address());
        }
        self.unshare()?;
        // The lock prevents growth.
        let lock = self.lock(false)?;
        self.0.pinned.store(true, Ordering::SeqCst);
        Ok(lock.start())
    }

    /// Grows (with zeros) to at least `len` bytes, as `resize_` does; never shrinks.
    ///
    /// # Errors
    /// Another lock conflicts, the memory is foreign, or the allocation fails.
    pub fn grow(&self, len: usize) -> Result<()> {
        if len <= self.len() {
            return Ok(());
        }
        self.begin_writing()?;
        let lock = Lock { storage: self, write: true };
        // SAFETY: this is the writer.
        let memory = unsafe { &mut *self.0.memory.get() };
        if matches!(memory, StorageMemory::Foreign { .. }) || self.0.pinned.load(Ordering::SeqCst) {
            return Err(AccessError::Fixed);
        }
        let bigger = Aligned::try_zeroed(len).ok_or(AccessError::NoMemory(len))?;
        // SAFETY: `bigger` has room for the old bytes, which stay until `memory` is replaced.
        unsafe { std::ptr::copy_nonoverlapping(self.address(), bigger.start(), self.len()) };
        self.0.start.store(bigger.start(), Ordering::Release);
        self.0.len.store(len, Ordering::Release);
        *memory = StorageMemory::Owned(bigger);
        drop(lock);
        Ok(())
    }

    /// A copy of the bytes.
    ///
    /// # Panics
    /// The storage is being written.
    pub fn to_vec(&self) -> Vec<u8> {
        let lock = self.lock(false).unwrap_or_else(|e| panic!("{e}"));
        // SAFETY: the lock keeps writers away, and the storage has these bytes.
        unsafe { std::slice::from_raw_parts(lock.start(), lock.len()) }.to_vec()
    }

    /// Overwrites the first bytes.
    ///
    /// # Errors
    /// As [`Storage::lock`].
    ///
    /// # Panics
    /// `bytes` is longer than the storage.
    pub fn try_write(&self, bytes: &[u8]) -> Result<()> {
        let lock = self.lock(true)?;
        assert!(bytes.len() <= lock.len(), "write past the end of a storage");
        // SAFETY: checked above; the lock excludes all others, so the source, which is readable, is other memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), lock.start(), bytes.len()) };
        Ok(())
    }

    /// As [`Storage::try_write`].
    ///
    /// # Panics
    /// As [`Storage::try_write`], and where that is an error.
    pub fn write(&self, bytes: &[u8]) {
        self.try_write(bytes).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// What a storage held when [`Storage::contents`] was called.
#[derive(Clone)]
pub struct Contents {
    storage: Storage,
    writes: usize,
    /// Of a storage that nothing was written to: its bytes.
    bytes: Option<Bytes>,
}

impl Contents {
    /// [`Bytes::evict`], of a storage that nothing was written to.
    pub fn evict(&self) {
        self.bytes.as_ref().inspect(|b| b.evict());
    }
    /// Whether it is this storage that was asked, and nothing could have changed it since.
    pub fn are_in(&self, storage: &Storage) -> bool {
        let inner = &*storage.0;
        self.storage.same(storage)
            && inner.writes.load(Ordering::Acquire) == self.writes
            && !inner.pinned.load(Ordering::SeqCst)
    }
    /// Whether both are known to be the same bytes: of one storage at one time, or of one file that neither storage changed.
    pub fn same(&self, other: &Contents) -> bool {
        let unchanged = || {
            let (a, b) = (self.bytes.as_ref()?, other.bytes.as_ref()?);
            Some((a.as_ptr(), a.len()) == (b.as_ptr(), b.len()))
        };
        self.storage.same(&other.storage) && self.writes == other.writes || unchanged().unwrap_or(false)
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes)", self.len())
    }
}

/// A lock on a storage. A read lock excludes writers, a write lock all others, and the bytes stay in place.
pub struct Lock<'s> {
    storage: &'s Storage,
    write: bool,
}

impl Lock<'_> {
    /// Address of the bytes while the lock lives: readable, and writable under a write lock.
    pub fn start(&self) -> *mut u8 {
        self.storage.address()
    }
    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.storage.len()
    }
    /// Whether the storage has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // SAFETY: acquired when this was made, and ended once.
        unsafe { self.storage.release(self.write) };
    }
}

#[cfg(test)]
mod tests;
