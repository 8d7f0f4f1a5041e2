//! Operands of kernels: typed, strided windows on memory, without ownership.

use crate::storage::no_bytes;
use crate::{C32, C64, DType, Element, Layout, Scalar, bf16, f16};
use std::marker::PhantomData;

/// A strided window for reading. The same call may write the memory through a [`ViewMut`] if the operator declares it
/// (`Reuse`), so elements are read through raw pointers, never as slices that outlive a write.
///
/// Views stay on their thread, as a [`ViewMut`] of the same memory may exist. A kernel that shares work between threads
/// passes addresses and ensures that no two threads write an element.
#[derive(Clone, Copy)]
pub struct View<'a> {
    ptr: *const u8,
    dtype: DType,
    layout: &'a Layout,
    life: PhantomData<&'a u8>,
}

/// A strided window for writing. It cannot be copied, so safe code cannot give a kernel a second window on written memory.
pub struct ViewMut<'a> {
    ptr: *mut u8,
    dtype: DType,
    layout: &'a Layout,
    life: PhantomData<&'a u8>,
}

/// A promise of the caller of an operator's kernel that the call is well formed. Only `unsafe` code can make it.
#[derive(Debug)]
pub struct Fitted(());

impl Fitted {
    /// # Safety
    /// Results have the sizes and element types of the operator's shape function, and overlap arguments and each other only
    /// as the operator declares.
    pub const unsafe fn promise() -> Fitted {
        Fitted(())
    }
}

/// Accessors of both kinds of views.
macro_rules! described {
    ($view:ident) => {
        impl<'a> $view<'a> {
            /// Element type.
            pub fn dtype(&self) -> DType {
                self.dtype
            }
            /// Layout of the elements.
            pub fn layout(&self) -> &'a Layout {
                self.layout
            }
            /// Sizes.
            pub fn sizes(&self) -> &'a [i64] {
                &self.layout.sizes
            }
            /// Strides in elements.
            pub fn strides(&self) -> &'a [i64] {
                &self.layout.strides
            }
            /// Number of elements.
            pub fn numel(&self) -> usize {
                self.layout.numel() as usize
            }
        }
    };
}
described!(View);
described!(ViewMut);

/// The address of a view's cells. A view without cells gets one that is aligned for all elements, wherever it is said to be:
/// kernels may make slices at it.
fn address(ptr: *mut u8, layout: &Layout) -> *mut u8 {
    if layout.sizes.contains(&0) { no_bytes() } else { ptr }
}

