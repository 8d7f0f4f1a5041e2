//! Places of a step's operands, and the caller's memory checked against the bytes that the steps use.

use crate::inputs::same_strides;
use restride_ir::Meta;
use restride_tensor::{DType, Layout, RawTensor, View, ViewMut};
use std::ops::Range;

/// A place as a step uses it: a buffer, and the element type and layout of its value.
#[derive(Clone, Debug)]
pub(super) struct TypedPlace {
    pub buffer: usize,
    pub dtype: DType,
    pub layout: Layout,
}

impl TypedPlace {
    /// # Safety
    /// The buffer at this position of `bases` reaches as far as the layout does, for reading, while the view is used.
    pub unsafe fn view<'a>(&'a self, bases: &[*mut u8]) -> View<'a> {
        // SAFETY: as promised by the caller.
        unsafe { View::from_raw(bases[self.buffer], self.dtype, &self.layout) }
    }
    /// # Safety
    /// As [`TypedPlace::view`], for writing.
    pub unsafe fn view_mut<'a>(&'a self, bases: &[*mut u8]) -> ViewMut<'a> {
        // SAFETY: as promised by the caller.
        unsafe { ViewMut::from_raw(bases[self.buffer], self.dtype, &self.layout) }
    }
}

/// The part of the caller's memory that steps use.
#[derive(Clone, Debug)]
pub(super) struct CallerMemory {
    /// The place's value, as it was placed.
    pub ty: Meta,
    /// Bytes that steps touch, counted from the buffer's start.
    pub used: Range<i64>,
    /// Whether a step writes it.
    pub written: bool,
    /// Largest alignment of an element that a step uses.
    pub align: usize,
}

impl CallerMemory {
    pub fn new(ty: Meta) -> CallerMemory {
        CallerMemory { ty, used: 0..0, written: false, align: 1 }
    }

    /// A step uses it.
    pub fn touch(&mut self, dtype: DType, layout: &Layout, written: bool) {
        let cells = layout.cell_range();
        if cells.is_empty() {
            return;
        }
        self.align = self.align.max(dtype.align());
        self.written |= written;
        let size = dtype.size() as i64;
        let bytes = cells.start.saturating_mul(size)..cells.end.saturating_mul(size);
        self.used =
            if self.used.is_empty() { bytes } else { self.used.start.min(bytes.start)..self.used.end.max(bytes.end) };
    }

    /// Whether a step reads or writes it.
    pub fn is_used(&self) -> bool {
        !self.used.is_empty()
    }

    /// The address of the buffer's start for a tensor of the caller's, whose storage is locked; it may lie before the tensor's
    /// storage, but the bytes that are used do not. The complaint continues "input x …".
    pub fn bind(&self, t: &RawTensor) -> Result<*mut u8, String> {
        let (want, have) = (&self.ty.layout, t.layout());
        if t.dtype() != self.ty.dtype || have.sizes != want.sizes {
            return Err(format!("is {}{:?} and was placed as {}", t.dtype(), &have.sizes[..], self.ty));
        }
        if !same_strides(want, have) || t.conj || t.neg {
            let (want, have) = (&want.strides, &have.strides);
            return Err(format!("has strides {have:?} and was placed for {want:?}"));
        }
        let storage = t.storage();
        let shift = i128::from(have.offset - want.offset) * t.dtype().size() as i128;
        if self.used.is_empty() {
            return Ok(storage.address());
        }
        let (start, end) = (i128::from(self.used.start) + shift, i128::from(self.used.end) + shift);
        if start < 0 || end > storage.len() as i128 {
            return Err(format!("has a storage of {} bytes, and bytes {start} to {end} are used", storage.len()));
        }
        let base = storage.address().wrapping_offset(shift as isize);
        if !(base as usize).is_multiple_of(self.align) {
            return Err(format!("starts at a byte that is no multiple of {}, as a view of it needs", self.align));
        }
        Ok(base)
    }
}
