//! Layouts on storages, and access to their elements.

use crate::storage::AccessError;
use crate::{DType, Element, Layout, Lock, Scalar, Storage, View, ViewMut};
use smallvec::SmallVec;
use std::ops::Range;

/// A layout on a storage: eager PyTorch's tensor. Clones alias.
#[derive(Clone, Debug)]
pub struct RawTensor {
    storage: Storage,
    dtype: DType,
    layout: Layout,
    /// Elements read as their complex conjugates (`torch.conj`'s lazy bit).
    pub conj: bool,
    /// Elements read negated (the lazy bit of `.imag` of a conjugate).
    pub neg: bool,
}

impl RawTensor {
    /// A tensor on a storage; `None` for a malformed layout, one outside of the storage, or misaligned elements (foreign
    /// memory may start anywhere).
    pub fn new(storage: Storage, dtype: DType, layout: Layout) -> Option<RawTensor> {
        let bytes = layout.byte_range(dtype.size())?;
        let aligned = (storage.address() as usize).is_multiple_of(dtype.align());
        // A storage that grows or is unshared is aligned for all, and no shorter.
        (bytes.is_empty() || bytes.end <= storage.len() && aligned).then_some(RawTensor {
            storage,
            dtype,
            layout,
            conj: false,
            neg: false,
        })
    }

    /// A zeroed tensor on its own storage, which ends with the layout.
    ///
    /// # Panics
    /// The layout fits no memory ([`Layout::byte_range`]). Allocation failure ends the process. [`RawTensor::try_zeros`]
    /// does neither.
    pub fn zeros(dtype: DType, layout: Layout) -> RawTensor {
        let bytes = layout.byte_range(dtype.size()).unwrap_or_else(|| panic!("no memory can be of layout {layout}"));
        let storage = Storage::zeroed(bytes.end);
        RawTensor { storage, dtype, layout, conj: false, neg: false }
    }

    /// As [`RawTensor::zeros`]; `None` for a malformed layout, or if the allocation fails.
    pub fn try_zeros(dtype: DType, layout: Layout) -> Option<RawTensor> {
        let storage = Storage::try_zeroed(layout.byte_range(dtype.size())?.end).ok()?;
        Some(RawTensor { storage, dtype, layout, conj: false, neg: false })
    }

    /// A row-major tensor of the given elements.
    ///
    /// # Panics
    /// If the number of elements is not that of the sizes.
    pub fn from_slice<T: Element>(data: &[T], sizes: &[i64]) -> RawTensor {
        let t = RawTensor::zeros(T::DTYPE, Layout::contiguous(sizes));
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

    /// Another layout (and element type) on the same storage; `None` as in [`RawTensor::new`].
    pub fn alias(&self, dtype: DType, layout: Layout) -> Option<RawTensor> {
        let mut t = RawTensor::new(self.storage.clone(), dtype, layout)?;
        (t.conj, t.neg) = (self.conj, self.neg);
        Some(t)
    }

    /// The addresses of its bytes, from the lowest to the highest; empty without elements.
    pub fn addresses(&self) -> Range<usize> {
        let bytes = self.layout.byte_range(self.dtype.size()).unwrap_or(0..usize::MAX);
        let start = self.storage.address() as usize;
        start.saturating_add(bytes.start)..start.saturating_add(bytes.end)
    }

    /// Whether elements of both may share bytes, on one storage or on the same foreign memory. `false` is certain; `true`
    /// compares the ranges from first to last element.
    pub fn may_meet(&self, other: &RawTensor) -> bool {
        let (a, b) = (self.addresses(), other.addresses());
        !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end
    }

    /// Locks the storage for reading until the guard is dropped: kernels take `t.read().view()`.
    ///
    /// # Panics
    /// The storage is being written.
    pub fn read(&self) -> ReadGuard<'_> {
        self.try_read().unwrap_or_else(|e| panic!("{e}"))
    }

    /// As [`RawTensor::read`].
    ///
    /// # Errors
    /// The storage is being written.
    pub fn try_read(&self) -> Result<ReadGuard<'_>, AccessError> {
        Ok(ReadGuard { lock: self.storage.lock(false)?, tensor: self })
    }

    /// Locks the storage for writing until the guard is dropped. Aliases see the writes.
    ///
    /// # Panics
    /// The storage is being read or written, or is read-only.
    pub fn write(&self) -> WriteGuard<'_> {
        self.try_write().unwrap_or_else(|e| panic!("{e}"))
    }

    /// As [`RawTensor::write`].
    ///
    /// # Errors
    /// The storage is being read or written, or is read-only.
    pub fn try_write(&self) -> Result<WriteGuard<'_>, AccessError> {
        Ok(WriteGuard { lock: self.storage.lock(true)?, tensor: self })
    }

    /// The elements in logical order (the lazy bits not applied).
    ///
    /// # Panics
    /// If `T` is not the element type (`u8` also reads `bool`), and as [`RawTensor::read`].
    pub fn to_elements<T: Element>(&self) -> Vec<T> {
        self.read().view().to_elements()
    }

    /// The element at an index as a number.
    ///
    /// # Panics
    /// As [`View::get`] and [`RawTensor::read`].
    pub fn get(&self, index: &[i64]) -> Scalar {
        self.read().view().get(index)
    }
}

