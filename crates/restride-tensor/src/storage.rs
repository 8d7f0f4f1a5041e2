//! Memory that tensors share, and the tensor that is a layout on it.
//!
//! A [`Storage`] is single-threaded shared memory, as eager PyTorch's: any number of tensors see it, and each
//! may write it. [`Bytes`] is its immutable, thread-safe counterpart for weights, possibly a mapped file.

use crate::{DType, Element, Layout, Scalar, View, ViewMut};
use std::cell::UnsafeCell;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// One aligned block (64 bytes): what vector kernels and `.pt2` weights expect.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Block([u8; 64]);

/// Owned, 64-byte aligned bytes.
struct Aligned {
    blocks: Vec<Block>,
    len: usize,
}

impl Aligned {
    fn zeroed(len: usize) -> Self {
        Aligned { blocks: vec![Block([0; 64]); len.div_ceil(64)], len }
    }
    fn ptr(&self) -> *mut u8 {
        self.blocks.as_ptr() as *mut u8
    }
}

enum BytesInner {
    Owned(Aligned),
    Mapped { map: Arc<memmap2::Mmap>, start: usize, len: usize },
}

/// Immutable bytes shared between threads: owned, or part of a mapped file.
#[derive(Clone)]
pub struct Bytes(Arc<BytesInner>);

impl Bytes {
    /// A copy of the given bytes, aligned to 64.
    pub fn copy_of(bytes: &[u8]) -> Bytes {
        let out = Aligned::zeroed(bytes.len());
        // SAFETY: `out` was just made with room for `len` bytes and nobody else has it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.ptr(), bytes.len()) };
        Bytes(Arc::new(BytesInner::Owned(out)))
    }

    /// A whole file, mapped. Whoever changes the file while it is mapped changes what is read.
    pub fn map(path: &Path) -> std::io::Result<Bytes> {
        let file = std::fs::File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Ok(Bytes::copy_of(&[]));
        }
        // SAFETY: the mapping is private and read-only; as with every mapped file, the contract with the
        // caller (documented above) is that the file is left alone while it is in use.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        let len = map.len();
        Ok(Bytes(Arc::new(BytesInner::Mapped { map: Arc::new(map), start: 0, len })))
    }

    /// Part of these bytes, sharing a mapping; owned bytes are copied. `None` if out of range.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Option<Bytes> {
        let bytes = self.get(range.clone())?;
        Some(match &*self.0 {
            BytesInner::Mapped { map, start, .. } if (bytes.as_ptr() as usize).is_multiple_of(16) => {
                Bytes(Arc::new(BytesInner::Mapped { map: map.clone(), start: start + range.start, len: bytes.len() }))
            }
            // Cells must be aligned for their type: what a foreign writer packed tightly is copied.
            _ => Bytes::copy_of(bytes),
        })
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &*self.0 {
            // SAFETY: the blocks hold at least `len` initialised bytes and are never written after this is shared.
            BytesInner::Owned(a) => unsafe { std::slice::from_raw_parts(a.ptr(), a.len) },
            BytesInner::Mapped { map, start, len } => &map[*start..*start + *len],
        }
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.len())
    }
}

enum Memory {
    Owned(Aligned),
    /// Read-only until the first write, which copies.
    Shared(Bytes),
}

/// Shared mutable memory of one thread: what tensors that alias have in common. Clones are the same storage.
#[derive(Clone)]
pub struct Storage(Rc<UnsafeCell<Memory>>);

impl Storage {
    /// Zeroed memory of `len` bytes.
    pub fn zeroed(len: usize) -> Storage {
        Storage(Rc::new(UnsafeCell::new(Memory::Owned(Aligned::zeroed(len)))))
    }