impl<'a> View<'a> {
    /// A view on memory. The address of a view without cells does not matter.
    ///
    /// # Safety
    /// Every cell of `layout`, in elements of `dtype` from `ptr`, is initialised memory that lives for `'a`
    /// and is aligned for the element type.
    pub unsafe fn from_raw(ptr: *const u8, dtype: DType, layout: &'a Layout) -> Self {
        View { ptr: address(ptr.cast_mut(), layout), dtype, layout, life: PhantomData }
    }
    /// Address of cell 0 (not of the first element).
    pub fn base(&self) -> *const u8 {
        self.ptr
    }
    /// Address of the first element.
    pub fn ptr<T: Element>(&self) -> *const T {
        debug_assert_eq!(std::mem::size_of::<T>(), self.dtype.size());
        (self.ptr as *const T).wrapping_offset(self.layout.offset as isize)
    }
    /// The same memory under another layout.
    ///
    /// # Safety
    /// The layout's cells are cells of memory that this view may read.
    pub unsafe fn with_layout<'b>(&self, layout: &'b Layout) -> View<'b>
    where
        'a: 'b,
    {
        View { ptr: self.ptr, dtype: self.dtype, layout, life: PhantomData }
    }

    /// The element at an index as a number.
    ///
    /// # Panics
    /// If the index has not one number for each dimension, or one of them is out of range.
    pub fn get(&self, index: &[i64]) -> Scalar {
        let inside =
            index.len() == self.sizes().len() && index.iter().zip(self.sizes()).all(|(i, n)| (0..*n).contains(i));
        assert!(inside, "index {index:?} is out of range for sizes {:?}", self.sizes());
        let cell = self.layout.cell(index) as isize;
        macro_rules! at {
            ($t:ty) => {
                // SAFETY: the index is within the sizes, whose cells are readable by construction.
                unsafe { (self.ptr as *const $t).offset(cell).read() }
            };
        }
        match self.dtype {
            DType::Bool => Scalar::Bool(at!(u8) != 0),
            DType::U8 => Scalar::Int(at!(u8) as i64),
            DType::I8 => Scalar::Int(at!(i8) as i64),
            DType::I16 => Scalar::Int(at!(i16) as i64),
            DType::I32 => Scalar::Int(at!(i32) as i64),
            DType::I64 => Scalar::Int(at!(i64)),
            DType::F16 => Scalar::Float(at!(f16).to_f64()),
            DType::BF16 => Scalar::Float(at!(bf16).to_f64()),
            DType::F32 => Scalar::Float(at!(f32) as f64),
            DType::F64 => Scalar::Float(at!(f64)),
            DType::C64 => {
                let z = at!(C32);
                Scalar::Complex(C64::new(z.re as f64, z.im as f64))
            }
            DType::C128 => Scalar::Complex(at!(C64)),
        }
    }

    /// The elements in logical order.
    ///
    /// # Panics
    /// If `T` is not the element type (`u8` also reads `bool`).
    pub fn to_elements<T: Element>(&self) -> Vec<T> {
        let fits = self.dtype == T::DTYPE || (self.dtype == DType::Bool && T::DTYPE == DType::U8);
        assert!(fits, "{} elements read as {}", self.dtype, T::DTYPE);
        let base = self.ptr as *const T;
        // SAFETY: all cells of the layout are readable by construction.
        self.layout.cells().into_iter().map(|c| unsafe { base.offset(c as isize).read() }).collect()
    }
}

impl<'a> ViewMut<'a> {
    /// # Safety
    /// As [`View::from_raw`], and the cells may be written during `'a`.
    pub unsafe fn from_raw(ptr: *mut u8, dtype: DType, layout: &'a Layout) -> Self {
        ViewMut { ptr: address(ptr, layout), dtype, layout, life: PhantomData }
    }
    /// The same window for reading, while nothing is written through this one.
    ///
    /// ```compile_fail,E0502
    /// # use restride_tensor::{DType, Layout, RawTensor, View, ViewMut};
    /// fn kernel(x: &View<'_>, out: &ViewMut<'_>) {}
    /// let t = RawTensor::zeros(DType::F32, Layout::contiguous(&[2]));
    /// let mut writing = t.write();
    /// let mut out = writing.view_mut();
    /// let x = out.as_view();
    /// kernel(&x, &out);
    /// ```
    pub fn as_view(&mut self) -> View<'_> {
        View { ptr: self.ptr, dtype: self.dtype, layout: self.layout, life: PhantomData }
    }
    /// Address of cell 0 (not of the first element).
    pub fn base(&self) -> *mut u8 {
        self.ptr
    }
    /// Address of the first element.
    pub fn ptr<T: Element>(&self) -> *mut T {
        debug_assert_eq!(std::mem::size_of::<T>(), self.dtype.size());
        (self.ptr as *mut T).wrapping_offset(self.layout.offset as isize)
    }
    /// The same memory under another layout.
    ///
    /// # Safety
    /// The layout's cells are cells of memory that this view may write.
    pub unsafe fn with_layout<'b>(&self, layout: &'b Layout) -> ViewMut<'b>
    where
        'a: 'b,
    {
        ViewMut { ptr: self.ptr, dtype: self.dtype, layout, life: PhantomData }
    }
}
