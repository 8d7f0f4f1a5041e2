//! Immutable bytes shared between threads.

use super::aligned::{Aligned, no_bytes};
use super::foreign::Release;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

enum ByteSource {
    Owned(#[allow(dead_code)] Aligned),
    Mapped(Arc<memmap2::Mmap>),
    /// Owner of the bytes, dropped with the last handle.
    Foreign(#[allow(dead_code)] Arc<Release>),
}

/// Immutable bytes shared between threads: owned, part of a mapped file, or foreign. Clones are the same bytes.
#[derive(Clone)]
pub struct Bytes {
    start: *const u8,
    len: usize,
    source: Arc<ByteSource>,
}

// SAFETY: the bytes are never written while a handle lives, so threads only read them; what owns them may be dropped by any.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// A copy of the given bytes, aligned to 64.
    pub fn copy_of(bytes: &[u8]) -> Bytes {
        // SAFETY: a borrowed slice is readable and not written.
        let own = unsafe { Aligned::copy_of(bytes.as_ptr(), bytes.len()) };
        Bytes { start: own.start(), len: own.len(), source: Arc::new(ByteSource::Owned(own)) }
    }

    /// Maps a whole file; its pages are read at first use. What cannot be mapped, such as a pipe, is read.
    ///
    /// Changes of the mapped file change the bytes. If the file is truncated, access to a lost page ends the process with a
    /// signal (`SIGBUS`). Where others may do so, use [`Bytes::read`].
    ///
    /// # Errors
    /// The file cannot be opened or mapped.
    pub fn map(path: &Path) -> std::io::Result<Bytes> {
        let mut file = std::fs::File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() == 0 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok(Bytes::copy_of(&bytes));
        }
        // SAFETY: the mapping is private and read-only; as with every mapped file, the contract with the
        // caller (documented above) is that the file is left alone while it is in use.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Bytes { start: map.as_ptr(), len: map.len(), source: Arc::new(ByteSource::Mapped(Arc::new(map))) })
    }

    /// A whole file, read into memory: later changes of the file do not show.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> std::io::Result<Bytes> {
        Ok(Bytes::copy_of(&std::fs::read(path)?))
    }

    /// Gives the memory of a mapped file's pages back to the system, which reads them again at their next use; the pages that lie
    /// in these bytes alone. Nothing happens to other bytes.
    pub fn evict(&self) {
        #[cfg(unix)]
        if let ByteSource::Mapped(map) = &*self.source {
            const PAGE: usize = 1 << 16;
            let first = (self.start.addr() - map.as_ptr().addr()).next_multiple_of(PAGE);
            let end = (self.start.addr() - map.as_ptr().addr() + self.len) / PAGE * PAGE;
            if first < end {
                // SAFETY: the mapping is private and never written, so its pages are the file's.
                let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, first, end - first) };
            }
        }
    }

    /// Bytes of `owner`, which is kept until the last handle is dropped: a mapped file, a `Vec`, another library's buffer.
    /// Nothing is copied, and the alignment is the owner's.
    pub fn from_owner<T: AsRef<[u8]> + Send + Sync + 'static>(owner: T) -> Bytes {
        let (release, start, len) = Release::of_shared(owner);
        Bytes { start, len, source: Arc::new(ByteSource::Foreign(Arc::new(release))) }
    }

    /// Foreign bytes. `release` is called on any thread after the last handle is dropped.
    ///
    /// # Safety
    /// `start` is readable for `len` bytes, and nothing writes them, until `release` is called.
    pub unsafe fn foreign(start: *const u8, len: usize, release: impl FnOnce() + Send + 'static) -> Bytes {
        let start = if len == 0 { no_bytes() } else { start };
        Bytes { start, len, source: Arc::new(ByteSource::Foreign(Arc::new(Release::by(release)))) }
    }

    /// A part of these bytes; `None` if out of range. The same memory where a tensor can use it, else a copy: of owned
    /// bytes, and where the start is no multiple of 16.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Option<Bytes> {
        let part = self.get(range)?;
        // Cells must be aligned for their type, so tightly packed ones are copied.
        let aligned = (part.as_ptr() as usize).is_multiple_of(16);
        let source = match &*self.source {
            ByteSource::Mapped(map) if aligned => ByteSource::Mapped(map.clone()),
            ByteSource::Foreign(release) if aligned => ByteSource::Foreign(release.clone()),
            _ => return Some(Bytes::copy_of(part)),
        };
        Some(Bytes { start: part.as_ptr(), len: part.len(), source: Arc::new(source) })
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the source, which this handle keeps, has at least `len` initialised bytes from `start`, which nothing
        // writes.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_owner_goes_with_the_last_part_of_its_bytes() {
        static GONE: AtomicUsize = AtomicUsize::new(0);
        struct Owner(Vec<u8>);
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        impl Drop for Owner {
            fn drop(&mut self) {
                GONE.fetch_add(1, Ordering::SeqCst);
            }
        }
        let all = Bytes::from_owner(Owner((0..64).collect()));
        let part = all.slice(0..8).unwrap();
        assert!(all.slice(8..65).is_none());
        drop(all);
        let handle = std::thread::spawn(move || part.to_vec());
        assert_eq!(handle.join().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(GONE.load(Ordering::SeqCst), 1);
        assert!(Bytes::from_owner(Vec::new()).is_empty());
    }

    #[test]
    fn a_file_may_be_read_instead_of_mapped() {
        let path = std::env::temp_dir().join(format!("restride-bytes-{}", std::process::id()));
        std::fs::write(&path, [7u8; 100]).unwrap();
        let read = Bytes::read(&path).unwrap();
        // Truncation does not change bytes that were read.
        std::fs::write(&path, []).unwrap();
        assert_eq!(read[..], [7u8; 100]);
        assert!(Bytes::map(&path).unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_read_or_refused() {
        use std::io::Write;
        use std::os::fd::AsRawFd;

        let folder = Bytes::map(&std::env::temp_dir()).err().unwrap();
        assert_eq!(folder.kind(), std::io::ErrorKind::IsADirectory);
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[7; 100]).unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        if Path::new(&path).exists() {
            assert_eq!(Bytes::map(Path::new(&path)).unwrap()[..], [7u8; 100]);
        }
    }
}