    /// Memory that reads as `bytes`, copied at the first write.
    pub fn from_bytes(bytes: Bytes) -> Storage {
        Storage(Rc::new(UnsafeCell::new(Memory::Shared(bytes))))
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        // SAFETY: no reference into the cell outlives a method of this single-threaded type.
        match unsafe { &*self.0.get() } {
            Memory::Owned(a) => a.len,
            Memory::Shared(b) => b.len(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether two are the same storage.
    pub fn same(&self, other: &Storage) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// A number that tells storages apart while they live.
    pub fn id(&self) -> usize {
        Rc::as_ptr(&self.0) as *const u8 as usize
    }

    /// Address of the bytes for reading; valid until the storage is written for the first time or resized.
    pub fn ptr(&self) -> *const u8 {
        // SAFETY: as in `len`.
        match unsafe { &*self.0.get() } {
            Memory::Owned(a) => a.ptr(),
            Memory::Shared(b) => b.as_ptr(),
        }
    }

    /// Address of the bytes for writing. Shared bytes are copied first, so take it before any [`Storage::ptr`].
    pub fn ptr_mut(&self) -> *mut u8 {
        // SAFETY: as in `len`; the exclusive reference ends before this returns.
        let memory = unsafe { &mut *self.0.get() };
        if let Memory::Shared(b) = memory {
            let own = Aligned::zeroed(b.len());
            // SAFETY: `own` has room for the bytes and nobody else has it.
            unsafe { std::ptr::copy_nonoverlapping(b.as_ptr(), own.ptr(), b.len()) };
            *memory = Memory::Owned(own);
        }
        match memory {
            Memory::Owned(a) => a.ptr(),
            Memory::Shared(_) => unreachable!("shared bytes were just copied"),
        }
    }

    /// Grows (with zeros) to at least `len` bytes, as `resize_` does; never shrinks.
    pub fn grow(&self, len: usize) {
        if len > self.len() {
            let bigger = Aligned::zeroed(len);
            // SAFETY: `bigger` has room for the old bytes and is not shared yet.
            unsafe { std::ptr::copy_nonoverlapping(self.ptr(), bigger.ptr(), self.len()) };
            // SAFETY: as in `len`.
            unsafe { *self.0.get() = Memory::Owned(bigger) };
        }
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        // SAFETY: `ptr` is valid for `len` bytes, and nothing writes while this borrows.
        unsafe { std::slice::from_raw_parts(self.ptr(), self.len()) }.to_vec()
    }

    /// Overwrites the first bytes.
    ///
    /// # Panics
    /// If there are more bytes than the storage has.
    pub fn write(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.len(), "write past the end of a storage");
        // SAFETY: checked above; the source is a borrowed slice, which cannot be this storage's own memory
        // because no safe method lends it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.ptr_mut(), bytes.len()) };
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes)", self.len())
    }
}

/// A layout on a storage: eager PyTorch's tensor. Clones alias.
#[derive(Clone, Debug)]
pub struct Tensor {
    storage: Storage,
    dtype: DType,
    layout: Layout,
    /// Elements read as their complex conjugates (`torch.conj`'s lazy bit).
    pub conj: bool,
    /// Elements read negated (the lazy bit of `.imag` of a conjugate).
    pub neg: bool,
}

impl Tensor {
    /// A tensor on a storage; `None` if the layout reaches outside of it.
    pub fn new(storage: Storage, dtype: DType, layout: Layout) -> Option<Tensor> {
        let range = layout.cell_range();
        let inside = range.is_empty()
            || (range.start >= 0 && (range.end as u128) * dtype.size() as u128 <= storage.len() as u128);
        inside.then_some(Tensor { storage, dtype, layout, conj: false, neg: false })
    }

    /// A zeroed tensor on a storage of its own that ends where the layout ends.
    pub fn zeros(dtype: DType, layout: Layout) -> Tensor {
        let end = layout.cell_range().end.max(0) as usize;
        Tensor { storage: Storage::zeroed(end * dtype.size()), dtype, layout, conj: false, neg: false }
    }

    /// A row-major tensor of the given elements.
    ///
    /// # Panics
    /// If the number of elements is not that of the sizes.
    pub fn from_slice<T: Element>(data: &[T], sizes: &[i64]) -> Tensor {
        let t = Tensor::zeros(T::DTYPE, Layout::contiguous(sizes));
        assert_eq!(t.numel(), data.len(), "elements do not fill sizes {sizes:?}");
        // SAFETY: elements are plain data; the slice covers exactly their bytes.
        t.storage.write(unsafe { std::slice::from_raw_parts(data.as_ptr() as *const u8, std::mem::size_of_val(data)) });
        t
    }

    /// The storage this is a view of.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    /// Sizes, strides and offset in elements.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.layout.numel() as usize
    }

    /// Another layout (and element type) on the same storage; `None` if it reaches outside.
    pub fn alias(&self, dtype: DType, layout: Layout) -> Option<Tensor> {
        let mut t = Tensor::new(self.storage.clone(), dtype, layout)?;
        (t.conj, t.neg) = (self.conj, self.neg);
        Some(t)
    }

    /// Borrowed for reading by a kernel.
    pub fn view(&self) -> View<'_> {
        // SAFETY: the layout lies inside the storage (checked at construction; storages never shrink), which
        // lives as long as `self`.
        unsafe { View::from_raw(self.storage.ptr(), self.dtype, &self.layout) }
    }

    /// Borrowed for writing by a kernel. Aliases of the storage see the writes.
    pub fn view_mut(&self) -> ViewMut<'_> {
        // SAFETY: as in `view`; a storage is single-threaded and lends no Rust references to its bytes.
        unsafe { ViewMut::from_raw(self.storage.ptr_mut(), self.dtype, &self.layout) }
    }

    /// The elements in logical order (the lazy bits not applied).
    ///
    /// # Panics
    /// If `T` is not the element type (`u8` also reads `bool`).
    pub fn to_elements<T: Element>(&self) -> Vec<T> {
        self.view().to_elements()
    }

    /// The element at an index as a number.
    pub fn get(&self, index: &[i64]) -> Scalar {
        self.view().get(index)
    }
}