/// A tensor whose storage is locked for reading.
pub struct ReadGuard<'t> {
    lock: Lock<'t>,
    tensor: &'t RawTensor,
}

impl ReadGuard<'_> {
    /// The elements, for a kernel.
    pub fn view(&self) -> View<'_> {
        // SAFETY: the layout is inside of the storage and its elements are aligned (checked when the tensor was made; storages
        // never shrink); the lock, which the view borrows, keeps the bytes where they are, and writers away.
        unsafe { View::from_raw(self.lock.start(), self.tensor.dtype, &self.tensor.layout) }
    }
}

/// A tensor whose storage is locked for writing.
pub struct WriteGuard<'t> {
    lock: Lock<'t>,
    tensor: &'t RawTensor,
}

impl WriteGuard<'_> {
    /// Where a kernel may write.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        // SAFETY: as in `ReadGuard::view`; the lock keeps all other readers and writers away.
        unsafe { ViewMut::from_raw(self.lock.start(), self.tensor.dtype, &self.tensor.layout) }
    }
}

/// Locks on the storages of all tensors of a call. An in-place operator may read and write the same storage.
pub struct Access<'t> {
    held: SmallVec<[(&'t Storage, bool); 8]>,
}

impl<'t> Access<'t> {
    /// Locks the storages that a call reads and writes.
    ///
    /// # Errors
    /// Another lock conflicts, or written memory is read-only.
    pub fn of(
        reads: impl IntoIterator<Item = &'t RawTensor>,
        writes: impl IntoIterator<Item = &'t RawTensor>,
    ) -> Result<Access<'t>, AccessError> {
        // What was locked until an error is released with it.
        let mut access = Access { held: SmallVec::new() };
        for t in writes {
            if !access.held.iter().any(|(s, _)| s.same(&t.storage)) {
                t.storage.acquire(true)?;
                access.held.push((&t.storage, true));
            }
        }
        let written = access.held.len();
        for t in reads {
            if !access.held[..written].iter().any(|(s, _)| s.same(&t.storage)) {
                t.storage.acquire(false)?;
                access.held.push((&t.storage, false));
            }
        }
        Ok(access)
    }

    fn holds(&self, t: &RawTensor, write: bool) -> bool {
        self.held.iter().any(|(s, w)| s.same(&t.storage) && (*w || !write))
    }

    /// View for reading.
    ///
    /// # Safety
    /// The operator supports the call's writes to the tensor's storage.
    ///
    /// # Panics
    /// The tensor is not locked (in debug builds).
    pub unsafe fn view<'a>(&'a self, t: &'a RawTensor) -> View<'a> {
        debug_assert!(self.holds(t, false), "a tensor is read that was not locked");
        // SAFETY: as in `ReadGuard::view`; who else writes the bytes is the caller's promise.
        unsafe { View::from_raw(t.storage.address(), t.dtype, &t.layout) }
    }

    /// View for writing.
    ///
    /// # Safety
    /// The operator supports the call's other views of the tensor's storage.
    ///
    /// # Panics
    /// The tensor is not locked for writing (in debug builds).
    pub unsafe fn view_mut<'a>(&'a self, t: &'a RawTensor) -> ViewMut<'a> {
        debug_assert!(self.holds(t, true), "a tensor is written that was not locked");
        // SAFETY: as in `WriteGuard::view_mut`; who else uses the bytes is the caller's promise.
        unsafe { ViewMut::from_raw(t.storage.address(), t.dtype, &t.layout) }
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        for (storage, write) in self.held.drain(..) {
            // SAFETY: acquired when this was made, and ended once; views borrow this.
            unsafe { storage.release(write) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    #[test]
    fn tensors_go_to_other_threads() {
        fn both<T: Send + Sync>() {}
        both::<RawTensor>();
        both::<Storage>();
        both::<Bytes>();
        let t = RawTensor::from_slice(&[1i64, 2], &[2]);
        let alias = t.clone();
        std::thread::spawn(move || alias.storage().write(&7i64.to_le_bytes())).join().unwrap();
        assert_eq!(t.to_elements::<i64>(), [7, 2]);
    }

    #[test]
    fn what_is_viewed_does_not_move() {
        let t = RawTensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4]);
        let reading = t.read();
        let v = reading.view();
        assert_eq!(t.storage().grow(1 << 20), Err(AccessError::Read));
        assert_eq!(v.get(&[0]), Scalar::Float(1.0));
        drop(reading);
        t.storage().grow(1 << 20).unwrap();
        assert_eq!(t.get(&[3]), Scalar::Float(4.0));

        let t = RawTensor::new(Storage::from_bytes(Bytes::copy_of(&[1; 64])), DType::U8, Layout::contiguous(&[64]))
            .unwrap();
        let reading = t.read();
        assert_eq!(t.storage().try_write(&[7]), Err(AccessError::Read));
        assert_eq!(reading.view().get(&[0]), Scalar::Int(1));
    }

    #[test]
    fn one_thread_reads_while_another_wants_to_write() {
        let t = RawTensor::from_slice(&[0i64], &[1]);
        let other = t.clone();
        std::thread::scope(|s| {
            s.spawn(move || {
                for _ in 0..100 {
                    if let Ok(r) = other.try_read() {
                        std::hint::black_box(r.view().get(&[0]));
                    }
                }
            });
            for i in 0..100i64 {
                let _ = t.storage().try_write(&i.to_le_bytes());
            }
        });
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn an_index_out_of_range_is_a_panic() {
        RawTensor::from_slice(&[1.0f32], &[1]).get(&[100_000_000]);
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn an_index_has_one_number_for_each_dimension() {
        RawTensor::from_slice(&[1.0f32, 2.0], &[1, 2]).get(&[0]);
    }

    #[test]
    fn what_is_no_layout_is_refused() {
        let on = |bytes: usize, l: Layout| RawTensor::new(Storage::zeroed(bytes), DType::F32, l);
        let mut few = Layout::contiguous(&[1i64]);
        few.sizes = [100_000_000i64].into_iter().collect();
        few.strides = std::iter::empty::<i64>().collect();
        assert!(on(4, few.clone()).is_none());
        assert!(RawTensor::try_zeros(DType::F32, few).is_none());
        assert!(on(4, Layout::strided(&[-5i64], &[0], 0)).is_none());
        assert!(on(4, Layout::strided(&[1i64 << 32, 1 << 32], &[0, 0], 0)).is_none());
        assert!(on(4, Layout::strided(&[3i64], &[i64::MAX], 0)).is_none());
        assert!(on(4, Layout::strided(&[2i64], &[-1], 0)).is_none());
        assert!(on(4, Layout::strided(&[1i64], &[1], -1)).is_none());
        assert!(on(4, Layout::strided(&[1i64], &[1], i64::MAX)).is_none());
        assert!(on(4, Layout::strided(&[2i64, 0], &[i64::MAX, 1], 7)).is_some());
        assert!(on(8, Layout::strided(&[2i64], &[-1], 1)).is_some());
        assert!(RawTensor::try_zeros(DType::F64, Layout::strided(&[2i64], &[1 << 61], 0)).is_none());
    }

    #[test]
    #[should_panic(expected = "no memory can be of layout")]
    fn zeros_of_no_layout_is_a_panic() {
        RawTensor::zeros(DType::F64, Layout::strided(&[2i64], &[1i64 << 61], 0));
    }

    #[test]
    fn foreign_memory_holds_what_is_aligned_in_it() {
        let mut there = [0u64; 4];
        let start: *mut u8 = there.as_mut_ptr().cast();
        // SAFETY: the array outlives the storage, and is not touched meanwhile.
        let odd = unsafe { Storage::foreign(start.add(1), 31, true, || {}) };
        assert!(RawTensor::new(odd.clone(), DType::F32, Layout::contiguous(&[2])).is_none());
        let bytes = RawTensor::new(odd, DType::U8, Layout::contiguous(&[31])).unwrap();
        assert!(bytes.alias(DType::I16, Layout::contiguous(&[1])).is_none());
        // SAFETY: as above.
        let c128 = unsafe { Storage::foreign(start.add(8), 24, true, || {}) };
        assert!(RawTensor::new(c128, DType::C128, Layout::contiguous(&[1])).is_some());
    }

    #[test]
    fn a_call_may_read_what_it_writes() {
        let t = RawTensor::from_slice(&[1i64, 2], &[2]);
        let (x, y) = (t.clone(), RawTensor::from_slice(&[3i64, 4], &[2]));
        let access = Access::of([&x, &y, &y], [&t, &t]).unwrap();
        assert!(t.try_read().is_err() && y.try_read().is_ok() && y.try_write().is_err());
        // SAFETY: nothing is written.
        let seen = unsafe { access.view(&x) }.get(&[1]);
        assert_eq!(seen, Scalar::Int(2));
        drop(access);
        assert!(t.try_write().is_ok() && y.try_write().is_ok());
        // What was locked before an error is released.
        let reading = y.read();
        assert!(Access::of([&x], [&t, &y]).is_err());
        drop(reading);
        assert!(t.try_write().is_ok());
    }

    #[test]
    fn elements_on_the_same_bytes_meet() {
        let t = RawTensor::from_slice(&[0f32; 8], &[8]);
        let part = |at: i64| t.alias(DType::F32, Layout::strided(&[2], &[1], at)).unwrap();
        assert!(part(0).may_meet(&part(1)) && !part(0).may_meet(&part(2)) && part(3).may_meet(&t));
    }
}
